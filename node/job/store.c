/* Optimistic writing: the revision that was read is the precondition of the write.
 *
 * A slot that was read earlier may be out of date in both directions: its change can lose the race (then it is read again),
 * and its refusal can be wrong (a stale record says STALE to a fresh epoch), so a refusal by an old slot is checked against the
 * newest record before it is believed.
 */
#include "node/job/store.h"

#include "node/base/mem.h"

void record_slot_done(struct record_slot *slot) {
    if (slot->loaded) {
        record_done(&slot->record);
    }
    *slot = (struct record_slot){0};
}

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

enum err record_load(struct record_slot *slot, bool *found, const struct job_place *at) {
    struct subject bucket = kv_bucket_name(at->space, "jobs"), key = key_of_job(at->name);
    AUTO(kv_entry_done) struct kv_entry entry = {0};
    bool is_there = false;
    record_slot_done(slot);
    TRY(kv_get(&entry, &is_there, at->transport, bucket.text, key.text));
    if (is_there) {
        struct record r;
        enum err code = record_unpack(&r, entry.value);
        if (code != OK) {
            return err_prefix(code, "%s", key.text);
        }
        *slot = (struct record_slot){r, entry.revision, true};
    }
    *found = is_there;
    return OK;
}

enum err record_create(struct record_slot *slot, bool *won, const struct job_place *at,
                       struct record *r) {
    struct subject bucket = kv_bucket_name(at->space, "jobs"), key = key_of_job(at->name);
    AUTO(bytes_free) struct bytes_mut packed = {0};
    TRY(record_pack(&packed, r));
    uint64_t revision = 0;
    TRY(kv_create(&revision, won, at->transport, bucket.text, key.text,
                  bytes_of(packed.ptr, packed.len)));
    if (*won) {
        record_slot_done(slot);
        *slot = (struct record_slot){*r, revision, true};
        *r = (struct record){0};
    }
    return OK;
}

enum err record_replace(bool *won, struct record_slot *slot, const struct job_place *at) {
    struct subject bucket = kv_bucket_name(at->space, "jobs"), key = key_of_job(at->name);
    AUTO(bytes_free) struct bytes_mut packed = {0};
    TRY(record_pack(&packed, &slot->record));
    return kv_update(&slot->revision, won, at->transport, bucket.text, key.text,
                     bytes_of(packed.ptr, packed.len), slot->revision);
}

enum err record_apply(enum record_answer *answer, struct record_slot *slot,
                      const struct job_place *at, uint64_t generation, record_change *change,
                      void *ctx) {
    bool fresh = false; /* read in this call */
    for (int race = 0; race < RECORD_RACES_MAX; race++) {
        if (!slot->loaded) {
            bool found = false;
            TRY(record_load(slot, &found, at));
            fresh = true;
            if (!found) {
                *answer = RECORD_STALE;
                return OK;
            }
        }
        enum record_answer said =
            slot->record.generation == generation ? change(&slot->record, ctx) : RECORD_STALE;
        if (said != RECORD_MOVED && fresh) {
            *answer = said;
            return OK;
        }
        if (said == RECORD_MOVED) {
            bool won = false;
            enum err code = record_replace(&won, slot, at);
            if (code != OK) {
                record_slot_done(slot); /* whether it was stored is unknown */
                return code;
            }
            if (won) {
                *answer = RECORD_MOVED;
                return OK;
            }
        }
        record_slot_done(slot);
    }
    FAIL(E_QUEUE, "record %s.%s: lost %d races in a row", at->name.tenant, at->name.job,
         RECORD_RACES_MAX);
}
