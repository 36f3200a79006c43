/* 64-bit words with carries: what multi-word arithmetic is made of.
 *
 * On x86-64 the compiler's carry intrinsics, which both gcc and clang turn into adc/sbb chains; elsewhere 128-bit
 * integers. Everything is static inline, so copies compiled for different processors never meet in the linker.
 *
 * Threads  any; pure.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

typedef unsigned __int128 word2; /* the product of two words */

/* *out = a + b + carry; returns the carry out. */
static inline unsigned char word_adc(unsigned char carry, uint64_t a, uint64_t b, uint64_t *out) {
#ifdef __x86_64__
    unsigned long long sum;
    carry = _addcarry_u64(carry, a, b, &sum);
    *out = sum;
    return carry;
#else
    word2 sum = (word2)a + b + carry;
    *out = (uint64_t)sum;
    return (unsigned char)(sum >> 64);
#endif
}

/* *out = a - b - borrow; returns the borrow out. */
static inline unsigned char word_sbb(unsigned char borrow, uint64_t a, uint64_t b, uint64_t *out) {
#ifdef __x86_64__
    unsigned long long difference;
    borrow = _subborrow_u64(borrow, a, b, &difference);
    *out = difference;
    return borrow;
#else
    word2 difference = (word2)a - b - borrow;
    *out = (uint64_t)difference;
    return (unsigned char)((difference >> 64) & 1);
#endif
}

/* a < b for integers of `count` words. */
static inline bool words_less(const uint64_t *a, const uint64_t *b, size_t count) {
    for (size_t i = count; i-- > 0;) {
        if (a[i] != b[i]) {
            return a[i] < b[i];
        }
    }
    return false;
}

static inline bool words_are_zero(const uint64_t *a, size_t count) {
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++) {
        any |= a[i];
    }
    return any == 0;
}

/* Bits in use: 0 for zero. */
static inline unsigned words_bits(const uint64_t *a, size_t count) {
    for (size_t i = count; i-- > 0;) {
        if (a[i]) {
            return (unsigned)(64 * i) + 64u - (unsigned)__builtin_clzll(a[i]);
        }
    }
    return 0;
}

/* Signed digits of k, lowest first, one a bit: each zero or odd and below 2^(width - 1) in size, and of `width` in a row at most one is not zero.
 * Returns how many there are, at most 64·words + 1. 2 <= width <= 8, words <= WORDS_NAF_MAX. */
enum { WORDS_NAF_MAX = 8 };
static inline int words_naf(int8_t *digits, const uint64_t *k, size_t words, unsigned width) {
    uint64_t rest[WORDS_NAF_MAX + 1] = {0};
    int count = 0;
    memcpy(rest, k, 8 * words);
    while (!words_are_zero(rest, words + 1)) {
        int digit = 0;
        if (rest[0] & 1) { /* the one that makes the next width - 1 zero */
            digit = (int)(rest[0] & ((1u << width) - 1));
            digit -= digit >> (width - 1) ? 1 << width : 0;
            uint64_t subtract = (uint64_t)(int64_t)digit, sign = digit < 0 ? UINT64_MAX : 0;
            unsigned char borrow = word_sbb(0, rest[0], subtract, &rest[0]);
            for (size_t i = 1; i <= words; i++) {
                borrow = word_sbb(borrow, rest[i], sign, &rest[i]);
            }
        }
        digits[count++] = (int8_t)digit;
        for (size_t i = 0; i < words; i++) {
            rest[i] = (rest[i] >> 1) | (rest[i + 1] << 63);
        }
        rest[words] >>= 1;
    }
    return count;
}

/* `width` bits from bit `at` on; bits past the end are zero. width <= 32. */
static inline unsigned words_cut(const uint64_t *a, size_t count, unsigned at, unsigned width) {
    size_t word = at / 64;
    unsigned shift = at % 64;
    if (word >= count) {
        return 0;
    }
    uint64_t bits = a[word] >> shift;
    if (shift + width > 64 && word + 1 < count) {
        bits |= a[word + 1] << (64 - shift);
    }
    return (unsigned)(bits & ((UINT64_C(1) << width) - 1));
}
