/* A witness as it travels: the sections of a body, each packed where that pays.
 *
 * Owner    the caller, to vectors_close, before the witness is closed: what is not packed is lent from it.
 * Threads  one; the pool packs.
 * Errors   E_LIMIT without memory; E_RANGE for more values than a section holds.
 * Secrets  what was packed is wiped when it closes.
 */
#pragma once
#include "node/witness/witness.h"
#include "proto/body.h"

enum { VECTORS_MAX = 3 };

struct vectors {
    struct frame_section sections[VECTORS_MAX]; /* a, b, the assignment; or that alone: body_form */
    struct bytes data[VECTORS_MAX];             /* lent from the next, or the witness */
    struct body_vector owned[VECTORS_MAX];
    size_t count;
};
/* pool may be NULL. */
FALLIBLE vectors_open(struct vectors *out, const struct witness *w, struct pool *pool);
void vectors_close(struct vectors *v); /* for AUTO */
