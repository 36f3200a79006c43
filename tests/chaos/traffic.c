/* The thread does one errand after the other; its errands are a function of the seed, when they come through is not. */
#include "tests/chaos/traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/hash.h"

#define SECOND UINT64_C(1000000000)
static const uint64_t PAUSE_NS = SECOND / 10;
static const uint64_t REQUEST_NS = 2 * SECOND;

static const struct {
    const char *name;
    unsigned weight;
} kinds[ERRANDS_COUNT] = {
    [ERRAND_PLAIN] = {"plain", 50},      [ERRAND_MANY] = {"many", 12},
    [ERRAND_UNSAT] = {"unsat", 6},       [ERRAND_BAD] = {"bad", 4},
    [ERRAND_DEADLINE] = {"deadline", 7}, [ERRAND_CANCEL] = {"cancel", 9},
    [ERRAND_TWICE] = {"twice", 7},       [ERRAND_TAKEN] = {"taken", 5},
};
static const char *const cases[] = {"bn128/mul",    "bls12381/mul-contrib", "bn128/unused",
                                    "bls12381/min", "bn128/nopub",          "bn128/chain200"};

const char *errand_name(enum errand_kind kind) {
    return kinds[kind].name;
}

static void draw(struct errand *e, struct traffic *t) {
    uint64_t all = 0, at;
    for (int i = 0; i < ERRANDS_COUNT; i++) {
        all += kinds[i].weight;
    }
    at = rng_below(&t->rng, all);
    int kind = 0;
    while (at >= kinds[kind].weight) {
        at -= kinds[kind++].weight;
    }
    *e = (struct errand){.kind = (enum errand_kind)kind, .parts_count = 1};
    snprintf(e->job, sizeof e->job, "%s-%zu", kinds[kind].name, t->errands_count);
    snprintf(e->tenant, sizeof e->tenant, "t%u", (unsigned)rng_below(&t->rng, TENANTS_COUNT));
    e->case_name = cases[rng_below(&t->rng, COUNT_OF(cases))];
    e->priority = (uint32_t)rng_below(&t->rng, JOB_PRIORITY_COUNT);
    e->as_object = rng_below(&t->rng, 3) == 0;
    if (kind == ERRAND_MANY) {
        e->parts_count = 2 + (uint32_t)rng_below(&t->rng, 5);
    } else if (kind == ERRAND_DEADLINE) {
        e->deadline_ms = 200 + rng_below(&t->rng, 2800);
    } else if (kind == ERRAND_UNSAT || kind == ERRAND_BAD) {
        e->case_name = "bn128/mul";
        e->witness =
            kind == ERRAND_UNSAT ? "bn128/bad/unsatisfied.wtns" : "bn128/chain200/witness.wtns";
    }
}

static uint64_t hash_of(const char *nuid) {
    return hash_xxh64(bytes_of(nuid, strlen(nuid)));
}

bool traffic_owns_body(const struct traffic *t, const char *nuid) {
    uint64_t hash = hash_of(nuid);
    for (size_t i = 0; i < t->nuids_count; i++) {
        if (t->nuids[i] == hash) {
            return true;
        }
    }
    return false;
}

static void note_bodies(struct traffic *t, char (*nuids)[64], uint32_t count) {
    for (uint32_t i = 0; i < count && t->nuids_count < NUIDS_MAX; i++) {
        t->nuids[t->nuids_count++] = hash_of(nuids[i]);
    }
}

/* False: given up. */
static bool send_until_taken(struct traffic *t, struct job_order *order) {
    const char *tail = strrchr(order->message_id, '.') + 1, *id = order->message_id;
    char mark[24], own_id[96], nuids[ERRAND_PARTS_MAX][64];
    order->nuids = nuids;
    for (unsigned n = 0; !atomic_load(&t->giving_up); n++) {
        snprintf(mark, sizeof mark, "%s-%u", tail, n);
        snprintf(own_id, sizeof own_id, "%s-%u", id, n);
        order->object_mark = mark;
        order->message_id = order->body_as_object ? own_id : id;
        enum err code = job_order_send(&t->user, order);
        if (code == OK) {
            note_bodies(t, nuids, order->body_as_object ? order->parts_count : 0);
            t->repeats_count += n;
            return true;
        }
        if (err_class(code) != CLASS_WORLD && err_class(code) != CLASS_BUSY) {
            t->fault = fault_of(code);
            return false;
        }
        clock_sleep_ns(PAUSE_NS);
    }
    return false;
}

static bool send_errand(struct traffic *t, const struct errand *e, const char *case_name,
                        uint64_t generation, const char *message_tail) {
    char id[64];
    snprintf(id, sizeof id, "%s.%s.%s", e->tenant, e->job, message_tail);
    struct job_order order = {.case_name = case_name,
                              .witness = e->witness,
                              .job_id = e->job,
                              .tenant = e->tenant,
                              .message_id = id,
                              .parts_count = e->parts_count,
                              .generation = generation,
                              .priority = e->priority,
                              .deadline_ms = e->deadline_ms,
                              .body_as_object = e->as_object};
    return send_until_taken(t, &order);
}

/* The exit code of `bellows cancel`; -1: it did not come to an end. Not through the wire: an operator's machine is sound. */
static int cancel(const struct traffic *t, const struct errand *e) {
    char tenant[32], log[300], server[128];
    struct child child = {0};
    struct child_end end = {.exit_code = -1};
    bool ended = false;
    snprintf(tenant, sizeof tenant, "--tenant=%s", e->tenant);
    snprintf(log, sizeof log, "%s/cancels.out", t->dir);
    snprintf(server, sizeof server, "BELLOWS_SERVER=%s", t->direct_url);
    const char *argv[] = {host_program(), "cancel", e->job, tenant, NULL};
    if (child_start(&child, &(struct child_options){
                                .argv = argv, .log_path = log, .env = {server}}) != OK) {
        return -1;
    }
    for (int n = 0; n < 3000 && !ended; n++) {
        clock_sleep_ns(SECOND / 100);
        child_poll(&ended, &end, &child);
    }
    child_stop(&child, 0);
    return end.exit_code;
}

static void run_errand(struct traffic *t, struct errand *e) {
    e->generation = send_errand(t, e, e->case_name, 1, "1") ? 1 : 0;
    if (!e->generation) {
        return;
    }
    switch (e->kind) {
    case ERRAND_TWICE:
        send_errand(t, e, e->case_name, 1, "1b");
        break;
    case ERRAND_TAKEN:
        e->other_case = e->case_name == cases[0] ? cases[1] : cases[0];
        send_errand(t, e, e->other_case, 1, "1c");
        break;
    case ERRAND_CANCEL:
        clock_sleep_ns(rng_below(&t->rng, SECOND * 4 / 10));
        e->cancel_confirmed = cancel(t, e) == 0;
        if (rng_below(&t->rng, 2) == 0 && e->cancel_confirmed &&
            send_errand(t, e, e->case_name, 2, "2")) {
            e->generation = 2;
        }
        break;
    default:
        break;
    }
}

static void *traffic_main(void *ctx) {
    struct traffic *t = ctx;
    struct transport_options options = {
        .url = t->url, .open_wait_ns = 20 * SECOND, .request_wait_ns = REQUEST_NS};
    enum err code = subject_space_init(&t->user.space, NULL);
    if (code == OK) {
        code = transport_open(&t->user.link, &options);
    }
    if (code != OK) {
        t->fault = fault_of(code);
        return NULL;
    }
    uint64_t next_ns = clock_ns();
    while (!atomic_load(&t->stopping) && t->errands_count < ERRAND_LIMIT && t->fault.code == OK) {
        struct errand *e = &t->errands[t->errands_count];
        draw(e, t);
        run_errand(t, e);
        t->errands_count++;
        next_ns += (uint64_t)(1e9 / t->jobs_per_second);
        uint64_t now_ns = clock_ns();
        if (next_ns > now_ns) {
            clock_sleep_ns(next_ns - now_ns);
        } else if (now_ns - next_ns > SECOND) {
            next_ns = now_ns - SECOND; /* an outage is caught up with in a burst, not for ever */
        }
    }
    transport_close(&t->user.link);
    return NULL;
}

void traffic_start(struct traffic *t, const struct host *h, const char *url, uint64_t seed,
                   double jobs_per_second) {
    t->rng = rng_seeded(seed);
    t->jobs_per_second = jobs_per_second;
    snprintf(t->url, sizeof t->url, "%s", url);
    snprintf(t->direct_url, sizeof t->direct_url, "%s", h->server.url);
    snprintf(t->dir, sizeof t->dir, "%s", h->dir);
    int rc = pthread_create(&t->thread, NULL, traffic_main, t);
    CHECK_MSG(rc == 0, "no thread for the submitter: %s", strerror(rc));
}

void traffic_stop(struct traffic *t, uint64_t wait_ns) {
    struct timespec until = clock_wait_until(wait_ns);
    atomic_store(&t->stopping, true);
    if (pthread_clockjoin_np(t->thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
        atomic_store(&t->giving_up, true);
        pthread_join(t->thread, NULL);
    }
}
