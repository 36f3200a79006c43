/* One proof, from witness to a proof that verifies.
 *
 *   sums     A = Σ w_i·A_i   B1 = Σ w_i·B1_i   B2 = Σ w_i·B2_i   L = Σ w_i·L_i (private wires)   H = Σ h_j·H_j
 *   pi_a   = A + α + r·δ
 *   pi_b   = B2 + β + s·δ                 and the same in G1:  b = B1 + β + s·δ
 *   pi_c   = L + H + s·pi_a + r·b - r·s·δ
 *
 * The assembly does not know how H was computed: keys with H in powers and in the coset's Lagrange basis go the same way.
 *
 * A proof that does not verify has two possible causes. The witness may not satisfy the circuit: a zkey holds no C matrix,
 * so nothing earlier can tell. Or the machine computed wrongly. Computing again tells them apart: the five unblinded sums
 * are a function of key and witness alone, so equal digests mean that the witness is at fault. The digest is salted, as the
 * sums of a small witness could be found by trying.
 */
#include "node/groth16/prove.h"
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/rng.h"

#include <stdatomic.h>
#include <string.h>

/* Where the bar stands when a step begins; the shares of a bit-mixed circuit on a processor. */
static const uint32_t step_permille[STEP_COUNT] = {
    [STEP_WITNESS] = 0,    [STEP_EVALUATE] = 10, [STEP_QUOTIENT] = 40, [STEP_MSM_B2] = 200,
    [STEP_MSM_A] = 470,    [STEP_MSM_B1] = 600,  [STEP_MSM_L] = 700,   [STEP_MSM_H] = 820,
    [STEP_ASSEMBLE] = 980, [STEP_VERIFY] = 985,
};

enum err blinding_random(struct blinding *out, const struct curve *c) {
    struct blinding b;
    TRY(scalar_random(&b.r, c));
    TRY(scalar_random(&b.s, c));
    *out = b;
    mem_wipe(&b, sizeof b);
    return OK;
}

static void finish_rest(struct sums *sums, struct prove_result *r) {
    if (r->rest) {
        r->ops->finish(sums, &r->rest);
    }
}

void prove_result_done(struct prove_result *r) {
    finish_rest(NULL, r);
    mem_free(r->publics);
    mem_wipe(r, sizeof *r);
}

/* Progress only rises: a backend may be further than its calls (the CPU computes all sums in the first). */
static enum err begin_step(struct job_watch *watch, enum prove_step step) {
    atomic_store_explicit(&watch->step, (int)step, memory_order_relaxed);
    if (step == STEP_WITNESS ||
        atomic_load_explicit(&watch->permille, memory_order_relaxed) < step_permille[step]) {
        atomic_store_explicit(&watch->permille, step_permille[step], memory_order_relaxed);
    }
    atomic_store_explicit(&watch->progress_ns, clock_ns(), memory_order_relaxed);
    REQUIRE(!atomic_load_explicit(&watch->cancel, memory_order_relaxed), E_CANCELLED,
            "cancelled before step %s", prove_step_name(step));
    return OK;
}

/* rest NULL: the sums are wanted whole. */
static enum err run_backend(struct sums *out, struct backend_rest **rest, struct step_times *times,
                            struct backend *b, struct backend_slot *slot, const struct witness *w,
                            struct job_watch *watch) {
    TRY(begin_step(watch, STEP_WITNESS));
    TRY(b->ops->witness(slot, w, watch));
    TRY(begin_step(watch, STEP_EVALUATE));
    TRY(b->ops->evaluate(slot));
    TRY(begin_step(watch, STEP_QUOTIENT));
    TRY(b->ops->quotient(slot));
    for (size_t i = 0; i < KEY_POINTS_COUNT; i++) {
        TRY(begin_step(watch, msm_step(msm_order[i])));
        TRY(b->ops->msm(slot, msm_order[i]));
    }
    return rest && b->ops->collect ? b->ops->collect(rest, out, times, slot)
                                   : b->ops->sums(out, times, slot);
}

/* The five sums of one job; whatever happened, nothing of it stays in the slot. */
static enum err compute_sums(struct sums *out, struct backend_rest **rest, struct step_times *times,
                             struct backend *b, struct backend_slot *slot, const struct key *key,
                             const struct witness *w, struct job_watch *watch) {
    TRY(witness_fits(w, key_shape(key), key_path(key)));
    enum err code = run_backend(out, rest, times, b, slot, w, watch);
    b->ops->wipe(slot);
    TRY(code);
    TRY(key_intact(key)); /* pages of a file that was cut meanwhile read as zeros */
    return witness_intact(w);
}

static void times_delta1(struct g1 *out, const struct key *key, const struct scalar *k) {
    const struct prepared *prepared = key_prepared(key);
    if (prepared) {
        key_curve(key)->g1_comb_mul(out, prepared->delta1_comb, k);
    } else {
        key_curve(key)->g1_mul(out, &key_vkey(key)->delta1, k);
    }
}

static void times_delta2(struct g2 *out, const struct key *key, const struct scalar *k) {
    const struct prepared *prepared = key_prepared(key);
    if (prepared) {
        key_curve(key)->g2_comb_mul(out, prepared->delta2_comb, k);
    } else {
        key_curve(key)->g2_mul(out, &key_vkey(key)->delta2, k);
    }
}

static void assemble(struct proof *out, const struct key *key, const struct sums *sums,
                     const struct blinding *blinding) {
    const struct vkey *vk = key_vkey(key);
    const struct curve *c = vk->curve;
    struct g1 t, b1;
    struct g2 t2;
    struct scalar rs;
    out->curve = c;
    times_delta1(&t, key, &blinding->r);
    c->g1_add(&t, &t, &vk->alpha1);
    c->g1_add(&out->a, &t, &sums->a);

    times_delta2(&t2, key, &blinding->s);
    c->g2_add(&t2, &t2, &vk->beta2);
    c->g2_add(&out->b, &t2, &sums->b2);

    times_delta1(&t, key, &blinding->s);
    c->g1_add(&t, &t, &vk->beta1);
    c->g1_add(&b1, &t, &sums->b1);

    uint8_t both[2 * G1_BYTES_MAX]; /* s·pi_a + r·b, side by side */
    struct scalar factors[] = {blinding->s, blinding->r};
    g1_store(both, c, &out->a);
    g1_store(both + c->g1_bytes, c, &b1);
    c->g1_sum(&t, both, factors, COUNT_OF(factors));
    c->g1_add(&out->c, &sums->l, &sums->h);
    c->g1_add(&out->c, &out->c, &t);
    c->scalar_mul(&rs, &blinding->r, &blinding->s);
    times_delta1(&t, key, &rs);
    c->g1_neg(&t, &t);
    c->g1_add(&out->c, &out->c, &t);
    mem_wipe(&t, sizeof t);
    mem_wipe(&t2, sizeof t2);
    mem_wipe(&b1, sizeof b1);
    mem_wipe(&rs, sizeof rs);
    mem_wipe(both, sizeof both);
    mem_wipe(factors, sizeof factors);
}

static enum err copy_publics(struct prove_result *out, const struct key *key,
                             const struct witness *w) {
    size_t count = key_vkey(key)->public_count;
    TRY(mem_new(&out->publics, count + 1, sizeof *out->publics)); /* never of no bytes */
    out->publics_count = count;
    for (size_t i = 0; i < count; i++) {
        witness_get(&out->publics[i], w, 1 + i);
    }
    return OK;
}

enum err groth16_compute(struct prove_result *out, struct backend *b, struct backend_slot *slot,
                         const struct key *key, const struct witness *w, struct job_watch *watch) {
    AUTO(prove_result_done) struct prove_result r = {.ops = b->ops};
    uint64_t start_ns = clock_ns();
    TRY(compute_sums(&r.sums, &r.rest, &r.times, b, slot, key, w, watch));
    r.total_ns = clock_ns() - start_ns;
    *out = r;
    r.rest = NULL;
    return OK;
}

enum err groth16_assemble(struct prove_result *r, const struct key *key, const struct witness *w,
                          const struct blinding *blinding) {
    uint64_t start_ns = clock_ns();
    finish_rest(&r->sums, r);
    assemble(&r->proof, key, &r->sums, blinding);
    TRY(copy_publics(r, key, w));
    r->times.ns[STEP_ASSEMBLE] = clock_ns() - start_ns;
    r->total_ns += r->times.ns[STEP_ASSEMBLE];
    return OK;
}

static enum err prove_into(struct prove_result *out, struct backend *b, struct backend_slot *slot,
                           const struct key *key, const struct witness *w,
                           const struct blinding *blinding, struct job_watch *watch) {
    TRY(groth16_compute(out, b, slot, key, w, watch));
    TRY(begin_step(watch, STEP_ASSEMBLE));
    return groth16_assemble(out, key, w, blinding);
}

enum err groth16_check(struct prove_result *r, const struct key *key) {
    uint64_t start_ns = clock_ns();
    enum err code = groth16_verify_prepared(key_prepared(key), key_vkey(key), r->publics,
                                            r->publics_count, &r->proof);
    r->times.ns[STEP_VERIFY] = clock_ns() - start_ns;
    r->total_ns += r->times.ns[STEP_VERIFY];
    REQUIRE(code != E_UNSAT, E_SELFCHECK, "the new proof does not verify under its own key");
    return code;
}

enum err groth16_prove(struct prove_result *out, struct backend *b, struct backend_slot *slot,
                       const struct key *key, const struct witness *w,
                       const struct blinding *blinding, struct job_watch *watch) {
    AUTO(prove_result_done) struct prove_result result = {0};
    TRY(prove_into(&result, b, slot, key, w, blinding, watch));
    TRY(begin_step(watch, STEP_VERIFY));
    enum err code = groth16_check(&result, key);
    if (code == E_SELFCHECK) {
        out->sums = result.sums;
    }
    TRY(code);
    *out = result;
    result.publics = NULL;
    atomic_store_explicit(&watch->permille, 1000, memory_order_relaxed);
    return OK;
}

enum err groth16_sums(struct sums *out, struct backend *b, struct backend_slot *slot,
                      const struct key *key, const struct witness *w, struct job_watch *watch) {
    struct step_times times = {0};
    return compute_sums(out, NULL, &times, b, slot, key, w, watch);
}

enum err sums_digest(struct sha256 *out, const struct curve *c, const struct sums *s,
                     const uint8_t salt[32]) {
    uint8_t packed[32 + 4 * G1_BYTES_MAX + G2_BYTES_MAX];
    const struct g1 *const in_g1[] = {&s->a, &s->b1, &s->l, &s->h};
    size_t at = 32;
    memcpy(packed, salt, 32);
    for (size_t i = 0; i < COUNT_OF(in_g1); i++, at += c->g1_bytes) {
        g1_store(packed + at, c, in_g1[i]);
    }
    g2_store(packed + at, c, &s->b2);
    at += c->g2_bytes;
    enum err code = sha256_of(out, bytes_of(packed, at));
    mem_wipe(packed, sizeof packed);
    return code;
}

enum err prove_settle(const struct sums *first, struct backend *b, struct backend_slot *slot,
                      const struct key *key, const struct witness *w, struct job_watch *watch) {
    struct sums second;
    struct step_times times = {0};
    uint8_t salt[32];
    struct sha256 digests[2];
    TRY(rng_os(salt, sizeof salt));
    TRY(compute_sums(&second, NULL, &times, b, slot, key, w, watch));
    enum err code = sums_digest(&digests[0], key_curve(key), first, salt);
    if (code == OK) {
        code = sums_digest(&digests[1], key_curve(key), &second, salt);
    }
    mem_wipe(&second, sizeof second);
    TRY(code);
    REQUIRE(memcmp(&digests[0], &digests[1], sizeof digests[0]) == 0, E_DEVICE,
            "two computations of one job differ on %s: the machine computes wrongly (memory? "
            "overclocking?)",
            b->device_name);
    FAIL(E_UNSAT,
         "the %s does not satisfy the circuit of this key (computed twice, the proof does not "
         "verify); `bellows wtns check CIRCUIT.r1cs WITNESS` names the constraint",
         witness_title(w));
}
