/* The bar: on a terminal after two seconds, elsewhere never. */
#include "node/cli/screen.h"
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS 1000000u

/* Puts standard error on a terminal (or what `fd` is) while the screen runs for `ms`; returns what was drawn. */
static char *drawn_on(int write_fd, int read_fd, const struct job_watch *watch, double share,
                      unsigned ms) {
    static char text[65536];
    int kept = dup(STDERR_FILENO);
    CHECK(kept >= 0 && dup2(write_fd, STDERR_FILENO) >= 0);
    struct screen *screen = NULL;
    screen_open(&screen, "title");
    screen_follow(screen, watch);
    screen_progress(screen, share);
    clock_sleep_ns((uint64_t)ms * MS);
    screen_close(&screen);
    CHECK(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    CHECK(fcntl(read_fd, F_SETFL, O_NONBLOCK) == 0);
    size_t len = 0;
    for (ssize_t got; (got = read(read_fd, text + len, sizeof text - 1 - len)) > 0;) {
        len += (size_t)got; /* a terminal hands out its bytes in pieces */
    }
    text[len] = '\0';
    CHECK(!screen);
    return text;
}

static char *on_terminal(const struct job_watch *watch, double share, unsigned ms) {
    int master = -1, slave = -1;
    CHECK(openpty(&master, &slave, NULL, NULL, NULL) == 0);
    char *text = drawn_on(slave, master, watch, share, ms);
    close(master);
    close(slave);
    return text;
}

static void claim_watch(void) {
    struct job_watch watch = {.step = STEP_MSM_B2, .permille = 430};
    long live = mem_live_blocks();
    setenv("TERM", "xterm", 1);
    char *text = on_terminal(&watch, 0, 2600);
    CHECK_HAS(text, "\rtitle [=================>");
    CHECK_HAS(text, " 43 %  msm_b2  0:02");
    CHECK(!strchr(text, '\n'));
    CHECK(strlen(text) >= 4 && !strcmp(text + strlen(text) - 4, "\r\x1b[K")); /* wiped */
    CHECK_EQ(live, mem_live_blocks());
}

static void claim_share(void) {
    setenv("TERM", "xterm", 1);
    char *text = on_terminal(NULL, 1.0, 2400);
    CHECK_HAS(text, "[========================================] 100 %");
}

static void claim_quiet(void) {
    setenv("TERM", "xterm", 1);
    CHECK_STR("", on_terminal(NULL, 0.5, 1200));
}

static void claim_pipe(void) {
    int ends[2];
    setenv("TERM", "xterm", 1);
    CHECK(pipe(ends) == 0);
    CHECK_STR("", drawn_on(ends[1], ends[0], NULL, 0.5, 2400));
    close(ends[0]);
    close(ends[1]);
}

static void claim_dumb(void) {
    setenv("TERM", "dumb", 1);
    CHECK_STR("", on_terminal(NULL, 0.5, 2400));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a job's step and share are drawn on a terminal and wiped", claim_watch},
        {"a share that is told is drawn", claim_share},
        {"nothing is drawn in the first two seconds", claim_quiet},
        {"nothing is drawn on a pipe", claim_pipe},
        {"nothing is drawn on a dumb terminal", claim_dumb},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
