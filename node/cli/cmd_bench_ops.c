/* bellows bench msm and bench ntt: the two operations that a proof consists of, on the processor, one JSON line each.
 *
 *   msm   Σ s_i·P_i over 2^log2 different points; the kind of scalars matters: real witnesses are mostly 0, 1 and small
 *   ntt   the six transforms of a proof and what lies between them: the scalars of H from the rows of A and B
 *
 * Inputs are drawn from a fixed seed, so two runs of one build time the same work.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/cli/backend_args.h"
#include "node/cli/bench.h"
#include "node/cli/commands.h"
#include "node/cli/screen.h"
#include "node/cpu/msm.h"
#include "node/cpu/quotient.h"
#include "node/cpu/tier.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    SEED = 17,
    LOG2_MIN = 1,
    BENCH_LOG2_MAX = 24,
    SCALAR_TOP_BITS_OFF = 4,
    BITS_FULL_PERCENT = 3
};

struct bench {
    const struct curve *curve;
    const struct cpu_ops *ops; /* constant */
    struct pool *pool;         /* owned */
    struct screen *screen;     /* owned */
    uint64_t *ns;              /* owned: runs */
    size_t runs, warmups, count;
    unsigned log2;
    char device[96];
};

static void bench_done(struct bench *b) {
    screen_close(&b->screen);
    pool_close(&b->pool);
    mem_free(b->ns);
}

static enum err bench_open(struct bench *b, const struct args *args) {
    const char *tier = args_text(args, "cpu-tier");
    b->curve = curve_by_name(args_text(args, "curve"));
    ASSERT(b->curve); /* a choice */
    TRY(tier_find(&b->ops, b->curve->id, strcmp(tier, "auto") != 0 ? tier : NULL));
    TRY(pool_open(&b->pool, (unsigned)args_number(args, "threads", 0)));
    b->log2 = (unsigned)args_number(args, "log2", 0);
    b->count = (size_t)1 << b->log2;
    b->runs = args_number(args, "runs", 0);
    b->warmups = args_number(args, "warmups", 0);
    snprintf(b->device, sizeof b->device, "cpu: %u threads, %s", pool_threads_count(b->pool),
             b->ops->tier);
    return mem_new(&b->ns, b->runs, sizeof *b->ns);
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

/* ── msm ── */

static void fill_scalars(struct scalar *out, const struct bench *b, const char *kind,
                         struct rng *rng) {
    struct scalar same;
    draw_scalar(&same, rng);
    for (size_t i = 0; i < b->count; i++) {
        if (!strcmp(kind, "equal")) {
            out[i] = same;
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

static enum err print_line(struct bench *b, const char *name, const char *more) {
    AUTO(text_free) struct text t = {0};
    bench_begin(&t, name, b->device);
    text_addf(&t, ", \"curve\": \"%s\", \"log2\": %u, %s\"warmups\": %zu, \"runs\": %zu, ",
              b->curve->snarkjs_name, b->log2, more, b->warmups, b->runs);
    uint64_t median_ns = bench_row(&t, "run_ns", b->ns, b->runs);
    text_addf(&t, ", \"ns_per_element\": %.1f}", (double)median_ns / (double)b->count);
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

static enum err run_msm(struct args *args) {
    AUTO(bench_done) struct bench b = {0};
    AUTO(mem_free_ptr) struct scalar *scalars = NULL;
    AUTO(mem_free_ptr) uint8_t *points = NULL;
    const char *kind = args_text(args, "scalars");
    enum point_group group = !strcmp(args_text(args, "group"), "g1") ? GROUP_G1 : GROUP_G2;
    struct rng rng = rng_seeded(SEED);
    uint64_t sum[G2_BYTES_MAX / 8];
    char more[96];
    TRY(bench_open(&b, args));
    TRY(mem_new_raw(&scalars, b.count, sizeof *scalars));
    TRY(mem_new_raw(&points, b.count, curve_point_bytes(b.curve, group)));
    screen_open(&b.screen, "bench msm");
    fill_points(points, &b, group, &rng);
    fill_scalars(scalars, &b, kind, &rng);
    struct msm_item item = {
        .group = group,
        .source = {.points = points, .scalars = (const uint8_t *)scalars, .count = b.count},
        .out = sum,
    };
    count_scalars(&item, scalars, b.count);
    TRY(time_msm(&b, &item));
    screen_close(&b.screen);
    snprintf(more, sizeof more, "\"group\": \"%s\", \"scalars\": \"%s\", ",
             group == GROUP_G1 ? "g1" : "g2", kind);
    return print_line(&b, "msm", more);
}

/* ── ntt ── */

struct vectors {
    void *tables, *a, *b, *c; /* owned */
    uint8_t *h;               /* owned */
    struct domain domain;
};

static void vectors_done(struct vectors *v) {
    mem_free(v->tables);
    mem_free(v->a);
    mem_free(v->b);
    mem_free(v->c);
    mem_free(v->h);
}

static enum err vectors_open(struct vectors *v, const struct bench *b,
                             const struct ntt_body *body) {
    size_t bytes = ntt_vector_bytes(body, b->log2);
    TRY(mem_new_raw(&v->tables, b->ops->domain->tables_bytes(b->log2), 1));
    TRY(mem_new_raw(&v->a, bytes, 1));
    TRY(mem_new_raw(&v->b, bytes, 1));
    TRY(mem_new_raw(&v->c, bytes, 1));
    TRY(mem_new_raw(&v->h, b->count, SCALAR_BYTES));
    b->ops->domain->build(&v->domain, v->tables, b->log2, H_COSET_LAGRANGE, b->pool);
    return OK;
}

static void fill_rows(uint64_t *rows, size_t count, struct rng *rng) {
    for (size_t i = 0; i < count; i++) {
        struct scalar x;
        draw_scalar(&x, rng);
        memcpy(rows + 4 * i, &x, sizeof x);
    }
}

static enum err run_ntt(struct args *args) {
    static const _Atomic int never;
    AUTO(bench_done) struct bench b = {0};
    AUTO(vectors_done) struct vectors v = {0};
    struct rng rng = rng_seeded(SEED);
    TRY(bench_open(&b, args));
    const struct ntt_body *body = b.ops->domain->body(b.log2);
    TRY(vectors_open(&v, &b, body));
    const struct quotient q = {
        .ntt = {.domain = &v.domain, .body = body, .pool = b.pool, .cancel = &never},
        .a = v.a,
        .b = v.b,
        .c = v.c,
        .h = v.h,
    };
    screen_open(&b.screen, "bench ntt");
    for (size_t run = 0; run < b.warmups + b.runs; run++) {
        fill_rows(ntt_rows(body, v.a, b.log2), b.count, &rng);
        fill_rows(ntt_rows(body, v.b, b.log2), b.count, &rng);
        uint64_t start_ns = clock_ns();
        REQUIRE(quotient_run(&q), E_CANCELLED, "cancelled");
        note_run(&b, run, clock_ns() - start_ns);
    }
    screen_close(&b.screen);
    return print_line(&b, "ntt", "\"transforms\": 6, ");
}

#define OPTION_CURVE                                                                               \
    {                                                                                              \
        .kind = OPTION_CHOICE, .name = "curve", .value = "bn128|bls12381", .fallback = "bn128",    \
        .text = "Curve."                                                                           \
    }
#define OPTION_LOG2                                                                                \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "log2", .value = "N", .fallback = "16", .least = LOG2_MIN,  \
        .most = BENCH_LOG2_MAX, .text = "Elements are 2^N."                                        \
    }

static const struct option msm_options[] = {
    OPTION_CURVE,
    {.kind = OPTION_CHOICE,
     .name = "group",
     .value = "g1|g2",
     .fallback = "g1",
     .text = "Group of the points."},
    {.kind = OPTION_CHOICE,
     .name = "scalars",
     .value = "full|bits|equal",
     .fallback = "full",
     .text = "All full-size; 97 of 100 zero or one; all the same full-size one."},
    OPTION_LOG2,
    OPTION_THREADS,
    OPTION_CPU_TIER,
    OPTION_RUNS,
    OPTION_WARMUPS,
    OPTIONS_END,
};
static const struct option ntt_options[] = {
    OPTION_CURVE, OPTION_LOG2,    OPTION_THREADS, OPTION_CPU_TIER,
    OPTION_RUNS,  OPTION_WARMUPS, OPTIONS_END,
};
const struct command cmd_bench_msm = {
    .name = "bench msm",
    .sentence = "times one multi-scalar multiplication on the processor",
    .options = msm_options,
    .run = run_msm,
};
const struct command cmd_bench_ntt = {
    .name = "bench ntt",
    .sentence = "times the six transforms of a proof on the processor",
    .options = ntt_options,
    .run = run_ntt,
};
