/* Spans of bytes and the one way to read hostile ones.
 *
 * A reader is a span with a cursor. Every read is bounds-checked and little- or big-endian by name; no struct is
 * ever laid over bytes. Running past the end is E_FORMAT with position and length in the detail.
 *
 * Threads  a reader belongs to one thread; spans are plain values.
 */
#pragma once
#include "node/base/err.h"

struct bytes {
    const uint8_t *ptr; /* lent */
    size_t len;
};
struct bytes_mut {
    uint8_t *ptr; /* lent */
    size_t len;
};

static inline struct bytes bytes_of(const void *ptr, size_t len) {
    return (struct bytes){ptr, len};
}

/* Products and sums of sizes from outside: overflow is E_RANGE. *out is untouched unless OK. */
FALLIBLE size_mul(size_t *out, size_t a, size_t b);
FALLIBLE size_add(size_t *out, size_t a, size_t b);

struct reader {
    struct bytes span;
    size_t pos;
    const char *what; /* lent; names the span in errors: "section 4" */
};

static inline struct reader reader_of(struct bytes span, const char *what) {
    return (struct reader){span, 0, what};
}
static inline size_t reader_left(const struct reader *r) {
    return r->span.len - r->pos;
}
FALLIBLE read_u8(uint8_t *out, struct reader *r);
FALLIBLE read_u16le(uint16_t *out, struct reader *r);
FALLIBLE read_u32le(uint32_t *out, struct reader *r);
FALLIBLE read_u64le(uint64_t *out, struct reader *r);
FALLIBLE read_u32be(uint32_t *out, struct reader *r);
FALLIBLE read_u64be(uint64_t *out, struct reader *r);
FALLIBLE read_span(struct bytes *out, struct reader *r,
                   size_t len); /* lent from the reader's span */
FALLIBLE read_copy(void *out, struct reader *r, size_t len);
FALLIBLE read_skip(struct reader *r, size_t len);
FALLIBLE read_end(const struct reader *r); /* E_FORMAT if bytes are left over */

/* Fixed-place loads and stores on memory already checked. */
uint32_t load_u32le(const uint8_t *p);
uint64_t load_u64le(const uint8_t *p);
void store_u32le(uint8_t *p, uint32_t v);
void store_u64le(uint8_t *p, uint64_t v);

/* Hex, lower case. out holds 2·len + 1 bytes. */
void hex_encode(char *out, const void *in, size_t len);
FALLIBLE hex_decode(void *out, size_t len,
                    const char *hex); /* exactly 2·len digits, else E_FORMAT */
