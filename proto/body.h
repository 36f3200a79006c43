/* Bodies: a whole witness into frames and back, in one call each way or chunk by chunk.
 *
 * Threads  a writer or reader belongs to one thread.
 * Errors   those of frame.h; E_FORMAT when count, order, length or SHA-256 differ from the descriptor.
 * Secrets  the reader's destination holds the witness: its owner wipes it.
 */
#pragma once
#include "node/base/hash.h"
#include "proto/codec.h"
#include "proto/job.h"

/* --- Writing --- */

/* What a writer learnt, for the descriptor's Body. */
struct body_summary {
    struct frame_layout layout;
    uint64_t wire_bytes;
    struct sha256 sha256;
};
/* Gets each encoded frame, in order; `frame` is lent for the call. */
typedef enum err body_sink(void *ctx, struct bytes frame);

/* Encodes all sections; sections[i].raw_bytes long at data[i]. Memory: two frames. */
FALLIBLE body_write(struct body_summary *out, const struct frame_layout *layout,
                    const struct bytes *data, body_sink *sink, void *sink_ctx);
/* A vector of scalars as it travels: packed where that pays, else the values themselves. */
struct body_vector {
    struct frame_section section;
    struct bytes data; /* lent from owned or from the values */
    uint8_t *owned;
};
/* `raw_kind` is one of *_RAW, and stays it unless packing pays; values are lent, plain, below r (4 words, lowest first).
 * pool may be NULL. */
FALLIBLE body_vector_open(struct body_vector *out, enum section_kind raw_kind, struct bytes values,
                          const uint64_t r[4], struct pool *pool);
void body_vector_close(struct body_vector *v); /* wipes what is owned */
/* The layout of a job's vectors, each RAW or PACKED, in the order of body_form. */
FALLIBLE body_layout_of(struct frame_layout *out, const struct frame_section *sections,
                        size_t count);
/* Encodes into one block if it stays within bytes_max, for an inline body: *out is the caller's (mem_free); out->ptr is NULL
 * when it would not fit. */
FALLIBLE body_write_inline(struct body_summary *summary, struct bytes_mut *out,
                           const struct frame_layout *layout, const struct bytes *data,
                           size_t bytes_max);
/* A Body message for the descriptor, all of it one block: mem_free. `inline_frames` is lent to it (NULL ptr: none);
 * bucket, name, nuid and steps are lent too (NULL for an inline body). */
struct body_place {
    struct bytes inline_frames;
    const char *bucket, *name, *nuid;
    uint64_t first_sequence;
    const uint32_t *chunk_steps;
    size_t chunk_steps_count;
};
FALLIBLE body_describe(Bellows__V1__Body **out, const struct body_summary *summary,
                       struct body_place place);

/* --- Reading --- */

struct body_reader; /* opaque */
/* dest[i] is the final place of section i, exactly its raw_bytes long; lent until body_reader_free. memory_bytes_max: what was
 * admitted for all sections and what is unpacked from them. */
FALLIBLE body_reader_new(struct body_reader **out, const Bellows__V1__Body *body,
                         const struct bytes_mut *dest, size_t dest_count,
                         uint64_t memory_bytes_max);
void body_reader_free(struct body_reader **reader);
FALLIBLE body_reader_add(struct body_reader *reader,
                         struct bytes chunk); /* chunks in order, any size */
/* Gets the frames that lie whole in their chunk, for other threads to decode into `place` while the chunk lives; NULL: the reader
 * decodes all of them itself. A section whose dest has no pointer has no place: its frames, cut ones too, go to the sink with a place without
 * one; `lent` says whether the frame's bytes live as long as the chunk, else until the sink returns. */
struct body_frame {
    struct frame frame;
    struct bytes_mut place;
    bool lent;
};
typedef enum err body_frame_sink(void *ctx, const struct body_frame *frame);
void body_reader_divert(struct body_reader *reader, body_frame_sink *sink, void *sink_ctx);
/* After the last: every frame was there, once, in order; length and SHA-256 are the descriptor's. */
FALLIBLE body_reader_end(struct body_reader *reader);
FALLIBLE body_read_inline(const Bellows__V1__Body *body, const struct bytes_mut *dest,
                          size_t dest_count, uint64_t memory_bytes_max);
