/* Mapped files that shrink: what would be a fatal SIGBUS becomes E_IO.
 *
 * A key is mapped for hours. When somebody truncates the file meanwhile (a copy over the same name, a full disk), the
 * next touch of a lost page raises SIGBUS and would end the process with all its jobs. A guarded mapping gets a page of
 * zeros there instead and is marked torn; whoever reads it asks guard_is_torn() when done, before using what came out.
 * Faults outside guarded mappings go where they went before.
 *
 * Owner    the caller: guard_close, guarded_close.
 * Threads  any; the mark may be set from a signal handler on any thread.
 * Errors   those of file_map_open; E_IO from guarded_intact.
 */
#pragma once
#include "node/base/file.h"

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

/* A file and its guard. What was read into memory, as standard input is, has none. */
struct guarded_map {
    struct file_map map;        /* owned; base NULL: no file */
    struct mapping_guard guard; /* of map */
};
FALLIBLE guarded_open(struct guarded_map *out, const char *path);
/* E_IO once the file has become shorter, with the path and `cure`. Asked before any other error is believed: zeros in place of
 * lost pages may have brought it about. */
FALLIBLE guarded_intact(const struct guarded_map *m, const char *cure);
void guarded_close(struct guarded_map *m); /* fine when there is no file */
