/* Proofs and public signals: what was taken is written and read again, and comes out the same. */
#include <string.h>

#include "node/base/mem.h"
#include "node/groth16/proof.h"
#include "tests/fuzz/targets.h"

void fuzz_proof(struct bytes input) {
    struct proof proof, again;
    if (proof_read_json(&proof, NULL, input, "fuzz.json") != OK) {
        return;
    }
    struct text json = {0};
    enum err e = proof_write_json(&json, &proof);
    ASSERT(e == OK);
    e = proof_read_json(&again, proof.curve, text_bytes(&json), "again.json");
    ASSERT(e == OK && !memcmp(&again, &proof, sizeof proof));
    text_free(&json);
}

void fuzz_proof_bytes(struct bytes input) {
    const struct curve *curve = curve_by_id(CURVE_BLS12_381);
    uint8_t again[PROOF_BELLMAN_BYTES_MAX];
    struct proof proof;
    if (proof_read_bellman(&proof, curve, input, "fuzz.proof") == OK) {
        ASSERT(input.len == proof_bellman_bytes(curve));
        proof_write_bellman(again, &proof);
        ASSERT(!memcmp(again, input.ptr, input.len)); /* one proof has one spelling */
    }
}

void fuzz_public(struct bytes input) {
    const struct curve *curve = curve_by_id(CURVE_BN254);
    struct scalar *values, *values_again;
    size_t count, count_again;
    if (public_read_json(&values, &count, curve, input, "fuzz.json") != OK) {
        return;
    }
    struct text json = {0};
    enum err e = public_write_json(&json, values, count);
    ASSERT(e == OK);
    e = public_read_json(&values_again, &count_again, curve, text_bytes(&json), "again.json");
    ASSERT(e == OK && count_again == count);
    ASSERT(!memcmp(values_again, values, count * sizeof *values));
    text_free(&json);
    mem_free(values);
    mem_free(values_again);
}
