/* Two passes over the terms: count them by row, then put each in its place. Distinct coefficients are found by hash; real circuits
 * have a handful (SHA-256) to some hundreds (RSA).
 */
#include "node/key/rows.h"

#include "node/base/mem.h"

#include <string.h>

FALLIBLE rows_dictionary_find(uint32_t *out, struct rows_dictionary *d,
                              const struct scalar *value_r2) {
    uint64_t hash = (value_r2->w[0] ^ value_r2->w[1] * 0x9e3779b97f4a7c15 ^ value_r2->w[2] << 1 ^
                     value_r2->w[3]) *
                    0xbf58476d1ce4e5b9;
    size_t at = (size_t)(hash >> 20) & d->slots_mask;
    for (; d->slots[at]; at = (at + 1) & d->slots_mask) {
        if (!memcmp(&d->values_r2[d->slots[at] - 1], value_r2, sizeof *value_r2)) {
            *out = d->slots[at] - 1;
            return OK;
        }
    }
    REQUIRE(d->count < d->count_max, E_RANGE,
            "the matrices have more than %zu different coefficients", d->count_max);
    d->values_r2[d->count] = *value_r2;
    d->slots[at] = (uint32_t)++d->count;
    *out = (uint32_t)(d->count - 1);
    return OK;
}

FALLIBLE rows_dictionary_open(struct rows_dictionary *out, const struct curve *c,
                              uint64_t terms_count) {
    AUTO(rows_dictionary_close) struct rows_dictionary d = {.curve = c, .slots_mask = 16};
    struct scalar one = {{1}}, minus_one, r2;
    uint32_t idx;
    d.count_max = terms_count + 2 < ROWS_DICTIONARY_MAX ? (size_t)terms_count + 2
                                                        : (size_t)ROWS_DICTIONARY_MAX;
    while (d.slots_mask < 2 * d.count_max) {
        d.slots_mask *= 2;
    }
    TRY(mem_new(&d.slots, d.slots_mask, sizeof *d.slots));
    d.slots_mask--;
    TRY(mem_new_raw(&d.values_r2, d.count_max, sizeof *d.values_r2));
    c->scalar_pow(&r2, &(struct scalar){{2}}, 512);
    c->scalar_sub(&minus_one, &(struct scalar){{0}}, &one);
    c->scalar_mul(&minus_one, &minus_one, &r2);
    TRY(rows_dictionary_find(&idx, &d, &r2));
    TRY(rows_dictionary_find(&idx, &d, &minus_one));
    *out = d;
    d.slots = NULL;
    d.values_r2 = NULL;
    return OK;
}

void rows_dictionary_close(struct rows_dictionary *d) {
    mem_free(d->slots);
    mem_free(d->values_r2);
    *d = (struct rows_dictionary){0};
}

void rows_built_done(struct rows_built *r) {
    mem_free(r->start);
    mem_free(r->columns);
    mem_free(r->coefficients);
    mem_free(r->long_rows);
    *r = (struct rows_built){0};
}

#define CHANGED                                                                                    \
    "the key's file was changed while its terms were read; never write over a key in place"

/* Rows were checked at opening; a file that is written over must not make us write elsewhere. */
static FALLIBLE check_term(const struct key_term *t, size_t rows) {
    REQUIRE(t->row < rows && t->matrix < 2, E_IO, CHANGED);
    return OK;
}

FALLIBLE rows_build(struct rows_built *out, struct rows_dictionary *d, struct bytes terms,
                    const struct key_shape *shape, uint32_t matrix) {
    AUTO(rows_built_done) struct rows_built r = {0};
    size_t all = terms.len / KEY_TERM_BYTES, rows = (size_t)shape->domain_size,
           mine = (size_t)shape->terms_count[matrix];
    REQUIRE(mine < UINT32_MAX, E_RANGE, "a matrix of %zu terms, at most 2^32 - 2 are supported",
            mine);
    r.rows_count = (uint32_t)rows;
    r.terms_count = mine;
    TRY(mem_new(&r.start, rows + 2, 4));
    TRY(mem_new_raw(&r.columns, mine + 1, 4));
    TRY(mem_new_raw(&r.coefficients, mine + 1, 4));
    TRY(mem_new_raw(&r.long_rows, mine / (ROWS_LONG + 1) + 1, 4));
    for (size_t i = 0; i < all; i++) {
        struct key_term t = key_term_at(terms, i);
        TRY(check_term(&t, rows));
        r.start[t.row + 2] += t.matrix == matrix;
    }
    for (size_t row = 0; row < rows; row++) {
        if (r.start[row + 2] > ROWS_LONG) {
            r.long_rows[r.long_count++] = (uint32_t)row;
        }
        r.start[row + 2] += r.start[row + 1];
    }
    REQUIRE(r.start[rows + 1] == mine, E_IO, CHANGED);
    /* start[row + 1] is the place of row's next term, and in the end where row + 1 begins. */
    for (size_t i = 0; i < all; i++) {
        struct key_term t = key_term_at(terms, i);
        TRY(check_term(&t, rows));
        if (t.matrix == matrix) {
            uint32_t at = r.start[t.row + 1]++;
            REQUIRE(at < mine, E_IO, CHANGED);
            r.columns[at] = t.wire;
            TRY(rows_dictionary_find(&r.coefficients[at], d, &t.value_r2));
        }
    }
    *out = r;
    r = (struct rows_built){0};
    return OK;
}
