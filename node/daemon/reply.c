/* What becomes of a job. A proof is assembled and checked first, while the device is at the next job: one that does not verify is settled (settle.c)
 * and comes back with a verdict. Then, by its error's class (fate.h), the result or the way back is stored, then the record moves, then
 * the delivery is acknowledged. Every step may be done twice, so when the server is away the whole is simply tried again, for as long as
 * a finished proof is worth keeping.
 */
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/drag.h"
#include "node/base/mem.h"
#include "node/daemon/lane_threads.h"
#include "node/daemon/story.h"

static const uint64_t FIRST_PAUSE_NS = UINT64_C(50000000);
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(2000000000);
static const uint64_t ACK_SYNC_NS = UINT64_C(2000000000);
enum { ACK_TRIES = 3 };

static uint64_t now_unix_ms(void) {
    return clock_unix_ns() / 1000000;
}

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

/* --- Record changes --- */

struct ending {
    const struct lane_job *job;
    bool whole_job; /* the result of the job is stored, not only the partition's */
    enum job_state state;
};

static enum record_answer change_end(struct record *r, void *ctx) {
    const struct ending *e = ctx;
    enum record_answer part =
        e->state == JOB_DONE ? record_part_done(r, e->job->index, now_unix_ms()) : RECORD_AGAIN;
    if (!e->whole_job) {
        return part;
    }
    enum record_answer whole = record_end(r, e->state, e->job->fault.detail, now_unix_ms());
    return whole == RECORD_MOVED ? whole : part;
}

static enum record_answer change_give_back(struct record *r, void *ctx) {
    const struct lane_job *job = ctx;
    return record_give_back(r, job->index, job->epoch, job->fault.code, job->fault.detail,
                            now_unix_ms());
}

static enum record_answer change_worker_lost(struct record *r, void *ctx) {
    const struct lane_job *job = ctx;
    return record_take_back(r, job->index, job->epoch, true, job->fault.detail, now_unix_ms());
}

static enum record_answer change_take_back(struct record *r, void *ctx) {
    const struct lane_job *job = ctx;
    return record_take_back(r, job->index, job->epoch, false, "the lane was drained",
                            now_unix_ms());
}

/* --- Results --- */

static enum err move_record(struct lane_job *job, record_change *change, void *ctx) {
    enum record_answer answer;
    return shared_apply(&answer, job->record, change, ctx);
}

/* From intake to now, by the clock that the coordinator wrote into the record: two machines' wall time, so milliseconds at best. */
static uint64_t elapsed_ns(const struct lane_job *job) {
    uint64_t now = now_unix_ms(), queued = job->queued_unix_ms;
    uint64_t ns = queued && now > queued ? (now - queued) * 1000000 : 0;
    return ns > job->report.total_ns ? ns : job->report.total_ns; /* it took at least that */
}

/* One partition, or a failed one: the job's only result. */
static enum err store_result(struct lane *lane, struct lane_job *job) {
    ASSERT(job->has_proof == (job->fault.code == OK) && job->checked == job->has_proof);
    struct job_place at = job_place_of(job, lane->links.control, &lane->space);
    struct job_report whole = {.name = job->name,
                               .generation = job->generation,
                               .job = job->job,
                               .fault = job->fault,
                               .elapsed_ns = elapsed_ns(job)};
    AUTO(bytes_free) struct bytes_mut packed = {0};
    Bellows__V1__Status status;
    bool won = false;
    TRY(job_report_pack_one(&packed, &whole, &job->report));
    TRY(result_store(&status, &won, &at, job->generation, bytes_of(packed.ptr, packed.len)));
    if (won && job->job->reply_subject[0]) {
        IGNORE(transport_send(lane->links.control, job->job->reply_subject,
                              bytes_of(packed.ptr, packed.len)));
    }
    struct ending ending = {job, true, state_of_status(status)};
    return move_record(job, change_end, &ending);
}

static enum err store_part(struct lane *lane, struct lane_job *job) {
    ASSERT(job->checked);
    struct job_place at = job_place_of(job, lane->links.control, &lane->space);
    AUTO(bytes_free) struct bytes_mut packed = {0};
    bool won = false;
    TRY(part_report_pack(&packed, &job->report));
    TRY(part_store(&won, &at, job->generation, job->index, bytes_of(packed.ptr, packed.len)));
    struct ending ending = {job, false, JOB_DONE};
    return move_record(job, change_end, &ending);
}

static enum err settle_once(struct lane *lane, struct lane_job *job, struct verdict verdict) {
    switch (job->stale ? FATE_STOP : verdict.fate) {
    case FATE_DONE:
        TRY(job->job->n_partitions == 1 ? store_result(lane, job) : store_part(lane, job));
        break;
    case FATE_FAIL:
        TRY(store_result(lane, job));
        break;
    case FATE_STOP:
        if (!job->stale && atomic_load(&job->handed_back)) {
            TRY(move_record(job, change_take_back, job));
        } else if (
            !job->stale) { /* who cancelled it has stored its result; if not, this one counts */
            TRY(store_result(lane, job));
        }
        break;
    case FATE_GIVE_BACK:
    case FATE_TRY_AGAIN:
    case FATE_SETTLE:
        TRY(move_record(job, verdict.death ? change_worker_lost : change_give_back, job));
        break;
    }
    return OK;
}

/* What is not acknowledged comes back, finds its record moved on, and is dropped: so this need not succeed. */
static void acknowledge(struct lane *lane, const struct lane_job *job) {
    for (int n = 0; n < ACK_TRIES; n++) {
        if (transport_ack_sync(lane->links.control, job->message.reply, ACK_SYNC_NS) == OK) {
            return;
        }
        lane_pause(lane, FIRST_PAUSE_NS);
    }
}

/* --- The story --- */

static void count(struct lane *lane, const struct lane_job *job, struct verdict verdict) {
    if (job->stale) {
        atomic_fetch_add(&lane->stale, 1);
    } else if (verdict.fate == FATE_DONE) {
        atomic_fetch_add(&lane->done, 1);
    } else if (verdict.fate == FATE_FAIL) {
        atomic_fetch_add(&lane->failed, 1);
    } else if (verdict.fate != FATE_STOP || atomic_load(&job->handed_back)) {
        atomic_fetch_add(&lane->given_back, 1);
    }
}

static const char *outcome_name(const struct lane_job *job, struct verdict verdict) {
    if (job->stale) {
        return "stale";
    }
    switch (verdict.fate) {
    case FATE_DONE:
        return "done";
    case FATE_FAIL:
        return "failed";
    case FATE_STOP:
        return atomic_load(&job->handed_back) ? "handed_back" : "cancelled";
    default:
        return "given_back";
    }
}

/* " fetch_ms=1.204 fetch_bytes=81920 decode_ms=…": each step that took any time, tries added up, decode summed over its threads. */
static void write_steps(char *out, size_t out_bytes, const struct part_report *report) {
    size_t at = 0;
    out[0] = 0;
    for (int step = 0; step < SPAN_STEPS_COUNT; step++) {
        struct span s = spans_sum(&report->spans, (enum span_step)step);
        const char *name = span_step_name((enum span_step)step);
        char bytes[64] = "";
        if (s.ns == 0) {
            continue;
        }
        if (s.bytes) {
            snprintf(bytes, sizeof bytes, " %s_bytes=%llu", name, (unsigned long long)s.bytes);
        }
        int n =
            snprintf(out + at, out_bytes - at, " %s_ms=%.3f%s", name, (double)s.ns / 1e6, bytes);
        if (n < 0 || (size_t)n >= out_bytes - at) {
            out[at] = 0;
            return;
        }
        at += (size_t)n;
    }
}

static void log_story(const struct lane *lane, const struct lane_job *job, struct verdict verdict,
                      enum err stored) {
    char steps[1600], quoted[ERR_DETAIL_BYTES + 64] = "", device[200], digest[SHA256_HEX_BYTES];
    write_steps(steps, sizeof steps, &job->report);
    sha256_hex(digest, &job->key_digest);
    enum err code = stored != OK ? stored : job->fault.code;
    log_line(verdict.alarm || stored != OK ? LOG_ERROR : LOG_INFO, "job.ended",
             "job=%s tenant=%s part=%u outcome=%s key=%.16s generation=%llu epoch=%llu attempt=%u "
             "device=%s total_ms=%.3f device_ms=%.3f wire_bytes=%llu body_bytes=%zu%s%s%s%s%s",
             job->name.job, job->name.tenant, job->index,
             stored != OK ? "not_stored" : outcome_name(job, verdict), digest,
             (unsigned long long)job->generation, (unsigned long long)job->epoch,
             job->report.attempt, log_quote(device, sizeof device, lane->backend->device_name),
             (double)(clock_ns() - job->taken_ns) / 1e6, (double)job->device_ns / 1e6,
             (unsigned long long)job->job->partitions[job->index]->body->wire_bytes,
             job->block.bytes, steps, code != OK ? " error=" : "", code != OK ? err_name(code) : "",
             code != OK ? " detail=" : "",
             code != OK
                 ? log_quote(quoted, sizeof quoted, stored != OK ? err_detail() : job->fault.detail)
                 : "");
}

/* --- The proof --- */

/* As a sick device would have it: one sum is another, and the proof is made of it. */
static void falsify(struct prove_result *r) {
    r->sums.h = r->sums.l;
    r->proof.c = r->proof.a;
}

static enum err make_proof(const struct lane *lane, struct lane_job *job) {
    struct blinding blinding;
    TRY(blinding_random(&blinding, key_curve(job->key)));
    uint64_t start_ns = clock_ns();
    enum err code = groth16_assemble(&job->proved, job->key, &job->witness, &blinding);
    mem_wipe(&blinding, sizeof blinding);
    spans_end(&job->report.spans, SPAN_ASSEMBLE, start_ns, 0, code);
    TRY(code);
    if (drag_lies(lane->config.gpu)) {
        falsify(&job->proved);
    }
    job->has_proof = true;
    return OK;
}

/* E_SELFCHECK: job->first holds the sums, for a second opinion. */
static enum err check_proof(struct lane_job *job) {
    uint64_t start_ns = clock_ns();
    enum err code = groth16_check(&job->proved, job->key);
    spans_end(&job->report.spans, SPAN_VERIFY, start_ns, 0, code);
    job->checked = code == OK;
    if (code != OK) {
        struct fault fault = fault_of(code);
        job->first = job->proved.sums;
        prove_result_done(&job->proved);
        job->has_sums = job->has_proof = false;
        return fault_raise(&fault);
    }
    return OK;
}

static enum err finish_proof(const struct lane *lane, struct lane_job *job) {
    TRY(make_proof(lane, job));
    return check_proof(job);
}

/* True: the job is somebody else's now, and comes back with a verdict. */
static bool sent_to_settle(struct lane *lane, struct lane_job *job) {
    if (!job->has_sums || job->checked) {
        return false;
    }
    enum err code = finish_proof(lane, job);
    if (verdict_of(code).fate != FATE_SETTLE) {
        job->fault = fault_of(code);
        return false;
    }
    metric_add(lane->config.metrics, METRIC_CHECK_FAILURES, 0, 1);
    log_warn("proof.caught", "job=%s tenant=%s part=%u", job->name.job, job->name.tenant,
             job->index);
    if (queue_put(lane->to_settle, &job, UINT64_MAX) == OK) {
        return true;
    }
    job->fault = fault_of(err_set(E_CANCELLED, "the lane is ending"));
    atomic_store(&job->handed_back, true);
    return false;
}

/* --- The thread --- */

static void reply_to(struct lane *lane, struct lane_job *job) {
    struct verdict verdict = verdict_of(job->fault.code);
    uint64_t start_ns = clock_ns(), pause_ns = FIRST_PAUSE_NS;
    job->report.proved = job->has_proof ? &job->proved : NULL;
    job->report.fault = job->fault;
    job->report.total_ns = start_ns - job->taken_ns;
    if (atomic_load(&lane->draining) && verdict.fate == FATE_STOP && !job->stale) {
        atomic_store(
            &job->handed_back,
            true); /* unless it was cancelled: then the record says so, and nothing moves */
    }
    enum err stored = OK;
    for (;;) {
        stored = settle_once(lane, job, verdict);
        bool again = err_class(stored) == CLASS_WORLD || err_class(stored) == CLASS_BUSY;
        if (!again || clock_ns() - start_ns > lane->config.result_hold_ns ||
            (atomic_load(&lane->stopping) && verdict.fate != FATE_DONE)) {
            break;
        }
        lane_pause(lane, pause_ns);
        pause_ns = pause_ns * 2 < LONGEST_PAUSE_NS ? pause_ns * 2 : LONGEST_PAUSE_NS;
    }
    if (stored == OK) {
        acknowledge(lane, job);
    }
    spans_end(&job->report.spans, SPAN_STORE, start_ns, 0, stored); /* for the story alone */
    count(lane, job, verdict);
    log_story(lane, job, verdict, stored);
    story_ends(lane, job, verdict, stored != OK ? "not_stored" : outcome_name(job, verdict));
}

void *lane_reply_main(void *ctx) {
    struct lane *lane = ctx;
    struct lane_job *job = NULL;
    while (queue_take(lane->to_reply, &job, UINT64_MAX) == OK) {
        if (!sent_to_settle(lane, job)) {
            reply_to(lane, job);
            lane_release(lane, &job);
        }
    }
    return NULL;
}
