/* The lanes as the coordinator knows them: heartbeats say who is alive, directory entries what each holds and how fast it is.
 *
 * Owner    the coordinator.
 * Threads  one.
 * Units    nanoseconds on clock_ns.
 * Errors   E_LIMIT above LANES_MAX living lanes; E_FORMAT for a message that cannot be read.
 */
#pragma once
#include "node/base/hash.h"
#include "node/job/record.h"

enum { LANES_MAX = 1024, LANE_KEYS_KNOWN = 64, LANE_SESSIONS_KEPT = 4 };

struct lane_key {
    struct sha256 digest;
    uint64_t prove_ns, load_ns; /* 0: not known */
    bool resident, cached;
};

struct lane_view {
    struct lane_ref ref;
    char session[ID_BYTES_MAX + 1];
    char retired[LANE_SESSIONS_KEPT][ID_BYTES_MAX + 1]; /* older ones: no longer listened to */
    unsigned retired_count;                             /* ever */
    bool alive; /* heard of within the silence limit, and not stopped */
    bool open;  /* takes new jobs: alive and ready */
    uint64_t seen_ns;
    uint32_t depth; /* as the lane says */
    uint32_t depth_wanted;
    uint64_t empty_since_ns; /* it has said depth 0 since then; 0: it has not */
    size_t keys_count;
    struct lane_key keys[LANE_KEYS_KNOWN];
    /* Counted by the coordinator before each round: what it has placed there. */
    uint32_t jobs_held;
    uint64_t queued_ns;
};

struct lanes {
    struct lane_view *views; /* owned */
    size_t count;
};
FALLIBLE lanes_init(struct lanes *out);
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
FALLIBLE lanes_read_info(size_t *lane_idx, struct lanes *l, struct bytes info, uint64_t now_ns);
/* The next lane that has been silent for too long; SIZE_MAX: none. It is no longer alive afterwards. */
size_t lanes_next_silent(struct lanes *l, uint64_t now_ns, uint64_t silence_ns);
/* After a disconnection nobody could be heard: silence starts anew. */
void lanes_excuse(struct lanes *l, uint64_t now_ns);
size_t lanes_find(const struct lanes *l, const struct lane_ref *ref); /* SIZE_MAX: unknown */

struct lane_cost {
    uint64_t job_ns, load_ns;
};
/* What a job under this key costs on this lane: as learnt there, else as learnt elsewhere, else a guess. */
struct lane_cost lanes_cost(const struct lanes *l, size_t lane_idx, const struct sha256 *key);
