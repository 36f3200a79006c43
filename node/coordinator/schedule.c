/* List scheduling over the waiting partitions.
 *
 *   items ──sort by (priority, tenant, order, partition)──▶ groups: one first-in-first-out line per (priority, tenant)
 *   until the picks are full, no lane has room, or the look-ahead is used up:
 *       take the head of the group whose turn it is
 *       find the lane where it would end first, with the work virtually queued so far
 *       the lane has room: a pick. It has none: its virtual queue grows and the next item is looked at
 *
 * O(n log n) for the sort and O(looked at · (lanes + groups)) for the walk, which is short unless
 * many partitions wait for full lanes while others have room. A greedy choice per item rather than an
 * optimal assignment: job times are estimates, and the next round corrects what this one guessed wrong.
 */
#include "node/coordinator/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "node/base/mem.h"

struct group {        /* the line of one tenant in one priority */
    size_t next, end; /* into sorted[] */
    uint8_t priority;
    uint32_t tenant_idx;
};

struct walk {
    const struct schedule_view *view; /* lent */
    size_t *sorted;                   /* owned; indices into view->items */
    size_t sorted_count;
    size_t urgent_next,
        urgent_end;       /* the head of sorted[]: urgent items, earliest deadline first */
    struct group *groups; /* owned */
    size_t groups_count;
    uint64_t *served_ns;         /* owned; tenants_served_ns and what this round adds */
    struct schedule_lane *lanes; /* owned; with virtual queues */
    uint64_t turn;
};

static void walk_done(struct walk *w) {
    mem_free(w->sorted);
    mem_free(w->groups);
    mem_free(w->served_ns);
    mem_free(w->lanes);
}

bool schedule_has_room(const struct schedule_lane *lane, const struct schedule_depth *depth) {
    if (!lane->open || lane->jobs_held >= depth->jobs_max) {
        return false;
    }
    return lane->jobs_held < depth->jobs_least || lane->queued_ns < depth->work_least_ns;
}

static bool is_urgent(const struct schedule_item *item, uint64_t now_ns) {
    return item->urgent_ns && item->urgent_ns <= now_ns;
}

static int compare_u64(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

/* Urgent ones first, by deadline; the rest by group, then age. A total order: no two items compare equal unless they
 * are the same partition. */
static int item_compare(const void *pa, const void *pb, void *ctx) {
    const struct schedule_view *view = ctx;
    const struct schedule_item *a = &view->items[*(const size_t *)pa];
    const struct schedule_item *b = &view->items[*(const size_t *)pb];
    bool a_urgent = is_urgent(a, view->now_ns), b_urgent = is_urgent(b, view->now_ns);
    if (a_urgent != b_urgent) {
        return a_urgent ? -1 : 1;
    }
    int by = 0;
    if (a_urgent) {
        by = compare_u64(a->urgent_ns, b->urgent_ns);
    } else {
        by = compare_u64(a->priority, b->priority);
        by = by ? by : compare_u64(a->tenant_idx, b->tenant_idx);
    }
    by = by ? by : compare_u64(a->order, b->order);
    return by ? by : compare_u64(a->partition_idx, b->partition_idx);
}

static void walk_sort(struct walk *w) {
    const struct schedule_view *view = w->view;
    for (size_t i = 0; i < view->items_count; i++) {
        if (view->items[i].not_before_ns <= view->now_ns) {
            w->sorted[w->sorted_count++] = i;
        }
    }
    qsort_r(w->sorted, w->sorted_count, sizeof *w->sorted, item_compare, (void *)(uintptr_t)view);
    size_t at = 0;
    while (at < w->sorted_count && is_urgent(&view->items[w->sorted[at]], view->now_ns)) {
        at++;
    }
    w->urgent_end = at;
    while (at < w->sorted_count) {
        const struct schedule_item *first = &view->items[w->sorted[at]];
        struct group *g = &w->groups[w->groups_count++];
        *g = (struct group){at, at, first->priority, first->tenant_idx};
        while (g->end < w->sorted_count) {
            const struct schedule_item *item = &view->items[w->sorted[g->end]];
            if (item->priority != g->priority || item->tenant_idx != g->tenant_idx) {
                break;
            }
            g->end++;
        }
        at = g->end;
    }
}

static enum err walk_init(struct walk *w, const struct schedule_view *view) {
    *w = (struct walk){.view = view, .turn = view->turn};
    TRY(mem_new(&w->sorted, view->items_count, sizeof *w->sorted));
    TRY(mem_new(&w->groups, view->items_count, sizeof *w->groups));
    TRY(mem_new(&w->served_ns, view->tenants_count, sizeof *w->served_ns));
    TRY(mem_new(&w->lanes, view->lanes_count, sizeof *w->lanes));
    memcpy(w->served_ns, view->tenants_served_ns, view->tenants_count * sizeof *w->served_ns);
    memcpy(w->lanes, view->lanes, view->lanes_count * sizeof *w->lanes);
    walk_sort(w);
    return OK;
}

/* The group whose turn it is; NULL when all lines are empty. Groups are sorted by priority, then tenant. */
static struct group *walk_group(struct walk *w) {
    bool lowest = w->turn % SCHEDULE_LOW_SHARE == SCHEDULE_LOW_SHARE - 1;
    struct group *best = NULL;
    for (size_t i = 0; i < w->groups_count; i++) {
        struct group *g = &w->groups[i];
        if (g->next == g->end) {
            continue;
        }
        if (!best || (lowest && g->priority > best->priority) ||
            (g->priority == best->priority &&
             w->served_ns[g->tenant_idx] < w->served_ns[best->tenant_idx])) {
            best = g;
        }
    }
    return best;
}

/* The next item in order, removed from its line; false at the end. The low share comes before urgency: a tenant that
 * sets deadlines on everything must not starve the others. */
static bool walk_next(size_t *item_idx, struct walk *w) {
    bool lowest = w->turn % SCHEDULE_LOW_SHARE == SCHEDULE_LOW_SHARE - 1;
    struct group *g = walk_group(w);
    if (w->urgent_next < w->urgent_end && !(lowest && g)) {
        *item_idx = w->sorted[w->urgent_next++];
        return true;
    }
    if (!g) {
        return false;
    }
    *item_idx = w->sorted[g->next++];
    return true;
}

/* The lane where the item ends first; false when none can run it. Ties: fewer jobs, then the lower index. */
static bool walk_lane(struct schedule_pick *out, const struct walk *w, size_t item_idx) {
    const struct schedule_view *view = w->view;
    uint64_t best_end = SCHEDULE_NEVER;
    for (size_t i = 0; i < view->lanes_count; i++) {
        const struct schedule_lane *lane = &w->lanes[i];
        if (!lane->open) {
            continue;
        }
        uint64_t cost = view->cost(view->cost_ctx, item_idx, i), end;
        if (cost == SCHEDULE_NEVER || __builtin_add_overflow(lane->queued_ns, cost, &end)) {
            continue;
        }
        if (end < best_end ||
            (end == best_end && lane->jobs_held < w->lanes[out->lane_idx].jobs_held)) {
            best_end = end;
            *out = (struct schedule_pick){item_idx, i, cost};
        }
    }
    return best_end != SCHEDULE_NEVER;
}

static bool walk_any_room(const struct walk *w) {
    for (size_t i = 0; i < w->view->lanes_count; i++) {
        if (schedule_has_room(&w->lanes[i], &w->view->depth)) {
            return true;
        }
    }
    return false;
}

static size_t walk_run(struct schedule_pick *picks, size_t picks_max, struct walk *w) {
    size_t picks_count = 0;
    for (int looked = 0; looked < SCHEDULE_LOOK_AHEAD && picks_count < picks_max; looked++) {
        size_t item_idx;
        struct schedule_pick pick = {0};
        if (!walk_any_room(w) || !walk_next(&item_idx, w)) {
            break;
        }
        w->turn++; /* even when it is not placed: a line that must wait takes no turn twice */
        if (!walk_lane(&pick, w, item_idx)) {
            continue;
        }
        struct schedule_lane *lane = &w->lanes[pick.lane_idx];
        if (schedule_has_room(lane, &w->view->depth)) {
            picks[picks_count++] = pick;
            w->served_ns[w->view->items[item_idx].tenant_idx] += pick.cost_ns;
        }
        /* Placed, or waiting for this lane: either way the ones behind find its time taken. */
        lane->queued_ns += pick.cost_ns;
        lane->jobs_held++;
    }
    return picks_count;
}

enum err schedule_round(struct schedule_pick *picks, size_t *picks_count, size_t picks_max,
                        const struct schedule_view *view) {
    if (view->items_count == 0 || view->lanes_count == 0) {
        *picks_count = 0;
        return OK;
    }
    for (size_t i = 0; i < view->items_count; i++) {
        ASSERT(view->items[i].priority < SCHEDULE_PRIORITIES);
        ASSERT(view->items[i].tenant_idx < view->tenants_count);
    }
    AUTO(walk_done) struct walk w = {0};
    TRY(walk_init(&w, view));
    *picks_count = walk_run(picks, picks_max, &w);
    return OK;
}
