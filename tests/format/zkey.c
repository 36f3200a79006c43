/* Damaged .zkey files: each claim takes one good key, breaks one thing, and wants one sentence back. */
#include "tests/format/damaged.h"

#include "node/base/mem.h"
#include "node/key/parts.h"

#include <stdio.h>
#include <string.h>

#define FOR_EACH_CURVE(curve)                                                                      \
    for (const char *const *curve##_at = curve_dirs; curve##_at < curve_dirs + CURVES_COUNT;       \
         curve##_at++)                                                                             \
        for (const char *curve = *curve##_at; curve; curve = NULL)

static struct damaged base_key(const char *curve) {
    return damaged_case(curve, "base/circuit.zkey");
}

static const uint32_t point_sections[] = {5, 6, 7, 8, 9};

/* ── Sections ── */

static void claim_base_opens(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        TAKEN(&d, READS_KEY);
        damaged_free(&d);
    }
}

/* Where the last section's header starts; snarkjs writes section 10 last. */
static size_t section_10_header(const struct damaged *d) {
    return section_place(d, 10) - 12;
}

static void claim_unfinished_opens(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        damaged_cut(&d, section_10_header(&d));
        damaged_u32(&d, 8, 9);
        struct key_parts parts;
        CHECK_OK(key_parse(&parts, bytes_of(d.ptr, d.len), d.name));
        CHECK(!parts.contributions.present);
        key_parts_done(&parts);
        damaged_free(&d);
    }
}

static void claim_missing_last_section(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        damaged_cut(&d, section_10_header(&d));
        REFUSED(&d, READS_KEY, E_FORMAT, "ends before section 10 of 10", "fetch it again");
        damaged_free(&d);
    }
}

static void claim_trailing_bytes(void) {
    struct damaged d = base_key("bn128");
    damaged_u32(&d, 8, 9); /* section 10 stays, uncounted */
    REFUSED(&d, READS_KEY, E_FORMAT, "bytes follow the last of 9 sections");
    damaged_free(&d);
}

/* The section with the wrong length is named, and not the nonsense that is then read as the next one's header. */
static void claim_section_length_zero(void) {
    FOR_EACH_CURVE(curve) {
        for (size_t i = 0; i < COUNT_OF(point_sections); i++) {
            struct damaged d = base_key(curve);
            char place[64];
            size_t at = section_place(&d, point_sections[i]);
            damaged_u64(&d, at - 8, 0);
            snprintf(place, sizeof place, "section %u starts at %zu and claims 0 bytes",
                     point_sections[i], at);
            REFUSED(&d, READS_KEY, E_FORMAT, place, "its length is wrong", "fetch it again");
            damaged_free(&d);
        }
    }
}

/* The same damage with a table that stays whole: the bytes are gone as well. */
static void claim_section_empty(void) {
    FOR_EACH_CURVE(curve) {
        for (size_t i = 0; i < COUNT_OF(point_sections); i++) {
            struct damaged d = base_key(curve);
            char place[32];
            snprintf(place, sizeof place, "section %u (", point_sections[i]);
            section_shorten(&d, point_sections[i], section_length(&d, point_sections[i]));
            REFUSED(&d, READS_KEY, E_FORMAT, place, "has 0 bytes", "need", "fetch it again");
            damaged_free(&d);
        }
    }
}

static void claim_section_short_by_a_point(void) {
    FOR_EACH_CURVE(curve) {
        for (size_t i = 0; i < COUNT_OF(point_sections); i++) {
            struct damaged d = base_key(curve);
            uint32_t id = point_sections[i];
            size_t point_bytes = (id == 7 ? 4 : 2) * zkey_q_bytes(&d);
            char place[32];
            snprintf(place, sizeof place, "section %u (", id);
            section_shorten(&d, id, point_bytes);
            REFUSED(&d, READS_KEY, E_FORMAT, place, "need");
            damaged_free(&d);
        }
    }
}

static void claim_sentence_has_both_numbers(void) {
    struct damaged d = damaged_case("bn128", "mul-contrib/circuit.zkey");
    section_shorten(&d, 5, 64);
    REFUSED(&d, READS_KEY, E_FORMAT,
            "circuit.zkey: section 5 (A points) has 192 bytes, 4 wires need 256; the file is "
            "damaged: fetch it again");
    damaged_free(&d);
}

static void claim_each_section_is_needed(void) {
    FOR_EACH_CURVE(curve) {
        for (uint32_t id = 1; id <= 9; id++) {
            struct damaged d = base_key(curve);
            char sentence[32];
            snprintf(sentence, sizeof sentence, "section %u (", id);
            size_t at = section_place(&d, id) - 12;
            damaged_remove(&d, at, 12 + section_length(&d, id));
            damaged_u32(&d, 8, 9);
            REFUSED(&d, READS_KEY, E_FORMAT, sentence, "is missing");
            damaged_free(&d);
        }
    }
}

static void claim_duplicate_section(void) {
    struct damaged d = base_key("bn128");
    damaged_u32(&d, section_place(&d, 6) - 12, 5);
    REFUSED(&d, READS_KEY, E_FORMAT, "section 5 comes twice");
    damaged_free(&d);
}

static void claim_any_order(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        /* Rotate the sections one by one to the end: ten orders. */
        for (int turn = 0; turn < 10; turn++) {
            size_t bytes = 12 + load_u64le(d.ptr + 16);
            uint8_t *first = mem_alloc(bytes);
            memcpy(first, d.ptr + 12, bytes);
            damaged_remove(&d, 12, bytes);
            damaged_append(&d, first, bytes);
            mem_free(first);
            TAKEN(&d, READS_KEY);
        }
        damaged_free(&d);
    }
}

static void claim_unknown_section_is_skipped(void) {
    struct damaged d = base_key("bn128");
    static const uint8_t extra[] = {77, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'};
    damaged_append(&d, extra, sizeof extra);
    damaged_u32(&d, 8, 11);
    TAKEN(&d, READS_KEY);
    damaged_free(&d);
}

static void claim_length_that_wraps(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        size_t place = section_place(&d, 5) - 8;
        damaged_u64(&d, place, 0 - (uint64_t)(place - 4)); /* position + length = 0 mod 2^64 */
        REFUSED(&d, READS_KEY, E_FORMAT, "section 5 starts at", "but the file has only");
        damaged_u64(&d, place, UINT64_MAX);
        REFUSED(&d, READS_KEY, E_FORMAT, "18446744073709551615 bytes");
        damaged_free(&d);
    }
}

static void claim_section_count_unbacked(void) {
    struct damaged d = base_key("bn128");
    damaged_u32(&d, 8, UINT32_MAX);
    REFUSED(&d, READS_KEY, E_FORMAT, "declares 4294967295 sections");
    damaged_u32(&d, 8, 0);
    REFUSED(&d, READS_KEY, E_FORMAT, "declares 0 sections");
    damaged_free(&d);
}

static void claim_lengths_of_the_library_entry(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged whole = base_key(curve);
        const size_t lengths[] = {11, 40, 700, whole.len - 1, whole.len * 6 / 10};
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            struct damaged d = base_key(curve);
            damaged_cut(&d, lengths[i]);
            REFUSED(&d, READS_KEY, E_FORMAT, "fetch it again");
            damaged_free(&d);
        }
        damaged_free(&whole);
    }
}

/* ── Protocol, curve, header ── */

static void claim_other_protocols(void) {
    struct damaged d = base_key("bn128");
    size_t place = section_place(&d, 1);
    damaged_u32(&d, place, 2);
    REFUSED(&d, READS_KEY, E_FORMAT, "PLONK (protocol 2)", "only Groth16");
    damaged_u32(&d, place, 10);
    REFUSED(&d, READS_KEY, E_FORMAT, "FFLONK (protocol 10)");
    damaged_u32(&d, place, 0);
    REFUSED(&d, READS_KEY, E_FORMAT, "unknown protocol 0");
    damaged_u32(&d, place, 255);
    REFUSED(&d, READS_KEY, E_FORMAT, "unknown protocol 255");
    damaged_free(&d);
}

static void claim_coordinate_width(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        size_t place = section_place(&d, 2);
        uint32_t other = zkey_q_bytes(&d) == 32 ? 48 : 32;
        damaged_u32(&d, place, other);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 2 (header) has", "need");
        damaged_u32(&d, place, 0);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 2: coordinates of 0 bytes");
        damaged_u32(&d, place, UINT32_MAX);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 2: coordinates of 4294967295 bytes");
        damaged_free(&d);
    }
}

static void claim_scalar_width(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        damaged_u32(&d, section_place(&d, 2) + 4 + zkey_q_bytes(&d), 40);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 2: scalars of 40 bytes");
        damaged_free(&d);
    }
}

static void claim_unknown_prime(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        d.ptr[section_place(&d, 2) + 4] ^= 2;
        REFUSED(&d, READS_KEY, E_CURVE, "section 2");
        damaged_free(&d);
    }
}

static void claim_mixed_primes(void) {
    /* BN254's q with BLS12-381's r: each known, not together. */
    struct damaged d = base_key("bn128"), other = base_key("bls12381");
    memcpy(d.ptr + section_place(&d, 2) + 4 + 32 + 4,
           other.ptr + section_place(&other, 2) + 4 + 48 + 4, 32);
    REFUSED(&d, READS_KEY, E_CURVE, "section 2");
    damaged_free(&d);
    damaged_free(&other);
}

static void claim_domain(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        size_t place = zkey_domain_place(&d);
        static const uint32_t not_powers[] = {0, 1, 6, 7, 9, UINT32_MAX};
        for (size_t i = 0; i < COUNT_OF(not_powers); i++) {
            char text[64];
            snprintf(text, sizeof text, "domain size %u is not a power of two", not_powers[i]);
            damaged_u32(&d, place, not_powers[i]);
            REFUSED(&d, READS_KEY, E_RANGE, "section 2", text);
        }
        damaged_u32(&d, place, 16);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 9 (H points) has", "16 rows of the domain need");
        damaged_u32(&d, place, 4);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 9 (H points) has", "4 rows of the domain need");
        damaged_u32(&d, place, 2);
        REFUSED(&d, READS_KEY, E_RANGE, "has no room for 2 public signals");
        damaged_u32(&d, place, 0x80000000u);
        if (!strcmp(curve, "bn128")) {
            REFUSED(&d, READS_KEY, E_RANGE, "domain size 2^31", "none above 2^28");
        } else {
            REFUSED(&d, READS_KEY, E_FORMAT, "section 9 (H points)");
        }
        damaged_free(&d);
    }
}

static void claim_domain_smaller_with_fitting_h(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        damaged_u32(&d, zkey_domain_place(&d), 4);
        section_shorten(&d, 9, 4 * 2 * zkey_q_bytes(&d));
        REFUSED(&d, READS_KEY, E_RANGE, "section 4", "the domain has 4");
        damaged_free(&d);
    }
}

static void claim_counts_unbacked(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        damaged_u32(&d, zkey_wires_place(&d), UINT32_MAX);
        REFUSED(&d, READS_KEY, E_FORMAT, "4294967295 wires need");
        damaged_u32(&d, zkey_wires_place(&d), 0);
        REFUSED(&d, READS_KEY, E_RANGE, "do not fit 0 wires");
        damaged_free(&d);
        d = base_key(curve);
        damaged_u32(&d, zkey_public_place(&d), UINT32_MAX);
        REFUSED(&d, READS_KEY, E_RANGE, "4294967295 public signals");
        damaged_u32(&d, zkey_public_place(&d), 8);
        REFUSED(&d, READS_KEY, E_RANGE, "8 public signals and the constant do not fit 8 wires");
        damaged_u32(&d, zkey_public_place(&d), 7);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 3 (IC points) has");
        damaged_free(&d);
        d = base_key(curve);
        damaged_u32(&d, zkey_wires_place(&d), UINT32_MAX);
        damaged_u32(&d, zkey_public_place(&d), UINT32_MAX - 1);
        REFUSED(&d, READS_KEY, E_RANGE, "4294967294 public signals");
        damaged_free(&d);
    }
}

/* ── Coefficients ── */

/* Terms are 44 bytes: u32 matrix, row, wire, then the value. */
static size_t term_place(const struct damaged *d, size_t idx) {
    return section_place(d, 4) + 4 + KEY_TERM_BYTES * idx;
}

static void claim_term_count(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        damaged_u32(&d, section_place(&d, 4), UINT32_MAX);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 4 (coefficients) has", "4294967295 coefficients");
        damaged_free(&d);
        d = base_key(curve);
        section_shorten(&d, 4, section_length(&d, 4) - 4);
        damaged_u32(&d, section_place(&d, 4), 0);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 4 (coefficients) has 0 terms of matrix A");
        section_shorten(&d, 4, 4);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 4 (coefficients) has 0 bytes");
        damaged_free(&d);
    }
}

static void claim_term_fields(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged whole = base_key(curve);
        const size_t last = load_u32le(whole.ptr + section_place(&whole, 4)) - 1;
        damaged_free(&whole);
        const size_t places[] = {0, last / 2, last};
        for (size_t i = 0; i < COUNT_OF(places); i++) {
            char term[32];
            snprintf(term, sizeof term, "term %zu ", places[i]);
            struct damaged d = base_key(curve);
            damaged_u32(&d, term_place(&d, places[i]), 2);
            REFUSED(&d, READS_KEY, E_RANGE, "section 4", term, "matrix 2");
            damaged_free(&d);
            d = base_key(curve);
            damaged_u32(&d, term_place(&d, places[i]) + 4, 8);
            REFUSED(&d, READS_KEY, E_RANGE, "section 4", term, "row 8, the domain has 8");
            damaged_free(&d);
            d = base_key(curve);
            damaged_u32(&d, term_place(&d, places[i]) + 8, 8);
            REFUSED(&d, READS_KEY, E_RANGE, "section 4", term, "wire 8, the circuit has 8");
            damaged_free(&d);
        }
    }
}

static void claim_term_value(void) {
    FOR_EACH_CURVE(curve) {
        const struct curve *c = curve_by_name(curve);
        struct damaged d = base_key(curve);
        uint8_t *value = d.ptr + term_place(&d, 3) + 12;
        memcpy(value, c->r.w, 32);
        REFUSED(&d, READS_KEY, E_RANGE, "section 4", "the value of term 3 is not below r");
        memset(value, 0xff, 32);
        REFUSED(&d, READS_KEY, E_RANGE, "the value of term 3 is not below r");
        memcpy(value, c->r.w, 32);
        value[0] -= 1; /* r - 1 */
        TAKEN(&d, READS_KEY);
        damaged_free(&d);
    }
}

/* ── Contributions ── */

static void claim_contribution_count(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        struct key_parts parts;
        CHECK_OK(key_parse(&parts, bytes_of(d.ptr, d.len), d.name));
        CHECK(parts.contributions.present);
        CHECK_EQ(1, parts.contributions.count);
        key_parts_done(&parts);
        damaged_u32(&d, section_place(&d, 10) + 64, UINT32_MAX);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 10 (contributions)", "4294967295 contributions");
        section_shorten(&d, 10, section_length(&d, 10) - 67);
        REFUSED(&d, READS_KEY, E_FORMAT, "section 10 (contributions) has 67 bytes");
        damaged_free(&d);
    }
}

/* ── Points ── */

static void claim_header_points(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged whole = base_key(curve);
        const size_t n8 = zkey_q_bytes(&whole), from = zkey_domain_place(&whole) + 4;
        damaged_free(&whole);
        const struct {
            const char *name;
            size_t at, bytes;
        } points[] = {
            {"vk_alpha_1", from, 2 * n8},           {"vk_beta_1", from + 2 * n8, 2 * n8},
            {"vk_beta_2", from + 4 * n8, 4 * n8},   {"vk_gamma_2", from + 8 * n8, 4 * n8},
            {"vk_delta_1", from + 12 * n8, 2 * n8}, {"vk_delta_2", from + 14 * n8, 4 * n8},
        };
        for (size_t i = 0; i < COUNT_OF(points); i++) {
            struct damaged d = base_key(curve);
            d.ptr[points[i].at + points[i].bytes - n8] ^= 1; /* in y */
            REFUSED(&d, READS_KEY, E_CURVE, "sections 2 and 3", points[i].name);
            memset(d.ptr + points[i].at, 0xff, n8);
            REFUSED(&d, READS_KEY, E_RANGE, "sections 2 and 3", points[i].name);
            memset(d.ptr + points[i].at, 0, points[i].bytes);
            REFUSED(&d, READS_KEY, E_CURVE, "sections 2 and 3", "is infinity");
            damaged_free(&d);
        }
    }
}

static void claim_ic_points(void) {
    FOR_EACH_CURVE(curve) {
        struct damaged d = base_key(curve);
        size_t g1 = 2 * zkey_q_bytes(&d), at = section_place(&d, 3) + g1;
        d.ptr[at + g1 / 2] ^= 1;
        REFUSED(&d, READS_KEY, E_CURVE, "IC[1]");
        memset(d.ptr + at, 0, g1); /* an unused public signal: infinity is fine */
        TAKEN(&d, READS_KEY);
        damaged_free(&d);
    }
}

static void claim_points_off_curve(void) {
    FOR_EACH_CURVE(curve) {
        for (size_t i = 0; i < COUNT_OF(point_sections); i++) {
            struct damaged d = base_key(curve);
            uint32_t id = point_sections[i];
            size_t n8 = zkey_q_bytes(&d), point_bytes = (id == 7 ? 4 : 2) * n8;
            size_t place = section_place(&d, id), bytes = section_length(&d, id);
            size_t last = place + bytes - point_bytes;
            char text[32];
            snprintf(text, sizeof text, "section %u (", id);
            /* A lone 1 in the y of whatever is there, infinity included, leaves the curve. */
            d.ptr[last + point_bytes - n8] ^= 1;
            REFUSED(&d, READS_KEY, E_CURVE, text, "is not on the curve", "fetch it again");
            memset(d.ptr + last, 0xff, point_bytes);
            REFUSED(&d, READS_KEY, E_RANGE, text, "not below the field's modulus");
            damaged_free(&d);
        }
    }
}

/* ── Whole files ── */

static void claim_tiny_files(void) {
    static const char *const extensions[] = {"x.zkey", "x.wtns", "x.r1cs", "x.params"};
    for (size_t i = 0; i < COUNT_OF(extensions); i++) {
        static const size_t lengths[] = {1, 4, 11, 12};
        for (size_t k = 0; k < COUNT_OF(lengths); k++) {
            struct damaged d = base_key("bn128");
            d.name = extensions[i];
            damaged_cut(&d, lengths[k]);
            REFUSED(&d, READS_KEY, E_FORMAT, "again");
            if (lengths[k] >= 4) { /* of another kind altogether */
                REFUSED(&d, READS_WITNESS, E_FORMAT, "proving key");
                REFUSED(&d, READS_R1CS, E_FORMAT, "proving key");
            }
            memset(d.ptr, 0x5a, d.len);
            REFUSED(&d, READS_KEY, E_FORMAT, "");
            REFUSED(&d, READS_WITNESS, E_FORMAT, "");
            REFUSED(&d, READS_R1CS, E_FORMAT, "");
            REFUSED(&d, READS_VKEY_BELLMAN, E_FORMAT, "cut short");
            damaged_free(&d);
        }
    }
}

static void claim_corpus_of_bad_keys(void) {
    static const struct {
        const char *file;
        enum err code;
        const char *text;
    } bad[] = {
        {"bad-magic.zkey", E_FORMAT, "58 6b 65 79"},
        {"future-version.zkey", E_FORMAT, "version 9"},
        {"plonk.zkey", E_FORMAT, "PLONK"},
        {"unknown-field.zkey", E_CURVE, "section 2"},
        {"off-curve-a.zkey", E_CURVE, "section 5 (A points): point 1"},
        {"coef-out-of-range.zkey", E_RANGE, "row 4294967280"},
        {"signal-out-of-range.zkey", E_RANGE, "wire 4294967280"},
        {"domain-not-power-of-two.zkey", E_RANGE, "domain size 3"},
        {"section-too-long.zkey", E_FORMAT, "1152921504606846976 bytes"},
        {"truncated.zkey", E_FORMAT, "cut short"},
    };
    FOR_EACH_CURVE(curve) {
        for (size_t i = 0; i < COUNT_OF(bad); i++) {
            char tail[64];
            snprintf(tail, sizeof tail, "bad/%s", bad[i].file);
            struct damaged d = damaged_case(curve, tail);
            REFUSED(&d, READS_KEY, bad[i].code, bad[i].text);
            damaged_free(&d);
        }
    }
}

static void claim_wrong_kinds(void) {
    static const struct {
        const char *bytes, *text;
    } kinds[] = {
        {"{\"pi_a\": []}        ", "this is JSON text"},
        {"<!DOCTYPE html><html>404", "a web page"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git-lfs pointer"},
        {"\x1f\x8b\x08\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01", "a compressed archive"},
        {"ptau\x01\x01\x01\x01\x01\x01\x01\x01", "powers-of-tau"},
        {"r1cs\x01\x01\x01\x01\x01\x01\x01\x01", "constraint system"},
        {"wtns\x02\x01\x01\x01\x01\x01\x01\x01", "the key comes first"},
    };
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct damaged d = base_key("bn128");
        damaged_cut(&d, 0 + strlen(kinds[i].bytes));
        memcpy(d.ptr, kinds[i].bytes, d.len);
        REFUSED(&d, READS_KEY, E_FORMAT, kinds[i].text);
        damaged_free(&d);
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"key: the undamaged base key opens", claim_base_opens},
        {"key: an unfinished key without section 10 opens and says so (A01)",
         claim_unfinished_opens},
        {"key: a declared section that the file lacks is refused (A01)",
         claim_missing_last_section},
        {"key: bytes after the last section are refused", claim_trailing_bytes},
        {"key: a section length of zero is refused (A02)", claim_section_length_zero},
        {"key: an empty point section names found and needed bytes (A02)", claim_section_empty},
        {"key: a point section short by one point is refused (A13)",
         claim_section_short_by_a_point},
        {"key: the sentence names file, section, both numbers and cure",
         claim_sentence_has_both_numbers},
        {"key: a missing section is named", claim_each_section_is_needed},
        {"key: a section that comes twice is refused", claim_duplicate_section},
        {"key: sections may come in any order", claim_any_order},
        {"key: a section of unknown number is skipped", claim_unknown_section_is_skipped},
        {"key: a section length that wraps is refused at once (A03)", claim_length_that_wraps},
        {"key: a section count beyond reason is refused", claim_section_count_unbacked},
        {"key: any shorter length than the file's is refused (A03, A14)",
         claim_lengths_of_the_library_entry},
        {"key: PLONK, FFLONK and unknown protocols are named (A04)", claim_other_protocols},
        {"key: a coordinate width that does not fit is refused (A09)", claim_coordinate_width},
        {"key: a scalar width other than 32 is refused (A09)", claim_scalar_width},
        {"key: an unknown prime is refused (A09)", claim_unknown_prime},
        {"key: primes of two different curves are refused (A09)", claim_mixed_primes},
        {"key: a domain that is no power of two or does not fit H is refused (A13)", claim_domain},
        {"key: a domain too small for the rows is refused (A13)",
         claim_domain_smaller_with_fitting_h},
        {"key: counts that no bytes back are refused (A15)", claim_counts_unbacked},
        {"key: a coefficient count that does not fit is refused (A02, A15)", claim_term_count},
        {"key: a term's matrix, row and wire out of range are named", claim_term_fields},
        {"key: a coefficient value of r or more is refused", claim_term_value},
        {"key: contributions are counted and bounded", claim_contribution_count},
        {"key: a bad point in the header is named (A11)", claim_header_points},
        {"key: a bad IC point is named, infinity there is fine (B05)", claim_ic_points},
        {"key: a point off the curve is named (A11)", claim_points_off_curve},
        {"key, witness, r1cs: files of 1 to 12 bytes are refused (A10)", claim_tiny_files},
        {"key: every damaged key of the vectors is refused with its cause",
         claim_corpus_of_bad_keys},
        {"key: files of other kinds are called by their name (A06)", claim_wrong_kinds},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
