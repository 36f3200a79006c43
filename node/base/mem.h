/* The heap, and the only door to it (mimalloc; the C library's under sanitizers).
 *
 * A test greps for malloc elsewhere. Allocation failure can be injected, so that every path that allocates is
 * shown to survive it.
 *
 * Threads  any.
 * Errors   NULL from the plain forms, E_LIMIT with the size from the FALLIBLE ones.
 */
#pragma once
#include "node/base/err.h"

void *mem_alloc(size_t bytes); /* aligned to 64 bytes, not zeroed; NULL on failure */
void *mem_zero_alloc(size_t count, size_t size); /* zeroed, overflow-checked; NULL on failure */
void *mem_grow(void *old, size_t bytes);         /* like realloc; on failure NULL and `old` stays */
char *mem_strdup(const char *s);
void mem_free(void *ptr);                    /* NULL is fine */
void mem_free_ptr(void *address_of_pointer); /* for AUTO: frees *p and clears it */

/* *(void **)out = zeroed count·size bytes; E_LIMIT on failure or overflow, *out untouched. */
FALLIBLE mem_new(void *out, size_t count, size_t size);
/* The same, not zeroed and 64-byte aligned: for large work areas. */
FALLIBLE mem_new_raw(void *out, size_t count, size_t size);

/* For the sentence about memory that was refused: the limit on this process's address space, or "" where there is none. Lent,
 * until this thread asks again. */
const char *mem_limit(void);

/* Time that all threads together spent in the heap for new blocks of 64 KiB and more, since start: so that the allocator can be
 * ruled out as the cause of a wait. */
uint64_t mem_work_ns(void);

void mem_wipe(void *ptr, size_t len); /* not optimised away: for witness values and blinding */

/* Tests only: the n-th allocation from now on in this process fails (0 = the next one); negative switches it off. */
void mem_fail_after(long n);
bool mem_fail_pending(void); /* the failure asked for has not happened yet */
long mem_live_blocks(void);  /* blocks not yet freed, for leak checks in tests */
