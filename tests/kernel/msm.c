/* Multi-scalar multiplication on the device against Σ s_i·k_i: points are known multiples k_i·G of the generator, so one
 * multiplication on the processor tells the answer, whatever the size.
 */
#include "cuda/sample.h"
#include "cuda/table.h"
#include "node/base/mem.h"
#include "tests/kernel/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum base_mix {
    BASES_DISTINCT,
    BASES_EQUAL,
    BASES_OPPOSITE,
    BASES_WITH_INFINITY,   /* half */
    BASES_MOSTLY_INFINITY, /* three quarters, as in B of a PoRep's key */
    BASES_MIXES
};
static const char *const base_names[] = {"8192 distinct", "equal", "opposite", "half infinity",
                                         "mostly infinity"};
enum {
    STEP_POINTS = 1 << 13, /* distinct points before they repeat */
    MSMS_MAX = 5
};

struct bases {
    uint8_t *packed;  /* owned */
    struct scalar *k; /* owned */
};

static void bases_done(struct bases *b) {
    mem_free(b->packed);
    mem_free(b->k);
}

struct point { /* of either group */
    uint64_t w[4 * FP_LIMBS_MAX];
};
static void point_generator(struct point *out, const struct curve *c, enum point_group g) {
    memset(out, 0, sizeof *out);
    memcpy(out, g == GROUP_G1 ? (const void *)&c->g1_generator : (const void *)&c->g2_generator,
           curve_point_bytes(c, g));
}
static void point_add(struct point *out, const struct curve *c, enum point_group g,
                      const struct point *b) {
    if (g == GROUP_G1) {
        c->g1_add((struct g1 *)out, (const struct g1 *)out, (const struct g1 *)b);
    } else {
        c->g2_add((struct g2 *)out, (const struct g2 *)out, (const struct g2 *)b);
    }
}
static void point_mul(struct point *out, const struct curve *c, enum point_group g,
                      const struct point *p, const struct scalar *k) {
    struct point r = {{0}};
    if (g == GROUP_G1) {
        c->g1_mul((struct g1 *)&r, (const struct g1 *)p, k);
    } else {
        c->g2_mul((struct g2 *)&r, (const struct g2 *)p, k);
    }
    *out = r;
}

/* k_i = start + i·step for the first STEP_POINTS, then again. */
static void bases_make(struct bases *b, const struct curve *c, enum point_group g, size_t count,
                       enum base_mix mix) {
    size_t bytes = curve_point_bytes(c, g), distinct = count < STEP_POINTS ? count : STEP_POINTS;
    struct scalar k, step, minus;
    struct point generator, p, d;
    CHECK_OK(mem_new(&b->packed, count, bytes));
    CHECK_OK(mem_new(&b->k, count, sizeof *b->k));
    scalar_uniform(&k, c);
    scalar_uniform(&step, c);
    point_generator(&generator, c, g);
    point_mul(&p, c, g, &generator, &k);
    point_mul(&d, c, g, &generator, &step);
    for (size_t i = 0; i < distinct; i++) {
        memcpy(b->packed + i * bytes, &p, bytes);
        b->k[i] = k;
        if (mix == BASES_EQUAL) {
            continue;
        }
        if (mix == BASES_OPPOSITE && i % 2 == 0) {
            struct scalar zero = {{0}};
            c->scalar_sub(&minus, &zero, &k);
            point_mul(&p, c, g, &generator, &minus);
            k = minus;
        } else {
            point_add(&p, c, g, &d);
            c->scalar_add(&k, &k, &step);
        }
    }
    for (size_t i = distinct; i < count; i++) {
        memcpy(b->packed + i * bytes, b->packed + (i % distinct) * bytes, bytes);
        b->k[i] = b->k[i % distinct];
    }
    uint64_t finite = mix == BASES_MOSTLY_INFINITY ? 4 : 2; /* one of so many */
    for (size_t i = 0; mix >= BASES_WITH_INFINITY && i < count; i++) {
        if (rng_below(check_rng(), finite)) {
            memset(b->packed + i * bytes, 0, bytes);
            b->k[i] = (struct scalar){{0}};
        }
    }
}

/* What becomes of the planned window. */
enum narrowing { NARROW_FREE, NARROW_NEVER, NARROW_MUST, NARROW_MUST_NOT, NARROW_TRIED_IN_VAIN };
struct msm_case {
    size_t count;
    enum scalar_mix scalars;
    enum base_mix bases;
    unsigned window_bits, chunk_log2, lanes; /* 0: what the product would choose */
    unsigned sift_rounds;
    enum narrowing narrowing;
    bool one_at_a_time; /* no overlap */
    bool again;         /* MSMS_MAX times over the same pairs */
    bool table;         /* points with their multiples */
    unsigned repeats;   /* timed */
};

struct msm_setup { /* streams of one run */
    struct gpu_msm_streams streams;
    struct gpu_event *from, *counted, *to;
};
static void setup_open(struct msm_setup *s) { /* after all memory is filled */
    CHECK_OK(gpu_stream_wait(device_of_test()->stream));
    CHECK_OK(gpu_msm_streams_open(&s->streams));
    CHECK_OK(gpu_event_open(&s->from));
    CHECK_OK(gpu_event_open(&s->counted));
    CHECK_OK(gpu_event_open(&s->to));
}
static void setup_close(struct msm_setup *s) {
    gpu_msm_streams_close(&s->streams);
    gpu_event_close(&s->from);
    gpu_event_close(&s->counted);
    gpu_event_close(&s->to);
}
static void wait_here(struct msm_setup *s) {
    CHECK_OK(gpu_event_record(s->counted, s->streams.main));
    CHECK_OK(gpu_event_wait(s->counted));
}

/* Digits were counted; the window that fits them, as the backend takes it. */
static void pairs_narrow(struct gpu_pairs *pairs, struct msm_setup *s, enum narrowing want) {
    unsigned planned = pairs->shape.window_bits, tries = 0;
    wait_here(s);
    for (bool again = want != NARROW_NEVER; again; tries += again) {
        CHECK_OK(gpu_pairs_narrow(&again, pairs, s->streams.main));
        wait_here(s);
    }
    static const unsigned wanted[] = {
        [NARROW_NEVER] = 0, [NARROW_MUST] = 1, [NARROW_MUST_NOT] = 0, [NARROW_TRIED_IN_VAIN] = 2};
    CHECK_MSG(want == NARROW_FREE || (tries == wanted[want] && (pairs->shape.window_bits <
                                                                planned) == (want == NARROW_MUST)),
              "%u of %u bits, counted %u times", pairs->shape.window_bits, planned, tries + 1);
}

static struct gpu_msm_shape shape_of(const struct msm_case *m, const struct gpu_curve *gpu,
                                     unsigned sm_count) {
    struct gpu_msm_shape s = {
        .scalars_count = (uint32_t)m->count, .scalar_bits = gpu->scalar_bits, .sm_count = sm_count};
    s.window_bits =
        m->window_bits ? m->window_bits : gpu_msm_window(s.scalars_count, s.scalar_bits, m->table);
    const char *most = getenv("BELLOWS_BENCH_CHUNK"); /* to try others */
    s.chunk_log2 = m->chunk_log2 ? m->chunk_log2 : most ? (unsigned)strtoul(most, NULL, 10) : 25;
    uint64_t pairs = (uint64_t)m->count * ((s.scalar_bits + s.window_bits - 1) / s.window_bits);
    while (!m->chunk_log2 && s.chunk_log2 > 10 && (uint64_t)1 << (s.chunk_log2 - 1) >= pairs) {
        s.chunk_log2--;
    }
    s.lanes_count = m->lanes ? m->lanes : pairs >> s.chunk_log2 > 3 ? 4 : 2;
    s.overlap = !m->one_at_a_time;
    s.shared = m->again || m->sift_rounds;
    s.table = m->table;
    s.sift_rounds = m->sift_rounds;
    return s;
}

static struct gpu_msm_memory memory_take(size_t *total, const struct gpu_msm_shape *shape,
                                         const struct gpu_group *group) {
    struct gpu_msm_bytes bytes = gpu_msm_bytes(shape, group);
    struct gpu_msm_memory m = {.lanes = device_take(bytes.lanes),
                               .turn = {device_take(bytes.turn), NULL}};
    m.turn[1] = shape->overlap ? device_take(bytes.turn) : m.turn[0];
    m.tails = device_take(bytes.tails);
    *total = bytes.lanes + bytes.turn * (shape->overlap ? 2 : 1) + bytes.tails;
    return m;
}

static void print_msm(const struct curve *c, enum point_group g, const struct msm_case *m,
                      const struct gpu_msm_shape *shape, unsigned window_bits, uint64_t *ns,
                      size_t workspace_bytes) {
    double ms = median_ms(ns, m->repeats);
    printf("{\"bench\": \"msm\", \"curve\": \"%s\", \"group\": \"g%d\", \"log2\": %d, "
           "\"scalars\": \"%s\", \"bases\": \"%s\", \"table\": %s, \"sift_rounds\": %u, "
           "\"window\": %u, \"chunk_log2\": %u, "
           "\"median_ms\": %.3f, \"min_ms\": %.3f, \"runs\": %u, \"workspace_bytes\": %zu}\n",
           c->name, g == GROUP_G1 ? 1 : 2, 63 - __builtin_clzll(m->count), mix_name(m->scalars),
           base_names[m->bases], m->table ? "true" : "false", m->sift_rounds, window_bits,
           shape->chunk_log2, ms, (double)ns[0] / 1e6, m->repeats, workspace_bytes);
}

/* The points in device memory, with their multiples where the shape has them. */
static void *points_put(const struct bases *b, const struct gpu_msm_shape *shape, size_t count,
                        const struct gpu_group *group) {
    const struct device *dev = device_of_test();
    size_t bytes = count * 2 * group->coordinate_bytes;
    if (!shape->table) {
        return device_put(b->packed, bytes);
    }
    struct gpu_table_shape table = {.points_count = (uint32_t)count,
                                    .window_bits = shape->window_bits,
                                    .copies_count = (shape->scalar_bits + shape->window_bits - 1) /
                                                    shape->window_bits,
                                    .sm_count = shape->sm_count};
    const void *plain = device_put(b->packed, bytes);
    void *points = device_take(table.copies_count * bytes),
         *workspace = device_take(gpu_table_workspace_bytes(&table, group));
    CHECK_OK(gpu_copy(points, plain, bytes, dev->stream));
    CHECK_OK(gpu_table_build(points, &table, group, workspace, dev->stream));
    return points;
}

static void check_msm(enum curve_id id, enum point_group g, const struct msm_case *m) {
    const struct device *dev = device_of_test();
    const struct curve *c = curve_by_id(id);
    const struct gpu_curve *gpu = gpu_curve_of(id);
    const struct gpu_group *group = g == GROUP_G1 ? gpu->g1 : gpu->g2;
    AUTO(bases_done) struct bases bases = {0};
    bases_make(&bases, c, g, m->count, m->bases);
    AUTO(mem_free_ptr) struct scalar *scalars = scalars_random(c, m->count, m->scalars);
    struct scalar sum = {{0}}, t;
    for (size_t i = 0; i < m->count; i++) {
        c->scalar_mul(&t, &scalars[i], &bases.k[i]);
        c->scalar_add(&sum, &sum, &t);
    }
    struct point want, generator;
    point_generator(&generator, c, g);
    point_mul(&want, c, g, &generator, &sum);
    struct gpu_msm_shape shape = shape_of(m, gpu, dev->info.sm_count);
    void *points = points_put(&bases, &shape, m->count, group);
    void *device_scalars = device_put(scalars, m->count * sizeof *scalars);
    size_t msm_bytes;
    struct gpu_msm_memory memory = memory_take(&msm_bytes, &shape, group);
    void *pairs_space = device_take(gpu_pairs_bytes(&shape)),
         *tiles = device_take(gpu_tiles_bytes(&shape));
    struct gpu_pair_counts *counts = device_pinned(sizeof *counts);
    unsigned msms = m->again ? MSMS_MAX : 1;
    void *results[MSMS_MAX];
    for (unsigned i = 0; i < msms; i++) {
        results[i] = device_pinned(gpu_msm_result_bytes(&shape, group));
    }
    struct msm_setup setup = {0};
    setup_open(&setup);
    uint64_t ns[64];
    struct gpu_pairs pairs;
    for (unsigned run = 0; run <= m->repeats; run++) {
        CHECK_OK(gpu_event_record(setup.from, setup.streams.main));
        CHECK_OK(gpu_pairs_count(&pairs, &shape, gpu->r, device_scalars, tiles, counts,
                                 setup.streams.main));
        pairs_narrow(&pairs, &setup, m->narrowing);
        CHECK_OK(gpu_pairs_run(&pairs, pairs_space, setup.streams.main));
        wait_here(&setup);
        for (unsigned i = 0; i < msms;
             i++) { /* beside each other, the later ones with the first one's lists */
            CHECK_OK(gpu_msm_run(&pairs, group, points, &memory, results[i], i % GPU_TURNS,
                                 i % 2 ? setup.counted : NULL, &setup.streams));
        }
        CHECK_OK(gpu_event_record(setup.to, setup.streams.tail[0]));
        CHECK_OK(gpu_event_wait(setup.to));
        for (unsigned i = 0; i < msms; i++) {
            struct point got = {{0}};
            gpu_msm_finish(got.w, &pairs, group, results[i]);
            CHECK_MSG(!memcmp(&got, &want, sizeof got),
                      "%s G%d: wrong sum of %zu points, %s scalars, bases %d, window %u, chunks of "
                      "2^%u, run %u, MSM %u over these pairs",
                      c->name, g == GROUP_G1 ? 1 : 2, m->count, mix_name(m->scalars), (int)m->bases,
                      pairs.shape.window_bits, shape.chunk_log2, run, i);
        }
        if (run) {
            CHECK_OK(gpu_event_ns(&ns[run - 1], setup.from, setup.to));
        }
    }
    if (m->repeats) {
        print_msm(c, g, m, &shape, pairs.shape.window_bits, ns,
                  gpu_pairs_bytes(&shape) + msm_bytes);
    }
    setup_close(&setup);
    device_done();
}

static void both(const struct msm_case *m) {
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        check_msm(curves_tested[i], GROUP_G1, m);
        check_msm(curves_tested[i], GROUP_G2, m);
    }
}

static void claim_small(void) {
    static const size_t counts[] = {1, 2, 3, 7, 31, 33, 100};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        both(&(struct msm_case){.count = counts[i], .scalars = i % 2 ? MIX_UNIFORM : MIX_EDGES});
    }
}
static void claim_mixes(void) {
    for (unsigned mix = 0; mix < MIX_COUNT; mix++) {
        both(&(struct msm_case){.count = device_of_test()->emulated ? 150 : 5000,
                                .scalars = mix,
                                .again = mix == MIX_WITNESS || mix == MIX_UNIFORM});
    }
}
static void claim_bases(void) {
    size_t count = device_of_test()->emulated ? 120 : 5000;
    both(&(struct msm_case){.count = count, .bases = BASES_EQUAL});
    both(&(struct msm_case){.count = count, .bases = BASES_OPPOSITE});
    both(&(struct msm_case){.count = count, .bases = BASES_OPPOSITE, .scalars = MIX_BITS});
    both(&(struct msm_case){.count = count, .bases = BASES_OPPOSITE, .scalars = MIX_EQUAL});
    both(&(struct msm_case){.count = count, .bases = BASES_WITH_INFINITY, .scalars = MIX_WITNESS});
    both(&(struct msm_case){.count = count, .bases = BASES_EQUAL, .scalars = MIX_EQUAL});
}
/* A few rounds, and more than there are; the same chunk for several MSMs, chunks that cut buckets, ones. */
static void claim_sifted(void) {
    bool emulated = device_of_test()->emulated;
    for (unsigned bases = 0; bases < BASES_MIXES; bases++) {
        both(&(struct msm_case){.count = emulated ? 120 : 5000,
                                .bases = bases,
                                .scalars = bases % 2 ? MIX_UNIFORM : MIX_WITNESS,
                                .sift_rounds = bases % 2 ? 40 : 2,
                                .again = bases > BASES_EQUAL});
        both(&(struct msm_case){.count = emulated ? 100 : 20000,
                                .bases = bases,
                                .scalars = bases % 2 ? MIX_BITS : MIX_EQUAL,
                                .chunk_log2 = emulated ? 8 : 12,
                                .lanes = 3,
                                .sift_rounds = 3});
    }
}
/* Of all of one kind, and with a few of another: what half, three quarters, and a tenth at infinity are worth. */
static void claim_sample(void) {
    static const struct {
        unsigned infinite_of_100;
        bool equal;
        unsigned rounds;
    } cases[] = {{0, false, 0},
                 {10, false, 0},
                 {20, false, 0},
                 {55, false, 2},
                 {75, false, 3},
                 {100, false, SIFT_ROUNDS_MAX},
                 {0, true, SIFT_ROUNDS_MAX}};
    enum { COUNT = 10007, BYTES = 96 };
    AUTO(mem_free_ptr) uint8_t *points = NULL;
    CHECK_OK(mem_new(&points, COUNT, BYTES));
    for (size_t n = 0; n < COUNT_OF(cases); n++) {
        for (size_t i = 0; i < COUNT; i++) {
            bool infinite = rng_below(check_rng(), 100) < cases[n].infinite_of_100;
            uint64_t x = cases[n].equal ? 77 : rng_u64(check_rng()) | 1;
            memset(points + i * BYTES, 0, BYTES);
            memcpy(points + i * BYTES, &x, infinite ? 0 : sizeof x);
        }
        unsigned rounds = sample_sift_rounds(bytes_of(points, (size_t)COUNT * BYTES), BYTES);
        CHECK_MSG(rounds == cases[n].rounds, "%u of 100 infinite: %u rounds",
                  cases[n].infinite_of_100, rounds);
    }
    CHECK_EQ(0, sample_sift_rounds(bytes_of(NULL, 0), BYTES));
    CHECK_EQ(0, sample_sift_rounds(bytes_of(points + BYTES, BYTES), BYTES));
}
static void claim_chunks(void) {
    size_t count = device_of_test()->emulated ? 100 : 20000;
    unsigned chunk = device_of_test()->emulated ? 8 : 12;
    for (unsigned lanes = 2; lanes <= GPU_LANES_MAX; lanes++) {
        enum scalar_mix mix = lanes == 2 ? MIX_UNIFORM : lanes == 3 ? MIX_EQUAL : MIX_BITS;
        both(&(struct msm_case){.count = count,
                                .scalars = mix,
                                .chunk_log2 = chunk,
                                .lanes = lanes,
                                .one_at_a_time = lanes == 2,
                                .again = lanes == 3});
    }
}
static void claim_windows(void) {
    for (unsigned c = GPU_MSM_WINDOW_MIN; c <= (device_of_test()->emulated ? 9u : 18u); c++) {
        check_msm(curves_tested[c % 2], c % 4 < 2 ? GROUP_G1 : GROUP_G2,
                  &(struct msm_case){.count = 64,
                                     .scalars = c % 3 ? MIX_UNIFORM : MIX_EDGES,
                                     .window_bits = c,
                                     .narrowing = NARROW_NEVER});
    }
}
/* Small chunks, so that room for pairs and chunks of the planned window is all that there is. */
static void claim_narrow(void) {
    bool emulated = device_of_test()->emulated;
    unsigned wide = emulated ? 9 : 15;
    both(&(struct msm_case){.count = emulated ? 300 : 20000,
                            .scalars = MIX_SPARSE,
                            .bases = BASES_WITH_INFINITY,
                            .window_bits = wide,
                            .chunk_log2 = 11,
                            .narrowing = NARROW_MUST,
                            .again = true});
    both(&(struct msm_case){.count = emulated ? 200 : 20000,
                            .scalars = MIX_SPARSE,
                            .window_bits = wide,
                            .chunk_log2 = 10,
                            .narrowing = NARROW_MUST,
                            .one_at_a_time = true});
    both(&(struct msm_case){.count = 120, /* there would be less work, but no room */
                            .window_bits = wide,
                            .narrowing = NARROW_MUST_NOT});
    both(&(struct msm_case){.count = 310, /* one digit each, two in the narrower one */
                            .scalars = MIX_SMALL,
                            .window_bits = 8,
                            .narrowing = NARROW_TRIED_IN_VAIN});
}
static void claim_tables(void) {
    bool emulated = device_of_test()->emulated;
    for (unsigned mix = 0; mix <= MIX_ZERO; mix++) {
        both(&(struct msm_case){.count = emulated ? 10 : 3000,
                                .scalars = mix,
                                .bases = mix == MIX_WITNESS ? BASES_WITH_INFINITY
                                         : mix == MIX_EDGES ? BASES_EQUAL
                                                            : BASES_DISTINCT,
                                .window_bits = emulated ? 7 : 0,
                                .table = true});
    }
}
static void claim_large(void) {
    if (device_of_test()->emulated) {
        check_skip("too large for the emulator");
    }
    for (unsigned mix = MIX_UNIFORM; mix <= MIX_EDGES; mix++) {
        check_msm(curves_tested[mix % 2], GROUP_G1,
                  &(struct msm_case){.count = (1 << 18) + 77, .scalars = mix});
        check_msm(curves_tested[mix % 2], GROUP_G2,
                  &(struct msm_case){.count = (1 << 16) + 3, .scalars = mix});
    }
}

static void claim_shapes(void) {
    struct gpu_msm_sizes z;
    struct gpu_msm_shape s = {.scalars_count = 1000,
                              .scalar_bits = 254,
                              .window_bits = 12,
                              .chunk_log2 = 16,
                              .lanes_count = 2,
                              .sm_count = 1};
    CHECK_OK(gpu_msm_sizes_of(&z, &s));
    CHECK_EQ(22, z.windows_count);
    CHECK_EQ(22 << 11, z.buckets_count);
    struct gpu_msm_shape bad = s;
    bad.scalars_count = 0;
    CHECK_ERR(E_RANGE, gpu_msm_sizes_of(&z, &bad));
    bad = s;
    bad.window_bits = GPU_MSM_WINDOW_MAX + 1;
    CHECK_ERR(E_RANGE, gpu_msm_sizes_of(&z, &bad));
    bad = s;
    bad.lanes_count = GPU_LANES_MAX + 1;
    CHECK_ERR(E_RANGE, gpu_msm_sizes_of(&z, &bad));
    bad = s;
    bad.scalars_count = 1 << 30;
    CHECK_ERR(E_RANGE, gpu_msm_sizes_of(&z, &bad));
    bad = s;
    bad.scalars_count = 1 << 26; /* 22 windows of them are more than references can name */
    CHECK_OK(gpu_msm_sizes_of(&z, &(struct gpu_msm_shape){.scalars_count = 1 << 26,
                                                          .scalar_bits = 254,
                                                          .window_bits = 12,
                                                          .chunk_log2 = 25,
                                                          .lanes_count = 2}));
    bad.chunk_log2 = 25;
    bad.table = true;
    CHECK_ERR(E_RANGE, gpu_msm_sizes_of(&z, &bad));
    CHECK_EQ(16, gpu_msm_window(1 << 20, 255, false));
    CHECK_EQ(17, gpu_msm_window(1 << 22, 255, false));
    CHECK_EQ(20, gpu_msm_window(1 << 24, 255, false));
    CHECK_EQ(22, gpu_msm_window(1 << 26, 255, false));
    CHECK_EQ(17, gpu_msm_window(1 << 23, 255,
                                false)); /* 19 is 0.3 % less work, and thrice the buckets */
    CHECK_EQ(20, gpu_msm_window(1 << 20, 255, true));
}

/* In G1, as many as fit the memory of G2's. */
static unsigned g1_lanes_of(struct gpu_msm_shape shape, const struct gpu_curve *gpu) {
    size_t room = gpu_msm_bytes(&shape, gpu->g2).lanes;
    unsigned lanes = shape.lanes_count;
    for (; lanes < GPU_LANES_MAX; lanes++) {
        shape.lanes_count = lanes + 1;
        if (gpu_msm_bytes(&shape, gpu->g1).lanes > room) {
            break;
        }
    }
    return lanes;
}

/* The four MSMs of a witness (B2 in G2, A, B1, L in G1) over the same scalars, each on its own and together. */
static void bench_four(enum curve_id id, unsigned log2, enum scalar_mix mix) {
    enum { RUNS = 7, SETS = 4 };
    const struct device *dev = device_of_test();
    const struct curve *c = curve_by_id(id);
    const struct gpu_curve *gpu = gpu_curve_of(id);
    struct msm_case m = {.count = (size_t)1 << log2, .scalars = mix};
    struct gpu_msm_shape shape = shape_of(&m, gpu, dev->info.sm_count);
    shape.shared = true;
    unsigned g1_lanes = g1_lanes_of(shape, gpu);
    const void *points[2];
    for (unsigned g = 0; g < 2; g++) {
        AUTO(bases_done) struct bases bases = {0};
        enum point_group group = g ? GROUP_G2 : GROUP_G1;
        bases_make(&bases, c, group, m.count, BASES_DISTINCT);
        points[g] = device_put(bases.packed, m.count * curve_point_bytes(c, group));
    }
    AUTO(mem_free_ptr) struct scalar *scalars = scalars_random(c, m.count, mix);
    const void *on_device = device_put(scalars, m.count * sizeof *scalars);
    size_t bytes;
    struct gpu_msm_memory memory = memory_take(&bytes, &shape, gpu->g2);
    void *pairs_space = device_take(gpu_pairs_bytes(&shape)),
         *tiles = device_take(gpu_tiles_bytes(&shape));
    struct gpu_pair_counts *counts = device_pinned(sizeof *counts);
    void *result[SETS];
    for (unsigned i = 0; i < SETS; i++) {
        result[i] = device_pinned(gpu_msm_result_bytes(&shape, gpu->g2));
    }
    struct msm_setup setup = {0};
    setup_open(&setup);
    double ms[SETS + 1]; /* each alone, then all */
    for (unsigned what = 0; what <= SETS; what++) {
        uint64_t ns[RUNS];
        for (int run = -1; run < RUNS; run++) {
            struct gpu_pairs pairs;
            uint64_t t;
            shape.shared = what == SETS;
            CHECK_OK(gpu_event_record(setup.from, setup.streams.main));
            CHECK_OK(gpu_pairs_count(&pairs, &shape, gpu->r, on_device, tiles, counts,
                                     setup.streams.main));
            pairs_narrow(&pairs, &setup, NARROW_FREE);
            CHECK_OK(gpu_pairs_run(&pairs, pairs_space, setup.streams.main));
            wait_here(&setup);
            for (unsigned i = 0; i < SETS; i++) {
                bool g2 = i == 0;
                if (what == i || what == SETS) {
                    pairs.shape.lanes_count = g2 || what < SETS ? shape.lanes_count : g1_lanes;
                    CHECK_OK(gpu_msm_run(&pairs, g2 ? gpu->g2 : gpu->g1, points[g2], &memory,
                                         result[i], i % GPU_TURNS, NULL, &setup.streams));
                }
            }
            CHECK_OK(gpu_event_record(setup.to, setup.streams.tail[0]));
            CHECK_OK(gpu_event_wait(setup.to));
            CHECK_OK(gpu_event_ns(&t, setup.from, setup.to));
            if (run >= 0) {
                ns[run] = t;
            }
        }
        ms[what] = median_ms(ns, RUNS);
    }
    double sum = ms[0] + ms[1] + ms[2] + ms[3];
    printf("{\"bench\": \"four msm\", \"curve\": \"%s\", \"log2\": %u, \"scalars\": \"%s\", "
           "\"chunk_log2\": %u, "
           "\"g1_ms\": %.3f, \"g2_ms\": %.3f, \"sum_ms\": %.3f, \"together_ms\": %.3f, \"share\": "
           "%.3f}\n",
           c->name, log2, mix_name(mix), shape.chunk_log2, ms[1], ms[0], sum, ms[SETS],
           ms[SETS] / sum);
    setup_close(&setup);
    device_done();
}

static const struct bench_case {
    enum curve_id curve;
    enum point_group group;
    struct msm_case m;
} bench_cases[] = {
    {CURVE_BLS12_381, GROUP_G1, {.count = 1 << 20, .repeats = 9}},
    {CURVE_BLS12_381, GROUP_G1, {.count = 1 << 22, .repeats = 7}},
    {CURVE_BLS12_381, GROUP_G1, {.count = 1 << 24, .repeats = 3}},
    {CURVE_BLS12_381, GROUP_G1, {.count = 1 << 22, .scalars = MIX_WITNESS, .repeats = 5}},
    {CURVE_BLS12_381, GROUP_G1, {.count = 1 << 22, .scalars = MIX_BITS, .repeats = 5}},
    {CURVE_BLS12_381, GROUP_G1, {.count = 1 << 22, .scalars = MIX_EQUAL, .repeats = 5}},
    {CURVE_BLS12_381, GROUP_G1, {.count = 1 << 22, .bases = BASES_EQUAL, .repeats = 5}},
    {CURVE_BLS12_381,
     GROUP_G1,
     {.count = 1 << 22, .bases = BASES_EQUAL, .sift_rounds = 4, .repeats = 5}},
    {CURVE_BLS12_381,
     GROUP_G1,
     {.count = 1 << 22, .bases = BASES_EQUAL, .scalars = MIX_EQUAL, .repeats = 5}},
    {CURVE_BLS12_381,
     GROUP_G1,
     {.count = 1 << 22,
      .bases = BASES_EQUAL,
      .scalars = MIX_EQUAL,
      .sift_rounds = 4,
      .repeats = 5}},
    {CURVE_BLS12_381, GROUP_G1, {.count = 1 << 22, .bases = BASES_MOSTLY_INFINITY, .repeats = 5}},
    {CURVE_BLS12_381,
     GROUP_G1,
     {.count = 1 << 22, .bases = BASES_MOSTLY_INFINITY, .sift_rounds = 3, .repeats = 5}},
    {CURVE_BN254, GROUP_G1, {.count = 1 << 20, .repeats = 9}},
    {CURVE_BN254, GROUP_G1, {.count = 1 << 22, .repeats = 7}},
    {CURVE_BN254, GROUP_G1, {.count = 1 << 24, .repeats = 3}},
    {CURVE_BN254, GROUP_G2, {.count = 1 << 20, .repeats = 5}},
    {CURVE_BLS12_381, GROUP_G2, {.count = 1 << 20, .repeats = 5}},
    {CURVE_BLS12_381, GROUP_G2, {.count = 1 << 22, .repeats = 3}},
    {CURVE_BLS12_381, GROUP_G2, {.count = 1 << 22, .bases = BASES_EQUAL, .repeats = 3}},
    {CURVE_BLS12_381,
     GROUP_G2,
     {.count = 1 << 22, .bases = BASES_EQUAL, .sift_rounds = 4, .repeats = 3}},
    {CURVE_BLS12_381, GROUP_G2, {.count = 1 << 22, .bases = BASES_MOSTLY_INFINITY, .repeats = 3}},
    {CURVE_BLS12_381,
     GROUP_G2,
     {.count = 1 << 22, .bases = BASES_MOSTLY_INFINITY, .sift_rounds = 3, .repeats = 3}},
    {CURVE_BLS12_381,
     GROUP_G2,
     {.count = 1 << 22, .bases = BASES_MOSTLY_INFINITY, .scalars = MIX_BITS, .repeats = 3}},
    {CURVE_BLS12_381,
     GROUP_G1,
     {.count = 1 << 22, .scalars = MIX_SPARSE, .narrowing = NARROW_NEVER, .repeats = 5}},
    {CURVE_BLS12_381,
     GROUP_G1,
     {.count = 1 << 22, .scalars = MIX_SPARSE, .narrowing = NARROW_MUST, .repeats = 5}},
    {CURVE_BLS12_381,
     GROUP_G2,
     {.count = 1 << 22, .scalars = MIX_SPARSE, .narrowing = NARROW_NEVER, .repeats = 5}},
    {CURVE_BLS12_381,
     GROUP_G2,
     {.count = 1 << 22, .scalars = MIX_SPARSE, .narrowing = NARROW_MUST, .repeats = 5}},
    {CURVE_BLS12_381,
     GROUP_G2,
     {.count = 1 << 22, .bases = BASES_MOSTLY_INFINITY, .scalars = MIX_SPARSE, .repeats = 5}},
    {CURVE_BLS12_381,
     GROUP_G2,
     {.count = 1 << 22,
      .bases = BASES_MOSTLY_INFINITY,
      .scalars = MIX_SPARSE,
      .sift_rounds = 3,
      .repeats = 5}},
    {CURVE_BN254, GROUP_G1, {.count = 1 << 20, .table = true, .repeats = 9}},
    {CURVE_BLS12_381, GROUP_G1, {.count = 1 << 20, .table = true, .repeats = 9}},
    {CURVE_BLS12_381, GROUP_G1, {.count = 1 << 22, .table = true, .repeats = 7}},
    {CURVE_BLS12_381, GROUP_G2, {.count = 1 << 24, .repeats = 3}},
    {CURVE_BLS12_381, GROUP_G1, {.count = 1 << 26, .repeats = 3}},
};

static void bench(void) {
    const char *only = getenv("BELLOWS_BENCH_LOG2"); /* sizes up to this one */
    size_t most = only ? (size_t)1 << strtoul(only, NULL, 10) : SIZE_MAX;
    const char *least = getenv("BELLOWS_BENCH_FROM"); /* of four together; they end at 22 */
    if (device_of_test()->emulated) {
        return;
    }
    for (size_t i = 0; i < COUNT_OF(bench_cases); i++) {
        if (bench_cases[i].m.count <= most) {
            check_msm(bench_cases[i].curve, bench_cases[i].group, &bench_cases[i].m);
        }
    }
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        for (unsigned log2 = least ? (unsigned)strtoul(least, NULL, 10) : 20; log2 <= 22;
             log2 += 2) {
            bench_four(curves_tested[i], log2, MIX_UNIFORM);
            bench_four(curves_tested[i], log2, MIX_WITNESS);
        }
    }
}

int kernel_msm(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"msm shapes and windows are what the plan counts on", claim_shapes},
        {"msm is right for few points", claim_small},
        {"msm is right for every mix of scalars", claim_mixes},
        {"msm is right for equal, opposite and infinite points", claim_bases},
        {"msm is right where pairs that take no addition are set apart", claim_sifted},
        {"rounds to sift follow from a sample of the points", claim_sample},
        {"msm is right when chunks cut buckets", claim_chunks},
        {"msm is right for every window", claim_windows},
        {"msm is right where few scalars are large and the window is narrower", claim_narrow},
        {"msm is right for points with their multiples", claim_tables},
        {"msm is right for many points", claim_large},
    };
    static const struct check_claim benches[] = {{"msm bench", bench}};
    if (argc == 2 && !strcmp(argv[1], "--bench")) {
        return check_main(1, argv, benches, COUNT_OF(benches));
    }
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
