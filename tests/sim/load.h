/* The jobs of the simulation: one small good witness each, in the descriptor, of ten tenants under four keys; sent by several threads,
 * evenly spread over the time they are given.
 *
 * Of twelve jobs tenant s0 sends three, the nine others one each: whether a loud tenant crowds the others out is what the fairness
 * index tells.
 *
 * Owner    the claim.
 * Threads  load_start starts them; load_stop joins. The rest any.
 */
#pragma once
#include "tests/e2e/host.h"
#include "tests/sim/prover.h"

#include <pthread.h>

enum { SIM_TENANTS = 10, LOAD_LOUD = 3, LOAD_TURN = LOAD_LOUD + SIM_TENANTS - 1, LOAD_THREADS = 8 };
extern const char *const sim_cases[SIM_KEYS];

struct load_plan {
    uint64_t first, count;  /* numbers of the jobs */
    double jobs_per_second; /* of all threads together; 0: as fast as they can */
    unsigned partitions;    /* of each job, all alike */
};
struct load;

/* `sent_ns` has a place for the send time of every number. */
FALLIBLE load_open(struct load **out, const char *url, uint64_t *sent_ns);
FALLIBLE load_start(struct load *l, const struct load_plan *plan);
uint64_t load_sent_count(const struct load *l);
/* What was not sent yet stays unsent. */
void load_cut(struct load *l);
/* Waits for the threads; the first error of one of them. */
FALLIBLE load_stop(struct load *l);
void load_close(struct load **l);

unsigned load_tenant_of(uint64_t number);
/* The number of a job from its name; false: it is not of the simulation. */
bool load_number_of(uint64_t *number, const char *job_id);
