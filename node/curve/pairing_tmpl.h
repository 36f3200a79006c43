/* The optimal ate pairing, both families.
 *
 * Miller loop   All pairs walk together: one squaring of f a step for all of them, and the points of G2 stay affine,
 *               because the slopes of all pairs share one inversion. A doubling step costs a pair about 24 fp products
 *               for the slope and 36 for the sparse product with its line.
 * Lines         A point of the twist untwists to (x w², y w³) on a D twist and to (x/w², y/w³) on an M twist. With the
 *               slope s and T = (xT, yT) on the twist, the line through T at P = (xP, yP) is
 *                   D:  yP - s xP w + (s xT - yT) w³
 *                   M:  (s xT - yT) - s xP w² + yP w³       (times w³, which the final exponentiation removes)
 * Loop          BN: f_{6x+2,Q} with two more lines, through psi(Q) and -psi²(Q). BLS12: f_{|x|,Q}, conjugated as x < 0.
 *               F. Vercauteren, "Optimal pairings", ePrint 2008/096.
 * Final         To the power m (p¹² - 1)/r, where r does not divide the small m, so that it is a pairing as well and
 *               cheaper. BN: m = 2x (6x² + 3x + 1), Fuentes-Castañeda, Knapp, Rodríguez-Henríquez, "Faster hashing
 *               to G2", SAC 2011. BLS12: m = 3, Hayashida et al., ePrint 2020/875. These are the m of ffjavascript,
 *               so the values in its files can be compared.
 *
 * Points are on their curves and in their subgroups (else a slope may not exist and the value means nothing).
 * Threads  any; pure. Variable time.
 */
#pragma once
#include "node/curve/subgroup_tmpl.h"
#include "node/curve/tower_tmpl.h"

enum { PAIRS_AT_ONCE = 16 };

/* The pairs of one Miller loop; none is infinite. */
struct miller {
    size_t count;
    g1_affine p[PAIRS_AT_ONCE];
    g2_affine q[PAIRS_AT_ONCE];
    g2_affine t[PAIRS_AT_ONCE]; /* the walking multiple of q */
};

/* f <- f · (the line of this slope through t, at p). */
static inline void miller_line(fp12 *f, const fp2 *slope, const g2_affine *t, const g1_affine *p) {
    fp2 at_x, rest, sum;
    fp6 low, high, mixed;
    fp2_mul_fp(&at_x, slope, &p->x);
    fp2_neg(&at_x, &at_x);
    fp2_mul(&rest, slope, &t->x);
    fp2_sub(&rest, &rest, &t->y);
    fp6_add(&mixed, &f->c0, &f->c1);
#if TWIST_IS_D
    /* yP + (at_x + rest v) w */
    fp6_mul_fp(&low, &f->c0, &p->y);
    fp6_mul_01(&high, &f->c1, &at_x, &rest);
    fp_add(&at_x.c0, &at_x.c0, &p->y);
    sum = at_x;
    fp6_mul_01(&mixed, &mixed, &sum, &rest);
#else
    /* (rest + at_x v) + (yP v) w */
    fp6_mul_01(&low, &f->c0, &rest, &at_x);
    fp6_mul_fp(&high, &f->c1, &p->y);
    fp6_mul_v(&high, &high);
    sum = at_x;
    fp_add(&sum.c0, &sum.c0, &p->y);
    fp6_mul_01(&mixed, &mixed, &rest, &sum);
#endif
    fp6_sub(&mixed, &mixed, &low);
    fp6_sub(&f->c1, &mixed, &high);
    fp6_mul_v(&high, &high);
    fp6_add(&f->c0, &low, &high);
}

/* t <- t + other, given the slope of the line through both. */
static inline void miller_move(g2_affine *t, const fp2 *slope, const fp2 *other_x) {
    fp2 x, y;
    fp2_sqr(&x, slope);
    fp2_sub(&x, &x, &t->x);
    fp2_sub(&x, &x, other_x);
    fp2_sub(&y, &t->x, &x);
    fp2_mul(&y, slope, &y);
    fp2_sub(&t->y, &y, &t->y);
    t->x = x;
}

static inline void miller_double(fp12 *f, struct miller *m) {
    fp2 bottom[PAIRS_AT_ONCE], scratch[PAIRS_AT_ONCE];
    for (size_t i = 0; i < m->count; i++) {
        fp2_double(&bottom[i], &m->t[i].y);
    }
    fp2_inv_batch(bottom, scratch, m->count);
    for (size_t i = 0; i < m->count; i++) {
        fp2 slope, xx;
        fp2_sqr(&xx, &m->t[i].x);
        fp2_double(&slope, &xx);
        fp2_add(&slope, &slope, &xx);
        fp2_mul(&slope, &slope, &bottom[i]);
        miller_line(f, &slope, &m->t[i], &m->p[i]);
        const fp2 x = m->t[i].x;
        miller_move(&m->t[i], &slope, &x);
    }
}

/* t <- t + other, for all pairs. */
static inline void miller_add(fp12 *f, struct miller *m, const g2_affine *other) {
    fp2 bottom[PAIRS_AT_ONCE], scratch[PAIRS_AT_ONCE];
    for (size_t i = 0; i < m->count; i++) {
        fp2_sub(&bottom[i], &other[i].x, &m->t[i].x);
    }
    fp2_inv_batch(bottom, scratch, m->count);
    for (size_t i = 0; i < m->count; i++) {
        fp2 slope;
        fp2_sub(&slope, &other[i].y, &m->t[i].y);
        fp2_mul(&slope, &slope, &bottom[i]);
        miller_line(f, &slope, &m->t[i], &m->p[i]);
        miller_move(&m->t[i], &slope, &other[i].x);
    }
}

/* The Miller value of all pairs of m. */
static inline void miller_loop(fp12 *f, struct miller *m) {
    static const int8_t loop[ATE_LOOP_DIGITS] = ATE_LOOP;
    g2_affine minus[PAIRS_AT_ONCE];
    fp12_set_one(f);
    for (size_t i = 0; i < m->count; i++) {
        m->t[i] = m->q[i];
        g2_affine_neg(&minus[i], &m->q[i]);
    }
    for (int k = 1; k < ATE_LOOP_DIGITS; k++) {
        fp12_sqr(f, f);
        miller_double(f, m);
        if (loop[k] != 0) {
            miller_add(f, m, loop[k] > 0 ? m->q : minus);
        }
    }
#if CURVE_IS_BN
    for (int power = 1; power <= 2; power++) {
        g2_affine image[PAIRS_AT_ONCE];
        for (size_t i = 0; i < m->count; i++) {
            g2_jac q;
            g2_jac_from_affine(&q, &m->q[i]); /* Z = 1, and psi keeps it */
            for (int k = 0; k < power; k++) {
                g2_jac_psi(&q, &q);
            }
            image[i] = (g2_affine){q.x, q.y};
            if (power == 2) {
                g2_affine_neg(&image[i], &image[i]);
            }
        }
        miller_add(f, m, image);
    }
#else
    fp12_conj(f, f);
#endif
}

/* f^x for f of order dividing p⁴ - p² + 1. */
static inline void fp12_pow_x(fp12 *out, const fp12 *f) {
    const uint64_t x = CURVE_X;
    fp12_cyclotomic_pow(out, f, &x, 1);
#if CURVE_X_IS_NEGATIVE
    fp12_conj(out, out);
#endif
}

#if CURVE_IS_BN
/* With a = 12x³ + 6x² + 6x and b = a - 2x:
 * 2x (6x² + 3x + 1) (p⁴ - p² + 1)/r = (a + 6x² + 1) + b p + a p² + (b - 1) p³. */
static inline void final_hard_part(fp12 *out, const fp12 *f) {
    fp12 f2x, f6x, f6xx, a, b, t;
    fp12_pow_x(&f2x, f);
    fp12_cyclotomic_sqr(&f2x, &f2x);
    fp12_cyclotomic_sqr(&t, &f2x);
    fp12_mul(&f6x, &t, &f2x);
    fp12_pow_x(&f6xx, &f6x);
    fp12_cyclotomic_sqr(&t, &f6xx);
    fp12_pow_x(&t, &t);
    fp12_mul(&a, &t, &f6xx);
    fp12_mul(&a, &a, &f6x);
    fp12_conj(&f2x, &f2x);
    fp12_mul(&b, &a, &f2x);

    fp12_conj(&t, f);
    fp12_mul(&t, &t, &b);
    fp12_frobenius(&t, &t, 3);
    fp12_mul(&t, &t, f);
    fp12_mul(&t, &t, &f6xx);
    fp12_mul(&t, &t, &a);
    fp12_frobenius(&a, &a, 2);
    fp12_mul(&t, &t, &a);
    fp12_frobenius(&b, &b, 1);
    fp12_mul(out, &t, &b);
}
#else
/* 3 (p⁴ - p² + 1)/r = (x - 1)² (x + p) (x² + p² - 1) + 3. */
static inline void final_hard_part(fp12 *out, const fp12 *f) {
    fp12 y, t, result;
    fp12_pow_x(&t, f);
    fp12_conj(&y, f);
    fp12_mul(&y, &y, &t);
    fp12_pow_x(&t, &y);
    fp12_conj(&y, &y);
    fp12_mul(&y, &y, &t);
    fp12_pow_x(&t, &y);
    fp12_frobenius(&y, &y, 1);
    fp12_mul(&y, &y, &t);
    fp12_pow_x(&t, &y);
    fp12_pow_x(&t, &t);
    fp12_frobenius(&result, &y, 2);
    fp12_mul(&result, &result, &t);
    fp12_conj(&y, &y);
    fp12_mul(&result, &result, &y);
    fp12_cyclotomic_sqr(&t, f);
    fp12_mul(&t, &t, f);
    fp12_mul(out, &result, &t);
}
#endif

/* f^(m (p¹² - 1)/r), f != 0. */
static inline void final_exponentiation(fp12 *out, const fp12 *f) {
    fp12 x, t;
    fp12_inv(&t, f);
    fp12_conj(&x, f);
    fp12_mul(&x, &x, &t); /* ^(p⁶ - 1) */
    fp12_frobenius(&t, &x, 2);
    fp12_mul(&x, &x, &t); /* ^(p² + 1) */
    final_hard_part(out, &x);
}
