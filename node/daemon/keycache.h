/* Keys where the backend computes: loaded on first use, lent by reference, the least recently used leave first when a budget is reached.
 *
 * Each loaded key has one slot, the workspace of a job; what both take is known from the plan before either is made. Two budgets bound them,
 * host memory and the backend's own. A key that is lent stays; one that is wanted and finds no room waits until enough of the others are
 * back, and meanwhile nothing is lent to those who came later, so that it gets its turn. Keys that are kept never leave.
 *
 * The backend is told how much is free when it plans, and may take more of it for speed (enum key_tables). A key that had to leave for
 * others is told of nothing free when it comes again: it was too much once, so many keys end up small rather than in turns.
 *
 * Owner    the lane; closed before its backend, with nothing lent.
 * Threads  any. Keys are loaded and dropped by one thread at a time, whichever asked.
 * Errors   E_LIMIT when the plan alone exceeds a budget, or what kept keys leave of it, with the numbers; E_CANCELLED; those of the backend.
 */
#pragma once
#include "node/base/hash.h"
#include "node/groth16/backend.h"

struct keycache;

FALLIBLE keycache_new(struct keycache **out, struct backend *b, uint64_t host_bytes_max);
void keycache_free(struct keycache **c);

struct loaded_key {  /* a reference; zeroed: none */
    struct key *key; /* lent from the cache, like the slot, until keycache_give */
    struct backend_slot *slot;
    uint64_t load_ns; /* of this call; 0: it was there */
    struct resident *resident;
};
/* Waits for its turn, for other loads and for room; looks at *cancel (may be NULL) meanwhile. */
FALLIBLE keycache_get(struct loaded_key *out, struct keycache *c, const struct sha256 *digest,
                      struct key *key, const _Atomic int *cancel);
/* The same if it is loaded and nobody waits for room; false: it is not. */
bool keycache_find(struct loaded_key *out, struct keycache *c, const struct sha256 *digest);
bool keycache_has(struct keycache *c, const struct sha256 *digest); /* is loaded now */
/* Clears *k; fine on none. */
void keycache_give(struct keycache *c, struct loaded_key *k);
/* Never leaves from now on; E_LIMIT as for keycache_get. */
FALLIBLE keycache_keep(struct keycache *c, const struct sha256 *digest, struct key *key);

/* Gives all keys up, kept ones too: after a device error nothing that lies there is trusted. Those that are lent go when they are
 * given back, and are stale until then. */
void keycache_drop_all(struct keycache *c);
bool keycache_is_stale(struct keycache *c, const struct loaded_key *k);
/* A job took so long under this key. */
void keycache_learn(struct keycache *c, const struct sha256 *digest, uint64_t prove_ns);

struct key_speed {
    struct sha256 digest;
    uint64_t prove_ns, load_ns; /* 0: not known yet */
    bool resident;
};
/* What is known of the keys seen so far, most recently used first; returns how many. */
size_t keycache_speeds(struct key_speed *out, size_t out_max, struct keycache *c);
uint64_t keycache_bytes(struct keycache *c);        /* of host memory */
uint64_t keycache_device_bytes(struct keycache *c); /* of the backend's own */
/* Changes whenever a key comes or goes: when it does, others should be told. */
uint64_t keycache_version(struct keycache *c);
/* Estimated time of a job under this key here, load included; 0: never seen. */
uint64_t keycache_estimate(struct keycache *c, const struct sha256 *digest);
