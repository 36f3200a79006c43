/* Straight through the modules that `bellows submit` uses, without its command line. */
#include "tests/unit/daemon/submitter.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/groth16/verify.h"
#include "node/transport/fleet.h"
#include "proto/body.h"
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

static enum err upload_frame(void *ctx, struct bytes frame) {
    return object_upload_chunk(ctx, frame);
}

static Bellows__V1__Body *write_body(const struct submitter *s, const struct witness *w,
                                     bool as_object, struct bytes_mut *frames,
                                     struct object_info *info, const char *name) {
    struct frame_layout layout;
    struct body_summary summary;
    AUTO(body_vector_close) struct body_vector v = {0};
    struct body_place place = {0};
    Bellows__V1__Body *body = NULL;
    static struct subject bucket; /* the description lends it */
    bucket = bucket_in(&s->space, "acme");
    CHECK_OK(body_vector_open(&v, SECTION_WITNESS_RAW, bytes_of(w->values, w->count * SCALAR_BYTES),
                              w->curve->r.w, NULL));
    if (s->bodies_raw) {
        body_vector_close(&v);
        v.section = (struct frame_section){SECTION_WITNESS_RAW, w->count, w->count * SCALAR_BYTES};
        v.data = bytes_of(w->values, w->count * SCALAR_BYTES);
    }
    CHECK_OK(body_layout_of_witness(&layout, &v.section));
    if (as_object) {
        struct object_upload *upload = NULL;
        CHECK_OK(fleet_ensure_tenant(s->link, &s->space, "acme", &(struct fleet_options){0}));
        CHECK_OK(object_upload_open(&upload, s->link, bucket.text, name));
        CHECK_OK(body_write(&summary, &layout, &v.data, upload_frame, upload));
        CHECK_OK(object_upload_commit(info, upload));
        object_upload_close(&upload);
        place = (struct body_place){.bucket = bucket.text, .name = name, .nuid = info->nuid};
    } else {
        CHECK_OK(body_write_inline(&summary, frames, &layout, &v.data, JOB_INLINE_BYTES_MAX));
        place.inline_frames = bytes_of(frames->ptr, frames->len);
    }
    CHECK_OK(body_describe(&body, &summary, place));
    return body;
}

static void push_key(const struct submitter *s, const char *path, const struct sha256 *digest) {
    char hex[SHA256_HEX_BYTES];
    struct object_info info;
    struct file_map map;
    struct subject bucket = bucket_keys(&s->space);
    bool found = false;
    sha256_hex(hex, digest);
    CHECK_OK(object_info(&info, &found, s->link, bucket.text, hex));
    if (!found) {
        CHECK_OK(file_map_open(&map, path));
        CHECK_OK(object_put_bytes(&info, s->link, bucket.text, hex, map.bytes));
        file_map_close(&map);
    }
}

static const char *key_of(const struct job_order *j) {
    return j->key ? check_vectors(j->key) : file_of(j->case_name, "circuit.zkey");
}

void submit_job(const struct submitter *s, const struct job_order *j) {
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
    CHECK_OK(file_map_open(&key, key_of(j)));
    CHECK_OK(sha256_of(&digest, key.bytes));
    file_map_close(&key);
    if (!j->key_unregistered) {
        push_key(s, key_of(j), &digest);
    }
    CHECK_OK(witness_open(&w, j->witness ? check_vectors(j->witness)
                                         : file_of(j->case_name, "witness.wtns")));
    for (uint32_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%s.%u", j->job_id, i);
        bellows__v1__partition__init(&partitions[i]);
        partitions[i].body = write_body(s, &w, j->body_as_object, &frames[i], &infos[i], names[i]);
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
    struct subject subject = subject_job(&s->space, m.priority, digest.b, name);
    char id[32];
    static unsigned
        sent; /* no message id twice: repeats must meet the coordinator, not the server's window */
    snprintf(id, sizeof id, "sent.%u", sent++);
    struct publish_ack ack;
    CHECK_OK(transport_publish(&ack, s->link, subject.text, bytes_of(packed.ptr, packed.len),
                               &(struct publish_options){.message_id = id}));
    mem_free(packed.ptr);
    for (uint32_t i = 0; i < count; i++) {
        mem_free(partitions[i].body);
        mem_free(frames[i].ptr);
    }
    witness_close(&w);
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

enum job_state cancel_job(const struct submitter *s, const char *job_id) {
    Bellows__V1__Control m = BELLOWS__V1__CONTROL__INIT;
    Bellows__V1__ControlReply *reply = NULL;
    struct bytes_mut packed;
    struct message answer = {0};
    struct subject subject = subject_ctl_coordinator(&s->space, "cancel");
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
