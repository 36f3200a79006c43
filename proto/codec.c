/* Blocks are independent, so both directions are a loop over blocks, shared out by the pool.
 *
 * Decoding is bound by writing 32 bytes a scalar. It takes 16 classes at a time as one word: a word without small and full
 * scalars, which is nearly all of a bit-heavy witness, becomes 16 stores of 0 or 1 without a branch; the others take the
 * way with cursors. The check before it counts classes by popcount, four instructions for 16 scalars, and compares full
 * values with r; after it no cursor can leave its part, so the expansion itself checks nothing.
 */
#include "proto/codec.h"

#include "node/base/mem.h"

#include <inttypes.h>
#include <stdatomic.h>

enum { WORD_SCALARS = 16, SCALAR = 32 };

/* --- Writing --- */

struct encode {
    const uint8_t *values;
    uint64_t values_count;
    const uint64_t *r;
    struct packed_block *blocks;
    uint8_t *out;
    uint64_t *offsets;
};

static void survey_block(void *ctx, size_t i, unsigned worker) {
    struct encode *e = ctx;
    (void)worker;
    e->blocks[i] = packed_survey(e->values + (size_t)SCALAR * PACKED_BLOCK_SCALARS * i,
                                 packed_block_scalars(e->values_count, i), e->r);
}

static void encode_block(void *ctx, size_t i, unsigned worker) {
    struct encode *e = ctx;
    (void)worker;
    const uint8_t *end = packed_write_block(
        e->out + e->offsets[i], e->values + (size_t)SCALAR * PACKED_BLOCK_SCALARS * i,
        packed_block_scalars(e->values_count, i), e->r, &e->blocks[i]);
    ASSERT(end == e->out + e->offsets[i + 1]);
}

FALLIBLE codec_survey_open(struct codec_survey *out, struct bytes values, const uint64_t r[4],
                           struct pool *pool) {
    struct codec_survey s = {.values_count = values.len / SCALAR};
    REQUIRE(s.values_count > 0 && s.values_count <= CODEC_VALUES_MAX, E_RANGE,
            "%" PRIu64 " scalars do not fit a packed section, which holds 1 to 2^32",
            s.values_count);
    size_t blocks_count = (size_t)packed_blocks_count(s.values_count);
    TRY(mem_new(&s.blocks, blocks_count, sizeof *s.blocks));
    struct encode e = {
        .values = values.ptr, .values_count = s.values_count, .r = r, .blocks = s.blocks};
    pool_for(pool, blocks_count, survey_block, &e);
    s.bytes = packed_bytes(s.blocks, s.values_count);
    s.pays = s.bytes <= values.len - values.len / 8;
    *out = s;
    return OK;
}

void codec_survey_close(struct codec_survey *s) {
    mem_free(s->blocks);
    *s = (struct codec_survey){0};
}

FALLIBLE codec_encode(struct bytes_mut out, const struct codec_survey *survey, struct bytes values,
                      const uint64_t r[4], struct pool *pool) {
    ASSERT(out.len == survey->bytes && values.len / SCALAR == survey->values_count);
    size_t blocks_count = (size_t)packed_blocks_count(survey->values_count);
    AUTO(mem_free_ptr) uint64_t *offsets = NULL;
    TRY(mem_new(&offsets, blocks_count + 1, sizeof *offsets));
    offsets[0] = packed_head_bytes(survey->values_count);
    for (size_t i = 0; i < blocks_count; i++) {
        offsets[i + 1] =
            offsets[i] +
            packed_block_bytes(&survey->blocks[i], packed_block_scalars(survey->values_count, i));
    }
    ASSERT(offsets[blocks_count] == out.len);
    packed_write_head(out.ptr, survey->blocks, survey->values_count);
    struct encode e = {.values = values.ptr,
                       .values_count = survey->values_count,
                       .r = r,
                       .blocks = survey->blocks,
                       .out = out.ptr,
                       .offsets = offsets};
    pool_for(pool, blocks_count, encode_block, &e);
    return OK;
}

/* --- Reading: head and directory --- */

uint64_t codec_bytes_least(uint64_t values_count) {
    uint64_t whole = values_count / PACKED_BLOCK_SCALARS;
    uint32_t rest = (uint32_t)(values_count % PACKED_BLOCK_SCALARS);
    return packed_head_bytes(values_count) + whole * packed_classes_bytes(PACKED_BLOCK_SCALARS) +
           packed_classes_bytes(rest);
}

uint64_t codec_bytes_most(uint64_t values_count) {
    return codec_bytes_least(values_count) + SCALAR * values_count;
}

static FALLIBLE read_head(struct reader *r, size_t section_bytes, uint64_t values_count) {
    struct bytes magic;
    uint16_t version, log2;
    uint64_t count, bytes, zero;
    TRY(read_span(&magic, r, 4));
    REQUIRE(!memcmp(magic.ptr, "BPKS", 4), E_FORMAT,
            "packed scalars: the first four bytes are not BPKS");
    TRY(read_u16le(&version, r));
    REQUIRE(
        version == PACKED_VERSION, E_FORMAT,
        "packed scalars of version %u, this program reads %d; send them RAW, or update the lanes",
        version, PACKED_VERSION);
    TRY(read_u16le(&log2, r));
    REQUIRE(log2 == PACKED_BLOCK_LOG2, E_FORMAT,
            "packed scalars in blocks of 2^%u, version 1 has 2^%d", log2, PACKED_BLOCK_LOG2);
    TRY(read_u64le(&count, r));
    REQUIRE(count == values_count, E_FORMAT,
            "packed scalars: the head says %" PRIu64 " values, %" PRIu64 " were announced", count,
            values_count);
    TRY(read_u64le(&bytes, r));
    REQUIRE(bytes == section_bytes, E_FORMAT,
            "packed scalars: the head says %" PRIu64 " bytes, the section has %zu", bytes,
            section_bytes);
    TRY(read_u64le(&zero, r));
    REQUIRE(zero == 0, E_FORMAT, "packed scalars: bytes 24 to 31 of the head are not zero");
    return OK;
}

static FALLIBLE read_entry(struct codec_block *out, struct reader *r, uint64_t *at, uint64_t i,
                           uint32_t scalars_count) {
    struct packed_block b;
    uint32_t zero;
    TRY(read_u32le(&b.small_count, r));
    TRY(read_u32le(&b.full_count, r));
    TRY(read_u32le(&b.width, r));
    TRY(read_u32le(&zero, r));
    REQUIRE(
        b.small_count <= scalars_count && b.full_count <= scalars_count - b.small_count, E_FORMAT,
        "packed block %" PRIu64 ": %" PRIu32 " small and %" PRIu32 " full of %" PRIu32 " scalars",
        i, b.small_count, b.full_count, scalars_count);
    bool width_known = b.width == 1 || b.width == 2 || b.width == 4 || b.width == 8;
    REQUIRE(b.small_count ? width_known : b.width == 0, E_FORMAT,
            "packed block %" PRIu64 ": width %" PRIu32 " for %" PRIu32
            " small values; want 1, 2, 4 or 8, and 0 when there are none",
            i, b.width, b.small_count);
    REQUIRE(zero == 0, E_FORMAT, "packed block %" PRIu64 ": the entry's last word is not zero", i);
    *out = (struct codec_block){.classes = *at,
                                .small = *at + packed_classes_bytes(scalars_count),
                                .width = b.width,
                                .scalars_count = scalars_count};
    out->full = out->small + packed_align(b.small_count * b.width);
    *at += packed_block_bytes(&b, scalars_count);
    return OK;
}

static FALLIBLE read_directory(struct codec_map *map, struct reader *r) {
    uint64_t at = packed_head_bytes(map->values_count);
    for (uint64_t i = 0; i < map->blocks_count; i++) {
        TRY(read_entry(&map->blocks[i], r, &at, i, packed_block_scalars(map->values_count, i)));
        REQUIRE(at <= map->section.len, E_FORMAT,
                "packed block %" PRIu64 " ends at byte %" PRIu64 " of %zu", i, at,
                map->section.len);
    }
    REQUIRE(at == map->section.len, E_FORMAT,
            "packed scalars: the blocks end at byte %" PRIu64 " of %zu", at, map->section.len);
    return OK;
}

FALLIBLE codec_open(struct codec_map *out, struct bytes section, uint64_t values_count) {
    REQUIRE(values_count > 0 && values_count <= CODEC_VALUES_MAX, E_RANGE,
            "%" PRIu64 " scalars do not fit a packed section, which holds 1 to 2^32", values_count);
    REQUIRE(section.len >= codec_bytes_least(values_count), E_FORMAT,
            "packed scalars: %zu bytes cannot hold %" PRIu64 " values, the least is %" PRIu64,
            section.len, values_count, codec_bytes_least(values_count));
    struct reader r = reader_of(section, "packed scalars");
    TRY(read_head(&r, section.len, values_count));
    struct codec_map map = {.section = section,
                            .values_count = values_count,
                            .blocks_count = packed_blocks_count(values_count)};
    AUTO(mem_free_ptr) struct codec_block *blocks = NULL;
    TRY(mem_new(&blocks, map.blocks_count, sizeof *blocks));
    map.blocks = blocks;
    TRY(read_directory(&map, &r));
    blocks = NULL;
    *out = map;
    return OK;
}

void codec_close(struct codec_map *map) {
    mem_free(map->blocks);
    *map = (struct codec_map){0};
}

/* --- Reading: blocks --- */

static uint32_t small_bits(uint32_t classes) {
    return (classes >> 1 & 0x55555555u) & ~classes;
}
static uint32_t full_bits(uint32_t classes) {
    return (classes >> 1 & 0x55555555u) & classes;
}

static bool below(const uint8_t *scalar, const uint64_t r[4]) {
    for (int i = 3; i >= 0; i--) {
        uint64_t w = load_u64le(scalar + 8 * i);
        if (w != r[i]) {
            return w < r[i];
        }
    }
    return false;
}

static bool is_zero(const uint8_t *at, const uint8_t *end) {
    uint8_t any = 0;
    while (at < end) {
        any |= *at++;
    }
    return any == 0;
}

static FALLIBLE check_fillings(const struct codec_map *map, const struct codec_block *b,
                               uint64_t block_idx, uint32_t small_count) {
    const uint8_t *section = map->section.ptr;
    const uint8_t *classes_end = section + b->classes + (b->scalars_count + 3) / 4;
    unsigned tail = b->scalars_count % 4;
    REQUIRE(is_zero(classes_end, section + b->small) &&
                (tail == 0 || classes_end[-1] >> 2 * tail == 0),
            E_FORMAT, "packed block %" PRIu64 ": classes behind its %" PRIu32 " scalars", block_idx,
            b->scalars_count);
    REQUIRE(is_zero(section + b->small + (size_t)small_count * b->width, section + b->full),
            E_FORMAT, "packed block %" PRIu64 ": the filling behind its small values is not zero",
            block_idx);
    return OK;
}

FALLIBLE codec_check_block(const struct codec_map *map, uint64_t block_idx, const uint64_t r[4]) {
    const struct codec_block *b = &map->blocks[block_idx];
    const uint8_t *section = map->section.ptr,
                  *entry = section + PACKED_HEAD_BYTES + PACKED_ENTRY_BYTES * block_idx;
    uint32_t small_count = load_u32le(entry), full_count = load_u32le(entry + 4), small = 0,
             full = 0;
    for (uint64_t at = b->classes; at < b->small; at += 4) {
        uint32_t classes = load_u32le(section + at);
        small += (uint32_t)__builtin_popcount(small_bits(classes));
        full += (uint32_t)__builtin_popcount(full_bits(classes));
    }
    REQUIRE(small == small_count && full == full_count, E_FORMAT,
            "packed block %" PRIu64 ": its classes name %" PRIu32 " small and %" PRIu32
            " full values, its entry %" PRIu32 " and %" PRIu32,
            block_idx, small, full, small_count, full_count);
    TRY(check_fillings(map, b, block_idx, small_count));
    for (uint32_t i = 0; i < full_count; i++) {
        REQUIRE(below(section + b->full + (size_t)SCALAR * i, r), E_RANGE,
                "packed block %" PRIu64 ": full value %" PRIu32
                " is not canonical: it is not below the scalar prime r; make the witness again",
                block_idx, i);
    }
    return OK;
}

static int64_t small_at(const uint8_t *at, uint32_t width) {
    switch (width) {
    case 1:
        return (int8_t)at[0];
    case 2:
        return (int16_t)(at[0] | at[1] << 8);
    case 4:
        return (int32_t)load_u32le(at);
    default:
        return (int64_t)load_u64le(at);
    }
}

static void put_small(uint8_t *out, int64_t x, const uint64_t r[4]) {
    uint64_t w[4] = {(uint64_t)x, 0, 0, 0};
    if (x < 0) { /* r + x: x's missing upper words are all ones */
        uint64_t carry = __builtin_add_overflow(r[0], (uint64_t)x, &w[0]);
        uint64_t borrow = 1 - carry;
        for (unsigned i = 1; i < 4; i++) {
            w[i] = r[i] - borrow;
            borrow = r[i] < borrow;
        }
    }
    memcpy(out, w, SCALAR); /* little-endian, like the machine */
}

struct cursors {
    const uint8_t *small, *full;
    uint32_t width;
};

static void expand_mixed(uint8_t *out, struct cursors *c, uint32_t classes, uint32_t count,
                         const uint64_t r[4]) {
    for (uint32_t i = 0; i < count; i++, classes >>= 2, out += SCALAR) {
        enum packed_class what = (enum packed_class)(classes & 3);
        if (what == PACKED_FULL) {
            memcpy(out, c->full, SCALAR);
            c->full += SCALAR;
        } else if (what == PACKED_SMALL) {
            put_small(out, small_at(c->small, c->width), r);
            c->small += c->width;
        } else {
            memset(out, 0, SCALAR);
            out[0] = (uint8_t)what;
        }
    }
}

static void expand_bits(uint8_t *out, uint32_t classes) {
    for (uint32_t i = 0; i < WORD_SCALARS; i++, classes >>= 2, out += SCALAR) {
        const uint64_t w[4] = {classes & 1, 0, 0, 0};
        memcpy(out, w, SCALAR);
    }
}

/* The first `count` scalars of a block that was checked. */
static void expand(uint8_t *out, const struct codec_map *map, uint64_t block_idx, uint32_t count,
                   const uint64_t r[4]) {
    const struct codec_block *b = &map->blocks[block_idx];
    const uint8_t *section = map->section.ptr, *classes = section + b->classes;
    struct cursors c = {section + b->small, section + b->full, b->width};
    for (uint32_t i = 0; i < count; i += WORD_SCALARS) {
        uint32_t left = count - i, word = load_u32le(classes + i / 4);
        if (left >= WORD_SCALARS && !(word & 0xaaaaaaaau)) {
            expand_bits(out + (size_t)SCALAR * i, word);
        } else {
            expand_mixed(out + (size_t)SCALAR * i, &c, word,
                         left < WORD_SCALARS ? left : WORD_SCALARS, r);
        }
    }
}

FALLIBLE codec_decode_block(uint8_t *out, const struct codec_map *map, uint64_t block_idx,
                            const uint64_t r[4]) {
    TRY(codec_check_block(map, block_idx, r));
    expand(out, map, block_idx, map->blocks[block_idx].scalars_count, r);
    return OK;
}

struct decode {
    const struct codec_map *map;
    const uint64_t *r;
    uint8_t *out;
    atomic_flag failed;
    struct fault fault; /* [atomic: whoever set failed] */
};

static void decode_block(void *ctx, size_t i, unsigned worker) {
    struct decode *d = ctx;
    (void)worker;
    enum err e =
        codec_decode_block(d->out + (size_t)SCALAR * PACKED_BLOCK_SCALARS * i, d->map, i, d->r);
    if (e != OK && !atomic_flag_test_and_set(&d->failed)) {
        d->fault = fault_of(e);
    }
}

FALLIBLE codec_decode(struct bytes_mut out, struct bytes section, uint64_t values_count,
                      const uint64_t r[4], struct pool *pool) {
    ASSERT(out.len / SCALAR == values_count && out.len % SCALAR == 0);
    AUTO(codec_close) struct codec_map map = {0};
    TRY(codec_open(&map, section, values_count));
    struct decode d = {.map = &map, .r = r, .out = out.ptr, .failed = ATOMIC_FLAG_INIT};
    pool_for(pool, (size_t)map.blocks_count, decode_block, &d);
    return d.fault.code == OK ? OK : fault_raise(&d.fault);
}

/* --- A vector as it came --- */

FALLIBLE scalars_open(struct scalars *out, struct bytes bytes, uint64_t count, bool packed) {
    struct scalars s = {.count = count, .bytes = bytes, .packed = packed};
    if (packed) {
        TRY(codec_open(&s.map, bytes, count));
    }
    ASSERT(packed || bytes.len / SCALAR == count);
    *out = s;
    return OK;
}

void scalars_close(struct scalars *s) {
    codec_close(&s->map);
    *s = (struct scalars){0};
}

FALLIBLE scalars_first(uint8_t *out, const struct scalars *s, uint64_t count, const uint64_t r[4]) {
    ASSERT(count <= s->count);
    if (!s->packed) {
        memcpy(out, s->bytes.ptr, (size_t)count * SCALAR);
        return OK;
    }
    for (uint64_t at = 0; at < count; at += PACKED_BLOCK_SCALARS) {
        uint64_t left = count - at, block_idx = at / PACKED_BLOCK_SCALARS;
        TRY(codec_check_block(&s->map, block_idx, r));
        expand(out + (size_t)SCALAR * at, &s->map, block_idx,
               left < PACKED_BLOCK_SCALARS ? (uint32_t)left : (uint32_t)PACKED_BLOCK_SCALARS, r);
    }
    return OK;
}
