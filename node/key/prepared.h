/* What the points of a verifying key that stay bring along, so that proofs under it are assembled in less than half of the time and checked in
 * two thirds of it: multiples of delta and of IC, the lines of gamma and delta, and the pairing of alpha with beta.
 *
 * Owner    the caller, to mem_free; the key may go before it.
 * Threads  const once made.
 * Memory   BN254 132 KB, BLS12-381 195 KB; of a public signal of few 33 and 49 KB, of many 2 and 3 KB. Made in 2 to 6 ms, with
 *          hundreds of public signals 50 or 90 µs more for each.
 * Errors   E_LIMIT without memory.
 */
#pragma once
#include "node/key/vkey.h"

/* Public signals: so many at most have a comb each, and so many one table; the sum over more is made as ever. */
enum { PREPARED_COMBS_MAX = 4, PREPARED_TABLE_MAX = 1024 };

struct prepared {
    struct gt alpha_beta;                  /* for the factor of struct pairing_kept */
    const void *gamma_lines, *delta_lines; /* in G2 */
    const void *delta1_comb, *delta2_comb;
    const void *ic_combs[PREPARED_COMBS_MAX]; /* of IC_1 and up */
    const void *ic_table;                     /* of all of them, where there are more; else NULL */
    uint64_t memory[];
};

/* Of a key that vkey_check has passed; without delta in G1 its comb is one of infinity. */
FALLIBLE prepared_new(struct prepared **out, const struct vkey *vk);
