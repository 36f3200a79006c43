/* The plain prover: the five sums of a proof straight from the definitions, through the curve's table alone.
 *
 * Nothing in it is clever, so that it can be read against the papers; the backends are measured against it. Slow: use it
 * for circuits of up to a few hundred wires.
 *
 * Threads  one.
 */
#pragma once
#include "node/groth16/backend.h"

FALLIBLE reference_backend_open(struct backend **out);
/* The key whose points and matrices `slot_open` computes with is `key` itself; nothing is converted. Keys without
 * matrices are E_FORMAT at evaluate. */

/* Sums computed from now on get this fault: which of the five gets the generator added; -1: none. For tests of the
 * self-check. `times` is how many computations are hit before the machine is sound again. */
void reference_break(struct backend *b, int which_sum, unsigned times);
/* From now on every job has these sums, whatever the key; the operations before do nothing. */
void reference_answer(struct backend *b, const struct sums *sums);
/* The step that each operation of the last job found in its watch, in the order of the operations. */
struct reference_trace {
    int steps[STEP_COUNT];
    unsigned count;
};
struct reference_trace reference_trace(const struct backend *b);
/* The operation of this step sets the next job's cancel flag; -1: none does. */
void reference_cancel_in(struct backend *b, int step);
/* How many times `sums` ran. */
unsigned reference_runs(const struct backend *b);

/* The transforms, for others to compare with: values at the n-th roots (natural order) from coefficients and back. */
void reference_ntt(struct scalar *x, const struct curve *c, unsigned log2_count,
                   const struct scalar *root, bool inverse);
/* h from evaluations a and b (2^log2_count each; overwritten) on the domain of that basis. H_COSET_LAGRANGE: n values.
 * H_POWERS: n values, the last of which is zero. */
void reference_quotient(struct scalar *h, struct scalar *a, struct scalar *b, const struct curve *c,
                        unsigned log2_count, enum h_basis basis);
