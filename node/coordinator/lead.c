/* One thread: create or update, then note until when that is good.
 *
 * A request that timed out may have been stored, and then the next one finds another revision than it expects. So a lost
 * compare-and-set is no lost lease yet: the entry is read, and if its session is our own, renewed from there.
 */
#include "node/coordinator/lead.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

struct lead {
    struct transport *transport; /* lent */
    struct subject bucket;
    char holder[ID_BYTES_MAX + 1];
    char session[NUID_BYTES];
    uint64_t ttl_ns;
    uint64_t revision; /* [thread]; 0: not held */
    _Atomic uint64_t good_until_ns, term;
    struct lock lock;
    struct condition changed;
    atomic_bool stopping;
    pthread_t thread;
    bool thread_runs;
};

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

static enum err pack_lease(struct bytes_mut *out, const struct lead *l) {
    Bellows__V1__Lease m = BELLOWS__V1__LEASE__INIT;
    m.version = WIRE_VERSION;
    m.holder = (char *)(uintptr_t)l->holder;
    m.term = atomic_load(&l->term) + 1;
    m.since_unix_ms = clock_unix_ns() / 1000000;
    m.session = (char *)(uintptr_t)l->session;
    return message_pack(out, &m, LEASE_BYTES_MAX, "lease");
}

/* *revision of the lease when it is ours after all, else 0. */
static enum err find_own(uint64_t *revision, const struct lead *l) {
    AUTO(kv_entry_done) struct kv_entry entry = {0};
    AUTO(message_free) Bellows__V1__Lease *m = NULL;
    bool found = false;
    TRY(kv_get(&entry, &found, l->transport, l->bucket.text, "leader"));
    if (found) {
        TRY(message_unpack(&m, &bellows__v1__lease__descriptor, entry.value, LEASE_BYTES_MAX,
                           "lease"));
    }
    *revision = found && !strcmp(m->session, l->session) ? entry.revision : 0;
    return OK;
}

static enum err write_lease(uint64_t *revision, bool *won, const struct lead *l) {
    AUTO(bytes_free) struct bytes_mut packed = {0};
    TRY(pack_lease(&packed, l));
    struct bytes value = bytes_of(packed.ptr, packed.len);
    return l->revision ? kv_update(revision, won, l->transport, l->bucket.text, "leader", value,
                                   l->revision)
                       : kv_create(revision, won, l->transport, l->bucket.text, "leader", value);
}

static enum err try_once(struct lead *l) {
    uint64_t asked_ns = 0, revision = 0;
    bool won = false, held = l->revision != 0;
    for (int n = 0; n < 2 && !won; n++) {
        asked_ns = clock_ns(); /* the server's clock may start now */
        TRY(write_lease(&revision, &won, l));
        if (!won) {
            TRY(find_own(&l->revision, l));
            if (!l->revision) {
                break;
            }
        }
    }
    l->revision = won ? revision : 0;
    if (won && !held) {
        atomic_fetch_add(&l->term, 1);
    }
    atomic_store(&l->good_until_ns, won ? asked_ns + l->ttl_ns - l->ttl_ns / 4 : 0);
    return OK;
}

static uint64_t pause_after(const struct lead *l, enum err code) {
    uint64_t parts = code != OK ? 32 : l->revision ? 4 : 16;
    return l->ttl_ns / parts;
}

static void *lead_main(void *ctx) {
    struct lead *l = ctx;
    while (!atomic_load(&l->stopping)) {
        enum err code = try_once(l); /* the lease ends by the clock if this keeps failing */
        struct timespec until = clock_wait_until(pause_after(l, code));
        LOCK_SCOPE(&l->lock);
        while (!atomic_load(&l->stopping) && condition_wait_until(&l->changed, &l->lock, &until)) {
        }
    }
    return NULL;
}

enum err lead_open(struct lead **out, struct transport *t, const struct subject_space *space,
                   const char *holder, uint64_t ttl_ns) {
    AUTO(lead_close) struct lead *l = NULL;
    TRY(id_check(holder, "name of the coordinator"));
    TRY(mem_new(&l, 1, sizeof *l));
    lock_init(&l->lock, LOCK_COORDINATOR);
    condition_init(&l->changed);
    l->transport = t;
    l->bucket = kv_bucket_name(space, "lead");
    l->ttl_ns = ttl_ns;
    snprintf(l->holder, sizeof l->holder, "%s", holder);
    transport_nuid(l->session);
    int rc = pthread_create(&l->thread, NULL, lead_main, l);
    REQUIRE(rc == 0, E_LIMIT, "no thread for the lease: %s", strerror(rc));
    l->thread_runs = true;
    *out = TAKE(l);
    return OK;
}

void lead_close(struct lead **l) {
    if (!*l) {
        return;
    }
    atomic_store(&(*l)->stopping, true);
    lock_take(&(*l)->lock);
    condition_wake_all(&(*l)->changed);
    lock_give(&(*l)->lock);
    if ((*l)->thread_runs) {
        pthread_join((*l)->thread, NULL);
    }
    if ((*l)->revision && lead_is_held(*l)) {
        IGNORE(kv_delete(NULL, (*l)->transport, (*l)->bucket.text, "leader", (*l)->revision));
    }
    condition_done(&(*l)->changed);
    lock_done(&(*l)->lock);
    mem_free_ptr(l);
}

bool lead_is_held(const struct lead *l) {
    return clock_ns() < atomic_load(&l->good_until_ns);
}

uint64_t lead_term(const struct lead *l) {
    return atomic_load(&l->term);
}
