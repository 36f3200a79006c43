/* Expose: a small HTTP server for those who watch: /metrics for Prometheus, /healthz and /readyz for whoever restarts and routes.
 *
 *     GET /metrics   200, text in Prometheus' exposition format
 *     GET /healthz   200 while the process answers at all
 *     GET /readyz    200 when it can do its work, 503 with one sentence when not
 *
 * It holds nothing secret, and it listens on loopback unless an address is given. One thread serves, at most EXPOSE_CLIENTS_MAX
 * connections, each for a few seconds: a slow client keeps nobody waiting but itself.
 *
 * Owner    a daemon's process.
 * Threads  the handlers run on the server's thread; expose_close returns when none runs any more.
 * Errors   E_USAGE for an address that cannot be read; E_IO when it cannot be listened on, with the address.
 */
#pragma once
#include "node/base/text.h"

struct expose;

enum { EXPOSE_CLIENTS_MAX = 16, EXPOSE_REASON_BYTES = 200 };

struct expose_options {
    const char *address; /* "127.0.0.1:9464", "[::1]:9464"; port 0: a free one */
    void (*metrics)(void *ctx, struct text *out);
    /* True: ready. Else one sentence why not. */
    bool (*ready)(void *ctx, char reason[EXPOSE_REASON_BYTES]);
    void *ctx;
};
FALLIBLE expose_open(struct expose **out, const struct expose_options *options);
void expose_close(struct expose **e);           /* for AUTO */
const char *expose_url(const struct expose *e); /* "http://127.0.0.1:9464"; lent */
