/* Every block of the heap passes here, is counted, and can be made to fail.
 *
 * mimalloc keeps threads from contending and returns large blocks aligned. The C library's heap takes its place
 * under sanitizers, which cannot see inside mimalloc. Blocks are aligned to a cache line, because field elements and
 * vector loads live in them.
 */
#include "node/base/mem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#ifdef BELLOWS_MIMALLOC
#include <mimalloc.h>
#endif

#include "node/base/clock.h"

enum { ALIGN_BYTES = 64, TIMED_BYTES = 64 * 1024 };

static atomic_long blocks_live;
static _Atomic uint64_t work_ns; /* [atomic] in the heap, for blocks of TIMED_BYTES and more */
static atomic_long fail_in =
    -1; /* [atomic] allocations that still succeed; negative: injection is off */

void mem_fail_after(long n) {
    atomic_store(&fail_in, n);
}

bool mem_fail_pending(void) {
    return atomic_load(&fail_in) >= 0;
}

long mem_live_blocks(void) {
    return atomic_load(&blocks_live);
}

static bool injected(void) {
    if (__builtin_expect(atomic_load_explicit(&fail_in, memory_order_relaxed) < 0, 1)) {
        return false;
    }
    return atomic_fetch_sub(&fail_in, 1) == 0;
}

static void *counted(void *block) {
    if (block) {
        atomic_fetch_add_explicit(&blocks_live, 1, memory_order_relaxed);
    }
    return block;
}

/* The three calls of whichever heap it is. */
static void *heap_alloc(size_t bytes) {
#ifdef BELLOWS_MIMALLOC
    return mi_malloc_aligned(bytes, ALIGN_BYTES);
#else
    void *block;
    return posix_memalign(&block, ALIGN_BYTES, bytes) ? NULL : block;
#endif
}

static void *heap_grow(void *old, size_t bytes) {
#ifdef BELLOWS_MIMALLOC
    return mi_realloc_aligned(old, bytes, ALIGN_BYTES);
#else
    return realloc(old, bytes);
#endif
}

static void heap_free(void *block) {
#ifdef BELLOWS_MIMALLOC
    mi_free(block);
#else
    free(block);
#endif
}

/* Small blocks are not timed: two readings of the clock cost more than they do. */
static uint64_t begin_work(size_t bytes) {
    return bytes >= TIMED_BYTES ? clock_ns() : 0;
}

static void *end_work(void *block, size_t bytes, uint64_t start_ns) {
    if (bytes >= TIMED_BYTES) {
        atomic_fetch_add_explicit(&work_ns, clock_ns() - start_ns, memory_order_relaxed);
    }
    return block;
}

uint64_t mem_work_ns(void) {
    return atomic_load(&work_ns);
}

void *mem_alloc(size_t bytes) {
    if (injected() || bytes > PTRDIFF_MAX) {
        return NULL;
    }
    uint64_t start_ns = begin_work(bytes);
    return counted(end_work(heap_alloc(bytes ? bytes : 1), bytes, start_ns));
}

static void *zeroed(size_t bytes) {
#ifdef BELLOWS_MIMALLOC
    return mi_zalloc_aligned(bytes, ALIGN_BYTES);
#else
    void *block = heap_alloc(bytes);
    return block ? memset(block, 0, bytes) : NULL;
#endif
}

void *mem_zero_alloc(size_t count, size_t size) {
    size_t bytes;
    if (injected() || __builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX) {
        return NULL;
    }
    bytes = bytes ? bytes : 1;
    uint64_t start_ns = begin_work(bytes);
    return counted(end_work(zeroed(bytes), bytes, start_ns));
}

void *mem_grow(void *old, size_t bytes) {
    if (!old) {
        return mem_alloc(bytes);
    }
    if (injected() || bytes > PTRDIFF_MAX) {
        return NULL;
    }
    return heap_grow(old, bytes ? bytes : 1);
}

char *mem_strdup(const char *s) {
    size_t bytes = strlen(s) + 1;
    char *copy = mem_alloc(bytes);
    return copy ? memcpy(copy, s, bytes) : NULL;
}

void mem_free(void *ptr) {
    if (ptr) {
        atomic_fetch_sub_explicit(&blocks_live, 1, memory_order_relaxed);
        heap_free(ptr);
    }
}

void mem_free_ptr(void *address_of_pointer) {
    void *ptr;
    memcpy(&ptr, address_of_pointer, sizeof ptr);
    mem_free(ptr);
    memset(address_of_pointer, 0, sizeof ptr);
}

const char *mem_limit(void) {
    static _Thread_local char note[64];
    struct rlimit limit;
    note[0] = '\0';
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        snprintf(note, sizeof note, "; address space (ulimit -v): %llu MiB",
                 (unsigned long long)limit.rlim_cur >> 20);
    }
    return note;
}

enum err mem_new(void *out, size_t count, size_t size) {
    void *block = mem_zero_alloc(count, size);
    REQUIRE(block, E_LIMIT, "out of memory: no room for %zu times %zu bytes%s", count, size,
            mem_limit());
    memcpy(out, &block, sizeof block);
    return OK;
}

enum err mem_new_raw(void *out, size_t count, size_t size) {
    size_t bytes;
    void *block = __builtin_mul_overflow(count, size, &bytes) ? NULL : mem_alloc(bytes);
    REQUIRE(block, E_LIMIT, "out of memory: no room for %zu times %zu bytes%s", count, size,
            mem_limit());
    memcpy(out, &block, sizeof block);
    return OK;
}

void mem_wipe(void *ptr, size_t len) {
    if (len > 0) {
        explicit_bzero(ptr, len);
    }
}
