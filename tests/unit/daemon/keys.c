/* Keys where lanes compute: kept, dropped, loaded again. */
#include <stdio.h>
#include <stdlib.h>

#include "node/base/clock.h"
#include "node/base/log.h"
#include "node/daemon/lane_threads.h"
#include "tests/unit/daemon/fleet.h"

#define SECOND UINT64_C(1000000000)
static const char MUL[] = "bn128/mul";

static bool is_loaded(void *ctx) {
    const struct fleet_lane *l = ctx;
    struct key_speed speeds[4];
    size_t count = keycache_speeds(speeds, COUNT_OF(speeds), l->lane->keycache);
    return count == 1 && speeds[0].resident;
}

/* Before there is a job for it; a digest that names no key is told and does no harm. */
static void claim_kept_key(void) {
    struct fleet *f = fleet_new(1);
    char keep[300], hex[SHA256_HEX_BYTES];
    struct key_speed speed = {0};
    fleet_prove(f, "first", MUL);
    CHECK_EQ(1, keycache_speeds(&speed, 1, f->lanes[0].lane->keycache));
    sha256_hex(hex, &speed.digest);
    snprintf(keep, sizeof keep, "%s,nonsense,%064d", hex, 7);
    f->keep = keep;
    fleet_start_lane(f, 1);
    wait_until(is_loaded, &f->lanes[1], "the second lane has loaded the key that it keeps");
    fleet_stop_lane(f, 0);
    fleet_prove(f, "second", MUL);
    fleet_free(&f);
}

struct reload {
    struct fleet_lane *lane;
    uint64_t version; /* before */
};

/* Dropped and loaded: two changes. */
static bool is_loaded_again(void *ctx) {
    const struct reload *r = ctx;
    return keycache_version(r->lane->lane->keycache) >= r->version + 2 && is_loaded(r->lane);
}

static struct reload before(struct fleet_lane *l) {
    return (struct reload){l, keycache_version(l->lane->keycache)};
}

/* One strike or three, which take somebody to look at the device: no job asks for the key. */
static void claim_kept_after_strikes(void) {
    struct fleet *f = fleet_new(1);
    char keep[SHA256_HEX_BYTES];
    struct key_speed speed = {0};
    fleet_prove(f, "first", MUL);
    CHECK_EQ(1, keycache_speeds(&speed, 1, f->lanes[0].lane->keycache));
    sha256_hex(keep, &speed.digest);
    f->keep = keep;
    for (unsigned copies = 0; copies < 2; copies++) { /* the device thread loads; stage threads */
        struct fleet_lane *l = &f->lanes[1 + copies];
        struct lane_job job = {.name = {.tenant = "t", .job = "j"},
                               .fault = {.code = E_DEVICE, .detail = "test"}};
        f->copies = copies;
        fleet_start_lane(f, 1 + copies);
        wait_until(is_loaded, l, "the lane has loaded the key that it keeps");
        for (int strikes = 1; strikes < 3; strikes++) {
            struct reload r = before(l);
            lane_strike(l->lane, &job);
            wait_until(is_loaded_again, &r, "the key is loaded again after a strike");
        }
        struct reload r = before(l);
        lane_strike(l->lane, &job);
        CHECK_EQ(LANE_FENCED, lane_ended(l->lane));
        clock_sleep_ns(SECOND / 5);
        CHECK(!is_loaded_again(&r)); /* nobody has looked at the device yet */
        CHECK_OK(lane_resume(l->lane));
        wait_until(is_loaded_again, &r, "the key is loaded again after the lane was resumed");
    }
    fleet_free(&f);
}

static void claim_resume_keeps_keys(void) {
    struct fleet *f = fleet_new(1);
    struct lane *lane = f->lanes[0].lane;
    fleet_prove(f, "a", MUL);
    uint64_t version = keycache_version(lane->keycache);
    lane_drain(lane, 0, "test");
    CHECK_OK(lane_resume(lane));
    fleet_prove(f, "b", MUL);
    CHECK_EQ(version, keycache_version(lane->keycache));
    fleet_free(&f);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a key that is kept is loaded before there is a job for it", claim_kept_key},
        {"and again after strikes, with no job that asks for it", claim_kept_after_strikes},
        {"a lane that was drained and is resumed goes on with the keys that it has loaded",
         claim_resume_keeps_keys},
    };
    log_setup(getenv("BELLOWS_TEST_LOG") ? LOG_DEBUG : (enum log_level)(LOG_ERROR + 1), 0);
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
