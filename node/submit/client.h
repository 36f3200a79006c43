/* A tenant's way to the fleet: connection, names, and what several askers do there.
 *
 * Owner    the caller; what it lends to (submission.h, waiter.h) is closed before it.
 * Threads  const once connected; any.
 * Errors   E_NET with the server's address and what to do; E_USAGE for names.
 */
#pragma once
#include "node/job/store.h"
#include "node/key/key.h"
#include "node/transport/fleet.h"
#include "proto/fleet.pb-c.h"

struct client {
    struct transport *transport; /* owned */
    struct subject_space space;
    char tenant[ID_BYTES_MAX + 1]; /* "": all */
    char server[512];
    char server_shown[256]; /* without what proves who we are */
    bool
        has_role; /* comes as somebody whom the server knows, and so may do only what that role may */
};
struct client_options {
    struct transport_options transport; /* with its url */
    const char *prefix;                 /* of the fleet's subjects; NULL: the usual one */
    const char *tenant;                 /* NULL: all */
    /* Before `tenant`: the one of whom the certificate says that he submits for it, submitter.TENANT.USER. */
    bool tenant_by_certificate;
    const char *hint; /* what to do when no server is reached, added to the error; NULL: nothing */
};
FALLIBLE client_connect(struct client *out, const struct client_options *options);
void client_close(struct client *c); /* for AUTO */

struct job_place client_place(const struct client *c, const char *job);
/* Asks whoever answers on a `ctl` subject; *reply: message_free. E_NET when nobody does. */
FALLIBLE client_control(Bellows__V1__ControlReply **reply, const struct client *c,
                        const struct subject *subject, Bellows__V1__Control *request);
/* Stops a job. *state is what it is then: cancelled, or how it had ended before. Asks again for three seconds, since a job sent a moment
 * ago may not be taken in yet, and a coordinator just started may not lead yet; then E_NET, or the coordinator's refusal. */
FALLIBLE client_cancel(enum job_state *state, const struct client *c, const char *job,
                       const char *reason);
/* Makes the key known to the fleet, and stores it there if it is missing: *stored says whether it had to be. */
enum key_push {
    KEY_PUSH_MISSING, /* not where the fleet was told that its nodes have the file */
    KEY_PUSH_FILE,
    KEY_PUSH_NAME /* tells just that */
};
FALLIBLE client_push_key(bool *stored, const struct client *c, struct key *key,
                         const struct sha256 *digest, enum key_push what);
