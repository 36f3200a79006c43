/* The index of open jobs. */
#include "node/coordinator/backlog.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

static const struct sha256 fingerprint = {{1}};
static const struct lane_ref lane = {"w", 0};

/* A descriptor with so many one-value witnesses, each "inline". */
static struct bytes_mut describe(const char *tenant, const char *job_id, uint32_t priority,
                                 uint64_t deadline_ms) {
    job_message m = BELLOWS__V1__JOB__INIT;
    Bellows__V1__Partition partition = BELLOWS__V1__PARTITION__INIT, *partitions[] = {&partition};
    Bellows__V1__Body body;
    Bellows__V1__Section section = BELLOWS__V1__SECTION__INIT, *sections[] = {&section};
    Bellows__V1__ObjectRef object = BELLOWS__V1__OBJECT_REF__INIT;
    uint8_t digest[SHA256_BYTES] = {3}, body_digest[SHA256_BYTES] = {4};
    char bucket[100], nuid[] = "abcdefghijklmnopqrstuv";
    struct bytes_mut packed;
    bellows__v1__body__init(&body);
    snprintf(bucket, sizeof bucket, "bellows-in-%s", tenant);
    section.kind = BELLOWS__V1__SECTION_KIND__WITNESS_RAW;
    section.values_count = 1;
    section.raw_bytes = 32;
    body.n_sections = 1;
    body.sections = sections;
    body.frame_bytes = 4096;
    body.frames_count = 1;
    body.raw_bytes = 32;
    body.wire_bytes = 40;
    body.sha256 = (ProtobufCBinaryData){SHA256_BYTES, body_digest};
    object.bucket = bucket;
    object.name = (char *)(uintptr_t)job_id;
    object.nuid = nuid;
    body.place_case = BELLOWS__V1__BODY__PLACE_OBJECT;
    body.object = &object;
    partition.body = &body;
    m.version = WIRE_VERSION;
    m.job_id = (char *)(uintptr_t)job_id;
    m.tenant = (char *)(uintptr_t)tenant;
    m.key_digest = (ProtobufCBinaryData){SHA256_BYTES, digest};
    m.curve = BELLOWS__V1__CURVE__BN254;
    m.priority = priority;
    m.deadline_unix_ms = deadline_ms;
    m.generation = 1;
    m.n_partitions = 1;
    m.partitions = partitions;
    CHECK_OK(job_pack(&packed, &m));
    return packed;
}

static struct job_view *put(struct backlog *b, const char *tenant, const char *job_id,
                            uint64_t revision) {
    struct bytes_mut job = describe(tenant, job_id, 2, 0);
    struct record r;
    struct job_view *view = NULL;
    CHECK_OK(record_init(&r, bytes_of(job.ptr, job.len), &fingerprint, 1, 1, 1000 + revision));
    CHECK_OK(backlog_put(&view, b, (struct job_name){tenant, job_id}, &r, revision, 50));
    record_done(&r);
    mem_free(job.ptr);
    return view;
}

static void claim_find_and_remove(void) {
    enum { MANY = 3000 };
    struct backlog b;
    char job_id[ID_BYTES_MAX + 1];
    CHECK_OK(backlog_init(&b, &record_limits_default));
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(job_id, sizeof job_id, "j%u", i);
        put(&b, i % 2 ? "acme" : "zeta", job_id, i + 1);
    }
    CHECK_EQ(MANY, b.count);
    CHECK_EQ(2, b.tenants_count);
    struct rng *rng = check_rng();
    for (size_t left = MANY; left > 0; left--) {
        struct job_view *job = b.jobs[rng_below(rng, left)];
        struct job_name name = job_name_of(job);
        CHECK(backlog_find(&b, name) == job);
        snprintf(job_id, sizeof job_id, "%s", name.job);
        backlog_remove(&b, job);
        CHECK(!backlog_find(&b, (struct job_name){"acme", job_id}));
        CHECK_EQ(left - 1, b.count);
    }
    backlog_done(&b);
}

static void claim_revisions(void) {
    struct backlog b;
    struct record r;
    struct job_view *view;
    struct bytes_mut job = describe("acme", "j", 1, 0);
    struct job_name name = {"acme", "j"};
    CHECK_OK(backlog_init(&b, &record_limits_default));
    CHECK_OK(record_init(&r, bytes_of(job.ptr, job.len), &fingerprint, 1, 1, 1000));
    CHECK_OK(backlog_put(&view, &b, name, &r, 5, 50));
    CHECK_EQ(1, view->priority);
    CHECK_EQ(1, view->bodies_count);
    CHECK_STR("j", view->bodies[0].name);
    record_place(&r, 0, &lane, 1);
    CHECK_OK(backlog_put(&view, &b, name, &r, 6, 60));
    CHECK_EQ(JOB_PLACED, view->parts[0].state);
    struct record old;
    CHECK_OK(record_init(&old, bytes_of(job.ptr, job.len), &fingerprint, 1, 1, 1000));
    CHECK_OK(
        backlog_put(&view, &b, name, &old, 5, 70)); /* an older entry of the watch arrives late */
    CHECK_EQ(JOB_PLACED, view->parts[0].state);
    record_give_back(&r, 0, r.parts[0].epoch, E_DEVICE, "x", 1);
    CHECK_OK(backlog_put(&view, &b, name, &r, 7, 1000));
    CHECK_EQ(JOB_QUEUED, view->parts[0].state);
    CHECK(view->parts[0].not_before_ns > 1000); /* not at once again */
    CHECK_EQ(1, view->parts[0].refused_count);
    record_done(&old);
    record_done(&r);
    mem_free(job.ptr);
    backlog_done(&b);
}

static void claim_tenants_start_level(void) {
    struct backlog b;
    CHECK_OK(backlog_init(&b, &record_limits_default));
    put(&b, "old", "j1", 1);
    b.served_ns[0] = 5000;
    struct job_view *young = put(&b, "young", "j2", 2);
    CHECK_EQ(5000, b.served_ns[young->tenant_idx]); /* not owed all that came before it */
    b.served_ns[young->tenant_idx] = 9000;
    put(&b, "young", "j3", 3);
    CHECK_EQ(9000, b.served_ns[young->tenant_idx]);
    backlog_done(&b);
}

static void claim_deadlines(void) {
    struct backlog b;
    struct record r;
    struct job_view *view;
    uint64_t now_ms = clock_unix_ns() / 1000000, now_ns = clock_ns();
    struct bytes_mut job = describe("acme", "late", 1, now_ms - 5),
                     soon = describe("acme", "soon", 1, now_ms + 60000);
    CHECK_OK(backlog_init(&b, &record_limits_default));
    CHECK_OK(record_init(&r, bytes_of(job.ptr, job.len), &fingerprint, 1, 1, 1000));
    CHECK_OK(backlog_put(&view, &b, (struct job_name){"acme", "late"}, &r, 1, now_ns));
    CHECK(backlog_is_expired(view, now_ns));
    record_done(&r);
    CHECK_OK(record_init(&r, bytes_of(soon.ptr, soon.len), &fingerprint, 1, 1, 1000));
    CHECK_OK(backlog_put(&view, &b, (struct job_name){"acme", "soon"}, &r, 2, now_ns));
    CHECK(!backlog_is_expired(view, now_ns));
    CHECK(backlog_is_expired(view, now_ns + UINT64_C(61000000000)));
    record_done(&r);
    mem_free(job.ptr);
    mem_free(soon.ptr);
    backlog_done(&b);
}

static void claim_unreadable_leaves_nothing(void) {
    struct backlog b;
    struct record r;
    CHECK_OK(backlog_init(&b, &record_limits_default));
    CHECK_OK(record_init(&r, bytes_of("junk", 4), &fingerprint, 1, 1, 1000));
    CHECK_ERR(E_FORMAT, backlog_put(NULL, &b, (struct job_name){"acme", "j"}, &r, 1, 1));
    CHECK_EQ(0, b.count);
    record_done(&r);
    backlog_done(&b);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"jobs are found, and removed in any order", claim_find_and_remove},
        {"an older revision changes nothing; a job given back waits", claim_revisions},
        {"a tenant who comes late starts level", claim_tenants_start_level},
        {"deadlines are told on our own clock", claim_deadlines},
        {"a record that cannot be read leaves nothing behind", claim_unreadable_leaves_nothing},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
