/* Counts and places first, then one pass over each matrix, then who is named against the densities. Nothing is copied; two bits a
 * variable are kept while the densities are compared.
 */
#include "node/witness/pce.h"

#include "node/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define EXTRACT_AGAIN "extract the circuit again"

enum { HEAD_BYTES = 32, PCE_VERSION = 2, MATRICES = 2 };
static const char matrix_names[] = "ABC";

bool pce_is(struct bytes file) {
    return file.len >= 4 && !memcmp(file.ptr, "PCE\x02", 4);
}

/* u64 n, then n items. */
static FALLIBLE array_read(struct bytes *out, struct reader *r, size_t item_bytes, uint64_t count,
                           const char *what, const char *name) {
    uint64_t n;
    REQUIRE(reader_left(r) >= 8, E_FORMAT, "%s: the file ends before the %s; " EXTRACT_AGAIN, name,
            what);
    TRY(read_u64le(&n, r));
    REQUIRE(n == count, E_FORMAT,
            "%s: %" PRIu64 " %s, %" PRIu64 " are expected; the file is damaged: " EXTRACT_AGAIN,
            name, n, what, count);
    REQUIRE(n <= reader_left(r) / item_bytes, E_FORMAT,
            "%s: %" PRIu64
            " %s take more than the %zu bytes that are left; the file is cut short: " EXTRACT_AGAIN,
            name, n, what, reader_left(r));
    return read_span(out, r, (size_t)n * item_bytes);
}

/* The number of columns says how many terms there are. */
static FALLIBLE matrix_read(struct pce_matrix *out, uint64_t *terms_count, struct reader *r,
                            uint32_t rows_count, unsigned m, const char *name) {
    char what[64];
    uint64_t terms;
    snprintf(what, sizeof what, "row starts of %c", matrix_names[m]);
    TRY(array_read(&out->starts, r, 4, (uint64_t)rows_count + 1, what, name));
    terms = load_u32le(out->starts.ptr + 4 * (size_t)rows_count);
    snprintf(what, sizeof what, "columns of %c", matrix_names[m]);
    TRY(array_read(&out->columns, r, 4, terms, what, name));
    snprintf(what, sizeof what, "values of %c", matrix_names[m]);
    TRY(array_read(&out->values, r, SCALAR_BYTES, terms, what, name));
    *terms_count += terms;
    return OK;
}

static uint32_t start_at(const struct pce_matrix *m, uint32_t row) {
    return load_u32le(m->starts.ptr + 4 * (size_t)row);
}

static FALLIBLE matrix_check(const struct pce *p, uint32_t rows_count, unsigned m,
                             const char *name) {
    const struct pce_matrix *x = &p->matrix[m];
    uint32_t wires = p->inputs_count + p->aux_count;
    REQUIRE(start_at(x, 0) == 0, E_RANGE,
            "%s: the first row of %c begins at term %" PRIu32 "; " EXTRACT_AGAIN, name,
            matrix_names[m], start_at(x, 0));
    for (uint32_t row = 0; row < rows_count; row++) {
        uint32_t from = start_at(x, row), end = start_at(x, row + 1);
        REQUIRE(from <= end && end <= x->columns.len / 4, E_RANGE,
                "%s: row %" PRIu32 " of %c has terms %" PRIu32 " to %" PRIu32
                " of %zu; the file is damaged: " EXTRACT_AGAIN,
                name, row, matrix_names[m], from, end, x->columns.len / 4);
        for (uint32_t i = from; i < end; i++) {
            struct scalar value;
            uint32_t wire = load_u32le(x->columns.ptr + 4 * (size_t)i);
            memcpy(&value, x->values.ptr + SCALAR_BYTES * (size_t)i, sizeof value);
            REQUIRE(wire < wires, E_RANGE,
                    "%s: row %" PRIu32 " of %c names variable %" PRIu32 ", the circuit has %" PRIu32
                    "; the file is damaged: " EXTRACT_AGAIN,
                    name, row, matrix_names[m], wire, wires);
            REQUIRE(scalar_is_valid(p->curve, &value), E_RANGE,
                    "%s: a value of row %" PRIu32
                    " of %c is not below r; the file is damaged: " EXTRACT_AGAIN,
                    name, row, matrix_names[m]);
        }
    }
    return OK;
}

/* --- Densities --- */

static bool bit_of(const uint8_t *words, uint64_t idx) {
    return load_u64le(words + 8 * (idx / 64)) >> idx % 64 & 1;
}

static FALLIBLE density_read(struct bytes *words, struct reader *r, uint64_t bits, const char *what,
                             const char *name) {
    uint64_t count, ones, found = 0;
    TRY(array_read(words, r, 8, (bits + 63) / 64, what, name));
    REQUIRE(reader_left(r) >= 16, E_FORMAT, "%s: the file ends inside the %s; " EXTRACT_AGAIN, name,
            what);
    TRY(read_u64le(&count, r));
    TRY(read_u64le(&ones, r));
    for (size_t i = 0; i < words->len; i += 8) {
        found += (uint64_t)__builtin_popcountll(load_u64le(words->ptr + i));
    }
    bool padded = bits % 64 == 0 || !(load_u64le(words->ptr + words->len - 8) >> bits % 64);
    REQUIRE(count == bits && ones == found && padded, E_RANGE,
            "%s: %s: %" PRIu64 " bits with %" PRIu64 " ones are stated, %" PRIu64 " with %" PRIu64
            " are expected; the file is damaged: " EXTRACT_AGAIN,
            name, what, count, ones, bits, found);
    return OK;
}

static FALLIBLE density_check(const uint8_t *named, struct bytes words, uint64_t first,
                              uint64_t count, unsigned m, const char *name) {
    for (uint64_t i = 0; i < count; i++) {
        bool is_named = named[first + i] >> m & 1;
        REQUIRE(is_named == bit_of(words.ptr, i), E_RANGE,
                "%s: variable %" PRIu64 " %s in %c, but its density says otherwise; the file is "
                "damaged: " EXTRACT_AGAIN,
                name, first + i, is_named ? "occurs" : "does not occur", matrix_names[m]);
    }
    return OK;
}

static FALLIBLE densities_check(const struct pce *p, struct reader *r, const char *name) {
    AUTO(mem_free_ptr) uint8_t *named = NULL;
    struct bytes a_aux, b_inputs, b_aux;
    uint64_t inputs = p->inputs_count, aux = p->aux_count;
    TRY(density_read(&a_aux, r, aux, "words of a's density of aux", name));
    TRY(density_read(&b_inputs, r, inputs, "words of b's density of inputs", name));
    TRY(density_read(&b_aux, r, aux, "words of b's density of aux", name));
    REQUIRE(reader_left(r) == 0, E_FORMAT,
            "%s: %zu bytes follow the densities; the file is damaged: " EXTRACT_AGAIN, name,
            reader_left(r));
    TRY(mem_new(&named, (size_t)(inputs + aux), 1));
    for (unsigned m = 0; m < MATRICES; m++) {
        const struct pce_matrix *x = &p->matrix[m];
        for (size_t i = 0; i < x->columns.len / 4; i++) {
            struct scalar value;
            memcpy(&value, x->values.ptr + SCALAR_BYTES * i, sizeof value);
            if (!scalar_is_zero(&value)) {
                named[load_u32le(x->columns.ptr + 4 * i)] |= (uint8_t)(1u << m);
            }
        }
    }
    TRY(density_check(named, a_aux, inputs, aux, 0, name));
    TRY(density_check(named, b_inputs, 0, inputs, 1, name));
    return density_check(named, b_aux, inputs, aux, 1, name);
}

/* --- The file --- */

/* Are the last rows those of the inputs? */
static bool has_input_rows(const struct pce *p) {
    struct scalar one = {{1}};
    if (p->constraints_count < p->inputs_count) {
        return false;
    }
    for (uint32_t i = 0; i < p->inputs_count; i++) {
        uint32_t row = p->constraints_count - p->inputs_count + i, wire;
        struct pce_terms a = pce_row(p, 0, row), b = pce_row(p, 1, row);
        struct scalar value;
        if (a.end != a.from + 1 || b.end != b.from) {
            return false;
        }
        pce_term(&wire, &value, p, 0, a.from);
        if (wire != i || memcmp(&value, &one, sizeof one) != 0) {
            return false;
        }
    }
    return true;
}

static FALLIBLE head_read(struct pce *p, uint64_t *terms_count, struct reader *r,
                          const char *name) {
    struct bytes magic;
    uint32_t version, reserved;
    REQUIRE(reader_left(r) >= HEAD_BYTES, E_FORMAT,
            "%s: the file has %zu bytes, its head alone takes %d; " EXTRACT_AGAIN, name,
            reader_left(r), HEAD_BYTES);
    TRY(read_span(&magic, r, 4));
    REQUIRE(pce_is(magic), E_FORMAT, "%s: the file does not begin with PCE and 2", name);
    TRY(read_u32le(&version, r));
    REQUIRE(version == PCE_VERSION, E_FORMAT,
            "%s: version %" PRIu32 ", this program reads %d; " EXTRACT_AGAIN, name, version,
            PCE_VERSION);
    TRY(read_u32le(&p->inputs_count, r));
    TRY(read_u32le(&p->aux_count, r));
    TRY(read_u32le(&p->constraints_count, r));
    TRY(read_u64le(terms_count, r));
    TRY(read_u32le(&reserved, r));
    REQUIRE(p->inputs_count >= 1 && p->aux_count <= UINT32_MAX - p->inputs_count &&
                p->constraints_count < UINT32_MAX,
            E_RANGE,
            "%s: head: %" PRIu32 " inputs, %" PRIu32 " aux and %" PRIu32
            " constraints; even the smallest circuit has the constant as an input, and both sums "
            "stay below 2^32",
            name, p->inputs_count, p->aux_count, p->constraints_count);
    return OK;
}

FALLIBLE pce_from_bytes(struct pce *out, struct bytes file, const char *name) {
    struct pce p = {.curve = curve_by_id(CURVE_BLS12_381)};
    struct reader r = reader_of(file, "circuit");
    struct pce_matrix c;
    uint64_t stated = 0, terms = 0;
    TRY(head_read(&p, &stated, &r, name));
    p.curve->scalar_pow(&p.unmont, &(struct scalar){{2}}, 256);
    p.curve->scalar_inv(&p.unmont, &p.unmont);
    TRY(matrix_read(&p.matrix[0], &terms, &r, p.constraints_count, 0, name));
    TRY(matrix_read(&p.matrix[1], &terms, &r, p.constraints_count, 1, name));
    TRY(matrix_read(&c, &terms, &r, p.constraints_count, 2, name));
    REQUIRE(terms == stated, E_RANGE,
            "%s: head: %" PRIu64 " non-zeros, the matrices have %" PRIu64
            "; the file is damaged: " EXTRACT_AGAIN,
            name, stated, terms);
    TRY(matrix_check(&p, p.constraints_count, 0, name));
    TRY(matrix_check(&p, p.constraints_count, 1, name));
    TRY(densities_check(&p, &r, name));
    if (has_input_rows(&p)) {
        p.constraints_count -= p.inputs_count;
    }
    *out = p;
    return OK;
}

FALLIBLE pce_intact(const struct pce *p) {
    return guarded_intact(&p->file, EXTRACT_AGAIN);
}

FALLIBLE pce_open(struct pce *out, const char *path) {
    AUTO(guarded_close) struct guarded_map file = {0};
    struct pce p;
    TRY(guarded_open(&file, path));
    enum err e = pce_from_bytes(&p, file.map.bytes, file.map.path);
    TRY(guarded_intact(&file, EXTRACT_AGAIN));
    TRY(e);
    p.file = file;
    file = (struct guarded_map){0};
    *out = p;
    return OK;
}

void pce_close(struct pce *p) {
    guarded_close(&p->file);
    *p = (struct pce){0};
}

/* --- Terms --- */

/* The file was checked at opening; a start that has changed since is cut to what there is. */
struct pce_terms pce_row(const struct pce *p, unsigned matrix, uint32_t row) {
    const struct pce_matrix *m = &p->matrix[matrix];
    uint32_t count = (uint32_t)(m->columns.len / 4), from = start_at(m, row),
             end = start_at(m, row + 1);
    end = end < count ? end : count;
    return (struct pce_terms){from < end ? from : end, end};
}

void pce_term(uint32_t *wire, struct scalar *value, const struct pce *p, unsigned matrix,
              uint32_t idx) {
    const struct pce_matrix *m = &p->matrix[matrix];
    struct scalar stored;
    memcpy(&stored, m->values.ptr + SCALAR_BYTES * (size_t)idx, sizeof stored);
    p->curve->scalar_mul(value, &stored, &p->unmont);
    *wire = load_u32le(m->columns.ptr + 4 * (size_t)idx);
}
