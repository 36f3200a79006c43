/* A bounded queue and a thread. A failed purge is tried once more after a pause, then left to the bucket's age. */
#include "node/coordinator/janitor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/queue.h"

enum { JANITOR_QUEUE = 4096, PURGE_TRIES = 2 };
static const uint64_t PAUSE_NS = UINT64_C(200000000);

struct litter {
    char bucket[128], nuid[72], name[OBJECT_NAME_BYTES_MAX];
};

struct janitor {
    struct transport *transport; /* lent */
    struct queue *litter;        /* owned */
    pthread_t thread;
    bool thread_runs;
    atomic_bool stopping;
    _Atomic uint64_t purged_count;
};

static void *janitor_main(void *ctx) {
    struct janitor *j = ctx;
    struct litter item;
    while (queue_take(j->litter, &item, UINT64_MAX) == OK) {
        for (int n = 0; n < PURGE_TRIES && !atomic_load(&j->stopping); n++) {
            if (object_purge(j->transport, item.bucket, item.nuid, item.name) == OK) {
                atomic_fetch_add(&j->purged_count, 1);
                break;
            }
            clock_sleep_ns(PAUSE_NS);
        }
    }
    return NULL;
}

enum err janitor_open(struct janitor **out, struct transport *t) {
    AUTO(janitor_close) struct janitor *j = NULL;
    TRY(mem_new(&j, 1, sizeof *j));
    j->transport = t;
    TRY(queue_new(&j->litter, JANITOR_QUEUE, sizeof(struct litter)));
    int rc = pthread_create(&j->thread, NULL, janitor_main, j);
    REQUIRE(rc == 0, E_LIMIT, "no thread for the janitor: %s", strerror(rc));
    j->thread_runs = true;
    *out = TAKE(j);
    return OK;
}

void janitor_close(struct janitor **j) {
    if (!*j) {
        return;
    }
    atomic_store(&(*j)->stopping, true);
    if ((*j)->litter) {
        queue_close((*j)->litter);
    }
    if ((*j)->thread_runs) {
        pthread_join((*j)->thread, NULL);
    }
    queue_free(&(*j)->litter);
    mem_free_ptr(j);
}

void janitor_add(struct janitor *j, const char *bucket, const char *nuid, const char *name) {
    struct litter item;
    snprintf(item.bucket, sizeof item.bucket, "%s", bucket);
    snprintf(item.nuid, sizeof item.nuid, "%s", nuid);
    snprintf(item.name, sizeof item.name, "%s", name);
    IGNORE(queue_try_put(j->litter, &item));
}

uint64_t janitor_purged_count(const struct janitor *j) {
    return atomic_load(&j->purged_count);
}
