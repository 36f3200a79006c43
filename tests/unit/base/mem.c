/* Blocks are aligned, counted, and can be made to fail. */
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <string.h>

static void claim_aligned(void) {
    for (size_t bytes = 0; bytes < 5000; bytes = 2 * bytes + 1) {
        AUTO(mem_free_ptr) uint8_t *a = mem_alloc(bytes);
        AUTO(mem_free_ptr) uint8_t *b = mem_zero_alloc(bytes, 1);
        CHECK(a && b);
        CHECK_EQ(0, (uintptr_t)a % 64);
        CHECK_EQ(0, (uintptr_t)b % 64);
        memset(a, 1, bytes);
        for (size_t i = 0; i < bytes; i++) {
            CHECK_EQ(0, b[i]);
        }
    }
}

static void claim_overflow(void) {
    void *out = &out;
    CHECK(!mem_zero_alloc(SIZE_MAX / 2, 3));
    CHECK(!mem_alloc(SIZE_MAX));
    CHECK_ERR(E_LIMIT, mem_new(&out, SIZE_MAX / 2, 3));
    CHECK_ERR(E_LIMIT, mem_new_raw(&out, SIZE_MAX / 2, 3));
    CHECK_HAS(err_detail(), "out of memory");
    CHECK(out == &out);
}

static void claim_counted(void) {
    long before = mem_live_blocks();
    char *s = mem_strdup("bellows");
    uint8_t *grown = mem_grow(NULL, 10);
    CHECK_EQ(before + 2, mem_live_blocks());
    memcpy(grown, "0123456789", 10);
    grown = mem_grow(grown, 100000);
    CHECK(grown && !memcmp(grown, "0123456789", 10));
    CHECK_EQ(before + 2, mem_live_blocks());
    CHECK_STR("bellows", s);
    mem_free_ptr(&s);
    CHECK(!s);
    mem_free(grown);
    mem_free(NULL);
    CHECK_EQ(before, mem_live_blocks());
}

static void claim_injected(void) {
    mem_fail_after(2);
    void *a = mem_alloc(1), *b = mem_zero_alloc(1, 1), *c = mem_alloc(1), *d = mem_alloc(1);
    CHECK(a && b && !c && d);
    mem_fail_after(0);
    CHECK(!mem_grow(a, 100));
    mem_fail_after(0);
    CHECK(!mem_strdup("x"));
    mem_fail_after(-1);
    mem_free(a);
    mem_free(b);
    mem_free(d);
}

static void claim_wiped(void) {
    uint8_t secret[32];
    memset(secret, 7, sizeof secret);
    mem_wipe(secret, sizeof secret);
    for (size_t i = 0; i < sizeof secret; i++) {
        CHECK_EQ(0, secret[i]);
    }
    mem_wipe(NULL, 0);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"blocks are aligned to 64 bytes and zeroed where promised", claim_aligned},
        {"a size that does not fit is refused", claim_overflow},
        {"every block is counted, also through growing", claim_counted},
        {"the n-th allocation fails when asked to, and only that one", claim_injected},
        {"mem_wipe wipes", claim_wiped},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
