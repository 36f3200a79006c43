/* Events: one small message per change of a job's state, for dashboards and waiting submitters. Hints only: they may be lost,
 * and nothing is decided by them.
 *
 * Threads  any.
 * Errors   job_event_pack: E_LIMIT without memory or above EVENT_BYTES_MAX.
 */
#pragma once
#include "node/job/store.h"
#include "proto/job.h"

struct job_event {
    uint64_t generation, epoch;
    enum job_state state;
    const char
        *stage; /* finer than the state: "staged", "proving", "refused"; NULL: the state's name */
    struct lane_name lane; /* node NULL: none */
    uint32_t partition_index;
    const char *reason; /* may be NULL */
    enum err code;      /* what `reason` is about; OK: nothing */
    const job_message
        *job; /* lent: the descriptor, for those who meet the job here first; may be NULL */
};
/* The message and its subject, to be sent by somebody else. *packed: mem_free. */
FALLIBLE job_event_pack(struct bytes_mut *packed, struct subject *subject,
                        const struct job_place *at, const struct job_event *event);
/* Failures are of no consequence and are dropped. */
void job_event_send(const struct job_place *at, const struct job_event *event);
