/* Spans: one partition's story, step by step, with start, length, bytes and outcome.
 *
 * A list of fixed size that travels with the job from thread to thread. Steps that go on side by side (fetch and decode) overlap;
 * a step that is tried again is a second span.
 *
 * Owner    whoever embeds it.
 * Threads  one at a time, the one that holds the job.
 * Units    nanoseconds; starts count from the origin, the moment the lane took the job.
 */
#pragma once
#include "node/base/err.h"
#include "node/telemetry/span_table.h"

enum span_step {
#define SPAN_ENUM(id, name, place) SPAN_##id,
    SPAN_TABLE(SPAN_ENUM)
#undef SPAN_ENUM
        SPAN_STEPS_COUNT
};
const char *span_step_name(enum span_step step);  /* "key_fetch" */
const char *span_step_place(enum span_step step); /* "network", "disk", "host"; "": the device */

struct span {
    enum span_step step;
    uint64_t start_ns, ns, bytes; /* bytes: moved by the step; 0 where it moves none */
    enum err outcome;
};

enum { SPANS_MAX = 40 };
struct spans {
    uint64_t origin_ns; /* on clock_ns */
    struct span items[SPANS_MAX];
    size_t count;
    uint64_t dropped; /* beyond SPANS_MAX */
};
void spans_begin(struct spans *s); /* empty, from now */
/* A step that began at start_ns on clock_ns. */
void spans_add(struct spans *s, enum span_step step, uint64_t start_ns, uint64_t ns, uint64_t bytes,
               enum err outcome);
/* The one that began at start_ns and ends now. */
void spans_end(struct spans *s, enum span_step step, uint64_t start_ns, uint64_t bytes,
               enum err outcome);
/* All spans of the step added up; the start is the first one's, the outcome the last one's. */
struct span spans_sum(const struct spans *s, enum span_step step);
