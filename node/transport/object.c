/* Objects, laid out as every NATS client's object store lays them out (ADR-20).
 *
 *   stream OBJ_<bucket>
 *   $O.<bucket>.C.<nuid>          chunks, in stream order
 *   $O.<bucket>.M.<base64 name>   one JSON message: name, nuid, size, chunks, "SHA-256=" digest; rolled up, so only the last
 *                                 one stays. Written last: only it makes an object visible.
 *
 * Putting: chunks are published with a window of acknowledgements, straight from the caller's memory. Their order in the stream
 * is the object's order, and a lost connection may break it; so any error or loss ends the upload, and the caller
 * starts again under a new nuid.
 *
 * The upload learns from the acknowledgements where each chunk lies. Getting is download.c's.
 */
#include "node/transport/ops.h"

#include "node/base/clock.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "node/base/text.h"
#include "proto/limits.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    UPLOAD_CHUNKS_MAX = 32, /* unacknowledged */
    UPLOAD_BYTES_MAX = 32 * 1024 * 1024,
    STEPS_FIRST = 64,
    PAYLOAD_SLACK_BYTES = 4096, /* of max_payload, for protocol and headers */
    META_BYTES_MAX = 16 * 1024,
    DIGEST_TEXT_BYTES = 8 + 44 + 1
};
#define UPLOAD_ACK_WAIT_NS (30 * SECOND_NS)

/* URL-safe base64 with padding. */
static void base64_url(char *out, const void *in, size_t len) {
    EVP_EncodeBlock((unsigned char *)out, in, (int)len);
    for (; *out; out++) {
        *out = *out == '+' ? '-' : *out == '/' ? '_' : *out;
    }
}

static void digest_text(char out[DIGEST_TEXT_BYTES], const struct sha256 *digest) {
    memcpy(out, "SHA-256=", 8);
    base64_url(out + 8, digest->b, sizeof digest->b);
}

static FALLIBLE digest_parse(struct sha256 *out, const char *text) {
    unsigned char raw[48];
    char plain[64];
    size_t len = strlen(text);
    REQUIRE(len == 8 + 44 && strncmp(text, "SHA-256=", 8) == 0, E_FORMAT,
            "object digest \"%.60s\" is not SHA-256", text);
    snprintf(plain, sizeof plain, "%s", text + 8);
    for (char *c = plain; *c; c++) {
        *c = *c == '-' ? '+' : *c == '_' ? '/' : *c;
    }
    REQUIRE(EVP_DecodeBlock(raw, (const unsigned char *)plain, 44) == 33, E_FORMAT,
            "object digest \"%.60s\" is not base64", text);
    memcpy(out->b, raw, sizeof out->b);
    return OK;
}

FALLIBLE object_stream(struct object_subject *out, const char *bucket) {
    TRY(check_name(bucket, "bucket"));
    snprintf(out->text, sizeof out->text, "OBJ_%s", bucket);
    return OK;
}

FALLIBLE object_chunk_subject(struct object_subject *out, const char *bucket, const char *nuid) {
    TRY(check_name(bucket, "bucket"));
    TRY(check_name(nuid, "object nuid"));
    snprintf(out->text, sizeof out->text, "$O.%s.C.%s", bucket, nuid);
    return OK;
}

static FALLIBLE meta_subject(struct object_subject *out, const char *bucket, const char *object) {
    char token[OBJECT_TOKEN_BYTES];
    size_t len = strlen(object);
    TRY(check_name(bucket, "bucket"));
    REQUIRE(len > 0 && len < OBJECT_NAME_BYTES_MAX, E_FORMAT,
            "object name has %zu bytes, want 1 to %d", len, OBJECT_NAME_BYTES_MAX - 1);
    for (size_t i = 0; i < len; i++) { /* clients disagree on how anything else becomes a subject */
        REQUIRE(object[i] >= ' ' && object[i] < 0x7f, E_FORMAT,
                "object name has byte 0x%02x at position %zu: only printable ASCII is portable",
                (unsigned char)object[i], i);
    }
    base64_url(token, object, len);
    snprintf(out->text, sizeof out->text, "$O.%s.M.%s", bucket, token);
    /* The token alone may be longer than what check_subject allows for our own subjects. */
    REQUIRE(strlen(out->text) < SUBJECT_BYTES_MAX, E_FORMAT, "object name is too long: %zu bytes",
            len);
    return OK;
}

FALLIBLE object_bucket_ensure(struct transport *t, const struct object_bucket_config *c) {
    struct object_subject stream, chunks, metas;
    TRY(object_stream(&stream, c->bucket));
    snprintf(chunks.text, sizeof chunks.text, "$O.%s.C.>", c->bucket);
    snprintf(metas.text, sizeof metas.text, "$O.%s.M.>", c->bucket);
    return stream_ensure(t, &(struct stream_config){
                                .name = stream.text,
                                .subjects = {chunks.text, metas.text},
                                .discard_new = true,
                                .allow_rollup = true,
                                .bytes_max = c->bytes_max,
                                .age_max_ns = c->age_max_ns,
                                .replicas = c->replicas,
                                .replace_limits = c->replace_limits,
                            });
}

/* --- The entry of a name --- */

static FALLIBLE parse_meta(struct object_info *out, bool *deleted, struct bytes json) {
    AUTO(json_free) cJSON *meta = NULL;
    const char *name, *nuid, *digest;
    uint64_t chunks = 0;
    struct object_info info = {0};
    REQUIRE(json.len <= META_BYTES_MAX, E_LIMIT, "object entry has %zu bytes, at most %d allowed",
            json.len, META_BYTES_MAX);
    TRY(json_parse(&meta, json, "object entry"));
    *deleted = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(meta, "deleted"));
    if (*deleted) {
        return OK;
    }
    const cJSON *options = cJSON_GetObjectItemCaseSensitive(meta, "options");
    REQUIRE(!cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(options, "link")), E_FORMAT,
            "object entry is a link: links are not followed");
    TRY(json_text_member(&name, meta, "name"));
    TRY(json_text_member(&nuid, meta, "nuid"));
    if (cJSON_HasObjectItem(meta, "size")) {
        TRY(json_number_member(&info.bytes, meta, 0, UINT64_C(1) << 52, "size"));
    }
    if (cJSON_HasObjectItem(meta, "chunks")) {
        TRY(json_number_member(&chunks, meta, 0, UINT32_MAX, "chunks"));
    }
    TRY(json_text_member(&digest, meta, "digest"));
    TRY(digest_parse(&info.sha256, digest));
    REQUIRE(strlen(name) < sizeof info.name && strlen(nuid) < sizeof info.nuid, E_FORMAT,
            "object entry has a name or nuid that is too long");
    info.chunks_count = (uint32_t)chunks;
    memcpy(info.name, name, strlen(name) + 1);
    memcpy(info.nuid, nuid, strlen(nuid) + 1);
    *out = info;
    return OK;
}

/* *sequence: of the entry, in the bucket's stream. */
static FALLIBLE read_entry(struct object_info *out, bool *found, uint64_t *sequence,
                           struct transport *t, const char *bucket, const char *name) {
    struct object_subject stream, subject;
    struct message m = {0};
    bool deleted = false;
    TRY(object_stream(&stream, bucket));
    TRY(meta_subject(&subject, bucket, name));
    TRY(stream_get_last(&m, found, t, stream.text, subject.text));
    if (!*found) {
        return OK;
    }
    enum err err = parse_meta(out, &deleted, m.data);
    *sequence = m.sequence;
    message_done(&m);
    *found = !deleted;
    return err == OK ? OK : err_prefix(err, "bucket %s, object %s", bucket, name);
}

FALLIBLE object_info(struct object_info *out, bool *found, struct transport *t, const char *bucket,
                     const char *name) {
    uint64_t sequence;
    return read_entry(out, found, &sequence, t, bucket, name);
}

static void add_time(struct text *json) {
    uint64_t now = clock_unix_ns();
    time_t seconds = (time_t)(now / SECOND_NS);
    struct tm tm;
    char text[32];
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    text_addf(json, ",\"mtime\":\"%s.%03uZ\"", text, (unsigned)(now % SECOND_NS / 1000000));
}

static FALLIBLE publish_meta(struct transport *t, const char *bucket,
                             const struct object_info *info, size_t chunk_bytes, bool deleted) {
    char digest[DIGEST_TEXT_BYTES];
    struct object_subject subject;
    struct publish_ack ack;
    AUTO(text_free) struct text json = {0};
    digest_text(digest, &info->sha256);
    TRY(meta_subject(&subject, bucket, info->name));
    text_add(&json, "{\"name\":");
    text_add_json_string(&json, info->name);
    text_addf(&json, ",\"options\":{\"max_chunk_size\":%zu},\"bucket\":", chunk_bytes);
    text_add_json_string(&json, bucket);
    text_addf(&json,
              ",\"nuid\":\"%s\",\"size\":%" PRIu64 ",\"chunks\":%" PRIu32 ",\"digest\":\"%s\"",
              info->nuid, info->bytes, info->chunks_count, deleted ? "" : digest);
    add_time(&json);
    text_add(&json, deleted ? ",\"deleted\":true}" : "}");
    TRY(text_done(&json));
    return transport_publish(&ack, t, subject.text, text_bytes(&json),
                             &(struct publish_options){.rollup = true});
}

/* --- Putting --- */

struct object_upload {
    struct transport *t;    /* lent */
    struct pipe *pipe;      /* owned */
    struct sha256_run *run; /* owned */
    char bucket[SUBJECT_BYTES_MAX];
    struct object_subject subject;
    struct object_info info;
    uint64_t losses;
    size_t payload_max, chunk_bytes; /* largest chunk so far */
    uint64_t acked_count, last_sequence;
    uint64_t bytes_in_flight;
    size_t sizes[UPLOAD_CHUNKS_MAX]; /* of chunk i at i mod UPLOAD_CHUNKS_MAX */
    uint32_t *steps;                 /* owned; from chunk i to the next, of the first steps_max */
    size_t steps_max;
    bool scattered, committed, dead;
};

FALLIBLE object_upload_open(struct object_upload **out, struct transport *t, const char *bucket,
                            const char *name) {
    AUTO(object_upload_close) struct object_upload *u = NULL;
    struct transport_health health;
    struct object_subject ignored;
    TRY(meta_subject(&ignored, bucket, name));
    TRY(mem_new(&u, 1, sizeof *u));
    u->t = t;
    u->losses = t->ops->losses(t);
    transport_health(&health, t);
    u->payload_max = health.payload_bytes_max > 2 * PAYLOAD_SLACK_BYTES
                         ? (size_t)health.payload_bytes_max - PAYLOAD_SLACK_BYTES
                         : PAYLOAD_SLACK_BYTES;
    snprintf(u->bucket, sizeof u->bucket, "%s", bucket);
    snprintf(u->info.name, sizeof u->info.name, "%s", name);
    transport_nuid(u->info.nuid); /* 22 characters, as other clients make them */
    TRY(object_chunk_subject(&u->subject, bucket, u->info.nuid));
    TRY(sha256_new(&u->run));
    TRY(t->ops->pipe_open(&u->pipe, t));
    *out = TAKE(u);
    return OK;
}

static FALLIBLE check_loss(const struct object_upload *u) {
    REQUIRE(u->t->ops->losses(u->t) == u->losses, E_NET,
            "upload of %s to %s: the connection was lost in the middle; start it again",
            u->info.name, u->bucket);
    return OK;
}

static FALLIBLE note_sequence(struct object_upload *u, uint64_t sequence) {
    uint64_t step = sequence - u->last_sequence, i = u->acked_count - 1;
    if (u->acked_count == 0) {
        u->info.first_sequence = sequence;
    } else if (i < OBJECT_STEPS_MAX) {
        if (i == u->steps_max) {
            size_t more = u->steps_max ? 2 * u->steps_max : STEPS_FIRST;
            uint32_t *steps = mem_grow(u->steps, more * sizeof *steps);
            REQUIRE(steps, E_LIMIT, "no memory for the places of %zu chunks", more);
            u->steps = steps;
            u->steps_max = more;
        }
        u->steps[i] = step < UINT32_MAX ? (uint32_t)step : UINT32_MAX; /* a hint, and no more */
        u->scattered |= step != 1;
    }
    u->last_sequence = sequence;
    return OK;
}

struct object_steps object_upload_steps(const struct object_upload *u) {
    bool kept = u->committed && u->scattered && u->acked_count - 1 <= OBJECT_STEPS_MAX;
    return kept ? (struct object_steps){u->steps, (size_t)u->acked_count - 1}
                : (struct object_steps){NULL, 0};
}

/* Takes acknowledgements until at most `chunks` of them and `bytes` are due. */
static FALLIBLE await_acks(struct object_upload *u, uint64_t chunks, uint64_t bytes) {
    while (u->info.chunks_count - u->acked_count > chunks || u->bytes_in_flight > bytes) {
        struct pipe_answer a;
        TRY(u->t->ops->pipe_next(&a, u->pipe, UPLOAD_ACK_WAIT_NS));
        if (a.fault.code != OK) {
            return err_prefix(fault_raise(&a.fault), "upload of %s to %s", u->info.name, u->bucket);
        }
        REQUIRE(a.token == u->acked_count && a.ack.sequence > u->last_sequence, E_NET,
                "upload of %s to %s: chunk %" PRIu64 " was stored out of order", u->info.name,
                u->bucket, a.token);
        TRY(note_sequence(u, a.ack.sequence));
        u->bytes_in_flight -= u->sizes[u->acked_count % UPLOAD_CHUNKS_MAX];
        u->acked_count++;
    }
    return OK;
}

static FALLIBLE put_chunk(struct object_upload *u, struct bytes piece) {
    TRY(check_loss(u));
    TRY(await_acks(u, UPLOAD_CHUNKS_MAX - 1,
                   piece.len < UPLOAD_BYTES_MAX ? UPLOAD_BYTES_MAX - piece.len : 0));
    uint64_t idx = u->info.chunks_count;
    TRY(u->t->ops->pipe_publish(u->pipe, idx, u->subject.text, piece, NULL));
    u->sizes[idx % UPLOAD_CHUNKS_MAX] = piece.len;
    u->bytes_in_flight += piece.len;
    u->info.chunks_count++;
    u->info.bytes += piece.len;
    u->chunk_bytes = piece.len > u->chunk_bytes ? piece.len : u->chunk_bytes;
    return OK;
}

static FALLIBLE put_all(struct object_upload *u, struct bytes data) {
    TRY(sha256_add(u->run, data));
    while (data.len > 0) {
        size_t len = data.len < u->payload_max ? data.len : u->payload_max;
        TRY(put_chunk(u, bytes_of(data.ptr, len)));
        data.ptr += len;
        data.len -= len;
    }
    return OK;
}

FALLIBLE object_upload_chunk(struct object_upload *u, struct bytes data) {
    REQUIRE(!u->dead, E_NET, "upload of %s to %s failed before; start it again", u->info.name,
            u->bucket);
    enum err err = put_all(u, data);
    u->dead = err != OK;
    return err;
}

/* The same bytes under the same name, by somebody who was faster: readers may be at them already. */
static bool overtaken(const struct object_upload *u, const struct object_info *other,
                      uint64_t other_sequence) {
    return u->info.chunks_count > 0 && other_sequence > u->info.first_sequence &&
           other->bytes == u->info.bytes &&
           !memcmp(&other->sha256, &u->info.sha256, sizeof other->sha256);
}

static FALLIBLE commit(struct object_info *out, struct object_upload *u) {
    struct object_info older;
    bool replaces;
    uint64_t sequence = 0;
    TRY(await_acks(u, 0, 0));
    TRY(check_loss(u));
    TRY(sha256_end(&u->info.sha256, u->run));
    TRY(read_entry(&older, &replaces, &sequence, u->t, u->bucket, u->info.name));
    if (replaces && overtaken(u, &older, sequence)) {
        *out = older; /* and closing purges this upload's chunks */
        return OK;
    }
    TRY(publish_meta(u->t, u->bucket, &u->info,
                     u->chunk_bytes ? u->chunk_bytes : OBJECT_CHUNK_BYTES, false));
    u->committed = true;
    if (replaces) {
        IGNORE(object_purge(u->t, u->bucket, older.nuid, NULL)); /* else left to the bucket's age */
    }
    *out = u->info;
    return OK;
}

FALLIBLE object_upload_commit(struct object_info *out, struct object_upload *u) {
    REQUIRE(!u->dead, E_NET, "upload of %s to %s failed before; start it again", u->info.name,
            u->bucket);
    enum err err = commit(out, u);
    u->dead = true;
    return err;
}

void object_upload_close(struct object_upload **upload) {
    struct object_upload *u = *upload;
    if (u) {
        if (u->pipe) {
            u->t->ops->pipe_close(u->pipe);
        }
        if (!u->committed && u->info.chunks_count > 0 && u->t->ops->connected(u->t)) {
            struct fault first = fault_of(E_NET); /* why it was not committed is what people need */
            IGNORE(object_purge(u->t, u->bucket, u->info.nuid, NULL));
            IGNORE(fault_raise(&first));
        }
        sha256_free(&u->run);
        mem_free(u->steps);
        mem_free(u);
        *upload = NULL;
    }
}

/* --- Whole objects --- */

FALLIBLE object_purge(struct transport *t, const char *bucket, const char *nuid, const char *name) {
    struct object_subject stream, subject;
    struct object_info info;
    bool found = false;
    TRY(object_stream(&stream, bucket));
    TRY(object_chunk_subject(&subject, bucket, nuid));
    if (name) {
        TRY(object_info(&info, &found, t, bucket, name));
    }
    if (found && strcmp(info.nuid, nuid) == 0) {
        info.bytes = 0;
        info.chunks_count = 0;
        TRY(publish_meta(t, bucket, &info, OBJECT_CHUNK_BYTES, true));
    }
    return stream_purge(NULL, t, stream.text, subject.text);
}

FALLIBLE object_is_whole(bool *whole, struct transport *t, const char *bucket,
                         const struct object_info *info) {
    AUTO(object_download_close) struct object_download *d = NULL;
    AUTO(message_done) struct message first = {0};
    bool end = false;
    struct object_download_options options = {.bucket = bucket,
                                              .nuid = info->nuid,
                                              .bytes = info->bytes,
                                              .window = 1,
                                              .wait_ns = 5 * SECOND_NS};
    TRY(object_download_open(&d, t, &options));
    enum err code = object_download_next(&first, &end, d);
    if (code == OK || code == E_FORMAT) {
        *whole = code == OK;
        return OK;
    }
    return code;
}

FALLIBLE object_put_bytes(struct object_info *out, struct transport *t, const char *bucket,
                          const char *name, struct bytes data) {
    AUTO(object_upload_close) struct object_upload *u = NULL;
    TRY(object_upload_open(&u, t, bucket, name));
    while (data.len > 0) {
        size_t len = data.len < OBJECT_CHUNK_BYTES ? data.len : OBJECT_CHUNK_BYTES;
        TRY(object_upload_chunk(u, bytes_of(data.ptr, len)));
        data.ptr += len;
        data.len -= len;
    }
    return object_upload_commit(out, u);
}

FALLIBLE object_get(struct object_info *out, bool *found, struct transport *t, const char *bucket,
                    const char *name, uint64_t bytes_max, object_sink *write, void *ctx) {
    AUTO(object_download_close) struct object_download *d = NULL;
    struct object_info info;
    TRY(object_info(&info, found, t, bucket, name));
    if (!*found) {
        return OK;
    }
    REQUIRE(info.bytes <= bytes_max, E_LIMIT,
            "object %s in %s has %" PRIu64 " bytes, at most %" PRIu64 " allowed here", name, bucket,
            info.bytes, bytes_max);
    TRY(object_download_open(
        &d, t,
        &(struct object_download_options){
            .bucket = bucket, .nuid = info.nuid, .bytes = info.bytes, .sha256 = &info.sha256}));
    for (bool end = false; !end;) {
        struct message m = {0};
        TRY(object_download_next(&m, &end, d));
        enum err err = end ? OK : write(ctx, m.data);
        message_done(&m);
        TRY(err);
    }
    *out = info;
    return OK;
}
