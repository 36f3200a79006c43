/* Device events around launches that follow each other, so that no launch is in the time of another. The best of a few runs
 * is the rate: anything slower was disturbed. A transform is inverse NTT's and coset NTT's work alike; the coset one is
 * timed, in place, over and over the same vector.
 */
#include "cuda/rate.h"

#include "node/curve/curve.h"

#include "cuda/layout.h"

#include <string.h>

enum { RATE_ROUNDS = 2000, RATE_RUNS = 5, BLOCKS_SM = 2, SHIFT = 7 };

struct bench {
    struct gpu_stream *stream;
    struct gpu_event *from, *to;
    void *memory; /* device */
};

static void bench_done(struct bench *b) {
    gpu_event_close(&b->from);
    gpu_event_close(&b->to);
    gpu_stream_close(&b->stream);
    gpu_mem_close(&b->memory);
}

static enum err bench_open(struct bench *b, size_t bytes) {
    TRY(gpu_mem_open(&b->memory, bytes));
    TRY(gpu_stream_open(&b->stream));
    TRY(gpu_event_open(&b->from));
    return gpu_event_open(&b->to);
}

static enum err bench_ns(uint64_t *ns, struct bench *b) {
    TRY(gpu_event_record(b->to, b->stream));
    TRY(gpu_event_wait(b->to));
    return gpu_event_ns(ns, b->from, b->to);
}

static enum err product_rate(double *out, struct bench *b, const struct gpu_curve *g,
                             enum gpu_product which, unsigned sm_count) {
    uint32_t blocks = BLOCKS_SM * sm_count;
    double products = (double)blocks * GPU_RATE_THREADS * RATE_ROUNDS, best = 0;
    for (unsigned run = 0; run < RATE_RUNS; run++) {
        uint64_t ns;
        TRY(gpu_event_record(b->from, b->stream));
        TRY(g->products(b->memory, which, blocks, RATE_ROUNDS, b->stream));
        TRY(bench_ns(&ns, b));
        double rate = products / (double)(ns + 1) * 1e9;
        best = rate > best ? rate : best;
    }
    *out = best;
    return OK;
}

enum err gpu_rates(struct rates *out, enum curve_id id, unsigned sm_count) {
    AUTO(bench_done) struct bench b = {0};
    const struct gpu_curve *g = gpu_curve_of(id);
    size_t bytes = (size_t)BLOCKS_SM * sm_count * GPU_RATE_THREADS * GPU_RATE_BYTES;
    struct rates rates;
    TRY(bench_open(&b, bytes));
    TRY(gpu_fill(b.memory, 0x15, bytes, b.stream)); /* below every modulus */
    TRY(product_rate(&rates.fp, &b, g, GPU_PRODUCT_FP, sm_count));
    TRY(product_rate(&rates.fr, &b, g, GPU_PRODUCT_FR, sm_count));
    *out = rates;
    return OK;
}

enum err gpu_transforms(uint64_t *ns, size_t count, struct backend *backend, enum curve_id id,
                        unsigned log2) {
    (void)backend;
    AUTO(bench_done) struct bench b = {0};
    const struct curve *c = curve_by_id(id);
    const struct gpu_curve *g = gpu_curve_of(id);
    size_t vector = SCALAR_BYTES << log2;
    struct gpu_domain domain;
    struct gpu_domain_options o = {.log2 = log2, .shift = {SHIFT}};
    struct scalar root;
    c->scalar_root_snarkjs(&root, log2);
    memcpy(o.root, root.w, sizeof o.root);
    TRY(bench_open(&b, vector + g->domain_bytes(log2, false, false)));
    TRY(g->domain_build(&domain, &o, (char *)b.memory + vector, b.stream));
    TRY(gpu_fill(b.memory, 0x15, vector, b.stream));
    for (size_t run = 0; run < count; run++) {
        TRY(gpu_event_record(b.from, b.stream));
        TRY(g->ntt_coset(b.memory, b.memory, &domain, b.stream));
        TRY(bench_ns(&ns[run], &b));
    }
    return OK;
}
