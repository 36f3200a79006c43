/* The index of open jobs. */
#include "node/coordinator/backlog.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

static const struct sha256 fingerprint = {{1}};
static const struct lane_ref lane = {"w", 0};

/* A descriptor with one partition, its witness of one value in an object. */
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

struct scene {
    struct estimates estimates;
    struct lanes lanes;
    struct backlog b;
};

static void scene_open(struct scene *s) {
    CHECK_OK(estimates_init(&s->estimates));
    CHECK_OK(lanes_init(&s->lanes, &s->estimates));
    CHECK_OK(backlog_init(&s->b, &record_limits_default, UINT64_C(1) << 62, &s->lanes));
}

static void scene_close(struct scene *s) {
    backlog_done(&s->b);
    lanes_done(&s->lanes);
    estimates_done(&s->estimates);
}

static struct job_view *put(struct backlog *b, const char *tenant, const char *job_id,
                            uint64_t revision) {
    struct bytes_mut job = describe(tenant, job_id, 2, 0);
    struct record r;
    struct job_view *view = NULL;
    CHECK_OK(record_init(&r, bytes_of(job.ptr, job.len), &fingerprint, 1, 1, 1000 + revision));
    CHECK_OK(backlog_put(&view, b, (struct job_name){tenant, job_id}, &r, (struct bytes){0},
                         revision, 50));
    record_done(&r);
    mem_free(job.ptr);
    return view;
}

static void claim_find_and_remove(void) {
    enum { MANY = 3000 };
    struct scene s;
    char job_id[ID_BYTES_MAX + 1];
    scene_open(&s);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(job_id, sizeof job_id, "j%u", i);
        put(&s.b, i % 2 ? "acme" : "zeta", job_id, i + 1);
    }
    CHECK_EQ(MANY, s.b.count);
    CHECK_EQ(2, s.b.tenants_count);
    struct rng *rng = check_rng();
    for (size_t left = MANY; left > 0; left--) {
        struct job_view *job = s.b.jobs[rng_below(rng, left)];
        struct job_name name = job_name_of(job);
        CHECK(backlog_find(&s.b, name) == job);
        snprintf(job_id, sizeof job_id, "%s", name.job);
        backlog_remove(&s.b, job, false, 60);
        CHECK(!backlog_find(&s.b, (struct job_name){"acme", job_id}));
        CHECK_EQ(left - 1, s.b.count);
    }
    scene_close(&s);
}

static void claim_revisions(void) {
    struct scene s;
    struct record r;
    struct job_view *view;
    struct bytes_mut job = describe("acme", "j", 1, 0);
    struct job_name name = {"acme", "j"};
    scene_open(&s);
    CHECK_OK(record_init(&r, bytes_of(job.ptr, job.len), &fingerprint, 1, 1, 1000));
    CHECK_OK(backlog_put(&view, &s.b, name, &r, (struct bytes){0}, 5, 50));
    CHECK_EQ(1, view->priority);
    CHECK_EQ(1, view->bodies_count);
    CHECK_STR("j", view->bodies[0].name);
    record_place(&r, 0, &lane, 1);
    CHECK_OK(backlog_put(&view, &s.b, name, &r, (struct bytes){0}, 6, 60));
    CHECK_EQ(JOB_PLACED, view->parts[0].state);
    struct record old;
    CHECK_OK(record_init(&old, bytes_of(job.ptr, job.len), &fingerprint, 1, 1, 1000));
    CHECK_OK(backlog_put(&view, &s.b, name, &old, (struct bytes){0}, 5,
                         70)); /* an older entry of the watch arrives late */
    CHECK_EQ(JOB_PLACED, view->parts[0].state);
    record_give_back(&r, 0, r.parts[0].epoch, E_DEVICE, "x", 1);
    CHECK_OK(backlog_put(&view, &s.b, name, &r, (struct bytes){0}, 7, 1000));
    CHECK_EQ(JOB_QUEUED, view->parts[0].state);
    CHECK(view->parts[0].not_before_ns > 1000); /* not at once again */
    CHECK(!view->parts[0].item.line);
    backlog_advance(&s.b, view->parts[0].not_before_ns);
    CHECK(view->parts[0].item.line);
    CHECK_EQ(1, view->parts[0].refused_count);
    record_done(&old);
    record_done(&r);
    mem_free(job.ptr);
    scene_close(&s);
}

static void claim_tenants_start_level(void) {
    struct scene s;
    scene_open(&s);
    struct job_view *loud = put(&s.b, "loud", "j1", 1);
    uint32_t loud_idx = loud->tenant_idx;
    for (int n = 0; n < 10; n++) { /* it takes what lanes there are; nobody else waits */
        backlog_charge(&s.b, loud_idx, 500);
    }
    struct job_view *young = put(&s.b, "young", "j2", 2);
    CHECK_EQ(4500, s.b.served_ns[young->tenant_idx]); /* not owed all that came before it */
    backlog_charge(&s.b, young->tenant_idx, 900);
    put(&s.b, "young", "j3", 3);
    CHECK_EQ(5400, s.b.served_ns[young->tenant_idx]); /* it was there all along */
    backlog_remove(&s.b, loud, false, 60);
    backlog_charge(&s.b, young->tenant_idx, 100);
    loud = put(&s.b, "loud", "j4", 4);
    CHECK_EQ(5400, s.b.served_ns[loud->tenant_idx]); /* nor does it pay for lanes nobody wanted */
    scene_close(&s);
}

static void claim_deadlines(void) {
    struct scene s;
    struct record r;
    struct job_view *view;
    uint64_t now_ms = clock_unix_ns() / 1000000, now_ns = clock_ns();
    struct bytes_mut job = describe("acme", "late", 1, now_ms - 5),
                     soon = describe("acme", "soon", 1, now_ms + 60000);
    scene_open(&s);
    CHECK_OK(record_init(&r, bytes_of(job.ptr, job.len), &fingerprint, 1, 1, 1000));
    CHECK_OK(backlog_put(&view, &s.b, (struct job_name){"acme", "late"}, &r, (struct bytes){0}, 1,
                         now_ns));
    CHECK(backlog_is_expired(view, now_ns));
    record_done(&r);
    CHECK_OK(record_init(&r, bytes_of(soon.ptr, soon.len), &fingerprint, 1, 1, 1000));
    CHECK_OK(backlog_put(&view, &s.b, (struct job_name){"acme", "soon"}, &r, (struct bytes){0}, 2,
                         now_ns));
    CHECK(!backlog_is_expired(view, now_ns));
    CHECK(backlog_is_expired(view, now_ns + UINT64_C(61000000000)));
    record_done(&r);
    mem_free(job.ptr);
    mem_free(soon.ptr);
    scene_close(&s);
}

static void claim_unreadable_leaves_nothing(void) {
    struct scene s;
    struct record r;
    scene_open(&s);
    CHECK_OK(record_init(&r, bytes_of("junk", 4), &fingerprint, 1, 1, 1000));
    CHECK_ERR(E_FORMAT,
              backlog_put(NULL, &s.b, (struct job_name){"acme", "j"}, &r, (struct bytes){0}, 1, 1));
    CHECK_EQ(0, s.b.count);
    record_done(&r);
    scene_close(&s);
}

/* Where everything stands is what the states say, after any sequence of moves. */
static void check_places(const struct scene *s, uint64_t now_ns) {
    size_t waiting = 0, in_lines = s->b.urgent.count;
    uint32_t held_by[3] = {0};
    uint64_t queued_by[3] = {0}, slack_by[3] = {0};
    for (size_t i = 0; i < s->b.count; i++) {
        const struct job_view *job = s->b.jobs[i];
        CHECK_EQ(i, job->at);
        for (uint32_t k = 0; k < job->parts_count; k++) {
            const struct part_view *part = &job->parts[k];
            bool is_held = part->state == JOB_PLACED || part->state == JOB_RUNNING;
            bool ready = part->state == JOB_QUEUED && part->not_before_ns <= now_ns &&
                         !job->used_up && !backlog_is_expired(job, now_ns);
            CHECK_EQ(ready, part->item.line != NULL);
            CHECK_EQ(is_held, part->lane_idx != SIZE_MAX);
            if (is_held) {
                held_by[part->lane_idx]++;
                queued_by[part->lane_idx] += part->cost_ns;
                slack_by[part->lane_idx] += part->slack_ns;
            }
            waiting += part->state == JOB_QUEUED;
        }
        CHECK(job->timer_at == SIZE_MAX || s->b.timers.jobs[job->timer_at] == job);
    }
    for (size_t i = 0; i < s->b.lines_count; i++) {
        CHECK(s->b.lines[i]->count > 0);
        in_lines += s->b.lines[i]->count;
    }
    for (size_t i = 1; i < s->b.timers.count; i++) {
        CHECK(s->b.timers.jobs[(i - 1) / 2]->timer_ns <= s->b.timers.jobs[i]->timer_ns);
    }
    CHECK_EQ(waiting, s->b.waiting_count);
    CHECK(in_lines <= waiting);
    for (size_t l = 0; l < s->lanes.count; l++) {
        CHECK_EQ(held_by[l], s->lanes.views[l].jobs_held);
        CHECK_EQ(queued_by[l], s->lanes.views[l].queued_ns);
        CHECK_EQ(slack_by[l], s->lanes.views[l].slack_ns);
    }
}

static void move_at_random(struct record *r, struct rng *rng) {
    uint32_t idx = (uint32_t)rng_below(rng, r->parts_count);
    struct lane_ref to = {"w", (uint32_t)rng_below(rng, 3)};
    uint64_t epoch = r->parts[idx].epoch;
    switch (rng_below(rng, 5)) {
    case 0:
    case 1:
        (void)record_place(r, idx, &to, 1);
        break;
    case 2:
        (void)record_start(r, idx, epoch, 1);
        break;
    case 3:
        (void)record_give_back(r, idx, epoch, rng_below(rng, 2) ? E_LIMIT : E_DEVICE, "x", 1);
        break;
    default:
        (void)record_take_back(r, idx, epoch, rng_below(rng, 2), "x", 1);
        break;
    }
}

static void claim_everything_has_its_place(void) {
    enum { JOBS = 40, STEPS = 6000 };
    struct scene s;
    static struct record records[JOBS];
    uint64_t revisions[JOBS], revision = 0, now_ns = clock_ns(), now_ms = clock_unix_ns() / 1000000;
    struct rng *rng = check_rng();
    char job_id[ID_BYTES_MAX + 1];
    scene_open(&s);
    memset(records, 0, sizeof records);
    for (int n = 0; n < STEPS; n++) {
        size_t i = rng_below(rng, JOBS);
        snprintf(job_id, sizeof job_id, "j%zu", i);
        struct job_name name = {i % 3 ? "acme" : "zeta", job_id};
        now_ns += rng_below(rng, 50) * 1000000;
        backlog_advance(&s.b, now_ns);
        struct job_view *view = backlog_find(&s.b, name);
        CHECK_EQ(records[i].parts != NULL, view != NULL);
        if (view && rng_below(rng, 40) == 0) {
            backlog_remove(&s.b, view, rng_below(rng, 2), now_ns);
            record_done(&records[i]);
        } else {
            if (!view) {
                struct bytes_mut job = describe(name.tenant, job_id, (uint32_t)(i % 4),
                                                i % 5 ? 0 : now_ms + rng_below(rng, 100000));
                CHECK_OK(record_init(&records[i], bytes_of(job.ptr, job.len), &fingerprint, 1,
                                     (uint32_t)(1 + i % 3), 1000 + (uint64_t)n));
                mem_free(job.ptr);
            } else {
                move_at_random(&records[i], rng);
            }
            revisions[i] = ++revision;
            CHECK_OK(backlog_put(&view, &s.b, name, &records[i], bytes_of("packed", 6),
                                 revisions[i], now_ns));
            if (rng_below(rng, 2)) {
                for (uint32_t k = 0; k < view->parts_count; k++) {
                    view->parts[k].sent = true;
                }
            }
        }
        check_places(&s, now_ns);
        for (uint32_t k = 0; n == 100 && k < s.b.estimates->keys_count; k++) {
            estimates_tell(s.b.estimates, k, s.lanes.views[0].device_idx, 1000, 0);
        }
    }
    for (size_t i = 0; i < JOBS; i++) {
        record_done(&records[i]);
    }
    scene_close(&s);
}

/* What a lane finishes is learnt: per key and kind of device, and the lane's own pace. */
static void claim_learns_from_what_ends(void) {
    struct scene s;
    struct record r;
    struct job_view *view;
    uint64_t now_ns = UINT64_C(1000000000000), revision = 0;
    char job_id[32];
    scene_open(&s);
    for (unsigned n = 0; n < 200; n++) {
        snprintf(job_id, sizeof job_id, "j%u", n);
        struct job_name name = {"acme", job_id};
        struct bytes_mut job = describe("acme", job_id, 1, 0);
        struct lane_ref on = {"w", n % 2};
        CHECK_OK(record_init(&r, bytes_of(job.ptr, job.len), &fingerprint, 1, 1, 1000));
        mem_free(job.ptr);
        CHECK_OK(backlog_put(&view, &s.b, name, &r, (struct bytes){0}, ++revision, now_ns));
        record_place(&r, 0, &on, 1);
        CHECK_OK(backlog_put(&view, &s.b, name, &r, (struct bytes){0}, ++revision, now_ns));
        view->parts[0].sent = true;
        record_start(&r, 0, r.parts[0].epoch, 1);
        CHECK_OK(backlog_put(&view, &s.b, name, &r, (struct bytes){0}, ++revision, now_ns));
        now_ns +=
            n % 2 ? UINT64_C(6000000000) : UINT64_C(2000000000); /* lane 1 is three times slower */
        backlog_remove(&s.b, view, true, now_ns);
        record_done(&r);
    }
    struct schedule_cost fast = lanes_cost(&s.lanes, 0, 0, now_ns);
    struct schedule_cost slow = lanes_cost(&s.lanes, 1, 0, now_ns);
    CHECK_EQ(0, fast.load_ns); /* the key is there */
    CHECK_MSG(fast.job_ns > UINT64_C(1500000000) && fast.job_ns < UINT64_C(3000000000), "%llu ns",
              (unsigned long long)fast.job_ns);
    CHECK_MSG(slow.job_ns > UINT64_C(5000000000) && slow.job_ns < UINT64_C(7000000000), "%llu ns",
              (unsigned long long)slow.job_ns);
    scene_close(&s);
}

/* A record that changes between the end of a wait and the look at the timers takes nothing out of the lines for ever. */
static void claim_ended_wait_is_not_forgotten(void) {
    static const uint64_t MS = UINT64_C(1000000);
    struct scene s;
    struct record r;
    struct job_view *view;
    struct job_name name = {"acme", "j"};
    struct bytes_mut job = describe("acme", "j", 1, 0);
    scene_open(&s);
    CHECK_OK(record_init(&r, bytes_of(job.ptr, job.len), &fingerprint, 1, 2, 1000));
    record_place(&r, 0, &lane, 1);
    record_place(&r, 1, &lane, 1);
    record_start(&r, 0, r.parts[0].epoch, 1);
    CHECK_OK(backlog_put(&view, &s.b, name, &r, (struct bytes){0}, 1, 100 * MS));
    record_take_back(&r, 0, r.parts[0].epoch, true, "it died", 1);
    CHECK_OK(backlog_put(&view, &s.b, name, &r, (struct bytes){0}, 2, 100 * MS));
    CHECK(view->parts[0].not_before_ns > 100 * MS);
    uint64_t later_ns = view->parts[0].not_before_ns + MS;
    record_start(&r, 1, r.parts[1].epoch, 1);
    CHECK_OK(backlog_put(&view, &s.b, name, &r, (struct bytes){0}, 3, later_ns));
    backlog_advance(&s.b, later_ns + MS);
    CHECK(view->parts[0].item.line != NULL);
    record_done(&r);
    mem_free(job.ptr);
    scene_close(&s);
}

static void claim_no_room_is_remembered(void) {
    struct scene s;
    struct record r;
    struct job_view *view;
    struct job_name name = {"acme", "j"};
    struct bytes_mut job = describe("acme", "j", 1, 0);
    size_t idx;
    scene_open(&s);
    for (uint32_t gpu = 0; gpu < 3; gpu++) { /* one kind of device, with 8, 16 and 24 of memory */
        struct lane_ref ref = {"w", gpu};
        CHECK_OK(lanes_add(&idx, &s.lanes, &ref));
        s.lanes.views[idx].memory_bytes = 8 * (gpu + 1);
    }
    CHECK_OK(record_init(&r, bytes_of(job.ptr, job.len), &fingerprint, 1, 1, 1000));
    record_place(&r, 0, &(struct lane_ref){"w", 1}, 1);
    CHECK_OK(backlog_put(&view, &s.b, name, &r, (struct bytes){0}, 1, 100));
    record_give_back(&r, 0, r.parts[0].epoch, E_LIMIT, "no room", 1);
    CHECK_OK(backlog_put(&view, &s.b, name, &r, (struct bytes){0}, 2, 100));
    CHECK_EQ(SCHEDULE_NEVER, lanes_cost(&s.lanes, 0, view->key_idx, 200).job_ns);
    CHECK_EQ(SCHEDULE_NEVER, lanes_cost(&s.lanes, 1, view->key_idx, 200).job_ns);
    CHECK(lanes_cost(&s.lanes, 2, view->key_idx, 200).job_ns != SCHEDULE_NEVER);
    /* Not for ever: the lane may have got rid of other keys. */
    CHECK(lanes_cost(&s.lanes, 1, view->key_idx, UINT64_C(100000000000)).job_ns != SCHEDULE_NEVER);
    record_done(&r);
    mem_free(job.ptr);
    scene_close(&s);
}

static void claim_survives_lack_of_memory(void) {
    struct bytes_mut job = describe("acme", "j", 1, 0);
    struct job_name name = {"acme", "j"};
    struct scene s;
    struct record r;
    scene_open(&s);
    CHECK_OK(record_init(&r, bytes_of(job.ptr, job.len), &fingerprint, 1, 1, 1000));
    for (long n = 0; n < 100; n++) {
        mem_fail_after(n);
        enum err code = backlog_put(NULL, &s.b, name, &r, bytes_of("packed", 6), 1, 50);
        bool injected = !mem_fail_pending();
        mem_fail_after(-1);
        CHECK(code == OK || (injected && code == E_LIMIT));
        struct job_view *view = backlog_find(&s.b, name);
        CHECK_EQ(code == OK, view != NULL);
        if (view) {
            backlog_remove(&s.b, view, false, 60);
        }
        CHECK_EQ(0, s.b.count);
        CHECK_EQ(0, s.b.waiting_count);
        if (!injected) {
            break;
        }
        CHECK(n < 99);
    }
    record_done(&r);
    mem_free(job.ptr);
    scene_close(&s);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"jobs are found, and removed in any order", claim_find_and_remove},
        {"an older revision changes nothing; a job given back waits", claim_revisions},
        {"a tenant who comes late starts level", claim_tenants_start_level},
        {"deadlines are told on our own clock", claim_deadlines},
        {"lines, lanes, timers and counts are what the states say, whatever moves",
         claim_everything_has_its_place},
        {"what lanes finish teaches what a job costs there", claim_learns_from_what_ends},
        {"a partition whose wait ended just before its job's record changed gets into its line",
         claim_ended_wait_is_not_forgotten},
        {"a lane without room for a key speaks for those with no more",
         claim_no_room_is_remembered},
        {"backlog_put survives lack of memory", claim_survives_lack_of_memory},
        {"a record that cannot be read leaves nothing behind", claim_unreadable_leaves_nothing},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
