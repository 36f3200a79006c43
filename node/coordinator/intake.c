/* Jobs come in. In this order, so that a crash between any two steps is repaired by the message's second delivery:
 *
 *   message ──read──▶ record created (or found) ──▶ backlog ──▶ message acknowledged
 *
 * All that has arrived goes each step together: the records are created in one batch, on the bet that they are new, and the cancel marks
 * read in the same. Where the bet is lost the records are read, in another; a leader that was slow meets all it had in hand once more, and
 * must not be slowed down by it:
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

/* Cancelled while its message was on the way? */
static enum err read_mark(bool *cancelled, const job_message *job, struct bytes value) {
    AUTO(message_free) Bellows__V1__CancelMark *mark = NULL;
    TRY(message_unpack(&mark, &bellows__v1__cancel_mark__descriptor, value, CONTROL_BYTES_MAX,
                       "cancel mark"));
    *cancelled = mark->generation >= job->generation;
    return OK;
}

static enum err check_cancelled(bool *cancelled, struct coordinator *c, const job_message *job) {
    struct subject bucket = kv_bucket_name(&c->space, "cancel");
    struct subject key = key_of_job((struct job_name){job->tenant, job->job_id});
    AUTO(kv_entry_done) struct kv_entry entry = {0};
    bool found = false;
    TRY(kv_get(&entry, &found, c->links.control, bucket.text, key.text));
    return found ? read_mark(cancelled, job, entry.value) : OK;
}

static enum err note_queued(struct coordinator *c, const struct record_slot *slot,
                            struct bytes packed, const struct job_place *at,
                            const job_message *job) {
    struct job_event event = {
        .generation = slot->record.generation, .state = JOB_QUEUED, .job = job};
    TRY(backlog_put(NULL, &c->backlog, at->name, &slot->record, packed, slot->revision,
                    clock_ns()));
    atomic_fetch_add(&c->taken_in, 1);
    c->placing_due = true;
    job_event_send(at, &event);
    log_info("job.queued", "job=%s tenant=%s generation=%llu parts=%zu priority=%u", job->job_id,
             job->tenant, (unsigned long long)job->generation, job->n_partitions, job->priority);
    return OK;
}

/* What cannot start any more is ended at once. */
static enum err end_if_over(struct coordinator *c, const struct job_place *at, bool cancelled) {
    const struct job_view *view = backlog_find(&c->backlog, at->name);
    enum job_state state;
    if (cancelled) {
        return ending_stop(c, at->name, E_CANCELLED, "cancelled before it was taken in", &state);
    }
    if (view && backlog_is_expired(view, clock_ns())) {
        return ending_stop(c, at->name, E_DEADLINE, "the deadline had passed when the job came in",
                           &state);
    }
    return OK;
}

/* --- All that has arrived --- */

struct arrival {
    struct message *message; /* lent */
    struct subject_parts parts;
    job_message *job; /* owned; NULL when it cannot be read */
    struct sha256 fingerprint;
    struct record_slot slot; /* owned: what is created */
    struct bytes_mut packed; /* owned */
    size_t created, mark;    /* requests in the batch */
    size_t record;           /* the same, of a known one */
    bool sound;              /* `job` is one, whatever becomes of it */
    bool asked, known;       /* known: it has, or had, a record already */
    bool purging;            /* the janitor acknowledges it */
    enum err code;
    struct fault fault; /* with code */
};

static void arrival_done(struct arrival *a) {
    message_free(&a->job);
    record_slot_done(&a->slot);
    if (a->packed.ptr) {
        mem_wipe(a->packed.ptr, a->packed.len);
    }
    mem_free(a->packed.ptr);
}

static void set_code(struct arrival *a, enum err code) {
    a->code = code;
    if (code != OK) {
        a->fault = fault_of(code);
    }
}

static enum err read_arrival(struct arrival *a) {
    TRY(job_unpack(&a->job, a->message->data, &a->parts, UINT64_MAX));
    REQUIRE(a->message->deliveries <= TAKE_TRIES_MAX, E_INTERNAL,
            "the job could not be taken in, %d times", TAKE_TRIES_MAX);
    a->sound = true;
    return job_fingerprint(a->fingerprint.b, a->job);
}

/* One tenant's flood must not fill the records of all. What is known already is a repeat, whoever has how many.
 *
 * Its bodies do not hold back the acknowledgement, as those of a repeat do (drop_bodies): what is not acknowledged takes one of the intake's
 * places, so that purging a flood would stop the intake for all; and its second delivery might be taken, when others have ended, with its
 * bodies gone and its asker told that it was refused. The price: no record names them, so what a coordinator that dies has not purged
 * stays until the bucket's age, in that tenant's own room. */
static enum err check_quota(struct coordinator *c, const job_message *job) {
    struct job_name name = {job->tenant, job->job_id};
    uint32_t most = c->config.tenant_jobs_max, open = backlog_tenant_jobs(&c->backlog, job->tenant);
    if (!most || open < most || backlog_find(&c->backlog, name)) {
        return OK;
    }
    if (c->caught_up) { /* else it may be known after all, and its bodies in use */
        janitor_add_job(c->janitor, job, NULL, NULL);
    }
    FAIL(E_RANGE,
         "tenant %s has %u open jobs, the fleet takes %u of one tenant; send it again when some "
         "have ended",
         job->tenant, open, most);
}

static enum err ask_created(struct coordinator *c, struct arrival *a) {
    struct job_name name = {a->job->tenant, a->job->job_id};
    struct subject jobs = kv_bucket_name(&c->space, "jobs"), key = key_of_job(name);
    struct subject cancels = kv_bucket_name(&c->space, "cancel");
    REQUIRE(c->backlog.count < JOBS_OPEN_MAX, E_QUEUE, "more than %d open jobs", JOBS_OPEN_MAX);
    TRY(check_quota(c, a->job));
    TRY(record_init(&a->slot.record, a->message->data, &a->fingerprint, a->job->generation,
                    (uint32_t)a->job->n_partitions, clock_unix_ns() / 1000000));
    a->slot.loaded = true;
    TRY(record_pack(&a->packed, &a->slot.record));
    a->created = batch_count(c->batch);
    TRY(batch_kv_write(c->batch, jobs.text, key.text, bytes_of(a->packed.ptr, a->packed.len), 0));
    a->mark = batch_count(c->batch);
    TRY(batch_kv_get(c->batch, cancels.text, key.text));
    a->asked = true;
    return OK;
}

static enum err take_created(struct coordinator *c, struct arrival *a) {
    const struct batch_answer *created = batch_answer(c->batch, a->created);
    const struct batch_answer *mark = batch_answer(c->batch, a->mark);
    struct job_place at = place_of(c, (struct job_name){a->job->tenant, a->job->job_id});
    bool cancelled = false;
    if (created->fault.code != OK) {
        return fault_raise(&created->fault);
    }
    if (created->ack.outcome == PUBLISH_CONFLICT) {
        a->known = true;
        return OK;
    }
    a->slot.revision = created->ack.sequence;
    TRY(note_queued(c, &a->slot, bytes_of(a->packed.ptr, a->packed.len), &at, a->job));
    if (mark->fault.code != OK) {
        return fault_raise(&mark->fault);
    }
    if (mark->found) {
        TRY(read_mark(&cancelled, a->job, mark->message.data));
    }
    return end_if_over(c, &at, cancelled);
}

/* Whoever sends a job again sends its bodies again, too: those that are not the record's own are nobody's. */
static void drop_bodies(struct coordinator *c, struct arrival *a) {
    const struct record *r = &a->slot.record;
    AUTO(message_free) job_message *kept = NULL;
    if (job_state_is_open(r->state) &&
        job_unpack(&kept, bytes_of(r->job.ptr, r->job.len), NULL, UINT64_MAX) != OK) {
        return; /* not known which ones are in use */
    }
    a->purging = janitor_add_job(c->janitor, a->job, kept, a->message->reply);
}

/* A repeat (code OK) or a refused one leaves nothing behind; `code` is passed on with its detail. */
static enum err turn_away(struct coordinator *c, struct arrival *a, enum err code) {
    struct fault fault = fault_of(code);
    if (code == OK || err_class(code) == CLASS_REJECT) {
        drop_bodies(c, a);
    }
    return code == OK ? OK : fault_raise(&fault);
}

static enum err take_known(struct coordinator *c, struct arrival *a) {
    const struct batch_answer *read = batch_answer(c->batch, a->record);
    const job_message *job = a->job;
    struct job_place at = place_of(c, (struct job_name){job->tenant, job->job_id});
    struct record_slot *slot = &a->slot;
    bool stored = false, cancelled = false;
    record_slot_done(slot);
    if (read->fault.code != OK) {
        return fault_raise(&read->fault);
    }
    REQUIRE(read->found, E_NET, "job %s: the record is gone again", job->job_id);
    TRY(record_unpack(&slot->record, read->message.data));
    slot->loaded = true;
    slot->revision = read->message.sequence;
    if (slot->record.generation == job->generation) {
        return turn_away(c, a, check_repeat(c, &slot->record, job, &a->fingerprint, &at));
    }
    enum err code = record_reopen(&slot->record, a->message->data, &a->fingerprint, job->generation,
                                  (uint32_t)job->n_partitions, clock_unix_ns() / 1000000);
    if (code != OK) {
        return turn_away(c, a, code);
    }
    TRY(record_replace(&stored, slot, &at));
    REQUIRE(stored, E_NET, "job %s: the record changed while the job was taken in", job->job_id);
    TRY(note_queued(c, slot, (struct bytes){0}, &at, job));
    TRY(check_cancelled(&cancelled, c, job));
    return end_if_over(c, &at, cancelled);
}

static void take_all_known(struct coordinator *c, struct arrival *arrivals, size_t count) {
    struct subject bucket = kv_bucket_name(&c->space, "jobs");
    for (size_t i = 0; i < count; i++) {
        struct arrival *a = &arrivals[i];
        if (a->known && a->code == OK) {
            struct subject key = key_of_job((struct job_name){a->job->tenant, a->job->job_id});
            a->record = batch_count(c->batch);
            set_code(a, batch_kv_get(c->batch, bucket.text, key.text));
        }
    }
    batch_wait(c->batch, 0);
    for (size_t i = 0; i < count; i++) {
        if (arrivals[i].known && arrivals[i].code == OK) {
            set_code(&arrivals[i], take_known(c, &arrivals[i]));
        }
    }
    batch_clear(c->batch);
}

/* The message has done its work, or comes again later. */
static void answer(struct coordinator *c, struct arrival *a) {
    if (a->code != OK && !a->sound) {
        a->code = refuse_unreadable(c, &a->parts, fault_raise(&a->fault));
    } else if (a->code != OK && err_class(a->code) == CLASS_REJECT) {
        refuse(c, a->job, fault_raise(&a->fault));
        a->code = OK;
    }
    const struct message *m = a->message;
    if (a->code == OK) {
        if (!a->purging) {
            IGNORE(transport_ack(c->links.control, m->reply, ACK_DONE, 0));
        }
        return;
    }
    char quoted[ERR_DETAIL_BYTES + 64];
    log_warn("job.postponed", "job=%s tenant=%s error=%s detail=%s", a->parts.job, a->parts.tenant,
             err_name(a->code), log_quote(quoted, sizeof quoted, err_detail()));
    uint64_t delay_ns = NAK_DELAY_NS * (m->deliveries ? m->deliveries : 1);
    IGNORE(transport_ack(c->links.control, m->reply, ACK_NAK,
                         delay_ns < NAK_DELAY_LONGEST_NS ? delay_ns : NAK_DELAY_LONGEST_NS));
}

/* False: not addressed as a job is; gone. */
static bool is_addressed(struct coordinator *c, struct arrival *a) {
    if (subject_parse(&a->parts, &c->space, a->message->subject) != OK ||
        a->parts.kind != SUBJECT_JOB) {
        log_warn("job.unaddressed", "subject_bytes=%zu", strlen(a->message->subject));
        IGNORE(transport_ack(c->links.control, a->message->reply, ACK_TERM, 0));
        return false;
    }
    return true;
}

void intake_take(struct coordinator *c, struct message *messages, size_t count) {
    struct arrival arrivals[INTAKE_BATCH] = {0};
    size_t n = 0;
    ASSERT(count <= INTAKE_BATCH);
    c->intake_more = count > 0 && messages[count - 1].pending > 0;
    for (size_t i = 0; i < count; i++) {
        struct arrival *a = &arrivals[n];
        a->message = &messages[i];
        if (is_addressed(c, a)) {
            set_code(a, read_arrival(a));
            if (a->code == OK) {
                set_code(a, ask_created(c, a));
            }
            n++;
        }
    }
    batch_wait(c->batch, 0);
    for (size_t i = 0; i < n; i++) {
        if (arrivals[i].asked) {
            set_code(&arrivals[i], take_created(c, &arrivals[i]));
        }
    }
    batch_clear(c->batch);
    take_all_known(c, arrivals, n);
    for (size_t i = 0; i < n; i++) {
        answer(c, &arrivals[i]);
        arrival_done(&arrivals[i]);
    }
}
