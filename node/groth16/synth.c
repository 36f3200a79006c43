/* Kinds of rows, each making one new wire y from earlier bits p (the newest), t (the one before it) and q (some row that is a
 * multiple of 4, so that B names a quarter of the wires):
 *
 *     kind      A · B = C                               values of A
 *     full      x · x = y                               full
 *     copy      s · 1 = y        s a public signal      full
 *     xor       (-2p) · q = y - p - q                   0, -2
 *     and       p · q = y                               0, 1
 *     choice    (p - t) · q = y - t    q ? p : t        -1, 0, 1
 *     sum       (y + 2p + 4t + … + 2^k·q) · 1 = same    0 to 2^(k+1) - 1; y a fresh bit
 *     fresh     (1 - y) · y = 0                         0, 1; y a fresh bit
 *
 * Shares for `bits` are chosen so that about half of a is small and negative. For `porep` they give the terms a row of the
 * original: rows that are multiples of 4 are all fresh, B names them again and again and hardly another wire, and p and t
 * are taken from the other rows, so that A names every wire.
 */
#include "node/groth16/synth.h"

#include "node/base/bulk.h"
#include "node/base/mem.h"

#include <string.h>

enum kind { KIND_FULL, KIND_COPY, KIND_XOR, KIND_AND, KIND_CHOICE, KIND_SUM, KIND_FRESH };
enum {
    POREP_PUBLICS = 327,
    POREP_FULL_EVERY = 33,
    POREP_FILL_PERCENT = 97,
    FIRST_FRESH = 24, /* rows behind the public ones, before bits combine */
    SUM_BITS_MAX = 14,
    TERMS_MAX = 2 * SUM_BITS_MAX + 1
};

/* Up to which of 100 rows are xor, and, choice, sum; the rest are fresh. */
static const struct {
    unsigned percent[4], sum_bits;
    bool fourth_fresh;
} mixes[] = {[SYNTH_DENSE] = {{0}, 0, false},
             [SYNTH_BITS] = {{72, 76, 90, 96}, 4, false},
             [SYNTH_POREP] = {{20, 39, 92, 100}, 14, true}};

/* Coefficients behind +1 and -1: -2, and powers of 2 from 2 on. */
enum { MINUS_TWO = SETUP_MINUS_ONE + 1, POWERS };
_Static_assert(POWERS + SUM_BITS_MAX - 1 <= SYNTH_COEFFICIENTS, "every power has a place");

static uint32_t power(unsigned k) {
    return k == 0 ? SETUP_ONE : POWERS + k - 1;
}

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

/* The newest row before `row` that makes a bit that A would name nowhere else; rows behind the first few have one. */
static uint32_t bit_row_before(const struct synth *s, uint32_t row) {
    bool skip = mixes[s->shape].fourth_fresh;
    do {
        row--;
    } while ((skip && row % 4 == 0) || !is_bit_row(s, row));
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

static enum kind kind_of(const struct synth *s, uint32_t row, uint64_t dice) {
    static const enum kind kinds[] = {KIND_XOR, KIND_AND, KIND_CHOICE, KIND_SUM};
    unsigned percent = (unsigned)(dice % 100), i = 0;
    if (row - s->circuit.public_count < FIRST_FRESH ||
        (mixes[s->shape].fourth_fresh && row % 4 == 0)) {
        return KIND_FRESH;
    }
    while (i < COUNT_OF(kinds) && percent >= mixes[s->shape].percent[i]) {
        i++;
    }
    return i < COUNT_OF(kinds) ? kinds[i] : KIND_FRESH;
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
    uint64_t dice = mix(s->seed + row);
    r.kind = kind_of(s, row, dice);
    if (r.kind == KIND_FRESH) {
        return r;
    }
    uint32_t newest = bit_row_before(s, row);
    r.p = wire_of_row(s, newest);
    r.q = wire_of_row(s, bit_row_any(s, row, mix(dice + 1)));
    r.t = wire_of_row(s, bit_row_before(s, newest));
    return r;
}

/* --- Terms --- */

/* All kinds but sum: matrix, whose wire, coefficient. */
enum who { WHO_ONE, WHO_Y, WHO_P, WHO_Q, WHO_T };
struct kind_term {
    uint8_t matrix, who, coefficient;
};
enum { KIND_TERMS_MAX = 5 };
static const struct {
    size_t count;
    struct kind_term terms[KIND_TERMS_MAX];
} kind_terms[] = {
    [KIND_FULL] = {3,
                   {{SETUP_A, WHO_P, SETUP_ONE},
                    {SETUP_B, WHO_P, SETUP_ONE},
                    {SETUP_C, WHO_Y, SETUP_ONE}}},
    [KIND_COPY] = {3,
                   {{SETUP_A, WHO_P, SETUP_ONE},
                    {SETUP_B, WHO_ONE, SETUP_ONE},
                    {SETUP_C, WHO_Y, SETUP_ONE}}},
    [KIND_XOR] = {5,
                  {{SETUP_A, WHO_P, MINUS_TWO},
                   {SETUP_B, WHO_Q, SETUP_ONE},
                   {SETUP_C, WHO_Y, SETUP_ONE},
                   {SETUP_C, WHO_P, SETUP_MINUS_ONE},
                   {SETUP_C, WHO_Q, SETUP_MINUS_ONE}}},
    [KIND_AND] = {3,
                  {{SETUP_A, WHO_P, SETUP_ONE},
                   {SETUP_B, WHO_Q, SETUP_ONE},
                   {SETUP_C, WHO_Y, SETUP_ONE}}},
    [KIND_CHOICE] = {5,
                     {{SETUP_A, WHO_P, SETUP_ONE},
                      {SETUP_A, WHO_T, SETUP_MINUS_ONE},
                      {SETUP_B, WHO_Q, SETUP_ONE},
                      {SETUP_C, WHO_Y, SETUP_ONE},
                      {SETUP_C, WHO_T, SETUP_MINUS_ONE}}},
    [KIND_FRESH] = {3,
                    {{SETUP_A, WHO_ONE, SETUP_ONE},
                     {SETUP_A, WHO_Y, SETUP_MINUS_ONE},
                     {SETUP_B, WHO_Y, SETUP_ONE}}},
};

/* y, the newest bits, and q on top, in A and in C. */
static size_t sum_terms(struct setup_term out[TERMS_MAX], const struct synth *s,
                        const struct row *r, uint32_t row) {
    unsigned bits = mixes[s->shape].sum_bits;
    uint32_t bit_row = row;
    for (unsigned k = 0; k < bits; k++) {
        bit_row = k > 0 && k + 1 < bits ? bit_row_before(s, bit_row) : bit_row;
        uint32_t wire = k == 0 ? r->y : k + 1 < bits ? wire_of_row(s, bit_row) : r->q;
        out[2 * k] = (struct setup_term){SETUP_A, row, wire, power(k)};
        out[2 * k + 1] = (struct setup_term){SETUP_C, row, wire, power(k)};
    }
    out[2 * bits] = (struct setup_term){SETUP_B, row, 0, SETUP_ONE};
    return 2 * (size_t)bits + 1;
}

static size_t terms_of(struct setup_term out[TERMS_MAX], const struct synth *s, uint32_t row) {
    const struct row r = row_of(s, row);
    const uint32_t wires[] = {
        [WHO_ONE] = 0, [WHO_Y] = r.y, [WHO_P] = r.p, [WHO_Q] = r.q, [WHO_T] = r.t};
    if (r.kind == KIND_SUM) {
        return sum_terms(out, s, &r, row);
    }
    size_t count = kind_terms[r.kind].count;
    for (size_t i = 0; i < count; i++) {
        const struct kind_term *t = &kind_terms[r.kind].terms[i];
        out[i] = (struct setup_term){t->matrix, row, wires[t->who], t->coefficient};
    }
    return count;
}

static void each_term(void *ctx, struct setup_rows rows, setup_term_sink *sink, void *sink_ctx) {
    const struct synth *s = ctx;
    struct setup_term terms[TERMS_MAX];
    for (uint32_t row = rows.from; row < rows.from + rows.count; row++) {
        size_t count = terms_of(terms, s, row);
        for (size_t i = 0; i < count; i++) {
            sink(sink_ctx, &terms[i]);
        }
    }
}

static void make_coefficients(struct synth *s) {
    const struct curve *c = s->circuit.curve;
    struct scalar *k = s->coefficients;
    k[SETUP_ONE].w[0] = 1;
    c->scalar_sub(&k[SETUP_MINUS_ONE], &(struct scalar){{0}}, &k[SETUP_ONE]);
    c->scalar_add(&k[MINUS_TWO], &k[SETUP_MINUS_ONE], &k[SETUP_MINUS_ONE]);
    for (unsigned i = 1; i < SUM_BITS_MAX; i++) {
        k[power(i)].w[0] = UINT64_C(1) << i;
    }
    s->circuit.coefficients = k;
    s->circuit.coefficients_count = POWERS + SUM_BITS_MAX - 1;
}

/* --- Values --- */

static void draw_full(struct scalar *out, uint64_t seed) {
    for (unsigned i = 0; i < 4; i++) {
        out->w[i] = mix(seed + i * UINT64_C(0x9e3779b97f4a7c15));
    }
    out->w[3] &= UINT64_MAX >> 4; /* below r on both curves */
}

/* Bits a second time, 64 a word: of all earlier ones a row may ask for any, and these fit a cache. */
struct bits {
    uint64_t *words; /* owned */
};

static void bits_done(struct bits *b) {
    mem_free(b->words);
}

static uint64_t bit_of(const struct bits *b, uint32_t wire) {
    return b->words[wire / 64] >> wire % 64 & 1;
}

static void make_value(struct synth *s, struct bits *bits, uint32_t row) {
    const struct row r = row_of(s, row);
    struct scalar *w = s->witness, *y = &w[r.y];
    uint64_t bit = 0;
    switch (r.kind) {
    case KIND_FULL:
        s->circuit.curve->scalar_mul(y, &w[r.p], &w[r.p]);
        return;
    case KIND_COPY:
        *y = w[r.p];
        return;
    case KIND_XOR:
        bit = bit_of(bits, r.p) ^ bit_of(bits, r.q);
        break;
    case KIND_AND:
        bit = bit_of(bits, r.p) & bit_of(bits, r.q);
        break;
    case KIND_CHOICE:
        bit = bit_of(bits, bit_of(bits, r.q) ? r.p : r.t);
        break;
    case KIND_SUM:
    case KIND_FRESH:
        bit = mix(s->seed ^ mix(r.y)) >> 63;
        break;
    }
    y->w[0] = bit;
    bits->words[r.y / 64] |= bit << r.y % 64;
}

static FALLIBLE make_witness(struct synth *s) {
    const struct setup_circuit *k = &s->circuit;
    AUTO(bits_done) struct bits bits = {0};
    TRY(mem_new(&bits.words, k->wires_count / 64 + 1, sizeof *bits.words));
    TRY(bulk_open(&s->pages, k->wires_count * sizeof *s->witness));
    s->witness = (struct scalar *)(void *)s->pages.ptr;
    s->witness[0].w[0] = 1;
    for (uint32_t i = 1; i <= k->public_count + 1; i++) {
        draw_full(&s->witness[i], s->seed + i);
    }
    for (uint32_t row = 0; row < k->constraints_count; row++) {
        make_value(s, &bits, row);
    }
    return OK;
}

enum { EVALUATE_ROWS = 1 << 10 }; /* of a task; few, so that small circuits have several */

struct evaluation {
    const struct synth *synth;
    struct scalar *out[2];
};

static void add_term(void *ctx, const struct setup_term *term) {
    const struct evaluation *e = ctx;
    if (term->matrix == SETUP_C) {
        return;
    }
    const struct setup_circuit *k = &e->synth->circuit;
    struct scalar t, *sum = &e->out[term->matrix][term->row];
    k->curve->scalar_mul(&t, &k->coefficients[term->coefficient], &e->synth->witness[term->wire]);
    k->curve->scalar_add(sum, sum, &t);
}

static void evaluate_chunk(void *ctx, size_t idx, unsigned worker) {
    struct evaluation *e = ctx;
    const struct setup_circuit *k = &e->synth->circuit;
    uint64_t domain = setup_domain(k), from = (uint64_t)idx * EVALUATE_ROWS,
             end = from + EVALUATE_ROWS < domain ? from + EVALUATE_ROWS : domain;
    (void)worker;
    memset(e->out[0] + from, 0, (size_t)(end - from) * sizeof *e->out[0]);
    memset(e->out[1] + from, 0, (size_t)(end - from) * sizeof *e->out[1]);
    uint64_t last = end < k->constraints_count ? end : k->constraints_count;
    if (from < last) {
        each_term(k->ctx, (struct setup_rows){(uint32_t)from, (uint32_t)(last - from)}, add_term,
                  e);
    }
    for (uint64_t row = last > from ? last : from; row < end && row < synth_rows_count(e->synth);
         row++) {
        e->out[0][row] = e->synth->witness[row - k->constraints_count];
    }
}

uint64_t synth_rows_count(const struct synth *s) {
    return (uint64_t)s->circuit.constraints_count + s->circuit.public_count + 1;
}

void synth_evaluate(struct scalar *a, struct scalar *b, const struct synth *s, struct pool *pool) {
    struct evaluation e = {s, {a, b}};
    pool_for(pool, (size_t)((setup_domain(&s->circuit) + EVALUATE_ROWS - 1) / EVALUATE_ROWS),
             evaluate_chunk, &e);
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
    make_coefficients(out);
    return make_witness(out);
}

void synth_done(struct synth *s) {
    bulk_close(&s->pages);
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
