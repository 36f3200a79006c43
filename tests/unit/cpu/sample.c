/* Distinct points come by repeated addition of a fixed step, one addition each. */
#include "tests/unit/cpu/sample.h"

#include "node/base/mem.h"

#include <string.h>

void sample_scalar(struct scalar *out, const struct curve *c) {
    do {
        rng_fill(check_rng(), out, sizeof *out);
        out->w[3] >>= 1;
    } while (!scalar_is_valid(c, out));
}

/* A point of either group in the larger struct's words. */
static void multiply(struct g2 *out, const struct sample *s, const struct scalar *k) {
    memset(out, 0, sizeof *out);
    if (s->group == GROUP_G1) {
        struct g1 p;
        s->curve->g1_mul(&p, &s->curve->g1_generator, k);
        memcpy(out, &p, sizeof p);
    } else {
        s->curve->g2_mul(out, &s->curve->g2_generator, k);
    }
}

static void add(struct g2 *out, const struct sample *s, const struct g2 *a, const struct g2 *b) {
    if (s->group == GROUP_G2) {
        s->curve->g2_add(out, a, b);
        return;
    }
    struct g1 x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    s->curve->g1_add(&x, &x, &y);
    memset(out, 0, sizeof *out);
    memcpy(out, &x, sizeof x);
}

static void set_point(struct sample *s, size_t idx, const struct g2 *p, const struct scalar *log) {
    memcpy(s->points + idx * s->point_bytes, p, s->point_bytes);
    s->logs[idx] = *log;
}

static void copy_point(struct sample *s, size_t to, size_t from) {
    memcpy(s->points + to * s->point_bytes, s->points + from * s->point_bytes, s->point_bytes);
    s->logs[to] = s->logs[from];
}

static void negate_point(struct sample *s, size_t idx) {
    const struct scalar zero = {{0}};
    uint8_t *at = s->points + idx * s->point_bytes;
    if (s->group == GROUP_G1) {
        struct g1 p;
        g1_load(&p, s->curve, at);
        s->curve->g1_neg(&p, &p);
        g1_store(at, s->curve, &p);
    } else {
        struct g2 p;
        g2_load(&p, s->curve, at);
        s->curve->g2_neg(&p, &p);
        g2_store(at, s->curve, &p);
    }
    s->curve->scalar_sub(&s->logs[idx], &zero, &s->logs[idx]);
}

static void clear_point(struct sample *s, size_t idx) {
    memset(s->points + idx * s->point_bytes, 0, s->point_bytes);
    memset(&s->logs[idx], 0, sizeof s->logs[idx]);
}

static void set_distinct(struct sample *s) {
    struct scalar log, step;
    struct g2 p, stride;
    sample_scalar(&log, s->curve);
    sample_scalar(&step, s->curve);
    multiply(&p, s, &log);
    multiply(&stride, s, &step);
    for (size_t i = 0; i < s->count; i++) {
        set_point(s, i, &p, &log);
        add(&p, s, &p, &stride);
        s->curve->scalar_add(&log, &log, &step);
    }
}

void sample_new(struct sample *out, const struct curve *c, enum point_group group, size_t count) {
    *out = (struct sample){
        .curve = c, .group = group, .count = count, .point_bytes = curve_point_bytes(c, group)};
    out->points_block = mem_alloc(count * out->point_bytes + 1);
    out->scalars_block = mem_alloc(count * sizeof(struct scalar) + 1);
    out->logs = mem_alloc(count * sizeof(struct scalar));
    CHECK(out->points_block && out->scalars_block && out->logs);
    out->points = out->points_block + 1;
    out->scalars = out->scalars_block + 1;
    set_distinct(out);
}

void sample_free(struct sample *s) {
    mem_free(s->points_block);
    mem_free(s->scalars_block);
    mem_free(s->logs);
}

void sample_set_bases(struct sample *s, enum sample_bases kind) {
    set_distinct(s);
    for (size_t i = 0; i < s->count; i++) {
        enum sample_bases own =
            kind == BASES_MIXED ? (enum sample_bases)rng_below(check_rng(), BASES_MIXED) : kind;
        switch (own) {
        case BASES_SAME:
            copy_point(s, i, 0);
            break;
        case BASES_TWO:
            copy_point(s, i, i & 1 && s->count > 1);
            break;
        case BASES_OPPOSITE:
            copy_point(s, i, i ? i - 1 : 0);
            negate_point(s, i);
            break;
        case BASES_INFINITE:
            clear_point(s, i);
            break;
        case BASES_SPARSE:
            if (rng_below(check_rng(), 8)) {
                clear_point(s, i);
            }
            break;
        default:
            break;
        }
    }
}

static void extreme(struct scalar *out, const struct curve *c) {
    static const unsigned bits[] = {0, 1, 15, 16, 47, 48, 49, 62, 63, 64, 65, 127, 128, 191, 192};
    struct scalar base = {{0}}, delta = {{rng_below(check_rng(), 3)}};
    uint64_t which = rng_below(check_rng(), COUNT_OF(bits) + 2);
    if (which < COUNT_OF(bits)) {
        base.w[bits[which] / 64] = UINT64_C(1) << (bits[which] % 64);
    } else if (which == COUNT_OF(bits)) { /* r/2 */
        for (int i = 0; i < 4; i++) {
            base.w[i] = c->r.w[i] >> 1 | (i < 3 ? c->r.w[i + 1] << 63 : 0);
        }
    }
    if (rng_u64(check_rng()) & 1) {
        c->scalar_add(out, &base, &delta);
    } else {
        c->scalar_sub(out, &base, &delta);
    }
    if (rng_u64(check_rng()) & 1) {
        const struct scalar zero = {{0}};
        c->scalar_sub(out, &zero, out);
    }
}

void sample_set_scalars(struct sample *s, enum sample_scalars kind) {
    const struct curve *c = s->curve;
    const struct scalar zero = {{0}}, one = {{1}};
    struct scalar same;
    sample_scalar(&same, c);
    for (size_t i = 0; i < s->count; i++) {
        struct scalar x = zero;
        uint64_t percent = rng_below(check_rng(), 100);
        switch (kind) {
        case SCALARS_FULL:
            sample_scalar(&x, c);
            break;
        case SCALARS_ONE:
            x = one;
            break;
        case SCALARS_BITS:
            x.w[0] = percent & 1;
            break;
        case SCALARS_MINUS_ONE:
            c->scalar_sub(&x, &zero, &one);
            break;
        case SCALARS_SMALL:
            x.w[0] = rng_below(check_rng(), 65536);
            if (percent & 1) {
                c->scalar_sub(&x, &zero, &x);
            }
            break;
        case SCALARS_MIXED:
            if (percent >= 97) {
                sample_scalar(&x, c);
            } else if (percent >= 90) {
                x.w[0] = rng_below(check_rng(), 256);
            } else {
                x.w[0] = percent >= 45;
            }
            break;
        case SCALARS_SAME:
            x = same;
            break;
        case SCALARS_EXTREMES:
            extreme(&x, c);
            break;
        default:
            break;
        }
        memcpy(s->scalars + i * sizeof x, &x, sizeof x);
    }
}

void sample_sum(uint64_t *out, const struct sample *s, size_t count) {
    struct scalar sum = {{0}}, x;
    struct g2 p;
    for (size_t i = 0; i < count; i++) {
        memcpy(&x, s->scalars + i * sizeof x, sizeof x);
        s->curve->scalar_mul(&x, &x, &s->logs[i]);
        s->curve->scalar_add(&sum, &sum, &x);
    }
    multiply(&p, s, &sum);
    memcpy(out, &p, s->point_bytes);
}

void sample_sum_plain(uint64_t *out, const struct sample *s, size_t count) {
    struct g2 sum = {{0}}, term;
    struct scalar x;
    for (size_t i = 0; i < count; i++) {
        memcpy(&x, s->scalars + i * sizeof x, sizeof x);
        const uint8_t *at = s->points + i * s->point_bytes;
        memset(&term, 0, sizeof term);
        if (s->group == GROUP_G1) {
            struct g1 p;
            g1_load(&p, s->curve, at);
            s->curve->g1_mul(&p, &p, &x);
            memcpy(&term, &p, sizeof p);
        } else {
            g2_load(&term, s->curve, at);
            s->curve->g2_mul(&term, &term, &x);
        }
        add(&sum, s, &sum, &term);
    }
    memcpy(out, &sum, s->point_bytes);
}
