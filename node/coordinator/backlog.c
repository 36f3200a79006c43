/* A hash table with chains and a dense array beside it, so that rounds walk memory in order and removal is a swap. */
#include "node/coordinator/backlog.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/hash.h"
#include "node/base/mem.h"

enum { CHAINS = 1 << 16, FIRST_CAPACITY = 1024 };
static const uint64_t BACK_OFF_NS = UINT64_C(200000000);
static const uint64_t BACK_OFF_LONGEST_NS = UINT64_C(10000000000);

enum err backlog_init(struct backlog *out, const struct record_limits *limits) {
    AUTO(backlog_done)
    struct backlog b = {.chains_count = CHAINS, .capacity = FIRST_CAPACITY, .limits = *limits};
    TRY(mem_new(&b.jobs, b.capacity, sizeof *b.jobs));
    TRY(mem_new(&b.chains, b.chains_count, sizeof *b.chains));
    TRY(mem_new(&b.tenants, TENANTS_MAX, sizeof *b.tenants));
    TRY(mem_new(&b.served_ns, TENANTS_MAX, sizeof *b.served_ns));
    *out = b;
    b = (struct backlog){0};
    return OK;
}

static void bodies_free(struct job_view *job) {
    for (uint32_t i = 0; i < job->bodies_count; i++) {
        mem_free(job->bodies[i].name);
    }
    mem_free(job->bodies);
    job->bodies = NULL;
    job->bodies_count = 0;
}

static void view_free(struct job_view **job) {
    if (*job) {
        bodies_free(*job);
        mem_free((*job)->parts);
        mem_free_ptr(job);
    }
}

void backlog_done(struct backlog *b) {
    for (size_t i = 0; i < b->count; i++) {
        view_free(&b->jobs[i]);
    }
    mem_free(b->jobs);
    mem_free(b->chains);
    mem_free(b->tenants);
    mem_free(b->served_ns);
    *b = (struct backlog){0};
}

static size_t chain_of(const struct backlog *b, struct job_name name) {
    char text[2 * ID_BYTES_MAX + 2];
    int len = snprintf(text, sizeof text, "%s.%s", name.tenant, name.job);
    return hash_xxh64(bytes_of(text, (size_t)len)) % b->chains_count;
}

struct job_view *backlog_find(const struct backlog *b, struct job_name name) {
    struct job_view *job = b->chains[chain_of(b, name)];
    while (job && (strcmp(job->job, name.job) || strcmp(job->tenant, name.tenant))) {
        job = job->next;
    }
    return job;
}

static enum err tenant_idx_of(uint32_t *idx, struct backlog *b, const char *tenant) {
    for (size_t i = 0; i < b->tenants_count; i++) {
        if (!strcmp(b->tenants[i], tenant)) {
            *idx = (uint32_t)i;
            return OK;
        }
    }
    REQUIRE(b->tenants_count < TENANTS_MAX, E_LIMIT, "more than %d tenants", TENANTS_MAX);
    *idx = (uint32_t)b->tenants_count++;
    snprintf(b->tenants[*idx], sizeof b->tenants[*idx], "%s", tenant);
    return OK;
}

void backlog_level_tenant(struct backlog *b, uint32_t tenant_idx) {
    uint64_t least_ns = UINT64_MAX;
    for (size_t i = 0; i < b->count; i++) {
        const struct job_view *job = b->jobs[i];
        if (job->tenant_idx == tenant_idx) {
            return; /* it was there all along */
        }
        least_ns =
            b->served_ns[job->tenant_idx] < least_ns ? b->served_ns[job->tenant_idx] : least_ns;
    }
    if (least_ns != UINT64_MAX && b->served_ns[tenant_idx] < least_ns) {
        b->served_ns[tenant_idx] = least_ns;
    }
}

static enum err read_bodies(struct job_view *job, const job_message *m) {
    struct body_ref *bodies = NULL;
    TRY(mem_new(&bodies, m->n_partitions, sizeof *bodies));
    mem_free(job->bodies);
    job->bodies = bodies;
    for (size_t i = 0; i < m->n_partitions; i++) {
        const Bellows__V1__Body *body = m->partitions[i]->body;
        if (body->place_case == BELLOWS__V1__BODY__PLACE_OBJECT) {
            struct body_ref *ref = &job->bodies[job->bodies_count];
            ref->name = mem_strdup(body->object->name);
            REQUIRE(ref->name, E_LIMIT, "no memory for a job's bodies");
            snprintf(ref->bucket, sizeof ref->bucket, "%s", body->object->bucket);
            snprintf(ref->nuid, sizeof ref->nuid, "%s", body->object->nuid);
            job->bodies_count++;
        }
    }
    return OK;
}

/* What never changes within a generation. */
static enum err read_descriptor(struct job_view *job, struct backlog *b, const struct record *r,
                                uint64_t now_ns) {
    AUTO(message_free) job_message *m = NULL;
    TRY(job_unpack(&m, bytes_of(r->job.ptr, r->job.len), NULL, UINT64_MAX));
    TRY(tenant_idx_of(&job->tenant_idx, b, job->tenant));
    uint64_t now_ms = clock_unix_ns() / 1000000;
    job->priority = (uint8_t)m->priority;
    job->arrived_ns = now_ns;
    job->deadline_ns = 0;
    if (m->deadline_unix_ms) { /* from the wall to our own clock, once */
        uint64_t left_ms = m->deadline_unix_ms > now_ms ? m->deadline_unix_ms - now_ms : 0, left_ns;
        if (!__builtin_mul_overflow(left_ms, UINT64_C(1000000), &left_ns) &&
            !__builtin_add_overflow(left_ns, now_ns, &left_ns)) {
            job->deadline_ns = left_ns ? left_ns : 1;
        }
    }
    memcpy(job->key_digest.b, m->key_digest.data, SHA256_BYTES);
    /* By age; the sequence only tells apart what came in the same millisecond. */
    job->order = r->queued_unix_ms << 20 | (b->sequence++ & 0xfffff);
    bodies_free(job);
    return read_bodies(job, m);
}

static void read_part(struct part_view *view, const struct record_part *part, uint64_t now_ns) {
    if (view->epoch != part->epoch || view->state != part->state) {
        view->known_ns = now_ns;
        view->not_before_ns = 0;
        view->loss = PART_NOT_LOST;
        if (part->state == JOB_QUEUED && part->tries_count > 0) {
            unsigned shift = part->tries_count < 7 ? part->tries_count - 1 : 6;
            uint64_t wait_ns = BACK_OFF_NS << shift;
            view->not_before_ns =
                now_ns + (wait_ns < BACK_OFF_LONGEST_NS ? wait_ns : BACK_OFF_LONGEST_NS);
        }
        if (part->state == JOB_QUEUED) {
            view->cost_ns = 0;
        }
    }
    view->state = part->state;
    view->epoch = part->epoch;
    view->lane = part->lane;
    view->refused_count = 0;
    for (uint32_t i = 0; i < part->tries_count && view->refused_count < COUNT_OF(view->refused);
         i++) {
        const struct record_try *t = &part->tries[i];
        bool died = !t->counted && t->code == E_DEVICE_LOST;
        if (!died) {
            view->refused[view->refused_count++] = t->lane;
        }
    }
}

static enum err read_record(struct job_view *job, struct backlog *b, const struct record *r,
                            uint64_t revision, uint64_t now_ns) {
    if (job->generation != r->generation || !job->parts) {
        struct part_view *parts = NULL;
        TRY(mem_new(&parts, r->parts_count, sizeof *parts));
        mem_free(job->parts);
        job->parts = parts;
        job->parts_count = r->parts_count;
        TRY(read_descriptor(job, b, r, now_ns));
        job->generation = r->generation;
    }
    REQUIRE(job->parts_count == r->parts_count, E_FORMAT,
            "record %s.%s: the number of partitions changed from %u to %u", job->tenant, job->job,
            job->parts_count, r->parts_count);
    job->revision = revision;
    job->epoch = r->epoch;
    for (uint32_t i = 0; i < r->parts_count; i++) {
        read_part(&job->parts[i], &r->parts[i], now_ns);
    }
    job->joining = record_all_parts_done(r);
    job->used_up = record_is_used_up(NULL, r, &b->limits);
    return OK;
}

static enum err add(struct job_view **out, struct backlog *b, struct job_name name) {
    REQUIRE(b->count < JOBS_OPEN_MAX, E_LIMIT, "more than %d open jobs", JOBS_OPEN_MAX);
    if (b->count == b->capacity) {
        struct job_view **jobs = mem_grow(b->jobs, 2 * b->capacity * sizeof *jobs);
        REQUIRE(jobs, E_LIMIT, "no memory for %zu open jobs", 2 * b->capacity);
        b->jobs = jobs;
        b->capacity *= 2;
    }
    struct job_view *job = NULL;
    TRY(mem_new(&job, 1, sizeof *job));
    snprintf(job->tenant, sizeof job->tenant, "%s", name.tenant);
    snprintf(job->job, sizeof job->job, "%s", name.job);
    size_t chain = chain_of(b, name);
    job->next = b->chains[chain];
    b->chains[chain] = job;
    job->at = b->count;
    b->jobs[b->count++] = job;
    *out = job;
    return OK;
}

enum err backlog_put(struct job_view **out, struct backlog *b, struct job_name name,
                     const struct record *record, uint64_t revision, uint64_t now_ns) {
    struct job_view *job = backlog_find(b, name);
    bool is_new = !job;
    if (is_new) {
        uint32_t tenant_idx;
        TRY(tenant_idx_of(&tenant_idx, b, name.tenant));
        backlog_level_tenant(b, tenant_idx);
        TRY(add(&job, b, name));
    }
    if (is_new || revision > job->revision) {
        enum err code = read_record(job, b, record, revision, now_ns);
        if (code != OK) {
            backlog_remove(b, job);
            return code;
        }
    }
    if (out) {
        *out = job;
    }
    return OK;
}

void backlog_remove(struct backlog *b, struct job_view *job) {
    struct job_view **link = &b->chains[chain_of(b, job_name_of(job))];
    while (*link != job) {
        link = &(*link)->next;
    }
    *link = job->next;
    b->jobs[job->at] = b->jobs[--b->count];
    b->jobs[job->at]->at = job->at;
    view_free(&job);
}
