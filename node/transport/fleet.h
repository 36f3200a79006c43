/* The fleet's streams and buckets: one table, ensured idempotently by whoever starts first.
 *
 * | name                 | holds                                   | kept                                   |
 * |----------------------|-----------------------------------------|----------------------------------------|
 * | BELLOWS_JOBS         | <p>.job.>   work queue, discard new     | 7 d, 4 GiB, 200 000 messages           |
 * | BELLOWS_LANES        | <p>.lane.>  work queue, discard new per subject | 32 per lane                    |
 * | BELLOWS_PARTS        | <p>.part.>  one message per subject     | 72 h                                   |
 * | BELLOWS_DONE         | <p>.done.>  one message per subject     | 72 h                                   |
 * | BELLOWS_DEAD         | <p>.dead.>  one message per subject     | 30 d                                   |
 * | BELLOWS_ADV          | deliveries exceeded and terminations, as the server reports them | 7 d           |
 * | BELLOWS_TEL          | <p>.tel.> <p>.evt.>  in memory; of lanes' reports one in ten | 15 min, 256 MiB   |
 * | KV bellows_lead      | lease                                   | 4 s                                    |
 * | KV bellows_jobs      | job records                             | 7 d                                    |
 * | KV bellows_lanes     | lane directory                          | 20 s                                   |
 * | KV bellows_keys      | key registry                            | for ever                               |
 * | KV bellows_cancel    | cancel marks                            | 24 h                                   |
 * | object bellows-keys  | proving keys by digest                  | for ever                               |
 * | object bellows-in-*  | bodies, one bucket per tenant           | longest job age + 1 d                  |
 *
 * Threads  any.
 */
#pragma once
#include "node/transport/transport.h"
#include "proto/subjects.h"

enum {
    LANE_DEPTH_MAX = 32, /* jobs that a lane is given at once */
    /* Messages per lane subject. A job's message lies there until its acknowledgement has come, which is sent after its record says that it has
     * ended: with no more places than jobs the next one was refused, and short jobs waited for the lane's next heartbeat. */
    LANE_MESSAGES_MAX = 2 * LANE_DEPTH_MAX,
    LANE_DELIVERIES_MAX = 4,
    INTAKE_DELIVERIES_MAX = 1000, /* the coordinator gives up long before, with a result */
    INTAKE_ACK_PENDING_MAX = 64
};
#define LANE_ACK_WAIT_NS (15 * UINT64_C(1000000000)) /* in-progress acks every 4 s */
#define LANE_PROGRESS_NS (4 * UINT64_C(1000000000))
#define INTAKE_ACK_WAIT_NS                                                                         \
    (3 * UINT64_C(1000000000)) /* below a lease: what a dead leader held is there for the next */
#define LEASE_TTL_NS     (4 * UINT64_C(1000000000))  /* renew each second, step down at 3 s */
#define LANE_INFO_TTL_NS (20 * UINT64_C(1000000000)) /* refreshed every 5 s */
#define JOB_AGE_MAX_NS   (7 * 86400 * UINT64_C(1000000000))

struct fleet_options {
    uint32_t replicas;        /* control streams and buckets; 0: 1 */
    int64_t tenant_bytes_max; /* quota of an input bucket, also of one that exists; 0: none given */
    uint64_t lane_ack_wait_ns; /* 0: LANE_ACK_WAIT_NS; tests shorten it */
    uint64_t lease_ttl_ns;     /* 0: LEASE_TTL_NS */
};
/* All but the input buckets and the lanes' consumers; also the four intake consumers J_P0 … J_P3. */
FALLIBLE fleet_ensure(struct transport *t, const struct subject_space *space,
                      const struct fleet_options *options);
/* The tenant's input bucket; one that exists keeps its limits, unless a quota is given. */
FALLIBLE fleet_ensure_tenant(struct transport *t, const struct subject_space *space,
                             const char *tenant, const struct fleet_options *options);
/* The lane's durable consumer on BELLOWS_LANES; ack_pending_max: what the lane holds at once. */
FALLIBLE fleet_ensure_lane(struct transport *t, const struct subject_space *space,
                           struct lane_name lane, uint32_t ack_pending_max,
                           const struct fleet_options *options);
