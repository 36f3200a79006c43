/* The two curves as values: what the rest of the node sees of all arithmetic.
 *
 * The arithmetic itself (field, tower, group, pairing) is written once as *_tmpl.h and compiled once per curve;
 * this table of sizes and functions is its only face. Nothing here is on the hot path: the backends have their own
 * kernels over the same memory layout.
 *
 * Layout   A coordinate (fp) is fp_bytes/8 little-endian 64-bit limbs in Montgomery form, R = 2^(64·limbs), always
 *          canonical (< p). An affine point is x then y (G2: x.c0 x.c1 y.c0 y.c1), and infinity is all zero bytes:
 *          exactly what a .zkey stores, so a point is copied, never converted. Host and device share this layout.
 *          A scalar is a canonical integer below r, 32 bytes little-endian, never Montgomery.
 * Threads  any; everything is const.
 * Source   BN254: EIP-196/197. BLS12-381: draft-irtf-cfrg-pairing-friendly-curves; encodings of ZCash's bellman.
 */
#pragma once
#include "node/base/bytes.h"

enum {
    FP_LIMBS_MAX = 6,
    SCALAR_BYTES = 32,
    G1_BYTES_MAX = 2 * 8 * FP_LIMBS_MAX,
    G2_BYTES_MAX = 4 * 8 * FP_LIMBS_MAX,
    FP_DECIMAL_MAX = 120 /* digits of a coordinate or scalar in decimal, with NUL */
};

struct scalar {
    uint64_t w[4];
};
/* The first g1_bytes (g2_bytes) of w are the point; the rest is zero. */
struct g1 {
    uint64_t w[2 * FP_LIMBS_MAX];
};
struct g2 {
    uint64_t w[4 * FP_LIMBS_MAX];
};
/* An element of the pairing's target group: 2 × 3 × 2 coordinates in snarkjs's order
 * [[[c000,c001],[c010,c011],[c020,c021]], [[c100,…],…]], Montgomery, fp limbs each, packed without gaps. */
struct gt {
    uint64_t w[12 * FP_LIMBS_MAX];
};

/* Pairs of a product whose points of G2 stay, and a pair that stays as a whole. */
struct pairing_kept {
    const struct g1 *p;       /* count of them */
    const void *const *lines; /* of `lines` of struct curve */
    size_t count;             /* at most 4 */
    const struct gt *factor;  /* of pairing_factor */
};

enum curve_id { CURVE_BN254 = 1, CURVE_BLS12_381 = 2 }; /* numbers are part of the wire format */

enum point_group { GROUP_G1, GROUP_G2 };

struct curve {
    enum curve_id id;
    const char *name;         /* "bn254", "bls12_381": ours */
    const char *snarkjs_name; /* "bn128", "bls12381": in JSON files */
    size_t fp_bytes;          /* 32 or 48 */
    size_t g1_bytes, g2_bytes;
    unsigned two_adicity;     /* of r - 1: 28 or 32 */
    struct scalar r;          /* group order */
    uint64_t p[FP_LIMBS_MAX]; /* field modulus */
    struct g1 g1_generator;
    struct g2 g2_generator;

    /* Scalars. All inputs < r, outputs < r. */
    void (*scalar_add)(struct scalar *out, const struct scalar *a, const struct scalar *b);
    void (*scalar_sub)(struct scalar *out, const struct scalar *a, const struct scalar *b);
    void (*scalar_mul)(struct scalar *out, const struct scalar *a, const struct scalar *b);
    void (*scalar_inv)(struct scalar *out, const struct scalar *a); /* 0 → 0 */
    void (*scalar_pow)(struct scalar *out, const struct scalar *a, uint64_t exponent);
    /* Generator of the domain of 2^log2 points that snarkjs uses (both curves: a power of 5^((r-1)/2^s)) and the
     * one bellman uses (7^((r-1)/2^s) on BLS12-381). log2 <= two_adicity. */
    void (*scalar_root_snarkjs)(struct scalar *out, unsigned log2);
    void (*scalar_root_bellman)(struct scalar *out, unsigned log2);

    /* Points. Inputs on the curve; any of them may be infinity; all cases (P+P, P-P) are handled. */
    void (*g1_add)(struct g1 *out, const struct g1 *a, const struct g1 *b);
    void (*g1_neg)(struct g1 *out, const struct g1 *a);
    void (*g1_mul)(struct g1 *out, const struct g1 *p, const struct scalar *k);
    void (*g2_add)(struct g2 *out, const struct g2 *a, const struct g2 *b);
    void (*g2_neg)(struct g2 *out, const struct g2 *a);
    void (*g2_mul)(struct g2 *out, const struct g2 *p, const struct scalar *k);
    /* Σ scalars[i]·points[i]; `points` are count packed points of g1_bytes, any alignment. For public inputs:
     * one thread, no allocation; few points cost a third of g1_mul each, hundreds a sixth. */
    void (*g1_sum)(struct g1 *out, const uint8_t *points, const struct scalar *scalars,
                   size_t count);

    /* What is kept of a point that stays, in memory of so many bytes aligned to 8: multiples of it, after which a product takes 64 additions and
     * no doubling; and the lines of a point of G2 that is not infinity, for its pairings. */
    size_t g1_comb_bytes, g2_comb_bytes, lines_bytes;
    void (*g1_comb)(void *out, const struct g1 *p);
    void (*g2_comb)(void *out, const struct g2 *p);
    void (*g1_comb_mul)(struct g1 *out, const void *comb, const struct scalar *k);
    void (*g2_comb_mul)(struct g2 *out, const void *comb, const struct scalar *k);
    void (*lines)(void *out, const struct g2 *q);
    /* The same for sums: a table of g1_table_bytes a point, and g1_sum in half the time. */
    size_t g1_table_bytes;
    void (*g1_table)(void *out, const uint8_t *points, size_t count);
    void (*g1_table_sum)(struct g1 *out, const void *table, const struct scalar *scalars,
                         size_t count);

    /* What is wrong with count packed points: OK, or E_RANGE (coordinate >= p), E_CURVE (not on the curve; not in the
     * subgroup of order r when `subgroup`). *bad_idx is the first offender's index. Infinity passes. */
    enum err (*g1_check)(size_t *bad_idx, const uint8_t *points, size_t count, bool subgroup);
    enum err (*g2_check)(size_t *bad_idx, const uint8_t *points, size_t count, bool subgroup);

    /* Π e(p[i], q[i]) = 1? Pairs with an infinity contribute 1. Points must be checked before. */
    bool (*pairing_is_one)(const struct g1 *p, const struct g2 *q, size_t count);
    /* e(p, q) · Π e(kept->p[i], the point of kept->lines[i]) · kept->factor = 1? */
    bool (*pairing_with_kept_is_one)(const struct g1 *p, const struct g2 *q,
                                     const struct pairing_kept *kept);
    void (*pairing_factor)(struct gt *out, const struct g1 *p,
                           const struct g2 *q); /* e(p, q) for kept->factor */
    /* e(p, q), final exponentiation as ffjavascript does it, so that vk_alphabeta_12 comes out equal. */
    void (*pairing)(struct gt *out, const struct g1 *p, const struct g2 *q);

    /* One coordinate: plain little-endian integer (fp_bytes) to Montgomery and back. fp_from_int: false if >= p. */
    bool (*fp_from_int)(uint64_t *out, const uint64_t *in);
    void (*fp_to_int)(uint64_t *out, const uint64_t *in);
    /* Bellman's point decompression needs roots: y from x and the sign rule. false if x is not on the curve. */
    bool (*g1_from_x)(struct g1 *out, const uint64_t *x_mont, bool y_is_larger);
    bool (*g2_from_x)(struct g2 *out, const uint64_t *x_mont, bool y_is_larger);
    bool (*g1_y_is_larger)(const struct g1 *p); /* y > -y as integers; G2: c1 first */
    bool (*g2_y_is_larger)(const struct g2 *p);
};

const struct curve *curve_by_id(enum curve_id id); /* NULL if unknown */
/* Case and punctuation ignored: BN128, BN254, alt_bn128, BLS12-381, bls12381. NULL if unknown. */
const struct curve *curve_by_name(const char *name);
/* By the primes of a file header, little-endian. E_CURVE naming the prime when no curve has it. */
FALLIBLE curve_by_primes(const struct curve **out, struct bytes q, struct bytes r);
FALLIBLE curve_by_scalar_prime(const struct curve **out, struct bytes r);

bool scalar_is_valid(const struct curve *c, const struct scalar *s); /* s < r */
bool scalar_is_zero(const struct scalar *s);
FALLIBLE scalar_random(struct scalar *out,
                       const struct curve *c); /* uniform in [1, r), from the OS */

bool g1_is_infinity(const struct g1 *p);
bool g2_is_infinity(const struct g2 *p);
static inline size_t curve_point_bytes(const struct curve *c, enum point_group g) {
    return g == GROUP_G1 ? c->g1_bytes : c->g2_bytes;
}
/* Packed bytes (any alignment) to a value and back. */
void g1_load(struct g1 *out, const struct curve *c, const uint8_t *packed);
void g2_load(struct g2 *out, const struct curve *c, const uint8_t *packed);
void g1_store(uint8_t *packed, const struct curve *c, const struct g1 *p);
void g2_store(uint8_t *packed, const struct curve *c, const struct g2 *p);
