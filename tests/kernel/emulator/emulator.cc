/* The emulator's machine: fibers for a block's threads, host memory for the device's.
 *
 * One scheduler context and up to 1024 fibers with stacks of their own, made once. A fiber runs until its thread ends or
 * parks. A warp whose living threads have all parked at a warp operation goes on; a block whose living threads have all
 * parked at the barrier goes on; when neither is so and nobody runs, threads wait for each other for ever.
 */
#include "cuda_runtime.h"

#include <chrono>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

dim3 threadIdx, blockIdx, blockDim, gridDim;

enum state { RUNS, AT_BARRIER, AT_WARP, ENDED };
static const size_t stack_bytes = 512 << 10;
static const unsigned fibers_max = 1024;

struct fiber {
    ucontext_t context;
    jmp_buf jump;
    char *stack;
    enum state state;
    bool begun;
    uint32_t deposit;
};
static struct fiber fibers[fibers_max];
static uint32_t snapshots[fibers_max / 32][32], presents[fibers_max / 32];
static ucontext_t scheduler;
static jmp_buf scheduler_jump;
static unsigned now;
static emulator_thread *thread_run;
static void *thread_ctx;
static uint64_t launches;
static cudaError_t broken; /* for good, once it is set */
static std::mutex machine; /* one launch at a time, whoever launches */

/* A context is entered once by swapcontext; after that jumps do, which cost no system call. The address sanitizer has to
 * be told of every change of stacks, and wants to see swapcontext. */
#ifdef __SANITIZE_ADDRESS__
static void *fake_stacks[fibers_max], *scheduler_fake_stack;
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;

static void to_scheduler() {
    unsigned me = now;
    __sanitizer_start_switch_fiber(&fake_stacks[me], scheduler_stack, scheduler_stack_bytes);
    swapcontext(&fibers[me].context, &scheduler);
    __sanitizer_finish_switch_fiber(fake_stacks[me], nullptr, nullptr);
}

static void enter(struct fiber *f) {
    __sanitizer_start_switch_fiber(&scheduler_fake_stack, f->stack, stack_bytes);
    swapcontext(&scheduler, &f->context);
    __sanitizer_finish_switch_fiber(scheduler_fake_stack, nullptr, nullptr);
}
#else
static void to_scheduler() {
    if (!_setjmp(fibers[now].jump)) {
        _longjmp(scheduler_jump, 1);
    }
}

static void enter(struct fiber *f) {
    if (!_setjmp(scheduler_jump)) {
        if (f->begun) {
            _longjmp(f->jump, 1);
        }
        f->begun = true;
        swapcontext(&scheduler, &f->context);
    }
}
#endif

static void fiber_main() {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
    for (;;) {
        thread_run(thread_ctx);
        fibers[now].state = ENDED;
        to_scheduler();
    }
}

static void fiber_make(struct fiber *f) {
    f->stack = (char *)mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->stack == MAP_FAILED) {
        fprintf(stderr, "emulator: no memory for a thread's stack\n");
        abort();
    }
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = stack_bytes;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fiber_main, 0);
}

static void go(unsigned i) {
    now = i;
    threadIdx = dim3(i);
    enter(&fibers[i]);
}

void emulator_block_barrier() {
    fibers[now].state = AT_BARRIER;
    to_scheduler();
}

const uint32_t *emulator_warp_exchange(uint32_t value, uint32_t *present) {
    unsigned me = now;
    fibers[me].deposit = value;
    fibers[me].state = AT_WARP;
    to_scheduler();
    *present = presents[me / 32];
    return snapshots[me / 32];
}

/* Lets a warp go on when all its living threads have arrived. */
static bool release_warp(unsigned warp, unsigned threads) {
    unsigned from = warp * 32, to = from + 32 < threads ? from + 32 : threads, arrived = 0;
    uint32_t present = 0;
    for (unsigned i = from; i < to; i++) {
        if (fibers[i].state == RUNS || fibers[i].state == AT_BARRIER) {
            return false;
        }
        if (fibers[i].state == AT_WARP) {
            arrived++;
            present |= 1u << (i - from);
            snapshots[warp][i - from] = fibers[i].deposit;
        }
    }
    if (!arrived) {
        return false;
    }
    presents[warp] = present;
    for (unsigned i = from; i < to; i++) {
        fibers[i].state = fibers[i].state == AT_WARP ? RUNS : fibers[i].state;
    }
    return true;
}

static bool release_block(unsigned threads) {
    unsigned arrived = 0;
    for (unsigned i = 0; i < threads; i++) {
        if (fibers[i].state == AT_WARP) {
            return false;
        }
        arrived += fibers[i].state == AT_BARRIER;
    }
    for (unsigned i = 0; i < threads; i++) {
        fibers[i].state = fibers[i].state == AT_BARRIER ? RUNS : fibers[i].state;
    }
    return arrived > 0;
}

static void run_block(unsigned threads, bool downwards) {
    for (unsigned i = 0; i < threads; i++) {
        fibers[i].state = RUNS;
    }
    for (;;) {
        for (unsigned k = 0; k < threads; k++) {
            unsigned i = downwards ? threads - 1 - k : k;
            if (fibers[i].state == RUNS) {
                go(i);
            }
        }
        bool more = false, living = false;
        for (unsigned w = 0; w < (threads + 31) / 32; w++) {
            more |= release_warp(w, threads);
        }
        more = more || release_block(threads);
        for (unsigned i = 0; i < threads; i++) {
            living |= fibers[i].state != ENDED;
        }
        if (!living) {
            return;
        }
        if (!more) {
            fprintf(stderr, "emulator: threads of block %u wait for each other for ever\n",
                    blockIdx.x);
            abort();
        }
    }
}

cudaError_t emulator_run(dim3 grid, dim3 block, emulator_thread *thread, void *ctx) {
    unsigned threads = block.x * block.y * block.z;
    if (!threads || threads > fibers_max || !grid.x || grid.y != 1 || grid.z != 1) {
        return cudaErrorInvalidValue;
    }
    std::lock_guard<std::mutex> turn(machine);
    for (unsigned i = 0; i < threads; i++) {
        if (!fibers[i].stack) {
            fiber_make(&fibers[i]);
        }
    }
    const char *fault = getenv("EMULATOR_FAULT");
    if (!broken && fault && unlink(fault) == 0) {
        broken = cudaErrorIllegalAddress;
    }
    if (broken) {
        return broken;
    }
    thread_run = thread;
    thread_ctx = ctx;
    blockDim = block;
    gridDim = grid;
    launches++;
    for (unsigned b = 0; b < grid.x; b++) {
        blockIdx = dim3(b);
        run_block(threads, (b + launches) & 1);
    }
    return cudaSuccess;
}

/* --- the runtime --- */
struct emulator_event {
    double ms;
};
struct emulator_stream {
    int unused;
};
static size_t memory_used;
static const size_t memory_total = (size_t)4 << 30;

static double clock_ms() {
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
const char *cudaGetErrorName(cudaError_t e) {
    return e ? "cudaErrorEmulated" : "cudaSuccess";
}
const char *cudaGetErrorString(cudaError_t e) {
    return e ? "refused by the emulator" : "no error";
}
cudaError_t cudaGetLastError() {
    return broken;
}
/* $EMULATOR_DEVICES devices, which differ in the last digit of their UUID; 1 when it is not set. */
cudaError_t cudaGetDeviceCount(int *count) {
    const char *wanted = getenv("EMULATOR_DEVICES");
    *count = wanted ? atoi(wanted) : 1;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device) {
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "emulator");
    memcpy(out->uuid.bytes, "emulated-device.", 16);
    out->uuid.bytes[15] = (char)device;
    out->totalGlobalMem = memory_total;
    out->multiProcessorCount = 2;
    out->major = 9;
    out->l2CacheSize = 1 << 20;
    int count = 0;
    cudaGetDeviceCount(&count);
    return device >= 0 && device < count ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaSetDevice(int device) {
    cudaDeviceProp prop;
    return cudaGetDeviceProperties(&prop, device);
}
cudaError_t cudaDriverGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
    *left = memory_total - memory_used;
    *total = memory_total;
    return cudaSuccess;
}
/* Memory comes poisoned, so that a word nobody wrote is never zero by luck. */
cudaError_t cudaMalloc(void **out, size_t bytes) {
    std::lock_guard<std::mutex> turn(machine);
    if (broken) {
        return broken;
    }
    if (bytes > memory_total - memory_used) {
        return cudaErrorMemoryAllocation;
    }
    size_t *block = (size_t *)aligned_alloc(256, (bytes + 511) & ~(size_t)255);
    if (!block) {
        return cudaErrorMemoryAllocation;
    }
    block[0] = bytes;
    memset((char *)block + 256, 0xa5, bytes);
    memory_used += bytes;
    *out = (char *)block + 256;
    return cudaSuccess;
}
cudaError_t cudaFree(void *ptr) {
    std::lock_guard<std::mutex> turn(machine);
    if (ptr) {
        size_t *block = (size_t *)((char *)ptr - 256);
        memory_used -= block[0];
        free(block);
    }
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int) {
    *value = attribute == cudaDevAttrMemoryPoolsSupported;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
    return broken;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int) {
    static char pool;
    *out = (cudaMemPool_t)(void *)&pool;
    return broken;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, int, void *) {
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, int, void *value) {
    *(uint64_t *)value = 0;
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) {
    return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t, cudaStream_t) {
    return cudaMalloc(out, bytes);
}
cudaError_t cudaHostRegister(void *, size_t, unsigned) {
    return cudaSuccess;
}
cudaError_t cudaHostUnregister(void *) {
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *) {
    out->type = cudaMemoryTypeUnregistered;
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int, cudaStream_t) {
    memcpy(dst, src, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t) {
    memset(dst, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned) {
    *out = new emulator_stream();
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    delete s;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return broken;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned) {
    *out = new emulator_event();
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    delete e;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t) {
    e->ms = clock_ms();
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
    return broken;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    *ms = (float)(to->ms - from->ms);
    return cudaSuccess;
}
