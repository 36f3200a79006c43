/* NATS through the packaged client, which does here what it does well: the connection, plain messages, requests.
 *
 * What is known of client 3.4.1 and guarded against:
 *   - 60 reconnect attempts by default, then closed for good         → unlimited, 100 ms with jitter
 *   - publishes are buffered while disconnected and flushed in an
 *     order that breaks objects                                       → buffer size 0: they fail at once
 *   - a request in flight over a lost connection, or refused, waits
 *     to its end                                                      → our own (asking.c): ended by whatever ends it
 *   - a publish that blocks holds the connection's lock                → write deadline
 *   - a subscription destroyed while a message is being handed to it
 *     may crash                                                        → unsubscribe, one round trip, then destroy
 *   - creds logins fail once in 256                                    → three tries
 *   - permission violations are visible in the error handler only      → counted, reported, remembered
 *   - the error handler may be given a freed subscription              → it never looks at it
 *   - tls:// in an address does not make it talk TLS                   → asked for by option
 */
#include "node/transport/nats.h"

#include "node/base/clock.h"
#include "node/base/mem.h"

#include <errno.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    CONNECT_WAIT_MS = 2000,
    RECONNECT_WAIT_MS = 100,
    RECONNECT_JITTER_MS = 100,
    PING_INTERVAL_MS = 5000,
    PINGS_MISSED_MAX = 2,
    WRITE_DEADLINE_MS = 10000,
    IO_BUFFER_BYTES = 128 * 1024,
    QUIET_WAIT_MS = 2000,
    SERVERS_MAX = 16,
    URL_SHOWN_BYTES = 256,
    LOGIN_TRIES = 3
};

int64_t wait_ms(uint64_t wait_ns) {
    uint64_t ms = wait_ns / 1000000 + (wait_ns % 1000000 != 0);
    return ms == 0 ? 1 : ms > INT32_MAX ? INT32_MAX : (int64_t)ms;
}

enum err nats_error(natsStatus status, const char *doing, const char *subject) {
    const char *text = natsStatus_GetText(status);
    switch (status) {
    case NATS_TIMEOUT:
        return err_set(E_TIMEOUT, "%s %s: no answer in time", doing, subject);
    case NATS_NO_RESPONDERS:
        return err_set(E_NET, "%s %s: nobody answers there", doing, subject);
    case NATS_MAX_PAYLOAD:
        return err_set(E_LIMIT, "%s %s: larger than the server's max_payload", doing, subject);
    case NATS_NO_MEMORY:
        return err_set(E_LIMIT, "%s %s: out of memory", doing, subject);
    case NATS_INVALID_SUBJECT:
        return err_set(E_FORMAT, "%s %s: not a subject", doing, subject);
    case NATS_SLOW_CONSUMER:
        return err_set(E_QUEUE, "%s %s: messages were dropped, the reader is too slow", doing,
                       subject);
    case NATS_INSUFFICIENT_BUFFER:
    case NATS_CONNECTION_DISCONNECTED:
        return err_set(E_NET, "%s %s: not connected to the NATS server", doing, subject);
    case NATS_CONNECTION_CLOSED:
        return err_set(E_NET, "%s %s: connection closed", doing, subject);
    case NATS_NOT_PERMITTED:
        return err_set(E_NET, "the NATS server does not permit this user to publish to %s",
                       subject);
    default:
        return err_set(E_NET, "%s %s: %s", doing, subject, text);
    }
}

/* --- Callbacks: on a thread of the library; they count, remember and tell --- */

static void tell(struct nats_transport *t, enum transport_event event, const char *detail) {
    if (t->on_event) {
        t->on_event(t->event_ctx, event, detail);
    }
}

static void remember(struct nats_transport *t, const char *text) {
    LOCK_SCOPE(&t->lock);
    snprintf(t->last_error, sizeof t->last_error, "%s", text);
}

static void on_error(natsConnection *nc, natsSubscription *sub, natsStatus status, void *closure) {
    struct nats_transport *t = closure;
    const char *text = natsStatus_GetText(status);
    (void)sub; /* may be gone already */
    if (status == NATS_SLOW_CONSUMER) {
        atomic_fetch_add(&t->slow, 1);
        remember(t, text);
        tell(t, TRANSPORT_SLOW_CONSUMER, text);
        return;
    }
    atomic_fetch_add(&t->errors, 1);
    char copy[256] = "";
    natsStatus its_status = NATS_OK;
    const char *its = nats_GetLastError(&its_status), *last = NULL;
    if (its && its[0] && its_status == status) { /* this very error's */
        snprintf(copy, sizeof copy, "%s", its);
    } else if (nc && natsConnection_GetLastError(nc, &last) != NATS_OK && last) {
        snprintf(copy, sizeof copy, "%s", last); /* perhaps a later one's */
    }
    remember(t, copy[0] ? copy : text);
    if (status == NATS_NOT_PERMITTED || strstr(copy, "ermissions")) {
        askings_refused(t, copy);
        tell(t, TRANSPORT_REFUSED, copy[0] ? copy : text);
    }
}

static void on_disconnect(natsConnection *nc, void *closure) {
    struct nats_transport *t = closure;
    (void)nc;
    atomic_fetch_add(&t->losses, 1);
    askings_lost(t, NATS_CONNECTION_DISCONNECTED);
    tell(t, TRANSPORT_DISCONNECTED, "connection to the NATS server lost");
}

static void on_reconnect(natsConnection *nc, void *closure) {
    struct nats_transport *t = closure;
    (void)nc;
    atomic_fetch_add(&t->reconnects, 1);
    lock_take(&t->lock);
    t->answers_refused = false; /* asked for again, and refused again if so */
    lock_give(&t->lock);
    tell(t, TRANSPORT_RECONNECTED, "connected to the NATS server again");
}

static void on_closed(natsConnection *nc, void *closure) {
    struct nats_transport *t = closure;
    (void)nc;
    askings_lost(t, NATS_CONNECTION_CLOSED);
    tell(t, TRANSPORT_CLOSED, "connection closed");
    LOCK_SCOPE(&t->lock);
    t->closed = true;
    condition_wake_one(&t->closed_cond);
}

/* --- Who we are --- */

FALLIBLE transport_certificate_name(char *out, size_t out_bytes, const char *cert_file) {
    BIO *file = BIO_new_file(cert_file, "r");
    X509 *certificate = file ? PEM_read_bio_X509(file, NULL, NULL, NULL) : NULL;
    BIO_free(file);
    REQUIRE(certificate, E_USAGE, "client certificate %s: not there, or not PEM", cert_file);
    out[0] = '\0';
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, out,
                              (int)out_bytes);
    X509_free(certificate);
    return OK;
}

/* A certificate's name, "worker.w1", becomes the inbox prefix "_INBOX.worker.w1": what the server permits this name. Other
 * names, or none: "_INBOX". */
static FALLIBLE set_inbox_prefix(struct nats_transport *t, const struct transport_options *in) {
    char name[INBOX_BYTES_MAX - 8] = "";
    if (in->inbox_prefix) {
        REQUIRE(strlen(in->inbox_prefix) < sizeof t->inbox_prefix && in->inbox_prefix[0], E_USAGE,
                "inbox prefix has %zu bytes, want 1 to %zu", strlen(in->inbox_prefix),
                sizeof t->inbox_prefix - 1);
        snprintf(t->inbox_prefix, sizeof t->inbox_prefix, "%s", in->inbox_prefix);
        return OK;
    }
    if (in->tls.cert_file) {
        TRY(transport_certificate_name(name, sizeof name, in->tls.cert_file));
    }
    bool plain = subject_check_foreign(name, "name") == OK;
    snprintf(t->inbox_prefix, sizeof t->inbox_prefix, "_INBOX%s%s", plain ? "." : "",
             plain ? name : "");
    return OK;
}

static bool is_loopback(const char *url) {
    const char *host = strstr(url, "://"), *at;
    host = host ? host + 3 : url;
    at = strrchr(host, '@');
    host = at ? at + 1 : host;
    size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
    return (len == 9 && strncmp(host, "localhost", 9) == 0) ||
           (len == 5 && strncmp(host, "[::1]", 5) == 0) ||
           (len >= 7 && strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == len);
}

static bool asks_for_tls(const char *url) {
    return strncmp(url, "tls://", 6) == 0;
}

static FALLIBLE check_plaintext(const char *url, const struct transport_options *in) {
    bool tls = in->tls.ca_file || asks_for_tls(url);
    char shown[URL_SHOWN_BYTES];
    transport_url_shown(shown, sizeof shown, url);
    REQUIRE(tls || in->plaintext || is_loopback(url), E_USAGE,
            "%.200s is another machine: give tls_ca, tls_cert and tls_key, or say plaintext = yes",
            shown);
    return OK;
}

/* The library connects to whatever port a web address names, and says that no server is there. */
static FALLIBLE check_scheme(const char *url) {
    char shown[URL_SHOWN_BYTES];
    transport_url_shown(shown, sizeof shown, url);
    REQUIRE(!strstr(url, "://") || asks_for_tls(url) || !strncmp(url, "nats://", 7), E_USAGE,
            "%.200s is no address of a NATS server: nats://HOST:PORT or tls://HOST:PORT", shown);
    return OK;
}

/* --- Options --- */

#define CLOSED_WAIT_NS (5 * SECOND_NS) /* for the last callback */

#define SET(call)                                                                                  \
    do {                                                                                           \
        natsStatus set_status_ = (call);                                                           \
        if (set_status_ != NATS_OK) {                                                              \
            FAIL(E_USAGE, "NATS options: %s: %s", #call, natsStatus_GetText(set_status_));         \
        }                                                                                          \
    } while (0)

static FALLIBLE set_servers(natsOptions *o, const char *url, const struct transport_options *in) {
    char copy[1024];
    const char *servers[SERVERS_MAX];
    int count = 0;
    REQUIRE(strlen(url) < sizeof copy, E_USAGE, "server URL is longer than %zu bytes",
            sizeof copy - 1);
    memcpy(copy, url, strlen(url) + 1);
    char *rest = copy, *one;
    while ((one = strsep(&rest, ","))) {
        while (*one == ' ') {
            one++;
        }
        if (*one) {
            REQUIRE(count < SERVERS_MAX, E_USAGE, "more than %d server URLs", SERVERS_MAX);
            TRY(check_scheme(one));
            TRY(check_plaintext(one, in));
            if (asks_for_tls(one)) { /* the client takes the word for no more than a name */
                SET(natsOptions_SetSecure(o, true));
            }
            servers[count++] = one;
        }
    }
    REQUIRE(count > 0, E_USAGE, "server URL is empty");
    natsStatus s = natsOptions_SetServers(o, servers, count);
    char shown[URL_SHOWN_BYTES];
    transport_url_shown(shown, sizeof shown, url);
    REQUIRE(s == NATS_OK, E_USAGE, "server URL \"%.200s\": %s", shown, natsStatus_GetText(s));
    return OK;
}

/* The library says of most files only that it failed. */
static FALLIBLE can_read(const char *path, const char *what) {
    REQUIRE(!path || !access(path, R_OK), E_USAGE, "%s %s: %s", what, path, strerror(errno));
    return OK;
}

static FALLIBLE set_login(natsOptions *o, const struct transport_options *in) {
    TRY(can_read(in->creds_file, "credentials file"));
    TRY(can_read(in->tls.ca_file, "CA file"));
    TRY(can_read(in->tls.cert_file, "client certificate"));
    TRY(can_read(in->tls.key_file, "key of the client certificate"));
    if (in->user) {
        SET(natsOptions_SetUserInfo(o, in->user, in->password ? in->password : ""));
    }
    if (in->token) {
        SET(natsOptions_SetToken(o, in->token));
    }
    if (in->creds_file) {
        natsStatus s = natsOptions_SetUserCredentialsFromFiles(o, in->creds_file, NULL);
        REQUIRE(s == NATS_OK, E_USAGE, "credentials file %s: %s", in->creds_file,
                natsStatus_GetText(s));
    }
    if (in->tls.ca_file) {
        SET(natsOptions_SetSecure(o, true));
        natsStatus s = natsOptions_LoadCATrustedCertificates(o, in->tls.ca_file);
        REQUIRE(s == NATS_OK, E_USAGE, "CA file %s: %s", in->tls.ca_file, natsStatus_GetText(s));
    }
    if (in->tls.cert_file) {
        REQUIRE(in->tls.key_file, E_USAGE, "client certificate %s without its key",
                in->tls.cert_file);
        natsStatus s = natsOptions_LoadCertificatesChain(o, in->tls.cert_file, in->tls.key_file);
        REQUIRE(s == NATS_OK, E_USAGE, "client certificate %s: %s", in->tls.cert_file,
                natsStatus_GetText(s));
    }
    if (in->tls.host) {
        SET(natsOptions_SetExpectedHostname(o, in->tls.host));
    }
    return OK;
}

static FALLIBLE set_options(struct nats_transport *t, const struct transport_options *in) {
    SET(natsOptions_Create(&t->options));
    natsOptions *o = t->options;
    TRY(set_servers(o, in->url ? in->url : NATS_DEFAULT_URL, in));
    TRY(set_login(o, in));
    if (in->name) {
        SET(natsOptions_SetName(o, in->name));
    }
    SET(natsOptions_SetCustomInboxPrefix(o, t->inbox_prefix));
    SET(natsOptions_SetTimeout(o, CONNECT_WAIT_MS));
    SET(natsOptions_SetMaxReconnect(o, -1));
    SET(natsOptions_SetReconnectWait(o, RECONNECT_WAIT_MS));
    SET(natsOptions_SetReconnectJitter(o, RECONNECT_JITTER_MS, RECONNECT_JITTER_MS));
    SET(natsOptions_SetReconnectBufSize(o, 0));
    SET(natsOptions_SetPingInterval(o, PING_INTERVAL_MS));
    SET(natsOptions_SetMaxPingsOut(o, PINGS_MISSED_MAX));
    SET(natsOptions_SetWriteDeadline(o, WRITE_DEADLINE_MS));
    SET(natsOptions_SetIOBufSize(o, IO_BUFFER_BYTES));
    SET(natsOptions_SetSendAsap(o, in->send_asap));
    SET(natsOptions_SetErrorHandler(o, on_error, t));
    SET(natsOptions_SetDisconnectedCB(o, on_disconnect, t));
    SET(natsOptions_SetReconnectedCB(o, on_reconnect, t));
    SET(natsOptions_SetClosedCB(o, on_closed, t));
    return OK;
}

/* --- Open and close --- */

static FALLIBLE connect_until(struct nats_transport *t, const struct transport_options *in) {
    char url[URL_SHOWN_BYTES];
    transport_url_shown(url, sizeof url, in->url ? in->url : NATS_DEFAULT_URL);
    uint64_t deadline = clock_ns() + in->open_wait_ns;
    for (unsigned logins = 1;;) {
        natsStatus s = natsConnection_Connect(&t->nc, t->options);
        if (s == NATS_OK) {
            return OK;
        }
        t->nc = NULL;
        bool login = s == NATS_CONNECTION_AUTH_FAILED || s == NATS_NOT_PERMITTED;
        if (login && logins++ < LOGIN_TRIES && (in->creds_file || in->token)) {
            continue;
        }
        if (login || clock_ns() >= deadline) {
            FAIL(E_NET, "cannot connect to the NATS server at %.200s: %s", url,
                 natsStatus_GetText(s));
        }
        char why[ERR_DETAIL_BYTES];
        snprintf(why, sizeof why, "cannot connect to the NATS server at %.200s: %s", url,
                 natsStatus_GetText(s));
        REQUIRE(!in->enough || !in->enough(in->enough_ctx, why), E_CANCELLED,
                "ended while it waited for the NATS server at %.200s", url);
        clock_sleep_ns(RECONNECT_WAIT_MS * UINT64_C(1000000));
    }
}

/* After this no callback runs any more. */
static void close_connection(struct nats_transport *t) {
    if (t->nc) {
        struct timespec until = clock_wait_until(CLOSED_WAIT_NS);
        natsConnection_Close(t->nc);
        lock_take(&t->lock);
        while (!t->closed && condition_wait_until(&t->closed_cond, &t->lock, &until)) {
        }
        lock_give(&t->lock);
        askings_close(t);
        natsConnection_Destroy(t->nc);
        t->nc = NULL;
    }
}

static void nats_free(struct nats_transport *t) {
    js_pipes_free(t);
    close_connection(t);
    natsOptions_Destroy(t->options);
    condition_done(&t->closed_cond);
    lock_done(&t->lock);
    mem_free(t);
}

FALLIBLE transport_check(const struct transport_options *options) {
    struct nats_transport t = {0};
    REQUIRE(nats_Open(-1) == NATS_OK, E_INTERNAL, "the NATS library does not start");
    TRY(set_inbox_prefix(&t, options));
    enum err err = set_options(&t, options);
    natsOptions_Destroy(t.options);
    return err;
}

FALLIBLE transport_open(struct transport **out, const struct transport_options *options) {
    struct nats_transport *t = NULL;
    REQUIRE(nats_Open(-1) == NATS_OK, E_INTERNAL, "the NATS library does not start");
    TRY(mem_new(&t, 1, sizeof *t));
    t->base.ops = &nats_ops;
    t->on_event = options->on_event;
    t->event_ctx = options->event_ctx;
    t->request_wait_ns =
        options->request_wait_ns ? options->request_wait_ns : REQUEST_WAIT_DEFAULT_S * SECOND_NS;
    lock_init(&t->lock, LOCK_TRANSPORT);
    condition_init(&t->closed_cond);
    enum err err = set_inbox_prefix(t, options);
    if (err == OK) {
        err = set_options(t, options);
    }
    if (err == OK) {
        err = connect_until(t, options);
    }
    if (err == OK) {
        err = askings_open(t);
    }
    if (err != OK) {
        nats_free(t);
        return err;
    }
    *out = &t->base;
    return OK;
}

static void nats_close(struct transport *base) {
    nats_free(nats_of(base));
}

static uint64_t nats_losses(struct transport *base) {
    return atomic_load(&nats_of(base)->losses);
}

static bool nats_connected(struct transport *base) {
    return natsConnection_Status(nats_of(base)->nc) == NATS_CONN_STATUS_CONNECTED;
}

static void nats_health(struct transport_health *out, struct transport *base) {
    struct nats_transport *t = nats_of(base);
    *out = (struct transport_health){
        .connected = nats_connected(base),
        .disconnects_count = atomic_load(&t->losses),
        .reconnects_count = atomic_load(&t->reconnects),
        .slow_count = atomic_load(&t->slow),
        .refused_count = atomic_load(&t->refused),
        .errors_count = atomic_load(&t->errors),
        .payload_bytes_max = (uint64_t)natsConnection_GetMaxPayload(t->nc),
    };
    natsStatistics *stats = NULL;
    if (natsStatistics_Create(&stats) == NATS_OK) {
        if (natsConnection_GetStats(t->nc, stats) == NATS_OK) {
            natsStatistics_GetCounts(stats, &out->received_count, &out->received_bytes,
                                     &out->sent_count, &out->sent_bytes, NULL);
        }
        natsStatistics_Destroy(stats);
    }
    LOCK_SCOPE(&t->lock);
    memcpy(out->last_error, t->last_error, sizeof out->last_error);
}

/* --- Messages --- */

void nats_message(struct message *out, natsMsg *msg) {
    const char *subject = natsMsg_GetSubject(msg), *reply = natsMsg_GetReply(msg);
    *out = (struct message){
        .subject = subject ? subject : "",
        .reply = reply ? reply : "",
        .data = bytes_of(natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg)),
        .handle = msg,
        .ops = &nats_ops,
    };
}

const char *nats_header(natsMsg *msg, const char *name) {
    const char *value = NULL;
    return natsMsgHeader_Get(msg, name, &value) == NATS_OK ? value : NULL;
}

static void nats_message_done(struct message *m) {
    natsMsg_Destroy(m->handle);
}

static const char *nats_message_header(const struct message *m, const char *name) {
    return nats_header(m->handle, name);
}

/* --- Core --- */

static FALLIBLE nats_send(struct transport *base, const char *subject, struct bytes data) {
    natsStatus s = natsConnection_Publish(nats_of(base)->nc, subject, data.ptr, (int)data.len);
    return s == NATS_OK ? OK : nats_error(s, "publish to", subject);
}

/* No stream has this name: each that takes the subject refuses the message, in all versions of the server before anything is stored. */
static FALLIBLE nats_send_unkept(struct transport *base, const char *subject, struct bytes data) {
    natsMsg *msg = NULL;
    natsStatus s = natsMsg_Create(&msg, subject, NULL, (const char *)data.ptr, (int)data.len);
    if (s == NATS_OK) {
        s = natsMsgHeader_Set(msg, "Nats-Expected-Stream", "-");
    }
    if (s == NATS_OK) {
        s = natsConnection_PublishMsg(nats_of(base)->nc, msg);
    }
    natsMsg_Destroy(msg);
    return s == NATS_OK ? OK : nats_error(s, "publish to", subject);
}

static FALLIBLE nats_flush(struct transport *base, uint64_t wait_ns) {
    struct nats_transport *t = nats_of(base);
    natsStatus s =
        natsConnection_FlushTimeout(t->nc, wait_ms(wait_ns ? wait_ns : t->request_wait_ns));
    return s == NATS_OK ? OK : nats_error(s, "flush", "");
}

static FALLIBLE nats_request(struct message *out, struct transport *base, const char *subject,
                             struct bytes data, uint64_t wait_ns) {
    struct nats_transport *t = nats_of(base);
    struct asking a;
    natsMsg *reply = NULL;
    asking_begin(&a, t, subject);
    natsStatus s = natsConnection_PublishRequest(t->nc, subject, a.reply, data.ptr, (int)data.len);
    s = asking_end(&reply, &a, s, wait_ns ? wait_ns : t->request_wait_ns);
    if (s != NATS_OK) {
        return asking_error(&a, s, "request to");
    }
    nats_message(out, reply);
    return OK;
}

struct nats_subscription {
    struct subscription base;
    struct nats_transport *t; /* lent */
    natsSubscription *sub;    /* owned */
    transport_handler *handler;
    void *handler_ctx;
    struct lock lock;
    struct condition quiet_cond;
    bool quiet; /* [lock] no handler runs any more */
};

static void on_message(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *closure) {
    struct nats_subscription *s = closure;
    struct message m;
    (void)nc;
    (void)sub;
    nats_message(&m, msg);
    s->handler(s->handler_ctx, &m);
    message_done(&m);
}

static void on_quiet(void *closure) {
    struct nats_subscription *s = closure;
    LOCK_SCOPE(&s->lock);
    s->quiet = true;
    condition_wake_one(&s->quiet_cond);
}

static natsStatus subscribe(struct nats_subscription *s, const char *subject,
                            const struct subscribe_options *o) {
    natsConnection *nc = s->t->nc;
    if (o->handler) {
        return o->queue_group ? natsConnection_QueueSubscribe(&s->sub, nc, subject, o->queue_group,
                                                              on_message, s)
                              : natsConnection_Subscribe(&s->sub, nc, subject, on_message, s);
    }
    return o->queue_group ? natsConnection_QueueSubscribeSync(&s->sub, nc, subject, o->queue_group)
                          : natsConnection_SubscribeSync(&s->sub, nc, subject);
}

FALLIBLE nats_listen(struct nats_subscription **out, struct nats_transport *t, const char *subject,
                     const struct subscribe_options *o) {
    struct nats_subscription *s = NULL;
    TRY(mem_new(&s, 1, sizeof *s));
    s->base.ops = &nats_ops;
    s->t = t;
    s->handler = o->handler;
    s->handler_ctx = o->handler_ctx;
    lock_init(&s->lock, LOCK_TRANSPORT);
    condition_init(&s->quiet_cond);
    natsStatus status = subscribe(s, subject, o);
    if (status == NATS_OK && o->handler) {
        status = natsSubscription_SetOnCompleteCB(s->sub, on_quiet, s);
    }
    if (status == NATS_OK) {
        status = natsSubscription_SetPendingLimits(
            s->sub, o->pending_max ? (int)o->pending_max : PENDING_DEFAULT, -1);
    }
    if (status != NATS_OK) {
        natsSubscription_Destroy(s->sub);
        condition_done(&s->quiet_cond);
        lock_done(&s->lock);
        mem_free(s);
        return nats_error(status, "subscribe to", subject);
    }
    *out = s;
    return OK;
}

static FALLIBLE nats_subscribe(struct subscription **out, struct transport *base,
                               const char *subject, const struct subscribe_options *o) {
    struct nats_subscription *s = NULL;
    TRY(nats_listen(&s, nats_of(base), subject, o));
    *out = &s->base;
    return OK;
}

static FALLIBLE nats_subscription_next(struct message *out, struct subscription *base,
                                       uint64_t wait_ns) {
    struct nats_subscription *s = (struct nats_subscription *)base;
    natsMsg *msg = NULL;
    natsStatus status = natsSubscription_NextMsg(&msg, s->sub, wait_ns ? wait_ms(wait_ns) : 0);
    if (status == NATS_TIMEOUT) {
        FAIL(E_TIMEOUT, "no message on the subscription in time");
    }
    if (status != NATS_OK) {
        return nats_error(status, "next message of", "a subscription");
    }
    nats_message(out, msg);
    return OK;
}

static void unsubscribe(struct nats_transport *t, natsSubscription *sub) {
    natsSubscription_Unsubscribe(sub);
    /* The answer to this comes after every message that was on its way. Without a connection none is. */
    if (nats_connected(&t->base)) {
        natsConnection_FlushTimeout(t->nc, QUIET_WAIT_MS);
    }
}

void nats_listen_over(struct nats_subscription *s) {
    if (s->handler) {
        lock_take(&s->lock);
        while (!s->quiet) {
            condition_wait(&s->quiet_cond, &s->lock);
        }
        lock_give(&s->lock);
    }
    natsSubscription_Destroy(s->sub);
    condition_done(&s->quiet_cond);
    lock_done(&s->lock);
    mem_free(s);
}

static void nats_subscription_close(struct subscription *base) {
    struct nats_subscription *s = (struct nats_subscription *)base;
    unsubscribe(s->t, s->sub);
    nats_listen_over(s);
}

void nats_inbox(char out[TRANSPORT_INBOX_BYTES], struct transport *base) {
    char nuid[NUID_BYTES];
    transport_nuid(nuid);
    snprintf(out, TRANSPORT_INBOX_BYTES, "%s.%s", nats_of(base)->inbox_prefix, nuid);
}

FALLIBLE nats_subscribe_inbox(natsSubscription **out, struct nats_transport *t, const char *inbox) {
    char filter[REPLY_BYTES];
    natsSubscription *sub = NULL;
    snprintf(filter, sizeof filter, "%s.*", inbox);
    natsStatus s = natsConnection_SubscribeSync(&sub, t->nc, filter);
    if (s == NATS_OK) {
        s = natsSubscription_SetPendingLimits(sub, -1, -1);
    }
    if (s != NATS_OK) {
        natsSubscription_Destroy(sub);
        return nats_error(s, "subscribe to", filter);
    }
    *out = sub;
    return OK;
}

void nats_inbox_close(struct nats_transport *t, natsSubscription *sub) {
    natsMsg *msg = NULL;
    unsubscribe(t, sub);
    while (natsSubscription_NextMsg(&msg, sub, 0) == NATS_OK) {
        natsMsg_Destroy(msg);
        msg = NULL;
    }
    natsSubscription_Destroy(sub);
}

const struct transport_ops nats_ops = {
    .close = nats_close,
    .health = nats_health,
    .losses = nats_losses,
    .connected = nats_connected,
    .inbox = nats_inbox,
    .message_done = nats_message_done,
    .message_header = nats_message_header,
    .send = nats_send,
    .send_unkept = nats_send_unkept,
    .flush = nats_flush,
    .subscribe = nats_subscribe,
    .subscription_next = nats_subscription_next,
    .subscription_close = nats_subscription_close,
    .request = nats_request,
    .stream_ensure = js_stream_ensure,
    .stream_delete = js_stream_delete,
    .stream_info = js_stream_info,
    .stream_purge = js_stream_purge,
    .stream_delete_message = js_stream_delete_message,
    .stream_get = js_stream_get,
    .publish = js_publish,
    .consumer_ensure = js_consumer_ensure,
    .consumer_delete = js_consumer_delete,
    .consumer_info = js_consumer_info,
    .puller_open = js_puller_open,
    .puller_next = js_puller_next,
    .puller_wake = js_puller_wake,
    .puller_ahead = js_puller_ahead,
    .puller_close = js_puller_close,
    .ack = js_ack,
    .ack_sync = js_ack_sync,
    .pipe_open = js_pipe_open,
    .pipe_publish = js_pipe_publish,
    .pipe_get = js_pipe_get,
    .pipe_next = js_pipe_next,
    .pipe_close = js_pipe_close,
    .follower_open = js_follower_open,
    .follower_next = js_follower_next,
    .follower_close = js_follower_close,
};
