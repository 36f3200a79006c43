/* A ring of items under one mutex, with a condition for each side. The items are copied in and out, so the lock is
 * held for one memcpy; waits are on the monotonic clock.
 */
#include "node/base/queue.h"

#include <pthread.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_full, not_empty;
    uint8_t *items;                /* owned: items_max slots */
    size_t items_max, item_bytes;  /* constant */
    size_t first_idx, items_count; /* [lock] */
    bool closed;                   /* [lock] */
};

enum err queue_new(struct queue **out, size_t items_max, size_t item_bytes) {
    ASSERT(items_max > 0 && item_bytes > 0);
    struct queue *q;
    TRY(mem_new(&q, 1, sizeof *q));
    enum err e = mem_new(&q->items, items_max, item_bytes);
    if (e != OK) {
        mem_free(q);
        return e;
    }
    q->items_max = items_max;
    q->item_bytes = item_bytes;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->not_full, &monotonic);
    pthread_cond_init(&q->not_empty, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = q;
    return OK;
}

void queue_free(struct queue **q) {
    if (!*q) {
        return;
    }
    ASSERT((*q)->closed || (*q)->items_count == 0);
    pthread_cond_destroy(&(*q)->not_full);
    pthread_cond_destroy(&(*q)->not_empty);
    pthread_mutex_destroy(&(*q)->lock);
    mem_free((*q)->items);
    mem_free_ptr(q);
}

/* Under the lock: waits on `side` until *blocked_count differs from `bound` or the queue is closed. */
static bool wait_while(struct queue *q, pthread_cond_t *side, size_t bound, uint64_t wait_ns) {
    if (wait_ns == 0) {
        return q->items_count != bound || q->closed;
    }
    struct timespec until = clock_wait_until(wait_ns);
    int rc = 0;
    while (q->items_count == bound && !q->closed && rc == 0) {
        rc = pthread_cond_timedwait(side, &q->lock, &until);
    }
    return q->items_count != bound || q->closed;
}

static void put_locked(struct queue *q, const void *item) {
    size_t idx = (q->first_idx + q->items_count) % q->items_max;
    memcpy(q->items + idx * q->item_bytes, item, q->item_bytes);
    q->items_count++;
    pthread_cond_signal(&q->not_empty);
}

enum err queue_put(struct queue *q, const void *item, uint64_t wait_ns) {
    pthread_mutex_lock(&q->lock);
    bool ready = wait_while(q, &q->not_full, q->items_max, wait_ns);
    bool closed = q->closed;
    if (ready && !closed) {
        put_locked(q, item);
    }
    pthread_mutex_unlock(&q->lock);
    REQUIRE(!closed, E_CANCELLED, "the queue is closed");
    REQUIRE(ready, E_TIMEOUT, "the queue stayed full (%zu items)", q->items_max);
    return OK;
}

enum err queue_try_put(struct queue *q, const void *item) {
    enum err e = queue_put(q, item, 0);
    REQUIRE(e != E_TIMEOUT, E_QUEUE, "the queue is full (%zu items)", q->items_max);
    return e;
}

enum err queue_take(struct queue *q, void *item, uint64_t wait_ns) {
    pthread_mutex_lock(&q->lock);
    bool ready = wait_while(q, &q->not_empty, 0, wait_ns);
    bool taken = ready && q->items_count > 0;
    if (taken) {
        memcpy(item, q->items + q->first_idx * q->item_bytes, q->item_bytes);
        q->first_idx = (q->first_idx + 1) % q->items_max;
        q->items_count--;
        pthread_cond_signal(&q->not_full);
    }
    pthread_mutex_unlock(&q->lock);
    REQUIRE(taken || !ready, E_CANCELLED, "the queue is closed and empty");
    REQUIRE(taken, E_TIMEOUT, "the queue stayed empty");
    return OK;
}

size_t queue_length(struct queue *q) {
    pthread_mutex_lock(&q->lock);
    size_t count = q->items_count;
    pthread_mutex_unlock(&q->lock);
    return count;
}

void queue_close(struct queue *q) {
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->not_full);
    pthread_cond_broadcast(&q->not_empty);
    pthread_mutex_unlock(&q->lock);
}
