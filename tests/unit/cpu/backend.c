/* The CPU backend as a proof drives it: every corpus case in every tier, exact plans, no allocation in a job, nothing left
 * behind. */
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/cpu/cpu.h"
#include "node/key/native.h"
#include "tests/check/check.h"
#include "tests/unit/groth16/oracle.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A backend with one key and one slot. */
struct rig {
    struct opened opened;
    struct backend *backend;
    struct backend_key *key;
    struct backend_slot *slot;
    struct job_watch watch;
};

static char *native_folder; /* set: keys are taken in the native layout, which is made there */

static void swap_for_native(struct key **key) {
    char path[600];
    snprintf(path, sizeof path, "%s/native", native_folder);
    CHECK_OK(native_write(path, *key));
    key_unref(key);
    CHECK_OK(key_open(key, path, (struct key_options){.allow_insecure = true}));
    CHECK_EQ(KEY_FORMAT_NATIVE, key_shape(*key)->format);
}

static void rig_open(struct rig *r, const struct oracle_case *c, const char *tier,
                     unsigned threads) {
    const struct backend_options options = {
        .kind = BACKEND_CPU, .cpu_tier = tier, .threads_count = threads};
    memset(r, 0, sizeof *r);
    opened_open(&r->opened, c);
    if (native_folder) {
        swap_for_native(&r->opened.key);
    }
    CHECK_OK(cpu_backend_open(&r->backend, &options));
    CHECK_OK(r->backend->ops->key_load(&r->key, r->backend, r->opened.key));
    CHECK_OK(r->backend->ops->slot_open(&r->slot, r->key));
}

static void rig_close(struct rig *r) {
    r->backend->ops->slot_close(&r->slot);
    r->backend->ops->key_drop(&r->key);
    CHECK(!r->slot && !r->key);
    backend_close(&r->backend);
    opened_close(&r->opened);
}

static enum err job(struct sums *out, struct step_times *times, struct rig *r) {
    const struct backend_ops *ops = r->backend->ops;
    TRY(ops->witness(r->slot, &r->opened.witness, &r->watch));
    TRY(ops->evaluate(r->slot));
    TRY(ops->quotient(r->slot));
    for (int k = 0; k < KEY_POINTS_COUNT; k++) {
        TRY(ops->msm(r->slot, (enum key_points)k));
    }
    return ops->sums(out, times, r->slot);
}

static void check_case(const struct oracle_case *c, const char *tier, unsigned threads) {
    struct rig r;
    struct oracle oracle;
    struct sums sums;
    struct step_times times;
    struct sha256 digest;
    char hex[SHA256_HEX_BYTES];
    uint8_t *h = NULL;
    oracle_read(&oracle, c);
    rig_open(&r, c, tier, threads);
    size_t h_bytes = SCALAR_BYTES * key_shape(r.opened.key)->domain_size;
    CHECK_OK(mem_new(&h, h_bytes, 1));
    CHECK_OK(job(&sums, &times, &r));
    CHECK_OK(r.backend->ops->h_scalars(h, r.slot));
    CHECK_OK(sha256_of(&digest, bytes_of(h, h_bytes)));
    sha256_hex(hex, &digest);
    CHECK_MSG(!strcmp(oracle.h_scalars_sha256, hex), "%s, %s: wrong scalars of H", c->name, tier);
    CHECK_MSG(!memcmp(&oracle.sums, &sums, sizeof sums), "%s, %s, %u threads: wrong sums", c->name,
              tier, threads);
    mem_free(h);
    rig_close(&r);
}

static void check_all(unsigned threads) {
    static struct oracle_case cases[ORACLE_CASES_MAX];
    size_t count = oracle_cases(cases);
    CHECK(count >= 36);
    for (size_t i = 0; i < count; i++) {
        for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
            check_case(&cases[i], *tier, threads);
        }
    }
}

/* The same sums and scalars of H, to the bit, from rows and a dictionary instead of terms. */
static void claim_native(void) {
    CHECK_OK(dir_make_temp(&native_folder, "bellows-native"));
    check_all(2);
    CHECK_OK(dir_remove_tree(native_folder));
    mem_free(native_folder);
    native_folder = NULL;
}
static void claim_oracle_one_thread(void) {
    check_all(1);
}
static void claim_oracle_threads(void) {
    check_all(3);
}

static void claim_plan(void) {
    static struct oracle_case cases[ORACLE_CASES_MAX];
    size_t count = oracle_cases(cases);
    for (size_t i = 0; i < count; i++) {
        for (unsigned threads = 1; threads <= 5; threads += 4) {
            struct rig r;
            struct plan plan, own;
            rig_open(&r, &cases[i], NULL, threads);
            const struct key_shape *shape = key_shape(r.opened.key);
            CHECK_OK(cpu_plan(&plan, shape, threads, NULL));
            CHECK_OK(r.backend->ops->plan(&own, r.backend, shape));
            CHECK_MEM(&plan, &own, offsetof(struct plan, multiples)); /* then comes padding */
            CHECK_EQ(plan.multiples, own.multiples);
            CHECK_EQ(plan.chunks_count, own.chunks_count);
            CHECK_EQ(plan.host_bytes, cpu_backend_bytes(r.backend));
            CHECK_EQ(shape->file_bytes, plan.mapped_bytes);
            CHECK(plan.expected_ns > 0 && plan.chunks_count == 1 && !plan.device_bytes);
            r.backend->ops->slot_close(&r.slot);
            CHECK_EQ(plan.key_bytes_resident, cpu_backend_bytes(r.backend));
            rig_close(&r);
        }
    }
}

/* The largest shape there is: sizes must not overflow, and more threads must not need more than a third of the points and
 * what a small key needs. */
static void claim_plan_large(void) {
    const uint64_t n = UINT64_C(1) << 28;
    struct key_shape shape = {.curve = CURVE_BN254,
                              .format = KEY_FORMAT_ZKEY,
                              .h_basis = H_COSET_LAGRANGE,
                              .wires_count = (uint32_t)n,
                              .public_count = 1,
                              .domain_size = n,
                              .domain_log2 = 28,
                              .terms_count = {2 * n, n},
                              .points_count = {n, n, n, n - 2, n},
                              .file_bytes = n * (5 * 64 + 64 + 3 * 44)};
    struct plan one, many;
    CHECK_OK(cpu_plan(&one, &shape, 1, NULL));
    CHECK_OK(cpu_plan(&many, &shape, 256, NULL));
    CHECK(one.host_bytes > 100 * n && one.host_bytes < 250 * n);
    CHECK(many.host_bytes >= one.host_bytes && many.host_bytes < 350 * n);
    CHECK(many.expected_ns < one.expected_ns);
    shape.domain_log2 = 29;
    shape.domain_size = 2 * n;
    CHECK_ERR(E_RANGE, cpu_plan(&one, &shape, 1, NULL));
    shape.domain_log2 = 31;
    CHECK_ERR(E_LIMIT, cpu_plan(&one, &shape, 1, NULL));
}

/* Peak memory may be half as much again as key and witness, and 64 MiB. */
static void claim_plan_bounds(void) {
    for (unsigned log2 = 1; log2 <= 22; log2++) {
        for (enum curve_id curve = CURVE_BN254; curve <= CURVE_BLS12_381; curve++) {
            const uint64_t n = UINT64_C(1) << log2;
            const struct curve *c = curve_by_id(curve);
            struct key_shape shape = {.curve = curve,
                                      .format = KEY_FORMAT_ZKEY,
                                      .h_basis = H_COSET_LAGRANGE,
                                      .wires_count = (uint32_t)n,
                                      .domain_size = n,
                                      .domain_log2 = log2,
                                      .terms_count = {n, n},
                                      .points_count = {n, n, n, n - 1, n}};
            shape.file_bytes = n * (4 * c->g1_bytes + c->g2_bytes + 2 * KEY_TERM_BYTES);
            for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
                struct plan plan;
                CHECK_OK(cpu_plan(&plan, &shape, 2, *tier));
                uint64_t base = shape.file_bytes + n * SCALAR_BYTES;
                CHECK_MSG(plan.host_bytes <= base / 2 + (UINT64_C(52) << 20),
                          "%s, %s, 2^%u: %llu bytes for a key of %llu", c->name, *tier, log2,
                          (unsigned long long)plan.host_bytes, (unsigned long long)base);
            }
        }
    }
}

static void claim_no_allocation(void) {
    struct oracle_case c = oracle_case_named("bn128", "chain200");
    struct rig r;
    struct sums sums;
    struct step_times times;
    rig_open(&r, &c, NULL, 2);
    long before = mem_live_blocks();
    mem_fail_after(0);
    enum err code = job(&sums, &times, &r);
    r.backend->ops->wipe(r.slot);
    bool none = mem_fail_pending();
    mem_fail_after(-1);
    CHECK_OK(code);
    CHECK_MSG(none, "a job allocated");
    CHECK_EQ(before, mem_live_blocks());
    for (int step = STEP_WITNESS; step <= STEP_MSM_H; step++) {
        CHECK_MSG(times.ns[step] > 0, "step %s took no time",
                  prove_step_name((enum prove_step)step));
    }
    CHECK(atomic_load(&r.watch.progress_ns) > 0);
    CHECK(atomic_load(&r.watch.permille) > 900 && atomic_load(&r.watch.permille) <= 1000);
    rig_close(&r);
}

static enum err open_all(struct backend **b, struct backend_key **k, struct backend_slot **s,
                         struct key *key) {
    const struct backend_options options = {.kind = BACKEND_CPU, .threads_count = 2};
    TRY(cpu_backend_open(b, &options));
    TRY((*b)->ops->key_load(k, *b, key));
    return (*b)->ops->slot_open(s, *k);
}

static void claim_allocation_failure(void) {
    struct oracle_case c = oracle_case_named("bls12381", "mul");
    struct opened opened;
    opened_open(&opened, &c);
    long before = mem_live_blocks();
    bool failed = true;
    for (long n = 0; failed; n++) {
        struct backend *b = NULL;
        struct backend_key *k = NULL;
        struct backend_slot *s = NULL;
        CHECK(n < 100);
        mem_fail_after(n);
        enum err code = open_all(&b, &k, &s, opened.key);
        failed = !mem_fail_pending();
        mem_fail_after(-1);
        CHECK_EQ(failed ? E_LIMIT : OK, code);
        if (b) {
            b->ops->slot_close(&s);
            b->ops->key_drop(&k);
        }
        backend_close(&b);
        CHECK_EQ(before, mem_live_blocks());
    }
    opened_close(&opened);
}

static void claim_wipe(void) {
    struct oracle_case c = oracle_case_named("bn128", "chain200");
    for (const char *const *tier = cpu_tiers_usable(); *tier; tier++) {
        struct rig r;
        struct sums sums;
        struct step_times times;
        struct plan plan;
        rig_open(&r, &c, *tier, 2);
        CHECK_OK(cpu_plan(&plan, key_shape(r.opened.key), 2, *tier));
        CHECK_OK(job(&sums, &times, &r));
        r.backend->ops->wipe(r.slot);
        /* The slot is one block: its own struct, below 4 KiB, then what came of the witness. */
        const uint8_t *block = (const uint8_t *)r.slot;
        size_t bytes = plan.host_bytes - plan.key_bytes_resident;
        for (size_t i = 4096; i < bytes; i++) {
            CHECK_MSG(block[i] == 0, "%s: byte %zu of %zu is left over", *tier, i, bytes);
        }
        for (size_t i = 0; i + sizeof sums.a <= 4096; i += 8) {
            CHECK(memcmp(block + i, &sums.a, sizeof sums.a) != 0);
        }
        rig_close(&r);
    }
}

static void claim_cancel(void) {
    struct oracle_case c = oracle_case_named("bn128", "chain200");
    struct rig r;
    struct oracle oracle;
    struct sums sums;
    struct step_times times;
    oracle_read(&oracle, &c);
    rig_open(&r, &c, NULL, 2);
    const struct backend_ops *ops = r.backend->ops;
    for (int at = 0; at < 3; at++) { /* before evaluate, quotient, the sums */
        atomic_store(&r.watch.cancel, at == 0);
        CHECK_OK(ops->witness(r.slot, &r.opened.witness, &r.watch));
        if (at > 0) {
            CHECK_OK(ops->evaluate(r.slot));
            atomic_store(&r.watch.cancel, at == 1);
        }
        if (at > 1) {
            CHECK_OK(ops->quotient(r.slot));
            atomic_store(&r.watch.cancel, 1);
        }
        CHECK_ERR(E_CANCELLED, at == 0   ? ops->evaluate(r.slot)
                               : at == 1 ? ops->quotient(r.slot)
                                         : ops->msm(r.slot, KEY_A));
        ops->wipe(r.slot);
    }
    atomic_store(&r.watch.cancel, 0);
    CHECK_OK(job(&sums, &times, &r)); /* the slot is as good as new */
    CHECK_MEM(&oracle.sums, &sums, sizeof sums);
    CHECK_OK(job(&sums, &times, &r));
    CHECK_MEM(&oracle.sums, &sums, sizeof sums);
    rig_close(&r);
}

static void claim_refusals(void) {
    struct backend *b = NULL;
    struct backend_options options = {.kind = BACKEND_CPU, .cpu_tier = "mmx"};
    struct key_shape shape = {.curve = CURVE_BLS12_381, .format = KEY_FORMAT_BELLMAN};
    struct plan plan;
    CHECK_ERR(E_USAGE, cpu_backend_open(&b, &options));
    CHECK_HAS(err_detail(), "mmx");
    options = (struct backend_options){.threads_count = 100000};
    CHECK_ERR(E_RANGE, cpu_backend_open(&b, &options));
    CHECK(!b);
    CHECK_ERR(E_USAGE, cpu_plan(&plan, &shape, 1, NULL));
    CHECK_HAS(err_detail(), "--circuit");
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"keys in the native layout give the same sums in every tier", claim_native},
        {"sums and scalars of H of every corpus case, every tier, one thread",
         claim_oracle_one_thread},
        {"sums and scalars of H of every corpus case, every tier, three threads",
         claim_oracle_threads},
        {"a plan is exactly what key and slot take", claim_plan},
        {"plans of the largest keys", claim_plan_large},
        {"plans keep peak memory within its bound", claim_plan_bounds},
        {"a job allocates nothing and reports every step", claim_no_allocation},
        {"failed allocations are E_LIMIT and leak nothing", claim_allocation_failure},
        {"wipe leaves nothing of a job", claim_wipe},
        {"a cancelled job ends, and its slot works again", claim_cancel},
        {"unknown tiers, too many threads and bellman keys are refused", claim_refusals},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
