/* Seeded numbers are the same everywhere; numbers from the kernel are not. */
#include "tests/check/check.h"

#include <string.h>

/* First outputs of SplitMix64 for seed 1234567, as published with the algorithm's reference code. */
static void claim_published(void) {
    struct rng r = rng_seeded(1234567);
    CHECK(rng_u64(&r) == UINT64_C(6457827717110365317));
    CHECK(rng_u64(&r) == UINT64_C(3203168211198807973));
    CHECK(rng_u64(&r) == UINT64_C(9817491932198370423));
}

static void claim_below(void) {
    size_t counts[7] = {0};
    for (int i = 0; i < 70000; i++) {
        uint64_t x = rng_below(check_rng(), 7);
        CHECK(x < 7);
        counts[x]++;
    }
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        CHECK(counts[i] > 9000 && counts[i] < 11000);
    }
    CHECK_EQ(0, rng_below(check_rng(), 1));
    CHECK(rng_below(check_rng(), UINT64_MAX) < UINT64_MAX);
}

static void claim_fill(void) {
    struct rng a = rng_seeded(5), b = rng_seeded(5);
    uint8_t x[13], y[16];
    rng_fill(&a, x, sizeof x);
    rng_fill(&b, y, sizeof y);
    CHECK_MEM(y, x, sizeof x);
}

static void claim_os(void) {
    uint8_t x[32], y[32];
    CHECK_OK(rng_os(x, sizeof x));
    CHECK_OK(rng_os(y, sizeof y));
    CHECK(memcmp(x, y, sizeof x) != 0);
    CHECK_OK(rng_os(NULL, 0));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a seed gives the published sequence", claim_published},
        {"rng_below is below and even", claim_below},
        {"rng_fill of any length is the same stream", claim_fill},
        {"the kernel's numbers differ from call to call", claim_os},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
