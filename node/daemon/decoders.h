/* Decoders: threads that turn a body's frames into values, while the next chunks are fetched.
 *
 * Any frame can be decoded by any thread, straight from the message that brought it into its final place. A frame that was cut over two
 * chunks is put together, and decoded, by the thread that fetches.
 *
 * A body that is too large to lie anywhere streams: each frame is decoded into one of a few slots, handed on from there, and the slot is
 * free again. A full set of slots makes the decoders wait, full decoders the thread that fetches.
 *
 * Owner    the lane. Several bodies at once, each with a struct decoding of its own.
 * Threads  decoders_add and decoders_wait: for one body one thread, which fetches it.
 * Memory   up to DECODERS_CHUNKS_MAX chunks are held; then decoders_add waits. Nothing is allocated after opening.
 * Errors   those of body.h, of whichever frame came first.
 */
#pragma once
#include "node/base/pool.h"
#include "node/transport/transport.h"
#include "proto/body.h"

enum { DECODERS_MAX = 16, DECODERS_CHUNKS_MAX = 32 };

struct decoders;

enum { STREAM_SLOTS_MAX = 64 };
struct decoding_stream {
    uint8_t *slots; /* lent: slots_count of slot_bytes */
    size_t slot_bytes;
    unsigned slots_count; /* at most STREAM_SLOTS_MAX */
    /* Takes a decoded piece; on any decoder's thread, several at once. The bytes are gone when it returns. */
    enum err (*take)(void *ctx, const struct frame *frame, struct bytes piece);
    void *ctx;
    bool taken[STREAM_SLOTS_MAX]; /* [decoders' lock] */
};

/* A body on its way; zeroed before its first chunk, but for `stream`. */
struct decoding {
    struct decoding_stream *stream; /* lent; NULL: frames have places */
    unsigned tasks_count;           /* [decoders' lock] not done yet */
    uint64_t busy_ns;               /* [decoders' lock] all threads' time on it */
    struct fault fault;             /* [decoders' lock] the first */
};

FALLIBLE decoders_open(struct decoders **out, unsigned threads_count); /* cut to DECODERS_MAX */
void decoders_close(struct decoders **d);
/* The same cores for what is to be done with a whole body afterwards; lent, to one thread at a time. */
struct pool *decoders_pool(const struct decoders *d);
/* The next chunk of the body; takes the message over (clearing *chunk), whatever it returns. */
FALLIBLE decoders_add(struct decoders *d, struct decoding *body, struct body_reader *reader,
                      struct message *chunk);
/* Until no thread touches the body any more: always, before its memory is freed. Clears *body. *busy_ns (may be NULL): all
 * threads' time on it. */
FALLIBLE decoders_wait(uint64_t *busy_ns, struct decoders *d, struct decoding *body);
