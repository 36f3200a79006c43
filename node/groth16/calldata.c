/* Writer and reader walk the words in one order, the contract's; the reader takes exactly what the writer makes. */
#include "node/groth16/calldata.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { LIMBS = 4, DIGITS = 64 };

/* The coordinates in the contract's order: the point each lies in and its limbs' place there. */
enum { IN_A, IN_B, IN_C, COORDINATES_COUNT = 8 };
static const struct {
    int point, limbs_at;
    const char *before;
} order[COORDINATES_COUNT] = {
    {IN_A, 0, "["},           {IN_A, LIMBS, ", "},     {IN_B, LIMBS, "],[["}, {IN_B, 0, ", "},
    {IN_B, 3 * LIMBS, "],["}, {IN_B, 2 * LIMBS, ", "}, {IN_C, 0, "]],["},     {IN_C, LIMBS, ", "},
};
static const char before_publics[] = "],[", at_end[] = "]";

static void add_word(struct text *out, const uint64_t w[LIMBS]) {
    text_addf(out, "\"0x%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "\"", w[3], w[2],
              w[1], w[0]);
}

enum err calldata_write(struct text *out, const struct proof *p, const struct scalar *publics,
                        size_t publics_count) {
    const uint64_t *const points[] = {p->a.w, p->b.w, p->c.w};
    REQUIRE(p->curve->id == CURVE_BN254, E_CURVE,
            "Solidity calldata exists for bn128, the curve of Ethereum's pairing precompile "
            "(EIP-197); verifier contracts have no settled form for %s, whose numbers do not fit "
            "a word of 256 bits",
            p->curve->snarkjs_name);
    for (size_t i = 0; i < COORDINATES_COUNT; i++) {
        uint64_t plain[LIMBS];
        p->curve->fp_to_int(plain, points[order[i].point] + order[i].limbs_at);
        text_add(out, order[i].before);
        add_word(out, plain);
    }
    text_add(out, before_publics);
    for (size_t i = 0; i < publics_count; i++) {
        text_add(out, i ? "," : "");
        add_word(out, publics[i].w);
    }
    text_add(out, at_end);
    return text_done(out);
}

static enum err take(const char **at, const char *want) {
    size_t len = strlen(want);
    REQUIRE(!strncmp(*at, want, len), E_FORMAT, "calldata: \"%s\" is missing before \"%.20s\"",
            want, *at);
    *at += len;
    return OK;
}

static enum err take_word(uint64_t w[LIMBS], const char **at) {
    TRY(take(at, "\"0x"));
    memset(w, 0, LIMBS * sizeof *w);
    for (size_t i = 0; i < DIGITS; i++) {
        char c = (*at)[i];
        REQUIRE(isdigit((unsigned char)c) || (c >= 'a' && c <= 'f'), E_FORMAT,
                "calldata: a word ends after %zu of %d hex digits", i, DIGITS);
        uint64_t digit = (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
        w[LIMBS - 1 - i / 16] = w[LIMBS - 1 - i / 16] << 4 | digit;
    }
    *at += DIGITS;
    return take(at, "\"");
}

static enum err check_points(const struct proof *p) {
    uint8_t a[G1_BYTES_MAX], b[G2_BYTES_MAX], c[G1_BYTES_MAX];
    size_t bad_idx;
    g1_store(a, p->curve, &p->a);
    g2_store(b, p->curve, &p->b);
    g1_store(c, p->curve, &p->c);
    bool on = p->curve->g1_check(&bad_idx, a, 1, false) == OK &&
              p->curve->g2_check(&bad_idx, b, 1, false) == OK &&
              p->curve->g1_check(&bad_idx, c, 1, false) == OK;
    REQUIRE(on, E_CURVE, "calldata: a point is not on the curve");
    return OK;
}

enum err calldata_read(struct proof *out, struct scalar *publics, size_t publics_count,
                       const char *text) {
    struct proof p = {.curve = curve_by_id(CURVE_BN254)};
    uint64_t *const points[] = {p.a.w, p.b.w, p.c.w};
    for (size_t i = 0; i < COORDINATES_COUNT; i++) {
        uint64_t plain[LIMBS];
        TRY(take(&text, order[i].before));
        TRY(take_word(plain, &text));
        REQUIRE(p.curve->fp_from_int(points[order[i].point] + order[i].limbs_at, plain), E_RANGE,
                "calldata: coordinate %zu is not below the field's modulus", i);
    }
    TRY(check_points(&p));
    TRY(take(&text, before_publics));
    for (size_t i = 0; i < publics_count; i++) {
        TRY(take(&text, i ? "," : ""));
        TRY(take_word(publics[i].w, &text));
        REQUIRE(scalar_is_valid(p.curve, &publics[i]), E_RANGE,
                "calldata: public signal %zu is not below r", i);
    }
    TRY(take(&text, at_end));
    REQUIRE(!*text, E_FORMAT, "calldata: \"%.20s\" stands behind its end", text);
    *out = p;
    return OK;
}
