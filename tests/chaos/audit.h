/* After the chaos: was every promise kept, and is nothing left over? All of it is read through the transport and the records' own reader.
 *
 * | looked at          | must be so                                                                              |
 * |--------------------|-----------------------------------------------------------------------------------------|
 * | each promised job  | one result of its last generation, of a kind that its errand allows, every proof verified |
 * | each record        | ended, its state that of the result                                                     |
 * | BELLOWS_DONE       | as many results as were promised, and none was ever replaced                              |
 * | BELLOWS_JOBS, LANES| nothing to deliver, nothing unacknowledged                                              |
 * | input buckets      | not one chunk of a promised body                                                              |
 *
 * Threads  the claim's.
 */
#pragma once
#include "tests/chaos/traffic.h"

struct audit {
    unsigned proved, failed, cancelled, expired, dead;
    unsigned faults_count;
    char first[400];         /* fault */
    unsigned orphans_count;  /* chunks of promised bodies that stay */
    unsigned stranded_count; /* messages that the server holds and no consumer gets */
    unsigned litter_count;   /* chunks of bodies whose descriptor never got through */
};
/* Waits until nothing is open any more, at most wait_ns; what is still open then is a fault. */
void audit_settle(struct audit *a, struct host *h, uint64_t wait_ns);
void audit_book(struct audit *a, struct host *h, const struct traffic *t);
