/* CUDA for machines without a device: the kernels of cuda/ compiled by the host's C++ compiler and run on one CPU core.
 *
 * Found before the toolkit's header of the same name, so that no kernel file knows the difference. A block's threads are
 * fibers; __syncthreads and the warp operations park a fiber until all that must take part have arrived, and a block in
 * which they never do aborts with a message. Blocks run one after the other, their threads upwards in even blocks and
 * downwards in odd ones, so that a missing barrier shows as a wrong result. Streams run their work at once, in the order
 * of the calls. Device memory is host memory, so address and bounds checking come with the sanitizers.
 *
 * What it is for: the results of every kernel and of the whole backend, on any machine. What it cannot show: races
 * between streams, real barriers' cost, PTX (fields run the same sequences with an emulated carry flag).
 *
 * $EMULATOR_DEVICES says how many devices there are. When a file named by $EMULATOR_FAULT is there, the next launch takes it away and
 * fails with an illegal address, and so does everything after it: a context that is gone.
 *
 * Threads  one.
 */
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__      static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __grid_constant__
#define __launch_bounds__(...)

struct uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
static inline uint2 make_uint2(uint32_t x, uint32_t y) {
    return {x, y};
}
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
    return {x, y, z, w};
}

/* The thread that runs now. */
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

void emulator_block_barrier();
/* Deposits `value`, waits for the whole warp, returns the 32 deposits (lent until the next warp operation). */
const uint32_t *emulator_warp_exchange(uint32_t value, uint32_t *present);

static inline void __syncthreads() {
    emulator_block_barrier();
}
static inline uint32_t __ballot_sync(uint32_t, int predicate) {
    uint32_t present, bits = 0;
    const uint32_t *v = emulator_warp_exchange(predicate != 0, &present);
    for (unsigned i = 0; i < 32; i++) {
        bits |= (present >> i & 1 ? v[i] : 0) << i;
    }
    return bits;
}
static inline void __syncwarp() {
    __ballot_sync(~0u, 0);
}
static inline uint32_t __reduce_add_sync(uint32_t, uint32_t value) {
    uint32_t present, sum = 0;
    const uint32_t *v = emulator_warp_exchange(value, &present);
    for (unsigned i = 0; i < 32; i++) {
        sum += present >> i & 1 ? v[i] : 0;
    }
    return sum;
}
static inline uint32_t __shfl_up_sync(uint32_t, uint32_t value, unsigned delta) {
    uint32_t present;
    unsigned lane = threadIdx.x & 31;
    const uint32_t *v = emulator_warp_exchange(value, &present);
    return lane >= delta ? v[lane - delta] : value;
}
static inline uint32_t __shfl_xor_sync(uint32_t, uint32_t value, unsigned lanes) {
    uint32_t present;
    const uint32_t *v = emulator_warp_exchange(value, &present);
    return v[(threadIdx.x & 31) ^ lanes];
}
static inline uint32_t __shfl_sync(uint32_t, uint32_t value, int source, int width) {
    uint32_t present, lane = threadIdx.x & 31;
    const uint32_t *v = emulator_warp_exchange(value, &present);
    return v[lane / (unsigned)width * (unsigned)width + (unsigned)source];
}
static inline int __any_sync(uint32_t, int predicate) {
    return __ballot_sync(~0u, predicate) != 0;
}
template <class T> static inline T atomicAdd(T *at, T value) {
    T old = *at;
    *at = old + value;
    return old;
}
template <class T> static inline T atomicMin(T *at, T value) {
    T old = *at;
    *at = value < old ? value : old;
    return old;
}
template <class T> static inline T atomicMax(T *at, T value) {
    T old = *at;
    *at = value > old ? value : old;
    return old;
}
template <class T> static inline T __ldg(const T *at) {
    return *at;
}
static inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
static inline unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (unsigned i = 0; i < 32; i++) {
        r |= (x >> i & 1) << (31 - i);
    }
    return r;
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
    return (unsigned)(((uint64_t)high << 32 | low) << (n & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (n & 31));
}

/* --- the runtime's calls that cuda/ makes --- */
typedef int cudaError_t;
enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorECCUncorrectable = 214,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorLaunchTimeout = 702,
    cudaErrorAssert = 710,
    cudaErrorHardwareStackError = 714,
    cudaErrorIllegalInstruction = 715,
    cudaErrorMisalignedAddress = 716,
    cudaErrorInvalidAddressSpace = 717,
    cudaErrorInvalidPc = 718,
    cudaErrorLaunchFailure = 719,
    cudaErrorUnknown = 999
};
enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum { cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2 };
enum { cudaEventBlockingSync = 1, cudaHostRegisterDefault = 0, cudaDeviceScheduleBlockingSync = 4 };
typedef struct emulator_stream *cudaStream_t;
typedef struct emulator_event *cudaEvent_t;
struct cudaUUID_t {
    char bytes[16];
};
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    int multiProcessorCount, major, minor, l2CacheSize;
};
const char *cudaGetErrorName(cudaError_t e);
const char *cudaGetErrorString(cudaError_t e);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaMemGetInfo(size_t *left, size_t *total);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *ptr);
/* A pool that keeps nothing. */
typedef struct emulator_pool *cudaMemPool_t;
enum { cudaDevAttrMemoryPoolsSupported = 115 };
enum {
    cudaMemPoolAttrReleaseThreshold = 4,
    cudaMemPoolAttrReservedMemCurrent = 5,
    cudaMemPoolAttrUsedMemCurrent = 7
};
static const cudaStream_t cudaStreamPerThread = nullptr;
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t s);
cudaError_t cudaHostRegister(void *ptr, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *ptr);
enum { cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost = 1 };
struct cudaPointerAttributes {
    int type;
};
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *ptr);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, cudaStream_t s);
cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t s);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);

typedef void emulator_thread(void *ctx);
cudaError_t emulator_run(dim3 grid, dim3 block, emulator_thread *thread, void *ctx);

template <class... P> struct emulator_call {
    void (*kernel)(P...);
    void **args;
    template <size_t... I> void go(std::index_sequence<I...>) { kernel(*(P *)args[I]...); }
    static void thread(void *ctx) { ((emulator_call *)ctx)->go(std::index_sequence_for<P...>()); }
};
template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void **args, size_t,
                             cudaStream_t) {
    emulator_call<P...> call = {kernel, args};
    return emulator_run(grid, block, emulator_call<P...>::thread, &call);
}
