/* open: what a result of so many proofs would take ─ add: does the witness fit the key ─ send: key into the fleet if absent ─ bodies:
 * inline while they are small, else objects ─ subscribe ─ publish the descriptor
 *
 * The descriptor goes to a lane with each partition of the job, and is written into its record each time one of them moves: what is inline
 * travels some ten times for each partition, its own and the others'. So the partitions share what one body may have.
 */
#include "node/submit/submission.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/key/native.h"
#include "node/witness/vectors.h"

enum {
    STEPS_BYTES_MAX = 16 * 1024, /* of a descriptor, for where chunks lie */
    STEP_BYTES = 3,              /* of one: at most 2^21 behind the chunk before */
    UPLOAD_TRIES = 3
};

struct part_draft {          /* one partition on its way */
    struct witness witness;  /* owned */
    Bellows__V1__Body *body; /* owned: mem_free */
    struct bytes_mut frames; /* owned: the inline body */
    Bellows__V1__Partition partition;
    char object_name[192];
    struct object_info object;
    uint32_t *steps; /* owned */
    size_t steps_count;
    struct subject bucket; /* lent to body, like steps and the names above */
};

struct submission {
    struct key *key; /* owned (ref) */
    struct sha256 digest;
    const struct client *client; /* lent, once sent */
    struct part_draft *parts;    /* owned */
    size_t parts_count, parts_max;
    char job_id[ID_BYTES_MAX + 1];
    char reply[TRANSPORT_INBOX_BYTES];
    uint64_t generation;
    struct waiter *waiter; /* owned */
    bool bucket_made;
};

static void bytes_wipe(struct bytes_mut *b) {
    if (b->ptr) {
        mem_wipe(b->ptr, b->len);
    }
    mem_free(b->ptr);
}

/* Witnesses and bodies: nobody needs them once the fleet has the job. */
static void let_go(struct submission *s) {
    for (size_t i = 0; i < s->parts_count; i++) {
        witness_close(&s->parts[i].witness);
        mem_free(s->parts[i].body);
        bytes_wipe(&s->parts[i].frames);
        mem_free(s->parts[i].steps);
    }
    mem_free_ptr(&s->parts);
    key_unref(&s->key);
    s->parts_count = 0;
}

void submission_close(struct submission **at) {
    if (*at) {
        waiter_close(&(*at)->waiter);
        let_go(*at);
        mem_free_ptr(at);
    }
}

/* --- Before the network --- */

enum err submission_open(struct submission **out, struct key *key, size_t count) {
    AUTO(submission_close) struct submission *s = NULL;
    const struct key_shape *shape = key_shape(key);
    TRY(key_knows_circuit(key));
    REQUIRE(count > 0 && count <= JOB_PARTITIONS_MAX, E_USAGE, "%zu witnesses; one job has 1 to %d",
            count, JOB_PARTITIONS_MAX);
    uint64_t bytes = result_bytes_expected(key_curve(key), shape->public_count, (uint32_t)count);
    REQUIRE(bytes <= RESULT_BYTES_MAX, E_USAGE,
            "a result of %zu proofs with %u public signals each has about %" PRIu64
            " bytes, at most %d are stored; submit fewer witnesses per job",
            count, shape->public_count, bytes, RESULT_BYTES_MAX);
    TRY(mem_new(&s, 1, sizeof *s));
    s->key = key_ref(key);
    s->parts_max = count;
    TRY(mem_new(&s->parts, count, sizeof *s->parts));
    TRY(key_digest(&s->digest, key));
    *out = TAKE(s);
    return OK;
}

enum err submission_add(struct submission *s, struct witness *witness) {
    ASSERT(s->parts_count < s->parts_max && !s->client);
    TRY(witness_fits(witness, key_shape(s->key), key_path(s->key)));
    s->parts[s->parts_count++].witness = *witness;
    *witness = (struct witness){0};
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

/* --- Patience --- */

/* How long something is tried for. A cluster that has lost a server takes seconds to elect, several times that on loaded machines; until
 * then the server has nobody for the stream (E_NET) or nobody who answers (E_TIMEOUT). */
static const uint64_t UNANSWERED_WAIT_NS = UINT64_C(60000000000);
static const uint64_t NO_STREAM_WAIT_NS = UINT64_C(15000000000);
static const uint64_t FULL_WAIT_NS = UINT64_C(5000000000);
static const uint64_t PAUSE_MAX_NS = UINT64_C(1600000000);

struct trying {
    const struct client *client; /* lent */
    uint64_t start_ns, pause_ns;
    uint64_t refused_count; /* before */
};

static uint64_t refused_count(const struct client *c) {
    struct transport_health health;
    transport_health(&health, c->transport);
    return health.refused_count;
}

static struct trying trying_start(const struct client *c) {
    return (struct trying){c, clock_ns(), PAUSE_MAX_NS / 8, refused_count(c)};
}

static uint64_t patience_ns(const struct trying *t, enum err code) {
    switch (code) {
    case E_TIMEOUT:
        return UNANSWERED_WAIT_NS;
    case E_NET: /* what this user may not do, nothing but a change of rights will let it do */
        return refused_count(t->client) == t->refused_count ? NO_STREAM_WAIT_NS : 0;
    case E_QUEUE:
        return FULL_WAIT_NS;
    default:
        return 0;
    }
}

/* Is there use in another try? Then after a pause. */
static bool trying_goes_on(struct trying *t, enum err code) {
    if (clock_ns() - t->start_ns >= patience_ns(t, code)) {
        return false;
    }
    if (code != E_TIMEOUT) { /* which has waited long enough */
        clock_sleep_ns(t->pause_ns);
        t->pause_ns = t->pause_ns < PAUSE_MAX_NS / 2 ? 2 * t->pause_ns : PAUSE_MAX_NS;
    }
    return true;
}

/* --- Bodies --- */

static enum err upload_frame(void *ctx, struct bytes frame) {
    return object_upload_chunk(ctx, frame);
}

/* Where the chunks lie, if the descriptor has room for it. */
static enum err keep_steps(const struct submission *s, struct part_draft *p,
                           const struct object_upload *upload) {
    struct object_steps known = object_upload_steps(upload);
    if (known.count == 0 || known.count * STEP_BYTES > STEPS_BYTES_MAX / s->parts_count) {
        return OK;
    }
    mem_free_ptr(&p->steps);
    TRY(mem_new(&p->steps, known.count, sizeof *p->steps));
    memcpy(p->steps, known.steps, known.count * sizeof *p->steps);
    p->steps_count = known.count;
    return OK;
}

static enum err upload_once(struct body_summary *summary, struct submission *s,
                            struct part_draft *p, const struct frame_layout *layout,
                            const struct bytes *data) {
    AUTO(object_upload_close) struct object_upload *upload = NULL;
    struct subject bucket = bucket_in(&s->client->space, s->client->tenant);
    TRY(object_upload_open(&upload, s->client->transport, bucket.text, p->object_name));
    TRY(body_write(summary, layout, data, upload_frame, upload));
    TRY(object_upload_commit(&p->object, upload));
    return keep_steps(s, p, upload);
}

static enum err put_object(struct body_summary *summary, struct submission *s, struct part_draft *p,
                           const struct frame_layout *layout, const struct bytes *data) {
    enum err code = OK;
    if (!s->bucket_made && !s->client->has_role) { /* else an operator has made it */
        TRY(fleet_ensure_tenant(s->client->transport, &s->client->space, s->client->tenant,
                                &(struct fleet_options){0}));
        s->bucket_made = true;
    }
    struct trying trying = trying_start(s->client);
    for (int n = 1;; n++) { /* a lost connection makes an object useless: it is begun anew */
        code = upload_once(summary, s, p, layout, data);
        if (n < UPLOAD_TRIES) {
            trying.start_ns = clock_ns();
        }
        if (code == E_QUEUE || !trying_goes_on(&trying, code)) {
            break;
        }
    }
    return code;
}

static enum err write_body(struct submission *s, size_t idx, struct pool *pool) {
    struct part_draft *p = &s->parts[idx];
    struct frame_layout layout;
    struct body_summary summary;
    AUTO(vectors_close) struct vectors v = {.count = 0};
    struct body_place place = {0};
    p->bucket = bucket_in(&s->client->space, s->client->tenant);
    size_t inline_max = JOB_INLINE_BYTES_MAX / s->parts_count;
    TRY(vectors_open(&v, &p->witness, pool));
    TRY(body_layout_of(&layout, v.sections, v.count));
    TRY(body_write_inline(&summary, &p->frames, &layout, v.data, inline_max));
    if (p->frames.ptr) {
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
        place.first_sequence = p->object.first_sequence;
        place.chunk_steps = p->steps;
        place.chunk_steps_count = p->steps_count;
    }
    TRY(body_describe(&p->body, &summary, place));
    bellows__v1__partition__init(&p->partition);
    p->partition.body = p->body;
    return OK;
}

static enum err write_bodies(struct submission *s, const struct submission_options *options) {
    AUTO(pool_close) struct pool *pool = NULL;
    TRY(pool_open(&pool, 0));
    for (size_t i = 0; i < s->parts_count; i++) {
        if (options->progress) {
            options->progress(options->progress_ctx, (double)i / (double)s->parts_count);
        }
        TRY(write_body(s, i, pool));
    }
    return OK;
}

/* --- The descriptor --- */

static enum err pack_job(struct bytes_mut *out, struct sha256 *fingerprint, struct submission *s,
                         const struct submission_options *options) {
    job_message job = BELLOWS__V1__JOB__INIT;
    Bellows__V1__Partition *partitions[JOB_PARTITIONS_MAX];
    for (size_t i = 0; i < s->parts_count; i++) {
        partitions[i] = &s->parts[i].partition;
    }
    job.version = WIRE_VERSION;
    job.job_id = s->job_id;
    job.tenant = (char *)(uintptr_t)s->client->tenant;
    job.key_digest = (ProtobufCBinaryData){SHA256_BYTES, s->digest.b};
    job.curve = (Bellows__V1__Curve)key_shape(s->key)->curve;
    job.label = (char *)(uintptr_t)(options->label ? options->label : "");
    job.priority = options->priority;
    job.deadline_unix_ms = options->deadline_unix_ms;
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
    struct job_place at = client_place(s->client, s->job_id);
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
    struct job_place at = client_place(s->client, s->job_id);
    AUTO(record_slot_done) struct record_slot slot = {0};
    bool found = false;
    TRY(record_load(&slot, &found, &at));
    REQUIRE(!found || slot.record.generation != s->generation ||
                !memcmp(&slot.record.fingerprint, fingerprint, sizeof *fingerprint),
            E_USAGE, "job id %s is taken by other work of tenant %s; use another id", s->job_id,
            s->client->tenant);
    return OK;
}

/* The server drops repeats of a message id unread. A sending with bodies in the bucket has an id of its own, so that the coordinator
 * meets it and purges them when the job is known already. */
static void make_message_id(char *out, size_t out_bytes, const struct submission *s) {
    struct job_name name = {s->client->tenant, s->job_id};
    struct subject id = message_id_of_job(name, s->generation);
    const char *nuid = "";
    for (size_t i = 0; i < s->parts_count && !*nuid; i++) {
        nuid = s->parts[i].object.nuid;
    }
    snprintf(out, out_bytes, "%s%s%s", id.text, *nuid ? "." : "", nuid);
}

static enum err publish(struct submission *s, const struct submission_options *options) {
    AUTO(bytes_wipe) struct bytes_mut packed = {0};
    struct sha256 fingerprint;
    struct job_name name = {s->client->tenant, s->job_id};
    struct subject subject = subject_job(&s->client->space, options->priority, s->digest.b, name);
    struct publish_ack ack;
    char id[SUBJECT_BYTES_MAX + 72];
    make_message_id(id, sizeof id, s);
    TRY(pack_job(&packed, &fingerprint, s, options));
    TRY(check_taken(s, &fingerprint));
    struct trying trying = trying_start(s->client);
    enum err code;
    do { /* the server drops repeats of a message id, whatever became of the last try */
        code = transport_publish(&ack, s->client->transport, subject.text,
                                 bytes_of(packed.ptr, packed.len),
                                 &(struct publish_options){.message_id = id});
    } while (trying_goes_on(&trying, code));
    if (code == E_NET) {
        struct fault fault = fault_of(code);
        FAIL(E_NET, "%.400s; has a coordinator been started on this server?", fault.detail);
    }
    return code;
}

/* --- All of it --- */

enum err submission_send(struct submission *s, const struct client *client,
                         const struct submission_options *options) {
    bool stored = false;
    ASSERT(s->parts_count == s->parts_max && !s->client);
    if (options->job) {
        TRY(id_check(options->job, "job"));
        snprintf(s->job_id, sizeof s->job_id, "%s", options->job);
    } else {
        TRY(make_job_id(s->job_id));
    }
    TRY(job_check_label(options->label ? options->label : ""));
    s->client = client;
    TRY(find_generation(s));
    TRY(client_push_key(&stored, client, s->key, &s->digest, KEY_PUSH_MISSING));
    TRY(write_bodies(s, options));
    if (options->wait) {
        transport_inbox(s->reply, client->transport);
        TRY(waiter_open(&s->waiter, client, s->job_id, s->reply));
    }
    TRY(publish(s, options));
    let_go(s);
    return OK;
}

enum err submission_wait(result_message **out, struct submission *s, uint64_t limit_ns) {
    return waiter_wait(out, s->waiter, s->generation, true, limit_ns);
}

const char *submission_job(const struct submission *s) {
    return s->job_id;
}

uint64_t submission_generation(const struct submission *s) {
    return s->generation;
}

const struct sha256 *submission_key_digest(const struct submission *s) {
    return &s->digest;
}
