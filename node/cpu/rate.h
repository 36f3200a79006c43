/* How many field products this processor makes: the ceiling against which operations are held.
 *
 * Every thread multiplies in several independent chains, so latency hides, operands stay in registers, and nothing but
 * the multiplier limits. What a transform or a sum reaches of it is what its memory traffic, additions and bookkeeping leave.
 *
 * Threads  the one that may use the pool.
 * Errors   E_LIMIT without memory, of rate_transforms.
 */
#pragma once
#include "node/base/pool.h"
#include "node/cpu/ops.h"
#include "node/groth16/backend.h"

/* Compiled once per (curve, tier): rate_tmpl.c. Each runs `rounds` of `products` products; the answer depends on all. */
struct rate_ops {
    unsigned products; /* of a round */
    uint64_t (*fp)(uint64_t rounds);
    uint64_t (*fr)(uint64_t rounds);
};
/* Of all threads together. About 40 ms. */
void rate_measure(struct rates *out, const struct cpu_ops *ops, struct pool *pool);
/* Times of `count` forward transforms of 2^log2 elements, each of rows that are not in cache order yet. */
FALLIBLE rate_transforms(uint64_t *ns, size_t count, const struct cpu_ops *ops, unsigned log2,
                         struct pool *pool);
