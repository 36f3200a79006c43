/* What is left of a job when the device is done with it: the last additions of the sum over H, some tenths of a millisecond on the host. Taken
 * out of the slot, they can be made on any thread while the device is at the next job.
 *
 * Owner    whoever has it, to gpu_rest_finish.
 * Threads  any, one at a time.
 * Memory   about 200 KB of heap.
 * Secrets  wiped with it.
 */
#pragma once
#include "node/groth16/backend.h"

#include "cuda/gpu.h"

/* Copies what gpu_msm_finish needs; the results are there. */
FALLIBLE gpu_rest_new(struct backend_rest **out, const struct gpu_pairs *pairs,
                      const struct gpu_group *group, const void *results, size_t results_bytes);
/* Enters the sum over H; sums NULL: it is not wanted. Clears *rest; fine on none. */
void gpu_rest_finish(struct sums *sums, struct backend_rest **rest);
