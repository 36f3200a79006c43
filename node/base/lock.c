/* Each thread remembers the ranks it holds in a small stack. A lock that is free costs one trylock more than nothing; the
 * clock is read only by a thread that has to wait anyway.
 */
#include "node/base/lock.h"

#include <stdatomic.h>

#include "node/base/clock.h"

static _Atomic uint64_t waited_ns[LOCK_RANKS_COUNT];

#ifdef BELLOWS_DEBUG
enum { HELD_MAX = LOCK_RANKS_COUNT };
static _Thread_local const struct lock *held[HELD_MAX];
static _Thread_local size_t held_count;

static void note_take(const struct lock *l) {
    DASSERT(held_count == 0 || l->rank < held[held_count - 1]->rank);
    held[held_count++] = l;
}

static void note_give(const struct lock *l) {
    DASSERT(held_count > 0 && held[held_count - 1] == l);
    held_count--;
}
#else
static void note_take(const struct lock *l) {
    (void)l;
}
static void note_give(const struct lock *l) {
    (void)l;
}
#endif

void lock_init(struct lock *l, enum lock_rank rank) {
    pthread_mutex_init(&l->mutex, NULL);
    l->rank = rank;
}

void lock_done(struct lock *l) {
    ASSERT(!pthread_mutex_destroy(&l->mutex)); /* somebody holds it */
}

void lock_take(struct lock *l) {
    note_take(l);
    if (pthread_mutex_trylock(&l->mutex)) {
        uint64_t since = clock_ns();
        pthread_mutex_lock(&l->mutex);
        atomic_fetch_add_explicit(&waited_ns[l->rank], clock_ns() - since, memory_order_relaxed);
    }
}

void lock_give(struct lock *l) {
    note_give(l);
    pthread_mutex_unlock(&l->mutex);
}

void lock_scope_end(struct lock **l) {
    lock_give(*l);
}

void condition_init(struct condition *c) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void condition_done(struct condition *c) {
    pthread_cond_destroy(&c->cond);
}

void condition_wait(struct condition *c, struct lock *l) {
    pthread_cond_wait(&c->cond, &l->mutex);
}

bool condition_wait_until(struct condition *c, struct lock *l, const struct timespec *until) {
    return pthread_cond_timedwait(&c->cond, &l->mutex, until) == 0;
}

void condition_wake_one(struct condition *c) {
    pthread_cond_signal(&c->cond);
}

void condition_wake_all(struct condition *c) {
    pthread_cond_broadcast(&c->cond);
}

uint64_t lock_waited_ns(enum lock_rank rank) {
    ASSERT((unsigned)rank < LOCK_RANKS_COUNT);
    return atomic_load(&waited_ns[rank]);
}
