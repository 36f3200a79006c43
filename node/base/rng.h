/* Randomness: from the OS for secrets, seeded and replayable for tests.
 *
 * Threads  rng_os any; a struct rng belongs to one thread.
 */
#pragma once
#include "node/base/err.h"

FALLIBLE rng_os(void *out, size_t len); /* getrandom; E_IO if the kernel refuses */

struct rng {
    uint64_t state;
};
static inline struct rng rng_seeded(uint64_t seed) {
    return (struct rng){seed};
}
uint64_t rng_u64(struct rng *r);                   /* SplitMix64 */
uint64_t rng_below(struct rng *r, uint64_t limit); /* uniform in [0, limit), limit > 0 */
void rng_fill(struct rng *r, void *out, size_t len);
