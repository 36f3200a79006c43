/* Roles: who may do what on the fleet's NATS server; one table, and the server's accounts made from it.
 *
 * | role        | name of its certificate   | account          | in one sentence                                          |
 * |-------------|---------------------------|------------------|----------------------------------------------------------|
 * | submitter   | submitter.<tenant>.<user> | the tenant's own | sends the tenant's jobs and bodies, reads what came of them |
 * | worker      | worker.<node>             | the fleet's      | takes its own lanes' work, stores results                |
 * | coordinator | coordinator.<name>        | the fleet's      | makes the streams, places work, ends jobs, purges bodies |
 * | operator    | operator.<name>           | the fleet's      | looks at everything, drains, cancels, stores keys        |
 * | dashboard   | dashboard.<name>          | the dashboards'  | hears telemetry and events, writes nothing               |
 *
 * Permissions alone do not keep tenants apart: whoever may send a JetStream request names the subject of its answer, and the
 * server publishes there whatever the asker itself may not. So everybody who is not the fleet lives in another
 * account, whose subjects are another world; only what the tables export crosses over, and answers come back to the asker.
 *
 * Threads  any; pure.
 */
#pragma once
#include "node/base/text.h"
#include "proto/holder.h"
#include "proto/subjects.h"

enum { ROLE_LANES_DEFAULT = 16, ROLE_LANES_MAX = 64 };
struct role_fleet {
    struct subject_space space;
    const struct role_holder *holders; /* lent */
    size_t holders_count;
    unsigned lanes_count;   /* that a worker may have */
    bool tenants_push_keys; /* submitters may store proving keys, which anybody's jobs may name */
};
/* The subjects that the holder may publish to, or subscribe to: one a line. */
void role_publishes(struct text *out, const struct role_fleet *fleet,
                    const struct role_holder *holder);
void role_subscribes(struct text *out, const struct role_fleet *fleet,
                     const struct role_holder *holder);
/* The whole `accounts { … }` of the server's configuration. */
void role_accounts(struct text *out, const struct role_fleet *fleet);
