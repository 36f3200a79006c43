/* The built program as its users run it: in a scratch folder, with arguments, streams and an exit code.
 *
 * Threads  one. Everything fails the claim itself.
 */
#pragma once
#include "node/base/err.h"

#include <sys/types.h>

enum { ARGUMENTS_MAX = 32 };

/* A scratch folder; made by scratch_open, removed with all its files by scratch_close. */
struct scratch {
    char *path; /* owned */
};
void scratch_open(struct scratch *out);
void scratch_close(struct scratch *s);
const char *scratch_path(const struct scratch *s, const char *name); /* eight in rotation */
size_t scratch_files(const struct scratch *s);                       /* hidden ones too */

struct run {
    int exit_code;   /* -1: ended by a signal */
    int signal;      /* 0: none */
    char *out, *err; /* owned: run_free */
    uint64_t elapsed_ns;
};
void run_free(struct run *r);
/* It ended with this exit code, and said these words. */
void run_expect(const struct run *r, int exit_code, const char *out, const char *err);

/* Runs `bellows WORDS…` in the scratch folder; words are separated by single spaces in `line`, where %s and the like are
 * filled in first (so paths must not hold spaces). Standard input is the file `input`, empty when NULL. */
void run_program(struct run *out, const struct scratch *s, const char *input, const char *line, ...)
    __attribute__((format(printf, 4, 5)));
/* The same, but through `/bin/sh -c`; $BELLOWS is the program. */
void run_script(struct run *out, const struct scratch *s, const char *script, ...)
    __attribute__((format(printf, 3, 4)));

/* A running program: program_start, then program_wait. */
struct program {
    pid_t pid;
    char out_path[512], err_path[512];
    uint64_t start_ns;
};
void program_start(struct program *out, const struct scratch *s, const char *line, ...)
    __attribute__((format(printf, 3, 4)));
void program_wait(struct run *out, struct program *p);

/* Of the corpus, as "bn128", "mul/circuit.zkey"; lent, like check_vectors'. */
const char *curve_file(const char *curve, const char *name);
char *file_text(const char *path); /* the whole file; the caller's: mem_free */
