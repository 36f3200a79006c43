/* The table of a window grows by doubling: entries 2^k … 2^(k+1) - 1 are the entries below plus 2^k·base, so each round is one
 * list of independent additions, as wide as all windows together. Multiples of the window's base need no table of their
 * own: they are G doubled again and again.
 *
 *     window w    digit   0      1            2             …                         d < 2^bits
 *                         O_w    O_w + B_w    O_w + 2·B_w   …     B_w = 2^(bits·w)·G, O_0 = -ΣO_w for w > 0
 */
#include "node/cpu/fixed.h"

#include "node/base/mem.h"

#include <stdatomic.h>
#include <string.h>

enum {
    BITS_LARGE = 12,
    BITS_SMALL = 8,
    LARGE_FROM = 1 << 13, /* multiples from which on the large tables pay */
    SCALAR_WORDS = 4
};

struct fixed {
    const struct fixed_ops *ops; /* constant */
    const struct curve *curve;
    enum point_group group;
    unsigned bits, windows_count;
    uint8_t *entries; /* owned: windows_count tables of 2^bits points */
};

static size_t entries_count(const struct fixed *f) {
    return (size_t)1 << f->bits;
}

static uint8_t *entry(const struct fixed *f, unsigned window, size_t digit) {
    return f->entries + (window * entries_count(f) + digit) * f->ops->point_bytes;
}

/* O_w for all windows: random ones, and the first takes their sum off. In G1 and G2 alike by the curve's own functions. */
static FALLIBLE put_offsets(struct fixed *f) {
    const struct curve *c = f->curve;
    struct g1 sum1 = {{0}}, p1;
    struct g2 sum2 = {{0}}, p2;
    for (unsigned w = 1; w < f->windows_count; w++) {
        struct scalar k;
        TRY(scalar_random(&k, c));
        if (f->group == GROUP_G1) {
            c->g1_mul(&p1, &c->g1_generator, &k);
            c->g1_add(&sum1, &sum1, &p1);
            g1_store(entry(f, w, 0), c, &p1);
        } else {
            c->g2_mul(&p2, &c->g2_generator, &k);
            c->g2_add(&sum2, &sum2, &p2);
            g2_store(entry(f, w, 0), c, &p2);
        }
    }
    if (f->group == GROUP_G1) {
        c->g1_neg(&sum1, &sum1);
        g1_store(entry(f, 0, 0), c, &sum1);
    } else {
        c->g2_neg(&sum2, &sum2);
        g2_store(entry(f, 0, 0), c, &sum2);
    }
    return OK;
}

/* 2^0·G, 2^1·G, … packed. */
static void put_powers(uint8_t *out, const struct fixed *f) {
    const struct curve *c = f->curve;
    struct g1 p1 = c->g1_generator;
    struct g2 p2 = c->g2_generator;
    for (unsigned i = 0; i < f->bits * f->windows_count; i++) {
        if (f->group == GROUP_G1) {
            g1_store(out + i * f->ops->point_bytes, c, &p1);
            c->g1_add(&p1, &p1, &p1);
        } else {
            g2_store(out + i * f->ops->point_bytes, c, &p2);
            c->g2_add(&p2, &p2, &p2);
        }
    }
}

/* Doubles one window's table: batches of its lower half plus one power. */
static FALLIBLE grow(struct fixed *f, unsigned window, unsigned k, const uint8_t *power) {
    const uint8_t *a[FIXED_BATCH], *b[FIXED_BATCH];
    size_t half = (size_t)1 << k;
    for (size_t from = 0; from < half; from += FIXED_BATCH) {
        size_t count = half - from < FIXED_BATCH ? half - from : FIXED_BATCH;
        for (size_t i = 0; i < count; i++) {
            a[i] = entry(f, window, from + i);
            b[i] = power;
        }
        REQUIRE(f->ops->add(entry(f, window, half + from), a, b, count), E_INTERNAL,
                "two points of a fixed-base table met");
    }
    return OK;
}

FALLIBLE fixed_open(struct fixed **out, const struct cpu_ops *ops, enum point_group group,
                    uint64_t count) {
    AUTO(fixed_close) struct fixed *f = NULL;
    AUTO(mem_free_ptr) uint8_t *powers = NULL;
    TRY(mem_new(&f, 1, sizeof *f));
    f->ops = &ops->fixed[group];
    f->curve = curve_by_id(ops->curve);
    f->group = group;
    f->bits = count >= LARGE_FROM ? BITS_LARGE : BITS_SMALL;
    f->windows_count = (ops->scalar_bits + f->bits - 1) / f->bits;
    TRY(mem_new_raw(&f->entries, f->windows_count * entries_count(f), f->ops->point_bytes));
    TRY(mem_new_raw(&powers, (size_t)f->bits * f->windows_count, f->ops->point_bytes));
    TRY(put_offsets(f));
    put_powers(powers, f);
    for (unsigned w = 0; w < f->windows_count; w++) {
        for (unsigned k = 0; k < f->bits; k++) {
            TRY(grow(f, w, k, powers + ((size_t)w * f->bits + k) * f->ops->point_bytes));
        }
    }
    *out = TAKE(f);
    return OK;
}

void fixed_close(struct fixed **f) {
    if (*f) {
        mem_free((*f)->entries);
        mem_free_ptr(f);
    }
}

static size_t digit_of(const struct scalar *s, unsigned window, unsigned bits) {
    unsigned bit = window * bits, word = bit / 64, shift = bit % 64;
    uint64_t v = s->w[word] >> shift;
    if (shift + bits > 64 && word + 1 < SCALAR_WORDS) {
        v |= s->w[word + 1] << (64 - shift);
    }
    return (size_t)(v & ((UINT64_C(1) << bits) - 1));
}

struct multiply {
    uint8_t *out;
    const struct fixed *f;
    const struct scalar *scalars;
    size_t count;
    atomic_bool met;
};

/* Zero scalars stand aside: their last sum would be infinite. They are left as zero bytes. */
static void multiply_batch(void *ctx, size_t idx, unsigned worker) {
    struct multiply *m = ctx;
    const struct fixed *f = m->f;
    size_t from = idx * FIXED_BATCH, point = f->ops->point_bytes, kept = 0,
           count = m->count - from < FIXED_BATCH ? m->count - from : FIXED_BATCH;
    uint32_t places[FIXED_BATCH];
    const uint8_t *a[FIXED_BATCH], *b[FIXED_BATCH];
    uint8_t sums[FIXED_BATCH * G2_BYTES_MAX];
    (void)worker;
    for (size_t i = 0; i < count; i++) {
        if (!scalar_is_zero(&m->scalars[from + i])) {
            a[kept] = entry(f, 0, digit_of(&m->scalars[from + i], 0, f->bits));
            places[kept++] = (uint32_t)i;
        }
    }
    for (unsigned w = 1; w < f->windows_count; w++) {
        for (size_t k = 0; k < kept; k++) {
            b[k] = entry(f, w, digit_of(&m->scalars[from + places[k]], w, f->bits));
        }
        if (!f->ops->add(sums, a, b, kept)) {
            atomic_store(&m->met, true);
            return;
        }
        for (size_t k = 0; k < kept; k++) {
            a[k] = sums + k * point;
        }
    }
    memset(m->out + from * point, 0, count * point);
    for (size_t k = 0; k < kept; k++) {
        memcpy(m->out + (from + places[k]) * point, sums + k * point, point);
    }
}

FALLIBLE fixed_multiply(uint8_t *out, const struct fixed *f, const struct scalar *scalars,
                        size_t count, struct pool *pool) {
    struct multiply m = {.out = out, .f = f, .scalars = scalars, .count = count};
    pool_for(pool, (count + FIXED_BATCH - 1) / FIXED_BATCH, multiply_batch, &m);
    REQUIRE(!atomic_load(&m.met), E_INTERNAL,
            "two points of a fixed-base multiplication met, which chance does once in 2^250 times");
    return OK;
}
