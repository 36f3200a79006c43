/* The disturbed device forwards every operation to the plain prover, but asks first what trouble its lane is in. Operations do not know
 * their backend, so each lane has a table of its own.
 */
#include "tests/unit/daemon/fleet.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/unit/groth16/reference.h"

#define SECOND UINT64_C(1000000000)

/* --- Disturbed devices --- */

static struct {
    _Atomic int trouble, left;
    _Atomic unsigned runs;
} states[FLEET_LANES_MAX];

struct device {
    struct backend backend;
    struct backend_ops ops;
    struct backend *inner; /* lent */
    unsigned idx;
};

void fleet_trouble(unsigned idx, enum trouble trouble, int times) {
    atomic_store(&states[idx].left, times);
    atomic_store(&states[idx].trouble, (int)trouble);
}

unsigned fleet_device_runs(unsigned idx) {
    return atomic_load(&states[idx].runs);
}

static bool strikes(unsigned idx) {
    return atomic_fetch_sub(&states[idx].left, 1) > 0;
}

static enum err disturb(unsigned idx) {
    atomic_fetch_add(&states[idx].runs, 1);
    switch ((enum trouble)atomic_load(&states[idx].trouble)) {
    case TROUBLE_DEVICE:
        REQUIRE(!strikes(idx), E_DEVICE, "the device of lane %u is in trouble", idx);
        break;
    case TROUBLE_DEVICE_LOST:
        REQUIRE(!strikes(idx), E_DEVICE_LOST, "the device of lane %u is gone", idx);
        break;
    case TROUBLE_HANG:
        while (atomic_load(&states[idx].trouble) == TROUBLE_HANG) {
            clock_sleep_ns(SECOND / 100);
        }
        break;
    case TROUBLE_SLOW:
        clock_sleep_ns(SECOND / 10);
        break;
    default:
        break;
    }
    return OK;
}

enum err (*fleet_backend_open)(struct backend **out) = reference_backend_open;
static const struct backend_ops *inner_ops; /* the same for all */

#define EVALUATE(n)                                                                                \
    static enum err evaluate_##n(struct backend_slot *s) {                                         \
        TRY(disturb(n));                                                                           \
        return inner_ops->evaluate(s);                                                             \
    }
EVALUATE(0)
EVALUATE(1)
EVALUATE(2)

static enum err device_plan(struct plan *out, struct backend *b, const struct key_shape *shape) {
    struct backend *inner = ((struct device *)b)->inner;
    return inner->ops->plan(out, inner, shape);
}

static enum err device_key_load(struct backend_key **out, struct backend *b, struct key *key) {
    struct device *d = (struct device *)b;
    REQUIRE(atomic_load(&states[d->idx].trouble) != TROUBLE_LIMIT, E_LIMIT, "no room on lane %u",
            d->idx);
    if (fleet_backend_open != reference_backend_open) { /* cannot be broken */
        return d->inner->ops->key_load(out, d->inner, key);
    }
    switch ((enum trouble)atomic_load(&states[d->idx].trouble)) {
    case TROUBLE_WRONG_SUM:
        reference_break(d->inner, 1, strikes(d->idx) ? 1 : 0);
        break;
    case TROUBLE_LIE:
        reference_break(d->inner, 1, UINT_MAX);
        break;
    default:
        reference_break(d->inner, -1, 0);
        break;
    }
    return d->inner->ops->key_load(out, d->inner, key);
}

static void device_close(struct backend *b) {
    mem_free(b);
}

static enum err device_pin(struct backend *b, void *host, size_t bytes) {
    (void)b;
    (void)host;
    (void)bytes;
    return OK;
}

static void device_unpin(struct backend *b, void *host) {
    (void)b;
    (void)host;
}

static enum err device_bring(struct backend_slot *s, struct bring *what, struct job_watch *watch) {
    (void)s;
    (void)what;
    (void)watch;
    FAIL(E_LIMIT, "this device takes nothing in");
}

uint64_t fleet_staging_bytes = UINT64_C(16) << 20;
bool fleet_no_room_ahead;

static bool device_bring_fits(const struct backend_slot *s, const struct scalars *vectors,
                              unsigned count) {
    return !fleet_no_room_ahead && inner_ops->bring_fits(s, vectors, count);
}

static struct backend *device_new(struct backend *inner, unsigned idx, bool copies) {
    static enum err (*const evaluates[])(struct backend_slot *) = {evaluate_0, evaluate_1,
                                                                   evaluate_2};
    struct device *d = mem_zero_alloc(1, sizeof *d);
    CHECK(d);
    inner_ops = inner->ops;
    d->ops = *inner->ops;
    d->ops.close = device_close;
    d->ops.plan = device_plan;
    d->ops.key_load = device_key_load;
    d->ops.evaluate = evaluates[idx];
    d->ops.bring_fits = inner->ops->bring_fits ? device_bring_fits : NULL;
    d->inner = inner;
    d->idx = idx;
    d->backend.ops = &d->ops;
    d->backend.memory_bytes = inner->memory_bytes;
    d->backend.numa_node = -1;
    if (copies) {
        d->ops.pin = device_pin;
        d->ops.unpin = device_unpin;
        d->ops.bring = device_bring;
        d->backend.numa_node = 1;
    }
    snprintf(d->backend.device_name, sizeof d->backend.device_name, "disturbed reference %u", idx);
    return &d->backend;
}

/* --- Life --- */

void fleet_start_coordinator(struct fleet *f) {
    struct coordinator_config config = {.name = "test",
                                        .silence_ns = SECOND * 3 / 2,
                                        .lease_ttl_ns = SECOND * 2,
                                        .tenant_jobs_max = FLEET_TENANT_JOBS_MAX,
                                        .lane_ack_wait_ns = SECOND * 2};
    CHECK_OK(loopback_connect(&f->links.control, f->broker, NULL));
    CHECK_OK(loopback_connect(&f->links.feed, f->broker, NULL));
    CHECK_OK(loopback_connect(&f->links.lease, f->broker, NULL));
    CHECK_OK(coordinator_open(&f->coordinator, &config, &f->links));
}

void fleet_stop_coordinator(struct fleet *f) {
    coordinator_close(&f->coordinator);
    transport_close(&f->links.lease);
    transport_close(&f->links.feed);
    transport_close(&f->links.control);
}

enum { BULK_LINKS = 2 };

void fleet_start_lane(struct fleet *f, unsigned idx) {
    struct fleet_lane *l = &f->lanes[idx];
    char session[NUID_BYTES], device[16];
    transport_nuid(session);
    snprintf(device, sizeof device, "d%u", idx);
    snprintf(l->cache, sizeof l->cache, "%s/lane%u", f->dir, idx);
    struct lane_config config = {.node = "w",
                                 .gpu = idx,
                                 .session = session,
                                 .device = device,
                                 .cache_dir = l->cache,
                                 .memory_bytes = UINT64_C(1) << 30,
                                 .staging_bytes = fleet_staging_bytes,
                                 .keep = f->keep,
                                 .allow_insecure_keys = true,
                                 .threads = 1,
                                 .ack_wait_ns = SECOND * 2,
                                 .stall_ns = f->stall_ns,
                                 .result_hold_ns = SECOND * 20};
    CHECK_OK(loopback_connect(&l->links.control, f->broker, NULL));
    l->links.bulk.count = BULK_LINKS;
    for (unsigned i = 0; i < BULK_LINKS; i++) { /* as bodies come to a device: over several */
        CHECK_OK(loopback_connect(&l->links.bulk.links[i], f->broker, NULL));
    }
    CHECK_OK(loopback_connect(&l->links.telemetry, f->broker, NULL));
    CHECK_OK(fleet_backend_open(&l->inner));
    l->device = device_new(l->inner, idx, f->copies);
    CHECK_OK(lane_open(&l->lane, &config, &l->links, l->device));
}

void fleet_stop_lane(struct fleet *f, unsigned idx) {
    struct fleet_lane *l = &f->lanes[idx];
    lane_close(&l->lane);
    backend_close(&l->device);
    backend_close(&l->inner);
    transport_close(&l->links.telemetry);
    for (unsigned i = 0; i < BULK_LINKS; i++) {
        transport_close(&l->links.bulk.links[i]);
    }
    transport_close(&l->links.control);
}

static bool coordinator_ready(void *ctx) {
    return coordinator_is_ready(ctx);
}

struct fleet *fleet_new_impatient(unsigned lanes_count, uint64_t stall_ns) {
    struct fleet *f = mem_zero_alloc(1, sizeof *f);
    CHECK(f);
    for (unsigned i = 0; i < FLEET_LANES_MAX; i++) {
        fleet_trouble(i, TROUBLE_NONE, 0);
        atomic_store(&states[i].runs, 0);
    }
    f->stall_ns = stall_ns;
    CHECK_OK(dir_make_temp(&f->dir, "bellows-fleet"));
    CHECK_OK(subject_space_init(&f->user.space, NULL));
    CHECK_OK(loopback_open(&f->broker));
    CHECK_OK(loopback_connect(&f->user.link, f->broker, NULL));
    fleet_start_coordinator(f);
    wait_until(coordinator_ready, f->coordinator, "the coordinator is ready");
    for (unsigned i = 0; i < lanes_count; i++) {
        fleet_start_lane(f, i);
    }
    return f;
}

struct fleet *fleet_new(unsigned lanes_count) {
    return fleet_new_impatient(lanes_count, 60 * SECOND);
}

void fleet_free(struct fleet **f) {
    for (unsigned i = 0; i < FLEET_LANES_MAX; i++) {
        fleet_trouble(i, TROUBLE_NONE, 0);
        fleet_stop_lane(*f, i);
    }
    fleet_stop_coordinator(*f);
    transport_close(&(*f)->user.link);
    loopback_close(&(*f)->broker);
    CHECK_OK(dir_remove_tree((*f)->dir));
    mem_free((*f)->dir);
    mem_free(*f);
    *f = NULL;
}

/* --- Jobs and states --- */

void fleet_prove(struct fleet *f, const char *job_id, const char *case_name) {
    submit_job(&f->user, &(struct job_order){.case_name = case_name, .job_id = job_id});
    AUTO(message_free) result_message *r = job_result(&f->user, job_id, 1);
    check_proved(r, case_name, 1);
}

void fleet_submit(struct fleet *f, const char *case_name, int count) {
    for (int i = 0; i < count; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        submit_job(&f->user, &(struct job_order){.case_name = case_name, .job_id = job_id});
    }
}

void fleet_check(struct fleet *f, const char *case_name, int count) {
    for (int i = 0; i < count; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        AUTO(message_free) result_message *r = job_result(&f->user, job_id, 1);
        check_proved(r, case_name, 1);
    }
}

struct told { /* what a lane's directory entry is waited for to say */
    const struct submitter *user;
    char *reason;
    uint32_t gpu;
    Bellows__V1__LaneState state;
};

static bool says(void *ctx) {
    struct told *t = ctx;
    return lane_state_told(t->reason, t->user, (struct lane_name){"w", t->gpu}) == (int)t->state;
}

void fleet_wait_state(char reason[FLEET_REASON_BYTES], struct fleet *f, uint32_t gpu,
                      Bellows__V1__LaneState state) {
    struct told told = {&f->user, reason, gpu, state};
    reason[0] = 0;
    wait_until(says, &told, "the lane's entry says its state");
}
