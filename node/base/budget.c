/* One word, moved by compare-and-swap: either a reservation fits whole or nothing changes. */
#include "node/base/budget.h"

#include <stdatomic.h>

#include "node/base/cgroup.h"
#include "node/base/mem.h"

struct budget {
    const char *name;     /* lent */
    uint64_t limit_bytes; /* constant */
    _Atomic uint64_t used_bytes, peak_bytes;
};

enum err budget_new(struct budget **out, const char *name, uint64_t limit_bytes) {
    struct budget *b;
    TRY(mem_new(&b, 1, sizeof *b));
    b->name = name;
    b->limit_bytes = limit_bytes;
    *out = b;
    return OK;
}

void budget_free(struct budget **b) {
    if (*b) {
        ASSERT(atomic_load(&(*b)->used_bytes) == 0);
        mem_free_ptr(b);
    }
}

static void raise_peak(struct budget *b, uint64_t used) {
    uint64_t peak = atomic_load(&b->peak_bytes);
    while (used > peak && !atomic_compare_exchange_weak(&b->peak_bytes, &peak, used)) {
    }
}

enum err budget_reserve(struct budget *b, uint64_t bytes, const char *what) {
    uint64_t used = atomic_load(&b->used_bytes);
    do {
        REQUIRE(bytes <= b->limit_bytes - used, E_LIMIT,
                "%s: %s needs %llu bytes, %llu of %llu are free", b->name, what,
                (unsigned long long)bytes, (unsigned long long)(b->limit_bytes - used),
                (unsigned long long)b->limit_bytes);
    } while (!atomic_compare_exchange_weak(&b->used_bytes, &used, used + bytes));
    raise_peak(b, used + bytes);
    return OK;
}

void budget_release(struct budget *b, uint64_t bytes) {
    uint64_t before = atomic_fetch_sub(&b->used_bytes, bytes);
    ASSERT(before >= bytes);
}

uint64_t budget_limit_bytes(const struct budget *b) {
    return b->limit_bytes;
}

uint64_t budget_used_bytes(const struct budget *b) {
    return atomic_load(&b->used_bytes);
}

uint64_t budget_peak_bytes(const struct budget *b) {
    return atomic_load(&b->peak_bytes);
}

uint64_t budget_host_bytes(void) {
    uint64_t all = cgroup_memory_bytes();
    return all - all / 8;
}
