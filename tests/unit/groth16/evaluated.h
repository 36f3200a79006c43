/* a and b of a witness under a key, from the definition: what a prover that synthesised would send along.
 *
 * Owner    the caller, to evaluated_free; `evaluated_lend` makes a witness point into it.
 */
#pragma once
#include "node/witness/witness.h"

struct evaluated {
    struct scalar *a, *b; /* owned: the key's domain */
    uint64_t rows_count;  /* up to the last that A names */
};
FALLIBLE evaluated_make(struct evaluated *out, const struct key *key, const struct witness *w);
void evaluated_free(struct evaluated *e);
void evaluated_lend(struct witness *w, const struct evaluated *e);
/* The file of proto/evaluations.h: mem_free. */
FALLIBLE evaluated_file(struct bytes_mut *out, const struct evaluated *e, const struct witness *w);
