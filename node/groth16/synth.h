/* Circuits made up to look like real ones, of any size, with a witness that satisfies them.
 *
 *     shape   imitates                                   rows
 *     dense   Poseidon, EdDSA: all values full-size      a chain of squarings
 *     bits    SHA-256 as circom compiles it              xor, and, choice, sums of bits, fresh bits
 *     porep   a partition of Filecoin's PoRep            the same, 3 in 100 rows a chain of squarings, 327 public signals
 *
 * Row i makes wire public_count + 2 + i out of earlier ones, and row and wires follow from i alone, so nothing is stored but the
 * witness. Of the values of a, most are 0, 1 or small and negative, of b all but the full ones 0 or 1; B names a quarter of
 * the wires. The circuit fills its domain, or 97 of 100 rows of it as a PoRep does.
 *
 * Threads  const once made. Memory: 32 bytes a wire.
 * Errors   E_RANGE for a size that cannot be, E_LIMIT without memory.
 */
#pragma once
#include "node/groth16/setup.h"

enum synth_shape { SYNTH_DENSE, SYNTH_BITS, SYNTH_POREP };
enum { SYNTH_LOG2_MIN = 5, SYNTH_LOG2_MAX = 28, SYNTH_POREP_LOG2_MIN = 10 };

struct synth {
    enum synth_shape shape;
    struct setup_circuit circuit; /* its ctx is this struct: do not move it */
    uint32_t full_every;          /* of the rows behind the public ones; 0: none is full */
    uint64_t seed;
    struct scalar *witness; /* owned: circuit.wires_count */
};
/* A circuit whose domain is 2^log2; the same seed gives the same values. */
FALLIBLE synth_init(struct synth *out, const struct curve *c, enum synth_shape shape, unsigned log2,
                    uint64_t seed);
void synth_done(struct synth *s);
/* a = A·w and b = B·w, plain: setup_domain rows each, the extra ones included. */
void synth_evaluate(struct scalar *a, struct scalar *b, const struct synth *s);
FALLIBLE synth_shape_from(enum synth_shape *out, const char *name); /* E_USAGE */
