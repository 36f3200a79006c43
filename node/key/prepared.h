/* What the points of a verifying key that stay bring along, so that proofs under it are assembled in less than half of the time and checked in
 * two thirds of it: multiples of delta and of the first IC, the lines of gamma and delta, and the pairing of alpha with beta.
 *
 * Owner    the caller, to mem_free; the key may go before it.
 * Threads  const once made.
 * Memory   BN254 132 KB and 33 KB a public signal, BLS12-381 195 and 49 KB. Made in 2 to 6 ms.
 * Errors   E_LIMIT without memory.
 */
#pragma once
#include "node/key/vkey.h"

enum { PREPARED_PUBLICS_MAX = 4 }; /* more of them are summed together */

struct prepared {
    struct gt alpha_beta;                  /* for the factor of struct pairing_kept */
    const void *gamma_lines, *delta_lines; /* in G2 */
    const void *delta1_comb, *delta2_comb;
    const void
        *ic_combs[PREPARED_PUBLICS_MAX]; /* of IC_1 and up; ic_combs_count of them: all, or none */
    size_t ic_combs_count;
    uint64_t memory[];
};

/* Of a key that vkey_check has passed; without delta in G1 its comb is one of infinity. */
FALLIBLE prepared_new(struct prepared **out, const struct vkey *vk);
