/* Children start, end, and are ended. */
#include "node/daemon/child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "tests/check/check.h"

static struct child_end run_to_end(const char *const *argv, const struct child_options *more) {
    struct child child;
    struct child_end end = {-2, 0};
    struct child_options options = more ? *more : (struct child_options){0};
    bool ended = false;
    options.argv = argv;
    CHECK_OK(child_start(&child, &options));
    for (int n = 0; n < 1000 && !ended; n++) {
        child_poll(&ended, &end, &child);
        clock_sleep_ns(5000000);
    }
    CHECK(ended);
    CHECK_EQ(0, child.pid);
    return end;
}

static void claim_exit_codes(void) {
    CHECK_EQ(7, run_to_end((const char *[]){"sh", "-c", "exit 7", NULL}, NULL).exit_code);
    struct child_end end = run_to_end((const char *[]){"sh", "-c", "kill -9 $$", NULL}, NULL);
    CHECK_EQ(-1, end.exit_code);
    CHECK_EQ(SIGKILL, end.signal);
    struct child_options with_env = {.env = {"WORD=here"}};
    CHECK_EQ(
        0,
        run_to_end((const char *[]){"sh", "-c", "test $WORD = here", NULL}, &with_env).exit_code);
}

static void claim_no_such_program(void) {
    struct child child = {0};
    const char *argv[] = {"/nonexistent/program", NULL};
    CHECK_ERR(E_IO, child_start(&child, &(struct child_options){.argv = argv}));
    CHECK_HAS(err_detail(), "/nonexistent/program");
    CHECK_HAS(err_detail(), "No such file");
    CHECK_EQ(0, child.pid);
}

static void claim_stop(void) {
    struct child child = {0};
    child_stop(&child, 0); /* never ran */
    const char *stubborn[] = {"sh", "-c", "trap '' TERM; while :; do sleep 0.05; done", NULL};
    CHECK_OK(child_start(&child, &(struct child_options){.argv = stubborn}));
    clock_sleep_ns(100000000);
    uint64_t start_ns = clock_ns();
    child_stop(&child, 200000000);
    CHECK(clock_ns() - start_ns < 3000000000u);
    CHECK_EQ(0, child.pid);
}

static void claim_orphan(void) {
    CHECK(!child_is_orphan(0));
    CHECK(!child_is_orphan(getppid()));
    CHECK(child_is_orphan(getpid()));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a child's exit code, signal and environment", claim_exit_codes},
        {"a program that is not there is an error of the start", claim_no_such_program},
        {"a child that ignores SIGTERM is killed in the end", claim_stop},
        {"an orphan knows that it is one", claim_orphan},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
