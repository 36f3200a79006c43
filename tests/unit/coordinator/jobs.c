/* Jobs under a whole coordinator: the broker is the twin, the lanes are played here, message by message. */
#include "node/coordinator/coordinator.h"
#include "node/coordinator/floor.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/transport/loopback.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"
#include "tests/unit/daemon/submitter.h"

#define SECOND UINT64_C(1000000000)
#define MUL    "bn128/mul"
enum { LANES = 2 };

struct scene {
    struct loopback *broker;
    struct submitter user;
    struct coordinator_links links;
    struct coordinator *coordinator;
    struct puller *pullers[LANES];
};

static bool is_ready(void *ctx) {
    return coordinator_is_ready(ctx);
}

static void start_coordinator(struct scene *s, const struct coordinator_config *more) {
    struct coordinator_config config = more ? *more : (struct coordinator_config){0};
    config.name = "test";
    config.silence_ns = 60 * SECOND; /* lanes beat when the test says so */
    config.lease_ttl_ns = 2 * SECOND;
    CHECK_OK(loopback_connect(&s->links.control, s->broker, NULL));
    CHECK_OK(loopback_connect(&s->links.feed, s->broker, NULL));
    CHECK_OK(loopback_connect(&s->links.lease, s->broker, NULL));
    CHECK_OK(coordinator_open(&s->coordinator, &config, &s->links));
    wait_until(is_ready, s->coordinator, "the coordinator is ready");
}

static void stop_coordinator(struct scene *s) {
    coordinator_close(&s->coordinator);
    transport_close(&s->links.lease);
    transport_close(&s->links.feed);
    transport_close(&s->links.control);
}

static void open_broker(struct scene *s) {
    *s = (struct scene){0};
    CHECK_OK(subject_space_init(&s->user.space, NULL));
    CHECK_OK(loopback_open(&s->broker));
    CHECK_OK(loopback_connect(&s->user.link, s->broker, NULL));
}

static void scene_open(struct scene *s, const struct coordinator_config *more) {
    open_broker(s);
    start_coordinator(s, more);
}

static void scene_close(struct scene *s) {
    for (int i = 0; i < LANES; i++) {
        if (s->pullers[i]) {
            puller_close(&s->pullers[i]);
        }
    }
    stop_coordinator(s);
    transport_close(&s->user.link);
    loopback_close(&s->broker);
}

/* --- A lane --- */

static void beat(struct scene *s, uint32_t gpu, Bellows__V1__LaneState state) {
    Bellows__V1__Heartbeat m = BELLOWS__V1__HEARTBEAT__INIT;
    struct bytes_mut packed;
    char session[] = "session";
    m.version = WIRE_VERSION;
    m.node = (char *)(uintptr_t) "w";
    m.gpu = gpu;
    m.session = session;
    m.state = state;
    m.depth = 1;
    CHECK_OK(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "heartbeat"));
    struct subject to = subject_heartbeat(&s->user.space, (struct lane_name){"w", gpu});
    CHECK_OK(transport_send(s->user.link, to.text, bytes_of(packed.ptr, packed.len)));
    mem_free(packed.ptr);
}

static void start_lane(struct scene *s, uint32_t gpu) {
    struct lane_name name = {"w", gpu};
    struct subject stream = stream_name(&s->user.space, "LANES"), consumer = consumer_of_lane(name);
    CHECK_OK(fleet_ensure_lane(s->user.link, &s->user.space, name, 32, NULL));
    CHECK_OK(puller_open(&s->pullers[gpu], s->user.link, stream.text, consumer.text));
    beat(s, gpu, BELLOWS__V1__LANE_STATE__LANE_READY);
}

struct work { /* one assignment in a lane's hands */
    char job[ID_BYTES_MAX + 1];
    uint64_t generation, epoch;
    uint32_t idx;
};

static void read_work(struct work *out, const struct message *m) {
    AUTO(message_free) Bellows__V1__Assignment *a = NULL;
    AUTO(message_free) job_message *job = NULL;
    CHECK_OK(message_unpack(&a, &bellows__v1__assignment__descriptor, m->data, MESSAGE_BYTES_MAX,
                            "assignment"));
    CHECK_OK(job_unpack(&job, bytes_of(a->job.data, a->job.len), NULL, UINT64_MAX));
    *out = (struct work){.generation = a->generation, .epoch = a->epoch, .idx = a->partition_index};
    snprintf(out->job, sizeof out->job, "%s", job->job_id);
}

static bool next_work(struct work *out, struct scene *s, uint32_t gpu, uint64_t wait_ns) {
    struct message m = {0};
    if (puller_next(&m, s->pullers[gpu], wait_ns) != OK) {
        return false;
    }
    read_work(out, &m);
    CHECK_OK(transport_ack(s->user.link, m.reply, ACK_DONE, 0));
    message_done(&m);
    return true;
}

static enum record_answer change_start(struct record *r, void *ctx) {
    const struct work *w = ctx;
    return record_start(r, w->idx, w->epoch, 1);
}

static enum record_answer change_done(struct record *r, void *ctx) {
    const struct work *w = ctx;
    enum record_answer answer = record_part_done(r, w->idx, 1);
    return r->parts_count == 1 ? record_end(r, JOB_DONE, "", 1) : answer;
}

static enum record_answer move(struct scene *s, struct work *w, record_change *change) {
    struct job_place at = {s->user.link, &s->user.space, {"acme", w->job}};
    AUTO(record_slot_done) struct record_slot slot = {0};
    enum record_answer answer;
    CHECK_OK(record_apply(&answer, &slot, &at, w->generation, change, w));
    return answer;
}

static void submit(struct scene *s, const char *job_id, uint64_t generation, uint32_t parts_count) {
    submit_job(&s->user, &(struct job_order){.case_name = MUL,
                                             .job_id = job_id,
                                             .generation = generation,
                                             .parts_count = parts_count});
}

static void wait_for(struct scene *s, const char *job_id, enum job_state state) {
    struct record_slot slot = job_record(&s->user, job_id, state);
    record_slot_done(&slot);
}

static void wait_for_open(struct scene *s, uint64_t count) {
    for (int n = 0; n < 500 && coordinator_counts_of(s->coordinator).jobs_open != count; n++) {
        clock_sleep_ns(SECOND / 100);
    }
    CHECK_EQ(count, coordinator_counts_of(s->coordinator).jobs_open);
}

/* --- Where it fits --- */

static void tell_entry(struct scene *s, uint32_t gpu, Bellows__V1__LaneInfo *m) {
    struct bytes_mut packed;
    uint64_t revision;
    m->version = WIRE_VERSION;
    m->node = (char *)(uintptr_t) "w";
    m->gpu = gpu;
    CHECK_OK(message_pack(&packed, m, MESSAGE_BYTES_MAX, "lane entry"));
    struct subject bucket = kv_bucket_name(&s->user.space, "lanes");
    struct subject key = key_of_lane((struct lane_name){"w", gpu});
    CHECK_OK(
        kv_put(&revision, s->user.link, bucket.text, key.text, bytes_of(packed.ptr, packed.len)));
    mem_free(packed.ptr);
}

static void tell_memory(struct scene *s, uint32_t gpu, uint64_t host_bytes) {
    Bellows__V1__LaneInfo m = BELLOWS__V1__LANE_INFO__INIT;
    m.backend = (char *)(uintptr_t) "cpu";
    m.host_bytes = host_bytes;
    tell_entry(s, gpu, &m);
}

static void register_key(struct scene *s, const struct sha256 *digest, uint64_t domain_size) {
    Bellows__V1__KeyRecord m = BELLOWS__V1__KEY_RECORD__INIT;
    struct bytes_mut packed;
    uint64_t revision;
    char hex[SHA256_HEX_BYTES];
    sha256_hex(hex, digest);
    m.version = WIRE_VERSION;
    m.curve = BELLOWS__V1__CURVE__BN254;
    m.format = (char *)(uintptr_t) "zkey";
    m.wires_count = (uint32_t)domain_size;
    m.public_count = 3;
    m.domain_size = domain_size;
    m.terms_a_count = m.terms_b_count = domain_size;
    CHECK_OK(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "key record"));
    struct subject bucket = kv_bucket_name(&s->user.space, "keys");
    CHECK_OK(kv_put(&revision, s->user.link, bucket.text, hex, bytes_of(packed.ptr, packed.len)));
    mem_free(packed.ptr);
}

/* A key of 2^20 needs a few hundred megabytes: the lane that has ten is not asked, idle as it is. */
static void claim_plan_decides_where_it_fits(void) {
    struct scene s;
    struct work w;
    struct file_map file;
    struct sha256 digest;
    scene_open(&s, NULL);
    CHECK_OK(file_map_open(&file, check_vectors(MUL "/circuit.zkey")));
    CHECK_OK(sha256_of(&digest, file.bytes));
    file_map_close(&file);
    register_key(&s, &digest, UINT64_C(1) << 20);
    tell_memory(&s, 0, UINT64_C(10) << 20);
    tell_memory(&s, 1, UINT64_C(8) << 30);
    submit_job(&s.user,
               &(struct job_order){.case_name = MUL, .job_id = "large", .key_unregistered = true});
    wait_for(&s, "large", JOB_QUEUED);
    clock_sleep_ns(SECOND / 2); /* the registry is looked at */
    start_lane(&s, 1);
    beat(&s, 1, BELLOWS__V1__LANE_STATE__LANE_READY);
    start_lane(&s, 0);
    CHECK(next_work(&w, &s, 1, 5 * SECOND));
    CHECK_STR("large", w.job);
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_start));
    for (int i = 0; i < 3; i++) { /* they wait behind it, though another lane is idle */
        char job_id[16];
        snprintf(job_id, sizeof job_id, "more%d", i);
        submit_job(&s.user, &(struct job_order){
                                .case_name = MUL, .job_id = job_id, .key_unregistered = true});
        CHECK(next_work(&w, &s, 1, 5 * SECOND));
    }
    CHECK(!next_work(&w, &s, 0, SECOND / 2));
    beat(&s, 1, BELLOWS__V1__LANE_STATE__LANE_DRAINING); /* and if nobody has room for it: */
    CHECK(next_work(&w, &s, 0, 5 * SECOND));             /* one is asked, to refuse it */
    scene_close(&s);
}

/* --- Cancelling --- */

/* Cancels, looks that the result is there within two seconds, and sends the job again. */
static void cancel_and_resubmit(struct scene *s, const char *job_id, uint32_t parts_count) {
    uint64_t start_ns = clock_ns();
    CHECK_EQ(JOB_CANCELLED, cancel_job(&s->user, job_id));
    AUTO(message_free) result_message *r = job_result(&s->user, job_id, 1);
    CHECK_MSG(clock_ns() - start_ns < 2 * SECOND, "%s took %.1f s", job_id,
              (double)(clock_ns() - start_ns) / 1e9);
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_CANCELLED, r->status);
    CHECK_EQ(JOB_CANCELLED, cancel_job(&s->user, job_id)); /* again: the same answer */
    submit(s, job_id, 2, parts_count);
    wait_for(s, job_id, s->pullers[0] ? JOB_PLACED : JOB_QUEUED);
}

static void claim_cancel_in_every_state(void) {
    struct scene s;
    struct work w, again;
    scene_open(&s, NULL);
    submit(&s, "queued", 1, 1);
    wait_for(&s, "queued", JOB_QUEUED);
    cancel_and_resubmit(&s, "queued", 1);
    start_lane(&s, 0);
    CHECK(next_work(&w, &s, 0, 5 * SECOND));
    CHECK_STR("queued", w.job);
    CHECK_EQ(2, w.generation);
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_start));
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_done));

    submit(&s, "placed", 1, 1);
    wait_for(&s, "placed", JOB_PLACED);
    CHECK(next_work(&w, &s, 0, 5 * SECOND));
    cancel_and_resubmit(&s, "placed", 1);
    CHECK_EQ(RECORD_STALE, move(&s, &w, change_start)); /* the lane learns it when it starts */
    CHECK(next_work(&again, &s, 0, 5 * SECOND));
    CHECK_EQ(RECORD_MOVED, move(&s, &again, change_start));
    CHECK_EQ(RECORD_MOVED, move(&s, &again, change_done));

    submit(&s, "running", 1, 1);
    CHECK(next_work(&w, &s, 0, 5 * SECOND));
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_start));
    cancel_and_resubmit(&s, "running", 1);
    CHECK_EQ(RECORD_STALE, move(&s, &w, change_done)); /* a late finisher moves nothing */
    CHECK(next_work(&again, &s, 0, 5 * SECOND));
    CHECK_EQ(RECORD_MOVED, move(&s, &again, change_start));
    CHECK_EQ(RECORD_MOVED, move(&s, &again, change_done));

    submit(&s, "half", 1, 2); /* one partition done, one running */
    CHECK(next_work(&w, &s, 0, 5 * SECOND));
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_start));
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_done));
    CHECK(next_work(&w, &s, 0, 5 * SECOND));
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_start));
    cancel_and_resubmit(&s, "half", 2);
    scene_close(&s);
}

static void ask_cancel(struct scene *s, const char *job_id) {
    Bellows__V1__Control m = BELLOWS__V1__CONTROL__INIT;
    struct bytes_mut packed;
    struct subject subject = subject_ctl_tenant(&s->user.space, "acme", "cancel");
    m.version = WIRE_VERSION;
    m.tenant = (char *)(uintptr_t) "acme";
    m.job_id = (char *)(uintptr_t)job_id;
    CHECK_OK(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "control"));
    CHECK_OK(transport_send(s->user.link, subject.text, bytes_of(packed.ptr, packed.len)));
    mem_free(packed.ptr);
}

/* Queued, placed and running ones, each asked for twice, and one that is done: all are taken together. */
static void claim_many_cancels_at_once(void) {
    enum { JOBS = 100 };
    struct scene s;
    struct work w;
    char job_id[16];
    scene_open(&s, NULL);
    start_lane(&s, 0);
    submit(&s, "done", 1, 1);
    CHECK(next_work(&w, &s, 0, 5 * SECOND));
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_start));
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_done));
    for (int i = 0; i < JOBS; i++) {
        snprintf(job_id, sizeof job_id, "j%d", i);
        submit(&s, job_id, 1, 1);
    }
    CHECK(next_work(&w, &s, 0, 5 * SECOND));
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_start));
    wait_for_open(&s, JOBS);
    ask_cancel(&s, "done");
    ask_cancel(&s, "nobody");
    uint64_t start_ns = clock_ns();
    for (int i = 0; i < 2 * JOBS; i++) {
        snprintf(job_id, sizeof job_id, "j%d", i / 2);
        ask_cancel(&s, job_id);
    }
    wait_for_open(&s, 0);
    CHECK(clock_ns() - start_ns < 2 * SECOND);
    CHECK_EQ(JOBS, coordinator_counts_of(s.coordinator).cancelled);
    for (int i = 0; i < JOBS; i++) {
        snprintf(job_id, sizeof job_id, "j%d", i);
        AUTO(message_free) result_message *r = job_result(&s.user, job_id, 1);
        CHECK_EQ(BELLOWS__V1__STATUS__STATUS_CANCELLED, r->status);
        wait_for(&s, job_id, JOB_CANCELLED);
    }
    CHECK_EQ(RECORD_STALE, move(&s, &w, change_done));
    wait_for(&s, "done", JOB_DONE);
    scene_close(&s);
}

/* --- Ending together --- */

static void store_part(struct scene *s, const struct work *w) {
    struct job_place at = {s->user.link, &s->user.space, {"acme", w->job}};
    part_message m = BELLOWS__V1__PART_RESULT__INIT;
    Bellows__V1__Proof proof = BELLOWS__V1__PROOF__INIT;
    uint8_t point[4 * 32] = {1};
    struct bytes_mut packed;
    bool won = false;
    proof.a = proof.c = (ProtobufCBinaryData){2 * 32, point};
    proof.b = (ProtobufCBinaryData){4 * 32, point};
    m.status = BELLOWS__V1__STATUS__STATUS_OK;
    m.proof = &proof;
    m.version = WIRE_VERSION;
    m.job_id = (char *)(uintptr_t)w->job;
    m.tenant = (char *)(uintptr_t) "acme";
    m.generation = 1;
    m.index = w->idx;
    CHECK_OK(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "part"));
    CHECK_OK(part_store(&won, &at, 1, w->idx, bytes_of(packed.ptr, packed.len)));
    CHECK(won);
    mem_free(packed.ptr);
}

static void store_cancelled(struct scene *s, const char *job_id) {
    struct job_place at = {s->user.link, &s->user.space, {"acme", job_id}};
    result_message m = BELLOWS__V1__RESULT__INIT;
    Bellows__V1__Error error = BELLOWS__V1__ERROR__INIT;
    struct bytes_mut packed;
    m.error = &error;
    Bellows__V1__Status status;
    bool won = false;
    m.version = WIRE_VERSION;
    m.job_id = (char *)(uintptr_t)job_id;
    m.tenant = (char *)(uintptr_t) "acme";
    m.generation = 1;
    m.status = BELLOWS__V1__STATUS__STATUS_CANCELLED;
    CHECK_OK(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "result"));
    CHECK_OK(result_store(&status, &won, &at, 1, bytes_of(packed.ptr, packed.len)));
    CHECK(won);
    mem_free(packed.ptr);
}

static enum record_answer change_fail(struct record *r, void *ctx) {
    const struct lane_ref lane = {"elsewhere", 0};
    (void)ctx;
    for (int i = 0; i < RECORD_ATTEMPTS_MAX; i++) {
        CHECK_EQ(RECORD_MOVED, record_place(r, 0, &lane, 1));
        CHECK_EQ(RECORD_MOVED, record_start(r, 0, r->parts[0].epoch, 1));
        CHECK_EQ(RECORD_MOVED,
                 record_give_back(r, 0, r->parts[0].epoch, E_DEVICE, "out of order", 1));
    }
    return RECORD_MOVED;
}

enum { TOGETHER = 100, LOST = 7, CANCELLED = 8, DEAD_FROM = 90, TOGETHER_PARTS = 2 };

/* By hands that are no lane's: what is stored is final whoever made it. */
static void bring_to_an_end(struct scene *s, int number) {
    struct work w = {.generation = 1};
    snprintf(w.job, sizeof w.job, "j%d", number);
    if (number >= DEAD_FROM) {
        CHECK_EQ(RECORD_MOVED, move(s, &w, change_fail));
        return;
    }
    for (w.idx = 0; w.idx < TOGETHER_PARTS; w.idx++) {
        if (number != LOST || w.idx == 0) {
            store_part(s, &w);
        }
        CHECK_EQ(RECORD_MOVED, move(s, &w, change_done));
    }
}

static void check_end(struct scene *s, int number) {
    char job_id[16];
    snprintf(job_id, sizeof job_id, "j%d", number);
    AUTO(message_free) result_message *r = job_result(&s->user, job_id, 1);
    if (number >= DEAD_FROM || number == LOST) {
        CHECK_EQ(BELLOWS__V1__STATUS__STATUS_FAILED, r->status);
        wait_for(s, job_id, number == LOST ? JOB_FAILED : JOB_DEAD);
    } else if (number == CANCELLED) { /* the earlier result stands */
        CHECK_EQ(BELLOWS__V1__STATUS__STATUS_CANCELLED, r->status);
        wait_for(s, job_id, JOB_CANCELLED);
    } else {
        CHECK_EQ(BELLOWS__V1__STATUS__STATUS_OK, r->status);
        CHECK_EQ(TOGETHER_PARTS, r->n_partitions);
        wait_for(s, job_id, JOB_DONE);
    }
}

static void claim_many_end_together(void) {
    struct scene s;
    struct stream_info info;
    char job_id[16];
    scene_open(&s, NULL);
    for (int i = 0; i < TOGETHER; i++) {
        snprintf(job_id, sizeof job_id, "j%d", i);
        submit(&s, job_id, 1, i < DEAD_FROM ? TOGETHER_PARTS : 1);
    }
    wait_for_open(&s, TOGETHER);
    snprintf(job_id, sizeof job_id, "j%d", CANCELLED);
    store_cancelled(&s, job_id);
    for (int i = 0; i < TOGETHER; i++) {
        bring_to_an_end(&s, i);
    }
    wait_for_open(&s, 0);
    struct coordinator_counts counts = coordinator_counts_of(s.coordinator);
    CHECK_EQ(DEAD_FROM, counts.joined);
    CHECK_EQ(TOGETHER - DEAD_FROM, counts.dead);
    for (int i = 0; i < TOGETHER; i++) {
        check_end(&s, i);
    }
    struct subject dead = stream_name(&s.user.space, "DEAD");
    CHECK_OK(stream_info(&info, s.user.link, dead.text));
    CHECK_EQ(TOGETHER - DEAD_FROM, info.messages_count);
    scene_close(&s);
}

/* --- What does not last --- */

static bool nothing_open(void *ctx) {
    const struct scene *s = ctx;
    return coordinator_counts_of(s->coordinator).jobs_open == 0;
}

static void claim_gone_records_are_forgotten(void) {
    struct scene s;
    scene_open(&s, NULL);
    for (int i = 0; i < 20; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        submit(&s, job_id, 1, 1);
        wait_for(&s, job_id, JOB_QUEUED);
    }
    struct subject bucket = kv_bucket_name(&s.user.space, "jobs");
    char stream[SUBJECT_BYTES_MAX + 8];
    snprintf(stream, sizeof stream, "KV_%s", bucket.text);
    CHECK_OK(stream_purge(NULL, s.user.link, stream, NULL)); /* as if they had aged out */
    start_lane(&s, 0);
    wait_until(nothing_open, &s, "what has no record is forgotten");
    struct work w;
    CHECK(!next_work(&w, &s, 0, SECOND / 5));
    scene_close(&s);
}

static void claim_old_jobs_expire(void) {
    struct scene s;
    scene_open(&s, &(struct coordinator_config){.job_age_max_ns = 2 * SECOND});
    submit(&s, "old", 1, 1);
    uint64_t start_ns = clock_ns();
    AUTO(message_free) result_message *r = job_result(&s.user, "old", 1);
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_EXPIRED, r->status);
    CHECK_HAS(r->error->detail, "as long as jobs are kept");
    CHECK(clock_ns() - start_ns > SECOND);
    wait_until(nothing_open, &s, "it is forgotten");
    scene_close(&s);
}

/* A record that says "placed" and an assignment that was never sent: the leader died in between. */
static void claim_unsent_assignments_are_sent(void) {
    struct scene s;
    struct work w;
    scene_open(&s, NULL);
    submit(&s, "j", 1, 1);
    wait_for(&s, "j", JOB_QUEUED);
    stop_coordinator(&s);
    struct job_place at = {s.user.link, &s.user.space, {"acme", "j"}};
    AUTO(record_slot_done) struct record_slot slot = job_record(&s.user, "j", JOB_QUEUED);
    bool won;
    CHECK_EQ(RECORD_MOVED, record_place(&slot.record, 0, &(struct lane_ref){"w", 0}, 1));
    CHECK_OK(record_replace(&won, &slot, &at));
    CHECK(won);
    start_coordinator(&s, NULL);
    start_lane(&s, 0);
    CHECK(next_work(&w, &s, 0, 5 * SECOND));
    CHECK_EQ(slot.record.parts[0].epoch, w.epoch);
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_start));
    scene_close(&s);
}

/* What ended is not read again; what is open is found, however old. */
static void claim_next_leader_begins_at_the_floor(void) {
    enum { ENDED = 100 };
    struct scene s;
    struct work stays = {0}, w;
    AUTO(message_free) Bellows__V1__RecordFloor *floor = NULL;
    scene_open(&s, NULL);
    start_lane(&s, 0);
    submit(&s, "stays", 1, 1);
    CHECK(next_work(&stays, &s, 0, 5 * SECOND));
    CHECK_EQ(RECORD_MOVED, move(&s, &stays, change_start));
    for (int i = 0; i < ENDED; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        submit(&s, job_id, 1, 1);
        CHECK(next_work(&w, &s, 0, 5 * SECOND));
        CHECK_EQ(RECORD_MOVED, move(&s, &w, change_start));
        CHECK_EQ(RECORD_MOVED, move(&s, &w, change_done));
    }
    wait_for_open(&s, 1);
    stop_coordinator(&s);
    CHECK_OK(floor_read(&floor, s.user.link, &s.user.space));
    CHECK(floor);
    struct record_slot slot = job_record(&s.user, "stays", JOB_RUNNING);
    CHECK(floor->revision > slot.revision + ENDED);
    CHECK_EQ(1, floor->n_open_below);
    CHECK_STR("acme.stays", floor->open_below[0]);
    record_slot_done(&slot);
    start_coordinator(&s, NULL);
    wait_for_open(&s, 1);
    beat(&s, 0, BELLOWS__V1__LANE_STATE__LANE_READY);
    submit(&s, "after", 1, 1);
    CHECK(next_work(&w, &s, 0, 5 * SECOND));
    CHECK_STR("after", w.job);
    CHECK_EQ(RECORD_MOVED, move(&s, &stays, change_done));
    wait_for_open(&s, 1);
    scene_close(&s);
}

/* --- Short jobs --- */

/* As a lane tells it that wants as much in hand as it may have: for short jobs the coordinator comes to the same by itself. */
static void tell_depth(struct scene *s, uint32_t depth) {
    Bellows__V1__LaneInfo m = BELLOWS__V1__LANE_INFO__INIT;
    m.backend = (char *)(uintptr_t) "cuda";
    m.depth_max = depth;
    tell_entry(s, 0, &m);
}

static void submit_many(struct scene *s, int count) {
    for (int i = 0; i < count; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        submit(s, job_id, 1, 1);
    }
}

/* The lane's next one, in its hands and not acknowledged. */
static void begin_work(struct work *w, struct message *m, struct scene *s) {
    CHECK_OK(puller_next(m, s->pullers[0], SECOND));
    read_work(w, m);
    CHECK_EQ(RECORD_MOVED, move(s, w, change_start));
}

static uint64_t lane_messages(const struct scene *s) {
    struct stream_info info;
    CHECK_OK(stream_info(&info, s->user.link, stream_name(&s->user.space, "LANES").text));
    return info.messages_count;
}

static void wait_for_messages(const struct scene *s, uint64_t count) {
    for (int n = 0; n < 500 && lane_messages(s) != count; n++) {
        clock_sleep_ns(SECOND / 100);
    }
    CHECK_EQ(count, lane_messages(s));
}

/* Between a job's last record and the acknowledgement of its message lies a round trip or two: the lane gets its next job meanwhile. */
static void claim_next_job_does_not_wait_for_an_acknowledgement(void) {
    enum { MORE = 4 };
    struct scene s;
    struct work w;
    struct message m[MORE] = {0};
    scene_open(&s, NULL);
    submit_many(&s, LANE_DEPTH_MAX + MORE);
    tell_depth(&s, LANE_DEPTH_MAX);
    start_lane(&s, 0); /* beats this once */
    wait_for_messages(&s, LANE_DEPTH_MAX);
    for (uint64_t i = 0; i < MORE; i++) {
        begin_work(&w, &m[i], &s);
        CHECK_EQ(RECORD_MOVED, move(&s, &w, change_done));
        wait_for_messages(&s, LANE_DEPTH_MAX + i + 1);
        message_done(&m[i]);
    }
    CHECK_EQ(0, coordinator_counts_of(s.coordinator).taken_back);
    scene_close(&s);
}

/* A stream that an older version made, or an operator limits. */
static void claim_full_lane_gets_its_next_job_when_one_is_proved(void) {
    enum { FEW = 2 };
    struct scene s;
    struct work w;
    open_broker(&s);
    struct subject stream = stream_name(&s.user.space, "LANES"),
                   filter = filter_lanes(&s.user.space);
    CHECK_OK(stream_ensure(s.user.link, &(struct stream_config){.name = stream.text,
                                                                .subjects = {filter.text},
                                                                .retention = STREAM_WORK_QUEUE,
                                                                .discard_new_per_subject = true,
                                                                .messages_per_subject_max = FEW}));
    start_coordinator(&s, NULL);
    submit_many(&s, 3 * FEW);
    start_lane(&s, 0);
    wait_for_messages(&s, FEW);
    for (int i = 0; i < 3 * FEW; i++) {
        struct message m = {0};
        begin_work(&w, &m, &s);
        CHECK_OK(transport_ack(s.user.link, m.reply, ACK_DONE, 0));
        CHECK_EQ(RECORD_MOVED, move(&s, &w, change_done));
        message_done(&m);
    }
    scene_close(&s);
}

/* --- Moving --- */

static void claim_idle_lane_gets_what_waits_elsewhere(void) {
    struct scene s;
    struct work w, moved;
    scene_open(&s, NULL);
    start_lane(&s, 0);
    for (int i = 0; i < 4; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        submit(&s, job_id, 1, 1);
        wait_for(&s, job_id, JOB_PLACED);
    }
    CHECK(next_work(&w, &s, 0, 5 * SECOND));
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_start));
    start_lane(&s, 1); /* comes with empty hands */
    CHECK(next_work(&moved, &s, 1, 5 * SECOND));
    CHECK_STR("j3", moved.job); /* the one that would have ended last */
    CHECK_EQ(RECORD_MOVED, move(&s, &moved, change_start));
    struct work old = {.job = "j3", .generation = 1};
    while (next_work(&w, &s, 0,
                     SECOND / 5)) { /* the old lane learns that it is not its own any more */
        old = strcmp(w.job, "j3") ? old : w;
    }
    CHECK_EQ(RECORD_STALE, move(&s, &old, change_start));
    scene_close(&s);
}

static void claim_drained_lane_gives_back_what_it_has_not_started(void) {
    struct scene s;
    struct work w, moved;
    scene_open(&s, NULL);
    start_lane(&s, 0);
    submit(&s, "runs", 1, 1);
    CHECK(next_work(&w, &s, 0, 5 * SECOND));
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_start));
    submit(&s, "waits", 1, 1);
    wait_for(&s, "waits", JOB_PLACED);
    beat(&s, 0, BELLOWS__V1__LANE_STATE__LANE_DRAINING);
    wait_for(&s, "waits", JOB_QUEUED);
    start_lane(&s, 1);
    CHECK(next_work(&moved, &s, 1, 5 * SECOND));
    CHECK_STR("waits", moved.job);
    CHECK_EQ(RECORD_MOVED, move(&s, &w, change_done)); /* what ran was left to end */
    beat(&s, 0, BELLOWS__V1__LANE_STATE__LANE_READY);  /* resumed */
    submit(&s, "more", 1, 1);
    do { /* the assignment that was taken back still lies there, under a stale epoch */
        CHECK(next_work(&w, &s, 0, 5 * SECOND));
    } while (!strcmp(w.job, "waits"));
    CHECK_STR("more", w.job);
    scene_close(&s);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a job is cancelled within 2 s in every state, and may be sent again",
         claim_cancel_in_every_state},
        {"many cancels at once end each job once", claim_many_cancels_at_once},
        {"jobs that become whole, or have failed too often, end together, each once",
         claim_many_end_together},
        {"a key goes only where plan says that it fits", claim_plan_decides_where_it_fits},
        {"jobs whose records are gone are forgotten", claim_gone_records_are_forgotten},
        {"a job that is about to age out expires, with a result", claim_old_jobs_expire},
        {"an assignment that was recorded and not sent is sent by the next leader",
         claim_unsent_assignments_are_sent},
        {"the next leader begins to read at the floor, and knows what is open below it",
         claim_next_leader_begins_at_the_floor},
        {"a lane's next short job does not wait for the last one's acknowledgement",
         claim_next_job_does_not_wait_for_an_acknowledgement},
        {"a lane whose stream is full gets its next job when one is proved",
         claim_full_lane_gets_its_next_job_when_one_is_proved},
        {"an idle lane gets what waits elsewhere", claim_idle_lane_gets_what_waits_elsewhere},
        {"a drained lane gives back what it has not started, and works again when resumed",
         claim_drained_lane_gives_back_what_it_has_not_started},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
