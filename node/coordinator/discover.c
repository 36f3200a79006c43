/* What a coordinator, leading or standing by, says of itself on $SRV: so that `nats micro` and every client's service API find it. */
#include "node/base/version.h"
#include "node/coordinator/work.h"

static void add_data(void *ctx, struct text *json) {
    const struct coordinator *c = ctx;
    struct coordinator_counts n = coordinator_counts_of(c);
    text_addf(json,
              "{\"leads\":%s,\"ready\":%s,\"jobs_open\":%llu,\"lanes_open\":%llu,\"placed\":%llu,"
              "\"dead\":%llu}",
              lead_is_held(c->lead) ? "true" : "false", coordinator_is_ready(c) ? "true" : "false",
              (unsigned long long)n.jobs_open, (unsigned long long)n.lanes_open,
              (unsigned long long)n.placed, (unsigned long long)n.dead);
}

enum err discover_open(struct coordinator *c) {
    struct service_config config = {
        .name = "bellows-coordinator",
        .version = BELLOWS_VERSION,
        .description = "places jobs on lanes",
        .endpoints = {{"cancel", c->cancels.text}},
        .metadata = {{"holder", c->name}, {"prefix", c->space.prefix}},
        .data = add_data,
        .ctx = c,
    };
    c->cancels = subject_ctl_coordinator(&c->space, "cancel");
    return service_open(&c->service, c->links.feed, &config);
}
