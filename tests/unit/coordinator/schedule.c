/* The schedule over all orders of small cases, and its promises on large random ones. */
#include <string.h>

#include "node/base/mem.h"
#include "tests/check/check.h"
#include "tests/unit/coordinator/scene.h"

static void claim_nothing_to_do(void) {
    static struct scene s;
    struct schedule_pick picks[4];
    scene_init(&s, 0, 2);
    CHECK_EQ(0, scene_run(picks, 4, &s));
    scene_init(&s, 3, 0);
    CHECK_EQ(0, scene_run(picks, 4, &s));
    scene_init(&s, 3, 2);
    s.lanes[0].open = s.lanes[1].open = false;
    CHECK_EQ(0, scene_run(picks, 4, &s));
}

static void claim_least_loaded_lane(void) {
    static struct scene s;
    struct schedule_pick picks[4];
    scene_init(&s, 1, 3);
    s.lanes[0].queued_ns = 30 * MS;
    s.lanes[1].queued_ns = 20 * MS;
    s.lanes[2].queued_ns = 25 * MS;
    CHECK_EQ(1, scene_run(picks, 4, &s));
    CHECK_EQ(1, picks[0].lane_idx);
    CHECK_EQ(10 * MS, picks[0].cost_ns);
}

static void claim_key_affinity(void) {
    static struct scene s;
    struct schedule_pick picks[4];
    scene_init(&s, 1, 2);
    s.resident[0][0] = false;
    s.lanes[1].queued_ns = 90 * MS; /* 90 + 10 here beats 0 + 100 + 10 there */
    CHECK_EQ(1, scene_run(picks, 4, &s));
    CHECK_EQ(1, picks[0].lane_idx);
    s.lanes[1].queued_ns = 101 * MS;
    CHECK_EQ(1, scene_run(picks, 4, &s));
    CHECK_EQ(0, picks[0].lane_idx);
    CHECK_EQ(110 * MS, picks[0].cost_ns);
    CHECK_EQ(100 * MS, picks[0].load_ns);
}

static void claim_waits_for_the_full_lane(void) {
    static struct scene s;
    struct schedule_pick picks[16];
    scene_init(&s, 2, 2);
    s.resident[0][0] = false;
    s.load_ns[0] = 10000 * MS;
    s.lanes[1] = (struct schedule_lane){
        .queued_ns = 120 * MS, .jobs_held = 12, .jobs_least = 4, .open = true};
    CHECK_EQ(0, scene_run(picks, 16, &s)); /* loading 10 s is worse than waiting 120 ms */

    scene_init(&s, 16, 2); /* but a backlog of 160 ms there makes a load of 100 ms worth it */
    s.resident[0][0] = false;
    s.lanes[1] = (struct schedule_lane){
        .queued_ns = 100 * MS, .jobs_held = 10, .jobs_least = 4, .open = true};
    size_t count = scene_run(picks, 16, &s);
    CHECK(count > 0);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(0, picks[i].lane_idx);
        CHECK_EQ(i ? 0 : 100 * MS, picks[i].load_ns); /* loaded once */
    }
}

/* Two keys, each resident on one lane, both in demand: neither lane is made to load the other's. */
static void claim_no_needless_loads(void) {
    static struct scene s;
    struct schedule_pick picks[16];
    scene_init(&s, 200, 2);
    for (size_t i = 0; i < 200; i++) {
        s.items[i].key_idx = i % 2 ? 0 : 1;
    }
    s.resident[0][1] = s.resident[1][0] = false;
    s.view.depth.work_least_ns = 50 * MS;
    s.lanes[1].jobs_held = 4; /* full, with key 1; the first in line is under key 1 */
    s.lanes[1].queued_ns = 90 * MS;
    size_t count = scene_run(picks, 16, &s);
    CHECK(count >= 4);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(0, picks[i].lane_idx);
        CHECK_EQ(0, picks[i].item->key_idx);
    }
}

static void claim_unfit_job_does_not_block(void) {
    static struct scene s;
    struct schedule_pick picks[4];
    scene_init(&s, 3, 1);
    s.items[0].key_idx = 1;
    s.possible[0][1] = false;
    CHECK_EQ(2, scene_run(picks, 4, &s));
    CHECK_EQ(1, idx_of(&s, &picks[0]));
    CHECK_EQ(2, idx_of(&s, &picks[1]));
    scene_init(&s, 3, 2); /* nor one that was given back by the lane that is free */
    s.items[0].choosy = true;
    s.refused_lane = 0;
    s.lanes[1].jobs_held = 4;
    s.lanes[1].queued_ns = 200 * MS;
    CHECK_EQ(2, scene_run(picks, 4, &s));
    CHECK_EQ(1, idx_of(&s, &picks[0]));
    s.lanes[1].jobs_held = 3;
    CHECK_EQ(3, scene_run(picks, 4, &s));
    CHECK_EQ(0, idx_of(&s, &picks[0]));
    CHECK_EQ(1, picks[0].lane_idx);
}

static void claim_oldest_job_first(void) {
    static struct scene s;
    struct schedule_pick picks[8];
    scene_init(&s, 6, 1); /* two jobs of three partitions, interleaved in memory */
    for (size_t i = 0; i < 6; i++) {
        s.items[i].rank = 7 - i % 2;
        s.items[i].partition_idx = (uint32_t)(i / 2);
        s.items[i].key_idx = i % 2; /* in two lines */
    }
    s.lanes[0].jobs_least = 6;
    CHECK_EQ(6, scene_run(picks, 8, &s));
    for (size_t i = 0; i < 6; i++) {
        CHECK_EQ(i < 3 ? 6 : 7, picks[i].item->rank);
        CHECK_EQ(i % 3, picks[i].item->partition_idx);
    }
}

static void claim_urgent_first(void) {
    static struct scene s;
    struct schedule_pick picks[4];
    scene_init(&s, 4, 1);
    s.items[0].priority = 0;
    s.items[2].rank = 50; /* deadlines */
    s.items[3].rank = 45;
    s.urgent[2] = s.urgent[3] = true;
    s.items[2].priority = s.items[3].priority = 3;
    CHECK_EQ(4, scene_run(picks, 4, &s));
    CHECK_EQ(3, idx_of(&s, &picks[0]));
    CHECK_EQ(2, idx_of(&s, &picks[1]));
    CHECK_EQ(0, idx_of(&s, &picks[2]));
    CHECK_EQ(1, idx_of(&s, &picks[3]));
}

/* Shares of the lanes' time by priority, when all four wait and deadlines press as well. */
static void claim_guaranteed_shares(void) {
    static struct scene s;
    static struct schedule_pick picks[1600];
    size_t by_priority[SCHEDULE_PRIORITIES] = {0};
    scene_init(&s, 4000, 1);
    for (size_t i = 0; i < 4000; i++) {
        s.items[i].priority = (uint8_t)(i / 800 % 4);
        s.urgent[i] = i >= 3200; /* of priority 0 */
    }
    s.lanes[0].jobs_least = s.view.depth.jobs_max = 800;
    CHECK_EQ(800, scene_run(picks, 1600, &s));
    for (size_t i = 0; i < 800; i++) {
        by_priority[picks[i].item->priority]++;
    }
    for (int p = 1; p < 4; p++) { /* of 800: their sixteenths, give or take one */
        size_t due = 800 / SCHEDULE_SHARE_PARTS * schedule_share[p];
        CHECK_MSG(by_priority[p] + 1 >= due && by_priority[p] <= due + 1, "priority %d got %zu", p,
                  by_priority[p]);
    }
    /* Over rounds of one placement each, with shares carried on, as much; by time, not by number. */
    scene_init(&s, 2000, 1);
    for (size_t i = 0; i < 2000; i++) {
        s.items[i].priority = i % 2 ? 3 : 0;
        s.items[i].key_idx = i % 2;
    }
    s.job_ns[1] = 40 * MS;
    scene_file(&s, NULL);
    uint64_t low_ns = 0, all_ns = 0;
    bool waiting[SCHEDULE_PRIORITIES] = {true, false, false, true};
    for (int n = 0; n < 800; n++) {
        struct schedule_pick pick;
        CHECK_EQ(1, scene_round(&pick, 1, &s));
        schedule_line_take(&s.items[idx_of(&s, &pick)]);
        schedule_account(&s.view.shares, waiting, pick.item->priority, pick.cost_ns);
        low_ns += pick.item->priority == 3 ? pick.cost_ns : 0;
        all_ns += pick.cost_ns;
    }
    CHECK(low_ns * SCHEDULE_SHARE_PARTS >= all_ns * 95 / 100);
    CHECK(low_ns * SCHEDULE_SHARE_PARTS <= all_ns * 105 / 100 + 16 * 40 * MS);
}

static void claim_account(void) {
    struct schedule_shares shares = {0};
    bool waiting[SCHEDULE_PRIORITIES] = {true, true, false, false};
    for (int n = 0; n < 1000;
         n++) { /* priority 1 waits and cannot be placed: what it is owed is bounded */
        schedule_account(&shares, waiting, 0, 16 * MS);
    }
    CHECK(shares.owed_ns[1] > 0 && shares.owed_ns[1] <= (int64_t)(32 * 16 * MS));
    CHECK_EQ(0, shares.owed_ns[3]);
    waiting[1] = false; /* went away: neither owed nor owing when it comes back */
    schedule_account(&shares, waiting, 0, 16 * MS);
    CHECK_EQ(0, shares.owed_ns[1]);
}

static void claim_tenants_share(void) {
    static struct scene s;
    static struct schedule_pick picks[100];
    scene_init(&s, 90, 1);
    for (size_t i = 0; i < 90; i++) {
        s.items[i].tenant_idx = i < 80   ? 0
                                : i < 85 ? 1
                                         : 2; /* the first tenant came first, with most */
    }
    s.lanes[0].jobs_least = s.view.depth.jobs_max = 12;
    CHECK_EQ(12, scene_run(picks, 100, &s));
    size_t by_tenant[3] = {0};
    for (size_t i = 0; i < 12; i++) {
        by_tenant[picks[i].item->tenant_idx]++;
    }
    CHECK_EQ(4, by_tenant[0]);
    CHECK_EQ(4, by_tenant[1]);
    CHECK_EQ(4, by_tenant[2]);
    s.served_ns[0] = s.served_ns[1] = 1000 * MS; /* the third was served nothing so far */
    CHECK_EQ(12, scene_run(picks, 100, &s));
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(2, picks[i].item->tenant_idx);
    }
}

static void claim_depth(void) {
    struct schedule_depth depth = {.work_least_ns = 100 * MS, .jobs_max = 32};
    struct schedule_lane lane = {.open = true, .jobs_least = 4};
    for (lane.jobs_held = 0; lane.jobs_held < 40; lane.jobs_held++) {
        lane.queued_ns = 99 * MS;
        CHECK_EQ(lane.jobs_held < 32, schedule_has_room(&lane, &depth));
        lane.queued_ns = 100 * MS;
        CHECK_EQ(lane.jobs_held < 4, schedule_has_room(&lane, &depth));
    }
    /* Thirty jobs that take 10 ms each because the lane waits, and its device 3: it holds 90 ms for it, not 300. */
    lane = (struct schedule_lane){.open = true, .jobs_held = 30, .queued_ns = 300 * MS};
    CHECK(!schedule_has_room(&lane, &depth));
    lane.slack_ns = 210 * MS;
    CHECK(schedule_has_room(&lane, &depth));
    lane.slack_ns = 200 * MS;
    CHECK(!schedule_has_room(&lane, &depth));
    lane = (struct schedule_lane){.open = false};
    CHECK(!schedule_has_room(&lane, &depth));
}

/* Which (rank, partition) went to which lane, so that answers can be compared across permutations. */
static void answer_of(uint64_t out[], const struct schedule_pick *picks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = picks[i].item->rank << 32 | picks[i].item->partition_idx << 8 | picks[i].lane_idx;
    }
}

static size_t permutations_seen;

static void permute(struct scene *s, size_t order[6], size_t n, const uint64_t *want,
                    size_t want_count) {
    if (n == 1) {
        struct schedule_pick picks[8];
        uint64_t got[8];
        scene_file(s, order);
        if (permutations_seen % 2) { /* the order of the lines is irrelevant as well */
            for (size_t i = 0; i < s->view.lines_count / 2; i++) {
                const struct schedule_line *line = s->line_ptrs[i];
                s->line_ptrs[i] = s->line_ptrs[s->view.lines_count - 1 - i];
                s->line_ptrs[s->view.lines_count - 1 - i] = line;
            }
        }
        size_t count = scene_round(picks, 8, s);
        CHECK_EQ(want_count, count);
        answer_of(got, picks, count);
        CHECK_MEM(want, got, count * sizeof *got);
        permutations_seen++;
        return;
    }
    for (size_t i = 0; i < n; i++) { /* Heap's algorithm */
        permute(s, order, n - 1, want, want_count);
        size_t other = n % 2 ? 0 : i, was = order[other];
        order[other] = order[n - 1];
        order[n - 1] = was;
    }
}

/* Every order of arrival of six partitions, over all assignments of two priorities, tenants and keys to three jobs. */
static void claim_order_of_arrival_is_irrelevant(void) {
    static struct scene s;
    permutations_seen = 0;
    for (unsigned mask = 0; mask < 64; mask++) {
        scene_init(&s, 6, 2);
        s.resident[0][1] = s.resident[1][0] = false;
        for (size_t i = 0; i < 6; i++) {
            size_t job = i / 2;
            s.items[i] = (struct schedule_item){
                .rank = job,
                .partition_idx = (uint32_t)(i % 2),
                .priority = (uint8_t)(mask >> job & 1),
                .tenant_idx = mask >> (3 + job) & 1,
                .key_idx = (uint32_t)(job % 2),
            };
        }
        struct schedule_pick picks[8];
        uint64_t want[8];
        size_t order[6] = {0, 1, 2, 3, 4, 5};
        size_t count = scene_run(picks, 8, &s);
        CHECK_EQ(6, count);
        answer_of(want, picks, count);
        permute(&s, order, 6, want, count);
    }
    CHECK_EQ(64 * 720, permutations_seen);
}

static void scene_random(struct scene *s, struct rng *rng) {
    scene_init(s, 1 + rng_below(rng, 400), 1 + rng_below(rng, 8));
    for (size_t k = 0; k < KEYS_MAX; k++) {
        s->job_ns[k] = (1 + rng_below(rng, 50)) * MS;
        s->load_ns[k] = rng_below(rng, 500) * MS;
    }
    for (size_t i = 0; i < s->items_count; i++) {
        s->items[i] = (struct schedule_item){
            .rank = i / 3,
            .partition_idx = (uint32_t)(i % 3),
            .priority = (uint8_t)((i / 3) * 7 % 4),
            .tenant_idx = (uint32_t)((i / 3) % TENANTS_MAX),
            .key_idx = (uint32_t)((i / 3) % KEYS_MAX),
        };
        s->urgent[i] = rng_below(rng, 20) == 0;
    }
    for (size_t l = 0; l < s->view.lanes_count; l++) {
        s->lanes[l] = (struct schedule_lane){
            .queued_ns = rng_below(rng, 200) * MS,
            .jobs_held = (uint32_t)rng_below(rng, 8),
            .jobs_least = 1 + (uint32_t)rng_below(rng, 5),
            .open = rng_below(rng, 6) != 0,
        };
        for (size_t k = 0; k < KEYS_MAX; k++) {
            s->resident[l][k] = rng_below(rng, 2);
            s->possible[l][k] = rng_below(rng, 5) != 0;
        }
    }
    for (int p = 0; p < SCHEDULE_PRIORITIES; p++) {
        s->view.shares.owed_ns[p] = (int64_t)(rng_below(rng, 100) * MS) - (int64_t)(50 * MS);
    }
}

/* No item twice, no closed, full or unfit lane, costs as told; and at the end nothing waits for which some lane has room and no other
 * lane would do. */
static void scene_check(const struct scene *s, const struct schedule_pick *picks, size_t count) {
    static bool taken[ITEMS_MAX];
    struct schedule_lane lanes[LANES_MAX];
    bool loaded[LANES_MAX][KEYS_MAX] = {{false}};
    memset(taken, 0, sizeof taken);
    memcpy(lanes, s->lanes, sizeof lanes);
    for (size_t i = 0; i < count; i++) {
        size_t item = idx_of(s, &picks[i]), l = picks[i].lane_idx;
        uint32_t key = picks[i].item->key_idx;
        CHECK(item < s->items_count && l < s->view.lanes_count);
        CHECK(!taken[item]);
        taken[item] = true;
        CHECK(schedule_has_room(&lanes[l], &s->view.depth));
        struct schedule_cost c = scene_cost((void *)(uintptr_t)s, key, l);
        CHECK(c.job_ns != SCHEDULE_NEVER);
        uint64_t load_ns = loaded[l][key] ? 0 : c.load_ns;
        CHECK_EQ(c.job_ns + load_ns, picks[i].cost_ns);
        CHECK_EQ(load_ns, picks[i].load_ns);
        loaded[l][key] = true;
        lanes[l].queued_ns += picks[i].cost_ns;
        lanes[l].jobs_held++;
    }
    for (size_t i = 0; i < s->items_count; i++) {
        for (size_t l = 0; l < s->view.lanes_count && !taken[i]; l++) {
            uint32_t key = s->items[i].key_idx;
            if (!schedule_has_room(&lanes[l], &s->view.depth) || !s->possible[l][key]) {
                continue;
            }
            bool other_is_open = false; /* somewhere it may rather wait */
            for (size_t o = 0; o < s->view.lanes_count; o++) {
                other_is_open |= o != l && lanes[o].open && s->possible[o][key];
            }
            CHECK_MSG(other_is_open, "partition %zu waits although its only lane %zu has room", i,
                      l);
        }
    }
}

static void claim_promises_on_random_scenes(void) {
    static struct scene s;
    static struct schedule_pick picks[ITEMS_MAX];
    struct rng *rng = check_rng();
    for (int round = 0; round < 2000; round++) {
        scene_random(&s, rng);
        size_t count = scene_run(picks, ITEMS_MAX, &s);
        scene_check(&s, picks, count);
        struct schedule_pick first[1];
        CHECK_EQ(count > 0,
                 scene_round(first, 1, &s)); /* a shorter answer is a prefix of the longer one */
        if (count > 0) {
            CHECK(picks[0].item == first[0].item);
            CHECK_EQ(picks[0].lane_idx, first[0].lane_idx);
        }
    }
}

static void claim_survives_lack_of_memory(void) {
    static struct scene s;
    struct schedule_pick picks[4];
    size_t count = 7;
    scene_init(&s, 8, 3);
    scene_file(&s, NULL);
    for (long n = 0; n < 50; n++) {
        mem_fail_after(n);
        enum err code = schedule_round(picks, &count, 4, &s.view);
        bool injected = !mem_fail_pending();
        mem_fail_after(-1);
        CHECK(code == (injected ? E_LIMIT : OK));
        CHECK_EQ(injected ? 7 : 4, count);
        if (!injected) {
            return;
        }
    }
    CHECK_MSG(false, "allocates more than 50 times");
}

/* --- Moving --- */

static void claim_rebalance(void) {
    static struct scene s;
    struct schedule_move moves[4];
    size_t count = 9;
    scene_init(&s, 3, 4);
    s.job_ns[0] = 1000 * MS;
    for (size_t l = 0; l < 3; l++) { /* one lane idle, three with work */
        s.lanes[l].jobs_held = 3;
        s.lanes[l].queued_ns = (l == 1 ? 5000 : 3000) * MS;
        s.lanes[l].last = &s.items[l];
    }
    CHECK_OK(schedule_rebalance(moves, &count, 4, &s.view, 200 * MS));
    CHECK_EQ(1, count); /* from the one that would end last */
    CHECK_EQ(1, moves[0].from_idx);
    CHECK_EQ(3, moves[0].to_idx);
    CHECK(moves[0].item == &s.items[1]);
    s.possible[3][0] = false; /* not where it cannot run */
    CHECK_OK(schedule_rebalance(moves, &count, 4, &s.view, 200 * MS));
    CHECK_EQ(0, count);
    s.possible[3][0] = true; /* nor for nothing */
    s.resident[3][0] = false;
    s.load_ns[0] = 4100 * MS;
    CHECK_OK(schedule_rebalance(moves, &count, 4, &s.view, 200 * MS));
    CHECK_EQ(0, count);
    s.resident[3][0] = true; /* nor to one that is busy */
    s.lanes[3].jobs_held = 1;
    CHECK_OK(schedule_rebalance(moves, &count, 4, &s.view, 200 * MS));
    CHECK_EQ(0, count);
}

static void claim_everything_is_placed(void) {
    static struct scene s;
    struct rng *rng = check_rng();
    for (int round = 0; round < 50; round++) {
        scene_random(&s, rng);
        memset(s.possible, 1, sizeof s.possible);
        s.lanes[0].open = true;
        scene_file(&s, NULL);
        size_t left = s.items_count, steps = 0;
        while (left > 0) {
            struct schedule_pick pick;
            CHECK(++steps < 100 * ITEMS_MAX);
            if (scene_round(&pick, 1, &s) == 1) {
                s.lanes[pick.lane_idx].queued_ns += pick.cost_ns;
                s.lanes[pick.lane_idx].jobs_held++;
                schedule_line_take(&s.items[idx_of(&s, &pick)]);
                left--;
            } else { /* time goes on */
                bool held = false;
                for (size_t l = 0; l < s.view.lanes_count; l++) {
                    held |= s.lanes[l].open && s.lanes[l].jobs_held > 0;
                    s.lanes[l].queued_ns = 0;
                    s.lanes[l].jobs_held = 0;
                }
                CHECK(held); /* nothing placed on empty lanes: it would wait for ever */
            }
        }
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"no items, no lanes, no open lane: no placement", claim_nothing_to_do},
        {"a partition goes where it ends first", claim_least_loaded_lane},
        {"a resident key is worth its load time", claim_key_affinity},
        {"a partition waits for a full lane when loading elsewhere costs more",
         claim_waits_for_the_full_lane},
        {"a lane with room is given what it holds the key of", claim_no_needless_loads},
        {"a partition that fits nowhere free does not block those behind it",
         claim_unfit_job_does_not_block},
        {"the partitions of the oldest job first, in order", claim_oldest_job_first},
        {"pressing deadlines first, the earliest first", claim_urgent_first},
        {"every priority has its guaranteed share of time, even beside deadlines",
         claim_guaranteed_shares},
        {"what a priority is owed is bounded, and gone when it goes", claim_account},
        {"tenants are served alike", claim_tenants_share},
        {"a lane holds enough to stay busy and never more than its maximum", claim_depth},
        {"the answer does not depend on the order of arrival (all orders of six)",
         claim_order_of_arrival_is_irrelevant},
        {"random scenes: no partition twice, no lane overfilled, none idle without reason",
         claim_promises_on_random_scenes},
        {"round after round everything is placed exactly once", claim_everything_is_placed},
        {"what would end last moves to a lane that is idle, where it gains", claim_rebalance},
        {"schedule_round survives lack of memory", claim_survives_lack_of_memory},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
