/* What the leader tells: one report to the fleet's telemetry subject and the same figures as metrics. Taking them costs a pass over the
 * backlog; so a large one is told of less often: at most a twentieth of the loop's time goes there.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/coordinator/survey.h"
#include "node/coordinator/work.h"
#include "proto/telemetry.pb-c.h"
#include "proto/unpack.h"

static const uint64_t PACE_NS = UINT64_C(1000000000);
enum { SHARE = 20 };

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

static void read_counts(uint64_t counts[METRIC_DECISION_COUNT], const struct coordinator *c) {
    counts[METRIC_DECISION_TAKEN_IN] = atomic_load(&c->taken_in);
    counts[METRIC_DECISION_REFUSED] = atomic_load(&c->refused);
    counts[METRIC_DECISION_PLACED] = atomic_load(&c->placed);
    counts[METRIC_DECISION_TAKEN_BACK] = atomic_load(&c->taken_back);
    counts[METRIC_DECISION_JOINED] = atomic_load(&c->joined);
    counts[METRIC_DECISION_EXPIRED] = atomic_load(&c->expired);
    counts[METRIC_DECISION_CANCELLED] = atomic_load(&c->cancelled);
    counts[METRIC_DECISION_DEAD] = atomic_load(&c->dead);
}

/* --- Metrics --- */

static void set_metrics(struct coordinator *c, const struct survey *s, const uint64_t *counts) {
    struct metric_block *m = c->config.metrics;
    metric_set(m, METRIC_LEADER, 0, 1);
    metric_set(m, METRIC_READY, 0, c->caught_up);
    metric_set(m, METRIC_JOBS_OPEN, 0, s->jobs_open);
    metric_set(m, METRIC_FLEET_PARTITIONS, METRIC_PART_STATE_QUEUED, s->queued);
    metric_set(m, METRIC_FLEET_PARTITIONS, METRIC_PART_STATE_PLACED, s->placed);
    metric_set(m, METRIC_FLEET_PARTITIONS, METRIC_PART_STATE_RUNNING, s->running);
    for (int p = 0; p < JOB_PRIORITY_COUNT; p++) {
        metric_set(m, METRIC_QUEUE_DEPTH, p, s->waiting[p]);
        metric_set(m, METRIC_QUEUE_OLDEST, p, s->oldest_ns[p]);
    }
    metric_set(m, METRIC_BACKLOG, 0, s->backlog_ns);
    metric_set(m, METRIC_BACKLOG_WALL, 0, s->backlog_wall_ns);
    metric_set(m, METRIC_DEADLINES, 0, s->deadlines_at_risk);
    metric_set(m, METRIC_LANES, METRIC_FLEET_KNOWN, s->lanes_known);
    metric_set(m, METRIC_LANES, METRIC_FLEET_OPEN, s->lanes_open);
    for (int i = 0; i < METRIC_DECISION_COUNT; i++) {
        metric_follow(m, METRIC_DECISIONS, i, &c->counted[i], counts[i]);
    }
}
_Static_assert((int)METRIC_PRIORITY_COUNT == (int)JOB_PRIORITY_COUNT, "a row for each priority");

void tell_standing_by(struct coordinator *c) {
    metric_set(c->config.metrics, METRIC_LEADER, 0, 0);
    metric_set(c->config.metrics, METRIC_READY, 0, 0);
}

/* --- The report --- */

struct report { /* a message and what it points to */
    Bellows__V1__Queue queues[SURVEY_QUEUES_MAX], *queue_ptrs[SURVEY_QUEUES_MAX];
    Bellows__V1__Counter counters[METRIC_DECISION_COUNT], *counter_ptrs[METRIC_DECISION_COUNT];
    struct survey survey;
};

static void fill_queues(Bellows__V1__FleetReport *m, struct report *r) {
    for (size_t i = 0; i < r->survey.queues_count; i++) {
        struct survey_queue *q = &r->survey.queues[i];
        Bellows__V1__Queue *out = r->queue_ptrs[i] = &r->queues[i];
        bellows__v1__queue__init(out);
        out->priority = q->priority;
        out->key_digest = (ProtobufCBinaryData){SHA256_BYTES, q->key_digest.b};
        out->partitions_count = q->partitions_count;
        out->oldest_ns = q->oldest_ns;
        out->work_ns = q->work_ns;
        out->label = (char *)(uintptr_t)(q->label ? q->label : "");
    }
    m->n_queues = r->survey.queues_count;
    m->queues = r->queue_ptrs;
}

static void fill_counters(Bellows__V1__FleetReport *m, struct report *r, const uint64_t *counts) {
#define COUNTER_NAME(id, text) text,
    static const char *const names[] = {METRIC_DECISIONS(COUNTER_NAME)};
#undef COUNTER_NAME
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        bellows__v1__counter__init(&r->counters[i]);
        r->counters[i].name = (char *)(uintptr_t)names[i];
        r->counters[i].value = counts[i];
        r->counter_ptrs[i] = &r->counters[i];
    }
    m->n_counters = COUNT_OF(names);
    m->counters = r->counter_ptrs;
}

static void send_report(struct coordinator *c, struct report *r, const uint64_t *counts) {
    Bellows__V1__FleetReport m = BELLOWS__V1__FLEET_REPORT__INIT;
    AUTO(bytes_free) struct bytes_mut packed = {0};
    const struct survey *s = &r->survey;
    m.version = WIRE_VERSION;
    m.leader = c->name;
    m.term = lead_term(c->lead);
    m.at_unix_ms = clock_unix_ns() / 1000000;
    m.ready = c->caught_up;
    m.jobs_open = s->jobs_open;
    m.partitions_queued = s->queued;
    m.partitions_placed = s->placed;
    m.partitions_running = s->running;
    m.lanes_open = s->lanes_open;
    m.lanes_known = s->lanes_known;
    m.backlog_ns = s->backlog_ns;
    m.backlog_wall_ns = s->backlog_wall_ns;
    m.deadlines_at_risk = s->deadlines_at_risk;
    fill_queues(&m, r);
    fill_counters(&m, r, counts);
    if (message_pack(&packed, &m, MESSAGE_BYTES_MAX, "fleet report") == OK) {
        struct subject subject = subject_telemetry_fleet(&c->space);
        IGNORE(transport_send(c->links.feed, subject.text, bytes_of(packed.ptr, packed.len)));
    }
}

void tell_fleet(struct coordinator *c) {
    uint64_t start_ns = clock_ns(), counts[METRIC_DECISION_COUNT];
    AUTO(mem_free_ptr) struct report *report = NULL;
    if (start_ns < c->tell_again_ns || mem_new(&report, 1, sizeof *report) != OK) {
        return;
    }
    survey_take(&report->survey, &c->backlog, &c->lanes, start_ns);
    read_counts(counts, c);
    set_metrics(c, &report->survey, counts);
    for (size_t i = 0; i < c->backlog.tenants_count; i++) {
        stores_note(c->stores, c->backlog.tenants[i].name);
    }
    send_report(c, report, counts);
    uint64_t spent_ns = clock_ns() - start_ns;
    c->tell_again_ns = start_ns + (spent_ns * SHARE > PACE_NS ? spent_ns * SHARE : PACE_NS);
}
