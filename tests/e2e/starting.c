/* Before a fleet works: settings that cannot be, a server that is not there, a key that comes only once. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "tests/e2e/host.h"

#define SECOND UINT64_C(1000000000)

static bool says_it_waits(void *log_path) {
    struct bytes_mut log = {0};
    bool said = file_read_all(&log, log_path, 1 << 20) == OK &&
                memmem(log.ptr, log.len, "transport.waits", 15) != NULL;
    mem_free(log.ptr);
    return said;
}

/* What no lane could ever do is one sentence and exit code 2 at once, not a lane that fails again and again. */
static void claim_wrong_settings(void) {
    static const struct {
        const char *words, *says;
    } rows[] = {
        {"--cache %/afile", "afile is a file"},
        {"--cache %/cache --tls-ca %/nope.pem", "CA file %s/nope.pem: No such file"},
        {"--cache %/cache --tls-ca %/afile", "CA file %s/afile"},
        {"--cache %/cache --server nats://192.0.2.1:4222", "plaintext = yes"},
    };
    struct host h;
    char path[300], says[400];
    host_start_server(&h, NULL);
    snprintf(path, sizeof path, "%s/afile", h.dir);
    CHECK_OK(file_write_all(path, bytes_of("x", 1)));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct ran ran;
        host_run(&ran, &h, "node --name w0 --backend cpu %s", rows[i].words);
        CHECK_MSG(ran.exit_code == 2, "%s: exit code %d: %s", rows[i].words, ran.exit_code,
                  ran.out);
        snprintf(says, sizeof says, rows[i].says, h.dir);
        CHECK_HAS(ran.out, says);
        CHECK(!strstr(ran.out, "lane.started"));
    }
    host_stop(&h);
}

/* A key may come through a pipe, which cannot be opened again to send it. */
static void claim_key_from_pipe(void) {
    struct host h;
    struct ran ran;
    struct bytes_mut key;
    char pipe_path[300];
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", h.dir);
    CHECK_OK(file_read_all(&key, check_vectors("bn128/base/circuit.zkey"), 1 << 20));
    CHECK_EQ(0, mkfifo(pipe_path, 0600));
    pid_t writer = fork();
    CHECK(writer >= 0);
    if (writer == 0) {
        int fd = open(pipe_path, O_WRONLY);
        _exit(write(fd, key.ptr, key.len) == (ssize_t)key.len ? 0 : 1);
    }
    host_run(&ran, &h, "submit %%/pipe @bn128/base/witness.wtns --wait --out %%");
    CHECK_MSG(ran.exit_code == 0, "exit code %d: %s", ran.exit_code, ran.out);
    CHECK_EQ(writer, waitpid(writer, NULL, 0));
    mem_free(key.ptr);
    host_stop(&h);
}

/* The server's address is wrong, and whoever started the daemon wants it back: it ends at once, with 0, and has said what it waits
 * for. */
static void claim_ends_while_waiting(void) {
    struct host h;
    host_start_server(&h, NULL);
    snprintf(h.url, sizeof h.url, "nats://127.0.0.1:1");
    for (int i = 0; i < 2; i++) {
        char log[512];
        snprintf(log, sizeof log, "%s/%s", h.dir, i ? "node0.log" : "coordinator.log");
        if (i == 0) {
            host_start_coordinator(&h);
        } else {
            host_start_node(&h, 0, 2, NULL);
        }
        wait_until(says_it_waits, log, "it says that it waits");
        uint64_t start_ns = clock_ns();
        if (i == 0) {
            host_stop_coordinator(&h);
        } else {
            CHECK_EQ(0, host_drain_node(&h, 0));
        }
        CHECK_MSG(clock_ns() - start_ns < 5 * SECOND, "%s took %llu ms", log,
                  (unsigned long long)((clock_ns() - start_ns) / 1000000));
    }
    host_stop(&h);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a node with settings that no lane could use ends with 2 and says why",
         claim_wrong_settings},
        {"a key that comes through a pipe is sent", claim_key_from_pipe},
        {"a daemon that waits for its server says so, and ends when it is told to",
         claim_ends_while_waiting},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
