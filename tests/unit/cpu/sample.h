/* Points with known discrete logarithms, and scalars of every kind: material for tests of sums.
 *
 * Point i is log_i·G, so a sum of any size has the plain reference (Σ s_i·log_i)·G: one multiplication by the curve's own
 * double-and-add.
 */
#pragma once
#include "node/curve/curve.h"
#include "tests/check/check.h"

enum sample_scalars {
    SCALARS_FULL,
    SCALARS_ZERO,
    SCALARS_ONE,
    SCALARS_BITS,
    SCALARS_MINUS_ONE,
    SCALARS_SMALL,    /* signed, 16 bits */
    SCALARS_MIXED,    /* 45 % 0, 45 % 1, some small, 3 % full: a hash circuit's witness */
    SCALARS_SAME,     /* one full value for all */
    SCALARS_EXTREMES, /* around 0, 2^48, 2^63, 2^64, r/2, r and powers of two */
    SCALARS_KINDS
};

enum sample_bases {
    BASES_DISTINCT,
    BASES_SAME,     /* one point for all */
    BASES_TWO,      /* two points in turn */
    BASES_OPPOSITE, /* P, -P, P, -P … */
    BASES_INFINITE, /* all */
    BASES_SPARSE,   /* most are infinite */
    BASES_MIXED,    /* all of these in one */
    BASES_KINDS
};

struct sample {
    const struct curve *curve;
    enum point_group group;
    size_t count, point_bytes;
    uint8_t *points; /* owned: packed, at an odd address */
    uint8_t *points_block;
    struct scalar *logs; /* owned */
    uint8_t *scalars;    /* owned: 32 bytes each, at an odd address */
    uint8_t *scalars_block;
};

void sample_new(struct sample *out, const struct curve *c, enum point_group group, size_t count);
void sample_free(struct sample *s);
void sample_set_bases(struct sample *s, enum sample_bases kind);
void sample_set_scalars(struct sample *s, enum sample_scalars kind);
/* The packed sum of the first `count`, by logarithms; and by adding up every product. */
void sample_sum(uint64_t *out, const struct sample *s, size_t count);
void sample_sum_plain(uint64_t *out, const struct sample *s, size_t count);
/* Uniform below r. */
void sample_scalar(struct scalar *out, const struct curve *c);
