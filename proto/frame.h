/* Frames: how a body travels. See Frame and Body in job.proto.
 *
 * The layout (sections and frame size) is known from the descriptor before the first byte; it alone says where frame i
 * belongs and how long it is. So any thread may decode any frame straight into its final place, in any order, and a
 * frame that disagrees is refused before it is decompressed.
 *
 *   section 0                         section 1
 *   |--- 0 ---|--- 1 ---|-- 2 --|     |--- 3 ---|- 4 -|        full pieces of frame_bytes, the last of each shorter
 *
 * On the wire: varint length, Frame, varint length, Frame, … in any chunking; frame_stream puts it together again.
 *
 * Threads  layout and frame are plain values; frame_decode any thread; a codec or stream one thread at a time.
 * Errors   E_FORMAT with the frame's index and the field; E_LIMIT for sizes above limits.h or the caller's limit.
 * Memory   decoding allocates nothing: the payload is decompressed from the message into the final place. A codec
 *          allocates once, in frame_codec_new; a stream at most once, when the first message comes cut over two chunks.
 */
#pragma once
#include "node/base/bytes.h"
#include "proto/limits.h"

/* Numbers are those of job.proto's SectionKind. */
enum section_kind {
    SECTION_WITNESS_RAW = 1,
    SECTION_WITNESS_PACKED = 2,
    SECTION_EVALUATIONS_A_RAW = 3,
    SECTION_EVALUATIONS_B_RAW = 4,
    SECTION_EVALUATIONS_A_PACKED = 5,
    SECTION_EVALUATIONS_B_PACKED = 6
};
enum frame_encoding { FRAME_RAW = 0, FRAME_ZSTD = 1 };

struct frame_section {
    enum section_kind kind;
    uint64_t values_count;
    uint64_t raw_bytes;
};
bool section_is_packed(enum section_kind kind);
/* What a reader needs to hold a section and the plain scalars in it. */
uint64_t section_memory_bytes(const struct frame_section *s);

struct frame_layout {
    struct frame_section sections[BODY_SECTIONS_MAX];
    uint32_t first_frame[BODY_SECTIONS_MAX]; /* index of the section's frame 0 */
    uint32_t sections_count;
    uint32_t frame_bytes; /* raw bytes of a full frame */
    uint32_t frames_count;
    uint64_t raw_bytes;
    uint64_t memory_bytes; /* section_memory_bytes of all */
};
/* Checks and derives. E_LIMIT when the sections, unpacked ones beside the packed, exceed memory_bytes_max. */
FALLIBLE frame_layout_init(struct frame_layout *out, const struct frame_section *sections,
                           size_t sections_count, uint32_t frame_bytes, uint64_t memory_bytes_max);
/* Upper bound of the sequence's length: what a descriptor may claim for wire_bytes. */
uint64_t frame_layout_wire_bytes_max(const struct frame_layout *layout);

struct frame_place {
    uint32_t section;
    uint32_t raw_bytes;
    uint64_t offset; /* in the section */
};
struct frame_place frame_place_of(const struct frame_layout *layout, uint32_t index);

/* One frame, parsed; `data` is lent from the message. */
struct frame {
    uint32_t section, index, raw_bytes;
    enum frame_encoding encoding;
    uint64_t offset, xxh64;
    struct bytes data;
};

/* Compression and decompression state of one thread. */
struct frame_codec;
FALLIBLE frame_codec_new(struct frame_codec **out);
void frame_codec_free(struct frame_codec **codec);

/* Largest encoding of a frame of raw_bytes, delimiter included. */
size_t frame_wire_bytes_max(size_t raw_bytes);
/* Encodes frame `index` of the layout, delimiter and message, somewhere inside `scratch` (at least frame_wire_bytes_max of the
 * piece): *out is lent from it. `raw` is the whole piece. zstd level 1 where that saves at least 1/16, else raw bytes. */
FALLIBLE frame_encode(struct bytes *out, struct bytes_mut scratch, struct frame_codec *codec,
                      const struct frame_layout *layout, uint32_t index, struct bytes raw);

/* Reads one message, without its delimiter; checks it against the layout. */
FALLIBLE frame_parse(struct frame *out, const struct frame_layout *layout, struct bytes message);
/* Decompresses and checks xxh64. place: the piece's final place, exactly frame->raw_bytes long. On an error its content is
 * undefined but never written past. */
FALLIBLE frame_decode(struct bytes_mut place, struct frame_codec *codec, const struct frame *frame);

/* Cuts a sequence of chunks, of any size, into messages. Messages that lie whole in a chunk are lent from it; others are put
 * together in the stream's buffer, allocated when the first such message comes: frame_wire_bytes_max(frame_bytes). */
struct frame_stream {
    uint8_t *buffer; /* owned; NULL until needed */
    size_t buffer_len;
    size_t message_bytes_max; /* without delimiter */
    uint64_t wire_bytes;      /* taken so far */
    uint32_t messages_count, messages_max;
    bool buffer_lent; /* the last message lies in the buffer */
};
void frame_stream_init(struct frame_stream *out, const struct frame_layout *layout);
void frame_stream_done(struct frame_stream *stream);
/* Takes from *chunk (advancing it) until one message is complete: *message, valid until the next call, or as long as the
 * chunk when *lent_from_chunk. When the chunk is used up first, message->ptr is NULL. After an error the stream is dead. */
FALLIBLE frame_stream_next(struct bytes *message, bool *lent_from_chunk,
                           struct frame_stream *stream, struct bytes *chunk);
/* After the last chunk: E_FORMAT if a message is incomplete or messages are missing. */
FALLIBLE frame_stream_end(const struct frame_stream *stream);
