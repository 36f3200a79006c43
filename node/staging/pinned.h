/* Pinned arena: the memory that bodies are decoded into, taken once at start and lent in blocks.
 *
 * Copy engines read host memory directly only where its pages are locked, and locking walks every page (27 to 54 ms a GiB, and the
 * driver's own way ten times as long). So a lane maps at start all that it will ever stage in, touches it with all its threads, has the
 * backend lock it, and lends blocks of it: free room is the credit on which bodies are fetched. Nothing here grows, and nothing
 * on a job's path allocates. A backend without copy engines gets the same arena of ordinary pages, which cost nothing until they are used.
 *
 * Owner    the lane; all blocks are back before pinned_close.
 * Threads  any, under a lock of rank STAGING that is held for nanoseconds.
 * Units    bytes. Blocks are contiguous, aligned to PINNED_GRAIN_BYTES, of any size.
 * Errors   pinned_open: E_DEVICE when the memory cannot be had or locked, with the limits that may be the reason and the option.
 *          pinned_take: E_RANGE for more than the arena ever has, E_LIMIT while there is no room. Never waits.
 * Secrets  a block is wiped when it comes back.
 */
#pragma once
#include "node/base/err.h"

enum { PINNED_GRAIN_BYTES = 4096, PINNED_BLOCKS_MAX = 512 };

struct pinned;
struct pinned_block { /* lent: the arena owns the memory */
    uint8_t *ptr;     /* NULL: none */
    size_t bytes;
};

struct pinned_options {
    size_t bytes;     /* rounded up to huge pages, less than one of them to small ones */
    unsigned threads; /* that touch it; 0: all usable cores */
    int numa_node;    /* where it should lie; negative: anywhere */
    /* Locks pages for the copy engines; NULL: nobody asks for that. */
    enum err (*lock)(void *ctx, void *ptr, size_t bytes);
    void (*unlock)(void *ctx, void *ptr, size_t bytes);
    void *ctx;
};
FALLIBLE pinned_open(struct pinned **out, const struct pinned_options *options);
void pinned_close(struct pinned **p);

/* *out is untouched unless OK. */
FALLIBLE pinned_take(struct pinned_block *out, struct pinned *p, size_t bytes);
/* Clears *block. Fine on one that holds nothing. */
void pinned_give(struct pinned *p, struct pinned_block *block);

size_t pinned_bytes(const struct pinned *p);
size_t pinned_used_bytes(struct pinned *p); /* lent now */
struct pinned_start {
    uint64_t touch_ns, lock_ns; /* what opening took; 0 where nothing was locked */
};
struct pinned_start pinned_start_of(const struct pinned *p);
