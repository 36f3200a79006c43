/* Constraint systems: what circom compiled, read to name the first constraint that a witness breaks.
 *
 * Proving never needs the file. It answers the question that follows "the proof does not verify": which constraint?
 *
 * Owner    the caller, to r1cs_close.
 * Threads  const after opening.
 * Errors   E_FORMAT, E_RANGE, E_CURVE with file, section, constraint and cure; E_IO when the file changes in use.
 * Source   iden3 r1cs format version 1, as circom 2.2.3 writes it.
 */
#pragma once
#include "node/witness/witness.h"

struct r1cs {
    const struct curve *curve;
    uint32_t wires_count; /* with wire 0 = one */
    uint32_t outputs_count, public_inputs_count, private_inputs_count;
    uint32_t constraints_count;
    uint64_t labels_count;
    struct bytes constraints; /* lent from map or the caller's bytes; every term was checked */
    struct guarded_map file;  /* owned when opened from a file */
};

FALLIBLE r1cs_open(struct r1cs *out, const char *path);
FALLIBLE r1cs_from_bytes(struct r1cs *out, struct bytes file,
                         const char *name); /* bytes stay the caller's */
void r1cs_close(struct r1cs *r);
/* A·w ∘ B·w = C·w? E_UNSAT: no, the detail names the first constraint that fails and how many do; *first_bad_idx is
 * then set. Evaluations in w must be those of its assignment, too. E_CURVE, E_RANGE when the witness is of another curve or
 * count. Cost: one product per term. */
FALLIBLE r1cs_satisfied(uint32_t *first_bad_idx, const struct r1cs *r, const struct witness *w);

/* --- One constraint: three lists of terms, lent from the file --- */

struct r1cs_list {
    const uint8_t *terms;
    uint32_t count;
};
struct r1cs_term {
    uint32_t wire;
    struct scalar coefficient;
};
struct r1cs_constraint {
    struct r1cs_list lists[3]; /* A, B, C */
};
/* Lists have no index: walks there from the first. idx < constraints_count. */
struct r1cs_constraint r1cs_constraint_at(const struct r1cs *r, uint32_t idx);
struct r1cs_term r1cs_term_at(const struct r1cs_list *list, uint32_t idx);
/* Σ coefficient·w[wire]; the witness has the circuit's wires. */
struct scalar r1cs_list_sum(const struct r1cs_list *list, const struct curve *c,
                            const struct witness *w);
