/* `bellows dev` leaves a note with its address in the runtime folder, which commands find as long as its process lives. */
#include "node/cli/client.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/base/quantity.h"
#include "node/daemon/node.h"
#include "node/submit/outcome.h"

static const char DEFAULT_SERVER[] = "nats://127.0.0.1:4222";
enum { PATH_BYTES = 4096 };

/* --- Which server --- */

static enum err dev_note_path(char *out, size_t out_bytes) {
    char dir[PATH_BYTES / 2];
    TRY(node_runtime_dir(dir, sizeof dir));
    snprintf(out, out_bytes, "%s/dev", dir);
    return OK;
}

bool client_find_dev(char *out, size_t out_bytes) {
    char path[PATH_BYTES], url[256];
    long pid = 0;
    if (dev_note_path(path, sizeof path) != OK) {
        return false;
    }
    FILE *file = fopen(path, "re");
    bool ok =
        file && fscanf(file, "%255s %ld", url, &pid) == 2 && pid > 0 && kill((pid_t)pid, 0) == 0;
    if (file) {
        fclose(file);
    }
    if (ok) {
        snprintf(out, out_bytes, "%s", url);
    }
    return ok;
}

enum err client_note_dev(const char *url) {
    char path[PATH_BYTES], text[320];
    TRY(dev_note_path(path, sizeof path));
    int len = snprintf(text, sizeof text, "%s %ld\n", url, (long)getpid());
    return file_write_all(path, bytes_of(text, (size_t)len));
}

void client_forget_dev(void) {
    char path[PATH_BYTES];
    FILE *file = dev_note_path(path, sizeof path) == OK ? fopen(path, "re") : NULL;
    long pid = 0;
    bool ours = file && fscanf(file, "%*s %ld", &pid) == 1 && pid == (long)getpid();
    if (file) {
        fclose(file);
    }
    if (ours) {
        unlink(path);
    }
}

static const char *or_null(const char *text) {
    return text && *text ? text : NULL;
}

struct transport_options client_transport_options(const struct config *config) {
    return (struct transport_options){
        .url = config->server,
        .creds_file = or_null(config->creds),
        .plaintext = config->plaintext,
        .tls = {.ca_file = or_null(config->tls_ca),
                .cert_file = or_null(config->tls_cert),
                .key_file = or_null(config->tls_key)},
    };
}

void client_server(char *out, size_t out_bytes, const struct config *config) {
    snprintf(out, out_bytes, "%s", config->server);
    if (!strcmp(out, DEFAULT_SERVER)) {
        client_find_dev(out, out_bytes);
    }
}

enum err client_open(struct client *out, const struct args *args) {
    AUTO(config_free) struct config config = {0};
    char server[sizeof out->server];
    TRY(args_config(&config, args));
    client_server(server, sizeof server, &config);
    /* NULL: a list of all tenants. Who names none is the one that the certificate names. */
    bool asks = args_has(args, "tenant");
    const char *tenant = asks ? args_text(args, "tenant") : TENANT_DEFAULT;
    struct client_options options = {
        .transport = client_transport_options(&config),
        .prefix = config.prefix,
        .tenant = tenant,
        .tenant_by_certificate = asks && tenant && !strcmp(tenant, TENANT_DEFAULT),
        .hint = "--server or BELLOWS_SERVER names another server, `bellows dev` starts one"};
    options.transport.url = server;
    options.transport.name = args_command(args)->name;
    options.transport.send_asap = true;
    return client_connect(out, &options);
}

enum err client_wait_limit(uint64_t *out, const struct args *args) {
    const char *text = args_text(args, "timeout");
    *out = 0;
    if (text) {
        enum err code = quantity_span_ns(out, text);
        REQUIRE(code == OK, E_USAGE, "--timeout %s: a time like 90s or 5m", text);
    }
    return OK;
}

/* --- Records --- */

bool client_read_record(struct record *out, char tenant[ID_BYTES_MAX + 1],
                        char job[ID_BYTES_MAX + 1], const struct kv_entry *entry) {
    enum err code = job_key_parse(tenant, job, entry->key);
    code = code == OK ? record_unpack(out, entry->value) : code;
    if (code != OK) {
        fprintf(stderr, "bellows: warning: job %s: %s\n", entry->key, err_detail());
    }
    return code == OK;
}

/* --- Delivering --- */

enum err client_check_out(const struct args *args) {
    return dir_writable(args_text(args, "out"));
}

static void part_json(struct text *t, const part_message *part) {
    text_addf(t, "{\"index\": %u, \"status\": \"%s\", \"total_ns\": %" PRIu64 ", \"node\": ",
              part->index, status_name(part->status), part->total_ns);
    text_add_json_string(t, part->node);
    text_addf(t, ", \"gpu\": %u, \"device\": ", part->gpu);
    text_add_json_string(t, part->device);
    text_addf(t, ", \"attempts\": %u, \"steps\": {", part->attempts);
    for (size_t i = 0; i < part->n_steps; i++) {
        text_add(t, i ? ", " : "");
        text_add_json_string(t, part->steps[i]->step);
        text_addf(t, ": {\"ns\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", part->steps[i]->ns,
                  part->steps[i]->bytes);
    }
    text_add(t, "}}");
}

void client_result_json(struct text *t, const result_message *r) {
    char hex[SHA256_HEX_BYTES] = "";
    if (r->key_digest.len == SHA256_BYTES) {
        hex_encode(hex, r->key_digest.data, SHA256_BYTES);
    }
    text_add(t, "\"job\": ");
    text_add_json_string(t, r->job_id);
    text_add(t, ", \"tenant\": ");
    text_add_json_string(t, r->tenant);
    text_addf(t,
              ", \"generation\": %" PRIu64
              ", \"status\": \"%s\", \"key\": \"%s\", \"elapsed_ns\": %" PRIu64,
              r->generation, status_name(r->status), hex, r->elapsed_ns);
    if (r->error) {
        text_add(t, ", \"error\": {\"name\": ");
        text_add_json_string(t, r->error->name);
        text_add(t, ", \"detail\": ");
        text_add_json_string(t, r->error->detail);
        text_add(t, "}");
    }
    text_add(t, ", \"partitions\": [");
    for (size_t i = 0; i < r->n_partitions; i++) {
        text_add(t, i ? ", " : "");
        part_json(t, r->partitions[i]);
    }
    text_add(t, "]");
}

/* "DIR/proof_3.json"; without a number where the job has one partition. */
static void part_path(char out[PATH_BYTES], const char *dir, const char *word,
                      const result_message *r, size_t idx) {
    if (r->n_partitions > 1) {
        snprintf(out, PATH_BYTES, "%s/%s_%zu.json", dir, word, idx);
    } else {
        snprintf(out, PATH_BYTES, "%s/%s.json", dir, word);
    }
}

/* bellman: where all proofs go, one after the other; NULL: JSON, a file each. */
static enum err write_part(const result_message *r, const char *dir, size_t idx,
                           struct file_out *bellman) {
    char path[PATH_BYTES];
    uint8_t bytes[PROOF_BELLMAN_BYTES_MAX];
    size_t len = 0;
    AUTO(text_free) struct text proof = {0}, publics = {0};
    TRY(outcome_part_json(&proof, &publics, r, idx));
    if (bellman) {
        TRY(outcome_part_bellman(bytes, &len, r, idx));
        TRY(file_out_write(bellman, bytes_of(bytes, len)));
    } else {
        part_path(path, dir, "proof", r, idx);
        TRY(file_write_all(path, text_bytes(&proof)));
    }
    part_path(path, dir, "public", r, idx);
    return file_write_all(path, text_bytes(&publics));
}

static void remove_parts(const result_message *r, const char *dir, size_t count, bool bellman) {
    char path[PATH_BYTES];
    for (size_t i = 0; i < count; i++) {
        part_path(path, dir, "public", r, i);
        unlink(path);
        part_path(path, dir, "proof", r, i);
        if (!bellman) {
            unlink(path);
        }
    }
}

static enum err write_parts(const result_message *r, const char *dir, bool bellman) {
    AUTO(file_out_close) struct file_out *file = NULL;
    char path[PATH_BYTES];
    enum err code = OK;
    size_t i = 0;
    REQUIRE(strlen(dir) < sizeof path - 64, E_USAGE, "the name of the folder is too long");
    TRY(dir_make(dir));
    snprintf(path, sizeof path, "%s/proof.bin", dir);
    TRY(bellman ? file_out_open(&file, path) : OK);
    for (; code == OK && i < r->n_partitions; i++) {
        code = write_part(r, dir, i, file);
    }
    code = code == OK && file ? file_out_commit(file) : code;
    if (code != OK) {
        remove_parts(r, dir, i, bellman);
    }
    return code;
}

static uint64_t proving_ns(const result_message *r) {
    uint64_t ns = 0;
    for (size_t i = 0; i < r->n_partitions; i++) {
        ns += r->partitions[i]->total_ns;
    }
    return ns;
}

/* One line a partition: what each step took, in the order it was done. */
static void print_steps(const result_message *r) {
    for (size_t i = 0; i < r->n_partitions; i++) {
        const part_message *part = r->partitions[i];
        if (r->n_partitions > 1) {
            printf("  proof %zu", i);
        }
        printf("  ms:");
        for (size_t k = 0; k < part->n_steps; k++) {
            printf(" %s %.1f", part->steps[k]->step, (double)part->steps[k]->ns / 1e6);
        }
        puts("");
    }
}

enum err client_deliver(const result_message *r, const struct args *args) {
    const char *dir = args_text(args, "out");
    bool ok = r->status == BELLOWS__V1__STATUS__STATUS_OK,
         bellman = !strcmp(args_text(args, "format"), "bellman");
    if (ok) {
        TRY(write_parts(r, dir, bellman));
    }
    if (args_switch(args, "json")) {
        AUTO(text_free) struct text t = {0};
        text_add(&t, "{");
        client_result_json(&t, r);
        if (ok) {
            text_add(&t, ", \"out\": ");
            text_add_json_string(&t, dir);
        }
        text_add(&t, "}");
        TRY(text_done(&t));
        puts(t.ptr);
    } else if (ok) {
        printf("job %s done: %zu %s, %.3f s on %s (%s); %s/%s\n", r->job_id, r->n_partitions,
               r->n_partitions == 1 ? "proof" : "proofs", (double)proving_ns(r) / 1e9,
               r->n_partitions ? r->partitions[0]->node : "?",
               r->n_partitions ? r->partitions[0]->device : "?", dir,
               bellman                ? "proof.bin"
               : r->n_partitions == 1 ? "proof.json"
                                      : "proof_0.json …");
        print_steps(r);
    }
    return outcome_of(r);
}
