/* Varints, spans and fields to step over, at their edges. */
#include "proto/wire.h"

#include "tests/check/check.h"

static void claim_varints(void) {
    static const struct {
        uint8_t bytes[12];
        size_t len;
        bool well;
        uint64_t value;
    } rows[] = {
        {{0}, 1, true, 0},
        {{0x7f}, 1, true, 127},
        {{0x80, 0x01}, 2, true, 128},
        {{0x80, 0x00}, 2, true, 0}, /* longer than it need be */
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 9, true, UINT64_MAX >> 1},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10, true, UINT64_MAX},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 10, false, 0}, /* bit 64 */
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, 11, false, 0},
        {{0}, 0, false, 0},
        {{0x80}, 1, false, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct reader r = reader_of(bytes_of(rows[i].bytes, rows[i].len), "number");
        uint64_t value = 77;
        enum err e = read_varint(&value, &r);
        CHECK_MSG(e == (rows[i].well ? OK : E_FORMAT), "row %zu: %s", i, err_name(e));
        CHECK(value == (rows[i].well ? rows[i].value : 77));
        CHECK(e != OK || reader_left(&r) == 0);
    }
}

static void claim_spans(void) {
    static const uint8_t whole[] = {3, 'a', 'b', 'c', 9};
    for (size_t len = 0; len < sizeof whole; len++) {
        struct reader r = reader_of(bytes_of(whole, len), "span");
        struct bytes span = {NULL, 77};
        enum err e = read_delimited(&span, &r);
        CHECK_MSG(e == (len < 4 ? E_FORMAT : OK), "%zu bytes: %s", len, err_name(e));
        CHECK_EQ(len < 4 ? 77 : 3, span.len);
        CHECK(len < 4 || span.ptr == whole + 1);
    }
}

static void claim_past(void) {
    static const uint8_t bytes[] = {0x81, 0x01, 2, 3, 4, 5, 6, 7, 8, 9};
    static const struct {
        unsigned wire_type;
        size_t from, len; /* of the value; 0: refused */
    } rows[] = {{WIRE_VARINT, 0, 2},
                {WIRE_FIXED32, 0, 4},
                {WIRE_FIXED64, 0, 8},
                {WIRE_FIXED64, 4, 0},
                {WIRE_FIXED32, 7, 0},
                {WIRE_BYTES, 2, 3},
                {WIRE_BYTES, 0, 0},
                {WIRE_VARINT, 10, 0},
                {3, 0, 0},
                {4, 0, 0},
                {6, 0, 0},
                {7, 0, 0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes from = bytes_of(bytes + rows[i].from, sizeof bytes - rows[i].from);
        struct reader r = reader_of(from, "field");
        enum err e = read_past_field(&r, rows[i].wire_type);
        CHECK_MSG(e == (rows[i].len ? OK : E_FORMAT), "row %zu: %s", i, err_name(e));
        CHECK(e != OK || r.pos == rows[i].len);
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a number of more than 64 bits, or one that does not end, is refused", claim_varints},
        {"a span that nothing backs is refused", claim_spans},
        {"a field is stepped over as its wire type says, groups are refused", claim_past},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
