/* Text at a place, in a colour or without; what does not fit the screen is cut. */
#include "node/cli/top_pen.h"

#include <curses.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static attr_t attribute(const struct top_pen *pen, enum colour colour) {
    static const attr_t plain[] = {[BAD] = A_BOLD, [TITLE] = A_BOLD, [DIM] = A_DIM};
    attr_t own = (size_t)colour < COUNT_OF(plain) ? plain[colour] : 0;
    bool coloured = pen->colour && colour >= GOOD && colour <= BAD;
    return coloured ? own | (attr_t)COLOR_PAIR((short)colour) : own;
}

void pen_put(const struct top_pen *pen, int column, enum colour colour, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (pen->line < pen->height && column < pen->width) {
        attrset(attribute(pen, colour));
        mvaddnstr(pen->line, column, text, pen->width - column);
        attrset(A_NORMAL);
    }
}

enum colour pen_letter_colour(char letter) {
    switch (letter) {
    case '#':
        return GOOD;
    case '^':
        return MOVING;
    case '.':
    case ' ':
        return DIM;
    case 'x':
        return BAD;
    default:
        return WAITING;
    }
}

void pen_bar(const struct top_pen *pen, int column, const char *bar) {
    pen_put(pen, column++, PLAIN, "[");
    for (; *bar; bar++) {
        pen_put(pen, column++, pen_letter_colour(*bar), "%c", *bar);
    }
    pen_put(pen, column, PLAIN, "]");
}

/* Four to seven characters. */
const char *pen_span_text(char out[16], uint64_t ns) {
    uint64_t s = ns / 1000000000;
    if (ns < UINT64_C(1000000000)) {
        snprintf(out, 16, ns < UINT64_C(10000000) && ns ? "%.1f ms" : "%.0f ms", (double)ns / 1e6);
    } else if (ns < UINT64_C(10000000000)) {
        snprintf(out, 16, "%.1f s", (double)ns / 1e9);
    } else if (s < 120) {
        snprintf(out, 16, "%" PRIu64 " s", s);
    } else if (s < 7200) {
        snprintf(out, 16, "%" PRIu64 " min", s / 60);
    } else {
        snprintf(out, 16, s < 172800 ? "%" PRIu64 " h" : "%" PRIu64 " d",
                 s < 172800 ? s / 3600 : s / 86400);
    }
    return out;
}

const char *pen_bytes_text(char out[16], uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < COUNT_OF(units); unit++) {
        value /= 1024;
    }
    snprintf(out, 16, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return out;
}

const char *pen_priority_text(uint32_t priority) {
    static const char *const words[] = {"urgent", "high", "normal", "low"};
    return priority < COUNT_OF(words) ? words[priority] : "?";
}

const char *pen_key_text(char out[13], const struct sha256 *key) {
    hex_encode(out, key->b, 6);
    return out;
}
