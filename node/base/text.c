/* A buffer that doubles. The first failure sticks, so that a writer of JSON checks once, at the end. */
#include "node/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "node/base/mem.h"

enum { TEXT_BYTES_FIRST = 256 };

static bool make_room(struct text *t, size_t more) {
    if (t->failed) {
        return false;
    }
    size_t need;
    if (__builtin_add_overflow(t->len, more, &need) || __builtin_add_overflow(need, 1, &need)) {
        t->failed = true;
        return false;
    }
    if (need <= t->cap) {
        return true;
    }
    size_t cap = t->cap ? t->cap : TEXT_BYTES_FIRST;
    while (cap < need) {
        cap = cap > SIZE_MAX / 2 ? need : 2 * cap;
    }
    char *grown = mem_grow(t->ptr, cap);
    if (!grown) {
        t->failed = true;
        return false;
    }
    t->ptr = grown;
    t->cap = cap;
    return true;
}

void text_add_bytes(struct text *t, struct bytes s) {
    if (make_room(t, s.len)) {
        if (s.len > 0) {
            memcpy(t->ptr + t->len, s.ptr, s.len);
        }
        t->len += s.len;
        t->ptr[t->len] = '\0';
    }
}

void text_add(struct text *t, const char *s) {
    text_add_bytes(t, bytes_of(s, strlen(s)));
}

void text_addf(struct text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) {
        t->failed = true;
        return;
    }
    if (!make_room(t, (size_t)len)) {
        return;
    }
    va_start(args, format);
    vsnprintf(t->ptr + t->len, (size_t)len + 1, format, args);
    va_end(args);
    t->len += (size_t)len;
}

/* Unicode 15, table 3-7. */
size_t utf8_length(const uint8_t *s, size_t left) {
    if (s[0] < 0x80) {
        return 1;
    }
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || left < len) {
        return 0;
    }
    uint8_t low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80; /* no overlong forms */
    uint8_t high = s[0] == 0xed   ? 0x9f
                   : s[0] == 0xf4 ? 0x8f
                                  : 0xbf; /* no surrogates, no > 10FFFF */
    if (s[1] < low || s[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return len;
}

static void add_json_ascii(struct text *t, uint8_t c) {
    static const char short_forms[128] = {['"'] = '"',  ['\\'] = '\\', ['\n'] = 'n', ['\r'] = 'r',
                                          ['\t'] = 't', ['\b'] = 'b',  ['\f'] = 'f'};
    char out[8];
    if (short_forms[c]) {
        snprintf(out, sizeof out, "\\%c", short_forms[c]);
    } else if (c < 0x20 || c == 0x7f) {
        snprintf(out, sizeof out, "\\u%04x", c);
    } else {
        snprintf(out, sizeof out, "%c", c);
    }
    text_add(t, out);
}

void text_add_json_string(struct text *t, const char *s) {
    text_add(t, "\"");
    const uint8_t *at = (const uint8_t *)s;
    size_t left = strlen(s);
    while (left > 0 && !t->failed) {
        size_t len = utf8_length(at, left);
        if (len == 0) {
            text_add(t, "\xef\xbf\xbd");
            len = 1;
        } else if (len == 1) {
            add_json_ascii(t, at[0]);
        } else {
            text_add_bytes(t, bytes_of(at, len));
        }
        at += len;
        left -= len;
    }
    text_add(t, "\"");
}

enum err text_done(const struct text *t) {
    REQUIRE(!t->failed, E_LIMIT, "out of memory: a text of more than %zu bytes", t->len);
    return OK;
}

void text_free(struct text *t) {
    mem_free(t->ptr);
    *t = (struct text){0};
}
