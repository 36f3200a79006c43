/* One tier's table for one curve. */
#include "node/cpu/ops.h"
#include "node/cpu/tmpl.h"

extern const struct group_ops CPU_FN(group_ops)[2];
extern const struct domain_ops CPU_FN(domain_ops);
extern const struct matrix_ops CPU_FN(matrix_ops);
extern const struct cpu_ops CPU_FN(ops);

const struct cpu_ops CPU_FN(ops) = {
    .tier = CURVE_TEXT(TIER),
    .curve = (enum curve_id)CURVE_ID,
    .scalar_bits = FR_BITS,
    .group = CPU_FN(group_ops),
    .domain = &CPU_FN(domain_ops),
    .matrix = &CPU_FN(matrix_ops),
};
