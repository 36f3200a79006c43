/* The device thread: the only one that drives the backend. It waits for no network.
 *
 * A proof that fails its own check has three suspects, tried in the order of what they cost to clear: the key's points (E_CURVE, E_RANGE),
 * then a second computation (prove_settle), which says E_UNSAT for the witness or E_DEVICE for the machine. After a
 * device error the key's workspace is given up: nothing computed in it is trusted again.
 */
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/daemon/lane_threads.h"

static enum err prove_checked(struct lane *lane, struct lane_job *job,
                              const struct loaded_key *loaded) {
    struct blinding blinding;
    TRY(blinding_random(&blinding, key_curve(job->key)));
    enum err code = groth16_prove(&job->proved, lane->backend, loaded->slot, job->key,
                                  &job->witness, &blinding, &job->watch);
    mem_wipe(&blinding, sizeof blinding);
    if (verdict_of(code).fate == FATE_SETTLE) {
        struct sums first = job->proved.sums;
        mem_wipe(&job->proved.sums, sizeof job->proved.sums);
        code = keyfiles_check(lane->keyfiles, job->key, &job->watch.progress_ns);
        code = code != OK ? code
                          : prove_settle(&first, lane->backend, loaded->slot, job->key,
                                         &job->witness, &job->watch);
        mem_wipe(&first, sizeof first);
    }
    return code;
}

static enum err prove(struct lane *lane, struct lane_job *job) {
    REQUIRE(!atomic_load(&job->watch.cancel), E_CANCELLED, "cancelled before it was proved");
    struct loaded_key loaded;
    atomic_store(&lane->loading, true); /* gives no sign of life, and may take minutes */
    enum err code = keycache_get(&loaded, lane->keycache, &job->key_digest, job->key);
    atomic_store(&job->watch.progress_ns, clock_ns());
    atomic_store(&lane->loading, false);
    TRY(code);
    if (loaded.load_ns) {
        part_report_step(&job->report, "key_load", loaded.load_ns, key_shape(job->key)->file_bytes);
        atomic_store(&lane->info_due, true);
    }
    uint64_t start_ns = clock_ns();
    TRY(prove_checked(lane, job, &loaded));
    job->has_proof = true;
    keycache_learn(lane->keycache, &job->key_digest, clock_ns() - start_ns);
    for (int step = 0; step < STEP_COUNT; step++) {
        part_report_step(&job->report, prove_step_name((enum prove_step)step),
                         job->proved.times.ns[step], 0);
    }
    return OK;
}

static void set_proving(struct lane *lane, struct lane_job *job) {
    LOCK_SCOPE(&lane->lock);
    lane->proving = job;
}

static void note_device_error(struct lane *lane, struct lane_job *job, enum err code) {
    keycache_drop(lane->keycache, &job->key_digest);
    uint64_t strikes = atomic_fetch_add(&lane->strikes, 1) + 1;
    int goes_on = LANE_GOES_ON;
    if (code == E_DEVICE_LOST) {
        atomic_compare_exchange_strong(&lane->end, &goes_on, LANE_DEVICE_LOST);
    } else if (strikes >= lane->config.strikes_max) {
        atomic_compare_exchange_strong(&lane->end, &goes_on, LANE_FENCED);
    }
    if (lane_ended(lane) != LANE_GOES_ON) {
        lane_drain(lane, 0);
    }
}

void *lane_prove_main(void *ctx) {
    struct lane *lane = ctx;
    struct lane_job *job = NULL;
    while (queue_take(lane->to_prove, &job, UINT64_MAX) == OK) {
        atomic_store(&job->watch.progress_ns, clock_ns());
        set_proving(lane, job);
        enum err code = prove(lane, job);
        job->fault = fault_of(code);
        set_proving(lane, NULL);
        if (verdict_of(code).strike) {
            note_device_error(lane, job, code);
        }
        enum err put = queue_put(lane->to_reply, &job, UINT64_MAX);
        ASSERT(put == OK);
    }
    return NULL;
}
