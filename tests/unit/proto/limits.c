/* Each message of a fleet has a limit by name: the largest that our own code can make fits, one byte more is refused unread. */
#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/job.pb-c.h"
#include "proto/unpack.h"
#include "tests/check/check.h"

#include <string.h>

enum { DETAIL_BYTES = 512 /* ERR_DETAIL_BYTES, and more than a record keeps */, KEYS_TOLD = 64 };

static char id[ID_BYTES_MAX + 1], detail[DETAIL_BYTES];

static void fill(void) {
    memset(id, 'x', ID_BYTES_MAX);
    memset(detail, 'y', DETAIL_BYTES - 1);
}

static void check_fits(const void *message, size_t bytes_max, const char *what) {
    struct bytes_mut packed = {0};
    enum err err = message_pack(&packed, message, bytes_max, what);
    CHECK_MSG(err == OK, "%s", err_detail());
    mem_free(packed.ptr);
}

static void claim_small_ones_fit(void) {
    Bellows__V1__Heartbeat beat = BELLOWS__V1__HEARTBEAT__INIT;
    Bellows__V1__Event event = BELLOWS__V1__EVENT__INIT;
    Bellows__V1__Control control = BELLOWS__V1__CONTROL__INIT;
    Bellows__V1__ControlReply reply = BELLOWS__V1__CONTROL_REPLY__INIT;
    Bellows__V1__CancelMark mark = BELLOWS__V1__CANCEL_MARK__INIT;
    Bellows__V1__Lease lease = BELLOWS__V1__LEASE__INIT;
    fill();
    beat.node = beat.session = beat.tenant = beat.job_id = id;
    beat.sequence = beat.queued_ns = beat.at_unix_ms = UINT64_MAX;
    beat.gpu = beat.depth = beat.permille = UINT32_MAX;
    check_fits(&beat, HEARTBEAT_BYTES_MAX, "heartbeat");
    event.tenant = event.job_id = event.node = event.stage = id;
    event.reason = detail;
    event.generation = event.epoch = event.at_unix_ms = UINT64_MAX;
    check_fits(&event, EVENT_BYTES_MAX, "event");
    control.tenant = control.job_id = id;
    control.reason = detail;
    control.generation = control.grace_ms = UINT64_MAX;
    check_fits(&control, CONTROL_BYTES_MAX, "control");
    reply.error_name = id;
    reply.error_detail = detail;
    check_fits(&reply, CONTROL_BYTES_MAX, "control reply");
    mark.reason = detail;
    mark.generation = mark.at_unix_ms = UINT64_MAX;
    check_fits(&mark, CONTROL_BYTES_MAX, "cancel mark");
    lease.holder = id;
    lease.term = lease.since_unix_ms = UINT64_MAX;
    check_fits(&lease, LEASE_BYTES_MAX, "lease");
}

static void claim_large_ones_fit(void) {
    Bellows__V1__LaneInfo info = BELLOWS__V1__LANE_INFO__INIT;
    Bellows__V1__Assignment assignment = BELLOWS__V1__ASSIGNMENT__INIT;
    Bellows__V1__KeyRecord key = BELLOWS__V1__KEY_RECORD__INIT;
    Bellows__V1__KeySpeed speeds[KEYS_TOLD], *speed_ptrs[KEYS_TOLD];
    ProtobufCBinaryData digests[KEYS_TOLD];
    static uint8_t digest[32], job[JOB_BYTES_MAX];
    fill();
    for (size_t i = 0; i < KEYS_TOLD; i++) {
        digests[i] = (ProtobufCBinaryData){sizeof digest, digest};
        bellows__v1__key_speed__init(&speeds[i]);
        speeds[i].key_digest = digests[i];
        speeds[i].prove_ns = speeds[i].load_ns = UINT64_MAX;
        speed_ptrs[i] = &speeds[i];
    }
    info.node = info.session = info.backend = info.bellows_version = id;
    info.device = info.reason = detail;
    info.device_bytes = info.device_bytes_free = info.host_bytes = UINT64_MAX;
    info.n_keys_resident = info.n_keys_cached = info.n_speeds = KEYS_TOLD;
    info.keys_resident = info.keys_cached = digests;
    info.speeds = speed_ptrs;
    check_fits(&info, LANE_INFO_BYTES_MAX, "lane entry");
    assignment.job = (ProtobufCBinaryData){sizeof job, job};
    assignment.generation = assignment.epoch = assignment.budget_ns = UINT64_MAX;
    assignment.settle_salt = detail;
    check_fits(&assignment, ASSIGNMENT_BYTES_MAX, "assignment");
    key.digest = digests[0];
    key.format = key.nuid = id;
    key.label = detail;
    key.file_bytes = key.domain_size = key.terms_a_count = key.terms_b_count = UINT64_MAX;
    check_fits(&key, KEY_RECORD_BYTES_MAX, "key record");
}

static void claim_more_is_refused(void) {
    static const struct {
        const ProtobufCMessageDescriptor *type;
        size_t bytes_max;
        const char *what;
    } rows[] = {
        {&bellows__v1__heartbeat__descriptor, HEARTBEAT_BYTES_MAX, "heartbeat"},
        {&bellows__v1__event__descriptor, EVENT_BYTES_MAX, "event"},
        {&bellows__v1__control__descriptor, CONTROL_BYTES_MAX, "control"},
        {&bellows__v1__control_reply__descriptor, CONTROL_BYTES_MAX, "control reply"},
        {&bellows__v1__cancel_mark__descriptor, CONTROL_BYTES_MAX, "cancel mark"},
        {&bellows__v1__lane_info__descriptor, LANE_INFO_BYTES_MAX, "lane entry"},
        {&bellows__v1__assignment__descriptor, ASSIGNMENT_BYTES_MAX, "assignment"},
        {&bellows__v1__key_record__descriptor, KEY_RECORD_BYTES_MAX, "key record"},
        {&bellows__v1__lease__descriptor, LEASE_BYTES_MAX, "lease"},
        {&bellows__v1__job__descriptor, JOB_BYTES_MAX, "job"},
        {&bellows__v1__result__descriptor, RESULT_BYTES_MAX, "result"},
        {&bellows__v1__job_record__descriptor, RECORD_BYTES_MAX, "job record"},
        {&bellows__v1__dead_letter__descriptor, MESSAGE_BYTES_MAX, "dead letter"},
    };
    uint8_t *data = mem_zero_alloc(MESSAGE_BYTES_MAX + 1, 1);
    CHECK(data);
    long before = mem_live_blocks();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        void *message = NULL;
        enum err err = message_unpack(&message, rows[i].type, bytes_of(data, rows[i].bytes_max + 1),
                                      rows[i].bytes_max, rows[i].what);
        CHECK_MSG(err == E_LIMIT && !message, "%s of %zu bytes gave %s", rows[i].what,
                  rows[i].bytes_max + 1, err_name(err));
        CHECK_HAS(err_detail(), rows[i].what);
        CHECK_EQ(before, mem_live_blocks());
    }
    mem_free(data);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the largest heartbeat, event, control message, mark and lease fit", claim_small_ones_fit},
        {"the largest lane entry, assignment and key record fit", claim_large_ones_fit},
        {"a message one byte above its limit is refused unread", claim_more_is_refused},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
