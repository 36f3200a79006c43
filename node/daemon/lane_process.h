/* The process of one lane: opens connections and backend, runs the lane until a signal or its own end, drains, exits. A fenced lane
 * is no end: its process stays up, so that it can be seen and resumed.
 *
 * | exit code       | meaning                                     | the supervisor                    |
 * |-----------------|---------------------------------------------|-----------------------------------|
 * | 0               | drained after a signal                      | is ending too, or starts it again |
 * | LANE_EXIT_LOST  | device context gone, or the prover stalled  | starts it again                   |
 * | others          | as err_exit_code                            | starts it again, with back-off    |
 *
 * Threads  call from the main thread before any other is made: signals are blocked for all of them.
 */
#pragma once
#include "node/daemon/lane.h"

#include <sys/types.h>

enum { LANE_EXIT_LOST = 70 };

struct lane_process_config {
    struct lane_config lane;
    struct transport_options transport; /* name and event handler are filled in here */
    struct backend_options backend;
    uint64_t drain_ns;    /* after SIGTERM, for what is being proved */
    pid_t parent;         /* ends with it; 0: stands alone */
    unsigned connections; /* over which bodies and keys come; 0: four to feed a device, else one */
    int metrics_fd;       /* of the block that it counts into, taken over; -1: none */
};
int lane_process_run(const struct lane_process_config *config);
