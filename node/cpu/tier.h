/* Which tables this processor can run.
 *
 * Threads  any; constant after the first call.
 * Errors   E_USAGE for a tier that does not exist or that this processor has not, naming those it has.
 */
#pragma once
#include "node/cpu/ops.h"

/* `tier` NULL: the best one. *out is constant. */
FALLIBLE tier_find(const struct cpu_ops **out, enum curve_id curve, const char *tier);
/* The name that `tier` (or NULL) stands for; the same errors. */
FALLIBLE tier_name(const char **out, const char *tier);
