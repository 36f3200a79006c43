/* What heartbeats and directory entries make of a lane. */
#include "node/coordinator/lanes.h"

#include <string.h>

#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"
#include "tests/check/check.h"

#define READY   BELLOWS__V1__LANE_STATE__LANE_READY
#define DRAINS  BELLOWS__V1__LANE_STATE__LANE_DRAINING
#define STOPPED BELLOWS__V1__LANE_STATE__LANE_STOPPED
#define FENCED  BELLOWS__V1__LANE_STATE__LANE_FENCED

static enum lane_news hear(struct lanes *l, const char *session, Bellows__V1__LaneState state,
                           uint32_t depth, uint64_t now_ns) {
    Bellows__V1__Heartbeat m = BELLOWS__V1__HEARTBEAT__INIT;
    struct bytes_mut packed;
    enum lane_news news = LANE_NEWS_NONE;
    size_t idx = 99;
    m.version = WIRE_VERSION;
    m.node = (char *)(uintptr_t) "w";
    m.session = (char *)(uintptr_t)session;
    m.state = state;
    m.depth = depth;
    CHECK_OK(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "heartbeat"));
    CHECK_OK(lanes_hear(&news, &idx, l, bytes_of(packed.ptr, packed.len), now_ns));
    CHECK_EQ(0, idx);
    mem_free(packed.ptr);
    return news;
}

static void claim_life(void) {
    struct lanes l;
    CHECK_OK(lanes_init(&l));
    CHECK_EQ(LANE_NEWS_CAME, hear(&l, "one", READY, 0, 10));
    CHECK_EQ(LANE_NEWS_NONE, hear(&l, "one", READY, 1, 20));
    CHECK(l.views[0].open && l.views[0].alive);
    CHECK_EQ(LANE_NEWS_LEAVING, hear(&l, "one", DRAINS, 1, 30));
    CHECK(!l.views[0].open && l.views[0].alive);
    CHECK_EQ(LANE_NEWS_NONE, hear(&l, "one", DRAINS, 1, 40));
    CHECK_EQ(LANE_NEWS_DIED, hear(&l, "one", STOPPED, 0, 50));
    CHECK(!l.views[0].open && !l.views[0].alive);
    CHECK_EQ(LANE_NEWS_NONE,
             hear(&l, "one", STOPPED, 0, 55)); /* said twice: by the lane and its supervisor */
    CHECK_EQ(LANE_NEWS_REBORN, hear(&l, "two", READY, 0, 60));
    CHECK_EQ(LANE_NEWS_NONE, hear(&l, "one", STOPPED, 0,
                                  70)); /* the old one's last words do not touch the new one */
    CHECK_EQ(LANE_NEWS_GHOST, hear(&l, "one", READY, 0, 75)); /* a second node of that name */
    CHECK_STR("two", l.views[0].session);
    CHECK(l.views[0].open);
    CHECK_EQ(LANE_NEWS_DIED, hear(&l, "two", FENCED, 0, 80));
    lanes_done(&l);
}

static void claim_silence(void) {
    struct lanes l;
    CHECK_OK(lanes_init(&l));
    hear(&l, "one", READY, 0, 1000);
    CHECK_EQ(SIZE_MAX, lanes_next_silent(&l, 1000, 500));
    CHECK_EQ(SIZE_MAX, lanes_next_silent(&l, 1500, 500));
    CHECK_EQ(0, lanes_next_silent(&l, 1501, 500));
    CHECK_EQ(SIZE_MAX, lanes_next_silent(&l, 1501, 500)); /* told once */
    CHECK(!l.views[0].alive);
    CHECK_EQ(LANE_NEWS_CAME, hear(&l, "one", READY, 0, 1600)); /* it was only cut off */
    lanes_excuse(&l, 9000);
    CHECK_EQ(SIZE_MAX, lanes_next_silent(&l, 9400, 500));
    lanes_done(&l);
}

static void claim_empty_since(void) {
    struct lanes l;
    CHECK_OK(lanes_init(&l));
    hear(&l, "one", READY, 0, 10);
    hear(&l, "one", READY, 0, 20);
    CHECK_EQ(10, l.views[0].empty_since_ns);
    hear(&l, "one", READY, 2, 30);
    CHECK_EQ(0, l.views[0].empty_since_ns);
    hear(&l, "one", READY, 0, 40);
    CHECK_EQ(40, l.views[0].empty_since_ns);
    lanes_done(&l);
}

static void tell(struct lanes *l, const char *node, struct sha256 *key, uint64_t prove_ns,
                 uint64_t load_ns, bool resident, bool cached) {
    Bellows__V1__LaneInfo m = BELLOWS__V1__LANE_INFO__INIT;
    Bellows__V1__KeySpeed speed = BELLOWS__V1__KEY_SPEED__INIT, *speeds[] = {&speed};
    ProtobufCBinaryData digest = {SHA256_BYTES, key->b};
    struct bytes_mut packed;
    size_t idx;
    m.version = WIRE_VERSION;
    m.node = (char *)(uintptr_t)node;
    m.depth_max = 7;
    speed.key_digest = digest;
    speed.prove_ns = prove_ns;
    speed.load_ns = load_ns;
    m.n_speeds = 1;
    m.speeds = speeds;
    m.n_keys_resident = resident;
    m.keys_resident = &digest;
    m.n_keys_cached = cached;
    m.keys_cached = &digest;
    CHECK_OK(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "lane entry"));
    CHECK_OK(lanes_read_info(&idx, l, bytes_of(packed.ptr, packed.len), 1));
    mem_free(packed.ptr);
}

static void claim_costs(void) {
    struct lanes l;
    struct sha256 key = {{1}}, other = {{2}};
    CHECK_OK(lanes_init(&l));
    tell(&l, "a", &key, 100, 5000, true, true);
    tell(&l, "b", &other, 1, 1, true, true);
    CHECK_EQ(7, l.views[0].depth_wanted);
    CHECK(!l.views[0].alive); /* an entry is no sign of life */
    CHECK_EQ(100, lanes_cost(&l, 0, &key).job_ns);
    CHECK_EQ(0, lanes_cost(&l, 0, &key).load_ns);
    CHECK_EQ(100, lanes_cost(&l, 1, &key).job_ns); /* learnt from the other lane */
    CHECK(lanes_cost(&l, 1, &key).load_ns > 5000); /* and to be fetched first */
    tell(&l, "b", &key, 300, 0, false, true);
    CHECK_EQ(300, lanes_cost(&l, 1, &key).job_ns);
    CHECK_EQ(5000, lanes_cost(&l, 1, &key).load_ns);
    struct sha256 unknown = {{9}};
    CHECK(lanes_cost(&l, 0, &unknown).job_ns > 0 && lanes_cost(&l, 0, &unknown).load_ns > 0);
    lanes_done(&l);
}

static void claim_unreadable(void) {
    struct lanes l;
    enum lane_news news = LANE_NEWS_DIED;
    size_t idx = 5;
    CHECK_OK(lanes_init(&l));
    CHECK_ERR(E_FORMAT, lanes_hear(&news, &idx, &l, bytes_of("\xff\xff", 2), 1));
    CHECK_ERR(E_FORMAT, lanes_read_info(&idx, &l, bytes_of("\xff\xff", 2), 1));
    CHECK_EQ(0, l.count);
    lanes_done(&l);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a lane comes, leaves, dies and is reborn", claim_life},
        {"a silent lane is noticed once, and excused after a disconnection", claim_silence},
        {"how long a lane has been empty", claim_empty_since},
        {"costs are learnt here, elsewhere, or guessed", claim_costs},
        {"unreadable messages change nothing", claim_unreadable},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
