/* Decimal text and bellman's points: round trips, ZCash's encodings as another library writes them, every refusal. */
#include "node/curve/encode.h"
#include "node/base/json.h"
#include "tests/check/check.h"
#include "tests/unit/curve/tables.h"

#include <stdio.h>
#include <string.h>

/* --- Decimal. --- */

static void check_decimal(const struct curve *c) {
    char text[FP_DECIMAL_MAX];
    for (int i = 0; i < 100; i++) {
        struct scalar s = i < 2 ? scalar_of((uint64_t)i) : scalar_some(c), back;
        if (i % 3 == 2) { /* short ones, and runs of zeros inside */
            s.w[1] = s.w[2] = s.w[3] = 0;
            s.w[0] = i % 2 ? UINT64_C(10000000000000000000) : s.w[0] >> i % 60;
        }
        scalar_to_decimal(text, &s);
        CHECK_OK(scalar_from_decimal(&back, c, text));
        CHECK_MEM(&s, &back, sizeof s);
        uint64_t mont[6], again[6];
        CHECK_OK(fp_from_decimal(mont, c, text));
        char text_fp[FP_DECIMAL_MAX];
        fp_to_decimal(text_fp, c, mont);
        CHECK_STR(text, text_fp);
        CHECK_OK(fp_from_decimal(again, c, text_fp));
        CHECK_MEM(mont, again, c->fp_bytes);
    }
    struct scalar s = c->r;
    s.w[0]--;
    scalar_to_decimal(text, &s);
    CHECK_STR(c->id == CURVE_BN254
                  ? "21888242871839275222246405745257275088548364400416034343698204186575808495616"
                  : "52435875175126190479447740508185965837690552500527637822603658699938581184512",
              text);
}

static void claim_decimal(void) {
    for_each_table(check_decimal);
}

static void check_decimal_refusals(const struct curve *c) {
    static const char *const not_numbers[] = {"",    " 1", "1 ", "+1",  "-1",  "0x10",
                                              "1e3", "00", "01", "1\n", "1.0", "\xd9\xa1"};
    struct scalar s = scalar_of(42);
    uint64_t fp[6] = {42}, untouched[6] = {42};
    for (size_t i = 0; i < COUNT_OF(not_numbers); i++) {
        CHECK_ERR(E_FORMAT, scalar_from_decimal(&s, c, not_numbers[i]));
        CHECK_ERR(E_FORMAT, fp_from_decimal(fp, c, not_numbers[i]));
    }
    char text[FP_DECIMAL_MAX], nines[FP_DECIMAL_MAX + 40];
    scalar_to_decimal(text, &c->r); /* r itself */
    CHECK_ERR(E_RANGE, scalar_from_decimal(&s, c, text));
    CHECK_HAS(err_detail(), "group order");
    CHECK_ERR(
        E_RANGE,
        fp_from_decimal(
            fp, c,
            c->id == CURVE_BN254
                ? "21888242871839275222246405745257275088696311157297823662689037894645226208583"
                : "40024095552216673934177898257359041565568828199390078853320581361240316504908378"
                  "64442687629129015664037894272559787"));
    CHECK_HAS(err_detail(), "field modulus");
    for (size_t len = 78; len < sizeof nines; len++) {
        memset(nines, '9', len);
        nines[len] = 0;
        CHECK_ERR(E_RANGE, scalar_from_decimal(&s, c, nines));
        CHECK(len < 116 || fp_from_decimal(fp, c, nines) == E_RANGE);
    }
    CHECK_EQ(42, s.w[0]);
    CHECK_MEM(untouched, fp, c->fp_bytes);
}

static void claim_decimal_refusals(void) {
    for_each_table(check_decimal_refusals);
}

/* --- Bellman. --- */

static void check_round_trip(const struct curve *c) {
    for (int i = 0; i < 20; i++) {
        struct scalar k = i < 3 ? scalar_of((uint64_t)i) : scalar_some(c);
        struct g1 p, p_back;
        struct g2 q, q_back;
        uint8_t bytes[G2_BYTES_MAX];
        c->g1_mul(&p, &c->g1_generator, &k);
        c->g2_mul(&q, &c->g2_generator, &k);
        for (int compressed = 0; compressed < 2; compressed++) {
            size_t len = bellman_point_bytes(c, GROUP_G1, compressed);
            CHECK_EQ(c->fp_bytes * (compressed ? 1 : 2), len);
            bellman_g1_write(bytes, c, &p, compressed);
            CHECK_OK(bellman_g1_read(&p_back, c, bytes_of(bytes, len), compressed, true));
            CHECK_MEM(&p, &p_back, sizeof p);
            len = bellman_point_bytes(c, GROUP_G2, compressed);
            CHECK_EQ(c->fp_bytes * (compressed ? 2 : 4), len);
            bellman_g2_write(bytes, c, &q, compressed);
            CHECK_OK(bellman_g2_read(&q_back, c, bytes_of(bytes, len), compressed, true));
            CHECK_MEM(&q, &q_back, sizeof q);
        }
    }
}

static void claim_round_trip(void) {
    for_each_table(check_round_trip);
}

/* Multiples of the generators as noble-curves 2.4.0 writes them. */
static void check_zcash(const struct curve *c) {
    if (c->id != CURVE_BLS12_381) {
        return;
    }
    cJSON *json = NULL;
    CHECK_OK(json_read(&json, check_vectors("curve/bls12_381-encodings.json")));
    CHECK_EQ(8, cJSON_GetArraySize(json));
    const cJSON *row;
    cJSON_ArrayForEach(row, json) {
        struct scalar k;
        struct g1 p, p_read;
        struct g2 q, q_read;
        CHECK_OK(scalar_from_decimal(&k, c, cJSON_GetObjectItem(row, "k")->valuestring));
        c->g1_mul(&p, &c->g1_generator, &k);
        c->g2_mul(&q, &c->g2_generator, &k);
        for (int compressed = 0; compressed < 2; compressed++) {
            uint8_t want[G2_BYTES_MAX], got[G2_BYTES_MAX];
            size_t len = bellman_point_bytes(c, GROUP_G1, compressed);
            CHECK_OK(hex_decode(
                want, len,
                cJSON_GetObjectItem(row, compressed ? "g1" : "g1_uncompressed")->valuestring));
            bellman_g1_write(got, c, &p, compressed);
            CHECK_MEM(want, got, len);
            CHECK_OK(bellman_g1_read(&p_read, c, bytes_of(want, len), compressed, true));
            CHECK_MEM(&p, &p_read, sizeof p);
            len = bellman_point_bytes(c, GROUP_G2, compressed);
            CHECK_OK(hex_decode(
                want, len,
                cJSON_GetObjectItem(row, compressed ? "g2" : "g2_uncompressed")->valuestring));
            bellman_g2_write(got, c, &q, compressed);
            CHECK_MEM(want, got, len);
            CHECK_OK(bellman_g2_read(&q_read, c, bytes_of(want, len), compressed, true));
            CHECK_MEM(&q, &q_read, sizeof q);
        }
    }
    json_free(&json);
}

static void claim_zcash(void) {
    for_each_table(check_zcash);
}

/* A reader of either group, for refusals that do not care which. */
static enum err read_point(const struct curve *c, enum point_group g, const uint8_t *bytes,
                           size_t len, bool compressed) {
    struct g1 p = {{42}};
    struct g2 q = {{42}};
    enum err code;
    if (g == GROUP_G1) {
        code = bellman_g1_read(&p, c, bytes_of(bytes, len), compressed, true);
        CHECK(code == OK || p.w[0] == 42);
    } else {
        code = bellman_g2_read(&q, c, bytes_of(bytes, len), compressed, true);
        CHECK(code == OK || q.w[0] == 42);
    }
    return code;
}

static void write_generator(uint8_t *out, const struct curve *c, enum point_group g,
                            bool compressed) {
    if (g == GROUP_G1) {
        bellman_g1_write(out, c, &c->g1_generator, compressed);
    } else {
        bellman_g2_write(out, c, &c->g2_generator, compressed);
    }
}

static void check_flag_refusals(const struct curve *c) {
    bool bls = c->id == CURVE_BLS12_381;
    for (int g = GROUP_G1; g <= GROUP_G2; g++) {
        for (int compressed = 0; compressed < 2; compressed++) {
            size_t len = bellman_point_bytes(c, (enum point_group)g, compressed);
            uint8_t good[G2_BYTES_MAX], bytes[G2_BYTES_MAX];
            write_generator(good, c, (enum point_group)g, compressed);
            CHECK_OK(read_point(c, (enum point_group)g, good, len, compressed));
            CHECK_ERR(E_FORMAT, read_point(c, (enum point_group)g, good, len - 1, compressed));
            CHECK_ERR(E_FORMAT, read_point(c, (enum point_group)g, good, 0, compressed));

            memcpy(bytes, good, len); /* infinity's flag on a finite point */
            bytes[0] |= 0x40;
            CHECK_ERR(E_FORMAT, read_point(c, (enum point_group)g, bytes, len, compressed));
            if (bls) {
                memcpy(bytes, good, len); /* the other kind of point */
                bytes[0] ^= 0x80;
                CHECK_ERR(E_FORMAT, read_point(c, (enum point_group)g, bytes, len, compressed));
            }
            if (!compressed) {
                memcpy(bytes, good, len); /* a sign where y is given */
                bytes[0] |= bls ? 0x20 : 0x80;
                CHECK_ERR(E_FORMAT, read_point(c, (enum point_group)g, bytes, len, compressed));
                memset(bytes, 0, len); /* (0, 0) is not infinity here */
                CHECK_ERR(E_CURVE, read_point(c, (enum point_group)g, bytes, len, compressed));
            }
            memset(bytes, 0, len); /* infinity, alone and with each other bit */
            bytes[0] = (uint8_t)(0x40 | (bls && compressed ? 0x80 : 0));
            CHECK_OK(read_point(c, (enum point_group)g, bytes, len, compressed));
            for (size_t bit = 0; bit < 8 * len; bit++) {
                if (bit != 6) { /* taking the flag itself off is the (0, 0) above */
                    bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
                    CHECK_ERR(E_FORMAT, read_point(c, (enum point_group)g, bytes, len, compressed));
                    bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
                }
            }
        }
    }
}

static void claim_flag_refusals(void) {
    for_each_table(check_flag_refusals);
}

static void check_value_refusals(const struct curve *c) {
    for (int g = GROUP_G1; g <= GROUP_G2; g++) {
        for (int compressed = 0; compressed < 2; compressed++) {
            size_t len = bellman_point_bytes(c, (enum point_group)g, compressed);
            uint8_t good[G2_BYTES_MAX], bytes[G2_BYTES_MAX];
            write_generator(good, c, (enum point_group)g, compressed);
            for (size_t at = 0; at < len; at += c->fp_bytes) { /* a coordinate of p */
                memcpy(bytes, good, len);
                uint8_t flags = at == 0 && c->id == CURVE_BLS12_381 && compressed ? 0x80 : 0;
                for (size_t i = 0; i < c->fp_bytes; i++) {
                    size_t low = c->fp_bytes - 1 - i;
                    bytes[at + i] = (uint8_t)(c->p[low / 8] >> (8 * (low % 8)));
                }
                bytes[at] |= flags;
                CHECK_ERR(E_RANGE, read_point(c, (enum point_group)g, bytes, len, compressed));
            }
            int off_curve = 0, outside = 0; /* other x, or other y */
            for (int i = 0; i < 40; i++) {
                memcpy(bytes, good, len);
                bytes[len - 1] ^= (uint8_t)(i + 1);
                enum err code = read_point(c, (enum point_group)g, bytes, len, compressed);
                bool no_point = code == E_CURVE && !strstr(err_detail(), "subgroup");
                off_curve += no_point;
                outside += code == E_CURVE && !no_point;
                CHECK(no_point || compressed); /* another y is never on the curve */
            }
            CHECK(off_curve > 5);
            bool whole = c->id == CURVE_BN254 && g == GROUP_G1;
            CHECK((outside > 5) == (compressed && !whole));
        }
    }
}

static void claim_value_refusals(void) {
    for_each_table(check_value_refusals);
}

/* Of y and -y exactly one is the larger, and compression keeps it. */
static void check_signs(const struct curve *c) {
    for (uint64_t k = 1; k < 20; k++) {
        struct scalar s = scalar_of(k);
        struct g1 p, minus_p;
        struct g2 q, minus_q;
        uint8_t bytes[G2_BYTES_MAX], minus_bytes[G2_BYTES_MAX];
        c->g1_mul(&p, &c->g1_generator, &s);
        c->g1_neg(&minus_p, &p);
        CHECK(c->g1_y_is_larger(&p) != c->g1_y_is_larger(&minus_p));
        c->g2_mul(&q, &c->g2_generator, &s);
        c->g2_neg(&minus_q, &q);
        CHECK(c->g2_y_is_larger(&q) != c->g2_y_is_larger(&minus_q));
        bellman_g2_write(bytes, c, &q, true);
        bellman_g2_write(minus_bytes, c, &minus_q, true);
        CHECK_EQ(c->id == CURVE_BLS12_381 ? 0x20 : 0x80, bytes[0] ^ minus_bytes[0]);
        CHECK_MEM(bytes + 1, minus_bytes + 1, 2 * c->fp_bytes - 1);
    }
    if (c->id == CURVE_BN254) { /* y = 2 of the generator is the smaller */
        CHECK(!c->g1_y_is_larger(&c->g1_generator));
    }
}

static void claim_signs(void) {
    for_each_table(check_signs);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"decimal text is read and written without loss", claim_decimal},
        {"text that is no number, or too large, is refused", claim_decimal_refusals},
        {"points go through bellman's bytes and back", claim_round_trip},
        {"ZCash's encodings of known points come out and are read", claim_zcash},
        {"points with flags that mean nothing, or of a wrong length, are refused",
         claim_flag_refusals},
        {"points out of range, off the curve or the subgroup are refused", claim_value_refusals},
        {"the larger of y and -y is marked", claim_signs},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
