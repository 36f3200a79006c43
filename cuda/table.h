/* Multiples of fixed points, so that all windows of an MSM fill one set of buckets (gpu_msm_shape.table).
 *
 *   P0 P1 …  2^c·P0 2^c·P1 …  2^2c·P0 …        a copy for each window, in the layout of points
 *
 * Owner    the caller's memory: points for good, the workspace until the stream has come so far.
 * Threads  as gpu.h.
 * Errors   those of a launch: gpu.h.
 */
#pragma once
#include "cuda/gpu.h"

struct gpu_table_shape {
    uint32_t points_count;
    unsigned window_bits, copies_count; /* the points themselves are the first */
    unsigned sm_count;
};
size_t gpu_table_workspace_bytes(const struct gpu_table_shape *shape,
                                 const struct gpu_group *group);
/* Fills the copies behind the first. Waits for nothing. */
FALLIBLE gpu_table_build(void *points, const struct gpu_table_shape *shape,
                         const struct gpu_group *group, void *workspace, struct gpu_stream *s);
