/* The servers of a run: one, or a cluster of several in which every control stream lies on three, which tells what a quorum costs; and how
 * lanes and submitters, as another site would, get to them: on a line that takes its time, through a leaf node without a
 * stream of its own, or from the other cluster of a supercluster.
 *
 * Owner    the claim; the first server is the host's.
 * Threads  one.
 */
#pragma once
#include "tests/chaos/wire.h"
#include "tests/e2e/host.h"

enum { SERVERS_MAX = 5, SERVER_REPLICAS = 3 };
enum servers_site { SITE_HERE, SITE_LEAF, SITE_GATEWAY };

struct servers_options {
    unsigned count; /* of the cluster; another site: 1 */
    enum servers_site site;
    uint64_t line_ns; /* how long a piece is under way to the cluster; not through a gateway */
};
struct servers {
    unsigned others_count;
    struct check_server others[SERVERS_MAX - 1];
    struct wires *line; /* owned; NULL: none */
    char site_url[256]; /* for lanes and submitters */
};
/* Instead of host_start: servers and a coordinator. */
void servers_start(struct servers *out, struct host *h, const struct servers_options *options);
void servers_stop(struct servers *s); /* after host_stop */
