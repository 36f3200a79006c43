/* With tau known, everything is a number times a generator:
 *
 *   u_s, v_s, w_s   columns of A, B, C at tau, with the extra rows "wire s" in A for s = 0 … public_count
 *   A_s = u_s       B_s = v_s       IC_s, L_s = (beta·u_s + alpha·v_s + w_s) / gamma, delta
 *   H_j = Lagrange basis of the 2n-th roots at tau, element 2j + 1, / delta
 *   Lagrange basis of the m-th roots at tau: L_j = (tau^m - 1)/m · w^j / (tau - w^j)
 */
#include "tests/unit/groth16/setup.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <string.h>

static const struct scalar one = {{1}};

void circuit_init(struct circuit *out, const struct curve *c, uint32_t wires_count,
                  uint32_t public_count) {
    *out = (struct circuit){.curve = c, .wires_count = wires_count, .public_count = public_count};
    CHECK_OK(mem_new(&out->witness, wires_count, sizeof *out->witness));
    out->witness[0] = one;
}

void circuit_done(struct circuit *k) {
    mem_free(k->terms);
    mem_free(k->witness);
    *k = (struct circuit){0};
}

uint32_t circuit_row(struct circuit *k) {
    return k->constraints_count++;
}

void circuit_term(struct circuit *k, unsigned matrix, uint32_t row, uint32_t wire, uint64_t value) {
    if (k->terms_count == k->terms_cap) {
        k->terms_cap = k->terms_cap ? 2 * k->terms_cap : 64;
        struct term *grown = mem_grow(k->terms, k->terms_cap * sizeof *grown);
        CHECK(grown);
        k->terms = grown;
    }
    k->terms[k->terms_count++] = (struct term){matrix, row, wire, {{value}}};
}

bool circuit_holds(const struct circuit *k) {
    const struct curve *c = k->curve;
    struct scalar *sums =
        mem_zero_alloc(LC_COUNT * ((size_t)k->constraints_count + 1), sizeof *sums);
    CHECK(sums);
    for (size_t i = 0; i < k->terms_count; i++) {
        struct scalar t, *sum = &sums[k->terms[i].row * LC_COUNT + k->terms[i].matrix];
        c->scalar_mul(&t, &k->terms[i].value, &k->witness[k->terms[i].wire]);
        c->scalar_add(sum, sum, &t);
    }
    bool holds = true;
    for (size_t row = 0; row < k->constraints_count; row++) {
        struct scalar product;
        c->scalar_mul(&product, &sums[row * LC_COUNT + LC_A], &sums[row * LC_COUNT + LC_B]);
        holds = holds && !memcmp(&product, &sums[row * LC_COUNT + LC_C], sizeof product);
    }
    mem_free(sums);
    return holds;
}

size_t circuit_domain(const struct circuit *k) {
    size_t n = 2;
    while (n < (size_t)k->constraints_count + k->public_count + 1) {
        n *= 2;
    }
    return n;
}

void circuit_chain(struct circuit *out, const struct curve *c, uint32_t constraints,
                   uint32_t publics, uint64_t seed) {
    uint32_t wires = constraints + 2;
    circuit_init(out, c, wires, publics);
    /* With a public end: wire 1 is the end, 2 the seed, then the steps. Without: 1 the seed, then all steps. */
    uint32_t at = 1 + publics;
    out->witness[at] = (struct scalar){{seed}};
    for (uint32_t i = 0; i < constraints; i++) {
        uint32_t to = publics && i + 1 == constraints ? 1 : 2 + publics + i;
        uint32_t row = circuit_row(out);
        circuit_term(out, LC_A, row, at, 1);
        circuit_term(out, LC_B, row, at, 1);
        circuit_term(out, LC_C, row, to, 1);
        c->scalar_mul(&out->witness[to], &out->witness[at], &out->witness[at]);
        at = to;
    }
}

static void draw(struct scalar *out, struct rng *rng) {
    rng_fill(rng, out, sizeof *out);
    out->w[3] &= UINT64_MAX >> 4; /* below r on both curves */
}

/* Element j·stride + first of the m-th roots' Lagrange basis at tau, for j < count. */
static void lagrange(struct scalar *out, const struct curve *c, unsigned log2_m, size_t first,
                     size_t stride, size_t count, const struct scalar *tau) {
    struct scalar root, step, at, factor, m = {{(uint64_t)1 << log2_m}}, t;
    c->scalar_root_snarkjs(&root, log2_m);
    c->scalar_pow(&step, &root, stride);
    c->scalar_pow(&at, &root, first);
    c->scalar_pow(&factor, tau, (uint64_t)1 << log2_m);
    c->scalar_sub(&factor, &factor, &one);
    c->scalar_inv(&t, &m);
    c->scalar_mul(&factor, &factor, &t);
    for (size_t j = 0; j < count; j++) {
        c->scalar_sub(&t, tau, &at);
        c->scalar_inv(&t, &t);
        c->scalar_mul(&t, &t, &at);
        c->scalar_mul(&out[j], &t, &factor);
        c->scalar_mul(&at, &at, &step);
    }
}

struct buffer {
    uint8_t *ptr;
    size_t len, cap;
};

static uint8_t *put(struct buffer *b, size_t len) {
    if (b->len + len > b->cap) {
        b->cap = 2 * (b->len + len);
        uint8_t *grown = mem_grow(b->ptr, b->cap);
        CHECK(grown);
        b->ptr = grown;
    }
    uint8_t *at = b->ptr + b->len;
    b->len += len;
    return at;
}

static void put_u32(struct buffer *b, uint32_t v) {
    store_u32le(put(b, 4), v);
}

static void put_bytes(struct buffer *b, const void *from, size_t len) {
    memcpy(put(b, len), from, len);
}

static size_t begin_section(struct buffer *b, uint32_t id) {
    put_u32(b, id);
    put(b, 8);
    return b->len;
}

static void end_section(struct buffer *b, size_t start) {
    store_u64le(b->ptr + start - 8, b->len - start);
}

static void put_g1(struct buffer *b, const struct curve *c, const struct scalar *k) {
    struct g1 p;
    c->g1_mul(&p, &c->g1_generator, k);
    g1_store(put(b, c->g1_bytes), c, &p);
}

static void put_g2(struct buffer *b, const struct curve *c, const struct scalar *k) {
    struct g2 p;
    c->g2_mul(&p, &c->g2_generator, k);
    g2_store(put(b, c->g2_bytes), c, &p);
}

struct secrets {
    struct scalar tau, alpha, beta, gamma, delta, gamma_inv, delta_inv;
};

static void put_header(struct buffer *b, const struct circuit *k, const struct secrets *x) {
    const struct curve *c = k->curve;
    size_t start = begin_section(b, 2);
    put_u32(b, (uint32_t)c->fp_bytes);
    put_bytes(b, c->p, c->fp_bytes);
    put_u32(b, SCALAR_BYTES);
    put_bytes(b, &c->r, SCALAR_BYTES);
    put_u32(b, k->wires_count);
    put_u32(b, k->public_count);
    put_u32(b, (uint32_t)circuit_domain(k));
    put_g1(b, c, &x->alpha);
    put_g1(b, c, &x->beta);
    put_g2(b, c, &x->beta);
    put_g2(b, c, &x->gamma);
    put_g1(b, c, &x->delta);
    put_g2(b, c, &x->delta);
    end_section(b, start);
}

static void put_term(struct buffer *b, const struct curve *c, const struct term *t) {
    struct scalar r2, two = {{2}};
    c->scalar_pow(&r2, &two, 512);
    c->scalar_mul(&r2, &r2, &t->value);
    put_u32(b, t->matrix);
    put_u32(b, t->row);
    put_u32(b, t->wire);
    put_bytes(b, &r2, sizeof r2);
}

static void put_terms(struct buffer *b, const struct circuit *k) {
    size_t start = begin_section(b, 4), count_at = b->len;
    uint32_t count = 0;
    put_u32(b, 0);
    for (size_t i = 0; i < k->terms_count; i++) {
        if (k->terms[i].matrix != LC_C) {
            put_term(b, k->curve, &k->terms[i]);
            count++;
        }
    }
    for (uint32_t s = 0; s <= k->public_count; s++) {
        struct term extra = {LC_A, k->constraints_count + s, s, one};
        put_term(b, k->curve, &extra);
        count++;
    }
    store_u32le(b->ptr + count_at, count);
    end_section(b, start);
}

/* Columns at tau: u, v, w of wires_count each in one block. */
static void columns(struct scalar *out, const struct circuit *k, const struct scalar *basis) {
    const struct curve *c = k->curve;
    struct scalar t;
    for (size_t i = 0; i < k->terms_count; i++) {
        const struct term *term = &k->terms[i];
        struct scalar *sum = &out[term->matrix * (size_t)k->wires_count + term->wire];
        c->scalar_mul(&t, &term->value, &basis[term->row]);
        c->scalar_add(sum, sum, &t);
    }
    for (uint32_t s = 0; s <= k->public_count; s++) {
        c->scalar_add(&out[s], &out[s], &basis[k->constraints_count + s]);
    }
}

static void put_points(struct buffer *b, const struct circuit *k, const struct secrets *x,
                       const struct scalar *u) {
    const struct curve *c = k->curve;
    const struct scalar *v = u + k->wires_count, *w = v + k->wires_count;
    size_t starts[] = {5, 6, 7};
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        size_t start = begin_section(b, (uint32_t)starts[i]);
        for (uint32_t s = 0; s < k->wires_count; s++) {
            if (starts[i] == 7) {
                put_g2(b, c, &v[s]);
            } else {
                put_g1(b, c, starts[i] == 5 ? &u[s] : &v[s]);
            }
        }
        end_section(b, start);
    }
    size_t start = begin_section(b, 3);
    for (uint32_t s = 0; s < k->wires_count; s++) {
        struct scalar sum, t;
        if (s == k->public_count + 1) {
            end_section(b, start);
            start = begin_section(b, 8);
        }
        c->scalar_mul(&sum, &x->beta, &u[s]);
        c->scalar_mul(&t, &x->alpha, &v[s]);
        c->scalar_add(&sum, &sum, &t);
        c->scalar_add(&sum, &sum, &w[s]);
        c->scalar_mul(&sum, &sum, s <= k->public_count ? &x->gamma_inv : &x->delta_inv);
        put_g1(b, c, &sum);
    }
    end_section(b, start);
}

static void put_h(struct buffer *b, const struct circuit *k, const struct secrets *x,
                  struct scalar *basis, size_t n, unsigned log2_n) {
    const struct curve *c = k->curve;
    lagrange(basis, c, log2_n + 1, 1, 2, n, &x->tau);
    size_t start = begin_section(b, 9);
    for (size_t j = 0; j < n; j++) {
        c->scalar_mul(&basis[j], &basis[j], &x->delta_inv);
        put_g1(b, c, &basis[j]);
    }
    end_section(b, start);
}

void circuit_setup(struct file_bytes *out, const struct circuit *k, struct rng *rng) {
    const struct curve *c = k->curve;
    CHECK(k->wires_count > k->public_count + 1); /* section 8 would be missing here */
    size_t n = circuit_domain(k);
    unsigned log2_n = (unsigned)__builtin_ctzll(n);
    struct secrets x;
    struct scalar *const drawn[] = {&x.tau, &x.alpha, &x.beta, &x.gamma, &x.delta};
    for (size_t i = 0; i < COUNT_OF(drawn); i++) {
        draw(drawn[i], rng);
    }
    c->scalar_inv(&x.gamma_inv, &x.gamma);
    c->scalar_inv(&x.delta_inv, &x.delta);
    struct scalar *basis = NULL, *u = NULL;
    CHECK_OK(mem_new(&basis, n, sizeof *basis));
    CHECK_OK(mem_new(&u, LC_COUNT * (size_t)k->wires_count, sizeof *u));
    lagrange(basis, c, log2_n, 0, 1, n, &x.tau);
    columns(u, k, basis);

    struct buffer b = {0};
    put_bytes(&b, "zkey", 4);
    put_u32(&b, 1);
    put_u32(&b, 10);
    size_t start = begin_section(&b, 1);
    put_u32(&b, 1);
    end_section(&b, start);
    put_header(&b, k, &x);
    put_terms(&b, k);
    put_points(&b, k, &x, u);
    put_h(&b, k, &x, basis, n, log2_n);
    start = begin_section(&b, 10);
    memset(put(&b, 68), 0, 68);
    end_section(&b, start);
    mem_free(basis);
    mem_free(u);
    *out = (struct file_bytes){b.ptr, b.len};
}

void circuit_wtns(struct file_bytes *out, const struct circuit *k) {
    struct buffer b = {0};
    put_bytes(&b, "wtns", 4);
    put_u32(&b, 2);
    put_u32(&b, 2);
    size_t start = begin_section(&b, 1);
    put_u32(&b, SCALAR_BYTES);
    put_bytes(&b, &k->curve->r, SCALAR_BYTES);
    put_u32(&b, k->wires_count);
    end_section(&b, start);
    start = begin_section(&b, 2);
    put_bytes(&b, k->witness, (size_t)k->wires_count * sizeof *k->witness);
    end_section(&b, start);
    *out = (struct file_bytes){b.ptr, b.len};
}
