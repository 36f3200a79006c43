/* The twin's connections: who waits, who is cut off, who hears what. The streams are in broker.c.
 *
 * One lock over everything and one condition that every change broadcasts: slow for thousands of threads, obviously right
 * for a test. Waiting is by clock_ns(), looked at again every few milliseconds, so that a test which holds the clock moves
 * it with clock_hold and loopback_tick. Handlers run on a thread of their subscription, never on the sender's.
 */
#include "node/transport/loopback.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/transport/broker.h"
#include "proto/subjects.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SLICE_NS (10 * UINT64_C(1000000)) /* a waiting call looks at the clock this often */

struct loopback {
    pthread_mutex_t lock;
    pthread_cond_t changed;
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

struct loop_puller {
    struct puller base;
    struct loop_transport *t; /* lent */
    char *stream, *consumer;  /* owned */
    bool woken;               /* [lock] */
};

struct answer {
    struct answer *next;
    struct pipe_answer answer; /* owned */
};

struct loop_pipe {
    struct pipe base;
    struct loop_transport *t;     /* lent */
    struct answer *first, **last; /* [lock] */
};

static const struct transport_ops loop_ops;

static struct loop_transport *loop_of(struct transport *t) {
    return (struct loop_transport *)t;
}

/* --- Broker --- */

FALLIBLE loopback_open(struct loopback **out) {
    struct loopback *b = NULL;
    TRY(mem_new(&b, 1, sizeof *b));
    enum err err = broker_new(&b->broker);
    if (err != OK) {
        mem_free(b);
        return err;
    }
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&b->lock, NULL);
    *out = b;
    return OK;
}

void loopback_close(struct loopback **broker) {
    struct loopback *b = *broker;
    if (b) {
        ASSERT(!b->transports && !b->subscriptions);
        broker_free(&b->broker);
        pthread_cond_destroy(&b->changed);
        pthread_mutex_destroy(&b->lock);
        mem_free(b);
        *broker = NULL;
    }
}

static void enter(struct loopback *b) {
    pthread_mutex_lock(&b->lock);
}

static void leave(struct loopback *b) {
    pthread_mutex_unlock(&b->lock);
}

static void changed(struct loopback *b) {
    pthread_cond_broadcast(&b->changed);
}

/* Waits for a change or a slice; false once `deadline` has passed. [lock] */
static bool wait_change(struct loopback *b, uint64_t deadline) {
    uint64_t now = clock_ns();
    if (now >= deadline) {
        return false;
    }
    uint64_t slice = deadline - now < SLICE_NS ? deadline - now : SLICE_NS;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + slice;
    until.tv_sec += (time_t)(ns / SECOND_NS);
    until.tv_nsec = (long)(ns % SECOND_NS);
    pthread_cond_timedwait(&b->changed, &b->lock, &until);
    return true;
}

static uint64_t deadline_after(uint64_t wait_ns) {
    uint64_t now = clock_ns();
    return wait_ns > UINT64_MAX - now ? UINT64_MAX : now + wait_ns;
}

/* Locks and checks that t is not cut off; on an error it is unlocked again. */
static FALLIBLE enter_connected(struct loop_transport *t, const char *doing) {
    enter(t->b);
    if (t->cut) {
        leave(t->b);
        FAIL(E_NET, "%s: not connected to the NATS server", doing);
    }
    return OK;
}

/* --- Connections --- */

FALLIBLE loopback_connect(struct transport **out, struct loopback *b,
                          const struct transport_options *options) {
    struct loop_transport *t = NULL;
    TRY(mem_new(&t, 1, sizeof *t));
    t->base.ops = &loop_ops;
    t->b = b;
    t->request_wait_ns = options && options->request_wait_ns ? options->request_wait_ns
                                                             : REQUEST_WAIT_DEFAULT_S * SECOND_NS;
    if (options) {
        t->on_event = options->on_event;
        t->event_ctx = options->event_ctx;
    }
    enter(b);
    t->next = b->transports;
    b->transports = t;
    leave(b);
    *out = &t->base;
    return OK;
}

static void loop_close(struct transport *base) {
    struct loop_transport *t = loop_of(base);
    struct loopback *b = t->b;
    enter(b);
    for (struct loop_subscription *s = b->subscriptions; s; s = s->next) {
        ASSERT(s->t != t); /* subscriptions are closed before their transport */
    }
    struct loop_transport **at = &b->transports;
    while (*at != t) {
        at = &(*at)->next;
    }
    *at = t->next;
    leave(b);
    mem_free(t);
}

static void loop_health(struct transport_health *out, struct transport *base) {
    struct loop_transport *t = loop_of(base);
    enter(t->b);
    *out = (struct transport_health){
        .connected = !t->cut,
        .disconnects_count = t->losses,
        .reconnects_count = t->reconnects,
        .slow_count = t->dropped,
        .sent_count = t->sent,
        .received_count = t->received,
        .sent_bytes = t->sent_bytes,
        .received_bytes = t->received_bytes,
        .payload_bytes_max = BROKER_PAYLOAD_BYTES_MAX,
    };
    leave(t->b);
}

static uint64_t loop_losses(struct transport *base) {
    struct loop_transport *t = loop_of(base);
    enter(t->b);
    uint64_t losses = t->losses;
    leave(t->b);
    return losses;
}

static bool loop_connected(struct transport *base) {
    struct loop_transport *t = loop_of(base);
    enter(t->b);
    bool connected = !t->cut;
    leave(t->b);
    return connected;
}

static void tell(struct loop_transport *t, enum transport_event event, const char *detail) {
    if (t->on_event) {
        t->on_event(t->event_ctx, event, detail);
    }
}

void loopback_partition(struct transport *base, bool cut) {
    struct loop_transport *t = loop_of(base);
    enter(t->b);
    bool moved = t->cut != cut;
    t->cut = cut;
    t->losses += moved && cut;
    t->reconnects += moved && !cut;
    changed(t->b);
    leave(t->b);
    if (moved) {
        tell(t, cut ? TRANSPORT_DISCONNECTED : TRANSPORT_RECONNECTED,
             cut ? "connection to the NATS server lost" : "connected to the NATS server again");
    }
}

static void drop_unread(struct loop_subscription *s) {
    while (s->first) {
        struct queued *q = s->first;
        s->first = q->next;
        broker_message_unref(&q->message);
        mem_free(q);
    }
    s->last = &s->first;
    s->unread = 0;
}

void loopback_restart(struct loopback *b) {
    enter(b);
    broker_restart(b->broker);
    for (struct loop_subscription *s = b->subscriptions; s; s = s->next) {
        drop_unread(s);
    }
    for (struct loop_transport *t = b->transports; t; t = t->next) {
        t->losses += !t->cut;
        t->reconnects += !t->cut;
        tell(t, TRANSPORT_DISCONNECTED, "connection to the NATS server lost");
        tell(t, TRANSPORT_RECONNECTED, "connected to the NATS server again");
    }
    changed(b);
    leave(b);
}

void loopback_tick(struct loopback *b) {
    enter(b);
    changed(b);
    leave(b);
}

/* --- Messages --- */

struct handle {
    struct broker_message *message; /* owned */
    char ack[];                     /* reply subject of a delivery */
};

static FALLIBLE wrap(struct message *out, struct loop_transport *t, struct broker_message *m,
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

static void loop_message_done(struct message *m) {
    struct handle *h = m->handle;
    broker_message_unref(&h->message);
    mem_free(h);
}

static const char *loop_message_header(const struct message *m, const char *name) {
    const struct handle *h = m->handle;
    const char *has = h->message->header_name;
    return has && strcmp(has, name) == 0 ? h->message->header_value : NULL;
}

/* --- Core --- */

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
static unsigned spread(struct loopback *b, struct broker_message *m) {
    unsigned count = 0;
    b->turn++;
    for (struct loop_subscription *s = b->subscriptions; s; s = s->next) {
        if (subject_matches(s->filter, m->subject) && (!s->group || group_turn(b, s, m->subject))) {
            enqueue(s, m);
            count++;
        }
    }
    changed(b);
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
    changed(b);
    return true;
}

static FALLIBLE send_from(unsigned *heard, struct loop_transport *t, const char *subject,
                          const char *reply, struct bytes data) {
    static const struct publish_options none;
    struct broker_message *m = NULL;
    struct publish_ack ack;
    bool taken;
    t->sent++;
    t->sent_bytes += data.len;
    if (take_ack(t->b, subject, data)) {
        *heard = 1;
        return OK;
    }
    TRY(broker_message_new(&m, subject, reply, data, NULL, NULL));
    *heard = spread(t->b, m);
    /* A stream that is full or refuses says so to publishers that ask, and to nobody else. */
    IGNORE(broker_store(&ack, &taken, t->b->broker, m, &none, clock_ns()));
    broker_message_unref(&m);
    return OK;
}

static FALLIBLE loop_send(struct transport *base, const char *subject, struct bytes data) {
    struct loop_transport *t = loop_of(base);
    unsigned heard;
    TRY(enter_connected(t, subject));
    enum err err = send_from(&heard, t, subject, NULL, data);
    leave(t->b);
    return err;
}

static FALLIBLE loop_flush(struct transport *base, uint64_t wait_ns) {
    struct loop_transport *t = loop_of(base);
    (void)wait_ns;
    TRY(enter_connected(t, "flush"));
    leave(t->b);
    return OK;
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
    enter(b);
    while (!s->closing) {
        struct broker_message *m = dequeue(s);
        struct message message = {0};
        if (!m) {
            wait_change(b, UINT64_MAX);
        } else if (wrap(&message, s->t, m, m->reply) == OK) {
            leave(b);
            s->handler(s->handler_ctx, &message);
            message_done(&message);
            enter(b);
        } else {
            broker_message_unref(&m);
            s->t->dropped++;
        }
    }
    leave(b);
    return NULL;
}

static void free_subscription(struct loop_subscription *s) {
    drop_unread(s);
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

static FALLIBLE loop_subscribe(struct subscription **out, struct transport *base,
                               const char *subject, const struct subscribe_options *o) {
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
    enter(t->b);
    s->next = t->b->subscriptions;
    t->b->subscriptions = s;
    leave(t->b);
    if (o->handler && pthread_create(&s->thread, NULL, run_handler, s) != 0) {
        enter(t->b);
        unlink_subscription(t->b, s);
        leave(t->b);
        free_subscription(s);
        FAIL(E_LIMIT, "no thread for a subscription");
    }
    *out = &s->base;
    return OK;
}

static FALLIBLE loop_subscription_next(struct message *out, struct subscription *base,
                                       uint64_t wait_ns) {
    struct loop_subscription *s = (struct loop_subscription *)base;
    struct loopback *b = s->t->b;
    uint64_t deadline = deadline_after(wait_ns);
    struct broker_message *m;
    enter(b);
    while (!(m = dequeue(s)) && wait_change(b, deadline)) {
    }
    enum err err = m ? wrap(out, s->t, m, m->reply) : OK;
    leave(b);
    if (err != OK) {
        broker_message_unref(&m);
        return err;
    }
    REQUIRE(m, E_TIMEOUT, "no message on the subscription in time");
    return OK;
}

static void loop_subscription_close(struct subscription *base) {
    struct loop_subscription *s = (struct loop_subscription *)base;
    struct loopback *b = s->t->b;
    enter(b);
    s->closing = true;
    unlink_subscription(b, s);
    changed(b);
    leave(b);
    if (s->handler) {
        pthread_join(s->thread, NULL);
    }
    free_subscription(s);
}

static FALLIBLE loop_request(struct message *out, struct transport *base, const char *subject,
                             struct bytes data, uint64_t wait_ns) {
    struct loop_transport *t = loop_of(base);
    struct subscription *inbox = NULL;
    char nuid[NUID_BYTES], reply[64];
    unsigned heard = 0;
    transport_nuid(nuid);
    snprintf(reply, sizeof reply, "_INBOX.%s", nuid);
    TRY(loop_subscribe(&inbox, base, reply, &(struct subscribe_options){0}));
    enum err err = enter_connected(t, subject);
    if (err == OK) {
        err = send_from(&heard, t, subject, reply, data);
        leave(t->b);
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

/* --- Streams and consumers: the lock around broker.c --- */

#define UNDER_LOCK(base, doing, call)                                                              \
    do {                                                                                           \
        struct loop_transport *t_ = loop_of(base);                                                 \
        TRY(enter_connected(t_, doing));                                                           \
        enum err under_lock_err_ = (call);                                                         \
        changed(t_->b);                                                                            \
        leave(t_->b);                                                                              \
        return under_lock_err_;                                                                    \
    } while (0)

static struct broker *broker_of(struct transport *t) {
    return loop_of(t)->b->broker;
}

static FALLIBLE delete_stream(struct broker *b, const char *name) {
    broker_stream_delete(b, name);
    return OK;
}

static FALLIBLE delete_consumer(struct broker *b, const char *stream, const char *name) {
    broker_consumer_delete(b, stream, name);
    return OK;
}

static FALLIBLE loop_stream_ensure(struct transport *t, const struct stream_config *config) {
    UNDER_LOCK(t, config->name, broker_stream_ensure(broker_of(t), config));
}

static FALLIBLE loop_stream_delete(struct transport *t, const char *name) {
    UNDER_LOCK(t, name, delete_stream(broker_of(t), name));
}

static FALLIBLE loop_stream_info(struct stream_info *out, struct transport *t, const char *name) {
    UNDER_LOCK(t, name, broker_stream_info(out, broker_of(t), name, clock_ns()));
}

static FALLIBLE loop_stream_purge(uint64_t *purged_count, struct transport *t, const char *name,
                                  const char *filter) {
    UNDER_LOCK(t, name, broker_stream_purge(purged_count, broker_of(t), name, filter));
}

static FALLIBLE loop_stream_delete_message(bool *found, struct transport *t, const char *name,
                                           uint64_t sequence) {
    UNDER_LOCK(t, name, broker_stream_delete_message(found, broker_of(t), name, sequence));
}

static FALLIBLE loop_consumer_ensure(struct transport *t, const struct consumer_config *config) {
    UNDER_LOCK(t, config->stream, broker_consumer_ensure(broker_of(t), config));
}

static FALLIBLE loop_consumer_delete(struct transport *t, const char *stream, const char *name) {
    UNDER_LOCK(t, stream, delete_consumer(broker_of(t), stream, name));
}

static FALLIBLE loop_consumer_info(struct consumer_info *out, bool *found, struct transport *t,
                                   const char *stream, const char *name) {
    UNDER_LOCK(t, stream, broker_consumer_info(out, found, broker_of(t), stream, name, clock_ns()));
}

static FALLIBLE get_under_lock(struct message *out, bool *found, struct loop_transport *t,
                               const char *name, uint64_t sequence, const char *filter) {
    struct broker_message *m = NULL;
    TRY(broker_stream_get(&m, t->b->broker, name, sequence, filter, clock_ns()));
    *found = m != NULL;
    if (m) {
        enum err err = wrap(out, t, m, NULL);
        if (err != OK) {
            broker_message_unref(&m);
            return err;
        }
    }
    return OK;
}

static FALLIBLE loop_stream_get(struct message *out, bool *found, struct transport *t,
                                const char *name, uint64_t sequence, const char *filter) {
    UNDER_LOCK(t, name, get_under_lock(out, found, loop_of(t), name, sequence, filter));
}

static FALLIBLE publish_under_lock(struct publish_ack *out, struct loop_transport *t,
                                   struct broker_message *m, const struct publish_options *o) {
    bool taken;
    t->sent++;
    t->sent_bytes += m->data.len;
    spread(t->b, m); /* core subscribers hear it even if the stream refuses */
    TRY(broker_store(out, &taken, t->b->broker, m, o, clock_ns()));
    REQUIRE(taken, E_NET, "publish to %s: no stream takes this subject", m->subject);
    return OK;
}

static FALLIBLE publish_locking(struct publish_ack *out, struct transport *t,
                                struct broker_message *m, const struct publish_options *o) {
    UNDER_LOCK(t, m->subject, publish_under_lock(out, loop_of(t), m, o));
}

static FALLIBLE loop_publish(struct publish_ack *out, struct transport *t, const char *subject,
                             struct bytes data, const struct publish_options *o,
                             const char *header_name, const char *header_value) {
    struct broker_message *m = NULL;
    TRY(broker_message_new(&m, subject, NULL, data, header_name,
                           header_name ? header_value : NULL));
    enum err err = publish_locking(out, t, m, o);
    broker_message_unref(&m);
    return err;
}

/* --- Pulling and acknowledging --- */

static void free_puller(struct loop_puller *p) {
    mem_free(p->stream);
    mem_free(p->consumer);
    mem_free(p);
}

static FALLIBLE loop_puller_open(struct puller **out, struct transport *base, const char *stream,
                                 const char *consumer) {
    struct loop_puller *p = NULL;
    TRY(mem_new(&p, 1, sizeof *p));
    p->base.ops = &loop_ops;
    p->t = loop_of(base);
    p->stream = mem_strdup(stream);
    p->consumer = mem_strdup(consumer);
    if (!p->stream || !p->consumer) {
        free_puller(p);
        FAIL(E_LIMIT, "no memory for a puller");
    }
    *out = &p->base;
    return OK;
}

/* One look: OK with a message, E_TIMEOUT with nothing due, or why not. [lock] */
static FALLIBLE pull_once(struct message *out, struct loop_puller *p) {
    struct broker_delivery d = {0};
    if (p->woken) {
        p->woken = false;
        FAIL(E_CANCELLED, "pull from %s: woken", p->stream);
    }
    REQUIRE(!p->t->cut, E_NET, "pull from %s: not connected to the NATS server", p->stream);
    TRY(broker_pull(&d, p->t->b->broker, p->stream, p->consumer, clock_ns()));
    REQUIRE(d.message, E_TIMEOUT, "pull from %s: no message in time", p->stream);
    enum err err = wrap(out, p->t, d.message, d.ack);
    if (err != OK) {
        broker_message_unref(&d.message);
        return err;
    }
    out->deliveries = d.deliveries;
    out->pending = d.pending;
    return OK;
}

static FALLIBLE loop_puller_next(struct message *out, struct puller *base, uint64_t wait_ns) {
    struct loop_puller *p = (struct loop_puller *)base;
    uint64_t deadline = deadline_after(wait_ns);
    enum err err;
    enter(p->t->b);
    do {
        err = pull_once(out, p);
    } while ((err == E_TIMEOUT || (err == E_NET && p->t->cut)) && wait_change(p->t->b, deadline));
    leave(p->t->b);
    return err;
}

static void loop_puller_wake(struct puller *base) {
    struct loop_puller *p = (struct loop_puller *)base;
    enter(p->t->b);
    p->woken = true;
    changed(p->t->b);
    leave(p->t->b);
}

static void loop_puller_close(struct puller *base) {
    free_puller((struct loop_puller *)base);
}

static FALLIBLE loop_ack(struct transport *t, const char *ack_subject, enum ack_kind kind,
                         uint64_t delay_ns) {
    bool known;
    UNDER_LOCK(t, ack_subject,
               broker_ack(&known, broker_of(t), ack_subject, kind, delay_ns, clock_ns()));
}

static FALLIBLE ack_known(struct broker *b, const char *ack_subject) {
    bool known;
    TRY(broker_ack(&known, b, ack_subject, ACK_DONE, 0, clock_ns()));
    REQUIRE(known, E_NET, "request to %s: nobody answers there", ack_subject);
    return OK;
}

static FALLIBLE loop_ack_sync(struct transport *t, const char *ack_subject, uint64_t wait_ns) {
    (void)wait_ns;
    UNDER_LOCK(t, ack_subject, ack_known(broker_of(t), ack_subject));
}

/* --- Pipes: done at once, answered in order --- */

static FALLIBLE loop_pipe_open(struct pipe **out, struct transport *base) {
    struct loop_pipe *p = NULL;
    TRY(mem_new(&p, 1, sizeof *p));
    p->base.ops = &loop_ops;
    p->t = loop_of(base);
    p->last = &p->first;
    *out = &p->base;
    return OK;
}

static void put_answer(struct loop_pipe *p, struct answer *a) {
    enter(p->t->b);
    *p->last = a;
    p->last = &a->next;
    leave(p->t->b);
}

static FALLIBLE loop_pipe_publish(struct pipe *base, uint64_t token, const char *subject,
                                  struct bytes data) {
    static const struct publish_options none;
    struct loop_pipe *p = (struct loop_pipe *)base;
    struct answer *a = NULL;
    REQUIRE(loop_connected(&p->t->base), E_NET, "publish to %s: not connected to the NATS server",
            subject);
    TRY(mem_new(&a, 1, sizeof *a));
    a->answer.token = token;
    enum err err = loop_publish(&a->answer.ack, &p->t->base, subject, data, &none, NULL, NULL);
    if (err != OK) {
        a->answer.fault = fault_of(err);
    }
    put_answer(p, a);
    return OK;
}

static FALLIBLE loop_pipe_get(struct pipe *base, uint64_t token, const char *stream,
                              uint64_t sequence, const char *filter) {
    struct loop_pipe *p = (struct loop_pipe *)base;
    struct answer *a = NULL;
    REQUIRE(loop_connected(&p->t->base), E_NET, "read from %s: not connected to the NATS server",
            stream);
    TRY(mem_new(&a, 1, sizeof *a));
    a->answer.token = token;
    enum err err = loop_stream_get(&a->answer.message, &a->answer.found, &p->t->base, stream,
                                   sequence, filter);
    if (err != OK) {
        a->answer.fault = fault_of(err);
    }
    put_answer(p, a);
    return OK;
}

static FALLIBLE loop_pipe_next(struct pipe_answer *out, struct pipe *base, uint64_t wait_ns) {
    struct loop_pipe *p = (struct loop_pipe *)base;
    uint64_t deadline = deadline_after(wait_ns);
    enter(p->t->b);
    while ((!p->first || p->t->cut) && wait_change(p->t->b, deadline)) {
    }
    struct answer *a = p->t->cut ? NULL : p->first;
    if (a) {
        p->first = a->next;
        p->last = p->first ? p->last : &p->first;
    }
    leave(p->t->b);
    REQUIRE(a, E_TIMEOUT, "no answer in time");
    *out = a->answer;
    mem_free(a);
    return OK;
}

static void loop_pipe_close(struct pipe *base) {
    struct loop_pipe *p = (struct loop_pipe *)base;
    while (p->first) {
        struct answer *a = p->first;
        p->first = a->next;
        message_done(&a->answer.message);
        mem_free(a);
    }
    mem_free(p);
}

static const struct transport_ops loop_ops = {
    .close = loop_close,
    .health = loop_health,
    .losses = loop_losses,
    .connected = loop_connected,
    .message_done = loop_message_done,
    .message_header = loop_message_header,
    .send = loop_send,
    .flush = loop_flush,
    .subscribe = loop_subscribe,
    .subscription_next = loop_subscription_next,
    .subscription_close = loop_subscription_close,
    .request = loop_request,
    .stream_ensure = loop_stream_ensure,
    .stream_delete = loop_stream_delete,
    .stream_info = loop_stream_info,
    .stream_purge = loop_stream_purge,
    .stream_delete_message = loop_stream_delete_message,
    .stream_get = loop_stream_get,
    .publish = loop_publish,
    .consumer_ensure = loop_consumer_ensure,
    .consumer_delete = loop_consumer_delete,
    .consumer_info = loop_consumer_info,
    .puller_open = loop_puller_open,
    .puller_next = loop_puller_next,
    .puller_wake = loop_puller_wake,
    .puller_close = loop_puller_close,
    .ack = loop_ack,
    .ack_sync = loop_ack_sync,
    .pipe_open = loop_pipe_open,
    .pipe_publish = loop_pipe_publish,
    .pipe_get = loop_pipe_get,
    .pipe_next = loop_pipe_next,
    .pipe_close = loop_pipe_close,
};
