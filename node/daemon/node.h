/* Node: the supervisor of a host's lanes. It starts one process per lane, watches them, starts them again with growing pauses, gives up on
 * one that keeps failing, and passes a signal on so that all drain.
 *
 * When a lane's process ends, the supervisor says so on the lane's heartbeat subject, so that the coordinator moves its jobs at once
 * instead of after the silence limit.
 *
 * One node of a name per server and host: a lock file with the pid, which the kernel releases when the process dies, however it dies.
 *
 * Threads  node_run: the main thread, before any other is made.
 * Errors   E_USAGE when the node runs already; those of its parts.
 */
#pragma once
#include "node/transport/transport.h"

#include <sys/types.h>

struct node_config {
    const char *name;
    const char *prefix;
    const char *runtime_dir; /* lock files; made if it is not there */
    unsigned lanes_count;
    struct transport_options transport;
    uint64_t drain_ns;
    pid_t parent; /* 0: stands alone */
    /* The lane's command line, NULL-terminated; --lane, --session and --supervisor are added to it. */
    const char *const *lane_argv;
};
/* Returns after a signal, when all lanes have ended. */
FALLIBLE node_run(const struct node_config *config);

/* The folder for lock files and the like: $XDG_RUNTIME_DIR/bellows, else /tmp/bellows-<uid>, made for this user only. */
FALLIBLE node_runtime_dir(char *out, size_t out_bytes);
