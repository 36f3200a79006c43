/* Scalars to (bucket, point) pairs, and the sorted pairs to runs.
 *
 * A scalar above r/2 is replaced by r - s and a sign, so that bits(r) bits make ceil(bits / c) windows of signed digits
 * with no carry out of the last: a value below 2^(bits-1) leaves its top digit at most 2^(c-1). Digit d of window j goes to
 * bucket key j·2^(c-1) + |d| - 1. A zero digit goes nowhere, and a scalar that is 1 to a list of points that are only
 * added up: in a witness most digits are zero and half of the others belong to ones.
 *
 * Two passes over the scalars: a warp counts the pairs and ones of its tile of 32, a scan gives each tile its place, and
 * the same warp puts them there, window by window so that neighbouring lanes write neighbouring words: the same order in
 * every run.
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

static const uint32_t REF_POINT = 0x40000000u; /* as points.cuh has it for each curve */

/* A scalar on its way to digits. */
struct digit_walk {
    uint32_t w[8], carry;
    bool above, one;

    __device__ __forceinline__ void begin(const uint4 *scalars, uint32_t i, const gpu_digits &g) {
        uint4 low = make_uint4(0, 0, 0, 0), high = low;
        if (i < g.scalars_count) {
            low = scalars[2 * (size_t)i];
            high = scalars[2 * (size_t)i + 1];
        }
        uint32_t rest = low.y | low.z | low.w | high.x | high.y | high.z | high.w;
        one = low.x == 1 && !rest;
        w[0] = one ? 0 : low.x;
        w[1] = low.y;
        w[2] = low.z;
        w[3] = low.w;
        w[4] = high.x;
        w[5] = high.y;
        w[6] = high.z;
        w[7] = high.w;
        carry = 0;
        above = false;
        bool below = false;
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
    }
    /* |digit| of the next window; *negative as it stands for the scalar itself. */
    __device__ __forceinline__ uint32_t next(bool *negative, unsigned window_bits) {
        uint32_t half = 1u << (window_bits - 1), digit = (w[0] & (2 * half - 1)) + carry;
#pragma unroll
        for (int k = 0; k < 7; k++) {
            w[k] = __funnelshift_r(w[k], w[k + 1], window_bits);
        }
        w[7] >>= window_bits;
        carry = digit > half;
        *negative = above != (carry != 0);
        return carry ? 2 * half - digit : digit;
    }
};

/* 256 threads, about 40 registers: bound by memory, any shape will do. A warp takes whole tiles. */
__global__ void __launch_bounds__(256)
    count_kernel(uint64_t *tiles, uint32_t *windows_used, const uint4 *scalars,
                 const __grid_constant__ gpu_digits g) {
    uint32_t tiles_count = (g.scalars_count + GPU_TILE - 1) / GPU_TILE, lane = threadIdx.x & 31,
             used = 0;
    for (uint32_t tile = blockIdx.x * 8 + threadIdx.x / 32; tile < tiles_count;
         tile += gridDim.x * 8) {
        digit_walk walk;
        walk.begin(scalars, tile * GPU_TILE + lane, g);
        uint32_t pairs = 0;
        bool negative;
        for (uint32_t j = 0; j < g.windows_count; j++) {
            bool some = walk.next(&negative, g.window_bits) != 0;
            pairs += some;
            used = some && j >= used ? j + 1 : used;
        }
        pairs = warp_sum(pairs);
        uint32_t ones = __ballot_sync(~0u, walk.one);
        if (lane == 0) {
            tiles[tile] = pairs | (uint64_t)__popc(ones) << 32;
        }
    }
    if (used) {
        atomicMax(windows_used, used);
    }
}

__global__ void __launch_bounds__(256)
    place_kernel(uint32_t *keys, uint32_t *points, uint32_t *ones, const uint64_t *tiles,
                 const uint4 *scalars, const __grid_constant__ gpu_digits g) {
    uint32_t tiles_count = (g.scalars_count + GPU_TILE - 1) / GPU_TILE, lane = threadIdx.x & 31,
             before = (1u << lane) - 1;
    for (uint32_t tile = blockIdx.x * 8 + threadIdx.x / 32; tile < tiles_count;
         tile += gridDim.x * 8) {
        digit_walk walk;
        uint32_t i = tile * GPU_TILE + lane, at = (uint32_t)tiles[tile];
        walk.begin(scalars, i, g);
        uint32_t all_ones = __ballot_sync(~0u, walk.one);
        if (walk.one) {
            ones[(uint32_t)(tiles[tile] >> 32) + (uint32_t)__popc(all_ones & before)] =
                i | REF_POINT;
        }
        for (uint32_t j = 0; j < g.windows_count; j++) {
            bool negative;
            uint32_t digit = walk.next(&negative, g.window_bits);
            uint32_t some = __ballot_sync(~0u, digit != 0);
            if (digit) {
                uint32_t to = at + (uint32_t)__popc(some & before);
                keys[to] = j * g.window_keys + digit - 1;
                points[to] = (i + j * g.window_points) | (uint32_t)negative << 31;
            }
            at += (uint32_t)__popc(some);
        }
    }
}

static launch_shape tiles_shape(const char *name, const struct gpu_digits *g) {
    return {name, blocks_upto(g->scalars_count, 256, 8 * g->sm_count), 256};
}

extern "C" enum err gpu_digits_count(uint64_t *tiles, uint32_t *windows_used,
                                     const struct gpu_digits *digits, const void *scalars,
                                     struct gpu_stream *s) {
    return launch(tiles_shape("digit counts", digits), s, count_kernel, tiles, windows_used,
                  (const uint4 *)scalars, *digits);
}

extern "C" enum err gpu_digits_place(uint32_t *keys, uint32_t *points, uint32_t *ones,
                                     const uint64_t *tiles, const struct gpu_digits *digits,
                                     const void *scalars, struct gpu_stream *s) {
    return launch(tiles_shape("digits", digits), s, place_kernel, keys, points, ones, tiles,
                  (const uint4 *)scalars, *digits);
}

__global__ void __launch_bounds__(256)
    refs_kernel(uint32_t *refs, uint32_t ref, uint32_t from, uint32_t to) {
    uint32_t i = from + blockIdx.x * 256 + threadIdx.x;
    if (i < to) {
        refs[i] = ref;
    }
}

extern "C" enum err gpu_refs_fill(uint32_t *refs, uint32_t ref, uint32_t from, uint32_t to,
                                  struct gpu_stream *s) {
    launch_shape shape = {"padding", from < to ? blocks_for(to - from, 256) : 0, 256};
    return launch(shape, s, refs_kernel, refs, ref, from, to);
}

__global__ void __launch_bounds__(256)
    refs_count_kernel(uint32_t *refs, uint32_t ref, unsigned shift, uint32_t count) {
    uint32_t i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) {
        refs[i] = ref + (i >> shift);
    }
}

extern "C" enum err gpu_refs_count(uint32_t *refs, uint32_t ref, unsigned shift, uint32_t count,
                                   struct gpu_stream *s) {
    launch_shape shape = {"references", blocks_for(count, 256), 256};
    return launch(shape, s, refs_count_kernel, refs, ref, shift, count);
}

__global__ void __launch_bounds__(256)
    bounds_kernel(uint32_t *run_start, uint32_t *run_end, const uint32_t *keys, uint64_t count,
                  unsigned chunk_log2) {
    for (uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x; i <= count;
         i += (uint64_t)gridDim.x * 256) {
        uint32_t key = i < count ? keys[i] : 0, before = i ? keys[i - 1] : 0;
        bool cut = i == count || (i & ((1ull << chunk_log2) - 1)) == 0;
        if (key == before && !cut) {
            continue;
        }
        if (i < count) {
            run_start[key + (uint32_t)(i >> chunk_log2)] = (uint32_t)i;
        }
        if (i) {
            run_end[before + (uint32_t)((i - 1) >> chunk_log2)] = (uint32_t)i;
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
                                                     uint32_t pairs, unsigned chunk_log2) {
    uint32_t chunk = blockIdx.x * 256 + threadIdx.x;
    uint64_t from = (uint64_t)chunk << chunk_log2, to = (uint64_t)(chunk + 1) << chunk_log2;
    if (from >= pairs) {
        return;
    }
    to = to < pairs ? to : pairs;
    counts->chunk[chunk].first_key = keys[from];
    counts->chunk[chunk].last_key = keys[to - 1];
    counts->chunk[chunk].continues = chunk && keys[from - 1] == keys[from];
}

extern "C" enum err gpu_runs_find(struct gpu_pairs *p, struct gpu_pair_counts *device_counts,
                                  struct gpu_stream *s) {
    uint32_t runs = p->sizes.buckets_count + p->sizes.chunks_max, pairs = p->host->pairs_count;
    unsigned chunk_log2 = p->shape.chunk_log2;
    uint32_t chunks = (uint32_t)(((uint64_t)pairs + (1ull << chunk_log2) - 1) >> chunk_log2);
    size_t from = offsetof(struct gpu_pair_counts, chunk),
           bytes = chunks * sizeof device_counts->chunk[0];
    TRY(gpu_fill(p->run_start, 0, (size_t)runs * 4, s));
    TRY(gpu_fill(p->run_end, 0, (size_t)runs * 4, s));
    TRY(gpu_fill(device_counts->chunk, 0, bytes, s));
    launch_shape bounds = {"run bounds",
                           blocks_upto((uint64_t)pairs + 1, 256, 16 * p->shape.sm_count), 256};
    TRY(launch(bounds, s, bounds_kernel, p->run_start, p->run_end, p->keys, (uint64_t)pairs,
               chunk_log2));
    launch_shape rounds = {"run lengths", blocks_for(runs, 256), 256};
    TRY(launch(rounds, s, rounds_kernel, device_counts, p->run_start, p->run_end, runs,
               chunk_log2));
    launch_shape ends = {"chunk ends", blocks_for(chunks, 256), 256};
    TRY(launch(ends, s, chunks_kernel, device_counts, p->keys, pairs, chunk_log2));
    return gpu_download((char *)p->host + from, (char *)device_counts + from, bytes, s);
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
