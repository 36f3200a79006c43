/* The pages over a real socket on loopback: what is there, what is not, who may not listen, and clients that misbehave. */
#include "node/telemetry/expose.h"
#include "tests/check/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_bool is_ready;

static void metrics(void *ctx, struct text *out) {
    text_addf(out, "answer %d\n", *(const int *)ctx);
}

static bool ready(void *ctx, char reason[EXPOSE_REASON_BYTES]) {
    (void)ctx;
    snprintf(reason, EXPOSE_REASON_BYTES, "no lane is ready");
    return atomic_load(&is_ready);
}

static struct expose *open_on(const char *address) {
    static const int answer = 42;
    struct expose *e = NULL;
    struct expose_options o = {
        .address = address, .metrics = metrics, .ready = ready, .ctx = (void *)(uintptr_t)&answer};
    CHECK_OK(expose_open(&e, &o));
    return e;
}

static int dial(const struct expose *e) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)strtoul(strrchr(expose_url(e), ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(0, connect(fd, (struct sockaddr *)&to, sizeof to));
    return fd;
}

static const char *ask(const struct expose *e, const char *request) {
    static char answer[8192];
    int fd = dial(e);
    size_t at = 0;
    CHECK_EQ(strlen(request), send(fd, request, strlen(request), MSG_NOSIGNAL));
    for (ssize_t got; (got = recv(fd, answer + at, sizeof answer - 1 - at, 0)) > 0;) {
        at += (size_t)got;
    }
    answer[at] = 0;
    close(fd);
    return answer;
}

static const char *get(const struct expose *e, const char *path) {
    char request[200];
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
             path);
    return ask(e, request);
}

static void claim_pages(void) {
    AUTO(expose_close) struct expose *e = open_on("127.0.0.1:0");
    const char *page = get(e, "/metrics");
    CHECK_HAS(page, "200 OK");
    CHECK_HAS(page, "text/plain; version=0.0.4");
    CHECK_HAS(page, "\r\n\r\nanswer 42\n");
    CHECK_HAS(get(e, "/healthz"), "200 OK");
    atomic_store(&is_ready, false);
    page = get(e, "/readyz");
    CHECK_HAS(page, "503");
    CHECK_HAS(page, "no lane is ready\n");
    atomic_store(&is_ready, true);
    CHECK_HAS(get(e, "/readyz"), "200 OK");
    CHECK_HAS(get(e, "/"), "404");
    CHECK_HAS(
        ask(e,
            "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        "405");
}

static void claim_clients(void) {
    AUTO(expose_close) struct expose *e = open_on("127.0.0.1:0");
    int silent[EXPOSE_CLIENTS_MAX - 1];
    for (size_t i = 0; i < COUNT_OF(silent); i++) {
        silent[i] = dial(e);
    }
    CHECK_HAS(get(e, "/healthz"), "200 OK");
    for (size_t i = 0; i < COUNT_OF(silent); i++) {
        close(silent[i]);
    }
    CHECK_HAS(ask(e, "nonsense\r\n\r\n"), "");
    CHECK_HAS(get(e, "/healthz"), "200 OK");
}

static void claim_address_taken(void) {
    AUTO(expose_close) struct expose *first = open_on("127.0.0.1:0");
    struct expose *second = NULL;
    struct expose_options o = {
        .address = expose_url(first) + strlen("http://"), .metrics = metrics, .ready = ready};
    CHECK_ERR(E_IO, expose_open(&second, &o));
    CHECK_HAS(err_detail(), "already in use");
    CHECK(!second);
}

static void claim_bad_addresses(void) {
    static const char *const bad[] = {
        "",        "127.0.0.1",     "127.0.0.1:", "127.0.0.1:70000", "host:80",
        "[::1:80", "127.0.0.1:80x", ":80",        "127.0.0.1:-1",    "[]:1"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct expose *e = NULL;
        struct expose_options o = {.address = bad[i], .metrics = metrics, .ready = ready};
        CHECK_ERR(E_USAGE, expose_open(&e, &o));
    }
}

static enum err open_and_close(void *ctx) {
    (void)ctx;
    AUTO(expose_close) struct expose *e = NULL;
    struct expose_options o = {.address = "127.0.0.1:0", .metrics = metrics, .ready = ready};
    return expose_open(&e, &o);
}
static void claim_allocations(void) {
    CHECK_EQ(1, check_allocations(open_and_close, NULL));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"metrics, health and readiness have pages, others have not", claim_pages},
        {"silent and senseless clients keep nobody waiting", claim_clients},
        {"an address in use is refused by name", claim_address_taken},
        {"what is no address is refused", claim_bad_addresses},
        {"without memory there is no server and no leak", claim_allocations},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
