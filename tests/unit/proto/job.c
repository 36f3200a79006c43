/* Descriptors and bodies: each claim of a descriptor contradicted once. */
#include "proto/job.h"

#include "node/base/mem.h"
#include "proto/body.h"
#include "tests/check/check.h"

#include <string.h>

enum { VALUES = 3000 }; /* 96 000 bytes: bits, so that they ride inline */

struct made {
    struct body_summary summary;
    struct bytes_mut wire;   /* owned */
    uint8_t *raw, *got;      /* owned */
    Bellows__V1__Body *body; /* owned */
    Bellows__V1__Partition partition, *partitions;
    job_message job;
    uint8_t digest[32];
};

static void make(struct made *m) {
    struct frame_section section = {SECTION_WITNESS_RAW, VALUES, 32 * VALUES};
    struct frame_layout layout;
    memset(m, 0, sizeof *m);
    m->raw = mem_zero_alloc(VALUES, 32);
    m->got = mem_zero_alloc(VALUES, 32);
    for (size_t i = 0; i < VALUES; i++) {
        m->raw[32 * i] = (uint8_t)(rng_u64(check_rng()) & 1);
    }
    CHECK_OK(frame_layout_init(&layout, &section, 1, 16384, 1 << 20));
    struct bytes data = bytes_of(m->raw, 32 * VALUES);
    CHECK_OK(body_write_inline(&m->summary, &m->wire, &layout, &data, JOB_INLINE_BYTES_MAX));
    CHECK(m->wire.ptr && m->wire.len == m->summary.wire_bytes);
    CHECK_OK(
        body_describe(&m->body, &m->summary,
                      (struct body_place){.inline_frames = bytes_of(m->wire.ptr, m->wire.len)}));
    bellows__v1__partition__init(&m->partition);
    bellows__v1__job__init(&m->job);
    m->partition.body = m->body;
    m->partitions = &m->partition;
    m->job.version = 1;
    m->job.job_id = (char *)(uintptr_t) "job-1";
    m->job.tenant = (char *)(uintptr_t) "acme";
    m->job.key_digest = (ProtobufCBinaryData){32, m->digest};
    m->job.curve = BELLOWS__V1__CURVE__BN254;
    m->job.priority = JOB_PRIORITY_DEFAULT;
    m->job.generation = 1;
    m->job.n_partitions = 1;
    m->job.partitions = &m->partitions;
}

static void unmake(struct made *m) {
    mem_free(m->body);
    mem_free(m->wire.ptr);
    mem_free(m->raw);
    mem_free(m->got);
}

static struct frame_layout layout_of(const enum section_kind *kinds, const uint64_t *counts,
                                     size_t sections_count) {
    struct frame_section sections[BODY_SECTIONS_MAX];
    struct frame_layout layout;
    for (size_t i = 0; i < sections_count; i++) {
        sections[i] = (struct frame_section){kinds[i], counts[i], 32 * counts[i]};
        if (section_is_packed(kinds[i])) {
            sections[i].raw_bytes = codec_bytes_least(counts[i]);
        }
    }
    CHECK_OK(frame_layout_init(&layout, sections, sections_count, 4096, UINT64_MAX));
    return layout;
}

static void claim_forms(void) {
    static const struct {
        enum section_kind kinds[4];
        uint64_t counts[4];
        size_t sections_count;
        int form; /* 0: refused */
    } bodies[] = {
        {{SECTION_WITNESS_RAW}, {9}, 1, BODY_WITNESS},
        {{SECTION_WITNESS_PACKED}, {9}, 1, BODY_WITNESS},
        {{SECTION_EVALUATIONS_A_RAW, SECTION_EVALUATIONS_B_RAW, SECTION_WITNESS_RAW},
         {8, 8, 9},
         3,
         BODY_EVALUATIONS},
        {{SECTION_EVALUATIONS_A_PACKED, SECTION_EVALUATIONS_B_RAW, SECTION_WITNESS_PACKED},
         {8, 8, 9},
         3,
         BODY_EVALUATIONS},
        {{SECTION_EVALUATIONS_A_RAW, SECTION_EVALUATIONS_B_RAW, SECTION_WITNESS_RAW},
         {8, 7, 9},
         3,
         0},
        {{SECTION_EVALUATIONS_B_RAW, SECTION_EVALUATIONS_A_RAW, SECTION_WITNESS_RAW},
         {8, 8, 9},
         3,
         0},
        {{SECTION_WITNESS_RAW, SECTION_EVALUATIONS_A_RAW, SECTION_EVALUATIONS_B_RAW},
         {8, 8, 8},
         3,
         0},
        {{SECTION_EVALUATIONS_A_RAW}, {8}, 1, 0},
        {{SECTION_EVALUATIONS_A_RAW, SECTION_EVALUATIONS_B_RAW}, {8, 8}, 2, 0},
        {{SECTION_WITNESS_RAW, SECTION_WITNESS_RAW}, {8, 8}, 2, 0},
        {{SECTION_EVALUATIONS_A_RAW, SECTION_EVALUATIONS_B_RAW, SECTION_WITNESS_RAW,
          SECTION_WITNESS_RAW},
         {8, 8, 8, 8},
         4,
         0},
    };
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        struct frame_layout layout =
            layout_of(bodies[i].kinds, bodies[i].counts, bodies[i].sections_count);
        enum body_form form;
        enum err code = body_form_of(&form, &layout);
        CHECK_MSG(code == (bodies[i].form ? OK : E_FORMAT), "body %zu: %s", i, err_name(code));
        if (code == OK) {
            CHECK_EQ(bodies[i].form, form);
        }
    }
}

/* a and b of one length and an assignment of another, one of them packed, through frames that none of them ends with. */
static void claim_three_sections(void) {
    static const size_t counts[] = {700, 700, 900};
    static const enum section_kind kinds[] = {SECTION_EVALUATIONS_A_RAW, SECTION_EVALUATIONS_B_RAW,
                                              SECTION_WITNESS_RAW};
    const uint64_t r[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX >> 2};
    uint8_t *values[3], *got[3];
    struct body_vector vectors[3];
    struct frame_section sections[3];
    struct bytes data[3];
    struct bytes_mut wire = {0}, places[3];
    struct frame_layout layout;
    struct body_summary summary;
    Bellows__V1__Body *body = NULL;
    for (size_t i = 0; i < 3; i++) {
        values[i] = mem_zero_alloc(counts[i], 32);
        for (size_t k = 0; k < counts[i]; k++) { /* a: bits; the others: full */
            rng_fill(check_rng(), values[i] + 32 * k, i ? 31 : 1);
            values[i][32 * k] &= i ? 0xff : 1;
        }
        CHECK_OK(
            body_vector_open(&vectors[i], kinds[i], bytes_of(values[i], 32 * counts[i]), r, NULL));
        data[i] = vectors[i].data;
        sections[i] = vectors[i].section;
    }
    CHECK_EQ(SECTION_EVALUATIONS_A_PACKED, vectors[0].section.kind);
    CHECK_EQ(SECTION_EVALUATIONS_B_RAW, vectors[1].section.kind);
    CHECK_OK(body_layout_of(&layout, sections, 3));
    CHECK_OK(body_write_inline(&summary, &wire, &layout, data, JOB_INLINE_BYTES_MAX));
    CHECK(wire.ptr);
    CHECK_OK(body_describe(&body, &summary,
                           (struct body_place){.inline_frames = bytes_of(wire.ptr, wire.len)}));
    for (size_t i = 0; i < 3; i++) {
        got[i] = mem_alloc(data[i].len);
        places[i] = (struct bytes_mut){got[i], data[i].len};
    }
    CHECK_OK(body_read_inline(body, places, 3, 1 << 20));
    for (size_t i = 0; i < 3; i++) {
        CHECK_MEM(data[i].ptr, got[i], data[i].len);
        body_vector_close(&vectors[i]);
        mem_free(values[i]);
        mem_free(got[i]);
    }
    mem_free(body);
    mem_free(wire.ptr);
}

static void claim_round_trip(void) {
    struct made m;
    struct bytes_mut packed;
    struct subject_space space;
    struct subject_parts parts;
    AUTO(message_free) job_message *job = NULL;
    make(&m);
    CHECK_OK(job_pack(&packed, &m.job));
    CHECK_OK(subject_space_init(&space, NULL));
    struct subject subject =
        subject_job(&space, JOB_PRIORITY_DEFAULT, m.digest, (struct job_name){"acme", "job-1"});
    CHECK_OK(subject_parse(&parts, &space, subject.text));
    CHECK_OK(job_unpack(&job, bytes_of(packed.ptr, packed.len), &parts, 1 << 20));
    struct bytes_mut dest = {m.got, 32 * VALUES};
    CHECK_OK(body_read_inline(job->partitions[0]->body, &dest, 1, 1 << 20));
    CHECK_MEM(m.raw, m.got, 32 * VALUES);
    parts.priority = 0;
    CHECK_ERR(E_FORMAT, job_check(job, &parts, 1 << 20));
    parts.priority = JOB_PRIORITY_DEFAULT;
    parts.circuit[0] = 'f';
    CHECK_ERR(E_FORMAT, job_check(job, &parts, 1 << 20));
    parts.circuit[0] = '0';
    parts.job[0] = 'x';
    CHECK_ERR(E_FORMAT, job_check(job, &parts, 1 << 20));
    mem_free(packed.ptr);
    unmake(&m);
}

#define REFUSED(code, field, value, text)                                                          \
    do {                                                                                           \
        struct made m_;                                                                            \
        make(&m_);                                                                                 \
        m_.field = (value);                                                                        \
        CHECK_ERR(code, job_check(&m_.job, NULL, 1 << 20));                                        \
        CHECK_HAS(err_detail(), text);                                                             \
        unmake(&m_);                                                                               \
    } while (0)

static void claim_job_fields(void) {
    static char long_label[200], bad_id[] = "a.b", bad_text[] = "a\xff", reply[] = "a.>";
    memset(long_label, 'x', sizeof long_label - 1);
    REFUSED(E_FORMAT, job.job_id, bad_id, "job id");
    REFUSED(E_FORMAT, job.tenant, bad_id, "tenant");
    REFUSED(E_FORMAT, job.key_digest.len, 31, "key_digest has 31 bytes");
    REFUSED(E_FORMAT, job.curve, (Bellows__V1__Curve)3, "curve is 3");
    REFUSED(E_FORMAT, job.curve, BELLOWS__V1__CURVE__CURVE_UNKNOWN, "curve is 0");
    REFUSED(E_FORMAT, job.label, long_label, "label has 199 bytes");
    REFUSED(E_FORMAT, job.label, bad_text, "label holds byte 0xff at 1: not UTF-8 text");
    REFUSED(E_RANGE, job.priority, 4, "priority is 4");
    REFUSED(E_RANGE, job.generation, 0, "generation");
    REFUSED(E_FORMAT, job.reply_subject, reply, "reply_subject");
    REFUSED(E_RANGE, job.n_partitions, 0, "0 partitions");
    REFUSED(E_FORMAT, partition.body, NULL, "partition 0: it has no body");
}

static void claim_body_fields(void) {
    static char other[] = "bellows-in-other", evil[] = "bellows-keys", nuid[] = "abc", name[] = "n";
    REFUSED(E_FORMAT, body->frame_bytes, 1, "frame_bytes is 1");
    REFUSED(E_FORMAT, body->frames_count, 5, "frames_count says 5");
    REFUSED(E_FORMAT, body->raw_bytes, 1, "raw_bytes says 1");
    REFUSED(E_FORMAT, body->wire_bytes, 0, "wire_bytes is 0");
    REFUSED(E_FORMAT, body->wire_bytes, UINT64_MAX, "wire_bytes");
    REFUSED(E_FORMAT, body->wire_bytes, 1, "wire_bytes says 1");
    REFUSED(E_FORMAT, body->sha256.len, 20, "sha256 of the body has 20 bytes");
    REFUSED(E_FORMAT, body->n_sections, 0, "0 sections");
    REFUSED(E_FORMAT, body->sections[0]->kind, (Bellows__V1__SectionKind)77, "unknown kind 77");
    REFUSED(E_FORMAT, body->sections[0]->kind, BELLOWS__V1__SECTION_KIND__EVALUATIONS_A_RAW,
            "it must be a witness alone, or EVALUATIONS_A");
    REFUSED(E_FORMAT, body->sections[0]->values_count, VALUES + 1, "values");
    REFUSED(E_FORMAT, body->place_case, BELLOWS__V1__BODY__PLACE__NOT_SET, "neither inline");
    struct made m;
    make(&m);
    CHECK_ERR(E_LIMIT, job_check(&m.job, NULL, 32 * VALUES - 1));
    Bellows__V1__ObjectRef object = BELLOWS__V1__OBJECT_REF__INIT;
    m.body->place_case = BELLOWS__V1__BODY__PLACE_OBJECT;
    m.body->object = &object;
    object.nuid = nuid;
    object.name = name;
    object.bucket = other;
    CHECK_ERR(E_FORMAT, job_check(&m.job, NULL, 1 << 20));
    CHECK_HAS(err_detail(), "not the input bucket of tenant \"acme\"");
    object.bucket = evil;
    CHECK_ERR(E_FORMAT, job_check(&m.job, NULL, 1 << 20));
    object.bucket = (char *)(uintptr_t) "bellows-in-acme";
    CHECK_OK(job_check(&m.job, NULL, 1 << 20));
    object.nuid = (char *)(uintptr_t) "a.>";
    CHECK_ERR(E_FORMAT, job_check(&m.job, NULL, 1 << 20));
    unmake(&m);
}

static void claim_fingerprint(void) {
    struct made m;
    uint8_t first[32], second[32];
    make(&m);
    CHECK_OK(job_fingerprint(first, &m.job));
    m.job.generation = 2;
    m.job.priority = 0;
    m.job.submitted_unix_ms = 99;
    m.job.label = (char *)(uintptr_t) "other words";
    CHECK_OK(job_fingerprint(second, &m.job));
    CHECK_MEM(first, second, 32);
    m.body->sha256.data[0] ^= 1;
    CHECK_OK(job_fingerprint(second, &m.job));
    CHECK(memcmp(first, second, 32) != 0);
    m.body->sha256.data[0] ^= 1;
    m.digest[31] ^= 1;
    CHECK_OK(job_fingerprint(second, &m.job));
    CHECK(memcmp(first, second, 32) != 0);
    unmake(&m);
}

/* --- Reading bodies --- */

static enum err read_chunks(struct made *m, struct bytes wire, size_t chunk_bytes) {
    AUTO(body_reader_free) struct body_reader *r = NULL;
    struct bytes_mut dest = {m->got, 32 * VALUES};
    TRY(body_reader_new(&r, m->body, &dest, 1, 1 << 20));
    for (size_t at = 0; at < wire.len; at += chunk_bytes) {
        size_t len = wire.len - at < chunk_bytes ? wire.len - at : chunk_bytes;
        TRY(body_reader_add(r, bytes_of(wire.ptr + at, len)));
    }
    return body_reader_end(r);
}

static void claim_reader(void) {
    static const size_t chunks[] = {1, 13, 1000, 1 << 20};
    struct made m;
    make(&m);
    for (size_t i = 0; i < COUNT_OF(chunks); i++) {
        memset(m.got, 0xaa, 32 * VALUES);
        CHECK_OK(read_chunks(&m, bytes_of(m.wire.ptr, m.wire.len), chunks[i]));
        CHECK_MEM(m.raw, m.got, 32 * VALUES);
    }
    CHECK_ERR(E_FORMAT, read_chunks(&m, bytes_of(m.wire.ptr, m.wire.len - 1), 100));
    m.body->sha256.data[3] ^= 1;
    CHECK_ERR(E_FORMAT, read_chunks(&m, bytes_of(m.wire.ptr, m.wire.len), 100));
    CHECK_HAS(err_detail(), "SHA-256");
    m.body->sha256.data[3] ^= 1;
    m.body->wire_bytes++;
    CHECK_ERR(E_FORMAT, read_chunks(&m, bytes_of(m.wire.ptr, m.wire.len), 100));
    m.body->wire_bytes -= 2;
    CHECK_ERR(E_FORMAT, read_chunks(&m, bytes_of(m.wire.ptr, m.wire.len), 100));
    m.body->wire_bytes++;
    struct bytes_mut small = {m.got, 32 * VALUES - 32};
    struct body_reader *r = NULL;
    CHECK_ERR(E_FORMAT, body_reader_new(&r, m.body, &small, 1, 1 << 20));
    unmake(&m);
}

static void claim_reader_order(void) {
    struct made m;
    make(&m);
    /* The first two frames change places: same bytes, same lengths, another order. */
    size_t first = 1 + m.wire.ptr[0];
    if (m.wire.ptr[0] & 0x80) {
        first = 2 + (m.wire.ptr[0] & 0x7f) + ((size_t)m.wire.ptr[1] << 7);
    }
    uint8_t *swapped = mem_alloc(m.wire.len);
    const uint8_t *at = m.wire.ptr + first;
    size_t second = at[0] & 0x80 ? 2 + (at[0] & 0x7f) + ((size_t)at[1] << 7) : 1 + (size_t)at[0];
    memcpy(swapped, at, second);
    memcpy(swapped + second, m.wire.ptr, first);
    memcpy(swapped + first + second, at + second, m.wire.len - first - second);
    CHECK_ERR(E_FORMAT, read_chunks(&m, bytes_of(swapped, m.wire.len), 1 << 20));
    CHECK_HAS(err_detail(), "frame 1 stands where frame 0 is due");
    mem_free(swapped);
    unmake(&m);
}

static void claim_too_large_for_inline(void) {
    struct frame_layout layout;
    struct body_summary summary;
    struct bytes_mut out = {(uint8_t *)&summary, 1};
    uint8_t *raw = mem_alloc(32 * 10000);
    rng_fill(check_rng(), raw, 32 * 10000);
    struct bytes data = bytes_of(raw, 32 * 10000);
    struct frame_section section = {SECTION_WITNESS_RAW, 10000, 32 * 10000};
    CHECK_OK(body_layout_of(&layout, &section, 1));
    CHECK_OK(body_write_inline(&summary, &out, &layout, &data, JOB_INLINE_BYTES_MAX));
    CHECK(out.ptr == NULL);
    section.values_count = UINT64_MAX / 16;
    CHECK_ERR(E_FORMAT, body_layout_of(&layout, &section, 1));
    mem_free(raw);
}

/* --- Results --- */

static void claim_results(void) {
    uint8_t points[192] = {1}, publics[64] = {0};
    Bellows__V1__Proof proof = BELLOWS__V1__PROOF__INIT;
    part_message part = BELLOWS__V1__PART_RESULT__INIT, *parts = &part;
    result_message result = BELLOWS__V1__RESULT__INIT;
    struct bytes_mut packed;
    proof.a = (ProtobufCBinaryData){64, points};
    proof.b = (ProtobufCBinaryData){128, points};
    proof.c = (ProtobufCBinaryData){64, points};
    proof.publics = (ProtobufCBinaryData){64, publics};
    part.version = result.version = 1;
    part.job_id = result.job_id = (char *)(uintptr_t) "job-1";
    part.tenant = result.tenant = (char *)(uintptr_t) "acme";
    part.status = result.status = BELLOWS__V1__STATUS__STATUS_OK;
    part.proof = &proof;
    result.curve = BELLOWS__V1__CURVE__BN254;
    result.n_partitions = 1;
    result.partitions = &parts;
    AUTO(message_free) result_message *back = NULL;
    AUTO(message_free) part_message *part_back = NULL;
    CHECK_OK(result_pack(&packed, &result));
    CHECK_OK(result_unpack(&back, bytes_of(packed.ptr, packed.len)));
    CHECK_MEM(points, back->partitions[0]->proof->b.data, 128);
    mem_free(packed.ptr);
    result.curve = BELLOWS__V1__CURVE__BLS12_381;
    CHECK_OK(result_pack(&packed, &result));
    CHECK_ERR(E_FORMAT, result_unpack(&back, bytes_of(packed.ptr, packed.len)));
    CHECK_HAS(err_detail(), "partition 0 of the result: proof.a has 64 bytes");
    mem_free(packed.ptr);
    part.status = BELLOWS__V1__STATUS__STATUS_FAILED; /* and no error */
    CHECK_OK(part_pack(&packed, &part));
    CHECK_ERR(E_FORMAT, part_unpack(&part_back, bytes_of(packed.ptr, packed.len)));
    mem_free(packed.ptr);
    CHECK_STR("expired", status_name(BELLOWS__V1__STATUS__STATUS_EXPIRED));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a body is a witness, or a, b and a witness", claim_forms},
        {"three sections come through, each as it was packed", claim_three_sections},
        {"a job and its inline body come back as they went", claim_round_trip},
        {"job_check names the field of a job that is wrong", claim_job_fields},
        {"job_check names the field of a body that is wrong", claim_body_fields},
        {"a fingerprint is of the work, not of the request", claim_fingerprint},
        {"a body is read from any chunks, and whole or not at all", claim_reader},
        {"frames out of order are refused", claim_reader_order},
        {"a body too large for a descriptor is said to be", claim_too_large_for_inline},
        {"results hold proofs of their curve, or a reason", claim_results},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
