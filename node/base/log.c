/* A line is put together on the stack and leaves in one write(), so lines of several threads and processes that share
 * a standard error do not mix. JSON is made from the logfmt line, so that there is one way to say things: the line is
 * split at its spaces, and quoted values are read back.
 */
#include "node/base/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/err.h"
#include "node/base/lock.h"
#include "node/base/text.h"

enum { CONTEXT_BYTES = 256, EVENTS_MAX = 64, EVENT_BYTES = 48, TAIL_BYTES = CONTEXT_BYTES + 128 };

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static enum log_level least_level = LOG_INFO;
static bool as_json;
static char context[CONTEXT_BYTES];

void log_setup(enum log_level least, bool json) {
    least_level = least;
    as_json = json;
}

void log_context(const char *fields) {
    snprintf(context, sizeof context, "%s", fields);
}

bool log_level_from_name(enum log_level *out, const char *name) {
    for (size_t i = 0; i < COUNT_OF(level_names); i++) {
        if (!strcmp(level_names[i], name)) {
            *out = (enum log_level)i;
            return true;
        }
    }
    return false;
}

/* --- Repeats: a window per event. A full table lets lines pass uncounted: better noisy than silent. --- */

static struct lock repeats_lock = LOCK_STATIC(LOCK_LOG);
static struct repeats {
    char event[EVENT_BYTES];
    uint64_t since_ns;
    unsigned shown_count, suppressed_count;
} repeats[EVENTS_MAX]; /* [repeats_lock] */

static bool may_show(const char *event, unsigned *suppressed_count) {
    uint64_t now = clock_ns();
    bool show = true;
    *suppressed_count = 0;
    lock_take(&repeats_lock);
    for (size_t i = 0; i < EVENTS_MAX; i++) {
        struct repeats *r = &repeats[i];
        if (!r->event[0]) {
            snprintf(r->event, sizeof r->event, "%s", event);
            r->since_ns = now;
        }
        if (strncmp(r->event, event, sizeof r->event - 1)) {
            continue;
        }
        if (now - r->since_ns >= LOG_REPEATS_NS) {
            r->since_ns = now;
            r->shown_count = 0;
        }
        show = r->shown_count < LOG_REPEATS_MAX;
        if (show) {
            r->shown_count++;
            *suppressed_count = r->suppressed_count;
            r->suppressed_count = 0;
        } else {
            r->suppressed_count++;
        }
        break;
    }
    lock_give(&repeats_lock);
    return show;
}

/* --- One line. --- */

static const char *escape_of(char scratch[5], unsigned char c) {
    switch (c) {
    case '\n':
        return "\\n";
    case '\t':
        return "\\t";
    case '\r':
        return "\\r";
    default:
        snprintf(scratch, 5, "\\x%02x", c);
        return scratch;
    }
}

static bool is_control(unsigned char c) {
    return c < 0x20 || c == 0x7f;
}

/* Appends to out[at…limit); false when it was cut. */
static bool append_clean(char *out, size_t *at, size_t limit, const char *s) {
    for (; *s; s++) {
        char scratch[5], plain[2] = {*s, '\0'};
        const char *piece =
            is_control((unsigned char)*s) ? escape_of(scratch, (unsigned char)*s) : plain;
        size_t len = strlen(piece);
        if (*at + len >= limit) {
            return false;
        }
        memcpy(out + *at, piece, len);
        *at += len;
    }
    return true;
}

/* Takes a cut UTF-8 sequence off the end. */
static void drop_partial_utf8(const char *out, size_t *at) {
    while (*at > 0 && ((unsigned char)out[*at - 1] & 0xc0) == 0x80) {
        (*at)--;
    }
    if (*at > 0 && (unsigned char)out[*at - 1] >= 0xc0) {
        (*at)--;
    }
}

static void stamp(char *out, size_t out_bytes) {
    uint64_t now = clock_unix_ns();
    time_t seconds = (time_t)(now / 1000000000u);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    size_t at = strftime(out, out_bytes, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + at, out_bytes - at, ".%06uZ", (unsigned)(now % 1000000000u / 1000u));
}

/* The body is cut to leave room for `tail`, which is ours and always whole. */
static size_t compose(char out[LOG_LINE_BYTES], const char *event, const char *body,
                      const char *tail) {
    static const char cut_mark[] = "…";
    size_t at = 0, limit = LOG_LINE_BYTES - strlen(tail) - sizeof cut_mark - 2;
    bool whole = append_clean(out, &at, limit, event);
    if (whole && *body) {
        whole = append_clean(out, &at, limit, " ") && append_clean(out, &at, limit, body);
    }
    if (!whole) {
        drop_partial_utf8(out, &at);
        memcpy(out + at, cut_mark, sizeof cut_mark - 1);
        at += sizeof cut_mark - 1;
        bool open_quote = false;
        for (size_t i = 0; i < at; i++) {
            if (out[i] == '\\' && open_quote) {
                i++;
            } else if (out[i] == '"') {
                open_quote = !open_quote;
            }
        }
        if (open_quote) {
            out[at++] = '"';
        }
    }
    append_clean(out, &at, LOG_LINE_BYTES - 1, tail);
    out[at] = '\0';
    return at;
}

/* --- JSON from logfmt. --- */

static bool ends_in_unit(const char *key) {
    static const char *const units[] = {"_ns",  "_us",    "_ms",  "_s",    "_bytes",
                                        "_pct", "_count", "_idx", "_per_s"};
    size_t len = strlen(key);
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        size_t unit_len = strlen(units[i]);
        if (len > unit_len && !strcmp(key + len - unit_len, units[i])) {
            return true;
        }
    }
    return false;
}

/* A number of JSON's grammar without an exponent. */
static bool is_json_number(const char *s) {
    s += *s == '-';
    size_t digits = strspn(s, "0123456789");
    if (digits == 0 || (digits > 1 && *s == '0')) {
        return false;
    }
    s += digits;
    if (*s == '.') {
        digits = strspn(++s, "0123456789");
        s += digits;
        return digits > 0 && !*s;
    }
    return !*s;
}

/* Undoes log_quote, in place; *at moves past the value and its space. */
static char *take_value(char **at) {
    char *from = *at, *value = from, *to = from;
    if (*from != '"') {
        from += strcspn(from, " ");
        to = from;
    } else {
        for (from++; *from && *from != '"'; from++) {
            if (*from == '\\' && from[1]) {
                from++;
                *to++ = *from == 'n' ? '\n' : *from == 't' ? '\t' : *from == 'r' ? '\r' : *from;
            } else {
                *to++ = *from;
            }
        }
        from += *from == '"';
    }
    from += *from == ' ' ? 1 : 0;
    if (to < from) {
        *to = '\0';
    }
    *at = from;
    return value;
}

static void add_json(struct text *out, char *line) {
    char *at = line;
    text_add(out, "{\"event\":");
    text_add_json_string(out, take_value(&at));
    while (*at) {
        size_t key_len = strcspn(at, "= ");
        char *key = at;
        bool has_value = at[key_len] == '=';
        at += key_len + (at[key_len] != '\0');
        key[key_len] = '\0';
        if (key_len == 0 && !has_value) {
            continue;
        }
        text_add(out, ",");
        text_add_json_string(out, key);
        text_add(out, ":");
        if (!has_value) {
            text_add(out, "true");
            continue;
        }
        char *value = take_value(&at);
        if (ends_in_unit(key) && is_json_number(value)) {
            text_add(out, value);
        } else {
            text_add_json_string(out, value);
        }
    }
    text_add(out, "}\n");
}

static void write_line(const char *line, size_t len) {
    ssize_t n = write(STDERR_FILENO, line, len);
    (void)n; /* there is nowhere to report that standard error is gone */
}

void log_line(enum log_level level, const char *event, const char *format, ...) {
    unsigned suppressed_count = 0;
    if (level < least_level || (level >= LOG_WARN && !may_show(event, &suppressed_count))) {
        return;
    }
    char body[LOG_LINE_BYTES], tail[TAIL_BYTES], when[40], repeated[40] = "", line[LOG_LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(body, sizeof body, format, args);
    va_end(args);
    stamp(when, sizeof when);
    if (suppressed_count > 0) {
        snprintf(repeated, sizeof repeated, " suppressed_count=%u", suppressed_count);
    }
    snprintf(tail, sizeof tail, "%s%s%s level=%s ts=%s", repeated, *context ? " " : "", context,
             level_names[level], when);
    size_t len = compose(line, event, body, tail);
    if (as_json) {
        struct text json = {0};
        add_json(&json, line);
        if (!json.failed) {
            write_line(json.ptr, json.len);
        }
        text_free(&json);
        return;
    }
    line[len++] = '\n';
    write_line(line, len);
}

const char *log_quote(char *out, size_t out_bytes, const char *text) {
    ASSERT(out_bytes >= 8);
    bool plain = *text != '\0';
    for (const char *s = text; *s && plain; s++) {
        plain = *s != ' ' && *s != '"' && *s != '=' && *s != '\\' && !is_control((unsigned char)*s);
    }
    if (plain && strlen(text) < out_bytes) {
        memcpy(out, text, strlen(text) + 1);
        return out;
    }
    size_t at = 0, limit = out_bytes - 4; /* room for "…" or the closing quote, and the end */
    bool whole = true;
    out[at++] = '"';
    for (; *text && whole; text++) {
        char scratch[5], one[3] = {*text, '\0', '\0'};
        const char *piece = one;
        if (*text == '"' || *text == '\\') {
            one[0] = '\\';
            one[1] = *text;
        } else if (is_control((unsigned char)*text)) {
            piece = escape_of(scratch, (unsigned char)*text);
        }
        whole = at + strlen(piece) < limit;
        if (whole) {
            memcpy(out + at, piece, strlen(piece));
            at += strlen(piece);
        }
    }
    if (!whole) {
        drop_partial_utf8(out, &at);
        at = at ? at : 1; /* the opening quote stays */
    }
    out[at++] = '"';
    out[at] = '\0';
    return out;
}
