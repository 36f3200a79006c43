/* The shipped deploy/nats/fleet.conf is used as it is, but for its relative paths. */
#include "tests/security/site.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

#define SECOND UINT64_C(1000000000)
enum { WORDS_MAX = 90, CONFIG_BYTES = 16384 };

static const char *const holder_names[SITE_HOLDERS_COUNT] = {
    "submitter.acme.ada", "submitter.other.bob", "worker.w0",      "worker.w1",
    "coordinator.c1",     "operator.op",         "dashboard.wall",
};

static const char *program(void) {
    static char path[SITE_PATH_BYTES];
    const char *build = getenv("BELLOWS_BUILD");
    snprintf(path, sizeof path, "%s/bellows", build ? build : "build");
    return path;
}

static const char *runtime_variable(const struct site *s) {
    static char variable[SITE_PATH_BYTES];
    snprintf(variable, sizeof variable, "XDG_RUNTIME_DIR=%s", s->dir);
    return variable;
}

/* --- Certificates and server --- */

static void run_ok(struct site *s, const char *words) {
    struct ran ran;
    site_run(&ran, s, NULL, "%s", words);
    CHECK_MSG(ran.exit_code == 0, "bellows %s: %s", words, ran.out);
}

static void make_certificates(struct site *s) {
    char words[200];
    run_ok(s, "certs ca %certs");
    run_ok(s, "certs server %certs localhost 127.0.0.1");
    for (size_t i = 0; i < SITE_HOLDERS_COUNT; i++) {
        snprintf(words, sizeof words, "certs issue %%certs %s", holder_names[i]);
        run_ok(s, words);
        CHECK_OK(role_holder_parse(&s->holders[i], holder_names[i]));
    }
    run_ok(s, "certs accounts %certs --lanes 2");
    run_ok(s, "certs issue %certs worker.late");
    s->fleet = (struct role_fleet){
        .holders = s->holders, .holders_count = SITE_HOLDERS_COUNT, .lanes_count = 2};
    CHECK_OK(subject_space_init(&s->fleet.space, NULL));
}

/* "certs/…" becomes the folder's own path; from the server's folder beside it where a file is included, as an included file's path
 * is always relative. */
static void read_config(char out[CONFIG_BYTES], const struct site *s) {
    char path[SITE_PATH_BYTES];
    struct bytes_mut text;
    const char *root = getenv("BELLOWS_ROOT");
    AUTO(text_free) struct text config = {0};
    snprintf(path, sizeof path, "%s/deploy/nats/fleet.conf", root ? root : ".");
    CHECK_OK(file_read_all(&text, path, CONFIG_BYTES / 2));
    for (size_t at = 0; at < text.len;) {
        const char *here = (const char *)text.ptr + at;
        if (text.len - at > 15 && !memcmp(here, "include \"certs/", 15)) {
            text_addf(&config, "include \"..%s/", strrchr(s->dir, '/'));
            at += 9;
        } else if (text.len - at > 7 && !memcmp(here, "\"certs/", 7)) {
            text_addf(&config, "\"%s/", s->certs);
            at += 7;
        } else {
            text_addf(&config, "%c", *here);
            at++;
        }
    }
    mem_free(text.ptr);
    CHECK(text_done(&config) == OK && config.len < CONFIG_BYTES);
    snprintf(out, CONFIG_BYTES, "%s", config.ptr);
}

/* Ports that nobody listens on now. */
static void find_ports(unsigned ports[SITE_SERVERS_MAX]) {
    int fds[SITE_SERVERS_MAX];
    for (size_t i = 0; i < SITE_SERVERS_MAX; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof at;
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(fds[i] >= 0 && bind(fds[i], (struct sockaddr *)&at, sizeof at) == 0 &&
              getsockname(fds[i], (struct sockaddr *)&at, &len) == 0);
        ports[i] = ntohs(at.sin_port);
    }
    for (size_t i = 0; i < SITE_SERVERS_MAX; i++) {
        close(fds[i]);
    }
}

static void start_servers(struct site *s) {
    char fleet[CONFIG_BYTES], config[2 * CONFIG_BYTES];
    unsigned ports[SITE_SERVERS_MAX];
    read_config(fleet, s);
    if (!s->clustered) {
        check_server_start(&s->server, &(struct check_server_options){.config = fleet});
        snprintf(s->url, sizeof s->url, "tls://localhost:%u", s->server.port);
        return;
    }
    find_ports(ports);
    struct check_server *servers[SITE_SERVERS_MAX] = {&s->server, &s->others[0], &s->others[1]};
    for (size_t i = 0; i < SITE_SERVERS_MAX; i++) {
        snprintf(config, sizeof config,
                 "%s\nserver_name: \"n%zu\"\ncluster {\n  name: \"bellows\"\n"
                 "  listen: \"127.0.0.1:%u\"\n  routes: [\"tls://127.0.0.1:%u\", "
                 "\"tls://127.0.0.1:%u\", \"tls://127.0.0.1:%u\"]\n  tls {\n"
                 "    cert_file: \"%s/server.pem\"\n    key_file: \"%s/server.key\"\n"
                 "    ca_file: \"%s/ca.pem\"\n    verify: true\n  }\n}\n",
                 fleet, i, ports[i], ports[0], ports[1], ports[2], s->certs, s->certs, s->certs);
        check_server_start(servers[i], &(struct check_server_options){.config = config});
    }
    snprintf(s->url, sizeof s->url, "tls://localhost:%u,tls://localhost:%u,tls://localhost:%u",
             s->server.port, s->others[0].port, s->others[1].port);
}

static void start_site(struct site *s, bool clustered) {
    char *dir = NULL;
    *s = (struct site){.clustered = clustered};
    if (access(program(), X_OK) != 0) {
        check_skip("%s is not built", program());
    }
    CHECK_OK(dir_make_temp(&dir, "bellows-site"));
    snprintf(s->dir, sizeof s->dir, "%s", dir);
    snprintf(s->certs, sizeof s->certs, "%s/certs", dir);
    mem_free(dir);
    make_certificates(s);
    start_servers(s);
}

void site_start(struct site *s) {
    start_site(s, false);
}

void site_start_cluster(struct site *s) {
    start_site(s, true);
}

void site_stop(struct site *s) {
    child_stop(&s->node, 30 * SECOND);
    child_stop(&s->coordinator, 5 * SECOND);
    check_server_stop(&s->server);
    for (size_t i = 0; i < COUNT_OF(s->others); i++) {
        check_server_stop(&s->others[i]);
    }
    CHECK_OK(dir_remove_tree(s->dir));
}

void site_weaken(struct site *s) {
    char path[SITE_PATH_BYTES];
    struct bytes_mut text;
    snprintf(path, sizeof path, "%s/accounts.conf", s->certs);
    CHECK_OK(file_read_all(&text, path, 1 << 20));
    char *right = memmem(text.ptr, text.len, "\"bellows.hb.*.*\"", 16);
    CHECK(right);
    memcpy(right, "\"bellows.no.*.*\"", 16);
    CHECK_OK(file_write_all(path, bytes_of(text.ptr, text.len)));
    mem_free(text.ptr);
    CHECK_EQ(0, kill(s->server.pid, SIGHUP));
    clock_sleep_ns(SECOND); /* until it is read again */
}

/* --- Connections and processes --- */

struct transport *site_connect(const struct site *s, const char *holder) {
    char ca[SITE_PATH_BYTES], cert[SITE_PATH_BYTES], key[SITE_PATH_BYTES];
    struct transport *t = NULL;
    snprintf(ca, sizeof ca, "%s/ca.pem", s->certs);
    snprintf(cert, sizeof cert, "%s/%s.pem", s->certs, holder);
    snprintf(key, sizeof key, "%s/%s.key", s->certs, holder);
    CHECK_OK(transport_open(&t, &(struct transport_options){
                                    .url = s->url,
                                    .request_wait_ns = 2 * SECOND,
                                    .tls = {.ca_file = ca, .cert_file = cert, .key_file = key}}));
    return t;
}

struct words {
    char texts[WORDS_MAX][SITE_PATH_BYTES];
    const char *argv[WORDS_MAX + 1];
    size_t count;
};

static void add_word(struct words *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_word(struct words *w, const char *format, ...) {
    va_list args;
    CHECK(w->count < WORDS_MAX);
    va_start(args, format);
    vsnprintf(w->texts[w->count], sizeof w->texts[0], format, args);
    va_end(args);
    w->argv[w->count] = w->texts[w->count];
    w->argv[++w->count] = NULL;
}

static void add_holder(struct words *w, const struct site *s, const char *holder) {
    add_word(w, "--server=%s", s->url);
    add_word(w, "--tls-ca=%s/ca.pem", s->certs);
    add_word(w, "--tls-cert=%s/%s.pem", s->certs, holder);
    add_word(w, "--tls-key=%s/%s.key", s->certs, holder);
}

static void start(struct child *out, struct site *s, const struct words *w, const char *log) {
    char path[SITE_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", s->dir, log);
    CHECK_OK(child_start(
        out,
        &(struct child_options){.argv = w->argv, .log_path = path, .env = {runtime_variable(s)}}));
}

static enum err look_ready(void *ctx, const struct kv_entry *entry) {
    Bellows__V1__LaneInfo *info = NULL;
    TRY(message_unpack(&info, &bellows__v1__lane_info__descriptor, entry->value, MESSAGE_BYTES_MAX,
                       "lane"));
    *(bool *)ctx |= info->state == BELLOWS__V1__LANE_STATE__LANE_READY;
    message_free(&info);
    return OK;
}

void site_start_fleet(struct site *s) {
    struct words coordinator = {0}, node = {0};
    struct subject bucket = kv_bucket_name(&s->fleet.space, "lanes");
    bool ready = false;
    add_word(&coordinator, "%s", program());
    add_word(&coordinator, "coordinator");
    add_word(&coordinator, "--log-level=debug");
    add_word(&coordinator, "--replicas=%d", s->clustered ? SITE_SERVERS_MAX : 1);
    add_holder(&coordinator, s, "coordinator.c1");
    start(&s->coordinator, s, &coordinator, "coordinator.log");
    add_word(&node, "%s", program());
    add_word(&node, "node");
    add_word(&node, "--name=w0");
    add_word(&node, "--backend=cpu");
    add_word(&node, "--threads=1");
    add_word(&node, "--allow-insecure-keys");
    add_word(&node, "--cache=%s/cache", s->dir);
    add_word(&node, "--log-level=debug");
    add_holder(&node, s, "worker.w0");
    start(&s->node, s, &node, "node.log");
    struct transport *op = site_connect(s, "operator.op");
    for (int n = 0; n < 3000 && !ready; n++) {
        IGNORE(kv_list(op, bucket.text, ">", look_ready, &ready));
        clock_sleep_ns(SECOND / 50);
    }
    CHECK_MSG(ready, "the lane is not ready after 60 s; logs in %s", s->dir);
    transport_close(&op);
    struct ran ran;
    site_run(&ran, s, "operator.op", "tenant acme --quota 16MiB");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    site_run(&ran, s, "operator.op", "tenant other --quota 64MiB --json");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
}

void site_run(struct ran *out, struct site *s, const char *holder, const char *format, ...) {
    char line[4096], log[SITE_PATH_BYTES];
    struct words w = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    add_word(&w, "%s", program());
    for (char *rest = line, *word; (word = strsep(&rest, " ")) != NULL;) {
        if (word[0] == '%') {
            add_word(&w, "%s/%s", s->dir, word + 1);
        } else {
            add_word(&w, "%s", word[0] == '@' ? check_vectors(word + 1) : word);
        }
    }
    if (holder) {
        add_holder(&w, s, holder);
    }
    snprintf(log, sizeof log, "%s/command%u.out", s->dir, s->commands++);
    const struct child_options options = {
        .argv = w.argv, .log_path = log, .env = {runtime_variable(s)}};
    check_run(out, &options, 120);
}
