/* Frames: every chunking, every order, every lie. */
#include "proto/frame.h"

#include "node/base/hash.h"
#include "node/base/mem.h"
#include "proto/job.pb-c.h"
#include "tests/check/check.h"

#include <string.h>
#include <zstd.h>

enum { FRAME = 8192 };

/* A body of two sections, five frames: 2 full and one of 32 bytes; one full, one of 4064. */
struct body {
    struct frame_layout layout;
    uint8_t *raw[2], *got[2];
    uint8_t *wire;
    size_t wire_len, starts[6];
};

static struct frame_codec *codec;

static void fill(uint8_t *at, size_t len, unsigned kind) {
    if (kind == 0) {
        rng_fill(check_rng(), at, len); /* does not compress */
    } else {
        for (size_t i = 0; i < len; i++) {
            at[i] = i % 32 ? 0 : (uint8_t)(rng_u64(check_rng()) & 1); /* bits: a witness */
        }
    }
}

static struct body make_body(void) {
    struct body b = {0};
    const struct frame_section sections[2] = {
        {SECTION_WITNESS_RAW, (2 * FRAME + 32) / 32, 2 * FRAME + 32},
        {SECTION_EVALUATIONS_A_RAW, (FRAME + 4064) / 32, FRAME + 4064},
    };
    CHECK_OK(frame_layout_init(&b.layout, sections, 2, FRAME, 1 << 20));
    CHECK_EQ(5, b.layout.frames_count);
    b.wire = mem_alloc(5 * frame_wire_bytes_max(FRAME));
    uint8_t *scratch = mem_alloc(frame_wire_bytes_max(FRAME));
    for (unsigned s = 0; s < 2; s++) {
        b.raw[s] = mem_alloc(sections[s].raw_bytes);
        b.got[s] = mem_zero_alloc(1, sections[s].raw_bytes);
        fill(b.raw[s], sections[s].raw_bytes, s);
    }
    for (uint32_t i = 0; i < 5; i++) {
        struct frame_place place = frame_place_of(&b.layout, i);
        struct bytes out;
        CHECK_OK(frame_encode(&out, (struct bytes_mut){scratch, frame_wire_bytes_max(FRAME)}, codec,
                              &b.layout, i,
                              bytes_of(b.raw[place.section] + place.offset, place.raw_bytes)));
        b.starts[i] = b.wire_len;
        memcpy(b.wire + b.wire_len, out.ptr, out.len);
        b.wire_len += out.len;
    }
    b.starts[5] = b.wire_len;
    mem_free(scratch);
    return b;
}

static void free_body(struct body *b) {
    for (unsigned s = 0; s < 2; s++) {
        mem_free(b->raw[s]);
        mem_free(b->got[s]);
    }
    mem_free(b->wire);
}

static enum err decode(struct body *b, struct bytes message) {
    struct frame f;
    TRY(frame_parse(&f, &b->layout, message));
    return frame_decode((struct bytes_mut){b->got[f.section] + f.offset, f.raw_bytes}, codec, &f);
}

/* The message of frame i, without its delimiter. */
static struct bytes message_of(const struct body *b, unsigned i) {
    const uint8_t *at = b->wire + b->starts[i];
    size_t prefix = 1;
    while (at[prefix - 1] & 0x80) {
        prefix++;
    }
    return bytes_of(at + prefix, b->starts[i + 1] - b->starts[i] - prefix);
}

static void check_whole(struct body *b) {
    for (unsigned s = 0; s < 2; s++) {
        CHECK_MEM(b->raw[s], b->got[s], b->layout.sections[s].raw_bytes);
        memset(b->got[s], 0xaa, b->layout.sections[s].raw_bytes);
    }
}

/* --- Layout --- */

static void claim_layout(void) {
    struct body b = make_body();
    static const struct frame_place want[5] = {
        {0, FRAME, 0}, {0, FRAME, FRAME}, {0, 32, 2 * FRAME}, {1, FRAME, 0}, {1, 4064, FRAME}};
    for (uint32_t i = 0; i < 5; i++) {
        struct frame_place p = frame_place_of(&b.layout, i);
        CHECK(p.section == want[i].section && p.raw_bytes == want[i].raw_bytes &&
              p.offset == want[i].offset);
    }
    CHECK(b.wire_len <= frame_layout_wire_bytes_max(&b.layout));
    CHECK_EQ(3 * FRAME + 32 + 4064, b.layout.raw_bytes);
    free_body(&b);
}

static void claim_layout_refuses(void) {
    struct frame_layout l;
    struct frame_section s = {SECTION_WITNESS_RAW, 4, 128};
    CHECK_OK(frame_layout_init(&l, &s, 1, FRAME, 128));
    CHECK_ERR(E_LIMIT, frame_layout_init(&l, &s, 1, FRAME, 127));
    CHECK_ERR(E_FORMAT, frame_layout_init(&l, &s, 0, FRAME, 128));
    CHECK_ERR(E_FORMAT, frame_layout_init(&l, &s, 9, FRAME, 128));
    CHECK_ERR(E_FORMAT, frame_layout_init(&l, &s, 1, 100, 128));
    CHECK_ERR(E_FORMAT, frame_layout_init(&l, &s, 1, FRAME_RAW_BYTES_MAX + 1, 128));
    s.kind = 99;
    CHECK_ERR(E_FORMAT, frame_layout_init(&l, &s, 1, FRAME, 128));
    s = (struct frame_section){SECTION_WITNESS_RAW, 0, 0};
    CHECK_ERR(E_FORMAT, frame_layout_init(&l, &s, 1, FRAME, 128));
    s = (struct frame_section){SECTION_WITNESS_RAW, 5, 128};
    CHECK_ERR(E_FORMAT, frame_layout_init(&l, &s, 1, FRAME, 128));
    s = (struct frame_section){SECTION_WITNESS_RAW, UINT64_MAX / 32, UINT64_MAX - 31};
    CHECK_ERR(E_LIMIT, frame_layout_init(&l, &s, 1, FRAME, UINT64_MAX)); /* frames, not bytes */
    struct frame_section two[2] = {{SECTION_WITNESS_PACKED, 1, UINT64_MAX - 10},
                                   {SECTION_WITNESS_PACKED, 1, 96}};
    CHECK_ERR(E_FORMAT, frame_layout_init(&l, two, 2, FRAME, UINT64_MAX));
    two[0].raw_bytes = 96;
    CHECK_OK(frame_layout_init(&l, two, 2, FRAME, 256));
    CHECK_ERR(E_LIMIT, frame_layout_init(&l, two, 2, FRAME, 255));
}

/* --- Whole bodies --- */

static void claim_any_order(void) {
    struct body b = make_body();
    static const unsigned orders[3][5] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 4, 0, 3, 1}};
    for (size_t o = 0; o < 3; o++) {
        for (size_t i = 0; i < 5; i++) {
            CHECK_OK(decode(&b, message_of(&b, orders[o][i])));
        }
        check_whole(&b);
    }
    free_body(&b);
}

/* Feeds the sequence in chunks; chunk_bytes 0: random sizes, empty ones too. */
static void feed(struct body *b, size_t chunk_bytes) {
    struct frame_stream stream;
    frame_stream_init(&stream, &b->layout);
    for (size_t at = 0; at < b->wire_len;) {
        size_t len = chunk_bytes ? chunk_bytes : rng_below(check_rng(), 3000);
        len = len < b->wire_len - at ? len : b->wire_len - at;
        uint8_t *copy = mem_alloc(len + 1); /* exact, so that the sanitizer sees every overrun */
        memcpy(copy, b->wire + at, len);
        struct bytes chunk = bytes_of(copy, len), message;
        bool lent;
        do {
            CHECK_OK(frame_stream_next(&message, &lent, &stream, &chunk));
            if (message.ptr) {
                CHECK_OK(decode(b, message));
            }
        } while (message.ptr);
        CHECK_EQ(0, chunk.len);
        mem_free(copy);
        at += len;
    }
    CHECK_OK(frame_stream_end(&stream));
    CHECK_EQ(b->wire_len, stream.wire_bytes);
    frame_stream_done(&stream);
    check_whole(b);
}

static void claim_any_chunking(void) {
    struct body b = make_body();
    static const size_t sizes[] = {1, 2, 3, 7, 100, 4096, 8191, 8192, 8300, 1 << 20};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        feed(&b, sizes[i]);
    }
    for (int i = 0; i < 50; i++) {
        feed(&b, 0);
    }
    free_body(&b);
}

static void claim_one_chunk_per_frame_is_lent(void) {
    struct body b = make_body();
    struct frame_stream stream;
    frame_stream_init(&stream, &b.layout);
    for (unsigned i = 0; i < 5; i++) {
        struct bytes chunk = bytes_of(b.wire + b.starts[i], b.starts[i + 1] - b.starts[i]), message;
        bool lent;
        CHECK_OK(frame_stream_next(&message, &lent, &stream, &chunk));
        CHECK(message.ptr && lent);
    }
    CHECK(stream.buffer == NULL); /* nothing was copied */
    CHECK_OK(frame_stream_end(&stream));
    frame_stream_done(&stream);
    free_body(&b);
}

static enum err feed_all(const struct body *b, struct bytes wire, bool end) {
    struct frame_stream stream;
    struct bytes message;
    bool lent;
    enum err err = OK;
    frame_stream_init(&stream, &b->layout);
    do {
        err = frame_stream_next(&message, &lent, &stream, &wire);
    } while (err == OK && message.ptr);
    if (err == OK && end) {
        err = frame_stream_end(&stream);
    }
    frame_stream_done(&stream);
    return err;
}

static void claim_stream_refuses(void) {
    struct body b = make_body();
    uint8_t *longer = mem_alloc(b.wire_len + 10);
    memcpy(longer, b.wire, b.wire_len);
    memset(longer + b.wire_len, 0, 10);
    CHECK_ERR(E_FORMAT, feed_all(&b, bytes_of(longer, b.wire_len + 1), true));
    CHECK_HAS(err_detail(), "goes on after its last frame");
    CHECK_ERR(E_FORMAT, feed_all(&b, bytes_of(b.wire, b.wire_len - 1), true));
    CHECK_HAS(err_detail(), "ends inside frame 4");
    CHECK_ERR(E_FORMAT, feed_all(&b, bytes_of(b.wire, b.starts[4]), true));
    CHECK_HAS(err_detail(), "after 4 of 5 frames");
    CHECK_ERR(E_FORMAT, feed_all(&b, bytes_of(b.wire, 0), true));
    /* A length of two gigabytes allocates nothing: the layout says how long a message can be. */
    long before = mem_live_blocks();
    static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 0x07, 1, 2, 3};
    CHECK_ERR(E_LIMIT, feed_all(&b, bytes_of(huge, sizeof huge), false));
    static const uint8_t endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    CHECK_ERR(E_FORMAT, feed_all(&b, bytes_of(endless, sizeof endless), false));
    CHECK_EQ(before, mem_live_blocks());
    mem_free(longer);
    free_body(&b);
}

/* --- Lies --- */

/* Packs a Frame with protobuf-c, as another language's library would. */
static struct bytes_mut pack(const Bellows__V1__Frame *f) {
    struct bytes_mut out = {.len = bellows__v1__frame__get_packed_size(f)};
    out.ptr = mem_alloc(out.len + 1);
    bellows__v1__frame__pack(f, out.ptr);
    return out;
}

static Bellows__V1__Frame honest(struct body *b, uint32_t index) {
    struct frame_place place = frame_place_of(&b->layout, index);
    Bellows__V1__Frame f = BELLOWS__V1__FRAME__INIT;
    uint8_t *raw = b->raw[place.section] + place.offset;
    f.section = place.section;
    f.index = index;
    f.offset = place.offset;
    f.raw_bytes = place.raw_bytes;
    f.xxh64 = hash_xxh64(bytes_of(raw, place.raw_bytes));
    f.data = (ProtobufCBinaryData){place.raw_bytes, raw};
    return f;
}

static enum err try_frame(struct body *b, const Bellows__V1__Frame *f) {
    struct bytes_mut packed = pack(f);
    enum err err = decode(b, bytes_of(packed.ptr, packed.len));
    mem_free(packed.ptr);
    return err;
}

static void claim_other_writers(void) {
    struct body b = make_body();
    for (uint32_t i = 0; i < 5; i++) {
        Bellows__V1__Frame f = honest(&b, i);
        CHECK_OK(try_frame(&b, &f));
        uint8_t packed[2 * FRAME];
        f.encoding = BELLOWS__V1__FRAME__ENCODING__ZSTD; /* also where it does not pay */
        f.data.len = ZSTD_compress(packed, sizeof packed, f.data.data, f.data.len, 3);
        f.data.data = packed;
        CHECK_OK(try_frame(&b, &f));
    }
    check_whole(&b);
    free_body(&b);
}

static void claim_lies(void) {
    struct body b = make_body();
    Bellows__V1__Frame f = honest(&b, 1);
    f.section = 1;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    CHECK_HAS(err_detail(), "frame 1 says section 1");
    f = honest(&b, 1);
    f.index = 0;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    f.index = 5;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    CHECK_HAS(err_detail(), "only 5 frames");
    f = honest(&b, 1);
    f.offset = UINT64_MAX;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    f = honest(&b, 1);
    f.raw_bytes = FRAME + 1;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    f = honest(&b, 1);
    f.xxh64 ^= 1;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    CHECK_HAS(err_detail(), "xxh64");
    f = honest(&b, 1);
    f.data.len--;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    f = honest(&b, 1);
    f.encoding = (Bellows__V1__Frame__Encoding)2;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    CHECK_HAS(err_detail(), "unknown encoding 2");
    f = honest(&b, 1);
    f.encoding = BELLOWS__V1__FRAME__ENCODING__ZSTD; /* raw bytes called zstd */
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    free_body(&b);
}

static void claim_bombs(void) {
    struct body b = make_body();
    Bellows__V1__Frame f = honest(&b, 1);
    size_t bomb_len = 64 << 20, cap = ZSTD_compressBound(bomb_len);
    uint8_t *zeros = mem_zero_alloc(1, bomb_len), *packed = mem_alloc(cap);
    f.encoding = BELLOWS__V1__FRAME__ENCODING__ZSTD;
    f.data.data = packed;
    f.data.len = ZSTD_compress(packed, cap, zeros, bomb_len, 1); /* states 64 MiB */
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    CHECK_HAS(err_detail(), "states its 8192 raw bytes");
    /* The same without a stated size. */
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    f.data.len = ZSTD_compress2(context, packed, cap, zeros, FRAME);
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    ZSTD_freeCCtx(context);
    /* Two frames, and a frame with something behind it. */
    size_t half = ZSTD_compress(packed, cap, zeros, FRAME, 1);
    f.data.len = half + ZSTD_compress(packed + half, cap - half, zeros, FRAME, 1);
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    f.data.len = half + 1;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    f.data.len = half - 1;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    /* A skippable frame, and nothing at all. */
    static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9};
    f.data = (ProtobufCBinaryData){sizeof skippable, (uint8_t *)(uintptr_t)skippable};
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    f.data.len = 0;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    mem_free(zeros);
    mem_free(packed);
    free_body(&b);
}

static void claim_dictionary(void) {
    struct body b = make_body();
    Bellows__V1__Frame f = honest(&b, 3);
    uint8_t packed[2 * FRAME];
    f.encoding = BELLOWS__V1__FRAME__ENCODING__ZSTD;
    f.data.len = ZSTD_compress(packed, sizeof packed, f.data.data, f.data.len, 1);
    f.data.data = packed;
    CHECK_OK(try_frame(&b, &f));
    /* Set the header's dictionary id flag and insert one byte of id behind the window descriptor or size. */
    memmove(packed + 6, packed + 5, f.data.len - 5);
    packed[4] |= 1;
    packed[5] = 7;
    f.data.len++;
    CHECK_ERR(E_FORMAT, try_frame(&b, &f));
    free_body(&b);
}

static void claim_fields(void) {
    struct body b = make_body();
    Bellows__V1__Frame f = honest(&b, 2);
    struct bytes_mut packed = pack(&f);
    uint8_t wire[512];
    CHECK(packed.len + 100 < sizeof wire);
    memcpy(wire, packed.ptr, packed.len);
    size_t len = packed.len;
    for (int i = 0; i < 16; i++) { /* unknown fields are tolerated, up to a limit */
        wire[len++] = 15 << 3;
        wire[len++] = 1;
    }
    CHECK_OK(decode(&b, bytes_of(wire, len)));
    wire[len++] = 15 << 3;
    wire[len++] = 1;
    CHECK_ERR(E_FORMAT, decode(&b, bytes_of(wire, len)));
    CHECK_HAS(err_detail(), "more than 16 unknown fields");
    memcpy(wire, packed.ptr, packed.len);
    wire[packed.len] = 2 << 3; /* index again */
    wire[packed.len + 1] = 2;
    CHECK_ERR(E_FORMAT, decode(&b, bytes_of(wire, packed.len + 2)));
    CHECK_HAS(err_detail(), "twice");
    static const uint8_t group[] = {15 << 3 | 3};
    CHECK_ERR(E_FORMAT, decode(&b, bytes_of(group, 1)));
    static const uint8_t wrong_type[] = {2 << 3 | 2, 1, 0};
    CHECK_ERR(E_FORMAT, decode(&b, bytes_of(wrong_type, 3)));
    static const uint8_t field_zero[] = {0, 0};
    CHECK_ERR(E_FORMAT, decode(&b, bytes_of(field_zero, 2)));
    static const uint8_t long_data[] = {7 << 3 | 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0};
    CHECK_ERR(E_FORMAT, decode(&b, bytes_of(long_data, sizeof long_data)));
    static const uint8_t long_varint[] = {3 << 3, 0xff, 0xff, 0xff, 0xff, 0xff,
                                          0xff,   0xff, 0xff, 0xff, 0xff, 1};
    CHECK_ERR(E_FORMAT, decode(&b, bytes_of(long_varint, sizeof long_varint)));
    mem_free(packed.ptr);
    free_body(&b);
}

/* Cut anywhere, flipped anywhere: refused or, where the flip changes nothing that counts, right. */
static void claim_damage(void) {
    struct body b = make_body();
    for (unsigned i = 0; i < 5; i++) {
        struct bytes m = message_of(&b, i);
        for (int k = 0; k < 300; k++) {
            size_t cut = rng_below(check_rng(), m.len);
            uint8_t *copy = mem_alloc(m.len);
            memcpy(copy, m.ptr, m.len);
            enum err err = decode(&b, bytes_of(copy, cut));
            CHECK_MSG(err == E_FORMAT, "cut at %zu gave %s", cut, err_name(err));
            copy[rng_below(check_rng(), m.len)] ^= (uint8_t)(1 + rng_below(check_rng(), 255));
            struct frame f;
            err = decode(&b, bytes_of(copy, m.len));
            if (err == OK) {
                CHECK_OK(frame_parse(&f, &b.layout, bytes_of(copy, m.len)));
                CHECK_MEM(b.raw[f.section] + f.offset, b.got[f.section] + f.offset, f.raw_bytes);
            } else {
                CHECK_ERR(E_FORMAT, err);
            }
            mem_free(copy);
        }
    }
    free_body(&b);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the layout places every frame", claim_layout},
        {"frame_layout_init refuses what does not add up", claim_layout_refuses},
        {"frames decode in any order", claim_any_order},
        {"a sequence is put together from any chunks", claim_any_chunking},
        {"a chunk that is a frame is lent, not copied", claim_one_chunk_per_frame_is_lent},
        {"a sequence that is too long, short or large is refused", claim_stream_refuses},
        {"frames of other writers are read", claim_other_writers},
        {"a frame that lies about its place or content is refused", claim_lies},
        {"bombs, tails and frames without a size are refused", claim_bombs},
        {"a frame that wants a dictionary is refused", claim_dictionary},
        {"fields: unknown, twice, of the wrong type", claim_fields},
        {"damage anywhere is noticed", claim_damage},
    };
    if (frame_codec_new(&codec) != OK) {
        return 1;
    }
    int code = check_main(argc, argv, claims, COUNT_OF(claims));
    frame_codec_free(&codec);
    return code;
}
