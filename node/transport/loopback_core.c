/* The twin's plain messages: who listens hears them, in a queue of his own.
 *
 * A subscription with a handler has a thread of its own, so that a handler never runs on the sender's thread and may send
 * itself. A message goes to every listener, to one member of each queue group, and, like at a server, into the stream that takes
 * its subject.
 */
#include "node/transport/loop.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "proto/subjects.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* --- Messages --- */

struct handle {
    struct broker_message *message; /* owned */
    char ack[];                     /* reply subject of a delivery */
};

FALLIBLE loop_wrap(struct message *out, struct loop_transport *t, struct broker_message *m,
                   const char *reply) {
    struct handle *h = NULL;
    reply = reply ? reply : "";
    TRY(mem_new(&h, 1, sizeof *h + strlen(reply) + 1));
    memcpy(h->ack, reply, strlen(reply) + 1);
    h->message = m;
    t->received++;
    t->received_bytes += m->data.len;
    *out = (struct message){.subject = m->subject,
                            .reply = h->ack,
                            .data = m->data,
                            .sequence = m->sequence,
                            .time_unix_ns = m->time_unix_ns,
                            .handle = h,
                            .ops = &loop_ops};
    return OK;
}

void loop_message_done(struct message *m) {
    struct handle *h = m->handle;
    broker_message_unref(&h->message);
    mem_free(h);
}

const char *loop_message_header(const struct message *m, const char *name) {
    const struct handle *h = m->handle;
    const char *has = h->message->header_name;
    return has && strcmp(has, name) == 0 ? h->message->header_value : NULL;
}

/* --- Sending --- */

/* Puts m into s's queue. [lock] */
static void enqueue(struct loop_subscription *s, struct broker_message *m) {
    struct queued *q = NULL;
    if (s->t->cut || s->closing) {
        return;
    }
    if (s->unread >= s->unread_max || mem_new(&q, 1, sizeof *q) != OK) {
        s->t->dropped++;
        return;
    }
    q->message = broker_message_ref(m);
    *s->last = q;
    s->last = &q->next;
    s->unread++;
}

/* The member of a group whose turn it is takes the message: `mine` counts members up to and with s. */
static bool group_turn(struct loopback *b, const struct loop_subscription *s, const char *subject) {
    uint64_t members = 0, mine = 0;
    for (struct loop_subscription *o = b->subscriptions; o; o = o->next) {
        if (o->group && !o->t->cut && strcmp(o->group, s->group) == 0 &&
            subject_matches(o->filter, subject)) {
            mine = o == s ? members : mine;
            members++;
        }
    }
    return members > 0 && b->turn % members == mine;
}

/* To everybody who listens; returns how many. [lock] */
unsigned loop_spread(struct loopback *b, struct broker_message *m) {
    unsigned count = 0;
    b->turn++;
    for (struct loop_subscription *s = b->subscriptions; s; s = s->next) {
        if (subject_matches(s->filter, m->subject) && (!s->group || group_turn(b, s, m->subject))) {
            enqueue(s, m);
            count++;
        }
    }
    loop_changed(b);
    return count;
}

/* Acknowledgements are messages, too: "+ACK", "-NAK {…}". [lock] */
static bool take_ack(struct loopback *b, const char *subject, struct bytes data) {
    if (strncmp(subject, "$JS.ACK.", 8) != 0) {
        return false;
    }
    char text[64] = "";
    memcpy(text, data.ptr, data.len < sizeof text - 1 ? data.len : sizeof text - 1);
    enum ack_kind kind = !strncmp(text, "-NAK", 4)    ? ACK_NAK
                         : !strncmp(text, "+TERM", 5) ? ACK_TERM
                         : !strncmp(text, "+WPI", 4)  ? ACK_PROGRESS
                                                      : ACK_DONE;
    bool known;
    IGNORE(broker_ack(&known, b->broker, subject, kind, 0, clock_ns()));
    loop_changed(b);
    return true;
}

struct sending {
    const char *subject, *reply;
    bool unkept;
};

static FALLIBLE send_from(unsigned *heard, struct loop_transport *t, const struct sending *how,
                          struct bytes data) {
    static const struct publish_options none;
    struct broker_message *m = NULL;
    struct publish_ack ack;
    bool taken;
    t->sent++;
    t->sent_bytes += data.len;
    if (take_ack(t->b, how->subject, data)) {
        *heard = 1;
        return OK;
    }
    TRY(broker_message_new(&m, how->subject, how->reply, data, NULL, NULL));
    *heard = loop_spread(t->b, m);
    /* A stream that is full or refuses says so to publishers that ask, and to nobody else. */
    if (!how->unkept) {
        IGNORE(broker_store(&ack, &taken, t->b->broker, m, &none, clock_ns()));
    }
    broker_message_unref(&m);
    return OK;
}

static FALLIBLE send_plain(struct transport *base, const struct sending *how, struct bytes data) {
    struct loop_transport *t = loop_of(base);
    unsigned heard;
    TRY(loop_enter_connected(t, how->subject));
    enum err err = send_from(&heard, t, how, data);
    loop_leave(t->b);
    return err;
}

FALLIBLE loop_send(struct transport *base, const char *subject, struct bytes data) {
    return send_plain(base, &(struct sending){.subject = subject}, data);
}

FALLIBLE loop_send_unkept(struct transport *base, const char *subject, struct bytes data) {
    return send_plain(base, &(struct sending){.subject = subject, .unkept = true}, data);
}

FALLIBLE loop_flush(struct transport *base, uint64_t wait_ns) {
    struct loop_transport *t = loop_of(base);
    (void)wait_ns;
    TRY(loop_enter_connected(t, "flush"));
    loop_leave(t->b);
    return OK;
}

void loop_drop_unread(struct loop_subscription *s) {
    while (s->first) {
        struct queued *q = s->first;
        s->first = q->next;
        broker_message_unref(&q->message);
        mem_free(q);
    }
    s->last = &s->first;
    s->unread = 0;
}

/* The oldest unread message, or NULL. [lock] */
static struct broker_message *dequeue(struct loop_subscription *s) {
    struct queued *q = s->first;
    if (!q) {
        return NULL;
    }
    struct broker_message *m = q->message;
    s->first = q->next;
    if (!s->first) {
        s->last = &s->first;
    }
    s->unread--;
    mem_free(q);
    return m;
}

static void *run_handler(void *arg) {
    struct loop_subscription *s = arg;
    struct loopback *b = s->t->b;
    loop_enter(b);
    while (!s->closing) {
        struct broker_message *m = dequeue(s);
        struct message message = {0};
        if (!m) {
            loop_wait_change(b, UINT64_MAX);
        } else if (loop_wrap(&message, s->t, m, m->reply) == OK) {
            loop_leave(b);
            s->handler(s->handler_ctx, &message);
            message_done(&message);
            loop_enter(b);
        } else {
            broker_message_unref(&m);
            s->t->dropped++;
        }
    }
    loop_leave(b);
    return NULL;
}

static void free_subscription(struct loop_subscription *s) {
    loop_drop_unread(s);
    mem_free(s->filter);
    mem_free(s->group);
    mem_free(s);
}

static void unlink_subscription(struct loopback *b, const struct loop_subscription *s) {
    struct loop_subscription **at = &b->subscriptions;
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
}

FALLIBLE loop_subscribe(struct subscription **out, struct transport *base, const char *subject,
                        const struct subscribe_options *o) {
    struct loop_transport *t = loop_of(base);
    struct loop_subscription *s = NULL;
    TRY(mem_new(&s, 1, sizeof *s));
    s->base.ops = &loop_ops;
    s->t = t;
    s->last = &s->first;
    s->unread_max = o->pending_max ? o->pending_max : PENDING_DEFAULT;
    s->handler = o->handler;
    s->handler_ctx = o->handler_ctx;
    s->filter = mem_strdup(subject);
    s->group = o->queue_group ? mem_strdup(o->queue_group) : NULL;
    if (!s->filter || (o->queue_group && !s->group)) {
        free_subscription(s);
        FAIL(E_LIMIT, "no memory for a subscription");
    }
    loop_enter(t->b);
    s->next = t->b->subscriptions;
    t->b->subscriptions = s;
    loop_leave(t->b);
    if (o->handler && pthread_create(&s->thread, NULL, run_handler, s) != 0) {
        loop_enter(t->b);
        unlink_subscription(t->b, s);
        loop_leave(t->b);
        free_subscription(s);
        FAIL(E_LIMIT, "no thread for a subscription");
    }
    *out = &s->base;
    return OK;
}

FALLIBLE loop_subscription_next(struct message *out, struct subscription *base, uint64_t wait_ns) {
    struct loop_subscription *s = (struct loop_subscription *)base;
    struct loopback *b = s->t->b;
    uint64_t deadline = loop_deadline_after(wait_ns);
    struct broker_message *m;
    loop_enter(b);
    while (!(m = dequeue(s)) && loop_wait_change(b, deadline)) {
    }
    enum err err = m ? loop_wrap(out, s->t, m, m->reply) : OK;
    loop_leave(b);
    if (err != OK) {
        broker_message_unref(&m);
        return err;
    }
    REQUIRE(m, E_TIMEOUT, "no message on the subscription in time");
    return OK;
}

void loop_subscription_close(struct subscription *base) {
    struct loop_subscription *s = (struct loop_subscription *)base;
    struct loopback *b = s->t->b;
    loop_enter(b);
    s->closing = true;
    unlink_subscription(b, s);
    loop_changed(b);
    loop_leave(b);
    if (s->handler) {
        pthread_join(s->thread, NULL);
    }
    free_subscription(s);
}

FALLIBLE loop_request(struct message *out, struct transport *base, const char *subject,
                      struct bytes data, uint64_t wait_ns) {
    struct loop_transport *t = loop_of(base);
    struct subscription *inbox = NULL;
    char nuid[NUID_BYTES], reply[64];
    unsigned heard = 0;
    transport_nuid(nuid);
    snprintf(reply, sizeof reply, "_INBOX.%s", nuid);
    TRY(loop_subscribe(&inbox, base, reply, &(struct subscribe_options){0}));
    enum err err = loop_enter_connected(t, subject);
    if (err == OK) {
        err = send_from(&heard, t, &(struct sending){.subject = subject, .reply = reply}, data);
        loop_leave(t->b);
    }
    if (err == OK && heard == 0) {
        err = err_set(E_NET, "request to %s: nobody answers there", subject);
    }
    if (err == OK) {
        err = loop_subscription_next(out, inbox, wait_ns ? wait_ns : t->request_wait_ns);
        if (err == E_TIMEOUT) {
            err = err_set(E_TIMEOUT, "request to %s: no answer in time", subject);
        }
    }
    subscription_close(&inbox);
    return err;
}
