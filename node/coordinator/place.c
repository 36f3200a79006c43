/* From the backlog to the lanes.
 *
 * A placement is recorded first and published second. A crash in between leaves a record that says "placed" and a lane that knows
 * nothing of it; what is not known to be published is published again by whoever leads, and the server drops what it has, by message
 * id. All placements of a round take each step together:
 *
 *   records that are not kept are read ─▶ all are written, by compare-and-set ─▶ the assignments of those that won are published
 *
 * so a round costs two or three round trips whether it places one partition or two hundred.
 */
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/coordinator/round.h"
#include "proto/fleet.pb-c.h"

static const uint64_t WORK_LEAST_NS = UINT64_C(100000000);
static const uint64_t GAIN_LEAST_NS = UINT64_C(200000000);

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

static enum record_answer change_place(struct record *record, struct round *r,
                                       const struct round_part *part, struct part_view *known) {
    return record->parts[part->idx].epoch == known->epoch
               ? record_place(record, part->idx, &r->c->lanes.views[part->lane_idx].ref,
                              clock_unix_ns() / 1000000)
               : RECORD_STALE;
}

/* --- Publishing --- */

static void ask_publish(struct round *r, struct round_part *part) {
    struct round_job *job = &r->jobs[part->job_idx];
    const struct record *record = &job->slot.record;
    const struct record_part *at = &record->parts[part->idx];
    Bellows__V1__Assignment m = BELLOWS__V1__ASSIGNMENT__INIT;
    AUTO(bytes_free) struct bytes_mut packed = {0};
    m.version = WIRE_VERSION;
    m.job = (ProtobufCBinaryData){record->job.len, record->job.ptr};
    m.generation = record->generation;
    m.epoch = at->epoch;
    m.partition_index = part->idx;
    m.attempt = at->tries_count + 1;
    m.budget_ns = job->view->parts[part->idx].cost_ns;
    struct subject id =
        message_id_of_assignment(job_name_of(job->view), record->generation, at->epoch, part->idx);
    struct subject lane = subject_lane(&r->c->space, lane_name_of(&at->lane));
    struct publish_options options = {.message_id = id.text};
    if (message_pack(&packed, &m, ASSIGNMENT_BYTES_MAX, "assignment") == OK) {
        part->request = batch_count(r->c->batch);
        if (batch_publish(r->c->batch, lane.text, bytes_of(packed.ptr, packed.len), &options) !=
            OK) {
            part->request = SIZE_MAX;
        }
    }
}

static void note_placed(struct coordinator *c, struct part_view *part) {
    struct job_place at = place_of(c, job_name_of(part->job));
    struct job_event event = {.generation = part->job->generation,
                              .epoch = part->epoch,
                              .state = JOB_PLACED,
                              .lane = lane_name_of(&part->lane),
                              .partition_index = part->item.partition_idx};
    job_event_send(&at, &event);
    atomic_fetch_add(&c->placed, 1);
}

static void take_publish(struct round *r, const struct round_part *part) {
    struct part_view *view = &r->jobs[part->job_idx].view->parts[part->idx];
    const struct batch_answer *a =
        part->request == SIZE_MAX ? NULL : batch_answer(r->c->batch, part->request);
    if (a && a->fault.code == OK) {
        view->sent = true;
        note_placed(r->c, view);
        return;
    }
    if (a && err_class(a->fault.code) == CLASS_BUSY) { /* the lane's stream is full */
        size_t lane_idx = lanes_find(&r->c->lanes, &view->lane);
        if (lane_idx != SIZE_MAX) {
            r->c->lanes.views[lane_idx].full = true;
        }
        view->loss = PART_LEFT_BEHIND;
    }
    backlog_note_due(&r->c->backlog, view->job); /* sent again, or taken back, at the next tick */
}

static void publish_parts(struct round *r) {
    for (size_t i = 0; i < r->parts_count; i++) {
        if (r->parts[i].moved && r->jobs[r->parts[i].job_idx].view) {
            ask_publish(r, &r->parts[i]);
        }
    }
    batch_wait(r->c->batch, 0);
    for (size_t i = 0; i < r->parts_count; i++) {
        if (r->parts[i].moved && r->jobs[r->parts[i].job_idx].view) {
            take_publish(r, &r->parts[i]);
        }
    }
    batch_clear(r->c->batch);
}

/* --- Accounting --- */

/* What was placed is work of its lane and of its tenant, at the cost that it was chosen for. */
static void account(struct round *r) {
    struct backlog *b = &r->c->backlog;
    for (size_t i = 0; i < r->parts_count; i++) {
        const struct round_part *part = &r->parts[i];
        const struct round_job *job = &r->jobs[part->job_idx];
        if (!part->moved || !job->view) {
            continue;
        }
        uint64_t cost_ns = part->cost.job_ns + part->cost.load_ns;
        bool waiting[SCHEDULE_PRIORITIES];
        for (int p = 0; p < SCHEDULE_PRIORITIES; p++) {
            waiting[p] = b->waiting_by_priority[p] > 0;
        }
        backlog_set_cost(b, &job->view->parts[part->idx], cost_ns, part->cost.load_ns > 0);
        schedule_account(&r->c->shares, waiting, job->view->priority, cost_ns);
        backlog_charge(b, job->view->tenant_idx, cost_ns);
    }
}

/* --- Choosing --- */

static bool fits_nowhere(const struct coordinator *c, uint32_t key_idx) {
    for (size_t i = 0; i < c->lanes.count; i++) {
        if (c->lanes.views[i].open &&
            lanes_cost(&c->lanes, i, key_idx, c->round_ns).job_ns != SCHEDULE_NEVER) {
            return false;
        }
    }
    return true;
}

static struct schedule_cost cost_of(void *ctx, uint32_t key_idx, size_t lane_idx) {
    struct coordinator *c = ctx;
    struct key_view *key = &c->estimates.keys[key_idx];
    struct schedule_cost cost = lanes_cost(&c->lanes, lane_idx, key_idx, c->round_ns);
    if (cost.job_ns == SCHEDULE_NEVER && key->looked_ns != c->round_ns) {
        key->looked_ns = c->round_ns;
        key->fits_nowhere = fits_nowhere(c, key_idx);
    }
    if (cost.job_ns == SCHEDULE_NEVER && key->fits_nowhere) {
        cost.job_ns = estimates_job_ns(&c->estimates, key_idx, c->lanes.views[lane_idx].device_idx);
    }
    return cost;
}

static bool was_refused_by(const struct part_view *part, const struct lane_ref *lane) {
    for (uint32_t i = 0; i < part->refused_count; i++) {
        if (lane_ref_is(&part->refused[i], lane_name_of(lane))) {
            return true;
        }
    }
    return false;
}

/* Lanes that gave it back are not asked again while there is an open one that did not. */
static bool refuses(void *ctx, const struct schedule_item *item, size_t lane_idx) {
    const struct coordinator *c = ctx;
    const struct part_view *part = (const struct part_view *)item;
    if (!was_refused_by(part, &c->lanes.views[lane_idx].ref)) {
        return false;
    }
    for (size_t i = 0; i < c->lanes.count; i++) {
        if (c->lanes.views[i].open && !was_refused_by(part, &c->lanes.views[i].ref)) {
            return true;
        }
    }
    return false;
}

/* *room: some lane would take one more. */
static void look_at_lanes(struct coordinator *c, struct schedule_view *view, bool *room) {
    for (size_t i = 0; i < c->lanes.count; i++) {
        const struct lane_view *v = &c->lanes.views[i];
        const struct part_view *movable =
            v->jobs_held > 1 ? backlog_lane_movable(&c->backlog, i) : NULL;
        c->lane_states[i] = (struct schedule_lane){
            .queued_ns = backlog_lane_left_ns(&c->backlog, i, c->round_ns),
            .slack_ns = v->slack_ns,
            .jobs_held = v->jobs_held,
            .jobs_least = v->depth_wanted,
            .open = v->open && !v->full && !backlog_lane_is_slow(&c->backlog, i, c->round_ns),
            .last = movable ? &movable->item : NULL};
        *room |= schedule_has_room(&c->lane_states[i], &view->depth);
    }
}

static struct schedule_view view_of(struct coordinator *c) {
    return (struct schedule_view){
        .urgent = &c->backlog.urgent,
        .lines = (const struct schedule_line *const *)c->backlog.lines,
        .lines_count = c->backlog.lines_count,
        .lanes = c->lane_states,
        .lanes_count = c->lanes.count,
        .tenants_served_ns = c->backlog.served_ns,
        .tenants_count = c->backlog.tenants_count,
        .keys_count = c->estimates.keys_count,
        .shares = c->shares,
        .depth = {WORK_LEAST_NS, LANE_DEPTH_MAX},
        .cost = cost_of,
        .refuses = refuses,
        .ctx = c,
    };
}

static enum err run_round(struct coordinator *c, const struct schedule_view *view) {
    AUTO(round_done) struct round r = {0};
    struct schedule_pick picks[ROUND_PARTS_MAX];
    size_t picks_count = 0;
    TRY(schedule_round(picks, &picks_count, ROUND_PARTS_MAX, view));
    TRY(round_init(&r, c));
    bool full = picks_count == ROUND_PARTS_MAX;
    for (size_t i = 0; i < picks_count; i++) {
        const struct part_view *part = (const struct part_view *)picks[i].item;
        struct schedule_cost cost = {.job_ns = picks[i].cost_ns - picks[i].load_ns,
                                     .load_ns = picks[i].load_ns};
        struct round_part *added = round_add(&r, part);
        if (!added) {
            full = true;
            break;
        }
        added->lane_idx = picks[i].lane_idx;
        added->cost = cost;
    }
    if (picks_count > 0) {
        round_read(&r);
        round_write(&r, change_place);
        account(&r);
        publish_parts(&r);
    }
    c->placing_due |= full; /* there may be more */
    return OK;
}

static enum err run_rebalance(struct coordinator *c, const struct schedule_view *view) {
    struct schedule_move moves[ROUND_PARTS_MAX];
    size_t moves_count = 0;
    TRY(schedule_rebalance(moves, &moves_count, ROUND_PARTS_MAX, view, GAIN_LEAST_NS));
    for (size_t i = 0; i < moves_count; i++) {
        struct part_view *part = (struct part_view *)(uintptr_t)moves[i].item;
        part->loss = PART_LEFT_BEHIND;
        backlog_note_due(&c->backlog, part->job);
    }
    if (moves_count > 0) {
        log_info("placing.rebalanced", "parts=%zu", moves_count);
        take_back_lost(c);
    }
    return OK;
}

void place_round(struct coordinator *c) {
    bool room = false;
    c->placing_due = false;
    c->round_ns = clock_ns();
    backlog_advance(&c->backlog, c->round_ns);
    struct schedule_view view = view_of(c);
    look_at_lanes(c, &view, &room);
    bool waits = c->backlog.lines_count > 0 || c->backlog.urgent.count > 0;
    enum err code = OK;
    if (room && waits) {
        code = run_round(c, &view);
    } else if (room && !c->intake_more) {
        code = run_rebalance(c, &view);
    }
    if (code != OK) {
        char quoted[ERR_DETAIL_BYTES + 64];
        log_warn("placing.interrupted", "error=%s detail=%s", err_name(code),
                 log_quote(quoted, sizeof quoted, err_detail()));
    }
}

/* --- Sending again --- */

static bool is_unsent(const struct part_view *part) {
    return part->state == JOB_PLACED && !part->sent && part->loss == PART_NOT_LOST;
}

/* What the records say now, for a job that is looked at again: only then is it known that the assignment may be sent. */
static void keep_unmoved(struct round *r) {
    for (size_t i = 0; i < r->parts_count; i++) {
        struct round_part *part = &r->parts[i];
        const struct round_job *job = &r->jobs[part->job_idx];
        if (job->view && part->idx < job->view->parts_count) {
            const struct record_part *at = &job->slot.record.parts[part->idx];
            part->moved = at->state == JOB_PLACED && at->epoch == job->view->parts[part->idx].epoch;
        }
    }
}

void place_again(struct coordinator *c) {
    AUTO(round_done) struct round r = {0};
    if (!c->backlog.due || round_init(&r, c) != OK) {
        return;
    }
    bool room = true;
    for (struct job_view *job = c->backlog.due; job && room; job = job->due_next) {
        for (uint32_t k = 0; k < job->parts_count && room; k++) {
            if (is_unsent(&job->parts[k])) {
                room = round_add(&r, &job->parts[k]) != NULL;
            }
        }
    }
    if (r.parts_count > 0) {
        round_read(&r);
        keep_unmoved(&r);
        publish_parts(&r);
    }
}
