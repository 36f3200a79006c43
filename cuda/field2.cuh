/* Fp2 = Fp[u] / (u² + 1): c0 + c1·u, c0 first in memory. Three products a multiplication (Karatsuba), two a square.
 *
 * Always canonical outside a product, whose sums stay unreduced (below 2p): the names with _lazy promise nothing more here
 * than the plain ones.
 */
#pragma once
#include "cuda/field.cuh"

/* Files whose additions run rarely define FIELD2_CALLS: products become calls and compile in seconds, not minutes. */
#ifdef FIELD2_CALLS
#define FP2_PRODUCT __host__ __device__ __noinline__
#else
#define FP2_PRODUCT HOST_DEVICE
#endif

namespace CURVE {

struct fp2 {
    static constexpr int words = 2 * fp::words;
    static constexpr int lanes = 1;
    fp a, b;

    HOST_DEVICE static unsigned lane() { return 0; }

    HOST_DEVICE static fp2 zero() { return {fp::zero(), fp::zero()}; }
    HOST_DEVICE static fp2 one() { return {fp::one(), fp::zero()}; }
    HOST_DEVICE bool is_zero() const { return a.is_zero() && b.is_zero(); }
    HOST_DEVICE bool is_zero_lazy() const { return a.is_zero_lazy() && b.is_zero_lazy(); }
    HOST_DEVICE bool maybe_zero() const { return a.maybe_zero() && b.maybe_zero(); }
    HOST_DEVICE bool maybe_p() const { /* sub_lazy is exact here, so its zero is zero */
        return maybe_zero();
    }
    HOST_DEVICE bool operator==(const fp2 &o) const { return a == o.a && b == o.b; }
    HOST_DEVICE fp2 operator+(const fp2 &o) const { return {a + o.a, b + o.b}; }
    HOST_DEVICE fp2 operator-(const fp2 &o) const { return {a - o.a, b - o.b}; }
    FP2_PRODUCT fp2 operator*(const fp2 &o) const {
        fp t0 = a * o.a, t1 = b * o.b, t2 = a.add_lazy(b) * o.a.add_lazy(o.b);
        return {t0 - t1, t2 - t0 - t1};
    }
    FP2_PRODUCT fp2 sqr() const {
        fp t = a * b;
        return {a.add_lazy(b) * a.sub_lazy(b), t + t};
    }
    HOST_DEVICE fp2 mul_lazy(const fp2 &o) const { return *this * o; }
    HOST_DEVICE fp2 sub_lazy(const fp2 &o) const { return *this - o; }
    HOST_DEVICE fp2 dbl() const { return *this + *this; }
    HOST_DEVICE fp2 neg() const { return {a.neg(), b.neg()}; }
    HOST_DEVICE fp2 cneg(uint32_t negate) const { /* canonical: the sum below takes it as it is */
        return negate ? neg() : *this;
    }
    __host__ __device__ fp2 inv() const {
        fp t = (a * a + b * b).inv();
        return {a * t, (b * t).neg()};
    }
};

} // namespace CURVE
