/* One thread at a time is a record's writer: it takes all wishes that have come together, applies them to the record as last seen, and stores
 * it once. A write that wins proves that the record was the newest, so what it answered to the other wishes holds too; after a lost
 * race all are asked anew. When it is back, one of those that came meanwhile is the next writer.
 */
#include "node/job/shared.h"

#include <stdio.h>
#include <string.h>

#include "node/base/lock.h"
#include "node/base/mem.h"

struct wish { /* a change on its way; on its thread's stack */
    record_change *change;
    void *ctx;
    enum record_answer answer;
    struct fault fault;
    bool done;
    struct wish *next;
};

struct shared_record {
    struct shared_records *all; /* lent */
    char tenant[ID_BYTES_MAX + 1], job[ID_BYTES_MAX + 1];
    uint64_t generation;
    unsigned users;             /* [lock] */
    struct shared_record *next; /* [lock] */
    bool busy;                  /* [lock] somebody is on the way to the server with it */
    struct wish *first, **last; /* [lock] that wait for the next way */
    struct record_slot slot;    /* owned; of whoever made it busy */
};

struct shared_records {
    struct transport *transport;       /* lent */
    const struct subject_space *space; /* lent */
    struct lock lock;
    struct condition changed; /* a record is not busy any more */
    struct shared_record *first;
};

enum err shared_records_new(struct shared_records **out, struct transport *transport,
                            const struct subject_space *space) {
    struct shared_records *all = NULL;
    TRY(mem_new(&all, 1, sizeof *all));
    all->transport = transport;
    all->space = space;
    lock_init(&all->lock, LOCK_JOB);
    condition_init(&all->changed);
    *out = all;
    return OK;
}

void shared_records_free(struct shared_records **all) {
    if (*all) {
        ASSERT(!(*all)->first);
        condition_done(&(*all)->changed);
        lock_done(&(*all)->lock);
        mem_free_ptr(all);
    }
}

static struct shared_record *find(const struct shared_records *all, struct job_name name,
                                  uint64_t generation) {
    struct shared_record *r = all->first;
    while (r && (r->generation != generation || strcmp(r->job, name.job) != 0 ||
                 strcmp(r->tenant, name.tenant) != 0)) {
        r = r->next;
    }
    return r;
}

enum err shared_take(struct shared_record **out, struct shared_records *all, struct job_name name,
                     uint64_t generation) {
    LOCK_SCOPE(&all->lock);
    struct shared_record *r = find(all, name, generation);
    if (!r) {
        TRY(mem_new(&r, 1, sizeof *r));
        snprintf(r->tenant, sizeof r->tenant, "%s", name.tenant);
        snprintf(r->job, sizeof r->job, "%s", name.job);
        r->all = all;
        r->generation = generation;
        r->last = &r->first;
        r->next = all->first;
        all->first = r;
    }
    r->users++;
    *out = r;
    return OK;
}

void shared_give(struct shared_record **record) {
    struct shared_record *r = *record;
    *record = NULL;
    if (!r) {
        return;
    }
    struct shared_records *all = r->all;
    lock_take(&all->lock);
    bool last = --r->users == 0;
    for (struct shared_record **at = &all->first; last; at = &(*at)->next) {
        if (*at == r) {
            *at = r->next;
            break;
        }
    }
    lock_give(&all->lock);
    if (last) {
        ASSERT(!r->busy && !r->first);
        record_slot_done(&r->slot);
        mem_free(r);
    }
}

static struct job_place place_of(const struct shared_record *r) {
    return (struct job_place){r->all->transport, r->all->space, {r->tenant, r->job}};
}

static void begin(struct shared_record *r) {
    LOCK_SCOPE(&r->all->lock);
    while (r->busy) {
        condition_wait(&r->all->changed, &r->all->lock);
    }
    r->busy = true;
}

static void end(struct shared_record *r) {
    LOCK_SCOPE(&r->all->lock);
    r->busy = false;
    condition_wake_all(&r->all->changed);
}

/* --- Reading --- */

static bool says_ours(const struct shared_record *r, uint32_t idx, uint64_t epoch) {
    const struct record *record = &r->slot.record;
    return r->slot.loaded && job_state_is_open(record->state) &&
           record->generation == r->generation && idx < record->parts_count &&
           record->parts[idx].epoch == epoch;
}

enum err shared_look(struct shared_claim *out, struct shared_record *r, uint32_t idx,
                     uint64_t epoch) {
    struct job_place at = place_of(r);
    bool found = false;
    enum err code = OK;
    begin(r);
    if (!says_ours(r, idx, epoch)) {
        code = record_load(&r->slot, &found, &at);
    }
    *out =
        (struct shared_claim){.ours = code == OK && says_ours(r, idx, epoch),
                              .queued_unix_ms = r->slot.loaded ? r->slot.record.queued_unix_ms : 0};
    if (out->ours) {
        out->deaths = record_part_counts(&r->slot.record.parts[idx]).deaths;
    }
    end(r);
    return code;
}

/* --- Changing --- */

/* All wishes of one way, as one change. */
static enum record_answer change_all(struct record *record, void *ctx) {
    enum record_answer all = RECORD_STALE;
    for (struct wish *w = ctx; w; w = w->next) {
        w->answer = w->change(record, w->ctx);
        all = w->answer == RECORD_MOVED ? RECORD_MOVED : all;
    }
    return all;
}

static void say_stale(struct wish *w) { /* no record, or of another generation: nobody was asked */
    for (; w; w = w->next) {
        w->answer = RECORD_STALE;
    }
}

static void write_all(struct shared_record *r, struct wish *wishes) {
    struct job_place at = place_of(r);
    enum record_answer answer;
    say_stale(wishes);
    enum err code = record_apply(&answer, &r->slot, &at, r->generation, change_all, wishes);
    for (struct wish *w = wishes; w; w = w->next) {
        w->fault = fault_of(code);
    }
}

static void settle(struct shared_record *r, struct wish *wishes) {
    LOCK_SCOPE(&r->all->lock);
    while (wishes) {
        struct wish *next = wishes->next; /* a wish that is done goes with its thread */
        wishes->done = true;
        wishes = next;
    }
    r->busy = false;
    condition_wake_all(&r->all->changed);
}

/* The wishes to go now, when it is the caller's turn to write; NULL: its own is done. */
static struct wish *await_turn(struct shared_record *r, struct wish *own) {
    LOCK_SCOPE(&r->all->lock);
    *r->last = own;
    r->last = &own->next;
    while (r->busy && !own->done) {
        condition_wait(&r->all->changed, &r->all->lock);
    }
    if (own->done) {
        return NULL;
    }
    struct wish *wishes = r->first;
    r->first = NULL;
    r->last = &r->first;
    r->busy = true;
    return wishes;
}

enum err shared_apply(enum record_answer *answer, struct shared_record *r, record_change *change,
                      void *ctx) {
    struct wish own = {.change = change, .ctx = ctx};
    struct wish *wishes = await_turn(r, &own);
    if (wishes) {
        write_all(r, wishes);
        settle(r, wishes);
    }
    TRY(own.fault.code == OK ? OK : fault_raise(&own.fault));
    *answer = own.answer;
    return OK;
}
