/* Names on the wire: subjects, their parts, stream and bucket names.
 *
 * One table builds and parses them all, so that no other file holds a format string with dots in it. A name from outside
 * becomes part of a subject only after id_check.
 *
 * Threads  any; pure.
 * Errors   E_FORMAT for an id or a subject that breaks the rules, with the offending character.
 */
#pragma once
#include "node/base/bytes.h"
#include "proto/limits.h"

/* Ids are 1 to 64 of [A-Za-z0-9_-]. `what` names it in the error: "tenant". */
FALLIBLE id_check(const char *id, const char *what);
bool id_is_valid(const char *id);

/* A built subject, stream, bucket or key. By value: copies freely. */
struct subject {
    char text[SUBJECT_BYTES_MAX];
};

/* The fleet's names all start with one prefix: letters, digits, '_' and '-', at most 32; "bellows" by default. Streams and
 * buckets are called BELLOWS_JOBS, bellows_jobs, bellows-in-…: the prefix in upper case, as it is, as it is. */
struct subject_space {
    char prefix[33];
};
FALLIBLE subject_space_init(struct subject_space *out, const char *prefix); /* NULL: "bellows" */

/* What a job is called everywhere. Strings are lent. */
struct job_name {
    const char *tenant, *job;
};
struct lane_name {
    const char *node;
    uint32_t gpu;
};

/* --- Subjects. Ids must have passed id_check (asserted). --- */
struct subject subject_job(const struct subject_space *s, unsigned priority,
                           const uint8_t key_digest[32], struct job_name job);
struct subject subject_lane(const struct subject_space *s, struct lane_name lane);
struct subject subject_part(const struct subject_space *s, struct job_name job, uint64_t generation,
                            uint32_t index);
struct subject subject_done(const struct subject_space *s, struct job_name job,
                            uint64_t generation);
struct subject subject_dead(const struct subject_space *s, struct job_name job);
struct subject subject_telemetry(const struct subject_space *s, struct lane_name lane,
                                 const char *kind);
struct subject subject_telemetry_fleet(const struct subject_space *s); /* the coordinator's */
struct subject subject_event(const struct subject_space *s, struct job_name job, const char *state);
struct subject subject_heartbeat(const struct subject_space *s, struct lane_name lane);
/* Control: one lane, one node (all its lanes and the supervisor), every node; the coordinator, asked by an operator or by a
 * tenant about its own jobs; and cancel marks to whoever holds the job. Verbs: "drain", "resume", to a node "stop" (NULL: any);
 * coordinator: "status"; tenant: "cancel". The tenant stands in the subject so that the server can tell whose request it is. */
struct subject subject_ctl_lane(const struct subject_space *s, struct lane_name lane,
                                const char *verb);
struct subject subject_ctl_node(const struct subject_space *s, const char *node, const char *verb);
struct subject subject_ctl_all(const struct subject_space *s, const char *verb);
struct subject subject_ctl_coordinator(const struct subject_space *s, const char *verb);
struct subject subject_ctl_tenant(const struct subject_space *s, const char *tenant,
                                  const char *verb);
struct subject subject_ctl_cancel(const struct subject_space *s, struct job_name job);

/* --- Filters: the same with wildcards. --- */
struct subject filter_jobs(const struct subject_space *s, int priority); /* -1: all */
struct subject filter_lanes(const struct subject_space *s);              /* prefix.lane.*.* */
struct subject filter_parts(const struct subject_space *s);              /* all parts of all jobs */
struct subject filter_parts_of(const struct subject_space *s, struct job_name job,
                               uint64_t generation);
struct subject filter_done(const struct subject_space *s);
struct subject filter_done_of(const struct subject_space *s,
                              struct job_name job); /* any generation */
struct subject filter_done_tenant(const struct subject_space *s, const char *tenant);
struct subject filter_dead(const struct subject_space *s);
struct subject filter_telemetry(const struct subject_space *s); /* the fleet's too */
struct subject filter_telemetry_kind(const struct subject_space *s, const char *kind);
struct subject filter_events(const struct subject_space *s);
struct subject filter_events_state(const struct subject_space *s, const char *state);
struct subject filter_events_of(const struct subject_space *s, struct job_name job);
struct subject filter_heartbeats(const struct subject_space *s);
struct subject filter_cancels(const struct subject_space *s);
struct subject filter_tenant_requests(const struct subject_space *s, const char *verb);
struct subject filter_ctl_lanes(const struct subject_space *s,
                                const char *node); /* orders to any lane of it */

/* --- Streams, buckets, KV keys, consumers, message ids. --- */
struct subject stream_name(const struct subject_space *s,
                           const char *tail); /* "JOBS" → BELLOWS_JOBS */
struct subject kv_bucket_name(const struct subject_space *s,
                              const char *tail); /* "jobs" → bellows_jobs */
struct subject bucket_in(const struct subject_space *s,
                         const char *tenant);              /* bellows-in-<tenant> */
struct subject bucket_keys(const struct subject_space *s); /* bellows-keys */
struct subject key_of_job(struct job_name job);            /* <tenant>.<job> */
struct subject key_of_lane(struct lane_name lane);         /* <node>.<gpu> */
struct subject consumer_of_lane(struct lane_name lane);    /* L_<node>_<gpu> */
struct subject consumer_of_priority(unsigned priority);    /* J_P<n> */
struct subject message_id_of_job(struct job_name job, uint64_t generation);
struct subject message_id_of_assignment(struct job_name job, uint64_t generation, uint64_t epoch,
                                        uint32_t index);

/* --- Parsing: the other way. --- */
enum subject_kind {
    SUBJECT_JOB,
    SUBJECT_LANE,
    SUBJECT_PART,
    SUBJECT_DONE,
    SUBJECT_DEAD,
    SUBJECT_TELEMETRY,
    SUBJECT_TELEMETRY_FLEET,
    SUBJECT_EVENT,
    SUBJECT_HEARTBEAT,
    SUBJECT_CTL_LANE,
    SUBJECT_CTL_NODE,
    SUBJECT_CTL_ALL,
    SUBJECT_CTL_COORDINATOR,
    SUBJECT_CTL_TENANT,
    SUBJECT_CTL_CANCEL,
    SUBJECT_KINDS_COUNT
};
/* What stands in a subject; fields that the kind lacks are empty or 0. */
struct subject_parts {
    enum subject_kind kind;
    char tenant[ID_BYTES_MAX + 1], job[ID_BYTES_MAX + 1], node[ID_BYTES_MAX + 1];
    char verb[ID_BYTES_MAX + 1]; /* verb, state or telemetry kind */
    char circuit[CIRCUIT_TOKEN_DIGITS + 1];
    unsigned priority;
    uint32_t gpu, index;
    uint64_t generation;
};
FALLIBLE subject_parse(struct subject_parts *out, const struct subject_space *s, const char *text);
/* "<tenant>.<job>" and "<node>.<gpu>" back. */
FALLIBLE job_key_parse(char tenant[ID_BYTES_MAX + 1], char job[ID_BYTES_MAX + 1], const char *key);
FALLIBLE lane_key_parse(char node[ID_BYTES_MAX + 1], uint32_t *gpu, const char *key);
/* A subject that somebody else chose (a reply subject): printable ASCII, no space, no wildcard, no empty token, not `$…`,
 * shorter than SUBJECT_BYTES_MAX. */
FALLIBLE subject_check_foreign(const char *text, const char *what);

/* --- Inboxes: where replies go ---
 *
 * Each role has its own, `_INBOX.<role>.<name>`, which is the name of its certificate behind `_INBOX`; a fleet without roles
 * uses `_INBOX.<anything>`. Whoever answers does so with its own permissions, so what it answers to must be an inbox: the asker
 * chose the subject. */
enum { INBOX_BYTES_MAX = 192 };
bool subject_is_inbox(const char *text); /* also what a server makes of one between accounts */
/* Where a job's result may be sent: an inbox of nobody, or of this tenant's submitters. */
FALLIBLE subject_check_reply(const char *text, const char *tenant);
/* NATS wildcards: does `filter` (with * and >) cover `subject`? */
bool subject_matches(const char *filter, const char *subject);
