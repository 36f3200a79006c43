/* Loaded keys under a budget, with a backend that only counts. */
#include "node/daemon/keycache.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

enum { KEY_BYTES = 1000 };

static struct {
    int loaded, slots, loads;
    bool load_fails, slot_fails;
} counts;

static enum err fake_plan(struct plan *out, struct backend *b, const struct key_shape *shape) {
    (void)b;
    (void)shape;
    *out = (struct plan){.host_bytes = KEY_BYTES};
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
    CHECK_OK(keycache_get(&loaded, c, &digest, key));
    CHECK(loaded.slot != NULL);
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

static void claim_too_large(void) {
    struct keycache *c = NULL;
    struct key *key = open_key();
    struct loaded_key loaded;
    struct sha256 digest = name_of(1);
    memset(&counts, 0, sizeof counts);
    CHECK_OK(keycache_new(&c, &fake, KEY_BYTES - 1));
    CHECK_ERR(E_LIMIT, keycache_get(&loaded, c, &digest, key));
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
    CHECK_ERR(E_DEVICE, keycache_get(&loaded, c, &digest, key));
    counts.load_fails = false;
    counts.slot_fails = true;
    CHECK_ERR(E_LIMIT, keycache_get(&loaded, c, &digest, key));
    CHECK_EQ(0, counts.loaded);
    CHECK_EQ(0, keycache_bytes(c));
    counts.slot_fails = false;
    use(c, 1, key);
    keycache_drop(c, &digest); /* after a device error */
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
        {"a key whose plan exceeds the budget is refused with both numbers", claim_too_large},
        {"a failed load leaves nothing behind", claim_failures},
        {"more keys than are remembered", claim_many},
        {"speeds are learnt", claim_learns},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
