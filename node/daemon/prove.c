/* The device thread: the only one that computes with the backend. It waits for no network, and leaves everything behind the sums to others:
 * the device is free for the next job when its last step has ended.
 *
 * After an error of the device, and after a strike that somebody else found, everything that lies where it computes is given up: nothing
 * computed in it is trusted again. Jobs that were brought there already go back to be staged anew.
 */
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/daemon/lane_threads.h"
#include "node/daemon/story.h"

_Static_assert((int)LEDGER_COMPUTE_MSM_H - (int)LEDGER_COMPUTE_WITNESS ==
                       (int)STEP_MSM_H - (int)STEP_WITNESS &&
                   (int)STEP_WITNESS == 0,
               "accounts stand in the order of the steps");
_Static_assert((int)SPAN_VERIFY - (int)SPAN_WITNESS == (int)STEP_VERIFY - (int)STEP_WITNESS,
               "spans stand in the order of the steps");

/* The stretch of the proof as the device measured it: into the ledger, and into the job's story. There the steps follow each other in the
 * order in which they are computed: each has the time that it took longer than those before it, so its end is the true one. */
static void book(struct lane *lane, struct lane_job *job, uint64_t start_ns,
                 const struct step_times *times) {
    uint64_t measured[LEDGER_ACCOUNTS_COUNT] = {0};
    for (int i = 0; i < STEP_ASSEMBLE; i++) {
        int step = i < (int)STEP_MSM_A ? i : (int)msm_step(msm_order[i - (int)STEP_MSM_A]);
        measured[(int)LEDGER_COMPUTE_WITNESS + step] = times->ns[step];
        spans_add(&job->report.spans, (enum span_step)((int)SPAN_WITNESS + step), start_ns,
                  times->ns[step], 0, OK);
        start_ns += times->ns[step];
    }
    uint64_t upload_ns = times->upload_ns < measured[LEDGER_COMPUTE_WITNESS]
                             ? times->upload_ns
                             : measured[LEDGER_COMPUTE_WITNESS];
    measured[LEDGER_COMPUTE_WITNESS] -= upload_ns;
    measured[LEDGER_UPLOAD] = upload_ns;
    measured[LEDGER_WAIT_FINISH] = times->finish_ns;
    uint64_t stretch_ns = ledger_settle(lane->ledger, measured);
    job->device_ns =
        stretch_ns - (measured[LEDGER_WAIT_FINISH] < stretch_ns ? measured[LEDGER_WAIT_FINISH] : 0);
}

static enum err compute(struct lane *lane, struct lane_job *job) {
    uint64_t start_ns = clock_ns();
    ledger_begin(lane->ledger);
    enum err code = groth16_compute(&job->proved, lane->backend, job->loaded.slot, job->key,
                                    &job->witness, &job->watch);
    if (code == OK) {
        job->has_sums = true;
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

/* On the device thread, where nobody else may load. */
static enum err load_here(struct lane *lane, struct lane_job *job) {
    ledger_device(lane->ledger, LEDGER_WAIT_KEY);
    lane_seat_loads(&lane->proving, key_shape(job->key)->file_bytes);
    enum err code = lane_load_key(lane, job);
    lane_seat_loaded(&lane->proving, job);
    return code;
}

static enum err prove(struct lane *lane, struct lane_job *job) {
    REQUIRE(!atomic_load(&job->watch.cancel), E_CANCELLED, "cancelled before it was proved");
    REQUIRE(lane_ended(lane) == LANE_GOES_ON, E_CANCELLED, "the lane takes no work any more");
    if (!job->loaded.resident) {
        TRY(load_here(lane, job));
    }
    uint64_t start_ns = clock_ns();
    TRY(compute(lane, job));
    keycache_learn(lane->keycache, &job->key_digest, clock_ns() - start_ns);
    return OK;
}

/* Brought to where nothing is trusted any more: true, it is on its way to be staged again. */
static bool sent_back(struct lane *lane, struct lane_job *job) {
    lane_drop_keys(lane);
    if (!job->loaded.resident || !keycache_is_stale(lane->keycache, &job->loaded)) {
        return false;
    }
    lane_unload(lane, job);
    job_mark(job, JOB_STAGE_QUEUED);
    return queue_put(lane->to_stage, &job, UINT64_MAX) == OK;
}

static void prove_and_hand_on(struct lane *lane, struct lane_job *job) {
    job_mark(job, JOB_STAGE_PROVING);
    story_begins(lane, job);
    spans_end(&job->report.spans, SPAN_QUEUE, job->ready_ns, 0, OK);
    lane_seat_take(lane, &lane->proving, job);
    lane_give_turn_ahead(lane, job);
    enum err code = prove(lane, job);
    job->fault = fault_of(code);
    lane_seat_take(lane, &lane->proving, NULL);
    lane_unload(lane, job);
    if (verdict_of(code).strike) {
        lane_strike(lane, job);
    }
    job_mark(job, JOB_STAGE_REPLYING);
    enum err put = queue_put(lane->to_reply, &job, UINT64_MAX);
    ASSERT(put == OK);
    ledger_device(lane->ledger, LEDGER_IDLE);
}

void *lane_prove_main(void *ctx) {
    struct lane *lane = ctx;
    struct lane_job *job = NULL;
    bool loads = !lane_brings(lane);
    if (loads) {
        lane_keep_keys(lane);
    }
    while (queue_take(lane->to_prove, &job, UINT64_MAX) == OK) {
        if (job && !sent_back(lane, job)) {
            prove_and_hand_on(lane, job);
        }
        if (loads) {
            lane_keep_keys(lane);
        }
    }
    return NULL;
}
