/* Every read asks `take` for its bytes; `take` is the only place that moves a cursor, so it is the only place that
 * can run past an end, and it can't: the length asked for is compared with what is left, never added to a position.
 */
#include "node/base/bytes.h"

#include <string.h>

enum err size_mul(size_t *out, size_t a, size_t b) {
    size_t product;
    REQUIRE(!__builtin_mul_overflow(a, b, &product), E_RANGE, "%zu times %zu does not fit a size",
            a, b);
    *out = product;
    return OK;
}

enum err size_add(size_t *out, size_t a, size_t b) {
    size_t sum;
    REQUIRE(!__builtin_add_overflow(a, b, &sum), E_RANGE, "%zu plus %zu does not fit a size", a, b);
    *out = sum;
    return OK;
}

static FALLIBLE take(const uint8_t **out, struct reader *r, size_t len) {
    REQUIRE(len <= reader_left(r), E_FORMAT, "%s ends at byte %zu, but %zu bytes are due at %zu",
            r->what, r->span.len, len, r->pos);
    *out = r->span.ptr ? r->span.ptr + r->pos : NULL; /* an empty span may have no address */
    r->pos += len;
    return OK;
}

enum err read_u8(uint8_t *out, struct reader *r) {
    const uint8_t *p;
    TRY(take(&p, r, 1));
    *out = p[0];
    return OK;
}

enum err read_u16le(uint16_t *out, struct reader *r) {
    const uint8_t *p;
    TRY(take(&p, r, 2));
    *out = (uint16_t)(p[0] | p[1] << 8);
    return OK;
}

enum err read_u32le(uint32_t *out, struct reader *r) {
    const uint8_t *p;
    TRY(take(&p, r, 4));
    *out = load_u32le(p);
    return OK;
}

enum err read_u64le(uint64_t *out, struct reader *r) {
    const uint8_t *p;
    TRY(take(&p, r, 8));
    *out = load_u64le(p);
    return OK;
}

enum err read_u32be(uint32_t *out, struct reader *r) {
    const uint8_t *p;
    TRY(take(&p, r, 4));
    *out = __builtin_bswap32(load_u32le(p));
    return OK;
}

enum err read_u64be(uint64_t *out, struct reader *r) {
    const uint8_t *p;
    TRY(take(&p, r, 8));
    *out = __builtin_bswap64(load_u64le(p));
    return OK;
}

enum err read_span(struct bytes *out, struct reader *r, size_t len) {
    const uint8_t *p;
    TRY(take(&p, r, len));
    *out = (struct bytes){p, len};
    return OK;
}

enum err read_copy(void *out, struct reader *r, size_t len) {
    const uint8_t *p;
    TRY(take(&p, r, len));
    if (len > 0) {
        memcpy(out, p, len);
    }
    return OK;
}

enum err read_skip(struct reader *r, size_t len) {
    const uint8_t *p;
    return take(&p, r, len);
}

enum err read_end(const struct reader *r) {
    REQUIRE(reader_left(r) == 0, E_FORMAT, "%s holds %zu bytes, but its content ends at %zu",
            r->what, r->span.len, r->pos);
    return OK;
}

uint32_t load_u32le(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t load_u64le(const uint8_t *p) {
    return load_u32le(p) | (uint64_t)load_u32le(p + 4) << 32;
}

void store_u32le(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}

void store_u64le(uint8_t *p, uint64_t v) {
    for (int i = 0; i < 8; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}

void hex_encode(char *out, const void *in, size_t len) {
    static const char digits[] = "0123456789abcdef";
    const uint8_t *b = in;
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[b[i] >> 4];
        out[2 * i + 1] = digits[b[i] & 15];
    }
    out[2 * len] = '\0';
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

enum err hex_decode(void *out, size_t len, const char *hex) {
    size_t digits_count = strlen(hex);
    REQUIRE(digits_count % 2 == 0 && digits_count / 2 == len, E_FORMAT,
            "%zu hex digits, %zu expected", digits_count, 2 * len);
    for (size_t i = 0; i < digits_count; i++) {
        REQUIRE(hex_digit(hex[i]) >= 0, E_FORMAT, "character %zu of the hex text is not a digit",
                i);
    }
    uint8_t *b = out;
    for (size_t i = 0; i < len; i++) {
        b[i] = (uint8_t)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
    }
    return OK;
}
