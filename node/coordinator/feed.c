/* The threads that wait: one per intake priority, which has as many jobs in hand as are taken in together; one per watch; and two subscriptions. They only move what comes into the queue of
 * events. A full queue makes the streams' threads wait; heartbeats and control messages are dropped then, as their senders repeat them.
 */
#include <string.h>

#include "node/base/clock.h"
#include "node/coordinator/floor.h"
#include "node/coordinator/work.h"

static const uint64_t WAIT_NS = UINT64_C(250000000);
static const uint64_t FIRST_WAIT_NS =
    UINT64_C(20000000); /* until it is known that all has been read */
static const uint64_t PAUSE_NS = UINT64_C(200000000);
static const uint64_t AHEAD_NS = INTAKE_ACK_WAIT_NS / 12 * 11;

void event_done(struct event *e) {
    message_done(&e->message);
    kv_entry_done(&e->entry);
}

/* Waits for room as long as the feed goes on. */
static void put(struct coordinator *c, struct event *e) {
    e->heard_ns = clock_ns();
    while (atomic_load(&c->feeding)) {
        if (queue_put(c->events, e, WAIT_NS) == OK) {
            return;
        }
    }
    event_done(e);
}

static void on_message(struct coordinator *c, enum event_kind kind, struct message *m) {
    struct event e = {.kind = kind, .heard_ns = clock_ns(), .message = *m};
    if (queue_try_put(c->events, &e) == OK) {
        *m = (struct message){0};
    }
}

static void on_heartbeat(void *ctx, struct message *m) {
    on_message(ctx, EVENT_HEARTBEAT, m);
}

static void on_control(void *ctx, struct message *m) {
    on_message(ctx, EVENT_CONTROL, m);
}

static void feed_jobs(struct coordinator *c, unsigned priority) {
    struct subject stream = stream_name(&c->space, "JOBS"),
                   consumer = consumer_of_priority(priority);
    AUTO(puller_close) struct puller *puller = NULL;
    while (atomic_load(&c->feeding)) {
        if (!puller && puller_open(&puller, c->links.feed, stream.text, consumer.text) != OK) {
            clock_sleep_ns(PAUSE_NS);
            continue;
        }
        puller_ahead(puller, INTAKE_BATCH, AHEAD_NS);
        struct event e = {.kind = EVENT_JOB};
        enum err code = puller_next(&e.message, puller, WAIT_NS);
        if (code == OK) {
            put(c, &e);
        } else if (code != E_TIMEOUT) {
            clock_sleep_ns(PAUSE_NS);
        }
    }
}

/* Those that the floor names, and where the rest begins; without a floor everything is read. */
static uint64_t begin_at_floor(struct coordinator *c, const char *bucket) {
    AUTO(message_free) Bellows__V1__RecordFloor *floor = NULL;
    if (floor_read(&floor, c->links.feed, &c->space) != OK || !floor) {
        return 1;
    }
    for (size_t i = 0; i < floor->n_open_below; i++) {
        struct event e = {.kind = EVENT_NAMED};
        bool found = false;
        if (kv_get(&e.entry, &found, c->links.feed, bucket, floor->open_below[i]) != OK) {
            return 1;
        }
        if (found) {
            put(c, &e);
        }
    }
    return floor->revision;
}

static void feed_watch(struct coordinator *c, const char *bucket_tail, enum event_kind kind) {
    struct subject bucket = kv_bucket_name(&c->space, bucket_tail);
    AUTO(kv_watch_close) struct kv_watch *watch = NULL;
    bool told = kind != EVENT_RECORD, begun = false;
    while (atomic_load(&c->feeding)) {
        if (!watch && kv_watch_open(&watch, c->links.feed, bucket.text, ">") != OK) {
            clock_sleep_ns(PAUSE_NS);
            continue;
        }
        if (!begun && kind == EVENT_RECORD) {
            kv_watch_from(watch, begin_at_floor(c, bucket.text));
        }
        begun = true;
        struct event e = {.kind = kind};
        bool caught_up = false;
        enum err code = kv_watch_next(&e.entry, &caught_up, watch, told ? WAIT_NS : FIRST_WAIT_NS);
        if (code == OK) {
            put(c, &e);
        } else if (code != E_TIMEOUT) {
            kv_watch_close(&watch);
            begun = false;
            clock_sleep_ns(PAUSE_NS);
            continue;
        }
        if (caught_up && !told) {
            struct event end = {.kind = EVENT_CAUGHT_UP};
            put(c, &end);
            told = true;
        }
    }
}

static void *feed_main(void *ctx) {
    struct feed *f = ctx;
    if (f->idx < JOB_PRIORITY_COUNT) {
        feed_jobs(f->coordinator, f->idx);
    } else if (f->idx == JOB_PRIORITY_COUNT) {
        feed_watch(f->coordinator, "jobs", EVENT_RECORD);
    } else {
        feed_watch(f->coordinator, "lanes", EVENT_LANE);
    }
    return NULL;
}

enum err feed_start(struct coordinator *c) {
    struct subject beats = filter_heartbeats(&c->space);
    struct subject controls = filter_tenant_requests(&c->space, "cancel");
    struct subscribe_options on_beats = {.handler = on_heartbeat, .handler_ctx = c};
    struct subscribe_options on_controls = {.handler = on_control, .handler_ctx = c};
    atomic_store(&c->feeding, true);
    TRY(transport_subscribe(&c->heartbeats, c->links.feed, beats.text, &on_beats));
    TRY(transport_subscribe(&c->controls, c->links.feed, controls.text, &on_controls));
    for (unsigned i = 0; i < FEED_THREADS; i++) {
        c->feeds[i] = (struct feed){.coordinator = c, .idx = i};
        int rc = pthread_create(&c->feeds[i].thread, NULL, feed_main, &c->feeds[i]);
        REQUIRE(rc == 0, E_LIMIT, "no thread for the coordinator: %s", strerror(rc));
        c->feeds[i].runs = true;
    }
    return OK;
}

void feed_stop(struct coordinator *c) {
    atomic_store(&c->feeding, false);
    subscription_close(&c->heartbeats);
    subscription_close(&c->controls);
    for (unsigned i = 0; i < FEED_THREADS; i++) {
        if (c->feeds[i].runs) {
            pthread_join(c->feeds[i].thread, NULL);
            c->feeds[i].runs = false;
        }
    }
    struct event e;
    while (c->events && queue_take(c->events, &e, 0) == OK) {
        event_done(&e);
    }
}
