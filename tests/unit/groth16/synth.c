/* Synthetic circuits hold, look like what they imitate, and have keys under which their proofs verify. */
#include "node/groth16/synth.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/cpu/cpu.h"
#include "node/cpu/fixed.h"
#include "node/cpu/tier.h"
#include "node/groth16/prove.h"
#include "node/key/rows.h"
#include "proto/packed.h"
#include "tests/check/check.h"
#include "tests/unit/groth16/terms.h"

#include <stdio.h>
#include <string.h>

static const enum curve_id curves[] = {CURVE_BN254, CURVE_BLS12_381};
static const struct {
    const char *name;
    enum synth_shape shape;
    unsigned log2;
} shapes[] = {{"dense", SYNTH_DENSE, 5}, {"dense", SYNTH_DENSE, 10}, {"bits", SYNTH_BITS, 5},
              {"bits", SYNTH_BITS, 11},  {"porep", SYNTH_POREP, 10}, {"porep", SYNTH_POREP, 12}};

/* --- The circuit --- */

struct row_sums {
    const struct synth *s;
    struct scalar *of[SETUP_MATRICES]; /* owned */
    uint8_t *named;                    /* owned: bit m: matrix m names the wire */
    uint64_t terms_count[SETUP_MATRICES];
};

static void row_sums_done(struct row_sums *x) {
    for (int i = 0; i < SETUP_MATRICES; i++) {
        mem_free(x->of[i]);
    }
    mem_free(x->named);
}

static void add(void *ctx, const struct setup_term *t) {
    struct row_sums *x = ctx;
    const struct setup_circuit *k = &x->s->circuit;
    struct scalar product;
    CHECK(t->matrix < SETUP_MATRICES && t->row < k->constraints_count && t->wire < k->wires_count);
    CHECK(t->coefficient < k->coefficients_count);
    k->curve->scalar_mul(&product, &k->coefficients[t->coefficient], &x->s->witness[t->wire]);
    k->curve->scalar_add(&x->of[t->matrix][t->row], &x->of[t->matrix][t->row], &product);
    x->terms_count[t->matrix]++;
    x->named[t->wire] |= (uint8_t)(1u << t->matrix);
}

static void row_sums_make(struct row_sums *x, const struct synth *s) {
    *x = (struct row_sums){.s = s};
    for (int i = 0; i < SETUP_MATRICES; i++) {
        CHECK_OK(mem_new(&x->of[i], s->circuit.constraints_count, sizeof *x->of[i]));
    }
    CHECK_OK(mem_new(&x->named, s->circuit.wires_count, 1));
    uint32_t half = s->circuit.constraints_count / 2, rest = s->circuit.constraints_count - half;
    s->circuit.each_term(s->circuit.ctx, (struct setup_rows){half, rest}, add, x);
    s->circuit.each_term(s->circuit.ctx, (struct setup_rows){0, half}, add, x);
}

static void claim_holds(void) {
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        AUTO(synth_done) struct synth s;
        AUTO(row_sums_done) struct row_sums x;
        AUTO(mem_free_ptr) struct scalar *a = NULL, *b = NULL;
        const struct curve *c = curve_by_id(curves[i % 2]);
        CHECK_OK(synth_init(&s, c, shapes[i].shape, shapes[i].log2, rng_u64(check_rng())));
        const struct setup_circuit *k = &s.circuit;
        uint64_t domain = setup_domain(k);
        CHECK_EQ(1 << shapes[i].log2, domain);
        CHECK_OK(mem_new(&a, domain, sizeof *a));
        CHECK_OK(mem_new(&b, domain, sizeof *b));
        synth_evaluate(a, b, &s, NULL);
        row_sums_make(&x, &s);
        for (uint32_t row = 0; row < k->constraints_count; row++) {
            struct scalar product;
            c->scalar_mul(&product, &x.of[SETUP_A][row], &x.of[SETUP_B][row]);
            CHECK_MSG(!memcmp(&product, &x.of[SETUP_C][row], sizeof product),
                      "%s 2^%u: row %u does not hold", shapes[i].name, shapes[i].log2, row);
            CHECK_MEM(&x.of[SETUP_A][row], &a[row], sizeof *a);
            CHECK_MEM(&x.of[SETUP_B][row], &b[row], sizeof *b);
        }
        for (uint32_t w = 0; w <= k->public_count; w++) {
            CHECK_MEM(&s.witness[w], &a[k->constraints_count + w], sizeof *a);
        }
    }
}

struct share {
    double zero, one, small, full;
};

static struct share share_of(const struct scalar *values, size_t count, const struct curve *c) {
    size_t counts[4] = {0};
    for (size_t i = 0; i < count; i++) {
        int64_t small = 0;
        counts[packed_class_of(&small, (const uint8_t *)&values[i], c->r.w)]++;
    }
    double n = (double)count;
    return (struct share){(double)counts[0] / n, (double)counts[1] / n, (double)counts[2] / n,
                          (double)counts[3] / n};
}

/* Limits of what a shape looks like. */
struct looks {
    enum synth_shape shape;
    double full, a_small[2], terms[SETUP_MATRICES], named[2];
};

static void check_shares(const struct looks *looks) {
    AUTO(synth_done) struct synth s;
    AUTO(row_sums_done) struct row_sums x;
    const struct curve *c = curve_by_id(CURVE_BLS12_381);
    CHECK_OK(synth_init(&s, c, looks->shape, 16, 5));
    row_sums_make(&x, &s);
    const struct setup_circuit *k = &s.circuit;
    struct share w = share_of(s.witness, k->wires_count, c),
                 a = share_of(x.of[SETUP_A], k->constraints_count, c),
                 b = share_of(x.of[SETUP_B], k->constraints_count, c);
    CHECK(w.full > looks->full - 0.001 && w.full < looks->full + 0.02 && w.small == 0);
    CHECK(w.one > 0.35 && w.one < 0.55);
    CHECK_MSG(a.small > looks->a_small[0] && a.small < looks->a_small[1] &&
                  a.full < looks->full + 0.02,
              "of a %f are small, %f full", a.small, a.full);
    CHECK(b.small == 0 && b.full < looks->full + 0.02);
    for (unsigned m = 0; m < SETUP_MATRICES; m++) {
        double terms = (double)x.terms_count[m] / (double)k->constraints_count;
        CHECK_MSG(terms > looks->terms[m] - 0.15 && terms < looks->terms[m] + 0.15,
                  "matrix %u: %f terms a row", m, terms);
    }
    for (unsigned m = 0; m < 2; m++) {
        size_t named = 0;
        for (uint32_t i = 0; i < k->wires_count; i++) {
            named += x.named[i] >> m & 1;
        }
        double share = (double)named / (double)k->wires_count;
        CHECK_MSG(share > looks->named[m] - 0.05 && share < looks->named[m] + 0.05,
                  "matrix %u names %f of the wires", m, share);
    }
}

/* SHA-256 as circom compiles it; a PoRep's partition by its published counts. */
static void claim_shares(void) {
    static const struct looks bits = {SYNTH_BITS, 0, {0.3, 0.55}, {1.4, 1.0, 2.7}, {1.0, 0.25}};
    static const struct looks porep = {
        SYNTH_POREP, 0.03, {0.1, 0.2}, {2.375, 1.0, 2.17}, {0.997, 0.254}};
    check_shares(&bits);
    check_shares(&porep);
}

static void claim_sizes(void) {
    struct synth s;
    const struct curve *c = curve_by_id(CURVE_BN254);
    CHECK_ERR(E_RANGE, synth_init(&s, c, SYNTH_DENSE, SYNTH_LOG2_MIN - 1, 1));
    CHECK_ERR(E_RANGE, synth_init(&s, c, SYNTH_POREP, SYNTH_POREP_LOG2_MIN - 1, 1));
    CHECK_ERR(E_RANGE, synth_init(&s, c, SYNTH_BITS, SYNTH_LOG2_MAX + 1, 1));
    CHECK_HAS(err_detail(), "2^29 was asked for");
    CHECK_ERR(E_RANGE, synth_init(&s, c, SYNTH_BITS, 28, 1)); /* H takes roots twice as fine */
    CHECK_ERR(E_USAGE, synth_shape_from(&(enum synth_shape){0}, "square"));
}

/* --- Keys --- */

struct maker {
    struct fixed *fixed[2]; /* owned */
    struct pool *pool;      /* owned */
    char *folder;           /* owned */
    char key[600], witness[600];
};

static void maker_done(struct maker *m) {
    fixed_close(&m->fixed[0]);
    fixed_close(&m->fixed[1]);
    pool_close(&m->pool);
    CHECK_OK(dir_remove_tree(m->folder));
    mem_free(m->folder);
}

static enum err multiply(void *ctx, uint8_t *out, enum point_group g, const struct scalar *k,
                         size_t count) {
    struct maker *m = ctx;
    return fixed_multiply(out, m->fixed[g], k, count, m->pool);
}

static enum err write_piece(void *ctx, struct bytes piece) {
    return file_out_write(ctx, piece);
}

static void maker_open(struct maker *m, const struct synth *s) {
    const struct cpu_ops *ops = NULL;
    *m = (struct maker){0};
    CHECK_OK(tier_find(&ops, s->circuit.curve->id, NULL));
    CHECK_OK(fixed_open(&m->fixed[0], ops, GROUP_G1, 1000));
    CHECK_OK(fixed_open(&m->fixed[1], ops, GROUP_G2, 1000));
    CHECK_OK(pool_open(&m->pool, 2));
    CHECK_OK(dir_make_temp(&m->folder, "bellows-synth"));
    snprintf(m->key, sizeof m->key, "%s/key", m->folder);
    snprintf(m->witness, sizeof m->witness, "%s/witness", m->folder);
}

static void maker_make(struct maker *m, const struct synth *s, bool forgeable) {
    struct rng rng = rng_seeded(7);
    struct file_out *key = NULL, *witness = NULL;
    maker_open(m, s);
    const struct setup_multiplier multiplier = {multiply, m};
    const struct setup_options options = {
        .multiplier = &multiplier, .pool = m->pool, .rng = &rng, .forgeable = forgeable};
    CHECK_OK(file_out_open(&key, m->key));
    CHECK_OK(setup_write_zkey(write_piece, key, &s->circuit, &options));
    CHECK_OK(file_out_commit(key));
    CHECK_OK(file_out_open(&witness, m->witness));
    CHECK_OK(setup_write_wtns(write_piece, witness, s->circuit.curve, s->witness,
                              s->circuit.wires_count));
    CHECK_OK(file_out_commit(witness));
    file_out_close(&key);
    file_out_close(&witness);
}

static void prove(const struct maker *m, enum err want) {
    struct key *key = NULL;
    struct witness w;
    struct backend *backend = NULL;
    struct backend_key *loaded = NULL;
    struct backend_slot *slot = NULL;
    struct prove_result result = {0};
    struct blinding blinding;
    struct job_watch watch = {0};
    const struct backend_options options = {.kind = BACKEND_CPU, .threads_count = 2};
    CHECK_OK(key_open(&key, m->key, (struct key_options){.allow_insecure = true}));
    CHECK_OK(key_check(&(struct key_report){0}, key, NULL, NULL, NULL));
    CHECK_OK(witness_open(&w, m->witness));
    CHECK_OK(witness_fits(&w, key_shape(key), "key"));
    CHECK_OK(cpu_backend_open(&backend, &options));
    CHECK_OK(backend->ops->key_load(&loaded, backend, key));
    CHECK_OK(backend->ops->slot_open(&slot, loaded));
    CHECK_OK(blinding_random(&blinding, key_curve(key)));
    CHECK_ERR(want, groth16_prove(&result, backend, slot, key, &w, &blinding, &watch));
    if (want == OK) {
        CHECK_OK(
            groth16_verify(key_vkey(key), result.publics, result.publics_count, &result.proof));
    }
    prove_result_done(&result);
    backend->ops->slot_close(&slot);
    backend->ops->key_drop(&loaded);
    backend_close(&backend);
    witness_close(&w);
    key_unref(&key);
}

static void claim_proves(void) {
    for (size_t i = 0; i < 2 * COUNT_OF(shapes); i++) {
        AUTO(synth_done) struct synth s;
        AUTO(maker_done) struct maker m;
        CHECK_OK(
            synth_init(&s, curve_by_id(curves[i % 2]), shapes[i / 2].shape, shapes[i / 2].log2, i));
        maker_make(&m, &s, true);
        prove(&m, OK);
    }
}

static void claim_wrong_witness(void) {
    AUTO(synth_done) struct synth s;
    AUTO(maker_done) struct maker m;
    CHECK_OK(synth_init(&s, curve_by_id(CURVE_BN254), SYNTH_BITS, 8, 1));
    s.witness[100].w[0] ^= 1;
    maker_make(&m, &s, true);
    prove(&m, E_SELFCHECK);
}

static void claim_mark(void) {
    AUTO(synth_done) struct synth s;
    AUTO(maker_done) struct maker m;
    struct key *key = NULL;
    CHECK_OK(synth_init(&s, curve_by_id(CURVE_BN254), SYNTH_DENSE, 5, 1));
    maker_make(&m, &s, true);
    CHECK_ERR(E_RANGE, key_open(&key, m.key, (struct key_options){0}));
    CHECK_HAS(err_detail(), "allow-insecure-keys");
    maker_done(&m);
    maker_make(&m, &s, false);
    CHECK_OK(key_open(&key, m.key, (struct key_options){0}));
    key_unref(&key);
}

/* --- Native --- */

struct room {              /* a file's pages, or memory */
    struct file_out *file; /* lent; NULL: memory */
    uint8_t *memory;       /* owned */
    size_t bytes, asked;
};

static enum err give_room(struct bytes_mut *out, void *ctx, size_t bytes) {
    struct room *r = ctx;
    r->asked++;
    r->bytes = bytes;
    if (r->file) {
        return file_out_map(out, r->file, bytes);
    }
    TRY(mem_new(&r->memory, bytes, 1));
    *out = (struct bytes_mut){r->memory, bytes};
    return OK;
}

static void make_native(struct room *r, struct maker *m, const struct synth *s, uint32_t piece,
                        struct pool *pool) {
    struct rng rng = rng_seeded(7);
    const struct setup_multiplier multiplier = {multiply, m};
    const struct setup_options options = {.multiplier = &multiplier,
                                          .pool = pool,
                                          .rng = &rng,
                                          .forgeable = true,
                                          .piece_points = piece};
    CHECK_OK(setup_make_native(give_room, r, &s->circuit, &options));
    CHECK_EQ(1, r->asked);
}

static void check_same_key(const struct key *zkey, const struct key *native) {
    const struct vkey *v = key_vkey(zkey), *w = key_vkey(native);
    CHECK_EQ(KEY_FORMAT_NATIVE, key_shape(native)->format);
    for (unsigned k = 0; k < KEY_POINTS_COUNT; k++) {
        bool p, q;
        struct bytes a = key_points_raw(&p, zkey, k), b = key_points_raw(&q, native, k);
        CHECK(p && q && a.len == b.len);
        CHECK_MEM(a.ptr, b.ptr, a.len);
    }
    CHECK_MEM(&v->alpha1, &w->alpha1, sizeof v->alpha1);
    CHECK_MEM(&v->beta1, &w->beta1, sizeof v->beta1);
    CHECK_MEM(&v->beta2, &w->beta2, sizeof v->beta2);
    CHECK_MEM(&v->gamma2, &w->gamma2, sizeof v->gamma2);
    CHECK_MEM(&v->delta1, &w->delta1, sizeof v->delta1);
    CHECK_MEM(&v->delta2, &w->delta2, sizeof v->delta2);
    CHECK_MEM(v->ic, w->ic, ((size_t)v->public_count + 1) * key_curve(zkey)->g1_bytes);
    check_terms(zkey, native);
}

/* In memory with one thread and large pieces, and in a file with two and pieces of 64: the same bytes, and the .zkey's key. */
static void check_native(const struct synth *s) {
    AUTO(maker_done) struct maker m;
    struct key_options any = {.allow_insecure = true};
    struct room memory = {0}, pages = {0};
    struct key *zkey = NULL, *made = NULL, *mapped = NULL;
    maker_make(&m, s, true);
    CHECK_OK(key_open(&zkey, m.key, any));
    make_native(&memory, &m, s, 0, NULL);
    struct bytes bytes = bytes_of(memory.memory, memory.bytes);
    CHECK_ERR(E_RANGE, key_from_memory(&made, bytes, "made", (struct key_options){0}));
    CHECK_HAS(err_detail(), "made: gamma equals delta");
    CHECK_OK(key_from_memory(&made, bytes, "made", any));
    check_same_key(zkey, made);
    CHECK_OK(file_out_open(&pages.file, m.witness)); /* any name */
    make_native(&pages, &m, s, 64, m.pool);
    CHECK_OK(file_out_commit(pages.file));
    file_out_close(&pages.file);
    CHECK_ERR(E_RANGE, key_open(&mapped, m.witness, (struct key_options){0}));
    CHECK_OK(key_open(&mapped, m.witness, any)); /* reads it whole: sums, rows, header */
    CHECK_EQ(bytes.len, key_shape(mapped)->file_bytes);
    AUTO(mem_free_ptr) uint8_t *all = NULL;
    struct bytes_mut read;
    CHECK_OK(file_read_all(&read, m.witness, bytes.len));
    all = read.ptr;
    CHECK_EQ(bytes.len, read.len);
    CHECK_MEM(bytes.ptr, all, bytes.len);
    key_unref(&zkey);
    key_unref(&made);
    key_unref(&mapped);
    mem_free(memory.memory);
}

static void claim_native(void) {
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        AUTO(synth_done) struct synth s;
        CHECK_OK(synth_init(&s, curve_by_id(curves[i % 2]), shapes[i].shape, shapes[i].log2, i));
        check_native(&s);
    }
}

static void claim_native_proves(void) {
    AUTO(synth_done) struct synth s;
    AUTO(maker_done) struct maker m;
    struct room pages = {0};
    CHECK_OK(synth_init(&s, curve_by_id(CURVE_BLS12_381), SYNTH_POREP, 11, 3));
    maker_make(&m, &s, true);
    CHECK_OK(file_out_open(&pages.file, m.key)); /* in the .zkey's place */
    make_native(&pages, &m, &s, 100, m.pool);
    CHECK_OK(file_out_commit(pages.file));
    file_out_close(&pages.file);
    prove(&m, OK);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"synthetic circuits hold, and evaluate to what their terms say", claim_holds},
        {"their values and matrices have the shares of real circuits", claim_shares},
        {"sizes that cannot be are refused", claim_sizes},
        {"their keys are sound and their proofs verify", claim_proves},
        {"a wrong wire is noticed", claim_wrong_witness},
        {"a synthetic key is refused unless it is asked for", claim_mark},
        {"made in place a key is the same, whatever pieces and threads made it", claim_native},
        {"proofs under such a key verify", claim_native_proves},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
