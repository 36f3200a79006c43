/* Constraint systems: whole, damaged, and against witnesses that do and do not satisfy them. */
#include "tests/format/damaged.h"

#include <stdio.h>
#include <string.h>

static struct damaged base_r1cs(const char *curve) {
    return damaged_case(curve, "base/circuit.r1cs");
}

static void claim_base_opens(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        struct damaged d = base_r1cs(curve_dirs[i]);
        struct r1cs r;
        CHECK_OK(r1cs_from_bytes(&r, bytes_of(d.ptr, d.len), d.name));
        CHECK_EQ(8, r.wires_count);
        CHECK_EQ(4, r.constraints_count);
        CHECK_EQ(1, r.outputs_count);
        CHECK_EQ(1, r.public_inputs_count);
        CHECK_EQ(2, r.private_inputs_count);
        CHECK_STR(curve_dirs[i], r.curve->snarkjs_name);
        r1cs_close(&r);
        damaged_free(&d);
    }
}

static void claim_cut_anywhere(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        struct damaged whole = base_r1cs(curve_dirs[i]);
        for (size_t len = 4; len < whole.len; len++) {
            struct damaged d = base_r1cs(curve_dirs[i]);
            damaged_cut(&d, len);
            REFUSED(&d, READS_R1CS, E_FORMAT, "cut short");
            damaged_free(&d);
        }
        damaged_free(&whole);
        struct damaged d = damaged_case(curve_dirs[i], "bad/truncated.r1cs");
        REFUSED(&d, READS_R1CS, E_FORMAT, "cut short");
        damaged_free(&d);
    }
}

static void claim_counts_unbacked(void) {
    struct damaged d = base_r1cs("bn128");
    size_t header = section_place(&d, 1), constraints = section_place(&d, 2);
    damaged_u32(&d, header + 36, UINT32_MAX); /* wires */
    REFUSED(&d, READS_R1CS, E_FORMAT, "section 3 (labels)", "4294967295 wires need");
    damaged_u32(&d, header + 36, 2);
    REFUSED(&d, READS_R1CS, E_RANGE, "public inputs are 3, but there are 2 wires");
    damaged_u32(&d, header + 36, 8);
    damaged_u32(&d, header + 60, UINT32_MAX); /* constraints */
    REFUSED(&d, READS_R1CS, E_FORMAT, "too few for 4294967295 constraints");
    damaged_u32(&d, header + 60, 5);
    REFUSED(&d, READS_R1CS, E_FORMAT, "ends inside constraint 4 of 5");
    damaged_u32(&d, header + 60, 3);
    REFUSED(&d, READS_R1CS, E_FORMAT, "bytes after the last of 3 constraints");
    damaged_u32(&d, header + 60, 4);
    damaged_u32(&d, constraints, UINT32_MAX); /* the first list's terms */
    REFUSED(&d, READS_R1CS, E_FORMAT, "list A of constraint 0 claims 4294967295 terms");
    damaged_free(&d);
}

static void claim_terms(void) {
    struct damaged d = base_r1cs("bls12381");
    size_t term = section_place(&d, 2) + 4;
    damaged_u32(&d, term, 8);
    REFUSED(&d, READS_R1CS, E_RANGE, "list A of constraint 0 names wire 8", "the circuit has 8");
    damaged_u32(&d, term, 0);
    memset(d.ptr + term + 4, 0xff, 32);
    REFUSED(&d, READS_R1CS, E_RANGE, "is not below r");
    damaged_free(&d);
}

static void claim_header(void) {
    struct damaged d = base_r1cs("bn128");
    size_t header = section_place(&d, 1);
    damaged_u32(&d, header, 8);
    REFUSED(&d, READS_R1CS, E_FORMAT, "section 1: coefficients of 8 bytes");
    damaged_u32(&d, header, 32);
    d.ptr[header + 4] ^= 2;
    REFUSED(&d, READS_R1CS, E_CURVE, "section 1");
    damaged_u32(&d, 4, 2);
    REFUSED(&d, READS_R1CS, E_FORMAT, "version 2");
    damaged_free(&d);
}

static void check_case(const char *curve, const char *witness, enum err want, const char *text) {
    char path[128];
    struct r1cs r;
    struct witness w;
    snprintf(path, sizeof path, "%s/mul/circuit.r1cs", curve);
    CHECK_OK(r1cs_open(&r, check_vectors(path)));
    snprintf(path, sizeof path, "%s/%s", curve, witness);
    CHECK_OK(witness_open(&w, check_vectors(path)));
    uint32_t bad = UINT32_MAX;
    CHECK_ERR(want, r1cs_satisfied(&bad, &r, &w));
    if (want != OK) {
        CHECK_HAS(err_detail(), text);
    }
    CHECK_EQ(want == E_UNSAT ? 0 : UINT32_MAX, bad);
    witness_close(&w);
    r1cs_close(&r);
}

static void claim_satisfied(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        const char *curve = curve_dirs[i];
        char other[64];
        snprintf(other, sizeof other, "../%s/mul/witness.wtns", curve_dirs[1 - i]);
        check_case(curve, "mul/witness.wtns", OK, "");
        check_case(curve, "bad/unsatisfied.wtns", E_UNSAT, "constraint 0 is not satisfied; 1 of 1");
        check_case(curve, "bad/short.wtns", E_RANGE, "has 3 values, the constraint system 4 wires");
        check_case(curve, other, E_CURVE, "the constraint system for");
    }
}

/* Every single value of the base witness matters: changing any of them breaks some constraint. */
static void claim_names_first_constraint(void) {
    for (size_t i = 0; i < CURVES_COUNT; i++) {
        struct damaged rd = base_r1cs(curve_dirs[i]);
        struct r1cs r;
        CHECK_OK(r1cs_from_bytes(&r, bytes_of(rd.ptr, rd.len), rd.name));
        /* wire 1 out, 2 x, 3 a, 4 b, 5 m = a·b, 6 n = m·x, 7 k = n·n, last: k·a + b = out */
        static const uint32_t first[] = {0, 3, 1, 0, 0, 0, 1, 2};
        for (size_t wire = 1; wire < 8; wire++) {
            struct damaged wd = damaged_case(curve_dirs[i], "base/witness.wtns");
            store_u32le(wd.ptr + section_place(&wd, 2) + 32 * wire, 999);
            struct witness w;
            uint32_t bad = 99;
            CHECK_OK(witness_from_wtns_bytes(&w, bytes_of(wd.ptr, wd.len), wd.name));
            CHECK_ERR(E_UNSAT, r1cs_satisfied(&bad, &r, &w));
            CHECK_EQ(first[wire], bad);
            witness_close(&w);
            damaged_free(&wd);
        }
        r1cs_close(&r);
        damaged_free(&rd);
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"r1cs: the undamaged base system opens with its counts", claim_base_opens},
        {"r1cs: cut at any byte it is refused (A03)", claim_cut_anywhere},
        {"r1cs: counts that no bytes back are refused (A15)", claim_counts_unbacked},
        {"r1cs: a wire or coefficient out of range is named", claim_terms},
        {"r1cs: width, prime and version are checked", claim_header},
        {"r1cs: a witness that satisfies passes, one that does not is refused (B14)",
         claim_satisfied},
        {"r1cs: the first broken constraint is named (B14)", claim_names_first_constraint},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
