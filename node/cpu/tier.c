/* The tiers, best first, and what each needs of the processor.
 *
 * cpuid by hand, as no single spelling of __builtin_cpu_supports covers ADX in gcc and clang. AVX-512 also needs the
 * operating system to save its registers: bits 1, 2, 5, 6, 7 of XCR0.
 */
#include "node/cpu/tier.h"

#include "node/cpu/cpu.h"

#include <stdio.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#define TABLES(tier)                                                                               \
    extern const struct cpu_ops bn254_##tier##_ops;                                                \
    extern const struct cpu_ops bls12_381_##tier##_ops;
TABLES(portable)
#ifdef __x86_64__
TABLES(adx)
TABLES(ifma)

enum { LEAF7_BMI2 = 1 << 8, LEAF7_ADX = 1 << 19, LEAF1_OSXSAVE = 1 << 27, XCR0_AVX512 = 0xe6 };
/* F, DQ, IFMA, BW, VL. */
static const unsigned leaf7_ifma = 1u << 16 | 1u << 17 | 1u << 21 | 1u << 30 | 1u << 31;

static bool has_adx(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & LEAF7_BMI2) && (b & LEAF7_ADX);
}

static bool has_ifma(void) {
    unsigned a, b, c, d, low, high;
    if (!has_adx() || !__get_cpuid(1, &a, &b, &c, &d) || !(c & LEAF1_OSXSAVE)) {
        return false;
    }
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & XCR0_AVX512) == XCR0_AVX512 && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (b & leaf7_ifma) == leaf7_ifma;
}
#endif

static bool has_portable(void) {
    return true;
}

static const struct tier {
    const char *name;
    bool (*usable)(void);
    const struct cpu_ops *tables[2];
} tiers[] = {
#ifdef __x86_64__
    {"ifma", has_ifma, {&bn254_ifma_ops, &bls12_381_ifma_ops}},
    {"adx", has_adx, {&bn254_adx_ops, &bls12_381_adx_ops}},
#endif
    {"portable", has_portable, {&bn254_portable_ops, &bls12_381_portable_ops}},
};

const char *const *cpu_tiers_usable(void) {
    static const char *names[COUNT_OF(tiers) + 1];
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(tiers); i++) { /* the same every time: a race writes the same */
        if (tiers[i].usable()) {
            names[count++] = tiers[i].name;
        }
    }
    return names;
}

static FALLIBLE find(const struct tier **out, const char *name) {
    bool exists = false;
    for (size_t i = 0; i < COUNT_OF(tiers); i++) {
        if (name && strcmp(tiers[i].name, name) != 0) {
            continue;
        }
        exists = true;
        if (tiers[i].usable()) {
            *out = &tiers[i];
            return OK;
        }
    }
    char usable[64] = "";
    const char *const *names = cpu_tiers_usable();
    for (size_t i = 0, len = 0; names[i] && len < sizeof usable; i++) {
        len += (size_t)snprintf(usable + len, sizeof usable - len, "%s%s", i ? ", " : "", names[i]);
    }
    REQUIRE(exists, E_USAGE, "CPU tier '%s' does not exist; this processor runs %s", name, usable);
    FAIL(E_USAGE, "this processor lacks what CPU tier '%s' needs; it runs %s", name, usable);
}

enum err tier_find(const struct cpu_ops **out, enum curve_id curve, const char *name) {
    const struct tier *tier = NULL;
    TRY(find(&tier, name));
    for (size_t i = 0; i < COUNT_OF(tier->tables); i++) {
        if (tier->tables[i]->curve == curve) {
            *out = tier->tables[i];
            return OK;
        }
    }
    FAIL(E_CURVE, "curve %d has no CPU arithmetic", (int)curve);
}

enum err tier_name(const char **out, const char *name) {
    const struct tier *tier = NULL;
    TRY(find(&tier, name));
    *out = tier->name;
    return OK;
}
