/* The clock runs, can be held, and waits end in real time. */
#include "node/base/clock.h"
#include "tests/check/check.h"

enum { MS = 1000000 };

static void claim_runs(void) {
    uint64_t a = clock_ns(), cpu = clock_cpu_ns();
    clock_sleep_ns(2 * MS);
    CHECK(clock_ns() - a >= 2 * MS);
    CHECK(clock_cpu_ns() >= cpu);
    CHECK(clock_unix_ns() > UINT64_C(1700000000) * 1000000000);
}

static void claim_held(void) {
    clock_hold(1000);
    CHECK_EQ(1000, clock_ns());
    CHECK_EQ(1000, clock_ns());
    clock_sleep_ns(UINT64_C(3600) * 1000 * MS); /* an hour passes at once */
    CHECK(clock_ns() == 1000 + UINT64_C(3600) * 1000 * MS);
    clock_hold(5);
    CHECK_EQ(5, clock_ns());
    clock_release();
    uint64_t a = clock_ns();
    CHECK(a != 5);
}

static void claim_wait_until(void) {
    struct timespec now = clock_wait_until(0), later = clock_wait_until(UINT64_C(5) * 1000 * MS);
    CHECK(later.tv_sec - now.tv_sec >= 5 && later.tv_sec - now.tv_sec <= 6);
    CHECK(later.tv_nsec >= 0 && later.tv_nsec < 1000 * MS);
    struct timespec never = clock_wait_until(UINT64_MAX);
    CHECK(never.tv_sec > now.tv_sec + 1000000);
    clock_hold(0);
    struct timespec held = clock_wait_until(0);
    clock_release();
    CHECK(held.tv_sec >= now.tv_sec);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the monotonic clock runs and a sleep is at least as long as asked", claim_runs},
        {"a held clock stands still and moves only by sleeping", claim_held},
        {"waits end in real time, and a wait for ever does not wrap", claim_wait_until},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
