/* Both files were checked at opening; they are read with their bounds in mind all the same, as they may have changed since. */
#include "node/witness/circuit.h"

#include <string.h>

#define CHANGED "the circuit's file changed while it was read"

static FALLIBLE is_pce_file(bool *out, const char *path) {
    AUTO(file_map_close) struct file_map map = {0};
    *out = false;
    if (strcmp(path, "-") != 0) {
        TRY(file_map_open(&map, path));
        *out = pce_is(map.bytes);
    }
    return OK;
}

FALLIBLE circuit_open(struct circuit *out, const char *path) {
    struct circuit c = {0};
    TRY(is_pce_file(&c.is_pce, path));
    if (c.is_pce) {
        TRY(pce_open(&c.pce, path));
        c.curve = c.pce.curve;
        c.wires_count = c.pce.inputs_count + c.pce.aux_count;
        c.public_count = c.pce.inputs_count - 1;
        c.constraints_count = c.pce.constraints_count;
        c.file = c.pce.file.map.bytes;
    } else {
        TRY(r1cs_open(&c.r1cs, path));
        c.curve = c.r1cs.curve;
        c.wires_count = c.r1cs.wires_count;
        c.public_count = c.r1cs.outputs_count + c.r1cs.public_inputs_count;
        c.constraints_count = c.r1cs.constraints_count;
        c.file = c.r1cs.file.map.bytes;
    }
    *out = c;
    return OK;
}

void circuit_close(struct circuit *c) {
    if (c->is_pce) {
        pce_close(&c->pce);
    } else {
        r1cs_close(&c->r1cs);
    }
    *c = (struct circuit){0};
}

static FALLIBLE walk_r1cs(const struct circuit *c, const struct circuit_sink *sink) {
    struct reader r = reader_of(c->r1cs.constraints, "section 2 (constraints)");
    for (uint32_t row = 0; row < c->constraints_count; row++) {
        for (uint32_t matrix = 0; matrix < 3; matrix++) {
            uint32_t count, wire;
            TRY(read_u32le(&count, &r));
            for (uint32_t i = 0; i < count; i++) {
                struct scalar value;
                TRY(read_u32le(&wire, &r));
                TRY(read_copy(&value, &r, sizeof value));
                REQUIRE(wire < c->wires_count, E_IO, CHANGED);
                if (matrix < 2) {
                    TRY(sink->term(sink->ctx, matrix, wire, &value));
                }
            }
        }
        TRY(sink->row_end(sink->ctx, row));
    }
    return OK;
}

static FALLIBLE walk_pce(const struct circuit *c, const struct circuit_sink *sink) {
    for (uint32_t row = 0; row < c->constraints_count; row++) {
        for (unsigned matrix = 0; matrix < 2; matrix++) {
            struct pce_terms terms = pce_row(&c->pce, matrix, row);
            for (uint32_t i = terms.from; i < terms.end; i++) {
                struct scalar value;
                uint32_t wire;
                pce_term(&wire, &value, &c->pce, matrix, i);
                REQUIRE(wire < c->wires_count, E_IO, CHANGED);
                TRY(sink->term(sink->ctx, matrix, wire, &value));
            }
        }
        TRY(sink->row_end(sink->ctx, row));
    }
    return pce_intact(&c->pce);
}

FALLIBLE circuit_walk(const struct circuit *c, const struct circuit_sink *sink) {
    return c->is_pce ? walk_pce(c, sink) : walk_r1cs(c, sink);
}
