/* Much host memory to the device, at the pace of the bus: how keys are loaded.
 *
 * Pinned memory is read by the copy engine where it lies. Other memory, a mapped file most of all, is copied by threads into one piece
 * of a pinned ring while the engine sends the other.
 *
 * Owner    the caller, to gpu_loader_close.
 * Threads  one at a time; it has a stream and threads of its own, so a key may be loaded while another thread proves.
 * Memory   64 MB pinned.
 * Cost     on an H200 with 16 cores 55 GB/s pinned, which is the bus's pace, 53 from the page cache (tests/bench/RESULTS.md).
 * Errors   those of gpu.h.
 */
#pragma once
#include "cuda/gpu.h"

struct gpu_loader; /* opaque */

FALLIBLE gpu_loader_open(struct gpu_loader **out);
void gpu_loader_close(struct gpu_loader **l);
/* In order; pinned bytes must stay until gpu_load_wait. */
FALLIBLE gpu_load(struct gpu_loader *l, void *device, const void *host, size_t bytes);
FALLIBLE gpu_load_zero(struct gpu_loader *l, void *device, size_t bytes);
FALLIBLE gpu_load_wait(struct gpu_loader *l); /* for both streams */
struct gpu_stream *gpu_loader_stream(const struct gpu_loader *l);
/* For what is computed while bytes are on their way. */
struct gpu_stream *gpu_loader_side(const struct gpu_loader *l);
size_t gpu_loader_pinned_bytes(void);
