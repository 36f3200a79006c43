/* fork and exec; between them only calls that are safe after a fork from a process with threads.
 *
 * exec failures come back through a pipe that exec itself closes, so "no such program" is an error of child_start and not a
 * mysterious early end.
 */
#include "node/daemon/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/base/clock.h"

static const uint64_t POLL_NS = UINT64_C(10000000);

_Noreturn static void become(const struct child_options *o, pid_t parent, int report) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (o->own_group) {
        setpgid(0, 0);
    }
    prctl(PR_SET_PDEATHSIG, o->parent_death_signal ? o->parent_death_signal : SIGTERM);
    if (getppid() == parent) { /* else it died between fork and here */
        int log = o->log_path ? open(o->log_path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
        if (log >= 0) {
            dup2(log, STDOUT_FILENO);
            dup2(log, STDERR_FILENO);
        }
        for (size_t i = 0; i < COUNT_OF(o->env) && o->env[i]; i++) {
            putenv((char *)(uintptr_t)o->env[i]);
        }
        execvp(o->argv[0], (char *const *)(uintptr_t)o->argv);
    }
    int cause = errno;
    ssize_t written = write(report, &cause, sizeof cause);
    (void)written;
    _exit(127);
}

enum err child_start(struct child *out, const struct child_options *options) {
    int report[2];
    REQUIRE(pipe2(report, O_CLOEXEC) == 0, E_IO, "no pipe for %s: %s", options->argv[0],
            strerror(errno));
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        become(options, parent, report[1]);
    }
    int cause = pid < 0 ? errno : 0;
    close(report[1]);
    if (pid > 0) {
        ssize_t got;
        do {
            got = read(report[0], &cause, sizeof cause);
        } while (got < 0 && errno == EINTR);
        cause = got == (ssize_t)sizeof cause ? cause : 0;
        if (cause) {
            waitpid(pid, NULL, 0);
        }
    }
    close(report[0]);
    REQUIRE(cause == 0, E_IO, "%s cannot be started: %s", options->argv[0], strerror(cause));
    *out = (struct child){pid, clock_ns()};
    return OK;
}

void child_poll(bool *ended, struct child_end *end, struct child *child) {
    int status = 0;
    *ended = false;
    if (child->pid > 0 && waitpid(child->pid, &status, WNOHANG) == child->pid) {
        *end = (struct child_end){WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                                  WIFSIGNALED(status) ? WTERMSIG(status) : 0};
        *child = (struct child){0};
        *ended = true;
    }
}

void child_signal(const struct child *child, int number) {
    if (child->pid > 0) {
        kill(child->pid, number);
    }
}

void child_stop(struct child *child, uint64_t wait_ns) {
    bool ended = false;
    struct child_end end;
    uint64_t start_ns = clock_ns();
    child_signal(child, SIGTERM);
    while (child->pid > 0 && !ended) {
        child_poll(&ended, &end, child);
        if (!ended) {
            clock_sleep_ns(POLL_NS);
            if (clock_ns() - start_ns > wait_ns) {
                child_signal(child, SIGKILL);
            }
        }
    }
}

bool child_is_orphan(pid_t parent) {
    return parent > 0 && getppid() != parent;
}
