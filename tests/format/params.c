/* bellman's .params: whole and damaged. */
#include "tests/format/damaged.h"

#include "node/base/mem.h"
#include "node/key/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IC = 864, G1 = 96, G2 = 192 };

static struct damaged base_params(void) {
    return damaged_case("bls12381", "base/circuit.params");
}

/* Where the count of h, l, a, b_g1, b_g2 (0 … 4) stands. */
static size_t vector_place(const struct damaged *d, unsigned nth) {
    size_t at = IC;
    for (unsigned i = 0; i <= nth; i++) {
        at += 4 + (size_t)G1 * __builtin_bswap32(load_u32le(d->ptr + at));
    }
    return at;
}

static void claim_shape(void) {
    struct damaged d = base_params();
    struct key_parts p;
    CHECK_OK(key_parse(&p, bytes_of(d.ptr, d.len), d.name));
    CHECK_EQ(KEY_FORMAT_BELLMAN, p.shape.format);
    CHECK_EQ(H_POWERS, p.shape.h_basis);
    CHECK_EQ(CURVE_BLS12_381, p.shape.curve);
    CHECK_EQ(8, p.shape.wires_count);
    CHECK_EQ(2, p.shape.public_count);
    CHECK_EQ(8, p.shape.domain_size);
    CHECK_EQ(3, p.shape.domain_log2);
    CHECK_EQ(7, p.shape.points_count[KEY_H]);
    CHECK_EQ(5, p.shape.points_count[KEY_L]);
    CHECK_EQ(7, p.shape.points_count[KEY_A]);
    CHECK_EQ(4, p.shape.points_count[KEY_B1]);
    CHECK_EQ(4, p.shape.points_count[KEY_B2]);
    CHECK_EQ(0, p.shape.terms_count[0] + p.shape.terms_count[1]);
    CHECK(!p.zkey_layout && !p.contributions.present);
    CHECK_EQ(7, p.sections_count);
    CHECK_EQ(d.len, p.sections[6].offset + p.sections[6].bytes);
    key_parts_done(&p);
    damaged_free(&d);
}

static void claim_opens_as_file(void) {
    struct key *key = NULL;
    CHECK_OK(
        key_open(&key, check_vectors("bls12381/bits/circuit.params"), (struct key_options){false}));
    CHECK_EQ(132, key_shape(key)->wires_count);
    CHECK_EQ(255, key_shape(key)->points_count[KEY_H]);
    bool zkey_layout = true;
    struct bytes h = key_points_raw(&zkey_layout, key, KEY_H);
    CHECK(!zkey_layout);
    CHECK_EQ(255 * G1, h.len);
    CHECK_EQ(0, key_terms_raw(key).len);
    struct key_report report;
    CHECK_OK(key_check(&report, key, NULL, NULL, NULL));
    CHECK_EQ(255 + key_shape(key)->points_count[KEY_L] + key_shape(key)->points_count[KEY_A] +
                 2 * key_shape(key)->points_count[KEY_B1],
             report.points_checked);
    key_unref(&key);
}

static void claim_cut(void) {
    struct damaged whole = base_params();
    for (size_t len = 5; len < whole.len; len += 37) {
        struct damaged d = base_params();
        damaged_cut(&d, len);
        REFUSED(&d, READS_KEY, E_FORMAT, "cut short");
        damaged_free(&d);
    }
    struct damaged d = base_params();
    damaged_cut(&d, whole.len - 4096 > 0 ? whole.len - 4096 : 1);
    REFUSED(&d, READS_KEY, E_FORMAT, "cut short");
    damaged_free(&d);
    d = base_params();
    damaged_append(&d, "x", 1);
    REFUSED(&d, READS_KEY, E_FORMAT, "1 bytes follow b_g2");
    damaged_free(&d);
    damaged_free(&whole);
}

static void claim_counts(void) {
    static const char *const names[] = {"h", "l", "a", "b_g1", "b_g2"};
    struct damaged d = base_params();
    damaged_u32be(&d, IC, 0);
    REFUSED(&d, READS_KEY, E_FORMAT, "ic has no points");
    damaged_u32be(&d, IC, UINT32_MAX);
    REFUSED(&d, READS_KEY, E_FORMAT, "ic at byte 864 declares 4294967295 points");
    damaged_free(&d);
    for (unsigned i = 0; i < COUNT_OF(names); i++) {
        char text[64];
        snprintf(text, sizeof text, "%s at byte", names[i]);
        d = base_params();
        damaged_u32be(&d, vector_place(&d, i), UINT32_MAX);
        REFUSED(&d, READS_KEY, E_FORMAT, text, "declares 4294967295 points");
        damaged_free(&d);
        d = base_params();
        damaged_u32be(&d, vector_place(&d, i), 0); /* everything after is out of step */
        CHECK(reader_says(&d, READS_KEY) != OK);
        CHECK_HAS(err_detail(), "circuit.params: ");
        damaged_free(&d);
    }
}

/* Takes the last points of a vector away and keeps the file in step. */
static struct damaged vector_shortened(unsigned nth, uint32_t points) {
    struct damaged d = base_params();
    size_t at = vector_place(&d, nth), each = nth == 4 ? G2 : G1;
    uint32_t count = __builtin_bswap32(load_u32le(d.ptr + at));
    damaged_u32be(&d, at, count - points);
    damaged_remove(&d, at + 4 + (count - points) * each, points * each);
    return d;
}

static void claim_counts_agree(void) {
    struct damaged d = vector_shortened(0, 1);
    REFUSED(&d, READS_KEY, E_RANGE, "h has 6 points");
    damaged_free(&d);
    d = vector_shortened(0, 4);
    CHECK_EQ(OK, reader_says(&d, READS_KEY)); /* 3 points: a domain of 4, nothing else tells */
    damaged_free(&d);
    d = vector_shortened(0, 7);
    REFUSED(&d, READS_KEY, E_RANGE, "h has 0 points");
    damaged_free(&d);
    d = vector_shortened(2, 5);
    REFUSED(&d, READS_KEY, E_FORMAT, "a has 2 points");
    damaged_free(&d);
    d = vector_shortened(3, 1);
    REFUSED(&d, READS_KEY, E_FORMAT, "b_g1 has 3 points and b_g2 4");
    damaged_free(&d);
    d = vector_shortened(4, 1);
    REFUSED(&d, READS_KEY, E_FORMAT, "b_g1 has 4 points and b_g2 3");
    damaged_free(&d);
    d = vector_shortened(1, 5);
    REFUSED(&d, READS_KEY, E_FORMAT, "a has 7 points");
    damaged_free(&d);
}

static void claim_points(void) {
    static const char *const titles[] = {"h (H points)", "l (C points)", "a (A points)",
                                         "b_g1 (B1 points)", "b_g2 (B2 points)"};
    for (unsigned i = 0; i < COUNT_OF(titles); i++) {
        size_t each = i == 4 ? G2 : G1;
        struct damaged d = base_params();
        size_t point = vector_place(&d, i) + 4 + 2 * each; /* the third of them */
        d.ptr[point + 40] ^= 1;                            /* one bit of x */
        REFUSED(&d, READS_KEY, E_CURVE, titles[i], "point 2 at byte");
        damaged_free(&d);
        d = base_params();
        memset(d.ptr + point, 0, each);
        d.ptr[point] = 0x40; /* infinity, properly written */
        REFUSED(&d, READS_KEY, E_CURVE, titles[i], "point 2 at byte", "infinity");
        damaged_free(&d);
        static const uint8_t flags[] = {0x40, 0x80, 0x20};
        for (size_t k = 0; k < COUNT_OF(flags); k++) {
            d = base_params();
            d.ptr[point] |= flags[k];
            CHECK(reader_says(&d, READS_KEY) != OK);
            CHECK_HAS(err_detail(), titles[i]);
            damaged_free(&d);
        }
        d = base_params();
        memset(d.ptr + point, 0x1f, each); /* not below p, no flag set */
        REFUSED(&d, READS_KEY, E_RANGE, titles[i]);
        damaged_free(&d);
    }
}

/* A hole in the middle of a larger key: not at one of the points that opening looks at. */
static void claim_check_finds_what_opening_skips(void) {
    struct damaged d = damaged_case("bls12381", "bits/circuit.params");
    size_t h = vector_place(&d, 0) + 4;
    bool skipped = false;
    for (unsigned i = 0; i < 255 && !skipped; i++) {
        struct key_parts p;
        d.ptr[h + i * G1 + 40] ^= 1;
        if (key_parse(&p, bytes_of(d.ptr, d.len), d.name) == OK) {
            uint64_t infinities = 0;
            struct point_range range = {KEY_H, 0, 255, true};
            CHECK_ERR(E_CURVE, key_points_check(&infinities, &p, d.name, range));
            char text[48];
            snprintf(text, sizeof text, "h (H points): point %u at byte %u", i, i * G1);
            CHECK_HAS(err_detail(), text);
            key_parts_done(&p);
            skipped = true;
        }
        d.ptr[h + i * G1 + 40] ^= 1;
    }
    CHECK(skipped);
    damaged_free(&d);
}

static void claim_other_names(void) {
    struct damaged d = base_params();
    d.name = "renamed.bin"; /* recognised by content */
    TAKEN(&d, READS_KEY);
    d.ptr[0] |= 0x80;
    REFUSED(&d, READS_KEY, E_FORMAT, "not a proving key");
    d.name = "broken.params"; /* recognised by name */
    REFUSED(&d, READS_KEY, E_FORMAT, "alpha_g1 at byte 0");
    damaged_free(&d);
}

int main(int argc, char **argv) {
    setenv("BELLOWS_CACHE", "/dev/null/none", 1); /* nothing of a test is remembered */
    static const struct check_claim claims[] = {
        {"params: counts become the key's shape", claim_shape},
        {"params: opens as a file, and every point checks", claim_opens_as_file},
        {"params: cut or with bytes to spare it is refused (A11)", claim_cut},
        {"params: counts that no bytes back are refused (A11, A15)", claim_counts},
        {"params: counts that contradict each other are refused (A11)", claim_counts_agree},
        {"params: a bad bit, infinity or flag in any vector is named (A11)", claim_points},
        {"params: key_check finds the bad point that opening did not look at (A11)",
         claim_check_finds_what_opening_skips},
        {"params: recognised by content, else by name", claim_other_names},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
