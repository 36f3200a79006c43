/* The table of fleet.h, as data. */
#include "node/transport/fleet.h"

#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
#define DAY_NS    (86400 * SECOND_NS)

enum { STREAMS_COUNT = 7, BUCKETS_COUNT = 5 };

static FALLIBLE ensure_streams(struct transport *t, const struct subject_space *s,
                               uint32_t replicas) {
    struct subject jobs = filter_jobs(s, -1), lanes = filter_lanes(s), parts = filter_parts(s),
                   done = filter_done(s), dead = filter_dead(s), tel = filter_telemetry(s),
                   events = filter_events(s);
    struct subject names[STREAMS_COUNT] = {stream_name(s, "JOBS"),  stream_name(s, "LANES"),
                                           stream_name(s, "PARTS"), stream_name(s, "DONE"),
                                           stream_name(s, "DEAD"),  stream_name(s, "ADV"),
                                           stream_name(s, "TEL")};
    char exceeded[SUBJECT_BYTES_MAX + 64], terminated[SUBJECT_BYTES_MAX + 64];
    snprintf(exceeded, sizeof exceeded, "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.%s.*",
             names[1].text);
    snprintf(terminated, sizeof terminated, "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.%s.*",
             names[1].text);
    const struct stream_config table[STREAMS_COUNT] = {
        {.subjects = {jobs.text},
         .retention = STREAM_WORK_QUEUE,
         .discard_new = true,
         .messages_max = 200000,
         .bytes_max = INT64_C(4) << 30,
         .message_bytes_max = RECORD_BYTES_MAX,
         .age_max_ns = JOB_AGE_MAX_NS,
         .duplicate_window_ns = 600 * SECOND_NS},
        {.subjects = {lanes.text},
         .retention = STREAM_WORK_QUEUE,
         .discard_new_per_subject = true,
         .messages_per_subject_max = LANE_MESSAGES_MAX,
         .message_bytes_max = RECORD_BYTES_MAX,
         .duplicate_window_ns = 600 * SECOND_NS},
        {.subjects = {parts.text},
         .messages_per_subject_max = 1,
         .message_bytes_max = RESULT_BYTES_MAX,
         .age_max_ns = 3 * DAY_NS},
        {.subjects = {done.text},
         .messages_per_subject_max = 1,
         .message_bytes_max = RESULT_BYTES_MAX,
         .age_max_ns = 3 * DAY_NS},
        {.subjects = {dead.text},
         .messages_per_subject_max = 1,
         .message_bytes_max = MESSAGE_BYTES_MAX,
         .age_max_ns = 30 * DAY_NS},
        {.subjects = {exceeded, terminated}, .age_max_ns = 7 * DAY_NS},
        {.subjects = {tel.text, events.text},
         .in_memory = true,
         .bytes_max = INT64_C(256) << 20,
         .age_max_ns = 900 * SECOND_NS},
    };
    for (size_t i = 0; i < STREAMS_COUNT; i++) {
        struct stream_config c = table[i];
        c.name = names[i].text;
        c.replicas = replicas;
        TRY(stream_ensure(t, &c));
    }
    return OK;
}

static FALLIBLE ensure_buckets(struct transport *t, const struct subject_space *s,
                               const struct fleet_options *o) {
    const struct {
        const char *tail;
        uint64_t ttl_ns;
        int32_t value_bytes_max;
    } table[BUCKETS_COUNT] = {
        {"lead", o->lease_ttl_ns ? o->lease_ttl_ns : LEASE_TTL_NS, LEASE_BYTES_MAX},
        {"jobs", JOB_AGE_MAX_NS, RECORD_BYTES_MAX},
        {"lanes", LANE_INFO_TTL_NS, LANE_INFO_BYTES_MAX},
        {"keys", 0, KEY_RECORD_BYTES_MAX},
        {"cancel", DAY_NS, CONTROL_BYTES_MAX},
    };
    for (size_t i = 0; i < BUCKETS_COUNT; i++) {
        struct subject bucket = kv_bucket_name(s, table[i].tail);
        TRY(kv_ensure(t, &(struct kv_config){.bucket = bucket.text,
                                             .ttl_ns = table[i].ttl_ns,
                                             .value_bytes_max = table[i].value_bytes_max,
                                             .replicas = o->replicas}));
    }
    struct subject keys = bucket_keys(s);
    return object_bucket_ensure(
        t, &(struct object_bucket_config){.bucket = keys.text, .replicas = o->replicas});
}

FALLIBLE fleet_ensure(struct transport *t, const struct subject_space *s,
                      const struct fleet_options *options) {
    static const struct fleet_options none;
    const struct fleet_options *o = options ? options : &none;
    struct subject jobs = stream_name(s, "JOBS");
    TRY(ensure_streams(t, s, o->replicas));
    TRY(ensure_buckets(t, s, o));
    for (unsigned priority = 0; priority < JOB_PRIORITY_COUNT; priority++) {
        struct subject name = consumer_of_priority(priority);
        struct subject filter = filter_jobs(s, (int)priority);
        TRY(consumer_ensure(t, &(struct consumer_config){
                                   .stream = jobs.text,
                                   .name = name.text,
                                   .filter = filter.text,
                                   .ack_wait_ns = INTAKE_ACK_WAIT_NS,
                                   .deliveries_max = INTAKE_DELIVERIES_MAX,
                                   .ack_pending_max = INTAKE_ACK_PENDING_MAX,
                               }));
    }
    return OK;
}

FALLIBLE fleet_ensure_tenant(struct transport *t, const struct subject_space *s, const char *tenant,
                             const struct fleet_options *o) {
    TRY(id_check(tenant, "tenant"));
    struct subject bucket = bucket_in(s, tenant);
    return object_bucket_ensure(t, &(struct object_bucket_config){
                                       .bucket = bucket.text,
                                       .age_max_ns = JOB_AGE_MAX_NS + DAY_NS,
                                       .bytes_max = o ? o->tenant_bytes_max : 0,
                                       .replace_limits = o && o->tenant_bytes_max,
                                   });
}

FALLIBLE fleet_ensure_lane(struct transport *t, const struct subject_space *s,
                           struct lane_name lane, uint32_t ack_pending_max,
                           const struct fleet_options *o) {
    TRY(id_check(lane.node, "node"));
    struct subject stream = stream_name(s, "LANES"), name = consumer_of_lane(lane),
                   filter = subject_lane(s, lane);
    return consumer_ensure(
        t, &(struct consumer_config){
               .stream = stream.text,
               .name = name.text,
               .filter = filter.text,
               .ack_wait_ns = o && o->lane_ack_wait_ns ? o->lane_ack_wait_ns : LANE_ACK_WAIT_NS,
               .deliveries_max = LANE_DELIVERIES_MAX,
               .ack_pending_max = (int32_t)ack_pending_max,
           });
}
