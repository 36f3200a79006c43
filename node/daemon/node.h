/* Node: the supervisor of a host's lanes. It starts one process per lane, watches them, starts them again with growing pauses, gives up on
 * one that keeps failing, and passes a signal on so that all drain. It touches no device: each lane's process is told its own, by UUID,
 * and sees no other.
 *
 * When a lane's process ends, the supervisor says so on the lane's heartbeat subject and in its directory entry, so that the coordinator
 * moves its jobs at once instead of after the silence limit. A lane that it gave up is shown as fenced until somebody resumes it.
 *
 * It hears the orders to node and lanes (control.h), so that a lane that is started again stays drained.
 *
 * One node of a name per server and host: a lock file with the pid, which the kernel releases when the process dies, however it dies.
 *
 * Threads  node_run: the main thread, before any other is made.
 * Errors   E_USAGE when the node runs already; those of its parts.
 */
#pragma once
#include "node/daemon/devices.h"
#include "node/transport/transport.h"

#include <sys/types.h>

struct node_config {
    const char *name;
    const char *prefix;
    const char *runtime_dir;           /* lock files; made if it is not there */
    unsigned lanes_count;              /* on the processor; with devices: one for each of them */
    const struct device_list *devices; /* lent; NULL: the processor */
    const char *metrics;               /* address of the pages (pages.h); NULL: off */
    const char *metrics_url_file;      /* where that address is written; NULL: nowhere */
    struct transport_options transport;
    uint64_t drain_ns;
    pid_t parent;          /* 0: stands alone */
    unsigned restarts_max; /* quick ends in a row after which a lane is given up; 0: 20 */
    /* The lane's command line, NULL-terminated; --lane, --session, --device, --share and --supervisor are added to it,
     * --metrics-fd and --drained. */
    const char *const *lane_argv;
};
/* Returns after a signal, when all lanes have ended. */
FALLIBLE node_run(const struct node_config *config);

/* The folder for lock files and the like: systemd's $RUNTIME_DIRECTORY, else $XDG_RUNTIME_DIR/bellows, else /tmp/bellows-<uid>, made for this user only. */
FALLIBLE node_runtime_dir(char *out, size_t out_bytes);
