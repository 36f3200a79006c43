/* One job on its way to the fleet: a key, a witness for each partition, then bodies, descriptor, publication.
 *
 *   submission_open ─ submission_add, once a witness ─ submission_send ─ submission_wait
 *
 * Everything that can be refused without the network is refused by the first two. Bodies ride inside the descriptor while they are small,
 * others become objects. Sending again under the same id is the same job: the fleet answers with the first result.
 *
 * Owner    the caller; closed before the client.
 * Threads  one at a time.
 * Errors   E_USAGE for what the asker may change (count, ids); witness.h's and key.h's; the transport's.
 * Secrets  witnesses and their encodings are wiped once they are sent, or when it closes.
 */
#pragma once
#include "node/submit/waiter.h"
#include "node/witness/witness.h"

struct submission_options {
    const char *job;   /* its id; NULL: made up */
    const char *label; /* free text; NULL: none */
    uint32_t priority; /* 0 urgent to 3 low */
    uint64_t deadline_unix_ms;
    bool wait;                                /* somebody will: refusals come to submission_wait */
    void (*progress)(void *ctx, double done); /* while bodies go up; NULL: nobody asks */
    void *progress_ctx;
};

struct submission;
/* For `count` witnesses; takes a reference to the key. */
FALLIBLE submission_open(struct submission **out, struct key *key, size_t count);
void submission_close(struct submission **s);
/* Takes the witness over, clearing it, on OK only. */
FALLIBLE submission_add(struct submission *s, struct witness *witness);
/* Stores the key where it is missing, sends bodies and descriptor. On OK the fleet has the job, and key and witnesses are let go. Once.
 * `client` is lent until submission_close. */
FALLIBLE submission_send(struct submission *s, const struct client *client,
                         const struct submission_options *options);
/* After a send with `wait`; as waiter_wait. */
FALLIBLE submission_wait(result_message **out, struct submission *s, uint64_t limit_ns);

/* Of a sent one; lent. */
const char *submission_job(const struct submission *s);
uint64_t submission_generation(const struct submission *s);
const struct sha256 *submission_key_digest(const struct submission *s);
