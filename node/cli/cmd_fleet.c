/* bellows nodes, drain, resume: what works for the fleet, and who should pause. What the lanes say of themselves stands in their
 * directory; drain and resume are asked of the node, or of the lane, and answered by it.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/quantity.h"
#include "node/cli/backend_args.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t LOOK_NS = UINT64_C(200000000);
enum { ALL_LANES = -1, LANES_MAX = 20000 };

typedef Bellows__V1__LaneInfo lane_info;

static const char *state_name(Bellows__V1__LaneState state) {
    static const char *const names[] = {"unknown",  "starting", "ready",
                                        "draining", "fenced",   "stopped"};
    return (size_t)state < COUNT_OF(names) ? names[state] : names[0];
}

/* --- The directory --- */

struct directory {
    lane_info **lanes; /* owned */
    size_t count;
};

static void directory_done(struct directory *d) {
    for (size_t i = 0; i < d->count; i++) {
        message_free(&d->lanes[i]);
    }
    mem_free(d->lanes);
    *d = (struct directory){0};
}

static enum err add_lane(void *ctx, const struct kv_entry *entry) {
    struct directory *d = ctx;
    REQUIRE(d->count < LANES_MAX, E_LIMIT, "the fleet has more than %d lanes", LANES_MAX);
    enum err code = message_unpack(&d->lanes[d->count], &bellows__v1__lane_info__descriptor,
                                   entry->value, LANE_INFO_BYTES_MAX, "lane entry");
    if (code != OK) { /* one bad entry does not hide the others */
        fprintf(stderr, "bellows: warning: lane %s: %s\n", entry->key, err_detail());
        return OK;
    }
    d->count++;
    return OK;
}

static int by_name(const void *a, const void *b) {
    const lane_info *x = *(lane_info *const *)a, *y = *(lane_info *const *)b;
    int order = strcmp(x->node, y->node);
    return order ? order : (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

static enum err read_directory(struct directory *out, const struct client *c) {
    AUTO(directory_done) struct directory d = {0};
    struct subject bucket = kv_bucket_name(&c->space, "lanes");
    TRY(mem_new(&d.lanes, LANES_MAX, sizeof *d.lanes));
    TRY(kv_list(c->transport, bucket.text, ">", add_lane, &d));
    qsort(d.lanes, d.count, sizeof *d.lanes, by_name);
    *out = d;
    d = (struct directory){0};
    return OK;
}

/* --- nodes --- */

static void lane_json(struct text *t, const lane_info *l) {
    text_add(t, "{\"node\": ");
    text_add_json_string(t, l->node);
    text_addf(t, ", \"gpu\": %u, \"state\": \"%s\", \"reason\": ", l->gpu, state_name(l->state));
    text_add_json_string(t, l->reason);
    text_add(t, ", \"backend\": ");
    text_add_json_string(t, l->backend);
    text_add(t, ", \"device\": ");
    text_add_json_string(t, l->device);
    text_addf(t,
              ", \"jobs\": %u, \"jobs_max\": %u, \"keys_resident\": %zu, \"keys_cached\": %zu"
              ", \"pid\": %u, \"session\": ",
              l->depth, l->depth_max, l->n_keys_resident, l->n_keys_cached, l->pid);
    text_add_json_string(t, l->session);
    text_add(t, ", \"version\": ");
    text_add_json_string(t, l->bellows_version);
    text_add(t, "}");
}

static enum err nodes_as_json(const struct directory *d) {
    AUTO(text_free) struct text t = {0};
    text_add(&t, "[");
    for (size_t i = 0; i < d->count; i++) {
        text_add(&t, i ? ", " : "");
        lane_json(&t, d->lanes[i]);
    }
    text_add(&t, "]");
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

static enum err run_nodes(struct args *args) {
    AUTO(client_close) struct client c = {0};
    AUTO(directory_done) struct directory d = {0};
    TRY(client_open(&c, args));
    TRY(read_directory(&d, &c));
    if (args_switch(args, "json")) {
        return nodes_as_json(&d);
    }
    printf("%-24s %-9s %-7s %5s %8s  %s\n", "LANE", "STATE", "BACKEND", "JOBS", "KEYS", "DEVICE");
    size_t ready = 0;
    for (size_t i = 0; i < d.count; i++) {
        const lane_info *l = d.lanes[i];
        char name[ID_BYTES_MAX + 16], jobs[24], keys[32];
        snprintf(name, sizeof name, "%.64s/%u", l->node, l->gpu);
        snprintf(jobs, sizeof jobs, "%u/%u", l->depth, l->depth_max);
        snprintf(keys, sizeof keys, "%zu+%zu", l->n_keys_resident, l->n_keys_cached);
        ready += l->state == BELLOWS__V1__LANE_STATE__LANE_READY;
        printf("%-24s %-9s %-7s %5s %8s  %s%s%s\n", name, state_name(l->state), l->backend, jobs,
               keys, l->device, l->reason[0] ? "; " : "", l->reason);
    }
    printf("%zu of %zu lanes ready\n", ready, d.count);
    return OK;
}

/* --- drain, resume --- */

struct target { /* NODE, NODE/GPU or all */
    char node[ID_BYTES_MAX + 1];
    int64_t gpu; /* ALL_LANES: the node's */
    bool all;
};

static enum err read_target(struct target *out, const char *text) {
    struct target t = {.gpu = ALL_LANES};
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    uint64_t gpu = 0;
    if (!strcmp(text, "all")) {
        t.all = true;
        *out = t;
        return OK;
    }
    REQUIRE(len < sizeof t.node, E_USAGE, "\"%.80s\": a node's name has at most %d characters",
            text, ID_BYTES_MAX);
    snprintf(t.node, sizeof t.node, "%.*s", (int)len, text);
    TRY(id_check(t.node, "node"));
    if (slash) {
        enum err code = quantity_number(&gpu, slash + 1);
        REQUIRE(code == OK && gpu <= UINT32_MAX, E_USAGE,
                "\"%.80s\": after the slash stands the number of a lane, as `bellows nodes` "
                "prints it",
                text);
        t.gpu = (int64_t)gpu;
    }
    *out = t;
    return OK;
}

static bool is_meant(const struct target *t, const lane_info *l) {
    return t->all || (!strcmp(l->node, t->node) && (t->gpu == ALL_LANES || l->gpu == t->gpu));
}

static enum err check_known(const struct target *t, const struct directory *d) {
    size_t lanes = 0, meant = 0;
    for (size_t i = 0; i < d->count; i++) {
        lanes += t->all || !strcmp(d->lanes[i]->node, t->node);
        meant += is_meant(t, d->lanes[i]);
    }
    REQUIRE(lanes > 0, E_RANGE, "the fleet has no %s%s; `bellows nodes` lists what it has",
            t->all ? "nodes" : "node ", t->node);
    REQUIRE(meant > 0, E_RANGE, "node %s has no lane %" PRId64 "; it has %zu", t->node, t->gpu,
            lanes);
    return OK;
}

static enum err ask_one(const struct client *c, struct subject subject, const char *what,
                        Bellows__V1__Control *m) {
    AUTO(message_free) Bellows__V1__ControlReply *reply = NULL;
    enum err code = client_control(&reply, c, &subject, m);
    REQUIRE(code != E_NET, E_NET, "%s does not answer: %.300s", what, fault_of(code).detail);
    TRY(code);
    if (!reply->ok) {
        code = E_INTERNAL;
        (void)err_from_name(&code, reply->error_name);
        FAIL(code, "%s: %s", what, reply->error_detail);
    }
    return OK;
}

static enum err ask(const struct client *c, const struct target *t, const struct directory *d,
                    const char *verb, Bellows__V1__Control *m) {
    if (t->gpu != ALL_LANES) {
        struct lane_name lane = {t->node, (uint32_t)t->gpu};
        char what[ID_BYTES_MAX + 32];
        snprintf(what, sizeof what, "lane %s/%u", t->node, (unsigned)t->gpu);
        return ask_one(c, subject_ctl_lane(&c->space, lane, verb), what, m);
    }
    for (size_t i = 0; i < d->count; i++) { /* sorted: the lanes of a node stand together */
        const char *node = d->lanes[i]->node;
        if (is_meant(t, d->lanes[i]) && (i == 0 || strcmp(d->lanes[i - 1]->node, node) != 0)) {
            char what[ID_BYTES_MAX + 8];
            snprintf(what, sizeof what, "node %.64s", node);
            TRY(id_check(node, "node"));
            TRY(ask_one(c, subject_ctl_node(&c->space, node, verb), what, m));
        }
    }
    return OK;
}

/* Until every lane that is meant takes nothing more and holds nothing. A lane that has left the directory holds nothing. */
static enum err await_empty(const struct client *c, const struct target *t, uint64_t limit_ns) {
    uint64_t start_ns = clock_ns();
    for (;;) {
        AUTO(directory_done) struct directory d = {0};
        size_t busy = 0;
        TRY(read_directory(&d, c));
        for (size_t i = 0; i < d.count; i++) {
            bool takes = d.lanes[i]->state == BELLOWS__V1__LANE_STATE__LANE_READY ||
                         d.lanes[i]->state == BELLOWS__V1__LANE_STATE__LANE_STARTING;
            busy += is_meant(t, d.lanes[i]) && (takes || d.lanes[i]->depth > 0);
        }
        if (busy == 0) {
            return OK;
        }
        REQUIRE(!limit_ns || clock_ns() - start_ns < limit_ns, E_TIMEOUT,
                "%zu lanes still hold work after %.1f s; they go on draining", busy,
                (double)(clock_ns() - start_ns) / 1e9);
        clock_sleep_ns(LOOK_NS);
    }
}

static void print_done(const struct args *args, const char *verb, const char *state) {
    if (args_switch(args, "json")) {
        printf("{\"target\": \"%s\", \"state\": \"%s\"}\n", args_positional(args, "NODE"), state);
    } else {
        printf("%s: %s\n", args_positional(args, "NODE"), verb);
    }
}

static enum err run_verb(struct args *args, const char *verb) {
    AUTO(client_close) struct client c = {0};
    AUTO(directory_done) struct directory d = {0};
    Bellows__V1__Control m = BELLOWS__V1__CONTROL__INIT;
    struct target target;
    uint64_t limit_ns = 0, grace_ns = 0;
    bool drains = !strcmp(verb, "drain");
    TRY(read_target(&target, args_positional(args, "NODE")));
    if (drains) {
        TRY(client_wait_limit(&limit_ns, args));
        const char *grace = args_text(args, "grace");
        enum err code = grace ? quantity_span_ns(&grace_ns, grace) : OK;
        REQUIRE(code == OK, E_USAGE, "--grace %s: a time like 90s or 5m", grace);
        m.grace_ms = grace_ns / 1000000;
        const char *reason = args_text(args, "reason");
        m.reason = (char *)(uintptr_t)(reason ? reason : "");
    }
    TRY(client_open(&c, args));
    TRY(read_directory(&d, &c));
    TRY(check_known(&target, &d));
    TRY(ask(&c, &target, &d, verb, &m));
    if (drains && args_switch(args, "wait")) {
        TRY(await_empty(&c, &target, limit_ns));
        print_done(args, "drained, nothing is left on it", "drained");
    } else {
        print_done(args, drains ? "draining" : "takes work again", drains ? "draining" : "ready");
    }
    return OK;
}

static enum err run_drain(struct args *args) {
    return run_verb(args, "drain");
}

static enum err run_resume(struct args *args) {
    return run_verb(args, "resume");
}

static const struct positional no_positionals[] = {{0}};
static const struct positional target_positional[] = {
    {.name = "NODE", .text = "a node, one lane of it as NODE/GPU, or all"},
    {0},
};
static const struct option nodes_options[] = {OPTION_JSON, OPTIONS_END};
static const struct option resume_options[] = {OPTION_JSON, OPTIONS_END};
static const struct option drain_options[] = {
    {.kind = OPTION_TEXT,
     .name = "grace",
     .value = "TIME",
     .text = "How long what is being proved may take to end (\"90s\"); then it goes back, too. Not "
             "given: as long as it takes."},
    {.kind = OPTION_TEXT, .name = "reason", .value = "TEXT", .text = "Stands beside the lane."},
    {.kind = OPTION_SWITCH, .name = "wait", .text = "Waits until nothing is left on it."},
    OPTION_WAIT_LIMIT,
    OPTION_JSON,
    OPTIONS_END,
};

const struct command cmd_nodes = {.name = "nodes",
                                  .sentence = "all lanes of the fleet and how they are",
                                  .positionals = no_positionals,
                                  .options = nodes_options,
                                  .config = CONFIG_CLIENT,
                                  .run = run_nodes};
const struct command cmd_drain = {
    .name = "drain",
    .sentence = "let a node or lane finish, and give it nothing new",
    .positionals = target_positional,
    .options = drain_options,
    .config = CONFIG_CLIENT,
    .notes = "What waits there goes to other lanes at once. `bellows resume` ends it. Exit code 2 "
             "when there is no such node.\n"
             "  bellows drain gpu-7 --wait && ssh gpu-7 reboot\n",
    .run = run_drain};
const struct command cmd_resume = {.name = "resume",
                                   .sentence =
                                       "let a drained or fenced node or lane take work again",
                                   .positionals = target_positional,
                                   .options = resume_options,
                                   .config = CONFIG_CLIENT,
                                   .run = run_resume};
