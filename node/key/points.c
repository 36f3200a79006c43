/* Points of a key, one set at a time: what all formats share once their places are known.
 *
 * A check names the first bad point by set, index and byte offset in the file, since "a point is not on the curve"
 * alone has sent people looking at their circuits when the download was cut. Costs, one core: on the curve about
 * 0.3 µs (G1), in the subgroup nothing more on BN254's G1 and tens of µs elsewhere.
 */

#include "node/curve/encode.h"
#include "node/key/mapping_guard.h"
#include "node/key/parts.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

static const struct {
    const char *zkey, *bellman, *native;
    enum point_group group;
} sets[KEY_POINTS_COUNT] = {
    [KEY_A] = {"section 5 (A points)", "a (A points)", "A points", GROUP_G1},
    [KEY_B1] = {"section 6 (B1 points)", "b_g1 (B1 points)", "B1 points", GROUP_G1},
    [KEY_B2] = {"section 7 (B2 points)", "b_g2 (B2 points)", "B2 points", GROUP_G2},
    [KEY_L] = {"section 8 (C points)", "l (C points)", "L points", GROUP_G1},
    [KEY_H] = {"section 9 (H points)", "h (H points)", "H points", GROUP_G1},
};

const char *key_points_title(enum key_format format, enum key_points which) {
    ASSERT(which < KEY_POINTS_COUNT);
    return format == KEY_FORMAT_ZKEY     ? sets[which].zkey
           : format == KEY_FORMAT_NATIVE ? sets[which].native
                                         : sets[which].bellman;
}

enum point_group key_points_group(enum key_points which) {
    ASSERT(which < KEY_POINTS_COUNT);
    return sets[which].group;
}

uint64_t key_h_place(uint64_t i, unsigned log2) {
    uint64_t place = 0;
    for (unsigned bit = 0; bit < log2; bit++) {
        place |= (i >> bit & 1) << (log2 - 1 - bit);
    }
    return place;
}

void key_parts_done(struct key_parts *parts) {
    vkey_done(&parts->vkey);
}

static bool all_zero(const uint8_t *p, size_t len) {
    return p[0] == 0 && memcmp(p, p + 1, len - 1) == 0;
}

/* Range, curve and subgroup of packed points in the zkey layout. */
static enum err check_packed(size_t *bad_idx, uint64_t *infinities, const struct curve *c,
                             const uint8_t *points, struct point_range range) {
    enum point_group group = key_points_group(range.which);
    size_t point_bytes = curve_point_bytes(c, group);
    for (uint64_t i = 0; i < range.count; i++) {
        *infinities += all_zero(points + i * point_bytes, point_bytes);
    }
    return group == GROUP_G1 ? c->g1_check(bad_idx, points, range.count, range.subgroup)
                             : c->g2_check(bad_idx, points, range.count, range.subgroup);
}

/* The same for bellman's coding; infinity is an error. */
static enum err check_coded(size_t *bad_idx, const struct curve *c, const uint8_t *points,
                            struct point_range range) {
    enum point_group group = key_points_group(range.which);
    size_t point_bytes = curve_point_bytes(c, group);
    for (uint64_t i = 0; i < range.count; i++) {
        struct bytes at = bytes_of(points + i * point_bytes, point_bytes);
        struct g1 p1;
        struct g2 p2;
        *bad_idx = i;
        if (group == GROUP_G1) {
            TRY(bellman_g1_read(&p1, c, at, false, range.subgroup));
        } else {
            TRY(bellman_g2_read(&p2, c, at, false, range.subgroup));
        }
        bool infinite = group == GROUP_G1 ? g1_is_infinity(&p1) : g2_is_infinity(&p2);
        REQUIRE(!infinite, E_CURVE, "is infinity, which this format leaves out");
    }
    return OK;
}

static const char *fault_in_words(enum err code, bool subgroup) {
    if (code == E_RANGE) {
        return "has a coordinate that is not below the field's modulus";
    }
    return subgroup ? "is not on the curve, or not in its subgroup" : "is not on the curve";
}

FALLIBLE key_points_check(uint64_t *infinities, const struct key_parts *parts, const char *name,
                          struct point_range range) {
    const struct bytes set = parts->points[range.which];
    size_t point_bytes = curve_point_bytes(parts->curve, key_points_group(range.which));
    ASSERT(range.from + range.count <= set.len / point_bytes);
    const uint8_t *points = set.ptr + range.from * point_bytes;
    size_t bad = 0;
    const char *title = key_points_title(parts->shape.format, range.which);
    enum err e;
    if (parts->zkey_layout) {
        e = check_packed(&bad, infinities, parts->curve, points, range);
        REQUIRE(e == OK, e,
                "%s: %s: point %" PRIu64 " at byte %" PRIu64
                " of it %s; the file is damaged: fetch it again",
                name, title, range.from + bad, (range.from + bad) * point_bytes,
                fault_in_words(e, range.subgroup));
        return OK;
    }
    e = check_coded(&bad, parts->curve, points, range);
    return e == OK ? OK
                   : err_prefix(e,
                                "%s: %s: point %" PRIu64 " at byte %" PRIu64
                                " of it; the file is damaged, fetch it again",
                                name, title, range.from + bad, (range.from + bad) * point_bytes);
}

FALLIBLE key_header_check(const struct key_parts *parts, const char *name, const char *where) {
    const struct vkey *vk = &parts->vkey;
    REQUIRE(!g1_is_infinity(&vk->beta1), E_CURVE, "%s: %s: beta in G1 is infinity", name, where);
    REQUIRE(!g1_is_infinity(&vk->delta1), E_CURVE, "%s: %s: delta in G1 is infinity", name, where);
    enum err e = vkey_check(vk);
    return e == OK ? OK : err_prefix(e, "%s: %s: the file is damaged, fetch it again", name, where);
}

/* The k-th of the points of a set that are looked at when opening, spread from the first to the last. */
static uint64_t spot_at(uint64_t count, uint64_t k) {
    uint64_t spots = count < KEY_SPOT_POINTS ? count : KEY_SPOT_POINTS;
    return spots == 1 ? 0 : k * (count - 1) / (spots - 1);
}

/* Asks for all their pages first: on a cold file the reads then overlap. */
static void spots_prefetch(const struct key_parts *parts) {
    for (unsigned which = 0; which < KEY_POINTS_COUNT; which++) {
        uint64_t count = parts->shape.points_count[which];
        size_t point_bytes = curve_point_bytes(parts->curve, key_points_group(which));
        for (uint64_t k = 0; count > KEY_SPOT_POINTS && k < KEY_SPOT_POINTS; k++) {
            const uint8_t *point = parts->points[which].ptr + spot_at(count, k) * point_bytes;
            mapping_advise(bytes_of(point, point_bytes), MADV_WILLNEED);
        }
    }
}

FALLIBLE key_spot_check(const struct key_parts *parts, const char *name) {
    uint64_t infinities = 0;
    spots_prefetch(parts);
    for (unsigned which = 0; which < KEY_POINTS_COUNT; which++) {
        uint64_t count = parts->shape.points_count[which];
        for (uint64_t k = 0; k < count && k < KEY_SPOT_POINTS; k++) {
            struct point_range range = {(enum key_points)which, spot_at(count, k), 1, false};
            TRY(key_points_check(&infinities, parts, name, range));
        }
    }
    return OK;
}
