/* Two passes over the constraints: count the terms and note who is named, which says how large the key is; then, with the key's file
 * mapped, put rows, columns and coefficients where they belong, row by row as the circuit's file has them. Points find their
 * wires by walking the marks: the k-th marked wire owns the k-th point, and a count before each CHUNK of wires lets threads
 * walk apart.
 */
#include "node/groth16/import.h"

#include "node/base/mem.h"
#include "node/curve/encode.h"
#include "node/key/native.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum {
    CHUNK = 1 << 10,
    MATRICES = 2,
    SEEN = 64 /* values whose place in the dictionary is at hand */
};
#define CHANGED "the circuit's file changed while it was read"

struct import {
    const struct curve *curve;
    struct key *params;
    const struct circuit *circuit;
    const char *name; /* of the params */
    uint64_t inputs, wires;
    struct native_counts counts;
    uint8_t *named;            /* owned: bit m: matrix m names the wire */
    uint32_t *ranks[MATRICES]; /* owned: wires before each chunk that it names */
    struct rows_dictionary dictionary;
    struct native_image image; /* of the second pass */
};

static void import_done(struct import *x) {
    mem_free(x->named);
    mem_free(x->ranks[0]);
    mem_free(x->ranks[1]);
    rows_dictionary_close(&x->dictionary);
}

/* --- The circuit --- */

struct walk {
    struct import *x;
    struct scalar r2;
    uint64_t terms_count[MATRICES], long_count[MATRICES], row_begins[MATRICES];
    struct {
        bool known;
        struct scalar value;
        uint32_t idx;
    } seen[SEEN];
    bool filling; /* else count and mark only */
};

static FALLIBLE coefficient_of(uint32_t *idx, struct walk *o, const struct scalar *value) {
    unsigned slot = (unsigned)((value->w[0] ^ value->w[0] >> 7) % SEEN);
    if (!o->seen[slot].known || memcmp(&o->seen[slot].value, value, sizeof *value) != 0) {
        struct scalar value_r2;
        o->x->curve->scalar_mul(&value_r2, value, &o->r2);
        TRY(rows_dictionary_find(&o->seen[slot].idx, &o->x->dictionary, &value_r2));
        o->seen[slot].value = *value;
        o->seen[slot].known = true;
    }
    *idx = o->seen[slot].idx;
    return OK;
}

static FALLIBLE take_term(struct walk *o, uint32_t matrix, uint32_t wire,
                          const struct scalar *value) {
    uint32_t idx;
    struct import *x = o->x;
    if (scalar_is_zero(value)) {
        return OK; /* names nobody */
    }
    TRY(coefficient_of(&idx, o, value));
    uint64_t at = o->terms_count[matrix]++;
    if (!o->filling) {
        x->named[wire] |= (uint8_t)(1u << matrix);
        return OK;
    }
    REQUIRE(at < x->counts.shape.terms_count[matrix], E_IO, CHANGED);
    x->image.columns[matrix][at] = wire;
    x->image.coefficients[matrix][at] = idx;
    return OK;
}

static FALLIBLE end_row(struct walk *o, uint32_t row) {
    for (unsigned m = 0; m < MATRICES; m++) {
        uint64_t terms = o->terms_count[m] - o->row_begins[m];
        if (o->filling) {
            o->x->image.start[m][row + 1] = (uint32_t)o->terms_count[m];
        }
        if (terms > ROWS_LONG) {
            REQUIRE(!o->filling || o->long_count[m] < o->x->counts.long_count[m], E_IO, CHANGED);
            if (o->filling) {
                o->x->image.long_rows[m][o->long_count[m]] = row;
            }
            o->long_count[m]++;
        }
        o->row_begins[m] = o->terms_count[m];
    }
    return OK;
}

static enum err on_term(void *ctx, uint32_t matrix, uint32_t wire, const struct scalar *value) {
    return take_term(ctx, matrix, wire, value);
}

static enum err on_row_end(void *ctx, uint32_t row) {
    return end_row(ctx, row);
}

/* The constraints, the rows of the inputs, and the empty ones behind them. */
static FALLIBLE walk_rows(struct walk *o) {
    const struct circuit_sink sink = {on_term, on_row_end, o};
    uint32_t row = o->x->circuit->constraints_count;
    TRY(circuit_walk(o->x->circuit, &sink));
    for (uint32_t i = 0; i < o->x->inputs; i++, row++) {
        TRY(take_term(o, 0, i, &(struct scalar){{1}}));
        TRY(end_row(o, row));
    }
    for (; row < o->x->counts.shape.domain_size; row++) {
        TRY(end_row(o, row));
    }
    return OK;
}

static FALLIBLE measure_circuit(struct import *x) {
    struct walk o = {.x = x};
    TRY(mem_new(&x->named, x->wires, 1));
    TRY(rows_dictionary_open(&x->dictionary, x->curve, ROWS_DICTIONARY_MAX));
    x->curve->scalar_pow(&o.r2, &(struct scalar){{2}}, 512);
    TRY(walk_rows(&o));
    for (unsigned m = 0; m < MATRICES; m++) {
        REQUIRE(o.terms_count[m] < UINT32_MAX, E_RANGE,
                "a matrix of %" PRIu64 " terms, at most 2^32 - 2 are supported", o.terms_count[m]);
        x->counts.shape.terms_count[m] = o.terms_count[m];
        x->counts.long_count[m] = o.long_count[m];
    }
    x->counts.dictionary_count = x->dictionary.count;
    return OK;
}

static FALLIBLE fill_rows(struct import *x) {
    struct walk o = {.x = x, .filling = true};
    x->curve->scalar_pow(&o.r2, &(struct scalar){{2}}, 512);
    TRY(walk_rows(&o));
    for (unsigned m = 0; m < MATRICES; m++) {
        REQUIRE(o.terms_count[m] == x->counts.shape.terms_count[m] &&
                    o.long_count[m] == x->counts.long_count[m] &&
                    x->dictionary.count == x->counts.dictionary_count,
                E_IO, CHANGED);
    }
    memcpy(x->image.dictionary, x->dictionary.values_r2, x->dictionary.count * SCALAR_BYTES);
    return OK;
}

/* Counts before each chunk of wires. */
static FALLIBLE rank_wires(uint64_t named[MATRICES], struct import *x) {
    for (unsigned m = 0; m < MATRICES; m++) {
        uint32_t count = 0;
        TRY(mem_new_raw(&x->ranks[m], x->wires / CHUNK + 1, sizeof *x->ranks[m]));
        for (uint64_t w = 0; w < x->wires; w++) {
            if (w % CHUNK == 0) {
                x->ranks[m][w / CHUNK] = count;
            }
            count += x->named[w] >> m & 1;
        }
        named[m] = count;
    }
    return OK;
}

/* Is it the circuit of this key? Wires, domain, and who is named in A and in B. */
static FALLIBLE check_counts(struct import *x) {
    const struct key_shape *s = key_shape(x->params);
    uint64_t named[MATRICES];
    TRY(rank_wires(named, x));
    REQUIRE(named[0] == s->points_count[KEY_A] && named[1] == s->points_count[KEY_B1], E_RANGE,
            "%s: a has %" PRIu64 " points and b %" PRIu64
            ", but A and B of the circuit name %" PRIu64 " and %" PRIu64
            " wires; it is another circuit, or another build of it",
            x->name, s->points_count[KEY_A], s->points_count[KEY_B1], named[0], named[1]);
    return OK;
}

static FALLIBLE check_shape(const struct import *x) {
    const struct key_shape *s = key_shape(x->params);
    const struct circuit *c = x->circuit;
    uint64_t domain = s->domain_size;
    REQUIRE(s->format == KEY_FORMAT_BELLMAN, E_USAGE,
            "%s: this key has its circuit inside; --circuit is for bellman's .params", x->name);
    REQUIRE(c->curve == x->curve, E_CURVE, "curve mismatch: %s is for %s, its circuit for %s",
            x->name, x->curve->snarkjs_name, c->curve->snarkjs_name);
    REQUIRE(c->wires_count == s->wires_count && c->public_count == s->public_count, E_RANGE,
            "%s: a key of %" PRIu32 " wires and %" PRIu32 " public signals, a circuit of %" PRIu32
            " and %" PRIu32 "; it is another circuit, or another build of it",
            x->name, s->wires_count, s->public_count, c->wires_count, c->public_count);
    REQUIRE(c->constraints_count + x->inputs <= domain &&
                (domain == 2 || c->constraints_count + x->inputs > domain / 2),
            E_RANGE,
            "%s: %" PRIu32 " constraints and %" PRIu64
            " inputs do not make the key's domain of %" PRIu64
            " rows; it is another circuit, or another build of it",
            x->name, c->constraints_count, x->inputs, domain);
    return OK;
}

/* --- Points --- */

struct convert {
    const struct import *x;
    enum key_points which;
    enum point_group group;
    struct bytes from; /* as in the file */
    uint8_t *to;
    uint64_t count; /* of wires, or of points where each has its place */
    atomic_flag failed;
    struct fault fault; /* [whoever set failed] */
};

static FALLIBLE convert_one(const struct convert *c, uint64_t from, uint64_t to) {
    const struct curve *curve = c->x->curve;
    size_t bytes = curve_point_bytes(curve, c->group);
    struct bytes at = bytes_of(c->from.ptr + from * bytes, bytes);
    struct g1 p;
    struct g2 q;
    enum err code = c->group == GROUP_G1 ? bellman_g1_read(&p, curve, at, false, false)
                                         : bellman_g2_read(&q, curve, at, false, false);
    if (code != OK) {
        return err_prefix(code,
                          "point %" PRIu64 " at byte %" PRIu64
                          " of it; the file is damaged, fetch it again",
                          from, from * bytes);
    }
    if (c->group == GROUP_G1) {
        g1_store(c->to + to * bytes, curve, &p);
    } else {
        g2_store(c->to + to * bytes, curve, &q);
    }
    return OK;
}

static FALLIBLE convert_range(const struct convert *c, uint64_t from, uint64_t end) {
    if (c->which == KEY_L || c->which == KEY_H) {
        for (uint64_t k = from; k < end; k++) {
            unsigned log2 = c->x->counts.shape.domain_log2;
            TRY(convert_one(c, k, c->which == KEY_H ? key_h_place(k, log2) : k));
        }
        return OK;
    }
    unsigned matrix = c->which == KEY_A ? 0 : 1;
    uint64_t k = c->x->ranks[matrix][from / CHUNK];
    for (uint64_t w = from; w < end; w++) {
        if (c->x->named[w] >> matrix & 1) {
            TRY(convert_one(c, k++, w));
        }
    }
    return OK;
}

static void convert_chunk(void *ctx, size_t idx, unsigned worker) {
    struct convert *c = ctx;
    uint64_t from = (uint64_t)idx * CHUNK, end = from + CHUNK < c->count ? from + CHUNK : c->count;
    (void)worker;
    enum err code = convert_range(c, from, end);
    if (code != OK && !atomic_flag_test_and_set(&c->failed)) {
        c->fault = fault_of(code);
    }
}

/* Places that bellman left out stay zero, which is infinity. */
static FALLIBLE convert_points(struct import *x, enum key_points which, struct pool *pool) {
    const struct key_shape *s = key_shape(x->params);
    bool zkey_layout = true, by_wire = which != KEY_L && which != KEY_H;
    struct convert c = {.x = x,
                        .which = which,
                        .group = key_points_group(which),
                        .from = key_points_raw(&zkey_layout, x->params, which),
                        .to = x->image.points[which].ptr,
                        .count = by_wire ? x->wires : s->points_count[which],
                        .failed = ATOMIC_FLAG_INIT};
    ASSERT(!zkey_layout);
    pool_for(pool, (size_t)((c.count + CHUNK - 1) / CHUNK), convert_chunk, &c);
    if (c.fault.code != OK) {
        enum err code = fault_raise(&c.fault);
        return err_prefix(code, "%s: %s", x->name, key_points_title(s->format, which));
    }
    return OK;
}

/* --- The whole --- */

static FALLIBLE name_of(struct sha256 *out, struct key *params,
                        const struct sha256 *circuit_digest) {
    struct sha256 both[2];
    TRY(key_digest(&both[0], params));
    both[1] = *circuit_digest;
    return sha256_of(out, bytes_of(both, sizeof both));
}

static FALLIBLE fill(struct import *x, struct bytes_mut bytes, const struct sha256 *circuit_digest,
                     struct pool *pool) {
    struct sha256 name;
    native_image_init(&x->image, &x->counts, bytes);
    TRY(fill_rows(x));
    for (int k = 0; k < KEY_POINTS_COUNT; k++) {
        TRY(convert_points(x, (enum key_points)k, pool));
    }
    TRY(name_of(&name, x->params, circuit_digest));
    TRY(key_intact(x->params));
    return native_image_seal(&x->image, key_vkey(x->params), &name, pool);
}

FALLIBLE import_bellman(const char *path, struct key *params, const struct circuit *circuit,
                        const struct sha256 *circuit_digest, struct pool *pool) {
    const struct key_shape *s = key_shape(params);
    AUTO(file_out_close) struct file_out *file = NULL;
    struct bytes_mut bytes;
    AUTO(import_done)
    struct import x = {.curve = key_curve(params),
                       .params = params,
                       .circuit = circuit,
                       .name = key_path(params),
                       .inputs = (uint64_t)s->public_count + 1,
                       .wires = s->wires_count,
                       .counts = {.curve = key_curve(params), .shape = *s}};
    x.counts.shape.h_reversed = true;
    TRY(check_shape(&x));
    TRY(measure_circuit(&x));
    TRY(check_counts(&x));
    TRY(file_out_open(&file, path));
    TRY(file_out_map(&bytes, file, native_bytes(&x.counts)));
    TRY(fill(&x, bytes, circuit_digest, pool));
    return file_out_commit(file);
}
