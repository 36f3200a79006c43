/* The contract's front: checks arguments, then calls the implementation. Nothing else happens here. */
#include "node/transport/ops.h"

#include "node/base/rng.h"
#include "proto/subjects.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char nuid_digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

void transport_nuid(char out[NUID_BYTES]) {
    uint8_t random[2 * NUID_BYTES];
    size_t len = 0;
    while (len < NUID_BYTES - 1) {
        ASSERT(rng_os(random, sizeof random) == OK);
        for (size_t i = 0; i < sizeof random && len < NUID_BYTES - 1; i++) {
            if (random[i] < 4 * 62) { /* no digit likelier than another */
                out[len++] = nuid_digits[random[i] % 62];
            }
        }
    }
    out[len] = '\0';
}

FALLIBLE check_subject(const char *subject) {
    REQUIRE(subject && subject[0], E_FORMAT, "subject is empty");
    size_t len = strcspn(subject, " \t\r\n");
    REQUIRE(!subject[len] && len < SUBJECT_BYTES_MAX, E_FORMAT,
            "subject \"%.60s\" has a space or more than %d bytes", subject, SUBJECT_BYTES_MAX - 1);
    return OK;
}

FALLIBLE check_name(const char *name, const char *what) {
    REQUIRE(name && name[0], E_FORMAT, "%s is empty", what);
    size_t len = strcspn(name, " \t\r\n.*>/\\");
    REQUIRE(!name[len] && len < 200, E_FORMAT,
            "%s \"%.60s\" has a space, dot, wildcard or slash, or is too long", what, name);
    return OK;
}

void transport_url_shown(char *out, size_t out_bytes, const char *url) {
    size_t at = 0;
    ASSERT(out_bytes > 0);
    while (*url && at + 1 < out_bytes) {
        size_t len = strcspn(url, ",");
        const char *scheme = memmem(url, len, "://", 3), *end = url + len;
        const char *login = scheme ? scheme + 3 : url,
                   *host = memrchr(login, '@', (size_t)(end - login));
        const char *colon = host ? memchr(login, ':', (size_t)(host - login)) : NULL;
        if (host) { /* a user's name stays, what proves it does not */
            const char *secret = colon ? colon + 1 : login;
            at += (size_t)snprintf(out + at, out_bytes - at, "%.*s***%.*s", (int)(secret - url),
                                   url, (int)(end - host), host);
        } else {
            at += (size_t)snprintf(out + at, out_bytes - at, "%.*s", (int)len, url);
        }
        at += at + 1 < out_bytes && *end ? (size_t)snprintf(out + at, out_bytes - at, ",") : 0;
        url = *end ? end + 1 : end;
    }
    out[at < out_bytes ? at : out_bytes - 1] = 0;
}

void transport_close(struct transport **t) {
    if (*t) {
        (*t)->ops->close(*t);
        *t = NULL;
    }
}

void transport_inbox(char out[TRANSPORT_INBOX_BYTES], struct transport *t) {
    t->ops->inbox(out, t);
}

void transport_health(struct transport_health *out, struct transport *t) {
    t->ops->health(out, t);
}

void message_done(struct message *m) {
    if (m->handle) {
        m->ops->message_done(m);
    }
    *m = (struct message){0};
}

const char *message_header(const struct message *m, const char *name) {
    return m->handle ? m->ops->message_header(m, name) : NULL;
}

/* --- Core --- */

FALLIBLE transport_send(struct transport *t, const char *subject, struct bytes data) {
    TRY(check_subject(subject));
    return t->ops->send(t, subject, data);
}

FALLIBLE transport_send_unkept(struct transport *t, const char *subject, struct bytes data) {
    TRY(check_subject(subject));
    return t->ops->send_unkept(t, subject, data);
}

FALLIBLE transport_flush(struct transport *t, uint64_t wait_ns) {
    return t->ops->flush(t, wait_ns);
}

FALLIBLE transport_subscribe(struct subscription **out, struct transport *t, const char *subject,
                             const struct subscribe_options *options) {
    static const struct subscribe_options none;
    TRY(check_subject(subject));
    return t->ops->subscribe(out, t, subject, options ? options : &none);
}

FALLIBLE subscription_next(struct message *out, struct subscription *sub, uint64_t wait_ns) {
    return sub->ops->subscription_next(out, sub, wait_ns);
}

void subscription_close(struct subscription **sub) {
    if (*sub) {
        (*sub)->ops->subscription_close(*sub);
        *sub = NULL;
    }
}

FALLIBLE transport_request(struct message *out, struct transport *t, const char *subject,
                           struct bytes data, uint64_t wait_ns) {
    TRY(check_subject(subject));
    return t->ops->request(out, t, subject, data, wait_ns);
}

FALLIBLE message_respond(struct transport *t, const struct message *request, struct bytes data) {
    REQUIRE(request->reply && request->reply[0], E_FORMAT,
            "the message on \"%.100s\" asks for no reply", request->subject);
    REQUIRE(subject_is_inbox(request->reply), E_FORMAT,
            "the message on \"%.100s\" wants its reply on \"%.100s\", which is no inbox",
            request->subject, request->reply);
    return t->ops->send(t, request->reply, data);
}

/* --- Streams --- */

FALLIBLE stream_ensure(struct transport *t, const struct stream_config *config) {
    TRY(check_name(config->name, "stream"));
    return t->ops->stream_ensure(t, config);
}

FALLIBLE stream_delete(struct transport *t, const char *name) {
    TRY(check_name(name, "stream"));
    return t->ops->stream_delete(t, name);
}

FALLIBLE stream_info(struct stream_info *out, struct transport *t, const char *name) {
    TRY(check_name(name, "stream"));
    return t->ops->stream_info(out, t, name);
}

FALLIBLE stream_purge(uint64_t *purged_count, struct transport *t, const char *name,
                      const char *filter) {
    uint64_t ignored;
    TRY(check_name(name, "stream"));
    return t->ops->stream_purge(purged_count ? purged_count : &ignored, t, name, filter);
}

FALLIBLE stream_delete_message(bool *found, struct transport *t, const char *name,
                               uint64_t sequence) {
    TRY(check_name(name, "stream"));
    return t->ops->stream_delete_message(found, t, name, sequence);
}

FALLIBLE stream_get(struct message *out, bool *found, struct transport *t, const char *name,
                    uint64_t sequence) {
    TRY(check_name(name, "stream"));
    REQUIRE(sequence > 0, E_RANGE, "stream %s: sequences count from 1", name);
    return t->ops->stream_get(out, found, t, name, sequence, NULL);
}

FALLIBLE stream_get_last(struct message *out, bool *found, struct transport *t, const char *name,
                         const char *subject) {
    TRY(check_name(name, "stream"));
    TRY(check_subject(subject));
    return t->ops->stream_get(out, found, t, name, 0, subject);
}

FALLIBLE stream_get_next(struct message *out, bool *found, struct transport *t, const char *name,
                         uint64_t sequence, const char *filter) {
    TRY(check_name(name, "stream"));
    TRY(check_subject(filter));
    return t->ops->stream_get(out, found, t, name, sequence ? sequence : 1, filter);
}

FALLIBLE publish_with_header(struct publish_ack *out, struct transport *t, const char *subject,
                             struct bytes data, const struct publish_options *options,
                             const char *header_name, const char *header_value) {
    static const struct publish_options none;
    TRY(check_subject(subject));
    return t->ops->publish(out, t, subject, data, options ? options : &none, header_name,
                           header_value);
}

FALLIBLE transport_publish(struct publish_ack *out, struct transport *t, const char *subject,
                           struct bytes data, const struct publish_options *options) {
    return publish_with_header(out, t, subject, data, options, NULL, NULL);
}

/* --- Consumers --- */

/* A server that was killed may come back with a stream shorter than what its consumer's state says was delivered (seen after a full disk).
 * Such a consumer passes over new messages up to that sequence, for ever. Consumer first, as the stream may grow in between. */
static FALLIBLE is_ahead(bool *out, struct transport *t, const struct consumer_config *config) {
    struct consumer_info consumer = {0};
    struct stream_info stream = {0};
    bool found = false;
    TRY(t->ops->consumer_info(&consumer, &found, t, config->stream, config->name));
    *out = false;
    if (found && consumer.delivered_sequence > 0) {
        TRY(t->ops->stream_info(&stream, t, config->stream));
        *out = consumer.delivered_sequence > stream.last_sequence;
    }
    return OK;
}

FALLIBLE consumer_ensure(struct transport *t, const struct consumer_config *config) {
    TRY(check_name(config->stream, "stream"));
    TRY(check_name(config->name, "consumer"));
    TRY(t->ops->consumer_ensure(t, config));
    bool ahead = false;
    TRY(is_ahead(&ahead, t, config));
    if (ahead) {
        TRY(t->ops->consumer_delete(t, config->stream, config->name));
        TRY(t->ops->consumer_ensure(t, config));
    }
    return OK;
}

FALLIBLE consumer_delete(struct transport *t, const char *stream, const char *name) {
    TRY(check_name(stream, "stream"));
    TRY(check_name(name, "consumer"));
    return t->ops->consumer_delete(t, stream, name);
}

FALLIBLE consumer_info(struct consumer_info *out, bool *found, struct transport *t,
                       const char *stream, const char *name) {
    TRY(check_name(stream, "stream"));
    TRY(check_name(name, "consumer"));
    return t->ops->consumer_info(out, found, t, stream, name);
}

FALLIBLE puller_open(struct puller **out, struct transport *t, const char *stream,
                     const char *consumer) {
    TRY(check_name(stream, "stream"));
    TRY(check_name(consumer, "consumer"));
    return t->ops->puller_open(out, t, stream, consumer);
}

FALLIBLE puller_next(struct message *out, struct puller *p, uint64_t wait_ns) {
    return p->ops->puller_next(out, p, wait_ns);
}

void puller_ahead(struct puller *p, uint32_t count, uint64_t lasts_ns) {
    if (p->ops->puller_ahead) {
        p->ops->puller_ahead(p, count, lasts_ns);
    }
}

void puller_wake(struct puller *p) {
    p->ops->puller_wake(p);
}

void puller_close(struct puller **p) {
    if (*p) {
        (*p)->ops->puller_close(*p);
        *p = NULL;
    }
}

FALLIBLE transport_ack(struct transport *t, const char *ack_subject, enum ack_kind kind,
                       uint64_t delay_ns) {
    TRY(check_subject(ack_subject));
    return t->ops->ack(t, ack_subject, kind, delay_ns);
}

FALLIBLE transport_ack_sync(struct transport *t, const char *ack_subject, uint64_t wait_ns) {
    TRY(check_subject(ack_subject));
    return t->ops->ack_sync(t, ack_subject, wait_ns);
}

/* --- Ack subjects ---
 *
 *   $JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>                     9 tokens
 *   $JS.ACK.<domain>.<account>.<stream>.<consumer>.<deliveries>.….<pending>[.<random>]                       11 or more
 */
static FALLIBLE copy_token(char *out, size_t out_bytes, const char *token, size_t len) {
    REQUIRE(len > 0 && len < out_bytes, E_FORMAT, "ack subject has a name of %zu bytes", len);
    memcpy(out, token, len);
    out[len] = '\0';
    return OK;
}

static FALLIBLE token_number(uint64_t *out, const char *token, size_t len) {
    uint64_t value = 0;
    REQUIRE(len > 0 && len <= 20, E_FORMAT, "ack subject has a number of %zu digits", len);
    for (size_t i = 0; i < len; i++) {
        REQUIRE(token[i] >= '0' && token[i] <= '9', E_FORMAT,
                "ack subject has byte 0x%02x in a number", (unsigned char)token[i]);
        REQUIRE(!__builtin_mul_overflow(value, 10, &value) &&
                    !__builtin_add_overflow(value, (uint64_t)(token[i] - '0'), &value),
                E_FORMAT, "ack subject has a number above 64 bits");
    }
    *out = value;
    return OK;
}

FALLIBLE ack_subject_parse(struct ack_parts *out, const char *ack_subject) {
    enum { TOKENS_MAX = 13 };
    const char *tokens[TOKENS_MAX];
    size_t lens[TOKENS_MAX], count = 0;
    const char *at = ack_subject;
    for (; count < TOKENS_MAX; count++) {
        tokens[count] = at;
        lens[count] = strcspn(at, ".");
        at += lens[count];
        if (!*at++) {
            count++;
            break;
        }
    }
    REQUIRE((count == 9 || count >= 11) && strncmp(ack_subject, "$JS.ACK.", 8) == 0, E_FORMAT,
            "\"%.100s\" is not an ack subject", ack_subject);
    size_t first = count == 9 ? 2 : 4;
    struct ack_parts parts = {0};
    uint64_t *const numbers[] = {&parts.deliveries, &parts.stream_sequence,
                                 &parts.consumer_sequence, &parts.time_unix_ns, &parts.pending};
    TRY(copy_token(parts.stream, sizeof parts.stream, tokens[first], lens[first]));
    TRY(copy_token(parts.consumer, sizeof parts.consumer, tokens[first + 1], lens[first + 1]));
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        TRY(token_number(numbers[i], tokens[first + 2 + i], lens[first + 2 + i]));
    }
    *out = parts;
    return OK;
}
