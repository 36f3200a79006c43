/* bellows bench field, msm, ntt and h: what a proof is made of, one JSON line each.
 *
 *   field   products in both fields: the ceiling
 *   msm     Σ s_i·P_i over 2^log2 different points; the kind of scalars matters: real witnesses are mostly 0, 1 and small
 *   ntt     one forward transform
 *   h       the six transforms of a proof and what lies between them: the scalars of H from the rows of A and B
 *
 * Each line says how many products the operation takes by count, and what share of the ceiling they are, measured in the same run:
 * an Fp2 product counts three, its square two. On a device msm and h are steps of a whole proof, as the backend times
 * them. Inputs are drawn from a fixed seed, so two runs of one build time the same work.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/cli/backend_args.h"
#include "node/cli/bench.h"
#include "node/cli/bench_rig.h"
#include "node/cli/commands.h"
#include "node/cli/screen.h"
#include "node/cpu/msm.h"
#include "node/cpu/rate.h"
#include "node/cpu/tier.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    SEED = 17,
    LOG2_MIN = 1,
    BENCH_LOG2_MAX = 24,
    SCALAR_TOP_BITS_OFF = 4,
    BITS_FULL_PERCENT = 3,
    SKEWED_VALUES = 16
};

struct bench {
    const struct curve *curve;
    const struct cpu_ops *ops; /* constant */
    struct pool *pool;         /* owned */
    struct backend *backend;   /* owned: of what has no rig */
    struct screen *screen;     /* owned */
    uint64_t *ns;              /* owned: runs */
    size_t runs, warmups, count;
    unsigned log2;
    struct rates ceiling; /* 0: not known */
    struct bench_rig rig; /* owned; of a device */
    const char *kind;     /* of scalars */
    char device[288];
};

static void bench_done(struct bench *b) {
    screen_close(&b->screen);
    pool_close(&b->pool);
    backend_close(&b->backend);
    bench_rig_close(&b->rig);
    mem_free(b->ns);
}

static enum err bench_open(struct bench *b, const struct args *args) {
    const char *tier = args_text(args, "cpu-tier");
    b->curve = curve_by_name(args_text(args, "curve"));
    ASSERT(b->curve); /* a choice */
    TRY(tier_find(&b->ops, b->curve->id, strcmp(tier, "auto") != 0 ? tier : NULL));
    TRY(pool_open(&b->pool, (unsigned)args_number(args, "threads", 0)));
    b->log2 = args_has(args, "log2") ? (unsigned)args_number(args, "log2", 0) : 0;
    b->count = (size_t)1 << b->log2;
    b->runs = args_number(args, "runs", 0);
    b->warmups = args_number(args, "warmups", 0);
    snprintf(b->device, sizeof b->device, "cpu: %u threads, %s", pool_threads_count(b->pool),
             b->ops->tier);
    return mem_new(&b->ns, b->runs, sizeof *b->ns);
}

/* On the processor, which is also what auto means where no device is. */
static enum err is_cpu(bool *out, const struct args *args) {
    struct backend_options options;
    AUTO(backend_close) struct backend *backend = NULL;
    struct backend_choice choice;
    TRY(backend_args_read(&options, args));
    TRY(backends_open(&backend, &choice, &options));
    *out = choice.kind == BACKEND_CPU;
    return OK;
}

static void note_run(struct bench *b, size_t run, uint64_t ns) {
    if (run >= b->warmups) {
        b->ns[run - b->warmups] = ns;
    }
    screen_progress(b->screen, (double)(run + 1) / (double)(b->warmups + b->runs));
}

static void draw_scalar(struct scalar *out, struct rng *rng) {
    rng_fill(rng, out, sizeof *out);
    out->w[3] >>= SCALAR_TOP_BITS_OFF; /* below r on both curves */
}

/* ── on a device ── */

static void fill_scalars(struct scalar *out, size_t count, const char *kind, struct rng *rng);

static void fill_wires(void *ctx, struct scalar *values, size_t count) {
    const struct bench *b = ctx;
    struct rng rng = rng_seeded(SEED);
    fill_scalars(values, count, b->kind, &rng);
}

/* One step of a whole proof, as the backend times it. */
static enum err time_step(struct bench *b, const struct args *args, enum prove_step step) {
    struct backend_options options;
    const struct key_maker_order order = {.curve = b->curve,
                                          .shape = SYNTH_DENSE,
                                          .log2 = b->log2,
                                          .seed = SEED,
                                          .threads = (unsigned)args_number(args, "threads", 0)};
    TRY(backend_args_read(&options, args));
    TRY(bench_rig_open(&b->rig, &options, &order, fill_wires, b));
    snprintf(b->device, sizeof b->device, "%s", b->rig.choice.why);
    for (size_t run = 0; run < b->warmups + b->runs; run++) {
        struct step_times times = {0};
        TRY(bench_rig_run(&times, &b->rig));
        note_run(b, run, times.ns[step]);
    }
    return b->rig.backend->ops->rates(&b->ceiling, b->rig.backend, b->curve->id);
}

/* ── msm ── */

static void fill_scalars(struct scalar *out, size_t count, const char *kind, struct rng *rng) {
    struct scalar some[SKEWED_VALUES];
    for (size_t i = 0; i < SKEWED_VALUES; i++) {
        draw_scalar(&some[i], rng);
    }
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(kind, "equal")) {
            out[i] = some[0];
        } else if (!strcmp(kind, "skewed")) {
            out[i] = some[rng_below(rng, SKEWED_VALUES)];
        } else if (!strcmp(kind, "bits") && rng_below(rng, 100) >= BITS_FULL_PERCENT) {
            out[i] = (struct scalar){{rng_below(rng, 2)}};
        } else {
            draw_scalar(&out[i], rng);
        }
    }
}

/* Multiples k, k + 1, k + 2, … of the generator. */
static void fill_points(uint8_t *out, const struct bench *b, enum point_group group,
                        struct rng *rng) {
    const struct curve *c = b->curve;
    struct scalar k;
    struct g1 p;
    struct g2 q;
    draw_scalar(&k, rng);
    c->g1_mul(&p, &c->g1_generator, &k);
    c->g2_mul(&q, &c->g2_generator, &k);
    for (size_t i = 0; i < b->count; i++) {
        if (group == GROUP_G1) {
            g1_store(out + i * c->g1_bytes, c, &p);
            c->g1_add(&p, &p, &c->g1_generator);
        } else {
            g2_store(out + i * c->g2_bytes, c, &q);
            c->g2_add(&q, &q, &c->g2_generator);
        }
    }
}

static void count_scalars(struct msm_item *item, const struct scalar *scalars, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const uint64_t *w = scalars[i].w;
        item->nonzero_count += !scalar_is_zero(&scalars[i]);
        item->wide_count += (w[0] >> 48 | w[1] | w[2] | w[3]) != 0;
    }
}

static enum err time_msm(struct bench *b, const struct msm_item *item) {
    static const _Atomic int never;
    const struct msm_watch watch = {.cancel = &never};
    const struct msm_options options = {0};
    const struct msm_shape shape = {item->group, b->count};
    AUTO(mem_free_ptr) uint8_t *workspace = NULL;
    size_t bytes = msm_workspace_bytes(b->ops, &shape, 1, pool_threads_count(b->pool), options);
    TRY(mem_new_raw(&workspace, bytes, 1));
    for (size_t run = 0; run < b->warmups + b->runs; run++) {
        struct msm_item once = *item;
        uint64_t start_ns = clock_ns();
        TRY(msm_run(&once, b->ops, &shape, 1, b->pool, options,
                    (struct bytes_mut){workspace, bytes}, &watch));
        note_run(b, run, clock_ns() - start_ns);
    }
    return OK;
}

static enum err print_line(struct bench *b, const char *name, const char *more,
                           struct products products) {
    AUTO(text_free) struct text t = {0};
    bench_begin(&t, name, b->device);
    text_addf(&t, ", \"curve\": \"%s\", \"log2\": %u, %s\"warmups\": %zu, \"runs\": %zu, ",
              b->curve->snarkjs_name, b->log2, more, b->warmups, b->runs);
    uint64_t median_ns = bench_row(&t, "run_ns", b->ns, b->runs);
    text_addf(&t, ", \"ns_per_element\": %.1f, ", (double)median_ns / (double)b->count);
    bench_share(&t, products, &b->ceiling, median_ns);
    text_add(&t, "}");
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

static enum err time_msm_here(struct bench *b, const struct scalar *scalars,
                              enum point_group group) {
    AUTO(mem_free_ptr) uint8_t *points = NULL;
    struct rng rng = rng_seeded(SEED);
    uint64_t sum[G2_BYTES_MAX / 8];
    TRY(mem_new_raw(&points, b->count, curve_point_bytes(b->curve, group)));
    fill_points(points, b, group, &rng);
    struct msm_item item = {
        .group = group,
        .source = {.points = points, .scalars = (const uint8_t *)scalars, .count = b->count},
        .out = sum,
    };
    count_scalars(&item, scalars, b->count);
    TRY(time_msm(b, &item));
    rate_measure(&b->ceiling, b->ops, b->pool);
    return OK;
}

static enum err run_msm(struct args *args) {
    AUTO(bench_done) struct bench b = {.kind = args_text(args, "scalars")};
    AUTO(mem_free_ptr) struct scalar *scalars = NULL;
    enum point_group group = !strcmp(args_text(args, "group"), "g1") ? GROUP_G1 : GROUP_G2;
    struct rng rng = rng_seeded(SEED);
    bool here = false;
    char more[96];
    TRY(is_cpu(&here, args));
    TRY(bench_open(&b, args));
    TRY(mem_new_raw(&scalars, b.count, sizeof *scalars));
    fill_scalars(scalars, b.count, b.kind, &rng);
    screen_open(&b.screen, "bench msm");
    TRY(here ? time_msm_here(&b, scalars, group)
             : time_step(&b, args, group == GROUP_G1 ? STEP_MSM_A : STEP_MSM_B2));
    screen_close(&b.screen);
    snprintf(more, sizeof more, "\"group\": \"%s\", \"scalars\": \"%s\", ",
             group == GROUP_G1 ? "g1" : "g2", b.kind);
    return print_line(&b, "msm", more,
                      products_of_msm(b.curve, (const uint8_t *)scalars, b.count, group));
}

/* ── ntt ── */

/* The backend that the arguments ask for, as the bench's device. */
static enum err open_backend(struct bench *b, const struct args *args) {
    struct backend_options options;
    struct backend_choice choice;
    TRY(backend_args_read(&options, args));
    TRY(backends_open(&b->backend, &choice, &options));
    snprintf(b->device, sizeof b->device, "%s", choice.why);
    return OK;
}

static enum err run_ntt(struct args *args) {
    AUTO(bench_done) struct bench b = {0};
    AUTO(mem_free_ptr) uint64_t *ns = NULL;
    size_t count;
    TRY(bench_open(&b, args));
    TRY(open_backend(&b, args));
    count = b.warmups + b.runs;
    TRY(mem_new(&ns, count, sizeof *ns));
    TRY(b.backend->ops->transforms(ns, count, b.backend, b.curve->id, b.log2));
    memcpy(b.ns, ns + b.warmups, b.runs * sizeof *ns);
    TRY(b.backend->ops->rates(&b.ceiling, b.backend, b.curve->id));
    return print_line(&b, "ntt", "", products_of_transforms(b.log2, 1));
}

/* ── h ── */

static enum err run_h(struct args *args) {
    AUTO(bench_done) struct bench b = {.kind = "uniform"};
    TRY(bench_open(&b, args));
    screen_open(&b.screen, "bench h");
    TRY(time_step(&b, args, STEP_QUOTIENT));
    screen_close(&b.screen);
    return print_line(&b, "h", "\"transforms\": 6, ", products_of_h(b.log2));
}

/* ── field ── */

static enum err run_field(struct args *args) {
    AUTO(bench_done) struct bench b = {0};
    TRY(bench_open(&b, args));
    TRY(open_backend(&b, args));
    for (int field = 0; field < 2; field++) {
        AUTO(text_free) struct text t = {0};
        for (size_t run = 0; run < b.warmups + b.runs; run++) {
            TRY(b.backend->ops->rates(&b.ceiling, b.backend, b.curve->id));
            double rate = field == 0 ? b.ceiling.fp : b.ceiling.fr;
            note_run(&b, run, (uint64_t)rate);
        }
        bench_begin(&t, "field", b.device);
        text_addf(&t, ", \"curve\": \"%s\", \"field\": \"%s\", \"warmups\": %zu, \"runs\": %zu, ",
                  b.curve->snarkjs_name, field == 0 ? "fp" : "fr", b.warmups, b.runs);
        bench_row(&t, "products_per_s", b.ns, b.runs);
        text_add(&t, "}");
        TRY(text_done(&t));
        puts(t.ptr);
    }
    return OK;
}

#define OPTION_ELEMENTS(LEAST) OPTION_LOG2(LEAST, BENCH_LOG2_MAX, "Elements are 2^N.")

static const struct option msm_options[] = {
    OPTION_CURVE,
    {.kind = OPTION_CHOICE,
     .name = "group",
     .value = "g1|g2",
     .fallback = "g1",
     .text = "Group of the points."},
    {.kind = OPTION_CHOICE,
     .name = "scalars",
     .value = "uniform|skewed|bits|equal",
     .fallback = "uniform",
     .text = "All full-size; one of 16 such; 97 of 100 zero or one; all the same full-size one."},
    OPTION_ELEMENTS(LOG2_MIN),
    OPTION_BACKEND,
    OPTION_DEVICE,
    OPTION_THREADS,
    OPTION_CPU_TIER,
    OPTION_RUNS,
    OPTION_WARMUPS,
    OPTIONS_END,
};
static const struct option ntt_options[] = {
    OPTION_CURVE,   OPTION_ELEMENTS(LOG2_MIN), OPTION_BACKEND, OPTION_DEVICE,
    OPTION_THREADS, OPTION_CPU_TIER,           OPTION_RUNS,    OPTION_WARMUPS,
    OPTIONS_END,
};
static const struct option h_options[] = {
    OPTION_CURVE,   OPTION_ELEMENTS(SYNTH_LOG2_MIN),
    OPTION_BACKEND, OPTION_DEVICE,
    OPTION_THREADS, OPTION_CPU_TIER,
    OPTION_RUNS,    OPTION_WARMUPS,
    OPTIONS_END,
};
static const struct option field_options[] = {
    OPTION_CURVE,    OPTION_BACKEND, OPTION_DEVICE,  OPTION_THREADS,
    OPTION_CPU_TIER, OPTION_RUNS,    OPTION_WARMUPS, OPTIONS_END,
};
const struct command cmd_bench_field = {
    .name = "bench field",
    .sentence = "counts field products a second: the ceiling of all else",
    .options = field_options,
    .run = run_field,
};
const struct command cmd_bench_msm = {
    .name = "bench msm",
    .sentence = "times one multi-scalar multiplication",
    .options = msm_options,
    .notes =
        "On a device it is the sum of A or of B in G2 of a whole proof, which shares its sorted "
        "scalars with the others;\nlog2 is then 5 or more.",
    .run = run_msm,
};
const struct command cmd_bench_ntt = {
    .name = "bench ntt",
    .sentence = "times one transform",
    .options = ntt_options,
    .run = run_ntt,
};
const struct command cmd_bench_h = {
    .name = "bench h",
    .sentence = "times the six transforms of a proof: the scalars of H",
    .options = h_options,
    .run = run_h,
};
