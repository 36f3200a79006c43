/* Many jobs end at once: an operator cancels a tenant's, deadlines pass together, jobs of many partitions are whole, jobs have failed
 * too often. Each step is taken for all:
 *
 *   records read ─▶ proofs of partitions read, or dead letters sent ─▶ results stored, unless there is one
 *                ─▶ records moved, by compare-and-set; lanes' marks laid ─▶ everybody told
 *
 * A job that has ended meanwhile, or is not as far as it was thought to be, is left as it is. Whoever meets anything else from the
 * result on, an earlier result, a record that was changed, an answer that did not come, goes on alone (ending_finish), which repeats
 * what was done without harm.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/coordinator/work.h"

_Static_assert((int)JOB_PARTITIONS_MAX <= (int)BATCH_MAX, "a job's parts fit a batch");

struct going {
    struct end_order *order; /* lent; NULL: nothing more is to be done */
    struct record_slot slot; /* owned */
    job_message *job;        /* owned */
    struct job_report report;
    part_message **parts; /* owned; of a join */
    size_t parts_count;
    enum job_state wanted;
    struct bytes_mut letter, result, record, mark; /* owned */
    bool in_hand;
    size_t request, requests_count; /* of the step; SIZE_MAX: could not ask */
};

static void going_done(struct going *g) {
    record_slot_done(&g->slot);
    message_free(&g->job);
    for (size_t i = 0; i < g->parts_count; i++) {
        message_free(&g->parts[i]);
    }
    mem_free(g->parts);
    mem_free(g->letter.ptr);
    mem_free(g->result.ptr);
    mem_free(g->record.ptr);
    mem_free(g->mark.ptr);
}

static void count_end(struct coordinator *c, enum end_kind kind) {
    _Atomic uint64_t *const counts[] = {[END_CANCELLED] = &c->cancelled,
                                        [END_EXPIRED] = &c->expired,
                                        [END_JOINED] = &c->joined,
                                        [END_DEAD] = &c->dead};
    atomic_fetch_add(counts[kind], 1);
}

/* --- The record --- */

static enum err ask_record(struct coordinator *c, struct going *g) {
    struct subject bucket = kv_bucket_name(&c->space, "jobs");
    struct subject key = key_of_job(name_of_own(&g->order->name));
    return batch_kv_get(c->batch, bucket.text, key.text);
}

static void note_why(struct going *g, enum err code, const char *why) {
    g->report.fault.code = code;
    snprintf(g->report.fault.detail, sizeof g->report.fault.detail, "%s", why);
}

static void note_used_up(struct going *g, uint32_t idx) {
    const struct record_part *part = &g->slot.record.parts[idx];
    const struct record_try *last = &part->tries[part->tries_count - 1];
    struct record_counts n = record_part_counts(part);
    bool failed = status_of_code(last->code) == BELLOWS__V1__STATUS__STATUS_FAILED;
    g->report.fault.code = failed ? last->code : E_INTERNAL;
    snprintf(g->report.fault.detail, sizeof g->report.fault.detail,
             "given up: partition %u failed %u times, its worker died %u times, %u times no lane "
             "had room; "
             "the last time on %s.%u: %s",
             idx, n.attempts, n.deaths, n.refusals, last->lane.node, last->lane.gpu, last->detail);
    log_error("job.dead", "job=%s tenant=%s part=%u attempts=%u deaths=%u refusals=%u",
              g->report.name.job, g->report.name.tenant, idx, n.attempts, n.deaths, n.refusals);
}

/* False: it is not as far as that. */
static bool is_to_end(struct coordinator *c, struct going *g) {
    const struct end_order *o = g->order;
    const struct record *r = &g->slot.record;
    uint32_t idx = 0;
    switch (o->kind) {
    case END_CANCELLED:
        g->wanted = JOB_CANCELLED;
        note_why(g, E_CANCELLED, o->why);
        return true;
    case END_EXPIRED:
        g->wanted = JOB_EXPIRED;
        note_why(g, E_DEADLINE, o->why);
        return true;
    case END_JOINED:
        g->wanted = JOB_DONE;
        return record_all_parts_done(r);
    case END_DEAD:
        g->wanted = JOB_DEAD;
        if (!record_is_used_up(&idx, r, &c->backlog.limits)) {
            return false;
        }
        note_used_up(g, idx);
        return true;
    }
    return false;
}

static enum err take_record(struct coordinator *c, struct going *g) {
    const struct batch_answer *a = batch_answer(c->batch, g->request);
    struct end_order *o = g->order;
    const struct record *r = &g->slot.record;
    REQUIRE(a->found, E_RANGE, "tenant %s has no job %s", o->name.tenant, o->name.job);
    TRY(record_unpack(&g->slot.record, a->message.data));
    g->slot.loaded = true;
    g->slot.revision = a->message.sequence;
    REQUIRE(!o->generation || r->generation <= o->generation, E_RANGE,
            "job %s was sent again meanwhile; ask again", o->name.job);
    o->state = r->state;
    if (!job_state_is_open(r->state)) {
        g->order = NULL;
        return OK;
    }
    TRY(job_unpack(&g->job, bytes_of(r->job.ptr, r->job.len), NULL, UINT64_MAX));
    g->in_hand = r->state != JOB_QUEUED && (o->kind == END_CANCELLED || o->kind == END_EXPIRED);
    g->report = ending_report(c, name_of_own(&o->name), r, g->job);
    if (!is_to_end(c, g)) {
        g->order = NULL;
    }
    return OK;
}

/* --- What else its end needs --- */

static enum err ask_parts(struct coordinator *c, struct going *g) {
    struct subject stream = stream_name(&c->space, "PARTS");
    uint32_t count = g->slot.record.parts_count;
    TRY(mem_new(&g->parts, count, sizeof(part_message *)));
    for (uint32_t i = 0; i < count; i++) {
        struct subject subject = subject_part(&c->space, g->report.name, g->report.generation, i);
        TRY(batch_get_last(c->batch, stream.text, subject.text));
    }
    return OK;
}

/* A proof that the record says was stored, and that is not there, is lost: so is the job. */
static enum err take_parts(struct coordinator *c, struct going *g) {
    for (size_t i = 0; i < g->requests_count; i++) {
        const struct batch_answer *a = batch_answer(c->batch, g->request + i);
        if (a->fault.code != OK) {
            return fault_raise(&a->fault);
        }
        if (!a->found) {
            char why[80];
            snprintf(why, sizeof why, "the proof of partition %zu was stored and is gone", i);
            g->wanted = JOB_FAILED;
            note_why(g, E_INTERNAL, why);
            return OK;
        }
        TRY(part_unpack(&g->parts[i], a->message.data));
        g->parts_count++;
    }
    return OK;
}

static enum err ask_letter(struct coordinator *c, struct going *g) {
    Bellows__V1__DeadLetter letter = BELLOWS__V1__DEAD_LETTER__INIT;
    AUTO(message_free) Bellows__V1__JobRecord *record = NULL;
    TRY(record_pack(&g->record, &g->slot.record));
    enum err code =
        message_unpack(&record, &bellows__v1__job_record__descriptor,
                       bytes_of(g->record.ptr, g->record.len), RECORD_BYTES_MAX, "job record");
    mem_free(g->record.ptr);
    g->record = (struct bytes_mut){0};
    TRY(code);
    letter.version = WIRE_VERSION;
    letter.record = record;
    letter.reason = g->report.fault.detail;
    letter.at_unix_ms = clock_unix_ns() / 1000000;
    TRY(message_pack(&g->letter, &letter, MESSAGE_BYTES_MAX, "dead letter"));
    struct subject subject = subject_dead(&c->space, g->report.name);
    char id[SUBJECT_BYTES_MAX + 8];
    snprintf(id, sizeof id, "%s.dead",
             message_id_of_job(g->report.name, g->report.generation).text);
    return batch_publish(c->batch, subject.text, bytes_of(g->letter.ptr, g->letter.len),
                         &(struct publish_options){.message_id = id});
}

static enum err ask_more(struct coordinator *c, struct going *g) {
    return g->order->kind == END_JOINED ? ask_parts(c, g)
           : g->order->kind == END_DEAD ? ask_letter(c, g)
                                        : OK;
}

static enum err take_more(struct coordinator *c, struct going *g) {
    return g->order->kind == END_JOINED ? take_parts(c, g) : OK;
}

/* --- The result, and the record's last move --- */

static enum err ask_result(struct coordinator *c, struct going *g) {
    struct subject subject = subject_done(&c->space, g->report.name, g->report.generation);
    struct publish_options first = {.expect_last = true};
    TRY(job_report_pack(&g->result, &g->report, g->parts, g->parts_count));
    return batch_publish(c->batch, subject.text, bytes_of(g->result.ptr, g->result.len), &first);
}

static void lay_mark(struct coordinator *c, struct going *g) {
    struct subject bucket = kv_bucket_name(&c->space, "cancel");
    struct subject key = key_of_job(g->report.name);
    if (ending_pack_mark(&g->mark, g->report.generation, g->order->why) == OK) {
        IGNORE(batch_kv_put(c->batch, bucket.text, key.text, bytes_of(g->mark.ptr, g->mark.len)));
    }
}

static enum err ask_end(struct coordinator *c, struct going *g) {
    struct subject bucket = kv_bucket_name(&c->space, "jobs");
    struct subject key = key_of_job(g->report.name);
    record_end(&g->slot.record, g->wanted, g->report.fault.detail, clock_unix_ns() / 1000000);
    TRY(record_pack(&g->record, &g->slot.record));
    TRY(batch_kv_write(c->batch, bucket.text, key.text, bytes_of(g->record.ptr, g->record.len),
                       g->slot.revision));
    if (g->in_hand) {
        lay_mark(c, g);
    }
    return OK;
}

static enum err take_stored(struct coordinator *c, struct going *g) {
    REQUIRE(batch_answer(c->batch, g->request)->ack.outcome != PUBLISH_CONFLICT, E_NET,
            "somebody else was first");
    return OK;
}

/* --- Steps --- */

struct step {
    enum err (*ask)(struct coordinator *c, struct going *g);
    enum err (*take)(struct coordinator *c, struct going *g);
    bool alone; /* whoever fails here goes on alone; else its end is put off */
};

/* From what the record is now; another order may have been for the same job. */
static enum err go_alone(struct coordinator *c, struct going *g, struct end_order *o) {
    struct job_place at = place_of(c, g->report.name);
    const struct record *r = &g->slot.record;
    bool found = false;
    record_slot_done(&g->slot);
    TRY(record_load(&g->slot, &found, &at));
    REQUIRE(found, E_RANGE, "tenant %s has no job %s", o->name.tenant, o->name.job);
    o->state = r->state;
    if (!job_state_is_open(r->state) || r->generation != g->report.generation) {
        return OK;
    }
    TRY(ending_finish(c, &g->slot, &g->report, g->parts, g->parts_count, g->wanted, &o->state));
    count_end(c, o->kind);
    if (g->in_hand) {
        ending_mark_and_tell(c, g->report.name, g->report.generation, o->why);
    }
    return OK;
}

static void fail(struct coordinator *c, struct going *g, const struct step *step, enum err code) {
    struct end_order *o = g->order;
    g->order = NULL;
    o->fault = fault_of(step->alone ? go_alone(c, g, o) : code);
}

/* Those whose requests are under way: all have been answered, or will not be. */
static void settle(struct coordinator *c, struct going *all, size_t count,
                   const struct step *step) {
    struct fault faults[ENDINGS_MAX];
    batch_wait(c->batch, 0);
    for (size_t i = 0; i < count; i++) {
        struct going *g = &all[i];
        faults[i].code = OK;
        if (!g->order || g->request == SIZE_MAX) {
            continue;
        }
        const struct batch_answer *a =
            g->requests_count > 0 ? batch_answer(c->batch, g->request) : NULL;
        faults[i] = a && a->fault.code != OK ? a->fault : fault_of(step->take(c, g));
    }
    batch_clear(c->batch);
    for (size_t i = 0; i < count; i++) {
        if (all[i].order && all[i].request != SIZE_MAX && faults[i].code != OK) {
            fail(c, &all[i], step, fault_raise(&faults[i]));
        }
    }
}

static void take_step(struct coordinator *c, struct going *all, size_t count,
                      const struct step *step) {
    size_t first = 0;
    for (size_t i = 0; i < count; i++) {
        struct going *g = &all[i];
        if (!g->order) {
            continue;
        }
        if (batch_count(c->batch) + JOB_PARTITIONS_MAX > BATCH_MAX) {
            settle(c, all + first, i - first, step);
            first = i;
        }
        g->request = batch_count(c->batch);
        enum err code = step->ask(c, g);
        g->requests_count = batch_count(c->batch) - g->request;
        if (code != OK) {
            g->request = SIZE_MAX;
            g->order->fault = fault_of(code);
        }
    }
    settle(c, all + first, count - first, step);
    for (size_t i = 0; i < count; i++) {
        if (all[i].order && all[i].request == SIZE_MAX) {
            fail(c, &all[i], step, fault_raise(&all[i].order->fault));
        }
    }
}

static void tell(struct coordinator *c, struct going *g) {
    struct end_order *o = g->order;
    o->state = g->wanted;
    ending_note(c, &g->report, o->state, bytes_of(g->result.ptr, g->result.len));
    if (g->in_hand) {
        ending_tell_lanes(c, g->report.name, g->report.generation, o->why);
    }
    count_end(c, o->kind);
}

void endings_make(struct coordinator *c, struct end_order *orders, size_t count) {
    static const struct step steps[] = {{ask_record, take_record, false},
                                        {ask_more, take_more, false},
                                        {ask_result, take_stored, true},
                                        {ask_end, take_stored, true}};
    AUTO(mem_free_ptr) struct going *all = NULL;
    ASSERT(count <= ENDINGS_MAX);
    if (count == 0) {
        return;
    }
    enum err code = mem_new(&all, count, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        orders[i].fault = fault_of(code);
        if (code == OK) {
            all[i].order = &orders[i];
        }
    }
    for (size_t k = 0; k < COUNT_OF(steps) && code == OK; k++) {
        take_step(c, all, count, &steps[k]);
    }
    for (size_t i = 0; i < count && code == OK; i++) {
        if (all[i].order) {
            tell(c, &all[i]);
        }
        going_done(&all[i]);
    }
}
