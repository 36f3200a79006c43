/* One curve as a value: the functions behind struct curve. Compiled once per curve, and once more with
 * FIELD_USE_ADX on x86-64; curve.c picks. A struct g1 or g2 of curve.h is the same bytes as g1_affine or g2_affine,
 * followed by zeros on BN254, whose coordinates are shorter. */
#include "node/base/rng.h"
#include "node/curve/curve.h"
#include "node/curve/curve_table.h"
#include "node/curve/pairing_tmpl.h"
#include "node/curve/sum_tmpl.h"

_Static_assert(sizeof(g1_affine) <= sizeof(struct g1), "G1 fits");
_Static_assert(sizeof(g2_affine) <= sizeof(struct g2), "G2 fits");
_Static_assert(sizeof(fp12) <= sizeof(struct gt), "Gt fits");
_Static_assert(sizeof(g1_affine) == 2 * 8 * FP_LIMBS, "no padding");

#define GROUP          g1
#define GROUP_NAME     "G1"
#define COORD          fp
#define COORD_WORDS    FP_LIMBS
#define GROUP_IS_WHOLE CURVE_IS_BN
#include "node/curve/check_tmpl.h"

#define GROUP          g2
#define GROUP_NAME     "G2"
#define COORD          fp2
#define COORD_WORDS    (2 * FP_LIMBS)
#define GROUP_IS_WHOLE 0
#include "node/curve/check_tmpl.h"

/* --- Scalars: plain integers below r, so a product is two Montgomery products. --- */

static void scalar_to_fr(fr *out, const struct scalar *a) {
    bool below_r = fr_from_int(out, a->w);
    ASSERT(below_r);
}

static void scalar_add(struct scalar *out, const struct scalar *a, const struct scalar *b) {
    fr x = {{a->w[0], a->w[1], a->w[2], a->w[3]}}, y = {{b->w[0], b->w[1], b->w[2], b->w[3]}};
    fr_add(&x, &x, &y);
    memcpy(out->w, x.w, sizeof out->w);
}

static void scalar_sub(struct scalar *out, const struct scalar *a, const struct scalar *b) {
    fr x = {{a->w[0], a->w[1], a->w[2], a->w[3]}}, y = {{b->w[0], b->w[1], b->w[2], b->w[3]}};
    fr_sub(&x, &x, &y);
    memcpy(out->w, x.w, sizeof out->w);
}

static void scalar_mul(struct scalar *out, const struct scalar *a, const struct scalar *b) {
    fr x, y = {{b->w[0], b->w[1], b->w[2], b->w[3]}};
    scalar_to_fr(&x, a);
    fr_mul(&x, &x, &y); /* (aR) b / R */
    memcpy(out->w, x.w, sizeof out->w);
}

static void scalar_inv(struct scalar *out, const struct scalar *a) {
    fr x;
    scalar_to_fr(&x, a);
    fr_inv(&x, &x);
    fr_to_int(out->w, &x);
}

static void scalar_pow(struct scalar *out, const struct scalar *a, uint64_t exponent) {
    fr x;
    scalar_to_fr(&x, a);
    fr_pow(&x, &x, &exponent, 1);
    fr_to_int(out->w, &x);
}

static void root_of_domain(struct scalar *out, const fr *full_root, unsigned log2) {
    ASSERT(log2 <= FR_TWO_ADICITY);
    fr x = *full_root;
    for (unsigned i = log2; i < FR_TWO_ADICITY; i++) {
        fr_sqr(&x, &x);
    }
    fr_to_int(out->w, &x);
}

static void scalar_root_snarkjs(struct scalar *out, unsigned log2) {
    static const fr root = {FR_ROOT_SNARKJS};
    root_of_domain(out, &root, log2);
}

static void scalar_root_bellman(struct scalar *out, unsigned log2) {
    static const fr root = {FR_ROOT_BELLMAN};
    root_of_domain(out, &root, log2);
}

/* --- Points. --- */

static void g1_in(g1_affine *out, const struct g1 *p) {
    memcpy(out, p->w, sizeof *out);
}
static void g2_in(g2_affine *out, const struct g2 *p) {
    memcpy(out, p->w, sizeof *out);
}
static void g1_affine_out(struct g1 *out, const g1_affine *p) {
    memset(out, 0, sizeof *out);
    memcpy(out->w, p, sizeof *p);
}
static void g2_affine_out(struct g2 *out, const g2_affine *p) {
    memset(out, 0, sizeof *out);
    memcpy(out->w, p, sizeof *p);
}
static void g1_out(struct g1 *out, const g1_jac *p) {
    g1_affine a;
    g1_jac_to_affine(&a, p);
    g1_affine_out(out, &a);
}
static void g2_out(struct g2 *out, const g2_jac *p) {
    g2_affine a;
    g2_jac_to_affine(&a, p);
    g2_affine_out(out, &a);
}

static void g1_add(struct g1 *out, const struct g1 *a, const struct g1 *b) {
    g1_affine x, y;
    g1_jac sum;
    g1_in(&x, a);
    g1_in(&y, b);
    g1_jac_from_affine(&sum, &x);
    g1_jac_add_affine(&sum, &sum, &y);
    g1_out(out, &sum);
}

static void g2_add(struct g2 *out, const struct g2 *a, const struct g2 *b) {
    g2_affine x, y;
    g2_jac sum;
    g2_in(&x, a);
    g2_in(&y, b);
    g2_jac_from_affine(&sum, &x);
    g2_jac_add_affine(&sum, &sum, &y);
    g2_out(out, &sum);
}

static void g1_neg(struct g1 *out, const struct g1 *a) {
    g1_affine x;
    g1_in(&x, a);
    g1_affine_neg(&x, &x);
    g1_affine_out(out, &x);
}

static void g2_neg(struct g2 *out, const struct g2 *a) {
    g2_affine x;
    g2_in(&x, a);
    g2_affine_neg(&x, &x);
    g2_affine_out(out, &x);
}

static void g1_mul(struct g1 *out, const struct g1 *p, const struct scalar *k) {
    g1_affine x;
    g1_jac q;
    g1_in(&x, p);
    g1_jac_from_affine(&q, &x);
    g1_jac_mul(&q, &q, k->w, COUNT_OF(k->w));
    g1_out(out, &q);
}

static void g2_mul(struct g2 *out, const struct g2 *p, const struct scalar *k) {
    g2_affine x;
    g2_jac q;
    g2_in(&x, p);
    g2_jac_from_affine(&q, &x);
    g2_jac_mul(&q, &q, k->w, COUNT_OF(k->w));
    g2_out(out, &q);
}

/* --- Sums of multiples. --- */

static void sum_joint(g1_jac *total, const uint8_t *points, const struct scalar *scalars,
                      size_t count) {
    for (size_t i = 0; i < count; i += g1_JOINT_MAX) {
        g1_jac p[g1_JOINT_MAX], part;
        size_t some_count = count - i < g1_JOINT_MAX ? count - i : g1_JOINT_MAX;
        for (size_t k = 0; k < some_count; k++) {
            g1_affine a;
            memcpy(&a, points + (i + k) * sizeof a, sizeof a);
            g1_jac_from_affine(&p[k], &a);
        }
        g1_jac_mul_joint(&part, p, scalars[i].w, COUNT_OF(scalars[i].w), some_count);
        g1_jac_add(total, total, &part);
    }
}

static void sum_windows(g1_jac *total, const uint8_t *points, const struct scalar *scalars,
                        size_t count) {
    struct sum_buckets buckets;
    unsigned width = sum_width(count), windows = (FR_BITS + width) / width;
    uint64_t shift[5], k[5];
    sum_shift(shift, width, windows);
    for (unsigned i = windows; i-- > 0;) {
        int half = 1 << (width - 1);
        for (unsigned bit = 0; bit < width; bit++) {
            g1_jac_double(total, total);
        }
        sum_buckets_clear(&buckets, half);
        for (size_t j = 0; j < count; j++) {
            g1_affine p;
            memcpy(&p, points + j * sizeof p, sizeof p);
            sum_shifted(k, scalars[j].w, shift);
            sum_buckets_add(&buckets, (int)words_cut(k, 5, i * width, width) - half, &p);
        }
        sum_buckets_end(total, &buckets);
    }
}

static void g1_sum(struct g1 *out, const uint8_t *points, const struct scalar *scalars,
                   size_t count) {
    g1_jac total;
    g1_jac_set_infinity(&total);
    if (count <= SUM_JOINT_MAX) {
        sum_joint(&total, points, scalars, count);
    } else {
        sum_windows(&total, points, scalars, count);
    }
    g1_out(out, &total);
}

static void g1_table(void *out, const uint8_t *points, size_t count) {
    sum_row *rows = out;
    for (size_t i = 0; i < count; i++) {
        g1_affine p;
        memcpy(&p, points + i * sizeof p, sizeof p);
        sum_row_make(&rows[i], &p);
    }
}

static void g1_table_sum(struct g1 *out, const void *table, const struct scalar *scalars,
                         size_t count) {
    const sum_row *rows = table;
    struct sum_buckets buckets;
    uint64_t shift[5], k[5];
    g1_jac total;
    int half = 1 << (SUM_TABLE_WIDTH - 1);
    sum_shift(shift, SUM_TABLE_WIDTH, SUM_TABLE_WINDOWS);
    sum_buckets_clear(&buckets, half);
    for (size_t j = 0; j < count; j++) {
        sum_shifted(k, scalars[j].w, shift);
        for (unsigned i = 0; i < SUM_TABLE_WINDOWS; i++) {
            int digit = (int)words_cut(k, 5, i * SUM_TABLE_WIDTH, SUM_TABLE_WIDTH) - half;
            sum_buckets_add(&buckets, digit, &rows[j].multiple[i]);
        }
    }
    g1_jac_set_infinity(&total);
    sum_buckets_end(&total, &buckets);
    g1_out(out, &total);
}

/* --- Points that stay. --- */

static void g1_comb_of(void *out, const struct g1 *p) {
    g1_affine a;
    g1_in(&a, p);
    g1_comb_make(out, &a);
}

static void g2_comb_of(void *out, const struct g2 *p) {
    g2_affine a;
    g2_in(&a, p);
    g2_comb_make(out, &a);
}

static void g1_comb_times(struct g1 *out, const void *comb, const struct scalar *k) {
    g1_jac q;
    g1_comb_mul(&q, comb, k->w);
    g1_out(out, &q);
}

static void g2_comb_times(struct g2 *out, const void *comb, const struct scalar *k) {
    g2_jac q;
    g2_comb_mul(&q, comb, k->w);
    g2_out(out, &q);
}

static void lines_of(void *out, const struct g2 *q) {
    g2_affine a;
    g2_in(&a, q);
    lines_keep(out, &a);
}

/* --- Coordinates and roots. --- */

static bool coordinate_from_int(uint64_t *out, const uint64_t *in) {
    fp a;
    if (!fp_from_int(&a, in)) {
        return false;
    }
    memcpy(out, a.w, sizeof a.w);
    return true;
}

static void coordinate_to_int(uint64_t *out, const uint64_t *in) {
    fp a;
    memcpy(&a, in, sizeof a);
    fp_to_int(out, &a);
}

static bool g1_from_x(struct g1 *out, const uint64_t *x_mont, bool y_is_larger) {
    g1_affine p;
    memcpy(&p.x, x_mont, sizeof p.x);
    g1_right_side(&p.y, &p.x);
    if (!fp_sqrt(&p.y, &p.y)) {
        return false;
    }
    if (fp_is_larger(&p.y) != y_is_larger) {
        fp_neg(&p.y, &p.y);
    }
    g1_affine_out(out, &p);
    return true;
}

static bool g2_from_x(struct g2 *out, const uint64_t *x_mont, bool y_is_larger) {
    g2_affine p;
    memcpy(&p.x, x_mont, sizeof p.x);
    g2_right_side(&p.y, &p.x);
    if (!fp2_sqrt(&p.y, &p.y)) {
        return false;
    }
    if (fp2_is_larger(&p.y) != y_is_larger) {
        fp2_neg(&p.y, &p.y);
    }
    g2_affine_out(out, &p);
    return true;
}

static bool g1_y_is_larger(const struct g1 *p) {
    g1_affine a;
    g1_in(&a, p);
    return fp_is_larger(&a.y);
}

static bool g2_y_is_larger(const struct g2 *p) {
    g2_affine a;
    g2_in(&a, p);
    return fp2_is_larger(&a.y);
}

/* --- Pairings. --- */

/* f <- the product of the Miller values; pairs with an infinity are left out. */
static void miller_product(fp12 *f, const struct g1 *p, const struct g2 *q, size_t count) {
    struct miller m = {.count = 0};
    fp12_set_one(f);
    for (size_t i = 0; i < count; i++) {
        g1_in(&m.p[m.count], &p[i]);
        g2_in(&m.q[m.count], &q[i]);
        if (!g1_affine_is_infinity(&m.p[m.count]) && !g2_affine_is_infinity(&m.q[m.count])) {
            m.count++;
        }
        if (m.count == PAIRS_AT_ONCE || (i + 1 == count && m.count > 0)) {
            fp12 part;
            miller_loop(&part, &m);
            fp12_mul(f, f, &part);
            m.count = 0;
        }
    }
}

static bool pairing_is_one(const struct g1 *p, const struct g2 *q, size_t count) {
    fp12 f;
    miller_product(&f, p, q, count);
    final_exponentiation(&f, &f);
    return fp12_is_one(&f);
}

static bool pairing_with_kept_is_one(const struct g1 *p, const struct g2 *q,
                                     const struct pairing_kept *kept) {
    struct miller m = {.count = 1};
    fp12 f, factor;
    g1_in(&m.p[0], p);
    g2_in(&m.q[0], q);
    if (g1_affine_is_infinity(&m.p[0]) || g2_affine_is_infinity(&m.q[0])) {
        m.count = 0;
    }
    ASSERT(kept->count <= FIXED_AT_ONCE);
    for (size_t i = 0; i < kept->count; i++) {
        g1_in(&m.fixed_p[m.fixed_count], &kept->p[i]);
        m.lines[m.fixed_count] = kept->lines[i];
        m.fixed_count += !g1_affine_is_infinity(&m.fixed_p[m.fixed_count]);
    }
    miller_loop(&f, &m);
    memcpy(&factor, kept->factor->w, sizeof factor);
    fp12_mul(&f, &f, &factor);
    final_exponentiation(&f, &f);
    return fp12_is_one(&f);
}

static void gt_out(struct gt *out, const fp12 *f) {
    memset(out, 0, sizeof *out);
    memcpy(out->w, f, sizeof *f);
}

static void pairing_factor(struct gt *out, const struct g1 *p, const struct g2 *q) {
    fp12 f;
    miller_product(&f, p, q, 1);
    gt_out(out, &f);
}

static void pairing(struct gt *out, const struct g1 *p, const struct g2 *q) {
    fp12 f;
    miller_product(&f, p, q, 1);
    final_exponentiation(&f, &f);
    gt_out(out, &f);
}

#ifdef FIELD_USE_ADX
#define CURVE_TABLE CURVE_FN(curve_adx)
#else
#define CURVE_TABLE CURVE_FN(curve_portable)
#endif

const struct curve CURVE_TABLE = {
    .id = CURVE_ID,
    .name = CURVE_NAME,
    .snarkjs_name = CURVE_SNARKJS_NAME,
    .fp_bytes = sizeof(fp),
    .g1_bytes = sizeof(g1_affine),
    .g2_bytes = sizeof(g2_affine),
    .two_adicity = FR_TWO_ADICITY,
    .r = {FR_P},
    .p = FP_P,
    .g1_generator = {G1_GENERATOR},
    .g2_generator = {G2_GENERATOR},
    .scalar_add = scalar_add,
    .scalar_sub = scalar_sub,
    .scalar_mul = scalar_mul,
    .scalar_inv = scalar_inv,
    .scalar_pow = scalar_pow,
    .scalar_root_snarkjs = scalar_root_snarkjs,
    .scalar_root_bellman = scalar_root_bellman,
    .g1_add = g1_add,
    .g1_neg = g1_neg,
    .g1_mul = g1_mul,
    .g2_add = g2_add,
    .g2_neg = g2_neg,
    .g2_mul = g2_mul,
    .g1_sum = g1_sum,
    .g1_table_bytes = sizeof(sum_row),
    .g1_table = g1_table,
    .g1_table_sum = g1_table_sum,
    .g1_comb_bytes = sizeof(g1_comb),
    .g2_comb_bytes = sizeof(g2_comb),
    .lines_bytes = WALK_MAX * sizeof(struct kept_line),
    .g1_comb = g1_comb_of,
    .g2_comb = g2_comb_of,
    .g1_comb_mul = g1_comb_times,
    .g2_comb_mul = g2_comb_times,
    .lines = lines_of,
    .g1_check = g1_check,
    .g2_check = g2_check,
    .pairing_is_one = pairing_is_one,
    .pairing_with_kept_is_one = pairing_with_kept_is_one,
    .pairing_factor = pairing_factor,
    .pairing = pairing,
    .fp_from_int = coordinate_from_int,
    .fp_to_int = coordinate_to_int,
    .g1_from_x = g1_from_x,
    .g2_from_x = g2_from_x,
    .g1_y_is_larger = g1_y_is_larger,
    .g2_y_is_larger = g2_y_is_larger,
};
