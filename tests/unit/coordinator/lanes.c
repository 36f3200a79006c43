/* What heartbeats and directory entries make of a lane. */
#include "node/coordinator/lanes.h"

#include <string.h>

#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"
#include "tests/check/check.h"

#define MS      UINT64_C(1000000)
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
    struct estimates e;
    CHECK_OK(estimates_init(&e));
    CHECK_OK(lanes_init(&l, &e));
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
    estimates_done(&e);
}

static void claim_silence(void) {
    struct lanes l;
    struct estimates e;
    CHECK_OK(estimates_init(&e));
    CHECK_OK(lanes_init(&l, &e));
    hear(&l, "one", READY, 0, 1000);
    CHECK_EQ(SIZE_MAX, lanes_next_silent(&l, 1000, 500));
    CHECK_EQ(SIZE_MAX, lanes_next_silent(&l, 1500, 500));
    CHECK_EQ(0, lanes_next_silent(&l, 1501, 500));
    CHECK_EQ(SIZE_MAX, lanes_next_silent(&l, 1501, 500)); /* told once */
    CHECK(!l.views[0].alive && l.views[0].silent);
    CHECK_EQ(LANE_NEWS_CAME, hear(&l, "one", READY, 0, 1600)); /* it was only cut off */
    CHECK(l.views[0].alive && !l.views[0].silent);
    lanes_excuse(&l, 9000);
    CHECK_EQ(SIZE_MAX, lanes_next_silent(&l, 9400, 500));
    lanes_done(&l);
    estimates_done(&e);
}

static void claim_empty_since(void) {
    struct lanes l;
    struct estimates e;
    CHECK_OK(estimates_init(&e));
    CHECK_OK(lanes_init(&l, &e));
    hear(&l, "one", READY, 0, 10);
    hear(&l, "one", READY, 0, 20);
    CHECK_EQ(10, l.views[0].empty_since_ns);
    hear(&l, "one", READY, 2, 30);
    CHECK_EQ(0, l.views[0].empty_since_ns);
    hear(&l, "one", READY, 0, 40);
    CHECK_EQ(40, l.views[0].empty_since_ns);
    lanes_done(&l);
    estimates_done(&e);
}

static bool hopeful;

static void tell(struct lanes *l, const char *node, const char *device, struct sha256 *key,
                 uint64_t prove_ns, uint64_t load_ns, bool resident, bool cached) {
    Bellows__V1__LaneInfo m = BELLOWS__V1__LANE_INFO__INIT;
    Bellows__V1__KeySpeed speed = BELLOWS__V1__KEY_SPEED__INIT, *speeds[] = {&speed};
    ProtobufCBinaryData digest = {SHA256_BYTES, key->b};
    struct bytes_mut packed;
    size_t idx;
    m.version = WIRE_VERSION;
    m.node = (char *)(uintptr_t)node;
    m.device = (char *)(uintptr_t)device;
    m.depth_max = 7;
    m.state = READY;
    m.session = (char *)(uintptr_t) "told";
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
    CHECK_OK(lanes_read_info(&idx, l, bytes_of(packed.ptr, packed.len), 1, hopeful));
    mem_free(packed.ptr);
}

static struct schedule_cost cost(struct lanes *l, size_t lane_idx, const struct sha256 *key) {
    uint32_t key_idx;
    CHECK_OK(estimates_key(&key_idx, l->estimates, key));
    return lanes_cost(l, lane_idx, key_idx, 1);
}

static void claim_costs(void) {
    struct lanes l;
    struct estimates e;
    struct sha256 key = {{1}}, other = {{2}}, unknown = {{9}};
    CHECK_OK(estimates_init(&e));
    CHECK_OK(lanes_init(&l, &e));
    tell(&l, "a", "fast", &key, 100 * MS, 5000 * MS, true, true);
    tell(&l, "b", "slow", &other, MS, MS, true, true);
    CHECK_EQ(7, l.views[0].depth_wanted);
    CHECK(!l.views[0].alive); /* an entry is no sign of life */
    CHECK_EQ(100 * MS, cost(&l, 0, &key).job_ns);
    CHECK_EQ(0, cost(&l, 0, &key).load_ns);
    CHECK_EQ(100 * MS, cost(&l, 1, &key).job_ns); /* learnt from the other kind of device */
    CHECK(cost(&l, 1, &key).load_ns > 5000 * MS); /* and to be fetched first */
    tell(&l, "b", "slow", &key, 300 * MS, 0, false, true);
    CHECK_EQ(300 * MS, cost(&l, 1, &key).job_ns);
    CHECK_EQ(5000 * MS, cost(&l, 1, &key).load_ns);
    tell(&l, "c", "slow", &other, MS, MS, true, true);
    CHECK_EQ(300 * MS, cost(&l, 2, &key).job_ns); /* of its kind */
    CHECK_EQ(0, cost(&l, 2, &key).slack_ns);
    uint32_t key_idx;
    CHECK_OK(estimates_key(&key_idx, &e, &key));
    estimates_learn_job(&e, key_idx, l.views[2].device_idx, 400 * MS);
    CHECK_EQ(400 * MS, cost(&l, 2, &key).job_ns); /* as it comes out, all waits included */
    CHECK_EQ(100 * MS, cost(&l, 2, &key).slack_ns);
    CHECK(cost(&l, 0, &unknown).job_ns > 0 && cost(&l, 0, &unknown).load_ns > 0);
    CHECK_OK(estimates_key(&key_idx, &e, &unknown));
    e.keys[key_idx].guess_ns = 1000; /* by its size: so little is not believed before it was seen */
    CHECK_EQ(250 * MS, cost(&l, 0, &unknown).job_ns);
    e.keys[key_idx].guess_ns = 3000 * MS;
    CHECK_EQ(3000 * MS, cost(&l, 0, &unknown).job_ns);
    estimates_learn_job(&e, key_idx, l.views[0].device_idx, 2 * MS);
    CHECK_EQ(2 * MS, cost(&l, 0, &unknown).job_ns);
    lanes_done(&l);
    estimates_done(&e);
}

/* Right after a take-over an entry stands for the beat that is still to come. */
static void claim_hope(void) {
    struct lanes l;
    struct estimates e;
    struct sha256 key = {{1}};
    CHECK_OK(estimates_init(&e));
    CHECK_OK(lanes_init(&l, &e));
    hopeful = true;
    tell(&l, "w", "cpu", &key, MS, MS, true, true);
    hopeful = false;
    CHECK(l.views[0].alive && l.views[0].open);
    CHECK_EQ(LANE_NEWS_NONE, hear(&l, "told", READY, 1, 20)); /* the same process */
    CHECK_EQ(LANE_NEWS_REBORN, hear(&l, "other", READY, 1, 30));
    hopeful = true;
    tell(&l, "w", "cpu", &key, MS, MS, true, true); /* who was heard needs no hope */
    hopeful = false;
    CHECK_STR("other", l.views[0].session);
    lanes_done(&l);
    estimates_done(&e);
}

static void claim_placed_keys_are_loaded_once(void) {
    struct lanes l;
    struct estimates e;
    struct sha256 key = {{1}};
    uint32_t key_idx;
    CHECK_OK(estimates_init(&e));
    CHECK_OK(lanes_init(&l, &e));
    CHECK_OK(estimates_key(&key_idx, &e, &key));
    tell(&l, "a", "cpu", &(struct sha256){{2}}, MS, MS, true, true);
    CHECK(cost(&l, 0, &key).load_ns > 0);
    lanes_hold_key(&l, 0, key_idx);
    CHECK_EQ(0, cost(&l, 0, &key).load_ns); /* it will be there */
    tell(&l, "a", "cpu", &(struct sha256){{2}}, MS, MS, true, true);
    CHECK_EQ(0, cost(&l, 0, &key).load_ns); /* an entry from before changes nothing */
    lanes_release_key(&l, 0, key_idx, false);
    CHECK(cost(&l, 0, &key).load_ns > 0); /* taken back: it never came */
    lanes_hold_key(&l, 0, key_idx);
    lanes_release_key(&l, 0, key_idx, true);
    CHECK_EQ(0, cost(&l, 0, &key).load_ns);
    tell(&l, "a", "cpu", &(struct sha256){{2}}, MS, MS, true, true);
    CHECK(cost(&l, 0, &key).load_ns > 0); /* pushed out, says the lane */
    lanes_done(&l);
    estimates_done(&e);
}

static void claim_many_lanes(void) {
    struct lanes l;
    struct estimates e;
    struct lane_ref ref = {.node = "w"};
    size_t idx;
    CHECK_OK(estimates_init(&e));
    CHECK_OK(lanes_init(&l, &e));
    for (ref.gpu = 0; ref.gpu < LANES_MAX; ref.gpu++) {
        CHECK_OK(lanes_add(&idx, &l, &ref));
        l.views[idx].seen_ns = 1000 + ref.gpu;
        l.views[idx].alive = ref.gpu != 7;
    }
    for (ref.gpu = 0; ref.gpu < LANES_MAX; ref.gpu++) {
        CHECK_EQ(ref.gpu, lanes_find(&l, &ref));
    }
    CHECK_OK(lanes_add(&idx, &l, &ref)); /* one more: the dead one makes room */
    CHECK_EQ(7, idx);
    CHECK_EQ(7, lanes_find(&l, &ref));
    CHECK_EQ(SIZE_MAX, lanes_find(&l, &(struct lane_ref){"w", 7}));
    l.views[idx].alive = true;
    ref.gpu++;
    CHECK_ERR(E_LIMIT, lanes_add(&idx, &l, &ref));
    lanes_done(&l);
    estimates_done(&e);
}

static void claim_many_keys(void) {
    struct estimates e;
    uint32_t idx, first;
    struct sha256 key = {{0}};
    CHECK_OK(estimates_init(&e));
    for (uint32_t i = 0; i < KEYS_KNOWN_MAX; i++) {
        memcpy(key.b, &i, sizeof i);
        CHECK_OK(estimates_key(&idx, &e, &key));
        CHECK_EQ(i, idx);
        estimates_key_ref(&e, idx);
    }
    uint32_t more = KEYS_KNOWN_MAX;
    memcpy(key.b, &more, sizeof more);
    CHECK_ERR(E_LIMIT, estimates_key(&idx, &e, &key));
    estimates_learn_job(&e, 5, 0, 77 * MS);
    estimates_key_unref(&e, 5);
    CHECK_OK(estimates_key(&idx, &e, &key)); /* who has no users makes room, and leaves nothing */
    CHECK_EQ(5, idx);
    CHECK(estimates_job_ns(&e, 5, 0) != 77 * MS);
    first = 0;
    memcpy(key.b, &first, sizeof first);
    CHECK_OK(estimates_key(&idx, &e, &key));
    CHECK_EQ(0, idx);
    estimates_done(&e);
}

static void claim_unreadable(void) {
    struct lanes l;
    struct estimates e;
    enum lane_news news = LANE_NEWS_DIED;
    size_t idx = 5;
    CHECK_OK(estimates_init(&e));
    CHECK_OK(lanes_init(&l, &e));
    CHECK_ERR(E_FORMAT, lanes_hear(&news, &idx, &l, bytes_of("\xff\xff", 2), 1));
    CHECK_ERR(E_FORMAT, lanes_read_info(&idx, &l, bytes_of("\xff\xff", 2), 1, true));
    CHECK_EQ(0, l.count);
    lanes_done(&l);
    estimates_done(&e);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a lane comes, leaves, dies and is reborn", claim_life},
        {"a silent lane is noticed once, and excused after a disconnection", claim_silence},
        {"how long a lane has been empty", claim_empty_since},
        {"costs are learnt here, elsewhere, or guessed", claim_costs},
        {"an entry stands for a beat after a take-over", claim_hope},
        {"a key that work was placed under is loaded once", claim_placed_keys_are_loaded_once},
        {"thousands of lanes are found; the dead make room", claim_many_lanes},
        {"keys without users make room for new ones", claim_many_keys},
        {"unreadable messages change nothing", claim_unreadable},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
