/* The pairing equation, alone and in batches: what verifies, and everything near it that must not. */
#include "node/groth16/verify.h"
#include "node/base/mem.h"
#include "node/key/key.h"
#include "tests/check/check.h"
#include "tests/unit/groth16/oracle.h"

#include <stdio.h>
#include <string.h>

struct sample {
    struct vkey vk;         /* owned */
    struct proof proof;     /* by snarkjs, random blinding */
    struct scalar *publics; /* owned */
    size_t publics_count;
};

static void sample_open(struct sample *out, const struct oracle_case *c) {
    *out = (struct sample){0};
    struct file_map vkey = {0}, proof = {0}, publics = {0};
    CHECK_OK(file_map_open(&vkey, oracle_path(c, "verification_key.json")));
    CHECK_OK(vkey_read_json(&out->vk, vkey.bytes, "verification_key.json"));
    CHECK_OK(file_map_open(&proof, oracle_path(c, "proof.json")));
    CHECK_OK(proof_read_json(&out->proof, NULL, proof.bytes, "proof.json"));
    CHECK_OK(file_map_open(&publics, oracle_path(c, "public.json")));
    CHECK_OK(public_read_json(&out->publics, &out->publics_count, out->vk.curve, publics.bytes,
                              "public.json"));
    file_map_close(&vkey);
    file_map_close(&proof);
    file_map_close(&publics);
}

static void sample_close(struct sample *s) {
    vkey_done(&s->vk);
    mem_free(s->publics);
}

static void base_sample(struct sample *out, const char *curve, const char *name) {
    struct oracle_case c = oracle_case_named(curve, name);
    sample_open(out, &c);
}

/* Also with what is prepared of the key: that must not change the answer. */
static enum err verify(const struct sample *s) {
    struct prepared *prepared = NULL;
    CHECK_OK(prepared_new(&prepared, &s->vk));
    enum err with =
        groth16_verify_prepared(prepared, &s->vk, s->publics, s->publics_count, &s->proof);
    enum err without = groth16_verify(&s->vk, s->publics, s->publics_count, &s->proof);
    CHECK_MSG(with == without, "%s prepared, %s plain", err_name(with), err_name(without));
    mem_free(prepared);
    return without;
}

static const char *const curves[] = {"bn128", "bls12381"};

static void claim_corpus(void) {
    static struct oracle_case cases[ORACLE_CASES_MAX];
    size_t count = oracle_cases(cases);
    for (size_t i = 0; i < count; i++) {
        struct sample s;
        struct oracle oracle;
        sample_open(&s, &cases[i]);
        CHECK_MSG(verify(&s) == OK, "%s: %s", cases[i].name, err_detail());
        oracle_read(&oracle, &cases[i]);
        CHECK_OK(groth16_verify(&s.vk, s.publics, s.publics_count, &oracle.proof));
        sample_close(&s);
    }
}

static void claim_key_header(void) {
    static struct oracle_case cases[ORACLE_CASES_MAX];
    size_t count = oracle_cases(cases);
    for (size_t i = 0; i < count; i++) {
        struct sample s;
        struct opened o;
        sample_open(&s, &cases[i]);
        opened_open(&o, &cases[i]);
        CHECK_OK(groth16_verify(key_vkey(o.key), s.publics, s.publics_count, &s.proof));
        opened_close(&o);
        sample_close(&s);
    }
}

static void claim_other_statement(void) {
    static const char *const names[] = {"base", "manypub"}; /* few public signals, and many */
    for (size_t i = 0; i < 2 * COUNT_OF(curves); i++) {
        struct sample s;
        base_sample(&s, curves[i / 2], names[i % 2]);
        for (size_t j = 0; j < s.publics_count; j++) {
            struct scalar kept = s.publics[j], one = {{1}};
            s.vk.curve->scalar_add(&s.publics[j], &s.publics[j], &one);
            CHECK_ERR(E_UNSAT, verify(&s));
            s.publics[j] = kept;
        }
        struct scalar first = s.publics[0];
        s.publics[0] = s.publics[1];
        s.publics[1] = first;
        bool same = !memcmp(&first, &s.publics[0], sizeof first);
        CHECK_ERR(same ? OK : E_UNSAT, verify(&s));
        CHECK(same == (i % 2 == 1));
        sample_close(&s);
    }
}

static void claim_other_points(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct sample s;
        base_sample(&s, curves[i], "base");
        const struct curve *c = s.vk.curve;
        struct proof good = s.proof;
        struct vkey key = s.vk;
        struct g1 *const g1s[] = {&s.proof.a, &s.proof.c, &s.vk.alpha1};
        struct g2 *const g2s[] = {&s.proof.b, &s.vk.beta2, &s.vk.gamma2, &s.vk.delta2};
        for (size_t k = 0; k < COUNT_OF(g1s); k++) {
            c->g1_add(g1s[k], g1s[k], &c->g1_generator);
            CHECK_ERR(E_UNSAT, verify(&s));
            s.proof = good;
            s.vk = key;
        }
        for (size_t k = 0; k < COUNT_OF(g2s); k++) {
            c->g2_add(g2s[k], g2s[k], &c->g2_generator);
            CHECK_ERR(E_UNSAT, verify(&s));
            s.proof = good;
            s.vk = key;
        }
        for (size_t k = 0; k <= s.vk.public_count; k++) {
            struct g1 ic, changed;
            g1_load(&ic, c, s.vk.ic + k * c->g1_bytes);
            c->g1_add(&changed, &ic, &c->g1_generator);
            g1_store(s.vk.ic + k * c->g1_bytes, c, &changed);
            CHECK_ERR(E_UNSAT, verify(&s));
            g1_store(s.vk.ic + k * c->g1_bytes, c, &ic);
        }
        s.proof.a = good.c;
        s.proof.c = good.a;
        CHECK_ERR(E_UNSAT, verify(&s));
        s.proof = good;
        CHECK_OK(verify(&s));
        sample_close(&s);
    }
}

/* Each byte of a proof's coordinates, changed: what is still a point must not verify. */
static void claim_flipped_bytes(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct sample s;
        base_sample(&s, curves[i], "base");
        const struct curve *c = s.vk.curve;
        struct proof good = s.proof;
        struct {
            void *point;
            size_t len;
        } points[] = {
            {&s.proof.a, c->g1_bytes}, {&s.proof.b, c->g2_bytes}, {&s.proof.c, c->g1_bytes}};
        for (size_t k = 0; k < COUNT_OF(points); k++) {
            for (size_t byte = 0; byte < points[k].len; byte++) {
                ((uint8_t *)points[k].point)[byte] ^= (uint8_t)(1u << rng_below(check_rng(), 8));
                CHECK_ERR(E_UNSAT, verify(&s));
                s.proof = good;
            }
        }
        sample_close(&s);
    }
}

static void claim_negated(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct sample s;
        base_sample(&s, curves[i], "base");
        const struct curve *c = s.vk.curve;
        c->g1_neg(&s.proof.a, &s.proof.a);
        CHECK_ERR(E_UNSAT, verify(&s));
        c->g2_neg(&s.proof.b, &s.proof.b);
        CHECK_OK(verify(&s));
        sample_close(&s);
    }
}

/* The first x = 1, 2, 3 … with a point over it: outside the subgroup but for a chance of one in the cofactor. */
static void stray_g2(struct g2 *out, const struct curve *c) {
    uint64_t plain[FP_LIMBS_MAX] = {0}, x[2 * FP_LIMBS_MAX] = {0};
    do {
        plain[0]++;
        CHECK(c->fp_from_int(x, plain));
    } while (!c->g2_from_x(out, x, false));
}

static void claim_subgroup(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct sample s;
        base_sample(&s, curves[i], "base");
        struct proof good = s.proof;
        stray_g2(&s.proof.b, s.vk.curve);
        CHECK_ERR(E_UNSAT, verify(&s));
        CHECK_HAS(err_detail(), "pi_b");
        s.proof = good;
        if (s.vk.curve->id == CURVE_BLS12_381) { /* BN254's G1 has no cofactor */
            uint64_t plain[FP_LIMBS_MAX] = {0}, x[FP_LIMBS_MAX] = {0};
            struct g1 stray;
            do {
                plain[0]++;
                CHECK(s.vk.curve->fp_from_int(x, plain));
            } while (!s.vk.curve->g1_from_x(&stray, x, false));
            s.proof.a = stray;
            CHECK_ERR(E_UNSAT, verify(&s));
            CHECK_HAS(err_detail(), "pi_a");
            s.proof = good;
            s.proof.c = stray;
            CHECK_ERR(E_UNSAT, verify(&s));
            CHECK_HAS(err_detail(), "pi_c");
        }
        sample_close(&s);
    }
}

static void claim_infinity(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct sample s;
        base_sample(&s, curves[i], "base");
        struct proof good = s.proof;
        s.proof.a = (struct g1){{0}};
        CHECK_ERR(E_UNSAT, verify(&s));
        CHECK_HAS(err_detail(), "pi_a");
        s.proof = good;
        s.proof.b = (struct g2){{0}};
        CHECK_ERR(E_UNSAT, verify(&s));
        CHECK_HAS(err_detail(), "pi_b");
        s.proof = good;
        s.proof.c = (struct g1){{0}};
        CHECK_ERR(E_UNSAT, verify(&s));
        sample_close(&s);
    }
}

static void claim_publics_count(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct sample s;
        base_sample(&s, curves[i], "base-zero");
        CHECK_OK(verify(&s));
        CHECK(scalar_is_zero(&s.publics[1]));
        struct scalar padded[3] = {s.publics[0], s.publics[1], {{0}}};
        CHECK_ERR(E_RANGE, groth16_verify(&s.vk, padded, 1, &s.proof));
        CHECK_ERR(E_RANGE, groth16_verify(&s.vk, padded, 3, &s.proof));
        CHECK_HAS(err_detail(), "3 public signals are given; the key has 2");
        CHECK_ERR(E_RANGE, groth16_verify(&s.vk, padded, 0, &s.proof));
        CHECK_OK(groth16_verify(&s.vk, padded, 2, &s.proof));
        sample_close(&s);
    }
}

static void claim_publics_range(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct sample s;
        base_sample(&s, curves[i], "base");
        unsigned __int128 carry = 0;
        for (size_t k = 0; k < 4; k++) { /* x + r, the same number modulo r */
            carry += (unsigned __int128)s.publics[1].w[k] + s.vk.curve->r.w[k];
            s.publics[1].w[k] = (uint64_t)carry;
            carry >>= 64;
        }
        CHECK_ERR(E_RANGE, verify(&s));
        CHECK_HAS(err_detail(), "not canonical");
        sample_close(&s);
    }
}

static void claim_other_key(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct sample s, other;
        base_sample(&s, curves[i], "base");
        base_sample(&other, curves[i], "base-other");
        CHECK_ERR(E_UNSAT, groth16_verify(&other.vk, s.publics, s.publics_count, &s.proof));
        sample_close(&other);
        base_sample(&other, curves[1 - i], "base");
        CHECK_ERR(E_CURVE, groth16_verify(&other.vk, s.publics, s.publics_count, &s.proof));
        sample_close(&other);
        sample_close(&s);
    }
}

/* ── Batches ── */

/* Another valid proof of the same statement: (A/k, k·B, C). */
static void rerandomise(struct proof *out, const struct proof *in, struct rng *rng) {
    const struct curve *c = in->curve;
    struct scalar k = {{rng_u64(rng) | 1}}, k_inv;
    c->scalar_inv(&k_inv, &k);
    *out = *in;
    c->g1_mul(&out->a, &in->a, &k_inv);
    c->g2_mul(&out->b, &in->b, &k);
}

enum { BATCH = 9, BATCH_LONG = 300 };

static void claim_batch(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct sample s;
        base_sample(&s, curves[i], "base");
        struct proof proofs[BATCH];
        struct verify_item items[BATCH];
        for (size_t k = 0; k < BATCH; k++) {
            rerandomise(&proofs[k], &s.proof, check_rng());
            items[k] = (struct verify_item){&proofs[k], s.publics};
        }
        size_t bad_idx = 77;
        for (size_t count = 0; count <= BATCH; count++) {
            CHECK_OK(groth16_verify_batch(&bad_idx, &s.vk, items, count));
        }
        CHECK_EQ(77, bad_idx);
        sample_close(&s);
    }
}

static void claim_batch_bad(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct sample s;
        base_sample(&s, curves[i], "base");
        const struct curve *c = s.vk.curve;
        struct proof proofs[BATCH], stray;
        struct verify_item items[BATCH];
        for (size_t k = 0; k < BATCH; k++) {
            rerandomise(&proofs[k], &s.proof, check_rng());
            items[k] = (struct verify_item){&proofs[k], s.publics};
        }
        size_t bad_idx;
        for (size_t k = 0; k < BATCH; k++) {
            struct proof kept = proofs[k];
            c->g1_add(&proofs[k].c, &proofs[k].c, &c->g1_generator);
            CHECK_ERR(E_UNSAT, groth16_verify_batch(&bad_idx, &s.vk, items, BATCH));
            CHECK_EQ(k, bad_idx);
            char needle[32];
            snprintf(needle, sizeof needle, "proof %zu", k);
            CHECK_HAS(err_detail(), needle);
            proofs[k] = kept;
        }
        struct scalar wrong[2] = {s.publics[1], s.publics[0]};
        items[4].publics = wrong;
        CHECK_ERR(E_UNSAT, groth16_verify_batch(&bad_idx, &s.vk, items, BATCH));
        CHECK_EQ(4, bad_idx);
        items[4].publics = s.publics;
        stray = proofs[2];
        stray_g2(&stray.b, c);
        items[7].proof = &stray;
        CHECK_ERR(E_UNSAT, groth16_verify_batch(&bad_idx, &s.vk, items, BATCH));
        CHECK_EQ(7, bad_idx);
        sample_close(&s);
    }
}

/* Two errors that cancel without weights: C_0 + G and C_1 - G. */
static void claim_batch_cancelling(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        struct sample s;
        base_sample(&s, curves[i], "base");
        const struct curve *c = s.vk.curve;
        struct proof plus = s.proof, minus = s.proof;
        struct g1 negative;
        c->g1_neg(&negative, &c->g1_generator);
        c->g1_add(&plus.c, &plus.c, &c->g1_generator);
        c->g1_add(&minus.c, &minus.c, &negative);
        struct verify_item items[] = {
            {&s.proof, s.publics}, {&plus, s.publics}, {&minus, s.publics}};
        size_t bad_idx;
        CHECK_ERR(E_UNSAT, groth16_verify_batch(&bad_idx, &s.vk, items, COUNT_OF(items)));
        CHECK_EQ(1, bad_idx);
        sample_close(&s);
    }
}

static void claim_batch_long(void) {
    struct sample s;
    base_sample(&s, "bn128", "base");
    struct proof bad = s.proof;
    bad.curve->g1_neg(&bad.a, &bad.a);
    struct verify_item *items = mem_zero_alloc(BATCH_LONG, sizeof *items);
    CHECK(items);
    for (size_t k = 0; k < BATCH_LONG; k++) {
        items[k] = (struct verify_item){&s.proof, s.publics};
    }
    size_t bad_idx;
    CHECK_OK(groth16_verify_batch(&bad_idx, &s.vk, items, BATCH_LONG));
    items[BATCH_LONG - 2].proof = &bad;
    CHECK_ERR(E_UNSAT, groth16_verify_batch(&bad_idx, &s.vk, items, BATCH_LONG));
    CHECK_EQ(BATCH_LONG - 2, bad_idx);
    mem_free(items);
    sample_close(&s);
}

static void claim_batch_memory(void) {
    struct sample s;
    base_sample(&s, "bn128", "base");
    struct verify_item items[] = {{&s.proof, s.publics}, {&s.proof, s.publics}};
    long live = mem_live_blocks();
    size_t bad_idx;
    for (long n = 0;; n++) {
        mem_fail_after(n);
        enum err code = groth16_verify_batch(&bad_idx, &s.vk, items, COUNT_OF(items));
        mem_fail_after(-1);
        CHECK_EQ(live, mem_live_blocks());
        if (code == OK) {
            CHECK(n > 0);
            break;
        }
        CHECK_EQ(E_LIMIT, code);
    }
    sample_close(&s);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"snarkjs's proofs verify under snarkjs's keys", claim_corpus},
        {"they verify under the proving key's own header", claim_key_header},
        {"a proof does not verify for other public signals", claim_other_statement},
        {"a proof does not verify with any point of it or of the key replaced", claim_other_points},
        {"a proof with any byte of it changed does not verify", claim_flipped_bytes},
        {"(-A, -B, C) verifies, as a proof is no identifier; (-A, B, C) does not", claim_negated},
        {"points outside the subgroup are refused by name", claim_subgroup},
        {"infinity is refused where no honest proof has it", claim_infinity},
        {"the number of public signals must be exact, zeros included", claim_publics_count},
        {"a public signal plus r is refused", claim_publics_range},
        {"a proof does not verify under another key or curve", claim_other_key},
        {"a batch of good proofs verifies, the empty one too", claim_batch},
        {"a batch names its first bad proof", claim_batch_bad},
        {"errors that cancel each other do not pass a batch", claim_batch_cancelling},
        {"a batch longer than one fold finds a bad proof near its end", claim_batch_long},
        {"a batch survives every failed allocation", claim_batch_memory},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
