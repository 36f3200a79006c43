/* How jobs end here rather than on a lane: joined, cancelled, expired, dead. The stored result decides: who finds one there already adopts
 * its state, whatever he wanted, so a proof that was stored before the cancel stays a success.
 */
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/coordinator/work.h"
#include "proto/fleet.pb-c.h"

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

static uint64_t now_unix_ms(void) {
    return clock_unix_ns() / 1000000;
}

void ending_forget(struct coordinator *c, struct job_view *job, bool proved) {
    for (uint32_t i = 0; i < job->bodies_count; i++) {
        janitor_add(c->janitor, job->bodies[i].bucket, job->bodies[i].nuid, job->bodies[i].name);
    }
    backlog_remove(&c->backlog, job, proved, clock_ns());
    c->placing_due = true;
}

struct finish {
    enum job_state state;
    const char *reason;
};

static enum record_answer change_end(struct record *r, void *ctx) {
    const struct finish *f = ctx;
    return record_end(r, f->state, f->reason, now_unix_ms());
}

enum err ending_pack_mark(struct bytes_mut *out, uint64_t generation, const char *why) {
    Bellows__V1__CancelMark mark = BELLOWS__V1__CANCEL_MARK__INIT;
    mark.version = WIRE_VERSION;
    mark.generation = generation;
    mark.at_unix_ms = now_unix_ms();
    mark.reason = (char *)(uintptr_t)why;
    return message_pack(out, &mark, CONTROL_BYTES_MAX, "cancel mark");
}

void ending_tell_lanes(struct coordinator *c, struct job_name name, uint64_t generation,
                       const char *why) {
    Bellows__V1__Control control = BELLOWS__V1__CONTROL__INIT;
    struct subject subject = subject_ctl_cancel(&c->space, name);
    AUTO(bytes_free) struct bytes_mut packed = {0};
    control.version = WIRE_VERSION;
    control.generation = generation;
    control.reason = (char *)(uintptr_t)why;
    control.tenant = (char *)(uintptr_t)name.tenant;
    control.job_id = (char *)(uintptr_t)name.job;
    if (message_pack(&packed, &control, CONTROL_BYTES_MAX, "control") == OK) {
        IGNORE(transport_send(c->links.control, subject.text, bytes_of(packed.ptr, packed.len)));
    }
}

static void mark_and_tell(struct coordinator *c, const struct job_place *at, uint64_t generation,
                          const char *why) {
    struct subject bucket = kv_bucket_name(&c->space, "cancel"), key = key_of_job(at->name);
    AUTO(bytes_free) struct bytes_mut packed = {0};
    uint64_t revision;
    if (ending_pack_mark(&packed, generation, why) == OK) {
        IGNORE(kv_put(&revision, c->links.control, bucket.text, key.text,
                      bytes_of(packed.ptr, packed.len)));
    }
    ending_tell_lanes(c, at->name, generation, why);
}

void ending_note(struct coordinator *c, const struct job_report *report, enum job_state state,
                 struct bytes result) {
    struct job_place at = place_of(c, report->name);
    struct job_event event = {.generation = report->generation,
                              .state = state,
                              .reason = report->fault.detail,
                              .code = report->fault.code,
                              .job = report->job};
    if (result.len > 0 && report->job->reply_subject[0]) {
        IGNORE(transport_send(c->links.control, report->job->reply_subject, result));
    }
    job_event_send(&at, &event);
    log_info("job.finished", "job=%s tenant=%s state=%s generation=%llu elapsed_ns=%llu",
             report->name.job, report->name.tenant, job_state_name(state),
             (unsigned long long)report->generation, (unsigned long long)report->elapsed_ns);
    struct job_view *view = backlog_find(&c->backlog, report->name);
    if (view && view->generation == report->generation) {
        ending_forget(c, view, state == JOB_DONE);
    }
}

/* What all endings have in common once the record is loaded. *state: what the job has come to. */
static enum err finish(struct coordinator *c, struct record_slot *slot, const struct job_place *at,
                       const struct job_report *report, part_message *const *parts,
                       size_t parts_count, enum job_state wanted, enum job_state *state) {
    AUTO(bytes_free) struct bytes_mut packed = {0};
    Bellows__V1__Status status;
    bool won = false;
    TRY(job_report_pack(&packed, report, parts, parts_count));
    TRY(result_store(&status, &won, at, report->generation, bytes_of(packed.ptr, packed.len)));
    struct finish f = {won ? wanted : state_of_status(status), report->fault.detail};
    enum record_answer answer;
    TRY(record_apply(&answer, slot, at, report->generation, change_end, &f));
    ending_note(c, report, f.state, won ? bytes_of(packed.ptr, packed.len) : (struct bytes){0});
    *state = f.state;
    return OK;
}

/* The record and its descriptor; *open false when it has ended, with *state. */
static enum err load(struct record_slot *slot, job_message **job, bool *open, enum job_state *state,
                     const struct job_place *at) {
    bool found = false;
    TRY(record_load(slot, &found, at));
    REQUIRE(found, E_RANGE, "tenant %s has no job %s", at->name.tenant, at->name.job);
    *state = slot->record.state;
    *open = job_state_is_open(slot->record.state);
    return *open ? job_unpack(job, bytes_of(slot->record.job.ptr, slot->record.job.len), NULL,
                              UINT64_MAX)
                 : OK;
}

struct job_report ending_report(const struct coordinator *c, struct job_name name,
                                const struct record *r, const job_message *job) {
    const struct job_view *view = backlog_find(&c->backlog, name);
    return (struct job_report){.name = name,
                               .generation = r->generation,
                               .job = job,
                               .elapsed_ns = view ? clock_ns() - view->arrived_ns : 0};
}

enum err ending_stop(struct coordinator *c, struct job_name name, enum err code, const char *why,
                     enum job_state *state) {
    struct own_name own = own_name_of(name); /* the name may be the view's, which goes */
    struct job_place at = place_of(c, name_of_own(&own));
    AUTO(record_slot_done) struct record_slot slot = {0};
    AUTO(message_free) job_message *job = NULL;
    bool open = false;
    TRY(load(&slot, &job, &open, state, &at));
    if (!open) {
        return OK;
    }
    struct job_report report = ending_report(c, at.name, &slot.record, job);
    report.fault.code = code;
    snprintf(report.fault.detail, sizeof report.fault.detail, "%s", why);
    uint64_t generation = slot.record.generation;
    bool in_hand = slot.record.state != JOB_QUEUED;
    TRY(finish(c, &slot, &at, &report, NULL, 0, code == E_DEADLINE ? JOB_EXPIRED : JOB_CANCELLED,
               state));
    if (in_hand) {
        mark_and_tell(c, &at, generation, why);
    }
    atomic_fetch_add(code == E_DEADLINE ? &c->expired : &c->cancelled, 1);
    return OK;
}

struct joined_parts {
    part_message *parts[JOB_PARTITIONS_MAX]; /* owned */
    size_t count;
};

static void joined_parts_done(struct joined_parts *j) {
    for (size_t i = 0; i < j->count; i++) {
        message_free(&j->parts[i]);
    }
}

/* All in one round trip; *missing: the first that is not there, or parts_count. */
static enum err fetch_parts(struct joined_parts *joined, uint32_t *missing, struct coordinator *c,
                            const struct job_place *at, const struct record *r) {
    struct subject stream = stream_name(&c->space, "PARTS");
    enum err code = OK;
    _Static_assert((int)JOB_PARTITIONS_MAX <= (int)BATCH_MAX, "a job's parts fit a batch");
    *missing = r->parts_count;
    for (uint32_t i = 0; i < r->parts_count && code == OK; i++) {
        struct subject subject = subject_part(&c->space, at->name, r->generation, i);
        code = batch_get_last(c->batch, stream.text, subject.text);
    }
    batch_wait(c->batch, 0);
    for (uint32_t i = 0; i < r->parts_count && code == OK; i++) {
        const struct batch_answer *a = batch_answer(c->batch, i);
        code = a->fault.code == OK ? OK : fault_raise(&a->fault);
        if (code == OK && !a->found) {
            *missing = i;
            break;
        }
        code = code == OK ? part_unpack(&joined->parts[i], a->message.data) : code;
        joined->count += code == OK;
    }
    batch_clear(c->batch);
    return code;
}

enum err ending_join(struct coordinator *c, struct job_view *view) {
    struct own_name own = own_name_of(job_name_of(view));
    struct job_place at = place_of(c, name_of_own(&own));
    AUTO(record_slot_done) struct record_slot slot = {0};
    AUTO(message_free) job_message *job = NULL;
    AUTO(joined_parts_done) struct joined_parts joined = {.count = 0};
    enum job_state state;
    bool open = false;
    TRY(load(&slot, &job, &open, &state, &at));
    if (!open || !record_all_parts_done(&slot.record)) {
        return OK;
    }
    struct job_report report = ending_report(c, at.name, &slot.record, job);
    uint32_t missing;
    TRY(fetch_parts(&joined, &missing, c, &at, &slot.record));
    if (missing < slot.record.parts_count) { /* the record says it was stored: it is lost */
        report.fault.code = E_INTERNAL;
        snprintf(report.fault.detail, sizeof report.fault.detail,
                 "the proof of partition %u was stored and is gone", missing);
    }
    bool whole = joined.count == slot.record.parts_count;
    TRY(finish(c, &slot, &at, &report, joined.parts, joined.count, whole ? JOB_DONE : JOB_FAILED,
               &state));
    atomic_fetch_add(&c->joined, 1);
    return OK;
}

static enum err send_dead_letter(struct coordinator *c, const struct job_place *at,
                                 const struct record *r, const char *why) {
    Bellows__V1__DeadLetter letter = BELLOWS__V1__DEAD_LETTER__INIT;
    AUTO(message_free) Bellows__V1__JobRecord *record = NULL;
    AUTO(bytes_free) struct bytes_mut packed_record = {0}, packed = {0};
    TRY(record_pack(&packed_record, r));
    TRY(message_unpack(&record, &bellows__v1__job_record__descriptor,
                       bytes_of(packed_record.ptr, packed_record.len), RECORD_BYTES_MAX,
                       "job record"));
    letter.version = WIRE_VERSION;
    letter.record = record;
    letter.reason = (char *)(uintptr_t)why;
    letter.at_unix_ms = now_unix_ms();
    TRY(message_pack(&packed, &letter, MESSAGE_BYTES_MAX, "dead letter"));
    struct subject subject = subject_dead(&c->space, at->name);
    char id[SUBJECT_BYTES_MAX + 8];
    snprintf(id, sizeof id, "%s.dead", message_id_of_job(at->name, r->generation).text);
    struct publish_options options = {.message_id = id};
    struct publish_ack ack;
    return transport_publish(&ack, c->links.control, subject.text, bytes_of(packed.ptr, packed.len),
                             &options);
}

enum err ending_dead(struct coordinator *c, struct job_view *view) {
    struct own_name own = own_name_of(job_name_of(view));
    struct job_place at = place_of(c, name_of_own(&own));
    AUTO(record_slot_done) struct record_slot slot = {0};
    AUTO(message_free) job_message *job = NULL;
    enum job_state state;
    uint32_t idx = 0;
    bool open = false;
    TRY(load(&slot, &job, &open, &state, &at));
    if (!open || !record_is_used_up(&idx, &slot.record, &c->backlog.limits)) {
        return OK;
    }
    const struct record_part *part = &slot.record.parts[idx];
    struct record_counts counts = record_part_counts(part);
    struct job_report report = ending_report(c, at.name, &slot.record, job);
    const struct record_try *last = &part->tries[part->tries_count - 1];
    report.fault.code = last->code;
    snprintf(report.fault.detail, sizeof report.fault.detail,
             "given up: partition %u failed %u times, its worker died %u times, %u times no lane "
             "had room; "
             "the last time on %s.%u: %s",
             idx, counts.attempts, counts.deaths, counts.refusals, last->lane.node, last->lane.gpu,
             last->detail);
    if (status_of_code(report.fault.code) != BELLOWS__V1__STATUS__STATUS_FAILED) {
        report.fault.code = E_INTERNAL;
    }
    TRY(send_dead_letter(c, &at, &slot.record, report.fault.detail));
    TRY(finish(c, &slot, &at, &report, NULL, 0, JOB_DEAD, &state));
    atomic_fetch_add(&c->dead, 1);
    log_error("job.dead", "job=%s tenant=%s part=%u attempts=%u deaths=%u refusals=%u", own.job,
              own.tenant, idx, counts.attempts, counts.deaths, counts.refusals);
    return OK;
}

static enum err end_if_due(struct coordinator *c, struct job_view *job) {
    if (job->joining) {
        if (job->parts_count > 1) {
            return ending_join(c, job);
        }
        return OK; /* its lane ends it with the same breath */
    }
    if (job->used_up) {
        return ending_dead(c, job);
    }
    return OK; /* those that have expired end together */
}

static void note_not_ended(const struct own_name *own, const struct fault *fault) {
    char quoted[ERR_DETAIL_BYTES + 64];
    log_warn("job.not_ended", "job=%s tenant=%s detail=%s", own->job, own->tenant,
             log_quote(quoted, sizeof quoted, fault->detail));
}

static bool is_still_due(const struct job_view *job, uint64_t now_ns) {
    for (uint32_t i = 0; i < job->parts_count; i++) {
        const struct part_view *part = &job->parts[i];
        if ((part->state == JOB_PLACED && !part->sent) || part->loss != PART_NOT_LOST) {
            return true;
        }
    }
    return (job->joining && job->parts_count > 1) || job->used_up ||
           backlog_is_expired(job, now_ns);
}

static void end_expired(struct coordinator *c, uint64_t now_ns) {
    struct stop stops[STOPS_MAX];
    size_t count = 0;
    for (struct job_view *job = c->backlog.due; job && count < STOPS_MAX; job = job->due_next) {
        if (!job->joining && !job->used_up && backlog_is_expired(job, now_ns)) {
            stops[count++] =
                (struct stop){.name = own_name_of(job_name_of(job)),
                              .code = E_DEADLINE,
                              .why = job->aged_ns <= now_ns
                                         ? "the job was not proved for as long as jobs are kept"
                                         : "the deadline passed before the proof was stored"};
        }
    }
    stop_jobs(c, stops, count);
    for (size_t i = 0; i < count; i++) {
        if (stops[i].fault.code != OK) {
            note_not_ended(&stops[i].name, &stops[i].fault);
        }
    }
}

void ending_sweep(struct coordinator *c) {
    uint64_t now_ns = clock_ns();
    end_expired(c, now_ns);
    for (struct job_view *job = c->backlog.due, *next; job; job = next) {
        struct own_name own = own_name_of(job_name_of(job));
        next = job->due_next;
        enum err code = end_if_due(c, job);
        if (code != OK) {
            struct fault fault = fault_of(code);
            note_not_ended(&own, &fault);
        }
        job = backlog_find(&c->backlog, name_of_own(&own));
        if (job && !is_still_due(job, now_ns)) {
            backlog_clear_due(&c->backlog, job);
        }
    }
}
