/* What only the twin can do: hold time still, cut connections, run out of memory. */
#include "node/transport/loopback.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <stdatomic.h>
#include <string.h>

#define S UINT64_C(1000000000)

static struct bytes text(const char *s) {
    return bytes_of(s, strlen(s));
}

static void make_queue(struct transport *t, uint64_t ack_wait_ns) {
    CHECK_OK(stream_ensure(
        t,
        &(struct stream_config){.name = "Q", .subjects = {"q.>"}, .retention = STREAM_WORK_QUEUE}));
    CHECK_OK(consumer_ensure(
        t, &(struct consumer_config){.stream = "Q", .name = "c", .ack_wait_ns = ack_wait_ns}));
}

static void claim_held_clock(void) {
    struct loopback *b = NULL;
    struct transport *t = NULL;
    struct puller *p = NULL;
    struct publish_ack ack;
    struct message m, again;
    struct kv_entry e;
    uint64_t revision, now = 1000 * S;
    bool found;
    clock_hold(now);
    CHECK_OK(loopback_open(&b));
    CHECK_OK(loopback_connect(&t, b, NULL));
    make_queue(t, 15 * S);
    CHECK_OK(kv_ensure(t, &(struct kv_config){.bucket = "lead", .ttl_ns = 6 * S}));
    CHECK_OK(kv_put(&revision, t, "lead", "leader", text("a")));
    CHECK_OK(transport_publish(&ack, t, "q.a", text("x"), NULL));
    CHECK_OK(puller_open(&p, t, "Q", "c"));
    CHECK_OK(puller_next(&m, p, 0));
    clock_hold(now + 5 * S + 999999999);
    CHECK_OK(kv_get(&e, &found, t, "lead", "leader"));
    CHECK(found);
    kv_entry_done(&e);
    clock_hold(now + 6 * S);
    CHECK_OK(kv_get(&e, &found, t, "lead", "leader"));
    CHECK(!found);
    CHECK_OK(transport_ack(t, m.reply, ACK_PROGRESS, 0)); /* 15 s from here */
    clock_hold(now + 20 * S + 999999999);
    CHECK_ERR(E_TIMEOUT, puller_next(&again, p, 0));
    clock_hold(now + 21 * S);
    CHECK_OK(puller_next(&again, p, 0));
    CHECK_EQ(2, again.deliveries);
    message_done(&m);
    message_done(&again);
    puller_close(&p);
    transport_close(&t);
    loopback_close(&b);
    clock_release();
}

static atomic_int events[TRANSPORT_REFUSED + 1];

static void on_event(void *ctx, enum transport_event event, const char *detail) {
    (void)ctx;
    (void)detail;
    atomic_fetch_add(&events[event], 1);
}

static void claim_partition(void) {
    struct loopback *b = NULL;
    struct transport *t = NULL, *other = NULL;
    struct puller *p = NULL;
    struct subscription *sub = NULL;
    struct publish_ack ack;
    struct message m;
    struct transport_health h;
    memset(events, 0, sizeof events);
    CHECK_OK(loopback_open(&b));
    CHECK_OK(loopback_connect(&t, b, &(struct transport_options){.on_event = on_event}));
    CHECK_OK(loopback_connect(&other, b, NULL));
    make_queue(t, 15 * S);
    CHECK_OK(puller_open(&p, t, "Q", "c"));
    CHECK_OK(transport_subscribe(&sub, t, "core.x", NULL));
    loopback_partition(t, true);
    CHECK_ERR(E_NET, transport_publish(&ack, t, "q.a", text("x"), NULL));
    CHECK_ERR(E_NET, transport_send(t, "core.x", text("x")));
    CHECK_ERR(E_NET, puller_next(&m, p, S / 20));
    CHECK_OK(transport_publish(&ack, other, "q.a", text("durable"), NULL));
    CHECK_OK(transport_send(other, "core.x", text("lost")));
    transport_health(&h, t);
    CHECK(!h.connected && h.disconnects_count == 1 && h.reconnects_count == 0);
    loopback_partition(t, false);
    CHECK_OK(puller_next(&m, p, S));
    CHECK_MEM("durable", m.data.ptr, 7);
    message_done(&m);
    CHECK_ERR(E_TIMEOUT, subscription_next(&m, sub, S / 20));
    CHECK_EQ(1, atomic_load(&events[TRANSPORT_DISCONNECTED]));
    CHECK_EQ(1, atomic_load(&events[TRANSPORT_RECONNECTED]));
    subscription_close(&sub);
    puller_close(&p);
    transport_close(&other);
    transport_close(&t);
    loopback_close(&b);
}

static void claim_upload_over_partition(void) {
    struct loopback *b = NULL;
    struct transport *t = NULL;
    struct object_upload *u = NULL;
    struct object_info info;
    bool found;
    CHECK_OK(loopback_open(&b));
    CHECK_OK(loopback_connect(&t, b, NULL));
    CHECK_OK(object_bucket_ensure(t, &(struct object_bucket_config){.bucket = "B"}));
    CHECK_OK(object_upload_open(&u, t, "B", "x"));
    CHECK_OK(object_upload_chunk(u, text("one")));
    loopback_partition(t, true);
    loopback_partition(t, false); /* back at once: what was in flight has an unknown fate */
    CHECK_ERR(E_NET, object_upload_chunk(u, text("two")));
    CHECK_ERR(E_NET, object_upload_commit(&info, u)); /* dead for good */
    object_upload_close(&u);
    CHECK_OK(object_info(&info, &found, t, "B", "x"));
    CHECK(!found);
    struct stream_info stream;
    CHECK_OK(stream_info(&stream, t, "OBJ_B"));
    CHECK_EQ(0, stream.messages_count);
    transport_close(&t);
    loopback_close(&b);
}

static void claim_restart_forgets(void) {
    struct loopback *b = NULL;
    struct transport *t = NULL;
    struct publish_ack ack;
    struct stream_info info;
    CHECK_OK(loopback_open(&b));
    CHECK_OK(loopback_connect(&t, b, NULL));
    CHECK_OK(stream_ensure(
        t, &(struct stream_config){.name = "TEL", .subjects = {"tel.>"}, .in_memory = true}));
    CHECK_OK(transport_publish(&ack, t, "tel.a", text("x"), NULL));
    CHECK_OK(transport_send(t, "tel.a", text("core messages are copied, too")));
    CHECK_OK(stream_info(&info, t, "TEL"));
    CHECK_EQ(2, info.messages_count);
    loopback_restart(b);
    CHECK_OK(stream_info(&info, t, "TEL"));
    CHECK_EQ(0, info.messages_count);
    transport_close(&t);
    loopback_close(&b);
}

static enum err take_all(void *ctx, struct bytes chunk) {
    *(size_t *)ctx += chunk.len;
    return OK;
}

/* A day in the life of a transport. Everything it opens it closes, whatever fails. */
static enum err day(struct transport *t) {
    AUTO(puller_close) struct puller *p = NULL;
    AUTO(subscription_close) struct subscription *sub = NULL;
    AUTO(kv_watch_close) struct kv_watch *w = NULL;
    AUTO(message_done) struct message m = {0};
    AUTO(kv_entry_done) struct kv_entry e = {0};
    struct object_info info;
    struct publish_ack ack;
    uint64_t revision;
    bool won, found;
    size_t total = 0;
    TRY(stream_ensure(t, &(struct stream_config){
                             .name = "Q", .subjects = {"q.>"}, .retention = STREAM_WORK_QUEUE}));
    TRY(consumer_ensure(t, &(struct consumer_config){.stream = "Q", .name = "c", .filter = "q.a"}));
    TRY(transport_subscribe(&sub, t, "q.*", &(struct subscribe_options){.queue_group = "g"}));
    TRY(transport_publish(&ack, t, "q.a", text("x"),
                          &(struct publish_options){.message_id = "id"}));
    TRY(puller_open(&p, t, "Q", "c"));
    TRY(puller_next(&m, p, 0));
    TRY(transport_ack_sync(t, m.reply, 0));
    TRY(kv_ensure(t, &(struct kv_config){.bucket = "k"}));
    TRY(kv_watch_open(&w, t, "k", ">"));
    TRY(kv_create(&revision, &won, t, "k", "a", text("v")));
    TRY(kv_watch_next(&e, NULL, w, S));
    TRY(object_bucket_ensure(t, &(struct object_bucket_config){.bucket = "B"}));
    TRY(object_put_bytes(&info, t, "B", "x", text("content")));
    TRY(object_get(&info, &found, t, "B", "x", 100, take_all, &total));
    return total == 7 ? OK : E_INTERNAL;
}

static void claim_shown(void) {
    static const struct {
        const char *url, *shown;
    } cases[] = {
        {"nats://127.0.0.1:4222", "nats://127.0.0.1:4222"},
        {"nats://wall:secret@host:4222", "nats://wall:***@host:4222"},
        {"tls://token@host", "tls://***@host"},
        {"wall:s3:cr@t@host", "wall:***@host"},
        {"nats://a:b@one,nats://two,tls://c:d@three:1",
         "nats://a:***@one,nats://two,tls://c:***@three:1"},
        {"", ""},
    };
    char out[64], small[16];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        transport_url_shown(out, sizeof out, cases[i].url);
        CHECK_STR(cases[i].shown, out);
        transport_url_shown(small, sizeof small, cases[i].url);
        CHECK_EQ(0, strncmp(small, out, sizeof small - 1)); /* cut, never past the end */
        CHECK(strlen(small) < sizeof small);
    }
}

static void claim_no_memory(void) {
    enum { ALLOCATIONS = 300 }; /* more than a day takes */
    long failures = 0;
    for (long n = 0; n < ALLOCATIONS; n++) { /* some failures only lose a core message */
        struct loopback *b = NULL;
        struct transport *t = NULL;
        long before = mem_live_blocks();
        CHECK_OK(loopback_open(&b));
        CHECK_OK(loopback_connect(&t, b, NULL));
        mem_fail_after(n);
        enum err err = day(t);
        mem_fail_after(-1);
        transport_close(&t);
        loopback_close(&b);
        CHECK_EQ(before, mem_live_blocks());
        failures += err != OK;
        CHECK_MSG(n < ALLOCATIONS - 1 || err == OK, "still failing after %ld allocations", n);
    }
    CHECK(failures > 20); /* it does allocate, and every failure was survived */
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"addresses are shown without what proves who one is", claim_shown},
        {"with the clock held, waits end when the test says so", claim_held_clock},
        {"a partition fails calls, loses core messages and nothing else", claim_partition},
        {"an upload does not survive a lost connection", claim_upload_over_partition},
        {"a restart forgets streams in memory", claim_restart_forgets},
        {"running out of memory anywhere is survived", claim_no_memory},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
