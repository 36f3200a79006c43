/* Processes are started through node/daemon/child.h, so they die with the test; logs lie in the host's folder until the end. */
#include "tests/e2e/host.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/job/event.h"
#include "node/transport/fleet.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

#define SECOND UINT64_C(1000000000)
enum { WORDS_MAX = 40, PATH_BYTES = 640 };

static const char *program_path = "bellows";

void host_use_program(const char *path) {
    program_path = path;
}

const char *host_program(void) {
    static _Thread_local char path[512];
    const char *build = getenv("BELLOWS_BUILD");
    snprintf(path, sizeof path, "%s/%s", build ? build : "build", program_path);
    return path;
}

/* Lock files and notes stay in the host's folder too. */
static const char *runtime_variable(const struct host *h) {
    static char variable[PATH_BYTES];
    snprintf(variable, sizeof variable, "XDG_RUNTIME_DIR=%s", h->dir);
    return variable;
}

static void start(struct child *out, struct host *h, const char *log, const char *const *words) {
    const char *argv[WORDS_MAX + 6] = {"ip", "netns", "exec", h->netns};
    char server[300], path[PATH_BYTES];
    size_t count = h->netns[0] ? 4 : 0;
    argv[count++] = host_program();
    snprintf(server, sizeof server, "--server=%s", h->url[0] ? h->url : h->server.url);
    for (size_t i = 0; words[i]; i++) {
        CHECK(count < WORDS_MAX);
        argv[count++] = words[i];
    }
    argv[count++] = server;
    argv[count] = NULL;
    snprintf(path, sizeof path, "%s/%s", h->dir, log);
    CHECK_OK(child_start(out, &(struct child_options){
                                  .argv = argv, .log_path = path, .env = {runtime_variable(h)}}));
}

void host_start_coordinator(struct host *h) {
    static const char *const words[] = {"coordinator", NULL};
    start(&h->coordinator, h, "coordinator.log", words);
}

void host_kill_coordinator(struct host *h) {
    child_signal(&h->coordinator, SIGKILL);
    child_stop(&h->coordinator, SECOND);
}

void host_start_node(struct host *h, unsigned idx, unsigned lanes_count, const char *option) {
    char name[32], lanes[32], cache[PATH_BYTES], log[32];
    snprintf(name, sizeof name, "--name=w%u", idx);
    snprintf(lanes, sizeof lanes, "--lanes=%u", lanes_count);
    snprintf(cache, sizeof cache, "--cache=%s/cache%u", h->dir, idx);
    snprintf(log, sizeof log, "node%u.log", idx);
    const char *words[] = {
        "node", name, lanes, cache, "--backend=cpu", "--threads=1", "--allow-insecure-keys",
        option, NULL};
    start(&h->nodes[idx], h, log, words);
}

void host_start_cuda_node(struct host *h, unsigned idx) {
    char name[32], cache[PATH_BYTES], log[32];
    snprintf(name, sizeof name, "--name=w%u", idx);
    snprintf(cache, sizeof cache, "--cache=%s/cache%u", h->dir, idx);
    snprintf(log, sizeof log, "node%u.log", idx);
    const char *words[] = {"node", name, cache, "--backend=cuda", "--allow-insecure-keys", NULL};
    start(&h->nodes[idx], h, log, words);
}

int host_drain_node(struct host *h, unsigned idx) {
    struct child_end end = {.exit_code = -2};
    bool ended = false;
    child_signal(&h->nodes[idx], SIGTERM);
    for (int n = 0; n < 3000 && !ended; n++) {
        child_poll(&ended, &end, &h->nodes[idx]);
        clock_sleep_ns(SECOND / 100);
    }
    CHECK_MSG(ended, "node w%u still runs 30 s after SIGTERM", idx);
    return end.exit_code;
}

/* The last thing that the coordinator makes. */
static bool streams_are_there(void *ctx) {
    struct host *h = ctx;
    struct consumer_info info;
    struct subject stream = stream_name(&h->user.space, "JOBS");
    struct subject consumer = consumer_of_priority(JOB_PRIORITY_COUNT - 1);
    bool found = false;
    return consumer_info(&info, &found, h->user.link, stream.text, consumer.text) == OK && found;
}

void host_connect(struct host *h) {
    struct transport_options options = {.url = h->server.url, .open_wait_ns = 10 * SECOND};
    CHECK_OK(subject_space_init(&h->user.space, NULL));
    CHECK_OK(transport_open(&h->user.link, &options));
    wait_until(streams_are_there, h, "the coordinator has made the streams");
}

void host_start_server(struct host *h, const struct check_server_options *options) {
    char *dir = NULL;
    *h = (struct host){0};
    if (access(host_program(), X_OK) != 0) {
        check_skip("%s is not built", host_program());
    }
    check_server_start(&h->server, options);
    CHECK_OK(dir_make_temp(&dir, "bellows-e2e"));
    snprintf(h->dir, sizeof h->dir, "%s", dir);
    mem_free(dir);
}

void host_start(struct host *h) {
    host_start_server(h, NULL);
    host_start_coordinator(h);
    host_connect(h);
}

/* By SIGTERM, like a unit is stopped: it says so and ends with 0. */
void host_stop_coordinator(struct host *h) {
    bool ended = h->coordinator.pid == 0;
    struct child_end end = {0};
    child_signal(&h->coordinator, SIGTERM);
    for (unsigned i = 0; i < 500 && !ended; i++) {
        child_poll(&ended, &end, &h->coordinator);
        clock_sleep_ns(ended ? 0 : SECOND / 100);
    }
    CHECK_MSG(ended && end.exit_code == 0, "the coordinator ends with %d, signal %d", end.exit_code,
              end.signal);
}

/* A lane that breaks is started again, and its work is done elsewhere: no claim would notice. Its log tells. */
static void check_log(const struct host *h, const char *name) {
    static const char *const marks[] = {"assertion failed", "Sanitizer", "runtime error:"};
    struct file_map map;
    char path[PATH_BYTES], found[600] = "";
    snprintf(path, sizeof path, "%s/%s", h->dir, name);
    enum err code = file_map_open(&map, path);
    if (code == E_FORMAT) { /* empty */
        return;
    }
    CHECK_OK(code);
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        const uint8_t *at = memmem(map.bytes.ptr, map.bytes.len, marks[i], strlen(marks[i]));
        if (at) {
            size_t left = map.bytes.len - (size_t)(at - map.bytes.ptr);
            snprintf(found, sizeof found, "%.*s", (int)(left < sizeof found ? left : sizeof found),
                     (const char *)at);
        }
    }
    file_map_close(&map);
    CHECK_MSG(!found[0], "%s: %s", path, found);
}

static void check_logs(const struct host *h) {
    DIR *dir = opendir(h->dir);
    CHECK_MSG(dir, "no folder %s", h->dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        const char *tail = strrchr(e->d_name, '.');
        if (tail && (!strcmp(tail, ".log") || !strcmp(tail, ".out"))) {
            check_log(h, e->d_name);
        }
    }
    closedir(dir);
}

void host_stop(struct host *h) {
    transport_close(&h->user.link);
    for (unsigned i = 0; i < HOST_NODES_MAX; i++) {
        child_stop(&h->nodes[i], 30 * SECOND);
    }
    host_stop_coordinator(h);
    check_server_stop(&h->server);
    check_logs(h);
    CHECK_OK(dir_remove_tree(h->dir));
}

/* --- What the fleet says of itself --- */

struct lane_look {
    const char *node;
    uint32_t gpu;
    pid_t pid;
    unsigned ready;
};

static enum err look_at_lane(void *ctx, const struct kv_entry *entry) {
    struct lane_look *look = ctx;
    Bellows__V1__LaneInfo *info = NULL;
    TRY(message_unpack(&info, &bellows__v1__lane_info__descriptor, entry->value, MESSAGE_BYTES_MAX,
                       "lane"));
    look->ready += info->state == BELLOWS__V1__LANE_STATE__LANE_READY;
    if (look->node && !strcmp(info->node, look->node) && info->gpu == look->gpu) {
        look->pid = (pid_t)info->pid;
    }
    message_free(&info);
    return OK;
}

void host_wait_for_lanes(struct host *h, unsigned lanes_count) {
    struct subject bucket = kv_bucket_name(&h->user.space, "lanes");
    for (int n = 0; n < 1500; n++) {
        struct lane_look look = {0};
        CHECK_OK(kv_list(h->user.link, bucket.text, ">", look_at_lane, &look));
        if (look.ready >= lanes_count) {
            return;
        }
        clock_sleep_ns(SECOND / 50);
    }
    CHECK_MSG(false, "%u lanes are not ready after 30 s; logs in %s", lanes_count, h->dir);
}

pid_t host_lane_pid(struct host *h, unsigned node_idx, unsigned gpu) {
    char node[16];
    snprintf(node, sizeof node, "w%u", node_idx);
    struct lane_look look = {.node = node, .gpu = gpu};
    struct subject bucket = kv_bucket_name(&h->user.space, "lanes");
    CHECK_OK(kv_list(h->user.link, bucket.text, ">", look_at_lane, &look));
    CHECK(look.pid > 0);
    return look.pid;
}

/* Is this still a process of ours, or has the number gone to somebody else's? */
static bool is_ours(const struct host *h, pid_t pid) {
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
    size_t len = check_file(line, sizeof line, path);
    return len > 0 && memmem(line, len, h->dir, strlen(h->dir)) != NULL;
}

void host_signal_lane(struct host *h, unsigned node_idx, unsigned gpu, int number) {
    pid_t pid = host_lane_pid(h, node_idx, gpu);
    if (is_ours(h, pid)) {
        kill(pid, number);
    }
}

void host_kill_lane(struct host *h, unsigned node_idx, unsigned gpu) {
    host_signal_lane(h, node_idx, gpu, SIGKILL);
}

uint64_t host_stream_count(struct host *h, const char *tail) {
    struct stream_info info;
    struct subject name = stream_name(&h->user.space, tail);
    CHECK_OK(stream_info(&info, h->user.link, name.text));
    return info.messages_count;
}

/* --- Commands --- */

void host_run(struct ran *out, struct host *h, const char *format, ...) {
    char line[4096], words[WORDS_MAX][PATH_BYTES], log[PATH_BYTES], server[300];
    const char *argv[WORDS_MAX + 2] = {host_program()};
    size_t count = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *rest = line, *word; (word = strsep(&rest, " ")) != NULL && count < WORDS_MAX;
         count++) {
        snprintf(words[count], PATH_BYTES, "%s%s", word[0] == '%' ? h->dir : "",
                 word[0] == '@'   ? check_vectors(word + 1)
                 : word[0] == '%' ? word + 1
                                  : word);
        argv[count + 1] = words[count];
    }
    argv[count + 1] = NULL;
    snprintf(log, sizeof log, "%s/command%u.out", h->dir, h->commands++);
    snprintf(server, sizeof server, "BELLOWS_SERVER=%s", h->server.url);
    const struct child_options options = {
        .argv = argv, .log_path = log, .env = {server, runtime_variable(h)}};
    check_run(out, &options, 30);
}

unsigned processes_with(const char *text) {
    unsigned found = 0;
    char own[24];
    snprintf(own, sizeof own, "%ld", (long)getpid());
    DIR *proc = opendir("/proc");
    CHECK(proc);
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        char path[300], line[4096];
        if (!isdigit((unsigned char)e->d_name[0]) || !strcmp(e->d_name, own)) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        size_t len = check_file(line, sizeof line, path);
        found += len > 0 && memmem(line, len, text, strlen(text)) != NULL;
    }
    closedir(proc);
    return found;
}
