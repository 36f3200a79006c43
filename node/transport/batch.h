/* Batch: many requests in flight on one connection, so that a hundred take about as long as one round trip and not a hundred.
 *
 *     batch_publish / batch_kv_get / batch_kv_write … ─▶ batch_wait ─▶ batch_answer(0 …)
 *
 * Requests do not see each other's effect: what must come after another goes into a later batch.
 *
 * Owner    whoever opened it; closed before its transport.
 * Threads  one at a time.
 * Errors   of adding: E_LIMIT for more than BATCH_MAX, E_FORMAT for names that are none; those of sending stand in the request's own
 *          answer.
 */
#pragma once
#include "node/transport/transport.h"

enum { BATCH_MAX = 256 };

struct batch;

struct batch_answer {
    struct fault fault; /* OK, or why this one failed; E_TIMEOUT: it may have happened */
    struct publish_ack
        ack;    /* of a publish and a KV write; PUBLISH_CONFLICT: somebody else was first */
    bool found; /* of a read */
    struct message message; /* lent until the next batch; of a read that found something */
};

FALLIBLE batch_open(struct batch **out, struct transport *t);
void batch_close(struct batch **b);
size_t batch_count(const struct batch *b); /* requests since the last batch_clear */

/* Sent at once; the data may be reused when the call returns. */
FALLIBLE batch_publish(struct batch *b, const char *subject, struct bytes data,
                       const struct publish_options *options);
/* The last message on a subject of a stream. */
FALLIBLE batch_get_last(struct batch *b, const char *stream, const char *subject);
/* The first message of a stream at or after `sequence`, not 0, that `filter` covers. */
FALLIBLE batch_get_next(struct batch *b, const char *stream, uint64_t sequence, const char *filter);
FALLIBLE batch_kv_get(struct batch *b, const char *bucket, const char *key);
/* As kv_update; last 0: as kv_create on a key that never was. */
FALLIBLE batch_kv_write(struct batch *b, const char *bucket, const char *key, struct bytes value,
                        uint64_t last);
/* As kv_put. */
FALLIBLE batch_kv_put(struct batch *b, const char *bucket, const char *key, struct bytes value);
/* Until all are answered, at most wait_ns (0: 5 s) without any answer; those that are not then say E_TIMEOUT. */
void batch_wait(struct batch *b, uint64_t wait_ns);
const struct batch_answer *batch_answer(const struct batch *b, size_t idx);
/* The message of an answer that found one becomes the caller's. */
void batch_take_message(struct message *out, struct batch *b, size_t idx);
void batch_clear(struct batch *b); /* gives all messages back; ready for the next */
