/* Straight down: signals, backend, connections, lane, wait, drain. While the streams are not there yet (no coordinator has made
 * them) it tries again and says so once.
 */
#include "node/daemon/lane_process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/log.h"
#include "node/daemon/backends.h"
#include "node/daemon/child.h"
#include "node/daemon/links.h"

static const uint64_t LOOK_NS = UINT64_C(50000000);
static const uint64_t GIVE_UP_NS = UINT64_C(5000000000); /* after the grace of a drain */
static const uint64_t RETRY_NS = UINT64_C(300000000);

/* One connection brings 0.5 to 1 GB/s, a device may want several. */
enum { OTHER_LINKS = 2, DEVICE_CONNECTIONS = 4 };

static int say(enum err code, const char *event) {
    char quoted[ERR_DETAIL_BYTES + 64];
    log_error(event, "error=%s detail=%s", err_name(code),
              log_quote(quoted, sizeof quoted, err_detail()));
    return err_exit_code(code);
}

struct process {
    struct metric_block *metrics; /* owned: mapped */
    struct links *links;          /* owned */
    struct backend *backend;      /* owned */
    struct lane *lane;            /* owned */
    unsigned bulk_count;
};

static void process_done(struct process *p) {
    lane_close(&p->lane);
    backend_close(&p->backend);
    links_close(&p->links);
    metric_block_unmap(&p->metrics);
}

static enum err open_links(struct process *p, const struct lane_process_config *c,
                           const sigset_t *set) {
    struct link_patience patience = {.set = set, .parent = c->parent};
    struct link_wish wishes[LINKS_MAX] = {{.purpose = "control"},
                                          {.purpose = "telemetry", .coalesces = true}};
    char who[ID_BYTES_MAX + 24];
    p->bulk_count = c->connections                   ? c->connections
                    : p->backend->ops->bring != NULL ? DEVICE_CONNECTIONS
                                                     : 1;
    for (unsigned i = 0; i < p->bulk_count; i++) {
        wishes[OTHER_LINKS + i] = (struct link_wish){.purpose = "bulk"};
    }
    snprintf(who, sizeof who, "lane %s.%u", c->lane.node, c->lane.gpu);
    return links_open(&p->links, &c->transport, who, wishes, OTHER_LINKS + p->bulk_count,
                      &patience);
}

static int signal_seen(const sigset_t *set, uint64_t wait_ns) {
    struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
    int number = sigtimedwait(set, NULL, &wait);
    return number > 0 ? number : 0;
}

/* Until the lane is open, a signal comes, or it can never be opened. */
static enum err open_lane(struct process *p, const struct lane_process_config *c,
                          const sigset_t *set) {
    struct lane_links links = {.control = links_get(p->links, 0),
                               .telemetry = links_get(p->links, 1),
                               .bulk.count = p->bulk_count};
    bool said = false;
    for (unsigned i = 0; i < p->bulk_count; i++) {
        links.bulk.links[i] = links_get(p->links, OTHER_LINKS + i);
    }
    for (;;) {
        struct lane_config lane = c->lane;
        lane.metrics = p->metrics;
        enum err code = lane_open(&p->lane, &lane, &links, p->backend);
        bool again = code == E_NET || code == E_TIMEOUT;
        if (!again) {
            return code;
        }
        if (!said) {
            char quoted[ERR_DETAIL_BYTES + 64];
            log_warn("lane.waits", "detail=%s", log_quote(quoted, sizeof quoted, err_detail()));
            said = true;
        }
        REQUIRE(!signal_seen(set, RETRY_NS) && !child_is_orphan(c->parent), E_CANCELLED,
                "ended while it waited for the fleet");
    }
}

static int run_until_end(struct process *p, const struct lane_process_config *c,
                         const sigset_t *set) {
    bool draining = false;
    uint64_t limit_ns = UINT64_MAX;
    for (;;) {
        enum lane_end end = lane_ended(p->lane);
        if (end == LANE_STALLED) {
            _exit(LANE_EXIT_LOST); /* its prover cannot be joined */
        }
        if ((draining || end == LANE_DEVICE_LOST) && lane_is_empty(p->lane)) {
            return end == LANE_DEVICE_LOST ? LANE_EXIT_LOST : 0;
        }
        if (links_lost(p->links)) {
            return err_exit_code(E_NET); /* what it holds is taken back when it is missed */
        }
        if (clock_ns() >
            limit_ns) { /* the server is away, or a key takes long: what it holds is taken back */
            log_warn("lane.abandons", "after_ns=%llu", (unsigned long long)GIVE_UP_NS);
            _exit(LANE_EXIT_LOST);
        }
        int number = signal_seen(set, LOOK_NS);
        if (number || (!draining && child_is_orphan(c->parent))) {
            log_info("lane.drains", "signal=%d", number);
            uint64_t grace_ns = draining ? 0 : c->drain_ns; /* a second signal: at once */
            lane_leave(p->lane, grace_ns);
            limit_ns = clock_ns() + grace_ns + GIVE_UP_NS;
            draining = true;
        }
    }
}

int lane_process_run(const struct lane_process_config *config) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    AUTO(process_done) struct process p = {0};
    struct backend_choice choice;
    enum err code = backends_open(&p.backend, &choice, &config->backend);
    if (code != OK) {
        return say(code, "backend.failed");
    }
    log_info("backend.opened", "backend=%s device=\"%s\"", p.backend->ops->name, choice.why);
    if (config->metrics_fd >= 0) {
        code = metric_block_map(&p.metrics, config->metrics_fd);
    }
    if (code == OK) {
        code = open_links(&p, config, &set);
    }
    if (code == OK) {
        code = open_lane(&p, config, &set);
    }
    if (code != OK) {
        return code == E_CANCELLED ? 0 : say(code, "lane.failed");
    }
    log_info("lane.opened", "session=%s", config->lane.session);
    int exit_code = run_until_end(&p, config, &set);
    struct lane_counts counts = lane_counts_of(p.lane);
    log_info("lane.closed", "done=%llu failed=%llu given_back=%llu stale=%llu exit_code=%d",
             (unsigned long long)counts.done, (unsigned long long)counts.failed,
             (unsigned long long)counts.given_back, (unsigned long long)counts.stale, exit_code);
    return exit_code;
}
