/* Writer and reader share `plan`, which turns counts into places; so a file is right or refused, never misread.
 *
 * A key is made in place: its sections are filled where they will lie, then hashed, several at once, and the header, which needs
 * the hashes, comes last. So whoever makes a key of 75 GB needs no heap for it; the system writes its pages to the disk
 * as it likes. Points of a .zkey are copied as they are.
 */
#include "node/key/native.h"

#include "node/base/mem.h"
#include "node/key/mapping_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REMAKE "the file is damaged: remove it, it is made again from the key"

enum {
    SEC_VKEY = 0,
    SEC_POINTS = 1,
    SEC_DICTIONARY = 6,
    SEC_START = 7,
    SEC_COLUMNS = 9,
    SEC_COEFFICIENTS = 11,
    SEC_LONG = 13
};
enum { AT_NAME = 88, AT_SUMS = 120, AT_SUMS_END = AT_SUMS + 8 * NATIVE_SECTIONS, AT_SEAL = 992 };

static const char *const titles[NATIVE_SECTIONS] = {
    "verifying part", "A points",          "B1 points",         "B2 points",      "L points",
    "H points",       "dictionary",        "rows of A",         "rows of B",      "columns of A",
    "columns of B",   "coefficients of A", "coefficients of B", "long rows of A", "long rows of B"};

struct plan_native {
    struct native_counts counts;
    uint64_t offset[NATIVE_SECTIONS], bytes[NATIVE_SECTIONS], file_bytes;
};

static void count_points(struct key_shape *s) {
    s->points_count[KEY_A] = s->points_count[KEY_B1] = s->points_count[KEY_B2] = s->wires_count;
    s->points_count[KEY_L] = s->wires_count - s->public_count - 1;
    s->points_count[KEY_H] = s->domain_size;
}

/* Counts to places. Every count is below 2^33 by then, so no sum overflows. */
static void place(struct plan_native *p) {
    const struct curve *c = p->counts.curve;
    struct key_shape *s = &p->counts.shape;
    uint64_t rows_bytes = 4 * (s->domain_size + 1), at = NATIVE_HEADER_BYTES;
    count_points(s);
    p->bytes[SEC_VKEY] =
        3 * c->g1_bytes + 3 * c->g2_bytes + ((uint64_t)s->public_count + 1) * c->g1_bytes;
    for (unsigned k = 0; k < KEY_POINTS_COUNT; k++) {
        p->bytes[SEC_POINTS + k] =
            s->points_count[k] * curve_point_bytes(c, key_points_group((enum key_points)k));
    }
    p->bytes[SEC_DICTIONARY] = p->counts.dictionary_count * SCALAR_BYTES;
    for (unsigned m = 0; m < 2; m++) {
        p->bytes[SEC_START + m] = rows_bytes;
        p->bytes[SEC_COLUMNS + m] = 4 * s->terms_count[m];
        p->bytes[SEC_COEFFICIENTS + m] = 4 * s->terms_count[m];
        p->bytes[SEC_LONG + m] = 4 * p->counts.long_count[m];
    }
    for (unsigned i = 0; i < NATIVE_SECTIONS; i++) {
        at = (at + NATIVE_ALIGN - 1) & ~(uint64_t)(NATIVE_ALIGN - 1);
        p->offset[i] = at;
        at += p->bytes[i];
    }
    p->file_bytes = at;
}

/* --- Making --- */

size_t native_bytes(const struct native_counts *counts) {
    struct plan_native p = {.counts = *counts};
    place(&p);
    return (size_t)p.file_bytes;
}

void native_image_init(struct native_image *out, const struct native_counts *counts,
                       struct bytes_mut file) {
    struct plan_native p = {.counts = *counts};
    place(&p);
    ASSERT(p.file_bytes == file.len);
    *out = (struct native_image){.counts = p.counts, .file = file};
    for (unsigned k = 0; k < KEY_POINTS_COUNT; k++) {
        out->points[k] = (struct bytes_mut){file.ptr + p.offset[SEC_POINTS + k],
                                            (size_t)p.bytes[SEC_POINTS + k]};
    }
    out->dictionary = (struct scalar *)(void *)(file.ptr + p.offset[SEC_DICTIONARY]);
    for (unsigned m = 0; m < 2; m++) {
        out->start[m] = (uint32_t *)(void *)(file.ptr + p.offset[SEC_START + m]);
        out->columns[m] = (uint32_t *)(void *)(file.ptr + p.offset[SEC_COLUMNS + m]);
        out->coefficients[m] = (uint32_t *)(void *)(file.ptr + p.offset[SEC_COEFFICIENTS + m]);
        out->long_rows[m] = (uint32_t *)(void *)(file.ptr + p.offset[SEC_LONG + m]);
    }
}

static void write_header(uint8_t header[NATIVE_HEADER_BYTES], const struct plan_native *p,
                         const uint64_t sums[NATIVE_SECTIONS]) {
    const struct native_counts *n = &p->counts;
    const struct key_shape *s = &n->shape;
    memset(header, 0, NATIVE_HEADER_BYTES);
    memcpy(header, "BELLOWSK", 8);
    const uint32_t words[] = {
        NATIVE_VERSION, (uint32_t)s->curve, (uint32_t)s->h_basis, s->h_reversed,
        s->wires_count, s->public_count,    s->domain_log2,       0};
    const uint64_t longs[] = {s->terms_count[0], s->terms_count[1], n->dictionary_count,
                              n->long_count[0],  n->long_count[1],  p->file_bytes};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        store_u32le(header + 8 + 4 * i, words[i]);
    }
    for (size_t i = 0; i < COUNT_OF(longs); i++) {
        store_u64le(header + 40 + 8 * i, longs[i]);
    }
    for (size_t i = 0; i < NATIVE_SECTIONS; i++) {
        store_u64le(header + AT_SUMS + 8 * i, sums[i]);
    }
}

static void write_vkey(uint8_t *at, const struct vkey *vk) {
    const struct curve *c = vk->curve;
    const struct g1 *const in_g1[] = {&vk->alpha1, &vk->beta1, &vk->delta1};
    const struct g2 *const in_g2[] = {&vk->beta2, &vk->gamma2, &vk->delta2};
    for (int i = 0; i < 3; i++, at += c->g1_bytes) {
        g1_store(at, c, in_g1[i]);
    }
    for (int i = 0; i < 3; i++, at += c->g2_bytes) {
        g2_store(at, c, in_g2[i]);
    }
    memcpy(at, vk->ic, ((size_t)vk->public_count + 1) * c->g1_bytes);
}

struct summing {
    const struct plan_native *p;
    const uint8_t *file;
    uint64_t sums[NATIVE_SECTIONS];
};

static void sum_section(void *ctx, size_t idx, unsigned worker) {
    struct summing *x = ctx;
    (void)worker;
    x->sums[idx] = hash_xxh64(bytes_of(x->file + x->p->offset[idx], (size_t)x->p->bytes[idx]));
}

FALLIBLE native_image_seal(struct native_image *image, const struct vkey *vkey,
                           const struct sha256 *digest, struct pool *pool) {
    struct plan_native p = {.counts = image->counts};
    struct sha256 name, seal;
    uint8_t *file = image->file.ptr;
    place(&p);
    ASSERT(vkey->public_count == p.counts.shape.public_count);
    write_vkey(file + p.offset[SEC_VKEY], vkey);
    struct summing x = {.p = &p, .file = file};
    pool_for(pool, NATIVE_SECTIONS, sum_section, &x);
    write_header(file, &p, x.sums);
    if (!digest) {
        TRY(sha256_of(&name, bytes_of(file, AT_SEAL)));
        digest = &name;
    }
    memcpy(file + AT_NAME, digest->b, SHA256_BYTES);
    TRY(sha256_of(&seal, bytes_of(file, AT_SEAL)));
    memcpy(file + AT_SEAL, seal.b, SHA256_BYTES);
    return OK;
}

struct zkey_rows { /* what a .zkey's terms become */
    struct rows_dictionary dictionary;
    struct rows_built of[2];
};

static void zkey_rows_done(struct zkey_rows *x) {
    rows_dictionary_close(&x->dictionary);
    rows_built_done(&x->of[0]);
    rows_built_done(&x->of[1]);
}

static FALLIBLE zkey_rows_make(struct zkey_rows *x, struct native_counts *counts, struct key *key) {
    const struct key_shape *s = &counts->shape;
    TRY(rows_dictionary_open(&x->dictionary, counts->curve, s->terms_count[0] + s->terms_count[1]));
    for (uint32_t m = 0; m < 2; m++) {
        TRY(rows_build(&x->of[m], &x->dictionary, key_terms_raw(key), s, m));
        counts->long_count[m] = x->of[m].long_count;
    }
    counts->dictionary_count = x->dictionary.count;
    return OK;
}

static void copy_zkey(struct native_image *image, const struct zkey_rows *x, struct key *key) {
    for (unsigned k = 0; k < KEY_POINTS_COUNT; k++) {
        bool zkey_layout = false;
        struct bytes points = key_points_raw(&zkey_layout, key, (enum key_points)k);
        ASSERT(zkey_layout && points.len == image->points[k].len);
        memcpy(image->points[k].ptr, points.ptr, points.len);
    }
    memcpy(image->dictionary, x->dictionary.values_r2, x->dictionary.count * SCALAR_BYTES);
    for (unsigned m = 0; m < 2; m++) {
        const struct rows_built *r = &x->of[m];
        memcpy(image->start[m], r->start, 4 * ((size_t)r->rows_count + 1));
        memcpy(image->columns[m], r->columns, 4 * r->terms_count);
        memcpy(image->coefficients[m], r->coefficients, 4 * r->terms_count);
        memcpy(image->long_rows[m], r->long_rows, 4 * (size_t)r->long_count);
    }
}

FALLIBLE native_write(const char *path, struct key *key) {
    AUTO(zkey_rows_done) struct zkey_rows x = {0};
    AUTO(file_out_close) struct file_out *file = NULL;
    struct native_counts counts = {.curve = key_curve(key), .shape = *key_shape(key)};
    struct native_image image;
    struct bytes_mut bytes;
    struct sha256 digest;
    REQUIRE(counts.shape.format == KEY_FORMAT_ZKEY, E_USAGE,
            "%s: only a .zkey is turned into the native layout as it is; bellman parameters need "
            "their circuit: bellows key import KEY NATIVE --circuit FILE",
            key_path(key));
    TRY(zkey_rows_make(&x, &counts, key));
    TRY(file_out_open(&file, path));
    TRY(file_out_map(&bytes, file, native_bytes(&counts)));
    native_image_init(&image, &counts, bytes);
    copy_zkey(&image, &x, key);
    TRY(key_digest(&digest, key));
    TRY(native_image_seal(&image, key_vkey(key), &digest, NULL));
    TRY(key_intact(key)); /* before it is believed that the sums are of what the key holds */
    return file_out_commit(file);
}

/* --- Reading --- */

static FALLIBLE read_counts(struct plan_native *p, const uint8_t *h, const char *name) {
    struct key_shape *s = &p->counts.shape;
    uint32_t curve = load_u32le(h + 12), basis = load_u32le(h + 16), reversed = load_u32le(h + 20),
             log2 = load_u32le(h + 32);
    p->counts.curve = curve_by_id((enum curve_id)curve);
    REQUIRE(p->counts.curve, E_CURVE, "%s: unknown curve %" PRIu32 "; " REMAKE, name, curve);
    REQUIRE((basis == H_COSET_LAGRANGE || basis == H_POWERS) && reversed <= 1, E_FORMAT,
            "%s: H in basis %" PRIu32 " and order %" PRIu32 "; " REMAKE, name, basis, reversed);
    REQUIRE(log2 >= 1 && log2 <= p->counts.curve->two_adicity, E_RANGE,
            "%s: domain size 2^%" PRIu32 ", the scalar field has 2 to 2^%u; " REMAKE, name, log2,
            p->counts.curve->two_adicity);
    *s = (struct key_shape){.curve = p->counts.curve->id,
                            .format = KEY_FORMAT_NATIVE,
                            .h_basis = (enum h_basis)basis,
                            .h_reversed = reversed,
                            .wires_count = load_u32le(h + 24),
                            .public_count = load_u32le(h + 28),
                            .domain_size = UINT64_C(1) << log2,
                            .domain_log2 = log2,
                            .terms_count = {load_u64le(h + 40), load_u64le(h + 48)}};
    p->counts.dictionary_count = load_u64le(h + 56);
    p->counts.long_count[0] = load_u64le(h + 64);
    p->counts.long_count[1] = load_u64le(h + 72);
    REQUIRE(s->public_count < s->wires_count && s->public_count <= PUBLIC_COUNT_MAX &&
                s->domain_size > s->public_count,
            E_RANGE, "%s: %" PRIu32 " public signals, %" PRIu32 " wires, a domain of 2^%u; " REMAKE,
            name, s->public_count, s->wires_count, log2);
    for (int m = 0; m < 2; m++) {
        REQUIRE(s->terms_count[m] < UINT32_MAX &&
                    p->counts.long_count[m] <= s->terms_count[m] / (ROWS_LONG + 1),
                E_RANGE, "%s: %" PRIu64 " terms, %" PRIu64 " long rows; " REMAKE, name,
                s->terms_count[m], p->counts.long_count[m]);
    }
    REQUIRE(p->counts.dictionary_count >= 2 && p->counts.dictionary_count <= ROWS_DICTIONARY_MAX,
            E_RANGE, "%s: a dictionary of %" PRIu64 " coefficients; " REMAKE, name,
            p->counts.dictionary_count);
    return OK;
}

FALLIBLE native_seal(struct bytes_mut file) {
    struct plan_native p = {0};
    struct sha256 seal;
    REQUIRE(file.len >= NATIVE_HEADER_BYTES, E_FORMAT, "no room for a header");
    TRY(read_counts(&p, file.ptr, "sealed"));
    place(&p);
    REQUIRE(p.file_bytes == file.len, E_FORMAT, "its counts make another file");
    for (unsigned i = 0; i < NATIVE_SECTIONS; i++) {
        store_u64le(file.ptr + AT_SUMS + 8 * i,
                    hash_xxh64(bytes_of(file.ptr + p.offset[i], (size_t)p.bytes[i])));
    }
    TRY(sha256_of(&seal, bytes_of(file.ptr, AT_SEAL)));
    memcpy(file.ptr + AT_SEAL, seal.b, SHA256_BYTES);
    return OK;
}

static FALLIBLE read_header(struct plan_native *p, struct bytes file, const char *name) {
    struct sha256 seal;
    const uint8_t *h = file.ptr;
    REQUIRE(file.len >= NATIVE_HEADER_BYTES, E_FORMAT,
            "%s: a native key of %zu bytes, its header alone has %d; " REMAKE, name, file.len,
            NATIVE_HEADER_BYTES);
    REQUIRE(load_u32le(h + 8) == NATIVE_VERSION, E_FORMAT,
            "%s: a native key of version %" PRIu32
            ", this program reads %d; remove it, it is made again from the key",
            name, load_u32le(h + 8), NATIVE_VERSION);
    TRY(sha256_of(&seal, bytes_of(h, AT_SEAL)));
    REQUIRE(!memcmp(seal.b, h + AT_SEAL, SHA256_BYTES), E_FORMAT,
            "%s: the header does not have the SHA-256 that it ends with; " REMAKE, name);
    TRY(read_counts(p, h, name));
    place(p);
    REQUIRE(p->file_bytes == file.len && load_u64le(h + 80) == file.len, E_FORMAT,
            "%s: %zu bytes, its counts make %" PRIu64 "; " REMAKE, name, file.len, p->file_bytes);
    p->counts.shape.file_bytes = file.len;
    return OK;
}

static FALLIBLE read_vkey(struct vkey *vk, struct bytes section) {
    const struct curve *c = vk->curve;
    const uint8_t *at = section.ptr;
    struct g1 *const in_g1[] = {&vk->alpha1, &vk->beta1, &vk->delta1};
    struct g2 *const in_g2[] = {&vk->beta2, &vk->gamma2, &vk->delta2};
    for (int i = 0; i < 3; i++, at += c->g1_bytes) {
        g1_load(in_g1[i], c, at);
    }
    for (int i = 0; i < 3; i++, at += c->g2_bytes) {
        g2_load(in_g2[i], c, at);
    }
    size_t ic = ((size_t)vk->public_count + 1) * c->g1_bytes;
    TRY(mem_new_raw(&vk->ic, ic, 1));
    memcpy(vk->ic, at, ic);
    return OK;
}

static uint32_t word_at(struct bytes section, uint64_t i) {
    return load_u32le(section.ptr + 4 * i);
}

static FALLIBLE check_rows(const struct plan_native *p, const struct bytes *section, unsigned m,
                           const char *name) {
    struct bytes start = section[SEC_START + m], columns = section[SEC_COLUMNS + m],
                 coefficients = section[SEC_COEFFICIENTS + m], longs = section[SEC_LONG + m];
    uint64_t terms = p->counts.shape.terms_count[m], found = 0, wires = p->counts.shape.wires_count;
    uint32_t bad = word_at(start, 0) != 0;
    for (uint64_t row = 0; row < p->counts.shape.domain_size; row++) {
        uint32_t from = word_at(start, row), to = word_at(start, row + 1);
        bad |= from > to;
        if (to - from > ROWS_LONG && from <= to) {
            bad |= found >= p->counts.long_count[m] || word_at(longs, found) != row;
            found++;
        }
        REQUIRE(!bad, E_RANGE, "%s: %s: row %" PRIu64 " has no sound beginning and end; " REMAKE,
                name, titles[SEC_START + m], row);
    }
    REQUIRE(word_at(start, p->counts.shape.domain_size) == terms &&
                found == p->counts.long_count[m],
            E_RANGE,
            "%s: %s: %" PRIu32 " terms and %" PRIu64 " long rows, the header says %" PRIu64
            " and %" PRIu64 "; " REMAKE,
            name, titles[SEC_START + m], word_at(start, p->counts.shape.domain_size), found, terms,
            p->counts.long_count[m]);
    for (uint64_t i = 0; i < terms; i++) {
        bad |= (uint32_t)(word_at(columns, i) >= wires) |
               (uint32_t)(word_at(coefficients, i) >= p->counts.dictionary_count);
    }
    REQUIRE(!bad, E_RANGE, "%s: %s: a term of no wire or of no coefficient; " REMAKE, name,
            titles[SEC_COLUMNS + m]);
    return OK;
}

static FALLIBLE check_dictionary(const struct plan_native *p, struct bytes section,
                                 const char *name) {
    const struct curve *c = p->counts.curve;
    struct scalar r2, minus_one, value;
    c->scalar_pow(&r2, &(struct scalar){{2}}, 512);
    c->scalar_sub(&minus_one, &(struct scalar){{0}}, &r2);
    REQUIRE(!memcmp(section.ptr, &r2, sizeof r2) &&
                !memcmp(section.ptr + SCALAR_BYTES, &minus_one, sizeof r2),
            E_FORMAT, "%s: the dictionary does not begin with +1 and -1; " REMAKE, name);
    for (uint64_t i = 2; i < p->counts.dictionary_count; i++) {
        memcpy(&value, section.ptr + SCALAR_BYTES * i, sizeof value);
        REQUIRE(scalar_is_valid(c, &value), E_RANGE,
                "%s: entry %" PRIu64 " of the dictionary is not below r; " REMAKE, name, i);
    }
    return OK;
}

/* Everything that a backend will index with, and that the bytes are those that were written. */
static FALLIBLE check_bulk(const struct plan_native *p, const struct bytes *section,
                           struct bytes file, const char *name) {
    uint64_t end = NATIVE_HEADER_BYTES;
    for (unsigned i = 0; i < NATIVE_SECTIONS; i++) {
        for (uint64_t at = end; at < p->offset[i]; at++) {
            REQUIRE(file.ptr[at] == 0, E_FORMAT, "%s: byte %" PRIu64 " before the %s; " REMAKE,
                    name, at, titles[i]);
        }
        end = p->offset[i] + p->bytes[i];
        REQUIRE(hash_xxh64(section[i]) == load_u64le(file.ptr + AT_SUMS + 8 * i), E_FORMAT,
                "%s: the %s do not have their checksum; " REMAKE, name, titles[i]);
    }
    TRY(check_dictionary(p, section[SEC_DICTIONARY], name));
    TRY(check_rows(p, section, 0, name));
    return check_rows(p, section, 1, name);
}

static void take_rows(struct rows *out, const struct plan_native *p, const struct bytes *section,
                      unsigned m) {
    *out = (struct rows){.start = (const uint32_t *)(const void *)section[SEC_START + m].ptr,
                         .columns = (const uint32_t *)(const void *)section[SEC_COLUMNS + m].ptr,
                         .coefficients =
                             (const uint32_t *)(const void *)section[SEC_COEFFICIENTS + m].ptr,
                         .long_rows = (const uint32_t *)(const void *)section[SEC_LONG + m].ptr,
                         .rows_count = (uint32_t)p->counts.shape.domain_size,
                         .long_count = (uint32_t)p->counts.long_count[m]};
}

static FALLIBLE parse(struct key_parts *parts, struct bytes file, const char *name, bool trusted) {
    struct plan_native p = {0};
    struct bytes section[NATIVE_SECTIONS];
    TRY(read_header(&p, file, name));
    for (unsigned i = 0; i < NATIVE_SECTIONS; i++) {
        section[i] = bytes_of(file.ptr + p.offset[i], (size_t)p.bytes[i]);
        parts->sections[i] = (struct key_section_view){i, p.offset[i], p.bytes[i]};
    }
    parts->sections_count = NATIVE_SECTIONS;
    parts->curve = p.counts.curve;
    parts->shape = p.counts.shape;
    parts->zkey_layout = true;
    parts->vkey.curve = p.counts.curve;
    parts->vkey.public_count = p.counts.shape.public_count;
    memcpy(parts->source.b, file.ptr + AT_NAME, SHA256_BYTES);
    for (unsigned k = 0; k < KEY_POINTS_COUNT; k++) {
        parts->points[k] = section[SEC_POINTS + k];
    }
    parts->dictionary = section[SEC_DICTIONARY];
    take_rows(&parts->rows[0], &p, section, 0);
    take_rows(&parts->rows[1], &p, section, 1);
    if (!trusted) {
        TRY(check_bulk(&p, section, file, name));
    }
    TRY(read_vkey(&parts->vkey, section[SEC_VKEY]));
    if (trusted) {
        return OK;
    }
    TRY(key_header_check(parts, name, "the verifying part"));
    return key_spot_check(parts, name);
}

FALLIBLE native_parse(struct key_parts *out, struct bytes file, const char *name, bool trusted) {
    AUTO(key_parts_done) struct key_parts parts = {0};
    TRY(parse(&parts, file, name, trusted));
    *out = parts;
    parts.vkey.ic = NULL;
    return OK;
}
