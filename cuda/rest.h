/* What is left of a job when the device is done with it: the last additions of the sum over H, some tenths of a millisecond on the host. Taken
 * out of the slot, they can be made on any thread while the device is at the next job.
 *
 * A slot has a few such rests made when it is opened, so that a job allocates nothing; when all are in use the device's thread makes
 * the additions itself.
 *
 * Owner    rests: the slot; one that is taken outlives it, to gpu_rest_finish.
 * Threads  rests any, under a lock of rank BACKEND; a rest any, one at a time.
 * Memory   about 200 KB of heap each.
 * Errors   gpu_rests_open: E_LIMIT without memory.
 * Secrets  wiped when they are finished.
 */
#pragma once
#include "node/groth16/backend.h"

#include "cuda/gpu.h"

enum { GPU_RESTS = 6 }; /* jobs wait only for a moment to be assembled */

struct gpu_rests;
/* Results of at most so many bytes. */
FALLIBLE gpu_rests_open(struct gpu_rests **out, size_t results_bytes);
void gpu_rests_close(struct gpu_rests **rests);
size_t gpu_rests_bytes(size_t results_bytes); /* of heap */

/* Copies what gpu_msm_finish needs; the results are there. NULL: none is free. */
struct backend_rest *gpu_rest_take(struct gpu_rests *rests, const struct gpu_pairs *pairs,
                                   const struct gpu_group *group, const void *results,
                                   size_t results_bytes);
/* Enters the sum over H; sums NULL: it is not wanted. Clears *rest; fine on none. */
void gpu_rest_finish(struct sums *sums, struct backend_rest **rest);
