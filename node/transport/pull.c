/* Pulling from a consumer, by hand, and acknowledging.
 *
 * A pull is a request to …CONSUMER.MSG.NEXT… that names an inbox and an expiry. What comes to the inbox is the message (reply
 * subject $JS.ACK.…), or a status:
 *
 *   100 heartbeat each second     404 nothing there (no wait)    408 expired     409 consumer deleted, server leaving
 *   503 nobody answers
 *
 * Two missed heartbeats mean that the server has lost the request (it was killed), or that the consumer does not exist, which
 * the server answers with silence: then it is asked for, and the pull sent again. A message for an older request of ours is
 * taken like any other, so nothing delivered is ever dropped.
 *
 * A puller that asks ahead has one request for many standing, over as many calls as it lasts; it is renewed when all of it has come, when
 * it has expired, and when the connection was lost.
 */
#include "node/transport/nats.h"

#include "node/base/clock.h"
#include "node/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PULL_EXPIRES_NS   (5 * SECOND_NS)
#define PULL_HEARTBEAT_NS (1 * SECOND_NS)
#define PULL_SILENCE_NS   (5 * SECOND_NS / 2) /* two heartbeats missed */
#define PULL_GRACE_NS     (SECOND_NS / 2)     /* for the answer that nothing came */
#define PULL_RETRY_NS     (SECOND_NS / 50)    /* after a connection was lost */
#define PULL_SLICE_NS     (SECOND_NS / 4)     /* how often a loss and a refusal are looked for */

struct nats_puller {
    struct puller base;
    struct nats_transport *t; /* lent */
    natsSubscription *sub;    /* owned */
    char stream[256], consumer[256], inbox[TRANSPORT_INBOX_BYTES];
    uint64_t request;  /* number of the latest request: last token of its inbox */
    uint32_t ahead;    /* messages asked for at once; 0: one, for this call alone */
    uint32_t due;      /* of the request that stands */
    uint64_t lasts_ns; /* how long a request for many does */
    uint64_t asked_ns, heard_ns, losses, refused; /* of the latest request */
};

FALLIBLE js_puller_open(struct puller **out, struct transport *base, const char *stream,
                        const char *consumer) {
    struct nats_puller *p = NULL;
    TRY(mem_new(&p, 1, sizeof *p));
    p->base.ops = &nats_ops;
    p->t = nats_of(base);
    snprintf(p->stream, sizeof p->stream, "%s", stream);
    snprintf(p->consumer, sizeof p->consumer, "%s", consumer);
    nats_inbox(p->inbox, base);
    enum err err = nats_subscribe_inbox(&p->sub, p->t, p->inbox);
    if (err != OK) {
        mem_free(p);
        return err;
    }
    *out = &p->base;
    return OK;
}

static bool is_delivery(natsMsg *msg) {
    const char *reply = natsMsg_GetReply(msg);
    return reply && strncmp(reply, "$JS.ACK.", 8) == 0;
}

static FALLIBLE deliver(struct message *out, natsMsg *msg) {
    struct ack_parts parts;
    enum err err = ack_subject_parse(&parts, natsMsg_GetReply(msg));
    if (err != OK) {
        natsMsg_Destroy(msg);
        return err;
    }
    nats_message(out, msg);
    out->sequence = parts.stream_sequence;
    out->deliveries = parts.deliveries;
    out->pending = parts.pending;
    out->time_unix_ns = parts.time_unix_ns;
    return OK;
}

/* Asks for one message or as many as are asked for ahead, at most until expires_ns from now; 0: only if one is there. */
static FALLIBLE ask(struct nats_puller *p, uint64_t expires_ns) {
    char subject[API_SUBJECT_BYTES], reply[REPLY_BYTES], body[128];
    uint32_t batch = expires_ns && p->ahead ? p->ahead : 1;
    js_subject(subject, "CONSUMER.MSG.NEXT", p->stream, p->consumer);
    snprintf(reply, sizeof reply, "%s.%" PRIu64, p->inbox, ++p->request);
    if (expires_ns == 0) {
        snprintf(body, sizeof body, "{\"batch\":1,\"no_wait\":true}");
    } else if (expires_ns >= 2 * PULL_HEARTBEAT_NS) {
        snprintf(body, sizeof body,
                 "{\"batch\":%" PRIu32 ",\"expires\":%" PRIu64 ",\"idle_heartbeat\":%" PRIu64 "}",
                 batch, expires_ns, PULL_HEARTBEAT_NS);
    } else {
        snprintf(body, sizeof body, "{\"batch\":%" PRIu32 ",\"expires\":%" PRIu64 "}", batch,
                 expires_ns);
    }
    p->losses = atomic_load(&p->t->losses);
    p->refused = atomic_load(&p->t->refused);
    p->asked_ns = p->heard_ns = clock_ns();
    natsStatus s = natsConnection_PublishRequest(p->t->nc, subject, reply, body, (int)strlen(body));
    p->due = s == NATS_OK ? batch : 0;
    return s == NATS_OK ? OK : nats_error(s, "pull from", subject);
}

static bool stands(const struct nats_puller *p) {
    return p->ahead && p->due > 0 && clock_ns() - p->asked_ns < p->lasts_ns &&
           atomic_load(&p->t->losses) == p->losses;
}

enum pull_state {
    PULL_GOT,    /* a message */
    PULL_WAIT,   /* heartbeat, or an answer to an older request */
    PULL_EMPTY,  /* this request is over, without a message */
    PULL_SILENT, /* nothing at all was answered */
    PULL_FAILED, /* no use to ask again at once */
    PULL_WOKEN
};

/* What one thing that came to the inbox means. Takes msg over. */
static enum pull_state judge(struct message *out, enum err *err, struct nats_puller *p,
                             natsMsg *msg) {
    if (is_delivery(msg)) {
        p->due -= p->due > 0;
        *err = deliver(out, msg);
        return *err == OK ? PULL_GOT : PULL_FAILED;
    }
    const char *token = strrchr(natsMsg_GetSubject(msg), '.') + 1;
    bool woken = strcmp(token, "wake") == 0;
    bool current = strtoull(token, NULL, 10) == p->request;
    const char *text = nats_header(msg, "Description");
    int code = js_status(msg);
    enum pull_state state = PULL_EMPTY;
    if (woken) {
        state = PULL_WOKEN;
    } else if (!current || code == 100) {
        state = PULL_WAIT;
    } else if (code == 503) {
        *err = err_set(E_NET, "pull from %s: consumer %s is not there", p->stream, p->consumer);
        state = PULL_FAILED;
    } else if (code == 409 && text && strstr(text, "eleted")) {
        *err = err_set(E_NET, "pull from %s, consumer %s: %s", p->stream, p->consumer, text);
        state = PULL_FAILED;
    } else if (code != 404 && code != 408 && code != 409) {
        *err = err_set(E_NET, "pull from %s, consumer %s: status %d: %s", p->stream, p->consumer,
                       code, text ? text : "");
        state = PULL_FAILED;
    }
    p->due = state == PULL_EMPTY || state == PULL_FAILED ? 0 : p->due;
    natsMsg_Destroy(msg);
    return state;
}

/* The server does not answer what it does not permit. */
static bool refused(enum err *err, struct nats_puller *p) {
    char subject[API_SUBJECT_BYTES];
    js_subject(subject, "CONSUMER.MSG.NEXT", p->stream, p->consumer);
    *err = nats_check_refused(p->t, p->refused, subject);
    p->due = *err == OK ? p->due : 0;
    return *err != OK;
}

/* Waits for the latest request to be answered: until it is over, its expiry plus grace, or the server's silence; a standing one not
 * beyond `deadline`. */
static enum pull_state await(struct message *out, enum err *err, struct nats_puller *p,
                             uint64_t expires_ns, uint64_t deadline) {
    uint64_t now = clock_ns(), until = p->asked_ns + expires_ns + PULL_GRACE_NS;
    bool beats = expires_ns >= 2 * PULL_HEARTBEAT_NS;
    for (;;) {
        natsMsg *msg = NULL;
        uint64_t left = p->ahead ? (deadline > now ? deadline - now : 0) : PULL_SLICE_NS;
        natsStatus s = natsSubscription_NextMsg(
            &msg, p->sub, wait_ms(left < PULL_SLICE_NS ? left : PULL_SLICE_NS));
        now = clock_ns();
        if (s == NATS_OK) {
            p->heard_ns = now;
            enum pull_state state = judge(out, err, p, msg);
            if (state != PULL_WAIT) {
                return state;
            }
        } else if (s != NATS_TIMEOUT) {
            *err = nats_error(s, "pull from", p->stream);
            return PULL_FAILED;
        } else if (refused(err, p)) {
            return PULL_FAILED;
        }
        if (atomic_load(&p->t->losses) != p->losses) {
            return PULL_EMPTY; /* the server has forgotten the request: ask again */
        }
        if (now >= until || (beats && now - p->heard_ns > PULL_SILENCE_NS)) {
            p->due = 0;
            return PULL_SILENT;
        }
        if (p->ahead && now >= deadline) {
            return PULL_EMPTY;
        }
    }
}

/* A request for a consumer that does not exist is answered by nobody at all. */
static enum pull_state explain_silence(enum err *err, struct nats_puller *p) {
    struct consumer_info info;
    bool found = true;
    if (!nats_ops.connected(&p->t->base)) {
        return PULL_EMPTY;
    }
    *err = js_consumer_info(&info, &found, &p->t->base, p->stream, p->consumer);
    if (*err == OK && !found) {
        *err = err_set(E_NET, "pull from %s: consumer %s is not there", p->stream, p->consumer);
    }
    if (*err == E_TIMEOUT || !nats_ops.connected(&p->t->base)) {
        *err = OK; /* the server went away in the middle: not the consumer's fault */
    }
    return *err == OK ? PULL_EMPTY : PULL_FAILED;
}

static bool wait_connected(struct nats_puller *p, uint64_t deadline) {
    while (!nats_ops.connected(&p->t->base)) {
        uint64_t now = clock_ns();
        if (now >= deadline) {
            return false;
        }
        clock_sleep_ns(deadline - now < PULL_RETRY_NS ? deadline - now : PULL_RETRY_NS);
    }
    return true;
}

/* What was delivered after the last call gave up, or 0 messages. */
static enum pull_state take_late(struct message *out, enum err *err, struct nats_puller *p) {
    natsMsg *msg = NULL;
    while (natsSubscription_NextMsg(&msg, p->sub, 0) == NATS_OK) {
        p->heard_ns = clock_ns();
        enum pull_state state = judge(out, err, p, msg);
        if (state == PULL_GOT || state == PULL_WOKEN) {
            return state;
        }
        msg = NULL;
    }
    return PULL_EMPTY;
}

FALLIBLE js_puller_next(struct message *out, struct puller *base, uint64_t wait_ns) {
    struct nats_puller *p = (struct nats_puller *)base;
    uint64_t deadline = clock_ns() + wait_ns;
    enum err err = OK;
    enum pull_state state = take_late(out, &err, p);
    while (state == PULL_EMPTY) {
        if (!wait_connected(p, deadline)) {
            FAIL(E_NET, "pull from %s: not connected to the NATS server", p->stream);
        }
        uint64_t now = clock_ns(), left = deadline > now ? deadline - now : 0;
        if (wait_ns > 0 && left == 0) {
            FAIL(E_TIMEOUT, "pull from %s: no message in time", p->stream);
        }
        uint64_t expires = p->ahead && wait_ns      ? p->lasts_ns
                           : left < PULL_EXPIRES_NS ? left
                                                    : PULL_EXPIRES_NS;
        err = stands(p) ? OK : ask(p, expires);
        if (err == E_NET && left > 0) { /* lost just now */
            clock_sleep_ns(PULL_RETRY_NS);
            continue;
        }
        TRY(err);
        state = await(out, &err, p, wait_ns ? expires : p->t->request_wait_ns, deadline);
        if (state == PULL_SILENT) {
            state = explain_silence(&err, p);
        }
        if (state == PULL_EMPTY && wait_ns == 0) {
            FAIL(E_TIMEOUT, "pull from %s: no message there", p->stream);
        }
    }
    if (state == PULL_WOKEN) {
        FAIL(E_CANCELLED, "pull from %s: woken", p->stream);
    }
    return state == PULL_GOT ? OK : err;
}

void js_puller_ahead(struct puller *base, uint32_t count, uint64_t lasts_ns) {
    struct nats_puller *p = (struct nats_puller *)base;
    p->ahead = count;
    p->lasts_ns = lasts_ns;
}

void js_puller_wake(struct puller *base) {
    struct nats_puller *p = (struct nats_puller *)base;
    char subject[REPLY_BYTES];
    snprintf(subject, sizeof subject, "%s.wake", p->inbox);
    natsConnection_Publish(p->t->nc, subject, NULL, 0);
}

/* Messages that came too late are given back at once. */
void js_puller_close(struct puller *base) {
    struct nats_puller *p = (struct nats_puller *)base;
    natsMsg *msg = NULL;
    while (natsSubscription_NextMsg(&msg, p->sub, 0) == NATS_OK) {
        if (is_delivery(msg)) {
            natsConnection_Publish(p->t->nc, natsMsg_GetReply(msg), "-NAK", 4);
        }
        natsMsg_Destroy(msg);
        msg = NULL;
    }
    nats_inbox_close(p->t, p->sub);
    mem_free(p);
}

/* --- Acknowledgements --- */

FALLIBLE js_ack(struct transport *base, const char *ack_subject, enum ack_kind kind,
                uint64_t delay_ns) {
    char body[64];
    switch (kind) {
    case ACK_DONE:
        snprintf(body, sizeof body, "+ACK");
        break;
    case ACK_TERM:
        snprintf(body, sizeof body, "+TERM");
        break;
    case ACK_PROGRESS:
        snprintf(body, sizeof body, "+WPI");
        break;
    case ACK_NAK:
        snprintf(body, sizeof body, delay_ns ? "-NAK {\"delay\": %" PRIu64 "}" : "-NAK", delay_ns);
        break;
    default:
        FAIL(E_INTERNAL, "unknown kind of acknowledgement %d", (int)kind);
    }
    return nats_ops.send(base, ack_subject, bytes_of(body, strlen(body)));
}

FALLIBLE js_ack_sync(struct transport *base, const char *ack_subject, uint64_t wait_ns) {
    struct message reply = {0};
    TRY(nats_ops.request(&reply, base, ack_subject, bytes_of("+ACK", 4), wait_ns));
    message_done(&reply);
    return OK;
}
