/* Readers never pass their end; sizes never wrap; hex goes there and back. */
#include "tests/check/check.h"

#include <string.h>

static const uint8_t ramp[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static void claim_sizes(void) {
    size_t out = 7;
    CHECK_ERR(E_RANGE, size_mul(&out, SIZE_MAX, 2));
    CHECK_ERR(E_RANGE, size_mul(&out, SIZE_MAX / 2 + 1, 2));
    CHECK_ERR(E_RANGE, size_add(&out, SIZE_MAX, 1));
    CHECK_EQ(7, out);
    CHECK_OK(size_mul(&out, SIZE_MAX / 2, 2));
    CHECK(out == SIZE_MAX - 1);
    CHECK_OK(size_add(&out, SIZE_MAX, 0));
    CHECK(out == SIZE_MAX);
}

static void claim_reads(void) {
    struct reader r = reader_of(bytes_of(ramp, sizeof ramp), "ramp");
    uint8_t a;
    uint16_t b;
    uint32_t c;
    uint64_t d;
    CHECK_OK(read_u8(&a, &r));
    CHECK_EQ(1, a);
    CHECK_OK(read_u16le(&b, &r));
    CHECK_EQ(0x0302, b);
    CHECK_OK(read_u32le(&c, &r));
    CHECK_EQ(0x07060504, c);
    CHECK_OK(read_u64le(&d, &r));
    CHECK(d == UINT64_C(0x0f0e0d0c0b0a0908));
    CHECK_EQ(1, reader_left(&r));
    CHECK_ERR(E_FORMAT, read_end(&r));
    CHECK_OK(read_skip(&r, 1));
    CHECK_OK(read_end(&r));
    r.pos = 0;
    CHECK_OK(read_u32be(&c, &r));
    CHECK_EQ(0x01020304, c);
    CHECK_OK(read_u64be(&d, &r));
    CHECK(d == UINT64_C(0x05060708090a0b0c));
}

static void claim_past_the_end(void) {
    for (size_t len = 0; len < 9; len++) {
        struct reader r = reader_of(bytes_of(ramp, len), "section 4");
        uint64_t d = 99;
        if (len < 8) {
            CHECK_ERR(E_FORMAT, read_u64le(&d, &r));
            CHECK_HAS(err_detail(), "section 4 ends at byte");
            CHECK_EQ(99, d);
            CHECK_EQ(0, r.pos);
        } else {
            CHECK_OK(read_u64le(&d, &r));
        }
    }
    struct reader r = reader_of(bytes_of(ramp, 16), "section 4");
    struct bytes span;
    CHECK_OK(read_skip(&r, 15));
    CHECK_ERR(E_FORMAT, read_span(&span, &r, SIZE_MAX)); /* position + length would wrap */
    CHECK_ERR(E_FORMAT, read_span(&span, &r, 2));
    CHECK_OK(read_span(&span, &r, 1));
    CHECK_EQ(16, span.ptr[0]);
}

static void claim_empty(void) {
    struct reader r = reader_of((struct bytes){NULL, 0}, "nothing");
    struct bytes span;
    CHECK_OK(read_span(&span, &r, 0));
    CHECK_OK(read_copy(NULL, &r, 0));
    CHECK_OK(read_end(&r));
    uint8_t a;
    CHECK_ERR(E_FORMAT, read_u8(&a, &r));
}

static void claim_hex(void) {
    char hex[33];
    uint8_t back[16];
    hex_encode(hex, ramp, 16);
    CHECK_STR("0102030405060708090a0b0c0d0e0f10", hex);
    CHECK_OK(hex_decode(back, 16, hex));
    CHECK_MEM(ramp, back, 16);
    CHECK_OK(hex_decode(back, 2, "aBcD"));
    CHECK_EQ(0xab, back[0]);
    CHECK_ERR(E_FORMAT, hex_decode(back, 2, "abc"));
    CHECK_ERR(E_FORMAT, hex_decode(back, 2, "abcdef"));
    CHECK_ERR(E_FORMAT, hex_decode(back, 2, "abcg"));
    CHECK_ERR(E_FORMAT, hex_decode(back, 2, "ab d"));
    CHECK_EQ(0xab, back[0]);
}

static void claim_stores(void) {
    uint8_t out[8];
    store_u64le(out, UINT64_C(0x1122334455667788));
    CHECK(load_u64le(out) == UINT64_C(0x1122334455667788));
    CHECK_EQ(0x88, out[0]);
    store_u32le(out, 0xdeadbeef);
    CHECK(load_u32le(out) == 0xdeadbeef);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"size_mul and size_add refuse what does not fit", claim_sizes},
        {"reads are little- and big-endian by name", claim_reads},
        {"no read passes the end, and a refused one moves nothing", claim_past_the_end},
        {"an empty span without an address can be read to its end", claim_empty},
        {"hex goes there and back and refuses odd, long and foreign text", claim_hex},
        {"stores are little-endian", claim_stores},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
