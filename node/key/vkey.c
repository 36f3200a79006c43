/* A verifying key in memory, and as snarkjs's verification_key.json.
 *
 *     {"protocol": "groth16", "curve": "bn128", "nPublic": n, "vk_alpha_1", "vk_beta_2", "vk_gamma_2", "vk_delta_2",
 *      "vk_alphabeta_12": e(alpha, beta), "IC": [n + 1 points of G1]}
 *
 * Reading is strict where a slip would change the statement that gets verified: the length of IC must be nPublic + 1,
 * points must be on their curve and in their subgroup, and nothing is guessed. vk_alphabeta_12 is derived data, and no
 * verifier reads it: it is written for byte equality with snarkjs and ignored when read. Unknown fields are ignored.
 *
 * IC may hold infinity (the point of a public input that no constraint uses); alpha, beta, gamma and delta may not.
 */
#include "node/key/vkey.h"

#include "node/base/mem.h"
#include "node/curve/encode.h"
#include "node/curve/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *why_bad(enum err code) {
    return code == E_RANGE ? "has a coordinate that is not below the field's modulus"
                           : "is not a point of the curve's subgroup";
}

static FALLIBLE g1_field_check(const struct curve *c, const struct g1 *p, const char *field) {
    uint8_t packed[G1_BYTES_MAX];
    size_t bad_idx;
    REQUIRE(!g1_is_infinity(p), E_CURVE, "%s is infinity", field);
    g1_store(packed, c, p);
    enum err e = c->g1_check(&bad_idx, packed, 1, true);
    REQUIRE(e == OK, e, "%s %s", field, why_bad(e));
    return OK;
}

static FALLIBLE g2_field_check(const struct curve *c, const struct g2 *p, const char *field) {
    uint8_t packed[G2_BYTES_MAX];
    size_t bad_idx;
    REQUIRE(!g2_is_infinity(p), E_CURVE, "%s is infinity", field);
    g2_store(packed, c, p);
    enum err e = c->g2_check(&bad_idx, packed, 1, true);
    REQUIRE(e == OK, e, "%s %s", field, why_bad(e));
    return OK;
}

FALLIBLE vkey_check(const struct vkey *vk) {
    const struct curve *c = vk->curve;
    TRY(g1_field_check(c, &vk->alpha1, "vk_alpha_1"));
    if (!g1_is_infinity(&vk->beta1)) {
        TRY(g1_field_check(c, &vk->beta1, "vk_beta_1"));
    }
    if (!g1_is_infinity(&vk->delta1)) {
        TRY(g1_field_check(c, &vk->delta1, "vk_delta_1"));
    }
    TRY(g2_field_check(c, &vk->beta2, "vk_beta_2"));
    TRY(g2_field_check(c, &vk->gamma2, "vk_gamma_2"));
    TRY(g2_field_check(c, &vk->delta2, "vk_delta_2"));
    size_t bad_idx = 0;
    enum err e = c->g1_check(&bad_idx, vk->ic, (size_t)vk->public_count + 1, true);
    REQUIRE(e == OK, e, "IC[%zu] %s", bad_idx, why_bad(e));
    return OK;
}

bool vkey_is_insecure(const struct vkey *vk) {
    return memcmp(&vk->gamma2, &vk->delta2, sizeof vk->gamma2) == 0;
}

enum err vkey_check_secure(const struct vkey *vk, const char *name) {
    REQUIRE(!vkey_is_insecure(vk), E_RANGE,
            "%s: gamma equals delta, so anybody can forge proofs under this key: it had no "
            "second-phase contribution; --allow-insecure-keys accepts it for tests",
            name);
    return OK;
}

void vkey_done(struct vkey *vk) {
    mem_free(vk->ic);
    vk->ic = NULL;
}

FALLIBLE vkey_copy(struct vkey *out, const struct vkey *vk) {
    size_t ic_bytes = ((size_t)vk->public_count + 1) * vk->curve->g1_bytes;
    uint8_t *ic;
    TRY(mem_new_raw(&ic, ic_bytes, 1));
    memcpy(ic, vk->ic, ic_bytes);
    *out = *vk;
    out->ic = ic;
    return OK;
}

/* ── Reading ── */

enum err statement_part_check(const cJSON *root, enum statement_part want) {
    static const struct {
        const char *field, *title;
    } parts[] = {[PART_VKEY] = {"vk_alpha_1", "a verification key"},
                 [PART_PUBLICS] = {NULL, "a list of public signals"},
                 [PART_PROOF] = {"pi_a", "a proof"}};
    for (unsigned i = 0; i < COUNT_OF(parts); i++) {
        bool is = parts[i].field ? cJSON_GetObjectItemCaseSensitive(root, parts[i].field) != NULL
                                 : cJSON_IsArray(root) && cJSON_IsString(root->child);
        REQUIRE(!is || i == want, E_FORMAT,
                "this is %s, not %s; the key comes first, then the public signals, then the proof",
                parts[i].title, parts[want].title);
    }
    return OK;
}

static FALLIBLE read_protocol(const cJSON *root) {
    const char *protocol;
    TRY(json_text_member(&protocol, root, "protocol"));
    REQUIRE(strcmp(protocol, "groth16") == 0, E_FORMAT,
            "protocol is \"%.32s\"; only \"groth16\" is supported", protocol);
    return OK;
}

static FALLIBLE read_curve(const struct curve **out, const cJSON *root) {
    const char *name;
    TRY(json_text_member(&name, root, "curve"));
    const struct curve *curve = curve_by_name(name);
    REQUIRE(curve, E_CURVE, "curve is \"%.32s\"; known are \"bn128\" (bn254) and \"bls12381\"",
            name);
    *out = curve;
    return OK;
}

static FALLIBLE read_public_count(uint32_t *out, const cJSON *root) {
    uint64_t count;
    TRY(json_number_member(&count, root, 0, UINT32_MAX, "nPublic"));
    REQUIRE(count <= PUBLIC_COUNT_MAX, E_RANGE, "nPublic is %" PRIu64 ", at most %d are supported",
            count, PUBLIC_COUNT_MAX);
    *out = (uint32_t)count;
    return OK;
}

static FALLIBLE read_ic(struct vkey *vk, const cJSON *root) {
    const cJSON *list;
    size_t found, want = (size_t)vk->public_count + 1;
    TRY(json_list_member(&list, &found, root, "IC"));
    REQUIRE(found == want, E_FORMAT,
            "IC has %zu points, nPublic = %" PRIu32 " needs %zu; the file was edited or damaged",
            found, vk->public_count, want);
    TRY(mem_new_raw(&vk->ic, want, vk->curve->g1_bytes));
    size_t idx = 0;
    for (const cJSON *item = list->child; item; item = item->next, idx++) {
        char field[32];
        snprintf(field, sizeof field, "IC[%zu]", idx);
        struct g1 point;
        TRY(json_g1_read(&point, vk->curve, item, field));
        g1_store(vk->ic + idx * vk->curve->g1_bytes, vk->curve, &point);
    }
    return OK;
}

static FALLIBLE read_g2(struct g2 *out, const struct curve *c, const cJSON *root,
                        const char *field) {
    const cJSON *member;
    TRY(json_member(&member, root, field));
    return json_g2_read(out, c, member, field);
}

/* `vk` may own ic afterwards even on error. */
static FALLIBLE read_tree(struct vkey *vk, const cJSON *root) {
    TRY(statement_part_check(root, PART_VKEY));
    REQUIRE(cJSON_IsObject(root), E_FORMAT, "not a JSON object; is this a verification key?");
    TRY(read_protocol(root));
    TRY(read_curve(&vk->curve, root));
    TRY(read_public_count(&vk->public_count, root));
    const cJSON *alpha;
    TRY(json_member(&alpha, root, "vk_alpha_1"));
    TRY(json_g1_read(&vk->alpha1, vk->curve, alpha, "vk_alpha_1"));
    TRY(read_g2(&vk->beta2, vk->curve, root, "vk_beta_2"));
    TRY(read_g2(&vk->gamma2, vk->curve, root, "vk_gamma_2"));
    TRY(read_g2(&vk->delta2, vk->curve, root, "vk_delta_2"));
    TRY(read_ic(vk, root));
    return vkey_check(vk);
}

FALLIBLE vkey_read_json(struct vkey *out, struct bytes json, const char *name) {
    AUTO(json_free) cJSON *root = NULL;
    TRY(json_parse(&root, json, name));
    AUTO(vkey_done) struct vkey vk = {0};
    enum err e = read_tree(&vk, root);
    if (e != OK) {
        return err_prefix(e, "%s", name);
    }
    *out = vk;
    vk.ic = NULL;
    return OK;
}

/* ── Writing ── */

static void write_gt(struct text *out, const struct curve *c, const struct gt *value) {
    const size_t limbs = c->fp_bytes / 8;
    char digits[FP_DECIMAL_MAX];
    text_add(out, "[\n");
    for (unsigned i = 0; i < 2; i++) {
        text_add(out, "  [\n");
        for (unsigned j = 0; j < 3; j++) {
            text_add(out, "   [\n");
            for (unsigned k = 0; k < 2; k++) {
                fp_to_decimal(digits, c, value->w + ((i * 3 + j) * 2 + k) * limbs);
                text_addf(out, "    \"%s\"%s\n", digits, k == 0 ? "," : "");
            }
            text_add(out, j < 2 ? "   ],\n" : "   ]\n");
        }
        text_add(out, i == 0 ? "  ],\n" : "  ]\n");
    }
    text_add(out, " ]");
}

static void write_g2(struct text *out, const struct curve *c, const struct g2 *p,
                     const char *field) {
    text_addf(out, " \"%s\": ", field);
    json_g2_write(out, c, p, 1);
    text_add(out, ",\n");
}

FALLIBLE vkey_write_json(struct text *out, const struct vkey *vk) {
    const struct curve *c = vk->curve;
    text_addf(out, "{\n \"protocol\": \"groth16\",\n \"curve\": \"%s\",\n \"nPublic\": %" PRIu32,
              c->snarkjs_name, vk->public_count);
    text_add(out, ",\n \"vk_alpha_1\": ");
    json_g1_write(out, c, &vk->alpha1, 1);
    text_add(out, ",\n");
    write_g2(out, c, &vk->beta2, "vk_beta_2");
    write_g2(out, c, &vk->gamma2, "vk_gamma_2");
    write_g2(out, c, &vk->delta2, "vk_delta_2");
    struct gt alphabeta;
    c->pairing(&alphabeta, &vk->alpha1, &vk->beta2);
    text_add(out, " \"vk_alphabeta_12\": ");
    write_gt(out, c, &alphabeta);
    text_add(out, ",\n \"IC\": [");
    for (uint32_t i = 0; i <= vk->public_count; i++) {
        struct g1 point;
        g1_load(&point, c, vk->ic + i * c->g1_bytes);
        text_add(out, i == 0 ? "\n  " : ",\n  ");
        json_g1_write(out, c, &point, 2);
    }
    text_add(out, "\n ]\n}");
    return text_done(out);
}
