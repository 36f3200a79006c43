/* What dashboards hear: the first byte chooses the subject, the rest is the message. Whatever it says, the picture stays within its bounds. */
#include "node/cli/fleet_watch.h"
#include "tests/fuzz/targets.h"

#include <string.h>

void fuzz_telemetry(struct bytes input) {
    static const char *const subjects[] = {"bellows.tel.w.0.device", "bellows.tel.w.0.lane",
                                           "bellows.tel.w.1.keys",   "bellows.tel.w.0.span",
                                           "bellows.tel.w.1.error",  "bellows.tel.fleet",
                                           "bellows.evt.t.j.done"};
    struct subject_space space;
    struct watch picture;
    char bar[65];
    if (input.len == 0) {
        return;
    }
    ASSERT(subject_space_init(&space, NULL) == OK);
    ASSERT(watch_picture_init(&picture) == OK);
    const char *subject = subjects[input.ptr[0] % COUNT_OF(subjects)];
    for (int n = 0; n < 2; n++) { /* from the past; then heard, upon what that left */
        picture.listens = n == 1;
        (void)watch_hear(&picture, &space, subject, bytes_of(input.ptr + 1, input.len - 1));
    }
    for (size_t i = 0; i < picture.lanes_count; i++) {
        const struct watch_lane *lane = &picture.lanes[i];
        struct watch_minute minute = watch_minute_of(lane);
        watch_bar(bar, sizeof bar - 1, &minute);
        ASSERT(strlen(bar) == sizeof bar - 1);
        ASSERT(lane->hand_count <= WATCH_HAND_MAX && lane->samples_count <= WATCH_SAMPLES_MAX);
        for (const char *p = lane->device; *p; p++) {
            ASSERT(*p >= ' ' && *p < 0x7f);
        }
    }
    ASSERT(picture.jobs_count <= 1 && picture.fleet.queues_count <= WATCH_QUEUES_MAX);
    watch_picture_done(&picture);
}
