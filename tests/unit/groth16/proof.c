/* proof.json, public.json and bellman's bytes: the same bytes as snarkjs, and nothing but one spelling accepted. */
#include "node/groth16/proof.h"
#include "node/base/mem.h"
#include "node/curve/encode.h"
#include "node/key/vkey.h"
#include "tests/check/check.h"
#include "tests/unit/groth16/oracle.h"

#include <stdio.h>
#include <string.h>

static struct bytes text_of(const char *s) {
    return bytes_of(s, strlen(s));
}

static void read_file(struct text *out, const char *path) {
    struct bytes_mut data = {0};
    CHECK_OK(file_read_all(&data, path, 1 << 24));
    text_add_bytes(out, bytes_of(data.ptr, data.len));
    CHECK_OK(text_done(out));
    CHECK(out->len > 0 &&
          out->ptr[out->len - 1] == '\n'); /* the vectors' own; snarkjs writes none */
    out->ptr[--out->len] = '\0';
    mem_free(data.ptr);
}

static void claim_same_bytes(void) {
    static struct oracle_case cases[ORACLE_CASES_MAX];
    size_t count = oracle_cases(cases);
    for (size_t i = 0; i < count; i++) {
        AUTO(text_free) struct text file = {0};
        AUTO(text_free) struct text written = {0};
        struct proof proof;
        read_file(&file, oracle_path(&cases[i], "proof.json"));
        CHECK_OK(proof_read_json(&proof, NULL, text_bytes(&file), "proof.json"));
        CHECK(proof.curve == cases[i].curve);
        CHECK_OK(proof_write_json(&written, &proof));
        CHECK_STR(file.ptr, written.ptr);
    }
}

static void claim_same_publics(void) {
    static struct oracle_case cases[ORACLE_CASES_MAX];
    size_t count = oracle_cases(cases);
    for (size_t i = 0; i < count; i++) {
        AUTO(text_free) struct text file = {0};
        AUTO(text_free) struct text written = {0};
        AUTO(mem_free_ptr) struct scalar *values = NULL;
        size_t values_count = 0;
        read_file(&file, oracle_path(&cases[i], "public.json"));
        CHECK_OK(public_read_json(&values, &values_count, cases[i].curve, text_bytes(&file), "p"));
        CHECK_OK(public_write_json(&written, values, values_count));
        CHECK_STR(file.ptr, written.ptr);
    }
}

/* The parts of a proof as texts, so that a claim can put something else in one place. */
struct parts {
    const char *a, *b, *c, *tail;
};
static struct parts parts_of(const struct proof *p, char store[8][FP_DECIMAL_MAX],
                             char lines[3][1024]) {
    size_t limbs = p->curve->fp_bytes / 8;
    for (size_t i = 0; i < 2; i++) {
        fp_to_decimal(store[i], p->curve, p->a.w + i * limbs);
        fp_to_decimal(store[6 + i], p->curve, p->c.w + i * limbs);
    }
    for (size_t i = 0; i < 4; i++) {
        fp_to_decimal(store[2 + i], p->curve, p->b.w + i * limbs);
    }
    snprintf(lines[0], 1024, "[\"%s\",\"%s\",\"1\"]", store[0], store[1]);
    snprintf(lines[1], 1024, "[[\"%s\",\"%s\"],[\"%s\",\"%s\"],[\"1\",\"0\"]]", store[2], store[3],
             store[4], store[5]);
    snprintf(lines[2], 1024, "[\"%s\",\"%s\",\"1\"]", store[6], store[7]);
    return (struct parts){lines[0], lines[1], lines[2], ""};
}

static char *joined(const struct parts *p) {
    static char json[8192];
    snprintf(json, sizeof json, "{\"pi_a\":%s,\"pi_b\":%s,\"pi_c\":%s,\"protocol\":\"groth16\"%s}",
             p->a, p->b, p->c, p->tail);
    return json;
}

static void refused(enum err code, const struct curve *curve, const char *json,
                    const char *needle) {
    struct proof out = {0}, untouched = {0};
    CHECK_ERR(code, proof_read_json(&out, curve, text_of(json), "proof.json"));
    CHECK_HAS(err_detail(), needle);
    CHECK_HAS(err_detail(), "proof.json");
    CHECK_MEM(&untouched, &out, sizeof out);
}

static void base_proof(struct proof *out, const char *curve) {
    struct oracle oracle;
    struct oracle_case c = oracle_case_named(curve, "base");
    oracle_read(&oracle, &c);
    *out = oracle.proof;
}

static const char *const curves[] = {"bn128", "bls12381"};

static void claim_compact(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        char store[8][FP_DECIMAL_MAX], lines[3][1024];
        struct proof proof, back;
        base_proof(&proof, curves[i]);
        struct parts p = parts_of(&proof, store, lines);
        CHECK_OK(proof_read_json(&back, proof.curve, text_of(joined(&p)), "proof.json"));
        CHECK_MEM(&proof, &back, sizeof proof);
        refused(E_FORMAT, NULL, joined(&p), "\"curve\" is missing");
    }
}

static void claim_curve_names(void) {
    char store[8][FP_DECIMAL_MAX], lines[3][1024];
    struct proof proof, back;
    base_proof(&proof, "bn128");
    struct parts p = parts_of(&proof, store, lines);
    static const char *const known[] = {",\"curve\":\"bn128\"", ",\"curve\":\"BN254\"",
                                        ",\"curve\":\"alt_bn128\""};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        p.tail = known[i];
        CHECK_OK(proof_read_json(&back, NULL, text_of(joined(&p)), "proof.json"));
    }
    p.tail = ",\"curve\":\"secp256k1\"";
    refused(E_CURVE, NULL, joined(&p), "secp256k1");
    p.tail = ",\"curve\":7";
    refused(E_FORMAT, NULL, joined(&p), "curve");
    p.tail = ",\"curve\":\"bls12381\"";
    refused(E_CURVE, proof.curve, joined(&p), "the proof is on curve bls12381");
}

static void claim_point_shapes(void) {
    static const struct {
        const char *a;
        enum err code;
        const char *needle;
    } rows[] = {
        {"[]", E_FORMAT, "pi_a"},
        {"[\"1\",\"2\"]", E_FORMAT, "pi_a"},
        {"[\"1\"]", E_FORMAT, "pi_a"},
        {"[\"1\",\"2\",\"1\",\"1\"]", E_FORMAT, "pi_a"},
        {"[\"1\",\"2\",\"0\"]", E_FORMAT, "third coordinate"},
        {"[\"1\",\"2\",\"2\"]", E_FORMAT, "third coordinate"},
        {"[1,2,1]", E_FORMAT, "pi_a"},
        {"{\"0\":\"1\",\"1\":\"2\",\"2\":\"1\",\"length\":3}", E_FORMAT, "pi_a"},
        {"null", E_FORMAT, "pi_a"},
        {"\"1\"", E_FORMAT, "pi_a"},
        {"[\"1\",\"3\",\"1\"]", E_CURVE, "pi_a"},
        {"[\"0\",\"0\",\"1\"]", E_CURVE, "pi_a"},
        {"[\"01\",\"2\",\"1\"]", E_FORMAT, "pi_a"},
        {"[\"0x1\",\"2\",\"1\"]", E_FORMAT, "pi_a"},
        {"[\"-1\",\"2\",\"1\"]", E_FORMAT, "pi_a"},
        {"[\" 1\",\"2\",\"1\"]", E_FORMAT, "pi_a"},
        {"[\"\",\"2\",\"1\"]", E_FORMAT, "pi_a"},
        /* x + q */
        {"[\"21888242871839275222246405745257275088696311157297823662689037894645226208584\",\"2\","
         "\"1\"]",
         E_RANGE, "pi_a"},
    };
    char store[8][FP_DECIMAL_MAX], lines[3][1024];
    struct proof proof, back;
    base_proof(&proof, "bn128");
    struct parts p = parts_of(&proof, store, lines);
    p.a =
        "[\"1\",\"2\",\"1\"]"; /* the generator: a sound one, so that the rows fail for their own reason */
    CHECK_OK(proof_read_json(&back, proof.curve, text_of(joined(&p)), "proof.json"));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        p.a = rows[i].a;
        refused(rows[i].code, proof.curve, joined(&p), rows[i].needle);
    }
    p.a = lines[0];
    p.b = "[[\"1\",\"2\"],[\"3\",\"4\"],[\"1\",\"0\"]]";
    refused(E_CURVE, proof.curve, joined(&p), "pi_b");
    p.b = "[[\"1\",\"2\"],[\"3\",\"4\"],[\"0\",\"0\"]]";
    refused(E_FORMAT, proof.curve, joined(&p), "pi_b");
    p.b = "[[\"1\",\"2\"],[\"3\",\"4\"]]";
    refused(E_FORMAT, proof.curve, joined(&p), "pi_b");
    static const char *const thirds[] = {"\"2\",\"0\"", "\"1\",\"1\"", "\"0\",\"1\""};
    for (size_t i = 0; i < COUNT_OF(thirds); i++) {
        char other[1024]; /* a sound point but for its third coordinate */
        snprintf(other, sizeof other, "[[\"%s\",\"%s\"],[\"%s\",\"%s\"],[%s]]", store[2], store[3],
                 store[4], store[5], thirds[i]);
        p.b = other;
        refused(E_FORMAT, proof.curve, joined(&p), "third coordinate");
    }
    p.b = "[[\"1\",\"2\"],[\"3\",\"4\"],[\"1\",\"0\"],[\"1\",\"0\"]]";
    refused(E_FORMAT, proof.curve, joined(&p), "pi_b");
    p.b = "[[\"1\",\"2\",\"3\"],[\"3\",\"4\"],[\"1\",\"0\"]]";
    refused(E_FORMAT, proof.curve, joined(&p), "pi_b");
    p.b = "[[\"0\",\"0\"],[\"0\",\"0\"],[\"1\",\"0\"]]";
    refused(E_CURVE, proof.curve, joined(&p), "pi_b");
}

static void claim_swapped(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        char store[8][FP_DECIMAL_MAX], lines[3][1024], swapped[1024];
        struct proof proof;
        base_proof(&proof, curves[i]);
        struct parts p = parts_of(&proof, store, lines);
        snprintf(swapped, sizeof swapped, "[[\"%s\",\"%s\"],[\"%s\",\"%s\"],[\"1\",\"0\"]]",
                 store[3], store[2], store[5], store[4]);
        p.b = swapped;
        refused(E_CURVE, proof.curve, joined(&p), "pi_b");
    }
}

static void claim_infinity(void) {
    char store[8][FP_DECIMAL_MAX], lines[3][1024];
    struct proof proof, back;
    base_proof(&proof, "bn128");
    struct parts p = parts_of(&proof, store, lines);
    p.c = "[\"0\",\"1\",\"0\"]";
    p.b = "[[\"0\",\"0\"],[\"1\",\"0\"],[\"0\",\"0\"]]";
    CHECK_OK(proof_read_json(&back, proof.curve, text_of(joined(&p)), "proof.json"));
    CHECK(g1_is_infinity(&back.c) && g2_is_infinity(&back.b));
    AUTO(text_free) struct text t = {0};
    CHECK_OK(proof_write_json(&t, &back));
    CHECK_HAS(t.ptr, " \"pi_c\": [\n  \"0\",\n  \"1\",\n  \"0\"\n ]");
    CHECK_HAS(t.ptr, "[\n  [\n   \"0\",\n   \"0\"\n  ],\n  [\n   \"1\",\n   \"0\"\n  ],");
}

static void claim_file_shapes(void) {
    static const struct {
        const char *json, *needle;
    } rows[] = {
        {"", "empty"},
        {"[]", "object"},
        {"null", "object"},
        {"{", "JSON"},
        {"{}", "pi_a"},
        {"\xef\xbb\xbf{}", "mark"},
        {"{\"pi_a\":[],\"pi_a\":[]}", "pi_a"},
        {"{} x", "after"},
        {"{\"protocol\":\"plonk\"}", "plonk"},
        {"{\"protocol\":3}", "protocol"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        refused(E_FORMAT, curve_by_id(CURVE_BN254), rows[i].json, rows[i].needle);
    }
    size_t len = 100 * 1024;
    AUTO(mem_free_ptr) char *long_one = mem_zero_alloc(len + 1, 1);
    CHECK(long_one);
    memset(long_one, ' ', len);
    refused(E_FORMAT, curve_by_id(CURVE_BN254), long_one, "long");
}

static void claim_public_shapes(void) {
    static const struct {
        const char *json;
        enum err code;
    } rows[] = {
        {"{\"0\":\"55132\",\"1\":\"3\",\"length\":2}", E_FORMAT},
        {"[55132,3]", E_FORMAT},
        {"[\"55132\",\"-1\"]", E_FORMAT},
        {"[\"55132\",\"0x3\"]", E_FORMAT},
        {"[\"55132\",\" 3\"]", E_FORMAT},
        {"[\"55132\",\"3 \"]", E_FORMAT},
        {"[\"55132\",\"+3\"]", E_FORMAT},
        {"[\"55132\",\"03\"]", E_FORMAT},
        {"[\"55132\",\"3n\"]", E_FORMAT},
        {"[\"55132\",\"3e0\"]", E_FORMAT},
        {"[\"55132\",\"\"]", E_FORMAT},
        {"[\"55132\",null]", E_FORMAT},
        {"[\"55132\",[\"3\"]]", E_FORMAT},
        {"[[\"55132\",\"3\"]]", E_FORMAT},
        {"[\"55132\",true]", E_FORMAT},
        {"\"55132\"", E_FORMAT},
        {"null", E_FORMAT},
        {"[\"55132\",\"3\"", E_FORMAT},
        {"[\"55132\",\"3\"] x", E_FORMAT},
        {"[\"55132\",\"3\"][]", E_FORMAT},
        {"[\"55132\",\"3\",]", E_FORMAT},
        {"\xef\xbb\xbf[\"55132\",\"3\"]", E_FORMAT},
        {"[\"55132\",\"3\\u0000\"]", E_FORMAT},
        {"[\"55132\",\"\xd9\xa3\"]", E_FORMAT}, /* an Arabic three */
        {"", E_FORMAT},
    };
    const struct curve *c = curve_by_id(CURVE_BN254);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct scalar *values = NULL;
        size_t count = 77;
        CHECK_ERR(rows[i].code,
                  public_read_json(&values, &count, c, text_of(rows[i].json), "public.json"));
        CHECK_HAS(err_detail(), "public.json");
        CHECK(!values && count == 77);
    }
}

static void claim_public_range(void) {
    static const char *const bn[] = {
        "21888242871839275222246405745257275088548364400416034343698204186575808495"
        "617", /* r */
        "21888242871839275222246405745257275088548364400416034343698204186575808495"
        "620", /* 3 + r */
        "21888242871839275222246405745257275088696311157297823662689037894645226208"
        "583", /* q */
        "11579208923731619542357098500868790785326998466564056403945758400791312963"
        "9935",
        "11579208923731619542357098500868790785326998466564056403945758400791312963"
        "9939", /* 3 + 2^256 */
    };
    const struct curve *c = curve_by_id(CURVE_BN254);
    struct scalar *values = NULL;
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(bn); i++) {
        char json[256];
        snprintf(json, sizeof json, "[\"55132\",\"%s\"]", bn[i]);
        CHECK_ERR(E_RANGE, public_read_json(&values, &count, c, text_of(json), "public.json"));
        CHECK_HAS(err_detail(), "public signal 1");
    }
    CHECK_OK(
        public_read_json(&values, &count, c,
                         text_of("[\"2188824287183927522224640574525727508854836440041603434369820"
                                 "4186575808495616\"]"),
                         "public.json"));
    CHECK_EQ(1, count);
    mem_free(values);
}

static void claim_public_many(void) {
    size_t len = 4 * ((size_t)PUBLIC_COUNT_MAX + 1) + 1;
    AUTO(mem_free_ptr) char *json = mem_alloc(len);
    CHECK(json);
    for (size_t i = 0; i <= PUBLIC_COUNT_MAX; i++) {
        memcpy(json + 4 * i, i == 0 ? "[\"0\"" : ",\"0\"", 4);
    }
    json[len - 1] = ']';
    struct scalar *values = NULL;
    size_t count = 0;
    CHECK_ERR(E_RANGE, public_read_json(&values, &count, curve_by_id(CURVE_BN254),
                                        bytes_of(json, len), "public.json"));
    CHECK_HAS(err_detail(), "1048577");
}

static void claim_public_long(void) {
    size_t digits = 10 << 20, len = digits + 4;
    AUTO(mem_free_ptr) char *json = mem_alloc(len + 1);
    CHECK(json);
    memset(json, '7', len);
    memcpy(json, "[\"", 2);
    memcpy(json + len - 2, "\"]", 3);
    struct scalar *values = NULL;
    size_t count = 0;
    enum err code =
        public_read_json(&values, &count, curve_by_id(CURVE_BN254), bytes_of(json, len), "p.json");
    CHECK(code == E_RANGE || code == E_FORMAT);
    CHECK_HAS(err_detail(), "p.json");
}

static void claim_bellman_round_trip(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct proof proof, back;
        uint8_t packed[PROOF_BELLMAN_BYTES_MAX];
        base_proof(&proof, curves[i]);
        size_t len = proof_bellman_bytes(proof.curve);
        CHECK_EQ(proof.curve->fp_bytes * 4, len);
        proof_write_bellman(packed, &proof);
        CHECK_OK(proof_read_bellman(&back, proof.curve, bytes_of(packed, len), "p.bin"));
        CHECK_MEM(&proof, &back, sizeof proof);
        CHECK_ERR(E_FORMAT,
                  proof_read_bellman(&back, proof.curve, bytes_of(packed, len - 1), "p.bin"));
        CHECK_HAS(err_detail(), "p.bin");
        packed[0] ^= 0x80; /* the mark of compression on BLS12-381, the sign of y on BN254 */
        enum err code = proof_read_bellman(&back, proof.curve, bytes_of(packed, len), "p.bin");
        CHECK_EQ(i == 0 ? OK : E_FORMAT, code);
        if (code != OK) {
            CHECK_HAS(err_detail(), "p.bin: A");
        } else {
            CHECK(memcmp(&proof.a, &back.a, sizeof proof.a) != 0);
        }
    }
}

static enum err read_publics_once(void *ctx) {
    (void)ctx;
    struct scalar *values = NULL;
    size_t count = 0;
    TRY(public_read_json(&values, &count, curve_by_id(CURVE_BN254), text_of("[\"55132\",\"3\"]"),
                         "public.json"));
    mem_free(values);
    return OK;
}

static enum err write_once(void *ctx) {
    AUTO(text_free) struct text t = {0};
    return proof_write_json(&t, ctx);
}

static enum err read_once(void *ctx) {
    struct proof back;
    return proof_read_json(&back, NULL, text_of(ctx), "proof.json");
}

static void claim_memory(void) {
    struct proof proof;
    AUTO(text_free) struct text t = {0};
    base_proof(&proof, "bls12381");
    CHECK_OK(proof_write_json(&t, &proof));
    CHECK(check_allocations(read_publics_once, NULL) > 0);
    CHECK(check_allocations(write_once, &proof) > 0);
    CHECK(check_allocations(read_once, t.ptr) > 0);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"proof.json is written byte for byte as snarkjs writes it", claim_same_bytes},
        {"public.json is written byte for byte as snarkjs writes it", claim_same_publics},
        {"rapidsnark's compact proof without a curve is read", claim_compact},
        {"a proof's curve goes by its known names and must be the key's", claim_curve_names},
        {"a point has one spelling, and all others are refused by field", claim_point_shapes},
        {"B with real and imaginary parts swapped is refused", claim_swapped},
        {"infinity is read and written in snarkjs's spelling", claim_infinity},
        {"a proof file that is something else is refused", claim_file_shapes},
        {"public signals are a list of decimal texts and nothing else", claim_public_shapes},
        {"a public signal at or above r is refused, never reduced", claim_public_range},
        {"more public signals than the limit are refused by number", claim_public_many},
        {"ten megabytes of digits are refused", claim_public_long},
        {"bellman's compressed proof survives a round trip", claim_bellman_round_trip},
        {"reading and writing survive every failed allocation", claim_memory},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
