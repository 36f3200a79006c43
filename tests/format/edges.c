/* Edge circuits and keys with infinities, from file to verified proof, on the CPU backend.
 *
 * What circuits do that people meet: nothing private, nothing public, only linear constraints, points at infinity where
 * naive sums break. For keys that were changed here no proof verifies, so their sums are compared with a plain loop.
 */
#include "tests/format/damaged.h"

#include "node/base/mem.h"
#include "node/cpu/cpu.h"
#include "node/groth16/prove.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_seat {
    struct backend *backend;
    struct backend_key *key;
    struct backend_slot *slot;
    struct job_watch watch;
};

static void seat_open(struct bench_seat *s, struct key *key) {
    static const struct backend_options options = {.kind = BACKEND_CPU, .threads_count = 2};
    *s = (struct bench_seat){0};
    CHECK_OK(cpu_backend_open(&s->backend, &options));
    CHECK_OK(s->backend->ops->key_load(&s->key, s->backend, key));
    CHECK_OK(s->backend->ops->slot_open(&s->slot, s->key));
}

static void seat_close(struct bench_seat *s) {
    s->backend->ops->slot_close(&s->slot);
    s->backend->ops->key_drop(&s->key);
    backend_close(&s->backend);
}

static const char *path_of(const char *curve, const char *name, const char *file) {
    char tail[256];
    snprintf(tail, sizeof tail, "%s/%s/%s", curve, name, file);
    return check_vectors(tail);
}

/* Proves with random blinding and verifies under the key that was exported and read back. */
static void prove_and_verify(const char *curve, const char *name, size_t publics_want) {
    struct key *key = NULL;
    struct witness w;
    struct bench_seat seat;
    struct blinding blinding;
    struct prove_result result = {0};
    CHECK_OK(key_open(&key, path_of(curve, name, "circuit.zkey"), (struct key_options){true}));
    CHECK_OK(witness_open(&w, path_of(curve, name, "witness.wtns")));
    CHECK_OK(witness_fits(&w, key_shape(key), key_path(key)));
    seat_open(&seat, key);
    CHECK_OK(blinding_random(&blinding, key_curve(key)));
    CHECK_OK(groth16_prove(&result, seat.backend, seat.slot, key, &w, &blinding, &seat.watch));
    CHECK_EQ(publics_want, result.publics_count);
    AUTO(text_free) struct text json = {0};
    struct vkey vk;
    CHECK_OK(vkey_write_json(&json, key_vkey(key)));
    CHECK_OK(vkey_read_json(&vk, text_bytes(&json), "exported"));
    CHECK_OK(groth16_verify(&vk, result.publics, result.publics_count, &result.proof));
    vkey_done(&vk);
    prove_result_done(&result);
    seat_close(&seat);
    witness_close(&w);
    key_unref(&key);
}

static void claim_nothing_private(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        prove_and_verify(curve_dirs[c], "allpublic", 3);
    }
}

static void claim_only_linear(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        prove_and_verify(curve_dirs[c], "sum-O0", 1);
        prove_and_verify(curve_dirs[c], "linear-O0", 2);
    }
}

static void claim_nothing_public(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        prove_and_verify(curve_dirs[c], "nopub", 0);
        prove_and_verify(curve_dirs[c], "min", 0);
    }
}

static void claim_repeated_points(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        /* The key really has what it is there for: wires 2 and 3 own the same point of A. */
        struct damaged d = damaged_case(curve_dirs[c], "repeated/circuit.zkey");
        size_t g1 = 2 * zkey_q_bytes(&d), a = section_place(&d, 5);
        CHECK_MEM(d.ptr + a + 2 * g1, d.ptr + a + 3 * g1, g1);
        damaged_free(&d);
        prove_and_verify(curve_dirs[c], "repeated", 1);
    }
}

/* ── Keys with infinities put in ── */

/* Σ w[i]·point[i], one by one. */
static void plain_g1(struct g1 *out, const struct curve *c, const uint8_t *points,
                     const struct witness *w, uint64_t first_wire) {
    struct g1 sum = {{0}}, point, term;
    for (uint64_t i = first_wire; i < w->count; i++) {
        struct scalar k;
        witness_get(&k, w, i);
        g1_load(&point, c, points + (i - first_wire) * c->g1_bytes);
        c->g1_mul(&term, &point, &k);
        c->g1_add(&sum, &sum, &term);
    }
    *out = sum;
}

static void plain_g2(struct g2 *out, const struct curve *c, const uint8_t *points,
                     const struct witness *w) {
    struct g2 sum = {{0}}, point, term;
    for (uint64_t i = 0; i < w->count; i++) {
        struct scalar k;
        witness_get(&k, w, i);
        g2_load(&point, c, points + i * c->g2_bytes);
        c->g2_mul(&term, &point, &k);
        c->g2_add(&sum, &sum, &term);
    }
    *out = sum;
}

static void sums_equal_plain(const char *curve, const char *name, struct damaged *d) {
    char *folder = NULL;
    char path[512];
    CHECK_OK(dir_make_temp(&folder, "bellows-edges"));
    snprintf(path, sizeof path, "%s/changed.zkey", folder);
    CHECK_OK(file_write_all(path, bytes_of(d->ptr, d->len)));
    struct key *key = NULL;
    struct witness w;
    struct bench_seat seat;
    struct sums sums;
    CHECK_OK(key_open(&key, path, (struct key_options){true}));
    CHECK_OK(witness_open(&w, path_of(curve, name, "witness.wtns")));
    seat_open(&seat, key);
    CHECK_OK(groth16_sums(&sums, seat.backend, seat.slot, key, &w, &seat.watch));
    const struct curve *c = key_curve(key);
    struct g1 want;
    struct g2 want2;
    bool zkey_layout;
    plain_g1(&want, c, key_points_raw(&zkey_layout, key, KEY_A).ptr, &w, 0);
    CHECK_MEM(&want, &sums.a, sizeof want);
    plain_g1(&want, c, key_points_raw(&zkey_layout, key, KEY_B1).ptr, &w, 0);
    CHECK_MEM(&want, &sums.b1, sizeof want);
    plain_g1(&want, c, key_points_raw(&zkey_layout, key, KEY_L).ptr, &w,
             key_shape(key)->public_count + 1);
    CHECK_MEM(&want, &sums.l, sizeof want);
    plain_g2(&want2, c, key_points_raw(&zkey_layout, key, KEY_B2).ptr, &w);
    CHECK_MEM(&want2, &sums.b2, sizeof want2);
    seat_close(&seat);
    witness_close(&w);
    key_unref(&key);
    CHECK_OK(dir_remove_tree(folder));
    mem_free(folder);
}

static const struct {
    uint32_t id;
    unsigned coordinates;
} witness_sections[] = {{5, 2}, {6, 2}, {7, 4}, {8, 2}};

static void claim_all_but_first_infinite(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        for (size_t i = 0; i < COUNT_OF(witness_sections); i++) {
            struct damaged d = damaged_case(curve_dirs[c], "bits/circuit.zkey");
            size_t point = witness_sections[i].coordinates * zkey_q_bytes(&d);
            size_t place = section_place(&d, witness_sections[i].id);
            memset(d.ptr + place + point, 0, section_length(&d, witness_sections[i].id) - point);
            sums_equal_plain(curve_dirs[c], "bits", &d);
            damaged_free(&d);
        }
    }
}

static void claim_all_infinite(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        struct damaged d = damaged_case(curve_dirs[c], "bits/circuit.zkey");
        for (size_t i = 0; i < COUNT_OF(witness_sections); i++) {
            memset(d.ptr + section_place(&d, witness_sections[i].id), 0,
                   section_length(&d, witness_sections[i].id));
        }
        sums_equal_plain(curve_dirs[c], "bits", &d);
        damaged_free(&d);
    }
}

static void claim_first_and_last_infinite(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        struct damaged d = damaged_case(curve_dirs[c], "bits/circuit.zkey");
        for (size_t i = 0; i < COUNT_OF(witness_sections); i++) {
            size_t point = witness_sections[i].coordinates * zkey_q_bytes(&d);
            size_t place = section_place(&d, witness_sections[i].id);
            memset(d.ptr + place, 0, point);
            memset(d.ptr + place + section_length(&d, witness_sections[i].id) - point, 0, point);
        }
        sums_equal_plain(curve_dirs[c], "bits", &d);
        damaged_free(&d);
    }
}

/* In base-zero the second public signal is 0, so its IC point does not matter: infinity verifies as well. */
static void claim_ic_infinite_verifies(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        struct bytes_mut json, publics_json;
        struct vkey vk;
        struct proof proof;
        struct scalar *publics;
        size_t publics_count;
        CHECK_OK(file_read_all(&json, path_of(curve_dirs[c], "base-zero", "verification_key.json"),
                               1 << 20));
        CHECK_OK(vkey_read_json(&vk, bytes_of(json.ptr, json.len), "verification_key.json"));
        mem_free(json.ptr);
        CHECK_OK(file_read_all(&json, path_of(curve_dirs[c], "base-zero", "proof.json"), 1 << 20));
        CHECK_OK(proof_read_json(&proof, vk.curve, bytes_of(json.ptr, json.len), "proof.json"));
        CHECK_OK(file_read_all(&publics_json, path_of(curve_dirs[c], "base-zero", "public.json"),
                               1 << 20));
        CHECK_OK(public_read_json(&publics, &publics_count, vk.curve,
                                  bytes_of(publics_json.ptr, publics_json.len), "public.json"));
        memset(vk.ic + 2 * vk.curve->g1_bytes, 0, vk.curve->g1_bytes);
        CHECK_OK(vkey_check(&vk));
        CHECK_OK(groth16_verify(&vk, publics, publics_count, &proof));
        memset(vk.ic + 1 * vk.curve->g1_bytes, 0, vk.curve->g1_bytes); /* that one does matter */
        CHECK_ERR(E_UNSAT, groth16_verify(&vk, publics, publics_count, &proof));
        mem_free(publics);
        mem_free(publics_json.ptr);
        mem_free(json.ptr);
        vkey_done(&vk);
    }
}

int main(int argc, char **argv) {
    setenv("BELLOWS_CACHE", "/dev/null/none", 1); /* nothing of a test is remembered */
    static const struct check_claim claims[] = {
        {"edges: a circuit without private wires is proved (B03)", claim_nothing_private},
        {"edges: circuits of linear constraints only are proved (B03)", claim_only_linear},
        {"edges: circuits without public signals are proved (B04)", claim_nothing_public},
        {"edges: a key of repeated points is proved with (B06)", claim_repeated_points},
        {"edges: all points but the first at infinity (B05)", claim_all_but_first_infinite},
        {"edges: all points at infinity (B05)", claim_all_infinite},
        {"edges: the first and last points at infinity (B05)", claim_first_and_last_infinite},
        {"edges: an IC point at infinity verifies when its signal is zero (B05)",
         claim_ic_infinite_verifies},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
