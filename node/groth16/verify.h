/* Verification, one proof or many at once.
 *
 * e(-A, B) · e(IC_0 + Σ x_i·IC_{i+1}, γ) · e(C, δ) · e(α, β) = 1. The batch takes random 128-bit weights, folds what has
 * the same second argument, and costs one Miller loop per proof, and three for each 256 proofs.
 *
 * Threads  any.
 * Errors   E_UNSAT: does not verify (or a point of the proof is off the curve or outside the subgroup).
 *          E_RANGE: wrong number of public signals, or one >= r. E_CURVE: proof and key on different curves.
 *          Of the batch also E_LIMIT without memory and E_IO without randomness, which say nothing of the proofs.
 * Source   Groth16, eprint 2016/260; batching by small exponents (Bellare, Garay, Rabin 1998).
 */
#pragma once
#include "node/groth16/proof.h"
#include "node/key/prepared.h"

FALLIBLE groth16_verify(const struct vkey *vk, const struct scalar *publics, size_t publics_count,
                        const struct proof *proof);
/* The same in two thirds of the time, with what was prepared of this key; NULL: nothing was. */
FALLIBLE groth16_verify_prepared(const struct prepared *prepared, const struct vkey *vk,
                                 const struct scalar *publics, size_t publics_count,
                                 const struct proof *proof);

/* Does this code, from reading a proof or public signals or from verifying them, say no? Else it could not be told. */
bool verify_says_no(enum err code);

struct verify_item {
    const struct proof *proof;
    const struct scalar *publics; /* vk->public_count of them */
};
/* OK if all verify. E_UNSAT, E_RANGE, E_CURVE: at least one does not; *bad_idx is the first that fails on its own, and the
 * code is that one's. */
FALLIBLE groth16_verify_batch(size_t *bad_idx, const struct vkey *vk,
                              const struct verify_item *items, size_t items_count);
