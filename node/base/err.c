/* The table of codes, and one slot of detail per thread. */
#include "node/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum err_class cls;
    int exit_code;
} codes[ERR_COUNT] = {
    [OK] = {"OK", CLASS_OK, 0},
    [E_FORMAT] = {"E_FORMAT", CLASS_REJECT, 2},
    [E_RANGE] = {"E_RANGE", CLASS_REJECT, 2},
    [E_CURVE] = {"E_CURVE", CLASS_REJECT, 2},
    [E_UNSAT] = {"E_UNSAT", CLASS_REJECT, 1},
    [E_LIMIT] = {"E_LIMIT", CLASS_BUSY, 3},
    [E_QUEUE] = {"E_QUEUE", CLASS_BUSY, 3},
    [E_DEVICE] = {"E_DEVICE", CLASS_DEVICE, 3},
    [E_DEVICE_LOST] = {"E_DEVICE_LOST", CLASS_DEVICE, 3},
    [E_SELFCHECK] = {"E_SELFCHECK", CLASS_CHECK, 1},
    [E_IO] = {"E_IO", CLASS_WORLD, 2},
    [E_NET] = {"E_NET", CLASS_WORLD, 4},
    [E_TIMEOUT] = {"E_TIMEOUT", CLASS_WORLD, 4},
    [E_CANCELLED] = {"E_CANCELLED", CLASS_STOP, 4},
    [E_DEADLINE] = {"E_DEADLINE", CLASS_STOP, 4},
    [E_USAGE] = {"E_USAGE", CLASS_USAGE, 2},
    [E_INTERNAL] = {"E_INTERNAL", CLASS_BUG, 5},
};

static _Thread_local char slot[ERR_DETAIL_BYTES];

enum err_class err_class(enum err code) {
    return (unsigned)code < ERR_COUNT ? codes[code].cls : CLASS_BUG;
}

const char *err_name(enum err code) {
    return (unsigned)code < ERR_COUNT ? codes[code].name : "E_INTERNAL";
}

const char *err_class_name(enum err_class cls) {
    static const char *const names[] = {"ok",    "reject", "busy",  "device", "check",
                                        "world", "stop",   "usage", "bug"};
    return (unsigned)cls < COUNT_OF(names) ? names[cls] : "bug";
}

int err_exit_code(enum err code) {
    return (unsigned)code < ERR_COUNT ? codes[code].exit_code : 5;
}

bool err_from_name(enum err *out, const char *name) {
    for (int code = 0; code < ERR_COUNT; code++) {
        if (!strcmp(codes[code].name, name)) {
            *out = (enum err)code;
            return true;
        }
    }
    return false;
}

enum err err_set(enum err code, const char *format, ...) {
    char text[ERR_DETAIL_BYTES]; /* the arguments may point into the slot */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(slot, text, sizeof slot);
    return code;
}

enum err err_prefix(enum err code, const char *format, ...) {
    char text[ERR_DETAIL_BYTES];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len >= 0 && (size_t)len + 2 < sizeof text) {
        size_t room = sizeof text - (size_t)len - 3; /* for ": " and the NUL */
        snprintf(text + len, sizeof text - (size_t)len, ": %.*s", (int)room, slot);
    }
    memcpy(slot, text, sizeof slot);
    return code;
}

const char *err_detail(void) {
    return slot;
}

struct fault fault_of(enum err code) {
    struct fault f = {.code = code};
    memcpy(f.detail, slot, sizeof slot);
    return f;
}

enum err fault_raise(const struct fault *f) {
    memcpy(slot, f->detail, sizeof slot);
    return f->code;
}

void assert_fail(const char *condition, const char *file, int line) {
    fprintf(stderr, "bellows: internal error: %s:%d: assertion failed: %s\n", file, line,
            condition);
    abort();
}
