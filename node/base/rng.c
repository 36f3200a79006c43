/* SplitMix64 (Steele, Lea, Flood 2014) for tests; getrandom for secrets. */
#include "node/base/rng.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum err rng_os(void *out, size_t len) {
    uint8_t *at = out;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        REQUIRE(got > 0, E_IO, "no randomness from the kernel: %s", strerror(errno));
        at += got;
        len -= (size_t)got;
    }
    return OK;
}

uint64_t rng_u64(struct rng *r) {
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *r, uint64_t limit) {
    ASSERT(limit > 0);
    uint64_t excess = -limit % limit; /* 2^64 mod limit */
    for (;;) {
        uint64_t x = rng_u64(r);
        if (x >= excess) {
            return x % limit;
        }
    }
}

void rng_fill(struct rng *r, void *out, size_t len) {
    uint8_t *at = out;
    while (len > 0) {
        uint64_t x = rng_u64(r);
        size_t take = len < sizeof x ? len : sizeof x;
        memcpy(at, &x, take);
        at += take;
        len -= take;
    }
}
