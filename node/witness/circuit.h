/* A circuit from whichever file describes it: .r1cs, or pce.h's layout. What key import asks of it.
 *
 * Owner    the caller, to circuit_close.
 * Threads  const after opening.
 * Errors   those of r1cs.h and pce.h.
 */
#pragma once
#include "node/witness/pce.h"
#include "node/witness/r1cs.h"

struct circuit {
    const struct curve *curve;
    uint32_t wires_count, public_count; /* without the constant */
    uint32_t constraints_count;         /* without the rows of public wires that bellman appends */
    struct bytes file;                  /* lent from one of the two */
    struct r1cs r1cs;                   /* owned, unless is_pce */
    struct pce pce;                     /* owned if is_pce */
    bool is_pce;
};
/* By content; "-" is a .r1cs. */
FALLIBLE circuit_open(struct circuit *out, const char *path);
void circuit_close(struct circuit *c);

struct circuit_sink {
    /* A non-zero of A (matrix 0) or B (1); the value is plain, and may be 0 all the same. */
    enum err (*term)(void *ctx, uint32_t matrix, uint32_t wire, const struct scalar *value);
    enum err (*row_end)(void *ctx, uint32_t row);
    void *ctx;
};
/* Constraints in their order, A before B. E_IO when the file has changed since it was checked. */
FALLIBLE circuit_walk(const struct circuit *c, const struct circuit_sink *sink);
