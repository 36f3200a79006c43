/* The open jobs in memory: an index of the records, rebuilt from them, never the truth.
 *
 * Owner    the coordinator.
 * Threads  one.
 * Errors   E_LIMIT above JOBS_OPEN_MAX open jobs or without memory.
 */
#pragma once
#include "node/job/record.h"
#include "proto/job.h"

enum { JOBS_OPEN_MAX = 1 << 20, TENANTS_MAX = 4096 };

enum part_loss {
    PART_NOT_LOST,
    PART_LEFT_BEHIND, /* its lane goes away in good order */
    PART_LOST         /* its lane's process died */
};

struct part_view {
    enum job_state state;
    uint64_t epoch;
    struct lane_ref lane;   /* that has it */
    uint64_t cost_ns;       /* estimated when it was placed; 0: not placed by this coordinator */
    uint64_t known_ns;      /* since when it is so, on clock_ns */
    uint64_t not_before_ns; /* back-off */
    enum part_loss loss;    /* to be taken back */
    uint32_t refused_count;
    struct lane_ref
        refused[RECORD_ATTEMPTS_MAX + RECORD_REFUSALS_MAX]; /* lanes that gave it back */
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
    uint64_t arrived_ns;  /* here, on clock_ns */
    struct sha256 key_digest;
    uint32_t tenant_idx;
    uint8_t priority;
    bool used_up; /* a limit of its record is reached: to be ended as dead */
    bool joining; /* all parts are done: see to it that the result gets joined */
    uint32_t parts_count, bodies_count;
    struct part_view *parts; /* owned */
    struct body_ref *bodies; /* owned */
    size_t at;               /* in backlog.jobs */
    struct job_view *next;   /* in its hash chain */
};

struct backlog {
    struct job_view **jobs; /* owned, and what it points to */
    size_t count, capacity;
    struct job_view **chains; /* owned: hash table */
    size_t chains_count;
    char (*tenants)[ID_BYTES_MAX + 1]; /* owned */
    uint64_t *served_ns;               /* owned; by tenant */
    size_t tenants_count;
    uint64_t sequence;
    struct record_limits limits;
};
FALLIBLE backlog_init(struct backlog *out, const struct record_limits *limits);
void backlog_done(struct backlog *b);
struct job_view *backlog_find(const struct backlog *b, struct job_name name);
/* Puts an open record in, or brings the view up to date; `job` is its descriptor, only looked at for a new one or a new generation.
 * An older revision than the known one changes nothing. *out may be NULL. */
FALLIBLE backlog_put(struct job_view **out, struct backlog *b, struct job_name name,
                     const struct record *record, uint64_t revision, uint64_t now_ns);
void backlog_remove(struct backlog *b, struct job_view *job);
static inline struct job_name job_name_of(const struct job_view *job) {
    return (struct job_name){job->tenant, job->job};
}
static inline bool backlog_is_expired(const struct job_view *job, uint64_t now_ns) {
    return job->deadline_ns && job->deadline_ns <= now_ns;
}
/* A tenant who had nothing waiting starts level with the others, neither owed nor owing. */
void backlog_level_tenant(struct backlog *b, uint32_t tenant_idx);
