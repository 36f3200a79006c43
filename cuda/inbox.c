/* One device block holds the vectors one behind the other as they came, and behind them the tables of packed blocks with a word of verdict for
 * each vector; the page-locked twin of the tables is where they are copied from and where verdicts come back to.
 *
 * The copy stream waits for what the compute stream took last (an event), and wipes it then, never the other way round: a job that is
 * handed to the compute stream is here, and checked. Plain values are copied on the device when they are taken, 0.06 ms for 2^22, so that every job finds its
 * scalars in one place.
 */
#include "cuda/inbox.h"

#include "node/base/clock.h"
#include "node/curve/curve.h"

#include "cuda/layout.h"

#include <stdatomic.h>
#include <string.h>

typedef enum err check_packed(uint32_t *verdict, const struct gpu_packed_block *blocks,
                              const void *data, uint32_t blocks_count, struct gpu_stream *s);
typedef enum err check_plain(uint32_t *verdict, const void *values, uint32_t count,
                             struct gpu_stream *s);
/* expand.cu: *verdict (device) becomes the least index of a packed block, or of a plain value, that is not sound. */
check_packed bn254_gpu_check_packed, bls12_381_gpu_check_packed;
check_plain bn254_gpu_check_plain, bls12_381_gpu_check_plain;

static const struct {
    check_packed *packed;
    check_plain *plain;
} checks[] = {[CURVE_BN254] = {bn254_gpu_check_packed, bn254_gpu_check_plain},
              [CURVE_BLS12_381] = {bls12_381_gpu_check_packed, bls12_381_gpu_check_plain}};

static const uint64_t LOOK_NS = UINT64_C(100000000); /* so often a waiting job looks for its end */
static const uint32_t SOUND = UINT32_MAX;            /* a verdict */

_Static_assert(sizeof(struct codec_block) == sizeof(struct gpu_packed_block) &&
                   offsetof(struct codec_block, width) == offsetof(struct gpu_packed_block, width),
               "the map of a section is the table that the device reads");

static size_t aligned(size_t bytes) {
    return (bytes + INBOX_ALIGN - 1) & ~(size_t)(INBOX_ALIGN - 1);
}

size_t inbox_bytes(const uint64_t *counts, unsigned counts_count) {
    size_t bytes = 0;
    for (unsigned i = 0; i < counts_count; i++) {
        bytes += aligned((size_t)codec_bytes_most(counts[i]));
    }
    return bytes;
}

size_t inbox_table_bytes(const uint64_t *counts, unsigned counts_count) {
    size_t bytes = aligned(INBOX_VECTORS_MAX * sizeof(uint32_t));
    for (unsigned i = 0; i < counts_count; i++) {
        bytes += aligned((size_t)packed_blocks_count(counts[i]) * sizeof(struct gpu_packed_block));
    }
    return bytes;
}

enum err inbox_open(struct inbox *out, enum curve_id curve, char *memory, size_t bytes,
                    char *pinned, size_t table_bytes) {
    lock_init(&out->lock, LOCK_BACKEND);
    condition_init(&out->changed);
    out->curve = curve;
    out->memory = memory;
    out->bytes = bytes;
    out->pinned = pinned;
    out->table_bytes = table_bytes;
    TRY(gpu_stream_open(&out->stream));
    TRY(gpu_event_open(&out->begun));
    TRY(gpu_event_open(&out->sent));
    TRY(gpu_event_open(&out->checked));
    return gpu_event_open(&out->taken);
}

void inbox_close(struct inbox *in) {
    if (in->memory) {
        gpu_stream_close(&in->stream);
        gpu_event_close(&in->begun);
        gpu_event_close(&in->sent);
        gpu_event_close(&in->checked);
        gpu_event_close(&in->taken);
        condition_done(&in->changed);
        lock_done(&in->lock);
        in->memory = NULL;
    }
}

/* --- Filling --- */

static void set_state(struct inbox *in, int state) {
    LOCK_SCOPE(&in->lock);
    in->state = state;
    condition_wake_all(&in->changed);
}

static enum err wait_until_free(struct inbox *in, const struct job_watch *watch) {
    LOCK_SCOPE(&in->lock);
    while (in->state != INBOX_FREE) {
        REQUIRE(!atomic_load(&watch->cancel), E_CANCELLED, "cancelled before it was uploaded");
        struct timespec until = clock_wait_until(LOOK_NS);
        condition_wait_until(&in->changed, &in->lock, &until);
    }
    in->state = INBOX_FILLING;
    return OK;
}

/* Where each vector and its table goes; false when there is no room. */
static bool place(struct inbox_vector *out, size_t *used_bytes, const struct inbox *in,
                  const struct scalars *vectors, unsigned count) {
    size_t at = 0, table_at = aligned(INBOX_VECTORS_MAX * sizeof(uint32_t));
    if (count > INBOX_VECTORS_MAX) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        const struct scalars *v = &vectors[i];
        size_t blocks_count = v->packed ? (size_t)v->map.blocks_count : 0;
        if (v->bytes.len > in->bytes - at ||
            blocks_count * sizeof(struct gpu_packed_block) > in->table_bytes - table_at) {
            return false;
        }
        out[i] =
            (struct inbox_vector){v->count, (uint32_t)blocks_count, at, v->bytes.len, table_at};
        at = aligned(at + v->bytes.len);
        at = at < in->bytes ? at : in->bytes;
        table_at = aligned(table_at + blocks_count * sizeof(struct gpu_packed_block));
        table_at = table_at < in->table_bytes ? table_at : in->table_bytes;
    }
    *used_bytes = at;
    return true;
}

bool inbox_fits(const struct inbox *in, const struct scalars *vectors, unsigned count) {
    struct inbox_vector placed[INBOX_VECTORS_MAX];
    size_t used_bytes;
    return place(placed, &used_bytes, in, vectors, count);
}

/* Queues tables and checks; what they say is there when `checked` has passed. */
static enum err send_checks(struct inbox *in, const struct bring *b) {
    char *tables = in->memory + in->bytes;
    TRY(gpu_event_record(in->sent, in->stream));
    memset(in->pinned, 0xff, INBOX_VECTORS_MAX * sizeof(uint32_t));
    for (unsigned i = 0; i < in->vectors_count; i++) {
        const struct inbox_vector *v = &in->vectors[i];
        if (v->blocks_count) {
            memcpy(in->pinned + v->table_at, b->vectors[i].map.blocks,
                   v->blocks_count * sizeof(struct gpu_packed_block));
        }
    }
    TRY(gpu_upload(tables, in->pinned, in->table_bytes, in->stream));
    for (unsigned i = 0; i < in->vectors_count; i++) {
        const struct inbox_vector *v = &in->vectors[i];
        uint32_t *verdict = (uint32_t *)(void *)tables + i;
        if (v->blocks_count) {
            const void *blocks = tables + v->table_at;
            TRY(checks[in->curve].packed(verdict, blocks, in->memory + v->at, v->blocks_count,
                                         in->stream));
        } else {
            TRY(checks[in->curve].plain(verdict, in->memory + v->at, (uint32_t)v->count,
                                        in->stream));
        }
    }
    TRY(gpu_download(in->pinned, tables, INBOX_VECTORS_MAX * sizeof(uint32_t), in->stream));
    return gpu_event_record(in->checked, in->stream);
}

/* The processor looks at what the device has found, and says it in its own words. */
static enum err accuse(const struct inbox *in, const struct bring *b, unsigned idx,
                       uint32_t verdict) {
    const struct curve *c = curve_by_id(in->curve);
    const struct scalars *v = &b->vectors[idx];
    REQUIRE(!b->in_pieces, E_RANGE,
            "%s: %s %u of vector %u is not sound: a value is not below the scalar prime r of %s, "
            "or the "
            "block is not what its entry says; make the witness again",
            b->name, v->packed ? "packed block" : "value", verdict, idx, c->snarkjs_name);
    if (v->packed) {
        TRY(codec_check_block(&v->map, verdict, c->r.w));
    } else {
        struct scalar value;
        memcpy(&value, v->bytes.ptr + (size_t)verdict * SCALAR_BYTES, sizeof value);
        REQUIRE(scalar_is_valid(c, &value), E_RANGE,
                "%s: value %u of %llu is not canonical: it is not below the scalar prime r of %s; "
                "make the witness again",
                b->name, verdict, (unsigned long long)v->count, c->snarkjs_name);
    }
    FAIL(E_DEVICE,
         "%s: the device finds its scalars damaged at %u, the processor does not: a copy "
         "went wrong, or the device computes wrongly",
         b->name, verdict);
}

static enum err look_at_verdicts(struct inbox *in, struct bring *b) {
    uint32_t verdicts[INBOX_VECTORS_MAX];
    enum err code = send_checks(in, b);
    enum err done =
        gpu_stream_wait(in->stream); /* whatever came: nothing reads the host's bytes after this */
    TRY(code);
    TRY(done);
    if (!b->in_pieces) {
        TRY(gpu_event_ns(&b->upload_ns, in->begun, in->sent));
    }
    memcpy(verdicts, in->pinned, sizeof verdicts);
    for (unsigned i = 0; i < in->vectors_count; i++) {
        b->bytes += in->vectors[i].bytes;
        if (verdicts[i] != SOUND) {
            return accuse(in, b, i, verdicts[i]);
        }
    }
    return OK;
}

enum err inbox_begin(struct inbox *in, struct bring *b, struct job_watch *watch) {
    TRY(wait_until_free(in, watch));
    b->bytes = b->upload_ns = 0;
    if (!place(in->vectors, &in->used_bytes, in, b->vectors, b->vectors_count)) {
        set_state(in, INBOX_FREE);
        FAIL(E_LIMIT, "%s: its vectors do not fit the %zu bytes that are set aside for them",
             b->name, in->bytes);
    }
    in->vectors_count = b->vectors_count;
    enum err code = gpu_stream_after(in->stream, in->taken);
    code = code == OK ? gpu_event_record(in->begun, in->stream) : code;
    if (code != OK) {
        set_state(in, INBOX_FREE);
    }
    return code;
}

enum err inbox_piece(struct inbox *in, unsigned vector_idx, uint64_t at, struct bytes piece) {
    const struct inbox_vector *v = &in->vectors[vector_idx];
    ASSERT(vector_idx < in->vectors_count && at <= v->bytes && piece.len <= v->bytes - at);
    TRY(gpu_upload(in->memory + v->at + at, piece.ptr, piece.len, in->stream));
    return gpu_stream_wait(in->stream);
}

enum err inbox_end(struct inbox *in, struct bring *b, bool whole) {
    enum err code = OK;
    if (whole) {
        code = look_at_verdicts(in, b);
    } else {
        IGNORE(gpu_fill(in->memory, 0, in->used_bytes, in->stream));
        IGNORE(gpu_stream_wait(in->stream)); /* nothing reads the host's bytes after this */
    }
    b->ticket = ++in->ticket;
    set_state(in, whole && code == OK ? INBOX_FULL : INBOX_FREE);
    return code;
}

static enum err send_all(struct inbox *in, const struct bring *b) {
    for (unsigned i = 0; i < in->vectors_count; i++) {
        const struct inbox_vector *v = &in->vectors[i];
        TRY(gpu_upload(in->memory + v->at, b->vectors[i].bytes.ptr, v->bytes, in->stream));
    }
    return OK;
}

enum err inbox_bring(struct inbox *in, struct bring *b, struct job_watch *watch) {
    TRY(inbox_begin(in, b, watch));
    struct fault fault = fault_of(send_all(in, b));
    enum err code = inbox_end(in, b, fault.code == OK);
    return fault.code == OK ? code : fault_raise(&fault);
}

void inbox_drop(struct inbox *in, uint64_t ticket) {
    lock_take(&in->lock);
    bool here = in->state == INBOX_FULL && in->ticket == ticket;
    in->state = here ? INBOX_FILLING : in->state;
    lock_give(&in->lock);
    if (here) {
        IGNORE(gpu_fill(in->memory, 0, in->used_bytes, in->stream));
        set_state(in, INBOX_FREE);
    }
}

/* --- Taking --- */

static enum err take(struct inbox *in, const struct inbox_place *places, struct gpu_stream *s) {
    TRY(gpu_stream_after(s, in->checked));
    for (unsigned i = 0; i < in->vectors_count; i++) {
        const struct inbox_vector *v = &in->vectors[i];
        size_t bytes = (size_t)v->count * SCALAR_BYTES;
        ASSERT(bytes <= places[i].bytes);
        if (v->blocks_count) {
            const void *blocks = in->memory + in->bytes + v->table_at;
            TRY(gpu_curve_of(in->curve)->expand(places[i].to, blocks, in->memory + v->at,
                                                v->blocks_count, s));
        } else {
            TRY(gpu_copy(places[i].to, in->memory + v->at, bytes, s));
        }
        TRY(gpu_fill((char *)places[i].to + bytes, 0, places[i].bytes - bytes, s));
    }
    return gpu_event_record(in->taken, s);
}

/* On the copy stream, beside the job that has begun; what comes next comes behind it. */
static enum err wipe(struct inbox *in) {
    TRY(gpu_stream_after(in->stream, in->taken));
    return gpu_fill(in->memory, 0, in->used_bytes, in->stream);
}

enum err inbox_take(struct inbox *in, uint64_t ticket, const struct inbox_place *places,
                    unsigned count, struct gpu_stream *s) {
    ASSERT(in->state == INBOX_FULL && in->ticket == ticket && count == in->vectors_count);
    enum err code = take(in, places, s);
    code = code == OK ? wipe(in) : code;
    set_state(in, INBOX_FREE);
    return code;
}
