/* libbellows: send witnesses to a fleet of Groth16 provers, wait for the proofs, verify proofs.
 *
 *     struct bellows *fleet = NULL;
 *     struct bellows_key *key = NULL;
 *     struct bellows_job *job = NULL;
 *     struct bellows_result *result = NULL;
 *     struct bellows_error error;
 *     struct bellows_witness witness = {.path = "witness.wtns"};
 *     if (bellows_open(&fleet, &(struct bellows_options){.server = "nats://127.0.0.1:4222"}, &error) ||
 *         bellows_key_open(&key, "circuit_final.zkey", 0, &error) ||
 *         bellows_submit(&job, fleet, key, &witness, 1, NULL, &error) ||
 *         bellows_wait(&result, job, 60000, &error)) {
 *         fprintf(stderr, "%s: %s\n", error.name, error.detail);
 *     } else {
 *         puts(bellows_result_proof(result, 0));
 *     }
 *     bellows_result_free(&result);
 *     bellows_job_close(&job);
 *     bellows_key_close(&key);
 *     bellows_close(&fleet);
 *
 * Build    cc program.c $(pkg-config --cflags --libs bellows)
 * Answers  every function that can fail returns an enum bellows_answer and, unless that is BELLOWS_OK, fills *error (which may be NULL).
 *          Outputs stay untouched then. Input is never trusted; nothing prints, exits or aborts on it.
 * Owner    what a function gives is the caller's, to the function that ends it; those take the address, leave NULL there, and accept
 *          NULL. Texts are UTF-8, end with NUL, and live as long as what they came from. Close results, jobs, keys and connections in any
 *          order but a connection after its jobs.
 * Threads  any function from any thread. A connection and a key may be used by many threads at once; a job or a result by one at a time.
 *          There is no state beside these objects, and nothing to initialise.
 * Process  the library takes its memory from the C library and installs no signal handlers. Its NATS client ignores SIGPIPE for the whole
 *          process and has threads of its own; do not use a connection in a child after fork(). A key or witness file must not be
 *          rewritten while it is open: replace it by renaming. Digests of keys are remembered below $BELLOWS_CACHE, else
 *          $XDG_CACHE_HOME/bellows, else ~/.cache/bellows.
 * Secrets  witnesses are wiped from the library's own memory once they are sent.
 * Versions functions are added, never changed; structs grow at their end only, with a new soname. Zero means the default everywhere.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BELLOWS_API __attribute__((visibility("default")))

/* The exit codes of the program `bellows`. */
enum bellows_answer {
    BELLOWS_OK = 0,
    BELLOWS_INVALID = 1, /* the proof does not verify; the witness does not satisfy its circuit */
    BELLOWS_INPUT = 2,   /* a file, text or argument that cannot be used, or a refused job */
    BELLOWS_DEVICE = 3,  /* devices failed, or memory is out */
    BELLOWS_NETWORK = 4, /* no connection, no answer in time; or the job was cancelled or expired */
    BELLOWS_INTERNAL = 5, /* a defect of the fleet or of this library */
};
struct bellows_error {
    enum bellows_answer answer;
    char name[24];    /* the stable code: "E_FORMAT", "E_UNSAT", "E_TIMEOUT", … */
    char detail[512]; /* a sentence: what was found, what is allowed, where; no witness value */
};

BELLOWS_API const char *bellows_version(void); /* "0.1.0" */

/* --- The fleet --- */

struct bellows;
struct bellows_options {
    const char *server; /* "tls://HOST:PORT,…" or "nats://…"; NULL: nats://127.0.0.1:4222 */
    const char *tenant; /* whose jobs; NULL: the certificate's, else "default" */
    const char *prefix; /* first word of the fleet's subjects; NULL: "bellows" */
    const char *ca_file, *cert_file, *key_file; /* TLS: authorities, the tenant's certificate */
    const char *creds_file;
    int plaintext; /* 1: without TLS to another machine, too */
};
/* Connects and sees that a fleet is there. The connection repairs itself; while it is lost, calls answer BELLOWS_NETWORK.
 * Options may be NULL, and are not needed afterwards. */
BELLOWS_API int bellows_open(struct bellows **out, const struct bellows_options *options,
                             struct bellows_error *error);
BELLOWS_API void bellows_close(struct bellows **fleet);

/* --- Keys --- */

struct bellows_key;
/* Flags: keys with gamma equal to delta, for which anybody can forge proofs; tests only. */
enum { BELLOWS_ALLOW_INSECURE_KEYS = 1 };
/* A .zkey or a native key, as `bellows key import` makes it of a .zkey or of bellman parameters and their circuit: mapped, all cheap checks
 * made, named by the SHA-256 of its file (read once, then remembered). Bare bellman parameters open, for their digest, but prove nothing:
 * bellows_submit refuses them with the command that adds their circuit. */
BELLOWS_API int bellows_key_open(struct bellows_key **out, const char *path, unsigned flags,
                                 struct bellows_error *error);
BELLOWS_API void bellows_key_close(struct bellows_key **key);
BELLOWS_API const char *bellows_key_digest(const struct bellows_key *key); /* 64 hex digits */

/* --- Jobs --- */

struct bellows_job;
/* A .wtns file, or evaluations: a, b and the assignment of a prover that has synthesised, as <bellows/evaluations.h> draws and writes
 * them. Which of the two it is shows in its first bytes. */
struct bellows_witness {
    const char *path; /* NULL: the bytes */
    const void *wtns; /* of such a file; they must live until bellows_submit returns */
    size_t wtns_bytes;
};
enum bellows_priority { BELLOWS_NORMAL = 0, BELLOWS_LOW, BELLOWS_HIGH, BELLOWS_URGENT };
struct bellows_job_options {
    const char *job; /* its id, 1 to 64 of A-Z a-z 0-9 _ -; the same is one job; NULL: made up */
    enum bellows_priority priority;
    uint64_t deadline_ms; /* from now on: without proofs by then the job expires; 0: none */
    const char *label;    /* free text for people, at most 128 bytes */
};
/* Sends one job with a proof wanted for each witness, and the key if the fleet has not got it. Returns when the fleet has stored the job.
 * Witnesses that do not fit the key are refused before anything is sent. Options may be NULL. The key may be closed at once. */
BELLOWS_API int bellows_submit(struct bellows_job **out, struct bellows *fleet,
                               const struct bellows_key *key,
                               const struct bellows_witness *witnesses, size_t witnesses_count,
                               const struct bellows_job_options *options,
                               struct bellows_error *error);
/* A job sent before, perhaps by another process. bellows_wait says BELLOWS_INPUT when there is none. */
BELLOWS_API int bellows_find(struct bellows_job **out, struct bellows *fleet, const char *job,
                             struct bellows_error *error);
/* Stops it, waiting or running; who waits for it then hears E_CANCELLED. BELLOWS_INPUT with E_RANGE: it had ended before. */
BELLOWS_API int bellows_cancel(struct bellows_job *job, struct bellows_error *error);
BELLOWS_API const char *bellows_job_id(const struct bellows_job *job);
BELLOWS_API void bellows_job_close(struct bellows_job **job); /* forgets it; the fleet goes on */

/* --- Results --- */

struct bellows_result;
/* Waits for the job's only result, at most timeout_ms (0: for ever). What the job failed with is the answer. After BELLOWS_NETWORK with
 * E_TIMEOUT or E_NET it may be waited for again. Results are kept for 72 hours. */
BELLOWS_API int bellows_wait(struct bellows_result **out, struct bellows_job *job,
                             uint64_t timeout_ms, struct bellows_error *error);
/* As many as witnesses. */
BELLOWS_API size_t bellows_result_count(const struct bellows_result *result);
/* As snarkjs writes proof.json and public.json; NULL from the count on. The fleet has verified each proof. */
BELLOWS_API const char *bellows_result_proof(const struct bellows_result *result, size_t idx);
BELLOWS_API const char *bellows_result_public(const struct bellows_result *result, size_t idx);
BELLOWS_API void bellows_result_free(struct bellows_result **result);

/* --- Verifying, without a fleet --- */

/* Texts in snarkjs's JSON. BELLOWS_OK: proved. BELLOWS_INVALID: not, whatever the reason lies in. Others: could not tell, because a text
 * cannot be read or the key must not be trusted. Flags as for bellows_key_open. */
BELLOWS_API int bellows_verify(const char *verification_key_json, const char *public_json,
                               const char *proof_json, unsigned flags, struct bellows_error *error);

#ifdef __cplusplus
}
#endif
