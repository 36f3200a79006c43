/* Mapped files that shrink: what would be a fatal SIGBUS becomes an error.
 *
 * A key is mapped for hours. When somebody truncates the file meanwhile (a copy over the same name, a full disk), the
 * next touch of a lost page raises SIGBUS and would end the process with all its jobs. A guarded mapping gets a page of
 * zeros there instead and is marked torn; whoever reads it asks guard_is_torn() when done, before using what came out.
 * Faults outside guarded mappings go where they went before.
 *
 * Threads  any; the mark may be set from a signal handler on any thread.
 */
#pragma once
#include "node/base/bytes.h"

enum { GUARDS_MAX = 1024 };

struct mapping_guard {
    int slot; /* 0: not guarded, else slot number + 1 */
};

/* Starts watching a mapping (page-aligned start). With all slots taken the mapping stays unguarded. */
struct mapping_guard guard_open(const void *base, size_t len);
void guard_close(struct mapping_guard *guard); /* before the mapping goes */
/* Tells the kernel how a span of a mapping will be read: one of the MADV_ numbers. A hint; memory is as good. */
void mapping_advise(struct bytes span, int advice);
bool guard_is_torn(const struct mapping_guard *guard);
