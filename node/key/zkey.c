/* Proving keys as snarkjs writes them.
 *
 *     section  contents                                          bytes
 *     1        protocol: 1 Groth16                                4
 *     2        n8q q n8r r wires publics domain, six points       52 + 19·n8q
 *     3        IC: publics + 1 points of G1                       (publics + 1)·2·n8q
 *     4        count, then the non-zeros of A and B               4 + count·44
 *     5 6      A, B in G1: one point per wire                     wires·2·n8q
 *     7        B in G2                                            wires·4·n8q
 *     8        C: one point per private wire                      (wires - publics - 1)·2·n8q
 *     9        H: one point per row of the domain                 domain·2·n8q
 *     10       circuit hash, contributions; not needed to prove   at least 68
 *
 * Points are affine, Montgomery, little-endian, infinity all zero: the layout of curve.h, so nothing is converted.
 * Everything but the points themselves is checked here. The only pass over bulk is the one over section 4: a selector,
 * row or wire out of range would make a backend write outside its vectors. It compares in blocks without branching
 * (only a block with something wrong in it is walked again to name the term) and runs at the speed of the page cache.
 */
#include "node/key/mapping_guard.h"
#include "node/key/parts.h"

#include "node/base/mem.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

enum {
    SEC_PROTOCOL = 1,
    SEC_HEADER = 2,
    SEC_IC = 3,
    SEC_TERMS = 4,
    SEC_A = 5,
    SEC_B1 = 6,
    SEC_B2 = 7,
    SEC_C = 8,
    SEC_H = 9,
    SEC_CONTRIBUTIONS = 10
};
enum { PROTOCOL_GROTH16 = 1, PROTOCOL_PLONK = 2, PROTOCOL_FFLONK = 10 };

#define HEADER_TITLE "header"
#define DAMAGED      "the file is damaged: fetch it again"

static FALLIBLE protocol_check(const struct section_table *t) {
    struct bytes section;
    TRY(section_need(&section, t, SEC_PROTOCOL, "protocol"));
    REQUIRE(section.len == 4, E_FORMAT, "%s: section 1 (protocol) has %zu bytes, not 4; " DAMAGED,
            t->name, section.len);
    uint32_t protocol = load_u32le(section.ptr);
    if (protocol == PROTOCOL_GROTH16) {
        return OK;
    }
    const char *known = protocol == PROTOCOL_PLONK    ? "PLONK"
                        : protocol == PROTOCOL_FFLONK ? "FFLONK"
                                                      : NULL;
    REQUIRE(!known, E_FORMAT,
            "%s: section 1: this key is for %s (protocol %" PRIu32
            "); only Groth16 (protocol 1) is supported: make the key with `snarkjs groth16 setup`",
            t->name, known, protocol);
    FAIL(E_FORMAT, "%s: section 1: unknown protocol %" PRIu32 ", Groth16 is 1; " DAMAGED, t->name,
         protocol);
}

/* Widths, primes, curve. The section's length follows from the width, so it is settled before anything is read. */
static FALLIBLE header_curve(const struct curve **out, struct reader *r, const char *name) {
    uint32_t q_bytes, r_bytes;
    size_t section_bytes = r->span.len;
    REQUIRE(section_bytes >= 4, E_FORMAT, "%s: section 2 (header) has %zu bytes; " DAMAGED, name,
            section_bytes);
    TRY(read_u32le(&q_bytes, r));
    REQUIRE(q_bytes == 32 || q_bytes == 48, E_FORMAT,
            "%s: section 2: coordinates of %" PRIu32
            " bytes; the curves known here have 32 (bn128) or 48 (bls12381)",
            name, q_bytes);
    REQUIRE(section_bytes == 52 + 19 * (size_t)q_bytes, E_FORMAT,
            "%s: section 2 (header) has %zu bytes, coordinates of %" PRIu32
            " bytes need %zu; " DAMAGED,
            name, section_bytes, q_bytes, 52 + 19 * (size_t)q_bytes);
    struct bytes q, order;
    TRY(read_span(&q, r, q_bytes));
    TRY(read_u32le(&r_bytes, r));
    REQUIRE(r_bytes == SCALAR_BYTES, E_FORMAT,
            "%s: section 2: scalars of %" PRIu32 " bytes, both known curves have 32; " DAMAGED,
            name, r_bytes);
    TRY(read_span(&order, r, r_bytes));
    enum err e = curve_by_primes(out, q, order);
    return e == OK ? OK : err_prefix(e, "%s: section 2", name);
}

static FALLIBLE domain_check(struct key_shape *shape, const struct curve *curve, uint32_t domain,
                             const char *name) {
    REQUIRE(domain >= 2 && (domain & (domain - 1)) == 0, E_RANGE,
            "%s: section 2: domain size %" PRIu32 " is not a power of two above 1; " DAMAGED, name,
            domain);
    unsigned log2 = (unsigned)__builtin_ctz(domain);
    REQUIRE(log2 <= curve->two_adicity, E_RANGE,
            "%s: section 2: domain size 2^%u, but the scalar field of %s has none above 2^%u", name,
            log2, curve->snarkjs_name, curve->two_adicity);
    REQUIRE(domain > shape->public_count, E_RANGE,
            "%s: section 2: domain size %" PRIu32 " has no room for %" PRIu32
            " public signals and the constant; " DAMAGED,
            name, domain, shape->public_count);
    shape->domain_size = domain;
    shape->domain_log2 = log2;
    return OK;
}

static FALLIBLE header_counts(struct key_shape *shape, const struct curve *curve, struct reader *r,
                              const char *name) {
    uint32_t domain;
    TRY(read_u32le(&shape->wires_count, r));
    TRY(read_u32le(&shape->public_count, r));
    TRY(read_u32le(&domain, r));
    REQUIRE(shape->public_count < shape->wires_count, E_RANGE,
            "%s: section 2: %" PRIu32 " public signals and the constant do not fit %" PRIu32
            " wires; " DAMAGED,
            name, shape->public_count, shape->wires_count);
    REQUIRE(shape->public_count <= PUBLIC_COUNT_MAX, E_RANGE,
            "%s: section 2: %" PRIu32 " public signals, at most %d are supported", name,
            shape->public_count, PUBLIC_COUNT_MAX);
    return domain_check(shape, curve, domain, name);
}

static FALLIBLE header_points(struct vkey *vk, const struct curve *c, struct reader *r) {
    struct bytes at;
    TRY(read_span(&at, r, c->g1_bytes));
    g1_load(&vk->alpha1, c, at.ptr);
    TRY(read_span(&at, r, c->g1_bytes));
    g1_load(&vk->beta1, c, at.ptr);
    TRY(read_span(&at, r, c->g2_bytes));
    g2_load(&vk->beta2, c, at.ptr);
    TRY(read_span(&at, r, c->g2_bytes));
    g2_load(&vk->gamma2, c, at.ptr);
    TRY(read_span(&at, r, c->g1_bytes));
    g1_load(&vk->delta1, c, at.ptr);
    TRY(read_span(&at, r, c->g2_bytes));
    g2_load(&vk->delta2, c, at.ptr);
    return read_end(r);
}

static FALLIBLE header_read(struct key_parts *parts, const struct section_table *t) {
    struct bytes section;
    TRY(section_need(&section, t, SEC_HEADER, HEADER_TITLE));
    struct reader r = reader_of(section, "section 2 (header)");
    TRY(header_curve(&parts->curve, &r, t->name));
    parts->shape.curve = parts->curve->id;
    TRY(header_counts(&parts->shape, parts->curve, &r, t->name));
    parts->vkey.curve = parts->curve;
    parts->vkey.public_count = parts->shape.public_count;
    return header_points(&parts->vkey, parts->curve, &r);
}

static FALLIBLE ic_read(struct key_parts *parts, const struct section_table *t) {
    struct bytes section;
    struct section_size size = {(uint64_t)parts->shape.public_count + 1, parts->curve->g1_bytes, 0,
                                "public signals with the constant"};
    TRY(section_need_sized(&section, t, SEC_IC, "IC points", size));
    TRY(mem_new_raw(&parts->vkey.ic, section.len, 1));
    memcpy(parts->vkey.ic, section.ptr, section.len);
    return OK;
}

static FALLIBLE point_sections(struct key_parts *parts, const struct section_table *t) {
    const uint64_t wires = parts->shape.wires_count;
    const uint64_t private_count = wires - parts->shape.public_count - 1;
    const struct {
        enum key_points which;
        uint32_t id;
        const char *title;
        uint64_t count;
        const char *unit;
    } sets[] = {
        {KEY_A, SEC_A, "A points", wires, "wires"},
        {KEY_B1, SEC_B1, "B1 points", wires, "wires"},
        {KEY_B2, SEC_B2, "B2 points", wires, "wires"},
        {KEY_L, SEC_C, "C points", private_count, "private wires"},
        {KEY_H, SEC_H, "H points", parts->shape.domain_size, "rows of the domain"},
    };
    for (size_t i = 0; i < COUNT_OF(sets); i++) {
        size_t point_bytes = curve_point_bytes(parts->curve, key_points_group(sets[i].which));
        struct section_size size = {sets[i].count, point_bytes, 0, sets[i].unit};
        TRY(section_need_sized(&parts->points[sets[i].which], t, sets[i].id, sets[i].title, size));
        parts->shape.points_count[sets[i].which] = sets[i].count;
    }
    return OK;
}

/* What a term is compared with. */
struct term_limits {
    uint32_t rows, wires;
    struct scalar r;
};

static bool value_below(const uint8_t *value, const struct scalar *r) {
    for (int limb = 3; limb >= 0; limb--) {
        uint64_t v = load_u64le(value + 8 * limb);
        if (v != r->w[limb]) {
            return v < r->w[limb];
        }
    }
    return false;
}

/* Loads that the compiler can see through; the machine is little-endian like the file. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "points are used in place");

static inline uint32_t u32_at(const uint8_t *p) {
    uint32_t v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t u64_at(const uint8_t *p) {
    uint64_t v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

/* Non-zero if one of the terms may be out of range; the value is compared by its highest limb only, so an answer of
 * zero is certain and the other one is rare. *b_count grows by the terms of matrix B. */
static uint32_t terms_suspicion(uint64_t *b_count, const uint8_t *terms, size_t count,
                                const struct term_limits *limits) {
    uint32_t bad = 0, in_b = 0;
    const uint64_t top = limits->r.w[3];
    for (size_t i = 0; i < count; i++) {
        const uint8_t *term = terms + i * KEY_TERM_BYTES;
        uint32_t matrix = u32_at(term);
        bad |= (uint32_t)(matrix > 1) | (uint32_t)(u32_at(term + 4) >= limits->rows) |
               (uint32_t)(u32_at(term + 8) >= limits->wires) | (uint32_t)(u64_at(term + 36) >= top);
        in_b += matrix & 1;
    }
    *b_count += in_b;
    return bad;
}

static FALLIBLE terms_name_bad(const uint8_t *terms, size_t from, size_t count,
                               const struct term_limits *limits, const char *name) {
    for (size_t i = from; i < from + count; i++) {
        const uint8_t *term = terms + i * KEY_TERM_BYTES;
        uint32_t matrix = load_u32le(term), row = load_u32le(term + 4), wire = load_u32le(term + 8);
        REQUIRE(matrix <= 1, E_RANGE,
                "%s: section 4 (coefficients): term %zu is of matrix %" PRIu32
                ", only 0 (A) and 1 (B) exist; " DAMAGED,
                name, i, matrix);
        REQUIRE(row < limits->rows, E_RANGE,
                "%s: section 4 (coefficients): term %zu is in row %" PRIu32
                ", the domain has %" PRIu32 "; " DAMAGED,
                name, i, row, limits->rows);
        REQUIRE(wire < limits->wires, E_RANGE,
                "%s: section 4 (coefficients): term %zu is of wire %" PRIu32
                ", the circuit has %" PRIu32 "; " DAMAGED,
                name, i, wire, limits->wires);
        REQUIRE(value_below(term + 12, &limits->r), E_RANGE,
                "%s: section 4 (coefficients): the value of term %zu is not below r; " DAMAGED,
                name, i);
    }
    return OK;
}

static FALLIBLE terms_read(struct key_parts *parts, const struct section_table *t) {
    enum { BLOCK = 4096 };
    struct bytes section;
    TRY(section_need(&section, t, SEC_TERMS, "coefficients"));
    REQUIRE(section.len >= 4, E_FORMAT,
            "%s: section 4 (coefficients) has %zu bytes, not even a count; " DAMAGED, t->name,
            section.len);
    uint32_t count = load_u32le(section.ptr);
    struct section_size size = {count, KEY_TERM_BYTES, 4, "coefficients"};
    TRY(section_need_sized(&section, t, SEC_TERMS, "coefficients", size));
    struct term_limits limits = {(uint32_t)parts->shape.domain_size, parts->shape.wires_count,
                                 parts->curve->r};
    const uint8_t *terms = section.ptr + 4;
    uint64_t b_count = 0;
    mapping_advise(section, MADV_WILLNEED);
    for (size_t from = 0; from < count; from += BLOCK) {
        size_t block = count - from < BLOCK ? count - from : BLOCK;
        if (terms_suspicion(&b_count, terms + from * KEY_TERM_BYTES, block, &limits)) {
            TRY(terms_name_bad(terms, from, block, &limits, t->name));
        }
    }
    uint64_t a_count = count - b_count, inputs = (uint64_t)parts->shape.public_count + 1;
    REQUIRE(a_count >= inputs, E_FORMAT,
            "%s: section 4 (coefficients) has %" PRIu64 " terms of matrix A, but the constant and "
            "the public signals own one each, %" PRIu64 " together; " DAMAGED,
            t->name, a_count, inputs);
    parts->terms = bytes_of(terms, section.len - 4);
    parts->shape.terms_count[0] = a_count;
    parts->shape.terms_count[1] = b_count;
    return OK;
}

/* The contributions' number only: proving needs nothing of section 10, and a key without it is unfinished, not bad. */
static FALLIBLE contributions_read(struct key_contributions *out, const struct curve *c,
                                   const struct section_table *t) {
    enum { HASH_BYTES = 64, TRANSCRIPT_BYTES = 64 };
    struct bytes section;
    if (!section_find(&section, t, SEC_CONTRIBUTIONS)) {
        *out = (struct key_contributions){false, 0};
        return OK;
    }
    REQUIRE(section.len >= HASH_BYTES + 4, E_FORMAT,
            "%s: section 10 (contributions) has %zu bytes, at least 68 are needed; " DAMAGED,
            t->name, section.len);
    uint32_t count = load_u32le(section.ptr + HASH_BYTES);
    size_t least = 3 * c->g1_bytes + c->g2_bytes + TRANSCRIPT_BYTES + 8;
    REQUIRE(count <= (section.len - HASH_BYTES - 4) / least, E_FORMAT,
            "%s: section 10 (contributions) has %zu bytes, too few for the %" PRIu32
            " contributions it declares; " DAMAGED,
            t->name, section.len, count);
    *out = (struct key_contributions){true, count};
    return OK;
}

static FALLIBLE parse(struct key_parts *parts, struct bytes file, const char *name) {
    struct section_table table;
    TRY(section_table_read(&table, file, name, FILE_ZKEY));
    parts->zkey_layout = true;
    parts->shape.format = KEY_FORMAT_ZKEY;
    parts->shape.h_basis = H_COSET_LAGRANGE;
    parts->shape.file_bytes = file.len;
    parts->sections_count = table.count;
    for (unsigned i = 0; i < table.count; i++) {
        parts->sections[i] =
            (struct key_section_view){table.at[i].id, table.at[i].offset, table.at[i].bytes};
    }
    TRY(protocol_check(&table));
    TRY(header_read(parts, &table));
    TRY(ic_read(parts, &table));
    TRY(point_sections(parts, &table));
    TRY(contributions_read(&parts->contributions, parts->curve, &table));
    TRY(terms_read(parts, &table));
    TRY(key_header_check(parts, name, "sections 2 and 3"));
    return key_spot_check(parts, name);
}

FALLIBLE zkey_parse(struct key_parts *out, struct bytes file, const char *name) {
    AUTO(key_parts_done) struct key_parts parts = {0};
    TRY(parse(&parts, file, name));
    *out = parts;
    parts.vkey.ic = NULL;
    return OK;
}
