/* Who belongs to the subgroup of order r, told by endomorphisms instead of a multiplication by r.
 *
 * phi(x, y) = (beta x, y) on G1's curve satisfies phi² + phi + 1 = 0; psi = untwist, Frobenius, twist on G2's curve
 * satisfies psi² - t psi + p = 0. Each test says that a polynomial f in phi or psi kills P; then so does every integer
 * in the ideal of f and the characteristic polynomial, among them their resultant, and params/derive.py computes that
 * the resultant and the order of the curve have r and nothing else in common.
 *
 *   BN254 G1       cofactor 1: every point
 *   BN254 G2       [x+1]P + psi([x]P) + psi²([x]P) = psi³([2x]P)     62 doublings  (ePrint 2022/352, section 4)
 *   BLS12-381 G1   phi(P) = -[x²]P, and x⁴ - x² + 1 = r              126 doublings (ePrint 2021/1130)
 *   BLS12-381 G2   psi(P) = [x]P                                     63 doublings  (ePrint 2021/1130)
 *
 * Points are on the curve; infinity belongs. Threads any; pure.
 */
#pragma once
#include "node/curve/group.h"

/* (conj(X) PSI_X, conj(Y) PSI_Y, conj(Z)): multiplication by p on G2. */
static inline void g2_jac_psi(g2_jac *out, const g2_jac *p) {
    static const fp2 psi_x = {{G2_PSI_X_C0}, {G2_PSI_X_C1}};
    static const fp2 psi_y = {{G2_PSI_Y_C0}, {G2_PSI_Y_C1}};
    fp2_conj(&out->x, &p->x);
    fp2_conj(&out->y, &p->y);
    fp2_conj(&out->z, &p->z);
    fp2_mul(&out->x, &out->x, &psi_x);
    fp2_mul(&out->y, &out->y, &psi_y);
}

/* (beta X, Y, Z): multiplication by G1_LAMBDA on G1. */
static inline void g1_jac_phi(g1_jac *out, const g1_jac *p) {
    static const fp beta = {G1_BETA};
    *out = *p;
    fp_mul(&out->x, &p->x, &beta);
}

#if CURVE_IS_BN

static inline bool g1_jac_in_subgroup(const g1_jac *p) {
    (void)p;
    return true;
}

static inline bool g2_jac_in_subgroup(const g2_jac *p) {
    g2_jac xp, left, right, t;
    g2_jac_mul_word(&xp, p, CURVE_X);
    g2_jac_add(&left, &xp, p);
    g2_jac_psi(&t, &xp);
    g2_jac_add(&left, &left, &t);
    g2_jac_psi(&t, &t);
    g2_jac_add(&left, &left, &t);
    g2_jac_psi(&t, &t);
    g2_jac_double(&right, &t);
    return g2_jac_equal(&left, &right);
}

#else

_Static_assert(CURVE_X_IS_NEGATIVE, "the signs below");

static inline bool g1_jac_in_subgroup(const g1_jac *p) {
    g1_jac left, right;
    g1_jac_phi(&left, p);
    g1_jac_mul_word(&right, p, CURVE_X);
    g1_jac_mul_word(&right, &right, CURVE_X);
    g1_jac_neg(&right, &right);
    return g1_jac_equal(&left, &right);
}

static inline bool g2_jac_in_subgroup(const g2_jac *p) {
    g2_jac left, right;
    g2_jac_psi(&left, p);
    g2_jac_mul_word(&right, p, CURVE_X);
    g2_jac_neg(&right, &right);
    return g2_jac_equal(&left, &right);
}

#endif
