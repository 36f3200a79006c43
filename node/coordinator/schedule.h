/* Schedule: which waiting partition goes to which lane. Pure: a function of its arguments alone.
 *
 * Which partition next. Urgent deadlines first, the earliest first; then the highest priority, but every
 * SCHEDULE_LOW_SHARE-th turn belongs to the lowest one that waits, so that nothing starves; within a priority the tenant
 * that was served least; within a tenant the oldest job, and within a job the partitions in order (finishing jobs in
 * turn frees their results and memory sooner than advancing all of them a little).
 *
 * Where to. The lane on which the partition would finish first: work already queued there + loading the key if it is
 * not resident + the work itself. When that lane is merely full the partition waits for it, and its time counts as
 * queued there for the partitions behind it: so a long backlog under one key spreads to idle lanes exactly when loading
 * the key costs less than waiting.
 *
 * Units    nanoseconds. `order` is a job's rank by age: smaller is older; partitions of one job share it.
 * Threads  any.
 * Errors   E_LIMIT without memory for the working arrays.
 */
#pragma once
#include "node/base/err.h"

enum {
    SCHEDULE_PRIORITIES = 4,      /* 0 is served first */
    SCHEDULE_LOW_SHARE = 8,       /* one turn in so many goes to the lowest waiting priority */
    SCHEDULE_LOOK_AHEAD = 1 << 16 /* partitions looked at in one round, in the order above */
};
static const uint64_t SCHEDULE_NEVER = UINT64_MAX;

struct schedule_item { /* one waiting partition */
    uint64_t order;
    uint64_t urgent_ns;     /* when its deadline becomes urgent; 0 when it has none */
    uint64_t not_before_ns; /* back-off after it was given back; 0 at once */
    uint32_t partition_idx;
    uint32_t tenant_idx;
    uint8_t priority;
};

/* How much a lane should hold: enough that its device never waits for the network. */
struct schedule_depth {
    uint32_t jobs_least; /* this many always */
    uint64_t work_least_ns;
    uint32_t jobs_max;
};

struct schedule_lane {
    uint64_t queued_ns; /* estimated work it holds */
    uint32_t jobs_held;
    bool open; /* heard of lately, not draining, not fenced */
};

/* What the item costs on the lane, key load included; SCHEDULE_NEVER when it cannot run there. */
typedef uint64_t schedule_cost(void *ctx, size_t item_idx, size_t lane_idx);

struct schedule_view {
    const struct schedule_item *items; /* lent, any order; the answer does not depend on it */
    size_t items_count;
    const struct schedule_lane *lanes; /* lent */
    size_t lanes_count;
    const uint64_t *tenants_served_ns; /* lent; work given to each tenant so far */
    size_t tenants_count;
    struct schedule_depth depth;
    uint64_t turn; /* placements made so far */
    uint64_t now_ns;
    schedule_cost *cost;
    void *cost_ctx;
};

struct schedule_pick {
    size_t item_idx, lane_idx;
    uint64_t cost_ns;
};

/* Up to picks_max placements, in the order they should be made. *picks_count is set on OK only. */
FALLIBLE schedule_round(struct schedule_pick *picks, size_t *picks_count, size_t picks_max,
                        const struct schedule_view *view);

/* Does a lane that holds this much take one more? */
bool schedule_has_room(const struct schedule_lane *lane, const struct schedule_depth *depth);
