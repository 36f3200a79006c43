/* Decoders: threads that turn a body's frames into values, while the next chunks are fetched.
 *
 * Any frame can be decoded by any thread, straight from the message that brought it into its final place. A frame that was cut over two
 * chunks is put together, and decoded, by the thread that fetches.
 *
 * Owner    the lane. One body at a time.
 * Threads  decoders_add and decoders_wait: one, which fetches.
 * Memory   up to DECODERS_CHUNKS_MAX chunks are held; then decoders_add waits. Nothing is allocated after opening.
 * Errors   those of body.h, of whichever frame came first.
 */
#pragma once
#include "node/base/pool.h"
#include "node/transport/transport.h"
#include "proto/body.h"

enum { DECODERS_MAX = 16, DECODERS_CHUNKS_MAX = 32 };

struct decoders;

FALLIBLE decoders_open(struct decoders **out, unsigned threads_count); /* cut to DECODERS_MAX */
void decoders_close(struct decoders **d);
/* The same cores for what is to be done with the whole body afterwards; lent. */
struct pool *decoders_pool(const struct decoders *d);
/* The next chunk of the body; takes the message over (clearing *chunk), whatever it returns. */
FALLIBLE decoders_add(struct decoders *d, struct body_reader *reader, struct message *chunk);
/* Until no thread touches the body any more: always, before its memory is freed. *busy_ns (may be NULL): all threads' time on it. */
FALLIBLE decoders_wait(uint64_t *busy_ns, struct decoders *d);
