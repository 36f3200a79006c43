/* One lock, one clock reading per change. Every change first books the time since the last one to the account that was current, then
 * changes; so the accounts are a partition of the time by construction, and nothing has to be corrected later.
 *
 * Tickets stand in order of arrival in a short array: there are as many as jobs in hand.
 */
#include "node/telemetry/ledger.h"

#include <string.h>

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"

struct ticket {
    uint64_t number;
    enum ledger_account cause;
};

struct ledger {
    struct lock lock;
    uint64_t start_ns, last_ns;                /* [lock] */
    uint64_t ns[LEDGER_ACCOUNTS_COUNT];        /* [lock] */
    enum ledger_account device;                /* [lock] */
    bool open;                                 /* [lock] a stretch since last_ns */
    bool fenced;                               /* [lock] */
    struct ticket waiting[LEDGER_TICKETS_MAX]; /* [lock] oldest first */
    size_t waiting_count;                      /* [lock] */
    uint64_t arrivals;                         /* [lock] */
};

static const char *const names[LEDGER_ACCOUNTS_COUNT] = {
#define LEDGER_NAME(id, name) [LEDGER_##id] = name,
    LEDGER_TABLE(LEDGER_NAME)
#undef LEDGER_NAME
};

const char *ledger_account_name(enum ledger_account account) {
    ASSERT(account < LEDGER_ACCOUNTS_COUNT);
    return names[account];
}

bool ledger_account_is_compute(enum ledger_account account) {
    return account <= LEDGER_COMPUTE_OTHER;
}

enum err ledger_new(struct ledger **out) {
    struct ledger *l;
    TRY(mem_new(&l, 1, sizeof *l));
    lock_init(&l->lock, LOCK_TELEMETRY);
    l->start_ns = l->last_ns = clock_ns();
    l->device = LEDGER_IDLE;
    *out = l;
    return OK;
}

void ledger_free(struct ledger **l) {
    if (*l) {
        lock_done(&(*l)->lock);
        mem_free_ptr(l);
    }
}

static enum ledger_account current(const struct ledger *l) {
    if (l->device != LEDGER_IDLE) {
        return l->device;
    }
    if (l->waiting_count > 0) {
        return l->waiting[0].cause;
    }
    return l->fenced ? LEDGER_FENCED : LEDGER_WAIT_NO_WORK;
}

/* Books up to now; of an open stretch nothing. */
static void book(struct ledger *l) {
    uint64_t now_ns = clock_ns();
    if (!l->open) {
        l->ns[current(l)] += now_ns - l->last_ns;
        l->last_ns = now_ns;
    }
}

static struct ticket *find(struct ledger *l, uint64_t number) {
    for (size_t i = 0; i < l->waiting_count; i++) {
        if (l->waiting[i].number == number) {
            return &l->waiting[i];
        }
    }
    return NULL;
}

/* --- The device's side --- */

void ledger_device(struct ledger *l, enum ledger_account account) {
    ASSERT(account <= LEDGER_IDLE);
    LOCK_SCOPE(&l->lock);
    ASSERT(!l->open);
    book(l);
    l->device = account;
}

void ledger_begin(struct ledger *l) {
    LOCK_SCOPE(&l->lock);
    ASSERT(!l->open);
    book(l);
    l->open = true;
}

/* part · whole / sum, exactly. */
static uint64_t share(uint64_t part, uint64_t whole, uint64_t sum) {
    return (uint64_t)((unsigned __int128)part * whole / sum);
}

uint64_t ledger_settle(struct ledger *l, const uint64_t measured[LEDGER_ACCOUNTS_COUNT]) {
    LOCK_SCOPE(&l->lock);
    ASSERT(l->open);
    uint64_t now_ns = clock_ns(), stretch_ns = now_ns - l->last_ns, sum_ns = 0,
             left_ns = stretch_ns;
    uint64_t part_max_ns = UINT64_MAX / LEDGER_ACCOUNTS_COUNT; /* the sum does not overflow */
    for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) {
        sum_ns += measured[i] < part_max_ns ? measured[i] : part_max_ns;
    }
    for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) {
        uint64_t part_ns = measured[i] < part_max_ns ? measured[i] : part_max_ns;
        part_ns = sum_ns > stretch_ns ? share(part_ns, stretch_ns, sum_ns) : part_ns;
        l->ns[i] += part_ns;
        left_ns -= part_ns;
    }
    l->ns[LEDGER_COMPUTE_OTHER] += left_ns;
    l->last_ns = now_ns;
    l->open = false;
    l->device = LEDGER_WAIT_FINISH;
    return stretch_ns;
}

void ledger_fence(struct ledger *l, bool fenced) {
    LOCK_SCOPE(&l->lock);
    book(l);
    l->fenced = fenced;
}

/* --- The feeding side --- */

uint64_t ledger_arrive(struct ledger *l) {
    LOCK_SCOPE(&l->lock);
    if (l->waiting_count == LEDGER_TICKETS_MAX) {
        return 0;
    }
    book(l);
    l->waiting[l->waiting_count++] = (struct ticket){++l->arrivals, LEDGER_WAIT_RECORD};
    return l->arrivals;
}

void ledger_cause(struct ledger *l, uint64_t number, enum ledger_account cause) {
    ASSERT(cause < LEDGER_ACCOUNTS_COUNT);
    LOCK_SCOPE(&l->lock);
    struct ticket *ticket = find(l, number);
    if (ticket) {
        book(l);
        ticket->cause = cause;
    }
}

void ledger_leave(struct ledger *l, uint64_t number) {
    LOCK_SCOPE(&l->lock);
    struct ticket *ticket = find(l, number);
    if (ticket) {
        book(l);
        size_t behind = l->waiting_count - (size_t)(ticket - l->waiting) - 1;
        memmove(ticket, ticket + 1, behind * sizeof *ticket);
        l->waiting_count--;
    }
}

/* --- Reading --- */

void ledger_read(struct ledger_view *out, struct ledger *l) {
    LOCK_SCOPE(&l->lock);
    book(l);
    uint64_t now_ns = l->open ? clock_ns() : l->last_ns;
    out->wall_ns = now_ns - l->start_ns;
    out->open_ns = l->open ? now_ns - l->last_ns : 0;
    out->now = l->open ? LEDGER_IDLE : current(l);
    memcpy(out->ns, l->ns, sizeof out->ns);
}
