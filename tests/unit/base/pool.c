/* Every index once, whatever the count, the threads and the nesting. */
#include "node/base/pool.h"
#include "tests/check/check.h"

#include <stdatomic.h>
#include <string.h>

enum { COUNT_MAX = 100000 };

static atomic_int hits[COUNT_MAX];
static atomic_int bad_workers_count;

struct run {
    struct pool *pool;
    size_t inner_count;
    atomic_size_t inner_hits;
};

static void hit(void *ctx, size_t idx, unsigned worker_idx) {
    const struct run *run = ctx;
    bad_workers_count += worker_idx >= pool_threads_count(run->pool);
    atomic_fetch_add_explicit(&hits[idx], 1, memory_order_relaxed);
}

static void check_once(struct run *run, size_t count) {
    memset(hits, 0, sizeof hits);
    pool_for(run->pool, count, hit, run);
    for (size_t i = 0; i < COUNT_MAX; i++) {
        CHECK_MSG(hits[i] == (i < count), "count %zu: index %zu ran %d times", count, i,
                  atomic_load(&hits[i]));
    }
}

static void claim_once(void) {
    static const size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 1000, COUNT_MAX};
    for (unsigned threads = 1; threads <= 8; threads++) {
        AUTO(pool_close) struct pool *p = NULL;
        CHECK_OK(pool_open(&p, threads));
        CHECK_EQ(threads, pool_threads_count(p));
        struct run run = {.pool = p};
        for (size_t i = 0; i < COUNT_OF(counts); i++) {
            check_once(&run, counts[i]);
        }
    }
    CHECK_EQ(0, atomic_load(&bad_workers_count));
}

static void count_one(void *ctx, size_t idx, unsigned worker_idx) {
    (void)worker_idx;
    atomic_fetch_add((atomic_size_t *)ctx, idx + 1);
}

static void claim_rapid(void) {
    AUTO(pool_close) struct pool *p = NULL;
    CHECK_OK(pool_open(&p, 3));
    for (int round = 0; round < 20000; round++) {
        atomic_size_t sum = 0;
        pool_for(p, 5, count_one, &sum);
        CHECK_EQ(15, atomic_load(&sum));
    }
}

static unsigned outer_idx_seen[64];

static void inner(void *ctx, size_t idx, unsigned worker_idx) {
    struct run *run = ctx;
    (void)idx;
    bad_workers_count += worker_idx >= pool_threads_count(run->pool);
    outer_idx_seen[worker_idx]++; /* not atomic: two tasks with one worker index must not overlap */
    atomic_fetch_add(&run->inner_hits, 1);
}

static void outer(void *ctx, size_t idx, unsigned worker_idx) {
    struct run *run = ctx;
    (void)idx;
    (void)worker_idx;
    pool_for(run->pool, run->inner_count, inner, run);
}

static void claim_nested(void) {
    AUTO(pool_close) struct pool *p = NULL;
    CHECK_OK(pool_open(&p, 4));
    struct run run = {.pool = p, .inner_count = 50};
    memset(outer_idx_seen, 0, sizeof outer_idx_seen);
    pool_for(p, 40, outer, &run);
    CHECK_EQ(2000, atomic_load(&run.inner_hits));
    unsigned seen = 0;
    for (size_t i = 0; i < COUNT_OF(outer_idx_seen); i++) {
        seen += outer_idx_seen[i];
    }
    CHECK_EQ(2000, seen);
    pool_for(p, 1, outer, &run); /* a job of one runs inline, and so does what it starts */
    CHECK_EQ(2050, atomic_load(&run.inner_hits));
    CHECK_EQ(0, atomic_load(&bad_workers_count));
}

static void note_order(void *ctx, size_t idx, unsigned worker_idx) {
    CHECK_EQ(0, worker_idx);
    CHECK_EQ(idx, (*(size_t *)ctx)++);
}

static void claim_no_pool(void) {
    size_t next = 0;
    pool_for(NULL, 5, note_order, &next);
    CHECK_EQ(5, next);
}

static void claim_limits(void) {
    struct pool *p = NULL;
    CHECK_ERR(E_RANGE, pool_open(&p, 100000));
    CHECK(!p);
    CHECK(pool_cores_usable() >= 1);
    CHECK_OK(pool_open(&p, 0));
    CHECK_EQ(pool_cores_usable(), pool_threads_count(p));
    pool_close(&p);
    CHECK(!p);
    pool_close(&p);
}

static enum err open_pool(void *ctx) {
    (void)ctx;
    AUTO(pool_close) struct pool *p = NULL;
    return pool_open(&p, 3);
}

static void claim_allocation(void) {
    CHECK_EQ(2, check_allocations(open_pool, NULL));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"pool_for runs every index exactly once", claim_once},
        {"twenty thousand small jobs in a row lose nothing", claim_rapid},
        {"a task that calls pool_for runs it inline under its own worker index", claim_nested},
        {"without a pool the caller runs them in order", claim_no_pool},
        {"zero threads means the usable cores; too many are refused", claim_limits},
        {"a failed allocation is E_LIMIT and starts no thread", claim_allocation},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
