/* The kernel's clocks, and one held value that stands before the monotonic one. */
#include "node/base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

static const uint64_t SECOND_NS = 1000000000u;

static atomic_bool held;
static _Atomic uint64_t held_ns;

static uint64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

uint64_t clock_ns(void) {
    return atomic_load(&held) ? atomic_load(&held_ns) : read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_unix_ns(void) {
    return read_clock(CLOCK_REALTIME);
}

uint64_t clock_cpu_ns(void) {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clock_thread_ns(void) {
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void clock_sleep_ns(uint64_t ns) {
    if (atomic_load(&held)) {
        atomic_fetch_add(&held_ns, ns);
        return;
    }
    struct timespec until = clock_wait_until(ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

struct timespec clock_wait_until(uint64_t wait_ns) {
    uint64_t at = read_clock(CLOCK_MONOTONIC);
    if (__builtin_add_overflow(at, wait_ns, &at) || at > INT64_MAX) {
        at = INT64_MAX; /* 292 years of uptime */
    }
    return (struct timespec){.tv_sec = (time_t)(at / SECOND_NS), .tv_nsec = (long)(at % SECOND_NS)};
}

void clock_hold(uint64_t ns) {
    atomic_store(&held_ns, ns);
    atomic_store(&held, true);
}

void clock_release(void) {
    atomic_store(&held, false);
}
