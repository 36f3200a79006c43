/* The body goes from the message straight to its final place, a block of the lane's arena. What it claims to be is compared with the
 * key before a byte of it is fetched, so a hostile descriptor costs nothing.
 *
 *     block    section | section | …                     as they came: from here packed bytes go to a device
 *              plain scalars of packed sections          where the witness is computed with in host memory
 *     or       slot | slot | …                           of a body that no block holds: frames on their way to a device
 *
 * Of a body that streams the host keeps heads and directories, which say where everything is, and the first values, which the
 * proof is told with.
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
    [JOB_STAGE_UPLOAD] = {"upload", LEDGER_UPLOAD},
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

enum err job_take(struct lane_job **out, struct message *m, struct shared_records *records) {
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
    TRY(shared_take(&job->record, records, job->name, job->generation));
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
    ASSERT(!j->block.ptr && !j->loaded.resident && !j->brought);
    job_unstage(j);
    key_unref(&j->key);
    if (j->has_sums) {
        prove_result_done(&j->proved);
    }
    mem_wipe(&j->first, sizeof j->first);
    shared_give(&j->record);
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

enum { NAME_BYTES = 32 };
static void write_name(char out[NAME_BYTES], const struct lane_job *job) {
    snprintf(out, NAME_BYTES, "partition %u", job->index);
}

static enum err body_check(struct frame_layout *layout, const struct lane_job *job) {
    enum body_form form;
    TRY(body_layout(layout, body_of(job), BODY_BYTES_MAX));
    enum err code = body_form_of(&form, layout);
    return code == OK ? OK : err_prefix(code, "partition %u", job->index);
}

void job_unstage(struct lane_job *job) {
    witness_close(&job->witness);
    for (unsigned i = 0; i < job->vectors_count; i++) {
        scalars_close(&job->vectors[i]);
    }
    job->vectors_count = 0;
}

/* --- Places in the block --- */

enum { PART_ALIGN = 4096 };

struct places {
    uint64_t section[BODY_SECTIONS_MAX]; /* offsets */
    uint64_t
        values[BODY_SECTIONS_MAX]; /* of plain scalars; of a plain section the section itself */
    uint64_t bytes, plain_bytes;   /* without and with the scalars of packed ones */
};

static uint64_t aligned(uint64_t bytes) {
    return (bytes + PART_ALIGN - 1) & ~(uint64_t)(PART_ALIGN - 1);
}

/* The layout is within BODY_BYTES_MAX: sums do not overflow. */
static void place_all(struct places *out, const struct frame_layout *layout) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < layout->sections_count; i++) {
        out->section[i] = out->values[i] = at;
        at += aligned(layout->sections[i].raw_bytes);
    }
    out->bytes = at;
    for (uint32_t i = 0; i < layout->sections_count; i++) {
        if (section_is_packed(layout->sections[i].kind)) {
            out->values[i] = at;
            at += aligned(layout->sections[i].values_count * SCALAR_BYTES);
        }
    }
    out->plain_bytes = at;
}

/* The vectors as far as the descriptor knows them. */
static void shape_vectors(struct scalars out[JOB_VECTORS_MAX], const struct frame_layout *layout) {
    for (uint32_t i = 0; i < layout->sections_count; i++) {
        const struct frame_section *section = &layout->sections[i];
        out[i] = (struct scalars){.count = section->values_count,
                                  .bytes = bytes_of(NULL, (size_t)section->raw_bytes),
                                  .packed = section_is_packed(section->kind)};
        out[i].map.blocks_count = out[i].packed ? packed_blocks_count(out[i].count) : 0;
    }
}

static uint64_t stream_slots(const struct decoders *decoders, uint64_t room_bytes,
                             uint32_t frame_bytes) {
    unsigned threads = pool_threads_count(decoders_pool(decoders));
    uint64_t slots = room_bytes / frame_bytes,
             most = threads < STREAM_SLOTS_MAX ? threads : STREAM_SLOTS_MAX;
    return slots < most ? slots : most;
}

enum err job_choose_way(uint64_t *bytes, struct lane_job *job, const struct backend *backend,
                        const struct decoders *decoders, uint64_t arena_bytes) {
    struct frame_layout layout;
    struct places places;
    struct scalars vectors[JOB_VECTORS_MAX];
    TRY(body_check(&layout, job));
    place_all(&places, &layout);
    shape_vectors(vectors, &layout);
    const struct backend_ops *ops = backend->ops;
    bool brings = ops->bring != NULL;
    bool fits = brings && (!ops->bring_fits ||
                           ops->bring_fits(job->loaded.slot, vectors, layout.sections_count));
    if (fits && places.bytes > arena_bytes && ops->bring_begin) {
        job->way = JOB_WAY_STREAM;
        *bytes = stream_slots(decoders, arena_bytes, layout.frame_bytes) * layout.frame_bytes;
        REQUIRE(*bytes > 0, E_LIMIT,
                "a frame of the body has %u bytes, this lane has %llu for bodies; the option is "
                "--staging",
                layout.frame_bytes, (unsigned long long)arena_bytes);
        return OK;
    }
    job->way = fits ? JOB_WAY_BRING : JOB_WAY_PLAIN;
    *bytes = fits ? places.bytes : places.plain_bytes;
    REQUIRE(*bytes <= arena_bytes, E_LIMIT,
            "the witness takes %llu bytes, this lane has %llu for witnesses%s; the option is %s",
            (unsigned long long)*bytes, (unsigned long long)arena_bytes,
            brings && !fits ? ", and under this key the device has no room to take it in ahead"
                            : "",
            brings ? "--staging" : "--memory");
    return OK;
}

/* --- Fetching --- */

struct fetch {                 /* a body on its way */
    struct decoders *decoders; /* lent */
    struct decoding decoding;
    struct object_download *download; /* owned */
    struct body_reader *reader;       /* owned */
    struct bytes_mut dest[BODY_SECTIONS_MAX];
    uint32_t sections_count;
    uint64_t memory_bytes; /* admitted */
};

static void fetch_done(struct fetch *f) {
    IGNORE(decoders_wait(NULL, f->decoders, &f->decoding)); /* nobody writes there any more */
    object_download_close(&f->download);
    body_reader_free(&f->reader);
}

static enum err fetch_object(struct fetch *f, struct lane_job *job, const struct bulk_links *bulk) {
    const Bellows__V1__Body *body = body_of(job);
    struct object_download_options options = {
        .bucket = body->object->bucket,
        .nuid = body->object->nuid,
        .first_sequence = body->object->first_sequence,
        .steps = {body->object->chunk_steps, body->object->n_chunk_steps},
        .chunks_count = body->frames_count,
        .bytes = body->wire_bytes,
        .also = bulk->links + 1,
        .also_count = bulk->count - 1};
    uint64_t fetch_ns = 0, decode_ns = 0, began_ns = clock_ns(), came_ns = 0;
    TRY(body_reader_new(&f->reader, body, f->dest, f->sections_count, f->memory_bytes));
    TRY(object_download_open(&f->download, bulk->links[0], &options));
    for (;;) {
        AUTO(message_done) struct message chunk = {0};
        bool end = false;
        uint64_t start_ns = clock_ns();
        job_mark(job, JOB_STAGE_FETCH);
        TRY(object_download_next(&chunk, &end, f->download));
        uint64_t fetched_ns = clock_ns();
        fetch_ns += fetched_ns - start_ns;
        came_ns = came_ns ? came_ns : fetched_ns;
        job_mark(job, JOB_STAGE_DECODE); /* here it waits for room, or at the end for the rest */
        if (end) {
            break;
        }
        TRY(decoders_add(f->decoders, &f->decoding, f->reader, &chunk));
        REQUIRE(!atomic_load(&job->watch.cancel), E_CANCELLED, "cancelled while it was fetched");
    }
    TRY(decoders_wait(&decode_ns, f->decoders, &f->decoding));
    TRY(body_reader_end(f->reader));
    spans_add(&job->report.spans, SPAN_FETCH, began_ns, fetch_ns, body->wire_bytes, OK);
    /* Of all threads together: may be more than has passed. */
    spans_add(&job->report.spans, SPAN_DECODE, came_ns, decode_ns, body->raw_bytes, OK);
    return OK;
}

/* What came with the descriptor, by way of the decoders' slots. */
static enum err stream_inline(struct fetch *f, const Bellows__V1__Body *body) {
    struct message whole = {.data = bytes_of(body->inline_frames.data, body->inline_frames.len)};
    TRY(body_reader_new(&f->reader, body, f->dest, f->sections_count, f->memory_bytes));
    TRY(decoders_add(f->decoders, &f->decoding, f->reader, &whole));
    TRY(decoders_wait(NULL, f->decoders, &f->decoding));
    return body_reader_end(f->reader);
}

static enum err fetch_inline(struct fetch *f, struct lane_job *job) {
    const Bellows__V1__Body *body = body_of(job);
    uint64_t start_ns = clock_ns();
    job_mark(job, JOB_STAGE_DECODE);
    drag(DRAG_DECODE);
    enum err code = f->decoding.stream
                        ? stream_inline(f, body)
                        : body_read_inline(body, f->dest, f->sections_count, f->memory_bytes);
    spans_end(&job->report.spans, SPAN_DECODE, start_ns, body->raw_bytes, code);
    return code;
}

/* Into the block, or with `stream` through it. */
static enum err fetch(struct lane_job *job, const struct frame_layout *layout,
                      struct decoding_stream *stream, struct decoders *decoders,
                      const struct bulk_links *bulk) {
    AUTO(fetch_done)
    struct fetch f = {.decoders = decoders,
                      .decoding.stream = stream,
                      .sections_count = layout->sections_count,
                      .memory_bytes = layout->memory_bytes};
    struct places places;
    place_all(&places, layout);
    ASSERT(stream || job->block.bytes >= places.bytes);
    for (uint32_t i = 0; i < layout->sections_count; i++) {
        f.dest[i] = (struct bytes_mut){stream ? NULL : job->block.ptr + places.section[i],
                                       (size_t)layout->sections[i].raw_bytes};
    }
    return body_of(job)->place_case == BELLOWS__V1__BODY__PLACE_OBJECT ? fetch_object(&f, job, bulk)
                                                                       : fetch_inline(&f, job);
}

static enum err check_against_key(const struct lane_job *job, const struct frame_layout *layout) {
    const struct key_shape *shape = key_shape(job->key);
    REQUIRE((int)job->job->curve == (int)shape->curve, E_CURVE,
            "the job says curve %d, its key is on %s", (int)job->job->curve,
            key_curve(job->key)->name);
    const struct frame_section *assignment = &layout->sections[layout->sections_count - 1];
    REQUIRE(assignment->values_count == shape->wires_count, E_RANGE,
            "partition %u: the witness has %llu values, the key's circuit has %u wires; is it a "
            "witness "
            "of this circuit?",
            job->index, (unsigned long long)assignment->values_count, shape->wires_count);
    if (layout->sections_count == BODY_EVALUATIONS) {
        char name[NAME_BYTES];
        write_name(name, job);
        TRY(evaluations_fit(layout->sections[0].values_count, shape, name, "the job's key"));
    }
    return OK;
}

/* Section i begins at at[i]. */
static enum err open_vectors(struct lane_job *job, const struct frame_layout *layout,
                             uint8_t *const *at) {
    job_unstage(job);
    for (uint32_t i = 0; i < layout->sections_count; i++) {
        const struct frame_section *section = &layout->sections[i];
        TRY(scalars_open(&job->vectors[i], bytes_of(at[i], (size_t)section->raw_bytes),
                         section->values_count, section_is_packed(section->kind)));
        job->vectors_count++;
    }
    return OK;
}

enum err job_stage_body(struct lane_job *job, struct decoders *decoders,
                        const struct bulk_links *bulk) {
    struct frame_layout layout;
    struct places places;
    uint8_t *at[BODY_SECTIONS_MAX];
    TRY(body_check(&layout, job));
    TRY(check_against_key(job, &layout));
    place_all(&places, &layout);
    job_unstage(job);
    TRY(fetch(job, &layout, NULL, decoders, bulk));
    for (uint32_t i = 0; i < layout.sections_count; i++) {
        at[i] = job->block.ptr + places.section[i];
    }
    return open_vectors(job, &layout, at);
}

/* --- Handing over --- */

enum err job_make_witness(struct lane_job *job, struct pool *pool) {
    struct frame_layout layout;
    struct places places;
    char name[NAME_BYTES];
    TRY(body_check(&layout, job));
    place_all(&places, &layout);
    ASSERT(job->block.bytes >= places.plain_bytes && job->vectors_count == layout.sections_count);
    uint64_t start_ns = clock_ns(), unpacked_bytes = 0;
    for (unsigned i = 0; i < job->vectors_count; i++) {
        const struct scalars *v = &job->vectors[i];
        struct bytes_mut out = {job->block.ptr + places.values[i], (size_t)v->count * SCALAR_BYTES};
        if (v->packed) {
            TRY(codec_decode(out, v->bytes, v->count, key_curve(job->key)->r.w, pool));
            unpacked_bytes += out.len;
        }
    }
    if (unpacked_bytes) {
        spans_end(&job->report.spans, SPAN_UNPACK, start_ns, unpacked_bytes, OK);
    }
    unsigned last = job->vectors_count - 1;
    write_name(name, job);
    TRY(witness_over_values(&job->witness, key_curve(job->key),
                            job->block.ptr + places.values[last], job->vectors[last].count, name));
    if (job->vectors_count == BODY_EVALUATIONS) {
        TRY(witness_add_evaluations(&job->witness, job->block.ptr + places.values[0],
                                    job->block.ptr + places.values[1], job->vectors[0].count,
                                    name));
    }
    return witness_fits(&job->witness, key_shape(job->key), "the job's key");
}

/* Value 0 and the public ones stay here: the proof is told with them. */
static enum err keep_first(struct lane_job *job, const char *name) {
    const struct key_shape *shape = key_shape(job->key);
    const struct scalars *v = &job->vectors[job->vectors_count - 1];
    size_t count = (size_t)shape->public_count + 1;
    AUTO(mem_free_ptr) uint8_t *first = NULL;
    TRY(mem_new(&first, count, SCALAR_BYTES));
    TRY(scalars_first(first, v, count, key_curve(job->key)->r.w));
    TRY(witness_from_first(&job->witness, key_curve(job->key), first, count, v->count, name));
    first = NULL;
    return witness_fits(&job->witness, shape, "the job's key");
}

enum err job_bring(struct lane_job *job, struct backend *backend) {
    char name[NAME_BYTES];
    write_name(name, job);
    witness_close(&job->witness);
    TRY(keep_first(job, name));
    struct bring bring = {
        .vectors = job->vectors, .vectors_count = job->vectors_count, .name = name};
    uint64_t start_ns = clock_ns();
    job_mark(job, JOB_STAGE_UPLOAD);
    enum err code = backend->ops->bring(job->loaded.slot, &bring, &job->watch);
    /* Without the wait for the job before: by the device's clock. */
    spans_add(&job->report.spans, SPAN_UPLOAD, start_ns,
              code == OK ? bring.upload_ns : clock_ns() - start_ns, bring.bytes, code);
    TRY(code);
    job->brought = job->witness.brought = bring.ticket;
    return OK;
}

/* --- Streaming --- */

struct body_stream {
    struct lane_job *job;          /* lent */
    const struct backend_ops *ops; /* lent */
    uint8_t *kept,
        *section[JOB_VECTORS_MAX]; /* owned: the first bytes of each section; where they lie */
    size_t kept_bytes, section_bytes[JOB_VECTORS_MAX];
    struct decoding_stream slots;
    _Atomic uint64_t upload_ns;
};

static void stream_done(struct body_stream *s) {
    if (s->kept) {
        mem_wipe(s->kept, s->kept_bytes);
    }
    mem_free(s->kept);
}

/* Bytes of a section up to its first `count` scalars. */
static size_t first_bytes(const struct frame_section *section, uint64_t count) {
    uint64_t bytes = count * SCALAR_BYTES;
    if (section_is_packed(section->kind)) {
        uint64_t blocks = packed_blocks_count(count),
                 block_bytes = packed_classes_bytes(PACKED_BLOCK_SCALARS) + PACKED_ALIGN +
                               (uint64_t)PACKED_BLOCK_SCALARS * SCALAR_BYTES;
        bytes = packed_head_bytes(section->values_count) + blocks * block_bytes;
    }
    return (size_t)(bytes < section->raw_bytes ? bytes : section->raw_bytes);
}

static enum err stream_open(struct body_stream *s, const struct frame_layout *layout) {
    const struct lane_job *job = s->job;
    uint32_t last = layout->sections_count - 1;
    for (uint32_t i = 0; i <= last; i++) {
        uint64_t count = i == last ? (uint64_t)key_shape(job->key)->public_count + 1 : 0;
        s->section_bytes[i] = first_bytes(&layout->sections[i], count);
        s->kept_bytes += aligned(s->section_bytes[i]);
    }
    TRY(mem_new(&s->kept, s->kept_bytes, 1));
    uint8_t *at = s->kept;
    for (uint32_t i = 0; i <= last; i++) {
        s->section[i] = at;
        at += aligned(s->section_bytes[i]);
    }
    s->slots.slots = job->block.ptr;
    s->slots.slot_bytes = layout->frame_bytes;
    s->slots.slots_count = (unsigned)(job->block.bytes / layout->frame_bytes);
    return OK;
}

static enum err take_piece(void *ctx, const struct frame *frame, struct bytes piece) {
    struct body_stream *s = ctx;
    size_t kept = s->section_bytes[frame->section];
    if (frame->offset < kept) {
        size_t left = kept - (size_t)frame->offset;
        memcpy(s->section[frame->section] + frame->offset, piece.ptr,
               piece.len < left ? piece.len : left);
    }
    uint64_t start_ns = clock_ns();
    TRY(s->ops->bring_piece(s->job->loaded.slot, frame->section, frame->offset, piece));
    atomic_fetch_add(&s->upload_ns, clock_ns() - start_ns);
    return OK;
}

static enum err stream_frames(struct body_stream *s, const struct frame_layout *layout,
                              struct decoders *decoders, const struct bulk_links *bulk,
                              const char *name) {
    TRY(fetch(s->job, layout, &s->slots, decoders, bulk));
    TRY(open_vectors(s->job, layout, s->section));
    return keep_first(s->job, name);
}

enum err job_stream(struct lane_job *job, struct decoders *decoders, const struct bulk_links *bulk,
                    struct backend *backend) {
    struct frame_layout layout;
    char name[NAME_BYTES];
    AUTO(stream_done) struct body_stream s = {.job = job, .ops = backend->ops};
    s.slots.take = take_piece;
    s.slots.ctx = &s;
    write_name(name, job);
    TRY(body_check(&layout, job));
    TRY(check_against_key(job, &layout));
    TRY(stream_open(&s, &layout));
    job_unstage(job);
    shape_vectors(job->vectors, &layout);
    struct bring bring = {.vectors = job->vectors,
                          .vectors_count = layout.sections_count,
                          .name = name,
                          .in_pieces = true};
    uint64_t start_ns = clock_ns();
    job_mark(job, JOB_STAGE_UPLOAD);
    TRY(backend->ops->bring_begin(job->loaded.slot, &bring, &job->watch));
    struct fault fault = fault_of(stream_frames(&s, &layout, decoders, bulk, name));
    job_mark(job, JOB_STAGE_UPLOAD);
    enum err code = backend->ops->bring_end(job->loaded.slot, &bring, fault.code == OK);
    struct fault end = fault_of(code);
    spans_add(&job->report.spans, SPAN_UPLOAD, start_ns, atomic_load(&s.upload_ns), bring.bytes,
              code);
    uint64_t ticket = bring.ticket;
    for (unsigned i = 0; i < job->vectors_count; i++) { /* nothing of them stays here */
        scalars_close(&job->vectors[i]);
    }
    job->vectors_count = 0;
    TRY(fault.code == OK ? OK : fault_raise(&fault));
    TRY(end.code == OK ? OK : fault_raise(&end));
    job->brought = job->witness.brought = ticket;
    return OK;
}

/* --- For a computation elsewhere --- */

/* To out, which moves behind it. */
static enum err unpack_plain(uint8_t **out, const struct scalars *v, const struct curve *c) {
    struct bytes_mut to = {*out, (size_t)v->count * SCALAR_BYTES};
    if (v->packed) {
        TRY(codec_decode(to, v->bytes, v->count, c->r.w, NULL));
    } else {
        memcpy(to.ptr, v->bytes.ptr, to.len);
    }
    *out += to.len;
    return OK;
}

/* Over memory of its own, instead of the arena's. */
static enum err fetch_again(struct lane_job *job, struct decoders *decoders,
                            const struct bulk_links *bulk) {
    struct frame_layout layout;
    struct places places;
    AUTO(mem_free_ptr) uint8_t *block = NULL;
    struct pinned_block lent = job->block;
    TRY(body_check(&layout, job));
    place_all(&places, &layout);
    TRY(mem_new_raw(&block, (size_t)places.plain_bytes, 1));
    job->block = (struct pinned_block){block, (size_t)places.plain_bytes};
    enum err code = job_stage_body(job, decoders, bulk);
    code = code == OK ? job_make_witness(job, NULL) : code;
    job->block = lent;
    if (code != OK) {
        mem_wipe(block, (size_t)places.plain_bytes);
        return code;
    }
    witness_own(&job->witness, TAKE(block), (size_t)places.plain_bytes);
    return OK;
}

enum err job_unpack_brought(struct lane_job *job, struct decoders *decoders,
                            const struct bulk_links *bulk) {
    const struct curve *c = key_curve(job->key);
    char name[NAME_BYTES];
    size_t count = 0;
    if (job->witness.brought == 0) {
        return OK;
    }
    if (job->way == JOB_WAY_STREAM) {
        return fetch_again(job, decoders, bulk);
    }
    for (unsigned i = 0; i < job->vectors_count; i++) {
        count += (size_t)job->vectors[i].count;
    }
    AUTO(mem_free_ptr) uint8_t *block = NULL;
    const struct scalars *assignment = &job->vectors[job->vectors_count - 1];
    TRY(mem_new_raw(&block, count, SCALAR_BYTES));
    uint8_t *at = block;
    for (unsigned i = 0; i < job->vectors_count; i++) {
        TRY(unpack_plain(&at, &job->vectors[i], c));
    }
    struct witness plain;
    write_name(name, job);
    TRY(witness_over_values(&plain, c, at - assignment->count * SCALAR_BYTES, assignment->count,
                            name));
    if (job->vectors_count == BODY_EVALUATIONS) {
        uint64_t rows = job->vectors[0].count;
        TRY(witness_add_evaluations(&plain, block, block + rows * SCALAR_BYTES, rows, name));
    }
    witness_own(&plain, TAKE(block), count * SCALAR_BYTES);
    witness_close(&job->witness);
    job->witness = plain;
    return OK;
}
