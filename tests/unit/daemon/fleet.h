/* A whole fleet in one program: the loopback broker, one coordinator, lanes that prove with the plain reference prover, and a
 * submitter. What a lane's device does can be disturbed.
 *
 * Threads  the claim's.
 */
#pragma once
#include "node/coordinator/coordinator.h"
#include "node/daemon/lane.h"
#include "node/job/result.h"
#include "node/transport/loopback.h"
#include "tests/check/check.h"

enum { FLEET_LANES_MAX = 3 };

enum trouble {
    TROUBLE_NONE,
    TROUBLE_DEVICE,      /* E_DEVICE, troubles_left times */
    TROUBLE_DEVICE_LOST, /* the same with E_DEVICE_LOST */
    TROUBLE_LIMIT,       /* no room for the key */
    TROUBLE_HANG,        /* until the trouble is over */
    TROUBLE_SLOW,        /* 100 ms more per job, cancel is seen */
    TROUBLE_WRONG_SUM    /* troubles_left computations are wrong */
};

struct fleet_lane {
    struct lane *lane;
    struct backend *device; /* the disturbed one */
    struct backend *inner;
    struct lane_links links;
    char cache[256];
};

struct fleet {
    struct loopback *broker;
    struct subject_space space;
    struct transport *user; /* the submitter's */
    struct coordinator *coordinator;
    struct coordinator_links links;
    struct fleet_lane lanes[FLEET_LANES_MAX];
    uint64_t stall_ns;
    char *dir; /* owned */
};

struct fleet *fleet_new(unsigned lanes_count);
/* Lanes that give a silent prover up so soon. */
struct fleet *fleet_new_impatient(unsigned lanes_count, uint64_t stall_ns);
void fleet_free(struct fleet **f);
void fleet_start_coordinator(struct fleet *f);
void fleet_stop_coordinator(struct fleet *f);
void fleet_start_lane(struct fleet *f, unsigned idx);
void fleet_stop_lane(struct fleet *f, unsigned idx);
/* From now on this happens on the lane's device. */
void fleet_trouble(unsigned lane_idx, enum trouble trouble, int times);
/* Jobs its device has begun. */
unsigned fleet_device_runs(unsigned lane_idx);

/* A case of the corpus: "bn128/mul". */
struct fleet_job {
    const char *case_name;
    const char
        *witness; /* another file than the case's witness.wtns, below the curve's folder; NULL */
    const char *job_id;
    uint32_t parts_count; /* 0: 1 */
    uint64_t generation;  /* 0: 1 */
    uint32_t priority;
    uint64_t deadline_ms; /* from now; 0: none */
    const char *reply_subject;
    bool body_as_object, key_unregistered;
    uint32_t lie_values_count; /* != 0: what the descriptor claims */
};
void fleet_submit(struct fleet *f, const struct fleet_job *job);
/* The result, which must come within ten seconds; message_free. */
result_message *fleet_result(struct fleet *f, const char *job_id, uint64_t generation);
/* Status OK, so many proofs, each verified with the key's verifying key. */
void fleet_check_proved(const result_message *result, const char *case_name, uint32_t parts_count);
enum job_state fleet_cancel(struct fleet *f, const char *job_id);
/* The record as it stands; waits up to five seconds for the state. record_slot_done. */
struct record_slot fleet_record(struct fleet *f, const char *job_id, enum job_state state);
/* Waits up to ten seconds. */
void fleet_wait_until(bool (*holds)(void *ctx), void *ctx, const char *what);
