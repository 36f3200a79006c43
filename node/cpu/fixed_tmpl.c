/* Batched additions for fixed.c, compiled per (curve, tier): both groups' instances of fixed_group_tmpl.h. */
#include "node/cpu/fixed.h"
#include "node/cpu/tmpl.h"
#include "node/curve/group.h"

#include <string.h>

#define GROUP g1
#define COORD fp
#define SUM   fixed1
#include "node/cpu/fixed_group_tmpl.h"

#define GROUP g2
#define COORD fp2
#define SUM   fixed2
#include "node/cpu/fixed_group_tmpl.h"

extern const struct fixed_ops CPU_FN(fixed_ops)[2];
const struct fixed_ops CPU_FN(fixed_ops)[2] = {
    [GROUP_G1] = {.point_bytes = sizeof(fixed1_point), .add = fixed1_add},
    [GROUP_G2] = {.point_bytes = sizeof(fixed2_point), .add = fixed2_add},
};
