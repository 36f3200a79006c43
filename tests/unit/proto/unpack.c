/* Protobuf that means harm. */
#include "proto/unpack.h"

#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/job.pb-c.h"
#include "tests/check/check.h"

#include <string.h>

static enum err try_job(struct bytes data) {
    AUTO(message_free) Bellows__V1__Job *job = NULL;
    return message_unpack(&job, &bellows__v1__job__descriptor, data, MESSAGE_BYTES_MAX, "job");
}

static struct bytes_mut pack_job(void) {
    Bellows__V1__Job job = BELLOWS__V1__JOB__INIT;
    Bellows__V1__Partition partition = BELLOWS__V1__PARTITION__INIT, *partitions = &partition;
    Bellows__V1__Body body;
    struct bytes_mut out;
    job.version = 1;
    job.job_id = (char *)(uintptr_t) "job-1";
    job.tenant = (char *)(uintptr_t) "acme";
    job.label = (char *)(uintptr_t) "größer";
    job.n_partitions = 1;
    job.partitions = &partitions;
    partition.body = &body;
    bellows__v1__body__init(&body);
    body.frame_bytes = 4096;
    CHECK_OK(message_pack(&out, &job, JOB_BYTES_MAX, "job"));
    return out;
}

static void claim_round_trip(void) {
    struct bytes_mut packed = pack_job();
    AUTO(message_free) Bellows__V1__Job *job = NULL;
    CHECK_OK(message_unpack(&job, &bellows__v1__job__descriptor, bytes_of(packed.ptr, packed.len),
                            JOB_BYTES_MAX, "job"));
    CHECK_STR("job-1", job->job_id);
    CHECK_STR("größer", job->label);
    CHECK_EQ(4096, job->partitions[0]->body->frame_bytes);
    struct bytes_mut small;
    CHECK_ERR(E_LIMIT, message_pack(&small, job, packed.len - 1, "job"));
    mem_free(packed.ptr);
}

/* A reason that was cut within a character, the name of a file: what is written can be read. */
static void claim_mended(void) {
    static const struct {
        const char *text, *want;
    } rows[] = {{"gr\xc3\xb6\xc3", "gr\xc3\xb6?"},
                {"\xff", "?"},
                {"\xe2\x82", "??"},
                {"\xed\xa0\x80", "???"},
                {"a\xe2\x82\xacz", "a\xe2\x82\xacz"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Bellows__V1__Job job = BELLOWS__V1__JOB__INIT;
        Bellows__V1__Partition partition = BELLOWS__V1__PARTITION__INIT, *partitions = &partition;
        Bellows__V1__Body body;
        Bellows__V1__ObjectRef object;
        struct bytes_mut packed;
        AUTO(message_free) Bellows__V1__Job *read = NULL;
        job.version = 1;
        job.label = (char *)(uintptr_t)rows[i].text;
        job.n_partitions = 1;
        job.partitions = &partitions;
        partition.body = &body;
        bellows__v1__body__init(&body);
        bellows__v1__object_ref__init(&object);
        body.place_case = BELLOWS__V1__BODY__PLACE_OBJECT;
        body.object = &object;
        object.name = (char *)(uintptr_t)rows[i].text;
        CHECK_OK(message_pack(&packed, &job, JOB_BYTES_MAX, "job"));
        CHECK_OK(message_unpack(&read, &bellows__v1__job__descriptor,
                                bytes_of(packed.ptr, packed.len), JOB_BYTES_MAX, "job"));
        CHECK_STR(rows[i].want, read->label);
        CHECK_STR(rows[i].want, read->partitions[0]->body->object->name);
        mem_free(packed.ptr);
    }
}

static void claim_cut(void) {
    struct bytes_mut packed = pack_job();
    long before = mem_live_blocks();
    for (size_t len = 0; len < packed.len; len++) {
        uint8_t *copy = mem_alloc(len + 1);
        memcpy(copy, packed.ptr, len);
        enum err err = try_job(bytes_of(copy, len));
        CHECK(err == OK || err == E_FORMAT); /* cut between two fields it is a shorter message */
        mem_free(copy);
    }
    CHECK_EQ(before, mem_live_blocks());
    mem_free(packed.ptr);
}

static void claim_sizes(void) {
    static const uint8_t claims_2_gib[] = {8, 1, 2 << 3 | 2, 0xff, 0xff, 0xff, 0xff, 0x07};
    static const uint8_t claims_4_gib[] = {8, 1, 2 << 3 | 2, 0xff, 0xff, 0xff, 0xff, 0x0f};
    static const uint8_t endless[] = {8,    0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t group[] = {2 << 3 | 3};
    static const uint8_t wrong_type[] = {2 << 3, 5};
    static const uint8_t field_zero[] = {2, 0};
    CHECK_ERR(E_FORMAT, try_job(bytes_of(claims_2_gib, sizeof claims_2_gib)));
    CHECK_ERR(E_FORMAT, try_job(bytes_of(claims_4_gib, sizeof claims_4_gib)));
    CHECK_ERR(E_FORMAT, try_job(bytes_of(endless, sizeof endless)));
    CHECK_ERR(E_FORMAT, try_job(bytes_of(group, sizeof group)));
    CHECK_ERR(E_FORMAT, try_job(bytes_of(wrong_type, sizeof wrong_type)));
    CHECK_ERR(E_FORMAT, try_job(bytes_of(field_zero, sizeof field_zero)));
    uint8_t *large = mem_zero_alloc(1, MESSAGE_BYTES_MAX + 1);
    CHECK_ERR(E_LIMIT, try_job(bytes_of(large, MESSAGE_BYTES_MAX + 1)));
    mem_free(large);
}

/* `unit` over and over to a megabyte. */
static enum err flood(const uint8_t *unit, size_t unit_len) {
    size_t count = MESSAGE_BYTES_MAX / unit_len, len = 2;
    uint8_t *data = mem_alloc(MESSAGE_BYTES_MAX + 2);
    data[0] = 8;
    data[1] = 1;
    for (size_t i = 0; i + 1 < count; i++, len += unit_len) {
        memcpy(data + len, unit, unit_len);
    }
    long before = mem_live_blocks();
    enum err err = try_job(bytes_of(data, len));
    CHECK_EQ(before, mem_live_blocks());
    mem_free(data);
    return err;
}

static void claim_floods(void) {
    static const uint8_t empty_partition[] = {12 << 3 | 2, 0};
    static const uint8_t unknown[] = {15 << 3, 0};
    static const uint8_t repeated_string[] = {2 << 3 | 2, 1, 'x'};
    CHECK_ERR(E_LIMIT, flood(empty_partition, 2));
    CHECK_HAS(err_detail(), "more than 65536");
    CHECK_ERR(E_FORMAT, flood(unknown, 2));
    CHECK_HAS(err_detail(), "unknown fields");
    CHECK_ERR(E_LIMIT, flood(repeated_string, 3));
    /* Packed numbers: one byte each on the wire, four in memory. */
    uint8_t *lane = mem_zero_alloc(1, 200000);
    static const uint8_t head[] = {8, 1, 7 << 3 | 2, 0x80, 0x8d, 0x06}; /* curves: 100 000 bytes */
    memcpy(lane, head, sizeof head);
    AUTO(message_free) Bellows__V1__LaneInfo *info = NULL;
    CHECK_ERR(E_LIMIT,
              message_unpack(&info, &bellows__v1__lane_info__descriptor,
                             bytes_of(lane, sizeof head + 99968), MESSAGE_BYTES_MAX, "lane"));
    mem_free(lane);
}

static void claim_text(void) {
    static const struct {
        const char *text;
        size_t len;
        bool fine;
    } table[] = {
        {"plain", 5, true},
        {"\xc3\xa4", 2, true},
        {"\xe2\x82\xac", 3, true},
        {"\xf0\x9f\x94\xa5", 4, true},
        {"a\0b", 3, false},
        {"\xc3", 1, false},
        {"\xc0\x80", 2, false},
        {"\xe0\x80\x80", 3, false},
        {"\xed\xa0\x80", 3, false},
        {"\xf4\x90\x80\x80", 4, false},
        {"\xff", 1, false},
        {"\x80", 1, false},
        {"\xf0\x80\x80\x80", 4, false},
        {"\xc3\x28", 2, false},
        {"\xe2\x28\xa1", 3, false},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        uint8_t data[16] = {8, 1, 2 << 3 | 2, (uint8_t)table[i].len};
        memcpy(data + 4, table[i].text, table[i].len);
        enum err err = try_job(bytes_of(data, 4 + table[i].len));
        CHECK_MSG((err == OK) == table[i].fine, "text %zu gave %s", i, err_name(err));
    }
}

static void claim_versions(void) {
    static const uint8_t none[] = {2 << 3 | 2, 1, 'x'}, newer[] = {8, 2}, now[] = {8, 1};
    CHECK_OK(try_job(bytes_of(now, 2)));
    CHECK_ERR(E_FORMAT, try_job(bytes_of(newer, 2)));
    CHECK_HAS(err_detail(), "version 2, this program reads 1 to 1");
    CHECK_ERR(E_FORMAT, try_job(bytes_of(none, sizeof none)));
    CHECK_ERR(E_FORMAT, try_job(bytes_of(NULL, 0)));
}

static void claim_no_memory(void) {
    struct bytes_mut packed = pack_job();
    for (long n = 0;; n++) {
        mem_fail_after(n);
        enum err err = try_job(bytes_of(packed.ptr, packed.len));
        mem_fail_after(-1);
        if (err == OK) {
            CHECK(n > 3); /* it did allocate, and survived every failure */
            break;
        }
        CHECK(err == E_FORMAT || err == E_LIMIT);
    }
    mem_free(packed.ptr);
}

static void claim_random(void) {
    for (int i = 0; i < 20000; i++) {
        uint8_t data[64];
        size_t len = rng_below(check_rng(), sizeof data);
        rng_fill(check_rng(), data, len);
        enum err err = try_job(bytes_of(data, len));
        CHECK(err == OK || err == E_FORMAT || err == E_LIMIT);
    }
}

static void claim_mutated(void) {
    struct bytes_mut packed = pack_job();
    for (int i = 0; i < 20000; i++) {
        uint8_t *copy = mem_alloc(packed.len);
        memcpy(copy, packed.ptr, packed.len);
        for (uint64_t k = 1 + rng_below(check_rng(), 3); k > 0; k--) {
            copy[rng_below(check_rng(), packed.len)] = (uint8_t)rng_u64(check_rng());
        }
        enum err err = try_job(bytes_of(copy, packed.len));
        CHECK(err == OK || err == E_FORMAT || err == E_LIMIT);
        mem_free(copy);
    }
    mem_free(packed.ptr);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a message comes back as it went", claim_round_trip},
        {"what is no UTF-8 in a text of ours is mended before it is written", claim_mended},
        {"a message cut anywhere is refused or shorter", claim_cut},
        {"lengths that nothing backs are refused", claim_sizes},
        {"floods of tiny entries are refused", claim_floods},
        {"text is UTF-8 without NUL", claim_text},
        {"a version that is missing or newer is refused", claim_versions},
        {"running out of memory anywhere is survived", claim_no_memory},
        {"random bytes do no harm", claim_random},
        {"mutated messages do no harm", claim_mutated},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
