/* Every length is compared with what is left before it is used, every varint with 64 bits. */
#include "proto/wire.h"

#include <inttypes.h>

FALLIBLE read_varint(uint64_t *out, struct reader *r) {
    uint64_t value = 0;
    for (unsigned i = 0;; i++) {
        uint8_t byte;
        TRY(read_u8(&byte, r));
        REQUIRE(i < VARINT_BYTES_MAX - 1 || byte <= 1, E_FORMAT,
                "%s: varint above 64 bits at byte %zu", r->what, r->pos);
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            *out = value;
            return OK;
        }
    }
}

FALLIBLE read_delimited(struct bytes *out, struct reader *r) {
    uint64_t len;
    TRY(read_varint(&len, r));
    REQUIRE(len <= reader_left(r), E_FORMAT, "%s: field of %" PRIu64 " bytes with %zu left",
            r->what, len, reader_left(r));
    return read_span(out, r, (size_t)len);
}

FALLIBLE read_past_field(struct reader *r, unsigned wire_type) {
    uint64_t n;
    struct bytes span;
    switch (wire_type) {
    case WIRE_VARINT:
        return read_varint(&n, r);
    case WIRE_FIXED64:
        return read_skip(r, 8);
    case WIRE_FIXED32:
        return read_skip(r, 4);
    case WIRE_BYTES:
        return read_delimited(&span, r);
    default:
        FAIL(E_FORMAT, "%s: wire type %u at byte %zu", r->what, wire_type, r->pos);
    }
}
