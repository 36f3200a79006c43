/* Checked calls and launches. Every file with kernels begins here.
 *
 * CU(call) turns a failed call into our error with the call's text and what to do about it; launch() is the one way to
 * start a kernel.
 */
#pragma once
#include <cuda_runtime.h>

#include "cuda/gpu.h"

/* E_LIMIT for memory, E_DEVICE_LOST for errors that stay with the context, else E_DEVICE. */
extern "C" enum err gpu_fail(cudaError_t e, const char *what);

#define CU(call)                                                                                   \
    do {                                                                                           \
        cudaError_t cu_err_ = (call);                                                              \
        if (cu_err_ != cudaSuccess) {                                                              \
            return gpu_fail(cu_err_, #call);                                                       \
        }                                                                                          \
    } while (0)

/* Compiled with -DCURVE=bn254 and, for one group, -DGROUP=g1 -DCOORDINATE=fp: names of what C calls. */
#define NAME_JOIN_(a, b) a##_##b
#define NAME_JOIN(a, b)  NAME_JOIN_(a, b)
#define CURVE_FN(name)   NAME_JOIN(CURVE, NAME_JOIN(gpu, name))
#define GROUP_FN(name)   NAME_JOIN(CURVE, NAME_JOIN(GROUP, name))

static inline cudaStream_t stream_of(struct gpu_stream *s) {
    return (cudaStream_t)s;
}

struct launch_shape {
    const char *name; /* for the error */
    uint32_t blocks, threads;
};

template <class T> struct same { typedef T type; };
template <class... P>
static enum err launch(launch_shape shape, struct gpu_stream *s, void (*kernel)(P...),
                       typename same<P>::type... args) {
    if (!shape.blocks) {
        return OK;
    }
    void *pointers[] = {(void *)&args...};
    cudaError_t e = cudaLaunchKernel(kernel, dim3(shape.blocks), dim3(shape.threads), pointers, 0,
                                     stream_of(s));
    return e == cudaSuccess ? OK : gpu_fail(e, shape.name);
}

static inline uint32_t blocks_for(uint64_t count, uint32_t threads) {
    return (uint32_t)((count + threads - 1) / threads);
}
/* For grid-stride loops: enough blocks to fill the device, not more than there is work. */
static inline uint32_t blocks_upto(uint64_t count, uint32_t threads, uint32_t blocks_max) {
    uint64_t blocks = (count + threads - 1) / threads;
    return (uint32_t)(blocks < blocks_max ? blocks : blocks_max);
}

/* Sum over a whole warp, in every lane. One instruction from sm_80 on. */
__device__ __forceinline__ uint32_t warp_sum(uint32_t value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#pragma unroll
    for (int lanes = 16; lanes; lanes >>= 1) {
        value += __shfl_xor_sync(~0u, value, lanes);
    }
    return value;
#else
    return __reduce_add_sync(~0u, value);
#endif
}
