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
 * whole is. Points of one order r have no x = 0 (that point's order is 3) and no y = 0, so x alone tells infinity, and of
 * two points of equal x the lowest word of y tells whether they are one, as p is odd. The prefix step squares the x of
 * doublings and leaves 3x² where the sum's x will stand: it waits for memory while the additions fill the multiplier, so points
 * that repeat a thousand times over cost little more than others.
 *
 *   case                          denominator   slope is over it   result
 *   P + Q                         x2 - x1       y2 - y1            sum
 *   P + P                         2y            3x²                double
 *   P - P, P + ∞, ∞ + Q, ∞ + ∞    1                                ∞, P, Q, ∞
 *
 * Coordinates in Fp2 are spread over two lanes (field2_lanes.cuh), so a block has half as many workers as threads, its
 * loops are the same for all of them, and pairs behind the last are computed and not stored. There the products are of
 * norms: 1/d = conj(d) / N(d), N(d) = d0² + d1² in Fp. Each lane has a chain of its own, of every second pair of the
 * worker, and keeps the norms for the way back. In wide multiplies of 381 bits an addition takes
 *
 *   chain of Fp2    5 products of 888, a square of 600                            5040
 *   chain of norms  2 products of 888, a square, 2 by a number of Fp (600),       4188
 *                   3 products of Fp (300 each), a norm of 312
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

/* Of the pairs that were sifted out only the device knows how many they are, and so how many a thread takes (pairs_per_thread in msm.c). */
__device__ __forceinline__ uint32_t sifted_per_thread(const gpu_batch &b, uint32_t count) {
    uint32_t n = count / b.full_threads, most = GPU_BATCH_PAIRS_MAX;
    return n < 1 ? 1 : n < most ? n : most;
}

/* A worker's pairs are at first, first + count, first + 2·count, …; `rounds` of them, as many for the whole block. A place is the pair
 * itself, or one in the list of those that were sifted out. */
template <class F, bool SIFTED> struct share {
    static constexpr uint32_t workers = BUCKET_THREADS / F::lanes;
    uint32_t first, rounds, last, count;

    __device__ __forceinline__ share(const gpu_batch &b, uint32_t pairs_count,
                                     unsigned per_thread) {
        count = pairs_count;
        if (SIFTED) {
            count = *b.sifted_count;
            per_thread = sifted_per_thread(b, count);
        }
        uint32_t block = blockIdx.x * (workers * per_thread);
        uint32_t left = block < count ? count - block : 0;
        rounds = (left + workers - 1) / workers;
        rounds = rounds < per_thread ? rounds : per_thread;
        first = block + threadIdx.x / F::lanes;
        last = count - 1;
    }
    /* At a place that has one. */
    __device__ __forceinline__ uint32_t pair(const gpu_batch &b, uint32_t at) const {
        return SIFTED ? b.sifted[at < last ? at : last] : at;
    }
    __device__ __forceinline__ uint2 refs(const gpu_pairing &s, const gpu_batch &b,
                                          uint32_t at) const {
        return pair_refs(s, pair(b, at < last ? at : last));
    }
    /* Is the k-th a pair? One lane asks for its rounds alone. */
    __device__ __forceinline__ bool has(uint32_t k) const {
        return first + k * workers < count && (F::lanes == 1 || k < rounds);
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

/* The denominator by the table above, given x2 - x1, and whether the pair is a doubling; 1 for a pair behind the last. */
template <class F>
__device__ __forceinline__ F rare_denominator(bool *twice, const gpu_pairing &s, uint2 refs,
                                              const F &d, const F &x1, const F &x2, bool live) {
    bool infinity1 = is_infinity(x1), infinity2 = is_infinity(x2), equal = F::both(d.is_p());
    bool none = infinity1 || infinity2 || !live;
    F r = d;
    equal = equal && !none;
    if (F::any(equal)) {
        bool same = false;
        if (equal) {
            F y1 = place<F>::y_of(s, refs.x);
            same = y1.low_word() == place<F>::y_word(s, refs.y);
            r = y1.dbl_lazy();
        }
        same = F::both(same); /* asked by all lanes of the warp */
        *twice = equal && same != (refs.x >> 31 != refs.y >> 31);
        none = none || (equal && !*twice);
    }
    return none ? F::one() : r;
}

/* Doublings want 3x² of the prefix step, and a warp takes as long for one square as for all. Among points that repeat there is
 * hardly a warp without one, and in late rounds hardly one with many: few of them wait until all pairs have been seen. Many are squared
 * at once, which hides behind the gathers of the first round and needs no second one; over two lanes that would spill. */
template <class F> struct doublings {
    static constexpr uint32_t workers = 32 / F::lanes, few = F::lanes > 1 ? workers : workers / 4;
    static constexpr uint32_t most = GPU_BATCH_PAIRS_MAX * few;
    uint2 *waiting; /* shared: of the warp; pair and first reference */
    uint32_t count;

    /* The whole warp comes here. */
    __device__ __forceinline__ void add(bool twice, uint32_t pair, uint32_t ref1, const F &x1,
                                        uint4 *out) {
        uint32_t some = __ballot_sync(~0u, twice && F::lane() == 0), now = (uint32_t)__popc(some),
                 before = (1u << (threadIdx.x & 31)) - 1;
        if (few < workers && now > few) {
            F t = x1.sqr().triple_lazy();
            if (twice) {
                place<F>::store(out + (size_t)pair * place<F>::quads, 1, t);
            }
            return;
        }
        if (twice && F::lane() == 0) {
            waiting[count + (uint32_t)__popc(some & before)] = make_uint2(pair, ref1);
        }
        count += now;
    }
    __device__ __forceinline__ void add_waiting(const gpu_pairing &s, uint4 *out) const {
        uint32_t worker = (threadIdx.x & 31) / F::lanes;
        __syncwarp();
        if (!count) {
            return;
        }
        uint2 mine = waiting[worker < count ? worker : 0];
        F x = place<F>::x_of(s, mine.y);
#pragma unroll 1
        for (uint32_t i = worker; i < count + worker; i += workers) { /* as often for each worker */
            uint2 next = waiting[i + workers < count ? i + workers : 0];
            F x_next = place<F>::x_of(s, next.y), t = x.sqr().triple_lazy();
            if (i < count) {
                place<F>::store(out + (size_t)mine.x * place<F>::quads, 1, t);
            }
            mine = next;
            x = x_next;
        }
    }
};

/* The same number, of which the compiler does not know: an address that the common path needs only at its end is then not kept
 * in registers from the rare path on. */
__device__ __forceinline__ uint32_t forgotten(uint32_t x) {
    asm volatile("" : "+r"(x));
    return x;
}

/* Two points on their way to a sum; the second y as the references' signs want it. */
template <class F> struct point_pair {
    F x1, x2, y1, y2;
    __device__ __forceinline__ point_pair(const gpu_pairing &s, uint2 refs)
        : x1(place<F>::x_of(s, refs.x)), x2(place<F>::x_of(s, refs.y)),
          y1(place<F>::y_of(s, refs.x)),
          y2(place<F>::y_of(s, refs.y).cneg((refs.x ^ refs.y) >> 31)) {}
};

template <class F>
__device__ __forceinline__ enum pair_case rare_slope(F *d, F *slope, const point_pair<F> &p,
                                                     bool live, const uint4 *sum_x) {
    bool infinity1 = is_infinity(p.x1), infinity2 = is_infinity(p.x2);
    bool equal = F::both(d->is_p()), same_y = F::both(p.y1 == p.y2);
    bool none = infinity1 || infinity2 || !live;
    if (none) {
        *d = F::one();
        return !infinity1 ? PAIR_FIRST : infinity2 ? PAIR_INFINITY : PAIR_SECOND;
    }
    if (equal && !same_y) {
        *d = F::one();
        return PAIR_INFINITY;
    }
    if (equal) {
        *d = p.y1.dbl_lazy();
        *slope = place<F>::load(sum_x, 1);
    }
    return PAIR_SUM;
}

template <class F>
__device__ __forceinline__ void store_sum(uint4 *sum_x, size_t plane, const point_pair<F> &p,
                                          const F &slope, enum pair_case which, bool live) {
    F x3 = slope.sqr() - p.x1 - p.x2, y3 = slope * p.x1.sub_lazy(x3) - p.y1;
    if (which != PAIR_SUM) {
        x3 = which == PAIR_SECOND ? p.x2 : which == PAIR_FIRST ? p.x1 : F::zero();
        y3 = which == PAIR_SECOND ? p.y2 : which == PAIR_FIRST ? p.y1 : F::zero();
    }
    if (live) {
        place<F>::store(sum_x, 1, x3);
        place<F>::store(sum_x + plane * place<F>::quads, 1, y3);
    }
}

/* What the denominators of a worker put into a lane's chain of products. One lane: each one, as it is. */
template <class F> struct chain {
    static constexpr uint32_t pairs = 1; /* of the worker, for one link of each lane */
    fp link;
    __device__ __forceinline__ bool take(const F &d, uint32_t) {
        link = d;
        return true;
    }
};
/* Two lanes: the norms of every second one; the lanes exchange the halves that they lack. */
template <> struct chain<fp2_half> {
    static constexpr uint32_t pairs = 2;
    fp link, given;
    __device__ __forceinline__ bool take(const fp2_half &d, uint32_t k) {
        if (k % 2 == 0) {
            link = given = d.v;
            return false;
        }
        bool odd = fp2_half::lane() != 0;
        link = fp2_half::pick(odd, d.v, link);
        given = fp2_half::pick(odd, given, d.v);
        link = fp2_half::norm(link, fp2_half{given}.other());
        return true;
    }
};
/* Where the chains' values lie: prefixes by pair, and behind them, of two lanes, the links. */
template <class F> __device__ __forceinline__ uint4 *prefix_at(const gpu_batch &b, uint32_t pair) {
    return (uint4 *)b.prefixes + pair;
}
template <class F> __device__ __forceinline__ uint4 *link_at(const gpu_batch &b, uint32_t pair) {
    return (uint4 *)b.prefixes + place<fp>::quads * b.prefixes_plane + pair;
}
template <class F> __device__ __forceinline__ uint4 *product_at(const gpu_batch &b) {
    return (uint4 *)b.products + blockIdx.x * BUCKET_THREADS + threadIdx.x;
}

/* 128 threads; 381 bits need 96 registers, so 5 blocks an SM are resident: the gathers are what bounds it. */
template <class F, int BLOCKS, bool SIFTED>
__global__ void __launch_bounds__(BUCKET_THREADS, BLOCKS)
    prefix_kernel(const __grid_constant__ gpu_pairing s, const __grid_constant__ gpu_batch b,
                  uint32_t pairs_count, unsigned per_thread, uint4 *out) {
    typedef share<F, SIFTED> shares;
    constexpr uint32_t workers = shares::workers, step = chain<F>::pairs;
    shares mine(b, pairs_count, per_thread);
    uint32_t rounds = (mine.rounds + step - 1) / step * step;
    __shared__ uint2 waiting[BUCKET_THREADS / 32][doublings<F>::most];
    doublings<F> twins = {waiting[threadIdx.x / 32], 0};
    fp product = fp::one();
    chain<F> links;
    if (rounds) {
        uint2 refs = mine.refs(s, b, mine.first), next = mine.refs(s, b, mine.first + workers);
        F x1 = place<F>::x_of(s, refs.x), x2 = place<F>::x_of(s, refs.y);
#pragma unroll 1
        for (uint32_t k = 0; k < rounds; k++) {
            uint32_t place_now = mine.first + k * workers;
            bool live = mine.has(k), twice = false;
            F d = x2.sub_lazy(x1);
            if (maybe_rare(d, x1, x2, live)) {
                d = rare_denominator(&twice, s, refs, d, x1, x2, live);
            }
            twins.add(twice, mine.pair(b, place_now), refs.x, x1, out);
            refs = next;
            if (k + 1 < rounds) { /* loads of the next pair, before this one's product */
                x1 = place<F>::x_of(s, refs.x);
                x2 = place<F>::x_of(s, refs.y);
            }
            if (k + 2 < rounds) {
                next = mine.refs(s, b, place_now + 2 * workers);
            }
            if (!links.take(d, k)) {
                continue;
            }
            uint32_t own = k + 1 - step + F::lane(), at = mine.first + own * workers;
            bool stored = mine.has(own);
            if (step > 1 && stored) {
                place<fp>::store(link_at<F>(b, at), b.prefixes_plane, links.link);
            }
            if (k >= step) {
                if (stored) {
                    place<fp>::store(prefix_at<F>(b, at), b.prefixes_plane, product);
                }
                product = product.mul_lazy(links.link);
            } else {
                product = links.link;
            }
        }
    }
    place<fp>::store(product_at<F>(b), F::lanes * b.products_plane, product);
    twins.add_waiting(s, out);
}

/* 64 threads of 80 registers: few threads with a long chain each, bound by latency. `workers` of a block made the products. */
__global__ void __launch_bounds__(INVERT_THREADS)
    invert_kernel(const __grid_constant__ gpu_batch b, uint32_t count, uint32_t threads,
                  uint32_t workers) {
    uint32_t t = blockIdx.x * INVERT_THREADS + threadIdx.x, i;
    if (b.sifted) {
        uint32_t pairs = *b.sifted_count, of_block = workers * sifted_per_thread(b, pairs);
        count = (pairs + of_block - 1) / of_block * BUCKET_THREADS;
    }
    if (t >= threads || t >= count) {
        return;
    }
    uint4 *values = (uint4 *)b.products, *prefixes = (uint4 *)b.inverse_prefixes;
    fp product = fp::one();
#pragma unroll 1
    for (i = t; i < count; i += threads) {
        fp x = place<fp>::load(values + i, b.products_plane);
        if (i != t) {
            place<fp>::store(prefixes + i, b.products_plane, product);
            product = product.mul_lazy(x);
        } else {
            product = x;
        }
    }
    product = product.inv();
#pragma unroll 1
    for (i -= threads; i != t; i -= threads) {
        fp x = place<fp>::load(values + i, b.products_plane),
           prefix = place<fp>::load(prefixes + i, b.products_plane);
        place<fp>::store(values + i, b.products_plane, product.mul_lazy(prefix));
        product = product.mul_lazy(x);
    }
    place<fp>::store(values + t, b.products_plane, product);
}

/* 128 threads of 128 registers, 4 blocks an SM: 16 warps keep the multiplier 88 to 90 % busy; 3 × 128, 1 × 384, 2 × 256
 * and 1 × 512 were 2 to 8 % slower. */
template <class F, int BLOCKS, bool SIFTED>
__global__ void __launch_bounds__(BUCKET_THREADS, BLOCKS)
    add_kernel(const __grid_constant__ gpu_pairing s, const __grid_constant__ gpu_batch b,
               uint32_t pairs_count, unsigned per_thread, uint4 *out) {
    typedef share<F, SIFTED> shares;
    constexpr uint32_t workers = shares::workers;
    shares mine(b, pairs_count, per_thread);
    fp inverse = place<fp>::load(product_at<F>(b), b.products_plane);
#pragma unroll 1
    for (uint32_t k = mine.rounds; k-- > 0;) {
        uint32_t at = mine.first + k * workers, pair = mine.pair(b, at);
        bool live = at < mine.count;
        point_pair<F> p(s, mine.refs(s, b, at));
        enum pair_case which = PAIR_SUM;
        F d = p.x2.sub_lazy(p.x1), slope = p.y2.sub_lazy(p.y1);
        if (maybe_rare(d, p.x1, p.x2, live)) {
            which =
                rare_slope(&d, &slope, p, live, out + (size_t)forgotten(pair) * place<F>::quads);
        }
        F one_over = inverse;
        if (k) {
            one_over = inverse.mul_lazy(
                place<fp>::load(prefix_at<F>(b, live ? at : mine.last), b.prefixes_plane));
            inverse = inverse.mul_lazy(d);
        }
        store_sum(out + (size_t)pair * place<F>::quads, s.plane, p, slope.mul_lazy(one_over), which,
                  live);
    }
}

/* The same over two lanes. Half an Fp2 of 381 bits needs 168 registers, so 3 blocks. */
template <class F, int BLOCKS, bool SIFTED>
__global__ void __launch_bounds__(BUCKET_THREADS, BLOCKS)
    add_lanes_kernel(const __grid_constant__ gpu_pairing s, const __grid_constant__ gpu_batch b,
                     uint32_t pairs_count, unsigned per_thread, uint4 *out) {
    typedef share<F, SIFTED> shares;
    constexpr uint32_t workers = shares::workers, step = chain<F>::pairs;
    shares mine(b, pairs_count, per_thread);
    fp inverse = place<fp>::load(product_at<F>(b), F::lanes * b.products_plane);
#pragma unroll 1
    for (uint32_t k = (mine.rounds + step - 1) / step * step; k > 0;) {
        k -= step;
        uint32_t at = mine.first + (k + F::lane()) * workers;
        bool linked = mine.has(k + F::lane());
        fp one_over = inverse;
        if (k) {
            at = linked ? at : mine.last;
            one_over = inverse.mul_lazy(place<fp>::load(prefix_at<F>(b, at), b.prefixes_plane));
            fp link = place<fp>::load(link_at<F>(b, at), b.prefixes_plane);
            inverse = inverse.mul_lazy(F::pick(linked, link, fp::one()));
        }
#pragma unroll 1
        for (uint32_t i = 0; i < step; i++) {
            uint32_t place_now = mine.first + (k + i) * workers, pair = mine.pair(b, place_now);
            bool live = mine.has(k + i);
            point_pair<F> p(s, mine.refs(s, b, place_now));
            enum pair_case which = PAIR_SUM;
            F d = p.x2.sub_lazy(p.x1), slope = p.y2.sub_lazy(p.y1);
            if (maybe_rare(d, p.x1, p.x2, live)) {
                which = rare_slope(&d, &slope, p, live,
                                   out + (size_t)forgotten(pair) * place<F>::quads);
            }
            slope = slope.times_conjugate(d.scaled(F::of_lane(one_over, i)));
            store_sum(out + (size_t)pair * place<F>::quads, s.plane, p, slope, which, live);
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

/* One block of threads for each BUCKET_THREADS workers and lane: the host counts products by BUCKET_THREADS. Of pairs that were sifted out
 * there are blocks for any number up to pairs_count (batch_threads_max in msm.c); those without pairs end at once. */
static launch_shape pairs_shape(const char *name, const struct gpu_batch *b, uint32_t pairs_count,
                                unsigned per_thread) {
    uint32_t blocks = blocks_for(pairs_count, BUCKET_THREADS * per_thread);
    if (b->sifted) {
        uint32_t few = 2 * b->full_threads, most = pairs_count / GPU_BATCH_PAIRS_MAX;
        few = few < pairs_count ? few : pairs_count;
        blocks = (most > few ? most : few) / BUCKET_THREADS + 1;
    }
    return {name, spread_coordinate::lanes * blocks, BUCKET_THREADS};
}

static uint4 *sums_from(const struct gpu_pairing *pairs, uint32_t out_base) {
    return (uint4 *)pairs->sums + (size_t)out_base * place<COORDINATE>::quads;
}

extern "C" enum err GROUP_FN(prefix)(const struct gpu_pairing *pairs, const struct gpu_batch *batch,
                                     uint32_t pairs_count, unsigned per_thread, uint32_t out_base,
                                     struct gpu_stream *s) {
    auto kernel = batch->sifted ? prefix_kernel<spread_coordinate, PREFIX_BLOCKS, true>
                                : prefix_kernel<spread_coordinate, PREFIX_BLOCKS, false>;
    return launch(pairs_shape("prefix products", batch, pairs_count, per_thread), s, kernel, *pairs,
                  *batch, pairs_count, per_thread, sums_from(pairs, out_base));
}

/* The host counts workers; each of their lanes has a product. */
extern "C" enum err GROUP_FN(invert)(const struct gpu_batch *batch, uint32_t count,
                                     uint32_t threads, struct gpu_stream *s) {
    constexpr uint32_t lanes = spread_coordinate::lanes;
    struct gpu_batch of_lanes = *batch;
    of_lanes.products_plane *= lanes;
    launch_shape shape = {"inversion", blocks_for(lanes * threads, INVERT_THREADS), INVERT_THREADS};
    return launch(shape, s, invert_kernel, of_lanes, lanes * count, lanes * threads,
                  (uint32_t)BUCKET_THREADS / lanes);
}

template <class F, bool SIFTED, int lanes = F::lanes> struct add_step {
    static constexpr auto kernel = add_kernel<F, ADD_BLOCKS, SIFTED>;
};
template <class F, bool SIFTED> struct add_step<F, SIFTED, 2> {
    static constexpr auto kernel = add_lanes_kernel<F, ADD_BLOCKS, SIFTED>;
};

extern "C" enum err GROUP_FN(add)(const struct gpu_pairing *pairs, const struct gpu_batch *batch,
                                  uint32_t pairs_count, unsigned per_thread, uint32_t out_base,
                                  struct gpu_stream *s) {
    auto kernel = batch->sifted ? add_step<spread_coordinate, true>::kernel
                                : add_step<spread_coordinate, false>::kernel;
    return launch(pairs_shape("additions", batch, pairs_count, per_thread), s, kernel, *pairs,
                  *batch, pairs_count, per_thread, sums_from(pairs, out_base));
}

extern "C" enum err GROUP_FN(scatter)(void *buckets, void *extra, const struct gpu_pairing *source,
                                      const uint32_t *keys, uint32_t key_add, const uint32_t *refs,
                                      uint32_t refs_or, uint32_t count, uint32_t chunk,
                                      bool continues, struct gpu_stream *s) {
    launch_shape shape = {"scatter", blocks_upto(count, 256, 1024), 256};
    return launch(shape, s, scatter_kernel<COORDINATE>, (uint4 *)buckets, (uint4 *)extra, *source,
                  keys, key_add, refs, refs_or, count, chunk, continues);
}
