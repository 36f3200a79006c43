/* Following a stream through a consumer that forgets itself: ephemeral, without acknowledgements, pulled in batches.
 *
 *   CONSUMER.CREATE from sequence n ─▶ MSG.NEXT (batch) ─▶ messages, heartbeats ─▶ MSG.NEXT before the batch is used up ─▶ …
 *
 * One request for hundreds of messages, where reading by sequence takes one for each. Nothing is trusted to arrive: the consumer numbers
 * what it delivers, and a gap, a silence, an error or a lost connection ends this consumer and makes another one behind the last
 * message that was handed out. So the server may forget it at any time.
 *
 * Nor is its count of what is left: servers of the 2.9 series were seen to stay at 1 with nothing more to deliver, where subjects were
 * written anew meanwhile, and a leader waited for that one for ever. Messages come in order, so all that existed has come when as many
 * have as there were, and when the server has time for a heartbeat.
 */
#include "node/transport/nats.h"

#include "node/base/clock.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "node/base/text.h"
#include "proto/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOLLOW_BATCH = 512, FOLLOW_LOW = 128 /* asks for more when so few are due */ };
#define FOLLOW_EXPIRES_NS   (30 * SECOND_NS)
#define FOLLOW_HEARTBEAT_NS (1 * SECOND_NS)
#define FOLLOW_SILENCE_NS   (7 * SECOND_NS / 2) /* three heartbeats missed */
#define FOLLOW_FORGET_NS    (60 * SECOND_NS)    /* unused for so long, the server removes it */
#define FOLLOW_RETRY_NS     (SECOND_NS / 5)
#define FOLLOW_SLICE_NS     (SECOND_NS / 4)

struct nats_follower {
    struct follower base;
    struct nats_transport *t; /* lent */
    char stream[256], filter[SUBJECT_BYTES_MAX];
    uint64_t next; /* sequence from which on nothing has been handed out */
    /* the consumer; consumer[0] 0: there is none */
    char consumer[64], inbox[TRANSPORT_INBOX_BYTES];
    natsSubscription *sub;      /* owned */
    uint64_t consumer_sequence; /* of the last delivery */
    uint64_t existed;           /* for the consumer when it was made */
    uint64_t left;              /* after the last delivery, as the server counts */
    int64_t due;                /* messages asked for and not delivered */
    uint64_t asked_ns, heard_ns, losses;
};

FALLIBLE js_follower_open(struct follower **out, struct transport *base, const char *stream,
                          const char *filter, uint64_t from_sequence) {
    struct nats_follower *f = NULL;
    TRY(mem_new(&f, 1, sizeof *f));
    f->base.ops = &nats_ops;
    f->t = nats_of(base);
    f->next = from_sequence ? from_sequence : 1;
    snprintf(f->stream, sizeof f->stream, "%s", stream);
    snprintf(f->filter, sizeof f->filter, "%s", filter ? filter : "");
    *out = &f->base;
    return OK;
}

static void drop_consumer(struct nats_follower *f) {
    if (f->sub) {
        nats_inbox_close(f->t, f->sub);
        f->sub = NULL;
    }
    if (f->consumer[0]) {
        IGNORE(js_consumer_delete(&f->t->base, f->stream, f->consumer));
    }
    f->consumer[0] = 0;
}

void js_follower_close(struct follower *base) {
    struct nats_follower *f = (struct nats_follower *)base;
    drop_consumer(f);
    mem_free(f);
}

static FALLIBLE make_consumer(struct nats_follower *f) {
    char subject[API_SUBJECT_BYTES];
    AUTO(text_free) struct text json = {0};
    AUTO(json_free) cJSON *answer = NULL;
    f->losses = atomic_load(&f->t->losses);
    text_add(&json, "{\"stream_name\":");
    text_add_json_string(&json, f->stream);
    text_addf(&json,
              ",\"config\":{\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":%" PRIu64
              ",\"ack_policy\":\"none\",\"replay_policy\":\"instant\",\"max_deliver\":-1,"
              "\"inactive_threshold\":%" PRIu64 ",\"num_replicas\":1,\"mem_storage\":true",
              f->next, FOLLOW_FORGET_NS);
    if (f->filter[0]) {
        text_add(&json, ",\"filter_subject\":");
        text_add_json_string(&json, f->filter);
    }
    text_add(&json, "}}");
    TRY(text_done(&json));
    js_subject(subject, "CONSUMER.CREATE", f->stream, NULL);
    TRY(js_api(&answer, f->t, subject, text_bytes(&json)));
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(answer, "name");
    const cJSON *pending = cJSON_GetObjectItemCaseSensitive(answer, "num_pending");
    REQUIRE(cJSON_IsString(name) && strlen(name->valuestring) < sizeof f->consumer, E_FORMAT,
            "stream %s: the server made a consumer without a name", f->stream);
    snprintf(f->consumer, sizeof f->consumer, "%s", name->valuestring);
    f->existed = f->left =
        cJSON_IsNumber(pending) && pending->valuedouble > 0 ? (uint64_t)pending->valuedouble : 0;
    f->consumer_sequence = 0;
    f->due = 0;
    nats_inbox(f->inbox, &f->t->base);
    TRY(nats_subscribe_inbox(&f->sub, f->t, f->inbox));
    f->heard_ns = clock_ns();
    return OK;
}

static FALLIBLE ask(struct nats_follower *f, uint64_t now_ns) {
    char subject[API_SUBJECT_BYTES], reply[REPLY_BYTES], body[128];
    if (f->due > FOLLOW_LOW && now_ns - f->asked_ns < FOLLOW_EXPIRES_NS) {
        return OK;
    }
    js_subject(subject, "CONSUMER.MSG.NEXT", f->stream, f->consumer);
    snprintf(reply, sizeof reply, "%s.n", f->inbox);
    snprintf(body, sizeof body,
             "{\"batch\":%d,\"expires\":%" PRIu64 ",\"idle_heartbeat\":%" PRIu64 "}", FOLLOW_BATCH,
             FOLLOW_EXPIRES_NS, FOLLOW_HEARTBEAT_NS);
    natsStatus s = natsConnection_PublishRequest(f->t->nc, subject, reply, body, (int)strlen(body));
    if (s != NATS_OK) {
        return nats_error(s, "pull from", subject);
    }
    f->due = FOLLOW_BATCH + (f->due > 0 ? f->due : 0);
    f->asked_ns = now_ns;
    return OK;
}

enum heard { HEARD_MESSAGE, HEARD_NOTHING, HEARD_OVER /* this consumer is of no use any more */ };

static enum heard take_message(struct message *out, struct nats_follower *f, natsMsg *msg) {
    struct ack_parts parts;
    if (ack_subject_parse(&parts, natsMsg_GetReply(msg)) != OK ||
        parts.consumer_sequence != f->consumer_sequence + 1 || parts.stream_sequence < f->next) {
        natsMsg_Destroy(msg);
        return HEARD_OVER;
    }
    nats_message(out, msg);
    out->reply = "";
    out->sequence = parts.stream_sequence;
    out->deliveries = parts.deliveries;
    out->pending = f->left = parts.pending;
    out->time_unix_ns = parts.time_unix_ns;
    f->consumer_sequence++;
    f->next = parts.stream_sequence + 1;
    f->due--;
    return HEARD_MESSAGE;
}

/* 100: alive. 408: the pull has run out. Anything else: begin anew. */
static enum heard take_status(struct nats_follower *f, natsMsg *msg) {
    int code = js_status(msg);
    const char *unused = nats_header(msg, "Nats-Pending-Messages");
    if (code == 408) {
        f->due -= unused ? strtol(unused, NULL, 10) : f->due;
    } else if (code == 100) {
        f->left = 0;
    }
    natsMsg_Destroy(msg);
    return code == 100 || code == 408 ? HEARD_NOTHING : HEARD_OVER;
}

static enum heard hear(struct message *out, struct nats_follower *f, uint64_t wait_ns) {
    natsMsg *msg = NULL;
    natsStatus s = natsSubscription_NextMsg(&msg, f->sub, wait_ns ? wait_ms(wait_ns) : 0);
    uint64_t now_ns = clock_ns();
    if (s == NATS_OK) {
        const char *reply = natsMsg_GetReply(msg);
        f->heard_ns = now_ns;
        return reply && !strncmp(reply, "$JS.ACK.", 8) ? take_message(out, f, msg)
                                                       : take_status(f, msg);
    }
    bool silent = now_ns - f->heard_ns > FOLLOW_SILENCE_NS;
    bool lost = atomic_load(&f->t->losses) != f->losses;
    return s == NATS_TIMEOUT && !silent && !lost ? HEARD_NOTHING : HEARD_OVER;
}

FALLIBLE js_follower_next(struct message *out, bool *caught_up, struct follower *base,
                          uint64_t wait_ns) {
    struct nats_follower *f = (struct nats_follower *)base;
    uint64_t until_ns = clock_ns() + wait_ns;
    enum err code = OK;
    for (;;) {
        uint64_t now_ns = clock_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        code = f->consumer[0] ? OK : make_consumer(f);
        code = code == OK ? ask(f, now_ns) : code;
        enum heard heard = HEARD_OVER;
        if (code == OK) {
            heard = hear(out, f, left_ns < FOLLOW_SLICE_NS ? left_ns : FOLLOW_SLICE_NS);
            *caught_up =
                heard != HEARD_OVER && (f->left == 0 || f->consumer_sequence >= f->existed);
        }
        if (heard == HEARD_MESSAGE) {
            return OK;
        }
        if (heard == HEARD_OVER) {
            drop_consumer(f);
        }
        if (clock_ns() >= until_ns) {
            TRY(code);
            FAIL(E_TIMEOUT, "stream %s: nothing new in time", f->stream);
        }
        if (code != OK) {
            clock_sleep_ns(left_ns < FOLLOW_RETRY_NS ? left_ns : FOLLOW_RETRY_NS);
        }
    }
}
