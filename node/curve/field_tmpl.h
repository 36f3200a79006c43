/* A prime field: template, included once per field by fields.h.
 *
 *     #define FIELD   fp            prefix of the type and of all functions: fp, fp_mul, fp_add, ...
 *     #define FIELD_C FP            prefix of its constants in the curve's parameter header: FP_P, FP_R1, ...
 *     #include "node/curve/field_tmpl.h"
 *
 * An element is FIELD_LIMBS little-endian 64-bit words in Montgomery form, R = 2^(64·limbs), canonical (< p) on the
 * way in and out of every function. Output first; outputs may be inputs. Needs p < 2^(64·limbs - 1), so that the two
 * carry words of a multiplication row never overflow and no extra word is kept.
 *
 * There are two bodies of the multiplication: C, and with FIELD_USE_ADX defined (x86-64 with BMI2 and ADX) rows of mulx
 * with two carry chains. The macro decides which one `_mul` means; `_mul_portable` is always there, so that a test
 * can hold the two against each other.
 *
 * Functions, for FIELD = fp (constants: fp_zero, fp_one, fp_r2, fp_modulus, fp_half_modulus):
 *     fp_is_zero fp_equal fp_is_canonical    fp_add fp_sub fp_neg fp_double fp_halve    fp_mul fp_sqr
 *     fp_inv fp_pow fp_inv_batch             fp_from_int fp_to_int fp_from_small        fp_sqrt (fields with p = 3 mod 4)
 *
 * Cost     fp_mul 2n² + n word products for n limbs; fp_inv about 80 (n = 4) to 60 (n = 6) multiplications.
 * Threads  any; pure. Variable time.
 * Source   Montgomery product: Koç, Acar, Kaliski, "Analyzing and comparing Montgomery multiplication algorithms", CIOS.
 *          Inverse: T. Pornin, "Optimized Binary GCD for Modular Inversion", ePrint 2020/972, leaving early.
 */
#include "node/curve/word.h"

#define FIELD_PASTE_(a, b) a##b
#define FIELD_PASTE(a, b)  FIELD_PASTE_(a, b)
#define F(name)            FIELD_PASTE(FIELD, _##name)
#define C(name)            FIELD_PASTE(FIELD_C, _##name)
#define FIELD_LIMBS        C(LIMBS)

typedef struct {
    uint64_t w[FIELD_LIMBS];
} FIELD;

_Static_assert(C(BITS) < 64 * FIELD_LIMBS, "a modulus needs a spare bit");

static const FIELD F(modulus) = {C(P)}; /* p itself, an integer */
static const FIELD F(half_modulus) = {C(HALF)};
static const FIELD F(zero) = {{0}};
static const FIELD F(one) = {C(R1)};
static const FIELD F(r2) = {C(R2)};
static const FIELD F(r3) = {C(R3)};

static inline bool F(is_zero)(const FIELD *a) {
    return words_are_zero(a->w, FIELD_LIMBS);
}

static inline bool F(equal)(const FIELD *a, const FIELD *b) {
    uint64_t differ = 0;
#pragma GCC unroll 8
    for (int i = 0; i < FIELD_LIMBS; i++) {
        differ |= a->w[i] ^ b->w[i];
    }
    return differ == 0;
}

/* Are these words below p? For words from outside. */
static inline bool F(is_canonical)(const uint64_t *w) {
    return words_less(w, F(modulus).w, FIELD_LIMBS);
}

/* out = t - p; returns the borrow. */
static inline unsigned char F(sub_modulus)(uint64_t *out, const uint64_t *t) {
    unsigned char borrow = 0;
#pragma GCC unroll 8
    for (int i = 0; i < FIELD_LIMBS; i++) {
        borrow = word_sbb(borrow, t[i], F(modulus).w[i], &out[i]);
    }
    return borrow;
}

/* t < 2p in, < p out. */
static inline void F(reduce)(FIELD *out, const uint64_t *t) {
    uint64_t s[FIELD_LIMBS];
    uint64_t keep = -(uint64_t)F(sub_modulus)(s, t);
#pragma GCC unroll 8
    for (int i = 0; i < FIELD_LIMBS; i++) {
        out->w[i] = (t[i] & keep) | (s[i] & ~keep);
    }
}

static inline void F(add)(FIELD *out, const FIELD *a, const FIELD *b) {
    uint64_t t[FIELD_LIMBS];
    unsigned char carry = 0;
#pragma GCC unroll 8
    for (int i = 0; i < FIELD_LIMBS; i++) {
        carry = word_adc(carry, a->w[i], b->w[i], &t[i]);
    }
    F(reduce)(out, t);
}

static inline void F(double)(FIELD *out, const FIELD *a) {
    F(add)(out, a, a);
}

static inline void F(sub)(FIELD *out, const FIELD *a, const FIELD *b) {
    uint64_t t[FIELD_LIMBS];
    unsigned char borrow = 0;
#pragma GCC unroll 8
    for (int i = 0; i < FIELD_LIMBS; i++) {
        borrow = word_sbb(borrow, a->w[i], b->w[i], &t[i]);
    }
    uint64_t mask = -(uint64_t)borrow;
    unsigned char carry = 0;
#pragma GCC unroll 8
    for (int i = 0; i < FIELD_LIMBS; i++) {
        carry = word_adc(carry, t[i], F(modulus).w[i] & mask, &out->w[i]);
    }
}

static inline void F(neg)(FIELD *out, const FIELD *a) {
    if (F(is_zero)(a)) {
        *out = F(zero);
    } else {
        F(sub)(out, &F(zero), a);
    }
}

/* a/2: an odd a becomes even by adding p. */
static inline void F(halve)(FIELD *out, const FIELD *a) {
    uint64_t t[FIELD_LIMBS], mask = -(a->w[0] & 1);
    unsigned char carry = 0;
#pragma GCC unroll 8
    for (int i = 0; i < FIELD_LIMBS; i++) {
        carry = word_adc(carry, a->w[i], F(modulus).w[i] & mask, &t[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i + 1 < FIELD_LIMBS; i++) {
        out->w[i] = (t[i] >> 1) | (t[i + 1] << 63);
    }
    out->w[FIELD_LIMBS - 1] = t[FIELD_LIMBS - 1] >> 1;
}

/* a·b/R. One row per word of b: add a·b[i], then the multiple of p that clears the lowest word, shift by a word. */
static inline void F(mul_portable)(FIELD *out, const FIELD *a, const FIELD *b) {
    uint64_t t[FIELD_LIMBS] = {0};
#pragma GCC unroll 8
    for (int i = 0; i < FIELD_LIMBS; i++) {
        word2 x = (word2)a->w[0] * b->w[i] + t[0];
        uint64_t m = (uint64_t)x * C(NINV);
        word2 y = (word2)m * F(modulus).w[0] + (uint64_t)x;
        uint64_t carry_x = (uint64_t)(x >> 64), carry_y = (uint64_t)(y >> 64);
#pragma GCC unroll 8
        for (int j = 1; j < FIELD_LIMBS; j++) {
            x = (word2)a->w[j] * b->w[i] + t[j] + carry_x;
            carry_x = (uint64_t)(x >> 64);
            y = (word2)m * F(modulus).w[j] + (uint64_t)x + carry_y;
            carry_y = (uint64_t)(y >> 64);
            t[j - 1] = (uint64_t)y;
        }
        t[FIELD_LIMBS - 1] = carry_x + carry_y;
    }
    F(reduce)(out, t);
}

#if defined(FIELD_USE_ADX) && defined(__x86_64__)
#include "node/curve/field_adx.h"
static inline void F(mul)(FIELD *out, const FIELD *a, const FIELD *b) {
    F(mul_adx)(out, a, b);
}
#else
static inline void F(mul)(FIELD *out, const FIELD *a, const FIELD *b) {
    F(mul_portable)(out, a, b);
}
#endif

static inline void F(sqr)(FIELD *out, const FIELD *a) {
    F(mul)(out, a, a);
}

/* a^exponent, a plain integer of `words` words. */
static inline void F(pow)(FIELD *out, const FIELD *a, const uint64_t *exponent, size_t words) {
    FIELD x = F(one);
    for (unsigned bit = words_bits(exponent, words); bit-- > 0;) {
        F(sqr)(&x, &x);
        if (exponent[bit / 64] >> (bit % 64) & 1) {
            F(mul)(&x, &x, a);
        }
    }
    *out = x;
}

/* The plain integer `in` (limbs words) to Montgomery form; false, and *out untouched, if it is not below p. */
static inline bool F(from_int)(FIELD *out, const uint64_t *in) {
    if (!F(is_canonical)(in)) {
        return false;
    }
    FIELD a;
    memcpy(&a, in, sizeof a);
    F(mul)(out, &a, &F(r2));
    return true;
}

static inline void F(to_int)(uint64_t *out, const FIELD *a) {
    const FIELD unit = {{1}};
    FIELD x;
    F(mul)(&x, a, &unit);
    memcpy(out, &x, sizeof x);
}

static inline void F(from_small)(FIELD *out, uint64_t value) {
    const FIELD a = {{value}};
    F(mul)(out, &a, &F(r2));
}

/* --- Inversion. Both numbers of a gcd shrink by 31 bits a round, steered by 64-bit approximations of them. --- */

/* The 2×2 matrix of 31 steps: (a, b) <- (a f0 + b g0, a f1 + b g1) / 2^31. */
typedef struct {
    int64_t f0, g0, f1, g1;
} F(gcd_steps);

static inline F(gcd_steps) F(gcd_plan)(const uint64_t *a, const uint64_t *b) {
    int top = FIELD_LIMBS - 1;
    while (top > 0 && (a[top] | b[top]) == 0) {
        top--;
    }
    /* Low 31 bits and top 33 bits of both, aligned alike. */
    uint64_t x = a[0], y = b[0];
    if (top > 0) {
        int shift = __builtin_clzll(a[top] | b[top]);
        uint64_t high_a = shift ? (a[top] << shift) | (a[top - 1] >> (64 - shift)) : a[top];
        uint64_t high_b = shift ? (b[top] << shift) | (b[top - 1] >> (64 - shift)) : b[top];
        x = (a[0] & 0x7fffffff) | (high_a >> 31 << 31);
        y = (b[0] & 0x7fffffff) | (high_b >> 31 << 31);
    }
    F(gcd_steps) s = {1, 0, 0, 1};
    for (int k = 0; k < 31; k++) {
        uint64_t odd = -(x & 1), swap = odd & -(uint64_t)(x < y);
        uint64_t d = (x ^ y) & swap;
        x ^= d;
        y ^= d;
        int64_t e = (s.f0 ^ s.f1) & (int64_t)swap;
        s.f0 ^= e;
        s.f1 ^= e;
        e = (s.g0 ^ s.g1) & (int64_t)swap;
        s.g0 ^= e;
        s.g1 ^= e;
        x -= y & odd;
        s.f0 -= s.f1 & (int64_t)odd;
        s.g0 -= s.g1 & (int64_t)odd;
        x >>= 1;
        s.f1 *= 2;
        s.g1 *= 2;
    }
    return s;
}

/* A word times a signed factor of at most 31 bits and a sign. */
static inline __int128 F(gcd_times)(uint64_t w, int64_t factor) {
    return factor < 0 ? -(__int128)((word2)w * (uint64_t)-factor)
                      : (__int128)((word2)w * (uint64_t)factor);
}

/* out = (x f + y g + m p) / 2^31 as signed words; the division is exact. Returns the top word, which holds the sign. */
static inline int64_t F(gcd_combine)(uint64_t *out, const uint64_t *x, int64_t f, const uint64_t *y,
                                     int64_t g, uint64_t m) {
    __int128 sum = 0;
    uint64_t low = 0;
#pragma GCC unroll 8
    for (int i = 0; i < FIELD_LIMBS; i++) {
        sum += F(gcd_times)(x[i], f) + F(gcd_times)(y[i], g);
        sum += (__int128)((word2)m * F(modulus).w[i]);
        uint64_t word = (uint64_t)sum;
        sum >>= 64;
        if (i > 0) {
            out[i - 1] = (low >> 31) | (word << 33);
        }
        low = word;
    }
    out[FIELD_LIMBS - 1] = (low >> 31) | ((uint64_t)sum << 33);
    return (int64_t)sum;
}

/* |x f + y g| / 2^31; the factors change sign with it. */
static inline void F(gcd_shrink)(uint64_t *out, const uint64_t *x, int64_t *f, const uint64_t *y,
                                 int64_t *g) {
    if (F(gcd_combine)(out, x, *f, y, *g, 0) < 0) {
        unsigned char borrow = 0;
#pragma GCC unroll 8
        for (int i = 0; i < FIELD_LIMBS; i++) {
            borrow = word_sbb(borrow, 0, out[i], &out[i]);
        }
        *f = -*f;
        *g = -*g;
    }
}

/* (u f + v g) / 2^31 mod p, canonical: m p makes the low 31 bits vanish and leaves a value in (-p, 2p). */
static inline void F(gcd_follow)(FIELD *out, const FIELD *u, int64_t f, const FIELD *v, int64_t g) {
    uint64_t low = u->w[0] * (uint64_t)f + v->w[0] * (uint64_t)g;
    uint64_t m = (low * C(NINV)) & 0x7fffffff;
    uint64_t t[FIELD_LIMBS], s[FIELD_LIMBS];
    if (F(gcd_combine)(t, u->w, f, v->w, g, m) < 0) {
        unsigned char carry = 0;
#pragma GCC unroll 8
        for (int i = 0; i < FIELD_LIMBS; i++) {
            carry = word_adc(carry, t[i], F(modulus).w[i], &t[i]);
        }
    } else if (!F(sub_modulus)(s, t)) {
        memcpy(t, s, sizeof t);
    }
    F(reduce)(out, t);
}

/* 1/a; 0 gives 0. */
static inline void F(inv)(FIELD *out, const FIELD *in) {
    if (F(is_zero)(in)) {
        *out = F(zero);
        return;
    }
    /* Invariants: in·u = a and in·v = b mod p; ends with a = 0, b = 1. Each round takes at least 31 bits off a·b. */
    FIELD a = *in, b = F(modulus), u = {{1}}, v = {{0}};
    while (!F(is_zero)(&a)) {
        F(gcd_steps) s = F(gcd_plan)(a.w, b.w);
        FIELD next_a, next_b, next_u, next_v;
        F(gcd_shrink)(next_a.w, a.w, &s.f0, b.w, &s.g0);
        F(gcd_shrink)(next_b.w, a.w, &s.f1, b.w, &s.g1);
        F(gcd_follow)(&next_u, &u, s.f0, &v, s.g0);
        F(gcd_follow)(&next_v, &u, s.f1, &v, s.g1);
        a = next_a;
        b = next_b;
        u = next_u;
        v = next_v;
    }
    F(mul)(out, &v, &F(r3)); /* in = xR, so v = 1/(xR); times R^3/R is R/x */
}

/* In place, x[i] <- 1/x[i], zeros stay zero: one inversion and 3 products each. prefix: count elements of scratch. */
static inline void F(inv_batch)(FIELD *x, FIELD *prefix, size_t count) {
    FIELD product = F(one);
    for (size_t i = 0; i < count; i++) {
        prefix[i] = product;
        if (!F(is_zero)(&x[i])) {
            F(mul)(&product, &product, &x[i]);
        }
    }
    F(inv)(&product, &product);
    for (size_t i = count; i-- > 0;) {
        if (!F(is_zero)(&x[i])) {
            FIELD inverse;
            F(mul)(&inverse, &product, &prefix[i]);
            F(mul)(&product, &product, &x[i]);
            x[i] = inverse;
        }
    }
}

/* y > -y as plain integers. */
static inline bool F(is_larger)(const FIELD *y) {
    uint64_t plain[FIELD_LIMBS];
    F(to_int)(plain, y);
    return words_less(F(half_modulus).w, plain, FIELD_LIMBS);
}

#if C(IS_3_MOD_4)
/* A square root; false, and *out untouched, if there is none. */
static inline bool F(sqrt)(FIELD *out, const FIELD *a) {
    static const uint64_t exponent[FIELD_LIMBS] = C(SQRT_EXPONENT);
    FIELD root, square;
    F(pow)(&root, a, exponent, FIELD_LIMBS);
    F(sqr)(&square, &root);
    if (!F(equal)(&square, a)) {
        return false;
    }
    *out = root;
    return true;
}
#endif

#undef F
#undef C
#undef FIELD_LIMBS
#undef FIELD_PASTE
#undef FIELD_PASTE_
#undef FIELD
#undef FIELD_C
