/* Pieces are aligned and apart; a rewind gives them back; nothing grows. */
#include "node/base/arena.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <string.h>

static void claim_pieces(void) {
    AUTO(arena_free) struct arena *a = NULL;
    CHECK_OK(arena_new(&a, 4096));
    uint8_t *pieces[16];
    for (size_t i = 0; i < 16; i++) {
        CHECK_OK(arena_take(&pieces[i], a, i + 1, 3));
        CHECK_EQ(0, (uintptr_t)pieces[i] % 64);
        memset(pieces[i], (int)i, 3 * (i + 1));
    }
    for (size_t i = 0; i < 16; i++) {
        for (size_t k = 0; k < 3 * (i + 1); k++) {
            CHECK_EQ(i, pieces[i][k]);
        }
    }
}

static void claim_full(void) {
    AUTO(arena_free) struct arena *a = NULL;
    CHECK_OK(arena_new(&a, 200));
    uint8_t *p = NULL, *kept;
    CHECK_ERR(E_LIMIT, arena_take(&p, a, 201, 1));
    CHECK_HAS(err_detail(), "201 bytes wanted, 200 of 200 left");
    CHECK_ERR(E_RANGE, arena_take(&p, a, SIZE_MAX, 2));
    CHECK_ERR(E_RANGE, arena_take(&p, a, SIZE_MAX, 1));
    CHECK(!p);
    CHECK_OK(arena_take(&kept, a, 128, 1));
    CHECK_OK(arena_take(&p, a, 72, 1)); /* to the last byte */
    CHECK_EQ(0, arena_left_bytes(a));
    CHECK_ERR(E_LIMIT, arena_take(&p, a, 1, 1));
    CHECK_OK(arena_take(&p, a, 0, 8));
}

static void claim_rewind(void) {
    AUTO(arena_free) struct arena *a = NULL;
    CHECK_OK(arena_new(&a, 1024));
    uint8_t *first, *second, *third;
    CHECK_OK(arena_take(&first, a, 64, 1));
    struct arena_mark here = arena_mark(a);
    CHECK_OK(arena_take(&second, a, 512, 1));
    arena_rewind(a, here);
    CHECK_OK(arena_take(&third, a, 100, 1));
    CHECK(third == second);
    CHECK_EQ(576, arena_peak_bytes(a));
    memset(first, 7, 64);
    memset(third, 7, 100);
    arena_wipe(a);
    CHECK_EQ(1024, arena_left_bytes(a));
    CHECK_OK(arena_take(&first, a, 164, 1));
#ifndef BELLOWS_DEBUG
    for (size_t i = 0; i < 164; i++) {
        CHECK_EQ(0, first[i]);
    }
#endif
}

static void claim_lent(void) {
    static _Alignas(64) uint8_t memory[256];
    AUTO(arena_free) struct arena *a = NULL;
    CHECK_OK(arena_new_over(&a, (struct bytes_mut){memory, sizeof memory}));
    uint8_t *p;
    CHECK_OK(arena_take(&p, a, 4, 64));
    CHECK(p == memory);
    memset(p, 1, 256);
    arena_free(&a);
    CHECK_EQ(1, memory[255]);
}

static enum err make_arena(void *ctx) {
    (void)ctx;
    AUTO(arena_free) struct arena *a = NULL;
    return arena_new(&a, 1000);
}

static void claim_allocation(void) {
    CHECK_EQ(2, check_allocations(make_arena, NULL));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"pieces are aligned and do not touch", claim_pieces},
        {"a full arena refuses and says what is left", claim_full},
        {"a rewind gives back what was taken since", claim_rewind},
        {"an arena over lent memory leaves it to its owner", claim_lent},
        {"a failed allocation is E_LIMIT", claim_allocation},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
