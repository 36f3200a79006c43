/* Multiples of the generators, batched, against the curve's own multiplication: every tier, both tables' sizes. */
#include "node/cpu/fixed.h"
#include "node/base/mem.h"
#include "node/cpu/cpu.h"
#include "node/cpu/tier.h"
#include "tests/check/check.h"

#include <string.h>

static const enum curve_id curves[] = {CURVE_BN254, CURVE_BLS12_381};

/* 0, 1, r - 1, powers of two and their neighbours, then any. */
static void draw(struct scalar *out, const struct curve *c, size_t i) {
    *out = (struct scalar){{0}};
    if (i < 2) {
        out->w[0] = i;
    } else if (i == 2) {
        c->scalar_sub(out, out, &(struct scalar){{1}});
    } else if (i < 300) {
        out->w[(i - 3) / 64 % 4] = UINT64_C(1) << (i - 3) % 64;
        out->w[3] &= UINT64_MAX >> 4;
    } else if (i % 7) {
        rng_fill(check_rng(), out, sizeof *out);
        out->w[3] &= UINT64_MAX >> 4;
    }
}

static void check_one(const struct curve *c, enum point_group g, const uint8_t *got,
                      const struct scalar *k, const char *tier, size_t i) {
    uint8_t want[G2_BYTES_MAX];
    struct g1 p;
    struct g2 q;
    if (g == GROUP_G1) {
        c->g1_mul(&p, &c->g1_generator, k);
        g1_store(want, c, &p);
    } else {
        c->g2_mul(&q, &c->g2_generator, k);
        g2_store(want, c, &q);
    }
    CHECK_MSG(!memcmp(want, got, curve_point_bytes(c, g)), "%s, %s, G%d: multiple %zu is wrong",
              c->name, tier, g == GROUP_G1 ? 1 : 2, i);
}

/* All of the first, some of the rest: the curve's own multiplication is slow. */
static void check_multiples(const struct curve *c, enum point_group g, const char *tier,
                            size_t count, uint64_t announced, struct pool *pool) {
    const struct cpu_ops *ops = NULL;
    AUTO(fixed_close) struct fixed *f = NULL;
    AUTO(mem_free_ptr) struct scalar *scalars = NULL;
    AUTO(mem_free_ptr) uint8_t *out = NULL;
    size_t bytes = curve_point_bytes(c, g);
    CHECK_OK(tier_find(&ops, c->id, tier));
    CHECK_OK(fixed_open(&f, ops, g, announced));
    CHECK_OK(mem_new(&scalars, count, sizeof *scalars));
    CHECK_OK(mem_new(&out, count, bytes));
    for (size_t i = 0; i < count; i++) {
        draw(&scalars[i], c, i);
    }
    CHECK_OK(fixed_multiply(out, f, scalars, count, pool));
    for (size_t i = 0; i < count; i += i < 310 ? 1 : 41) {
        check_one(c, g, out + i * bytes, &scalars[i], tier, i);
    }
}

static void claim_multiples(void) {
    AUTO(pool_close) struct pool *pool = NULL;
    CHECK_OK(pool_open(&pool, 2));
    for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
        for (size_t i = 0; i < COUNT_OF(curves); i++) {
            const struct curve *c = curve_by_id(curves[i]);
            check_multiples(c, GROUP_G1, *tier, 1100, 1, pool);
            check_multiples(c, GROUP_G2, *tier, 600, 1, pool);
            check_multiples(c, GROUP_G1, *tier, FIXED_BATCH, 1 << 20, pool);
        }
    }
    check_multiples(curve_by_id(CURVE_BN254), GROUP_G2, NULL, 1025, 1 << 20, pool);
    for (size_t count = 1; count < 4; count++) {
        check_multiples(curve_by_id(CURVE_BN254), GROUP_G1, NULL, count, 1, pool);
    }
}

static enum err open_and_close(void *ctx) {
    struct fixed *f = NULL;
    enum err code = fixed_open(&f, ctx, GROUP_G1, 1);
    fixed_close(&f);
    return code;
}

static void claim_allocations(void) {
    const struct cpu_ops *ops = NULL;
    CHECK_OK(tier_find(&ops, CURVE_BN254, NULL));
    CHECK_EQ(3, check_allocations(open_and_close, (void *)(uintptr_t)ops));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"batched multiples of both generators are the curve's own, in every tier",
         claim_multiples},
        {"fixed_open survives every failed allocation", claim_allocations},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
