/* One mapping and a table of lent blocks in the order of their places. A block goes into the first gap that holds it: bodies leave in nearly
 * the order in which they came, so gaps stay few, and the table is as short as the jobs in hand.
 *
 * Huge pages make the chain of mapping, touching and locking 2.5 times as fast as small ones; the kernel is asked, and small pages work too.
 * Locking behind the touching threads, at the same time, was tried and brought nothing (1.5 GiB on an H200's host: 74 to 95 ms one after the other,
 * 80 to 95 together).
 * The mapping begins at a multiple of their size. Pages are bound to a memory node before they are touched, as a wish: a node that is full
 * is no reason to end.
 */
#include "node/staging/pinned.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "node/base/cgroup.h"
#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"
#include "node/base/numa.h"
#include "node/base/pool.h"

enum { HUGE_PAGE = 2 << 20, PAGE = 4096 };
static const size_t TOUCH_PIECE = 16u << 20;

struct pinned {
    uint8_t *base; /* owned: mapped_bytes from `mapped` on hold it */
    void *mapped;
    size_t mapped_bytes, bytes;
    struct pinned_options options;
    struct pinned_start start;
    bool locked;
    struct lock lock;
    struct pinned_block lent[PINNED_BLOCKS_MAX]; /* [lock] by place */
    size_t lent_count;                           /* [lock] */
    size_t used_bytes;                           /* [lock] */
};

static size_t round_up(size_t bytes, size_t grain) {
    return (bytes + grain - 1) / grain * grain;
}

void pinned_close(struct pinned **pinned) {
    struct pinned *p = *pinned;
    if (!p) {
        return;
    }
    ASSERT(p->lent_count == 0);
    if (p->locked) {
        p->options.unlock(p->options.ctx, p->base, p->bytes);
    }
    if (p->mapped) {
        munmap(p->mapped, p->mapped_bytes);
    }
    lock_done(&p->lock);
    mem_free_ptr(pinned);
}

static enum err map(struct pinned *p) {
    p->bytes = round_up(p->options.bytes, p->options.bytes < HUGE_PAGE ? PAGE : HUGE_PAGE);
    p->mapped_bytes = p->bytes + HUGE_PAGE;
    void *ptr = mmap(NULL, p->mapped_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(ptr != MAP_FAILED, E_DEVICE,
            "no %zu MiB of address space for staging; the option is --staging", p->bytes >> 20);
    p->mapped = ptr;
    p->base = (uint8_t *)round_up((size_t)ptr, HUGE_PAGE);
    madvise(p->base, p->bytes, MADV_HUGEPAGE);
    return OK;
}

static void touch_piece(void *ctx, size_t idx, unsigned worker_idx) {
    struct pinned *p = ctx;
    size_t from = idx * TOUCH_PIECE,
           to = p->bytes - from < TOUCH_PIECE ? p->bytes : from + TOUCH_PIECE;
    (void)worker_idx;
    for (size_t at = from; at < to; at += PAGE) {
        ((volatile uint8_t *)p->base)[at] = 0;
    }
}

static enum err touch(struct pinned *p) {
    AUTO(pool_close) struct pool *pool = NULL;
    uint64_t start_ns = clock_ns();
    TRY(pool_open(&pool, p->options.threads));
    pool_for(pool, (p->bytes + TOUCH_PIECE - 1) / TOUCH_PIECE, touch_piece, p);
    p->start.touch_ns = clock_ns() - start_ns;
    return OK;
}

static void write_limit(char *out, size_t out_bytes) {
    struct rlimit limit = {0};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        snprintf(out, out_bytes, "unlimited");
    } else {
        snprintf(out, out_bytes, "%llu KiB", (unsigned long long)limit.rlim_cur >> 10);
    }
}

static enum err lock_pages(struct pinned *p) {
    char cause[ERR_DETAIL_BYTES], limit[40];
    uint64_t start_ns = clock_ns();
    if (p->options.lock(p->options.ctx, p->base, p->bytes) != OK) {
        snprintf(cause, sizeof cause, "%.300s", err_detail());
        write_limit(limit, sizeof limit);
        FAIL(E_DEVICE,
             "%zu MiB for staging cannot be page-locked: %s. Locked memory (ulimit -l): %s; memory "
             "of the control group: %llu MiB. Raise the limit or set a smaller --staging",
             p->bytes >> 20, cause, limit, (unsigned long long)cgroup_memory_bytes() >> 20);
    }
    p->locked = true;
    p->start.lock_ns = clock_ns() - start_ns;
    return OK;
}

enum err pinned_open(struct pinned **out, const struct pinned_options *options) {
    AUTO(pinned_close) struct pinned *p = NULL;
    TRY(mem_new(&p, 1, sizeof *p));
    lock_init(&p->lock, LOCK_STAGING);
    p->options = *options;
    ASSERT(options->bytes > 0);
    TRY(map(p));
    numa_prefer(p->base, p->bytes, p->options.numa_node);
    if (options->lock) {
        REQUIRE(p->bytes <= cgroup_memory_bytes(), E_DEVICE,
                "staging wants %zu MiB of page-locked memory, the control group or the machine has "
                "%llu MiB; set a smaller --staging",
                p->bytes >> 20, (unsigned long long)cgroup_memory_bytes() >> 20);
        TRY(touch(p));
        TRY(lock_pages(p));
    }
    *out = TAKE(p);
    return OK;
}

enum err pinned_take(struct pinned_block *out, struct pinned *p, size_t bytes) {
    size_t want = round_up(bytes ? bytes : 1, PINNED_GRAIN_BYTES), at = 0, idx = 0;
    REQUIRE(bytes <= p->bytes, E_RANGE, "%zu bytes of staging, there are %zu", bytes, p->bytes);
    LOCK_SCOPE(&p->lock);
    for (; idx < p->lent_count; idx++) {
        size_t begin = (size_t)(p->lent[idx].ptr - p->base);
        if (begin - at >= want) {
            break;
        }
        at = begin + round_up(p->lent[idx].bytes, PINNED_GRAIN_BYTES);
    }
    REQUIRE(p->bytes - at >= want && p->lent_count < PINNED_BLOCKS_MAX, E_LIMIT,
            "no room for %zu bytes of staging: %zu of %zu are lent", bytes, p->used_bytes,
            p->bytes);
    memmove(&p->lent[idx + 1], &p->lent[idx], (p->lent_count - idx) * sizeof *p->lent);
    p->lent[idx] = (struct pinned_block){p->base + at, bytes ? bytes : 1};
    p->lent_count++;
    p->used_bytes += want;
    *out = p->lent[idx];
    return OK;
}

void pinned_give(struct pinned *p, struct pinned_block *block) {
    if (!block->ptr) {
        return;
    }
    mem_wipe(block->ptr, block->bytes);
    LOCK_SCOPE(&p->lock);
    size_t idx = 0;
    while (idx < p->lent_count && p->lent[idx].ptr != block->ptr) {
        idx++;
    }
    ASSERT(idx < p->lent_count && p->lent[idx].bytes == block->bytes);
    memmove(&p->lent[idx], &p->lent[idx + 1], (p->lent_count - idx - 1) * sizeof *p->lent);
    p->lent_count--;
    p->used_bytes -= round_up(block->bytes, PINNED_GRAIN_BYTES);
    *block = (struct pinned_block){0};
}

size_t pinned_bytes(const struct pinned *p) {
    return p->bytes;
}

size_t pinned_used_bytes(struct pinned *p) {
    LOCK_SCOPE(&p->lock);
    return p->used_bytes;
}

struct pinned_start pinned_start_of(const struct pinned *p) {
    return p->start;
}
