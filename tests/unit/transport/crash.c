/* A real server that is killed, restarted, emptied, misconfigured: what is in flight ends well or with one clear error.
 *
 * The work runs on a second thread; the claim's own thread kills and starts the server, since the server dies with the
 * thread that started it.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/transport/transport.h"
#include "tests/check/command.h"
#include "tests/check/server.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

static struct check_server server;

static struct bytes text(const char *s) {
    return bytes_of(s, strlen(s));
}

static struct transport *begin(const struct check_server_options *options) {
    struct transport *t = NULL;
    check_server_stop(&server); /* what an earlier failed claim left */
    check_server_start(&server, options);
    CHECK_OK(transport_open(
        &t, &(struct transport_options){
                .url = server.url, .name = "crash", .request_wait_ns = 3 * S, .send_asap = true}));
    return t;
}

static void end(struct transport *t) {
    transport_close(&t);
    check_server_stop(&server);
}

static void wait_connected(struct transport *t) {
    struct transport_health h = {0};
    for (int i = 0; i < 1000 && !h.connected; i++) {
        clock_sleep_ns(10 * MS);
        transport_health(&h, t);
    }
    CHECK(h.connected);
}

static void make_queue(struct transport *t) {
    CHECK_OK(stream_ensure(
        t,
        &(struct stream_config){.name = "Q", .subjects = {"q.>"}, .retention = STREAM_WORK_QUEUE}));
    CHECK_OK(consumer_ensure(
        t, &(struct consumer_config){.stream = "Q", .name = "c", .ack_wait_ns = 60 * S}));
}

/* --- One operation on a thread of its own --- */

struct work {
    struct transport *t;
    struct puller *p;
    struct object_info info;
    const uint8_t *data;
    size_t data_len, chunk;
    uint8_t *got;
    atomic_size_t moved; /* bytes so far */
    atomic_bool done;
    enum err err;
    struct fault fault;
    struct message m;
    pthread_t thread;
};

static void start(struct work *w, void *(*entry)(void *)) {
    CHECK_EQ(0, pthread_create(&w->thread, NULL, entry, w));
}

static void finish(struct work *w, enum err err) {
    w->err = err;
    w->fault = fault_of(err);
    atomic_store(&w->done, true);
}

static enum err join(struct work *w) {
    pthread_join(w->thread, NULL);
    return w->err == OK ? OK : fault_raise(&w->fault);
}

static void wait_moved(struct work *w, size_t bytes) {
    for (int i = 0; i < 2000 && atomic_load(&w->moved) < bytes && !atomic_load(&w->done); i++) {
        clock_sleep_ns(2 * MS);
    }
    CHECK_MSG(atomic_load(&w->moved) >= bytes && !atomic_load(&w->done),
              "moved %zu of %zu bytes before the kill", atomic_load(&w->moved), bytes);
}

/* --- Fetch --- */

static void *pull_entry(void *arg) {
    struct work *w = arg;
    finish(w, puller_next(&w->m, w->p, 20 * S));
    return NULL;
}

static void claim_fetch(void) {
    for (int graceful = 0; graceful < 2; graceful++) {
        struct transport *t = begin(NULL);
        struct work w = {.t = t};
        struct publish_ack ack;
        make_queue(t);
        CHECK_OK(puller_open(&w.p, t, "Q", "c"));
        start(&w, pull_entry);
        clock_sleep_ns(500 * MS);
        if (graceful) {
            check_server_down(&server);
        } else {
            check_server_kill(&server);
        }
        clock_sleep_ns(700 * MS);
        check_server_up(&server, false);
        wait_connected(t);
        uint64_t published = clock_ns();
        CHECK_OK(transport_publish(&ack, t, "q.a", text("after"), NULL));
        CHECK_OK(join(&w));
        CHECK_MSG(clock_ns() - published < 4 * S, "fetched %llu ms after publication",
                  (unsigned long long)((clock_ns() - published) / MS));
        CHECK_MEM("after", w.m.data.ptr, 5);
        CHECK_OK(transport_ack_sync(t, w.m.reply, 0));
        message_done(&w.m);
        puller_close(&w.p);
        end(t);
    }
}

static void claim_held(void) {
    struct transport *t = begin(NULL);
    struct puller *p = NULL;
    struct publish_ack ack;
    struct message m, none;
    make_queue(t);
    CHECK_OK(puller_open(&p, t, "Q", "c"));
    CHECK_OK(transport_publish(&ack, t, "q.a", text("held"), NULL));
    CHECK_OK(puller_next(&m, p, 2 * S));
    check_server_kill(&server);
    clock_sleep_ns(300 * MS);
    struct transport_health h;
    transport_health(&h, t);
    CHECK(!h.connected && h.disconnects_count == 1);
    uint64_t start_ns = clock_ns(); /* while it is down everything fails at once */
    CHECK_ERR(E_NET, transport_publish(&ack, t, "q.a", text("x"), NULL));
    CHECK_ERR(E_NET, transport_ack(t, m.reply, ACK_PROGRESS, 0));
    CHECK_ERR(E_NET, transport_ack_sync(t, m.reply, 0));
    CHECK_ERR(E_NET, transport_send(t, "x.y", text("x")));
    CHECK(clock_ns() - start_ns < S);
    CHECK_ERR(E_NET, puller_next(&none, p, 300 * MS));
    check_server_up(&server, false);
    wait_connected(t);
    CHECK_OK(transport_ack(t, m.reply, ACK_PROGRESS, 0));
    enum err early = puller_next(&none, p, 500 * MS);
    if (early == OK) { /* the server died before it had written down that it delivered */
        CHECK_EQ(4, none.data.len);
        CHECK_MEM("held", none.data.ptr, 4);
        message_done(&none);
    } else {
        CHECK_EQ(E_TIMEOUT, early); /* nothing else comes */
    }
    CHECK_OK(transport_ack_sync(t, m.reply, 0));
    struct stream_info info;
    CHECK_OK(stream_info(&info, t, "Q"));
    CHECK_EQ(0, info.messages_count); /* nothing that failed was sent after all */
    message_done(&m);
    puller_close(&p);
    end(t);
}

/* What a frozen process asked for ends before what it was given is delivered again: then others get it. */
static void claim_frozen(void) {
    struct transport *t = begin(NULL);
    struct puller *frozen = NULL, *other = NULL;
    struct publish_ack ack;
    struct message m;
    make_queue(t);
    CHECK_OK(puller_open(&frozen, t, "Q", "c"));
    CHECK_OK(puller_open(&other, t, "Q", "c"));
    puller_ahead(frozen, 8, 2750 * MS);
    CHECK_ERR(E_TIMEOUT, puller_next(&m, frozen, 100 * MS));
    clock_sleep_ns(3 * S);
    CHECK_OK(transport_publish(&ack, t, "q.a", text("for others"), NULL));
    CHECK_OK(puller_next(&m, other, 2 * S));
    message_done(&m);
    puller_close(&frozen);
    puller_close(&other);
    end(t);
}

/* --- A stream that comes back shorter --- */

/* What a crash with a full disk leaves: the stream's messages are gone, the consumer's state is not. */
static void lose_messages(void) {
    char dir[600], path[900];
    snprintf(dir, sizeof dir, "%s/store/jetstream/$G/streams/Q/msgs", server.dir);
    DIR *d = opendir(dir);
    CHECK_MSG(d, "no folder %s", dir);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
            CHECK_EQ(0, unlink(path));
        }
    }
    closedir(d);
}

static void claim_ahead(void) {
    struct transport *t = begin(NULL);
    struct puller *p = NULL;
    struct publish_ack ack;
    struct message m;
    make_queue(t);
    CHECK_OK(puller_open(&p, t, "Q", "c"));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(transport_publish(&ack, t, "q.a", text("old"), NULL));
        CHECK_OK(puller_next(&m, p, 2 * S));
        CHECK_OK(transport_ack_sync(t, m.reply, 0));
        message_done(&m);
    }
    CHECK(check_server_down(&server));
    lose_messages();
    check_server_up(&server, false);
    wait_connected(t);
    CHECK_OK(transport_publish(&ack, t, "q.a", text("new"), NULL));
    CHECK_EQ(1, ack.sequence);
    CHECK_ERR(E_TIMEOUT, puller_next(&m, p, S)); /* passed over */
    make_queue(t);
    enum err err = E_TIMEOUT;
    for (int i = 0; i < 10 && err != OK;
         i++) { /* a pull that waited is told that its consumer is gone */
        err = puller_next(&m, p, S);
        CHECK_MSG(err == OK || err == E_NET, "%s: %s", err_name(err), err_detail());
    }
    CHECK_OK(err);
    CHECK_MEM("new", m.data.ptr, 3);
    CHECK_OK(transport_ack_sync(t, m.reply, 0));
    message_done(&m);
    puller_close(&p);
    end(t);
}

/* --- Upload and download --- */

static enum err upload(struct work *w) {
    AUTO(object_upload_close) struct object_upload *u = NULL;
    TRY(object_upload_open(&u, w->t, "B", "x"));
    for (size_t at = 0; at < w->data_len; at += w->chunk) {
        size_t len = w->data_len - at < w->chunk ? w->data_len - at : w->chunk;
        TRY(object_upload_chunk(u, bytes_of(w->data + at, len)));
        atomic_fetch_add(&w->moved, len);
        clock_sleep_ns(2 * MS);
    }
    return object_upload_commit(&w->info, u);
}

static void *upload_entry(void *arg) {
    struct work *w = arg;
    finish(w, upload(w));
    return NULL;
}

static enum err download(struct work *w) {
    AUTO(object_download_close) struct object_download *d = NULL;
    struct object_download_options o = {
        .bucket = "B", .nuid = w->info.nuid, .bytes = w->info.bytes, .sha256 = &w->info.sha256};
    TRY(object_download_open(&d, w->t, &o));
    for (bool end_seen = false; !end_seen;) {
        struct message m = {0};
        TRY(object_download_next(&m, &end_seen, d));
        if (!end_seen) {
            memcpy(w->got + atomic_load(&w->moved), m.data.ptr, m.data.len);
            atomic_fetch_add(&w->moved, m.data.len);
        }
        message_done(&m);
        clock_sleep_ns(2 * MS);
    }
    return OK;
}

static void *download_entry(void *arg) {
    struct work *w = arg;
    finish(w, download(w));
    return NULL;
}

static void claim_upload(void) {
    enum { BYTES = 48 << 20 };
    struct transport *t = begin(NULL);
    uint8_t *data = mem_alloc(BYTES);
    struct object_info info;
    bool found;
    rng_fill(check_rng(), data, BYTES);
    CHECK_OK(object_bucket_ensure(t, &(struct object_bucket_config){.bucket = "B"}));
    struct work w = {.t = t, .data = data, .data_len = BYTES, .chunk = 256 << 10};
    start(&w, upload_entry);
    wait_moved(&w, BYTES / 4);
    check_server_kill(&server);
    clock_sleep_ns(500 * MS);
    check_server_up(&server, false);
    enum err err = join(&w);
    CHECK_MSG(err == E_NET || err == E_TIMEOUT, "a broken upload gave %s", err_name(err));
    wait_connected(t);
    CHECK_OK(object_info(&info, &found, t, "B", "x"));
    CHECK(!found); /* half an object is no object */
    struct work again = {
        .t = t, .data = data, .data_len = BYTES, .chunk = 256 << 10, .got = mem_alloc(BYTES)};
    start(&again, upload_entry);
    CHECK_OK(join(&again));
    atomic_store(&again.moved, 0);
    atomic_store(&again.done, false);
    start(&again, download_entry);
    CHECK_OK(join(&again));
    CHECK_MEM(data, again.got, BYTES);
    mem_free(again.got);
    mem_free(data);
    end(t);
}

static void claim_download(void) {
    enum { BYTES = 48 << 20 };
    struct transport *t = begin(NULL);
    uint8_t *data = mem_alloc(BYTES);
    struct work w = {.t = t, .got = mem_alloc(BYTES)};
    rng_fill(check_rng(), data, BYTES);
    CHECK_OK(object_bucket_ensure(t, &(struct object_bucket_config){.bucket = "B"}));
    CHECK_OK(object_put_bytes(&w.info, t, "B", "x", bytes_of(data, BYTES)));
    start(&w, download_entry);
    wait_moved(&w, BYTES / 4);
    check_server_kill(&server);
    clock_sleep_ns(700 * MS);
    check_server_up(&server, false);
    CHECK_OK(join(&w));
    CHECK_EQ(BYTES, atomic_load(&w.moved));
    CHECK_MEM(data, w.got, BYTES);
    mem_free(w.got);
    mem_free(data);
    end(t);
}

/* --- Watches --- */

static void claim_watch(void) {
    struct transport *t = begin(NULL);
    struct kv_watch *w = NULL;
    struct kv_entry e;
    uint64_t revision;
    CHECK_OK(kv_ensure(t, &(struct kv_config){.bucket = "k"}));
    for (int i = 0; i < 5; i++) {
        CHECK_OK(kv_put(&revision, t, "k", "a", text("old")));
    }
    CHECK_OK(kv_watch_open(&w, t, "k", ">"));
    CHECK_OK(kv_watch_next(&e, NULL, w, S));
    kv_entry_done(&e);
    check_server_kill(&server);
    CHECK_ERR(E_NET, kv_watch_next(&e, NULL, w, 300 * MS));
    check_server_up(&server, false);
    wait_connected(t);
    CHECK_OK(kv_put(&revision, t, "k", "a", text("new")));
    CHECK_OK(kv_watch_next(&e, NULL, w, 3 * S));
    CHECK_EQ(revision, e.revision);
    CHECK_MEM("new", e.value.ptr, 3);
    kv_entry_done(&e);
    /* The store is lost: sequences start again, and the watch notices. */
    check_server_kill(&server);
    clock_sleep_ns(200 * MS);
    check_server_up(&server, true);
    wait_connected(t);
    CHECK_OK(kv_ensure(t, &(struct kv_config){.bucket = "k"}));
    CHECK_OK(kv_put(&revision, t, "k", "b", text("reborn")));
    CHECK_EQ(1, revision);
    CHECK_OK(kv_watch_next(&e, NULL, w, 5 * S));
    CHECK_STR("b", e.key);
    kv_entry_done(&e);
    kv_watch_close(&w);
    end(t);
}

/* --- Configurations --- */

static void claim_connect(void) {
    struct transport *t = NULL;
    struct transport_options o = {.url = "nats://127.0.0.1:1"};
    CHECK_ERR(E_NET, transport_open(&t, &o));
    CHECK_HAS(err_detail(), "cannot connect to the NATS server at nats://127.0.0.1:1");
    static const char *const no_addresses[] = {"", "http://127.0.0.1:1", "ws://127.0.0.1:1",
                                               "nats://127.0.0.1:1,https://127.0.0.1"};
    for (size_t i = 0; i < COUNT_OF(no_addresses); i++) {
        o.url = no_addresses[i];
        CHECK_ERR(E_USAGE, transport_open(&t, &o));
        CHECK_ERR(E_USAGE, transport_check(&o));
    }
    CHECK_HAS(err_detail(), "https://127.0.0.1 is no address of a NATS server: nats://HOST");
    o.url = "nats://127.0.0.1:1";
    CHECK_OK(transport_check(&o)); /* it does not connect */
    const char **const files[] = {&o.tls.ca_file, &o.creds_file, &o.tls.cert_file};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        *files[i] = "/nonexistent/file";
        CHECK_ERR(E_USAGE, transport_open(&t, &o));
        CHECK_HAS(err_detail(), "/nonexistent/file: ");
        CHECK_ERR(E_USAGE, transport_check(&o));
        *files[i] = NULL;
    }
    CHECK(t == NULL);
}

static void claim_login(void) {
    struct transport *t = NULL;
    check_server_stop(&server);
    check_server_start(&server,
                       &(struct check_server_options){
                           .config = "authorization { user: \"w\", password: \"right\" }"});
    struct transport_options o = {
        .url = server.url, .user = "w", .password = "wrong", .open_wait_ns = 20 * S};
    uint64_t start_ns = clock_ns();
    CHECK_ERR(E_NET, transport_open(&t, &o)); /* refused is refused: no waiting */
    CHECK(clock_ns() - start_ns < 5 * S);
    CHECK_HAS(err_detail(), "uth");
    o.password = "right";
    CHECK_OK(transport_open(&t, &o));
    end(t);
}

static void claim_no_jetstream(void) {
    struct transport *t = begin(&(struct check_server_options){.no_jetstream = true});
    CHECK_ERR(E_NET, kv_ensure(t, &(struct kv_config){.bucket = "k"}));
    end(t);
}

static void claim_small_payload(void) {
    struct transport *t = begin(&(struct check_server_options){.payload_bytes_max = 65536});
    struct object_info info, seen;
    struct publish_ack ack;
    bool found;
    uint8_t *data = mem_alloc(1 << 20);
    rng_fill(check_rng(), data, 1 << 20);
    make_queue(t);
    CHECK_OK(object_bucket_ensure(t, &(struct object_bucket_config){.bucket = "B"}));
    CHECK_OK(object_put_bytes(&info, t, "B", "x", bytes_of(data, 1 << 20))); /* cut smaller */
    CHECK(info.chunks_count > 16);
    struct work w = {.t = t, .info = info, .got = mem_alloc(1 << 20)};
    start(&w, download_entry);
    CHECK_OK(join(&w));
    CHECK_MEM(data, w.got, 1 << 20);
    CHECK_ERR(E_LIMIT, transport_publish(&ack, t, "q.a", bytes_of(data, 65537), NULL));
    CHECK_OK(transport_publish(&ack, t, "q.a", bytes_of(data, 65536), NULL));
    CHECK_OK(object_info(&seen, &found, t, "B", "x")); /* the connection is still good */
    mem_free(w.got);
    mem_free(data);
    end(t);
}

static atomic_int refused_events;

static void on_event(void *ctx, enum transport_event event, const char *detail) {
    (void)ctx;
    (void)detail;
    atomic_fetch_add(&refused_events, event == TRANSPORT_REFUSED);
}

static void claim_permissions(void) {
    struct transport *t = NULL;
    struct transport_health h = {0};
    check_server_stop(&server);
    check_server_start(
        &server, &(struct check_server_options){
                     .config = "authorization { users = [ { user: w, password: p, permissions: {\n"
                               "  publish: [\"ok.>\"], subscribe: [\"IN.>\"] } } ] }"});
    CHECK_OK(transport_open(&t, &(struct transport_options){.url = server.url,
                                                            .user = "w",
                                                            .password = "p",
                                                            .inbox_prefix = "IN",
                                                            .on_event = on_event}));
    atomic_store(&refused_events, 0);
    CHECK_OK(transport_send(t, "forbidden.x", text("x"))); /* the server says no later */
    CHECK_OK(transport_flush(t, 0));
    for (int i = 0; i < 200 && h.refused_count == 0; i++) {
        clock_sleep_ns(10 * MS);
        transport_health(&h, t);
    }
    CHECK_EQ(1, h.refused_count);
    CHECK_EQ(1, atomic_load(&refused_events));
    CHECK_HAS(h.last_error, "forbidden.x");
    CHECK(h.connected);
    end(t);
}

/* --- What the server refuses, it does not answer --- */

static const char few_rights[] =
    "authorization { users = [\n"
    "  { user: w, password: p, permissions: { publish: [\"ok.>\", \"$JS.API.STREAM.INFO.*\"],\n"
    "    subscribe: [\"IN.>\", \"ok.>\"] } },\n"
    "  { user: deaf, password: p, permissions: { publish: \">\", subscribe: [\"OTHER.>\"] } },\n"
    "  { user: all, password: p } ] }";

static struct transport *enter_as(const char *user) {
    struct transport *t = NULL;
    CHECK_OK(transport_open(
        &t, &(struct transport_options){
                .url = server.url, .user = user, .password = "p", .inbox_prefix = "IN"}));
    return t;
}

static void check_refused_soon(uint64_t began_ns, enum err err, const char *named) {
    uint64_t took_ns = clock_ns() - began_ns;
    CHECK_EQ(E_NET, err);
    CHECK_HAS(err_detail(), "does not permit");
    CHECK_HAS(err_detail(), named);
    CHECK_MSG(took_ns < 300 * MS, "known after %llu ms", (unsigned long long)(took_ns / MS));
}

/* Answers after what its request says, in milliseconds, with the same words; to "-", never. */
static void answer_late(void *ctx, struct message *m) {
    long wait = strtol((const char *)m->data.ptr, NULL, 10);
    clock_sleep_ns((uint64_t)wait * MS);
    IGNORE(transport_send(ctx, m->reply, m->data));
}

static struct subscription *answer_on(struct transport *t, const char *subject) {
    struct subscription *s = NULL;
    CHECK_OK(transport_subscribe(
        &s, t, subject, &(struct subscribe_options){.handler = answer_late, .handler_ctx = t}));
    CHECK_OK(transport_flush(t, 0));
    return s;
}

static void *ask_entry(void *arg) {
    struct work *w = arg;
    finish(w, transport_request(&w->m, w->t, "ok.slow", text("700 patient"), 0));
    return NULL;
}

static void *ask_refused_entry(void *arg) {
    struct work *w = arg;
    uint64_t began_ns = clock_ns();
    enum err err = transport_request(&w->m, w->t, "forbidden.other", text("x"), 0);
    w->moved = (clock_ns() - began_ns) / MS;
    finish(w, err);
    return NULL;
}

static void claim_refused(void) {
    struct message m;
    struct publish_ack ack;
    struct puller *p = NULL;
    bool found;
    check_server_stop(&server);
    check_server_start(&server, &(struct check_server_options){.config = few_rights});
    struct transport *t = enter_as("w"), *all = enter_as("all");
    make_queue(all);
    struct subscription *s = answer_on(all, "ok.slow");
    struct work patient = {.t = t};
    start(&patient, ask_entry); /* whom the refusals of others do not concern */
    clock_sleep_ns(50 * MS);
    uint64_t now = clock_ns();
    check_refused_soon(now, transport_request(&m, t, "forbidden.x", text("x"), 0), "forbidden.x");
    now = clock_ns();
    check_refused_soon(now, transport_publish(&ack, t, "q.a", text("x"), NULL), "q.a");
    now = clock_ns();
    check_refused_soon(now, stream_get_last(&m, &found, t, "Q", "q.a"), "DIRECT.GET.Q.q.a");
    now = clock_ns();
    check_refused_soon(now, transport_ack_sync(t, "$JS.ACK.Q.c.1.1.1.1.1", 0), "$JS.ACK.Q.c");
    CHECK_OK(puller_open(&p, t, "Q", "c"));
    now = clock_ns();
    check_refused_soon(now, puller_next(&m, p, 4 * S), "CONSUMER.MSG.NEXT.Q.c");
    puller_close(&p);
    for (int i = 0; i < 20; i++) { /* two at a time: each is told of its own */
        struct work other = {.t = t};
        start(&other, ask_refused_entry);
        now = clock_ns();
        check_refused_soon(now, transport_request(&m, t, "forbidden.one", text("x"), 0),
                           "forbidden.one");
        CHECK_ERR(E_NET, join(&other));
        CHECK_HAS(err_detail(), "forbidden.other");
        CHECK(other.moved < 300);
    }
    CHECK_OK(join(&patient));
    CHECK_EQ(11, patient.m.data.len);
    message_done(&patient.m);
    CHECK_OK(transport_request(&m, t, "ok.slow", text("0"), 0)); /* and all is well */
    message_done(&m);
    subscription_close(&s);
    transport_close(&all);
    end(t);
}

/* Who may not listen to its own inbox hears no answer. */
static void claim_deaf(void) {
    struct message m;
    struct publish_ack ack;
    check_server_stop(&server);
    check_server_start(&server, &(struct check_server_options){.config = few_rights});
    struct transport *t = enter_as("deaf");
    uint64_t now = clock_ns();
    enum err err = transport_request(&m, t, "nobody.x", text("x"), 0);
    CHECK_EQ(E_NET, err);
    CHECK_HAS(err_detail(), "does not permit this user to listen to IN.>");
    CHECK_ERR(E_NET, transport_publish(&ack, t, "nobody.x", text("x"), NULL));
    CHECK(clock_ns() - now < 300 * MS);
    end(t);
}

/* --- Answers that come when nobody waits for them any more --- */

static void claim_late(void) {
    struct message m;
    struct transport *t = begin(NULL), *service = NULL;
    CHECK_OK(transport_open(&service, &(struct transport_options){.url = server.url}));
    struct subscription *a = answer_on(service, "ok.a"), *b = answer_on(service, "ok.b");
    for (int i = 0; i < 5; i++) {
        CHECK_ERR(E_TIMEOUT, transport_request(&m, t, "ok.a", text("120 late"), 60 * MS));
        CHECK_OK(transport_request(&m, t, "ok.b", text("130 its own"), S)); /* late comes within */
        CHECK_EQ(11, m.data.len);
        CHECK_MEM("130 its own", m.data.ptr, 11);
        message_done(&m);
    }
    subscription_close(&a);
    subscription_close(&b);
    transport_close(&service);
    end(t);
}

static void claim_asked_over_a_loss(void) {
    struct transport *t = begin(NULL), *service = NULL;
    CHECK_OK(transport_open(&service, &(struct transport_options){.url = server.url}));
    struct subscription *s = answer_on(service, "ok.slow");
    struct work w = {.t = t};
    struct message m;
    start(&w, ask_entry);
    clock_sleep_ns(200 * MS);
    uint64_t now = clock_ns();
    check_server_kill(&server);
    CHECK_ERR(E_NET, join(&w));
    CHECK(clock_ns() - now < 300 * MS);
    check_server_up(&server, false);
    wait_connected(t);
    wait_connected(service);
    CHECK_OK(transport_flush(service, 0));
    CHECK_OK(transport_request(&m, t, "ok.slow", text("0"), 0));
    message_done(&m);
    subscription_close(&s);
    transport_close(&service);
    end(t);
}

/* A certificate for 127.0.0.1 that is its own authority, by the openssl program. */
static bool make_certificate(char *cert, char *key, size_t path_bytes) {
    char out[2000];
    snprintf(cert, path_bytes, "%s/cert.pem", server.dir);
    snprintf(key, path_bytes, "%s/key.pem", server.dir);
    const char *const argv[] = {
        "openssl", "req", "-x509", "-newkey",    "rsa:2048", "-nodes",
        "-days",   "2",   "-subj", "/CN=worker", "-addext",  "subjectAltName=IP:127.0.0.1",
        "-keyout", key,   "-out",  cert,         NULL};
    return check_command(out, sizeof out, NULL, argv) == 0;
}

static void claim_tls(void) {
    char cert[320], key[320], config[1400];
    struct transport *t = NULL;
    check_server_stop(&server);
    check_server_start(&server, NULL); /* for its folder only */
    if (!make_certificate(cert, key, sizeof cert)) {
        check_skip("no openssl program to make a certificate with");
    }
    snprintf(config, sizeof config,
             "tls { cert_file: \"%s\", key_file: \"%s\", ca_file: \"%s\", verify: true }", cert,
             key, cert);
    struct check_server plain = server;
    check_server_start(&server, &(struct check_server_options){.config = config});
    struct transport_options o = {.url = server.url,
                                  .tls = {.ca_file = cert, .cert_file = cert, .key_file = key}};
    CHECK_OK(transport_open(&t, &o));
    make_queue(t);
    transport_close(&t);
    o.tls.cert_file = NULL; /* mutual: a client without certificate stays outside */
    CHECK_ERR(E_NET, transport_open(&t, &o));
    o.tls.cert_file = cert;
    o.tls.host = "other.example";
    CHECK_ERR(E_NET, transport_open(&t, &o));
    o.tls = (struct transport_tls){.cert_file = cert};
    CHECK_ERR(E_USAGE, transport_open(&t, &o));
    check_server_stop(&server);
    check_server_stop(&plain);
}

static void *open_entry(void *arg) {
    struct work *w = arg;
    finish(w, transport_open(
                  &w->t, &(struct transport_options){.url = server.url, .open_wait_ns = 10 * S}));
    return NULL;
}

static void claim_open_waits(void) {
    struct transport *t = begin(NULL);
    transport_close(&t);
    check_server_down(&server);
    struct work w = {0};
    start(&w, open_entry);
    clock_sleep_ns(500 * MS);
    check_server_up(&server, false);
    CHECK_OK(join(&w));
    end(w.t);
}

/* --- Lives of connections and subscriptions --- */

static void *flood_entry(void *arg) {
    struct work *w = arg;
    while (!atomic_load(&w->done)) {
        IGNORE(transport_send(w->t, "flood.x", text("message")));
    }
    return NULL;
}

static void count_message(void *ctx, struct message *m) {
    atomic_fetch_add((atomic_size_t *)ctx, m->data.len);
}

static void claim_lives(void) {
    struct transport *t = begin(NULL);
    struct work w = {.t = t};
    atomic_size_t heard = 0;
    start(&w, flood_entry);
    for (int i = 0; i < 40; i++) {
        struct transport *mine = NULL;
        struct subscription *handler = NULL, *sync = NULL;
        struct message m;
        if (i % 10 == 5) {
            check_server_kill(&server);
            check_server_up(&server, false);
        }
        CHECK_OK(transport_open(
            &mine, &(struct transport_options){.url = server.url, .open_wait_ns = 5 * S}));
        CHECK_OK(transport_subscribe(
            &handler, mine, "flood.>",
            &(struct subscribe_options){.handler = count_message, .handler_ctx = &heard}));
        CHECK_OK(transport_subscribe(&sync, mine, "flood.*", NULL));
        enum err err = subscription_next(&m, sync, 100 * MS);
        CHECK(err == OK || err == E_TIMEOUT);
        if (err == OK) {
            message_done(&m);
        }
        if (i % 10 == 9) { /* closed while the server is away */
            check_server_kill(&server);
        }
        subscription_close(&handler); /* in the middle of the flood */
        size_t then = atomic_load(&heard);
        subscription_close(&sync);
        transport_close(&mine);
        CHECK_EQ(then, atomic_load(&heard));
        if (i % 10 == 9) {
            check_server_up(&server, false);
        }
    }
    CHECK(atomic_load(&heard) > 0);
    atomic_store(&w.done, true);
    CHECK_OK(join(&w));
    end(t);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a fetch outlives the server's death and its goodbye", claim_fetch},
        {"a held message survives; what fails while down is not sent later", claim_held},
        {"a puller that stands still is given nothing after three seconds", claim_frozen},
        {"a consumer that is ahead of its stream is made anew", claim_ahead},
        {"an upload that lost the server is invisible and starts again", claim_upload},
        {"a download goes on after the server's death", claim_download},
        {"a watch goes on, also over an emptied store", claim_watch},
        {"what is wrong with an address or file is said", claim_connect},
        {"a refused login is one clear error", claim_login},
        {"a server without JetStream is one clear error", claim_no_jetstream},
        {"a small max_payload cuts chunks and refuses messages", claim_small_payload},
        {"a permission violation is counted, told and named", claim_permissions},
        {"what the server refuses is known at once, to whom it concerns", claim_refused},
        {"who may not hear answers is told so at once", claim_deaf},
        {"an answer that comes too late is nobody's", claim_late},
        {"a request ends with its connection", claim_asked_over_a_loss},
        {"TLS with client certificates, and without", claim_tls},
        {"connections and subscriptions end cleanly in a flood", claim_lives},
        {"opening waits for a server that comes up", claim_open_waits},
    };
    int code = check_main(argc, argv, claims, COUNT_OF(claims));
    check_server_stop(&server);
    return code;
}
