/* Terms to rows by counting: two passes over the terms, one to count a row's, one to put each in its place. Coefficients are
 * few (most are ±1), so a hash table over their stored bytes makes each an index.
 */
#include "cuda/rows.h"

#include "node/base/mem.h"
#include "node/curve/curve.h"

#include <string.h>

void dictionary_done(struct dictionary *d) {
    mem_free(d->stored);
    mem_free(d->constants);
    mem_free(d->slots);
}

static enum err dictionary_find(uint32_t *out, struct dictionary *d, const struct scalar *stored) {
    uint64_t hash =
        (stored->w[0] ^ stored->w[1] * 0x9e3779b97f4a7c15 ^ stored->w[2] << 1 ^ stored->w[3]) *
        0xbf58476d1ce4e5b9;
    size_t at = (size_t)(hash >> 20) & d->slots_mask;
    for (; d->slots[at]; at = (at + 1) & d->slots_mask) {
        if (!memcmp(&d->stored[d->slots[at] - 1], stored, sizeof *stored)) {
            *out = d->slots[at] - 1;
            return OK;
        }
    }
    REQUIRE(d->count < d->count_max, E_LIMIT, "more than %zu different coefficients", d->count_max);
    REQUIRE(scalar_is_valid(d->curve, stored), E_RANGE, "a coefficient is not below r");
    struct scalar value;
    d->curve->scalar_mul(&value, stored, &d->unscale);
    d->stored[d->count] = *stored;
    d->gpu->constant(d->constants + d->count * GPU_CONSTANT_BYTES, value.w);
    d->slots[at] = (uint32_t)++d->count;
    *out = (uint32_t)(d->count - 1);
    return OK;
}

enum err dictionary_init(struct dictionary *d, const struct gpu_layout *layout,
                         const struct curve *c) {
    d->curve = c;
    d->gpu = layout->gpu;
    d->count_max = layout->dictionary_max;
    d->slots_mask = 16;
    while (d->slots_mask < 2 * d->count_max) {
        d->slots_mask *= 2;
    }
    TRY(mem_new(&d->slots, d->slots_mask, sizeof *d->slots));
    d->slots_mask--;
    TRY(mem_new_raw(&d->stored, d->count_max, sizeof *d->stored));
    TRY(mem_new_raw(&d->constants, d->count_max, GPU_CONSTANT_BYTES));
    struct scalar two = {{2}}, one = {{1}}, minus_one, zero = {{0}}, r2;
    d->curve->scalar_pow(&r2, &two, 512);
    d->curve->scalar_inv(&d->unscale, &r2);
    d->curve->scalar_sub(&minus_one, &zero, &one);
    uint32_t idx;
    d->curve->scalar_mul(&one, &one, &r2);
    TRY(dictionary_find(&idx, d, &one));
    ASSERT(idx == GPU_COEFFICIENT_ONE);
    d->curve->scalar_mul(&minus_one, &minus_one, &r2);
    TRY(dictionary_find(&idx, d, &minus_one));
    ASSERT(idx == GPU_COEFFICIENT_MINUS_ONE);
    return OK;
}

void rows_done(struct rows *r) {
    mem_free(r->start);
    mem_free(r->columns);
    mem_free(r->coefficients);
    mem_free(r->long_rows);
}

/* Terms stand in any order in the file: count them by row, then put each in its place. */
enum err rows_build(struct rows *r, struct dictionary *d, const struct key *key, uint32_t matrix) {
    const struct key_shape *shape = key_shape(key);
    struct bytes terms = key_terms_raw(key);
    size_t all = (size_t)(shape->terms_count[0] + shape->terms_count[1]),
           rows = (size_t)shape->domain_size;
    size_t mine = (size_t)shape->terms_count[matrix];
    TRY(mem_new(&r->start, rows + 2, 4));
    TRY(mem_new_raw(&r->columns, mine + 1, 4));
    TRY(mem_new_raw(&r->coefficients, mine + 1, 4));
    TRY(mem_new_raw(&r->long_rows, mine / (GPU_ROW_LONG + 1) + 1, 4));
    for (size_t i = 0; i < all; i++) {
        struct key_term t = key_term_at(terms, i);
        if (t.matrix == matrix) {
            ASSERT(t.row < rows);
            r->start[t.row + 2]++;
        }
    }
    for (size_t row = 0; row < rows; row++) {
        if (r->start[row + 2] > GPU_ROW_LONG) {
            r->long_rows[r->long_count++] = (uint32_t)row;
        }
        r->start[row + 2] += r->start[row + 1];
    }
    ASSERT(r->start[rows + 1] ==
           mine); /* start[row + 1] is now the place of row's next term, in the end of row + 1's */
    for (size_t i = 0; i < all; i++) {
        struct key_term t = key_term_at(terms, i);
        if (t.matrix == matrix) {
            uint32_t at = r->start[t.row + 1]++;
            r->columns[at] = t.wire;
            TRY(dictionary_find(&r->coefficients[at], d, &t.value_r2));
        }
    }
    return OK;
}
