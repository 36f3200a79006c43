/* One leads, the others stand by. */
#include "node/coordinator/lead.h"

#include "node/base/clock.h"
#include "node/transport/loopback.h"
#include "tests/check/check.h"

#define SECOND UINT64_C(1000000000)

struct scene {
    struct loopback *broker;
    struct transport *links[2];
    struct lead *leads[2];
    struct subject_space space;
};

static void scene_open(struct scene *s) {
    *s = (struct scene){0};
    CHECK_OK(subject_space_init(&s->space, NULL));
    CHECK_OK(loopback_open(&s->broker));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(loopback_connect(&s->links[i], s->broker, NULL));
    }
    CHECK_OK(fleet_ensure(s->links[0], &s->space, &(struct fleet_options){.lease_ttl_ns = SECOND}));
}

static void scene_close(struct scene *s) {
    for (int i = 0; i < 2; i++) {
        lead_close(&s->leads[i]);
        transport_close(&s->links[i]);
    }
    loopback_close(&s->broker);
}

static bool becomes(const struct lead *l, bool held, uint64_t within_ns) {
    for (uint64_t start_ns = clock_ns(); clock_ns() - start_ns < within_ns;
         clock_sleep_ns(SECOND / 200)) {
        if (lead_is_held(l) == held) {
            return true;
        }
    }
    return false;
}

static void start(struct scene *s, int idx, const char *name) {
    CHECK_OK(lead_open(&s->leads[idx], s->links[idx], &s->space, name, SECOND));
}

static void claim_one_leads(void) {
    struct scene s;
    scene_open(&s);
    start(&s, 0, "a");
    CHECK(becomes(s.leads[0], true, SECOND));
    start(&s, 1, "b");
    clock_sleep_ns(2 * SECOND); /* renewed all the time */
    CHECK(lead_is_held(s.leads[0]));
    CHECK(!lead_is_held(s.leads[1]));
    CHECK_EQ(1, lead_term(s.leads[0]));
    lead_close(&s.leads[0]); /* given up, not waited for */
    CHECK(becomes(s.leads[1], true, SECOND / 2));
    scene_close(&s);
}

static void claim_cut_off_leader_steps_down_first(void) {
    struct scene s;
    scene_open(&s);
    start(&s, 0, "a");
    CHECK(becomes(s.leads[0], true, SECOND));
    start(&s, 1, "b");
    loopback_partition(s.links[0], true);
    for (uint64_t start_ns = clock_ns(); clock_ns() - start_ns < 3 * SECOND;
         clock_sleep_ns(SECOND / 500)) {
        CHECK(!(lead_is_held(s.leads[0]) && lead_is_held(s.leads[1]))); /* never both */
        if (lead_is_held(s.leads[1])) {
            break;
        }
    }
    CHECK(lead_is_held(s.leads[1]));
    CHECK(!lead_is_held(s.leads[0]));
    loopback_partition(s.links[0], false);
    clock_sleep_ns(SECOND);
    CHECK(!lead_is_held(s.leads[0])); /* it does not take it back */
    scene_close(&s);
}

/* A renewal that was stored without its answer: the revision is another one, the lease still ours. */
static void claim_own_lease_is_known_again(void) {
    struct scene s;
    scene_open(&s);
    start(&s, 0, "a");
    CHECK(becomes(s.leads[0], true, SECOND));
    struct subject bucket = kv_bucket_name(&s.space, "lead");
    struct kv_entry entry;
    uint64_t revision;
    bool found = false;
    CHECK_OK(kv_get(&entry, &found, s.links[1], bucket.text, "leader"));
    CHECK(found);
    CHECK_OK(kv_put(&revision, s.links[1], bucket.text, "leader", entry.value));
    kv_entry_done(&entry);
    for (uint64_t start_ns = clock_ns(); clock_ns() - start_ns < 2 * SECOND;
         clock_sleep_ns(SECOND / 500)) {
        CHECK(lead_is_held(s.leads[0]));
    }
    CHECK_EQ(1, lead_term(s.leads[0]));
    scene_close(&s);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"one leads, and hands over when it ends", claim_one_leads},
        {"a leader that is cut off steps down before another one leads",
         claim_cut_off_leader_steps_down_first},
        {"a leader whose renewal was stored unanswered goes on", claim_own_lease_is_known_again},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
