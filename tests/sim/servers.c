/* All name the same routes; the ports of the routes are this process's by its id. The coordinator waits until the cluster has come together.
 */
#include "tests/sim/servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void start_one(struct check_server *out, unsigned idx, unsigned count, struct host *h) {
    char config[1024];
    unsigned port = 20000 + (unsigned)getpid() % 2000 * SERVERS_MAX;
    int len = snprintf(config, sizeof config,
                       "server_name: sim%u\ncluster {\n  name: sim\n  listen: \"127.0.0.1:%u\"\n"
                       "  routes: [",
                       idx, port + idx);
    for (unsigned i = 0; i < count; i++) {
        len += snprintf(config + len, sizeof config - (size_t)len, "%s\"nats://127.0.0.1:%u\"",
                        i ? ", " : "", port + i);
    }
    snprintf(config + len, sizeof config - (size_t)len, "]\n}");
    struct check_server_options options = {.config = config};
    if (h) {
        host_start_server(h, &options);
    } else {
        check_server_start(out, &options);
    }
}

void servers_start(struct servers *out, struct host *h, unsigned count) {
    *out = (struct servers){.count = count};
    if (count == 1) {
        host_start(h);
        return;
    }
    start_one(NULL, 0, count, h);
    int len = snprintf(h->url, sizeof h->url, "%s", h->server.url);
    for (unsigned i = 1; i < count; i++) {
        struct check_server *s = &out->others[i - 1];
        start_one(s, i, count, NULL);
        if (len > 0 && (size_t)len < sizeof h->url) {
            len += snprintf(h->url + len, sizeof h->url - (size_t)len, ",%s", s->url);
        }
    }
    char replicas[8];
    snprintf(replicas, sizeof replicas, "%d", count < SERVER_REPLICAS ? 1 : SERVER_REPLICAS);
    setenv("BELLOWS_REPLICAS", replicas, 1);
    host_start_coordinator(h);
    host_connect(h);
}

void servers_stop(struct servers *s) {
    for (unsigned i = 1; i < s->count; i++) {
        check_server_stop(&s->others[i - 1]);
    }
}
