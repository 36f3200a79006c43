/* Straight through the modules that `bellows submit` uses, without its command line. */
#include "tests/unit/daemon/submitter.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/groth16/verify.h"
#include "node/transport/fleet.h"
#include "node/witness/vectors.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

#define SECOND UINT64_C(1000000000)

void wait_until(bool (*holds)(void *ctx), void *ctx, const char *what) {
    for (int n = 0; n < 1000; n++) {
        if (holds(ctx)) {
            return;
        }
        clock_sleep_ns(SECOND / 100);
    }
    CHECK_MSG(false, "after ten seconds it is still not so that %s", what);
}

static const char *file_of(const char *case_name, const char *tail) {
    static char paths[4][512];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    char joined[256];
    snprintf(joined, sizeof joined, "%s/%s", case_name, tail);
    snprintf(path, sizeof paths[0], "%s", check_vectors(joined));
    return path;
}

enum { ORDER_PARTS_MAX = 40 };

struct order_draft {        /* what a descriptor lends while it is made */
    struct witness witness; /* owned */
    struct witness first;   /* owned: of partition 0, where that has another */
    uint32_t parts_count;
    Bellows__V1__Body *bodies[ORDER_PARTS_MAX]; /* owned: mem_free */
    struct bytes_mut frames[ORDER_PARTS_MAX];   /* owned */
    char names[ORDER_PARTS_MAX][160], nuids[ORDER_PARTS_MAX][64], bucket[SUBJECT_BYTES_MAX];
};

static enum err upload_frame(void *ctx, struct bytes frame) {
    return object_upload_chunk(ctx, frame);
}

static void draft_done(struct order_draft *d) {
    for (uint32_t i = 0; i < d->parts_count; i++) {
        mem_free(d->bodies[i]);
        mem_free(d->frames[i].ptr);
    }
    witness_close(&d->witness);
    witness_close(&d->first);
}

static enum err write_object(struct body_summary *summary, struct object_info *info,
                             const struct submitter *s, const char *tenant,
                             const struct frame_layout *layout, const struct bytes *data,
                             const char *name) {
    AUTO(object_upload_close) struct object_upload *upload = NULL;
    struct subject bucket = bucket_in(&s->space, tenant);
    TRY(fleet_ensure_tenant(s->link, &s->space, tenant, &(struct fleet_options){0}));
    TRY(object_upload_open(&upload, s->link, bucket.text, name));
    TRY(body_write(summary, layout, data, upload_frame, upload));
    return object_upload_commit(info, upload);
}

static enum err write_body(struct order_draft *d, uint32_t idx, const struct submitter *s,
                           const struct job_order *j, const char *tenant) {
    struct frame_layout layout;
    struct body_summary summary;
    AUTO(vectors_close) struct vectors v = {.count = 0};
    const struct witness *w = idx == 0 && j->first_witness ? &d->first : &d->witness;
    struct body_place place = {0};
    struct subject bucket = bucket_in(&s->space, tenant);
    if (s->bodies_raw) {
        v.sections[0] =
            (struct frame_section){SECTION_WITNESS_RAW, w->count, w->count * SCALAR_BYTES};
        v.data[0] = bytes_of(w->values, w->count * SCALAR_BYTES);
        v.count = 1;
    } else {
        TRY(vectors_open(&v, w, NULL));
    }
    TRY(frame_layout_init(&layout, v.sections, v.count,
                          s->frame_bytes ? s->frame_bytes : FRAME_RAW_BYTES_MAX, UINT64_MAX));
    if (j->body_as_object) {
        struct object_info info;
        snprintf(d->names[idx], sizeof d->names[idx], "%s%s%s.%u", j->job_id,
                 j->object_mark ? "." : "", j->object_mark ? j->object_mark : "", idx);
        TRY(write_object(&summary, &info, s, tenant, &layout, v.data, d->names[idx]));
        snprintf(d->nuids[idx], sizeof d->nuids[idx], "%s", info.nuid);
        if (j->nuids) {
            memcpy(j->nuids[idx], d->nuids[idx], sizeof d->nuids[idx]);
        }
        snprintf(d->bucket, sizeof d->bucket, "%s", bucket.text);
        place =
            (struct body_place){.bucket = d->bucket, .name = d->names[idx], .nuid = d->nuids[idx]};
    } else {
        TRY(body_write_inline(&summary, &d->frames[idx], &layout, v.data, JOB_INLINE_BYTES_MAX));
        place.inline_frames = bytes_of(d->frames[idx].ptr, d->frames[idx].len);
    }
    return body_describe(&d->bodies[idx], &summary, place);
}

static enum err push_key(const struct submitter *s, const char *path, const struct sha256 *digest) {
    char hex[SHA256_HEX_BYTES];
    struct object_info info;
    AUTO(file_map_close) struct file_map map = {0};
    struct subject bucket = bucket_keys(&s->space);
    bool found = false;
    sha256_hex(hex, digest);
    TRY(object_info(&info, &found, s->link, bucket.text, hex));
    if (found) {
        return OK;
    }
    TRY(file_map_open(&map, path));
    return object_put_bytes(&info, s->link, bucket.text, hex, map.bytes);
}

static const char *key_of(const struct job_order *j) {
    return j->key_path ? j->key_path
           : j->key    ? check_vectors(j->key)
                       : file_of(j->case_name, "circuit.zkey");
}

void write_spoiled_key(const char *path, const char *case_name) {
    enum { POINT = 37, POINT_BYTES = 64 }; /* of BN254, in G1 */
    struct file_map file;
    struct key *key = NULL;
    bool zkey_layout;
    const char *whole = file_of(case_name, "circuit.zkey");
    CHECK_OK(file_map_open(&file, whole));
    CHECK_OK(key_open(&key, whole, (struct key_options){.allow_insecure = true}));
    struct bytes points = key_points_raw(&zkey_layout, key, KEY_L);
    CHECK(zkey_layout && points.len >= (POINT + 1) * POINT_BYTES);
    uint8_t *copy = mem_alloc(file.bytes.len);
    CHECK(copy);
    memcpy(copy, file.bytes.ptr, file.bytes.len);
    uint8_t *at =
        memmem(copy, file.bytes.len, points.ptr + (size_t)POINT * POINT_BYTES, POINT_BYTES);
    CHECK(at);
    at[0] ^= 1;
    CHECK_OK(file_write_all(path, bytes_of(copy, file.bytes.len)));
    mem_free(copy);
    key_unref(&key);
    file_map_close(&file);
}

static enum err digest_of(struct sha256 *digest, const char *path) {
    AUTO(file_map_close) struct file_map key = {0};
    TRY(file_map_open(&key, path));
    return sha256_of(digest, key.bytes);
}

static enum err publish(const struct submitter *s, const job_message *m,
                        const struct job_order *j) {
    struct bytes_mut packed = {0};
    struct subject subject = subject_job(&s->space, m->priority, m->key_digest.data,
                                         (struct job_name){m->tenant, m->job_id});
    char id[32];
    static unsigned
        sent; /* no message id twice: repeats must meet the coordinator, not the server's window */
    snprintf(id, sizeof id, "sent.%u", sent++);
    struct publish_ack ack;
    TRY(job_pack(&packed, m));
    if (j->sent_ns) {
        *j->sent_ns = clock_ns();
    }
    enum err code = transport_publish(
        &ack, s->link, subject.text, bytes_of(packed.ptr, packed.len),
        &(struct publish_options){.message_id = j->message_id ? j->message_id : id});
    mem_free(packed.ptr);
    return code;
}

enum err job_order_send(const struct submitter *s, const struct job_order *j) {
    AUTO(draft_done) struct order_draft d = {.parts_count = j->parts_count ? j->parts_count : 1};
    const char *tenant = j->tenant ? j->tenant : "acme";
    struct sha256 digest;
    Bellows__V1__Partition partitions[ORDER_PARTS_MAX], *ptrs[ORDER_PARTS_MAX];
    job_message m = BELLOWS__V1__JOB__INIT;
    ASSERT(d.parts_count <= ORDER_PARTS_MAX);
    TRY(digest_of(&digest, key_of(j)));
    if (!j->key_unregistered) {
        TRY(push_key(s, key_of(j), &digest));
    }
    TRY(witness_open(&d.witness, j->witness ? check_vectors(j->witness)
                                            : file_of(j->case_name, "witness.wtns")));
    TRY(j->first_witness ? witness_open(&d.first, check_vectors(j->first_witness)) : OK);
    for (uint32_t i = 0; i < d.parts_count; i++) {
        TRY(write_body(&d, i, s, j, tenant));
        bellows__v1__partition__init(&partitions[i]);
        partitions[i].body = d.bodies[i];
        ptrs[i] = &partitions[i];
    }
    m.version = WIRE_VERSION;
    m.job_id = (char *)(uintptr_t)j->job_id;
    m.tenant = (char *)(uintptr_t)tenant;
    m.key_digest = (ProtobufCBinaryData){SHA256_BYTES, digest.b};
    m.curve = (Bellows__V1__Curve)d.witness.curve->id;
    m.priority = j->priority;
    m.deadline_unix_ms = j->deadline_ms ? clock_unix_ns() / 1000000 + j->deadline_ms : 0;
    m.reply_subject = (char *)(uintptr_t)(j->reply_subject ? j->reply_subject : "");
    m.generation = j->generation ? j->generation : 1;
    m.submitted_unix_ms = clock_unix_ns() / 1000000;
    m.n_partitions = d.parts_count;
    m.partitions = ptrs;
    return publish(s, &m, j);
}

void submit_job(const struct submitter *s, const struct job_order *j) {
    CHECK_OK(job_order_send(s, j));
}

static struct job_place place_of(const struct submitter *s, const char *job_id) {
    return (struct job_place){s->link, &s->space, {"acme", job_id}};
}

result_message *job_result(const struct submitter *s, const char *job_id, uint64_t generation) {
    struct job_place at = place_of(s, job_id);
    for (int n = 0; n < 3000; n++) {
        result_message *result = NULL;
        bool found = false;
        CHECK_OK(result_fetch(&result, &found, &at, generation));
        if (found) {
            return result;
        }
        clock_sleep_ns(SECOND / 100);
    }
    CHECK_MSG(false, "job %s has no result after thirty seconds", job_id);
    return NULL;
}

void check_failed(const result_message *r, const char *code, const char *word) {
    CHECK_EQ(BELLOWS__V1__STATUS__STATUS_FAILED, r->status);
    CHECK(r->error != NULL);
    CHECK_STR(code, r->error->name);
    CHECK_HAS(r->error->detail, word);
}

void check_proved(const result_message *r, const char *case_name, uint32_t parts_count) {
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

enum err give_order(const struct submitter *s, const char *subject, uint64_t grace_ms) {
    Bellows__V1__Control m = BELLOWS__V1__CONTROL__INIT;
    AUTO(message_free) Bellows__V1__ControlReply *reply = NULL;
    AUTO(message_done) struct message answer = {0};
    struct bytes_mut packed;
    enum err said;
    m.version = WIRE_VERSION;
    m.grace_ms = grace_ms;
    m.reason = (char *)(uintptr_t) "for the test";
    CHECK_OK(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "control"));
    enum err code =
        transport_request(&answer, s->link, subject, bytes_of(packed.ptr, packed.len), 5 * SECOND);
    mem_free(packed.ptr);
    TRY(code);
    CHECK_OK(message_unpack(&reply, &bellows__v1__control_reply__descriptor, answer.data,
                            MESSAGE_BYTES_MAX, "reply"));
    if (reply->ok) {
        return OK;
    }
    CHECK(err_from_name(&said, reply->error_name));
    return err_set(said, "%s", reply->error_detail);
}

int lane_state_told(char reason[200], const struct submitter *s, struct lane_name lane) {
    struct subject bucket = kv_bucket_name(&s->space, "lanes"), key = key_of_lane(lane);
    AUTO(kv_entry_done) struct kv_entry entry = {0};
    AUTO(message_free) Bellows__V1__LaneInfo *info = NULL;
    bool found = false;
    CHECK_OK(kv_get(&entry, &found, s->link, bucket.text, key.text));
    if (!found) {
        return 0;
    }
    CHECK_OK(message_unpack(&info, &bellows__v1__lane_info__descriptor, entry.value,
                            MESSAGE_BYTES_MAX, "lane"));
    snprintf(reason, 200, "%s", info->reason);
    return (int)info->state;
}

enum job_state cancel_job(const struct submitter *s, const char *job_id) {
    Bellows__V1__Control m = BELLOWS__V1__CONTROL__INIT;
    Bellows__V1__ControlReply *reply = NULL;
    struct bytes_mut packed;
    struct message answer = {0};
    struct subject subject = subject_ctl_tenant(&s->space, "acme", "cancel");
    m.version = WIRE_VERSION;
    m.tenant = (char *)(uintptr_t) "acme";
    m.job_id = (char *)(uintptr_t)job_id;
    CHECK_OK(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "control"));
    CHECK_OK(transport_request(&answer, s->link, subject.text, bytes_of(packed.ptr, packed.len),
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

struct record_slot job_record(const struct submitter *s, const char *job_id, enum job_state state) {
    struct job_place at = place_of(s, job_id);
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
