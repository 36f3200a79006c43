/* Packed scalars to plain ones.
 *
 * A packed block holds 2^16 scalars as 2-bit classes, then its small values, then its full ones. Eight thread blocks
 * expand one packed block: each counts the small and full scalars before its slice, scans its own class words, and then
 * writes with two lanes a scalar, 16 bytes each. 1,860 to 3,490 GB/s written on an H200.
 *
 * Before that a block is checked, as codec_check_block does on the processor: do its classes name as many values as its entry, are
 * fillings zero and full values below r? The first of its eight thread blocks counts, all of them compare. Bytes are read once.
 */
#include "cuda/check.cuh"
#include "cuda/fr.cuh"

namespace CURVE {

enum {
    SLICE = 8192,
    SLICE_WORDS = SLICE / 16,
    SLICES = GPU_PACKED_BLOCK / SLICE,
    EXPAND_THREADS = 256
};

__device__ __forceinline__ uint32_t small_bits(uint32_t classes) {
    return (classes >> 1 & 0x55555555u) & ~classes;
}
__device__ __forceinline__ uint32_t full_bits(uint32_t classes) {
    return (classes >> 1 & 0x55555555u) & classes;
}
__device__ __forceinline__ int64_t small_at(const char *small, uint32_t width, uint32_t i) {
    return width == 1   ? (int64_t)((const int8_t *)small)[i]
           : width == 2 ? (int64_t)((const int16_t *)small)[i]
           : width == 4 ? (int64_t)((const int32_t *)small)[i]
                        : ((const int64_t *)small)[i];
}
/* x modulo r, one half of it: words 0 to 3 or 4 to 7. Negative: r + x, where |x| < 2^63 < r. */
__device__ __forceinline__ uint4 small_half(int64_t x, bool high) {
    uint32_t w[8] = {(uint32_t)x, (uint32_t)((uint64_t)x >> 32), 0, 0, 0, 0, 0, 0};
    if (x < 0) {
        uint64_t t = (uint64_t)w[0] + fr_modulus::word(0);
        w[0] = (uint32_t)t;
        t = (uint64_t)w[1] + fr_modulus::word(1) + (t >> 32);
        w[1] = (uint32_t)t;
        uint64_t borrow = 1 - (t >> 32); /* the sign's ones above, taken back by the carry */
#pragma unroll
        for (int i = 2; i < 8; i++) {
            t = (uint64_t)fr_modulus::word(i) - borrow;
            w[i] = (uint32_t)t;
            borrow = t >> 63;
        }
    }
    return high ? make_uint4(w[4], w[5], w[6], w[7]) : make_uint4(w[0], w[1], w[2], w[3]);
}

/* 256 threads, about 40 registers: bound by memory. */
__global__ void __launch_bounds__(EXPAND_THREADS)
    expand_kernel(uint4 *out, const gpu_packed_block *blocks, const char *data) {
    __shared__ uint32_t before[SLICE_WORDS], warp_sums[8], skipped_small[8], skipped_full[8];
    gpu_packed_block b = blocks[blockIdx.x / SLICES];
    uint32_t slice = blockIdx.x % SLICES, thread = threadIdx.x, lane = thread & 31,
             warp = thread >> 5;
    uint32_t words = (b.scalars_count + 15) / 16, first = slice * SLICE_WORDS;
    const uint32_t *classes = (const uint32_t *)(data + b.classes);
    if (slice * SLICE >= b.scalars_count) {
        return;
    }
    uint32_t small = 0, full = 0, mine[2], count = 0; /* of mine: small below, full above bit 16 */
    for (uint32_t i = thread; i < first; i += EXPAND_THREADS) {
        small += __popc(small_bits(classes[i]));
        full += __popc(full_bits(classes[i]));
    }
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t at = first + 2 * thread + k, c = at < words ? classes[at] : 0;
        mine[k] = __popc(small_bits(c)) | (uint32_t)__popc(full_bits(c)) << 16;
        count += mine[k];
    }
    uint32_t scan = count;
    for (unsigned d = 1; d < 32; d <<= 1) {
        uint32_t t = __shfl_up_sync(~0u, scan, d);
        scan += lane >= d ? t : 0;
    }
    small = warp_sum(small);
    full = warp_sum(full);
    if (lane == 31) {
        warp_sums[warp] = scan;
    }
    if (lane == 0) {
        skipped_small[warp] = small;
        skipped_full[warp] = full;
    }
    __syncthreads();
    uint32_t base = scan - count, small_base = 0, full_base = 0;
    for (uint32_t i = 0; i < 8; i++) {
        base += i < warp ? warp_sums[i] : 0;
        small_base += skipped_small[i];
        full_base += skipped_full[i];
    }
    before[2 * thread] = base;
    before[2 * thread + 1] = base + mine[0];
    __syncthreads();
    uint32_t scalars = b.scalars_count - slice * SLICE;
    scalars = scalars < SLICE ? scalars : (uint32_t)SLICE;
    uint4 *to = out + 2 * ((size_t)(blockIdx.x / SLICES) * GPU_PACKED_BLOCK + slice * SLICE);
    for (uint32_t i = thread; i < 2 * scalars; i += EXPAND_THREADS) {
        uint32_t scalar = i >> 1, word = scalar >> 4, c = classes[first + word],
                 shift = 2 * (scalar & 15);
        uint32_t what = c >> shift & 3, below = c & ((1u << shift) - 1);
        bool high = i & 1;
        uint4 v = make_uint4(what == 1 && !high, 0, 0, 0);
        if (what == 2) {
            v = small_half(
                small_at(data + b.small, b.width,
                         small_base + (before[word] & 0xffff) + __popc(small_bits(below))),
                high);
        } else if (what == 3) {
            uint32_t at = full_base + (before[word] >> 16) + __popc(full_bits(below));
            v = ((const uint4 *)(data + b.full))[2 * (size_t)at + high];
        }
        to[i] = v;
    }
}

__device__ __forceinline__ bool is_below_r(const uint4 *value) {
    uint4 low = value[0], high = value[1];
    uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    bool below = false; /* of the words so far, from the lowest */
#pragma unroll
    for (int i = 0; i < 8; i++) {
        below = w[i] != fr_modulus::word(i) ? w[i] < fr_modulus::word(i) : below;
    }
    return below;
}

/* True in every thread of a sound block's first slice: classes as the entry says, nothing behind them, fillings zero. */
__device__ bool is_as_said(const gpu_packed_block &b, const char *data, uint32_t small_count,
                           uint32_t full_count, uint32_t *sums) {
    const uint32_t *classes = (const uint32_t *)(data + b.classes);
    uint32_t words = (uint32_t)(b.small - b.classes) / 4, small = 0, full = 0, strays = 0;
    for (uint32_t i = threadIdx.x; i < words; i += EXPAND_THREADS) {
        uint32_t c = classes[i], first = 16 * i;
        small += __popc(small_bits(c));
        full += __popc(full_bits(c));
        uint32_t mine = b.scalars_count > first ? b.scalars_count - first : 0;
        strays += mine < 16 && c >> 2 * mine != 0;
    }
    for (uint64_t at = b.small + (uint64_t)small_count * b.width + threadIdx.x; at < b.full;
         at += EXPAND_THREADS) {
        strays += data[at] != 0;
    }
    small = warp_sum(small);
    full = warp_sum(full);
    strays = warp_sum(strays);
    if ((threadIdx.x & 31) == 0) {
        uint32_t warp = threadIdx.x >> 5;
        sums[3 * warp] = small;
        sums[3 * warp + 1] = full;
        sums[3 * warp + 2] = strays;
    }
    __syncthreads();
    small = full = strays = 0;
    for (uint32_t warp = 0; warp < EXPAND_THREADS / 32; warp++) {
        small += sums[3 * warp];
        full += sums[3 * warp + 1];
        strays += sums[3 * warp + 2];
    }
    return small == small_count && full == full_count && strays == 0;
}

/* 256 threads: bound by memory. The section's directory begins behind 32 bytes: small_count, full_count, width, 0. */
__global__ void __launch_bounds__(EXPAND_THREADS)
    check_packed_kernel(uint32_t *verdict, const gpu_packed_block *blocks, const char *data) {
    __shared__ uint32_t sums[3 * EXPAND_THREADS / 32];
    uint32_t block = blockIdx.x / SLICES, slice = blockIdx.x % SLICES;
    gpu_packed_block b = blocks[block];
    const uint32_t *entry = (const uint32_t *)(data + 32) + 4 * (size_t)block;
    uint32_t small_count = entry[0], full_count = entry[1];
    bool good = true;
    if (slice == 0) {
        good = is_as_said(b, data, small_count, full_count, sums);
    }
    const uint4 *full = (const uint4 *)(data + b.full);
    for (uint32_t i = slice * EXPAND_THREADS + threadIdx.x; i < full_count;
         i += SLICES * EXPAND_THREADS) {
        good = good && is_below_r(full + 2 * (size_t)i);
    }
    if (!good) {
        atomicMin(verdict, block);
    }
}

__global__ void __launch_bounds__(EXPAND_THREADS)
    check_plain_kernel(uint32_t *verdict, const uint4 *values, uint32_t count) {
    for (size_t i = blockIdx.x * (size_t)EXPAND_THREADS + threadIdx.x; i < count;
         i += (size_t)gridDim.x * EXPAND_THREADS) {
        if (!is_below_r(values + 2 * i)) {
            atomicMin(verdict, (uint32_t)i);
        }
    }
}

} // namespace CURVE

using namespace CURVE;

extern "C" enum err CURVE_FN(check_packed)(uint32_t *verdict, const struct gpu_packed_block *blocks,
                                           const void *data, uint32_t blocks_count,
                                           struct gpu_stream *s) {
    launch_shape shape = {"check of packed scalars", blocks_count * SLICES, EXPAND_THREADS};
    return launch(shape, s, check_packed_kernel, verdict, blocks, (const char *)data);
}

extern "C" enum err CURVE_FN(check_plain)(uint32_t *verdict, const void *values, uint32_t count,
                                          struct gpu_stream *s) {
    enum { BLOCKS_MAX = 1024 };
    launch_shape shape = {"check of plain scalars", blocks_upto(count, EXPAND_THREADS, BLOCKS_MAX),
                          EXPAND_THREADS};
    return launch(shape, s, check_plain_kernel, verdict, (const uint4 *)values, count);
}

extern "C" enum err CURVE_FN(expand)(void *out, const struct gpu_packed_block *blocks,
                                     const void *data, uint32_t blocks_count,
                                     struct gpu_stream *s) {
    launch_shape shape = {"expansion", blocks_count * SLICES, EXPAND_THREADS};
    return launch(shape, s, expand_kernel, (uint4 *)out, blocks, (const char *)data);
}
