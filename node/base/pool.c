/* One job at a time, joined by whoever is free.
 *
 * pool_for opens a job under the lock, wakes as many threads as it can use, and works itself. Indices come from one
 * atomic counter. A thread joins only while the job is open, and counts itself in `inside`; the caller closes the job
 * when the indices have run out and then waits until nobody is inside. So a thread that wakes late finds the job
 * closed and sleeps again, and no job waits for a thread that was never scheduled.
 *
 * A proof calls pool_for a few hundred times with little in between, and waking a sleeper costs tens of microseconds:
 * a thread that has nothing to do watches for the next job for SPIN_ROUNDS pauses (some 20 µs) before it sleeps,
 * unless the pool has more threads than there are cores.
 */
#include "node/base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "node/base/cgroup.h"
#include "node/base/lock.h"
#include "node/base/mem.h"

enum { POOL_THREADS_MAX = 1024, SPIN_ROUNDS = 500 };

struct worker {
    struct pool *pool; /* lent */
    unsigned idx;
    pthread_t thread;
};

struct pool {
    struct lock lock;
    struct condition wake, done;
    struct worker *workers;              /* owned; workers[0] is the caller and has no thread */
    unsigned threads_count;              /* constant */
    unsigned threads_started;            /* [opener] */
    unsigned spin_rounds;                /* constant */
    pool_task *task;                     /* [lock]: constant while the job is open */
    void *ctx;                           /* [lock] */
    size_t count;                        /* [lock] */
    bool open, stopping;                 /* [lock] */
    atomic_uint inside;                  /* [lock] to rise, atomic to watch */
    atomic_uint jobs_count;              /* rises with each job: what idle threads watch */
    _Alignas(64) atomic_size_t next_idx; /* alone on its line: everybody writes it */
};

static _Thread_local struct pool *inside_pool; /* the pool whose task this thread is running */
static _Thread_local unsigned inside_worker_idx;

static inline void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

static void work(struct pool *p, unsigned worker_idx, pool_task *task, void *ctx, size_t count) {
    struct pool *outer_pool = inside_pool;
    unsigned outer_idx = inside_worker_idx;
    inside_pool = p;
    inside_worker_idx = worker_idx;
    for (size_t idx; (idx = atomic_fetch_add(&p->next_idx, 1)) < count;) {
        task(ctx, idx, worker_idx);
    }
    inside_pool = outer_pool;
    inside_worker_idx = outer_idx;
}

static void *worker_main(void *arg) {
    struct worker *self = arg;
    struct pool *p = self->pool;
    unsigned seen = 0; /* no job before the first: a thread that starts late joins what is open */
    for (;;) {
        for (unsigned i = 0; i < p->spin_rounds && atomic_load(&p->jobs_count) == seen; i++) {
            pause_cpu();
        }
        lock_take(&p->lock);
        while (!p->stopping && !(p->open && atomic_load(&p->jobs_count) != seen)) {
            condition_wait(&p->wake, &p->lock);
        }
        if (p->stopping) {
            lock_give(&p->lock);
            return NULL;
        }
        seen = atomic_load(&p->jobs_count);
        pool_task *task = p->task;
        void *ctx = p->ctx;
        size_t count = p->count;
        atomic_fetch_add(&p->inside, 1);
        lock_give(&p->lock);

        work(p, self->idx, task, ctx, count);

        lock_take(&p->lock);
        if (atomic_fetch_sub(&p->inside, 1) == 1) {
            condition_wake_one(&p->done);
        }
        lock_give(&p->lock);
    }
}

unsigned pool_cores_usable(void) {
    return cgroup_cores();
}

unsigned pool_threads_count(const struct pool *p) {
    return p->threads_count;
}

static FALLIBLE start_workers(struct pool *p) {
    sigset_t all, before; /* signals are for the threads that wait for them */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = 0;
    for (unsigned i = 1; i < p->threads_count && rc == 0; i++) {
        p->workers[i] = (struct worker){.pool = p, .idx = i};
        rc = pthread_create(&p->workers[i].thread, NULL, worker_main, &p->workers[i]);
        if (rc == 0) {
            char name[16];
            snprintf(name, sizeof name, "work-%u", i);
            pthread_setname_np(p->workers[i].thread, name);
            p->threads_started++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    REQUIRE(rc == 0, E_LIMIT,
            "thread %u of %u could not be started: %s; see the limits on processes (ulimit -u, the "
            "control group's pids.max)%s",
            p->threads_started + 1, p->threads_count, strerror(rc), mem_limit());
    return OK;
}

enum err pool_open(struct pool **out, unsigned threads_count) {
    unsigned cores = pool_cores_usable();
    threads_count = threads_count ? threads_count : cores;
    REQUIRE(threads_count <= POOL_THREADS_MAX, E_RANGE, "%u threads asked for, at most %d allowed",
            threads_count, POOL_THREADS_MAX);
    AUTO(pool_close) struct pool *p = NULL;
    TRY(mem_new(&p, 1, sizeof *p));
    lock_init(&p->lock, LOCK_POOL);
    condition_init(&p->wake);
    condition_init(&p->done);
    p->threads_count = threads_count;
    p->spin_rounds = threads_count <= cores ? SPIN_ROUNDS : 0;
    TRY(mem_new(&p->workers, threads_count, sizeof *p->workers));
    TRY(start_workers(p));
    *out = TAKE(p);
    return OK;
}

void pool_close(struct pool **address) {
    struct pool *p = *address;
    if (!p) {
        return;
    }
    ASSERT(inside_pool != p);
    lock_take(&p->lock);
    p->stopping = true;
    condition_wake_all(&p->wake);
    lock_give(&p->lock);
    for (unsigned i = 1; i <= p->threads_started; i++) {
        pthread_join(p->workers[i].thread, NULL);
    }
    condition_done(&p->wake);
    condition_done(&p->done);
    lock_done(&p->lock);
    mem_free(p->workers);
    mem_free_ptr(address);
}

static void run_inline(struct pool *p, size_t count, pool_task *task, void *ctx) {
    struct pool *outer_pool = inside_pool;
    unsigned outer_idx = inside_worker_idx;
    if (outer_pool != p) {
        inside_worker_idx = 0;
    }
    inside_pool = p;
    unsigned worker_idx = inside_worker_idx;
    for (size_t idx = 0; idx < count; idx++) {
        task(ctx, idx, worker_idx);
    }
    inside_pool = outer_pool;
    inside_worker_idx = outer_idx;
}

void pool_for(struct pool *p, size_t count, pool_task *task, void *ctx) {
    if (!p) {
        for (size_t idx = 0; idx < count; idx++) {
            task(ctx, idx, 0);
        }
        return;
    }
    if (count <= 1 || p->threads_count == 1 || inside_pool == p) {
        run_inline(p, count, task, ctx);
        return;
    }
    ASSERT(count < SIZE_MAX - POOL_THREADS_MAX); /* each thread overshoots the counter once */
    lock_take(&p->lock);
    ASSERT(!p->open); /* one caller at a time */
    p->task = task;
    p->ctx = ctx;
    p->count = count;
    atomic_store(&p->next_idx, 0);
    p->open = true;
    atomic_fetch_add(&p->jobs_count, 1);
    if (count >= p->threads_count) {
        condition_wake_all(&p->wake);
    } else {
        for (size_t i = 1; i < count; i++) {
            condition_wake_one(&p->wake);
        }
    }
    lock_give(&p->lock);

    work(p, 0, task, ctx, count);

    for (unsigned i = 0; i < p->spin_rounds && atomic_load(&p->inside) > 0; i++) {
        pause_cpu();
    }
    lock_take(&p->lock);
    p->open = false;
    while (atomic_load(&p->inside) > 0) {
        condition_wait(&p->done, &p->lock);
    }
    lock_give(&p->lock);
}
