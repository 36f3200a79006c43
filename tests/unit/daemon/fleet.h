/* A whole fleet in one program: the loopback broker, one coordinator, lanes that prove with the plain reference prover, and a
 * submitter. What a lane's device does can be disturbed.
 *
 * Threads  the claim's.
 */
#pragma once
#include "node/coordinator/coordinator.h"
#include "node/daemon/lane.h"
#include "node/transport/loopback.h"
#include "proto/fleet.pb-c.h"
#include "tests/unit/daemon/submitter.h"

enum { FLEET_LANES_MAX = 3, FLEET_TENANT_JOBS_MAX = 64, FLEET_REASON_BYTES = 200 };

enum trouble {
    TROUBLE_NONE,
    TROUBLE_DEVICE,      /* E_DEVICE, troubles_left times */
    TROUBLE_DEVICE_LOST, /* the same with E_DEVICE_LOST */
    TROUBLE_LIMIT,       /* no room for the key */
    TROUBLE_HANG,        /* until the trouble is over */
    TROUBLE_SLOW,        /* 100 ms more per job, cancel is seen */
    TROUBLE_WRONG_SUM,   /* troubles_left computations are wrong */
    TROUBLE_LIE          /* all computations are wrong */
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
    struct submitter user;
    struct coordinator *coordinator;
    struct coordinator_links links;
    struct fleet_lane lanes[FLEET_LANES_MAX];
    uint64_t stall_ns;
    const char *keep; /* digests that lanes started from now on keep loaded; NULL */
    bool
        copies; /* devices started from now on have memory of their own, near memory node 1; they do not prove */
    char *dir; /* owned */
};

/* What the devices of lanes disturb; the plain reference prover unless a test sets another. */
extern enum err (*fleet_backend_open)(struct backend **out);
/* Of the arena of lanes opened from now on. */
extern uint64_t fleet_staging_bytes;
/* Devices have no room to take anything in ahead. */
extern bool fleet_no_room_ahead;
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

/* One job and its verified result. */
void fleet_prove(struct fleet *f, const char *job_id, const char *case_name);
/* Jobs j0, j1, ... of one case; their results, each verified. */
void fleet_submit(struct fleet *f, const char *case_name, int count);
void fleet_check(struct fleet *f, const char *case_name, int count);
/* Waits until the lane's directory entry says so, and why. */
void fleet_wait_state(char reason[FLEET_REASON_BYTES], struct fleet *f, uint32_t gpu,
                      Bellows__V1__LaneState state);
