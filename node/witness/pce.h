/* Constraint systems as cuzk extracts them from bellperson's synthesis ("pre-compiled constraint evaluator"), BLS12-381, version 2.
 *
 *     head        "PCE" 2, u32 version 2, u32 inputs (the constant among them), u32 aux, u32 constraints, u64 non-zeros, u32 reserved
 *     A, B, C     each: u64 n + u32 row starts (constraints + 1), u64 n + u32 columns, u64 n + values of 32 bytes
 *     densities   a of aux, b of inputs, b of aux: u64 n + u64 words, u64 bits, u64 ones
 *
 * Little-endian throughout; columns count inputs first, then aux; values are in Montgomery form, a bit of a density is the lowest of its
 * word first. The densities must be what A and B name. C is measured and not read: nobody here needs it.
 *
 * The layout leaves open whether the rows that bellman appends, one for each input, are among the constraints. They are where the last
 * rows of A name one input each, in order and times 1, and B names nobody there; such rows are left out here.
 *
 * Owner    the caller, to pce_close.
 * Threads  const after opening.
 * Errors   E_FORMAT, E_RANGE with file, matrix, row and cure.
 */
#pragma once
#include "node/base/file.h"
#include "node/curve/curve.h"
#include "node/key/mapping_guard.h"

struct pce_matrix {
    struct bytes starts, columns, values; /* lent */
};
struct pce {
    const struct curve *curve;
    uint32_t inputs_count, aux_count; /* inputs: with the constant */
    uint32_t constraints_count;       /* without the rows of the inputs */
    struct pce_matrix matrix[2];      /* A, B */
    struct scalar unmont;             /* what makes a value plain */
    struct guarded_map file;          /* owned when opened from a file */
};

bool pce_is(struct bytes file);
FALLIBLE pce_open(struct pce *out, const char *path);
FALLIBLE pce_from_bytes(struct pce *out, struct bytes file,
                        const char *name); /* bytes stay the caller's */
void pce_close(struct pce *p);
/* Has the mapped file kept its bytes? Ask after reading terms. */
FALLIBLE pce_intact(const struct pce *p);

struct pce_terms {
    uint32_t from, end;
};
/* Of one row of a matrix; as many as the file says now, never more than it has. */
struct pce_terms pce_row(const struct pce *p, unsigned matrix, uint32_t row);
/* The value is plain. */
void pce_term(uint32_t *wire, struct scalar *value, const struct pce *p, unsigned matrix,
              uint32_t idx);
