/* Multi-scalar multiplication: what is compiled per (curve, tier). The idea is told in msm_group_tmpl.h, the order of
 * work in msm.c; this file holds what both groups share, scalars and digits, and includes the groups.
 *
 *   a scalar s          s > r/2 counts as -(r - s), the sign going into the point: one bit less, and r - 1 is small
 *   wide or small       |s| < 2^48 has no digit in windows from bit 64 on (its bias cannot carry that far): those windows
 *                       look at the wide ones only, which is nothing at all for most bits of a hash circuit's witness
 *   zero, infinite      left out when a chunk is staged
 *   one                 no class of its own: its bucket is a long list, and lists halve in batches like all others
 *
 * Tried     Streaming points through a batch with a queue for collisions: 2-15 % faster on flat histograms, up to 12
 *           times slower where few buckets are in use (narrow top window, skewed scalars).
 */
#include "node/cpu/ops.h"
#include "node/cpu/tmpl.h"
#include "node/curve/group.h"
#ifdef TIER_LANES
#include "node/cpu/vec_fp2.h"
#endif

#include <stdatomic.h>
#include <string.h>

#define REF_BUCKET  0x40000000u
#define REF_POINT   0x80000000u
#define REF_NEGATED 0xc0000000u
#define REF_INDEX   0x3fffffffu
#define REF_NONE    0xffffffffu

/* Elements looked at for one chunk, however few of them count: a task is over in time to notice a cancelled job. */
enum { STAGE_LOOK_MAX = 1 << 20 };

/* Where references point, and what a shared inversion needs. */
struct adder {
    uint8_t *work;
    const uint8_t *buckets, *points;
    uint8_t *shared;
    const _Atomic int *cancel;
    bool complete; /* some operand may be infinite */
};

static inline bool adder_is_cancelled(const struct adder *c) {
    return __builtin_expect(atomic_load_explicit(c->cancel, memory_order_relaxed) != 0, 0);
}

static inline bool bytes_are_zero(const uint8_t *p, size_t len) {
    uint64_t any = 0;
    for (size_t i = 0; i < len && !any; i += 16) {
        uint64_t w[2];
        memcpy(w, p + i, sizeof w);
        any = w[0] | w[1];
    }
    return !any;
}

/* --- Scalars --- */

struct staged {
    uint64_t w[4]; /* |s| <= r/2 */
    bool negative;
};

/* False for 0. */
static inline bool scalar_halve(struct staged *out, const uint8_t *bytes) {
    uint64_t w[4], other[4];
    memcpy(w, bytes, sizeof w);
    if (!(w[0] | w[1] | w[2] | w[3])) {
        return false;
    }
    unsigned char borrow = 0;
    for (int i = 0; i < 4; i++) {
        borrow = word_sbb(borrow, fr_modulus.w[i], w[i], &other[i]);
    }
    out->negative = words_less(other, w, 4);
    memcpy(out->w, out->negative ? other : w, sizeof out->w);
    return true;
}

static inline bool scalar_is_small(const struct staged *s) {
    return !(s->w[1] | s->w[2] | s->w[3] | (s->w[0] >> 48));
}

static inline void scalar_bias(uint64_t *out, const struct staged *s,
                               const struct msm_windows *windows) {
    unsigned char carry = 0;
    for (int i = 0; i < 4; i++) {
        carry = word_adc(carry, s->w[i], windows->bias[i], &out[i]);
    }
    out[4] = windows->bias[4] + carry;
}

/* --- Digits, sorted into lists by counting --- */

/* Digits of one window over part of a chunk, counted in `len`, which starts at the window's list 0. Signs are as good as
 * random, so here and below they are worked out without a branch. */
static inline void cut_digits(int16_t *digits, uint32_t *len, const uint64_t *biased,
                              uint32_t count, unsigned bit, unsigned bits) {
    const uint8_t *from = (const uint8_t *)biased + bit / 8;
    const uint32_t mask = (1u << bits) - 1;
    const int half = 1 << (bits - 1);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t field;
        memcpy(&field, from + (size_t)8 * MSM_BIASED_WORDS * i, sizeof field);
        const int digit = (int)((uint32_t)(field >> (bit % 8)) & mask) - half;
        const int sign = digit >> 31;
        digits[i] = (int16_t)digit;
        len[(uint32_t)((digit ^ sign) - sign)]++;
    }
}

static inline void place_digits(uint32_t *refs, uint32_t *start, const int16_t *digits,
                                uint32_t count, uint32_t first) {
    for (uint32_t i = 0; i < count; i++) {
        const int digit = digits[i], sign = digit >> 31;
        if (digit != 0) {
            refs[start[(uint32_t)((digit ^ sign) - sign)]++] =
                (REF_POINT | ((uint32_t)sign & (REF_NEGATED ^ REF_POINT))) | (first + i);
        }
    }
}

/* Fills refs, start, len of a bundle's lists, the old bucket sums included; active names those with something to add.
 * Returns how many. */
static uint32_t sort_digits(struct msm_worker *w, const struct msm_bundle *bundle,
                            const struct msm_chunk *chunk, const struct msm_windows *windows) {
    const uint32_t stride = windows->buckets_count + 1, lists = bundle->count * stride;
    const uint32_t wide = chunk->wide_count, small = chunk->small_count;
    const uint32_t small_first = chunk->capacity - small;
    memset(w->len, 0, sizeof *w->len * lists);
    int16_t *digits = w->digits;
    for (unsigned k = 0; k < bundle->count; k++) {
        const unsigned bit = (bundle->first + k) * windows->bits;
        uint32_t *len = w->len + k * stride;
        cut_digits(digits, len, chunk->biased, wide, bit, windows->bits);
        digits += wide;
        if (bit < 64) {
            cut_digits(digits, len, chunk->biased + (size_t)MSM_BIASED_WORDS * small_first, small,
                       bit, windows->bits);
            digits += small;
        }
        len[0] = 0;
    }
    uint32_t sum = 0, active = 0;
    for (uint32_t list = 0; list < lists; list++) {
        if (!w->len[list]) {
            continue;
        }
        w->start[list] = sum;
        if (bundle->filled[list]) {
            w->refs[w->start[list]++] = REF_BUCKET | list;
            w->len[list]++;
        }
        sum += w->len[list];
        if (w->len[list] > 1) {
            w->active[active++] = list;
        }
    }
    digits = w->digits;
    for (unsigned k = 0; k < bundle->count; k++) {
        uint32_t *start = w->start + k * stride;
        place_digits(w->refs, start, digits, wide, 0);
        digits += wide;
        if ((bundle->first + k) * windows->bits < 64) {
            place_digits(w->refs, start, digits, small, small_first);
            digits += small;
        }
    }
    for (uint32_t list = 0; list < lists; list++) { /* placing moved the starts to the ends */
        w->start[list] -= w->len[list];
    }
    return active;
}

/* One level of folding `len` values: neighbours become pairs whose sums will lie in work slots from `next` on, odd ones are
 * appended to the level's list at refs[used]. Returns how many. */
static uint32_t fold_level(struct msm_worker *w, uint32_t *values, uint32_t len, uint32_t used,
                           uint32_t next, uint32_t *pairs) {
    uint32_t odd_count = 0;
    for (uint32_t v = 0; v < len; v += 2) {
        uint32_t even = values[v], odd = values[v + 1];
        if (odd == REF_NONE) {
            values[v / 2] = even;
            continue;
        }
        w->refs[used + odd_count++] = odd;
        if (even == REF_NONE) {
            values[v / 2] = odd;
        } else {
            w->pair_a[*pairs] = even;
            w->pair_b[*pairs] = odd;
            values[v / 2] = next + (*pairs)++;
        }
    }
    return odd_count;
}

#define GROUP             g1
#define GROUP_COORDINATES 1
#define COORD             fp
#define SUM               msm1
#include "node/cpu/msm_group_tmpl.h"

#define GROUP             g2
#define GROUP_COORDINATES 2
#define COORD             fp2
#define SUM               msm2
#include "node/cpu/msm_group_tmpl.h"

const struct group_ops CPU_FN(group_ops)[2] = {
    [GROUP_G1] = GROUP_OPS(msm1), [GROUP_G2] = GROUP_OPS(msm2)};
