/* Stores: how full the server's streams and buckets are, as metrics, asked for by a thread of its own every ten seconds.
 *
 * Bodies are the input buckets of the tenants whose jobs this coordinator has seen, at most STORES_TENANTS_MAX. Where one of them has no
 * limit, the limit of all is unknown and not shown.
 *
 * Owner    the coordinator, while it leads.
 * Threads  stores_open starts one; stores_note: the owner's.
 * Errors   stores_open: E_LIMIT without memory or thread. A store that does not answer is no error.
 */
#pragma once
#include "node/telemetry/metric.h"
#include "node/transport/fleet.h"

enum { STORES_TENANTS_MAX = 256 };

struct stores;

/* `t` is lent and used by the thread; `metrics` may be NULL. */
FALLIBLE stores_open(struct stores **out, struct transport *t, const struct subject_space *space,
                     struct metric_block *metrics);
void stores_close(struct stores **s); /* for AUTO */
/* There is a tenant of this name. */
void stores_note(struct stores *s, const char *tenant);
