/* The settle thread: proofs that failed their own check, away from the device, which goes on with the next job. Three suspects, in the
 * order of what they cost to clear: the key's points (E_CURVE, E_RANGE), then witness and machine by a second opinion.
 *
 * While there is none of these, and the lane is idle, it checks all points of keys that nobody has checked yet, on this one thread, and
 * stops between two rounds of some milliseconds as soon as the lane has work: so a bad key is known before a job pays for it.
 */
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/daemon/lane_threads.h"

static const uint64_t IDLE_NS = UINT64_C(500000000);

/* --- Settling --- */

static enum err blame(struct lane *lane, struct lane_job *job, enum opinion_finding finding) {
    const char *witness = witness_title(&job->witness), *device = lane->backend->device_name;
    switch (finding) {
    case OPINION_UNSAT:
        FAIL(E_UNSAT,
             "the %s does not satisfy the circuit of this key (two machines computed the same, and "
             "the proof does not verify); `bellows wtns check CIRCUIT.r1cs WITNESS` names the "
             "constraint",
             witness);
    case OPINION_DEVICE:
        FAIL(E_DEVICE,
             "%s computed this job wrongly: two computations elsewhere agree on other sums",
             device);
    case OPINION_OTHER:
        job->fault = fault_of(err_set(E_DEVICE,
                                      "the processor computed this job wrongly when it "
                                      "checked the work of %s",
                                      device));
        lane_strike(lane, job); /* who checks wrongly is no use as a check */
        FAIL(
            E_UNSAT,
            "the %s does not satisfy the circuit of this key (two of three computations agree, and "
            "the proof does not verify); `bellows wtns check CIRCUIT.r1cs WITNESS` names the "
            "constraint",
            witness);
    case OPINION_NEITHER:
        break;
    }
    FAIL(E_DEVICE, "three computations of this job on %s and on the processor gave three results",
         device);
}

static enum err settle(struct lane *lane, struct lane_job *job) {
    enum opinion_finding finding;
    REQUIRE(!atomic_load(&job->watch.cancel), E_CANCELLED, "cancelled before it was settled");
    REQUIRE(lane_ended(lane) == LANE_GOES_ON, E_CANCELLED, "the lane takes no work any more");
    lane_seat_loads(&lane->settling, 0);
    enum err code = keyfiles_check(lane->keyfiles, job->key, &job->watch.progress_ns);
    lane_seat_loads(&lane->settling, key_shape(job->key)->file_bytes);
    TRY(code);
    TRY(job_unpack_brought(job, lane->decoders, &lane->links.bulk));
    TRY(opinion_ask(&finding, lane->opinion, &job->first, job->key, &job->witness, &job->watch));
    return blame(lane, job, finding);
}

static void settle_job(struct lane *lane, struct lane_job *job) {
    uint64_t start_ns = clock_ns();
    job_mark(job, JOB_STAGE_SETTLING);
    lane_seat_take(lane, &lane->settling, job);
    enum err code = settle(lane, job);
    ASSERT(code != OK);
    job->fault = fault_of(code);
    lane_seat_take(lane, &lane->settling, NULL);
    mem_wipe(&job->first, sizeof job->first);
    spans_end(&job->report.spans, SPAN_SETTLE, start_ns, 0, code);
    job_mark(job, JOB_STAGE_REPLYING);
    if (verdict_of(code).strike) {
        lane_strike(lane, job);
    }
    enum err put = queue_put(lane->to_reply, &job, UINT64_MAX);
    ASSERT(put == OK);
}

/* --- Keys, in idle time --- */

/* The check of a key waits for the device to be idle, and ends when there is something to settle. */
static bool may_check(void *ctx, double done) {
    struct lane *lane = ctx;
    (void)done;
    for (;;) {
        if (atomic_load(&lane->leaving) || queue_length(lane->to_settle) > 0) {
            return false;
        }
        lock_take(&lane->lock);
        bool idle = lane->held_count == 0;
        lock_give(&lane->lock);
        if (idle) {
            return true;
        }
        lane_pause(lane, IDLE_NS);
    }
}

static void check_a_key(struct lane *lane) {
    struct key_report report;
    struct sha256 digest;
    char hex[SHA256_HEX_BYTES], quoted[ERR_DETAIL_BYTES + 64];
    AUTO(key_unref) struct key *key = NULL;
    if (!may_check(lane, 0) || !keyfiles_next_unchecked(&key, &digest, lane->keyfiles)) {
        return;
    }
    enum err code = keyfiles_check_idle(&report, lane->keyfiles, key, may_check, lane);
    sha256_hex(hex, &digest);
    if (code == OK && !report.remembered) {
        log_info("key.checked", "key=%.16s points_count=%llu elapsed_ns=%llu", hex,
                 (unsigned long long)report.points_checked, (unsigned long long)report.elapsed_ns);
    } else if (code != OK && code != E_CANCELLED) {
        log_error("key.bad", "key=%.16s error=%s detail=%s", hex, err_name(code),
                  log_quote(quoted, sizeof quoted, err_detail()));
    }
}

void *lane_settle_main(void *ctx) {
    struct lane *lane = ctx;
    struct lane_job *job = NULL;
    for (;;) {
        enum err code = queue_take(lane->to_settle, &job, IDLE_NS);
        if (code == OK) {
            settle_job(lane, job);
        } else if (code == E_TIMEOUT) {
            check_a_key(lane);
        } else {
            return NULL;
        }
    }
}
