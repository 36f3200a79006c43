/* JetStream by hand: its whole interface is requests with JSON bodies, so plain requests are all that is used of the client.
 *
 * Why not the client's own calls: fetching a batch can hang or overrun, a second fetch after a time-out returns at once, KV
 * hides the error codes that tell "somebody was first" from "broken", and large publishes are copied. By hand every
 * status and code is seen, and the table of codes below is the one place that turns them into ours.
 *
 * Pulling one message: a request to …CONSUMER.MSG.NEXT… names an inbox and an expiry. What comes to the inbox is the
 * message (reply subject $JS.ACK.…), or a status:
 *
 *   100 heartbeat each second     404 nothing there (no wait)    408 expired     409 consumer deleted, server leaving
 *   503 nobody answers (from the server, when no stream has this consumer)
 *
 * Two missed heartbeats mean that the server has lost the request (it was killed): it is sent again. A message for an older
 * request of ours is taken like any other, so nothing delivered is ever dropped.
 */
#include "node/transport/nats.h"

#include "node/base/clock.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "node/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { API_SUBJECT_BYTES = 640 };

/* --- Answers --- */

enum js_code {
    JS_UNAVAILABLE = 10008,
    JS_CONSUMER_NOT_FOUND = 10014,
    JS_NO_SPACE = 10023,
    JS_NO_MESSAGE = 10037,
    JS_NOT_ENABLED_FOR_ACCOUNT = 10039,
    JS_SEQUENCE_NOT_FOUND = 10043,
    JS_STORE_RESOURCES = 10047,
    JS_TOO_LARGE = 10054,
    JS_STREAM_EXISTS = 10058,
    JS_STREAM_NOT_FOUND = 10059,
    JS_WRONG_LAST_SEQUENCE = 10071,
    JS_NOT_ENABLED = 10076,
    JS_STORE_FAILED = 10077,
    JS_CONSUMER_EXISTS = 10148
};

static enum err js_error(int code, const char *text, const char *doing) {
    switch (code) {
    case JS_TOO_LARGE:
        return err_set(E_LIMIT, "%s: %s", doing, text);
    case JS_NO_SPACE:
    case JS_STORE_RESOURCES:
        return err_set(E_QUEUE, "%s: the server has no room: %s", doing, text);
    case JS_STORE_FAILED:
        return err_set(strstr(text, "exceeded") ? E_QUEUE : E_NET, "%s: %s", doing, text);
    case JS_NOT_ENABLED:
    case JS_NOT_ENABLED_FOR_ACCOUNT:
        return err_set(E_NET, "%s: the NATS server runs without JetStream (start it with -js)",
                       doing);
    default:
        return err_set(E_NET, "%s: server says %d: %s", doing, code, text);
    }
}

static double number_in(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static uint64_t count_in(const cJSON *object, const char *name) {
    double n = number_in(object, name);
    return n > 0 && n < 9007199254740992.0 ? (uint64_t)n : 0;
}

static const char *text_in(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* err_code of an answer's error, 0 if it has none; its text in *text. */
static int error_in(const cJSON *answer, const char **text) {
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(answer, "error");
    *text = "";
    if (!cJSON_IsObject(error)) {
        return 0;
    }
    *text = text_in(error, "description");
    int code = (int)number_in(error, "err_code");
    return code ? code : -(int)number_in(error, "code") - 1;
}

/* One request to the API. *code is 0 when it succeeded; other codes are the caller's to judge (js_error). */
static FALLIBLE api(cJSON **answer, int *code, struct nats_transport *t, const char *subject,
                    struct bytes body) {
    struct message reply = {0};
    TRY(nats_ops.request(&reply, &t->base, subject, body, 0));
    enum err err = json_parse(answer, reply.data, subject);
    message_done(&reply);
    TRY(err);
    const char *text;
    *code = error_in(*answer, &text);
    return OK;
}

/* The same where every error is one. */
static FALLIBLE api_ok(cJSON **answer, struct nats_transport *t, const char *subject,
                       struct bytes body) {
    int code;
    TRY(api(answer, &code, t, subject, body));
    if (code != 0) {
        const char *text;
        error_in(*answer, &text);
        return js_error(code, text, subject);
    }
    return OK;
}

static void api_subject(char out[API_SUBJECT_BYTES], const char *verb, const char *stream,
                        const char *more) {
    int len = snprintf(out, API_SUBJECT_BYTES, "$JS.API.%s.%s%s%s", verb, stream, more ? "." : "",
                       more ? more : "");
    ASSERT(len > 0 && len < API_SUBJECT_BYTES);
}

/* --- Streams --- */

static void add_limit(struct text *json, const char *name, int64_t limit) {
    text_addf(json, ",\"%s\":%" PRId64, name, limit > 0 ? limit : -1);
}

static void add_flag(struct text *json, const char *name, bool on) {
    text_addf(json, ",\"%s\":%s", name, on ? "true" : "false");
}

static void stream_json(struct text *json, const struct stream_config *c) {
    text_add(json, "{\"name\":");
    text_add_json_string(json, c->name);
    text_add(json, ",\"subjects\":[");
    for (size_t i = 0; i < COUNT_OF(c->subjects) && c->subjects[i]; i++) {
        text_add(json, i ? "," : "");
        text_add_json_string(json, c->subjects[i]);
    }
    text_addf(json, "],\"retention\":\"%s\",\"storage\":\"%s\",\"discard\":\"%s\"",
              c->retention == STREAM_WORK_QUEUE ? "workqueue" : "limits",
              c->in_memory ? "memory" : "file",
              c->discard_new || c->discard_new_per_subject ? "new" : "old");
    add_flag(json, "discard_new_per_subject", c->discard_new_per_subject);
    add_flag(json, "allow_rollup_hdrs", c->allow_rollup);
    add_flag(json, "deny_delete", c->deny_delete);
    add_flag(json, "allow_direct", true);
    add_limit(json, "max_msgs", c->messages_max);
    add_limit(json, "max_bytes", c->bytes_max);
    add_limit(json, "max_msgs_per_subject", c->messages_per_subject_max);
    add_limit(json, "max_msg_size", c->message_bytes_max);
    add_limit(json, "max_consumers", 0);
    text_addf(json, ",\"max_age\":%" PRIu64 ",\"num_replicas\":%" PRIu32, c->age_max_ns,
              c->replicas ? c->replicas : 1);
    uint64_t window = c->duplicate_window_ns;
    if (window == 0 && c->age_max_ns > 0 && c->age_max_ns < 120 * SECOND_NS) {
        window = c->age_max_ns; /* the server's two minutes may not exceed the age */
    }
    if (window) {
        text_addf(json, ",\"duplicate_window\":%" PRIu64, window);
    }
    text_add(json, "}");
}

static bool same_subjects(const cJSON *found, const struct stream_config *c) {
    const cJSON *one = cJSON_IsArray(found) ? found->child : NULL;
    size_t i = 0;
    for (; i < COUNT_OF(c->subjects) && c->subjects[i]; i++, one = one->next) {
        if (!cJSON_IsString(one) || strcmp(one->valuestring, c->subjects[i]) != 0) {
            return false;
        }
    }
    return one == NULL;
}

/* An existing stream with other settings: an operator's limits are fine, other subjects or retention are not. */
static FALLIBLE check_existing(struct nats_transport *t, const struct stream_config *c) {
    char subject[API_SUBJECT_BYTES];
    AUTO(json_free) cJSON *info = NULL;
    api_subject(subject, "STREAM.INFO", c->name, NULL);
    TRY(api_ok(&info, t, subject, bytes_of(NULL, 0)));
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(info, "config");
    const char *want = c->retention == STREAM_WORK_QUEUE ? "workqueue" : "limits";
    REQUIRE(
        strcmp(text_in(config, "retention"), want) == 0, E_FORMAT,
        "stream %s exists with retention \"%s\", want \"%s\": delete it or choose another prefix",
        c->name, text_in(config, "retention"), want);
    REQUIRE(same_subjects(cJSON_GetObjectItemCaseSensitive(config, "subjects"), c), E_FORMAT,
            "stream %s exists with other subjects than %s…: delete it or choose another prefix",
            c->name, c->subjects[0]);
    REQUIRE(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(config, "allow_direct")), E_FORMAT,
            "stream %s exists without allow_direct: enable it (nats stream edit --allow-direct)",
            c->name);
    return OK;
}

FALLIBLE js_stream_ensure(struct transport *base, const struct stream_config *config) {
    char subject[API_SUBJECT_BYTES];
    AUTO(text_free) struct text json = {0};
    AUTO(json_free) cJSON *answer = NULL;
    int code;
    stream_json(&json, config);
    TRY(text_done(&json));
    api_subject(subject, "STREAM.CREATE", config->name, NULL);
    TRY(api(&answer, &code, nats_of(base), subject, text_bytes(&json)));
    if (code == JS_STREAM_EXISTS) {
        return check_existing(nats_of(base), config);
    }
    const char *text;
    error_in(answer, &text);
    return code ? js_error(code, text, subject) : OK;
}

FALLIBLE js_stream_delete(struct transport *base, const char *name) {
    char subject[API_SUBJECT_BYTES];
    AUTO(json_free) cJSON *answer = NULL;
    int code;
    const char *text;
    api_subject(subject, "STREAM.DELETE", name, NULL);
    TRY(api(&answer, &code, nats_of(base), subject, bytes_of(NULL, 0)));
    error_in(answer, &text);
    return code == 0 || code == JS_STREAM_NOT_FOUND ? OK : js_error(code, text, subject);
}

FALLIBLE js_stream_info(struct stream_info *out, struct transport *base, const char *name) {
    char subject[API_SUBJECT_BYTES];
    AUTO(json_free) cJSON *answer = NULL;
    api_subject(subject, "STREAM.INFO", name, NULL);
    TRY(api_ok(&answer, nats_of(base), subject, bytes_of(NULL, 0)));
    const cJSON *state = cJSON_GetObjectItemCaseSensitive(answer, "state");
    *out = (struct stream_info){
        .messages_count = count_in(state, "messages"),
        .bytes = count_in(state, "bytes"),
        .first_sequence = count_in(state, "first_seq"),
        .last_sequence = count_in(state, "last_seq"),
        .consumers_count = count_in(state, "consumer_count"),
    };
    return OK;
}

FALLIBLE js_stream_purge(uint64_t *purged_count, struct transport *base, const char *name,
                         const char *filter) {
    char subject[API_SUBJECT_BYTES];
    AUTO(text_free) struct text json = {0};
    AUTO(json_free) cJSON *answer = NULL;
    api_subject(subject, "STREAM.PURGE", name, NULL);
    text_add(&json, "{");
    if (filter) {
        text_add(&json, "\"filter\":");
        text_add_json_string(&json, filter);
    }
    text_add(&json, "}");
    TRY(text_done(&json));
    TRY(api_ok(&answer, nats_of(base), subject, text_bytes(&json)));
    *purged_count = count_in(answer, "purged");
    return OK;
}

FALLIBLE js_stream_delete_message(bool *found, struct transport *base, const char *name,
                                  uint64_t sequence) {
    char subject[API_SUBJECT_BYTES], body[64];
    AUTO(json_free) cJSON *answer = NULL;
    int code;
    const char *text;
    api_subject(subject, "STREAM.MSG.DELETE", name, NULL);
    snprintf(body, sizeof body, "{\"seq\":%" PRIu64 ",\"no_erase\":true}", sequence);
    TRY(api(&answer, &code, nats_of(base), subject, bytes_of(body, strlen(body))));
    error_in(answer, &text);
    /* A sequence that is gone is 10043, or the general "deletion failed" with that text. */
    bool gone = code == JS_SEQUENCE_NOT_FOUND || code == JS_NO_MESSAGE ||
                strstr(text, "not found") || strstr(text, "no message found");
    if (code != 0 && !gone) {
        return js_error(code, text, subject);
    }
    *found = code == 0;
    return OK;
}

/* --- Reading by sequence or subject (direct get) --- */

/* "2024-05-06T07:08:09.123456789Z" to nanoseconds since 1970; 0 if it is not that. */
static uint64_t parse_time(const char *s) {
    struct tm tm = {0};
    char *end = s ? strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (!end) {
        return 0;
    }
    uint64_t ns = 0;
    if (*end == '.') {
        unsigned digits = 0;
        for (end++; *end >= '0' && *end <= '9' && digits < 9; end++, digits++) {
            ns = ns * 10 + (uint64_t)(*end - '0');
        }
        for (; digits < 9; digits++) {
            ns *= 10;
        }
    }
    return (uint64_t)timegm(&tm) * SECOND_NS + ns;
}

/* A direct get's answer: a message with Nats-* headers, or a status. Takes msg over. */
static FALLIBLE direct_answer(struct message *out, bool *found, natsMsg *msg, const char *stream) {
    const char *status = nats_header(msg, "Status");
    const char *sequence = nats_header(msg, "Nats-Sequence");
    if (natsMsg_IsNoResponders(msg)) {
        natsMsg_Destroy(msg);
        FAIL(E_NET, "read from stream %s: it does not exist or allows no direct reads", stream);
    }
    if (sequence && !status) {
        nats_message(out, msg);
        const char *subject = nats_header(msg, "Nats-Subject");
        out->subject = subject ? subject : "";
        out->reply = "";
        out->sequence = strtoull(sequence, NULL, 10);
        out->time_unix_ns = parse_time(nats_header(msg, "Nats-Time-Stamp"));
        *found = true;
        return OK;
    }
    int code = status ? atoi(status) : 0;
    char text[128];
    const char *description = nats_header(msg, "Description");
    snprintf(text, sizeof text, "%s", description ? description : "no status");
    natsMsg_Destroy(msg);
    REQUIRE(code == 404, E_NET, "read from stream %s: status %d: %s", stream, code, text);
    *found = false;
    return OK;
}

static FALLIBLE direct_request(char subject[API_SUBJECT_BYTES], struct text *json,
                               const char *stream, uint64_t sequence, const char *filter) {
    api_subject(subject, "DIRECT.GET", stream, NULL);
    text_add(json, "{");
    if (sequence) {
        text_addf(json, "\"seq\":%" PRIu64 "%s", sequence, filter ? "," : "");
    }
    if (filter) {
        text_add(json, sequence ? "\"next_by_subj\":" : "\"last_by_subj\":");
        text_add_json_string(json, filter);
    }
    text_add(json, "}");
    return text_done(json);
}

FALLIBLE js_stream_get(struct message *out, bool *found, struct transport *base, const char *name,
                       uint64_t sequence, const char *filter) {
    struct nats_transport *t = nats_of(base);
    char subject[API_SUBJECT_BYTES];
    AUTO(text_free) struct text json = {0};
    natsMsg *reply = NULL;
    TRY(direct_request(subject, &json, name, sequence, filter));
    natsStatus s = natsConnection_Request(&reply, t->nc, subject, json.ptr, (int)json.len,
                                          wait_ms(t->request_wait_ns));
    if (s == NATS_TIMEOUT) { /* nobody answers for a stream that does not exist */
        struct stream_info info;
        TRY(js_stream_info(&info, base, name));
    }
    if (s != NATS_OK) {
        return nats_error(s, "request to", subject);
    }
    return direct_answer(out, found, reply, name);
}

/* --- Publishing --- */

static FALLIBLE publish_answer(struct publish_ack *out, struct bytes data, const char *subject) {
    AUTO(json_free) cJSON *answer = NULL;
    const char *text;
    TRY(json_parse(&answer, data, "publish acknowledgement"));
    int code = error_in(answer, &text);
    if (code == JS_WRONG_LAST_SEQUENCE) {
        *out = (struct publish_ack){.outcome = PUBLISH_CONFLICT};
        return OK;
    }
    if (code != 0) {
        char doing[200];
        snprintf(doing, sizeof doing, "publish to %s", subject);
        return js_error(code, text, doing);
    }
    out->sequence = count_in(answer, "seq");
    REQUIRE(out->sequence > 0, E_NET, "publish to %s: answered by something that is no stream",
            subject);
    bool duplicate = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "duplicate"));
    out->outcome = duplicate ? PUBLISH_DUPLICATE : PUBLISH_STORED;
    return OK;
}

static natsStatus set_headers(natsMsg *msg, const struct publish_options *o,
                              const char *header_name, const char *header_value) {
    natsStatus s = NATS_OK;
    if (o->message_id) {
        s = natsMsgHeader_Set(msg, "Nats-Msg-Id", o->message_id);
    }
    if (s == NATS_OK && o->expect_last) {
        char number[24];
        snprintf(number, sizeof number, "%" PRIu64, o->expect_last_sequence);
        s = natsMsgHeader_Set(msg, "Nats-Expected-Last-Subject-Sequence", number);
    }
    if (s == NATS_OK && o->rollup) {
        s = natsMsgHeader_Set(msg, "Nats-Rollup", "sub");
    }
    if (s == NATS_OK && header_name) {
        s = natsMsgHeader_Set(msg, header_name, header_value);
    }
    return s;
}

FALLIBLE js_publish(struct publish_ack *out, struct transport *base, const char *subject,
                    struct bytes data, const struct publish_options *o, const char *header_name,
                    const char *header_value) {
    struct nats_transport *t = nats_of(base);
    natsMsg *msg = NULL, *reply = NULL;
    natsStatus s = natsMsg_Create(&msg, subject, NULL, (const char *)data.ptr, (int)data.len);
    if (s == NATS_OK) {
        s = set_headers(msg, o, header_name, header_value);
    }
    if (s == NATS_OK) {
        s = natsConnection_RequestMsg(&reply, t->nc, msg,
                                      wait_ms(o->wait_ns ? o->wait_ns : t->request_wait_ns));
    }
    natsMsg_Destroy(msg);
    if (s == NATS_NO_RESPONDERS) {
        FAIL(E_NET, "publish to %s: no stream takes this subject", subject);
    }
    if (s != NATS_OK) {
        return nats_error(s, "publish to", subject);
    }
    struct bytes answer = bytes_of(natsMsg_GetData(reply), (size_t)natsMsg_GetDataLength(reply));
    enum err err = publish_answer(out, answer, subject);
    natsMsg_Destroy(reply);
    return err;
}

/* --- Consumers --- */

FALLIBLE js_consumer_ensure(struct transport *base, const struct consumer_config *c) {
    char subject[API_SUBJECT_BYTES];
    AUTO(text_free) struct text json = {0};
    AUTO(json_free) cJSON *answer = NULL;
    text_add(&json, "{\"stream_name\":");
    text_add_json_string(&json, c->stream);
    text_add(&json, ",\"config\":{\"durable_name\":");
    text_add_json_string(&json, c->name);
    if (c->filter) {
        text_add(&json, ",\"filter_subject\":");
        text_add_json_string(&json, c->filter);
    }
    text_addf(&json,
              ",\"deliver_policy\":\"all\",\"ack_policy\":\"explicit\",\"replay_policy\":"
              "\"instant\",\"ack_wait\":%" PRIu64 ",\"max_deliver\":%d,\"max_ack_pending\":%d}}",
              c->ack_wait_ns ? c->ack_wait_ns : 30 * SECOND_NS,
              c->deliveries_max ? c->deliveries_max : -1,
              c->ack_pending_max ? c->ack_pending_max : 1000);
    TRY(text_done(&json));
    api_subject(subject, "CONSUMER.DURABLE.CREATE", c->stream, c->name);
    return api_ok(&answer, nats_of(base), subject, text_bytes(&json));
}

FALLIBLE js_consumer_delete(struct transport *base, const char *stream, const char *name) {
    char subject[API_SUBJECT_BYTES];
    AUTO(json_free) cJSON *answer = NULL;
    int code;
    const char *text;
    api_subject(subject, "CONSUMER.DELETE", stream, name);
    TRY(api(&answer, &code, nats_of(base), subject, bytes_of(NULL, 0)));
    error_in(answer, &text);
    return code == 0 || code == JS_CONSUMER_NOT_FOUND || code == JS_STREAM_NOT_FOUND
               ? OK
               : js_error(code, text, subject);
}

FALLIBLE js_consumer_info(struct consumer_info *out, bool *found, struct transport *base,
                          const char *stream, const char *name) {
    char subject[API_SUBJECT_BYTES];
    AUTO(json_free) cJSON *answer = NULL;
    int code;
    const char *text;
    api_subject(subject, "CONSUMER.INFO", stream, name);
    TRY(api(&answer, &code, nats_of(base), subject, bytes_of(NULL, 0)));
    error_in(answer, &text);
    if (code == JS_CONSUMER_NOT_FOUND) {
        *found = false;
        return OK;
    }
    if (code != 0) {
        return js_error(code, text, subject);
    }
    const cJSON *delivered = cJSON_GetObjectItemCaseSensitive(answer, "delivered");
    const cJSON *floor = cJSON_GetObjectItemCaseSensitive(answer, "ack_floor");
    *out = (struct consumer_info){
        .pending_count = count_in(answer, "num_pending"),
        .ack_pending_count = count_in(answer, "num_ack_pending"),
        .redelivered_count = count_in(answer, "num_redelivered"),
        .waiting_count = count_in(answer, "num_waiting"),
        .delivered_sequence = count_in(delivered, "stream_seq"),
        .ack_floor_sequence = count_in(floor, "stream_seq"),
    };
    *found = true;
    return OK;
}

/* --- Pulling --- */

#define PULL_EXPIRES_NS   (5 * SECOND_NS)
#define PULL_HEARTBEAT_NS (1 * SECOND_NS)
#define PULL_SILENCE_NS   (5 * SECOND_NS / 2) /* two heartbeats missed */
#define PULL_GRACE_NS     (SECOND_NS / 2)     /* for the answer that nothing came */
#define PULL_RETRY_NS     (SECOND_NS / 50)    /* after a connection was lost */
#define PULL_SLICE_NS     (SECOND_NS / 4)     /* how often a lost connection is looked for */

struct nats_puller {
    struct puller base;
    struct nats_transport *t; /* lent */
    natsSubscription *sub;    /* owned */
    char stream[256], consumer[256], inbox[160];
    uint64_t request; /* number of the latest request: last token of its inbox */
};

FALLIBLE js_puller_open(struct puller **out, struct transport *base, const char *stream,
                        const char *consumer) {
    struct nats_puller *p = NULL;
    TRY(mem_new(&p, 1, sizeof *p));
    p->base.ops = &nats_ops;
    p->t = nats_of(base);
    snprintf(p->stream, sizeof p->stream, "%s", stream);
    snprintf(p->consumer, sizeof p->consumer, "%s", consumer);
    nats_inbox(p->inbox, p->t);
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

/* Asks for one message, at most until expires_ns from now; 0: only if one is there. */
static FALLIBLE ask(struct nats_puller *p, uint64_t expires_ns) {
    char subject[API_SUBJECT_BYTES], reply[200], body[128];
    api_subject(subject, "CONSUMER.MSG.NEXT", p->stream, p->consumer);
    snprintf(reply, sizeof reply, "%s.%" PRIu64, p->inbox, ++p->request);
    if (expires_ns == 0) {
        snprintf(body, sizeof body, "{\"batch\":1,\"no_wait\":true}");
    } else if (expires_ns >= 2 * PULL_HEARTBEAT_NS) {
        snprintf(body, sizeof body,
                 "{\"batch\":1,\"expires\":%" PRIu64 ",\"idle_heartbeat\":%" PRIu64 "}", expires_ns,
                 PULL_HEARTBEAT_NS);
    } else {
        snprintf(body, sizeof body, "{\"batch\":1,\"expires\":%" PRIu64 "}", expires_ns);
    }
    natsStatus s = natsConnection_PublishRequest(p->t->nc, subject, reply, body, (int)strlen(body));
    return s == NATS_OK ? OK : nats_error(s, "pull from", subject);
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
        *err = deliver(out, msg);
        return *err == OK ? PULL_GOT : PULL_FAILED;
    }
    const char *token = strrchr(natsMsg_GetSubject(msg), '.') + 1;
    bool woken = strcmp(token, "wake") == 0;
    bool current = strtoull(token, NULL, 10) == p->request;
    const char *status = nats_header(msg, "Status"), *text = nats_header(msg, "Description");
    int code = natsMsg_IsNoResponders(msg) ? 503 : status ? atoi(status) : 0;
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
    natsMsg_Destroy(msg);
    return state;
}

/* Waits for the latest request to be answered: until it is over, its expiry plus grace, or the server's silence. */
static enum pull_state await(struct message *out, enum err *err, struct nats_puller *p,
                             uint64_t expires_ns) {
    uint64_t now = clock_ns(), until = now + expires_ns + PULL_GRACE_NS;
    uint64_t heard = now, losses = atomic_load(&p->t->losses);
    bool beats = expires_ns >= 2 * PULL_HEARTBEAT_NS;
    for (;;) {
        natsMsg *msg = NULL;
        natsStatus s = natsSubscription_NextMsg(&msg, p->sub, wait_ms(PULL_SLICE_NS));
        now = clock_ns();
        if (s == NATS_OK) {
            heard = now;
            enum pull_state state = judge(out, err, p, msg);
            if (state != PULL_WAIT) {
                return state;
            }
        } else if (s != NATS_TIMEOUT) {
            *err = nats_error(s, "pull from", p->stream);
            return PULL_FAILED;
        }
        if (atomic_load(&p->t->losses) != losses) {
            return PULL_EMPTY; /* the server has forgotten the request: ask again */
        }
        if (now >= until || (beats && now - heard > PULL_SILENCE_NS)) {
            return PULL_SILENT;
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
        uint64_t expires = left < PULL_EXPIRES_NS ? left : PULL_EXPIRES_NS;
        err = ask(p, expires);
        if (err == E_NET && left > 0) { /* lost just now */
            clock_sleep_ns(PULL_RETRY_NS);
            continue;
        }
        TRY(err);
        state = await(out, &err, p, wait_ns ? expires : p->t->request_wait_ns);
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

void js_puller_wake(struct puller *base) {
    struct nats_puller *p = (struct nats_puller *)base;
    char subject[200];
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
    nats_unsubscribe(p->t, p->sub);
    while (natsSubscription_NextMsg(&msg, p->sub, 0) == NATS_OK) {
        natsMsg_Destroy(msg);
        msg = NULL;
    }
    natsSubscription_Destroy(p->sub);
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

/* --- Pipes --- */

struct nats_pipe {
    struct pipe base;
    struct nats_transport *t; /* lent */
    natsSubscription *sub;    /* owned */
    char inbox[160];
};

FALLIBLE js_pipe_open(struct pipe **out, struct transport *base) {
    struct nats_pipe *p = NULL;
    TRY(mem_new(&p, 1, sizeof *p));
    p->base.ops = &nats_ops;
    p->t = nats_of(base);
    nats_inbox(p->inbox, p->t);
    enum err err = nats_subscribe_inbox(&p->sub, p->t, p->inbox);
    if (err != OK) {
        mem_free(p);
        return err;
    }
    *out = &p->base;
    return OK;
}

FALLIBLE js_pipe_publish(struct pipe *base, uint64_t token, const char *subject,
                         struct bytes data) {
    struct nats_pipe *p = (struct nats_pipe *)base;
    char reply[200];
    snprintf(reply, sizeof reply, "%s.p%" PRIu64, p->inbox, token);
    natsStatus s = natsConnection_PublishRequest(p->t->nc, subject, reply, data.ptr, (int)data.len);
    return s == NATS_OK ? OK : nats_error(s, "publish to", subject);
}

FALLIBLE js_pipe_get(struct pipe *base, uint64_t token, const char *stream, uint64_t sequence,
                     const char *filter) {
    struct nats_pipe *p = (struct nats_pipe *)base;
    char subject[API_SUBJECT_BYTES], reply[200];
    AUTO(text_free) struct text json = {0};
    TRY(direct_request(subject, &json, stream, sequence, filter));
    snprintf(reply, sizeof reply, "%s.g%" PRIu64, p->inbox, token);
    natsStatus s = natsConnection_PublishRequest(p->t->nc, subject, reply, json.ptr, (int)json.len);
    return s == NATS_OK ? OK : nats_error(s, "request to", subject);
}

FALLIBLE js_pipe_next(struct pipe_answer *out, struct pipe *base, uint64_t wait_ns) {
    struct nats_pipe *p = (struct nats_pipe *)base;
    natsMsg *msg = NULL;
    natsStatus s = natsSubscription_NextMsg(&msg, p->sub, wait_ns ? wait_ms(wait_ns) : 0);
    if (s == NATS_TIMEOUT) {
        FAIL(E_TIMEOUT, "no answer in time");
    }
    if (s != NATS_OK) {
        return nats_error(s, "answers of", "a pipe");
    }
    const char *tail = strrchr(natsMsg_GetSubject(msg), '.') + 1;
    struct pipe_answer answer = {.token = strtoull(tail + 1, NULL, 10)};
    enum err err;
    if (tail[0] == 'g') {
        err = direct_answer(&answer.message, &answer.found, msg, "of the object");
    } else if (natsMsg_IsNoResponders(msg)) {
        natsMsg_Destroy(msg);
        err = err_set(E_NET, "publish: no stream takes this subject");
    } else {
        struct bytes data = bytes_of(natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg));
        err = publish_answer(&answer.ack, data, "the object's stream");
        natsMsg_Destroy(msg);
    }
    if (err != OK) {
        answer.fault = fault_of(err);
    }
    *out = answer;
    return OK;
}

void js_pipe_close(struct pipe *base) {
    struct nats_pipe *p = (struct nats_pipe *)base;
    nats_unsubscribe(p->t, p->sub);
    natsSubscription_Destroy(p->sub);
    mem_free(p);
}
