/* Reads the corpus through the readers under test: a reader that is wrong fails here too. */
#include "tests/unit/groth16/oracle.h"
#include "node/base/mem.h"
#include "node/curve/encode.h"
#include "node/curve/json.h"
#include "tests/check/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *oracle_path(const struct oracle_case *c, const char *file) {
    static char paths[8][640];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", c->folder, file);
    return path;
}

struct oracle_case oracle_case_named(const char *curve, const char *name) {
    struct oracle_case c = {.curve = curve_by_name(curve)};
    char tail[128];
    snprintf(tail, sizeof tail, "%s/%s", curve, name);
    snprintf(c.name, sizeof c.name, "%.63s", tail);
    snprintf(c.folder, sizeof c.folder, "%s", check_vectors(tail));
    return c;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct oracle_case *)a)->name, ((const struct oracle_case *)b)->name);
}

size_t oracle_cases(struct oracle_case out[ORACLE_CASES_MAX]) {
    static const char *const curves[] = {"bn128", "bls12381"};
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        DIR *dir = opendir(check_vectors(curves[i]));
        CHECK(dir);
        for (struct dirent *e; (e = readdir(dir)) && count < ORACLE_CASES_MAX;) {
            struct oracle_case c = oracle_case_named(curves[i], e->d_name);
            if (e->d_name[0] != '.' && file_exists(oracle_path(&c, "circuit.zkey")) &&
                file_exists(oracle_path(&c, "fixed.json"))) {
                out[count++] = c;
            }
        }
        closedir(dir);
    }
    CHECK_MSG(count >= 40, "only %zu cases in tests/vectors", count);
    qsort(out, count, sizeof *out, by_name);
    return count;
}

static void read_g1(struct g1 *out, const struct curve *c, const cJSON *object, const char *field) {
    const cJSON *value = NULL;
    CHECK_OK(json_member(&value, object, field));
    CHECK_OK(json_g1_read(out, c, value, field));
}

static void read_g2(struct g2 *out, const struct curve *c, const cJSON *object, const char *field) {
    const cJSON *value = NULL;
    CHECK_OK(json_member(&value, object, field));
    CHECK_OK(json_g2_read(out, c, value, field));
}

static void read_scalar(struct scalar *out, const struct curve *c, const cJSON *object,
                        const char *field) {
    const char *digits = NULL;
    CHECK_OK(json_text_member(&digits, object, field));
    CHECK_OK(scalar_from_decimal(out, c, digits));
}

void oracle_read(struct oracle *out, const struct oracle_case *c) {
    cJSON *json = NULL;
    const cJSON *proof = NULL, *msm = NULL;
    const char *hex = NULL;
    *out = (struct oracle){.proof.curve = c->curve};
    CHECK_OK(json_read(&json, oracle_path(c, "fixed.json")));
    read_scalar(&out->blinding.r, c->curve, json, "r");
    read_scalar(&out->blinding.s, c->curve, json, "s");
    CHECK_OK(json_member(&proof, json, "proof"));
    read_g1(&out->proof.a, c->curve, proof, "pi_a");
    read_g2(&out->proof.b, c->curve, proof, "pi_b");
    read_g1(&out->proof.c, c->curve, proof, "pi_c");
    CHECK_OK(json_member(&msm, json, "msm"));
    read_g1(&out->sums.a, c->curve, msm, "A");
    read_g1(&out->sums.b1, c->curve, msm, "B1");
    read_g2(&out->sums.b2, c->curve, msm, "B2");
    read_g1(&out->sums.l, c->curve, msm, "C");
    read_g1(&out->sums.h, c->curve, msm, "H");
    CHECK_OK(json_text_member(&hex, json, "h_scalars_sha256"));
    CHECK_EQ(SHA256_HEX_BYTES - 1, strlen(hex));
    memcpy(out->h_scalars_sha256, hex, SHA256_HEX_BYTES);
    json_free(&json);
}

void opened_open(struct opened *out, const struct oracle_case *c) {
    *out = (struct opened){0};
    CHECK_OK(key_open(&out->key, oracle_path(c, "circuit.zkey"),
                      (struct key_options){.allow_insecure = true}));
    CHECK_OK(witness_open(&out->witness, oracle_path(c, "witness.wtns")));
}

void opened_close(struct opened *o) {
    witness_close(&o->witness);
    key_unref(&o->key);
}
