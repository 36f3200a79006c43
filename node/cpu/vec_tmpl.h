/* A prime field in eight lanes of AVX-512 IFMA: template, included once per field by msm_tmpl.c and ntt_tmpl.c.
 *
 *     #define VEC   fp_x8           prefix of the type and of all functions: fp_x8, fp_x8_mul, ...
 *     #define VEC_C FP              prefix of its constants: FP_P52, FP_NINV52, ...
 *     #define VEC_SCALAR fp         the field's scalar type
 *     #include "node/cpu/vec_tmpl.h"
 *
 * An element is VEC_LIMBS vectors of 52-bit limbs, eight numbers side by side, Montgomery form with R = 2^(52·limbs).
 * "Normalised": every limb but the top one is in [0, 2^52). The multiplier reads the low 52 bits of a limb and ignores
 * the rest, so what enters a product must be normalised and below R; sums and differences of limbs need not be, as long
 * as nobody multiplies them.
 *
 *     R/p is at least 84 for coordinates and 35 for scalars, so products are not reduced to [0, p):
 *
 *     a·b/R for a·b < k·R·p       < (k + 1)·p; in particular a < 6p, b < 2p gives < 2p
 *     differences                 + 4p before normalising, to stay positive
 *     red                         [0, 8p) to [0, 2p + 2^-40 p): compares top limbs only, hence + 4p and not + 2p
 *
 * Cost     a product 10-11 cycles an element for 5 limbs, 26 for 8; squares a sixth less.
 * Threads  any; pure. Variable time only in `zero`'s users.
 * Tried    Row by row (CIOS): latency 146 cycles against 110 of product first, reduction after. Two accumulators a row
 *          for low and high halves: no better.
 */
#include <immintrin.h>
#include <stdint.h>

#ifndef VEC_ONCE
#define VEC_ONCE
typedef __m512i words_x8; /* one 64-bit word of eight numbers */
#define VEC_INLINE             static inline __attribute__((always_inline))
#define VEC_PASTE_(a, b)       a##b
#define VEC_PASTE(a, b)        VEC_PASTE_(a, b)
#define VEC_LOW_MASK           _mm512_set1_epi64(0xfffffffffffffLL)
#define VEC_MADD_LO(sum, a, b) _mm512_madd52lo_epu64(sum, a, b)
#define VEC_MADD_HI(sum, a, b) _mm512_madd52hi_epu64(sum, a, b)
#define VEC_BROADCAST(word)    _mm512_set1_epi64((long long)(word))

/* Transposes eight vectors of eight words. */
VEC_INLINE void words_x8_transpose(words_x8 *r) {
    words_x8 a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
    }
    const words_x8 low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const words_x8 high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    for (int i = 0; i < 8; i += 4) {
        for (int j = 0; j < 2; j++) {
            b[i + j] = _mm512_permutex2var_epi64(a[i + j], low, a[i + 2 + j]);
            b[i + 2 + j] = _mm512_permutex2var_epi64(a[i + j], high, a[i + 2 + j]);
        }
    }
    for (int j = 0; j < 4; j++) {
        r[j] = _mm512_shuffle_i64x2(b[j], b[4 + j], 0x44);
        r[4 + j] = _mm512_shuffle_i64x2(b[j], b[4 + j], 0xee);
    }
}
#endif

#define V(name)   VEC_PASTE(VEC, _##name)
#define C(name)   VEC_PASTE(VEC_C, _##name)
#define VEC_LIMBS C(LIMBS52)
#define VEC_WORDS C(LIMBS)

typedef struct {
    words_x8 l[VEC_LIMBS];
} VEC;

static const uint64_t V(p)[VEC_LIMBS] = C(P52);
static const uint64_t V(p2)[VEC_LIMBS] = C(P2_52);
static const uint64_t V(p4)[VEC_LIMBS] = C(P4_52);
static const uint64_t V(p6)[VEC_LIMBS] = C(P6_52);
static const uint64_t V(one52)[VEC_LIMBS] = C(R1_52);

VEC_INLINE void V(broadcast)(VEC *out, const uint64_t *limbs) {
    for (int i = 0; i < VEC_LIMBS; i++) {
        out->l[i] = VEC_BROADCAST(limbs[i]);
    }
}

/* Carries signed limbs upward; the value must be >= 0. */
VEC_INLINE void V(norm)(VEC *a) {
#pragma GCC unroll 8
    for (int i = 0; i < VEC_LIMBS - 1; i++) {
        a->l[i + 1] = _mm512_add_epi64(a->l[i + 1], _mm512_srai_epi64(a->l[i], 52));
        a->l[i] = _mm512_and_si512(a->l[i], VEC_LOW_MASK);
    }
}

/* The double-width product, raw limbs: sums and differences of a few of them may be reduced as one. */
VEC_INLINE void V(prod)(words_x8 *t, const VEC *a, const VEC *b) {
#pragma GCC unroll 16
    for (int i = 0; i < 2 * VEC_LIMBS; i++) {
        t[i] = _mm512_setzero_si512();
    }
#pragma GCC unroll 8
    for (int i = 0; i < VEC_LIMBS; i++) {
#pragma GCC unroll 8
        for (int j = 0; j < VEC_LIMBS; j++) {
            t[i + j] = VEC_MADD_LO(t[i + j], a->l[j], b->l[i]);
            t[i + j + 1] = VEC_MADD_HI(t[i + j + 1], a->l[j], b->l[i]);
        }
    }
}

/* t/R mod p, in (t/R, t/R + p); limbs raw. t is used up. */
VEC_INLINE void V(redc)(VEC *out, words_x8 *t) {
    const words_x8 ninv = VEC_BROADCAST(C(NINV52)), zero = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int i = 0; i < VEC_LIMBS; i++) {
        words_x8 m = VEC_MADD_LO(zero, t[i], ninv);
#pragma GCC unroll 8
        for (int j = 0; j < VEC_LIMBS; j++) {
            t[i + j] = VEC_MADD_LO(t[i + j], m, VEC_BROADCAST(V(p)[j]));
            t[i + j + 1] = VEC_MADD_HI(t[i + j + 1], m, VEC_BROADCAST(V(p)[j]));
        }
        t[i + 1] = _mm512_add_epi64(t[i + 1], _mm512_srai_epi64(t[i], 52));
    }
#pragma GCC unroll 8
    for (int i = 0; i < VEC_LIMBS; i++) {
        out->l[i] = t[VEC_LIMBS + i];
    }
}

VEC_INLINE void V(mul)(VEC *out, const VEC *a, const VEC *b) {
    words_x8 t[2 * VEC_LIMBS];
    V(prod)(t, a, b);
    V(redc)(out, t);
    V(norm)(out);
}

/* Cross products once and doubled. */
VEC_INLINE void V(sqr)(VEC *out, const VEC *a) {
    words_x8 t[2 * VEC_LIMBS];
#pragma GCC unroll 16
    for (int i = 0; i < 2 * VEC_LIMBS; i++) {
        t[i] = _mm512_setzero_si512();
    }
#pragma GCC unroll 8
    for (int i = 0; i < VEC_LIMBS; i++) {
#pragma GCC unroll 8
        for (int j = i + 1; j < VEC_LIMBS; j++) {
            t[i + j] = VEC_MADD_LO(t[i + j], a->l[i], a->l[j]);
            t[i + j + 1] = VEC_MADD_HI(t[i + j + 1], a->l[i], a->l[j]);
        }
    }
#pragma GCC unroll 16
    for (int i = 1; i < 2 * VEC_LIMBS - 1; i++) {
        t[i] = _mm512_add_epi64(t[i], t[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < VEC_LIMBS; i++) {
        t[2 * i] = VEC_MADD_LO(t[2 * i], a->l[i], a->l[i]);
        t[2 * i + 1] = VEC_MADD_HI(t[2 * i + 1], a->l[i], a->l[i]);
    }
    V(redc)(out, t);
    V(norm)(out);
}

VEC_INLINE void V(sub_raw)(VEC *out, const VEC *a, const VEC *b) {
    for (int i = 0; i < VEC_LIMBS; i++) {
        out->l[i] = _mm512_sub_epi64(a->l[i], b->l[i]);
    }
}
VEC_INLINE void V(add_raw)(VEC *out, const VEC *a, const VEC *b) {
    for (int i = 0; i < VEC_LIMBS; i++) {
        out->l[i] = _mm512_add_epi64(a->l[i], b->l[i]);
    }
}
VEC_INLINE void V(add_const)(VEC *out, const uint64_t *limbs) {
    for (int i = 0; i < VEC_LIMBS; i++) {
        out->l[i] = _mm512_add_epi64(out->l[i], VEC_BROADCAST(limbs[i]));
    }
}

/* Raw limbs, value in [0, 8p), to normalised and below 2p + 2^-40 p. */
VEC_INLINE void V(red)(VEC *a) {
    enum { TOP = VEC_LIMBS - 1 };
    __mmask8 over = _mm512_cmpge_epi64_mask(a->l[TOP], VEC_BROADCAST(V(p4)[TOP] + 8));
    for (int i = 0; i < VEC_LIMBS; i++) {
        a->l[i] = _mm512_mask_sub_epi64(a->l[i], over, a->l[i], VEC_BROADCAST(V(p4)[i]));
    }
    over = _mm512_cmpge_epi64_mask(a->l[TOP], VEC_BROADCAST(V(p2)[TOP] + 8));
    for (int i = 0; i < VEC_LIMBS; i++) {
        a->l[i] = _mm512_mask_sub_epi64(a->l[i], over, a->l[i], VEC_BROADCAST(V(p2)[i]));
    }
    V(norm)(a);
}

/* Lanes that are 0 mod p, for any normalised value below R: a·1/R is 0 or p exactly for them. */
VEC_INLINE __mmask8 V(is_zero)(const VEC *a) {
    VEC unit, t;
    unit.l[0] = VEC_BROADCAST(1);
    for (int i = 1; i < VEC_LIMBS; i++) {
        unit.l[i] = _mm512_setzero_si512();
    }
    V(mul)(&t, a, &unit);
    words_x8 not_zero = t.l[0], not_p = _mm512_xor_si512(t.l[0], VEC_BROADCAST(V(p)[0]));
    for (int i = 1; i < VEC_LIMBS; i++) {
        not_zero = _mm512_or_si512(not_zero, t.l[i]);
        not_p = _mm512_or_si512(not_p, _mm512_xor_si512(t.l[i], VEC_BROADCAST(V(p)[i])));
    }
    return (__mmask8)(_mm512_testn_epi64_mask(not_zero, not_zero) |
                      _mm512_testn_epi64_mask(not_p, not_p));
}

/* Words by lane to limbs. shift: left shift on the way, 0, or SHIFT to go from R = 2^(64·words) to 2^(52·limbs). */
VEC_INLINE void V(split)(VEC *out, const words_x8 *w, const int shift) {
#pragma GCC unroll 8
    for (int i = 0; i < VEC_LIMBS; i++) {
        const int bit = 52 * i - shift;
        words_x8 x;
        if (bit < 0) {
            x = _mm512_slli_epi64(w[0], (unsigned)-bit);
        } else {
            const int word = bit / 64, offset = bit % 64;
            if (word >= VEC_WORDS) {
                x = _mm512_setzero_si512();
            } else if (offset <= 12 || word + 1 >= VEC_WORDS) {
                x = _mm512_srli_epi64(w[word], (unsigned)offset);
            } else {
                x = _mm512_or_si512(_mm512_srli_epi64(w[word], (unsigned)offset),
                                    _mm512_slli_epi64(w[word + 1], (unsigned)(64 - offset)));
            }
        }
        out->l[i] = _mm512_and_si512(x, VEC_LOW_MASK);
    }
}

/* Limbs (normalised, below 2^(64·words)) to words by lane. */
VEC_INLINE void V(join)(words_x8 *w, const VEC *a) {
#pragma GCC unroll 8
    for (int k = 0; k < VEC_WORDS; k++) {
        const int limb = 64 * k / 52, offset = 64 * k - 52 * limb; /* where word k starts */
        words_x8 x = _mm512_srli_epi64(a->l[limb], (unsigned)offset);
        if (limb + 1 < VEC_LIMBS) {
            x = _mm512_or_si512(x, _mm512_slli_epi64(a->l[limb + 1], (unsigned)(52 - offset)));
        }
        if (104 - offset < 64 && limb + 2 < VEC_LIMBS) {
            x = _mm512_or_si512(x, _mm512_slli_epi64(a->l[limb + 2], (unsigned)(104 - offset)));
        }
        w[k] = x;
    }
}

/* Eight numbers of VEC_WORDS words each, at any alignment, to words by lane. */
VEC_INLINE void V(gather)(words_x8 *w, const uint8_t *const *p) {
#define LOAD4(i)  _mm256_loadu_si256((const __m256i *)(const void *)p[i])
#define TWO(i, j) _mm512_inserti64x4(_mm512_castsi256_si512(LOAD4(i)), LOAD4(j), 1)
    words_x8 z0 = TWO(0, 2), z1 = TWO(1, 3), z2 = TWO(4, 6), z3 = TWO(5, 7);
    words_x8 a = _mm512_unpacklo_epi64(z0, z1), b = _mm512_unpacklo_epi64(z2, z3);
    words_x8 c = _mm512_unpackhi_epi64(z0, z1), d = _mm512_unpackhi_epi64(z2, z3);
    w[0] = _mm512_shuffle_i64x2(a, b, 0x88);
    w[2] = _mm512_shuffle_i64x2(a, b, 0xdd);
    w[1] = _mm512_shuffle_i64x2(c, d, 0x88);
    w[3] = _mm512_shuffle_i64x2(c, d, 0xdd);
#if VEC_WORDS == 6
#define LOAD2(i) _mm_loadu_si128((const __m128i *)(const void *)(p[i] + 32))
    words_x8 e = _mm512_castsi128_si512(LOAD2(0)), f = _mm512_castsi128_si512(LOAD2(1));
    e = _mm512_inserti64x2(e, LOAD2(2), 1);
    f = _mm512_inserti64x2(f, LOAD2(3), 1);
    e = _mm512_inserti64x2(e, LOAD2(4), 2);
    f = _mm512_inserti64x2(f, LOAD2(5), 2);
    e = _mm512_inserti64x2(e, LOAD2(6), 3);
    f = _mm512_inserti64x2(f, LOAD2(7), 3);
    w[4] = _mm512_unpacklo_epi64(e, f);
    w[5] = _mm512_unpackhi_epi64(e, f);
#undef LOAD2
#endif
#undef TWO
#undef LOAD4
}

VEC_INLINE void V(scatter)(uint8_t *const *p, const words_x8 *w) {
    words_x8 a = _mm512_unpacklo_epi64(w[0], w[1]); /* numbers 0 2 4 6, low half */
    words_x8 b = _mm512_unpackhi_epi64(w[0], w[1]); /* numbers 1 3 5 7 */
    words_x8 c = _mm512_unpacklo_epi64(w[2], w[3]), d = _mm512_unpackhi_epi64(w[2], w[3]);
    const words_x8 low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const words_x8 high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
#define STORE4(i, x) _mm256_storeu_si256((__m256i *)(void *)p[i], x)
#define TWO(i, j, s, index, t)                                                                     \
    do {                                                                                           \
        words_x8 two_ = _mm512_permutex2var_epi64(s, index, t);                                    \
        STORE4(i, _mm512_castsi512_si256(two_));                                                   \
        STORE4(j, _mm512_extracti64x4_epi64(two_, 1));                                             \
    } while (0)
    TWO(0, 2, a, low, c);
    TWO(4, 6, a, high, c);
    TWO(1, 3, b, low, d);
    TWO(5, 7, b, high, d);
#undef TWO
#undef STORE4
#if VEC_WORDS == 6
    words_x8 e = _mm512_unpacklo_epi64(w[4], w[5]), f = _mm512_unpackhi_epi64(w[4], w[5]);
#define STORE2(i, x, part)                                                                         \
    _mm_storeu_si128((__m128i *)(void *)(p[i] + 32), _mm512_extracti64x2_epi64(x, part))
    STORE2(0, e, 0);
    STORE2(2, e, 1);
    STORE2(4, e, 2);
    STORE2(6, e, 3);
    STORE2(1, f, 0);
    STORE2(3, f, 1);
    STORE2(5, f, 2);
    STORE2(7, f, 3);
#undef STORE2
#endif
}

/* One scalar element, Montgomery with R = 2^(64·words), in all lanes, R = 2^(52·limbs). */
VEC_INLINE void V(from_scalar)(VEC *out, const VEC_SCALAR *a) {
    static const VEC_SCALAR to_r52 = {C(IN64)};
    VEC_SCALAR x;
    VEC_PASTE(VEC_SCALAR, _mul)(&x, a, &to_r52);
    words_x8 w[VEC_WORDS];
    for (int i = 0; i < VEC_WORDS; i++) {
        w[i] = VEC_BROADCAST(x.w[i]);
    }
    V(split)(out, w, 0);
}

#undef VEC
#undef VEC_C
#undef VEC_SCALAR
#undef VEC_LIMBS
#undef VEC_WORDS
#undef V
#undef C
