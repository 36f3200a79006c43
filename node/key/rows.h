/* A sparse matrix by rows, its coefficients through a dictionary: the form in which backends multiply.
 *
 *     row r       columns[start[r] … start[r + 1]), and as many coefficients: indices into the dictionary
 *     dictionary  distinct coefficients times R²; entry 0 is +1, entry 1 is -1, which most of all terms are
 *     long rows   those of more than ROWS_LONG terms, rising: a device gives each a group of threads
 *
 * Threads  const once built.
 * Errors   E_RANGE for more different coefficients than the dictionary may hold, E_LIMIT without memory.
 */
#pragma once
#include "node/key/key.h"

enum { ROWS_LONG = 16, ROWS_ONE = 0, ROWS_MINUS_ONE = 1, ROWS_DICTIONARY_MAX = 1 << 20 };

struct rows {
    const uint32_t *start; /* rows_count + 1 */
    const uint32_t *columns, *coefficients;
    const uint32_t *long_rows;
    uint32_t rows_count, long_count;
};

/* --- Building --- */

struct rows_dictionary {
    const struct curve *curve;
    struct scalar *values_r2; /* owned */
    uint32_t *slots;          /* owned: index + 1 by hash, 0 free */
    size_t count, count_max, slots_mask;
};
FALLIBLE rows_dictionary_open(struct rows_dictionary *out, const struct curve *c,
                              uint64_t terms_count);
void rows_dictionary_close(struct rows_dictionary *d);
/* The entry that is `value_r2`, a new one if there was none. */
FALLIBLE rows_dictionary_find(uint32_t *idx, struct rows_dictionary *d,
                              const struct scalar *value_r2);

struct rows_built { /* all owned */
    uint32_t *start, *columns, *coefficients, *long_rows;
    uint32_t rows_count, long_count;
    uint64_t terms_count;
};
/* Matrix 0 or 1 of a shape's terms, KEY_TERM_BYTES each, in any order; d grows. */
FALLIBLE rows_build(struct rows_built *out, struct rows_dictionary *d, struct bytes terms,
                    const struct key_shape *shape, uint32_t matrix);
void rows_built_done(struct rows_built *r);
