/* A table of every key seen, most of them not loaded any more: what was learnt of their speed outlives them. Fixed size; the entry
 * used longest ago makes room. Speeds are a moving average that forgets by a quarter per job.
 *
 * What is loaded is a resident, counted by its references. Whoever loads or drops holds the turn, a flag under the lock, and works outside
 * of the lock: so a load of seconds delays those alone who want to load. A resident that was given up (stale) has left its entry and is
 * dropped by whoever has the turn next once nobody holds it.
 */
#include "node/daemon/keycache.h"

#include <stdatomic.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"

enum { KEYS_SEEN_MAX = 256, RESIDENTS_MAX = 128 };
static const uint64_t LOOK_NS = UINT64_C(100000000); /* so often a waiting job looks for its end */

struct cost {
    uint64_t host_bytes, device_bytes;
};

struct resident {
    struct sha256 digest;
    struct key *key; /* shared (ref); [turn], as the next two */
    struct backend_key *loaded;
    struct backend_slot *slot;
    struct cost cost;
    unsigned refs_count;    /* [lock] */
    bool used, stale, kept; /* [lock] */
};

struct entry {
    struct key_speed speed;    /* [lock] */
    struct resident *resident; /* [lock] NULL: not loaded */
    uint64_t used_ns;          /* [lock] */
    bool crowded_out;          /* [lock] it has had to leave for another */
};

struct keycache {
    struct backend *backend; /* lent */
    struct cost max;
    struct lock lock;
    struct condition changed;
    struct entry entries[KEYS_SEEN_MAX];
    size_t entries_count; /* [lock] */
    struct resident residents[RESIDENTS_MAX];
    struct cost taken;  /* [lock] by residents */
    uint64_t version;   /* [lock] */
    bool turn;          /* [lock] somebody loads or drops */
    bool short_of_room; /* [lock] and waits for others to give back */
};

enum err keycache_new(struct keycache **out, struct backend *b, uint64_t host_bytes_max) {
    struct keycache *c = NULL;
    TRY(mem_new(&c, 1, sizeof *c));
    lock_init(&c->lock, LOCK_STAGING);
    condition_init(&c->changed);
    c->backend = b;
    c->max = (struct cost){host_bytes_max, b->memory_bytes};
    *out = c;
    return OK;
}

/* --- The table; under the lock --- */

static struct entry *find(struct keycache *c, const struct sha256 *digest) {
    for (size_t i = 0; i < c->entries_count; i++) {
        if (!memcmp(&c->entries[i].speed.digest, digest, sizeof *digest)) {
            return &c->entries[i];
        }
    }
    return NULL;
}

/* The entry used longest ago: of those whose key may leave, or of those that have none. */
static struct entry *oldest(struct keycache *c, bool loaded) {
    struct entry *best = NULL;
    for (size_t i = 0; i < c->entries_count; i++) {
        struct entry *e = &c->entries[i];
        bool fits = loaded ? e->resident && e->resident->refs_count == 0 && !e->resident->kept
                           : !e->resident;
        if (fits && (!best || e->used_ns < best->used_ns)) {
            best = e;
        }
    }
    return best;
}

static struct entry *find_or_add(struct keycache *c, const struct sha256 *digest) {
    struct entry *e = find(c, digest);
    if (!e) {
        _Static_assert(RESIDENTS_MAX < KEYS_SEEN_MAX, "there is an entry without a key");
        e = c->entries_count < KEYS_SEEN_MAX ? &c->entries[c->entries_count++] : oldest(c, false);
        *e = (struct entry){.speed.digest = *digest};
    }
    return e;
}

static void lend(struct loaded_key *out, struct entry *e) {
    e->used_ns = clock_ns();
    e->resident->refs_count++;
    *out = (struct loaded_key){e->resident->key, e->resident->slot, 0, e->resident};
}

/* The entry's key is nobody's to take any more. */
static void give_up(struct keycache *c, struct entry *e) {
    e->resident->stale = true;
    e->resident->kept = false;
    e->resident = NULL;
    e->speed.resident = false;
    c->version++;
}

/* --- Loading and dropping: with the turn --- */

static void unload(struct keycache *c, struct resident *r) {
    if (r->slot) {
        c->backend->ops->slot_close(&r->slot);
    }
    if (r->loaded) {
        c->backend->ops->key_drop(&r->loaded);
    }
    key_unref(&r->key);
    LOCK_SCOPE(&c->lock);
    c->taken.host_bytes -= r->cost.host_bytes;
    c->taken.device_bytes -= r->cost.device_bytes;
    *r = (struct resident){0};
}

/* Drops what is stale and not lent. */
static void reap(struct keycache *c) {
    for (size_t i = 0; i < RESIDENTS_MAX; i++) {
        struct resident *r = &c->residents[i];
        lock_take(&c->lock);
        bool dead = r->used && r->stale && r->refs_count == 0;
        lock_give(&c->lock);
        if (dead) {
            unload(c, r);
        }
    }
}

static void end_turn(struct keycache *c) {
    LOCK_SCOPE(&c->lock);
    c->turn = false;
    c->short_of_room = false;
    condition_wake_all(&c->changed);
}

static bool wait_a_little(struct keycache *c, const _Atomic int *cancel) {
    struct timespec until = clock_wait_until(LOOK_NS);
    condition_wait_until(&c->changed, &c->lock, &until);
    return !cancel || !atomic_load(cancel);
}

static bool fits(const struct keycache *c, struct cost taken, struct cost more) {
    bool host = taken.host_bytes + more.host_bytes <= c->max.host_bytes;
    return host &&
           (!c->max.device_bytes || taken.device_bytes + more.device_bytes <= c->max.device_bytes);
}

static enum err check_possible(struct keycache *c, struct cost want) {
    struct cost kept = {0};
    lock_take(&c->lock);
    for (size_t i = 0; i < RESIDENTS_MAX; i++) {
        const struct resident *r = &c->residents[i];
        kept.host_bytes += r->kept ? r->cost.host_bytes : 0;
        kept.device_bytes += r->kept ? r->cost.device_bytes : 0;
    }
    lock_give(&c->lock);
    bool host = kept.host_bytes + want.host_bytes > c->max.host_bytes;
    REQUIRE(
        fits(c, kept, want), E_LIMIT,
        "proving under this key takes %llu bytes of %s memory, this lane has %llu for keys%s; the "
        "option is %s",
        (unsigned long long)(host ? want.host_bytes : want.device_bytes), host ? "host" : "device",
        (unsigned long long)(host ? c->max.host_bytes - kept.host_bytes
                                  : c->max.device_bytes - kept.device_bytes),
        kept.host_bytes + kept.device_bytes ? " beside those that it keeps" : "",
        host ? "--memory" : "--keep, or a larger device");
    return OK;
}

/* With the turn: until the key has room, and a resident that holds it. Others are dropped, or waited for. */
static enum err make_room(struct resident **out, struct keycache *c, struct cost want,
                          const _Atomic int *cancel) {
    TRY(check_possible(c, want));
    for (;;) {
        reap(c);
        LOCK_SCOPE(&c->lock);
        struct resident *r = NULL;
        for (size_t i = 0; i < RESIDENTS_MAX && !r; i++) {
            r = c->residents[i].used ? NULL : &c->residents[i];
        }
        if (r && fits(c, c->taken, want)) {
            *r = (struct resident){.used = true, .cost = want};
            c->taken.host_bytes += want.host_bytes;
            c->taken.device_bytes += want.device_bytes;
            c->short_of_room = false;
            *out = r;
            return OK;
        }
        struct entry *e = oldest(c, true);
        if (e) {
            e->crowded_out = true;
            give_up(c, e);
            continue;
        }
        c->short_of_room = true;
        REQUIRE(wait_a_little(c, cancel), E_CANCELLED, "cancelled while it waited for its key");
    }
}

static enum err load(struct resident *r, struct keycache *c, const struct sha256 *digest,
                     struct key *key) {
    r->digest = *digest;
    r->key = key_ref(key);
    TRY(c->backend->ops->key_load(&r->loaded, c->backend, key));
    return c->backend->ops->slot_open(&r->slot, r->loaded);
}

/* With the turn: what the next plan and load may choose by. */
static void say_room(struct keycache *c, const struct sha256 *digest) {
    LOCK_SCOPE(&c->lock);
    const struct entry *e = find(c, digest);
    uint64_t max = c->max.device_bytes, taken = c->taken.device_bytes;
    c->backend->room_bytes = (e && e->crowded_out) || taken > max ? 0 : max - taken;
}

/* With the turn. */
static enum err bring_in(struct loaded_key *out, struct keycache *c, const struct sha256 *digest,
                         struct key *key, struct cost want, const _Atomic int *cancel) {
    struct resident *r = NULL;
    TRY(make_room(&r, c, want, cancel));
    uint64_t start_ns = clock_ns();
    enum err code = load(r, c, digest, key);
    if (code != OK) {
        struct fault fault = fault_of(code);
        unload(c, r);
        return fault_raise(&fault);
    }
    LOCK_SCOPE(&c->lock);
    struct entry *e = find_or_add(c, digest);
    e->resident = r;
    e->speed.load_ns = clock_ns() - start_ns;
    e->speed.resident = true;
    c->version++;
    lend(out, e);
    out->load_ns = e->speed.load_ns;
    return OK;
}

/* True: *out is lent. False: the caller has the turn, to load it. */
static enum err look_or_take_turn(bool *lent, struct loaded_key *out, struct keycache *c,
                                  const struct sha256 *digest, const _Atomic int *cancel) {
    LOCK_SCOPE(&c->lock);
    for (;;) {
        struct entry *e = find(c, digest);
        if (e && e->resident && !c->short_of_room) {
            lend(out, e);
            *lent = true;
            return OK;
        }
        if (!c->turn) {
            c->turn = true;
            *lent = false;
            return OK;
        }
        REQUIRE(wait_a_little(c, cancel), E_CANCELLED, "cancelled while it waited for its key");
    }
}

/* --- What others see --- */

void keycache_free(struct keycache **c) {
    if (!*c) {
        return;
    }
    keycache_drop_all(*c);
    for (size_t i = 0; i < RESIDENTS_MAX; i++) {
        ASSERT(!(*c)->residents[i].used);
    }
    condition_done(&(*c)->changed);
    lock_done(&(*c)->lock);
    mem_free_ptr(c);
}

enum err keycache_get(struct loaded_key *out, struct keycache *c, const struct sha256 *digest,
                      struct key *key, const _Atomic int *cancel) {
    struct plan plan;
    bool lent;
    TRY(look_or_take_turn(&lent, out, c, digest, cancel));
    if (lent) {
        return OK;
    }
    say_room(c, digest);
    enum err code = c->backend->ops->plan(&plan, c->backend, key_shape(key));
    if (code == OK) {
        struct cost want = {plan.host_bytes + plan.pinned_bytes, plan.device_bytes};
        code = bring_in(out, c, digest, key, want, cancel);
    }
    end_turn(c);
    return code;
}

bool keycache_find(struct loaded_key *out, struct keycache *c, const struct sha256 *digest) {
    LOCK_SCOPE(&c->lock);
    struct entry *e = find(c, digest);
    if (!e || !e->resident || c->short_of_room) {
        return false;
    }
    lend(out, e);
    return true;
}

bool keycache_has(struct keycache *c, const struct sha256 *digest) {
    LOCK_SCOPE(&c->lock);
    const struct entry *e = find(c, digest);
    return e && e->resident;
}

void keycache_give(struct keycache *c, struct loaded_key *k) {
    if (!k->resident) {
        return;
    }
    lock_take(&c->lock);
    ASSERT(k->resident->refs_count > 0);
    k->resident->refs_count--;
    condition_wake_all(&c->changed);
    lock_give(&c->lock);
    *k = (struct loaded_key){0};
}

enum err keycache_keep(struct keycache *c, const struct sha256 *digest, struct key *key) {
    struct loaded_key k;
    TRY(keycache_get(&k, c, digest, key, NULL));
    lock_take(&c->lock);
    k.resident->kept = !k.resident->stale;
    lock_give(&c->lock);
    keycache_give(c, &k);
    return OK;
}

void keycache_drop_all(struct keycache *c) {
    lock_take(&c->lock);
    for (size_t i = 0; i < c->entries_count; i++) {
        if (c->entries[i].resident) {
            give_up(c, &c->entries[i]);
        }
    }
    bool mine = !c->turn; /* else whoever has it drops them before the next load */
    c->turn = true;
    lock_give(&c->lock);
    if (mine) {
        reap(c);
        end_turn(c);
    }
}

bool keycache_is_stale(struct keycache *c, const struct loaded_key *k) {
    LOCK_SCOPE(&c->lock);
    return k->resident->stale;
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
    LOCK_SCOPE(&c->lock);
    return c->taken.host_bytes;
}

uint64_t keycache_device_bytes(struct keycache *c) {
    LOCK_SCOPE(&c->lock);
    return c->taken.device_bytes;
}

uint64_t keycache_version(struct keycache *c) {
    LOCK_SCOPE(&c->lock);
    return c->version;
}

uint64_t keycache_estimate(struct keycache *c, const struct sha256 *digest) {
    LOCK_SCOPE(&c->lock);
    const struct entry *e = find(c, digest);
    return e ? e->speed.prove_ns + (e->speed.resident ? 0 : e->speed.load_ns) : 0;
}
