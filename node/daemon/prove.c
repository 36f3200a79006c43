/* The device thread: the only one that drives the backend. It waits for no network, and leaves every check to others.
 *
 * After an error of the device, and after a strike that somebody else found, everything that lies where it computes is given up: nothing
 * computed in it is trusted again.
 */
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/daemon/lane_threads.h"

/* The ledger's account of a step; the last two are not the device's work. */
static enum ledger_account account_of(enum prove_step step) {
    return step < STEP_ASSEMBLE ? (enum ledger_account)((int)LEDGER_COMPUTE_WITNESS + (int)step)
                                : LEDGER_WAIT_FINISH;
}
_Static_assert((int)LEDGER_COMPUTE_MSM_H - (int)LEDGER_COMPUTE_WITNESS ==
                       (int)STEP_MSM_H - (int)STEP_WITNESS &&
                   (int)STEP_WITNESS == 0,
               "accounts stand in the order of the steps");
_Static_assert((int)SPAN_VERIFY - (int)SPAN_WITNESS == (int)STEP_VERIFY - (int)STEP_WITNESS,
               "spans stand in the order of the steps");

/* The stretch of the proof as the device measured it: into the ledger, and into the job's story, where the steps follow each other. */
static void book(struct lane *lane, struct lane_job *job, uint64_t start_ns,
                 const struct step_times *times) {
    uint64_t measured[LEDGER_ACCOUNTS_COUNT] = {0};
    for (int step = 0; step < STEP_VERIFY; step++) {
        measured[account_of((enum prove_step)step)] += times->ns[step];
        spans_add(&job->report.spans, (enum span_step)((int)SPAN_WITNESS + step), start_ns,
                  times->ns[step], 0, OK);
        start_ns += times->ns[step];
    }
    uint64_t upload_ns = times->upload_ns < measured[LEDGER_COMPUTE_WITNESS]
                             ? times->upload_ns
                             : measured[LEDGER_COMPUTE_WITNESS];
    measured[LEDGER_COMPUTE_WITNESS] -= upload_ns;
    measured[LEDGER_UPLOAD] = upload_ns;
    uint64_t stretch_ns = ledger_settle(lane->ledger, measured);
    job->device_ns =
        stretch_ns - (measured[LEDGER_WAIT_FINISH] < stretch_ns ? measured[LEDGER_WAIT_FINISH] : 0);
}

static enum err prove_blinded(struct lane *lane, struct lane_job *job,
                              const struct loaded_key *loaded) {
    struct blinding blinding;
    TRY(blinding_random(&blinding, key_curve(job->key)));
    uint64_t start_ns = clock_ns();
    ledger_begin(lane->ledger);
    enum err code = groth16_prove_unchecked(&job->proved, lane->backend, loaded->slot, job->key,
                                            &job->witness, &blinding, &job->watch);
    mem_wipe(&blinding, sizeof blinding);
    if (code == OK) {
        book(lane, job, start_ns, &job->proved.times);
    } else { /* how far it came is not known */
        uint64_t unmeasured[LEDGER_ACCOUNTS_COUNT] = {0};
        job->device_ns = ledger_settle(lane->ledger, unmeasured);
        int step = atomic_load(&job->watch.step);
        spans_end(&job->report.spans,
                  (enum span_step)((int)SPAN_WITNESS + (step < STEP_COUNT ? step : 0)), start_ns, 0,
                  code);
    }
    return code;
}

static enum err prove(struct lane *lane, struct lane_job *job) {
    REQUIRE(!atomic_load(&job->watch.cancel), E_CANCELLED, "cancelled before it was proved");
    REQUIRE(lane_ended(lane) == LANE_GOES_ON, E_CANCELLED, "the lane takes no work any more");
    struct loaded_key loaded;
    if (atomic_exchange(&lane->distrust, false)) {
        keycache_drop_all(lane->keycache);
    }
    ledger_device(lane->ledger, LEDGER_WAIT_KEY);
    lane_seat_loads(&lane->proving, key_shape(job->key)->file_bytes);
    enum err code = keycache_get(&loaded, lane->keycache, &job->key_digest, job->key);
    lane_seat_loaded(&lane->proving, job);
    TRY(code);
    if (loaded.load_ns) {
        spans_add(&job->report.spans, SPAN_KEY_LOAD, clock_ns() - loaded.load_ns, loaded.load_ns,
                  key_shape(job->key)->file_bytes, OK);
        atomic_store(&lane->info_due, true);
    }
    uint64_t start_ns = clock_ns();
    TRY(prove_blinded(lane, job, &loaded));
    job->has_proof = true;
    keycache_learn(lane->keycache, &job->key_digest, clock_ns() - start_ns);
    return OK;
}

void *lane_prove_main(void *ctx) {
    struct lane *lane = ctx;
    struct lane_job *job = NULL;
    while (queue_take(lane->to_prove, &job, UINT64_MAX) == OK) {
        job_mark(job, JOB_STAGE_PROVING);
        spans_end(&job->report.spans, SPAN_QUEUE, job->ready_ns, 0, OK);
        lane_seat_take(lane, &lane->proving, job);
        enum err code = prove(lane, job);
        job->fault = fault_of(code);
        lane_seat_take(lane, &lane->proving, NULL);
        if (verdict_of(code).strike) {
            lane_strike(lane, job);
        }
        job_mark(job, JOB_STAGE_REPLYING);
        enum err put = queue_put(lane->to_reply, &job, UINT64_MAX);
        ASSERT(put == OK);
        ledger_device(lane->ledger, LEDGER_IDLE);
    }
    return NULL;
}
