/* `bellows calldata` from outside, and the text that it prints, read by ourselves. interop-snarkjs compares it with snarkjs's. */
#include "node/groth16/calldata.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/groth16/verify.h"
#include "tests/check/check.h"
#include "tests/unit/cli/program.h"

#include <stdio.h>
#include <string.h>

static const char *base(const char *name) {
    char tail[128];
    snprintf(tail, sizeof tail, "bn128/base/%s", name);
    return check_vectors(tail);
}

static void claim_text(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r, from_key;
    scratch_open(&s);
    run_program(&r, &s, NULL, "calldata %s %s %s", base("verification_key.json"),
                base("public.json"), base("proof.json"));
    CHECK_MSG(r.exit_code == 0, "%s", r.err);
    CHECK_HAS(r.out, "\"0x000000000000000000000000000000000000000000000000000000000000d75c\","
                     "\"0x0000000000000000000000000000000000000000000000000000000000000003\"]\n");
    run_program(&from_key, &s, NULL, "calldata %s %s %s --json", base("circuit.zkey"),
                base("public.json"), base("proof.json"));
    CHECK_EQ(0, from_key.exit_code);
    CHECK_HAS(from_key.out, "{\"ok\": true, \"arguments\": [[\"0x");
    r.out[strlen(r.out) - 1] = '\0';
    CHECK_HAS(from_key.out, r.out);
    run_free(&from_key);
    run_free(&r);
}

/* Read as a contract reads it, the text is the statement; with B's halves as in proof.json it is not. */
static void claim_order(void) {
    const struct curve *c = curve_by_id(CURVE_BN254);
    AUTO(text_free) struct text text = {0};
    AUTO(vkey_done) struct vkey vk = {0};
    AUTO(mem_free_ptr) struct scalar *publics = NULL;
    struct bytes_mut vkey_json, proof_json, public_json;
    struct proof proof, back, swapped;
    struct scalar got[2];
    size_t count = 0;
    CHECK_OK(file_read_all(&vkey_json, base("verification_key.json"), 1 << 20));
    CHECK_OK(file_read_all(&proof_json, base("proof.json"), 1 << 20));
    CHECK_OK(file_read_all(&public_json, base("public.json"), 1 << 20));
    CHECK_OK(vkey_read_json(&vk, bytes_of(vkey_json.ptr, vkey_json.len), "vkey"));
    CHECK_OK(proof_read_json(&proof, c, bytes_of(proof_json.ptr, proof_json.len), "proof"));
    CHECK_OK(public_read_json(&publics, &count, c, bytes_of(public_json.ptr, public_json.len),
                              "public"));
    CHECK_EQ(2, count);
    CHECK_OK(calldata_write(&text, &proof, publics, count));
    CHECK_OK(calldata_read(&back, got, count, text.ptr));
    CHECK_MEM(&proof, &back, sizeof proof);
    CHECK_MEM(publics, got, sizeof got);
    CHECK_OK(groth16_verify(&vk, got, count, &back));
    swapped = proof;
    memcpy(swapped.b.w, proof.b.w + 4, 32);
    memcpy(swapped.b.w + 4, proof.b.w, 32);
    text_free(&text);
    CHECK_OK(calldata_write(&text, &swapped, publics, count));
    CHECK_ERR(E_CURVE, calldata_read(&back, got, count, text.ptr));
    mem_free(vkey_json.ptr);
    mem_free(proof_json.ptr);
    mem_free(public_json.ptr);
}

static void claim_damaged_texts(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    struct proof back;
    struct scalar got[2];
    scratch_open(&s);
    run_program(&r, &s, NULL, "calldata %s %s %s", base("verification_key.json"),
                base("public.json"), base("proof.json"));
    CHECK_EQ(0, r.exit_code);
    r.out[strlen(r.out) - 1] = '\0';
    CHECK_OK(calldata_read(&back, got, 2, r.out));
    CHECK_ERR(E_FORMAT, calldata_read(&back, got, 1, r.out));
    for (size_t len = 0; r.out[len]; len++) {
        char kept = r.out[len];
        r.out[len] = '\0'; /* cut */
        CHECK(calldata_read(&back, got, 2, r.out) != OK);
        r.out[len] = kept == 'f' ? 'g' : 'f'; /* other */
        enum err code = calldata_read(&back, got, 2, r.out);
        CHECK(code != OK || len > strlen(r.out) - 140); /* a public signal may be another */
        r.out[len] = kept;
    }
    run_free(&r);
}

static void claim_refusals(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(
        &r, &s, NULL, "calldata %s %s %s", check_vectors("bls12381/base/verification_key.json"),
        check_vectors("bls12381/base/public.json"), check_vectors("bls12381/base/proof.json"));
    CHECK_EQ(2, r.exit_code);
    CHECK_STR("", r.out);
    CHECK_HAS(r.err, "no settled form for bls12381");
    run_free(&r);
    run_program(&r, &s, NULL, "calldata %s %s %s", base("verification_key.json"),
                check_vectors("bn128/base-zero/public.json"), base("proof.json"));
    CHECK_EQ(1, r.exit_code);
    CHECK_STR("", r.out);
    CHECK_HAS(r.err, "is not valid");
    run_free(&r);
    run_program(&r, &s, NULL, "calldata %s %s %s",
                check_vectors("bn128/base-uncontributed/verification_key.json"),
                base("public.json"), base("proof.json"));
    CHECK_EQ(2, r.exit_code);
    CHECK_HAS(r.err, "gamma equals delta");
    run_free(&r);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a valid proof becomes the contract's arguments", claim_text},
        {"the text read in the contract's order is the statement", claim_order},
        {"a cut or changed text is no calldata", claim_damaged_texts},
        {"other curves, invalid proofs and forgeable keys give nothing", claim_refusals},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
