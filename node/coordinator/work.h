/* Inside of the coordinator: what its files share. For coordinator.c, feed.c, intake.c, place.c, round.c, take.c, ending.c, endings.c,
 * discover.c, registry.c and tell.c only.
 *
 * Threads  the coordinator's own, but for what is marked.
 * Errors   those of the transport, where a function has any: what went wrong is looked at again at the next tick.
 */
#pragma once
#include "node/base/log.h"
#include "node/base/queue.h"
#include "node/coordinator/backlog.h"
#include "node/coordinator/coordinator.h"
#include "node/coordinator/janitor.h"
#include "node/coordinator/lanes.h"
#include "node/coordinator/lead.h"
#include "node/coordinator/schedule.h"
#include "node/coordinator/stores.h"
#include "node/job/event.h"
#include "node/job/result.h"
#include "node/transport/batch.h"
#include "node/transport/service.h"
#include "proto/fleet.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    FEED_THREADS = JOB_PRIORITY_COUNT + 2,
    EVENTS_MAX = 8192,
    ENDINGS_MAX = 64,
    INTAKE_BATCH = INTAKE_ACK_PENDING_MAX
};

enum event_kind {
    EVENT_JOB,       /* message of the jobs stream */
    EVENT_RECORD,    /* entry of a job record, in the order of changes */
    EVENT_NAMED,     /* the same of one that the floor names: before all others */
    EVENT_LANE,      /* entry of the lane directory */
    EVENT_HEARTBEAT, /* message */
    EVENT_CONTROL,   /* message: a request */
    EVENT_CAUGHT_UP  /* all records that existed have been handed out */
};
struct event {
    enum event_kind kind;
    uint64_t heard_ns;      /* when it came, on clock_ns */
    struct message message; /* owned */
    struct kv_entry entry;  /* owned */
};
void event_done(struct event *e);

struct feed { /* one thread that turns a stream or a watch into events */
    struct coordinator *coordinator;
    unsigned idx; /* 0…3: intake of that priority; then records, lanes */
    pthread_t thread;
    bool runs;
};

struct coordinator {
    struct coordinator_config config;
    char name[ID_BYTES_MAX + 1];
    struct subject_space space;
    struct coordinator_links links;
    struct lead *lead;       /* owned */
    struct service *service; /* owned: how it is found on $SRV */
    struct subject cancels;  /* where requests to cancel come in */
    pthread_t thread;
    bool thread_runs;
    atomic_bool stopping;

    /* While it leads. [coordinator thread] unless said otherwise. */
    struct estimates estimates;
    struct lanes lanes;
    struct backlog backlog;
    struct batch *batch;               /* owned; on the control connection */
    struct schedule_lane *lane_states; /* owned; LANES_MAX of them */
    struct schedule_shares shares;
    struct message arrived[INTAKE_BATCH]; /* owned: jobs to be taken in */
    size_t arrived_count;
    struct message asked[ENDINGS_MAX]; /* owned: jobs to be cancelled */
    size_t asked_count;
    bool intake_more;        /* jobs still lie in the stream */
    struct janitor *janitor; /* owned */
    struct stores *stores;   /* owned */
    struct queue *events;    /* owned; feeds put, the loop takes */
    struct feed feeds[FEED_THREADS];
    struct subscription *heartbeats, *controls; /* owned */
    atomic_bool feeding;                        /* the feeds go on */
    uint64_t led_since_ns, ticked_ns, round_ns;
    uint64_t heard_until_ns; /* every event that came before has been looked at */
    uint64_t disconnects_seen, reconnects_seen, ensured_ns;
    uint64_t tell_again_ns, counted[METRIC_DECISION_COUNT];
    bool ensured; /* the streams are there, as far as is known */
    bool caught_up;
    bool placing_due;                 /* something changed that may let a partition be placed */
    bool ending_due;                  /* a job of many partitions has become whole */
    uint64_t read_revision;           /* records up to here stand in the backlog */
    uint64_t clean_revision;          /* bodies of what ended up to here are purged */
    uint64_t floor_ns, floor_written; /* when, and what was read by then */

    atomic_bool ready;
    _Atomic uint64_t jobs_open, lanes_open;
    _Atomic uint64_t taken_in, refused, placed, taken_back, joined, expired, cancelled, dead;
};

static inline struct job_place place_of(const struct coordinator *c, struct job_name name) {
    return (struct job_place){c->links.control, &c->space, name};
}

/* A name that outlives the view it was taken from. */
struct own_name {
    char tenant[ID_BYTES_MAX + 1], job[ID_BYTES_MAX + 1];
};
static inline struct own_name own_name_of(struct job_name name) {
    struct own_name own;
    snprintf(own.tenant, sizeof own.tenant, "%s", name.tenant);
    snprintf(own.job, sizeof own.job, "%s", name.job);
    return own;
}
static inline struct job_name name_of_own(const struct own_name *own) {
    return (struct job_name){own->tenant, own->job};
}

/* tell.c: telemetry and metrics, once a second at most. */
void tell_fleet(struct coordinator *c);
void tell_standing_by(struct coordinator *c);

/* discover.c */
FALLIBLE discover_open(struct coordinator *c);

/* registry.c: one look at keys not known yet. */
void registry_look(struct coordinator *c);

/* feed.c */
FALLIBLE feed_start(struct coordinator *c);
void feed_stop(struct coordinator *c);

/* intake.c */
void intake_take(struct coordinator *c, struct message *messages, size_t count);

/* place.c */
void place_round(struct coordinator *c);
/* Sends again what is placed and not known to be sent: after a take-over, or a server that did not answer. */
void place_again(struct coordinator *c);

/* take.c: partitions come back, all that ought to, or those of one lane. */
void take_back_lost(struct coordinator *c);
void take_back_from_lane(struct coordinator *c, size_t lane_idx);

/* ending.c: each stores the result, moves the record, tells whoever should know, and forgets the job. */
FALLIBLE ending_stop(struct coordinator *c, struct job_name name, enum err code, const char *why,
                     enum job_state *state);
/* The result stored, unless there is one, and the record moved accordingly. *state: what the job has come to. */
FALLIBLE ending_finish(struct coordinator *c, struct record_slot *slot,
                       const struct job_report *report, part_message *const *parts,
                       size_t parts_count, enum job_state wanted, enum job_state *state);
/* What that is made of: how a job ends that is at this state of its record; what lanes are told, by a mark and by a message; and what
 * everybody is told when it is over, with the result if it is this one (empty: an earlier one stands). */
struct job_report ending_report(const struct coordinator *c, struct job_name name,
                                const struct record *r, const job_message *job);
FALLIBLE ending_pack_mark(struct bytes_mut *out, uint64_t generation, const char *why);
void ending_mark_and_tell(struct coordinator *c, struct job_name name, uint64_t generation,
                          const char *why);
void ending_tell_lanes(struct coordinator *c, struct job_name name, uint64_t generation,
                       const char *why);
void ending_note(struct coordinator *c, const struct job_report *report, enum job_state state,
                 struct bytes result);
/* It has ended by somebody else's hand. */
void ending_forget(struct coordinator *c, struct job_view *job, bool proved);
void ending_sweep(struct coordinator *c);

/* endings.c: up to ENDINGS_MAX jobs end together, each for its reason. */
enum end_kind { END_CANCELLED, END_EXPIRED, END_JOINED, END_DEAD };
struct end_order {
    struct own_name name;
    enum end_kind kind;
    const char *why;      /* lent; of the first two */
    uint64_t generation;  /* the last that is meant; 0: the current one */
    enum job_state state; /* what it has come to, when fault.code is OK */
    struct fault fault;
};
void endings_make(struct coordinator *c, struct end_order *orders, size_t count);
