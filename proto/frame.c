/* Frames, taken apart by hand.
 *
 * A Frame is plain protobuf, so that every language can write one; here its seven fields are read straight from the wire
 * instead of through protobuf-c, because the payload then stays where the network put it: zstd decompresses from the
 * message into the piece's final place, and no byte is copied in between.
 *
 * What makes a frame safe to decode, in this order and before any byte is written:
 *   1. section, index, offset and raw_bytes are those of the layout, which came with the descriptor and was admitted;
 *   2. the payload's length is bounded by the frame's raw size;
 *   3. zstd's own header states exactly raw_bytes, no dictionary, one frame, nothing behind it.
 * One-shot decompression into a place of exactly raw_bytes then needs no window and cannot write past it; its content is
 * right if xxh64 agrees.
 */
#include "proto/frame.h"
#include "proto/codec.h"

#include "node/base/hash.h"
#include "node/base/mem.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

enum {
    ZSTD_LEVEL = 1, /* level 3 is twice as slow on witnesses and no smaller */
    DELIMITER_BYTES_MAX = 5
};
enum {
    FIELD_SECTION = 1,
    FIELD_INDEX,
    FIELD_OFFSET,
    FIELD_RAW_BYTES,
    FIELD_XXH64,
    FIELD_ENCODING,
    FIELD_DATA
};

/* --- Layout --- */

bool section_is_packed(enum section_kind kind) {
    return kind == SECTION_WITNESS_PACKED || kind == SECTION_EVALUATIONS_A_PACKED ||
           kind == SECTION_EVALUATIONS_B_PACKED;
}

uint64_t section_memory_bytes(const struct frame_section *s) {
    return s->raw_bytes + (section_is_packed(s->kind) ? 32 * s->values_count : 0);
}

/* A few packed bytes could otherwise announce a vector of any size. */
static FALLIBLE check_packed(const struct frame_section *s, size_t at) {
    REQUIRE(s->values_count <= CODEC_VALUES_MAX, E_FORMAT,
            "section %zu of the body has %" PRIu64 " packed values, at most 2^32 are allowed", at,
            s->values_count);
    uint64_t least = codec_bytes_least(s->values_count), most = codec_bytes_most(s->values_count);
    REQUIRE(s->raw_bytes >= least && s->raw_bytes <= most, E_FORMAT,
            "section %zu of the body has %" PRIu64 " bytes for %" PRIu64
            " packed values, want %" PRIu64 " to %" PRIu64,
            at, s->raw_bytes, s->values_count, least, most);
    return OK;
}

static FALLIBLE check_section(const struct frame_section *s, size_t at) {
    REQUIRE(s->kind >= SECTION_WITNESS_RAW && s->kind <= SECTION_EVALUATIONS_B_PACKED, E_FORMAT,
            "section %zu of the body has unknown kind %u", at, (unsigned)s->kind);
    REQUIRE(s->values_count > 0 && s->raw_bytes > 0, E_FORMAT, "section %zu of the body is empty",
            at);
    if (section_is_packed(s->kind)) {
        return check_packed(s, at);
    }
    REQUIRE(s->raw_bytes / 32 == s->values_count && s->raw_bytes % 32 == 0, E_FORMAT,
            "section %zu of the body has %" PRIu64 " bytes for %" PRIu64 " values, want 32 each",
            at, s->raw_bytes, s->values_count);
    return OK;
}

FALLIBLE frame_layout_init(struct frame_layout *out, const struct frame_section *sections,
                           size_t sections_count, uint32_t frame_bytes, uint64_t memory_bytes_max) {
    REQUIRE(sections_count > 0 && sections_count <= BODY_SECTIONS_MAX, E_FORMAT,
            "body has %zu sections, want 1 to %d", sections_count, BODY_SECTIONS_MAX);
    REQUIRE(frame_bytes >= FRAME_RAW_BYTES_MIN && frame_bytes <= FRAME_RAW_BYTES_MAX, E_FORMAT,
            "frame_bytes is %" PRIu32 ", want %d to %d", frame_bytes, FRAME_RAW_BYTES_MIN,
            FRAME_RAW_BYTES_MAX);
    struct frame_layout l = {.sections_count = (uint32_t)sections_count,
                             .frame_bytes = frame_bytes};
    for (size_t i = 0; i < sections_count; i++) {
        TRY(check_section(&sections[i], i));
        uint64_t bytes = sections[i].raw_bytes;
        uint64_t memory = section_memory_bytes(&sections[i]);
        REQUIRE(memory <= memory_bytes_max && l.memory_bytes <= memory_bytes_max - memory, E_LIMIT,
                "body is larger than the %" PRIu64 " bytes that are allowed here",
                memory_bytes_max);
        uint64_t frames = bytes / frame_bytes + (bytes % frame_bytes != 0);
        REQUIRE(frames <= BODY_FRAMES_MAX - l.frames_count, E_LIMIT,
                "body has more than %d frames of %" PRIu32 " bytes", BODY_FRAMES_MAX, frame_bytes);
        l.sections[i] = sections[i];
        l.first_frame[i] = l.frames_count;
        l.frames_count += (uint32_t)frames;
        l.raw_bytes += bytes;
        l.memory_bytes += memory;
    }
    *out = l;
    return OK;
}

uint64_t frame_layout_wire_bytes_max(const struct frame_layout *layout) {
    return layout->raw_bytes + layout->raw_bytes / 1024 +
           (uint64_t)layout->frames_count * (FRAME_HEADER_BYTES_MAX + 64);
}

struct frame_place frame_place_of(const struct frame_layout *layout, uint32_t index) {
    ASSERT(index < layout->frames_count);
    uint32_t s = layout->sections_count - 1;
    while (layout->first_frame[s] > index) {
        s--;
    }
    uint64_t offset = (uint64_t)(index - layout->first_frame[s]) * layout->frame_bytes;
    uint64_t left = layout->sections[s].raw_bytes - offset;
    return (struct frame_place){
        .section = s,
        .offset = offset,
        .raw_bytes = left < layout->frame_bytes ? (uint32_t)left : layout->frame_bytes,
    };
}

/* --- Codec --- */

struct frame_codec {
    ZSTD_CCtx *compress;   /* owned; made when first needed */
    ZSTD_DCtx *decompress; /* owned */
};

FALLIBLE frame_codec_new(struct frame_codec **out) {
    AUTO(frame_codec_free) struct frame_codec *codec = NULL;
    TRY(mem_new(&codec, 1, sizeof *codec));
    codec->compress = ZSTD_createCCtx();
    codec->decompress = ZSTD_createDCtx();
    REQUIRE(codec->compress && codec->decompress, E_LIMIT, "no memory for zstd");
    REQUIRE(
        !ZSTD_isError(ZSTD_CCtx_setParameter(codec->compress, ZSTD_c_compressionLevel, ZSTD_LEVEL)),
        E_INTERNAL, "zstd does not know level %d", ZSTD_LEVEL);
    *out = TAKE(codec);
    return OK;
}

void frame_codec_free(struct frame_codec **codec) {
    if (*codec) {
        ZSTD_freeCCtx((*codec)->compress);
        ZSTD_freeDCtx((*codec)->decompress);
        mem_free(*codec);
        *codec = NULL;
    }
}

/* --- Encoding --- */

/* zstd adds 3 bytes per 128 KiB block to what it cannot compress; ours go raw then, but others' frames may not. */
static size_t payload_bytes_max(size_t raw_bytes) {
    return raw_bytes + raw_bytes / 1024 + 64;
}

size_t frame_wire_bytes_max(size_t raw_bytes) {
    return payload_bytes_max(raw_bytes) + FRAME_HEADER_BYTES_MAX;
}

static uint8_t *put_varint(uint8_t *at, uint64_t value) {
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Fields equal to 0 are left out, as proto3 does. */
static uint8_t *put_field(uint8_t *at, unsigned field, uint64_t value) {
    if (value) {
        *at++ = (uint8_t)(field << 3 | WIRE_VARINT);
        at = put_varint(at, value);
    }
    return at;
}

static size_t put_header(uint8_t *out, const struct frame *f) {
    uint8_t *at = out;
    at = put_field(at, FIELD_SECTION, f->section);
    at = put_field(at, FIELD_INDEX, f->index);
    at = put_field(at, FIELD_OFFSET, f->offset);
    at = put_field(at, FIELD_RAW_BYTES, f->raw_bytes);
    *at++ = FIELD_XXH64 << 3 | WIRE_FIXED64;
    store_u64le(at, f->xxh64);
    at += 8;
    at = put_field(at, FIELD_ENCODING, (uint64_t)f->encoding);
    *at++ = FIELD_DATA << 3 | WIRE_BYTES;
    at = put_varint(at, f->data.len);
    return (size_t)(at - out);
}

FALLIBLE frame_encode(struct bytes *out, struct bytes_mut scratch, struct frame_codec *codec,
                      const struct frame_layout *layout, uint32_t index, struct bytes raw) {
    struct frame_place place = frame_place_of(layout, index);
    ASSERT(raw.len == place.raw_bytes && scratch.len >= frame_wire_bytes_max(raw.len));
    struct frame f = {.section = place.section,
                      .index = index,
                      .offset = place.offset,
                      .raw_bytes = place.raw_bytes,
                      .xxh64 = hash_xxh64(raw)};
    /* The payload goes behind room for the longest header, which is then written right before it. */
    uint8_t *payload = scratch.ptr + FRAME_HEADER_BYTES_MAX;
    size_t worth = raw.len - raw.len / 16;
    size_t packed = ZSTD_compress2(codec->compress, payload, worth, raw.ptr, raw.len);
    if (ZSTD_isError(packed)) { /* does not fit: does not pay */
        memcpy(payload, raw.ptr, raw.len);
        f.data = bytes_of(payload, raw.len);
    } else {
        f.encoding = FRAME_ZSTD;
        f.data = bytes_of(payload, packed);
    }
    uint8_t header[FRAME_HEADER_BYTES_MAX], delimiter[VARINT_BYTES_MAX];
    size_t header_len = put_header(header, &f);
    size_t delimiter_len = (size_t)(put_varint(delimiter, header_len + f.data.len) - delimiter);
    ASSERT(header_len + delimiter_len <= FRAME_HEADER_BYTES_MAX);
    memcpy(payload - header_len, header, header_len);
    memcpy(payload - header_len - delimiter_len, delimiter, delimiter_len);
    *out = bytes_of(payload - header_len - delimiter_len, delimiter_len + header_len + f.data.len);
    return OK;
}

/* --- Parsing --- */

static FALLIBLE read_u32_field(uint32_t *out, struct reader *r) {
    uint64_t n;
    TRY(read_varint(&n, r));
    REQUIRE(n <= UINT32_MAX, E_FORMAT, "%s: number %" PRIu64 " above 32 bits at byte %zu", r->what,
            n, r->pos);
    *out = (uint32_t)n;
    return OK;
}

static FALLIBLE read_known(struct frame *f, struct reader *r, uint64_t field) {
    uint32_t encoding;
    switch (field) {
    case FIELD_SECTION:
        return read_u32_field(&f->section, r);
    case FIELD_INDEX:
        return read_u32_field(&f->index, r);
    case FIELD_OFFSET:
        return read_varint(&f->offset, r);
    case FIELD_RAW_BYTES:
        return read_u32_field(&f->raw_bytes, r);
    case FIELD_XXH64:
        return read_u64le(&f->xxh64, r);
    case FIELD_ENCODING:
        TRY(read_u32_field(&encoding, r));
        REQUIRE(encoding <= FRAME_ZSTD, E_FORMAT, "%s: unknown encoding %" PRIu32, r->what,
                encoding);
        f->encoding = (enum frame_encoding)encoding;
        return OK;
    default:
        return read_delimited(&f->data, r);
    }
}

static FALLIBLE read_fields(struct frame *f, struct reader *r) {
    static const uint8_t wire_types[] = {
        [FIELD_SECTION] = WIRE_VARINT, [FIELD_INDEX] = WIRE_VARINT,
        [FIELD_OFFSET] = WIRE_VARINT,  [FIELD_RAW_BYTES] = WIRE_VARINT,
        [FIELD_XXH64] = WIRE_FIXED64,  [FIELD_ENCODING] = WIRE_VARINT,
        [FIELD_DATA] = WIRE_BYTES};
    unsigned seen = 0, unknown_count = 0;
    while (reader_left(r) > 0) {
        uint64_t key;
        TRY(read_varint(&key, r));
        uint64_t field = key >> 3;
        unsigned wire_type = key & 7;
        if (field >= FIELD_SECTION && field <= FIELD_DATA) {
            REQUIRE(wire_type == wire_types[field], E_FORMAT,
                    "%s: field %" PRIu64 " has wire type %u", r->what, field, wire_type);
            REQUIRE(!(seen >> field & 1), E_FORMAT, "%s: field %" PRIu64 " is there twice", r->what,
                    field);
            seen |= 1U << field;
            TRY(read_known(f, r, field));
        } else {
            REQUIRE(field > 0 && ++unknown_count <= MESSAGE_UNKNOWN_FIELDS_MAX, E_FORMAT,
                    "%s: more than %d unknown fields", r->what, MESSAGE_UNKNOWN_FIELDS_MAX);
            TRY(read_past_field(r, wire_type));
        }
    }
    return OK;
}

FALLIBLE frame_parse(struct frame *out, const struct frame_layout *layout, struct bytes message) {
    struct frame f = {0};
    struct reader r = reader_of(message, "frame");
    TRY(read_fields(&f, &r));
    REQUIRE(f.index < layout->frames_count, E_FORMAT,
            "frame %" PRIu32 ": the body has only %" PRIu32 " frames", f.index,
            layout->frames_count);
    struct frame_place place = frame_place_of(layout, f.index);
    REQUIRE(
        f.section == place.section && f.offset == place.offset && f.raw_bytes == place.raw_bytes,
        E_FORMAT,
        "frame %" PRIu32 " says section %" PRIu32 ", offset %" PRIu64 ", %" PRIu32
        " bytes; the descriptor puts it at section %" PRIu32 ", offset %" PRIu64 ", %" PRIu32
        " bytes",
        f.index, f.section, f.offset, f.raw_bytes, place.section, place.offset, place.raw_bytes);
    REQUIRE(f.encoding != FRAME_RAW || f.data.len == f.raw_bytes, E_FORMAT,
            "frame %" PRIu32 " holds %zu raw bytes, want %" PRIu32, f.index, f.data.len,
            f.raw_bytes);
    REQUIRE(f.data.len <= payload_bytes_max(f.raw_bytes), E_FORMAT,
            "frame %" PRIu32 " is %zu bytes compressed, far more than its %" PRIu32 " raw ones",
            f.index, f.data.len, f.raw_bytes);
    *out = f;
    return OK;
}

/* --- Decoding --- */

static FALLIBLE decompress(struct bytes_mut place, ZSTD_DCtx *context, const struct frame *f) {
    unsigned long long stated = ZSTD_getFrameContentSize(f->data.ptr, f->data.len);
    REQUIRE(stated == f->raw_bytes, E_FORMAT,
            "frame %" PRIu32 ": not a zstd frame that states its %" PRIu32 " raw bytes", f->index,
            f->raw_bytes);
    REQUIRE(ZSTD_getDictID_fromFrame(f->data.ptr, f->data.len) == 0, E_FORMAT,
            "frame %" PRIu32 " wants a zstd dictionary: none is allowed", f->index);
    size_t extent = ZSTD_findFrameCompressedSize(f->data.ptr, f->data.len);
    REQUIRE(extent == f->data.len, E_FORMAT,
            "frame %" PRIu32 ": zstd data is damaged or followed by something else", f->index);
    size_t got = ZSTD_decompressDCtx(context, place.ptr, place.len, f->data.ptr, f->data.len);
    REQUIRE(!ZSTD_isError(got), E_FORMAT, "frame %" PRIu32 ": zstd says: %s", f->index,
            ZSTD_getErrorName(got));
    REQUIRE(got == f->raw_bytes, E_FORMAT, "frame %" PRIu32 " gave %zu bytes, want %" PRIu32,
            f->index, got, f->raw_bytes);
    return OK;
}

FALLIBLE frame_decode(struct bytes_mut place, struct frame_codec *codec,
                      const struct frame *frame) {
    ASSERT(place.len == frame->raw_bytes);
    if (frame->encoding == FRAME_ZSTD) {
        TRY(decompress(place, codec->decompress, frame));
    } else {
        memcpy(place.ptr, frame->data.ptr, place.len);
    }
    REQUIRE(hash_xxh64(bytes_of(place.ptr, place.len)) == frame->xxh64, E_FORMAT,
            "frame %" PRIu32 ": its content does not have the xxh64 that its header states",
            frame->index);
    return OK;
}

/* --- Stream: chunks to messages --- */

void frame_stream_init(struct frame_stream *out, const struct frame_layout *layout) {
    size_t piece =
        layout->raw_bytes < layout->frame_bytes ? (size_t)layout->raw_bytes : layout->frame_bytes;
    *out = (struct frame_stream){.message_bytes_max = frame_wire_bytes_max(piece),
                                 .messages_max = layout->frames_count};
}

void frame_stream_done(struct frame_stream *stream) {
    mem_free(stream->buffer);
    *stream = (struct frame_stream){0};
}

/* The delimiter at the start of `at`: its own length in *prefix (0: incomplete) and the message's in *message_bytes. */
static FALLIBLE peek_delimiter(size_t *prefix, size_t *message_bytes,
                               const struct frame_stream *stream, struct bytes at) {
    uint64_t value = 0;
    *prefix = 0;
    for (size_t i = 0; i < at.len; i++) {
        REQUIRE(i < DELIMITER_BYTES_MAX, E_FORMAT,
                "frame %" PRIu32 ": its length takes more than %d bytes", stream->messages_count,
                DELIMITER_BYTES_MAX);
        value |= (uint64_t)(at.ptr[i] & 0x7f) << (7 * i);
        if (!(at.ptr[i] & 0x80)) {
            REQUIRE(value <= stream->message_bytes_max, E_LIMIT,
                    "frame %" PRIu32 " claims %" PRIu64 " bytes, at most %zu allowed here",
                    stream->messages_count, value, stream->message_bytes_max);
            *prefix = i + 1;
            *message_bytes = (size_t)value;
            return OK;
        }
    }
    return OK;
}

static void take(struct frame_stream *stream, struct bytes *chunk, size_t len) {
    if (len == 0) {
        return;
    }
    memcpy(stream->buffer + stream->buffer_len, chunk->ptr, len);
    stream->buffer_len += len;
    chunk->ptr += len;
    chunk->len -= len;
    stream->wire_bytes += len;
}

/* Moves bytes of the chunk into the buffer until a message is whole in there. */
static FALLIBLE next_in_buffer(struct bytes *message, struct frame_stream *stream,
                               struct bytes *chunk) {
    size_t prefix = 0, body = 0;
    if (!stream->buffer) {
        TRY(mem_new_raw(&stream->buffer, 1, stream->message_bytes_max + DELIMITER_BYTES_MAX));
    }
    for (;;) {
        TRY(peek_delimiter(&prefix, &body, stream, bytes_of(stream->buffer, stream->buffer_len)));
        size_t missing = prefix ? prefix + body - stream->buffer_len : 1;
        if (prefix && missing == 0) {
            *message = bytes_of(stream->buffer + prefix, body);
            stream->buffer_lent = true;
            stream->messages_count++;
            return OK;
        }
        if (chunk->len == 0) {
            return OK;
        }
        take(stream, chunk, missing < chunk->len ? missing : chunk->len);
    }
}

FALLIBLE frame_stream_next(struct bytes *message, bool *lent_from_chunk,
                           struct frame_stream *stream, struct bytes *chunk) {
    *message = (struct bytes){NULL, 0};
    *lent_from_chunk = false;
    if (stream->buffer_lent) {
        stream->buffer_lent = false;
        stream->buffer_len = 0;
    }
    if (chunk->len == 0) {
        return OK;
    }
    REQUIRE(stream->messages_count < stream->messages_max, E_FORMAT,
            "body goes on after its last frame, number %" PRIu32, stream->messages_max - 1);
    if (stream->buffer_len == 0) {
        size_t prefix, body = 0;
        TRY(peek_delimiter(&prefix, &body, stream, *chunk));
        if (prefix && chunk->len - prefix >= body) {
            *message = bytes_of(chunk->ptr + prefix, body);
            *lent_from_chunk = true;
            chunk->ptr += prefix + body;
            chunk->len -= prefix + body;
            stream->wire_bytes += prefix + body;
            stream->messages_count++;
            return OK;
        }
    }
    return next_in_buffer(message, stream, chunk);
}

FALLIBLE frame_stream_end(const struct frame_stream *stream) {
    REQUIRE(stream->buffer_len == 0 || stream->buffer_lent, E_FORMAT,
            "body ends inside frame %" PRIu32, stream->messages_count);
    REQUIRE(stream->messages_count == stream->messages_max, E_FORMAT,
            "body ends after %" PRIu32 " of %" PRIu32 " frames", stream->messages_count,
            stream->messages_max);
    return OK;
}
