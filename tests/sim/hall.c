/* Lanes open and close side by side, as each takes some round trips: WORKERS threads go through them.
 *
 * A thousand lanes are nine thousand threads, nearly all of them asleep on a lock's condition. Kernels since 6.16 keep the sleepers of a
 * process in a table of its own, by default so small that each wake-up looks through hundreds of strangers: most of a core
 * went there. The table is made large enough; older kernels do not know the call, nor the need. The processor time of a process is
 * the sum over its threads, too: a lane asks for its own each second, which here would be a thousand sums over thousands. So
 * clock_cpu_ns is linked away (--wrap): what these lanes say of their processor time is nought.
 */
#include "tests/sim/hall.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/daemon/lane.h"

enum {
    WORKERS = 16,
    OPEN_TRIES = 30,
    LANES_PER_CONTROL = 25,
    LANES_PER_BULK = 100,
    LINKS_MAX = 256
};
static const uint64_t OPEN_PAUSE_NS = UINT64_C(300000000);
static const uint64_t LANE_MEMORY_BYTES = UINT64_C(64) << 20;

struct place {              /* of one lane */
    struct backend *prover; /* owned */
    struct lane *lane;      /* owned */
    struct fault fault;
    unsigned starts;
};
struct hall {
    struct hall_options options;
    char cache[512];
    struct transport *links[LINKS_MAX]; /* owned */
    unsigned links_count, controls_count;
    struct place *places; /* owned */
    unsigned restarts;
    _Atomic unsigned next; /* place to be worked on */
};

static struct lane_links links_of(const struct hall *h, unsigned idx) {
    const struct hall_options *o = &h->options;
    unsigned others = (h->links_count - h->controls_count) / 2;
    unsigned bulk = idx * others / o->lanes_count;
    return (struct lane_links){.control = h->links[idx * h->controls_count / o->lanes_count],
                               .telemetry = h->links[h->controls_count + others + bulk],
                               .bulk = {{h->links[h->controls_count + bulk]}, 1}};
}

static enum err open_lane(struct hall *h, unsigned idx) {
    const struct hall_options *o = &h->options;
    struct place *p = &h->places[idx];
    char node[16], session[NUID_BYTES];
    struct lane_links links = links_of(h, idx);
    snprintf(node, sizeof node, "n%03u", idx / o->lanes_per_node);
    transport_nuid(session);
    struct lane_config config = {.node = node,
                                 .gpu = idx % o->lanes_per_node,
                                 .session = session,
                                 .cache_dir = h->cache,
                                 .memory_bytes = LANE_MEMORY_BYTES,
                                 .allow_insecure_keys = true,
                                 .threads = 1};
    uint64_t seed = o->seed ^ (uint64_t)idx << 32 ^ p->starts++;
    TRY(sim_prover_open(&p->prover, o->model, o->counts, seed));
    return lane_open(&p->lane, &config, &links, p->prover);
}

static void close_lane(struct place *p) {
    lane_close(&p->lane);
    backend_close(&p->prover);
}

/* Tries again while the server is too busy to answer, as a lane's process does. */
static enum err open_patiently(struct hall *h, unsigned idx) {
    for (int n = 1;; n++) {
        enum err code = open_lane(h, idx);
        if ((code != E_NET && code != E_TIMEOUT) || n == OPEN_TRIES) {
            return code;
        }
        close_lane(&h->places[idx]);
        clock_sleep_ns(OPEN_PAUSE_NS);
    }
}

static void *open_main(void *ctx) {
    struct hall *h = ctx;
    for (unsigned i; (i = atomic_fetch_add(&h->next, 1)) < h->options.lanes_count;) {
        h->places[i].fault = fault_of(open_patiently(h, i));
    }
    return NULL;
}

static void *close_main(void *ctx) {
    struct hall *h = ctx;
    for (unsigned i; (i = atomic_fetch_add(&h->next, 1)) < h->options.lanes_count;) {
        close_lane(&h->places[i]);
    }
    return NULL;
}

static void for_all(struct hall *h, void *(*work)(void *)) {
    pthread_t threads[WORKERS];
    unsigned count = 0;
    atomic_store(&h->next, 0);
    while (count < WORKERS && pthread_create(&threads[count], NULL, work, h) == 0) {
        count++;
    }
    work(h);
    while (count > 0) {
        pthread_join(threads[--count], NULL);
    }
}

static enum err open_links(struct hall *h) {
    unsigned lanes = h->options.lanes_count;
    unsigned bulks = (lanes + LANES_PER_BULK - 1) / LANES_PER_BULK;
    h->controls_count = (lanes + LANES_PER_CONTROL - 1) / LANES_PER_CONTROL;
    unsigned all = h->controls_count + 2 * bulks;
    REQUIRE(all <= LINKS_MAX, E_LIMIT, "%u lanes need %u connections, at most %d", lanes, all,
            LINKS_MAX);
    for (; h->links_count < all; h->links_count++) {
        struct transport_options options = {.url = h->options.url,
                                            .name = "simulated lanes",
                                            .send_asap = h->links_count < h->controls_count};
        TRY(transport_open(&h->links[h->links_count], &options));
    }
    return OK;
}

uint64_t __wrap_clock_cpu_ns(void);
uint64_t __wrap_clock_cpu_ns(void) {
    return 0;
}

/* Each lane's staging asks for huge pages, and a few hundred bytes in it would make the kernel clear one: 2 GB for a thousand lanes. */
static void take_small_pages(void) {
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

static void make_room_for_sleepers(void) {
    enum { FUTEX_HASH = 78, SET_SLOTS = 1, SLOTS = 16384 }; /* of linux/prctl.h, since 6.16 */
    prctl(FUTEX_HASH, SET_SLOTS, SLOTS, 0, 0);
}

enum err hall_open(struct hall **out, const struct hall_options *options) {
    AUTO(hall_close) struct hall *h = NULL;
    TRY(mem_new(&h, 1, sizeof *h));
    h->options = *options;
    snprintf(h->cache, sizeof h->cache, "%s/cache", options->dir);
    TRY(mem_new(&h->places, options->lanes_count, sizeof *h->places));
    make_room_for_sleepers();
    take_small_pages();
    TRY(open_links(h));
    for_all(h, open_main);
    for (unsigned i = 0; i < options->lanes_count; i++) {
        if (h->places[i].fault.code != OK) {
            return fault_raise(&h->places[i].fault);
        }
    }
    *out = TAKE(h);
    return OK;
}

unsigned hall_step(struct hall *h) {
    for (unsigned i = 0; i < h->options.lanes_count; i++) {
        struct place *p = &h->places[i];
        if (p->lane && lane_ended(p->lane) == LANE_GOES_ON) {
            continue;
        }
        close_lane(p);
        h->restarts++;
        IGNORE(open_lane(h, i)); /* else at the next step */
    }
    return h->restarts;
}

void hall_close(struct hall **hall) {
    struct hall *h = *hall;
    if (!h) {
        return;
    }
    atomic_store(&h->options.counts->hurry, true);
    if (h->places) {
        for_all(h, close_main);
    }
    mem_free(h->places);
    for (unsigned i = 0; i < h->links_count; i++) {
        transport_close(&h->links[i]);
    }
    mem_free_ptr(hall);
}
