/* libmicrohttpd with one polling thread, over a table of files that lie in memory.
 *
 * The port is taken before the NATS server starts, since that server is told whose pages it lets in; the address of the server is told
 * afterwards, when it is known. Answers are made once, at dashboard_serve, and only referred to by requests.
 *
 * What a page may do is said in its header as narrowly as it can be: nothing but these files and that one server.
 */
#include "node/cli/dashboard.h"

#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TIMEOUT_S = 20,
    REQUEST_BYTES = 16 * 1024,
    FILES_COUNT = 4,
    CONFIG = FILES_COUNT,
    ANSWERS_COUNT
};

static const struct served {
    const char *path, *file, *type;
} table[ANSWERS_COUNT] = {
    {"/", "index.html", "text/html; charset=utf-8"},
    {"/app.js", "app.js", "text/javascript; charset=utf-8"},
    {"/app.css", "app.css", "text/css; charset=utf-8"},
    {"/icon.svg", "icon.svg", "image/svg+xml"},
    {"/config.json", NULL, "application/json"},
};

struct dashboard {
    int socket; /* owned until the daemon takes it; -1: none */
    unsigned port;
    struct bytes_mut files[FILES_COUNT];         /* owned */
    struct text config;                          /* owned */
    struct MHD_Response *answers[ANSWERS_COUNT]; /* owned; refer to files and config */
    struct MHD_Response *absent;                 /* owned */
    struct MHD_Daemon *daemon;                   /* owned */
};

/* --- The folder --- */

static bool has_page(char *out, size_t out_bytes, const char *program_dir, const char *tail) {
    char index[PATH_MAX + 64];
    int len = snprintf(out, out_bytes, "%s/%s", program_dir, tail);
    snprintf(index, sizeof index, "%s/index.html", out);
    return len > 0 && (size_t)len < out_bytes && file_exists(index);
}

bool dashboard_find(char *out, size_t out_bytes) {
    char program[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    if (len <= 0) {
        return false;
    }
    program[len] = 0;
    char *slash = strrchr(program, '/');
    *slash = 0;
    return has_page(out, out_bytes, program, "deploy/dashboard") ||
           has_page(out, out_bytes, program, "../share/bellows/dashboard");
}

/* --- Requests --- */

static bool is_loopback(const struct dashboard *d, const char *host) {
    char numeric[32], name[32];
    snprintf(numeric, sizeof numeric, "127.0.0.1:%u", d->port);
    snprintf(name, sizeof name, "localhost:%u", d->port);
    return host && (!strcasecmp(host, numeric) || !strcasecmp(host, name));
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **request) {
    static int seen;
    const struct dashboard *d = ctx;
    (void)version, (void)upload;
    if (!*request) { /* headers only so far; the answer comes with the next call */
        *request = &seen;
        return MHD_YES;
    }
    *upload_bytes = 0;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        return MHD_queue_response(connection, MHD_HTTP_METHOD_NOT_ALLOWED, d->absent);
    }
    if (!is_loopback(d, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"))) {
        return MHD_queue_response(connection, MHD_HTTP_FORBIDDEN, d->absent);
    }
    for (size_t i = 0; i < ANSWERS_COUNT; i++) {
        if (!strcmp(path, table[i].path)) {
            return MHD_queue_response(connection, MHD_HTTP_OK, d->answers[i]);
        }
    }
    return MHD_queue_response(connection, MHD_HTTP_NOT_FOUND, d->absent);
}

static FALLIBLE make_answer(struct MHD_Response **out, struct bytes body, const char *type,
                            const char *policy) {
    const char *const headers[][2] = {{"Content-Type", type},
                                      {"Cache-Control", "no-store"},
                                      {"Content-Security-Policy", policy},
                                      {"X-Content-Type-Options", "nosniff"},
                                      {"Referrer-Policy", "no-referrer"},
                                      {"Cross-Origin-Resource-Policy", "same-origin"}};
    *out = MHD_create_response_from_buffer(body.len, (void *)(uintptr_t)body.ptr,
                                           MHD_RESPMEM_PERSISTENT);
    REQUIRE(*out, E_LIMIT, "out of memory for the dashboard's answers");
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        REQUIRE(MHD_add_response_header(*out, headers[i][0], headers[i][1]) == MHD_YES, E_LIMIT,
                "out of memory for the dashboard's answers");
    }
    return OK;
}

/* --- Life --- */

static FALLIBLE take_port(struct dashboard *d) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t a_bytes = sizeof a;
    d->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    REQUIRE(d->socket >= 0, E_IO, "no socket for the dashboard: %s", strerror(errno));
    REQUIRE(bind(d->socket, (struct sockaddr *)&a, sizeof a) == 0 &&
                listen(d->socket, DASHBOARD_CLIENTS_MAX) == 0 &&
                getsockname(d->socket, (struct sockaddr *)&a, &a_bytes) == 0,
            E_IO, "no port of 127.0.0.1 for the dashboard: %s", strerror(errno));
    d->port = ntohs(a.sin_port);
    return OK;
}

enum err dashboard_open(struct dashboard **out, const char *folder) {
    AUTO(dashboard_close) struct dashboard *d = NULL;
    char path[PATH_MAX + 64];
    TRY(mem_new(&d, 1, sizeof *d));
    d->socket = -1;
    for (size_t i = 0; i < FILES_COUNT; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, table[i].file);
        TRY(file_read_all(&d->files[i], path, DASHBOARD_FILE_BYTES_MAX));
    }
    TRY(take_port(d));
    *out = TAKE(d);
    return OK;
}

enum err dashboard_serve(struct dashboard *d, const char *server) {
    char policy[400];
    ASSERT(!d->daemon);
    text_addf(&d->config, "{\"server\": \"%s\", \"prefix\": \"bellows\"}\n", server);
    TRY(text_done(&d->config));
    snprintf(policy, sizeof policy,
             "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
             "connect-src 'self' %s; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             server);
    for (size_t i = 0; i < ANSWERS_COUNT; i++) {
        struct bytes body =
            i == CONFIG ? text_bytes(&d->config) : bytes_of(d->files[i].ptr, d->files[i].len);
        TRY(make_answer(&d->answers[i], body, table[i].type, policy));
    }
    static const char absent[] = "there is only the dashboard, at /\n";
    TRY(make_answer(&d->absent, bytes_of(absent, sizeof absent - 1), "text/plain", policy));
    d->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, d,
                                 MHD_OPTION_LISTEN_SOCKET, d->socket, MHD_OPTION_CONNECTION_LIMIT,
                                 (unsigned)DASHBOARD_CLIENTS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
                                 (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)REQUEST_BYTES, MHD_OPTION_END);
    REQUIRE(d->daemon, E_IO, "the dashboard cannot be served: the HTTP library does not start");
    d->socket = -1;
    return OK;
}

void dashboard_close(struct dashboard **pointer) {
    struct dashboard *d = *pointer;
    if (!d) {
        return;
    }
    if (d->daemon) {
        MHD_stop_daemon(d->daemon);
    }
    if (d->socket >= 0) {
        close(d->socket);
    }
    for (size_t i = 0; i < ANSWERS_COUNT; i++) {
        if (d->answers[i]) {
            MHD_destroy_response(d->answers[i]);
        }
    }
    if (d->absent) {
        MHD_destroy_response(d->absent);
    }
    for (size_t i = 0; i < FILES_COUNT; i++) {
        mem_free(d->files[i].ptr);
    }
    text_free(&d->config);
    mem_free_ptr(pointer);
}

unsigned dashboard_port(const struct dashboard *d) {
    return d->port;
}
