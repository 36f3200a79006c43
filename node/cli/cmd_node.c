/* bellows node, bellows coordinator: the daemons. A node starts its lanes as processes of the same command line with --lane added, so
 * that a lane reads the same settings from the same places.
 */
#include "node/base/cgroup.h"
#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/cli/backend_args.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"
#include "node/coordinator/coordinator.h"
#include "node/daemon/child.h"
#include "node/daemon/lane_process.h"
#include "node/daemon/links.h"
#include "node/daemon/node.h"
#include "node/daemon/pages.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_LINE_BYTES = 64 * 1024, WORDS_MAX = 90, NAME_BYTES = ID_BYTES_MAX + 1 };

static void setup_log(const struct config *config) {
    enum log_level least;
    bool known = log_level_from_name(&least, config->log_level);
    ASSERT(known); /* a choice of the table */
    log_setup(least, !strcmp(config->log_format, "json"));
}

/* The host's name, with what an id may not hold replaced. */
static void host_name(char out[NAME_BYTES]) {
    if (gethostname(out, NAME_BYTES) != 0 || !out[0]) {
        snprintf(out, NAME_BYTES, "node");
    }
    out[NAME_BYTES - 1] = 0;
    for (char *p = out; *p; p++) {
        bool ok = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                  (*p >= '0' && *p <= '9') || *p == '-' || *p == '_';
        *p = ok ? *p : '-';
    }
}

/* A worker's certificate names its node, and the server permits that name's lanes only. */
static enum err node_name(char out[NAME_BYTES], const struct config *config) {
    struct role_holder holder;
    bool known = config->tls_cert[0] && certs_holder_of(&holder, config->tls_cert) == OK;
    if (known) {
        REQUIRE(holder.role == ROLE_WORKER, E_USAGE,
                "%.200s: its role is %s; a node needs the certificate of a worker",
                config->tls_cert, role_word(holder.role));
        REQUIRE(!config->name[0] || !strcmp(config->name, holder.name), E_USAGE,
                "the certificate is that of node %s; name this one so, or issue worker.%.64s",
                holder.name, config->name);
        snprintf(out, NAME_BYTES, "%s", holder.name);
    } else if (config->name[0]) {
        TRY(id_check(config->name, "--name"));
        snprintf(out, NAME_BYTES, "%s", config->name);
    } else {
        host_name(out);
    }
    return OK;
}

/* --- One lane's process --- */

static unsigned threads_of(const struct config *config, unsigned lanes) {
    unsigned cores = cgroup_cores();
    unsigned share = cores / lanes ? cores / lanes : 1;
    return config->threads ? (unsigned)config->threads : share;
}

static enum err run_lane(const struct args *args, const struct config *config, const char *name) {
    char context[160], device_id[ID_BYTES_MAX + 1];
    unsigned gpu = (unsigned)args_number(args, "lane", 0);
    unsigned share = (unsigned)args_number(args, "share", 1);
    const char *session = args_text(args, "session"), *cache = args_text(args, "lane-cache");
    const char *device = args_text(args, "device");
    REQUIRE(session && cache && device, E_USAGE,
            "--lane is for a node's own use; start `bellows node`");
    snprintf(context, sizeof context, "node=%s gpu=%u", name, gpu);
    log_context(context);
    if (!strcmp(device, "cpu")) { /* lanes share a processor, but not what goes wrong in them */
        snprintf(device_id, sizeof device_id, "cpu-%u", gpu);
    } else {
        snprintf(device_id, sizeof device_id, "%s", device);
    }
    setenv("BELLOWS_CACHE", cache, 1); /* digests and checks are remembered there, like the keys */
    struct lane_process_config process = {
        .lane = {.prefix = config->prefix,
                 .node = name,
                 .gpu = gpu,
                 .session = session,
                 .device = device_id,
                 .cache_dir = cache,
                 .key_disk_bytes = config->cache_size_bytes,
                 .memory_bytes = config->memory_bytes,
                 .staging_bytes = config->staging_bytes,
                 .keep = config->keep[0] ? config->keep : NULL,
                 .allow_insecure_keys = args_switch(args, "allow-insecure-keys"),
                 .threads = threads_of(config, share),
                 .backlog = (uint32_t)config->backlog,
                 .drained = args_switch(args, "drained")},
        .transport = client_transport_options(config),
        .drain_ns = config->drain_ns,
        .connections = (unsigned)config->connections,
        .parent = (pid_t)args_number(args, "supervisor", 0),
        .metrics_fd = (int)args_number(args, "metrics-fd", UINT64_MAX), /* absent: -1 */
    };
    if (!process.lane.memory_bytes) {
        process.lane.memory_bytes = cgroup_memory_bytes() / 8 * 7 / share;
    }
    bool cpu = !strcmp(device, "cpu");
    process.backend.kind = cpu ? BACKEND_CPU : BACKEND_CUDA;
    process.backend.device = cpu ? NULL : device;
    process.backend.key_tables = key_tables_of(config->key_tables);
    process.backend.device_memory_max = config->device_memory_max_bytes;
    process.backend.threads_count = threads_of(config, share);
    const char *tier = getenv("BELLOWS_CPU_TIER"); /* as where commands compute */
    process.backend.cpu_tier = tier && *tier && strcmp(tier, "auto") ? tier : NULL;
    exit(lane_process_run(&process)); /* its exit code tells the supervisor what to do */
}

/* --- The supervisor --- */

struct own_words { /* this process's command line */
    char text[COMMAND_LINE_BYTES];
    const char *argv[WORDS_MAX + 2];
    char cache_arg[4200];
};

static enum err read_own_words(struct own_words *out, const char *cache) {
    struct bytes_mut line = {0};
    TRY(file_read_all(&line, "/proc/self/cmdline", COMMAND_LINE_BYTES - 1));
    memcpy(out->text, line.ptr, line.len);
    out->text[line.len] = 0;
    mem_free(line.ptr);
    size_t count = 0;
    for (size_t at = 0; at < line.len; at += strlen(out->text + at) + 1) {
        REQUIRE(count < WORDS_MAX, E_USAGE, "more than %d words on the command line", WORDS_MAX);
        out->argv[count++] = out->text + at;
    }
    out->argv[0] = "/proc/self/exe"; /* this very program, wherever it lies */
    snprintf(out->cache_arg, sizeof out->cache_arg, "--lane-cache=%s", cache);
    out->argv[count++] = out->cache_arg;
    out->argv[count] = NULL;
    return OK;
}

static enum err list_devices(void) {
    struct device_list list;
    TRY(backends_devices(&list));
    devices_print(&list);
    return OK;
}

/* *cuda false: the processor, because that was asked for or because auto found no device and says so. */
static enum err choose_devices(struct device_list *out, bool *cuda, const struct config *config,
                               const char *runtime_dir) {
    static const char *const argv[] = {"/proc/self/exe", "node", "--list-devices", NULL};
    enum backend_kind kind;
    TRY(backends_kind(&kind, config->backend));
    *cuda = false;
    if (kind == BACKEND_CPU) {
        return OK;
    }
    enum err code = devices_find(out, argv, runtime_dir);
    if (code != OK && kind == BACKEND_AUTO) {
        char quoted[ERR_DETAIL_BYTES + 64];
        log_info("node.backend", "backend=cpu lanes=%llu reason=%s",
                 (unsigned long long)config->lanes, log_quote(quoted, sizeof quoted, err_detail()));
        return OK;
    }
    TRY(code);
    *cuda = true;
    log_info("node.backend", "backend=cuda lanes=%zu", out->count);
    return OK;
}

static enum err supervise(const struct args *args, const struct config *config, const char *name) {
    AUTO(mem_free_ptr) struct device_list *devices = NULL;
    bool cuda;
    AUTO(mem_free_ptr) struct own_words *words = NULL;
    AUTO(mem_free_ptr) char *own_cache = NULL;
    char runtime_dir[1024], context[100];
    TRY(node_runtime_dir(runtime_dir, sizeof runtime_dir));
    snprintf(context, sizeof context, "node=%s", name);
    log_context(context);
    TRY(mem_new(&devices, 1, sizeof *devices));
    TRY(choose_devices(devices, &cuda, config, runtime_dir));
    const char *cache = config->cache[0] ? config->cache : getenv("CACHE_DIRECTORY");
    if (!cache || !*cache) {
        TRY(dir_make_temp(&own_cache, "bellows-node"));
        cache = own_cache;
    }
    TRY(mem_new(&words, 1, sizeof *words));
    TRY(read_own_words(words, cache));
    struct node_config node = {.name = name,
                               .prefix = config->prefix,
                               .runtime_dir = runtime_dir,
                               .lanes_count = (unsigned)config->lanes,
                               .devices = cuda ? devices : NULL,
                               .metrics = config->metrics,
                               .metrics_url_file = args_text(args, "metrics-url"),
                               .transport = client_transport_options(config),
                               .drain_ns = config->drain_ns,
                               .parent = (pid_t)args_number(args, "parent", 0),
                               .lane_argv = words->argv};
    TRY(dir_writable(cache)); /* else each lane would find out by itself, again and again */
    if (args_switch(args, "allow-insecure-keys")) {
        log_warn("node.insecure", "keys=allowed option=--allow-insecure-keys");
    }
    enum err code = node_run(&node);
    if (own_cache) {
        struct fault fault = fault_of(code);
        IGNORE(dir_remove_tree(own_cache));
        code = fault_raise(&fault);
    }
    return code;
}

static enum err run_node(struct args *args) {
    AUTO(config_free) struct config config = {0};
    char name[NAME_BYTES];
    if (args_switch(args, "list-devices")) {
        return list_devices();
    }
    TRY(args_config(&config, args));
    TRY(node_name(name, &config));
    setup_log(&config);
    return args_count(args, "lane") ? run_lane(args, &config, name)
                                    : supervise(args, &config, name);
}

/* --- coordinator --- */

struct process {
    struct links *links;                   /* owned */
    _Atomic(struct coordinator *) running; /* lent to the pages */
    struct coordinator *coordinator;
    struct pages *pages; /* owned */
};

/* The pages ask the coordinator whether it is ready, and it counts into their block until it is closed. */
static void process_done(struct process *p) {
    atomic_store(&p->running, NULL);
    pages_stop(p->pages);
    coordinator_close(&p->coordinator);
    pages_close(&p->pages);
    links_close(&p->links);
}

/* One that leads is ready when it has read all records; one that stands by is ready to take over. */
static bool coordinator_ready(void *ctx, char reason[EXPOSE_REASON_BYTES]) {
    struct process *p = ctx;
    const struct coordinator *c = atomic_load(&p->running);
    snprintf(reason, EXPOSE_REASON_BYTES, "%s", c ? "it reads the records" : "it is starting");
    return c &&
           (coordinator_is_ready(c) || metric_get(pages_block(p->pages, 0), METRIC_LEADER, 0) != 1);
}

static enum err run_coordinator(struct args *args) {
    AUTO(config_free) struct config config = {0};
    AUTO(process_done) struct process p = {0};
    /* A lease is lost by waiting. */
    static const struct link_wish wishes[] = {
        {.purpose = "control"},
        {.purpose = "feed"},
        {.purpose = "lease", .request_wait_ns = UINT64_C(500000000)}};
    sigset_t set;
    char name[NAME_BYTES + 32], host[NAME_BYTES];
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    TRY(args_config(&config, args));
    setup_log(&config);
    host_name(host);
    snprintf(name, sizeof name, "%.40s-%ld", host, (long)getpid());
    struct transport_options options = client_transport_options(&config);
    struct pages_options pages = {.address = config.metrics,
                                  .fallback = PAGES_COORDINATOR_ADDRESS,
                                  .url_file = args_text(args, "metrics-url"),
                                  .blocks_count = 1,
                                  .ready = coordinator_ready,
                                  .ready_ctx = &p};
    TRY(pages_open(&p.pages, &pages));
    pid_t parent = (pid_t)args_number(args, "parent", 0);
    struct link_patience patience = {.set = &set, .parent = parent};
    enum err code =
        links_open(&p.links, &options, "coordinator", wishes, COUNT_OF(wishes), &patience);
    if (code == E_CANCELLED) {
        log_info("coordinator.ends", "waited_for=server");
        return OK;
    }
    TRY(code);
    struct coordinator_links links = {links_get(p.links, 0), links_get(p.links, 1),
                                      links_get(p.links, 2)};
    struct coordinator_config c = {.prefix = config.prefix,
                                   .name = name,
                                   .limits = {.attempts_max = (uint32_t)config.attempts},
                                   .tenant_jobs_max = (uint32_t)config.tenant_jobs,
                                   .replicas = (uint32_t)config.replicas,
                                   .metrics = pages_block(p.pages, 0)};
    TRY(coordinator_open(&p.coordinator, &c, &links));
    atomic_store(&p.running, p.coordinator);
    int number = 0;
    while (number <= 0 && !child_is_orphan(parent)) {
        REQUIRE(!links_lost(p.links), E_NET,
                "the connection to the server is closed for good; the log above says why");
        number = sigtimedwait(&set, NULL, &(struct timespec){0, 200000000});
    }
    log_info("coordinator.ends", "signal=%d", number > 0 ? number : 0);
    return OK;
}

static const struct positional no_positionals[] = {{0}};
#define OPTION_PARENT                                                                              \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "parent", .value = "PID", .least = 1, .most = INT32_MAX,    \
        .text = "Ends when this process, its parent, is gone."                                     \
    }
#define OPTION_METRICS_URL                                                                         \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "metrics-url", .value = "FILE",                               \
        .text = "Writes the address of its metrics there."                                         \
    }
static const struct option node_options[] = {
    OPTION_INSECURE,
    OPTION_PARENT,
    OPTION_METRICS_URL,
    {.kind = OPTION_SWITCH,
     .name = "list-devices",
     .text = "Prints the CUDA devices of this machine, each of which would be a lane, and ends."},
    {.kind = OPTION_NUMBER,
     .name = "lane",
     .value = "N",
     .most = 63,
     .text = "Internal: be the process of this lane."},
    {.kind = OPTION_NUMBER,
     .name = "metrics-fd",
     .value = "N",
     .most = INT32_MAX,
     .text = "Internal: what this lane counts into."},
    {.kind = OPTION_NUMBER,
     .name = "supervisor",
     .value = "PID",
     .least = 1,
     .most = INT32_MAX,
     .text = "Internal: the node that started this lane."},
    {.kind = OPTION_TEXT,
     .name = "session",
     .value = "ID",
     .text = "Internal: of this start of the lane."},
    {.kind = OPTION_TEXT,
     .name = "device",
     .value = "cpu|UUID",
     .text = "Internal: what this lane computes on."},
    {.kind = OPTION_NUMBER,
     .name = "share",
     .value = "N",
     .least = 1,
     .most = 64,
     .text = "Internal: lanes of this node."},
    {.kind = OPTION_SWITCH,
     .name = "drained",
     .text = "Internal: the lane takes no work until it is resumed."},
    {.kind = OPTION_TEXT,
     .name = "lane-cache",
     .value = "DIR",
     .text = "Internal: the node's cache."},
    OPTIONS_END,
};
static const struct option coordinator_options[] = {OPTION_PARENT, OPTION_METRICS_URL, OPTIONS_END};

const struct command cmd_node = {
    .name = "node",
    .sentence = "prove what the fleet places on this machine",
    .positionals = no_positionals,
    .options = node_options,
    .config = CONFIG_NODE,
    .notes = "SIGTERM drains: nothing new is taken, what is being proved may end within --drain, "
             "the rest goes back.\n"
             "Answers on $SRV as bellows-node: `nats micro ls` finds it.\n",
    .run = run_node,
};
const struct command cmd_coordinator = {
    .name = "coordinator",
    .sentence = "take jobs in and place them on lanes; several stand by for each other",
    .positionals = no_positionals,
    .options = coordinator_options,
    .notes = "One leads, and is followed within 6 s when it dies or freezes.\n"
             "All answer on $SRV as bellows-coordinator: `nats micro ls` finds them.\n",
    .config = CONFIG_COORDINATOR,
    .run = run_coordinator,
};
