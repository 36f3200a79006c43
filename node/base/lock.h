/* Locks with ranks, and conditions to wait on.
 *
 * A thread takes locks in descending rank only, so no two threads can wait for each other. Debug builds
 * (-Ddebug_checks=true) assert it at every take; a lock's rank is the place of its owner in the include law, so code calls
 * downwards with its lock held, and nothing below calls back. Nothing under a lock blocks, logs or calls the network.
 *
 * What a thread waited for locks of a rank is counted, so that locks can be ruled out as the cause of a wait.
 *
 * Owner    whoever embeds the struct.
 * Threads  any.
 * Units    nanoseconds, on the monotonic clock; waits are real time even while tests hold the clock.
 */
#pragma once
#include <pthread.h>

#include "node/base/err.h"

enum lock_rank { /* lowest first: taken last */
                 LOCK_LOG,
                 LOCK_FILE,
                 LOCK_QUEUE,
                 LOCK_POOL,
                 LOCK_TELEMETRY,
                 LOCK_KEY,
                 LOCK_BACKEND,
                 LOCK_STAGING,
                 LOCK_TRANSPORT,
                 LOCK_JOB,
                 LOCK_LANE,
                 LOCK_NODE,
                 LOCK_COORDINATOR,
                 LOCK_CLI,
                 LOCK_RANKS_COUNT
};

struct lock {
    pthread_mutex_t mutex;
    enum lock_rank rank;
};
#define LOCK_STATIC(lock_rank)                                                                     \
    { PTHREAD_MUTEX_INITIALIZER, (lock_rank) }

void lock_init(struct lock *l, enum lock_rank rank);
void lock_done(struct lock *l);
void lock_take(struct lock *l);
void lock_give(struct lock *l);
/* AUTO form: `LOCK_SCOPE(&q->lock);` holds it to the end of the block. */
void lock_scope_end(struct lock **l);
#define LOCK_SCOPE(lock_address)                                                                   \
    AUTO(lock_scope_end) __attribute__((unused)) struct lock *scope_lock_ = (lock_address);        \
    lock_take(scope_lock_)

struct condition {
    pthread_cond_t cond;
};
void condition_init(struct condition *c);
void condition_done(struct condition *c);
void condition_wait(struct condition *c, struct lock *held);
/* False when `until` (clock_wait_until) has passed. Wakes without a cause happen: callers loop. */
bool condition_wait_until(struct condition *c, struct lock *held, const struct timespec *until);
void condition_wake_one(struct condition *c);
void condition_wake_all(struct condition *c);

uint64_t lock_waited_ns(enum lock_rank rank); /* all threads together, since start */
