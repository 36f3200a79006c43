/* The fields of one curve in one body of the multiplication, held against shift-and-add arithmetic on plain integers.
 * Compiled once per curve and body. */
#include "node/curve/fields.h"
#include "tests/check/check.h"

#ifdef FIELD_USE_ADX
#include <cpuid.h>
static void need_adx(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b >> 19 & 1) || !(b >> 8 & 1)) {
        check_skip("this processor has no ADX");
    }
}
#else
static void need_adx(void) {}
#endif

/* out = 2·out + add mod p, all plain integers below p. */
static void slow_step(uint64_t *out, const uint64_t *add, const uint64_t *p, size_t limbs) {
    for (int twice = 0; twice < 2; twice++) {
        const uint64_t *other = twice ? add : out;
        uint64_t sum[8] = {0};
        unsigned carry = 0;
        for (size_t i = 0; i < limbs; i++) {
            word2 s = (word2)out[i] + other[i] + carry;
            sum[i] = (uint64_t)s;
            carry = (unsigned)(s >> 64);
        }
        bool less = carry == 0;
        if (less) {
            less = false;
            for (size_t i = limbs; i-- > 0;) {
                if (sum[i] != p[i]) {
                    less = sum[i] < p[i];
                    break;
                }
            }
        }
        uint64_t borrow = 0;
        for (size_t i = 0; i < limbs; i++) {
            word2 d = (word2)sum[i] - (less ? 0 : p[i]) - borrow;
            out[i] = (uint64_t)d;
            borrow = (uint64_t)(d >> 64) & 1;
        }
    }
}

/* a·b mod p on plain integers. */
static void slow_mul(uint64_t *out, const uint64_t *a, const uint64_t *b, const uint64_t *p,
                     size_t limbs) {
    static const uint64_t nothing[8] = {0};
    uint64_t sum[8] = {0};
    for (size_t bit = 64 * limbs; bit-- > 0;) {
        slow_step(sum, a[bit / 64] >> (bit % 64) & 1 ? b : nothing, p, limbs);
    }
    memcpy(out, sum, 8 * limbs);
}

#define FIELD   fp
#define FIELD_C FP
#include "tests/unit/curve/field_claims.h"
#define FIELD   fr
#define FIELD_C FR
#include "tests/unit/curve/field_claims.h"

static void claim_fp_sqrt(void) {
    need_adx();
    for (int i = 0; i < 200; i++) {
        fp a, square, root, minus;
        a = fp_edge_or_random(i);
        fp_sqr(&square, &a);
        CHECK(fp_sqrt(&root, &square));
        fp_neg(&minus, &a);
        CHECK(fp_equal(&root, &a) || fp_equal(&root, &minus));
        fp_neg(&minus, &square); /* -1 is not a square */
        CHECK(fp_is_zero(&square) || !fp_sqrt(&root, &minus));
    }
}

static fp2 fp2_some(int i) {
    fp2 a = {fp_edge_or_random(i), fp_edge_or_random(i / 3)};
    if (i % 7 == 0) {
        a.c1 = fp_zero;
    }
    if (i % 11 == 0) {
        a.c0 = fp_zero;
    }
    return a;
}

static void claim_fp2_mul(void) {
    need_adx();
    for (int i = 0; i < 300; i++) {
        fp2 a = fp2_some(i), b = fp2_some(301 - i), want, got, t;
        fp x, y;
        fp_mul(&x, &a.c0, &b.c0);
        fp_mul(&y, &a.c1, &b.c1);
        fp_sub(&want.c0, &x, &y);
        fp_mul(&x, &a.c0, &b.c1);
        fp_mul(&y, &a.c1, &b.c0);
        fp_add(&want.c1, &x, &y);
        fp2_mul(&got, &a, &b);
        CHECK(fp2_equal(&want, &got));
        t = a;
        fp2_mul(&t, &t, &b);
        CHECK(fp2_equal(&want, &t));
        t = b;
        fp2_mul(&t, &a, &t);
        CHECK(fp2_equal(&want, &t));
        fp2_mul(&want, &a, &a);
        fp2_sqr(&got, &a);
        CHECK(fp2_equal(&want, &got));
        t = a;
        fp2_sqr(&t, &t);
        CHECK(fp2_equal(&want, &t));
        const fp2 xi = {{{XI_C0}}, {{1}}};
        fp2 xi_mont;
        fp_from_small(&xi_mont.c0, xi.c0.w[0]);
        fp_from_small(&xi_mont.c1, xi.c1.w[0]);
        fp2_mul(&want, &a, &xi_mont);
        t = a;
        fp2_mul_xi(&t, &t);
        CHECK(fp2_equal(&want, &t));
    }
}

static void claim_fp2_inv_sqrt(void) {
    need_adx();
    int squares = 0;
    for (int i = 0; i < 200; i++) {
        fp2 a = fp2_some(i), inverse, t, root;
        fp2_inv(&inverse, &a);
        fp2_mul(&t, &inverse, &a);
        CHECK(fp2_is_zero(&a) ? fp2_is_zero(&t) : fp2_equal(&t, &fp2_one));
        fp2_sqr(&t, &a);
        CHECK(fp2_sqrt(&root, &t));
        fp2_neg(&inverse, &a);
        CHECK(fp2_equal(&root, &a) || fp2_equal(&root, &inverse));
        /* xi is no square, so exactly one of a and a·xi is. */
        fp2_mul_xi(&t, &a);
        bool is_square = fp2_sqrt(&root, &a);
        squares += is_square;
        CHECK(fp2_is_zero(&a) || is_square != fp2_sqrt(&root, &t));
    }
    CHECK(squares > 50);
}

static void claim_fp2_inv_batch(void) {
    need_adx();
    fp2 x[20], inverses[20], scratch[20];
    for (int i = 0; i < 20; i++) {
        x[i] = i % 6 == 2 ? fp2_zero : fp2_some(100 + i);
        inverses[i] = x[i];
    }
    fp2_inv_batch(inverses, scratch, 20);
    for (int i = 0; i < 20; i++) {
        fp2 want;
        fp2_inv(&want, &x[i]);
        CHECK(fp2_equal(&want, &inverses[i]));
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"fp product equals the sum of shifts, edges and random, any aliasing", fp_claim_mul},
        {"fp add, sub, neg, double, halve agree with plain integers", fp_claim_linear},
        {"fp inverse times itself is one, and zero's is zero", fp_claim_inv},
        {"fp power equals repeated products", fp_claim_pow},
        {"fp enters and leaves Montgomery form, and p and above are refused", fp_claim_convert},
        {"fp batch inversion equals single ones", fp_claim_inv_batch},
        {"fp is_larger is y > -y", fp_claim_is_larger},
        {"fr product equals the sum of shifts, edges and random, any aliasing", fr_claim_mul},
        {"fr add, sub, neg, double, halve agree with plain integers", fr_claim_linear},
        {"fr inverse times itself is one, and zero's is zero", fr_claim_inv},
        {"fr power equals repeated products", fr_claim_pow},
        {"fr enters and leaves Montgomery form, and r and above are refused", fr_claim_convert},
        {"fr batch inversion equals single ones", fr_claim_inv_batch},
        {"fr is_larger is y > -y", fr_claim_is_larger},
        {"fp square roots", claim_fp_sqrt},
        {"fp2 products, squares and xi agree with the schoolbook, any aliasing", claim_fp2_mul},
        {"fp2 inverses and square roots", claim_fp2_inv_sqrt},
        {"fp2 batch inversion equals single ones", claim_fp2_inv_batch},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
