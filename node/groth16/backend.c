/* Names of the steps, as spans, metrics and JSON carry them. */
#include "node/groth16/backend.h"

const char *prove_step_name(enum prove_step step) {
    static const char *const names[STEP_COUNT] = {
        [STEP_WITNESS] = "witness", [STEP_EVALUATE] = "evaluate", [STEP_QUOTIENT] = "quotient",
        [STEP_MSM_A] = "msm_a",     [STEP_MSM_B1] = "msm_b1",     [STEP_MSM_B2] = "msm_b2",
        [STEP_MSM_L] = "msm_l",     [STEP_MSM_H] = "msm_h",       [STEP_ASSEMBLE] = "assemble",
        [STEP_VERIFY] = "verify",
    };
    ASSERT((unsigned)step < STEP_COUNT);
    return names[step];
}

void backend_close(struct backend **b) {
    if (*b) {
        (*b)->ops->close(*b);
        *b = NULL;
    }
}

const enum key_points msm_order[KEY_POINTS_COUNT] = {KEY_B2, KEY_A, KEY_B1, KEY_L, KEY_H};

enum prove_step msm_step(enum key_points which) {
    static const enum prove_step steps[KEY_POINTS_COUNT] = {STEP_MSM_A, STEP_MSM_B1, STEP_MSM_B2,
                                                            STEP_MSM_L, STEP_MSM_H};
    return steps[which];
}
