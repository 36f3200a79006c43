/* One row after the other: most coefficients are ±1, whose wires are added as plain integers and enter Montgomery form
 * together, one product a row; the others take a product each. A key's terms in a .zkey take a product each whatever they are.
 *
 * Cost: an addition a term of ±1, a product for each other one and for each row that has ±1; zero wires are skipped.
 */
#include "node/cpu/rows.h"
#include "node/cpu/tmpl.h"

#include <string.h>

static void row_times(fr *out, const struct rows_product *p, size_t row) {
    fr plain = fr_zero, others = fr_zero, t;
    for (uint32_t i = p->rows->start[row]; i < p->rows->start[row + 1]; i++) {
        fr x;
        uint32_t coefficient = p->rows->coefficients[i];
        memcpy(&x, p->witness + (size_t)SCALAR_BYTES * p->rows->columns[i], sizeof x);
        if (fr_is_zero(&x)) {
            continue;
        }
        if (coefficient == ROWS_ONE) {
            fr_add(&plain, &plain, &x);
        } else if (coefficient == ROWS_MINUS_ONE) {
            fr_sub(&plain, &plain, &x);
        } else {
            memcpy(&t, p->dictionary + (size_t)SCALAR_BYTES * coefficient, sizeof t);
            fr_mul(&t, &t, &x);
            fr_add(&others, &others, &t);
        }
    }
    if (!fr_is_zero(&plain)) {
        fr_mul(&t, &plain, &fr_r2);
        fr_add(&others, &others, &t);
    }
    *out = others;
}

static void multiply(const struct rows_product *p, size_t from, size_t to) {
    fr *out = (fr *)(void *)p->out;
    for (size_t row = from; row < to; row++) {
        row_times(&out[row], p, row);
    }
}

static void enter(const struct rows_given *g, size_t from, size_t to) {
    fr *out = (fr *)(void *)g->out;
    for (size_t row = from; row < to; row++) {
        fr x = fr_zero;
        if (row < g->count) {
            memcpy(&x, g->values + SCALAR_BYTES * row, sizeof x);
        }
        if (!fr_is_zero(&x)) {
            fr_mul(&x, &x, &fr_r2);
        }
        out[row] = x;
    }
}

extern const struct rows_ops CPU_FN(rows_ops);
const struct rows_ops CPU_FN(rows_ops) = {.multiply = multiply, .enter = enter};
