/* The body goes from the message straight to its final place: the witness's own memory. What it claims to be is compared with the
 * key before that memory is asked for, so a hostile descriptor costs nothing.
 */
#include "node/daemon/job.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/drag.h"
#include "node/base/mem.h"
#include "proto/unpack.h"

/* A lane on its own admits no more than this, whatever its memory: 2^32 wires. */
static const uint64_t BODY_BYTES_MAX = UINT64_C(1) << 37;

static const struct {
    const char *name;
    enum ledger_account cause; /* LEDGER_IDLE: the device does not wait for it any more */
} stages[JOB_STAGES_COUNT] = {
    [JOB_STAGE_QUEUED] = {"queued", LEDGER_WAIT_RECORD},
    [JOB_STAGE_RECORD] = {"record", LEDGER_WAIT_RECORD},
    [JOB_STAGE_KEY] = {"key", LEDGER_WAIT_KEY},
    [JOB_STAGE_MEMORY] = {"memory", LEDGER_WAIT_PINNED},
    [JOB_STAGE_FETCH] = {"fetch", LEDGER_WAIT_FETCH},
    [JOB_STAGE_DECODE] = {"decode", LEDGER_WAIT_DECODE},
    [JOB_STAGE_READY] = {"ready", LEDGER_WAIT_LOCK},
    [JOB_STAGE_PROVING] = {"proving", LEDGER_IDLE},
    [JOB_STAGE_SETTLING] = {"settling", LEDGER_IDLE},
    [JOB_STAGE_REPLYING] = {"replying", LEDGER_IDLE},
};

const char *job_stage_name(enum job_stage stage) {
    ASSERT(stage < JOB_STAGES_COUNT);
    return stages[stage].name;
}

void job_mark(struct lane_job *job, enum job_stage stage) {
    ASSERT(stage < JOB_STAGES_COUNT);
    atomic_store(&job->stage_ns, clock_ns());
    atomic_store(&job->stage, (int)stage);
    if (job->ledger && stages[stage].cause != LEDGER_IDLE) {
        ledger_cause(job->ledger, job->ticket, stages[stage].cause);
    } else if (job->ledger) {
        ledger_leave(job->ledger, job->ticket);
    }
}

enum err job_take(struct lane_job **out, struct message *m) {
    AUTO(job_free) struct lane_job *job = NULL;
    TRY(mem_new(&job, 1, sizeof *job));
    job->taken_ns = clock_ns();
    TRY(message_unpack(&job->assignment, &bellows__v1__assignment__descriptor, m->data,
                       ASSIGNMENT_BYTES_MAX, "assignment"));
    const Bellows__V1__Assignment *a = job->assignment;
    TRY(job_unpack(&job->job, bytes_of(a->job.data, a->job.len), NULL, BODY_BYTES_MAX));
    job->name = (struct job_name){job->job->tenant, job->job->job_id};
    job->generation = a->generation;
    job->epoch = a->epoch;
    job->index = a->partition_index;
    REQUIRE(job->index < job->job->n_partitions, E_RANGE,
            "assignment of job %s: partition %u of %zu", job->name.job, job->index,
            job->job->n_partitions);
    memcpy(job->key_digest.b, job->job->key_digest.data, SHA256_BYTES);
    job->report = (struct part_report){
        .name = job->name,
        .generation = job->generation,
        .epoch = job->epoch,
        .index = job->index,
        .attempt = a->attempt,
    };
    spans_begin(&job->report.spans);
    job->message = *m;
    *m = (struct message){0};
    *out = TAKE(job);
    return OK;
}

void job_free(struct lane_job **job) {
    if (!*job) {
        return;
    }
    struct lane_job *j = *job;
    if (j->ledger) {
        ledger_leave(j->ledger, j->ticket);
    }
    witness_close(&j->witness);
    key_unref(&j->key);
    if (j->has_proof) {
        prove_result_done(&j->proved);
    }
    mem_wipe(&j->first, sizeof j->first);
    record_slot_done(&j->slot);
    message_free(&j->job);
    if (j->assignment && j->assignment->job.data) {
        mem_wipe(j->assignment->job.data, j->assignment->job.len);
    }
    message_free(&j->assignment);
    message_done(&j->message);
    mem_free_ptr(job);
}

struct job_place job_place_of(const struct lane_job *job, struct transport *t,
                              const struct subject_space *space) {
    return (struct job_place){t, space, job->name};
}

static const Bellows__V1__Body *body_of(const struct lane_job *job) {
    return job->job->partitions[job->index]->body;
}

static enum err body_check(struct frame_layout *layout, const struct lane_job *job) {
    TRY(body_layout(layout, body_of(job), BODY_BYTES_MAX));
    enum section_kind kind = layout->sections[0].kind;
    REQUIRE(layout->sections_count == 1 &&
                (kind == SECTION_WITNESS_RAW || kind == SECTION_WITNESS_PACKED),
            E_FORMAT,
            "partition %u: this lane proves bodies of one section, WITNESS_RAW or WITNESS_PACKED; "
            "found %u sections, the first of kind %d",
            job->index, layout->sections_count, (int)kind);
    return OK;
}

enum err job_body_bytes(uint64_t *out, const struct lane_job *job) {
    struct frame_layout layout;
    TRY(body_check(&layout, job));
    *out = layout.memory_bytes;
    return OK;
}

struct stage {                        /* a body on its way */
    struct decoders *decoders;        /* lent */
    struct object_download *download; /* owned */
    struct body_reader *reader;       /* owned */
    uint8_t *section;                 /* owned: as it came */
    uint8_t *values;                  /* owned: unpacked */
    size_t section_bytes, values_bytes;
    uint64_t memory_bytes; /* admitted */
};

static void stage_done(struct stage *s) {
    IGNORE(decoders_wait(NULL, s->decoders)); /* nobody writes there any more */
    object_download_close(&s->download);
    body_reader_free(&s->reader);
    if (s->section) {
        mem_wipe(s->section, s->section_bytes);
    }
    mem_free(s->section);
    if (s->values) {
        mem_wipe(s->values, s->values_bytes);
    }
    mem_free(s->values);
}

static enum err stage_object(struct stage *s, struct lane_job *job, struct transport *bulk,
                             struct bytes_mut place) {
    const Bellows__V1__Body *body = body_of(job);
    struct object_download_options options = {
        .bucket = body->object->bucket, .nuid = body->object->nuid, .bytes = body->wire_bytes};
    uint64_t fetch_ns = 0, decode_ns = 0, began_ns = clock_ns(), came_ns = 0;
    TRY(body_reader_new(&s->reader, body, &place, 1, s->memory_bytes));
    TRY(object_download_open(&s->download, bulk, &options));
    for (;;) {
        AUTO(message_done) struct message chunk = {0};
        bool end = false;
        uint64_t start_ns = clock_ns();
        job_mark(job, JOB_STAGE_FETCH);
        TRY(object_download_next(&chunk, &end, s->download));
        uint64_t fetched_ns = clock_ns();
        fetch_ns += fetched_ns - start_ns;
        came_ns = came_ns ? came_ns : fetched_ns;
        job_mark(job, JOB_STAGE_DECODE); /* here it waits for room, or at the end for the rest */
        if (end) {
            break;
        }
        TRY(decoders_add(s->decoders, s->reader, &chunk));
        REQUIRE(!atomic_load(&job->watch.cancel), E_CANCELLED, "cancelled while it was fetched");
    }
    TRY(decoders_wait(&decode_ns, s->decoders));
    TRY(body_reader_end(s->reader));
    spans_add(&job->report.spans, SPAN_FETCH, began_ns, fetch_ns, body->wire_bytes, OK);
    /* Of all threads together: may be more than has passed. */
    spans_add(&job->report.spans, SPAN_DECODE, came_ns, decode_ns, body->raw_bytes, OK);
    return OK;
}

static enum err stage_inline(const struct stage *s, struct lane_job *job, struct bytes_mut place) {
    const Bellows__V1__Body *body = body_of(job);
    uint64_t start_ns = clock_ns();
    job_mark(job, JOB_STAGE_DECODE);
    drag(DRAG_DECODE);
    enum err code = body_read_inline(body, &place, 1, s->memory_bytes);
    spans_end(&job->report.spans, SPAN_DECODE, start_ns, body->raw_bytes, code);
    return code;
}

/* The plain scalars: what came, or what it unpacks to. */
static enum err stage_unpack(struct stage *s, struct lane_job *job,
                             const struct frame_section *section) {
    if (!section_is_packed(section->kind)) {
        s->values = s->section;
        s->values_bytes = s->section_bytes;
        s->section = NULL;
        return OK;
    }
    uint64_t start_ns = clock_ns();
    s->values_bytes = (size_t)section->values_count * SCALAR_BYTES;
    TRY(mem_new_raw(&s->values, s->values_bytes, 1));
    TRY(codec_decode((struct bytes_mut){s->values, s->values_bytes},
                     bytes_of(s->section, s->section_bytes), section->values_count,
                     key_curve(job->key)->r.w, decoders_pool(s->decoders)));
    spans_end(&job->report.spans, SPAN_UNPACK, start_ns, s->values_bytes, OK);
    return OK;
}

enum err job_stage_body(struct lane_job *job, struct decoders *decoders, struct transport *bulk) {
    struct frame_layout layout;
    const struct key_shape *shape = key_shape(job->key);
    TRY(body_check(&layout, job));
    REQUIRE((int)job->job->curve == (int)shape->curve, E_CURVE,
            "the job says curve %d, its key is on %s", (int)job->job->curve,
            key_curve(job->key)->name);
    REQUIRE(layout.sections[0].values_count == shape->wires_count, E_RANGE,
            "partition %u: the witness has %llu values, the key's circuit has %u wires; is it a "
            "witness "
            "of this circuit?",
            job->index, (unsigned long long)layout.sections[0].values_count, shape->wires_count);
    AUTO(stage_done)
    struct stage s = {.decoders = decoders,
                      .section_bytes = layout.raw_bytes,
                      .memory_bytes = layout.memory_bytes};
    TRY(mem_new_raw(&s.section, layout.raw_bytes, 1));
    struct bytes_mut place = {s.section, layout.raw_bytes};
    if (body_of(job)->place_case == BELLOWS__V1__BODY__PLACE_OBJECT) {
        TRY(stage_object(&s, job, bulk, place));
    } else {
        TRY(stage_inline(&s, job, place));
    }
    TRY(stage_unpack(&s, job, &layout.sections[0]));
    char name[32];
    snprintf(name, sizeof name, "partition %u", job->index);
    TRY(witness_from_values(&job->witness, key_curve(job->key), s.values,
                            layout.sections[0].values_count, name));
    s.values = NULL;
    return witness_fits(&job->witness, shape, "the job's key");
}
