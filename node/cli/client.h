/* A command's way to the fleet: which server and tenant the command line means, and the delivery of results.
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
#include "node/submit/waiter.h"

/* Connects as the command line and the configuration say; *out is the caller's, to client_close. */
FALLIBLE client_open(struct client *out, const struct args *args);

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

#define OPTION_OUT_FORMAT                                                                          \
    {                                                                                              \
        .kind = OPTION_CHOICE, .name = "format", .value = "snarkjs|bellman",                       \
        .fallback = "snarkjs",                                                                     \
        .text = "Form of the proofs: JSON, or one proof.bin of three compressed points a "         \
                "partition, in their order (publics stay JSON)."                                   \
    }

/* Transport options as the configuration says; texts are lent from it. Daemons use it too. */
struct transport_options client_transport_options(const struct config *config);
/* Which server, as said above. */
void client_server(char *out, size_t out_bytes, const struct config *config);
/* The server of a running `bellows dev` on this machine; false if there is none. And the note that says so. */
bool client_find_dev(char *out, size_t out_bytes);
FALLIBLE client_note_dev(const char *url);
void client_forget_dev(void);

/* "90s" → nanoseconds; NULL → 0. */
FALLIBLE client_wait_limit(uint64_t *out, const struct args *args);

/* A job's entry among the records. False: it cannot be read, which is said on standard error and must not hide the others. */
bool client_read_record(struct record *out, char tenant[ID_BYTES_MAX + 1],
                        char job[ID_BYTES_MAX + 1], const struct kv_entry *entry);

/* Before anything is sent or waited for: whether the result can be written where --out says. */
FALLIBLE client_check_out(const struct args *args);

/* Writes the proofs of a result as --out and --format say; prints what happened, as text or --json. When one cannot be
 * written none is left. The error is the job's own when it has failed. */
FALLIBLE client_deliver(const result_message *result, const struct args *args);
void client_result_json(struct text *out, const result_message *result);
