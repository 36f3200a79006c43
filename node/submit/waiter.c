/* A queue takes what is heard; whoever waits looks into the store first, and again each second. */
#include "node/submit/waiter.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/queue.h"
#include "proto/unpack.h"

static const uint64_t LOOK_NS = UINT64_C(1000000000);
static const uint64_t GRACE_NS = UINT64_C(5000000000);
enum { HEARD_MAX = 16 };

struct waiter {
    const struct client *client; /* lent */
    char job[ID_BYTES_MAX + 1];
    struct subscription *done, *reply; /* owned */
    struct queue *heard;               /* owned; of struct message */
};

static void on_result(void *ctx, struct message *m) {
    struct waiter *w = ctx;
    if (queue_try_put(w->heard, m) == OK) {
        *m = (struct message){0};
    }
}

enum err waiter_open(struct waiter **out, const struct client *c, const char *job,
                     const char *reply_subject) {
    AUTO(waiter_close) struct waiter *w = NULL;
    TRY(mem_new(&w, 1, sizeof *w));
    w->client = c;
    snprintf(w->job, sizeof w->job, "%s", job);
    TRY(queue_new(&w->heard, HEARD_MAX, sizeof(struct message)));
    struct subscribe_options options = {.handler = on_result, .handler_ctx = w};
    struct subject done = filter_done_of(&c->space, (struct job_name){c->tenant, w->job});
    TRY(transport_subscribe(&w->done, c->transport, done.text, &options));
    if (reply_subject) {
        TRY(transport_subscribe(&w->reply, c->transport, reply_subject, &options));
    }
    *out = TAKE(w);
    return OK;
}

void waiter_close(struct waiter **w) {
    if (!*w) {
        return;
    }
    subscription_close(&(*w)->done);
    subscription_close(&(*w)->reply);
    struct message m;
    while ((*w)->heard && queue_length((*w)->heard) > 0 && queue_take((*w)->heard, &m, 0) == OK) {
        message_done(&m);
    }
    queue_free(&(*w)->heard);
    mem_free_ptr(w);
}

/* A look into the store: *out if it is there; *known: the fleet has heard of the job. */
static enum err look(result_message **out, bool *known, struct waiter *w, uint64_t generation) {
    struct job_place at = client_place(w->client, w->job);
    AUTO(record_slot_done) struct record_slot slot = {0};
    bool found = false;
    TRY(record_load(&slot, known, &at));
    if (!generation) {
        generation = *known ? slot.record.generation : 1;
    }
    return result_fetch(out, &found, &at, generation);
}

static enum err take_heard(result_message **out, struct waiter *w, uint64_t generation,
                           uint64_t wait_ns) {
    AUTO(message_done) struct message m = {0};
    AUTO(message_free) result_message *result = NULL;
    if (queue_take(w->heard, &m, wait_ns) == OK && result_unpack(&result, m.data) == OK &&
        !strcmp(result->job_id, w->job) && (!generation || result->generation == generation)) {
        *out = TAKE(result);
    }
    return OK;
}

enum err waiter_wait(result_message **out, struct waiter *w, uint64_t generation, bool published,
                     uint64_t limit_ns) {
    uint64_t start_ns = clock_ns();
    AUTO(message_free) result_message *result = NULL;
    while (!result) {
        bool known = false;
        enum err code = look(&result, &known, w, generation);
        uint64_t waited_ns = clock_ns() - start_ns;
        if (code != OK && err_class(code) != CLASS_WORLD) {
            return code; /* a server that is away for a moment is waited for */
        }
        REQUIRE(code != OK || known || published || result || waited_ns < GRACE_NS, E_RANGE,
                "tenant %s has no job %s", w->client->tenant, w->job);
        REQUIRE(result || !limit_ns || waited_ns < limit_ns, E_TIMEOUT,
                "job %s has no result after %.1f s%s; it goes on: `bellows wait %s`", w->job,
                (double)waited_ns / 1e9,
                known ? "" : ", and no coordinator has taken it in: is one running?", w->job);
        if (!result) {
            uint64_t left_ns = limit_ns ? limit_ns - waited_ns : LOOK_NS;
            TRY(take_heard(&result, w, generation, left_ns < LOOK_NS ? left_ns : LOOK_NS));
        }
    }
    *out = TAKE(result);
    return OK;
}
