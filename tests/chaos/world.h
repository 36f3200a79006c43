/* The fleet under chaos: a real nats-server, coordinators and nodes as processes, each behind a wire of its own, and the hand that
 * troubles them by the plan.
 *
 * Processes that end although nobody killed them are started again after a moment, as a service manager would, and counted; one that
 * ended by a signal which was not ours is a crash.
 *
 * Owner    the claim.
 * Threads  the claim's: processes die with the thread that started them.
 */
#pragma once
#include "tests/chaos/cables.h"
#include "tests/chaos/plan.h"
#include "tests/chaos/wire.h"
#include "tests/e2e/host.h"

enum {
    COORDINATORS = 2,
    NODES = 3,
    LANES_PER_NODE = 2,
    SUBMITTER_WIRE = COORDINATORS + NODES,
    FULL_STREAMS = 3
};

struct trouble_hand { /* what was done about a trouble */
    bool begun, active, skipped;
    pid_t frozen; /* to be woken */
};

struct full_stream {
    const char *stream;
    char *settings; /* owned: as they were */
};

struct world {
    struct host host; /* nodes are in here */
    struct child coordinators[COORDINATORS];
    bool coordinator_down[COORDINATORS], node_down[NODES]; /* by the plan */
    uint64_t back_ns[COORDINATORS + NODES]; /* unplanned: started again at; 0: runs */
    struct full_stream full[FULL_STREAMS];
    struct wires *wires;   /* owned */
    struct cables *cables; /* owned; NULL: nodes are in no namespaces */
    struct chaos_event events[EVENTS_MAX];
    struct trouble_hand hands[EVENTS_MAX];
    unsigned events_count, counts[TROUBLES_COUNT], skipped_count;
    unsigned ended_count, crashes_count; /* unplanned ends; those by a signal */
    char crash[200];
    uint64_t started_ns;
};

/* Server, coordinators, nodes, all lanes ready. */
void world_start(struct world *w);
/* Begins and ends what is due; looks after the processes. */
void world_step(struct world *w);
/* Everything back to sound, whatever is going on. */
void world_heal(struct world *w);
void world_stop(struct world *w);
/* Its pid; 0: it does not run. */
pid_t world_lane_pid(const struct world *w, unsigned node, unsigned gpu);
