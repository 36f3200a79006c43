/* Fp2 over two neighbouring lanes of a warp: the even lane holds c0, the odd one c1.
 *
 * A whole element a thread needs 255 registers in an addition, which leaves 8 warps an SM and the multiplier a third idle.
 * Halves need half of that. Each lane makes its own half of a product from the operands of both, two products with one
 * reduction:
 *
 *   c0 = a0·b0 + (p - a1)·b1        c1 = a1·b0 + a0·b1
 *
 * which is the work of Karatsuba's three products with three reductions, and less around it; a square is one product a
 * lane. What a lane lacks comes by shuffles, 24 words a product of 381 bits.
 *
 * Range    canonical in and out where nothing else is said: names with _lazy promise nothing more than the plain ones.
 * Threads  the whole warp calls everything that shuffles: products, both() and any().
 */
#pragma once
#include "cuda/field2.cuh"

namespace CURVE {

struct fp2_half {
    static constexpr int words = fp2::words; /* of both lanes */
    static constexpr int lanes = 2;
    fp v;

    __device__ __forceinline__ static unsigned lane() { return threadIdx.x & 1; }
    __device__ __forceinline__ static bool both(bool mine) {
        return (__shfl_xor_sync(~0u, (uint32_t)mine, 1) & (uint32_t)mine) != 0;
    }
    __device__ __forceinline__ static bool any(bool mine) { return __any_sync(~0u, mine) != 0; }
    __device__ __forceinline__ static fp2_half zero() { return {fp::zero()}; }
    __device__ __forceinline__ static fp2_half one() { return {lane() ? fp::zero() : fp::one()}; }
    /* Of the lane's half: only both() makes it the element's. */
    __device__ __forceinline__ bool is_zero() const { return v.is_zero(); }
    __device__ __forceinline__ bool maybe_zero() const { return v.maybe_zero(); }
    __device__ __forceinline__ bool maybe_p() const { return v.maybe_zero(); }
    __device__ __forceinline__ uint32_t low_word() const { return v.low_word(); }
    __device__ __forceinline__ bool operator==(const fp2_half &o) const { return v == o.v; }

    __device__ __forceinline__ fp other() const {
        fp r;
#pragma unroll
        for (int i = 0; i < fp::words; i++) {
            r.v[i] = __shfl_xor_sync(~0u, v.v[i], 1);
        }
        return r;
    }
    __device__ __forceinline__ static fp pick(bool first, const fp &x, const fp &y) {
        fp r;
#pragma unroll
        for (int i = 0; i < fp::words; i++) {
            r.v[i] = first ? x.v[i] : y.v[i];
        }
        return r;
    }
    __device__ __forceinline__ fp2_half operator+(const fp2_half &o) const {
        return {v + o.v};
    }
    __device__ __forceinline__ fp2_half operator-(const fp2_half &o) const {
        return {v - o.v};
    }
    __device__ __forceinline__ fp2_half times(const fp2_half &o, bool conjugate) const {
        bool odd = lane() != 0;
        fp theirs = other(), o_theirs = o.other();
        fp c = theirs.cneg(odd == conjugate), b = pick(odd, o_theirs, o.v),
           d = pick(odd, o.v, o_theirs);
        fp2_half r;
        montgomery<fp_modulus>::product_sum(r.v.v, v.v, b.v, c.v, d.v);
        montgomery<fp_modulus>::reduce(r.v.v);
        return r;
    }
    __device__ __forceinline__ fp2_half operator*(const fp2_half &o) const {
        return times(o, false);
    }
    /* By conj(o): c0 = a0·o0 + a1·o1, c1 = a1·o0 + (p - a0)·o1; o may be below 2p. */
    __device__ __forceinline__ fp2_half times_conjugate(const fp2_half &o) const {
        return times(o, true);
    }
    /* By an element of Fp; below 2p. */
    __device__ __forceinline__ fp2_half scaled(const fp &by) const {
        return {v.mul_lazy(by)};
    }
    /* Of an element of Fp that each lane has its own of: lane i's. */
    __device__ __forceinline__ static fp of_lane(const fp &x, unsigned i) {
        fp r;
#pragma unroll
        for (int k = 0; k < fp::words; k++) {
            r.v[k] = __shfl_sync(~0u, x.v[k], (int)i, 2);
        }
        return r;
    }
    /* a0² + a1² of the two halves of any element; below 2p. */
    __device__ __forceinline__ static fp norm(const fp &half, const fp &other_half) {
        fp r;
        montgomery<fp_modulus>::square_sum(r.v, half.v, other_half.v);
        return r;
    }
    /* c0 = (a0 + a1)·(a0 - a1), c1 = 2·a1·a0. */
    __device__ __forceinline__ fp2_half sqr() const {
        bool odd = lane() != 0;
        fp theirs = other(), a = v.add_lazy(pick(odd, v, theirs)),
           b = pick(odd, theirs, v.sub_lazy(theirs));
        fp2_half r;
        montgomery<fp_modulus>::product(r.v.v, a.v, b.v);
        montgomery<fp_modulus>::reduce(r.v.v);
        return r;
    }
    __device__ __forceinline__ fp2_half mul_lazy(const fp2_half &o) const {
        return *this * o;
    }
    __device__ __forceinline__ fp2_half sub_lazy(const fp2_half &o) const {
        return *this - o;
    }
    __device__ __forceinline__ fp2_half dbl_lazy() const {
        return dbl();
    }
    __device__ __forceinline__ fp2_half triple_lazy() const {
        return *this + dbl();
    }
    __device__ __forceinline__ bool is_p() const {
        return v.is_zero();
    }
    __device__ __forceinline__ fp2_half dbl() const {
        return {v.dbl()};
    }
    __device__ __forceinline__ fp2_half cneg(uint32_t negate) const {
        return {pick(negate != 0, v.neg(), v)};
    }
};

/* How a batched addition holds a coordinate: as it is, or over two lanes. */
template <class F> struct spread { typedef F type; };
template <> struct spread<fp2> { typedef fp2_half type; };

} // namespace CURVE
