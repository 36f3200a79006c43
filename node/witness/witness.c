/* Witness files as circom's witness calculators write them, version 2, and evaluations as proto/evaluations.h draws them.
 *
 *     section 1   u32 32, prime r (32 bytes), u32 number of values          40 bytes
 *     section 2   the values, canonical little-endian, 32 bytes each        values·32 bytes
 *
 * Nothing in either format keeps a value below r, and peers take what comes: the proof then carries a public signal that
 * verifiers refuse, or that is a second spelling of another. So each value is compared once, by its highest limb in
 * blocks without branches (exact comparison only where that limb is not below r's, one value in 2^60 on honest input):
 * the pass runs at the speed of memory.
 */
#include "node/witness/witness.h"

#include "node/base/mem.h"
#include "node/key/sections.h"
#include "proto/evaluations.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

enum { SEC_HEADER = 1, SEC_VALUES = 2, HEADER_BYTES = 4 + SCALAR_BYTES + 4 };

/* Non-zero if one of the values may not be below r. */
static uint64_t values_suspicion(const uint8_t *values, size_t count, uint64_t r_top) {
    uint64_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t top; /* little-endian, like the machine */
        memcpy(&top, values + 32 * i + 24, sizeof top);
        bad |= (uint64_t)(top >= r_top);
    }
    return bad;
}

/* `place` says where the values stand: "section 2: ". */
static FALLIBLE values_check(const struct curve *c, const uint8_t *values, uint64_t count,
                             const char *name, const char *place) {
    enum { BLOCK = 4096 };
    for (uint64_t from = 0; from < count; from += BLOCK) {
        size_t block = count - from < BLOCK ? count - from : BLOCK;
        if (!values_suspicion(values + 32 * from, block, c->r.w[3])) {
            continue;
        }
        for (uint64_t i = from; i < from + block; i++) {
            struct scalar value;
            memcpy(&value, values + 32 * i, sizeof value);
            REQUIRE(scalar_is_valid(c, &value), E_RANGE,
                    "%s: %svalue %" PRIu64 " of %" PRIu64
                    " is not canonical: it is not below the scalar prime r of %s; make the witness "
                    "again",
                    name, place, i, count, c->snarkjs_name);
        }
    }
    return OK;
}

static FALLIBLE assignment_check(const struct witness *w, const char *name, const char *place) {
    static const uint8_t one[32] = {1};
    TRY(values_check(w->curve, w->values, w->count, name, place));
    REQUIRE(memcmp(w->values, one, sizeof one) == 0, E_RANGE,
            "%s: %svalue 0 is not 1, the constant that every witness starts with; make the witness "
            "again",
            name, place);
    return OK;
}

static FALLIBLE evaluations_check(const struct witness *w, const char *name) {
    TRY(values_check(w->curve, w->a, w->rows_count, name, "a: "));
    return values_check(w->curve, w->b, w->rows_count, name, "b: ");
}

static FALLIBLE header_read(struct witness *w, const struct section_table *t) {
    struct bytes section;
    TRY(section_need(&section, t, SEC_HEADER, "header"));
    struct reader r = reader_of(section, "section 1 (header)");
    REQUIRE(section.len >= 4, E_FORMAT,
            "%s: section 1 (header) has %zu bytes, 40 are expected; make the witness again",
            t->name, section.len);
    uint32_t width, count;
    TRY(read_u32le(&width, &r));
    REQUIRE(width == SCALAR_BYTES, E_FORMAT,
            "%s: section 1: values of %" PRIu32
            " bytes; both known curves have values of 32: make the witness again, for bn128 or "
            "bls12381",
            t->name, width);
    REQUIRE(section.len == HEADER_BYTES, E_FORMAT,
            "%s: section 1 (header) has %zu bytes, 40 are expected; make the witness again",
            t->name, section.len);
    struct bytes prime;
    TRY(read_span(&prime, &r, SCALAR_BYTES));
    TRY(read_u32le(&count, &r));
    enum err e = curve_by_scalar_prime(&w->curve, prime);
    if (e != OK) {
        return err_prefix(e, "%s: section 1", t->name);
    }
    REQUIRE(count >= 1, E_FORMAT,
            "%s: section 1: a witness of 0 values; even the smallest has the constant 1: make it "
            "again",
            t->name);
    w->count = count;
    return OK;
}

FALLIBLE witness_from_wtns_bytes(struct witness *out, struct bytes wtns, const char *name) {
    struct section_table table;
    struct witness w = {0};
    enum file_kind kind = file_kind_of(wtns);
    REQUIRE(kind != FILE_ZKEY && kind != FILE_NATIVE, E_FORMAT,
            "%s: this is %s, not a witness; the key comes first, then the witness", name,
            file_kind_title(kind));
    REQUIRE(kind != FILE_JSON, E_FORMAT,
            "%s: this is JSON text, not a witness (.wtns): calculate the witness from it first "
            "(snarkjs wtns calculate, or the circuit's own witness generator)",
            name);
    TRY(section_table_read(&table, wtns, name, FILE_WTNS));
    TRY(header_read(&w, &table));
    struct section_size size = {w.count, SCALAR_BYTES, 0, "values"};
    struct bytes values;
    TRY(section_need_sized(&values, &table, SEC_VALUES, "values", size));
    w.values = values.ptr;
    TRY(assignment_check(&w, name, "section 2: "));
    *out = w;
    return OK;
}

FALLIBLE witness_over_values(struct witness *out, const struct curve *c, const uint8_t *values,
                             uint64_t count, const char *name) {
    REQUIRE(count >= 1, E_RANGE, "%s: a witness of 0 values; even the smallest has the constant 1",
            name);
    struct witness w = {.curve = c, .count = count, .values = values};
    TRY(assignment_check(&w, name, ""));
    *out = w;
    return OK;
}

void witness_own(struct witness *w, uint8_t *block, size_t block_bytes) {
    ASSERT(!w->owned && !w->file.map.base);
    w->owned = block;
    w->owned_bytes = block_bytes;
}

FALLIBLE witness_from_values(struct witness *out, const struct curve *c, uint8_t *values,
                             uint64_t count, const char *name) {
    TRY(witness_over_values(out, c, values, count, name));
    witness_own(out, values, (size_t)count * SCALAR_BYTES);
    return OK;
}

FALLIBLE witness_from_first(struct witness *out, const struct curve *c, uint8_t *first,
                            size_t first_count, uint64_t count, const char *name) {
    struct witness w = {.curve = c, .count = first_count, .values = first};
    ASSERT(first_count >= 1 && first_count <= count);
    TRY(assignment_check(&w, name, ""));
    w.count = count;
    w.owned = first;
    w.owned_bytes = first_count * SCALAR_BYTES;
    *out = w;
    return OK;
}

FALLIBLE witness_add_evaluations(struct witness *w, const uint8_t *a, const uint8_t *b,
                                 uint64_t rows_count, const char *name) {
    struct witness with = *w;
    ASSERT(!w->file.map.base && !w->a && rows_count >= 1);
    with.a = a;
    with.b = b;
    with.rows_count = rows_count;
    TRY(evaluations_check(&with, name));
    *w = with;
    return OK;
}

/* --- Evaluations --- */

#define EVALUATE_AGAIN "write the evaluations again"

static FALLIBLE evaluations_head_read(struct witness *w, struct bytes file, const char *name) {
    struct reader r = reader_of(file, "head");
    struct bytes magic, zero;
    uint32_t version, curve;
    REQUIRE(file.len >= EVALUATIONS_HEAD_BYTES, E_FORMAT,
            "%s: the file has %zu bytes, the head of evaluations alone has %d; " EVALUATE_AGAIN,
            name, file.len, EVALUATIONS_HEAD_BYTES);
    TRY(read_span(&magic, &r, 8));
    TRY(read_u32le(&version, &r));
    TRY(read_u32le(&curve, &r));
    TRY(read_u64le(&w->rows_count, &r));
    TRY(read_u64le(&w->count, &r));
    TRY(read_span(&zero, &r, EVALUATIONS_HEAD_BYTES - 32));
    REQUIRE(memcmp(magic.ptr, EVALUATIONS_MAGIC, 8) == 0, E_FORMAT,
            "%s: not evaluations: the file does not begin with " EVALUATIONS_MAGIC, name);
    REQUIRE(version == EVALUATIONS_VERSION, E_FORMAT,
            "%s: head: evaluations of version %" PRIu32 ", this program reads %d; " EVALUATE_AGAIN
            ", or update this program",
            name, version, EVALUATIONS_VERSION);
    REQUIRE(curve == EVALUATIONS_BN254 || curve == EVALUATIONS_BLS12_381, E_CURVE,
            "%s: head: curve %" PRIu32 "; 1 is BN254, 2 is BLS12-381: " EVALUATE_AGAIN, name,
            curve);
    w->curve = curve_by_id(curve == EVALUATIONS_BN254 ? CURVE_BN254 : CURVE_BLS12_381);
    for (size_t i = 0; i < zero.len; i++) {
        REQUIRE(zero.ptr[i] == 0, E_FORMAT,
                "%s: head: byte %zu is %u where version 1 has 0; " EVALUATE_AGAIN, name, 32 + i,
                zero.ptr[i]);
    }
    return OK;
}

FALLIBLE witness_from_evaluations_bytes(struct witness *out, struct bytes file, const char *name) {
    struct witness w = {0};
    TRY(evaluations_head_read(&w, file, name));
    REQUIRE(w.rows_count >= 1 && w.rows_count <= EVALUATIONS_ROWS_MAX, E_RANGE,
            "%s: head: %" PRIu64 " rows, 1 to 2^32 are possible; " EVALUATE_AGAIN, name,
            w.rows_count);
    REQUIRE(w.count >= 1 && w.count <= UINT32_MAX, E_RANGE,
            "%s: head: %" PRIu64 " wires, 1 to 2^32 - 1 are possible; " EVALUATE_AGAIN, name,
            w.count);
    uint64_t bytes = evaluations_bytes(w.rows_count, w.count), each = w.rows_count * SCALAR_BYTES;
    REQUIRE(file.len == bytes, E_FORMAT,
            "%s: the file has %zu bytes, %" PRIu64 " rows of a and b and %" PRIu64
            " wires make %" PRIu64 "; it is cut short or damaged: " EVALUATE_AGAIN,
            name, file.len, w.rows_count, w.count, bytes);
    w.a = file.ptr + EVALUATIONS_HEAD_BYTES;
    w.b = w.a + each;
    w.values = w.b + each;
    TRY(assignment_check(&w, name, "assignment: "));
    TRY(evaluations_check(&w, name));
    *out = w;
    return OK;
}

/* --- Files --- */

FALLIBLE witness_from_bytes(struct witness *out, struct bytes file, const char *name) {
    return file_kind_of(file) == FILE_EVALUATIONS ? witness_from_evaluations_bytes(out, file, name)
                                                  : witness_from_wtns_bytes(out, file, name);
}

#define MAKE_AGAIN "make the witness again"

FALLIBLE witness_intact(const struct witness *w) {
    return guarded_intact(&w->file, MAKE_AGAIN);
}

/* What standard input brought lies in memory of ours. */
static void close_file(struct guarded_map *file) {
    if (file->map.heap) {
        mem_wipe(file->map.base, file->map.bytes.len);
    }
    guarded_close(file);
}

FALLIBLE witness_open(struct witness *out, const char *path) {
    AUTO(close_file) struct guarded_map file = {0};
    struct witness w;
    TRY(guarded_open(&file, path));
    if (!file.map.heap) {
        mapping_advise(file.map.bytes, MADV_WILLNEED);
    }
    enum err e = witness_from_bytes(&w, file.map.bytes, file.map.path);
    TRY(guarded_intact(&file, MAKE_AGAIN));
    TRY(e);
    w.file = file;
    file = (struct guarded_map){0};
    *out = w;
    return OK;
}

/* Rows that another domain would hold are of another circuit. */
FALLIBLE evaluations_fit(uint64_t rows_count, const struct key_shape *shape, const char *name,
                         const char *key_name) {
    REQUIRE(shape->format != KEY_FORMAT_BELLMAN, E_USAGE,
            "%s: bellman parameters do not say which wire owns which point, and what a job says of "
            "it is not trusted; import them once with their circuit: bellows key import %s NATIVE "
            "--circuit FILE",
            key_name, key_name);
    REQUIRE(rows_count <= shape->domain_size &&
                (shape->domain_size <= 2 || rows_count > shape->domain_size / 2),
            E_RANGE,
            "%s: a and b have %" PRIu64 " rows, but the domain of %s has 2^%u: they are of another "
            "circuit, or lack the rows of the public inputs",
            name, rows_count, key_name, shape->domain_log2);
    return OK;
}

FALLIBLE witness_fits(const struct witness *w, const struct key_shape *shape,
                      const char *key_name) {
    const char *name = w->file.map.path ? w->file.map.path : "witness";
    const struct curve *key_curve = curve_by_id(shape->curve);
    REQUIRE(w->curve->id == shape->curve, E_CURVE,
            "curve mismatch: %s is for %s, but %s is for %s; compile the circuit and make the key "
            "for one curve",
            name, w->curve->snarkjs_name, key_name, key_curve->snarkjs_name);
    REQUIRE(w->count == shape->wires_count, E_RANGE,
            "%s has %" PRIu64 " values, but the circuit of %s has %" PRIu32
            " wires: it is a witness of another circuit, or of another build of this one",
            name, w->count, key_name, shape->wires_count);
    return w->a ? evaluations_fit(w->rows_count, shape, name, key_name) : OK;
}

const char *witness_title(const struct witness *w) {
    return w->a ? "witness with its a and b" : "witness";
}

void witness_close(struct witness *w) {
    if (w->owned) {
        mem_wipe(w->owned, w->owned_bytes);
        mem_free(w->owned);
    }
    close_file(&w->file);
    *w = (struct witness){0};
}
