/* A case for the schedule: items, lanes, and costs as a table. For the tests of schedule only. */
#pragma once
#include "node/coordinator/schedule.h"

enum {
    ITEMS_MAX = 4000,
    LANES_MAX = 64,
    TENANTS_MAX = 5,
    KEYS_MAX = 4,
    LINES_MAX = SCHEDULE_PRIORITIES * TENANTS_MAX * KEYS_MAX
};

#define MS 1000000ull

/* A case with its costs as a table: key load where the key is not resident, plus the job. */
struct scene {
    struct schedule_item items[ITEMS_MAX];
    bool urgent[ITEMS_MAX];
    size_t items_count;
    struct schedule_line lines[LINES_MAX], urgent_line;
    const struct schedule_line *line_ptrs[LINES_MAX];
    struct schedule_lane lanes[LANES_MAX];
    bool resident[LANES_MAX][KEYS_MAX], possible[LANES_MAX][KEYS_MAX];
    uint64_t job_ns[KEYS_MAX], load_ns[KEYS_MAX];
    uint32_t slowness[LANES_MAX]; /* 1: takes job_ns */
    uint64_t served_ns[TENANTS_MAX];
    size_t refused_lane; /* by every choosy item */
    struct schedule_view view;
};

/* Items of priority 1 under key 0, each a job of its own, in order; open lanes that want four. */
void scene_init(struct scene *s, size_t items_count, size_t lanes_count);
struct schedule_cost scene_cost(void *ctx, uint32_t key_idx, size_t lane_idx);
/* Files all items into their lines, in the order of the array or the one given. */
void scene_file(struct scene *s, const size_t *order);
size_t scene_round(struct schedule_pick *picks, size_t picks_max, struct scene *s);
size_t scene_run(struct schedule_pick *picks, size_t picks_max, struct scene *s); /* both */
size_t idx_of(const struct scene *s, const struct schedule_pick *pick);
