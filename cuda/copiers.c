/* In pieces of 1 MiB, small enough to balance and large enough that handing them out does not show. */
#include "cuda/copiers.h"

#include "node/base/mem.h"

#include <string.h>

enum { PIECE_BYTES = 1 << 20 };

struct work {
    char *to;
    const char *from; /* NULL: wiped */
    size_t bytes;
};

static void do_piece(void *ctx, size_t idx, unsigned worker_idx) {
    const struct work *w = ctx;
    size_t at = idx * PIECE_BYTES, part = w->bytes - at < PIECE_BYTES ? w->bytes - at : PIECE_BYTES;
    (void)worker_idx;
    if (w->from) {
        memcpy(w->to + at, w->from + at, part);
    } else {
        mem_wipe(w->to + at, part);
    }
}

static void run(struct pool *pool, struct work w) {
    pool_for(pool, (w.bytes + PIECE_BYTES - 1) / PIECE_BYTES, do_piece, &w);
}

void copiers_copy(struct pool *pool, void *to, const void *from, size_t bytes) {
    run(pool, (struct work){to, from, bytes});
}

void copiers_wipe(struct pool *pool, void *at, size_t bytes) {
    run(pool, (struct work){at, NULL, bytes});
}
