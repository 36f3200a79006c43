/* Verifying key: the points that proofs of one circuit are checked against.
 *
 * Comes out of a proving key's header or from snarkjs's verification_key.json or bellman's verifying key; goes out as
 * snarkjs JSON (key order and names as snarkjs writes them, vk_alphabeta_12 included).
 *
 * Threads  const after opening.
 * Errors   E_FORMAT, E_RANGE, E_CURVE naming the field ("vk_gamma_2"); E_RANGE above PUBLIC_COUNT_MAX, too.
 */
#pragma once
#include "node/base/json.h"
#include "node/base/text.h"
#include "node/curve/curve.h"

enum { PUBLIC_COUNT_MAX = 1 << 20 };

struct vkey {
    const struct curve *curve;
    uint32_t public_count; /* without the constant one */
    struct g1 alpha1;
    struct g1 beta1, delta1; /* infinity when the source has none (JSON) */
    struct g2 beta2, gamma2, delta2;
    uint8_t *ic; /* owned: public_count + 1 packed G1 points */
};

/* All points are checked to be on the curve and in the subgroup, none of alpha, beta, gamma, delta infinity. */
FALLIBLE vkey_check(const struct vkey *vk);
FALLIBLE vkey_read_json(struct vkey *out, struct bytes json,
                        const char *name); /* includes vkey_check */
FALLIBLE vkey_write_json(struct text *out, const struct vkey *vk);
/* As long as its count of points says, which neither bellman's parameters nor other kinds of keys are. */
bool vkey_is_bellman(struct bytes data);
FALLIBLE vkey_read_bellman(struct vkey *out, const struct curve *c, struct bytes data,
                           const char *name);
FALLIBLE vkey_copy(struct vkey *out, const struct vkey *vk);
void vkey_done(struct vkey *vk);
/* Forgeable: gamma equal to delta, as before any second-phase contribution. */
bool vkey_is_insecure(const struct vkey *vk);
FALLIBLE vkey_check_secure(const struct vkey *vk, const char *name); /* E_RANGE with the cure */

/* What is verified comes in three files of JSON, and they get mixed up. */
enum statement_part { PART_VKEY, PART_PUBLICS, PART_PROOF };
/* E_FORMAT when `root` is plainly another part than the one that is wanted. */
FALLIBLE statement_part_check(const cJSON *root, enum statement_part want);
