/* One product and one addition a term, in the order in which the key has them. */
#include "tests/unit/groth16/evaluated.h"

#include "node/base/mem.h"
#include "node/key/rows.h"
#include "proto/evaluations.h"

#include <string.h>

struct work {
    const struct curve *curve;
    const struct witness *witness;
    struct scalar r2_inv;
    struct scalar *out[2];
    uint64_t rows_count;
};

static void add_term(struct work *x, unsigned matrix, uint32_t row, uint32_t wire,
                     const struct scalar *value_r2) {
    struct scalar t, value, *sum = &x->out[matrix][row];
    witness_get(&value, x->witness, wire);
    x->curve->scalar_mul(&t, value_r2, &x->r2_inv);
    x->curve->scalar_mul(&t, &t, &value);
    x->curve->scalar_add(sum, sum, &t);
    x->rows_count = row + UINT64_C(1) > x->rows_count ? row + UINT64_C(1) : x->rows_count;
}

static void add_rows(struct work *x, const struct key *key, unsigned matrix) {
    const struct rows *rows = key_rows(key, matrix);
    const uint8_t *dictionary = key_dictionary(key).ptr;
    for (uint32_t row = 0; row < rows->rows_count; row++) {
        for (uint32_t i = rows->start[row]; i < rows->start[row + 1]; i++) {
            struct scalar value_r2;
            memcpy(&value_r2, dictionary + SCALAR_BYTES * (size_t)rows->coefficients[i],
                   sizeof value_r2);
            add_term(x, matrix, row, rows->columns[i], &value_r2);
        }
    }
}

FALLIBLE evaluated_make(struct evaluated *out, const struct key *key, const struct witness *w) {
    AUTO(evaluated_free) struct evaluated e = {0};
    const struct key_shape *shape = key_shape(key);
    size_t terms = (size_t)(shape->terms_count[0] + shape->terms_count[1]);
    struct work x = {.curve = key_curve(key), .witness = w};
    REQUIRE(terms > 0, E_FORMAT, "%s holds no matrices", key_path(key));
    TRY(mem_new(&e.a, shape->domain_size, sizeof *e.a));
    TRY(mem_new(&e.b, shape->domain_size, sizeof *e.b));
    x.out[0] = e.a;
    x.out[1] = e.b;
    x.curve->scalar_pow(&x.r2_inv, &(struct scalar){{2}}, 512);
    x.curve->scalar_inv(&x.r2_inv, &x.r2_inv);
    if (shape->format == KEY_FORMAT_NATIVE) {
        add_rows(&x, key, 0);
        add_rows(&x, key, 1);
    } else {
        for (size_t i = 0; i < terms; i++) {
            struct key_term term = key_term_at(key_terms_raw(key), i);
            add_term(&x, term.matrix, term.row, term.wire, &term.value_r2);
        }
    }
    e.rows_count = x.rows_count;
    *out = e;
    e = (struct evaluated){0};
    return OK;
}

void evaluated_free(struct evaluated *e) {
    mem_free(e->a);
    mem_free(e->b);
    *e = (struct evaluated){0};
}

void evaluated_lend(struct witness *w, const struct evaluated *e) {
    w->a = (const uint8_t *)e->a;
    w->b = (const uint8_t *)e->b;
    w->rows_count = e->rows_count;
}

FALLIBLE evaluated_file(struct bytes_mut *out, const struct evaluated *e, const struct witness *w) {
    struct bytes_mut file = {.len = (size_t)evaluations_bytes(e->rows_count, w->count)};
    size_t rows_bytes = (size_t)e->rows_count * SCALAR_BYTES;
    TRY(mem_new_raw(&file.ptr, file.len, 1));
    evaluations_write_head(file.ptr, (enum evaluations_curve)w->curve->id, e->rows_count, w->count);
    uint8_t *at = file.ptr + EVALUATIONS_HEAD_BYTES;
    memcpy(at, e->a, rows_bytes);
    memcpy(at + rows_bytes, e->b, rows_bytes);
    memcpy(at + 2 * rows_bytes, w->values, (size_t)w->count * SCALAR_BYTES);
    *out = file;
    return OK;
}
