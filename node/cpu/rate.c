/* One task a thread, all of the same length; the wall time of the slowest counts, as it does for every operation. A first,
 * short run finds how many rounds fill the time; the best of the others is the ceiling, as anything slower was disturbed.
 */
#include "node/cpu/rate.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/cpu/quotient.h"

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

enum err rate_transforms(uint64_t *ns, size_t count, const struct cpu_ops *ops, unsigned log2,
                         struct pool *pool) {
    enum { SEED = 17, TOP_BITS_OFF = 4 /* below r on both curves */ };
    static const _Atomic int never;
    AUTO(mem_free_ptr) void *tables = NULL, *vector = NULL;
    struct domain domain;
    const struct ntt_body *body = ops->domain->body(log2);
    const struct ntt ntt = {.domain = &domain, .body = body, .pool = pool, .cancel = &never};
    struct rng rng = rng_seeded(SEED);
    TRY(mem_new_raw(&tables, ops->domain->tables_bytes(log2), 1));
    TRY(mem_new_raw(&vector, ntt_vector_bytes(body, log2), 1));
    ops->domain->build(&domain, tables, log2, H_COSET_LAGRANGE, pool);
    for (size_t run = 0; run < count; run++) {
        uint64_t *rows = ntt_rows(body, vector, log2);
        rng_fill(&rng, rows, SCALAR_BYTES << log2);
        for (size_t i = 0; i < (size_t)1 << log2; i++) {
            rows[4 * i + 3] >>= TOP_BITS_OFF;
        }
        REQUIRE(ntt_enter(&ntt, &vector, 1), E_CANCELLED, "cancelled");
        uint64_t start_ns = clock_ns();
        REQUIRE(ntt_dif(&ntt, &vector, 1, false), E_CANCELLED, "cancelled");
        ns[run] = clock_ns() - start_ns;
    }
    return OK;
}
