/* Descriptors and results, field by field: every claim is compared with a limit or with another claim. */
#include "proto/job.h"

#include "node/base/hash.h"
#include "node/base/text.h"

#include <inttypes.h>
#include <string.h>

/* --- Bodies --- */

static FALLIBLE check_place(const Bellows__V1__Body *body) {
    switch (body->place_case) {
    case BELLOWS__V1__BODY__PLACE_INLINE_FRAMES:
        REQUIRE(body->inline_frames.len <= JOB_INLINE_BYTES_MAX, E_LIMIT,
                "inline body has %zu bytes, at most %d allowed: put it into the object store",
                body->inline_frames.len, JOB_INLINE_BYTES_MAX);
        REQUIRE(body->inline_frames.len == body->wire_bytes, E_FORMAT,
                "inline body has %zu bytes, wire_bytes says %" PRIu64, body->inline_frames.len,
                body->wire_bytes);
        return OK;
    case BELLOWS__V1__BODY__PLACE_OBJECT:
        TRY(id_check(body->object->bucket, "object bucket"));
        TRY(id_check(body->object->nuid, "object nuid"));
        REQUIRE(body->object->name[0] && strlen(body->object->name) < 256, E_FORMAT,
                "object name has %zu bytes, want 1 to 255", strlen(body->object->name));
        REQUIRE(body->object->n_chunk_steps <= OBJECT_STEPS_MAX, E_LIMIT,
                "object tells of %zu chunks where they lie, at most %d allowed",
                body->object->n_chunk_steps, OBJECT_STEPS_MAX);
        return OK;
    default:
        FAIL(E_FORMAT, "body has neither inline frames nor an object");
    }
}

FALLIBLE body_layout(struct frame_layout *out, const Bellows__V1__Body *body,
                     uint64_t memory_bytes_max) {
    struct frame_section sections[BODY_SECTIONS_MAX];
    REQUIRE(body->n_sections > 0 && body->n_sections <= BODY_SECTIONS_MAX, E_FORMAT,
            "body has %zu sections, want 1 to %d", body->n_sections, BODY_SECTIONS_MAX);
    for (size_t i = 0; i < body->n_sections; i++) {
        const Bellows__V1__Section *s = body->sections[i];
        sections[i] = (struct frame_section){.kind = (enum section_kind)s->kind,
                                             .values_count = s->values_count,
                                             .raw_bytes = s->raw_bytes};
    }
    struct frame_layout layout;
    TRY(frame_layout_init(&layout, sections, body->n_sections, body->frame_bytes,
                          memory_bytes_max));
    REQUIRE(layout.raw_bytes == body->raw_bytes, E_FORMAT,
            "sections hold %" PRIu64 " bytes, raw_bytes says %" PRIu64, layout.raw_bytes,
            body->raw_bytes);
    REQUIRE(layout.frames_count == body->frames_count, E_FORMAT,
            "sections make %" PRIu32 " frames, frames_count says %" PRIu32, layout.frames_count,
            body->frames_count);
    REQUIRE(body->wire_bytes > 0 && body->wire_bytes <= frame_layout_wire_bytes_max(&layout),
            E_FORMAT, "wire_bytes is %" PRIu64 ", want 1 to %" PRIu64, body->wire_bytes,
            frame_layout_wire_bytes_max(&layout));
    REQUIRE(body->sha256.len == SHA256_BYTES, E_FORMAT, "sha256 of the body has %zu bytes, want %d",
            body->sha256.len, SHA256_BYTES);
    TRY(check_place(body));
    *out = layout;
    return OK;
}

static bool holds(const struct frame_section *s, enum section_kind raw, enum section_kind packed) {
    return s->kind == raw || s->kind == packed;
}

FALLIBLE body_form_of(enum body_form *out, const struct frame_layout *layout) {
    const struct frame_section *s = layout->sections;
    uint32_t count = layout->sections_count;
    if (count == BODY_WITNESS && holds(s, SECTION_WITNESS_RAW, SECTION_WITNESS_PACKED)) {
        *out = BODY_WITNESS;
        return OK;
    }
    REQUIRE(count == BODY_EVALUATIONS &&
                holds(&s[0], SECTION_EVALUATIONS_A_RAW, SECTION_EVALUATIONS_A_PACKED) &&
                holds(&s[1], SECTION_EVALUATIONS_B_RAW, SECTION_EVALUATIONS_B_PACKED) &&
                holds(&s[2], SECTION_WITNESS_RAW, SECTION_WITNESS_PACKED),
            E_FORMAT,
            "body has %" PRIu32 " sections, the first of kind %d; it must be a witness alone, or "
            "EVALUATIONS_A, EVALUATIONS_B and the witness, in this order",
            count, (int)s[0].kind);
    REQUIRE(s[0].values_count == s[1].values_count, E_FORMAT,
            "body has %" PRIu64 " rows of a and %" PRIu64 " of b; both have a row a constraint",
            s[0].values_count, s[1].values_count);
    *out = BODY_EVALUATIONS;
    return OK;
}

static FALLIBLE check_body(const Bellows__V1__Body *body, const char *tenant,
                           uint64_t body_bytes_max) {
    struct frame_layout layout;
    enum body_form form;
    REQUIRE(body, E_FORMAT, "it has no body");
    TRY(body_layout(&layout, body, body_bytes_max));
    TRY(body_form_of(&form, &layout));
    if (body->place_case == BELLOWS__V1__BODY__PLACE_OBJECT) {
        /* A tenant's jobs read the tenant's bucket only: "<prefix>-in-<tenant>". */
        const char *bucket = body->object->bucket;
        size_t len = strlen(bucket), tail = strlen(tenant);
        REQUIRE(len > tail + 4 && strcmp(bucket + len - tail, tenant) == 0 &&
                    memcmp(bucket + len - tail - 4, "-in-", 4) == 0,
                E_FORMAT, "object bucket \"%s\" is not the input bucket of tenant \"%s\"", bucket,
                tenant);
    }
    return OK;
}

/* --- Jobs --- */

FALLIBLE job_check_label(const char *label) {
    size_t len = strlen(label);
    REQUIRE(len <= JOB_LABEL_BYTES_MAX, E_FORMAT, "label has %zu bytes, at most %d allowed", len,
            JOB_LABEL_BYTES_MAX);
    for (size_t at = 0, step; at < len; at += step) {
        step = utf8_length((const uint8_t *)label + at, len - at);
        REQUIRE(step > 0, E_FORMAT, "label holds byte 0x%02x at %zu: not UTF-8 text",
                (uint8_t)label[at], at);
    }
    return OK;
}

static FALLIBLE check_names(const job_message *job) {
    TRY(id_check(job->job_id, "job id"));
    TRY(id_check(job->tenant, "tenant"));
    REQUIRE(job->key_digest.len == SHA256_BYTES, E_FORMAT, "key_digest has %zu bytes, want %d",
            job->key_digest.len, SHA256_BYTES);
    REQUIRE(job->curve == BELLOWS__V1__CURVE__BN254 || job->curve == BELLOWS__V1__CURVE__BLS12_381,
            E_FORMAT, "curve is %d, want 1 (BN254) or 2 (BLS12-381)", (int)job->curve);
    TRY(job_check_label(job->label));
    REQUIRE(job->priority < JOB_PRIORITY_COUNT, E_RANGE, "priority is %" PRIu32 ", want 0 to %d",
            job->priority, JOB_PRIORITY_COUNT - 1);
    REQUIRE(job->generation > 0, E_RANGE, "generation is 0: it counts from 1");
    if (job->reply_subject[0]) {
        TRY(subject_check_reply(job->reply_subject, job->tenant));
    }
    return OK;
}

static FALLIBLE check_subject(const job_message *job, const struct subject_parts *subject) {
    char circuit[2 * SHA256_BYTES + 1];
    hex_encode(circuit, job->key_digest.data, CIRCUIT_TOKEN_DIGITS / 2);
    REQUIRE(subject->kind == SUBJECT_JOB, E_FORMAT, "a job came on a subject of another kind");
    REQUIRE(strcmp(subject->job, job->job_id) == 0, E_FORMAT,
            "job \"%s\" came on the subject of job \"%s\"", job->job_id, subject->job);
    REQUIRE(strcmp(subject->tenant, job->tenant) == 0, E_FORMAT,
            "a job of tenant \"%s\" came on the subject of tenant \"%s\"", job->tenant,
            subject->tenant);
    REQUIRE(strcmp(subject->circuit, circuit) == 0, E_FORMAT,
            "a job for key %s… came on the subject of circuit %s", circuit, subject->circuit);
    REQUIRE(subject->priority == job->priority, E_FORMAT,
            "a job of priority %" PRIu32 " came on the subject of priority %u", job->priority,
            subject->priority);
    return OK;
}

FALLIBLE job_check(const job_message *job, const struct subject_parts *subject,
                   uint64_t body_bytes_max) {
    TRY(check_names(job));
    if (subject) {
        TRY(check_subject(job, subject));
    }
    REQUIRE(job->n_partitions > 0 && job->n_partitions <= JOB_PARTITIONS_MAX, E_RANGE,
            "job has %zu partitions, want 1 to %d", job->n_partitions, JOB_PARTITIONS_MAX);
    for (size_t i = 0; i < job->n_partitions; i++) {
        enum err err = check_body(job->partitions[i]->body, job->tenant, body_bytes_max);
        if (err != OK) {
            return err_prefix(err, "partition %zu", i);
        }
    }
    return OK;
}

FALLIBLE job_unpack(job_message **out, struct bytes data, const struct subject_parts *subject,
                    uint64_t body_bytes_max) {
    AUTO(message_free) job_message *job = NULL;
    TRY(message_unpack(&job, &bellows__v1__job__descriptor, data, JOB_BYTES_MAX, "job"));
    TRY(job_check(job, subject, body_bytes_max));
    *out = TAKE(job);
    return OK;
}

FALLIBLE job_pack(struct bytes_mut *out, const job_message *job) {
    return message_pack(out, job, JOB_BYTES_MAX, "job");
}

/* --- Fingerprint --- */

static FALLIBLE add_number(struct sha256_run *run, uint64_t n) {
    uint8_t le[8];
    store_u64le(le, n);
    return sha256_add(run, bytes_of(le, sizeof le));
}

static FALLIBLE add_block(struct sha256_run *run, const void *ptr, size_t len) {
    TRY(add_number(run, len));
    return sha256_add(run, bytes_of(ptr, len));
}

static FALLIBLE add_body(struct sha256_run *run, const Bellows__V1__Body *body) {
    TRY(add_number(run, body->n_sections));
    for (size_t i = 0; i < body->n_sections; i++) {
        TRY(add_number(run, (uint64_t)body->sections[i]->kind));
        TRY(add_number(run, body->sections[i]->values_count));
        TRY(add_number(run, body->sections[i]->raw_bytes));
    }
    TRY(add_number(run, body->frame_bytes));
    TRY(add_number(run, body->wire_bytes));
    return add_block(run, body->sha256.data, body->sha256.len);
}

FALLIBLE job_fingerprint(uint8_t out[32], const job_message *job) {
    struct sha256 digest;
    AUTO(sha256_free) struct sha256_run *run = NULL;
    TRY(sha256_new(&run));
    TRY(add_number(run, job->version));
    TRY(add_block(run, job->tenant, strlen(job->tenant)));
    TRY(add_block(run, job->job_id, strlen(job->job_id)));
    TRY(add_block(run, job->key_digest.data, job->key_digest.len));
    TRY(add_number(run, (uint64_t)job->curve));
    TRY(add_number(run, job->n_partitions));
    for (size_t i = 0; i < job->n_partitions; i++) {
        TRY(add_body(run, job->partitions[i]->body));
    }
    TRY(sha256_end(&digest, run));
    memcpy(out, digest.b, sizeof digest.b);
    return OK;
}

/* --- Results --- */

const char *status_name(Bellows__V1__Status status) {
    switch (status) {
    case BELLOWS__V1__STATUS__STATUS_OK:
        return "ok";
    case BELLOWS__V1__STATUS__STATUS_FAILED:
        return "failed";
    case BELLOWS__V1__STATUS__STATUS_CANCELLED:
        return "cancelled";
    case BELLOWS__V1__STATUS__STATUS_EXPIRED:
        return "expired";
    default:
        return "unknown";
    }
}

static FALLIBLE check_point(const char *name, const ProtobufCBinaryData *point, size_t per_fp,
                            Bellows__V1__Curve curve) {
    size_t small = per_fp * 32, large = per_fp * 48;
    bool fits = curve == BELLOWS__V1__CURVE__BN254 ? point->len == small
                : curve == BELLOWS__V1__CURVE__BLS12_381
                    ? point->len == large
                    : point->len == small || point->len == large;
    REQUIRE(fits, E_FORMAT, "proof.%s has %zu bytes", name, point->len);
    return OK;
}

static FALLIBLE check_part(const part_message *part, Bellows__V1__Curve curve) {
    if (part->status != BELLOWS__V1__STATUS__STATUS_OK) {
        REQUIRE(part->status >= BELLOWS__V1__STATUS__STATUS_FAILED &&
                    part->status <= BELLOWS__V1__STATUS__STATUS_EXPIRED,
                E_FORMAT, "status is %d", (int)part->status);
        REQUIRE(part->error, E_FORMAT, "status is %s, but no error says why",
                status_name(part->status));
        return OK;
    }
    REQUIRE(part->proof, E_FORMAT, "status is ok, but there is no proof");
    TRY(check_point("a", &part->proof->a, 2, curve));
    TRY(check_point("b", &part->proof->b, 4, curve));
    TRY(check_point("c", &part->proof->c, 2, curve));
    REQUIRE(part->proof->publics.len % 32 == 0, E_FORMAT,
            "proof.publics has %zu bytes, not 32 each", part->proof->publics.len);
    return OK;
}

FALLIBLE part_unpack(part_message **out, struct bytes data) {
    AUTO(message_free) part_message *part = NULL;
    TRY(message_unpack(&part, &bellows__v1__part_result__descriptor, data, RESULT_BYTES_MAX,
                       "partition result"));
    TRY(id_check(part->job_id, "job id"));
    TRY(id_check(part->tenant, "tenant"));
    TRY(check_part(part, BELLOWS__V1__CURVE__CURVE_UNKNOWN));
    *out = TAKE(part);
    return OK;
}

FALLIBLE part_pack(struct bytes_mut *out, const part_message *part) {
    return message_pack(out, part, RESULT_BYTES_MAX, "partition result");
}

FALLIBLE result_unpack(result_message **out, struct bytes data) {
    AUTO(message_free) result_message *result = NULL;
    TRY(message_unpack(&result, &bellows__v1__result__descriptor, data, RESULT_BYTES_MAX,
                       "result"));
    TRY(id_check(result->job_id, "job id"));
    TRY(id_check(result->tenant, "tenant"));
    REQUIRE(result->status >= BELLOWS__V1__STATUS__STATUS_OK &&
                result->status <= BELLOWS__V1__STATUS__STATUS_EXPIRED,
            E_FORMAT, "result has status %d", (int)result->status);
    REQUIRE(result->n_partitions <= JOB_PARTITIONS_MAX, E_FORMAT,
            "result has %zu partitions, at most %d allowed", result->n_partitions,
            JOB_PARTITIONS_MAX);
    for (size_t i = 0; i < result->n_partitions; i++) {
        enum err err = check_part(result->partitions[i], result->curve);
        if (err != OK) {
            return err_prefix(err, "partition %zu of the result", i);
        }
    }
    *out = TAKE(result);
    return OK;
}

FALLIBLE result_pack(struct bytes_mut *out, const result_message *result) {
    return message_pack(out, result, RESULT_BYTES_MAX, "result");
}
