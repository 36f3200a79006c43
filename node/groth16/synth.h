/* Circuits made up to look like real ones, of any size, with a witness that satisfies them.
 *
 *     shape   imitates                                   rows
 *     dense   Poseidon, EdDSA: all values full-size      a chain of squarings
 *     bits    SHA-256 as circom compiles it              xor, and, choice, sums of bits, fresh bits
 *     porep   a partition of Filecoin's PoRep            the same kinds in its shares, 3 in 100 rows a chain of squarings, 327
 *                                                        public signals, 97 of 100 rows of the domain
 *
 * Row i makes wire public_count + 2 + i out of earlier ones, and row and wires follow from i alone, so nothing is stored but the
 * witness. Values of b are 0 or 1, those of a small as well, but for the full ones. What is counted:
 *
 *                terms a row of A, B, C    wires in A, B     values of a: 0, 1, small
 *     bits       1.4   1.0   2.7           all, a quarter    half of a is small, most of that negative, as circom writes xor
 *     porep      2.4   1.0   2.2           all, a quarter    a seventh is small
 *     a PoRep    2.4   1.0   2.2           99.7 %, 25.4 %    (130,278,869 rows, 328 inputs, 130,169,893 private wires)
 *
 * Threads  const once made. Memory: 32 bytes a wire.
 * Errors   E_RANGE for a size that cannot be, E_LIMIT without memory.
 */
#pragma once
#include "node/groth16/setup.h"

enum synth_shape { SYNTH_DENSE, SYNTH_BITS, SYNTH_POREP };
enum {
    SYNTH_COEFFICIENTS = 16,
    SYNTH_LOG2_MIN = 5,
    SYNTH_LOG2_MAX = 28,
    SYNTH_POREP_LOG2_MIN = 10
};

struct synth {
    enum synth_shape shape;
    struct setup_circuit circuit; /* its ctx is this struct: do not move it */
    struct scalar coefficients[SYNTH_COEFFICIENTS];
    uint32_t full_every; /* of the rows behind the public ones; 0: none is full */
    uint64_t seed;
    struct bytes_mut pages; /* owned: of the witness */
    struct scalar *witness; /* lent from them: circuit.wires_count */
};
/* A circuit whose domain is 2^log2; the same seed gives the same values. */
FALLIBLE synth_init(struct synth *out, const struct curve *c, enum synth_shape shape, unsigned log2,
                    uint64_t seed);
void synth_done(struct synth *s);
/* Rows of A that are not 0: constraints, and one for each public wire. */
uint64_t synth_rows_count(const struct synth *s);
/* a = A·w and b = B·w, plain: setup_domain rows each, the extra ones included. pool may be NULL. */
void synth_evaluate(struct scalar *a, struct scalar *b, const struct synth *s, struct pool *pool);
FALLIBLE synth_shape_from(enum synth_shape *out, const char *name); /* E_USAGE */
