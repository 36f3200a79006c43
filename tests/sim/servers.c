/* Servers of a cluster name the same routes; ports are this process's by its id. The coordinator waits until the cluster has come together.
 *
 * A leaf asks its hub for streams only if it is told so: `default_js_domain` with an empty name on its side, else it keeps requests
 * to $JS.API, and what is written into buckets, to itself. The clusters of a supercluster must both have JetStream, as they choose one
 * leader of it together; the streams lie where the coordinator is. On a single machine each is one server.
 */
#include "tests/sim/servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/base/clock.h"

enum { PORTS_EACH = 2 * SERVERS_MAX }; /* of a process: routes, then leaf nodes and gateways */

static unsigned port_of(unsigned idx) {
    return 20000 + (unsigned)getpid() % 1000 * PORTS_EACH + idx;
}

/* --- A cluster --- */

static void start_one(struct check_server *out, unsigned idx, unsigned count, struct host *h) {
    char config[1024];
    int len = snprintf(config, sizeof config,
                       "server_name: sim%u\ncluster {\n  name: sim\n  listen: \"127.0.0.1:%u\"\n"
                       "  routes: [",
                       idx, port_of(idx));
    for (unsigned i = 0; i < count; i++) {
        len += snprintf(config + len, sizeof config - (size_t)len, "%s\"nats://127.0.0.1:%u\"",
                        i ? ", " : "", port_of(i));
    }
    snprintf(config + len, sizeof config - (size_t)len, "]\n}");
    struct check_server_options options = {.config = config};
    if (h) {
        host_start_server(h, &options);
    } else {
        check_server_start(out, &options);
    }
}

static void start_cluster(struct servers *s, struct host *h, unsigned count) {
    start_one(NULL, 0, count, h);
    int len = snprintf(h->url, sizeof h->url, "%s", h->server.url);
    for (s->others_count = 0; s->others_count + 1 < count; s->others_count++) {
        struct check_server *other = &s->others[s->others_count];
        start_one(other, s->others_count + 1, count, NULL);
        if (len > 0 && (size_t)len < sizeof h->url) {
            len += snprintf(h->url + len, sizeof h->url - (size_t)len, ",%s", other->url);
        }
    }
    char replicas[8];
    snprintf(replicas, sizeof replicas, "%d", count < SERVER_REPLICAS ? 1 : SERVER_REPLICAS);
    setenv("BELLOWS_REPLICAS", replicas, 1);
    snprintf(s->site_url, sizeof s->site_url, "%s", h->url);
}

/* --- Other sites --- */

/* Until the leaf, or the other cluster, has found the first. */
static void wait_for_streams(const char *url) {
    struct transport *t = NULL;
    struct transport_options options = {.url = url};
    struct message reply = {0};
    enum err code = E_NET;
    CHECK_OK(transport_open(&t, &options));
    for (int n = 0; n < 200 && code != OK; n++) {
        code = transport_request(&reply, t, "$JS.API.INFO", (struct bytes){0}, UINT64_C(500000000));
        clock_sleep_ns(UINT64_C(100000000));
    }
    CHECK_OK(code);
    message_done(&reply);
    transport_close(&t);
}

static unsigned line_port(struct servers *s, unsigned port, uint64_t line_ns) {
    if (line_ns == 0) {
        return port;
    }
    CHECK_OK(wires_open(&s->line, 1, port, NULL));
    wire_set(s->line, 0, WIRE_SLOW, line_ns);
    return wire_port(s->line, 0);
}

static void start_leaf(struct servers *s, struct host *h, uint64_t line_ns) {
    char config[512];
    struct check_server_options options = {.config = config};
    snprintf(config, sizeof config,
             "server_name: hub\nleafnodes {\n  listen: \"127.0.0.1:%u\"\n}\n"
             "default_js_domain: {\"$G\": \"\"}",
             port_of(0));
    host_start_server(h, &options);
    snprintf(config, sizeof config,
             "server_name: leaf\nleafnodes {\n  remotes: [{url: \"nats://127.0.0.1:%u\"}]\n}\n"
             "default_js_domain: {\"$G\": \"\"}",
             line_port(s, port_of(0), line_ns));
    options.no_jetstream = true;
    check_server_start(&s->others[s->others_count++], &options);
    snprintf(s->site_url, sizeof s->site_url, "%s", s->others[0].url);
    wait_for_streams(s->site_url);
}

static void write_gateway(char *out, size_t out_bytes, unsigned idx) {
    static const char *const names[] = {"east", "west"};
    snprintf(out, out_bytes,
             "server_name: %s1\n"
             "cluster {\n  name: %s\n  listen: \"127.0.0.1:%u\"\n"
             "  routes: [\"nats://127.0.0.1:%u\"]\n}\n"
             "gateway {\n  name: %s\n  listen: \"127.0.0.1:%u\"\n"
             "  gateways: [{name: %s, url: \"nats://127.0.0.1:%u\"}]\n}\n"
             "accounts {\n  SYS { users: [{user: sys, password: sys}] }\n"
             "  FLEET { jetstream: enabled, users: [{user: fleet, password: fleet}] }\n}\n"
             "system_account: SYS\nno_auth_user: fleet",
             names[idx], names[idx], port_of(idx), port_of(idx), names[idx], port_of(2 + idx),
             names[1 - idx], port_of(3 - idx));
}

static void start_supercluster(struct servers *s, struct host *h) {
    char config[1024];
    struct check_server_options options = {.config = config};
    write_gateway(config, sizeof config, 0);
    host_start_server(h, &options);
    write_gateway(config, sizeof config, 1);
    check_server_start(&s->others[s->others_count++], &options);
    snprintf(s->site_url, sizeof s->site_url, "%s", s->others[0].url);
    wait_for_streams(s->site_url);
}

void servers_start(struct servers *out, struct host *h, const struct servers_options *o) {
    *out = (struct servers){0};
    if (o->site == SITE_LEAF) {
        start_leaf(out, h, o->line_ns);
    } else if (o->site == SITE_GATEWAY) {
        start_supercluster(out, h);
    } else if (o->count > 1) {
        start_cluster(out, h, o->count);
    } else {
        host_start_server(h, NULL);
        snprintf(out->site_url, sizeof out->site_url, "nats://127.0.0.1:%u",
                 line_port(out, h->server.port, o->line_ns));
    }
    host_start_coordinator(h);
    host_connect(h);
}

void servers_stop(struct servers *s) {
    wires_close(&s->line);
    while (s->others_count > 0) {
        check_server_stop(&s->others[--s->others_count]);
    }
}
