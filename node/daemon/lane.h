/* Lane: one device that proves what the coordinator places on it.
 *
 *   net ──▶ intake ──▶ stage ──▶ prove ──▶ reply          live: in-progress acks, heartbeats, directory entry, stall watch
 *           unpack     key,      the       assemble and check the proof, store the result once, move the record, acknowledge
 *                      body      device     │    ▲  (fate.h), publish the spans, one log line
 *                                           ▼    │
 *                                           settle: a proof that failed its check is computed again elsewhere (opinion.h);
 *                                                   in idle time the points of new keys are checked
 *
 * Four jobs and more are in hand at once, so that fetching, decoding and publishing never keep the device waiting. Each step hands
 * the job to the next through a bounded queue. A job is acknowledged only after its result, or its way back, is stored. A backend with
 * memory of its own has several stage and reply threads: while it computes one job, the next lies in its memory already.
 *
 * A strike is one computation that was shown to be wrong, or one error of the device. strikes_max of them fence the lane: it gives back
 * all it has, says so in its heartbeats and its directory entry, stays up and takes nothing until somebody resumes it (control.h).
 * They are the device's and not the process's: who opens the lane again finds them (strikes.h).
 *
 * Owner    the lane process, or a test; its transports and backend are lent to it and outlive it.
 * Threads  lane_open starts all of them; the functions below are for one thread, the owner's.
 * Errors   lane_open: those of its parts.
 */
#pragma once
#include "node/groth16/backend.h"
#include "node/telemetry/metric.h"
#include "node/transport/fleet.h"

struct lane;

struct lane_links { /* lent; a bulk transfer must not delay an acknowledgement */
    struct transport *control, *telemetry;
    struct bulk_links bulk;
};

struct lane_config {
    const char *prefix; /* NULL: "bellows" */
    const char *node;
    uint32_t gpu;
    const char *session;     /* random per start */
    const char *device;      /* id under which its strikes are kept; NULL: they end with the lane */
    const char *cache_dir;   /* keys lie in its folder keys/ */
    uint64_t key_disk_bytes; /* limit of that folder; 0: none */
    uint64_t memory_bytes;   /* a third for bodies, two for loaded keys; 0: cgroup_plan_bytes() */
    uint64_t
        staging_bytes; /* for bodies, page-locked, where a device copies them; 0: an eighth of that memory, at most 8 GiB */
    const char *
        keep; /* digests of keys that are loaded at start and stay, separated by commas; NULL: none */
    bool allow_insecure_keys;
    unsigned threads;     /* for checking keys; 0: all usable cores */
    uint32_t backlog;     /* jobs the lane wants in hand; 0: 4 */
    uint32_t strikes_max; /* device errors before it is fenced; 0: 3 */
    uint64_t ack_wait_ns; /* 0: LANE_ACK_WAIT_NS; a quarter of it is the pace of in-progress acks */
    uint64_t stall_ns;    /* a proof without a sign of life for so long is given up; 0: 60 s */
    uint64_t
        result_hold_ns; /* how long a finished proof waits for the server to come back; 0: 10 min */
    bool drained;       /* from the start: an order that a predecessor was given */
    /* Who computes again what failed its check; NULL: the processor, with its plainest code where the device is the processor. */
    enum err (*second_open)(struct backend **out, void *ctx);
    void *second_ctx;
    struct metric_block *metrics; /* lent: what it counts into; NULL: nobody looks */
};

FALLIBLE lane_open(struct lane **out, const struct lane_config *config,
                   const struct lane_links *links, struct backend *backend);

enum lane_end {
    LANE_GOES_ON,
    LANE_FENCED,      /* too many strikes; goes on without work until it is resumed */
    LANE_DEVICE_LOST, /* the context is gone: start a new process */
    LANE_STALLED /* the prover gives no sign of life; lane_close would wait for it: end the process */
};
enum lane_end lane_ended(const struct lane *lane);

/* From now on nothing new is taken and what has not started goes back. What is being proved may end within grace_ns, then it goes
 * back too. Returns at once; lane_is_empty says when it is done. `reason` is for people. */
void lane_drain(struct lane *lane, uint64_t grace_ns, const char *reason);
/* Takes work again, forgets strikes and fence. E_CANCELLED when the lane is leaving or its end is another one. */
FALLIBLE lane_resume(struct lane *lane);
/* Drains for good: no order brings it back. */
void lane_leave(struct lane *lane, uint64_t grace_ns);
bool lane_is_empty(struct lane *lane);
/* Leaves without grace if that has not happened, waits for every thread. */
void lane_close(struct lane **lane);

struct lane_counts {
    uint64_t done, failed, given_back, stale, strikes;
};
struct lane_counts lane_counts_of(const struct lane *lane);
