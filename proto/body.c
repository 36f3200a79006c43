/* A witness into frames and back.
 *
 * Both ways one frame is in hand at a time. The reader knows from the descriptor how long everything is; it refuses a
 * frame out of order, since a sequence in an object has an order and anything else means that chunks were mixed up.
 * Lanes that decode on several threads take whole frames away from it (body_reader_divert).
 */
#include "proto/body.h"

#include "node/base/mem.h"

#include <inttypes.h>
#include <string.h>

/* --- Writing --- */

static enum section_kind packed_of(enum section_kind raw_kind) {
    return raw_kind == SECTION_WITNESS_RAW         ? SECTION_WITNESS_PACKED
           : raw_kind == SECTION_EVALUATIONS_A_RAW ? SECTION_EVALUATIONS_A_PACKED
                                                   : SECTION_EVALUATIONS_B_PACKED;
}

FALLIBLE body_vector_open(struct body_vector *out, enum section_kind raw_kind, struct bytes values,
                          const uint64_t r[4], struct pool *pool) {
    struct body_vector v = {
        .section = {.kind = raw_kind, .values_count = values.len / 32, .raw_bytes = values.len},
        .data = values};
    AUTO(codec_survey_close) struct codec_survey survey = {0};
    TRY(codec_survey_open(&survey, values, r, pool));
    if (survey.pays) {
        AUTO(mem_free_ptr) uint8_t *packed = NULL;
        TRY(mem_new_raw(&packed, (size_t)survey.bytes, 1));
        TRY(codec_encode((struct bytes_mut){packed, (size_t)survey.bytes}, &survey, values, r,
                         pool));
        v.section.kind = packed_of(raw_kind);
        v.section.raw_bytes = survey.bytes;
        v.data = bytes_of(packed, (size_t)survey.bytes);
        v.owned = TAKE(packed);
    }
    *out = v;
    return OK;
}

void body_vector_close(struct body_vector *v) {
    if (v->owned) {
        mem_wipe(v->owned, v->data.len);
    }
    mem_free(v->owned);
    *v = (struct body_vector){0};
}

FALLIBLE body_layout_of(struct frame_layout *out, const struct frame_section *sections,
                        size_t count) {
    return frame_layout_init(out, sections, count, FRAME_RAW_BYTES_MAX, UINT64_MAX);
}

FALLIBLE body_write(struct body_summary *out, const struct frame_layout *layout,
                    const struct bytes *data, body_sink *sink, void *sink_ctx) {
    struct body_summary summary = {.layout = *layout};
    AUTO(frame_codec_free) struct frame_codec *codec = NULL;
    AUTO(sha256_free) struct sha256_run *run = NULL;
    AUTO(mem_free_ptr) uint8_t *block = NULL;
    struct bytes_mut scratch = {.len = frame_wire_bytes_max(layout->frame_bytes)};
    TRY(frame_codec_new(&codec));
    TRY(sha256_new(&run));
    TRY(mem_new_raw(&block, 1, scratch.len));
    scratch.ptr = block;
    for (uint32_t i = 0; i < layout->frames_count; i++) {
        struct frame_place place = frame_place_of(layout, i);
        struct bytes section = data[place.section], frame;
        ASSERT(section.len == layout->sections[place.section].raw_bytes);
        TRY(frame_encode(&frame, scratch, codec, layout, i,
                         bytes_of(section.ptr + place.offset, place.raw_bytes)));
        TRY(sha256_add(run, frame));
        summary.wire_bytes += frame.len;
        TRY(sink(sink_ctx, frame));
    }
    mem_wipe(block, scratch.len);
    TRY(sha256_end(&summary.sha256, run));
    *out = summary;
    return OK;
}

struct collect {
    uint8_t *ptr;
    size_t len, cap;
};

static FALLIBLE collect_frame(void *ctx, struct bytes frame) {
    struct collect *c = ctx;
    if (frame.len > c->cap - c->len) {
        c->len = c->cap + 1; /* too long: said by body_write_inline */
        return E_LIMIT;
    }
    memcpy(c->ptr + c->len, frame.ptr, frame.len);
    c->len += frame.len;
    return OK;
}

FALLIBLE body_write_inline(struct body_summary *summary, struct bytes_mut *out,
                           const struct frame_layout *layout, const struct bytes *data,
                           size_t bytes_max) {
    AUTO(mem_free_ptr) uint8_t *block = NULL;
    TRY(mem_new_raw(&block, 1, bytes_max));
    struct collect c = {.ptr = block, .cap = bytes_max};
    enum err err = body_write(summary, layout, data, collect_frame, &c);
    if (c.len > c.cap) {
        *out = (struct bytes_mut){NULL, 0};
        return OK;
    }
    TRY(err);
    *out = (struct bytes_mut){TAKE(block), c.len};
    return OK;
}

/* One block; the Body comes first, so that freeing it frees all. */
struct described {
    Bellows__V1__Body body;
    Bellows__V1__Section sections[BODY_SECTIONS_MAX], *section_ptrs[BODY_SECTIONS_MAX];
    Bellows__V1__ObjectRef object;
    uint8_t sha256[SHA256_BYTES];
};

/* protobuf-c's structs hold char * for what they only read. */
static char *borrowed(const char *s) {
    return (char *)(uintptr_t)(s ? s : "");
}

FALLIBLE body_describe(Bellows__V1__Body **out, const struct body_summary *summary,
                       struct body_place place) {
    struct described *d = NULL;
    TRY(mem_new(&d, 1, sizeof *d));
    const struct frame_layout *l = &summary->layout;
    bellows__v1__body__init(&d->body);
    for (uint32_t i = 0; i < l->sections_count; i++) {
        bellows__v1__section__init(&d->sections[i]);
        d->sections[i].kind = (Bellows__V1__SectionKind)l->sections[i].kind;
        d->sections[i].values_count = l->sections[i].values_count;
        d->sections[i].raw_bytes = l->sections[i].raw_bytes;
        d->section_ptrs[i] = &d->sections[i];
    }
    memcpy(d->sha256, summary->sha256.b, sizeof d->sha256);
    d->body.n_sections = l->sections_count;
    d->body.sections = d->section_ptrs;
    d->body.frame_bytes = l->frame_bytes;
    d->body.frames_count = l->frames_count;
    d->body.raw_bytes = l->raw_bytes;
    d->body.wire_bytes = summary->wire_bytes;
    d->body.sha256 = (ProtobufCBinaryData){sizeof d->sha256, d->sha256};
    if (place.inline_frames.ptr) {
        d->body.place_case = BELLOWS__V1__BODY__PLACE_INLINE_FRAMES;
        d->body.inline_frames.len = place.inline_frames.len;
        d->body.inline_frames.data = (uint8_t *)(uintptr_t)place.inline_frames.ptr;
    } else {
        bellows__v1__object_ref__init(&d->object);
        d->object.bucket = borrowed(place.bucket);
        d->object.name = borrowed(place.name);
        d->object.nuid = borrowed(place.nuid);
        d->object.first_sequence = place.first_sequence;
        d->object.n_chunk_steps = place.chunk_steps_count;
        d->object.chunk_steps = (uint32_t *)(uintptr_t)place.chunk_steps;
        d->body.place_case = BELLOWS__V1__BODY__PLACE_OBJECT;
        d->body.object = &d->object;
    }
    *out = &d->body;
    return OK;
}

/* --- Reading --- */

struct body_reader {
    struct frame_layout layout;
    struct frame_stream stream;
    struct frame_codec *codec;                /* owned */
    struct sha256_run *run;                   /* owned */
    struct bytes_mut dest[BODY_SECTIONS_MAX]; /* lent */
    body_frame_sink *sink;                    /* NULL: none */
    void *sink_ctx;
    uint64_t wire_bytes;
    struct sha256 sha256;
};

FALLIBLE body_reader_new(struct body_reader **out, const Bellows__V1__Body *body,
                         const struct bytes_mut *dest, size_t dest_count,
                         uint64_t memory_bytes_max) {
    AUTO(body_reader_free) struct body_reader *r = NULL;
    TRY(mem_new(&r, 1, sizeof *r));
    TRY(body_layout(&r->layout, body, memory_bytes_max));
    REQUIRE(dest_count == r->layout.sections_count, E_FORMAT,
            "body has %" PRIu32 " sections, %zu expected here", r->layout.sections_count,
            dest_count);
    for (size_t i = 0; i < dest_count; i++) {
        REQUIRE(dest[i].len == r->layout.sections[i].raw_bytes, E_FORMAT,
                "section %zu of the body has %" PRIu64 " bytes, %zu expected here", i,
                r->layout.sections[i].raw_bytes, dest[i].len);
        r->dest[i] = dest[i];
    }
    r->wire_bytes = body->wire_bytes;
    memcpy(r->sha256.b, body->sha256.data, SHA256_BYTES);
    frame_stream_init(&r->stream, &r->layout);
    TRY(frame_codec_new(&r->codec));
    TRY(sha256_new(&r->run));
    *out = TAKE(r);
    return OK;
}

void body_reader_free(struct body_reader **reader) {
    struct body_reader *r = *reader;
    if (r) {
        frame_codec_free(&r->codec);
        sha256_free(&r->run);
        frame_stream_done(&r->stream);
        mem_free(r);
        *reader = NULL;
    }
}

void body_reader_divert(struct body_reader *reader, body_frame_sink *sink, void *sink_ctx) {
    reader->sink = sink;
    reader->sink_ctx = sink_ctx;
}

static FALLIBLE read_message(struct body_reader *r, struct bytes message, bool lent) {
    struct body_frame f = {.lent = lent};
    TRY(frame_parse(&f.frame, &r->layout, message));
    REQUIRE(f.frame.index == r->stream.messages_count - 1, E_FORMAT,
            "frame %" PRIu32 " stands where frame %" PRIu32 " is due", f.frame.index,
            r->stream.messages_count - 1);
    uint8_t *section = r->dest[f.frame.section].ptr;
    f.place = (struct bytes_mut){section ? section + f.frame.offset : NULL, f.frame.raw_bytes};
    ASSERT(section || r->sink);
    return r->sink && (lent || !section) ? r->sink(r->sink_ctx, &f)
                                         : frame_decode(f.place, r->codec, &f.frame);
}

FALLIBLE body_reader_add(struct body_reader *r, struct bytes chunk) {
    REQUIRE(chunk.len <= r->wire_bytes - r->stream.wire_bytes, E_FORMAT,
            "body is longer than the %" PRIu64 " bytes that its descriptor states", r->wire_bytes);
    TRY(sha256_add(r->run, chunk));
    for (;;) {
        struct bytes message;
        bool lent;
        TRY(frame_stream_next(&message, &lent, &r->stream, &chunk));
        if (!message.ptr) {
            return OK;
        }
        TRY(read_message(r, message, lent));
    }
}

FALLIBLE body_reader_end(struct body_reader *r) {
    struct sha256 got;
    TRY(frame_stream_end(&r->stream));
    REQUIRE(r->stream.wire_bytes == r->wire_bytes, E_FORMAT,
            "body has %" PRIu64 " bytes, its descriptor states %" PRIu64, r->stream.wire_bytes,
            r->wire_bytes);
    TRY(sha256_end(&got, r->run));
    REQUIRE(memcmp(got.b, r->sha256.b, sizeof got.b) == 0, E_FORMAT,
            "body does not have the SHA-256 that its descriptor states");
    return OK;
}

FALLIBLE body_read_inline(const Bellows__V1__Body *body, const struct bytes_mut *dest,
                          size_t dest_count, uint64_t memory_bytes_max) {
    AUTO(body_reader_free) struct body_reader *r = NULL;
    REQUIRE(body->place_case == BELLOWS__V1__BODY__PLACE_INLINE_FRAMES, E_FORMAT,
            "body is not inline");
    TRY(body_reader_new(&r, body, dest, dest_count, memory_bytes_max));
    TRY(body_reader_add(r, bytes_of(body->inline_frames.data, body->inline_frames.len)));
    return body_reader_end(r);
}
