/* Shared by nats.c (connection and core messages), asking.c (requests) and what speaks JetStream over them: jetstream.c (streams,
 * consumers, pipes), pull.c and follow.c (reading them). For these files only.
 *
 * Threads  as in transport.h; what the library's own threads touch is atomic or under the lock.
 * Errors   those of transport.h.
 */
#pragma once
#include "node/base/json.h"
#include "node/base/lock.h"
#include "node/transport/ops.h"

#include <nats/nats.h>
#include <stdatomic.h>

enum { REFUSALS_KEPT = 16 };

struct nats_transport {
    struct transport base;
    natsOptions *options; /* owned */
    natsConnection *nc;   /* owned */
    uint64_t request_wait_ns;
    char inbox_prefix[INBOX_BYTES_MAX];
    void (*on_event)(void *ctx, enum transport_event event, const char *detail);
    void *event_ctx;
    atomic_uint_fast64_t losses, reconnects, slow, refused, errors;
    struct lock lock;
    struct condition closed_cond;
    bool closed;                       /* [lock] */
    char last_error[256];              /* [lock] */
    char refusals[REFUSALS_KEPT][256]; /* [lock] the latest, by their number modulo the room */
    struct nats_subscription *answers; /* owned: to all that this connection asks */
    char answers_inbox[TRANSPORT_INBOX_BYTES];
    struct asking *askings; /* [lock] lent: on the stacks of those who wait */
    uint64_t askings_count; /* [lock] all that there ever were */
    bool answers_refused;   /* [lock] no answer can come */
    struct nats_pipe *kept; /* [lock] owned: open, and used by nobody */
    unsigned kept_count;    /* [lock] */
};

static inline struct nats_transport *nats_of(struct transport *t) {
    return (struct nats_transport *)t;
}

extern const struct transport_ops nats_ops;

int64_t wait_ms(uint64_t wait_ns); /* rounded up, at least 1 */
/* What the library says, as our code, with what was attempted in the detail. */
enum err nats_error(natsStatus status, const char *doing, const char *subject);
void nats_message(struct message *out, natsMsg *msg); /* takes msg over */
const char *nats_header(natsMsg *msg, const char *name);

/* --- Requests: asking.c --- */

/* One question that waits for its answer, on the stack of who asks. */
struct asking {
    struct asking *next;      /* [lock] */
    struct nats_transport *t; /* lent */
    const char *subject;      /* lent */
    uint64_t number;          /* last token of its reply subject; no two have the same */
    char reply[TRANSPORT_INBOX_BYTES + 24]; /* send with this reply subject */
    natsMsg *answer;                        /* [lock] owned */
    natsStatus end; /* [lock] NATS_OK until it is known that no answer comes */
    bool deaf;      /* [lock] because it is the answer that may not come here */
    struct condition heard;
};

/* Between the two the message is sent; both are called, also when sending fails. */
void asking_begin(struct asking *a, struct nats_transport *t, const char *subject);
/* Waits for the answer, unless `sent` says that there is nothing to wait for. NATS_NOT_PERMITTED: the server has refused the message. */
natsStatus asking_end(natsMsg **answer, struct asking *a, natsStatus sent, uint64_t wait_ns);
enum err asking_error(const struct asking *a, natsStatus status, const char *doing);
FALLIBLE askings_open(struct nats_transport *t);
void askings_close(struct nats_transport *t); /* after the connection */
/* No answer comes to anybody who waits now. */
void askings_lost(struct nats_transport *t, natsStatus why);
/* The server's own words: counted and remembered, and told to those whom they concern. */
void askings_refused(struct nats_transport *t, const char *text);
/* E_NET if the server has refused to take a message on `subject` since `refused` had this value. */
FALLIBLE nats_check_refused(struct nats_transport *t, uint64_t refused_before, const char *subject);

/* "<prefix>.<nuid>": subscribe to it with ".*" behind. */
void nats_inbox(char out[TRANSPORT_INBOX_BYTES], struct transport *t);
/* A subscription that loses nothing locally, and its quiet end: what came too late is dropped. */
FALLIBLE nats_subscribe_inbox(natsSubscription **out, struct nats_transport *t, const char *inbox);
void nats_inbox_close(struct nats_transport *t, natsSubscription *sub);
/* A subscription as callers get it, and the end of one that no message can reach any more: waits for its handler, then frees it. */
FALLIBLE nats_listen(struct nats_subscription **out, struct nats_transport *t, const char *subject,
                     const struct subscribe_options *o);
void nats_listen_over(struct nats_subscription *s);

/* The JetStream half: jetstream.c, pull.c and follow.c. */
enum { API_SUBJECT_BYTES = 640, REPLY_BYTES = TRANSPORT_INBOX_BYTES + 32 };
/* "$JS.API.<verb>.<stream>[.<more>]" */
void js_subject(char out[API_SUBJECT_BYTES], const char *verb, const char *stream,
                const char *more);
/* One request to the API; every error is one. */
FALLIBLE js_api(cJSON **answer, struct nats_transport *t, const char *subject, struct bytes body);
int js_status(natsMsg *msg); /* of a status message; 0 if it is none */
FALLIBLE js_stream_ensure(struct transport *t, const struct stream_config *config);
FALLIBLE js_stream_delete(struct transport *t, const char *name);
FALLIBLE js_stream_info(struct stream_info *out, struct transport *t, const char *name);
FALLIBLE js_stream_purge(uint64_t *purged_count, struct transport *t, const char *name,
                         const char *filter);
FALLIBLE js_stream_delete_message(bool *found, struct transport *t, const char *name,
                                  uint64_t sequence);
FALLIBLE js_stream_get(struct message *out, bool *found, struct transport *t, const char *name,
                       uint64_t sequence, const char *filter);
FALLIBLE js_publish(struct publish_ack *out, struct transport *t, const char *subject,
                    struct bytes data, const struct publish_options *options,
                    const char *header_name, const char *header_value);
FALLIBLE js_consumer_ensure(struct transport *t, const struct consumer_config *config);
FALLIBLE js_consumer_delete(struct transport *t, const char *stream, const char *name);
FALLIBLE js_consumer_info(struct consumer_info *out, bool *found, struct transport *t,
                          const char *stream, const char *name);
FALLIBLE js_puller_open(struct puller **out, struct transport *t, const char *stream,
                        const char *consumer);
FALLIBLE js_puller_next(struct message *out, struct puller *p, uint64_t wait_ns);
void js_puller_wake(struct puller *p);
void js_puller_ahead(struct puller *p, uint32_t count, uint64_t lasts_ns);
void js_puller_close(struct puller *p);
FALLIBLE js_ack(struct transport *t, const char *ack_subject, enum ack_kind kind,
                uint64_t delay_ns);
FALLIBLE js_ack_sync(struct transport *t, const char *ack_subject, uint64_t wait_ns);
FALLIBLE js_pipe_open(struct pipe **out, struct transport *t);
FALLIBLE js_pipe_publish(struct pipe *p, uint64_t token, const char *subject, struct bytes data,
                         const struct publish_options *options);
FALLIBLE js_pipe_get(struct pipe *p, uint64_t token, const char *stream, uint64_t sequence,
                     const char *filter);
FALLIBLE js_pipe_next(struct pipe_answer *out, struct pipe *p, uint64_t wait_ns);
void js_pipe_close(struct pipe *p);
void js_pipes_free(struct nats_transport *t); /* those that are kept for the next one */
FALLIBLE js_follower_open(struct follower **out, struct transport *t, const char *stream,
                          const char *filter, uint64_t from_sequence);
FALLIBLE js_follower_next(struct message *out, bool *caught_up, struct follower *f,
                          uint64_t wait_ns);
void js_follower_close(struct follower *f);
