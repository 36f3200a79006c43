/* fork, exec, files for the streams: no pipe can fill up and no order of reading matters. The streams' files lie in a
 * folder of their own, so that the scratch folder holds only what the program made. */
#include "tests/unit/cli/program.h"
#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void scratch_open(struct scratch *out) {
    CHECK_OK(dir_make_temp(&out->path, "bellows-cli"));
}

void scratch_close(struct scratch *s) {
    if (s->path) {
        IGNORE(dir_remove_tree(s->path));
        mem_free_ptr(&s->path);
    }
}

const char *scratch_path(const struct scratch *s, const char *name) {
    static char paths[8][512];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", s->path, name);
    return path;
}

size_t scratch_files(const struct scratch *s) {
    size_t count = 0;
    DIR *dir = opendir(s->path);
    CHECK(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(dir);
    return count;
}

void run_expect(const struct run *r, int exit_code, const char *out, const char *err) {
    CHECK_MSG(r->exit_code == exit_code, "exit code %d (signal %d), want %d: %s%s", r->exit_code,
              r->signal, exit_code, r->out, r->err);
    CHECK_HAS(r->out, out);
    CHECK_HAS(r->err, err);
}

void run_free(struct run *r) {
    mem_free_ptr(&r->out);
    mem_free_ptr(&r->err);
}

char *file_text(const char *path) {
    struct bytes_mut data = {0};
    CHECK_OK(file_read_all(&data, path, 1 << 26));
    char *text = mem_zero_alloc(data.len + 1, 1);
    CHECK(text);
    if (data.len > 0) {
        memcpy(text, data.ptr, data.len);
    }
    mem_free(data.ptr);
    return text;
}

static const char *program_path(void) {
    static char path[512];
    const char *build = getenv("BELLOWS_BUILD");
    snprintf(path, sizeof path, "%s/bellows", build ? build : "build");
    CHECK_MSG(!access(path, X_OK), "%s is not there; BELLOWS_BUILD names the build folder", path);
    return path;
}

static char *const *words_of(char *line) {
    static char *words[ARGUMENTS_MAX + 2];
    size_t count = 0;
    words[count++] = (char *)program_path();
    for (char *save = NULL, *word = strtok_r(line, " ", &save); word;
         word = strtok_r(NULL, " ", &save)) {
        CHECK(count <= ARGUMENTS_MAX);
        words[count++] = !strcmp(word, "''") ? (char *)"" : word;
    }
    words[count] = NULL;
    return words;
}

static int stream(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC, 0600);
    CHECK_MSG(fd >= 0, "%s cannot be opened", path);
    return fd;
}

static void start(struct program *p, const struct scratch *s, const char *input_path,
                  char *const *words) {
    static unsigned turn;
    const char *tmp = getenv("TMPDIR");
    tmp = tmp && *tmp ? tmp : "/tmp";
    turn++;
    snprintf(p->out_path, sizeof p->out_path, "%s/bellows-cli-%d-%u.out", tmp, (int)getpid(), turn);
    snprintf(p->err_path, sizeof p->err_path, "%s/bellows-cli-%d-%u.err", tmp, (int)getpid(), turn);
    int in = stream(input_path, O_RDONLY);
    int out = stream(p->out_path, O_WRONLY | O_CREAT | O_TRUNC);
    int err = stream(p->err_path, O_WRONLY | O_CREAT | O_TRUNC);
    p->start_ns = clock_ns();
    p->pid = fork();
    CHECK(p->pid >= 0);
    if (p->pid == 0) {
        if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
            dup2(err, STDERR_FILENO) < 0 || chdir(s->path)) {
            _exit(126);
        }
        setenv("BELLOWS", program_path(), 1);
        setenv("BELLOWS_CACHE", "/dev/null/cache",
               1); /* cannot be made, so nothing is remembered */
        execv(words[0], words);
        _exit(127);
    }
    close(in);
    close(out);
    close(err);
}

void program_wait(struct run *out, struct program *p) {
    int status = 0;
    while (waitpid(p->pid, &status, 0) < 0) {
    }
    *out = (struct run){.elapsed_ns = clock_ns() - p->start_ns};
    out->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    out->out = file_text(p->out_path);
    out->err = file_text(p->err_path);
    unlink(p->out_path);
    unlink(p->err_path);
    CHECK(out->exit_code != 126 && out->exit_code != 127);
}

void program_start(struct program *out, const struct scratch *s, const char *line, ...) {
    char text[8192];
    va_list args;
    va_start(args, line);
    vsnprintf(text, sizeof text, line, args);
    va_end(args);
    start(out, s, "/dev/null", words_of(text));
}

void run_program(struct run *out, const struct scratch *s, const char *input, const char *line,
                 ...) {
    char text[8192];
    struct program p;
    va_list args;
    va_start(args, line);
    vsnprintf(text, sizeof text, line, args);
    va_end(args);
    start(&p, s, input ? input : "/dev/null", words_of(text));
    program_wait(out, &p);
}

void run_script(struct run *out, const struct scratch *s, const char *script, ...) {
    char text[8192];
    struct program p;
    va_list args;
    va_start(args, script);
    vsnprintf(text, sizeof text, script, args);
    va_end(args);
    char *const words[] = {(char *)"/bin/sh", (char *)"-c", text, NULL};
    start(&p, s, "/dev/null", words);
    program_wait(out, &p);
}

const char *curve_file(const char *curve, const char *name) {
    char tail[384];
    snprintf(tail, sizeof tail, "%s/%s", curve, name);
    return check_vectors(tail);
}
