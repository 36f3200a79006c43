/* Many multiples of one point on the device: out_i = k_i·G. The twin of node/cpu/fixed.h.
 *
 * A table holds d·2^(c·w)·G for every window w and digit d; a multiple is one addition a window, and all multiples of a batch
 * take the same step at once, through the kernels of the MSM's tree. Those handle every case, so tables need no offsets and
 * zero needs no way of its own.
 *
 * Owner    the caller, to gpu_fixed_close.
 * Threads  as gpu.h; host copies are shared out over the pool.
 * Memory   device: 16 windows of 2^16 points (100 MB in G1 of BLS12-381) and twice 2^20 sums; pinned: 2^20 scalars and points.
 * Cost     16 additions a multiple: on an H200 about 5 ns in G1 of BLS12-381, 13 ns in G2, as much again for copies.
 * Errors   those of gpu.h.
 */
#pragma once
#include "node/base/pool.h"
#include "node/curve/curve.h"

#include "cuda/fixed_pairs.h"

struct gpu_fixed; /* opaque */
struct gpu_fixed_options {
    const struct curve *curve;
    enum point_group group;
    uint64_t count;       /* how many multiples there will be about: chooses the windows */
    unsigned window_bits; /* 0: by count */
    unsigned sm_count;
    struct pool *copiers; /* lent */
};
FALLIBLE gpu_fixed_open(struct gpu_fixed **out, const struct gpu_fixed_options *options);
void gpu_fixed_close(struct gpu_fixed **f);
/* out: `count` packed points in host memory; scalars below r; 0 gives infinity. Waits. */
FALLIBLE gpu_fixed_multiply(uint8_t *out, struct gpu_fixed *f, const struct scalar *scalars,
                            size_t count);
