/* Pairs that take no addition, set apart: of two points of which one is infinity the other is the sum, and two that cancel leave infinity.
 *
 * In a key's B three quarters of the points may be infinity, and of points that repeat half of the pairs cancel. Each would take
 * an addition's time; so in rounds that may have many (the host knows which) this comes first. It reads a sector of each x, and whole points only of
 * the pairs that it settles; what is left is a list, and prefix products and additions go over that.
 *
 * The order in the list is that in which blocks come. A block's pairs stay together, so their accesses are as close as before.
 */
#include "cuda/check.cuh"
#include "cuda/points.cuh"

namespace CURVE {
namespace GROUP {

enum { SIFT_THREADS = 256, SIFT_WARPS = SIFT_THREADS / 32 };

/* Do equal x stand for points that cancel? As the lowest words of y tell, of each half of an Fp2. */
template <class F> __device__ __forceinline__ bool cancels(const gpu_pairing &s, uint2 refs) {
    constexpr int halves = sizeof(F) / sizeof(fp);
    const uint32_t *y1 = (const uint32_t *)place<F>::y_at(s, refs.x),
                   *y2 = (const uint32_t *)place<F>::y_at(s, refs.y);
    bool same = true;
    for (int i = 0; i < halves; i++) {
        same = same && y1[i * fp::words] == y2[i * fp::words];
    }
    return same == (refs.x >> 31 != refs.y >> 31);
}

/* True: it takes an addition. Else its sum is written. The second y as the references' signs want it. */
template <class F>
__device__ __forceinline__ bool takes_addition(const gpu_pairing &s, uint2 refs, uint4 *sum_x) {
    uint32_t word1 = place<F>::x_word(s, refs.x), word2 = place<F>::x_word(s, refs.y);
    F x = F::zero(), y = F::zero();
    bool infinity1 = word1 == 0 && place<F>::x_of(s, refs.x).is_zero(),
         infinity2 = word2 == 0 && place<F>::x_of(s, refs.y).is_zero();
    if (!infinity1 && !infinity2) {
        bool equal = word1 == word2 && place<F>::x_of(s, refs.x) == place<F>::x_of(s, refs.y);
        if (!equal || !cancels<F>(s, refs)) {
            return true;
        }
    } else if (!infinity1) {
        x = place<F>::x_of(s, refs.x);
        y = place<F>::y_of(s, refs.x);
    } else if (!infinity2) {
        x = place<F>::x_of(s, refs.y);
        y = place<F>::y_of(s, refs.y);
        y = (refs.x ^ refs.y) >> 31 ? y.neg() : y;
    }
    place<F>::store(sum_x, 1, x);
    place<F>::store(sum_x + s.plane * place<F>::quads, 1, y);
    return false;
}

template <class F>
__global__ void __launch_bounds__(SIFT_THREADS)
    sift_kernel(const __grid_constant__ gpu_pairing s, const __grid_constant__ gpu_batch b,
                uint32_t pairs_count, uint4 *out) {
    __shared__ uint32_t before[SIFT_WARPS], base;
    uint32_t pair = blockIdx.x * SIFT_THREADS + threadIdx.x, lane = threadIdx.x & 31,
             warp = threadIdx.x / 32;
    bool added = pair < pairs_count &&
                 takes_addition<F>(s, pair_refs(s, pair), out + (size_t)pair * place<F>::quads);
    uint32_t some = __ballot_sync(~0u, added);
    if (lane == 0) {
        before[warp] = (uint32_t)__popc(some);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t all = 0;
        for (int i = 0; i < SIFT_WARPS; i++) {
            uint32_t own = before[i];
            before[i] = all;
            all += own;
        }
        base = all ? atomicAdd(b.sifted_count, all) : 0;
    }
    __syncthreads();
    if (added) {
        b.sifted[base + before[warp] + (uint32_t)__popc(some & ((1u << lane) - 1))] = pair;
    }
}

} // namespace GROUP
} // namespace CURVE

using namespace CURVE;
using namespace CURVE::GROUP;

extern "C" enum err GROUP_FN(sift)(const struct gpu_pairing *pairs, const struct gpu_batch *batch,
                                   uint32_t pairs_count, uint32_t out_base, struct gpu_stream *s) {
    uint4 *sums = (uint4 *)pairs->sums + (size_t)out_base * place<COORDINATE>::quads;
    TRY(gpu_fill(batch->sifted_count, 0, sizeof *batch->sifted_count, s));
    launch_shape shape = {"sifting of pairs", blocks_for(pairs_count, SIFT_THREADS), SIFT_THREADS};
    return launch(shape, s, sift_kernel<COORDINATE>, *pairs, *batch, pairs_count, sums);
}
