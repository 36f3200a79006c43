/* What is compiled once per (curve, tier), as a table: the seam between the drivers and the arithmetic.
 *
 * The drivers (msm.c, ntt.c, quotient.c, backend.c) know sizes and order of work and are compiled once; they never see a field element.
 * The tables are const and chosen at start by tier_find().
 *
 *     matrix_tmpl.c     matrix          a = A·w, b = B·w
 *     ntt_tmpl.c        domain          tables and the steps of transforms that ntt.c and quotient.c put together
 *     msm_tmpl.c        group           parts of a multi-scalar multiplication that msm.c schedules
 *     rows_tmpl.c       rows            a = A·w, b = B·w from rows and a dictionary: rows.h
 *     fixed_tmpl.c      fixed           additions for multiples of the generators: fixed.h
 *     rate_tmpl.c       rate            products alone, for the ceiling: rate.h
 *
 * Threads  const; each function says who may call it at the same time.
 */
#pragma once
#include "node/base/pool.h"
#include "node/curve/curve.h"
#include "node/key/basis.h"

/* --- Multi-scalar multiplication: Σ s_i·P_i --- */

enum { MSM_BITS_MIN = 4, MSM_BITS_MAX = 16, MSM_WINDOWS_MAX = 64, MSM_BIASED_WORDS = 5 };

/* Signed windows: s + bias cut into `count` fields of `bits` bits, less 2^(bits-1) each, are the digits of s. No carries:
 * any window can be cut on its own. Needs |s| < 2^(scalar bits - 1) and bits >= 4. */
struct msm_windows {
    unsigned bits, count;
    uint32_t buckets_count; /* largest digit, 2^(bits-1); bucket 0 exists and stays empty */
    uint64_t bias[MSM_BIASED_WORDS];
};

struct msm_source {
    const uint8_t *points;  /* lent: packed as in a .zkey, any alignment; infinity is all zero */
    const uint8_t *scalars; /* lent: 32 bytes each, canonical, any alignment */
    size_t count;
};

/* A piece of a source, compacted: zero scalars and infinite points are left out, signs are folded into the points. Wide
 * scalars fill it from the front, those below 2^48 from the back. */
struct msm_chunk {
    uint8_t *points;  /* capacity slots */
    uint64_t *biased; /* MSM_BIASED_WORDS per slot: |s| + bias */
    uint32_t capacity, wide_count, small_count;
};

/* Some windows of one sum, and their buckets, which live from the first chunk to the last. */
struct msm_bundle {
    unsigned first, count; /* windows */
    uint8_t *buckets;      /* count·(buckets_count + 1) slots */
    uint8_t *filled;       /* one byte per bucket */
};

/* Work areas of one thread. */
struct msm_worker {
    uint8_t *slots; /* entries_max + lists_max sums, at least 2·lists_max, and 8 spare */
    uint8_t *
        shared; /* group->shared_bytes: what additions keep between the two passes of a shared inversion */
    uint32_t *refs;                 /* entries_max + lists_max + 8 */
    uint32_t *pair_a, *pair_b;      /* half of that, and 16 */
    uint32_t *len, *start, *active; /* lists_max */
    int16_t *digits;                /* entries_max */
    uint32_t entries_max, lists_max;
    const _Atomic int *cancel; /* lent; looked at once per shared inversion */
};

struct group_ops {
    size_t slot_bytes; /* of a point in chunk, bucket and work area; also of a packed point */
    size_t shared_bytes;
    /* Fills `chunk` from element `from` on; returns the element after the last one looked at. The chunk may be left empty
     * before the end. Any number at once. */
    size_t (*stage)(struct msm_chunk *chunk, const struct msm_source *source,
                    const struct msm_windows *windows, size_t from);
    /* Adds a chunk to a bundle's buckets. Needs bundle->count·chunk entries <= entries_max. False: cancelled. */
    bool (*accumulate)(struct msm_bundle *bundle, struct msm_worker *worker,
                       const struct msm_chunk *chunk, const struct msm_windows *windows);
    /* Σ v·bucket_v of every window of a bundle, as `bits` points each of weight 2^j, to bits_out[window·bits + j]. */
    bool (*reduce)(uint8_t *bits_out, struct msm_bundle *bundle, struct msm_worker *worker,
                   const struct msm_windows *windows);
    /* The sum, affine and packed, from all windows' points. */
    void (*finish)(uint64_t *out, const uint8_t *bits, const struct msm_windows *windows);
};

/* --- Transforms over the domain of 2^log2 points: ntt.h drives them --- */

enum { DOMAIN_LOG2_MAX = 30 };

/* Plain integers that finish what leaves the domain's arithmetic; which powers of kappa and n they hold says ntt_tmpl.c. */
enum domain_weight { WEIGHT_AB, WEIGHT_C, WEIGHT_POWERS, WEIGHT_VALUES, WEIGHTS_COUNT };

/* Tables of one domain; fr values are 4 words, Montgomery. Built once per key. g is the coset's shift, kappa = g^n. */
struct domain {
    unsigned log2;
    enum h_basis basis;
    void *twiddles; /* lent: levels up to log2, powers of each level's root */
    void *
        scale_low; /* lent: 2^scale_low_log2 elements: times scale_high, g^-k/n in bit-reversed order */
    uint64_t *scale_high; /* lent: 2^(log2 - scale_low_log2) fr */
    unsigned scale_low_log2;
    uint64_t kappa_inv[4];
    uint64_t weights[WEIGHTS_COUNT][4];
};

struct ntt_body;

struct domain_ops {
    size_t (*tables_bytes)(unsigned log2);
    /* `memory`: tables_bytes, aligned to 64; lent to *out. 1 <= log2 <= the curve's two-adicity. */
    void (*build)(struct domain *out, void *memory, unsigned log2, enum h_basis basis,
                  struct pool *pool);
    const struct ntt_body *(*body)(unsigned log2);
    void (*coset)(uint64_t out[4], unsigned log2, enum h_basis basis); /* g, a plain integer */
};

/* --- a = A·w, b = B·w --- */

enum { MATRIX_ZONE_TERMS = 1024 };

/* Rows that a run of MATRIX_ZONE_TERMS terms of a key's file touches: lets a task that owns some rows skip what is not
 * for it, in whatever order the file has its terms. */
struct matrix_zone {
    uint32_t row_least, row_most;
};

struct matrix {
    struct bytes terms; /* lent: KEY_TERM_BYTES each */
    size_t terms_count;
    const uint8_t *witness; /* lent: 32 bytes a wire */
    uint32_t wires_count;
    const struct matrix_zone *zones;
    uint64_t *rows[2]; /* out: of A and B, domain_size fr each, Montgomery */
    size_t rows_count;
};

struct matrix_ops {
    /* Rows [from, to) of both products. Any number at once, for different rows. */
    void (*evaluate)(const struct matrix *m, size_t from, size_t to);
};

/* --- The tables --- */

struct rows_ops;
struct fixed_ops;
struct rate_ops;

struct cpu_ops {
    const char *tier;
    enum curve_id curve;
    unsigned scalar_bits;          /* of r */
    const struct group_ops *group; /* two, by enum point_group */
    const struct domain_ops *domain;
    const struct matrix_ops *matrix;
    const struct rows_ops *rows;
    const struct fixed_ops *fixed; /* two, by enum point_group */
    const struct rate_ops *rate;
};
