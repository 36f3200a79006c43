/* Proving keys as bellman and bellperson write them (`.params`), and their verifying keys.
 *
 *     alpha_g1  beta_g1  beta_g2  gamma_g2  delta_g1  delta_g2      no header in front of them
 *     ic        u32 count, then as many points of G1                  the verifying key ends here
 *     h         u32 count, points of G1      tau^i·Z(tau)/delta: a domain's size less one
 *     l         u32 count, points of G1      one per private wire
 *     a         u32 count, points of G1      only wires that occur in A
 *     b_g1      u32 count, points of G1      only wires that occur in B
 *     b_g2      u32 count, points of G2      the same wires
 *
 * Counts are big-endian, points uncompressed in ZCash's coding: big-endian coordinates, c1 before c0, three flag bits
 * on top of the first byte, which must all be zero. Infinities are left out by the writer and refused by its reader;
 * so are they here, in ic as well. The file holds no matrices and does not say which wire owns which point of a and b:
 * counts are all that can be compared. Only BLS12-381 files exist.
 */
#include "node/base/mem.h"
#include "node/curve/encode.h"
#include "node/key/parts.h"

#include <inttypes.h>
#include <string.h>

#define DAMAGED "the file is damaged: fetch it again"

/* One of alpha … delta. */
static FALLIBLE g1_field(struct g1 *out, struct reader *r, const struct curve *c, const char *name,
                         const char *field) {
    struct bytes at;
    size_t offset = r->pos;
    REQUIRE(reader_left(r) >= c->g1_bytes, E_FORMAT,
            "%s: the file ends inside %s, after %zu bytes; it is cut short: fetch it again", name,
            field, r->span.len);
    TRY(read_span(&at, r, c->g1_bytes));
    enum err e = bellman_g1_read(out, c, at, false, true);
    return e == OK ? OK : err_prefix(e, "%s: %s at byte %zu", name, field, offset);
}

static FALLIBLE g2_field(struct g2 *out, struct reader *r, const struct curve *c, const char *name,
                         const char *field) {
    struct bytes at;
    size_t offset = r->pos;
    REQUIRE(reader_left(r) >= c->g2_bytes, E_FORMAT,
            "%s: the file ends inside %s, after %zu bytes; it is cut short: fetch it again", name,
            field, r->span.len);
    TRY(read_span(&at, r, c->g2_bytes));
    enum err e = bellman_g2_read(out, c, at, false, true);
    return e == OK ? OK : err_prefix(e, "%s: %s at byte %zu", name, field, offset);
}

/* A count and as many points; the count is compared with what is left before it is used. */
static FALLIBLE vector_read(struct bytes *out, uint32_t *count, struct reader *r,
                            size_t point_bytes, const char *name, const char *field) {
    size_t offset = r->pos;
    REQUIRE(reader_left(r) >= 4, E_FORMAT,
            "%s: the file ends before the count of %s, after %zu bytes; it is cut short: fetch it "
            "again",
            name, field, r->span.len);
    TRY(read_u32be(count, r));
    size_t want, left = reader_left(r);
    TRY(size_mul(&want, *count, point_bytes));
    REQUIRE(want <= left, E_FORMAT,
            "%s: %s at byte %zu declares %" PRIu32 " points, which need %zu bytes; the file has "
            "%zu left; it is cut short or damaged: fetch it again",
            name, field, offset, *count, want, left);
    return read_span(out, r, want);
}

static FALLIBLE ic_read(struct vkey *vk, struct reader *r, const char *name) {
    struct bytes points;
    uint32_t count;
    const size_t g1_bytes = vk->curve->g1_bytes;
    TRY(vector_read(&points, &count, r, g1_bytes, name, "ic"));
    REQUIRE(count >= 1, E_FORMAT, "%s: ic has no points, the constant alone needs one; " DAMAGED,
            name);
    REQUIRE(count - 1 <= PUBLIC_COUNT_MAX, E_RANGE,
            "%s: %" PRIu32 " public inputs, at most %d are supported", name, count - 1,
            PUBLIC_COUNT_MAX);
    TRY(mem_new_raw(&vk->ic, count, g1_bytes));
    for (uint32_t i = 0; i < count; i++) {
        struct g1 point;
        enum err e = bellman_g1_read(&point, vk->curve,
                                     bytes_of(points.ptr + i * g1_bytes, g1_bytes), false, true);
        if (e != OK) {
            return err_prefix(e, "%s: point %" PRIu32 " of ic", name, i);
        }
        REQUIRE(!g1_is_infinity(&point), E_CURVE,
                "%s: point %" PRIu32 " of ic is infinity; " DAMAGED, name, i);
        g1_store(vk->ic + i * g1_bytes, vk->curve, &point);
    }
    vk->public_count = count - 1;
    return OK;
}

/* The verifying key at the front of both kinds of file. `vk` owns ic even on error. */
static FALLIBLE vkey_front(struct vkey *vk, struct reader *r, const char *name) {
    const struct curve *c = vk->curve;
    TRY(g1_field(&vk->alpha1, r, c, name, "alpha_g1"));
    TRY(g1_field(&vk->beta1, r, c, name, "beta_g1"));
    TRY(g2_field(&vk->beta2, r, c, name, "beta_g2"));
    TRY(g2_field(&vk->gamma2, r, c, name, "gamma_g2"));
    TRY(g1_field(&vk->delta1, r, c, name, "delta_g1"));
    TRY(g2_field(&vk->delta2, r, c, name, "delta_g2"));
    return ic_read(vk, r, name);
}

bool vkey_is_bellman(struct bytes data) {
    const struct curve *c = curve_by_id(CURVE_BLS12_381);
    struct reader r = reader_of(data, "verifying key");
    struct bytes points;
    uint32_t count;
    return read_span(&points, &r, 3 * (c->g1_bytes + c->g2_bytes)) == OK &&
           read_u32be(&count, &r) == OK && reader_left(&r) == (uint64_t)count * c->g1_bytes;
}

FALLIBLE vkey_read_bellman(struct vkey *out, const struct curve *c, struct bytes data,
                           const char *name) {
    AUTO(vkey_done) struct vkey vk = {.curve = c};
    struct reader r = reader_of(data, name);
    TRY(vkey_front(&vk, &r, name));
    REQUIRE(reader_left(&r) == 0, E_FORMAT,
            "%s: %zu bytes follow the verifying key, which ends at %zu; is this a .params file?",
            name, reader_left(&r), r.pos);
    enum err e = vkey_check(&vk);
    if (e != OK) {
        return err_prefix(e, "%s", name);
    }
    *out = vk;
    vk.ic = NULL;
    return OK;
}

static void section_note(struct key_parts *parts, const struct reader *r, struct bytes points) {
    unsigned nth = parts->sections_count++;
    parts->sections[nth] =
        (struct key_section_view){nth + 1, (uint64_t)(points.ptr - r->span.ptr), points.len};
}

static FALLIBLE vectors_read(struct key_parts *parts, struct reader *r, const char *name) {
    static const struct {
        enum key_points which;
        const char *field;
    } order[] = {
        {KEY_H, "h"}, {KEY_L, "l"}, {KEY_A, "a"}, {KEY_B1, "b_g1"}, {KEY_B2, "b_g2"},
    };
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        enum key_points which = order[i].which;
        size_t point_bytes = curve_point_bytes(parts->curve, key_points_group(which));
        uint32_t count;
        TRY(vector_read(&parts->points[which], &count, r, point_bytes, name, order[i].field));
        parts->shape.points_count[which] = count;
        section_note(parts, r, parts->points[which]);
    }
    REQUIRE(reader_left(r) == 0, E_FORMAT, "%s: %zu bytes follow b_g2, which ends at %zu; " DAMAGED,
            name, reader_left(r), r->pos);
    return OK;
}

/* Wires, domain, and what the counts must be to each other. */
static FALLIBLE shape_derive(struct key_parts *parts, const char *name) {
    struct key_shape *s = &parts->shape;
    const uint64_t *n = s->points_count;
    uint64_t inputs = (uint64_t)parts->vkey.public_count + 1;
    uint64_t wires = inputs + n[KEY_L];
    REQUIRE(wires <= UINT32_MAX, E_RANGE,
            "%s: %" PRIu64 " inputs and %" PRIu64 " private wires are more than 2^32 - 1; " DAMAGED,
            name, inputs, n[KEY_L]);
    uint64_t domain = n[KEY_H] + 1;
    REQUIRE(domain >= 2 && (domain & (domain - 1)) == 0, E_RANGE,
            "%s: h has %" PRIu64 " points; a domain of 2^k rows has 2^k - 1; " DAMAGED, name,
            n[KEY_H]);
    unsigned log2 = (unsigned)__builtin_ctzll(domain);
    REQUIRE(log2 <= parts->curve->two_adicity, E_RANGE,
            "%s: domain size 2^%u, but the scalar field has none above 2^%u", name, log2,
            parts->curve->two_adicity);
    REQUIRE(domain >= inputs, E_RANGE,
            "%s: a domain of %" PRIu64 " rows has no room for %" PRIu64 " inputs; " DAMAGED, name,
            domain, inputs);
    REQUIRE(n[KEY_A] >= inputs && n[KEY_A] <= wires, E_FORMAT,
            "%s: a has %" PRIu64 " points, %" PRIu64 " inputs and %" PRIu64 " wires allow %" PRIu64
            " to %" PRIu64 "; " DAMAGED,
            name, n[KEY_A], inputs, wires, inputs, wires);
    REQUIRE(n[KEY_B1] == n[KEY_B2], E_FORMAT,
            "%s: b_g1 has %" PRIu64 " points and b_g2 %" PRIu64 ", they must agree; " DAMAGED, name,
            n[KEY_B1], n[KEY_B2]);
    REQUIRE(n[KEY_B1] <= wires, E_FORMAT,
            "%s: b_g1 has %" PRIu64 " points, more than the %" PRIu64 " wires; " DAMAGED, name,
            n[KEY_B1], wires);
    s->wires_count = (uint32_t)wires;
    s->public_count = parts->vkey.public_count;
    s->domain_size = domain;
    s->domain_log2 = log2;
    return OK;
}

static FALLIBLE parse(struct key_parts *parts, struct bytes file, const char *name) {
    parts->curve = curve_by_id(CURVE_BLS12_381);
    parts->vkey.curve = parts->curve;
    parts->shape.curve = parts->curve->id;
    parts->shape.format = KEY_FORMAT_BELLMAN;
    parts->shape.h_basis = H_POWERS;
    parts->shape.file_bytes = file.len;
    struct reader r = reader_of(file, name);
    TRY(vkey_front(&parts->vkey, &r, name));
    size_t ic_bytes = ((size_t)parts->vkey.public_count + 1) * parts->curve->g1_bytes;
    section_note(parts, &r, bytes_of(file.ptr, r.pos - ic_bytes - 4));
    section_note(parts, &r, bytes_of(file.ptr + r.pos - ic_bytes, ic_bytes));
    TRY(vectors_read(parts, &r, name));
    TRY(key_header_check(parts, name, "its first 864 bytes"));
    TRY(shape_derive(parts, name));
    return key_spot_check(parts, name);
}

FALLIBLE bellman_parse(struct key_parts *out, struct bytes file, const char *name) {
    AUTO(key_parts_done) struct key_parts parts = {0};
    TRY(parse(&parts, file, name));
    *out = parts;
    parts.vkey.ic = NULL;
    return OK;
}
