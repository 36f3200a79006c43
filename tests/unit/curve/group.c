/* Both groups of one curve: additions against the chord and tangent rule, multiples against repeated addition,
 * membership in the subgroup against multiplication by r. Compiled once per curve. */
#include "node/curve/subgroup_tmpl.h"
#include "tests/unit/curve/random_tmpl.h"

#define GROUP          g1
#define GROUP_NAME     "G1"
#define COORD          fp
#define COORD_WORDS    FP_LIMBS
#define GROUP_IS_WHOLE CURVE_IS_BN
#include "node/curve/check_tmpl.h"

#define GROUP          g2
#define GROUP_NAME     "G2"
#define COORD          fp2
#define COORD_WORDS    (2 * FP_LIMBS)
#define GROUP_IS_WHOLE 0
#include "node/curve/check_tmpl.h"

#define GROUP           g1
#define COORD           fp
#define COFACTOR        G1_COFACTOR
#define COFACTOR_WORDS  G1_COFACTOR_WORDS
#define COFACTOR_IS_ONE CURVE_IS_BN
#define SMALL_PRIMES    (CURVE_IS_BN ? 0 : 5)
#define SMALLEST_PRIME  3
#include "tests/unit/curve/group_claims.h"

#define GROUP           g2
#define COORD           fp2
#define COFACTOR        G2_COFACTOR
#define COFACTOR_WORDS  G2_COFACTOR_WORDS
#define COFACTOR_IS_ONE 0
#define SMALL_PRIMES    (CURVE_IS_BN ? 2 : 5)
#define SMALLEST_PRIME  (CURVE_IS_BN ? 10069 : 13)
#include "tests/unit/curve/group_claims.h"

/* phi and psi are the multiplications that their comments say. */
static void claim_endomorphisms(void) {
    static const uint64_t lambda[] = G1_LAMBDA;
    for (int i = 0; i < 5; i++) {
        g1_affine a = g1_on_curve();
        g2_affine b = g2_on_curve();
        g1_jac p = g1_jac_of(&a), p_image, p_multiple;
        g2_jac q = g2_jac_of(&b), q_image, q_multiple;
        g1_jac_mul(&p, &p, g1_cofactor, G1_COFACTOR_WORDS);
        g2_jac_mul(&q, &q, g2_cofactor, G2_COFACTOR_WORDS);
        g1_jac_phi(&p_image, &p);
        g1_jac_mul(&p_multiple, &p, lambda, 4);
        CHECK(g1_jac_equal(&p_image, &p_multiple));
        g2_jac_psi(&q_image, &q);
        g2_jac_mul(&q_multiple, &q, fp_modulus.w, FP_LIMBS);
        CHECK(g2_jac_equal(&q_image, &q_multiple));
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"G1 additions follow the chord and tangent rule in every case", g1_claim_laws},
        {"G1 multiples equal repeated addition", g1_claim_mul},
        {"G1 multiples of several points at once equal their sum", g1_claim_joint},
        {"G1 multiples of a point that stays equal its others", g1_claim_comb},
        {"G1 membership equals being killed by r", g1_claim_subgroup},
        {"G1 points of small order are outside of the subgroup", g1_claim_small_orders},
        {"G1 random subset sums pass good points and catch one bad among many", g1_claim_subsets},
        {"G2 additions follow the chord and tangent rule in every case", g2_claim_laws},
        {"G2 multiples equal repeated addition", g2_claim_mul},
        {"G2 multiples of several points at once equal their sum", g2_claim_joint},
        {"G2 multiples of a point that stays equal its others", g2_claim_comb},
        {"G2 membership equals being killed by r", g2_claim_subgroup},
        {"G2 points of small order are outside of the subgroup", g2_claim_small_orders},
        {"G2 random subset sums pass good points and catch one bad among many", g2_claim_subsets},
        {"phi and psi multiply by lambda and p on the subgroups", claim_endomorphisms},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
