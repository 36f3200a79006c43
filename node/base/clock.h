/* Time. Everything asks here, so that tests can hold it still.
 *
 * Threads  any.
 * Units    nanoseconds.
 */
#pragma once
#include <stdint.h>
#include <time.h>

uint64_t clock_ns(void);          /* monotonic; origin arbitrary */
uint64_t clock_unix_ns(void);     /* wall time, for messages and logs only, never for decisions */
uint64_t clock_cpu_ns(void);      /* CPU time of this process, all threads */
uint64_t clock_thread_ns(void);   /* CPU time of the calling thread */
void clock_sleep_ns(uint64_t ns); /* held: moves the held time on instead */

/* The point `wait_ns` from now on CLOCK_MONOTONIC, for pthread_cond_timedwait; far future when it does not fit.
 * Never held: a thread that waits for another one waits in real time. */
struct timespec clock_wait_until(uint64_t wait_ns);

/* Tests only: from now on clock_ns() returns `ns`, until clock_release(). */
void clock_hold(uint64_t ns);
void clock_release(void);
