/* JetStream by hand: its whole interface is requests with JSON bodies, so plain requests are all that is used of the client.
 *
 * Why not the client's own calls: fetching a batch can hang or overrun, a second fetch after a time-out returns at once, KV
 * hides the error codes that tell "somebody was first" from "broken", and large publishes are copied. By hand every
 * status and code is seen, and the table of codes below is the one place that turns them into ours.
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

/* --- Answers --- */

enum js_code {
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
    JS_STORE_FAILED = 10077
};

/* What the server says of a request that it does not fulfil. */
struct refusal {
    int code;         /* err_code, or where an answer has none the negative status - 1; 0: none */
    const char *text; /* lent from the answer */
};

static enum err js_error(const struct refusal *refusal, const char *doing) {
    const char *text = refusal->text;
    switch (refusal->code) {
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
        return err_set(E_NET, "%s: server says %d: %s", doing, refusal->code, text);
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

static struct refusal error_in(const cJSON *answer) {
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(answer, "error");
    if (!cJSON_IsObject(error)) {
        return (struct refusal){0, ""};
    }
    int code = (int)number_in(error, "err_code");
    return (struct refusal){code ? code : -(int)number_in(error, "code") - 1,
                            text_in(error, "description")};
}

/* One request to the API. A refusal is the caller's to judge (js_error). */
static FALLIBLE api(cJSON **answer, struct refusal *refusal, struct nats_transport *t,
                    const char *subject, struct bytes body) {
    struct message reply = {0};
    TRY(nats_ops.request(&reply, &t->base, subject, body, 0));
    enum err err = json_parse(answer, reply.data, subject);
    message_done(&reply);
    TRY(err);
    *refusal = error_in(*answer);
    return OK;
}

/* The same where every error is one. */
FALLIBLE js_api(cJSON **answer, struct nats_transport *t, const char *subject, struct bytes body) {
    struct refusal refusal;
    TRY(api(answer, &refusal, t, subject, body));
    return refusal.code ? js_error(&refusal, subject) : OK;
}

void js_subject(char out[API_SUBJECT_BYTES], const char *verb, const char *stream,
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
    js_subject(subject, "STREAM.INFO", c->name, NULL);
    TRY(js_api(&info, t, subject, bytes_of(NULL, 0)));
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
    struct refusal refusal;
    stream_json(&json, config);
    TRY(text_done(&json));
    js_subject(subject, "STREAM.CREATE", config->name, NULL);
    TRY(api(&answer, &refusal, nats_of(base), subject, text_bytes(&json)));
    if (refusal.code == JS_STREAM_EXISTS) {
        TRY(check_existing(nats_of(base), config));
        js_subject(subject, "STREAM.UPDATE", config->name, NULL);
        json_free(&answer);
        return config->replace_limits ? js_api(&answer, nats_of(base), subject, text_bytes(&json))
                                      : OK;
    }
    return refusal.code ? js_error(&refusal, subject) : OK;
}

FALLIBLE js_stream_delete(struct transport *base, const char *name) {
    char subject[API_SUBJECT_BYTES];
    AUTO(json_free) cJSON *answer = NULL;
    struct refusal refusal;
    js_subject(subject, "STREAM.DELETE", name, NULL);
    TRY(api(&answer, &refusal, nats_of(base), subject, bytes_of(NULL, 0)));
    return refusal.code == 0 || refusal.code == JS_STREAM_NOT_FOUND ? OK
                                                                    : js_error(&refusal, subject);
}

FALLIBLE js_stream_info(struct stream_info *out, struct transport *base, const char *name) {
    char subject[API_SUBJECT_BYTES];
    AUTO(json_free) cJSON *answer = NULL;
    js_subject(subject, "STREAM.INFO", name, NULL);
    TRY(js_api(&answer, nats_of(base), subject, bytes_of(NULL, 0)));
    const cJSON *state = cJSON_GetObjectItemCaseSensitive(answer, "state");
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(answer, "config");
    *out = (struct stream_info){
        .bytes_max = count_in(config, "max_bytes"),
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
    js_subject(subject, "STREAM.PURGE", name, NULL);
    text_add(&json, "{");
    if (filter) {
        text_add(&json, "\"filter\":");
        text_add_json_string(&json, filter);
    }
    text_add(&json, "}");
    TRY(text_done(&json));
    TRY(js_api(&answer, nats_of(base), subject, text_bytes(&json)));
    *purged_count = count_in(answer, "purged");
    return OK;
}

FALLIBLE js_stream_delete_message(bool *found, struct transport *base, const char *name,
                                  uint64_t sequence) {
    char subject[API_SUBJECT_BYTES], body[64];
    AUTO(json_free) cJSON *answer = NULL;
    struct refusal refusal;
    js_subject(subject, "STREAM.MSG.DELETE", name, NULL);
    snprintf(body, sizeof body, "{\"seq\":%" PRIu64 ",\"no_erase\":true}", sequence);
    TRY(api(&answer, &refusal, nats_of(base), subject, bytes_of(body, strlen(body))));
    /* A sequence that is gone is 10043, or the general "deletion failed" with that text. */
    bool gone = refusal.code == JS_SEQUENCE_NOT_FOUND || refusal.code == JS_NO_MESSAGE ||
                strstr(refusal.text, "not found") || strstr(refusal.text, "no message found");
    if (refusal.code != 0 && !gone) {
        return js_error(&refusal, subject);
    }
    *found = refusal.code == 0;
    return OK;
}

int js_status(natsMsg *msg) {
    const char *status = nats_header(msg, "Status");
    if (natsMsg_IsNoResponders(msg)) {
        return 503;
    }
    return status ? (int)strtol(status, NULL, 10) : 0;
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
    int code = js_status(msg);
    char text[128];
    const char *description = nats_header(msg, "Description");
    snprintf(text, sizeof text, "%s", description ? description : "no status");
    natsMsg_Destroy(msg);
    REQUIRE(code == 404, E_NET, "read from stream %s: status %d: %s", stream, code, text);
    *found = false;
    return OK;
}

/* "The last of this subject" is asked with the subject in the request's own, where permissions can see it; a filter or a
 * sequence stands in the body, so the right to ask for those is a right to read the whole stream. */
static FALLIBLE direct_request(char subject[API_SUBJECT_BYTES], struct text *json,
                               const char *stream, uint64_t sequence, const char *filter) {
    if (sequence == 0 && filter && !strpbrk(filter, "*>")) {
        js_subject(subject, "DIRECT.GET", stream, filter);
        return OK;
    }
    js_subject(subject, "DIRECT.GET", stream, NULL);
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
    struct asking a;
    natsStatus s = NATS_TIMEOUT;
    for (int n = 0; n < 2 && s == NATS_TIMEOUT; n++) {
        struct stream_info info;
        asking_begin(&a, t, subject);
        s = natsConnection_PublishRequest(t->nc, subject, a.reply, json.ptr, (int)json.len);
        s = asking_end(&reply, &a, s, t->request_wait_ns);
        if (s == NATS_TIMEOUT) { /* nobody answers for a stream that was not there at that moment */
            TRY(js_stream_info(&info, base, name));
        }
    }
    if (s != NATS_OK) {
        return asking_error(&a, s, "request to");
    }
    return direct_answer(out, found, reply, name);
}

/* --- Publishing --- */

static FALLIBLE publish_answer(struct publish_ack *out, struct bytes data, const char *subject) {
    AUTO(json_free) cJSON *answer = NULL;
    TRY(json_parse(&answer, data, "publish acknowledgement"));
    struct refusal refusal = error_in(answer);
    if (refusal.code == JS_WRONG_LAST_SEQUENCE) {
        *out = (struct publish_ack){.outcome = PUBLISH_CONFLICT};
        return OK;
    }
    if (refusal.code != 0) {
        char doing[200];
        snprintf(doing, sizeof doing, "publish to %s", subject);
        return js_error(&refusal, doing);
    }
    uint64_t sequence = count_in(answer, "seq");
    REQUIRE(sequence > 0, E_NET, "publish to %s: answered by something that is no stream", subject);
    bool duplicate = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "duplicate"));
    *out = (struct publish_ack){.outcome = duplicate ? PUBLISH_DUPLICATE : PUBLISH_STORED,
                                .sequence = sequence};
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
    struct asking a;
    natsMsg *msg = NULL, *reply = NULL;
    asking_begin(&a, t, subject);
    natsStatus s = natsMsg_Create(&msg, subject, a.reply, (const char *)data.ptr, (int)data.len);
    if (s == NATS_OK) {
        s = set_headers(msg, o, header_name, header_value);
    }
    if (s == NATS_OK) {
        s = natsConnection_PublishMsg(t->nc, msg);
    }
    natsMsg_Destroy(msg);
    s = asking_end(&reply, &a, s, o->wait_ns ? o->wait_ns : t->request_wait_ns);
    if (s == NATS_NO_RESPONDERS) {
        FAIL(E_NET, "publish to %s: no stream takes this subject", subject);
    }
    if (s != NATS_OK) {
        return asking_error(&a, s, "publish to");
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
    /* Name and filter stand in the subject, and the server compares them with the body: so they can be permitted. */
    char more[API_SUBJECT_BYTES / 2];
    int len = snprintf(more, sizeof more, "%s%s%s", c->name, c->filter ? "." : "",
                       c->filter ? c->filter : "");
    REQUIRE(len > 0 && (size_t)len < sizeof more, E_FORMAT, "consumer %s: its filter is too long",
            c->name);
    js_subject(subject, "CONSUMER.CREATE", c->stream, more);
    return js_api(&answer, nats_of(base), subject, text_bytes(&json));
}

FALLIBLE js_consumer_delete(struct transport *base, const char *stream, const char *name) {
    char subject[API_SUBJECT_BYTES];
    AUTO(json_free) cJSON *answer = NULL;
    struct refusal refusal;
    js_subject(subject, "CONSUMER.DELETE", stream, name);
    TRY(api(&answer, &refusal, nats_of(base), subject, bytes_of(NULL, 0)));
    bool gone = refusal.code == JS_CONSUMER_NOT_FOUND || refusal.code == JS_STREAM_NOT_FOUND;
    return refusal.code == 0 || gone ? OK : js_error(&refusal, subject);
}

FALLIBLE js_consumer_info(struct consumer_info *out, bool *found, struct transport *base,
                          const char *stream, const char *name) {
    char subject[API_SUBJECT_BYTES];
    AUTO(json_free) cJSON *answer = NULL;
    struct refusal refusal;
    js_subject(subject, "CONSUMER.INFO", stream, name);
    TRY(api(&answer, &refusal, nats_of(base), subject, bytes_of(NULL, 0)));
    if (refusal.code == JS_CONSUMER_NOT_FOUND) {
        *found = false;
        return OK;
    }
    if (refusal.code != 0) {
        return js_error(&refusal, subject);
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

/* --- Pipes --- */

#define PIPE_SLICE_NS (SECOND_NS / 4)
enum { PIPES_KEPT_MAX = 16 };

/* A pipe that is closed with nothing on the way is kept for the next one: opening and closing an inbox costs the server work, and closing
 * a round trip, which takes its turn behind everything that the connection still has to bring. */
struct nats_pipe {
    struct pipe base;
    struct nats_pipe *next;   /* [transport's lock] among those that are kept */
    struct nats_transport *t; /* lent */
    natsSubscription *sub;    /* owned */
    uint64_t due_count;       /* answers that have not come */
    char inbox[TRANSPORT_INBOX_BYTES];
    char subject[API_SUBJECT_BYTES]; /* of the last message that was sent */
    uint64_t refused;                /* before the first one */
};

static struct nats_pipe *take_kept(struct nats_transport *t) {
    LOCK_SCOPE(&t->lock);
    struct nats_pipe *p = t->kept;
    if (p) {
        t->kept = p->next;
        t->kept_count--;
    }
    return p;
}

static bool keep(struct nats_pipe *p) {
    struct nats_transport *t = p->t;
    LOCK_SCOPE(&t->lock);
    if (p->due_count > 0 || t->kept_count == PIPES_KEPT_MAX) {
        return false;
    }
    p->next = t->kept;
    t->kept = p;
    t->kept_count++;
    return true;
}

void js_pipes_free(struct nats_transport *t) {
    for (struct nats_pipe *p; (p = take_kept(t));) {
        natsSubscription_Destroy(p->sub);
        mem_free(p);
    }
}

FALLIBLE js_pipe_open(struct pipe **out, struct transport *base) {
    struct nats_transport *t = nats_of(base);
    struct nats_pipe *p = take_kept(t);
    if (p) {
        p->refused = atomic_load(&t->refused);
        *out = &p->base;
        return OK;
    }
    TRY(mem_new(&p, 1, sizeof *p));
    p->base.ops = &nats_ops;
    p->t = t;
    nats_inbox(p->inbox, base);
    p->refused = atomic_load(&t->refused);
    enum err err = nats_subscribe_inbox(&p->sub, p->t, p->inbox);
    if (err != OK) {
        mem_free(p);
        return err;
    }
    *out = &p->base;
    return OK;
}

FALLIBLE js_pipe_publish(struct pipe *base, uint64_t token, const char *subject, struct bytes data,
                         const struct publish_options *options) {
    struct nats_pipe *p = (struct nats_pipe *)base;
    char reply[REPLY_BYTES];
    natsStatus s;
    snprintf(reply, sizeof reply, "%s.p%" PRIu64, p->inbox, token);
    snprintf(p->subject, sizeof p->subject, "%s", subject);
    if (!options) { /* straight from the caller's memory */
        s = natsConnection_PublishRequest(p->t->nc, subject, reply, data.ptr, (int)data.len);
        p->due_count++;
        return s == NATS_OK ? OK : nats_error(s, "publish to", subject);
    }
    natsMsg *msg = NULL;
    s = natsMsg_Create(&msg, subject, reply, (const char *)data.ptr, (int)data.len);
    s = s == NATS_OK ? set_headers(msg, options, NULL, NULL) : s;
    s = s == NATS_OK ? natsConnection_PublishMsg(p->t->nc, msg) : s;
    natsMsg_Destroy(msg);
    p->due_count++;
    return s == NATS_OK ? OK : nats_error(s, "publish to", subject);
}

FALLIBLE js_pipe_get(struct pipe *base, uint64_t token, const char *stream, uint64_t sequence,
                     const char *filter) {
    struct nats_pipe *p = (struct nats_pipe *)base;
    char subject[API_SUBJECT_BYTES], reply[REPLY_BYTES];
    AUTO(text_free) struct text json = {0};
    TRY(direct_request(subject, &json, stream, sequence, filter));
    snprintf(reply, sizeof reply, "%s.g%" PRIu64, p->inbox, token);
    snprintf(p->subject, sizeof p->subject, "%s", subject);
    natsStatus s = natsConnection_PublishRequest(p->t->nc, subject, reply, json.ptr, (int)json.len);
    p->due_count++;
    return s == NATS_OK ? OK : nats_error(s, "request to", subject);
}

FALLIBLE js_pipe_next(struct pipe_answer *out, struct pipe *base, uint64_t wait_ns) {
    struct nats_pipe *p = (struct nats_pipe *)base;
    natsMsg *msg = NULL;
    natsStatus s;
    do { /* what the server refuses is never answered: the error handler hears of it */
        uint64_t slice_ns = wait_ns < PIPE_SLICE_NS ? wait_ns : PIPE_SLICE_NS;
        s = natsSubscription_NextMsg(&msg, p->sub, slice_ns ? wait_ms(slice_ns) : 0);
        if (s == NATS_TIMEOUT) {
            TRY(nats_check_refused(p->t, p->refused, p->subject));
        }
        wait_ns -= slice_ns;
    } while (s == NATS_TIMEOUT && wait_ns > 0);
    if (s == NATS_TIMEOUT) {
        FAIL(E_TIMEOUT, "no answer in time");
    }
    if (s != NATS_OK) {
        return nats_error(s, "answers of", "a pipe");
    }
    p->due_count--;
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
    if (!keep(p)) {
        nats_inbox_close(p->t, p->sub);
        mem_free(p);
    }
}
