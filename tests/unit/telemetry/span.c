/* Spans keep order, starts and outcomes; what does not fit is counted. */
#include "node/telemetry/span.h"
#include "node/base/clock.h"
#include "tests/check/check.h"

#include <string.h>

static void claim_story(void) {
    struct spans s;
    clock_hold(5000);
    spans_begin(&s);
    clock_sleep_ns(10);
    uint64_t start_ns = clock_ns();
    clock_sleep_ns(32);
    spans_end(&s, SPAN_FETCH, start_ns, 77, OK);
    spans_add(&s, SPAN_DECODE, start_ns + 1, 8, 99, E_FORMAT);
    spans_add(&s, SPAN_DECODE, 4000, 4, 1, OK); /* before the origin: no negative start */
    CHECK_EQ(3, s.count);
    CHECK_EQ(10, s.items[0].start_ns);
    CHECK_EQ(32, s.items[0].ns);
    CHECK_EQ(77, s.items[0].bytes);
    CHECK_EQ(OK, s.items[0].outcome);
    CHECK_EQ(11, s.items[1].start_ns);
    CHECK_EQ(E_FORMAT, s.items[1].outcome);
    CHECK_EQ(0, s.items[2].start_ns);
    CHECK_EQ(12, spans_sum(&s, SPAN_DECODE).ns);
    CHECK_EQ(100, spans_sum(&s, SPAN_DECODE).bytes);
    CHECK_EQ(11, spans_sum(&s, SPAN_DECODE).start_ns);
    CHECK_EQ(0, spans_sum(&s, SPAN_STORE).ns);
    clock_release();
}

static void claim_limit(void) {
    struct spans s;
    spans_begin(&s);
    for (int i = 0; i < SPANS_MAX + 3; i++) {
        spans_add(&s, SPAN_VERIFY, s.origin_ns + (uint64_t)i, 1, 0, OK);
    }
    CHECK_EQ(SPANS_MAX, s.count);
    CHECK_EQ(3, s.dropped);
    CHECK_EQ(SPANS_MAX - 1, s.items[SPANS_MAX - 1].start_ns);
}

static void claim_names(void) {
    for (int i = 0; i < SPAN_STEPS_COUNT; i++) {
        for (int other = 0; other < i; other++) {
            CHECK(strcmp(span_step_name((enum span_step)i),
                         span_step_name((enum span_step)other)) != 0);
        }
        CHECK(span_step_place((enum span_step)i) != NULL);
    }
    CHECK_STR("key_fetch", span_step_name(SPAN_KEY_FETCH));
    CHECK_STR("network", span_step_place(SPAN_FETCH));
    CHECK_STR("", span_step_place(SPAN_MSM_H));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a story has starts, lengths, bytes and outcomes", claim_story},
        {"a list that is full counts what it drops", claim_limit},
        {"steps have names and places of their own", claim_names},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
