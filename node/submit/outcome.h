/* What a result means to whoever waited for it: the job's own error, or proofs as snarkjs writes them.
 *
 * Threads  any; pure.
 * Errors   E_FORMAT, E_RANGE, E_CURVE for a result that is not what it claims to be.
 */
#pragma once
#include "node/base/text.h"
#include "node/groth16/proof.h"
#include "node/job/result.h"

/* OK when the job is done, else its error, as the fleet gave it. */
FALLIBLE outcome_of(const result_message *result);
/* proof.json and public.json of partition `idx`, which the result must have. */
FALLIBLE outcome_part_json(struct text *proof, struct text *publics, const result_message *result,
                           size_t idx);
/* Its proof as three compressed points; *len: proof_bellman_bytes of the curve. */
FALLIBLE outcome_part_bellman(uint8_t out[PROOF_BELLMAN_BYTES_MAX], size_t *len,
                              const result_message *result, size_t idx);
