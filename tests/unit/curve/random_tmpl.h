/* Elements of the coordinate fields drawn by the claim's seed. Included once per curve, after its fields. */
#include "node/base/rng.h"
#include "tests/check/check.h"

static fp fp_random(void) {
    fp a;
    do {
        rng_fill(check_rng(), &a, sizeof a);
        a.w[FP_LIMBS - 1] &= UINT64_MAX >> (64 * FP_LIMBS - FP_BITS);
    } while (!fp_is_canonical(a.w));
    return a;
}

static fp2 fp2_random(void) {
    return (fp2){fp_random(), fp_random()};
}
