/* One core copies 8 GB/s, sixteen 38, the bus takes 55: so as many threads as there are cores, and pieces large enough that
 * starting and gathering them does not show.
 */
#include "cuda/loader.h"

#include "node/base/mem.h"
#include "node/base/pool.h"

#include "cuda/copiers.h"

#include <string.h>

enum { PIECES = 2, PIECE_BYTES = 32 << 20, THREADS_MAX = 16 };

struct gpu_loader {
    struct gpu_stream *stream, *side; /* owned */
    struct gpu_event *sent[PIECES];   /* owned: the piece is free again */
    void *ring;                       /* owned: pinned */
    struct pool *pool;                /* owned */
    unsigned next;
};

size_t gpu_loader_pinned_bytes(void) {
    return (size_t)PIECES * PIECE_BYTES;
}

void gpu_loader_close(struct gpu_loader **l) {
    if (!*l) {
        return;
    }
    pool_close(&(*l)->pool);
    for (unsigned i = 0; i < PIECES; i++) {
        gpu_event_close(&(*l)->sent[i]);
    }
    gpu_stream_close(&(*l)->stream);
    gpu_stream_close(&(*l)->side);
    gpu_pinned_close(&(*l)->ring, gpu_loader_pinned_bytes());
    mem_free_ptr(l);
}

enum err gpu_loader_open(struct gpu_loader **out) {
    AUTO(gpu_loader_close) struct gpu_loader *l = NULL;
    unsigned cores = pool_cores_usable();
    TRY(mem_new(&l, 1, sizeof *l));
    TRY(gpu_stream_open(&l->stream));
    TRY(gpu_stream_open(&l->side));
    for (unsigned i = 0; i < PIECES; i++) {
        TRY(gpu_event_open(&l->sent[i]));
    }
    TRY(gpu_pinned_open(&l->ring, gpu_loader_pinned_bytes()));
    TRY(pool_open(&l->pool, cores < THREADS_MAX ? cores : THREADS_MAX));
    *out = TAKE(l);
    return OK;
}

struct gpu_stream *gpu_loader_stream(const struct gpu_loader *l) {
    return l->stream;
}

struct gpu_stream *gpu_loader_side(const struct gpu_loader *l) {
    return l->side;
}

static enum err load_piece(struct gpu_loader *l, char *device, const char *host, size_t bytes) {
    unsigned piece = l->next++ % PIECES;
    char *staged = (char *)l->ring + (size_t)piece * PIECE_BYTES;
    TRY(gpu_event_wait(l->sent[piece]));
    copiers_copy(l->pool, staged, host, bytes);
    TRY(gpu_upload(device, staged, bytes, l->stream));
    return gpu_event_record(l->sent[piece], l->stream);
}

enum err gpu_load(struct gpu_loader *l, void *device, const void *host, size_t bytes) {
    const char *from = host;
    if (!bytes) {
        return OK;
    }
    if (gpu_pinned_is(from) && gpu_pinned_is(from + bytes - 1)) {
        return gpu_upload(device, from, bytes, l->stream);
    }
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        size_t part = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        TRY(load_piece(l, (char *)device + at, from + at, part));
    }
    return OK;
}

enum err gpu_load_zero(struct gpu_loader *l, void *device, size_t bytes) {
    return bytes ? gpu_fill(device, 0, bytes, l->stream) : OK;
}

enum err gpu_load_wait(struct gpu_loader *l) {
    TRY(gpu_stream_wait(l->stream));
    return gpu_stream_wait(l->side);
}
