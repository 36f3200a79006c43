/* Writer and reader share `plan`, which turns counts into places; so a file is right or refused, never misread.
 *
 * Writing goes once through the source key: sections are hashed as they are written, and the header, which needs the hashes,
 * is put in front at the end. Points of a .zkey are copied as they are.
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
enum { AT_SUMS = 120, AT_SUMS_END = AT_SUMS + 8 * NATIVE_SECTIONS, AT_SEAL = 992 };

static const char *const titles[NATIVE_SECTIONS] = {
    "verifying part", "A points",          "B1 points",         "B2 points",      "L points",
    "H points",       "dictionary",        "rows of A",         "rows of B",      "columns of A",
    "columns of B",   "coefficients of A", "coefficients of B", "long rows of A", "long rows of B"};

struct plan_native {
    const struct curve *curve;
    struct key_shape shape;
    uint64_t dictionary_count, long_count[2];
    uint64_t offset[NATIVE_SECTIONS], bytes[NATIVE_SECTIONS], file_bytes;
};

/* Counts to places. Every count is below 2^33 by then, so no sum overflows. */
static void place(struct plan_native *p) {
    const struct curve *c = p->curve;
    const struct key_shape *s = &p->shape;
    uint64_t rows_bytes = 4 * (s->domain_size + 1), at = NATIVE_HEADER_BYTES;
    p->bytes[SEC_VKEY] =
        3 * c->g1_bytes + 3 * c->g2_bytes + ((uint64_t)s->public_count + 1) * c->g1_bytes;
    for (unsigned k = 0; k < KEY_POINTS_COUNT; k++) {
        p->bytes[SEC_POINTS + k] =
            s->points_count[k] * curve_point_bytes(c, key_points_group((enum key_points)k));
    }
    p->bytes[SEC_DICTIONARY] = p->dictionary_count * SCALAR_BYTES;
    for (unsigned m = 0; m < 2; m++) {
        p->bytes[SEC_START + m] = rows_bytes;
        p->bytes[SEC_COLUMNS + m] = 4 * s->terms_count[m];
        p->bytes[SEC_COEFFICIENTS + m] = 4 * s->terms_count[m];
        p->bytes[SEC_LONG + m] = 4 * p->long_count[m];
    }
    for (unsigned i = 0; i < NATIVE_SECTIONS; i++) {
        at = (at + NATIVE_ALIGN - 1) & ~(uint64_t)(NATIVE_ALIGN - 1);
        p->offset[i] = at;
        at += p->bytes[i];
    }
    p->file_bytes = at;
}

static void count_points(struct key_shape *s) {
    s->points_count[KEY_A] = s->points_count[KEY_B1] = s->points_count[KEY_B2] = s->wires_count;
    s->points_count[KEY_L] = s->wires_count - s->public_count - 1;
    s->points_count[KEY_H] = s->domain_size;
}

/* --- Writing --- */

struct out {
    struct file_out *file; /* owned */
    uint64_t at;
};

static void out_done(struct out *o) {
    file_out_close(&o->file);
}

static FALLIBLE put(struct out *o, const void *from, size_t len) {
    o->at += len;
    return len ? file_out_write(o->file, bytes_of(from, len)) : OK;
}

static FALLIBLE put_zero_to(struct out *o, uint64_t offset) {
    static const uint8_t zero[NATIVE_ALIGN];
    ASSERT(offset >= o->at && offset - o->at <= sizeof zero);
    return put(o, zero, (size_t)(offset - o->at));
}

static void write_header(uint8_t header[NATIVE_HEADER_BYTES], const struct plan_native *p,
                         const struct sha256 *digest, const uint64_t sums[NATIVE_SECTIONS]) {
    const struct key_shape *s = &p->shape;
    memset(header, 0, NATIVE_HEADER_BYTES);
    memcpy(header, "BELLOWSK", 8);
    const uint32_t words[] = {
        NATIVE_VERSION, (uint32_t)s->curve, (uint32_t)s->h_basis, s->h_reversed,
        s->wires_count, s->public_count,    s->domain_log2,       0};
    const uint64_t longs[] = {s->terms_count[0], s->terms_count[1], p->dictionary_count,
                              p->long_count[0],  p->long_count[1],  p->file_bytes};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        store_u32le(header + 8 + 4 * i, words[i]);
    }
    for (size_t i = 0; i < COUNT_OF(longs); i++) {
        store_u64le(header + 40 + 8 * i, longs[i]);
    }
    memcpy(header + 88, digest->b, SHA256_BYTES);
    for (size_t i = 0; i < NATIVE_SECTIONS; i++) {
        store_u64le(header + AT_SUMS + 8 * i, sums[i]);
    }
}

static FALLIBLE vkey_bytes(uint8_t **out, size_t *len, const struct vkey *vk) {
    const struct curve *c = vk->curve;
    size_t ic = ((size_t)vk->public_count + 1) * c->g1_bytes;
    uint8_t *block = NULL;
    *len = 3 * c->g1_bytes + 3 * c->g2_bytes + ic;
    TRY(mem_new_raw(&block, *len, 1));
    uint8_t *at = block;
    const struct g1 *const in_g1[] = {&vk->alpha1, &vk->beta1, &vk->delta1};
    const struct g2 *const in_g2[] = {&vk->beta2, &vk->gamma2, &vk->delta2};
    for (int i = 0; i < 3; i++, at += c->g1_bytes) {
        g1_store(at, c, in_g1[i]);
    }
    for (int i = 0; i < 3; i++, at += c->g2_bytes) {
        g2_store(at, c, in_g2[i]);
    }
    memcpy(at, vk->ic, ic);
    *out = block;
    return OK;
}

struct parts_out { /* what the sections hold */
    struct rows_dictionary dictionary;
    struct rows_built rows[2];
    uint8_t *vkey; /* owned */
    struct bytes section[NATIVE_SECTIONS];
};

static void parts_out_done(struct parts_out *x) {
    rows_dictionary_close(&x->dictionary);
    rows_built_done(&x->rows[0]);
    rows_built_done(&x->rows[1]);
    mem_free(x->vkey);
}

static FALLIBLE collect(struct parts_out *x, struct plan_native *p,
                        const struct native_source *source) {
    const struct key_shape *s = &p->shape;
    size_t vkey_len = 0;
    TRY(vkey_bytes(&x->vkey, &vkey_len, source->vkey));
    x->section[SEC_VKEY] = bytes_of(x->vkey, vkey_len);
    for (unsigned k = 0; k < KEY_POINTS_COUNT; k++) {
        x->section[SEC_POINTS + k] = source->points[k];
    }
    TRY(rows_dictionary_open(&x->dictionary, p->curve, s->terms_count[0] + s->terms_count[1]));
    for (uint32_t m = 0; m < 2; m++) {
        TRY(rows_build(&x->rows[m], &x->dictionary, source->terms, s, m));
        const struct rows_built *r = &x->rows[m];
        x->section[SEC_START + m] = bytes_of(r->start, 4 * ((size_t)r->rows_count + 1));
        x->section[SEC_COLUMNS + m] = bytes_of(r->columns, 4 * r->terms_count);
        x->section[SEC_COEFFICIENTS + m] = bytes_of(r->coefficients, 4 * r->terms_count);
        x->section[SEC_LONG + m] = bytes_of(r->long_rows, 4 * (size_t)r->long_count);
        p->long_count[m] = r->long_count;
    }
    p->dictionary_count = x->dictionary.count;
    x->section[SEC_DICTIONARY] =
        bytes_of(x->dictionary.values_r2, x->dictionary.count * SCALAR_BYTES);
    return OK;
}

/* Writes the temporary file; the caller commits it. */
static FALLIBLE write_source(struct out *o, const char *path, const struct native_source *source) {
    AUTO(parts_out_done) struct parts_out x = {0};
    struct plan_native p = {.curve = source->curve, .shape = source->shape};
    struct sha256 seal;
    uint64_t sums[NATIVE_SECTIONS];
    uint8_t header[NATIVE_HEADER_BYTES];
    count_points(&p.shape);
    TRY(collect(&x, &p, source));
    place(&p);
    for (unsigned i = 0; i < NATIVE_SECTIONS; i++) {
        ASSERT(x.section[i].len == p.bytes[i]);
        sums[i] = hash_xxh64(x.section[i]);
    }
    write_header(header, &p, &source->digest, sums);
    TRY(sha256_of(&seal, bytes_of(header, AT_SEAL)));
    memcpy(header + AT_SEAL, seal.b, SHA256_BYTES);
    TRY(file_out_open(&o->file, path));
    TRY(put(o, header, sizeof header));
    for (unsigned i = 0; i < NATIVE_SECTIONS; i++) {
        TRY(put_zero_to(o, p.offset[i]));
        TRY(put(o, x.section[i].ptr, x.section[i].len));
    }
    return OK;
}

FALLIBLE native_write_source(const char *path, const struct native_source *source) {
    AUTO(out_done) struct out o = {0};
    TRY(write_source(&o, path, source));
    return file_out_commit(o.file);
}

FALLIBLE native_write(const char *path, struct key *key) {
    AUTO(out_done) struct out o = {0};
    struct native_source source = {.curve = key_curve(key),
                                   .shape = *key_shape(key),
                                   .vkey = key_vkey(key),
                                   .terms = key_terms_raw(key)};
    REQUIRE(source.shape.format == KEY_FORMAT_ZKEY, E_USAGE,
            "%s: only a .zkey is turned into the native layout as it is; bellman parameters need "
            "their circuit: bellows key import KEY NATIVE --circuit FILE",
            key_path(key));
    for (unsigned k = 0; k < KEY_POINTS_COUNT; k++) {
        bool zkey_layout = false;
        source.points[k] = key_points_raw(&zkey_layout, key, (enum key_points)k);
        ASSERT(zkey_layout);
    }
    TRY(key_digest(&source.digest, key));
    TRY(write_source(&o, path, &source));
    TRY(key_intact(key)); /* before it is believed that the sums are of what the key holds */
    return file_out_commit(o.file);
}

/* --- Reading --- */

static FALLIBLE read_counts(struct plan_native *p, const uint8_t *h, const char *name) {
    struct key_shape *s = &p->shape;
    uint32_t curve = load_u32le(h + 12), basis = load_u32le(h + 16), reversed = load_u32le(h + 20),
             log2 = load_u32le(h + 32);
    p->curve = curve_by_id((enum curve_id)curve);
    REQUIRE(p->curve, E_CURVE, "%s: unknown curve %" PRIu32 "; " REMAKE, name, curve);
    REQUIRE((basis == H_COSET_LAGRANGE || basis == H_POWERS) && reversed <= 1, E_FORMAT,
            "%s: H in basis %" PRIu32 " and order %" PRIu32 "; " REMAKE, name, basis, reversed);
    REQUIRE(log2 >= 1 && log2 <= p->curve->two_adicity, E_RANGE,
            "%s: domain size 2^%" PRIu32 ", the scalar field has 2 to 2^%u; " REMAKE, name, log2,
            p->curve->two_adicity);
    *s = (struct key_shape){.curve = p->curve->id,
                            .format = KEY_FORMAT_NATIVE,
                            .h_basis = (enum h_basis)basis,
                            .h_reversed = reversed,
                            .wires_count = load_u32le(h + 24),
                            .public_count = load_u32le(h + 28),
                            .domain_size = UINT64_C(1) << log2,
                            .domain_log2 = log2,
                            .terms_count = {load_u64le(h + 40), load_u64le(h + 48)}};
    p->dictionary_count = load_u64le(h + 56);
    p->long_count[0] = load_u64le(h + 64);
    p->long_count[1] = load_u64le(h + 72);
    REQUIRE(s->public_count < s->wires_count && s->public_count <= PUBLIC_COUNT_MAX &&
                s->domain_size > s->public_count,
            E_RANGE, "%s: %" PRIu32 " public signals, %" PRIu32 " wires, a domain of 2^%u; " REMAKE,
            name, s->public_count, s->wires_count, log2);
    for (int m = 0; m < 2; m++) {
        REQUIRE(s->terms_count[m] < UINT32_MAX &&
                    p->long_count[m] <= s->terms_count[m] / (ROWS_LONG + 1),
                E_RANGE, "%s: %" PRIu64 " terms, %" PRIu64 " long rows; " REMAKE, name,
                s->terms_count[m], p->long_count[m]);
    }
    REQUIRE(p->dictionary_count >= 2 && p->dictionary_count <= ROWS_DICTIONARY_MAX, E_RANGE,
            "%s: a dictionary of %" PRIu64 " coefficients; " REMAKE, name, p->dictionary_count);
    count_points(s);
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
    p->shape.file_bytes = file.len;
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
    uint64_t terms = p->shape.terms_count[m], found = 0, wires = p->shape.wires_count;
    uint32_t bad = word_at(start, 0) != 0;
    for (uint64_t row = 0; row < p->shape.domain_size; row++) {
        uint32_t from = word_at(start, row), to = word_at(start, row + 1);
        bad |= from > to;
        if (to - from > ROWS_LONG && from <= to) {
            bad |= found >= p->long_count[m] || word_at(longs, found) != row;
            found++;
        }
        REQUIRE(!bad, E_RANGE, "%s: %s: row %" PRIu64 " has no sound beginning and end; " REMAKE,
                name, titles[SEC_START + m], row);
    }
    REQUIRE(word_at(start, p->shape.domain_size) == terms && found == p->long_count[m], E_RANGE,
            "%s: %s: %" PRIu32 " terms and %" PRIu64 " long rows, the header says %" PRIu64
            " and %" PRIu64 "; " REMAKE,
            name, titles[SEC_START + m], word_at(start, p->shape.domain_size), found, terms,
            p->long_count[m]);
    for (uint64_t i = 0; i < terms; i++) {
        bad |= (uint32_t)(word_at(columns, i) >= wires) |
               (uint32_t)(word_at(coefficients, i) >= p->dictionary_count);
    }
    REQUIRE(!bad, E_RANGE, "%s: %s: a term of no wire or of no coefficient; " REMAKE, name,
            titles[SEC_COLUMNS + m]);
    return OK;
}

static FALLIBLE check_dictionary(const struct plan_native *p, struct bytes section,
                                 const char *name) {
    const struct curve *c = p->curve;
    struct scalar r2, minus_one, value;
    c->scalar_pow(&r2, &(struct scalar){{2}}, 512);
    c->scalar_sub(&minus_one, &(struct scalar){{0}}, &r2);
    REQUIRE(!memcmp(section.ptr, &r2, sizeof r2) &&
                !memcmp(section.ptr + SCALAR_BYTES, &minus_one, sizeof r2),
            E_FORMAT, "%s: the dictionary does not begin with +1 and -1; " REMAKE, name);
    for (uint64_t i = 2; i < p->dictionary_count; i++) {
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
                         .rows_count = (uint32_t)p->shape.domain_size,
                         .long_count = (uint32_t)p->long_count[m]};
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
    parts->curve = p.curve;
    parts->shape = p.shape;
    parts->zkey_layout = true;
    parts->vkey.curve = p.curve;
    parts->vkey.public_count = p.shape.public_count;
    memcpy(parts->source.b, file.ptr + 88, SHA256_BYTES);
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
