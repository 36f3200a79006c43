/* The transport's ceiling: the pace at which jobs' bodies can be fetched here when nothing else is done with them.
 *
 * Several threads, as a lane has, download the bodies that lie in the object bucket, again and again for a second, over one connection and
 * over more; the bytes are thrown away and not hashed. A device that needs them faster than this waits, however well it is fed.
 *
 * Threads  one; it has threads of its own while it measures.
 * Errors   those of the transport; E_TIMEOUT when a job has no record within 5 s.
 */
#pragma once
#include "node/base/text.h"
#include "node/cli/client.h"

enum { CEILING_ROWS = 4, CEILING_BODIES_MAX = 256 };

struct ceiling {
    double bytes_per_s
        [CEILING_ROWS]; /* over 1, 2, 4 and 8 connections; 0: the jobs have no bodies in a bucket */
};
struct ceiling_jobs {
    const char *prefix; /* jobs' ids are this, "-" and a number */
    unsigned count;
};
/* Of the tenant's jobs, which must have been sent and not ended. */
FALLIBLE ceiling_measure(struct ceiling *out, const struct client *client,
                         const struct transport_options *options, struct ceiling_jobs jobs);
double ceiling_best(const struct ceiling *c);
/* {"1": 0.61, "2": …}, in GB/s */
void ceiling_json(struct text *out, const struct ceiling *c);
