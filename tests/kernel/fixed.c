/* Multiples of the generators on the device against the processor's one by one. */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/kernel/device.h"

#include "cuda/fixed.h"

#include <stdio.h>
#include <string.h>

static void multiple(uint8_t *out, const struct curve *c, enum point_group g,
                     const struct scalar *k) {
    struct g1 p = {{0}};
    struct g2 q = {{0}};
    if (g == GROUP_G1) {
        c->g1_mul(&p, &c->g1_generator, k);
        g1_store(out, c, &p);
    } else {
        c->g2_mul(&q, &c->g2_generator, k);
        g2_store(out, c, &q);
    }
}

struct fixed_case {
    uint32_t count, per_batch; /* multiplied; said when opening, which bounds the batch */
    unsigned window_bits;
    enum scalar_mix mix;
    uint32_t checked; /* one in so many, and both ends */
};

static void check_case(const struct curve *c, enum point_group g, const struct fixed_case *k) {
    const struct device *d = device_of_test();
    size_t bytes = curve_point_bytes(c, g);
    AUTO(pool_close) struct pool *pool = NULL;
    AUTO(gpu_fixed_close) struct gpu_fixed *f = NULL;
    AUTO(mem_free_ptr) struct scalar *scalars = scalars_random(c, k->count, k->mix);
    AUTO(mem_free_ptr) uint8_t *out = NULL;
    uint8_t want[G2_BYTES_MAX];
    CHECK_OK(pool_open(&pool, 2));
    CHECK_OK(mem_new_raw(&out, k->count * bytes + 1, 1));
    memset(out, 0xa5, k->count * bytes + 1);
    const struct gpu_fixed_options options = {.curve = c,
                                              .group = g,
                                              .count = k->per_batch,
                                              .window_bits = k->window_bits,
                                              .sm_count = d->info.sm_count,
                                              .copiers = pool};
    CHECK_OK(gpu_fixed_open(&f, &options));
    CHECK_OK(gpu_fixed_multiply(out, f, scalars, k->count));
    for (uint32_t i = 0; i < k->count; i++) {
        if (i % k->checked == 0 || i + 1 == k->count) {
            multiple(want, c, g, &scalars[i]);
            CHECK_MSG(!memcmp(want, out + i * bytes, bytes), "%s, group %d, %s: multiple %u of %u",
                      c->name, g, mix_name(k->mix), i, k->count);
        }
    }
    CHECK_EQ(0xa5, out[k->count * bytes]);
}

static void each_group(const struct fixed_case *k) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        check_case(curve_by_id(curves_tested[i]), GROUP_G1, k);
        check_case(curve_by_id(curves_tested[i]), GROUP_G2, k);
    }
    device_done();
}

static void claim_edges(void) {
    each_group(&(struct fixed_case){48, 48, 5, MIX_EDGES, 1});
    each_group(&(struct fixed_case){24, 24, 8, MIX_BITS, 1});
    each_group(&(struct fixed_case){16, 16, 4, MIX_EQUAL, 1});
    each_group(&(struct fixed_case){16, 16, 4, MIX_ZERO, 1});
}

static void claim_batches(void) {
    each_group(&(struct fixed_case){1, 1, 0, MIX_UNIFORM, 1});
    each_group(&(struct fixed_case){600, 256, 7, MIX_WITNESS, 37}); /* two whole ones and a part */
}

static void claim_large(void) {
    if (device_of_test()->emulated) {
        check_skip("for a device");
    }
    each_group(&(struct fixed_case){(1 << 21) + 77, 1 << 27, 0, MIX_UNIFORM, 9973});
}

static void bench(const struct curve *c, enum point_group g) {
    enum { COUNT = 1 << 22 };
    const struct device *d = device_of_test();
    AUTO(pool_close) struct pool *pool = NULL;
    AUTO(gpu_fixed_close) struct gpu_fixed *f = NULL;
    AUTO(mem_free_ptr) struct scalar *scalars = scalars_random(c, COUNT, MIX_UNIFORM);
    AUTO(mem_free_ptr) uint8_t *out = NULL;
    CHECK_OK(pool_open(&pool, 0));
    CHECK_OK(mem_new(&out, COUNT, curve_point_bytes(c, g)));
    const struct gpu_fixed_options options = {
        .curve = c, .group = g, .count = 1 << 27, .sm_count = d->info.sm_count, .copiers = pool};
    CHECK_OK(gpu_fixed_open(&f, &options));
    uint64_t ns[5];
    for (size_t i = 0; i < COUNT_OF(ns); i++) {
        uint64_t start_ns = clock_ns();
        CHECK_OK(gpu_fixed_multiply(out, f, scalars, COUNT));
        ns[i] = clock_ns() - start_ns;
    }
    double ms = median_ms(ns, COUNT_OF(ns));
    printf("{\"bench\": \"fixed\", \"curve\": \"%s\", \"group\": %d, \"count\": %d, \"ms\": %.2f, "
           "\"ns_each\": %.2f}\n",
           c->name, g + 1, COUNT, ms, ms * 1e6 / COUNT);
}

static void claim_bench(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        bench(curve_by_id(curves_tested[i]), GROUP_G1);
        bench(curve_by_id(curves_tested[i]), GROUP_G2);
    }
    device_done();
}

int kernel_fixed(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"multiples of zero, one, edges and equal scalars are right", claim_edges},
        {"batches, whole and partial, are right", claim_batches},
        {"millions of multiples are right", claim_large},
    };
    static const struct check_claim benches[] = {{"bench fixed", claim_bench}};
    if (argc > 1 && !strcmp(argv[1], "--bench")) {
        return check_main(1, argv, benches, COUNT_OF(benches));
    }
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
