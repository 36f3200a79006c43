/* The plan of a run: which troubles come when. Pure: a function of the seed and the size, so that a seed replays it.
 *
 * Targets are written as people say them: coordinator 0, node 1, lane 1.0. Every trouble has an end within the run; after the last
 * tenth everything is sound.
 *
 * Threads  any.
 */
#pragma once
#include "node/base/rng.h"

enum trouble_kind {
    KILL_LANE,        /* kill -9; its node starts it again */
    KILL_NODE,        /* kill -9 of supervisor and lanes; started again at the end */
    KILL_COORDINATOR, /* the same */
    KILL_SERVER,      /* the same, with its store */
    DRAIN_NODE,       /* SIGTERM; started again at the end */
    FREEZE_LANE,      /* SIGSTOP until the end */
    FREEZE_NODE,      /* the supervisor alone */
    FREEZE_COORDINATOR,
    FREEZE_SERVER,
    CUT_WIRE,
    HOLE_IN_WIRE,
    SLOW_WIRE,
    PULL_CABLE,  /* of a node in a namespace of its own */
    SPOIL_CABLE, /* packets are lost and late */
    FULL_STORE,  /* jobs, records and results may hardly grow any more */
    TROUBLES_COUNT
};
/* "kill lane", "freeze server" */
const char *trouble_label(enum trouble_kind kind);

struct plan_size {
    uint64_t span_ns;
    unsigned coordinators_count, nodes_count, lanes_per_node;
};
struct chaos_event {
    uint64_t at_ns, end_ns; /* since the start */
    enum trouble_kind kind;
    unsigned target; /* node, coordinator or wire; wires: coordinators, nodes, the submitter */
    unsigned gpu;    /* of lanes */
    uint64_t
        delay_ns; /* of a slow wire or a spoilt cable, which loses a packet of a hundred for every 2 ms */
};
enum { EVENTS_MAX = 1024 };
/* In order of at_ns; returns how many. */
unsigned chaos_plan(struct chaos_event out[EVENTS_MAX], struct rng *rng,
                    const struct plan_size *size);
/* "3.125 s  freeze lane 1.0 for 2.250 s" */
void chaos_event_text(char *out, size_t out_bytes, const struct chaos_event *e,
                      const struct plan_size *size);
