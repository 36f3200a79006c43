/* Fr on the device: plain integers, not Montgomery. Any 256-bit number stands for its residue class.
 *
 * What multiplies is nearly always a constant: a twiddle, a coefficient, a scale factor. A constant is stored as
 * (w, v = floor(w 2^256 / r)); then q = floor(x v / 2^256) is the quotient of x w by r or one less, and the low halves of
 * x w and q r give the result: 86 wide multiplies instead of 128, no conversion in or out, and scalars of an MSM are ready
 * as they are. Only where two variables meet a Montgomery product is used.
 *
 * Range    fr_int: below 2^256 (BLS12-381: below 2^256 - 2^228, kept by sum and difference). A product by a constant is
 *          below 2r, and the second operand of fr_sum and fr_difference must be. canonical() is below r.
 * Source   the constant's quotient: Shoup, as in NTL; Harvey, "Faster arithmetic for number-theoretic transforms" (2014).
 */
#pragma once
#include "cuda/field.cuh"

namespace CURVE {

struct fr_int {
    uint32_t w[8];
};
struct fr_const {
    uint32_t w[16]; /* w, then v */
};

/* --- memory, 16 bytes at a time --- */
HOST_DEVICE void load16(uint32_t *to, const void *from) {
    uint4 t = *(const uint4 *)from;
    to[0] = t.x;
    to[1] = t.y;
    to[2] = t.z;
    to[3] = t.w;
}
HOST_DEVICE void load16_const(uint32_t *to, const void *from) {
#ifdef __CUDA_ARCH__
    uint4 t = __ldg((const uint4 *)from);
#else
    uint4 t = *(const uint4 *)from;
#endif
    to[0] = t.x;
    to[1] = t.y;
    to[2] = t.z;
    to[3] = t.w;
}
HOST_DEVICE void store16(void *to, const uint32_t *from) {
    *(uint4 *)to = make_uint4(from[0], from[1], from[2], from[3]);
}
HOST_DEVICE void fr_load(uint32_t *to, const fr_int *from) {
    load16(to, from);
    load16(to + 4, (const char *)from + 16);
}
HOST_DEVICE void fr_store(fr_int *to, const uint32_t *from) {
    store16(to, from);
    store16((char *)to + 16, from + 4);
}
HOST_DEVICE void fr_const_load(fr_const *to, const fr_const *from) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        load16_const(to->w + 4 * i, (const char *)from + 16 * i);
    }
}

/* --- ranges --- */
HOST_DEVICE void fr_take(uint32_t *r, const uint32_t *m) { /* r -= m if r >= m */
    uint32_t t[8];
    uint32_t borrow = words_sub(t, r, m, 8);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        r[i] = borrow ? r[i] : t[i];
    }
}
/* Any fr_int to below 2r. */
HOST_DEVICE void fr_below_twice(uint32_t *r) {
    uint32_t m[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        m[i] = fr_modulus::twice(i);
    }
    fr_take(r, m);
    if (fr_modulus::fits >= 4) {
        fr_take(r, m);
    }
}
HOST_DEVICE void fr_canonical(uint32_t *r) {
    uint32_t m[8];
    fr_below_twice(r);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        m[i] = fr_modulus::word(i);
    }
    fr_take(r, m);
}

/* --- products --- */
HOST_DEVICE void fr_mul(uint32_t *r, const uint32_t *x, const fr_const &c) {
    fr_constant_product(r, x, c.w, c.w + 8);
}
/* x y / 2^256, below 2r; x any, y canonical. */
HOST_DEVICE void fr_mul_montgomery(uint32_t *r, const uint32_t *x, const uint32_t *y) {
    uint32_t t[8];
    montgomery<fr_modulus>::product(t, y, x);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        r[i] = t[i];
    }
}

/* --- canonical arithmetic for tables and the host --- */
HOST_DEVICE void fr_mont(uint32_t *r, const uint32_t *x,
                         const uint32_t *y) { /* x y / 2^256, y canonical */
    fr_mul_montgomery(r, x, y);
    fr_canonical(r);
}
HOST_DEVICE void fr_sub_canonical(uint32_t *r, const uint32_t *x, const uint32_t *y) {
    uint32_t m[8];
    for (int i = 0; i < 8; i++) {
        m[i] = fr_modulus::word(i);
    }
    if (words_sub(r, x, y, 8)) {
        words_add(r, r, m, 8);
    }
}
HOST_DEVICE void fr_add_canonical(uint32_t *r, const uint32_t *x, const uint32_t *y) {
    uint32_t m[8];
    for (int i = 0; i < 8; i++) {
        m[i] = fr_modulus::word(i);
    }
    words_add(r, x, y, 8);
    fr_take(r, m);
}
HOST_DEVICE fr_int fr_mont_one() {
    fr_int r;
    for (int i = 0; i < 8; i++) {
        r.w[i] = fr_modulus::one(i);
    }
    return r;
}
HOST_DEVICE fr_int fr_to_mont(const fr_int &x) {
    fr_int square, r;
    for (int i = 0; i < 8; i++) {
        square.w[i] = fr_modulus::square(i);
    }
    fr_mont(r.w, x.w, square.w);
    return r;
}
/* base^exponent, all in Montgomery form. */
HOST_DEVICE void fr_mont_pow(uint32_t *r, const fr_int &base, uint64_t exponent) {
    fr_int b = base, t = fr_mont_one();
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) {
            fr_mont(t.w, t.w, b.w);
        }
        fr_mont(b.w, b.w, b.w);
    }
    for (int i = 0; i < 8; i++) {
        r[i] = t.w[i];
    }
}
/* The constant of the value whose canonical Montgomery form is m: w 2^256 = v r + m, so v = -m / r mod 2^256. */
HOST_DEVICE fr_const fr_const_of_mont(const uint32_t *m) {
    fr_const c;
    uint32_t one[8] = {1, 0, 0, 0, 0, 0, 0, 0}, t[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    fr_mont(c.w, m, one);
    for (int i = 0; i < 8; i++) {
        uint64_t carry = 0;
        for (int j = 0; i + j < 8; j++) {
            carry += (uint64_t)m[i] * fr_modulus::minus_inverse256(j) + t[i + j];
            t[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    for (int i = 0; i < 8; i++) {
        c.w[8 + i] = t[i];
    }
    return c;
}
/* Host: 1/x by Fermat, Montgomery form. */
static inline fr_int fr_mont_inverse(const fr_int &x) {
    uint32_t e[8], two[8] = {2, 0, 0, 0, 0, 0, 0, 0};
    for (int i = 0; i < 8; i++) {
        e[i] = fr_modulus::word(i);
    }
    words_sub(e, e, two, 8);
    fr_int t = fr_mont_one();
    for (int i = 255; i >= 0; i--) {
        fr_mont(t.w, t.w, t.w);
        if (e[i / 32] >> (i & 31) & 1) {
            fr_mont(t.w, t.w, x.w);
        }
    }
    return t;
}
static inline fr_int fr_of_words(const uint64_t w[4]) {
    fr_int r;
    memcpy(r.w, w, 32);
    return r;
}

} // namespace CURVE
