/* A fleet as deploy/SECURITY.md sets it up: certificates from `bellows certs`, the shipped server configuration, mTLS, roles.
 *
 * Holders: submitter.acme.ada, submitter.other.bob, worker.w0, worker.w1, coordinator.c1, operator.op, dashboard.wall; and
 * worker.late, whose certificate the server's accounts do not know.
 *
 * Threads  the claim's.
 */
#pragma once
#include "node/cli/roles.h"
#include "node/transport/fleet.h"
#include "tests/check/command.h"
#include "tests/check/server.h"

enum { SITE_PATH_BYTES = 512, SITE_HOLDERS_COUNT = 7, SITE_SERVERS_MAX = 3 };

struct site {
    char dir[256], certs[300], url[128];
    struct check_server server; /* the first of them */
    struct check_server others[SITE_SERVERS_MAX - 1];
    bool clustered;
    struct child coordinator, node;
    struct role_fleet fleet;
    struct role_holder holders[SITE_HOLDERS_COUNT];
    unsigned commands;
};

/* Certificates and server; no process of the fleet. */
void site_start(struct site *s);
/* The same with a cluster of three servers, whose streams a fleet keeps on all of them. */
void site_start_cluster(struct site *s);
/* Coordinator c1, then node w0 with one lane; returns when the lane is ready. Tenants acme and other have their buckets. */
void site_start_fleet(struct site *s);
void site_stop(struct site *s);

/* Takes one right from the coordinator, `<prefix>.hb.*.*`, in the accounts of the running server. */
void site_weaken(struct site *s);

/* A connection as the holder: "operator.op". transport_close. */
struct transport *site_connect(const struct site *s, const char *holder);

/* `bellows WORDS…` as the holder (NULL: without server and certificates); "@" and "%" as in tests/e2e/host.h: vectors, folder. */
void site_run(struct ran *out, struct site *s, const char *holder, const char *words, ...)
    __attribute__((format(printf, 4, 5)));
