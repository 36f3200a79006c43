/* How jobs end here rather than on a lane: joined, cancelled, expired, dead; many together in endings.c. The stored result decides: who
 * finds one there already adopts its state, whatever he wanted, so a proof that was stored before the cancel stays a success.
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

void ending_mark_and_tell(struct coordinator *c, struct job_name name, uint64_t generation,
                          const char *why) {
    struct subject bucket = kv_bucket_name(&c->space, "cancel"), key = key_of_job(name);
    AUTO(bytes_free) struct bytes_mut packed = {0};
    uint64_t revision;
    if (ending_pack_mark(&packed, generation, why) == OK) {
        IGNORE(kv_put(&revision, c->links.control, bucket.text, key.text,
                      bytes_of(packed.ptr, packed.len)));
    }
    ending_tell_lanes(c, name, generation, why);
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

enum err ending_finish(struct coordinator *c, struct record_slot *slot,
                       const struct job_report *report, part_message *const *parts,
                       size_t parts_count, enum job_state wanted, enum job_state *state) {
    struct job_place at = place_of(c, report->name);
    AUTO(bytes_free) struct bytes_mut packed = {0};
    Bellows__V1__Status status;
    bool won = false;
    TRY(job_report_pack(&packed, report, parts, parts_count));
    TRY(result_store(&status, &won, &at, report->generation, bytes_of(packed.ptr, packed.len)));
    bool ours = won || status == status_of_code(report->fault.code); /* perhaps of an earlier try */
    struct finish f = {ours ? wanted : state_of_status(status), report->fault.detail};
    enum record_answer answer;
    TRY(record_apply(&answer, slot, &at, report->generation, change_end, &f));
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
    TRY(ending_finish(c, &slot, &report, NULL, 0, code == E_DEADLINE ? JOB_EXPIRED : JOB_CANCELLED,
                      state));
    if (in_hand) {
        ending_mark_and_tell(c, at.name, generation, why);
    }
    atomic_fetch_add(code == E_DEADLINE ? &c->expired : &c->cancelled, 1);
    return OK;
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

/* Why it ends here and now; false: it does not. A job of one partition that is proved is ended by its lane with the same breath. */
static bool order_of(struct end_order *out, const struct job_view *job, uint64_t now_ns) {
    enum end_kind kind = job->joining ? END_JOINED : job->used_up ? END_DEAD : END_EXPIRED;
    if (job->joining ? job->parts_count == 1 : !job->used_up && !backlog_is_expired(job, now_ns)) {
        return false;
    }
    *out = (struct end_order){.name = own_name_of(job_name_of(job)),
                              .kind = kind,
                              .why = job->aged_ns <= now_ns
                                         ? "the job was not proved for as long as jobs are kept"
                                         : "the deadline passed before the proof was stored"};
    return true;
}

/* From `job` on in the list of what is due, as many as go together; returns who comes next. */
static struct job_view *end_some(bool *answered, struct coordinator *c, struct job_view *job,
                                 uint64_t now_ns) {
    struct end_order orders[ENDINGS_MAX];
    size_t count = 0;
    for (; job && count < ENDINGS_MAX; job = job->due_next) {
        count += order_of(&orders[count], job, now_ns);
    }
    endings_make(c, orders, count);
    for (size_t i = 0; i < count; i++) {
        if (orders[i].fault.code != OK) {
            note_not_ended(&orders[i].name, &orders[i].fault);
        }
        *answered &= err_class(orders[i].fault.code) != CLASS_WORLD;
    }
    return job;
}

void ending_sweep(struct coordinator *c) {
    uint64_t now_ns = clock_ns();
    bool answered = true;
    for (struct job_view *job = c->backlog.due; job && answered;) {
        job = end_some(&answered, c, job, now_ns);
    }
    for (struct job_view *job = c->backlog.due, *next; job; job = next) {
        next = job->due_next;
        if (!is_still_due(job, now_ns)) {
            backlog_clear_due(&c->backlog, job);
        }
    }
}
