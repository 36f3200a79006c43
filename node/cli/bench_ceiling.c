/* Each row opens connections of its own. A thread takes the next body of the list, which begins anew at its end, and looks at the clock between
 * chunks; so a row takes a second however many bodies there are.
 */
#include "node/cli/bench_ceiling.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "proto/job.h"

enum { FETCHERS = 8 };
static const unsigned row_links[CEILING_ROWS] = {1, 2, 4, 8};
static const uint64_t ROW_NS = UINT64_C(1000000000);
static const uint64_t RECORD_NS = UINT64_C(5000000000);
static const uint64_t LOOK_NS = UINT64_C(10000000);

struct body_ref {
    struct record_slot slot; /* owned */
    job_message *job;        /* owned */
    const Bellows__V1__Body *body;
};

struct measure {
    struct body_ref *bodies; /* owned */
    size_t bodies_count;
    struct bulk_links links; /* owned */
    uint64_t until_ns;
    _Atomic size_t next;
    _Atomic uint64_t bytes;
};

struct fetcher {
    struct measure *m; /* lent */
    unsigned idx;
    pthread_t thread;
    struct fault fault;
};

static void close_links(struct measure *m) {
    for (unsigned i = 0; i < m->links.count; i++) {
        transport_close(&m->links.links[i]);
    }
    m->links.count = 0;
}

static void measure_done(struct measure *m) {
    close_links(m);
    for (size_t i = 0; i < m->bodies_count; i++) {
        message_free(&m->bodies[i].job);
        record_slot_done(&m->bodies[i].slot);
    }
    mem_free(m->bodies);
}

/* The job's first body, once the coordinator has made its record; *in_bucket is false for one that came inline. */
static enum err find_body(struct body_ref *out, bool *in_bucket, const struct client *client,
                          const char *job) {
    struct job_place at = client_place(client, job);
    uint64_t start_ns = clock_ns();
    bool found = false;
    for (;;) {
        TRY(record_load(&out->slot, &found, &at));
        if (found) {
            break;
        }
        REQUIRE(clock_ns() - start_ns < RECORD_NS, E_TIMEOUT,
                "job %s was sent, and has no record within 5 s", job);
        clock_sleep_ns(LOOK_NS);
    }
    struct bytes packed = bytes_of(out->slot.record.job.ptr, out->slot.record.job.len);
    TRY(job_unpack(&out->job, packed, NULL, UINT64_MAX));
    out->body = out->job->partitions[0]->body;
    *in_bucket = out->body->place_case == BELLOWS__V1__BODY__PLACE_OBJECT;
    return OK;
}

static enum err find_bodies(struct measure *m, const struct client *client,
                            struct ceiling_jobs jobs) {
    unsigned count = jobs.count < CEILING_BODIES_MAX ? jobs.count : CEILING_BODIES_MAX;
    TRY(mem_new(&m->bodies, count, sizeof *m->bodies));
    for (unsigned i = 0; i < count; i++) {
        struct body_ref *b = &m->bodies[m->bodies_count++];
        char job[ID_BYTES_MAX + 1];
        bool in_bucket;
        snprintf(job, sizeof job, "%s-%u", jobs.prefix, i);
        TRY(find_body(b, &in_bucket, client, job));
        if (!in_bucket) {
            message_free(&b->job);
            record_slot_done(&b->slot);
            *b = (struct body_ref){0};
            m->bodies_count--;
        }
    }
    return OK;
}

static enum err read_body(struct measure *m, const struct body_ref *b, unsigned first) {
    AUTO(object_download_close) struct object_download *d = NULL;
    const Bellows__V1__ObjectRef *o = b->body->object;
    struct transport *links[OBJECT_LINKS_MAX];
    for (unsigned i = 0; i < m->links.count; i++) {
        links[i] = m->links.links[(first + i) % m->links.count];
    }
    struct object_download_options options = {.bucket = o->bucket,
                                              .nuid = o->nuid,
                                              .first_sequence = o->first_sequence,
                                              .steps = {o->chunk_steps, o->n_chunk_steps},
                                              .chunks_count = b->body->frames_count,
                                              .bytes = b->body->wire_bytes,
                                              .also = links + 1,
                                              .also_count = m->links.count - 1};
    TRY(object_download_open(&d, links[0], &options));
    for (bool end = false; !end && clock_ns() < m->until_ns;) {
        AUTO(message_done) struct message chunk = {0};
        TRY(object_download_next(&chunk, &end, d));
        atomic_fetch_add(&m->bytes, chunk.data.len);
    }
    return OK;
}

static void *read_main(void *ctx) {
    struct fetcher *r = ctx;
    struct measure *m = r->m;
    enum err code = OK;
    while (code == OK && clock_ns() < m->until_ns) {
        size_t idx = atomic_fetch_add(&m->next, 1) % m->bodies_count;
        code = read_body(m, &m->bodies[idx], r->idx);
    }
    r->fault = fault_of(code);
    return NULL;
}

static enum err measure_row(double *bytes_per_s, struct measure *m,
                            const struct transport_options *options, unsigned links_count) {
    struct fetcher fetchers[FETCHERS];
    unsigned started = 0;
    struct fault fault = {0};
    for (; m->links.count < links_count; m->links.count++) {
        TRY(transport_open(&m->links.links[m->links.count], options));
    }
    atomic_store(&m->bytes, 0);
    uint64_t start_ns = clock_ns();
    m->until_ns = start_ns + ROW_NS;
    for (; started < FETCHERS; started++) {
        fetchers[started] = (struct fetcher){.m = m, .idx = started};
        if (pthread_create(&fetchers[started].thread, NULL, read_main, &fetchers[started]) != 0) {
            fault = fault_of(err_set(E_LIMIT, "no thread to measure with"));
            break;
        }
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(fetchers[i].thread, NULL);
        fault = fault.code == OK ? fetchers[i].fault : fault;
    }
    *bytes_per_s = (double)atomic_load(&m->bytes) * 1e9 / (double)(clock_ns() - start_ns);
    close_links(m);
    return fault.code == OK ? OK : fault_raise(&fault);
}

FALLIBLE ceiling_measure(struct ceiling *out, const struct client *client,
                         const struct transport_options *options, struct ceiling_jobs jobs) {
    AUTO(measure_done) struct measure m = {0};
    struct ceiling c = {{0}};
    TRY(find_bodies(&m, client, jobs));
    for (size_t i = 0; i < CEILING_ROWS && m.bodies_count > 0; i++) {
        TRY(measure_row(&c.bytes_per_s[i], &m, options, row_links[i]));
    }
    *out = c;
    return OK;
}

double ceiling_best(const struct ceiling *c) {
    double best = 0;
    for (size_t i = 0; i < CEILING_ROWS; i++) {
        best = c->bytes_per_s[i] > best ? c->bytes_per_s[i] : best;
    }
    return best;
}

void ceiling_json(struct text *out, const struct ceiling *c) {
    for (size_t i = 0; i < CEILING_ROWS; i++) {
        text_addf(out, "%s\"%u\": %.3f", i ? ", " : "{", row_links[i], c->bytes_per_s[i] / 1e9);
    }
    text_add(out, "}");
}
