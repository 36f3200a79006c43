/* Transforms and the quotient against their definitions, in every tier this processor has. */
#include "node/cpu/ntt.h"

#include "node/base/mem.h"
#include "node/cpu/cpu.h"
#include "node/cpu/ntt_body.h"
#include "node/cpu/quotient.h"
#include "node/cpu/tier.h"
#include "tests/unit/cpu/sample.h"

#include <string.h>

static const enum curve_id curve_ids[] = {CURVE_BN254, CURVE_BLS12_381};
static _Atomic int never;

/* A domain with its tables in one tier. */
struct bench {
    const struct curve *curve;
    struct domain domain;
    struct ntt ntt;
    size_t count;
    void *tables; /* owned */
};

static void bench_open(struct bench *b, enum curve_id curve, const char *tier, unsigned log2,
                       enum h_basis basis, struct pool *pool) {
    const struct cpu_ops *ops = NULL;
    CHECK_OK(tier_find(&ops, curve, tier));
    *b = (struct bench){.curve = curve_by_id(curve), .count = (size_t)1 << log2};
    CHECK_OK(mem_new_raw(&b->tables, ops->domain->tables_bytes(log2), 1));
    ops->domain->build(&b->domain, b->tables, log2, basis, pool);
    b->ntt = (struct ntt){
        .domain = &b->domain, .body = ops->domain->body(log2), .pool = pool, .cancel = &never};
}

static void *vector_new(const struct bench *b) {
    void *v = NULL;
    CHECK_OK(mem_new_raw(&v, ntt_vector_bytes(b->ntt.body, b->domain.log2), 1));
    return v;
}

static void set_rows(const struct bench *b, void *vector, const struct scalar *x) {
    struct scalar r, two = {{2}};
    b->curve->scalar_pow(&r, &two, 256);
    struct scalar *rows = (struct scalar *)(void *)ntt_rows(b->ntt.body, vector, b->domain.log2);
    for (size_t i = 0; i < b->count; i++) {
        b->curve->scalar_mul(&rows[i], &x[i], &r);
    }
}

static void to_powers(struct scalar *out, const struct bench *b, const struct scalar *x) {
    void *v = vector_new(b);
    set_rows(b, v, x);
    CHECK(ntt_enter(&b->ntt, &v, 1) && ntt_dif(&b->ntt, &v, 1, false));
    b->ntt.body->leave_powers((uint8_t *)out, &b->domain, v, b->domain.weights[WEIGHT_POWERS], true,
                              false, 0, b->count >> b->ntt.body->unit_log2);
    mem_free(v);
}

static void to_coset(struct scalar *out, const struct bench *b, const struct scalar *x) {
    void *v = vector_new(b);
    set_rows(b, v, x);
    CHECK(ntt_enter(&b->ntt, &v, 1) && ntt_to_coset(&b->ntt, &v, 1));
    b->ntt.body->leave_values((uint8_t *)out, &b->domain, v, b->domain.weights[WEIGHT_VALUES], 0,
                              b->count >> b->ntt.body->unit_log2);
    mem_free(v);
}

static struct scalar *scalars_new(size_t count) {
    struct scalar *s = NULL;
    CHECK_OK(mem_new(&s, count, sizeof *s));
    return s;
}

static struct scalar *scalars_random(const struct curve *c, size_t count) {
    struct scalar *s = scalars_new(count);
    uint64_t kind = rng_below(check_rng(), 4);
    for (size_t i = 0; i < count; i++) {
        sample_scalar(&s[i], c);
        if (kind == 0) { /* the largest */
            struct scalar one = {{1}}, zero = {{0}};
            c->scalar_sub(&s[i], &zero, &one);
        } else if (kind == 1) {
            s[i] = (struct scalar){{i & 1}};
        }
    }
    return s;
}

/* Σ f_k x^k. */
static struct scalar evaluate(const struct curve *c, const struct scalar *f, size_t count,
                              const struct scalar *x) {
    struct scalar sum = {{0}};
    for (size_t k = count; k-- > 0;) {
        c->scalar_mul(&sum, &sum, x);
        c->scalar_add(&sum, &sum, &f[k]);
    }
    return sum;
}

static void domain_point(struct scalar *out, const struct bench *b, uint64_t idx, bool on_coset) {
    struct scalar g;
    if (b->domain.basis == H_POWERS) {
        b->curve->scalar_root_bellman(out, b->domain.log2);
    } else {
        b->curve->scalar_root_snarkjs(out, b->domain.log2);
    }
    b->curve->scalar_pow(out, out, idx);
    if (on_coset) {
        const struct cpu_ops *ops = NULL;
        CHECK_OK(tier_find(&ops, b->curve->id, NULL));
        ops->domain->coset(g.w, b->domain.log2, b->domain.basis);
        b->curve->scalar_mul(out, out, &g);
    }
}

static void check_places(const struct bench *b, const struct scalar *f, const struct scalar *values,
                         bool on_coset, const char *tier) {
    for (int i = 0; i < 5; i++) {
        uint64_t idx = i == 0   ? 0
                       : i == 1 ? b->count - 1
                       : i == 2 ? 1
                                : rng_below(check_rng(), b->count);
        struct scalar x, want;
        domain_point(&x, b, idx, on_coset);
        want = evaluate(b->curve, f, b->count, &x);
        CHECK_MSG(!memcmp(&want, &values[idx], sizeof want),
                  "%s, %s, 2^%u points: value %llu %s is wrong", b->curve->name, tier,
                  b->domain.log2, (unsigned long long)idx, on_coset ? "on the coset" : "");
    }
}

static void transforms(enum curve_id curve, unsigned log2, enum h_basis basis, struct pool *pool) {
    const size_t count = (size_t)1 << log2;
    struct scalar *x = scalars_random(curve_by_id(curve), count), *first_powers = NULL,
                  *first_values = NULL;
    for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
        struct bench b;
        struct scalar *powers = scalars_new(count), *values = scalars_new(count);
        bench_open(&b, curve, *tier, log2, basis, pool);
        to_powers(powers, &b, x);
        to_coset(values, &b, x);
        if (!first_powers) {
            check_places(&b, powers, x, false, *tier);
            check_places(&b, powers, values, true, *tier);
            first_powers = powers;
            first_values = values;
        } else {
            CHECK_MEM(first_powers, powers, count * sizeof *powers);
            CHECK_MEM(first_values, values, count * sizeof *values);
            mem_free(powers);
            mem_free(values);
        }
        mem_free(b.tables);
    }
    mem_free(x);
    mem_free(first_powers);
    mem_free(first_values);
}

static void with_pool(unsigned threads, unsigned from_log2, unsigned to_log2, unsigned step) {
    struct pool *pool = NULL;
    CHECK_OK(pool_open(&pool, threads));
    for (size_t c = 0; c < COUNT_OF(curve_ids); c++) {
        for (unsigned log2 = from_log2; log2 <= to_log2; log2 += step) {
            transforms(curve_ids[c], log2, log2 % 2 ? H_POWERS : H_COSET_LAGRANGE, pool);
            transforms(curve_ids[c], log2, log2 % 2 ? H_COSET_LAGRANGE : H_POWERS, pool);
        }
    }
    pool_close(&pool);
}
static void claim_small_sizes(void) {
    with_pool(1, 1, 12, 1);
}
static void claim_threads(void) {
    with_pool(3, 1, 14, 1);
}
static void claim_large_sizes(void) {
    with_pool(2, 15, 18, 1);
}

/* The shift where there is no 2n-th root: tables of that size are too large for a test, so only the constant. */
static void claim_last_domain(void) {
    for (size_t c = 0; c < COUNT_OF(curve_ids); c++) {
        const struct curve *curve = curve_by_id(curve_ids[c]);
        const struct cpu_ops *ops = NULL;
        struct scalar g, root;
        CHECK_OK(tier_find(&ops, curve_ids[c], NULL));
        ops->domain->coset(g.w, curve->two_adicity, H_COSET_LAGRANGE);
        CHECK(g.w[0] == 25 && !g.w[1] && !g.w[2] && !g.w[3]);
        ops->domain->coset(g.w, curve->two_adicity - 1, H_COSET_LAGRANGE);
        curve->scalar_root_snarkjs(&root, curve->two_adicity);
        CHECK_MEM(&root, &g, sizeof g);
    }
}

/* --- Quotient --- */

static void run_quotient(struct scalar *h, const struct bench *b, const struct scalar *a_rows,
                         const struct scalar *b_rows) {
    struct quotient q = {.ntt = b->ntt,
                         .a = vector_new(b),
                         .b = vector_new(b),
                         .c = vector_new(b),
                         .h = (uint8_t *)h};
    set_rows(b, q.a, a_rows);
    set_rows(b, q.b, b_rows);
    CHECK(quotient_run(&q));
    mem_free(q.a);
    mem_free(q.b);
    mem_free(q.c);
}

/* f = A·B as 2n coefficients, less C = its remainder modulo x^n - 1, divided by x^n - 1: the quotient to h. */
static void divide(struct scalar *h, struct scalar *difference, const struct bench *b,
                   const struct scalar *a_rows, const struct scalar *b_rows) {
    const struct curve *c = b->curve;
    const size_t n = b->count;
    struct scalar *f[3], *rows = scalars_new(n);
    for (size_t i = 0; i < n; i++) {
        c->scalar_mul(&rows[i], &a_rows[i], &b_rows[i]);
    }
    for (int k = 0; k < 3; k++) {
        f[k] = scalars_new(n);
        to_powers(f[k], b, k == 0 ? a_rows : k == 1 ? b_rows : rows);
    }
    memset(difference, 0, 2 * n * sizeof *difference);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            struct scalar t;
            c->scalar_mul(&t, &f[0][i], &f[1][k]);
            c->scalar_add(&difference[i + k], &difference[i + k], &t);
        }
    }
    for (size_t i = 0; i < n; i++) {
        c->scalar_sub(&difference[i], &difference[i], &f[2][i]);
    }
    struct scalar *rest = scalars_new(2 * n), zero = {{0}};
    memcpy(rest, difference, 2 * n * sizeof *rest);
    for (size_t k = 2 * n; k-- > n;) {
        h[k - n] = rest[k];
        c->scalar_add(&rest[k - n], &rest[k - n], &rest[k]);
    }
    for (size_t k = 0; k < n; k++) {
        CHECK_MEM(&zero, &rest[k], sizeof zero);
    }
    for (int k = 0; k < 3; k++) {
        mem_free(f[k]);
    }
    mem_free(rows);
    mem_free(rest);
}

static void quotients(enum curve_id curve, unsigned log2, enum h_basis basis, struct pool *pool) {
    const size_t n = (size_t)1 << log2;
    struct scalar *rows[2] = {scalars_random(curve_by_id(curve), n),
                              scalars_random(curve_by_id(curve), n)};
    struct scalar *want = scalars_new(n), *got = scalars_new(n), *difference = scalars_new(2 * n);
    for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
        struct bench b;
        bench_open(&b, curve, *tier, log2, basis, pool);
        if (tier == cpu_tiers_usable()) {
            divide(want, difference, &b, rows[0], rows[1]);
            for (size_t j = 0; basis == H_COSET_LAGRANGE && j < n; j++) {
                struct scalar x;
                domain_point(&x, &b, j, true);
                want[j] = evaluate(b.curve, difference, 2 * n, &x);
            }
        }
        memset(got, 0xee, n * sizeof *got);
        run_quotient(got, &b, rows[0], rows[1]);
        CHECK_MSG(!memcmp(want, got, n * sizeof *want), "%s, %s, 2^%u points, basis %d: wrong h",
                  b.curve->name, *tier, log2, (int)basis);
        mem_free(b.tables);
    }
    mem_free(rows[0]);
    mem_free(rows[1]);
    mem_free(want);
    mem_free(got);
    mem_free(difference);
}

static void quotients_all(unsigned to_log2, enum h_basis basis) {
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        struct pool *pool = NULL;
        CHECK_OK(pool_open(&pool, threads));
        for (size_t c = 0; c < COUNT_OF(curve_ids); c++) {
            for (unsigned log2 = 1; log2 <= to_log2; log2++) {
                quotients(curve_ids[c], log2, basis, pool);
            }
        }
        pool_close(&pool);
    }
}
static void claim_quotient_coset(void) {
    quotients_all(8, H_COSET_LAGRANGE);
}
static void claim_quotient_powers(void) {
    quotients_all(9, H_POWERS);
}

/* (A·B - C)(x) = h(x)·(x^n - 1) at one x, and all tiers equal. */
static void claim_quotient_large(void) {
    struct pool *pool = NULL;
    CHECK_OK(pool_open(&pool, 2));
    for (unsigned log2 = 13; log2 <= 15; log2++) {
        const struct curve *c = curve_by_id(curve_ids[log2 % 2]);
        const size_t n = (size_t)1 << log2;
        struct scalar *x[3] = {scalars_random(c, n), scalars_random(c, n), scalars_new(n)};
        struct scalar *first = NULL;
        for (size_t i = 0; i < n; i++) {
            c->scalar_mul(&x[2][i], &x[0][i], &x[1][i]);
        }
        for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
            struct bench b;
            struct scalar *h = scalars_new(n);
            bench_open(&b, c->id, *tier, log2, H_POWERS, pool);
            run_quotient(h, &b, x[0], x[1]);
            if (first) {
                CHECK_MEM(first, h, n * sizeof *h);
                mem_free(h);
                mem_free(b.tables);
                continue;
            }
            struct scalar at, v[3], left, right, one = {{1}}, *f = scalars_new(n);
            sample_scalar(&at, c);
            for (int k = 0; k < 3; k++) {
                to_powers(f, &b, x[k]);
                v[k] = evaluate(c, f, n, &at);
            }
            c->scalar_mul(&left, &v[0], &v[1]);
            c->scalar_sub(&left, &left, &v[2]);
            c->scalar_pow(&right, &at, n);
            c->scalar_sub(&right, &right, &one);
            v[0] = evaluate(c, h, n, &at);
            c->scalar_mul(&right, &right, &v[0]);
            CHECK_MEM(&left, &right, sizeof left);
            first = h;
            mem_free(f);
            mem_free(b.tables);
        }
        for (int k = 0; k < 3; k++) {
            mem_free(x[k]);
        }
        mem_free(first);
    }
    pool_close(&pool);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"transforms of 2 to 2^12 points equal their definition", claim_small_sizes},
        {"transforms by three threads", claim_threads},
        {"transforms of 2^15 to 2^18 points", claim_large_sizes},
        {"the last domain of a curve has the shift 25", claim_last_domain},
        {"the quotient on the coset equals polynomial division", claim_quotient_coset},
        {"the quotient in powers equals polynomial division", claim_quotient_powers},
        {"large quotients hold at a random point", claim_quotient_large},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
