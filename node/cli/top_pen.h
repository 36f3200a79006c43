/* The pen of `bellows top`: where and in which colour text goes on the screen, and how numbers are written.
 *
 * Threads  the one that draws.
 */
#pragma once
#include "node/base/hash.h"

enum colour { PLAIN, GOOD, MOVING, WAITING, BAD, DIM, TITLE };

struct top_pen {
    bool colour;
    int line, width, height; /* what is at `height` or below is not drawn */
    uint64_t now_ms;
};

void pen_put(const struct top_pen *pen, int column, enum colour colour, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "[###..dd]", each letter in its colour. */
void pen_bar(const struct top_pen *pen, int column, const char *bar);
enum colour pen_letter_colour(char letter);

const char *pen_span_text(char out[16], uint64_t ns); /* "1.5 ms", "4.2 s", "3 min", "5 h", "2 d" */
const char *pen_bytes_text(char out[16], uint64_t bytes);         /* "1.5 GiB" */
const char *pen_priority_text(uint32_t priority);                 /* "urgent" */
const char *pen_key_text(char out[13], const struct sha256 *key); /* the first twelve digits */
