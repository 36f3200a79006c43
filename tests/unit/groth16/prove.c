/* Whole proofs: every backend against the oracle of the corpus, and what happens when something is wrong.
 *
 * The contenders are the plain reference and the cpu backend in every tier that this processor has, with one thread and
 * with three. A new backend is one more row.
 */
#include "node/groth16/prove.h"
#include "node/base/mem.h"
#include "node/cpu/cpu.h"
#include "node/curve/encode.h"
#include "node/curve/json.h"
#include "tests/check/check.h"
#include "tests/unit/groth16/evaluated.h"
#include "tests/unit/groth16/oracle.h"
#include "tests/unit/groth16/reference.h"
#include "tests/unit/groth16/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTENDERS_MAX = 8 };

/* Longer runs on request ($BELLOWS_LONG). */
static size_t short_or_long(size_t short_count, size_t long_count) {
    return getenv("BELLOWS_LONG") ? long_count : short_count;
}

struct contender {
    char name[64];
    struct backend *backend; /* owned */
};

static size_t open_contenders(struct contender out[CONTENDERS_MAX], bool reference) {
    size_t count = 0;
    if (reference) {
        snprintf(out[count].name, sizeof out[count].name, "reference");
        CHECK_OK(reference_backend_open(&out[count].backend));
        count++;
    }
    const char *const *tiers = cpu_tiers_usable();
    for (size_t i = 0; tiers[i]; i++) {
        static const unsigned threads[] = {1, 3};
        for (size_t k = 0; k < COUNT_OF(threads); k++) {
            CHECK(count < CONTENDERS_MAX);
            struct backend_options options = {
                .kind = BACKEND_CPU, .threads_count = threads[k], .cpu_tier = tiers[i]};
            snprintf(out[count].name, sizeof out[count].name, "cpu %s, %u threads", tiers[i],
                     threads[k]);
            CHECK_OK(cpu_backend_open(&out[count].backend, &options));
            count++;
        }
    }
    return count;
}

static void close_contenders(struct contender *contenders, size_t count) {
    for (size_t i = 0; i < count; i++) {
        backend_close(&contenders[i].backend);
    }
}

/* A key loaded into a backend, with one slot. */
struct seat {
    struct backend *backend; /* lent */
    struct backend_key *key;
    struct backend_slot *slot;
    struct job_watch watch;
};

static void seat_open(struct seat *out, struct backend *backend, struct key *key) {
    *out = (struct seat){.backend = backend};
    CHECK_OK(backend->ops->key_load(&out->key, backend, key));
    CHECK_OK(backend->ops->slot_open(&out->slot, out->key));
}

static void seat_close(struct seat *s) {
    s->backend->ops->slot_close(&s->slot);
    s->backend->ops->key_drop(&s->key);
}

static enum err seat_prove(struct prove_result *out, struct seat *s, const struct key *key,
                           const struct witness *w, const struct blinding *blinding) {
    return groth16_prove(out, s->backend, s->slot, key, w, blinding, &s->watch);
}

/* ── The oracle ── */

static void check_sums(const struct curve *c, const struct sums *want, const struct sums *got) {
    CHECK_MEM(&want->a, &got->a, c->g1_bytes);
    CHECK_MEM(&want->b1, &got->b1, c->g1_bytes);
    CHECK_MEM(&want->b2, &got->b2, c->g2_bytes);
    CHECK_MEM(&want->l, &got->l, c->g1_bytes);
    CHECK_MEM(&want->h, &got->h, c->g1_bytes);
}

static void check_proof(const struct proof *want, const struct proof *got) {
    CHECK(want->curve == got->curve);
    CHECK_MEM(&want->a, &got->a, want->curve->g1_bytes);
    CHECK_MEM(&want->b, &got->b, want->curve->g2_bytes);
    CHECK_MEM(&want->c, &got->c, want->curve->g1_bytes);
}

/* The operations by hand, as the H scalars are wiped when a proof ends. */
static void check_h_scalars(struct seat *s, const struct opened *o, const struct oracle *oracle) {
    const struct backend_ops *ops = s->backend->ops;
    size_t bytes = key_shape(o->key)->domain_size * SCALAR_BYTES;
    uint8_t *scalars = mem_alloc(bytes);
    CHECK(scalars);
    CHECK_OK(ops->witness(s->slot, &o->witness, &s->watch));
    CHECK_OK(ops->evaluate(s->slot));
    CHECK_OK(ops->quotient(s->slot));
    for (int which = 0; which < KEY_POINTS_COUNT; which++) {
        CHECK_OK(ops->msm(s->slot, (enum key_points)which));
    }
    struct sums sums;
    struct step_times times;
    CHECK_OK(ops->sums(&sums, &times, s->slot));
    CHECK_OK(ops->h_scalars(scalars, s->slot));
    struct sha256 digest;
    char hex[SHA256_HEX_BYTES];
    CHECK_OK(sha256_of(&digest, bytes_of(scalars, bytes)));
    sha256_hex(hex, &digest);
    CHECK_STR(oracle->h_scalars_sha256, hex);
    ops->wipe(s->slot);
    mem_free(scalars);
}

/* Given a and b, the matrices are not asked, and the proof is the same. */
static void check_evaluations(struct seat *s, const struct opened *o, const struct oracle *oracle) {
    struct witness w = o->witness;
    struct evaluated e;
    struct prove_result result = {0};
    CHECK_OK(evaluated_make(&e, o->key, &w));
    evaluated_lend(&w, &e);
    CHECK_OK(seat_prove(&result, s, o->key, &w, &oracle->blinding));
    check_sums(w.curve, &oracle->sums, &result.sums);
    check_proof(&oracle->proof, &result.proof);
    prove_result_done(&result);
    evaluated_free(&e);
}

static void check_case(struct contender *contender, const struct oracle_case *c) {
    struct opened o;
    struct oracle oracle;
    struct seat s;
    struct prove_result result = {0};
    opened_open(&o, c);
    oracle_read(&oracle, c);
    CHECK_OK(strcmp(contender->name, "reference") ? key_prepare(o.key) : OK); /* as a node does */
    seat_open(&s, contender->backend, o.key);
    enum err code = seat_prove(&result, &s, o.key, &o.witness, &oracle.blinding);
    CHECK_MSG(code == OK, "%s, %s: %s", contender->name, c->name, err_detail());
    check_sums(c->curve, &oracle.sums, &result.sums);
    check_proof(&oracle.proof, &result.proof);
    CHECK_EQ(key_shape(o.key)->public_count, result.publics_count);
    for (size_t i = 0; i < result.publics_count; i++) {
        CHECK_MEM(o.witness.values + 32 * (i + 1), &result.publics[i], 32);
    }
    prove_result_done(&result);
    check_h_scalars(&s, &o, &oracle);
    check_evaluations(&s, &o, &oracle);
    seat_close(&s);
    opened_close(&o);
}

static void check_oracle(struct contender *contenders, size_t contenders_count) {
    static struct oracle_case cases[ORACLE_CASES_MAX];
    size_t count = oracle_cases(cases);
    for (size_t k = 0; k < contenders_count; k++) {
        for (size_t i = 0; i < count; i++) {
            check_case(&contenders[k], &cases[i]);
        }
    }
}

static void claim_oracle_reference(void) {
    struct contender reference = {.name = "reference"};
    long live = mem_live_blocks();
    CHECK_OK(reference_backend_open(&reference.backend));
    check_oracle(&reference, 1);
    close_contenders(&reference, 1);
    CHECK_EQ(live, mem_live_blocks());
}

static void claim_oracle_cpu(void) {
    struct contender contenders[CONTENDERS_MAX];
    long live = mem_live_blocks();
    size_t count = open_contenders(contenders, false);
    check_oracle(contenders, count);
    close_contenders(contenders, count);
    CHECK_EQ(live, mem_live_blocks());
}

/* ── Bellman: the assembly does not care how H was computed ── */

static void canned_g1(struct g1 *out, const struct curve *c, const cJSON *sums, const char *field) {
    const char *hex = NULL;
    uint8_t packed[G1_BYTES_MAX];
    CHECK_OK(json_text_member(&hex, sums, field));
    *out = (struct g1){{0}};
    if (strcmp(hex, "infinity") != 0) {
        CHECK_OK(hex_decode(packed, c->g1_bytes, hex));
        CHECK_OK(bellman_g1_read(out, c, bytes_of(packed, c->g1_bytes), false, true));
    }
}

static void canned_sums(struct sums *out, struct blinding *blinding, char *proof_hex,
                        const struct oracle_case *k) {
    const struct curve *c = k->curve;
    cJSON *json = NULL;
    const cJSON *sums = NULL;
    const char *text = NULL;
    uint8_t packed[G2_BYTES_MAX];
    CHECK_OK(json_read(&json, oracle_path(k, "bellman.json")));
    CHECK_OK(json_member(&sums, json, "sums"));
    canned_g1(&out->a, c, sums, "a");
    canned_g1(&out->b1, c, sums, "b1");
    canned_g1(&out->l, c, sums, "l");
    canned_g1(&out->h, c, sums, "h");
    CHECK_OK(json_text_member(&text, sums, "b2"));
    CHECK_OK(hex_decode(packed, c->g2_bytes, text));
    CHECK_OK(bellman_g2_read(&out->b2, c, bytes_of(packed, c->g2_bytes), false, true));
    CHECK_OK(json_text_member(&text, json, "r"));
    CHECK_OK(scalar_from_decimal(&blinding->r, c, text));
    CHECK_OK(json_text_member(&text, json, "s"));
    CHECK_OK(scalar_from_decimal(&blinding->s, c, text));
    CHECK_OK(json_text_member(&text, json, "proof"));
    CHECK_EQ(2 * PROOF_BELLMAN_BYTES_MAX, strlen(text));
    memcpy(proof_hex, text, 2 * PROOF_BELLMAN_BYTES_MAX + 1);
    json_free(&json);
}

static void claim_bellman(void) {
    static const char *const names[] = {"base", "bits"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct oracle_case c = oracle_case_named("bls12381", names[i]);
        struct key *key = NULL;
        struct witness witness;
        struct sums sums;
        struct blinding blinding;
        struct backend *backend = NULL;
        struct seat s;
        struct prove_result result = {0};
        char want[2 * PROOF_BELLMAN_BYTES_MAX + 1], got[2 * PROOF_BELLMAN_BYTES_MAX + 1];
        uint8_t packed[PROOF_BELLMAN_BYTES_MAX];
        CHECK_OK(key_open(&key, oracle_path(&c, "circuit.params"), (struct key_options){0}));
        CHECK_EQ(H_POWERS, key_shape(key)->h_basis);
        CHECK_OK(witness_open(&witness, oracle_path(&c, "witness.wtns")));
        canned_sums(&sums, &blinding, want, &c);
        CHECK_OK(reference_backend_open(&backend));
        reference_answer(backend, &sums);
        seat_open(&s, backend, key);
        CHECK_OK(seat_prove(&result, &s, key, &witness, &blinding));
        proof_write_bellman(packed, &result.proof);
        hex_encode(got, packed, sizeof packed);
        CHECK_STR(want, got);
        prove_result_done(&result);
        seat_close(&s);
        backend_close(&backend);
        witness_close(&witness);
        key_unref(&key);
    }
}

/* h(x)·Z(x) = A(x)·B(x) - C(x) at a random x, with h in powers. */
static void polynomial_at(struct scalar *out, const struct curve *c, const struct scalar *coefs,
                          size_t n, const struct scalar *x) {
    *out = (struct scalar){{0}};
    for (size_t i = n; i-- > 0;) {
        c->scalar_mul(out, out, x);
        c->scalar_add(out, out, &coefs[i]);
    }
}

static void claim_powers(void) {
    enum { LOG2 = 4, N = 1 << LOG2 };
    const struct curve *c = curve_by_id(CURVE_BLS12_381);
    struct scalar a[N], b[N], prod[N], h[N], a2[N], b2[N], root, x, at[4], z, one = {{1}};
    c->scalar_root_bellman(&root, LOG2);
    for (size_t i = 0; i < N; i++) {
        rng_fill(check_rng(), &a[i], sizeof a[i]);
        rng_fill(check_rng(), &b[i], sizeof b[i]);
        a[i].w[3] >>= 4;
        b[i].w[3] >>= 4;
        c->scalar_mul(&prod[i], &a[i], &b[i]);
        a2[i] = a[i];
        b2[i] = b[i];
    }
    reference_quotient(h, a2, b2, c, LOG2, H_POWERS);
    CHECK(scalar_is_zero(&h[N - 1]));
    reference_ntt(a, c, LOG2, &root, true);
    reference_ntt(b, c, LOG2, &root, true);
    reference_ntt(prod, c, LOG2, &root, true);
    x = (struct scalar){{rng_u64(check_rng()), rng_u64(check_rng())}};
    const struct scalar *const polynomials[] = {a, b, prod, h};
    for (size_t i = 0; i < COUNT_OF(polynomials); i++) {
        polynomial_at(&at[i], c, polynomials[i], N, &x);
    }
    c->scalar_pow(&z, &x, N);
    c->scalar_sub(&z, &z, &one);
    c->scalar_mul(&z, &z, &at[3]);
    c->scalar_mul(&at[0], &at[0], &at[1]);
    c->scalar_sub(&at[0], &at[0], &at[2]);
    CHECK_MEM(&at[0], &z, sizeof z);
}

/* ── Blinding ── */

static const char *const curves[] = {"bn128", "bls12381"};

static void claim_blinding(void) {
    size_t runs = short_or_long(16, 1000);
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct oracle_case c = oracle_case_named(curves[i], "base");
        struct opened o;
        struct seat s;
        struct contender cpu[CONTENDERS_MAX];
        size_t count = open_contenders(cpu, false);
        struct proof *proofs = NULL;
        CHECK_OK(mem_new(&proofs, runs, sizeof *proofs));
        opened_open(&o, &c);
        seat_open(&s, cpu[0].backend, o.key);
        for (size_t run = 0; run < runs; run++) {
            struct blinding blinding;
            struct prove_result result = {0};
            CHECK_OK(blinding_random(&blinding, c.curve));
            CHECK(!scalar_is_zero(&blinding.r) && !scalar_is_zero(&blinding.s));
            CHECK(scalar_is_valid(c.curve, &blinding.r) && scalar_is_valid(c.curve, &blinding.s));
            CHECK(memcmp(&blinding.r, &blinding.s, sizeof blinding.r) != 0);
            CHECK_OK(seat_prove(&result, &s, o.key, &o.witness, &blinding));
            proofs[run] = result.proof;
            prove_result_done(&result);
            for (size_t earlier = 0; earlier < run; earlier++) {
                CHECK(memcmp(&proofs[earlier].a, &proofs[run].a, sizeof proofs[run].a) != 0);
                CHECK(memcmp(&proofs[earlier].b, &proofs[run].b, sizeof proofs[run].b) != 0);
                CHECK(memcmp(&proofs[earlier].c, &proofs[run].c, sizeof proofs[run].c) != 0);
            }
        }
        mem_free(proofs);
        seat_close(&s);
        opened_close(&o);
        close_contenders(cpu, count);
    }
}

/* ── What goes wrong ── */

/* A copy of the witness with one value replaced. */
static void spoiled(struct witness *out, const struct witness *w, uint64_t wire, uint64_t value) {
    uint8_t *values = mem_alloc(w->count * SCALAR_BYTES);
    CHECK(values);
    memcpy(values, w->values, w->count * SCALAR_BYTES);
    memset(values + SCALAR_BYTES * wire, 0, SCALAR_BYTES);
    store_u64le(values + SCALAR_BYTES * wire, value);
    CHECK_OK(witness_from_values(out, w->curve, values, w->count, "spoiled"));
}

static void claim_unsatisfied(void) {
    struct contender contenders[CONTENDERS_MAX];
    size_t count = open_contenders(contenders, true);
    for (size_t i = 0; i < 2 * count; i++) {
        struct contender *contender = &contenders[i / 2];
        struct oracle_case c = oracle_case_named(curves[i % 2], "base");
        struct opened o;
        struct seat s;
        opened_open(&o, &c);
        seat_open(&s, contender->backend, o.key);
        for (uint64_t wire = 1; wire < o.witness.count; wire++) {
            struct witness bad;
            struct blinding blinding;
            struct prove_result result = {0};
            spoiled(&bad, &o.witness, wire, 999);
            CHECK_OK(blinding_random(&blinding, c.curve));
            CHECK_ERR(E_SELFCHECK, seat_prove(&result, &s, o.key, &bad, &blinding));
            CHECK(!result.publics);
            CHECK_ERR(E_UNSAT,
                      prove_settle(&result.sums, s.backend, s.slot, o.key, &bad, &s.watch));
            CHECK_HAS(err_detail(), "does not satisfy");
            prove_result_done(&result);
            witness_close(&bad);
        }
        seat_close(&s);
        opened_close(&o);
    }
    close_contenders(contenders, count);
}

/* One more in any row of a or b is found, even where the other is 0 and a∘b stays what it was. */
static void claim_wrong_evaluations(void) {
    struct contender contenders[CONTENDERS_MAX];
    size_t count = open_contenders(contenders, true);
    for (size_t i = 0; i < 2 * count; i++) {
        struct oracle_case c = oracle_case_named(curves[i % 2], "base");
        struct opened o;
        struct seat s;
        struct evaluated e;
        opened_open(&o, &c);
        struct witness w = o.witness;
        seat_open(&s, contenders[i / 2].backend, o.key);
        CHECK_OK(evaluated_make(&e, o.key, &w));
        evaluated_lend(&w, &e);
        for (uint64_t row = 0; row < 2 * e.rows_count; row++) {
            struct scalar *spoiled = row % 2 ? &e.b[row / 2] : &e.a[row / 2], sound = *spoiled;
            struct blinding blinding;
            struct prove_result result = {0};
            c.curve->scalar_add(spoiled, spoiled, &(struct scalar){{1}});
            CHECK_OK(blinding_random(&blinding, c.curve));
            CHECK_ERR(E_SELFCHECK, seat_prove(&result, &s, o.key, &w, &blinding));
            CHECK_ERR(E_UNSAT, prove_settle(&result.sums, s.backend, s.slot, o.key, &w, &s.watch));
            CHECK_HAS(err_detail(), "witness with its a and b");
            *spoiled = sound;
        }
        evaluated_free(&e);
        seat_close(&s);
        opened_close(&o);
    }
    close_contenders(contenders, count);
}

static void claim_wrong_machine(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct oracle_case c = oracle_case_named(curves[i], "base");
        struct opened o;
        struct seat s;
        struct backend *backend = NULL;
        struct blinding blinding;
        opened_open(&o, &c);
        CHECK_OK(reference_backend_open(&backend));
        seat_open(&s, backend, o.key);
        CHECK_OK(blinding_random(&blinding, c.curve));
        for (int which = 0; which < KEY_POINTS_COUNT; which++) {
            struct prove_result result = {0};
            reference_break(backend, which, 1);
            CHECK_ERR(E_SELFCHECK, seat_prove(&result, &s, o.key, &o.witness, &blinding));
            unsigned runs = reference_runs(backend);
            CHECK_ERR(E_DEVICE,
                      prove_settle(&result.sums, backend, s.slot, o.key, &o.witness, &s.watch));
            CHECK_HAS(err_detail(), "computes wrongly");
            CHECK_EQ(runs + 1, reference_runs(backend));
            prove_result_done(&result);
            CHECK_OK(seat_prove(&result, &s, o.key, &o.witness, &blinding));
            prove_result_done(&result);
        }
        seat_close(&s);
        backend_close(&backend);
        opened_close(&o);
    }
}

static void claim_digest(void) {
    struct oracle_case c = oracle_case_named("bn128", "base");
    struct oracle oracle;
    struct sha256 d[2];
    uint8_t salt[32] = {1};
    oracle_read(&oracle, &c);
    CHECK_OK(sums_digest(&d[0], c.curve, &oracle.sums, salt));
    CHECK_OK(sums_digest(&d[1], c.curve, &oracle.sums, salt));
    CHECK_MEM(&d[0], &d[1], sizeof d[0]);
    salt[0] = 2;
    CHECK_OK(sums_digest(&d[1], c.curve, &oracle.sums, salt));
    CHECK(memcmp(&d[0], &d[1], sizeof d[0]) != 0);
    salt[0] = 1;
    struct g1 *const in_g1[] = {&oracle.sums.a, &oracle.sums.b1, &oracle.sums.l, &oracle.sums.h};
    for (size_t i = 0; i < COUNT_OF(in_g1); i++) {
        in_g1[i]->w[7] ^= 1;
        CHECK_OK(sums_digest(&d[1], c.curve, &oracle.sums, salt));
        CHECK(memcmp(&d[0], &d[1], sizeof d[0]) != 0);
        in_g1[i]->w[7] ^= 1;
    }
    oracle.sums.b2.w[15] ^= 1;
    CHECK_OK(sums_digest(&d[1], c.curve, &oracle.sums, salt));
    CHECK(memcmp(&d[0], &d[1], sizeof d[0]) != 0);
}

static void claim_cancelled(void) {
    struct contender contenders[CONTENDERS_MAX];
    size_t count = open_contenders(contenders, true);
    struct oracle_case c = oracle_case_named("bn128", "base");
    for (size_t i = 0; i < count; i++) {
        struct opened o;
        struct seat s;
        struct oracle oracle;
        struct prove_result result = {0};
        opened_open(&o, &c);
        oracle_read(&oracle, &c);
        seat_open(&s, contenders[i].backend, o.key);
        s.watch.cancel = 1;
        CHECK_ERR(E_CANCELLED, seat_prove(&result, &s, o.key, &o.witness, &oracle.blinding));
        CHECK(!result.publics);
        s.watch.cancel = 0;
        CHECK_OK(seat_prove(&result, &s, o.key, &o.witness, &oracle.blinding));
        check_proof(&oracle.proof, &result.proof);
        CHECK_EQ(1000, s.watch.permille);
        CHECK_EQ(STEP_VERIFY, s.watch.step);
        CHECK(s.watch.progress_ns > 0);
        prove_result_done(&result);
        seat_close(&s);
        opened_close(&o);
    }
    close_contenders(contenders, count);
}

/* The steps in their order: the MSMs in that of msm_order. */
static int step_at(unsigned place) {
    return place < STEP_MSM_A ? (int)place : (int)msm_step(msm_order[place - STEP_MSM_A]);
}

/* The operations up to the last MSM see their own step; a cancel flag set in one of them stops the job before the next. */
static void claim_steps(void) {
    struct oracle_case c = oracle_case_named("bn128", "base");
    struct opened o;
    struct oracle oracle;
    struct backend *backend = NULL;
    struct seat s;
    opened_open(&o, &c);
    oracle_read(&oracle, &c);
    CHECK_OK(reference_backend_open(&backend));
    seat_open(&s, backend, o.key);
    for (int place = -1; place <= STEP_MSM_H; place++) { /* -1: not cancelled */
        struct prove_result result = {0};
        reference_cancel_in(backend, place < 0 ? -1 : step_at((unsigned)place));
        s.watch.cancel = 0;
        enum err code = seat_prove(&result, &s, o.key, &o.witness, &oracle.blinding);
        CHECK_EQ(place < 0 ? OK : E_CANCELLED, code);
        struct reference_trace trace = reference_trace(backend);
        CHECK_EQ(place < 0 ? STEP_MSM_H + 1 : place + 1, trace.count);
        for (unsigned i = 0; i < trace.count; i++) {
            CHECK_EQ(step_at(i), trace.steps[i]);
        }
        prove_result_done(&result);
    }
    seat_close(&s);
    backend_close(&backend);
    opened_close(&o);
}

static void claim_misfits(void) {
    struct oracle_case bn = oracle_case_named("bn128", "base");
    struct oracle_case bls = oracle_case_named("bls12381", "base");
    struct oracle_case small = oracle_case_named("bn128", "mul");
    struct opened o, other, short_one;
    struct backend *backend = NULL;
    struct seat s;
    struct blinding blinding;
    struct prove_result result = {0};
    opened_open(&o, &bn);
    opened_open(&other, &bls);
    opened_open(&short_one, &small);
    CHECK_OK(reference_backend_open(&backend));
    seat_open(&s, backend, o.key);
    CHECK_OK(blinding_random(&blinding, bn.curve));
    CHECK_ERR(E_CURVE, seat_prove(&result, &s, o.key, &other.witness, &blinding));
    CHECK_ERR(E_RANGE, seat_prove(&result, &s, o.key, &short_one.witness, &blinding));
    CHECK_EQ(0, reference_runs(backend));
    seat_close(&s);
    backend_close(&backend);
    opened_close(&short_one);
    opened_close(&other);
    opened_close(&o);
}

/* Two keys and two curves in turn on one backend: no job sees what another left. */
static void claim_interleaved(void) {
    struct contender contenders[CONTENDERS_MAX];
    size_t count = open_contenders(contenders, false);
    static const char *const names[][2] = {
        {"bn128", "base"}, {"bls12381", "bits"}, {"bn128", "all-zeros"}, {"bls12381", "base"}};
    for (size_t i = 0; i < count; i++) {
        struct opened o[COUNT_OF(names)];
        struct seat s[COUNT_OF(names)];
        struct oracle oracles[COUNT_OF(names)];
        for (size_t k = 0; k < COUNT_OF(names); k++) {
            struct oracle_case c = oracle_case_named(names[k][0], names[k][1]);
            opened_open(&o[k], &c);
            oracle_read(&oracles[k], &c);
            seat_open(&s[k], contenders[i].backend, o[k].key);
        }
        for (size_t turn = 0; turn < 24; turn++) {
            size_t k = rng_below(check_rng(), COUNT_OF(names));
            struct prove_result result = {0};
            CHECK_OK(seat_prove(&result, &s[k], o[k].key, &o[k].witness, &oracles[k].blinding));
            check_proof(&oracles[k].proof, &result.proof);
            prove_result_done(&result);
        }
        for (size_t k = 0; k < COUNT_OF(names); k++) {
            seat_close(&s[k]);
            opened_close(&o[k]);
        }
    }
    close_contenders(contenders, count);
}

/* ── Circuits by recipe ── */

/* Sets the circuit up, proves it on each contender with one blinding and compares: all proofs equal and valid. */
static void check_circuit(struct contender *contenders, size_t count, const struct circuit *k,
                          const char *what) {
    struct file_bytes zkey, wtns;
    char *folder = NULL;
    char zkey_path[512], wtns_path[512];
    struct key *key = NULL;
    struct witness witness;
    struct blinding blinding;
    struct proof first = {0};
    CHECK_MSG(circuit_holds(k), "%s: the recipe's witness is wrong", what);
    circuit_setup(&zkey, k, check_rng());
    circuit_wtns(&wtns, k);
    CHECK_OK(dir_make_temp(&folder, "bellows-groth16"));
    snprintf(zkey_path, sizeof zkey_path, "%s/circuit.zkey", folder);
    snprintf(wtns_path, sizeof wtns_path, "%s/witness.wtns", folder);
    CHECK_OK(file_write_all(zkey_path, bytes_of(zkey.ptr, zkey.len)));
    CHECK_OK(file_write_all(wtns_path, bytes_of(wtns.ptr, wtns.len)));
    CHECK_OK(key_open(&key, zkey_path, (struct key_options){0}));
    CHECK_OK(witness_open(&witness, wtns_path));
    CHECK_OK(blinding_random(&blinding, k->curve));
    for (size_t i = 0; i < count; i++) {
        struct seat s;
        struct prove_result result = {0};
        seat_open(&s, contenders[i].backend, key);
        enum err code = seat_prove(&result, &s, key, &witness, &blinding);
        CHECK_MSG(code == OK, "%s on %s: %s", what, contenders[i].name, err_detail());
        if (i == 0) {
            first = result.proof;
        }
        check_proof(&first, &result.proof);
        prove_result_done(&result);
        seat_close(&s);
    }
    witness_close(&witness);
    key_unref(&key);
    CHECK_OK(dir_remove_tree(folder));
    mem_free(folder);
    mem_free(zkey.ptr);
    mem_free(wtns.ptr);
}

static void claim_chain_sizes(void) {
    struct contender contenders[CONTENDERS_MAX];
    size_t count = open_contenders(contenders, false);
    unsigned log2_max = (unsigned)short_or_long(8, 12);
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        for (unsigned log2 = 2; log2 <= log2_max; log2++) {
            for (int around = -1; around <= 1; around++) {
                uint32_t rows = (1u << log2) + (uint32_t)around;
                struct circuit k;
                char what[64];
                circuit_chain(&k, curve_by_name(curves[i]), rows - 2, 1, rng_u64(check_rng()));
                snprintf(what, sizeof what, "%s chain of %u rows", curves[i], rows);
                check_circuit(contenders, count, &k, what);
                circuit_done(&k);
            }
        }
    }
    close_contenders(contenders, count);
}

static void claim_tiny(void) {
    struct contender contenders[CONTENDERS_MAX];
    size_t count = open_contenders(contenders, true);
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        for (uint32_t constraints = 1; constraints <= 31; constraints++) {
            struct circuit k;
            char what[64];
            circuit_chain(&k, curve_by_name(curves[i]), constraints, constraints % 2, 3);
            snprintf(what, sizeof what, "%s chain of %u constraints", curves[i], constraints);
            size_t skip = constraints > 12; /* the reference, which is slow */
            check_circuit(contenders + skip, count - skip, &k, what);
            circuit_done(&k);
        }
    }
    close_contenders(contenders, count);
}

enum skew { ALL_ONE, ALL_MINUS_ONE, ONE_DIGIT, EQUAL_FULL, PAIRED, SKEWS };

/* Wires used only as one sum, twice: every point of A (and of B, and of L) is the same point. With `PAIRED` half of them
 * are used negated with equal values, so that P and -P meet in every bucket. */
static void sum_circuit(struct circuit *k, const struct curve *c, uint32_t wires, enum skew skew) {
    uint32_t inputs = wires - 3; /* one, the public product, the inputs, one spare private */
    circuit_init(k, c, wires, 1);
    struct scalar sum = {{0}}, one = {{1}}, minus_one, value;
    c->scalar_sub(&minus_one, &sum, &one);
    const struct scalar values[SKEWS] = {
        [ALL_ONE] = one,
        [ALL_MINUS_ONE] = minus_one,
        [ONE_DIGIT] = {{0, 0, 0x40000}},
        [EQUAL_FULL] = {{0x123456789abcdef1, 0xfedcba9876543211, 0x1111111111111113, 0x0f0f0f0f0f}},
        [PAIRED] = {{0x123456789abcdef1, 0xfedcba9876543211, 0x1111111111111113, 0x0f0f0f0f0f}},
    };
    uint32_t row = circuit_row(k);
    for (uint32_t i = 0; i < inputs; i++) {
        bool negative = skew == PAIRED && i % 2 == 1;
        value = values[skew];
        k->witness[2 + i] = value;
        for (unsigned matrix = LC_A; matrix <= LC_B; matrix++) {
            circuit_term(k, matrix, row, 2 + i, 1);
            if (negative) {
                k->terms[k->terms_count - 1].coefficient = SETUP_MINUS_ONE;
            }
        }
        if (negative) {
            c->scalar_sub(&sum, &sum, &value);
        } else {
            c->scalar_add(&sum, &sum, &value);
        }
    }
    circuit_term(k, LC_C, row, 1, 1);
    c->scalar_mul(&k->witness[1], &sum, &sum);
}

static void claim_repeated_bases(void) {
    struct contender contenders[CONTENDERS_MAX];
    size_t count = open_contenders(contenders, false);
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        for (int skew = 0; skew < SKEWS; skew++) {
            struct circuit k;
            char what[64];
            sum_circuit(&k, curve_by_name(curves[i]), 400, (enum skew)skew);
            snprintf(what, sizeof what, "%s, one sum of 397 wires, skew %d", curves[i], skew);
            check_circuit(contenders, count, &k, what);
            circuit_done(&k);
        }
    }
    close_contenders(contenders, count);
}

struct whole_job {
    struct backend *backend;
    struct opened o;
    struct blinding blinding;
};

static enum err prove_with_seat(struct whole_job *job, struct seat *s) {
    struct prove_result result = {0};
    TRY(job->backend->ops->key_load(&s->key, job->backend, job->o.key));
    TRY(job->backend->ops->slot_open(&s->slot, s->key));
    TRY(seat_prove(&result, s, job->o.key, &job->o.witness, &job->blinding));
    prove_result_done(&result);
    return OK;
}

static enum err prove_once(void *ctx) {
    struct whole_job *job = ctx;
    struct seat s = {.backend = job->backend};
    enum err code = prove_with_seat(job, &s);
    seat_close(&s);
    return code;
}

static void claim_memory(void) {
    struct contender contenders[CONTENDERS_MAX];
    size_t count = open_contenders(contenders, true);
    for (size_t i = 0; i < count; i++) {
        struct oracle_case c = oracle_case_named(curves[i % 2], "base");
        struct whole_job job = {.backend = contenders[i].backend};
        opened_open(&job.o, &c);
        CHECK_OK(blinding_random(&job.blinding, c.curve));
        CHECK(check_allocations(prove_once, &job) > 0);
        opened_close(&job.o);
    }
    close_contenders(contenders, count);
}

static void claim_step_names(void) {
    for (int step = 0; step < STEP_COUNT; step++) {
        const char *name = prove_step_name((enum prove_step)step);
        CHECK(name && name[0]);
        for (int earlier = 0; earlier < step; earlier++) {
            CHECK(strcmp(name, prove_step_name((enum prove_step)earlier)) != 0);
        }
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"every step has a name of its own", claim_step_names},
        {"the reference gives the oracle's sums and proofs", claim_oracle_reference},
        {"the cpu backend gives the oracle's sums and proofs in every tier", claim_oracle_cpu},
        {"bellman's sums become bellman's proof", claim_bellman},
        {"the reference's h in powers divides A·B - C by Z", claim_powers},
        {"two proofs of one witness never share a point", claim_blinding},
        {"a witness that breaks the circuit is found at fault", claim_unsatisfied},
        {"a or b that the assignment does not give is found at fault, in whichever row",
         claim_wrong_evaluations},
        {"a machine that computes wrongly is found at fault, whichever sum it is",
         claim_wrong_machine},
        {"the digest of the sums depends on salt and every sum", claim_digest},
        {"a cancelled job ends, and the next one is sound", claim_cancelled},
        {"each step is announced, and a job can be cancelled in each", claim_steps},
        {"a witness of another curve or count is refused before the work", claim_misfits},
        {"jobs of several keys and curves in turn do not mix", claim_interleaved},
        {"circuits of 2^k - 1, 2^k and 2^k + 1 rows are proved", claim_chain_sizes},
        {"circuits of one to 31 constraints are proved, small ones as the reference does",
         claim_tiny},
        {"keys of one point repeated and skewed scalars are proved", claim_repeated_bases},
        {"loading a key and proving survive every failed allocation", claim_memory},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
