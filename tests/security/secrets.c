/* What must not leak, and what a deployment is made of: logs, files, records, shipped configurations. */
#include <dirent.h>
#include <inttypes.h>
#include <openssl/bn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/job/store.h"
#include "node/witness/witness.h"
#include "proto/job.h"
#include "tests/check/command.h"
#include "tests/security/site.h"

#define SECOND UINT64_C(1000000000)
#define ADA    "submitter.acme.ada"
#define OP     "operator.op"

/* --- Searching for a value in every form that a careless line would print it in --- */

enum { FORMS = 5, FORM_BYTES = 96 };

struct forms {
    char text[FORMS][FORM_BYTES];
    size_t len[FORMS];
};

static void forms_of(struct forms *out, const uint8_t value[SCALAR_BYTES]) {
    uint8_t reversed[SCALAR_BYTES];
    for (size_t i = 0; i < SCALAR_BYTES; i++) {
        reversed[i] = value[SCALAR_BYTES - 1 - i];
    }
    memcpy(out->text[0], value, SCALAR_BYTES);
    memcpy(out->text[1], reversed, SCALAR_BYTES);
    out->len[0] = out->len[1] = SCALAR_BYTES;
    hex_encode(out->text[2], value, SCALAR_BYTES);
    hex_encode(out->text[3], reversed, SCALAR_BYTES);
    BIGNUM *n = BN_bin2bn(reversed, SCALAR_BYTES, NULL);
    char *decimal = n ? BN_bn2dec(n) : NULL;
    CHECK(decimal);
    snprintf(out->text[4], FORM_BYTES, "%s", decimal);
    OPENSSL_free(decimal);
    BN_free(n);
    for (size_t i = 2; i < FORMS; i++) {
        out->len[i] = strlen(out->text[i]);
    }
}

/* Large and not public: small ones are in every log, public ones are in the result. */
static bool is_telling(const struct witness *w, size_t idx, size_t publics) {
    const uint8_t *value = w->values + idx * SCALAR_BYTES;
    size_t high = 0;
    for (size_t i = 16; i < SCALAR_BYTES; i++) {
        high += value[i] != 0;
    }
    return idx > publics && high > 8;
}

static unsigned search(const char *path, const struct forms *forms) {
    struct bytes_mut data;
    unsigned found = 0;
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
        return 0;
    }
    CHECK_OK(file_read_all(&data, path, 256 << 20));
    for (size_t i = 0; i < FORMS; i++) {
        found += memmem(data.ptr, data.len, forms->text[i], forms->len[i]) != NULL;
    }
    mem_free(data.ptr);
    return found;
}

static unsigned search_folder(const char *dir, const struct forms *forms) {
    unsigned found = 0;
    DIR *d = opendir(dir);
    CHECK(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        found += search(path, forms);
    }
    closedir(d);
    return found;
}

static void run_ok(struct site *s, const char *who, const char *words) {
    struct ran ran;
    site_run(&ran, s, who, "%s", words);
    CHECK_MSG(ran.exit_code == 0, "bellows %s: %s", words, ran.out);
}

/* Good, unsatisfied and damaged: what fails is what gets talked about. */
static void claim_logs(void) {
    struct site s;
    struct ran ran;
    struct witness w;
    unsigned told = 0;
    site_start(&s);
    site_start_fleet(&s);
    run_ok(&s, OP, "key push @bn128/chain200/circuit.zkey --allow-insecure-keys");
    run_ok(&s, OP, "key push @bn128/mul/circuit.zkey --allow-insecure-keys");
    run_ok(&s, ADA,
           "submit @bn128/chain200/circuit.zkey @bn128/chain200/witness.wtns "
           "@bn128/chain200/witness.wtns --allow-insecure-keys --tenant acme --wait --out %out");
    site_run(&ran, &s, ADA,
             "submit @bn128/mul/circuit.zkey @bn128/bad/unsatisfied.wtns --allow-insecure-keys "
             "--tenant acme --wait --out %%out");
    CHECK_EQ(1, ran.exit_code);
    CHECK_OK(witness_open(&w, check_vectors("bn128/chain200/witness.wtns")));
    for (size_t i = 0; i < w.count && told < 40; i++) {
        struct forms forms;
        if (!is_telling(&w, i, 4)) {
            continue;
        }
        forms_of(&forms, w.values + i * SCALAR_BYTES);
        CHECK_MSG(search(check_vectors("bn128/chain200/witness.wtns"), &forms) > 0,
                  "value %zu is not found where it is", i);
        CHECK_MSG(search_folder(s.dir, &forms) == 0, "value %zu of the witness stands in %s", i,
                  s.dir);
        char log[SITE_PATH_BYTES];
        snprintf(log, sizeof log, "%s/server.log", s.server.dir);
        CHECK_EQ(0, search(log, &forms));
        told++;
    }
    CHECK_MSG(told >= 20, "only %u values are telling", told);
    witness_close(&w);
    site_stop(&s);
}

/* --- What is left of a job that has ended --- */

static bool bucket_is_empty(struct transport *t) {
    struct stream_info info;
    for (int n = 0; n < 500; n++) {
        struct message m = {0};
        bool found = false;
        CHECK_OK(stream_info(&info, t, "OBJ_bellows-in-acme"));
        CHECK_OK(
            stream_get_next(&m, &found, t, "OBJ_bellows-in-acme", 1, "$O.bellows-in-acme.C.>"));
        message_done(&m);
        if (!found) {
            return true;
        }
        clock_sleep_ns(SECOND / 50);
    }
    return false;
}

/* The descriptor, with inline witnesses, is gone; what the janitor needs may stay. */
static void check_only_references(const struct record *r) {
    AUTO(message_free) job_message *left = NULL;
    if (r->job.len == 0) {
        return;
    }
    CHECK_OK(job_unpack(&left, bytes_of(r->job.ptr, r->job.len), NULL, UINT64_MAX));
    for (size_t i = 0; i < left->n_partitions; i++) {
        CHECK_EQ(BELLOWS__V1__BODY__PLACE_OBJECT, left->partitions[i]->body->place_case);
    }
}

static void claim_nothing_left(void) {
    struct site s;
    struct subject_space space;
    struct record_slot slot = {0};
    bool found = false;
    site_start(&s);
    site_start_fleet(&s);
    CHECK_OK(subject_space_init(&space, NULL));
    run_ok(&s, OP, "key push @bn128/chain200/circuit.zkey --allow-insecure-keys");
    /* Sixty times the witness is more than fits into a descriptor, so the last ones go into the bucket. */
    AUTO(text_free) struct text words = {0};
    struct ran ran;
    text_add(&words, "submit @bn128/chain200/circuit.zkey");
    for (int i = 0; i < 60; i++) {
        text_add(&words, " @bn128/chain200/witness.wtns");
    }
    text_add(&words, " --allow-insecure-keys --tenant acme --job many --wait --out %out");
    CHECK_OK(text_done(&words));
    site_run(&ran, &s, ADA, "%s", words.ptr);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    struct transport *coordinator = site_connect(&s, "coordinator.c1");
    struct job_place at = {coordinator, &space, {"acme", "many"}};
    for (int n = 0; n < 500; n++) { /* the result is there a moment before the record says so */
        CHECK_OK(record_load(&slot, &found, &at));
        if (found && !job_state_is_open(slot.record.state)) {
            break;
        }
        clock_sleep_ns(SECOND / 50);
    }
    CHECK(found && slot.record.state == JOB_DONE);
    check_only_references(&slot.record);
    record_slot_done(&slot);
    struct stream_info bucket;
    CHECK_OK(stream_info(&bucket, coordinator, "OBJ_bellows-in-acme"));
    CHECK(bucket.last_sequence > 0); /* there were bodies in it */
    CHECK_MSG(bucket_is_empty(coordinator), "bodies are still in the bucket after ten seconds");
    transport_close(&coordinator);
    site_stop(&s);
}

/* --- Files --- */

static void claim_files(void) {
    struct site s;
    struct ran ran;
    site_start(&s);
    struct stat st;
    CHECK(stat(s.certs, &st) == 0 && (st.st_mode & 0777) == 0700);
    DIR *d = opendir(s.certs);
    CHECK(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[700];
        size_t len = strlen(e->d_name);
        snprintf(path, sizeof path, "%s/%s", s.certs, e->d_name);
        CHECK(stat(path, &st) == 0);
        bool secret = len > 4 && (!strcmp(e->d_name + len - 4, ".key") ||
                                  !strcmp(e->d_name + len - 4, ".pem"));
        CHECK_MSG(!secret || (st.st_mode & 0777) == 0600, "%s has mode %o", e->d_name,
                  st.st_mode & 0777);
    }
    closedir(d);
    site_run(&ran, &s, NULL, "certs issue %%certs worker.w0");
    CHECK_EQ(2, ran.exit_code); /* nothing is replaced unasked */
    CHECK_HAS(ran.out, "--replace");
    site_run(&ran, &s, NULL, "certs issue %%certs worker.w0 --replace --days 20");
    CHECK_EQ(0, ran.exit_code);
    struct transport *t =
        site_connect(&s, "worker.w0"); /* renewed: the same name, known as before */
    transport_close(&t);
    site_run(&ran, &s, NULL, "certs list %%certs");
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "20 days left, renew it");
    site_run(&ran, &s, NULL, "certs list %%certs --json");
    CHECK(!strstr(ran.out, "\"ok\"")); /* one JSON text, not two */
    CHECK_HAS(ran.out, "{\"name\": \"coordinator.c1\", \"days_left\": 365}");
    site_run(&ran, &s, NULL, "certs issue %%certs worker.a.b");
    CHECK_EQ(2, ran.exit_code);
    site_run(&ran, &s, NULL, "certs issue %%certs nobody.w1");
    CHECK_EQ(2, ran.exit_code);
    site_run(&ran, &s, NULL, "certs issue %%certs submitter.acme");
    CHECK_EQ(2, ran.exit_code);
    site_run(&ran, &s, NULL, "certs issue %%nowhere worker.w5");
    CHECK(ran.exit_code != 0);
    CHECK_HAS(ran.out, "certs ca");
    site_stop(&s);
}

/* --- Shipped configurations --- */

static void claim_configurations(void) {
    static const char *const files[] = {"loopback.conf", "server.conf", "dashboard.conf",
                                        "cluster.conf"};
    struct site s;
    char out[4096], line[2048], program[] = "/bin/sh";
    const char *root = getenv("BELLOWS_ROOT"), *server = check_server_program();
    site_start(&s);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        snprintf(line, sizeof line,
                 "cp '%s'/deploy/nats/*.conf '%s' && cd '%s' && BELLOWS_NATS_NAME=n1 '%s' -t -c %s",
                 root ? root : ".", s.dir, s.dir, server, files[i]);
        const char *argv[] = {program, "-c", line, NULL};
        int exit_code = check_command(out, sizeof out, NULL, argv);
        CHECK_MSG(exit_code == 0, "%s: %s", files[i], out);
    }
    site_stop(&s);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"every shipped server configuration is valid", claim_configurations},
        {"certificates are 0600, are renewed on demand only, and say when they end", claim_files},
        {"no witness value stands in any log or output", claim_logs},
        {"an ended job leaves neither bodies nor its descriptor", claim_nothing_left},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
