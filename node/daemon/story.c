/* Messages around lent memory, packed at once, handed to the telemetry thread.
 *
 * Energy is not measured for each proof: asking the driver takes longer than a small proof. It is the power that the device drew lately
 * times the device's time.
 */
#include "node/daemon/story.h"

#include <string.h>

#include "node/base/clock.h"
#include "node/job/event.h"
#include "proto/telemetry.pb-c.h"

static char *lent(const char *text) {
    return (char *)(uintptr_t)(text ? text : "");
}

/* --- Events --- */

static void tell_event(struct lane *lane, const struct lane_job *job, struct job_event *event) {
    struct job_place at = job_place_of(job, lane->links.telemetry, &lane->space);
    struct bytes_mut packed;
    struct subject subject;
    event->generation = job->generation;
    event->epoch = job->epoch;
    event->lane = lane_name_here(lane);
    event->partition_index = job->index;
    event->job = job->job;
    if (job_event_pack(&packed, &subject, &at, event) == OK) {
        lane_tell(lane, &subject, &packed);
    }
}

void story_begins(struct lane *lane, const struct lane_job *job) {
    struct job_event event = {.state = JOB_RUNNING};
    tell_event(lane, job, &event);
}

static void tell_end(struct lane *lane, const struct lane_job *job, struct verdict verdict) {
    bool back = verdict.fate != FATE_DONE && verdict.fate != FATE_FAIL;
    struct job_event event = {
        .state = back                        ? JOB_QUEUED
                 : verdict.fate == FATE_DONE ? JOB_DONE
                                             : JOB_FAILED,
        .stage = job->job->n_partitions > 1 && verdict.fate == FATE_DONE ? "proved" : NULL,
        .reason = job->fault.code == OK ? NULL : job->fault.detail,
        .code = job->fault.code,
    };
    tell_event(lane, job, &event);
}

/* --- Spans --- */

struct span_room {
    Bellows__V1__Span spans[SPANS_MAX], *ptrs[SPANS_MAX];
};

static void fill_spans(Bellows__V1__SpanReport *m, struct span_room *room,
                       const struct spans *spans) {
    for (size_t i = 0; i < spans->count; i++) {
        const struct span *in = &spans->items[i];
        Bellows__V1__Span *out = room->ptrs[i] = &room->spans[i];
        bellows__v1__span__init(out);
        out->step = lent(span_step_name(in->step));
        out->device = lent(span_step_place(in->step));
        out->start_ns = in->start_ns;
        out->ns = in->ns;
        out->bytes = in->bytes;
        out->outcome = lent(in->outcome == OK ? "ok" : err_name(in->outcome));
    }
    m->n_spans = spans->count;
    m->spans = room->ptrs;
}

static void tell_spans(struct lane *lane, const struct lane_job *job, const char *outcome) {
    Bellows__V1__SpanReport m = BELLOWS__V1__SPAN_REPORT__INIT;
    struct span_room room;
    struct bytes_mut packed;
    m.version = WIRE_VERSION;
    m.node = lane->node;
    m.gpu = lane->config.gpu;
    m.session = lane->session;
    m.tenant = lent(job->name.tenant);
    m.job_id = lent(job->name.job);
    m.generation = job->generation;
    m.partition_index = job->index;
    m.key_digest = job->job->key_digest;
    m.device = lane->backend->device_name;
    m.at_unix_ms = clock_unix_ns() / 1000000;
    m.total_ns = clock_ns() - job->report.spans.origin_ns;
    m.outcome = lent(outcome);
    m.error_name = lent(job->fault.code == OK ? NULL : err_name(job->fault.code));
    m.error_detail = lent(job->fault.code == OK ? NULL : job->fault.detail);
    m.attempt = job->report.attempt;
    m.priority = job->job->priority;
    m.device_ns = job->device_ns;
    m.energy_millijoule =
        (uint64_t)((double)atomic_load(&lane->power_mw) * (double)job->device_ns / 1e9);
    fill_spans(&m, &room, &job->report.spans);
    const Bellows__V1__Body *body = job->job->partitions[job->index]->body;
    m.wire_bytes = body->wire_bytes;
    for (size_t i = 0; i < body->n_sections; i++) { /* checked when the job was taken */
        m.raw_bytes += SCALAR_BYTES * body->sections[i]->values_count;
    }
    if (message_pack(&packed, &m, MESSAGE_BYTES_MAX, "spans") == OK) {
        struct subject subject = subject_telemetry(&lane->space, lane_name_here(lane), "span");
        lane_tell(lane, &subject, &packed);
    }
}

static void tell_error(struct lane *lane, const struct lane_job *job, struct verdict verdict) {
    Bellows__V1__ErrorReport m = BELLOWS__V1__ERROR_REPORT__INIT;
    const struct spans *spans = &job->report.spans;
    struct bytes_mut packed;
    m.version = WIRE_VERSION;
    m.node = lane->node;
    m.gpu = lane->config.gpu;
    m.session = lane->session;
    m.at_unix_ms = clock_unix_ns() / 1000000;
    m.name = lent(err_name(job->fault.code));
    m.detail = lent(job->fault.detail);
    m.alarm = verdict.alarm;
    m.tenant = lent(job->name.tenant);
    m.job_id = lent(job->name.job);
    m.partition_index = job->index;
    for (size_t i = 0; i < spans->count; i++) { /* the last one that went wrong */
        m.step =
            spans->items[i].outcome != OK ? lent(span_step_name(spans->items[i].step)) : m.step;
    }
    if (message_pack(&packed, &m, MESSAGE_BYTES_MAX, "error report") == OK) {
        struct subject subject = subject_telemetry(&lane->space, lane_name_here(lane), "error");
        lane_tell(lane, &subject, &packed);
    }
}

/* --- Metrics --- */

static int outcome_label(const char *outcome) {
#define OUTCOME_TEXT(id, text) text,
    static const char *const names[] = {METRIC_OUTCOMES(OUTCOME_TEXT)};
#undef OUTCOME_TEXT
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!strcmp(names[i], outcome)) {
            return (int)i;
        }
    }
    return METRIC_OUTCOME_FAILED; /* its result could not be stored */
}

static void count_story(struct lane *lane, const struct lane_job *job, const char *outcome) {
    struct metric_block *m = lane->config.metrics;
    const struct spans *spans = &job->report.spans;
    for (size_t i = 0; i < spans->count; i++) {
        const struct span *s = &spans->items[i];
        metric_observe(m, METRIC_STEP, (int)s->step, s->ns);
        metric_add(m, METRIC_STEP_BYTES, (int)s->step, s->bytes);
    }
    metric_observe(m, METRIC_PARTITION, 0, clock_ns() - spans->origin_ns);
    metric_add(m, METRIC_PARTITIONS, outcome_label(outcome), 1);
}

void story_ends(struct lane *lane, const struct lane_job *job, struct verdict verdict,
                const char *outcome) {
    count_story(lane, job, outcome);
    if (job->stale) {
        return; /* somebody else's to tell */
    }
    tell_spans(lane, job, outcome);
    tell_end(lane, job, verdict);
    if (job->fault.code != OK && verdict.fate != FATE_STOP) {
        tell_error(lane, job, verdict);
    }
}
