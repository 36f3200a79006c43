/* The scalars of H, from the evaluated rows of A and B.
 *
 * basis             h
 * H_COSET_LAGRANGE  a'·b' - c' at each point of the coset g·domain, g² the domain's generator (snarkjs)
 * H_POWERS          coefficients of (A·B - C)/(x^n - 1); the last of the n is 0 (bellman)
 *
 * Six transforms of the domain's size in either.
 *
 * Owner    the caller; nothing allocates. Vectors are ntt_vector_bytes each and are used up.
 * Threads  the one that may use the pool.
 * Errors   false: cancelled.
 */
#pragma once
#include "node/cpu/ntt.h"

struct quotient {
    struct ntt ntt;
    void *a, *b, *c;                          /* a, b: rows as ntt_rows says; c: scratch */
    uint8_t *h;                               /* out: 2^log2 canonical scalars of 32 bytes */
    void (*progress)(void *ctx, double done); /* may be NULL */
    void *progress_ctx;
};

bool quotient_run(const struct quotient *q);
