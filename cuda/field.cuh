/* Fp on the device: Montgomery form in 32-bit words, R = 2^(32·words), the host's memory layout.
 *
 * A product is `words` rows. Row i adds a·b_i and then m·p, which clears the lowest word. Words of even and of odd place
 * are kept in two arrays (the odd one stands a word higher), so that every partial product is a pair of adjacent,
 * aligned registers: ptxas fuses mad.lo.cc, madc.hi.cc on such a pair into one wide multiply-add. The shift by a word at
 * the end of a row is done by exchanging the arrays' roles. 381 bits: 278 wide, 12 high and 12 low multiplies, about 70
 * other instructions.
 *
 * Range    a, b < p in, < p out, except *_lazy: operands below A·p and B·p give (1 + A·B·p/R)·p, that is below 1.6 p for
 *          A = B = 2 on both curves; sub_lazy gives 0 < a - b + p < 2p for canonical operands.
 * Host     64-bit products, or with FIELD_EMULATED the device's own sequences on an emulated carry flag.
 * Source   Montgomery 1985; inversion by leading and trailing bits: Pornin, eprint 2020/972.
 */
#pragma once
#include <cstdint>
#include <cstring>

#define HOST_DEVICE __host__ __device__ __forceinline__

/* --- one instruction each; on the host the flag is a variable. The only PTX outside generated sequences. --- */
#ifdef __CUDA_ARCH__
#define CARRY_2(name, text)                                                                        \
    HOST_DEVICE void carry_##name(uint32_t &r, uint32_t a, uint32_t b) {                           \
        asm volatile(text " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                              \
    }
#else
static uint32_t carry_flag; /* after a subtraction: 1 = no borrow */
#define CARRY_2(name, text) HOST_DEVICE void carry_##name(uint32_t &r, uint32_t a, uint32_t b);
#endif
CARRY_2(add_cc, "add.cc.u32")
CARRY_2(addc_cc, "addc.cc.u32")
CARRY_2(addc, "addc.u32")
CARRY_2(sub_cc, "sub.cc.u32")
CARRY_2(subc_cc, "subc.cc.u32")
CARRY_2(subc, "subc.u32")

#ifdef __CUDA_ARCH__
HOST_DEVICE void wide_first(uint32_t &low, uint32_t &high, uint32_t a, uint32_t b, uint32_t c,
                            uint32_t d) {
    asm volatile("mad.lo.cc.u32 %0,%2,%3,%4; madc.hi.cc.u32 %1,%2,%3,%5;"
                 : "=&r"(low), "=&r"(high)
                 : "r"(a), "r"(b), "r"(c), "r"(d));
}
HOST_DEVICE void wide_next(uint32_t &low, uint32_t &high, uint32_t a, uint32_t b, uint32_t c,
                           uint32_t d) {
    asm volatile("madc.lo.cc.u32 %0,%2,%3,%4; madc.hi.cc.u32 %1,%2,%3,%5;"
                 : "=&r"(low), "=&r"(high)
                 : "r"(a), "r"(b), "r"(c), "r"(d));
}
HOST_DEVICE void wide_last(uint32_t &low, uint32_t &high, uint32_t a, uint32_t b) {
    asm volatile("madc.lo.cc.u32 %0,%2,%3,0; madc.hi.u32 %1,%2,%3,0;"
                 : "=&r"(low), "=&r"(high)
                 : "r"(a), "r"(b));
}
#else
HOST_DEVICE void carry_add_cc(uint32_t &r, uint32_t a, uint32_t b) {
    uint64_t t = (uint64_t)a + b;
    r = (uint32_t)t;
    carry_flag = (uint32_t)(t >> 32);
}
HOST_DEVICE void carry_addc_cc(uint32_t &r, uint32_t a, uint32_t b) {
    uint64_t t = (uint64_t)a + b + carry_flag;
    r = (uint32_t)t;
    carry_flag = (uint32_t)(t >> 32);
}
HOST_DEVICE void carry_addc(uint32_t &r, uint32_t a, uint32_t b) {
    r = a + b + carry_flag;
}
HOST_DEVICE void carry_sub_cc(uint32_t &r, uint32_t a, uint32_t b) {
    r = a - b;
    carry_flag = a >= b;
}
HOST_DEVICE void carry_subc_cc(uint32_t &r, uint32_t a, uint32_t b) {
    uint64_t t = (uint64_t)a - b - (1 - carry_flag);
    r = (uint32_t)t;
    carry_flag = !(t >> 63);
}
HOST_DEVICE void carry_subc(uint32_t &r, uint32_t a, uint32_t b) {
    r = a - b - (1 - carry_flag);
}
HOST_DEVICE void carry_add(uint32_t &r, uint32_t a, uint32_t b) {
    r = a + b;
}
HOST_DEVICE void carry_mul_lo(uint32_t &r, uint32_t a, uint32_t b) {
    r = a * b;
}
HOST_DEVICE void carry_mul_hi(uint32_t &r, uint32_t a, uint32_t b) {
    r = (uint32_t)((uint64_t)a * b >> 32);
}
HOST_DEVICE void carry_mad_lo(uint32_t &r, uint32_t a, uint32_t b, uint32_t c) {
    r = a * b + c;
}
HOST_DEVICE void carry_mad_lo_cc(uint32_t &r, uint32_t a, uint32_t b, uint32_t c) {
    carry_add_cc(r, a * b, c);
}
HOST_DEVICE void carry_madc_lo(uint32_t &r, uint32_t a, uint32_t b, uint32_t c) {
    carry_addc(r, a * b, c);
}
HOST_DEVICE void carry_madc_lo_cc(uint32_t &r, uint32_t a, uint32_t b, uint32_t c) {
    carry_addc_cc(r, a * b, c);
}
HOST_DEVICE void carry_madc_hi(uint32_t &r, uint32_t a, uint32_t b, uint32_t c) {
    carry_addc(r, (uint32_t)((uint64_t)a * b >> 32), c);
}
HOST_DEVICE void carry_madc_hi_cc(uint32_t &r, uint32_t a, uint32_t b, uint32_t c) {
    carry_addc_cc(r, (uint32_t)((uint64_t)a * b >> 32), c);
}
HOST_DEVICE void wide_first(uint32_t &low, uint32_t &high, uint32_t a, uint32_t b, uint32_t c,
                            uint32_t d) {
    carry_add_cc(low, a * b, c);
    carry_addc_cc(high, (uint32_t)((uint64_t)a * b >> 32), d);
}
HOST_DEVICE void wide_next(uint32_t &low, uint32_t &high, uint32_t a, uint32_t b, uint32_t c,
                           uint32_t d) {
    carry_addc_cc(low, a * b, c);
    carry_addc_cc(high, (uint32_t)((uint64_t)a * b >> 32), d);
}
HOST_DEVICE void wide_last(uint32_t &low, uint32_t &high, uint32_t a, uint32_t b) {
    carry_addc_cc(low, a * b, 0);
    carry_addc(high, (uint32_t)((uint64_t)a * b >> 32), 0);
}
#endif
HOST_DEVICE void wide_set(uint32_t &low, uint32_t &high, uint32_t a, uint32_t b) {
    uint64_t t = (uint64_t)a * b;
    low = (uint32_t)t;
    high = (uint32_t)(t >> 32);
}

/* --- plain words, for what runs rarely; the host's and the device's code --- */
HOST_DEVICE uint32_t words_add(uint32_t *r, const uint32_t *x, const uint32_t *y, int words) {
    uint64_t c = 0;
    for (int i = 0; i < words; i++) {
        c += (uint64_t)x[i] + y[i];
        r[i] = (uint32_t)c;
        c >>= 32;
    }
    return (uint32_t)c;
}
HOST_DEVICE uint32_t words_sub(uint32_t *r, const uint32_t *x, const uint32_t *y, int words) {
    int64_t c = 0;
    for (int i = 0; i < words; i++) {
        c += (int64_t)x[i] - y[i];
        r[i] = (uint32_t)c;
        c >>= 32;
    }
    return (uint32_t)(c & 1);
}

#ifndef CURVE_STRING
#define CURVE_STRING_(x) #x
#define CURVE_STRING(x)  CURVE_STRING_(x)
#endif
#include CURVE_STRING(CURVE.cuh)

namespace CURVE {

/* Rows of a Montgomery product modulo M. Before a row the value is x + y·2^32 with x[0] = 0 to be shifted out; after it
 * the roles are exchanged: the result is aligned in y, what stands a word higher in x. */
template <class M> struct montgomery {
    static constexpr int N = M::words;

    HOST_DEVICE static void clear_low(uint32_t *x, uint32_t *y) {
        uint32_t m = y[0] * M::minus_inverse;
        wide_first(x[0], x[1], M::word(1), m, x[0], x[1]);
#pragma unroll
        for (int j = 2; j < N; j += 2) {
            wide_next(x[j], x[j + 1], M::word(j + 1), m, x[j], x[j + 1]);
        }
        wide_first(y[0], y[1], M::word(0), m, y[0], y[1]);
#pragma unroll
        for (int j = 2; j < N; j += 2) {
            wide_next(y[j], y[j + 1], M::word(j), m, y[j], y[j + 1]);
        }
        carry_addc(x[N - 1], x[N - 1], 0);
    }
    HOST_DEVICE static void set_row(uint32_t *x, uint32_t *y, const uint32_t *a, uint32_t b) {
#pragma unroll
        for (int j = 0; j < N; j += 2) {
            wide_set(y[j], y[j + 1], a[j], b);
            wide_set(x[j], x[j + 1], a[j + 1], b);
        }
    }
    HOST_DEVICE static void first_row(uint32_t *x, uint32_t *y, const uint32_t *a, uint32_t b) {
        set_row(x, y, a, b);
        clear_low(x, y);
    }
    /* Shifts, and adds a·b. */
    HOST_DEVICE static void next_row(uint32_t *x, uint32_t *y, const uint32_t *a, uint32_t b) {
        carry_add_cc(y[0], y[0], x[1]);
#pragma unroll
        for (int j = 0; j < N - 2; j += 2) {
            wide_next(x[j], x[j + 1], a[j + 1], b, x[j + 2], x[j + 3]);
        }
        wide_last(x[N - 2], x[N - 1], a[N - 1], b);
        wide_first(y[0], y[1], a[0], b, y[0], y[1]);
#pragma unroll
        for (int j = 2; j < N; j += 2) {
            wide_next(y[j], y[j + 1], a[j], b, y[j], y[j + 1]);
        }
        carry_addc(x[N - 1], x[N - 1], 0);
    }
    HOST_DEVICE static void row(uint32_t *x, uint32_t *y, const uint32_t *a, uint32_t b) {
        next_row(x, y, a, b);
        clear_low(x, y);
    }
    /* Adds c·d to the columns that row() is about to clear the lowest word of. */
    HOST_DEVICE static void add_row(uint32_t *x, uint32_t *y, const uint32_t *c, uint32_t d) {
        wide_first(x[0], x[1], c[1], d, x[0], x[1]);
#pragma unroll
        for (int j = 2; j < N; j += 2) {
            wide_next(x[j], x[j + 1], c[j + 1], d, x[j], x[j + 1]);
        }
        wide_first(y[0], y[1], c[0], d, y[0], y[1]);
#pragma unroll
        for (int j = 2; j < N; j += 2) {
            wide_next(y[j], y[j + 1], c[j], d, y[j], y[j + 1]);
        }
        carry_addc(x[N - 1], x[N - 1], 0);
    }
    HOST_DEVICE static void join(uint32_t *r, const uint32_t *x, const uint32_t *y) {
        carry_add_cc(r[0], x[0], y[1]);
#pragma unroll
        for (int i = 1; i < N - 1; i++) {
            carry_addc_cc(r[i], x[i], y[i + 1]);
        }
        carry_addc(r[N - 1], x[N - 1], 0);
    }
    /* a·b/R: below (1 + A·B·M/R)·M for a < A·M, b < B·M. a + M must stay below R. */
    HOST_DEVICE static void product(uint32_t *r, const uint32_t *a, const uint32_t *b) {
        uint32_t x[N], y[N];
        first_row(y, x, a, b[0]);
#pragma unroll
        for (int i = 1; i < N; i += 2) {
            row(x, y, a, b[i]);
            if (i + 1 < N) {
                row(y, x, a, b[i + 1]);
            }
        }
        join(r, x, y);
    }
    /* (a·b + c·d)/R with one reduction: below (1 + (A·B + C·D)·M/R)·M. a + c + M must stay below R. */
    HOST_DEVICE static void product_sum(uint32_t *r, const uint32_t *a, const uint32_t *b,
                                        const uint32_t *c, const uint32_t *d) {
        uint32_t x[N], y[N];
        set_row(y, x, a, b[0]);
        add_row(y, x, c, d[0]);
        clear_low(y, x);
#pragma unroll
        for (int i = 1; i < N; i += 2) {
            next_row(x, y, a, b[i]);
            add_row(x, y, c, d[i]);
            clear_low(x, y);
            if (i + 1 < N) {
                next_row(y, x, a, b[i + 1]);
                add_row(y, x, c, d[i + 1]);
                clear_low(y, x);
            }
        }
        join(r, x, y);
    }
    /* a²/R: row i takes only the words from i on of (a_i, 2a_(i+1), …); d holds the doubled words. */
    HOST_DEVICE static uint32_t square_word(const uint32_t *a, const uint32_t *d, int i, int j) {
        return j == i ? a[j] : j == i + 1 ? a[j] << 1 : d[j];
    }
    /* Shifts, and adds row i of a². */
    HOST_DEVICE static void square_next_row(uint32_t *x, uint32_t *y, const uint32_t *a,
                                            const uint32_t *d, int i) {
        uint32_t b = a[i];
        carry_add_cc(y[0], y[0], x[1]);
#pragma unroll
        for (int j = 0; j < N - 2; j += 2) {
            if (j + 1 >= i) {
                wide_next(x[j], x[j + 1], square_word(a, d, i, j + 1), b, x[j + 2], x[j + 3]);
            } else {
                carry_addc_cc(x[j], x[j + 2], 0);
                carry_addc_cc(x[j + 1], x[j + 3], 0);
            }
        }
        wide_last(x[N - 2], x[N - 1], square_word(a, d, i, N - 1), b);
        square_even(x, y, a, d, i);
    }
    HOST_DEVICE static void square_even(uint32_t *x, uint32_t *y, const uint32_t *a,
                                        const uint32_t *d, int i) {
        bool first = true;
#pragma unroll
        for (int j = 0; j < N; j += 2) {
            if (j >= i) {
                if (first) {
                    wide_first(y[j], y[j + 1], square_word(a, d, i, j), a[i], y[j], y[j + 1]);
                } else {
                    wide_next(y[j], y[j + 1], square_word(a, d, i, j), a[i], y[j], y[j + 1]);
                }
                first = false;
            }
        }
        if (!first) {
            carry_addc(x[N - 1], x[N - 1], 0);
        }
    }
    /* Adds row i of a² to columns that are shifted already. */
    HOST_DEVICE static void square_add_row(uint32_t *x, uint32_t *y, const uint32_t *a,
                                           const uint32_t *d, int i) {
        bool first = true;
#pragma unroll
        for (int j = 0; j < N; j += 2) {
            if (j + 1 >= i) {
                if (first) {
                    wide_first(x[j], x[j + 1], square_word(a, d, i, j + 1), a[i], x[j], x[j + 1]);
                } else {
                    wide_next(x[j], x[j + 1], square_word(a, d, i, j + 1), a[i], x[j], x[j + 1]);
                }
                first = false;
            }
        }
        square_even(x, y, a, d, i);
    }
    /* d: the doubled words behind the first; w: row 0. */
    HOST_DEVICE static void square_words(uint32_t *d, uint32_t *w, const uint32_t *a) {
        d[0] = 0; /* never read */
#pragma unroll
        for (int i = 1; i < N; i++) {
            d[i] = a[i] << 1 | a[i - 1] >> 31;
        }
        w[0] = a[0];
        w[1] = a[1] << 1;
#pragma unroll
        for (int j = 2; j < N; j++) {
            w[j] = d[j];
        }
    }
    HOST_DEVICE static void square(uint32_t *r, const uint32_t *a) {
        uint32_t x[N], y[N], d[N], w[N];
        square_words(d, w, a);
        first_row(y, x, w, a[0]);
#pragma unroll
        for (int i = 1; i < N; i += 2) {
            square_next_row(x, y, a, d, i);
            clear_low(x, y);
            if (i + 1 < N) {
                square_next_row(y, x, a, d, i + 1);
                clear_low(y, x);
            }
        }
        join(r, x, y);
    }
    /* (a² + c²)/R with one reduction: below (1 + (A² + C²)·M/R)·M. 2a + 2c + M must stay below R: canonical operands. */
    HOST_DEVICE static void square_sum(uint32_t *r, const uint32_t *a, const uint32_t *c) {
        uint32_t x[N], y[N], d[N], e[N], w[N];
        square_words(d, w, a);
        set_row(y, x, w, a[0]);
        square_words(e, w, c);
        add_row(y, x, w, c[0]);
        clear_low(y, x);
#pragma unroll
        for (int i = 1; i < N; i += 2) {
            square_next_row(x, y, a, d, i);
            square_add_row(x, y, c, e, i);
            clear_low(x, y);
            if (i + 1 < N) {
                square_next_row(y, x, a, d, i + 1);
                square_add_row(y, x, c, e, i + 1);
                clear_low(y, x);
            }
        }
        join(r, x, y);
    }
    /* Below 2M to below M. */
    HOST_DEVICE static void reduce(uint32_t *v) {
        uint32_t t[N], borrow;
        carry_sub_cc(t[0], v[0], M::word(0));
#pragma unroll
        for (int i = 1; i < N; i++) {
            carry_subc_cc(t[i], v[i], M::word(i));
        }
        carry_subc(borrow, 0, 0);
#pragma unroll
        for (int i = 0; i < N; i++) {
            v[i] = borrow ? v[i] : t[i];
        }
    }
};

struct fp {
    typedef fp_modulus M;
    static constexpr int N = M::words;
    static constexpr int words = N;
    static constexpr int lanes = 1; /* threads an element */
    uint32_t v[N];

    HOST_DEVICE static unsigned lane() { return 0; }
    /* Of all lanes of an element; of any thread that must take a branch together with this one. */
    HOST_DEVICE static bool both(bool mine) { return mine; }
    HOST_DEVICE static bool any(bool mine) { return mine; }
    HOST_DEVICE static fp zero() {
        fp r;
#pragma unroll
        for (int i = 0; i < N; i++) {
            r.v[i] = 0;
        }
        return r;
    }
    HOST_DEVICE static fp one() {
        fp r;
#pragma unroll
        for (int i = 0; i < N; i++) {
            r.v[i] = M::one(i);
        }
        return r;
    }
    HOST_DEVICE bool is_zero() const {
        uint32_t t = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            t |= v[i];
        }
        return t == 0;
    }
    /* Zero as cneg and sub_lazy may leave it: 0 or p. */
    HOST_DEVICE bool is_zero_lazy() const {
        uint32_t t = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            t |= v[i] ^ M::word(i);
        }
        return t == 0 || is_zero();
    }
    HOST_DEVICE bool operator==(const fp &o) const {
        uint32_t t = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            t |= v[i] ^ o.v[i];
        }
        return t == 0;
    }
    /* Tells a value from its opposite, both below p and not zero: p is odd. */
    HOST_DEVICE uint32_t low_word() const {
        return v[0];
    }
    /* One word's look: true whenever the value is zero (is p), and rarely otherwise. */
    HOST_DEVICE bool maybe_zero() const {
        return v[0] == 0;
    }
    HOST_DEVICE bool maybe_p() const {
        return v[0] == M::word(0);
    }
    HOST_DEVICE fp operator+(const fp &o) const {
        fp r = add_lazy(o);
        montgomery<M>::reduce(r.v);
        return r;
    }
    HOST_DEVICE fp add_lazy(const fp &o) const { /* below 2p */
        fp r;
        carry_add_cc(r.v[0], v[0], o.v[0]);
#pragma unroll
        for (int i = 1; i < N - 1; i++) {
            carry_addc_cc(r.v[i], v[i], o.v[i]);
        }
        carry_addc(r.v[N - 1], v[N - 1], o.v[N - 1]);
        return r;
    }
    HOST_DEVICE fp operator-(const fp &o) const {
        fp r;
        uint32_t borrow;
        carry_sub_cc(r.v[0], v[0], o.v[0]);
#pragma unroll
        for (int i = 1; i < N; i++) {
            carry_subc_cc(r.v[i], v[i], o.v[i]);
        }
        carry_subc(borrow, 0, 0);
        carry_add_cc(r.v[0], r.v[0], borrow & M::word(0));
#pragma unroll
        for (int i = 1; i < N - 1; i++) {
            carry_addc_cc(r.v[i], r.v[i], borrow & M::word(i));
        }
        carry_addc(r.v[N - 1], r.v[N - 1], borrow & M::word(N - 1));
        return r;
    }
    HOST_DEVICE fp sub_lazy(const fp &o) const {
        fp r;
        carry_sub_cc(r.v[0], v[0], o.v[0]);
#pragma unroll
        for (int i = 1; i < N - 1; i++) {
            carry_subc_cc(r.v[i], v[i], o.v[i]);
        }
        carry_subc(r.v[N - 1], v[N - 1], o.v[N - 1]);
        carry_add_cc(r.v[0], r.v[0], M::word(0));
#pragma unroll
        for (int i = 1; i < N - 1; i++) {
            carry_addc_cc(r.v[i], r.v[i], M::word(i));
        }
        carry_addc(r.v[N - 1], r.v[N - 1], M::word(N - 1));
        return r;
    }
    /* p - x when `negate`: 0 becomes p. */
    HOST_DEVICE fp cneg(uint32_t negate) const {
        fp r;
        carry_sub_cc(r.v[0], M::word(0), v[0]);
#pragma unroll
        for (int i = 1; i < N - 1; i++) {
            carry_subc_cc(r.v[i], M::word(i), v[i]);
        }
        carry_subc(r.v[N - 1], M::word(N - 1), v[N - 1]);
#pragma unroll
        for (int i = 0; i < N; i++) {
            r.v[i] = negate ? r.v[i] : v[i];
        }
        return r;
    }
    HOST_DEVICE fp neg() const {
        return is_zero() ? *this : zero() - *this;
    }
    HOST_DEVICE fp dbl() const {
        return *this + *this;
    }
    HOST_DEVICE fp dbl_lazy() const { /* below 2p */
        return add_lazy(*this);
    }
    HOST_DEVICE fp triple_lazy() const { /* below 3p, which a product takes */
        return add_lazy(*this).add_lazy(*this);
    }
    /* What sub_lazy leaves of equal operands. */
    HOST_DEVICE bool is_p() const {
        uint32_t t = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            t |= v[i] ^ M::word(i);
        }
        return t == 0;
    }
#if defined(__CUDA_ARCH__) || defined(FIELD_EMULATED)
    HOST_DEVICE fp mul_lazy(const fp &o) const {
        fp r;
        montgomery<M>::product(r.v, v, o.v);
        return r;
    }
    HOST_DEVICE fp sqr_lazy() const {
        fp r;
        montgomery<M>::square(r.v, v);
        return r;
    }
#else
    HOST_DEVICE fp mul_lazy(const fp &o) const {
        return host_product(*this, o);
    }
    HOST_DEVICE fp sqr_lazy() const {
        return host_product(*this, *this);
    }
    HOST_DEVICE static fp host_product(const fp &x, const fp &y) {
        constexpr int L = N / 2;
        uint64_t a[L], b[L], p[L], t[L + 2] = {0};
        memcpy(a, x.v, sizeof a);
        memcpy(b, y.v, sizeof b);
        for (int i = 0; i < L; i++) {
            p[i] = M::word(2 * i) | (uint64_t)M::word(2 * i + 1) << 32;
        }
        for (int i = 0; i < L; i++) {
            unsigned __int128 c = 0;
            for (int j = 0; j < L; j++) {
                c += (unsigned __int128)a[j] * b[i] + t[j];
                t[j] = (uint64_t)c;
                c >>= 64;
            }
            c += t[L];
            t[L] = (uint64_t)c;
            t[L + 1] = (uint64_t)(c >> 64);
            uint64_t m = t[0] * M::minus_inverse64;
            c = ((unsigned __int128)m * p[0] + t[0]) >> 64;
            for (int j = 1; j < L; j++) {
                c += (unsigned __int128)m * p[j] + t[j];
                t[j - 1] = (uint64_t)c;
                c >>= 64;
            }
            c += t[L];
            t[L - 1] = (uint64_t)c;
            t[L] = t[L + 1] + (uint64_t)(c >> 64);
        }
        fp r;
        memcpy(r.v, t, sizeof r.v);
        return r;
    }
#endif
    HOST_DEVICE fp operator*(const fp &o) const {
        fp r = mul_lazy(o);
        montgomery<M>::reduce(r.v);
        return r;
    }
    HOST_DEVICE fp sqr() const {
        fp r = sqr_lazy();
        montgomery<M>::reduce(r.v);
        return r;
    }
    __host__ __device__ fp inv() const;
};

/* --- inversion: binary GCD on 31 leading and 30 trailing bits, 30 branch-free steps a round --- */

/* t[0..N] = x·f + y·g as a signed number; x, y two's complement. */
HOST_DEVICE void linear(uint32_t *t, const uint32_t *x, int32_t f, const uint32_t *y, int32_t g) {
    constexpr int N = fp::N;
    uint32_t F = f < 0 ? 0u - (uint32_t)f : (uint32_t)f, G = g < 0 ? 0u - (uint32_t)g : (uint32_t)g;
    uint32_t mx = f < 0 ? ~0u : 0u, my = g < 0 ? ~0u : 0u, lx = 0, ly = 0, carry = 0;
    uint64_t cx = mx & 1, cy = my & 1, c1 = 0, c2 = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        cx += (uint64_t)(x[i] ^ mx);
        cy += (uint64_t)(y[i] ^ my);
        lx = (uint32_t)cx;
        ly = (uint32_t)cy;
        cx >>= 32;
        cy >>= 32;
        c1 += (uint64_t)lx * F;
        c2 += (uint64_t)ly * G;
        uint64_t s = (uint64_t)(uint32_t)c1 + (uint32_t)c2 + carry;
        t[i] = (uint32_t)s;
        carry = (uint32_t)(s >> 32);
        c1 >>= 32;
        c2 >>= 32;
    }
    t[N] = (uint32_t)c1 + (uint32_t)c2 + carry - (lx >> 31 ? F : 0) - (ly >> 31 ? G : 0);
}
/* |x·f + y·g| / 2^30, exact; true if it was negative. */
HOST_DEVICE bool linear_shift(uint32_t *out, const uint32_t *x, int32_t f, const uint32_t *y,
                              int32_t g) {
    constexpr int N = fp::N;
    uint32_t t[N + 1];
    linear(t, x, f, y, g);
    bool negative = t[N] >> 31;
    uint32_t mask = negative ? ~0u : 0u;
    uint64_t c = mask & 1;
#pragma unroll
    for (int i = 0; i < N; i++) {
        out[i] = t[i] >> 30 | t[i + 1] << 2;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        c += (uint64_t)(out[i] ^ mask);
        out[i] = (uint32_t)c;
        c >>= 32;
    }
    return negative;
}
/* (x·f + y·g) / 2^32 modulo p. */
HOST_DEVICE void linear_montgomery(uint32_t *out, const uint32_t *x, int32_t f, const uint32_t *y,
                                   int32_t g) {
    constexpr int N = fp::N;
    uint32_t t[N + 1];
    linear(t, x, f, y, g);
    uint32_t q = t[0] * fp_modulus::minus_inverse;
    uint64_t c = ((uint64_t)q * fp_modulus::word(0) + t[0]) >> 32;
#pragma unroll
    for (int i = 1; i < N; i++) {
        c += (uint64_t)q * fp_modulus::word(i);
        c += t[i];
        out[i - 1] = (uint32_t)c;
        c >>= 32;
    }
    out[N - 1] = (uint32_t)c + t[N];
}
/* The 30 leading bits of x and of y below a common leading one, joined with the 30 trailing ones; all of both when they
 * fit into 62 bits. */
HOST_DEVICE void leading_trailing(uint64_t *xa, uint64_t *xb, const uint32_t *a,
                                  const uint32_t *b) {
    constexpr int N = fp::N;
    uint32_t ah = a[N - 1], am = a[N - 2], al = a[N - 3], bh = b[N - 1], bm = b[N - 2],
             bl = b[N - 3];
    bool go = (ah | bh) == 0, small = true;
#pragma unroll
    for (int i = N - 4; i >= 0; i--) {
        if (go) {
            ah = am;
            am = al;
            al = a[i];
            bh = bm;
            bm = bl;
            bl = b[i];
            go = (ah | bh) == 0;
        }
    }
#pragma unroll
    for (int i = 2; i < N; i++) {
        small = small && (a[i] | b[i]) == 0;
    }
    small = small && (a[1] | b[1]) >> 30 == 0;
    if ((ah | bh) == 0) {
        ah = am;
        am = al;
        bh = bm;
        bm = bl;
    }
#ifdef __CUDA_ARCH__
    int shift = __clz((int)(ah | bh)) & 31;
#else
    int shift = (ah | bh) ? __builtin_clz(ah | bh) : 0;
#endif
    uint32_t high_a = shift ? ah << shift | am >> (32 - shift) : ah;
    uint32_t high_b = shift ? bh << shift | bm >> (32 - shift) : bh;
    *xa = small ? a[0] | (uint64_t)a[1] << 32 : (uint64_t)high_a << 30 | (a[0] & 0x3fffffffu);
    *xb = small ? b[0] | (uint64_t)b[1] << 32 : (uint64_t)high_b << 30 | (b[0] & 0x3fffffffu);
}
HOST_DEVICE bool still_running(uint32_t nonzero) {
#ifdef __CUDA_ARCH__
    /* A warp goes on until its last lane has finished. */
    return __any_sync(__activemask(), nonzero);
#else
    return nonzero;
#endif
}
/* Montgomery in and out; 0 gives 0. Rounds that do nothing any more are harmless: the factor for the rounds made is
 * taken from a table. */
__host__ __device__ inline fp fp::inv() const {
    uint32_t a[N], b[N], u[N], w[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        a[i] = v[i];
        b[i] = M::word(i);
        u[i] = i == 0;
        w[i] = 0;
    }
    int round;
#pragma unroll 1
    for (round = 0; round < M::inverse_rounds; round++) {
        uint32_t nonzero = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            nonzero |= a[i];
        }
        if (!still_running(nonzero)) {
            break;
        }
        uint64_t xa, xb;
        leading_trailing(&xa, &xb, a, b);
        int32_t f0 = 1, g0 = 0, f1 = 0, g1 = 1;
#pragma unroll 5
        for (int j = 0; j < 30; j++) {
            bool odd = xa & 1, swap = odd && xa < xb;
            uint64_t ta = swap ? xb : xa, tb = swap ? xa : xb;
            int32_t tf0 = swap ? f1 : f0, tf1 = swap ? f0 : f1, tg0 = swap ? g1 : g0,
                    tg1 = swap ? g0 : g1;
            xa = (odd ? ta - tb : ta) >> 1;
            xb = tb;
            f0 = odd ? tf0 - tf1 : tf0;
            g0 = odd ? tg0 - tg1 : tg0;
            f1 = (int32_t)((uint32_t)tf1 << 1);
            g1 = (int32_t)((uint32_t)tg1 << 1);
        }
        uint32_t na[N], nb[N], nu[N], nw[N];
        if (linear_shift(na, a, f0, b, g0)) {
            f0 = -f0;
            g0 = -g0;
        }
        if (linear_shift(nb, a, f1, b, g1)) {
            f1 = -f1;
            g1 = -g1;
        }
        linear_montgomery(nu, u, f0, w, g0);
        linear_montgomery(nw, u, f1, w, g1);
#pragma unroll
        for (int i = 0; i < N; i++) {
            a[i] = na[i];
            b[i] = nb[i];
            u[i] = nu[i];
            w[i] = nw[i];
        }
    }
    fp r, scale; /* w is in (-p, 2p) */
    uint64_t c = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        c += (uint64_t)w[i] + (w[N - 1] >> 31 ? M::word(i) : 0u);
        r.v[i] = (uint32_t)c;
        c >>= 32;
        scale.v[i] = inverse_scale[round * N + i];
    }
    montgomery<M>::reduce(r.v);
    return r * scale;
}

} // namespace CURVE
