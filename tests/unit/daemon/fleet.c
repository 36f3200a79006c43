/* The disturbed device forwards every operation to the plain prover, but asks first what trouble its lane is in. Operations do not know
 * their backend, so each lane has a table of its own.
 */
#include "tests/unit/daemon/fleet.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/groth16/verify.h"
#include "proto/body.h"
#include "proto/fleet.pb-c.h"
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

static const struct backend_ops *inner_ops; /* the reference's, the same for all */

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
    if (atomic_load(&states[d->idx].trouble) == TROUBLE_WRONG_SUM) {
        reference_break(d->inner, 1, strikes(d->idx) ? 1 : 0);
    }
    return d->inner->ops->key_load(out, d->inner, key);
}

static void device_close(struct backend *b) {
    mem_free(b);
}

static struct backend *device_new(struct backend *inner, unsigned idx) {
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
    d->inner = inner;
    d->idx = idx;
    d->backend.ops = &d->ops;
    snprintf(d->backend.device_name, sizeof d->backend.device_name, "disturbed reference %u", idx);
    return &d->backend;
}

/* --- Life --- */

void fleet_start_coordinator(struct fleet *f) {
    struct coordinator_config config = {.name = "test",
                                        .silence_ns = SECOND * 3 / 2,
                                        .lease_ttl_ns = SECOND * 2,
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

void fleet_start_lane(struct fleet *f, unsigned idx) {
    struct fleet_lane *l = &f->lanes[idx];
    char session[NUID_BYTES];
    transport_nuid(session);
    snprintf(l->cache, sizeof l->cache, "%s/lane%u", f->dir, idx);
    struct lane_config config = {.node = "w",
                                 .gpu = idx,
                                 .session = session,
                                 .cache_dir = l->cache,
                                 .memory_bytes = UINT64_C(1) << 30,
                                 .allow_insecure_keys = true,
                                 .threads = 1,
                                 .ack_wait_ns = SECOND * 2,
                                 .stall_ns = f->stall_ns,
                                 .result_hold_ns = SECOND * 20};
    CHECK_OK(loopback_connect(&l->links.control, f->broker, NULL));
    CHECK_OK(loopback_connect(&l->links.bulk, f->broker, NULL));
    CHECK_OK(loopback_connect(&l->links.telemetry, f->broker, NULL));
    CHECK_OK(reference_backend_open(&l->inner));
    l->device = device_new(l->inner, idx);
    CHECK_OK(lane_open(&l->lane, &config, &l->links, l->device));
}

void fleet_stop_lane(struct fleet *f, unsigned idx) {
    struct fleet_lane *l = &f->lanes[idx];
    lane_close(&l->lane);
    backend_close(&l->device);
    backend_close(&l->inner);
    transport_close(&l->links.telemetry);
    transport_close(&l->links.bulk);
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
    CHECK_OK(subject_space_init(&f->space, NULL));
    CHECK_OK(loopback_open(&f->broker));
    CHECK_OK(loopback_connect(&f->user, f->broker, NULL));
    fleet_start_coordinator(f);
    fleet_wait_until(coordinator_ready, f->coordinator, "the coordinator is ready");
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
    transport_close(&(*f)->user);
    loopback_close(&(*f)->broker);
    CHECK_OK(dir_remove_tree((*f)->dir));
    mem_free((*f)->dir);
    mem_free(*f);
    *f = NULL;
}

void fleet_wait_until(bool (*holds)(void *ctx), void *ctx, const char *what) {
    for (int n = 0; n < 1000; n++) {
        if (holds(ctx)) {
            return;
        }
        clock_sleep_ns(SECOND / 100);
    }
    CHECK_MSG(false, "after ten seconds it is still not so that %s", what);
}

/* --- The submitter --- */

static const char *file_of(const char *case_name, const char *tail) {
    static char paths[4][512];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    char joined[256];
    snprintf(joined, sizeof joined, "%s/%s", case_name, tail);
    snprintf(path, sizeof paths[0], "%s", check_vectors(joined));
    return path;
}

static enum err upload_frame(void *ctx, struct bytes frame) {
    return object_upload_chunk(ctx, frame);
}

static Bellows__V1__Body *write_body(struct fleet *f, const struct witness *w, bool as_object,
                                     struct bytes_mut *frames, struct object_info *info,
                                     const char *name) {
    struct frame_layout layout;
    struct body_summary summary;
    struct bytes data = bytes_of(w->values, w->count * SCALAR_BYTES);
    struct body_place place = {0};
    Bellows__V1__Body *body = NULL;
    static struct subject bucket; /* the description lends it */
    bucket = bucket_in(&f->space, "acme");
    CHECK_OK(body_layout_of_witness(&layout, w->count));
    if (as_object) {
        struct object_upload *upload = NULL;
        CHECK_OK(fleet_ensure_tenant(f->user, &f->space, "acme", &(struct fleet_options){0}));
        CHECK_OK(object_upload_open(&upload, f->user, bucket.text, name));
        CHECK_OK(body_write(&summary, &layout, &data, upload_frame, upload));
        CHECK_OK(object_upload_commit(info, upload));
        object_upload_close(&upload);
        place = (struct body_place){.bucket = bucket.text, .name = name, .nuid = info->nuid};
    } else {
        CHECK_OK(body_write_inline(&summary, frames, &layout, &data, JOB_INLINE_BYTES_MAX));
        place.inline_frames = bytes_of(frames->ptr, frames->len);
    }
    CHECK_OK(body_describe(&body, &summary, place));
    return body;
}

static void push_key(struct fleet *f, const char *path, const struct sha256 *digest) {
    char hex[SHA256_HEX_BYTES];
    struct object_info info;
    struct file_map map;
    struct subject bucket = bucket_keys(&f->space);
    bool found = false;
    sha256_hex(hex, digest);
    CHECK_OK(object_info(&info, &found, f->user, bucket.text, hex));
    if (!found) {
        CHECK_OK(file_map_open(&map, path));
        CHECK_OK(object_put_bytes(&info, f->user, bucket.text, hex, map.bytes));
        file_map_close(&map);
    }
}

void fleet_submit(struct fleet *f, const struct fleet_job *j) {
    enum { PARTS_MAX = 16 };
    uint32_t count = j->parts_count ? j->parts_count : 1;
    struct sha256 digest;
    struct file_map key;
    struct witness w;
    struct bytes_mut frames[PARTS_MAX] = {{0}}, packed;
    struct object_info infos[PARTS_MAX];
    char names[PARTS_MAX][64];
    Bellows__V1__Partition partitions[PARTS_MAX], *ptrs[PARTS_MAX];
    job_message m = BELLOWS__V1__JOB__INIT;
    CHECK(count <= PARTS_MAX);
    CHECK_OK(file_map_open(&key, file_of(j->case_name, "circuit.zkey")));
    CHECK_OK(sha256_of(&digest, key.bytes));
    file_map_close(&key);
    if (!j->key_unregistered) {
        push_key(f, file_of(j->case_name, "circuit.zkey"), &digest);
    }
    CHECK_OK(witness_open(&w, j->witness ? check_vectors(j->witness)
                                         : file_of(j->case_name, "witness.wtns")));
    for (uint32_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%s.%u", j->job_id, i);
        bellows__v1__partition__init(&partitions[i]);
        partitions[i].body = write_body(f, &w, j->body_as_object, &frames[i], &infos[i], names[i]);
        ptrs[i] = &partitions[i];
    }
    m.version = WIRE_VERSION;
    m.job_id = (char *)(uintptr_t)j->job_id;
    m.tenant = (char *)(uintptr_t) "acme";
    m.key_digest = (ProtobufCBinaryData){SHA256_BYTES, digest.b};
    m.curve = (Bellows__V1__Curve)w.curve->id;
    m.priority = j->priority;
    m.deadline_unix_ms = j->deadline_ms ? clock_unix_ns() / 1000000 + j->deadline_ms : 0;
    m.reply_subject = (char *)(uintptr_t)(j->reply_subject ? j->reply_subject : "");
    m.generation = j->generation ? j->generation : 1;
    m.submitted_unix_ms = clock_unix_ns() / 1000000;
    m.n_partitions = count;
    m.partitions = ptrs;
    CHECK_OK(job_pack(&packed, &m));
    struct job_name name = {"acme", j->job_id};
    struct subject subject = subject_job(&f->space, m.priority, digest.b, name);
    char id[32];
    static unsigned
        sent; /* no message id twice: repeats must meet the coordinator, not the server's window */
    snprintf(id, sizeof id, "sent.%u", sent++);
    struct publish_ack ack;
    CHECK_OK(transport_publish(&ack, f->user, subject.text, bytes_of(packed.ptr, packed.len),
                               &(struct publish_options){.message_id = id}));
    mem_free(packed.ptr);
    for (uint32_t i = 0; i < count; i++) {
        mem_free(partitions[i].body);
        mem_free(frames[i].ptr);
    }
    witness_close(&w);
}

static struct job_place place_of(struct fleet *f, const char *job_id) {
    return (struct job_place){f->user, &f->space, {"acme", job_id}};
}

result_message *fleet_result(struct fleet *f, const char *job_id, uint64_t generation) {
    struct job_place at = place_of(f, job_id);
    for (int n = 0; n < 1000; n++) {
        result_message *result = NULL;
        bool found = false;
        CHECK_OK(result_fetch(&result, &found, &at, generation));
        if (found) {
            return result;
        }
        clock_sleep_ns(SECOND / 100);
    }
    CHECK_MSG(false, "job %s has no result after ten seconds", job_id);
    return NULL;
}

void fleet_check_proved(const result_message *r, const char *case_name, uint32_t parts_count) {
    struct vkey vk;
    struct file_map json;
    CHECK_MSG(r->status == BELLOWS__V1__STATUS__STATUS_OK, "job %s is %s: %s", r->job_id,
              status_name(r->status), r->error ? r->error->detail : "");
    CHECK_EQ(parts_count, r->n_partitions);
    CHECK_OK(file_map_open(&json, file_of(case_name, "verification_key.json")));
    CHECK_OK(vkey_read_json(&vk, json.bytes, "vkey"));
    file_map_close(&json);
    for (uint32_t i = 0; i < parts_count; i++) {
        struct proof proof;
        struct scalar *publics = NULL;
        size_t publics_count = 0;
        CHECK_EQ(i, r->partitions[i]->index);
        CHECK(r->partitions[i]->n_steps >= STEP_COUNT);
        CHECK(r->partitions[i]->total_ns > 0);
        CHECK_OK(proof_from_message(&proof, &publics, &publics_count, vk.curve,
                                    r->partitions[i]->proof));
        CHECK_OK(groth16_verify(&vk, publics, publics_count, &proof));
        mem_free(publics);
    }
    vkey_done(&vk);
}

enum job_state fleet_cancel(struct fleet *f, const char *job_id) {
    Bellows__V1__Control m = BELLOWS__V1__CONTROL__INIT;
    Bellows__V1__ControlReply *reply = NULL;
    struct bytes_mut packed;
    struct message answer = {0};
    struct subject subject = subject_ctl_coordinator(&f->space, "cancel");
    m.version = WIRE_VERSION;
    m.tenant = (char *)(uintptr_t) "acme";
    m.job_id = (char *)(uintptr_t)job_id;
    CHECK_OK(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "control"));
    CHECK_OK(transport_request(&answer, f->user, subject.text, bytes_of(packed.ptr, packed.len),
                               5 * SECOND));
    mem_free(packed.ptr);
    CHECK_OK(message_unpack(&reply, &bellows__v1__control_reply__descriptor, answer.data,
                            MESSAGE_BYTES_MAX, "reply"));
    message_done(&answer);
    CHECK_MSG(reply->ok, "cancel of %s: %s", job_id, reply->error_detail);
    enum job_state state = (enum job_state)reply->state;
    message_free(&reply);
    return state;
}

struct record_slot fleet_record(struct fleet *f, const char *job_id, enum job_state state) {
    struct job_place at = place_of(f, job_id);
    struct record_slot slot = {0};
    for (int n = 0; n < 500; n++) {
        bool found = false;
        CHECK_OK(record_load(&slot, &found, &at));
        if (found && slot.record.state == state) {
            return slot;
        }
        clock_sleep_ns(SECOND / 100);
    }
    CHECK_MSG(false, "job %s is %s after five seconds, not %s", job_id,
              slot.loaded ? job_state_name(slot.record.state) : "unknown", job_state_name(state));
    return slot;
}
