/* One tier's table for one curve. */
#include "node/cpu/fixed.h"
#include "node/cpu/ops.h"
#include "node/cpu/rate.h"
#include "node/cpu/rows.h"
#include "node/cpu/tmpl.h"

extern const struct group_ops CPU_FN(group_ops)[2];
extern const struct domain_ops CPU_FN(domain_ops);
extern const struct matrix_ops CPU_FN(matrix_ops);
extern const struct rows_ops CPU_FN(rows_ops);
extern const struct fixed_ops CPU_FN(fixed_ops)[2];
extern const struct rate_ops CPU_FN(rate_ops);
extern const struct cpu_ops CPU_FN(ops);

const struct cpu_ops CPU_FN(ops) = {
    .tier = CURVE_TEXT(TIER),
    .curve = (enum curve_id)CURVE_ID,
    .scalar_bits = FR_BITS,
    .group = CPU_FN(group_ops),
    .domain = &CPU_FN(domain_ops),
    .matrix = &CPU_FN(matrix_ops),
    .rows = &CPU_FN(rows_ops),
    .fixed = CPU_FN(fixed_ops),
    .rate = &CPU_FN(rate_ops),
};
