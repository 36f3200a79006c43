/* Field products that operations take by count, and what they would take at the processor's ceiling.
 *
 * Threads  one.
 * Source   a batched addition: 5 products, a square; the same in Fp2 as products of three and squares of two.
 */
#pragma once
#include "node/cpu/rate.h"
#include "node/witness/witness.h"

struct products {
    double fp, fr;
};
/* Σ s_i·P_i over scalars of `count` values of 32 bytes, as msm.h bundles them. */
struct products products_of_msm(const struct curve *c, const uint8_t *scalars, uint64_t count,
                                enum point_group group);
/* Radix-2 transforms of 2^log2 elements. */
struct products products_of_transforms(unsigned log2, unsigned transforms);
/* The scalars of H: six transforms and six products an element between them. */
struct products products_of_h(unsigned log2);
/* All of a proof but blinding and the self-check. */
struct products products_of_proof(const struct key_shape *shape, const struct witness *w);
static inline struct products products_sum(struct products a, struct products b) {
    return (struct products){a.fp + b.fp, a.fr + b.fr};
}
/* Time at the ceiling over the time taken. */
double products_share(struct products p, const struct rates *ceiling, uint64_t ns);
