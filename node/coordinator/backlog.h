/* The open jobs in memory: an index of the records, rebuilt from them, never the truth.
 *
 * Every partition stands where the next thing to happen to it is found without searching:
 *
 *   queued    in the line of its priority, tenant and key; in the urgent line when its deadline presses; in neither while it backs off
 *   placed    in the list of the lane that has it, and counted there; among the unsent until its assignment is known to be stored
 *   a job     in the list of those to be ended, or looked at, when something is due; in the heap of timers when something will be
 *
 * so that no round, tick or event costs a walk over all jobs.
 *
 * Owner    the coordinator; lanes and estimates are lent.
 * Threads  one.
 * Errors   E_LIMIT above JOBS_OPEN_MAX open jobs, TENANTS_MAX tenants with open jobs, or without memory.
 */
#pragma once
#include "node/coordinator/lanes.h"
#include "proto/job.h"

enum { JOBS_OPEN_MAX = 1 << 20, TENANTS_MAX = 4096 };

enum part_loss {
    PART_NOT_LOST,
    PART_LEFT_BEHIND, /* its lane goes away in good order, or another one has time for it */
    PART_LOST         /* its lane is gone */
};

struct job_view;
struct part_view {
    struct schedule_item item; /* first: waits in a line */
    struct job_view *job;      /* lent: the owner */
    enum job_state state;
    uint64_t epoch;
    struct lane_ref lane; /* that has it */
    uint64_t cost_ns;     /* estimated when it was placed */
    bool cost_has_load;   /* of which a part for loading the key */
    uint64_t
        slack_ns; /* and a part in which the device would wait, while it is in the lane's list */
    bool sent;    /* its assignment is known to be stored */
    uint64_t known_ns;      /* since when it is so, on clock_ns */
    uint64_t not_before_ns; /* back-off */
    enum part_loss loss;    /* to be taken back */
    uint32_t refused_count;
    struct lane_ref *refused;                    /* owned: lanes that gave it back; NULL: none */
    struct part_view *held_next, *held_previous; /* of its lane */
    size_t lane_idx;                             /* SIZE_MAX: in no lane's list */
};

struct body_ref { /* to be purged when the job has ended */
    char bucket[ID_BYTES_MAX + 1 + 40], nuid[ID_BYTES_MAX + 1];
    char *name; /* owned */
};

struct job_view {
    char tenant[ID_BYTES_MAX + 1], job[ID_BYTES_MAX + 1];
    uint64_t generation, revision, epoch;
    uint64_t order;
    uint64_t deadline_ns; /* on clock_ns; 0: none */
    uint64_t aged_ns;     /* when its record and bodies are about to age out */
    uint64_t urgent_ns;   /* from then on it presses; 0: never */
    uint64_t arrived_ns;  /* here, on clock_ns */
    uint32_t tenant_idx, key_idx;
    uint8_t priority;
    bool counted; /* among its tenant's and key's users */
    bool used_up; /* a limit of its record is reached: to be ended as dead */
    bool joining; /* all parts are done: see to it that the result gets joined */
    uint32_t parts_count, bodies_count;
    struct part_view *parts; /* owned */
    struct body_ref *bodies; /* owned */
    char *label;             /* owned; NULL: none */
    struct bytes_mut packed; /* owned: the record at `revision`; empty when it is not kept */
    size_t packed_bytes;     /* its size, kept or not */
    size_t at;               /* in backlog.jobs */
    struct job_view *next;   /* in its hash chain */
    uint64_t timer_ns;       /* when it is to be looked at again */
    size_t timer_at;         /* in the heap; SIZE_MAX: not in it */
    struct job_view *due_next, *due_previous;
    bool is_due; /* in the list of those to be ended, sent or taken back */
};

struct timers {             /* a heap by timer_ns: the first is the next */
    struct job_view **jobs; /* owned */
    size_t count;
};
/* timers.c; the heap must have a place free for one that is not in it. */
void timers_put(struct timers *t, struct job_view *job, uint64_t at_ns);
void timers_drop(struct timers *t, struct job_view *job); /* nothing if it is not in it */

struct tenant_view {
    char name[ID_BYTES_MAX + 1];
    uint32_t jobs;    /* open */
    uint64_t waiting; /* partitions in lines */
    uint32_t next;    /* in its hash chain, index + 1 */
};

struct backlog_line {
    struct schedule_line line; /* first */
    size_t at;                 /* in backlog.lines */
    struct backlog_line *next; /* in its hash chain */
};

struct backlog {
    struct job_view **jobs; /* owned, and what it points to */
    size_t count, capacity;
    struct job_view **chains;    /* owned: hash table */
    struct tenant_view *tenants; /* owned */
    uint32_t *tenant_chains;     /* owned */
    uint64_t *served_ns;         /* owned; by tenant */
    uint64_t virtual_ns;         /* where the tenant served last stood before */
    size_t tenants_count;
    struct schedule_line **lines; /* owned, and what it points to; none is empty */
    size_t lines_count, lines_capacity;
    struct backlog_line **line_chains; /* owned */
    struct schedule_line urgent;
    struct timers timers; /* as many places as jobs */
    bool incomplete;      /* an open record found no place here */
    struct job_view *due; /* list */
    size_t packed_bytes;  /* of the records kept */
    uint64_t sequence;
    uint64_t waiting_count; /* partitions that are queued, backing off or not */
    uint64_t waiting_by_priority[SCHEDULE_PRIORITIES];
    struct record_limits limits;
    uint64_t age_max_ns;         /* of a job, from when it was queued */
    struct lanes *lanes;         /* lent */
    struct estimates *estimates; /* lent */
};
/* age_max_ns 0: an hour less than records are kept. */
FALLIBLE backlog_init(struct backlog *out, const struct record_limits *limits, uint64_t age_max_ns,
                      struct lanes *lanes);
void backlog_done(struct backlog *b);
struct job_view *backlog_find(const struct backlog *b, struct job_name name);
/* Puts an open record in, or brings the view up to date; its descriptor is only looked at for a new one or a new generation.
 * `packed` is the record's bytes, kept if there is room (empty: not). An older revision than the known one changes nothing.
 * *out may be NULL. */
FALLIBLE backlog_put(struct job_view **out, struct backlog *b, struct job_name name,
                     const struct record *record, struct bytes packed, uint64_t revision,
                     uint64_t now_ns);
/* `proved`: it ended with a result of success, so the lanes that had it have done the work. */
void backlog_remove(struct backlog *b, struct job_view *job, bool proved, uint64_t now_ns);
static inline struct job_name job_name_of(const struct job_view *job) {
    return (struct job_name){job->tenant, job->job};
}
static inline bool backlog_is_expired(const struct job_view *job, uint64_t now_ns) {
    return (job->deadline_ns && job->deadline_ns <= now_ns) || job->aged_ns <= now_ns;
}
/* The kept bytes of its record are not the newest. */
void backlog_drop_record(struct backlog *b, struct job_view *job);
/* What it was chosen for, once it is placed. */
void backlog_set_cost(struct backlog *b, struct part_view *part, uint64_t cost_ns, bool has_load);
/* Open jobs of the tenant. */
uint32_t backlog_tenant_jobs(const struct backlog *b, const char *tenant);
/* So much work was placed for the tenant. */
void backlog_charge(struct backlog *b, uint32_t tenant_idx, uint64_t cost_ns);
/* Something is to be done about it; cleared by whoever does it. */
void backlog_note_due(struct backlog *b, struct job_view *job);
void backlog_clear_due(struct backlog *b, struct job_view *job);
/* Moves what the clock has made ready: back-offs that are over, deadlines that press or have passed. */
void backlog_advance(struct backlog *b, uint64_t now_ns);
/* The lane's oldest placement is what it works on; how long that still takes, and all behind it. */
uint64_t backlog_lane_left_ns(const struct backlog *b, size_t lane_idx, uint64_t now_ns);
/* Its job takes several times as long as such jobs have been seen to take. */
bool backlog_lane_is_slow(const struct backlog *b, size_t lane_idx, uint64_t now_ns);
/* The placement that the lane has not started, the latest one; NULL: none. */
const struct part_view *backlog_lane_movable(const struct backlog *b, size_t lane_idx);
