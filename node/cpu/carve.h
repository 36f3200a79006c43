/* Carving one block of memory into aligned pieces, by the same code that measures it.
 *
 * A layout function takes a carver and sets its pointers. With base NULL the pointers mean nothing and `used` is the size
 * to ask for; with a block of that size they are the pieces. So a plan cannot differ from what is taken.
 *
 * Threads  one.
 * Units    bytes; pieces are aligned to 64.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct carver {
    uint8_t *base; /* lent, aligned to 64; NULL: only measure */
    size_t used;
};

static inline void *carve(struct carver *c, size_t count, size_t size) {
    void *piece = c->base ? c->base + c->used : NULL;
    c->used += (count * size + 63) & ~(size_t)63;
    return piece;
}
