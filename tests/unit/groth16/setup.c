/* The circuit is a list of terms; the rest is handed to node/groth16/setup.h. */
#include "tests/unit/groth16/setup.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <string.h>

static const struct scalar one = {{1}};

void circuit_init(struct circuit *out, const struct curve *c, uint32_t wires_count,
                  uint32_t public_count) {
    *out = (struct circuit){.curve = c, .wires_count = wires_count, .public_count = public_count};
    CHECK_OK(mem_new(&out->witness, wires_count, sizeof *out->witness));
    out->witness[0] = one;
    CHECK_OK(mem_new(&out->coefficients, 2, sizeof *out->coefficients));
    out->coefficients[SETUP_ONE] = one;
    c->scalar_sub(&out->coefficients[SETUP_MINUS_ONE], &(struct scalar){{0}}, &one);
}

void circuit_done(struct circuit *k) {
    mem_free(k->terms);
    mem_free(k->coefficients);
    mem_free(k->witness);
    *k = (struct circuit){0};
}

uint32_t circuit_row(struct circuit *k) {
    return k->constraints_count++;
}

void circuit_term(struct circuit *k, unsigned matrix, uint32_t row, uint32_t wire, uint64_t value) {
    if (k->terms_count == k->terms_cap) {
        k->terms_cap = k->terms_cap ? 2 * k->terms_cap : 64;
        struct setup_term *grown = mem_grow(k->terms, k->terms_cap * sizeof *grown);
        CHECK(grown);
        k->terms = grown;
        struct scalar *more = mem_grow(k->coefficients, (2 + k->terms_cap) * sizeof *more);
        CHECK(more);
        k->coefficients = more;
    }
    uint32_t coefficient = 2 + (uint32_t)k->terms_count;
    k->coefficients[coefficient] = (struct scalar){{value}};
    k->terms[k->terms_count++] = (struct setup_term){matrix, row, wire, coefficient};
}

bool circuit_holds(const struct circuit *k) {
    const struct curve *c = k->curve;
    struct scalar *sums =
        mem_zero_alloc(LC_COUNT * ((size_t)k->constraints_count + 1), sizeof *sums);
    CHECK(sums);
    for (size_t i = 0; i < k->terms_count; i++) {
        struct scalar t, *sum = &sums[k->terms[i].row * LC_COUNT + k->terms[i].matrix];
        c->scalar_mul(&t, &k->coefficients[k->terms[i].coefficient], &k->witness[k->terms[i].wire]);
        c->scalar_add(sum, sum, &t);
    }
    bool holds = true;
    for (size_t row = 0; row < k->constraints_count; row++) {
        struct scalar product;
        c->scalar_mul(&product, &sums[row * LC_COUNT + LC_A], &sums[row * LC_COUNT + LC_B]);
        holds = holds && !memcmp(&product, &sums[row * LC_COUNT + LC_C], sizeof product);
    }
    mem_free(sums);
    return holds;
}

void circuit_chain(struct circuit *out, const struct curve *c, uint32_t constraints,
                   uint32_t publics, uint64_t seed) {
    uint32_t wires = constraints + 2;
    circuit_init(out, c, wires, publics);
    /* With a public end: wire 1 is the end, 2 the seed, then the steps. Without: 1 the seed, then all steps. */
    uint32_t at = 1 + publics;
    out->witness[at] = (struct scalar){{seed}};
    for (uint32_t i = 0; i < constraints; i++) {
        uint32_t to = publics && i + 1 == constraints ? 1 : 2 + publics + i;
        uint32_t row = circuit_row(out);
        circuit_term(out, LC_A, row, at, 1);
        circuit_term(out, LC_B, row, at, 1);
        circuit_term(out, LC_C, row, to, 1);
        c->scalar_mul(&out->witness[to], &out->witness[at], &out->witness[at]);
        at = to;
    }
}

static void each_term(void *ctx, struct setup_rows rows, setup_term_sink *sink, void *sink_ctx) {
    const struct circuit *k = ctx;
    for (size_t i = 0; i < k->terms_count; i++) {
        if (k->terms[i].row - rows.from < rows.count) {
            sink(sink_ctx, &k->terms[i]);
        }
    }
}

static enum err multiply(void *ctx, uint8_t *out, enum point_group group,
                         const struct scalar *scalars, size_t count) {
    const struct curve *c = ctx;
    for (size_t i = 0; i < count; i++) {
        struct g1 p;
        struct g2 q;
        if (group == GROUP_G1) {
            c->g1_mul(&p, &c->g1_generator, &scalars[i]);
            g1_store(out + i * c->g1_bytes, c, &p);
        } else {
            c->g2_mul(&q, &c->g2_generator, &scalars[i]);
            g2_store(out + i * c->g2_bytes, c, &q);
        }
    }
    return OK;
}

static enum err collect(void *ctx, struct bytes piece) {
    struct file_bytes *f = ctx;
    uint8_t *grown = mem_grow(f->ptr, f->len + piece.len);
    CHECK(grown);
    memcpy(grown + f->len, piece.ptr, piece.len);
    *f = (struct file_bytes){grown, f->len + piece.len};
    return OK;
}

void circuit_setup(struct file_bytes *out, const struct circuit *k, struct rng *rng) {
    AUTO(pool_close) struct pool *pool = NULL;
    CHECK_OK(pool_open(&pool, 1));
    const struct setup_circuit circuit = {.curve = k->curve,
                                          .wires_count = k->wires_count,
                                          .public_count = k->public_count,
                                          .constraints_count = k->constraints_count,
                                          .coefficients = k->coefficients,
                                          .coefficients_count = 2 + (uint32_t)k->terms_count,
                                          .each_term = each_term,
                                          .ctx = (void *)(uintptr_t)k};
    const struct setup_multiplier multiplier = {multiply, (void *)(uintptr_t)k->curve};
    const struct setup_options options = {.multiplier = &multiplier, .pool = pool, .rng = rng};
    *out = (struct file_bytes){0};
    CHECK_OK(setup_write_zkey(collect, out, &circuit, &options));
}

void circuit_wtns(struct file_bytes *out, const struct circuit *k) {
    *out = (struct file_bytes){0};
    CHECK_OK(setup_write_wtns(collect, out, k->curve, k->witness, k->wires_count));
}
