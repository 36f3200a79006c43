/* The transform eight elements at a time: radix 4, recursive. Part of ntt_tmpl.c.
 *
 * A unit is eight neighbours as five vectors of 52-bit limbs. The last three levels act inside units: eight units are
 * transposed, so that lanes become units and the twiddles constants. DIF leaves them transposed, and DIT expects it:
 *
 *     after DIF   lane k of unit u holds position (u & ~7)·8 + 8k + (u & 7)
 *
 * A transform is linear, so data needs no change of Montgomery form; only twiddles are in R = 2^260. Bounds:
 *
 *     DIF    in and out < 2p + 2^-40 p; sums are reduced in every pass (up to 8p before)
 *     DIT    grows by 2p a level from 2p after the base; brought back by a product with one at levels 14 and 24, so never
 *            above 24p; twiddles < 1.03p keep products of that below 2p
 *
 * Level l has 2^(l-4) units of twiddles from unit 2^(l-4) on; behind all of them lie powers 0 to 3 of the eighth root.
 *
 * Cost     4.4-4.9 ns a butterfly, 40 bytes an element.
 */

enum { VEC_CHUNK_LOG2 = 8, VEC_REDUCE_FIRST = 14, VEC_REDUCE_SECOND = 24 };

static fr_x8 *vec_twiddles(const struct domain *d, unsigned level) {
    return (fr_x8 *)d->twiddles + ((size_t)1 << (level - 4));
}

static const fr_x8 *vec_eighth(const struct domain *d) {
    return (const fr_x8 *)d->twiddles + ((size_t)1 << (d->log2 - 3));
}

static size_t vec_twiddle_units(unsigned log2) {
    return ((size_t)1 << (log2 - 3)) + 4;
}

static size_t vec_twiddle_chunks(unsigned level) {
    if (level < 3) {
        return 0;
    }
    return level <= 4 + VEC_CHUNK_LOG2 ? 1 : (size_t)1 << (level - 4 - VEC_CHUNK_LOG2);
}

/* Eight scalar elements to one unit in R = 2^260, canonical. */
static void vec_unit_of(fr_x8 *out, const fr x[8]) {
    static const fr to_r52 = {FR_IN64};
    fr y[8];
    const uint8_t *from[8];
    words_x8 w[FR_LIMBS];
    for (int i = 0; i < 8; i++) {
        fr_mul(&y[i], &x[i], &to_r52);
        from[i] = (const uint8_t *)&y[i];
    }
    fr_x8_gather(w, from);
    fr_x8_split(out, w, 0);
}

static void vec_twiddle_build(struct domain *d, unsigned level, size_t chunk_idx) {
    fr root, x[8];
    fr_x8 factor;
    root_of_level(&root, d, level);
    if (level == 3) {
        fr_x8 *eighth = (fr_x8 *)d->twiddles + ((size_t)1 << (d->log2 - 3));
        x[0] = fr_one;
        for (int i = 0; i < 4; i++) {
            fr_x8_from_scalar(&eighth[i], &x[0]);
            fr_mul(&x[0], &x[0], &root);
        }
        return;
    }
    fr_x8 *w = vec_twiddles(d, level);
    const size_t count = (size_t)1 << (level - 4), chunk = (size_t)1 << VEC_CHUNK_LOG2;
    if (chunk_idx > 0) {
        const uint64_t exponent = 8 * chunk * chunk_idx;
        fr_pow(&root, &root, &exponent, 1);
        fr_x8_from_scalar(&factor, &root);
        for (size_t i = 0; i < chunk; i++) {
            fr_x8_mul(&w[chunk * chunk_idx + i], &w[i], &factor);
        }
        return;
    }
    x[0] = fr_one;
    for (int i = 1; i < 8; i++) {
        fr_mul(&x[i], &x[i - 1], &root);
    }
    vec_unit_of(&w[0], x);
    fr_mul(&x[0], &x[7], &root); /* w^8, squared with every doubling */
    for (size_t have = 1; have < count && have < chunk; have *= 2) {
        fr_x8_from_scalar(&factor, &x[0]);
        for (size_t i = 0; i < have; i++) {
            fr_x8_mul(&w[have + i], &w[i], &factor);
        }
        fr_sqr(&x[0], &x[0]);
    }
}

/* Position of an element after DIF to its unit and lane. */
static void vec_set_low(struct domain *d, size_t position, const uint64_t fr_value[4]) {
    static const fr to_r52 = {FR_IN64};
    const size_t unit = (position >> 6) * 8 + (position & 7), lane = position >> 3 & 7;
    fr value;
    memcpy(&value, fr_value, sizeof value);
    fr_mul(&value, &value, &to_r52);
    uint8_t *at = (uint8_t *)((fr_x8 *)d->scale_low + unit) + 8 * lane;
    for (int limb = 0; limb < FR_LIMBS52; limb++) {
        const int bit = 52 * limb, word = bit / 64, offset = bit % 64;
        uint64_t part = value.w[word] >> offset;
        if (offset > 12 && word + 1 < FR_LIMBS) {
            part |= value.w[word + 1] << (64 - offset);
        }
        part &= 0xfffffffffffff;
        memcpy(at + 64 * limb, &part, sizeof part);
    }
}

static unsigned vec_radix_log2(unsigned level) {
    return level & 1 ? 1 : 2;
}

VEC_INLINE void vec_difference(fr_x8 *out, const fr_x8 *a, const fr_x8 *b, const uint64_t *lift) {
    fr_x8_sub_raw(out, a, b);
    fr_x8_add_const(out, lift);
}

static void vec_transpose(fr_x8 *units) {
    for (int limb = 0; limb < FR_LIMBS52; limb++) {
        words_x8 rows[8];
        for (int i = 0; i < 8; i++) {
            rows[i] = units[i].l[limb];
        }
        words_x8_transpose(rows);
        for (int i = 0; i < 8; i++) {
            units[i].l[limb] = rows[i];
        }
    }
}

/* --- DIF: a + b, (a - b)·w --- */

static void vec_dif2(const fr_x8 *w, fr_x8 *a, size_t half, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        fr_x8 x;
        vec_difference(&x, &a[i], &a[i + half], fr_x8_p4);
        fr_x8_norm(&x);
        fr_x8_add_raw(&a[i], &a[i], &a[i + half]);
        fr_x8_red(&a[i]);
        fr_x8_mul(&a[i + half], &x, &w[i]);
    }
}

static void vec_dif4(const fr_x8 *w1, const fr_x8 *w2, fr_x8 *a, size_t quarter, size_t from,
                     size_t to) {
    for (size_t i = from; i < to; i++) {
        fr_x8 sum0, sum1, diff0, diff1, x;
        fr_x8_add_raw(&sum0, &a[i], &a[i + 2 * quarter]);
        vec_difference(&diff0, &a[i], &a[i + 2 * quarter], fr_x8_p4);
        fr_x8_norm(&diff0);
        fr_x8_add_raw(&sum1, &a[i + quarter], &a[i + 3 * quarter]);
        vec_difference(&diff1, &a[i + quarter], &a[i + 3 * quarter], fr_x8_p4);
        fr_x8_norm(&diff1);
        fr_x8_mul(&diff0, &diff0, &w1[i]);
        fr_x8_mul(&diff1, &diff1, &w1[i + quarter]);
        fr_x8_add_raw(&x, &sum0, &sum1);
        fr_x8_red(&x);
        a[i] = x;
        vec_difference(&x, &sum0, &sum1, fr_x8_p6);
        fr_x8_norm(&x);
        fr_x8_mul(&a[i + quarter], &x, &w2[i]);
        fr_x8_add_raw(&x, &diff0, &diff1);
        fr_x8_red(&x);
        a[i + 2 * quarter] = x;
        vec_difference(&x, &diff0, &diff1, fr_x8_p4);
        fr_x8_norm(&x);
        fr_x8_mul(&a[i + 3 * quarter], &x, &w2[i]);
    }
}

/* One butterfly of the base: < 2p in and out; w NULL is 1. */
VEC_INLINE void vec_dif_base2(fr_x8 *a, fr_x8 *b, const fr_x8 *w) {
    fr_x8 x;
    vec_difference(&x, a, b, fr_x8_p4);
    fr_x8_add_raw(a, a, b);
    fr_x8_red(a);
    if (w) {
        fr_x8_norm(&x);
        fr_x8_mul(b, &x, w);
    } else {
        fr_x8_red(&x);
        *b = x;
    }
}

/* The last three levels of eight units. */
static void vec_dif_base(const fr_x8 *eighth, fr_x8 *a) {
    vec_transpose(a);
    for (int j = 0; j < 4; j++) {
        vec_dif_base2(&a[j], &a[j + 4], j ? &eighth[j] : NULL);
    }
    for (int g = 0; g < 8; g += 4) {
        vec_dif_base2(&a[g], &a[g + 2], NULL);
        vec_dif_base2(&a[g + 1], &a[g + 3], &eighth[2]);
    }
    for (int g = 0; g < 8; g += 2) {
        vec_dif_base2(&a[g], &a[g + 1], NULL);
    }
}

static void vec_dif_pass(const struct domain *d, void *block, unsigned level, size_t from,
                         size_t to) {
    size_t units = (size_t)1 << (level - 3);
    if (level & 1) {
        vec_dif2(vec_twiddles(d, level), block, units / 2, from, to);
    } else {
        vec_dif4(vec_twiddles(d, level), vec_twiddles(d, level - 1), block, units / 4, from, to);
    }
}

static void vec_dif_leaf(const struct domain *d, void *block, unsigned level) {
    fr_x8 *a = block;
    if (level == 6) {
        vec_dif4(vec_twiddles(d, 6), vec_twiddles(d, 5), a, 2, 0, 2);
        for (int i = 0; i < 4; i++) {
            vec_dif2(vec_twiddles(d, 4), a + 2 * i, 1, 0, 1);
        }
        vec_dif_base(vec_eighth(d), a);
        return;
    }
    const unsigned radix = vec_radix_log2(level);
    const size_t part = (size_t)1 << (level - radix - 3);
    vec_dif_pass(d, a, level, 0, part);
    for (size_t i = 0; i < (size_t)1 << radix; i++) {
        vec_dif_leaf(d, a + i * part, level - radix);
    }
}

/* --- DIT: a + b·w, a - b·w --- */

static void vec_dit2(const fr_x8 *w, fr_x8 *a, size_t half, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        fr_x8 x, y;
        fr_x8_mul(&x, &a[i + half], &w[i]);
        vec_difference(&y, &a[i], &x, fr_x8_p2);
        fr_x8_norm(&y);
        a[i + half] = y;
        fr_x8_add_raw(&a[i], &a[i], &x);
        fr_x8_norm(&a[i]);
    }
}

static void vec_dit4(const fr_x8 *w1, const fr_x8 *w2, fr_x8 *a, size_t quarter, size_t from,
                     size_t to) {
    for (size_t i = from; i < to; i++) {
        fr_x8 x, y, sum0, diff0, sum1, diff1;
        fr_x8_mul(&x, &a[i + quarter], &w2[i]);
        fr_x8_add_raw(&sum0, &a[i], &x);
        vec_difference(&diff0, &a[i], &x, fr_x8_p2);
        fr_x8_mul(&y, &a[i + 3 * quarter], &w2[i]);
        fr_x8_add_raw(&sum1, &a[i + 2 * quarter], &y);
        fr_x8_norm(&sum1);
        vec_difference(&diff1, &a[i + 2 * quarter], &y, fr_x8_p2);
        fr_x8_norm(&diff1);
        fr_x8_mul(&x, &sum1, &w1[i]);
        fr_x8_mul(&y, &diff1, &w1[i + quarter]);
        fr_x8_add_raw(&sum1, &sum0, &x);
        fr_x8_norm(&sum1);
        a[i] = sum1;
        vec_difference(&sum1, &sum0, &x, fr_x8_p2);
        fr_x8_norm(&sum1);
        a[i + 2 * quarter] = sum1;
        fr_x8_add_raw(&sum1, &diff0, &y);
        fr_x8_norm(&sum1);
        a[i + quarter] = sum1;
        vec_difference(&sum1, &diff0, &y, fr_x8_p2);
        fr_x8_norm(&sum1);
        a[i + 3 * quarter] = sum1;
    }
}

/* One butterfly of the base: < 2p in and out; w NULL is 1. */
VEC_INLINE void vec_dit_base2(fr_x8 *a, fr_x8 *b, const fr_x8 *w) {
    fr_x8 x;
    if (w) {
        fr_x8_mul(b, b, w);
    }
    vec_difference(&x, a, b, fr_x8_p4);
    fr_x8_red(&x);
    fr_x8_add_raw(a, a, b);
    fr_x8_red(a);
    *b = x;
}

/* The first three levels of eight units. */
static void vec_dit_base(const fr_x8 *eighth, fr_x8 *a) {
    for (int g = 0; g < 8; g += 2) {
        vec_dit_base2(&a[g], &a[g + 1], NULL);
    }
    for (int g = 0; g < 8; g += 4) {
        vec_dit_base2(&a[g], &a[g + 2], NULL);
        vec_dit_base2(&a[g + 1], &a[g + 3], &eighth[2]);
    }
    for (int j = 0; j < 4; j++) {
        vec_dit_base2(&a[j], &a[j + 4], j ? &eighth[j] : NULL);
    }
    vec_transpose(a);
}

/* < 35p to < 2p. */
static void vec_reduce(fr_x8 *a, size_t from, size_t to) {
    fr_x8 one;
    fr_x8_broadcast(&one, fr_x8_one52);
    for (size_t i = from; i < to; i++) {
        fr_x8_mul(&a[i], &a[i], &one);
    }
}

static void vec_dit_pass(const struct domain *d, void *block, unsigned level, size_t from,
                         size_t to) {
    const unsigned radix = vec_radix_log2(level);
    const size_t part = (size_t)1 << (level - radix - 3);
    fr_x8 *a = block;
    if (radix == 1) {
        vec_dit2(vec_twiddles(d, level), a, part, from, to);
    } else {
        vec_dit4(vec_twiddles(d, level), vec_twiddles(d, level - 1), a, part, from, to);
    }
    if (level == VEC_REDUCE_FIRST || level == VEC_REDUCE_SECOND) {
        for (size_t i = 0; i < (size_t)1 << radix; i++) {
            vec_reduce(a, i * part + from, i * part + to);
        }
    }
}

static void vec_dit_leaf(const struct domain *d, void *block, unsigned level) {
    fr_x8 *a = block;
    if (level == 6) {
        vec_dit_base(vec_eighth(d), a);
        for (int i = 0; i < 4; i++) {
            vec_dit2(vec_twiddles(d, 4), a + 2 * i, 1, 0, 1);
        }
        vec_dit4(vec_twiddles(d, 6), vec_twiddles(d, 5), a, 2, 0, 2);
        return;
    }
    const unsigned radix = vec_radix_log2(level);
    const size_t part = (size_t)1 << (level - radix - 3);
    for (size_t i = 0; i < (size_t)1 << radix; i++) {
        vec_dit_leaf(d, a + i * part, level - radix);
    }
    vec_dit_pass(d, a, level, 0, part);
}

/* --- In and out --- */

/* rows may lie in the vector's own tail: units are written from the front and never overtake what is still to be read, if
 * one call does all. */
static void vec_enter(void *vector, const uint64_t *rows, size_t from, size_t to) {
    fr_x8 *a = vector;
    for (size_t i = from; i < to; i++) {
        const uint8_t *at[8];
        words_x8 w[FR_LIMBS];
        for (size_t k = 0; k < 8; k++) {
            at[k] = (const uint8_t *)(rows + 4 * (8 * i + k));
        }
        fr_x8_gather(w, at);
        fr_x8_split(&a[i], w, 0);
    }
}

/* a, b < 24p, so a·b/R + p < 18p. */
static void vec_multiply(void *c, const void *a, const void *b, bool reduce, size_t from,
                         size_t to) {
    for (size_t i = from; i < to; i++) {
        fr_x8_mul((fr_x8 *)c + i, (const fr_x8 *)a + i, (const fr_x8 *)b + i);
    }
    if (reduce) {
        vec_reduce(c, from, to);
    }
}

static void vec_scale(const struct domain *d, void *vector, size_t from, size_t to) {
    const unsigned low_log2 = d->scale_low_log2 - 3;
    const size_t mask = ((size_t)1 << low_log2) - 1;
    while (from < to) { /* as far as one high part goes */
        size_t end = (from | mask) + 1 < to ? (from | mask) + 1 : to;
        fr value;
        fr_x8 high;
        memcpy(&value, d->scale_high + 4 * (from >> low_log2), sizeof value);
        fr_x8_from_scalar(&high, &value);
        for (; from < end; from++) {
            fr_x8 *x = (fr_x8 *)vector + from;
            fr_x8_mul(x, x, (const fr_x8 *)d->scale_low + (from & mask));
            fr_x8_mul(x, x, &high);
        }
    }
}

/* Position 0 is lane 0 of unit 0. */
static void vec_scale_first(const struct domain *d, void *vector) {
    fr lanes[8];
    fr_x8 factor;
    memcpy(&lanes[0], d->kappa_inv, sizeof lanes[0]);
    for (int i = 1; i < 8; i++) {
        lanes[i] = fr_one;
    }
    vec_unit_of(&factor, lanes);
    fr_x8_mul(vector, vector, &factor);
}

/* A plain integer in all lanes. */
VEC_INLINE void vec_broadcast(fr_x8 *out, const uint64_t integer[4]) {
    words_x8 w[FR_LIMBS];
    for (int i = 0; i < FR_LIMBS; i++) {
        w[i] = VEC_BROADCAST(integer[i]);
    }
    fr_x8_split(out, w, 0);
}

/* Normalised, < 4p, to canonical: less 2p, p, p where that is not negative. */
VEC_INLINE void vec_canonical(fr_x8 *a) {
    for (int step = 0; step < 3; step++) {
        const uint64_t *less = step == 0 ? fr_x8_p2 : fr_x8_p;
        fr_x8 t;
        for (int i = 0; i < FR_LIMBS52; i++) {
            t.l[i] = _mm512_sub_epi64(a->l[i], VEC_BROADCAST(less[i]));
        }
        fr_x8_norm(&t);
        __mmask8 negative = _mm512_movepi64_mask(t.l[FR_LIMBS52 - 1]);
        for (int i = 0; i < FR_LIMBS52; i++) {
            a->l[i] = _mm512_mask_mov_epi64(t.l[i], negative, a->l[i]);
        }
    }
}

VEC_INLINE void vec_store(uint8_t *const *to, fr_x8 *a) {
    words_x8 w[FR_LIMBS];
    vec_canonical(a);
    fr_x8_join(w, a);
    fr_x8_scatter(to, w);
}

/* Where the eight elements of unit i go, counted backwards from 0. */
VEC_INLINE void vec_backwards(uint8_t **to, uint8_t *out, size_t mask, size_t i) {
    for (size_t k = 0; k < 8; k++) {
        to[k] = out + sizeof(fr) * ((mask + 1 - (8 * i + k)) & mask);
    }
}

static void vec_leave_coset(uint8_t *h, const struct domain *d, const void *a, const void *b,
                            const void *c, size_t from, size_t to) {
    const size_t mask = ((size_t)1 << d->log2) - 1;
    fr_x8 weight_ab, weight_c;
    vec_broadcast(&weight_ab, d->weights[WEIGHT_AB]);
    vec_broadcast(&weight_c, d->weights[WEIGHT_C]);
    for (size_t i = from; i < to; i++) {
        uint8_t *at[8];
        fr_x8 x, y;
        fr_x8_mul(&x, (const fr_x8 *)a + i, (const fr_x8 *)b + i); /* < 18p */
        fr_x8_mul(&x, &x, &weight_ab);
        fr_x8_mul(&y, (const fr_x8 *)c + i, &weight_c);
        fr_x8_add_raw(&x, &x, &y);
        fr_x8_norm(&x);
        vec_backwards(at, h, mask, i);
        vec_store(at, &x);
    }
}

static void vec_leave_powers(uint8_t *h, const struct domain *d, const void *x,
                             const uint64_t weight[4], bool backwards, bool add, size_t from,
                             size_t to) {
    const size_t mask = ((size_t)1 << d->log2) - 1;
    fr_x8 factor;
    vec_broadcast(&factor, weight);
    for (size_t i = from; i < to; i++) {
        uint8_t *at[8];
        fr_x8 value, old;
        for (size_t k = 0; k < 8; k++) {
            size_t j = bits_reversed((i & ~(size_t)7) * 8 + 8 * k + (i & 7), d->log2);
            at[k] = h + sizeof(fr) * (backwards ? (mask + 1 - j) & mask : j);
        }
        fr_x8_mul(&value, (const fr_x8 *)x + i, &factor);
        if (add) {
            words_x8 w[FR_LIMBS];
            fr_x8_gather(w, (const uint8_t *const *)at);
            fr_x8_split(&old, w, 0);
            fr_x8_add_raw(&value, &value, &old);
            fr_x8_norm(&value);
        }
        vec_store(at, &value);
    }
}

static void vec_leave_values(uint8_t *out, const struct domain *d, const void *x,
                             const uint64_t weight[4], size_t from, size_t to) {
    const size_t mask = ((size_t)1 << d->log2) - 1;
    fr_x8 factor;
    vec_broadcast(&factor, weight);
    for (size_t i = from; i < to; i++) {
        uint8_t *at[8];
        fr_x8 value;
        fr_x8_mul(&value, (const fr_x8 *)x + i, &factor);
        vec_backwards(at, out, mask, i);
        vec_store(at, &value);
    }
}

static const struct ntt_body vec_body = {
    .unit_log2 = 3,
    .least_log2 = 6,
    .unit_bytes = sizeof(fr_x8),
    .entered_log2 = 4,
    .product_log2 = 8,
    .twiddle_units = vec_twiddle_units,
    .twiddle_chunks = vec_twiddle_chunks,
    .twiddle_build = vec_twiddle_build,
    .set_low = vec_set_low,
    .radix_log2 = vec_radix_log2,
    .dif_pass = vec_dif_pass,
    .dit_pass = vec_dit_pass,
    .dif_leaf = vec_dif_leaf,
    .dit_leaf = vec_dit_leaf,
    .enter = vec_enter,
    .multiply = vec_multiply,
    .scale = vec_scale,
    .scale_first = vec_scale_first,
    .leave_coset = vec_leave_coset,
    .leave_powers = vec_leave_powers,
    .leave_values = vec_leave_values,
};
