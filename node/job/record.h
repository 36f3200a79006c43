/* Job record: where a job is in its life. Pure: a state machine and its bytes; store.h applies it to the KV.
 *
 *                      place              start                part_done (all)          end(DONE)
 *   create ──▶ QUEUED ───────▶ PLACED ───────────▶ RUNNING ───────────────────▶ RUNNING ─────────▶ DONE
 *                ▲ ▲             │                    │
 *                │ └─ take_back ─┘                    │        from every open state: end(FAILED, CANCELLED,
 *                └──── give_back, take_back ──────────┘        EXPIRED, DEAD); reopen: from the last three to QUEUED
 *
 * Each partition has a state of its own (QUEUED, PLACED, RUNNING, DONE); while the job is open its state is the furthest
 * of its partitions that are not done. The epoch rises with every placement and every taking back, and a partition
 * carries the epoch of its own last move: whoever acts for a partition names the epoch under which it got it, and an
 * older one is told so (RECORD_STALE). The generation rises when an ended job is sent again.
 *
 * A stored result is final whoever made it: part_done is accepted from a stale epoch too.
 *
 * Three things use a job up, each with its own limit: tries that failed (attempts_max), workers that died while
 * proving it (deaths_max: machines die for other reasons too, so this one is generous), and lanes that refused it for
 * lack of room (refusals_max). A drained or dead lane costs a job that was only waiting there nothing.
 *
 * Owner    caller's storage: record_init or record_unpack, then record_done.
 * Threads  a record belongs to one thread.
 * Units    milliseconds of wall time in the *_unix_ms fields: for people, never for decisions.
 * Errors   E_LIMIT, E_FORMAT naming the field.
 */
#pragma once
#include "node/base/bytes.h"
#include "node/base/hash.h"
#include "proto/subjects.h"

/* Numbers are those of fleet.proto. */
enum job_state {
    JOB_QUEUED = 1,
    JOB_PLACED,
    JOB_RUNNING,
    JOB_DONE,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_EXPIRED,
    JOB_DEAD,
    JOB_STATES_COUNT
};
const char *
job_state_name(enum job_state state); /* "queued"; a token of subjects and a word for people */
static inline bool job_state_is_open(enum job_state state) {
    return state >= JOB_QUEUED && state <= JOB_RUNNING;
}
static inline bool job_state_may_reopen(enum job_state state) {
    return state == JOB_CANCELLED || state == JOB_EXPIRED || state == JOB_DEAD;
}

struct record_limits {
    uint32_t attempts_max, deaths_max, refusals_max;
};
enum {
    RECORD_ATTEMPTS_MAX = 4,
    RECORD_DEATHS_MAX = 8,
    RECORD_REFUSALS_MAX = 12,
    RECORD_TRIES_KEPT = RECORD_ATTEMPTS_MAX + RECORD_DEATHS_MAX + RECORD_REFUSALS_MAX,
    RECORD_DETAIL_BYTES = 160,
    RECORD_DETAIL_BYTES_SHORT = 48 /* in jobs of more than RECORD_PARTS_FEW partitions */,
    RECORD_PARTS_FEW = 16
};
extern const struct record_limits record_limits_default;

struct lane_ref { /* a lane by value */
    char node[ID_BYTES_MAX + 1];
    uint32_t gpu;
};
static inline struct lane_name lane_name_of(const struct lane_ref *lane) {
    return (struct lane_name){lane->node, lane->gpu};
}
bool lane_ref_is(const struct lane_ref *lane, struct lane_name name);

struct record_try { /* one that did not end in a proof */
    uint64_t epoch, ended_unix_ms;
    struct lane_ref lane;
    enum err code; /* E_DEVICE_LOST and not counted: the worker died */
    bool counted;  /* against attempts_max */
    char detail[RECORD_DETAIL_BYTES];
};

struct record_part {
    enum job_state state;
    uint64_t epoch;
    struct lane_ref lane; /* that has it, or had it last; node is "" before the first */
    uint64_t deliveries;  /* starts under this epoch */
    uint64_t placed_unix_ms;
    uint32_t tries_count;
    struct record_try *tries; /* owned; NULL: none. Most partitions never have one */
};

struct record {
    enum job_state state;
    uint64_t generation, epoch;
    struct bytes_mut
        job; /* owned: the descriptor as it came; when the job has ended, its objects' references */
    struct sha256 fingerprint; /* of its work: same id with another one is refused */
    uint64_t queued_unix_ms, updated_unix_ms;
    char reason[RECORD_DETAIL_BYTES];
    uint32_t parts_count;
    struct record_part *parts; /* owned */
};

/* Queued, epoch 0. Copies `job`. */
FALLIBLE record_init(struct record *out, struct bytes job, const struct sha256 *fingerprint,
                     uint64_t generation, uint32_t parts_count, uint64_t now_unix_ms);
void record_done(struct record *r);

FALLIBLE record_pack(struct bytes_mut *out, const struct record *r); /* out->ptr: mem_free */
FALLIBLE record_unpack(struct record *out, struct bytes data);

enum record_answer {
    RECORD_MOVED, /* changed: to be stored */
    RECORD_AGAIN, /* it was so already; nothing to store */
    RECORD_STALE  /* the job has ended, or another epoch has the partition; unchanged */
};

enum record_answer record_place(struct record *r, uint32_t idx, const struct lane_ref *lane,
                                uint64_t now_unix_ms);
/* The lane has it in hand, with all that it takes but perhaps the device, which may be at the one before. Under an epoch that
 * already runs, the worker before died: one more death. */
enum record_answer record_start(struct record *r, uint32_t idx, uint64_t epoch,
                                uint64_t now_unix_ms);
/* By the lane: it could not, for the reason `code`. Back to QUEUED under a new epoch. */
enum record_answer record_give_back(struct record *r, uint32_t idx, uint64_t epoch, enum err code,
                                    const char *detail, uint64_t now_unix_ms);
/* By the coordinator or a draining lane. `died`: the worker did, which counts if it had started. */
enum record_answer record_take_back(struct record *r, uint32_t idx, uint64_t epoch, bool died,
                                    const char *why, uint64_t now_unix_ms);
enum record_answer record_part_done(struct record *r, uint32_t idx, uint64_t now_unix_ms);
/* DONE, FAILED, CANCELLED, EXPIRED or DEAD: the result is stored. Of the descriptor only the references
 * to objects stay, for the janitor: an inline witness is secret. */
enum record_answer record_end(struct record *r, enum job_state state, const char *reason,
                              uint64_t now_unix_ms);
/* An ended job is sent again: queued, next generation. E_RANGE when its state or the generation does not allow it. */
FALLIBLE record_reopen(struct record *r, struct bytes job, const struct sha256 *fingerprint,
                       uint64_t generation, uint32_t parts_count, uint64_t now_unix_ms);

struct record_counts {
    uint32_t attempts, deaths, refusals;
};
struct record_counts record_part_counts(const struct record_part *part);
/* A limit is reached: the job must be ended as DEAD. *idx is the partition, which may be NULL. */
bool record_is_used_up(uint32_t *idx, const struct record *r, const struct record_limits *limits);
bool record_all_parts_done(const struct record *r);
