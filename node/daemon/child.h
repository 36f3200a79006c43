/* Child processes: started with a clean set of signals, ended by pid, gone when their parent is.
 *
 * Owner    whoever started it.
 * Threads  the main thread: a child dies with the thread that started it.
 * Errors   E_IO when it cannot be started, with the program's name.
 */
#pragma once
#include "node/base/err.h"

#include <sys/types.h>

struct child {
    pid_t pid;           /* 0: none */
    uint64_t started_ns; /* clock_ns */
};

struct child_options {
    const char *const *argv; /* argv[0] is looked up in PATH; NULL at the end */
    const char *env[4];      /* "NAME=value" added to the environment; NULL at the end */
    const char *log_path;    /* standard output and error go there; NULL: stay */
    bool own_group;          /* a terminal's Ctrl-C does not reach it */
    int parent_death_signal; /* what it gets when this process dies; 0: SIGTERM */
};
FALLIBLE child_start(struct child *out, const struct child_options *options);

struct child_end {
    int exit_code; /* -1: ended by a signal */
    int signal;    /* 0: none */
};
/* *ended: it has; then *end says how and the child is cleared. */
void child_poll(bool *ended, struct child_end *end, struct child *child);
void child_signal(const struct child *child, int number);
/* SIGTERM, then SIGKILL after wait_ns. Fine when it never ran. */
void child_stop(struct child *child, uint64_t wait_ns);

/* In a child that was started with its parent's pid: end when that parent is gone already. */
bool child_is_orphan(pid_t parent);
