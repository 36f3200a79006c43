/* The table of instances, and both matrices of a key in one call. */
#include "node/cpu/rows.h"

#include <string.h>

#define TABLES(tier)                                                                               \
    extern const struct rows_ops bn254_##tier##_rows_ops;                                          \
    extern const struct rows_ops bls12_381_##tier##_rows_ops;
TABLES(portable)
#ifdef __x86_64__
TABLES(adx)
TABLES(ifma)
#endif

static const struct {
    const char *tier;
    const struct rows_ops *bn254, *bls12_381;
} tables[] = {
#ifdef __x86_64__
    {"ifma", &bn254_ifma_rows_ops, &bls12_381_ifma_rows_ops},
    {"adx", &bn254_adx_rows_ops, &bls12_381_adx_rows_ops},
#endif
    {"portable", &bn254_portable_rows_ops, &bls12_381_portable_rows_ops},
};

static const struct rows_ops *table_of(const struct cpu_ops *ops) {
    size_t i = 0;
    while (strcmp(tables[i].tier, ops->tier) != 0) {
        i++;
        ASSERT(i < COUNT_OF(tables)); /* every tier has one */
    }
    return ops->curve == CURVE_BN254 ? tables[i].bn254 : tables[i].bls12_381;
}

void rows_multiply(const struct cpu_ops *ops, const struct key *key, const struct matrix *m,
                   size_t from, size_t to) {
    const struct rows_ops *instance = table_of(ops);
    for (unsigned k = 0; k < 2; k++) {
        struct rows_product p = {.rows = key_rows(key, k),
                                 .dictionary = key_dictionary(key).ptr,
                                 .witness = m->witness,
                                 .out = m->rows[k]};
        instance->multiply(&p, from, to);
    }
}
