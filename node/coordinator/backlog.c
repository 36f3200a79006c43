/* Hash tables with chains for jobs, tenants and lines, a dense array of jobs beside them, a binary heap of timers, and lists.
 *
 * A partition is taken out of wherever it stands before its state changes and put where it belongs afterwards (unfile, file); nothing
 * else moves it. A job has one timer, set to the earliest thing that only the clock brings: the end of a back-off, the moment at which
 * its deadline presses, the deadline.
 */
#include "node/coordinator/backlog.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/hash.h"
#include "node/base/mem.h"
#include "node/transport/fleet.h"

enum {
    CHAINS = 1 << 16,
    TENANT_CHAINS = 1 << 12,
    LINE_CHAINS = 1 << 12,
    FIRST_CAPACITY = 1024,
    KEPT_RECORD_BYTES_MAX = 16 * 1024,
    LEARNED = 32, /* jobs behind an estimate that others are measured by */
    SLOW_TIMES = 4
};
static const uint64_t SLOW_LEAST_NS = UINT64_C(2000000000);
static const size_t KEPT_BYTES_MAX = (size_t)64 << 20;
static const uint64_t BACK_OFF_NS = UINT64_C(200000000);
static const uint64_t BACK_OFF_LONGEST_NS = UINT64_C(10000000000);
static const uint64_t AGE_MARGIN_NS = UINT64_C(3600000000000);
static const uint64_t URGENT_BEFORE_NS = UINT64_C(5000000000); /* and three times the work */

enum err backlog_init(struct backlog *out, const struct record_limits *limits, uint64_t age_max_ns,
                      struct lanes *lanes) {
    AUTO(backlog_done)
    struct backlog b = {.capacity = FIRST_CAPACITY,
                        .lines_capacity = FIRST_CAPACITY,
                        .limits = *limits,
                        .age_max_ns = age_max_ns ? age_max_ns : JOB_AGE_MAX_NS - AGE_MARGIN_NS,
                        .lanes = lanes,
                        .estimates = lanes->estimates};
    TRY(mem_new(&b.jobs, b.capacity, sizeof *b.jobs));
    TRY(mem_new(&b.timers.jobs, b.capacity, sizeof *b.timers.jobs));
    TRY(mem_new(&b.chains, CHAINS, sizeof *b.chains));
    TRY(mem_new(&b.tenants, TENANTS_MAX, sizeof *b.tenants));
    TRY(mem_new(&b.tenant_chains, TENANT_CHAINS, sizeof *b.tenant_chains));
    TRY(mem_new(&b.served_ns, TENANTS_MAX, sizeof *b.served_ns));
    TRY(mem_new(&b.lines, b.lines_capacity, sizeof *b.lines));
    TRY(mem_new(&b.line_chains, LINE_CHAINS, sizeof *b.line_chains));
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

static void parts_free(struct job_view *job) {
    for (uint32_t i = 0; i < job->parts_count; i++) {
        mem_free(job->parts[i].refused);
    }
    mem_free(job->parts);
    job->parts = NULL;
    job->parts_count = 0;
}

static void packed_free(struct job_view *job) {
    if (job->packed.ptr) {
        mem_wipe(job->packed.ptr, job->packed.len); /* it may hold an inline witness */
    }
    mem_free(job->packed.ptr);
    job->packed = (struct bytes_mut){0};
}

static void view_free(struct job_view **job) {
    if (*job) {
        bodies_free(*job);
        parts_free(*job);
        packed_free(*job);
        mem_free((*job)->label);
        mem_free_ptr(job);
    }
}

void backlog_done(struct backlog *b) {
    for (size_t i = 0; i < b->count; i++) {
        view_free(&b->jobs[i]);
    }
    for (size_t i = 0; i < b->lines_count; i++) {
        mem_free(b->lines[i]);
    }
    mem_free(b->jobs);
    mem_free(b->timers.jobs);
    mem_free(b->chains);
    mem_free(b->tenants);
    mem_free(b->tenant_chains);
    mem_free(b->served_ns);
    mem_free(b->lines);
    mem_free(b->line_chains);
    *b = (struct backlog){0};
}

/* --- Jobs by name --- */

static size_t chain_of(struct job_name name) {
    char text[2 * ID_BYTES_MAX + 2];
    int len = snprintf(text, sizeof text, "%s.%s", name.tenant, name.job);
    return hash_xxh64(bytes_of(text, (size_t)len)) % CHAINS;
}

struct job_view *backlog_find(const struct backlog *b, struct job_name name) {
    struct job_view *job = b->chains[chain_of(name)];
    while (job && (strcmp(job->job, name.job) || strcmp(job->tenant, name.tenant))) {
        job = job->next;
    }
    return job;
}

/* --- Tenants --- */

static uint32_t *tenant_chain_of(const struct backlog *b, const char *tenant) {
    return &b->tenant_chains[hash_xxh64(bytes_of(tenant, strlen(tenant))) % TENANT_CHAINS];
}

/* A place for a new tenant: a fresh one, or that of one without open jobs. */
static enum err place_for_tenant(size_t *idx, struct backlog *b) {
    if (b->tenants_count < TENANTS_MAX) {
        *idx = b->tenants_count++;
        return OK;
    }
    size_t i = 0;
    while (i < b->tenants_count && b->tenants[i].jobs > 0) {
        i++;
    }
    REQUIRE(i < b->tenants_count, E_LIMIT, "more than %d tenants have open jobs", TENANTS_MAX);
    uint32_t *link = tenant_chain_of(b, b->tenants[i].name);
    while (*link != i + 1) {
        link = &b->tenants[*link - 1].next;
    }
    *link = b->tenants[i].next;
    b->served_ns[i] = 0;
    *idx = i;
    return OK;
}

uint32_t backlog_tenant_jobs(const struct backlog *b, const char *tenant) {
    for (uint32_t i = *tenant_chain_of(b, tenant); i; i = b->tenants[i - 1].next) {
        if (!strcmp(b->tenants[i - 1].name, tenant)) {
            return b->tenants[i - 1].jobs;
        }
    }
    return 0;
}

static enum err tenant_idx_of(uint32_t *idx, struct backlog *b, const char *tenant) {
    uint32_t *chain = tenant_chain_of(b, tenant);
    for (uint32_t i = *chain; i; i = b->tenants[i - 1].next) {
        if (!strcmp(b->tenants[i - 1].name, tenant)) {
            *idx = i - 1;
            return OK;
        }
    }
    size_t at = 0;
    TRY(place_for_tenant(&at, b));
    struct tenant_view *t = &b->tenants[at];
    *t = (struct tenant_view){.next = *chain};
    snprintf(t->name, sizeof t->name, "%s", tenant);
    *chain = (uint32_t)at + 1;
    *idx = (uint32_t)at;
    return OK;
}

/* Start-time fair queueing: a tenant who had nothing waiting begins where the one served last stood, neither owed what others had while
 * it was away nor made to pay for lanes it took while nobody else wanted them. */
static void level_tenant(struct backlog *b, uint32_t tenant_idx) {
    if (b->served_ns[tenant_idx] < b->virtual_ns) {
        b->served_ns[tenant_idx] = b->virtual_ns;
    }
}

void backlog_charge(struct backlog *b, uint32_t tenant_idx, uint64_t cost_ns) {
    uint64_t *served_ns = &b->served_ns[tenant_idx];
    b->virtual_ns = *served_ns > b->virtual_ns ? *served_ns : b->virtual_ns;
    *served_ns += cost_ns;
}

/* --- Lines --- */

static size_t line_chain_of(uint8_t priority, uint32_t tenant_idx, uint32_t key_idx) {
    uint32_t words[3] = {priority, tenant_idx, key_idx};
    return hash_xxh64(bytes_of(words, sizeof words)) % LINE_CHAINS;
}

static struct backlog_line *line_new(struct backlog *b) {
    struct backlog_line *line = NULL;
    if (b->lines_count == b->lines_capacity) {
        struct schedule_line **lines = mem_grow(b->lines, 2 * b->lines_capacity * sizeof *lines);
        if (!lines) {
            return NULL;
        }
        b->lines = lines;
        b->lines_capacity *= 2;
    }
    return mem_new(&line, 1, sizeof *line) == OK ? line : NULL;
}

/* NULL without memory: the partition then waits for the job's next look. */
static struct schedule_line *line_for(struct backlog *b, const struct job_view *job) {
    size_t chain = line_chain_of(job->priority, job->tenant_idx, job->key_idx);
    for (struct backlog_line *l = b->line_chains[chain]; l; l = l->next) {
        if (l->line.priority == job->priority && l->line.tenant_idx == job->tenant_idx &&
            l->line.key_idx == job->key_idx) {
            return &l->line;
        }
    }
    struct backlog_line *line = line_new(b);
    if (!line) {
        return NULL;
    }
    *line = (struct backlog_line){
        .line = {.priority = job->priority, .tenant_idx = job->tenant_idx, .key_idx = job->key_idx},
        .at = b->lines_count,
        .next = b->line_chains[chain],
    };
    b->lines[b->lines_count++] = &line->line;
    b->line_chains[chain] = line;
    return &line->line;
}

static void line_drop(struct backlog *b, struct backlog_line *line) {
    struct backlog_line **link = &b->line_chains[line_chain_of(
        line->line.priority, line->line.tenant_idx, line->line.key_idx)];
    while (*link != line) {
        link = &(*link)->next;
    }
    *link = line->next;
    b->lines[line->at] = b->lines[--b->lines_count];
    ((struct backlog_line *)b->lines[line->at])->at = line->at;
    mem_free(line);
}

/* --- Timers --- */

static void sooner(uint64_t *at_ns, uint64_t than_ns, uint64_t now_ns) {
    if (than_ns > now_ns && than_ns < *at_ns) {
        *at_ns = than_ns;
    }
}

static void timer_set(struct backlog *b, struct job_view *job, uint64_t now_ns) {
    uint64_t at_ns = UINT64_MAX;
    sooner(&at_ns, job->deadline_ns, now_ns);
    sooner(&at_ns, job->aged_ns, now_ns);
    bool ends = job->used_up || backlog_is_expired(job, now_ns);
    for (uint32_t i = 0; i < job->parts_count; i++) {
        const struct part_view *part = &job->parts[i];
        if (part->state == JOB_QUEUED) {
            sooner(&at_ns, part->not_before_ns, now_ns);
            sooner(&at_ns, job->urgent_ns, now_ns);
            /* Its wait has just ended, and it is not in its line yet: the timer that would have put it there is the one set anew. */
            bool overdue = part->not_before_ns && part->not_before_ns <= now_ns && !part->item.line;
            at_ns = overdue && !ends ? now_ns : at_ns;
        }
    }
    timers_drop(&b->timers, job);
    if (at_ns != UINT64_MAX) {
        timers_put(&b->timers, job, at_ns);
    }
}

/* --- What is due --- */

void backlog_note_due(struct backlog *b, struct job_view *job) {
    if (!job->is_due) {
        job->is_due = true;
        job->due_previous = NULL;
        job->due_next = b->due;
        if (b->due) {
            b->due->due_previous = job;
        }
        b->due = job;
    }
}

void backlog_clear_due(struct backlog *b, struct job_view *job) {
    if (job->is_due) {
        *(job->due_previous ? &job->due_previous->due_next : &b->due) = job->due_next;
        if (job->due_next) {
            job->due_next->due_previous = job->due_previous;
        }
        job->is_due = false;
    }
}

/* --- Where a partition stands --- */

static void leave_line(struct backlog *b, struct part_view *part) {
    struct schedule_line *line = part->item.line;
    if (line) {
        schedule_line_take(&part->item);
        b->tenants[part->item.tenant_idx].waiting--;
        if (line->count == 0 && line != &b->urgent) {
            line_drop(b, (struct backlog_line *)line);
        }
    }
}

static void leave_lane(struct backlog *b, struct part_view *part, bool proved) {
    if (part->lane_idx != SIZE_MAX) {
        struct lane_view *v = &b->lanes->views[part->lane_idx];
        *(part->held_previous ? &part->held_previous->held_next : &v->held) = part->held_next;
        *(part->held_next ? &part->held_next->held_previous : &v->held_last) = part->held_previous;
        v->jobs_held--;
        v->full &= !proved;
        v->queued_ns -= part->cost_ns;
        v->slack_ns -= part->slack_ns;
        lanes_release_key(b->lanes, part->lane_idx, part->job->key_idx, proved);
        part->lane_idx = SIZE_MAX;
    }
}

static void count_waiting(struct backlog *b, const struct part_view *part, int change) {
    if (part->state == JOB_QUEUED) {
        b->waiting_count += (uint64_t)(int64_t)change;
        b->waiting_by_priority[part->job->priority] += (uint64_t)(int64_t)change;
    }
}

static void unfile(struct backlog *b, struct part_view *part, bool proved) {
    count_waiting(b, part, -1);
    leave_line(b, part);
    leave_lane(b, part, proved);
}

static void enter_lane(struct backlog *b, struct part_view *part, uint64_t now_ns) {
    size_t idx;
    if (lanes_add(&idx, b->lanes, &part->lane) != OK) {
        part->loss =
            PART_LOST; /* nobody has ever heard of it, and there is no room to wait for it */
        backlog_note_due(b, part->job);
        return;
    }
    struct lane_view *v = &b->lanes->views[idx];
    struct schedule_cost c = lanes_cost(b->lanes, idx, part->job->key_idx, now_ns);
    bool known = part->cost_ns || c.job_ns == SCHEDULE_NEVER;
    part->cost_ns = known ? part->cost_ns : c.job_ns;
    part->slack_ns = c.slack_ns;
    part->lane_idx = idx;
    part->held_next = NULL;
    part->held_previous = v->held_last;
    *(v->held_last ? &v->held_last->held_next : &v->held) = part;
    v->held_last = part;
    v->jobs_held++;
    v->queued_ns += part->cost_ns;
    v->slack_ns += part->slack_ns;
    lanes_hold_key(b->lanes, idx, part->job->key_idx);
}

static void enter_line(struct backlog *b, struct part_view *part, uint64_t now_ns) {
    const struct job_view *job = part->job;
    bool urgent = job->urgent_ns && job->urgent_ns <= now_ns;
    struct schedule_line *line = urgent ? &b->urgent : line_for(b, job);
    if (!line) { /* no memory: looked at again a little later */
        part->not_before_ns = now_ns + BACK_OFF_NS;
        return;
    }
    if (b->tenants[job->tenant_idx].waiting == 0) {
        level_tenant(b, job->tenant_idx);
    }
    b->tenants[job->tenant_idx].waiting++;
    part->item.rank = urgent ? job->deadline_ns : job->order;
    part->item.tenant_idx = job->tenant_idx;
    part->item.key_idx = job->key_idx;
    part->item.priority = job->priority;
    part->item.choosy = part->refused_count > 0;
    schedule_line_put(line, &part->item);
}

static void file(struct backlog *b, struct part_view *part, uint64_t now_ns) {
    const struct job_view *job = part->job;
    count_waiting(b, part, 1);
    if (part->state == JOB_QUEUED) {
        if (part->not_before_ns <= now_ns && !job->used_up && !backlog_is_expired(job, now_ns)) {
            enter_line(b, part, now_ns);
        }
    } else if (part->state == JOB_PLACED || part->state == JOB_RUNNING) {
        enter_lane(b, part, now_ns);
    }
}

/* --- Learning --- */

/* How long the lane has worked on it: from when it was through with the one before, or later began. */
static uint64_t spent_ns_of(const struct lane_view *v, const struct part_view *part,
                            uint64_t now_ns) {
    uint64_t since_ns = part->known_ns > v->last_ended_ns ? part->known_ns : v->last_ended_ns;
    return now_ns > since_ns ? now_ns - since_ns : 0;
}

/* It was proved on the lane that has it. */
static void learn(struct backlog *b, const struct part_view *part, uint64_t now_ns) {
    if (part->lane_idx == SIZE_MAX) {
        return;
    }
    struct lane_view *v = &b->lanes->views[part->lane_idx];
    const struct speed *s = &b->estimates->keys[part->job->key_idx].speeds[v->device_idx];
    uint64_t ns = spent_ns_of(v, part, now_ns);
    v->last_ended_ns = now_ns;
    if (!part->sent) {
        return; /* when it began is not known: it was there when this coordinator came */
    }
    if (!part->cost_has_load) {
        if (s->jobs >= LEARNED) {
            lanes_learn_pace(b->lanes, part->lane_idx, ns, s->job_ns);
        }
        estimates_learn_job(b->estimates, part->job->key_idx, v->device_idx, ns);
    } else if (s->jobs > 0) {
        estimates_learn_load(b->estimates, part->job->key_idx, v->device_idx,
                             ns > s->job_ns ? ns - s->job_ns : 0);
    }
}

/* --- Reading a record --- */

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

static void leave_counts(struct backlog *b, struct job_view *job) {
    if (job->counted) {
        b->tenants[job->tenant_idx].jobs--;
        estimates_key_unref(b->estimates, job->key_idx);
        job->counted = false;
    }
}

static enum err enter_counts(struct backlog *b, struct job_view *job, const job_message *m) {
    struct sha256 digest;
    memcpy(digest.b, m->key_digest.data, SHA256_BYTES);
    leave_counts(b, job);
    TRY(tenant_idx_of(&job->tenant_idx, b, job->tenant));
    TRY(estimates_key(&job->key_idx, b->estimates, &digest));
    b->tenants[job->tenant_idx].jobs++;
    estimates_key_ref(b->estimates, job->key_idx);
    job->counted = true;
    return OK;
}

/* From the wall to our own clock, once. */
static void read_deadline(struct job_view *job, const struct backlog *b, uint64_t deadline_unix_ms,
                          uint64_t now_ns) {
    uint64_t now_ms = clock_unix_ns() / 1000000, left_ns;
    job->deadline_ns = job->urgent_ns = 0;
    uint64_t left_ms = deadline_unix_ms > now_ms ? deadline_unix_ms - now_ms : 0;
    if (!deadline_unix_ms || __builtin_mul_overflow(left_ms, UINT64_C(1000000), &left_ns) ||
        __builtin_add_overflow(left_ns, now_ns, &left_ns)) {
        return;
    }
    job->deadline_ns = left_ns ? left_ns : 1;
    uint64_t before_ns = URGENT_BEFORE_NS + 3 * estimates_job_ns(b->estimates, job->key_idx, 0);
    job->urgent_ns = job->deadline_ns > before_ns ? job->deadline_ns - before_ns : 1;
}

/* Records are kept for so long after they were written last, bodies after they were stored: what is older would vanish without a result. */
static void read_age(struct job_view *job, const struct backlog *b, uint64_t queued_unix_ms,
                     uint64_t now_ns) {
    uint64_t now_ms = clock_unix_ns() / 1000000;
    uint64_t age_ms = now_ms > queued_unix_ms ? now_ms - queued_unix_ms : 0;
    uint64_t left_ms = b->age_max_ns / 1000000 > age_ms ? b->age_max_ns / 1000000 - age_ms : 0;
    job->aged_ns = now_ns + left_ms * 1000000;
}

/* What never changes within a generation. */
static enum err read_descriptor(struct job_view *job, struct backlog *b, const struct record *r,
                                uint64_t now_ns) {
    AUTO(message_free) job_message *m = NULL;
    struct part_view *parts = NULL;
    TRY(job_unpack(&m, bytes_of(r->job.ptr, r->job.len), NULL, UINT64_MAX));
    TRY(enter_counts(b, job, m));
    TRY(mem_new(&parts, r->parts_count, sizeof *parts));
    parts_free(job);
    job->parts = parts;
    job->parts_count = r->parts_count;
    for (uint32_t i = 0; i < r->parts_count; i++) {
        parts[i].job = job;
        parts[i].lane_idx = SIZE_MAX;
        parts[i].item.partition_idx = i;
    }
    mem_free(job->label);
    job->label = m->label[0] ? mem_strdup(m->label) : NULL;
    REQUIRE(job->label || !m->label[0], E_LIMIT, "no memory for a job's label");
    job->priority = (uint8_t)m->priority;
    job->arrived_ns = now_ns;
    read_deadline(job, b, m->deadline_unix_ms, now_ns);
    read_age(job, b, r->queued_unix_ms, now_ns);
    /* By age; the sequence only tells apart what came in the same millisecond. */
    job->order = r->queued_unix_ms << 20 | (b->sequence++ & 0xfffff);
    bodies_free(job);
    job->generation = r->generation;
    return read_bodies(job, m);
}

/* The lane gave it back; else its worker died. */
static bool is_refusal(const struct record_try *t) {
    return t->counted || t->code != E_DEVICE_LOST;
}

static enum err read_refusals(struct part_view *view, const struct record_part *part) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < part->tries_count; i++) {
        count += is_refusal(&part->tries[i]);
    }
    if (count == view->refused_count) {
        return OK; /* tries are only ever added */
    }
    struct lane_ref *refused = NULL;
    TRY(mem_new(&refused, count, sizeof *refused));
    mem_free(view->refused);
    view->refused = refused;
    view->refused_count = 0;
    for (uint32_t i = 0; i < part->tries_count; i++) {
        if (is_refusal(&part->tries[i])) {
            refused[view->refused_count++] = part->tries[i].lane;
        }
    }
    return OK;
}

/* A lane had no room for the key: others with no more memory will not have it either. */
static void note_unfit(struct backlog *b, const struct part_view *view,
                       const struct record_part *part, uint64_t now_ns) {
    const struct record_try *last = &part->tries[part->tries_count - 1];
    size_t idx = lanes_find(b->lanes, &last->lane);
    if (last->code == E_LIMIT && idx != SIZE_MAX && b->lanes->views[idx].memory_bytes) {
        const struct lane_view *v = &b->lanes->views[idx];
        estimates_unfit(b->estimates, view->job->key_idx, v->device_idx, v->memory_bytes, now_ns);
    }
}

static enum err read_part(struct backlog *b, struct part_view *view, const struct record_part *part,
                          uint64_t now_ns) {
    if (view->epoch == part->epoch && view->state == part->state) {
        return OK;
    }
    bool known = view->state != 0, proved = part->state == JOB_DONE;
    if (proved && known) {
        learn(b, view, now_ns);
    }
    if (known) {
        unfile(b, view, proved);
    }
    bool sent = view->sent && view->epoch == part->epoch;
    if (part->state == JOB_QUEUED || view->epoch != part->epoch) {
        view->cost_ns = 0;
        view->cost_has_load = false;
    }
    view->known_ns = now_ns;
    view->not_before_ns = 0;
    view->loss = PART_NOT_LOST;
    view->sent = sent;
    if (part->state == JOB_QUEUED && part->tries_count > 0) {
        unsigned shift = part->tries_count < 7 ? part->tries_count - 1 : 6;
        uint64_t wait_ns = BACK_OFF_NS << shift;
        view->not_before_ns =
            now_ns + (wait_ns < BACK_OFF_LONGEST_NS ? wait_ns : BACK_OFF_LONGEST_NS);
        note_unfit(b, view, part, now_ns);
    }
    view->state = part->state;
    view->epoch = part->epoch;
    view->lane = part->lane;
    enum err code = read_refusals(view, part);
    file(b, view, now_ns);
    return code;
}

static void keep_packed(struct backlog *b, struct job_view *job, struct bytes packed) {
    b->packed_bytes -= job->packed.len;
    packed_free(job);
    job->packed_bytes = packed.len;
    uint8_t *copy = NULL;
    if (packed.len > 0 && packed.len <= KEPT_RECORD_BYTES_MAX &&
        b->packed_bytes + packed.len <= KEPT_BYTES_MAX && mem_new_raw(&copy, packed.len, 1) == OK) {
        memcpy(copy, packed.ptr, packed.len);
        job->packed = (struct bytes_mut){copy, packed.len};
        b->packed_bytes += packed.len;
    }
}

void backlog_drop_record(struct backlog *b, struct job_view *job) {
    b->packed_bytes -= job->packed.len;
    packed_free(job);
}

static bool has_unsent(const struct job_view *job) {
    for (uint32_t i = 0; i < job->parts_count; i++) {
        if (job->parts[i].state == JOB_PLACED && !job->parts[i].sent) {
            return true;
        }
    }
    return false;
}

static void unfile_all(struct backlog *b, struct job_view *job, bool proved, uint64_t now_ns) {
    for (uint32_t i = 0; i < job->parts_count; i++) {
        if (proved) {
            learn(b, &job->parts[i], now_ns);
        }
        if (job->parts[i].state) {
            unfile(b, &job->parts[i], proved);
        }
        job->parts[i].state = 0;
    }
}

static enum err read_record(struct job_view *job, struct backlog *b, const struct record *r,
                            uint64_t revision, uint64_t now_ns) {
    if (job->generation != r->generation || !job->parts) {
        unfile_all(b, job, false, now_ns);
        TRY(read_descriptor(job, b, r, now_ns));
    }
    REQUIRE(job->parts_count == r->parts_count, E_FORMAT,
            "record %s.%s: the number of partitions changed from %u to %u", job->tenant, job->job,
            job->parts_count, r->parts_count);
    job->revision = revision;
    job->epoch = r->epoch;
    job->joining = record_all_parts_done(r);
    job->used_up = record_is_used_up(NULL, r, &b->limits);
    for (uint32_t i = 0; i < r->parts_count; i++) {
        TRY(read_part(b, &job->parts[i], &r->parts[i], now_ns));
    }
    for (uint32_t i = 0; i < r->parts_count && job->used_up; i++) {
        leave_line(b, &job->parts[i]); /* it will be ended */
    }
    timer_set(b, job, now_ns);
    if (job->joining || job->used_up || backlog_is_expired(job, now_ns) || has_unsent(job)) {
        backlog_note_due(b, job);
    }
    return OK;
}

/* --- Putting and removing --- */

static enum err grow(struct backlog *b) {
    size_t capacity = 2 * b->capacity;
    struct job_view **jobs = mem_grow(b->jobs, capacity * sizeof *jobs);
    REQUIRE(jobs, E_LIMIT, "no memory for %zu open jobs", capacity);
    b->jobs = jobs;
    struct job_view **timers = mem_grow(b->timers.jobs, capacity * sizeof *timers);
    REQUIRE(timers, E_LIMIT, "no memory for %zu open jobs", capacity);
    b->timers.jobs = timers;
    b->capacity = capacity;
    return OK;
}

static enum err add(struct job_view **out, struct backlog *b, struct job_name name) {
    REQUIRE(b->count < JOBS_OPEN_MAX, E_LIMIT, "more than %d open jobs", JOBS_OPEN_MAX);
    if (b->count == b->capacity) {
        TRY(grow(b));
    }
    struct job_view *job = NULL;
    TRY(mem_new(&job, 1, sizeof *job));
    snprintf(job->tenant, sizeof job->tenant, "%s", name.tenant);
    snprintf(job->job, sizeof job->job, "%s", name.job);
    job->timer_at = SIZE_MAX;
    size_t chain = chain_of(name);
    job->next = b->chains[chain];
    b->chains[chain] = job;
    job->at = b->count;
    b->jobs[b->count++] = job;
    *out = job;
    return OK;
}

enum err backlog_put(struct job_view **out, struct backlog *b, struct job_name name,
                     const struct record *record, struct bytes packed, uint64_t revision,
                     uint64_t now_ns) {
    struct job_view *job = backlog_find(b, name);
    bool is_new = !job;
    if (is_new) {
        enum err code = add(&job, b, name);
        b->incomplete |= code != OK;
        TRY(code);
    }
    if (is_new || revision > job->revision) {
        enum err code = read_record(job, b, record, revision, now_ns);
        if (code != OK) {
            b->incomplete = true;
            backlog_remove(b, job, false, now_ns);
            return code;
        }
        keep_packed(b, job, packed);
    }
    if (out) {
        *out = job;
    }
    return OK;
}

void backlog_remove(struct backlog *b, struct job_view *job, bool proved, uint64_t now_ns) {
    unfile_all(b, job, proved, now_ns);
    timers_drop(&b->timers, job);
    backlog_clear_due(b, job);
    leave_counts(b, job);
    b->packed_bytes -= job->packed.len;
    struct job_view **link = &b->chains[chain_of(job_name_of(job))];
    while (*link != job) {
        link = &(*link)->next;
    }
    *link = job->next;
    b->jobs[job->at] = b->jobs[--b->count];
    b->jobs[job->at]->at = job->at;
    view_free(&job);
}

void backlog_set_cost(struct backlog *b, struct part_view *part, uint64_t cost_ns, bool has_load) {
    if (part->lane_idx != SIZE_MAX) {
        struct lane_view *v = &b->lanes->views[part->lane_idx];
        v->queued_ns += cost_ns - part->cost_ns;
        part->cost_ns = cost_ns;
        part->cost_has_load = has_load;
    }
}

/* --- The clock, the lanes --- */

void backlog_advance(struct backlog *b, uint64_t now_ns) {
    while (b->timers.count > 0 && b->timers.jobs[0]->timer_ns <= now_ns) {
        struct job_view *job = b->timers.jobs[0];
        for (uint32_t i = 0; i < job->parts_count; i++) {
            if (job->parts[i].state == JOB_QUEUED) {
                unfile(b, &job->parts[i], false);
                file(b, &job->parts[i], now_ns);
            }
        }
        if (backlog_is_expired(job, now_ns)) {
            backlog_note_due(b, job);
        }
        timer_set(b, job, now_ns);
    }
}

static const struct part_view *first_running(const struct lane_view *v) {
    const struct part_view *part = v->held;
    while (part && part->state != JOB_RUNNING) {
        part = part->held_next;
    }
    return part;
}

/* A job that has outlived its estimate may go on for long: half as long as it took so far is the least to expect. */
uint64_t backlog_lane_left_ns(const struct backlog *b, size_t lane_idx, uint64_t now_ns) {
    const struct lane_view *v = &b->lanes->views[lane_idx];
    const struct part_view *running = first_running(v);
    if (!running) {
        return v->queued_ns;
    }
    uint64_t spent_ns = spent_ns_of(v, running, now_ns);
    uint64_t left_ns = running->cost_ns > spent_ns ? running->cost_ns - spent_ns : 0;
    left_ns = left_ns > spent_ns / 2 ? left_ns : spent_ns / 2;
    return v->queued_ns - running->cost_ns + left_ns;
}

bool backlog_lane_is_slow(const struct backlog *b, size_t lane_idx, uint64_t now_ns) {
    const struct lane_view *v = &b->lanes->views[lane_idx];
    const struct part_view *running = first_running(v);
    if (!running ||
        b->estimates->keys[running->job->key_idx].speeds[v->device_idx].jobs < LEARNED) {
        return false; /* a guess was wrong, not the lane slow */
    }
    return spent_ns_of(v, running, now_ns) > SLOW_LEAST_NS + SLOW_TIMES * running->cost_ns;
}

const struct part_view *backlog_lane_movable(const struct backlog *b, size_t lane_idx) {
    const struct part_view *part = b->lanes->views[lane_idx].held_last;
    while (part && (part->state != JOB_PLACED || !part->sent || part->loss != PART_NOT_LOST)) {
        part = part->held_previous;
    }
    return part;
}
