/* Evaluations: whole, damaged, of another circuit, and against the constraints. */
#include "tests/format/damaged.h"

#include "node/base/mem.h"
#include "node/key/parts.h"
#include "proto/evaluations.h"

#include <stdio.h>
#include <string.h>

enum { WIRES = 8, CONSTRAINTS = 4, ROWS = CONSTRAINTS + 3 }; /* of base: two public signals */

static struct damaged base(const char *curve) {
    return damaged_case(curve, "base/witness.evaluations");
}

/* Value idx of a (0), b (1) or the assignment (2). */
static uint8_t *value_at(const struct damaged *d, unsigned vector, size_t idx) {
    return d->ptr + EVALUATIONS_HEAD_BYTES + 32 * (vector * (size_t)ROWS + idx);
}

static void claim_base_opens(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        struct damaged d = base(curve_dirs[i]),
                       wtns = damaged_case(curve_dirs[i], "base/witness.wtns");
        struct witness w, plain;
        CHECK_OK(witness_from_evaluations_bytes(&w, bytes_of(d.ptr, d.len), d.name));
        CHECK_OK(witness_from_wtns_bytes(&plain, bytes_of(wtns.ptr, wtns.len), wtns.name));
        CHECK_STR(curve_dirs[i], w.curve->snarkjs_name);
        CHECK_EQ(WIRES, w.count);
        CHECK_EQ(ROWS, w.rows_count);
        CHECK_MEM(plain.values, w.values, (size_t)WIRES * 32);
        CHECK(w.a == value_at(&d, 0, 0) && w.b == value_at(&d, 1, 0));
        witness_close(&w);
        witness_close(&plain);
        damaged_free(&d);
        damaged_free(&wtns);
    }
}

/* The header for other programs writes the head that is in the file. */
static void claim_head_as_written(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        struct damaged d = base(curve_dirs[i]);
        uint8_t head[EVALUATIONS_HEAD_BYTES];
        evaluations_write_head(head, i ? EVALUATIONS_BLS12_381 : EVALUATIONS_BN254, ROWS, WIRES);
        CHECK_MEM(d.ptr, head, sizeof head);
        CHECK_EQ(d.len, evaluations_bytes(ROWS, WIRES));
        damaged_free(&d);
    }
}

static void claim_opened_by_content(void) {
    struct witness w;
    CHECK_OK(witness_open(&w, check_vectors("bn128/base/witness.evaluations")));
    CHECK(w.a && w.rows_count == ROWS);
    CHECK_OK(witness_intact(&w));
    witness_close(&w);
    CHECK_OK(witness_open(&w, check_vectors("bn128/base/witness.wtns")));
    CHECK(!w.a && w.rows_count == 0);
    witness_close(&w);
}

static void claim_head(void) {
    struct damaged d = base("bls12381");
    d.ptr[7] = 'X';
    REFUSED(&d, READS_EVALUATIONS, E_FORMAT, "does not begin with BELLOWSE");
    d.ptr[7] = 'E';
    static const uint32_t versions[] = {0, 2, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        damaged_u32(&d, 8, versions[i]);
        REFUSED(&d, READS_EVALUATIONS, E_FORMAT, "of version", "reads 1");
    }
    damaged_u32(&d, 8, 1);
    static const uint32_t strangers[] = {0, 3, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(strangers); i++) {
        damaged_u32(&d, 12, strangers[i]);
        REFUSED(&d, READS_EVALUATIONS, E_CURVE, "head: curve");
    }
    damaged_u32(&d, 12, 2);
    for (size_t at = 32; at < EVALUATIONS_HEAD_BYTES; at++) {
        char text[32];
        snprintf(text, sizeof text, "byte %zu is 7", at);
        d.ptr[at] = 7;
        REFUSED(&d, READS_EVALUATIONS, E_FORMAT, text);
        d.ptr[at] = 0;
    }
    TAKEN(&d, READS_EVALUATIONS);
    damaged_free(&d);
}

static void claim_counts(void) {
    struct damaged d = base("bn128");
    damaged_u64(&d, 16, 0);
    REFUSED(&d, READS_EVALUATIONS, E_RANGE, "0 rows");
    damaged_u64(&d, 16, (UINT64_C(1) << 32) + 1);
    REFUSED(&d, READS_EVALUATIONS, E_RANGE, "4294967297 rows");
    damaged_u64(&d, 16, UINT64_MAX);
    REFUSED(&d, READS_EVALUATIONS, E_RANGE, "18446744073709551615 rows");
    damaged_u64(&d, 16, ROWS + 1);
    REFUSED(&d, READS_EVALUATIONS, E_FORMAT, "8 rows of a and b and 8 wires make 832");
    damaged_u64(&d, 16, ROWS);
    damaged_u64(&d, 24, 0);
    REFUSED(&d, READS_EVALUATIONS, E_RANGE, "0 wires");
    damaged_u64(&d, 24, UINT64_C(1) << 32);
    REFUSED(&d, READS_EVALUATIONS, E_RANGE, "4294967296 wires");
    damaged_u64(&d, 24, WIRES - 1);
    REFUSED(&d, READS_EVALUATIONS, E_FORMAT, "the file has 768 bytes");
    damaged_free(&d);
}

static void claim_cut_anywhere(void) {
    struct damaged whole = base("bls12381");
    for (size_t len = 1; len < whole.len; len++) {
        struct damaged d = base("bls12381");
        damaged_cut(&d, len);
        REFUSED(&d, READS_EVALUATIONS, E_FORMAT,
                len < EVALUATIONS_HEAD_BYTES ? "the head" : "cut short");
        damaged_free(&d);
    }
    damaged_append(&whole, "", 1);
    REFUSED(&whole, READS_EVALUATIONS, E_FORMAT, "the file has 769 bytes");
    damaged_free(&whole);
}

static void claim_values(void) {
    static const char *const vectors[] = {"a: ", "b: ", "assignment: "};
    static const size_t counts[] = {ROWS, ROWS, WIRES};
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        struct damaged d = base(curve_dirs[i]);
        const struct curve *c = curve_by_name(curve_dirs[i]);
        for (unsigned v = 0; v < 3; v++) {
            for (size_t k = 0; k < counts[v]; k++) {
                uint8_t was[32];
                char text[96];
                memcpy(was, value_at(&d, v, k), sizeof was);
                snprintf(text, sizeof text, "%svalue %zu of %zu is not canonical", vectors[v], k,
                         counts[v]);
                memcpy(value_at(&d, v, k), &c->r, sizeof was);
                REFUSED(&d, READS_EVALUATIONS, E_RANGE, text);
                memset(value_at(&d, v, k), 0xff, sizeof was);
                REFUSED(&d, READS_EVALUATIONS, E_RANGE, text);
                memcpy(value_at(&d, v, k), was, sizeof was);
            }
        }
        *value_at(&d, 2, 0) = 2;
        REFUSED(&d, READS_EVALUATIONS, E_RANGE, "assignment: value 0 is not 1");
        damaged_free(&d);
    }
}

static void claim_other_files(void) {
    struct damaged d = base("bn128");
    REFUSED(&d, READS_KEY, E_FORMAT, "evaluations of a circuit", "key comes first");
    REFUSED(&d, READS_R1CS, E_FORMAT, "evaluations of a circuit");
    REFUSED(&d, READS_WITNESS, E_FORMAT, "evaluations of a circuit");
    damaged_free(&d);
}

static void claim_fits_key(void) {
    struct damaged key = damaged_case("bls12381", "base/circuit.zkey"),
                   params = damaged_case("bls12381", "base/circuit.params"), d = base("bls12381");
    struct key_parts parts, bellman;
    struct witness w;
    CHECK_OK(key_parse(&parts, bytes_of(key.ptr, key.len), key.name));
    CHECK_OK(key_parse(&bellman, bytes_of(params.ptr, params.len), params.name));
    CHECK_OK(witness_from_evaluations_bytes(&w, bytes_of(d.ptr, d.len), d.name));
    CHECK_OK(witness_fits(&w, &parts.shape, "circuit.zkey"));
    static const uint64_t misfits[] = {1, 4, 9, 1 << 20}; /* the domain has 8 */
    for (size_t i = 0; i < COUNT_OF(misfits); i++) {
        w.rows_count = misfits[i];
        CHECK_ERR(E_RANGE, witness_fits(&w, &parts.shape, "circuit.zkey"));
        CHECK_HAS(err_detail(), "the domain of circuit.zkey has 2^3");
    }
    w.rows_count = ROWS;
    CHECK_ERR(E_USAGE, witness_fits(&w, &bellman.shape, "circuit.params"));
    CHECK_HAS(err_detail(), "bellows key import circuit.params NATIVE --circuit FILE");
    witness_close(&w);
    key_parts_done(&parts);
    key_parts_done(&bellman);
    damaged_free(&key);
    damaged_free(&params);
    damaged_free(&d);
}

/* `prove --r1cs` names the first row that is not what the assignment gives. */
static void claim_against_constraints(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        struct damaged rd = damaged_case(curve_dirs[i], "base/circuit.r1cs"),
                       d = base(curve_dirs[i]);
        struct r1cs r;
        struct witness w;
        uint32_t bad = 99;
        CHECK_OK(r1cs_from_bytes(&r, bytes_of(rd.ptr, rd.len), rd.name));
        CHECK_OK(witness_from_evaluations_bytes(&w, bytes_of(d.ptr, d.len), d.name));
        CHECK_OK(r1cs_satisfied(&bad, &r, &w));
        for (unsigned row = 0; row < 2 * ROWS; row++) {
            uint8_t *at = value_at(&d, row % 2, row / 2);
            *at ^= 1;
            bad = 99;
            CHECK_ERR(E_UNSAT, r1cs_satisfied(&bad, &r, &w));
            CHECK_HAS(err_detail(), row / 2 < CONSTRAINTS ? "a or b of constraint" : "public wire");
            CHECK_EQ(row / 2 < CONSTRAINTS ? row / 2 : 99, bad);
            *at ^= 1;
        }
        w.rows_count--;
        CHECK_ERR(E_RANGE, r1cs_satisfied(&bad, &r, &w));
        CHECK_HAS(err_detail(), "a and b have 6 rows");
        witness_close(&w);
        r1cs_close(&r);
        damaged_free(&rd);
        damaged_free(&d);
    }
}

/* What a lane does: vectors in one block, lent or handed over. */
static void claim_in_memory(void) {
    enum { VALUES = 2, EVALUATED = 3 };
    const struct curve *c = curve_by_id(CURVE_BN254);
    long live = mem_live_blocks();
    struct witness w;
    uint8_t *block = NULL;
    CHECK_OK(mem_new(&block, VALUES + 2 * EVALUATED, 32));
    uint8_t *a = block + 32 * VALUES, *b = a + 32 * EVALUATED;
    block[0] = 1;
    memset(b + 64, 0xff, 32);
    CHECK_OK(witness_over_values(&w, c, block, VALUES, "partition 0"));
    CHECK_ERR(E_RANGE, witness_add_evaluations(&w, a, b, EVALUATED, "partition 0"));
    CHECK_HAS(err_detail(), "partition 0: b: value 2 of 3");
    CHECK(!w.a);
    memset(b + 64, 0, 32);
    CHECK_OK(witness_add_evaluations(&w, a, b, EVALUATED, "partition 0"));
    CHECK(w.a == a && w.b == b && w.rows_count == EVALUATED);
    witness_own(&w, block, 32 * (VALUES + 2 * EVALUATED));
    witness_close(&w);
    CHECK_EQ(live, mem_live_blocks());
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"whole evaluations open on both curves", claim_base_opens},
        {"the public header writes the head that readers expect", claim_head_as_written},
        {"a file is taken for what it holds, not for its name", claim_opened_by_content},
        {"magic, version, curve and the zeros of the head are checked", claim_head},
        {"counts are checked before anything is read for them", claim_counts},
        {"a file cut anywhere, or with one byte more, is refused", claim_cut_anywhere},
        {"every value below r, the first of the assignment 1", claim_values},
        {"evaluations where something else is expected are named", claim_other_files},
        {"rows that do not make the key's domain, and keys without a circuit, are refused",
         claim_fits_key},
        {"against the constraints, the first row that the assignment does not give is named",
         claim_against_constraints},
        {"in memory vectors are lent, or handed over as one block", claim_in_memory},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
