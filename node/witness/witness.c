/* Witness files as circom's witness calculators write them, version 2.
 *
 *     section 1   u32 32, prime r (32 bytes), u32 number of values          40 bytes
 *     section 2   the values, canonical little-endian, 32 bytes each        values·32 bytes
 *
 * Nothing in the format keeps a value below r, and peers take what comes: the proof then carries a public signal that
 * verifiers refuse, or that is a second spelling of another. So each value is compared once, by its highest limb in
 * blocks without branches (exact comparison only where that limb is not below r's, one value in 2^60 on honest input):
 * the pass runs at the speed of memory.
 */
#include "node/witness/witness.h"

#include "node/base/mem.h"
#include "node/key/sections.h"

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

static FALLIBLE values_check(const struct witness *w, const char *name, const char *place) {
    enum { BLOCK = 4096 };
    const struct curve *c = w->curve;
    for (uint64_t from = 0; from < w->count; from += BLOCK) {
        size_t block = w->count - from < BLOCK ? w->count - from : BLOCK;
        if (!values_suspicion(w->values + 32 * from, block, c->r.w[3])) {
            continue;
        }
        for (uint64_t i = from; i < from + block; i++) {
            struct scalar value;
            witness_get(&value, w, i);
            REQUIRE(scalar_is_valid(c, &value), E_RANGE,
                    "%s: %svalue %" PRIu64 " of %" PRIu64
                    " is not canonical: it is not below the scalar prime r of %s; make the witness "
                    "again",
                    name, place, i, w->count, c->snarkjs_name);
        }
    }
    static const uint8_t one[32] = {1};
    REQUIRE(memcmp(w->values, one, sizeof one) == 0, E_RANGE,
            "%s: %svalue 0 is not 1, the constant that every witness starts with; make the witness "
            "again",
            name, place);
    return OK;
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
    REQUIRE(kind != FILE_ZKEY, E_FORMAT,
            "%s: this is a proving key (.zkey), not a witness; the key comes first, then the "
            "witness",
            name);
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
    TRY(values_check(&w, name, "section 2: "));
    *out = w;
    return OK;
}

FALLIBLE witness_over_values(struct witness *out, const struct curve *c, const uint8_t *values,
                             uint64_t count, const char *name) {
    REQUIRE(count >= 1, E_RANGE, "%s: a witness of 0 values; even the smallest has the constant 1",
            name);
    struct witness w = {.curve = c, .count = count, .values = values};
    TRY(values_check(&w, name, ""));
    *out = w;
    return OK;
}

FALLIBLE witness_from_values(struct witness *out, const struct curve *c, uint8_t *values,
                             uint64_t count, const char *name) {
    TRY(witness_over_values(out, c, values, count, name));
    out->owned = values;
    out->owned_bytes = (size_t)count * SCALAR_BYTES;
    return OK;
}

FALLIBLE witness_from_first(struct witness *out, const struct curve *c, uint8_t *first,
                            size_t first_count, uint64_t count, const char *name) {
    struct witness w = {.curve = c, .count = first_count, .values = first};
    ASSERT(first_count >= 1 && first_count <= count);
    TRY(values_check(&w, name, ""));
    w.count = count;
    w.owned = first;
    w.owned_bytes = first_count * SCALAR_BYTES;
    *out = w;
    return OK;
}

static FALLIBLE intact(const struct mapping_guard *guard, const char *path) {
    REQUIRE(!guard_is_torn(guard), E_IO,
            "%s: the file became shorter while it was in use; make the witness again", path);
    return OK;
}

FALLIBLE witness_intact(const struct witness *w) {
    return intact(&w->guard, w->map.path);
}

static FALLIBLE open_mapped(struct witness *w, const struct file_map *map,
                            const struct mapping_guard *guard) {
    enum err e = witness_from_wtns_bytes(w, map->bytes, map->path);
    TRY(intact(guard, map->path)); /* first: zeros in place of lost pages explain any other error */
    return e;
}

FALLIBLE witness_open(struct witness *out, const char *path) {
    struct file_map map;
    TRY(file_map_open(&map, path));
    struct mapping_guard guard = {0};
    if (!map.heap) {
        guard = guard_open(map.base, map.bytes.len);
        mapping_advise(map.bytes, MADV_WILLNEED);
    }
    struct witness w;
    enum err e = open_mapped(&w, &map, &guard);
    if (e != OK) {
        guard_close(&guard);
        file_map_close(&map);
        return e;
    }
    w.map = map;
    w.guard = guard;
    *out = w;
    return OK;
}

FALLIBLE witness_fits(const struct witness *w, const struct key_shape *shape,
                      const char *key_name) {
    const char *name = w->map.path ? w->map.path : "witness";
    const struct curve *key_curve = curve_by_id(shape->curve);
    REQUIRE(w->curve->id == shape->curve, E_CURVE,
            "curve mismatch: %s is for %s, but %s is for %s; compile the circuit and make the key "
            "for one curve",
            name, w->curve->snarkjs_name, key_name, key_curve->snarkjs_name);
    REQUIRE(w->count == shape->wires_count, E_RANGE,
            "%s has %" PRIu64 " values, but the circuit of %s has %" PRIu32
            " wires: it is a witness of another circuit, or of another build of this one",
            name, w->count, key_name, shape->wires_count);
    return OK;
}

void witness_close(struct witness *w) {
    if (w->owned) {
        mem_wipe(w->owned, w->owned_bytes);
        mem_free(w->owned);
    }
    guard_close(&w->guard);
    if (w->map.base) {
        if (w->map.heap) {
            mem_wipe(w->map.base, w->map.bytes.len);
        }
        file_map_close(&w->map);
    }
    *w = (struct witness){0};
}
