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
 * whole is: doubling gets the denominator 2y, a sum with infinity or of opposite points gets 1 and its result is picked.
 *
 *   case                          denominator   result
 *   P + Q                         x2 - x1       sum
 *   P + P                         2y            double
 *   P + ∞, ∞ + Q, P - P, ∞ + ∞    1             P, Q, ∞, ∞
 *
 * Tried and lost: XYZZ with one thread a bucket (1.5 times slower on 381 bits), points padded to 128 bytes, running the
 * memory-bound steps beside the additions by priorities.
 */
#include "cuda/points.cuh"

namespace CURVE {
namespace GROUP {

enum pair_case { PAIR_SUM, PAIR_DOUBLE, PAIR_SECOND, PAIR_FIRST, PAIR_INFINITY };
enum { BUCKET_THREADS = 128, INVERT_THREADS = 64 };

__device__ __forceinline__ uint2 pair_refs(const gpu_pairing &s, uint32_t pair) {
    if (s.list) {
        return ((const uint2 *)s.list)[pair];
    }
    uint32_t low = pair & ((1u << s.half_log2) - 1);
    uint32_t first = s.base + ((pair >> s.half_log2) << (s.half_log2 + 1)) + low;
    return make_uint2(first, first + (1u << s.half_log2));
}

template <class F>
__device__ __forceinline__ F rare_denominator(enum pair_case *which, const F &x1, const F &y1,
                                              const F &x2, const F &y2) {
    bool infinity1 = x1.is_zero() && y1.is_zero_lazy(),
         infinity2 = x2.is_zero() && y2.is_zero_lazy();
    if (infinity1 || infinity2) {
        *which = infinity1 ? infinity2 ? PAIR_INFINITY : PAIR_SECOND : PAIR_FIRST;
        return F::one();
    }
    if (x1 == x2) {
        *which = y1 == y2 ? PAIR_DOUBLE : PAIR_INFINITY;
        return y1 == y2 ? y1.dbl() : F::one();
    }
    *which = PAIR_SUM;
    return x2 - x1;
}

/* 128 threads; 381 bits need 96 registers, so 5 blocks an SM are resident: the gathers are what bounds it. */
template <class F, int BLOCKS>
__global__ void __launch_bounds__(BUCKET_THREADS, BLOCKS)
    prefix_kernel(const __grid_constant__ gpu_pairing s, const __grid_constant__ gpu_batch b,
                  uint32_t pairs_count, unsigned per_thread) {
    uint32_t first = blockIdx.x * (BUCKET_THREADS * per_thread) + threadIdx.x;
    F product = F::one();
    if (first < pairs_count) {
        uint32_t mine = (pairs_count - first + BUCKET_THREADS - 1) / BUCKET_THREADS;
        mine = mine < per_thread ? mine : per_thread;
        uint2 refs = pair_refs(s, first),
              next = mine > 1 ? pair_refs(s, first + BUCKET_THREADS) : refs;
        F x1 = place<F>::x_of(s, refs.x), x2 = place<F>::x_of(s, refs.y);
#pragma unroll 1
        for (uint32_t k = 0; k < mine; k++) {
            uint32_t pair = first + k * BUCKET_THREADS;
            F d = x2.sub_lazy(x1);
            if (d.maybe_p() || x1.maybe_zero() || x2.maybe_zero()) {
                F y1 = place<F>::y_of(s, refs.x),
                  y2 = place<F>::y_of(s, refs.y).cneg((refs.x ^ refs.y) >> 31);
                enum pair_case which;
                d = rare_denominator(&which, x1, y1, x2, y2);
            }
            refs = next;
            if (k + 1 < mine) { /* loads of the next pair, before this one's product */
                x1 = place<F>::x_of(s, refs.x);
                x2 = place<F>::x_of(s, refs.y);
            }
            if (k + 2 < mine) {
                next = pair_refs(s, pair + 2 * BUCKET_THREADS);
            }
            if (k) {
                place<F>::store((uint4 *)b.prefixes + pair, b.prefixes_plane, product);
                product = product.mul_lazy(d);
            } else {
                product = d;
            }
        }
    }
    place<F>::store((uint4 *)b.products + blockIdx.x * BUCKET_THREADS + threadIdx.x,
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
 * and 1 × 512 were 2 to 8 % slower. Fp2 needs 255 registers, so 2 blocks. */
template <class F, int BLOCKS>
__global__ void __launch_bounds__(BUCKET_THREADS, BLOCKS)
    add_kernel(const __grid_constant__ gpu_pairing s, const __grid_constant__ gpu_batch b,
               uint32_t pairs_count, unsigned per_thread, uint4 *out) {
    uint32_t first = blockIdx.x * (BUCKET_THREADS * per_thread) + threadIdx.x;
    if (first >= pairs_count) {
        return;
    }
    uint32_t mine = (pairs_count - first + BUCKET_THREADS - 1) / BUCKET_THREADS;
    mine = mine < per_thread ? mine : per_thread;
    F inverse = place<F>::load(
        (const uint4 *)b.products + blockIdx.x * BUCKET_THREADS + threadIdx.x, b.products_plane);
#pragma unroll 1
    for (uint32_t k = mine; k-- > 0;) {
        uint32_t pair = first + k * BUCKET_THREADS;
        uint2 refs = pair_refs(s, pair);
        F x1 = place<F>::x_of(s, refs.x), x2 = place<F>::x_of(s, refs.y);
        F y1 = place<F>::y_of(s, refs.x),
          y2 = place<F>::y_of(s, refs.y).cneg((refs.x ^ refs.y) >> 31);
        enum pair_case which = PAIR_SUM;
        F d = x2.sub_lazy(x1), slope = y2.sub_lazy(y1);
        if (d.maybe_p() || x1.maybe_zero() || x2.maybe_zero()) {
            d = rare_denominator(&which, x1, y1, x2, y2);
            if (which == PAIR_DOUBLE) {
                slope = x1.sqr();
                slope = slope + slope.dbl();
            }
        }
        F one_over = inverse;
        if (k) {
            one_over = inverse.mul_lazy(
                place<F>::load((const uint4 *)b.prefixes + pair, b.prefixes_plane));
            inverse = inverse.mul_lazy(d);
        }
        slope = slope.mul_lazy(one_over);
        F x3 = slope.sqr() - x1 - x2, y3 = slope * x1.sub_lazy(x3) - y1;
        if (which >= PAIR_SECOND) {
            x3 = which == PAIR_SECOND ? x2 : which == PAIR_FIRST ? x1 : F::zero();
            y3 = which == PAIR_SECOND ? y2 : which == PAIR_FIRST ? y1 : F::zero();
        }
        place<F>::store(out + (size_t)pair * place<F>::quads, 1, x3);
        place<F>::store(out + (s.plane + pair) * place<F>::quads, 1, y3);
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

static const int prefix_blocks = sizeof(COORDINATE) > 48 ? 3 : 5,
                 add_blocks = sizeof(COORDINATE) > 48   ? 2
                              : sizeof(COORDINATE) > 32 ? 4
                                                        : 5;

extern "C" enum err GROUP_FN(prefix)(const struct gpu_pairing *pairs, const struct gpu_batch *batch,
                                     uint32_t pairs_count, unsigned per_thread,
                                     struct gpu_stream *s) {
    launch_shape shape = {"prefix products", blocks_for(pairs_count, BUCKET_THREADS * per_thread),
                          BUCKET_THREADS};
    return launch(shape, s, prefix_kernel<COORDINATE, prefix_blocks>, *pairs, *batch, pairs_count,
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
    launch_shape shape = {"additions", blocks_for(pairs_count, BUCKET_THREADS * per_thread),
                          BUCKET_THREADS};
    uint4 *out = (uint4 *)pairs->sums + (size_t)out_base * place<COORDINATE>::quads;
    return launch(shape, s, add_kernel<COORDINATE, add_blocks>, *pairs, *batch, pairs_count,
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
