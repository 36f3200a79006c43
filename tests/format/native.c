/* Keys in our own layout: made from every .zkey of the corpus, refused when damaged, not read twice. */
#include "node/key/native.h"
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/format/damaged.h"
#include "tests/unit/groth16/terms.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *scratch; /* owned by the claim that made it */
static char native_path[512];

static void scratch_open(void) {
    CHECK_OK(dir_make_temp(&scratch, "bellows-native"));
    setenv("BELLOWS_CACHE", scratch, 1);
    snprintf(native_path, sizeof native_path, "%s/key.native", scratch);
}

static void scratch_close(void) {
    CHECK_OK(dir_remove_tree(scratch));
    mem_free(scratch);
    scratch = NULL;
}

static struct key *open_key(const char *path) {
    struct key *key = NULL;
    CHECK_OK(key_open(&key, path, (struct key_options){.allow_insecure = true}));
    return key;
}

static void make(const char *zkey) {
    struct key *key = open_key(zkey);
    CHECK_OK(native_write(native_path, key));
    key_unref(&key);
}

static void check_case(const char *path) {
    struct sha256 a, b;
    make(path);
    struct key *zkey = open_key(path), *native = open_key(native_path);
    const struct key_shape *x = key_shape(zkey), *y = key_shape(native);
    CHECK_EQ(KEY_FORMAT_NATIVE, y->format);
    CHECK_EQ(x->curve, y->curve);
    CHECK_EQ(x->wires_count, y->wires_count);
    CHECK_EQ(x->public_count, y->public_count);
    CHECK_EQ(x->domain_size, y->domain_size);
    CHECK_EQ(x->h_basis, y->h_basis);
    CHECK(!y->h_reversed);
    for (unsigned k = 0; k < KEY_POINTS_COUNT; k++) {
        bool p, q;
        struct bytes u = key_points_raw(&p, zkey, k), v = key_points_raw(&q, native, k);
        CHECK(p && q && u.len == v.len);
        CHECK_MEM(u.ptr, v.ptr, u.len);
        CHECK_EQ(0, (uintptr_t)v.ptr % NATIVE_ALIGN);
    }
    check_terms(zkey, native);
    CHECK_OK(key_source(&a, zkey));
    CHECK_OK(key_source(&b, native));
    CHECK_MEM(&a, &b, sizeof a);
    CHECK_OK(key_digest(&b, native));
    CHECK(memcmp(&a, &b, sizeof a) != 0);
    const struct vkey *v = key_vkey(zkey), *w = key_vkey(native);
    CHECK_MEM(&v->alpha1, &w->alpha1, sizeof v->alpha1);
    CHECK_MEM(&v->beta1, &w->beta1, sizeof v->beta1);
    CHECK_MEM(&v->delta1, &w->delta1, sizeof v->delta1);
    CHECK_MEM(&v->beta2, &w->beta2, sizeof v->beta2);
    CHECK_MEM(&v->gamma2, &w->gamma2, sizeof v->gamma2);
    CHECK_MEM(&v->delta2, &w->delta2, sizeof v->delta2);
    CHECK_MEM(v->ic, w->ic, ((size_t)v->public_count + 1) * key_curve(zkey)->g1_bytes);
    key_unref(&zkey);
    key_unref(&native);
}

static void claim_corpus(void) {
    static const char *const curves[] = {"bn128", "bls12381"};
    unsigned count = 0;
    scratch_open();
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        DIR *dir = opendir(check_vectors(curves[i]));
        CHECK(dir);
        for (struct dirent *e; (e = readdir(dir));) {
            char path[1024];
            snprintf(path, sizeof path, "%s/%s/circuit.zkey", check_vectors(curves[i]), e->d_name);
            if (e->d_name[0] != '.' && file_exists(path)) {
                check_case(path);
                count++;
            }
        }
        closedir(dir);
    }
    CHECK(count >= 36);
    scratch_close();
}

static struct bytes_mut load(void) {
    struct bytes_mut file;
    make(check_vectors("bn128/mul/circuit.zkey"));
    CHECK_OK(file_read_all(&file, native_path, 1 << 24));
    return file;
}

static enum err parse(struct bytes_mut file, bool trusted) {
    struct key_parts parts;
    enum err code = native_parse(&parts, bytes_of(file.ptr, file.len), "damaged", trusted);
    if (code == OK) {
        key_parts_done(&parts);
    }
    return code;
}

/* One bit anywhere, every length: refused; what the seal covers also by those who trust the rest. */
static void claim_damage(void) {
    scratch_open();
    struct bytes_mut file = load();
    CHECK_OK(parse(file, false));
    for (size_t at = 0; at < file.len; at += at < NATIVE_HEADER_BYTES ? 1 : 7) {
        file.ptr[at] ^= (uint8_t)(1u << at % 8);
        CHECK_MSG(parse(file, false) != OK, "byte %zu", at);
        CHECK_MSG(at < 8 || at >= NATIVE_HEADER_BYTES || parse(file, true) != OK, "byte %zu", at);
        file.ptr[at] ^= (uint8_t)(1u << at % 8);
    }
    for (size_t len = 0; len < file.len; len += len < NATIVE_HEADER_BYTES ? 1 : 61) {
        CHECK_MSG(parse((struct bytes_mut){file.ptr, len}, true) != OK, "%zu bytes", len);
    }
    CHECK_OK(parse(file, true));
    mem_free(file.ptr);
    scratch_close();
}

/* A file that says of itself that it is sound. */
static void claim_lies(void) {
    static const struct {
        size_t at;
        uint32_t value;
        enum err code;
        const char *says;
    } header[] = {
        {8, 2, E_FORMAT, "version 2"}, {12, 9, E_CURVE, "unknown curve 9"},
        {16, 3, E_FORMAT, "basis 3"},  {20, 2, E_FORMAT, "order 2"},
        {24, 0, E_RANGE, "0 wires"},   {28, UINT32_MAX, E_RANGE, "public signals"},
        {32, 60, E_RANGE, "2^60"},     {32, 0, E_RANGE, "2^0"},
        {44, 7, E_RANGE, "terms"},     {56, 1, E_RANGE, "dictionary of 1"},
        {64, 5, E_RANGE, "long rows"},
    };
    scratch_open();
    struct bytes_mut file = load();
    for (size_t i = 0; i < COUNT_OF(header); i++) {
        uint32_t old = load_u32le(file.ptr + header[i].at);
        struct sha256 seal;
        store_u32le(file.ptr + header[i].at, header[i].value);
        CHECK_OK(sha256_of(&seal, bytes_of(file.ptr, 992)));
        memcpy(file.ptr + 992, seal.b, sizeof seal.b);
        CHECK_ERR(header[i].code, parse(file, true));
        CHECK_HAS(err_detail(), header[i].says);
        store_u32le(file.ptr + header[i].at, old);
    }
    CHECK_OK(native_seal(file));
    CHECK_OK(parse(file, false));
    /* The places of sections 6 to 12 as key inspect shows them. */
    struct key *key = open_key(native_path);
    struct key_section_view views[NATIVE_SECTIONS];
    CHECK_EQ(NATIVE_SECTIONS, key_sections(views, NATIVE_SECTIONS, key));
    static const struct {
        unsigned section;
        const char *says;
    } words[] = {{6, "+1 and -1"},
                 {7, "rows of A"},
                 {9, "columns of A"},
                 {10, "columns of B"},
                 {11, "columns of A"}};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        uint8_t *at = file.ptr + views[words[i].section].offset;
        uint32_t old = load_u32le(at);
        store_u32le(at, UINT32_MAX);
        CHECK_OK(native_seal(file));
        CHECK(parse(file, false) != OK);
        CHECK_HAS(err_detail(), words[i].says);
        store_u32le(at, old);
    }
    uint8_t *point = file.ptr + views[1].offset;
    memset(point, 0xff, 32);
    CHECK_OK(native_seal(file));
    CHECK_ERR(E_RANGE, parse(file, false));
    CHECK_HAS(err_detail(), "A points: point 0");
    key_unref(&key);
    mem_free(file.ptr);
    scratch_close();
}

static bool is_remembered(void) {
    char folder[600];
    snprintf(folder, sizeof folder, "%s/native", scratch);
    DIR *dir = opendir(folder);
    size_t count = 0;
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        count += e->d_name[0] != '.';
    }
    if (dir) {
        closedir(dir);
    }
    return count > 0;
}

/* Read whole once; after that the bulk is not looked at while the file stays the same, and again when it does not. */
static void claim_remembered(void) {
    scratch_open();
    make(check_vectors("bn128/mul/circuit.zkey"));
    struct key *key = open_key(native_path);
    CHECK(!is_remembered()); /* too young */
    clock_sleep_ns(2100000000ull);
    key_unref(&key);
    CHECK(is_remembered()); /* old enough, and unchanged, when it went */
    struct bytes_mut file;
    CHECK_OK(file_read_all(&file, native_path, 1 << 24));
    file.ptr[2 * NATIVE_ALIGN + 8] ^= 1; /* of a point */
    CHECK_OK(parse(file, true));
    CHECK_ERR(E_FORMAT, parse(file, false));
    CHECK_OK(file_write_all(native_path, bytes_of(file.ptr, file.len)));
    struct key *changed = NULL;
    CHECK_ERR(E_FORMAT, key_open(&changed, native_path, (struct key_options){true}));
    CHECK_HAS(err_detail(), "checksum");
    mem_free(file.ptr);
    scratch_close();
}

static void claim_refusals(void) {
    struct key *key = NULL;
    scratch_open();
    make(check_vectors("bn128/base/circuit.zkey"));
    CHECK_OK(key_open(&key, native_path, (struct key_options){true}));
    CHECK_ERR(E_USAGE, native_write(native_path, key));
    CHECK_HAS(err_detail(), "only a .zkey");
    key_unref(&key);
    scratch_close();
}

/* The check of a .zkey says nothing about a file that claims to be made from it; that one is remembered by its own bytes. */
static void claim_checks(void) {
    struct key_report report;
    scratch_open();
    const char *path = check_vectors("bn128/mul/circuit.zkey");
    make(path);
    struct key *zkey = open_key(path), *native = open_key(native_path);
    CHECK_OK(key_check(&report, zkey, NULL, NULL, NULL));
    CHECK(!report.remembered);
    CHECK_OK(key_check(&report, zkey, NULL, NULL, NULL));
    CHECK(report.remembered);
    CHECK_OK(key_check(&report, native, NULL, NULL, NULL));
    CHECK(!report.remembered && report.points_checked > 0);
    CHECK_OK(key_check(&report, native, NULL, NULL, NULL));
    CHECK(report.remembered);
    key_unref(&zkey);
    key_unref(&native);
    scratch_close();
}

static enum err write_and_open(void *ctx) {
    struct key *key = NULL;
    TRY(native_write(native_path, ctx));
    TRY(key_open(&key, native_path, (struct key_options){true}));
    key_unref(&key);
    return OK;
}

static void claim_allocations(void) {
    scratch_open();
    struct key *key = open_key(check_vectors("bn128/mul/circuit.zkey"));
    struct sha256 digest;
    CHECK_OK(key_digest(&digest, key));
    CHECK(check_allocations(write_and_open, key) > 10);
    key_unref(&key);
    scratch_close();
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"every .zkey of the corpus becomes a native key of the same content, which names it",
         claim_corpus},
        {"damage anywhere and every cut are refused", claim_damage},
        {"a sealed file that lies is refused with what is wrong", claim_lies},
        {"a native key is read whole once, and again when it changed", claim_remembered},
        {"only a .zkey becomes native", claim_refusals},
        {"what is remembered of a .zkey's points does not vouch for a native key", claim_checks},
        {"native_write and opening survive every failed allocation", claim_allocations},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
