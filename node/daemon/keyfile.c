/* Between processes, an flock on <digest>.lock makes one fetch while the others wait: locks of dead processes vanish, so there is no
 * stale one to clean up.
 */
#include "node/daemon/keyfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"
#include "node/key/native.h"

static const uint64_t LOCK_LOOK_NS = UINT64_C(20000000);
enum {
    OPENED_MAX = 64,
    PATH_BYTES = 1024,
    FETCH_TRIES = 2,
    FETCH_BATCH = 16,
    FETCH_BATCH_BYTES = 16 << 20,
    FETCH_THREADS = 4 /* one hashes, which takes as long as what the others do */
};

struct opened {
    struct sha256 digest;
    struct key *key; /* shared (ref) */
    uint64_t used_ns;
    bool checked;
    struct fault fault; /* of the check; OK: sound, as far as known */
};

struct keyfiles {
    char *dir; /* owned: with "/keys" */
    uint64_t bytes_max;
    bool allow_insecure, native;
    struct pool *pool, *fetch_pool; /* owned: for checks; for fetching beside them */
    struct lock lock;
    struct opened opened[OPENED_MAX]; /* [lock] */
    size_t opened_count;              /* [lock] */
};

enum err keyfiles_open(struct keyfiles **out, const struct keyfiles_options *options) {
    AUTO(keyfiles_close) struct keyfiles *k = NULL;
    TRY(mem_new(&k, 1, sizeof *k));
    lock_init(&k->lock, LOCK_STAGING);
    k->bytes_max = options->bytes_max;
    k->allow_insecure = options->allow_insecure;
    k->native = options->native;
    size_t len = strlen(options->dir) + sizeof "/keys";
    TRY(mem_new(&k->dir, len, 1));
    snprintf(k->dir, len, "%s/keys", options->dir);
    REQUIRE(len < PATH_BYTES / 2, E_LIMIT, "path of the key cache is too long: %s", k->dir);
    TRY(dir_make(k->dir));
    TRY(pool_open(&k->pool, options->check_threads));
    unsigned threads = pool_threads_count(k->pool);
    TRY(pool_open(&k->fetch_pool, threads < FETCH_THREADS ? threads : FETCH_THREADS));
    *out = TAKE(k);
    return OK;
}

void keyfiles_close(struct keyfiles **k) {
    if (!*k) {
        return;
    }
    for (size_t i = 0; i < (*k)->opened_count; i++) {
        key_unref(&(*k)->opened[i].key);
    }
    pool_close(&(*k)->pool);
    pool_close(&(*k)->fetch_pool);
    mem_free((*k)->dir);
    lock_done(&(*k)->lock);
    mem_free_ptr(k);
}

/* --- The table of opened keys --- */

static struct opened *opened_of(struct keyfiles *k, const struct sha256 *digest) {
    for (size_t i = 0; i < k->opened_count; i++) {
        if (!memcmp(&k->opened[i].digest, digest, sizeof *digest)) {
            return &k->opened[i];
        }
    }
    return NULL;
}

/* *out stays NULL when it is not open; the fault of a key that was found bad. */
static enum err opened_find(struct key **out, struct keyfiles *k, const struct sha256 *digest) {
    struct fault fault = {0};
    lock_take(&k->lock);
    struct opened *o = opened_of(k, digest);
    if (o) {
        o->used_ns = clock_ns();
        fault = o->fault;
        *out = fault.code == OK ? key_ref(o->key) : NULL;
    }
    lock_give(&k->lock);
    return fault.code == OK ? OK : fault_raise(&fault);
}

static void opened_add(struct keyfiles *k, const struct sha256 *digest, struct key *key) {
    struct key *leaves = NULL;
    lock_take(&k->lock);
    size_t at = k->opened_count;
    if (at == OPENED_MAX) {
        at = 0;
        for (size_t i = 1; i < OPENED_MAX; i++) {
            at = k->opened[i].used_ns < k->opened[at].used_ns ? i : at;
        }
        leaves = k->opened[at].key;
    } else {
        k->opened_count++;
    }
    k->opened[at] = (struct opened){.digest = *digest, .key = key_ref(key), .used_ns = clock_ns()};
    lock_give(&k->lock);
    key_unref(&leaves);
}

/* What a check of this key said; an interrupted one says nothing. */
static void opened_note(struct keyfiles *k, const struct key *key, enum err code) {
    struct fault fault = fault_of(code);
    LOCK_SCOPE(&k->lock);
    for (size_t i = 0; i < k->opened_count && code != E_CANCELLED; i++) {
        if (k->opened[i].key == key) {
            k->opened[i].checked = true;
            k->opened[i].fault = err_class(code) == CLASS_REJECT ? fault : (struct fault){0};
        }
    }
}

/* --- Disk --- */

struct key_path {
    char text[PATH_BYTES];
};

static struct key_path path_of(const struct keyfiles *k, const struct sha256 *digest,
                               const char *tail) {
    char hex[SHA256_HEX_BYTES];
    struct key_path path;
    sha256_hex(hex, digest);
    snprintf(path.text, sizeof path.text, "%s/%s%s", k->dir, hex, tail);
    return path;
}

static void unlock_file(const int *fd) {
    if (*fd >= 0) {
        close(*fd); /* releases the flock */
    }
}

/* Another lane may fetch for minutes, and a lock of the kernel's cannot be waited for with a limit: so it is asked for now and then. */
static enum err lock_file(int *out, const char *path, const _Atomic int *cancel) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0, E_IO, "%s: %s", path, strerror(errno));
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int cause = errno;
        bool wait = cause == EINTR || cause == EWOULDBLOCK;
        if (!wait || (cancel && atomic_load(cancel))) {
            close(fd);
            REQUIRE(!wait, E_CANCELLED, "cancelled while another lane fetched the key");
            FAIL(E_IO, "%s: cannot be locked: %s", path, strerror(cause));
        }
        clock_sleep_ns(LOCK_LOOK_NS);
    }
    *out = fd;
    return OK;
}

static const char NATIVE_TAIL[] = ".native";

/* "<digest>" or "<digest>.native". */
static bool is_digest_name(struct sha256 *digest, bool *native, const char *name) {
    char hex[SHA256_HEX_BYTES];
    size_t len = strlen(name), digits = SHA256_HEX_BYTES - 1;
    *native = len == digits + sizeof NATIVE_TAIL - 1 && !strcmp(name + digits, NATIVE_TAIL);
    if (len != digits && !*native) {
        return false;
    }
    snprintf(hex, sizeof hex, "%.*s", (int)digits, name);
    return sha256_from_hex(digest, hex) == OK;
}

struct disk_key {
    struct sha256 digest;
    uint64_t bytes;
    struct timespec used;
    bool native;
};
enum { DISK_KEYS_MAX = 4096 };

static void end_dir(DIR **dir) {
    if (*dir) {
        closedir(*dir);
    }
}

/* The next key of the folder (NULL: it cannot be read); false: that was all. */
static bool disk_next(struct disk_key *out, DIR *dir) {
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        struct stat st;
        if (is_digest_name(&out->digest, &out->native, e->d_name) &&
            fstatat(dirfd(dir), e->d_name, &st, 0) == 0) {
            out->bytes = (uint64_t)st.st_size;
            out->used = st.st_mtim;
            return true;
        }
    }
    return false;
}

static size_t disk_list(struct disk_key *out, size_t out_max, const struct keyfiles *k) {
    size_t count = 0;
    AUTO(end_dir) DIR *dir = opendir(k->dir);
    for (; count < out_max && disk_next(&out[count], dir); count++) {
        struct stat lock;
        struct key_path path = path_of(k, &out[count].digest, ".lock");
        if (stat(path.text, &lock) == 0) {
            out[count].used = lock.st_mtim;
        }
    }
    return count;
}

size_t keyfiles_list(struct sha256 *digests, size_t digests_max, struct keyfiles *k) {
    size_t count = 0;
    struct disk_key key;
    AUTO(end_dir) DIR *dir = opendir(k->dir);
    while (count < digests_max && disk_next(&key, dir)) {
        digests[count++] = key.digest;
    }
    return count;
}

uint64_t keyfiles_bytes(struct keyfiles *k) {
    uint64_t sum = 0;
    struct disk_key key;
    AUTO(end_dir) DIR *dir = opendir(k->dir);
    while (disk_next(&key, dir)) {
        sum += key.bytes;
    }
    return sum;
}

static bool used_before(const struct disk_key *a, const struct disk_key *b) {
    return a->used.tv_sec != b->used.tv_sec ? a->used.tv_sec < b->used.tv_sec
                                            : a->used.tv_nsec < b->used.tv_nsec;
}

/* Removes the keys used longest ago until `bytes` more fit. A key that a process has mapped stays readable for it. */
static enum err disk_make_room(struct keyfiles *k, uint64_t bytes) {
    if (k->bytes_max == 0) {
        return OK;
    }
    REQUIRE(
        bytes <= k->bytes_max, E_LIMIT,
        "a key of %llu bytes does not fit the key cache of %llu bytes; the option is --cache-size",
        (unsigned long long)bytes, (unsigned long long)k->bytes_max);
    AUTO(mem_free_ptr) struct disk_key *keys = NULL;
    TRY(mem_new(&keys, DISK_KEYS_MAX, sizeof *keys));
    size_t count = disk_list(keys, DISK_KEYS_MAX, k);
    uint64_t sum = bytes;
    for (size_t i = 0; i < count; i++) {
        sum += keys[i].bytes;
    }
    while (sum > k->bytes_max && count > 0) {
        size_t oldest = 0;
        for (size_t i = 1; i < count; i++) {
            oldest = used_before(&keys[i], &keys[oldest]) ? i : oldest;
        }
        struct key_path path =
            path_of(k, &keys[oldest].digest, keys[oldest].native ? NATIVE_TAIL : "");
        unlink(path.text);
        sum -= keys[oldest].bytes;
        keys[oldest] = keys[--count];
    }
    return OK;
}

/* --- Fetching: a batch of chunks is hashed by one thread while others copy them into the file, and the next ones come --- */

struct fetch {
    struct keyfiles *k;                /* lent */
    struct file_out *file;             /* owned */
    struct sha256_run *run;            /* owned */
    struct object_download *download;  /* owned */
    struct bytes_mut place;            /* lent from file: of what is still to come */
    struct message batch[FETCH_BATCH]; /* owned: batch_count of them */
    size_t batch_count, batch_bytes;
    struct fault fault; /* of hashing */
};

static void batch_done(struct fetch *f) {
    for (size_t i = 0; i < f->batch_count; i++) {
        message_done(&f->batch[i]);
    }
    f->place.ptr += f->batch_bytes;
    f->place.len -= f->batch_bytes;
    f->batch_count = f->batch_bytes = 0;
}

static void fetch_done(struct fetch *f) {
    batch_done(f);
    object_download_close(&f->download);
    file_out_close(&f->file);
    sha256_free(&f->run);
}

static void hash_batch(struct fetch *f) {
    for (size_t i = 0; i < f->batch_count && f->fault.code == OK; i++) {
        f->fault = fault_of(sha256_add(f->run, f->batch[i].data));
    }
}

static void work_on_batch(void *ctx, size_t idx, unsigned worker_idx) {
    struct fetch *f = ctx;
    (void)worker_idx;
    if (idx == 0) {
        hash_batch(f);
        return;
    }
    uint8_t *to = f->place.ptr;
    for (size_t i = 0; i < idx - 1; i++) {
        to += f->batch[i].data.len;
    }
    memcpy(to, f->batch[idx - 1].data.ptr, f->batch[idx - 1].data.len);
}

static enum err store_batch(struct fetch *f) {
    pool_for(f->k->fetch_pool, f->batch_count + 1, work_on_batch, f);
    batch_done(f);
    return f->fault.code == OK ? OK : fault_raise(&f->fault);
}

/* The object's bytes are as many as its entry says: the download sees to it. */
static enum err fetch_bytes(struct fetch *f, const _Atomic int *cancel) {
    for (bool end = false; !end;) {
        struct message chunk = {0};
        TRY(object_download_next(&chunk, &end, f->download));
        if (!end) {
            f->batch_bytes += chunk.data.len;
            f->batch[f->batch_count++] = chunk;
        }
        if (end || f->batch_count == FETCH_BATCH || f->batch_bytes >= FETCH_BATCH_BYTES) {
            TRY(store_batch(f));
        }
        REQUIRE(!cancel || !atomic_load(cancel), E_CANCELLED,
                "cancelled while the key was fetched");
    }
    return OK;
}

/* The store's fault, not the job's: it may be mended, or has been while it was read. */
static enum err incomplete(const char *hex, const struct object_info *read, const char *bucket,
                           struct transport *t) {
    struct fault why = fault_of(E_FORMAT);
    struct object_info now;
    bool found = false;
    TRY(object_info(&now, &found, t, bucket, hex));
    REQUIRE(!found || !strcmp(now.nuid, read->nuid), E_IO,
            "key %s was stored anew while it was fetched", hex);
    FAIL(E_IO,
         "key %s is not whole in this fleet's store (%.150s); push it again with `bellows key push "
         "FILE`",
         hex, why.detail);
}

static enum err fetch_key(struct keyfile_times *times, struct keyfiles *k,
                          const struct bulk_links *bulk, const struct subject_space *space,
                          const struct sha256 *digest, const _Atomic int *cancel) {
    char hex[SHA256_HEX_BYTES];
    struct subject bucket = bucket_keys(space);
    struct object_info info;
    bool found = false;
    uint64_t start_ns = clock_ns();
    sha256_hex(hex, digest);
    TRY(object_info(&info, &found, bulk->links[0], bucket.text, hex));
    REQUIRE(
        found, E_RANGE,
        "key %s is not stored in this fleet; store it once with `bellows key push FILE`, or lay it "
        "into this node's cache as keys/DIGEST",
        hex);
    TRY(disk_make_room(k, info.bytes));
    AUTO(fetch_done) struct fetch f = {.k = k};
    struct key_path path = path_of(k, digest, "");
    TRY(file_out_open(&f.file, path.text));
    TRY(sha256_new(&f.run));
    if (info.bytes > 0) {
        TRY(file_out_map(&f.place, f.file, (size_t)info.bytes));
    }
    struct object_download_options options = {.bucket = bucket.text,
                                              .nuid = info.nuid,
                                              .chunks_count = info.chunks_count,
                                              .bytes = info.bytes,
                                              .also = bulk->links + 1,
                                              .also_count = bulk->count - 1};
    TRY(object_download_open(&f.download, bulk->links[0], &options));
    enum err code = fetch_bytes(&f, cancel);
    TRY(code == E_FORMAT ? incomplete(hex, &info, bucket.text, bulk->links[0]) : code);
    struct sha256 got;
    TRY(sha256_end(&got, f.run));
    if (memcmp(&got, digest, sizeof got)) {
        char got_hex[SHA256_HEX_BYTES];
        sha256_hex(got_hex, &got);
        FAIL(E_IO, "key %s as fetched has digest %s; push it again with `bellows key push FILE`",
             hex, got_hex);
    }
    TRY(file_out_commit(f.file));
    times->fetch_ns += clock_ns() - start_ns;
    times->fetch_bytes += info.bytes;
    return OK;
}

/* --- Opening --- */

/* Last used: now. On the lock file, since touching a native key would make it another file to whoever remembers it. */
static void note_used(const struct keyfiles *k, const struct sha256 *digest) {
    utimensat(AT_FDCWD, path_of(k, digest, ".lock").text, NULL, 0);
}

/* The native form, if there is one and it is of this key. One that cannot be read is removed: it is made again. */
static enum err open_native(struct key **out, struct keyfile_times *times, struct keyfiles *k,
                            const struct sha256 *digest) {
    struct key_path path = path_of(k, digest, NATIVE_TAIL);
    AUTO(key_unref) struct key *key = NULL;
    struct sha256 source = {{0}};
    uint64_t start_ns = clock_ns();
    if (!k->native || !file_exists(path.text)) {
        return OK;
    }
    enum err code =
        key_open(&key, path.text, (struct key_options){.allow_insecure = k->allow_insecure});
    if (code == OK) {
        code = key_source(&source, key);
    }
    if (code == E_FORMAT || (code == OK && memcmp(&source, digest, sizeof source))) {
        unlink(path.text);
        return OK;
    }
    TRY(code);
    times->open_ns += clock_ns() - start_ns;
    note_used(k, digest);
    *out = TAKE(key);
    return OK;
}

/* Turns an opened .zkey into its native form, which replaces it. Whatever prevents that, the key serves as it is. */
static void make_native(struct key **key, struct keyfile_times *times, struct keyfiles *k,
                        const struct sha256 *digest) {
    struct key_path path = path_of(k, digest, NATIVE_TAIL);
    struct key *native = NULL;
    if (!k->native || key_shape(*key)->format != KEY_FORMAT_ZKEY ||
        native_write(path.text, *key) != OK) {
        return;
    }
    if (open_native(&native, times, k, digest) == OK && native) {
        unlink(path_of(k, digest, "").text);
        key_unref(key);
        *key = native;
    }
}

static enum err digest_of_file(struct sha256 *out, const char *path) {
    AUTO(file_map_close) struct file_map map = {0};
    TRY(file_map_open(&map, path));
    return sha256_of(out, map.bytes);
}

/* What is on disk under this digest, if it is what its name says; a damaged file is removed. *out stays NULL without one. */
static enum err open_present(struct key **out, struct keyfile_times *times, struct keyfiles *k,
                             const struct sha256 *digest) {
    struct key_path path = path_of(k, digest, "");
    if (!file_exists(path.text)) {
        return OK;
    }
    uint64_t start_ns = clock_ns();
    AUTO(key_unref) struct key *key = NULL;
    struct sha256 got = {{0}};
    enum err code =
        key_open(&key, path.text, (struct key_options){.allow_insecure = k->allow_insecure});
    struct fault fault = fault_of(code);
    code = key ? key_digest(&got, key) : digest_of_file(&got, path.text);
    if (code == E_FORMAT || (code == OK && memcmp(&got, digest, sizeof got))) {
        unlink(path.text); /* empty, cut or damaged */
        return OK;
    }
    TRY(code);
    TRY(fault.code == OK ? OK : fault_raise(&fault));
    times->open_ns += clock_ns() - start_ns;
    note_used(k, digest);
    make_native(&key, times, k, digest);
    *out = TAKE(key);
    return OK;
}

static enum err get_locked(struct key **out, struct keyfile_times *times, struct keyfiles *k,
                           const struct bulk_links *bulk, const struct subject_space *space,
                           const struct sha256 *digest, const _Atomic int *cancel) {
    AUTO(unlock_file) int lock = -1;
    struct key_path path = path_of(k, digest, ".lock");
    TRY(lock_file(&lock, path.text, cancel));
    TRY(open_native(out, times, k, digest));
    for (int n = 0; n < FETCH_TRIES && !*out; n++) {
        TRY(open_present(out, times, k, digest));
        if (!*out) {
            TRY(fetch_key(times, k, bulk, space, digest, cancel));
        }
    }
    if (!*out) {
        TRY(open_present(out, times, k, digest));
    }
    REQUIRE(*out, E_IO, "%s: the key is damaged as soon as it is written", path.text);
    return OK;
}

enum err keyfiles_get(struct key **out, struct keyfile_times *times, struct keyfiles *k,
                      const struct bulk_links *bulk, const struct subject_space *space,
                      const struct sha256 *digest, const _Atomic int *cancel) {
    *times = (struct keyfile_times){0};
    AUTO(key_unref) struct key *key = NULL;
    TRY(opened_find(&key, k, digest));
    if (!key) {
        TRY(get_locked(&key, times, k, bulk, space, digest, cancel));
        uint64_t start_ns = clock_ns();
        TRY(key_prepare(key));
        times->open_ns += clock_ns() - start_ns;
        opened_add(k, digest, key);
    }
    *out = TAKE(key);
    return OK;
}

static void note_progress(void *ctx, double done) {
    _Atomic uint64_t *progress_ns = ctx;
    (void)done;
    atomic_store(progress_ns, clock_ns());
}

static enum err noted(struct keyfiles *k, const struct key *key, enum err code) {
    struct fault fault = fault_of(code);
    opened_note(k, key, code);
    return code == OK ? OK : fault_raise(&fault);
}

enum err keyfiles_check(struct keyfiles *k, struct key *key, _Atomic uint64_t *progress_ns) {
    struct key_report report;
    return noted(k, key,
                 key_check(&report, key, k->pool, progress_ns ? note_progress : NULL, progress_ns));
}

bool keyfiles_next_unchecked(struct key **key, struct sha256 *digest, struct keyfiles *k) {
    LOCK_SCOPE(&k->lock);
    for (size_t i = 0; i < k->opened_count; i++) {
        if (!k->opened[i].checked) {
            *key = key_ref(k->opened[i].key);
            *digest = k->opened[i].digest;
            return true;
        }
    }
    return false;
}

enum err keyfiles_check_idle(struct key_report *report, struct keyfiles *k, struct key *key,
                             key_pace *pace, void *pace_ctx) {
    return noted(k, key, key_check_paced(report, key, NULL, pace, pace_ctx));
}
