/* bellows submit: one job, a partition per witness.
 *
 *   open key and witnesses, refuse what cannot fit ─ connect ─ key into the fleet if absent ─ bodies: inline while they are small, else
 *   objects ─ publish the descriptor ─ print the job's id ─ --wait: the result, its files, its exit code
 *
 * Sending again with the same --job is the same job: the fleet answers with the first result.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/quantity.h"
#include "node/base/rng.h"
#include "node/cli/backend_args.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"
#include "node/cli/screen.h"
#include "proto/body.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { INLINE_ALL_MAX = JOB_BYTES_MAX - 32 * 1024, PUBLISH_TRIES = 5, UPLOAD_TRIES = 3 };

struct part_draft {          /* one partition on its way */
    struct witness witness;  /* owned */
    Bellows__V1__Body *body; /* owned: mem_free */
    struct bytes_mut frames; /* owned: the inline body */
    Bellows__V1__Partition partition;
    char object_name[192];
    struct object_info object;
    struct subject bucket; /* lent to body, like the names above */
};

struct submission {
    struct key *key; /* owned (ref) */
    struct sha256 digest;
    struct client client;     /* owned */
    struct part_draft *parts; /* owned */
    size_t parts_count;
    char job_id[ID_BYTES_MAX + 1];
    char reply[SUBJECT_BYTES_MAX];
    uint64_t generation, inline_left;
    uint32_t priority;
    uint64_t deadline_unix_ms;
    const char *label;
    struct waiter *waiter; /* owned */
    bool json, wait, bucket_made;
};

static void submission_done(struct submission *s) {
    waiter_close(&s->waiter);
    for (size_t i = 0; i < s->parts_count; i++) {
        witness_close(&s->parts[i].witness);
        mem_free(s->parts[i].body);
        if (s->parts[i].frames.ptr) {
            mem_wipe(s->parts[i].frames.ptr, s->parts[i].frames.len);
        }
        mem_free(s->parts[i].frames.ptr);
    }
    mem_free(s->parts);
    client_close(&s->client);
    key_unref(&s->key);
}

/* --- Before the network --- */

static enum err read_priority(uint32_t *out, const char *word) {
    static const char *const words[JOB_PRIORITY_COUNT] = {"urgent", "high", "normal", "low"};
    for (uint32_t i = 0; i < JOB_PRIORITY_COUNT; i++) {
        if (!strcmp(words[i], word)) {
            *out = i;
        }
    }
    return OK;
}

static enum err read_deadline(uint64_t *out, const char *text) {
    uint64_t span_ns = 0;
    if (!text) {
        return OK;
    }
    enum err code = quantity_span_ns(&span_ns, text);
    REQUIRE(code == OK && span_ns > 0, E_USAGE, "--deadline %s: a time from now, like 90s or 5m",
            text);
    *out = (clock_unix_ns() + span_ns) / 1000000;
    return OK;
}

/* 26 characters, ordered by time, unpredictable at the end. */
static enum err make_job_id(char out[ID_BYTES_MAX + 1]) {
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    uint8_t random[16];
    uint64_t ms = clock_unix_ns() / 1000000;
    TRY(rng_os(random, sizeof random));
    for (int i = 9; i >= 0; i--) {
        out[i] = digits[ms & 31];
        ms >>= 5;
    }
    for (int i = 0; i < 16; i++) {
        out[10 + i] = digits[random[i] & 31];
    }
    out[26] = 0;
    return OK;
}

static enum err open_files(struct submission *s, const struct args *args) {
    struct key_options options = {.allow_insecure = args_switch(args, "allow-insecure-keys")};
    TRY(key_open(&s->key, args_positional(args, "KEY"), options));
    const struct key_shape *shape = key_shape(s->key);
    size_t count = args_rest_count(args);
    REQUIRE(count <= JOB_PARTITIONS_MAX, E_USAGE, "%zu witnesses; one job has at most %d", count,
            JOB_PARTITIONS_MAX);
    uint64_t bytes = result_bytes_expected(key_curve(s->key), shape->public_count, (uint32_t)count);
    REQUIRE(bytes <= RESULT_BYTES_MAX, E_USAGE,
            "a result of %zu proofs with %u public signals each has about %" PRIu64
            " bytes, at most %d are stored; submit fewer witnesses per job",
            count, shape->public_count, bytes, RESULT_BYTES_MAX);
    TRY(mem_new(&s->parts, count, sizeof *s->parts));
    s->parts_count = count;
    for (size_t i = 0; i < count; i++) {
        TRY(witness_open(&s->parts[i].witness, args_rest(args, i)));
        TRY(witness_fits(&s->parts[i].witness, shape, key_path(s->key)));
    }
    return key_digest(&s->digest, s->key);
}

/* --- Bodies --- */

static enum err upload_frame(void *ctx, struct bytes frame) {
    return object_upload_chunk(ctx, frame);
}

static enum err upload_once(struct body_summary *summary, struct submission *s,
                            struct part_draft *p, const struct frame_layout *layout,
                            struct bytes data) {
    AUTO(object_upload_close) struct object_upload *upload = NULL;
    struct subject bucket = bucket_in(&s->client.space, s->client.tenant);
    TRY(object_upload_open(&upload, s->client.transport, bucket.text, p->object_name));
    TRY(body_write(summary, layout, &data, upload_frame, upload));
    return object_upload_commit(&p->object, upload);
}

static enum err put_object(struct body_summary *summary, struct submission *s, struct part_draft *p,
                           const struct frame_layout *layout, struct bytes data) {
    enum err code = OK;
    if (!s->bucket_made && !client_has_role(&s->client)) { /* else an operator has made it */
        TRY(fleet_ensure_tenant(s->client.transport, &s->client.space, s->client.tenant,
                                &(struct fleet_options){0}));
        s->bucket_made = true;
    }
    for (int n = 0; n < UPLOAD_TRIES; n++) {
        code = upload_once(summary, s, p, layout, data);
        if (err_class(code) != CLASS_WORLD) {
            break; /* a lost connection makes an object useless: it is begun anew */
        }
    }
    return code;
}

static enum err write_body(struct submission *s, size_t idx, struct pool *pool) {
    struct part_draft *p = &s->parts[idx];
    struct frame_layout layout;
    struct body_summary summary;
    AUTO(body_vector_close) struct body_vector v = {0};
    struct body_place place = {0};
    p->bucket = bucket_in(&s->client.space, s->client.tenant);
    size_t inline_max =
        s->inline_left < JOB_INLINE_BYTES_MAX ? s->inline_left : JOB_INLINE_BYTES_MAX;
    TRY(body_vector_open(&v, SECTION_WITNESS_RAW,
                         bytes_of(p->witness.values, p->witness.count * SCALAR_BYTES),
                         p->witness.curve->r.w, pool));
    TRY(body_layout_of_witness(&layout, &v.section));
    TRY(body_write_inline(&summary, &p->frames, &layout, &v.data, inline_max));
    if (p->frames.ptr) {
        s->inline_left -= p->frames.len;
        place.inline_frames = bytes_of(p->frames.ptr, p->frames.len);
    } else {
        /* A name of its own: sent again, a job must not replace the body that its first sending is using. */
        char nuid[NUID_BYTES];
        transport_nuid(nuid);
        snprintf(p->object_name, sizeof p->object_name, "%s.%" PRIu64 ".%zu.%s", s->job_id,
                 s->generation, idx, nuid);
        TRY(put_object(&summary, s, p, &layout, v.data));
        place.bucket = p->bucket.text;
        place.name = p->object_name;
        place.nuid = p->object.nuid;
    }
    TRY(body_describe(&p->body, &summary, place));
    bellows__v1__partition__init(&p->partition);
    p->partition.body = p->body;
    return OK;
}

static enum err write_bodies(struct submission *s) {
    struct screen *screen = NULL;
    AUTO(pool_close) struct pool *pool = NULL;
    TRY(pool_open(&pool, 0));
    screen_open(&screen, "sending");
    enum err code = OK;
    for (size_t i = 0; i < s->parts_count && code == OK; i++) {
        screen_progress(screen, (double)i / (double)s->parts_count);
        code = write_body(s, i, pool);
    }
    screen_close(&screen);
    return code;
}

/* --- The descriptor --- */

static enum err pack_job(struct bytes_mut *out, struct sha256 *fingerprint, struct submission *s) {
    job_message job = BELLOWS__V1__JOB__INIT;
    Bellows__V1__Partition *partitions[JOB_PARTITIONS_MAX];
    for (size_t i = 0; i < s->parts_count; i++) {
        partitions[i] = &s->parts[i].partition;
    }
    job.version = WIRE_VERSION;
    job.job_id = s->job_id;
    job.tenant = (char *)(uintptr_t)s->client.tenant;
    job.key_digest = (ProtobufCBinaryData){SHA256_BYTES, s->digest.b};
    job.curve = (Bellows__V1__Curve)key_shape(s->key)->curve;
    job.label = (char *)(uintptr_t)(s->label ? s->label : "");
    job.priority = s->priority;
    job.deadline_unix_ms = s->deadline_unix_ms;
    job.reply_subject = s->reply;
    job.generation = s->generation;
    job.submitted_unix_ms = clock_unix_ns() / 1000000;
    job.n_partitions = s->parts_count;
    job.partitions = partitions;
    TRY(job_check(&job, NULL, UINT64_MAX));
    TRY(job_fingerprint(fingerprint->b, &job));
    return job_pack(out, &job);
}

/* Which generation this is: 1, or one more than that of an ended job that may be sent again. */
static enum err find_generation(struct submission *s) {
    struct job_place at = client_place(&s->client, s->job_id);
    AUTO(record_slot_done) struct record_slot slot = {0};
    bool found = false;
    TRY(record_load(&slot, &found, &at));
    s->generation = found ? slot.record.generation : 1;
    if (found && job_state_may_reopen(slot.record.state)) {
        s->generation++;
    }
    return OK;
}

/* The id of somebody's other work? The server drops repeats of a message id, so only the record can tell. */
static enum err check_taken(struct submission *s, const struct sha256 *fingerprint) {
    struct job_place at = client_place(&s->client, s->job_id);
    AUTO(record_slot_done) struct record_slot slot = {0};
    bool found = false;
    TRY(record_load(&slot, &found, &at));
    REQUIRE(!found || slot.record.generation != s->generation ||
                !memcmp(&slot.record.fingerprint, fingerprint, sizeof *fingerprint),
            E_USAGE, "job id %s is taken by other work of tenant %s; use another --job", s->job_id,
            s->client.tenant);
    return OK;
}

static void bytes_free(struct bytes_mut *b) {
    if (b->ptr) {
        mem_wipe(b->ptr, b->len);
    }
    mem_free(b->ptr);
}

/* The server drops repeats of a message id unread. A sending with bodies in the bucket has an id of its own, so that the coordinator
 * meets it and purges them when the job is known already. */
static void make_message_id(char *out, size_t out_bytes, const struct submission *s) {
    struct job_name name = {s->client.tenant, s->job_id};
    struct subject id = message_id_of_job(name, s->generation);
    const char *nuid = "";
    for (size_t i = 0; i < s->parts_count && !*nuid; i++) {
        nuid = s->parts[i].object.nuid;
    }
    snprintf(out, out_bytes, "%s%s%s", id.text, *nuid ? "." : "", nuid);
}

static enum err publish(struct submission *s) {
    AUTO(bytes_free) struct bytes_mut packed = {0};
    struct sha256 fingerprint;
    struct job_name name = {s->client.tenant, s->job_id};
    struct subject subject = subject_job(&s->client.space, s->priority, s->digest.b, name);
    struct publish_ack ack;
    char id[SUBJECT_BYTES_MAX + 72];
    make_message_id(id, sizeof id, s);
    TRY(pack_job(&packed, &fingerprint, s));
    TRY(check_taken(s, &fingerprint));
    enum err code = E_TIMEOUT;
    for (int n = 0; n < PUBLISH_TRIES && (code == E_TIMEOUT || code == E_QUEUE); n++) {
        if (code == E_QUEUE) {
            clock_sleep_ns(UINT64_C(200000000) << n);
        }
        code = transport_publish(&ack, s->client.transport, subject.text,
                                 bytes_of(packed.ptr, packed.len),
                                 &(struct publish_options){.message_id = id});
    }
    if (code == E_NET) {
        struct fault fault = fault_of(code);
        FAIL(E_NET, "%.400s; has a coordinator been started on this server?", fault.detail);
    }
    return code;
}

/* --- The command --- */

static void print_id(const struct submission *s) {
    if (!s->json) {
        puts(s->job_id);
    } else if (!s->wait) {
        char hex[SHA256_HEX_BYTES];
        sha256_hex(hex, &s->digest);
        printf("{\"job\": \"%s\", \"tenant\": \"%s\", \"generation\": %" PRIu64
               ", \"key\": \"%s\", \"partitions\": %zu}\n",
               s->job_id, s->client.tenant, s->generation, hex, s->parts_count);
    }
    fflush(stdout);
}

static enum err wait_for_result(struct submission *s, const struct args *args) {
    AUTO(message_free) result_message *result = NULL;
    struct screen *screen = NULL;
    uint64_t limit_ns = 0;
    TRY(client_wait_limit(&limit_ns, args));
    screen_open(&screen, "waiting");
    enum err code = waiter_wait(&result, s->waiter, s->generation, true, limit_ns);
    screen_close(&screen);
    TRY(code);
    return client_deliver(result, args_text(args, "out"), s->json);
}

static enum err run(struct args *args) {
    AUTO(submission_done) struct submission s = {.inline_left = INLINE_ALL_MAX};
    const char *job = args_text(args, "job");
    bool stored = false;
    s.json = args_switch(args, "json");
    s.wait = args_switch(args, "wait");
    s.label = args_text(args, "label");
    TRY(read_priority(&s.priority, args_text(args, "priority")));
    TRY(read_deadline(&s.deadline_unix_ms, args_text(args, "deadline")));
    if (job) {
        TRY(id_check(job, "job"));
        snprintf(s.job_id, sizeof s.job_id, "%s", job);
    } else {
        TRY(make_job_id(s.job_id));
    }
    TRY(open_files(&s, args));
    TRY(client_open(&s.client, args));
    TRY(find_generation(&s));
    TRY(client_push_key(&stored, &s.client, s.key, &s.digest));
    TRY(write_bodies(&s));
    if (s.wait) {
        transport_inbox(s.reply, s.client.transport);
        TRY(waiter_open(&s.waiter, &s.client, s.job_id, s.reply));
    }
    TRY(publish(&s));
    print_id(&s);
    return s.wait ? wait_for_result(&s, args) : OK;
}

static const struct positional positionals[] = {
    {.name = "KEY", .text = "proving key: .zkey or bellman parameters"},
    {.name = "WITNESS",
     .text = ".wtns files; each becomes a partition with a proof of its own",
     .repeats = true},
    {0},
};
static const struct option options[] = {
    {.kind = OPTION_SWITCH, .name = "wait", .text = "Waits for the result and writes it to --out."},
    OPTION_OUT,
    OPTION_WAIT_LIMIT,
    {.kind = OPTION_CHOICE,
     .name = "priority",
     .value = "urgent|high|normal|low",
     .fallback = "normal",
     .text = "Which jobs go first; the low ones keep a guaranteed share."},
    {.kind = OPTION_TEXT,
     .name = "deadline",
     .value = "TIME",
     .text = "From now on (\"90s\"): without a proof by then the job expires."},
    {.kind = OPTION_TEXT,
     .name = "job",
     .value = "ID",
     .text = "Name of the job; sending the same one again gives the first result. Made up when "
             "absent."},
    {.kind = OPTION_TEXT, .name = "label", .value = "TEXT", .text = "Free text for people."},
    OPTION_TENANT,
    OPTION_INSECURE,
    OPTION_JSON,
    OPTIONS_END,
};
const struct command cmd_submit = {
    .name = "submit",
    .sentence = "send a job to the fleet",
    .positionals = positionals,
    .options = options,
    .config = CONFIG_CLIENT,
    .notes = "Prints the job's id as soon as the fleet has it. Exit codes with --wait: 0 proved, 1 "
             "the witness does not\n"
             "satisfy the circuit, 2 refused, 3 devices failed, 4 cancelled, expired, timed out or "
             "no network.\n"
             "  bellows submit circuit.zkey witness.wtns --wait --out proofs\n",
    .run = run,
};
