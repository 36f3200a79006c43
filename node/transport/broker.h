/* The twin's memory: streams and consumers as plain data, without threads or waiting.
 *
 * loopback.c holds the lock around every call and gives the time, so this is a state machine that tests can step.
 *
 * Threads  the caller's lock.
 * Errors   those of transport.h.
 */
#pragma once
#include "node/transport/ops.h"

enum { BROKER_PAYLOAD_BYTES_MAX = 8 * 1024 * 1024 };

struct broker;
FALLIBLE broker_new(struct broker **out);
void broker_free(struct broker **b);

/* A message with its own memory; counted. What a stream stores and what is handed out are the same block. */
struct broker_message {
    int refs; /* [atomic] */
    char *subject, *reply, *header_name,
        *header_value; /* owned, within the block; NULL if absent */
    struct bytes data; /* owned, within the block */
    uint64_t sequence, stored_ns, time_unix_ns;
};
FALLIBLE broker_message_new(struct broker_message **out, const char *subject, const char *reply,
                            struct bytes data, const char *header_name, const char *header_value);
struct broker_message *broker_message_ref(struct broker_message *m);
void broker_message_unref(struct broker_message **m);

FALLIBLE broker_stream_ensure(struct broker *b, const struct stream_config *config);
void broker_stream_delete(struct broker *b, const char *name);
FALLIBLE broker_stream_info(struct stream_info *out, struct broker *b, const char *name,
                            uint64_t now_ns);
FALLIBLE broker_stream_purge(uint64_t *purged_count, struct broker *b, const char *name,
                             const char *filter);
FALLIBLE broker_stream_delete_message(bool *found, struct broker *b, const char *name,
                                      uint64_t sequence);
/* *out is a new reference, NULL if there is none. Meaning of sequence and filter as in ops.h. */
FALLIBLE broker_stream_get(struct broker_message **out, struct broker *b, const char *name,
                           uint64_t sequence, const char *filter, uint64_t now_ns);
/* Stores m in the stream that takes its subject. *taken is false if none does. */
FALLIBLE broker_store(struct publish_ack *out, bool *taken, struct broker *b,
                      struct broker_message *m, const struct publish_options *options,
                      uint64_t now_ns);

FALLIBLE broker_consumer_ensure(struct broker *b, const struct consumer_config *config);
void broker_consumer_delete(struct broker *b, const char *stream, const char *name);
FALLIBLE broker_consumer_info(struct consumer_info *out, bool *found, struct broker *b,
                              const char *stream, const char *name, uint64_t now_ns);
/* What a pull hands out. message NULL: nothing due now. ack subject: the text after `ack`. */
struct broker_delivery {
    struct broker_message *message; /* a new reference */
    uint64_t deliveries, pending;
    char ack[512];
};
FALLIBLE broker_pull(struct broker_delivery *out, struct broker *b, const char *stream,
                     const char *consumer, uint64_t now_ns);
/* Acks for what is not held any more are ignored, as the server does. *known is false if stream or consumer is gone. */
FALLIBLE broker_ack(bool *known, struct broker *b, const char *ack_subject, enum ack_kind kind,
                    uint64_t delay_ns, uint64_t now_ns);

/* What a server forgets when it is killed. */
void broker_restart(struct broker *b);
