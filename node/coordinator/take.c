/* From the lanes back to the backlog: what a lane lost, cannot start, or would start too late.
 *
 * | what is seen                                             | what comes back         | does it count as a death? |
 * |----------------------------------------------------------|-------------------------|---------------------------|
 * | the lane's process died, stopped, is fenced or silent    | all it had              | what had started          |
 * | it drains                                                | what it has not started | no                        |
 * | it was never heard of                                    | all                     | what had started          |
 * | it says, again and again, that it holds nothing          | all placed long before  | no                        |
 * | its job takes much longer than such jobs do, others are less busy | what it has not started | no               |
 * | another lane is idle                                     | the last not started    | no                        |
 *
 * All that is seen at one tick comes back together.
 */
#include <string.h>

#include "node/base/clock.h"
#include "node/coordinator/round.h"

static const uint64_t SETTLED_NS = UINT64_C(3000000000);

/* --- Why --- */

/* A lane that says it holds nothing, again and again, has lost what was placed there long before. */
static bool was_lost_on_the_way(const struct coordinator *c, const struct part_view *part,
                                const struct lane_view *lane, uint64_t now_ns) {
    return lane->alive && lane->empty_since_ns && now_ns - lane->empty_since_ns > SETTLED_NS &&
           now_ns - part->known_ns > SETTLED_NS && now_ns - c->led_since_ns > SETTLED_NS;
}

/* Of a lane that is no longer what it was when the part was placed there: a successor of its process may be at work already. */
static const char *way_it_went(const struct lane_view *lane) {
    return lane->silent  ? "the lane is silent"
           : lane->alive ? "the lane's process died"
                         : "the lane has stopped or is fenced";
}

/* NULL: it stays. */
static const char *reason_to_take(bool *died, const struct coordinator *c,
                                  const struct part_view *part, const struct lane_view *lane,
                                  uint64_t now_ns) {
    bool heard = lane->session[0];
    uint64_t since_ns = part->known_ns > c->led_since_ns ? part->known_ns : c->led_since_ns;
    *died = true;
    if (part->loss == PART_LOST || (heard && !lane->alive)) {
        return way_it_went(lane);
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

/* --- Together --- */

static enum record_answer change_take_back(struct record *record, struct round *r,
                                           const struct round_part *part, struct part_view *known) {
    (void)r;
    enum record_answer answer = record_take_back(record, part->idx, known->epoch, part->died,
                                                 part->why, clock_unix_ns() / 1000000);
    known->loss = answer == RECORD_MOVED ? known->loss : PART_NOT_LOST;
    return answer;
}

/* False: the round is full. */
static bool add(struct round *r, const struct part_view *part, bool died, const char *why) {
    struct round_part *added = round_add(r, part);
    if (added) {
        added->from = part->lane;
        added->died = died;
        added->why = why;
    }
    return added != NULL;
}

static bool add_lane(struct round *r, size_t lane_idx, uint64_t now_ns) {
    const struct lane_view *v = &r->c->lanes.views[lane_idx];
    bool room = true;
    for (const struct part_view *part = v->held; part && room; part = part->held_next) {
        bool died = false;
        const char *why = reason_to_take(&died, r->c, part, v, now_ns);
        room = !why || add(r, part, died, why);
    }
    return room;
}

/* Those of lanes that there was no room to remember. */
static bool add_unknown(struct round *r) {
    bool room = true;
    for (struct job_view *job = r->c->backlog.due; job && room; job = job->due_next) {
        for (uint32_t k = 0; k < job->parts_count && room; k++) {
            const struct part_view *part = &job->parts[k];
            bool lost = part->loss == PART_LOST && part->lane_idx == SIZE_MAX && part->state;
            room = !lost || add(r, part, true, "the lane is not known");
        }
    }
    return room;
}

static void note_taken(struct coordinator *c, const struct round_job *job,
                       const struct round_part *part) {
    job->view->parts[part->idx].loss = PART_NOT_LOST;
    c->placing_due = true;
    atomic_fetch_add(&c->taken_back, 1);
    log_line(part->died ? LOG_WARN : LOG_INFO, "job.taken_back",
             "job=%s tenant=%s part=%u node=%s gpu=%u died=%d why=\"%s\"", job->view->job,
             job->view->tenant, part->idx, part->from.node, part->from.gpu, part->died, part->why);
}

/* True: some moved. */
static bool take_round(struct round *r) {
    bool moved = false;
    round_read(r);
    round_write(r, change_take_back);
    for (size_t i = 0; i < r->parts_count; i++) {
        const struct round_job *job = &r->jobs[r->parts[i].job_idx];
        if (r->parts[i].moved && job->view) {
            note_taken(r->c, job, &r->parts[i]);
            moved = true;
        }
    }
    return moved;
}

void take_back_from_lane(struct coordinator *c, size_t lane_idx) {
    AUTO(round_done) struct round r = {0};
    if (round_init(&r, c) == OK) {
        add_lane(&r, lane_idx, clock_ns()); /* what finds no room is taken at the next tick */
        take_round(&r);
    }
}

void take_back_lost(struct coordinator *c) {
    uint64_t now_ns = clock_ns();
    for (size_t i = 0; i < c->lanes.count; i++) {
        if (c->lanes.views[i].held) {
            relieve_slow_lane(c, i, now_ns);
        }
    }
    for (bool more = true; more;) {
        AUTO(round_done) struct round r = {0};
        bool room = round_init(&r, c) == OK;
        for (size_t i = 0; r.parts && i < c->lanes.count && room; i++) {
            room = add_lane(&r, i, now_ns);
        }
        room = room && add_unknown(&r);
        more = r.parts && take_round(&r) && !room;
    }
}
