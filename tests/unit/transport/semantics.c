/* What the design relies on, claim by claim, against the twin and against a real server.
 *
 * The program is linked twice, with world_loopback.c and with world_server.c; a claim that passes with one and not with
 * the other is a defect of the twin (or of what we believe of the server).
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/unit/transport/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

static char name[16], stream[32], subject[3][48];

const char *world_name(void) {
    return name;
}

/* One connection and fresh names; a claim ends with leave(). */
static struct transport *enter(void) {
    static unsigned count;
    snprintf(name, sizeof name, "t%u", ++count);
    snprintf(stream, sizeof stream, "S_%s", name);
    for (int i = 0; i < 3; i++) {
        snprintf(subject[i], sizeof subject[i], "%s.%c", name, 'a' + i);
    }
    return world_connect();
}

static void leave(struct transport *t) {
    transport_close(&t);
}

static struct bytes text(const char *s) {
    return bytes_of(s, strlen(s));
}

static const char *all_subjects(void) {
    static char filter[32];
    snprintf(filter, sizeof filter, "%s.>", name);
    return filter;
}

static struct stream_config stream_config(enum stream_retention retention) {
    return (struct stream_config){
        .name = stream, .subjects = {all_subjects()}, .retention = retention};
}

static void make_stream(struct transport *t, enum stream_retention retention) {
    struct stream_config c = stream_config(retention);
    CHECK_OK(stream_ensure(t, &c));
}

static void make_consumer(struct transport *t, const char *consumer, const char *filter,
                          uint64_t ack_wait_ns) {
    CHECK_OK(consumer_ensure(
        t, &(struct consumer_config){
               .stream = stream, .name = consumer, .filter = filter, .ack_wait_ns = ack_wait_ns}));
}

static uint64_t put(struct transport *t, const char *to, const char *what) {
    struct publish_ack ack;
    CHECK_OK(transport_publish(&ack, t, to, text(what), NULL));
    CHECK_EQ(PUBLISH_STORED, ack.outcome);
    return ack.sequence;
}

static void check_data(const struct message *m, const char *want) {
    CHECK_EQ(strlen(want), m->data.len);
    CHECK_MEM(want, m->data.ptr, m->data.len);
}

static uint64_t messages_in(struct transport *t) {
    struct stream_info info;
    CHECK_OK(stream_info(&info, t, stream));
    return info.messages_count;
}

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

static struct puller *open_puller(struct transport *t, const char *consumer) {
    struct puller *p = NULL;
    CHECK_OK(puller_open(&p, t, stream, consumer));
    return p;
}

/* A work queue with one consumer "c". */
static struct puller *make_queue(struct transport *t, uint64_t ack_wait_ns) {
    make_stream(t, STREAM_WORK_QUEUE);
    make_consumer(t, "c", NULL, ack_wait_ns);
    return open_puller(t, "c");
}

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

/* --- Key-value --- */

static void make_bucket(struct transport *t, uint64_t ttl_ns) {
    CHECK_OK(kv_ensure(t, &(struct kv_config){.bucket = name, .ttl_ns = ttl_ns}));
    CHECK_OK(kv_ensure(t, &(struct kv_config){.bucket = name, .ttl_ns = ttl_ns}));
}

static void claim_kv(void) {
    struct transport *t = enter();
    struct kv_entry e;
    bool found, won;
    uint64_t first, second, third;
    make_bucket(t, 0);
    CHECK_OK(kv_get(&e, &found, t, name, "tenant.job"));
    CHECK(!found);
    CHECK_OK(kv_create(&first, &won, t, name, "tenant.job", text("1")));
    CHECK(won);
    CHECK_OK(kv_create(&second, &won, t, name, "tenant.job", text("2")));
    CHECK(!won);
    CHECK_OK(kv_update(&second, &won, t, name, "tenant.job", text("3"), first));
    CHECK(won && second > first);
    CHECK_OK(kv_update(&third, &won, t, name, "tenant.job", text("stale"), first));
    CHECK(!won);
    CHECK_OK(kv_get(&e, &found, t, name, "tenant.job"));
    CHECK(found && e.revision == second && e.operation == KV_PUT);
    CHECK_STR("tenant.job", e.key);
    CHECK_MEM("3", e.value.ptr, 1);
    kv_entry_done(&e);
    CHECK_OK(kv_delete(&won, t, name, "tenant.job", first));
    CHECK(!won);
    CHECK_OK(kv_delete(&won, t, name, "tenant.job", second));
    CHECK(won);
    CHECK_OK(kv_get(&e, &found, t, name, "tenant.job"));
    CHECK(!found);
    CHECK_OK(kv_create(&third, &won, t, name, "tenant.job", text("again")));
    CHECK(won && third > second);
    CHECK_OK(kv_put(&third, t, name, "tenant.job", text("whatever")));
    CHECK_ERR(E_FORMAT, kv_put(&third, t, name, "a b", text("x")));
    CHECK_ERR(E_FORMAT, kv_put(&third, t, name, "a.*", text("x")));
    leave(t);
}

struct seen {
    char keys[256];
    int count;
};

static enum err note(void *ctx, const struct kv_entry *e) {
    struct seen *s = ctx;
    size_t at = strlen(s->keys);
    snprintf(s->keys + at, sizeof s->keys - at, "%s=%.*s;", e->key, (int)e->value.len,
             (const char *)e->value.ptr);
    s->count++;
    return OK;
}

static void claim_kv_list(void) {
    struct transport *t = enter();
    uint64_t revision;
    make_bucket(t, 0);
    struct seen seen = {0};
    CHECK_OK(kv_list(t, name, ">", note, &seen));
    CHECK_EQ(0, seen.count);
    CHECK_OK(kv_put(&revision, t, name, "x.a", text("1")));
    CHECK_OK(kv_put(&revision, t, name, "x.b", text("2")));
    CHECK_OK(kv_put(&revision, t, name, "y.c", text("3")));
    CHECK_OK(kv_put(&revision, t, name, "x.a", text("4")));
    CHECK_OK(kv_delete(NULL, t, name, "x.b", 0));
    CHECK_OK(kv_list(t, name, ">", note, &seen));
    CHECK_STR("y.c=3;x.a=4;", seen.keys);
    seen = (struct seen){0};
    CHECK_OK(kv_list(t, name, "x.*", note, &seen));
    CHECK_STR("x.a=4;", seen.keys);
    leave(t);
}

static void expect_change(struct kv_watch *w, const char *key, const char *value, bool caught_up) {
    struct kv_entry e;
    bool all;
    CHECK_OK(kv_watch_next(&e, &all, w, 3 * S));
    CHECK_STR(key, e.key);
    CHECK_EQ(value ? KV_PUT : KV_DELETE, e.operation);
    if (value) {
        CHECK_EQ(strlen(value), e.value.len);
        CHECK_MEM(value, e.value.ptr, e.value.len);
    }
    CHECK_EQ(caught_up, all);
    kv_entry_done(&e);
}

static void claim_kv_watch(void) {
    struct transport *t = enter(), *writer = world_connect();
    uint64_t revision;
    struct kv_watch *w = NULL;
    make_bucket(t, 0);
    CHECK_OK(kv_put(&revision, t, name, "a", text("1")));
    CHECK_OK(kv_put(&revision, t, name, "gone", text("1")));
    CHECK_OK(kv_delete(NULL, t, name, "gone", 0));
    CHECK_OK(kv_put(&revision, t, name, "b", text("2")));
    CHECK_OK(kv_watch_open(&w, t, name, ">"));
    expect_change(w, "a", "1", false);
    expect_change(w, "b", "2", true);
    struct kv_entry e;
    bool all = false;
    CHECK_ERR(E_TIMEOUT, kv_watch_next(&e, &all, w, 200 * MS));
    CHECK(all);
    CHECK_OK(kv_put(&revision, writer, name, "a", text("3")));
    uint64_t start = clock_ns();
    expect_change(w, "a", "3", true);
    CHECK(clock_ns() - start < 500 * MS); /* told, not polled */
    CHECK_OK(kv_delete(NULL, writer, name, "b", 0));
    expect_change(w, "b", NULL, true);
    kv_watch_close(&w);
    leave(writer);
    leave(t);
}

static void claim_kv_ttl(void) {
    struct transport *t = enter();
    bool won, found;
    uint64_t revision;
    struct kv_entry e;
    make_bucket(t, S);
    CHECK_OK(kv_create(&revision, &won, t, name, "leader", text("a")));
    CHECK(won);
    clock_sleep_ns(600 * MS);
    CHECK_OK(kv_update(&revision, &won, t, name, "leader", text("a"), revision));
    CHECK(won);
    clock_sleep_ns(600 * MS);
    uint64_t stale = revision;
    CHECK_OK(kv_create(&revision, &won, t, name, "leader", text("b")));
    CHECK(!won); /* renewed in time */
    clock_sleep_ns(1200 * MS);
    CHECK_OK(kv_get(&e, &found, t, name, "leader"));
    CHECK(!found);
    CHECK_OK(kv_create(&revision, &won, t, name, "leader", text("b")));
    CHECK(won);
    CHECK_OK(kv_update(&revision, &won, t, name, "leader", text("a"), stale));
    CHECK(!won);
    leave(t);
}

/* --- Objects --- */

static void make_objects(struct transport *t) {
    CHECK_OK(object_bucket_ensure(t, &(struct object_bucket_config){.bucket = name}));
    CHECK_OK(object_bucket_ensure(t, &(struct object_bucket_config){.bucket = name}));
}

struct gather {
    uint8_t *ptr;
    size_t len, cap;
};

static enum err gather(void *ctx, struct bytes chunk) {
    struct gather *g = ctx;
    REQUIRE(chunk.len <= g->cap - g->len, E_INTERNAL, "more than was put");
    memcpy(g->ptr + g->len, chunk.ptr, chunk.len);
    g->len += chunk.len;
    return OK;
}

static uint8_t *random_block(size_t len) {
    uint8_t *block = mem_alloc(len ? len : 1);
    CHECK(block);
    rng_fill(check_rng(), block, len);
    return block;
}

static void check_object(struct transport *t, const char *object, struct bytes want) {
    struct object_info info;
    bool found;
    struct gather g = {.ptr = mem_alloc(want.len + 1), .cap = want.len};
    CHECK_OK(object_get(&info, &found, t, name, object, 1 << 30, gather, &g));
    CHECK(found);
    CHECK_EQ(want.len, g.len);
    CHECK_EQ(want.len, info.bytes);
    CHECK_MEM(want.ptr, g.ptr, g.len);
    mem_free(g.ptr);
}

static void claim_objects(void) {
    static const size_t sizes[] = {0, 1, 1000, 1048576, 1048577, 5000000};
    struct transport *t = enter();
    make_objects(t);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        uint8_t *block = random_block(sizes[i]);
        char object[32];
        struct object_info info, seen;
        bool found;
        snprintf(object, sizeof object, "object/%zu + x", i);
        CHECK_OK(object_put_bytes(&info, t, name, object, bytes_of(block, sizes[i])));
        CHECK_EQ((sizes[i] + OBJECT_CHUNK_BYTES - 1) / OBJECT_CHUNK_BYTES, info.chunks_count);
        CHECK_OK(object_info(&seen, &found, t, name, object));
        CHECK(found);
        CHECK_STR(info.nuid, seen.nuid);
        CHECK_MEM(&info.sha256, &seen.sha256, sizeof info.sha256);
        check_object(t, object, bytes_of(block, sizes[i]));
        mem_free(block);
    }
    struct object_info info;
    bool found;
    CHECK_OK(object_info(&info, &found, t, name, "nothing"));
    CHECK(!found);
    CHECK_ERR(E_FORMAT, object_put_bytes(&info, t, name, "\xc3\xbc", text("x")));
    struct gather g = {0};
    CHECK_ERR(E_LIMIT, object_get(&info, &found, t, name, "object/5 + x", 100, gather, &g));
    leave(t);
}

/* Two uploads at once, chunk by chunk: their chunks alternate in the stream. */
static void claim_interleaved(void) {
    enum { CHUNKS = 40, CHUNK = 5000 };
    struct transport *t = enter();
    struct object_upload *u[2] = {NULL, NULL};
    uint8_t *block = random_block((size_t)2 * CHUNKS * CHUNK);
    struct object_info info;
    make_objects(t);
    CHECK_OK(object_upload_open(&u[0], t, name, "one"));
    CHECK_OK(object_upload_open(&u[1], t, name, "two"));
    for (size_t i = 0; i < CHUNKS; i++) {
        CHECK_OK(object_upload_chunk(u[0], bytes_of(block + i * CHUNK, CHUNK)));
        if (i % 3 != 0) {
            CHECK_OK(object_upload_chunk(u[1], bytes_of(block + (CHUNKS + i) * CHUNK, CHUNK)));
        }
    }
    CHECK_OK(object_upload_commit(&info, u[0]));
    CHECK_EQ(CHUNKS, info.chunks_count);
    bool found;
    struct object_info other;
    CHECK_OK(object_info(&other, &found, t, name, "two"));
    CHECK(!found); /* invisible until committed */
    check_object(t, "one", bytes_of(block, (size_t)CHUNKS * CHUNK));
    /* From where the first chunk lies, with the given nuid. */
    struct object_download *d = NULL;
    struct object_download_options o = {.bucket = name,
                                        .nuid = info.nuid,
                                        .first_sequence = info.first_sequence,
                                        .bytes = info.bytes,
                                        .sha256 = &info.sha256};
    CHECK_OK(object_download_open(&d, t, &o));
    size_t at = 0;
    for (bool end = false; !end;) {
        struct message m;
        CHECK_OK(object_download_next(&m, &end, d));
        if (!end) {
            CHECK_MEM(block + at, m.data.ptr, m.data.len);
            at += m.data.len;
        }
        message_done(&m);
    }
    CHECK_EQ((size_t)CHUNKS * CHUNK, at);
    object_download_close(&d);
    object_upload_close(&u[0]);
    object_upload_close(&u[1]); /* abandoned: its chunks are purged */
    snprintf(stream, sizeof stream, "OBJ_%s", name);
    CHECK_EQ(CHUNKS + 1, messages_in(t));
    mem_free(block);
    leave(t);
}

static void claim_object_replaced(void) {
    struct transport *t = enter();
    struct object_info first, second, seen;
    bool found;
    make_objects(t);
    CHECK_OK(object_put_bytes(&first, t, name, "x", text("first")));
    CHECK_OK(object_put_bytes(&second, t, name, "x", text("second one")));
    CHECK(strcmp(first.nuid, second.nuid) != 0);
    check_object(t, "x", text("second one"));
    snprintf(stream, sizeof stream, "OBJ_%s", name);
    CHECK_EQ(2, messages_in(t));
    CHECK_OK(object_purge(t, name, first.nuid, "x")); /* the name belongs to the second now */
    check_object(t, "x", text("second one"));
    CHECK_OK(object_purge(t, name, second.nuid, "x"));
    CHECK_OK(object_info(&seen, &found, t, name, "x"));
    CHECK(!found);
    CHECK_EQ(1, messages_in(t)); /* the mark that it was deleted */
    CHECK_OK(object_put_bytes(&second, t, name, "x", text("third")));
    check_object(t, "x", text("third"));
    leave(t);
}

static void read_to_end(enum err *err, struct transport *t,
                        const struct object_download_options *o) {
    struct object_download *d = NULL;
    *err = object_download_open(&d, t, o);
    for (bool end = false; *err == OK && !end;) {
        struct message m = {0};
        *err = object_download_next(&m, &end, d);
        message_done(&m);
    }
    object_download_close(&d);
}

static void claim_object_damaged(void) {
    struct transport *t = enter();
    uint8_t *block = random_block(300000);
    struct object_upload *u = NULL;
    struct object_info info;
    enum err err;
    bool found;
    make_objects(t);
    CHECK_OK(object_upload_open(&u, t, name, "x"));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(object_upload_chunk(u, bytes_of(block + 100000 * i, 100000)));
    }
    CHECK_OK(object_upload_commit(&info, u));
    object_upload_close(&u);
    struct object_download_options o = {
        .bucket = name, .nuid = info.nuid, .bytes = info.bytes, .sha256 = &info.sha256};
    read_to_end(&err, t, &o);
    CHECK_OK(err);
    struct sha256 wrong = info.sha256;
    wrong.b[5] ^= 1;
    o.sha256 = &wrong;
    read_to_end(&err, t, &o);
    CHECK_ERR(E_FORMAT, err);
    CHECK_HAS(err_detail(), "SHA-256");
    o.sha256 = &info.sha256;
    o.bytes = 299999;
    read_to_end(&err, t, &o);
    CHECK_ERR(E_FORMAT, err);
    CHECK_HAS(err_detail(), "longer than the 299999 bytes");
    o.bytes = 300001;
    read_to_end(&err, t, &o);
    CHECK_ERR(E_FORMAT, err);
    CHECK_HAS(err_detail(), "ends after 300000 of 300001 bytes");
    snprintf(stream, sizeof stream, "OBJ_%s", name);
    CHECK_OK(stream_delete_message(&found, t, stream, info.first_sequence + 1));
    o.bytes = 300000;
    read_to_end(&err, t, &o);
    CHECK_ERR(E_FORMAT, err);
    CHECK_HAS(err_detail(), "ends after 200000 of 300000 bytes");
    o.nuid = "nobody";
    read_to_end(&err, t, &o);
    CHECK_ERR(E_FORMAT, err);
    mem_free(block);
    leave(t);
}

static void claim_object_quota(void) {
    struct transport *t = enter();
    uint8_t *block = random_block(600000);
    struct object_info info;
    CHECK_OK(object_bucket_ensure(
        t, &(struct object_bucket_config){.bucket = name, .bytes_max = 1000000}));
    CHECK_OK(object_put_bytes(&info, t, name, "fits", bytes_of(block, 600000)));
    CHECK_ERR(E_QUEUE, object_put_bytes(&info, t, name, "too much", bytes_of(block, 600000)));
    check_object(t, "fits", bytes_of(block, 600000));
    mem_free(block);
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
    make_bucket(t, 0);
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
        {"a full lane refuses, other lanes do not", claim_full_per_subject},
        {"a message above the stream's limit is E_LIMIT", claim_too_large},
        {"publishing to no stream fails at once", claim_no_stream},
        {"one message per subject keeps the last", claim_last_per_subject},
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
        {"kv creates once and updates by revision", claim_kv},
        {"kv_list walks live keys under a filter", claim_kv_list},
        {"kv_watch sees what is, then every change", claim_kv_watch},
        {"kv entries expire and leases pass on", claim_kv_ttl},
        {"objects of every size come back", claim_objects},
        {"interleaved uploads are read apart", claim_interleaved},
        {"objects are replaced and purged by nuid", claim_object_replaced},
        {"damaged objects are refused", claim_object_damaged},
        {"a bucket's quota refuses", claim_object_quota},
        {"what a restart keeps and forgets", claim_restart},
    };
    int code = check_main(argc, argv, claims, COUNT_OF(claims));
    world_end();
    return code;
}
