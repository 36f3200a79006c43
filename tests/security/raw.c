/* The protocol is lines: INFO comes first, then the connection turns to TLS, then CONNECT; PING is answered by PONG when all before
 * it has been dealt with, so what stands before the PONG is the server's answer.
 */
#include "tests/security/raw.h"

#include "node/base/clock.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MS = 5000, PATH_BYTES = 512 };

static int dial(unsigned port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    /* Else each PING waits 40 ms for the acknowledgement of what was said before it. */
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0);
    return fd;
}

static SSL_CTX *context_of(const char *dir, const char *name) {
    char path[PATH_BYTES];
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    CHECK(context);
    if (name) {
        snprintf(path, sizeof path, "%s/%s.pem", dir, name);
        CHECK_MSG(SSL_CTX_use_certificate_chain_file(context, path) == 1, "%s", path);
        snprintf(path, sizeof path, "%s/%s.key", dir, name);
        CHECK_MSG(SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) == 1, "%s", path);
    }
    return context;
}

static void say(struct raw *r, const char *text) {
    int len = (int)strlen(text);
    CHECK(SSL_write(r->tls, text, len) == len);
}

/* Appends what comes within wait_ms; false when nothing did or the connection has ended. */
static bool hear(struct raw *r, int wait_ms) {
    size_t len = strlen(r->text);
    struct pollfd ready = {.fd = r->fd, .events = POLLIN};
    CHECK(len + 1 < sizeof r->text);
    if (SSL_pending(r->tls) == 0 && poll(&ready, 1, wait_ms) <= 0) {
        return false;
    }
    int got = SSL_read(r->tls, r->text + len, (int)(sizeof r->text - 1 - len));
    r->text[len + (got > 0 ? (size_t)got : 0)] = 0;
    return got > 0;
}

static bool await_pong(struct raw *r) {
    r->text[0] = 0;
    say(r, "PING\r\n");
    while (!strstr(r->text, "PONG\r\n")) {
        if (!hear(r, ANSWER_MS)) {
            return false;
        }
    }
    return true;
}

void raw_open(struct raw *out, unsigned port, const char *dir, const char *name, bool refused) {
    char info[4096];
    memset(out, 0, sizeof *out);
    out->fd = dial(port);
    ssize_t got = read(out->fd, info, sizeof info - 1);
    CHECK(got > 0);
    info[got] = 0;
    CHECK_HAS(info, "\"tls_required\":true");
    out->context = context_of(dir, name);
    out->tls = SSL_new(out->context);
    CHECK(out->tls && SSL_set_fd(out->tls, out->fd) == 1);
    bool in = SSL_connect(out->tls) == 1;
    if (in) {
        static const char hello[] =
            "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,"
            "\"no_responders\":true,\"protocol\":1}\r\n";
        in = SSL_write(out->tls, hello, (int)strlen(hello)) > 0 &&
             SSL_write(out->tls, "PING\r\n", 6) > 0;
        while (in && !strstr(out->text, "PONG\r\n")) {
            in = hear(out, ANSWER_MS);
        }
    }
    CHECK_MSG(in != refused, "%s %s: %s", name ? name : "no certificate",
              in ? "is let in" : "is refused", out->text);
}

void raw_close(struct raw *r) {
    SSL_free(r->tls);
    SSL_CTX_free(r->context);
    if (r->fd > 0) {
        close(r->fd);
    }
    memset(r, 0, sizeof *r);
}

void raw_publish(struct raw *r, const char *subject, const char *reply, const char *body) {
    char line[4096];
    snprintf(line, sizeof line, "PUB %s %s %zu\r\n%s\r\n", subject, reply ? reply : "",
             strlen(body), body);
    say(r, line);
    CHECK_MSG(await_pong(r), "no answer after publishing to %s: %s", subject, r->text);
}

void raw_subscribe(struct raw *r, const char *subject) {
    char line[1024];
    snprintf(line, sizeof line, "SUB %s %u\r\n", subject, ++r->asked);
    say(r, line);
    CHECK_MSG(await_pong(r), "no answer after subscribing to %s: %s", subject, r->text);
}

void raw_listen(struct raw *r, int wait_ms) {
    uint64_t until = clock_ns() + (uint64_t)wait_ms * 1000000;
    for (uint64_t now; (now = clock_ns()) < until;) {
        hear(r, (int)((until - now) / 1000000) + 1);
    }
}
