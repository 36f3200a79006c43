/* Verifying keys with one thing changed: JSON by replacing text, bellman by patching bytes. */
#include "tests/format/damaged.h"

#include "node/base/mem.h"

#include <stdio.h>
#include <string.h>

static struct damaged base_json(const char *curve) {
    return damaged_case(curve, "base/verification_key.json");
}

/* Puts `with` in place of the first `what` after the first `after`. */
static void replace_after(struct damaged *d, const char *after, const char *what,
                          const char *with) {
    uint8_t *from = memmem(d->ptr, d->len, after, strlen(after));
    CHECK_MSG(from != NULL, "no %s in %s", after, d->name);
    uint8_t *at = memmem(from, d->len - (size_t)(from - d->ptr), what, strlen(what));
    CHECK_MSG(at != NULL, "no %s after %s in %s", what, after, d->name);
    size_t place = (size_t)(at - d->ptr), tail = d->len - place - strlen(what);
    struct damaged out = {mem_alloc(place + strlen(with) + tail), place + strlen(with) + tail,
                          d->name};
    memcpy(out.ptr, d->ptr, place);
    memcpy(out.ptr + place, with, strlen(with));
    memcpy(out.ptr + place + strlen(with), at + strlen(what), tail);
    mem_free(d->ptr);
    *d = out;
}

struct change {
    const char *after, *what, *with;
    enum err code; /* OK: still read */
    const char *text;
};

static void run_changes(const char *curve, const struct change *changes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct damaged d = base_json(curve);
        replace_after(&d, changes[i].after, changes[i].what, changes[i].with);
        if (changes[i].code == OK) {
            TAKEN(&d, READS_VKEY_JSON);
        } else {
            REFUSED(&d, READS_VKEY_JSON, changes[i].code, changes[i].text);
        }
        damaged_free(&d);
    }
}

static void claim_protocol(void) {
    static const struct change changes[] = {
        {"protocol", "\"groth16\"", "\"plonk\"", E_FORMAT, "protocol is \"plonk\""},
        {"protocol", "\"groth16\"", "\"\"", E_FORMAT, "protocol"},
        {"protocol", "\"groth16\"", "1", E_FORMAT, "protocol"},
        {"protocol", "\"groth16\"", "null", E_FORMAT, "protocol"},
        {"{", "protocol", "protocoll", E_FORMAT, "protocol"},
    };
    run_changes("bn128", changes, COUNT_OF(changes));
}

static void claim_curve_names(void) {
    static const struct change bn[] = {
        {"curve", "bn128", "BN128", OK, ""},
        {"curve", "bn128", "bn254", OK, ""},
        {"curve", "bn128", "alt_bn128", OK, ""},
        {"curve", "bn128", "Bn254", OK, ""},
        {"curve", "bn128", "bn256k1", E_CURVE, "curve is \"bn256k1\""},
        {"curve", "bn128", "", E_CURVE, "curve is \"\""},
        {"curve", "\"bn128\"", "128", E_FORMAT, "curve"},
        {"{", "\"curve\"", "\"curv\"", E_FORMAT, "curve"},
        /* the other curve's name: the points cannot lie there */
        {"curve", "bn128", "bls12381", E_CURVE, "vk_alpha_1"},
    };
    run_changes("bn128", bn, COUNT_OF(bn));
    static const struct change bls[] = {
        {"curve", "bls12381", "BLS12-381", OK, ""},
        {"curve", "bls12381", "bls12_381", OK, ""},
        {"curve", "bls12381", "BLS12381", OK, ""},
        {"curve", "bls12381", "bls12377", E_CURVE, "curve is \"bls12377\""},
        {"curve", "bls12381", "bn128", E_RANGE, "vk_alpha_1"},
    };
    run_changes("bls12381", bls, COUNT_OF(bls));
}

static void claim_public_count(void) {
    static const struct change changes[] = {
        {"nPublic", "2", "1", E_FORMAT, "IC has 3 points, nPublic = 1 needs 2"},
        {"nPublic", "2", "3", E_FORMAT, "IC has 3 points, nPublic = 3 needs 4"},
        {"nPublic", "2", "0", E_FORMAT, "IC has 3 points"},
        {"nPublic", "2", "-1", E_RANGE, "nPublic"},
        {"nPublic", "2", "-2", E_RANGE, "nPublic"},
        {"nPublic", "2", "2.5", E_FORMAT, "nPublic"},
        {"nPublic", "2", "1e300", E_RANGE, "nPublic"},
        {"nPublic", "2", "4294967295", E_RANGE, "nPublic is 4294967295"},
        {"nPublic", "2", "\"2\"", E_FORMAT, "nPublic"},
        {"nPublic", "2", "null", E_FORMAT, "nPublic"},
        {"nPublic", "2", "[2]", E_FORMAT, "nPublic"},
        {"{", "nPublic", "nPublics", E_FORMAT, "nPublic"},
    };
    run_changes("bn128", changes, COUNT_OF(changes));
}

static void claim_point_shapes(void) {
    static const struct change changes[] = {
        {"vk_alpha_1", ",\n  \"1\"", "", E_FORMAT, "vk_alpha_1"},            /* 2 entries */
        {"vk_alpha_1", "\"1\"\n", "\"1\", \"0\"\n", E_FORMAT, "vk_alpha_1"}, /* 4 entries */
        {"vk_alpha_1", "\"1\"\n", "\"2\"\n", E_FORMAT, "vk_alpha_1"},        /* projective */
        {"vk_alpha_1", "\"1\"\n", "\"0\"\n", E_FORMAT, "vk_alpha_1"},
        {"vk_alpha_1", "\"1\"\n", "1\n", E_FORMAT, "vk_alpha_1"}, /* a number */
        {"vk_beta_2", "\"1\",\n   \"0\"", "\"1\"", E_FORMAT, "vk_beta_2"},
        {"vk_beta_2", "\"1\",\n   \"0\"", "\"0\",\n   \"0\"", E_FORMAT, "vk_beta_2"},
        {"vk_gamma_2", "\"1\",\n   \"0\"", "\"1\",\n   \"0\",\n   \"0\"", E_FORMAT, "vk_gamma_2"},
        {"vk_delta_2", "\"1\",\n   \"0\"", "\"2\",\n   \"0\"", E_FORMAT, "vk_delta_2"},
        {"{", "vk_alpha_1", "vk_alpha", E_FORMAT, "vk_alpha_1"},
        {"{", "vk_beta_2", "vk_beta", E_FORMAT, "vk_beta_2"},
        {"{", "vk_gamma_2", "vk_gamma", E_FORMAT, "vk_gamma_2"},
        {"{", "vk_delta_2", "vk_delta", E_FORMAT, "vk_delta_2"},
        {"{", "\"IC\"", "\"ic\"", E_FORMAT, "IC"},
        {"\"IC\": [", "[", "[\"7\",", E_FORMAT, "IC has 4 points"},
        {"\"IC\"", "\"1\"\n", "\"3\"\n", E_FORMAT, "IC[0]"},
    };
    run_changes("bn128", changes, COUNT_OF(changes));
    run_changes("bls12381", changes, COUNT_OF(changes));
}

static void claim_numbers(void) {
    /* All inserted in front of the first digits of alpha's x. */
    static const char *const spoilt[] = {"-", "+", " ", "0", "0x", "1e", "n", "\\u0031 ", ","};
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        for (size_t i = 0; i < COUNT_OF(spoilt); i++) {
            char with[64];
            struct damaged d = base_json(curve_dirs[c]);
            snprintf(with, sizeof with, "[\n  \"%s", spoilt[i]);
            replace_after(&d, "vk_alpha_1", "[\n  \"", with);
            REFUSED(&d, READS_VKEY_JSON, E_FORMAT, "vk_alpha_1");
            damaged_free(&d);
        }
        struct damaged d = base_json(curve_dirs[c]);
        replace_after(&d, "vk_alpha_1", "[\n  \"",
                      "[\n  \"9"); /* now far above the modulus or off */
        CHECK(reader_says(&d, READS_VKEY_JSON) == E_RANGE ||
              reader_says(&d, READS_VKEY_JSON) == E_CURVE);
        CHECK_HAS(err_detail(), "vk_alpha_1");
        damaged_free(&d);
        static const char digits[1000] = "[\n  \"";
        char *many = mem_alloc(1000002);
        memset(many, '7', 1000001);
        memcpy(many, digits, 5);
        many[1000001] = '\0';
        d = base_json(curve_dirs[c]);
        replace_after(&d, "vk_alpha_1", "[\n  \"", many);
        enum err e = reader_says(&d, READS_VKEY_JSON);
        CHECK(e == E_RANGE || e == E_FORMAT);
        CHECK_HAS(err_detail(), "vk_alpha_1");
        mem_free(many);
        damaged_free(&d);
    }
}

static void claim_points(void) {
    static const struct change infinity = {"vk_alpha_1", "[", "[\"0\",\"1\",\"0\"], \"old\": [",
                                           E_CURVE, "vk_alpha_1 is infinity"};
    run_changes("bn128", &infinity, 1);
    run_changes("bls12381", &infinity, 1);
    static const struct change infinity2 = {
        "vk_delta_2", "[", "[[\"0\",\"0\"],[\"1\",\"0\"],[\"0\",\"0\"]], \"old\": [", E_CURVE,
        "vk_delta_2 is infinity"};
    run_changes("bn128", &infinity2, 1);
    run_changes("bls12381", &infinity2, 1);
    /* (0, 2) is on y² = x³ + 4 and has order 3; BLS12-381's G1 has a cofactor, BN254's none. */
    static const struct change outside = {"vk_alpha_1", "[", "[\"0\",\"2\",\"1\"], \"old\": [",
                                          E_CURVE, "vk_alpha_1"};
    run_changes("bls12381", &outside, 1);
    run_changes("bn128", &outside, 1); /* there it is off the curve */
    static const struct change off = {"vk_alpha_1", "[", "[\"1\",\"1\",\"1\"], \"old\": [", E_CURVE,
                                      "vk_alpha_1"};
    run_changes("bn128", &off, 1);
    run_changes("bls12381", &off, 1);
}

static void claim_ic_infinity(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        struct damaged d = base_json(curve_dirs[c]);
        /* Drop the last point and put infinity first: the count stays. */
        replace_after(&d, "\"IC\": [", "[", "[[\"0\",\"1\",\"0\"],");
        REFUSED(&d, READS_VKEY_JSON, E_FORMAT, "IC has 4 points");
        replace_after(&d, "nPublic", "2", "3");
        TAKEN(&d, READS_VKEY_JSON);
        damaged_free(&d);
    }
}

static void claim_text_itself(void) {
    static const struct change changes[] = {
        {"{", "{", "\xEF\xBB\xBF{", E_FORMAT, ""},
        {"{", "{", "[{", E_FORMAT, ""},
        {"{", "{", "{ \"nPublic\": 2,", E_FORMAT, "nPublic"}, /* twice */
        {"{", "{", "", E_FORMAT, ""},
        {"]\n}", "}", "} x", E_FORMAT, ""},
        {"]\n}", "}", "}}", E_FORMAT, ""},
        {"]\n}", "}", "", E_FORMAT, ""},
    };
    run_changes("bn128", changes, COUNT_OF(changes));
    static const char *const texts[] = {"[]", "null", "7", "\"x\"", "[[[[", "{", "{\"a\":}", " "};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct damaged d = base_json("bn128");
        damaged_cut(&d, strlen(texts[i]));
        memcpy(d.ptr, texts[i], d.len);
        REFUSED(&d, READS_VKEY_JSON, E_FORMAT, "");
        damaged_free(&d);
    }
    struct damaged deep = base_json("bn128");
    damaged_free(&deep);
    deep = (struct damaged){mem_alloc(100000), 100000, "deep.json"};
    memset(deep.ptr, '[', deep.len);
    enum err e = reader_says(&deep, READS_VKEY_JSON);
    CHECK(e == E_FORMAT || e == E_LIMIT);
    damaged_free(&deep);
}

static void claim_cut_anywhere(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        struct damaged whole = base_json(curve_dirs[c]);
        size_t last = whole.len - 2; /* the closing brace */
        for (size_t len = 1; len < last; len += 13) {
            struct damaged d = base_json(curve_dirs[c]);
            damaged_cut(&d, len);
            REFUSED(&d, READS_VKEY_JSON, E_FORMAT, "");
            damaged_free(&d);
        }
        damaged_free(&whole);
    }
}

/* ── bellman ── */

static struct damaged base_vk(void) {
    return damaged_case("bls12381", "base/circuit.vk");
}

static void claim_bellman_reads(void) {
    struct damaged d = base_vk();
    struct vkey vk;
    CHECK_OK(vkey_read_bellman(&vk, curve_by_id(CURVE_BLS12_381), bytes_of(d.ptr, d.len), d.name));
    CHECK_EQ(2, vk.public_count);
    CHECK(!vkey_is_insecure(&vk));
    CHECK(!g1_is_infinity(&vk.beta1) && !g1_is_infinity(&vk.delta1));
    /* Out as JSON and in again: the same key, less what JSON has no room for. */
    AUTO(text_free) struct text json = {0};
    CHECK_OK(vkey_write_json(&json, &vk));
    struct vkey again;
    CHECK_OK(vkey_read_json(&again, text_bytes(&json), "again.json"));
    CHECK_MEM(vk.ic, again.ic, 3 * vk.curve->g1_bytes);
    CHECK_MEM(&vk.delta2, &again.delta2, sizeof vk.delta2);
    vkey_done(&again);
    vkey_done(&vk);
    damaged_free(&d);
}

static void claim_bellman_damaged(void) {
    struct damaged whole = base_vk();
    const size_t ic = 864;
    for (size_t len = 0; len < whole.len; len += len < ic ? 31 : 7) {
        struct damaged d = base_vk();
        damaged_cut(&d, len);
        REFUSED(&d, READS_VKEY_BELLMAN, E_FORMAT, "cut short");
        damaged_free(&d);
    }
    damaged_free(&whole);
    struct damaged d = base_vk();
    damaged_u32be(&d, ic, 0);
    REFUSED(&d, READS_VKEY_BELLMAN, E_FORMAT, "ic has no points");
    damaged_u32be(&d, ic, UINT32_MAX);
    REFUSED(&d, READS_VKEY_BELLMAN, E_FORMAT, "ic at byte 864 declares 4294967295 points");
    damaged_u32be(&d, ic, 2);
    REFUSED(&d, READS_VKEY_BELLMAN, E_FORMAT, "96 bytes follow the verifying key");
    damaged_free(&d);
    static const uint8_t flags[] = {0x80, 0x40, 0x20};
    static const size_t places[] = {0, 96, 192, 384, 576, 672, 868, 868 + 192};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        for (size_t k = 0; k < COUNT_OF(flags); k++) {
            d = base_vk();
            d.ptr[places[i]] |= flags[k];
            CHECK(reader_says(&d, READS_VKEY_BELLMAN) != OK);
            CHECK_HAS(err_detail(), "circuit.vk: ");
            damaged_free(&d);
        }
        d = base_vk();
        d.ptr[places[i] + 40] ^= 1; /* in x */
        CHECK(reader_says(&d, READS_VKEY_BELLMAN) == E_CURVE);
        CHECK_HAS(err_detail(), "circuit.vk: ");
        damaged_free(&d);
    }
    d = base_vk(); /* a true infinity in ic */
    memset(d.ptr + 868, 0, 96);
    d.ptr[868] = 0x40;
    REFUSED(&d, READS_VKEY_BELLMAN, E_CURVE, "point 0 of ic is infinity");
    damaged_free(&d);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"vkey: another protocol is refused (H06)", claim_protocol},
        {"vkey: curve names in any case, unknown ones refused (H06)", claim_curve_names},
        {"vkey: nPublic missing, negative, text, or not IC's length less one (H06)",
         claim_public_count},
        {"vkey: points of 1, 2, 4 entries and other shapes are refused (H06)", claim_point_shapes},
        {"vkey: numbers are plain decimal digits in quotes (B02)", claim_numbers},
        {"vkey: infinity, off the curve, outside the subgroup are refused (B11)", claim_points},
        {"vkey: IC may hold infinity (B05)", claim_ic_infinity},
        {"vkey: what is not one JSON object is refused (B02)", claim_text_itself},
        {"vkey: cut anywhere it is refused", claim_cut_anywhere},
        {"vkey: bellman's verifying key reads and survives JSON", claim_bellman_reads},
        {"vkey: bellman's verifying key, damaged, is refused", claim_bellman_damaged},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
