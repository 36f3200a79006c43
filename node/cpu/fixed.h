/* Many multiples of one point: out_i = k_i·G. How keys from known secrets are made.
 *
 * A table holds, for each window of the scalar, all multiples of G that the window's digit can ask for; a multiple is then
 * one addition a window, and the additions of a batch of scalars share one inversion. Every entry of window w carries a
 * random point O_w on top, and the first window takes their sum off again: no partial sum is ever infinite or meets its
 * own double, except with a probability of 2^-250, so the additions have no special cases.
 *
 * Owner    the caller, to fixed_close.
 * Threads  const after opening; fixed_multiply shares its work out over the pool.
 * Cost     22 additions a scalar with large tables (9 or 17 MiB in G1, twice that in G2), 32 with small ones.
 * Errors   E_LIMIT without memory, E_IO without randomness.
 */
#pragma once
#include "node/base/pool.h"
#include "node/cpu/ops.h"
#include "node/curve/curve.h"

enum { FIXED_BATCH = 512 };

/* Compiled once per (curve, tier), one for each group: fixed_tmpl.c. */
struct fixed_ops {
    size_t point_bytes; /* packed */
    /* out[i] = a[i] + b[i], packed points that are neither infinite nor of the same x; out may hold operands of its own
     * index. False, and out undefined, when two do have the same x. count <= FIXED_BATCH. Any number at once. */
    bool (*add)(uint8_t *out, const uint8_t *const *a, const uint8_t *const *b, size_t count);
};

struct fixed; /* opaque */

/* Multiples of the curve's generator of the group. `count`: how many there will be about, chooses the tables' size. */
FALLIBLE fixed_open(struct fixed **out, const struct cpu_ops *ops, enum point_group group,
                    uint64_t count);
void fixed_close(struct fixed **f);
/* out: `count` packed points; scalars below r; 0 gives infinity. */
FALLIBLE fixed_multiply(uint8_t *out, const struct fixed *f, const struct scalar *scalars,
                        size_t count, struct pool *pool);
