/* Sparse products a = A·w, b = B·w: a thread a row, long rows a block each.
 *
 * Most coefficients are 1 and -1: those terms are an addition or a subtraction of a plain integer, the others a product by
 * a constant from a dictionary. The gathers of w bound it: 0.96 ms for 2^24 rows of 2.4 terms on an H200.
 *
 * Tried and lost: general terms after the ±1 ones, a queue of products a block, three loads at once, two lanes an element.
 */
#include "cuda/check.cuh"
#include "cuda/fr.cuh"

namespace CURVE {

__device__ __forceinline__ void add_term(uint32_t *sum, const fr_int *w, uint32_t column,
                                         uint32_t coefficient, const fr_const *dictionary) {
    uint32_t v[8];
    load16_const(v, w + column);
    load16_const(v + 4, (const char *)(w + column) + 16);
    if (coefficient > GPU_COEFFICIENT_MINUS_ONE) {
        fr_const t;
        fr_const_load(&t, dictionary + coefficient);
        fr_mul(v, v, t);
    }
    if (coefficient == GPU_COEFFICIENT_MINUS_ONE) {
        fr_difference(sum, sum, v);
    } else {
        fr_sum(sum, sum, v);
    }
}

/* 256 threads of about 56 registers; bound by gathers. */
__global__ void __launch_bounds__(256)
    rows_kernel(fr_int *out, const __grid_constant__ gpu_matrix m, const fr_int *w) {
    for (uint64_t row = (uint64_t)blockIdx.x * 256 + threadIdx.x; row < m.rows_count;
         row += (uint64_t)gridDim.x * 256) {
        uint32_t from = m.row_start[row], to = m.row_start[row + 1],
                 sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        if (to - from > GPU_ROW_LONG) {
            continue;
        }
        for (uint32_t k = from; k < to; k++) {
            add_term(sum, w, m.columns[k], m.coefficients[k], (const fr_const *)m.dictionary);
        }
        fr_canonical(sum);
        fr_store(out + row, sum);
    }
}

__global__ void __launch_bounds__(256)
    long_rows_kernel(fr_int *out, const __grid_constant__ gpu_matrix m, const fr_int *w) {
    __shared__ fr_int sums[256];
    uint32_t row = m.long_rows[blockIdx.x], to = m.row_start[row + 1],
             sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (uint32_t k = m.row_start[row] + threadIdx.x; k < to; k += 256) {
        add_term(sum, w, m.columns[k], m.coefficients[k], (const fr_const *)m.dictionary);
    }
    fr_canonical(sum);
    for (int i = 0; i < 8; i++) {
        sums[threadIdx.x].w[i] = sum[i];
    }
    for (uint32_t half = 128; half; half >>= 1) {
        __syncthreads();
        if (threadIdx.x < half) {
            fr_add_canonical(sums[threadIdx.x].w, sums[threadIdx.x].w, sums[threadIdx.x + half].w);
        }
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < 8; i++) {
            out[row].w[i] = sums[0].w[i];
        }
    }
}

} // namespace CURVE

using namespace CURVE;

extern "C" enum err CURVE_FN(matrix_times)(void *out, const struct gpu_matrix *m, const void *w,
                                           struct gpu_stream *s) {
    launch_shape rows = {"sparse rows", blocks_upto(m->rows_count, 256, 1u << 20), 256};
    TRY(launch(rows, s, rows_kernel, (fr_int *)out, *m, (const fr_int *)w));
    launch_shape longs = {"long sparse rows", m->long_count, 256};
    return launch(longs, s, long_rows_kernel, (fr_int *)out, *m, (const fr_int *)w);
}
