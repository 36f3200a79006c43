/* A table of every key seen, most of them not loaded any more: what was learnt of their speed outlives them. Fixed size; the entry
 * used longest ago makes room. Speeds are a moving average that forgets by a quarter per job.
 */
#include "node/daemon/keycache.h"

#include <string.h>

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"

enum { KEYS_SEEN_MAX = 256 };

struct entry {
    struct key_speed speed; /* [lock] */
    struct key *key;        /* shared (ref) while loaded; [backend's thread], as the next three */
    struct backend_key *loaded;
    struct backend_slot *slot;
    uint64_t bytes;
    uint64_t used_ns; /* [lock] */
};

struct keycache {
    struct backend *backend; /* lent */
    uint64_t bytes_max;
    struct lock lock;
    struct entry entries[KEYS_SEEN_MAX];
    size_t entries_count; /* [lock] */
    uint64_t bytes;       /* [lock] of loaded keys */
    uint64_t version;     /* [lock] */
};

enum err keycache_new(struct keycache **out, struct backend *b, uint64_t bytes_max) {
    struct keycache *c = NULL;
    TRY(mem_new(&c, 1, sizeof *c));
    lock_init(&c->lock, LOCK_STAGING);
    c->backend = b;
    c->bytes_max = bytes_max;
    *out = c;
    return OK;
}

static void unload(struct keycache *c, struct entry *e) {
    if (!e->key) {
        return;
    }
    if (e->slot) {
        c->backend->ops->slot_close(&e->slot);
    }
    if (e->loaded) {
        c->backend->ops->key_drop(&e->loaded);
    }
    key_unref(&e->key);
    lock_take(&c->lock);
    c->bytes -= e->bytes;
    c->version++;
    e->speed.resident = false;
    lock_give(&c->lock);
    e->bytes = 0;
}

void keycache_free(struct keycache **c) {
    if (!*c) {
        return;
    }
    for (size_t i = 0; i < (*c)->entries_count; i++) {
        unload(*c, &(*c)->entries[i]);
    }
    lock_done(&(*c)->lock);
    mem_free_ptr(c);
}

static struct entry *find(struct keycache *c, const struct sha256 *digest) {
    for (size_t i = 0; i < c->entries_count; i++) {
        if (!memcmp(&c->entries[i].speed.digest, digest, sizeof *digest)) {
            return &c->entries[i];
        }
    }
    return NULL;
}

/* The entry used longest ago, loaded ones only or any. */
static struct entry *oldest(struct keycache *c, bool loaded_only) {
    struct entry *best = NULL;
    for (size_t i = 0; i < c->entries_count; i++) {
        struct entry *e = &c->entries[i];
        if ((!loaded_only || e->key) && (!best || e->used_ns < best->used_ns)) {
            best = e;
        }
    }
    return best;
}

static struct entry *find_or_add(struct keycache *c, const struct sha256 *digest) {
    struct entry *e = find(c, digest);
    if (e) {
        return e;
    }
    if (c->entries_count == KEYS_SEEN_MAX) {
        e = oldest(c, false);
        unload(c, e);
    }
    lock_take(&c->lock);
    e = e ? e : &c->entries[c->entries_count++];
    *e = (struct entry){.speed.digest = *digest};
    lock_give(&c->lock);
    return e;
}

static enum err load(struct keycache *c, struct entry *e, struct key *key) {
    struct plan plan;
    TRY(c->backend->ops->plan(&plan, c->backend, key_shape(key)));
    uint64_t bytes = plan.host_bytes + plan.device_bytes + plan.pinned_bytes;
    REQUIRE(bytes <= c->bytes_max, E_LIMIT,
            "proving under this key takes %llu bytes, this lane has %llu for keys; the option is "
            "--memory",
            (unsigned long long)bytes, (unsigned long long)c->bytes_max);
    while (c->bytes + bytes > c->bytes_max) {
        unload(c, oldest(c, true));
    }
    e->key = key_ref(key);
    lock_take(&c->lock);
    e->bytes = bytes;
    c->bytes += bytes;
    lock_give(&c->lock);
    enum err code = c->backend->ops->key_load(&e->loaded, c->backend, key);
    if (code == OK) {
        code = c->backend->ops->slot_open(&e->slot, e->loaded);
    }
    if (code != OK) {
        struct fault fault = fault_of(code);
        unload(c, e);
        return fault_raise(&fault);
    }
    return OK;
}

enum err keycache_get(struct loaded_key *out, struct keycache *c, const struct sha256 *digest,
                      struct key *key) {
    struct entry *e = find_or_add(c, digest);
    uint64_t load_ns = 0;
    if (!e->key) {
        uint64_t start_ns = clock_ns();
        TRY(load(c, e, key));
        load_ns = clock_ns() - start_ns;
        lock_take(&c->lock);
        e->speed.load_ns = load_ns;
        e->speed.resident = true;
        c->version++;
        lock_give(&c->lock);
    }
    lock_take(&c->lock);
    e->used_ns = clock_ns();
    lock_give(&c->lock);
    *out = (struct loaded_key){e->key, e->slot, load_ns};
    return OK;
}

void keycache_drop(struct keycache *c, const struct sha256 *digest) {
    struct entry *e = find(c, digest);
    if (e) {
        unload(c, e);
    }
}

void keycache_drop_all(struct keycache *c) {
    for (size_t i = 0; i < c->entries_count; i++) {
        unload(c, &c->entries[i]);
    }
}

void keycache_learn(struct keycache *c, const struct sha256 *digest, uint64_t prove_ns) {
    lock_take(&c->lock);
    struct entry *e = find(c, digest);
    if (e) {
        uint64_t old = e->speed.prove_ns;
        e->speed.prove_ns = old ? old - old / 4 + prove_ns / 4 : prove_ns;
    }
    lock_give(&c->lock);
}

size_t keycache_speeds(struct key_speed *out, size_t out_max, struct keycache *c) {
    uint64_t after_ns = UINT64_MAX; /* used_ns of the last one taken */
    size_t count = 0;
    lock_take(&c->lock);
    while (count < out_max) {
        const struct entry *best = NULL;
        for (size_t i = 0; i < c->entries_count; i++) {
            const struct entry *e = &c->entries[i];
            if (e->used_ns < after_ns && e->used_ns > 0 && (!best || e->used_ns > best->used_ns)) {
                best = e;
            }
        }
        if (!best) {
            break;
        }
        out[count++] = best->speed;
        after_ns = best->used_ns;
    }
    lock_give(&c->lock);
    return count;
}

uint64_t keycache_bytes(struct keycache *c) {
    lock_take(&c->lock);
    uint64_t bytes = c->bytes;
    lock_give(&c->lock);
    return bytes;
}

uint64_t keycache_version(struct keycache *c) {
    lock_take(&c->lock);
    uint64_t version = c->version;
    lock_give(&c->lock);
    return version;
}

uint64_t keycache_estimate(struct keycache *c, const struct sha256 *digest) {
    uint64_t ns = 0;
    lock_take(&c->lock);
    const struct entry *e = find(c, digest);
    if (e) {
        ns = e->speed.prove_ns + (e->speed.resident ? 0 : e->speed.load_ns);
    }
    lock_give(&c->lock);
    return ns;
}
