/* One block: the struct, and behind it what its pointers name. */
#include "node/key/prepared.h"

#include "node/base/mem.h"

static void *cut(char **at, size_t bytes) {
    void *piece = *at;
    *at += bytes;
    return piece;
}

static void *lines_of(char **at, const struct curve *c, const struct g2 *q) {
    void *lines = cut(at, c->lines_bytes);
    c->lines(lines, q);
    return lines;
}

static void *g1_comb_of(char **at, const struct curve *c, const struct g1 *p) {
    void *comb = cut(at, c->g1_comb_bytes);
    c->g1_comb(comb, p);
    return comb;
}

static void *g2_comb_of(char **at, const struct curve *c, const struct g2 *p) {
    void *comb = cut(at, c->g2_comb_bytes);
    c->g2_comb(comb, p);
    return comb;
}

enum err prepared_new(struct prepared **out, const struct vkey *vk) {
    const struct curve *c = vk->curve;
    struct prepared *p = NULL;
    size_t count = vk->public_count, combs_count = count <= PREPARED_COMBS_MAX ? count : 0;
    size_t rows_count = combs_count == 0 && count <= PREPARED_TABLE_MAX ? count : 0;
    TRY(mem_new(&p, 1,
                sizeof *p + 2 * c->lines_bytes + (1 + combs_count) * c->g1_comb_bytes +
                    c->g2_comb_bytes + rows_count * c->g1_table_bytes));
    char *at = (char *)p->memory;
    c->pairing_factor(&p->alpha_beta, &vk->alpha1, &vk->beta2);
    p->gamma_lines = lines_of(&at, c, &vk->gamma2);
    p->delta_lines = lines_of(&at, c, &vk->delta2);
    p->delta1_comb = g1_comb_of(&at, c, &vk->delta1);
    p->delta2_comb = g2_comb_of(&at, c, &vk->delta2);
    for (size_t i = 0; i < combs_count; i++) {
        struct g1 ic;
        g1_load(&ic, c, vk->ic + (1 + i) * c->g1_bytes);
        p->ic_combs[i] = g1_comb_of(&at, c, &ic);
    }
    if (rows_count > 0) {
        p->ic_table = at;
        c->g1_table(at, vk->ic + c->g1_bytes, rows_count);
    }
    *out = p;
    return OK;
}
