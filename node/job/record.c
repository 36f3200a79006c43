/* The state machine on a plain struct; its bytes are fleet.proto's JobRecord.
 *
 * Every transition first asks may_act: is the job open, and is the caller's epoch the partition's own? That is the
 * only fence there is. Then it changes the partition, and settle() derives the job's state again.
 */
#include "node/job/record.h"

#include <stdio.h>
#include <string.h>

#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/job.h"
#include "proto/unpack.h"

const struct record_limits record_limits_default = {RECORD_ATTEMPTS_MAX, RECORD_DEATHS_MAX,
                                                    RECORD_REFUSALS_MAX};

const char *job_state_name(enum job_state state) {
    static const char *const names[JOB_STATES_COUNT] = {
        [JOB_QUEUED] = "queued",   [JOB_PLACED] = "placed", [JOB_RUNNING] = "running",
        [JOB_DONE] = "done",       [JOB_FAILED] = "failed", [JOB_CANCELLED] = "cancelled",
        [JOB_EXPIRED] = "expired", [JOB_DEAD] = "dead"};
    return (unsigned)state < JOB_STATES_COUNT && names[state] ? names[state] : "unknown";
}

static void copy_text(char *out, size_t out_bytes, const char *text) {
    snprintf(out, out_bytes, "%s", text ? text : "");
}

/* --- Life --- */

static enum err copy_bytes(struct bytes_mut *out, struct bytes in) {
    uint8_t *copy = NULL;
    TRY(mem_new_raw(&copy, in.len ? in.len : 1, 1));
    if (in.len) {
        memcpy(copy, in.ptr, in.len);
    }
    *out = (struct bytes_mut){copy, in.len};
    return OK;
}

static enum err parts_new(struct record_part **out, uint32_t count) {
    REQUIRE(count >= 1 && count <= JOB_PARTITIONS_MAX, E_RANGE,
            "job record: %u partitions, allowed are 1 to %d", count, JOB_PARTITIONS_MAX);
    struct record_part *parts = NULL;
    TRY(mem_new(&parts, count, sizeof *parts));
    for (uint32_t i = 0; i < count; i++) {
        parts[i].state = JOB_QUEUED;
    }
    *out = parts;
    return OK;
}

enum err record_init(struct record *out, struct bytes job, const struct sha256 *fingerprint,
                     uint64_t generation, uint32_t parts_count, uint64_t now_unix_ms) {
    AUTO(record_done)
    struct record r = {
        .state = JOB_QUEUED,
        .generation = generation,
        .fingerprint = *fingerprint,
        .queued_unix_ms = now_unix_ms,
        .updated_unix_ms = now_unix_ms,
    };
    TRY(parts_new(&r.parts, parts_count));
    r.parts_count = parts_count;
    TRY(copy_bytes(&r.job, job));
    *out = r;
    r = (struct record){0};
    return OK;
}

static void wipe_job(struct record *r) {
    if (r->job.ptr) {
        mem_wipe(r->job.ptr, r->job.len); /* it may hold an inline witness */
    }
    mem_free(r->job.ptr);
    r->job = (struct bytes_mut){0};
}

/* What is in the bucket has to be purged after the end, by whoever leads then: its references stay, everything else of the descriptor
 * goes, and without references all of it. */
static void keep_references(struct record *r) {
    AUTO(message_free) job_message *job = NULL;
    job_message kept = BELLOWS__V1__JOB__INIT;
    Bellows__V1__Partition *partitions[JOB_PARTITIONS_MAX];
    struct bytes_mut packed = {0};
    kept.partitions = partitions;
    bool sound =
        r->job.ptr && job_unpack(&job, bytes_of(r->job.ptr, r->job.len), NULL, UINT64_MAX) == OK;
    for (size_t i = 0; sound && i < job->n_partitions; i++) {
        if (job->partitions[i]->body->place_case == BELLOWS__V1__BODY__PLACE_OBJECT) {
            partitions[kept.n_partitions++] = job->partitions[i];
        }
    }
    if (kept.n_partitions > 0) {
        kept.version = job->version;
        kept.job_id = job->job_id;
        kept.tenant = job->tenant;
        kept.key_digest = job->key_digest;
        kept.curve = job->curve;
        kept.generation = job->generation;
        IGNORE(job_pack(&packed, &kept)); /* else they are left to the bucket's age */
    }
    wipe_job(r);
    r->job = packed;
}

void record_done(struct record *r) {
    wipe_job(r);
    for (uint32_t i = 0; r->parts && i < r->parts_count; i++) {
        mem_free(r->parts[i].tries);
    }
    mem_free(r->parts);
    *r = (struct record){0};
}

/* --- Transitions --- */

static void settle(struct record *r, uint64_t now_unix_ms) {
    r->updated_unix_ms = now_unix_ms;
    if (!job_state_is_open(r->state)) {
        return;
    }
    bool placed = false, started = false;
    for (uint32_t i = 0; i < r->parts_count; i++) {
        placed |= r->parts[i].state == JOB_PLACED;
        started |= r->parts[i].state == JOB_RUNNING || r->parts[i].state == JOB_DONE;
    }
    r->state = started ? JOB_RUNNING : placed ? JOB_PLACED : JOB_QUEUED;
}

static bool may_act(const struct record *r, uint32_t idx, uint64_t epoch) {
    return job_state_is_open(r->state) && idx < r->parts_count && r->parts[idx].epoch == epoch;
}

/* Room for one more; false without memory. */
static bool grow_tries(struct record_part *part) {
    struct record_try *tries = mem_grow(part->tries, (part->tries_count + 1) * sizeof *tries);
    part->tries = tries ? tries : part->tries;
    return tries != NULL;
}

static void note_try(struct record *r, struct record_part *part, enum err code, bool counted,
                     const char *detail, uint64_t now_unix_ms) {
    if (part->tries_count == RECORD_TRIES_KEPT || !grow_tries(part)) {
        part->tries_count -= part->tries_count > 0; /* used up long ago: keep the first reasons */
    }
    snprintf(r->reason, sizeof r->reason, "%.20s: %.130s", err_name(code), detail ? detail : "");
    if (!part->tries) {
        return; /* no memory for the first: it goes uncounted */
    }
    struct record_try *t = &part->tries[part->tries_count++];
    *t = (struct record_try){.epoch = part->epoch,
                             .ended_unix_ms = now_unix_ms,
                             .lane = part->lane,
                             .code = code,
                             .counted = counted};
    /* So that a record with its descriptor stays within RECORD_BYTES_MAX whatever happens. */
    copy_text(t->detail,
              r->parts_count > RECORD_PARTS_FEW ? RECORD_DETAIL_BYTES_SHORT : sizeof t->detail,
              detail);
}

static void back_to_queue(struct record *r, struct record_part *part, uint64_t now_unix_ms) {
    part->state = JOB_QUEUED;
    part->epoch = ++r->epoch;
    part->deliveries = 0;
    settle(r, now_unix_ms);
}

enum record_answer record_place(struct record *r, uint32_t idx, const struct lane_ref *lane,
                                uint64_t now_unix_ms) {
    if (!job_state_is_open(r->state) || idx >= r->parts_count ||
        r->parts[idx].state != JOB_QUEUED) {
        return RECORD_STALE;
    }
    struct record_part *part = &r->parts[idx];
    part->state = JOB_PLACED;
    part->epoch = ++r->epoch;
    part->lane = *lane;
    part->deliveries = 0;
    part->placed_unix_ms = now_unix_ms;
    settle(r, now_unix_ms);
    return RECORD_MOVED;
}

enum record_answer record_start(struct record *r, uint32_t idx, uint64_t epoch,
                                uint64_t now_unix_ms) {
    if (!may_act(r, idx, epoch)) {
        return RECORD_STALE;
    }
    struct record_part *part = &r->parts[idx];
    if (part->state == JOB_RUNNING) {
        note_try(r, part, E_DEVICE_LOST, false, "the worker died while proving", now_unix_ms);
    } else if (part->state != JOB_PLACED) {
        return RECORD_STALE;
    }
    part->state = JOB_RUNNING;
    part->deliveries++;
    settle(r, now_unix_ms);
    return RECORD_MOVED;
}

static bool is_in_hand(const struct record_part *part) {
    return part->state == JOB_PLACED || part->state == JOB_RUNNING;
}

enum record_answer record_give_back(struct record *r, uint32_t idx, uint64_t epoch, enum err code,
                                    const char *detail, uint64_t now_unix_ms) {
    if (!may_act(r, idx, epoch) || !is_in_hand(&r->parts[idx])) {
        return RECORD_STALE;
    }
    note_try(r, &r->parts[idx], code, err_class(code) != CLASS_BUSY, detail, now_unix_ms);
    back_to_queue(r, &r->parts[idx], now_unix_ms);
    return RECORD_MOVED;
}

enum record_answer record_take_back(struct record *r, uint32_t idx, uint64_t epoch, bool died,
                                    const char *why, uint64_t now_unix_ms) {
    if (!may_act(r, idx, epoch) || !is_in_hand(&r->parts[idx])) {
        return RECORD_STALE;
    }
    struct record_part *part = &r->parts[idx];
    copy_text(r->reason, sizeof r->reason, why);
    if (died && part->state == JOB_RUNNING) {
        note_try(r, part, E_DEVICE_LOST, false, why, now_unix_ms);
    }
    back_to_queue(r, part, now_unix_ms);
    return RECORD_MOVED;
}

enum record_answer record_part_done(struct record *r, uint32_t idx, uint64_t now_unix_ms) {
    if (!job_state_is_open(r->state) || idx >= r->parts_count) {
        return RECORD_STALE;
    }
    if (r->parts[idx].state == JOB_DONE) {
        return RECORD_AGAIN;
    }
    r->parts[idx].state = JOB_DONE;
    settle(r, now_unix_ms);
    return RECORD_MOVED;
}

enum record_answer record_end(struct record *r, enum job_state state, const char *reason,
                              uint64_t now_unix_ms) {
    ASSERT(!job_state_is_open(state));
    if (!job_state_is_open(r->state)) {
        return r->state == state ? RECORD_AGAIN : RECORD_STALE;
    }
    r->state = state;
    r->updated_unix_ms = now_unix_ms;
    keep_references(r);
    copy_text(r->reason, sizeof r->reason, reason);
    return RECORD_MOVED;
}

enum err record_reopen(struct record *r, struct bytes job, const struct sha256 *fingerprint,
                       uint64_t generation, uint32_t parts_count, uint64_t now_unix_ms) {
    REQUIRE(job_state_may_reopen(r->state), E_RANGE,
            "the job is %s; only a cancelled, expired or dead one can be sent again",
            job_state_name(r->state));
    REQUIRE(generation == r->generation + 1, E_RANGE,
            "generation is %llu, the job's next one is %llu", (unsigned long long)generation,
            (unsigned long long)r->generation + 1);
    struct record fresh;
    TRY(record_init(&fresh, job, fingerprint, generation, parts_count, now_unix_ms));
    record_done(r);
    *r = fresh;
    return OK;
}

/* --- Questions --- */

struct record_counts record_part_counts(const struct record_part *part) {
    struct record_counts counts = {0};
    for (uint32_t i = 0; i < part->tries_count; i++) {
        const struct record_try *t = &part->tries[i];
        counts.attempts += t->counted;
        counts.deaths += !t->counted && t->code == E_DEVICE_LOST;
        counts.refusals += !t->counted && err_class(t->code) == CLASS_BUSY;
    }
    return counts;
}

bool record_is_used_up(uint32_t *idx, const struct record *r, const struct record_limits *limits) {
    for (uint32_t i = 0; i < r->parts_count; i++) {
        struct record_counts counts = record_part_counts(&r->parts[i]);
        if (r->parts[i].state != JOB_DONE &&
            (counts.attempts >= limits->attempts_max || counts.deaths >= limits->deaths_max ||
             counts.refusals >= limits->refusals_max)) {
            if (idx) {
                *idx = i;
            }
            return true;
        }
    }
    return false;
}

bool record_all_parts_done(const struct record *r) {
    for (uint32_t i = 0; i < r->parts_count; i++) {
        if (r->parts[i].state != JOB_DONE) {
            return false;
        }
    }
    return true;
}

bool lane_ref_is(const struct lane_ref *lane, struct lane_name name) {
    return lane->gpu == name.gpu && !strcmp(lane->node, name.node);
}

/* --- Bytes --- */

struct pack_room { /* the messages of one record, in three blocks */
    Bellows__V1__PartitionState *states, **state_ptrs;
    Bellows__V1__Attempt *attempts, **attempt_ptrs;
};

static void pack_room_done(struct pack_room *room) {
    mem_free(room->states);
    mem_free(room->state_ptrs);
    mem_free(room->attempts);
    mem_free(room->attempt_ptrs);
}

static void pack_try(Bellows__V1__Attempt *out, const struct record_try *t) {
    bellows__v1__attempt__init(out);
    out->epoch = t->epoch;
    out->node = (char *)(uintptr_t)t->lane.node;
    out->gpu = t->lane.gpu;
    out->ended_unix_ms = t->ended_unix_ms;
    out->error_name = (char *)(uintptr_t)err_name(t->code);
    out->error_detail = (char *)(uintptr_t)t->detail;
    out->counted = t->counted;
}

static void pack_part(Bellows__V1__PartitionState *out, uint32_t idx,
                      const struct record_part *part) {
    bellows__v1__partition_state__init(out);
    out->index = idx;
    out->state = (Bellows__V1__JobState)part->state;
    out->node = (char *)(uintptr_t)part->lane.node;
    out->gpu = part->lane.gpu;
    out->deliveries = part->deliveries;
    out->placed_unix_ms = part->placed_unix_ms;
    out->epoch = part->epoch;
}

enum err record_pack(struct bytes_mut *out, const struct record *r) {
    size_t tries_count = 0;
    for (uint32_t i = 0; i < r->parts_count; i++) {
        tries_count += r->parts[i].tries_count;
    }
    AUTO(pack_room_done) struct pack_room room = {0};
    TRY(mem_new(&room.states, r->parts_count, sizeof *room.states));
    TRY(mem_new(&room.state_ptrs, r->parts_count, sizeof *room.state_ptrs));
    TRY(mem_new(&room.attempts, tries_count + 1, sizeof *room.attempts));
    TRY(mem_new(&room.attempt_ptrs, tries_count + 1, sizeof *room.attempt_ptrs));
    size_t at = 0;
    for (uint32_t i = 0; i < r->parts_count; i++) {
        const struct record_part *part = &r->parts[i];
        pack_part(&room.states[i], i, part);
        room.state_ptrs[i] = &room.states[i];
        room.states[i].attempts = &room.attempt_ptrs[at];
        room.states[i].n_attempts = part->tries_count;
        for (uint32_t k = 0; k < part->tries_count; k++, at++) {
            pack_try(&room.attempts[at], &part->tries[k]);
            room.attempt_ptrs[at] = &room.attempts[at];
        }
    }
    Bellows__V1__JobRecord message = BELLOWS__V1__JOB_RECORD__INIT;
    message.version = WIRE_VERSION;
    message.state = (Bellows__V1__JobState)r->state;
    message.generation = r->generation;
    message.epoch = r->epoch;
    message.job = (ProtobufCBinaryData){r->job.len, r->job.ptr};
    message.job_sha256 =
        (ProtobufCBinaryData){SHA256_BYTES, (uint8_t *)(uintptr_t)r->fingerprint.b};
    message.n_partitions = r->parts_count;
    message.partitions = room.state_ptrs;
    message.queued_unix_ms = r->queued_unix_ms;
    message.updated_unix_ms = r->updated_unix_ms;
    message.reason = (char *)(uintptr_t)r->reason;
    return message_pack(out, &message, RECORD_BYTES_MAX, "job record");
}

static enum err unpack_state(enum job_state *out, int number, const char *what) {
    REQUIRE(number >= JOB_QUEUED && number < JOB_STATES_COUNT, E_FORMAT,
            "job record: %s has state %d, known are %d to %d", what, number, JOB_QUEUED,
            JOB_STATES_COUNT - 1);
    *out = (enum job_state)number;
    return OK;
}

static enum err unpack_lane(struct lane_ref *out, const char *node, uint32_t gpu) {
    if (*node) {
        TRY(id_check(node, "node of a job record"));
    }
    copy_text(out->node, sizeof out->node, node);
    out->gpu = gpu;
    return OK;
}

static enum err unpack_part(struct record_part *out, uint32_t idx,
                            const Bellows__V1__PartitionState *in) {
    REQUIRE(in->index == idx, E_FORMAT, "job record: partition %u stands at place %u", in->index,
            idx);
    TRY(unpack_state(&out->state, (int)in->state, "a partition"));
    REQUIRE(out->state <= JOB_DONE, E_FORMAT, "job record: partition %u is %s", idx,
            job_state_name(out->state));
    TRY(unpack_lane(&out->lane, in->node, in->gpu));
    out->epoch = in->epoch;
    out->deliveries = in->deliveries;
    out->placed_unix_ms = in->placed_unix_ms;
    REQUIRE(in->n_attempts <= RECORD_TRIES_KEPT, E_FORMAT,
            "job record: partition %u has %zu attempts, allowed are %d", idx, in->n_attempts,
            RECORD_TRIES_KEPT);
    if (in->n_attempts) {
        TRY(mem_new(&out->tries, in->n_attempts, sizeof *out->tries));
    }
    for (size_t i = 0; i < in->n_attempts; i++) {
        const Bellows__V1__Attempt *a = in->attempts[i];
        struct record_try *t = &out->tries[i];
        *t = (struct record_try){.epoch = a->epoch,
                                 .ended_unix_ms = a->ended_unix_ms,
                                 .code = E_INTERNAL,
                                 .counted = a->counted};
        (void)err_from_name(&t->code, a->error_name); /* a newer node's code reads as internal */
        TRY(unpack_lane(&t->lane, a->node, a->gpu));
        copy_text(t->detail, sizeof t->detail, a->error_detail);
    }
    out->tries_count = (uint32_t)in->n_attempts;
    return OK;
}

enum err record_unpack(struct record *out, struct bytes data) {
    AUTO(message_free) Bellows__V1__JobRecord *message = NULL;
    TRY(message_unpack(&message, &bellows__v1__job_record__descriptor, data, RECORD_BYTES_MAX,
                       "job record"));
    REQUIRE(message->job_sha256.len == SHA256_BYTES, E_FORMAT,
            "job record: job_sha256 has %zu bytes, not %d", message->job_sha256.len, SHA256_BYTES);
    struct sha256 fingerprint;
    memcpy(fingerprint.b, message->job_sha256.data, SHA256_BYTES);
    REQUIRE(message->n_partitions <= JOB_PARTITIONS_MAX, E_FORMAT,
            "job record: %zu partitions, allowed are 1 to %d", message->n_partitions,
            JOB_PARTITIONS_MAX);
    AUTO(record_done) struct record r = {0};
    TRY(record_init(&r, bytes_of(message->job.data, message->job.len), &fingerprint,
                    message->generation, (uint32_t)message->n_partitions, message->queued_unix_ms));
    TRY(unpack_state(&r.state, (int)message->state, "the job"));
    r.epoch = message->epoch;
    r.updated_unix_ms = message->updated_unix_ms;
    copy_text(r.reason, sizeof r.reason, message->reason);
    for (uint32_t i = 0; i < r.parts_count; i++) {
        TRY(unpack_part(&r.parts[i], i, message->partitions[i]));
        REQUIRE(r.parts[i].epoch <= r.epoch, E_FORMAT,
                "job record: partition %u has epoch %llu, the job only %llu", i,
                (unsigned long long)r.parts[i].epoch, (unsigned long long)r.epoch);
    }
    *out = r;
    r = (struct record){0};
    return OK;
}
