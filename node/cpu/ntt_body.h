/* A body of the transform: the same steps over plain elements (ntt_scalar_tmpl.h) or eight at a time (ntt_vec_tmpl.h).
 *
 * DIF takes natural order and leaves bit-reversed order, DIT the other way round, so DIF, scale, DIT never permutes. Only
 * powers of the forward root are kept: with X = DIF(x), X[k] belongs to coefficient -k mod n, and DIT of that gives the
 * value at w^-j in place j. Whoever reads results out counts backwards.
 *
 * A pass at level l works on blocks of 2^l elements and splits each in 2 or 4 (radix_log2); a leaf does all levels of one
 * block. Units are what a body counts in: 1 or 8 elements. Every step may run on many threads at once, for different units, chunks, blocks.
 */
#pragma once
#include "node/cpu/ops.h"

struct ntt_body {
    unsigned unit_log2, least_log2; /* least_log2: smallest transform this body can do */
    size_t unit_bytes;
    /* What `leave` needs beyond the plain factor, as a power of two: after `enter`, and after one `multiply` of such. */
    unsigned entered_log2, product_log2;
    size_t (*twiddle_units)(unsigned log2);
    /* Twiddles of a level come in chunks: chunk 0 first, the others from it, in any order. */
    size_t (*twiddle_chunks)(unsigned level);
    void (*twiddle_build)(struct domain *d, unsigned level, size_t chunk_idx);
    void (*set_low)(struct domain *d, size_t position, const uint64_t fr_value[4]);

    unsigned (*radix_log2)(unsigned level);
    /* Units [from, to) of each of the radix parts of one block. */
    void (*dif_pass)(const struct domain *d, void *block, unsigned level, size_t from, size_t to);
    void (*dit_pass)(const struct domain *d, void *block, unsigned level, size_t from, size_t to);
    void (*dif_leaf)(const struct domain *d, void *block, unsigned level);
    void (*dit_leaf)(const struct domain *d, void *block, unsigned level);

    /* Units [from, to) of a vector. */
    void (*enter)(void *vector, const uint64_t *rows, size_t from, size_t to);
    /* reduce: the product goes into a DIF next. */
    void (*multiply)(void *c, const void *a, const void *b, bool reduce, size_t from, size_t to);
    void (*scale)(const struct domain *d, void *vector, size_t from, size_t to); /* by g^-k/n */
    void (*scale_first)(const struct domain *d, void *vector); /* k = 0 by 1/kappa */
    /* a·b·weight_ab + c·weight_c, to place -j. */
    void (*leave_coset)(uint8_t *h, const struct domain *d, const void *a, const void *b,
                        const void *c, size_t from, size_t to);
    /* x·weight, plain, to place -k (or k), in bit-reversed order; added to what is there. */
    void (*leave_powers)(uint8_t *h, const struct domain *d, const void *x,
                         const uint64_t weight[4], bool backwards, bool add, size_t from,
                         size_t to);
    /* x·weight, plain, to place -j. */
    void (*leave_values)(uint8_t *out, const struct domain *d, const void *x,
                         const uint64_t weight[4], size_t from, size_t to);
};
