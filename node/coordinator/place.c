/* From the backlog to the lanes and back.
 *
 * A placement is recorded first and published second. A crash in between leaves a record that says "placed" and a lane that knows
 * nothing of it; the next leader publishes every placed assignment again, and the server drops those it has seen, by message id.
 */
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/coordinator/work.h"
#include "proto/fleet.pb-c.h"

enum { PICKS_MAX = 256, PUBLISH_TRIES = 3 };
static const uint64_t WORK_LEAST_NS = UINT64_C(100000000);
static const uint64_t URGENT_BEFORE_NS = UINT64_C(10000000000);
static const uint64_t SETTLED_NS = UINT64_C(3000000000);

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

static uint64_t now_unix_ms(void) {
    return clock_unix_ns() / 1000000;
}

/* --- Publishing an assignment --- */

static enum err publish(struct coordinator *c, const struct job_place *at, const struct record *r,
                        uint32_t idx) {
    Bellows__V1__Assignment m = BELLOWS__V1__ASSIGNMENT__INIT;
    const struct record_part *part = &r->parts[idx];
    AUTO(bytes_free) struct bytes_mut packed = {0};
    m.version = WIRE_VERSION;
    m.job = (ProtobufCBinaryData){r->job.len, r->job.ptr};
    m.generation = r->generation;
    m.epoch = part->epoch;
    m.partition_index = idx;
    m.attempt = part->tries_count + 1;
    TRY(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "assignment"));
    struct subject id = message_id_of_assignment(at->name, r->generation, part->epoch, idx);
    struct subject lane = subject_lane(&c->space, lane_name_of(&part->lane));
    struct publish_options options = {.message_id = id.text};
    struct publish_ack ack;
    enum err code = E_TIMEOUT;
    for (int n = 0; n < PUBLISH_TRIES && code == E_TIMEOUT;
         n++) { /* the id makes repeats harmless */
        code = transport_publish(&ack, c->links.control, lane.text,
                                 bytes_of(packed.ptr, packed.len), &options);
    }
    return code;
}

struct taking {
    uint32_t idx;
    uint64_t epoch;
    bool died;
    const char *why;
};

static enum record_answer change_take_back(struct record *r, void *ctx) {
    const struct taking *t = ctx;
    return record_take_back(r, t->idx, t->epoch, t->died, t->why, now_unix_ms());
}

static void take_back(struct coordinator *c, struct job_view *job, uint32_t idx, bool died,
                      const char *why) {
    struct job_place at = place_of(c, job_name_of(job));
    struct taking taking = {idx, job->parts[idx].epoch, died, why};
    AUTO(record_slot_done) struct record_slot slot = {0};
    enum record_answer answer;
    if (record_apply(&answer, &slot, &at, job->generation, change_take_back, &taking) != OK) {
        return; /* still marked as lost: tried again at the next tick */
    }
    if (answer == RECORD_MOVED) {
        atomic_fetch_add(&c->taken_back, 1);
        log_warn("job.taken_back", "job=%s tenant=%s part=%u node=%s gpu=%u died=%d", job->job,
                 job->tenant, idx, job->parts[idx].lane.node, job->parts[idx].lane.gpu, died);
    }
    job->parts[idx].loss = PART_NOT_LOST;
    if (slot.loaded && job_state_is_open(slot.record.state)) {
        IGNORE(backlog_put(NULL, &c->backlog, at.name, &slot.record, slot.revision, clock_ns()));
    }
    c->placing_due = true;
}

/* --- One placement --- */

static enum err place(struct coordinator *c, struct job_view *job, uint32_t idx, size_t lane_idx,
                      uint64_t cost_ns) {
    struct job_place at = place_of(c, job_name_of(job));
    struct lane_view *lane = &c->lanes.views[lane_idx];
    AUTO(record_slot_done) struct record_slot slot = {0};
    bool found = false, won = false;
    TRY(record_load(&slot, &found, &at));
    bool as_known = found && slot.record.generation == job->generation &&
                    slot.record.parts[idx].epoch == job->parts[idx].epoch;
    if (!as_known || record_place(&slot.record, idx, &lane->ref, now_unix_ms()) != RECORD_MOVED) {
        return OK; /* the watch will tell what happened to it */
    }
    TRY(record_replace(&won, &slot, &at));
    if (!won) {
        return OK;
    }
    TRY(backlog_put(NULL, &c->backlog, at.name, &slot.record, slot.revision, clock_ns()));
    job->parts[idx].cost_ns = cost_ns;
    enum err code = publish(c, &at, &slot.record, idx);
    if (code != OK) {
        struct fault fault = fault_of(code);
        lane->open = code != E_QUEUE; /* full: until its next heartbeat */
        job->parts[idx].loss = PART_LEFT_BEHIND;
        take_back(c, job, idx, false, "the assignment could not be sent");
        return fault_raise(&fault);
    }
    struct job_event event = {.generation = job->generation,
                              .epoch = slot.record.parts[idx].epoch,
                              .state = JOB_PLACED,
                              .lane = lane_name_of(&lane->ref),
                              .partition_index = idx};
    job_event_send(&at, &event);
    atomic_fetch_add(&c->placed, 1);
    c->turn++;
    c->backlog.served_ns[job->tenant_idx] += cost_ns;
    return OK;
}

/* --- Rounds --- */

struct round {
    struct coordinator *c;
    struct schedule_item *items; /* owned */
    struct part_at {
        struct job_view *job;
        uint32_t idx;
    } * places; /* owned; of the items */
    size_t items_count;
    struct schedule_lane *lanes; /* owned */
};

static void round_done(struct round *r) {
    mem_free(r->items);
    mem_free(r->places);
    mem_free(r->lanes);
}

/* What each lane holds, by the records; returns how many partitions wait. */
static size_t count_work(struct coordinator *c) {
    size_t waiting = 0;
    for (size_t i = 0; i < c->lanes.count; i++) {
        c->lanes.views[i].jobs_held = 0;
        c->lanes.views[i].queued_ns = 0;
    }
    for (size_t i = 0; i < c->backlog.count; i++) {
        const struct job_view *job = c->backlog.jobs[i];
        for (uint32_t k = 0; k < job->parts_count; k++) {
            const struct part_view *part = &job->parts[k];
            waiting += part->state == JOB_QUEUED;
            if (part->state == JOB_PLACED || part->state == JOB_RUNNING) {
                size_t lane_idx = lanes_find(&c->lanes, &part->lane);
                if (lane_idx != SIZE_MAX) {
                    struct lane_view *lane = &c->lanes.views[lane_idx];
                    lane->jobs_held++;
                    lane->queued_ns +=
                        part->cost_ns ? part->cost_ns
                                      : lanes_cost(&c->lanes, lane_idx, &job->key_digest).job_ns;
                }
            }
        }
    }
    return waiting;
}

static struct schedule_depth depth_of(const struct coordinator *c) {
    uint32_t wanted = 1;
    for (size_t i = 0; i < c->lanes.count; i++) {
        uint32_t w = c->lanes.views[i].depth_wanted;
        wanted = w > wanted ? w : wanted;
    }
    return (struct schedule_depth){wanted, WORK_LEAST_NS, LANE_DEPTH_MAX};
}

static bool was_refused_by(const struct part_view *part, const struct lane_ref *lane) {
    for (uint32_t i = 0; i < part->refused_count; i++) {
        if (part->refused[i].gpu == lane->gpu && !strcmp(part->refused[i].node, lane->node)) {
            return true;
        }
    }
    return false;
}

/* Is there an open lane that has not given it back yet? Then those that have are not asked again. */
static bool has_untried_lane(const struct coordinator *c, const struct part_view *part) {
    for (size_t i = 0; i < c->lanes.count; i++) {
        if (c->lanes.views[i].open && !was_refused_by(part, &c->lanes.views[i].ref)) {
            return true;
        }
    }
    return false;
}

static uint64_t item_cost(void *ctx, size_t item_idx, size_t lane_idx) {
    const struct round *r = ctx;
    const struct job_view *job = r->places[item_idx].job;
    const struct part_view *part = &job->parts[r->places[item_idx].idx];
    const struct lane_view *lane = &r->c->lanes.views[lane_idx];
    if (part->refused_count > 0 && was_refused_by(part, &lane->ref) &&
        has_untried_lane(r->c, part)) {
        return SCHEDULE_NEVER;
    }
    struct lane_cost cost = lanes_cost(&r->c->lanes, lane_idx, &job->key_digest);
    return cost.job_ns + cost.load_ns;
}

static enum err round_init(struct round *r, struct coordinator *c, size_t waiting) {
    *r = (struct round){.c = c};
    TRY(mem_new(&r->items, waiting, sizeof *r->items));
    TRY(mem_new(&r->places, waiting, sizeof *r->places));
    TRY(mem_new(&r->lanes, c->lanes.count, sizeof *r->lanes));
    uint64_t now_ns = clock_ns();
    for (size_t i = 0; i < c->backlog.count; i++) {
        struct job_view *job = c->backlog.jobs[i];
        uint64_t urgent_ns = job->deadline_ns > URGENT_BEFORE_NS
                                 ? job->deadline_ns - URGENT_BEFORE_NS
                                 : job->deadline_ns;
        for (uint32_t k = 0; k < job->parts_count; k++) {
            if (job->parts[k].state != JOB_QUEUED || job->used_up ||
                backlog_is_expired(job, now_ns)) {
                continue;
            }
            r->places[r->items_count] = (struct part_at){job, k};
            r->items[r->items_count++] =
                (struct schedule_item){.order = job->order,
                                       .urgent_ns = urgent_ns,
                                       .not_before_ns = job->parts[k].not_before_ns,
                                       .partition_idx = k,
                                       .tenant_idx = job->tenant_idx,
                                       .priority = job->priority};
        }
    }
    for (size_t i = 0; i < c->lanes.count; i++) {
        const struct lane_view *v = &c->lanes.views[i];
        r->lanes[i] = (struct schedule_lane){v->queued_ns, v->jobs_held, v->open};
    }
    return OK;
}

static enum err run_round(struct coordinator *c, size_t waiting) {
    AUTO(round_done) struct round r = {0};
    struct schedule_pick picks[PICKS_MAX];
    size_t picks_count = 0;
    TRY(round_init(&r, c, waiting));
    struct schedule_view view = {
        .items = r.items,
        .items_count = r.items_count,
        .lanes = r.lanes,
        .lanes_count = c->lanes.count,
        .tenants_served_ns = c->backlog.served_ns,
        .tenants_count = c->backlog.tenants_count,
        .depth = depth_of(c),
        .turn = c->turn,
        .now_ns = clock_ns(),
        .cost = item_cost,
        .cost_ctx = &r,
    };
    TRY(schedule_round(picks, &picks_count, PICKS_MAX, &view));
    for (size_t i = 0; i < picks_count; i++) {
        const struct part_at *at = &r.places[picks[i].item_idx];
        TRY(place(c, at->job, at->idx, picks[i].lane_idx, picks[i].cost_ns));
    }
    c->placing_due = picks_count == PICKS_MAX; /* there may be more */
    return OK;
}

void place_round(struct coordinator *c) {
    c->placing_due = false;
    size_t waiting = count_work(c);
    bool room = false;
    struct schedule_depth depth = depth_of(c);
    for (size_t i = 0; i < c->lanes.count; i++) {
        const struct lane_view *v = &c->lanes.views[i];
        struct schedule_lane lane = {v->queued_ns, v->jobs_held, v->open};
        room |= schedule_has_room(&lane, &depth);
    }
    if (waiting > 0 && room) {
        enum err code = run_round(c, waiting);
        if (code != OK) {
            char quoted[ERR_DETAIL_BYTES + 64];
            log_warn("placing.interrupted", "error=%s detail=%s", err_name(code),
                     log_quote(quoted, sizeof quoted, err_detail()));
        }
    }
}

void place_again(struct coordinator *c) {
    for (size_t i = 0; i < c->backlog.count; i++) {
        struct job_view *job = c->backlog.jobs[i];
        struct job_place at = place_of(c, job_name_of(job));
        AUTO(record_slot_done) struct record_slot slot = {0};
        bool found = false;
        for (uint32_t k = 0; k < job->parts_count; k++) {
            if (job->parts[k].state != JOB_PLACED ||
                (!slot.loaded && record_load(&slot, &found, &at) != OK) || !slot.loaded ||
                slot.record.generation != job->generation ||
                slot.record.parts[k].state != JOB_PLACED) {
                continue;
            }
            IGNORE(publish(c, &at, &slot.record, k));
        }
    }
}

/* --- Taking back --- */

/* A lane that says it holds nothing, again and again, has lost what was placed there long before. */
static bool was_lost_on_the_way(const struct coordinator *c, const struct part_view *part,
                                const struct lane_view *lane, uint64_t now_ns) {
    return lane->alive && lane->empty_since_ns && now_ns - lane->empty_since_ns > SETTLED_NS &&
           now_ns - part->known_ns > SETTLED_NS && now_ns - c->led_since_ns > SETTLED_NS;
}

static void judge_part(struct coordinator *c, struct job_view *job, uint32_t idx, uint64_t now_ns) {
    struct part_view *part = &job->parts[idx];
    if (part->state != JOB_PLACED && part->state != JOB_RUNNING) {
        return;
    }
    size_t lane_idx = lanes_find(&c->lanes, &part->lane);
    const struct lane_view *lane = lane_idx == SIZE_MAX ? NULL : &c->lanes.views[lane_idx];
    bool heard = lane && lane->session[0];
    uint64_t since_ns = part->known_ns > c->led_since_ns ? part->known_ns : c->led_since_ns;
    if (part->loss == PART_LOST) {
        take_back(c, job, idx, true, "the lane's process died");
    } else if (part->loss == PART_LEFT_BEHIND) {
        take_back(c, job, idx, false, "the lane goes away");
    } else if (heard && !lane->alive) {
        take_back(c, job, idx, true, "the lane is silent");
    } else if (!heard && now_ns - since_ns > c->config.silence_ns) {
        take_back(c, job, idx, true, "the lane was never heard of");
    } else if (heard && was_lost_on_the_way(c, part, lane, now_ns)) {
        take_back(c, job, idx, false, "the lane does not hold it");
    }
}

void place_take_back(struct coordinator *c) {
    uint64_t now_ns = clock_ns();
    for (size_t i = 0; i < c->backlog.count; i++) {
        struct job_view *job = c->backlog.jobs[i];
        for (uint32_t k = 0; k < job->parts_count; k++) {
            judge_part(c, job, k, now_ns);
        }
    }
}
