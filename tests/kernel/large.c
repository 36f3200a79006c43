/* The backend under a key as large as real ones: points are known multiples of the generator, so that each of the five sums
 * has a known answer; the circuit itself is made up, so there is no proof to verify.
 *
 * The key and the witness are written to files and read back as a node would. `--bench` times whole jobs, from the witness
 * in memory to the five sums on the host, at 2^20 and 2^22, and with BELLOWS_BENCH_LOG2=24 at 2^24 with 16 GiB, too.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/groth16/prove.h"
#include "tests/kernel/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE = 1 << 12, PUBLIC = 5, RUNS_MAX = 16 };

struct setup { /* a made-up key; file names and tables */
    const struct curve *c;
    unsigned log2;
    uint32_t wires, domain;
    char key_path[64], witness_path[64];
    struct scalar *k; /* owned: table[i] = k[i]·G */
    uint8_t *g1, *g2; /* owned */
};

static void setup_done(struct setup *s) {
    if (s->key_path[0]) {
        unlink(s->key_path);
        unlink(s->witness_path);
    }
    mem_free(s->k);
    mem_free(s->g1);
    mem_free(s->g2);
}

/* Which multiple stands at place i of a section: sections differ, neighbours are far apart. */
static uint32_t place_of(unsigned section, uint32_t i) {
    return (uint32_t)((i * 2654435761u >> 7) + section * 977) % TABLE;
}

static void tables_make(struct setup *s) {
    const struct curve *c = s->c;
    struct scalar k, step;
    struct g1 p = {{0}}, d = {{0}};
    struct g2 p2 = {{0}}, d2 = {{0}};
    CHECK_OK(mem_new(&s->k, TABLE, sizeof *s->k));
    CHECK_OK(mem_new(&s->g1, TABLE, c->g1_bytes));
    CHECK_OK(mem_new(&s->g2, TABLE, c->g2_bytes));
    scalar_uniform(&k, c);
    scalar_uniform(&step, c);
    c->g1_mul(&p, &c->g1_generator, &k);
    c->g1_mul(&d, &c->g1_generator, &step);
    c->g2_mul(&p2, &c->g2_generator, &k);
    c->g2_mul(&d2, &c->g2_generator, &step);
    for (uint32_t i = 0; i < TABLE; i++) {
        s->k[i] = k;
        g1_store(s->g1 + i * c->g1_bytes, c, &p);
        g2_store(s->g2 + i * c->g2_bytes, c, &p2);
        c->scalar_add(&k, &k, &step);
        c->g1_add(&p, &p, &d);
        c->g2_add(&p2, &p2, &d2);
    }
}

static void put(FILE *f, const void *data, size_t bytes) {
    CHECK_MSG(fwrite(data, 1, bytes, f) == bytes, "the disk is full");
}
static void put_u32(FILE *f, uint32_t v) {
    put(f, &v, 4);
}
static void put_section(FILE *f, uint32_t id, uint64_t bytes) {
    put_u32(f, id);
    put(f, &bytes, 8);
}

static void put_points(FILE *f, const struct setup *s, unsigned section, enum point_group g,
                       uint32_t count) {
    size_t bytes = curve_point_bytes(s->c, g);
    put_section(f, section, (uint64_t)count * bytes);
    for (uint32_t i = 0; i < count; i++) {
        put(f, (g == GROUP_G1 ? s->g1 : s->g2) + place_of(section, i) * bytes, bytes);
    }
}

/* Rows of two terms in A and one in B; seven coefficients of eight are ±1. */
static void put_terms(FILE *f, const struct setup *s) {
    struct scalar two = {{2}}, r2, coefficients[8], zero = {{0}}, one = {{1}};
    uint32_t count = 3 * s->domain;
    s->c->scalar_pow(&r2, &two, 512);
    for (unsigned i = 0; i < 8; i++) {
        coefficients[i] = one;
        if (i % 2) {
            s->c->scalar_sub(&coefficients[i], &zero, &one);
        }
        if (i == 7) {
            scalar_uniform(&coefficients[i], s->c);
        }
        s->c->scalar_mul(&coefficients[i], &coefficients[i], &r2);
    }
    put_section(f, 4, 4 + (uint64_t)count * KEY_TERM_BYTES);
    put_u32(f, count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t dice = rng_u64(check_rng());
        uint32_t row = i / 3, near = (row + (uint32_t)(dice >> 52)) % s->wires;
        put_u32(f, i % 3 == 2);
        put_u32(f, row);
        put_u32(f, dice & 15 ? near : (uint32_t)(dice >> 8) % s->wires);
        put(f, &coefficients[dice >> 4 & 7], 32);
    }
}

static void put_prime(FILE *f, const uint64_t *w, size_t bytes) {
    put_u32(f, (uint32_t)bytes);
    put(f, w, bytes);
}

static void key_write(const struct setup *s) {
    const struct curve *c = s->c;
    FILE *f = fopen(s->key_path, "wb");
    CHECK_MSG(f != NULL, "%s cannot be written", s->key_path);
    put(f, "zkey", 4);
    put_u32(f, 1);
    put_u32(f, 9);
    put_section(f, 1, 4);
    put_u32(f, 1);
    put_section(f, 2, 4 + c->fp_bytes + 4 + 32 + 12 + 3 * c->g1_bytes + 3 * c->g2_bytes);
    put_prime(f, c->p, c->fp_bytes);
    put_prime(f, c->r.w, 32);
    put_u32(f, s->wires);
    put_u32(f, PUBLIC);
    put_u32(f, s->domain);
    const uint8_t *const header[] = {
        s->g1,
        s->g1 + c->g1_bytes,
        s->g2,
        s->g2 + c->g2_bytes,
        s->g1 + 2 * c->g1_bytes,
        s->g2 + 2 * c->g2_bytes}; /* alpha1 beta1 beta2 gamma2 delta1 delta2 */
    for (unsigned i = 0; i < COUNT_OF(header); i++) {
        put(f, header[i], i == 0 || i == 1 || i == 4 ? c->g1_bytes : c->g2_bytes);
    }
    put_points(f, s, 3, GROUP_G1, PUBLIC + 1);
    put_terms(f, s);
    put_points(f, s, 5, GROUP_G1, s->wires);
    put_points(f, s, 6, GROUP_G1, s->wires);
    put_points(f, s, 7, GROUP_G2, s->wires);
    put_points(f, s, 8, GROUP_G1, s->wires - PUBLIC - 1);
    put_points(f, s, 9, GROUP_G1, s->domain);
    CHECK_MSG(fclose(f) == 0, "the disk is full");
}

static void witness_write(const struct setup *s, enum scalar_mix mix) {
    AUTO(mem_free_ptr) struct scalar *w = scalars_random(s->c, s->wires, mix);
    FILE *f = fopen(s->witness_path, "wb");
    CHECK_MSG(f != NULL, "%s cannot be written", s->witness_path);
    w[0] = (struct scalar){{1}};
    put(f, "wtns", 4);
    put_u32(f, 2);
    put_u32(f, 2);
    put_section(f, 1, 40);
    put_prime(f, s->c->r.w, 32);
    put_u32(f, s->wires);
    put_section(f, 2, (uint64_t)s->wires * 32);
    put(f, w, (size_t)s->wires * 32);
    CHECK_MSG(fclose(f) == 0, "the disk is full");
}

static void setup_make(struct setup *s, enum curve_id id, unsigned log2) {
    const char *folder = getenv("TMPDIR");
    CHECK((1u << log2) - 3 > PUBLIC + 1); /* some wires are private */
    *s = (struct setup){
        .c = curve_by_id(id), .log2 = log2, .domain = 1u << log2, .wires = (1u << log2) - 3};
    snprintf(s->key_path, sizeof s->key_path, "%.30s/bellows-%d.zkey", folder ? folder : "/tmp",
             getpid());
    snprintf(s->witness_path, sizeof s->witness_path, "%.30s/bellows-%d.wtns",
             folder ? folder : "/tmp", getpid());
    tables_make(s);
    key_write(s);
}

/* Σ scalar_i·k(i), as a point must be. */
static struct scalar logarithm(const struct setup *s, unsigned section, const uint8_t *scalars,
                               uint32_t from, uint32_t count) {
    struct scalar sum = {{0}}, t;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&t, scalars + (size_t)(from + i) * 32, 32);
        s->c->scalar_mul(&t, &t, &s->k[place_of(section, i)]);
        s->c->scalar_add(&sum, &sum, &t);
    }
    return sum;
}

static void check_sums(const struct setup *s, const struct sums *sums, const struct witness *w,
                       const uint8_t *h) {
    const struct curve *c = s->c;
    const struct {
        const char *name;
        const struct g1 *got;
        struct scalar k;
    } want[] = {
        {"A", &sums->a, logarithm(s, 5, w->values, 0, s->wires)},
        {"B1", &sums->b1, logarithm(s, 6, w->values, 0, s->wires)},
        {"L", &sums->l, logarithm(s, 8, w->values, PUBLIC + 1, s->wires - PUBLIC - 1)},
        {"H", &sums->h, logarithm(s, 9, h, 0, s->domain)},
    };
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        struct g1 p = {{0}};
        c->g1_mul(&p, &c->g1_generator, &want[i].k);
        CHECK_MSG(!memcmp(&p, want[i].got, sizeof p), "%s 2^%u: sum %s is wrong", c->name, s->log2,
                  want[i].name);
    }
    struct g2 p2 = {{0}};
    struct scalar k2 = logarithm(s, 7, w->values, 0, s->wires);
    c->g2_mul(&p2, &c->g2_generator, &k2);
    CHECK_MSG(!memcmp(&p2, &sums->b2, sizeof p2), "%s 2^%u: sum B2 is wrong", c->name, s->log2);
}

struct job { /* a slot under one key */
    struct backend *b;
    struct backend_key *resident;
    struct backend_slot *slot;
};

/* All work of a job queued; the host waits for counts alone. */
static void job_start(const struct job *j, const struct witness *w, struct job_watch *watch) {
    CHECK_OK(j->b->ops->witness(j->slot, w, watch));
    CHECK_OK(j->b->ops->evaluate(j->slot));
    CHECK_OK(j->b->ops->quotient(j->slot));
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        CHECK_OK(j->b->ops->msm(j->slot, msm_order[i]));
    }
}

static void job_run(const struct job *j, struct sums *sums, struct step_times *times,
                    const struct witness *w) {
    struct job_watch watch = {0};
    job_start(j, w, &watch);
    CHECK_OK(j->b->ops->sums(sums, times, j->slot));
}

static void time_jobs(const struct setup *s, const struct job *j, const struct witness *w,
                      enum scalar_mix mix, unsigned runs, const struct sums *want) {
    uint64_t total[RUNS_MAX], steps[STEP_COUNT][RUNS_MAX];
    struct step_times times = {0};
    struct sums sums;
    for (unsigned run = 0; run < runs; run++) {
        uint64_t start = clock_ns();
        job_run(j, &sums, &times, w);
        total[run] = clock_ns() - start;
        CHECK_MSG(!memcmp(want, &sums, sizeof sums), "run %u of %u has other sums", run, runs);
        for (unsigned step = 0; step < STEP_COUNT; step++) {
            steps[step][run] = times.ns[step];
        }
        j->b->ops->wipe(j->slot);
    }
    double median = median_ms(total, runs);
    printf("{\"bench\": \"sums\", \"curve\": \"%s\", \"log2\": %u, \"witness\": \"%s\", \"from\": "
           "\"%s\", "
           "\"median_ms\": %.2f, \"min_ms\": %.2f, \"runs\": %u",
           s->c->name, s->log2, mix_name(mix), gpu_pinned_is(w->values) ? "pinned" : "file", median,
           (double)total[0] / 1e6, runs);
    for (enum prove_step step = STEP_WITNESS; step <= STEP_MSM_H; step++) {
        printf(", \"%s_ms\": %.3f", prove_step_name(step), median_ms(steps[step], runs));
    }
    printf("}\n");
}

/* Whole proofs: the sums, blinding, assembly and the check, which runs and fails, as the key's points belong together by
 * nothing; a check that succeeds takes as long. */
static void time_proofs(const struct setup *s, const struct job *j, const struct key *key,
                        const struct witness *w, enum scalar_mix mix, unsigned runs) {
    uint64_t total[RUNS_MAX];
    struct job_watch watch = {0};
    struct blinding blinding;
    CHECK_OK(blinding_random(&blinding, s->c));
    for (unsigned run = 0; run < runs; run++) {
        struct prove_result result = {0};
        uint64_t start = clock_ns();
        CHECK_ERR(E_SELFCHECK, groth16_prove(&result, j->b, j->slot, key, w, &blinding, &watch));
        total[run] = clock_ns() - start;
        prove_result_done(&result);
    }
    double median = median_ms(total, runs);
    printf("{\"bench\": \"proof\", \"curve\": \"%s\", \"log2\": %u, \"witness\": \"%s\", \"from\": "
           "\"%s\", \"median_ms\": %.2f, \"min_ms\": %.2f, \"runs\": %u}\n",
           s->c->name, s->log2, mix_name(mix), gpu_pinned_is(w->values) ? "pinned" : "file", median,
           (double)total[0] / 1e6, runs);
}

struct key_case {        /* how a key is proved with */
    unsigned runs;       /* timed */
    unsigned share;      /* of the device memory that a slot would like, in percent; 0: all */
    bool streamed;       /* so little memory that points stay in the file */
    bool tables;         /* with multiples of the points */
    uint64_t memory_max; /* bytes; 0: no limit */
};

static void plan_of(struct plan *out, struct job *j, struct backend_options *options,
                    uint64_t memory_max, const struct key *key) {
    backend_close(&j->b);
    options->device_memory_max = memory_max;
    CHECK_OK(gpu_backend_open(&j->b, options));
    CHECK_OK(j->b->ops->plan(out, j->b, key_shape(key)));
    CHECK(!memory_max || out->device_bytes <= memory_max);
}

/* Opens the backend under the case's limit. */
static void limit_set(struct job *j, struct backend_options *options, const struct key_case *k,
                      const struct key *key) {
    struct plan plan;
    options->key_tables = KEY_TABLES_OFF;
    plan_of(&plan, j, options, k->memory_max, key);
    if (k->tables) {
        uint64_t plain = plan.key_bytes_resident;
        options->key_tables = KEY_TABLES_ON;
        plan_of(&plan, j, options, k->memory_max, key);
        CHECK(plan.key_bytes_resident > plain);
    }
    if (k->share) {
        uint64_t slot = plan.device_bytes - plan.key_bytes_resident;
        plan_of(&plan, j, options, plan.key_bytes_resident + slot * k->share / 100, key);
    }
    for (unsigned i = 0; k->streamed && plan.chunks_count == 1; i++) {
        CHECK_MSG(i < 200, "no limit makes a plan that streams");
        plan_of(&plan, j, options, plan.device_bytes - plan.device_bytes / 64, key);
    }
}

static void print_load(const struct setup *s, const struct job *j, const struct key_case *k,
                       const struct key *key, uint64_t load_ns) {
    struct plan plan;
    CHECK_OK(j->b->ops->plan(&plan, j->b, key_shape(key)));
    printf("{\"bench\": \"key load\", \"curve\": \"%s\", \"log2\": %u, \"tables\": %s, "
           "\"load_ms\": %.0f, "
           "\"device_bytes\": %llu, \"key_bytes\": %llu, \"streamed_in\": %u, \"expected_ms\": "
           "%.1f}\n",
           s->c->name, s->log2, k->tables ? "true" : "false", (double)load_ns / 1e6,
           (unsigned long long)plan.device_bytes, (unsigned long long)plan.key_bytes_resident,
           plan.chunks_count, (double)plan.expected_ns / 1e6);
}

static void check_case(const struct setup *s, struct key *key, const struct key_case *k) {
    static const enum scalar_mix mixes[] = {MIX_UNIFORM, MIX_BITS, MIX_SPARSE};
    struct job j = {0};
    struct backend_options options = {.kind = BACKEND_CUDA, .device = getenv("BELLOWS_DEVICE")};
    limit_set(&j, &options, k, key);
    uint64_t start = clock_ns();
    CHECK_OK(j.b->ops->key_load(&j.resident, j.b, key));
    CHECK_OK(j.b->ops->slot_open(&j.slot, j.resident));
    if (k->runs) {
        print_load(s, &j, k, key, clock_ns() - start);
    }
    for (size_t i = 0; i < COUNT_OF(mixes); i++) {
        AUTO(witness_close) struct witness w = {0};
        AUTO(mem_free_ptr) uint8_t *h = NULL;
        struct sums sums;
        struct step_times times = {0};
        witness_write(s, mixes[i]);
        CHECK_OK(witness_open(&w, s->witness_path));
        CHECK_OK(mem_new_raw(&h, (size_t)s->domain, 32));
        job_run(&j, &sums, &times, &w);
        CHECK_OK(j.b->ops->h_scalars(h, j.slot));
        j.b->ops->wipe(j.slot);
        check_sums(s, &sums, &w, h);
        if (k->runs) {
            time_jobs(s, &j, &w, mixes[i], k->runs, &sums);
            struct witness pinned = {.curve = w.curve, .count = w.count};
            uint8_t *values = device_pinned((size_t)s->wires * 32);
            memcpy(values, w.values, (size_t)s->wires * 32);
            pinned.values = values;
            time_jobs(s, &j, &pinned, mixes[i], k->runs, &sums);
            time_proofs(s, &j, key, &pinned, mixes[i], k->runs);
            device_done();
        }
    }
    j.b->ops->slot_close(&j.slot);
    j.b->ops->key_drop(&j.resident);
    backend_close(&j.b);
}

static void check_key(enum curve_id id, unsigned log2, const struct key_case *cases,
                      size_t cases_count) {
    device_of_test();
    AUTO(setup_done) struct setup s = {0};
    AUTO(key_unref) struct key *key = NULL;
    setup_make(&s, id, log2);
    CHECK_OK(key_open(&key, s.key_path, (struct key_options){.allow_insecure = true}));
    for (size_t i = 0; i < cases_count; i++) {
        check_case(&s, key, &cases[i]);
    }
}

static void claim_large(void) {
    unsigned log2 = device_of_test()->emulated ? 5 : 16;
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        check_key(curves_tested[i], log2, &(struct key_case){0}, 1);
    }
}

static void claim_little_memory(void) {
    unsigned log2 = device_of_test()->emulated ? 7 : 16;
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        check_key(curves_tested[i], log2,
                  &(struct key_case){.share = device_of_test()->emulated ? 60 : 30}, 1);
    }
}

/* Every mix of scalars that a witness has; and the plan must have made them. */
static void claim_tables(void) {
    unsigned log2 = device_of_test()->emulated ? 5 : 16;
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        check_key(curves_tested[i], log2, &(struct key_case){.tables = true}, 1);
    }
}

static void claim_streamed(void) {
    unsigned log2 = device_of_test()->emulated ? 9 : 16;
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        check_key(curves_tested[i], log2, &(struct key_case){.streamed = true}, 1);
    }
}

static void print_plan(const char *name, unsigned gib, const struct gpu_layout *l,
                       const struct key_shape *shape) {
    printf("%s in %u GiB: %u ranges, of H %u, windows of %u bits, chunks of 2^%u, %u (G1 %u) in "
           "flight%s, %s twiddles, %.1f GiB, %.0f ms expected\n",
           name, gib, l->parts_count, l->h_parts_count, l->witness_msm.window_bits,
           l->witness_msm.chunk_log2, l->witness_msm.lanes_count, l->g1_lanes,
           l->witness_msm.overlap ? " and a reduction" : "", l->lean ? "lean" : "full",
           (double)(l->key_bytes + l->slot_bytes) / (double)(1 << 30),
           (double)gpu_layout_expected_ns(l, shape, 132) / 1e6);
}

/* What must fit: a partition of Filecoin's PoRep and a dense one of the same size on a card of 139 GiB, 2^24 in 16 GiB with the
 * key resident, and in 4 GiB with a key that is streamed. */
static void claim_plans(void) {
    static const struct {
        const char *name;
        uint64_t wires, log2;
        unsigned gib;
        bool resident, tables;
    } cases[] = {{"PoRep partition", 130170222, 27, 139, true, false},
                 {"2^27", (1 << 27) - 3, 27, 139, true, false},
                 {"2^26", (1 << 26) - 3, 26, 139, true, false},
                 {"2^24", (1 << 24) - 3, 24, 139, true, false},
                 {"2^24", (1 << 24) - 3, 24, 16, true, false},
                 {"2^24", (1 << 24) - 3, 24, 4, false, false},
                 {"2^22 with multiples", (1 << 22) - 3, 22, 139, true, true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t n = cases[i].wires, allowed = (uint64_t)cases[i].gib << 30;
        struct key_shape shape = {.curve = CURVE_BLS12_381,
                                  .h_basis = H_POWERS,
                                  .wires_count = (uint32_t)n,
                                  .public_count = 5,
                                  .domain_size = (uint64_t)1 << cases[i].log2,
                                  .domain_log2 = (unsigned)cases[i].log2,
                                  .terms_count = {2 * n + n / 2, n}};
        struct gpu_layout l;
        CHECK_OK(gpu_layout_of(&l, &shape, 132, allowed, cases[i].tables));
        CHECK(l.key_bytes + l.slot_bytes <= allowed);
        CHECK_EQ(cases[i].tables, l.multiples);
        bool streamed = false;
        for (unsigned k = 0; k < KEY_POINTS_COUNT; k++) {
            streamed = streamed || l.streamed[k];
        }
        CHECK_MSG(streamed != cases[i].resident, "%s in %u GiB: %s", cases[i].name, cases[i].gib,
                  streamed ? "streamed" : "resident");
        CHECK((uint64_t)l.parts_count * l.witness_part >= shape.wires_count);
        CHECK((uint64_t)l.h_parts_count * l.h_part >= shape.domain_size);
        print_plan(cases[i].name, cases[i].gib, &l, &shape);
    }
}

/* By the rule: half of what is free, and never where the setting forbids it. */
static void claim_multiples_chosen(void) {
    static const struct {
        unsigned log2, room_gib;
        enum key_tables tables;
        bool multiples;
    } cases[] = {{20, 139, KEY_TABLES_AUTO, true}, {20, 139, KEY_TABLES_OFF, false},
                 {20, 12, KEY_TABLES_AUTO, false}, {20, 12, KEY_TABLES_ON, true},
                 {20, 0, KEY_TABLES_AUTO, false},  {22, 139, KEY_TABLES_AUTO, true},
                 {22, 60, KEY_TABLES_AUTO, false}, {24, 139, KEY_TABLES_AUTO, false},
                 {26, 139, KEY_TABLES_ON, false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t n = UINT64_C(1) << cases[i].log2, room = (uint64_t)cases[i].room_gib << 30;
        struct key_shape shape = {.curve = CURVE_BLS12_381,
                                  .wires_count = (uint32_t)n - 3,
                                  .public_count = 5,
                                  .domain_size = n,
                                  .domain_log2 = cases[i].log2,
                                  .terms_count = {2 * n, n}};
        struct gpu_layout l, plain;
        CHECK_OK(gpu_layout_choose(&l, &shape, 132, UINT64_C(139) << 30, cases[i].tables, room));
        CHECK_OK(gpu_layout_of(&plain, &shape, 132, UINT64_C(139) << 30, false));
        CHECK_MSG(l.multiples == cases[i].multiples, "2^%u, %u GiB free: %d", cases[i].log2,
                  cases[i].room_gib, l.multiples);
        CHECK(!l.multiples || cases[i].tables == KEY_TABLES_ON ||
              l.key_bytes + l.slot_bytes <= room / 2);
        CHECK(l.multiples || (l.key_bytes == plain.key_bytes && l.slot_bytes == plain.slot_bytes));
    }
}

/* Less memory is never faster, and what a plan says it takes is what its pieces end at. */
static void claim_plans_ordered(void) {
    const struct key_shape shape = {.curve = CURVE_BLS12_381,
                                    .wires_count = (1 << 24) - 3,
                                    .public_count = 5,
                                    .domain_size = 1 << 24,
                                    .domain_log2 = 24,
                                    .terms_count = {(5 << 24) / 2, 1 << 24}};
    uint64_t before_ns = UINT64_MAX;
    for (unsigned gib = 4; gib <= 72; gib += 2) {
        struct gpu_layout l;
        CHECK_OK(gpu_layout_of(&l, &shape, 132, (uint64_t)gib << 30, false));
        uint64_t ns = gpu_layout_expected_ns(&l, &shape, 132);
        CHECK_MSG(ns <= before_ns, "%u GiB: %.0f ms, with 2 GiB less %.0f", gib, (double)ns / 1e6,
                  (double)before_ns / 1e6);
        before_ns = ns;
    }
}

/* Jobs one after the other in one slot, then in two slots by turns, the second begun before the first has ended: every
 * time the sums of the first, which are checked. Buffers that one stream writes while another still reads them show here
 * alone, and only where the work before is short: bits. */
static void check_repeats(enum curve_id id, unsigned log2, enum scalar_mix mix, unsigned jobs) {
    AUTO(setup_done) struct setup s = {0};
    AUTO(key_unref) struct key *key = NULL;
    AUTO(witness_close) struct witness w = {0};
    AUTO(mem_free_ptr) uint8_t *h = NULL;
    struct backend_options options = {.kind = BACKEND_CUDA, .device = getenv("BELLOWS_DEVICE")};
    struct job slots[2] = {{0}};
    struct job_watch watches[2] = {{0}};
    struct sums first, sums;
    struct step_times times = {0};
    setup_make(&s, id, log2);
    witness_write(&s, mix);
    CHECK_OK(key_open(&key, s.key_path, (struct key_options){.allow_insecure = true}));
    CHECK_OK(witness_open(&w, s.witness_path));
    CHECK_OK(mem_new_raw(&h, (size_t)s.domain, 32));
    CHECK_OK(gpu_backend_open(&slots[0].b, &options));
    CHECK_OK(slots[0].b->ops->key_load(&slots[0].resident, slots[0].b, key));
    slots[1] = slots[0];
    for (unsigned i = 0; i < 2; i++) {
        CHECK_OK(slots[i].b->ops->slot_open(&slots[i].slot, slots[i].resident));
    }
    job_run(&slots[0], &first, &times, &w);
    CHECK_OK(slots[0].b->ops->h_scalars(h, slots[0].slot));
    slots[0].b->ops->wipe(slots[0].slot);
    check_sums(&s, &first, &w, h);
    unsigned wrong[2] = {0};
    for (unsigned i = 0; i < jobs; i++) {
        job_run(&slots[0], &sums, &times, &w);
        slots[0].b->ops->wipe(slots[0].slot);
        wrong[0] += memcmp(&first, &sums, sizeof sums) != 0;
    }
    job_start(&slots[0], &w, &watches[0]);
    for (unsigned i = 1; i <= jobs; i++) {
        const struct job *ended = &slots[(i - 1) % 2];
        if (i < jobs) {
            job_start(&slots[i % 2], &w, &watches[i % 2]);
        }
        CHECK_OK(ended->b->ops->sums(&sums, &times, ended->slot));
        ended->b->ops->wipe(ended->slot);
        wrong[1] += memcmp(&first, &sums, sizeof sums) != 0;
    }
    for (unsigned i = 0; i < 2; i++) {
        slots[i].b->ops->slot_close(&slots[i].slot);
    }
    slots[0].b->ops->key_drop(&slots[0].resident);
    backend_close(&slots[0].b);
    CHECK_MSG(!wrong[0] && !wrong[1],
              "%s 2^%u, %s: of %u jobs %u have other sums in one slot, %u in two", s.c->name, log2,
              mix_name(mix), jobs, wrong[0], wrong[1]);
}

static void claim_repeats(void) {
    static const enum scalar_mix mixes[] = {MIX_BITS, MIX_WITNESS, MIX_ZERO, MIX_UNIFORM,
                                            MIX_SPARSE};
    bool emulated = device_of_test()->emulated;
    const char *asked = getenv("BELLOWS_REPEATS");
    unsigned jobs = asked ? (unsigned)strtoul(asked, NULL, 10) : emulated ? 2 : 300;
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        for (unsigned k = 0; k < COUNT_OF(mixes); k++) { /* the most where work is shortest */
            unsigned mine = k == 0 || emulated ? jobs : jobs / 6;
            check_repeats(curves_tested[i], emulated ? 4 : 16, mixes[k], mine);
            if (!emulated) {
                check_repeats(curves_tested[i], 18, mixes[k], mine);
            }
        }
    }
}

/* Many jobs in one slot: the same sums each time, and no device memory lost. */
static void claim_flat(void) {
    device_of_test();
    AUTO(setup_done) struct setup s = {0};
    AUTO(key_unref) struct key *key = NULL;
    AUTO(witness_close) struct witness w = {0};
    struct job j = {0};
    struct backend_options options = {.kind = BACKEND_CUDA, .device = getenv("BELLOWS_DEVICE")};
    unsigned jobs = device_of_test()->emulated ? 3 : 1000;
    uint64_t before, after;
    struct sums first, sums;
    struct step_times times = {0};
    setup_make(&s, CURVE_BN254, device_of_test()->emulated ? 4 : 8);
    witness_write(&s, MIX_WITNESS);
    CHECK_OK(key_open(&key, s.key_path, (struct key_options){.allow_insecure = true}));
    CHECK_OK(witness_open(&w, s.witness_path));
    CHECK_OK(gpu_backend_open(&j.b, &options));
    CHECK_OK(j.b->ops->key_load(&j.resident, j.b, key));
    CHECK_OK(j.b->ops->slot_open(&j.slot, j.resident));
    job_run(&j, &first, &times, &w);
    j.b->ops->wipe(j.slot);
    CHECK_OK(gpu_memory_free(&before));
    for (unsigned i = 0; i < jobs; i++) {
        job_run(&j, &sums, &times, &w);
        j.b->ops->wipe(j.slot);
        CHECK_MSG(!memcmp(&first, &sums, sizeof sums), "job %u of %u has other sums", i, jobs);
    }
    CHECK_OK(gpu_memory_free(&after));
    CHECK_EQ(before, after);
    j.b->ops->slot_close(&j.slot);
    j.b->ops->key_drop(&j.resident);
    backend_close(&j.b);
}

/* A size from the environment, or what is usual. */
static unsigned log2_of(const char *name, unsigned usual) {
    const char *text = getenv(name);
    return text ? (unsigned)strtoul(text, NULL, 10) : usual;
}

static void bench(void) {
    static const struct key_case small[] = {{.runs = 11}, {.runs = 11, .tables = true}},
                                 middle[] = {{.runs = 5},
                                             {.runs = 5, .share = 25},
                                             {.runs = 5, .tables = true}},
                                 large[] = {{.runs = 3}, {.runs = 3, .memory_max = 16ull << 30}};
    static const struct {
        enum curve_id curve;
        unsigned log2;
        const struct key_case *cases;
        size_t cases_count;
    } keys[] = {{CURVE_BN254, 20, small, COUNT_OF(small)},
                {CURVE_BLS12_381, 20, small, COUNT_OF(small)},
                {CURVE_BLS12_381, 22, middle, COUNT_OF(middle)},
                {CURVE_BLS12_381, 24, large, COUNT_OF(large)}};
    unsigned from = log2_of("BELLOWS_BENCH_FROM", 0), most = log2_of("BELLOWS_BENCH_LOG2", 22);
    if (device_of_test()->emulated) {
        return;
    }
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        if (keys[i].log2 >= from && keys[i].log2 <= most) {
            check_key(keys[i].curve, keys[i].log2, keys[i].cases, keys[i].cases_count);
        }
    }
}

int kernel_large(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"plans for the largest keys fit the cards they are for", claim_plans},
        {"multiples are taken where half of the free memory holds them", claim_multiples_chosen},
        {"plans with more memory are as fast or faster", claim_plans_ordered},
        {"a large key's five sums are right for dense and for bit witnesses", claim_large},
        {"a key is proved with in a part of the memory it would like", claim_little_memory},
        {"points with their multiples give the same sums", claim_tables},
        {"points that stay in the file give the same sums", claim_streamed},
        {"jobs in one slot and in two have the same sums every time", claim_repeats},
        {"many jobs in one slot give the same sums and take no more memory", claim_flat},
    };
    static const struct check_claim benches[] = {{"sums bench", bench}};
    if (argc == 2 && !strcmp(argv[1], "--bench")) {
        return check_main(1, argv, benches, COUNT_OF(benches));
    }
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
