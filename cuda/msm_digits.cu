/* Scalars to (bucket, point) pairs, and the sorted pairs to runs.
 *
 * A scalar above r/2 is replaced by r - s and a sign, so that bits(r) bits make ceil(bits / c) windows of signed digits
 * with no carry out of the last: a value below 2^(bits-1) leaves its top digit at most 2^(c-1). Digit d of window j goes to
 * bucket key j·2^(c-1) + |d| - 1; zero gets the sentinel, a key behind every bucket. Every pair has its place j·n + i from
 * the start: no counting pass, no atomics, and the same order in every run.
 *
 * A run is what one bucket has inside one chunk of the sorted pairs. Its id is key + chunk number: both rise along the
 * list, and two runs differ in at least one of them, so ids never collide and rise too. Memory is bounded however skewed
 * the scalars are.
 *
 *   sorted keys  3 3 3 5 | 5 5 5 5 | 5 7 ∞ ∞        chunks of 4
 *   run ids      3 3 3 5 | 6 6 6 6 | 7 9
 *
 * A chunk's counts, elements that are left before each round of the tree, are summed here too, so that the host knows
 * every grid size after one small copy.
 */
#include "cuda/check.cuh"

/* 256 threads, about 40 registers: bound by memory, any shape will do. */
__global__ void __launch_bounds__(256)
    digits_kernel(uint32_t *keys, uint32_t *points, const uint4 *scalars,
                  const __grid_constant__ gpu_digits g) {
    for (uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x; i < g.scalars_count;
         i += (uint64_t)gridDim.x * 256) {
        uint4 low = scalars[2 * i], high = scalars[2 * i + 1];
        uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        bool above = false, below = false;
#pragma unroll
        for (int k = 7; k >= 0; k--) {
            above = above || (!below && w[k] > g.half[k]);
            below = below || (!above && w[k] < g.half[k]);
        }
        if (above) {
            uint64_t borrow = 0;
#pragma unroll
            for (int k = 0; k < 8; k++) {
                uint64_t t = (uint64_t)g.r[k] - w[k] - borrow;
                w[k] = (uint32_t)t;
                borrow = t >> 63;
            }
        }
        uint32_t carry = 0, half = 1u << (g.window_bits - 1);
        for (uint32_t j = 0; j < g.windows_count; j++) {
            uint32_t digit = (w[0] & (2 * half - 1)) + carry;
#pragma unroll
            for (int k = 0; k < 7; k++) {
                w[k] = __funnelshift_r(w[k], w[k + 1], g.window_bits);
            }
            w[7] >>= g.window_bits;
            carry = digit > half;
            digit = carry ? 2 * half - digit : digit;
            uint64_t at = (uint64_t)j * g.scalars_count + i;
            keys[at] = digit ? j * half + digit - 1 : g.sentinel;
            points[at] = (uint32_t)i | (uint32_t)(above != (carry != 0)) << 31;
        }
    }
}

extern "C" enum err gpu_digits_run(uint32_t *keys, uint32_t *points,
                                   const struct gpu_digits *digits, const void *scalars,
                                   unsigned sm_count, struct gpu_stream *s) {
    launch_shape shape = {"digits", blocks_upto(digits->scalars_count, 256, 8 * sm_count), 256};
    return launch(shape, s, digits_kernel, keys, points, (const uint4 *)scalars, *digits);
}

__global__ void __launch_bounds__(256)
    bounds_kernel(uint32_t *run_start, uint32_t *run_end, uint32_t *pairs_count,
                  const uint32_t *keys, uint64_t count, uint32_t sentinel, unsigned chunk_log2) {
    for (uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x; i <= count;
         i += (uint64_t)gridDim.x * 256) {
        uint32_t key = i < count ? keys[i] : sentinel, before = i ? keys[i - 1] : sentinel;
        bool cut = (i & ((1ull << chunk_log2) - 1)) == 0;
        if (key == before && !cut) {
            continue;
        }
        if (key != sentinel) {
            run_start[key + (uint32_t)(i >> chunk_log2)] = (uint32_t)i;
        }
        if (before != sentinel) {
            run_end[before + (uint32_t)((i - 1) >> chunk_log2)] = (uint32_t)i;
            if (key == sentinel) {
                *pairs_count = (uint32_t)i;
            }
        }
    }
}

/* Adds up ceil(length / 2^r) of all runs for r = 0 … 32, per chunk. A block's runs mostly lie in one chunk. */
__global__ void __launch_bounds__(256)
    rounds_kernel(gpu_pair_counts *counts, const uint32_t *run_start, const uint32_t *run_end,
                  uint32_t runs_count, unsigned chunk_log2) {
    __shared__ uint32_t sums[33], chunk_min, chunk_max;
    uint32_t run = blockIdx.x * 256 + threadIdx.x, start = 0, length = 0, chunk = 0;
    if (run < runs_count) {
        start = run_start[run];
        length = run_end[run] - start;
        chunk = start >> chunk_log2;
    }
    if (threadIdx.x < 33) {
        sums[threadIdx.x] = 0;
    }
    if (threadIdx.x == 0) {
        chunk_min = ~0u;
        chunk_max = 0;
    }
    __syncthreads();
    if (length) {
        atomicMin(&chunk_min, chunk);
        atomicMax(&chunk_max, chunk);
    }
    __syncthreads();
    if (chunk_min == chunk_max) {
        for (unsigned r = 0; r < 33; r++) {
            uint32_t left = warp_sum((uint32_t)(((uint64_t)length + (1ull << r) - 1) >> r));
            if ((threadIdx.x & 31) == 0) {
                atomicAdd(&sums[r], left);
            }
        }
        __syncthreads();
        if (threadIdx.x < 33) {
            atomicAdd(&counts->chunk[chunk_min].round[threadIdx.x], sums[threadIdx.x]);
        }
    } else if (length) {
        for (unsigned r = 0; r < 33; r++) {
            atomicAdd(&counts->chunk[chunk].round[r],
                      (uint32_t)(((uint64_t)length + (1ull << r) - 1) >> r));
        }
    }
}

__global__ void __launch_bounds__(256) chunks_kernel(gpu_pair_counts *counts, const uint32_t *keys,
                                                     uint32_t chunks_max, unsigned chunk_log2) {
    uint32_t chunk = blockIdx.x * 256 + threadIdx.x, pairs = counts->pairs_count;
    uint64_t from = (uint64_t)chunk << chunk_log2, to = (uint64_t)(chunk + 1) << chunk_log2;
    if (chunk >= chunks_max || from >= pairs) {
        return;
    }
    to = to < pairs ? to : pairs;
    counts->chunk[chunk].first_key = keys[from];
    counts->chunk[chunk].last_key = keys[to - 1];
    counts->chunk[chunk].continues = chunk && keys[from - 1] == keys[from];
}

extern "C" enum err gpu_runs_find(struct gpu_pairs *p, struct gpu_pair_counts *device_counts,
                                  struct gpu_stream *s) {
    uint32_t runs = p->sizes.buckets_count + p->sizes.chunks_max;
    unsigned chunk_log2 = p->shape.chunk_log2;
    size_t counts_bytes = offsetof(struct gpu_pair_counts, chunk) +
                          p->sizes.chunks_max * sizeof device_counts->chunk[0];
    TRY(gpu_fill(p->run_start, 0, (size_t)runs * 4, s));
    TRY(gpu_fill(p->run_end, 0, (size_t)runs * 4, s));
    TRY(gpu_fill(device_counts, 0, counts_bytes, s));
    launch_shape bounds = {"run bounds",
                           blocks_upto(p->sizes.pairs_max + 1, 256, 16 * p->shape.sm_count), 256};
    TRY(launch(bounds, s, bounds_kernel, p->run_start, p->run_end, &device_counts->pairs_count,
               p->keys, p->sizes.pairs_max, p->sizes.buckets_count, chunk_log2));
    launch_shape rounds = {"run lengths", blocks_for(runs, 256), 256};
    TRY(launch(rounds, s, rounds_kernel, device_counts, p->run_start, p->run_end, runs,
               chunk_log2));
    launch_shape chunks = {"chunk ends", blocks_for(p->sizes.chunks_max, 256), 256};
    TRY(launch(chunks, s, chunks_kernel, device_counts, p->keys, p->sizes.chunks_max, chunk_log2));
    return gpu_download((void *)p->host, device_counts, counts_bytes, s);
}

/* Element i of a round to its pair or, as a run's odd last one, to the next list. An element whose run is r long and
 * which is the run's j-th: j even and j + 1 < r makes a pair of j and j + 1. A reference is 30 bits, "input point", sign;
 * a sum is kept relative to the sign of its first point, so that only one y of a pair is ever negated. */
__global__ void __launch_bounds__(256)
    pair_kernel(const uint32_t *run_start, const uint32_t *run_end,
                const __grid_constant__ gpu_round g) {
    for (uint32_t i = blockIdx.x * 256 + threadIdx.x; i < g.count; i += gridDim.x * 256) {
        uint32_t run = g.keys[i] + g.key_add, r1 = g.refs[i] | g.refs_or;
        uint32_t r2 = i + 1 < g.count ? g.refs[i + 1] | g.refs_or : 0, start = run_start[run];
        uint32_t length =
            (uint32_t)(((uint64_t)(run_end[run] - start) + (1ull << g.round) - 1) >> g.round);
        uint32_t offset = g.round ? g.offset_before[run - g.first_run] : start - g.chunk_base;
        uint32_t j = i - offset, after = g.offset_after[run - g.first_run], to = after + (j >> 1);
        if (j & 1) {
            continue;
        }
        if (j + 1 < length) {
            uint32_t pair = offset - after + (j >> 1);
            ((uint2 *)g.list)[pair] = make_uint2(r1, r2);
            r1 = (g.sums_base + pair) | (r1 & 0x80000000u);
        }
        g.next_keys[to] = run;
        g.next_refs[to] = r1;
    }
}

extern "C" enum err gpu_round_pair(const struct gpu_pairs *p, const struct gpu_round *round,
                                   struct gpu_stream *s) {
    launch_shape shape = {"pairing", blocks_upto(round->count, 256, 32 * p->shape.sm_count), 256};
    return launch(shape, s, pair_kernel, (const uint32_t *)p->run_start,
                  (const uint32_t *)p->run_end, *round);
}
