/* How many products a device makes: chains of one operation in every thread, as many threads as the heavy kernels keep, and
 * no memory in between. The ceiling that benches hold operations against.
 */
#include "cuda/check.cuh"
#include "cuda/fr.cuh"

namespace CURVE {

template <class T> __device__ __forceinline__ T element(const uint32_t *from, size_t i) {
    T t;
    memcpy(&t, from + i * (sizeof(T) / 4), sizeof t);
    return t;
}

/* 2 × 256 threads of up to 128 registers keep the multiplier at its limit. */
template <bool SQUARE>
__global__ void __launch_bounds__(GPU_RATE_THREADS, 2)
    fp_rate_kernel(uint32_t *values, uint32_t rounds) {
    uint32_t i = blockIdx.x * GPU_RATE_THREADS + threadIdx.x;
    fp x = element<fp>(values, i), y = x;
#pragma unroll 1
    for (uint32_t k = 0; k < rounds; k++) {
        x = SQUARE ? x.sqr() : x * y;
    }
    memcpy(values + (size_t)i * fp::words, &x, sizeof x);
}
__global__ void __launch_bounds__(GPU_RATE_THREADS, 2)
    fr_rate_kernel(uint32_t *values, uint32_t rounds) {
    uint32_t i = blockIdx.x * GPU_RATE_THREADS + threadIdx.x;
    fr_int x = element<fr_int>(values, i);
    fr_const c = fr_const_of_mont(x.w);
#pragma unroll 1
    for (uint32_t k = 0; k < rounds; k++) {
        fr_mul(x.w, x.w, c);
    }
    memcpy(values + (size_t)i * 8, &x, sizeof x);
}

} // namespace CURVE

using namespace CURVE;

extern "C" enum err CURVE_FN(products)(void *values, enum gpu_product which, uint32_t blocks,
                                       uint32_t rounds, struct gpu_stream *s) {
    launch_shape shape = {"product rate", blocks, GPU_RATE_THREADS};
    uint32_t *v = (uint32_t *)values;
    return which == GPU_PRODUCT_FR   ? launch(shape, s, fr_rate_kernel, v, rounds)
           : which == GPU_PRODUCT_FP ? launch(shape, s, fp_rate_kernel<false>, v, rounds)
                                     : launch(shape, s, fp_rate_kernel<true>, v, rounds);
}
