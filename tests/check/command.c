/* Fork, exec, read to the end, wait; or through node/daemon/child.h, with a look every 5 ms. */
#include "tests/check/command.h"
#include "node/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void check_command_start(struct check_command *out, const char *dir, const char *const *argv) {
    int ends[2];
    pid_t parent = getpid();
    CHECK_MSG(pipe2(ends, O_CLOEXEC) == 0, "pipe: %s", strerror(errno));
    pid_t pid = fork();
    CHECK_MSG(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || (dir && chdir(dir) != 0)) {
            _exit(126);
        }
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(ends[1]);
    *out = (struct check_command){.pid = pid, .fd = ends[0]};
}

int check_command_finish(struct check_command *c, char *out, size_t out_bytes) {
    char rest[4096];
    size_t len = 0;
    int status = 0;
    for (;;) {
        bool full = len + 1 >= out_bytes;
        ssize_t got =
            read(c->fd, full ? rest : out + len, full ? sizeof rest : out_bytes - 1 - len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        len += full ? 0 : (size_t)got;
    }
    close(c->fd);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) {
    }
    c->pid = 0;
    while (len > 0 && out[len - 1] == '\n') {
        len--;
    }
    out[len] = '\0';
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int check_command(char *out, size_t out_bytes, const char *dir, const char *const *argv) {
    struct check_command c;
    check_command_start(&c, dir, argv);
    return check_command_finish(&c, out, out_bytes);
}

void check_run(struct ran *out, const struct child_options *options, unsigned wait_s) {
    enum { LOOKS_PER_S = 200 };
    struct child child;
    struct child_end end = {0};
    bool ended = false;
    CHECK_OK(child_start(&child, options));
    for (unsigned n = 0; n < LOOKS_PER_S * wait_s && !ended; n++) {
        clock_sleep_ns(UINT64_C(1000000000) / LOOKS_PER_S);
        child_poll(&ended, &end, &child);
    }
    child_stop(&child, 0);
    CHECK_MSG(ended, "%s %s: still runs after %u s", options->argv[0],
              options->argv[1] ? options->argv[1] : "", wait_s);
    check_file(out->out, sizeof out->out, options->log_path);
    out->exit_code = end.exit_code;
}
