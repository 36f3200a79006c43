/* A lane on the device, in a whole fleet inside this program: bodies brought ahead of their turn, keys that come and go, devices in trouble, and
 * witnesses that are no good. Every proof that leaves is verified with the key's own verifying key.
 */
#include "node/base/clock.h"
#include "node/base/log.h"
#include "tests/kernel/device.h"
#include "tests/unit/daemon/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MUL[] = "bn128/mul", OTHER[] = "bls12381/mul", BITS[] = "bn128/bits";

static enum err open_device(struct backend **out) {
    struct backend_options options = {.kind = BACKEND_CUDA, .device = getenv("BELLOWS_DEVICE")};
    return gpu_backend_open(out, &options);
}

static struct fleet *device_fleet(void) {
    device_of_test();
    log_setup(getenv("BELLOWS_TEST_LOG") ? LOG_DEBUG : (enum log_level)(LOG_ERROR + 1), 0);
    fleet_backend_open = open_device;
    return fleet_new(1);
}

struct mixed {
    const char *names[3];
    unsigned count;
};

static void send_mixed(struct fleet *f, const struct mixed *m) {
    for (unsigned i = 0; i < m->count; i++) {
        char id[16];
        snprintf(id, sizeof id, "m%u", i);
        f->user.bodies_raw = i % 4 == 3;
        submit_job(&f->user, &(struct job_order){.case_name = m->names[i % 3],
                                                 .job_id = id,
                                                 .body_as_object = i % 2 == 1});
    }
}

static void check_mixed(struct fleet *f, const struct mixed *m) {
    for (unsigned i = 0; i < m->count; i++) {
        char id[16];
        snprintf(id, sizeof id, "m%u", i);
        AUTO(message_free) result_message *r = job_result(&f->user, id, 1);
        check_proved(r, m->names[i % 3], 1);
    }
}

static bool has_step(const result_message *r, const char *step) {
    for (size_t i = 0; i < r->partitions[0]->n_steps; i++) {
        if (!strcmp(step, r->partitions[0]->steps[i]->step)) {
            return true;
        }
    }
    return false;
}

/* One job of the tenant, and what came of it. `file` is below the vectors. */
static result_message *prove_one(struct fleet *f, const char *case_name, const char *file,
                                 bool as_object) {
    static unsigned jobs_count;
    char id[16];
    snprintf(id, sizeof id, "one%u", jobs_count++);
    submit_job(&f->user, &(struct job_order){.case_name = case_name,
                                             .job_id = id,
                                             .witness = file,
                                             .body_as_object = as_object});
    return job_result(&f->user, id, 1);
}

static void claim_mixed(void) {
    struct fleet *f = device_fleet();
    const struct mixed m = {{MUL, OTHER, BITS}, device_of_test()->emulated ? 9 : 60};
    send_mixed(f, &m);
    check_mixed(f, &m);
    AUTO(message_free) result_message *r = job_result(&f->user, "m2", 1); /* packed */
    CHECK(has_step(r, "upload") && !has_step(r, "unpack"));
    fleet_free(&f);
}

/* Everything on the device is given up after an error, and what was brought there is brought again. */
static void claim_trouble(void) {
    struct fleet *f = device_fleet();
    const struct mixed m = {{MUL, BITS, BITS}, 6};
    fleet_trouble(0, TROUBLE_DEVICE, 2);
    send_mixed(f, &m);
    check_mixed(f, &m);
    CHECK_EQ(2, lane_counts_of(f->lanes[0].lane).strikes);
    CHECK_EQ(LANE_GOES_ON, lane_ended(f->lanes[0].lane));
    fleet_free(&f);
}

/* The processor's opinion needs the plain witness of what was brought. */
static void claim_unsatisfied(void) {
    struct fleet *f = device_fleet();
    submit_job(&f->user, &(struct job_order){.case_name = MUL,
                                             .job_id = "u",
                                             .witness = "bn128/bad/unsatisfied.wtns"});
    AUTO(message_free) result_message *r = job_result(&f->user, "u", 1);
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_FAILED, r->status);
    CHECK_STR("E_UNSAT", r->error->name);
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).strikes);
    fleet_free(&f);
}

/* a, b and the assignment: three vectors for the inbox. */
static void claim_evaluations(void) {
    static const char *const cases[] = {"bls12381/bits", "bls12381/base", "bn128/base"};
    struct fleet *f = device_fleet();
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        char file[96];
        snprintf(file, sizeof file, "%s/witness.evaluations", cases[i]);
        AUTO(message_free) result_message *r = prove_one(f, cases[i], file, i % 2 == 0);
        check_proved(r, cases[i], 1);
        CHECK(has_step(r, "upload") && !has_step(r, "unpack"));
    }
    AUTO(message_free)
    result_message *wrong = prove_one(f, "bn128/mul", "bn128/bad/wrong-row.evaluations", false);
    check_failed(wrong, "E_UNSAT", "");
    fleet_free(&f);
}

/* An arena of one frame, and bodies of two and three. */
static void claim_streamed(void) {
    static const char *const cases[] = {"bn128/merkle", "bls12381/chain200", "bn128/chain200"};
    fleet_staging_bytes = FRAME_RAW_BYTES_MIN;
    struct fleet *f = device_fleet();
    f->user.frame_bytes = FRAME_RAW_BYTES_MIN;
    for (unsigned i = 0; i < 2 * COUNT_OF(cases); i++) {
        const char *name = cases[i % COUNT_OF(cases)];
        char file[96];
        f->user.bodies_raw = i % 2 == 0;
        snprintf(file, sizeof file, "%s/witness.wtns", name);
        AUTO(message_free) result_message *r = prove_one(f, name, file, i < COUNT_OF(cases));
        check_proved(r, name, 1);
        CHECK(has_step(r, "upload"));
    }
    f->user.bodies_raw = false;
    AUTO(message_free)
    result_message *e = prove_one(f, "bls12381/bits", "bls12381/bits/witness.evaluations", true);
    check_proved(e, "bls12381/bits", 1);
    /* What streamed by is fetched again for a second opinion. */
    AUTO(message_free)
    result_message *wrong = prove_one(f, "bn128/mul", "bn128/bad/wrong-row.evaluations", true);
    check_failed(wrong, "E_UNSAT", "");
    CHECK_EQ(0, lane_counts_of(f->lanes[0].lane).strikes);
    fleet_free(&f);
    fleet_staging_bytes = UINT64_C(16) << 20;
}

/* Of a device whose memory holds one job and no more: it takes plain scalars from the host when the turn has come. */
static void claim_no_room_ahead(void) {
    fleet_no_room_ahead = true;
    struct fleet *f = device_fleet();
    AUTO(message_free)
    result_message *r = prove_one(f, "bls12381/bits", "bls12381/bits/witness.evaluations", true);
    check_proved(r, "bls12381/bits", 1);
    CHECK(!has_step(r, "upload") && has_step(r, "unpack"));
    AUTO(message_free)
    result_message *w = prove_one(f, "bn128/bits", "bn128/bits/witness.wtns", false);
    check_proved(w, "bn128/bits", 1);
    fleet_free(&f);
    fleet_no_room_ahead = false;
}

static void claim_cancelled(void) {
    struct fleet *f = device_fleet();
    const struct mixed m = {{MUL, MUL, MUL}, 4};
    fleet_trouble(0, TROUBLE_SLOW, 0);
    send_mixed(f, &m);
    clock_sleep_ns(50000000);
    cancel_job(&f->user, "m3");
    AUTO(message_free) result_message *cancelled = job_result(&f->user, "m3", 1);
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_CANCELLED, cancelled->status);
    for (unsigned i = 0; i < 3; i++) {
        char id[16];
        snprintf(id, sizeof id, "m%u", i);
        AUTO(message_free) result_message *r = job_result(&f->user, id, 1);
        check_proved(r, MUL, 1);
    }
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "after"});
    AUTO(message_free) result_message *after = job_result(&f->user, "after", 1);
    check_proved(after, MUL, 1);
    fleet_free(&f);
}

int kernel_lane(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"jobs of several keys, packed and plain, go through the device's inbox", claim_mixed},
        {"after an error of the device what was brought there is brought again", claim_trouble},
        {"an unsatisfied witness that was brought is settled on the processor", claim_unsatisfied},
        {"a cancelled job gives its place back", claim_cancelled},
        {"a, b and the assignment go through the inbox", claim_evaluations},
        {"a body larger than the arena streams through it, and is fetched again for a second "
         "opinion",
         claim_streamed},
        {"where the device takes nothing in ahead, jobs of both kinds wait in host memory",
         claim_no_room_ahead},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
