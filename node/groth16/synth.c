/* Kinds of rows, each making one new wire y from earlier bits p (the newest), q (a multiple of 4 among the rows, so that B
 * names a quarter of the wires) and t:
 *
 *     kind      A · B = C                               values of A
 *     full      x · x = y                               full
 *     copy      s · 1 = y        s a public signal      full
 *     xor       (-2p) · q = y - p - q                   0, -2
 *     and       p · q = y                               0, 1
 *     choice    (p - t) · q = y - t    q ? p : t        -1, 0, 1
 *     sum       (y + 2p + 4t + 8q) · 1 = same           0 to 15; y a fresh bit
 *     fresh     (1 - y) · y = 0                         0, 1; y a fresh bit
 *
 * Shares are chosen so that about half of a is small and negative and A has two terms a row, as in SHA-256.
 */
#include "node/groth16/synth.h"

#include "node/base/mem.h"

#include <string.h>

enum kind { KIND_FULL, KIND_COPY, KIND_XOR, KIND_AND, KIND_CHOICE, KIND_SUM, KIND_FRESH };
enum {
    POREP_PUBLICS = 327,
    POREP_FULL_EVERY = 33,
    POREP_FILL_PERCENT = 97,
    FIRST_FRESH = 16, /* rows behind the public ones, before bits combine */
    TERMS_MAX = 12
};

struct row {
    enum kind kind;
    uint32_t y, p, q, t; /* wires */
};

static uint64_t mix(uint64_t x) { /* SplitMix64's last step */
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint32_t wire_of_row(const struct synth *s, uint32_t row) {
    return s->circuit.public_count + 2 + row;
}

static bool is_bit_row(const struct synth *s, uint32_t row) {
    uint32_t publics = s->circuit.public_count;
    return row >= publics && (!s->full_every || (row - publics) % s->full_every != 0);
}

/* The newest row before `row` that makes a bit; rows behind the first few have one. */
static uint32_t bit_row_before(const struct synth *s, uint32_t row) {
    do {
        row--;
    } while (!is_bit_row(s, row));
    return row;
}

/* Some earlier bit row, a multiple of 4. */
static uint32_t bit_row_any(const struct synth *s, uint32_t row, uint64_t dice) {
    uint32_t first = s->circuit.public_count, span = row - first;
    uint32_t at = (first + (uint32_t)(dice % span)) & ~UINT32_C(3);
    while (at < first || !is_bit_row(s, at)) {
        at = at + 4 < row ? at + 4 : (first + 3) & ~UINT32_C(3);
    }
    return at;
}

static enum kind kind_of(uint64_t dice) {
    unsigned percent = (unsigned)(dice % 100);
    return percent < 72   ? KIND_XOR
           : percent < 76 ? KIND_AND
           : percent < 90 ? KIND_CHOICE
           : percent < 96 ? KIND_SUM
                          : KIND_FRESH;
}

static struct row row_of(const struct synth *s, uint32_t row) {
    uint32_t publics = s->circuit.public_count, behind = row - publics;
    struct row r = {.kind = KIND_COPY, .y = wire_of_row(s, row)};
    if (row < publics) {
        r.p = 1 + row;
        return r;
    }
    if (!is_bit_row(s, row)) {
        r.kind = KIND_FULL;
        r.p = behind < s->full_every ? publics + 1 : wire_of_row(s, row - s->full_every);
        return r;
    }
    if (behind < FIRST_FRESH) {
        r.kind = KIND_FRESH;
        return r;
    }
    uint64_t dice = mix(s->seed + row);
    uint32_t newest = bit_row_before(s, row);
    r.kind = kind_of(dice);
    r.p = wire_of_row(s, newest);
    r.q = wire_of_row(s, bit_row_any(s, row, mix(dice + 1)));
    r.t = wire_of_row(s, bit_row_before(s, newest));
    return r;
}

/* --- Terms --- */

struct small_term {
    uint32_t matrix, row, wire;
    int value;
};

static size_t terms_of(struct small_term out[TERMS_MAX], const struct row *r, uint32_t row) {
    const struct small_term by_kind[][TERMS_MAX] = {
        [KIND_FULL] = {{SETUP_A, row, r->p, 1}, {SETUP_B, row, r->p, 1}, {SETUP_C, row, r->y, 1}},
        [KIND_COPY] = {{SETUP_A, row, r->p, 1}, {SETUP_B, row, 0, 1}, {SETUP_C, row, r->y, 1}},
        [KIND_XOR] = {{SETUP_A, row, r->p, -2},
                      {SETUP_B, row, r->q, 1},
                      {SETUP_C, row, r->y, 1},
                      {SETUP_C, row, r->p, -1},
                      {SETUP_C, row, r->q, -1}},
        [KIND_AND] = {{SETUP_A, row, r->p, 1}, {SETUP_B, row, r->q, 1}, {SETUP_C, row, r->y, 1}},
        [KIND_CHOICE] = {{SETUP_A, row, r->p, 1},
                         {SETUP_A, row, r->t, -1},
                         {SETUP_B, row, r->q, 1},
                         {SETUP_C, row, r->y, 1},
                         {SETUP_C, row, r->t, -1}},
        [KIND_SUM] = {{SETUP_A, row, r->y, 1},
                      {SETUP_A, row, r->p, 2},
                      {SETUP_A, row, r->t, 4},
                      {SETUP_A, row, r->q, 8},
                      {SETUP_B, row, 0, 1},
                      {SETUP_C, row, r->y, 1},
                      {SETUP_C, row, r->p, 2},
                      {SETUP_C, row, r->t, 4},
                      {SETUP_C, row, r->q, 8}},
        [KIND_FRESH] = {{SETUP_A, row, 0, 1}, {SETUP_A, row, r->y, -1}, {SETUP_B, row, r->y, 1}},
    };
    static const size_t counts[] = {
        [KIND_FULL] = 3,   [KIND_COPY] = 3, [KIND_XOR] = 5,  [KIND_AND] = 3,
        [KIND_CHOICE] = 5, [KIND_SUM] = 9,  [KIND_FRESH] = 3};
    memcpy(out, by_kind[r->kind], counts[r->kind] * sizeof *out);
    return counts[r->kind];
}

static void small_value(struct scalar *out, const struct curve *c, int value) {
    *out = (struct scalar){{(uint64_t)(value < 0 ? -value : value)}};
    if (value < 0) {
        c->scalar_sub(out, &(struct scalar){{0}}, out);
    }
}

static void each_term(void *ctx, setup_term_sink *sink, void *sink_ctx) {
    const struct synth *s = ctx;
    for (uint32_t row = 0; row < s->circuit.constraints_count; row++) {
        struct row r = row_of(s, row);
        struct small_term terms[TERMS_MAX];
        size_t count = terms_of(terms, &r, row);
        for (size_t i = 0; i < count; i++) {
            struct setup_term term = {terms[i].matrix, terms[i].row, terms[i].wire, {{0}}};
            small_value(&term.value, s->circuit.curve, terms[i].value);
            sink(sink_ctx, &term);
        }
    }
}

/* --- Values --- */

static void draw_full(struct scalar *out, uint64_t seed) {
    for (unsigned i = 0; i < 4; i++) {
        out->w[i] = mix(seed + i * UINT64_C(0x9e3779b97f4a7c15));
    }
    out->w[3] &= UINT64_MAX >> 4; /* below r on both curves */
}

static void make_value(struct synth *s, uint32_t row) {
    const struct row r = row_of(s, row);
    struct scalar *w = s->witness, *y = &w[r.y];
    uint64_t p = w[r.p].w[0], q = w[r.q].w[0], t = w[r.t].w[0];
    switch (r.kind) {
    case KIND_FULL:
        s->circuit.curve->scalar_mul(y, &w[r.p], &w[r.p]);
        break;
    case KIND_COPY:
        *y = w[r.p];
        break;
    case KIND_XOR:
        y->w[0] = p ^ q;
        break;
    case KIND_AND:
        y->w[0] = p & q;
        break;
    case KIND_CHOICE:
        y->w[0] = q ? p : t;
        break;
    case KIND_SUM:
    case KIND_FRESH:
        y->w[0] = mix(s->seed ^ mix(r.y)) >> 63;
        break;
    }
}

struct evaluation {
    const struct curve *curve;
    const struct scalar *witness;
    struct scalar *out[2];
};

static void add_term(void *ctx, const struct setup_term *term) {
    const struct evaluation *e = ctx;
    if (term->matrix == SETUP_C) {
        return;
    }
    struct scalar t, *sum = &e->out[term->matrix][term->row];
    e->curve->scalar_mul(&t, &term->value, &e->witness[term->wire]);
    e->curve->scalar_add(sum, sum, &t);
}

void synth_evaluate(struct scalar *a, struct scalar *b, const struct synth *s) {
    const struct setup_circuit *k = &s->circuit;
    struct evaluation e = {k->curve, s->witness, {a, b}};
    memset(a, 0, (size_t)setup_domain(k) * sizeof *a);
    memset(b, 0, (size_t)setup_domain(k) * sizeof *b);
    each_term(k->ctx, add_term, &e);
    for (uint32_t i = 0; i <= k->public_count; i++) {
        a[k->constraints_count + i] = s->witness[i];
    }
}

/* --- Life --- */

FALLIBLE synth_init(struct synth *out, const struct curve *c, enum synth_shape shape, unsigned log2,
                    uint64_t seed) {
    unsigned least = shape == SYNTH_POREP ? SYNTH_POREP_LOG2_MIN : SYNTH_LOG2_MIN;
    REQUIRE(log2 >= least && log2 <= SYNTH_LOG2_MAX && log2 < c->two_adicity, E_RANGE,
            "a synthetic circuit of this shape has a domain of 2^%u to 2^%u on %s; 2^%u was asked "
            "for",
            least, c->two_adicity - 1 < SYNTH_LOG2_MAX ? c->two_adicity - 1 : SYNTH_LOG2_MAX,
            c->snarkjs_name, log2);
    *out = (struct synth){
        .shape = shape,
        .full_every = shape == SYNTH_DENSE   ? 1
                      : shape == SYNTH_POREP ? POREP_FULL_EVERY
                                             : 0,
        .seed = mix(seed),
    };
    struct setup_circuit *k = &out->circuit;
    uint64_t domain = UINT64_C(1) << log2;
    k->curve = c;
    k->public_count = shape == SYNTH_POREP ? POREP_PUBLICS : 1;
    k->constraints_count = (uint32_t)(domain - k->public_count - 1);
    if (shape == SYNTH_POREP) {
        k->constraints_count = (uint32_t)(domain * POREP_FILL_PERCENT / 100 - k->public_count - 1);
    }
    k->wires_count = k->public_count + 2 + k->constraints_count;
    k->each_term = each_term;
    k->ctx = out;
    TRY(mem_new(&out->witness, k->wires_count, sizeof *out->witness));
    out->witness[0].w[0] = 1;
    for (uint32_t i = 1; i <= k->public_count + 1; i++) {
        draw_full(&out->witness[i], out->seed + i);
    }
    for (uint32_t row = 0; row < k->constraints_count; row++) {
        make_value(out, row);
    }
    return OK;
}

void synth_done(struct synth *s) {
    mem_free(s->witness);
    *s = (struct synth){0};
}

FALLIBLE synth_shape_from(enum synth_shape *out, const char *name) {
    static const char *const names[] = {"dense", "bits", "porep"};
    for (unsigned i = 0; i < COUNT_OF(names); i++) {
        if (!strcmp(names[i], name)) {
            *out = (enum synth_shape)i;
            return OK;
        }
    }
    FAIL(E_USAGE, "shape '%s': dense, bits or porep", name);
}
