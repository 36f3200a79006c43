/* A round: partitions of many jobs whose records change together, each by compare-and-set.
 *
 *   round_init ─▶ round_add … ─▶ round_read ─▶ round_write(change) ─▶ what moved ─▶ round_done
 *
 * A job whose record cannot be read or written, or was changed by somebody else, drops out (view NULL) and is looked at again at the next
 * tick; the backlog follows what was read and written.
 *
 * Owner    the caller, on its stack.
 * Threads  the coordinator's.
 * Errors   round_init: E_LIMIT without memory.
 */
#pragma once
#include "node/coordinator/work.h"

enum { ROUND_PARTS_MAX = BATCH_MAX };

struct round_job {
    struct job_view *view;   /* lent; NULL: drops out */
    struct record_slot slot; /* owned */
    size_t request;          /* in the batch; SIZE_MAX: none */
    struct bytes_mut packed; /* owned: what was written */
};
struct round_part {
    size_t job_idx;
    uint32_t idx;
    bool moved;     /* its record says so now, or said so before */
    size_t request; /* for who sends something afterwards: in the batch; SIZE_MAX: none */
    /* of a placing */
    size_t lane_idx;
    struct schedule_cost cost;
    /* of a taking back */
    struct lane_ref from;
    bool died;
    const char *why;
};
struct round {
    struct coordinator *c;
    struct round_job *jobs;   /* owned */
    struct round_part *parts; /* owned */
    size_t jobs_count, parts_count, bytes;
};
FALLIBLE round_init(struct round *r, struct coordinator *c);
void round_done(struct round *r);
/* NULL: the round is full. What the change needs to know is filled in by the caller. */
struct round_part *round_add(struct round *r, const struct part_view *part);
void round_read(struct round *r);
/* Changes one partition of a record that is as `known` says, or newer. */
typedef enum record_answer round_change(struct record *record, struct round *r,
                                        const struct round_part *part, struct part_view *known);
/* Afterwards only jobs with a partition that moved, and stored as such, have a view. */
void round_write(struct round *r, round_change *change);
