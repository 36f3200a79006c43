/* Many affine additions that share their inversions: what others take from msm.c.
 *
 * Owner    the caller's memory, for as long as the stream uses it.
 * Threads  as gpu.h.
 * Errors   those of a launch: gpu.h.
 */
#pragma once
#include "cuda/gpu.h"

struct gpu_sums {
    struct gpu_batch batch;
    void *sums; /* device: `plane` points, all x, then all y */
    size_t plane;
    const void
        *points; /* device: packed ones, which references with the point bit name; NULL: none */
};
/* Room for `sums` points and `pairs` additions at once within `memory`; NULL only counts. Returns the bytes it takes. */
size_t gpu_sums_carve(struct gpu_sums *out, void *memory, size_t sums, size_t pairs,
                      unsigned sm_count, const struct gpu_group *group);
/* sums[out_base + i] = the points of pair i, any of them, infinity included. `list`: two references a pair; none names a place that
 * a pair goes to. */
FALLIBLE gpu_sums_add(const struct gpu_sums *sums, const struct gpu_group *group,
                      const uint32_t *list, uint32_t pairs_count, uint32_t out_base,
                      unsigned sm_count, struct gpu_stream *s);
