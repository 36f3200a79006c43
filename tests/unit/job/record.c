/* The record over every sequence of events: a model in a few lines says what must hold after each. */
#include "node/job/record.h"

#include <string.h>

#include "node/base/mem.h"
#include "proto/body.h"
#include "proto/job.h"
#include "tests/check/check.h"

static const struct sha256 fingerprint = {{1, 2, 3}};
static const struct lane_ref lane_a = {"a", 0}, lane_b = {"b", 1};

static struct record fresh(uint32_t parts_count) {
    struct record r;
    CHECK_OK(record_init(&r, bytes_of("job", 3), &fingerprint, 1, parts_count, 1000));
    return r;
}

static void claim_one_life(void) {
    AUTO(record_done) struct record r = fresh(1);
    CHECK_EQ(JOB_QUEUED, r.state);
    CHECK_EQ(RECORD_MOVED, record_place(&r, 0, &lane_a, 1001));
    CHECK_EQ(JOB_PLACED, r.state);
    uint64_t epoch = r.parts[0].epoch;
    CHECK_EQ(RECORD_STALE, record_place(&r, 0, &lane_b, 1002));
    CHECK_EQ(RECORD_MOVED, record_start(&r, 0, epoch, 1003));
    CHECK_EQ(JOB_RUNNING, r.state);
    CHECK_EQ(RECORD_MOVED, record_part_done(&r, 0, 1004));
    CHECK_EQ(RECORD_AGAIN, record_part_done(&r, 0, 1004));
    CHECK(record_all_parts_done(&r));
    CHECK_EQ(RECORD_MOVED, record_end(&r, JOB_DONE, "", 1005));
    CHECK_EQ(RECORD_AGAIN, record_end(&r, JOB_DONE, "", 1006));
    CHECK_EQ(RECORD_STALE, record_end(&r, JOB_CANCELLED, "late", 1007));
    CHECK_EQ(JOB_DONE, r.state);
    CHECK_EQ(1005, r.updated_unix_ms);
}

static void claim_stale_epoch_is_refused(void) {
    AUTO(record_done) struct record r = fresh(1);
    record_place(&r, 0, &lane_a, 1);
    uint64_t old = r.parts[0].epoch;
    CHECK_EQ(RECORD_MOVED, record_take_back(&r, 0, old, true, "lane a.0 is silent", 2));
    CHECK_EQ(0, r.parts[0].tries_count); /* it had not started: nobody's fault */
    CHECK_EQ(RECORD_STALE, record_start(&r, 0, old, 3));
    record_place(&r, 0, &lane_b, 4);
    CHECK_EQ(RECORD_STALE, record_start(&r, 0, old, 5));
    CHECK_EQ(RECORD_STALE, record_give_back(&r, 0, old, E_DEVICE, "late", 6));
    CHECK_EQ(JOB_PLACED, r.state);
    CHECK_EQ(RECORD_MOVED, record_part_done(&r, 0, 7)); /* but its stored result is final */
}

static void claim_counts(void) {
    static const struct {
        enum err code;
        struct record_counts counts;
    } cases[] = {{E_DEVICE, {1, 0, 0}}, {E_IO, {1, 0, 0}},      {E_SELFCHECK, {1, 0, 0}},
                 {E_LIMIT, {0, 0, 1}},  {E_QUEUE, {0, 0, 1}},   {E_DEVICE_LOST, {1, 0, 0}},
                 {E_NET, {1, 0, 0}},    {E_INTERNAL, {1, 0, 0}}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(record_done) struct record r = fresh(1);
        record_place(&r, 0, &lane_a, 1);
        CHECK_EQ(RECORD_MOVED, record_give_back(&r, 0, r.parts[0].epoch, cases[i].code, "why", 2));
        struct record_counts got = record_part_counts(&r.parts[0]);
        CHECK_MEM(&cases[i].counts, &got, sizeof got);
        CHECK_HAS(r.reason, err_name(cases[i].code));
    }
}

/* Runs one way of failing until the record is used up; returns how many it took. */
static int tries_until_used_up(enum err code, bool dies) {
    AUTO(record_done) struct record r = fresh(2);
    for (int n = 1; n < 100; n++) {
        record_place(&r, 1, &lane_a, 1);
        uint64_t epoch = r.parts[1].epoch;
        record_start(&r, 1, epoch, 2);
        if (dies) {
            record_take_back(&r, 1, epoch, true, "died", 3);
        } else {
            record_give_back(&r, 1, epoch, code, "why", 3);
        }
        uint32_t idx = 99;
        if (record_is_used_up(&idx, &r, &record_limits_default)) {
            CHECK_EQ(1, idx);
            return n;
        }
    }
    return 100;
}

static void claim_limits(void) {
    CHECK_EQ(RECORD_ATTEMPTS_MAX, tries_until_used_up(E_DEVICE, false));
    CHECK_EQ(RECORD_REFUSALS_MAX, tries_until_used_up(E_LIMIT, false));
    CHECK_EQ(RECORD_DEATHS_MAX, tries_until_used_up(OK, true));
}

static void claim_redelivery_is_a_death(void) {
    AUTO(record_done) struct record r = fresh(1);
    record_place(&r, 0, &lane_a, 1);
    uint64_t epoch = r.parts[0].epoch;
    record_start(&r, 0, epoch, 2);
    CHECK_EQ(RECORD_MOVED, record_start(&r, 0, epoch, 3));
    CHECK_EQ(1, record_part_counts(&r.parts[0]).deaths);
    CHECK_EQ(2, r.parts[0].deliveries);
}

static void claim_reopen(void) {
    static const struct {
        enum job_state state;
        bool may;
    } cases[] = {{JOB_DONE, false},
                 {JOB_FAILED, false},
                 {JOB_CANCELLED, true},
                 {JOB_EXPIRED, true},
                 {JOB_DEAD, true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(record_done) struct record r = fresh(1);
        record_place(&r, 0, &lane_a, 1);
        CHECK_ERR(E_RANGE, record_reopen(&r, bytes_of("new", 3), &fingerprint, 2, 3, 5));
        record_end(&r, cases[i].state, "", 2);
        CHECK_ERR(E_RANGE, record_reopen(&r, bytes_of("new", 3), &fingerprint, 1, 3, 5));
        CHECK_ERR(E_RANGE, record_reopen(&r, bytes_of("new", 3), &fingerprint, 3, 3, 5));
        CHECK_ERR(cases[i].may ? OK : E_RANGE,
                  record_reopen(&r, bytes_of("new", 3), &fingerprint, 2, 3, 5));
        if (cases[i].may) {
            CHECK_EQ(JOB_QUEUED, r.state);
            CHECK_EQ(2, r.generation);
            CHECK_EQ(3, r.parts_count);
            CHECK_MEM("new", r.job.ptr, 3);
        }
    }
}

/* --- All sequences --- */

enum event {
    EV_PLACE_A,
    EV_PLACE_B,
    EV_START,
    EV_START_STALE,
    EV_GIVE_BACK,
    EV_DIED,
    EV_DRAINED,
    EV_DONE,
    EV_CANCEL,
    EV_FINISH, /* DONE, when all parts are */
    EVENTS_COUNT
};
enum { PARTS = 2, DEPTH = 5 };

struct model { /* what a part may look like, kept beside the record */
    bool ended;
    enum job_state end;
    uint64_t epoch_seen;
};

static enum record_answer apply(struct record *r, enum event event, uint32_t idx) {
    uint64_t epoch = r->parts[idx].epoch;
    switch (event) {
    case EV_PLACE_A:
        return record_place(r, idx, &lane_a, 1);
    case EV_PLACE_B:
        return record_place(r, idx, &lane_b, 1);
    case EV_START:
        return record_start(r, idx, epoch, 1);
    case EV_START_STALE:
        return record_start(r, idx, epoch - 1, 1);
    case EV_GIVE_BACK:
        return record_give_back(r, idx, epoch, E_DEVICE, "x", 1);
    case EV_DIED:
        return record_take_back(r, idx, epoch, true, "x", 1);
    case EV_DRAINED:
        return record_take_back(r, idx, epoch, false, "x", 1);
    case EV_DONE:
        return record_part_done(r, idx, 1);
    case EV_CANCEL:
        return record_end(r, JOB_CANCELLED, "x", 1);
    default:
        return record_all_parts_done(r) ? record_end(r, JOB_DONE, "", 1) : RECORD_STALE;
    }
}

static void check_same_part(const struct record_part *a, const struct record_part *b) {
    CHECK_EQ(a->state, b->state);
    CHECK_EQ(a->epoch, b->epoch);
    CHECK_STR(a->lane.node, b->lane.node);
    CHECK_EQ(a->lane.gpu, b->lane.gpu);
    CHECK_EQ(a->deliveries, b->deliveries);
    CHECK_EQ(a->placed_unix_ms, b->placed_unix_ms);
    CHECK_EQ(a->tries_count, b->tries_count);
    for (uint32_t i = 0; i < a->tries_count; i++) {
        CHECK_EQ(a->tries[i].epoch, b->tries[i].epoch);
        CHECK_EQ(a->tries[i].ended_unix_ms, b->tries[i].ended_unix_ms);
        CHECK_STR(a->tries[i].lane.node, b->tries[i].lane.node);
        CHECK_EQ(a->tries[i].code, b->tries[i].code);
        CHECK_EQ(a->tries[i].counted, b->tries[i].counted);
        CHECK_STR(a->tries[i].detail, b->tries[i].detail);
    }
}

static void check_after(const struct record *before, const struct record_part *before_part,
                        const struct record *r, enum event event, uint32_t idx,
                        enum record_answer answer, struct model *m) {
    const struct record_part *part = &r->parts[idx];
    if (m->ended) { /* an end is an end */
        CHECK(answer != RECORD_MOVED);
        CHECK_EQ(m->end, r->state);
        return;
    }
    CHECK(r->epoch >= m->epoch_seen); /* epochs never fall */
    m->epoch_seen = r->epoch;
    if (answer != RECORD_MOVED) { /* refused means untouched */
        CHECK_EQ(before->state, r->state);
        CHECK_EQ(before->epoch, r->epoch);
        check_same_part(before_part, part);
        return;
    }
    CHECK(event != EV_START_STALE); /* nobody acts under an old epoch */
    if (before_part->state == JOB_DONE) {
        CHECK(event == EV_CANCEL || event == EV_FINISH); /* a stored part never moves */
    }
    if (event == EV_CANCEL || event == EV_FINISH) {
        m->ended = true;
        m->end = event == EV_CANCEL ? JOB_CANCELLED : JOB_DONE;
        CHECK_EQ(m->end, r->state);
        return;
    }
    if (event == EV_GIVE_BACK || event == EV_DIED || event == EV_DRAINED) {
        CHECK_EQ(JOB_QUEUED, part->state);
        CHECK(part->epoch > before_part->epoch);
        bool blamed =
            event == EV_GIVE_BACK || (event == EV_DIED && before_part->state == JOB_RUNNING);
        CHECK_EQ(before_part->tries_count + blamed, part->tries_count);
    }
    enum job_state want = JOB_QUEUED;
    for (uint32_t i = 0; i < r->parts_count; i++) {
        if (r->parts[i].state >= JOB_RUNNING) {
            want = JOB_RUNNING;
        } else if (r->parts[i].state == JOB_PLACED && want != JOB_RUNNING) {
            want = JOB_PLACED;
        }
    }
    CHECK_EQ(want, r->state);
}

static struct record copy_of(const struct record *r) {
    struct record copy = *r;
    copy.job = (struct bytes_mut){0}; /* an ended record drops it */
    copy.parts = NULL;
    CHECK_OK(mem_new(&copy.parts, r->parts_count, sizeof *copy.parts));
    for (uint32_t i = 0; i < r->parts_count; i++) {
        struct record_part *part = &copy.parts[i];
        *part = r->parts[i];
        part->tries = NULL;
        if (part->tries_count) {
            CHECK_OK(mem_new(&part->tries, part->tries_count, sizeof *part->tries));
            memcpy(part->tries, r->parts[i].tries, part->tries_count * sizeof *part->tries);
        }
    }
    return copy;
}

static size_t sequences_seen;

static void walk(const struct record *r, const struct model *m, int depth) {
    if (depth == DEPTH) {
        sequences_seen++;
        return;
    }
    for (int event = 0; event < EVENTS_COUNT; event++) {
        for (uint32_t idx = 0; idx < PARTS; idx++) {
            AUTO(record_done) struct record next = copy_of(r);
            struct model next_m = *m;
            enum record_answer answer = apply(&next, (enum event)event, idx);
            check_after(r, &r->parts[idx], &next, (enum event)event, idx, answer, &next_m);
            if (answer != RECORD_STALE ||
                depth == DEPTH - 1) { /* refused: same state, no need to go on */
                walk(&next, &next_m, depth + 1);
            }
        }
    }
}

static void claim_all_sequences(void) {
    AUTO(record_done) struct record r = fresh(PARTS);
    struct model m = {0};
    sequences_seen = 0;
    walk(&r, &m, 0);
    CHECK(sequences_seen > 10000);
}

/* --- Bytes --- */

static void claim_round_trip(void) {
    AUTO(record_done) struct record r = fresh(3);
    record_place(&r, 0, &lane_a, 5);
    record_start(&r, 0, r.parts[0].epoch, 6);
    record_give_back(&r, 0, r.parts[0].epoch, E_DEVICE, "the card fell out", 7);
    record_place(&r, 0, &lane_b, 8);
    record_part_done(&r, 2, 9);
    struct bytes_mut packed;
    CHECK_OK(record_pack(&packed, &r));
    AUTO(record_done) struct record back;
    CHECK_OK(record_unpack(&back, bytes_of(packed.ptr, packed.len)));
    mem_free(packed.ptr);
    CHECK_EQ(r.state, back.state);
    CHECK_EQ(r.epoch, back.epoch);
    CHECK_EQ(r.generation, back.generation);
    CHECK_EQ(r.queued_unix_ms, back.queued_unix_ms);
    CHECK_EQ(r.updated_unix_ms, back.updated_unix_ms);
    CHECK_STR(r.reason, back.reason);
    CHECK_MEM(r.fingerprint.b, back.fingerprint.b, SHA256_BYTES);
    CHECK_EQ(3, back.parts_count);
    CHECK_EQ(1, back.parts[0].tries_count);
    for (uint32_t i = 0; i < 3; i++) {
        check_same_part(&r.parts[i], &back.parts[i]);
    }
    CHECK_EQ(3, back.job.len);
}

static Bellows__V1__Body *small_body(struct bytes_mut *frames, bool as_object) {
    static const uint8_t one[32] = {1};
    struct frame_layout layout;
    struct body_summary summary;
    Bellows__V1__Body *body = NULL;
    struct bytes data = bytes_of(one, sizeof one);
    struct body_place place = {.bucket = "bellows-in-t", .name = "b", .nuid = "n1"};
    CHECK_OK(
        body_layout_of(&layout, &(struct frame_section){SECTION_WITNESS_RAW, 1, sizeof one}, 1));
    CHECK_OK(body_write_inline(&summary, frames, &layout, &data, JOB_INLINE_BYTES_MAX));
    if (!as_object) {
        place = (struct body_place){.inline_frames = bytes_of(frames->ptr, frames->len)};
    }
    CHECK_OK(body_describe(&body, &summary, place));
    return body;
}

static void claim_references_stay(void) {
    uint8_t digest[SHA256_BYTES] = {7};
    struct bytes_mut frames[2] = {{0}}, packed;
    Bellows__V1__Partition parts[2], *ptrs[2];
    job_message m = BELLOWS__V1__JOB__INIT;
    for (int i = 0; i < 2; i++) {
        bellows__v1__partition__init(&parts[i]);
        parts[i].body = small_body(&frames[i], i == 1);
        ptrs[i] = &parts[i];
    }
    m.version = WIRE_VERSION;
    m.job_id = (char *)(uintptr_t) "j";
    m.tenant = (char *)(uintptr_t) "t";
    m.key_digest = (ProtobufCBinaryData){sizeof digest, digest};
    m.curve = BELLOWS__V1__CURVE__BN254;
    m.label = (char *)(uintptr_t) "for people";
    m.generation = 1;
    m.n_partitions = 2;
    m.partitions = ptrs;
    CHECK_OK(job_pack(&packed, &m));
    AUTO(record_done) struct record r;
    AUTO(message_free) job_message *left = NULL;
    CHECK_OK(record_init(&r, bytes_of(packed.ptr, packed.len), &fingerprint, 1, 2, 1000));
    CHECK(memmem(r.job.ptr, r.job.len, frames[0].ptr, frames[0].len));
    CHECK_EQ(RECORD_MOVED, record_end(&r, JOB_CANCELLED, "enough", 1001));
    CHECK_OK(job_unpack(&left, bytes_of(r.job.ptr, r.job.len), NULL, UINT64_MAX));
    CHECK_EQ(1, left->n_partitions);
    CHECK_STR("n1", left->partitions[0]->body->object->nuid);
    CHECK(!memmem(r.job.ptr, r.job.len, frames[0].ptr, frames[0].len));
    mem_free(packed.ptr);
    for (int i = 0; i < 2; i++) {
        mem_free(parts[i].body);
        mem_free(frames[i].ptr);
    }
}

/* The most that may ever be in one record still fits its limit. */
static void claim_largest_record_fits(void) {
    AUTO(record_done) struct record r;
    uint8_t *job = mem_zero_alloc(JOB_BYTES_MAX, 1);
    char detail[400];
    memset(detail, 'd', sizeof detail - 1);
    detail[sizeof detail - 1] = 0;
    struct lane_ref lane = {"", UINT32_MAX};
    memset(lane.node, 'n', ID_BYTES_MAX);
    CHECK_OK(record_init(&r, bytes_of(job, JOB_BYTES_MAX), &fingerprint, UINT64_MAX / 2,
                         JOB_PARTITIONS_MAX, UINT64_MAX / 2));
    mem_free(job);
    r.epoch = UINT64_MAX / 2;
    for (uint32_t i = 0; i < r.parts_count; i++) {
        for (uint32_t n = 0; n < RECORD_TRIES_KEPT - 3; n++) {
            record_place(&r, i, &lane, UINT64_MAX / 2);
            record_give_back(&r, i, r.parts[i].epoch, E_DEVICE_LOST, detail, UINT64_MAX / 2);
        }
    }
    struct bytes_mut packed;
    CHECK_OK(record_pack(&packed, &r));
    AUTO(record_done) struct record back;
    CHECK_OK(record_unpack(&back, bytes_of(packed.ptr, packed.len)));
    mem_free(packed.ptr);
}

static void claim_damaged_bytes(void) {
    AUTO(record_done) struct record r = fresh(2);
    record_place(&r, 1, &lane_a, 5);
    record_give_back(&r, 1, r.parts[1].epoch, E_NET, "gone", 7);
    struct bytes_mut packed;
    CHECK_OK(record_pack(&packed, &r));
    long live = mem_live_blocks();
    for (size_t len = 0; len < packed.len; len++) { /* cut anywhere */
        struct record back = {0};
        if (record_unpack(&back, bytes_of(packed.ptr, len)) == OK) {
            record_done(&back);
        }
        CHECK_EQ(live, mem_live_blocks());
    }
    struct rng *rng = check_rng();
    for (int round = 0; round < 5000; round++) { /* bits flipped anywhere */
        size_t at = rng_below(rng, packed.len);
        uint8_t was = packed.ptr[at];
        packed.ptr[at] ^= (uint8_t)(1u << rng_below(rng, 8));
        struct record back = {0};
        if (record_unpack(&back, bytes_of(packed.ptr, packed.len)) == OK) {
            CHECK(back.parts_count >= 1 && back.state >= JOB_QUEUED && back.state <= JOB_DEAD);
            record_done(&back);
        }
        packed.ptr[at] = was;
        CHECK_EQ(live, mem_live_blocks());
    }
    mem_free(packed.ptr);
}

static void claim_no_memory(void) {
    AUTO(record_done) struct record r = fresh(2);
    struct bytes_mut packed;
    CHECK_OK(record_pack(&packed, &r));
    long live = mem_live_blocks();
    int failures = 0;
    for (long n = 0; n < 100; n++) {
        struct record back = {0};
        mem_fail_after(n);
        enum err err = record_unpack(&back, bytes_of(packed.ptr, packed.len));
        mem_fail_after(-1);
        if (err == OK) {
            record_done(&back);
            break;
        }
        CHECK_EQ(E_LIMIT, err);
        CHECK_EQ(live, mem_live_blocks());
        failures++;
    }
    CHECK(failures >= 3);
    mem_free(packed.ptr);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a job goes queued, placed, running, done, and stays done", claim_one_life},
        {"a stale epoch changes nothing, but a stored result is final",
         claim_stale_epoch_is_refused},
        {"a try counts by its error's class", claim_counts},
        {"each way of failing has its own limit", claim_limits},
        {"a second start under one epoch counts as the first one's death",
         claim_redelivery_is_a_death},
        {"only cancelled, expired and dead jobs reopen, under the next generation", claim_reopen},
        {"every sequence of events keeps the promises (two partitions)", claim_all_sequences},
        {"of an ended job's descriptor only the references to objects stay", claim_references_stay},
        {"a record survives packing", claim_round_trip},
        {"the largest record fits its limit", claim_largest_record_fits},
        {"damaged records are refused or harmless", claim_damaged_bytes},
        {"record_unpack survives lack of memory", claim_no_memory},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
