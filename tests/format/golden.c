/* Every case of the vectors, both curves: shapes, counts, digests, verifying keys byte for byte. */
#include "tests/check/check.h"

#include "node/base/mem.h"
#include "node/base/text.h"
#include "node/key/key.h"
#include "node/witness/r1cs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const curves[] = {"bn128", "bls12381"};

static const struct golden {
    const char *name;
    uint32_t wires, publics;
    uint64_t domain;
    bool insecure; /* no contribution */
    uint32_t contributions;
} cases[] = {
    {"min", 3, 0, 2, true, 0},
    {"mul", 4, 1, 4, true, 0},
    {"mul-contrib", 4, 1, 4, false, 1},
    {"mul-beacon", 4, 1, 4, false, 3},
    {"nopub", 4, 0, 4, true, 0},
    {"manypub", 102, 100, 256, false, 1},
    {"pow2-exact", 64, 1, 64, false, 1},
    {"pow2-over", 65, 1, 128, true, 0},
    {"chain200", 202, 1, 256, false, 2},
    {"unused", 5, 2, 4, true, 0},
    {"unused-O0", 45, 2, 4, false, 1},
    {"bits", 132, 1, 256, false, 1},
    {"dense", 25, 12, 32, false, 1},
    {"merkle", 230, 1, 256, false, 1},
    {"linear-O0", 34, 2, 64, true, 0},
    {"all-zeros", 46, 30, 64, true, 0},
    {"all-ones", 46, 30, 64, true, 0},
    {"all-minus-ones", 46, 30, 64, false, 1},
    {"base", 8, 2, 8, false, 1},
    {"base-zero", 8, 2, 8, false, 1},
    {"base-uncontributed", 8, 2, 8, true, 0},
    {"base-other", 8, 2, 8, false, 2},
    {"allpublic", 4, 3, 8, false, 1},
    {"sum-O0", 4, 1, 4, false, 1},
    {"repeated", 7, 1, 4, false, 1},
};

static const char *case_path(const char *curve, const struct golden *g, const char *file) {
    char tail[256];
    snprintf(tail, sizeof tail, "%s/%s/%s", curve, g->name, file);
    return check_vectors(tail);
}

#define FOR_EACH_CASE(curve, g)                                                                    \
    for (size_t curve##_i = 0; curve##_i < COUNT_OF(curves); curve##_i++)                          \
        for (const struct golden *g = cases; g < cases + COUNT_OF(cases); g++)                     \
            for (const char *curve = curves[curve##_i]; curve; curve = NULL)

static struct key *open_case(const char *curve, const struct golden *g) {
    struct key *key = NULL;
    CHECK_OK(key_open(&key, case_path(curve, g, "circuit.zkey"), (struct key_options){true}));
    return key;
}

static void claim_shapes(void) {
    FOR_EACH_CASE(curve, g) {
        struct key *key = open_case(curve, g);
        const struct key_shape *s = key_shape(key);
        CHECK_STR(curve, key_curve(key)->snarkjs_name);
        CHECK_EQ(key_curve(key)->id, s->curve);
        CHECK_EQ(KEY_FORMAT_ZKEY, s->format);
        CHECK_EQ(H_COSET_LAGRANGE, s->h_basis);
        CHECK_EQ(g->wires, s->wires_count);
        CHECK_EQ(g->publics, s->public_count);
        CHECK_EQ(g->domain, s->domain_size);
        CHECK_EQ(g->domain, 1ull << s->domain_log2);
        CHECK_EQ(g->wires, s->points_count[KEY_A]);
        CHECK_EQ(g->wires, s->points_count[KEY_B1]);
        CHECK_EQ(g->wires, s->points_count[KEY_B2]);
        CHECK_EQ(g->wires - g->publics - 1, s->points_count[KEY_L]);
        CHECK_EQ(g->domain, s->points_count[KEY_H]);
        CHECK_EQ(g->contributions, key_contributions(key).count);
        CHECK(key_contributions(key).present);
        CHECK_EQ(10, key_sections(NULL, 0, key));
        CHECK_OK(key_intact(key));
        key_unref(&key);
        CHECK(key == NULL);
    }
}

static void claim_points_and_terms(void) {
    FOR_EACH_CASE(curve, g) {
        struct key *key = open_case(curve, g);
        const struct key_shape *s = key_shape(key);
        for (unsigned which = 0; which < KEY_POINTS_COUNT; which++) {
            bool zkey_layout = false;
            struct bytes points = key_points_raw(&zkey_layout, key, (enum key_points)which);
            CHECK(zkey_layout);
            size_t each = which == KEY_B2 ? key_curve(key)->g2_bytes : key_curve(key)->g1_bytes;
            CHECK_EQ(s->points_count[which] * each, points.len);
        }
        struct bytes terms = key_terms_raw(key);
        CHECK_EQ((s->terms_count[0] + s->terms_count[1]) * KEY_TERM_BYTES, terms.len);
        uint64_t of[2] = {0, 0};
        for (size_t i = 0; i < terms.len / KEY_TERM_BYTES; i++) {
            struct key_term t = key_term_at(terms, i);
            CHECK(t.matrix <= 1 && t.row < s->domain_size && t.wire < s->wires_count);
            CHECK(scalar_is_valid(key_curve(key), &t.value_r2));
            of[t.matrix]++;
        }
        CHECK_EQ(of[0], s->terms_count[0]);
        CHECK_EQ(of[1], s->terms_count[1]);
        key_unref(&key);
    }
}

/* A term's value is the r1cs coefficient times R²; the extra rows have coefficient one. */
static void claim_last_term_is_one(void) {
    FOR_EACH_CASE(curve, g) {
        struct key *key = open_case(curve, g);
        const struct curve *c = key_curve(key);
        struct scalar two = {{2}}, r2;
        c->scalar_pow(&r2, &two, 512);
        struct bytes terms = key_terms_raw(key);
        struct key_term last = key_term_at(terms, terms.len / KEY_TERM_BYTES - 1);
        CHECK_EQ(0, last.matrix);
        CHECK_EQ(g->publics, last.wire);
        CHECK_MEM(r2.w, last.value_r2.w, sizeof r2);
        key_unref(&key);
    }
}

static void claim_vkey_json(void) {
    FOR_EACH_CASE(curve, g) {
        struct key *key = open_case(curve, g);
        AUTO(text_free) struct text text = {0};
        CHECK_OK(vkey_write_json(&text, key_vkey(key)));
        struct bytes_mut want;
        CHECK_OK(file_read_all(&want, case_path(curve, g, "verification_key.json"), 1 << 22));
        /* The stored file ends in a newline; snarkjs itself writes none. */
        CHECK_EQ(want.len - 1, text.len);
        CHECK_MEM(want.ptr, text.ptr, text.len);
        mem_free(want.ptr);
        key_unref(&key);
    }
}

static void claim_vkey_json_reads_back(void) {
    FOR_EACH_CASE(curve, g) {
        struct key *key = open_case(curve, g);
        const struct vkey *of_key = key_vkey(key);
        struct bytes_mut json;
        CHECK_OK(file_read_all(&json, case_path(curve, g, "verification_key.json"), 1 << 22));
        struct vkey vk, copy;
        CHECK_OK(vkey_read_json(&vk, bytes_of(json.ptr, json.len), "verification_key.json"));
        CHECK_OK(vkey_copy(&copy, &vk));
        vkey_done(&vk);
        CHECK(copy.curve == of_key->curve);
        CHECK_EQ(of_key->public_count, copy.public_count);
        CHECK_MEM(&of_key->alpha1, &copy.alpha1, sizeof copy.alpha1);
        CHECK_MEM(&of_key->beta2, &copy.beta2, sizeof copy.beta2);
        CHECK_MEM(&of_key->gamma2, &copy.gamma2, sizeof copy.gamma2);
        CHECK_MEM(&of_key->delta2, &copy.delta2, sizeof copy.delta2);
        CHECK_MEM(of_key->ic, copy.ic, (g->publics + 1) * copy.curve->g1_bytes);
        CHECK_EQ(g->insecure, vkey_is_insecure(&copy));
        vkey_done(&copy);
        mem_free(json.ptr);
        key_unref(&key);
    }
}

static void claim_insecure_refused(void) {
    FOR_EACH_CASE(curve, g) {
        struct key *key = NULL;
        const char *path = case_path(curve, g, "circuit.zkey");
        enum err e = key_open(&key, path, (struct key_options){false});
        CHECK_EQ(g->insecure ? E_RANGE : OK, e);
        if (g->insecure) {
            CHECK(key == NULL);
            CHECK_HAS(err_detail(), "--allow-insecure-keys");
            CHECK_HAS(err_detail(), "circuit.zkey");
        }
        key_unref(&key);
    }
}

static void claim_witness_fits(void) {
    FOR_EACH_CASE(curve, g) {
        struct key *key = open_case(curve, g);
        struct witness w;
        CHECK_OK(witness_open(&w, case_path(curve, g, "witness.wtns")));
        CHECK_OK(witness_fits(&w, key_shape(key), key_path(key)));
        CHECK_OK(witness_intact(&w));
        witness_close(&w);
        key_unref(&key);
    }
}

static void claim_r1cs_satisfied(void) {
    FOR_EACH_CASE(curve, g) {
        struct r1cs r;
        struct witness w;
        uint32_t bad;
        CHECK_OK(r1cs_open(&r, case_path(curve, g, "circuit.r1cs")));
        CHECK_OK(witness_open(&w, case_path(curve, g, "witness.wtns")));
        CHECK_EQ(g->wires, r.wires_count);
        CHECK_EQ(g->publics, r.outputs_count + r.public_inputs_count);
        CHECK_OK(r1cs_satisfied(&bad, &r, &w));
        witness_close(&w);
        r1cs_close(&r);
    }
}

static void claim_digests_differ(void) {
    /* One circuit, three keys: a name would mix them up. */
    static const char *const names[] = {"base", "base-uncontributed", "base-other"};
    for (size_t c = 0; c < COUNT_OF(curves); c++) {
        struct sha256 digests[COUNT_OF(names)];
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            struct golden g = {.name = names[i]};
            struct key *key = open_case(curves[c], &g);
            struct bytes_mut file;
            struct sha256 want, again;
            CHECK_OK(key_digest(&digests[i], key));
            CHECK_OK(key_digest(&again, key));
            CHECK_OK(file_read_all(&file, key_path(key), 1 << 20));
            CHECK_OK(sha256_of(&want, bytes_of(file.ptr, file.len)));
            CHECK_MEM(&want, &digests[i], sizeof want);
            CHECK_MEM(&want, &again, sizeof want);
            mem_free(file.ptr);
            key_unref(&key);
            for (size_t k = 0; k < i; k++) {
                CHECK(memcmp(&digests[k], &digests[i], sizeof digests[i]) != 0);
            }
        }
    }
}

static void claim_refs(void) {
    struct key *key = open_case("bn128", &cases[0]), *second = key_ref(key);
    key_unref(&key);
    CHECK(key == NULL);
    CHECK_EQ(3, key_shape(second)->wires_count);
    key_unref(&second);
    key_unref(&second); /* NULL is fine */
}

int main(int argc, char **argv) {
    setenv("BELLOWS_CACHE", "/dev/null/none", 1); /* nothing of a test is remembered */
    static const struct check_claim claims[] = {
        {"golden: every key opens with the shape it should have", claim_shapes},
        {"golden: points and terms have the lengths their counts say", claim_points_and_terms},
        {"golden: the constant's row carries one times R squared", claim_last_term_is_one},
        {"golden: verification_key.json comes out byte for byte", claim_vkey_json},
        {"golden: verification_key.json reads back to the key's own", claim_vkey_json_reads_back},
        {"golden: a key without contribution needs permission (B13)", claim_insecure_refused},
        {"golden: every witness fits its key", claim_witness_fits},
        {"golden: every witness satisfies its constraints", claim_r1cs_satisfied},
        {"golden: a key is named by its bytes, not by its circuit (A19)", claim_digests_differ},
        {"golden: the last reference closes", claim_refs},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
