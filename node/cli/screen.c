/* A thread wakes every quarter of a second and redraws from atomics, so the work itself never touches the terminal:
 *
 *   prove [=================>                      ]  43 %  msm_b2  0:07
 */
#include "node/cli/screen.h"
#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BAR_CELLS = 40, LINE_BYTES = 256, REDRAW_NS = 250000000 };
#define QUIET_NS 2000000000u

struct screen {
    const char *title; /* lent */
    uint64_t start_ns;
    _Atomic(const struct job_watch *) watch; /* lent */
    _Atomic uint32_t permille;
    pthread_t thread;
    struct lock lock;
    struct condition wake;
    bool closing; /* [lock] */
    bool drawn;   /* [thread], then the closer */
};

static bool is_terminal(void) {
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && (!term || strcmp(term, "dumb") != 0);
}

static void put(const char *line, size_t len) {
    ssize_t written = write(STDERR_FILENO, line, len);
    (void)written; /* a terminal that is gone is no reason to stop the work */
}

static void draw(struct screen *screen, uint64_t elapsed_ns) {
    const struct job_watch *watch = atomic_load(&screen->watch);
    uint32_t permille = watch ? atomic_load_explicit(&watch->permille, memory_order_relaxed)
                              : atomic_load_explicit(&screen->permille, memory_order_relaxed);
    const char *step = "";
    if (watch) {
        step = prove_step_name(
            (enum prove_step)atomic_load_explicit(&watch->step, memory_order_relaxed));
    }
    permille = permille > 1000 ? 1000 : permille;
    char bar[BAR_CELLS + 1];
    size_t full = permille * BAR_CELLS / 1000;
    memset(bar, ' ', BAR_CELLS);
    memset(bar, '=', full);
    if (full < BAR_CELLS) {
        bar[full] = '>';
    }
    bar[BAR_CELLS] = '\0';
    unsigned seconds = (unsigned)(elapsed_ns / 1000000000u);
    char line[LINE_BYTES];
    int len = snprintf(line, sizeof line, "\r%.40s [%s] %3u %%  %s  %u:%02u\x1b[K", screen->title,
                       bar, permille / 10, step, seconds / 60, seconds % 60);
    put(line, len < LINE_BYTES ? (size_t)len : LINE_BYTES - 1);
    screen->drawn = true;
}

static void *run(void *arg) {
    struct screen *screen = arg;
    lock_take(&screen->lock);
    while (!screen->closing) {
        struct timespec until = clock_wait_until(REDRAW_NS);
        condition_wait_until(&screen->wake, &screen->lock, &until);
        uint64_t elapsed_ns = clock_ns() - screen->start_ns;
        if (!screen->closing && elapsed_ns >= QUIET_NS) {
            draw(screen, elapsed_ns);
        }
    }
    lock_give(&screen->lock);
    return NULL;
}

void screen_open(struct screen **out, const char *title) {
    *out = NULL;
    if (!is_terminal()) {
        return;
    }
    struct screen *screen = mem_zero_alloc(1, sizeof *screen);
    if (!screen) {
        return;
    }
    screen->title = title;
    screen->start_ns = clock_ns();
    condition_init(&screen->wake);
    lock_init(&screen->lock, LOCK_CLI);
    if (pthread_create(&screen->thread, NULL, run, screen) != 0) {
        condition_done(&screen->wake);
        lock_done(&screen->lock);
        mem_free(screen);
        return;
    }
    *out = screen;
}

void screen_close(struct screen **address) {
    struct screen *screen = *address;
    if (!screen) {
        return;
    }
    lock_take(&screen->lock);
    screen->closing = true;
    condition_wake_one(&screen->wake);
    lock_give(&screen->lock);
    pthread_join(screen->thread, NULL);
    if (screen->drawn) {
        put("\r\x1b[K", 4);
    }
    condition_done(&screen->wake);
    lock_done(&screen->lock);
    mem_free_ptr(address);
}

void screen_follow(struct screen *screen, const struct job_watch *watch) {
    if (screen) {
        atomic_store(&screen->watch, watch);
    }
}

void screen_progress(void *screen, double done) {
    struct screen *s = screen;
    if (s && done >= 0 && done <= 1) {
        atomic_store_explicit(&s->permille, (uint32_t)(done * 1000), memory_order_relaxed);
    }
}
