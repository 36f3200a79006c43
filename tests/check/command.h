/* Programs that a test runs: no shell, output captured, ended with the test. Over a pipe, or with a log and a limit of time.
 *
 * Threads  the one that started it (the program dies with that thread).
 */
#pragma once
#include "node/daemon/child.h"
#include "tests/check/check.h"

#include <sys/types.h>

struct check_command {
    pid_t pid;
    int fd; /* its standard output and error */
};

/* argv ends with NULL; dir may be NULL. Fails the claim when it cannot be started. */
void check_command_start(struct check_command *out, const char *dir, const char *const *argv);
/* Waits; the first out_bytes - 1 bytes of output as text, trailing newlines cut. Exit code, 128 + signal if killed. */
int check_command_finish(struct check_command *c, char *out, size_t out_bytes);
/* Both in one. 127: no such program. */
int check_command(char *out, size_t out_bytes, const char *dir, const char *const *argv);

/* What a program printed and how it ended. */
struct ran {
    int exit_code;   /* -1: by a signal */
    char out[32768]; /* standard output and error, cut when longer */
};
/* Runs it as a child with options->log_path. Still running after wait_s: it is killed, and the claim fails. */
void check_run(struct ran *out, const struct child_options *options, unsigned wait_s);
