/* Findings are added in the order in which they are printed, each by one check. */
#include "node/cli/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const double CLOCK_WARN_S = 0.5, CLOCK_BAD_S = 5;
static const char *const state_names[FINDING_STATES_COUNT] = {"good", "note", "warning", "bad"};

const char *finding_state_name(enum finding_state state) {
    return state_names[state];
}

void finding_add(struct findings *f, const char *part, const char *check, enum finding_state state,
                 const char *format, ...) {
    va_list args;
    DASSERT(f->count < FINDINGS_MAX);
    if (f->count == FINDINGS_MAX) {
        return;
    }
    struct finding *one = &f->list[f->count++];
    *one = (struct finding){.part = part, .check = check, .state = state};
    va_start(args, format);
    vsnprintf(one->found, sizeof one->found, format, args);
    va_end(args);
}

void finding_cure(struct findings *f, const char *format, ...) {
    va_list args;
    ASSERT(f->count > 0);
    struct finding *one = &f->list[f->count - 1];
    va_start(args, format);
    vsnprintf(one->cure, sizeof one->cure, format, args);
    va_end(args);
}

bool doctor_line(char out[DOCTOR_LINE_BYTES], const char *root, const char *path) {
    char full[4096];
    snprintf(full, sizeof full, "%s%s", root, path);
    FILE *file = fopen(full, "re");
    bool ok = file && fgets(out, DOCTOR_LINE_BYTES, file);
    if (file) {
        fclose(file);
    }
    if (ok) {
        out[strcspn(out, "\n")] = 0;
    }
    return ok;
}

void doctor_ahead(struct findings *f, double ahead_s) {
    double off = ahead_s < 0 ? -ahead_s : ahead_s;
    finding_add(f, "network", "clock",
                off > CLOCK_BAD_S    ? FINDING_BAD
                : off > CLOCK_WARN_S ? FINDING_WARNING
                                     : FINDING_GOOD,
                "%.0f ms %s the server's; deadlines are compared by it", off * 1e3,
                ahead_s < 0 ? "behind" : "ahead of");
    if (off > CLOCK_WARN_S) {
        finding_cure(f, "run a time service (systemd-timesyncd, chrony) on both");
    }
}
