/* Coordinator: takes jobs in, keeps the backlog, places partitions on lanes, takes them back from dead ones, joins the parts, ends
 * what cannot go on.
 *
 *   jobs stream ──intake──▶ record created ──▶ backlog ──schedule──▶ record placed ──▶ lane stream ──▶ lane
 *        ack ◀────────────────────┘               ▲
 *   records (watched), heartbeats, control ───────┘      parts all done ──▶ joined result;  limits reached ──▶ dead letter
 *
 * All decisions are made by one thread from one queue of events. Its memory is an index of the records: a coordinator that starts, or
 * takes over, reads them all and goes on. Whatever it does is done by compare-and-set on a record or under a subject that takes one
 * message, so one that is interrupted anywhere, or works beside a second one, does no harm.
 *
 * Owner    the daemon, or a test; its transports are lent and outlive it.
 * Threads  coordinator_open starts them; the functions any.
 * Errors   coordinator_open: those of its parts.
 */
#pragma once
#include "node/job/record.h"
#include "node/telemetry/metric.h"
#include "node/transport/fleet.h"

struct coordinator;

struct coordinator_links {     /* lent */
    struct transport *control; /* what the loop itself does */
    struct transport *feed;    /* watches, intake, janitor */
    struct transport *lease;
};

struct coordinator_config {
    const char *prefix;          /* NULL: "bellows" */
    const char *name;            /* of this one, in the lease */
    struct record_limits limits; /* zeros: the defaults */
    uint64_t silence_ns;         /* a lane not heard of for so long is dead; 0: 3.2 s */
    uint64_t lease_ttl_ns;       /* 0: LEASE_TTL_NS */
    uint64_t lane_ack_wait_ns;   /* 0: LANE_ACK_WAIT_NS */
    uint64_t
        job_age_max_ns; /* a job that waited for so long expires; 0: before its record ages out */
    uint32_t tenant_jobs_max; /* open jobs of one tenant, about; more are refused; 0: no limit */
    uint32_t replicas;        /* of streams and buckets; 0: 1 */
    struct metric_block *metrics; /* lent: what it counts into; NULL: nobody looks */
};

FALLIBLE coordinator_open(struct coordinator **out, const struct coordinator_config *config,
                          const struct coordinator_links *links);
void coordinator_close(struct coordinator **c);

/* Leads, and has read all records. */
bool coordinator_is_ready(const struct coordinator *c);

struct coordinator_counts {
    uint64_t jobs_open, lanes_open;
    uint64_t taken_in, refused, placed, taken_back, joined, expired, cancelled, dead;
};
struct coordinator_counts coordinator_counts_of(const struct coordinator *c);
