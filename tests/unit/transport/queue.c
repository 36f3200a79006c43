/* Streams, queues and plain messages: what the design relies on, claim by claim.
 *
 * The program is linked twice, with world_loopback.c and with world_server.c; a claim that passes with one and not with
 * the other is a defect of the twin (or of what we believe of the server).
 */
#include "node/base/clock.h"
#include "tests/unit/transport/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* --- Streams and publishing --- */

static void claim_ensure(void) {
    struct transport *t = enter();
    struct stream_config c = stream_config(STREAM_WORK_QUEUE);
    c.messages_max = 10;
    CHECK_OK(stream_ensure(t, &c));
    CHECK_OK(stream_ensure(t, &c));
    c.messages_max = 20; /* an operator's limit stays, and is no error */
    CHECK_OK(stream_ensure(t, &c));
    c.retention = STREAM_LIMITS;
    CHECK_ERR(E_FORMAT, stream_ensure(t, &c));
    CHECK_HAS(err_detail(), "retention");
    c.retention = STREAM_WORK_QUEUE;
    c.subjects[0] = "elsewhere.>";
    CHECK_ERR(E_FORMAT, stream_ensure(t, &c));
    CHECK_HAS(err_detail(), "subjects");
    CHECK_OK(stream_delete(t, stream));
    CHECK_OK(stream_delete(t, stream));
    struct stream_info info;
    CHECK_ERR(E_NET, stream_info(&info, t, stream));
    leave(t);
}

static void claim_message_id(void) {
    struct transport *t = enter();
    make_stream(t, STREAM_LIMITS);
    struct publish_options o = {.message_id = "id-1"};
    struct publish_ack first, again;
    CHECK_OK(transport_publish(&first, t, subject[0], text("x"), &o));
    CHECK_EQ(PUBLISH_STORED, first.outcome);
    CHECK_OK(transport_publish(&again, t, subject[0], text("x"), &o));
    CHECK_EQ(PUBLISH_DUPLICATE, again.outcome);
    CHECK_EQ(first.sequence, again.sequence);
    CHECK_EQ(1, messages_in(t));
    o.message_id = "id-2";
    CHECK_OK(transport_publish(&again, t, subject[0], text("x"), &o));
    CHECK_EQ(PUBLISH_STORED, again.outcome);
    leave(t);
}

static void claim_message_id_after_ack(void) {
    struct transport *t = enter();
    make_stream(t, STREAM_WORK_QUEUE);
    make_consumer(t, "c", NULL, 30 * S);
    struct publish_options o = {.message_id = "once"};
    struct publish_ack ack;
    CHECK_OK(transport_publish(&ack, t, subject[0], text("x"), &o));
    struct puller *p;
    struct message m;
    CHECK_OK(puller_open(&p, t, stream, "c"));
    CHECK_OK(puller_next(&m, p, 2 * S));
    CHECK_OK(transport_ack_sync(t, m.reply, 0));
    message_done(&m);
    CHECK_EQ(0, messages_in(t));
    CHECK_OK(transport_publish(&ack, t, subject[0], text("x"), &o));
    CHECK_EQ(PUBLISH_DUPLICATE, ack.outcome); /* within the window even after the ack */
    puller_close(&p);
    leave(t);
}

static void claim_message_id_window(void) {
    struct transport *t = enter();
    struct stream_config c = stream_config(STREAM_LIMITS);
    c.duplicate_window_ns = 200 * MS;
    CHECK_OK(stream_ensure(t, &c));
    struct publish_options o = {.message_id = "w"};
    struct publish_ack ack;
    CHECK_OK(transport_publish(&ack, t, subject[0], text("x"), &o));
    clock_sleep_ns(600 * MS);
    CHECK_OK(transport_publish(&ack, t, subject[0], text("x"), &o));
    CHECK_EQ(PUBLISH_STORED, ack.outcome);
    leave(t);
}

static void claim_first_writer(void) {
    struct transport *t = enter();
    make_stream(t, STREAM_LIMITS);
    struct publish_options nothing_there = {.expect_last = true};
    struct publish_ack ack;
    CHECK_OK(transport_publish(&ack, t, subject[0], text("first"), &nothing_there));
    CHECK_EQ(PUBLISH_STORED, ack.outcome);
    uint64_t sequence = ack.sequence;
    CHECK_OK(transport_publish(&ack, t, subject[0], text("second"), &nothing_there));
    CHECK_EQ(PUBLISH_CONFLICT, ack.outcome);
    CHECK_OK(transport_publish(&ack, t, subject[1], text("other"), &nothing_there));
    CHECK_EQ(PUBLISH_STORED, ack.outcome);
    struct publish_options after = {.expect_last = true, .expect_last_sequence = sequence};
    CHECK_OK(transport_publish(&ack, t, subject[0], text("next"), &after));
    CHECK_EQ(PUBLISH_STORED, ack.outcome);
    CHECK_OK(transport_publish(&ack, t, subject[0], text("late"), &after));
    CHECK_EQ(PUBLISH_CONFLICT, ack.outcome);
    CHECK_EQ(3, messages_in(t));
    leave(t);
}

static void claim_full(void) {
    struct transport *t = enter();
    struct stream_config c = stream_config(STREAM_WORK_QUEUE);
    c.messages_max = 2;
    c.discard_new = true;
    CHECK_OK(stream_ensure(t, &c));
    struct publish_ack ack;
    struct publish_options o = {.message_id = "one"};
    CHECK_OK(transport_publish(&ack, t, subject[0], text("1"), &o));
    put(t, subject[1], "2");
    CHECK_ERR(E_QUEUE, transport_publish(&ack, t, subject[2], text("3"), NULL));
    CHECK_OK(transport_publish(&ack, t, subject[0], text("1"), &o));
    CHECK_EQ(PUBLISH_DUPLICATE, ack.outcome); /* a repeat is fine though the stream is full */
    leave(t);
}

static void claim_limits_replaced(void) {
    struct transport *t = enter();
    struct stream_config c = stream_config(STREAM_WORK_QUEUE);
    c.messages_max = 1;
    c.discard_new = true;
    CHECK_OK(stream_ensure(t, &c));
    put(t, subject[0], "1");
    c.messages_max = 2;
    CHECK_OK(stream_ensure(t, &c)); /* an operator's limit stays */
    CHECK_ERR(E_QUEUE, transport_publish(&(struct publish_ack){0}, t, subject[0], text("2"), NULL));
    c.replace_limits = true;
    CHECK_OK(stream_ensure(t, &c));
    put(t, subject[0], "2");
    CHECK_ERR(E_QUEUE, transport_publish(&(struct publish_ack){0}, t, subject[0], text("3"), NULL));
    leave(t);
}

static void claim_full_per_subject(void) {
    struct transport *t = enter();
    struct stream_config c = stream_config(STREAM_WORK_QUEUE);
    c.messages_per_subject_max = 2;
    c.discard_new_per_subject = true;
    CHECK_OK(stream_ensure(t, &c));
    struct publish_ack ack;
    put(t, subject[0], "1");
    put(t, subject[0], "2");
    CHECK_ERR(E_QUEUE, transport_publish(&ack, t, subject[0], text("3"), NULL));
    put(t, subject[1], "other lane");
    CHECK_EQ(3, messages_in(t));
    leave(t);
}

static void claim_too_large(void) {
    struct transport *t = enter();
    struct stream_config c = stream_config(STREAM_LIMITS);
    c.message_bytes_max = 100;
    CHECK_OK(stream_ensure(t, &c));
    struct publish_ack ack;
    char big[200];
    memset(big, 'x', sizeof big);
    CHECK_ERR(E_LIMIT, transport_publish(&ack, t, subject[0], bytes_of(big, sizeof big), NULL));
    CHECK_EQ(0, messages_in(t));
    leave(t);
}

static void claim_no_stream(void) {
    struct transport *t = enter();
    struct publish_ack ack;
    uint64_t start = clock_ns();
    CHECK_ERR(E_NET, transport_publish(&ack, t, subject[0], text("x"), NULL));
    CHECK(clock_ns() - start < S);
    leave(t);
}

static void claim_last_per_subject(void) {
    struct transport *t = enter();
    struct stream_config c = stream_config(STREAM_LIMITS);
    c.messages_per_subject_max = 1;
    CHECK_OK(stream_ensure(t, &c));
    put(t, subject[0], "old");
    put(t, subject[1], "b");
    put(t, subject[0], "new");
    CHECK_EQ(2, messages_in(t));
    struct message m;
    bool found;
    CHECK_OK(stream_get_last(&m, &found, t, stream, subject[0]));
    CHECK(found);
    check_data(&m, "new");
    CHECK_STR(subject[0], m.subject);
    CHECK_EQ(3, m.sequence);
    message_done(&m);
    leave(t);
}

static void claim_get(void) {
    struct transport *t = enter();
    make_stream(t, STREAM_LIMITS);
    struct message m = {0};
    bool found = true;
    CHECK_OK(stream_get_last(&m, &found, t, stream, subject[0]));
    CHECK(!found);
    put(t, subject[0], "1");
    put(t, subject[1], "2");
    put(t, subject[0], "3");
    uint64_t before = clock_unix_ns();
    CHECK_OK(stream_get(&m, &found, t, stream, 2));
    CHECK(found);
    check_data(&m, "2");
    CHECK_STR(subject[1], m.subject);
    CHECK(m.time_unix_ns <= before + S && m.time_unix_ns + 60 * S > before);
    message_done(&m);
    CHECK_OK(stream_get(&m, &found, t, stream, 9));
    CHECK(!found);
    CHECK_OK(stream_get_next(&m, &found, t, stream, 2, subject[0]));
    CHECK(found);
    CHECK_EQ(3, m.sequence);
    message_done(&m);
    CHECK_OK(stream_get_next(&m, &found, t, stream, 0, all_subjects()));
    CHECK(found);
    CHECK_EQ(1, m.sequence);
    message_done(&m);
    CHECK_OK(stream_get_next(&m, &found, t, stream, 4, all_subjects()));
    CHECK(!found);
    CHECK_ERR(E_NET, stream_get(&m, &found, t, "S_no_such", 1));
    leave(t);
}

static void claim_purge_and_delete(void) {
    struct transport *t = enter();
    make_stream(t, STREAM_LIMITS);
    put(t, subject[0], "1");
    put(t, subject[1], "2");
    put(t, subject[0], "3");
    put(t, subject[1], "4");
    uint64_t purged;
    bool found;
    CHECK_OK(stream_purge(&purged, t, stream, subject[0]));
    CHECK_EQ(2, purged);
    CHECK_OK(stream_delete_message(&found, t, stream, 2));
    CHECK(found);
    CHECK_OK(stream_delete_message(&found, t, stream, 2));
    CHECK(!found);
    struct message m;
    CHECK_OK(stream_get(&m, &found, t, stream, 2));
    CHECK(!found);
    CHECK_EQ(1, messages_in(t));
    CHECK_OK(stream_purge(NULL, t, stream, NULL));
    CHECK_EQ(0, messages_in(t));
    CHECK_EQ(5, put(t, subject[0], "5")); /* sequences never come again */
    leave(t);
}

static void claim_rollup(void) {
    struct transport *t = enter();
    struct stream_config c = stream_config(STREAM_LIMITS);
    c.allow_rollup = true;
    CHECK_OK(stream_ensure(t, &c));
    put(t, subject[0], "1");
    put(t, subject[0], "2");
    put(t, subject[1], "other");
    struct publish_ack ack;
    CHECK_OK(transport_publish(&ack, t, subject[0], text("all"),
                               &(struct publish_options){.rollup = true}));
    CHECK_EQ(2, messages_in(t));
    leave(t);
}

static void claim_age(void) {
    struct transport *t = enter();
    struct stream_config c = stream_config(STREAM_LIMITS);
    c.age_max_ns = S;
    CHECK_OK(stream_ensure(t, &c));
    put(t, subject[0], "soon gone");
    CHECK_EQ(1, messages_in(t));
    clock_sleep_ns(1800 * MS);
    CHECK_EQ(0, messages_in(t));
    struct publish_ack ack;
    CHECK_OK(transport_publish(&ack, t, subject[0], text("x"),
                               &(struct publish_options){.expect_last = true}));
    CHECK_EQ(PUBLISH_STORED, ack.outcome); /* nothing is there any more */
    leave(t);
}

/* --- Queues --- */

static void claim_pull_order(void) {
    struct transport *t = enter();
    struct puller *p = make_queue(t, 30 * S);
    put(t, subject[0], "1");
    put(t, subject[1], "2");
    put(t, subject[2], "3");
    for (unsigned i = 1; i <= 3; i++) {
        struct message m;
        char want[2] = {(char)('0' + i), 0};
        CHECK_OK(puller_next(&m, p, 2 * S));
        check_data(&m, want);
        CHECK_STR(subject[i - 1], m.subject);
        CHECK_EQ(i, m.sequence);
        CHECK_EQ(1, m.deliveries);
        CHECK_EQ(3 - i, m.pending);
        struct ack_parts parts;
        CHECK_OK(ack_subject_parse(&parts, m.reply));
        CHECK_STR(stream, parts.stream);
        CHECK_STR("c", parts.consumer);
        CHECK_EQ(i, parts.stream_sequence);
        CHECK_OK(transport_ack(t, m.reply, ACK_DONE, 0));
        message_done(&m);
    }
    CHECK_OK(transport_flush(t, 0));
    clock_sleep_ns(50 * MS);
    CHECK_EQ(0, messages_in(t));
    puller_close(&p);
    leave(t);
}

static void claim_pull_waits(void) {
    struct transport *t = enter();
    struct puller *p = make_queue(t, 30 * S);
    struct message m;
    uint64_t start = clock_ns();
    CHECK_ERR(E_TIMEOUT, puller_next(&m, p, 0));
    CHECK(clock_ns() - start < S / 2);
    for (int i = 0; i < 3; i++) { /* never early, also right after an earlier time-out */
        start = clock_ns();
        CHECK_ERR(E_TIMEOUT, puller_next(&m, p, 300 * MS));
        uint64_t took = clock_ns() - start;
        CHECK_MSG(took >= 299 * MS && took < 1500 * MS, "waited %llu ms, want 300",
                  (unsigned long long)(took / MS));
    }
    put(t, subject[0], "there");
    CHECK_OK(puller_next(&m, p, 0));
    check_data(&m, "there");
    message_done(&m);
    puller_close(&p);
    leave(t);
}

struct later {
    struct transport *t;
    struct puller *p;
    uint64_t after_ns;
    bool wake;
};

static void *do_later(void *arg) {
    struct later *l = arg;
    struct publish_ack ack;
    clock_sleep_ns(l->after_ns);
    if (l->wake) {
        puller_wake(l->p);
    } else {
        IGNORE(transport_publish(&ack, l->t, subject[0], text("late"), NULL));
    }
    return NULL;
}

static void claim_pull_woken(void) {
    struct transport *t = enter();
    struct puller *p = make_queue(t, 30 * S);
    for (int wake = 0; wake < 2; wake++) {
        struct later l = {t, p, 200 * MS, wake != 0};
        struct message m;
        pthread_t thread;
        CHECK_EQ(0, pthread_create(&thread, NULL, do_later, &l));
        uint64_t start = clock_ns();
        enum err err = puller_next(&m, p, 5 * S);
        uint64_t took = clock_ns() - start;
        pthread_join(thread, NULL);
        CHECK_ERR(wake ? E_CANCELLED : OK, err);
        CHECK_MSG(took > 150 * MS && took < S, "took %llu ms", (unsigned long long)(took / MS));
        if (err == OK) {
            CHECK_OK(transport_ack_sync(t, m.reply, 0));
            message_done(&m);
        }
    }
    puller_close(&p);
    leave(t);
}

static void claim_long_wait(void) {
    struct transport *t = enter();
    struct puller *p = make_queue(t, 30 * S);
    struct later l = {t, p, 6 * S, false}; /* beyond one request's expiry */
    struct message m;
    pthread_t thread;
    CHECK_EQ(0, pthread_create(&thread, NULL, do_later, &l));
    enum err err = puller_next(&m, p, 10 * S);
    pthread_join(thread, NULL);
    CHECK_OK(err);
    message_done(&m);
    puller_close(&p);
    leave(t);
}

static void claim_ack_wait(void) {
    struct transport *t = enter();
    struct puller *p = make_queue(t, S);
    struct message m, again;
    put(t, subject[0], "x");
    CHECK_OK(puller_next(&m, p, 2 * S));
    uint64_t start = clock_ns();
    CHECK_OK(puller_next(&again, p, 5 * S));
    uint64_t took = clock_ns() - start;
    CHECK_MSG(took > 800 * MS && took < 3 * S, "redelivered after %llu ms",
              (unsigned long long)(took / MS));
    CHECK_EQ(2, again.deliveries);
    CHECK_EQ(m.sequence, again.sequence);
    CHECK_OK(transport_ack_sync(t, m.reply, 0)); /* a late ack counts: acks are no fence */
    CHECK_OK(transport_ack_sync(t, again.reply, 0));
    CHECK_EQ(0, messages_in(t));
    message_done(&m);
    message_done(&again);
    puller_close(&p);
    leave(t);
}

static void claim_progress(void) {
    struct transport *t = enter();
    struct puller *p = make_queue(t, S);
    struct message m, again;
    put(t, subject[0], "x");
    CHECK_OK(puller_next(&m, p, 2 * S));
    for (int i = 0; i < 8; i++) {
        CHECK_OK(transport_ack(t, m.reply, ACK_PROGRESS, 0));
        CHECK_ERR(E_TIMEOUT, puller_next(&again, p, 300 * MS));
    }
    CHECK_OK(transport_ack_sync(t, m.reply, 0));
    CHECK_EQ(0, messages_in(t));
    message_done(&m);
    puller_close(&p);
    leave(t);
}

static void claim_nak(void) {
    struct transport *t = enter(), *third = world_connect();
    struct puller *p = make_queue(t, 60 * S);
    struct message m;
    put(t, subject[0], "x");
    CHECK_OK(puller_next(&m, p, 2 * S));
    char held[256]; /* a third party that knows the ack subject takes the job back */
    snprintf(held, sizeof held, "%s", m.reply);
    message_done(&m);
    uint64_t start = clock_ns();
    CHECK_OK(transport_ack(third, held, ACK_NAK, 0));
    CHECK_OK(puller_next(&m, p, 2 * S));
    CHECK(clock_ns() - start < 500 * MS);
    CHECK_EQ(2, m.deliveries);
    start = clock_ns();
    CHECK_OK(transport_ack(t, m.reply, ACK_NAK, 700 * MS));
    message_done(&m);
    CHECK_OK(puller_next(&m, p, 5 * S));
    uint64_t took = clock_ns() - start;
    CHECK_MSG(took > 600 * MS && took < 2 * S, "redelivered after %llu ms",
              (unsigned long long)(took / MS));
    CHECK_EQ(3, m.deliveries);
    CHECK_OK(transport_ack(third, m.reply, ACK_TERM, 0));
    CHECK_OK(transport_flush(third, 0));
    message_done(&m);
    CHECK_ERR(E_TIMEOUT, puller_next(&m, p, 300 * MS));
    CHECK_EQ(0, messages_in(t));
    puller_close(&p);
    leave(third);
    leave(t);
}

static void claim_deliveries_max(void) {
    struct transport *t = enter();
    make_stream(t, STREAM_WORK_QUEUE);
    CHECK_OK(consumer_ensure(
        t, &(struct consumer_config){
               .stream = stream, .name = "c", .ack_wait_ns = 30 * S, .deliveries_max = 2}));
    struct puller *p = open_puller(t, "c");
    struct message m;
    put(t, subject[0], "poison");
    for (unsigned i = 1; i <= 2; i++) {
        CHECK_OK(puller_next(&m, p, 2 * S));
        CHECK_EQ(i, m.deliveries);
        CHECK_OK(transport_ack(t, m.reply, ACK_NAK, 0));
        message_done(&m);
    }
    CHECK_ERR(E_TIMEOUT, puller_next(&m, p, 300 * MS));
    CHECK_EQ(1, messages_in(t)); /* it stays in the stream for somebody to look at */
    puller_close(&p);
    leave(t);
}

static void claim_ack_pending_max(void) {
    struct transport *t = enter();
    make_stream(t, STREAM_WORK_QUEUE);
    CHECK_OK(consumer_ensure(
        t, &(struct consumer_config){
               .stream = stream, .name = "c", .ack_wait_ns = 30 * S, .ack_pending_max = 2}));
    struct puller *p = open_puller(t, "c");
    struct message held[2], m;
    for (int i = 0; i < 4; i++) {
        put(t, subject[0], "x");
    }
    CHECK_OK(puller_next(&held[0], p, 2 * S));
    CHECK_OK(puller_next(&held[1], p, 2 * S));
    CHECK_ERR(E_TIMEOUT, puller_next(&m, p, 300 * MS));
    struct consumer_info info;
    bool found;
    CHECK_OK(consumer_info(&info, &found, t, stream, "c"));
    CHECK(found);
    CHECK_EQ(2, info.pending_count);
    CHECK_EQ(2, info.ack_pending_count);
    CHECK_EQ(2, info.delivered_sequence);
    CHECK_OK(transport_ack_sync(t, held[0].reply, 0));
    CHECK_OK(puller_next(&m, p, 2 * S));
    CHECK_EQ(3, m.sequence);
    message_done(&m);
    message_done(&held[0]);
    message_done(&held[1]);
    CHECK_OK(consumer_info(&info, &found, t, stream, "nobody"));
    CHECK(!found);
    puller_close(&p);
    leave(t);
}

static void claim_filters(void) {
    struct transport *t = enter();
    make_stream(t, STREAM_WORK_QUEUE);
    make_consumer(t, "a", subject[0], 30 * S);
    make_consumer(t, "b", subject[1], 30 * S);
    make_consumer(t, "b", subject[1], 30 * S); /* again: fine */
    CHECK_ERR(E_NET,
              consumer_ensure(t, &(struct consumer_config){
                                     .stream = stream, .name = "overlap", .filter = subject[0]}));
    put(t, subject[1], "for b");
    put(t, subject[0], "for a");
    put(t, subject[2], "for nobody");
    struct puller *a = open_puller(t, "a");
    struct message m;
    CHECK_OK(puller_next(&m, a, 2 * S));
    check_data(&m, "for a");
    message_done(&m);
    CHECK_ERR(E_TIMEOUT, puller_next(&m, a, 200 * MS));
    puller_close(&a);
    CHECK_OK(consumer_delete(t, stream, "a"));
    CHECK_OK(consumer_delete(t, stream, "a"));
    a = open_puller(t, "a");
    CHECK_ERR(E_NET, puller_next(&m, a, 2 * S));
    CHECK_HAS(err_detail(), "consumer");
    puller_close(&a);
    leave(t);
}

static void claim_cancel_queued(void) {
    struct transport *t = enter();
    struct puller *p = make_queue(t, 30 * S);
    uint64_t first = put(t, subject[0], "cancelled");
    put(t, subject[0], "goes on");
    bool found;
    CHECK_OK(stream_delete_message(&found, t, stream, first));
    CHECK(found);
    struct message m;
    CHECK_OK(puller_next(&m, p, 2 * S));
    check_data(&m, "goes on");
    message_done(&m);
    puller_close(&p);
    leave(t);
}

static void claim_two_pullers(void) {
    struct transport *t = enter(), *other = world_connect();
    struct puller *p = make_queue(t, 30 * S), *q = NULL;
    CHECK_OK(puller_open(&q, other, stream, "c"));
    for (int i = 0; i < 20; i++) {
        put(t, subject[0], "x");
    }
    unsigned seen = 0;
    for (int i = 0; i < 20; i++) {
        struct message m;
        CHECK_OK(puller_next(&m, i % 2 ? p : q, 2 * S));
        CHECK(!(seen >> m.sequence & 1)); /* nobody gets what the other has */
        seen |= 1U << m.sequence;
        message_done(&m);
    }
    puller_close(&p);
    puller_close(&q);
    leave(other);
    leave(t);
}

/* --- Core --- */

static void take_message(void *ctx, struct message *m) {
    atomic_fetch_add((atomic_int *)ctx, (int)m->data.len);
}

static void claim_core(void) {
    struct transport *t = enter(), *other = world_connect();
    atomic_int bytes = 0;
    struct subscription *handler = NULL, *sync = NULL;
    char wild[48];
    snprintf(wild, sizeof wild, "%s.*", name);
    CHECK_OK(transport_subscribe(
        &handler, t, all_subjects(),
        &(struct subscribe_options){.handler = take_message, .handler_ctx = &bytes}));
    CHECK_OK(transport_subscribe(&sync, t, wild, NULL));
    CHECK_OK(transport_flush(t, 0));
    CHECK_OK(transport_send(other, subject[0], text("abc")));
    CHECK_OK(transport_send(other, subject[1], text("de")));
    CHECK_OK(transport_send(other, "elsewhere.x", text("no")));
    struct message m;
    CHECK_OK(subscription_next(&m, sync, 2 * S));
    check_data(&m, "abc");
    CHECK_STR(subject[0], m.subject);
    CHECK_EQ(0, m.sequence);
    message_done(&m);
    CHECK_OK(subscription_next(&m, sync, 2 * S));
    check_data(&m, "de");
    message_done(&m);
    CHECK_ERR(E_TIMEOUT, subscription_next(&m, sync, 100 * MS));
    subscription_close(&handler); /* no handler runs after this */
    CHECK_EQ(5, atomic_load(&bytes));
    CHECK_OK(transport_send(other, subject[0], text("more")));
    CHECK_OK(transport_flush(other, 0));
    CHECK_EQ(5, atomic_load(&bytes));
    subscription_close(&sync);
    leave(other);
    leave(t);
}

static void claim_unkept(void) {
    struct transport *t = enter();
    struct subscription *sub = NULL;
    struct message m;
    make_stream(t, STREAM_LIMITS);
    CHECK_OK(transport_subscribe(&sub, t, subject[0], NULL));
    CHECK_OK(transport_flush(t, 0));
    CHECK_OK(transport_send_unkept(t, subject[0], text("passing")));
    CHECK_OK(transport_send(t, subject[0], text("kept")));
    CHECK_OK(subscription_next(&m, sub, 2 * S));
    check_data(&m, "passing");
    message_done(&m);
    CHECK_OK(subscription_next(&m, sub, 2 * S));
    check_data(&m, "kept");
    message_done(&m);
    CHECK_EQ(1, messages_in(t));
    CHECK_EQ(2, put(t, subject[0], "the next"));
    subscription_close(&sub);
    leave(t);
}

static void claim_queue_group(void) {
    struct transport *t = enter();
    struct subscription *subs[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(transport_subscribe(&subs[i], t, subject[0],
                                     &(struct subscribe_options){.queue_group = "q"}));
    }
    CHECK_OK(transport_flush(t, 0));
    for (int i = 0; i < 10; i++) {
        CHECK_OK(transport_send(t, subject[0], text("x")));
    }
    CHECK_OK(transport_flush(t, 0));
    int count = 0;
    struct message m;
    for (int i = 0; i < 2; i++) {
        while (subscription_next(&m, subs[i], 100 * MS) == OK) {
            count++;
            message_done(&m);
        }
        subscription_close(&subs[i]);
    }
    CHECK_EQ(10, count);
    leave(t);
}

static void answer(void *ctx, struct message *m) {
    IGNORE(message_respond(ctx, m, text("pong")));
}

static void claim_request(void) {
    struct transport *t = enter(), *server = world_connect();
    struct message m;
    uint64_t start = clock_ns();
    CHECK_ERR(E_NET, transport_request(&m, t, subject[0], text("ping"), 2 * S));
    CHECK(clock_ns() - start < S);
    struct subscription *sub = NULL, *silent = NULL;
    CHECK_OK(
        transport_subscribe(&sub, server, subject[0],
                            &(struct subscribe_options){.handler = answer, .handler_ctx = server}));
    CHECK_OK(transport_subscribe(&silent, server, subject[1], NULL));
    CHECK_OK(transport_flush(server, 0));
    CHECK_OK(transport_request(&m, t, subject[0], text("ping"), 2 * S));
    check_data(&m, "pong");
    message_done(&m);
    start = clock_ns();
    CHECK_ERR(E_TIMEOUT, transport_request(&m, t, subject[1], text("ping"), 300 * MS));
    CHECK(clock_ns() - start >= 290 * MS);
    subscription_close(&sub);
    subscription_close(&silent);
    leave(server);
    leave(t);
}

/* --- Restart --- */

static void claim_restart(void) {
    struct transport *t = enter();
    struct puller *p = make_queue(t, 30 * S);
    struct publish_options held_id = {.message_id = "held"}, done_id = {.message_id = "done"};
    struct publish_ack ack;
    struct message m;
    uint64_t revision;
    bool found, won;
    CHECK_OK(kv_ensure(t, &(struct kv_config){.bucket = name}));
    CHECK_OK(kv_create(&revision, &won, t, name, "k", text("v")));
    CHECK_OK(transport_publish(&ack, t, subject[0], text("done"), &done_id));
    CHECK_OK(puller_next(&m, p, 2 * S));
    CHECK_OK(transport_ack_sync(t, m.reply, 0));
    message_done(&m);
    CHECK_OK(transport_publish(&ack, t, subject[0], text("held"), &held_id));
    CHECK_OK(puller_next(&m, p, 2 * S));
    clock_sleep_ns(200 * MS);
    world_restart(t);
    CHECK_OK(transport_ack(t, m.reply, ACK_PROGRESS, 0));
    CHECK_OK(transport_publish(&ack, t, subject[0], text("held"), &held_id));
    CHECK_EQ(PUBLISH_DUPLICATE, ack.outcome); /* still stored: still known */
    CHECK_OK(transport_publish(&ack, t, subject[0], text("done"), &done_id));
    CHECK_EQ(PUBLISH_STORED, ack.outcome); /* acked and forgotten: the record must guard */
    CHECK_OK(transport_ack_sync(t, m.reply, 2 * S)); /* the old delivery is still valid */
    message_done(&m);
    CHECK_OK(puller_next(&m, p, 5 * S));
    check_data(&m, "done");
    message_done(&m);
    struct kv_entry e;
    CHECK_OK(kv_get(&e, &found, t, name, "k"));
    CHECK(found && e.revision == revision);
    kv_entry_done(&e);
    struct transport_health h;
    transport_health(&h, t);
    CHECK(h.connected && h.disconnects_count == 1 && h.reconnects_count == 1);
    puller_close(&p);
    leave(t);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"stream_ensure creates once, keeps limits, refuses other subjects", claim_ensure},
        {"a message id is stored once", claim_message_id},
        {"a message id is remembered after the ack", claim_message_id_after_ack},
        {"a message id is stored again after the window", claim_message_id_window},
        {"the first writer of a subject wins", claim_first_writer},
        {"a full stream refuses, a repeat is still a repeat", claim_full},
        {"a stream's limits are replaced on demand only", claim_limits_replaced},
        {"a full lane refuses, other lanes do not", claim_full_per_subject},
        {"a message above the stream's limit is E_LIMIT", claim_too_large},
        {"publishing to no stream fails at once", claim_no_stream},
        {"one message per subject keeps the last", claim_last_per_subject},
        {"a message that is not to be kept reaches listeners and no stream", claim_unkept},
        {"messages are read by sequence, subject and filter", claim_get},
        {"purge and delete remove, sequences go on", claim_purge_and_delete},
        {"a rollup replaces its subject", claim_rollup},
        {"old messages expire", claim_age},
        {"a queue is pulled in order and emptied by acks", claim_pull_order},
        {"a pull waits as long as told", claim_pull_waits},
        {"a waiting pull gets what comes and can be woken", claim_pull_woken},
        {"a pull outlives its request's expiry", claim_long_wait},
        {"an unacknowledged message comes again; a late ack counts", claim_ack_wait},
        {"in-progress acks hold a message", claim_progress},
        {"nak, delayed nak and term work, from third parties too", claim_nak},
        {"deliveries end at their limit, the message stays", claim_deliveries_max},
        {"a consumer holds at most its ack-pending limit", claim_ack_pending_max},
        {"consumers of a work queue have disjoint filters", claim_filters},
        {"a queued message can be deleted by sequence", claim_cancel_queued},
        {"two pullers share without overlap", claim_two_pullers},
        {"core messages reach handlers and readers", claim_core},
        {"a queue group shares messages", claim_queue_group},
        {"requests are answered, or fail at once when nobody listens", claim_request},
        {"what a restart keeps and forgets", claim_restart},
    };
    int code = check_main(argc, argv, claims, COUNT_OF(claims));
    world_end();
    return code;
}
