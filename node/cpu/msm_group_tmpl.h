/* Parts of a multi-scalar multiplication over one group: template, included twice by msm_tmpl.c.
 *
 *     #define GROUP             g1      points and their Jacobian arithmetic, from node/curve/group.h
 *     #define GROUP_COORDINATES 1       field elements in a coordinate
 *     #define COORD             fp      the coordinate field
 *     #define SUM               msm1    prefix of everything here
 *
 * Buckets without projective points. For each window the points of one digit form a list; rounds pair up neighbours
 * within every list and add all pairs as one batch, until one point is left:
 *
 *     bucket 5:  B a b c d  →  (B+a) (c... )     three rounds for five points, all buckets' pairs in one batch a round;
 *     bucket 9:  e f        →  (e+f)             the bucket's old sum B is just one more element
 *
 * Work depends on the number of points, not on how they spread over buckets, so there are no slow scalars. References:
 *
 *     bits 31-30   00 work area   01 bucket   10 point of the chunk   11 the same, negated
 *     bits 29-0    index
 *
 * Sum of v·B_v without projective points either: folding neighbours, B'_v = B_2v + B_2v+1, drops the lowest bit of v, so
 * the odd ones of each level sum to the points of weight 2^j. About two batched additions a bucket.
 *
 * Several windows may share one pass (a bundle): then even tiny sums fill whole batches.
 */
#define G(name)  TMPL_JOIN(SUM, name)
#define CO(name) TMPL_JOIN(COORD, name)
#define J(name)  TMPL_JOIN(GROUP, name)

typedef J(affine) G(point);

_Static_assert(sizeof(G(point)) == (size_t)16 * FP_LIMBS * GROUP_COORDINATES, "as packed");

static inline bool G(is_infinity)(const G(point) * p) {
    return J(affine_is_infinity)(p);
}

static inline const uint8_t *G(at)(const struct adder *c, uint32_t ref) {
    const uint8_t *const bases[4] = {c->work, c->buckets, c->points, c->points};
    return bases[ref >> 30] + (size_t)(ref & REF_INDEX) * sizeof(G(point));
}

static inline void G(prefetch)(const uint8_t *p) {
    __builtin_prefetch(p);
    if (sizeof(G(point)) > 64) {
        __builtin_prefetch(p + (sizeof(G(point)) % 64 ? sizeof(G(point)) - 1 : 64));
    }
    if (sizeof(G(point)) > 128) {
        __builtin_prefetch(p + 128);
    }
}

#if GROUP_COORDINATES == 2
static inline void G(reduce_coordinate)(fp2 *a) {
    fp_reduce(&a->c0, a->c0.w);
    fp_reduce(&a->c1, a->c1.w);
}
static inline void G(scale_coordinate)(fp2 *a, const fp *by) {
    fp2_mul_fp(a, a, by);
}
#else
static inline void G(reduce_coordinate)(fp *a) {
    fp_reduce(a, a->w);
}
static inline void G(scale_coordinate)(fp *a, const fp *by) {
    fp_mul(a, a, by);
}
#endif

#ifdef TIER_LANES
#define COORD_X8  TMPL_JOIN(COORD, x8)
#define COX(name) TMPL_JOIN(COORD_X8, name)
#include "node/cpu/msm_vec_tmpl.h"
#undef COORD_X8
#undef COX
#else
#include "node/cpu/msm_scalar_tmpl.h"
#endif

/* --- Staging --- */

static size_t G(stage)(struct msm_chunk *chunk, const struct msm_source *source,
                       const struct msm_windows *windows, size_t from) {
    struct G(stager) stager;
    G(stage_begin)(&stager);
    chunk->wide_count = chunk->small_count = 0;
    const size_t end =
        source->count - from < STAGE_LOOK_MAX ? source->count : from + STAGE_LOOK_MAX;
    for (; from < end && chunk->wide_count + chunk->small_count < chunk->capacity; from++) {
        struct staged s;
        if (!scalar_halve(&s, source->scalars + SCALAR_BYTES * from)) {
            continue;
        }
        const uint8_t *packed = source->points + sizeof(G(point)) * from;
        if (bytes_are_zero(packed, sizeof(G(point)))) {
            continue;
        }
        bool small = scalar_is_small(&s);
        uint32_t slot = small ? chunk->capacity - ++chunk->small_count : chunk->wide_count++;
        scalar_bias(chunk->biased + (size_t)MSM_BIASED_WORDS * slot, &s, windows);
        G(stage_one)(&stager, chunk->points + sizeof(G(point)) * slot, packed, s.negative);
    }
    G(stage_end)(&stager);
    return from;
}

/* --- Rounds of pairwise additions --- */

/* Adds up every list named in worker->active[0 … active_count); refs[start] is what is left of each. *next is the first
 * unused work slot, on the way in and out. False: cancelled. */
static bool G(sum_lists)(struct adder *c, struct msm_worker *w, uint32_t active_count,
                         uint32_t *next) {
    while (active_count) {
        uint32_t pairs = 0, kept = 0;
        for (uint32_t k = 0; k < active_count; k++) {
            const uint32_t list = w->active[k], len = w->len[list];
            uint32_t *refs = w->refs + w->start[list], half = len / 2;
            for (uint32_t i = 0; i < half; i++) {
                w->pair_a[pairs] = refs[2 * i];
                w->pair_b[pairs] = refs[2 * i + 1];
                refs[i] = *next + pairs++;
            }
            if (len & 1) {
                refs[half++] = refs[len - 1];
            }
            w->len[list] = half;
            if (half > 1) {
                w->active[kept++] = list;
            }
        }
        if (!G(add)(c, *next, w->pair_a, w->pair_b, pairs)) {
            return false;
        }
        *next += pairs;
        active_count = kept;
    }
    return true;
}

/* A referenced point, as a slot of its own. */
static inline void G(copy_slot)(uint8_t *to, const struct adder *c, uint32_t ref) {
    G(point) p;
    memcpy(&p, G(at)(c, ref), sizeof p);
    if (ref >= REF_NEGATED) {
        G(slot_negate)(&p);
    }
    memcpy(to, &p, sizeof p);
}

/* After complete formulas a sum may be infinite: such a bucket counts as empty. */
static void G(store_buckets)(struct msm_bundle *bundle, const struct adder *c,
                             const struct msm_worker *w, uint32_t lists) {
    for (uint32_t list = 0; list < lists; list++) {
        if (!w->len[list]) {
            continue;
        }
        uint32_t ref = w->refs[w->start[list]];
        uint8_t *bucket = bundle->buckets + sizeof(G(point)) * list;
        if (ref != (REF_BUCKET | list)) {
            G(copy_slot)(bucket, c, ref);
        }
        bundle->filled[list] = !c->complete || !bytes_are_zero(bucket, sizeof(G(point)));
    }
}

static bool G(accumulate)(struct msm_bundle *bundle, struct msm_worker *w,
                          const struct msm_chunk *chunk, const struct msm_windows *windows) {
    const uint32_t lists = bundle->count * (windows->buckets_count + 1);
    struct adder c = {.work = w->slots,
                      .buckets = bundle->buckets,
                      .points = chunk->points,
                      .shared = w->shared,
                      .cancel = w->cancel};
    uint32_t active = sort_digits(w, bundle, chunk, windows), next = 0;
    if (!G(sum_lists)(&c, w, active, &next)) {
        return false;
    }
    G(store_buckets)(bundle, &c, w, lists);
    return true;
}

/* --- Σ v·B_v --- */

static bool G(reduce)(uint8_t *bits_out, struct msm_bundle *bundle, struct msm_worker *w,
                      const struct msm_windows *windows) {
    const uint32_t stride = windows->buckets_count + 1, bits = windows->bits;
    struct adder c = {.work = w->slots,
                      .buckets = bundle->buckets,
                      .points = bundle->buckets,
                      .shared = w->shared,
                      .cancel = w->cancel};
    uint32_t next = 0, used = 0, active = 0;
    uint32_t *fold = w->active; /* per window: references by value, halving with every level */
    for (uint32_t list = 0; list < bundle->count * stride; list++) {
        fold[list] = bundle->filled[list] ? REF_BUCKET | list : REF_NONE;
    }
    for (uint32_t level = 0, len = windows->buckets_count; level < bits; level++, len /= 2) {
        uint32_t pairs = 0;
        for (uint32_t k = 0; k < bundle->count; k++) {
            /* List (k, level): the bucket of the largest digit is the only one whose top bit is set. */
            const uint32_t list = k * bits + level;
            uint32_t *values = fold + k * stride;
            w->start[list] = used;
            if (level == bits - 1) {
                if (bundle->filled[k * stride + windows->buckets_count]) {
                    w->refs[used++] = REF_BUCKET | (k * stride + windows->buckets_count);
                }
            } else {
                used += fold_level(w, values, len, used, next, &pairs);
            }
            w->len[list] = used - w->start[list];
        }
        if (!G(add)(&c, next, w->pair_a, w->pair_b, pairs)) {
            return false;
        }
        next += pairs;
    }
    for (uint32_t list = 0; list < bundle->count * bits; list++) {
        if (w->len[list] > 1) {
            w->active[active++] = list;
        }
    }
    if (!G(sum_lists)(&c, w, active, &next)) {
        return false;
    }
    for (uint32_t list = 0; list < bundle->count * bits; list++) {
        uint8_t *to = bits_out + sizeof(G(point)) * ((size_t)bundle->first * bits + list);
        if (w->len[list]) {
            G(copy_slot)(to, &c, w->refs[w->start[list]]);
        } else {
            memset(to, 0, sizeof(G(point)));
        }
    }
    return true;
}

/* Horner's rule over all windows' points: windows·bits doublings and additions. */
static void G(finish)(uint64_t *out, const uint8_t *bits, const struct msm_windows *windows) {
    J(jac) sum;
    J(jac_set_infinity)(&sum);
    for (uint32_t i = windows->count * windows->bits; i-- > 0;) {
        G(point) p;
        memcpy(&p, bits + sizeof p * i, sizeof p);
        if (!J(jac_is_infinity)(&sum)) {
            J(jac_double)(&sum, &sum);
        }
        if (!G(is_infinity)(&p)) {
            G(slot_leave)(&p);
            J(jac_add_affine)(&sum, &sum, &p);
        }
    }
    G(point) affine;
    J(jac_to_affine)(&affine, &sum);
    memcpy(out, &affine, sizeof affine);
}

#define GROUP_OPS(sum)                                                                             \
    {                                                                                              \
        .slot_bytes = sizeof(TMPL_JOIN(sum, point)), .shared_bytes = TMPL_JOIN(sum, SHARED_BYTES), \
        .stage = TMPL_JOIN(sum, stage), .accumulate = TMPL_JOIN(sum, accumulate),                  \
        .reduce = TMPL_JOIN(sum, reduce), .finish = TMPL_JOIN(sum, finish),                        \
    }

#undef GROUP
#undef GROUP_COORDINATES
#undef COORD
#undef SUM
#undef G
#undef CO
#undef J
