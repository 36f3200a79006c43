/* Scratch arena: one block, taken from the front, given back by rewinding.
 *
 *     struct arena_mark here = arena_mark(a);
 *     TRY(arena_take(&digits, a, count, sizeof *digits));
 *     …
 *     arena_rewind(a, here);          everything taken since is gone
 *
 * It never grows: its size comes from a plan, and E_LIMIT means that the plan was wrong or the input was not admitted.
 *
 * Owner    the caller; the pieces are lent from it.
 * Threads  one at a time.
 * Units    bytes; every piece is aligned to 64.
 * Errors   E_LIMIT when a piece does not fit, or without memory for the block; E_RANGE for a size that overflows.
 */
#pragma once
#include "node/base/bytes.h"

struct arena;
struct arena_mark {
    size_t used_bytes;
};

FALLIBLE arena_new(struct arena **out, size_t bytes);
/* Over memory that is lent and stays the caller's (pinned memory, part of another arena); aligned to 64. */
FALLIBLE arena_new_over(struct arena **out, struct bytes_mut memory);
void arena_free(struct arena **a); /* for AUTO */

/* *(void **)out = count·size bytes, not zeroed, valid until a rewind past here. */
FALLIBLE arena_take(void *out, struct arena *a, size_t count, size_t size);
struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark to);
/* Rewinds to the start after overwriting all that was ever used: for witness values. */
void arena_wipe(struct arena *a);

size_t arena_left_bytes(const struct arena *a);
size_t arena_peak_bytes(const struct arena *a); /* most ever used: tests compare it with the plan */
