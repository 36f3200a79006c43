/* Witnesses, evaluations and constraint systems. */
#include "node/witness/pce.h"
#include "node/witness/r1cs.h"
#include "tests/fuzz/targets.h"

#include <string.h>

static void check_values(const struct curve *c, const uint8_t *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        struct scalar value;
        memcpy(&value, values + SCALAR_BYTES * i, sizeof value);
        ASSERT(scalar_is_valid(c, &value));
    }
}

static void check_witness(struct witness *w) {
    struct scalar value;
    check_values(w->curve, w->values, w->count);
    witness_get(&value, w, 0);
    ASSERT(value.w[0] == 1 && !(value.w[1] | value.w[2] | value.w[3]));
    witness_close(w);
}

void fuzz_wtns(struct bytes input) {
    struct witness w;
    if (witness_from_wtns_bytes(&w, input, "fuzz.wtns") == OK) {
        check_witness(&w);
    }
}

void fuzz_evaluations(struct bytes input) {
    struct witness w;
    if (witness_from_evaluations_bytes(&w, input, "fuzz.evaluations") == OK) {
        check_values(w.curve, w.a, w.rows_count);
        check_values(w.curve, w.b, w.rows_count);
        check_witness(&w);
    }
}

/* A witness of ones walks over every term of whatever was taken. */
void fuzz_r1cs(struct bytes input) {
    enum { WIRES_MAX = 4096 };
    static struct scalar ones[WIRES_MAX];
    struct r1cs r;
    if (r1cs_from_bytes(&r, input, "fuzz.r1cs") != OK) {
        return;
    }
    if (r.wires_count <= WIRES_MAX) {
        for (uint32_t i = 0; i < r.wires_count; i++) {
            ones[i] = (struct scalar){{1}};
        }
        struct witness w = {
            .curve = r.curve, .count = r.wires_count, .values = (const uint8_t *)ones};
        uint32_t bad = 0;
        enum err e = r1cs_satisfied(&bad, &r, &w);
        ASSERT(e == OK || (e == E_UNSAT && bad < r.constraints_count));
    }
    r1cs_close(&r);
}

/* Every term of what was taken can be read, and names a variable. */
void fuzz_pce(struct bytes input) {
    struct pce p;
    if (pce_from_bytes(&p, input, "fuzz.pce") != OK) {
        return;
    }
    for (uint32_t row = 0; row < p.constraints_count; row++) {
        for (unsigned m = 0; m < 2; m++) {
            struct pce_terms terms = pce_row(&p, m, row);
            for (uint32_t i = terms.from; i < terms.end; i++) {
                struct scalar value;
                uint32_t wire;
                pce_term(&wire, &value, &p, m, i);
                ASSERT(wire < p.inputs_count + p.aux_count && scalar_is_valid(p.curve, &value));
            }
        }
    }
    pce_close(&p);
}
