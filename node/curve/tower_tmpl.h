/* The tower above fp2: fp6 = fp2[v]/(v³ - xi), fp12 = fp6[w]/(w² - v). For the pairing.
 *
 * Output first; outputs may be inputs. An fp12 in memory is twelve coordinates in snarkjs's order.
 *
 *   function        fp2 products (M, S)     origin
 *   fp6_mul         6M                      Karatsuba (Devegili et al., ePrint 2006/471)
 *   fp6_sqr         2M + 3S                 Chung, Hasan, SQR2
 *   fp6_inv         9M + 3S + 1 inversion
 *   fp12_mul        18M                     Karatsuba over fp6
 *   fp12_sqr        12M                     complex squaring
 *   cyclotomic_sqr  9S                      Granger, Scott, ePrint 2009/565: elements of order dividing p⁴ - p² + 1
 *
 * Threads  any; pure. Variable time.
 */
#pragma once
#include "node/curve/fields.h"

typedef struct {
    fp2 c0, c1, c2; /* c0 + c1 v + c2 v² */
} fp6;

typedef struct {
    fp6 c0, c1; /* c0 + c1 w */
} fp12;

static inline void fp6_add(fp6 *out, const fp6 *a, const fp6 *b) {
    fp2_add(&out->c0, &a->c0, &b->c0);
    fp2_add(&out->c1, &a->c1, &b->c1);
    fp2_add(&out->c2, &a->c2, &b->c2);
}
static inline void fp6_sub(fp6 *out, const fp6 *a, const fp6 *b) {
    fp2_sub(&out->c0, &a->c0, &b->c0);
    fp2_sub(&out->c1, &a->c1, &b->c1);
    fp2_sub(&out->c2, &a->c2, &b->c2);
}
static inline void fp6_neg(fp6 *out, const fp6 *a) {
    fp2_neg(&out->c0, &a->c0);
    fp2_neg(&out->c1, &a->c1);
    fp2_neg(&out->c2, &a->c2);
}
/* a·v. */
static inline void fp6_mul_v(fp6 *out, const fp6 *a) {
    fp2 wrap;
    fp2_mul_xi(&wrap, &a->c2);
    out->c2 = a->c1;
    out->c1 = a->c0;
    out->c0 = wrap;
}
static inline void fp6_mul_fp2(fp6 *out, const fp6 *a, const fp2 *k) {
    fp2_mul(&out->c0, &a->c0, k);
    fp2_mul(&out->c1, &a->c1, k);
    fp2_mul(&out->c2, &a->c2, k);
}
static inline void fp6_mul_fp(fp6 *out, const fp6 *a, const fp *k) {
    fp2_mul_fp(&out->c0, &a->c0, k);
    fp2_mul_fp(&out->c1, &a->c1, k);
    fp2_mul_fp(&out->c2, &a->c2, k);
}

/* *out = (a + b)(c + d) - x - y: the mixed terms of a Karatsuba step. */
static inline void fp2_mixed(fp2 *out, const fp2 *a, const fp2 *b, const fp2 *c, const fp2 *d,
                             const fp2 *x, const fp2 *y) {
    fp2 s, t;
    fp2_add(&s, a, b);
    fp2_add(&t, c, d);
    fp2_mul(&s, &s, &t);
    fp2_sub(&s, &s, x);
    fp2_sub(out, &s, y);
}

static inline void fp6_mul(fp6 *out, const fp6 *a, const fp6 *b) {
    fp2 t0, t1, t2, m01, m02, m12;
    fp2_mul(&t0, &a->c0, &b->c0);
    fp2_mul(&t1, &a->c1, &b->c1);
    fp2_mul(&t2, &a->c2, &b->c2);
    fp2_mixed(&m12, &a->c1, &a->c2, &b->c1, &b->c2, &t1, &t2);
    fp2_mixed(&m01, &a->c0, &a->c1, &b->c0, &b->c1, &t0, &t1);
    fp2_mixed(&m02, &a->c0, &a->c2, &b->c0, &b->c2, &t0, &t2);
    fp2_mul_xi(&m12, &m12);
    fp2_add(&out->c0, &t0, &m12);
    fp2_add(&out->c2, &m02, &t1);
    fp2_mul_xi(&t2, &t2);
    fp2_add(&out->c1, &m01, &t2);
}

/* a·(b0 + b1 v): 5M. */
static inline void fp6_mul_01(fp6 *out, const fp6 *a, const fp2 *b0, const fp2 *b1) {
    fp2 t0, t1, m01, high, c2;
    fp2_mul(&t0, &a->c0, b0);
    fp2_mul(&t1, &a->c1, b1);
    fp2_mixed(&m01, &a->c0, &a->c1, b0, b1, &t0, &t1);
    fp2_add(&high, &a->c1, &a->c2);
    fp2_mul(&high, &high, b1);
    fp2_sub(&high, &high, &t1); /* a2 b1 */
    fp2_mul_xi(&high, &high);
    fp2_add(&c2, &a->c0, &a->c2);
    fp2_mul(&c2, &c2, b0);
    fp2_sub(&c2, &c2, &t0); /* a2 b0 */
    fp2_add(&out->c2, &c2, &t1);
    out->c1 = m01;
    fp2_add(&out->c0, &t0, &high);
}

static inline void fp6_sqr(fp6 *out, const fp6 *a) {
    fp2 s0, s1, s2, s3, s4;
    fp2_sqr(&s0, &a->c0);
    fp2_mul(&s1, &a->c0, &a->c1);
    fp2_double(&s1, &s1);
    fp2_sub(&s2, &a->c0, &a->c1);
    fp2_add(&s2, &s2, &a->c2);
    fp2_sqr(&s2, &s2);
    fp2_mul(&s3, &a->c1, &a->c2);
    fp2_double(&s3, &s3);
    fp2_sqr(&s4, &a->c2);
    fp2_add(&out->c2, &s1, &s2);
    fp2_add(&out->c2, &out->c2, &s3);
    fp2_sub(&out->c2, &out->c2, &s0);
    fp2_sub(&out->c2, &out->c2, &s4);
    fp2_mul_xi(&s3, &s3);
    fp2_add(&out->c0, &s0, &s3);
    fp2_mul_xi(&s4, &s4);
    fp2_add(&out->c1, &s1, &s4);
}

/* 1/a; 0 gives 0. The adjoint (A, B, C) over the norm a0 A + xi (a2 B + a1 C). */
static inline void fp6_inv(fp6 *out, const fp6 *a) {
    fp2 x, y, z, t, norm;
    fp2_mul(&t, &a->c1, &a->c2);
    fp2_mul_xi(&t, &t);
    fp2_sqr(&x, &a->c0);
    fp2_sub(&x, &x, &t);
    fp2_sqr(&y, &a->c2);
    fp2_mul_xi(&y, &y);
    fp2_mul(&t, &a->c0, &a->c1);
    fp2_sub(&y, &y, &t);
    fp2_sqr(&z, &a->c1);
    fp2_mul(&t, &a->c0, &a->c2);
    fp2_sub(&z, &z, &t);
    fp2_mul(&norm, &a->c2, &y);
    fp2_mul(&t, &a->c1, &z);
    fp2_add(&norm, &norm, &t);
    fp2_mul_xi(&norm, &norm);
    fp2_mul(&t, &a->c0, &x);
    fp2_add(&norm, &norm, &t);
    fp2_inv(&norm, &norm);
    fp2_mul(&out->c0, &x, &norm);
    fp2_mul(&out->c1, &y, &norm);
    fp2_mul(&out->c2, &z, &norm);
}

static inline void fp12_set_one(fp12 *out) {
    *out = (fp12){.c0 = {.c0 = fp2_one}};
}

static inline bool fp12_equal(const fp12 *a, const fp12 *b) {
    return memcmp(a, b, sizeof *a) == 0; /* canonical, no padding */
}

static inline bool fp12_is_one(const fp12 *a) {
    fp12 one;
    fp12_set_one(&one);
    return fp12_equal(a, &one);
}

static inline void fp12_mul(fp12 *out, const fp12 *a, const fp12 *b) {
    fp6 low, high, s, t;
    fp6_mul(&low, &a->c0, &b->c0);
    fp6_mul(&high, &a->c1, &b->c1);
    fp6_add(&s, &a->c0, &a->c1);
    fp6_add(&t, &b->c0, &b->c1);
    fp6_mul(&s, &s, &t);
    fp6_sub(&s, &s, &low);
    fp6_sub(&out->c1, &s, &high);
    fp6_mul_v(&high, &high);
    fp6_add(&out->c0, &low, &high);
}

/* (a0 + a1)(a0 + v a1) - a0 a1 - v a0 a1, and 2 a0 a1 w. */
static inline void fp12_sqr(fp12 *out, const fp12 *a) {
    fp6 product, s, t;
    fp6_mul(&product, &a->c0, &a->c1);
    fp6_mul_v(&t, &a->c1);
    fp6_add(&t, &t, &a->c0);
    fp6_add(&s, &a->c0, &a->c1);
    fp6_mul(&s, &s, &t);
    fp6_sub(&s, &s, &product);
    fp6_add(&out->c1, &product, &product);
    fp6_mul_v(&product, &product);
    fp6_sub(&out->c0, &s, &product);
}

/* c0 - c1 w: a^(p⁶), and the inverse of an element whose order divides p⁶ + 1. */
static inline void fp12_conj(fp12 *out, const fp12 *a) {
    out->c0 = a->c0;
    fp6_neg(&out->c1, &a->c1);
}

static inline void fp12_inv(fp12 *out, const fp12 *a) {
    fp6 norm, t;
    fp6_sqr(&norm, &a->c0);
    fp6_sqr(&t, &a->c1);
    fp6_mul_v(&t, &t);
    fp6_sub(&norm, &norm, &t);
    fp6_inv(&norm, &norm);
    fp6_mul(&out->c0, &a->c0, &norm);
    fp6_neg(&t, &a->c1);
    fp6_mul(&out->c1, &t, &norm);
}

/* The images of v, v² and w, divided by them, under a^p, a^(p²), a^(p³). */
struct frobenius {
    bool conjugates;
    fp2 v, vv, w;
};

static const struct frobenius frobenius[3] = {
    {true,
     {{FROBENIUS1_V_C0}, {FROBENIUS1_V_C1}},
     {{FROBENIUS1_VV_C0}, {FROBENIUS1_VV_C1}},
     {{FROBENIUS1_W_C0}, {FROBENIUS1_W_C1}}},
    {false,
     {{FROBENIUS2_V_C0}, {FROBENIUS2_V_C1}},
     {{FROBENIUS2_VV_C0}, {FROBENIUS2_VV_C1}},
     {{FROBENIUS2_W_C0}, {FROBENIUS2_W_C1}}},
    {true,
     {{FROBENIUS3_V_C0}, {FROBENIUS3_V_C1}},
     {{FROBENIUS3_VV_C0}, {FROBENIUS3_VV_C1}},
     {{FROBENIUS3_W_C0}, {FROBENIUS3_W_C1}}},
};

static inline void fp6_frobenius(fp6 *out, const fp6 *a, const struct frobenius *f) {
    *out = *a;
    if (f->conjugates) {
        fp2_conj(&out->c0, &a->c0);
        fp2_conj(&out->c1, &a->c1);
        fp2_conj(&out->c2, &a->c2);
    }
    fp2_mul(&out->c1, &out->c1, &f->v);
    fp2_mul(&out->c2, &out->c2, &f->vv);
}

/* a^(p^power), power 1 to 3. */
static inline void fp12_frobenius(fp12 *out, const fp12 *a, int power) {
    const struct frobenius *f = &frobenius[power - 1];
    fp6_frobenius(&out->c0, &a->c0, f);
    fp6_frobenius(&out->c1, &a->c1, f);
    fp6_mul_fp2(&out->c1, &out->c1, &f->w);
}

/* (a + b t)² for t² = xi: *low = a² + xi b², *high = 2ab. */
static inline void fp4_sqr(fp2 *low, fp2 *high, const fp2 *a, const fp2 *b) {
    fp2 aa, bb, s;
    fp2_sqr(&aa, a);
    fp2_sqr(&bb, b);
    fp2_add(&s, a, b);
    fp2_sqr(&s, &s);
    fp2_sub(&s, &s, &aa);
    fp2_sub(high, &s, &bb);
    fp2_mul_xi(&bb, &bb);
    fp2_add(low, &aa, &bb);
}

/* *z <- 3t - 2z or 3t + 2z. */
static inline void fp2_triple_and_back(fp2 *z, const fp2 *t, bool plus) {
    fp2 s;
    if (plus) {
        fp2_add(&s, t, z);
    } else {
        fp2_sub(&s, t, z);
    }
    fp2_double(&s, &s);
    fp2_add(z, &s, t);
}

/* a² for a of order dividing p⁴ - p² + 1, from three squarings in fp4. */
static inline void fp12_cyclotomic_sqr(fp12 *out, const fp12 *a) {
    fp2 low, high, low2, high2;
    *out = *a;
    fp4_sqr(&low, &high, &a->c0.c0, &a->c1.c1);
    fp2_triple_and_back(&out->c0.c0, &low, false);
    fp2_triple_and_back(&out->c1.c1, &high, true);
    fp4_sqr(&low, &high, &out->c1.c0, &out->c0.c2);
    fp4_sqr(&low2, &high2, &out->c0.c1, &out->c1.c2);
    fp2_triple_and_back(&out->c0.c1, &low, false);
    fp2_triple_and_back(&out->c1.c2, &high, true);
    fp2_triple_and_back(&out->c0.c2, &low2, false);
    fp2_mul_xi(&high2, &high2);
    fp2_triple_and_back(&out->c1.c0, &high2, true);
}

/* a^k for such an a: an inverse is a conjugate, so by signed windows of 3 bits over a and a³. */
static inline void fp12_cyclotomic_pow(fp12 *out, const fp12 *a, const uint64_t *k, size_t words) {
    enum { WIDTH = 3 };
    int8_t digits[64 * WORDS_NAF_MAX + 1];
    fp12 x, odd[2] = {*a}, inverse;
    fp12_cyclotomic_sqr(&x, a);
    fp12_mul(&odd[1], &x, a);
    fp12_set_one(&x);
    for (int bit = words_naf(digits, k, words, WIDTH); bit-- > 0;) {
        fp12_cyclotomic_sqr(&x, &x);
        if (digits[bit] > 0) {
            fp12_mul(&x, &x, &odd[digits[bit] / 2]);
        } else if (digits[bit] < 0) {
            fp12_conj(&inverse, &odd[-digits[bit] / 2]);
            fp12_mul(&x, &x, &inverse);
        }
    }
    *out = x;
}
