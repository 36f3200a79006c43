/* bellows dev: a whole fleet on this machine, on loopback, in one folder, gone without trace afterwards.
 *
 *   nats-server (JetStream, a free port) ─ coordinator ─ node with CPU lanes ─ wait until the lanes are heard ─ DIR/url
 *
 * The three are children of this process and die with it, however it dies. With --run the fleet lives as long as one command.
 */
#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/cli/backend_args.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"
#include "node/cli/dashboard.h"
#include "node/cli/demo.h"
#include "node/daemon/child.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LANES_LEAST = 2, ARGV_MAX = 48 };
static const uint64_t START_NS = UINT64_C(30000000000);
static const uint64_t STOP_NS = UINT64_C(5000000000);
static const uint64_t NODE_STOP_NS =
    UINT64_C(15000000000); /* beyond what it needs to kill a lane */
static const uint64_t LOOK_NS = UINT64_C(20000000);

static _Atomic int stop; /* set by a signal: everything is taken down in order */

struct dev {
    const struct args *args;
    struct config config; /* owned */
    char *own_dir;        /* owned; removed at the end */
    char dir[PATH_BYTES];
    char url[256], web_url[256]; /* of the server: for clients, for browsers */
    struct dashboard *page;      /* owned; NULL: not built */
    struct demo *demo;           /* owned; NULL: not asked for */
    unsigned lanes;
    struct child server, coordinator, node, run;
    struct transport *link; /* owned */
};

/* Front to back: nobody is left to be surprised by a server that is gone. */
static void dev_done(struct dev *d) {
    char path[PATH_BYTES + 32];
    child_stop(&d->run, STOP_NS);
    demo_close(&d->demo);
    transport_close(&d->link);
    if (d->dir[0]) {
        client_forget_dev();
        snprintf(path, sizeof path, "%s/url", d->dir);
        unlink(path);
        snprintf(path, sizeof path, "%s/dashboard", d->dir);
        unlink(path);
    }
    dashboard_close(&d->page);
    child_stop(&d->node, d->config.drain_ns + NODE_STOP_NS);
    child_stop(&d->coordinator, STOP_NS);
    child_stop(&d->server, STOP_NS);
    if (d->own_dir) {
        IGNORE(dir_remove_tree(d->own_dir));
    }
    mem_free(d->own_dir);
    config_free(&d->config);
}

static const char *below(struct dev *d, char out[PATH_BYTES + 32], const char *tail) {
    snprintf(out, PATH_BYTES + 32, "%s/%s", d->dir, tail);
    return out;
}

/* --- The server --- */

static bool copy_url(char out[256], const char *text, const char *scheme) {
    const char *start = strstr(text, scheme), *end = start ? strchr(start, '"') : NULL;
    if (!end || end - start >= 256) {
        return false;
    }
    snprintf(out, 256, "%.*s", (int)(end - start), start);
    return true;
}

/* nats-server writes its ports into a file of its own as soon as it listens: {"nats": ["nats://127.0.0.1:40123"],
 * "websocket": ["ws://127.0.0.1:40124"]}. */
static bool read_urls(struct dev *d) {
    char path[PATH_BYTES + 64], text[4096];
    snprintf(path, sizeof path, "%s/nats-server_%ld.ports", d->dir, (long)d->server.pid);
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = 0;
    return copy_url(d->url, text, "nats://") && (!d->page || copy_url(d->web_url, text, "ws://"));
}

static enum err failed(struct dev *d, const char *who, const char *log) {
    char path[PATH_BYTES + 32], line[300] = "", last[300] = "";
    FILE *file = fopen(below(d, path, log), "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        snprintf(last, sizeof last, "%s", line);
    }
    if (file) {
        fclose(file);
    }
    FAIL(E_NET, "%s ended: %s", who, last[0] ? last : "it wrote nothing");
}

/* Debian keeps it where an ordinary user's PATH does not look. */
static const char *server_program(void) {
    static const char *const places[] = {"/usr/local/bin/nats-server", "/usr/bin/nats-server",
                                         "/usr/local/sbin/nats-server", "/usr/sbin/nats-server"};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        if (access(places[i], X_OK) == 0) {
            return places[i];
        }
    }
    return "nats-server"; /* by PATH */
}

/* Browsers: a listener of their own, for pages from our port only, as a user who may listen and read telemetry and nothing else. Everybody
 * else is who it was without users. Nobody knows the passwords, which the server's configuration must have. */
static enum err add_browsers(struct text *t, const struct dev *d) {
    static const char listens[] = "[\"bellows.tel.>\", \"bellows.evt.>\", \"bellows.hb.>\", "
                                  "\"_INBOX.dashboard.>\"]";
    static const char asks[] =
        "[\"$JS.API.DIRECT.GET.BELLOWS_TEL\", \"$JS.API.DIRECT.GET.KV_bellows_lanes\"]";
    uint64_t secret[4];
    TRY(rng_os(secret, sizeof secret));
    text_addf(t, "authorization { users: [\n  { user: fleet, password: \"%016llx%016llx\" }\n",
              (unsigned long long)secret[0], (unsigned long long)secret[1]);
    text_addf(t,
              "  { user: dashboard, password: \"%016llx%016llx\", permissions: { publish: %s, "
              "subscribe: %s } }\n] }\nno_auth_user: fleet\n",
              (unsigned long long)secret[2], (unsigned long long)secret[3], asks, listens);
    text_addf(t,
              "websocket { listen: \"127.0.0.1:-1\", no_tls: true, no_auth_user: dashboard, "
              "allowed_origins: [\"http://127.0.0.1:%u\", \"http://localhost:%u\"] }\n",
              dashboard_port(d->page), dashboard_port(d->page));
    return OK;
}

static enum err open_page(struct dev *d) {
    char folder[PATH_BYTES];
    return dashboard_find(folder, sizeof folder) ? dashboard_open(&d->page, folder) : OK;
}

static enum err start_server(struct dev *d) {
    char conf[PATH_BYTES + 32], log[PATH_BYTES + 32];
    AUTO(text_free) struct text t = {0};
    text_addf(&t, "listen: \"127.0.0.1:%d\"\n", d->config.port ? (int)d->config.port : -1);
    text_addf(&t, "ports_file_dir: \"%s\"\nmax_payload: 8MB\nmax_pending: 64MB\n", d->dir);
    text_addf(&t, "jetstream { store_dir: \"%s/nats\" }\n", d->dir);
    TRY(open_page(d));
    if (d->page) {
        TRY(add_browsers(&t, d));
    }
    TRY(text_done(&t));
    TRY(file_write_all(below(d, conf, "nats.conf"), text_bytes(&t)));
    const char *argv[] = {server_program(), "-c", conf, NULL};
    struct child_options options = {
        .argv = argv, .log_path = below(d, log, "nats.log"), .own_group = true};
    enum err code = child_start(&d->server, &options);
    if (code != OK) {
        struct fault fault = fault_of(code);
        FAIL(E_NET, "%s; `apt-get install nats-server` installs it", fault.detail);
    }
    for (uint64_t start_ns = clock_ns(); !read_urls(d);) {
        bool ended = false;
        struct child_end end;
        child_poll(&ended, &end, &d->server);
        if (ended) {
            return failed(d, "nats-server", "nats.log");
        }
        REQUIRE(clock_ns() - start_ns < START_NS, E_TIMEOUT,
                "nats-server does not listen after 30 s; its log is %s", log);
        clock_sleep_ns(LOOK_NS);
    }
    return OK;
}

/* --- Coordinator and node --- */

/* This program as COMMAND: dev's own settings that it takes, `more`, the server. */
static enum err start_self(struct child *out, struct dev *d, const char *command, unsigned takes,
                           const char *const *more) {
    const char *argv[ARGV_MAX] = {"/proc/self/exe", command};
    char path[PATH_BYTES + 32], log[32], server[300], parent[32];
    AUTO(text_free) struct text flags = {0};
    size_t count = 2, flags_count = config_flags(&flags, &d->config, takes | CONFIG_DEV);
    TRY(text_done(&flags));
    const char *at = flags.ptr;
    for (size_t i = 0; i < flags_count; i++, at += strlen(at) + 1) {
        ASSERT(count < ARGV_MAX - 8);
        argv[count++] = at;
    }
    for (size_t i = 0; more[i]; i++) {
        argv[count++] = more[i];
    }
    snprintf(server, sizeof server, "--server=%s", d->url);
    snprintf(parent, sizeof parent, "--parent=%ld", (long)getpid());
    snprintf(log, sizeof log, "%s.log", command);
    argv[count++] = server;
    argv[count++] = parent;
    argv[count] = NULL;
    struct child_options options = {
        .argv = argv, .log_path = below(d, path, log), .own_group = true};
    return child_start(out, &options);
}

/* A free port each, as another fleet may run on this machine. */
static enum err start_fleet(struct dev *d) {
    char own[PATH_BYTES + 64], nodes[PATH_BYTES + 64];
    snprintf(own, sizeof own, "--metrics-url=%s/coordinator.metrics", d->dir);
    snprintf(nodes, sizeof nodes, "--metrics-url=%s/node.metrics", d->dir);
    const char *coordinator[] = {"--metrics=127.0.0.1:0", own, NULL};
    const char *node[] = {"--metrics=127.0.0.1:0", nodes, "--name=dev", "--allow-insecure-keys",
                          NULL};
    TRY(start_self(&d->coordinator, d, "coordinator", CONFIG_COORDINATOR, coordinator));
    return start_self(&d->node, d, "node", CONFIG_NODE, node);
}

static enum err check_children(struct dev *d) {
    bool ended = false;
    struct child_end end;
    child_poll(&ended, &end, &d->server);
    if (ended) {
        return failed(d, "nats-server", "nats.log");
    }
    child_poll(&ended, &end, &d->coordinator);
    if (ended) {
        return failed(d, "the coordinator", "coordinator.log");
    }
    child_poll(&ended, &end, &d->node);
    return ended ? failed(d, "the node", "node.log") : OK;
}

static bool is_ready(struct subject_parts *parts, const struct subject_space *space,
                     const struct message *m) {
    AUTO(message_free) Bellows__V1__Heartbeat *beat = NULL;
    return subject_parse(parts, space, m->subject) == OK && parts->gpu < 64 &&
           message_unpack(&beat, &bellows__v1__heartbeat__descriptor, m->data, HEARTBEAT_BYTES_MAX,
                          "heartbeat") == OK &&
           beat->state == BELLOWS__V1__LANE_STATE__LANE_READY;
}

/* Of the lanes in this set; operators' commands look there for nodes. */
static bool entries_are_there(struct dev *d, const struct subject_space *space, uint64_t lanes) {
    struct subject bucket = kv_bucket_name(space, "lanes");
    for (uint32_t gpu = 0; gpu < 64; gpu++) {
        AUTO(kv_entry_done) struct kv_entry entry = {0};
        struct subject key = key_of_lane((struct lane_name){"dev", gpu});
        bool found = false;
        if ((lanes >> gpu & 1) &&
            (kv_get(&entry, &found, d->link, bucket.text, key.text) != OK || !found)) {
            return false;
        }
    }
    return true;
}

/* A lane may be ready before the coordinator has made all that others need: the last of it are the intake's consumers. */
static bool streams_are_there(struct dev *d, const struct subject_space *space) {
    struct subject stream = stream_name(space, "JOBS");
    struct subject consumer = consumer_of_priority(JOB_PRIORITY_COUNT - 1);
    struct consumer_info info;
    bool found = false;
    return consumer_info(&info, &found, d->link, stream.text, consumer.text) == OK && found;
}

static enum err wait_for_directory(struct dev *d, const struct subject_space *space,
                                   uint64_t lanes) {
    for (uint64_t start_ns = clock_ns();
         !streams_are_there(d, space) || !entries_are_there(d, space, lanes);) {
        TRY(check_children(d));
        REQUIRE(!atomic_load(&stop), E_CANCELLED, "stopped while the fleet was starting");
        REQUIRE(clock_ns() - start_ns < START_NS, E_TIMEOUT,
                "the fleet's streams and lanes are not there after 30 s; see %s/coordinator.log",
                d->dir);
        clock_sleep_ns(LOOK_NS);
    }
    return OK;
}

/* Ready when every lane has said that it is. */
static enum err wait_for_lanes(struct dev *d) {
    AUTO(subscription_close) struct subscription *beats = NULL;
    struct transport_options options = {
        .url = d->url, .name = "bellows dev", .open_wait_ns = START_NS};
    struct subject_space space;
    struct subject filter;
    bool cpu = !strcmp(d->config.backend, "cpu") || !backends_cuda_compiled();
    /* How many CUDA lanes there will be, the node's machine decides: one makes a fleet. */
    uint64_t heard = 0, all = !cpu ? 1 : d->lanes < 64 ? (UINT64_C(1) << d->lanes) - 1 : UINT64_MAX;
    TRY(subject_space_init(&space, NULL));
    TRY(transport_open(&d->link, &options));
    filter = filter_heartbeats(&space);
    TRY(transport_subscribe(&beats, d->link, filter.text, NULL));
    for (uint64_t start_ns = clock_ns(); (heard & all) != all;) {
        AUTO(message_done) struct message m = {0};
        struct subject_parts parts;
        TRY(check_children(d));
        REQUIRE(!atomic_load(&stop), E_CANCELLED, "stopped while the fleet was starting");
        REQUIRE(clock_ns() - start_ns < START_NS, E_TIMEOUT,
                "the lanes are not there after 30 s; see %s/node.log", d->dir);
        if (subscription_next(&m, beats, 10 * LOOK_NS) == OK && is_ready(&parts, &space, &m)) {
            heard |= UINT64_C(1) << parts.gpu;
        }
    }
    TRY(wait_for_directory(d, &space, heard));
    d->lanes = cpu ? d->lanes : (unsigned)__builtin_popcountll(heard);
    /* So that submitters in other languages find the bucket of who names no tenant. */
    return fleet_ensure_tenant(d->link, &space, TENANT_DEFAULT, NULL);
}

/* --- The command --- */

static void on_signal(int number) {
    (void)number;
    atomic_store(&stop, 1);
}

static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

static enum err prepare(struct dev *d) {
    if (d->config.dir[0]) {
        TRY(dir_make(d->config.dir));
        _Static_assert(PATH_BYTES >= PATH_MAX, "realpath writes PATH_MAX bytes");
        REQUIRE(realpath(d->config.dir, d->dir), E_IO, "%s: %s", d->config.dir, strerror(errno));
    } else {
        TRY(dir_make_temp(&d->own_dir, "bellows-dev"));
        snprintf(d->dir, sizeof d->dir, "%s", d->own_dir);
    }
    REQUIRE(!strpbrk(d->dir, "\"\\\n"), E_USAGE,
            "the folder's name holds a quote, a backslash or a line break");
    d->lanes = d->config.lanes > LANES_LEAST ? (unsigned)d->config.lanes : LANES_LEAST;
    d->config.lanes = d->lanes;
    if (!d->config.cache[0]) {
        char cache[PATH_BYTES + 32];
        char *copy = mem_strdup(below(d, cache, "cache"));
        REQUIRE(copy, E_LIMIT, "out of memory: the folder of keys");
        mem_free_ptr(&d->config.cache);
        d->config.cache = copy;
    }
    return OK;
}

/* The address that a child wrote down; "" when it has none. */
static void read_metrics(struct dev *d, char out[80], const char *file) {
    char path[PATH_BYTES + 32];
    struct bytes_mut text = {0};
    out[0] = 0;
    if (file_read_all(&text, below(d, path, file), 79) == OK) {
        memcpy(out, text.ptr, text.len);
        out[text.len] = 0;
        mem_free(text.ptr);
    }
}

static enum err announce(struct dev *d) {
    char node[80], coordinator[80];
    read_metrics(d, node, "node.metrics");
    read_metrics(d, coordinator, "coordinator.metrics");
    char path[PATH_BYTES + 32];
    TRY(client_note_dev(d->url));
    TRY(file_write_all(below(d, path, "url"), bytes_of(d->url, strlen(d->url))));
    char page[80] = "not built; meson configure -Ddashboard=enabled builds it";
    if (d->page) {
        TRY(dashboard_serve(d->page, d->web_url));
        snprintf(page, sizeof page, "http://127.0.0.1:%u/", dashboard_port(d->page));
        TRY(file_write_all(below(d, path, "dashboard"), bytes_of(page, strlen(page))));
    }
    if (!args_text(d->args, "run")) {
        printf("fleet ready: %u lanes at %s\ndashboard    %s\n"
               "metrics      %s/metrics %s/metrics; bellows top shows the same in a terminal\n"
               "folder       %s (logs: node.log, coordinator.log, nats.log)\n"
               "keys         insecure ones are allowed: this fleet is for development\n"
               "try          bellows submit KEY.zkey WITNESS.wtns --wait\nstop         Ctrl-C\n",
               d->lanes, d->url, page, node, coordinator, d->dir);
        fflush(stdout);
    }
    return OK;
}

/* What is done again and again while the fleet lives. */
static enum err look_after(struct dev *d) {
    TRY(check_children(d));
    return d->demo ? demo_step(d->demo) : OK;
}

static enum err run_command(struct dev *d) {
    char server[300];
    const char *argv[] = {"/bin/sh", "-c", args_text(d->args, "run"), NULL};
    snprintf(server, sizeof server, "BELLOWS_SERVER=%s", d->url);
    struct child_options options = {.argv = argv, .env = {server}};
    TRY(child_start(&d->run, &options));
    for (;;) {
        bool ended = false;
        struct child_end end;
        child_poll(&ended, &end, &d->run);
        if (ended) {
            int exit_code = end.exit_code >= 0 ? end.exit_code : 128 + end.signal;
            dev_done(d);
            fflush(NULL);
            exit(exit_code); /* the command's own, whatever it is */
        }
        TRY(look_after(d));
        REQUIRE(!atomic_load(&stop), E_CANCELLED, "stopped");
        clock_sleep_ns(LOOK_NS);
    }
}

static enum err run(struct args *args) {
    AUTO(dev_done) struct dev d = {.args = args};
    TRY(args_config(&d.config, args));
    TRY(prepare(&d));
    catch_signals();
    TRY(start_server(&d));
    TRY(start_fleet(&d));
    TRY(wait_for_lanes(&d));
    TRY(announce(&d));
    if (args_switch(args, "demo")) {
        TRY(demo_open(&d.demo, d.dir, d.url));
    }
    if (args_text(args, "run")) {
        return run_command(&d);
    }
    while (!atomic_load(&stop)) {
        TRY(look_after(&d));
        clock_sleep_ns(5 * LOOK_NS);
    }
    return OK;
}

static const struct positional no_positionals[] = {{0}};
static const struct option options[] = {
    {.kind = OPTION_TEXT,
     .name = "run",
     .value = "COMMAND",
     .text = "Runs it with BELLOWS_SERVER set, then stops the fleet and exits as the command did."},
    {.kind = OPTION_SWITCH,
     .name = "demo",
     .text = "Keeps the fleet at work with small made-up jobs, to look at: in the dashboard, in "
             "bellows top."},
    OPTIONS_END,
};
const struct command cmd_dev = {
    .name = "dev",
    .sentence = "a whole fleet on this machine, for development",
    .positionals = no_positionals,
    .options = options,
    .config = CONFIG_DEV,
    .notes = "Listens on loopback only, takes insecure keys, has at least two CPU lanes. The "
             "server's address stands in\n"
             "DIR/url; other commands of this user find it without --server. The dashboard's "
             "address is printed and "
             "stands in DIR/dashboard.\n"
             "  bellows dev --demo\n"
             "  bellows dev --run 'bellows submit circuit.zkey witness.wtns --wait'\n",
    .run = run,
};
