/* The lanes as the coordinator knows them: heartbeats say who is alive, directory entries what each holds and how fast it is, the
 * records what was placed there.
 *
 * Owner    the coordinator; the estimates are lent.
 * Threads  one.
 * Units    nanoseconds on clock_ns.
 * Errors   E_LIMIT above LANES_MAX lanes that live or hold something; E_FORMAT for a message that cannot be read.
 */
#pragma once
#include "node/coordinator/estimate.h"
#include "node/coordinator/schedule.h"
#include "node/job/record.h"

enum { LANES_MAX = 4096, LANE_KEYS_KNOWN = 64, LANE_SESSIONS_KEPT = 4 };

struct part_view; /* backlog.h */

struct lane_key {
    uint32_t key_idx;
    uint32_t held; /* partitions under it that are placed there */
    bool resident, cached;
};

struct lane_view {
    struct lane_ref ref;
    char session[ID_BYTES_MAX + 1];
    char retired[LANE_SESSIONS_KEPT][ID_BYTES_MAX + 1]; /* older ones: no longer listened to */
    unsigned retired_count;                             /* ever */
    bool alive;  /* heard of within the silence limit, and not stopped */
    bool silent; /* not alive for that: not heard of for too long */
    bool open;   /* takes new jobs: alive and ready */
    bool
        full; /* its stream has refused a message: until one of its jobs is proved, or its next beat */
    uint64_t seen_ns;
    uint32_t depth; /* as the lane says */
    uint32_t depth_wanted;
    uint64_t empty_since_ns; /* it has said depth 0 since then; 0: it has not */
    uint32_t device_idx;     /* kind of device, in the estimates */
    uint64_t
        memory_bytes; /* for keys and jobs: the device's, on a CPU lane the host's; 0: not told */
    size_t keys_count;
    struct lane_key keys[LANE_KEYS_KNOWN];
    uint32_t pace; /* 1024: as fast as its kind; more: slower */
    uint32_t next; /* in its hash chain, index + 1 */
    /* By the records; kept by the backlog. */
    struct part_view *held; /* the oldest placement first */
    struct part_view *held_last;
    uint32_t jobs_held;
    uint64_t queued_ns;     /* sum of their estimated costs */
    uint64_t slack_ns;      /* and of what of it is not the device's own time */
    uint64_t last_ended_ns; /* a partition ended there */
};

struct lanes {
    struct lane_view *views; /* owned */
    size_t count;
    uint32_t *chains;            /* owned */
    struct estimates *estimates; /* lent */
};
FALLIBLE lanes_init(struct lanes *out, struct estimates *estimates);
void lanes_done(struct lanes *l);

enum lane_news {
    LANE_NEWS_NONE,
    LANE_NEWS_CAME,    /* new, or alive again */
    LANE_NEWS_REBORN,  /* another session: what the old process had is lost */
    LANE_NEWS_LEAVING, /* drains: takes nothing new, and what it has not started comes back */
    LANE_NEWS_DIED,    /* stopped, fenced or said to be gone */
    LANE_NEWS_GHOST /* an older session that still speaks: two nodes of one name? Not listened to. */
};
FALLIBLE lanes_hear(enum lane_news *news, size_t *lane_idx, struct lanes *l, struct bytes heartbeat,
                    uint64_t now_ns);
/* An entry may be old, so it is no sign of life. But a leader that has just come would wait for the next beat of every lane: with
 * `hopeful` an entry that says "ready" of a lane not heard yet counts as one. If none follows, the lane falls silent in time. */
FALLIBLE lanes_read_info(size_t *lane_idx, struct lanes *l, struct bytes info, uint64_t now_ns,
                         bool hopeful);
/* The next lane that has been silent for too long; SIZE_MAX: none. It is no longer alive afterwards. */
size_t lanes_next_silent(struct lanes *l, uint64_t now_ns, uint64_t silence_ns);
/* After a disconnection nobody could be heard: silence starts anew. */
void lanes_excuse(struct lanes *l, uint64_t now_ns);
size_t lanes_find(const struct lanes *l, const struct lane_ref *ref); /* SIZE_MAX: unknown */
/* Known from a record only: neither alive nor ever heard. */
FALLIBLE lanes_add(size_t *lane_idx, struct lanes *l, const struct lane_ref *ref);

/* What a job under this key costs on this lane; job_ns SCHEDULE_NEVER where it does not fit. */
struct schedule_cost lanes_cost(const struct lanes *l, size_t lane_idx, uint32_t key_idx,
                                uint64_t now_ns);
/* A partition under the key is placed there; it no longer is. `used`: as it was proved there, so the key is resident. */
void lanes_hold_key(struct lanes *l, size_t lane_idx, uint32_t key_idx);
void lanes_release_key(struct lanes *l, size_t lane_idx, uint32_t key_idx, bool used);
/* It took so long there; `expected_ns` by the estimates of its kind alone. */
void lanes_learn_pace(struct lanes *l, size_t lane_idx, uint64_t ns, uint64_t expected_ns);
