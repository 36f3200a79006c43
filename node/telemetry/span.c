/* A list; what does not fit is counted. */
#include "node/telemetry/span.h"

#include <string.h>

#include "node/base/clock.h"

static const struct {
    const char *name, *place;
} steps[SPAN_STEPS_COUNT] = {
#define SPAN_NAMES(id, name, place) [SPAN_##id] = {name, place},
    SPAN_TABLE(SPAN_NAMES)
#undef SPAN_NAMES
};

const char *span_step_name(enum span_step step) {
    ASSERT(step < SPAN_STEPS_COUNT);
    return steps[step].name;
}

const char *span_step_place(enum span_step step) {
    ASSERT(step < SPAN_STEPS_COUNT);
    return steps[step].place;
}

void spans_begin(struct spans *s) {
    s->origin_ns = clock_ns();
    s->count = 0;
    s->dropped = 0;
}

void spans_add(struct spans *s, enum span_step step, uint64_t start_ns, uint64_t ns, uint64_t bytes,
               enum err outcome) {
    ASSERT(step < SPAN_STEPS_COUNT);
    if (s->count == SPANS_MAX) {
        s->dropped++;
        return;
    }
    uint64_t since_ns = start_ns > s->origin_ns ? start_ns - s->origin_ns : 0;
    s->items[s->count++] = (struct span){step, since_ns, ns, bytes, outcome};
}

void spans_end(struct spans *s, enum span_step step, uint64_t start_ns, uint64_t bytes,
               enum err outcome) {
    spans_add(s, step, start_ns, clock_ns() - start_ns, bytes, outcome);
}

struct span spans_sum(const struct spans *s, enum span_step step) {
    struct span sum = {.step = step};
    bool first = true;
    for (size_t i = 0; i < s->count; i++) {
        const struct span *one = &s->items[i];
        if (one->step == step) {
            sum.start_ns = first ? one->start_ns : sum.start_ns;
            sum.ns += one->ns;
            sum.bytes += one->bytes;
            sum.outcome = one->outcome;
            first = false;
        }
    }
    return sum;
}
