/* Proofs that fail their own check: who is at fault, and what becomes of a device that is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "tests/unit/daemon/fleet.h"

#define SECOND UINT64_C(1000000000)
static const char MUL[] = "bn128/mul";

static bool lane_is_fenced(void *lane) {
    return lane_ended(lane) == LANE_FENCED;
}

static uint64_t results_stored(struct fleet *f) {
    struct stream_info info;
    struct subject stream = stream_name(&f->user.space, "DONE");
    CHECK_OK(stream_info(&info, f->user.link, stream.text));
    return info.messages_count;
}

static void claim_liar(void) {
    struct fleet *f = fleet_new(1);
    char reason[FLEET_REASON_BYTES];
    fleet_trouble(0, TROUBLE_LIE, 0);
    fleet_submit(f, MUL, 6);
    wait_until(lane_is_fenced, f->lanes[0].lane, "the lane whose device lies is fenced");
    fleet_wait_state(reason, f, 0, BELLOWS__V1__LANE_STATE__LANE_FENCED);
    CHECK_HAS(reason, "fenced after 3 strikes");
    CHECK_HAS(reason, "wrongly");
    CHECK_EQ(3, lane_counts_of(f->lanes[0].lane).strikes);
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).done);
    CHECK_EQ(0, results_stored(f)); /* nothing wrong has left */
    fleet_start_lane(f, 1);
    fleet_check(f, MUL, 6);
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).done);
    fleet_trouble(0, TROUBLE_NONE, 0); /* repaired */
    struct subject resume = subject_ctl_lane(&f->user.space, (struct lane_name){"w", 0}, "resume");
    CHECK_OK(give_order(&f->user, resume.text, 0));
    fleet_wait_state(reason, f, 0, BELLOWS__V1__LANE_STATE__LANE_READY);
    CHECK_STR("", reason);
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).strikes);
    fleet_stop_lane(f, 1);
    fleet_prove(f, "after", MUL);
    fleet_free(&f);
}

static void claim_thousand_unsatisfied(void) {
    enum { JOBS = 1000, AT_ONCE = 50 };
    struct fleet *f = fleet_new(2);
    for (int from = 0; from < JOBS; from += AT_ONCE) {
        for (int i = from; i < from + AT_ONCE; i++) {
            char job_id[16];
            snprintf(job_id, sizeof job_id, "u%d", i);
            submit_job(&f->user, &(struct job_order){.case_name = MUL,
                                                     .job_id = job_id,
                                                     .witness = "bn128/bad/unsatisfied.wtns"});
        }
        for (int i = from; i < from + AT_ONCE; i++) {
            char job_id[16];
            snprintf(job_id, sizeof job_id, "u%d", i);
            AUTO(message_free) result_message *r = job_result(&f->user, job_id, 1);
            check_failed(r, "E_UNSAT", "does not satisfy");
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(0, lane_counts_of(f->lanes[i].lane).strikes);
        CHECK_EQ(LANE_GOES_ON, lane_ended(f->lanes[i].lane));
    }
    fleet_prove(f, "after", MUL);
    fleet_free(&f);
}

static bool key_is_refused(void *ctx) {
    struct fleet *f = ctx;
    static int n;
    char job_id[16], path[300];
    snprintf(job_id, sizeof job_id, "k%d", n++);
    snprintf(path, sizeof path, "%s/spoiled", f->dir);
    /* Another circuit's witness: the lane opens the key for it, and proves nothing. */
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = job_id, .key_path = path});
    AUTO(message_free) result_message *r = job_result(&f->user, job_id, 1);
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_FAILED, r->status);
    clock_sleep_ns(SECOND / 2);
    return !strcmp(r->error->name, "E_CURVE");
}

static void claim_bad_key_is_known(void) {
    struct fleet *f = fleet_new(1);
    char path[300];
    snprintf(path, sizeof path, "%s/spoiled", f->dir);
    write_spoiled_key(path, "bn128/chain200");
    wait_until(key_is_refused, f, "the bad key is refused without being proved with");
    submit_job(&f->user,
               &(struct job_order){.case_name = "bn128/chain200", .job_id = "j", .key_path = path});
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    check_failed(r, "E_CURVE", "point 37");
    CHECK_EQ(0, fleet_device_runs(0));
    fleet_prove(f, "after", MUL);
    fleet_free(&f);
}

/* The same key, before there was time to check it: the proof does not verify, and the key is found to be the cause. */
static void claim_bad_key_is_blamed(void) {
    struct fleet *f = fleet_new(1);
    char path[300];
    snprintf(path, sizeof path, "%s/spoiled", f->dir);
    write_spoiled_key(path, "bn128/chain200");
    submit_job(&f->user,
               &(struct job_order){.case_name = "bn128/chain200", .job_id = "j", .key_path = path});
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 1);
    check_failed(r, "E_CURVE", "point 37");
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).strikes);
    fleet_free(&f);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a device that lies is fenced, no wrong proof leaves, and resume brings it back",
         claim_liar},
        {"1000 unsatisfied witnesses cost no device a strike", claim_thousand_unsatisfied},
        {"a key with a bad point is known as such before a job pays for it",
         claim_bad_key_is_known},
        {"a proof that fails under a bad key blames the key", claim_bad_key_is_blamed},
    };
    log_setup(getenv("BELLOWS_TEST_LOG") ? LOG_DEBUG : (enum log_level)(LOG_ERROR + 1), 0);
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
