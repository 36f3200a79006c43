/* Transforms of vectors over a domain, spread over a pool.
 *
 *     rows ── enter ──▶ ── DIF ──▶ coefficients, bit-reversed ── scale ── DIT ──▶ values on the coset, backwards
 *
 * Levels above a block that fits a cache are passes over the whole vector, cut into slices; then every block goes through
 * the rest of DIF, the scaling and the beginning of DIT in one task, while it is warm; then the upper levels of DIT.
 *
 * Owner    the caller: domain, vectors, pool; nothing allocates.
 * Threads  the one that may use the pool.
 * Errors   functions that return bool: false when *cancel was seen set; contents are then undefined.
 */
#pragma once
#include "node/cpu/ops.h"

struct ntt {
    const struct domain *domain;
    const struct ntt_body *body;
    struct pool *pool;
    const _Atomic int *cancel; /* lent */
};

/* Bytes of one vector; and where in it the 2^log2 rows lie that ntt_enter takes: fr, Montgomery, natural order. */
size_t ntt_vector_bytes(const struct ntt_body *body, unsigned log2);
uint64_t *ntt_rows(const struct ntt_body *body, void *vector, unsigned log2);

bool ntt_enter(const struct ntt *t, void *const *vectors, unsigned count);
/* To bit-reversed coefficients. `scale`: each also times g^-k/n. */
bool ntt_dif(const struct ntt *t, void *const *vectors, unsigned count, bool scale);
/* To values on the coset, short of kappa, in backward order. */
bool ntt_to_coset(const struct ntt *t, void *const *vectors, unsigned count);
/* Calls body(ctx, from, to) for slices of all units. */
bool ntt_slices(const struct ntt *t, void (*body)(void *ctx, size_t from, size_t to), void *ctx);
