/* Digits of scalars to pairs of points, and points between the two ways they lie in memory.
 *
 * All bound by memory, any shape will do; nothing here knows a curve.
 */
#include "cuda/check.cuh"
#include "cuda/fixed_pairs.h"

enum { FIXED_THREADS = 256, FIXED_BLOCKS_MAX = 4096 };

__device__ __forceinline__ uint32_t entry_of(const gpu_fixed_table &t, uint32_t window,
                                             uint32_t digit) {
    if (!digit) {
        return 0;
    }
    uint32_t level = 31 - __clz(digit), low = 1u << level;
    return 1 + t.windows_count * (low - 1) + window * low + digit - low;
}

/* 256 threads of few registers. */
__global__ void __launch_bounds__(FIXED_THREADS)
    grow_kernel(uint2 *list, const __grid_constant__ gpu_fixed_table t, unsigned level) {
    uint32_t count = t.windows_count << level;
    for (uint32_t i = blockIdx.x * FIXED_THREADS + threadIdx.x; i < count;
         i += gridDim.x * FIXED_THREADS) {
        uint32_t window = i >> level, digit = i & ((1u << level) - 1);
        list[i] = make_uint2(entry_of(t, window, digit), t.powers + window * t.window_bits + level);
    }
}

__device__ __forceinline__ uint32_t digit_of(const uint32_t *scalar, const gpu_fixed_table &t,
                                             unsigned window) {
    unsigned bit = window * t.window_bits, word = bit / 32;
    uint64_t two = scalar[word] | (word < 7 ? (uint64_t)scalar[word + 1] << 32 : 0);
    return (uint32_t)(two >> bit % 32) & ((1u << t.window_bits) - 1);
}

/* 256 threads of few registers. */
__global__ void __launch_bounds__(FIXED_THREADS)
    digit_kernel(uint2 *list, const __grid_constant__ gpu_fixed_table t, const uint32_t *scalars,
                 uint32_t count, unsigned window, uint32_t sums) {
    for (uint32_t i = blockIdx.x * FIXED_THREADS + threadIdx.x; i < count;
         i += gridDim.x * FIXED_THREADS) {
        const uint32_t *scalar = scalars + 8 * (size_t)i;
        uint32_t first = window > 1 ? sums + i : entry_of(t, 0, digit_of(scalar, t, 0));
        list[i] = make_uint2(first, entry_of(t, window, digit_of(scalar, t, window)));
    }
}

/* A thread a word of 16 bytes. 256 threads of few registers. */
__global__ void __launch_bounds__(FIXED_THREADS)
    move_kernel(uint4 *points, uint4 *planes, size_t plane, uint32_t first, uint32_t count,
                uint32_t quads, bool pack) {
    uint64_t words = (uint64_t)count * 2 * quads;
    for (uint64_t i = (uint64_t)blockIdx.x * FIXED_THREADS + threadIdx.x; i < words;
         i += (uint64_t)gridDim.x * FIXED_THREADS) {
        uint64_t point = i / (2 * quads);
        uint32_t word = (uint32_t)(i % (2 * quads)), half = word / quads;
        uint4 *there = planes + (half * plane + first + point) * quads + word % quads;
        if (pack) {
            points[i] = *there;
        } else {
            *there = points[i];
        }
    }
}

extern "C" enum err gpu_fixed_grow_pairs(uint32_t *list, const struct gpu_fixed_table *table,
                                         unsigned level, struct gpu_stream *s) {
    uint64_t count = (uint64_t)table->windows_count << level;
    launch_shape shape = {"pairs of a table", blocks_upto(count, FIXED_THREADS, FIXED_BLOCKS_MAX),
                          FIXED_THREADS};
    return launch(shape, s, grow_kernel, (uint2 *)list, *table, level);
}

extern "C" enum err gpu_fixed_digit_pairs(uint32_t *list, const struct gpu_fixed_table *table,
                                          const void *scalars, uint32_t count, unsigned window,
                                          uint32_t sums, struct gpu_stream *s) {
    launch_shape shape = {"pairs of digits", blocks_upto(count, FIXED_THREADS, FIXED_BLOCKS_MAX),
                          FIXED_THREADS};
    return launch(shape, s, digit_kernel, (uint2 *)list, *table, (const uint32_t *)scalars, count,
                  window, sums);
}

static enum err move(void *points, void *planes, size_t plane, uint32_t first, uint32_t count,
                     size_t coordinate_bytes, bool pack, struct gpu_stream *s) {
    uint32_t quads = (uint32_t)(coordinate_bytes / 16);
    launch_shape shape = {"points",
                          blocks_upto((uint64_t)count * 2 * quads, FIXED_THREADS, FIXED_BLOCKS_MAX),
                          FIXED_THREADS};
    return launch(shape, s, move_kernel, (uint4 *)points, (uint4 *)planes, plane, first, count,
                  quads, pack);
}

extern "C" enum err gpu_fixed_pack(void *out, const void *planes, size_t plane, uint32_t first,
                                   uint32_t count, size_t coordinate_bytes, struct gpu_stream *s) {
    return move(out, (void *)planes, plane, first, count, coordinate_bytes, true, s);
}

extern "C" enum err gpu_fixed_unpack(void *planes, const void *points, size_t plane, uint32_t first,
                                     uint32_t count, size_t coordinate_bytes,
                                     struct gpu_stream *s) {
    return move((void *)points, planes, plane, first, count, coordinate_bytes, false, s);
}
