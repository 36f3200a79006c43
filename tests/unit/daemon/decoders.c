/* Bodies decoded by other threads: the same values as by one, and the same refusals. */
#include "node/daemon/decoders.h"

#include <pthread.h>
#include <string.h>

#include "node/base/lock.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "tests/check/check.h"

enum { VALUES = 40000, RAW_BYTES = VALUES * 32, FRAME_BYTES = 16384 };

struct body {                  /* encoded, with its description */
    uint8_t *raw, *got, *wire; /* owned */
    size_t wire_len, ends[RAW_BYTES / FRAME_BYTES + 1], frames_count;
    struct body_summary summary;
    Bellows__V1__Body *description; /* owned */
};

static enum err collect(void *ctx, struct bytes frame) {
    struct body *b = ctx;
    memcpy(b->wire + b->wire_len, frame.ptr, frame.len);
    b->wire_len += frame.len;
    b->ends[b->frames_count++] = b->wire_len;
    return OK;
}

static void body_open(struct body *b) {
    struct frame_section section = {
        .kind = SECTION_WITNESS_RAW, .values_count = VALUES, .raw_bytes = RAW_BYTES};
    struct frame_layout layout;
    *b = (struct body){0};
    CHECK_OK(mem_new(&b->raw, RAW_BYTES, 1));
    CHECK_OK(mem_new(&b->got, RAW_BYTES, 1));
    CHECK_OK(mem_new(&b->wire, 2 * RAW_BYTES, 1));
    for (size_t i = 0; i < VALUES; i++) { /* some frames compress, some do not */
        rng_fill(check_rng(), b->raw + 32 * i, i / 2000 % 2 ? 31 : 1);
    }
    struct bytes data = bytes_of(b->raw, RAW_BYTES);
    CHECK_OK(frame_layout_init(&layout, &section, 1, FRAME_BYTES, UINT64_MAX));
    CHECK_OK(body_write(&b->summary, &layout, &data, collect, b));
    CHECK_OK(body_describe(&b->description, &b->summary,
                           (struct body_place){.bucket = "b", .name = "n", .nuid = "u"}));
}

static void body_close(struct body *b) {
    mem_free(b->description);
    mem_free(b->raw);
    mem_free(b->got);
    mem_free(b->wire);
}

/* On any thread: without claims, chunks of one frame or of `cut` bytes. */
static enum err decode_unchecked(struct decoders *d, struct body *b, size_t cut) {
    AUTO(body_reader_free) struct body_reader *reader = NULL;
    struct bytes_mut place = {b->got, RAW_BYTES};
    struct decoding body = {0};
    enum err code = OK;
    TRY(body_reader_new(&reader, b->description, &place, 1, RAW_BYTES));
    for (size_t at = 0, frame = 0; at < b->wire_len && code == OK;) {
        size_t end = cut ? at + cut : b->ends[frame++];
        end = end < b->wire_len ? end : b->wire_len;
        struct message chunk = {.data = bytes_of(b->wire + at, end - at)};
        code = decoders_add(d, &body, reader, &chunk);
        at = end;
    }
    enum err late = decoders_wait(NULL, d, &body);
    TRY(code == OK ? late : code);
    return body_reader_end(reader);
}

/* Chunks as `cut` says: 0: one per frame; else of random lengths up to it. `stream` NULL: to its place, else through that. */
static enum err decode_by(struct decoders *d, struct body *b, size_t cut,
                          struct decoding_stream *stream) {
    struct body_reader *reader = NULL;
    struct bytes_mut place = {stream ? NULL : b->got, RAW_BYTES};
    struct decoding body = {.stream = stream};
    enum err code = OK;
    memset(b->got, 0, RAW_BYTES);
    CHECK_OK(body_reader_new(&reader, b->description, &place, 1, RAW_BYTES));
    size_t frame = 0;
    for (size_t at = 0; at < b->wire_len && code == OK;) {
        size_t end = cut ? at + 1 + rng_below(check_rng(), cut) : b->ends[frame++];
        end = end < b->wire_len ? end : b->wire_len;
        struct message chunk = {.data = bytes_of(b->wire + at, end - at)};
        code = decoders_add(d, &body, reader, &chunk);
        CHECK(!chunk.data.ptr);
        at = end;
    }
    uint64_t busy_ns = 0;
    enum err late = decoders_wait(&busy_ns, d, &body);
    code = code == OK ? late : code;
    if (code == OK) {
        CHECK(busy_ns > 0 || (!stream && cut &&
                              cut < FRAME_BYTES)); /* nothing whole: decoded where it was fetched */
        code = body_reader_end(reader);
    }
    body_reader_free(&reader);
    return code;
}

static enum err decode(struct decoders *d, struct body *b, size_t cut) {
    return decode_by(d, b, cut, NULL);
}

struct sink {
    struct body *b;
    uint8_t *slots; /* owned */
    struct lock lock;
    unsigned busy, busy_most, slots_count; /* [lock] */
    bool fails;
};

static enum err take(void *ctx, const struct frame *frame, struct bytes piece) {
    struct sink *s = ctx;
    size_t slot = (size_t)(piece.ptr - s->slots) / FRAME_BYTES;
    lock_take(&s->lock);
    s->busy++;
    s->busy_most = s->busy > s->busy_most ? s->busy : s->busy_most;
    lock_give(&s->lock);
    REQUIRE(slot < s->slots_count, E_INTERNAL, "a piece outside of the slots");
    memcpy(s->b->got + frame->offset, piece.ptr, piece.len);
    lock_take(&s->lock);
    s->busy--;
    lock_give(&s->lock);
    REQUIRE(!s->fails || frame->index != 30, E_DEVICE, "no more than 30 frames");
    return OK;
}

/* Each frame in one of two slots, whatever the chunks; then of a taker that refuses. */
static void claim_streamed(void) {
    static const size_t cuts[] = {0, 100, 5000, 3 * FRAME_BYTES, 2 * RAW_BYTES};
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        struct decoders *d = NULL;
        struct body b;
        struct sink sink = {.b = &b, .slots_count = 2};
        body_open(&b);
        lock_init(&sink.lock, LOCK_QUEUE);
        CHECK_OK(mem_new(&sink.slots, sink.slots_count, FRAME_BYTES));
        CHECK_OK(decoders_open(&d, threads));
        struct decoding_stream stream = {.slots = sink.slots,
                                         .slot_bytes = FRAME_BYTES,
                                         .slots_count = sink.slots_count,
                                         .take = take,
                                         .ctx = &sink};
        for (size_t i = 0; i < COUNT_OF(cuts); i++) {
            CHECK_OK(decode_by(d, &b, cuts[i], &stream));
            CHECK_MEM(b.raw, b.got, RAW_BYTES);
        }
        CHECK(sink.busy_most >= 1 && sink.busy_most <= sink.slots_count);
        sink.fails = true;
        CHECK_ERR(E_DEVICE, decode_by(d, &b, 0, &stream));
        sink.fails = false;
        b.wire[b.ends[20] - 100] ^= 0x40;
        CHECK_ERR(E_FORMAT, decode_by(d, &b, 0, &stream));
        b.wire[b.ends[20] - 100] ^= 0x40;
        CHECK_OK(decode_by(d, &b, 0, &stream));
        decoders_close(&d);
        lock_done(&sink.lock);
        mem_free(sink.slots);
        body_close(&b);
    }
}

static void claim_same_values(void) {
    static const size_t cuts[] = {0, 100, 5000, 3 * FRAME_BYTES, 2 * RAW_BYTES};
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        struct decoders *d = NULL;
        struct body b;
        body_open(&b);
        CHECK_OK(decoders_open(&d, threads));
        for (size_t i = 0; i < COUNT_OF(cuts); i++) {
            CHECK_OK(decode(d, &b, cuts[i]));
            CHECK_MEM(b.raw, b.got, RAW_BYTES);
        }
        decoders_close(&d);
        body_close(&b);
    }
}

static void claim_damage(void) {
    struct decoders *d = NULL;
    struct body b;
    body_open(&b);
    CHECK_OK(decoders_open(&d, 2));
    for (size_t frame = 0; frame < b.frames_count; frame += 7) {
        size_t at = b.ends[frame] - 100;
        b.wire[at] ^= 0x40;
        CHECK_ERR(E_FORMAT, decode(d, &b, 0));
        CHECK_HAS(err_detail(),
                  "frame "); /* by whoever decoded it, not by the digest of the whole */
        b.wire[at] ^= 0x40;
        CHECK_OK(decode(d, &b, 0)); /* nothing of it stays */
        CHECK_MEM(b.raw, b.got, RAW_BYTES);
    }
    decoders_close(&d);
    body_close(&b);
}

struct race {
    struct decoders *d;
    pthread_t thread;
    struct body body;
    size_t cut;
    enum err code; /* of the last decoding */
};

static void *run_decode(void *ctx) {
    struct race *r = ctx;
    for (int i = 0; i < 5 && r->code == OK; i++) {
        r->code = decode_unchecked(r->d, &r->body, r->cut);
    }
    return NULL;
}

static void claim_side_by_side(void) {
    struct race races[3] = {{.cut = 0}, {.cut = 0}, {.cut = 3 * FRAME_BYTES}};
    struct decoders *d = NULL;
    CHECK_OK(decoders_open(&d, 2));
    for (size_t i = 0; i < COUNT_OF(races); i++) {
        races[i].d = d;
        body_open(&races[i].body);
    }
    races[1].body.wire[races[1].body.ends[20] - 100] ^= 0x40;
    for (size_t i = 0; i < COUNT_OF(races); i++) {
        CHECK_EQ(0, pthread_create(&races[i].thread, NULL, run_decode, &races[i]));
    }
    for (size_t i = 0; i < COUNT_OF(races); i++) {
        pthread_join(races[i].thread, NULL);
        CHECK_EQ(i == 1 ? E_FORMAT : OK, races[i].code);
        if (i != 1) {
            CHECK_MEM(races[i].body.raw, races[i].body.got, RAW_BYTES);
        }
        body_close(&races[i].body);
    }
    decoders_close(&d);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the same values in any chunking, on any number of threads", claim_same_values},
        {"frames pass through a few slots, in any chunking", claim_streamed},
        {"bodies side by side, one of them damaged, do not meet", claim_side_by_side},
        {"a damaged frame is refused, and the next body is not hurt by it", claim_damage},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
