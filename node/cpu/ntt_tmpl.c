/* The domain and its transforms: what is compiled per (curve, tier). ntt.c and quotient.c put the steps together.
 *
 * Two bodies do the same steps (ntt_body.h): plain elements, and in the IFMA tier eight at a time for 64 points or more.
 * Tables: twiddles of every level (n elements in all, built by doubling, so a product each); and g^-k/n in bit-reversed
 * order, which would be another n, as a product of a low and a high part:
 *
 *     position p = high·2^L + low     rev(p) = rev(low)·n/2^L + rev(high)     g^-rev(p)/n = low part · high part
 *
 * Place 0 is an exception: coefficient -k mod n has weight g^(n-k)/n = kappa·g^-k/n except for k = 0. All but place 0 are
 * left short of kappa and place 0 is divided by it, so what comes out is short of kappa everywhere; the weights put it back:
 *
 *     WEIGHT_AB, WEIGHT_C    coset basis    h = kappa²·a'b' - kappa·c', where a', b', c' are short of kappa
 *                            powers         h = C/(n(1 - kappa)) - kappa²·D/(1 - kappa): quotient.c
 *     WEIGHT_POWERS          1/n
 *     WEIGHT_VALUES          kappa
 */
#include "node/cpu/ntt_body.h"
#include "node/cpu/tmpl.h"

#include <string.h>

enum { SCALE_LOW_LOG2_MAX = 12 };

/* Generator of the group of 2^level-th roots. */
static void root_of_level(fr *out, const struct domain *d, unsigned level) {
    static const fr snarkjs = {FR_ROOT_SNARKJS}, bellman = {FR_ROOT_BELLMAN};
    *out = d->basis == H_POWERS ? bellman : snarkjs;
    for (unsigned i = FR_TWO_ADICITY; i > level; i--) {
        fr_sqr(out, out);
    }
}

static inline size_t bits_reversed(size_t x, unsigned bits) {
    uint64_t r = __builtin_bswap64(x);
    r = (r >> 4 & 0x0f0f0f0f0f0f0f0f) | (r & 0x0f0f0f0f0f0f0f0f) << 4;
    r = (r >> 2 & 0x3333333333333333) | (r & 0x3333333333333333) << 2;
    r = (r >> 1 & 0x5555555555555555) | (r & 0x5555555555555555) << 1;
    return bits ? (size_t)(r >> (64 - bits)) : 0;
}

#include "node/cpu/ntt_scalar_tmpl.h"
#ifdef TIER_LANES
#include "node/cpu/ntt_vec_tmpl.h"
#endif

static const struct ntt_body *body_of(unsigned log2) {
#ifdef TIER_LANES
    if (log2 >= vec_body.least_log2) {
        return &vec_body;
    }
#endif
    (void)log2;
    return &scalar_body;
}

/* g: a primitive 2n-th root, so that the coset is the rest of the larger domain; where there is none, 25, as snarkjs has
 * it. */
static void shift_of(fr *out, const struct domain *d) {
    if (d->log2 < FR_TWO_ADICITY) {
        root_of_level(out, d, d->log2 + 1);
    } else {
        fr_from_small(out, 25);
    }
}

static void coset(uint64_t out[4], unsigned log2, enum h_basis basis) {
    const struct domain d = {.log2 = log2, .basis = basis};
    fr g;
    shift_of(&g, &d);
    fr_to_int(out, &g);
}

static unsigned scale_low_log2(unsigned log2) {
    return log2 < SCALE_LOW_LOG2_MAX ? log2 : SCALE_LOW_LOG2_MAX;
}

static size_t aligned(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

static size_t tables_bytes(unsigned log2) {
    const struct ntt_body *body = body_of(log2);
    const unsigned low = scale_low_log2(log2);
    return aligned(body->twiddle_units(log2) * body->unit_bytes) +
           aligned((body->unit_bytes << low) >> body->unit_log2) +
           aligned(sizeof(fr) << (log2 - low));
}

/* x·2^log2, a plain integer. */
static void weight_set(struct domain *d, enum domain_weight which, const fr *x, unsigned log2) {
    fr y = *x;
    for (unsigned i = 0; i < log2; i++) {
        fr_double(&y, &y);
    }
    fr_to_int(d->weights[which], &y);
}

static void build_weights(struct domain *d, const struct ntt_body *body, const fr *kappa,
                          const fr *n_inv) {
    fr ab, c, kappa_inv;
    fr_inv(&kappa_inv, kappa);
    memcpy(d->kappa_inv, &kappa_inv, sizeof kappa_inv);
    fr_sqr(&ab, kappa);
    if (d->basis == H_COSET_LAGRANGE) {
        fr_neg(&c, kappa);
    } else {
        fr rest;
        fr_sub(&rest, &fr_one, kappa);
        fr_inv(&rest, &rest);
        fr_mul(&c, n_inv, &rest);
        fr_mul(&ab, &ab, &rest);
        fr_neg(&ab, &ab);
    }
    weight_set(d, WEIGHT_AB, &ab, body->product_log2);
    weight_set(d, WEIGHT_C, &c, body->product_log2);
    weight_set(d, WEIGHT_POWERS, n_inv, body->entered_log2);
    weight_set(d, WEIGHT_VALUES, kappa, body->entered_log2);
}

/* step^0, step^1, … times `first`, to bit-reversed places. */
static void build_scale(struct domain *d, const struct ntt_body *body, const fr *n_inv) {
    fr g_inv, step, x = fr_one;
    const unsigned low = d->scale_low_log2, high = d->log2 - low;
    shift_of(&g_inv, d);
    fr_inv(&g_inv, &g_inv);
    const uint64_t stride = UINT64_C(1) << high;
    fr_pow(&step, &g_inv, &stride, 1);
    for (size_t i = 0; i < (size_t)1 << low; i++) {
        body->set_low(d, bits_reversed(i, low), x.w);
        fr_mul(&x, &x, &step);
    }
    x = *n_inv;
    for (size_t i = 0; i < (size_t)1 << high; i++) {
        memcpy(d->scale_high + 4 * bits_reversed(i, high), &x, sizeof x);
        fr_mul(&x, &x, &g_inv);
    }
}

struct twiddle_job {
    struct domain *domain;
    const struct ntt_body *body;
};

static void twiddle_first(void *ctx, size_t idx, unsigned worker_idx) {
    const struct twiddle_job *job = ctx;
    (void)worker_idx;
    const unsigned level = job->domain->log2 - (unsigned)idx;
    if (job->body->twiddle_chunks(level) > 0) {
        job->body->twiddle_build(job->domain, level, 0);
    }
}

/* Chunks 1 … of all levels, numbered from the top level down. */
static void twiddle_rest(void *ctx, size_t idx, unsigned worker_idx) {
    const struct twiddle_job *job = ctx;
    (void)worker_idx;
    unsigned level = job->domain->log2;
    for (; idx + 1 >= job->body->twiddle_chunks(level); level--) {
        idx -= job->body->twiddle_chunks(level) - 1;
    }
    job->body->twiddle_build(job->domain, level, idx + 1);
}

static void build(struct domain *out, void *memory, unsigned log2, enum h_basis basis,
                  struct pool *pool) {
    const struct ntt_body *body = body_of(log2);
    uint8_t *at = memory;
    ASSERT(log2 >= 1 && log2 <= FR_TWO_ADICITY && log2 <= DOMAIN_LOG2_MAX);
    struct domain d = {.log2 = log2, .basis = basis, .scale_low_log2 = scale_low_log2(log2)};
    d.twiddles = at;
    at += aligned(body->twiddle_units(log2) * body->unit_bytes);
    d.scale_low = at;
    at += aligned((body->unit_bytes << d.scale_low_log2) >> body->unit_log2);
    d.scale_high = (uint64_t *)(void *)at;

    fr kappa, n_inv;
    static const fr two_inv = {FR_TWO_INV};
    const uint64_t n = UINT64_C(1) << log2, exponent = log2;
    shift_of(&kappa, &d);
    fr_pow(&kappa, &kappa, &n, 1);
    fr_pow(&n_inv, &two_inv, &exponent, 1);
    build_weights(&d, body, &kappa, &n_inv);
    build_scale(&d, body, &n_inv);

    struct twiddle_job job = {&d, body};
    size_t rest = 0;
    for (unsigned level = 1; level <= log2; level++) {
        size_t chunks = body->twiddle_chunks(level);
        rest += chunks ? chunks - 1 : 0;
    }
    pool_for(pool, log2, twiddle_first, &job);
    pool_for(pool, rest, twiddle_rest, &job);
    *out = d;
}

extern const struct domain_ops CPU_FN(domain_ops);
const struct domain_ops CPU_FN(domain_ops) = {
    .tables_bytes = tables_bytes,
    .build = build,
    .body = body_of,
    .coset = coset,
};
