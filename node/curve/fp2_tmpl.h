/* fp2 = fp[u]/(u² + 1), the coordinate field of G2 on both curves. Included by fields.h.
 *
 * Names as in field_tmpl.h with fp2 for fp, so that group_tmpl.h works over either. Output first; outputs may be inputs.
 *
 * Cost     fp2_mul 3 fp products, fp2_sqr 2, fp2_inv one fp inversion and 4 products.
 * Threads  any; pure. Variable time.
 */
#pragma once

typedef struct {
    fp c0, c1; /* c0 + c1·u */
} fp2;

static const fp2 fp2_zero = {{{0}}, {{0}}};
static const fp2 fp2_one = {{FP_R1}, {{0}}};

static inline bool fp2_is_zero(const fp2 *a) {
    return fp_is_zero(&a->c0) && fp_is_zero(&a->c1);
}
static inline bool fp2_equal(const fp2 *a, const fp2 *b) {
    return fp_equal(&a->c0, &b->c0) && fp_equal(&a->c1, &b->c1);
}
/* 2·limbs words, c0 first, as they lie in a packed point. */
static inline bool fp2_is_canonical(const uint64_t *w) {
    return fp_is_canonical(w) && fp_is_canonical(w + FP_LIMBS);
}
static inline void fp2_add(fp2 *out, const fp2 *a, const fp2 *b) {
    fp_add(&out->c0, &a->c0, &b->c0);
    fp_add(&out->c1, &a->c1, &b->c1);
}
static inline void fp2_sub(fp2 *out, const fp2 *a, const fp2 *b) {
    fp_sub(&out->c0, &a->c0, &b->c0);
    fp_sub(&out->c1, &a->c1, &b->c1);
}
static inline void fp2_double(fp2 *out, const fp2 *a) {
    fp2_add(out, a, a);
}
static inline void fp2_halve(fp2 *out, const fp2 *a) {
    fp_halve(&out->c0, &a->c0);
    fp_halve(&out->c1, &a->c1);
}
static inline void fp2_neg(fp2 *out, const fp2 *a) {
    fp_neg(&out->c0, &a->c0);
    fp_neg(&out->c1, &a->c1);
}
/* c0 - c1·u: also a^p. */
static inline void fp2_conj(fp2 *out, const fp2 *a) {
    out->c0 = a->c0;
    fp_neg(&out->c1, &a->c1);
}

/* Karatsuba: (a0 + a1)(b0 + b1) - a0 b0 - a1 b1 is the mixed term. */
static inline void fp2_mul(fp2 *out, const fp2 *a, const fp2 *b) {
    fp low, high, sum_a, sum_b;
    fp_mul(&low, &a->c0, &b->c0);
    fp_mul(&high, &a->c1, &b->c1);
    fp_add(&sum_a, &a->c0, &a->c1);
    fp_add(&sum_b, &b->c0, &b->c1);
    fp_mul(&sum_a, &sum_a, &sum_b);
    fp_sub(&sum_a, &sum_a, &low);
    fp_sub(&out->c1, &sum_a, &high);
    fp_sub(&out->c0, &low, &high);
}

/* (a0 + a1)(a0 - a1) + 2 a0 a1 u. */
static inline void fp2_sqr(fp2 *out, const fp2 *a) {
    fp sum, difference, mixed;
    fp_add(&sum, &a->c0, &a->c1);
    fp_sub(&difference, &a->c0, &a->c1);
    fp_mul(&mixed, &a->c0, &a->c1);
    fp_mul(&out->c0, &sum, &difference);
    fp_double(&out->c1, &mixed);
}

static inline void fp2_mul_fp(fp2 *out, const fp2 *a, const fp *k) {
    fp_mul(&out->c0, &a->c0, k);
    fp_mul(&out->c1, &a->c1, k);
}

/* a·xi, xi = XI_C0 + u the non-residue under the tower: additions only. */
static inline void fp2_mul_xi(fp2 *out, const fp2 *a) {
#if XI_C0 == 1
    fp2 x = *a;
#else
    _Static_assert(XI_C0 == 9, "times nine below");
    fp2 x;
    fp2_double(&x, a);
    fp2_double(&x, &x);
    fp2_double(&x, &x);
    fp2_add(&x, &x, a);
#endif
    fp c1 = a->c1;
    fp_add(&out->c1, &x.c1, &a->c0);
    fp_sub(&out->c0, &x.c0, &c1);
}

/* 1/a = conj(a)/(a0² + a1²); 0 gives 0. */
static inline void fp2_inv(fp2 *out, const fp2 *a) {
    fp norm, t;
    fp_sqr(&norm, &a->c0);
    fp_sqr(&t, &a->c1);
    fp_add(&norm, &norm, &t);
    fp_inv(&norm, &norm);
    fp_mul(&out->c0, &a->c0, &norm);
    fp_neg(&t, &a->c1);
    fp_mul(&out->c1, &t, &norm);
}

/* As fp_inv_batch: in place, zeros stay zero, prefix holds count elements of scratch. */
static inline void fp2_inv_batch(fp2 *x, fp2 *prefix, size_t count) {
    fp2 product = fp2_one;
    for (size_t i = 0; i < count; i++) {
        prefix[i] = product;
        if (!fp2_is_zero(&x[i])) {
            fp2_mul(&product, &product, &x[i]);
        }
    }
    fp2_inv(&product, &product);
    for (size_t i = count; i-- > 0;) {
        if (!fp2_is_zero(&x[i])) {
            fp2 inverse;
            fp2_mul(&inverse, &product, &prefix[i]);
            fp2_mul(&product, &product, &x[i]);
            x[i] = inverse;
        }
    }
}

/* y > -y, c1 compared first (the sign rule of bellman's encodings). */
static inline bool fp2_is_larger(const fp2 *y) {
    return fp_is_zero(&y->c1) ? fp_is_larger(&y->c0) : fp_is_larger(&y->c1);
}

/* A square root; false, and *out untouched, if there is none. With n² = a0² + a1², c0² is (a0 + n)/2 or (a0 - n)/2
 * and c1 = a1/(2 c0). Adj, Rodríguez-Henríquez, "Square root computation over even extension fields", the complex method. */
static inline bool fp2_sqrt(fp2 *out, const fp2 *a) {
    fp2 root = fp2_zero, square;
    fp norm, t;
    if (fp_is_zero(&a->c1)) {
        fp_neg(&t, &a->c0);
        if (!fp_sqrt(&root.c0, &a->c0) && !fp_sqrt(&root.c1, &t)) {
            return false;
        }
        *out = root;
        return true;
    }
    fp_sqr(&norm, &a->c0);
    fp_sqr(&t, &a->c1);
    fp_add(&norm, &norm, &t);
    if (!fp_sqrt(&norm, &norm)) {
        return false;
    }
    fp_add(&t, &a->c0, &norm);
    fp_halve(&t, &t);
    if (!fp_sqrt(&root.c0, &t)) {
        fp_sub(&t, &a->c0, &norm);
        fp_halve(&t, &t);
        if (!fp_sqrt(&root.c0, &t)) {
            return false;
        }
    }
    fp_double(&t, &root.c0);
    fp_inv(&t, &t);
    fp_mul(&root.c1, &a->c1, &t);
    fp2_sqr(&square, &root);
    if (!fp2_equal(&square, a)) {
        return false;
    }
    *out = root;
    return true;
}
