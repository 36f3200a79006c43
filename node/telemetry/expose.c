/* libmicrohttpd with one polling thread. Pages are made whole when they are asked for; a scrape every few seconds costs a few tenths of
 * a millisecond.
 */
#include "node/telemetry/expose.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/base/mem.h"

enum { TIMEOUT_S = 10, URL_BYTES = 80, REQUEST_BYTES = 16 * 1024 };

struct expose {
    struct MHD_Daemon *daemon; /* owned */
    struct expose_options options;
    char url[URL_BYTES];
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* --- Address --- */

static enum err parse_port(uint16_t *out, const char *text, const char *address) {
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    REQUIRE(text[0] >= '0' && text[0] <= '9' && !*end && port <= UINT16_MAX, E_USAGE,
            "\"%.60s\" ends in no port; an address is HOST:PORT, as 127.0.0.1:9464 or [::1]:9464",
            address);
    *out = (uint16_t)port;
    return OK;
}

static enum err parse_address(union address *out, socklen_t *out_bytes, const char *address) {
    char host[64];
    const char *colon = strrchr(address, ':');
    uint16_t port;
    memset(out, 0, sizeof *out);
    REQUIRE(colon && (size_t)(colon - address) < sizeof host, E_USAGE,
            "\"%.60s\" is no address; it is HOST:PORT, as 127.0.0.1:9464 or [::1]:9464", address);
    TRY(parse_port(&port, colon + 1, address));
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    size_t len = strlen(host);
    if (host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = 0;
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(port);
        *out_bytes = sizeof out->v6;
        REQUIRE(inet_pton(AF_INET6, host + 1, &out->v6.sin6_addr) == 1, E_USAGE,
                "\"%.60s\" is no IPv6 address", host + 1);
        return OK;
    }
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(port);
    *out_bytes = sizeof out->v4;
    REQUIRE(inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1", &out->v4.sin_addr) ==
                1,
            E_USAGE, "\"%.60s\" is no IPv4 address; names are not looked up", host);
    return OK;
}

static void write_url(char url[URL_BYTES], const union address *a) {
    char host[INET6_ADDRSTRLEN] = "";
    if (a->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof host);
        snprintf(url, URL_BYTES, "http://[%s]:%u", host, ntohs(a->v6.sin6_port));
    } else {
        inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof host);
        snprintf(url, URL_BYTES, "http://%s:%u", host, ntohs(a->v4.sin_port));
    }
}

/* A socket of our own, so that the reason why it cannot listen is known. */
static enum err listen_on(int *out, union address *a, socklen_t a_bytes, const char *address) {
    int on = 1, fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    REQUIRE(fd >= 0, E_IO, "no socket for %s: %s", address, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &a->any, a_bytes) != 0 || listen(fd, EXPOSE_CLIENTS_MAX) != 0 ||
        getsockname(fd, &a->any, &a_bytes) != 0) {
        int cause = errno;
        close(fd);
        FAIL(E_IO, "metrics cannot be served on %s: %s; the option is --metrics", address,
             strerror(cause));
    }
    *out = fd;
    return OK;
}

/* --- Requests --- */

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status, const char *type,
                               struct bytes page) {
    struct MHD_Response *response = MHD_create_response_from_buffer(
        page.len, (void *)(uintptr_t)page.ptr, MHD_RESPMEM_MUST_COPY);
    if (!response) {
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result respond_line(struct MHD_Connection *connection, unsigned status,
                                    const char *line) {
    char page[EXPOSE_REASON_BYTES + 2];
    int len = snprintf(page, sizeof page, "%s\n", line);
    return respond(connection, status, "text/plain; charset=utf-8", bytes_of(page, (size_t)len));
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **request) {
    static int seen;
    struct expose *e = ctx;
    (void)version, (void)upload;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        return respond_line(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET");
    }
    if (!*request) { /* headers only so far; the answer comes with the next call */
        *request = &seen;
        return MHD_YES;
    }
    *upload_bytes = 0;
    if (!strcmp(path, "/metrics")) {
        AUTO(text_free) struct text page = {0};
        e->options.metrics(e->options.ctx, &page);
        return text_done(&page) == OK
                   ? respond(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
                             text_bytes(&page))
                   : respond_line(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
    }
    if (!strcmp(path, "/healthz")) {
        return respond_line(connection, MHD_HTTP_OK, "ok");
    }
    if (!strcmp(path, "/readyz")) {
        char reason[EXPOSE_REASON_BYTES] = "";
        bool ready = e->options.ready(e->options.ctx, reason);
        return respond_line(connection, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                            ready ? "ready" : reason);
    }
    return respond_line(connection, MHD_HTTP_NOT_FOUND, "there are /metrics, /healthz and /readyz");
}

/* --- Life --- */

enum err expose_open(struct expose **out, const struct expose_options *options) {
    AUTO(expose_close) struct expose *e = NULL;
    union address address;
    socklen_t address_bytes;
    int fd;
    TRY(parse_address(&address, &address_bytes, options->address));
    TRY(mem_new(&e, 1, sizeof *e));
    e->options = *options;
    e->options.address = NULL; /* the caller's */
    TRY(listen_on(&fd, &address, address_bytes, options->address));
    write_url(e->url, &address);
    e->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, e,
                                 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                                 (unsigned)EXPOSE_CLIENTS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
                                 (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)REQUEST_BYTES, MHD_OPTION_END);
    if (!e->daemon) {
        close(fd);
        FAIL(E_IO, "metrics cannot be served on %s: the HTTP library does not start", e->url);
    }
    *out = TAKE(e);
    return OK;
}

void expose_close(struct expose **e) {
    if (*e) {
        if ((*e)->daemon) {
            MHD_stop_daemon((*e)->daemon);
        }
        mem_free_ptr(e);
    }
}

const char *expose_url(const struct expose *e) {
    return e->url;
}
