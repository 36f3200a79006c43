/* Many jobs end at once, when an operator cancels a tenant's or deadlines pass together. Each step is taken for all:
 *
 *   records read ─▶ results stored, unless there is one ─▶ records moved, by compare-and-set; lanes' marks laid ─▶ everybody told
 *
 * Whoever meets anything else on the way, an earlier result, a record that was changed meanwhile, an answer that did not come, goes the
 * long way alone (ending_stop), which repeats what was done without harm.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/coordinator/work.h"

struct going {
    struct stop *stop;       /* lent; NULL: done, or alone */
    struct record_slot slot; /* owned */
    job_message *job;        /* owned */
    struct job_report report;
    struct bytes_mut result, record, mark; /* owned */
    bool in_hand;
    size_t request;
};

static void going_done(struct going *g) {
    record_slot_done(&g->slot);
    message_free(&g->job);
    mem_free(g->result.ptr);
    mem_free(g->record.ptr);
    mem_free(g->mark.ptr);
}

static void go_alone(struct coordinator *c, struct going *g) {
    struct stop *s = g->stop;
    g->stop = NULL;
    s->fault = fault_of(ending_stop(c, name_of_own(&s->name), s->code, s->why, &s->state));
}

/* --- The steps: each asks, and takes its answer --- */

static enum err ask_record(struct coordinator *c, struct going *g) {
    struct subject bucket = kv_bucket_name(&c->space, "jobs");
    struct subject key = key_of_job(name_of_own(&g->stop->name));
    return batch_kv_get(c->batch, bucket.text, key.text);
}

static enum err take_record(struct coordinator *c, struct going *g, const struct batch_answer *a) {
    struct stop *s = g->stop;
    REQUIRE(a->found, E_RANGE, "tenant %s has no job %s", s->name.tenant, s->name.job);
    TRY(record_unpack(&g->slot.record, a->message.data));
    g->slot.loaded = true;
    g->slot.revision = a->message.sequence;
    const struct record *r = &g->slot.record;
    s->state = r->state;
    if (!job_state_is_open(r->state)) {
        g->stop = NULL;
        return OK;
    }
    TRY(job_unpack(&g->job, bytes_of(r->job.ptr, r->job.len), NULL, UINT64_MAX));
    g->in_hand = r->state != JOB_QUEUED;
    g->report = ending_report(c, name_of_own(&s->name), r, g->job);
    g->report.fault.code = s->code;
    snprintf(g->report.fault.detail, sizeof g->report.fault.detail, "%s", s->why);
    return job_report_pack(&g->result, &g->report, NULL, 0);
}

static enum err ask_result(struct coordinator *c, struct going *g) {
    struct subject subject = subject_done(&c->space, g->report.name, g->report.generation);
    struct publish_options first = {.expect_last = true};
    return batch_publish(c->batch, subject.text, bytes_of(g->result.ptr, g->result.len), &first);
}

static enum job_state state_wanted(const struct stop *s) {
    return s->code == E_DEADLINE ? JOB_EXPIRED : JOB_CANCELLED;
}

static enum err ask_end(struct coordinator *c, struct going *g) {
    struct subject bucket = kv_bucket_name(&c->space, "jobs");
    struct subject key = key_of_job(g->report.name);
    record_end(&g->slot.record, state_wanted(g->stop), g->stop->why, clock_unix_ns() / 1000000);
    TRY(record_pack(&g->record, &g->slot.record));
    return batch_kv_write(c->batch, bucket.text, key.text, bytes_of(g->record.ptr, g->record.len),
                          g->slot.revision);
}

static enum err take_stored(struct coordinator *c, struct going *g, const struct batch_answer *a) {
    (void)c;
    (void)g;
    REQUIRE(a->ack.outcome != PUBLISH_CONFLICT, E_NET, "somebody else was first");
    return OK;
}

static void lay_mark(struct coordinator *c, struct going *g) {
    struct subject bucket = kv_bucket_name(&c->space, "cancel");
    struct subject key = key_of_job(g->report.name);
    if (ending_pack_mark(&g->mark, g->report.generation, g->stop->why) == OK) {
        IGNORE(batch_kv_put(c->batch, bucket.text, key.text, bytes_of(g->mark.ptr, g->mark.len)));
    }
}

typedef enum err ask_step(struct coordinator *c, struct going *g);
typedef enum err take_step(struct coordinator *c, struct going *g, const struct batch_answer *a);

static void step(struct coordinator *c, struct going *all, size_t count, ask_step *ask,
                 take_step *take) {
    for (size_t i = 0; i < count; i++) {
        all[i].request = batch_count(c->batch);
        if (all[i].stop && ask(c, &all[i]) != OK) {
            all[i].request = SIZE_MAX;
        }
    }
    for (size_t i = 0; ask == ask_end && i < count; i++) {
        if (all[i].stop && all[i].in_hand) {
            lay_mark(c, &all[i]);
        }
    }
    batch_wait(c->batch, 0);
    for (size_t i = 0; i < count; i++) {
        const struct batch_answer *a = all[i].stop && all[i].request != SIZE_MAX
                                           ? batch_answer(c->batch, all[i].request)
                                           : NULL;
        enum err code = !a ? E_INTERNAL : a->fault.code == OK ? take(c, &all[i], a) : a->fault.code;
        if (all[i].stop && code != OK) {
            all[i].request = SIZE_MAX;
        }
    }
    batch_clear(c->batch);
    for (size_t i = 0; i < count; i++) {
        if (all[i].stop && all[i].request == SIZE_MAX) {
            go_alone(c, &all[i]);
        }
    }
}

static void tell(struct coordinator *c, struct going *g) {
    struct stop *s = g->stop;
    s->state = state_wanted(s);
    ending_note(c, &g->report, s->state, bytes_of(g->result.ptr, g->result.len));
    if (g->in_hand) {
        ending_tell_lanes(c, g->report.name, g->report.generation, s->why);
    }
    atomic_fetch_add(s->code == E_DEADLINE ? &c->expired : &c->cancelled, 1);
}

void stop_jobs(struct coordinator *c, struct stop *stops, size_t count) {
    AUTO(mem_free_ptr) struct going *all = NULL;
    ASSERT(count <= STOPS_MAX);
    if (count == 0) {
        return;
    }
    enum err code = mem_new(&all, count, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        stops[i].fault = fault_of(code);
        if (code == OK) {
            all[i].stop = &stops[i];
        }
    }
    if (code != OK) {
        return;
    }
    step(c, all, count, ask_record, take_record);
    step(c, all, count, ask_result, take_stored);
    step(c, all, count, ask_end, take_stored);
    for (size_t i = 0; i < count; i++) {
        if (all[i].stop) {
            tell(c, &all[i]);
        }
        going_done(&all[i]);
    }
}
