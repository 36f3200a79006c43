/* Sums over both groups of both curves, in every tier this processor has, against plain references. */
#include "node/cpu/msm.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/cpu/cpu.h"
#include "node/cpu/tier.h"
#include "tests/unit/cpu/sample.h"

#include <stdio.h>
#include <string.h>

static const enum curve_id curve_ids[] = {CURVE_BN254, CURVE_BLS12_381};
enum { CANARY_BYTES = 64, CANARY = 0x5a };

static _Atomic int never;

static struct msm_item item_of(const struct sample *s, size_t count, uint64_t *out) {
    return (struct msm_item){.group = s->group,
                             .source = {s->points, s->scalars, count},
                             .nonzero_count = count,
                             .wide_count = count,
                             .out = out};
}

/* Runs with a workspace of exactly the planned size and checks the bytes behind it. */
static enum err run(struct msm_item *items, size_t count, const struct cpu_ops *ops,
                    struct pool *pool, struct msm_options options, const _Atomic int *cancel) {
    struct msm_shape shapes[MSM_ITEMS_MAX];
    for (size_t i = 0; i < count; i++) {
        shapes[i] = (struct msm_shape){items[i].group, items[i].source.count};
    }
    size_t bytes = msm_workspace_bytes(ops, shapes, count, pool_threads_count(pool), options);
    uint8_t *workspace = mem_alloc(bytes + CANARY_BYTES);
    CHECK(workspace);
    memset(workspace + bytes, CANARY, CANARY_BYTES);
    const struct msm_watch watch = {.cancel = cancel};
    enum err e = msm_run(items, ops, shapes, count, pool, options,
                         (struct bytes_mut){workspace, bytes}, &watch);
    for (size_t i = 0; i < CANARY_BYTES; i++) {
        CHECK_MSG(workspace[bytes + i] == CANARY, "wrote past a workspace of %zu bytes", bytes);
    }
    mem_free(workspace);
    return e;
}

static void expect(const struct sample *s, size_t count, const struct cpu_ops *ops,
                   struct pool *pool, struct msm_options options, const uint64_t *want,
                   const char *what) {
    uint64_t got[4 * FP_LIMBS_MAX];
    memset(got, 0xee, sizeof got);
    struct msm_item item = item_of(s, count, got);
    CHECK_OK(run(&item, 1, ops, pool, options, &never));
    CHECK_MSG(memcmp(got, want, s->point_bytes) == 0,
              "%s G%d, %s, %zu points, %s, window %u, chunk %u, %u threads: wrong sum",
              s->curve->name, s->group == GROUP_G1 ? 1 : 2, ops->tier, count, what,
              options.window_bits, options.chunk_max, pool_threads_count(pool));
}

static void each_tier(const struct sample *s, size_t count, struct pool *pool,
                      struct msm_options options, const uint64_t *want, const char *what) {
    for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
        const struct cpu_ops *ops = NULL;
        CHECK_OK(tier_find(&ops, s->curve->id, *tier));
        expect(s, count, ops, pool, options, want, what);
    }
}

/* Calls `body` for both groups of both curves. */
static void each_group(size_t count, void (*body)(struct sample *s, struct pool *pool),
                       unsigned threads) {
    struct pool *pool = NULL;
    CHECK_OK(pool_open(&pool, threads));
    for (size_t c = 0; c < COUNT_OF(curve_ids); c++) {
        for (int g = 0; g < 2; g++) {
            struct sample s;
            sample_new(&s, curve_by_id(curve_ids[c]), (enum point_group)g, count);
            body(&s, pool);
            sample_free(&s);
        }
    }
    pool_close(&pool);
}

static void small_counts(struct sample *s, struct pool *pool) {
    for (size_t count = 0; count <= s->count; count++) {
        uint64_t want[4 * FP_LIMBS_MAX], also[4 * FP_LIMBS_MAX];
        sample_set_bases(s, count % 2 ? BASES_MIXED : BASES_DISTINCT);
        sample_set_scalars(s, count % 3 ? SCALARS_FULL : SCALARS_EXTREMES);
        sample_sum_plain(want, s, count);
        sample_sum(also, s, count);
        CHECK_MEM(want, also, s->point_bytes);
        each_tier(s, count, pool, (struct msm_options){0}, want, "few");
    }
}
static void claim_double_and_add(void) {
    each_group(20, small_counts, 1);
}

static void kinds(struct sample *s, struct pool *pool) {
    for (int b = 0; b < BASES_KINDS; b++) {
        sample_set_bases(s, (enum sample_bases)b);
        for (int k = 0; k < SCALARS_KINDS; k++) {
            static const size_t counts[] = {1, 7, 100, 1500};
            uint64_t want[4 * FP_LIMBS_MAX];
            char what[64];
            size_t count = counts[rng_below(check_rng(), COUNT_OF(counts))];
            struct msm_options options = {0};
            if (rng_u64(check_rng()) & 1) {
                options.window_bits = 4 + (unsigned)rng_below(check_rng(), 9);
                options.chunk_max = rng_u64(check_rng()) & 1 ? 64 : 0;
            }
            sample_set_scalars(s, (enum sample_scalars)k);
            sample_sum(want, s, count);
            snprintf(what, sizeof what, "bases %d, scalars %d", b, k);
            each_tier(s, count, pool, options, want, what);
        }
    }
}
static void claim_kinds_one_thread(void) {
    each_group(1500, kinds, 1);
}
static void claim_kinds_threads(void) {
    each_group(1500, kinds, 3);
}

static void windows(struct sample *s, struct pool *pool) {
    uint64_t want[4 * FP_LIMBS_MAX];
    sample_set_bases(s, BASES_MIXED);
    sample_set_scalars(s, SCALARS_EXTREMES);
    sample_sum(want, s, s->count);
    for (unsigned bits = MSM_BITS_MIN; bits <= MSM_BITS_MAX; bits++) {
        each_tier(s, s->count, pool, (struct msm_options){.window_bits = bits}, want, "windows");
    }
}
static void claim_windows(void) {
    each_group(300, windows, 2);
}

static void chunks(struct sample *s, struct pool *pool) {
    uint64_t want[4 * FP_LIMBS_MAX];
    sample_set_scalars(s, SCALARS_MIXED);
    for (uint32_t chunk = 8; chunk <= 1024; chunk *= 2) {
        for (size_t count = chunk - 1; count <= chunk + 1 && count <= s->count; count++) {
            sample_sum(want, s, count);
            each_tier(s, count, pool, (struct msm_options){.chunk_max = chunk}, want, "chunks");
        }
    }
    sample_set_scalars(s, SCALARS_FULL);
    sample_sum(want, s, s->count);
    each_tier(s, s->count, pool, (struct msm_options){.chunk_max = 8}, want, "chunks");
}
static void claim_chunks(void) {
    each_group(1100, chunks, 2);
}

static void large(struct sample *s, struct pool *pool) {
    static const enum sample_scalars of_interest[] = {SCALARS_FULL, SCALARS_SAME, SCALARS_MIXED};
    for (size_t k = 0; k < COUNT_OF(of_interest); k++) {
        uint64_t want[4 * FP_LIMBS_MAX];
        sample_set_scalars(s, of_interest[k]);
        sample_sum(want, s, s->count);
        each_tier(s, s->count, pool, (struct msm_options){0}, want, "many");
    }
}
static void claim_large(void) {
    each_group(40000, large, 2);
}

/* Five sums of different sizes and kinds at once, as in a proof, by 1, 2, 7 and 40 threads. */
static void claim_together(void) {
    static const size_t counts[] = {900, 900, 900, 880, 1024};
    for (size_t c = 0; c < COUNT_OF(curve_ids); c++) {
        struct sample s[5];
        uint64_t want[5][4 * FP_LIMBS_MAX], got[5][4 * FP_LIMBS_MAX];
        for (size_t i = 0; i < 5; i++) {
            sample_new(&s[i], curve_by_id(curve_ids[c]), i == 2 ? GROUP_G2 : GROUP_G1, counts[i]);
            sample_set_bases(&s[i], i == 1 || i == 2 ? BASES_SPARSE : BASES_DISTINCT);
            sample_set_scalars(&s[i], i == 4   ? SCALARS_FULL
                                      : i == 3 ? SCALARS_ZERO
                                               : SCALARS_MIXED);
            sample_sum(want[i], &s[i], counts[i]);
        }
        static const unsigned counts_of_threads[] = {1, 2, 7, 40};
        for (size_t t = 0; t < COUNT_OF(counts_of_threads); t++) {
            const unsigned threads = counts_of_threads[t];
            struct pool *pool = NULL;
            CHECK_OK(pool_open(&pool, threads));
            for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
                const struct cpu_ops *ops = NULL;
                struct msm_item items[5];
                CHECK_OK(tier_find(&ops, curve_ids[c], *tier));
                for (size_t i = 0; i < 5; i++) {
                    memset(got[i], 0xee, sizeof got[i]);
                    items[i] = item_of(&s[i], counts[i], got[i]);
                }
                CHECK_OK(run(items, 5, ops, pool, (struct msm_options){.chunk_max = 128}, &never));
                for (size_t i = 0; i < 5; i++) {
                    CHECK_MEM(want[i], got[i], s[i].point_bytes);
                    CHECK(items[i].busy_ns > 0);
                }
            }
            pool_close(&pool);
        }
        for (size_t i = 0; i < 5; i++) {
            sample_free(&s[i]);
        }
    }
}

/* Coordinates at the edges of the field, where lazy reduction would slip: such points lie on no common curve, so there is
 * no right sum, but the same additions in the same order must give the same bytes in every tier. */
static void edges(struct sample *s, struct pool *pool) {
    const struct curve *c = s->curve;
    for (size_t i = 0; i < s->count; i++) {
        for (size_t k = 0; k < s->point_bytes / c->fp_bytes; k++) {
            /* Just below p, which is odd and has a large lowest word; or just above 0. All different, or nearly. */
            uint64_t x[FP_LIMBS_MAX] = {0}, distance = 1 + rng_below(check_rng(), 1 << 24);
            if (rng_below(check_rng(), 4)) {
                memcpy(x, c->p, c->fp_bytes);
                x[0] -= distance;
            } else {
                x[0] = distance;
            }
            memcpy(s->points + i * s->point_bytes + k * c->fp_bytes, x, c->fp_bytes);
        }
    }
    sample_set_scalars(s, SCALARS_FULL);
    uint64_t first[4 * FP_LIMBS_MAX] = {0};
    for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
        const struct cpu_ops *ops = NULL;
        uint64_t got[4 * FP_LIMBS_MAX];
        struct msm_item item = item_of(s, s->count, got);
        CHECK_OK(tier_find(&ops, c->id, *tier));
        CHECK_OK(run(&item, 1, ops, pool, (struct msm_options){0}, &never));
        if (tier == cpu_tiers_usable()) {
            memcpy(first, got, s->point_bytes);
        }
        CHECK_MSG(!memcmp(first, got, s->point_bytes), "%s, %s differs from %s", c->name, *tier,
                  cpu_tiers_usable()[0]);
    }
}
static void claim_edges(void) {
    each_group(700, edges, 2);
}

/* More elements than one chunk is looked for in, nearly all of them nothing. */
static void claim_sparse(void) {
    const size_t count = (1 << 20) + 5000, few = 4;
    struct sample s;
    struct pool *pool = NULL;
    uint8_t *points = NULL, *scalars = NULL;
    uint64_t want[4 * FP_LIMBS_MAX], got[4 * FP_LIMBS_MAX];
    CHECK_OK(pool_open(&pool, 2));
    sample_new(&s, curve_by_id(CURVE_BN254), GROUP_G1, few);
    sample_set_scalars(&s, SCALARS_FULL);
    sample_sum(want, &s, few);
    CHECK_OK(mem_new(&points, count, s.point_bytes));
    CHECK_OK(mem_new(&scalars, count, SCALAR_BYTES));
    static const size_t places[] = {0, (1 << 20) - 1, 1 << 20, (1 << 20) + 4999};
    for (size_t i = 0; i < few; i++) {
        memcpy(points + places[i] * s.point_bytes, s.points + i * s.point_bytes, s.point_bytes);
        memcpy(scalars + places[i] * SCALAR_BYTES, s.scalars + i * SCALAR_BYTES, SCALAR_BYTES);
    }
    for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
        const struct cpu_ops *ops = NULL;
        struct msm_item item = {.source = {points, scalars, count},
                                .nonzero_count = few,
                                .wide_count = few,
                                .out = got};
        CHECK_OK(tier_find(&ops, CURVE_BN254, *tier));
        CHECK_OK(run(&item, 1, ops, pool, (struct msm_options){0}, &never));
        CHECK_MEM(want, got, s.point_bytes);
    }
    mem_free(points);
    mem_free(scalars);
    sample_free(&s);
    pool_close(&pool);
}

static void claim_cancel(void) {
    static _Atomic int set = 1;
    struct pool *pool = NULL;
    struct sample s;
    uint64_t got[4 * FP_LIMBS_MAX];
    CHECK_OK(pool_open(&pool, 2));
    sample_new(&s, curve_by_id(CURVE_BN254), GROUP_G1, 5000);
    sample_set_scalars(&s, SCALARS_FULL);
    for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
        const struct cpu_ops *ops = NULL;
        struct msm_item item = item_of(&s, s.count, got);
        CHECK_OK(tier_find(&ops, CURVE_BN254, *tier));
        CHECK_ERR(E_CANCELLED, run(&item, 1, ops, pool, (struct msm_options){0}, &set));
    }
    sample_free(&s);
    pool_close(&pool);
}

static void claim_tiers(void) {
    const struct cpu_ops *ops = NULL;
    const char *name = NULL;
    CHECK_ERR(E_USAGE, tier_find(&ops, CURVE_BN254, "sse9"));
    CHECK_HAS(err_detail(), "sse9");
    CHECK_HAS(err_detail(), "portable");
    CHECK_OK(tier_name(&name, NULL));
    CHECK_STR(cpu_tiers_usable()[0], name);
    CHECK_OK(tier_find(&ops, CURVE_BLS12_381, "portable"));
    CHECK_STR("portable", ops->tier);
    CHECK_EQ(CURVE_BLS12_381, ops->curve);
}

static void claim_window_choice(void) {
    for (uint64_t n = 1; n < UINT64_C(1) << 29; n *= 2) {
        for (uint64_t wide = 0; wide <= n; wide += n > 7 ? n / 7 : 1) {
            unsigned bits = msm_window_bits(n, wide, 254);
            CHECK(bits >= MSM_BITS_MIN && bits <= MSM_BITS_MAX);
        }
    }
    CHECK(msm_window_bits(1 << 10, 1 << 10, 254) < msm_window_bits(1 << 15, 1 << 15, 254));
    CHECK(msm_window_bits(1 << 15, 1 << 15, 254) < msm_window_bits(1 << 28, 1 << 28, 254));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"tiers are found by name, and unknown ones refused with those there are", claim_tiers},
        {"windows are in range, and wider for more scalars", claim_window_choice},
        {"small sums equal double-and-add in every tier", claim_double_and_add},
        {"all kinds of scalars and bases, one thread", claim_kinds_one_thread},
        {"all kinds of scalars and bases, three threads", claim_kinds_threads},
        {"all window sizes", claim_windows},
        {"chunk boundaries", claim_chunks},
        {"sums of many points", claim_large},
        {"five sums at once, 1 to 40 threads", claim_together},
        {"coordinates at the edges of the field are the same in every tier", claim_edges},
        {"a few points among a million that do not count", claim_sparse},
        {"a cancelled sum says so", claim_cancel},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
