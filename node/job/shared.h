/* Shared records: what a process knows of the records of its jobs. Partitions of one job that several threads have in hand move together: as long
 * as one thread is on its way to the server with a record, whoever else would change it adds the change to the next way.
 *
 * Without that every partition reads and writes the record for itself, each against all others: a job of 64 partitions on two lanes lost two
 * races of three.
 *
 * Owner    the lane. A shared record is a reference, one for each partition in hand: taken, and given back before the table is closed.
 * Threads  any; shared_apply waits for the server.
 * Errors   those of store.h; E_LIMIT without memory.
 */
#pragma once
#include "node/job/store.h"

struct shared_records;
struct shared_record; /* the record of one job in one generation */

/* Both lent. */
FALLIBLE shared_records_new(struct shared_records **out, struct transport *transport,
                            const struct subject_space *space);
void shared_records_free(struct shared_records **all);

FALLIBLE shared_take(struct shared_record **out, struct shared_records *all, struct job_name name,
                     uint64_t generation);
void shared_give(struct shared_record **r);

struct shared_claim {
    bool ours;               /* the partition still belongs to whoever got it under this epoch */
    uint64_t queued_unix_ms; /* of the job; 0: not known */
    uint32_t deaths;         /* of workers that had started this partition */
};
/* What is known already is believed when it says yes; else the record is read. */
FALLIBLE shared_look(struct shared_claim *out, struct shared_record *r, uint32_t idx,
                     uint64_t epoch);
/* As record_apply. `change` may be called on another thread, while the caller waits. */
FALLIBLE shared_apply(enum record_answer *answer, struct shared_record *r, record_change *change,
                      void *ctx);
