/* Pages: what a daemon shows over HTTP (node/telemetry/expose.h), and the blocks of metrics behind it.
 *
 * A node has a block for each lane. It lies in memory that the lane's process inherits through a descriptor, so the supervisor serves
 * all lanes from one address, and what a lane counted survives it. A coordinator has one block.
 *
 * The address is the operator's; not set, the pages are on loopback at the daemon's usual port, or nowhere when another daemon of
 * this machine is there already, which is no error.
 *
 * Owner    the daemon's process.
 * Threads  pages_open with signals blocked: its server's thread inherits that. The blocks: any.
 * Errors   E_USAGE, E_IO for an address that was asked for; E_IO, E_LIMIT without memory.
 */
#pragma once
#include "node/telemetry/expose.h"
#include "node/telemetry/metric.h"

enum { PAGES_BLOCKS_MAX = 64 };
#define PAGES_NODE_ADDRESS        "127.0.0.1:9464"
#define PAGES_COORDINATOR_ADDRESS "127.0.0.1:9465"

struct pages;

struct pages_options {
    const char *address;  /* "": `fallback` if it is free; "off": nowhere */
    const char *fallback; /* the usual one */
    const char *url_file; /* where the address that was taken is written; NULL: nowhere */
    const char *node;     /* a node's name: one block for each lane; NULL: a coordinator */
    unsigned blocks_count;
    /* Ready? NULL for a node, which is when one of its lanes is. */
    bool (*ready)(void *ctx, char reason[EXPOSE_REASON_BYTES]);
    void *ready_ctx;
};
FALLIBLE pages_open(struct pages **out, const struct pages_options *options);
void pages_close(struct pages **p); /* for AUTO */
/* Serves nothing any more, and no `ready` runs; the blocks stay until pages_close. */
void pages_stop(struct pages *p);

struct metric_block *pages_block(struct pages *p, unsigned idx); /* lent; NULL when p is */
/* The descriptor that the next child inherits, and no other one: lend before it is started, keep after. */
int pages_lend(struct pages *p, unsigned idx);
void pages_keep(struct pages *p, unsigned idx);
const char *pages_url(const struct pages *p); /* lent; "" when nothing is served */
