/* List scheduling over lines.
 *
 *   which class?   a priority that is owed ─▶ pressing deadlines ─▶ priority 0 … 3          (a class without a placement drops out)
 *   which line?    tenant served least, then oldest head; lines whose key cannot be placed now are passed over
 *   which lane?    one pass over the lanes for each key:
 *
 *        with room, ends first: `free`          full, ends first: `full`
 *        free ends no later than full           a direct placement
 *        else, if more wait under this key than the full lanes can finish until `free` would be done
 *                                               an overflow: the key is loaded once more
 *        else                                   they wait for the full lanes, whose queues count their work from now on
 *
 * Direct placements of a class go before its overflows: a lane with room is given work whose key it holds rather than made to load
 * another's. What a pass finds holds until the next placement changes the lanes, so each placement costs O(lines + lanes · keys in
 * use). A greedy choice rather than an optimal assignment: job times are estimates, and the next round corrects what this one guessed
 * wrong. Looking ahead partition by partition, as an earlier version did, gave the same answers and cost a walk over the backlog.
 */
#include "node/coordinator/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "node/base/mem.h"

const uint32_t schedule_share[SCHEDULE_PRIORITIES] = {4, 2, 1, 1};
enum { OWED_CAP = 32 /* placements' worth */ };

/* --- Lines --- */

static bool is_before(const struct schedule_item *a, const struct schedule_item *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->partition_idx < b->partition_idx;
}

static void link_before(struct schedule_line *line, struct schedule_item *item,
                        struct schedule_item *next) { /* NULL: at the end */
    item->next = next;
    item->previous = next ? next->previous : line->last;
    *(item->previous ? &item->previous->next : &line->first) = item;
    *(next ? &next->previous : &line->last) = item;
    item->line = line;
    line->count++;
}

void schedule_line_put(struct schedule_line *line, struct schedule_item *item) {
    ASSERT(!item->line);
    struct schedule_item *from_first = line->first, *from_last = line->last;
    while (from_first && !is_before(item, from_first) && from_last && is_before(item, from_last)) {
        from_first = from_first->next;
        from_last = from_last->previous;
    }
    if (!from_first || is_before(item, from_first)) {
        link_before(line, item, from_first);
    } else {
        link_before(line, item, from_last ? from_last->next : line->first);
    }
}

void schedule_line_take(struct schedule_item *item) {
    struct schedule_line *line = item->line;
    *(item->previous ? &item->previous->next : &line->first) = item->next;
    *(item->next ? &item->next->previous : &line->last) = item->previous;
    item->next = item->previous = NULL;
    item->line = NULL;
    line->count--;
}

/* --- Shares and room --- */

void schedule_account(struct schedule_shares *shares, const bool waiting[SCHEDULE_PRIORITIES],
                      uint8_t priority, uint64_t cost_ns) {
    int64_t cost = cost_ns < INT64_MAX / 64 ? (int64_t)cost_ns : INT64_MAX / 64;
    shares->usual_ns = shares->usual_ns ? shares->usual_ns + (cost - shares->usual_ns) / 16 : cost;
    for (int p = 0; p < SCHEDULE_PRIORITIES; p++) {
        int64_t *owed = &shares->owed_ns[p];
        if (!waiting[p]) { /* neither owed nor owing when it comes back */
            *owed = 0;
            continue;
        }
        *owed += cost / SCHEDULE_SHARE_PARTS * schedule_share[p];
        *owed = *owed > OWED_CAP * shares->usual_ns ? OWED_CAP * shares->usual_ns : *owed;
        if (p == priority) { /* what it had while nobody else wanted it is not held against it */
            *owed = *owed > 0 ? *owed - cost : -cost;
        }
    }
}

bool schedule_has_room(const struct schedule_lane *lane, const struct schedule_depth *depth) {
    if (!lane->open || lane->jobs_held >= depth->jobs_max) {
        return false;
    }
    uint64_t slack_ns = lane->slack_ns < lane->queued_ns ? lane->slack_ns : lane->queued_ns;
    return lane->jobs_held < lane->jobs_least || lane->queued_ns - slack_ns < depth->work_least_ns;
}

/* --- The walk --- */

struct place { /* where an item would end */
    size_t lane_idx;
    uint64_t end_ns, cost_ns; /* end SCHEDULE_NEVER: nowhere */
};

enum key_answer { KEY_DIRECT, KEY_OVERFLOW, KEY_WAITS };

struct walk_key {
    struct schedule_cost *costs; /* owned; by lane; NULL: not asked yet */
    size_t waiting;              /* items under this key not placed yet */
    uint64_t version;            /* of the lanes when `answer` was found; 0: never */
    enum key_answer answer;
    struct place free;
    bool settled; /* waits: its work stands in the full lanes' queues */
};

struct walk_line {
    const struct schedule_line *line;
    const struct schedule_item *head; /* NULL: all placed or passed over */
    uint32_t passed;
};

struct walk {
    const struct schedule_view *view; /* lent */
    struct walk_line *lines;          /* owned */
    struct walk_key *keys;            /* owned, by key_idx */
    struct schedule_lane *lanes;      /* owned; with what this round adds */
    bool *has_room;                   /* owned; by lane */
    size_t room_count;
    uint64_t *served_ns; /* owned; tenants_served_ns and what this round adds */
    const struct schedule_item *urgent;
    size_t urgent_looked;
    struct schedule_shares shares;
    uint64_t version;
};

static void walk_done(struct walk *w) {
    for (size_t i = 0; w->keys && i < w->view->keys_count; i++) {
        mem_free(w->keys[i].costs);
    }
    mem_free(w->lines);
    mem_free(w->keys);
    mem_free(w->lanes);
    mem_free(w->has_room);
    mem_free(w->served_ns);
}

static void count_waiting(struct walk *w) {
    const struct schedule_view *view = w->view;
    for (size_t i = 0; i < view->lines_count; i++) {
        const struct schedule_line *line = view->lines[i];
        ASSERT(line->priority < SCHEDULE_PRIORITIES && line->tenant_idx < view->tenants_count &&
               line->key_idx < view->keys_count);
        w->lines[i] = (struct walk_line){line, line->first, 0};
        w->keys[line->key_idx].waiting += line->count;
    }
    w->urgent = view->urgent ? view->urgent->first : NULL;
    const struct schedule_item *item = w->urgent;
    for (size_t n = 0; item && n < SCHEDULE_URGENT_LOOK; n++, item = item->next) {
        ASSERT(item->key_idx < view->keys_count && item->tenant_idx < view->tenants_count);
        w->keys[item->key_idx].waiting++;
    }
}

static enum err walk_init(struct walk *w, const struct schedule_view *view) {
    *w = (struct walk){.view = view, .shares = view->shares, .version = 1};
    TRY(mem_new(&w->lines, view->lines_count + 1, sizeof *w->lines));
    TRY(mem_new(&w->keys, view->keys_count + 1, sizeof *w->keys));
    TRY(mem_new(&w->lanes, view->lanes_count, sizeof *w->lanes));
    TRY(mem_new(&w->has_room, view->lanes_count, sizeof *w->has_room));
    TRY(mem_new(&w->served_ns, view->tenants_count + 1, sizeof *w->served_ns));
    memcpy(w->served_ns, view->tenants_served_ns, view->tenants_count * sizeof *w->served_ns);
    memcpy(w->lanes, view->lanes, view->lanes_count * sizeof *w->lanes);
    for (size_t i = 0; i < view->lanes_count; i++) {
        w->has_room[i] = schedule_has_room(&w->lanes[i], &view->depth);
        w->room_count += w->has_room[i];
    }
    count_waiting(w);
    return OK;
}

/* --- Which lane --- */

static enum err ask_costs(struct walk *w, uint32_t key_idx) {
    struct walk_key *key = &w->keys[key_idx];
    if (key->costs) {
        return OK;
    }
    TRY(mem_new(&key->costs, w->view->lanes_count, sizeof *key->costs));
    for (size_t i = 0; i < w->view->lanes_count; i++) {
        key->costs[i] = w->lanes[i].open ? w->view->cost(w->view->ctx, key_idx, i)
                                         : (struct schedule_cost){.job_ns = SCHEDULE_NEVER};
    }
    return OK;
}

static uint64_t add(uint64_t a, uint64_t b) {
    return a > SCHEDULE_NEVER - b ? SCHEDULE_NEVER : a + b;
}

/* The best lane with room and when the best full one would be done. Ties: fewer jobs, then the lower index. `item` NULL: any. */
static void find_places(struct place *free, uint64_t *full_end_ns, const struct walk *w,
                        const struct walk_key *key, const struct schedule_item *item) {
    *free = (struct place){.end_ns = SCHEDULE_NEVER};
    *full_end_ns = SCHEDULE_NEVER;
    for (size_t i = 0; i < w->view->lanes_count; i++) {
        const struct schedule_cost *c = &key->costs[i];
        if (c->job_ns == SCHEDULE_NEVER || (item && w->view->refuses(w->view->ctx, item, i))) {
            continue;
        }
        uint64_t cost_ns = add(c->job_ns, c->load_ns), end_ns = add(w->lanes[i].queued_ns, cost_ns);
        if (!w->has_room[i]) {
            *full_end_ns = end_ns < *full_end_ns ? end_ns : *full_end_ns;
        } else if (end_ns < free->end_ns ||
                   (end_ns == free->end_ns && end_ns != SCHEDULE_NEVER &&
                    w->lanes[i].jobs_held < w->lanes[free->lane_idx].jobs_held)) {
            *free = (struct place){i, end_ns, cost_ns};
        }
    }
}

/* How many more jobs under the key a full lane would finish until `end_ns`. */
static uint64_t jobs_until(const struct schedule_lane *lane, const struct schedule_cost *c,
                           uint64_t end_ns) {
    uint64_t begins_ns = add(lane->queued_ns, c->load_ns);
    if (c->job_ns == SCHEDULE_NEVER || begins_ns >= end_ns) {
        return 0;
    }
    return (end_ns - begins_ns) / (c->job_ns ? c->job_ns : 1);
}

static uint64_t full_lanes_until(const struct walk *w, const struct walk_key *key,
                                 uint64_t end_ns) {
    uint64_t jobs = 0;
    for (size_t i = 0; i < w->view->lanes_count; i++) {
        if (!w->has_room[i] && w->lanes[i].open) {
            jobs = add(jobs, jobs_until(&w->lanes[i], &key->costs[i], end_ns));
        }
    }
    return jobs;
}

/* What waits for the full lanes is in their queues for the keys behind it, spread as each can take it. */
static void settle(struct walk *w, struct walk_key *key, uint64_t end_ns, uint64_t jobs) {
    for (size_t i = 0; i < w->view->lanes_count && jobs > 0; i++) {
        if (!w->has_room[i] && w->lanes[i].open) {
            uint64_t own = jobs_until(&w->lanes[i], &key->costs[i], end_ns);
            uint64_t part = (uint64_t)((double)own * (double)key->waiting / (double)jobs);
            w->lanes[i].queued_ns = add(w->lanes[i].queued_ns, part * key->costs[i].job_ns);
        }
    }
    key->settled = true;
}

static enum err ask_key(struct walk *w, uint32_t key_idx) {
    struct walk_key *key = &w->keys[key_idx];
    if (key->version == w->version || key->settled) {
        return OK;
    }
    uint64_t full_end_ns;
    TRY(ask_costs(w, key_idx));
    find_places(&key->free, &full_end_ns, w, key, NULL);
    key->version = w->version;
    if (key->free.end_ns == SCHEDULE_NEVER) {
        key->answer = KEY_WAITS;
    } else if (key->free.end_ns <= full_end_ns) {
        key->answer = KEY_DIRECT;
    } else {
        uint64_t jobs = full_lanes_until(w, key, key->free.end_ns);
        key->answer = key->waiting > jobs ? KEY_OVERFLOW : KEY_WAITS;
        if (key->answer == KEY_WAITS) {
            settle(w, key, key->free.end_ns, jobs);
        }
    }
    return OK;
}

/* A choosy item asks for itself. False: not now. */
static bool place_of_item(struct place *out, const struct walk *w,
                          const struct schedule_item *item) {
    const struct walk_key *key = &w->keys[item->key_idx];
    if (!item->choosy) {
        *out = key->free;
        return true;
    }
    uint64_t full_end_ns;
    find_places(out, &full_end_ns, w, key, item);
    return out->end_ns != SCHEDULE_NEVER;
}

static struct schedule_pick pick_at(const struct walk *w, const struct schedule_item *item,
                                    const struct place *place) {
    return (struct schedule_pick){item, place->lane_idx, place->cost_ns,
                                  w->keys[item->key_idx].costs[place->lane_idx].load_ns};
}

/* --- Which item --- */

/* The head of the line whose turn it is among those of a priority with this answer; NULL: none. */
static enum err line_of(struct walk_line **out, struct walk *w, int priority,
                        enum key_answer answer) {
    struct walk_line *best = NULL;
    for (size_t i = 0; i < w->view->lines_count; i++) {
        struct walk_line *l = &w->lines[i];
        if (!l->head || l->line->priority != priority) {
            continue;
        }
        TRY(ask_key(w, l->line->key_idx));
        if (w->keys[l->line->key_idx].answer != answer) {
            continue;
        }
        uint64_t served = w->served_ns[l->line->tenant_idx];
        uint64_t best_served = best ? w->served_ns[best->line->tenant_idx] : 0;
        if (!best || served < best_served ||
            (served == best_served && is_before(l->head, best->head))) {
            best = l;
        }
    }
    *out = best;
    return OK;
}

/* A placement out of this priority; pick->item NULL: none is possible now. */
static enum err pick_of_priority(struct schedule_pick *pick, struct walk *w, int priority) {
    static const enum key_answer answers[] = {KEY_DIRECT, KEY_OVERFLOW};
    for (size_t n = 0; n < COUNT_OF(answers);) {
        struct walk_line *line = NULL;
        struct place place;
        TRY(line_of(&line, w, priority, answers[n]));
        if (!line) {
            n++;
            continue;
        }
        const struct schedule_item *item = line->head;
        line->head = item->next;
        if (place_of_item(&place, w, item)) {
            *pick = pick_at(w, item, &place);
            return OK;
        }
        if (++line->passed == SCHEDULE_CHOOSY_LOOK) {
            line->head = NULL;
        }
    }
    return OK;
}

/* Pressing deadlines in order; who must wait for a full lane is passed over for this round. */
static enum err pick_urgent(struct schedule_pick *pick, struct walk *w) {
    while (w->urgent && w->urgent_looked < SCHEDULE_URGENT_LOOK) {
        const struct schedule_item *item = w->urgent;
        struct place place;
        w->urgent = item->next;
        w->urgent_looked++;
        TRY(ask_key(w, item->key_idx));
        if (w->keys[item->key_idx].answer != KEY_WAITS && place_of_item(&place, w, item)) {
            *pick = pick_at(w, item, &place);
            return OK;
        }
    }
    return OK;
}

static enum err pick_next(struct schedule_pick *pick, struct walk *w) {
    bool asked[SCHEDULE_PRIORITIES] = {false};
    for (;;) { /* owed ones, the most first */
        int most = -1;
        for (int p = 0; p < SCHEDULE_PRIORITIES; p++) {
            if (!asked[p] && w->shares.owed_ns[p] > 0 &&
                w->shares.owed_ns[p] >= w->shares.usual_ns &&
                (most < 0 || w->shares.owed_ns[p] > w->shares.owed_ns[most])) {
                most = p;
            }
        }
        if (most < 0) {
            break;
        }
        asked[most] = true;
        TRY(pick_of_priority(pick, w, most));
        if (pick->item) {
            return OK;
        }
    }
    TRY(pick_urgent(pick, w));
    for (int p = 0; p < SCHEDULE_PRIORITIES && !pick->item; p++) {
        TRY(pick_of_priority(pick, w, p));
    }
    return OK;
}

/* --- The round --- */

static void note_pick(struct walk *w, const struct schedule_pick *pick) {
    struct schedule_lane *lane = &w->lanes[pick->lane_idx];
    struct walk_key *key = &w->keys[pick->item->key_idx];
    bool waiting[SCHEDULE_PRIORITIES] = {false};
    for (size_t i = 0; i < w->view->lines_count; i++) {
        waiting[w->lines[i].line->priority] |= w->lines[i].head != NULL;
    }
    waiting[pick->item->priority] = true;
    schedule_account(&w->shares, waiting, pick->item->priority, pick->cost_ns);
    w->served_ns[pick->item->tenant_idx] += pick->cost_ns;
    lane->queued_ns = add(lane->queued_ns, pick->cost_ns);
    lane->slack_ns = add(lane->slack_ns, key->costs[pick->lane_idx].slack_ns);
    lane->jobs_held++;
    w->has_room[pick->lane_idx] = schedule_has_room(lane, &w->view->depth);
    w->room_count -= !w->has_room[pick->lane_idx];
    key->costs[pick->lane_idx].load_ns = 0; /* it will be there */
    key->waiting -= key->waiting > 0;
    w->version++;
}

enum err schedule_round(struct schedule_pick *picks, size_t *picks_count, size_t picks_max,
                        const struct schedule_view *view) {
    size_t count = 0;
    AUTO(walk_done) struct walk w = {.view = view};
    if (view->lanes_count > 0) {
        TRY(walk_init(&w, view));
    }
    while (count < picks_max && w.room_count > 0) {
        struct schedule_pick pick = {0};
        TRY(pick_next(&pick, &w));
        if (!pick.item) {
            break;
        }
        note_pick(&w, &pick);
        picks[count++] = pick;
    }
    *picks_count = count;
    return OK;
}

/* --- Moving --- */

enum { DONORS_LOOK = 64 };
struct donor {
    size_t lane_idx;
    uint64_t end_ns;
};

static int donor_compare(const void *pa, const void *pb) { /* latest first; then by index */
    const struct donor *a = pa, *b = pb;
    if (a->end_ns != b->end_ns) {
        return a->end_ns > b->end_ns ? -1 : 1;
    }
    return a->lane_idx < b->lane_idx ? -1 : a->lane_idx > b->lane_idx;
}

/* The first donor from whom it gains; SIZE_MAX: none. */
static size_t donor_for(size_t lane_idx, const struct donor *donors, size_t donors_count,
                        const struct schedule_view *view, uint64_t gain_least_ns) {
    for (size_t d = 0; d < donors_count && d < DONORS_LOOK; d++) {
        if (donors[d].lane_idx == SIZE_MAX) {
            continue;
        }
        const struct schedule_item *item = view->lanes[donors[d].lane_idx].last;
        struct schedule_cost c = view->cost(view->ctx, item->key_idx, lane_idx);
        if (c.job_ns == SCHEDULE_NEVER ||
            (item->choosy && view->refuses(view->ctx, item, lane_idx))) {
            continue;
        }
        uint64_t end_ns = add(view->lanes[lane_idx].queued_ns, add(c.job_ns, c.load_ns));
        uint64_t gain_ns = donors[d].end_ns > end_ns ? donors[d].end_ns - end_ns : 0;
        if (gain_ns > gain_least_ns && gain_ns > c.job_ns / 4) {
            return d;
        }
    }
    return SIZE_MAX;
}

enum err schedule_rebalance(struct schedule_move *moves, size_t *moves_count, size_t moves_max,
                            const struct schedule_view *view, uint64_t gain_least_ns) {
    AUTO(mem_free_ptr) struct donor *donors = NULL;
    size_t donors_count = 0, first = 0, count = 0;
    TRY(mem_new(&donors, view->lanes_count + 1, sizeof *donors));
    for (size_t i = 0; i < view->lanes_count; i++) {
        if (view->lanes[i].last) {
            donors[donors_count++] = (struct donor){i, view->lanes[i].queued_ns};
        }
    }
    qsort(donors, donors_count, sizeof *donors, donor_compare);
    for (size_t i = 0; i < view->lanes_count && count < moves_max && first < donors_count; i++) {
        if (!view->lanes[i].open || view->lanes[i].jobs_held > 0) {
            continue;
        }
        size_t d = donor_for(i, donors + first, donors_count - first, view, gain_least_ns);
        if (d == SIZE_MAX) {
            continue;
        }
        struct donor *donor = &donors[first + d];
        moves[count++] =
            (struct schedule_move){donor->lane_idx, i, view->lanes[donor->lane_idx].last};
        donor->lane_idx = SIZE_MAX;
        while (first < donors_count && donors[first].lane_idx == SIZE_MAX) {
            first++;
        }
    }
    *moves_count = count;
    return OK;
}
