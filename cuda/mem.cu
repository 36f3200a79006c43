/* Memory of the device, and host memory that its copy engines read directly: the only door to either.
 *
 * Locking walks every page, so what is locked is locked once. Ordinary pages, touched and then registered, cost 118 ms a
 * GiB, with huge pages 47; asking the driver to allocate locked memory costs 575 to 755.
 */
#include "cuda/check.cuh"

#include <sys/mman.h>

extern "C" enum err gpu_memory_free(uint64_t *bytes) {
    size_t left, total;
    CU(cudaMemGetInfo(&left, &total));
    *bytes = left;
    return OK;
}

extern "C" enum err gpu_mem_open(void **out, size_t bytes) {
    void *ptr = nullptr;
    CU(cudaMalloc(&ptr, bytes));
    *out = ptr;
    return OK;
}

extern "C" void gpu_mem_close(void **ptr) {
    if (*ptr && cudaFree(*ptr) != cudaSuccess) {
        cudaGetLastError();
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
