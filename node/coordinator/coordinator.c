/* The loop: stand by until the lease is held, then lead until it is lost or the end comes.
 *
 *   lead:  ensure streams ─▶ feeds start ─▶ { take an event, apply it to the index; every 100 ms the tick; place if due } ─▶ feeds stop
 *
 * The tick finds by looking what events may have missed: silent lanes, lost partitions, deadlines, joins and deaths that could not
 * be finished while the server was away.
 */
#include "node/coordinator/coordinator.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/coordinator/floor.h"
#include "node/coordinator/work.h"
#include "proto/fleet.pb-c.h"

static const uint64_t TICK_NS = UINT64_C(100000000);
static const uint64_t STAND_BY_NS = UINT64_C(100000000);
static const uint64_t SILENCE_NS =
    UINT64_C(3200000000); /* three beats missed, and elsewhere within 4 s */
static const uint64_t MISSED_MS = 15 * 60 * 1000;
static const uint64_t HOPE_NS = UINT64_C(1500000000);
static const uint64_t ENSURE_NS = UINT64_C(5000000000);
static const uint64_t FLOOR_NS = UINT64_C(5000000000);
enum {
    ENSURE_TRIES = 6, /* of five seconds each when nobody answers */
    EVENTS_PER_ROUND = 4096
}; /* a thousand lanes beat each second, and a round takes round trips */

/* --- Events --- */

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

/* Jobs that ended while nobody led, or whose purge died with the last leader: those of long ago have been purged. */
static void purge_missed(struct coordinator *c, const struct record *r) {
    AUTO(message_free) job_message *job = NULL;
    uint64_t now_ms = clock_unix_ns() / 1000000;
    if (!c->caught_up && r->job.len > 0 && now_ms <= r->updated_unix_ms + MISSED_MS &&
        job_unpack(&job, bytes_of(r->job.ptr, r->job.len), NULL, UINT64_MAX) == OK) {
        janitor_add_job(c->janitor, job, NULL, NULL);
    }
}

static void on_record(struct coordinator *c, const struct kv_entry *entry) {
    char tenant[ID_BYTES_MAX + 1], job_id[ID_BYTES_MAX + 1];
    if (entry->operation != KV_PUT || job_key_parse(tenant, job_id, entry->key) != OK) {
        return;
    }
    struct job_name name = {tenant, job_id};
    struct job_view *view = backlog_find(&c->backlog, name);
    if (view && entry->revision <= view->revision) {
        return; /* our own write, or older */
    }
    AUTO(record_done) struct record r = {0};
    enum err code = record_unpack(&r, entry->value);
    if (code == OK && !job_state_is_open(r.state)) {
        if (view && r.generation >= view->generation) {
            ending_forget(c, view, r.state == JOB_DONE);
        } else if (!view) {
            purge_missed(c, &r);
        }
        return;
    }
    if (code == OK) {
        code = backlog_put(&view, &c->backlog, name, &r, entry->value, entry->revision, clock_ns());
    }
    if (code != OK) {
        char quoted[ERR_DETAIL_BYTES + 64];
        c->backlog.incomplete = true;
        log_error("record.unreadable", "job=%s tenant=%s detail=%s", job_id, tenant,
                  log_quote(quoted, sizeof quoted, err_detail()));
        return;
    }
    c->placing_due = true;
    c->ending_due |= view->joining && view->parts_count > 1;
}

/* Marks what the lane has, or has not started, and takes it back at once. */
static void lose(struct coordinator *c, size_t lane_idx, enum part_loss loss) {
    for (struct part_view *part = c->lanes.views[lane_idx].held; part; part = part->held_next) {
        if (part->state == JOB_PLACED || loss == PART_LOST) {
            part->loss = loss;
        }
    }
    take_back_from_lane(c, lane_idx);
}

static void purge_lane(struct coordinator *c, size_t lane_idx) {
    struct subject stream = stream_name(&c->space, "LANES");
    struct subject own = subject_lane(&c->space, lane_name_of(&c->lanes.views[lane_idx].ref));
    IGNORE(stream_purge(NULL, c->links.control, stream.text, own.text));
}

static void lane_is_gone(struct coordinator *c, size_t lane_idx, const char *event) {
    const struct lane_view *v = &c->lanes.views[lane_idx];
    log_warn(event, "node=%s gpu=%u session=%s", v->ref.node, v->ref.gpu, v->session);
    purge_lane(c, lane_idx);
    lose(c, lane_idx, PART_LOST);
}

static void on_heartbeat(struct coordinator *c, const struct message *m) {
    enum lane_news news = LANE_NEWS_NONE;
    size_t idx = 0;
    if (lanes_hear(&news, &idx, &c->lanes, m->data, clock_ns()) != OK) {
        char quoted[ERR_DETAIL_BYTES + 64];
        log_warn("heartbeat.unreadable", "detail=%s",
                 log_quote(quoted, sizeof quoted, err_detail()));
        return;
    }
    const struct lane_view *v = &c->lanes.views[idx];
    switch (news) {
    case LANE_NEWS_CAME:
        log_info("lane.came", "node=%s gpu=%u session=%s", v->ref.node, v->ref.gpu, v->session);
        break;
    case LANE_NEWS_REBORN: /* what lay before its predecessor is placed anew */
        log_warn("lane.reborn", "node=%s gpu=%u session=%s", v->ref.node, v->ref.gpu, v->session);
        purge_lane(c, idx);
        lose(c, idx, PART_LOST);
        break;
    case LANE_NEWS_LEAVING:
        log_info("lane.leaving", "node=%s gpu=%u", v->ref.node, v->ref.gpu);
        lose(c, idx, PART_LEFT_BEHIND);
        break;
    case LANE_NEWS_DIED:
        lane_is_gone(c, idx, "lane.ended");
        break;
    case LANE_NEWS_GHOST:
        log_error("lane.twice", "node=%s gpu=%u hint=\"two nodes of one name?\"", v->ref.node,
                  v->ref.gpu);
        return;
    case LANE_NEWS_NONE:
        return;
    }
    c->placing_due = true;
}

static enum err read_cancel(struct end_order *out, Bellows__V1__Control **request,
                            const struct coordinator *c, const struct message *m) {
    TRY(message_unpack(request, &bellows__v1__control__descriptor, m->data, CONTROL_BYTES_MAX,
                       "cancel request"));
    const Bellows__V1__Control *control = *request;
    struct subject_parts asked;
    TRY(subject_parse(&asked, &c->space, m->subject));
    TRY(id_check(control->tenant, "tenant"));
    TRY(id_check(control->job_id, "job"));
    REQUIRE(!strcmp(asked.tenant, control->tenant), E_FORMAT,
            "a request about tenant %s came on the subject of tenant %s", control->tenant,
            asked.tenant);
    *out = (struct end_order){
        .name = own_name_of((struct job_name){control->tenant, control->job_id}),
        .kind = END_CANCELLED,
        .why = control->reason[0] ? control->reason : "cancelled on request",
        .generation = control->generation,
    };
    return OK;
}

static void answer_cancel(struct coordinator *c, const struct message *m, const struct end_order *s,
                          uint64_t start_ns) {
    Bellows__V1__ControlReply reply = BELLOWS__V1__CONTROL_REPLY__INIT;
    AUTO(bytes_free) struct bytes_mut packed = {0};
    enum err code = s->fault.code;
    reply.version = WIRE_VERSION;
    reply.ok = code == OK;
    reply.state =
        code == OK ? (Bellows__V1__JobState)s->state : BELLOWS__V1__JOB_STATE__JOB_STATE_UNKNOWN;
    reply.error_name = (char *)(uintptr_t)(code == OK ? "" : err_name(code));
    reply.error_detail = (char *)(uintptr_t)(code == OK ? "" : s->fault.detail);
    if (message_pack(&packed, &reply, CONTROL_BYTES_MAX, "control reply") == OK) {
        IGNORE(message_respond(c->links.control, m, bytes_of(packed.ptr, packed.len)));
    }
    service_note(c->service, 0, clock_ns() - start_ns, code == OK ? NULL : reply.error_name);
}

/* All that have come in together. */
static void stop_asked(struct coordinator *c) {
    Bellows__V1__Control *requests[ENDINGS_MAX] = {NULL};
    struct end_order stops[ENDINGS_MAX];
    size_t of_message[ENDINGS_MAX], count = 0;
    uint64_t start_ns = clock_ns();
    for (size_t i = 0; i < c->asked_count; i++) {
        enum err code = read_cancel(&stops[count], &requests[i], c, &c->asked[i]);
        if (code != OK) {
            struct end_order refused = {.fault = fault_of(code)};
            answer_cancel(c, &c->asked[i], &refused, start_ns);
        } else {
            of_message[count++] = i;
        }
    }
    endings_make(c, stops, count);
    for (size_t i = 0; i < count; i++) {
        answer_cancel(c, &c->asked[of_message[i]], &stops[i], start_ns);
    }
    for (size_t i = 0; i < c->asked_count; i++) {
        message_free(&requests[i]);
        message_done(&c->asked[i]);
        c->asked[i] = (struct message){0};
    }
    c->asked_count = 0;
}

/* As long as not every living lane can have been heard. */
static bool is_hopeful(const struct coordinator *c) {
    return clock_ns() - c->led_since_ns < HOPE_NS;
}

static void take_arrived(struct coordinator *c) {
    intake_take(c, c->arrived, c->arrived_count);
    for (size_t i = 0; i < c->arrived_count; i++) {
        message_done(&c->arrived[i]);
        c->arrived[i] = (struct message){0};
    }
    c->arrived_count = 0;
}

static void apply(struct coordinator *c, struct event *e) {
    size_t idx;
    c->heard_until_ns = e->heard_ns;
    switch (e->kind) {
    case EVENT_JOB: /* together with others that come with it */
        c->arrived[c->arrived_count++] = e->message;
        e->message = (struct message){0};
        if (c->arrived_count == INTAKE_BATCH) {
            take_arrived(c);
        }
        break;
    case EVENT_RECORD:
        on_record(c, &e->entry);
        c->read_revision = e->entry.revision;
        break;
    case EVENT_NAMED:
        on_record(c, &e->entry);
        break;
    case EVENT_LANE:
        if (e->entry.operation == KV_PUT &&
            lanes_read_info(&idx, &c->lanes, e->entry.value, clock_ns(), is_hopeful(c)) == OK) {
            c->placing_due = true;
        }
        break;
    case EVENT_HEARTBEAT:
        on_heartbeat(c, &e->message);
        break;
    case EVENT_CONTROL: /* together with others, too */
        c->asked[c->asked_count++] = e->message;
        e->message = (struct message){0};
        if (c->asked_count == ENDINGS_MAX) {
            stop_asked(c);
        }
        break;
    case EVENT_CAUGHT_UP:
        c->caught_up = true;
        place_again(c);
        log_info("coordinator.ready", "jobs=%zu", c->backlog.count);
        atomic_store(&c->ready, true);
        break;
    }
    event_done(e);
}

/* --- The tick --- */

/* Never past a record that found no place here: the next leader must meet it again. */
static void keep_floor(struct coordinator *c) {
    if (!c->caught_up || c->read_revision == c->floor_written || c->backlog.incomplete) {
        return;
    }
    c->clean_revision = janitor_is_clean(c->janitor) ? c->read_revision : c->clean_revision;
    c->floor_ns = clock_ns();
    if (floor_write(c->links.control, &c->space, &c->backlog, c->read_revision,
                    c->clean_revision) == OK) {
        c->floor_written = c->read_revision + 1; /* its own entry is read, too */
    }
}

static void tick(struct coordinator *c) {
    uint64_t now_ns = clock_ns();
    struct transport_health health;
    transport_health(&health, c->links.feed);
    if (!health.connected || health.disconnects_count != c->disconnects_seen) {
        c->disconnects_seen = health.disconnects_count;
        lanes_excuse(&c->lanes, now_ns);
    }
    for (size_t idx;
         health.connected && (idx = lanes_next_silent(&c->lanes, c->heard_until_ns,
                                                      c->config.silence_ns)) != SIZE_MAX;) {
        lane_is_gone(c, idx, "lane.silent");
    }
    if (c->caught_up && health.connected) {
        backlog_advance(&c->backlog, now_ns);
        registry_look(c);
        place_again(c);
        take_back_lost(c);
        ending_sweep(c);
        if (now_ns - c->floor_ns >= FLOOR_NS) {
            keep_floor(c);
        }
        c->placing_due = true; /* back-offs end by the clock */
    }
    size_t open = 0;
    for (size_t i = 0; i < c->lanes.count; i++) {
        open += c->lanes.views[i].open;
    }
    atomic_store(&c->lanes_open, open);
    atomic_store(&c->jobs_open, c->backlog.count);
    c->ticked_ns = now_ns;
    tell_fleet(c);
}

/* --- Leading --- */

static uint64_t reconnects(const struct coordinator *c) {
    struct transport_health health;
    transport_health(&health, c->links.control);
    return health.reconnects_count;
}

/* A server that was away may have come back with less than it had: then everything is ensured and read anew. */
static bool goes_on(const struct coordinator *c, uint64_t term) {
    return !atomic_load(&c->stopping) && lead_is_held(c->lead) && lead_term(c->lead) == term &&
           reconnects(c) == c->reconnects_seen;
}

static struct fleet_options fleet_options_of(const struct coordinator *c) {
    return (struct fleet_options){.replicas = c->config.replicas,
                                  .lane_ack_wait_ns = c->config.lane_ack_wait_ns,
                                  .lease_ttl_ns = c->config.lease_ttl_ns};
}

static enum err start_leading(struct coordinator *c) {
    struct fleet_options fleet = fleet_options_of(c);
    if (!c->ensured) { /* who stood by has just done it, and a take-over is urgent */
        TRY(fleet_ensure(c->links.control, &c->space, &fleet));
    }
    TRY(lanes_init(&c->lanes, &c->estimates));
    TRY(backlog_init(&c->backlog, &c->config.limits, c->config.job_age_max_ns, &c->lanes));
    TRY(mem_new(&c->lane_states, LANES_MAX, sizeof *c->lane_states));
    TRY(batch_open(&c->batch, c->links.control));
    TRY(queue_new(&c->events, EVENTS_MAX, sizeof(struct event)));
    TRY(janitor_open(&c->janitor, c->links.feed));
    TRY(stores_open(&c->stores, c->links.feed, &c->space, c->config.metrics));
    c->reconnects_seen = reconnects(c);
    c->caught_up = false;
    c->placing_due = true;
    c->shares = (struct schedule_shares){0};
    c->read_revision = c->clean_revision = c->floor_written = 0;
    c->floor_ns = 0;
    c->led_since_ns = c->ticked_ns = c->heard_until_ns = clock_ns();
    return feed_start(c);
}

static void stop_leading(struct coordinator *c) {
    atomic_store(&c->ready, false);
    c->ensured = false; /* a server may have come back with less */
    tell_standing_by(c);
    feed_stop(c);
    if (atomic_load(&c->stopping) && lead_is_held(c->lead)) {
        keep_floor(c); /* the next one begins where this one ends */
    }
    c->caught_up = false;
    janitor_close(&c->janitor);
    stores_close(&c->stores);
    queue_free(&c->events);
    for (size_t i = 0; i < c->arrived_count; i++) {
        message_done(&c->arrived[i]);
    }
    for (size_t i = 0; i < c->asked_count; i++) {
        message_done(&c->asked[i]);
    }
    c->arrived_count = c->asked_count = 0;
    batch_close(&c->batch);
    mem_free_ptr(&c->lane_states);
    backlog_done(&c->backlog);
    lanes_done(&c->lanes);
    estimates_forget_users(&c->estimates);
}

static void lead(struct coordinator *c, uint64_t term) {
    while (goes_on(c, term)) {
        struct event e = {0};
        uint64_t since_ns = clock_ns() - c->ticked_ns;
        uint64_t wait_ns = since_ns < TICK_NS ? TICK_NS - since_ns : 0;
        for (int n = 0; n < EVENTS_PER_ROUND && queue_take(c->events, &e, n ? 0 : wait_ns) == OK;
             n++) {
            apply(c, &e);
        }
        if (c->arrived_count > 0) {
            take_arrived(c);
        }
        if (c->asked_count > 0) {
            stop_asked(c);
        }
        if (c->ending_due && c->caught_up) {
            c->ending_due = false;
            ending_sweep(c);
        }
        if (queue_length(c->events) == 0) {
            c->heard_until_ns = clock_ns();
        }
        if (clock_ns() - c->ticked_ns >= TICK_NS) {
            tick(c);
        }
        if (c->placing_due && c->caught_up) {
            place_round(c);
        }
    }
}

/* Nobody can lead where the bucket of the lease is gone. */
static void ensure_now_and_then(struct coordinator *c) {
    if (clock_ns() - c->ensured_ns > ENSURE_NS) {
        struct fleet_options fleet = fleet_options_of(c);
        c->ensured = fleet_ensure(c->links.control, &c->space, &fleet) == OK;
        c->ensured_ns = clock_ns();
    }
}

/* A cluster that has just come together leaves requests unanswered for a while. */
static enum err ensure_at_start(struct coordinator *c) {
    struct fleet_options fleet = fleet_options_of(c);
    for (unsigned n = 1;; n++) {
        enum err code = fleet_ensure(c->links.control, &c->space, &fleet);
        if ((code != E_TIMEOUT && code != E_NET) || n == ENSURE_TRIES) {
            return code;
        }
        char quoted[ERR_DETAIL_BYTES + 64];
        log_warn("coordinator.waits", "detail=%s", log_quote(quoted, sizeof quoted, err_detail()));
        clock_sleep_ns(STAND_BY_NS);
    }
}

static void *coordinator_main(void *ctx) {
    struct coordinator *c = ctx;
    while (!atomic_load(&c->stopping)) {
        if (!lead_is_held(c->lead)) {
            clock_sleep_ns(STAND_BY_NS);
            ensure_now_and_then(c);
            continue;
        }
        uint64_t term = lead_term(c->lead);
        log_info("coordinator.leads", "name=%s term=%llu", c->name, (unsigned long long)term);
        enum err code = start_leading(c);
        if (code == OK) {
            lead(c, term);
        } else {
            char quoted[ERR_DETAIL_BYTES + 64];
            log_error("coordinator.failed", "error=%s detail=%s", err_name(code),
                      log_quote(quoted, sizeof quoted, err_detail()));
            clock_sleep_ns(STAND_BY_NS * 5);
        }
        stop_leading(c);
        log_info("coordinator.stands_by", "name=%s", c->name);
    }
    return NULL;
}

/* --- Life --- */

static void apply_defaults(struct coordinator_config *c) {
    const struct record_limits *d = &record_limits_default;
    c->limits.attempts_max = c->limits.attempts_max ? c->limits.attempts_max : d->attempts_max;
    c->limits.deaths_max = c->limits.deaths_max ? c->limits.deaths_max : d->deaths_max;
    c->limits.refusals_max = c->limits.refusals_max ? c->limits.refusals_max : d->refusals_max;
    c->silence_ns = c->silence_ns ? c->silence_ns : SILENCE_NS;
    c->lease_ttl_ns = c->lease_ttl_ns ? c->lease_ttl_ns : LEASE_TTL_NS;
}

enum err coordinator_open(struct coordinator **out, const struct coordinator_config *config,
                          const struct coordinator_links *links) {
    AUTO(coordinator_close) struct coordinator *c = NULL;
    TRY(mem_new(&c, 1, sizeof *c));
    c->config = *config;
    apply_defaults(&c->config);
    c->links = *links;
    snprintf(c->name, sizeof c->name, "%s", config->name);
    TRY(subject_space_init(&c->space, config->prefix));
    TRY(estimates_init(&c->estimates));
    /* The bucket of the lease must be there before anybody can lead. */
    TRY(ensure_at_start(c));
    c->ensured = true;
    c->ensured_ns = clock_ns();
    TRY(lead_open(&c->lead, links->lease, &c->space, c->name, c->config.lease_ttl_ns));
    TRY(discover_open(c));
    int rc = pthread_create(&c->thread, NULL, coordinator_main, c);
    REQUIRE(rc == 0, E_LIMIT, "no thread for the coordinator: %s", strerror(rc));
    c->thread_runs = true;
    *out = TAKE(c);
    return OK;
}

void coordinator_close(struct coordinator **c) {
    if (!*c) {
        return;
    }
    atomic_store(&(*c)->stopping, true);
    if ((*c)->thread_runs) {
        pthread_join((*c)->thread, NULL);
    }
    service_close(&(*c)->service);
    lead_close(&(*c)->lead);
    estimates_done(&(*c)->estimates);
    mem_free_ptr(c);
}

bool coordinator_is_ready(const struct coordinator *c) {
    return atomic_load(&c->ready);
}

struct coordinator_counts coordinator_counts_of(const struct coordinator *c) {
    return (struct coordinator_counts){
        .jobs_open = atomic_load(&c->jobs_open),
        .lanes_open = atomic_load(&c->lanes_open),
        .taken_in = atomic_load(&c->taken_in),
        .refused = atomic_load(&c->refused),
        .placed = atomic_load(&c->placed),
        .taken_back = atomic_load(&c->taken_back),
        .joined = atomic_load(&c->joined),
        .expired = atomic_load(&c->expired),
        .cancelled = atomic_load(&c->cancelled),
        .dead = atomic_load(&c->dead),
    };
}
