/* libbellows as a program uses it, against a fleet of processes: from many threads, in odd orders, with wrong input.
 *
 * The program sees the shared library's own functions only; run under the thread sanitizer this is the test of what bellows.h says of
 * threads.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/lib/bellows.h"
#include "tests/e2e/host.h"

enum { THREADS = 6, JOBS_EACH = 4 };

static char *text_of_file(const char *path) {
    struct bytes_mut bytes;
    CHECK_OK(file_read_all(&bytes, path, 1 << 20));
    char *text = mem_zero_alloc(bytes.len + 1, 1);
    memcpy(text, bytes.ptr, bytes.len);
    mem_free(bytes.ptr);
    return text;
}

static char *text_of(const char *vector) {
    return text_of_file(check_vectors(vector));
}

static void start(struct host *h) {
    host_start(h);
    host_start_node(h, 0, 2, NULL);
}

static const char *url_of(const struct host *h) {
    return h->server.url;
}

/* What threads share, and what each did; a claim may fail on its own thread only, so they write down and the claim looks. */
struct shared {
    struct bellows *fleet;
    struct bellows_key *key;
    const char *wtns_path, *vkey;
};
struct worker {
    const struct shared *shared;
    pthread_t thread;
    unsigned idx, proved;
    struct bellows_error error;
    char ids[JOBS_EACH][65];
};

static int one_job(struct worker *w, unsigned n) {
    struct bellows_witness witnesses[2] = {{.path = w->shared->wtns_path},
                                           {.path = w->shared->wtns_path}};
    struct bellows_job *job = NULL;
    struct bellows_result *result = NULL;
    struct bellows_job_options options = {.label = "library",
                                          .priority = n % 2 ? BELLOWS_HIGH : BELLOWS_NORMAL};
    size_t count = 1 + n % 2;
    int answer = bellows_submit(&job, w->shared->fleet, w->shared->key, witnesses, count, &options,
                                &w->error);
    if (!answer) {
        snprintf(w->ids[n], sizeof w->ids[n], "%s", bellows_job_id(job));
        answer = bellows_wait(&result, job, 120000, &w->error);
    }
    for (size_t i = 0; !answer && i < count; i++) {
        answer = bellows_verify(w->shared->vkey, bellows_result_public(result, i),
                                bellows_result_proof(result, i), 0, &w->error);
    }
    bellows_result_free(&result);
    bellows_job_close(&job);
    return answer;
}

static void *work(void *ctx) {
    struct worker *w = ctx;
    for (unsigned n = 0; n < JOBS_EACH && one_job(w, n) == BELLOWS_OK; n++) {
        w->proved++;
    }
    return NULL;
}

static void claim_threads(void) {
    struct host h;
    struct bellows_error error = {0};
    struct shared shared = {.wtns_path = check_vectors("bn128/mul-contrib/witness.wtns")};
    struct worker workers[THREADS];
    char *vkey = text_of("bn128/mul-contrib/verification_key.json");
    shared.vkey = vkey;
    start(&h);
    CHECK_MSG(!bellows_open(&shared.fleet, &(struct bellows_options){.server = url_of(&h)}, &error),
              "%s: %s", error.name, error.detail);
    CHECK_MSG(
        !bellows_key_open(&shared.key, check_vectors("bn128/mul-contrib/circuit.zkey"), 0, &error),
        "%s: %s", error.name, error.detail);
    CHECK_EQ(64, strlen(bellows_key_digest(shared.key)));
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = &shared, .idx = i};
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
        CHECK_MSG(workers[i].proved == JOBS_EACH, "thread %u: %u jobs, then %s: %s", i,
                  workers[i].proved, workers[i].error.name, workers[i].error.detail);
    }
    bellows_key_close(&shared.key);
    bellows_close(&shared.fleet);
    CHECK(!shared.key && !shared.fleet);
    CHECK_EQ(THREADS * JOBS_EACH, host_stream_count(&h, "DONE"));
    mem_free(vkey);
    host_stop(&h);
}

/* --- Wrong and odd --- */

static void expect(int answer, const struct bellows_error *error, int want, const char *name,
                   const char *detail) {
    CHECK_MSG(answer == want && (int)error->answer == want, "answer %d (%d), want %d: %s: %s",
              answer, (int)error->answer, want, error->name, error->detail);
    CHECK_STR(name, error->name);
    CHECK_HAS(error->detail, detail);
}

static void claim_refusals(void) {
    struct host h;
    struct bellows_error error = {0};
    struct bellows *fleet = NULL;
    struct bellows_key *key = NULL;
    struct bellows_job *job = NULL;
    struct bellows_result *result = NULL;
    struct bellows_witness good = {.path = check_vectors("bn128/mul-contrib/witness.wtns")};
    struct bellows_witness other = {.path = check_vectors("bn128/merkle/witness.wtns")};
    struct bellows_witness nothing = {0};
    int answer =
        bellows_open(&fleet, &(struct bellows_options){.server = "nats://127.0.0.1:1"}, &error);
    expect(answer, &error, BELLOWS_NETWORK, "E_NET", "127.0.0.1:1");
    CHECK(!fleet);
    answer = bellows_key_open(&key, "absent.zkey", 0, &error);
    expect(answer, &error, BELLOWS_INPUT, "E_IO", "absent.zkey");
    answer =
        bellows_key_open(&key, check_vectors("bn128/base-uncontributed/circuit.zkey"), 0, &error);
    expect(answer, &error, BELLOWS_INPUT, "E_RANGE", "gamma equals delta");
    CHECK_EQ(BELLOWS_INPUT, bellows_key_open(&key, NULL, 0, NULL));
    start(&h);
    char tls_url[128]; /* a server that speaks no TLS */
    snprintf(tls_url, sizeof tls_url, "tls%s", strstr(url_of(&h), "://"));
    answer = bellows_open(&fleet, &(struct bellows_options){.server = tls_url}, &error);
    expect(answer, &error, BELLOWS_NETWORK, "E_NET", "cannot connect");
    answer = bellows_open(&fleet, &(struct bellows_options){.server = url_of(&h), .tenant = "a.b"},
                          &error);
    expect(answer, &error, BELLOWS_INPUT, "E_FORMAT", "tenant");
    CHECK_EQ(BELLOWS_OK,
             bellows_open(&fleet, &(struct bellows_options){.server = url_of(&h)}, NULL));
    CHECK_EQ(BELLOWS_OK,
             bellows_key_open(&key, check_vectors("bn128/mul-contrib/circuit.zkey"), 0, NULL));
    answer = bellows_submit(&job, fleet, key, &other, 1, NULL, &error);
    expect(answer, &error, BELLOWS_INPUT, "E_RANGE", "witness");
    answer = bellows_submit(&job, fleet, key, &nothing, 1, NULL, &error);
    expect(answer, &error, BELLOWS_INPUT, "E_FORMAT", "witness 0");
    answer = bellows_submit(&job, fleet, key, &good, 0, NULL, &error);
    expect(answer, &error, BELLOWS_INPUT, "E_USAGE", "0 witnesses");
    answer = bellows_submit(&job, fleet, key, &good, 1,
                            &(struct bellows_job_options){.job = "no spaces"}, &error);
    expect(answer, &error, BELLOWS_INPUT, "E_FORMAT", "job");
    CHECK(!job);
    CHECK_EQ(BELLOWS_OK, bellows_find(&job, fleet, "nobody-s", &error));
    answer = bellows_wait(&result, job, 1000, &error);
    expect(answer, &error, BELLOWS_NETWORK, "E_TIMEOUT", "nobody-s");
    answer = bellows_wait(&result, job, 0, &error);
    expect(answer, &error, BELLOWS_INPUT, "E_RANGE", "no job nobody-s");
    CHECK(!result);
    bellows_job_close(&job);
    bellows_job_close(&job);
    bellows_result_free(&result);
    bellows_key_close(&key);
    bellows_close(&fleet);
    bellows_close(&fleet);
    host_stop(&h);
}

/* The key is closed before the job ends, the job is forgotten and found again, and its failure is the answer. */
static void claim_orders(void) {
    struct host h;
    struct bellows_error error = {0};
    struct bellows *fleet = NULL;
    struct bellows_key *key = NULL;
    struct bellows_job *job = NULL;
    struct bellows_result *result = NULL;
    struct bytes_mut wtns;
    start(&h);
    CHECK_EQ(BELLOWS_OK,
             bellows_open(&fleet, &(struct bellows_options){.server = url_of(&h)}, NULL));
    CHECK_EQ(BELLOWS_OK,
             bellows_key_open(&key, check_vectors("bn128/mul-contrib/circuit.zkey"), 0, NULL));
    CHECK_OK(file_read_all(&wtns, check_vectors("bn128/mul-contrib/witness.wtns"), 1 << 20));
    struct bellows_witness witness = {.wtns = wtns.ptr, .wtns_bytes = wtns.len};
    struct bellows_job_options options = {.job = "by-name"};
    int answer = bellows_submit(&job, fleet, key, &witness, 1, &options, &error);
    CHECK_MSG(!answer, "%s: %s", error.name, error.detail);
    bellows_job_close(&job);
    wtns.ptr[wtns.len - 32] ^= 1; /* the last wire */
    CHECK_EQ(BELLOWS_OK, bellows_submit(&job, fleet, key, &witness, 1, NULL, NULL));
    mem_free(wtns.ptr);
    bellows_key_close(&key);
    answer = bellows_wait(&result, job, 0, &error);
    expect(answer, &error, BELLOWS_INVALID, "E_UNSAT", "does not satisfy");
    bellows_job_close(&job);
    CHECK_EQ(BELLOWS_OK, bellows_find(&job, fleet, "by-name", &error));
    CHECK_STR("by-name", bellows_job_id(job));
    for (int n = 0; n < 2; n++) { /* a result may be had twice */
        answer = bellows_wait(&result, job, 60000, &error);
        CHECK_MSG(!answer, "%s: %s", error.name, error.detail);
        CHECK_EQ(1, bellows_result_count(result));
        CHECK(!bellows_result_proof(result, 1) && !bellows_result_public(result, 1));
        CHECK_HAS(bellows_result_proof(result, 0), "\"pi_a\"");
        bellows_result_free(&result);
    }
    expect(bellows_cancel(job, &error), &error, BELLOWS_INPUT, "E_RANGE", "it is done");
    bellows_job_close(&job);
    bellows_close(&fleet);
    host_stop(&h);
}

/* No node runs, so the job waits. */
static void claim_cancel(void) {
    struct host h;
    struct bellows_error error = {0};
    struct bellows *fleet = NULL;
    struct bellows_key *key = NULL;
    struct bellows_job *job = NULL;
    struct bellows_result *result = NULL;
    struct bellows_witness witness = {.path = check_vectors("bn128/mul-contrib/witness.wtns")};
    host_start(&h);
    CHECK_EQ(BELLOWS_OK,
             bellows_open(&fleet, &(struct bellows_options){.server = url_of(&h)}, NULL));
    CHECK_EQ(BELLOWS_OK,
             bellows_key_open(&key, check_vectors("bn128/mul-contrib/circuit.zkey"), 0, NULL));
    CHECK_EQ(BELLOWS_OK, bellows_submit(&job, fleet, key, &witness, 1, NULL, NULL));
    expect(bellows_wait(&result, job, 300, &error), &error, BELLOWS_NETWORK, "E_TIMEOUT", "");
    int answer = bellows_cancel(job, &error);
    CHECK_MSG(!answer, "%s: %s", error.name, error.detail);
    expect(bellows_wait(&result, job, 60000, &error), &error, BELLOWS_NETWORK, "E_CANCELLED",
           "cancelled");
    CHECK(!result);
    bellows_job_close(&job);
    bellows_key_close(&key);
    bellows_close(&fleet);
    host_stop(&h);
}

/* One job under a native key: evaluations as a file and as bytes, and a plain witness. */
static void claim_evaluations(void) {
    struct host h;
    struct ran ran;
    char native[512], path[2][256];
    struct bellows_error error = {0};
    struct bellows *fleet = NULL;
    struct bellows_key *key = NULL;
    struct bellows_job *job = NULL;
    struct bellows_result *result = NULL;
    struct bytes_mut file;
    start(&h);
    snprintf(native, sizeof native, "%s/bits.key", h.dir);
    snprintf(path[0], sizeof path[0], "%s", check_vectors("bls12381/bits/witness.evaluations"));
    snprintf(path[1], sizeof path[1], "%s", check_vectors("bls12381/bits/witness.wtns"));
    CHECK_EQ(BELLOWS_OK,
             bellows_open(&fleet, &(struct bellows_options){.server = url_of(&h)}, NULL));
    CHECK_OK(file_read_all(&file, path[0], 1 << 20));
    struct bellows_witness witnesses[] = {
        {.path = path[0]}, {.wtns = file.ptr, .wtns_bytes = file.len}, {.path = path[1]}};
    enum { COUNT = COUNT_OF(witnesses) };
    CHECK_EQ(BELLOWS_OK,
             bellows_key_open(&key, check_vectors("bls12381/bits/circuit.params"), 0, NULL));
    expect(bellows_submit(&job, fleet, key, witnesses, COUNT, NULL, &error), &error, BELLOWS_INPUT,
           "E_USAGE", "bellows key import");
    bellows_key_close(&key);
    host_run(&ran, &h,
             "key import @bls12381/bits/circuit.params %%/bits.key --circuit "
             "@bls12381/bits/circuit.r1cs");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    CHECK_EQ(BELLOWS_OK, bellows_key_open(&key, native, 0, NULL));
    int answer = bellows_submit(&job, fleet, key, witnesses, COUNT, NULL, &error);
    CHECK_MSG(!answer, "%s: %s", error.name, error.detail);
    mem_free(file.ptr);
    bellows_key_close(&key);
    answer = bellows_wait(&result, job, 60000, &error);
    CHECK_MSG(!answer, "%s: %s", error.name, error.detail);
    CHECK_EQ(COUNT, bellows_result_count(result));
    char *publics = text_of("bls12381/bits/public.json");
    host_run(&ran, &h, "key export-vkey %%/bits.key %%/vkey.json");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    snprintf(native, sizeof native, "%s/vkey.json", h.dir);
    char *vkey = text_of_file(native);
    for (size_t i = 0; i < COUNT; i++) {
        answer = bellows_verify(vkey, publics, bellows_result_proof(result, i), 0, &error);
        CHECK_MSG(!answer, "proof %zu: %s: %s", i, error.name, error.detail);
    }
    mem_free(vkey);
    mem_free(publics);
    bellows_result_free(&result);
    bellows_job_close(&job);
    bellows_close(&fleet);
    host_stop(&h);
}

static void claim_verify(void) {
    struct bellows_error error = {0};
    char *vkey = text_of("bn128/base/verification_key.json");
    char *weak = text_of("bn128/base-uncontributed/verification_key.json");
    char *publics = text_of("bn128/base/public.json"), *proof = text_of("bn128/base/proof.json");
    char *other = text_of("bls12381/base/proof.json");
    CHECK_EQ(BELLOWS_OK, bellows_verify(vkey, publics, proof, 0, &error));
    expect(bellows_verify(vkey, "[\"1\",\"2\"]", proof, 0, &error), &error, BELLOWS_INVALID,
           "E_UNSAT", "");
    expect(bellows_verify(vkey, "[\"1\"]", proof, 0, &error), &error, BELLOWS_INVALID, "E_RANGE",
           "public signals");
    expect(bellows_verify(vkey, publics, other, 0, &error), &error, BELLOWS_INVALID, "E_CURVE", "");
    expect(bellows_verify(vkey, publics, "{", 0, &error), &error, BELLOWS_INPUT, "E_FORMAT",
           "proof");
    expect(bellows_verify(weak, publics, proof, 0, &error), &error, BELLOWS_INPUT, "E_RANGE",
           "gamma equals delta");
    expect(bellows_verify(vkey, NULL, proof, 0, &error), &error, BELLOWS_INPUT, "E_USAGE",
           "missing");
    CHECK_EQ(BELLOWS_INVALID,
             bellows_verify(weak, publics, proof, BELLOWS_ALLOW_INSECURE_KEYS, NULL));
    mem_free(other);
    mem_free(proof);
    mem_free(publics);
    mem_free(weak);
    mem_free(vkey);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"many threads submit, wait and verify over one connection and one key", claim_threads},
        {"what cannot be used is refused with a code and a sentence", claim_refusals},
        {"keys close early, jobs are found again, a failed job's error is the answer",
         claim_orders},
        {"evaluations and native keys go like witnesses and .zkeys; parameters without their "
         "circuit do not",
         claim_evaluations},
        {"a job is cancelled, and who waits hears of it", claim_cancel},
        {"verifying says yes, no or could not tell", claim_verify},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
