/* From the lanes back to the backlog: what a lane lost, cannot start, or would start too late.
 *
 * | what is seen                                             | what comes back         | does it count as a death? |
 * |----------------------------------------------------------|-------------------------|---------------------------|
 * | the lane's process died, or is silent                    | all it had              | what had started          |
 * | it drains                                                | what it has not started | no                        |
 * | it was never heard of                                    | all                     | what had started          |
 * | it says, again and again, that it holds nothing          | all placed long before  | no                        |
 * | its job takes much longer than such jobs do, others are less busy | what it has not started | no               |
 * | another lane is idle                                     | the last not started    | no                        |
 */
#include <string.h>

#include "node/base/clock.h"
#include "node/coordinator/work.h"

static const uint64_t SETTLED_NS = UINT64_C(3000000000);

/* --- One partition --- */

struct taking {
    uint32_t idx;
    uint64_t epoch;
    bool died;
    const char *why;
};

static enum record_answer change_take_back(struct record *r, void *ctx) {
    const struct taking *t = ctx;
    return record_take_back(r, t->idx, t->epoch, t->died, t->why, clock_unix_ns() / 1000000);
}

/* False: the server could not be asked; tried again at the next tick. */
static bool take_back(struct coordinator *c, struct part_view *part, bool died, const char *why) {
    struct job_view *job = part->job;
    struct job_place at = place_of(c, job_name_of(job));
    struct taking taking = {part->item.partition_idx, part->epoch, died, why};
    AUTO(record_slot_done) struct record_slot slot = {0};
    enum record_answer answer;
    if (record_apply(&answer, &slot, &at, job->generation, change_take_back, &taking) != OK) {
        return false;
    }
    if (answer == RECORD_MOVED) {
        atomic_fetch_add(&c->taken_back, 1);
        log_line(died ? LOG_WARN : LOG_INFO, "job.taken_back",
                 "job=%s tenant=%s part=%u node=%s gpu=%u died=%d why=\"%s\"", job->job,
                 job->tenant, taking.idx, part->lane.node, part->lane.gpu, died, why);
    }
    part->loss = PART_NOT_LOST;
    c->placing_due = true;
    if (slot.loaded && job_state_is_open(slot.record.state)) {
        IGNORE(backlog_put(NULL, &c->backlog, at.name, &slot.record, (struct bytes){0},
                           slot.revision, clock_ns()));
    }
    return true;
}

/* --- By lane --- */

/* A lane that says it holds nothing, again and again, has lost what was placed there long before. */
static bool was_lost_on_the_way(const struct coordinator *c, const struct part_view *part,
                                const struct lane_view *lane, uint64_t now_ns) {
    return lane->alive && lane->empty_since_ns && now_ns - lane->empty_since_ns > SETTLED_NS &&
           now_ns - part->known_ns > SETTLED_NS && now_ns - c->led_since_ns > SETTLED_NS;
}

/* NULL: it stays. */
static const char *reason_to_take(bool *died, const struct coordinator *c,
                                  const struct part_view *part, const struct lane_view *lane,
                                  uint64_t now_ns) {
    bool heard = lane->session[0];
    uint64_t since_ns = part->known_ns > c->led_since_ns ? part->known_ns : c->led_since_ns;
    *died = true;
    if (part->loss == PART_LOST) {
        return "the lane's process died";
    }
    if (heard && !lane->alive) {
        return "the lane is silent";
    }
    if (!heard && now_ns - since_ns > c->config.silence_ns) {
        return "the lane was never heard of";
    }
    *died = false;
    if (part->loss == PART_LEFT_BEHIND) {
        return "the lane cannot start it soon";
    }
    if (heard && was_lost_on_the_way(c, part, lane, now_ns)) {
        return "the lane does not hold it";
    }
    return NULL;
}

/* Taking one back changes the list, so it is walked anew after each; what fails ends the walk. */
static void look_at_lane(struct coordinator *c, size_t lane_idx, uint64_t now_ns) {
    for (int n = 0; n < LANE_DEPTH_MAX * 2; n++) {
        const char *why = NULL;
        bool died = false;
        struct part_view *part = c->lanes.views[lane_idx].held;
        while (part && !(why = reason_to_take(&died, c, part, &c->lanes.views[lane_idx], now_ns))) {
            part = part->held_next;
        }
        if (!part || !take_back(c, part, died, why)) {
            return;
        }
    }
}

static uint64_t least_busy_ns(const struct coordinator *c, size_t but_idx, uint64_t now_ns) {
    uint64_t least_ns = UINT64_MAX;
    for (size_t i = 0; i < c->lanes.count; i++) {
        uint64_t left_ns = i != but_idx && c->lanes.views[i].open
                               ? backlog_lane_left_ns(&c->backlog, i, now_ns)
                               : UINT64_MAX;
        least_ns = left_ns < least_ns ? left_ns : least_ns;
    }
    return least_ns;
}

/* Those behind a job that takes so much longer than expected go where less is to be waited for. */
static void relieve_slow_lane(struct coordinator *c, size_t lane_idx, uint64_t now_ns) {
    const struct lane_view *v = &c->lanes.views[lane_idx];
    if (v->jobs_held < 2 || !backlog_lane_is_slow(&c->backlog, lane_idx, now_ns) ||
        !backlog_lane_movable(&c->backlog, lane_idx) ||
        least_busy_ns(c, lane_idx, now_ns) >
            backlog_lane_left_ns(&c->backlog, lane_idx, now_ns) / 2) {
        return;
    }
    for (struct part_view *part = v->held; part; part = part->held_next) {
        part->loss = part->state == JOB_PLACED && part->sent ? PART_LEFT_BEHIND : part->loss;
    }
    log_info("lane.slow", "node=%s gpu=%u jobs=%u", v->ref.node, v->ref.gpu, v->jobs_held);
}

void take_back_from_lane(struct coordinator *c, size_t lane_idx) {
    look_at_lane(c, lane_idx, clock_ns());
}

void take_back_lost(struct coordinator *c) {
    uint64_t now_ns = clock_ns();
    for (size_t i = 0; i < c->lanes.count; i++) {
        if (c->lanes.views[i].held) {
            relieve_slow_lane(c, i, now_ns);
            look_at_lane(c, i, now_ns);
        }
    }
    /* Those of lanes that there was no room to remember. */
    for (struct job_view *job = c->backlog.due, *next; job; job = next) {
        next = job->due_next;
        for (uint32_t k = 0; k < job->parts_count; k++) {
            struct part_view *part = &job->parts[k];
            if (part->loss == PART_LOST && part->lane_idx == SIZE_MAX && part->state &&
                !take_back(c, part, true, "the lane is not known")) {
                return;
            }
        }
    }
}
