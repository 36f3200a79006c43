/* Inside of a lane: what its threads share. For lane.c, intake.c, prove.c, settle.c, reply.c, entry.c, live.c, tell.c and story.c only. */
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

enum { LANE_THREADS = 8, LANE_HELD_MAX = LANE_DEPTH_MAX, LANE_TOLD_MAX = 1024 };

/* Where a job is computed on, watched for signs of life. */
struct lane_seat {
    struct lane_job *job;         /* [lock]; NULL: idle */
    _Atomic uint64_t patience_ns; /* silence that is no fault now: a key is loading */
};

struct lane {
    struct lane_config config; /* strings owned below */
    struct subject_space space;
    char node[ID_BYTES_MAX + 1], session[ID_BYTES_MAX + 1], device[ID_BYTES_MAX + 1];
    struct lane_links links;
    struct backend *backend;      /* lent */
    struct keyfiles *keyfiles;    /* owned */
    struct keycache *keycache;    /* owned */
    struct puller *puller;        /* owned; [intake] */
    struct decoders *decoders;    /* owned; [stage] */
    struct opinion *opinion;      /* owned; [settle] */
    struct subscription *cancels; /* owned */
    struct control *control;      /* owned */
    uint64_t bodies_bytes_max, keys_bytes_max;
    struct ledger *ledger; /* owned */

    struct queue *to_stage, *to_prove, *to_settle, *to_reply; /* owned; of struct lane_job * */
    struct queue *to_tell; /* owned; messages for the telemetry thread */
    pthread_t threads[LANE_THREADS];
    unsigned threads_count;

    struct lock lock;
    struct condition changed;             /* a job left, or the lane is ending */
    struct lane_job *held[LANE_HELD_MAX]; /* [lock] */
    size_t held_count;                    /* [lock] */
    uint64_t bodies_bytes;                /* [lock] reserved for witnesses */
    struct lane_seat proving, settling;
    char reason[RECORD_DETAIL_BYTES]; /* [lock] why it takes no work */

    atomic_bool draining; /* takes nothing new; an order may end that */
    atomic_bool leaving;  /* draining for good */
    atomic_bool stopping;
    atomic_bool distrust; /* what lies where the backend computes is not trusted any more */
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
/* Takes the job out of the lane's hands and frees it. */
void lane_release(struct lane *lane, struct lane_job **job);
