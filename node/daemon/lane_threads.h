/* Inside of a lane: what its threads share. For lane.c, intake.c, keys.c, prove.c, settle.c, reply.c, entry.c, live.c, tell.c and story.c
 * only.
 *
 * Threads  each field says whose it is; what is not marked does not change after lane_open.
 */
#pragma once
#include "node/base/lock.h"
#include "node/base/log.h"
#include "node/base/queue.h"
#include "node/daemon/control.h"
#include "node/daemon/fate.h"
#include "node/daemon/job.h"
#include "node/daemon/keycache.h"
#include "node/daemon/lane.h"
#include "node/daemon/opinion.h"

#include <stdatomic.h>

enum {
    LANE_HELD_MAX = LANE_DEPTH_MAX,
    LANE_TOLD_MAX = 1024,
    /* Where staging goes on beside the device: a small job waits for four round trips on its way to it and six behind it. */
    LANE_STAGERS_MAX = 8,
    LANE_REPLIERS_MAX = 16,
    /* Jobs whose records say "running" and that the device has not begun: one in the place beside it, and others whose records are on their
     * way, which takes as long as several short proofs where the server is far; fewer when they are long. */
    LANE_AHEAD_MAX = 6,
    LANE_PULL_AHEAD =
        8, /* assignments asked for at once: else each is a round trip behind the last */
    LANE_THREADS_MAX = 6 + LANE_STAGERS_MAX + LANE_REPLIERS_MAX
};

/* Where a job is computed on, watched for signs of life. */
struct lane_seat {
    struct lane_job *job;         /* [lock]; NULL: idle */
    uint64_t since_ns;            /* [lock] on clock_ns */
    _Atomic uint64_t patience_ns; /* silence that is no fault now: a key is loading */
};

struct lane {
    struct lane_config config; /* strings owned below */
    struct subject_space space;
    char node[ID_BYTES_MAX + 1], session[ID_BYTES_MAX + 1], device[ID_BYTES_MAX + 1];
    char *keep; /* owned; NULL: none */
    struct lane_links links;
    struct backend *backend;        /* lent */
    struct keyfiles *keyfiles;      /* owned */
    struct keycache *keycache;      /* owned */
    struct puller *puller;          /* owned; [intake] */
    struct shared_records *records; /* owned; of the jobs in hand */
    struct decoders *decoders;      /* owned; [stage] */
    struct pinned *pinned;          /* owned; bodies lie in it */
    struct opinion *opinion;        /* owned; [settle] */
    struct subscription *cancels;   /* owned */
    struct control *control;        /* owned */
    uint64_t keys_bytes_max;
    unsigned stagers_count, repliers_count;
    struct ledger *ledger; /* owned */

    struct queue *to_stage, *to_prove, *to_settle, *to_reply; /* owned; of struct lane_job * */
    struct queue *to_tell;               /* owned; messages for the telemetry thread */
    pthread_t threads[LANE_THREADS_MAX]; /* in the order in which they end */
    unsigned threads_count;

    struct lock lock;
    struct condition changed;             /* a job left, or the lane is ending */
    struct lane_job *held[LANE_HELD_MAX]; /* [lock] */
    size_t held_count;                    /* [lock] */
    bool key_turn,
        room_turn;        /* [lock] a stage thread opens a key file; waits for room for a body */
    unsigned ahead_count; /* [lock] */
    uint64_t ahead_ns;    /* [lock] of the device's time, that those will take */
    const struct lane_job
        *suspect; /* [lock] it waits for its turn, has it, or is computed; NULL: none */
    struct lane_seat proving, settling;
    char reason[RECORD_DETAIL_BYTES]; /* [lock] why it takes no work */

    atomic_bool draining; /* takes nothing new; an order may end that */
    atomic_bool leaving;  /* draining for good */
    atomic_bool stopping;
    atomic_bool keeping;   /* somebody sees to the keys that are kept, or has */
    atomic_bool kept_once; /* so at start: then also while it is drained */
    atomic_bool distrust;  /* what lies where the backend computes is not trusted any more */
    _Atomic uint64_t grace_until_ns; /* of the drain, on clock_ns */
    _Atomic int end;                 /* enum lane_end */
    _Atomic uint64_t done, failed, given_back, stale, strikes;
    _Atomic uint64_t untold;   /* telemetry messages that were dropped */
    _Atomic uint64_t power_mw; /* that the device drew lately; 0: not known */
    atomic_bool info_due;      /* the directory entry has changed */
};

static inline struct lane_name lane_name_here(const struct lane *lane) {
    return (struct lane_name){lane->node, lane->config.gpu};
}

void *lane_intake_main(void *lane);
void *lane_stage_main(void *lane);
void *lane_prove_main(void *lane);
void *lane_settle_main(void *lane);
void *lane_reply_main(void *lane);
void *lane_live_main(void *lane);
void *lane_entry_main(void *lane);
void *lane_tell_main(void *lane);

/* Telemetry: takes the packed message over and never waits; what finds no room is dropped and counted. */
FALLIBLE lane_tell_open(struct lane *lane);
void lane_tell(struct lane *lane, const struct subject *subject, struct bytes_mut *packed);
/* As heartbeats say it. */
Bellows__V1__LaneState lane_state(const struct lane *lane);

/* Waits up to ns, less when the lane stops, begins to drain or is resumed. */
void lane_pause(struct lane *lane, uint64_t ns);
bool lane_should_hand_back(const struct lane *lane); /* draining */
/* The device did wrong by this job, for the reason in job->fault: one more strike, which may fence or end the lane. */
void lane_strike(struct lane *lane, const struct lane_job *job);
/* Who computes now; NULL: nobody. */
void lane_seat_take(struct lane *lane, struct lane_seat *seat, struct lane_job *job);
/* The key of the seat's job is loaded where it will be computed with: silence for as long as that may take. */
void lane_seat_loads(struct lane_seat *seat, uint64_t key_bytes);
void lane_seat_loaded(struct lane_seat *seat, struct lane_job *job);
/* Staging goes on beside the device: keys are loaded, and bodies brought into its memory, by the stage threads. */
static inline bool lane_brings(const struct lane *lane) {
    return lane->backend->ops->bring != NULL;
}
/* Key file opened; and loaded, where stage threads do that. */
FALLIBLE lane_get_key(struct lane *lane, struct lane_job *job);
/* Its key is not open yet, and another thread opens this one or another: the job would only wait for that. */
bool lane_key_is_far(struct lane *lane, const struct lane_job *job);
/* The job's reference to its loaded key. */
FALLIBLE lane_load_key(struct lane *lane, struct lane_job *job);
/* Loads the keys of config.keep, at start and again after all keys were dropped, when the lane takes work; for threads that load keys, who
 * come by between jobs. What cannot be kept is told, and loaded like any other when a job needs it. */
void lane_keep_keys(struct lane *lane);
void lane_keep_keys_again(struct lane *lane); /* wakes such a thread */
/* Where what lies in the backend's memory is not trusted any more, it is given up. */
void lane_drop_keys(struct lane *lane);
/* The device begins with the job, or will not see it: another may start ahead of its turn. */
void lane_give_turn_ahead(struct lane *lane, struct lane_job *job);
/* The device is done with the job, or will not see it: its place there is free. */
void lane_unload(struct lane *lane, struct lane_job *job);
/* Takes the job out of the lane's hands and frees it. */
void lane_release(struct lane *lane, struct lane_job **job);
