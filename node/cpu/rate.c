/* One task a thread, all of the same length; the wall time of the slowest counts, as it does for every operation. A first,
 * short run finds how many rounds fill the time; the best of the others is the ceiling, as anything slower was disturbed.
 */
#include "node/cpu/rate.h"

#include "node/base/clock.h"

#include <stdatomic.h>

struct chains {
    uint64_t (*run)(uint64_t rounds);
    uint64_t rounds;
    _Atomic uint64_t sink; /* keeps the products from being dropped */
};

static void run_chain(void *ctx, size_t idx, unsigned worker) {
    struct chains *c = ctx;
    (void)idx;
    (void)worker;
    atomic_fetch_add(&c->sink, c->run(c->rounds));
}

static double measure(uint64_t (*run)(uint64_t), unsigned products, struct pool *pool) {
    static const uint64_t FIRST_ROUNDS = 2000, WANT_NS = 5000000;
    enum { PASSES = 5 };
    struct chains c = {.run = run, .rounds = FIRST_ROUNDS};
    unsigned threads = pool_threads_count(pool);
    double best = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t start_ns = clock_ns();
        pool_for(pool, threads, run_chain, &c);
        uint64_t took_ns = clock_ns() - start_ns + 1;
        double rate = (double)c.rounds * products * threads / (double)took_ns * 1e9;
        best = rate > best ? rate : best;
        c.rounds = pass == 0 ? FIRST_ROUNDS * WANT_NS / took_ns + 1 : c.rounds;
    }
    return best;
}

void rate_measure(struct rates *out, const struct cpu_ops *ops, struct pool *pool) {
    const struct rate_ops *r = ops->rate;
    *out = (struct rates){measure(r->fp, r->products, pool), measure(r->fr, r->products, pool)};
}
