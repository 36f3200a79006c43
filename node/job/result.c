/* Points travel as plain little-endian coordinates: a reader in another language needs no Montgomery form. The messages
 * are built on the stack around lent memory and packed at once; nothing outlives the call but the packed block.
 */
#include "node/job/result.h"

#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"

/* --- Points --- */

enum { WIRE_PROOF_BYTES_MAX = G1_BYTES_MAX + G2_BYTES_MAX + G1_BYTES_MAX };

static void point_to_wire(uint8_t *out, const struct curve *c, const uint64_t *point,
                          size_t coordinates_count) {
    size_t limbs = c->fp_bytes / 8;
    for (size_t i = 0; i < coordinates_count; i++) {
        uint64_t plain[FP_LIMBS_MAX];
        c->fp_to_int(plain, point + i * limbs);
        for (size_t k = 0; k < limbs; k++) {
            store_u64le(out + i * c->fp_bytes + 8 * k, plain[k]);
        }
    }
}

static enum err point_from_wire(uint64_t *point, const struct curve *c, size_t coordinates_count,
                                ProtobufCBinaryData in, const char *what) {
    size_t limbs = c->fp_bytes / 8;
    REQUIRE(in.len == coordinates_count * c->fp_bytes, E_FORMAT,
            "result: point %s has %zu bytes, on %s it has %zu", what, in.len, c->name,
            coordinates_count * c->fp_bytes);
    for (size_t i = 0; i < coordinates_count; i++) {
        uint64_t plain[FP_LIMBS_MAX];
        for (size_t k = 0; k < limbs; k++) {
            plain[k] = load_u64le(in.data + i * c->fp_bytes + 8 * k);
        }
        REQUIRE(c->fp_from_int(point + i * limbs, plain), E_RANGE,
                "result: coordinate %zu of point %s is not below the field's modulus", i, what);
    }
    return OK;
}

enum err proof_from_message(struct proof *proof, struct scalar **publics, size_t *publics_count,
                            const struct curve *c, const Bellows__V1__Proof *message) {
    struct proof p = {.curve = c};
    TRY(point_from_wire(p.a.w, c, 2, message->a, "a"));
    TRY(point_from_wire(p.b.w, c, 4, message->b, "b"));
    TRY(point_from_wire(p.c.w, c, 2, message->c, "c"));
    size_t bad_idx;
    uint8_t packed[G2_BYTES_MAX];
    g1_store(packed, c, &p.a);
    TRY(c->g1_check(&bad_idx, packed, 1, false));
    g2_store(packed, c, &p.b);
    TRY(c->g2_check(&bad_idx, packed, 1, false));
    g1_store(packed, c, &p.c);
    TRY(c->g1_check(&bad_idx, packed, 1, false));
    REQUIRE(message->publics.len % SCALAR_BYTES == 0, E_FORMAT,
            "result: public signals have %zu bytes, not a multiple of %d", message->publics.len,
            SCALAR_BYTES);
    size_t count = message->publics.len / SCALAR_BYTES;
    AUTO(mem_free_ptr) struct scalar *values = NULL;
    TRY(mem_new(&values, count + 1, sizeof *values));
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < 4; k++) {
            values[i].w[k] = load_u64le(message->publics.data + SCALAR_BYTES * i + 8 * k);
        }
        REQUIRE(scalar_is_valid(c, &values[i]), E_RANGE,
                "result: public signal %zu is not below the group order", i);
    }
    *proof = p;
    *publics = TAKE(values);
    *publics_count = count;
    return OK;
}

uint64_t result_bytes_expected(const struct curve *c, uint64_t publics_count,
                               uint32_t parts_count) {
    uint64_t around = 1024; /* names, timings, error */
    return around +
           parts_count * (around + 2 * c->g1_bytes + c->g2_bytes + SCALAR_BYTES * publics_count);
}

/* --- Messages --- */

Bellows__V1__Status status_of_code(enum err code) {
    switch (code) {
    case OK:
        return BELLOWS__V1__STATUS__STATUS_OK;
    case E_CANCELLED:
        return BELLOWS__V1__STATUS__STATUS_CANCELLED;
    case E_DEADLINE:
        return BELLOWS__V1__STATUS__STATUS_EXPIRED;
    default:
        return BELLOWS__V1__STATUS__STATUS_FAILED;
    }
}

enum job_state state_of_status(Bellows__V1__Status status) {
    switch (status) {
    case BELLOWS__V1__STATUS__STATUS_OK:
        return JOB_DONE;
    case BELLOWS__V1__STATUS__STATUS_CANCELLED:
        return JOB_CANCELLED;
    case BELLOWS__V1__STATUS__STATUS_EXPIRED:
        return JOB_EXPIRED;
    default:
        return JOB_FAILED;
    }
}

struct part_room { /* a PartResult and all it points to */
    part_message message;
    Bellows__V1__Proof proof;
    Bellows__V1__Error error;
    Bellows__V1__StepTiming steps[SPAN_STEPS_COUNT], *step_ptrs[SPAN_STEPS_COUNT];
    uint8_t points[WIRE_PROOF_BYTES_MAX];
};

static char *lent(const char *text) {
    return (char *)(uintptr_t)(text ? text : "");
}

static void error_fill(Bellows__V1__Error *out, const struct fault *fault) {
    bellows__v1__error__init(out);
    out->name = lent(err_name(fault->code));
    out->detail = lent(fault->detail);
}

static void proof_fill(struct part_room *room, const struct prove_result *proved) {
    const struct curve *c = proved->proof.curve;
    uint8_t *a = room->points, *b = a + c->g1_bytes, *end = b + c->g2_bytes;
    point_to_wire(a, c, proved->proof.a.w, 2);
    point_to_wire(b, c, proved->proof.b.w, 4);
    point_to_wire(end, c, proved->proof.c.w, 2);
    bellows__v1__proof__init(&room->proof);
    room->proof.a = (ProtobufCBinaryData){c->g1_bytes, a};
    room->proof.b = (ProtobufCBinaryData){c->g2_bytes, b};
    room->proof.c = (ProtobufCBinaryData){c->g1_bytes, end};
    room->proof.publics =
        (ProtobufCBinaryData){proved->publics_count * SCALAR_BYTES, (uint8_t *)proved->publics};
}

/* Each step once, in the order in which they were begun: repeats are added up. */
static void steps_fill(struct part_room *room, const struct spans *spans) {
    size_t place[SPAN_STEPS_COUNT] = {0}; /* in the message, from 1 */
    for (size_t i = 0; i < spans->count; i++) {
        const struct span *span = &spans->items[i];
        if (span->outcome != OK) {
            continue;
        }
        if (!place[span->step]) {
            Bellows__V1__StepTiming *step = &room->steps[room->message.n_steps];
            bellows__v1__step_timing__init(step);
            step->step = lent(span_step_name(span->step));
            room->step_ptrs[room->message.n_steps] = step;
            place[span->step] = ++room->message.n_steps;
        }
        room->steps[place[span->step] - 1].ns += span->ns;
        room->steps[place[span->step] - 1].bytes += span->bytes;
    }
    room->message.steps = room->step_ptrs;
}

static void part_fill(struct part_room *room, const struct part_report *r) {
    part_message *m = &room->message;
    bellows__v1__part_result__init(m);
    m->version = WIRE_VERSION;
    m->job_id = lent(r->name.job);
    m->tenant = lent(r->name.tenant);
    m->generation = r->generation;
    m->index = r->index;
    m->status = status_of_code(r->proved ? OK : r->fault.code);
    if (r->proved) {
        proof_fill(room, r->proved);
        m->proof = &room->proof;
    } else {
        error_fill(&room->error, &r->fault);
        m->error = &room->error;
    }
    steps_fill(room, &r->spans);
    m->total_ns = r->total_ns;
    m->device = lent(r->device);
    m->node = lent(r->lane.node);
    m->gpu = r->lane.gpu;
    m->attempts = r->attempt;
    m->epoch = r->epoch;
}

enum err part_report_pack(struct bytes_mut *out, const struct part_report *report) {
    struct part_room room;
    part_fill(&room, report);
    return part_pack(out, &room.message);
}

enum err job_report_pack(struct bytes_mut *out, const struct job_report *report,
                         part_message *const *parts, size_t parts_count) {
    result_message m = BELLOWS__V1__RESULT__INIT;
    Bellows__V1__Error error;
    m.version = WIRE_VERSION;
    m.job_id = lent(report->name.job);
    m.tenant = lent(report->name.tenant);
    m.generation = report->generation;
    m.status = status_of_code(report->fault.code);
    m.key_digest = report->job->key_digest;
    m.curve = report->job->curve;
    m.submitted_unix_ms = report->job->submitted_unix_ms;
    m.finished_unix_ms = clock_unix_ns() / 1000000;
    m.elapsed_ns = report->elapsed_ns;
    if (report->fault.code != OK) {
        error_fill(&error, &report->fault);
        m.error = &error;
    }
    AUTO(mem_free_ptr) part_message *copies = NULL;
    AUTO(mem_free_ptr) part_message **copy_ptrs = NULL;
    TRY(mem_new(&copies, parts_count + 1, sizeof *copies));
    TRY(mem_new(&copy_ptrs, parts_count + 1, sizeof *copy_ptrs));
    for (size_t i = 0; i < parts_count; i++) {
        copies[i] = *parts[i];
        copies[i].job_id = copies[i].tenant = lent(""); /* said once, by the Result */
        copy_ptrs[i] = &copies[i];
    }
    m.n_partitions = parts_count;
    m.partitions = copy_ptrs;
    return result_pack(out, &m);
}

enum err job_report_pack_one(struct bytes_mut *out, const struct job_report *report,
                             const struct part_report *part) {
    struct part_room room;
    part_fill(&room, part);
    part_message *parts[1] = {&room.message};
    return job_report_pack(out, report, parts, 1);
}

/* --- Storing once --- */

static enum err store_once(bool *won, struct transport *t, const char *subject, struct bytes data) {
    struct publish_ack ack;
    TRY(transport_publish(
        &ack, t, subject, data,
        &(struct publish_options){.expect_last = true, .expect_last_sequence = 0}));
    *won = ack.outcome != PUBLISH_CONFLICT;
    return OK;
}

enum err part_store(bool *won, const struct job_place *at, uint64_t generation, uint32_t index,
                    struct bytes part) {
    struct subject subject = subject_part(at->space, at->name, generation, index);
    return store_once(won, at->transport, subject.text, part);
}

enum err result_store(Bellows__V1__Status *status, bool *won, const struct job_place *at,
                      uint64_t generation, struct bytes result) {
    struct subject subject = subject_done(at->space, at->name, generation);
    TRY(store_once(won, at->transport, subject.text, result));
    AUTO(message_free) result_message *stored = NULL;
    if (*won) {
        TRY(result_unpack(&stored, result));
    } else {
        bool found = false;
        TRY(result_fetch(&stored, &found, at, generation));
        REQUIRE(found, E_NET, "%s: a result was stored and is gone", subject.text);
    }
    *status = stored->status;
    return OK;
}

enum err result_fetch(result_message **out, bool *found, const struct job_place *at,
                      uint64_t generation) {
    struct subject subject = subject_done(at->space, at->name, generation);
    struct subject stream = stream_name(at->space, "DONE");
    AUTO(message_done) struct message m = {0};
    bool is_there = false;
    TRY(stream_get_last(&m, &is_there, at->transport, stream.text, subject.text));
    if (is_there) {
        TRY(result_unpack(out, m.data));
    }
    *found = is_there;
    return OK;
}
