/* Two tables of units, largest first, each used in both directions. */
#include "node/base/quantity.h"

#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t factor;
    bool written; /* used when writing, too */
};

static const struct unit bytes_units[] = {
    {"TiB", UINT64_C(1) << 40, true},
    {"GiB", UINT64_C(1) << 30, true},
    {"MiB", UINT64_C(1) << 20, true},
    {"KiB", UINT64_C(1) << 10, true},
    {"TB", 1000000000000, false},
    {"GB", 1000000000, false},
    {"MB", 1000000, false},
    {"kB", 1000, false},
    {"B", 1, true},
    {"", 1, false},
};

static const struct unit span_units[] = {
    {"d", UINT64_C(86400000000000), true},
    {"h", UINT64_C(3600000000000), true},
    {"min", UINT64_C(60000000000), true},
    {"m", UINT64_C(60000000000), false},
    {"s", 1000000000, true},
    {"ms", 1000000, true},
    {"us", 1000, true},
    {"ns", 1, true},
};

/* The leading digits of `text`; *rest is what follows. */
static FALLIBLE leading_number(uint64_t *out, const char **rest, const char *text) {
    uint64_t n = 0;
    size_t i = 0;
    for (; text[i] >= '0' && text[i] <= '9'; i++) {
        bool over = __builtin_mul_overflow(n, UINT64_C(10), &n) ||
                    __builtin_add_overflow(n, (uint64_t)(text[i] - '0'), &n);
        REQUIRE(!over, E_RANGE, "\"%.40s\" does not fit 64 bits", text);
    }
    REQUIRE(i > 0, E_FORMAT, "\"%.40s\" does not begin with a digit", text);
    *out = n;
    *rest = text + i;
    return OK;
}

static FALLIBLE with_unit(uint64_t *out, const char *text, const struct unit *units,
                          size_t units_count, const char *expected) {
    uint64_t n, product;
    const char *unit;
    TRY(leading_number(&n, &unit, text));
    for (size_t i = 0; i < units_count; i++) {
        if (!strcmp(unit, units[i].name)) {
            REQUIRE(!__builtin_mul_overflow(n, units[i].factor, &product), E_RANGE,
                    "\"%.40s\" does not fit 64 bits", text);
            *out = product;
            return OK;
        }
    }
    REQUIRE(n == 0 && !*unit, E_FORMAT, "\"%.40s\" has no unit known here; one of %s is expected",
            text, expected);
    *out = 0;
    return OK;
}

enum err quantity_number(uint64_t *out, const char *text) {
    uint64_t n;
    const char *rest;
    TRY(leading_number(&n, &rest, text));
    REQUIRE(!*rest, E_FORMAT, "\"%.40s\" is not a whole number", text);
    *out = n;
    return OK;
}

enum err quantity_bytes(uint64_t *out, const char *text) {
    return with_unit(out, text, bytes_units, COUNT_OF(bytes_units),
                     "B KiB MiB GiB TiB kB MB GB TB");
}

enum err quantity_span_ns(uint64_t *out, const char *text) {
    return with_unit(out, text, span_units, COUNT_OF(span_units), "ns us ms s min h d");
}

static void write_exact(char *out, uint64_t n, const struct unit *units, size_t units_count) {
    for (size_t i = 0; i < units_count; i++) {
        if (units[i].written && n % units[i].factor == 0 && n >= units[i].factor) {
            snprintf(out, QUANTITY_TEXT_BYTES, "%llu%s", (unsigned long long)(n / units[i].factor),
                     units[i].name);
            return;
        }
    }
    snprintf(out, QUANTITY_TEXT_BYTES, "0");
}

void quantity_bytes_text(char out[QUANTITY_TEXT_BYTES], uint64_t bytes) {
    write_exact(out, bytes, bytes_units, COUNT_OF(bytes_units));
}

void quantity_span_text(char out[QUANTITY_TEXT_BYTES], uint64_t span_ns) {
    write_exact(out, span_ns, span_units, COUNT_OF(span_units));
}
