/* A submitter in a test: jobs from the corpus, their records and results. Tenant "acme".
 *
 * Threads  the claim's.
 */
#pragma once
#include "node/job/result.h"
#include "tests/check/check.h"

struct submitter {
    struct transport *link;
    struct subject_space space;
    bool bodies_raw;      /* never packed, even where that pays */
    uint32_t frame_bytes; /* raw bytes of a full frame; 0: as bellows submit makes them */
};

/* A case of the corpus: "bn128/mul". */
struct job_order {
    const char *case_name;
    const char *key;      /* another file than the case's circuit.zkey, below the vectors; NULL */
    const char *key_path; /* the same, anywhere; NULL */
    const char
        *witness; /* another file than the case's witness.wtns, below the curve's folder; NULL */
    const char *first_witness; /* another one for partition 0 alone; NULL */
    const char *job_id;
    const char *tenant;      /* NULL: "acme" */
    const char *message_id;  /* NULL: one that was never used before */
    const char *object_mark; /* part of the names of its objects; NULL: none */
    uint32_t parts_count;    /* 0: 1 */
    uint64_t generation;     /* 0: 1 */
    uint32_t priority;
    uint64_t deadline_ms; /* from now; 0: none */
    const char *reply_subject;
    bool body_as_object, key_unregistered;
    char (*nuids)[64]; /* where the nuids of its objects go, one per partition; may be NULL */
    uint64_t *sent_ns; /* when the descriptor was handed to the connection; may be NULL */
    uint32_t lie_values_count; /* != 0: what the descriptor claims */
};
/* The case's key, with one of its many points not on the curve, which opening it does not notice. */
void write_spoiled_key(const char *path, const char *case_name);
/* Key, bodies, descriptor, in this order; what the transport says. */
FALLIBLE job_order_send(const struct submitter *s, const struct job_order *job);
void submit_job(const struct submitter *s, const struct job_order *job);
/* The result, which must come within thirty seconds; message_free. */
result_message *job_result(const struct submitter *s, const char *job_id, uint64_t generation);
/* Status OK, so many proofs, each verified with the key's verifying key. */
void check_proved(const result_message *result, const char *case_name, uint32_t parts_count);
/* Status FAILED with this error, `word` in its detail. */
void check_failed(const result_message *result, const char *code, const char *word);
/* The answer to an order: what `subject` says, with grace_ms; its error's code. E_NET: nobody listens. */
enum err give_order(const struct submitter *s, const char *subject, uint64_t grace_ms);
/* The state in a lane's directory entry; its reason too. 0: no entry. */
int lane_state_told(char reason[200], const struct submitter *s, struct lane_name lane);
enum job_state cancel_job(const struct submitter *s, const char *job_id);
/* The record as it stands; waits up to five seconds for the state. record_slot_done. */
struct record_slot job_record(const struct submitter *s, const char *job_id, enum job_state state);
/* Waits up to ten seconds. */
void wait_until(bool (*holds)(void *ctx), void *ctx, const char *what);
