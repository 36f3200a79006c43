/* All the time of a job passes in `sums`, in slices, so that a cancel is seen within a second. A stuck prover gives no sign of
 * life and sees nothing, as a hung kernel would. A wrong one answers the sums of another key, which fail the self-check; the
 * second computation then is right, so the lane finds the device at fault.
 */
#include "tests/sim/prover.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"
#include "node/cpu/cpu.h"
#include "node/groth16/prove.h"
#include "node/key/native.h"

static const uint64_t SLICE_NS = UINT64_C(1000000000);
static const uint64_t CANCEL_LOOK_NS = UINT64_C(50000000);
static const uint64_t KEY_BYTES = UINT64_C(1) << 20;

static const struct sim_model *known; /* set before the first lane */
static _Atomic uint64_t checks;       /* in earnest */

struct prover {
    struct backend base;
    const struct sim_model *model; /* lent */
    struct sim_counts *counts;     /* lent */
    struct rng rng;
    bool was_wrong; /* the next computation is right again */
};
struct backend_key {
    struct prover *owner; /* lent */
    struct key *key;      /* owned (ref) */
    unsigned idx;         /* in the model */
};
struct backend_slot {
    struct backend_key *key; /* lent */
    struct job_watch *watch; /* lent during a job */
    uint64_t job_ns;
    struct lock lock;
    struct condition changed;
    uint64_t tickets,
        waiting; /* [lock] the last one given; of the job that is there and not begun, 0: none */
};

enum err sim_model_learn(struct sim_model *m, unsigned idx, const char *key_path,
                         const char *witness_path) {
    AUTO(backend_close) struct backend *cpu = NULL;
    AUTO(key_unref) struct key *key = NULL;
    AUTO(witness_close) struct witness w = {0};
    AUTO(prove_result_done) struct prove_result result = {0};
    struct backend_options options = {.kind = BACKEND_CPU, .threads_count = 1};
    struct backend_key *loaded = NULL;
    struct backend_slot *slot = NULL;
    struct job_watch watch = {0};
    struct blinding blinding;
    TRY(key_open(&key, key_path, (struct key_options){.allow_insecure = true}));
    TRY(key_digest(&m->digests[idx], key));
    TRY(witness_open(&w, witness_path));
    TRY(cpu_backend_open(&cpu, &options));
    TRY(blinding_random(&blinding, key_curve(key)));
    enum err code = cpu->ops->key_load(&loaded, cpu, key);
    if (code == OK) {
        code = cpu->ops->slot_open(&slot, loaded);
    }
    if (code == OK) {
        code = groth16_prove(&result, cpu, slot, key, &w, &blinding, &watch);
    }
    m->sums[idx] = result.sums;
    m->proofs[idx] = result.proof;
    known = m;
    struct fault fault = fault_of(code);
    if (slot) {
        cpu->ops->slot_close(&slot);
    }
    if (loaded) {
        cpu->ops->key_drop(&loaded);
    }
    return code == OK ? OK : fault_raise(&fault);
}

/* --- What is linked away --- */

enum err __wrap_groth16_assemble(struct prove_result *r, const struct key *key,
                                 const struct witness *w, const struct blinding *blinding);
enum err __wrap_groth16_check(struct prove_result *r, const struct key *key);
enum err __real_groth16_check(struct prove_result *r, const struct key *key);

static enum err copy_publics(struct prove_result *out, const struct key *key,
                             const struct witness *w) {
    size_t count = key_vkey(key)->public_count;
    TRY(mem_new(&out->publics, count + 1, sizeof *out->publics));
    out->publics_count = count;
    for (size_t i = 0; i < count; i++) {
        witness_get(&out->publics[i], w, 1 + i);
    }
    return OK;
}

enum err __wrap_groth16_assemble(struct prove_result *r, const struct key *key,
                                 const struct witness *w, const struct blinding *blinding) {
    (void)blinding;
    r->proof = known->proofs[0];
    r->proof.c = r->proof.a; /* of wrong sums */
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        if (!memcmp(&r->sums, &known->sums[i], sizeof r->sums)) {
            r->proof = known->proofs[i];
        }
    }
    return copy_publics(r, key, w);
}

enum err __wrap_groth16_check(struct prove_result *r, const struct key *key) {
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        if (!memcmp(&r->proof, &known->proofs[i], sizeof r->proof)) {
            return OK;
        }
    }
    atomic_fetch_add(&checks, 1);
    return __real_groth16_check(r, key);
}

uint64_t sim_checks_in_earnest(void) {
    return atomic_load(&checks);
}

/* --- Time --- */

static double uniform(struct rng *rng) {
    return ((double)(rng_u64(rng) >> 11) + 0.5) / 9007199254740992.0;
}

/* Box and Muller; the logarithm is shifted so that the mean is the model's. */
static uint64_t draw_ns(struct prover *p) {
    double sigma = p->model->sigma;
    double normal =
        sqrt(-2 * log(uniform(&p->rng))) * cos(2 * 3.14159265358979323846 * uniform(&p->rng));
    return (uint64_t)((double)p->model->mean_ns * exp(sigma * normal - sigma * sigma / 2));
}

static bool happens(struct prover *p, unsigned ppm) {
    return ppm && rng_below(&p->rng, 1000000) < ppm;
}

/* False: the job was cancelled meanwhile. watch NULL: without signs of life. */
static bool spend(const struct prover *p, uint64_t ns, struct job_watch *watch) {
    uint64_t start_ns = clock_ns(), spent_ns = 0;
    while (spent_ns < ns && !atomic_load(&p->counts->hurry)) {
        clock_sleep_ns(ns - spent_ns < SLICE_NS ? ns - spent_ns : SLICE_NS);
        spent_ns = clock_ns() - start_ns;
        if (watch) {
            atomic_store(&watch->progress_ns, clock_ns());
            atomic_store(&watch->permille, (uint32_t)(spent_ns < ns ? spent_ns * 980 / ns : 980));
            if (atomic_load(&watch->cancel)) {
                return false;
            }
        }
    }
    return true;
}

/* --- The operations --- */

static void prover_close(struct backend *b) {
    mem_free(b);
}

static enum err prover_plan(struct plan *out, struct backend *b, const struct key_shape *shape) {
    const struct prover *p = (const struct prover *)b;
    (void)shape;
    *out = (struct plan){.host_bytes = KEY_BYTES,
                         .key_bytes_resident = KEY_BYTES,
                         .expected_ns = p->model->mean_ns,
                         .chunks_count = 1};
    return OK;
}

static enum err prover_key_load(struct backend_key **out, struct backend *b, struct key *key) {
    struct prover *p = (struct prover *)b;
    struct sha256 digest;
    unsigned idx = 0;
    struct backend_key *k = NULL;
    TRY(key_source(&digest, key)); /* lanes keep .zkeys in the native layout */
    while (idx < SIM_KEYS && memcmp(&digest, &p->model->digests[idx], sizeof digest) != 0) {
        idx++;
    }
    REQUIRE(idx < SIM_KEYS, E_RANGE, "%s is no key of the simulation", key_path(key));
    TRY(mem_new(&k, 1, sizeof *k));
    *k = (struct backend_key){p, key_ref(key), idx};
    atomic_fetch_add(&p->counts->loads, 1);
    atomic_fetch_add(&p->counts->busy, 1);
    spend(p, p->model->load_ns, NULL);
    atomic_fetch_sub(&p->counts->busy, 1);
    *out = k;
    return OK;
}

static void prover_key_drop(struct backend_key **key) {
    key_unref(&(*key)->key);
    mem_free_ptr(key);
}

static enum err prover_slot_open(struct backend_slot **out, struct backend_key *key) {
    struct backend_slot *s = NULL;
    TRY(mem_new(&s, 1, sizeof *s));
    s->key = key;
    lock_init(&s->lock, LOCK_BACKEND);
    condition_init(&s->changed);
    *out = s;
    return OK;
}

static void prover_slot_close(struct backend_slot **slot) {
    if (*slot) {
        condition_done(&(*slot)->changed);
        lock_done(&(*slot)->lock);
    }
    mem_free_ptr(slot);
}

static enum err prover_pin(struct backend *b, void *host, size_t bytes) {
    (void)b;
    (void)host;
    (void)bytes;
    return OK;
}

static void prover_unpin(struct backend *b, void *host) {
    (void)b;
    (void)host;
}

/* One job may be there beside the one that is computed. */
static enum err prover_bring(struct backend_slot *s, struct bring *what, struct job_watch *watch) {
    LOCK_SCOPE(&s->lock);
    while (s->waiting) {
        struct timespec until = clock_wait_until(CANCEL_LOOK_NS);
        condition_wait_until(&s->changed, &s->lock, &until);
        REQUIRE(!atomic_load(&watch->cancel), E_CANCELLED, "cancelled while it was brought");
    }
    what->ticket = s->waiting = ++s->tickets;
    return OK;
}

static void prover_unbring(struct backend_slot *s, uint64_t ticket) {
    LOCK_SCOPE(&s->lock);
    s->waiting = s->waiting == ticket ? 0 : s->waiting;
    condition_wake_all(&s->changed);
}

static enum err prover_witness(struct backend_slot *s, const struct witness *w,
                               struct job_watch *watch) {
    prover_unbring(s, w->brought);
    s->watch = watch;
    s->job_ns = draw_ns(s->key->owner);
    return OK;
}

static enum err prover_step(struct backend_slot *s) {
    (void)s;
    return OK;
}

static enum err prover_msm(struct backend_slot *s, enum key_points which) {
    (void)s;
    (void)which;
    return OK;
}

static enum err work(struct sums *out, struct backend_slot *s) {
    struct prover *p = s->key->owner;
    const struct sim_model *m = p->model;
    bool wrong = !p->was_wrong && happens(p, m->wrong_ppm);
    if (happens(p, m->stuck_ppm)) {
        atomic_fetch_add(&p->counts->stuck, 1);
        spend(p, UINT64_MAX, NULL);
    }
    REQUIRE(spend(p, s->job_ns, s->watch), E_CANCELLED, "cancelled while it was proved");
    if (happens(p, m->device_ppm)) {
        atomic_fetch_add(&p->counts->device_errors, 1);
        FAIL(E_DEVICE, "the simulated device has failed");
    }
    p->was_wrong = wrong;
    atomic_fetch_add(&p->counts->wrong, wrong);
    *out = m->sums[s->key->idx];
    if (wrong) {
        out->h = out->l;
    }
    return OK;
}

static enum err prover_sums(struct sums *out, struct step_times *times, struct backend_slot *s) {
    struct sim_counts *c = s->key->owner->counts;
    (void)times;
    uint64_t number = atomic_fetch_add(&c->begun, 1);
    if (number < c->drawn_max) {
        c->drawn_ns[number] = s->job_ns;
    }
    atomic_fetch_add(&c->busy, 1);
    enum err code = work(out, s);
    atomic_fetch_add(&c->ended, 1);
    atomic_fetch_sub(&c->busy, 1);
    if (code == OK) {
        atomic_fetch_add(&c->work_ns, s->job_ns);
        uint64_t longest_ns = atomic_load(&c->longest_ns);
        while (s->job_ns > longest_ns &&
               !atomic_compare_exchange_weak(&c->longest_ns, &longest_ns, s->job_ns)) {
        }
    }
    return code;
}

static enum err prover_h_scalars(uint8_t *out, struct backend_slot *s) {
    (void)out;
    (void)s;
    FAIL(E_USAGE, "a simulated prover has no scalars of H");
}

static void prover_wipe(struct backend_slot *s) {
    s->watch = NULL;
}

#define OPERATIONS                                                                                 \
    .name = "simulated", .close = prover_close, .plan = prover_plan, .key_load = prover_key_load,  \
    .key_drop = prover_key_drop, .slot_open = prover_slot_open, .slot_close = prover_slot_close,   \
    .witness = prover_witness, .evaluate = prover_step, .quotient = prover_step,                   \
    .msm = prover_msm, .sums = prover_sums, .h_scalars = prover_h_scalars, .wipe = prover_wipe
static const struct backend_ops prover_ops = {OPERATIONS};
/* As a device with memory of its own does it: the lane stages beside it. */
static const struct backend_ops device_ops = {OPERATIONS, .pin = prover_pin, .unpin = prover_unpin,
                                              .bring = prover_bring, .unbring = prover_unbring};

enum err sim_prover_open(struct backend **out, const struct sim_model *m, struct sim_counts *counts,
                         uint64_t seed) {
    struct prover *p = NULL;
    TRY(mem_new(&p, 1, sizeof *p));
    *p = (struct prover){.base = {.ops = m->brings ? &device_ops : &prover_ops},
                         .model = m,
                         .counts = counts,
                         .rng = rng_seeded(seed)};
    snprintf(p->base.device_name, sizeof p->base.device_name, "simulated: mean %.3f s",
             (double)m->mean_ns / 1e9);
    *out = &p->base;
    return OK;
}
