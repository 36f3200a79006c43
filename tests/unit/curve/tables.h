/* Running a check over every table of both curves: all bodies of the multiplication that this processor has. */
#pragma once
#include "node/curve/curve_table.h"
#include "tests/check/check.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

static inline bool adx_is_here(void) {
#ifdef __x86_64__
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 8 & 1) && (b >> 19 & 1);
#else
    return false;
#endif
}

static inline void for_each_table(void (*check)(const struct curve *c)) {
    check(&bn254_curve_portable);
    check(&bls12_381_curve_portable);
#ifdef __x86_64__
    if (adx_is_here()) {
        check(&bn254_curve_adx);
        check(&bls12_381_curve_adx);
    }
#endif
}

/* Random below r. */
static inline struct scalar scalar_some(const struct curve *c) {
    struct scalar s;
    do {
        rng_fill(check_rng(), &s, sizeof s);
        s.w[3] &= UINT64_MAX >> 1;
    } while (!scalar_is_valid(c, &s));
    return s;
}

static inline struct scalar scalar_of(uint64_t value) {
    return (struct scalar){{value}};
}
