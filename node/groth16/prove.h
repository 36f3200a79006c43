/* One proof: the operations of a backend in order, blinding, assembly, and the self-check.
 *
 * A wrong proof never leaves: groth16_prove verifies with the key's own verifying key before it returns OK.
 *
 * Threads  the one that drives the backend.
 * Errors   those of the backend; E_SELFCHECK when the proof does not verify (witness or machine: the caller decides by
 *          computing again elsewhere, see prove_settle).
 * Source   Groth16, eprint 2016/260; assembly as snarkjs 0.7.6 groth16_prove.js.
 */
#pragma once
#include "node/groth16/backend.h"
#include "node/groth16/proof.h"
#include "node/groth16/verify.h"

struct blinding {
    struct scalar r, s;
};
FALLIBLE blinding_random(struct blinding *out, const struct curve *c); /* from the OS */

struct prove_result {
    struct proof proof;
    struct scalar *publics; /* owned: mem_free; public_count of them */
    size_t publics_count;
    struct step_times times;
    uint64_t total_ns;
    struct backend_rest *rest;     /* owned; of the sums, until they are assembled */
    const struct backend_ops *ops; /* lent: who finishes the rest */
    struct sums
        sums; /* unblinded, for tests and for the salted digest of the self-check; wiped by done */
};
void prove_result_done(struct prove_result *r);

/* On E_SELFCHECK out->sums alone is filled, for prove_settle or for a digest sent elsewhere. */
FALLIBLE groth16_prove(struct prove_result *out, struct backend *b, struct backend_slot *slot,
                       const struct key *key, const struct witness *w,
                       const struct blinding *blinding, struct job_watch *watch);
/* What comes before the self-check, in two halves. What the backend computes: sums and times. And what any thread makes of it, while the
 * backend goes on: proof and public signals. On OK of the first the result is the caller's, to prove_result_done. */
FALLIBLE groth16_compute(struct prove_result *out, struct backend *b, struct backend_slot *slot,
                         const struct key *key, const struct witness *w, struct job_watch *watch);
FALLIBLE groth16_assemble(struct prove_result *r, const struct key *key, const struct witness *w,
                          const struct blinding *blinding);

/* The self-check of such a result: E_SELFCHECK when it does not verify. Its time is booked into the result. Touches no
 * backend. */
FALLIBLE groth16_check(struct prove_result *r, const struct key *key);

/* The five sums alone, for a second opinion. */
FALLIBLE groth16_sums(struct sums *out, struct backend *b, struct backend_slot *slot,
                      const struct key *key, const struct witness *w, struct job_watch *watch);
/* After E_SELFCHECK: what a second computation elsewhere says. Digest = SHA-256(salt ‖ five sums). */
FALLIBLE sums_digest(struct sha256 *out, const struct curve *c, const struct sums *s,
                     const uint8_t salt[32]);
/* The second computation on `b` (the same device when there is no other) and the verdict, never OK: E_UNSAT when it gives
 * the `first` sums again, E_DEVICE when not; or the error that stopped it. */
FALLIBLE prove_settle(const struct sums *first, struct backend *b, struct backend_slot *slot,
                      const struct key *key, const struct witness *w, struct job_watch *watch);
