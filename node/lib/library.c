/* libbellows: each function turns its arguments into those of the modules below it, and their error into the caller's.
 *
 * Nothing of the caller's is kept but what the header says, and nothing here is shared between two objects.
 */
#include "node/lib/bellows.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/version.h"
#include "node/groth16/verify.h"
#include "node/submit/outcome.h"
#include "node/submit/submission.h"

struct bellows {
    struct client client; /* owned */
};
struct bellows_key {
    struct key *key; /* owned */
    char digest[SHA256_HEX_BYTES];
};
struct bellows_job {
    const struct client *client; /* lent from its connection */
    char id[ID_BYTES_MAX + 1];
    struct submission *submission; /* owned; NULL: found, not sent */
    struct waiter *waiter;         /* owned; of a found one */
};
struct bellows_result {
    size_t count;
    struct text *proofs, *publics; /* owned: each of them and both arrays */
};

static int answer(enum err code, struct bellows_error *error) {
    if (code != OK && error) {
        error->answer = (enum bellows_answer)err_exit_code(code);
        snprintf(error->name, sizeof error->name, "%s", err_name(code));
        snprintf(error->detail, sizeof error->detail, "%s", err_detail());
    }
    return err_exit_code(code);
}

const char *bellows_version(void) {
    return BELLOWS_VERSION;
}

/* --- The fleet --- */

static enum err fleet_open(struct bellows **out, const struct bellows_options *o) {
    AUTO(mem_free_ptr) struct bellows *b = NULL;
    struct client_options options = {
        .transport = {.url = o->server ? o->server : "nats://127.0.0.1:4222",
                      .name = "libbellows",
                      .creds_file = o->creds_file,
                      .tls = {.ca_file = o->ca_file,
                              .cert_file = o->cert_file,
                              .key_file = o->key_file},
                      .plaintext = o->plaintext,
                      .send_asap = true},
        .prefix = o->prefix,
        .tenant = o->tenant ? o->tenant : "default",
        .tenant_by_certificate = !o->tenant};
    TRY(mem_new(&b, 1, sizeof *b));
    TRY(client_connect(&b->client, &options));
    *out = TAKE(b);
    return OK;
}

int bellows_open(struct bellows **out, const struct bellows_options *options,
                 struct bellows_error *error) {
    return answer(fleet_open(out, options ? options : &(struct bellows_options){0}), error);
}

void bellows_close(struct bellows **fleet) {
    if (*fleet) {
        client_close(&(*fleet)->client);
        mem_free_ptr(fleet);
    }
}

/* --- Keys --- */

static enum err key_take_in(struct bellows_key **out, const char *path, unsigned flags) {
    AUTO(bellows_key_close) struct bellows_key *k = NULL;
    struct sha256 digest;
    REQUIRE(path, E_USAGE, "no path of a key is given");
    TRY(mem_new(&k, 1, sizeof *k));
    TRY(key_open(&k->key, path,
                 (struct key_options){.allow_insecure = flags & BELLOWS_ALLOW_INSECURE_KEYS}));
    TRY(key_digest(&digest, k->key));
    sha256_hex(k->digest, &digest);
    *out = TAKE(k);
    return OK;
}

int bellows_key_open(struct bellows_key **out, const char *path, unsigned flags,
                     struct bellows_error *error) {
    return answer(key_take_in(out, path, flags), error);
}

void bellows_key_close(struct bellows_key **key) {
    if (*key) {
        key_unref(&(*key)->key);
        mem_free_ptr(key);
    }
}

const char *bellows_key_digest(const struct bellows_key *key) {
    return key->digest;
}

/* --- Jobs --- */

static uint32_t wire_priority(enum bellows_priority p) {
    return p == BELLOWS_URGENT ? 0 : p == BELLOWS_HIGH ? 1 : p == BELLOWS_LOW ? 3 : 2;
}

static enum err add_witness(struct submission *s, const struct bellows_witness *from, size_t idx) {
    AUTO(witness_close) struct witness w = {0};
    if (from->path) {
        TRY(witness_open(&w, from->path));
    } else {
        char name[40];
        snprintf(name, sizeof name, "witness %zu", idx);
        TRY(witness_from_bytes(&w, bytes_of(from->wtns, from->wtns_bytes), name));
    }
    return submission_add(s, &w);
}

static enum err job_send(struct bellows_job **out, struct bellows *fleet,
                         const struct bellows_key *key, const struct bellows_witness *witnesses,
                         size_t count, const struct bellows_job_options *o) {
    AUTO(bellows_job_close) struct bellows_job *job = NULL;
    struct submission_options options = {
        .job = o->job, .label = o->label, .priority = wire_priority(o->priority), .wait = true};
    if (o->deadline_ms) {
        options.deadline_unix_ms = clock_unix_ns() / 1000000 + o->deadline_ms;
    }
    TRY(mem_new(&job, 1, sizeof *job));
    job->client = &fleet->client;
    TRY(submission_open(&job->submission, key->key, count));
    for (size_t i = 0; i < count; i++) {
        TRY(add_witness(job->submission, &witnesses[i], i));
    }
    TRY(submission_send(job->submission, &fleet->client, &options));
    snprintf(job->id, sizeof job->id, "%s", submission_job(job->submission));
    *out = TAKE(job);
    return OK;
}

int bellows_submit(struct bellows_job **out, struct bellows *fleet, const struct bellows_key *key,
                   const struct bellows_witness *witnesses, size_t witnesses_count,
                   const struct bellows_job_options *options, struct bellows_error *error) {
    enum err code = job_send(out, fleet, key, witnesses, witnesses_count,
                             options ? options : &(struct bellows_job_options){0});
    return answer(code, error);
}

static enum err job_find(struct bellows_job **out, struct bellows *fleet, const char *id) {
    AUTO(bellows_job_close) struct bellows_job *job = NULL;
    TRY(id_check(id ? id : "", "job"));
    TRY(mem_new(&job, 1, sizeof *job));
    job->client = &fleet->client;
    snprintf(job->id, sizeof job->id, "%s", id);
    TRY(waiter_open(&job->waiter, &fleet->client, job->id, NULL));
    *out = TAKE(job);
    return OK;
}

int bellows_find(struct bellows_job **out, struct bellows *fleet, const char *job,
                 struct bellows_error *error) {
    return answer(job_find(out, fleet, job), error);
}

static enum err job_cancel(const struct bellows_job *job) {
    enum job_state state;
    TRY(client_cancel(&state, job->client, job->id, "cancelled by its submitter"));
    REQUIRE(state == JOB_CANCELLED, E_RANGE, "job %s had ended before: it is %s", job->id,
            job_state_name(state));
    return OK;
}

int bellows_cancel(struct bellows_job *job, struct bellows_error *error) {
    return answer(job_cancel(job), error);
}

const char *bellows_job_id(const struct bellows_job *job) {
    return job->id;
}

void bellows_job_close(struct bellows_job **job) {
    if (*job) {
        submission_close(&(*job)->submission);
        waiter_close(&(*job)->waiter);
        mem_free_ptr(job);
    }
}

/* --- Results --- */

static enum err result_make(struct bellows_result **out, const result_message *message) {
    AUTO(bellows_result_free) struct bellows_result *r = NULL;
    TRY(mem_new(&r, 1, sizeof *r));
    TRY(mem_new(&r->proofs, message->n_partitions, sizeof *r->proofs));
    TRY(mem_new(&r->publics, message->n_partitions, sizeof *r->publics));
    for (size_t i = 0; i < message->n_partitions; i++) {
        r->count = i + 1;
        TRY(outcome_part_json(&r->proofs[i], &r->publics[i], message, i));
        TRY(text_done(&r->proofs[i]));
        TRY(text_done(&r->publics[i]));
    }
    *out = TAKE(r);
    return OK;
}

static enum err job_wait(struct bellows_result **out, struct bellows_job *job,
                         uint64_t timeout_ms) {
    AUTO(message_free) result_message *message = NULL;
    uint64_t limit_ns = timeout_ms > UINT64_MAX / 1000000 ? 0 : timeout_ms * 1000000;
    if (job->submission) {
        TRY(submission_wait(&message, job->submission, limit_ns));
    } else {
        TRY(waiter_wait(&message, job->waiter, 0, false, limit_ns));
    }
    TRY(outcome_of(message));
    return result_make(out, message);
}

int bellows_wait(struct bellows_result **out, struct bellows_job *job, uint64_t timeout_ms,
                 struct bellows_error *error) {
    return answer(job_wait(out, job, timeout_ms), error);
}

size_t bellows_result_count(const struct bellows_result *result) {
    return result->count;
}

const char *bellows_result_proof(const struct bellows_result *result, size_t idx) {
    return idx < result->count ? result->proofs[idx].ptr : NULL;
}

const char *bellows_result_public(const struct bellows_result *result, size_t idx) {
    return idx < result->count ? result->publics[idx].ptr : NULL;
}

void bellows_result_free(struct bellows_result **result) {
    struct bellows_result *r = *result;
    for (size_t i = 0; r && i < r->count; i++) {
        text_free(&r->proofs[i]);
        text_free(&r->publics[i]);
    }
    if (r) {
        mem_free(r->proofs);
        mem_free(r->publics);
        mem_free_ptr(result);
    }
}

/* --- Verifying --- */

static struct bytes bytes_of_text(const char *text) {
    return bytes_of(text, strlen(text));
}

static enum err statement_verify(const struct vkey *vk, const char *public_json,
                                 const char *proof_json) {
    AUTO(mem_free_ptr) struct scalar *publics = NULL;
    size_t publics_count = 0;
    struct proof proof;
    TRY(public_read_json(&publics, &publics_count, vk->curve, bytes_of_text(public_json),
                         "public signals"));
    TRY(proof_read_json(&proof, vk->curve, bytes_of_text(proof_json), "proof"));
    return groth16_verify(vk, publics, publics_count, &proof);
}

static enum err texts_verify(bool *is_no, const char *vkey_json, const char *public_json,
                             const char *proof_json, unsigned flags) {
    AUTO(vkey_done) struct vkey vk = {0};
    REQUIRE(vkey_json && public_json && proof_json, E_USAGE, "one of the three texts is missing");
    TRY(vkey_read_json(&vk, bytes_of_text(vkey_json), "verification key"));
    if (!(flags & BELLOWS_ALLOW_INSECURE_KEYS)) {
        TRY(vkey_check_secure(&vk, "verification key"));
    }
    enum err code = statement_verify(&vk, public_json, proof_json);
    *is_no = verify_says_no(code);
    return code;
}

int bellows_verify(const char *verification_key_json, const char *public_json,
                   const char *proof_json, unsigned flags, struct bellows_error *error) {
    bool is_no = false;
    enum err code = texts_verify(&is_no, verification_key_json, public_json, proof_json, flags);
    int how = answer(code, error);
    if (is_no && error) {
        error->answer = BELLOWS_INVALID;
    }
    return is_no ? BELLOWS_INVALID : how;
}
