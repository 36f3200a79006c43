/* fp2 in eight lanes: vec_tmpl.h's operations over pairs, the coordinate field of G2.
 *
 * Products are below 2.2p in the first part and 1.4p in the second, for factors below 6p and 2.2p.
 *
 * Cost     a product is three double-width ones and two reductions, a sixth less than three whole products.
 * Threads  any; pure.
 */
#pragma once

typedef struct {
    fp_x8 c0, c1;
} fp2_x8;

VEC_INLINE void fp2_x8_norm(fp2_x8 *a) {
    fp_x8_norm(&a->c0);
    fp_x8_norm(&a->c1);
}
VEC_INLINE void fp2_x8_red(fp2_x8 *a) {
    fp_x8_red(&a->c0);
    fp_x8_red(&a->c1);
}
VEC_INLINE void fp2_x8_sub_raw(fp2_x8 *out, const fp2_x8 *a, const fp2_x8 *b) {
    fp_x8_sub_raw(&out->c0, &a->c0, &b->c0);
    fp_x8_sub_raw(&out->c1, &a->c1, &b->c1);
}
VEC_INLINE void fp2_x8_add_raw(fp2_x8 *out, const fp2_x8 *a, const fp2_x8 *b) {
    fp_x8_add_raw(&out->c0, &a->c0, &b->c0);
    fp_x8_add_raw(&out->c1, &a->c1, &b->c1);
}
VEC_INLINE void fp2_x8_add_const(fp2_x8 *a, const uint64_t *limbs) {
    fp_x8_add_const(&a->c0, limbs);
    fp_x8_add_const(&a->c1, limbs);
}

/* u = a0 b0, v = a1 b1: first part u - v in (-0.2p, 1.2p), then + p; second (a0 + a1)(b0 + b1) - u - v < 1.4p.
 * Not inlined: four copies of it would not fit the instruction cache. */
static __attribute__((noinline)) void fp2_x8_mul(fp2_x8 *out, const fp2_x8 *a, const fp2_x8 *b) {
    enum { WIDE = 2 * FP_LIMBS52 };
    fp_x8 sum_a, sum_b;
    words_x8 u[WIDE], v[WIDE], both[WIDE];
    fp_x8_add_raw(&sum_a, &a->c0, &a->c1);
    fp_x8_norm(&sum_a);
    fp_x8_add_raw(&sum_b, &b->c0, &b->c1);
    fp_x8_norm(&sum_b);
    fp_x8_prod(u, &a->c0, &b->c0);
    fp_x8_prod(v, &a->c1, &b->c1);
#pragma GCC unroll 16
    for (int i = 0; i < WIDE; i++) {
        both[i] = _mm512_add_epi64(u[i], v[i]);
        u[i] = _mm512_sub_epi64(u[i], v[i]);
    }
    fp_x8_redc(&out->c0, u);
    fp_x8_add_const(&out->c0, fp_x8_p);
    fp_x8_norm(&out->c0);
    fp_x8_prod(v, &sum_a, &sum_b);
#pragma GCC unroll 16
    for (int i = 0; i < WIDE; i++) {
        v[i] = _mm512_sub_epi64(v[i], both[i]);
    }
    fp_x8_redc(&out->c1, v);
    fp_x8_norm(&out->c1);
}

/* (a0 + a1)(a0 - a1) + 2 a0 a1 u, for parts below 2.2p. */
VEC_INLINE void fp2_x8_sqr(fp2_x8 *out, const fp2_x8 *a) {
    fp_x8 sum, difference, twice;
    fp_x8_add_raw(&sum, &a->c0, &a->c1);
    fp_x8_norm(&sum);
    fp_x8_sub_raw(&difference, &a->c0, &a->c1);
    fp_x8_add_const(&difference, fp_x8_p4);
    fp_x8_norm(&difference);
    fp_x8_add_raw(&twice, &a->c0, &a->c0);
    fp_x8_norm(&twice);
    fp_x8_mul(&out->c1, &twice, &a->c1);
    fp_x8_mul(&out->c0, &sum, &difference);
}

VEC_INLINE __mmask8 fp2_x8_is_zero(const fp2_x8 *a) {
    return (__mmask8)(fp_x8_is_zero(&a->c0) & fp_x8_is_zero(&a->c1));
}
