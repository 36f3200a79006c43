/* Keys where the backend computes: loaded on first use, the least recently used leave first when a budget is reached.
 *
 * Each loaded key has one slot, the workspace of a job; what both take is known from the plan before either is made.
 *
 * Owner    the lane; closed before its backend.
 * Threads  the one that drives the backend; keycache_resident and keycache_speeds any.
 * Errors   E_LIMIT when the plan alone exceeds the budget, with both numbers; those of the backend.
 */
#pragma once
#include "node/base/hash.h"
#include "node/groth16/backend.h"

struct keycache;

FALLIBLE keycache_new(struct keycache **out, struct backend *b, uint64_t bytes_max);
void keycache_free(struct keycache **c);

struct loaded_key {
    struct key *key; /* lent from the cache, like the slot: until the next call */
    struct backend_slot *slot;
    uint64_t load_ns; /* of this call; 0: it was there */
};
FALLIBLE keycache_get(struct loaded_key *out, struct keycache *c, const struct sha256 *digest,
                      struct key *key);
/* Gives a key up: after a device error its workspace is not trusted. */
void keycache_drop(struct keycache *c, const struct sha256 *digest);
void keycache_drop_all(struct keycache *c);
/* A job took so long under this key. */
void keycache_learn(struct keycache *c, const struct sha256 *digest, uint64_t prove_ns);

struct key_speed {
    struct sha256 digest;
    uint64_t prove_ns, load_ns; /* 0: not known yet */
    bool resident;
};
/* What is known of the keys seen so far, most recently used first; returns how many. */
size_t keycache_speeds(struct key_speed *out, size_t out_max, struct keycache *c);
uint64_t keycache_bytes(struct keycache *c);
/* Changes whenever a key comes or goes: when it does, others should be told. */
uint64_t keycache_version(struct keycache *c);
/* Estimated time of a job under this key here, load included; 0: never seen. */
uint64_t keycache_estimate(struct keycache *c, const struct sha256 *digest);
