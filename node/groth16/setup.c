/* With tau known, everything is a number times a generator:
 *
 *   u_s, v_s, w_s   columns of A, B, C at tau, with the extra rows "wire s" in A for s = 0 … public_count
 *   A_s = u_s       B_s = v_s       IC_s, L_s = (beta·u_s + alpha·v_s + w_s) / gamma, delta
 *   H_j = Lagrange basis of the 2n-th roots at tau, element 2j + 1, / delta
 *   Lagrange basis of the m-th roots at tau: L_j = (tau^m - 1)/m · w^j / (tau - w^j)
 *
 * Columns are sums over the terms as the circuit names them, one pass, one thread: a product for each term that is not 1.
 * Points are made in pieces of PIECE and handed on, so the key itself never lies in memory.
 */
#include "node/groth16/setup.h"

#include "node/base/mem.h"

#include <inttypes.h>
#include <string.h>

enum {
    PIECE = 1 << 15, /* points made at once */
    CHUNK = 1 << 12, /* elements of a Lagrange basis that share an inversion */
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
    uint64_t domain, points_done, points_total;
    struct scalar *basis;   /* owned: domain */
    struct scalar *columns; /* owned: u, v, w */
    struct scalar *scalars; /* owned: PIECE */
    uint8_t *points;        /* owned: PIECE of G2 */
};

static void setup_done(struct setup *s) {
    mem_free(s->basis);
    mem_free(s->columns);
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

static bool is_one(const struct scalar *x) {
    return !memcmp(x, &one, sizeof one);
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

static void add_to_column(void *ctx, const struct setup_term *term) {
    struct setup *s = ctx;
    const struct curve *c = s->curve;
    struct scalar t,
        *sum = &s->columns[term->matrix * (size_t)s->circuit->wires_count + term->wire];
    const struct scalar *basis = &s->basis[term->row];
    if (is_one(&term->value)) {
        c->scalar_add(sum, sum, basis);
    } else {
        c->scalar_mul(&t, &term->value, basis);
        c->scalar_add(sum, sum, &t);
    }
}

static void make_columns(struct setup *s) {
    s->circuit->each_term(s->circuit->ctx, add_to_column, s);
    for (uint32_t i = 0; i <= s->circuit->public_count; i++) {
        struct setup_term extra = {SETUP_A, s->circuit->constraints_count + i, i, one};
        add_to_column(s, &extra);
    }
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

static FALLIBLE put_points(struct setup *s, enum point_group group, size_t count) {
    const struct setup_multiplier *m = s->options->multiplier;
    TRY(m->multiply(m->ctx, s->points, group, s->scalars, count));
    TRY(put(s, s->points, count * curve_point_bytes(s->curve, group)));
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
    struct scalar r2;
    struct scalar last, last_r2; /* a value, and its bytes in the file */
    uint64_t count;
    uint8_t *buffer; /* NULL: only count */
    size_t used;
    enum err err;
};

static void put_term(void *ctx, const struct setup_term *term) {
    struct terms_out *o = ctx;
    const struct curve *c = o->s->curve;
    if (term->matrix == SETUP_C || o->err != OK) {
        return;
    }
    o->count++;
    if (!o->buffer) {
        return;
    }
    if (o->count == 1 || memcmp(&term->value, &o->last, sizeof o->last) != 0) {
        c->scalar_mul(&o->last_r2, &term->value, &o->r2);
        o->last = term->value;
    }
    uint8_t *at = o->buffer + o->used;
    store_u32le(at, term->matrix);
    store_u32le(at + 4, term->row);
    store_u32le(at + 8, term->wire);
    memcpy(at + 12, &o->last_r2, SCALAR_BYTES);
    o->used += TERM_BYTES;
    if (o->used == (size_t)TERM_BYTES * TERMS_BUFFER) {
        o->err = put(o->s, o->buffer, o->used);
        o->used = 0;
    }
}

static void put_all_terms(struct terms_out *o) {
    const struct setup_circuit *k = o->s->circuit;
    k->each_term(k->ctx, put_term, o);
    for (uint32_t i = 0; i <= k->public_count; i++) {
        struct setup_term extra = {SETUP_A, k->constraints_count + i, i, one};
        put_term(o, &extra);
    }
}

static FALLIBLE put_terms(struct setup *s) {
    AUTO(mem_free_ptr) uint8_t *buffer = NULL;
    TRY(mem_new_raw(&buffer, TERMS_BUFFER, TERM_BYTES));
    struct terms_out o = {.s = s}, counted = {.s = s};
    put_all_terms(&counted);
    REQUIRE(counted.count <= UINT32_MAX, E_RANGE,
            "%" PRIu64 " coefficients: a .zkey counts them in 32 bits", counted.count);
    s->curve->scalar_pow(&o.r2, &(struct scalar){{2}}, 512);
    o.buffer = buffer;
    TRY(put_section(s, 4, 4 + counted.count * TERM_BYTES));
    TRY(put_u32(s, (uint32_t)counted.count));
    put_all_terms(&o);
    TRY(o.err);
    return put(s, buffer, o.used);
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

/* A section of points whose numbers are column[from … end). */
static FALLIBLE put_column(struct setup *s, uint32_t id, enum point_group group, struct fill f,
                           uint64_t end) {
    TRY(put_section(s, id, (end - f.from) * curve_point_bytes(s->curve, group)));
    f.s = s;
    for (; f.from < end; f.from += f.count) {
        f.count = end - f.from < PIECE ? end - f.from : PIECE;
        pool_for(s->options->pool, (size_t)((f.count + CHUNK - 1) / CHUNK), fill_chunk, &f);
        TRY(put_points(s, group, (size_t)f.count));
    }
    return OK;
}

static FALLIBLE put_all_points(struct setup *s) {
    const uint32_t wires = s->circuit->wires_count, inputs = s->circuit->public_count + 1;
    const struct secrets *x = &s->x;
    TRY(put_column(s, 3, GROUP_G1, (struct fill){.column = COLUMN_COMBINED, .by = &x->gamma_inv},
                   inputs));
    TRY(put_column(s, 5, GROUP_G1, (struct fill){.column = COLUMN_U}, wires));
    TRY(put_column(s, 6, GROUP_G1, (struct fill){.column = COLUMN_V}, wires));
    TRY(put_column(s, 7, GROUP_G2, (struct fill){.column = COLUMN_V}, wires));
    TRY(put_column(s, 8, GROUP_G1,
                   (struct fill){.column = COLUMN_COMBINED, .by = &x->delta_inv, .from = inputs},
                   wires));
    lagrange(s, (unsigned)__builtin_ctzll(s->domain) + 1, 1, 2, &x->delta_inv);
    return put_column(s, 9, GROUP_G1, (struct fill){.column = COLUMN_BASIS}, s->domain);
}

static FALLIBLE setup_open(struct setup *s) {
    const struct setup_circuit *k = s->circuit;
    s->domain = setup_domain(k);
    unsigned log2 = (unsigned)__builtin_ctzll(s->domain);
    REQUIRE(k->wires_count > k->public_count + 1, E_RANGE,
            "a circuit of %u wires has no private ones beside its %u public signals; a key needs "
            "one",
            k->wires_count, k->public_count);
    REQUIRE(log2 < s->curve->two_adicity && s->domain <= UINT32_MAX, E_RANGE,
            "a domain of 2^%u: keys here reach to 2^%u on %s", log2, s->curve->two_adicity - 1,
            s->curve->snarkjs_name);
    s->points_total = 4 * (uint64_t)k->wires_count + s->domain + 6;
    TRY(mem_new_raw(&s->basis, s->domain, sizeof *s->basis));
    TRY(mem_new(&s->columns, SETUP_MATRICES * (size_t)k->wires_count, sizeof *s->columns));
    TRY(mem_new_raw(&s->scalars, PIECE, sizeof *s->scalars));
    TRY(mem_new_raw(&s->points, PIECE, s->curve->g2_bytes));
    draw_secrets(&s->x, s->curve, s->options->rng, s->options->forgeable);
    lagrange(s, log2, 0, 1, &one);
    make_columns(s);
    return OK;
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
    TRY(put(&s, "zkey", 4));
    TRY(put_u32(&s, 1));
    TRY(put_u32(&s, 10));
    TRY(put_header(&s));
    TRY(put_terms(&s));
    TRY(put_all_points(&s));
    TRY(put_section(&s, 10, sizeof contributions));
    return put(&s, contributions, sizeof contributions);
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
