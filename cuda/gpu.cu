/* The device, its streams and copies: the runtime's calls behind C functions.
 *
 * One table turns the driver's errors into ours. An error that stays with the context (a fault inside a kernel, a
 * hardware error) is E_DEVICE_LOST: every later call would fail too, so the lane's process must end and be started anew.
 */
#include "cuda/check.cuh"

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct error_case {
    cudaError_t error;
    enum err code;
    const char *cure;
};
static const struct error_case error_cases[] = {
    {cudaErrorMemoryAllocation, E_LIMIT,
     "free device memory, or set a smaller --device-memory-max"},
    {cudaErrorInitializationError, E_DEVICE, "the driver did not start; run nvidia-smi"},
    {cudaErrorInsufficientDriver, E_DEVICE,
     "the driver is missing or older than this build: install it"},
    {cudaErrorNoDevice, E_DEVICE,
     "no NVIDIA GPU is visible; check nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {cudaErrorNoKernelImageForDevice, E_DEVICE,
     "built for other GPUs; build with -Dgpu_archs for this one"},
    {cudaErrorUnsupportedPtxVersion, E_DEVICE, "the driver is older than the toolkit of the build"},
    {cudaErrorECCUncorrectable, E_DEVICE_LOST, "the memory of the GPU is failing"},
    {cudaErrorIllegalAddress, E_DEVICE_LOST, "restart the process"},
    {cudaErrorLaunchTimeout, E_DEVICE_LOST, "restart the process"},
    {cudaErrorAssert, E_DEVICE_LOST, "restart the process"},
    {cudaErrorHardwareStackError, E_DEVICE_LOST, "restart the process"},
    {cudaErrorIllegalInstruction, E_DEVICE_LOST, "restart the process"},
    {cudaErrorMisalignedAddress, E_DEVICE_LOST, "restart the process"},
    {cudaErrorInvalidAddressSpace, E_DEVICE_LOST, "restart the process"},
    {cudaErrorInvalidPc, E_DEVICE_LOST, "restart the process"},
    {cudaErrorLaunchFailure, E_DEVICE_LOST, "restart the process"},
    {cudaErrorUnknown, E_DEVICE_LOST, "restart the process; if it stays, the machine"},
};

extern "C" enum err gpu_fail(cudaError_t e, const char *what) {
    cudaGetLastError(); /* the runtime's own copy, so that it is not reported twice */
    for (const error_case &c : error_cases) {
        if (c.error == e) {
            return err_set(c.code, "GPU: %s (%s) at %s: %s", cudaGetErrorString(e),
                           cudaGetErrorName(e), what, c.cure);
        }
    }
    return err_set(E_DEVICE, "GPU: %s (%s) at %s", cudaGetErrorString(e), cudaGetErrorName(e),
                   what);
}

extern "C" enum err gpu_count(int *out) {
    int count = 0;
    CU(cudaGetDeviceCount(&count));
    REQUIRE(count > 0, E_DEVICE,
            "no NVIDIA GPU is visible; check nvidia-smi and CUDA_VISIBLE_DEVICES");
    *out = count;
    return OK;
}

extern "C" enum err gpu_describe(struct gpu_device *out, int idx) {
    cudaDeviceProp prop;
    CU(cudaGetDeviceProperties(&prop, idx));
    struct gpu_device d;
    memset(&d, 0, sizeof d);
    d.idx = idx;
    snprintf(d.name, sizeof d.name, "%.*s", GPU_NAME_BYTES - 1, prop.name);
    const unsigned char *u = (const unsigned char *)prop.uuid.bytes;
    snprintf(d.uuid, sizeof d.uuid,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    d.sm_count = (unsigned)prop.multiProcessorCount;
    d.compute_major = (unsigned)prop.major;
    d.compute_minor = (unsigned)prop.minor;
    d.memory_bytes = prop.totalGlobalMem;
    d.l2_bytes = (uint64_t)prop.l2CacheSize;
    int version = 0;
    CU(cudaDriverGetVersion(&version));
    d.driver_version = (unsigned)version;
    CU(cudaRuntimeGetVersion(&version));
    d.runtime_version = (unsigned)version;
    *out = d;
    return OK;
}

static enum err device_find(int *out, int count, const char *which) {
    char *end;
    long idx = strtol(which, &end, 10);
    if (*which >= '0' && *which <= '9' && !*end) {
        REQUIRE(idx < count, E_DEVICE, "there is no GPU %s: this machine shows %d, from 0", which,
                count);
        *out = (int)idx;
        return OK;
    }
    int found = -1;
    for (int i = 0; i < count; i++) {
        struct gpu_device d;
        TRY(gpu_describe(&d, i));
        if (!strncmp(d.uuid, which, strlen(which))) {
            REQUIRE(found < 0, E_DEVICE,
                    "several GPUs have a UUID that begins with %s: give more of it", which);
            found = i;
        }
    }
    REQUIRE(found >= 0, E_DEVICE, "no GPU has a UUID that begins with %s: nvidia-smi -L lists them",
            which);
    *out = found;
    return OK;
}

extern "C" enum err gpu_open(struct gpu_device *out, const char *which) {
    int count, idx = 0;
    TRY(gpu_count(&count));
    if (which) {
        TRY(device_find(&idx, count, which));
    }
    struct gpu_device d;
    TRY(gpu_describe(&d, idx));
    CU(cudaSetDevice(idx));
    size_t left, total;
    CU(cudaMemGetInfo(&left, &total)); /* makes the context, so that a broken device shows here */
    *out = d;
    return OK;
}

extern "C" void gpu_bus_address(char *out, size_t out_bytes, int idx) {
    out[0] = 0;
#ifdef FIELD_EMULATED /* on no bus */
    (void)out_bytes;
    (void)idx;
#else
    if (cudaDeviceGetPCIBusId(out, (int)out_bytes, idx) != cudaSuccess) {
        cudaGetLastError();
        out[0] = 0;
    }
#endif
}

extern "C" enum err gpu_stream_open(struct gpu_stream **out) {
    cudaStream_t s;
    CU(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    *out = (struct gpu_stream *)s;
    return OK;
}

extern "C" void gpu_stream_close(struct gpu_stream **s) {
    if (*s && cudaStreamDestroy(stream_of(*s)) != cudaSuccess) {
        cudaGetLastError();
    }
    *s = nullptr;
}

extern "C" enum err gpu_stream_wait(struct gpu_stream *s) {
    CU(cudaStreamSynchronize(stream_of(s)));
    return OK;
}

extern "C" enum err gpu_event_open(struct gpu_event **out) {
    cudaEvent_t e;
    CU(cudaEventCreateWithFlags(&e, cudaEventDefault));
    *out = (struct gpu_event *)e;
    return OK;
}

extern "C" void gpu_event_close(struct gpu_event **e) {
    if (*e && cudaEventDestroy((cudaEvent_t)*e) != cudaSuccess) {
        cudaGetLastError();
    }
    *e = nullptr;
}

extern "C" enum err gpu_event_record(struct gpu_event *e, struct gpu_stream *s) {
    CU(cudaEventRecord((cudaEvent_t)e, stream_of(s)));
    return OK;
}

extern "C" enum err gpu_event_wait(struct gpu_event *e) {
    CU(cudaEventSynchronize((cudaEvent_t)e));
    return OK;
}

extern "C" enum err gpu_stream_after(struct gpu_stream *s, struct gpu_event *e) {
    CU(cudaStreamWaitEvent(stream_of(s), (cudaEvent_t)e, 0));
    return OK;
}

extern "C" enum err gpu_event_ns(uint64_t *out, struct gpu_event *from, struct gpu_event *to) {
    float ms;
    CU(cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to));
    *out = (uint64_t)((double)ms * 1e6);
    return OK;
}

extern "C" enum err gpu_upload(void *device, const void *host, size_t bytes, struct gpu_stream *s) {
    CU(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_of(s)));
    return OK;
}

extern "C" enum err gpu_download(void *host, const void *device, size_t bytes,
                                 struct gpu_stream *s) {
    CU(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_of(s)));
    return OK;
}

extern "C" enum err gpu_copy(void *device, const void *source, size_t bytes, struct gpu_stream *s) {
    CU(cudaMemcpyAsync(device, source, bytes, cudaMemcpyDeviceToDevice, stream_of(s)));
    return OK;
}

extern "C" enum err gpu_fill(void *device, int byte, size_t bytes, struct gpu_stream *s) {
    CU(cudaMemsetAsync(device, byte, bytes, stream_of(s)));
    return OK;
}
