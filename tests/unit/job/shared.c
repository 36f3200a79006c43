/* One record, many hands: nothing is lost, and what comes together goes together. */
#include "node/job/shared.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/transport/fleet.h"
#include "node/transport/loopback.h"
#include "tests/check/check.h"

enum { PARTS = 64, THREADS = 8, GENERATION = 1 };
static const uint64_t LONG_NS = UINT64_C(200000000);
static const struct job_name NAME = {"acme", "j"};

struct scene {
    struct loopback *broker;
    struct transport *link;
    struct subject_space space;
    struct shared_records *all;
};

/* A job whose partitions are placed, each under an epoch of its own: 1 …. */
static void scene_open(struct scene *s) {
    struct record r = {0};
    struct record_slot slot = {0};
    struct lane_ref lane = {"w", 0};
    struct sha256 fingerprint = {{1}};
    bool won = false;
    CHECK_OK(subject_space_init(&s->space, NULL));
    CHECK_OK(loopback_open(&s->broker));
    CHECK_OK(loopback_connect(&s->link, s->broker, NULL));
    CHECK_OK(fleet_ensure(s->link, &s->space, NULL));
    CHECK_OK(record_init(&r, bytes_of("job", 3), &fingerprint, GENERATION, PARTS, 7));
    for (uint32_t i = 0; i < PARTS; i++) {
        CHECK_EQ(RECORD_MOVED, record_place(&r, i, &lane, 8));
    }
    struct job_place at = {s->link, &s->space, NAME};
    CHECK_OK(record_create(&slot, &won, &at, &r));
    CHECK(won);
    record_slot_done(&slot);
    CHECK_OK(shared_records_new(&s->all, s->link, &s->space));
}

static void scene_close(struct scene *s) {
    shared_records_free(&s->all);
    transport_close(&s->link);
    loopback_close(&s->broker);
}

static uint64_t writes_of(struct scene *s) {
    struct stream_info info;
    struct subject bucket = kv_bucket_name(&s->space, "jobs");
    char stream[SUBJECT_BYTES_MAX + 8];
    snprintf(stream, sizeof stream, "KV_%s", bucket.text);
    CHECK_OK(stream_info(&info, s->link, stream));
    return info.last_sequence;
}

static unsigned parts_in(struct scene *s, enum job_state state) {
    struct record_slot slot = {0};
    struct job_place at = {s->link, &s->space, NAME};
    bool found = false;
    unsigned count = 0;
    CHECK_OK(record_load(&slot, &found, &at));
    for (uint32_t i = 0; i < slot.record.parts_count; i++) {
        count += slot.record.parts[i].state == state;
    }
    record_slot_done(&slot);
    return count;
}

struct hand { /* moves every THREADS-th partition from `idx` on */
    struct shared_records *all;
    uint32_t idx;
    uint64_t waits_ns, first_takes_ns; /* before the first change; during it */
    pthread_barrier_t *begin;
    pthread_t thread;
};
struct move {
    uint32_t idx;
    uint64_t takes_ns;
};

static enum record_answer change_start(struct record *r, void *ctx) {
    const struct move *m = ctx;
    clock_sleep_ns(m->takes_ns);
    return record_start(r, m->idx, m->idx + 1, 9);
}

static void *hand_main(void *ctx) {
    struct hand *h = ctx;
    struct shared_record *r = NULL;
    ASSERT(shared_take(&r, h->all, NAME, GENERATION) == OK);
    for (uint32_t i = h->idx; i < PARTS; i += THREADS) {
        struct shared_claim claim = {0};
        ASSERT(shared_look(&claim, r, i, i + 1) == OK && claim.ours && claim.queued_unix_ms == 7);
    }
    pthread_barrier_wait(h->begin);
    clock_sleep_ns(h->waits_ns);
    for (uint32_t i = h->idx; i < PARTS; i += THREADS) {
        struct move m = {i, i == h->idx ? h->first_takes_ns : 0};
        enum record_answer answer = RECORD_STALE;
        ASSERT(shared_apply(&answer, r, change_start, &m) == OK && answer == RECORD_MOVED);
    }
    shared_give(&r);
    return NULL;
}

static void run_hands(struct hand hands[THREADS]) {
    pthread_barrier_t begin;
    CHECK_EQ(0, pthread_barrier_init(&begin, NULL, THREADS));
    for (uint32_t i = 0; i < THREADS; i++) {
        hands[i].idx = i;
        hands[i].begin = &begin;
        CHECK_EQ(0, pthread_create(&hands[i].thread, NULL, hand_main, &hands[i]));
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(hands[i].thread, NULL);
    }
    pthread_barrier_destroy(&begin);
}

static void claim_together(void) {
    struct scene s;
    struct hand hands[THREADS];
    scene_open(&s);
    uint64_t before = writes_of(&s);
    for (uint32_t i = 0; i < THREADS; i++) { /* the first is on its way when the others come */
        hands[i] = (struct hand){
            .all = s.all, .waits_ns = i ? LONG_NS / 4 : 0, .first_takes_ns = i ? 0 : LONG_NS};
    }
    run_hands(hands);
    CHECK_EQ(PARTS, parts_in(&s, JOB_RUNNING));
    /* The first alone, the seven behind it together. */
    CHECK_MSG(writes_of(&s) - before <= PARTS - THREADS + 2, "%llu writes",
              (unsigned long long)(writes_of(&s) - before));
    scene_close(&s);
}

static void claim_two_processes(void) {
    struct scene s;
    struct hand hands[THREADS];
    struct shared_records *other = NULL;
    scene_open(&s);
    CHECK_OK(shared_records_new(&other, s.link, &s.space));
    for (uint32_t i = 0; i < THREADS; i++) {
        hands[i] = (struct hand){.all = i % 2 ? other : s.all};
    }
    run_hands(hands);
    CHECK_EQ(PARTS, parts_in(&s, JOB_RUNNING));
    shared_records_free(&other);
    scene_close(&s);
}

static enum record_answer change_end(struct record *r, void *ctx) {
    (void)ctx;
    return record_end(r, JOB_CANCELLED, "enough", 10);
}

static void claim_answers(void) {
    struct scene s;
    struct shared_record *r = NULL, *same = NULL, *later = NULL, *nobody = NULL;
    struct job_place at = {0};
    struct record_slot slot = {0};
    enum record_answer answer;
    struct move m = {0, 0};
    struct shared_claim claim;
    scene_open(&s);
    at = (struct job_place){s.link, &s.space, NAME};
    CHECK_OK(shared_take(&r, s.all, NAME, GENERATION));
    CHECK_OK(shared_take(&same, s.all, NAME, GENERATION));
    CHECK(r == same);
    CHECK_OK(shared_take(&later, s.all, NAME, GENERATION + 1));
    CHECK_OK(shared_take(&nobody, s.all, (struct job_name){"acme", "nobody"}, GENERATION));
    CHECK_OK(shared_look(&claim, later, 0, 1));
    CHECK(!claim.ours);
    CHECK_OK(shared_apply(&answer, later, change_start, &m));
    CHECK_EQ(RECORD_STALE, answer);
    CHECK_OK(shared_look(&claim, nobody, 0, 1));
    CHECK(!claim.ours && claim.queued_unix_ms == 0);
    CHECK_OK(shared_apply(&answer, nobody, change_start, &m));
    CHECK_EQ(RECORD_STALE, answer);

    CHECK_OK(shared_look(&claim, r, 0, 1));
    CHECK(claim.ours && claim.queued_unix_ms == 7 && claim.deaths == 0);
    CHECK_OK(shared_look(&claim, r, 0, 2)); /* that is partition 1's */
    CHECK(!claim.ours);
    CHECK_OK(shared_look(&claim, r, PARTS, 1));
    CHECK(!claim.ours);
    CHECK_OK(shared_apply(&answer, r, change_start, &m));
    CHECK_EQ(RECORD_MOVED, answer);
    /* Somebody else ends it: what is known here is old, and is not believed when it matters. */
    CHECK_OK(record_apply(&answer, &slot, &at, GENERATION, change_end, NULL));
    record_slot_done(&slot);
    m.idx = 1;
    CHECK_OK(shared_apply(&answer, r, change_start, &m));
    CHECK_EQ(RECORD_STALE, answer);
    CHECK_OK(shared_look(&claim, r, 2, 3));
    CHECK(!claim.ours);
    shared_give(&r);
    shared_give(&same);
    shared_give(&later);
    shared_give(&nobody);
    shared_give(&nobody); /* nothing */
    scene_close(&s);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"changes that come together are stored together, and none is lost", claim_together},
        {"two lanes that share the job's partitions lose no change either", claim_two_processes},
        {"a partition of another epoch, generation or job, or one that has ended, is told so",
         claim_answers},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
