/* One request a store, none of them under the lock. A store that does not answer keeps its last figure. */
#include "node/coordinator/stores.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"

static const uint64_t PACE_NS = UINT64_C(10000000000);

struct stores {
    struct transport *transport; /* lent */
    struct subject_space space;
    struct metric_block *metrics; /* lent */
    struct lock lock;
    struct condition changed;
    char tenants[STORES_TENANTS_MAX][ID_BYTES_MAX + 1]; /* [lock] only ever more */
    size_t tenants_count;                               /* [lock] */
    bool stopping;                                      /* [lock] */
    pthread_t thread;
    bool thread_runs;
};

struct figure {
    uint64_t used_bytes, limit_bytes;
    bool unlimited, failed;
};

static void add_stream(struct figure *f, const struct stores *s, const char *name) {
    struct stream_info info;
    if (stream_info(&info, s->transport, name) != OK) {
        f->failed = true;
        return;
    }
    f->used_bytes += info.bytes;
    f->limit_bytes += info.bytes_max;
    f->unlimited |= info.bytes_max == 0;
}

static void show(const struct stores *s, int store, const struct figure *f) {
    if (!f->failed) {
        metric_set(s->metrics, METRIC_STORE_USED, store, f->used_bytes);
        metric_set(s->metrics, METRIC_STORE_LIMIT, store,
                   f->unlimited ? METRIC_UNKNOWN : f->limit_bytes);
    }
}

static void look(struct stores *s, size_t tenants_count) {
    struct figure jobs = {0}, keys = {0}, bodies = {0};
    char name[SUBJECT_BYTES_MAX + 8];
    struct subject stream = stream_name(&s->space, "JOBS"), bucket = bucket_keys(&s->space);
    add_stream(&jobs, s, stream.text);
    show(s, METRIC_STORE_JOBS, &jobs);
    snprintf(name, sizeof name, "OBJ_%s", bucket.text);
    add_stream(&keys, s, name);
    show(s, METRIC_STORE_KEYS, &keys);
    for (size_t i = 0; i < tenants_count; i++) { /* names below the count do not change any more */
        struct figure one = {0};
        bucket = bucket_in(&s->space, s->tenants[i]);
        snprintf(name, sizeof name, "OBJ_%s", bucket.text);
        add_stream(&one, s, name);
        if (!one.failed) { /* a tenant whose bodies all rode inside their jobs may have no bucket */
            bodies.used_bytes += one.used_bytes;
            bodies.limit_bytes += one.limit_bytes;
            bodies.unlimited |= one.unlimited;
        }
    }
    show(s, METRIC_STORE_BODIES, &bodies);
}

static void *stores_main(void *ctx) {
    struct stores *s = ctx;
    for (;;) {
        lock_take(&s->lock);
        size_t count = s->tenants_count;
        bool stopping = s->stopping;
        lock_give(&s->lock);
        if (stopping) {
            return NULL;
        }
        look(s, count);
        struct timespec until = clock_wait_until(PACE_NS);
        LOCK_SCOPE(&s->lock);
        while (!s->stopping && s->tenants_count == count &&
               condition_wait_until(&s->changed, &s->lock, &until)) {
        }
    }
}

enum err stores_open(struct stores **out, struct transport *t, const struct subject_space *space,
                     struct metric_block *metrics) {
    AUTO(stores_close) struct stores *s = NULL;
    TRY(mem_new(&s, 1, sizeof *s));
    lock_init(&s->lock, LOCK_TELEMETRY);
    condition_init(&s->changed);
    s->transport = t;
    s->space = *space;
    s->metrics = metrics;
    int rc = pthread_create(&s->thread, NULL, stores_main, s);
    REQUIRE(rc == 0, E_LIMIT, "no thread to look at the stores: %s", strerror(rc));
    s->thread_runs = true;
    *out = TAKE(s);
    return OK;
}

void stores_close(struct stores **stores) {
    struct stores *s = *stores;
    if (!s) {
        return;
    }
    lock_take(&s->lock);
    s->stopping = true;
    condition_wake_all(&s->changed);
    lock_give(&s->lock);
    if (s->thread_runs) {
        pthread_join(s->thread, NULL);
    }
    condition_done(&s->changed);
    lock_done(&s->lock);
    mem_free_ptr(stores);
}

void stores_note(struct stores *s, const char *tenant) {
    LOCK_SCOPE(&s->lock);
    for (size_t i = 0; i < s->tenants_count; i++) {
        if (!strcmp(s->tenants[i], tenant)) {
            return;
        }
    }
    if (s->tenants_count < STORES_TENANTS_MAX) {
        snprintf(s->tenants[s->tenants_count++], sizeof s->tenants[0], "%s", tenant);
        condition_wake_all(&s->changed);
    }
}
