/* Transforms and quotient on the device against polynomials evaluated on the processor.
 *
 * Small sizes are compared in full, large ones at a few places; the quotient of either form is checked by its equation at
 * one random point: h(z)·(zⁿ - 1) = a(z)·b(z) - c(z), which holds for no other polynomial except with chance n/r.
 */
#include "node/base/mem.h"
#include "tests/kernel/device.h"

#include <stdio.h>
#include <string.h>

struct domain { /* one size on one curve */
    const struct curve *c;
    const struct gpu_curve *gpu;
    unsigned log2;
    size_t n;
    struct scalar root, shift;
    struct gpu_domain tables;
};

static void domain_open(struct domain *d, enum curve_id id, unsigned log2, bool powers, bool lean) {
    *d = (struct domain){
        .c = curve_by_id(id), .gpu = gpu_curve_of(id), .log2 = log2, .n = (size_t)1 << log2};
    struct gpu_domain_options o = {.log2 = log2, .powers = powers, .lean = lean};
    if (powers) {
        d->c->scalar_root_bellman(&d->root, log2);
        d->shift = (struct scalar){{7}};
    } else {
        d->c->scalar_root_snarkjs(&d->root, log2);
        d->c->scalar_root_snarkjs(&d->shift, log2 + 1);
    }
    memcpy(o.root, d->root.w, sizeof o.root);
    memcpy(o.shift, d->shift.w, sizeof o.shift);
    void *memory = device_take(d->gpu->domain_bytes(log2, powers, lean));
    CHECK_OK(d->gpu->domain_build(&d->tables, &o, memory, device_of_test()->stream));
}

static size_t reversed(size_t i, unsigned bits) {
    size_t r = 0;
    for (unsigned k = 0; k < bits; k++) {
        r |= (i >> k & 1) << (bits - 1 - k);
    }
    return r;
}

/* Σ coefficient_i·x^i; coefficients bit-reversed when `rev`. */
static struct scalar evaluate(const struct domain *d, const struct scalar *coefficients,
                              const struct scalar *x, bool rev) {
    struct scalar sum = {{0}};
    for (size_t i = d->n; i-- > 0;) {
        d->c->scalar_mul(&sum, &sum, x);
        d->c->scalar_add(&sum, &sum, &coefficients[rev ? reversed(i, d->log2) : i]);
    }
    return sum;
}

static void canonical(const struct curve *c, struct scalar *s) {
    while (!scalar_is_valid(c, s)) {
        uint64_t borrow = 0;
        for (int i = 0; i < 4; i++) {
            uint64_t t = s->w[i] - c->r.w[i], u = t - borrow;
            borrow = (s->w[i] < c->r.w[i]) | (t < borrow);
            s->w[i] = u;
        }
    }
}

static void check_transforms(enum curve_id id, unsigned log2, bool lean) {
    const struct device *dev = device_of_test();
    struct domain d;
    domain_open(&d, id, log2, false, lean);
    AUTO(mem_free_ptr)
    struct scalar *in = scalars_random(d.c, d.n, log2 % 3 ? MIX_UNIFORM : MIX_EDGES);
    AUTO(mem_free_ptr) struct scalar *out = scalars_random(d.c, d.n, MIX_ZERO);
    void *from = device_put(in, d.n * SCALAR_BYTES), *to = device_take(d.n * SCALAR_BYTES);
    struct scalar x, inverse;
    size_t places = d.n < 64 ? d.n : 5;
    d.c->scalar_inv(&inverse, &d.root);
    CHECK_OK(d.gpu->ntt_inverse(to, from, &d.tables, dev->stream));
    device_get(out, to, d.n * SCALAR_BYTES);
    for (size_t i = 0; i < d.n; i++) {
        canonical(d.c, &out[i]);
    }
    for (size_t k = 0; k < places; k++) { /* n·coefficient_j = Σ value_i·w^(-ij) */
        size_t j = places == d.n ? k : rng_below(check_rng(), d.n);
        d.c->scalar_pow(&x, &inverse, j);
        struct scalar want = evaluate(&d, in, &x, false);
        CHECK_MSG(!memcmp(&want, &out[reversed(j, log2)], sizeof want),
                  "%s 2^%u: inverse transform wrong at %zu", d.c->name, log2, j);
    }
    CHECK_OK(d.gpu->ntt_coset(to, to, &d.tables, dev->stream));
    AUTO(mem_free_ptr) struct scalar *coset = scalars_random(d.c, d.n, MIX_ZERO);
    device_get(coset, to, d.n * SCALAR_BYTES);
    for (size_t k = 0; k < places; k++) {
        size_t j = places == d.n ? k : rng_below(check_rng(), d.n);
        d.c->scalar_pow(&x, &d.root, j);
        d.c->scalar_mul(&x, &x, &d.shift);
        struct scalar want = evaluate(&d, out, &x, true);
        canonical(d.c, &coset[j]);
        CHECK_MSG(!memcmp(&want, &coset[j], sizeof want), "%s 2^%u: coset transform wrong at %zu",
                  d.c->name, log2, j);
    }
    device_done();
}

/* Coefficients of the interpolation of `values`, through the device's transform that the first claim has checked. */
static struct scalar *interpolate(const struct domain *d, const struct scalar *values) {
    const struct device *dev = device_of_test();
    struct scalar *out = scalars_random(d->c, d->n, MIX_ZERO), n = {{d->n}};
    void *vector = device_put(values, d->n * SCALAR_BYTES);
    CHECK_OK(d->gpu->ntt_inverse(vector, vector, &d->tables, dev->stream));
    device_get(out, vector, d->n * SCALAR_BYTES);
    d->c->scalar_inv(&n, &n);
    for (size_t i = 0; i < d->n; i++) {
        canonical(d->c, &out[i]);
        d->c->scalar_mul(&out[i], &out[i], &n);
    }
    return out;
}

static void check_quotient(enum curve_id id, unsigned log2, bool powers, bool lean) {
    const struct device *dev = device_of_test();
    struct domain d;
    domain_open(&d, id, log2, powers, lean);
    const struct curve *c = d.c;
    AUTO(mem_free_ptr)
    struct scalar *a = scalars_random(c, d.n, log2 % 2 ? MIX_UNIFORM : MIX_EDGES);
    AUTO(mem_free_ptr) struct scalar *b = scalars_random(c, d.n, MIX_UNIFORM);
    AUTO(mem_free_ptr) struct scalar *product = scalars_random(c, d.n, MIX_ZERO);
    AUTO(mem_free_ptr) struct scalar *h = scalars_random(c, d.n, MIX_ZERO);
    for (size_t i = 0; i < d.n; i++) {
        c->scalar_mul(&product[i], &a[i], &b[i]);
    }
    void *da = device_put(a, d.n * SCALAR_BYTES), *db = device_put(b, d.n * SCALAR_BYTES),
         *dh = device_take(d.n * SCALAR_BYTES);
    CHECK_OK(d.gpu->quotient(dh, da, db, &d.tables, dev->stream));
    device_get(h, dh, d.n * SCALAR_BYTES);
    AUTO(mem_free_ptr) struct scalar *A = interpolate(&d, a);
    AUTO(mem_free_ptr) struct scalar *B = interpolate(&d, b);
    AUTO(mem_free_ptr) struct scalar *C = interpolate(&d, product);
    for (size_t i = 0; i < d.n; i++) {
        CHECK_MSG(scalar_is_valid(c, &h[i]), "%s 2^%u: scalar %zu of H is not canonical", c->name,
                  log2, i);
    }
    size_t places = powers ? 1 : d.n < 32 ? d.n : 4;
    for (size_t k = 0; k < places; k++) {
        size_t j = places == d.n ? k : rng_below(check_rng(), d.n);
        struct scalar z, want, t, got;
        if (powers) {
            scalar_uniform(&z, c);
        } else {
            c->scalar_pow(&z, &d.root, j);
            c->scalar_mul(&z, &z, &d.shift);
        }
        want = evaluate(&d, A, &z, true);
        t = evaluate(&d, B, &z, true);
        c->scalar_mul(&want, &want, &t);
        t = evaluate(&d, C, &z, true);
        c->scalar_sub(&want, &want, &t);
        if (powers) { /* h·(zⁿ - 1) */
            struct scalar one = {{1}};
            got = evaluate(&d, h, &z, true);
            c->scalar_pow(&t, &z, d.n);
            c->scalar_sub(&t, &t, &one);
            c->scalar_mul(&got, &got, &t);
        } else {
            got = h[j];
        }
        CHECK_MSG(!memcmp(&want, &got, sizeof got), "%s 2^%u: quotient in %s wrong", c->name, log2,
                  powers ? "powers" : "the coset's Lagrange basis");
    }
    if (powers) {
        struct scalar top = h[reversed(d.n - 1, log2)];
        CHECK_MSG(scalar_is_zero(&top), "%s 2^%u: the quotient has degree n - 1", c->name, log2);
    }
    device_done();
}

static unsigned largest(void) {
    return device_of_test()->emulated ? 13 : 19;
}
static void claim_transforms(void) {
    for (unsigned log2 = 1; log2 <= largest(); log2++) {
        for (unsigned i = 0; i < CURVES_COUNT; i++) {
            check_transforms(curves_tested[i], log2, false);
        }
    }
}
static void claim_lagrange(void) {
    for (unsigned log2 = 1; log2 <= largest(); log2++) {
        for (unsigned i = 0; i < CURVES_COUNT; i++) {
            check_quotient(curves_tested[i], log2, false, false);
        }
    }
}
static void claim_powers(void) {
    for (unsigned log2 = 1; log2 <= largest(); log2++) {
        check_quotient(CURVE_BLS12_381, log2, true, false);
    }
}
static void claim_large(void) {
    if (device_of_test()->emulated) {
        check_skip("too large for the emulator");
    }
    check_transforms(CURVE_BN254, 22, false);
    check_transforms(CURVE_BLS12_381, 23, true);
    check_quotient(CURVE_BLS12_381, 22, true, false);
    check_quotient(CURVE_BN254, 21, false, true);
}
static void claim_lean(void) {
    for (unsigned log2 = 10; log2 <= largest(); log2++) {
        enum curve_id id = curves_tested[log2 % 2];
        check_transforms(id, log2, true);
        check_quotient(id, log2, false, true);
        check_quotient(CURVE_BLS12_381, log2, true, true);
    }
}
static void claim_sizes(void) {
    struct gpu_domain d;
    struct gpu_domain_options o = {.log2 = 29};
    device_of_test();
    CHECK_ERR(E_RANGE, bn254_gpu.domain_build(&d, &o, NULL, NULL));
    CHECK_ERR(E_RANGE, bls12_381_gpu.domain_build(&d, &o, NULL, NULL));
    o.log2 = 0;
    CHECK_ERR(E_RANGE, bn254_gpu.domain_build(&d, &o, NULL, NULL));
}

static double time_one(const struct domain *d, void *a, void *b, void *h, int what,
                       struct gpu_event *from, struct gpu_event *to) {
    struct gpu_stream *s = device_of_test()->stream;
    uint64_t ns[11];
    for (int i = -1; i < 11; i++) {
        uint64_t t;
        CHECK_OK(gpu_event_record(from, s));
        CHECK_OK(what == 0   ? d->gpu->ntt_inverse(a, a, &d->tables, s)
                 : what == 1 ? d->gpu->ntt_coset(a, a, &d->tables, s)
                             : d->gpu->quotient(h, a, b, &d->tables, s));
        CHECK_OK(gpu_event_record(to, s));
        CHECK_OK(gpu_event_wait(to));
        CHECK_OK(gpu_event_ns(&t, from, to));
        if (i >= 0) {
            ns[i] = t;
        }
    }
    return median_ms(ns, 11);
}
static void bench(void) {
    const struct device *dev = device_of_test();
    static const struct {
        enum curve_id curve;
        unsigned log2;
        bool powers, lean;
    } sizes[] = {{CURVE_BLS12_381, 20, false, false}, {CURVE_BLS12_381, 22, false, false},
                 {CURVE_BLS12_381, 24, false, false}, {CURVE_BLS12_381, 24, true, false},
                 {CURVE_BN254, 20, false, false},     {CURVE_BN254, 24, false, false},
                 {CURVE_BLS12_381, 27, false, false}, {CURVE_BLS12_381, 24, false, true},
                 {CURVE_BN254, 24, false, true},      {CURVE_BLS12_381, 27, false, true}};
    struct gpu_event *from = NULL, *to = NULL;
    if (dev->emulated) {
        return;
    }
    CHECK_OK(gpu_event_open(&from));
    CHECK_OK(gpu_event_open(&to));
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct domain d;
        domain_open(&d, sizes[i].curve, sizes[i].log2, sizes[i].powers, sizes[i].lean);
        void *v[3];
        size_t seed_bytes = (size_t)SCALAR_BYTES << 16;
        AUTO(mem_free_ptr) struct scalar *seed = scalars_random(d.c, (size_t)1 << 16, MIX_UNIFORM);
        for (int k = 0; k < 3; k++) {
            v[k] = device_take(d.n * SCALAR_BYTES);
            void *some = device_put(seed, seed_bytes);
            for (size_t at = 0; at < d.n * SCALAR_BYTES; at += seed_bytes) {
                CHECK_OK(gpu_copy((char *)v[k] + at, some, seed_bytes, dev->stream));
            }
        }
        double inverse = time_one(&d, v[0], v[1], v[2], 0, from, to),
               coset = time_one(&d, v[0], v[1], v[2], 1, from, to);
        double quotient = time_one(&d, v[0], v[1], v[2], 2, from, to);
        printf("{\"bench\": \"ntt\", \"curve\": \"%s\", \"log2\": %u, \"form\": \"%s\", "
               "\"tables\": \"%s\", \"inverse_ms\": %.3f, \"coset_ms\": %.3f, \"quotient_ms\": "
               "%.3f}\n",
               d.c->name, d.log2, sizes[i].powers ? "powers" : "lagrange",
               sizes[i].lean ? "lean" : "full", inverse, coset, quotient);
        device_done();
    }
    gpu_event_close(&from);
    gpu_event_close(&to);
}

int kernel_ntt(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"transforms of every size are right", claim_transforms},
        {"quotients in the coset's Lagrange basis are right", claim_lagrange},
        {"quotients in powers are right", claim_powers},
        {"transforms and quotients are the same with lean tables", claim_lean},
        {"large transforms and quotients are right", claim_large},
        {"a domain that is too large or empty is refused", claim_sizes},
    };
    static const struct check_claim benches[] = {{"ntt bench", bench}};
    if (argc == 2 && !strcmp(argv[1], "--bench")) {
        return check_main(1, argv, benches, COUNT_OF(benches));
    }
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
