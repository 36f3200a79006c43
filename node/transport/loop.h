/* Shared by loopback.c (broker, connections, streams, consumers) and loopback_core.c (plain messages). For these files only.
 *
 * Threads  any; one lock over everything, and functions marked [lock] are called with it held.
 * Errors   those of transport.h.
 */
#pragma once
#include "node/base/lock.h"
#include "node/transport/broker.h"
#include "node/transport/loopback.h"

struct loopback {
    struct lock lock;
    struct condition changed;
    struct broker *broker;                   /* owned [lock] */
    struct loop_transport *transports;       /* [lock] open ones */
    struct loop_subscription *subscriptions; /* [lock] */
    uint64_t turn;                           /* [lock] of queue groups */
};

struct loop_transport {
    struct transport base;
    struct loopback *b; /* lent */
    struct loop_transport *next;
    bool cut;                                                                         /* [lock] */
    uint64_t losses, reconnects, sent, received, sent_bytes, received_bytes, dropped; /* [lock] */
    uint64_t request_wait_ns;
    void (*on_event)(void *ctx, enum transport_event event, const char *detail);
    void *event_ctx;
};

struct queued {
    struct queued *next;
    struct broker_message *message; /* owned */
};

struct loop_subscription {
    struct subscription base;
    struct loop_transport *t; /* lent */
    struct loop_subscription *next;
    char *filter, *group;         /* owned */
    struct queued *first, **last; /* [lock] unread */
    uint32_t unread, unread_max;
    transport_handler *handler;
    void *handler_ctx;
    pthread_t thread;
    bool closing; /* [lock] */
};

extern const struct transport_ops loop_ops;

static inline struct loop_transport *loop_of(struct transport *t) {
    return (struct loop_transport *)t;
}

void loop_enter(struct loopback *b); /* takes the lock */
void loop_leave(struct loopback *b);
void loop_changed(struct loopback *b); /* wakes everybody who waits [lock] */
/* Waits for a change or a slice; false once `deadline` has passed. [lock] */
bool loop_wait_change(struct loopback *b, uint64_t deadline);
uint64_t loop_deadline_after(uint64_t wait_ns);
/* Locks and checks that t is not cut off; on an error it is unlocked again. */
FALLIBLE loop_enter_connected(struct loop_transport *t, const char *doing);

/* --- loopback_core.c --- */

/* A message for its reader; takes m over on OK only. reply may be NULL. [lock] */
FALLIBLE loop_wrap(struct message *out, struct loop_transport *t, struct broker_message *m,
                   const char *reply);
/* To everybody who listens; returns how many. [lock] */
unsigned loop_spread(struct loopback *b, struct broker_message *m);
void loop_drop_unread(struct loop_subscription *s); /* [lock] */

void loop_message_done(struct message *m);
const char *loop_message_header(const struct message *m, const char *name);
FALLIBLE loop_send(struct transport *base, const char *subject, struct bytes data);
FALLIBLE loop_send_unkept(struct transport *base, const char *subject, struct bytes data);
FALLIBLE loop_flush(struct transport *base, uint64_t wait_ns);
FALLIBLE loop_subscribe(struct subscription **out, struct transport *base, const char *subject,
                        const struct subscribe_options *o);
FALLIBLE loop_subscription_next(struct message *out, struct subscription *base, uint64_t wait_ns);
void loop_subscription_close(struct subscription *base);
FALLIBLE loop_request(struct message *out, struct transport *base, const char *subject,
                      struct bytes data, uint64_t wait_ns);
