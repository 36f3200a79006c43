/* One block of device or pinned memory, lent in pieces: sizes and places come from the same lines, so they agree.
 *
 * Owner    the caller's block. Threads  any.
 */
#pragma once
#include <stddef.h>

static inline size_t align_up(size_t bytes) {
    return (bytes + 255) & ~(size_t)255;
}

struct carver {
    char *base; /* NULL: only counts what the pieces take */
    size_t used;
};
static inline void *carve(struct carver *c, size_t bytes) {
    void *at = c->base ? c->base + c->used : NULL;
    c->used += align_up(bytes);
    return at;
}
