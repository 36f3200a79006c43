/* Scalars below 2^48 count as one addition each, which is what a bit costs; wider ones as msm.h's own estimate. */
#include "node/cli/products.h"

#include "node/cpu/msm.h"

#include <string.h>

enum { ADDITION_G1 = 6, ADDITION_G2 = 17, BETWEEN_TRANSFORMS = 6 };

static unsigned bits_of(const struct curve *c) {
    return 256 - (unsigned)__builtin_clzll(c->r.w[3]);
}

static struct products of_additions(double additions, enum point_group group) {
    return (struct products){.fp = additions * (group == GROUP_G1 ? ADDITION_G1 : ADDITION_G2)};
}

struct products products_of_msm(const struct curve *c, const uint8_t *scalars, uint64_t count,
                                enum point_group group) {
    uint64_t narrow = 0, wide = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t w[4];
        memcpy(w, scalars + SCALAR_BYTES * i, sizeof w);
        bool is_wide = (w[0] >> 48 | w[1] | w[2] | w[3]) != 0;
        wide += is_wide;
        narrow += !is_wide && w[0] != 0;
    }
    double additions = (double)narrow + (wide ? msm_additions(wide, bits_of(c)) : 0);
    return of_additions(additions, group);
}

struct products products_of_transforms(unsigned log2, unsigned transforms) {
    return (struct products){.fr = transforms * (double)(UINT64_C(1) << log2) / 2 * log2};
}

struct products products_of_h(unsigned log2) {
    struct products p = products_of_transforms(log2, 6);
    p.fr += BETWEEN_TRANSFORMS * (double)(UINT64_C(1) << log2);
    return p;
}

struct products products_of_proof(const struct key_shape *shape, const struct witness *w) {
    struct products one = products_of_msm(w->curve, w->values, w->count, GROUP_G1), p = {0};
    p = products_sum(p, (struct products){.fp = 3 * one.fp}); /* A, B1, L */
    p = products_sum(p, products_of_msm(w->curve, w->values, w->count, GROUP_G2));
    p = products_sum(
        p, of_additions(msm_additions(shape->points_count[KEY_H], bits_of(w->curve)), GROUP_G1));
    p = products_sum(p, products_of_h(shape->domain_log2));
    p.fr += (double)(shape->terms_count[0] + shape->terms_count[1]);
    return p;
}

double products_share(struct products p, const struct rates *ceiling, uint64_t ns) {
    return (p.fp / ceiling->fp + p.fr / ceiling->fr) / ((double)ns / 1e9);
}
