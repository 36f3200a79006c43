/* What comes over the wire: descriptors, results, frame sequences, subjects. */
#include "node/base/mem.h"
#include "node/curve/curve.h"
#include "proto/body.h"
#include "tests/fuzz/targets.h"

#include <string.h>

/* What passes has names that can be part of a subject, and a layout that adds up. */
void fuzz_job(struct bytes input) {
    job_message *job = NULL;
    if (job_unpack(&job, input, NULL, 1 << 20) == OK) {
        struct subject_space space;
        struct subject_parts parts;
        ASSERT(subject_space_init(&space, NULL) == OK);
        struct subject s = subject_job(&space, job->priority, job->key_digest.data,
                                       (struct job_name){job->tenant, job->job_id});
        ASSERT(subject_parse(&parts, &space, s.text) == OK);
        ASSERT(job_check(job, &parts, 1 << 20) == OK);
        for (size_t i = 0; i < job->n_partitions; i++) {
            struct frame_layout layout;
            ASSERT(body_layout(&layout, job->partitions[i]->body, 1 << 20) == OK);
            ASSERT(layout.memory_bytes <= 1 << 20);
        }
        uint8_t print[32];
        ASSERT(job_fingerprint(print, job) == OK);
        message_free(&job);
    }
}

void fuzz_result(struct bytes input) {
    result_message *result = NULL;
    if (result_unpack(&result, input) == OK) {
        struct bytes_mut packed;
        if (result_pack(&packed, result) == OK) {
            mem_free(packed.ptr);
        }
        message_free(&result);
    }
}

/* The first byte chooses how the rest is cut. The places have the exact size of the layout: three frames. */
void fuzz_frames(struct bytes input) {
    static const struct frame_section section = {SECTION_WITNESS_RAW, 272, 8704};
    struct frame_layout layout;
    struct frame_stream stream;
    struct frame_codec *codec = NULL;
    ASSERT(frame_layout_init(&layout, &section, 1, 4096, 1 << 20) == OK);
    ASSERT(frame_codec_new(&codec) == OK);
    frame_stream_init(&stream, &layout);
    size_t cut = input.len > 0 ? 1 + (size_t)input.ptr[0] * 16 : 1;
    enum err err = OK;
    for (size_t at = 1; at < input.len && err == OK; at += cut) {
        struct bytes chunk = bytes_of(input.ptr + at, cut < input.len - at ? cut : input.len - at);
        struct bytes message = {input.ptr, 0};
        while (err == OK && message.ptr) {
            bool lent;
            struct frame f;
            err = frame_stream_next(&message, &lent, &stream, &chunk);
            if (err == OK && message.ptr && frame_parse(&f, &layout, message) == OK) {
                uint8_t *place = mem_alloc(f.raw_bytes);
                ASSERT(place);
                IGNORE(frame_decode((struct bytes_mut){place, f.raw_bytes}, codec, &f));
                mem_free(place);
            }
        }
    }
    IGNORE(frame_stream_end(&stream));
    frame_stream_done(&stream);
    frame_codec_free(&codec);
}

/* The values that are announced are those of the head, up to a limit as a descriptor sets one. What is taken packs again
 * into no more bytes, and unpacks to the same. */
void fuzz_packed(struct bytes input) {
    enum { VALUES_MAX = 200000 };
    const struct curve *c = curve_by_id(CURVE_BN254);
    uint64_t count = input.len >= PACKED_HEAD_BYTES ? load_u64le(input.ptr + 8) : 1;
    struct codec_map map;
    if (codec_open(&map, input, count) != OK) {
        return;
    }
    ASSERT(codec_bytes_least(count) <= input.len && input.len <= codec_bytes_most(count));
    codec_close(&map);
    if (count > VALUES_MAX) {
        return;
    }
    struct bytes_mut values = {mem_alloc(32 * count), 32 * count};
    ASSERT(values.ptr);
    if (codec_decode(values, input, count, c->r.w, NULL) == OK) {
        struct codec_survey survey;
        ASSERT(codec_survey_open(&survey, bytes_of(values.ptr, values.len), c->r.w, NULL) == OK);
        ASSERT(survey.bytes <= input.len);
        struct bytes_mut again = {mem_alloc(survey.bytes), survey.bytes},
                         back = {mem_alloc(values.len), values.len};
        ASSERT(again.ptr && back.ptr);
        ASSERT(codec_encode(again, &survey, bytes_of(values.ptr, values.len), c->r.w, NULL) == OK);
        ASSERT(codec_decode(back, bytes_of(again.ptr, again.len), count, c->r.w, NULL) == OK);
        ASSERT(!memcmp(back.ptr, values.ptr, back.len));
        mem_free(again.ptr);
        mem_free(back.ptr);
        codec_survey_close(&survey);
    }
    mem_free(values.ptr);
}

void fuzz_subject(struct bytes input) {
    struct subject_space space;
    struct subject_parts parts;
    char text[SUBJECT_BYTES_MAX + 8];
    size_t len = input.len < sizeof text - 1 ? input.len : sizeof text - 1;
    ASSERT(subject_space_init(&space, NULL) == OK);
    memcpy(text, input.ptr, len);
    text[len] = '\0';
    if (subject_parse(&parts, &space, text) == OK) {
        ASSERT(strlen(text) < SUBJECT_BYTES_MAX && subject_matches("bellows.>", text));
        ASSERT(!parts.tenant[0] || id_is_valid(parts.tenant));
        ASSERT(!parts.node[0] || id_is_valid(parts.node));
    }
    if (subject_check_foreign(text, "reply subject") == OK) {
        ASSERT(subject_matches(">", text) && text[0] != '$');
    }
}
