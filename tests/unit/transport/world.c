/* What the claims share: a connection, names that no other claim has, one stream. */
#include "tests/unit/transport/world.h"

#include <stdio.h>
#include <string.h>

char name[16], stream[32], subject[3][48];

/* One connection and fresh names; a claim ends with leave(). */
struct transport *enter(void) {
    static unsigned count;
    snprintf(name, sizeof name, "t%u", ++count);
    snprintf(stream, sizeof stream, "S_%s", name);
    for (int i = 0; i < 3; i++) {
        snprintf(subject[i], sizeof subject[i], "%s.%c", name, 'a' + i);
    }
    return world_connect();
}

void leave(struct transport *t) {
    transport_close(&t);
}

struct bytes text(const char *s) {
    return bytes_of(s, strlen(s));
}

const char *all_subjects(void) {
    static char filter[32];
    snprintf(filter, sizeof filter, "%s.>", name);
    return filter;
}

struct stream_config stream_config(enum stream_retention retention) {
    return (struct stream_config){
        .name = stream, .subjects = {all_subjects()}, .retention = retention};
}

void make_stream(struct transport *t, enum stream_retention retention) {
    struct stream_config c = stream_config(retention);
    CHECK_OK(stream_ensure(t, &c));
}

void make_consumer(struct transport *t, const char *consumer, const char *filter,
                   uint64_t ack_wait_ns) {
    CHECK_OK(consumer_ensure(
        t, &(struct consumer_config){
               .stream = stream, .name = consumer, .filter = filter, .ack_wait_ns = ack_wait_ns}));
}

uint64_t put(struct transport *t, const char *to, const char *what) {
    struct publish_ack ack;
    CHECK_OK(transport_publish(&ack, t, to, text(what), NULL));
    CHECK_EQ(PUBLISH_STORED, ack.outcome);
    return ack.sequence;
}

void check_data(const struct message *m, const char *want) {
    CHECK_EQ(strlen(want), m->data.len);
    CHECK_MEM(want, m->data.ptr, m->data.len);
}

uint64_t messages_in(struct transport *t) {
    struct stream_info info;
    CHECK_OK(stream_info(&info, t, stream));
    return info.messages_count;
}

struct puller *open_puller(struct transport *t, const char *consumer) {
    struct puller *p = NULL;
    CHECK_OK(puller_open(&p, t, stream, consumer));
    return p;
}

/* A work queue with one consumer "c". */
struct puller *make_queue(struct transport *t, uint64_t ack_wait_ns) {
    make_stream(t, STREAM_WORK_QUEUE);
    make_consumer(t, "c", NULL, ack_wait_ns);
    return open_puller(t, "c");
}
