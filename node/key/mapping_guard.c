/* A fixed table of ranges and one handler.
 *
 * The handler may run on any thread at any instruction, so it touches atomics and one system call only: it maps an
 * anonymous page over the lost one and returns, and the faulting load runs again. A slot is taken with a compare and
 * exchange on its state; base and end are written before the state becomes LIVE, so the handler never sees half a
 * range. Two threads that fault on one page at the same time both map zeros: harmless, nobody writes there.
 */
#include "node/key/mapping_guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FREE, TAKEN, LIVE, TORN };

static struct {
    _Atomic int state;
    _Atomic uintptr_t base, end;
} slots[GUARDS_MAX];

static struct sigaction before;
static uintptr_t page_bytes;

/* Marks the slot and puts zeros where the page was. */
static bool mend(uintptr_t address) {
    for (unsigned i = 0; i < GUARDS_MAX; i++) {
        int state = atomic_load(&slots[i].state);
        if ((state != LIVE && state != TORN) || address < atomic_load(&slots[i].base) ||
            address >= atomic_load(&slots[i].end)) {
            continue;
        }
        void *page = (void *)(address & ~(page_bytes - 1)); /* NOLINT */
        /* The bare system call: libraries' wrappers need not be fit for signal handlers. */
        long got = syscall(SYS_mmap, page, page_bytes, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0L);
        if (got == -1) {
            return false;
        }
        atomic_store(&slots[i].state, TORN);
        return true;
    }
    return false;
}

static void on_sigbus(int number, siginfo_t *info, void *context) {
    if (info->si_code == BUS_ADRERR && mend((uintptr_t)info->si_addr)) {
        return;
    }
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else {
        signal(SIGBUS, SIG_DFL); /* the load runs again and ends the process as it should */
    }
}

/* Signal handlers are the whole process's, so a guest installs none, and its mappings are not guarded. */
static void install(void) {
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
#ifdef BELLOWS_GUEST
    (void)on_sigbus;
#else
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before);
#endif
}

struct mapping_guard guard_open(const void *base, size_t len) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    for (int i = 0; i < GUARDS_MAX; i++) {
        int expected = FREE;
        if (atomic_compare_exchange_strong(&slots[i].state, &expected, TAKEN)) {
            atomic_store(&slots[i].base, (uintptr_t)base);
            atomic_store(&slots[i].end, (uintptr_t)base + len);
            atomic_store(&slots[i].state, LIVE);
            return (struct mapping_guard){i + 1};
        }
    }
    return (struct mapping_guard){0};
}

void guard_close(struct mapping_guard *guard) {
    if (guard->slot > 0) {
        atomic_store(&slots[guard->slot - 1].state, FREE);
        guard->slot = 0;
    }
}

void mapping_advise(struct bytes span, int advice) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)span.ptr & ~(page - 1);
    (void)!madvise((void *)from, (uintptr_t)span.ptr + span.len - from, advice); /* NOLINT */
}

bool guard_is_torn(const struct mapping_guard *guard) {
    return guard->slot > 0 && atomic_load(&slots[guard->slot - 1].state) == TORN;
}

FALLIBLE guarded_open(struct guarded_map *out, const char *path) {
    struct guarded_map m = {0};
    TRY(file_map_open(&m.map, path));
    if (!m.map.heap) {
        m.guard = guard_open(m.map.base, m.map.bytes.len);
    }
    *out = m;
    return OK;
}

FALLIBLE guarded_intact(const struct guarded_map *m, const char *cure) {
    REQUIRE(!guard_is_torn(&m->guard), E_IO, "%s: the file became shorter while it was in use; %s",
            m->map.path, cure);
    return OK;
}

void guarded_close(struct guarded_map *m) {
    guard_close(&m->guard);
    file_map_close(&m->map);
    *m = (struct guarded_map){0};
}
