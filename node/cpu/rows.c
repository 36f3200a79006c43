/* Both matrices of a key in one call. */
#include "node/cpu/rows.h"

void rows_multiply(const struct cpu_ops *ops, const struct key *key, const struct matrix *m,
                   size_t from, size_t to) {
    for (unsigned k = 0; k < 2; k++) {
        struct rows_product p = {.rows = key_rows(key, k),
                                 .dictionary = key_dictionary(key).ptr,
                                 .witness = m->witness,
                                 .out = m->rows[k]};
        ops->rows->multiply(&p, from, to);
    }
}
