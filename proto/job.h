/* Descriptors and results, checked: what a Job, Body or Result must satisfy beyond being protobuf.
 *
 * Threads  any; pure.
 * Errors   E_FORMAT, E_RANGE, E_LIMIT naming the field and partition, what was found and what is allowed.
 */
#pragma once
#include "proto/frame.h"
#include "proto/job.pb-c.h"
#include "proto/subjects.h"
#include "proto/unpack.h"

typedef Bellows__V1__Job job_message;
typedef Bellows__V1__Result result_message;
typedef Bellows__V1__PartResult part_message;

/* Unpacks and checks all that can be checked without the key. `subject` (may be NULL) must agree on job, tenant, priority
 * and circuit. Bodies larger than body_bytes_max raw are E_LIMIT. */
FALLIBLE job_unpack(job_message **out, struct bytes data, const struct subject_parts *subject,
                    uint64_t body_bytes_max);
FALLIBLE job_check(const job_message *job, const struct subject_parts *subject,
                   uint64_t body_bytes_max);
FALLIBLE job_check_label(const char *label); /* alone, before anything is sent for it */
FALLIBLE job_pack(struct bytes_mut *out, const job_message *job); /* out->ptr: mem_free */
/* SHA-256 of the descriptor without generation, submission time, priority, deadline, reply subject and label: equal for
 * two descriptions of the same work. Object references count by their content's sha256, not by name. */
FALLIBLE job_fingerprint(uint8_t out[32], const job_message *job);

/* A body's layout from its descriptor, all claims cross-checked. */
FALLIBLE body_layout(struct frame_layout *out, const Bellows__V1__Body *body,
                     uint64_t memory_bytes_max);

/* What a partition is proved from, as the number of its sections: an assignment; or a, b and an assignment, in this order. */
enum body_form { BODY_WITNESS = 1, BODY_EVALUATIONS = 3 };
/* E_FORMAT for any other sections, and where a and b are not of one length. */
FALLIBLE body_form_of(enum body_form *out, const struct frame_layout *layout);

FALLIBLE result_unpack(result_message **out, struct bytes data);
FALLIBLE result_pack(struct bytes_mut *out, const result_message *result);
FALLIBLE part_unpack(part_message **out, struct bytes data);
FALLIBLE part_pack(struct bytes_mut *out, const part_message *part);

const char *status_name(Bellows__V1__Status status); /* "ok", "failed", "cancelled", "expired" */
