/* Results come over two ways: the subject on which they are stored, heard live, and a look into the store now and then, so that nothing is
 * missed when the live message was. The reply subject brings refusals, which have no place in the store.
 */
#include "node/cli/client.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/base/quantity.h"
#include "node/base/queue.h"
#include "node/daemon/node.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

static const char DEFAULT_SERVER[] = "nats://127.0.0.1:4222";
static const uint64_t LOOK_NS = UINT64_C(1000000000);
static const uint64_t GRACE_NS = UINT64_C(5000000000);
static const uint64_t CONTROL_WAIT_NS = UINT64_C(5000000000);
enum { HEARD_MAX = 16, PATH_BYTES = 4096 };

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

bool client_has_role(const struct client *c) {
    return c->config.tls_cert[0] || c->config.creds[0];
}

/* One question spares the wait for an answer that nobody can give. A role may not ask for a stream's state, which holds
 * everybody's subjects; it may read the lease. */
static enum err check_fleet(const struct client *c) {
    struct stream_info info;
    if (client_has_role(c)) {
        AUTO(kv_entry_done) struct kv_entry lease = {0};
        struct subject lead = kv_bucket_name(&c->space, "lead");
        bool found = false;
        return kv_get(&lease, &found, c->transport, lead.text, "leader");
    }
    struct subject bucket = kv_bucket_name(&c->space, "jobs");
    char name[SUBJECT_BYTES_MAX + 4];
    snprintf(name, sizeof name, "KV_%s", bucket.text);
    enum err code = stream_info(&info, c->transport, name);
    REQUIRE(code != E_NET, E_NET,
            "no fleet lives on %s yet (prefix %s): start `bellows coordinator` there", c->server,
            c->space.prefix);
    return code;
}

void client_server(char *out, size_t out_bytes, const struct config *config) {
    snprintf(out, out_bytes, "%s", config->server);
    if (!strcmp(out, DEFAULT_SERVER)) {
        client_find_dev(out, out_bytes);
    }
}

/* Who names no tenant is the one that the certificate names. */
static enum err find_tenant(struct client *c, const struct args *args) {
    const char *tenant = args_has(args, "tenant") ? args_text(args, "tenant") : TENANT_DEFAULT;
    struct role_holder holder;
    if (!tenant) { /* a list of all tenants */
        c->tenant[0] = 0;
        return OK;
    }
    if (!strcmp(tenant, TENANT_DEFAULT) && c->config.tls_cert[0] &&
        certs_holder_of(&holder, c->config.tls_cert) == OK && holder.role == ROLE_SUBMITTER) {
        tenant = holder.tenant;
    }
    TRY(id_check(tenant, "tenant"));
    snprintf(c->tenant, sizeof c->tenant, "%s", tenant);
    return OK;
}

enum err client_open(struct client *out, const struct args *args) {
    AUTO(client_close) struct client c = {0};
    TRY(args_config(&c.config, args));
    TRY(find_tenant(&c, args));
    TRY(subject_space_init(&c.space, c.config.prefix));
    client_server(c.server, sizeof c.server, &c.config);
    struct transport_options options = client_transport_options(&c.config);
    options.url = c.server;
    options.name = args_command(args)->name;
    options.send_asap = true;
    enum err code = transport_open(&c.transport, &options);
    if (code != OK) {
        struct fault fault = fault_of(code);
        FAIL(code,
             "%.400s; --server or BELLOWS_SERVER names another server, `bellows dev` starts one",
             fault.detail);
    }
    TRY(check_fleet(&c));
    *out = c;
    c = (struct client){0};
    return OK;
}

void client_close(struct client *c) {
    transport_close(&c->transport);
    config_free(&c->config);
    *c = (struct client){0};
}

struct job_place client_place(const struct client *c, const char *job) {
    return (struct job_place){c->transport, &c->space, {c->tenant, job}};
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

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

enum err client_control(Bellows__V1__ControlReply **reply, const struct client *c,
                        const struct subject *subject, Bellows__V1__Control *request) {
    AUTO(bytes_free) struct bytes_mut packed = {0};
    AUTO(message_done) struct message answer = {0};
    request->version = WIRE_VERSION;
    TRY(message_pack(&packed, request, CONTROL_BYTES_MAX, "control request"));
    TRY(transport_request(&answer, c->transport, subject->text, bytes_of(packed.ptr, packed.len),
                          CONTROL_WAIT_NS));
    return message_unpack(reply, &bellows__v1__control_reply__descriptor, answer.data,
                          CONTROL_BYTES_MAX, "control reply");
}

/* --- Keys --- */

static enum err register_key(struct client *c, struct key *key, const struct sha256 *digest,
                             const struct object_info *info) {
    const struct key_shape *shape = key_shape(key);
    Bellows__V1__KeyRecord m = BELLOWS__V1__KEY_RECORD__INIT;
    AUTO(bytes_free) struct bytes_mut packed = {0};
    char hex[SHA256_HEX_BYTES];
    struct subject bucket = kv_bucket_name(&c->space, "keys");
    uint64_t revision;
    sha256_hex(hex, digest);
    m.version = WIRE_VERSION;
    m.digest = (ProtobufCBinaryData){SHA256_BYTES, (uint8_t *)(uintptr_t)digest->b};
    m.curve = shape->curve;
    m.file_bytes = shape->file_bytes;
    m.format = (char *)(uintptr_t)(shape->format == KEY_FORMAT_ZKEY ? "zkey" : "bellman");
    m.wires_count = shape->wires_count;
    m.public_count = shape->public_count;
    m.domain_size = shape->domain_size;
    m.terms_a_count = shape->terms_count[0];
    m.terms_b_count = shape->terms_count[1];
    m.added_unix_ms = clock_unix_ns() / 1000000;
    m.nuid = (char *)(uintptr_t)info->nuid;
    TRY(message_pack(&packed, &m, KEY_RECORD_BYTES_MAX, "key record"));
    return kv_put(&revision, c->transport, bucket.text, hex, bytes_of(packed.ptr, packed.len));
}

static enum err upload_key(struct object_info *info, struct client *c, struct key *key,
                           const char *hex) {
    AUTO(file_map_close) struct file_map map = {0};
    AUTO(object_upload_close) struct object_upload *upload = NULL;
    struct subject bucket = bucket_keys(&c->space);
    TRY(file_map_open(&map, key_path(key)));
    TRY(object_upload_open(&upload, c->transport, bucket.text, hex));
    for (size_t at = 0; at < map.bytes.len; at += OBJECT_CHUNK_BYTES) {
        size_t left = map.bytes.len - at;
        TRY(object_upload_chunk(
            upload,
            bytes_of(map.bytes.ptr + at, left < OBJECT_CHUNK_BYTES ? left : OBJECT_CHUNK_BYTES)));
    }
    return object_upload_commit(info, upload);
}

enum err client_push_key(bool *stored, struct client *c, struct key *key,
                         const struct sha256 *digest) {
    char hex[SHA256_HEX_BYTES];
    struct subject bucket = bucket_keys(&c->space), registry = kv_bucket_name(&c->space, "keys");
    struct object_info info;
    AUTO(kv_entry_done) struct kv_entry entry = {0};
    bool is_there = false, registered = false;
    REQUIRE(key_shape(key)->format != KEY_FORMAT_NATIVE, E_USAGE,
            "%s: keys in the native layout stay on their machine; give the key it was made from",
            key_path(key));
    sha256_hex(hex, digest);
    TRY(object_info(&info, &is_there, c->transport, bucket.text, hex));
    if (!is_there) {
        enum err code = upload_key(&info, c, key, hex);
        REQUIRE(
            code != E_NET || !client_has_role(c), E_NET,
            "the fleet has no key %.16s, and storing it failed: %.200s; if this role may not, an "
            "operator does it with `bellows key push`",
            hex, fault_of(code).detail);
        TRY(code);
        REQUIRE(!memcmp(&info.sha256, digest, sizeof *digest), E_IO,
                "%s changed while it was stored; try again", key_path(key));
    }
    TRY(kv_get(&entry, &registered, c->transport, registry.text, hex));
    if (!registered) {
        TRY(register_key(c, key, digest, &info));
    }
    *stored = !is_there;
    return OK;
}

/* --- Waiting --- */

struct waiter {
    const struct client *client; /* lent */
    char job[ID_BYTES_MAX + 1];
    struct subscription *done, *reply; /* owned */
    struct queue *heard;               /* owned; of struct message */
};

static void on_result(void *ctx, struct message *m) {
    struct waiter *w = ctx;
    if (queue_try_put(w->heard, m) == OK) {
        *m = (struct message){0};
    }
}

enum err waiter_open(struct waiter **out, const struct client *c, const char *job,
                     const char *reply_subject) {
    AUTO(waiter_close) struct waiter *w = NULL;
    TRY(mem_new(&w, 1, sizeof *w));
    w->client = c;
    snprintf(w->job, sizeof w->job, "%s", job);
    TRY(queue_new(&w->heard, HEARD_MAX, sizeof(struct message)));
    struct subscribe_options options = {.handler = on_result, .handler_ctx = w};
    struct subject done = filter_done_of(&c->space, (struct job_name){c->tenant, w->job});
    TRY(transport_subscribe(&w->done, c->transport, done.text, &options));
    if (reply_subject) {
        TRY(transport_subscribe(&w->reply, c->transport, reply_subject, &options));
    }
    *out = TAKE(w);
    return OK;
}

void waiter_close(struct waiter **w) {
    if (!*w) {
        return;
    }
    subscription_close(&(*w)->done);
    subscription_close(&(*w)->reply);
    struct message m;
    while ((*w)->heard && queue_length((*w)->heard) > 0 && queue_take((*w)->heard, &m, 0) == OK) {
        message_done(&m);
    }
    queue_free(&(*w)->heard);
    mem_free_ptr(w);
}

/* A look into the store: *out if it is there; *known: the fleet has heard of the job. */
static enum err look(result_message **out, bool *known, struct waiter *w, uint64_t generation) {
    struct job_place at = client_place(w->client, w->job);
    AUTO(record_slot_done) struct record_slot slot = {0};
    bool found = false;
    TRY(record_load(&slot, known, &at));
    if (!generation) {
        generation = *known ? slot.record.generation : 1;
    }
    return result_fetch(out, &found, &at, generation);
}

static enum err take_heard(result_message **out, struct waiter *w, uint64_t generation,
                           uint64_t wait_ns) {
    AUTO(message_done) struct message m = {0};
    AUTO(message_free) result_message *result = NULL;
    if (queue_take(w->heard, &m, wait_ns) == OK && result_unpack(&result, m.data) == OK &&
        !strcmp(result->job_id, w->job) && (!generation || result->generation == generation)) {
        *out = TAKE(result);
    }
    return OK;
}

enum err waiter_wait(result_message **out, struct waiter *w, uint64_t generation, bool published,
                     uint64_t limit_ns) {
    uint64_t start_ns = clock_ns();
    AUTO(message_free) result_message *result = NULL;
    while (!result) {
        bool known = false;
        enum err code = look(&result, &known, w, generation);
        uint64_t waited_ns = clock_ns() - start_ns;
        if (code != OK && err_class(code) != CLASS_WORLD) {
            return code; /* a server that is away for a moment is waited for */
        }
        REQUIRE(code != OK || known || published || result || waited_ns < GRACE_NS, E_RANGE,
                "tenant %s has no job %s", w->client->tenant, w->job);
        REQUIRE(result || !limit_ns || waited_ns < limit_ns, E_TIMEOUT,
                "job %s has no result after %.1f s%s; it goes on: `bellows wait %s`", w->job,
                (double)waited_ns / 1e9,
                known ? "" : ", and no coordinator has taken it in: is one running?", w->job);
        if (!result) {
            uint64_t left_ns = limit_ns ? limit_ns - waited_ns : LOOK_NS;
            TRY(take_heard(&result, w, generation, left_ns < LOOK_NS ? left_ns : LOOK_NS));
        }
    }
    *out = TAKE(result);
    return OK;
}

/* --- Delivering --- */

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

static enum err write_part(const part_message *part, const struct curve *c, const char *dir,
                           size_t idx, size_t count) {
    char number[24] = "", path[PATH_BYTES];
    struct proof proof;
    AUTO(mem_free_ptr) struct scalar *publics = NULL;
    AUTO(text_free) struct text proof_text = {0}, public_text = {0};
    size_t publics_count = 0;
    REQUIRE(part->proof, E_FORMAT, "the result holds no proof of partition %zu", idx);
    TRY(proof_from_message(&proof, &publics, &publics_count, c, part->proof));
    TRY(proof_write_json(&proof_text, &proof));
    TRY(public_write_json(&public_text, publics, publics_count));
    if (count > 1) {
        snprintf(number, sizeof number, "_%zu", idx);
    }
    REQUIRE(strlen(dir) < sizeof path - 64, E_USAGE, "the name of the folder is too long");
    snprintf(path, sizeof path, "%s/proof%s.json", dir, number);
    TRY(file_write_all(path, text_bytes(&proof_text)));
    snprintf(path, sizeof path, "%s/public%s.json", dir, number);
    return file_write_all(path, text_bytes(&public_text));
}

static enum err write_parts(const result_message *r, const char *dir) {
    const struct curve *c = curve_by_id((enum curve_id)r->curve);
    REQUIRE(c, E_FORMAT, "the result is on curve %d, which this program does not know",
            (int)r->curve);
    TRY(dir_make(dir));
    for (size_t i = 0; i < r->n_partitions; i++) {
        TRY(write_part(r->partitions[i], c, dir, i, r->n_partitions));
    }
    return OK;
}

static uint64_t proving_ns(const result_message *r) {
    uint64_t ns = 0;
    for (size_t i = 0; i < r->n_partitions; i++) {
        ns += r->partitions[i]->total_ns;
    }
    return ns;
}

static enum err own_error(const result_message *r) {
    enum err code = E_INTERNAL;
    switch (r->status) {
    case BELLOWS__V1__STATUS__STATUS_OK:
        return OK;
    case BELLOWS__V1__STATUS__STATUS_CANCELLED:
        code = E_CANCELLED;
        break;
    case BELLOWS__V1__STATUS__STATUS_EXPIRED:
        code = E_DEADLINE;
        break;
    default:
        if (r->error) {
            (void)err_from_name(&code, r->error->name);
        }
    }
    FAIL(code, "job %s %s: %s", r->job_id, status_name(r->status),
         r->error ? r->error->detail : "no reason given");
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

enum err client_deliver(const result_message *r, const char *dir, bool json) {
    bool ok = r->status == BELLOWS__V1__STATUS__STATUS_OK;
    if (ok) {
        TRY(write_parts(r, dir));
    }
    if (json) {
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
               r->n_partitions == 1 ? "proof.json" : "proof_0.json …");
        print_steps(r);
    }
    return own_error(r);
}
