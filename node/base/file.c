/* An output is an unnamed file (O_TMPFILE) in its target's folder until file_out_commit gives it a name, so even a
 * process that is killed leaves nothing behind. Where the file system has no unnamed files, a hidden name beside the
 * target takes its place and is removed on close. The last step is always a rename, which replaces whole or not at all.
 * Pipes and devices ("/dev/null") cannot be renamed over and are written directly.
 *
 * An input that cannot be mapped (standard input, a pipe) is read into memory up to FILE_STREAM_BYTES_MAX.
 */
#include "node/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/lock.h"
#include "node/base/mem.h"
#include "node/base/rng.h"

enum {
    BUFFER_BYTES = 1 << 16,
    READ_BYTES_FIRST = 1 << 16,
    TEMP_DIRS_MAX = 64,
    LINKS_MAX = 40, /* of symbolic links one after the other, as in the kernel */
    REMOVE_DEPTH_MAX = 64,
};

static void close_fd(int *fd) {
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

static FALLIBLE copy_path(char **out, const char *path) {
    char *copy = mem_strdup(path);
    REQUIRE(copy, E_LIMIT, "out of memory: a path of %zu bytes", strlen(path));
    *out = copy;
    return OK;
}

const char *file_title(const char *path) {
    return strcmp(path, "-") != 0 ? path : "standard input";
}

bool file_same(const char *a, const char *b) {
    struct stat x, y;
    if (!strcmp(a, b)) {
        return true;
    }
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
           S_ISREG(x.st_mode);
}

static FALLIBLE open_input(int *out, struct stat *info, const char *path) {
    const char *title = file_title(path);
    *out = strcmp(path, "-") != 0 ? open(path, O_RDONLY | O_CLOEXEC)
                                  : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    REQUIRE(*out >= 0, E_IO, "%s: %s", title, strerror(errno));
    REQUIRE(!fstat(*out, info), E_IO, "%s: %s", title, strerror(errno));
    REQUIRE(!S_ISDIR(info->st_mode), E_IO, "%s is a folder, not a file", title);
    return OK;
}

static FALLIBLE read_some(size_t *got, int fd, void *into, size_t bytes, const char *path) {
    ssize_t n;
    do {
        n = read(fd, into, bytes);
    } while (n < 0 && errno == EINTR);
    REQUIRE(n >= 0, E_IO, "%s: %s", file_title(path), strerror(errno));
    *got = (size_t)n;
    return OK;
}

static void free_wiped(struct bytes_mut *block) {
    if (block->ptr) {
        mem_wipe(block->ptr, block->len);
        mem_free(block->ptr);
    }
    *block = (struct bytes_mut){NULL, 0};
}

/* Reads to the end; memory grows with what has arrived, never with what was promised. It may be a witness: nothing of it is left behind. */
static FALLIBLE read_stream(struct bytes_mut *out, int fd, const char *path, size_t bytes_max) {
    AUTO(free_wiped) struct bytes_mut block = {NULL, 0};
    size_t cap = 0, got = 1;
    while (got > 0) {
        if (block.len == cap) {
            cap = cap ? 2 * cap : READ_BYTES_FIRST;
            cap = cap > bytes_max ? bytes_max + 1 : cap; /* one more, to see what is too much */
            struct bytes_mut grown = {mem_alloc(cap), block.len};
            REQUIRE(grown.ptr, E_LIMIT, "%s: out of memory after %zu bytes", file_title(path),
                    block.len);
            if (block.len) {
                memcpy(grown.ptr, block.ptr, block.len);
            }
            free_wiped(&block);
            block = grown;
        }
        TRY(read_some(&got, fd, block.ptr + block.len, cap - block.len, path));
        block.len += got;
        REQUIRE(block.len <= bytes_max, E_FORMAT, "%s holds more than the %zu bytes allowed",
                file_title(path), bytes_max);
    }
    *out = block;
    block = (struct bytes_mut){NULL, 0};
    return OK;
}

static uint64_t mtime_ns(const struct stat *info) {
    return (uint64_t)info->st_mtim.tv_sec * 1000000000u + (uint64_t)info->st_mtim.tv_nsec;
}

enum err file_map_open_small(struct file_map *out, const char *path, size_t bytes_max) {
    AUTO(close_fd) int fd = -1;
    struct stat info;
    TRY(open_input(&fd, &info, path));
    AUTO(file_map_close) struct file_map map = {0};
    TRY(copy_path(&map.path, file_title(path)));
    map.inode = info.st_ino;
    map.device = info.st_dev;
    map.mtime_ns = mtime_ns(&info);
    if (S_ISREG(info.st_mode) && info.st_size > 0 && lseek(fd, 0, SEEK_CUR) == 0) {
        size_t len = (size_t)info.st_size;
        void *base = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
        REQUIRE(base != MAP_FAILED, E_IO, "%s: %zu bytes cannot be mapped: %s%s", file_title(path),
                len, strerror(errno), mem_limit());
        map.base = base;
        map.bytes = bytes_of(base, len);
    } else {
        struct bytes_mut data;
        TRY(read_stream(&data, fd, path, bytes_max));
        map.base = data.ptr;
        map.heap = true;
        map.bytes = bytes_of(data.ptr, data.len);
    }
    REQUIRE(map.bytes.len > 0, E_FORMAT, "%s is empty", file_title(path));
    *out = map;
    map = (struct file_map){0};
    return OK;
}

enum err file_map_open(struct file_map *out, const char *path) {
    return file_map_open_small(out, path, FILE_STREAM_BYTES_MAX);
}

void file_map_close(struct file_map *map) {
    if (map->heap) {
        free_wiped(&(struct bytes_mut){map->base, map->bytes.len});
    } else if (map->base) {
        munmap(map->base, map->bytes.len);
    }
    mem_free(map->path);
    *map = (struct file_map){0};
}

enum err file_read_all(struct bytes_mut *out, const char *path, size_t bytes_max) {
    ASSERT(bytes_max < PTRDIFF_MAX);
    AUTO(close_fd) int fd = -1;
    struct stat info;
    TRY(open_input(&fd, &info, path));
    return read_stream(out, fd, path, bytes_max);
}

struct file_out {
    char *path;           /* owned: the target, links resolved; NULL for a direct write */
    char *shown;          /* owned: as the caller named it, for errors */
    char *temp;           /* owned: hidden name to remove on close; NULL while there is none */
    int fd;               /* owned */
    bool unnamed;         /* the file has no name yet */
    bool broken;          /* a write failed: commit refuses */
    struct bytes_mut map; /* owned: all of the file, or nothing */
    size_t filled;        /* bytes waiting in the buffer */
    uint8_t buffer[BUFFER_BYTES];
};

/* "dir/.bellows-0123456789abcdef.tmp" beside the target. */
static FALLIBLE temp_name(char **out, const char *path) {
    uint8_t random[8];
    char hex[17];
    TRY(rng_os(random, sizeof random));
    hex_encode(hex, random, sizeof random);
    const char *slash = strrchr(path, '/');
    size_t dir_len = slash ? (size_t)(slash - path) + 1 : 0;
    size_t bytes = dir_len + 32;
    char *name = mem_alloc(bytes);
    REQUIRE(name, E_LIMIT, "out of memory: a path of %zu bytes", bytes);
    snprintf(name, bytes, "%.*s.bellows-%s.tmp", (int)dir_len, path, hex);
    *out = name;
    return OK;
}

static FALLIBLE open_unnamed(struct file_out *f, mode_t mode) {
    AUTO(mem_free_ptr) char *copy = NULL;
    TRY(copy_path(&copy, f->path));
    f->fd = open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    if (f->fd < 0) {
        return OK; /* the hidden name finds out whether that is the file system's fault */
    }
    char proc[32];
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", f->fd);
    if (access(proc, F_OK)) { /* without /proc it could not be given a name later */
        close_fd(&f->fd);
        return OK;
    }
    f->unnamed = true;
    return OK;
}

static FALLIBLE open_hidden(struct file_out *f, mode_t mode) {
    char *temp;
    TRY(temp_name(&temp, f->path));
    f->fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (f->fd < 0) {
        int why = errno;
        mem_free(temp);
        FAIL(E_IO, "%s cannot be written: %s", f->shown, strerror(why));
    }
    f->temp = temp;
    return OK;
}

/* The name that a write to `path` gives a file: links are followed, to one that is not there yet as well. */
static FALLIBLE follow_links(char **out, const char *path) {
    AUTO(mem_free_ptr) char *name = NULL;
    char to[PATH_MAX];
    if (realpath(path, to)) {
        return copy_path(out, to);
    }
    TRY(copy_path(&name, path));
    for (unsigned links = 0;; links++) {
        ssize_t len = readlink(name, to, sizeof to - 1);
        if (len < 0) {
            *out = TAKE(name); /* no link: the name of the file to be */
            return OK;
        }
        REQUIRE(links < LINKS_MAX, E_IO, "%s cannot be written: %s", path, strerror(ELOOP));
        to[len] = '\0';
        const char *slash = strrchr(name, '/');
        size_t dir_len = slash && to[0] != '/' ? (size_t)(slash - name) + 1 : 0;
        char *next = mem_alloc(dir_len + (size_t)len + 1);
        REQUIRE(next, E_LIMIT, "out of memory: a path of %zu bytes", dir_len + (size_t)len);
        memcpy(next, name, dir_len);
        memcpy(next + dir_len, to, (size_t)len + 1);
        mem_free(name);
        name = next;
    }
}

/* Decides between a direct write (pipe, device), a replacement that keeps the old mode, and a new file. */
static FALLIBLE open_target(struct file_out *f) {
    struct stat info;
    bool exists = !stat(f->shown, &info);
    REQUIRE(exists || errno == ENOENT, E_IO, "%s cannot be written: %s", f->shown, strerror(errno));
    REQUIRE(!exists || !S_ISDIR(info.st_mode), E_IO, "%s is a folder, not a file", f->shown);
    if (exists && !S_ISREG(info.st_mode)) {
        f->fd = open(f->shown, O_WRONLY | O_CLOEXEC);
        REQUIRE(f->fd >= 0, E_IO, "%s cannot be written: %s", f->shown, strerror(errno));
        return OK;
    }
    REQUIRE(!exists || !access(f->shown, W_OK), E_IO, "%s cannot be written: %s", f->shown,
            strerror(errno));
    TRY(follow_links(&f->path, f->shown));
    mode_t mode = exists ? info.st_mode & 07777 : 0666;
    TRY(open_unnamed(f, mode));
    if (f->fd < 0) {
        TRY(open_hidden(f, mode));
    }
    REQUIRE(!exists || !fchmod(f->fd, mode), E_IO, "%s: its mode cannot be kept: %s", f->shown,
            strerror(errno));
    return OK;
}

enum err file_out_open(struct file_out **out, const char *path) {
    AUTO(file_out_close) struct file_out *f = NULL;
    TRY(mem_new(&f, 1, sizeof *f));
    f->fd = -1;
    bool standard = !strcmp(path, "-");
    TRY(copy_path(&f->shown, standard ? "standard output" : path));
    if (standard) {
        f->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        REQUIRE(f->fd >= 0, E_IO, "standard output: %s", strerror(errno));
    } else {
        REQUIRE(*path, E_IO, "the name of the output file is empty");
        TRY(open_target(f));
    }
    *out = TAKE(f);
    return OK;
}

static FALLIBLE write_whole(struct file_out *f, struct bytes data) {
    while (data.len > 0) {
        ssize_t n = write(f->fd, data.ptr, data.len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            f->broken = true;
            FAIL(E_IO, "%s: %s", f->shown, strerror(errno));
        }
        data.ptr += n;
        data.len -= (size_t)n;
    }
    return OK;
}

static FALLIBLE flush(struct file_out *f) {
    TRY(write_whole(f, bytes_of(f->buffer, f->filled)));
    f->filled = 0;
    return OK;
}

enum err file_out_write(struct file_out *f, struct bytes data) {
    if (data.len > sizeof f->buffer - f->filled) {
        TRY(flush(f));
    }
    if (data.len >= sizeof f->buffer) {
        return write_whole(f, data);
    }
    if (data.len > 0) {
        memcpy(f->buffer + f->filled, data.ptr, data.len);
        f->filled += data.len;
    }
    return OK;
}

enum err file_out_map(struct bytes_mut *out, struct file_out *f, size_t bytes) {
    ASSERT(!f->filled && !f->map.ptr && bytes > 0);
    REQUIRE(f->path, E_IO, "%s is no file: this output needs one", f->shown);
    int why = posix_fallocate(f->fd, 0, (off_t)bytes); /* else a full disk is a SIGBUS later */
    REQUIRE(!why, E_IO, "%s: no room for %zu bytes: %s", f->shown, bytes, strerror(why));
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    REQUIRE(base != MAP_FAILED, E_IO, "%s: cannot be mapped: %s", f->shown, strerror(errno));
    f->map = (struct bytes_mut){base, bytes};
    *out = f->map;
    return OK;
}

static FALLIBLE name_it(struct file_out *f) {
    char proc[32], *temp;
    TRY(temp_name(&temp, f->path));
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", f->fd);
    if (linkat(AT_FDCWD, proc, AT_FDCWD, temp, AT_SYMLINK_FOLLOW)) {
        int why = errno;
        mem_free(temp);
        FAIL(E_IO, "%s cannot be written: %s", f->shown, strerror(why));
    }
    f->temp = temp;
    f->unnamed = false;
    return OK;
}

/* Makes the rename itself durable. */
static void sync_dir(const char *path) {
    char *copy = mem_strdup(path);
    if (copy) {
        AUTO(close_fd) int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir >= 0) {
            fsync(dir);
        }
        mem_free(copy);
    }
}

enum err file_out_commit(struct file_out *f) {
    REQUIRE(!f->broken, E_IO, "%s: not all of it could be written", f->shown);
    TRY(flush(f));
    if (!f->path) {
        return OK;
    }
    REQUIRE(!fsync(f->fd), E_IO, "%s: %s", f->shown, strerror(errno));
    if (f->unnamed) {
        TRY(name_it(f));
    }
    ASSERT(f->temp); /* a second commit */
    REQUIRE(!rename(f->temp, f->path), E_IO, "%s cannot be written: %s", f->shown, strerror(errno));
    mem_free_ptr(&f->temp);
    sync_dir(f->path);
    return OK;
}

void file_out_close(struct file_out **address) {
    struct file_out *f = *address;
    if (!f) {
        return;
    }
    if (f->temp) {
        unlink(f->temp);
    }
    if (f->map.ptr) {
        munmap(f->map.ptr, f->map.len);
    }
    close_fd(&f->fd);
    mem_free(f->temp);
    mem_free(f->path);
    mem_free(f->shown);
    mem_free_ptr(address);
}

enum err file_write_all(const char *path, struct bytes data) {
    AUTO(file_out_close) struct file_out *f = NULL;
    TRY(file_out_open(&f, path));
    TRY(file_out_write(f, data));
    return file_out_commit(f);
}

bool file_exists(const char *path) {
    struct stat info;
    return !stat(path, &info);
}

enum err dir_make(const char *path) {
    AUTO(mem_free_ptr) char *copy = NULL;
    TRY(copy_path(&copy, path));
    for (char *at = copy; at;) {
        at = strchr(at + (*at == '/'), '/');
        if (at) {
            *at = '\0';
        }
        if (*copy && mkdir(copy, 0777)) {
            int why = errno;
            struct stat info;
            bool is_dir = !stat(copy, &info) && S_ISDIR(info.st_mode);
            REQUIRE(is_dir, E_IO, "folder %s cannot be made: %s", copy, strerror(why));
        }
        if (at) {
            *at = '/';
        }
    }
    return OK;
}

enum err dir_writable(const char *path) {
    AUTO(mem_free_ptr) char *copy = NULL;
    struct stat info;
    TRY(copy_path(&copy, path));
    char *at = copy;
    while (stat(at, &info) && errno == ENOENT && strcmp(at, ".") != 0 && strcmp(at, "/") != 0) {
        at = dirname(at);
    }
    REQUIRE(!stat(at, &info), E_IO, "folder %s cannot be made: %s: %s", path, at, strerror(errno));
    REQUIRE(S_ISDIR(info.st_mode), E_IO, "folder %s cannot be made: %s is a file", path, at);
    REQUIRE(!access(at, W_OK | X_OK), E_IO, "folder %s cannot be written: %s", at, strerror(errno));
    return OK;
}

/* The folders that dir_make_temp made in this process: the only ones that dir_remove_tree removes. */
static struct lock temp_lock = LOCK_STATIC(LOCK_FILE);
static char *temp_dirs[TEMP_DIRS_MAX]; /* [temp_lock] owned */

static FALLIBLE remember(const char *path) {
    AUTO(mem_free_ptr) char *copy = NULL;
    TRY(copy_path(&copy, path));
    lock_take(&temp_lock);
    for (size_t i = 0; i < TEMP_DIRS_MAX && copy; i++) {
        if (!temp_dirs[i]) {
            temp_dirs[i] = TAKE(copy);
        }
    }
    lock_give(&temp_lock);
    REQUIRE(!copy, E_LIMIT, "more than %d temporary folders", TEMP_DIRS_MAX);
    return OK;
}

enum err dir_make_temp(char **out, const char *prefix) {
    const char *base = getenv("TMPDIR");
    base = base && *base ? base : "/tmp";
    size_t bytes = strlen(base) + strlen(prefix) + 9;
    AUTO(mem_free_ptr) char *path = NULL;
    TRY(mem_new_raw(&path, bytes, 1));
    if (strchr(prefix, '/')) {
        snprintf(path, bytes, "%s.XXXXXX", prefix);
    } else {
        snprintf(path, bytes, "%s/%s.XXXXXX", base, prefix);
    }
    REQUIRE(mkdtemp(path), E_IO, "temporary folder %s cannot be made: %s", path, strerror(errno));
    enum err e = remember(path);
    if (e != OK) {
        rmdir(path);
        return e;
    }
    *out = TAKE(path);
    return OK;
}

/* True when `path` is one of ours or below it; forgets it when it is one of ours. */
static bool may_remove(const char *path) {
    if (strstr(path, "/../") || (strlen(path) >= 3 && !strcmp(path + strlen(path) - 3, "/.."))) {
        return false;
    }
    bool ours = false;
    lock_take(&temp_lock);
    for (size_t i = 0; i < TEMP_DIRS_MAX; i++) {
        size_t len = temp_dirs[i] ? strlen(temp_dirs[i]) : 0;
        if (len > 0 && !strncmp(path, temp_dirs[i], len) && (!path[len] || path[len] == '/')) {
            ours = true;
            if (!path[len]) {
                mem_free_ptr(&temp_dirs[i]);
            }
        }
    }
    lock_give(&temp_lock);
    return ours;
}

static void close_dir(DIR **dir) {
    if (*dir) {
        closedir(*dir);
    }
}

static FALLIBLE empty_dir(int dir_fd, const char *path, unsigned depth) {
    REQUIRE(depth < REMOVE_DEPTH_MAX, E_LIMIT, "%s: folders nest deeper than %d", path,
            REMOVE_DEPTH_MAX);
    AUTO(close_dir) DIR *dir = fdopendir(dir_fd);
    if (!dir) {
        close(dir_fd);
        FAIL(E_IO, "%s: %s", path, strerror(errno));
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) {
            continue;
        }
        int child =
            openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (child >= 0) {
            TRY(empty_dir(child, path, depth + 1));
        }
        int flags = child >= 0 ? AT_REMOVEDIR : 0;
        REQUIRE(!unlinkat(dirfd(dir), entry->d_name, flags) || errno == ENOENT, E_IO,
                "%s: %s cannot be removed: %s", path, entry->d_name, strerror(errno));
    }
    return OK;
}

enum err dir_remove_tree(const char *path) {
    REQUIRE(may_remove(path), E_IO, "%s is not a temporary folder of this process: left alone",
            path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    REQUIRE(fd >= 0, E_IO, "%s: %s", path, strerror(errno));
    TRY(empty_dir(fd, path, 0));
    REQUIRE(!rmdir(path), E_IO, "%s cannot be removed: %s", path, strerror(errno));
    return OK;
}
