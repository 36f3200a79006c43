/* fp6 and fp12 of one curve against their definitions. Compiled once per curve. */
#include "node/curve/pairing_tmpl.h"
#include "tests/unit/curve/random_tmpl.h"

static fp6 fp6_random(void) {
    return (fp6){fp2_random(), fp2_random(), fp2_random()};
}
static fp12 fp12_random(void) {
    return (fp12){fp6_random(), fp6_random()};
}
static bool fp6_equal(const fp6 *a, const fp6 *b) {
    return fp2_equal(&a->c0, &b->c0) && fp2_equal(&a->c1, &b->c1) && fp2_equal(&a->c2, &b->c2);
}

/* Schoolbook: coefficients of v^k, folded by v³ = xi. */
static fp6 slow_mul(const fp6 *a, const fp6 *b) {
    const fp2 x[3] = {a->c0, a->c1, a->c2}, y[3] = {b->c0, b->c1, b->c2};
    fp2 sum[5] = {{{{0}}, {{0}}}};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            fp2 t;
            fp2_mul(&t, &x[i], &y[k]);
            fp2_add(&sum[i + k], &sum[i + k], &t);
        }
    }
    for (int k = 0; k < 2; k++) {
        fp2_mul_xi(&sum[k + 3], &sum[k + 3]);
        fp2_add(&sum[k], &sum[k], &sum[k + 3]);
    }
    return (fp6){sum[0], sum[1], sum[2]};
}

static void claim_fp6(void) {
    for (int i = 0; i < 50; i++) {
        fp6 a = fp6_random(), b = fp6_random(), want, got, t;
        if (i == 1) {
            a.c1 = fp2_zero;
        }
        want = slow_mul(&a, &b);
        fp6_mul(&got, &a, &b);
        CHECK(fp6_equal(&want, &got));
        t = a;
        fp6_mul(&t, &t, &b);
        CHECK(fp6_equal(&want, &t));
        t = b;
        fp6_mul(&t, &a, &t);
        CHECK(fp6_equal(&want, &t));
        want = slow_mul(&a, &a);
        t = a;
        fp6_sqr(&t, &t);
        CHECK(fp6_equal(&want, &t));
        t = a;
        fp6_inv(&t, &t);
        t = slow_mul(&t, &a);
        CHECK(fp6_equal(&t, &(fp6){.c0 = fp2_one}));
        fp6 sparse = b;
        sparse.c2 = fp2_zero;
        want = slow_mul(&a, &sparse);
        t = a;
        fp6_mul_01(&t, &t, &b.c0, &b.c1);
        CHECK(fp6_equal(&want, &t));
        const fp6 v = {.c1 = fp2_one};
        want = slow_mul(&a, &v);
        t = a;
        fp6_mul_v(&t, &t);
        CHECK(fp6_equal(&want, &t));
    }
}

static void claim_fp12(void) {
    for (int i = 0; i < 30; i++) {
        fp12 a = fp12_random(), b = fp12_random(), want, got, t;
        fp6 low = slow_mul(&a.c0, &b.c0), high = slow_mul(&a.c1, &b.c1), s, u;
        fp6_mul_v(&high, &high);
        fp6_add(&want.c0, &low, &high);
        s = slow_mul(&a.c0, &b.c1);
        u = slow_mul(&a.c1, &b.c0);
        fp6_add(&want.c1, &s, &u);
        fp12_mul(&got, &a, &b);
        CHECK(fp12_equal(&want, &got));
        t = b;
        fp12_mul(&t, &a, &t);
        CHECK(fp12_equal(&want, &t));
        fp12_mul(&want, &a, &a);
        t = a;
        fp12_sqr(&t, &t);
        CHECK(fp12_equal(&want, &t));
        t = a;
        fp12_inv(&t, &t);
        fp12_mul(&t, &t, &a);
        CHECK(fp12_is_one(&t));
    }
}

static void fp12_pow(fp12 *out, const fp12 *a, const uint64_t *k, size_t words) {
    fp12 x;
    fp12_set_one(&x);
    for (unsigned bit = words_bits(k, words); bit-- > 0;) {
        fp12_sqr(&x, &x);
        if (k[bit / 64] >> (bit % 64) & 1) {
            fp12_mul(&x, &x, a);
        }
    }
    *out = x;
}

static void claim_frobenius(void) {
    for (int i = 0; i < 3; i++) {
        fp12 a = fp12_random(), want = a, got;
        for (int power = 1; power <= 3; power++) {
            fp12_pow(&want, &want, fp_modulus.w, FP_LIMBS);
            fp12_frobenius(&got, &a, power);
            CHECK(fp12_equal(&want, &got));
            got = a;
            fp12_frobenius(&got, &got, power);
            CHECK(fp12_equal(&want, &got));
        }
        fp12_frobenius(&got, &a, 3);
        fp12_frobenius(&got, &got, 3);
        fp12_conj(&want, &a);
        CHECK(fp12_equal(&want, &got)); /* p⁶ */
    }
}

static void claim_cyclotomic(void) {
    for (int i = 0; i < 5; i++) {
        fp12 a = fp12_random(), t, want, got;
        fp12_inv(&t, &a);
        fp12_conj(&a, &a);
        fp12_mul(&a, &a, &t);
        fp12_frobenius(&t, &a, 2);
        fp12_mul(&a, &a, &t); /* order divides p⁴ - p² + 1 */
        fp12_sqr(&want, &a);
        fp12_cyclotomic_sqr(&got, &a);
        CHECK(fp12_equal(&want, &got));
        t = a;
        fp12_cyclotomic_sqr(&t, &t);
        CHECK(fp12_equal(&want, &t));
        uint64_t k[2];
        rng_fill(check_rng(), k, sizeof k);
        fp12_pow(&want, &a, k, 2);
        t = a;
        fp12_cyclotomic_pow(&t, &t, k, 2);
        CHECK(fp12_equal(&want, &t));
        /* The pairing's values have order r. */
        final_exponentiation(&t, &a);
        fp12_pow(&got, &t, fr_modulus.w, 4);
        CHECK(fp12_is_one(&got));
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"fp6 products, squares and inverses agree with the schoolbook, any aliasing", claim_fp6},
        {"fp12 products, squares and inverses agree with the schoolbook, any aliasing", claim_fp12},
        {"Frobenius maps are powers of p", claim_frobenius},
        {"cyclotomic squares and powers equal plain ones; the final power has order r",
         claim_cyclotomic},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
