/* Loaded keys under a budget, with a backend that only counts. */
#include "node/daemon/keycache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

enum { KEY_BYTES = 1000 };

static struct {
    int loaded, slots, loads;
    uint64_t room_bytes; /* as the last plan was told */
    bool load_fails, slot_fails;
} counts;

static enum err fake_plan(struct plan *out, struct backend *b, const struct key_shape *shape) {
    (void)shape;
    counts.room_bytes = b->room_bytes;
    *out = (struct plan){.host_bytes = KEY_BYTES, .device_bytes = KEY_BYTES};
    return OK;
}

static enum err fake_load(struct backend_key **out, struct backend *b, struct key *key) {
    REQUIRE(!counts.load_fails, E_DEVICE, "no");
    counts.loaded++;
    counts.loads++;
    (void)b;
    *out = (struct backend_key *)(void *)key; /* only ever handed back */
    return OK;
}

static void fake_drop(struct backend_key **key) {
    counts.loaded--;
    *key = NULL;
}

static enum err fake_open(struct backend_slot **out, struct backend_key *key) {
    REQUIRE(!counts.slot_fails, E_LIMIT, "no");
    counts.slots++;
    *out = (struct backend_slot *)(void *)key;
    return OK;
}

static void fake_close(struct backend_slot **slot) {
    counts.slots--;
    *slot = NULL;
}

static const struct backend_ops fake_ops = {.name = "fake",
                                            .plan = fake_plan,
                                            .key_load = fake_load,
                                            .key_drop = fake_drop,
                                            .slot_open = fake_open,
                                            .slot_close = fake_close};
static struct backend fake = {.ops = &fake_ops};

static struct key *open_key(void) {
    struct key *key = NULL;
    CHECK_OK(key_open(&key, check_vectors("bn128/mul/circuit.zkey"),
                      (struct key_options){.allow_insecure = true}));
    return key;
}

static struct sha256 name_of(unsigned n) {
    return (struct sha256){{(uint8_t)n, (uint8_t)(n >> 8)}};
}

static void use(struct keycache *c, unsigned n, struct key *key) {
    struct loaded_key loaded;
    struct sha256 digest = name_of(n);
    CHECK_OK(keycache_get(&loaded, c, &digest, key, NULL));
    CHECK(loaded.slot != NULL);
    keycache_give(c, &loaded);
}

static void claim_budget(void) {
    struct keycache *c = NULL;
    struct key *key = open_key();
    struct key_speed speeds[8];
    memset(&counts, 0, sizeof counts);
    CHECK_OK(keycache_new(&c, &fake, 3 * KEY_BYTES));
    clock_hold(1);
    for (unsigned n = 0; n < 3; n++) {
        use(c, n, key);
        clock_sleep_ns(1);
    }
    use(c, 0, key); /* 1 is now used longest ago */
    clock_sleep_ns(1);
    CHECK_EQ(3, counts.loads);
    use(c, 3, key);
    CHECK_EQ(3, counts.loaded);
    CHECK_EQ(3, counts.slots);
    CHECK_EQ(3 * KEY_BYTES, keycache_bytes(c));
    CHECK_EQ(4, keycache_speeds(speeds, 8, c)); /* what left is still known */
    CHECK_EQ(3, speeds[0].digest.b[0]);
    CHECK_EQ(0, speeds[1].digest.b[0]);
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ(speeds[i].digest.b[0] != 1, speeds[i].resident);
    }
    clock_release();
    keycache_free(&c);
    CHECK_EQ(0, counts.loaded);
    CHECK_EQ(0, counts.slots);
    key_unref(&key);
}

/* What the backend may choose by is what the others have left, and nothing for a key that once was too much. */
static void claim_room(void) {
    struct keycache *c = NULL;
    struct key *key = open_key();
    memset(&counts, 0, sizeof counts);
    fake.memory_bytes = 2 * KEY_BYTES + 1;
    CHECK_OK(keycache_new(&c, &fake, 100 * KEY_BYTES));
    clock_hold(1);
    use(c, 0, key);
    CHECK_EQ(2 * KEY_BYTES + 1, counts.room_bytes);
    clock_sleep_ns(1);
    use(c, 1, key);
    CHECK_EQ(KEY_BYTES + 1, counts.room_bytes);
    clock_sleep_ns(1);
    use(c, 2, key); /* 0 leaves for it */
    CHECK_EQ(1, counts.room_bytes);
    clock_sleep_ns(1);
    keycache_drop_all(c);
    use(c, 1, key);
    CHECK_EQ(2 * KEY_BYTES + 1, counts.room_bytes);
    use(c, 0, key);
    CHECK_EQ(0, counts.room_bytes);
    clock_release();
    keycache_free(&c);
    fake.memory_bytes = 0;
    key_unref(&key);
}

static void claim_too_large(void) {
    struct keycache *c = NULL;
    struct key *key = open_key();
    struct loaded_key loaded;
    struct sha256 digest = name_of(1);
    memset(&counts, 0, sizeof counts);
    CHECK_OK(keycache_new(&c, &fake, KEY_BYTES - 1));
    CHECK_ERR(E_LIMIT, keycache_get(&loaded, c, &digest, key, NULL));
    CHECK_HAS(err_detail(), "1000");
    CHECK_HAS(err_detail(), "999");
    CHECK_EQ(0, counts.loads);
    keycache_free(&c);
    key_unref(&key);
}

static void claim_failures(void) {
    struct keycache *c = NULL;
    struct key *key = open_key();
    struct loaded_key loaded;
    struct sha256 digest = name_of(1);
    memset(&counts, 0, sizeof counts);
    CHECK_OK(keycache_new(&c, &fake, 3 * KEY_BYTES));
    counts.load_fails = true;
    CHECK_ERR(E_DEVICE, keycache_get(&loaded, c, &digest, key, NULL));
    counts.load_fails = false;
    counts.slot_fails = true;
    CHECK_ERR(E_LIMIT, keycache_get(&loaded, c, &digest, key, NULL));
    CHECK_EQ(0, counts.loaded);
    CHECK_EQ(0, keycache_bytes(c));
    counts.slot_fails = false;
    use(c, 1, key);
    keycache_drop_all(c); /* after a device error */
    CHECK_EQ(0, counts.loaded);
    use(c, 1, key);
    CHECK_EQ(3, counts.loads);
    keycache_free(&c);
    key_unref(&key);
}

static void claim_many(void) {
    struct keycache *c = NULL;
    struct key *key = open_key();
    memset(&counts, 0, sizeof counts);
    CHECK_OK(keycache_new(&c, &fake, 2 * KEY_BYTES));
    for (unsigned n = 0; n < 1000; n++) { /* more than it remembers */
        use(c, n, key);
        CHECK(counts.loaded <= 2 && counts.slots == counts.loaded);
    }
    keycache_free(&c);
    CHECK_EQ(0, counts.loaded);
    key_unref(&key);
}

/* --- References --- */

struct asker { /* who wants a key on a thread of its own */
    struct keycache *c;
    struct key *key;
    unsigned n;
    struct loaded_key loaded;
    enum err code;
    _Atomic int cancel, done;
    pthread_t thread;
};

static void *ask(void *ctx) {
    struct asker *a = ctx;
    struct sha256 digest = name_of(a->n);
    a->code = keycache_get(&a->loaded, a->c, &digest, a->key, &a->cancel);
    atomic_store(&a->done, 1);
    return NULL;
}

static void start(struct asker *a, struct keycache *c, struct key *key, unsigned n) {
    *a = (struct asker){.c = c, .key = key, .n = n};
    CHECK_EQ(0, pthread_create(&a->thread, NULL, ask, a));
}

static struct loaded_key take(struct keycache *c, unsigned n, struct key *key) {
    struct loaded_key loaded;
    struct sha256 digest = name_of(n);
    CHECK_OK(keycache_get(&loaded, c, &digest, key, NULL));
    return loaded;
}

static void claim_lent(void) {
    struct keycache *c = NULL;
    struct key *key = open_key();
    struct asker waits, late;
    struct loaded_key found;
    struct sha256 first = name_of(0);
    memset(&counts, 0, sizeof counts);
    CHECK_OK(keycache_new(&c, &fake, 2 * KEY_BYTES));
    struct loaded_key a = take(c, 0, key), b = take(c, 1, key);
    start(&waits, c, key, 2);                  /* no room, and nothing may leave */
    while (keycache_find(&found, c, &first)) { /* until it waits: who comes later waits behind it */
        keycache_give(c, &found);
        clock_sleep_ns(1000000);
    }
    CHECK(!atomic_load(&waits.done));
    start(&late, c, key, 0);
    clock_sleep_ns(30000000);
    CHECK(!atomic_load(&late.done));
    keycache_give(c, &b);
    pthread_join(waits.thread, NULL);
    CHECK_OK(waits.code);
    pthread_join(late.thread, NULL);
    CHECK_OK(late.code);
    CHECK_EQ(3, counts.loads);
    CHECK_EQ(2, counts.loaded);
    CHECK(late.loaded.slot == a.slot);
    keycache_give(c, &late.loaded);
    struct loaded_key two = waits.loaded;
    start(&waits, c, key, 3);
    clock_sleep_ns(30000000);
    atomic_store(&waits.cancel, 1);
    pthread_join(waits.thread, NULL);
    CHECK_EQ(E_CANCELLED, waits.code);
    keycache_drop_all(c);
    keycache_give(c, &a);
    struct loaded_key again =
        take(c, 2, key); /* its old self is still lent, and the first has left */
    CHECK(keycache_is_stale(c, &two) && !keycache_is_stale(c, &again));
    keycache_give(c, &two);
    keycache_give(c, &again);
    keycache_free(&c);
    CHECK_EQ(0, counts.loaded);
    key_unref(&key);
}

static void claim_stale(void) {
    struct keycache *c = NULL;
    struct key *key = open_key();
    memset(&counts, 0, sizeof counts);
    CHECK_OK(keycache_new(&c, &fake, 3 * KEY_BYTES));
    struct loaded_key old = take(c, 1, key);
    CHECK(!keycache_is_stale(c, &old));
    keycache_drop_all(c);
    CHECK(keycache_is_stale(c, &old));
    CHECK_EQ(1, counts.loaded); /* lent */
    struct loaded_key fresh = take(c, 1, key);
    CHECK_EQ(2, counts.loads);
    CHECK_EQ(2, counts.loaded);
    keycache_give(c, &old);
    use(c, 2, key); /* whoever loads next drops it */
    CHECK_EQ(2, counts.loaded);
    keycache_give(c, &fresh);
    keycache_free(&c);
    CHECK_EQ(0, counts.slots);
    key_unref(&key);
}

static void claim_kept(void) {
    struct keycache *c = NULL;
    struct key *key = open_key();
    struct loaded_key found;
    struct sha256 kept = name_of(7);
    memset(&counts, 0, sizeof counts);
    fake.memory_bytes = 2 * KEY_BYTES; /* a memory of its own */
    CHECK_OK(keycache_new(&c, &fake, 100 * KEY_BYTES));
    fake.memory_bytes = 0;
    CHECK_OK(keycache_keep(c, &kept, key));
    for (unsigned n = 0; n < 20; n++) {
        use(c, n % 5, key);
        CHECK(counts.loaded <= 2);
    }
    CHECK_EQ(2 * KEY_BYTES, keycache_device_bytes(c));
    CHECK(keycache_find(&found, c, &kept));
    CHECK_EQ(0, found.load_ns);
    keycache_give(c, &found);
    struct sha256 second = name_of(8), third = name_of(9);
    CHECK_OK(keycache_keep(c, &second, key));
    CHECK_ERR(E_LIMIT, keycache_keep(c, &third, key));
    CHECK_HAS(err_detail(), "device");
    keycache_free(&c);
    key_unref(&key);
}

static void claim_learns(void) {
    struct keycache *c = NULL;
    struct key *key = open_key();
    struct sha256 digest = name_of(1);
    memset(&counts, 0, sizeof counts);
    CHECK_OK(keycache_new(&c, &fake, 2 * KEY_BYTES));
    CHECK_EQ(0, keycache_estimate(c, &digest));
    use(c, 1, key);
    keycache_learn(c, &digest, 1000);
    CHECK_EQ(1000, keycache_estimate(c, &digest));
    keycache_learn(c, &digest, 2000);
    CHECK_EQ(1250, keycache_estimate(c, &digest));
    keycache_free(&c);
    key_unref(&key);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"loaded keys keep their budget, the one used longest ago leaves", claim_budget},
        {"a plan is told what other keys have left", claim_room},
        {"a key whose plan exceeds the budget is refused with both numbers", claim_too_large},
        {"a failed load leaves nothing behind", claim_failures},
        {"more keys than are remembered", claim_many},
        {"a key that finds no room waits for one that is lent, and nobody passes it", claim_lent},
        {"a key that is given up while it is lent is loaded anew for the next", claim_stale},
        {"kept keys stay, and those that would need their room are refused", claim_kept},
        {"speeds are learnt", claim_learns},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
