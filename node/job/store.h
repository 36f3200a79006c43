/* Records in the KV: read, change by compare-and-set, read again when somebody else was faster.
 *
 * Threads  a slot belongs to one thread.
 * Errors   the transport's; E_FORMAT for a stored record that cannot be read; E_QUEUE when RECORD_RACES_MAX races in a row
 *          were lost.
 */
#pragma once
#include "node/job/record.h"
#include "node/transport/transport.h"

enum { RECORD_RACES_MAX = 64 };

/* A job of one fleet: where its record, its result and its events live. Strings are lent. */
struct job_place {
    struct transport *transport;
    const struct subject_space *space;
    struct job_name name;
};

/* The record as last seen. Zeroed: not seen. record_slot_done when finished. */
struct record_slot {
    struct record record; /* owned while loaded */
    uint64_t revision;
    bool loaded;
};
void record_slot_done(struct record_slot *slot);

/* *found false: no such job (or older than the bucket keeps). */
FALLIBLE record_load(struct record_slot *slot, bool *found, const struct job_place *at);
/* Stores a first record; *won false: there is one already, nothing stored. The slot is loaded only when won, and takes `r`
 * over then (clearing it). */
FALLIBLE record_create(struct record_slot *slot, bool *won, const struct job_place *at,
                       struct record *r);

/* Changes the record, in place, and says what it did; called again on the newest record after a lost race. */
typedef enum record_answer record_change(struct record *r, void *ctx);
/* Applies `change` to the job's record of this generation and stores it. *answer is RECORD_STALE when there is no record, its
 * generation is another one, or `change` says so. A loaded slot spares the first read; the slot then holds the newest. */
FALLIBLE record_apply(enum record_answer *answer, struct record_slot *slot,
                      const struct job_place *at, uint64_t generation, record_change *change,
                      void *ctx);
/* Stores the slot's record over the revision that was read, once, whatever was changed in it: record_reopen's way, which moves the
 * generation. *won false: somebody was faster, nothing stored; the slot is then to be loaded again. */
FALLIBLE record_replace(bool *won, struct record_slot *slot, const struct job_place *at);
