/* Exclusion, conditions, the order of ranks, and the count of waits. */
#include "node/base/lock.h"
#include "node/base/clock.h"
#include "tests/check/check.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 20000 };

static struct lock counter_lock = LOCK_STATIC(LOCK_KEY);
static long counter;

static void *count_up(void *arg) {
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        LOCK_SCOPE(&counter_lock);
        counter++;
    }
    return NULL;
}

static void claim_exclusion(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(0, pthread_create(&threads[i], NULL, count_up, NULL));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(THREADS * ROUNDS, counter);
}

static struct lock baton_lock;
static struct condition baton_moved;
static bool baton; /* [baton_lock] */

static void *pass_baton(void *arg) {
    (void)arg;
    clock_sleep_ns(2000000);
    lock_take(&baton_lock);
    baton = true;
    condition_wake_all(&baton_moved);
    lock_give(&baton_lock);
    return NULL;
}

static void claim_condition(void) {
    lock_init(&baton_lock, LOCK_LANE);
    condition_init(&baton_moved);
    lock_take(&baton_lock);
    struct timespec soon = clock_wait_until(1000000);
    while (condition_wait_until(&baton_moved, &baton_lock, &soon)) {
    }
    pthread_t thread;
    bool started = !pthread_create(&thread, NULL, pass_baton, NULL);
    while (started && !baton) {
        condition_wait(&baton_moved, &baton_lock);
    }
    lock_give(&baton_lock);
    pthread_join(thread, NULL);
    condition_done(&baton_moved);
    lock_done(&baton_lock);
    CHECK(started);
}

static void *hold_a_while(void *arg) {
    int *ready = arg;
    lock_take(&counter_lock);
    bool told = write(ready[1], "r", 1) == 1;
    clock_sleep_ns(told ? 20000000 : 0);
    lock_give(&counter_lock);
    return NULL;
}

static void claim_waits_counted(void) {
    uint64_t before = lock_waited_ns(LOCK_KEY);
    int ready[2];
    char byte;
    CHECK_EQ(0, pipe(ready));
    pthread_t thread;
    CHECK_EQ(0, pthread_create(&thread, NULL, hold_a_while, ready));
    ssize_t got = read(ready[0], &byte, 1);
    lock_take(&counter_lock);
    lock_give(&counter_lock);
    pthread_join(thread, NULL);
    close(ready[0]);
    close(ready[1]);
    CHECK_EQ(1, got);
    CHECK(lock_waited_ns(LOCK_KEY) - before > 5000000);
}

/* Takes two locks in the given order in a process of its own; true when it was stopped. */
static bool aborts(enum lock_rank first, enum lock_rank second) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct lock a, b;
        lock_init(&a, first);
        lock_init(&b, second);
        if (!freopen("/dev/null", "w", stderr)) {
            _exit(2);
        }
        lock_take(&a);
        lock_take(&b);
        lock_give(&b);
        lock_give(&a);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void claim_ranks(void) {
    CHECK(!aborts(LOCK_NODE, LOCK_QUEUE));
#ifdef BELLOWS_DEBUG
    CHECK(aborts(LOCK_QUEUE, LOCK_NODE));
    CHECK(aborts(LOCK_QUEUE, LOCK_QUEUE));
#else
    check_skip("ascending ranks are caught in builds with -Ddebug_checks=true only");
#endif
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a lock excludes", claim_exclusion},
        {"a condition wakes who waits, and time ends a wait", claim_condition},
        {"what threads waited for a lock is counted", claim_waits_counted},
        {"debug builds stop at locks taken in ascending rank", claim_ranks},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
