/* The schedule over all orders of small cases, and its promises on large random ones. */
#include "node/coordinator/schedule.h"

#include <string.h>

#include "node/base/mem.h"
#include "tests/check/check.h"

enum { ITEMS_MAX = 400, LANES_MAX = 8, TENANTS_MAX = 5, KEYS_MAX = 4 };

#define MS 1000000ull

/* A case with its costs as a table: key load where the key is not resident, plus the job. */
struct scene {
    struct schedule_item items[ITEMS_MAX];
    unsigned item_keys[ITEMS_MAX];
    struct schedule_lane lanes[LANES_MAX];
    bool resident[LANES_MAX][KEYS_MAX], possible[LANES_MAX][KEYS_MAX];
    uint64_t job_ns[KEYS_MAX], load_ns[KEYS_MAX];
    uint64_t served_ns[TENANTS_MAX];
    struct schedule_view view;
};

static uint64_t scene_cost(void *ctx, size_t item_idx, size_t lane_idx) {
    const struct scene *s = ctx;
    unsigned key = s->item_keys[item_idx];
    if (!s->possible[lane_idx][key]) {
        return SCHEDULE_NEVER;
    }
    return s->job_ns[key] + (s->resident[lane_idx][key] ? 0 : s->load_ns[key]);
}

static void scene_init(struct scene *s, size_t items_count, size_t lanes_count) {
    memset(s, 0, sizeof *s);
    memset(s->possible, 1, sizeof s->possible);
    memset(s->resident, 1, sizeof s->resident);
    for (size_t k = 0; k < KEYS_MAX; k++) {
        s->job_ns[k] = 10 * MS;
        s->load_ns[k] = 100 * MS;
    }
    for (size_t i = 0; i < items_count; i++) {
        s->items[i] = (struct schedule_item){.order = i, .priority = 1};
    }
    for (size_t i = 0; i < lanes_count; i++) {
        s->lanes[i].open = true;
    }
    s->view = (struct schedule_view){
        .items = s->items,
        .items_count = items_count,
        .lanes = s->lanes,
        .lanes_count = lanes_count,
        .tenants_served_ns = s->served_ns,
        .tenants_count = TENANTS_MAX,
        .depth = {.jobs_least = 4, .work_least_ns = 100 * MS, .jobs_max = 32},
        .now_ns = 1000 * MS,
        .cost = scene_cost,
        .cost_ctx = s,
    };
}

static size_t scene_run(struct schedule_pick *picks, size_t picks_max, struct scene *s) {
    size_t count = SIZE_MAX;
    CHECK_OK(schedule_round(picks, &count, picks_max, &s->view));
    CHECK(count <= picks_max);
    return count;
}

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
}

static void claim_waits_for_the_full_lane(void) {
    static struct scene s;
    struct schedule_pick picks[16];
    scene_init(&s, 2, 2);
    s.resident[0][0] = false;
    s.load_ns[0] = 10000 * MS;
    s.lanes[1] = (struct schedule_lane){.queued_ns = 120 * MS, .jobs_held = 12, .open = true};
    CHECK_EQ(0, scene_run(picks, 16, &s)); /* loading 10 s is worse than waiting 120 ms */

    scene_init(&s, 16, 2); /* but a backlog of 160 ms there makes a load of 100 ms worth it */
    s.resident[0][0] = false;
    s.lanes[1] = (struct schedule_lane){.queued_ns = 100 * MS, .jobs_held = 10, .open = true};
    size_t count = scene_run(picks, 16, &s);
    CHECK(count > 0);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(0, picks[i].lane_idx);
    }
}

static void claim_unfit_job_does_not_block(void) {
    static struct scene s;
    struct schedule_pick picks[4];
    scene_init(&s, 3, 1);
    s.item_keys[0] = 1;
    s.possible[0][1] = false;
    CHECK_EQ(2, scene_run(picks, 4, &s));
    CHECK_EQ(1, picks[0].item_idx);
    CHECK_EQ(2, picks[1].item_idx);
}

static void claim_oldest_job_first(void) {
    static struct scene s;
    struct schedule_pick picks[8];
    scene_init(&s, 6, 1); /* two jobs of three partitions, interleaved in memory */
    for (size_t i = 0; i < 6; i++) {
        s.items[i].order = 7 - i % 2;
        s.items[i].partition_idx = (uint32_t)(i / 2);
    }
    s.view.depth.jobs_least = 6;
    CHECK_EQ(6, scene_run(picks, 8, &s));
    for (size_t i = 0; i < 6; i++) {
        CHECK_EQ(i < 3 ? 6 : 7, s.items[picks[i].item_idx].order);
        CHECK_EQ(i % 3, s.items[picks[i].item_idx].partition_idx);
    }
}

static void claim_urgent_first(void) {
    static struct scene s;
    struct schedule_pick picks[4];
    scene_init(&s, 4, 1);
    s.items[0].priority = 0;
    s.items[1].urgent_ns = s.view.now_ns + 1; /* not yet */
    s.items[2].urgent_ns = s.view.now_ns;
    s.items[3].urgent_ns = s.view.now_ns - 5;
    s.items[2].priority = s.items[3].priority = 3;
    CHECK_EQ(4, scene_run(picks, 4, &s));
    CHECK_EQ(3, picks[0].item_idx);
    CHECK_EQ(2, picks[1].item_idx);
    CHECK_EQ(0, picks[2].item_idx);
    CHECK_EQ(1, picks[3].item_idx);
}

static void claim_back_off_is_kept(void) {
    static struct scene s;
    struct schedule_pick picks[4];
    scene_init(&s, 2, 1);
    s.items[0].not_before_ns = s.view.now_ns + 1;
    CHECK_EQ(1, scene_run(picks, 4, &s));
    CHECK_EQ(1, picks[0].item_idx);
    s.view.now_ns++;
    CHECK_EQ(2, scene_run(picks, 4, &s));
}

static void claim_low_share(void) {
    static struct scene s;
    struct schedule_pick picks[ITEMS_MAX];
    scene_init(&s, 320, 1);
    for (size_t i = 0; i < 320; i++) {
        s.items[i].priority = i < 280 ? 0 : i < 300 ? 2 : 3;
        s.items[i].urgent_ns = i < 100 ? 1 : 0;
    }
    s.view.depth = (struct schedule_depth){.jobs_least = 160, .jobs_max = 160};
    CHECK_EQ(160, scene_run(picks, ITEMS_MAX, &s));
    size_t low = 0;
    for (size_t i = 0; i < 160; i++) {
        low += s.items[picks[i].item_idx].priority == 3;
    }
    CHECK_EQ(160 / SCHEDULE_LOW_SHARE,
             low); /* the lowest waiting line has its share, even beside deadlines */

    scene_init(&s, 40, 1); /* and over rounds of one placement each */
    low = 0;
    for (size_t i = 0; i < 40; i++) {
        s.items[i].priority = i < 20 ? 0 : 3;
    }
    for (s.view.turn = 0; s.view.turn < 16; s.view.turn++) {
        CHECK_EQ(1, scene_run(picks, 1, &s));
        low += s.items[picks[0].item_idx].priority == 3;
    }
    CHECK_EQ(2, low);
}

static void claim_tenants_share(void) {
    static struct scene s;
    struct schedule_pick picks[ITEMS_MAX];
    scene_init(&s, 90, 1);
    for (size_t i = 0; i < 90; i++) {
        s.items[i].tenant_idx = i < 80   ? 0
                                : i < 85 ? 1
                                         : 2; /* the first tenant came first, with most */
    }
    s.view.depth = (struct schedule_depth){.jobs_least = 12, .jobs_max = 12};
    CHECK_EQ(12, scene_run(picks, ITEMS_MAX, &s));
    size_t by_tenant[3] = {0};
    for (size_t i = 0; i < 12; i++) {
        by_tenant[s.items[picks[i].item_idx].tenant_idx]++;
    }
    CHECK_EQ(4, by_tenant[0]);
    CHECK_EQ(4, by_tenant[1]);
    CHECK_EQ(4, by_tenant[2]);
    s.served_ns[0] = s.served_ns[1] = 1000 * MS; /* the third was served nothing so far */
    CHECK_EQ(12, scene_run(picks, ITEMS_MAX, &s));
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(2, s.items[picks[i].item_idx].tenant_idx);
    }
}

static void claim_depth(void) {
    struct schedule_depth depth = {.jobs_least = 4, .work_least_ns = 100 * MS, .jobs_max = 32};
    struct schedule_lane lane = {.open = true};
    for (lane.jobs_held = 0; lane.jobs_held < 40; lane.jobs_held++) {
        lane.queued_ns = 99 * MS;
        CHECK_EQ(lane.jobs_held < 32, schedule_has_room(&lane, &depth));
        lane.queued_ns = 100 * MS;
        CHECK_EQ(lane.jobs_held < 4, schedule_has_room(&lane, &depth));
    }
    lane = (struct schedule_lane){.open = false};
    CHECK(!schedule_has_room(&lane, &depth));
}

/* Which (order, partition) went to which lane, so that answers can be compared across permutations. */
static void answer_of(uint64_t out[], const struct schedule_pick *picks, size_t count,
                      const struct scene *s) {
    for (size_t i = 0; i < count; i++) {
        const struct schedule_item *item = &s->items[picks[i].item_idx];
        out[i] = item->order << 32 | item->partition_idx << 8 | picks[i].lane_idx;
    }
}

static void swap_items(struct scene *s, size_t a, size_t b) {
    struct schedule_item item = s->items[a];
    unsigned key = s->item_keys[a];
    s->items[a] = s->items[b];
    s->item_keys[a] = s->item_keys[b];
    s->items[b] = item;
    s->item_keys[b] = key;
}

static size_t permutations_seen;

static void permute(struct scene *s, size_t n, const uint64_t *want, size_t want_count) {
    if (n == 1) {
        struct schedule_pick picks[8];
        uint64_t got[8];
        size_t count = scene_run(picks, 8, s);
        CHECK_EQ(want_count, count);
        answer_of(got, picks, count, s);
        CHECK_MEM(want, got, count * sizeof *got);
        permutations_seen++;
        return;
    }
    for (size_t i = 0; i < n; i++) { /* Heap's algorithm */
        permute(s, n - 1, want, want_count);
        swap_items(s, n % 2 ? 0 : i, n - 1);
    }
}

/* Every order of six partitions, over all assignments of two priorities, tenants and keys to three jobs. */
static void claim_order_in_memory_is_irrelevant(void) {
    static struct scene s;
    permutations_seen = 0;
    for (unsigned mask = 0; mask < 64; mask++) {
        scene_init(&s, 6, 2);
        s.resident[0][1] = s.resident[1][0] = false;
        for (size_t i = 0; i < 6; i++) {
            size_t job = i / 2;
            s.items[i] = (struct schedule_item){
                .order = job,
                .partition_idx = (uint32_t)(i % 2),
                .priority = (uint8_t)(mask >> job & 1),
                .tenant_idx = mask >> (3 + job) & 1,
            };
            s.item_keys[i] = job % 2;
        }
        struct schedule_pick picks[8];
        uint64_t want[8];
        size_t count = scene_run(picks, 8, &s);
        CHECK(count > 0);
        answer_of(want, picks, count, &s);
        permute(&s, 6, want, count);
    }
    CHECK_EQ(64 * 720, permutations_seen);
}

static void scene_random(struct scene *s, struct rng *rng) {
    scene_init(s, 1 + rng_below(rng, ITEMS_MAX), 1 + rng_below(rng, LANES_MAX));
    for (size_t k = 0; k < KEYS_MAX; k++) {
        s->job_ns[k] = (1 + rng_below(rng, 50)) * MS;
        s->load_ns[k] = rng_below(rng, 500) * MS;
    }
    for (size_t i = 0; i < s->view.items_count; i++) {
        s->items[i] = (struct schedule_item){
            .order = i / 3,
            .partition_idx = (uint32_t)(i % 3),
            .priority = (uint8_t)((i / 3) * 7 % 4),
            .tenant_idx = (uint32_t)((i / 3) % TENANTS_MAX),
            .urgent_ns = rng_below(rng, 10) ? 0 : 900 * MS + rng_below(rng, 200) * MS,
        };
        s->item_keys[i] = (unsigned)((i / 3) % KEYS_MAX);
    }
    for (size_t l = 0; l < s->view.lanes_count; l++) {
        s->lanes[l] = (struct schedule_lane){
            .queued_ns = rng_below(rng, 200) * MS,
            .jobs_held = (uint32_t)rng_below(rng, 8),
            .open = rng_below(rng, 6) != 0,
        };
        for (size_t k = 0; k < KEYS_MAX; k++) {
            s->resident[l][k] = rng_below(rng, 2);
            s->possible[l][k] = rng_below(rng, 5) != 0;
        }
    }
    s->view.turn = rng_below(rng, 100);
}

/* No item twice, no closed, full or unfit lane, costs as told; and at the end no lane that has room would have been the
 * best place of a partition left waiting, were it empty. */
static void scene_check(const struct scene *s, const struct schedule_pick *picks, size_t count) {
    bool taken[ITEMS_MAX] = {false};
    struct schedule_lane lanes[LANES_MAX];
    memcpy(lanes, s->lanes, sizeof lanes);
    for (size_t i = 0; i < count; i++) {
        CHECK(picks[i].item_idx < s->view.items_count && picks[i].lane_idx < s->view.lanes_count);
        CHECK(!taken[picks[i].item_idx]);
        taken[picks[i].item_idx] = true;
        struct schedule_lane *lane = &lanes[picks[i].lane_idx];
        CHECK(schedule_has_room(lane, &s->view.depth));
        CHECK_EQ(scene_cost((void *)(uintptr_t)s, picks[i].item_idx, picks[i].lane_idx),
                 picks[i].cost_ns);
        CHECK(picks[i].cost_ns != SCHEDULE_NEVER);
        lane->queued_ns += picks[i].cost_ns;
        lane->jobs_held++;
    }
    for (size_t i = 0; i < s->view.items_count; i++) {
        for (size_t l = 0; l < s->view.lanes_count && !taken[i]; l++) {
            if (!schedule_has_room(&lanes[l], &s->view.depth) || !s->possible[l][s->item_keys[i]]) {
                continue;
            }
            bool other_is_open = false; /* somewhere it may rather wait */
            for (size_t o = 0; o < s->view.lanes_count; o++) {
                other_is_open |= o != l && lanes[o].open && s->possible[o][s->item_keys[i]];
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
                 scene_run(first, 1, &s)); /* a shorter answer is a prefix of the longer one */
        if (count > 0) {
            CHECK_EQ(picks[0].item_idx, first[0].item_idx);
            CHECK_EQ(picks[0].lane_idx, first[0].lane_idx);
        }
    }
}

/* Fed round after round, everything is placed exactly once and no lane idles while something could run on it. */
static void claim_everything_is_placed(void) {
    static struct scene s;
    struct rng *rng = check_rng();
    for (int round = 0; round < 50; round++) {
        scene_random(&s, rng);
        memset(s.possible, 1, sizeof s.possible);
        s.lanes[0].open = true;
        size_t left = s.view.items_count, steps = 0;
        while (left > 0) {
            struct schedule_pick pick;
            CHECK(++steps < 100 * ITEMS_MAX);
            if (scene_run(&pick, 1, &s) == 1) {
                s.lanes[pick.lane_idx].queued_ns += pick.cost_ns;
                s.lanes[pick.lane_idx].jobs_held++;
                s.served_ns[s.items[pick.item_idx].tenant_idx] += pick.cost_ns;
                s.view.turn++;
                swap_items(&s, pick.item_idx, left - 1);
                s.view.items_count = --left;
                continue;
            }
            for (size_t l = 0; l < s.view.lanes_count;
                 l++) { /* time passes: the lanes work everything off */
                s.lanes[l].queued_ns = 0;
                s.lanes[l].jobs_held = 0;
            }
        }
    }
}

static void claim_survives_lack_of_memory(void) {
    static struct scene s;
    scene_init(&s, 5, 2);
    long live = mem_live_blocks();
    for (long n = 0; n < 4; n++) {
        struct schedule_pick picks[4];
        size_t count = 99;
        mem_fail_after(n);
        enum err err = schedule_round(picks, &count, 4, &s.view);
        mem_fail_after(-1);
        CHECK_EQ(E_LIMIT, err);
        CHECK_EQ(99, count);
        CHECK_EQ(live, mem_live_blocks());
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"nothing waiting, no lane, or only closed lanes: no placement", claim_nothing_to_do},
        {"a partition goes to the least loaded lane", claim_least_loaded_lane},
        {"the lane that holds the key wins until its queue costs more than loading",
         claim_key_affinity},
        {"a partition waits for a full lane that is still the best", claim_waits_for_the_full_lane},
        {"a job that fits no lane blocks nobody", claim_unfit_job_does_not_block},
        {"within a priority the oldest job's partitions go first, in order",
         claim_oldest_job_first},
        {"an urgent deadline goes before any priority, the earliest first", claim_urgent_first},
        {"a partition given back waits out its back-off", claim_back_off_is_kept},
        {"the lowest waiting priority has its guaranteed share", claim_low_share},
        {"tenants are served alike", claim_tenants_share},
        {"a lane holds enough to stay busy and never more than its maximum", claim_depth},
        {"the answer does not depend on the order in memory (all orders of six)",
         claim_order_in_memory_is_irrelevant},
        {"random scenes: no partition twice, no lane overfilled, none idle without reason",
         claim_promises_on_random_scenes},
        {"round after round everything is placed exactly once", claim_everything_is_placed},
        {"schedule_round survives lack of memory", claim_survives_lack_of_memory},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
