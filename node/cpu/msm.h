/* All multi-scalar multiplications of a proof as one pool of tasks.
 *
 * Points are read in chunks, each once, straight from a mapped key; a chunk is worked on by all windows before the next is
 * needed, so a key is never copied whole. What lives from the first chunk to the last are the buckets of the sums in
 * progress.
 *
 *     stage chunk ──▶ accumulate (chunk, bundle of windows) ──▶ reduce bundle ──▶ finish sum
 *
 * Any thread takes the next task that is ready, heaviest sum first, so nobody waits at a barrier between sums.
 *
 * Owner    the caller: items and workspace; nothing allocates.
 * Threads  msm_run from one thread, which works too.
 * Units    bytes, nanoseconds.
 * Errors   E_CANCELLED when *cancel was seen set.
 */
#pragma once
#include "node/cpu/ops.h"

enum { MSM_ITEMS_MAX = 8 };

/* What a workspace depends on. */
struct msm_shape {
    enum point_group group;
    uint64_t points_count;
};

struct msm_item {
    enum point_group group;
    struct msm_source source; /* source.count <= the shape's points_count */
    uint64_t
        nonzero_count;   /* about how many scalars are not 0, and how many of them 2^48 or more: */
    uint64_t wide_count; /* they choose the window, nothing else */
    uint64_t *out;       /* packed affine sum */
    uint64_t busy_ns;    /* out: time of all threads in this sum */
};

/* For tests; all zero otherwise. The same for planning and running. */
struct msm_options {
    uint32_t chunk_max;   /* limit on points per chunk */
    unsigned window_bits; /* of all sums; 0: by cost */
};

/* Where run time goes, for progress: called under a lock, from any thread. `done` of one. */
struct msm_watch {
    const _Atomic int *cancel;                                   /* lent */
    void (*progress)(void *ctx, unsigned item_idx, double done); /* may be NULL */
    void *progress_ctx;
};

size_t msm_workspace_bytes(const struct cpu_ops *ops, const struct msm_shape *shapes,
                           size_t shapes_count, unsigned threads_count, struct msm_options options);
/* items[i] under shapes[i]. */
FALLIBLE msm_run(struct msm_item *items, const struct cpu_ops *ops, const struct msm_shape *shapes,
                 size_t items_count, struct pool *pool, struct msm_options options,
                 struct bytes_mut workspace, const struct msm_watch *watch);

/* The window for `wide` scalars of full size and `nonzero - wide` small ones. */
unsigned msm_window_bits(uint64_t nonzero, uint64_t wide, unsigned scalar_bits);
/* About how many additions a sum of full scalars takes. */
double msm_additions(uint64_t points_count, unsigned scalar_bits);
void msm_windows_of(struct msm_windows *out, unsigned bits, unsigned scalar_bits);
