/* One mapping and a table of lent blocks in the order of their places. A block goes into the first gap that holds it: bodies leave in nearly
 * the order in which they came, so gaps stay few, and the table is as short as the jobs in hand.
 *
 * Huge pages make the chain of mapping, touching and locking 2.5 times as fast as small ones; the kernel is asked, and small pages work too.
 * Locking walks the pages one by one and touching them fills them with all threads, each about 40 ms a GiB; so locking begins when an eighth has
 * been touched, and follows behind. Where it should catch up, it touches pages itself.
 * The mapping begins at a multiple of their size. Pages are bound to a memory node before they are touched, as a wish: a node that is full
 * is no reason to end.
 */
#include "node/staging/pinned.h"

#include <pthread.h>
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
enum { HEAD_START = 8 }; /* the part of the pages that is touched before locking begins */

struct pinned {
    uint8_t *base; /* owned: mapped_bytes from `mapped` on hold it */
    void *mapped;
    size_t mapped_bytes, bytes;
    struct pinned_options options;
    struct pinned_start start;
    bool locked;
    struct pool *pool; /* owned while it is opened: touches */
    pthread_t toucher;
    struct lock lock;
    struct condition touched;
    size_t pieces_count, pieces_touched;         /* [lock] the latter */
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
    condition_done(&p->touched);
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
    LOCK_SCOPE(&p->lock);
    if (++p->pieces_touched == p->pieces_count / HEAD_START) {
        condition_wake_all(&p->touched);
    }
}

static void *touch_main(void *ctx) {
    struct pinned *p = ctx;
    uint64_t start_ns = clock_ns();
    pool_for(p->pool, p->pieces_count, touch_piece, p);
    p->start.touch_ns = clock_ns() - start_ns;
    return NULL;
}

/* Returns when locking may begin. */
static enum err begin_touching(struct pinned *p) {
    p->pieces_count = (p->bytes + TOUCH_PIECE - 1) / TOUCH_PIECE;
    TRY(pool_open(&p->pool, p->options.threads));
    int rc = pthread_create(&p->toucher, NULL, touch_main, p);
    if (rc != 0) {
        pool_close(&p->pool);
        FAIL(E_LIMIT, "no thread to touch staging with: %s", strerror(rc));
    }
    LOCK_SCOPE(&p->lock);
    while (p->pieces_touched < p->pieces_count / HEAD_START) {
        condition_wait(&p->touched, &p->lock);
    }
    return OK;
}

static void end_touching(struct pinned *p) {
    pthread_join(p->toucher, NULL);
    pool_close(&p->pool);
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
    condition_init(&p->touched);
    p->options = *options;
    ASSERT(options->bytes > 0);
    TRY(map(p));
    numa_prefer(p->base, p->bytes, p->options.numa_node);
    if (options->lock) {
        REQUIRE(p->bytes <= cgroup_memory_bytes(), E_DEVICE,
                "staging wants %zu MiB of page-locked memory, the control group or the machine has "
                "%llu MiB; set a smaller --staging",
                p->bytes >> 20, (unsigned long long)cgroup_memory_bytes() >> 20);
        uint64_t start_ns = clock_ns();
        TRY(begin_touching(p));
        struct fault fault = fault_of(lock_pages(p));
        end_touching(p);
        TRY(fault.code == OK ? OK : fault_raise(&fault));
        p->start.both_ns = clock_ns() - start_ns;
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
