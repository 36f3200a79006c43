/* The backlog in figures: by hand, and against a plain count at random. */
#include "node/coordinator/survey.h"
#include "tests/check/check.h"

#include <string.h>

enum { JOBS_MAX = 400, PARTS_MAX = 4 };
static struct job_view jobs[JOBS_MAX], *pointers[JOBS_MAX];
static struct part_view parts[JOBS_MAX][PARTS_MAX];
static struct lane_view views[3];
static struct survey survey;
static struct estimates estimates;

/* Key i has number i. */
static void know_keys(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct sha256 digest = {{(uint8_t)i, (uint8_t)(i >> 8)}};
        uint32_t idx;
        CHECK_OK(estimates_key(&idx, &estimates, &digest));
        CHECK_EQ(i, idx);
    }
}

static struct backlog backlog_of(size_t count) {
    for (size_t i = 0; i < count; i++) {
        pointers[i] = &jobs[i];
        jobs[i].parts = parts[i];
    }
    return (struct backlog){.jobs = pointers, .count = count};
}

static struct job_view *set_job(size_t i, uint32_t key, uint8_t priority, uint64_t arrived_ns,
                                uint32_t parts_count, enum job_state state) {
    jobs[i] = (struct job_view){
        .key_idx = key, .priority = priority, .arrived_ns = arrived_ns, .parts_count = parts_count};
    for (uint32_t k = 0; k < parts_count; k++) {
        parts[i][k] = (struct part_view){.state = state};
    }
    return &jobs[i];
}

static struct lanes two_lanes(void) {
    memset(views, 0, sizeof views);
    views[0].alive = true; /* draining: knows the key, takes nothing */
    for (int i = 1; i <= 2; i++) {
        views[i].alive = views[i].open = true;
        views[i].device_idx = 1;
    }
    estimates_done(&estimates);
    CHECK_OK(estimates_init(&estimates));
    CHECK_EQ(0, estimates_device(&estimates, "cpu", "old"));
    CHECK_EQ(1, estimates_device(&estimates, "cpu", "new"));
    know_keys(JOBS_MAX);
    estimates_tell(&estimates, 1, 0, 700, 0);
    estimates_tell(&estimates, 2, 1, 50, 0);
    return (struct lanes){.views = views, .count = 3, .estimates = &estimates};
}

static void claim_figures(void) {
    struct lanes lanes = two_lanes();
    set_job(0, 1, 2, 100, 2, JOB_QUEUED)->deadline_ns = 1000 + 1500;
    set_job(1, 1, 2, 400, 3, JOB_QUEUED);
    parts[1][0].state = JOB_RUNNING;
    parts[1][0].cost_ns = 30;
    parts[1][1].state = JOB_DONE;
    set_job(2, 1, 0, 900, 1, JOB_QUEUED)->deadline_ns = 1000 + 1000000;
    set_job(3, 2, 2, 990, 1, JOB_PLACED);
    parts[3][0].cost_ns = 20;
    struct backlog backlog = backlog_of(4);
    survey_take(&survey, &backlog, &lanes, 1000);
    CHECK_EQ(4, survey.jobs_open);
    CHECK_EQ(4, survey.queued);
    CHECK_EQ(1, survey.placed);
    CHECK_EQ(1, survey.running);
    CHECK_EQ(3, survey.lanes_known);
    CHECK_EQ(2, survey.lanes_open);
    CHECK_EQ(3, survey.waiting[2]);
    CHECK_EQ(1, survey.waiting[0]);
    CHECK_EQ(900, survey.oldest_ns[2]);
    CHECK_EQ(100, survey.oldest_ns[0]);
    CHECK_EQ(4 * 700 + 30 + 20, survey.backlog_ns); /* the key's speed is learnt, if elsewhere */
    CHECK_EQ(survey.backlog_ns / 2, survey.backlog_wall_ns);
    CHECK_EQ(0, survey.deadlines_at_risk); /* 1425 < 1500 */
    CHECK_EQ(2, survey.queues_count);
    CHECK_EQ(2, survey.queues[0].priority); /* most work first */
    CHECK_EQ(3, survey.queues[0].partitions_count);
    CHECK_EQ(2100, survey.queues[0].work_ns);
    CHECK_EQ(900, survey.queues[0].oldest_ns);
    CHECK_EQ(0, survey.queues[1].priority);
    CHECK(!survey.queues[0].label);
    jobs[0].deadline_ns = 1000 + 1400;
    survey_take(&survey, &backlog, &lanes, 1000);
    CHECK_EQ(1, survey.deadlines_at_risk);
}

static void claim_labels(void) {
    struct lanes lanes = two_lanes();
    char young[] = "young", old[] = "old", running[] = "running";
    set_job(0, 1, 2, 50, 1, JOB_QUEUED); /* the oldest has none */
    set_job(1, 1, 2, 400, 1, JOB_QUEUED)->label = young;
    set_job(2, 1, 2, 100, 1, JOB_QUEUED)->label = old;
    set_job(3, 1, 2, 10, 1, JOB_RUNNING)->label = running; /* waits no more */
    struct backlog backlog = backlog_of(4);
    survey_take(&survey, &backlog, &lanes, 1000);
    CHECK_EQ(1, survey.queues_count);
    CHECK_STR("old", survey.queues[0].label);
    CHECK_EQ(950, survey.queues[0].oldest_ns);
}

static void claim_nothing(void) {
    struct lanes lanes = {.views = views, .estimates = &estimates};
    struct backlog backlog = backlog_of(0);
    survey_take(&survey, &backlog, &lanes, 5);
    CHECK_EQ(0, survey.jobs_open);
    CHECK_EQ(0, survey.queues_count);
    set_job(0, 1, 3, 0, 1, JOB_QUEUED); /* and work without a lane */
    backlog = backlog_of(1);
    survey_take(&survey, &backlog, &lanes, 5);
    CHECK_EQ(1, survey.waiting[3]);
    CHECK_EQ(0, survey.backlog_ns);
}

static void claim_many_queues(void) {
    struct lanes lanes = two_lanes();
    for (size_t i = 0; i < JOBS_MAX; i++) {
        set_job(i, (uint32_t)i, 1, 0, 1, JOB_QUEUED);
    }
    struct backlog backlog = backlog_of(JOBS_MAX);
    survey_take(&survey, &backlog, &lanes, 1);
    CHECK_EQ(SURVEY_QUEUES_MAX, survey.queues_count);
    CHECK_EQ(JOBS_MAX - SURVEY_QUEUES_MAX, survey.queues_dropped);
    CHECK_EQ(JOBS_MAX, survey.queued);
    CHECK_EQ(JOBS_MAX, survey.waiting[1]);
    uint64_t listed_ns = 0;
    for (size_t i = 0; i < survey.queues_count; i++) {
        listed_ns += survey.queues[i].work_ns;
    }
    CHECK(survey.backlog_ns > listed_ns); /* what is not listed counts all the same */
}

static void claim_random(void) {
    struct rng *rng = check_rng();
    struct lanes lanes = two_lanes();
    for (int round = 0; round < 200; round++) {
        size_t count = rng_below(rng, JOBS_MAX + 1), waiting[JOB_PRIORITY_COUNT][3] = {{0}},
               all = 0;
        for (size_t i = 0; i < count; i++) {
            uint32_t key = (uint32_t)rng_below(rng, 3);
            uint8_t priority = (uint8_t)rng_below(rng, JOB_PRIORITY_COUNT);
            uint32_t parts_count = 1 + (uint32_t)rng_below(rng, PARTS_MAX);
            set_job(i, key, priority, rng_below(rng, 1000), parts_count, JOB_QUEUED);
            for (uint32_t k = 0; k < parts_count; k++) {
                bool queued = rng_below(rng, 2);
                parts[i][k].state = queued ? JOB_QUEUED : JOB_DONE;
                waiting[priority][key] += queued;
                all += queued;
            }
        }
        struct backlog backlog = backlog_of(count);
        survey_take(&survey, &backlog, &lanes, 1000);
        CHECK_EQ(all, survey.queued);
        for (size_t i = 0; i < survey.queues_count; i++) {
            const struct survey_queue *q = &survey.queues[i];
            CHECK_EQ(waiting[q->priority][q->key_digest.b[0]], q->partitions_count);
            waiting[q->priority][q->key_digest.b[0]] = 0;
            CHECK(i == 0 || q->work_ns <= survey.queues[i - 1].work_ns);
        }
        for (size_t i = 0; i < COUNT_OF(waiting); i++) {
            CHECK_EQ(0, waiting[i][0] + waiting[i][1] + waiting[i][2]);
        }
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"partitions, queues, work and deadlines are counted", claim_figures},
        {"a queue has the label of the oldest of its jobs that has one", claim_labels},
        {"an empty fleet has empty figures", claim_nothing},
        {"queues beyond the limit are counted, not listed", claim_many_queues},
        {"every queue holds what a plain count finds", claim_random},
    };
    int code = check_main(argc, argv, claims, COUNT_OF(claims));
    estimates_done(&estimates);
    return code;
}
