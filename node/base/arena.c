/* A cursor in a block. Under AddressSanitizer what is behind the cursor is poisoned, so that a use after a rewind is
 * caught there; debug builds fill it with a pattern instead.
 */
#include "node/base/arena.h"

#include <string.h>

#include "node/base/mem.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#endif

enum { ALIGN_BYTES = 64 };

struct arena {
    struct bytes_mut memory; /* owned or lent */
    bool owned;
    size_t used_bytes, peak_bytes;
};

static void close_off(uint8_t *from, size_t len) {
#if defined(ARENA_ASAN)
    ASAN_POISON_MEMORY_REGION(from, len);
#elif defined(BELLOWS_DEBUG)
    memset(from, 0xa5, len);
#else
    (void)from, (void)len;
#endif
}

static void open_up(uint8_t *from, size_t len) {
#if defined(ARENA_ASAN)
    ASAN_UNPOISON_MEMORY_REGION(from, len);
#else
    (void)from, (void)len;
#endif
}

enum err arena_new_over(struct arena **out, struct bytes_mut memory) {
    ASSERT((uintptr_t)memory.ptr % ALIGN_BYTES == 0);
    struct arena *a;
    TRY(mem_new(&a, 1, sizeof *a));
    a->memory = memory;
    close_off(memory.ptr, memory.len);
    *out = a;
    return OK;
}

enum err arena_new(struct arena **out, size_t bytes) {
    uint8_t *block;
    TRY(mem_new_raw(&block, bytes, 1));
    enum err code = arena_new_over(out, (struct bytes_mut){block, bytes});
    if (code != OK) {
        mem_free(block);
        return code;
    }
    (*out)->owned = true;
    return OK;
}

void arena_free(struct arena **address) {
    struct arena *a = *address;
    if (!a) {
        return;
    }
    open_up(a->memory.ptr, a->memory.len);
    if (a->owned) {
        mem_free(a->memory.ptr);
    }
    mem_free_ptr(address);
}

enum err arena_take(void *out, struct arena *a, size_t count, size_t size) {
    size_t bytes, padded;
    TRY(size_mul(&bytes, count, size));
    TRY(size_add(&padded, bytes, ALIGN_BYTES - 1));
    padded &= ~(size_t)(ALIGN_BYTES - 1);
    size_t left = arena_left_bytes(a);
    REQUIRE(bytes <= left, E_LIMIT, "scratch arena: %zu bytes wanted, %zu of %zu left", bytes, left,
            a->memory.len);
    padded = padded < left ? padded : left; /* the last piece may end where the block ends */
    uint8_t *piece = a->memory.ptr + a->used_bytes;
    open_up(piece, bytes);
    a->used_bytes += padded;
    a->peak_bytes = a->used_bytes > a->peak_bytes ? a->used_bytes : a->peak_bytes;
    memcpy(out, &piece, sizeof piece);
    return OK;
}

struct arena_mark arena_mark(const struct arena *a) {
    return (struct arena_mark){a->used_bytes};
}

void arena_rewind(struct arena *a, struct arena_mark to) {
    ASSERT(to.used_bytes <= a->used_bytes);
    close_off(a->memory.ptr + to.used_bytes, a->used_bytes - to.used_bytes);
    a->used_bytes = to.used_bytes;
}

void arena_wipe(struct arena *a) {
    open_up(a->memory.ptr, a->peak_bytes);
    mem_wipe(a->memory.ptr, a->peak_bytes);
    close_off(a->memory.ptr, a->peak_bytes);
    a->used_bytes = 0;
}

size_t arena_left_bytes(const struct arena *a) {
    return a->memory.len - a->used_bytes;
}

size_t arena_peak_bytes(const struct arena *a) {
    return a->peak_bytes;
}
