/* The transform over plain elements: radix 2, recursive, so that sub-transforms stay in cache. Part of ntt_tmpl.c.
 *
 * Level l has 2^(l-1) twiddles, w^0 … of its own root, at offset 2^(l-1) - 1. Everything is canonical.
 */

enum { SCALAR_CHUNK_LOG2 = 8 };

static fr *scalar_twiddles(const struct domain *d, unsigned level) {
    return (fr *)d->twiddles + (((size_t)1 << (level - 1)) - 1);
}

static size_t scalar_twiddle_units(unsigned log2) {
    return log2 ? ((size_t)1 << log2) - 1 : 1;
}

static size_t scalar_twiddle_chunks(unsigned level) {
    return level == 0                       ? 0
           : level - 1 <= SCALAR_CHUNK_LOG2 ? 1
                                            : (size_t)1 << (level - 1 - SCALAR_CHUNK_LOG2);
}

static void scalar_twiddle_build(struct domain *d, unsigned level, size_t chunk_idx) {
    fr *w = scalar_twiddles(d, level), root, factor = fr_one;
    size_t count = (size_t)1 << (level - 1), chunk = (size_t)1 << SCALAR_CHUNK_LOG2;
    root_of_level(&root, d, level);
    if (chunk_idx == 0) {
        for (size_t i = 0; i < count && i < chunk; i++) {
            w[i] = factor;
            fr_mul(&factor, &factor, &root);
        }
        return;
    }
    const uint64_t exponent = chunk * chunk_idx;
    fr_pow(&factor, &root, &exponent, 1);
    for (size_t i = 0; i < chunk; i++) {
        fr_mul(&w[chunk * chunk_idx + i], &w[i], &factor);
    }
}

static void scalar_set_low(struct domain *d, size_t position, const uint64_t fr_value[4]) {
    memcpy((fr *)d->scale_low + position, fr_value, sizeof(fr));
}

static unsigned scalar_radix_log2(unsigned level) {
    (void)level;
    return 1;
}

static void scalar_dif_pass(const struct domain *d, void *block, unsigned level, size_t from,
                            size_t to) {
    const fr *w = scalar_twiddles(d, level);
    fr *low = block, *high = low + ((size_t)1 << (level - 1));
    for (size_t i = from; i < to; i++) {
        fr difference;
        fr_sub(&difference, &low[i], &high[i]);
        fr_add(&low[i], &low[i], &high[i]);
        fr_mul(&high[i], &difference, &w[i]);
    }
}

static void scalar_dit_pass(const struct domain *d, void *block, unsigned level, size_t from,
                            size_t to) {
    const fr *w = scalar_twiddles(d, level);
    fr *low = block, *high = low + ((size_t)1 << (level - 1));
    for (size_t i = from; i < to; i++) {
        fr product;
        fr_mul(&product, &high[i], &w[i]);
        fr_sub(&high[i], &low[i], &product);
        fr_add(&low[i], &low[i], &product);
    }
}

static void scalar_dif_leaf(const struct domain *d, void *block, unsigned level) {
    if (level == 0) {
        return;
    }
    size_t half = (size_t)1 << (level - 1);
    scalar_dif_pass(d, block, level, 0, half);
    scalar_dif_leaf(d, block, level - 1);
    scalar_dif_leaf(d, (fr *)block + half, level - 1);
}

static void scalar_dit_leaf(const struct domain *d, void *block, unsigned level) {
    if (level == 0) {
        return;
    }
    size_t half = (size_t)1 << (level - 1);
    scalar_dit_leaf(d, block, level - 1);
    scalar_dit_leaf(d, (fr *)block + half, level - 1);
    scalar_dit_pass(d, block, level, 0, half);
}

static void scalar_enter(void *vector, const uint64_t *rows, size_t from, size_t to) {
    if ((const void *)rows != vector) {
        memmove((fr *)vector + from, rows + 4 * from, sizeof(fr) * (to - from));
    }
}

static void scalar_multiply(void *c, const void *a, const void *b, bool reduce, size_t from,
                            size_t to) {
    (void)reduce;
    for (size_t i = from; i < to; i++) {
        fr_mul((fr *)c + i, (const fr *)a + i, (const fr *)b + i);
    }
}

static void scalar_scale(const struct domain *d, void *vector, size_t from, size_t to) {
    const size_t mask = ((size_t)1 << d->scale_low_log2) - 1;
    for (size_t i = from; i < to; i++) {
        fr high, *x = (fr *)vector + i;
        memcpy(&high, d->scale_high + 4 * (i >> d->scale_low_log2), sizeof high);
        fr_mul(x, x, (const fr *)d->scale_low + (i & mask));
        fr_mul(x, x, &high);
    }
}

static void scalar_scale_first(const struct domain *d, void *vector) {
    fr kappa_inv;
    memcpy(&kappa_inv, d->kappa_inv, sizeof kappa_inv);
    fr_mul(vector, vector, &kappa_inv);
}

static void scalar_leave_coset(uint8_t *h, const struct domain *d, const void *a, const void *b,
                               const void *c, size_t from, size_t to) {
    const size_t mask = ((size_t)1 << d->log2) - 1;
    fr weight_ab, weight_c;
    memcpy(&weight_ab, d->weights[WEIGHT_AB], sizeof weight_ab);
    memcpy(&weight_c, d->weights[WEIGHT_C], sizeof weight_c);
    for (size_t i = from; i < to; i++) {
        fr x, y;
        fr_mul(&x, (const fr *)a + i, (const fr *)b + i);
        fr_mul(&x, &x, &weight_ab);
        fr_mul(&y, (const fr *)c + i, &weight_c);
        fr_add(&x, &x, &y);
        memcpy(h + sizeof x * ((mask + 1 - i) & mask), &x, sizeof x);
    }
}

static void scalar_leave_powers(uint8_t *h, const struct domain *d, const void *x,
                                const uint64_t weight[4], bool backwards, bool add, size_t from,
                                size_t to) {
    const size_t mask = ((size_t)1 << d->log2) - 1;
    fr factor;
    memcpy(&factor, weight, sizeof factor);
    for (size_t i = from; i < to; i++) {
        fr value, old;
        size_t k = bits_reversed(i, d->log2);
        uint8_t *at = h + sizeof value * (backwards ? (mask + 1 - k) & mask : k);
        fr_mul(&value, (const fr *)x + i, &factor);
        if (add) {
            memcpy(&old, at, sizeof old);
            fr_add(&value, &value, &old);
        }
        memcpy(at, &value, sizeof value);
    }
}

static void scalar_leave_values(uint8_t *out, const struct domain *d, const void *x,
                                const uint64_t weight[4], size_t from, size_t to) {
    const size_t mask = ((size_t)1 << d->log2) - 1;
    fr factor;
    memcpy(&factor, weight, sizeof factor);
    for (size_t i = from; i < to; i++) {
        fr value;
        fr_mul(&value, (const fr *)x + i, &factor);
        memcpy(out + sizeof value * ((mask + 1 - i) & mask), &value, sizeof value);
    }
}

static const struct ntt_body scalar_body = {
    .unit_log2 = 0,
    .least_log2 = 0,
    .unit_bytes = sizeof(fr),
    .entered_log2 = 0,
    .product_log2 = 0,
    .twiddle_units = scalar_twiddle_units,
    .twiddle_chunks = scalar_twiddle_chunks,
    .twiddle_build = scalar_twiddle_build,
    .set_low = scalar_set_low,
    .radix_log2 = scalar_radix_log2,
    .dif_pass = scalar_dif_pass,
    .dit_pass = scalar_dit_pass,
    .dif_leaf = scalar_dif_leaf,
    .dit_leaf = scalar_dit_leaf,
    .enter = scalar_enter,
    .multiply = scalar_multiply,
    .scale = scalar_scale,
    .scale_first = scalar_scale_first,
    .leave_coset = scalar_leave_coset,
    .leave_powers = scalar_leave_powers,
    .leave_values = scalar_leave_values,
};
