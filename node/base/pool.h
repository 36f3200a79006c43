/* Thread pool for CPU arithmetic: the `work` threads.
 *
 * Made once at start; no thread is made after that. pool_for hands out indices one by one (largest first is the
 * caller's business), so uneven tasks balance themselves; the caller's thread works too.
 *
 * Threads  pool_for from one thread at a time per pool; from inside a task it runs inline on that thread. pool_close from no task.
 */
#pragma once
#include "node/base/err.h"

struct pool;

typedef void pool_task(void *ctx, size_t idx, unsigned worker_idx);

FALLIBLE
pool_open(struct pool **out,
          unsigned threads_count); /* 0: one per usable core (cgroup, affinity); E_RANGE, E_LIMIT */
void pool_close(struct pool **p);
unsigned pool_threads_count(const struct pool *p); /* worker_idx < this */
/* Runs task(ctx, 0 … count-1, worker), returns when all are done. p NULL: in order, on the caller's thread, as worker 0. */
void pool_for(struct pool *p, size_t count, pool_task *task, void *ctx);
unsigned pool_cores_usable(void);
