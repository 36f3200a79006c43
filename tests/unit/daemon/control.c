/* Orders to lanes: drain and resume, with bounds; cancels that come late. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"
#include "tests/unit/daemon/fleet.h"

#define SECOND UINT64_C(1000000000)
static const char MUL[] = "bn128/mul";

static void claim_orders(void) {
    struct fleet *f = fleet_new(2);
    char reason[FLEET_REASON_BYTES];
    struct subject_space *space = &f->user.space;
    struct subject drain = subject_ctl_lane(space, (struct lane_name){"w", 0}, "drain");
    struct subject node = subject_ctl_node(space, "w", "drain");
    struct subject all = subject_ctl_all(space, "resume");
    struct subject nonsense = subject_ctl_lane(space, (struct lane_name){"w", 0}, "dance");
    struct subject nobody = subject_ctl_lane(space, (struct lane_name){"w", 9}, "drain");
    CHECK_OK(give_order(&f->user, drain.text, 0));
    fleet_wait_state(reason, f, 0, BELLOWS__V1__LANE_STATE__LANE_DRAINING);
    CHECK_STR("for the test", reason);
    fleet_submit(f, MUL, 8);
    fleet_check(f, MUL, 8);
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).done); /* all of it went to the other one */
    CHECK_EQ(LANE_GOES_ON, lane_ended(f->lanes[0].lane));
    CHECK_ERR(E_USAGE, give_order(&f->user, nonsense.text, 0));
    CHECK_HAS(err_detail(), "dance");
    CHECK_ERR(E_NET, give_order(&f->user, nobody.text, 0));
    CHECK_OK(
        transport_send(f->user.link, node.text, (struct bytes){0})); /* the lanes obey, silently */
    fleet_wait_state(reason, f, 1, BELLOWS__V1__LANE_STATE__LANE_DRAINING);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "waits"});
    clock_sleep_ns(SECOND / 2);
    struct record_slot slot = job_record(&f->user, "waits", JOB_QUEUED);
    record_slot_done(&slot);
    CHECK_OK(transport_send(f->user.link, all.text, (struct bytes){0}));
    AUTO(message_free) result_message *r = job_result(&f->user, "waits", 1);
    check_proved(r, MUL, 1);
    fleet_wait_state(reason, f, 0, BELLOWS__V1__LANE_STATE__LANE_READY);
    fleet_wait_state(reason, f, 1, BELLOWS__V1__LANE_STATE__LANE_READY);
    fleet_free(&f);
}

static void claim_drain_with_a_bound(void) {
    struct fleet *f = fleet_new(1);
    char reason[FLEET_REASON_BYTES];
    fleet_trouble(0, TROUBLE_SLOW, 0);
    fleet_submit(f, MUL, 6);
    struct record_slot slot = job_record(&f->user, "j0", JOB_RUNNING);
    record_slot_done(&slot);
    struct subject drain = subject_ctl_lane(&f->user.space, (struct lane_name){"w", 0}, "drain");
    CHECK_OK(give_order(&f->user, drain.text, 1)); /* one millisecond: what runs goes back too */
    fleet_wait_state(reason, f, 0, BELLOWS__V1__LANE_STATE__LANE_DRAINING);
    uint64_t start_ns = clock_ns();
    while (!lane_is_empty(f->lanes[0].lane)) {
        clock_sleep_ns(SECOND / 100);
        CHECK(clock_ns() - start_ns < 2 * SECOND);
    }
    CHECK_OK(lane_resume(f->lanes[0].lane));
    fleet_check(f, MUL, 6);
    slot = job_record(&f->user, "j5", JOB_DONE);
    CHECK_EQ(0, record_part_counts(&slot.record.parts[0]).attempts); /* going back costs nothing */
    record_slot_done(&slot);
    lane_leave(f->lanes[0].lane, 0);
    CHECK_ERR(E_CANCELLED, lane_resume(f->lanes[0].lane));
    fleet_free(&f);
}

/* On a slow line the first one's cancel comes to a lane that has the second one already. */
static void claim_cancel_late(void) {
    struct fleet *f = fleet_new(0);
    Bellows__V1__Control late = BELLOWS__V1__CONTROL__INIT;
    struct bytes_mut packed;
    struct subject subject = subject_ctl_cancel(&f->user.space, (struct job_name){"acme", "j"});
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j"});
    struct record_slot slot = job_record(&f->user, "j", JOB_QUEUED);
    record_slot_done(&slot);
    CHECK_EQ(JOB_CANCELLED, cancel_job(&f->user, "j"));
    fleet_trouble(0, TROUBLE_HANG, 0);
    fleet_start_lane(f, 0);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j", .generation = 2});
    slot = job_record(&f->user, "j", JOB_RUNNING);
    record_slot_done(&slot);
    late.version = WIRE_VERSION;
    late.generation = 1;
    late.tenant = (char *)"acme";
    late.job_id = (char *)"j";
    CHECK_OK(message_pack(&packed, &late, CONTROL_BYTES_MAX, "control"));
    CHECK_OK(transport_send(f->user.link, subject.text, bytes_of(packed.ptr, packed.len)));
    CHECK_OK(transport_flush(f->user.link, SECOND));
    /* and the request that began it to the coordinator, once more */
    AUTO(message_done) struct message answer = {0};
    AUTO(message_free) Bellows__V1__ControlReply *reply = NULL;
    subject = subject_ctl_tenant(&f->user.space, "acme", "cancel");
    CHECK_OK(transport_request(&answer, f->user.link, subject.text,
                               bytes_of(packed.ptr, packed.len), 5 * SECOND));
    CHECK_OK(message_unpack(&reply, &bellows__v1__control_reply__descriptor, answer.data,
                            CONTROL_BYTES_MAX, "reply"));
    CHECK(!reply->ok);
    CHECK_HAS(reply->error_detail, "sent again");
    mem_free(packed.ptr);
    clock_sleep_ns(SECOND / 4); /* the lane has heard of it */
    fleet_trouble(0, TROUBLE_NONE, 0);
    AUTO(message_free) result_message *r = job_result(&f->user, "j", 2);
    check_proved(r, MUL, 1);
    fleet_free(&f);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"drain and resume by order: one lane, a node, all", claim_orders},
        {"a drain gives back what runs when its grace is over, and costs no attempt",
         claim_drain_with_a_bound},
        {"a late cancel leaves alone what was sent again under its id", claim_cancel_late},
    };
    log_setup(getenv("BELLOWS_TEST_LOG") ? LOG_DEBUG : (enum log_level)(LOG_ERROR + 1), 0);
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
