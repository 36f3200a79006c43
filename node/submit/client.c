/* The connection is opened once for all that a command or a program asks of the fleet; keys go up in the clients' own chunks, so that any
 * NATS client can fetch them.
 */
#include "node/submit/client.h"

#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/key/native.h"
#include "proto/holder.h"
#include "proto/unpack.h"

static const uint64_t CONTROL_WAIT_NS = UINT64_C(5000000000);
static const uint64_t UNKNOWN_WAIT_NS = UINT64_C(3000000000);
static const uint64_t PAUSE_NS = UINT64_C(100000000);

/* One question spares the wait for an answer that nobody can give. A role may not ask for a stream's state, which holds
 * everybody's subjects; it may read the lease. */
static enum err check_fleet(const struct client *c) {
    struct stream_info info;
    if (c->has_role) {
        AUTO(kv_entry_done) struct kv_entry lease = {0};
        struct subject lead = kv_bucket_name(&c->space, "lead");
        bool found = false;
        enum err code = kv_get(&lease, &found, c->transport, lead.text, "leader");
        struct fault fault = fault_of(code);
        REQUIRE(code == OK, code,
                "no fleet lives on %.100s yet (prefix %s), or it is not shown to us: %.200s",
                c->server_shown, c->space.prefix, fault.detail);
        return OK;
    }
    struct subject bucket = kv_bucket_name(&c->space, "jobs");
    char name[SUBJECT_BYTES_MAX + 4];
    snprintf(name, sizeof name, "KV_%s", bucket.text);
    enum err code = stream_info(&info, c->transport, name);
    REQUIRE(code != E_NET, E_NET,
            "no fleet lives on %s yet (prefix %s): start `bellows coordinator` there",
            c->server_shown, c->space.prefix);
    return code;
}

/* Leaves the tenant as it is where the certificate is another role's, or no role's. */
static enum err take_certificates_tenant(struct client *c, const char *cert_file) {
    char name[ROLE_TEXT_BYTES + 1];
    struct role_holder holder;
    TRY(transport_certificate_name(name, sizeof name, cert_file));
    if (role_holder_parse(&holder, name) == OK && holder.role == ROLE_SUBMITTER) {
        snprintf(c->tenant, sizeof c->tenant, "%s", holder.tenant);
    }
    return OK;
}

enum err client_connect(struct client *out, const struct client_options *options) {
    AUTO(client_close) struct client c = {0};
    const struct transport_options *way = &options->transport;
    REQUIRE(strlen(way->url) < sizeof c.server, E_USAGE,
            "the server's address has %zu bytes, at most %zu are taken", strlen(way->url),
            sizeof c.server - 1);
    if (options->tenant) {
        TRY(id_check(options->tenant, "tenant"));
        snprintf(c.tenant, sizeof c.tenant, "%s", options->tenant);
    }
    if (options->tenant_by_certificate && way->tls.cert_file) {
        TRY(take_certificates_tenant(&c, way->tls.cert_file));
    }
    snprintf(c.server, sizeof c.server, "%s", way->url);
    transport_url_shown(c.server_shown, sizeof c.server_shown, way->url);
    c.has_role = way->creds_file || way->tls.cert_file || way->user || strchr(way->url, '@');
    TRY(subject_space_init(&c.space, options->prefix));
    enum err code = transport_open(&c.transport, way);
    if (code != OK) {
        struct fault fault = fault_of(code);
        FAIL(code, "%.400s%s%s", fault.detail, options->hint ? "; " : "",
             options->hint ? options->hint : "");
    }
    TRY(check_fleet(&c));
    *out = c;
    c = (struct client){0};
    return OK;
}

void client_close(struct client *c) {
    transport_close(&c->transport);
    *c = (struct client){0};
}

struct job_place client_place(const struct client *c, const char *job) {
    return (struct job_place){c->transport, &c->space, {c->tenant, job}};
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

/* --- Cancelling --- */

/* The last that is meant: on a bad line a request that was asked twice may come again when the job has been sent again under its id, and must
 * not end that one. A job that has ended may have been sent again just before. */
static enum err generation_meant(uint64_t *out, const struct client *c, const char *job) {
    struct job_place at = client_place(c, job);
    AUTO(record_slot_done) struct record_slot slot = {0};
    bool found = false;
    TRY(record_load(&slot, &found, &at));
    const struct record *r = &slot.record;
    *out = !found ? 1 : r->generation + (job_state_is_open(r->state) ? 0 : 1);
    return OK;
}

static enum err ask_cancel(Bellows__V1__ControlReply **reply, const struct client *c,
                           const char *job, const char *reason) {
    Bellows__V1__Control m = BELLOWS__V1__CONTROL__INIT;
    struct subject subject = subject_ctl_tenant(&c->space, c->tenant, "cancel");
    m.tenant = (char *)(uintptr_t)c->tenant;
    m.job_id = (char *)(uintptr_t)job;
    m.reason = (char *)(uintptr_t)(reason ? reason : "");
    enum err code = generation_meant(&m.generation, c, job);
    code = code == OK ? client_control(reply, c, &subject, &m) : code;
    REQUIRE(code != E_NET && code != E_TIMEOUT, E_NET,
            "no coordinator answers on %s; nothing was cancelled: %.200s", c->server_shown,
            fault_of(code).detail);
    return code;
}

enum err client_cancel(enum job_state *state, const struct client *c, const char *job,
                       const char *reason) {
    AUTO(message_free) Bellows__V1__ControlReply *reply = NULL;
    uint64_t start_ns = clock_ns();
    while (!reply || !reply->ok) {
        message_free(&reply);
        enum err code = ask_cancel(&reply, c, job, reason);
        bool late = clock_ns() - start_ns > UNKNOWN_WAIT_NS;
        if (code != E_NET || late) {
            TRY(code);
        }
        if (late && !reply->ok) {
            enum err refusal = E_INTERNAL;
            (void)err_from_name(&refusal, reply->error_name);
            FAIL(refusal, "%s", reply->error_detail);
        }
        if (!reply || !reply->ok) {
            clock_sleep_ns(PAUSE_NS);
        }
    }
    *state = (enum job_state)reply->state;
    return OK;
}

/* --- Keys --- */

static enum err register_key(const struct client *c, struct key *key, const struct sha256 *digest,
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
    m.format = (char *)(uintptr_t)(shape->format == KEY_FORMAT_ZKEY ? "zkey" : "native");
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

static enum err upload_key(struct object_info *info, const struct client *c, struct key *key,
                           const char *hex) {
    AUTO(file_map_close) struct file_map map = {0};
    AUTO(object_upload_close) struct object_upload *upload = NULL;
    struct subject bucket = bucket_keys(&c->space);
    struct bytes file = key_streamed(key);
    if (!file.len) {
        TRY(file_map_open(&map, key_path(key)));
        file = map.bytes;
    }
    TRY(object_upload_open(&upload, c->transport, bucket.text, hex));
    for (size_t at = 0; at < file.len; at += OBJECT_CHUNK_BYTES) {
        size_t left = file.len - at;
        TRY(object_upload_chunk(
            upload,
            bytes_of(file.ptr + at, left < OBJECT_CHUNK_BYTES ? left : OBJECT_CHUNK_BYTES)));
    }
    return object_upload_commit(info, upload);
}

/* *by_name: it is known, and nodes are said to have its file. */
static enum err find_key(bool *known, bool *by_name, const struct client *c, const char *hex) {
    struct subject registry = kv_bucket_name(&c->space, "keys");
    AUTO(kv_entry_done) struct kv_entry entry = {0};
    AUTO(message_free) Bellows__V1__KeyRecord *m = NULL;
    TRY(kv_get(&entry, known, c->transport, registry.text, hex));
    if (*known) {
        TRY(message_unpack(&m, &bellows__v1__key_record__descriptor, entry.value,
                           KEY_RECORD_BYTES_MAX, "key record"));
        *by_name = !m->nuid[0];
    }
    return OK;
}

enum err client_push_key(bool *stored, const struct client *c, struct key *key,
                         const struct sha256 *digest, enum key_push what) {
    char hex[SHA256_HEX_BYTES];
    struct subject bucket = bucket_keys(&c->space);
    struct object_info info = {0};
    bool is_there = false, known = false, by_name = false;
    TRY(key_knows_circuit(key));
    sha256_hex(hex, digest);
    TRY(find_key(&known, &by_name, c, hex));
    bool wanted = what == KEY_PUSH_FILE || (what == KEY_PUSH_MISSING && !by_name);
    if (wanted) {
        TRY(object_info(&info, &is_there, c->transport, bucket.text, hex));
    }
    if (is_there && what == KEY_PUSH_FILE) { /* who says so may want it mended */
        is_there = !memcmp(&info.sha256, digest, sizeof *digest);
        if (is_there) { /* if it may look */
            IGNORE(object_is_whole(&is_there, c->transport, bucket.text, &info));
        }
    }
    if (wanted && !is_there) {
        enum err code = upload_key(&info, c, key, hex);
        REQUIRE(
            code != E_NET || !c->has_role, E_NET,
            "the fleet has no key %.16s, and storing it failed: %.200s; if this role may not, an "
            "operator does it with `bellows key push`",
            hex, fault_of(code).detail);
        TRY(code);
        REQUIRE(!memcmp(&info.sha256, digest, sizeof *digest), E_IO,
                "%s changed while it was stored; try again", key_path(key));
    }
    if (!known || (by_name && wanted)) {
        TRY(register_key(c, key, digest, &info));
    }
    *stored = wanted && !is_there;
    return OK;
}
