/* The file, and the walk over its constraints.
 *
 *     section 1   u32 32, prime r, u32 wires, outputs, public inputs, private inputs, u64 labels, u32 constraints
 *     section 2   per constraint three lists (A, B, C): u32 terms, then per term u32 wire, 32-byte coefficient
 *     section 3   u64 label of each wire; names for debuggers, only its size is checked
 *
 * circom writes section 2 before section 1. Lists have no index, so both the check at opening and the evaluation walk
 * the section from its start; the walk at opening settles every count, wire and coefficient, after which the second
 * one reads without checks. Nothing is allocated in either.
 */
#include "node/witness/r1cs.h"

#include "node/key/sections.h"

#include <inttypes.h>
#include <string.h>

enum {
    SEC_HEADER = 1,
    SEC_CONSTRAINTS = 2,
    SEC_LABELS = 3,
    HEADER_BYTES = 4 + SCALAR_BYTES + 4 * 4 + 8 + 4,
    TERM_BYTES = 4 + SCALAR_BYTES,
    CONSTRAINT_BYTES_LEAST = 3 * 4
};

static FALLIBLE header_read(struct r1cs *r1cs, const struct section_table *t) {
    struct bytes section, prime;
    TRY(section_need(&section, t, SEC_HEADER, "header"));
    REQUIRE(section.len == HEADER_BYTES, E_FORMAT,
            "%s: section 1 (header) has %zu bytes, %d are expected; compile the circuit again, for "
            "bn128 or bls12381",
            t->name, section.len, HEADER_BYTES);
    struct reader r = reader_of(section, "section 1 (header)");
    uint32_t width;
    TRY(read_u32le(&width, &r));
    REQUIRE(width == SCALAR_BYTES, E_FORMAT,
            "%s: section 1: coefficients of %" PRIu32
            " bytes, 32 are expected; compile the circuit "
            "again",
            t->name, width);
    TRY(read_span(&prime, &r, SCALAR_BYTES));
    enum err e = curve_by_scalar_prime(&r1cs->curve, prime);
    if (e != OK) {
        return err_prefix(e, "%s: section 1", t->name);
    }
    TRY(read_u32le(&r1cs->wires_count, &r));
    TRY(read_u32le(&r1cs->outputs_count, &r));
    TRY(read_u32le(&r1cs->public_inputs_count, &r));
    TRY(read_u32le(&r1cs->private_inputs_count, &r));
    TRY(read_u64le(&r1cs->labels_count, &r));
    TRY(read_u32le(&r1cs->constraints_count, &r));
    /* Private inputs that no constraint uses are declared and have no wire: they are not counted here. */
    uint64_t named = (uint64_t)r1cs->outputs_count + r1cs->public_inputs_count + 1;
    REQUIRE(named <= r1cs->wires_count, E_RANGE,
            "%s: section 1: the constant, outputs and public inputs are %" PRIu64
            ", but there are %" PRIu32 " wires; the file is damaged: compile the circuit again",
            t->name, named, r1cs->wires_count);
    return OK;
}

/* One of a constraint's three lists: bounds, wires, coefficients. */
static FALLIBLE list_check(struct reader *r, const struct r1cs *r1cs, uint32_t constraint,
                           char list, const char *name) {
    uint32_t count;
    REQUIRE(reader_left(r) >= 4, E_FORMAT,
            "%s: section 2 (constraints) ends inside constraint %" PRIu32 " of %" PRIu32
            ", before list %c; the file is damaged: compile the circuit again",
            name, constraint, r1cs->constraints_count, list);
    TRY(read_u32le(&count, r));
    REQUIRE(count <= reader_left(r) / TERM_BYTES, E_FORMAT,
            "%s: section 2: list %c of constraint %" PRIu32 " claims %" PRIu32
            " terms, but only %zu bytes are left; the file is damaged: compile the circuit again",
            name, list, constraint, count, reader_left(r));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t wire;
        struct scalar coefficient;
        TRY(read_u32le(&wire, r));
        TRY(read_copy(&coefficient, r, sizeof coefficient));
        REQUIRE(wire < r1cs->wires_count, E_RANGE,
                "%s: section 2: list %c of constraint %" PRIu32 " names wire %" PRIu32
                ", the circuit has %" PRIu32 "; the file is damaged: compile the circuit again",
                name, list, constraint, wire, r1cs->wires_count);
        REQUIRE(scalar_is_valid(r1cs->curve, &coefficient), E_RANGE,
                "%s: section 2: a coefficient of list %c of constraint %" PRIu32
                " is not below r; the file is damaged: compile the circuit again",
                name, list, constraint);
    }
    return OK;
}

static FALLIBLE constraints_check(const struct r1cs *r1cs, const char *name) {
    REQUIRE(r1cs->constraints_count <= r1cs->constraints.len / CONSTRAINT_BYTES_LEAST, E_FORMAT,
            "%s: section 2 (constraints) has %zu bytes, too few for %" PRIu32
            " constraints; the file is damaged: compile the circuit again",
            name, r1cs->constraints.len, r1cs->constraints_count);
    struct reader r = reader_of(r1cs->constraints, "section 2 (constraints)");
    for (uint32_t i = 0; i < r1cs->constraints_count; i++) {
        TRY(list_check(&r, r1cs, i, 'A', name));
        TRY(list_check(&r, r1cs, i, 'B', name));
        TRY(list_check(&r, r1cs, i, 'C', name));
    }
    REQUIRE(reader_left(&r) == 0, E_FORMAT,
            "%s: section 2 (constraints) has %zu bytes after the last of %" PRIu32
            " constraints; the file is damaged: compile the circuit again",
            name, reader_left(&r), r1cs->constraints_count);
    return OK;
}

FALLIBLE r1cs_from_bytes(struct r1cs *out, struct bytes file, const char *name) {
    struct section_table table;
    struct r1cs r1cs = {0};
    struct bytes labels;
    TRY(section_table_read(&table, file, name, FILE_R1CS));
    TRY(header_read(&r1cs, &table));
    TRY(section_need(&r1cs.constraints, &table, SEC_CONSTRAINTS, "constraints"));
    if (section_find(&labels, &table, SEC_LABELS)) {
        struct section_size size = {r1cs.wires_count, 8, 0, "wires"};
        TRY(section_need_sized(&labels, &table, SEC_LABELS, "labels", size));
    }
    TRY(constraints_check(&r1cs, name));
    *out = r1cs;
    return OK;
}

#define COMPILE_AGAIN "compile the circuit again"

FALLIBLE r1cs_open(struct r1cs *out, const char *path) {
    AUTO(guarded_close) struct guarded_map file = {0};
    struct r1cs r;
    TRY(guarded_open(&file, path));
    enum err e = r1cs_from_bytes(&r, file.map.bytes, file.map.path);
    TRY(guarded_intact(&file, COMPILE_AGAIN));
    TRY(e);
    r.file = file;
    file = (struct guarded_map){0};
    *out = r;
    return OK;
}

void r1cs_close(struct r1cs *r) {
    guarded_close(&r->file);
    *r = (struct r1cs){0};
}

struct r1cs_term r1cs_term_at(const struct r1cs_list *list, uint32_t idx) {
    const uint8_t *at = list->terms + (size_t)idx * TERM_BYTES;
    struct r1cs_term term = {.wire = load_u32le(at)};
    memcpy(&term.coefficient, at + 4, sizeof term.coefficient);
    return term;
}

struct scalar r1cs_list_sum(const struct r1cs_list *list, const struct curve *c,
                            const struct witness *w) {
    struct scalar sum = {{0}};
    for (uint32_t i = 0; i < list->count; i++) {
        struct r1cs_term term = r1cs_term_at(list, i);
        struct scalar value, product;
        witness_get(&value, w, term.wire);
        c->scalar_mul(&product, &term.coefficient, &value);
        c->scalar_add(&sum, &sum, &product);
    }
    return sum;
}

/* The constraint at *at, which moves past it. */
static struct r1cs_constraint take_constraint(const uint8_t **at) {
    struct r1cs_constraint constraint;
    for (int i = 0; i < 3; i++) {
        uint32_t count = load_u32le(*at);
        constraint.lists[i] = (struct r1cs_list){*at + 4, count};
        *at += 4 + (size_t)count * TERM_BYTES;
    }
    return constraint;
}

struct r1cs_constraint r1cs_constraint_at(const struct r1cs *r, uint32_t idx) {
    const uint8_t *at = r->constraints.ptr;
    for (uint32_t i = 0; i < idx; i++) {
        take_constraint(&at);
    }
    return take_constraint(&at);
}

/* Rows of evaluations behind the constraints: one for each public wire, a the wire and b 0. */
static FALLIBLE public_rows_check(const struct r1cs *r, const struct witness *w) {
    static const struct scalar zero;
    uint64_t publics = (uint64_t)r->outputs_count + r->public_inputs_count + 1;
    REQUIRE(w->rows_count == r->constraints_count + publics, E_RANGE,
            "a and b have %" PRIu64 " rows; %" PRIu32 " constraints and %" PRIu64
            " public wires, the constant among them, make %" PRIu64,
            w->rows_count, r->constraints_count, publics, r->constraints_count + publics);
    for (uint64_t i = 0; i < publics; i++) {
        uint64_t row = r->constraints_count + i;
        REQUIRE(!memcmp(w->a + SCALAR_BYTES * row, w->values + SCALAR_BYTES * i, SCALAR_BYTES) &&
                    !memcmp(w->b + SCALAR_BYTES * row, &zero, SCALAR_BYTES),
                E_UNSAT,
                "row %" PRIu64 " belongs to public wire %" PRIu64
                ": a must be the wire there and b 0",
                row, i);
    }
    return OK;
}

/* Is row i of the evaluations, if there are any, what the assignment gives? */
static bool is_evaluation(const struct witness *w, uint32_t i, const struct scalar *a,
                          const struct scalar *b) {
    return !w->a || (!memcmp(w->a + (size_t)SCALAR_BYTES * i, a, SCALAR_BYTES) &&
                     !memcmp(w->b + (size_t)SCALAR_BYTES * i, b, SCALAR_BYTES));
}

FALLIBLE r1cs_satisfied(uint32_t *first_bad_idx, const struct r1cs *r, const struct witness *w) {
    const struct curve *c = r->curve;
    REQUIRE(w->curve == c, E_CURVE, "the witness is for %s, the constraint system for %s",
            w->curve->snarkjs_name, c->snarkjs_name);
    REQUIRE(w->count == r->wires_count, E_RANGE,
            "the witness has %" PRIu64 " values, the constraint system %" PRIu32 " wires", w->count,
            r->wires_count);
    TRY(w->a ? public_rows_check(r, w) : OK);
    const uint8_t *at = r->constraints.ptr;
    uint32_t bad_count = 0, first_bad = 0, wrong_count = 0, first_wrong = 0;
    for (uint32_t i = 0; i < r->constraints_count; i++) {
        struct r1cs_constraint constraint = take_constraint(&at);
        struct scalar a = r1cs_list_sum(&constraint.lists[0], c, w);
        struct scalar b = r1cs_list_sum(&constraint.lists[1], c, w);
        struct scalar want = r1cs_list_sum(&constraint.lists[2], c, w), product;
        c->scalar_mul(&product, &a, &b);
        if (memcmp(&product, &want, sizeof want) != 0) {
            first_bad = bad_count ? first_bad : i;
            bad_count++;
        } else if (!is_evaluation(w, i, &a, &b)) {
            first_wrong = wrong_count ? first_wrong : i;
            wrong_count++;
        }
    }
    TRY(guarded_intact(&r->file, COMPILE_AGAIN));
    if (bad_count) {
        *first_bad_idx = first_bad;
        FAIL(E_UNSAT,
             "constraint %" PRIu32 " is not satisfied; %" PRIu32 " of %" PRIu32
             " constraints fail (counted from 0, in the order of the .r1cs file)",
             first_bad, bad_count, r->constraints_count);
    }
    if (wrong_count) {
        *first_bad_idx = first_wrong;
        FAIL(E_UNSAT,
             "a or b of constraint %" PRIu32
             " is not what the assignment gives; so it is in %" PRIu32 " of %" PRIu32
             " constraints (counted from 0, in the order of the .r1cs file)",
             first_wrong, wrong_count, r->constraints_count);
    }
    return OK;
}
