/* Where coordinates lie in device memory, in 16-byte words so that every access is one wide load.
 *
 *   input points   x y, x y, …            interleaved as a key stores them; also the buckets
 *   sums           x x x …, y y y …       two planes, as the prefix step reads x only
 *   batches        word 0 of all, word 1 of all, …   planes of 16-byte words: a warp's accesses are contiguous
 *
 * An element over two lanes (field2_lanes.cuh) lies in memory as the whole one; each lane loads its half.
 */
#pragma once
#include "cuda/check.cuh"
#include "cuda/group.cuh"

namespace CURVE {

static const uint32_t REF_POINT = 0x40000000u, REF_INDEX = 0x3fffffffu;

__device__ __forceinline__ uint2 pair_refs(const gpu_pairing &s, uint32_t pair) {
    if (s.list) {
        return ((const uint2 *)s.list)[pair];
    }
    uint32_t low = pair & ((1u << s.half_log2) - 1);
    uint32_t first = s.base + ((pair >> s.half_log2) << (s.half_log2 + 1)) + low;
    return make_uint2(first, first + (1u << s.half_log2));
}

template <class F> struct place {
    static constexpr int quads = F::words / 4; /* of a coordinate in memory */
    static constexpr int mine = quads / F::lanes;

    __device__ __forceinline__ static F load(const uint4 *from, size_t stride) {
        F r;
        uint32_t *w = (uint32_t *)&r;
        from += F::lane() * (mine * stride);
#pragma unroll
        for (int k = 0; k < mine; k++) {
            uint4 t = from[k * stride];
            w[4 * k] = t.x;
            w[4 * k + 1] = t.y;
            w[4 * k + 2] = t.z;
            w[4 * k + 3] = t.w;
        }
        return r;
    }
    __device__ __forceinline__ static void store(uint4 *to, size_t stride, const F &f) {
        const uint32_t *w = (const uint32_t *)&f;
        to += F::lane() * (mine * stride);
#pragma unroll
        for (int k = 0; k < mine; k++) {
            to[k * stride] = make_uint4(w[4 * k], w[4 * k + 1], w[4 * k + 2], w[4 * k + 3]);
        }
    }
    __device__ __forceinline__ static const uint4 *x_at(const gpu_pairing &s, uint32_t ref) {
        size_t i = ref & REF_INDEX;
        return ref & REF_POINT ? (const uint4 *)s.points + i * 2 * quads
                               : (const uint4 *)s.sums + i * quads;
    }
    __device__ __forceinline__ static F x_of(const gpu_pairing &s, uint32_t ref) {
        return load(x_at(s, ref), 1);
    }
    __device__ __forceinline__ static const uint4 *y_at(const gpu_pairing &s, uint32_t ref) {
        size_t i = ref & REF_INDEX;
        return ref & REF_POINT ? (const uint4 *)s.points + i * 2 * quads + quads
                               : (const uint4 *)s.sums + (s.plane + i) * quads;
    }
    __device__ __forceinline__ static F y_of(const gpu_pairing &s, uint32_t ref) {
        return load(y_at(s, ref), 1);
    }
    __device__ __forceinline__ static uint32_t x_word(const gpu_pairing &s, uint32_t ref) {
        return *(const uint32_t *)x_at(s, ref);
    }
    /* The lowest word of the lane's part. */
    __device__ __forceinline__ static uint32_t y_word(const gpu_pairing &s, uint32_t ref) {
        return *(const uint32_t *)(y_at(s, ref) + F::lane() * mine);
    }
};

} // namespace CURVE
