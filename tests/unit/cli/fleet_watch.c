/* What telemetry makes of the picture: each message in its place, the minute's shares, the limits, and senseless bytes. */
#include "node/cli/fleet_watch.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/telemetry.pb-c.h"
#include "proto/unpack.h"
#include "tests/check/check.h"

#define SECOND UINT64_C(1000000000)

static struct subject_space space;
static struct watch picture;

static void begin(void) {
    watch_picture_done(&picture);
    CHECK_OK(subject_space_init(&space, NULL));
    CHECK_OK(watch_picture_init(&picture));
    picture.listens = true;
}

static char *lent(const char *text) {
    return (char *)(uintptr_t)text;
}

static bool hear(struct subject subject, const void *message) {
    struct bytes_mut packed;
    CHECK_OK(message_pack(&packed, message, MESSAGE_BYTES_MAX, "test"));
    bool understood = watch_hear(&picture, &space, subject.text, bytes_of(packed.ptr, packed.len));
    mem_free(packed.ptr);
    return understood;
}

/* So many seconds into the session: decode has had them all but `computed`. */
static bool hear_device(const char *node, uint32_t gpu, const char *session, uint64_t seconds,
                        uint64_t computed, uint64_t open) {
    Bellows__V1__DeviceReport m = BELLOWS__V1__DEVICE_REPORT__INIT;
    Bellows__V1__Account accounts[2], *account_ptrs[] = {&accounts[0], &accounts[1]};
    Bellows__V1__Counter counter = BELLOWS__V1__COUNTER__INIT, *counters[] = {&counter};
    Bellows__V1__Reading reading = BELLOWS__V1__READING__INIT, *readings[] = {&reading};
    bellows__v1__account__init(&accounts[0]);
    bellows__v1__account__init(&accounts[1]);
    accounts[0].name = lent("compute.msm_h");
    accounts[0].ns = computed * SECOND;
    accounts[1].name = lent("wait.decode");
    accounts[1].ns = (seconds - computed - open) * SECOND;
    counter.name = lent("jobs_done");
    counter.value = 5;
    reading.sensor = BELLOWS__V1__SENSOR__TEMPERATURE_CELSIUS;
    reading.value = 61;
    m.version = WIRE_VERSION;
    m.node = lent(node);
    m.gpu = gpu;
    m.session = lent(session);
    m.device = lent("cpu: 2 threads\x1b[2J");
    m.now = lent("wait.decode");
    m.wall_ns = seconds * SECOND;
    m.open_ns = open * SECOND;
    m.at_unix_ms = seconds * 1000;
    m.n_accounts = 2;
    m.accounts = account_ptrs;
    m.n_counters = 1;
    m.counters = counters;
    m.n_readings = 1;
    m.readings = readings;
    return hear(subject_telemetry(&space, (struct lane_name){node, gpu}, "device"), &m);
}

static void claim_device(void) {
    begin();
    CHECK(hear_device("w2", 1, "a", 10, 4, 1));
    CHECK(hear_device("w2", 0, "a", 10, 4, 1));
    CHECK(hear_device("w1", 7, "a", 10, 4, 1));
    CHECK_EQ(3, picture.lanes_count);
    CHECK_STR("w1", picture.lanes[0].node); /* by name, then number */
    CHECK_EQ(0, picture.lanes[1].gpu);
    const struct watch_lane *lane = &picture.lanes[2];
    CHECK_STR("cpu: 2 threads?[2J", lane->device); /* nothing that a terminal would obey */
    CHECK_EQ(5, watch_counter(lane->counters, lane->counters_count, "jobs_done"));
    CHECK_EQ(0, watch_counter(lane->counters, lane->counters_count, "absent"));
    CHECK(lane->known[BELLOWS__V1__SENSOR__TEMPERATURE_CELSIUS] &&
          !lane->known[BELLOWS__V1__SENSOR__POWER_MILLIWATT]);
    struct watch_minute m = watch_minute_of(lane); /* all of a session shorter than a minute */
    CHECK_EQ(10 * SECOND, m.wall_ns);
    CHECK_EQ(5 * SECOND, m.ns[LEDGER_WAIT_DECODE]);
    CHECK_EQ(5 * SECOND, m.compute_ns); /* with the proof that is not finished */
}

/* What the stream keeps of a lane that speaks each second may be ten seconds old; of one that is dead it is older, or nothing follows. */
static void claim_silent(void) {
    uint64_t now_s = clock_unix_ns() / SECOND, now_ms = now_s * 1000;
    begin();
    picture.listens = false;
    CHECK(hear_device("lives", 0, "a", now_s - 9, 4, 1));
    CHECK(hear_device("died", 0, "a", now_s - 60, 4, 1));
    picture.listens = true;
    const struct watch_lane *died = &picture.lanes[0], *lives = &picture.lanes[1];
    CHECK_STR("died", died->node);
    CHECK(watch_is_silent(died, now_ms));
    CHECK(!watch_is_silent(lives, now_ms) && !watch_is_silent(lives, now_ms + 2000));
    CHECK(watch_is_silent(lives, now_ms + 10500)); /* it should have spoken */
    CHECK(hear_device("lives", 0, "a", now_s + 1, 4, 1));
    CHECK(!watch_is_silent(lives, now_ms + 8900));
    CHECK(watch_is_silent(lives, now_ms + 9100)); /* of its own words, eight seconds are all */
    CHECK(hear_device("died", 0, "b", now_s + 1, 4, 1));
    CHECK(!watch_is_silent(died, now_ms + 8900));
}

static void claim_minute(void) {
    begin();
    for (uint64_t s = 30; s <= 130; s++) {
        hear_device("w", 0, "a", s, s < 100 ? 0 : s - 100, 0);
    }
    CHECK_EQ(WATCH_SAMPLES_MAX, picture.lanes[0].samples_count);
    struct watch_minute m = watch_minute_of(&picture.lanes[0]);
    CHECK_EQ(60 * SECOND, m.wall_ns);
    CHECK_EQ(30 * SECOND, m.compute_ns);
    CHECK_EQ(30 * SECOND, m.ns[LEDGER_WAIT_DECODE]);
    hear_device("w", 0, "a", 129, 29, 0); /* late: ignored */
    CHECK_EQ(60 * SECOND, watch_minute_of(&picture.lanes[0]).wall_ns);
    hear_device("w", 0, "b", 3, 1, 0); /* another process */
    m = watch_minute_of(&picture.lanes[0]);
    CHECK_EQ(3 * SECOND, m.wall_ns);
    CHECK_EQ(1 * SECOND, m.compute_ns);
}

static void claim_bar(void) {
    struct watch_minute m = {.wall_ns = 40, .compute_ns = 20};
    char bar[41];
    m.ns[LEDGER_WAIT_DECODE] = 10;
    m.ns[LEDGER_WAIT_NO_WORK] = 10;
    watch_bar(bar, 8, &m);
    CHECK_STR("####dd..", bar);
    watch_bar(bar, 40, &m);
    CHECK_STR("####################dddddddddd..........", bar);
    m.ns[LEDGER_WAIT_DECODE] = 1; /* a sliver does not push others aside */
    watch_bar(bar, 4, &m);
    CHECK_EQ(4, strlen(bar));
    watch_bar(bar, 5, &(struct watch_minute){0});
    CHECK_STR("     ", bar);
    watch_bar(bar, 0, &m);
    CHECK_STR("", bar);
    for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) { /* every cause has a letter of its own */
        enum ledger_account account = (enum ledger_account)i;
        CHECK_EQ(ledger_account_is_compute(account), watch_letter(account) == '#');
    }
}

static bool hear_event(const char *job, Bellows__V1__JobState state, const char *stage,
                       uint64_t at_ms, const char *reason) {
    Bellows__V1__Event m = BELLOWS__V1__EVENT__INIT;
    m.version = WIRE_VERSION;
    m.tenant = lent("acme");
    m.job_id = lent(job);
    m.state = state;
    m.stage = lent(stage);
    m.reason = lent(reason);
    m.error_name = lent(reason[0] ? "E_UNSAT" : "");
    m.at_unix_ms = at_ms;
    return hear(subject_event(&space, (struct job_name){"acme", job}, stage), &m);
}

static void claim_jobs(void) {
    begin();
    hear_event("j1", BELLOWS__V1__JOB_STATE__JOB_FAILED, "failed", 2000,
               "the witness does not satisfy");
    hear_event("j1", BELLOWS__V1__JOB_STATE__JOB_RUNNING, "running", 1500,
               ""); /* older news, heard later */
    const struct watch_job *job = watch_find_job(&picture, "acme", "j1");
    CHECK(job && job->failed);
    CHECK_STR("failed", job->state);
    CHECK_STR("E_UNSAT", job->error);
    CHECK_EQ(1500, job->first_ms);
    for (int i = 0; i < WATCH_JOBS_MAX + 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "k%d", i);
        hear_event(name, BELLOWS__V1__JOB_STATE__JOB_DONE, "done", 3000 + (uint64_t)i, "");
    }
    CHECK_EQ(WATCH_JOBS_MAX, picture.jobs_count);
    CHECK(!watch_find_job(&picture, "acme", "j1")); /* the one heard of longest ago made room */
    CHECK(watch_find_job(&picture, "acme", "k521"));
}

static void claim_lane(void) {
    begin();
    Bellows__V1__LaneReport m = BELLOWS__V1__LANE_REPORT__INIT;
    Bellows__V1__JobInHand hand[40], *ptrs[40];
    for (size_t i = 0; i < COUNT_OF(hand); i++) {
        bellows__v1__job_in_hand__init(&hand[i]);
        hand[i].job_id = lent("j");
        hand[i].stage = lent("proving");
        hand[i].permille = 4000;
        ptrs[i] = &hand[i];
    }
    m.version = WIRE_VERSION;
    m.state = 4;
    m.reason = lent("fenced after 3 strikes");
    m.n_jobs = COUNT_OF(hand);
    m.jobs = ptrs;
    CHECK(hear(subject_telemetry(&space, (struct lane_name){"w", 0}, "lane"), &m));
    const struct watch_lane *lane = &picture.lanes[0];
    CHECK_EQ(4, lane->state);
    CHECK_EQ(WATCH_HAND_MAX, lane->hand_count);
    CHECK_EQ(1000, lane->hand[0].permille);
    CHECK_STR("fenced after 3 strikes", lane->reason);
}

static void hear_lane_with(const char *job, uint64_t at_ms) {
    Bellows__V1__LaneReport m = BELLOWS__V1__LANE_REPORT__INIT;
    Bellows__V1__JobInHand hand = BELLOWS__V1__JOB_IN_HAND__INIT, *hands[] = {&hand};
    hand.job_id = lent(job);
    hand.stage = lent("decode");
    hand.age_ns = SECOND / 4;
    m.version = WIRE_VERSION;
    m.state = 2;
    m.at_unix_ms = at_ms;
    m.depth = 1;
    m.depth_max = 4;
    m.n_jobs = 1;
    m.jobs = hands;
    CHECK(hear(subject_telemetry(&space, (struct lane_name){"w", 0}, "lane"), &m));
}

static void claim_kept(void) {
    begin();
    picture.listens = false; /* read from the stream */
    CHECK(hear_device("w", 0, "a", 10, 4, 1));
    hear_lane_with("ended", 10000);
    const struct watch_lane *lane = &picture.lanes[0];
    CHECK_EQ(2, lane->state);
    CHECK_EQ(4, lane->depth_max);
    CHECK_EQ(1, lane->samples_count);
    CHECK_EQ(0, lane->depth);
    CHECK_EQ(0, lane->hand_count);
    CHECK_STR("?", lane->now);
    CHECK(!lane->spoke_device && !lane->spoke_lane);
    picture.listens = true;
    CHECK(hear_device("w", 0, "a", 11, 4, 1));
    CHECK_STR("wait.decode", lane->now);
    CHECK(lane->spoke_device && !lane->spoke_lane);
    hear_lane_with("begun", 11000);
    CHECK(lane->spoke_lane);
    CHECK_EQ(1, lane->depth);
    CHECK_EQ(1, lane->hand_count);
    CHECK_STR("begun", lane->hand[0].job);
}

static void claim_limits(void) {
    begin();
    for (uint32_t i = 0; i < WATCH_LANES_MAX + 5; i++) {
        CHECK_EQ(i < WATCH_LANES_MAX, hear_device("w", i, "a", 1, 0, 0));
    }
    CHECK_EQ(WATCH_LANES_MAX, picture.lanes_count);
    CHECK_EQ(5, picture.dropped);
    CHECK(!watch_hear(&picture, &space, "bellows.tel.w.0.weather", bytes_of("", 0)));
    CHECK(!watch_hear(&picture, &space, "something.else", bytes_of("", 0)));
}

static void claim_senseless(void) {
    static const char *const subjects[] = {"bellows.tel.w.0.device", "bellows.tel.w.0.lane",
                                           "bellows.tel.w.0.keys",   "bellows.tel.w.0.span",
                                           "bellows.tel.w.0.error",  "bellows.tel.fleet",
                                           "bellows.evt.t.j.done"};
    struct rng *rng = check_rng();
    begin();
    for (int i = 0; i < 20000; i++) {
        uint8_t data[64];
        size_t len = rng_below(rng, sizeof data + 1);
        rng_fill(rng, data, len);
        if (len > 1) {
            data[0] = 8; /* version = 1, so that the rest is looked at */
            data[1] = 1;
        }
        (void)watch_hear(&picture, &space, subjects[rng_below(rng, COUNT_OF(subjects))],
                         bytes_of(data, len));
    }
    watch_picture_done(&picture);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a device's report stands under its lane, printable", claim_device},
        {"a lane is silent when it should have spoken, however old what is kept of it",
         claim_silent},
        {"the last minute is the last minute of this session", claim_minute},
        {"a bar is as long as asked, each cause as long as its share", claim_bar},
        {"jobs are followed by their newest event, the oldest leave", claim_jobs},
        {"a lane's report is cut to what fits", claim_lane},
        {"what the stream kept says nothing of this moment: no job in hand before the lane speaks",
         claim_kept},
        {"lanes beyond the limit and strange subjects are counted, not kept", claim_limits},
        {"senseless bytes do no harm", claim_senseless},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
