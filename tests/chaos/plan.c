/* A table of troubles with their weights and lengths; gaps and lengths are uniform. Troubles overlap, but no target has two at once, and
 * the server, which everybody needs, is left alone for a while after each of its own: a fleet that never has a server proves
 * nothing.
 */
#include "tests/chaos/plan.h"

#include <stdio.h>

static const uint64_t MS = UINT64_C(1000000);
static const uint64_t GAP_LEAST_NS = UINT64_C(150000000), GAP_MORE_NS = UINT64_C(1100000000);
static const uint64_t SERVER_REST_NS = UINT64_C(7000000000);

enum target_kind {
    TARGET_LANE,
    TARGET_NODE,
    TARGET_COORDINATOR,
    TARGET_SERVER,
    TARGET_WIRE,
    TARGET_CABLE
};
enum { TARGET_KINDS = TARGET_CABLE + 1, TARGETS_MAX = 64 };

static const struct {
    const char *name;
    enum target_kind target;
    unsigned weight;
    unsigned least_ms, most_ms;
} troubles[TROUBLES_COUNT] = {
    [KILL_LANE] = {"kill", TARGET_LANE, 10, 10, 20},
    [KILL_NODE] = {"kill", TARGET_NODE, 3, 200, 5000},
    [KILL_COORDINATOR] = {"kill", TARGET_COORDINATOR, 5, 200, 4000},
    [KILL_SERVER] = {"kill", TARGET_SERVER, 3, 100, 2500},
    [DRAIN_NODE] = {"drain", TARGET_NODE, 3, 200, 2000},
    [FREEZE_LANE] = {"freeze", TARGET_LANE, 6, 100, 6000},
    [FREEZE_NODE] = {"freeze", TARGET_NODE, 2, 100, 5000},
    [FREEZE_COORDINATOR] = {"freeze", TARGET_COORDINATOR, 5, 100, 8000},
    [FREEZE_SERVER] = {"freeze", TARGET_SERVER, 2, 100, 2500},
    [CUT_WIRE] = {"cut", TARGET_WIRE, 6, 50, 6000},
    [HOLE_IN_WIRE] = {"hole", TARGET_WIRE, 4, 50, 6000},
    [SLOW_WIRE] = {"slow", TARGET_WIRE, 4, 500, 6000},
    [PULL_CABLE] = {"pull", TARGET_CABLE, 4, 200, 6000},
    [SPOIL_CABLE] = {"spoil", TARGET_CABLE, 4, 500, 6000},
    [FULL_STORE] = {"fill", TARGET_SERVER, 2, 300, 3000},
};

const char *trouble_label(enum trouble_kind kind) {
    static const char *const targets[TARGET_KINDS] = {"lane",   "node", "coordinator",
                                                      "server", "wire", "cable"};
    static char labels[TROUBLES_COUNT][32];
    snprintf(labels[kind], sizeof labels[kind], "%s %s", troubles[kind].name,
             targets[troubles[kind].target]);
    return labels[kind];
}

static enum trouble_kind draw_kind(struct rng *rng) {
    uint64_t all = 0, at;
    for (int i = 0; i < TROUBLES_COUNT; i++) {
        all += troubles[i].weight;
    }
    at = rng_below(rng, all);
    int kind = 0;
    while (at >= troubles[kind].weight) {
        at -= troubles[kind++].weight;
    }
    return (enum trouble_kind)kind;
}

static void draw_target(struct chaos_event *e, struct rng *rng, const struct plan_size *s) {
    switch (troubles[e->kind].target) {
    case TARGET_LANE:
        e->target = (unsigned)rng_below(rng, s->nodes_count);
        e->gpu = (unsigned)rng_below(rng, s->lanes_per_node);
        break;
    case TARGET_NODE:
    case TARGET_CABLE:
        e->target = (unsigned)rng_below(rng, s->nodes_count);
        break;
    case TARGET_COORDINATOR:
        e->target = (unsigned)rng_below(rng, s->coordinators_count);
        break;
    case TARGET_WIRE:
        e->target = (unsigned)rng_below(rng, s->coordinators_count + s->nodes_count + 1);
        break;
    case TARGET_SERVER:
        break;
    }
}

unsigned chaos_plan(struct chaos_event out[EVENTS_MAX], struct rng *rng,
                    const struct plan_size *s) {
    uint64_t busy_ns[TARGET_KINDS][TARGETS_MAX] = {{0}};
    uint64_t calm_ns = s->span_ns - s->span_ns / 10;
    unsigned count = 0;
    for (uint64_t at_ns = 1000 * MS; count < EVENTS_MAX;) {
        struct chaos_event e = {.kind = draw_kind(rng)};
        at_ns += GAP_LEAST_NS + rng_below(rng, GAP_MORE_NS);
        draw_target(&e, rng, s);
        uint64_t least = troubles[e.kind].least_ms, more = troubles[e.kind].most_ms - least;
        e.at_ns = at_ns;
        e.end_ns = at_ns + (least + rng_below(rng, more + 1)) * MS;
        e.delay_ns = (1 + rng_below(rng, 40)) * MS;
        if (at_ns >= calm_ns) {
            break;
        }
        enum target_kind target = troubles[e.kind].target;
        /* Lanes end with their node: both count as the node. */
        uint64_t *busy = &busy_ns[target == TARGET_LANE ? TARGET_NODE : target][e.target];
        if (e.end_ns > calm_ns || *busy > at_ns) {
            continue;
        }
        *busy = e.end_ns + (target == TARGET_SERVER ? SERVER_REST_NS : 0);
        out[count++] = e;
    }
    return count;
}

void chaos_event_text(char *out, size_t out_bytes, const struct chaos_event *e,
                      const struct plan_size *s) {
    char target[48] = "server";
    unsigned c = s->coordinators_count;
    switch (troubles[e->kind].target) {
    case TARGET_LANE:
        snprintf(target, sizeof target, "lane w%u.%u", e->target, e->gpu);
        break;
    case TARGET_NODE:
        snprintf(target, sizeof target, "node w%u", e->target);
        break;
    case TARGET_COORDINATOR:
        snprintf(target, sizeof target, "coordinator %u", e->target);
        break;
    case TARGET_CABLE:
        snprintf(target, sizeof target, "cable of node w%u", e->target);
        break;
    case TARGET_WIRE:
        if (e->target < c) {
            snprintf(target, sizeof target, "wire of coordinator %u", e->target);
        } else if (e->target < c + s->nodes_count) {
            snprintf(target, sizeof target, "wire of node w%u", e->target - c);
        } else {
            snprintf(target, sizeof target, "wire of the submitter");
        }
        break;
    case TARGET_SERVER:
        break;
    }
    int len = snprintf(out, out_bytes, "%7.3f s  %-6s %s for %.3f s", (double)e->at_ns / 1e9,
                       troubles[e->kind].name, target, (double)(e->end_ns - e->at_ns) / 1e9);
    if ((e->kind == SLOW_WIRE || e->kind == SPOIL_CABLE) && len > 0 && (size_t)len < out_bytes) {
        snprintf(out + len, out_bytes - (size_t)len, ", %.0f ms a piece",
                 (double)e->delay_ns / 1e6);
    }
}
