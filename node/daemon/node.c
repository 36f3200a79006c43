/* One loop over lanes and signals, ten times a second. State per lane: running, waiting for its next start, or given up.
 *
 *   ended after less than QUICK_NS: failures + 1, pause doubles     RESTARTS_MAX quick ends in a row: given up
 *   ended after more: failures = 0                                  exit code LANE_EXIT_FENCED: given up at once
 */
#include "node/daemon/node.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/version.h"
#include "node/daemon/child.h"
#include "node/daemon/lane_process.h"
#include "node/transport/service.h"
#include "proto/fleet.pb-c.h"
#include "proto/subjects.h"
#include "proto/unpack.h"

enum { LANES_PER_NODE_MAX = 64, RESTARTS_MAX = 20, ARGV_MAX = 96, PATH_BYTES = 1024 };
static const uint64_t LOOK_NS = UINT64_C(100000000);
static const uint64_t QUICK_NS = UINT64_C(30000000000);
static const uint64_t FIRST_PAUSE_NS = UINT64_C(200000000);
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(10000000000);
static const uint64_t KILL_AFTER_NS = UINT64_C(10000000000);

struct node_lane {
    struct child child;
    char session[NUID_BYTES];
    unsigned failures;
    uint64_t next_start_ns;
    bool given_up;
};

struct node {
    const struct node_config *config;
    struct subject_space space;
    struct transport *link;  /* owned; NULL: not connected, the last words go unsaid */
    struct service *service; /* owned: how it is found on $SRV */
    struct subject controls[3];
    _Atomic unsigned lanes_running;
    struct node_lane lanes[LANES_PER_NODE_MAX];
    int lock_fd;
    char lock_path[PATH_BYTES];
};

static void node_done(struct node *n) {
    for (unsigned i = 0; i < n->config->lanes_count; i++) {
        child_stop(&n->lanes[i].child, 0);
    }
    service_close(&n->service);
    transport_close(&n->link);
    if (n->lock_fd >= 0) {
        unlink(n->lock_path); /* while it is held: whoever waits for it looks again */
        close(n->lock_fd);
    }
}

/* --- One of a name --- */

enum err node_runtime_dir(char *out, size_t out_bytes) {
    const char *run = getenv("XDG_RUNTIME_DIR");
    int len = run && *run ? snprintf(out, out_bytes, "%s/bellows", run)
                          : snprintf(out, out_bytes, "/tmp/bellows-%u", (unsigned)getuid());
    REQUIRE(len > 0 && (size_t)len < out_bytes, E_LIMIT, "path of the runtime folder is too long");
    struct stat st;
    REQUIRE(mkdir(out, 0700) == 0 || errno == EEXIST, E_IO, "%s: %s", out, strerror(errno));
    REQUIRE(lstat(out, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid(), E_IO,
            "%s is not a folder of this user; remove it, or set XDG_RUNTIME_DIR", out);
    return OK;
}

static enum err lock_path(char path[PATH_BYTES], const struct node_config *c) {
    char identity[1024];
    int len =
        snprintf(identity, sizeof identity, "%s %s %s", c->transport.url ? c->transport.url : "",
                 c->prefix ? c->prefix : "", c->name);
    REQUIRE(len > 0 && (size_t)len < sizeof identity, E_LIMIT, "server and name are too long");
    len = snprintf(path, PATH_BYTES, "%s/node-%s-%016llx.lock", c->runtime_dir, c->name,
                   (unsigned long long)hash_xxh64(bytes_of(identity, (size_t)len)));
    REQUIRE(len > 0 && len < PATH_BYTES, E_LIMIT, "path of the lock file is too long");
    return OK;
}

/* Is what was opened still what the path names? The last holder may have removed it in between. */
static bool is_at(int fd, const char *path) {
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

static enum err take_lock(int *out, const char *path, const struct node_config *c) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0, E_IO, "%s: %s", path, strerror(errno));
    char text[32] = "";
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t got = read(fd, text, sizeof text - 1);
        text[got > 0 ? strcspn(text, "\n") : 0] = 0;
        close(fd);
        FAIL(E_USAGE,
             "a node named %s runs already for this server, as process %s; give this one another "
             "--name",
             c->name, text[0] ? text : "?");
    }
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (!is_at(fd, path)) {
        close(fd);
        return take_lock(out, path, c);
    }
    if (ftruncate(fd, 0) != 0 || write(fd, text, (size_t)len) != len) {
        int cause = errno;
        close(fd);
        FAIL(E_IO, "%s: %s", path, strerror(cause));
    }
    *out = fd;
    return OK;
}

/* --- Lanes --- */

static enum err start_lane(struct node *n, unsigned idx) {
    struct node_lane *lane = &n->lanes[idx];
    const char *argv[ARGV_MAX + 4];
    char lane_arg[32], session_arg[64], parent_arg[32];
    size_t count = 0;
    for (; n->config->lane_argv[count]; count++) {
        REQUIRE(count < ARGV_MAX, E_LIMIT, "more than %d arguments for a lane", ARGV_MAX);
        argv[count] = n->config->lane_argv[count];
    }
    transport_nuid(lane->session);
    snprintf(lane_arg, sizeof lane_arg, "--lane=%u", idx);
    snprintf(session_arg, sizeof session_arg, "--session=%s", lane->session);
    snprintf(parent_arg, sizeof parent_arg, "--supervisor=%ld", (long)getpid());
    argv[count++] = lane_arg;
    argv[count++] = session_arg;
    argv[count++] = parent_arg;
    argv[count] = NULL;
    struct child_options options = {.argv = argv};
    TRY(child_start(&lane->child, &options));
    atomic_fetch_add(&n->lanes_running, 1);
    log_info("lane.started", "gpu=%u pid=%ld session=%s", idx, (long)lane->child.pid,
             lane->session);
    return OK;
}

/* The lane cannot say it any more. */
static void say_it_ended(struct node *n, unsigned idx) {
    struct lane_name name = {n->config->name, idx};
    Bellows__V1__Heartbeat m = BELLOWS__V1__HEARTBEAT__INIT;
    struct bytes_mut packed = {0};
    m.version = WIRE_VERSION;
    m.node = (char *)(uintptr_t)n->config->name;
    m.gpu = idx;
    m.session = n->lanes[idx].session;
    m.state = BELLOWS__V1__LANE_STATE__LANE_STOPPED;
    m.at_unix_ms = clock_unix_ns() / 1000000;
    if (n->link && message_pack(&packed, &m, HEARTBEAT_BYTES_MAX, "heartbeat") == OK) {
        struct subject subject = subject_heartbeat(&n->space, name);
        IGNORE(transport_send(n->link, subject.text, bytes_of(packed.ptr, packed.len)));
        IGNORE(transport_flush(n->link, LOOK_NS));
        mem_free(packed.ptr);
    }
}

static void note_end(struct node *n, unsigned idx, const struct child_end *end, uint64_t lived_ns,
                     bool draining) {
    struct node_lane *lane = &n->lanes[idx];
    uint64_t pause_ns = FIRST_PAUSE_NS;
    atomic_fetch_sub(&n->lanes_running, 1);
    say_it_ended(n, idx);
    if (draining) {
        log_info("lane.exited", "gpu=%u exit_code=%d signal=%d", idx, end->exit_code, end->signal);
        lane->given_up = true;
        return;
    }
    lane->failures = lived_ns < QUICK_NS ? lane->failures + 1 : 1;
    for (unsigned i = 1; i < lane->failures && pause_ns < LONGEST_PAUSE_NS; i++) {
        pause_ns *= 2;
    }
    pause_ns = pause_ns < LONGEST_PAUSE_NS ? pause_ns : LONGEST_PAUSE_NS;
    lane->next_start_ns = clock_ns() + pause_ns;
    lane->given_up = end->exit_code == LANE_EXIT_FENCED || lane->failures >= RESTARTS_MAX;
    log_line(lane->given_up ? LOG_ERROR : LOG_WARN,
             lane->given_up ? "lane.given_up" : "lane.exited",
             "gpu=%u exit_code=%d signal=%d lived_ns=%llu failures=%u pause_ns=%llu", idx,
             end->exit_code, end->signal, (unsigned long long)lived_ns, lane->failures,
             (unsigned long long)pause_ns);
}

static void look_after(struct node *n, unsigned idx, bool draining) {
    struct node_lane *lane = &n->lanes[idx];
    bool ended = false;
    struct child_end end;
    uint64_t started_ns = lane->child.started_ns;
    child_poll(&ended, &end, &lane->child);
    if (ended) {
        note_end(n, idx, &end, clock_ns() - started_ns, draining);
    }
    if (lane->child.pid == 0 && !lane->given_up && !draining && clock_ns() >= lane->next_start_ns &&
        start_lane(n, idx) != OK) {
        char quoted[ERR_DETAIL_BYTES + 64];
        log_error("lane.not_started", "gpu=%u detail=%s", idx,
                  log_quote(quoted, sizeof quoted, err_detail()));
        lane->next_start_ns = clock_ns() + LONGEST_PAUSE_NS;
    }
}

static void signal_lanes(struct node *n, int number) {
    for (unsigned i = 0; i < n->config->lanes_count; i++) {
        child_signal(&n->lanes[i].child, number);
    }
}

static bool any_runs(const struct node *n) {
    for (unsigned i = 0; i < n->config->lanes_count; i++) {
        if (n->lanes[i].child.pid > 0) {
            return true;
        }
    }
    return false;
}

static bool any_hope(const struct node *n) {
    for (unsigned i = 0; i < n->config->lanes_count; i++) {
        if (!n->lanes[i].given_up) {
            return true;
        }
    }
    return false;
}

static enum err supervise(struct node *n, const sigset_t *set) {
    bool draining = false;
    uint64_t drain_ns = 0;
    for (;;) {
        for (unsigned i = 0; i < n->config->lanes_count; i++) {
            look_after(n, i, draining);
        }
        if (draining && !any_runs(n)) {
            return OK;
        }
        REQUIRE(draining || any_hope(n), E_DEVICE,
                "all lanes of node %s have failed; the log above says why", n->config->name);
        struct timespec wait = {0, (long)LOOK_NS};
        int number = sigtimedwait(set, NULL, &wait);
        bool orphan = !draining && child_is_orphan(n->config->parent);
        if (number == SIGTERM || number == SIGINT || number == SIGHUP || orphan) {
            log_info("node.drains", "signal=%d again=%d", number > 0 ? number : 0, draining);
            signal_lanes(n, SIGTERM);
            drain_ns = draining ? drain_ns : clock_ns();
            draining = true;
        }
        if (draining && clock_ns() - drain_ns > n->config->drain_ns + KILL_AFTER_NS) {
            log_warn("node.kills", "after_ns=%llu", (unsigned long long)(clock_ns() - drain_ns));
            signal_lanes(n, SIGKILL);
        }
    }
}

/* --- Being found --- */

static void add_data(void *ctx, struct text *json) {
    struct node *n = ctx;
    text_addf(json, "{\"lanes\":%u,\"running\":%u}", n->config->lanes_count,
              atomic_load(&n->lanes_running));
}

static enum err discover(struct node *n) {
    static const char *const verbs[] = {"drain", "resume", "stop"};
    struct service_config config = {
        .name = "bellows-node",
        .version = BELLOWS_VERSION,
        .description = "runs the lanes of a host",
        .metadata = {{"node", n->config->name}, {"prefix", n->space.prefix}},
        .data = add_data,
        .ctx = n,
    };
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        n->controls[i] = subject_ctl_node(&n->space, n->config->name, verbs[i]);
        config.endpoints[i] = (struct service_pair){verbs[i], n->controls[i].text};
    }
    return service_open(&n->service, n->link, &config);
}

enum err node_run(const struct node_config *config) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    REQUIRE(config->lanes_count >= 1 && config->lanes_count <= LANES_PER_NODE_MAX, E_USAGE,
            "a node has 1 to %d lanes, not %u", LANES_PER_NODE_MAX, config->lanes_count);
    TRY(id_check(config->name, "node name"));
    AUTO(node_done) struct node n = {.config = config, .lock_fd = -1};
    TRY(subject_space_init(&n.space, config->prefix));
    TRY(lock_path(n.lock_path, config));
    TRY(take_lock(&n.lock_fd, n.lock_path, config));
    for (unsigned i = 0; i < config->lanes_count; i++) {
        TRY(start_lane(&n, i)); /* before the connection makes threads */
    }
    struct transport_options link = config->transport;
    link.name = "bellows node";
    if (transport_open(&n.link, &link) != OK || discover(&n) != OK) {
        char quoted[ERR_DETAIL_BYTES + 64];
        log_warn("node.unconnected", "detail=%s", log_quote(quoted, sizeof quoted, err_detail()));
    }
    return supervise(&n, &set);
}
