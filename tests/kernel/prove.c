/* The CUDA backend as a whole, against the oracle of every test vector: five sums, H scalars, and the only proof that
 * fixed blinding allows. The same program runs on the emulator and on a device.
 */
#include "node/groth16/prove.h"
#include "node/base/file.h"
#include "node/base/hash.h"
#include "node/base/mem.h"
#include "node/cpu/cpu.h"
#include "node/curve/encode.h"
#include "node/curve/json.h"
#include "node/groth16/import.h"
#include "node/groth16/synth.h"
#include "node/key/native.h"
#include "tests/kernel/device.h"
#include "tests/unit/groth16/evaluated.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct backend *device(void) {
    static struct backend *b;
    static bool asked;
    if (!asked) {
        asked = true;
        struct backend_options options = {.kind = BACKEND_CUDA};
        if (gpu_backend_open(&b, &options) != OK) {
            b = NULL;
        }
    }
    if (!b) {
        check_skip("%s", err_detail());
    }
    return b;
}

struct oracle {
    struct sums sums;
    struct proof proof;
    struct blinding blinding;
    char h_sha256[SHA256_HEX_BYTES];
};

static void oracle_read(struct oracle *o, const struct curve *c, const char *path) {
    AUTO(json_free) cJSON *json = NULL;
    const cJSON *msm, *proof;
    const char *text;
    CHECK_OK(json_read(&json, path));
    CHECK_OK(json_text_member(&text, json, "r"));
    CHECK_OK(scalar_from_decimal(&o->blinding.r, c, text));
    CHECK_OK(json_text_member(&text, json, "s"));
    CHECK_OK(scalar_from_decimal(&o->blinding.s, c, text));
    CHECK_OK(json_member(&msm, json, "msm"));
    struct {
        const char *name;
        struct g1 *to;
    } sums[] = {{"A", &o->sums.a}, {"B1", &o->sums.b1}, {"C", &o->sums.l}, {"H", &o->sums.h}};
    for (size_t i = 0; i < COUNT_OF(sums); i++) {
        CHECK_OK(json_g1_read(sums[i].to, c, cJSON_GetObjectItem(msm, sums[i].name), sums[i].name));
    }
    CHECK_OK(json_g2_read(&o->sums.b2, c, cJSON_GetObjectItem(msm, "B2"), "B2"));
    CHECK_OK(json_member(&proof, json, "proof"));
    o->proof.curve = c;
    CHECK_OK(json_g1_read(&o->proof.a, c, cJSON_GetObjectItem(proof, "pi_a"), "pi_a"));
    CHECK_OK(json_g2_read(&o->proof.b, c, cJSON_GetObjectItem(proof, "pi_b"), "pi_b"));
    CHECK_OK(json_g1_read(&o->proof.c, c, cJSON_GetObjectItem(proof, "pi_c"), "pi_c"));
    CHECK_OK(json_text_member(&text, json, "h_scalars_sha256"));
    snprintf(o->h_sha256, sizeof o->h_sha256, "%s", text);
}

static void check_h(struct backend *b, struct backend_slot *slot, const struct key *key,
                    const struct oracle *o, const char *name) {
    size_t bytes = (size_t)key_shape(key)->domain_size * SCALAR_BYTES;
    uint8_t *h = NULL;
    struct sha256 digest;
    char hex[SHA256_HEX_BYTES];
    CHECK_OK(mem_new_raw(&h, bytes, 1));
    CHECK_OK(b->ops->h_scalars(h, slot));
    CHECK_OK(sha256_of(&digest, bytes_of(h, bytes)));
    mem_free(h);
    sha256_hex(hex, &digest);
    CHECK_MSG(!strcmp(hex, o->h_sha256), "%s: H scalars differ from the oracle's", name);
}

static void check_sums(const struct sums *got, const struct oracle *o, const char *name) {
    CHECK_MSG(!memcmp(&got->a, &o->sums.a, sizeof got->a), "%s: sum A differs", name);
    CHECK_MSG(!memcmp(&got->b1, &o->sums.b1, sizeof got->b1), "%s: sum B1 differs", name);
    CHECK_MSG(!memcmp(&got->b2, &o->sums.b2, sizeof got->b2), "%s: sum B2 differs", name);
    CHECK_MSG(!memcmp(&got->l, &o->sums.l, sizeof got->l), "%s: sum L differs", name);
    CHECK_MSG(!memcmp(&got->h, &o->sums.h, sizeof got->h), "%s: sum H differs", name);
}

static char *native_folder; /* set: keys are taken in the native layout, which is made there */

static void swap_for_native(struct key **key) {
    char path[600];
    snprintf(path, sizeof path, "%s/native", native_folder);
    CHECK_OK(native_write(path, *key));
    key_unref(key);
    CHECK_OK(key_open(key, path, (struct key_options){.allow_insecure = true}));
}

static void one_case(const char *curve_folder, const char *name) {
    struct backend *b = device();
    char path[200], what[200];
    snprintf(what, sizeof what, "%.20s/%.63s", curve_folder, name);
    AUTO(key_unref) struct key *key = NULL;
    AUTO(witness_close) struct witness w = {0};
    struct oracle o = {0};
    snprintf(path, sizeof path, "%.20s/%.63s/circuit.zkey", curve_folder, name);
    CHECK_OK(key_open(&key, check_vectors(path), (struct key_options){.allow_insecure = true}));
    if (native_folder) {
        swap_for_native(&key);
    }
    snprintf(path, sizeof path, "%.20s/%.63s/witness.wtns", curve_folder, name);
    CHECK_OK(witness_open(&w, check_vectors(path)));
    snprintf(path, sizeof path, "%.20s/%.63s/fixed.json", curve_folder, name);
    oracle_read(&o, key_curve(key), check_vectors(path));

    struct backend_key *resident = NULL;
    struct backend_slot *slot = NULL;
    struct job_watch watch = {.in_turn = native_folder != NULL}; /* with the same sums */
    struct sums sums;
    struct step_times times = {0};
    CHECK_OK(b->ops->key_load(&resident, b, key));
    CHECK_OK(b->ops->slot_open(&slot, resident));
    CHECK_OK(b->ops->witness(slot, &w, &watch));
    CHECK_OK(b->ops->evaluate(slot));
    CHECK_OK(b->ops->quotient(slot));
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        CHECK_OK(b->ops->msm(slot, i));
    }
    CHECK_OK(b->ops->sums(&sums, &times, slot));
    for (unsigned i = 0; watch.in_turn && i < KEY_POINTS_COUNT; i++) {
        CHECK(times.ns[msm_step(i)] > 0);
    }
    check_h(b, slot, key, &o, what);
    check_sums(&sums, &o, what);
    b->ops->wipe(slot);

    struct evaluated e; /* more jobs in the same slot: of the witness, and of its a and b */
    CHECK_OK(evaluated_make(&e, key, &w));
    for (int given = 0; given < 2; given++) {
        struct prove_result result = {0};
        CHECK_OK(groth16_prove(&result, b, slot, key, &w, &o.blinding, &watch));
        CHECK_MSG(!memcmp(&result.proof.a, &o.proof.a, sizeof o.proof.a) &&
                      !memcmp(&result.proof.b, &o.proof.b, sizeof o.proof.b) &&
                      !memcmp(&result.proof.c, &o.proof.c, sizeof o.proof.c),
                  "%s: the proof differs from the only one that this blinding allows", what);
        prove_result_done(&result);
        evaluated_lend(&w, &e);
    }
    evaluated_free(&e);
    b->ops->slot_close(&slot);
    b->ops->key_drop(&resident);
}

static void all_cases(const char *curve_folder) {
    device();
    DIR *folder = opendir(check_vectors(curve_folder));
    CHECK_MSG(folder != NULL, "no vectors in %s", check_vectors(curve_folder));
    char names[128][64];
    size_t count = 0;
    for (struct dirent *e; (e = readdir(folder)) && count < COUNT_OF(names);) {
        char path[200];
        snprintf(path, sizeof path, "%.20s/%.63s/fixed.json", curve_folder, e->d_name);
        FILE *f = e->d_name[0] != '.' ? fopen(check_vectors(path), "r") : NULL;
        if (f) {
            fclose(f);
            snprintf(names[count++], sizeof names[0], "%.63s", e->d_name);
        }
    }
    closedir(folder);
    CHECK_MSG(count >= 15, "only %zu vectors in %s", count, curve_folder);
    for (size_t i = 0; i < count; i++) {
        one_case(curve_folder, names[i]);
    }
}

static void claim_bn254(void) {
    all_cases("bn128");
}
static void claim_bls12_381(void) {
    all_cases("bls12381");
}

static void claim_native(void) {
    device();
    CHECK_OK(dir_make_temp(&native_folder, "bellows-native"));
    one_case("bn128", "mul");
    one_case("bn128", "dense");
    one_case("bls12381", "bits");
    one_case("bls12381", "manypub");
    CHECK_OK(dir_remove_tree(native_folder));
    mem_free(native_folder);
    native_folder = NULL;
}

/* Points that repeat, B all at infinity or nearly so, ones, and a key in which nothing is to be set apart. */
static void claim_sifted(void) {
    static const char *const names[] = {"repeated", "linear-O0", "all-ones", "bits", "dense"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        one_case(i % 2 ? "bn128" : "bls12381", names[i]);
    }
}

/* H in powers, bit-reversed as the quotient leaves its scalars; the key's own verification is the judge. */
static void claim_bellman(void) {
    struct backend *b = device();
    AUTO(key_unref) struct key *params = NULL;
    AUTO(key_unref) struct key *key = NULL;
    AUTO(witness_close) struct witness w = {0};
    AUTO(circuit_close) struct circuit circuit = {0};
    AUTO(pool_close) struct pool *pool = NULL;
    AUTO(mem_free_ptr) char *folder = NULL;
    char path[600];
    struct backend_key *resident = NULL;
    struct backend_slot *slot = NULL;
    struct job_watch watch = {0};
    struct prove_result result = {0};
    struct blinding blinding;
    const struct sha256 name = {{0}};
    CHECK_OK(dir_make_temp(&folder, "bellows-native"));
    snprintf(path, sizeof path, "%s/native", folder);
    CHECK_OK(
        key_open(&params, check_vectors("bls12381/bits/circuit.params"), (struct key_options){0}));
    CHECK_OK(circuit_open(&circuit, check_vectors("bls12381/bits/circuit.r1cs")));
    CHECK_OK(pool_open(&pool, 2));
    CHECK_OK(import_bellman(path, params, &circuit, &name, pool));
    CHECK_OK(key_open(&key, path, (struct key_options){0}));
    CHECK_OK(witness_open(&w, check_vectors("bls12381/bits/witness.wtns")));
    CHECK_OK(b->ops->key_load(&resident, b, key));
    CHECK_OK(b->ops->slot_open(&slot, resident));
    CHECK_OK(blinding_random(&blinding, key_curve(key)));
    CHECK_OK(groth16_prove(&result, b, slot, key, &w, &blinding, &watch));
    prove_result_done(&result);
    b->ops->slot_close(&slot);
    b->ops->key_drop(&resident);
    CHECK_OK(dir_remove_tree(folder));
}

/* --- Keys that the device makes --- */

struct made {
    struct backend *b;
    struct backend_multiplier *m[2]; /* owned, by enum point_group */
    uint8_t *bytes;                  /* owned */
    size_t len;
};

static enum err made_multiply(void *ctx, uint8_t *out, enum point_group g, const struct scalar *k,
                              size_t count) {
    struct made *x = ctx;
    return x->b->ops->multiply(out, x->m[g], k, count);
}

static enum err made_room(struct bytes_mut *out, void *ctx, size_t bytes) {
    struct made *x = ctx;
    TRY(mem_new(&x->bytes, bytes, 1));
    x->len = bytes;
    *out = (struct bytes_mut){x->bytes, bytes};
    return OK;
}

static void make(struct made *x, struct backend *b, const struct synth *s) {
    struct rng rng = rng_seeded(5);
    const struct curve *c = s->circuit.curve;
    const struct setup_multiplier multiplier = {made_multiply, x};
    const struct setup_options options = {
        .multiplier = &multiplier, .rng = &rng, .forgeable = true, .piece_points = 100};
    *x = (struct made){.b = b};
    for (unsigned g = GROUP_G1; g <= GROUP_G2; g++) {
        CHECK_OK(b->ops->multiplier_open(&x->m[g], b, c, g, s->circuit.wires_count));
    }
    CHECK_OK(setup_make_native(made_room, x, &s->circuit, &options));
    b->ops->multiplier_close(&x->m[0]);
    b->ops->multiplier_close(&x->m[1]);
}

static void prove_made(struct backend *b, const struct made *x, const struct synth *s) {
    struct key *key = NULL;
    struct backend_key *resident = NULL;
    struct backend_slot *slot = NULL;
    struct job_watch watch = {0};
    struct prove_result result = {0};
    struct blinding blinding;
    const struct witness w = {.curve = s->circuit.curve,
                              .count = s->circuit.wires_count,
                              .values = (const uint8_t *)s->witness};
    CHECK_OK(key_from_memory(&key, bytes_of(x->bytes, x->len), "made",
                             (struct key_options){.allow_insecure = true}));
    CHECK_OK(b->ops->key_load(&resident, b, key));
    CHECK_OK(b->ops->slot_open(&slot, resident));
    CHECK_OK(blinding_random(&blinding, key_curve(key)));
    CHECK_OK(groth16_prove(&result, b, slot, key, &w, &blinding, &watch)); /* and verifies */
    prove_result_done(&result);
    b->ops->slot_close(&slot);
    b->ops->key_drop(&resident);
    key_unref(&key);
}

static void claim_made(void) {
    struct backend *b = device(), *cpu = NULL;
    const struct backend_options options = {.kind = BACKEND_CPU, .threads_count = 2};
    bool emulated = device_of_test()->emulated;
    CHECK_OK(cpu_backend_open(&cpu, &options));
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        AUTO(synth_done) struct synth s;
        struct made on_device, on_cpu;
        CHECK_OK(synth_init(&s, curve_by_id(curves_tested[i]), emulated ? SYNTH_BITS : SYNTH_POREP,
                            emulated ? 6 : 16, 3));
        make(&on_device, b, &s);
        make(&on_cpu, cpu, &s);
        CHECK_EQ(on_cpu.len, on_device.len);
        CHECK_MEM(on_cpu.bytes, on_device.bytes, on_cpu.len);
        prove_made(b, &on_device, &s);
        mem_free(on_device.bytes);
        mem_free(on_cpu.bytes);
    }
    backend_close(&cpu);
}

static void claim_cancel(void) {
    struct backend *b = device();
    AUTO(key_unref) struct key *key = NULL;
    AUTO(witness_close) struct witness w = {0};
    struct backend_key *resident = NULL;
    struct backend_slot *slot = NULL;
    struct job_watch watch = {0};
    CHECK_OK(key_open(&key, check_vectors("bn128/base/circuit.zkey"),
                      (struct key_options){.allow_insecure = true}));
    CHECK_OK(witness_open(&w, check_vectors("bn128/base/witness.wtns")));
    CHECK_OK(b->ops->key_load(&resident, b, key));
    CHECK_OK(b->ops->slot_open(&slot, resident));
    CHECK_OK(b->ops->witness(slot, &w, &watch));
    atomic_store(&watch.cancel, 1);
    CHECK_ERR(E_CANCELLED, b->ops->evaluate(slot));
    b->ops->wipe(slot);
    atomic_store(&watch.cancel, 0);
    struct prove_result result = {0};
    struct blinding blinding = {{{1}}, {{2}}};
    CHECK_OK(groth16_prove(&result, b, slot, key, &w, &blinding, &watch));
    prove_result_done(&result);
    b->ops->slot_close(&slot);
    b->ops->key_drop(&resident);
}

/* Every proof is verified before groth16_prove returns it. */
static void claim_thousand(void) {
    struct backend *b = device();
    AUTO(key_unref) struct key *key = NULL;
    AUTO(witness_close) struct witness w = {0};
    struct backend_key *resident = NULL;
    struct backend_slot *slot = NULL;
    struct job_watch watch = {0};
    unsigned proofs = device_of_test()->emulated ? 2 : 1000;
    uint64_t before, after;
    CHECK_OK(key_open(&key, check_vectors("bn128/base/circuit.zkey"),
                      (struct key_options){.allow_insecure = true}));
    CHECK_OK(witness_open(&w, check_vectors("bn128/base/witness.wtns")));
    CHECK_OK(b->ops->key_load(&resident, b, key));
    CHECK_OK(b->ops->slot_open(&slot, resident));
    for (unsigned i = 0; i < proofs; i++) {
        struct prove_result result = {0};
        struct blinding blinding;
        CHECK_OK(blinding_random(&blinding, key_curve(key)));
        enum err code = groth16_prove(&result, b, slot, key, &w, &blinding, &watch);
        CHECK_MSG(code == OK, "proof %u of %u: %s", i, proofs, err_detail());
        prove_result_done(&result);
        if (i == 0) {
            CHECK_OK(gpu_memory_free(&before));
        }
    }
    CHECK_OK(gpu_memory_free(&after));
    CHECK_EQ(before, after);
    b->ops->slot_close(&slot);
    b->ops->key_drop(&resident);
}

static void claim_plan(void) {
    struct backend *b = device();
    AUTO(key_unref) struct key *key = NULL;
    struct backend_key *resident = NULL;
    struct backend_slot *slot = NULL;
    struct plan plan;
    uint64_t before, after;
    CHECK_OK(key_open(&key, check_vectors("bn128/chain200/circuit.zkey"),
                      (struct key_options){.allow_insecure = true}));
    CHECK_OK(b->ops->plan(&plan, b, key_shape(key)));
    CHECK_OK(gpu_memory_free(&before));
    CHECK_OK(b->ops->key_load(&resident, b, key));
    CHECK_OK(b->ops->slot_open(&slot, resident));
    CHECK_OK(gpu_memory_free(&after));
    uint64_t taken = before - after,
             grain = 4u << 20; /* the driver gives memory in pieces of 2 MiB */
    CHECK_MSG(taken + grain >= plan.device_bytes && taken <= plan.device_bytes + grain,
              "planned %llu bytes of device memory, took %llu",
              (unsigned long long)plan.device_bytes, (unsigned long long)taken);
    b->ops->slot_close(&slot);
    b->ops->key_drop(&resident);
}

static void claim_memory_max(void) {
    device();
    struct backend *small = NULL;
    AUTO(key_unref) struct key *key = NULL;
    struct plan plan;
    struct backend_options options = {.kind = BACKEND_CUDA, .device_memory_max = 100000};
    CHECK_OK(gpu_backend_open(&small, &options));
    CHECK_OK(key_open(&key, check_vectors("bn128/chain200/circuit.zkey"),
                      (struct key_options){.allow_insecure = true}));
    enum err code = small->ops->plan(&plan, small, key_shape(key));
    backend_close(&small);
    CHECK_ERR(E_LIMIT, code);
}

static void claim_no_device(void) {
    struct backend *b = NULL;
    struct backend_options options = {.kind = BACKEND_CUDA, .device = "GPU-ffffffff"};
    device();
    CHECK_ERR(E_DEVICE, gpu_backend_open(&b, &options));
    CHECK_HAS(err_detail(), "nvidia-smi -L");
    CHECK(b == NULL);
}

int kernel_prove(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"every BN254 vector has the oracle's sums, H scalars and proof", claim_bn254},
        {"every BLS12-381 vector has the oracle's sums, H scalars and proof", claim_bls12_381},
        {"keys in the native layout give the same proofs", claim_native},
        {"so do MSMs that set pairs apart", claim_sifted},
        {"an imported bellman key proves", claim_bellman},
        {"a key that the device made is the processor's, and proves", claim_made},
        {"a cancelled job ends, and its slot proves the next one", claim_cancel},
        {"a thousand proofs in one process are valid and take no more memory", claim_thousand},
        {"plan says the device memory that a key and a slot take", claim_plan},
        {"a key that does not fit is refused with E_LIMIT", claim_memory_max},
        {"a device that is not there is E_DEVICE, with the cure", claim_no_device},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
