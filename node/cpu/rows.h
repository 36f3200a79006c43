/* a = A·w, b = B·w for keys in the native layout: by rows, coefficients through a dictionary. And a, b that came with the job,
 * into the form that such products have.
 *
 * Threads  any number at once, for different rows.
 */
#pragma once
#include "node/cpu/ops.h"
#include "node/key/rows.h"

struct rows_product {
    const struct rows *rows;
    const uint8_t *dictionary; /* 32 bytes an entry, times R² */
    const uint8_t *witness;    /* 32 bytes a wire, plain */
    uint64_t *out;             /* rows_count fr, Montgomery */
};
struct rows_given {
    const uint8_t *values; /* 32 bytes a row, plain; rows from `count` on are 0 */
    uint64_t count;
    uint64_t *out; /* fr, Montgomery */
};
/* Compiled once per (curve, tier): rows_tmpl.c. */
struct rows_ops {
    void (*multiply)(const struct rows_product *p, size_t from, size_t to);
    void (*enter)(const struct rows_given *g, size_t from, size_t to);
};
/* Rows [from, to) of both products: witness and rows as in `m`. */
void rows_multiply(const struct cpu_ops *ops, const struct key *key, const struct matrix *m,
                   size_t from, size_t to);
