/* A hall of lanes: many real lanes (node/daemon/lane.h) in one process, each with a simulated prover, sharing few connections.
 *
 * Real is all that a lane does with the fleet: it pulls, checks the record, fetches and opens the key, decodes the body, moves records by
 * compare-and-set, stores the result once, acknowledges, keeps deliveries alive, sends heartbeats, telemetry and its directory entry.
 * Simulated are the proof (prover.h), and the supervisor: a lane that has ended is opened again under a new
 * session, as a node would start its process again. Not there is what separates processes: kills, connections of one lane alone.
 *
 * Owner    the claim.
 * Threads  the claim's; the lanes have theirs.
 */
#pragma once
#include "tests/sim/prover.h"

struct hall;
struct hall_options {
    const char *url, *dir; /* dir: for keys */
    unsigned lanes_count, lanes_per_node;
    const struct sim_model *model; /* lent, like counts */
    struct sim_counts *counts;
    uint64_t seed;
};
FALLIBLE hall_open(struct hall **out, const struct hall_options *options);
/* Opens lanes that have ended again; returns how many there were so far. */
unsigned hall_step(struct hall *h);
void hall_close(struct hall **h);
