/* Sums of multiples of points of G1: Σ [k_i]P_i, for public signals. Part of curve_tmpl.c.
 *
 *   points                       method                                                                    fp products each
 *   up to SUM_JOINT_MAX          all doublings shared by eight at a time (group_tmpl.h)                    about 1,000
 *   more                         buckets: signed digits, one window after the other                        about 400
 *   that stay, with a table      buckets: [2^(8i)]P for every window is there, so all share one set        about 230
 *
 * Buckets are affine. What is to be added is collected, and added in pairs, so that hundreds of additions share an inversion and cost 6 products
 * each where a Jacobian one takes 11. A pair that the chord cannot add (an infinity, equal, opposite) is seen and done as it must.
 *
 * Threads  any; pure. At most 300 KB of stack. Variable time.
 */
#pragma once
#include "node/curve/group.h"

enum {
    SUM_JOINT_MAX = 32,
    SUM_WIDTH_MIN = 5,
    SUM_WIDTH_MAX = 8,
    SUM_BUCKETS = (1 << (SUM_WIDTH_MAX - 1)) + 1, /* of the digits 0 to half */
    SUM_COLLECTED = 1024,
    SUM_TABLE_WIDTH = 8,
    SUM_TABLE_WINDOWS = (FR_BITS + SUM_TABLE_WIDTH) / SUM_TABLE_WIDTH
};

/* --- Additions in pairs. --- */

/* point[to] <- point[a] + point[a + 1]. */
struct sum_pair {
    uint16_t to, a;
};

/* What the chord's or tangent's slope is divided by; zero where the sum is one of the two, or infinity. */
static inline void sum_divisor(fp *out, const g1_affine *a, const g1_affine *b) {
    *out = fp_zero;
    if (g1_affine_is_infinity(a) || g1_affine_is_infinity(b)) {
        return;
    }
    fp_sub(out, &b->x, &a->x);
    if (fp_is_zero(out) && fp_equal(&a->y, &b->y)) {
        fp_double(out, &a->y);
    }
}

static inline void sum_of_pair(g1_affine *out, const g1_affine *a, const g1_affine *b,
                               const fp *inverse) {
    fp slope, t;
    if (fp_is_zero(inverse)) {
        *out = g1_affine_is_infinity(a) ? *b : g1_affine_is_infinity(b) ? *a : g1_infinity;
        return;
    }
    if (fp_equal(&a->x, &b->x)) {
        fp_sqr(&t, &a->x);
        fp_double(&slope, &t);
        fp_add(&slope, &slope, &t);
    } else {
        fp_sub(&slope, &b->y, &a->y);
    }
    fp_mul(&slope, &slope, inverse);
    const g1_affine first = *a;
    fp_sqr(&t, &slope);
    fp_sub(&t, &t, &first.x);
    fp_sub(&out->x, &t, &b->x);
    fp_sub(&t, &first.x, &out->x);
    fp_mul(&t, &t, &slope);
    fp_sub(&out->y, &t, &first.y);
}

/* In ascending order of `to`, which is never above a: no point is overwritten before it is read. */
static inline void sum_pairs(g1_affine *point, const struct sum_pair *pairs, size_t count) {
    if (count == 0) {
        return;
    }
    fp inverse[(SUM_COLLECTED + SUM_BUCKETS) / 2], scratch[(SUM_COLLECTED + SUM_BUCKETS) / 2];
    for (size_t i = 0; i < count; i++) {
        sum_divisor(&inverse[i], &point[pairs[i].a], &point[pairs[i].a + 1]);
    }
    fp_inv_batch(inverse, scratch, count);
    for (size_t i = 0; i < count; i++) {
        const g1_affine a = point[pairs[i].a], b = point[pairs[i].a + 1];
        sum_of_pair(&point[pairs[i].to], &a, &b, &inverse[i]);
    }
}

/* --- Buckets. --- */

struct sum_buckets {
    g1_affine bucket[SUM_BUCKETS]; /* of digit v, from 1 on */
    int count;                     /* with digit 0, which is not used */
    g1_affine collected[SUM_COLLECTED];
    uint16_t digit[SUM_COLLECTED];
    size_t collected_count;
};

static inline void sum_buckets_clear(struct sum_buckets *b, int half) {
    b->count = half + 1;
    b->collected_count = 0;
    memset(b->bucket, 0, (size_t)b->count * sizeof *b->bucket);
}

/* Adds what was collected to the buckets: each bucket's points side by side, the bucket itself first, halved until one is left. */
static inline void sum_buckets_settle(struct sum_buckets *b) {
    g1_affine point[SUM_COLLECTED + SUM_BUCKETS];
    struct sum_pair pairs[(SUM_COLLECTED + SUM_BUCKETS) / 2];
    uint16_t start[SUM_BUCKETS], left[SUM_BUCKETS];
    size_t at = 0, count;
    for (int v = 1; v < b->count; v++) {
        left[v] = 1;
    }
    for (size_t i = 0; i < b->collected_count; i++) {
        left[b->digit[i]]++;
    }
    for (int v = 1; v < b->count; v++) {
        start[v] = (uint16_t)at;
        point[at] = b->bucket[v];
        at += left[v];
        left[v] = 1;
    }
    for (size_t i = 0; i < b->collected_count; i++) {
        uint16_t v = b->digit[i];
        point[start[v] + left[v]++] = b->collected[i];
    }
    do { /* rounds, until no bucket has a pair */
        count = 0;
        for (int v = 1; v < b->count; v++) {
            for (unsigned k = 0; k < left[v] / 2u; k++) {
                pairs[count++] =
                    (struct sum_pair){(uint16_t)(start[v] + k), (uint16_t)(start[v] + 2 * k)};
            }
        }
        sum_pairs(point, pairs, count);
        for (int v = 1; v < b->count; v++) {
            if (left[v] % 2) { /* the odd one moves up */
                point[start[v] + left[v] / 2] = point[start[v] + left[v] - 1];
            }
            left[v] = (uint16_t)((left[v] + 1) / 2);
        }
    } while (count > 0);
    for (int v = 1; v < b->count; v++) {
        b->bucket[v] = point[start[v]];
    }
    b->collected_count = 0;
}

static inline void sum_buckets_add(struct sum_buckets *b, int digit, const g1_affine *p) {
    if (digit == 0) {
        return;
    }
    if (b->collected_count == SUM_COLLECTED) {
        sum_buckets_settle(b);
    }
    b->collected[b->collected_count] = *p;
    if (digit < 0) {
        g1_affine_neg(&b->collected[b->collected_count], p);
    }
    b->digit[b->collected_count++] = (uint16_t)(digit < 0 ? -digit : digit);
}

/* total <- total + Σ v · bucket v: each counts once in each of the v running sums from the top. */
static inline void sum_buckets_end(g1_jac *total, struct sum_buckets *b) {
    g1_jac running;
    sum_buckets_settle(b);
    g1_jac_set_infinity(&running);
    for (int v = b->count; --v > 0;) {
        g1_jac_add_affine(&running, &running, &b->bucket[v]);
        g1_jac_add(total, total, &running);
    }
}

/* --- Digits: the window of k + shift, less half, where the shift is half in every window. --- */

/* k + shift stays below 2^(width·windows): r is below 0.91 of a power of two, and the shift's part is 1/2 + 1/62 at most. */
static inline void sum_shift(uint64_t shift[5], unsigned width, unsigned windows) {
    memset(shift, 0, 5 * sizeof *shift);
    for (unsigned i = 0; i < windows; i++) {
        unsigned bit = i * width + width - 1;
        shift[bit / 64] |= UINT64_C(1) << (bit % 64);
    }
}

static inline void sum_shifted(uint64_t out[5], const uint64_t k[4], const uint64_t shift[5]) {
    unsigned char carry = 0;
    for (int w = 0; w < 5; w++) {
        carry = word_adc(carry, w < 4 ? k[w] : 0, shift[w], &out[w]);
    }
}

/* --- Points that do not stay. --- */

/* Width with the least products: a window costs 6 a point and 6 + 11 + 16 a bucket. */
static inline unsigned sum_width(size_t count) {
    unsigned best = 0;
    size_t least = SIZE_MAX;
    for (unsigned width = SUM_WIDTH_MIN; width <= SUM_WIDTH_MAX; width++) {
        size_t cost = (FR_BITS + width) / width * (6 * count + (size_t)33 * (1u << (width - 1)));
        if (cost < least) {
            best = width;
            least = cost;
        }
    }
    return best;
}

/* --- Points that stay. --- */

/* [2^(8i)]P for each window i. */
typedef struct {
    g1_affine multiple[SUM_TABLE_WINDOWS];
} sum_row;

static inline void sum_row_make(sum_row *out, const g1_affine *p) {
    g1_jac walk[SUM_TABLE_WINDOWS];
    g1_jac_from_affine(&walk[0], p);
    for (int i = 1; i < SUM_TABLE_WINDOWS; i++) {
        walk[i] = walk[i - 1];
        for (int k = 0; k < SUM_TABLE_WIDTH; k++) {
            g1_jac_double(&walk[i], &walk[i]);
        }
    }
    _Static_assert((int)SUM_TABLE_WINDOWS <= (int)g1_JAC_BATCH_MAX, "one batch");
    g1_jac_to_affine_batch(out->multiple, walk, SUM_TABLE_WINDOWS);
}
