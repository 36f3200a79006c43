/* With tau known, everything is a number times a generator:
 *
 *   u_s, v_s, w_s   columns of A, B, C at tau, with the extra rows "wire s" in A for s = 0 … public_count
 *   A_s = u_s       B_s = v_s       IC_s, L_s = (beta·u_s + alpha·v_s + w_s) / gamma, delta
 *   H_j = Lagrange basis of the 2n-th roots at tau, element 2j + 1, / delta
 *   Lagrange basis of the m-th roots at tau: L_j = (tau^m - 1)/m · w^j / (tau - w^j)
 *
 * Columns are sums over the terms as the circuit names them, one pass: a product for each term that is not ±1. Threads take
 * rows; a wire's sums are guarded by one of STRIPES locks, but for those of wire 0, which too many rows name: each
 * chunk adds up its own. Points are made in pieces: of a .zkey they are handed on, so that the key itself never lies in
 * memory; of a native key they are made where they will lie.
 */
#include "node/groth16/setup.h"

#include "node/base/bulk.h"
#include "node/base/lock.h"
#include "node/base/mem.h"
#include "node/key/native.h"

#include <inttypes.h>
#include <string.h>

enum {
    PIECE_POINTS = 1 << 15,
    CHUNK = 1 << 12, /* elements of a Lagrange basis that share an inversion; rows of a task */
    STRIPES = 1 << 12,
    TERM_BYTES = 44,
    TERMS_BUFFER = 1 << 14,
    CONTRIBUTIONS_BYTES = 68
};

static const struct scalar one = {{1}};

uint64_t setup_domain(const struct setup_circuit *circuit) {
    uint64_t n = 2;
    while (n < (uint64_t)circuit->constraints_count + circuit->public_count + 1) {
        n *= 2;
    }
    return n;
}

struct secrets {
    struct scalar tau, alpha, beta, gamma, delta, gamma_inv, delta_inv;
};

struct setup {
    const struct setup_circuit *circuit;
    const struct setup_options *options;
    const struct curve *curve;
    setup_sink *sink;
    void *sink_ctx;
    struct secrets x;
    uint64_t domain, piece, points_done, points_total;
    struct bytes_mut pages; /* owned: of the two below */
    struct scalar *basis;   /* lent from them: domain */
    struct scalar *columns; /* lent from them: u, v, w */
    struct lock *stripes;   /* owned: of columns, while they are made */
    struct scalar *scalars; /* owned: a piece */
    uint8_t *points;        /* owned: a piece of G2, for a sink */
    struct native_image image;
    uint8_t *to; /* the next points' place in the image; NULL: to the sink */
};

static void setup_done(struct setup *s) {
    bulk_close(&s->pages);
    mem_free(s->stripes);
    mem_free(s->scalars);
    mem_free(s->points);
}

/* --- Numbers --- */

static void draw(struct scalar *out, struct rng *rng) {
    rng_fill(rng, out, sizeof *out);
    out->w[3] &= UINT64_MAX >> 4; /* below r on both curves */
    out->w[0] |= 1;               /* and never 0 */
}

static void draw_secrets(struct secrets *x, const struct curve *c, struct rng *rng,
                         bool forgeable) {
    draw(&x->tau, rng);
    draw(&x->alpha, rng);
    draw(&x->beta, rng);
    draw(&x->delta, rng);
    draw(&x->gamma, rng);
    if (forgeable) {
        x->gamma = x->delta;
    }
    c->scalar_inv(&x->gamma_inv, &x->gamma);
    c->scalar_inv(&x->delta_inv, &x->delta);
}

/* Elements stride·j + first, j < count, of the m-th roots' Lagrange basis at tau, times `factor`. */
struct lagrange {
    struct scalar *out;
    const struct curve *curve;
    struct scalar root, step, tau, factor;
    uint64_t first, count;
};

static void lagrange_chunk(void *ctx, size_t idx, unsigned worker) {
    const struct lagrange *l = ctx;
    const struct curve *c = l->curve;
    uint64_t from = (uint64_t)idx * CHUNK,
             count = l->count - from < CHUNK ? l->count - from : CHUNK;
    struct scalar at, t, inverse, prefix[CHUNK], product = one, *out = l->out + from;
    (void)worker;
    c->scalar_pow(&at, &l->step, from);
    c->scalar_pow(&t, &l->root, l->first);
    c->scalar_mul(&at, &at, &t);
    for (uint64_t j = 0; j < count; j++) {
        prefix[j] = product;
        out[j] = at;
        c->scalar_sub(&t, &l->tau, &at);
        c->scalar_mul(&product, &product, &t);
        c->scalar_mul(&at, &at, &l->step);
    }
    c->scalar_inv(&inverse, &product);
    for (uint64_t j = count; j-- > 0;) {
        struct scalar own;
        c->scalar_sub(&t, &l->tau, &out[j]);
        c->scalar_mul(&own, &inverse, &prefix[j]);
        c->scalar_mul(&inverse, &inverse, &t);
        c->scalar_mul(&own, &own, &out[j]);
        c->scalar_mul(&out[j], &own, &l->factor);
    }
}

static void lagrange(struct setup *s, unsigned log2_m, uint64_t first, uint64_t stride,
                     const struct scalar *times) {
    const struct curve *c = s->curve;
    struct lagrange l = {
        .out = s->basis, .curve = c, .tau = s->x.tau, .first = first, .count = s->domain};
    struct scalar t, m = {{UINT64_C(1) << log2_m}};
    c->scalar_root_snarkjs(&l.root, log2_m);
    c->scalar_pow(&l.step, &l.root, stride);
    c->scalar_pow(&l.factor, &s->x.tau, UINT64_C(1) << log2_m);
    c->scalar_sub(&l.factor, &l.factor, &one);
    c->scalar_inv(&t, &m);
    c->scalar_mul(&l.factor, &l.factor, &t);
    c->scalar_mul(&l.factor, &l.factor, times);
    pool_for(s->options->pool, (size_t)((s->domain + CHUNK - 1) / CHUNK), lagrange_chunk, &l);
}

struct column_part { /* of a chunk of rows */
    struct setup *s;
    struct scalar of_one[SETUP_MATRICES]; /* wire 0's sums */
};

static void add_to_sum(struct scalar *sum, const struct setup *s, const struct setup_term *term) {
    const struct curve *c = s->curve;
    const struct scalar *basis = &s->basis[term->row];
    if (term->coefficient == SETUP_ONE) {
        c->scalar_add(sum, sum, basis);
    } else if (term->coefficient == SETUP_MINUS_ONE) {
        c->scalar_sub(sum, sum, basis);
    } else {
        struct scalar t;
        c->scalar_mul(&t, &s->circuit->coefficients[term->coefficient], basis);
        c->scalar_add(sum, sum, &t);
    }
}

static struct scalar *column_at(struct setup *s, uint32_t matrix, uint32_t wire) {
    return &s->columns[matrix * (size_t)s->circuit->wires_count + wire];
}

static void add_to_column(void *ctx, const struct setup_term *term) {
    struct column_part *part = ctx;
    struct setup *s = part->s;
    if (term->wire == 0) {
        add_to_sum(&part->of_one[term->matrix], s, term);
        return;
    }
    LOCK_SCOPE(&s->stripes[term->wire % STRIPES]);
    add_to_sum(column_at(s, term->matrix, term->wire), s, term);
}

static struct setup_rows rows_of_chunk(const struct setup *s, size_t idx) {
    uint32_t from = (uint32_t)(idx * CHUNK), left = s->circuit->constraints_count - from;
    return (struct setup_rows){from, left < CHUNK ? left : CHUNK};
}

static size_t chunks_of_rows(const struct setup *s) {
    return ((size_t)s->circuit->constraints_count + CHUNK - 1) / CHUNK;
}

static void columns_chunk(void *ctx, size_t idx, unsigned worker) {
    struct column_part part = {.s = ctx};
    struct setup *s = ctx;
    (void)worker;
    s->circuit->each_term(s->circuit->ctx, rows_of_chunk(s, idx), add_to_column, &part);
    LOCK_SCOPE(&s->stripes[0]);
    for (uint32_t m = 0; m < SETUP_MATRICES; m++) {
        struct scalar *sum = column_at(s, m, 0);
        s->curve->scalar_add(sum, sum, &part.of_one[m]);
    }
}

static FALLIBLE make_columns(struct setup *s) {
    TRY(mem_new(&s->stripes, STRIPES, sizeof *s->stripes));
    for (unsigned i = 0; i < STRIPES; i++) {
        lock_init(&s->stripes[i], LOCK_KEY);
    }
    pool_for(s->options->pool, chunks_of_rows(s), columns_chunk, s);
    for (unsigned i = 0; i < STRIPES; i++) {
        lock_done(&s->stripes[i]);
    }
    for (uint32_t i = 0; i <= s->circuit->public_count; i++) {
        struct setup_term extra = {SETUP_A, s->circuit->constraints_count + i, i, SETUP_ONE};
        add_to_sum(column_at(s, SETUP_A, i), s, &extra);
    }
    return OK;
}

/* --- Bytes --- */

static FALLIBLE put(struct setup *s, const void *from, size_t len) {
    return s->sink(s->sink_ctx, bytes_of(from, len));
}

static FALLIBLE put_u32(struct setup *s, uint32_t v) {
    uint8_t b[4];
    store_u32le(b, v);
    return put(s, b, sizeof b);
}

static FALLIBLE put_section(struct setup *s, uint32_t id, uint64_t bytes) {
    uint8_t b[12];
    store_u32le(b, id);
    store_u64le(b + 4, bytes);
    return put(s, b, sizeof b);
}

/* Multiples of the first `count` scalars, to the sink or to where they lie. */
static FALLIBLE put_points(struct setup *s, enum point_group group, size_t count) {
    const struct setup_multiplier *m = s->options->multiplier;
    size_t bytes = count * curve_point_bytes(s->curve, group);
    uint8_t *to = s->to ? s->to : s->points;
    TRY(m->multiply(m->ctx, to, group, s->scalars, count));
    if (s->to) {
        s->to += bytes;
    } else {
        TRY(put(s, to, bytes));
    }
    s->points_done += count;
    if (s->options->progress) {
        s->options->progress(s->options->progress_ctx,
                             (double)s->points_done / (double)s->points_total);
    }
    return OK;
}

static FALLIBLE put_point(struct setup *s, enum point_group group, const struct scalar *k) {
    s->scalars[0] = *k;
    return put_points(s, group, 1);
}

static FALLIBLE put_header(struct setup *s) {
    const struct curve *c = s->curve;
    const struct secrets *x = &s->x;
    TRY(put_section(s, 1, 4));
    TRY(put_u32(s, 1));
    TRY(put_section(s, 2, 52 + 19 * c->fp_bytes));
    TRY(put_u32(s, (uint32_t)c->fp_bytes));
    TRY(put(s, c->p, c->fp_bytes));
    TRY(put_u32(s, SCALAR_BYTES));
    TRY(put(s, &c->r, SCALAR_BYTES));
    TRY(put_u32(s, s->circuit->wires_count));
    TRY(put_u32(s, s->circuit->public_count));
    TRY(put_u32(s, (uint32_t)s->domain));
    TRY(put_point(s, GROUP_G1, &x->alpha));
    TRY(put_point(s, GROUP_G1, &x->beta));
    TRY(put_point(s, GROUP_G2, &x->beta));
    TRY(put_point(s, GROUP_G2, &x->gamma));
    TRY(put_point(s, GROUP_G1, &x->delta));
    return put_point(s, GROUP_G2, &x->delta);
}

struct terms_out {
    struct setup *s;
    struct scalar *values_r2; /* owned: coefficients as the file has them */
    uint64_t count;
    uint8_t *buffer; /* owned; NULL: only count */
    size_t used;
    enum err err;
};

static void terms_out_done(struct terms_out *o) {
    mem_free(o->values_r2);
    mem_free(o->buffer);
}

static void put_term(void *ctx, const struct setup_term *term) {
    struct terms_out *o = ctx;
    if (term->matrix == SETUP_C || o->err != OK) {
        return;
    }
    o->count++;
    if (!o->buffer) {
        return;
    }
    uint8_t *at = o->buffer + o->used;
    store_u32le(at, term->matrix);
    store_u32le(at + 4, term->row);
    store_u32le(at + 8, term->wire);
    memcpy(at + 12, &o->values_r2[term->coefficient], SCALAR_BYTES);
    o->used += TERM_BYTES;
    if (o->used == (size_t)TERM_BYTES * TERMS_BUFFER) {
        o->err = put(o->s, o->buffer, o->used);
        o->used = 0;
    }
}

static void put_all_terms(struct terms_out *o) {
    const struct setup_circuit *k = o->s->circuit;
    k->each_term(k->ctx, (struct setup_rows){0, k->constraints_count}, put_term, o);
    for (uint32_t i = 0; i <= k->public_count; i++) {
        struct setup_term extra = {SETUP_A, k->constraints_count + i, i, SETUP_ONE};
        put_term(o, &extra);
    }
}

static void coefficients_r2(struct scalar *out, const struct setup *s) {
    struct scalar r2;
    s->curve->scalar_pow(&r2, &(struct scalar){{2}}, 512);
    for (uint32_t i = 0; i < s->circuit->coefficients_count; i++) {
        s->curve->scalar_mul(&out[i], &s->circuit->coefficients[i], &r2);
    }
}

static FALLIBLE put_terms(struct setup *s) {
    struct terms_out counted = {.s = s};
    AUTO(terms_out_done) struct terms_out o = {.s = s};
    put_all_terms(&counted);
    REQUIRE(counted.count <= UINT32_MAX, E_RANGE,
            "%" PRIu64 " coefficients: a .zkey counts them in 32 bits", counted.count);
    TRY(mem_new_raw(&o.values_r2, s->circuit->coefficients_count, sizeof *o.values_r2));
    TRY(mem_new_raw(&o.buffer, TERMS_BUFFER, TERM_BYTES));
    coefficients_r2(o.values_r2, s);
    TRY(put_section(s, 4, 4 + counted.count * TERM_BYTES));
    TRY(put_u32(s, (uint32_t)counted.count));
    put_all_terms(&o);
    TRY(o.err);
    return put(s, o.buffer, o.used);
}

/* (beta·u + alpha·v + w) times `by`. */
static void combine(struct scalar *out, const struct setup *s, uint32_t wire,
                    const struct scalar *by) {
    const struct curve *c = s->curve;
    const struct scalar *u = s->columns, *v = u + s->circuit->wires_count,
                        *w = v + s->circuit->wires_count;
    struct scalar t;
    c->scalar_mul(out, &s->x.beta, &u[wire]);
    c->scalar_mul(&t, &s->x.alpha, &v[wire]);
    c->scalar_add(out, out, &t);
    c->scalar_add(out, out, &w[wire]);
    c->scalar_mul(out, out, by);
}

enum column { COLUMN_U, COLUMN_V, COLUMN_COMBINED, COLUMN_BASIS };

struct fill {
    const struct setup *s;
    enum column column;
    const struct scalar *by;
    uint64_t from, count;
};

static void fill_chunk(void *ctx, size_t idx, unsigned worker) {
    const struct fill *f = ctx;
    const struct setup *s = f->s;
    uint64_t from = (uint64_t)idx * CHUNK, end = from + CHUNK < f->count ? from + CHUNK : f->count;
    (void)worker;
    for (uint64_t i = from; i < end; i++) {
        if (f->column == COLUMN_COMBINED) {
            combine(&s->scalars[i], s, (uint32_t)(f->from + i), f->by);
        } else {
            const struct scalar *base = f->column == COLUMN_BASIS ? s->basis
                                        : f->column == COLUMN_U
                                            ? s->columns
                                            : s->columns + s->circuit->wires_count;
            s->scalars[i] = base[f->from + i];
        }
    }
}

/* Points whose numbers are column[from … end). */
static FALLIBLE put_column(struct setup *s, enum point_group group, struct fill f, uint64_t end) {
    f.s = s;
    for (; f.from < end; f.from += f.count) {
        f.count = end - f.from < s->piece ? end - f.from : s->piece;
        pool_for(s->options->pool, (size_t)((f.count + CHUNK - 1) / CHUNK), fill_chunk, &f);
        TRY(put_points(s, group, (size_t)f.count));
    }
    return OK;
}

static struct fill fill_of(const struct setup *s, enum key_points which) {
    return (struct fill){.column = which == KEY_A   ? COLUMN_U
                                   : which == KEY_L ? COLUMN_COMBINED
                                   : which == KEY_H ? COLUMN_BASIS
                                                    : COLUMN_V,
                         .by = &s->x.delta_inv,
                         .from = which == KEY_L ? s->circuit->public_count + 1 : 0};
}

static FALLIBLE put_ic(struct setup *s) {
    return put_column(s, GROUP_G1, (struct fill){.column = COLUMN_COMBINED, .by = &s->x.gamma_inv},
                      (uint64_t)s->circuit->public_count + 1);
}

/* A set of points; H comes last, as its numbers take the basis's place. */
static FALLIBLE put_set(struct setup *s, enum key_points which) {
    if (which == KEY_H) {
        lagrange(s, (unsigned)__builtin_ctzll(s->domain) + 1, 1, 2, &s->x.delta_inv);
    }
    return put_column(s, which == KEY_B2 ? GROUP_G2 : GROUP_G1, fill_of(s, which),
                      which == KEY_H ? s->domain : s->circuit->wires_count);
}

static FALLIBLE put_point_section(struct setup *s, uint32_t id, enum key_points which) {
    uint64_t count =
        (which == KEY_H ? s->domain : s->circuit->wires_count) - fill_of(s, which).from;
    TRY(put_section(s, id,
                    count * curve_point_bytes(s->curve, which == KEY_B2 ? GROUP_G2 : GROUP_G1)));
    return put_set(s, which);
}

static FALLIBLE put_all_points(struct setup *s) {
    TRY(put_section(s, 3, ((uint64_t)s->circuit->public_count + 1) * s->curve->g1_bytes));
    TRY(put_ic(s));
    TRY(put_point_section(s, 5, KEY_A));
    TRY(put_point_section(s, 6, KEY_B1));
    TRY(put_point_section(s, 7, KEY_B2));
    TRY(put_point_section(s, 8, KEY_L));
    return put_point_section(s, 9, KEY_H);
}

static FALLIBLE setup_open(struct setup *s) {
    const struct setup_circuit *k = s->circuit;
    s->domain = setup_domain(k);
    s->piece = s->options->piece_points ? s->options->piece_points : PIECE_POINTS;
    unsigned log2 = (unsigned)__builtin_ctzll(s->domain);
    REQUIRE(k->wires_count > k->public_count + 1, E_RANGE,
            "a circuit of %u wires has no private ones beside its %u public signals; a key needs "
            "one",
            k->wires_count, k->public_count);
    REQUIRE(log2 < s->curve->two_adicity && s->domain <= UINT32_MAX, E_RANGE,
            "a domain of 2^%u: keys here reach to 2^%u on %s", log2, s->curve->two_adicity - 1,
            s->curve->snarkjs_name);
    s->points_total = 4 * (uint64_t)k->wires_count + s->domain + 6;
    TRY(bulk_open(&s->pages, SCALAR_BYTES * (s->domain + SETUP_MATRICES * (size_t)k->wires_count)));
    s->basis = (struct scalar *)(void *)s->pages.ptr;
    s->columns = s->basis + s->domain;
    TRY(mem_new_raw(&s->scalars, s->piece, sizeof *s->scalars));
    draw_secrets(&s->x, s->curve, s->options->rng, s->options->forgeable);
    lagrange(s, log2, 0, 1, &one);
    return make_columns(s);
}

FALLIBLE setup_write_zkey(setup_sink *sink, void *sink_ctx, const struct setup_circuit *circuit,
                          const struct setup_options *options) {
    static const uint8_t contributions[CONTRIBUTIONS_BYTES];
    AUTO(setup_done)
    struct setup s = {.circuit = circuit,
                      .options = options,
                      .curve = circuit->curve,
                      .sink = sink,
                      .sink_ctx = sink_ctx};
    TRY(setup_open(&s));
    TRY(mem_new_raw(&s.points, s.piece, s.curve->g2_bytes));
    TRY(put(&s, "zkey", 4));
    TRY(put_u32(&s, 1));
    TRY(put_u32(&s, 10));
    TRY(put_header(&s));
    TRY(put_terms(&s));
    TRY(put_all_points(&s));
    TRY(put_section(&s, 10, sizeof contributions));
    return put(&s, contributions, sizeof contributions);
}

/* --- Native --- */

enum { AB = 2 }; /* matrices that a key holds */

struct chunk_terms {
    uint32_t terms[AB], longs[AB]; /* in the chunk; then before it */
};
struct rows_work {
    struct setup *s;
    struct chunk_terms *chunks; /* owned */
};

static void rows_work_done(struct rows_work *w) {
    mem_free(w->chunks);
}

struct row_terms { /* of a chunk's rows */
    struct setup *s;
    uint32_t from, at[AB][CHUNK]; /* terms of each row; then where its next one goes */
};

static void count_term(void *ctx, const struct setup_term *term) {
    struct row_terms *r = ctx;
    if (term->matrix < AB) {
        r->at[term->matrix][term->row - r->from]++;
    }
}

static void place_term(void *ctx, const struct setup_term *term) {
    struct row_terms *r = ctx;
    if (term->matrix < AB) {
        uint32_t at = r->at[term->matrix][term->row - r->from]++;
        r->s->image.columns[term->matrix][at] = term->wire;
        r->s->image.coefficients[term->matrix][at] = term->coefficient;
    }
}

static void count_chunk(void *ctx, size_t idx, unsigned worker) {
    struct rows_work *w = ctx;
    struct setup_rows rows = rows_of_chunk(w->s, idx);
    struct row_terms r = {.s = w->s, .from = rows.from};
    (void)worker;
    w->s->circuit->each_term(w->s->circuit->ctx, rows, count_term, &r);
    for (unsigned m = 0; m < AB; m++) {
        for (uint32_t i = 0; i < rows.count; i++) {
            w->chunks[idx].terms[m] += r.at[m][i];
            w->chunks[idx].longs[m] += r.at[m][i] > ROWS_LONG;
        }
    }
}

static void place_chunk(void *ctx, size_t idx, unsigned worker) {
    struct rows_work *w = ctx;
    struct setup *s = w->s;
    struct setup_rows rows = rows_of_chunk(s, idx);
    struct row_terms r = {.s = s, .from = rows.from};
    (void)worker;
    s->circuit->each_term(s->circuit->ctx, rows, count_term, &r);
    for (unsigned m = 0; m < AB; m++) {
        uint32_t at = w->chunks[idx].terms[m], longs = w->chunks[idx].longs[m];
        for (uint32_t i = 0; i < rows.count; i++) {
            uint32_t count = r.at[m][i];
            r.at[m][i] = at;
            at += count;
            s->image.start[m][rows.from + i + 1] = at;
            if (count > ROWS_LONG) {
                s->image.long_rows[m][longs++] = rows.from + i;
            }
        }
    }
    s->circuit->each_term(s->circuit->ctx, rows, place_term, &r);
}

/* What the rows take, and where each chunk of them begins. */
static FALLIBLE count_rows(struct native_counts *out, struct rows_work *w) {
    struct setup *s = w->s;
    size_t chunks = chunks_of_rows(s);
    uint64_t terms[AB] = {0}, longs[AB] = {0};
    TRY(mem_new(&w->chunks, chunks, sizeof *w->chunks));
    pool_for(s->options->pool, chunks, count_chunk, w);
    for (size_t i = 0; i < chunks; i++) {
        for (unsigned m = 0; m < AB; m++) {
            struct chunk_terms *c = &w->chunks[i];
            uint32_t more = c->terms[m], more_longs = c->longs[m];
            c->terms[m] = (uint32_t)terms[m];
            c->longs[m] = (uint32_t)longs[m];
            terms[m] += more;
            longs[m] += more_longs;
        }
    }
    terms[0] += (uint64_t)s->circuit->public_count + 1;
    REQUIRE(terms[0] < UINT32_MAX && terms[1] < UINT32_MAX, E_RANGE,
            "matrices of %" PRIu64 " and %" PRIu64 " terms, at most 2^32 - 2 are supported",
            terms[0], terms[1]);
    REQUIRE(s->circuit->coefficients_count <= ROWS_DICTIONARY_MAX, E_LIMIT,
            "%u different coefficients, at most %d are supported", s->circuit->coefficients_count,
            ROWS_DICTIONARY_MAX);
    *out = (struct native_counts){.curve = s->curve,
                                  .shape = {.curve = s->curve->id,
                                            .format = KEY_FORMAT_NATIVE,
                                            .h_basis = H_COSET_LAGRANGE,
                                            .wires_count = s->circuit->wires_count,
                                            .public_count = s->circuit->public_count,
                                            .domain_size = s->domain,
                                            .domain_log2 = (unsigned)__builtin_ctzll(s->domain),
                                            .terms_count = {terms[0], terms[1]}},
                                  .dictionary_count = s->circuit->coefficients_count,
                                  .long_count = {longs[0], longs[1]}};
    return OK;
}

static void place_rows(struct rows_work *w) {
    struct setup *s = w->s;
    const struct native_image *x = &s->image;
    const struct setup_circuit *k = s->circuit;
    uint32_t at[AB];
    pool_for(s->options->pool, chunks_of_rows(s), place_chunk, w);
    for (unsigned m = 0; m < AB; m++) {
        at[m] = x->start[m][k->constraints_count];
    }
    for (uint64_t row = k->constraints_count; row < s->domain; row++) {
        uint32_t wire = (uint32_t)(row - k->constraints_count);
        if (wire <= k->public_count) {
            x->columns[0][at[0]] = wire;
            x->coefficients[0][at[0]++] = SETUP_ONE;
        }
        x->start[0][row + 1] = at[0];
        x->start[1][row + 1] = at[1];
    }
    coefficients_r2(x->dictionary, s);
}

/* The verifying part; *ic is the caller's. */
static FALLIBLE make_vkey(struct vkey *vk, struct setup *s) {
    const struct secrets *x = &s->x;
    struct g1 *const in_g1[] = {&vk->alpha1, &vk->beta1, &vk->delta1};
    const struct scalar *const of_g1[] = {&x->alpha, &x->beta, &x->delta};
    struct g2 *const in_g2[] = {&vk->beta2, &vk->gamma2, &vk->delta2};
    const struct scalar *const of_g2[] = {&x->beta, &x->gamma, &x->delta};
    *vk = (struct vkey){.curve = s->curve, .public_count = s->circuit->public_count};
    for (unsigned i = 0; i < 3; i++) {
        s->to = (uint8_t *)in_g1[i]->w;
        TRY(put_point(s, GROUP_G1, of_g1[i]));
        s->to = (uint8_t *)in_g2[i]->w;
        TRY(put_point(s, GROUP_G2, of_g2[i]));
    }
    TRY(mem_new_raw(&vk->ic, (size_t)vk->public_count + 1, s->curve->g1_bytes));
    s->to = vk->ic;
    return put_ic(s);
}

FALLIBLE setup_make_native(setup_room *room, void *room_ctx, const struct setup_circuit *circuit,
                           const struct setup_options *options) {
    AUTO(setup_done)
    struct setup s = {.circuit = circuit, .options = options, .curve = circuit->curve};
    AUTO(rows_work_done) struct rows_work rows = {.s = &s};
    AUTO(vkey_done) struct vkey vkey = {0};
    struct native_counts counts;
    struct bytes_mut bytes;
    TRY(setup_open(&s));
    TRY(count_rows(&counts, &rows));
    TRY(room(&bytes, room_ctx, native_bytes(&counts)));
    native_image_init(&s.image, &counts, bytes);
    place_rows(&rows);
    TRY(make_vkey(&vkey, &s));
    for (unsigned k = 0; k < KEY_POINTS_COUNT; k++) {
        s.to = s.image.points[k].ptr;
        TRY(put_set(&s, (enum key_points)k));
        ASSERT(s.to == s.image.points[k].ptr + s.image.points[k].len);
    }
    return native_image_seal(&s.image, &vkey, NULL, options->pool);
}

FALLIBLE setup_write_wtns(setup_sink *sink, void *sink_ctx, const struct curve *c,
                          const struct scalar *values, uint32_t values_count) {
    uint8_t head[12 + 12 + 40 + 12] = {'w', 't', 'n', 's', 2, 0, 0, 0, 2, 0, 0, 0, 1};
    store_u64le(head + 16, 40);
    store_u32le(head + 24, SCALAR_BYTES);
    memcpy(head + 28, &c->r, SCALAR_BYTES);
    store_u32le(head + 60, values_count);
    store_u32le(head + 64, 2);
    store_u64le(head + 68, (uint64_t)values_count * SCALAR_BYTES);
    TRY(sink(sink_ctx, bytes_of(head, sizeof head)));
    return sink(sink_ctx, bytes_of(values, (size_t)values_count * SCALAR_BYTES));
}
