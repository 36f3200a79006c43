/* Two passes over the constraints: count the terms and note who is named, then write them down as a .zkey would have them.
 * Points then find their wires by walking the marks: the k-th marked wire owns the k-th point.
 */
#include "node/groth16/import.h"

#include "node/base/mem.h"
#include "node/curve/encode.h"
#include "node/key/native.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum { CHUNK = 1 << 10, MATRICES = 2 };

struct import {
    const struct curve *curve;
    struct key *params;
    const struct r1cs *circuit;
    const char *name; /* of the params */
    uint64_t inputs, wires, domain, terms_count[MATRICES];
    uint8_t *named;                    /* owned: bit m: matrix m names the wire */
    uint8_t *terms;                    /* owned */
    uint8_t *points[KEY_POINTS_COUNT]; /* owned */
    uint32_t *owners;                  /* owned: places of the points being converted */
};

static void import_done(struct import *x) {
    mem_free(x->named);
    mem_free(x->terms);
    mem_free(x->owners);
    for (int k = 0; k < KEY_POINTS_COUNT; k++) {
        mem_free(x->points[k]);
    }
}

/* --- The circuit --- */

struct term_out {
    struct import *x;
    struct scalar r2;
    uint8_t *at; /* NULL: count and mark only */
};

static void take_term(struct term_out *o, uint32_t matrix, uint32_t row, uint32_t wire,
                      const struct scalar *value) {
    struct scalar value_r2;
    if (scalar_is_zero(value)) {
        return; /* names nobody */
    }
    if (!o->at) {
        o->x->terms_count[matrix]++;
        o->x->named[wire] |= (uint8_t)(1u << matrix);
        return;
    }
    o->x->curve->scalar_mul(&value_r2, value, &o->r2);
    store_u32le(o->at, matrix);
    store_u32le(o->at + 4, row);
    store_u32le(o->at + 8, wire);
    memcpy(o->at + 12, &value_r2, SCALAR_BYTES);
    o->at += KEY_TERM_BYTES;
}

/* The file was checked at opening; it is read through a reader all the same, as it may have changed since. */
static FALLIBLE take_terms(struct term_out *o) {
    const struct r1cs *c = o->x->circuit;
    struct reader r = reader_of(c->constraints, "section 2 (constraints)");
    for (uint32_t row = 0; row < c->constraints_count; row++) {
        for (uint32_t matrix = 0; matrix < 3; matrix++) {
            uint32_t count, wire;
            TRY(read_u32le(&count, &r));
            for (uint32_t i = 0; i < count; i++) {
                struct scalar value;
                TRY(read_u32le(&wire, &r));
                TRY(read_copy(&value, &r, sizeof value));
                REQUIRE(wire < o->x->wires, E_IO, "the circuit's file changed while it was read");
                if (matrix < MATRICES) {
                    take_term(o, matrix, row, wire, &value);
                }
            }
        }
    }
    for (uint64_t i = 0; i < o->x->inputs; i++) {
        take_term(o, 0, c->constraints_count + (uint32_t)i, (uint32_t)i, &(struct scalar){{1}});
    }
    return OK;
}

static FALLIBLE read_circuit(struct import *x) {
    struct term_out o = {.x = x};
    TRY(mem_new(&x->named, x->wires, 1));
    TRY(take_terms(&o));
    uint64_t terms = x->terms_count[0] + x->terms_count[1];
    TRY(mem_new_raw(&x->terms, terms, KEY_TERM_BYTES));
    x->curve->scalar_pow(&o.r2, &(struct scalar){{2}}, 512);
    o.at = x->terms;
    TRY(take_terms(&o));
    REQUIRE(o.at == x->terms + terms * KEY_TERM_BYTES, E_IO,
            "the circuit's file changed while it was read");
    return OK;
}

/* Is it the circuit of this key? Wires, domain, and who is named in A and in B. */
static FALLIBLE check_counts(const struct import *x) {
    const struct key_shape *s = key_shape(x->params);
    uint64_t named[MATRICES] = {0};
    for (uint64_t w = 0; w < x->wires; w++) {
        named[0] += x->named[w] & 1;
        named[1] += x->named[w] >> 1 & 1;
    }
    REQUIRE(named[0] == s->points_count[KEY_A] && named[1] == s->points_count[KEY_B1], E_RANGE,
            "%s: a has %" PRIu64 " points and b %" PRIu64
            ", but A and B of the circuit name %" PRIu64 " and %" PRIu64
            " wires; it is another circuit, or another build of it",
            x->name, s->points_count[KEY_A], s->points_count[KEY_B1], named[0], named[1]);
    return OK;
}

static FALLIBLE check_shape(const struct import *x) {
    const struct key_shape *s = key_shape(x->params);
    const struct r1cs *c = x->circuit;
    REQUIRE(s->format == KEY_FORMAT_BELLMAN, E_USAGE,
            "%s: this key has its circuit inside; --circuit is for bellman's .params", x->name);
    REQUIRE(c->curve == x->curve, E_CURVE, "curve mismatch: %s is for %s, its circuit for %s",
            x->name, x->curve->snarkjs_name, c->curve->snarkjs_name);
    uint64_t publics = (uint64_t)c->outputs_count + c->public_inputs_count;
    REQUIRE(c->wires_count == s->wires_count && publics == s->public_count, E_RANGE,
            "%s: a key of %" PRIu32 " wires and %" PRIu32 " public signals, a circuit of %" PRIu32
            " and %" PRIu64 "; it is another circuit, or another build of it",
            x->name, s->wires_count, s->public_count, c->wires_count, publics);
    REQUIRE(c->constraints_count + x->inputs <= x->domain &&
                (x->domain == 2 || c->constraints_count + x->inputs > x->domain / 2),
            E_RANGE,
            "%s: %" PRIu32 " constraints and %" PRIu64
            " inputs do not make the key's domain of %" PRIu64
            " rows; it is another circuit, or another build of it",
            x->name, c->constraints_count, x->inputs, x->domain);
    return OK;
}

/* --- Points --- */

struct convert {
    const struct import *x;
    struct bytes from; /* as in the file */
    uint8_t *to;
    enum point_group group;
    uint64_t count;
    atomic_flag failed;
    struct fault fault; /* [whoever set failed] */
};

static FALLIBLE convert_one(const struct convert *c, uint64_t i) {
    const struct curve *curve = c->x->curve;
    size_t bytes = curve_point_bytes(curve, c->group);
    struct bytes at = bytes_of(c->from.ptr + i * bytes, bytes);
    uint8_t *to = c->to + c->x->owners[i] * bytes;
    struct g1 p;
    struct g2 q;
    if (c->group == GROUP_G1) {
        TRY(bellman_g1_read(&p, curve, at, false, false));
        g1_store(to, curve, &p);
    } else {
        TRY(bellman_g2_read(&q, curve, at, false, false));
        g2_store(to, curve, &q);
    }
    return OK;
}

static void convert_chunk(void *ctx, size_t idx, unsigned worker) {
    struct convert *c = ctx;
    uint64_t from = (uint64_t)idx * CHUNK, end = from + CHUNK < c->count ? from + CHUNK : c->count;
    (void)worker;
    for (uint64_t i = from; i < end; i++) {
        enum err code = convert_one(c, i);
        if (code != OK) {
            if (!atomic_flag_test_and_set(&c->failed)) {
                c->fault = fault_of(code);
            }
            return;
        }
    }
}

/* Where the k-th point of a set goes. */
static void place_owners(struct import *x, enum key_points which) {
    uint64_t count = key_shape(x->params)->points_count[which], k = 0;
    unsigned log2 = key_shape(x->params)->domain_log2;
    if (which == KEY_L || which == KEY_H) {
        for (; k < count; k++) {
            x->owners[k] = (uint32_t)(which == KEY_H ? key_h_place(k, log2) : k);
        }
        return;
    }
    uint8_t mark = which == KEY_A ? 1 : 2;
    for (uint64_t w = 0; w < x->wires; w++) {
        if (x->named[w] & mark) {
            x->owners[k++] = (uint32_t)w;
        }
    }
    ASSERT(k == count); /* check_counts */
}

static FALLIBLE convert_points(struct import *x, enum key_points which, struct pool *pool) {
    const struct key_shape *s = key_shape(x->params);
    enum point_group group = key_points_group(which);
    bool zkey_layout = true;
    struct convert c = {.x = x,
                        .from = key_points_raw(&zkey_layout, x->params, which),
                        .group = group,
                        .count = s->points_count[which],
                        .failed = ATOMIC_FLAG_INIT};
    uint64_t places = which == KEY_H ? x->domain : which == KEY_L ? x->wires - x->inputs : x->wires;
    ASSERT(!zkey_layout);
    TRY(mem_new(&x->points[which], places, curve_point_bytes(x->curve, group)));
    c.to = x->points[which];
    place_owners(x, which);
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

FALLIBLE import_bellman(const char *path, struct key *params, const struct r1cs *circuit,
                        const struct sha256 *circuit_digest, struct pool *pool) {
    const struct key_shape *s = key_shape(params);
    AUTO(import_done)
    struct import x = {.curve = key_curve(params),
                       .params = params,
                       .circuit = circuit,
                       .name = key_path(params),
                       .inputs = (uint64_t)s->public_count + 1,
                       .wires = s->wires_count,
                       .domain = s->domain_size};
    TRY(check_shape(&x));
    TRY(read_circuit(&x));
    TRY(check_counts(&x));
    struct native_source source = {.curve = x.curve, .shape = *s, .vkey = key_vkey(params)};
    source.shape.h_reversed = true;
    source.shape.terms_count[0] = x.terms_count[0];
    source.shape.terms_count[1] = x.terms_count[1];
    source.terms = bytes_of(x.terms, (x.terms_count[0] + x.terms_count[1]) * KEY_TERM_BYTES);
    TRY(mem_new_raw(&x.owners, x.wires > x.domain ? x.wires : x.domain, sizeof *x.owners));
    for (int k = 0; k < KEY_POINTS_COUNT; k++) {
        enum key_points which = (enum key_points)k;
        TRY(convert_points(&x, which, pool));
        uint64_t places = k == KEY_H ? x.domain : k == KEY_L ? x.wires - x.inputs : x.wires;
        source.points[k] =
            bytes_of(x.points[k], places * curve_point_bytes(x.curve, key_points_group(which)));
    }
    TRY(name_of(&source.digest, params, circuit_digest));
    TRY(key_intact(params));
    return native_write_source(path, &source);
}
