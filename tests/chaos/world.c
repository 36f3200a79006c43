/* Lanes are found by the words of their command line, which hold the host's folder: no stranger is ever signalled. A full store is a limit:
 * the streams of jobs, records and results may not grow beyond what they hold and a little more, so the server refuses every
 * further message as it does at an operator's quota. (A disk without room makes the packaged server lose what it has acknowledged,
 * which no client can mend.)
 */
#include "tests/chaos/world.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/mem.h"

#define SECOND UINT64_C(1000000000)
static const uint64_t BACK_NS = SECOND * 3 / 10;
enum { SLACK_BYTES = 65536, LINE_BYTES = 4096 };

/* --- Processes --- */

/* The words of a process, NUL between them; 0 when there is none. */
static size_t words_of(char line[LINE_BYTES], const char *pid) {
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
    return check_file(line, LINE_BYTES, path);
}

static bool has_word(const char *line, size_t len, const char *word) {
    return memmem(line, len, word, strlen(word) + 1) != NULL; /* its NUL included */
}

pid_t world_lane_pid(const struct world *w, unsigned node, unsigned gpu) {
    char name[32], lane[32], line[LINE_BYTES];
    pid_t pid = 0;
    snprintf(name, sizeof name, "--name=w%u", node);
    snprintf(lane, sizeof lane, "--lane=%u", gpu);
    DIR *proc = opendir("/proc");
    CHECK(proc);
    for (struct dirent *e; !pid && (e = readdir(proc)) != NULL;) {
        size_t len = isdigit((unsigned char)e->d_name[0]) ? words_of(line, e->d_name) : 0;
        if (len && memmem(line, len, w->host.dir, strlen(w->host.dir)) &&
            has_word(line, len, name) && has_word(line, len, lane)) {
            pid = (pid_t)strtol(e->d_name, NULL, 10);
        }
    }
    closedir(proc);
    return pid;
}

static bool is_cabled(const struct world *w, unsigned wire) {
    return w->cables && wire >= COORDINATORS && wire < SUBMITTER_WIRE;
}

static void use_wire(struct world *w, unsigned wire) {
    bool cabled = is_cabled(w, wire);
    const char *address = cabled ? cable_address(w->cables, wire - COORDINATORS) : "127.0.0.1";
    snprintf(w->host.url, sizeof w->host.url, "nats://%s:%u", address, wire_port(w->wires, wire));
    snprintf(w->host.netns, sizeof w->host.netns, "%s",
             cabled ? cable_namespace(w->cables, wire - COORDINATORS) : "");
}

static void start_coordinator(struct world *w, unsigned idx) {
    use_wire(w, idx);
    host_start_coordinator(&w->host);
    w->coordinators[idx] = w->host.coordinator;
    w->host.coordinator = (struct child){0};
    w->coordinator_down[idx] = false;
    w->back_ns[idx] = 0;
}

static void start_node(struct world *w, unsigned idx) {
    use_wire(w, COORDINATORS + idx);
    host_start_node(&w->host, idx, LANES_PER_NODE, "--drain=2s");
    w->node_down[idx] = false;
    w->back_ns[COORDINATORS + idx] = 0;
}

static void kill_child(struct child *c) {
    child_signal(c, SIGKILL);
    child_stop(c, SECOND);
}

static void kill_node(struct world *w, unsigned idx) {
    pid_t lanes[LANES_PER_NODE];
    for (unsigned gpu = 0; gpu < LANES_PER_NODE; gpu++) {
        lanes[gpu] = world_lane_pid(w, idx, gpu);
    }
    w->node_down[idx] = true;
    kill_child(&w->host.nodes[idx]);
    for (unsigned gpu = 0; gpu < LANES_PER_NODE; gpu++) {
        if (lanes[gpu] > 0 && world_lane_pid(w, idx, gpu) == lanes[gpu]) {
            kill(lanes[gpu], SIGKILL);
        }
    }
}

static void look_after(struct world *w, struct child *c, bool down, unsigned slot,
                       const char *what) {
    bool ended = false;
    struct child_end end;
    child_poll(&ended, &end, c);
    if (!ended || down) {
        return;
    }
    w->ended_count++;
    w->back_ns[slot] = clock_ns() + BACK_NS;
    printf("%7.3f s  %s ended by itself: exit code %d, signal %d\n",
           (double)(clock_ns() - w->started_ns) / 1e9, what, end.exit_code, end.signal);
    if (end.signal) {
        w->crashes_count++;
        snprintf(w->crash, sizeof w->crash, "%s ended with signal %d", what, end.signal);
    }
}

static void look_after_all(struct world *w) {
    uint64_t now_ns = clock_ns();
    char what[32];
    for (unsigned i = 0; i < COORDINATORS; i++) {
        snprintf(what, sizeof what, "coordinator %u", i);
        look_after(w, &w->coordinators[i], w->coordinator_down[i], i, what);
        if (w->back_ns[i] && now_ns >= w->back_ns[i] && !w->coordinator_down[i]) {
            start_coordinator(w, i);
        }
    }
    for (unsigned i = 0; i < NODES; i++) {
        snprintf(what, sizeof what, "node w%u", i);
        look_after(w, &w->host.nodes[i], w->node_down[i], COORDINATORS + i, what);
        if (w->back_ns[COORDINATORS + i] && now_ns >= w->back_ns[COORDINATORS + i] &&
            !w->node_down[i]) {
            start_node(w, i);
        }
    }
}

/* --- Troubles --- */

static void freeze(struct trouble_hand *hand, pid_t pid) {
    hand->frozen = pid > 0 && kill(pid, SIGSTOP) == 0 ? pid : 0;
    hand->skipped = !hand->frozen;
}

static enum err ask(struct message *out, const struct world *w, const char *verb,
                    const char *stream, struct bytes body) {
    char subject[SUBJECT_BYTES_MAX + 32];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.%s.%s", verb, stream);
    TRY(transport_request(out, w->host.user.link, subject, body, SECOND));
    REQUIRE(!memmem(out->data.ptr, out->data.len, "\"error\"", 7), E_NET, "%s: refused", subject);
    return OK;
}

/* Keeps the settings as they were and lets the stream grow by SLACK_BYTES only. */
static enum err fill_stream(struct full_stream *full, const struct world *w, const char *stream) {
    AUTO(message_done) struct message m = {0}, answer = {0};
    AUTO(json_free) cJSON *info = NULL;
    TRY(ask(&m, w, "INFO", stream, (struct bytes){0}));
    info = cJSON_ParseWithLength((const char *)m.data.ptr, m.data.len);
    cJSON *config = cJSON_GetObjectItem(info, "config");
    const cJSON *bytes = cJSON_GetObjectItem(cJSON_GetObjectItem(info, "state"), "bytes");
    REQUIRE(config && bytes, E_FORMAT, "the server describes stream %s in another way", stream);
    full->settings = cJSON_PrintUnformatted(config);
    cJSON_DeleteItemFromObject(config, "max_bytes");
    cJSON_DeleteItemFromObject(config, "discard");
    cJSON_AddNumberToObject(config, "max_bytes", bytes->valuedouble + SLACK_BYTES);
    cJSON_AddStringToObject(config, "discard", "new");
    char *changed = cJSON_PrintUnformatted(config);
    enum err code = ask(&answer, w, "UPDATE", stream, bytes_of(changed, strlen(changed)));
    cJSON_free(changed);
    return code;
}

static void fill_store(struct trouble_hand *hand, struct world *w) {
    static const char *const names[FULL_STREAMS] = {"BELLOWS_JOBS", "KV_bellows_jobs",
                                                    "BELLOWS_DONE"};
    enum err code = OK;
    for (unsigned i = 0; i < FULL_STREAMS && code == OK; i++) {
        code = fill_stream(&w->full[i], w, names[i]);
        w->full[i].stream = names[i];
    }
    hand->skipped = code != OK;
}

/* Nothing else goes on before the old settings are back. */
static void empty_store(struct world *w) {
    for (unsigned i = 0; i < FULL_STREAMS; i++) {
        struct full_stream *full = &w->full[i];
        enum err code = full->settings ? E_NET : OK;
        for (int n = 0; n < 100 && code != OK; n++) {
            AUTO(message_done) struct message m = {0};
            code = ask(&m, w, "UPDATE", full->stream,
                       bytes_of(full->settings, strlen(full->settings)));
            clock_sleep_ns(code == OK ? 0 : SECOND / 10);
        }
        CHECK_MSG(code == OK, "stream %s keeps its small limit: %s", full->stream, err_detail());
        cJSON_free(full->settings);
        full->settings = NULL;
    }
}

static void begin(struct world *w, struct trouble_hand *hand, const struct chaos_event *e) {
    hand->active = hand->begun = true;
    switch (e->kind) {
    case KILL_LANE: {
        pid_t pid = world_lane_pid(w, e->target, e->gpu);
        hand->skipped = pid <= 0 || kill(pid, SIGKILL) != 0;
        break;
    }
    case KILL_NODE:
        kill_node(w, e->target);
        break;
    case KILL_COORDINATOR:
        w->coordinator_down[e->target] = true;
        kill_child(&w->coordinators[e->target]);
        break;
    case KILL_SERVER:
        check_server_kill(&w->host.server);
        break;
    case DRAIN_NODE:
        w->node_down[e->target] = true;
        child_signal(&w->host.nodes[e->target], SIGTERM);
        break;
    case FREEZE_LANE:
        freeze(hand, world_lane_pid(w, e->target, e->gpu));
        break;
    case FREEZE_NODE:
        freeze(hand, w->host.nodes[e->target].pid);
        break;
    case FREEZE_COORDINATOR:
        freeze(hand, w->coordinators[e->target].pid);
        break;
    case FREEZE_SERVER:
        freeze(hand, w->host.server.pid);
        break;
    case CUT_WIRE:
        wire_set(w->wires, e->target, WIRE_CUT, 0);
        break;
    case HOLE_IN_WIRE:
        wire_set(w->wires, e->target, WIRE_HOLE, 0);
        break;
    case SLOW_WIRE:
        wire_set(w->wires, e->target, WIRE_SLOW, e->delay_ns);
        break;
    case PULL_CABLE:
        hand->skipped = !w->cables || !cable_pull(w->cables, e->target);
        break;
    case SPOIL_CABLE: {
        unsigned delay_ms = (unsigned)(e->delay_ns / 1000000);
        hand->skipped =
            !w->cables || !cable_spoil(w->cables, e->target, 1 + delay_ms / 2, delay_ms);
        break;
    }
    case FULL_STORE:
        fill_store(hand, w);
        break;
    case TROUBLES_COUNT:
        break;
    }
    w->counts[e->kind] += !hand->skipped;
    w->skipped_count += hand->skipped;
}

static void end(struct world *w, struct trouble_hand *hand, const struct chaos_event *e) {
    hand->active = false;
    switch (e->kind) {
    case KILL_NODE:
    case DRAIN_NODE:
        child_stop(&w->host.nodes[e->target], 15 * SECOND);
        start_node(w, e->target);
        break;
    case KILL_COORDINATOR:
        start_coordinator(w, e->target);
        break;
    case KILL_SERVER:
        check_server_up(&w->host.server, false);
        break;
    case CUT_WIRE:
    case HOLE_IN_WIRE:
    case SLOW_WIRE:
        wire_set(w->wires, e->target, WIRE_SOUND, 0);
        break;
    case PULL_CABLE:
    case SPOIL_CABLE:
        if (w->cables) {
            cable_mend(w->cables, e->target);
        }
        break;
    case FULL_STORE:
        empty_store(w);
        break;
    default:
        if (hand->frozen) {
            kill(hand->frozen, SIGCONT);
        }
        break;
    }
}

void world_step(struct world *w) {
    uint64_t now_ns = clock_ns() - w->started_ns;
    struct plan_size size = {0, COORDINATORS, NODES, LANES_PER_NODE};
    char text[160];
    for (unsigned i = 0; i < w->events_count && w->events[i].at_ns <= now_ns; i++) {
        const struct chaos_event *e = &w->events[i];
        struct trouble_hand *hand = &w->hands[i];
        if (hand->active && e->end_ns <= now_ns) { /* a late step gives it a moment all the same */
            end(w, hand, e);
        } else if (!hand->begun) {
            begin(w, hand, e);
            chaos_event_text(text, sizeof text, e, &size);
            printf("%7.3f s  began: %s%s\n", (double)now_ns / 1e9, text,
                   hand->skipped ? " (skipped: nothing there)" : "");
            fflush(stdout);
        }
    }
    look_after_all(w);
}

void world_heal(struct world *w) {
    for (unsigned i = 0; i < w->events_count; i++) {
        if (w->hands[i].active) {
            end(w, &w->hands[i], &w->events[i]);
        }
    }
    w->events_count = 0;
}

/* --- Life --- */

void world_start(struct world *w) {
    const char *addresses[SUBMITTER_WIRE + 1] = {NULL}, *why = NULL;
    host_start_server(&w->host, NULL);
    w->cables = cables_open(NODES, &why);
    if (w->cables) {
        setenv("BELLOWS_PLAINTEXT", "true", 1); /* to their nodes this machine is another one */
        for (unsigned i = 0; i < NODES; i++) {
            addresses[COORDINATORS + i] = cable_address(w->cables, i);
        }
    } else {
        printf("cables   none: %s\n", why);
    }
    CHECK_OK(wires_open(&w->wires, SUBMITTER_WIRE + 1, w->host.server.port, addresses));
    for (unsigned i = 0; i < COORDINATORS; i++) {
        start_coordinator(w, i);
    }
    host_connect(&w->host);
    for (unsigned i = 0; i < NODES; i++) {
        start_node(w, i);
    }
    host_wait_for_lanes(&w->host, NODES * LANES_PER_NODE);
    w->started_ns = clock_ns();
}

void world_stop(struct world *w) {
    for (unsigned i = 0; i < NODES; i++) {
        child_signal(&w->host.nodes[i], SIGTERM);
    }
    for (unsigned i = 0; i < NODES; i++) {
        child_stop(&w->host.nodes[i], 30 * SECOND);
    }
    for (unsigned i = 0; i < COORDINATORS; i++) {
        child_stop(&w->coordinators[i], 5 * SECOND);
    }
    wires_close(&w->wires);
    cables_close(&w->cables);
}
