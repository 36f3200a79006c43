/* Jobs through coordinator and lanes in one program, in good and bad weather. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/numa.h"
#include "node/daemon/lane_threads.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"
#include "tests/unit/daemon/fleet.h"

#define SECOND UINT64_C(1000000000)
static const char MUL[] = "bn128/mul", CHAIN[] = "bls12381/chain200";

static void claim_one_job(void) {
    struct fleet *f = fleet_new(1);
    struct subscription *inbox = NULL;
    CHECK_OK(transport_subscribe(&inbox, f->user.link, "_INBOX.me", NULL));
    submit_job(&f->user,
               &(struct job_order){.case_name = MUL, .job_id = "j1", .reply_subject = "_INBOX.me"});
    AUTO(message_free) result_message *r = job_result(&f->user, "j1", 1);
    check_proved(r, MUL, 1);
    AUTO(message_free) result_message *hint = NULL;
    AUTO(message_done) struct message m = {0};
    CHECK_OK(subscription_next(&m, inbox, 5 * SECOND));
    CHECK_OK(result_unpack(&hint, m.data));
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_OK, hint->status);
    struct record_slot slot = job_record(&f->user, "j1", JOB_DONE);
    CHECK_EQ(0, slot.record.job.len); /* the inline witness does not outlive the job */
    CHECK_EQ(0, slot.record.parts[0].tries_count);
    record_slot_done(&slot);
    message_done(&m);
    subscription_close(&inbox);
    fleet_free(&f);
}

static void claim_both_curves_and_objects(void) {
    struct fleet *f = fleet_new(2);
    fleet_prove(f, "a", MUL);
    fleet_prove(f, "b", CHAIN);
    submit_job(&f->user,
               &(struct job_order){.case_name = CHAIN, .job_id = "c", .body_as_object = true});
    AUTO(message_free) result_message *r = job_result(&f->user, "c", 1);
    check_proved(r, CHAIN, 1);
    fleet_free(&f);
}

static void claim_partitions(void) {
    struct fleet *f = fleet_new(2);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "p", .parts_count = 7});
    AUTO(message_free) result_message *r = job_result(&f->user, "p", 1);
    check_proved(r, MUL, 7);
    submit_job(&f->user,
               &(struct job_order){
                   .case_name = CHAIN, .job_id = "q", .parts_count = 3, .body_as_object = true});
    AUTO(message_free) result_message *q = job_result(&f->user, "q", 1);
    check_proved(q, CHAIN, 3);
    fleet_free(&f);
}

static bool has_step(const result_message *r, const char *step) {
    bool has = false;
    for (size_t i = 0; i < r->partitions[0]->n_steps; i++) {
        has = has || !strcmp(step, r->partitions[0]->steps[i]->step);
    }
    return has;
}

/* A bit-heavy witness travels packed, inline or as an object; raw it gives the same public signals. */
static void claim_packed_bodies(void) {
    static const char *const cases[] = {"bn128/bits", "bls12381/bits"};
    struct fleet *f = fleet_new(1);
    for (int i = 0; i < 4; i++) {
        const char *name = cases[i / 2];
        char id[2][8];
        result_message *r[2];
        for (int raw = 0; raw < 2; raw++) {
            snprintf(id[raw], sizeof id[raw], "%s%d", raw ? "raw" : "packed", i);
            f->user.bodies_raw = raw;
            submit_job(
                &f->user,
                &(struct job_order){.case_name = name, .job_id = id[raw], .body_as_object = i % 2});
            r[raw] = job_result(&f->user, id[raw], 1);
            check_proved(r[raw], name, 1);
            CHECK_EQ(!raw, has_step(r[raw], "unpack"));
        }
        ProtobufCBinaryData packed = r[0]->partitions[0]->proof->publics,
                            raw = r[1]->partitions[0]->proof->publics;
        CHECK_EQ(raw.len, packed.len);
        CHECK_MEM(raw.data, packed.data, raw.len);
        message_free(&r[0]);
        message_free(&r[1]);
    }
    fleet_free(&f);
}

static bool bodies_are_gone(void *ctx) {
    struct fleet *f = ctx;
    struct subject bucket = bucket_in(&f->user.space, "acme");
    struct object_info info;
    bool found = true;
    return object_info(&info, &found, f->user.link, bucket.text, "c.0") == OK && !found;
}

static void claim_janitor(void) {
    struct fleet *f = fleet_new(1);
    submit_job(&f->user,
               &(struct job_order){.case_name = MUL, .job_id = "c", .body_as_object = true});
    AUTO(message_free) result_message *r = job_result(&f->user, "c", 1);
    check_proved(r, MUL, 1);
    wait_until(bodies_are_gone, f, "the body of the finished job is purged");
    fleet_free(&f);
}

static void claim_bad_jobs(void) {
    static const struct {
        struct job_order job;
        const char *code, *word;
    } cases[] = {
        {{.case_name = "bn128/mul", .job_id = "unsat", .witness = "bn128/bad/unsatisfied.wtns"},
         "E_UNSAT",
         "does not satisfy"},
        {{.case_name = "bn128/mul", .job_id = "other", .witness = "bn128/chain200/witness.wtns"},
         "E_RANGE",
         "wires"},
        {{.case_name = "bn128/mul", .job_id = "curve", .witness = "bls12381/mul/witness.wtns"},
         "E_CURVE",
         "curve"},
        {{.case_name = "bn128/dense", .job_id = "nokey", .key_unregistered = true},
         "E_RANGE",
         "bellows key push"},
        {{.case_name = "bn128/mul", .job_id = "points", .key = "bn128/bad/off-curve-a.zkey"},
         "E_CURVE",
         "curve"},
    };
    struct fleet *f = fleet_new(1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        submit_job(&f->user, &cases[i].job);
        AUTO(message_free) result_message *r = job_result(&f->user, cases[i].job.job_id, 1);
        check_failed(r, cases[i].code, cases[i].word);
        struct record_slot slot = job_record(&f->user, cases[i].job.job_id, JOB_FAILED);
        CHECK_EQ(0, slot.record.parts[0].tries_count); /* rejected once, never tried again */
        record_slot_done(&slot);
    }
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).strikes); /* none of it is the machine's fault */
    fleet_prove(f, "after", MUL);
    fleet_free(&f);
}

static void claim_one_bad_partition_fails_the_job(void) {
    struct fleet *f = fleet_new(2);
    submit_job(&f->user, &(struct job_order){.case_name = MUL,
                                             .job_id = "j",
                                             .parts_count = 4,
                                             .witness = "bn128/bad/unsatisfied.wtns"});
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    check_failed(r, "E_UNSAT", "does not satisfy");
    fleet_free(&f);
}

/* a, b and the assignment, inline and as an object, in both curves; a row that the assignment does not give is the job's fault alone. */
static void claim_evaluations(void) {
    static const char *const cases[] = {"bn128/base", "bls12381/bits"};
    struct fleet *f = fleet_new(1);
    for (unsigned i = 0; i < 2 * COUNT_OF(cases); i++) {
        char file[64], id[16];
        snprintf(file, sizeof file, "%s/witness.evaluations", cases[i / 2]);
        snprintf(id, sizeof id, "e%u", i);
        submit_job(&f->user, &(struct job_order){.case_name = cases[i / 2],
                                                 .witness = file,
                                                 .job_id = id,
                                                 .parts_count = 1 + i % 2,
                                                 .body_as_object = i % 2});
        AUTO(message_free) result_message *r = job_result(&f->user, id, 1);
        check_proved(r, cases[i / 2], 1 + i % 2);
    }
    submit_job(&f->user, &(struct job_order){.case_name = MUL,
                                             .job_id = "wrong",
                                             .witness = "bn128/bad/wrong-row.evaluations"});
    AUTO(message_free) result_message *wrong = job_result(&f->user, "wrong", 1);
    check_failed(wrong, "E_UNSAT", "witness with its a and b does not satisfy");
    submit_job(&f->user, &(struct job_order){.case_name = "bn128/chain200",
                                             .job_id = "other",
                                             .witness = "bn128/base/witness.evaluations"});
    AUTO(message_free) result_message *other = job_result(&f->user, "other", 1);
    check_failed(other, "E_RANGE", "");
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).strikes);
    fleet_free(&f);
}

/* The others are not proved any more, but for those that the device had begun. */
static void claim_siblings_end(void) {
    struct fleet *f = fleet_new(1);
    fleet_trouble(0, TROUBLE_SLOW, 100);
    submit_job(&f->user, &(struct job_order){.case_name = MUL,
                                             .job_id = "j",
                                             .parts_count = 40,
                                             .first_witness = "bn128/bad/unsatisfied.wtns"});
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    check_failed(r, "E_UNSAT", "does not satisfy");
    unsigned runs = fleet_device_runs(0);
    clock_sleep_ns(2 * SECOND);
    unsigned after = fleet_device_runs(0);
    CHECK_MSG(after <= runs + 2 && after < 40, "%u were proved before the result, %u after it",
              runs, after - runs); /* one on the device, one on its way there */
    fleet_free(&f);
}

static void claim_repeats(void) {
    struct fleet *f = fleet_new(1);
    struct subscription *inbox = NULL;
    fleet_prove(f, "j", MUL);
    unsigned runs = fleet_device_runs(0);
    AUTO(message_free) result_message *first = job_result(&f->user, "j", 1);
    CHECK_OK(transport_subscribe(&inbox, f->user.link, "_INBOX.me", NULL));
    submit_job(&f->user,
               &(struct job_order){.case_name = MUL, .job_id = "j", .reply_subject = "_INBOX.me"});
    AUTO(message_done) struct message m = {0};
    AUTO(message_free) result_message *again = NULL;
    CHECK_OK(subscription_next(&m, inbox, 5 * SECOND)); /* the same work: the first result */
    CHECK_OK(result_unpack(&again, m.data));
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_OK, again->status);
    CHECK_MEM(first->partitions[0]->proof->a.data, again->partitions[0]->proof->a.data,
              first->partitions[0]->proof->a.len);
    message_done(&m);
    message_free(&again);
    submit_job(&f->user, &(struct job_order){
                             .case_name = CHAIN, .job_id = "j", .reply_subject = "_INBOX.me"});
    CHECK_OK(
        subscription_next(&m, inbox, 5 * SECOND)); /* other work: refused, the first result stays */
    CHECK_OK(result_unpack(&again, m.data));
    check_failed(again, "E_RANGE", "taken by other work");
    AUTO(message_free) result_message *still = job_result(&f->user, "j", 1);
    CHECK_MEM(first->partitions[0]->proof->a.data, still->partitions[0]->proof->a.data,
              first->partitions[0]->proof->a.len);
    CHECK_EQ(runs, fleet_device_runs(0));
    message_done(&m);
    subscription_close(&inbox);
    fleet_free(&f);
}

static unsigned bodies_left(struct fleet *f) {
    unsigned count = 0;
    for (uint64_t sequence = 1;;) {
        AUTO(message_done) struct message m = {0};
        bool found = false;
        CHECK_OK(stream_get_next(&m, &found, f->user.link, "OBJ_bellows-in-acme", sequence,
                                 "$O.bellows-in-acme.C.>"));
        if (!found) {
            return count;
        }
        count++;
        sequence = m.sequence + 1;
    }
}

static bool one_body_left(void *f) {
    return bodies_left(f) == 1;
}

static bool no_body_left(void *f) {
    return bodies_left(f) == 0;
}

/* First while the job waits, then when it has ended: in the bucket stays what the job needs, and in the end nothing. */
static void claim_repeated_bodies(void) {
    struct fleet *f = fleet_new(0);
    static const char *const marks[] = {"0", "1", "2"};
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        submit_job(&f->user, &(struct job_order){.case_name = i < 2 ? MUL : CHAIN,
                                                 .job_id = "big",
                                                 .body_as_object = true,
                                                 .object_mark = marks[i]});
    }
    wait_until(one_body_left, f, "the bodies of the repeat and of other work are purged");
    fleet_start_lane(f, 0);
    AUTO(message_free) result_message *r = job_result(&f->user, "big", 1);
    check_proved(r, MUL, 1); /* its own body was left alone */
    submit_job(&f->user,
               &(struct job_order){
                   .case_name = MUL, .job_id = "big", .body_as_object = true, .object_mark = "3"});
    wait_until(no_body_left, f, "nothing is left");
    fleet_free(&f);
}

static bool all_known(void *ctx) {
    struct fleet *f = ctx;
    return coordinator_counts_of(f->coordinator).jobs_open == FLEET_TENANT_JOBS_MAX;
}

/* The one too many is told so, leaves nothing behind, and may come again. */
static void claim_tenant_quota(void) {
    struct fleet *f = fleet_new(0);
    struct subscription *replies = NULL;
    struct message m = {0};
    AUTO(message_free) result_message *refused = NULL;
    CHECK_OK(transport_subscribe(&replies, f->user.link, "_INBOX.me", NULL));
    for (int i = 0; i < FLEET_TENANT_JOBS_MAX; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "q%d", i);
        submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = job_id});
    }
    wait_until(all_known, f, "all jobs that the tenant may have are open");
    struct job_order more = {
        .case_name = MUL, .job_id = "more", .reply_subject = "_INBOX.me", .body_as_object = true};
    submit_job(&f->user, &more);
    CHECK_OK(subscription_next(&m, replies, 5 * SECOND));
    CHECK_OK(result_unpack(&refused, m.data));
    message_done(&m);
    check_failed(refused, "E_RANGE", "64 open jobs");
    wait_until(no_body_left, f, "its body is gone");
    CHECK_EQ(JOB_CANCELLED, cancel_job(&f->user, "q7"));
    fleet_start_lane(f, 0);
    more.object_mark = "again";
    submit_job(&f->user, &more);
    AUTO(message_free) result_message *r = job_result(&f->user, "more", 1);
    check_proved(r, MUL, 1);
    subscription_close(&replies);
    fleet_free(&f);
}

/* Nobody led when the job ended: the next leader finds its body. */
static void claim_body_of_the_leaderless(void) {
    struct fleet *f = fleet_new(1);
    fleet_prove(f, "first", MUL); /* so that the key is there */
    fleet_trouble(0, TROUBLE_HANG, 0);
    submit_job(&f->user,
               &(struct job_order){.case_name = MUL, .job_id = "alone", .body_as_object = true});
    struct record_slot slot = job_record(&f->user, "alone", JOB_RUNNING);
    record_slot_done(&slot);
    fleet_stop_coordinator(f);
    fleet_trouble(0, TROUBLE_NONE, 0);
    AUTO(message_free) result_message *r = job_result(&f->user, "alone", 1);
    check_proved(r, MUL, 1);
    slot = job_record(&f->user, "alone", JOB_DONE);
    record_slot_done(&slot);
    CHECK_EQ(1, bodies_left(f));
    fleet_start_coordinator(f);
    wait_until(no_body_left, f, "the next leader has purged the body");
    fleet_free(&f);
}

static void claim_device_errors_go_elsewhere(void) {
    struct fleet *f = fleet_new(2);
    fleet_trouble(0, TROUBLE_DEVICE, 1);
    fleet_trouble(1, TROUBLE_DEVICE, 1);
    fleet_prove(f, "j", MUL);
    struct record_slot slot = job_record(&f->user, "j", JOB_DONE);
    CHECK(slot.record.parts[0].tries_count >= 1);
    CHECK_EQ(E_DEVICE, slot.record.parts[0].tries[0].code);
    if (slot.record.parts[0].tries_count == 2) { /* the second try went to the other lane */
        CHECK(slot.record.parts[0].tries[0].lane.gpu != slot.record.parts[0].tries[1].lane.gpu);
    }
    record_slot_done(&slot);
    fleet_free(&f);
}

static void claim_poison(void) {
    struct fleet *f = fleet_new(3);
    struct subscription *dead = NULL;
    AUTO(message_done) struct message m = {0};
    for (unsigned i = 0; i < 3; i++) {
        fleet_trouble(i, TROUBLE_DEVICE, 2); /* less than fences it */
    }
    struct subject filter = filter_dead(&f->user.space);
    CHECK_OK(transport_subscribe(&dead, f->user.link, filter.text, NULL));
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j"});
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    check_failed(r, "E_DEVICE", "given up: partition 0 failed 4 times");
    struct record_slot slot = job_record(&f->user, "j", JOB_DEAD);
    CHECK_EQ(RECORD_ATTEMPTS_MAX, slot.record.parts[0].tries_count);
    record_slot_done(&slot);
    AUTO(message_free) Bellows__V1__DeadLetter *letter = NULL;
    CHECK_OK(subscription_next(&m, dead, 5 * SECOND));
    CHECK_OK(message_unpack(&letter, &bellows__v1__dead_letter__descriptor, m.data,
                            MESSAGE_BYTES_MAX, "letter"));
    CHECK_EQ(RECORD_ATTEMPTS_MAX, letter->record->partitions[0]->n_attempts); /* the evidence */
    for (unsigned i = 0; i < 3; i++) {
        fleet_trouble(i, TROUBLE_NONE, 0);
    }
    submit_job(&f->user, &(struct job_order){.case_name = MUL,
                                             .job_id = "j",
                                             .generation = 2}); /* may be sent again */
    AUTO(message_free) result_message *again = job_result(&f->user, "j", 2);
    check_proved(again, MUL, 1);
    message_done(&m);
    subscription_close(&dead);
    fleet_free(&f);
}

static bool lane_is_fenced(void *lane) {
    return lane_ended(lane) == LANE_FENCED;
}

static bool lane_is_lost(void *lane) {
    return lane_ended(lane) == LANE_DEVICE_LOST;
}

static void claim_fenced(void) {
    struct fleet *f = fleet_new(1);
    fleet_trouble(0, TROUBLE_DEVICE, 1000);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j"});
    wait_until(lane_is_fenced, f->lanes[0].lane, "the lane is fenced");
    CHECK_EQ(3, lane_counts_of(f->lanes[0].lane).strikes);
    fleet_start_lane(f, 1);
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    check_proved(r, MUL, 1);
    CHECK_EQ(4, r->partitions[0]->attempts);
    fleet_prove(f, "after", MUL);
    CHECK_EQ(3, fleet_device_runs(0));
    fleet_trouble(0, TROUBLE_NONE, 0);
    fleet_stop_lane(f, 0); /* another process on the same device */
    fleet_start_lane(f, 0);
    CHECK_EQ(LANE_FENCED, lane_ended(f->lanes[0].lane));
    CHECK_EQ(3, lane_counts_of(f->lanes[0].lane).strikes);
    CHECK_OK(lane_resume(f->lanes[0].lane));
    fleet_stop_lane(f, 0);
    fleet_start_lane(f, 0);
    CHECK_EQ(LANE_GOES_ON, lane_ended(f->lanes[0].lane));
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).strikes);
    fleet_free(&f);
}

static void claim_device_lost(void) {
    struct fleet *f = fleet_new(1);
    fleet_trouble(0, TROUBLE_DEVICE_LOST, 1);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j"});
    wait_until(lane_is_lost, f->lanes[0].lane, "the lane says that its device is lost");
    fleet_stop_lane(f, 0); /* as its process would end, and be started again */
    fleet_start_lane(f, 0);
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    check_proved(r, MUL, 1);
    struct record_slot slot = job_record(&f->user, "j", JOB_DONE);
    CHECK_EQ(1, record_part_counts(&slot.record.parts[0]).deaths);
    CHECK_EQ(0, record_part_counts(&slot.record.parts[0]).attempts);
    record_slot_done(&slot);
    fleet_free(&f);
}

static void claim_no_room(void) {
    struct fleet *f = fleet_new(2);
    fleet_trouble(0, TROUBLE_LIMIT, 0);
    for (int i = 0; i < 4; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        fleet_prove(f, job_id, MUL);
    }
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).strikes); /* busy is no fault */
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).done);
    fleet_free(&f);
}

static void claim_wrong_sum(void) {
    struct fleet *f = fleet_new(1);
    fleet_trouble(0, TROUBLE_WRONG_SUM, 1);
    fleet_prove(f, "j", MUL); /* the wrong proof did not leave; the second try was sound */
    struct record_slot slot = job_record(&f->user, "j", JOB_DONE);
    CHECK_EQ(1, slot.record.parts[0].tries_count);
    CHECK_EQ(E_DEVICE, slot.record.parts[0].tries[0].code);
    CHECK_EQ(1, lane_counts_of(f->lanes[0].lane).strikes);
    record_slot_done(&slot);
    fleet_free(&f);
}

/* A lane that vanishes: cut off from the broker as if its host had died. */
static void cut_lane(struct fleet *f, unsigned idx, bool cut) {
    loopback_partition(f->lanes[idx].links.control, cut);
    for (unsigned i = 0; i < f->lanes[idx].links.bulk.count; i++) {
        loopback_partition(f->lanes[idx].links.bulk.links[i], cut);
    }
    loopback_partition(f->lanes[idx].links.telemetry, cut);
}

static void claim_silent_lane(void) {
    struct fleet *f = fleet_new(1);
    fleet_trouble(0, TROUBLE_HANG, 0);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j"});
    struct record_slot slot = job_record(&f->user, "j", JOB_RUNNING);
    uint64_t epoch = slot.record.parts[0].epoch;
    record_slot_done(&slot);
    cut_lane(f, 0, true);
    fleet_start_lane(f, 1);
    uint64_t start_ns = clock_ns();
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    CHECK(clock_ns() - start_ns < 5 * SECOND); /* silence limit 1.5 s here */
    check_proved(r, MUL, 1);
    CHECK_EQ(1, r->partitions[0]->gpu);
    CHECK(r->partitions[0]->epoch > epoch);
    slot = job_record(&f->user, "j", JOB_DONE);
    CHECK_EQ(1, record_part_counts(&slot.record.parts[0]).deaths);
    CHECK_EQ(
        0,
        record_part_counts(&slot.record.parts[0]).attempts); /* a dead worker uses up no attempt */
    record_slot_done(&slot);
    fleet_trouble(0, TROUBLE_NONE,
                  0); /* it comes back, ends its proof, and loses the race for good */
    cut_lane(f, 0, false);
    clock_sleep_ns(SECOND);
    AUTO(message_free) result_message *still = job_result(&f->user, "j", 1);
    CHECK_EQ(1, still->partitions[0]->gpu);
    fleet_free(&f);
}

static bool lane_is_stalled(void *lane) {
    return lane_ended(lane) == LANE_STALLED;
}

static void submit_some(const struct fleet *f, int first, int end) {
    for (int i = first; i < end; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = job_id});
    }
}

/* On this lane; -1: any. */
static void expect_some(const struct fleet *f, int first, int end, int gpu) {
    for (int i = first; i < end; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        AUTO(message_free) result_message *r = job_result(&f->user, job_id, 1);
        check_proved(r, MUL, 1);
        CHECK(gpu < 0 || r->partitions[0]->gpu == (uint32_t)gpu);
    }
}

static void claim_stuck_device(void) {
    struct fleet *f = fleet_new_impatient(2, SECOND);
    fleet_trouble(0, TROUBLE_HANG, 0);
    fleet_trouble(1, TROUBLE_SLOW, 0);
    submit_some(f, 0, 4);
    wait_until(lane_is_stalled, f->lanes[0].lane, "the lane notices that its prover is stuck");
    expect_some(f, 0, 4, 1);
    fleet_free(&f);
}

static void claim_elapsed(void) {
    struct fleet *f = fleet_new(1);
    fleet_trouble(0, TROUBLE_SLOW, 0);
    fleet_prove(f, "j", MUL);
    struct record_slot slot = job_record(&f->user, "j", JOB_DONE);
    CHECK(slot.record.queued_unix_ms > 0);
    record_slot_done(&slot);
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    CHECK(r->elapsed_ns >= r->partitions[0]->total_ns); /* from intake on, so at least the lane's */
    CHECK(r->partitions[0]->total_ns >= SECOND / 10);
    CHECK(r->elapsed_ns < 30 * SECOND);
    fleet_free(&f);
}

static void claim_cancel_queued(void) {
    struct fleet *f = fleet_new(0);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j"});
    struct record_slot slot = job_record(&f->user, "j", JOB_QUEUED);
    record_slot_done(&slot);
    CHECK_EQ(JOB_CANCELLED, cancel_job(&f->user, "j"));
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_CANCELLED, r->status);
    CHECK_EQ(JOB_CANCELLED, cancel_job(&f->user, "j")); /* again: the same answer */
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j", .generation = 2});
    fleet_start_lane(f, 0);
    AUTO(message_free) result_message *again = job_result(&f->user, "j", 2);
    check_proved(again, MUL, 1);
    CHECK_EQ(JOB_DONE, cancel_job(&f->user, "j")); /* success is final */
    fleet_free(&f);
}

/* It counts a job after its result is there to be seen. */
static bool lane_has_done_one(void *lane) {
    return lane_counts_of(lane).done == 1;
}

/* The message may come after the result. */
static bool lane_knows_cancel(void *ctx) {
    struct lane *lane = ctx;
    bool knows = false;
    LOCK_SCOPE(&lane->lock);
    for (size_t i = 0; i < lane->held_count; i++) {
        knows = knows || atomic_load(&lane->held[i]->watch.cancel);
    }
    return knows || lane->held_count == 0;
}

static void claim_cancel_running(void) {
    struct fleet *f = fleet_new(1);
    fleet_trouble(0, TROUBLE_HANG, 0);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j"});
    struct record_slot slot = job_record(&f->user, "j", JOB_RUNNING);
    record_slot_done(&slot);
    uint64_t start_ns = clock_ns();
    CHECK_EQ(JOB_CANCELLED, cancel_job(&f->user, "j"));
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_CANCELLED, r->status);
    wait_until(lane_knows_cancel, f->lanes[0].lane, "the lane has heard of the cancel");
    fleet_trouble(0, TROUBLE_NONE, 0);
    fleet_prove(f, "next", MUL); /* the device is free again */
    CHECK(clock_ns() - start_ns < 4 * SECOND);
    wait_until(lane_has_done_one, f->lanes[0].lane, "the lane has counted one proof");
    fleet_free(&f);
}

static void claim_deadline(void) {
    struct fleet *f = fleet_new(0);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j", .deadline_ms = 300});
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_EXPIRED, r->status);
    struct record_slot slot = job_record(&f->user, "j", JOB_EXPIRED);
    record_slot_done(&slot);
    fleet_free(&f);
}

static bool device_has_one(void *none) {
    (void)none;
    return fleet_device_runs(0) == 1;
}

static void claim_drain(void) {
    struct fleet *f = fleet_new(1);
    fleet_trouble(0, TROUBLE_HANG, 0);
    submit_some(f, 0, 4);
    struct record_slot slot = job_record(&f->user, "j0", JOB_RUNNING);
    record_slot_done(&slot);
    wait_until(device_has_one, NULL, "the device has taken the first job");
    lane_drain(f->lanes[0].lane, 100 * SECOND, "test"); /* with time to finish what runs */
    fleet_start_lane(f, 1);
    expect_some(f, 1, 4, 1);
    fleet_trouble(0, TROUBLE_NONE, 0);
    AUTO(message_free) result_message *r = job_result(&f->user, "j0", 1);
    check_proved(r, MUL, 1);
    CHECK_EQ(0, r->partitions[0]->gpu);
    fleet_free(&f);
}

/* The device is at work for longer than a while: nothing behind it has started, so all of it may go to a lane that comes. */
static void claim_what_waits_behind_a_long_job_can_go(void) {
    struct fleet *f = fleet_new(1);
    fleet_trouble(0, TROUBLE_HANG, 0);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "long"});
    struct record_slot slot = job_record(&f->user, "long", JOB_RUNNING);
    record_slot_done(&slot);
    clock_sleep_ns(SECOND / 2);
    submit_some(f, 0, 3);
    slot = job_record(&f->user, "j2", JOB_PLACED);
    record_slot_done(&slot);
    clock_sleep_ns(SECOND / 4);
    fleet_start_lane(f, 1);
    expect_some(f, 0, 3, 1);
    fleet_trouble(0, TROUBLE_NONE, 0);
    AUTO(message_free) result_message *r = job_result(&f->user, "long", 1);
    check_proved(r, MUL, 1);
    fleet_free(&f);
}

static void claim_coordinator_restart(void) {
    struct fleet *f = fleet_new(1);
    fleet_trouble(0, TROUBLE_HANG, 0);
    for (int i = 0; i < 10; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        submit_job(&f->user, &(struct job_order){.case_name = MUL,
                                                 .job_id = job_id,
                                                 .parts_count = 1 + (uint32_t)i % 2});
    }
    struct record_slot slot = job_record(&f->user, "j0", JOB_RUNNING);
    record_slot_done(&slot);
    fleet_stop_coordinator(f);
    fleet_start_coordinator(f);
    fleet_trouble(0, TROUBLE_NONE, 0);
    for (int i = 0; i < 10; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        AUTO(message_free) result_message *r = job_result(&f->user, job_id, 1);
        check_proved(r, MUL, 1 + (uint32_t)i % 2);
    }
    fleet_free(&f);
}

static void claim_broker_restart(void) {
    struct fleet *f = fleet_new(2);
    submit_some(f, 0, 11);
    loopback_restart(f->broker);
    submit_some(f, 11, 20);
    expect_some(f, 0, 20, -1);
    fleet_free(&f);
}

static void claim_unreadable_job(void) {
    struct fleet *f = fleet_new(1);
    struct publish_ack ack;
    uint8_t digest[SHA256_BYTES] = {1};
    struct subject subject =
        subject_job(&f->user.space, 1, digest, (struct job_name){"acme", "junk"});
    CHECK_OK(transport_publish(&ack, f->user.link, subject.text, bytes_of("\xff\xff not a job", 12),
                               NULL));
    AUTO(message_free) result_message *r = job_result(&f->user, "junk", 1);
    check_failed(r, "E_FORMAT", "");
    fleet_prove(f, "after", MUL);
    fleet_free(&f);
}

static struct {
    size_t bytes;
    unsigned long nodes;
} bound;

static long note_bound(void *ptr, size_t bytes, int policy, const unsigned long *nodes,
                       unsigned long nodes_max, unsigned flags) {
    (void)ptr;
    (void)policy;
    (void)nodes_max;
    (void)flags;
    bound.bytes = bytes;
    bound.nodes = nodes[0];
    return 0;
}

static void claim_arena_near_device(void) {
    struct fleet *f = fleet_new(0);
    numa_look_in(NULL, note_bound);
    fleet_start_lane(f, 0);
    CHECK_EQ(0, bound.bytes); /* a processor has no nearer memory than the scheduler finds */
    f->copies = true;
    fleet_start_lane(f, 1);
    CHECK_EQ(pinned_bytes(f->lanes[1].lane->pinned), bound.bytes);
    CHECK_EQ(1 << 1, bound.nodes);
    numa_look_in(NULL, NULL);
    fleet_free(&f);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a job is proved, stored, told to its reply subject", claim_one_job},
        {"both curves, inline and as objects", claim_both_curves_and_objects},
        {"partitions are joined in order", claim_partitions},
        {"what a device on memory node 1 copies from lies on node 1", claim_arena_near_device},
        {"a bit-heavy witness travels packed and proves the same as raw", claim_packed_bodies},
        {"the body of a finished job is purged", claim_janitor},
        {"bad jobs fail once, with a reason, without a strike", claim_bad_jobs},
        {"one bad partition fails its job", claim_one_bad_partition_fails_the_job},
        {"a partition that fails ends its siblings", claim_siblings_end},
        {"a, b and the assignment are proved; a wrong row is the job's fault, not the device's",
         claim_evaluations},
        {"a repeat gets the first result, other work under its id is refused", claim_repeats},
        {"bodies that come with a repeat or with refused work are purged, the job's own stays",
         claim_repeated_bodies},
        {"a tenant with too many open jobs is told so; the next job comes in when one has ended",
         claim_tenant_quota},
        {"the body of a job that ended while nobody led is purged by the next leader",
         claim_body_of_the_leaderless},
        {"after a device error a job goes elsewhere", claim_device_errors_go_elsewhere},
        {"a job that fails everywhere is set aside with its evidence, and may be sent again",
         claim_poison},
        {"three strikes fence a lane, and its successor on the device, until it is resumed",
         claim_fenced},
        {"a lane whose device is lost gives its jobs back", claim_device_lost},
        {"a lane without room gives back without a strike", claim_no_room},
        {"a wrong sum never leaves and strikes the device", claim_wrong_sum},
        {"a result says how long its job took from intake on", claim_elapsed},
        {"a silent lane's job moves on, and the late finisher loses", claim_silent_lane},
        {"a stuck device is noticed and its jobs go elsewhere", claim_stuck_device},
        {"a queued job can be cancelled and sent again", claim_cancel_queued},
        {"a running job can be cancelled", claim_cancel_running},
        {"a job without a proof by its deadline expires", claim_deadline},
        {"a draining lane finishes what runs and hands the rest back", claim_drain},
        {"what waits behind a long job has not started, and goes to a lane that comes",
         claim_what_waits_behind_a_long_job_can_go},
        {"a coordinator that starts again goes on where the last one was",
         claim_coordinator_restart},
        {"a broker restart loses no job", claim_broker_restart},
        {"a message that is no job gets a failed result", claim_unreadable_job},
    };
    log_setup(getenv("BELLOWS_TEST_LOG") ? LOG_DEBUG : (enum log_level)(LOG_ERROR + 1), 0);
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
