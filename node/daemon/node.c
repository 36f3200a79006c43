/* One loop over lanes and signals, ten times a second. State per lane: running, waiting for its next start, or given up.
 *
 *   ended after less than QUICK_NS: failures + 1, pause doubles     RESTARTS_MAX quick ends in a row: given up
 *   ended after more: failures = 0                                  resumed: failures = 0, started at once
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
#include "node/daemon/control.h"
#include "node/daemon/pages.h"
#include "node/transport/service.h"
#include "proto/fleet.pb-c.h"
#include "proto/subjects.h"
#include "proto/unpack.h"

enum { LANES_PER_NODE_MAX = 64, RESTARTS_MAX = 20, ARGV_MAX = 96, PATH_BYTES = 1024 };
/* mimalloc, whose heap the NATS client takes too, gives freed pages back after 25 ms; what a lane fetches then lies in fresh pages, 4 KiB of
 * page faults for 4 KiB of chunk: 0.9 of all bytes, with a second's delay 0.1. Its releases before and from 2.1 on name it so. */
static const char HEAP_KEEPS[] = "MIMALLOC_DECOMMIT_DELAY=1000",
                  HEAP_KEEPS_LATER[] = "MIMALLOC_PURGE_DELAY=1000";
static const uint64_t LOOK_NS = UINT64_C(100000000);
static const uint64_t QUICK_NS = UINT64_C(30000000000);
static const uint64_t FIRST_PAUSE_NS = UINT64_C(200000000);
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(10000000000);
static const uint64_t KILL_AFTER_NS = UINT64_C(10000000000);
static const uint64_t BEAT_NS = UINT64_C(1000000000);    /* for a lane that was given up */
static const uint64_t ANSWER_NS = UINT64_C(1000000000);  /* lanes wait meanwhile to be started */
static const uint64_t CONNECT_NS = UINT64_C(5000000000); /* between tries */

struct node_lane {
    struct child child;
    char session[NUID_BYTES];
    unsigned failures;
    uint64_t next_start_ns, told_ns;
    bool given_up;
    char why[RECORD_DETAIL_BYTES]; /* it ended last */
    atomic_bool drained;           /* by an order */
    atomic_bool resumed;           /* by an order; [main takes it] */
};

struct node {
    const struct node_config *config;
    struct subject_space space;
    unsigned lanes_count;
    struct pages *pages;     /* owned */
    struct transport *link;  /* owned; NULL: not connected, the last words go unsaid */
    struct control *control; /* owned; NULL with it, as the next */
    struct service *service; /* owned: how it is found on $SRV */
    struct subject controls[3];
    _Atomic unsigned lanes_running;
    uint64_t linked_ns; /* the last try */
    atomic_bool stop;   /* ordered */
    struct node_lane lanes[LANES_PER_NODE_MAX];
    int lock_fd;
    char lock_path[PATH_BYTES];
};

static void node_done(struct node *n) {
    for (unsigned i = 0; i < n->lanes_count; i++) {
        child_stop(&n->lanes[i].child, 0);
    }
    service_close(&n->service);
    control_close(&n->control);
    transport_close(&n->link);
    pages_close(&n->pages);
    if (n->lock_fd >= 0) {
        unlink(n->lock_path); /* while it is held: whoever waits for it looks again */
        close(n->lock_fd);
    }
}

/* --- One of a name --- */

enum err node_runtime_dir(char *out, size_t out_bytes) {
    const char *unit = getenv("RUNTIME_DIRECTORY"), *run = getenv("XDG_RUNTIME_DIR");
    int len = unit && *unit ? snprintf(out, out_bytes, "%s", unit)
              : run && *run ? snprintf(out, out_bytes, "%s/bellows", run)
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

struct lane_words { /* what is added to the lane's command line */
    char lane[32], session[64], device[DEVICE_ID_BYTES + 16], share[32], parent[32], metrics[40];
    char visible[DEVICE_ID_BYTES + 32];
};

static void lane_words(struct lane_words *w, const struct node *n, unsigned idx) {
    const struct device_list *devices = n->config->devices;
    const char *device = devices ? devices->devices[idx].id : "cpu";
    snprintf(w->lane, sizeof w->lane, "--lane=%u", idx);
    snprintf(w->session, sizeof w->session, "--session=%s", n->lanes[idx].session);
    snprintf(w->device, sizeof w->device, "--device=%s", device);
    snprintf(w->share, sizeof w->share, "--share=%u", n->lanes_count);
    snprintf(w->parent, sizeof w->parent, "--supervisor=%ld", (long)getpid());
    snprintf(w->metrics, sizeof w->metrics, "--metrics-fd=%d", pages_lend(n->pages, idx));
    snprintf(w->visible, sizeof w->visible, "CUDA_VISIBLE_DEVICES=%s", device);
}

static enum err start_lane(struct node *n, unsigned idx) {
    struct node_lane *lane = &n->lanes[idx];
    struct lane_words words;
    const char *argv[ARGV_MAX + 9];
    size_t count = 0;
    for (; n->config->lane_argv[count]; count++) {
        REQUIRE(count < ARGV_MAX, E_LIMIT, "more than %d arguments for a lane", ARGV_MAX);
        argv[count] = n->config->lane_argv[count];
    }
    transport_nuid(lane->session);
    lane_words(&words, n, idx);
    argv[count++] = words.lane;
    argv[count++] = words.session;
    argv[count++] = words.device;
    argv[count++] = words.share;
    argv[count++] = words.parent;
    argv[count++] = words.metrics;
    if (atomic_load(&lane->drained)) {
        argv[count++] = "--drained";
    }
    argv[count] = NULL;
    struct child_options options = {
        .argv = argv,
        .env = {HEAP_KEEPS, HEAP_KEEPS_LATER, n->config->devices ? words.visible : NULL}};
    enum err code = child_start(&lane->child, &options);
    pages_keep(n->pages, idx);
    TRY(code);
    metric_set(pages_block(n->pages, idx), METRIC_LANE_UP, 0, 1);
    atomic_fetch_add(&n->lanes_running, 1);
    log_info("lane.started", "gpu=%u pid=%ld session=%s device=%s drained=%d", idx,
             (long)lane->child.pid, lane->session, words.device + strlen("--device="),
             atomic_load(&lane->drained));
    return OK;
}

/* --- What a lane cannot say itself any more --- */

static void beat_for(struct node *n, unsigned idx, Bellows__V1__LaneState state) {
    struct lane_name name = {n->config->name, idx};
    Bellows__V1__Heartbeat m = BELLOWS__V1__HEARTBEAT__INIT;
    struct bytes_mut packed = {0};
    m.version = WIRE_VERSION;
    m.node = (char *)(uintptr_t)n->config->name;
    m.gpu = idx;
    m.session = n->lanes[idx].session;
    m.state = state;
    m.at_unix_ms = clock_unix_ns() / 1000000;
    if (message_pack(&packed, &m, HEARTBEAT_BYTES_MAX, "heartbeat") == OK) {
        struct subject subject = subject_heartbeat(&n->space, name);
        IGNORE(transport_send(n->link, subject.text, bytes_of(packed.ptr, packed.len)));
        mem_free(packed.ptr);
    }
}

/* The lane's own last entry, with another state and the reason; its successor's is left alone. */
static enum err write_entry(struct node *n, unsigned idx, Bellows__V1__LaneState state) {
    struct lane_name name = {n->config->name, idx};
    struct subject bucket = kv_bucket_name(&n->space, "lanes"), key = key_of_lane(name);
    AUTO(kv_entry_done) struct kv_entry entry = {0};
    AUTO(message_free) Bellows__V1__LaneInfo *info = NULL;
    struct bytes_mut packed = {0};
    bool found = false, won;
    uint64_t revision;
    TRY(kv_get(&entry, &found, n->link, bucket.text, key.text));
    if (!found) {
        return OK;
    }
    TRY(message_unpack(&info, &bellows__v1__lane_info__descriptor, entry.value, MESSAGE_BYTES_MAX,
                       "lane entry"));
    char *reason = info->reason; /* the message's own block: not freed one by one */
    info->state = state;
    info->reason = n->lanes[idx].why;
    enum err code = message_pack(&packed, info, MESSAGE_BYTES_MAX, "lane entry");
    info->reason = reason;
    TRY(code);
    code = kv_update(&revision, &won, n->link, bucket.text, key.text,
                     bytes_of(packed.ptr, packed.len), entry.revision);
    mem_free(packed.ptr);
    return code;
}

static void say(struct node *n, unsigned idx, Bellows__V1__LaneState state, bool entry_too) {
    if (n->link) {
        beat_for(n, idx, state);
        IGNORE(transport_flush(n->link, LOOK_NS));
        if (entry_too) {
            IGNORE(write_entry(n, idx, state));
        }
    }
    n->lanes[idx].told_ns = clock_ns();
}

/* What its process said last is not true any more. */
static void lane_is_down(struct node *n, unsigned idx) {
    struct metric_block *m = pages_block(n->pages, idx);
    metric_set(m, METRIC_LANE_UP, 0, 0);
    metric_set(m, METRIC_OPEN, 0, 0);
    metric_set(m, METRIC_IN_HAND, 0, 0);
    for (int i = 0; i < METRIC_LANE_STATE_COUNT; i++) {
        metric_set(m, METRIC_LANE_STATE, i, i == METRIC_LANE_STATE_STOPPED);
    }
}

static void note_end(struct node *n, unsigned idx, const struct child_end *end, uint64_t lived_ns,
                     bool draining) {
    struct node_lane *lane = &n->lanes[idx];
    uint64_t pause_ns = FIRST_PAUSE_NS;
    atomic_fetch_sub(&n->lanes_running, 1);
    lane_is_down(n, idx);
    if (draining) {
        log_info("lane.exited", "gpu=%u exit_code=%d signal=%d", idx, end->exit_code, end->signal);
        snprintf(lane->why, sizeof lane->why, "its node was ended");
        say(n, idx, BELLOWS__V1__LANE_STATE__LANE_STOPPED, true);
        lane->given_up = true;
        return;
    }
    lane->failures = lived_ns < QUICK_NS ? lane->failures + 1 : 1;
    for (unsigned i = 1; i < lane->failures && pause_ns < LONGEST_PAUSE_NS; i++) {
        pause_ns *= 2;
    }
    pause_ns = pause_ns < LONGEST_PAUSE_NS ? pause_ns : LONGEST_PAUSE_NS;
    lane->next_start_ns = clock_ns() + pause_ns;
    lane->given_up =
        lane->failures >= (n->config->restarts_max ? n->config->restarts_max : RESTARTS_MAX);
    snprintf(lane->why, sizeof lane->why, "its process ended %u times in a row, last with %s %d",
             lane->failures, end->signal ? "signal" : "exit code",
             end->signal ? end->signal : end->exit_code);
    say(n, idx,
        lane->given_up ? BELLOWS__V1__LANE_STATE__LANE_FENCED
                       : BELLOWS__V1__LANE_STATE__LANE_STOPPED,
        true);
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
    if (atomic_exchange(&lane->resumed, false) && lane->child.pid == 0) {
        lane->failures = 0;
        lane->given_up = false;
        lane->next_start_ns = 0;
    }
    if (lane->given_up && !draining && clock_ns() - lane->told_ns >= BEAT_NS) {
        say(n, idx, BELLOWS__V1__LANE_STATE__LANE_FENCED, false);
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
    for (unsigned i = 0; i < n->lanes_count; i++) {
        child_signal(&n->lanes[i].child, number);
    }
}

static bool any_runs(const struct node *n) {
    for (unsigned i = 0; i < n->lanes_count; i++) {
        if (n->lanes[i].child.pid > 0) {
            return true;
        }
    }
    return false;
}

static bool any_hope(const struct node *n) {
    for (unsigned i = 0; i < n->lanes_count; i++) {
        if (!n->lanes[i].given_up) {
            return true;
        }
    }
    return false;
}

/* --- Orders --- */

static enum err on_order(void *ctx, const struct control_order *order) {
    struct node *n = ctx;
    if (order->verb == CONTROL_STOP) {
        atomic_store(&n->stop, true);
        return OK;
    }
    for (unsigned i = 0; i < n->lanes_count; i++) {
        if (!order->one_lane || order->gpu == i) {
            atomic_store(&n->lanes[i].drained, order->verb == CONTROL_DRAIN);
            atomic_store(&n->lanes[i].resumed, order->verb == CONTROL_RESUME);
        }
    }
    return OK;
}

static void add_data(void *ctx, struct text *json) {
    struct node *n = ctx;
    text_addf(json, "{\"lanes\":%u,\"running\":%u}", n->lanes_count,
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

/* Without a server lanes are kept all the same; it is looked for again. */
static void connect(struct node *n) {
    struct transport_options link = n->config->transport;
    struct control_options control = {.space = &n->space,
                                      .node = n->config->name,
                                      .supervisor = true,
                                      .handler = on_order,
                                      .handler_ctx = n};
    if (n->link || clock_ns() - n->linked_ns < CONNECT_NS) {
        return;
    }
    link.name = "bellows node";
    link.request_wait_ns = ANSWER_NS;
    if (transport_open(&n->link, &link) != OK ||
        control_open(&n->control, n->link, &control) != OK || discover(n) != OK) {
        char quoted[ERR_DETAIL_BYTES + 64];
        log_warn("node.unconnected", "detail=%s", log_quote(quoted, sizeof quoted, err_detail()));
        control_close(&n->control);
        transport_close(&n->link);
    }
    n->linked_ns = clock_ns();
}

static enum err supervise(struct node *n, const sigset_t *set) {
    bool draining = false;
    uint64_t drain_ns = 0;
    for (;;) {
        connect(n);
        for (unsigned i = 0; i < n->lanes_count; i++) {
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
        bool ordered = !draining && atomic_load(&n->stop);
        if (number == SIGTERM || number == SIGINT || number == SIGHUP || orphan || ordered) {
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

enum err node_run(const struct node_config *config) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    unsigned count = config->devices ? (unsigned)config->devices->count : config->lanes_count;
    REQUIRE(count >= 1 && count <= LANES_PER_NODE_MAX, E_USAGE, "a node has 1 to %d lanes, not %u",
            LANES_PER_NODE_MAX, count);
    TRY(id_check(config->name, "node name"));
    AUTO(node_done) struct node n = {.config = config, .lanes_count = count, .lock_fd = -1};
    TRY(subject_space_init(&n.space, config->prefix));
    TRY(lock_path(n.lock_path, config));
    TRY(transport_check(&config->transport)); /* else each lane would find out by itself */
    TRY(take_lock(&n.lock_fd, n.lock_path, config));
    struct pages_options pages = {.address = config->metrics ? config->metrics : "off",
                                  .fallback = PAGES_NODE_ADDRESS,
                                  .url_file = config->metrics_url_file,
                                  .node = config->name,
                                  .blocks_count = count};
    TRY(pages_open(&n.pages, &pages));
    for (unsigned i = 0; i < count; i++) {
        TRY(start_lane(&n, i)); /* before the connection makes threads */
    }
    return supervise(&n, &set);
}
