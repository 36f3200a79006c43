/* Key files: fetched by digest, never believed without it. */
#include "node/daemon/keyfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/key/native.h"
#include "node/transport/fleet.h"
#include "node/transport/loopback.h"
#include "tests/unit/daemon/submitter.h"

struct store { /* a fleet's key bucket, and a node's folder */
    struct loopback *broker;
    struct transport *link;
    struct bulk_links bulk;
    struct subject_space space;
    struct keyfiles *files;
    char *dir; /* owned */
    bool native;
};

static void open_files(struct store *s, uint64_t bytes_max, bool allow_insecure) {
    keyfiles_close(&s->files);
    struct keyfiles_options options = {.dir = s->dir,
                                       .bytes_max = bytes_max,
                                       .allow_insecure = allow_insecure,
                                       .check_threads = 1,
                                       .native = s->native};
    CHECK_OK(keyfiles_open(&s->files, &options));
}

static void store_open(struct store *s) {
    *s = (struct store){0};
    CHECK_OK(loopback_open(&s->broker));
    CHECK_OK(loopback_connect(&s->link, s->broker, NULL));
    s->bulk = (struct bulk_links){{s->link, NULL}, 2};
    CHECK_OK(loopback_connect(&s->bulk.links[1], s->broker, NULL));
    CHECK_OK(subject_space_init(&s->space, NULL));
    CHECK_OK(fleet_ensure(s->link, &s->space, &(struct fleet_options){0}));
    CHECK_OK(dir_make_temp(&s->dir, "bellows-keyfile"));
    open_files(s, 0, true);
}

static void store_close(struct store *s) {
    keyfiles_close(&s->files);
    transport_close(&s->bulk.links[1]);
    transport_close(&s->link);
    loopback_close(&s->broker);
    CHECK_OK(dir_remove_tree(s->dir));
    mem_free(s->dir);
}

/* Puts the bytes of one key under the digest of another (NULL: its own); returns that digest. */
static struct sha256 push(struct store *s, const char *case_name, const char *digest_of) {
    char path[256], hex[SHA256_HEX_BYTES];
    struct file_map key, other;
    struct sha256 digest;
    struct object_info info;
    struct subject bucket = bucket_keys(&s->space);
    snprintf(path, sizeof path, "%s/circuit.zkey", digest_of ? digest_of : case_name);
    CHECK_OK(file_map_open(&other, check_vectors(path)));
    CHECK_OK(sha256_of(&digest, other.bytes));
    file_map_close(&other);
    snprintf(path, sizeof path, "%s/circuit.zkey", case_name);
    CHECK_OK(file_map_open(&key, check_vectors(path)));
    sha256_hex(hex, &digest);
    CHECK_OK(object_put_bytes(&info, s->link, bucket.text, hex, key.bytes));
    file_map_close(&key);
    return digest;
}

static struct sha256 push_file(struct store *s, const char *path) {
    char hex[SHA256_HEX_BYTES];
    struct file_map key;
    struct sha256 digest;
    struct object_info info;
    struct subject bucket = bucket_keys(&s->space);
    CHECK_OK(file_map_open(&key, path));
    CHECK_OK(sha256_of(&digest, key.bytes));
    sha256_hex(hex, &digest);
    CHECK_OK(object_put_bytes(&info, s->link, bucket.text, hex, key.bytes));
    file_map_close(&key);
    return digest;
}

static struct sha256 push_spoiled(struct store *s) {
    char path[300];
    snprintf(path, sizeof path, "%s/spoiled", s->dir);
    write_spoiled_key(path, "bn128/chain200");
    return push_file(s, path);
}

/* The case's key in our own layout. */
static struct sha256 push_native(struct store *s, const char *case_name) {
    char path[300], from[256];
    struct key *key = NULL;
    snprintf(path, sizeof path, "%s/pushed.key", s->dir);
    snprintf(from, sizeof from, "%s/circuit.zkey", case_name);
    CHECK_OK(key_open(&key, check_vectors(from), (struct key_options){.allow_insecure = true}));
    CHECK_OK(native_write(path, key));
    key_unref(&key);
    return push_file(s, path);
}

static uint64_t get(struct store *s, const struct sha256 *digest) {
    struct key *key = NULL;
    struct keyfile_times times;
    CHECK_OK(keyfiles_get(&key, &times, s->files, &s->bulk, &s->space, digest, NULL));
    struct sha256 got;
    CHECK_OK(key_digest(&got, key));
    if (memcmp(digest, &got, sizeof got) != 0) { /* the native form of a .zkey */
        CHECK_EQ(KEY_FORMAT_NATIVE, key_shape(key)->format);
        CHECK_OK(key_source(&got, key));
    }
    CHECK_MEM(digest, &got, sizeof got);
    key_unref(&key);
    return times.fetch_bytes;
}

static const char *path_of(const struct store *s, const struct sha256 *digest) {
    static char path[1200];
    char hex[SHA256_HEX_BYTES];
    sha256_hex(hex, digest);
    snprintf(path, sizeof path, "%s/keys/%s", s->dir, hex);
    return path;
}

static void claim_fetched_once(void) {
    struct store s;
    store_open(&s);
    struct sha256 digest = push(&s, "bn128/mul", NULL), listed[4];
    CHECK(get(&s, &digest) > 0);
    CHECK_EQ(0, get(&s, &digest));
    open_files(&s, 0, true); /* another process of this node */
    CHECK_EQ(0, get(&s, &digest));
    CHECK_EQ(1, keyfiles_list(listed, 4, s.files));
    CHECK_MEM(&digest, &listed[0], sizeof digest);
    store_close(&s);
}

static const char *native_of(const struct store *s, const struct sha256 *digest) {
    static char path[1300];
    snprintf(path, sizeof path, "%s.native", path_of(s, digest));
    return path;
}

static enum key_format format_of(struct store *s, const struct sha256 *digest) {
    struct key *key = NULL;
    struct keyfile_times times;
    CHECK_OK(keyfiles_get(&key, &times, s->files, &s->bulk, &s->space, digest, NULL));
    enum key_format format = key_shape(key)->format;
    key_unref(&key);
    return format;
}

/* The native form takes the fetched file's place, is found by the next process, made again when damaged, and counted. */
static void claim_native(void) {
    struct store s;
    struct sha256 listed[4];
    store_open(&s);
    s.native = true;
    open_files(&s, 0, true);
    struct sha256 digest = push(&s, "bn128/mul", NULL);
    CHECK(get(&s, &digest) > 0);
    CHECK_EQ(KEY_FORMAT_NATIVE, format_of(&s, &digest));
    CHECK(file_exists(native_of(&s, &digest)) && !file_exists(path_of(&s, &digest)));
    CHECK_EQ(1, keyfiles_list(listed, 4, s.files));
    CHECK_MEM(&digest, &listed[0], sizeof digest);
    open_files(&s, 0, true);
    CHECK_EQ(0, get(&s, &digest));
    CHECK_EQ(KEY_FORMAT_NATIVE, format_of(&s, &digest));
    FILE *file = fopen(native_of(&s, &digest), "r+e");
    CHECK(file && fseek(file, 5000, SEEK_SET) == 0 && fputc(0x77, file) == 0x77);
    CHECK_EQ(0, fclose(file));
    open_files(&s, 0, true);
    CHECK(get(&s, &digest) > 0); /* fetched again */
    CHECK_EQ(KEY_FORMAT_NATIVE, format_of(&s, &digest));
    struct sha256 other = push(&s, "bn128/dense", NULL);
    open_files(&s, 60000, true); /* no room for both */
    CHECK(get(&s, &other) > 0);
    CHECK(!file_exists(native_of(&s, &digest)) && file_exists(native_of(&s, &other)));
    store_close(&s);
}

static void damage(const char *path, long at) {
    FILE *file = fopen(path, "r+e");
    CHECK(file && fseek(file, at, SEEK_SET) == 0);
    int byte = fgetc(file);
    CHECK(fseek(file, at, SEEK_SET) == 0 && fputc(byte ^ 1, file) != EOF);
    CHECK_EQ(0, fclose(file));
}

/* A key that was pushed in our own layout is used as it came, whatever the node makes of .zkeys. */
static void claim_pushed_native(void) {
    for (int native = 0; native < 2; native++) {
        struct store s;
        store_open(&s);
        s.native = native;
        open_files(&s, 0, true);
        struct sha256 digest = push_native(&s, "bls12381/dense");
        CHECK(get(&s, &digest) > 0);
        CHECK_EQ(KEY_FORMAT_NATIVE, format_of(&s, &digest));
        CHECK(file_exists(path_of(&s, &digest)) && !file_exists(native_of(&s, &digest)));
        open_files(&s, 0, true);
        CHECK_EQ(0, get(&s, &digest));
        static const long places[] = {3, 900, 1000, 5000, 60000}; /* magic, header, seal, points */
        for (size_t i = 0; i < COUNT_OF(places); i++) {
            damage(path_of(&s, &digest), places[i]);
            open_files(&s, 0, true);
            CHECK(get(&s, &digest) > 0); /* fetched again */
        }
        store_close(&s);
    }
}

static void claim_damaged_entries(void) {
    struct store s;
    store_open(&s);
    struct sha256 digest = push(&s, "bn128/mul", NULL);
    static const size_t lengths[] = {0, 1, 4, 11, 12, 1000};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        uint8_t junk[1000] = {'z', 'k', 'e', 'y'};
        FILE *file = fopen(path_of(&s, &digest), "we");
        CHECK(file);
        CHECK_EQ(lengths[i], fwrite(junk, 1, lengths[i], file));
        fclose(file);
        open_files(&s, 0, true);
        CHECK(get(&s, &digest) > 0); /* not believed: fetched again */
    }
    damage(path_of(&s, &digest), 900); /* one bit of a whole file */
    open_files(&s, 0, true);
    CHECK(get(&s, &digest) > 0);
    store_close(&s);
}

static void claim_cancelled_fetch(void) {
    struct store s;
    struct key *key = NULL;
    struct keyfile_times times;
    struct sha256 listed[2];
    _Atomic int cancel = 1;
    store_open(&s);
    struct sha256 digest = push(&s, "bn128/mul", NULL);
    CHECK_ERR(E_CANCELLED,
              keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digest, &cancel));
    CHECK_EQ(0, keyfiles_list(listed, 2, s.files));
    CHECK(get(&s, &digest) > 0);
    store_close(&s);
}

static void claim_bad_points(void) {
    struct store s;
    struct key *key = NULL;
    struct keyfile_times times;
    struct file_map file;
    struct sha256 digest;
    struct object_info info;
    char hex[SHA256_HEX_BYTES];
    _Atomic uint64_t progress_ns = 0;
    store_open(&s);
    struct subject bucket = bucket_keys(&s.space);
    CHECK_OK(file_map_open(&file, check_vectors("bn128/bad/off-curve-a.zkey")));
    CHECK_OK(sha256_of(&digest, file.bytes));
    sha256_hex(hex, &digest);
    CHECK_OK(object_put_bytes(&info, s.link, bucket.text, hex, file.bytes));
    file_map_close(&file);
    CHECK_ERR(E_CURVE, keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digest, NULL));
    digest = push(&s, "bn128/mul", NULL);
    CHECK_OK(keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digest, NULL));
    CHECK_OK(keyfiles_check(s.files, key, &progress_ns));
    key_unref(&key);
    store_close(&s);
}

static void claim_unknown_key(void) {
    struct store s;
    struct sha256 digest = {{7}};
    struct key *key = NULL;
    struct keyfile_times times;
    store_open(&s);
    CHECK_ERR(E_RANGE, keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digest, NULL));
    CHECK_HAS(err_detail(), "bellows key push");
    CHECK_HAS(err_detail(), "0700000000");
    store_close(&s);
}

static void claim_other_content(void) {
    struct store s;
    struct key *key = NULL;
    struct keyfile_times times;
    store_open(&s);
    struct sha256 digest =
        push(&s, "bn128/mul-contrib", "bn128/mul"); /* somebody stored another key under its name */
    CHECK_ERR(E_IO, keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digest, NULL));
    CHECK_HAS(err_detail(), "has digest");
    CHECK_EQ(-1, access(path_of(&s, &digest), F_OK)); /* and nothing of it stays */
    push(&s, "bn128/mul", NULL);
    CHECK(get(&s, &digest) > 0);
    store_close(&s);
}

/* The entry is there, the chunks are not: pushed again, and it is whole. */
static void claim_purged_key(void) {
    struct store s;
    struct key *key = NULL;
    struct keyfile_times times;
    struct object_info info;
    bool found = false, whole = true;
    char hex[SHA256_HEX_BYTES];
    store_open(&s);
    struct subject bucket = bucket_keys(&s.space);
    struct sha256 digest = push(&s, "bn128/mul", NULL);
    sha256_hex(hex, &digest);
    CHECK_OK(object_info(&info, &found, s.link, bucket.text, hex));
    CHECK_OK(object_is_whole(&whole, s.link, bucket.text, &info));
    CHECK(found && whole);
    CHECK_OK(object_purge(s.link, bucket.text, info.nuid, NULL));
    CHECK_OK(object_is_whole(&whole, s.link, bucket.text, &info));
    CHECK(!whole);
    CHECK_ERR(E_IO, keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digest, NULL));
    CHECK_HAS(err_detail(), "not whole");
    CHECK_HAS(err_detail(), "bellows key push");
    push(&s, "bn128/mul", NULL);
    CHECK(get(&s, &digest) > 0);
    store_close(&s);
}

/* Two keys of one circuit, from different ceremonies, are two keys. */
static void claim_changed_key(void) {
    struct store s;
    store_open(&s);
    struct sha256 first = push(&s, "bn128/mul", NULL), second = push(&s, "bn128/mul-contrib", NULL);
    CHECK(memcmp(&first, &second, sizeof first));
    CHECK(get(&s, &first) > 0);
    CHECK(get(&s, &second) > 0);
    CHECK_EQ(0, get(&s, &first));
    store_close(&s);
}

static void claim_insecure(void) {
    struct store s;
    struct key *key = NULL;
    struct keyfile_times times;
    store_open(&s);
    struct sha256 digest = push(&s, "bn128/mul", NULL);
    open_files(&s, 0, false);
    CHECK_ERR(E_RANGE, keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digest, NULL));
    CHECK_HAS(err_detail(), "allow-insecure-keys");
    store_close(&s);
}

static void claim_limit(void) {
    struct store s;
    struct key *key = NULL;
    struct keyfile_times times;
    struct sha256 listed[8];
    store_open(&s);
    struct sha256 a = push(&s, "bn128/mul", NULL), b = push(&s, "bn128/mul-contrib", NULL),
                  big = push(&s, "bn128/chain200", NULL);
    uint64_t a_bytes = get(&s, &a), b_bytes = get(&s, &b);
    open_files(&s, a_bytes + b_bytes + 100, true);
    CHECK_ERR(E_LIMIT, keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &big, NULL));
    struct sha256 c = push(&s, "bn128/min", NULL);
    clock_sleep_ns(20000000); /* times of files are as coarse as the kernel's tick */
    CHECK_EQ(0, get(&s, &a)); /* b is now the one used longest ago */
    uint64_t c_bytes = get(&s, &c);
    CHECK(c_bytes > 0);
    CHECK_EQ(2, keyfiles_list(listed, 8, s.files));
    CHECK_EQ(a_bytes + c_bytes, keyfiles_bytes(s.files));
    CHECK_EQ(-1, access(path_of(&s, &b), F_OK));
    CHECK_EQ(0, access(path_of(&s, &a), F_OK));
    store_close(&s);
}

static bool go_on(void *ctx, double done) {
    bool *answer = ctx;
    (void)done;
    return *answer;
}

static void claim_idle_check(void) {
    struct store s;
    struct sha256 digests[2], digest;
    struct key *key = NULL, *unchecked = NULL;
    struct keyfile_times times;
    struct key_report report;
    bool answer = false;
    store_open(&s);
    setenv("BELLOWS_CACHE", s.dir, 1); /* nothing is remembered from other runs */
    CHECK(!keyfiles_next_unchecked(&unchecked, &digest, s.files));
    digests[0] = push(&s, "bls12381/chain200", NULL);
    digests[1] = push_spoiled(&s);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digests[i], NULL));
        key_unref(&key);
    }
    CHECK(keyfiles_next_unchecked(&unchecked, &digest, s.files));
    CHECK_MEM(&digests[0], &digest, sizeof digest);
    CHECK_ERR(E_CANCELLED, keyfiles_check_idle(&report, s.files, unchecked, go_on, &answer));
    key_unref(&unchecked);
    CHECK(
        keyfiles_next_unchecked(&unchecked, &digest, s.files)); /* interrupted: still to be done */
    CHECK_MEM(&digests[0], &digest, sizeof digest);
    answer = true;
    CHECK_OK(keyfiles_check_idle(&report, s.files, unchecked, go_on, &answer));
    key_unref(&unchecked);
    CHECK(keyfiles_next_unchecked(&unchecked, &digest, s.files));
    CHECK_MEM(&digests[1], &digest, sizeof digest);
    CHECK_ERR(E_CURVE, keyfiles_check_idle(&report, s.files, unchecked, go_on, &answer));
    key_unref(&unchecked);
    CHECK(!keyfiles_next_unchecked(&unchecked, &digest, s.files));
    CHECK_OK(keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digests[0], NULL));
    key_unref(&key);
    CHECK_ERR(E_CURVE, keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digests[1], NULL));
    CHECK(!key);
    store_close(&s);
}

static void claim_cancelled_wait(void) {
    struct store s;
    struct key *key = NULL;
    struct keyfile_times times;
    _Atomic int cancel = 1;
    char path[1300];
    store_open(&s);
    struct sha256 digest = push(&s, "bn128/mul", NULL);
    snprintf(path, sizeof path, "%s.lock", path_of(&s, &digest));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* another lane fetches */
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
    CHECK_ERR(E_CANCELLED,
              keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digest, &cancel));
    close(fd);
    cancel = 0;
    CHECK_OK(keyfiles_get(&key, &times, s.files, &s.bulk, &s.space, &digest, &cancel));
    key_unref(&key);
    store_close(&s);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a key is fetched once and found again", claim_fetched_once},
        {"with `native` a key lies in our own layout, is found again, made again, evicted",
         claim_native},
        {"a key that was pushed in our own layout is used as it came", claim_pushed_native},
        {"an empty, cut or damaged file is not believed", claim_damaged_entries},
        {"a fetch that is cancelled leaves nothing behind", claim_cancelled_fetch},
        {"a key with a bad point is refused, a sound one passes the full check", claim_bad_points},
        {"a key that the fleet has not got is refused with the command that registers it",
         claim_unknown_key},
        {"what is stored under a digest must have it", claim_other_content},
        {"a key whose chunks are gone says how it is mended", claim_purged_key},
        {"a changed key is another key", claim_changed_key},
        {"an insecure key is refused unless allowed", claim_insecure},
        {"keys are checked in idle time, an interrupted check again, and a bad key is refused then",
         claim_idle_check},
        {"who waits for another lane's fetch can be cancelled", claim_cancelled_wait},
        {"the folder keeps its limit, the key used longest ago leaves", claim_limit},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
