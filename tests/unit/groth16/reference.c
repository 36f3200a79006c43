/* a = A·w, b = B·w, c = a∘b row by row; h from interpolations of a, b and c (the textbook's, with a division by Z for
 * keys in powers); every sum by one scalar multiplication per point.
 *
 * A coefficient is stored times R² (R = 2^256): multiplying by the inverse of R² gives the plain one back.
 */
#include "tests/unit/groth16/reference.h"
#include "node/base/mem.h"
#include "node/key/rows.h"
#include "tests/unit/groth16/evaluated.h"

#include <stdio.h>
#include <string.h>

struct reference {
    struct backend base;
    int broken_sum;
    unsigned broken_times, runs;
    bool answers;
    struct reference_trace trace;
    int cancel_in;
    struct sums answer;
};
struct backend_key {
    struct reference *owner; /* lent */
    struct key *key;         /* owned (ref) */
};
struct backend_slot {
    struct backend_key *key;         /* lent */
    const struct witness *witness;   /* lent during a job */
    struct job_watch *watch;         /* lent during a job */
    struct scalar *a, *b, *h, *work; /* owned: domain_size each; work: wires_count */
    struct sums sums;
};

static const struct curve *curve_of(const struct backend_slot *s) {
    return key_curve(s->key->key);
}

/* ── Transforms ── */

static void bit_reverse(struct scalar *x, unsigned log2_count) {
    size_t n = (size_t)1 << log2_count;
    for (size_t i = 0; i < n; i++) {
        size_t j = 0;
        for (unsigned bit = 0; bit < log2_count; bit++) {
            j |= (i >> bit & 1) << (log2_count - 1 - bit);
        }
        if (i < j) {
            struct scalar t = x[i];
            x[i] = x[j];
            x[j] = t;
        }
    }
}

static void scale(struct scalar *x, const struct curve *c, size_t n, const struct scalar *first,
                  const struct scalar *ratio) {
    struct scalar power = *first;
    for (size_t i = 0; i < n; i++) {
        c->scalar_mul(&x[i], &x[i], &power);
        c->scalar_mul(&power, &power, ratio);
    }
}

static const struct scalar one = {{1}};

void reference_ntt(struct scalar *x, const struct curve *c, unsigned log2_count,
                   const struct scalar *root, bool inverse) {
    size_t n = (size_t)1 << log2_count;
    struct scalar w = *root;
    if (inverse) {
        c->scalar_inv(&w, root);
    }
    bit_reverse(x, log2_count);
    for (size_t half = 1; half < n; half *= 2) {
        struct scalar step, power, t, u;
        c->scalar_pow(&step, &w, n / (2 * half));
        for (size_t block = 0; block < n; block += 2 * half) {
            power = one;
            for (size_t i = block; i < block + half; i++) {
                u = x[i];
                c->scalar_mul(&t, &x[i + half], &power);
                c->scalar_add(&x[i], &u, &t);
                c->scalar_sub(&x[i + half], &u, &t);
                c->scalar_mul(&power, &power, &step);
            }
        }
    }
    if (inverse) {
        struct scalar count = {{n}}, count_inv;
        c->scalar_inv(&count_inv, &count);
        scale(x, c, n, &count_inv, &one);
    }
}

/* From values on the domain to values on the coset g·domain. */
static void to_coset(struct scalar *x, const struct curve *c, unsigned log2_count,
                     const struct scalar *root, const struct scalar *g) {
    reference_ntt(x, c, log2_count, root, true);
    scale(x, c, (size_t)1 << log2_count, &one, g);
    reference_ntt(x, c, log2_count, root, false);
}

void reference_quotient(struct scalar *h, struct scalar *a, struct scalar *b, const struct curve *c,
                        unsigned log2_count, enum h_basis basis) {
    size_t n = (size_t)1 << log2_count;
    struct scalar root, g = {{25}}, ab;
    if (basis == H_POWERS) {
        c->scalar_root_bellman(&root, log2_count);
        g = (struct scalar){{7}};
    } else {
        c->scalar_root_snarkjs(&root, log2_count);
        if (log2_count < c->two_adicity) {
            c->scalar_root_snarkjs(&g, log2_count + 1);
        }
    }
    for (size_t i = 0; i < n; i++) {
        c->scalar_mul(&h[i], &a[i], &b[i]);
    }
    to_coset(a, c, log2_count, &root, &g);
    to_coset(b, c, log2_count, &root, &g);
    to_coset(h, c, log2_count, &root, &g);
    for (size_t i = 0; i < n; i++) {
        c->scalar_mul(&ab, &a[i], &b[i]);
        c->scalar_sub(&h[i], &ab, &h[i]);
    }
    if (basis == H_POWERS) {
        struct scalar z, g_inv;
        c->scalar_pow(&z, &g, n);
        c->scalar_sub(&z, &z, &one);
        c->scalar_inv(&z, &z);
        scale(h, c, n, &z, &one);
        reference_ntt(h, c, log2_count, &root, true);
        c->scalar_inv(&g_inv, &g);
        scale(h, c, n, &one, &g_inv);
    }
}

/* ── Sums ── */

static void sum_g1(struct g1 *out, const struct curve *c, struct bytes points,
                   const struct scalar *scalars) {
    struct g1 sum = {{0}}, point, term;
    for (size_t i = 0; i < points.len / c->g1_bytes; i++) {
        g1_load(&point, c, points.ptr + i * c->g1_bytes);
        c->g1_mul(&term, &point, &scalars[i]);
        c->g1_add(&sum, &sum, &term);
    }
    *out = sum;
}

static void sum_g2(struct g2 *out, const struct curve *c, struct bytes points,
                   const struct scalar *scalars) {
    struct g2 sum = {{0}}, point, term;
    for (size_t i = 0; i < points.len / c->g2_bytes; i++) {
        g2_load(&point, c, points.ptr + i * c->g2_bytes);
        c->g2_mul(&term, &point, &scalars[i]);
        c->g2_add(&sum, &sum, &term);
    }
    *out = sum;
}

/* ── The backend ── */

static void backend_done(struct backend *b) {
    mem_free(b);
}

static enum err plan(struct plan *out, struct backend *b, const struct key_shape *shape) {
    (void)b;
    *out = (struct plan){
        .host_bytes = (3 * shape->domain_size + shape->wires_count) * sizeof(struct scalar),
        .mapped_bytes = shape->file_bytes,
        .chunks_count = 1,
    };
    return OK;
}

static void key_drop(struct backend_key **key) {
    if (*key) {
        key_unref(&(*key)->key);
        mem_free_ptr(key);
    }
}

static enum err key_load(struct backend_key **out, struct backend *b, struct key *key) {
    struct backend_key *k = NULL;
    TRY(mem_new(&k, 1, sizeof *k));
    k->owner = (struct reference *)b;
    k->key = key_ref(key);
    *out = k;
    return OK;
}

static void slot_close(struct backend_slot **slot) {
    if (*slot) {
        mem_free((*slot)->a);
        mem_free((*slot)->b);
        mem_free((*slot)->h);
        mem_free((*slot)->work);
        mem_free_ptr(slot);
    }
}

static enum err slot_open(struct backend_slot **out, struct backend_key *key) {
    AUTO(slot_close) struct backend_slot *s = NULL;
    const struct key_shape *shape = key_shape(key->key);
    TRY(mem_new(&s, 1, sizeof *s));
    s->key = key;
    TRY(mem_new(&s->a, shape->domain_size, sizeof *s->a));
    TRY(mem_new(&s->b, shape->domain_size, sizeof *s->b));
    TRY(mem_new(&s->h, shape->domain_size, sizeof *s->h));
    TRY(mem_new(&s->work, shape->wires_count, sizeof *s->work));
    *out = TAKE(s);
    return OK;
}

static void note(struct backend_slot *s, int step) {
    struct reference *r = s->key->owner;
    ASSERT(r->trace.count < STEP_COUNT);
    r->trace.steps[r->trace.count++] = s->watch->step;
    if (step == r->cancel_in) {
        s->watch->cancel = 1;
    }
}

static enum err take_witness(struct backend_slot *s, const struct witness *w,
                             struct job_watch *watch) {
    s->watch = watch;
    s->witness = w;
    s->key->owner->trace.count = 0;
    note(s, STEP_WITNESS);
    for (uint64_t i = 0; i < w->count; i++) {
        witness_get(&s->work[i], w, i);
    }
    return OK;
}

static enum err evaluate(struct backend_slot *s) {
    note(s, STEP_EVALUATE);
    if (s->key->owner->answers) {
        return OK;
    }
    const size_t bytes = key_shape(s->key->key)->domain_size * sizeof *s->a;
    AUTO(evaluated_free) struct evaluated made = {0};
    struct witness w = *s->witness;
    if (!w.a) {
        TRY(evaluated_make(&made, s->key->key, &w));
        evaluated_lend(&w, &made);
    }
    memset(s->a, 0, bytes);
    memset(s->b, 0, bytes);
    memcpy(s->a, w.a, w.rows_count * sizeof *s->a);
    memcpy(s->b, w.b, w.rows_count * sizeof *s->b);
    return OK;
}

static enum err quotient(struct backend_slot *s) {
    note(s, STEP_QUOTIENT);
    if (s->key->owner->answers) {
        return OK;
    }
    const struct key_shape *shape = key_shape(s->key->key);
    reference_quotient(s->h, s->a, s->b, curve_of(s), shape->domain_log2, shape->h_basis);
    return OK;
}

static enum err msm(struct backend_slot *s, enum key_points which) {
    note(s, STEP_MSM_A + (int)which);
    const struct curve *c = curve_of(s);
    const struct key_shape *shape = key_shape(s->key->key);
    if (s->key->owner->answers) {
        return OK;
    }
    bool zkey_layout = false;
    struct bytes points = key_points_raw(&zkey_layout, s->key->key, which);
    REQUIRE(zkey_layout, E_FORMAT, "only keys in zkey layout are summed here");
    switch (which) {
    case KEY_A:
        sum_g1(&s->sums.a, c, points, s->work);
        return OK;
    case KEY_B1:
        sum_g1(&s->sums.b1, c, points, s->work);
        return OK;
    case KEY_B2:
        sum_g2(&s->sums.b2, c, points, s->work);
        return OK;
    case KEY_L:
        sum_g1(&s->sums.l, c, points, s->work + shape->public_count + 1);
        return OK;
    case KEY_H:
        sum_g1(&s->sums.h, c, points, s->h);
        return OK;
    case KEY_POINTS_COUNT:
        break;
    }
    FAIL(E_INTERNAL, "no such points: %d", which);
}

static void break_sums(struct reference *r, struct sums *sums, const struct curve *c) {
    if (r->broken_times == 0) {
        return;
    }
    r->broken_times--;
    struct g1 *const in_g1[] = {&sums->a, &sums->b1, NULL, &sums->l, &sums->h};
    if (r->broken_sum == KEY_B2) {
        c->g2_add(&sums->b2, &sums->b2, &c->g2_generator);
    } else {
        c->g1_add(in_g1[r->broken_sum], in_g1[r->broken_sum], &c->g1_generator);
    }
}

static enum err sums(struct sums *out, struct step_times *times, struct backend_slot *s) {
    struct reference *r = s->key->owner;
    memset(times, 0, sizeof *times);
    *out = r->answers ? r->answer : s->sums;
    break_sums(r, out, curve_of(s));
    r->runs++;
    return OK;
}

static enum err h_scalars(uint8_t *out, struct backend_slot *s) {
    memcpy(out, s->h, key_shape(s->key->key)->domain_size * sizeof *s->h);
    return OK;
}

static void wipe(struct backend_slot *s) {
    const struct key_shape *shape = key_shape(s->key->key);
    mem_wipe(s->a, shape->domain_size * sizeof *s->a);
    mem_wipe(s->b, shape->domain_size * sizeof *s->b);
    mem_wipe(s->work, shape->wires_count * sizeof *s->work);
    mem_wipe(&s->sums, sizeof s->sums);
    s->witness = NULL;
}

static const struct backend_ops ops = {
    .name = "reference",
    .close = backend_done,
    .plan = plan,
    .key_load = key_load,
    .key_drop = key_drop,
    .slot_open = slot_open,
    .slot_close = slot_close,
    .witness = take_witness,
    .evaluate = evaluate,
    .quotient = quotient,
    .msm = msm,
    .sums = sums,
    .h_scalars = h_scalars,
    .wipe = wipe,
};

enum err reference_backend_open(struct backend **out) {
    struct reference *r = NULL;
    TRY(mem_new(&r, 1, sizeof *r));
    r->base.ops = &ops;
    r->cancel_in = -1;
    snprintf(r->base.device_name, sizeof r->base.device_name, "reference");
    *out = &r->base;
    return OK;
}

void reference_break(struct backend *b, int which_sum, unsigned times) {
    struct reference *r = (struct reference *)b;
    r->broken_sum = which_sum;
    r->broken_times = times;
}

void reference_answer(struct backend *b, const struct sums *sums) {
    struct reference *r = (struct reference *)b;
    r->answers = true;
    r->answer = *sums;
}

struct reference_trace reference_trace(const struct backend *b) {
    return ((const struct reference *)b)->trace;
}

void reference_cancel_in(struct backend *b, int step) {
    ((struct reference *)b)->cancel_in = step;
}

unsigned reference_runs(const struct backend *b) {
    return ((const struct reference *)b)->runs;
}
