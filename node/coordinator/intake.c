/* A job comes in. In this order, so that a crash between any two steps is repaired by the message's second delivery:
 *
 *   message ──read──▶ record created (or found) ──▶ backlog ──▶ message acknowledged
 *
 * | record found                  | the same work | other work |
 * |-------------------------------|---------------|------------|
 * | none                          | created       |            |
 * | same generation               | a repeat: the first result, if there is one, is sent again | refused |
 * | ended, message one generation on | reopened   | reopened   |
 * | any other generation          | refused       | refused    |
 */
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/coordinator/work.h"

enum { TAKE_TRIES_MAX = 100 }; /* of a message that fails or kills the coordinator each time */
static const uint64_t NAK_DELAY_NS = UINT64_C(1000000000); /* times the deliveries so far */
static const uint64_t NAK_DELAY_LONGEST_NS = UINT64_C(30000000000);

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

/* A refusal cannot be the job's result, as the id belongs to other work: it goes to the asker's reply subject and out as an event. */
static void refuse(struct coordinator *c, const job_message *job, enum err code) {
    struct job_place at = place_of(c, (struct job_name){job->tenant, job->job_id});
    struct job_report report = {
        .name = at.name, .generation = job->generation, .job = job, .fault = fault_of(code)};
    struct job_event event = {.generation = job->generation,
                              .state = JOB_FAILED,
                              .stage = "refused",
                              .reason = report.fault.detail,
                              .code = code,
                              .job = job};
    AUTO(bytes_free) struct bytes_mut packed = {0};
    char quoted[ERR_DETAIL_BYTES + 64];
    log_warn("job.refused", "job=%s tenant=%s error=%s detail=%s", job->job_id, job->tenant,
             err_name(code), log_quote(quoted, sizeof quoted, report.fault.detail));
    job_event_send(&at, &event);
    if (job->reply_subject[0] && job_report_pack(&packed, &report, NULL, 0) == OK) {
        IGNORE(
            transport_send(c->links.control, job->reply_subject, bytes_of(packed.ptr, packed.len)));
    }
    atomic_fetch_add(&c->refused, 1);
}

/* A message that is no sound job still gets its result, as far as its subject tells whose it is. */
static enum err refuse_unreadable(struct coordinator *c, const struct subject_parts *parts,
                                  enum err code) {
    job_message nothing = BELLOWS__V1__JOB__INIT;
    uint8_t no_key[SHA256_BYTES] = {0};
    struct job_place at = place_of(c, (struct job_name){parts->tenant, parts->job});
    struct job_report report = {
        .name = at.name, .generation = 1, .job = &nothing, .fault = fault_of(code)};
    AUTO(bytes_free) struct bytes_mut packed = {0};
    AUTO(record_slot_done) struct record_slot slot = {0};
    bool found = false, won = false;
    Bellows__V1__Status status;
    char quoted[ERR_DETAIL_BYTES + 64];
    nothing.key_digest = (ProtobufCBinaryData){sizeof no_key, no_key};
    log_warn("job.unreadable", "job=%s tenant=%s error=%s detail=%s", parts->job, parts->tenant,
             err_name(code), log_quote(quoted, sizeof quoted, report.fault.detail));
    atomic_fetch_add(&c->refused, 1);
    TRY(record_load(&slot, &found, &at));
    if (found) { /* somebody's sound job has this id: its result is not for us to write */
        return OK;
    }
    TRY(job_report_pack(&packed, &report, NULL, 0));
    return result_store(&status, &won, &at, 1, bytes_of(packed.ptr, packed.len));
}

static void send_result_again(struct coordinator *c, const job_message *job,
                              const struct job_place *at) {
    AUTO(message_free) result_message *result = NULL;
    AUTO(bytes_free) struct bytes_mut packed = {0};
    bool found = false;
    if (job->reply_subject[0] && result_fetch(&result, &found, at, job->generation) == OK &&
        found && result_pack(&packed, result) == OK) {
        IGNORE(
            transport_send(c->links.control, job->reply_subject, bytes_of(packed.ptr, packed.len)));
    }
}

static enum err check_repeat(struct coordinator *c, const struct record *r, const job_message *job,
                             const struct sha256 *fingerprint, const struct job_place *at) {
    REQUIRE(!memcmp(&r->fingerprint, fingerprint, sizeof *fingerprint), E_RANGE,
            "job id %s is taken by other work of tenant %s; use another id", job->job_id,
            job->tenant);
    log_info("job.repeated", "job=%s tenant=%s state=%s", job->job_id, job->tenant,
             job_state_name(r->state));
    if (!job_state_is_open(r->state)) {
        send_result_again(c, job, at);
    }
    return OK;
}

/* Cancelled while its message was on the way. */
static enum err check_cancelled(bool *cancelled, struct coordinator *c, const job_message *job) {
    struct subject bucket = kv_bucket_name(&c->space, "cancel");
    struct subject key = key_of_job((struct job_name){job->tenant, job->job_id});
    AUTO(kv_entry_done) struct kv_entry entry = {0};
    AUTO(message_free) Bellows__V1__CancelMark *mark = NULL;
    bool found = false;
    TRY(kv_get(&entry, &found, c->links.control, bucket.text, key.text));
    if (found) {
        TRY(message_unpack(&mark, &bellows__v1__cancel_mark__descriptor, entry.value,
                           MESSAGE_BYTES_MAX, "cancel mark"));
        *cancelled = mark->generation >= job->generation;
    }
    return OK;
}

static enum err note_queued(struct coordinator *c, const struct record_slot *slot,
                            const struct job_place *at, const job_message *job) {
    struct job_event event = {
        .generation = slot->record.generation, .state = JOB_QUEUED, .job = job};
    TRY(backlog_put(NULL, &c->backlog, at->name, &slot->record, slot->revision, clock_ns()));
    atomic_fetch_add(&c->taken_in, 1);
    c->placing_due = true;
    job_event_send(at, &event);
    log_info("job.queued", "job=%s tenant=%s generation=%llu parts=%zu priority=%u", job->job_id,
             job->tenant, (unsigned long long)job->generation, job->n_partitions, job->priority);
    return OK;
}

static enum err create(bool *created, struct record_slot *slot, const struct job_place *at,
                       const job_message *job, struct bytes data,
                       const struct sha256 *fingerprint) {
    AUTO(record_done) struct record r = {0};
    TRY(record_init(&r, data, fingerprint, job->generation, (uint32_t)job->n_partitions,
                    clock_unix_ns() / 1000000));
    return record_create(slot, created, at, &r);
}

static enum err take(struct coordinator *c, const job_message *job, struct bytes data) {
    struct job_place at = place_of(c, (struct job_name){job->tenant, job->job_id});
    AUTO(record_slot_done) struct record_slot slot = {0};
    struct sha256 fingerprint;
    bool found = false, stored = false, cancelled = false;
    TRY(job_fingerprint(fingerprint.b, job));
    TRY(record_load(&slot, &found, &at));
    if (!found) {
        TRY(create(&stored, &slot, &at, job, data, &fingerprint));
    } else if (slot.record.generation == job->generation) {
        return check_repeat(c, &slot.record, job, &fingerprint, &at);
    } else {
        TRY(record_reopen(&slot.record, data, &fingerprint, job->generation,
                          (uint32_t)job->n_partitions, clock_unix_ns() / 1000000));
        TRY(record_replace(&stored, &slot, &at));
    }
    REQUIRE(stored, E_NET, "job %s: the record changed while the job was taken in", job->job_id);
    TRY(note_queued(c, &slot, &at, job));
    TRY(check_cancelled(&cancelled, c, job));
    const struct job_view *view = backlog_find(&c->backlog, at.name);
    enum job_state state;
    if (!cancelled && view && backlog_is_expired(view, clock_ns())) {
        return ending_stop(c, at.name, E_DEADLINE, "the deadline had passed when the job came in",
                           &state);
    }
    return cancelled
               ? ending_stop(c, at.name, E_CANCELLED, "cancelled before it was taken in", &state)
               : OK;
}

void intake_take(struct coordinator *c, struct message *m) {
    struct subject_parts parts;
    AUTO(message_free) job_message *job = NULL;
    enum err code = subject_parse(&parts, &c->space, m->subject);
    if (code != OK || parts.kind != SUBJECT_JOB) {
        log_warn("job.unaddressed", "subject_bytes=%zu", strlen(m->subject));
        IGNORE(transport_ack(c->links.control, m->reply, ACK_TERM, 0));
        return;
    }
    code = job_unpack(&job, m->data, &parts, UINT64_MAX);
    if (code == OK && m->deliveries > TAKE_TRIES_MAX) {
        code = err_set(E_INTERNAL, "the job could not be taken in, %d times", TAKE_TRIES_MAX);
    }
    if (code != OK) {
        code = refuse_unreadable(c, &parts, code);
    } else {
        code = take(c, job, m->data);
        if (err_class(code) == CLASS_REJECT) {
            refuse(c, job, code);
            code = OK;
        }
    }
    if (code == OK) {
        IGNORE(transport_ack(c->links.control, m->reply, ACK_DONE, 0));
        return;
    }
    char quoted[ERR_DETAIL_BYTES + 64];
    log_warn("job.postponed", "job=%s tenant=%s error=%s detail=%s", parts.job, parts.tenant,
             err_name(code), log_quote(quoted, sizeof quoted, err_detail()));
    uint64_t delay_ns = NAK_DELAY_NS * (m->deliveries ? m->deliveries : 1);
    IGNORE(transport_ack(c->links.control, m->reply, ACK_NAK,
                         delay_ns < NAK_DELAY_LONGEST_NS ? delay_ns : NAK_DELAY_LONGEST_NS));
}
