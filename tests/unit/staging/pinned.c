/* The arena: blocks do not meet, gaps are found again, nothing of a block stays, and a refusal names the limits. */
#include "node/staging/pinned.h"

#include <pthread.h>
#include <string.h>

#include "node/base/mem.h"
#include "tests/check/check.h"

enum { HUGE_PAGE = 2 << 20 };

static struct {
    void *ptr;
    size_t bytes;
    int locked;
    bool fails;
} lock_seen;

static enum err fake_lock(void *ctx, void *ptr, size_t bytes) {
    (void)ctx;
    REQUIRE(!lock_seen.fails, E_LIMIT, "out of lockable pages");
    lock_seen.ptr = ptr;
    lock_seen.bytes = bytes;
    lock_seen.locked++;
    return OK;
}

static void fake_unlock(void *ctx, void *ptr, size_t bytes) {
    (void)ctx;
    CHECK(ptr == lock_seen.ptr && bytes == lock_seen.bytes);
    lock_seen.locked--;
}

static struct pinned *open_arena(size_t bytes) {
    struct pinned *p = NULL;
    struct pinned_options options = {.bytes = bytes, .threads = 2, .numa_node = -1};
    CHECK_OK(pinned_open(&p, &options));
    return p;
}

static void claim_locked(void) {
    struct pinned *p = NULL;
    struct pinned_options options = {.bytes = 3 * HUGE_PAGE + 1,
                                     .threads = 2,
                                     .numa_node = 0, /* there, or a wish that is ignored */
                                     .lock = fake_lock,
                                     .unlock = fake_unlock};
    lock_seen.fails = false;
    CHECK_OK(pinned_open(&p, &options));
    CHECK_EQ(1, lock_seen.locked);
    CHECK_EQ(4 * HUGE_PAGE, lock_seen.bytes);
    CHECK_EQ(4 * HUGE_PAGE, pinned_bytes(p));
    CHECK_EQ(0, (size_t)lock_seen.ptr % HUGE_PAGE);
    CHECK(pinned_start_of(p).touch_ns > 0);
    pinned_close(&p);
    CHECK_EQ(0, lock_seen.locked);
}

static void claim_refused(void) {
    struct pinned *p = NULL;
    struct pinned_options options = {.bytes = HUGE_PAGE,
                                     .threads = 1,
                                     .numa_node = -1,
                                     .lock = fake_lock,
                                     .unlock = fake_unlock};
    lock_seen.fails = true;
    CHECK_ERR(E_DEVICE, pinned_open(&p, &options));
    CHECK_HAS(err_detail(), "out of lockable pages");
    CHECK_HAS(err_detail(), "ulimit -l");
    CHECK_HAS(err_detail(), "--staging");
    CHECK_EQ(3, err_exit_code(E_DEVICE));
    lock_seen.fails = false;
    options.bytes = (size_t)1 << 50; /* more than any machine has: nothing is touched */
    enum err code = pinned_open(&p, &options);
    CHECK_ERR(E_DEVICE, code);
    CHECK_HAS(err_detail(), "--staging");
    CHECK(p == NULL);
}

static void claim_whole(void) {
    struct pinned *p = open_arena(HUGE_PAGE);
    struct pinned_block all = {0}, none = {0};
    CHECK_ERR(E_RANGE, pinned_take(&all, p, HUGE_PAGE + 1));
    CHECK_OK(pinned_take(&all, p, HUGE_PAGE));
    CHECK_ERR(E_LIMIT, pinned_take(&none, p, 1));
    CHECK(none.ptr == NULL);
    CHECK_EQ(HUGE_PAGE, pinned_used_bytes(p));
    pinned_give(p, &all);
    pinned_give(p, &none); /* nothing */
    CHECK_EQ(0, pinned_used_bytes(p));
    CHECK_OK(pinned_take(&all, p, 0));
    pinned_give(p, &all);
    pinned_close(&p);
}

static void claim_gaps(void) {
    enum { BLOCKS = 40, ROUNDS = 4000 };
    struct pinned *p = open_arena(HUGE_PAGE);
    struct pinned_block blocks[BLOCKS] = {{0}};
    size_t refused = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned i = (unsigned)rng_below(check_rng(), BLOCKS);
        if (blocks[i].ptr) {
            for (size_t k = 0; k < blocks[i].bytes; k++) { /* nobody else wrote there */
                CHECK_EQ(i + 1, blocks[i].ptr[k]);
            }
            const uint8_t *was = blocks[i].ptr;
            pinned_give(p, &blocks[i]);
            CHECK_EQ(0, *was);
            continue;
        }
        size_t bytes = 1 + rng_below(check_rng(), 250000);
        enum err code = pinned_take(&blocks[i], p, bytes);
        refused += code == E_LIMIT;
        if (code == OK) {
            CHECK_EQ(0, (size_t)blocks[i].ptr % PINNED_GRAIN_BYTES);
            CHECK_EQ(bytes, blocks[i].bytes);
            memset(blocks[i].ptr, (int)i + 1, bytes);
        }
    }
    CHECK(refused > 0);
    for (unsigned i = 0; i < BLOCKS; i++) {
        pinned_give(p, &blocks[i]);
    }
    CHECK_EQ(0, pinned_used_bytes(p));
    CHECK_OK(pinned_take(&blocks[0], p, HUGE_PAGE)); /* one gap again */
    for (size_t k = 0; k < HUGE_PAGE; k++) {
        CHECK_EQ(0, blocks[0].ptr[k]); /* and nothing of them */
    }
    pinned_give(p, &blocks[0]);
    pinned_close(&p);
}

static void *take_and_give(void *ctx) {
    struct pinned *p = ctx;
    for (int i = 0; i < 2000; i++) {
        struct pinned_block block = {0};
        if (pinned_take(&block, p, 300000) == OK) {
            memset(block.ptr, i, 100);
            ASSERT(block.ptr[99] == (uint8_t)i);
            pinned_give(p, &block);
        }
    }
    return NULL;
}

static void claim_threads(void) {
    struct pinned *p = open_arena(HUGE_PAGE);
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        CHECK_EQ(0, pthread_create(&threads[i], NULL, take_and_give, p));
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(0, pinned_used_bytes(p));
    pinned_close(&p);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"pages are touched, then locked, then unlocked", claim_locked},
        {"what cannot be locked is E_DEVICE with its limits", claim_refused},
        {"all of it can be lent, and no more", claim_whole},
        {"blocks of any size do not meet, are wiped, and leave one gap", claim_gaps},
        {"blocks are taken and given from any thread", claim_threads},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
