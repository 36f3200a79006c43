/* Growing text: how JSON and reports are put together before they are written.
 *
 * Threads  one at a time.
 * Errors   sticky: after an allocation failure every call is a no-op and text_done() says E_LIMIT.
 */
#pragma once
#include "node/base/bytes.h"

struct text {
    char *ptr; /* owned; NUL-terminated when len > 0 */
    size_t len, cap;
    bool failed;
};

void text_add(struct text *t, const char *s);
void text_add_bytes(struct text *t, struct bytes s); /* as they are */
void text_addf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_json_string(struct text *t,
                          const char *s); /* with quotes, escaped; invalid UTF-8 becomes U+FFFD */
FALLIBLE text_done(const struct text *t);
static inline struct bytes text_bytes(const struct text *t) {
    return (struct bytes){(const uint8_t *)t->ptr, t->len};
}
void text_free(struct text *t); /* for AUTO too */

/* Bytes of the well-formed UTF-8 sequence at s, of which `left` bytes, one or more, are there; 0: there is none. */
size_t utf8_length(const uint8_t *s, size_t left);
