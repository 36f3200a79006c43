/* Bellman parameters with their circuit: the only proof that fixed blinding allows, in every tier, and circuits of other keys. */
#include "node/groth16/import.h"
#include "node/base/file.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "node/cpu/cpu.h"
#include "node/curve/encode.h"
#include "node/groth16/prove.h"
#include "node/key/native.h"
#include "tests/check/check.h"

#include <stdio.h>
#include <string.h>

static const char *const cases[] = {"base", "bits"};

struct rig {
    char *folder; /* owned */
    char native[600];
    struct key *params;     /* owned */
    struct circuit circuit; /* owned */
    struct sha256 digest;
    struct pool *pool; /* owned */
};

static const char *file_of(const char *name, const char *tail) {
    char joined[256];
    snprintf(joined, sizeof joined, "bls12381/%s/%s", name, tail);
    return check_vectors(joined);
}

static void rig_open(struct rig *r, const char *params, const char *circuit) {
    *r = (struct rig){0};
    CHECK_OK(dir_make_temp(&r->folder, "bellows-import"));
    snprintf(r->native, sizeof r->native, "%s/native", r->folder);
    CHECK_OK(key_open(&r->params, params, (struct key_options){.allow_insecure = true}));
    CHECK_OK(circuit_open(&r->circuit, circuit));
    CHECK_OK(sha256_of(&r->digest, r->circuit.file));
    CHECK_OK(pool_open(&r->pool, 2));
}

static void rig_close(struct rig *r) {
    key_unref(&r->params);
    circuit_close(&r->circuit);
    pool_close(&r->pool);
    CHECK_OK(dir_remove_tree(r->folder));
    mem_free(r->folder);
}

static enum err import(struct rig *r) {
    return import_bellman(r->native, r->params, &r->circuit, &r->digest, r->pool);
}

static void read_blinding(struct blinding *out, uint8_t proof[192], const char *name) {
    AUTO(json_free) cJSON *json = NULL;
    const struct curve *c = curve_by_id(CURVE_BLS12_381);
    const char *text;
    CHECK_OK(json_read(&json, file_of(name, "bellman.json")));
    CHECK_OK(json_text_member(&text, json, "r"));
    CHECK_OK(scalar_from_decimal(&out->r, c, text));
    CHECK_OK(json_text_member(&text, json, "s"));
    CHECK_OK(scalar_from_decimal(&out->s, c, text));
    CHECK_OK(json_text_member(&text, json, "proof"));
    CHECK_OK(hex_decode(proof, 192, text));
}

/* `file` is what is proved: a witness, or evaluations of it. */
static void check_proof(const struct rig *r, const char *name, const char *tier, const char *file) {
    const struct backend_options options = {
        .kind = BACKEND_CPU, .cpu_tier = tier, .threads_count = 2};
    struct key *key = NULL;
    struct witness w;
    struct backend *b = NULL;
    struct backend_key *loaded = NULL;
    struct backend_slot *slot = NULL;
    struct prove_result result = {0};
    struct blinding blinding;
    struct job_watch watch = {0};
    uint8_t want[192], got[192];
    read_blinding(&blinding, want, name);
    CHECK_OK(key_open(&key, r->native, (struct key_options){0}));
    CHECK_OK(key_check(&(struct key_report){0}, key, NULL, NULL, NULL));
    CHECK(key_shape(key)->h_reversed && key_shape(key)->h_basis == H_POWERS);
    CHECK_OK(witness_open(&w, file_of(name, file)));
    CHECK_OK(cpu_backend_open(&b, &options));
    CHECK_OK(b->ops->key_load(&loaded, b, key));
    CHECK_OK(b->ops->slot_open(&slot, loaded));
    CHECK_OK(groth16_prove(&result, b, slot, key, &w, &blinding, &watch)); /* verifies it, too */
    proof_write_bellman(got, &result.proof);
    CHECK_MEM(want, got, sizeof want);
    prove_result_done(&result);
    b->ops->slot_close(&slot);
    b->ops->key_drop(&loaded);
    backend_close(&b);
    witness_close(&w);
    key_unref(&key);
}

static void claim_proofs(void) {
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        struct rig r;
        rig_open(&r, file_of(cases[i / 2], "circuit.params"),
                 file_of(cases[i / 2], i % 2 ? "circuit.pce" : "circuit.r1cs"));
        CHECK_OK(import(&r));
        for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
            check_proof(&r, cases[i / 2], *tier, "witness.wtns");
            check_proof(&r, cases[i / 2], *tier, "witness.evaluations");
        }
        rig_close(&r);
    }
}

/* Both files make the name: another circuit file is another key. */
static void claim_name(void) {
    struct rig r;
    struct sha256 both[2], want, got, other;
    struct key *key = NULL;
    rig_open(&r, file_of("base", "circuit.params"), file_of("base", "circuit.r1cs"));
    CHECK_OK(import(&r));
    CHECK_OK(key_open(&key, r.native, (struct key_options){0}));
    CHECK_OK(key_source(&got, key));
    CHECK_OK(key_digest(&both[0], r.params));
    both[1] = r.digest;
    CHECK_OK(sha256_of(&want, bytes_of(both, sizeof both)));
    CHECK_MEM(&want, &got, sizeof want);
    key_unref(&key);
    r.digest.b[0] ^= 1;
    CHECK_OK(import(&r));
    CHECK_OK(key_open(&key, r.native, (struct key_options){0}));
    CHECK_OK(key_source(&other, key));
    CHECK(memcmp(&other, &want, sizeof other) != 0);
    key_unref(&key);
    rig_close(&r);
}

static void claim_refusals(void) {
    static const struct {
        const char *params, *circuit;
        enum err code;
        const char *says;
    } wrong[] = {
        {"bls12381/base/circuit.params", "bls12381/bits/circuit.r1cs", E_RANGE, "another circuit"},
        {"bls12381/base/circuit.params", "bls12381/bits/circuit.pce", E_RANGE, "another circuit"},
        {"bls12381/base/circuit.params", "bn128/base/circuit.r1cs", E_CURVE, "curve mismatch"},
        {"bls12381/base/circuit.zkey", "bls12381/base/circuit.r1cs", E_USAGE, "--circuit is for"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct rig r;
        rig_open(&r, check_vectors(wrong[i].params), check_vectors(wrong[i].circuit));
        CHECK_ERR(wrong[i].code, import(&r));
        CHECK_HAS(err_detail(), wrong[i].says);
        CHECK(!file_exists(r.native));
        rig_close(&r);
    }
}

/* The same wires and rows, but somebody else is named. */
static void claim_density(void) {
    struct rig r;
    AUTO(mem_free_ptr) uint8_t *changed = NULL;
    rig_open(&r, file_of("base", "circuit.params"), file_of("base", "circuit.r1cs"));
    struct bytes old = r.circuit.r1cs.constraints;
    CHECK_OK(mem_new_raw(&changed, old.len, 1));
    size_t refused = 0;
    for (size_t at = 4; at + 36 < old.len; at += 36) { /* first list: its terms' wires */
        memcpy(changed, old.ptr, old.len);
        if (at >= 4 + 36 * (size_t)load_u32le(old.ptr)) {
            break;
        }
        store_u32le(changed + at, 0);
        r.circuit.r1cs.constraints = bytes_of(changed, old.len);
        enum err code = import(&r);
        CHECK(code == OK || code == E_RANGE);
        refused += code == E_RANGE && strstr(err_detail(), "name") != NULL;
    }
    CHECK(refused > 0);
    r.circuit.r1cs.constraints = bytes_of(old.ptr, old.len - 4);
    CHECK(import(&r) != OK);
    r.circuit.r1cs.constraints = old;
    rig_close(&r);
}

/* One bit of an x in the middle, where opening does not look: importing reads every point and names it. */
static void claim_bad_point(void) {
    enum { IC = 864, G1 = 96, IDX = 100 };
    struct rig r;
    struct bytes_mut file;
    char *folder = NULL, path[512];
    CHECK_OK(dir_make_temp(&folder, "bellows-import"));
    snprintf(path, sizeof path, "%s/bad.params", folder);
    CHECK_OK(file_read_all(&file, check_vectors("bls12381/bits/circuit.params"), 1 << 20));
    size_t h = IC + 4 + (size_t)G1 * __builtin_bswap32(load_u32le(file.ptr + IC)) + 4;
    file.ptr[h + IDX * G1 + 40] ^= 1;
    CHECK_OK(file_write_all(path, bytes_of(file.ptr, file.len)));
    mem_free(file.ptr);
    rig_open(&r, path, check_vectors("bls12381/bits/circuit.r1cs"));
    CHECK_ERR(E_CURVE, import(&r));
    CHECK_HAS(err_detail(), "h (H points): point 100 at byte 9600 of it; the file is damaged");
    CHECK(!strstr(err_detail(), "point 0"));
    rig_close(&r);
    CHECK_OK(dir_remove_tree(folder));
    mem_free(folder);
}

static enum err import_once(void *ctx) {
    return import(ctx);
}

static void claim_allocations(void) {
    struct rig r;
    struct sha256 digest;
    rig_open(&r, file_of("base", "circuit.params"), file_of("base", "circuit.r1cs"));
    CHECK_OK(key_digest(&digest, r.params));
    CHECK(check_allocations(import_once, &r) > 10);
    rig_close(&r);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"an imported bellman key gives the one proof there is, in every tier", claim_proofs},
        {"its name is that of both files", claim_name},
        {"circuits of other keys are refused with both counts", claim_refusals},
        {"a circuit that names other wires is refused", claim_density},
        {"a bad point is named with its number (A11)", claim_bad_point},
        {"import survives every failed allocation", claim_allocations},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
