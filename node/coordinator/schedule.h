/* Schedule: which waiting partition goes to which lane. Pure: a function of its arguments alone.
 *
 * Which partition next. What a priority is owed of its guaranteed share comes first, so that nothing starves, neither beside
 * higher priorities nor beside deadlines; then deadlines that press, the earliest first; then the highest priority.
 * Within a priority the tenant that was served least; within a tenant the oldest job, and within a job the partitions in
 * order (finishing jobs in turn frees their results and memory sooner than advancing all of them a little).
 *
 * Where to. The lane on which the partition would finish first: work already queued there + loading the key if it is
 * not resident + the work itself. When that lane is full the partition waits for it, unless so many wait under its key
 * that the full lanes would not get to all of them before the best lane with room were done: then loading the key once more
 * costs less than waiting.
 *
 * The waiting partitions stand in lines, one for each priority, tenant and key, which their owner keeps sorted as things
 * change: a round costs O(lines + lanes · keys) and not a walk over all that waits.
 *
 * Units    nanoseconds.
 * Threads  any.
 * Errors   E_LIMIT without memory for the working arrays.
 */
#pragma once
#include "node/base/err.h"

enum {
    SCHEDULE_PRIORITIES = 4, /* 0 is served first */
    SCHEDULE_SHARE_PARTS = 16,
    SCHEDULE_URGENT_LOOK = 1024, /* pressing deadlines looked at in one round */
    SCHEDULE_CHOOSY_LOOK =
        256 /* partitions of one line passed over in one round, as no free lane suits them */
};
static const uint64_t SCHEDULE_NEVER = UINT64_MAX;
/* What each priority is guaranteed of the lanes' time while it waits, in sixteenths. */
extern const uint32_t schedule_share[SCHEDULE_PRIORITIES];

/* --- Lines --- */

struct schedule_line;
struct schedule_item {                     /* one waiting partition */
    struct schedule_item *next, *previous; /* in its line */
    struct schedule_line *line;            /* NULL: in none */
    uint64_t
        rank; /* in its line: the job's age, smaller is older; the deadline in the urgent line */
    uint32_t partition_idx; /* tells the partitions of one job apart */
    uint32_t tenant_idx, key_idx;
    uint8_t priority;
    bool choosy; /* ask `refuses` */
};
struct schedule_line { /* sorted by rank, then partition */
    struct schedule_item *first, *last;
    size_t count;
    uint32_t tenant_idx, key_idx;
    uint8_t priority;
};
/* Into its place; O(1) at either end, else the distance from the nearer one. */
void schedule_line_put(struct schedule_line *line, struct schedule_item *item);
void schedule_line_take(struct schedule_item *item);

/* --- Shares --- */

/* How much each priority lags behind its guaranteed share of what was placed since it began to wait. */
struct schedule_shares {
    int64_t owed_ns[SCHEDULE_PRIORITIES]; /* counts when it reaches a placement's usual cost */
    int64_t usual_ns;
};
/* After a placement of so much work; `waiting` says which priorities had something waiting. */
void schedule_account(struct schedule_shares *shares, const bool waiting[SCHEDULE_PRIORITIES],
                      uint8_t priority, uint64_t cost_ns);

/* --- Lanes --- */

/* How much a lane should hold: enough that its device never waits for the network. What counts is the device's own time: a lane that was given
 * too little takes longer for a job, as it waits, and must not be given little for that reason. */
struct schedule_depth {
    uint64_t work_least_ns;
    uint32_t jobs_max;
};
struct schedule_lane {
    uint64_t queued_ns; /* estimated work it holds */
    uint64_t slack_ns;  /* of it, in which the device itself would have nothing to do */
    uint32_t jobs_held;
    uint32_t jobs_least;              /* it should hold this many always */
    bool open;                        /* heard of lately, not draining, not fenced */
    const struct schedule_item *last; /* placed last and not started yet; NULL: none */
};
/* Does a lane that holds this much take one more? */
bool schedule_has_room(const struct schedule_lane *lane, const struct schedule_depth *depth);

struct schedule_cost {
    uint64_t job_ns;   /* SCHEDULE_NEVER: it cannot run there */
    uint64_t load_ns;  /* of the key, once */
    uint64_t slack_ns; /* of job_ns, in which the device itself has nothing to do */
};
typedef struct schedule_cost schedule_cost_of(void *ctx, uint32_t key_idx, size_t lane_idx);
/* Should this item not go to this lane, as it was given back there? */
typedef bool schedule_refuses(void *ctx, const struct schedule_item *item, size_t lane_idx);

/* --- A round --- */

struct schedule_view {
    const struct schedule_line
        *urgent; /* lent: pressing deadlines, of all priorities; may be NULL */
    const struct schedule_line *const
        *lines; /* lent, any order; the answer does not depend on it */
    size_t lines_count;
    const struct schedule_lane *lanes; /* lent */
    size_t lanes_count;
    const uint64_t *tenants_served_ns; /* lent; work given to each tenant so far */
    size_t tenants_count;
    size_t keys_count; /* key_idx is below */
    struct schedule_shares shares;
    struct schedule_depth depth;
    schedule_cost_of *cost;
    schedule_refuses *refuses; /* may be NULL when no item is choosy */
    void *ctx;
};

struct schedule_pick {
    const struct schedule_item *item;
    size_t lane_idx;
    uint64_t cost_ns; /* with the load */
    uint64_t load_ns;
};
/* Up to picks_max placements, in the order they should be made. *picks_count is set on OK only. */
FALLIBLE schedule_round(struct schedule_pick *picks, size_t *picks_count, size_t picks_max,
                        const struct schedule_view *view);

/* --- Moving what was placed --- */

struct schedule_move {
    size_t from_idx, to_idx;
    const struct schedule_item *item;
};
/* Lanes that hold nothing while others have partitions they have not started: the last of those that would end latest move, one per
 * lane and round, where it gains more than a quarter of the work and `gain_least_ns`. For rounds in which nothing else waits. */
FALLIBLE schedule_rebalance(struct schedule_move *moves, size_t *moves_count, size_t moves_max,
                            const struct schedule_view *view, uint64_t gain_least_ns);
