/* Proofs and public signals, in snarkjs's JSON and in bellman's bytes.
 *
 *   proof.json   {"pi_a": G1, "pi_b": G2, "pi_c": G1, "protocol": "groth16", "curve": "bn128"}, indent of one space
 *   public.json  ["decimal", …]
 *   bellman      A (G1), B (G2), C (G1), compressed: 192 bytes on BLS12-381, 128 on BN254
 *
 * What is written equals what snarkjs writes, byte for byte. Reading is stricter than any peer: one statement has one
 * spelling, or a verifier and a contract will one day disagree about it.
 */
#include "node/groth16/proof.h"
#include "node/base/mem.h"
#include "node/curve/encode.h"
#include "node/curve/json.h"
#include "node/key/vkey.h"

#include <string.h>

enum { PROOF_JSON_BYTES_MAX = 64 * 1024 };

enum err proof_write_json(struct text *out, const struct proof *p) {
    text_add(out, "{\n \"pi_a\": ");
    json_g1_write(out, p->curve, &p->a, 1);
    text_add(out, ",\n \"pi_b\": ");
    json_g2_write(out, p->curve, &p->b, 1);
    text_add(out, ",\n \"pi_c\": ");
    json_g1_write(out, p->curve, &p->c, 1);
    text_addf(out, ",\n \"protocol\": \"groth16\",\n \"curve\": \"%s\"\n}", p->curve->snarkjs_name);
    return text_done(out);
}

/* rapidsnark writes no curve: the caller's is taken. */
static enum err curve_of(const struct curve **out, const cJSON *json,
                         const struct curve *expected) {
    if (!cJSON_GetObjectItemCaseSensitive(json, "curve")) {
        REQUIRE(expected, E_FORMAT, "field \"curve\" is missing");
        *out = expected;
        return OK;
    }
    const char *name = NULL;
    TRY(json_text_member(&name, json, "curve"));
    const struct curve *found = curve_by_name(name);
    REQUIRE(found, E_CURVE, "field \"curve\" is \"%.32s\"; bn128 and bls12381 are known", name);
    REQUIRE(!expected || expected == found, E_CURVE,
            "the proof is on curve %s, the key on curve %s", found->snarkjs_name,
            expected->snarkjs_name);
    *out = found;
    return OK;
}

static enum err read_proof(struct proof *out, const struct curve *curve, const cJSON *json) {
    struct proof p = {0};
    TRY(statement_part_check(json, PART_PROOF));
    if (cJSON_GetObjectItemCaseSensitive(json, "protocol")) {
        const char *protocol = NULL;
        TRY(json_text_member(&protocol, json, "protocol"));
        REQUIRE(!strcmp(protocol, "groth16"), E_FORMAT,
                "field \"protocol\" is \"%.32s\"; only groth16 is supported", protocol);
    }
    const cJSON *a = NULL, *b = NULL, *c = NULL;
    TRY(json_member(&a, json, "pi_a"));
    TRY(json_member(&b, json, "pi_b"));
    TRY(json_member(&c, json, "pi_c"));
    TRY(curve_of(&p.curve, json, curve));
    TRY(json_g1_read(&p.a, p.curve, a, "pi_a"));
    TRY(json_g2_read(&p.b, p.curve, b, "pi_b"));
    TRY(json_g1_read(&p.c, p.curve, c, "pi_c"));
    *out = p;
    return OK;
}

enum err proof_read_json(struct proof *out, const struct curve *curve, struct bytes json,
                         const char *name) {
    if (json.len > PROOF_JSON_BYTES_MAX) {
        FAIL(E_FORMAT, "%s: is %zu bytes long; a proof has at most %d", name, json.len,
             PROOF_JSON_BYTES_MAX);
    }
    AUTO(json_free) cJSON *tree = NULL;
    TRY(json_parse(&tree, json, name));
    enum err code = read_proof(out, curve, tree);
    return code == OK ? OK : err_prefix(code, "%s", name);
}

size_t proof_bellman_bytes(const struct curve *c) {
    return 2 * bellman_point_bytes(c, GROUP_G1, true) + bellman_point_bytes(c, GROUP_G2, true);
}

void proof_write_bellman(uint8_t *out, const struct proof *p) {
    size_t g1_len = bellman_point_bytes(p->curve, GROUP_G1, true);
    size_t g2_len = bellman_point_bytes(p->curve, GROUP_G2, true);
    bellman_g1_write(out, p->curve, &p->a, true);
    bellman_g2_write(out + g1_len, p->curve, &p->b, true);
    bellman_g1_write(out + g1_len + g2_len, p->curve, &p->c, true);
}

enum err proof_read_bellman(struct proof *out, const struct curve *c, struct bytes data,
                            const char *name) {
    size_t g1_len = bellman_point_bytes(c, GROUP_G1, true);
    size_t g2_len = bellman_point_bytes(c, GROUP_G2, true);
    REQUIRE(data.len == 2 * g1_len + g2_len, E_FORMAT,
            "%s: is %zu bytes long; a compressed proof on %s has %zu", name, data.len,
            c->snarkjs_name, 2 * g1_len + g2_len);
    struct proof p = {.curve = c};
    enum err code = bellman_g1_read(&p.a, c, bytes_of(data.ptr, g1_len), true, false);
    if (code != OK) {
        return err_prefix(code, "%s: A", name);
    }
    code = bellman_g2_read(&p.b, c, bytes_of(data.ptr + g1_len, g2_len), true, false);
    if (code != OK) {
        return err_prefix(code, "%s: B", name);
    }
    code = bellman_g1_read(&p.c, c, bytes_of(data.ptr + g1_len + g2_len, g1_len), true, false);
    if (code != OK) {
        return err_prefix(code, "%s: C", name);
    }
    *out = p;
    return OK;
}

enum err public_write_json(struct text *out, const struct scalar *values, size_t count) {
    text_add(out, "[");
    for (size_t i = 0; i < count; i++) {
        char digits[FP_DECIMAL_MAX];
        scalar_to_decimal(digits, &values[i]);
        text_addf(out, "%s\n \"%s\"", i == 0 ? "" : ",", digits);
    }
    text_add(out, count == 0 ? "]" : "\n]");
    return text_done(out);
}

static enum err read_publics(struct scalar *out, const struct curve *c, const cJSON *list) {
    size_t i = 0;
    for (const cJSON *e = list->child; e; e = e->next, i++) {
        REQUIRE(cJSON_IsString(e), E_FORMAT, "public signal %zu is not a decimal number in quotes",
                i);
        enum err code = scalar_from_decimal(&out[i], c, e->valuestring);
        if (code != OK) {
            return err_prefix(code, "public signal %zu", i);
        }
    }
    return OK;
}

static enum err read_list(struct scalar **out, size_t *count, const struct curve *c,
                          const cJSON *list) {
    TRY(statement_part_check(list, PART_PUBLICS));
    REQUIRE(cJSON_IsArray(list), E_FORMAT, "is not a list of decimal numbers in quotes");
    size_t found = 0;
    for (const cJSON *e = list->child; e; e = e->next) {
        found++;
    }
    REQUIRE(found <= PUBLIC_COUNT_MAX, E_RANGE, "holds %zu public signals; at most %d are taken",
            found, PUBLIC_COUNT_MAX);
    AUTO(mem_free_ptr) struct scalar *values = NULL;
    TRY(mem_new(&values, found + 1, sizeof *values)); /* never of no bytes */
    TRY(read_publics(values, c, list));
    *out = TAKE(values);
    *count = found;
    return OK;
}

enum err public_read_json(struct scalar **out, size_t *count, const struct curve *c,
                          struct bytes json, const char *name) {
    AUTO(json_free) cJSON *tree = NULL;
    TRY(json_parse(&tree, json, name));
    enum err code = read_list(out, count, c, tree);
    return code == OK ? OK : err_prefix(code, "%s", name);
}
