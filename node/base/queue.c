/* A ring of items under one mutex, with a condition for each side. The items are copied in and out, so the lock is
 * held for one memcpy; waits are on the monotonic clock.
 */
#include "node/base/queue.h"

#include <string.h>

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"

struct queue {
    struct lock lock;
    struct condition not_full, not_empty, closing;
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
    lock_init(&q->lock, LOCK_QUEUE);
    condition_init(&q->not_full);
    condition_init(&q->not_empty);
    condition_init(&q->closing);
    *out = q;
    return OK;
}

void queue_free(struct queue **q) {
    if (!*q) {
        return;
    }
    ASSERT((*q)->closed || (*q)->items_count == 0);
    condition_done(&(*q)->not_full);
    condition_done(&(*q)->not_empty);
    condition_done(&(*q)->closing);
    lock_done(&(*q)->lock);
    mem_free((*q)->items);
    mem_free_ptr(q);
}

/* Under the lock: waits on `side` until the count of items is not `bound` or the queue is closed. */
static bool wait_while(struct queue *q, struct condition *side, size_t bound, uint64_t wait_ns) {
    if (wait_ns == 0) {
        return q->items_count != bound || q->closed;
    }
    struct timespec until = clock_wait_until(wait_ns);
    bool in_time = true;
    while (q->items_count == bound && !q->closed && in_time) {
        in_time = condition_wait_until(side, &q->lock, &until);
    }
    return q->items_count != bound || q->closed;
}

static void put_locked(struct queue *q, const void *item) {
    size_t idx = (q->first_idx + q->items_count) % q->items_max;
    memcpy(q->items + idx * q->item_bytes, item, q->item_bytes);
    q->items_count++;
    condition_wake_one(&q->not_empty);
}

enum err queue_put(struct queue *q, const void *item, uint64_t wait_ns) {
    lock_take(&q->lock);
    bool ready = wait_while(q, &q->not_full, q->items_max, wait_ns);
    bool closed = q->closed;
    if (ready && !closed) {
        put_locked(q, item);
    }
    lock_give(&q->lock);
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
    lock_take(&q->lock);
    bool ready = wait_while(q, &q->not_empty, 0, wait_ns);
    bool taken = ready && q->items_count > 0;
    if (taken) {
        memcpy(item, q->items + q->first_idx * q->item_bytes, q->item_bytes);
        q->first_idx = (q->first_idx + 1) % q->items_max;
        q->items_count--;
        condition_wake_one(&q->not_full);
    }
    lock_give(&q->lock);
    REQUIRE(taken || !ready, E_CANCELLED, "the queue is closed and empty");
    REQUIRE(taken, E_TIMEOUT, "the queue stayed empty");
    return OK;
}

bool queue_wait_closed(struct queue *q, uint64_t wait_ns) {
    struct timespec until = clock_wait_until(wait_ns);
    LOCK_SCOPE(&q->lock);
    while (!q->closed && condition_wait_until(&q->closing, &q->lock, &until)) {
    }
    return q->closed;
}

size_t queue_length(struct queue *q) {
    lock_take(&q->lock);
    size_t count = q->items_count;
    lock_give(&q->lock);
    return count;
}

void queue_close(struct queue *q) {
    lock_take(&q->lock);
    q->closed = true;
    condition_wake_all(&q->not_full);
    condition_wake_all(&q->not_empty);
    condition_wake_all(&q->closing);
    lock_give(&q->lock);
}
