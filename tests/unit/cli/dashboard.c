/* The dashboard's little web server: what it serves, and above all what it does not. */
#include "node/cli/dashboard.h"

#include "node/base/file.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVER "ws://127.0.0.1:4999"

static struct dashboard *dashboard;
static char *folder;

static void write_page(const char *name, const char *content) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_OK(file_write_all(path, bytes_of(content, strlen(content))));
}

static void begin(void) {
    CHECK_OK(dir_make_temp(&folder, "bellows-dashboard"));
    write_page("index.html", "<p>index");
    write_page("app.js", "script");
    write_page("app.css", "style");
    write_page("icon.svg", "<svg/>");
    write_page("secret.txt", "kept from all");
    CHECK_OK(dashboard_open(&dashboard, folder));
    CHECK_OK(dashboard_serve(dashboard, SERVER));
}

static void end(void) {
    dashboard_close(&dashboard);
    CHECK_OK(dir_remove_tree(folder));
    mem_free(folder);
    folder = NULL;
}

/* Sends `request` as it is; the whole answer. */
static const char *ask(const char *request) {
    static char answer[16384];
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)dashboard_port(dashboard)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 10};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    size_t len = strlen(request), got = 0;
    CHECK(send(fd, request, len, MSG_NOSIGNAL) == (ssize_t)len);
    for (ssize_t n;
         got < sizeof answer - 1 && (n = recv(fd, answer + got, sizeof answer - 1 - got, 0)) > 0;) {
        got += (size_t)n;
    }
    close(fd);
    answer[got] = 0;
    return answer;
}

/* The answer to METHOD PATH for a host; NULL: the right one. */
static const char *ask_for(const char *method, const char *path, const char *host) {
    static char request[1000];
    char right[64];
    snprintf(right, sizeof right, "127.0.0.1:%u", dashboard_port(dashboard));
    snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
             method, path, host ? host : right);
    return ask(request);
}

static void claim_files(void) {
    static const char *const wanted[][3] = {{"/", "text/html", "<p>index"},
                                            {"/app.js", "text/javascript", "script"},
                                            {"/app.css", "text/css", "style"},
                                            {"/icon.svg", "image/svg+xml", "<svg/>"},
                                            {"/config.json", "application/json", SERVER}};
    begin();
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        const char *answer = ask_for("GET", wanted[i][0], NULL);
        CHECK_HAS(answer, "HTTP/1.1 200");
        CHECK_HAS(answer, wanted[i][1]);
        CHECK_HAS(answer, wanted[i][2]);
        CHECK_HAS(answer, "connect-src 'self' " SERVER ";");
    }
    CHECK_HAS(ask_for("HEAD", "/icon.svg", NULL), "200 OK");
    CHECK(!strstr(ask_for("HEAD", "/icon.svg", NULL), "<svg/>"));
    end();
}

static void claim_others(void) {
    static const char *const paths[] = {"/secret.txt",
                                        "/../secret.txt",
                                        "/%2e%2e/secret.txt",
                                        "/..%2fsecret.txt",
                                        "/app.js/../secret.txt",
                                        "//etc/passwd",
                                        "/../../../../../../etc/passwd",
                                        "/./secret.txt",
                                        "/index.html",
                                        "/APP.JS",
                                        "/app.js/",
                                        "http://127.0.0.1/secret.txt",
                                        "*"};
    begin();
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        const char *answer = ask_for("GET", paths[i], NULL);
        CHECK_MSG(!strstr(answer, "200 OK"), "%s: %.40s", paths[i], answer);
        CHECK_MSG(!strstr(answer, "kept from all") && !strstr(answer, "root:"), "%s was served",
                  paths[i]);
    }
    end();
}

static void claim_hosts(void) {
    char name[64];
    begin();
    CHECK_HAS(ask_for("GET", "/config.json", "evil.example.org"), "403");
    CHECK_HAS(ask_for("GET", "/config.json", "127.0.0.1:1"), "403");
    CHECK_HAS(ask("GET /config.json HTTP/1.0\r\n\r\n"), "403");
    snprintf(name, sizeof name, "localhost:%u", dashboard_port(dashboard));
    CHECK_HAS(ask_for("GET", "/config.json", name), "200 OK");
    end();
}

static void claim_methods(void) {
    begin();
    CHECK_HAS(ask_for("DELETE", "/", NULL), "405");
    CHECK_HAS(ask_for("POST", "/config.json", NULL), "405");
    CHECK_HAS(ask_for("GET", "/", NULL), "200 OK"); /* and it still answers */
    end();
}

static void claim_incomplete(void) {
    struct dashboard *none = NULL;
    char path[600];
    begin();
    snprintf(path, sizeof path, "%s/app.css", folder);
    unlink(path);
    CHECK_ERR(E_IO, dashboard_open(&none, folder));
    CHECK(!none);
    dashboard_close(&none);
    end();
}

static void claim_unserved(void) {
    struct dashboard *other = NULL;
    begin();
    CHECK_OK(dashboard_open(&other, folder));
    CHECK(dashboard_port(other) != dashboard_port(dashboard));
    dashboard_close(&other);
    CHECK(!other);
    end();
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the page's files and its settings are served, with a policy that names one server",
         claim_files},
        {"no other path is served, however it is written", claim_others},
        {"requests for other hosts are refused", claim_hosts},
        {"only GET and HEAD are answered", claim_methods},
        {"a folder without one of the files is refused", claim_incomplete},
        {"one that never served is closed", claim_unserved},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
