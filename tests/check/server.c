/* Starts nats-server with a generated configuration and learns its port from the ports file. */
#include "tests/check/server.h"

#include "node/base/clock.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_WAIT_MS = 15000, SERVERS_MAX = 64 };
static const uint64_t END_WAIT_NS = UINT64_C(10000000000);

/* What a failed claim leaves behind goes when the program ends. */
static struct left {
    pid_t pid;
    char dir[256];
} lefts[SERVERS_MAX];

static void remove_below(const char *path);

static void clean_up(void) {
    for (size_t i = 0; i < SERVERS_MAX; i++) {
        if (lefts[i].pid > 0) {
            kill(lefts[i].pid, SIGKILL);
            waitpid(lefts[i].pid, NULL, 0);
        }
        if (lefts[i].dir[0]) {
            remove_below(lefts[i].dir);
        }
    }
}

/* Keeps in mind what is running in which folder; pid 0: nothing runs, `gone`: the folder is gone, too. */
static void note(const struct check_server *s, bool gone) {
    static bool registered;
    struct left *empty = NULL;
    if (!registered) {
        registered = atexit(clean_up) == 0;
    }
    for (size_t i = 0; i < SERVERS_MAX; i++) {
        if (strcmp(lefts[i].dir, s->dir) == 0) {
            lefts[i].pid = s->pid;
            lefts[i].dir[0] = gone ? '\0' : lefts[i].dir[0];
            return;
        }
        empty = !empty && !lefts[i].dir[0] ? &lefts[i] : empty;
    }
    if (empty && !gone) {
        empty->pid = s->pid;
        memcpy(empty->dir, s->dir, sizeof empty->dir);
    }
}

const char *check_server_program(void) {
    static const char *const places[] = {"/usr/sbin/nats-server", "/usr/bin/nats-server",
                                         "/usr/local/bin/nats-server"};
    const char *named = getenv("BELLOWS_NATS_SERVER");
    if (named) {
        return named;
    }
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        if (access(places[i], X_OK) == 0) {
            return places[i];
        }
    }
    return NULL;
}

static void write_config(const struct check_server *s, const struct check_server_options *o) {
    char path[320];
    snprintf(path, sizeof path, "%s/server.conf", s->dir);
    FILE *f = fopen(path, "w");
    CHECK_MSG(f, "cannot write %s: %s", path, strerror(errno));
    fprintf(f,
            "host: 127.0.0.1\n"
            "port: %d\n"
            "ports_file_dir: \"%s\"\n"
            "log_file: \"%s/server.log\"\n"
            "max_payload: %u\n"
            "max_pending: 67108864\n"
            "write_deadline: \"10s\"\n",
            s->port ? (int)s->port : -1, s->dir, s->dir,
            o && o->payload_bytes_max ? o->payload_bytes_max : 8U << 20);
    if (!o || !o->no_jetstream) {
        fprintf(f, "jetstream {\n  store_dir: \"%s/store\"\n  max_mem: 512MB\n  max_file: 8GB\n}\n",
                s->dir);
    }
    if (o && o->config) {
        fprintf(f, "%s\n", o->config);
    }
    fclose(f);
}

static void spawn(struct check_server *s) {
    const char *program = check_server_program();
    if (!program) {
        check_skip("nats-server is not installed");
    }
    char config[320];
    snprintf(config, sizeof config, "%s/server.conf", s->dir);
    pid_t parent = getpid();
    pid_t pid = fork();
    CHECK_MSG(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(127);
        }
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        execl(program, "nats-server", "-c", config, (char *)NULL);
        _exit(127);
    }
    s->pid = pid;
    note(s, false);
}

/* The port from "<dir>/nats-server_<pid>.ports": {"nats":["nats://127.0.0.1:PORT"],…}. 0 while it is not there. */
static unsigned read_port(const struct check_server *s) {
    char path[320], text[1024];
    snprintf(path, sizeof path, "%s/nats-server_%d.ports", s->dir, (int)s->pid);
    check_file(text, sizeof text, path);
    const char *at = strstr(text, "127.0.0.1:");
    return at && strchr(at, '}') ? (unsigned)strtoul(at + strlen("127.0.0.1:"), NULL, 10) : 0;
}

static bool listens(unsigned port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bool yes = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return yes;
}

static void wait_until_up(struct check_server *s) {
    for (int ms = 0; ms < START_WAIT_MS; ms += 20) {
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
            s->pid = 0;
            note(s, false);
            check_fail(__FILE__, __LINE__, "nats-server ended at once; see %s/server.log", s->dir);
        }
        unsigned port = read_port(s);
        if (port && listens(port)) {
            if (s->port != port) { /* others may read the address while it is up again */
                s->port = port;
                snprintf(s->url, sizeof s->url, "nats://127.0.0.1:%u", port);
            }
            return;
        }
        clock_sleep_ns(20 * 1000000);
    }
    check_fail(__FILE__, __LINE__, "nats-server did not come up within %d ms", START_WAIT_MS);
}

void check_server_start(struct check_server *out, const struct check_server_options *options) {
    memset(out, 0, sizeof *out);
    if (!check_server_program()) {
        check_skip("nats-server is not installed");
    }
    const char *tmp = getenv("TMPDIR");
    snprintf(out->dir, sizeof out->dir, "%s/bellows-nats-XXXXXX", tmp ? tmp : "/tmp");
    CHECK_MSG(mkdtemp(out->dir), "mkdtemp %s: %s", out->dir, strerror(errno));
    write_config(out, options);
    spawn(out);
    wait_until_up(out);
    /* From now on the port is fixed, so that a restarted server is found again. */
    write_config(out, options);
}

/* A server whose disk was full may stand still in its shutdown: it is killed then, as its operator would. */
static bool end_with(struct check_server *s, int signal_number) {
    bool by_itself = true;
    if (s->pid > 0) {
        uint64_t start_ns = clock_ns();
        kill(s->pid, signal_number);
        while (waitpid(s->pid, NULL, WNOHANG) == 0) {
            if (clock_ns() - start_ns > END_WAIT_NS) {
                by_itself = false;
                kill(s->pid, SIGKILL);
            }
            clock_sleep_ns(1000000);
        }
        s->pid = 0;
        note(s, false);
    }
    return by_itself;
}

void check_server_kill(struct check_server *s) {
    end_with(s, SIGKILL);
}

bool check_server_down(struct check_server *s) {
    return end_with(s, SIGTERM);
}

/* Depth-first, below our own mkdtemp folder only. */
static void remove_below(const char *path) {
    DIR *dir = opendir(path);
    if (dir) {
        const struct dirent *entry;
        while ((entry = readdir(dir))) {
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
                char child[1024];
                snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
                struct stat st;
                if (lstat(child, &st) == 0 && S_ISDIR(st.st_mode)) {
                    remove_below(child);
                } else {
                    unlink(child);
                }
            }
        }
        closedir(dir);
    }
    rmdir(path);
}

void check_server_up(struct check_server *s, bool empty) {
    CHECK(s->pid == 0);
    if (empty) {
        char store[320];
        snprintf(store, sizeof store, "%s/store", s->dir);
        remove_below(store);
    }
    spawn(s);
    wait_until_up(s);
}

void check_server_stop(struct check_server *s) {
    end_with(s, SIGTERM);
    if (s->dir[0]) {
        remove_below(s->dir);
        note(s, true);
        s->dir[0] = '\0';
    }
}
