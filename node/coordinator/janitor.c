/* A bounded queue and a thread. A failed purge is tried again after a pause. What is given up, or dies with this process, is met again by the
 * next leader, in the record of the ended job. */
#include "node/coordinator/janitor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/queue.h"

enum { JANITOR_QUEUE = 4096, PURGE_TRIES = 3 };
static const uint64_t PAUSE_NS = UINT64_C(200000000);
static const uint64_t GIVEN_UP_NS =
    UINT64_C(900000000000); /* is met again by a leader for so long */

struct litter {
    char bucket[128], nuid[72], name[OBJECT_NAME_BYTES_MAX];
    char ack[SUBJECT_BYTES_MAX]; /* of the last one of a message; "": none */
};

struct janitor {
    struct transport *transport; /* lent */
    struct queue *litter;        /* owned */
    pthread_t thread;
    bool thread_runs;
    atomic_bool stopping;
    _Atomic uint64_t left_count;
    _Atomic uint64_t given_up_ns; /* the last time; 0: never */
};

static bool is_connected(const struct janitor *j) {
    struct transport_health health;
    transport_health(&health, j->transport);
    return health.connected;
}

/* False: given up. */
static bool purge(struct janitor *j, const struct litter *item) {
    for (int tries = 0; tries < PURGE_TRIES && !atomic_load(&j->stopping);) {
        if (object_purge(j->transport, item->bucket, item->nuid, item->name) == OK) {
            return true;
        }
        tries += is_connected(j); /* while the server is away it is not the item's fault */
        clock_sleep_ns(PAUSE_NS);
    }
    atomic_store(&j->given_up_ns, clock_ns());
    return false;
}

static void *janitor_main(void *ctx) {
    struct janitor *j = ctx;
    struct litter item;
    bool all = true; /* since the last acknowledgement */
    while (queue_take(j->litter, &item, UINT64_MAX) == OK) {
        all &= purge(j, &item);
        if (item.ack[0]) {
            if (all) {
                IGNORE(transport_ack(j->transport, item.ack, ACK_DONE, 0));
            }
            all = true;
        }
        atomic_fetch_sub(&j->left_count, 1);
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

static void add(struct janitor *j, const char *bucket, const char *nuid, const char *name,
                const char *ack) {
    struct litter item;
    snprintf(item.bucket, sizeof item.bucket, "%s", bucket);
    snprintf(item.nuid, sizeof item.nuid, "%s", nuid);
    snprintf(item.name, sizeof item.name, "%s", name);
    snprintf(item.ack, sizeof item.ack, "%s", ack);
    atomic_fetch_add(&j->left_count, 1);
    if (queue_try_put(j->litter, &item) != OK) {
        atomic_store(&j->given_up_ns, clock_ns());
        atomic_fetch_sub(&j->left_count, 1);
    }
}

void janitor_add(struct janitor *j, const char *bucket, const char *nuid, const char *name) {
    add(j, bucket, nuid, name, "");
}

static bool has_body(const job_message *job, const Bellows__V1__ObjectRef *object) {
    for (size_t i = 0; job && i < job->n_partitions; i++) {
        const Bellows__V1__Body *body = job->partitions[i]->body;
        if (body->place_case == BELLOWS__V1__BODY__PLACE_OBJECT &&
            !strcmp(body->object->nuid, object->nuid)) {
            return true;
        }
    }
    return false;
}

bool janitor_add_job(struct janitor *j, const job_message *job, const job_message *kept,
                     const char *ack) {
    const Bellows__V1__ObjectRef *last = NULL;
    for (size_t i = 0; i < job->n_partitions; i++) {
        const Bellows__V1__Body *body = job->partitions[i]->body;
        if (body->place_case == BELLOWS__V1__BODY__PLACE_OBJECT && !has_body(kept, body->object)) {
            if (last) {
                add(j, last->bucket, last->nuid, last->name, "");
            }
            last = body->object;
        }
    }
    if (last) {
        add(j, last->bucket, last->nuid, last->name, ack ? ack : "");
    }
    return last != NULL;
}

bool janitor_is_clean(const struct janitor *j) {
    uint64_t given_up_ns = atomic_load(&j->given_up_ns);
    return atomic_load(&j->left_count) == 0 &&
           (!given_up_ns || clock_ns() - given_up_ns > GIVEN_UP_NS);
}
