/* Lines are made anew each time: a test changes an item and files again. */
#include "tests/unit/coordinator/scene.h"

#include <string.h>

#include "tests/check/check.h"

struct schedule_cost scene_cost(void *ctx, uint32_t key_idx, size_t lane_idx) {
    const struct scene *s = ctx;
    if (!s->possible[lane_idx][key_idx]) {
        return (struct schedule_cost){.job_ns = SCHEDULE_NEVER};
    }
    return (struct schedule_cost){.job_ns = s->job_ns[key_idx] * s->slowness[lane_idx],
                                  .load_ns =
                                      s->resident[lane_idx][key_idx] ? 0 : s->load_ns[key_idx]};
}

static bool scene_refuses(void *ctx, const struct schedule_item *item, size_t lane_idx) {
    const struct scene *s = ctx;
    (void)item;
    return lane_idx == s->refused_lane;
}

void scene_init(struct scene *s, size_t items_count, size_t lanes_count) {
    memset(s, 0, sizeof *s);
    memset(s->possible, 1, sizeof s->possible);
    memset(s->resident, 1, sizeof s->resident);
    s->items_count = items_count;
    s->refused_lane = SIZE_MAX;
    for (size_t k = 0; k < KEYS_MAX; k++) {
        s->job_ns[k] = 10 * MS;
        s->load_ns[k] = 100 * MS;
    }
    for (size_t i = 0; i < items_count; i++) {
        s->items[i] = (struct schedule_item){.rank = i, .priority = 1};
    }
    for (size_t i = 0; i < lanes_count; i++) {
        s->slowness[i] = 1;
        s->lanes[i] = (struct schedule_lane){.open = true, .jobs_least = 4};
    }
    s->view = (struct schedule_view){
        .urgent = &s->urgent_line,
        .lines = s->line_ptrs,
        .lanes = s->lanes,
        .lanes_count = lanes_count,
        .tenants_served_ns = s->served_ns,
        .tenants_count = TENANTS_MAX,
        .keys_count = KEYS_MAX,
        .depth = {.work_least_ns = 100 * MS, .jobs_max = 32},
        .cost = scene_cost,
        .refuses = scene_refuses,
        .ctx = s,
    };
}

static struct schedule_line *line_of(struct scene *s, const struct schedule_item *item) {
    return &s->lines[(item->priority * TENANTS_MAX + item->tenant_idx) * KEYS_MAX + item->key_idx];
}

void scene_file(struct scene *s, const size_t *order) {
    memset(s->lines, 0, sizeof s->lines);
    s->urgent_line = (struct schedule_line){0};
    for (size_t i = 0; i < LINES_MAX; i++) {
        s->lines[i].key_idx = (uint32_t)(i % KEYS_MAX);
        s->lines[i].tenant_idx = (uint32_t)(i / KEYS_MAX % TENANTS_MAX);
        s->lines[i].priority = (uint8_t)(i / KEYS_MAX / TENANTS_MAX);
    }
    for (size_t n = 0; n < s->items_count; n++) {
        size_t i = order ? order[n] : n;
        s->items[i].line = NULL;
        schedule_line_put(s->urgent[i] ? &s->urgent_line : line_of(s, &s->items[i]), &s->items[i]);
    }
    s->view.lines_count = 0;
    for (size_t i = 0; i < LINES_MAX; i++) {
        if (s->lines[i].count > 0) {
            s->line_ptrs[s->view.lines_count++] = &s->lines[i];
        }
    }
}

size_t scene_round(struct schedule_pick *picks, size_t picks_max, struct scene *s) {
    size_t count = SIZE_MAX;
    CHECK_OK(schedule_round(picks, &count, picks_max, &s->view));
    CHECK(count <= picks_max);
    return count;
}

size_t scene_run(struct schedule_pick *picks, size_t picks_max, struct scene *s) {
    scene_file(s, NULL);
    return scene_round(picks, picks_max, s);
}

size_t idx_of(const struct scene *s, const struct schedule_pick *pick) {
    return (size_t)(pick->item - s->items);
}
