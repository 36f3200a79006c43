/* Batched affine additions, one after the other: the primitive of portable and ADX tiers. Part of msm_group_tmpl.h.
 *
 * Two passes share one inversion (Montgomery's trick): forward, the running product of all denominators; backward, each
 * addition's own inverse out of it. Doubling, opposite and infinite operands are noticed where the denominator is zero;
 * from the first infinity on (`complete`) operands are tested too.
 *
 * Cost     5 products, 1 square and a batch's share of one inversion an addition.
 */

struct G(item) {
    G(point) p, q;
    COORD num, den, prefix;
    enum { G(ADD), G(IS_P), G(IS_Q), G(IS_INFINITY) } kind;
};
enum { G(BATCH) = 1024 };
enum { G(SHARED_BYTES) = sizeof(struct G(item)) * G(BATCH) };

static inline void G(load)(G(point) * out, const struct adder *c, uint32_t ref) {
    memcpy(out, G(at)(c, ref), sizeof *out);
    if (ref >= REF_NEGATED) {
        CO(neg)(&out->y, &out->y);
    }
}

/* An operand is infinite, or both have the same x: says what to do instead of adding. Sets num and den. */
static void G(special)(struct adder *c, struct G(item) * e) {
    e->kind = G(ADD);
    if (G(is_infinity)(&e->p)) {
        e->kind = G(IS_Q);
    } else if (G(is_infinity)(&e->q)) {
        e->kind = G(IS_P);
    } else if (!CO(is_zero)(&e->den)) {
        return;
    } else if (CO(is_zero)(&e->num)) { /* doubling: 3x²/2y */
        COORD square;
        CO(sqr)(&square, &e->p.x);
        CO(double)(&e->num, &square);
        CO(add)(&e->num, &e->num, &square);
        CO(double)(&e->den, &e->p.y);
        return;
    } else {
        e->kind = G(IS_INFINITY);
        c->complete = true;
    }
    e->den = CO(one);
}

static void G(add_forward)(COORD *product, struct adder *c, const uint32_t *a, const uint32_t *b,
                           uint32_t count) {
    struct G(item) *items = (struct G(item) *)(void *)c->shared;
    *product = CO(one);
    for (uint32_t i = 0; i < count; i++) {
        struct G(item) *e = &items[i];
        if (i + 8 < count) {
            G(prefetch)(G(at)(c, a[i + 8]));
            G(prefetch)(G(at)(c, b[i + 8]));
        }
        G(load)(&e->p, c, a[i]);
        G(load)(&e->q, c, b[i]);
        e->kind = G(ADD);
        CO(sub)(&e->den, &e->q.x, &e->p.x);
        CO(sub)(&e->num, &e->q.y, &e->p.y);
        if (__builtin_expect(CO(is_zero)(&e->den) || c->complete, 0)) {
            G(special)(c, e);
        }
        e->prefix = *product;
        CO(mul)(product, product, &e->den);
    }
}

static void G(add_backward)(G(point) * out, struct adder *c, COORD *inverse, uint32_t count) {
    const struct G(item) *items = (const struct G(item) *)(const void *)c->shared;
    for (uint32_t i = count; i-- > 0;) {
        const struct G(item) *e = &items[i];
        COORD slope, t;
        CO(mul)(&slope, inverse, &e->prefix);
        CO(mul)(inverse, inverse, &e->den);
        if (__builtin_expect(e->kind != G(ADD), 0)) {
            memset(&out[i], 0, sizeof out[i]);
            if (e->kind != G(IS_INFINITY)) {
                out[i] = e->kind == G(IS_P) ? e->p : e->q;
            }
            continue;
        }
        CO(mul)(&slope, &slope, &e->num);
        CO(sqr)(&t, &slope);
        CO(sub)(&t, &t, &e->p.x);
        CO(sub)(&t, &t, &e->q.x);
        out[i].x = t;
        CO(sub)(&t, &e->p.x, &t);
        CO(mul)(&t, &t, &slope);
        CO(sub)(&out[i].y, &t, &e->p.y);
    }
}

/* work[to + i] = point(a[i]) + point(b[i]). False: cancelled. */
static bool G(add)(struct adder *c, uint32_t to, uint32_t *a, uint32_t *b, uint32_t count) {
    G(point) *work = (G(point) *)(void *)c->work;
    for (uint32_t done = 0; done < count;) {
        uint32_t batch = count - done < G(BATCH) ? count - done : G(BATCH);
        if (adder_is_cancelled(c)) {
            return false;
        }
        COORD product, inverse;
        G(add_forward)(&product, c, a + done, b + done, batch);
        CO(inv)(&inverse, &product);
        G(add_backward)(work + to + done, c, &inverse, batch);
        done += batch;
    }
    return true;
}

/* --- Slots are packed points: Montgomery, R = 2^(64·words), canonical. --- */

struct G(stager) {
    uint8_t unused;
};
static inline void G(stage_begin)(struct G(stager) * s) {
    (void)s;
}
static inline void G(stage_one)(struct G(stager) * s, uint8_t *slot, const uint8_t *packed,
                                bool negative) {
    (void)s;
    G(point) p;
    memcpy(&p, packed, sizeof p);
    if (negative) {
        CO(neg)(&p.y, &p.y);
    }
    memcpy(slot, &p, sizeof p);
}
static inline void G(stage_end)(struct G(stager) * s) {
    (void)s;
}
static inline void G(slot_leave)(G(point) * p) {
    (void)p;
}
static inline void G(slot_negate)(G(point) * p) {
    CO(neg)(&p->y, &p->y);
}
