/* Batched affine additions, eight at a time: the primitive of the IFMA tier. Part of msm_group_tmpl.h.
 *
 * Slots hold coordinates below 2p + 2^-40 p, R = 2^(52·limbs), packed in 64-bit words; they are split into limbs on the
 * way in. Forward pass: x1, y1, dx, dy and the running product of all dx stay in memory as vectors, in two independent
 * chains, because one product's latency is ten times its throughput. One scalar inversion serves both chains and all
 * lanes. Backward pass: each addition's own inverse, slope, sum.
 *
 *     dx = x2 - x1 + 4p, dy = y2 - y1 + 4p    (2p, 6p)
 *     l  = dy/dx                               < 2.2p
 *     x3 = l² - dx - 2 x1 + 10p                (2p, 8p), then red
 *     y3 = (x1 - x3 + 4p) l - y1 + 4p          (2p, 6.2p), then red
 *
 * The fast pass looks for no special case: if the product of all dx is 0 mod p, some pair is a doubling, opposite, or has
 * an infinity with x = 0, and nothing has been written yet; the batch is done again with complete, masked formulas, and so
 * is the rest of the call's work, as an infinity in the work area would no longer be noticed.
 *
 * Cost     5 products, 1 square an addition; addresses and prefetches run two vectors ahead.
 * Tried    One chain: 15 % slower. Fewer than 512 additions an inversion: 256 +13 %, 128 +30 %.
 */

#if GROUP_COORDINATES == 2
#define PARTS      2
#define PART(v, k) ((k) ? &(v)->c1 : &(v)->c0)
#else
#define PARTS      1
#define PART(v, k) ((void)(k), (v))
#endif
#define FP_BYTES (8 * FP_LIMBS)

struct G(item) {
    COORD_X8 x1, y1, dx, dy, prefix;
};
enum { G(BATCH_VECTORS) = sizeof(struct G(item)) > 4096 ? 64 : 128 };
struct G(special) { /* lanes of one vector that are no plain addition */
    __mmask8 p_infinite, q_infinite, opposite;
};
struct G(shared) {
    struct G(item) items[G(BATCH_VECTORS)];
    struct G(special) special[G(BATCH_VECTORS)];
};
enum { G(SHARED_BYTES) = sizeof(struct G(shared)) };

VEC_INLINE void G(get)(COORD_X8 *out, const uint8_t *const *points, size_t offset) {
    for (int k = 0; k < PARTS; k++) {
        const uint8_t *from[8];
        words_x8 w[FP_LIMBS];
        for (int i = 0; i < 8; i++) {
            from[i] = points[i] + offset + (size_t)k * FP_BYTES;
        }
        fp_x8_gather(w, from);
        fp_x8_split(PART(out, k), w, 0);
    }
}

VEC_INLINE void G(put)(uint8_t *const *points, size_t offset, const COORD_X8 *a) {
    for (int k = 0; k < PARTS; k++) {
        uint8_t *to[8];
        words_x8 w[FP_LIMBS];
        for (int i = 0; i < 8; i++) {
            to[i] = points[i] + offset + (size_t)k * FP_BYTES;
        }
        fp_x8_join(w, PART(a, k));
        fp_x8_scatter(to, w);
    }
}

/* 2p - y in the lanes of `mask`; limbs raw. */
VEC_INLINE void G(negate)(COORD_X8 *y, __mmask8 mask) {
    for (int k = 0; k < PARTS; k++) {
        fp_x8 *part = PART(y, k);
        for (int i = 0; i < FP_LIMBS52; i++) {
            part->l[i] =
                _mm512_mask_sub_epi64(part->l[i], mask, VEC_BROADCAST(fp_x8_p2[i]), part->l[i]);
        }
    }
}

VEC_INLINE void G(blend)(COORD_X8 *out, __mmask8 mask, const COORD_X8 *a) {
    for (int k = 0; k < PARTS; k++) {
        for (int i = 0; i < FP_LIMBS52; i++) {
            PART(out, k)->l[i] = _mm512_mask_mov_epi64(PART(out, k)->l[i], mask, PART(a, k)->l[i]);
        }
    }
}

VEC_INLINE void G(clear)(COORD_X8 *out) {
    for (int k = 0; k < PARTS; k++) {
        for (int i = 0; i < FP_LIMBS52; i++) {
            PART(out, k)->l[i] = _mm512_setzero_si512();
        }
    }
}

VEC_INLINE void G(one_x8)(COORD_X8 *out) {
    G(clear)(out);
    fp_x8_broadcast(PART(out, 0), fp_x8_one52);
}

/* Lanes whose every limb is 0. */
VEC_INLINE __mmask8 G(infinite)(const COORD_X8 *x, const COORD_X8 *y) {
    words_x8 any = _mm512_setzero_si512();
    for (int k = 0; k < PARTS; k++) {
        for (int i = 0; i < FP_LIMBS52; i++) {
            any = _mm512_or_si512(any, PART(x, k)->l[i]);
            any = _mm512_or_si512(any, PART(y, k)->l[i]);
        }
    }
    return _mm512_testn_epi64_mask(any, any);
}

/* Addresses of eight references; their cache lines are asked for. */
VEC_INLINE void G(addresses)(const uint8_t **out, const struct adder *c, const uint32_t *refs) {
    words_x8 ref = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)refs));
    words_x8 at = _mm512_and_si512(ref, VEC_BROADCAST(REF_INDEX));
    if (sizeof(G(point)) % 3 == 0) {
        at = _mm512_add_epi64(at, _mm512_slli_epi64(at, 1));
    }
    at = _mm512_slli_epi64(at, sizeof(G(point)) / 32 % 4 == 0   ? 7
                               : sizeof(G(point)) / 32 % 2 == 0 ? 6
                                                                : 5);
    words_x8 bases = _mm512_castsi256_si512(_mm256_setr_epi64x(
        (long long)c->work, (long long)c->buckets, (long long)c->points, (long long)c->points));
    words_x8 base = _mm512_permutexvar_epi64(_mm512_srli_epi64(ref, 30), bases);
    _mm512_storeu_si512(out, _mm512_add_epi64(base, at));
    for (int i = 0; i < 8; i++) {
        G(prefetch)(out[i]);
    }
}

VEC_INLINE void G(load_x8)(COORD_X8 *x, COORD_X8 *y, const uint8_t *const *points,
                           const uint32_t *refs) {
    __m256i ref = _mm256_loadu_si256((const __m256i *)(const void *)refs);
    __mmask8 negated = _mm256_cmpge_epu32_mask(ref, _mm256_set1_epi32((int)REF_NEGATED));
    G(get)(x, points, 0);
    G(get)(y, points, (size_t)PARTS * FP_BYTES);
    G(negate)(y, negated);
}

/* 1/a in all lanes with one scalar inversion; a lane that is 0 spoils all (the caller has looked). */
static void G(inverse_x8)(COORD_X8 *out, const COORD_X8 *a) {
    COORD e[8], prefix[8], inverse;
    COORD_X8 t;
    fp_x8 leave;
    uint8_t *to[8];
    const uint8_t *from[8];
    static const uint64_t leave52[] = FP_OUT52;
    static const fp enter = {FP_IN64};
    fp_x8_broadcast(&leave, leave52);
    for (int k = 0; k < PARTS; k++) {
        fp_x8_mul(PART(&t, k), PART(a, k), &leave);
    }
    for (int i = 0; i < 8; i++) {
        from[i] = to[i] = (uint8_t *)&e[i];
    }
    G(put)(to, 0, &t);
    for (int i = 0; i < 8; i++) {
        G(reduce_coordinate)(&e[i]);
        prefix[i] = e[i];
        if (i) {
            CO(mul)(&prefix[i], &prefix[i - 1], &e[i]);
        }
    }
    CO(inv)(&inverse, &prefix[7]);
    for (int i = 7; i > 0; i--) {
        COORD own;
        CO(mul)(&own, &inverse, &prefix[i - 1]);
        CO(mul)(&inverse, &inverse, &e[i]);
        e[i] = own;
    }
    e[0] = inverse;
    for (int i = 0; i < 8; i++) {
        G(scale_coordinate)(&e[i], &enter);
    }
    G(get)(out, from, 0);
}

/* Finds the lanes that are no plain addition and gives them a harmless denominator, or a doubling's. */
VEC_INLINE void G(special_x8)(struct G(special) * out, struct G(item) * e, const COORD_X8 *x2,
                              const COORD_X8 *y2, const COORD_X8 *one) {
    __mmask8 p = G(infinite)(&e->x1, &e->y1), q = G(infinite)(x2, y2), opposite = 0;
    __mmask8 same_x = (__mmask8)(COX(is_zero)(&e->dx) & ~p & ~q);
    if (same_x) {
        __mmask8 twice = (__mmask8)(same_x & COX(is_zero)(&e->dy));
        opposite = (__mmask8)(same_x & ~twice);
        if (twice) { /* 3x²/2y */
            COORD_X8 t, square;
            COX(add_raw)(&t, &e->y1, &e->y1);
            COX(add_const)(&t, fp_x8_p2);
            COX(norm)(&t);
            G(blend)(&e->dx, twice, &t);
            t = e->x1;
            COX(sqr)(&square, &t);
            COX(add_raw)(&t, &square, &square);
            COX(add_raw)(&t, &t, &square);
            COX(norm)(&t);
            G(blend)(&e->dy, twice, &t);
        }
    }
    *out = (struct G(special)){p, q, opposite};
    G(blend)(&e->dx, (__mmask8)(p | q | opposite), one);
}

VEC_INLINE void G(add_forward)(COORD_X8 product[2], struct adder *c, const uint32_t *a,
                               const uint32_t *b, uint32_t vectors, const bool complete) {
    struct G(shared) *shared = (struct G(shared) *)(void *)c->shared;
    const uint8_t *ring[4][16];
    COORD_X8 one;
    G(one_x8)(&one);
    product[0] = product[1] = one;
    for (uint32_t i = 0; i < vectors && i < 2; i++) {
        G(addresses)(ring[i], c, a + 8 * i);
        G(addresses)(ring[i] + 8, c, b + 8 * i);
    }
    for (uint32_t i = 0; i < vectors; i++) {
        struct G(item) *e = &shared->items[i];
        const uint8_t **at = ring[i & 3];
        COORD_X8 x2, y2;
        if (i + 2 < vectors) {
            G(addresses)(ring[(i + 2) & 3], c, a + 8 * i + 16);
            G(addresses)(ring[(i + 2) & 3] + 8, c, b + 8 * i + 16);
        }
        G(load_x8)(&e->x1, &e->y1, at, a + 8 * i);
        G(load_x8)(&x2, &y2, at + 8, b + 8 * i);
        COX(sub_raw)(&e->dx, &x2, &e->x1);
        COX(add_const)(&e->dx, fp_x8_p4);
        COX(norm)(&e->dx);
        COX(sub_raw)(&e->dy, &y2, &e->y1);
        COX(add_const)(&e->dy, fp_x8_p4);
        COX(norm)(&e->dy);
        if (complete) {
            G(special_x8)(&shared->special[i], e, &x2, &y2, &one);
        }
        e->prefix = product[i & 1];
        COX(mul)(&product[i & 1], &e->dx, &product[i & 1]);
    }
}

/* What special lanes get instead of the sum. */
VEC_INLINE void G(patch_x8)(COORD_X8 *x3, COORD_X8 *y3, const struct adder *c,
                            const struct G(item) * e, const struct G(special) * special,
                            const uint32_t *b) {
    const uint8_t *at[8];
    COORD_X8 x2, y2, y1 = e->y1, none;
    G(addresses)(at, c, b);
    G(load_x8)(&x2, &y2, at, b);
    COX(norm)(&y2);
    COX(norm)(&y1);
    G(blend)(x3, special->p_infinite, &x2);
    G(blend)(y3, special->p_infinite, &y2);
    G(blend)(x3, special->q_infinite, &e->x1);
    G(blend)(y3, special->q_infinite, &y1);
    __mmask8 gone = (__mmask8)(special->opposite | (special->p_infinite & special->q_infinite));
    G(clear)(&none);
    G(blend)(x3, gone, &none);
    G(blend)(y3, gone, &none);
}

VEC_INLINE void G(add_backward)(uint8_t *out, struct adder *c, COORD_X8 inverse[2],
                                const uint32_t *b, uint32_t vectors, const bool complete) {
    const struct G(shared) *shared = (const struct G(shared) *)(const void *)c->shared;
    for (uint32_t i = vectors; i-- > 0;) {
        const struct G(item) *e = &shared->items[i];
        COORD_X8 slope, t, x3, y3;
        uint8_t *to[8];
        COX(mul)(&slope, &inverse[i & 1], &e->prefix);
        COX(mul)(&inverse[i & 1], &e->dx, &inverse[i & 1]);
        COX(mul)(&slope, &e->dy, &slope);
        COX(sqr)(&t, &slope);
        if (complete) { /* dx may be a doubling's */
            const uint8_t *at[8];
            COORD_X8 x2;
            G(addresses)(at, c, b + 8 * i);
            G(get)(&x2, at, 0);
            COX(sub_raw)(&x3, &t, &e->x1);
            COX(sub_raw)(&x3, &x3, &x2);
        } else { /* x2 = x1 + dx - 4p */
            COX(sub_raw)(&x3, &t, &e->dx);
            COX(sub_raw)(&x3, &x3, &e->x1);
            COX(sub_raw)(&x3, &x3, &e->x1);
            COX(add_const)(&x3, fp_x8_p4);
        }
        COX(add_const)(&x3, fp_x8_p6);
        COX(red)(&x3);
        COX(sub_raw)(&t, &e->x1, &x3);
        COX(add_const)(&t, fp_x8_p4);
        COX(norm)(&t);
        COX(mul)(&y3, &t, &slope);
        COX(sub_raw)(&y3, &y3, &e->y1);
        COX(add_const)(&y3, fp_x8_p4);
        COX(red)(&y3);
        if (complete) {
            G(patch_x8)(&x3, &y3, c, e, &shared->special[i], b + 8 * i);
        }
        for (int k = 0; k < 8; k++) {
            to[k] = out + (8 * i + (uint32_t)k) * sizeof(G(point));
        }
        G(put)(to, 0, &x3);
        G(put)(to, (size_t)PARTS * FP_BYTES, &y3);
    }
}

/* One batch. False: some pair needs the complete formulas; nothing was written. */
VEC_INLINE bool G(add_vectors)(struct adder *c, uint8_t *out, const uint32_t *a, const uint32_t *b,
                               uint32_t vectors, const bool complete) {
    COORD_X8 product[2], both, inverse;
    G(add_forward)(product, c, a, b, vectors, complete);
    COX(mul)(&both, &product[0], &product[1]);
    if (!complete && COX(is_zero)(&both)) {
        return false;
    }
    G(inverse_x8)(&inverse, &both);
    COX(mul)(&both, &inverse, &product[1]);
    COX(mul)(&product[1], &inverse, &product[0]);
    product[0] = both;
    G(add_backward)(out, c, product, b, vectors, complete);
    return true;
}
static __attribute__((noinline)) bool G(add_fast)(struct adder *c, uint8_t *out, const uint32_t *a,
                                                  const uint32_t *b, uint32_t vectors) {
    return G(add_vectors)(c, out, a, b, vectors, false);
}
static __attribute__((noinline)) void G(add_complete)(struct adder *c, uint8_t *out,
                                                      const uint32_t *a, const uint32_t *b,
                                                      uint32_t vectors) {
    (void)G(add_vectors)(c, out, a, b, vectors, true);
}

/* work[to + i] = point(a[i]) + point(b[i]). False: cancelled. a and b are padded by up to 7 copies of the first pair,
 * whose sums go to slots nobody has used yet. */
static bool G(add)(struct adder *c, uint32_t to, uint32_t *a, uint32_t *b, uint32_t count) {
    for (uint32_t pad = count; pad % 8 != 0; pad++) {
        a[pad] = a[0];
        b[pad] = b[0];
    }
    uint32_t vectors = (count + 7) / 8;
    for (uint32_t done = 0; done < vectors;) {
        uint32_t left = vectors - done;
        uint32_t batch = left < G(BATCH_VECTORS) ? left : G(BATCH_VECTORS);
        uint8_t *out = c->work + ((size_t)to + 8 * (size_t)done) * sizeof(G(point));
        if (adder_is_cancelled(c)) {
            return false;
        }
        if (!c->complete && !G(add_fast)(c, out, a + 8 * done, b + 8 * done, batch)) {
            c->complete = true;
        }
        if (c->complete) {
            G(add_complete)(c, out, a + 8 * done, b + 8 * done, batch);
        }
        done += batch;
    }
    return true;
}

/* --- Slots: eight points of a key at a time into the tier's form, one product a coordinate. --- */

struct G(stager) {
    const uint8_t *from[8];
    uint8_t *to[8];
    unsigned count, negative; /* lanes waiting; bit mask of those to negate */
};

static inline void G(stage_begin)(struct G(stager) * s) {
    s->count = s->negative = 0;
}

/* x·2^(64·words) shifted left by FP_SHIFT is x·R; the product with one brings it below 2p. */
static void G(stage_flush)(struct G(stager) * s) {
    fp_x8 one;
    fp_x8_broadcast(&one, fp_x8_one52);
    for (unsigned i = s->count; i < 8; i++) {
        s->from[i] = s->from[0];
        s->to[i] = s->to[0];
        s->negative |= (s->negative & 1) << i;
    }
    for (int half = 0; half < 2; half++) {
        COORD_X8 a;
        for (int k = 0; k < PARTS; k++) {
            const uint8_t *from[8];
            words_x8 w[FP_LIMBS];
            for (int i = 0; i < 8; i++) {
                from[i] = s->from[i] + (half * PARTS + k) * FP_BYTES;
            }
            fp_x8_gather(w, from);
            fp_x8_split(PART(&a, k), w, FP_SHIFT);
            fp_x8_mul(PART(&a, k), PART(&a, k), &one);
        }
        if (half == 1) {
            G(negate)(&a, (__mmask8)s->negative);
            COX(norm)(&a);
        }
        G(put)(s->to, (size_t)(half * PARTS) * FP_BYTES, &a);
    }
    s->count = s->negative = 0;
}

static inline void G(stage_one)(struct G(stager) * s, uint8_t *slot, const uint8_t *packed,
                                bool negative) {
    s->from[s->count] = packed;
    s->to[s->count] = slot;
    s->negative |= (unsigned)negative << s->count;
    if (++s->count == 8) {
        G(stage_flush)(s);
    }
}
static inline void G(stage_end)(struct G(stager) * s) {
    if (s->count) {
        G(stage_flush)(s);
    }
}

/* A slot's point to Montgomery form with R = 2^(64·words), canonical. */
static inline void G(slot_leave)(G(point) * p) {
    static const fp leave = {FP_OUTS};
    G(reduce_coordinate)(&p->x);
    G(reduce_coordinate)(&p->y);
    G(scale_coordinate)(&p->x, &leave);
    G(scale_coordinate)(&p->y, &leave);
}

/* 2p - y, as a negated reference means it. */
static inline void G(slot_negate)(G(point) * p) {
    for (int k = 0; k < PARTS; k++) {
        fp *part = &((fp *)(void *)&p->y)[k];
        unsigned char borrow = 0, carry = 0;
        uint64_t twice[FP_LIMBS];
        for (int i = 0; i < FP_LIMBS; i++) {
            carry = word_adc(carry, fp_modulus.w[i], fp_modulus.w[i], &twice[i]);
        }
        for (int i = 0; i < FP_LIMBS; i++) {
            borrow = word_sbb(borrow, twice[i], part->w[i], &part->w[i]);
        }
    }
}

#undef PARTS
#undef PART
#undef FP_BYTES
