/* Submitters: a thread that sends jobs of every kind into the fleet whatever happens to it, and a book of what it was promised.
 *
 * | kind     | what is sent                                        | how it may end                                |
 * |----------|-----------------------------------------------------|-----------------------------------------------|
 * | plain    | one good witness, as object or in the descriptor    | proved                                        |
 * | many     | two to six partitions                               | proved                                        |
 * | unsat    | a witness that does not satisfy its circuit         | failed, E_UNSAT                               |
 * | bad      | the witness of another circuit                      | failed, E_RANGE                               |
 * | deadline | a deadline of 0.2 to 3 s                            | proved or expired                             |
 * | cancel   | cancelled within 0.4 s by `bellows cancel`; half are then sent again | cancelled if the command said so, else either |
 * | twice    | the same job again under a new message id           | proved, once                                  |
 * | taken    | a plain one, then other work under its id           | one of them proved, the other refused         |
 *
 * A send is repeated until the server has taken it: from then on it is promised, and so is that its bodies are purged. A body whose
 * descriptor never got through is nobody's, and is left to the age of its bucket. As `bellows submit` does it, a sending with bodies
 * in the bucket has a message id of its own.
 *
 * Owner    the claim.
 * Threads  traffic_start starts one; the book may be read after traffic_stop.
 */
#pragma once
#include "tests/e2e/host.h"

#include <pthread.h>
#include <stdatomic.h>

enum errand_kind {
    ERRAND_PLAIN,
    ERRAND_MANY,
    ERRAND_UNSAT,
    ERRAND_BAD,
    ERRAND_DEADLINE,
    ERRAND_CANCEL,
    ERRAND_TWICE,
    ERRAND_TAKEN,
    ERRANDS_COUNT
};
enum { ERRAND_LIMIT = 8192, TENANTS_COUNT = 3, ERRAND_PARTS_MAX = 6, NUIDS_MAX = 65536 };

struct errand {
    enum errand_kind kind;
    char job[24], tenant[8];
    const char *case_name, *witness;
    const char *other_case; /* sent under the same id; NULL: none */
    uint32_t parts_count, priority;
    uint64_t deadline_ms;
    bool as_object;
    uint64_t generation;   /* last promised; 0: none */
    bool cancel_confirmed; /* generation 1: the command exited with 0 */
};

struct traffic {
    struct submitter user; /* its connection is the traffic's own */
    char url[96], direct_url[96], dir[256];
    struct rng rng;
    double jobs_per_second;
    struct errand errands[ERRAND_LIMIT];
    size_t errands_count;
    uint64_t nuids[NUIDS_MAX]; /* hashes: bodies of descriptors that were taken */
    size_t nuids_count;
    uint64_t repeats_count; /* sends that had to be repeated */
    struct fault fault;     /* what no submitter should see */
    atomic_bool stopping, giving_up;
    pthread_t thread;
};
const char *errand_name(enum errand_kind kind);
void traffic_start(struct traffic *t, const struct host *h, const char *url, uint64_t seed,
                   double jobs_per_second);
bool traffic_owns_body(const struct traffic *t, const char *nuid);
/* Begins nothing new; what was begun is sent until it is promised, at most wait_ns longer. */
void traffic_stop(struct traffic *t, uint64_t wait_ns);
