/* Packed scalars: what comes out is what went in, the bytes are those of the page, and nothing else is taken. */
#include "proto/codec.h"
#include "node/base/mem.h"
#include "node/curve/curve.h"
#include "proto/body.h"
#include "tests/check/check.h"

#include <stdio.h>
#include <string.h>

static const enum curve_id curves[] = {CURVE_BN254, CURVE_BLS12_381};

struct mix { /* per cent */
    unsigned zero, one, small, small_bits;
};

static void draw_full(struct scalar *out) {
    rng_fill(check_rng(), out, sizeof *out);
    out->w[3] = (out->w[3] >> 4) | 1; /* below r on both curves, and never small */
}

static void draw(struct scalar *out, const struct curve *c, const struct mix *m) {
    uint64_t dice = rng_below(check_rng(), 100);
    *out = (struct scalar){{0}};
    if (dice < m->zero + m->one) {
        out->w[0] = dice >= m->zero;
    } else if (dice < m->zero + m->one + m->small) {
        out->w[0] = rng_u64(check_rng()) >> (64 - m->small_bits);
        if (rng_below(check_rng(), 2)) {
            c->scalar_sub(out, &(struct scalar){{0}}, out);
        }
    } else {
        draw_full(out);
    }
}

struct section {
    struct scalar *values; /* owned */
    uint8_t *packed;       /* owned */
    size_t count, bytes;
    const struct curve *curve;
};

static void section_done(struct section *s) {
    mem_free(s->values);
    mem_free(s->packed);
}

static struct bytes plain(const struct section *s) {
    return bytes_of(s->values, s->count * SCALAR_BYTES);
}

static void section_pack(struct section *s, struct pool *pool) {
    struct codec_survey survey;
    CHECK_OK(codec_survey_open(&survey, plain(s), s->curve->r.w, pool));
    s->bytes = (size_t)survey.bytes;
    CHECK_OK(mem_new_raw(&s->packed, s->bytes, 1));
    CHECK_OK(codec_encode((struct bytes_mut){s->packed, s->bytes}, &survey, plain(s), s->curve->r.w,
                          pool));
    codec_survey_close(&survey);
}

static void section_make(struct section *s, enum curve_id id, size_t count, const struct mix *m) {
    *s = (struct section){.count = count, .curve = curve_by_id(id)};
    CHECK_OK(mem_new(&s->values, count, sizeof *s->values));
    for (size_t i = 0; i < count; i++) {
        draw(&s->values[i], s->curve, m);
    }
}

static void check_unpacks(const struct section *s, struct pool *pool) {
    AUTO(mem_free_ptr) uint8_t *back = NULL;
    CHECK_OK(mem_new_raw(&back, s->count, SCALAR_BYTES));
    CHECK_OK(codec_decode((struct bytes_mut){back, s->count * SCALAR_BYTES},
                          bytes_of(s->packed, s->bytes), s->count, s->curve->r.w, pool));
    CHECK_MEM(s->values, back, s->count * SCALAR_BYTES);
}

static void claim_round_trip(void) {
    static const struct mix mixes[] = {{59, 41, 0, 1},  {50, 2, 47, 7},   {10, 10, 40, 15},
                                       {0, 0, 100, 31}, {20, 20, 30, 63}, {0, 0, 0, 1},
                                       {100, 0, 0, 1},  {97, 0, 0, 1}};
    static const size_t counts[] = {1, 3, 15, 16, 17, 64, 65535, 65536, 65537, 3 * 65536 + 5};
    AUTO(pool_close) struct pool *pool = NULL;
    CHECK_OK(pool_open(&pool, 2));
    for (size_t i = 0; i < COUNT_OF(mixes); i++) {
        for (size_t k = 0; k < COUNT_OF(counts); k++) {
            AUTO(section_done) struct section s;
            section_make(&s, curves[(i + k) % 2], counts[k], &mixes[i]);
            section_pack(&s, k % 3 ? pool : NULL);
            check_unpacks(&s, k % 2 ? pool : NULL);
            CHECK(s.bytes >= codec_bytes_least(s.count) && s.bytes <= codec_bytes_most(s.count));
        }
    }
}

/* The last of both sides, and one more; and every width's last value. */
static void claim_edges(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        const struct curve *c = curve_by_id(curves[i]);
        for (unsigned bits = 0; bits <= 64; bits++) {
            for (int off = -2; off <= 2; off++) {
                struct scalar zero = {{0}}, x = {{bits < 64 ? UINT64_C(1) << bits : 0, bits / 64}},
                              d = {{(uint64_t)(off < 0 ? -off : off)}}, values[2];
                (off < 0 ? c->scalar_sub : c->scalar_add)(&values[0], &x, &d);
                c->scalar_sub(&values[1], &zero, &values[0]);
                AUTO(section_done) struct section s = {.count = 2, .curve = c};
                CHECK_OK(mem_new(&s.values, 2, sizeof *values));
                memcpy(s.values, values, sizeof values);
                section_pack(&s, NULL);
                check_unpacks(&s, NULL);
            }
        }
    }
}

static void claim_cheapest(void) {
    static const struct {
        uint64_t low;
        bool minus;
        uint32_t width; /* 0: full */
    } cases[] = {
        {2, false, 1},
        {127, false, 1},
        {128, false, 2},
        {1, true, 1},
        {128, true, 1},
        {129, true, 2},
        {32767, false, 2},
        {32768, true, 2},
        {32769, true, 4},
        {2147483647, false, 4},
        {2147483648, false, 8},
        {2147483648, true, 4},
        {INT64_MAX, false, 8},
        {INT64_MAX, true, 8},
        {(uint64_t)INT64_MAX + 1, false, 0},
        {(uint64_t)INT64_MAX + 1, true, 8},
        {(uint64_t)INT64_MAX + 2, true, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct curve *c = curve_by_id(curves[i % 2]);
        struct scalar x = {{cases[i].low}};
        if (cases[i].minus) {
            c->scalar_sub(&x, &(struct scalar){{0}}, &x);
        }
        struct packed_block b = packed_survey((const uint8_t *)&x, 1, c->r.w);
        CHECK_EQ(cases[i].width, b.width);
        CHECK_EQ(cases[i].width != 0, b.small_count);
        CHECK_EQ(cases[i].width == 0, b.full_count);
    }
}

/* The page, byte by byte: 0, 1, -3, 300 and a full value on BN254. */
static void claim_bytes(void) {
    const struct curve *c = curve_by_id(CURVE_BN254);
    AUTO(section_done) struct section s = {.count = 5, .curve = c};
    CHECK_OK(mem_new(&s.values, 5, sizeof *s.values));
    s.values[1].w[0] = 1;
    c->scalar_sub(&s.values[2], &(struct scalar){{0}}, &(struct scalar){{3}});
    s.values[3].w[0] = 300;
    memset(&s.values[4], 0x11, SCALAR_BYTES);
    section_pack(&s, NULL);
    uint8_t want[32 + 16 + 16 + 16 + 32] = {'B', 'P', 'K', 'S', 1, 0, 16, 0, 5};
    want[16] = sizeof want;
    uint8_t *entry = want + 32, *classes = entry + 16, *small = classes + 16;
    entry[0] = 2;
    entry[4] = 1;
    entry[8] = 2;
    classes[0] = 0 | 1 << 2 | 2 << 4 | 2 << 6;
    classes[1] = 3;
    memcpy(small, (const uint8_t[]){0xfd, 0xff, 0x2c, 0x01}, 4);
    memset(small + 16, 0x11, 32);
    CHECK_EQ(sizeof want, s.bytes);
    CHECK_MEM(want, s.packed, sizeof want);
}

/* Every kind of damage is refused with its sentence. `at` counts from the place that is named. */
enum place { HEAD, ENTRY, CLASSES, SMALL, FULL };
static void claim_damage(void) {
    static const struct {
        enum place place;
        size_t at;
        uint8_t value;
        enum err code;
        const char *says;
    } cases[] = {
        {HEAD, 0, 'b', E_FORMAT, "not BPKS"},
        {HEAD, 4, 2, E_FORMAT, "version 2"},
        {HEAD, 6, 15, E_FORMAT, "blocks of 2^15"},
        {HEAD, 8, 6, E_FORMAT, "says 6 values, 5 were announced"},
        {HEAD, 15, 1, E_FORMAT, "5 were announced"},
        {HEAD, 16, 1, E_FORMAT, "the section has 112"},
        {HEAD, 24, 1, E_FORMAT, "bytes 24 to 31"},
        {ENTRY, 0, 6, E_FORMAT, "6 small and 1 full of 5"},
        {ENTRY, 0, 5, E_FORMAT, "5 small and 1 full of 5"},
        {ENTRY, 3, 0xff, E_FORMAT, "of 5 scalars"},
        {ENTRY, 4, 2, E_FORMAT, "ends at byte 144 of 112"},
        {ENTRY, 4, 0, E_FORMAT, "end at byte 80 of 112"},
        {ENTRY, 7, 0xff, E_FORMAT, "of 5 scalars"},
        {ENTRY, 8, 3, E_FORMAT, "width 3"},
        {ENTRY, 8, 0, E_FORMAT, "width 0"},
        {ENTRY, 11, 0x80, E_FORMAT, "width"},
        {ENTRY, 12, 1, E_FORMAT, "last word"},
        {ENTRY, 0, 0, E_FORMAT, "width 2 for 0"},
        {ENTRY, 0, 1, E_FORMAT, "name 2 small and 1 full"},
        {CLASSES, 0, 1 << 2 | 2 << 4 | 3 << 6, E_FORMAT, "name 1 small and 2 full"},
        {CLASSES, 1, 3 | 1 << 2, E_FORMAT, "behind its 5 scalars"},
        {CLASSES, 15, 0x40, E_FORMAT, "behind its 5 scalars"},
        {CLASSES, 4, 1, E_FORMAT, "behind its 5 scalars"},
        {SMALL, 4, 1, E_FORMAT, "filling"},
        {SMALL, 15, 1, E_FORMAT, "filling"},
        {FULL, 31, 0xff, E_RANGE, "not canonical"},
    };
    static const size_t places[] = {0, 32, 48, 64, 80};
    const struct curve *c = curve_by_id(CURVE_BN254);
    AUTO(section_done) struct section s = {.count = 5, .curve = c};
    uint8_t back[5 * SCALAR_BYTES];
    struct bytes_mut out = {back, sizeof back};
    CHECK_OK(mem_new(&s.values, 5, sizeof *s.values));
    s.values[2].w[0] = 200;
    s.values[3].w[0] = 300;
    memset(&s.values[4], 0x11, SCALAR_BYTES);
    section_pack(&s, NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint8_t *at = s.packed + places[cases[i].place] + cases[i].at, old = *at;
        *at = cases[i].value;
        CHECK_ERR(cases[i].code, codec_decode(out, bytes_of(s.packed, s.bytes), 5, c->r.w, NULL));
        CHECK_HAS(err_detail(), cases[i].says);
        *at = old;
    }
    check_unpacks(&s, NULL);
    memcpy(s.packed + places[FULL], &c->r, sizeof c->r); /* r itself, and the one below */
    CHECK_ERR(E_RANGE, codec_decode(out, bytes_of(s.packed, s.bytes), 5, c->r.w, NULL));
    s.packed[places[FULL]]--;
    CHECK_OK(codec_decode(out, bytes_of(s.packed, s.bytes), 5, c->r.w, NULL));
    for (size_t len = 0; len < s.bytes; len++) {
        CHECK_ERR(E_FORMAT, codec_decode(out, bytes_of(s.packed, len), 5, c->r.w, NULL));
    }
}

/* The first fault of a late block is told, whichever thread meets it. */
static void claim_late_block(void) {
    AUTO(section_done) struct section s;
    AUTO(mem_free_ptr) uint8_t *back = NULL;
    AUTO(pool_close) struct pool *pool = NULL;
    CHECK_OK(pool_open(&pool, 2));
    section_make(&s, CURVE_BLS12_381, 4 * 65536 + 100, &(struct mix){90, 0, 5, 7});
    draw_full(&s.values[s.count - 1]);
    section_pack(&s, NULL);
    CHECK_OK(mem_new_raw(&back, s.count, SCALAR_BYTES));
    memset(s.packed + s.bytes - 32, 0xff, 32);
    CHECK_ERR(E_RANGE, codec_decode((struct bytes_mut){back, s.count * SCALAR_BYTES},
                                    bytes_of(s.packed, s.bytes), s.count, s.curve->r.w, pool));
    CHECK_HAS(err_detail(), "packed block 4: full value");
}

static void claim_pays(void) {
    static const struct {
        struct mix mix;
        bool pays;
    } cases[] = {{{59, 41, 0, 1}, true}, {{45, 5, 47, 7}, true}, {{40, 0, 4, 31}, true},
                 {{8, 1, 0, 1}, false},  {{0, 0, 0, 1}, false},  {{20, 0, 0, 1}, true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(section_done) struct section s;
        AUTO(body_vector_close) struct body_vector v = {0};
        section_make(&s, curves[i % 2], 100000, &cases[i].mix);
        CHECK_OK(body_vector_open(&v, SECTION_WITNESS_RAW, plain(&s), s.curve->r.w, NULL));
        CHECK_EQ(cases[i].pays ? SECTION_WITNESS_PACKED : SECTION_WITNESS_RAW, v.section.kind);
        CHECK_EQ(v.data.len, v.section.raw_bytes);
        CHECK_EQ(s.count, v.section.values_count);
        CHECK_EQ(!cases[i].pays, v.data.ptr == (const uint8_t *)s.values);
        CHECK(!cases[i].pays || v.data.len <= s.count * 28);
    }
}

/* A descriptor can neither announce a vector that its bytes cannot hold nor one that memory cannot. */
static void claim_bombs(void) {
    struct frame_layout layout;
    struct frame_section s = {SECTION_WITNESS_PACKED, 1 << 20, 0};
    uint64_t least = codec_bytes_least(1 << 20);
    CHECK_EQ(32 + 16 * 16 + (1 << 18), least);
    s.raw_bytes = least - 1;
    CHECK_ERR(E_FORMAT, frame_layout_init(&layout, &s, 1, 1 << 20, UINT64_MAX));
    CHECK_HAS(err_detail(), "packed values, want 262432 to 33816864");
    s.raw_bytes = least;
    CHECK_OK(frame_layout_init(&layout, &s, 1, 1 << 20, least + 32 * (1 << 20)));
    CHECK_EQ(least + 32 * (1 << 20), layout.memory_bytes);
    CHECK_ERR(E_LIMIT, frame_layout_init(&layout, &s, 1, 1 << 20, least + 32 * (1 << 20) - 1));
    s.raw_bytes = codec_bytes_most(1 << 20) + 1;
    CHECK_ERR(E_FORMAT, frame_layout_init(&layout, &s, 1, 1 << 20, UINT64_MAX));
    s = (struct frame_section){SECTION_WITNESS_PACKED, (UINT64_C(1) << 32) + 1, UINT64_C(1) << 33};
    CHECK_ERR(E_FORMAT, frame_layout_init(&layout, &s, 1, 1 << 20, UINT64_MAX));
    s.values_count = UINT64_MAX;
    CHECK_ERR(E_FORMAT, frame_layout_init(&layout, &s, 1, 1 << 20, UINT64_MAX));
    struct codec_map map;
    uint8_t head[64] = {'B', 'P', 'K', 'S', 1, 0, 16};
    CHECK_ERR(E_RANGE, codec_open(&map, bytes_of(head, sizeof head), 0));
    CHECK_ERR(E_RANGE, codec_open(&map, bytes_of(head, sizeof head), UINT64_MAX));
    CHECK_ERR(E_FORMAT, codec_open(&map, bytes_of(head, sizeof head), UINT64_C(1) << 32));
    CHECK_HAS(err_detail(), "the least is");
}

static enum err pack_and_unpack(void *ctx) {
    const struct section *s = ctx;
    AUTO(body_vector_close) struct body_vector v = {0};
    TRY(body_vector_open(&v, SECTION_EVALUATIONS_A_RAW, plain(s), s->curve->r.w, NULL));
    CHECK_EQ(SECTION_EVALUATIONS_A_PACKED, v.section.kind);
    return codec_decode((struct bytes_mut){s->packed, s->count * SCALAR_BYTES}, v.data, s->count,
                        s->curve->r.w, NULL);
}

static void claim_allocations(void) {
    AUTO(section_done) struct section s;
    section_make(&s, CURVE_BN254, 1000, &(struct mix){90, 10, 0, 1});
    CHECK_OK(mem_new_raw(&s.packed, s.count, SCALAR_BYTES));
    CHECK_EQ(4, check_allocations(pack_and_unpack, &s));
    CHECK_MEM(s.values, s.packed, s.count * SCALAR_BYTES);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"packed scalars of every kind and number unpack to what was packed", claim_round_trip},
        {"values around every power of two, of either sign, survive", claim_edges},
        {"a scalar goes into its cheapest class and a block into its smallest width",
         claim_cheapest},
        {"the bytes are those that packed.h draws", claim_bytes},
        {"every kind of damage is refused with its sentence", claim_damage},
        {"damage in a late block is told, on a pool too", claim_late_block},
        {"a vector is packed exactly where that saves an eighth", claim_pays},
        {"a section that announces more than it can hold is refused before allocation",
         claim_bombs},
        {"packing and unpacking survive every failed allocation", claim_allocations},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
