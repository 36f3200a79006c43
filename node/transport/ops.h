/* Behind transport.h: what an implementation provides. Two do, nats.c (with jetstream.c, pull.c, follow.c) and loopback.c.
 *
 * Everything that can be built on these operations is built once above them (kv.c, object.c, download.c, batch.c, service.c,
 * fleet.c), so that the twin can differ from the server only here. A pipe is what bulk transfer needs beyond single calls:
 * several publishes or reads in flight, their answers in any order.
 *
 * Threads  as in transport.h; a pipe one thread at a time.
 */
#pragma once
#include "node/transport/transport.h"

struct transport {
    const struct transport_ops *ops;
};
struct subscription {
    const struct transport_ops *ops;
};
struct puller {
    const struct transport_ops *ops;
};
struct pipe {
    const struct transport_ops *ops;
};
struct follower {
    const struct transport_ops *ops;
};

/* One answer: token is the one given with the operation. */
struct pipe_answer {
    uint64_t token;
    struct fault fault;     /* OK or why this operation failed */
    struct publish_ack ack; /* of a publish */
    bool found;             /* of a read */
    struct message message; /* the caller's, when found */
};

struct transport_ops {
    void (*close)(struct transport *t);
    void (*health)(struct transport_health *out, struct transport *t);
    /* Counts losses of the connection: what was in flight when it rises has an unknown fate. */
    uint64_t (*losses)(struct transport *t);
    bool (*connected)(struct transport *t);
    void (*inbox)(char out[TRANSPORT_INBOX_BYTES], struct transport *t);

    void (*message_done)(struct message *m);
    const char *(*message_header)(const struct message *m, const char *name);

    FALLIBLE (*send)(struct transport *t, const char *subject, struct bytes data);
    FALLIBLE (*send_unkept)(struct transport *t, const char *subject, struct bytes data);
    FALLIBLE (*flush)(struct transport *t, uint64_t wait_ns);
    FALLIBLE(*subscribe)
    (struct subscription **out, struct transport *t, const char *subject,
     const struct subscribe_options *options);
    FALLIBLE (*subscription_next)(struct message *out, struct subscription *sub, uint64_t wait_ns);
    void (*subscription_close)(struct subscription *sub);
    FALLIBLE(*request)
    (struct message *out, struct transport *t, const char *subject, struct bytes data,
     uint64_t wait_ns);

    FALLIBLE (*stream_ensure)(struct transport *t, const struct stream_config *config);
    FALLIBLE (*stream_delete)(struct transport *t, const char *name);
    FALLIBLE (*stream_info)(struct stream_info *out, struct transport *t, const char *name);
    FALLIBLE(*stream_purge)
    (uint64_t *purged_count, struct transport *t, const char *name, const char *filter);
    FALLIBLE(*stream_delete_message)
    (bool *found, struct transport *t, const char *name, uint64_t sequence);
    /* filter NULL: exactly `sequence`. sequence 0: the last that `filter` covers. Both: the first at or after. */
    FALLIBLE(*stream_get)
    (struct message *out, bool *found, struct transport *t, const char *name, uint64_t sequence,
     const char *filter);
    FALLIBLE(*publish)
    (struct publish_ack *out, struct transport *t, const char *subject, struct bytes data,
     const struct publish_options *options, const char *header_name, const char *header_value);

    FALLIBLE (*consumer_ensure)(struct transport *t, const struct consumer_config *config);
    FALLIBLE (*consumer_delete)(struct transport *t, const char *stream, const char *name);
    FALLIBLE(*consumer_info)
    (struct consumer_info *out, bool *found, struct transport *t, const char *stream,
     const char *name);
    FALLIBLE(*puller_open)
    (struct puller **out, struct transport *t, const char *stream, const char *consumer);
    FALLIBLE (*puller_next)(struct message *out, struct puller *p, uint64_t wait_ns);
    void (*puller_wake)(struct puller *p);
    void (*puller_ahead)(struct puller *p, uint32_t count,
                         uint64_t lasts_ns); /* NULL: each is asked for alone */
    void (*puller_close)(struct puller *p);
    FALLIBLE(*ack)
    (struct transport *t, const char *ack_subject, enum ack_kind kind, uint64_t delay_ns);
    FALLIBLE (*ack_sync)(struct transport *t, const char *ack_subject, uint64_t wait_ns);

    FALLIBLE (*pipe_open)(struct pipe **out, struct transport *t);
    FALLIBLE(*pipe_publish)
    (struct pipe *p, uint64_t token, const char *subject, struct bytes data,
     const struct publish_options *options); /* NULL: none; wait_ns is not looked at */
    FALLIBLE(*pipe_get)
    (struct pipe *p, uint64_t token, const char *stream, uint64_t sequence, const char *filter);
    FALLIBLE (*pipe_next)(struct pipe_answer *out, struct pipe *p, uint64_t wait_ns);
    void (*pipe_close)(struct pipe *p);

    /* A stream's messages from a sequence on (under a filter unless NULL), then what comes, in order. *caught_up: all that was there
     * has been handed out. May be NULL: then whoever reads asks message by message. */
    FALLIBLE(*follower_open)
    (struct follower **out, struct transport *t, const char *stream, const char *filter,
     uint64_t from_sequence);
    FALLIBLE(*follower_next)
    (struct message *out, bool *caught_up, struct follower *f, uint64_t wait_ns);
    void (*follower_close)(struct follower *f);
};

enum { REQUEST_WAIT_DEFAULT_S = 5, PENDING_DEFAULT = 65536 };
#define SECOND_NS UINT64_C(1000000000)

/* A publish with one header of our own, for kv.c (operation) and nobody else. */
FALLIBLE publish_with_header(struct publish_ack *out, struct transport *t, const char *subject,
                             struct bytes data, const struct publish_options *options,
                             const char *header_name, const char *header_value);

/* What a bucket is underneath, from kv.c: its stream, and the subject of a key (`filter`: with wildcards). E_FORMAT for others. */
FALLIBLE kv_stream(struct subject *out, const char *bucket);
FALLIBLE kv_subject(struct subject *out, const char *bucket, const char *key, bool filter);

/* The same of an object bucket, from object.c: its stream, and the subject of an object's chunks. */
enum { OBJECT_TOKEN_BYTES = 4 * ((OBJECT_NAME_BYTES_MAX + 2) / 3) + 1 };
struct object_subject {
    char text[SUBJECT_BYTES_MAX + OBJECT_TOKEN_BYTES];
};
FALLIBLE object_stream(struct object_subject *out, const char *bucket);
FALLIBLE object_chunk_subject(struct object_subject *out, const char *bucket, const char *nuid);

/* What every call asks first. */
FALLIBLE check_subject(const char *subject); /* not empty, no spaces, short enough */
FALLIBLE check_name(const char *name,
                    const char *what); /* stream, consumer, bucket: no dots, spaces or wildcards */
