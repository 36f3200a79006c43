/* From buckets to one point: sum over d of d·bucket[d] in every set of buckets, a window each or one for all, then the windows.
 *
 * A bucket's index is row·2^l + column. msm.c has added up rows and columns by the same batched additions as the buckets
 * themselves, so that each set leaves 2^h row sums R and 2^l column sums C, and
 *
 *   sum (index + 1) · bucket  =  sum row·2^l·R[row]  +  sum column·C[column]  +  sum C[column]
 *
 * The weights are taken bit by bit: a block adds up the entries whose row (column) has one certain bit, and the host does
 * one Horner pass over all bits of all windows: bits(r) doublings, 0.3 ms.
 */
#define FIELD2_CALLS
#include "cuda/points.cuh"

namespace CURVE {
namespace GROUP {

enum { SUM_THREADS = 128 };

template <class F>
__device__ __forceinline__ affine<F> plane_point(const uint4 *x, size_t plane, size_t i) {
    constexpr int quads = place<F>::quads;
    return {place<F>::load(x + i * quads, 1), place<F>::load(x + (plane + i) * quads, 1)};
}

/* Block (set, bit): row bits first, then column bits, then all. 128 threads; the additions are calls, so registers are
 * few and the code is short: all of it is a few thousand additions. */
template <class F>
__global__ void __launch_bounds__(SUM_THREADS)
    bit_sums_kernel(xyzz<F> *results, const __grid_constant__ gpu_bit_lists g) {
    __shared__ uint4 shared_words[SUM_THREADS / 2 * sizeof(xyzz<F>) / 16];
    xyzz<F> *shared = (xyzz<F> *)shared_words, sum = xyzz<F>::infinity();
    unsigned per_set = g.row_bits + g.column_bits + 1, bit = blockIdx.x % per_set;
    uint32_t set = blockIdx.x / per_set;
    bool is_row = bit < g.row_bits, all = bit == per_set - 1;
    bit -= is_row ? 0 : g.row_bits;
    uint32_t entries = is_row ? g.rows_count : g.columns_count, count = all ? entries : entries / 2;
    const uint4 *x = (const uint4 *)(is_row ? g.rows : g.columns);
    size_t plane = is_row ? g.rows_plane : g.columns_plane;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < count; i += SUM_THREADS) {
        uint32_t entry = all ? i : (i >> bit) << (bit + 1) | 1u << bit | (i & ((1u << bit) - 1));
        sum.add(plane_point<F>(x, plane, (size_t)set * entries + entry));
    }
#pragma unroll 1
    for (uint32_t half = SUM_THREADS / 2; half; half >>= 1) {
        __syncthreads();
        if (threadIdx.x >= half && threadIdx.x < 2 * half) {
            shared[threadIdx.x - half] = sum;
        }
        __syncthreads();
        if (threadIdx.x < half) {
            sum.add(shared[threadIdx.x]);
        }
    }
    if (threadIdx.x == 0) {
        results[blockIdx.x] = sum;
    }
}

/* Host: what chunk boundaries cut off a bucket, times the bucket's weight, added to its set. */
static void add_extras(xyzz<COORDINATE> *sets, const affine<COORDINATE> *extra,
                       const struct gpu_pairs *pairs) {
    unsigned c = pairs->shape.window_bits;
    uint64_t left = pairs->host->pairs_count;
    for (uint32_t chunk = 0; left > (uint64_t)chunk << pairs->shape.chunk_log2; chunk++) {
        if (!pairs->host->chunk[chunk].continues) {
            continue;
        }
        uint32_t key = pairs->host->chunk[chunk].first_key,
                 weight = (key & ((1u << (c - 1)) - 1)) + 1;
        xyzz<COORDINATE> t = xyzz<COORDINATE>::infinity();
        for (int bit = (int)c; bit >= 0; bit--) {
            t.dbl();
            if (weight >> bit & 1) {
                t.add(extra[chunk]);
            }
        }
        sets[key >> (c - 1)].add(t);
    }
}

} // namespace GROUP
} // namespace CURVE

using namespace CURVE;
using namespace CURVE::GROUP;

extern "C" enum err GROUP_FN(bit_sums)(void *results, const struct gpu_bit_lists *lists,
                                       struct gpu_stream *s) {
    uint32_t blocks = lists->sets_count * (lists->row_bits + lists->column_bits + 1);
    launch_shape shape = {"bucket weights", blocks, SUM_THREADS};
    return launch(shape, s, bit_sums_kernel<COORDINATE>, (xyzz<COORDINATE> *)results, *lists);
}

extern "C" void GROUP_FN(finish)(uint64_t *out, const void *results, const void *extra,
                                 const struct gpu_pairs *pairs) {
    unsigned c = pairs->shape.window_bits, row_bits = pairs->sizes.row_bits,
             column_bits = pairs->sizes.column_bits;
    unsigned per_set = row_bits + column_bits + 1, count = gpu_pairs_sets(pairs);
    xyzz<COORDINATE> sets[256 / GPU_MSM_WINDOW_MIN + 1];
    for (unsigned j = 0; j < count; j++) {
        sets[j] = xyzz<COORDINATE>::infinity();
    }
    add_extras(sets, (const affine<COORDINATE> *)extra, pairs);
    xyzz<COORDINATE> sum = xyzz<COORDINATE>::infinity();
    for (unsigned j = count; j-- > 0;) {
        const xyzz<COORDINATE> *bits = (const xyzz<COORDINATE> *)results + (size_t)j * per_set;
        for (unsigned k = c; k-- > 0;) {
            sum.dbl();
            if (k >= column_bits && k - column_bits < row_bits) {
                sum.add(bits[k - column_bits]);
            } else if (k < column_bits) {
                sum.add(bits[row_bits + k]);
            }
        }
        sum.add(bits[per_set - 1]);
        sum.add(sets[j]);
    }
    const xyzz<COORDINATE> *ones = (const xyzz<COORDINATE> *)results + pairs->sizes.results_count;
    for (size_t i = 0; i < (size_t)gpu_ones_batches(pairs) * GPU_ONES_SUMS; i++) {
        sum.add(ones[i]);
    }
    affine<COORDINATE> result = sum.to_affine();
    memcpy(out, &result, sizeof result);
}
