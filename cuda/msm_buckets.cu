/* Sums of buckets as a tree of affine additions that share their inversions.
 *
 * An affine addition needs 1/(x2 - x1). With n denominators d_i one inversion is enough: prefix products going up,
 * inverse of the last, and back down. That is 5M + 1S an addition in all, against 8M + 2S in XYZZ, and the work does not
 * depend on how long buckets are: a heavy bucket is only more pairs. One round for all pairs:
 *
 *   prefix   thread t takes pairs t, t + T, t + 2T, …: stores the product before each, keeps the whole
 *   invert   the threads' products, the same way once more, then a binary GCD each
 *   add      walks back: 1/d = inverse · prefix, inverse · d goes on; slope, x3, y3
 *
 * Rare cases never branch in the common path: one word of d, x1 and x2 is looked at, and only when it could be zero the
 * whole is. Points of one order r have no x = 0 (that point's order is 3) and no y = 0, so x alone tells infinity, and a
 * pair of equal x takes the denominator 2y whatever comes of it: the prefix step needs no second y, and points that
 * repeat a thousand times over cost little more than others.
 *
 *   case                          denominator   result
 *   P + Q                         x2 - x1       sum
 *   P + P                         2y            double
 *   P - P                         2y            ∞
 *   P + ∞, ∞ + Q, ∞ + ∞           1             P, Q, ∞
 *
 * Coordinates in Fp2 are spread over two lanes (field2_lanes.cuh), so a block has half as many workers as threads, its
 * loops are the same for all of them, and pairs behind the last are computed and not stored.
 *
 * Tried and lost: XYZZ with one thread a bucket (1.5 times slower on 381 bits), points padded to 128 bytes, running the
 * memory-bound steps beside the additions by priorities, Fp2 in one thread (255 registers, the multiplier 68 % busy).
 */
#include "cuda/check.cuh"
#include "cuda/field2_lanes.cuh"
#include "cuda/points.cuh"

namespace CURVE {
namespace GROUP {

enum pair_case { PAIR_SUM, PAIR_SECOND, PAIR_FIRST, PAIR_INFINITY };
enum { BUCKET_THREADS = 128, INVERT_THREADS = 64 };

__device__ __forceinline__ uint2 pair_refs(const gpu_pairing &s, uint32_t pair) {
    if (s.list) {
        return ((const uint2 *)s.list)[pair];
    }
    uint32_t low = pair & ((1u << s.half_log2) - 1);
    uint32_t first = s.base + ((pair >> s.half_log2) << (s.half_log2 + 1)) + low;
    return make_uint2(first, first + (1u << s.half_log2));
}

/* A worker's pairs are first, first + count, first + 2·count, …; `rounds` of them, as many for the whole block. */
template <class F> struct share {
    static constexpr uint32_t workers = BUCKET_THREADS / F::lanes;
    uint32_t first, rounds, last;

    __device__ __forceinline__ share(uint32_t pairs_count, unsigned per_thread) {
        uint32_t block = blockIdx.x * (workers * per_thread);
        uint32_t left = block < pairs_count ? pairs_count - block : 0;
        rounds = (left + workers - 1) / workers;
        rounds = rounds < per_thread ? rounds : per_thread;
        first = block + threadIdx.x / F::lanes;
        last = pairs_count - 1;
    }
    __device__ __forceinline__ uint2 refs(const gpu_pairing &s, uint32_t pair) const {
        return pair_refs(s, pair < last ? pair : last);
    }
};

template <class F>
__device__ __forceinline__ bool maybe_rare(const F &d, const F &x1, const F &x2, bool live) {
    return F::any(!live || d.maybe_p() || x1.maybe_zero() || x2.maybe_zero());
}

/* Looked at in full only where a word says so. All lanes of an element come here together. */
template <class F> __device__ __forceinline__ bool is_infinity(const F &x) {
    return F::both(F::lanes > 1 || x.maybe_zero() ? x.is_zero() : false);
}

/* The denominator by the table above, given x2 - x1; 1 for a pair behind the last. `y1` is read for equal x alone. */
template <class F>
__device__ __forceinline__ F rare_denominator(const gpu_pairing &s, uint32_t ref1, const F &d,
                                              const F &x1, const F &x2, bool live) {
    bool infinity1 = is_infinity(x1), infinity2 = is_infinity(x2), equal = F::both(d.is_p());
    bool none = infinity1 || infinity2 || !live;
    F r = d;
    if (equal && !none) {
        r = place<F>::y_of(s, ref1).dbl_lazy();
    }
    return none ? F::one() : r;
}

template <class F>
__device__ __forceinline__ enum pair_case rare_slope(F *d, F *slope, const F &x1, const F &y1,
                                                     const F &x2, const F &y2, bool live) {
    bool infinity1 = is_infinity(x1), infinity2 = is_infinity(x2);
    bool equal = F::both(d->is_p()), same_y = F::both(y1 == y2);
    bool none = infinity1 || infinity2 || !live, twice = equal && same_y && !none;
    equal = equal && !none;
    if (F::any(twice)) {
        F t = x1.sqr().triple_lazy();
        *slope = twice ? t : *slope;
    }
    if (equal) {
        *d = y1.dbl_lazy();
    }
    if (none) {
        *d = F::one();
        return !infinity1 ? PAIR_FIRST : infinity2 ? PAIR_INFINITY : PAIR_SECOND;
    }
    return equal && !twice ? PAIR_INFINITY : PAIR_SUM;
}

/* 128 threads; 381 bits need 96 registers, so 5 blocks an SM are resident: the gathers are what bounds it. */
template <class F, int BLOCKS>
__global__ void __launch_bounds__(BUCKET_THREADS, BLOCKS)
    prefix_kernel(const __grid_constant__ gpu_pairing s, const __grid_constant__ gpu_batch b,
                  uint32_t pairs_count, unsigned per_thread) {
    constexpr uint32_t workers = share<F>::workers;
    share<F> mine(pairs_count, per_thread);
    F product = F::one();
    if (mine.rounds) {
        uint2 refs = mine.refs(s, mine.first), next = mine.refs(s, mine.first + workers);
        F x1 = place<F>::x_of(s, refs.x), x2 = place<F>::x_of(s, refs.y);
#pragma unroll 1
        for (uint32_t k = 0; k < mine.rounds; k++) {
            uint32_t pair = mine.first + k * workers;
            bool live = pair < pairs_count;
            F d = x2.sub_lazy(x1);
            if (maybe_rare(d, x1, x2, live)) {
                d = rare_denominator(s, refs.x, d, x1, x2, live);
            }
            refs = next;
            if (k + 1 < mine.rounds) { /* loads of the next pair, before this one's product */
                x1 = place<F>::x_of(s, refs.x);
                x2 = place<F>::x_of(s, refs.y);
            }
            if (k + 2 < mine.rounds) {
                next = mine.refs(s, pair + 2 * workers);
            }
            if (k) {
                if (live) {
                    place<F>::store((uint4 *)b.prefixes + pair, b.prefixes_plane, product);
                }
                product = product.mul_lazy(d);
            } else {
                product = d;
            }
        }
    }
    place<F>::store((uint4 *)b.products + blockIdx.x * workers + threadIdx.x / F::lanes,
                    b.products_plane, product);
}

/* 64 threads of 80 registers: few threads with a long chain each, bound by latency. */
template <class F>
__global__ void __launch_bounds__(INVERT_THREADS)
    invert_kernel(const __grid_constant__ gpu_batch b, uint32_t count, uint32_t threads) {
    uint32_t t = blockIdx.x * INVERT_THREADS + threadIdx.x, i;
    if (t >= threads || t >= count) {
        return;
    }
    uint4 *values = (uint4 *)b.products, *prefixes = (uint4 *)b.inverse_prefixes;
    F product = F::one();
#pragma unroll 1
    for (i = t; i < count; i += threads) {
        F x = place<F>::load(values + i, b.products_plane);
        if (i != t) {
            place<F>::store(prefixes + i, b.products_plane, product);
            product = product.mul_lazy(x);
        } else {
            product = x;
        }
    }
    product = product.inv();
#pragma unroll 1
    for (i -= threads; i != t; i -= threads) {
        F x = place<F>::load(values + i, b.products_plane),
          prefix = place<F>::load(prefixes + i, b.products_plane);
        place<F>::store(values + i, b.products_plane, product.mul_lazy(prefix));
        product = product.mul_lazy(x);
    }
    place<F>::store(values + t, b.products_plane, product);
}

/* 128 threads of 128 registers, 4 blocks an SM: 16 warps keep the multiplier 88 to 90 % busy; 3 × 128, 1 × 384, 2 × 256
 * and 1 × 512 were 2 to 8 % slower. Half an Fp2 of 381 bits needs 168 registers, so 3 blocks. */
template <class F, int BLOCKS>
__global__ void __launch_bounds__(BUCKET_THREADS, BLOCKS)
    add_kernel(const __grid_constant__ gpu_pairing s, const __grid_constant__ gpu_batch b,
               uint32_t pairs_count, unsigned per_thread, uint4 *out) {
    constexpr uint32_t workers = share<F>::workers;
    share<F> mine(pairs_count, per_thread);
    F inverse =
        place<F>::load((const uint4 *)b.products + blockIdx.x * workers + threadIdx.x / F::lanes,
                       b.products_plane);
#pragma unroll 1
    for (uint32_t k = mine.rounds; k-- > 0;) {
        uint32_t pair = mine.first + k * workers;
        bool live = pair < pairs_count;
        uint2 refs = mine.refs(s, pair);
        F x1 = place<F>::x_of(s, refs.x), x2 = place<F>::x_of(s, refs.y);
        F y1 = place<F>::y_of(s, refs.x),
          y2 = place<F>::y_of(s, refs.y).cneg((refs.x ^ refs.y) >> 31);
        enum pair_case which = PAIR_SUM;
        F d = x2.sub_lazy(x1), slope = y2.sub_lazy(y1);
        if (maybe_rare(d, x1, x2, live)) {
            which = rare_slope(&d, &slope, x1, y1, x2, y2, live);
        }
        F one_over = inverse;
        if (k) {
            one_over = inverse.mul_lazy(place<F>::load(
                (const uint4 *)b.prefixes + (live ? pair : mine.last), b.prefixes_plane));
            inverse = inverse.mul_lazy(d);
        }
        slope = slope.mul_lazy(one_over);
        F x3 = slope.sqr() - x1 - x2, y3 = slope * x1.sub_lazy(x3) - y1;
        if (which != PAIR_SUM) {
            x3 = which == PAIR_SECOND ? x2 : which == PAIR_FIRST ? x1 : F::zero();
            y3 = which == PAIR_SECOND ? y2 : which == PAIR_FIRST ? y1 : F::zero();
        }
        if (live) {
            place<F>::store(out + (size_t)pair * place<F>::quads, 1, x3);
            place<F>::store(out + (s.plane + pair) * place<F>::quads, 1, y3);
        }
    }
}

/* A chunk's remaining elements, one a run, to their buckets; the first of a run that the chunk before began goes to
 * `extra`, for the host. Bound by memory. */
template <class F>
__global__ void __launch_bounds__(256)
    scatter_kernel(uint4 *buckets, uint4 *extra, const __grid_constant__ gpu_pairing s,
                   const uint32_t *keys, uint32_t key_add, const uint32_t *refs, uint32_t refs_or,
                   uint32_t count, uint32_t chunk, bool continues) {
    constexpr int quads = place<F>::quads;
    for (uint32_t i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        uint4 *to = i == 0 && continues ? extra + (size_t)chunk * 2 * quads
                                        : buckets + (size_t)(keys[i] + key_add - chunk) * 2 * quads;
        uint32_t ref = refs[i] | refs_or;
        F y = place<F>::y_of(s, ref);
        place<F>::store(to, 1, place<F>::x_of(s, ref));
        place<F>::store(to + quads, 1, ref >> 31 ? y.neg() : y);
    }
}

} // namespace GROUP
} // namespace CURVE

using namespace CURVE;
using namespace CURVE::GROUP;

typedef spread<COORDINATE>::type spread_coordinate;
#ifndef ADD_BLOCKS
#define ADD_BLOCKS (sizeof(COORDINATE) > 64 ? 3 : sizeof(COORDINATE) > 32 ? 4 : 5)
#endif
#ifndef PREFIX_BLOCKS
#define PREFIX_BLOCKS (sizeof(COORDINATE) > 64 ? 4 : 5)
#endif

/* One block of threads for each BUCKET_THREADS workers and lane: the host counts products by BUCKET_THREADS. */
static launch_shape pairs_shape(const char *name, uint32_t pairs_count, unsigned per_thread) {
    return {name, spread_coordinate::lanes * blocks_for(pairs_count, BUCKET_THREADS * per_thread),
            BUCKET_THREADS};
}

extern "C" enum err GROUP_FN(prefix)(const struct gpu_pairing *pairs, const struct gpu_batch *batch,
                                     uint32_t pairs_count, unsigned per_thread,
                                     struct gpu_stream *s) {
    return launch(pairs_shape("prefix products", pairs_count, per_thread), s,
                  prefix_kernel<spread_coordinate, PREFIX_BLOCKS>, *pairs, *batch, pairs_count,
                  per_thread);
}

extern "C" enum err GROUP_FN(invert)(const struct gpu_batch *batch, uint32_t count,
                                     uint32_t threads, struct gpu_stream *s) {
    launch_shape shape = {"inversion", blocks_for(threads, INVERT_THREADS), INVERT_THREADS};
    return launch(shape, s, invert_kernel<COORDINATE>, *batch, count, threads);
}

extern "C" enum err GROUP_FN(add)(const struct gpu_pairing *pairs, const struct gpu_batch *batch,
                                  uint32_t pairs_count, unsigned per_thread, uint32_t out_base,
                                  struct gpu_stream *s) {
    uint4 *out = (uint4 *)pairs->sums + (size_t)out_base * place<COORDINATE>::quads;
    return launch(pairs_shape("additions", pairs_count, per_thread), s,
                  add_kernel<spread_coordinate, ADD_BLOCKS>, *pairs, *batch, pairs_count,
                  per_thread, out);
}

extern "C" enum err GROUP_FN(scatter)(void *buckets, void *extra, const struct gpu_pairing *source,
                                      const uint32_t *keys, uint32_t key_add, const uint32_t *refs,
                                      uint32_t refs_or, uint32_t count, uint32_t chunk,
                                      bool continues, struct gpu_stream *s) {
    launch_shape shape = {"scatter", blocks_upto(count, 256, 1024), 256};
    return launch(shape, s, scatter_kernel<COORDINATE>, (uint4 *)buckets, (uint4 *)extra, *source,
                  keys, key_add, refs, refs_or, count, chunk, continues);
}
