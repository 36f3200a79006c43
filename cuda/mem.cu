/* Memory of the device, and host memory that its copy engines read directly: the only door to either.
 *
 * What the device lends stays with the process: memory that goes back to the driver is cleared before it is lent again, and a copy
 * into it waits for that, 26 ms for a key of 10 GB whose other 185 are the bus's. The driver's pool keeps it, joins and splits it as is needed, and
 * gives it up where an allocation would fail otherwise. Without pools (a few virtual devices) memory goes back each time.
 *
 * Locking walks every page, so what is locked is locked once. Ordinary pages, touched and then registered, cost 118 ms a
 * GiB, with huge pages 47; asking the driver to allocate locked memory costs 575 to 755.
 */
#include "cuda/check.cuh"

#include <sys/mman.h>

/* The device's pool, which keeps what it once had; NULL: it has none. */
static enum err pool_of(cudaMemPool_t *out) {
    int device, supported;
    uint64_t all = UINT64_MAX;
    *out = nullptr;
    CU(cudaGetDevice(&device));
    CU(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device));
    if (supported) {
        CU(cudaDeviceGetDefaultMemPool(out, device));
        CU(cudaMemPoolSetAttribute(*out, cudaMemPoolAttrReleaseThreshold, &all));
    }
    return OK;
}

extern "C" enum err gpu_memory_free(uint64_t *bytes) {
    cudaMemPool_t pool;
    size_t left, total;
    uint64_t held = 0, lent = 0;
    TRY(pool_of(&pool));
    CU(cudaMemGetInfo(&left, &total));
    if (pool) {
        CU(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &held));
        CU(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &lent));
    }
    *bytes = left + (held - lent);
    return OK;
}

static cudaError_t pool_lend(void **out, size_t bytes, cudaMemPool_t pool) {
    cudaError_t e = cudaMallocFromPoolAsync(out, bytes, pool, cudaStreamPerThread);
    return e == cudaSuccess ? cudaStreamSynchronize(cudaStreamPerThread) : e;
}

extern "C" enum err gpu_mem_open(void **out, size_t bytes) {
    cudaMemPool_t pool;
    void *ptr = nullptr;
    *out = nullptr;
    if (!bytes) {
        return OK;
    }
    TRY(pool_of(&pool));
    cudaError_t e = pool ? pool_lend(&ptr, bytes, pool) : cudaMalloc(&ptr, bytes);
    if (pool && e == cudaErrorMemoryAllocation) { /* all that is not lent goes back first */
        cudaGetLastError();
        CU(cudaMemPoolTrimTo(pool, 0));
        e = pool_lend(&ptr, bytes, pool);
    }
    CU(e);
    *out = ptr;
    return OK;
}

/* The caller's streams may still use it: those of a pool are not waited for by themselves. */
extern "C" void gpu_mem_close(void **ptr) {
    if (*ptr) {
        bool lost = cudaDeviceSynchronize() != cudaSuccess;
        if (cudaFree(*ptr) != cudaSuccess || lost) {
            cudaGetLastError();
        }
    }
    *ptr = nullptr;
}

extern "C" enum err gpu_pinned_open(void **out, size_t bytes) {
    void *ptr = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(ptr != MAP_FAILED, E_LIMIT, "no host memory for %zu bytes to be page-locked", bytes);
    madvise(ptr, bytes, MADV_HUGEPAGE); /* a wish: 4 KiB pages work too */
    for (size_t i = 0; i < bytes; i += 4096) {
        ((volatile char *)ptr)[i] = 0;
    }
    cudaError_t e = cudaHostRegister(ptr, bytes, cudaHostRegisterDefault);
    if (e != cudaSuccess) {
        munmap(ptr, bytes);
        return gpu_fail(
            e, "cudaHostRegister (page-locking host memory; see ulimit -l and the cgroup limit)");
    }
    *out = ptr;
    return OK;
}

extern "C" void gpu_pinned_close(void **ptr, size_t bytes) {
    if (*ptr) {
        if (cudaHostUnregister(*ptr) != cudaSuccess) {
            cudaGetLastError();
        }
        munmap(*ptr, bytes);
    }
    *ptr = nullptr;
}

extern "C" enum err gpu_pin(void *host, size_t bytes) {
    CU(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
    return OK;
}

extern "C" void gpu_unpin(void *host) {
    if (cudaHostUnregister(host) != cudaSuccess) {
        cudaGetLastError();
    }
}

extern "C" bool gpu_pinned_is(const void *host) {
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, host) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    return attributes.type == cudaMemoryTypeHost;
}
