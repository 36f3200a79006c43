/* The key as an object: a mapped, guarded file around what its format's reader found.
 *
 * Opening costs the headers, one pass over the coefficients and a few hundred points; everything else stays in the
 * mapping until a backend reads it, each section once and from front to back. The digest covers the whole file and is
 * remembered by the file's identity. Identity includes ctime, which unlike mtime cannot be set back, and a file that
 * changed within the last two seconds is not remembered at all: a second change could leave every stamp as it was.
 */
#include "node/key/key.h"

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"
#include "node/curve/encode.h"
#include "node/key/mapping_guard.h"
#include "node/key/native.h"
#include "node/key/parts.h"
#include "node/key/remembered.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct key {
    _Atomic int refs_count;
    struct guarded_map file;         /* owned; without a base: bytes of the caller's */
    struct key_parts parts;          /* owned; spans lent from the file */
    struct prepared *prepared;       /* owned; NULL: not asked for */
    struct lock lock;                /* guards the two below; a leaf, nothing is called under it */
    bool digest_known;               /* [lock] */
    struct sha256 digest;            /* [lock] */
    char digested[SHA256_HEX_BYTES]; /* [lock] the file's identity when it was; "": not known */
    char read_whole
        [SHA256_HEX_BYTES]; /* of a native key: the file's identity when it was; "": not */
};

/* Names the file's present state, and says whether it may be remembered yet; false when it cannot be named. */
static bool identity_name_at(char out[SHA256_HEX_BYTES], bool *settled,
                             const struct file_map *map) {
    const uint64_t settled_ns = 2000000000ull;
    struct stat st;
    if (map->heap || stat(map->path, &st) != 0 || (uint64_t)st.st_ino != map->inode ||
        (uint64_t)st.st_dev != map->device || (uint64_t)st.st_size != map->bytes.len) {
        return false;
    }
    uint64_t changed_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
    uint64_t now_ns = clock_unix_ns();
    *settled = now_ns >= changed_ns && now_ns - changed_ns >= settled_ns;
    char text[256];
    int len = snprintf(text, sizeof text,
                       "device %" PRIu64 " inode %" PRIu64 " bytes %zu modified %" PRIu64
                       " changed %" PRIu64,
                       map->device, map->inode, map->bytes.len, map->mtime_ns, changed_ns);
    struct sha256 digest;
    if (sha256_of(&digest, bytes_of(text, (size_t)len)) != OK) {
        return false;
    }
    sha256_hex(out, &digest);
    return true;
}

static bool identity_name(char out[SHA256_HEX_BYTES], const struct file_map *map) {
    bool settled = false;
    return identity_name_at(out, &settled, map) && settled;
}

static void digest_remember(const char *identity, const struct sha256 *digest) {
    char hex[SHA256_HEX_BYTES], line[SHA256_HEX_BYTES + 1];
    sha256_hex(hex, digest);
    snprintf(line, sizeof line, "%s\n", hex);
    remembered_put("digests", identity, line);
}

/* A file that was read too young to be remembered is old enough when the key goes, if it is still the same. */
static void remember_late(const struct key *key) {
    char now[SHA256_HEX_BYTES];
    if ((!key->read_whole[0] && !key->digested[0]) || !identity_name(now, &key->file.map)) {
        return;
    }
    if (!strcmp(now, key->read_whole)) {
        remembered_put("native", now, "whole\n");
    }
    if (!strcmp(now, key->digested)) {
        digest_remember(now, &key->digest);
    }
}

static void key_free(struct key **k) {
    if (!*k) {
        return;
    }
    remember_late(*k);
    key_parts_done(&(*k)->parts);
    mem_free((*k)->prepared);
    guarded_close(&(*k)->file);
    lock_done(&(*k)->lock);
    mem_free(*k);
    *k = NULL;
}

static bool has_suffix(const char *path, const char *suffix) {
    size_t len = strlen(path), tail = strlen(suffix);
    return len >= tail && strcmp(path + len - tail, suffix) == 0;
}

/* Does the file begin with a point in bellman's coding? */
static bool starts_like_bellman(struct bytes file) {
    const struct curve *c = curve_by_id(CURVE_BLS12_381);
    struct g1 alpha;
    return file.len >= c->g1_bytes &&
           bellman_g1_read(&alpha, c, bytes_of(file.ptr, c->g1_bytes), false, false) == OK;
}

FALLIBLE key_parse(struct key_parts *out, struct bytes file, const char *name) {
    enum file_kind kind = file_kind_of(file);
    if (kind == FILE_ZKEY) {
        return zkey_parse(out, file, name);
    }
    if (kind == FILE_NATIVE) {
        return native_parse(out, file, name, false);
    }
    REQUIRE(kind != FILE_WTNS && kind != FILE_EVALUATIONS, E_FORMAT,
            "%s: this is %s, not a key; the key comes first, then the witness", name,
            file_kind_title(kind));
    REQUIRE(kind == FILE_UNKNOWN || kind == FILE_RAW_SCALARS, E_FORMAT,
            "%s: this is %s, not a proving key (.zkey or bellman .params)", name,
            file_kind_title(kind));
    if (has_suffix(name, ".params") || starts_like_bellman(file)) {
        return bellman_parse(out, file, name);
    }
    REQUIRE(file.len >= 4, E_FORMAT,
            "%s: the file has %zu bytes, too few for a proving key: fetch it again", name,
            file.len);
    FAIL(
        E_FORMAT,
        "%s: not a proving key: it starts with %02x %02x %02x %02x, neither with \"zkey\" nor with "
        "a point as bellman's .params do; the file is damaged or of another kind",
        name, file.ptr[0], file.ptr[1], file.ptr[2], file.ptr[3]);
}

#define PUT_BACK "put it back whole and never write over a key in place"

/* A native file that was read whole is not read whole again while it stays what it is. */
static FALLIBLE native_open(struct key *key) {
    char before[SHA256_HEX_BYTES], after[SHA256_HEX_BYTES], line[REMEMBERED_BYTES_MAX];
    const struct file_map *map = &key->file.map;
    bool settled = false, named = identity_name_at(before, &settled, map);
    if (named && settled && remembered_get(line, "native", before)) {
        return native_parse(&key->parts, map->bytes, map->path, true);
    }
    TRY(native_parse(&key->parts, map->bytes, map->path, false));
    if (named && identity_name_at(after, &settled, map) && !strcmp(before, after)) {
        memcpy(key->read_whole, before, sizeof key->read_whole);
    }
    return OK;
}

static FALLIBLE key_new(struct key **out) {
    TRY(mem_new(out, 1, sizeof **out));
    atomic_init(&(*out)->refs_count, 1);
    lock_init(&(*out)->lock, LOCK_KEY);
    return OK;
}

static FALLIBLE refuse_insecure(const struct key *key, struct key_options options) {
    REQUIRE(options.allow_insecure || !vkey_is_insecure(&key->parts.vkey), E_RANGE,
            "%s: gamma equals delta: nobody contributed to this key's second phase, and anyone can "
            "forge proofs for it; contribute (snarkjs zkey contribute), or for tests allow it "
            "with --allow-insecure-keys",
            key->file.map.path);
    return OK;
}

FALLIBLE key_from_memory(struct key **out, struct bytes native, const char *name,
                         struct key_options options) {
    AUTO(key_free) struct key *key = NULL;
    TRY(key_new(&key));
    key->file.map = (struct file_map){.bytes = native, .path = mem_strdup(name), .heap = true};
    REQUIRE(key->file.map.path, E_LIMIT, "out of memory: a name of %zu bytes", strlen(name));
    TRY(native_parse(&key->parts, native, name, true));
    TRY(refuse_insecure(key, options));
    *out = TAKE(key);
    return OK;
}

FALLIBLE key_open(struct key **out, const char *path, struct key_options options) {
    AUTO(key_free) struct key *key = NULL;
    TRY(key_new(&key));
    TRY(guarded_open(&key->file, path));
    if (!key->file.map.heap) {
        mapping_advise(key->file.map.bytes, MADV_RANDOM); /* headers and single points */
    }
    enum err e = file_kind_of(key->file.map.bytes) == FILE_NATIVE
                     ? native_open(key)
                     : key_parse(&key->parts, key->file.map.bytes, key_path(key));
    TRY(guarded_intact(&key->file, PUT_BACK));
    TRY(e);
    TRY(refuse_insecure(key, options));
    if (!key->file.map.heap) {
        mapping_advise(key->file.map.bytes, MADV_SEQUENTIAL); /* each section once, front to back */
    }
    *out = TAKE(key);
    return OK;
}

struct key *key_ref(struct key *key) {
    atomic_fetch_add(&key->refs_count, 1);
    return key;
}

void key_unref(struct key **key) {
    if (*key && atomic_fetch_sub(&(*key)->refs_count, 1) == 1) {
        key_free(key);
    }
    *key = NULL;
}

FALLIBLE key_intact(const struct key *key) {
    return guarded_intact(&key->file, PUT_BACK);
}

struct bytes key_streamed(const struct key *key) {
    return key->file.map.heap ? key->file.map.bytes : (struct bytes){0};
}

const char *key_path(const struct key *key) {
    return key->file.map.path;
}

const struct curve *key_curve(const struct key *key) {
    return key->parts.curve;
}

const struct key_shape *key_shape(const struct key *key) {
    return &key->parts.shape;
}

const struct vkey *key_vkey(const struct key *key) {
    return &key->parts.vkey;
}

enum err key_prepare(struct key *key) {
    return key->prepared ? OK : prepared_new(&key->prepared, &key->parts.vkey);
}

const struct prepared *key_prepared(const struct key *key) {
    return key->prepared;
}

const struct key_parts *key_parts_of(const struct key *key) {
    return &key->parts;
}

struct bytes key_points_raw(bool *zkey_layout, const struct key *key, enum key_points which) {
    ASSERT(which < KEY_POINTS_COUNT);
    *zkey_layout = key->parts.zkey_layout;
    return key->parts.points[which];
}

struct bytes key_terms_raw(const struct key *key) {
    return key->parts.terms;
}

const struct rows *key_rows(const struct key *key, unsigned matrix) {
    ASSERT(matrix < 2);
    return key->parts.rows[matrix].start ? &key->parts.rows[matrix] : NULL;
}

struct bytes key_dictionary(const struct key *key) {
    return key->parts.dictionary;
}

struct key_term key_term_at(struct bytes terms, size_t idx) {
    ASSERT(idx < terms.len / KEY_TERM_BYTES);
    const uint8_t *at = terms.ptr + idx * KEY_TERM_BYTES;
    struct key_term term = {load_u32le(at), load_u32le(at + 4), load_u32le(at + 8), {{0}}};
    for (int limb = 0; limb < 4; limb++) {
        term.value_r2.w[limb] = load_u64le(at + 12 + 8 * limb);
    }
    return term;
}

struct key_contributions key_contributions(const struct key *key) {
    return key->parts.contributions;
}

size_t key_sections(struct key_section_view *out, size_t out_max, const struct key *key) {
    size_t count = key->parts.sections_count;
    for (size_t i = 0; i < count && i < out_max; i++) {
        out[i] = key->parts.sections[i];
    }
    return count;
}

/* ── Digest ── */

/* `identity`: the file's when it was read, "" where it has none or is remembered already. */
static FALLIBLE digest_compute(struct sha256 *out, char identity[SHA256_HEX_BYTES],
                               const struct key *key) {
    char after[SHA256_HEX_BYTES], line[REMEMBERED_BYTES_MAX];
    bool settled = false, named = identity_name_at(identity, &settled, &key->file.map);
    if (named && settled && remembered_get(line, "digests", identity) && strlen(line) == 65 &&
        line[64] == '\n') {
        line[64] = '\0';
        if (sha256_from_hex(out, line) == OK) {
            identity[0] = '\0';
            return OK;
        }
    }
    struct sha256 digest;
    TRY(sha256_of(&digest, key->file.map.bytes));
    TRY(key_intact(key));
    if (!named || !identity_name_at(after, &settled, &key->file.map) ||
        strcmp(identity, after) != 0) {
        identity[0] = '\0';
    } else if (settled) {
        digest_remember(identity, &digest);
        identity[0] = '\0';
    }
    *out = digest;
    return OK;
}

FALLIBLE key_digest(struct sha256 *out, struct key *key) {
    char identity[SHA256_HEX_BYTES] = "";
    lock_take(&key->lock);
    bool known = key->digest_known;
    struct sha256 digest = key->digest;
    lock_give(&key->lock);
    if (!known) {
        TRY(digest_compute(&digest, identity, key));
        lock_take(&key->lock);
        key->digest = digest;
        key->digest_known = true;
        memcpy(key->digested, identity, sizeof key->digested);
        lock_give(&key->lock);
    }
    *out = digest;
    return OK;
}

FALLIBLE key_source(struct sha256 *out, struct key *key) {
    if (key->parts.shape.format != KEY_FORMAT_NATIVE) {
        return key_digest(out, key);
    }
    *out = key->parts.source;
    return OK;
}

FALLIBLE key_knows_circuit(const struct key *key) {
    REQUIRE(key->parts.shape.format != KEY_FORMAT_BELLMAN, E_USAGE,
            "%s: bellman parameters hold neither densities nor matrices of their circuit; add them "
            "once (bellows key import %s NATIVE --circuit FILE) and use NATIVE",
            key->file.map.path, key->file.map.path);
    return OK;
}
