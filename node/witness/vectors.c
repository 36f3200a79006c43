/* The order is that of body_form: a and b first, so that the assignment is always the last. */
#include "node/witness/vectors.h"

static FALLIBLE add(struct vectors *v, enum section_kind kind, const uint8_t *values,
                    uint64_t count, const struct curve *c, struct pool *pool) {
    struct body_vector *vector = &v->owned[v->count];
    TRY(body_vector_open(vector, kind, bytes_of(values, (size_t)count * SCALAR_BYTES), c->r.w,
                         pool));
    v->sections[v->count] = vector->section;
    v->data[v->count] = vector->data;
    v->count++;
    return OK;
}

FALLIBLE vectors_open(struct vectors *out, const struct witness *w, struct pool *pool) {
    AUTO(vectors_close) struct vectors v = {.count = 0};
    if (w->a) {
        TRY(add(&v, SECTION_EVALUATIONS_A_RAW, w->a, w->rows_count, w->curve, pool));
        TRY(add(&v, SECTION_EVALUATIONS_B_RAW, w->b, w->rows_count, w->curve, pool));
    }
    TRY(add(&v, SECTION_WITNESS_RAW, w->values, w->count, w->curve, pool));
    *out = v;
    v = (struct vectors){.count = 0};
    return OK;
}

void vectors_close(struct vectors *v) {
    for (size_t i = 0; i < VECTORS_MAX; i++) {
        body_vector_close(&v->owned[i]);
    }
    *v = (struct vectors){.count = 0};
}
