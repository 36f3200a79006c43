/* An output appears whole or not at all: also when a write fails, the folder is missing or the process is killed. */
#include "node/base/file.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *dir; /* made and removed by main */

static const char *in_dir(const char *name) {
    static char paths[8][256];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static int entries_count(const char *path) {
    DIR *d = opendir(path);
    CHECK(d);
    int count = -2; /* . and .. */
    while (readdir(d)) {
        count++;
    }
    closedir(d);
    return count;
}

static const char *fresh_dir(const char *name) {
    const char *path = in_dir(name);
    CHECK_OK(dir_make(path));
    return path;
}

static void claim_whole(void) {
    const char *path = in_dir("whole");
    CHECK_OK(file_write_all(path, bytes_of("first", 5)));
    AUTO(file_map_close) struct file_map map = {0};
    CHECK_OK(file_map_open(&map, path));
    CHECK_EQ(5, map.bytes.len);
    CHECK_MEM("first", map.bytes.ptr, 5);
    CHECK(map.inode > 0 && map.mtime_ns > 0);
    CHECK_OK(file_write_all(path, bytes_of("second", 6)));
    CHECK_MEM("first", map.bytes.ptr, 5); /* who reads the old one goes on reading it */
    struct bytes_mut back;
    CHECK_OK(file_read_all(&back, path, 6));
    CHECK_EQ(6, back.len);
    mem_free(back.ptr);
    CHECK_ERR(E_FORMAT, file_read_all(&back, path, 5));
    CHECK_HAS(err_detail(), "more than the 5 bytes");
}

static void claim_large(void) {
    const char *path = in_dir("large");
    enum { BYTES = 300000 };
    AUTO(mem_free_ptr) uint8_t *data = mem_alloc(BYTES);
    rng_fill(check_rng(), data, BYTES);
    AUTO(file_out_close) struct file_out *f = NULL;
    CHECK_OK(file_out_open(&f, path));
    for (size_t at = 0; at < BYTES;) {
        size_t len = 1 + rng_below(check_rng(), 100000);
        len = len < BYTES - at ? len : BYTES - at;
        CHECK_OK(file_out_write(f, bytes_of(data + at, len)));
        at += len;
    }
    CHECK_OK(file_out_commit(f));
    struct bytes_mut back;
    CHECK_OK(file_read_all(&back, path, BYTES));
    CHECK_EQ(BYTES, back.len);
    CHECK_MEM(data, back.ptr, BYTES);
    mem_free(back.ptr);
}

/* A link to a file that is not there yet: the file is made where it points, and the link stays. */
static void claim_dangling_link(void) {
    fresh_dir("dangling");
    CHECK_OK(dir_make(in_dir("dangling/below")));
    CHECK_EQ(0, symlink("second", in_dir("dangling/first")));
    CHECK_EQ(0, symlink("below/file", in_dir("dangling/second")));
    CHECK_OK(file_write_all(in_dir("dangling/first"), bytes_of("x", 1)));
    struct stat info;
    CHECK_EQ(0, lstat(in_dir("dangling/first"), &info));
    CHECK(S_ISLNK(info.st_mode));
    CHECK_EQ(0, lstat(in_dir("dangling/second"), &info));
    CHECK(S_ISLNK(info.st_mode));
    CHECK_EQ(0, lstat(in_dir("dangling/below/file"), &info));
    CHECK(S_ISREG(info.st_mode));
    CHECK_EQ(0, symlink("no/such", in_dir("dangling/nowhere")));
    CHECK_ERR(E_IO, file_write_all(in_dir("dangling/nowhere"), bytes_of("x", 1)));
    CHECK_HAS(err_detail(), "dangling/nowhere cannot be written: No such file");
    CHECK_EQ(0, symlink("round", in_dir("dangling/round")));
    CHECK_ERR(E_IO, file_write_all(in_dir("dangling/round"), bytes_of("x", 1)));
    CHECK_HAS(err_detail(), "Too many levels of symbolic links");
    CHECK_EQ(5, entries_count(in_dir("dangling")));
    CHECK(file_same(in_dir("dangling/first"), in_dir("dangling/below/file")));
    CHECK(!file_same(in_dir("dangling/nowhere"), in_dir("dangling/below/file")));
}

static void claim_abandoned(void) {
    const char *folder = fresh_dir("abandoned"), *path = in_dir("abandoned/out");
    struct file_out *f = NULL;
    CHECK_OK(file_out_open(&f, path));
    CHECK_OK(file_out_write(f, bytes_of("half", 4)));
    file_out_close(&f);
    CHECK(!f);
    CHECK_EQ(0, entries_count(folder));
    CHECK_OK(file_write_all(path, bytes_of("old", 3)));
    CHECK_OK(file_out_open(&f, path));
    CHECK_OK(file_out_write(f, bytes_of("half", 4)));
    file_out_close(&f);
    CHECK_EQ(1, entries_count(folder));
    struct bytes_mut back;
    CHECK_OK(file_read_all(&back, path, 100));
    CHECK_MEM("old", back.ptr, 3);
    mem_free(back.ptr);
}

/* Killed with -9 after the writes and before the commit. */
static void claim_killed(void) {
    const char *folder = fresh_dir("killed"), *path = in_dir("killed/out");
    int ready[2];
    CHECK_EQ(0, pipe(ready));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        static uint8_t block[200000];
        struct file_out *f = NULL;
        bool ok =
            file_out_open(&f, path) == OK && file_out_write(f, bytes_of(block, sizeof block)) == OK;
        ok = ok && write(ready[1], "r", 1) == 1;
        for (;;) {
            pause();
        }
    }
    char byte;
    CHECK_EQ(1, read(ready[0], &byte, 1));
    close(ready[0]);
    close(ready[1]);
    kill(child, SIGKILL);
    int status;
    CHECK_EQ(child, waitpid(child, &status, 0));
    CHECK(!file_exists(path));
    int fd = open(folder, O_TMPFILE | O_WRONLY, 0600);
    if (fd < 0) {
        check_skip("this file system has no unnamed files: a hidden one stays behind");
    }
    close(fd);
    CHECK_EQ(0, entries_count(folder));
}

static void claim_unwritable(void) {
    struct file_out *f = NULL;
    CHECK_ERR(E_IO, file_out_open(&f, in_dir("missing/out")));
    CHECK_HAS(err_detail(), "missing/out cannot be written");
    CHECK_ERR(E_IO, file_out_open(&f, dir));
    CHECK_HAS(err_detail(), "is a folder");
    CHECK_ERR(E_IO, file_out_open(&f, ""));
    CHECK(!f);
    const char *folder = fresh_dir("locked");
    CHECK_EQ(0, chmod(folder, 0500));
    if (geteuid() == 0) {
        CHECK_ERR(E_IO, file_out_open(&f, "/proc/bellows-cannot-be-made"));
    } else {
        CHECK_ERR(E_IO, file_out_open(&f, in_dir("locked/out")));
    }
    CHECK_EQ(0, chmod(folder, 0700));
    CHECK(!f);
}

static void claim_full_disk(void) {
    struct file_out *f = NULL;
    if (!file_exists("/dev/full")) {
        check_skip("no /dev/full here");
    }
    CHECK_OK(file_out_open(&f, "/dev/full"));
    CHECK_OK(file_out_write(f, bytes_of("x", 1)));
    enum err code = file_out_commit(f), again = file_out_commit(f);
    file_out_close(&f);
    CHECK_ERR(E_IO, code);
    CHECK_ERR(E_IO, again);
    CHECK(file_exists("/dev/full"));
    CHECK_OK(file_write_all("/dev/null", bytes_of("x", 1)));
    struct stat info;
    CHECK_EQ(0, stat("/dev/null", &info));
    CHECK(S_ISCHR(info.st_mode)); /* written to, not renamed over */
}

static void claim_links_and_modes(void) {
    const char *target = in_dir("target"), *link_path = in_dir("link");
    CHECK_OK(file_write_all(target, bytes_of("a", 1)));
    CHECK_EQ(0, chmod(target, 0640));
    CHECK_EQ(0, symlink("target", link_path));
    CHECK_OK(file_write_all(link_path, bytes_of("bb", 2)));
    struct stat info;
    CHECK_EQ(0, lstat(link_path, &info));
    CHECK(S_ISLNK(info.st_mode));
    CHECK_EQ(0, lstat(target, &info));
    CHECK_EQ(2, info.st_size);
    CHECK_EQ(0640, info.st_mode & 07777);
}

static void claim_standard_output(void) {
    const char *path = in_dir("stdout");
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), kept = dup(STDOUT_FILENO);
    CHECK(to >= 0 && kept >= 0);
    fflush(stdout);
    dup2(to, STDOUT_FILENO);
    enum err code = file_write_all("-", bytes_of("proof", 5));
    dup2(kept, STDOUT_FILENO);
    close(to);
    close(kept);
    CHECK_OK(code);
    struct bytes_mut back;
    CHECK_OK(file_read_all(&back, path, 100));
    CHECK_EQ(5, back.len);
    mem_free(back.ptr);
    CHECK(!file_exists("-"));
}

static void claim_standard_input(void) {
    int ends[2], kept = dup(STDIN_FILENO);
    CHECK_EQ(0, pipe(ends));
    CHECK_EQ(5, write(ends[1], "input", 5));
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    AUTO(file_map_close) struct file_map map = {0};
    enum err code = file_map_open(&map, "-");
    struct file_map again = {0};
    enum err empty = file_map_open(&again, "-");
    dup2(kept, STDIN_FILENO);
    close(kept);
    CHECK_OK(code);
    CHECK(map.heap);
    CHECK_EQ(5, map.bytes.len);
    CHECK_MEM("input", map.bytes.ptr, 5);
    CHECK_ERR(E_FORMAT, empty);
}

static void claim_bad_input(void) {
    struct file_map map = {0};
    CHECK_ERR(E_IO, file_map_open(&map, in_dir("nothing here")));
    CHECK_HAS(err_detail(), "nothing here: No such file or directory");
    CHECK_ERR(E_IO, file_map_open(&map, dir));
    CHECK_HAS(err_detail(), "is a folder");
    CHECK_OK(file_write_all(in_dir("empty"), bytes_of(NULL, 0)));
    CHECK_ERR(E_FORMAT, file_map_open(&map, in_dir("empty")));
    CHECK_HAS(err_detail(), "is empty");
    CHECK(!map.base && !map.path);
}

static void claim_folders(void) {
    const char *deep = in_dir("a/b//c/");
    CHECK_OK(dir_make(deep));
    CHECK_OK(dir_make(deep));
    CHECK(file_exists(in_dir("a/b/c")));
    CHECK_OK(file_write_all(in_dir("a/file"), bytes_of("x", 1)));
    CHECK_ERR(E_IO, dir_make(in_dir("a/file/below")));
    CHECK_HAS(err_detail(), "a/file");
}

static void claim_writable(void) {
    CHECK_OK(dir_writable("."));
    CHECK_OK(dir_writable("nothing/of this/kind"));
    CHECK_OK(dir_make(in_dir("w")));
    CHECK_OK(file_write_all(in_dir("w/file"), bytes_of("x", 1)));
    CHECK_OK(dir_writable(in_dir("w")));
    CHECK_OK(dir_writable(in_dir("w/new/newer")));
    CHECK(!file_exists(in_dir("w/new")));
    CHECK_ERR(E_IO, dir_writable(in_dir("w/file")));
    CHECK_HAS(err_detail(), "is a file");
    CHECK_ERR(E_IO, dir_writable(in_dir("w/file/below")));
}

static void claim_remove(void) {
    char *temp = NULL;
    CHECK_OK(dir_make_temp(&temp, "bellows-test"));
    char inside[256], outside[256];
    snprintf(outside, sizeof outside, "%s", in_dir("kept"));
    CHECK_OK(dir_make(outside));
    CHECK_OK(file_write_all(in_dir("kept/file"), bytes_of("x", 1)));
    snprintf(inside, sizeof inside, "%s/x/y", temp);
    CHECK_OK(dir_make(inside));
    snprintf(inside, sizeof inside, "%s/x/link", temp);
    CHECK_EQ(0, symlink(outside, inside));
    snprintf(inside, sizeof inside, "%s/../kept", temp);
    CHECK_ERR(E_IO, dir_remove_tree(inside));
    CHECK_ERR(E_IO, dir_remove_tree("/tmp"));
    CHECK_HAS(err_detail(), "left alone");
    snprintf(inside, sizeof inside, "%s-other", temp);
    CHECK_ERR(E_IO, dir_remove_tree(inside));
    CHECK_OK(dir_remove_tree(temp));
    CHECK(!file_exists(temp));
    CHECK(file_exists(in_dir("kept/file"))); /* the link went, what it named stayed */
    CHECK_ERR(E_IO, dir_remove_tree(temp));
    mem_free(temp);
}

static enum err write_and_read(void *ctx) {
    const char *path = ctx;
    TRY(file_write_all(path, bytes_of("data", 4)));
    AUTO(file_map_close) struct file_map map = {0};
    TRY(file_map_open(&map, path));
    struct bytes_mut back;
    TRY(file_read_all(&back, path, 100));
    mem_free(back.ptr);
    return OK;
}

static void claim_allocation(void) {
    const char *folder = fresh_dir("allocation");
    char path[256];
    snprintf(path, sizeof path, "%s/out", folder);
    CHECK(check_allocations(write_and_read, path) > 5);
    CHECK_EQ(1, entries_count(folder));
}

static void claim_mapped_out(void) {
    struct file_out *f = NULL;
    struct bytes_mut map, got;
    const char *folder = fresh_dir("mapped"), *path = in_dir("mapped/out");
    CHECK_OK(file_out_open(&f, path));
    CHECK_OK(file_out_map(&map, f, 10000));
    CHECK_EQ(10000, map.len);
    for (size_t i = 0; i < map.len; i++) {
        CHECK_EQ(0, map.ptr[i]);
    }
    map.ptr[9999] = 7;
    map.ptr[0] = 1;
    CHECK(!file_exists(path));
    CHECK_OK(file_out_commit(f));
    file_out_close(&f);
    CHECK_OK(file_read_all(&got, path, 1 << 20));
    CHECK(got.len == 10000 && got.ptr[0] == 1 && got.ptr[9999] == 7 && got.ptr[5000] == 0);
    mem_free(got.ptr);
    CHECK_OK(file_out_open(&f, path)); /* given up: the old one stays */
    CHECK_OK(file_out_map(&map, f, 10));
    file_out_close(&f);
    CHECK_OK(file_read_all(&got, path, 1 << 20));
    CHECK_EQ(10000, got.len);
    mem_free(got.ptr);
    CHECK_EQ(1, entries_count(folder));
    CHECK_OK(file_out_open(&f, "/dev/null"));
    CHECK_ERR(E_IO, file_out_map(&map, f, 10));
    file_out_close(&f);
    CHECK_OK(file_out_open(&f, path)); /* more than any disk has */
    CHECK_ERR(E_IO, file_out_map(&map, f, (size_t)1 << 60));
    CHECK_HAS(err_detail(), "no room for");
    file_out_close(&f);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a mapped output is filled in place and appears whole or not at all", claim_mapped_out},
        {"what is written is read back, and a replaced file stays readable", claim_whole},
        {"large outputs in odd pieces arrive whole", claim_large},
        {"an output without commit leaves no file and no change", claim_abandoned},
        {"a process killed before its commit leaves no file", claim_killed},
        {"an output that cannot be written is refused at opening", claim_unwritable},
        {"a write that fails is reported, and devices are not replaced", claim_full_disk},
        {"links are followed and modes kept", claim_links_and_modes},
        {"a link to what is not there yet is followed, too", claim_dangling_link},
        {"\"-\" writes to standard output", claim_standard_output},
        {"\"-\" reads standard input, also from a pipe", claim_standard_input},
        {"a missing, empty or wrong input is named", claim_bad_input},
        {"dir_make makes parents and refuses files in the way", claim_folders},
        {"dir_writable looks as far as there are folders, and makes none", claim_writable},
        {"dir_remove_tree removes only its own and follows no link", claim_remove},
        {"a failed allocation is E_LIMIT and leaves no file", claim_allocation},
    };
    return check_main_in(&dir, argc, argv, claims, COUNT_OF(claims));
}
