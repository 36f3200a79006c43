/* Order, bounds, closing; then everything exactly once under threads. */
#include "node/base/queue.h"
#include "node/base/clock.h"
#include "tests/check/check.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MS = 1000000, PUTTERS = 4, TAKERS = 3, ITEMS_EACH = 5000 };

static void claim_order(void) {
    AUTO(queue_free) struct queue *q = NULL;
    CHECK_OK(queue_new(&q, 3, sizeof(int)));
    int in = 0, want = 0, got;
    for (int round = 0; round < 10; round++) { /* the ring wraps */
        for (int i = 0; i < 3; i++, in++) {
            CHECK_OK(queue_try_put(q, &in));
        }
        CHECK_ERR(E_QUEUE, queue_try_put(q, &in));
        CHECK_EQ(3, queue_length(q));
        for (int i = 0; i < 3; i++, want++) {
            CHECK_OK(queue_take(q, &got, 0));
            CHECK_EQ(want, got);
        }
    }
}

static void claim_waits(void) {
    AUTO(queue_free) struct queue *q = NULL;
    CHECK_OK(queue_new(&q, 1, sizeof(int)));
    int x = 1;
    uint64_t since = clock_ns();
    CHECK_ERR(E_TIMEOUT, queue_take(q, &x, 5 * MS));
    CHECK(clock_ns() - since >= 5 * MS);
    CHECK_OK(queue_put(q, &x, 0));
    CHECK_ERR(E_TIMEOUT, queue_put(q, &x, 5 * MS));
    CHECK_EQ(1, queue_length(q));
    CHECK_OK(queue_take(q, &x, UINT64_MAX));
}

static void claim_closed(void) {
    AUTO(queue_free) struct queue *q = NULL;
    CHECK_OK(queue_new(&q, 2, sizeof(int)));
    int x = 5, got = 0;
    CHECK_OK(queue_try_put(q, &x));
    queue_close(q);
    CHECK_ERR(E_CANCELLED, queue_try_put(q, &x));
    CHECK_ERR(E_CANCELLED, queue_put(q, &x, UINT64_MAX));
    CHECK_OK(queue_take(q, &got, UINT64_MAX));
    CHECK_EQ(5, got);
    CHECK_ERR(E_CANCELLED, queue_take(q, &got, UINT64_MAX));
}

static void *close_soon(void *q) {
    clock_sleep_ns(5 * MS);
    queue_close(q);
    return NULL;
}

static void claim_gathers(void) {
    AUTO(queue_free) struct queue *q = NULL;
    pthread_t closer;
    CHECK_OK(queue_new(&q, 2, sizeof(int)));
    int x = 5;
    CHECK_OK(queue_try_put(q, &x));
    uint64_t since = clock_ns();
    CHECK(!queue_wait_closed(q, 5 * MS));
    CHECK(clock_ns() - since >= 5 * MS);
    CHECK(pthread_create(&closer, NULL, close_soon, q) == 0);
    CHECK(queue_wait_closed(q, UINT64_MAX));
    pthread_join(closer, NULL);
    CHECK(queue_wait_closed(q, 0));
}

static struct queue *shared;
static atomic_int seen[PUTTERS * ITEMS_EACH];
static atomic_int errors_count;

static void *put_many(void *arg) {
    int first = (int)(intptr_t)arg * ITEMS_EACH;
    for (int i = 0; i < ITEMS_EACH; i++) {
        int item = first + i;
        errors_count += queue_put(shared, &item, UINT64_MAX) != OK;
    }
    return NULL;
}

static void *take_many(void *arg) {
    (void)arg;
    int item;
    enum err code;
    while ((code = queue_take(shared, &item, UINT64_MAX)) == OK) {
        atomic_fetch_add(&seen[item], 1);
    }
    errors_count += code != E_CANCELLED;
    return NULL;
}

static void claim_threads(void) {
    CHECK_OK(queue_new(&shared, 16, sizeof(int)));
    pthread_t putters[PUTTERS], takers[TAKERS];
    for (int i = 0; i < TAKERS; i++) {
        CHECK_EQ(0, pthread_create(&takers[i], NULL, take_many, NULL));
    }
    for (int i = 0; i < PUTTERS; i++) {
        CHECK_EQ(0, pthread_create(&putters[i], NULL, put_many, (void *)(intptr_t)i));
    }
    for (int i = 0; i < PUTTERS; i++) {
        pthread_join(putters[i], NULL);
    }
    queue_close(shared);
    for (int i = 0; i < TAKERS; i++) {
        pthread_join(takers[i], NULL);
    }
    CHECK_EQ(0, atomic_load(&errors_count));
    for (int i = 0; i < PUTTERS * ITEMS_EACH; i++) {
        CHECK_MSG(seen[i] == 1, "item %d was taken %d times", i, atomic_load(&seen[i]));
    }
    queue_free(&shared);
}

static void *close_later(void *arg) {
    (void)arg;
    clock_sleep_ns(10 * MS);
    queue_close(shared);
    return NULL;
}

static void claim_close_wakes(void) {
    CHECK_OK(queue_new(&shared, 1, sizeof(int)));
    pthread_t closer;
    CHECK_EQ(0, pthread_create(&closer, NULL, close_later, NULL));
    int item;
    enum err code = queue_take(shared, &item, UINT64_MAX);
    pthread_join(closer, NULL);
    queue_free(&shared);
    CHECK_ERR(E_CANCELLED, code);
}

static enum err make_queue(void *ctx) {
    (void)ctx;
    AUTO(queue_free) struct queue *q = NULL;
    return queue_new(&q, 10, 100);
}

static void claim_allocation(void) {
    CHECK_EQ(2, check_allocations(make_queue, NULL));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"items come out in the order they went in, and a full queue says so", claim_order},
        {"a wait ends with E_TIMEOUT when its time is up", claim_waits},
        {"a closed queue takes nothing more and gives what it has", claim_closed},
        {"a taker lets work gather until it is enough or the queue is closed", claim_gathers},
        {"with many threads every item is taken exactly once", claim_threads},
        {"closing wakes who waits", claim_close_wakes},
        {"a failed allocation is E_LIMIT", claim_allocation},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
