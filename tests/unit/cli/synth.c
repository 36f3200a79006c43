/* Synthetic keys as their users make them, and the benches that stand on them. */
#include "node/base/file.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "tests/check/check.h"
#include "tests/unit/cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(const struct run *r, int exit_code, const char *in_err) {
    CHECK_MSG(r->exit_code == exit_code, "exit %d, want %d: %.300s", r->exit_code, exit_code,
              r->err);
    CHECK_HAS(r->err, in_err);
}

static void claim_key_and_proof(void) {
    static const char *const shapes[] = {"dense --log2 6 --curve bn128",
                                         "bits --log2 7 --curve bls12381",
                                         "porep --log2 10 --curve bls12381"};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        struct run r;
        scratch_open(&s);
        run_program(&r, &s, NULL, "key synth k.zkey w.wtns --json --shape %s", shapes[i]);
        expect(&r, 0, "");
        CHECK_HAS(r.out, "{\"key\": \"k.zkey\", \"witness\": \"w.wtns\"");
        run_free(&r);
        CHECK_EQ(2, scratch_files(&s));
        run_program(&r, &s, NULL, "prove k.zkey w.wtns");
        expect(&r, 2, "--allow-insecure-keys");
        run_free(&r);
        run_script(&r, &s,
                   "set -e; $BELLOWS key check --allow-insecure-keys k.zkey; "
                   "$BELLOWS prove --backend cpu --allow-insecure-keys k.zkey w.wtns; "
                   "$BELLOWS key export-vkey --allow-insecure-keys k.zkey v.json; "
                   "$BELLOWS verify --allow-insecure-keys v.json public.json proof.json; "
                   "$BELLOWS key import --allow-insecure-keys k.zkey n.key; "
                   "$BELLOWS key inspect n.key | grep -q native; "
                   "$BELLOWS prove --backend cpu --allow-insecure-keys n.key w.wtns p2 i2; "
                   "cmp public.json i2; $BELLOWS verify --allow-insecure-keys v.json i2 p2");
        expect(&r, 0, "");
        run_free(&r);
    }
}

/* Bellman parameters prove once they have their circuit; without it they are told the cure. */
static void claim_bellman(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    char params[600], circuit[600], witness[600];
    scratch_open(&s);
    snprintf(params, sizeof params, "%s", check_vectors("bls12381/bits/circuit.params"));
    snprintf(circuit, sizeof circuit, "%s", check_vectors("bls12381/bits/circuit.r1cs"));
    snprintf(witness, sizeof witness, "%s", check_vectors("bls12381/bits/witness.wtns"));
    run_program(&r, &s, NULL, "prove --backend cpu %s %s p i", params, witness);
    expect(&r, 2, "--circuit FILE");
    run_free(&r);
    run_program(&r, &s, NULL, "key import %s k", params);
    expect(&r, 2, "--circuit FILE");
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
    run_script(
        &r, &s,
        "set -e; $BELLOWS key import --circuit %s %s k; "
        "$BELLOWS prove --backend cpu --format bellman k %s p i; test $(wc -c <p) = 192; "
        "$BELLOWS key export-vkey k v.json; "
        "$BELLOWS prove --backend cpu k %s p.json i.json; $BELLOWS verify v.json i.json p.json",
        circuit, params, witness, witness);
    expect(&r, 0, "");
    run_free(&r);
}

/* Evaluations of the same witness, which prove as it does. */
static void claim_evaluations(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_script(&r, &s,
               "set -e; $BELLOWS key synth k w --log2 10 --shape porep --curve bls12381 "
               "--evaluations e; test $(wc -c <e) = $((64 + 32 * 993 * 2 + 32 * 994)); "
               "for f in w e; do $BELLOWS prove --backend cpu --allow-insecure-keys --seed 3 k $f "
               "p$f i$f; done; cmp pw pe; cmp iw ie");
    expect(&r, 0, "");
    run_free(&r);
}

static void claim_seeds(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_script(&r, &s,
               "set -e; for n in 1 2 3; do $BELLOWS key synth k$n w$n --log2 6 --shape bits "
               "--seed $((n / 2)) >/dev/null; done; "
               "cmp k2 k3; cmp w2 w3; ! cmp -s k1 k2; ! cmp -s w1 w2");
    expect(&r, 0, "");
    run_free(&r);
    run_program(&r, &s, NULL, "key synth --log2 29");
    expect(&r, 2, "28");
    run_free(&r);
    run_program(&r, &s, NULL, "key synth --log2 9 --shape porep");
    expect(&r, 2, "2^10 to 2^");
    run_free(&r);
    CHECK_EQ(6, scratch_files(&s));
}

static void claim_native(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "key synth --native --shape porep --log2 10 --curve bls12381");
    expect(&r, 0, "");
    CHECK_HAS(r.out, "synth.native (native) and synth.wtns");
    run_free(&r);
    run_program(&r, &s, NULL, "prove synth.native synth.wtns");
    expect(&r, 2, "--allow-insecure-keys");
    run_free(&r);
    run_script(
        &r, &s,
        "set -e; a=--allow-insecure-keys; $BELLOWS key inspect synth.native | grep -q native; "
        "$BELLOWS key check $a synth.native; $BELLOWS key export-vkey $a synth.native v; "
        "$BELLOWS prove --backend cpu $a synth.native synth.wtns p i; "
        "$BELLOWS verify $a v i p; "
        "$BELLOWS key synth k w --shape porep --log2 10 --curve bls12381; "
        "$BELLOWS verify $a v i p; $BELLOWS key export-vkey $a k v2; cmp v v2; cmp w synth.wtns; "
        "$BELLOWS bench prove synth.native synth.wtns --backend cpu --runs 1");
    expect(&r, 0, "");
    CHECK_HAS(r.out, "\"load_gb_s\": ");
    run_free(&r);
    run_program(&r, &s, NULL, "bench load synth.native --backend cpu --runs 2");
    expect(&r, 0, "");
    CHECK_HAS(r.out, "\"key\": \"synth.native\", \"from\": \"file\"");
    CHECK_HAS(r.out, "\"gb_s\": ");
    run_free(&r);
    run_program(&r, &s, NULL, "bench load --synth bits --log2 6 --backend cpu --runs 1");
    expect(&r, 0, "");
    CHECK_HAS(r.out, "\"key\": \"synth bits 2^6\", \"from\": \"memory\"");
    run_free(&r);
    run_program(&r, &s, NULL, "bench prove --synth bits --log2 6 --backend cpu --pin");
    expect(&r, 2, "--pin is for --synth and for the cuda backend");
    run_free(&r);
    run_program(&r, &s, NULL, "bench load synth.native --backend cpu --pin");
    expect(&r, 2, "--pin is for the cuda backend");
    run_free(&r);
}

static void claim_in_memory(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL,
                "bench prove --synth bits --log2 8 --curve bls12381 --backend cpu --runs 2");
    expect(&r, 0, "");
    CHECK_HAS(r.out, "\"key\": \"synth bits 2^8\"");
    CHECK_HAS(r.out, "\"domain_size\": 256");
    CHECK_EQ(0, scratch_files(&s));
    run_free(&r);
}

static double number_of(const char *line, const char *field) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", field);
    const char *at = strstr(line, quoted);
    CHECK_MSG(at, "no %s in %.200s", field, line);
    return strtod(at + strlen(quoted), NULL);
}

/* PoRep-shaped jobs take at most 1/60 of 128 bytes a constraint as witnesses, 1/20 as evaluations; dense ones stay plain. */
static void claim_codec(void) {
    static const struct {
        const char *row;
        double least; /* baseline bytes to wire bytes */
        bool packed;
    } rows[] = {{"porep-witness", 60, true},
                {"porep-evaluations", 20, true},
                {"sha256", 100, true},
                {"dense", 0.99, false}};
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "bench codec --log2 16 --runs 1 --curve bls12381");
    expect(&r, 0, "");
    char *save = NULL, *line = strtok_r(r.out, "\n", &save);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char name[64];
        CHECK_MSG(line, "only %zu lines", i);
        snprintf(name, sizeof name, "\"row\": \"%s\"", rows[i].row);
        CHECK_HAS(line, name);
        double baseline = number_of(line, "baseline_bytes"), raw = number_of(line, "raw_bytes"),
               packed = number_of(line, "packed_bytes"), wire = number_of(line, "wire_bytes");
        CHECK_MSG(baseline >= rows[i].least * wire, "%s: %.0f bytes on the wire of %.0f",
                  rows[i].row, wire, baseline);
        CHECK_EQ(rows[i].packed, packed < raw);
        CHECK(number_of(line, "decode_gb_s") > 0);
        line = strtok_r(NULL, "\n", &save);
    }
    CHECK(!line);
    run_free(&r);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"key synth makes keys that are sound, refused, and prove when allowed",
         claim_key_and_proof},
        {"bellman parameters prove with their circuit, and are refused without", claim_bellman},
        {"key synth writes evaluations that prove as the witness does", claim_evaluations},
        {"the same seed gives the same files, another one others; sizes that cannot be are refused",
         claim_seeds},
        {"key synth --native makes the same key, marked as it is, as it lies", claim_native},
        {"bench prove --synth leaves no file", claim_in_memory},
        {"bench codec has its four rows, and they weigh what they should", claim_codec},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
