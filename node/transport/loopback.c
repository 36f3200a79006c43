/* The twin's connections: who waits, who is cut off, who hears what. The streams are in broker.c, plain messages in
 * loopback_core.c.
 *
 * One lock over everything and one condition that every change broadcasts: slow for thousands of threads, obviously right
 * for a test. Waiting is by clock_ns(), looked at again every few milliseconds, so that a test which holds the clock moves
 * it with clock_hold.
 */
#include "node/transport/loop.h"

#include "node/base/clock.h"
#include "node/base/mem.h"

#include <stdio.h>
#include <string.h>

#define SLICE_NS (10 * UINT64_C(1000000)) /* a waiting call looks at the clock this often */

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

/* --- Broker --- */

FALLIBLE loopback_open(struct loopback **out) {
    struct loopback *b = NULL;
    TRY(mem_new(&b, 1, sizeof *b));
    enum err err = broker_new(&b->broker);
    if (err != OK) {
        mem_free(b);
        return err;
    }
    condition_init(&b->changed);
    lock_init(&b->lock, LOCK_TRANSPORT);
    *out = b;
    return OK;
}

void loopback_close(struct loopback **broker) {
    struct loopback *b = *broker;
    if (b) {
        ASSERT(!b->transports && !b->subscriptions);
        broker_free(&b->broker);
        condition_done(&b->changed);
        lock_done(&b->lock);
        mem_free(b);
        *broker = NULL;
    }
}

void loop_enter(struct loopback *b) {
    lock_take(&b->lock);
}

void loop_leave(struct loopback *b) {
    lock_give(&b->lock);
}

void loop_changed(struct loopback *b) {
    condition_wake_all(&b->changed);
}

/* Waits for a change or a slice; false once `deadline` has passed. [lock] */
bool loop_wait_change(struct loopback *b, uint64_t deadline) {
    uint64_t now = clock_ns();
    if (now >= deadline) {
        return false;
    }
    uint64_t slice = deadline - now < SLICE_NS ? deadline - now : SLICE_NS;
    struct timespec until = clock_wait_until(slice);
    (void)condition_wait_until(&b->changed, &b->lock, &until);
    return true;
}

uint64_t loop_deadline_after(uint64_t wait_ns) {
    uint64_t now = clock_ns();
    return wait_ns > UINT64_MAX - now ? UINT64_MAX : now + wait_ns;
}

/* Locks and checks that t is not cut off; on an error it is unlocked again. */
FALLIBLE loop_enter_connected(struct loop_transport *t, const char *doing) {
    loop_enter(t->b);
    if (t->cut) {
        loop_leave(t->b);
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
    loop_enter(b);
    t->next = b->transports;
    b->transports = t;
    loop_leave(b);
    *out = &t->base;
    return OK;
}

static void loop_close(struct transport *base) {
    struct loop_transport *t = loop_of(base);
    struct loopback *b = t->b;
    loop_enter(b);
    for (struct loop_subscription *s = b->subscriptions; s; s = s->next) {
        ASSERT(s->t != t); /* subscriptions are closed before their transport */
    }
    struct loop_transport **at = &b->transports;
    while (*at != t) {
        at = &(*at)->next;
    }
    *at = t->next;
    loop_leave(b);
    mem_free(t);
}

static void loop_health(struct transport_health *out, struct transport *base) {
    struct loop_transport *t = loop_of(base);
    loop_enter(t->b);
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
    loop_leave(t->b);
}

static uint64_t loop_losses(struct transport *base) {
    struct loop_transport *t = loop_of(base);
    loop_enter(t->b);
    uint64_t losses = t->losses;
    loop_leave(t->b);
    return losses;
}

static bool loop_connected(struct transport *base) {
    struct loop_transport *t = loop_of(base);
    loop_enter(t->b);
    bool connected = !t->cut;
    loop_leave(t->b);
    return connected;
}

static void tell(struct loop_transport *t, enum transport_event event, const char *detail) {
    if (t->on_event) {
        t->on_event(t->event_ctx, event, detail);
    }
}

void loopback_partition(struct transport *base, bool cut) {
    struct loop_transport *t = loop_of(base);
    loop_enter(t->b);
    bool moved = t->cut != cut;
    t->cut = cut;
    t->losses += moved && cut;
    t->reconnects += moved && !cut;
    loop_changed(t->b);
    loop_leave(t->b);
    if (moved) {
        tell(t, cut ? TRANSPORT_DISCONNECTED : TRANSPORT_RECONNECTED,
             cut ? "connection to the NATS server lost" : "connected to the NATS server again");
    }
}

void loopback_restart(struct loopback *b) {
    loop_enter(b);
    broker_restart(b->broker);
    for (struct loop_subscription *s = b->subscriptions; s; s = s->next) {
        loop_drop_unread(s);
    }
    for (struct loop_transport *t = b->transports; t; t = t->next) {
        t->losses += !t->cut;
        t->reconnects += !t->cut;
    }
    loop_changed(b);
    loop_leave(b);
    for (struct loop_transport *t = b->transports; t; t = t->next) {
        tell(t, TRANSPORT_DISCONNECTED, "connection to the NATS server lost");
        tell(t, TRANSPORT_RECONNECTED, "connected to the NATS server again");
    }
}

/* --- Streams and consumers: the lock around broker.c --- */

#define UNDER_LOCK(base, doing, call)                                                              \
    do {                                                                                           \
        struct loop_transport *t_ = loop_of(base);                                                 \
        TRY(loop_enter_connected(t_, doing));                                                      \
        enum err under_lock_err_ = (call);                                                         \
        loop_changed(t_->b);                                                                       \
        loop_leave(t_->b);                                                                         \
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
        enum err err = loop_wrap(out, t, m, NULL);
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
    loop_spread(t->b, m); /* core subscribers hear it even if the stream refuses */
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
    enum err err = loop_wrap(out, p->t, d.message, d.ack);
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
    uint64_t deadline = loop_deadline_after(wait_ns);
    enum err err;
    loop_enter(p->t->b);
    do {
        err = pull_once(out, p);
    } while ((err == E_TIMEOUT || (err == E_NET && p->t->cut)) &&
             loop_wait_change(p->t->b, deadline));
    loop_leave(p->t->b);
    return err;
}

static void loop_puller_wake(struct puller *base) {
    struct loop_puller *p = (struct loop_puller *)base;
    loop_enter(p->t->b);
    p->woken = true;
    loop_changed(p->t->b);
    loop_leave(p->t->b);
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
    loop_enter(p->t->b);
    *p->last = a;
    p->last = &a->next;
    loop_leave(p->t->b);
}

static FALLIBLE loop_pipe_publish(struct pipe *base, uint64_t token, const char *subject,
                                  struct bytes data, const struct publish_options *options) {
    static const struct publish_options none;
    struct loop_pipe *p = (struct loop_pipe *)base;
    struct answer *a = NULL;
    REQUIRE(loop_connected(&p->t->base), E_NET, "publish to %s: not connected to the NATS server",
            subject);
    TRY(mem_new(&a, 1, sizeof *a));
    a->answer.token = token;
    enum err err = loop_publish(&a->answer.ack, &p->t->base, subject, data,
                                options ? options : &none, NULL, NULL);
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
    uint64_t deadline = loop_deadline_after(wait_ns);
    loop_enter(p->t->b);
    while ((!p->first || p->t->cut) && loop_wait_change(p->t->b, deadline)) {
    }
    struct answer *a = p->t->cut ? NULL : p->first;
    if (a) {
        p->first = a->next;
        p->last = p->first ? p->last : &p->first;
    }
    loop_leave(p->t->b);
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

static void loop_inbox(char out[TRANSPORT_INBOX_BYTES], struct transport *t) {
    char nuid[NUID_BYTES];
    (void)t;
    transport_nuid(nuid);
    snprintf(out, TRANSPORT_INBOX_BYTES, "_INBOX.%s", nuid);
}

const struct transport_ops loop_ops = {
    .close = loop_close,
    .health = loop_health,
    .losses = loop_losses,
    .connected = loop_connected,
    .inbox = loop_inbox,
    .message_done = loop_message_done,
    .message_header = loop_message_header,
    .send = loop_send,
    .send_unkept = loop_send_unkept,
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
