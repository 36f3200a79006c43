/* Transport: messages, durable streams, key-value buckets and objects; NATS behind it, or a twin inside the process.
 *
 * What the rest of the node knows of NATS is this header. The real implementation (nats.c) speaks the JetStream protocol
 * itself over plain requests, because the client's own fetch, KV and ordered reads have traps that lose messages or hide
 * error codes. The twin (loopback.c) is a broker in this process with the same semantics (redelivery, duplicates,
 * preconditions, age), for tests of daemons without a server. kv.c and object.c stand on either.
 *
 *     transport_open ─▶ publish / pull / ack / kv_* / object_* / subscribe / request ─▶ transport_close
 *
 * Owner    whoever opened it; subscriptions, pullers, watches, uploads and downloads are closed before it.
 * Threads  a transport any; a puller, watch, upload or download one thread at a time. Subscription handlers run on a thread of
 *          the library, one at a time per subscription, and must not block or close their own subscription.
 * Errors   E_NET not connected, nobody answers, server refuses; E_TIMEOUT no answer in time (the operation may have
 *          happened); E_QUEUE a stream is full; E_LIMIT larger than the server takes; E_FORMAT an answer that cannot be
 *          read, or a stream that exists with other settings; E_USAGE for options. Every detail names subject or stream.
 * While disconnected nothing is buffered: calls fail at once with E_NET, and the library reconnects for ever.
 * Units    nanoseconds, bytes.
 */
#pragma once
#include "node/base/hash.h"
#include "proto/subjects.h"

struct transport;

/* --- Connection --- */

struct transport_tls {
    const char *ca_file;              /* NULL: no TLS unless the URL says tls:// */
    const char *cert_file, *key_file; /* client certificate, both or neither */
    const char *host;                 /* expected name; NULL: the URL's */
};
enum transport_event {
    TRANSPORT_DISCONNECTED,
    TRANSPORT_RECONNECTED,
    TRANSPORT_CLOSED,        /* for good: credentials refused again and again */
    TRANSPORT_SLOW_CONSUMER, /* messages were dropped */
    TRANSPORT_REFUSED        /* permission violation: a configuration error */
};
struct transport_options {
    const char *url;  /* "nats://127.0.0.1:4222", "nats://user:password@host", several separated by
                        commas; NULL: the first of these */
    const char *name; /* of the connection, for the server's monitoring */
    const char *inbox_prefix; /* NULL: "_INBOX." and the client certificate's name, else "_INBOX" */
    const char *user, *password, *token; /* NULL: none */
    const char *creds_file;
    struct transport_tls tls;
    bool plaintext;        /* without TLS to another machine, too; else E_USAGE */
    uint64_t open_wait_ns; /* keep trying this long at start; 0: one try */
    /* May be NULL. Asked between those tries, on the opener's thread, with the reason of the last one's failure (lent); true: enough
     * of them, which is E_CANCELLED. */
    bool (*enough)(void *ctx, const char *why);
    void *enough_ctx;
    uint64_t request_wait_ns; /* default for every request; 0: 5 s */
    bool send_asap;           /* else what is sent, requests too, may wait a millisecond for more */
    /* May be NULL. Runs on a thread of the library: counts, flags, wakes; never calls the transport. */
    void (*on_event)(void *ctx, enum transport_event event, const char *detail);
    void *event_ctx;
};
FALLIBLE transport_open(struct transport **out, const struct transport_options *options);
void transport_close(struct transport **t);
/* Addresses, files and logins alone, without a connection: E_USAGE. */
FALLIBLE transport_check(const struct transport_options *options);

/* The name that a client's certificate gives its holder (common name), "" for none. E_USAGE: not there, or not PEM. */
FALLIBLE transport_certificate_name(char *out, size_t out_bytes, const char *cert_file);

/* The URLs as they may be shown: without passwords and tokens. */
void transport_url_shown(char *out, size_t out_bytes, const char *url);

struct transport_health {
    bool connected;
    uint64_t disconnects_count, reconnects_count;
    uint64_t slow_count, refused_count, errors_count;
    uint64_t sent_count, received_count; /* messages */
    uint64_t sent_bytes, received_bytes;
    uint64_t payload_bytes_max; /* as the server told */
    char last_error[256];
};
void transport_health(struct transport_health *out, struct transport *t);
/* A fresh name of 22 characters that nobody can foresee: of objects, of inboxes. */
enum { NUID_BYTES = 23 };
void transport_nuid(char out[NUID_BYTES]);
/* A fresh inbox of this connection: a subject that it may subscribe to and others may answer on. */
enum { TRANSPORT_INBOX_BYTES = INBOX_BYTES_MAX + NUID_BYTES };
void transport_inbox(char out[TRANSPORT_INBOX_BYTES], struct transport *t);

/* --- Messages --- */

struct message {
    const char *subject;
    const char *reply;     /* reply or ack subject; "" if none */
    struct bytes data;     /* all three lent from the message */
    uint64_t sequence;     /* in its stream; 0 for core messages */
    uint64_t deliveries;   /* 1 for the first; 0 where it does not apply */
    uint64_t pending;      /* left for the consumer after this one */
    uint64_t time_unix_ns; /* stored at */
    void *handle;          /* owned by the transport */
    const struct transport_ops *ops;
};
/* Gives the message back; any thread. Fine on a zeroed or already finished message. */
void message_done(struct message *m);
/* Header value, NULL if absent; lent from the message. Names are case-sensitive. */
const char *message_header(const struct message *m, const char *name);

/* --- Core: publish and forget, subscribe, ask --- */

FALLIBLE transport_send(struct transport *t, const char *subject, struct bytes data);
/* The same for those alone who listen now: a stream that takes the subject does not keep this message. */
FALLIBLE transport_send_unkept(struct transport *t, const char *subject, struct bytes data);
/* Handed to the kernel or the server up to here. */
FALLIBLE transport_flush(struct transport *t, uint64_t wait_ns);

/* The message is the handler's for the call; it may take it over by copying the struct and clearing the original. */
typedef void transport_handler(void *ctx, struct message *m);
struct subscription;
/* With a handler: messages arrive on a library thread. Without: subscription_next. queue_group may be NULL. At most
 * pending_max unread messages (0: 65536) are kept, then the newest are dropped and counted. */
struct subscribe_options {
    const char *queue_group;
    transport_handler *handler;
    void *handler_ctx;
    uint32_t pending_max;
};
FALLIBLE transport_subscribe(struct subscription **out, struct transport *t, const char *subject,
                             const struct subscribe_options *options); /* NULL: all defaults */
FALLIBLE subscription_next(struct message *out, struct subscription *sub, uint64_t wait_ns);
void subscription_close(struct subscription **sub); /* returns when no handler runs any more */

/* E_NET at once when nobody listens. wait_ns 0: the connection's default. */
FALLIBLE transport_request(struct message *out, struct transport *t, const char *subject,
                           struct bytes data, uint64_t wait_ns);
/* Only to an inbox: the asker chose where the answer goes, and it goes there with our permissions. E_FORMAT for another. */
FALLIBLE message_respond(struct transport *t, const struct message *request, struct bytes data);

/* --- Streams --- */

enum stream_retention { STREAM_LIMITS, STREAM_WORK_QUEUE };
struct stream_config {
    const char *name;
    const char *subjects[4]; /* NULL-terminated unless four */
    enum stream_retention retention;
    bool in_memory;
    bool discard_new;             /* full: refuse, instead of dropping the oldest */
    bool discard_new_per_subject; /* the same for messages_per_subject_max */
    bool allow_rollup;
    bool deny_delete;
    int64_t messages_max, bytes_max, messages_per_subject_max; /* 0: no limit */
    int32_t message_bytes_max;                                 /* 0: no limit */
    uint64_t age_max_ns;                                       /* 0: for ever */
    uint64_t duplicate_window_ns;                              /* 0: the server's 2 minutes */
    uint32_t replicas;                                         /* 0: 1 */
    bool replace_limits; /* of a stream that exists; else an operator's stay */
};
/* Creates it, or finds it with the same name, subjects and retention. */
FALLIBLE stream_ensure(struct transport *t, const struct stream_config *config);
FALLIBLE stream_delete(struct transport *t, const char *name); /* gone already: OK */

struct stream_info {
    uint64_t messages_count, bytes, first_sequence, last_sequence, consumers_count;
    uint64_t bytes_max; /* 0: no limit */
};
FALLIBLE stream_info(struct stream_info *out, struct transport *t, const char *name);
/* Removes what a subject filter covers (NULL: everything). *purged_count may be NULL. */
FALLIBLE stream_purge(uint64_t *purged_count, struct transport *t, const char *name,
                      const char *filter);
/* *found is false if it was not there (any more). */
FALLIBLE stream_delete_message(bool *found, struct transport *t, const char *name,
                               uint64_t sequence);
/* Reading without a consumer. *found false and *out untouched if there is none. */
FALLIBLE stream_get(struct message *out, bool *found, struct transport *t, const char *name,
                    uint64_t sequence);
FALLIBLE stream_get_last(struct message *out, bool *found, struct transport *t, const char *name,
                         const char *subject);
/* The first message at or after `sequence` that `filter` covers. */
FALLIBLE stream_get_next(struct message *out, bool *found, struct transport *t, const char *name,
                         uint64_t sequence, const char *filter);

/* --- Publishing into a stream --- */

enum publish_outcome {
    PUBLISH_STORED,
    PUBLISH_DUPLICATE, /* a message with this id was stored before, within the window */
    PUBLISH_CONFLICT   /* the precondition did not hold: somebody else was first */
};
struct publish_options {
    const char *message_id; /* NULL: none */
    /* Store only if the last sequence on this subject is exactly this one; 0: if there is no message on it. */
    bool expect_last;
    uint64_t expect_last_sequence;
    bool rollup; /* replaces all earlier messages of the subject */
    uint64_t wait_ns;
};
struct publish_ack {
    enum publish_outcome outcome;
    uint64_t
        sequence; /* of the stored message; with DUPLICATE the earlier one's; 0 with CONFLICT */
};
/* OK with one of the three outcomes: a caller that gave a precondition must look at it. E_QUEUE: stream full. E_NET: no stream
 * takes this subject, or not connected. E_TIMEOUT: unknown; publish again with the same id. */
FALLIBLE transport_publish(struct publish_ack *out, struct transport *t, const char *subject,
                           struct bytes data,
                           const struct publish_options *options); /* NULL: none */

/* --- Consumers --- */

struct consumer_config {
    const char *stream, *name;
    const char *filter; /* NULL: all */
    uint64_t ack_wait_ns;
    int32_t deliveries_max;  /* 0: no limit */
    int32_t ack_pending_max; /* 0: the server's 1000 */
};
/* Durable; updates settings. One that has had more than its stream holds (a server may come back with less) is made anew. */
FALLIBLE consumer_ensure(struct transport *t, const struct consumer_config *config);
FALLIBLE consumer_delete(struct transport *t, const char *stream, const char *name); /* gone: OK */
struct consumer_info {
    uint64_t pending_count;     /* not yet delivered */
    uint64_t ack_pending_count; /* delivered, not acknowledged */
    uint64_t redelivered_count;
    uint64_t waiting_count;                          /* pulls that wait */
    uint64_t delivered_sequence, ack_floor_sequence; /* of the stream */
};
FALLIBLE consumer_info(struct consumer_info *out, bool *found, struct transport *t,
                       const char *stream, const char *name);

struct puller;
FALLIBLE puller_open(struct puller **out, struct transport *t, const char *stream,
                     const char *consumer);
void puller_close(struct puller **p);
/* From now on up to `count` messages are asked for at once, before they are wanted: those not handed out yet are in this process's hands, for
 * as long as the consumer waits for their acknowledgement. For who takes all that comes; 1 at first. Such a request lasts lasts_ns: longer than
 * the 2.5 s after which a silent server is noticed, and less than the consumer's wait, or a frozen process is given what it had again. */
void puller_ahead(struct puller *p, uint32_t count, uint64_t lasts_ns);
/* One message. E_TIMEOUT after wait_ns without one (never earlier); wait_ns 0 asks once without waiting. A lost connection is
 * ridden out within wait_ns, E_NET if it is still lost then; E_NET at once when the consumer is gone. */
FALLIBLE puller_next(struct message *out, struct puller *p, uint64_t wait_ns);
void puller_wake(struct puller *p); /* any thread: the waiting puller_next returns E_CANCELLED */

/* Acknowledgements go to the message's reply subject; anybody who knows it may send them (a third party takes a held
 * job back with ACK_NAK). None of them is a fence: two workers' acks both succeed. */
enum ack_kind {
    ACK_DONE,
    ACK_NAK,     /* redeliver, after delay_ns */
    ACK_TERM,    /* never again */
    ACK_PROGRESS /* the ack wait starts anew */
};
FALLIBLE transport_ack(struct transport *t, const char *ack_subject, enum ack_kind kind,
                       uint64_t delay_ns);
/* Returns when the server has taken it; E_TIMEOUT otherwise. */
FALLIBLE transport_ack_sync(struct transport *t, const char *ack_subject, uint64_t wait_ns);
/* Stream, consumer, sequence and delivery count that an ack subject holds. Strings into the caller's buffers. */
struct ack_parts {
    char stream[128], consumer[128];
    uint64_t deliveries, stream_sequence, consumer_sequence, time_unix_ns, pending;
};
FALLIBLE ack_subject_parse(struct ack_parts *out, const char *ack_subject);

/* --- Key-value buckets: stream KV_<bucket>, subjects $KV.<bucket>.<key>, readable by every NATS client ---
 *
 * Each key has one value, its latest (history 1). */

struct kv_config {
    const char *bucket;
    uint64_t ttl_ns; /* 0: for ever. An expiry is seen by nobody: sweep. */
    int32_t value_bytes_max;
    uint32_t replicas;
};
FALLIBLE kv_ensure(struct transport *t, const struct kv_config *config);

enum kv_operation { KV_PUT, KV_DELETE };
struct kv_entry {
    const char *key;    /* lent from the message */
    struct bytes value; /* the same */
    uint64_t revision;
    uint64_t time_unix_ns;
    enum kv_operation operation;
    struct message message; /* holds the memory */
};
void kv_entry_done(struct kv_entry *e);
/* Keys: tokens of [A-Za-z0-9_=/-] separated by dots. *found is false for a key that never was or was deleted. */
FALLIBLE kv_get(struct kv_entry *out, bool *found, struct transport *t, const char *bucket,
                const char *key);
FALLIBLE kv_put(uint64_t *revision, struct transport *t, const char *bucket, const char *key,
                struct bytes value);
/* Only if the key is not there (deleted counts as not there). *won says so; *revision is set when won. */
FALLIBLE kv_create(uint64_t *revision, bool *won, struct transport *t, const char *bucket,
                   const char *key, struct bytes value);
/* Only if the key's revision is still `last`. */
FALLIBLE kv_update(uint64_t *revision, bool *won, struct transport *t, const char *bucket,
                   const char *key, struct bytes value, uint64_t last);
/* With last = 0 always, else only if the revision is still that. won may be NULL. */
FALLIBLE kv_delete(bool *won, struct transport *t, const char *bucket, const char *key,
                   uint64_t last);
/* Calls visit for every live key that `filter` covers ("*", ">", "tenant.*"), in order of last change; a key that changes
 * meanwhile may come twice. An error from visit ends the walk and is returned. Entries are lent for the call. */
typedef enum err kv_visit(void *ctx, const struct kv_entry *entry);
FALLIBLE kv_list(struct transport *t, const char *bucket, const char *filter, kv_visit *visit,
                 void *ctx);

/* First every live key, then every change in order, deletions too. Nothing is missed across reconnects; of changes in quick
 * succession to one key only the last may be seen. */
struct kv_watch;
FALLIBLE kv_watch_open(struct kv_watch **out, struct transport *t, const char *bucket,
                       const char *filter);
/* Before the first kv_watch_next: keys that changed last before this revision are not told. */
void kv_watch_from(struct kv_watch *w, uint64_t revision);
/* E_TIMEOUT: nothing new. *caught_up (may be NULL) is true when all that existed at opening has been handed out. */
FALLIBLE kv_watch_next(struct kv_entry *out, bool *caught_up, struct kv_watch *w, uint64_t wait_ns);
void kv_watch_close(struct kv_watch **w);

/* --- Objects: the layout that every NATS client's object store reads and writes (ADR-20) ---
 *
 * Names are printable ASCII, at most 255 bytes: on others the clients do not agree. */

struct object_bucket_config {
    const char *bucket;
    uint64_t age_max_ns; /* 0: for ever */
    int64_t bytes_max;   /* 0: no limit; full: puts fail with E_QUEUE */
    uint32_t replicas;
    bool replace_limits; /* of a bucket that exists */
};
FALLIBLE object_bucket_ensure(struct transport *t, const struct object_bucket_config *config);

enum { OBJECT_CHUNK_BYTES = 1024 * 1024, OBJECT_NAME_BYTES_MAX = 256 };
struct object_info {
    char name[OBJECT_NAME_BYTES_MAX];
    char nuid[64];
    uint64_t bytes;
    uint32_t chunks_count;
    struct sha256 sha256;
    uint64_t first_sequence; /* of the first chunk; only after a commit, else 0 */
};

/* An object is invisible until committed. Any error (a lost connection above all, as chunks may then be stored out of order)
 * makes the upload useless: close it, open a new one. What was stored of it is purged, or left to the bucket's age. */
struct object_upload;
FALLIBLE object_upload_open(struct object_upload **out, struct transport *t, const char *bucket,
                            const char *name);
/* One chunk of the object; empty ones are skipped. Returns when the window allows the next: `data` may then be reused. */
FALLIBLE object_upload_chunk(struct object_upload *u, struct bytes data);
/* Waits for all acknowledgements, then makes the object visible; replaces and purges an older one of the same name. Where another upload
 * has meanwhile put the same bytes there, that one stays, and is what *out says. */
FALLIBLE object_upload_commit(struct object_info *out, struct object_upload *u);
void object_upload_close(struct object_upload **u); /* without commit: abandons */
/* After a commit, where the chunks behind the first one lie: each so many sequences behind the one before it. None where they follow each
 * other directly, or are more than OBJECT_STEPS_MAX. Lent from the upload. */
struct object_steps {
    const uint32_t *steps;
    size_t count;
};
struct object_steps object_upload_steps(const struct object_upload *u);

FALLIBLE object_info(struct object_info *out, bool *found, struct transport *t, const char *bucket,
                     const char *name);
/* *whole: its first chunk is still there (a purge takes all of them, and age the first one first); left alone on error. */
FALLIBLE object_is_whole(bool *whole, struct transport *t, const char *bucket,
                         const struct object_info *info);
/* By nuid, without looking at the name. Several requests are in flight, over several connections where there are more than one; chunks come
 * out in order. What is said of the chunks' places and number is a hint: a wrong one costs time, or is found as damage. */
struct object_download;
enum { OBJECT_LINKS_MAX = 8 };
struct bulk_links { /* connections to one server that share what is large; lent */
    struct transport *links[OBJECT_LINKS_MAX];
    unsigned count; /* at least 1 */
};
struct object_download_options {
    const char *bucket;
    const char *nuid;
    uint64_t first_sequence;       /* where the chunks begin; 0: look for them */
    struct object_steps steps;     /* lent until it is closed */
    uint32_t chunks_count;         /* about; 0: not known */
    uint64_t bytes;                /* exact length; the download ends there */
    const struct sha256 *sha256;   /* checked at the end; NULL: the caller does */
    uint64_t wait_ns;              /* without any chunk; 0: 30 s. Reconnects are ridden out. */
    uint32_t window;               /* requests in flight; 0: 8, over several connections 16 */
    struct transport *const *also; /* lent: more connections to the same server */
    unsigned also_count;           /* at most OBJECT_LINKS_MAX - 1 of them are used */
};
FALLIBLE object_download_open(struct object_download **out, struct transport *t,
                              const struct object_download_options *options);
/* The next chunk, the caller's (message_done). E_FORMAT: a chunk is missing, too much data, wrong digest. *end is true, and
 * *out empty, after the last byte has been handed out and the digest agreed. */
FALLIBLE object_download_next(struct message *out, bool *end, struct object_download *d);
void object_download_close(struct object_download **d);

/* Removes the chunks of one nuid; and the name's entry if it still belongs to that nuid (name may be NULL). */
FALLIBLE object_purge(struct transport *t, const char *bucket, const char *nuid, const char *name);

/* Whole objects in memory or in a file, for keys and small ones. */
FALLIBLE object_put_bytes(struct object_info *out, struct transport *t, const char *bucket,
                          const char *name, struct bytes data);
/* Streams into write(ctx, chunk), digest checked at the end; *found false if there is no such object. */
typedef enum err object_sink(void *ctx, struct bytes chunk);
FALLIBLE object_get(struct object_info *out, bool *found, struct transport *t, const char *bucket,
                    const char *name, uint64_t bytes_max, object_sink *write, void *ctx);
