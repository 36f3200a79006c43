/* Points of y² = x³ + b over the coordinate field F, a = 0.
 *
 *   affine  x, y                        infinity is (0, 0)
 *   xyzz    X/ZZ, Y/ZZZ, ZZ³ = ZZZ²     infinity has ZZ = 0
 *
 *   operation          cost
 *   xyzz + affine      8M + 2S
 *   xyzz + xyzz        12M + 2S
 *   double             6M + 3S
 *
 * Every case is handled: equal, opposite, infinity. Only steps that run rarely use XYZZ: sums of buckets are affine, in
 * batches (msm_buckets.cu).
 *
 * Source   Explicit-Formulas Database, short Weierstrass, xyzz: madd-2008-s, add-2008-s, dbl-2008-s-1.
 */
#pragma once
#include "cuda/field2.cuh"

namespace CURVE {

template <class F> struct affine {
    F x, y;
    HOST_DEVICE bool is_infinity() const { return x.is_zero() && y.is_zero(); }
};

template <class F> struct xyzz {
    F x, y, zz, zzz;

    HOST_DEVICE static xyzz infinity() { return {F::zero(), F::zero(), F::zero(), F::zero()}; }
    HOST_DEVICE bool is_infinity() const { return zz.is_zero(); }
    HOST_DEVICE void set(const affine<F> &p) {
        if (p.is_infinity()) {
            *this = infinity();
        } else {
            *this = {p.x, p.y, F::one(), F::one()};
        }
    }
    __host__ __device__ __noinline__ void dbl() {
        if (is_infinity()) {
            return;
        }
        F u = y.dbl(), v = u.sqr(), w = u * v, s = x * v, m = x.sqr();
        m = m + m.dbl();
        F x3 = m.sqr() - s.dbl(), y3 = m * (s - x3) - w * y;
        *this = {x3, y3, v * zz, w * zzz};
    }
    __host__ __device__ __noinline__ void add(const xyzz &o) {
        if (o.is_infinity()) {
            return;
        }
        if (is_infinity()) {
            *this = o;
            return;
        }
        F u1 = x * o.zz, s1 = y * o.zzz, p = o.x * zz - u1, r = o.y * zzz - s1;
        if (p.is_zero()) {
            if (r.is_zero()) {
                dbl();
            } else {
                *this = infinity();
            }
            return;
        }
        F pp = p.sqr(), ppp = p * pp, q = u1 * pp, x3 = r.sqr() - ppp - q.dbl();
        *this = {x3, r * (q - x3) - s1 * ppp, zz * o.zz * pp, zzz * o.zzz * ppp};
    }
    __host__ __device__ __noinline__ void add(const affine<F> &o) {
        if (o.is_infinity()) {
            return;
        }
        if (is_infinity()) {
            set(o);
            return;
        }
        F p = o.x * zz - x, r = o.y * zzz - y;
        if (p.is_zero()) {
            if (r.is_zero()) {
                dbl();
            } else {
                *this = infinity();
            }
            return;
        }
        F pp = p.sqr(), ppp = p * pp, q = x * pp, x3 = r.sqr() - ppp - q.dbl();
        *this = {x3, r * (q - x3) - y * ppp, zz * pp, zzz * ppp};
    }
    __host__ __device__ affine<F> to_affine() const {
        if (is_infinity()) {
            return {F::zero(), F::zero()};
        }
        F t = (zz * zzz).inv();
        return {x * (t * zzz), y * (t * zz)};
    }
};

} // namespace CURVE
