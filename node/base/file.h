/* Files: mapped to read, written under a temporary name and renamed.
 *
 * Inputs are never slurped: a key may be larger than memory. "-" is standard input (read into memory, with a
 * limit) and standard output. An output is proven writable before the work that fills it starts, and appears
 * under its name whole or not at all, also when the process is killed; links are followed, modes are kept.
 *
 * Threads  a handle belongs to one thread; mapped bytes may be read by any.
 * Errors   E_IO with path and cause; E_FORMAT for a stream, or a file that is read whole, above its limit.
 */
#pragma once
#include "node/base/bytes.h"

enum { FILE_STREAM_BYTES_MAX = 1 << 30 }; /* standard input and pipes, which cannot be mapped */

struct file_map {
    struct bytes bytes; /* lent from the map */
    char *path;         /* owned: file_title of it */
    void *base;         /* owned: mapping, or heap block when `heap` */
    bool heap;
    uint64_t inode, device, mtime_ns; /* identity, for caches keyed by file */
};

/* Maps `path` read-only; what cannot be mapped is read, up to FILE_STREAM_BYTES_MAX. An empty file is E_FORMAT ("is
 * empty"), a folder E_IO. On OK the caller owns *out. A file that another process cuts while it is mapped ends this
 * one with SIGBUS: files are replaced by renaming, never rewritten in place. */
FALLIBLE file_map_open(struct file_map *out, const char *path);
/* The same for what is never long: of a stream at most `bytes_max`. */
FALLIBLE file_map_open_small(struct file_map *out, const char *path, size_t bytes_max);
void file_map_close(struct file_map *map);

struct file_out; /* opaque */

/* Creates the temporary file beside `path` and so checks that it can be written; "-" is standard output. */
FALLIBLE file_out_open(struct file_out **out, const char *path);
FALLIBLE file_out_write(struct file_out *f, struct bytes data);
/* Instead of writing: the file gets `bytes` zero bytes, room for them is taken on the disk first, and *out lends them until
 * close, to be filled in any order by any thread. Once, before any write; E_IO for pipes and devices. */
FALLIBLE file_out_map(struct bytes_mut *out, struct file_out *f, size_t bytes);
FALLIBLE file_out_commit(struct file_out *f); /* flush, fsync, rename over `path` */
void file_out_close(struct file_out **f);     /* without commit: removes the temporary file */

FALLIBLE file_read_all(struct bytes_mut *out, const char *path,
                       size_t bytes_max);                     /* *out owned: mem_free(out->ptr) */
FALLIBLE file_write_all(const char *path, struct bytes data); /* through file_out */
FALLIBLE dir_make(const char *path);                          /* with parents; existing is fine */
/* Whether files can be made in it, or where it is missing in the parent that is there; makes nothing. */
FALLIBLE dir_writable(const char *path);
FALLIBLE
dir_remove_tree(const char *path); /* only below a path made by dir_make_temp; follows no links */
/* Makes PREFIX.random in $TMPDIR, or where the prefix says when it holds a slash. *out owned: mem_free */
FALLIBLE dir_make_temp(char **out, const char *prefix);
bool file_exists(const char *path);
bool file_same(const char *a, const char *b); /* by name, or one regular file under two names */
const char *file_title(const char *path);     /* in errors: "-" is "standard input" */
