/* Results are stored once, and kept for three days. */
#include "node/job/result.h"

#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/transport/fleet.h"
#include "node/transport/loopback.h"
#include "tests/check/check.h"

#define HOUR (UINT64_C(3600) * 1000000000)

struct scene {
    struct loopback *broker;
    struct transport *link;
    struct subject_space space;
};

static void scene_open(struct scene *s) {
    CHECK_OK(subject_space_init(&s->space, NULL));
    CHECK_OK(loopback_open(&s->broker));
    CHECK_OK(loopback_connect(&s->link, s->broker, NULL));
    CHECK_OK(fleet_ensure(s->link, &s->space, NULL));
}

static void scene_close(struct scene *s) {
    transport_close(&s->link);
    loopback_close(&s->broker);
}

static struct bytes_mut failed_result(struct job_name name, enum err code) {
    job_message job = BELLOWS__V1__JOB__INIT;
    uint8_t digest[SHA256_BYTES] = {1};
    struct bytes_mut packed;
    job.key_digest = (ProtobufCBinaryData){sizeof digest, digest};
    struct job_report report = {
        .name = name, .generation = 1, .job = &job, .fault = {code, "as the test wants it"}};
    CHECK_OK(job_report_pack(&packed, &report, NULL, 0));
    return packed;
}

static void claim_first_writer_wins(void) {
    struct scene s;
    struct job_name name = {"acme", "j"};
    scene_open(&s);
    struct job_place at = {s.link, &s.space, name};
    struct bytes_mut first = failed_result(name, E_CANCELLED),
                     second = failed_result(name, E_UNSAT);
    Bellows__V1__Status status;
    bool won = false, found = false;
    AUTO(message_free) result_message *stored = NULL;
    CHECK_OK(result_store(&status, &won, &at, 1, bytes_of(first.ptr, first.len)));
    CHECK(won);
    CHECK_OK(result_store(&status, &won, &at, 1, bytes_of(second.ptr, second.len)));
    CHECK(!won);
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_CANCELLED, status); /* the loser learns what was stored */
    CHECK_OK(result_fetch(&stored, &found, &at, 1));
    CHECK(found);
    CHECK_STR("E_CANCELLED", stored->error->name);
    CHECK_OK(result_store(&status, &won, &at, 2, bytes_of(second.ptr, second.len)));
    CHECK(won); /* another generation, another subject */
    mem_free(first.ptr);
    mem_free(second.ptr);
    scene_close(&s);
}

static bool is_there(struct scene *s, struct job_name name) {
    struct job_place at = {s->link, &s->space, name};
    AUTO(message_free) result_message *stored = NULL;
    bool found = false;
    CHECK_OK(result_fetch(&stored, &found, &at, 1));
    return found;
}

static void claim_kept_for_72_hours(void) {
    struct scene s;
    struct job_name name = {"acme", "j"};
    uint64_t start_ns = clock_ns();
    Bellows__V1__Status status;
    bool won = false;
    clock_hold(start_ns);
    scene_open(&s);
    struct job_place at = {s.link, &s.space, name};
    struct bytes_mut result = failed_result(name, E_UNSAT);
    CHECK_OK(result_store(&status, &won, &at, 1, bytes_of(result.ptr, result.len)));
    clock_hold(start_ns + 72 * HOUR - 1);
    CHECK(is_there(&s, name));
    clock_hold(start_ns + 73 * HOUR);
    CHECK(!is_there(&s, name));
    mem_free(result.ptr);
    scene_close(&s);
    clock_release();
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the first result is the only one, and the loser learns it", claim_first_writer_wins},
        {"a result is kept for 72 hours", claim_kept_for_72_hours},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
