/* One server, or a cluster of several in which every control stream lies on three: what a quorum costs.
 *
 * Owner    the claim; the first server is the host's.
 * Threads  one.
 */
#pragma once
#include "tests/e2e/host.h"

enum { SERVERS_MAX = 5, SERVER_REPLICAS = 3 };

struct servers {
    unsigned count;
    struct check_server others[SERVERS_MAX - 1];
};
/* Instead of host_start: servers and a coordinator. */
void servers_start(struct servers *out, struct host *h, unsigned count);
void servers_stop(struct servers *s); /* after host_stop */
