/* Service: answers those who ask on $SRV what runs here, as every NATS tool asks it (`nats micro ls`, the clients' service API).
 *
 * Protocol: NATS ADR-32. PING, INFO and STATS are each asked of all services, of all of a name, or of one instance: nine subjects, three
 * answers. The endpoints named are subjects on which the owner answers requests himself; he says when he has answered one.
 *
 * Owner    whoever opened it; the transport is lent and outlives it.
 * Threads  service_note any; `data` runs on a thread of the transport.
 * Errors   those of subscribing; E_FORMAT for a name that is no id.
 */
#pragma once
#include "node/base/text.h"
#include "node/transport/transport.h"

enum { SERVICE_ENDPOINTS_MAX = 4, SERVICE_METADATA_MAX = 4 };

struct service;

struct service_pair {
    const char *name, *value;
};
struct service_config {  /* strings are copied or outlive the service: all static, or the owner's */
    const char *name;    /* "bellows-coordinator": an id */
    const char *version; /* "1.2.3" */
    const char *description;
    struct service_pair endpoints
        [SERVICE_ENDPOINTS_MAX]; /* name and subject; ends with a NULL name or at the end */
    struct service_pair metadata[SERVICE_METADATA_MAX];
    /* Adds one JSON value, told in STATS with the first endpoint; may be NULL. Must not block. */
    void (*data)(void *ctx, struct text *json);
    void *ctx;
};
FALLIBLE service_open(struct service **out, struct transport *t,
                      const struct service_config *config);
void service_close(struct service **s);
const char *service_id(const struct service *s);
/* A request to this endpoint was answered, in so long; error NULL: well. */
void service_note(struct service *s, unsigned endpoint_idx, uint64_t ns, const char *error);
