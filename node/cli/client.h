/* A command's way to the fleet: connection, names, and the few things several commands do there.
 *
 * Which server: --server or BELLOWS_SERVER or the configuration file; if none of them says, the fleet that `bellows dev` runs on this
 * machine, if there is one; else nats://127.0.0.1:4222.
 *
 * Owner    the command.
 * Threads  one.
 * Errors   E_NET with the server's address and what to do; E_USAGE for names; E_RANGE for a job that is not there.
 */
#pragma once
#include "node/base/config.h"
#include "node/cli/args.h"
#include "node/cli/certs.h"
#include "node/job/result.h"
#include "node/key/key.h"
#include "node/transport/fleet.h"
#include "proto/fleet.pb-c.h"

struct client {
    struct config config;        /* owned */
    struct transport *transport; /* owned */
    struct subject_space space;
    char tenant[ID_BYTES_MAX + 1]; /* "": all */
    char server[512];
};
FALLIBLE client_open(struct client *out, const struct args *args);
void client_close(struct client *c); /* for AUTO */
/* Comes as somebody whom the server knows, and so may do only what that role may. */
bool client_has_role(const struct client *c);

#define TENANT_DEFAULT "default"
#define OPTION_TENANT                                                                              \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "tenant", .value = "NAME", .fallback = TENANT_DEFAULT,        \
        .env = "BELLOWS_TENANT", .text = "Whose job it is."                                        \
    }
#define OPTION_WAIT_LIMIT                                                                          \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "timeout", .value = "TIME",                                   \
        .text = "Waits at most so long (\"90s\"), then exits with 4; the job goes on."             \
    }
#define OPTION_OUT                                                                                 \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "out", .value = "DIR", .fallback = ".",                       \
        .text = "Folder for proof.json and public.json (numbered when there are several)."         \
    }

/* Transport options as the configuration says; texts are lent from it. Daemons use it too. */
struct transport_options client_transport_options(const struct config *config);
/* Which server, as said above. */
void client_server(char *out, size_t out_bytes, const struct config *config);
/* The server of a running `bellows dev` on this machine; false if there is none. And the note that says so. */
bool client_find_dev(char *out, size_t out_bytes);
FALLIBLE client_note_dev(const char *url);
void client_forget_dev(void);

/* Asks whoever answers on a `ctl` subject; *reply: message_free. E_NET when nobody does. */
FALLIBLE client_control(Bellows__V1__ControlReply **reply, const struct client *c,
                        const struct subject *subject, Bellows__V1__Control *request);

struct job_place client_place(const struct client *c, const char *job);
/* Stores the key in the fleet if it is not there yet. *stored says whether it had to be. */
FALLIBLE client_push_key(bool *stored, struct client *c, struct key *key,
                         const struct sha256 *digest);

/* Someone to wait with: hears of the result as soon as it is stored. */
struct waiter;
/* Subscribe before publishing the job. reply_subject (may be NULL) is where refusals come. */
FALLIBLE waiter_open(struct waiter **out, const struct client *c, const char *job,
                     const char *reply_subject);
void waiter_close(struct waiter **w);
/* The job's result. generation 0: the current one, whichever it is. E_RANGE: no such job after a grace of five seconds, unless
 * `published`. E_TIMEOUT after limit_ns (0: never). *out: message_free. */
FALLIBLE waiter_wait(result_message **out, struct waiter *w, uint64_t generation, bool published,
                     uint64_t limit_ns);
/* "90s" → nanoseconds; NULL → 0. */
FALLIBLE client_wait_limit(uint64_t *out, const struct args *args);

/* Writes the proofs of a result below `dir`; prints what happened, as text or JSON. The error is the job's own when it has failed. */
FALLIBLE client_deliver(const result_message *result, const char *dir, bool json);
void client_result_json(struct text *out, const result_message *result);
