/* Circuits as cuzk extracts them: whole and damaged. */
#include "tests/format/damaged.h"

#include "node/base/mem.h"
#include "node/witness/circuit.h"

#include <string.h>

/* Of base, whose three inputs are the constant and two public wires. Places of its parts, in the order of the file. */
enum {
    CONSTRAINTS = 4,
    INPUTS = 3,
    AUX = 5,
    HEAD = 32,
    STARTS = HEAD,
    COLUMNS = STARTS + 8 + 4 * 5
};

static struct damaged base(void) {
    return damaged_case("bls12381", "base/circuit.pce");
}

static size_t terms_of_a(const struct damaged *d) {
    return (size_t)load_u64le(d->ptr + COLUMNS);
}

static size_t values_of_a(const struct damaged *d) {
    return COLUMNS + 8 + 4 * terms_of_a(d) + 8;
}

/* The first density's words: 5 bits, so one word; then bits and ones. Three densities of one word end the file. */
static size_t densities(const struct damaged *d) {
    return d->len - 3 * 32;
}

static void pce_refused(const struct damaged *d, enum err code, const char *text) {
    struct pce p;
    long live = mem_live_blocks();
    CHECK_ERR(code, pce_from_bytes(&p, bytes_of(d->ptr, d->len), d->name));
    CHECK_HAS(err_detail(), text);
    CHECK_HAS(err_detail(), d->name);
    CHECK_EQ(live, mem_live_blocks());
}

/* The same terms as in the .r1cs, whether the rows of the inputs are in the file (bits) or not (base). */
struct walked {
    uint32_t rows, terms[2], wires_sum;
    struct scalar values_sum;
    const struct curve *curve;
};

static enum err on_term(void *ctx, uint32_t matrix, uint32_t wire, const struct scalar *value) {
    struct walked *w = ctx;
    w->terms[matrix]++;
    w->wires_sum += (w->rows + 1) * (wire + 1) * (matrix + 1);
    w->curve->scalar_add(&w->values_sum, &w->values_sum, value);
    return OK;
}

static enum err on_row_end(void *ctx, uint32_t row) {
    struct walked *w = ctx;
    CHECK_EQ(w->rows, row);
    w->rows++;
    return OK;
}

static struct walked walk(const char *path) {
    struct walked w = {.curve = curve_by_id(CURVE_BLS12_381)};
    const struct circuit_sink sink = {on_term, on_row_end, &w};
    struct circuit c;
    CHECK_OK(circuit_open(&c, check_vectors(path)));
    CHECK(c.curve == w.curve);
    CHECK_OK(circuit_walk(&c, &sink));
    CHECK_EQ(c.constraints_count, w.rows);
    circuit_close(&c);
    return w;
}

static void claim_same_as_r1cs(void) {
    static const char *const paths[][2] = {
        {"bls12381/base/circuit.r1cs", "bls12381/base/circuit.pce"},
        {"bls12381/bits/circuit.r1cs", "bls12381/bits/circuit.pce"}};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct walked a = walk(paths[i][0]), b = walk(paths[i][1]);
        CHECK_EQ(a.rows, b.rows);
        CHECK_EQ(a.terms[0], b.terms[0]);
        CHECK_EQ(a.terms[1], b.terms[1]);
        CHECK_EQ(a.wires_sum, b.wires_sum);
        CHECK_MEM(&a.values_sum, &b.values_sum, sizeof a.values_sum);
    }
}

static void claim_head(void) {
    struct damaged d = base();
    d.ptr[3] = 1;
    pce_refused(&d, E_FORMAT, "does not begin with PCE");
    d.ptr[3] = 2;
    damaged_u32(&d, 4, 3);
    pce_refused(&d, E_FORMAT, "version 3");
    damaged_u32(&d, 4, 2);
    damaged_u32(&d, 8, 0);
    pce_refused(&d, E_RANGE, "0 inputs");
    damaged_u32(&d, 8, UINT32_MAX);
    pce_refused(&d, E_RANGE, "4294967295 inputs");
    damaged_u32(&d, 8, INPUTS);
    damaged_u32(&d, 12, AUX + 1);
    pce_refused(&d, E_RANGE, "density of aux: 5 bits");
    damaged_u32(&d, 12, AUX);
    damaged_u32(&d, 16, UINT32_MAX);
    pce_refused(&d, E_RANGE, "4294967295 constraints");
    damaged_u32(&d, 16, CONSTRAINTS + 1);
    pce_refused(&d, E_FORMAT, "5 row starts of A, 6 are expected");
    damaged_u32(&d, 16, CONSTRAINTS);
    damaged_u64(&d, 20, load_u64le(d.ptr + 20) + 1);
    pce_refused(&d, E_RANGE, "non-zeros, the matrices have");
    damaged_free(&d);
}

static void claim_matrices(void) {
    struct damaged d = base();
    damaged_u32(&d, STARTS + 8, 1);
    pce_refused(&d, E_RANGE, "first row of A begins at term 1");
    damaged_u32(&d, STARTS + 8, 0);
    uint32_t was = load_u32le(d.ptr + STARTS + 8 + 4 * 2);
    damaged_u32(&d, STARTS + 8 + 4 * 2, UINT32_MAX);
    pce_refused(&d, E_RANGE, "row 1 of A has terms");
    damaged_u32(&d, STARTS + 8 + 4 * 2, was);
    damaged_u64(&d, COLUMNS, UINT64_MAX);
    pce_refused(&d, E_FORMAT, "18446744073709551615 columns of A");
    damaged_u64(&d, COLUMNS, was = load_u32le(d.ptr + STARTS + 8 + 4 * CONSTRAINTS));
    damaged_u32(&d, COLUMNS + 8, INPUTS + AUX);
    pce_refused(&d, E_RANGE, "row 0 of A names variable 8, the circuit has 8");
    damaged_free(&d);
    d = base();
    memset(d.ptr + values_of_a(&d), 0xff, 32);
    pce_refused(&d, E_RANGE, "a value of row 0 of A is not below r");
    damaged_free(&d);
    d = base();
    damaged_u32(&d, STARTS + 8 + 4 * CONSTRAINTS, UINT32_MAX); /* as many terms as no file has */
    damaged_u64(&d, COLUMNS, UINT32_MAX);
    pce_refused(&d, E_FORMAT, "4294967295 columns of A take more than");
    damaged_free(&d);
}

static void claim_densities(void) {
    struct damaged d = base();
    for (unsigned which = 0; which < 3; which++) {
        size_t at = densities(&d) + 32 * which;
        uint64_t word = load_u64le(d.ptr + at + 8), ones = load_u64le(d.ptr + at + 24);
        damaged_u64(&d, at + 8, word ^ 1); /* another variable is in */
        pce_refused(&d, E_RANGE, "are expected");
        damaged_u64(&d, at + 24, word & 1 ? ones - 1 : ones + 1);
        pce_refused(&d, E_RANGE, "but its density says otherwise");
        damaged_u64(&d, at + 8, word | UINT64_C(1) << 63); /* a bit behind the last */
        damaged_u64(&d, at + 24, ones + 1);
        pce_refused(&d, E_RANGE, "are expected");
        damaged_u64(&d, at + 8, word);
        damaged_u64(&d, at + 24, ones);
        damaged_u64(&d, at, 2);
        pce_refused(&d, E_FORMAT, "2 words of");
        damaged_u64(&d, at, 1);
    }
    damaged_append(&d, "", 1);
    pce_refused(&d, E_FORMAT, "1 bytes follow the densities");
    damaged_free(&d);
}

static void claim_cut_anywhere(void) {
    struct damaged whole = base();
    for (size_t len = 1; len < whole.len; len++) {
        struct damaged d = base();
        damaged_cut(&d, len);
        pce_refused(&d, E_FORMAT, "");
        damaged_free(&d);
    }
    damaged_free(&whole);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"pce: the circuit that its .r1cs describes, with and without the rows of the inputs",
         claim_same_as_r1cs},
        {"pce: magic, version and counts are checked", claim_head},
        {"pce: rows, columns and values are checked", claim_matrices},
        {"pce: densities must be what the matrices name", claim_densities},
        {"pce: a file cut anywhere is refused", claim_cut_anywhere},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
