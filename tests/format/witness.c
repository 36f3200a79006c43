/* Damaged witnesses, and witnesses that belong to something else. */
#include "tests/format/damaged.h"

#include "node/base/mem.h"
#include "node/key/parts.h"

#include <stdio.h>
#include <string.h>

enum { HEADERS_BYTES = 76 }; /* before the first value, in the order that every generator writes */

static struct damaged base_witness(const char *curve) {
    return damaged_case(curve, "base/witness.wtns");
}

static uint8_t *value_at(const struct damaged *d, size_t idx) {
    return d->ptr + section_place(d, 2) + 32 * idx;
}

static size_t count_place(const struct damaged *d) {
    return section_place(d, 1) + 4 + 32;
}

/* little-endian 256-bit a += b */
static void add_256(uint8_t *a, const uint8_t *b) {
    unsigned carry = 0;
    for (int i = 0; i < 32; i++) {
        carry += (unsigned)a[i] + b[i];
        a[i] = (uint8_t)carry;
        carry >>= 8;
    }
}

static void claim_base_opens(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        struct damaged d = base_witness(curve_dirs[i]);
        struct witness w;
        CHECK_OK(witness_from_wtns_bytes(&w, bytes_of(d.ptr, d.len), d.name));
        CHECK_EQ(8, w.count);
        CHECK_STR(curve_dirs[i], w.curve->snarkjs_name);
        struct scalar out, x;
        witness_get(&out, &w, 1);
        witness_get(&x, &w, 2);
        CHECK_EQ(55132, out.w[0]);
        CHECK_EQ(3, x.w[0]);
        witness_close(&w);
        damaged_free(&d);
    }
}

static void claim_counts(void) {
    struct damaged d = base_witness("bn128");
    damaged_u32(&d, count_place(&d), 7); /* (a), (d): fewer declared than there are */
    REFUSED(&d, READS_WITNESS, E_FORMAT, "section 2 (values) has 256 bytes, 7 values need 224");
    damaged_u32(&d, count_place(&d), 9); /* (c) */
    REFUSED(&d, READS_WITNESS, E_FORMAT, "section 2 (values) has 256 bytes, 9 values need 288");
    damaged_u32(&d, count_place(&d), UINT32_MAX);
    REFUSED(&d, READS_WITNESS, E_FORMAT, "4294967295 values need");
    damaged_u32(&d, count_place(&d), 0);
    REFUSED(&d, READS_WITNESS, E_FORMAT, "0 values");
    damaged_free(&d);
    d = base_witness("bn128");
    damaged_cut(&d, HEADERS_BYTES + 32 * 7); /* (b) */
    REFUSED(&d, READS_WITNESS, E_FORMAT, "section 2 starts at 76 and claims 256 bytes", "224 left");
    damaged_free(&d);
    d = base_witness("bn128");
    damaged_cut(&d, HEADERS_BYTES + 32 * 4 + 16); /* half a value */
    REFUSED(&d, READS_WITNESS, E_FORMAT, "cut short");
    damaged_free(&d);
}

static void claim_does_not_fit_key(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        struct damaged key = damaged_case(curve_dirs[i], "base/circuit.zkey");
        struct key_parts parts;
        CHECK_OK(key_parse(&parts, bytes_of(key.ptr, key.len), key.name));
        struct damaged d = base_witness(curve_dirs[i]);
        static const uint8_t zero[32];
        damaged_append(&d, zero, sizeof zero); /* (e): one more, with length and count */
        damaged_u32(&d, count_place(&d), 9);
        damaged_u64(&d, section_place(&d, 2) - 8, 9 * 32);
        struct witness w;
        CHECK_OK(witness_from_wtns_bytes(&w, bytes_of(d.ptr, d.len), d.name));
        CHECK_ERR(E_RANGE, witness_fits(&w, &parts.shape, "circuit.zkey"));
        CHECK_HAS(err_detail(), "9 values");
        CHECK_HAS(err_detail(), "circuit.zkey has 8 wires");
        witness_close(&w);
        damaged_free(&d);
        struct damaged other = base_witness(curve_dirs[1 - i]);
        CHECK_OK(witness_from_wtns_bytes(&w, bytes_of(other.ptr, other.len), other.name));
        CHECK_ERR(E_CURVE, witness_fits(&w, &parts.shape, "circuit.zkey"));
        CHECK_HAS(err_detail(), "curve mismatch");
        CHECK_HAS(err_detail(), "bn128");
        CHECK_HAS(err_detail(), "bls12381");
        witness_close(&w);
        damaged_free(&other);
        key_parts_done(&parts);
        damaged_free(&key);
    }
}

static void claim_raw_values(void) {
    struct damaged d = base_witness("bn128");
    damaged_remove(&d, 0, HEADERS_BYTES);
    REFUSED(&d, READS_WITNESS, E_FORMAT, "no wtns header; looks like raw field elements (8 values",
            ".wtns");
    damaged_free(&d);
}

static void claim_other_files(void) {
    struct damaged d = damaged_case("bn128", "base/input.json");
    d.name = "renamed.wtns";
    REFUSED(&d, READS_WITNESS, E_FORMAT, "JSON text", "calculate the witness");
    damaged_free(&d);
    d = damaged_case("bn128", "base/circuit.zkey");
    REFUSED(&d, READS_WITNESS, E_FORMAT, "proving key", "key comes first");
    damaged_free(&d);
    d = damaged_case("bn128", "base/circuit.r1cs");
    REFUSED(&d, READS_WITNESS, E_FORMAT, "constraint system");
    damaged_free(&d);
    d = base_witness("bn128");
    REFUSED(&d, READS_KEY, E_FORMAT, "this is a witness", "key comes first");
    damaged_free(&d);
}

static void claim_header(void) {
    static const uint32_t widths[] = {0, 8, 31, 33, 48, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        struct damaged d = base_witness("bn128");
        char text[64];
        snprintf(text, sizeof text, "section 1: values of %u bytes", widths[i]);
        damaged_u32(&d, section_place(&d, 1), widths[i]);
        REFUSED(&d, READS_WITNESS, E_FORMAT, text);
        damaged_free(&d);
    }
    struct damaged d = base_witness("bls12381");
    d.ptr[section_place(&d, 1) + 4] ^= 4;
    REFUSED(&d, READS_WITNESS, E_CURVE, "section 1");
    damaged_free(&d);
    static const uint32_t versions[] = {0, 1, 3, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        d = base_witness("bn128");
        damaged_u32(&d, 4, versions[i]);
        REFUSED(&d, READS_WITNESS, E_FORMAT, "version", "reads version 2");
        damaged_free(&d);
    }
}

static void claim_values_not_canonical(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        const struct curve *c = curve_by_name(curve_dirs[i]);
        static const size_t places[] = {2, 5, 7}; /* public x, private m, the last */
        for (size_t k = 0; k < COUNT_OF(places); k++) {
            char text[48];
            snprintf(text, sizeof text, "value %zu of 8 is not canonical", places[k]);
            struct damaged d = base_witness(curve_dirs[i]);
            add_256(value_at(&d, places[k]), (const uint8_t *)c->r.w); /* v + r */
            REFUSED(&d, READS_WITNESS, E_RANGE, "section 2", text);
            memcpy(value_at(&d, places[k]), c->r.w, 32); /* r */
            REFUSED(&d, READS_WITNESS, E_RANGE, "section 2", text);
            memset(value_at(&d, places[k]), 0xff, 32); /* 2^256 - 1 */
            REFUSED(&d, READS_WITNESS, E_RANGE, "section 2", text);
            memcpy(value_at(&d, places[k]), c->r.w, 32);
            value_at(&d, places[k])[0] -= 1; /* r - 1 is the largest */
            TAKEN(&d, READS_WITNESS);
            damaged_free(&d);
        }
    }
}

static void claim_secrets_stay(void) {
    /* The value that is wrong must not be part of the sentence about it. */
    struct damaged d = base_witness("bn128");
    memset(value_at(&d, 3), 0xab, 32);
    CHECK(reader_says(&d, READS_WITNESS) == E_RANGE);
    CHECK(!strstr(err_detail(), "abab"));
    CHECK(!strstr(err_detail(), "7766"));
    damaged_free(&d);
}

static void claim_first_is_one(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        struct damaged d = base_witness(curve_dirs[i]);
        value_at(&d, 0)[0] = 0;
        REFUSED(&d, READS_WITNESS, E_RANGE, "section 2", "value 0 is not 1");
        value_at(&d, 0)[0] = 2;
        REFUSED(&d, READS_WITNESS, E_RANGE, "value 0 is not 1");
        memset(value_at(&d, 0), 0, 8 * 32); /* an all-zero witness */
        REFUSED(&d, READS_WITNESS, E_RANGE, "value 0 is not 1");
        damaged_free(&d);
    }
}

static void claim_from_values(void) {
    const struct curve *c = curve_by_id(CURVE_BN254);
    struct damaged d = base_witness("bn128");
    uint8_t *values = mem_alloc(8 * 32);
    memcpy(values, value_at(&d, 0), 8 * 32);
    struct witness w;
    memset(values + 3 * 32, 0xff, 32);
    CHECK_ERR(E_RANGE, witness_from_values(&w, c, values, 8, "job x"));
    CHECK_HAS(err_detail(), "job x: value 3 of 8");
    CHECK_ERR(E_RANGE, witness_from_values(&w, c, values, 0, "job x"));
    memcpy(values, value_at(&d, 0), 8 * 32);
    long blocks = mem_live_blocks();
    CHECK_OK(witness_from_values(&w, c, values, 8, "job x")); /* owned from here */
    CHECK_OK(witness_intact(&w));
    witness_close(&w);
    CHECK_EQ(blocks - 1, mem_live_blocks());
    CHECK(w.values == NULL && w.owned == NULL);
    damaged_free(&d);
}

static void claim_corpus_of_bad_witnesses(void) {
    static const struct {
        const char *file;
        enum err code;
        const char *text;
    } bad[] = {
        {"first-not-one.wtns", E_RANGE, "value 0 is not 1"},
        {"noncanonical.wtns", E_RANGE, "value 1 of 4 is not canonical"},
        {"truncated.wtns", E_FORMAT, "cut short"},
        {"bad-magic.wtns", E_FORMAT, "58 74 6e 73"},
        {"future-version.wtns", E_FORMAT, "version 3"},
    };
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        for (size_t k = 0; k < COUNT_OF(bad); k++) {
            char tail[64];
            snprintf(tail, sizeof tail, "bad/%s", bad[k].file);
            struct damaged d = damaged_case(curve_dirs[i], tail);
            REFUSED(&d, READS_WITNESS, bad[k].code, bad[k].text);
            damaged_free(&d);
        }
        /* These two are well-formed: the one does not fit its key, the other not its circuit. */
        struct damaged d = damaged_case(curve_dirs[i], "bad/short.wtns");
        TAKEN(&d, READS_WITNESS);
        damaged_free(&d);
        d = damaged_case(curve_dirs[i], "bad/unsatisfied.wtns");
        TAKEN(&d, READS_WITNESS);
        damaged_free(&d);
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"witness: the undamaged base witness opens with its values", claim_base_opens},
        {"witness: counts that do not fit the file are refused with both numbers (A05, A15)",
         claim_counts},
        {"witness: a witness of another circuit or curve does not fit the key (A05, A09)",
         claim_does_not_fit_key},
        {"witness: raw values without a header are recognised (A06)", claim_raw_values},
        {"witness: JSON, a key or an r1cs in its place is called by name (A06)", claim_other_files},
        {"witness: value width, prime and version are checked (A09)", claim_header},
        {"witness: a value of r or more is refused, public or private (B01)",
         claim_values_not_canonical},
        {"witness: no value enters an error's sentence", claim_secrets_stay},
        {"witness: value 0 must be 1 (B14)", claim_first_is_one},
        {"witness: values in memory are checked, then owned", claim_from_values},
        {"witness: every damaged witness of the vectors is refused with its cause",
         claim_corpus_of_bad_witnesses},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
