/* Results: how a proof becomes a message, is stored once, and becomes a proof again.
 *
 * A partition's outcome is a PartResult; a job's is a Result, which holds the outcomes in partition order. Both are stored under
 * a subject that takes one message only: the first writer wins, whoever he is, and everybody else learns what he wrote.
 *
 * Threads  any.
 * Errors   the transport's; E_LIMIT for a result above RESULT_BYTES_MAX; E_FORMAT, E_CURVE, E_RANGE for a stored one that is not
 *          what it claims to be.
 * Secrets  a result holds no witness value but the public ones.
 */
#pragma once
#include "node/groth16/prove.h"
#include "node/job/store.h"
#include "node/telemetry/span.h"
#include "proto/job.h"

/* What a lane knows about a partition when it is through with it. Strings are lent. */
struct part_report {
    struct job_name name;
    uint64_t generation, epoch;
    uint32_t index, attempt;
    const struct prove_result *proved; /* lent; NULL: failed, with `fault` */
    struct fault fault;
    struct spans spans; /* what was done; a result holds the sums of those that went well */
    uint64_t total_ns;
    const char *device;
    struct lane_name lane;
};
FALLIBLE part_report_pack(struct bytes_mut *out, const struct part_report *report);

/* What is said about the whole job around its partitions. */
struct job_report {
    struct job_name name;
    uint64_t generation;
    const job_message *job; /* lent: key, curve, submission time */
    struct fault fault;     /* code OK: done */
    uint64_t elapsed_ns;    /* 0: unknown */
};
/* `parts` in partition order; may be fewer, or none, unless the job is done. */
FALLIBLE job_report_pack(struct bytes_mut *out, const struct job_report *report,
                         part_message *const *parts, size_t parts_count);
/* The one-partition case: from the lane's report straight to a Result. */
FALLIBLE job_report_pack_one(struct bytes_mut *out, const struct job_report *report,
                             const struct part_report *part);

/* done, failed, cancelled, expired: the status of a result with this error, and the record's state after it. */
Bellows__V1__Status status_of_code(enum err code);
enum job_state state_of_status(Bellows__V1__Status status);

/* Stores the job's only result. *won false: there was one; *status is that of the stored one in either case. */
FALLIBLE result_store(Bellows__V1__Status *status, bool *won, const struct job_place *at,
                      uint64_t generation, struct bytes result);
FALLIBLE part_store(bool *won, const struct job_place *at, uint64_t generation, uint32_t index,
                    struct bytes part);
/* *found false: not there (yet). *out is the caller's: message_free. */
FALLIBLE result_fetch(result_message **out, bool *found, const struct job_place *at,
                      uint64_t generation);

/* A proof out of a result: points checked to be on the curve, public signals below r. *publics: mem_free. */
FALLIBLE proof_from_message(struct proof *proof, struct scalar **publics, size_t *publics_count,
                            const struct curve *c, const Bellows__V1__Proof *message);
/* Packed size of a Result with so many proofs: what a job may ask for at all. */
uint64_t result_bytes_expected(const struct curve *c, uint64_t publics_count, uint32_t parts_count);
