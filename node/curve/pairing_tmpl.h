/* The optimal ate pairing, both families.
 *
 * Miller loop   All pairs walk together: one squaring of f a step for all of them. A line is scaled to have a one in it, so that the sparse
 *               product with it takes 30 fp products, after 4 to put P into it.
 *               Points of G2 that stay: their lines are kept, nothing else is left to do.
 *               Few others: they walk in homogeneous coordinates (X, Y, Z), x = X/Z; a doubling and its line cost 24, but the line
 *               has no one in it, and costs 4 and 39.
 *               More of them: their points stay affine, as the slopes of all pairs share one inversion (80); 22 each.
 * Lines         A point of the twist untwists to (x w², y w³) on a D twist and to (x/w², y/w³) on an M twist. With the
 *               slope s and T = (xT, yT) on the twist, the line through T at P = (xP, yP) is
 *                   D:  yP - s xP w + (s xT - yT) w³
 *                   M:  (s xT - yT) - s xP w² + yP w³       (times w³, which the final exponentiation removes)
 *               as it removes every factor in fp2. A doubling's comes times -2YZ, an addition's times the slope's denominator.
 *               Costello, Lange, Naehrig, ePrint 2009/615; Aranha et al., ePrint 2010/526, section 4.
 * Loop          BN: f_{6x+2,Q} with two more lines, through psi(Q) and -psi²(Q). BLS12: f_{|x|,Q}, conjugated as x < 0.
 *               F. Vercauteren, "Optimal pairings", ePrint 2008/096.
 * Final         To the power m (p¹² - 1)/r, where r does not divide the small m, so that it is a pairing as well and
 *               cheaper. BN: m = 2x (6x² + 3x + 1), Fuentes-Castañeda, Knapp, Rodríguez-Henríquez, "Faster hashing
 *               to G2", SAC 2011. BLS12: m = 3, Hayashida et al., ePrint 2020/875. These are the m of ffjavascript,
 *               so the values in its files can be compared.
 *
 * Points are on their curves and in their subgroups (else the value means nothing).
 * Threads  any; pure. Variable time.
 */
#pragma once
#include "node/curve/subgroup_tmpl.h"
#include "node/curve/tower_tmpl.h"

enum {
    PAIRS_AT_ONCE = 16,
    PAIRS_TOGETHER = 4, /* from so many on inversions are shared */
    FIXED_AT_ONCE = 4,
};

/* --- Lines. --- */

/* y yP + x xP w + rest w³ on a D twist; on an M twist w² stands with x, w³ with y and nothing with the rest. */
struct line {
    fp2 y, x, rest;
};
/* The same over its y: what is kept of a point that stays. */
struct kept_line {
    fp2 x, rest;
};

/* x, y and z of a point of G2 that walks. */
typedef struct {
    fp2 x, y, z;
} g2_hom;

/* t <- 2t. */
static inline void walk_double(struct line *line, g2_hom *t) {
    fp2 a, b, c, e, f, g;
    fp2_mul(&a, &t->x, &t->y);
    fp2_halve(&a, &a); /* X Y/2 */
    fp2_sqr(&b, &t->y);
    fp2_sqr(&c, &t->z);
    fp2_mul(&e, &c, &g2_b);
    fp2_double(&f, &e);
    fp2_add(&e, &e, &f); /* 3 b Z² */
    fp2_double(&f, &e);
    fp2_add(&f, &f, &e);
    fp2_add(&g, &t->y, &t->z);
    fp2_sqr(&g, &g);
    fp2_sub(&g, &g, &b);
    fp2_sub(&g, &g, &c); /* 2 Y Z */
    fp2_neg(&line->y, &g);
    fp2_sqr(&c, &t->x);
    fp2_double(&line->x, &c);
    fp2_add(&line->x, &line->x, &c);
    fp2_sub(&line->rest, &e, &b);

    fp2_mul(&t->z, &b, &g);
    fp2_sub(&g, &b, &f);
    fp2_mul(&t->x, &a, &g);
    fp2_add(&g, &b, &f);
    fp2_halve(&g, &g);
    fp2_sqr(&g, &g);
    fp2_sqr(&e, &e);
    fp2_double(&f, &e);
    fp2_add(&e, &e, &f);
    fp2_sub(&t->y, &g, &e);
}

/* t <- t + q. */
static inline void walk_add(struct line *line, g2_hom *t, const g2_affine *q) {
    fp2 theta, lambda, d, e, f, g, h;
    fp2_mul(&theta, &q->y, &t->z);
    fp2_sub(&theta, &t->y, &theta);
    fp2_mul(&lambda, &q->x, &t->z);
    fp2_sub(&lambda, &t->x, &lambda);
    line->y = lambda;
    fp2_neg(&line->x, &theta);
    fp2_mul(&line->rest, &theta, &q->x);
    fp2_mul(&d, &lambda, &q->y);
    fp2_sub(&line->rest, &line->rest, &d);

    fp2_sqr(&d, &lambda);
    fp2_mul(&e, &lambda, &d);
    fp2_sqr(&f, &theta);
    fp2_mul(&f, &f, &t->z);
    fp2_mul(&g, &t->x, &d);
    fp2_add(&h, &e, &f);
    fp2_sub(&h, &h, &g);
    fp2_sub(&h, &h, &g);
    fp2_mul(&t->x, &lambda, &h);
    fp2_sub(&g, &g, &h);
    fp2_mul(&g, &g, &theta);
    fp2_mul(&d, &e, &t->y);
    fp2_sub(&t->y, &g, &d);
    fp2_mul(&t->z, &t->z, &e);
}

/* f <- f · (the line with these parts, P in them). y NULL: one. */
static inline void fp12_mul_line(fp12 *f, const fp2 *y, const fp2 *x, const fp2 *rest) {
    fp6 low, high, mixed;
    fp2 sum;
    fp2_add(&sum, x, y ? y : &fp2_one);
    fp6_add(&mixed, &f->c0, &f->c1);
#if TWIST_IS_D
    /* y + (x + rest v) w */
    low = f->c0;
    if (y) {
        fp6_mul_fp2(&low, &low, y);
    }
    fp6_mul_01(&high, &f->c1, x, rest);
    fp6_mul_01(&mixed, &mixed, &sum, rest);
#else
    /* (rest + x v) + (y v) w */
    fp6_mul_01(&low, &f->c0, rest, x);
    high = f->c1;
    if (y) {
        fp6_mul_fp2(&high, &high, y);
    }
    fp6_mul_v(&high, &high);
    fp6_mul_01(&mixed, &mixed, rest, &sum);
#endif
    fp6_sub(&mixed, &mixed, &low);
    fp6_sub(&f->c1, &mixed, &high);
    fp6_mul_v(&high, &high);
    fp6_add(&f->c0, &low, &high);
}

/* t <- t + other for a slope, with the line through t. */
static inline void walk_by_slope(struct kept_line *line, g2_affine *t, const fp2 *slope,
                                 const fp2 *other_x) {
    fp2 x, y;
    fp2_neg(&line->x, slope);
    fp2_mul(&line->rest, slope, &t->x);
    fp2_sub(&line->rest, &line->rest, &t->y);
    fp2_sqr(&x, slope);
    fp2_sub(&x, &x, &t->x);
    fp2_sub(&x, &x, other_x);
    fp2_sub(&y, &t->x, &x);
    fp2_mul(&y, slope, &y);
    fp2_sub(&t->y, &y, &t->y);
    t->x = x;
}

/* --- The walk: what a multiple of q goes through, and so the order of its lines. --- */

enum walk { WALK_DOUBLE, WALK_PLUS, WALK_MINUS, WALK_PSI, WALK_MINUS_PSI_PSI };
enum { WALK_MAX = 2 * ATE_LOOP_DIGITS };

static inline int walk_steps(uint8_t *steps) {
    static const int8_t loop[ATE_LOOP_DIGITS] = ATE_LOOP;
    int count = 0;
    for (int k = 1; k < ATE_LOOP_DIGITS; k++) {
        steps[count++] = WALK_DOUBLE;
        if (loop[k] != 0) {
            steps[count++] = loop[k] > 0 ? WALK_PLUS : WALK_MINUS;
        }
    }
#if CURVE_IS_BN
    steps[count++] = WALK_PSI;
    steps[count++] = WALK_MINUS_PSI_PSI;
#endif
    return count;
}

/* What is added to t in a step that is no doubling. */
static inline void walk_other(g2_affine *out, const g2_affine *q, enum walk step) {
    *out = *q;
    if (step == WALK_PSI || step == WALK_MINUS_PSI_PSI) {
        g2_jac image;
        g2_jac_from_affine(&image, q); /* Z = 1, and psi keeps it */
        for (int k = 0; k < (step == WALK_PSI ? 1 : 2); k++) {
            g2_jac_psi(&image, &image);
        }
        *out = (g2_affine){image.x, image.y};
    }
    if (step == WALK_MINUS || step == WALK_MINUS_PSI_PSI) {
        g2_affine_neg(out, out);
    }
}

static inline void walk_step(struct line *line, g2_hom *t, const g2_affine *q, enum walk step) {
    if (step == WALK_DOUBLE) {
        walk_double(line, t);
    } else {
        g2_affine other;
        walk_other(&other, q, step);
        walk_add(line, t, &other);
    }
}

/* A step of several points, none of which is in the way of another; their lines are over their y. */
static inline void walk_together(struct kept_line *lines, g2_affine *t, const g2_affine *q,
                                 size_t count, enum walk step) {
    fp2 top[PAIRS_AT_ONCE], bottom[PAIRS_AT_ONCE], scratch[PAIRS_AT_ONCE], other_x[PAIRS_AT_ONCE];
    for (size_t i = 0; i < count; i++) {
        if (step == WALK_DOUBLE) {
            fp2 xx;
            fp2_sqr(&xx, &t[i].x);
            fp2_double(&top[i], &xx);
            fp2_add(&top[i], &top[i], &xx);
            fp2_double(&bottom[i], &t[i].y);
            other_x[i] = t[i].x;
        } else {
            g2_affine other;
            walk_other(&other, &q[i], step);
            fp2_sub(&top[i], &other.y, &t[i].y);
            fp2_sub(&bottom[i], &other.x, &t[i].x);
            other_x[i] = other.x;
        }
    }
    fp2_inv_batch(bottom, scratch, count);
    for (size_t i = 0; i < count; i++) {
        fp2_mul(&top[i], &top[i], &bottom[i]);
        walk_by_slope(&lines[i], &t[i], &top[i], &other_x[i]);
    }
}

/* Of a finite q. */
static inline void lines_keep(struct kept_line out[WALK_MAX], const g2_affine *q) {
    uint8_t steps[WALK_MAX];
    int count = walk_steps(steps);
    fp2 y[WALK_MAX], scratch[WALK_MAX];
    g2_hom t = {q->x, q->y, fp2_one};
    for (int i = 0; i < count; i++) {
        struct line line;
        walk_step(&line, &t, q, (enum walk)steps[i]);
        out[i] = (struct kept_line){line.x, line.rest};
        y[i] = line.y;
    }
    fp2_inv_batch(y, scratch, (size_t)count);
    for (int i = 0; i < count; i++) {
        fp2_mul(&out[i].x, &out[i].x, &y[i]);
        fp2_mul(&out[i].rest, &out[i].rest, &y[i]);
    }
}

/* --- The loop. --- */

/* The pairs of one Miller loop; none is infinite. */
struct miller {
    size_t count, fixed_count;
    g1_affine p[PAIRS_AT_ONCE], fixed_p[FIXED_AT_ONCE];
    g2_affine q[PAIRS_AT_ONCE];
    const struct kept_line *lines[FIXED_AT_ONCE]; /* lent */
};

/* 1/yP and xP/yP: a point as it goes into a line over its y. */
struct miller_point {
    fp over_y, x_over_y;
};

static inline void miller_points(struct miller_point *out, const g1_affine *p, size_t count) {
    fp y[PAIRS_AT_ONCE], scratch[PAIRS_AT_ONCE];
    for (size_t i = 0; i < count; i++) {
        y[i] = p[i].y;
    }
    fp_inv_batch(y, scratch, count);
    for (size_t i = 0; i < count; i++) {
        out[i].over_y = y[i];
        fp_mul(&out[i].x_over_y, &p[i].x, &y[i]);
    }
}

static inline void miller_kept(fp12 *f, const struct kept_line *line,
                               const struct miller_point *p) {
    fp2 x, rest;
    fp2_mul_fp(&x, &line->x, &p->x_over_y);
    fp2_mul_fp(&rest, &line->rest, &p->over_y);
    fp12_mul_line(f, NULL, &x, &rest);
}

/* The Miller value of all pairs of m, of which a factor in fp2 is anyone's. */
static inline void miller_loop(fp12 *f, const struct miller *m) {
    uint8_t steps[WALK_MAX];
    int count = walk_steps(steps);
    bool together = m->count >= PAIRS_TOGETHER;
    struct miller_point fixed[FIXED_AT_ONCE], p[PAIRS_AT_ONCE];
    g2_hom t[PAIRS_TOGETHER];
    g2_affine walkers[PAIRS_AT_ONCE];
    miller_points(fixed, m->fixed_p, m->fixed_count);
    if (together) {
        miller_points(p, m->p, m->count);
        memcpy(walkers, m->q, m->count * sizeof *walkers);
    }
    for (size_t i = 0; i < m->count && !together; i++) {
        t[i] = (g2_hom){m->q[i].x, m->q[i].y, fp2_one};
    }
    fp12_set_one(f);
    for (int k = 0; k < count; k++) {
        struct kept_line lines[PAIRS_AT_ONCE];
        if (steps[k] == WALK_DOUBLE) {
            fp12_sqr(f, f);
        }
        if (together) {
            walk_together(lines, walkers, m->q, m->count, (enum walk)steps[k]);
        }
        for (size_t i = 0; i < m->count; i++) {
            if (together) {
                miller_kept(f, &lines[i], &p[i]);
            } else {
                struct line line;
                walk_step(&line, &t[i], &m->q[i], (enum walk)steps[k]);
                fp2_mul_fp(&line.y, &line.y, &m->p[i].y);
                fp2_mul_fp(&line.x, &line.x, &m->p[i].x);
                fp12_mul_line(f, &line.y, &line.x, &line.rest);
            }
        }
        for (size_t i = 0; i < m->fixed_count; i++) {
            miller_kept(f, &m->lines[i][k], &fixed[i]);
        }
    }
#if !CURVE_IS_BN
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
