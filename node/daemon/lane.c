/* Life of a lane: parts opened in the order of the include law, threads started last, everything taken down in reverse.
 *
 * Ending is one path, drained or not: intake stops pulling; the queues are closed front to back, and each thread ends when its queue is
 * closed and empty. Jobs still in them carry the mark `handed_back`, so reply returns them to the coordinator.
 */
#include "node/daemon/lane.h"

#include <stdio.h>
#include <string.h>

#include "node/base/cgroup.h"
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/daemon/lane_threads.h"
#include "node/daemon/strikes.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

enum { PROVE_QUEUE = 1 }; /* one waits with everything ready while one computes */
static const uint64_t STAGING_FALLBACK_MAX = UINT64_C(8) << 30;
enum { LOAD_NS_PER_BYTE = 50 }; /* 20 MB/s: slower is no loading any more */
static const uint64_t LOAD_LEAST_NS = UINT64_C(60000000000);

static void apply_defaults(struct lane_config *c) {
    c->backlog = c->backlog ? c->backlog : 4;
    c->strikes_max = c->strikes_max ? c->strikes_max : 3;
    c->ack_wait_ns = c->ack_wait_ns ? c->ack_wait_ns : LANE_ACK_WAIT_NS;
    c->stall_ns = c->stall_ns ? c->stall_ns : UINT64_C(60000000000);
    c->result_hold_ns = c->result_hold_ns ? c->result_hold_ns : UINT64_C(600000000000);
    c->memory_bytes = c->memory_bytes ? c->memory_bytes : cgroup_plan_bytes();
}

/* Core messages of cancel: whoever holds the job stops at the next step. But not what was sent again since, under the same id: on a slow line
 * the message comes after it. */
static void on_cancel(void *ctx, struct message *m) {
    struct lane *lane = ctx;
    struct subject_parts parts;
    AUTO(message_free) Bellows__V1__Control *control = NULL;
    if (subject_parse(&parts, &lane->space, m->subject) != OK ||
        message_unpack(&control, &bellows__v1__control__descriptor, m->data, CONTROL_BYTES_MAX,
                       "cancel") != OK) {
        return;
    }
    LOCK_SCOPE(&lane->lock);
    for (size_t i = 0; i < lane->held_count; i++) {
        struct lane_job *job = lane->held[i];
        if (job->generation <= control->generation && !strcmp(job->name.tenant, parts.tenant) &&
            !strcmp(job->name.job, parts.job)) {
            atomic_store(&job->watch.cancel, 1);
        }
    }
}

static enum err on_order(void *ctx, const struct control_order *order) {
    struct lane *lane = ctx;
    if (order->verb == CONTROL_RESUME) {
        return lane_resume(lane);
    }
    lane_drain(lane, order->grace_ns, order->reason[0] ? order->reason : "drained by an order");
    return OK;
}

static enum err lock_pages(void *ctx, void *ptr, size_t bytes) {
    struct backend *b = ctx;
    return b->ops->pin(b, ptr, bytes);
}

static void unlock_pages(void *ctx, void *ptr, size_t bytes) {
    struct backend *b = ctx;
    (void)bytes;
    b->ops->unpin(b, ptr);
}

/* What a device copies from is locked; else it is a third of the memory, which costs nothing until it is used. */
static enum err open_staging(struct lane *lane) {
    const struct lane_config *c = &lane->config;
    struct backend *b = lane->backend;
    struct pinned_options options = {
        .bytes = c->memory_bytes / 3, .threads = c->threads, .numa_node = -1, .ctx = b};
    if (lane_brings(lane)) {
        uint64_t eighth = c->memory_bytes / 8;
        options.bytes = c->staging_bytes                ? c->staging_bytes
                        : eighth < STAGING_FALLBACK_MAX ? eighth
                                                        : STAGING_FALLBACK_MAX;
        options.numa_node = b->numa_node;
        options.lock = lock_pages;
        options.unlock = unlock_pages;
    }
    TRY(pinned_open(&lane->pinned, &options));
    struct pinned_start start = pinned_start_of(lane->pinned);
    if (options.lock) {
        double gib = (double)pinned_bytes(lane->pinned) / (1 << 30);
        log_info("staging.opened",
                 "bytes=%zu numa_node=%d touch_ms=%.1f lock_ms=%.1f ms_per_gib=%.1f",
                 pinned_bytes(lane->pinned), options.numa_node, (double)start.touch_ns / 1e6,
                 (double)start.lock_ns / 1e6, (double)(start.touch_ns + start.lock_ns) / 1e6 / gib);
    }
    return OK;
}

static enum err open_parts(struct lane *lane) {
    const struct lane_config *c = &lane->config;
    struct keyfiles_options keyfiles = {.dir = c->cache_dir,
                                        .bytes_max = c->key_disk_bytes,
                                        .allow_insecure = c->allow_insecure_keys,
                                        .check_threads = c->threads,
                                        .native = true};
    TRY(shared_records_new(&lane->records, lane->links.control, &lane->space));
    TRY(keyfiles_open(&lane->keyfiles, &keyfiles));
    struct opinion_options opinion = {.open = c->second_open,
                                      .open_ctx = c->second_ctx,
                                      .device = lane->backend,
                                      .threads_count = c->threads,
                                      .bytes_max = c->memory_bytes / 4};
    TRY(opinion_new(&lane->opinion, &opinion));
    TRY(decoders_open(&lane->decoders, (c->threads ? c->threads : pool_cores_usable()) / 2));
    TRY(open_staging(lane));
    lane->keys_bytes_max = c->memory_bytes - c->memory_bytes / 3 - opinion.bytes_max;
    TRY(keycache_new(&lane->keycache, lane->backend, lane->keys_bytes_max));
    TRY(queue_new(&lane->to_stage, LANE_HELD_MAX, sizeof(struct lane_job *)));
    TRY(queue_new(&lane->to_prove, PROVE_QUEUE, sizeof(struct lane_job *)));
    TRY(queue_new(&lane->to_settle, LANE_HELD_MAX, sizeof(struct lane_job *)));
    TRY(queue_new(&lane->to_reply, LANE_HELD_MAX, sizeof(struct lane_job *)));
    return lane_tell_open(lane);
}

static enum err open_links(struct lane *lane) {
    struct lane_name name = lane_name_here(lane);
    struct fleet_options fleet = {.lane_ack_wait_ns = lane->config.ack_wait_ns};
    struct subject stream = stream_name(&lane->space, "LANES"), consumer = consumer_of_lane(name);
    TRY(fleet_ensure_lane(lane->links.control, &lane->space, name, LANE_HELD_MAX, &fleet));
    TRY(puller_open(&lane->puller, lane->links.control, stream.text, consumer.text));
    struct subscribe_options cancels = {.handler = on_cancel, .handler_ctx = lane};
    struct control_options control = {.space = &lane->space,
                                      .node = lane->node,
                                      .gpu = lane->config.gpu,
                                      .handler = on_order,
                                      .handler_ctx = lane};
    struct subject cancel = filter_cancels(&lane->space);
    TRY(transport_subscribe(&lane->cancels, lane->links.control, cancel.text, &cancels));
    return control_open(&lane->control, lane->links.control, &control);
}

/* --- Strikes --- */

static void keep_strikes(const struct lane *lane, uint64_t count, const char *reason) {
    struct strikes s = {.count = (uint32_t)count};
    char quoted[ERR_DETAIL_BYTES + 64];
    snprintf(s.reason, sizeof s.reason, "%s", reason);
    if (strikes_store(&s, lane->config.cache_dir, lane->config.device) != OK) {
        log_warn("strikes.not_kept", "strikes=%llu detail=%s", (unsigned long long)count,
                 log_quote(quoted, sizeof quoted, err_detail()));
    }
}

static void fence(struct lane *lane, uint64_t strikes, const char *last) {
    char reason[RECORD_DETAIL_BYTES];
    snprintf(reason, sizeof reason, "fenced after %llu strikes, the last: %.100s",
             (unsigned long long)strikes, last);
    log_error("lane.fenced", "strikes=%llu cure=\"look at the device, then `bellows resume`\"",
              (unsigned long long)strikes);
    lane_drain(lane, 0, reason);
}

/* What this device did to the lanes before this one. */
static enum err recall_strikes(struct lane *lane) {
    struct strikes s;
    TRY(strikes_load(&s, lane->config.cache_dir, lane->config.device, lane->config.strikes_max));
    atomic_store(&lane->strikes, s.count);
    if (s.count >= lane->config.strikes_max) {
        atomic_store(&lane->end, LANE_FENCED);
        fence(lane, s.count, s.reason);
    }
    return OK;
}

/* --- Threads --- */

/* Threads that empty one queue, or none; in the order in which they end: front to back. */
struct role {
    void *(*main)(void *);
    struct queue *queue;
    unsigned count;
};
enum { ROLES_COUNT = 8 };
static void roles_of(struct role out[ROLES_COUNT], const struct lane *lane) {
    const struct role roles[ROLES_COUNT] = {{lane_intake_main, NULL, 1},
                                            {lane_stage_main, lane->to_stage, lane->stagers_count},
                                            {lane_prove_main, lane->to_prove, 1},
                                            {lane_settle_main, lane->to_settle, 1},
                                            {lane_reply_main, lane->to_reply, lane->repliers_count},
                                            {lane_live_main, NULL, 1},
                                            {lane_entry_main, NULL, 1},
                                            {lane_tell_main, lane->to_tell, 1}};
    memcpy(out, roles, sizeof roles);
}

static enum err start_threads(struct lane *lane) {
    struct role roles[ROLES_COUNT];
    roles_of(roles, lane);
    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        for (unsigned k = 0; k < roles[i].count; k++) {
            int rc = pthread_create(&lane->threads[lane->threads_count], NULL, roles[i].main, lane);
            REQUIRE(rc == 0, E_LIMIT, "no thread for the lane: %s", strerror(rc));
            lane->threads_count++;
        }
    }
    return OK;
}

enum err lane_open(struct lane **out, const struct lane_config *config,
                   const struct lane_links *links, struct backend *backend) {
    AUTO(lane_close) struct lane *lane = NULL;
    TRY(id_check(config->node, "node"));
    TRY(id_check(config->session, "session"));
    TRY(mem_new(&lane, 1, sizeof *lane));
    lock_init(&lane->lock, LOCK_LANE);
    condition_init(&lane->changed);
    lane->config = *config;
    apply_defaults(&lane->config);
    snprintf(lane->node, sizeof lane->node, "%s", config->node);
    snprintf(lane->session, sizeof lane->session, "%s", config->session);
    lane->config.node = lane->node;
    lane->config.session = lane->session;
    snprintf(lane->device, sizeof lane->device, "%s", config->device ? config->device : "");
    lane->config.device = config->device ? lane->device : NULL;
    if (config->keep) {
        REQUIRE((lane->keep = mem_strdup(config->keep)), E_LIMIT, "no memory for a lane");
        lane->config.keep = lane->keep;
    }
    lane->links = *links;
    lane->backend = backend;
    lane->stagers_count = lane_brings(lane) ? LANE_STAGERS_MAX : 1;
    lane->repliers_count = lane_brings(lane) ? LANE_REPLIERS_MAX : 1;
    atomic_store(&lane->info_due, true);
    TRY(ledger_new(&lane->ledger));
    if (config->drained) {
        lane_drain(lane, 0, "drained by an order to its predecessor");
    }
    TRY(subject_space_init(&lane->space, config->prefix));
    TRY(open_parts(lane));
    TRY(recall_strikes(lane));
    TRY(open_links(lane));
    TRY(start_threads(lane));
    *out = TAKE(lane);
    return OK;
}

enum lane_end lane_ended(const struct lane *lane) {
    return (enum lane_end)atomic_load(&lane->end);
}

void lane_drain(struct lane *lane, uint64_t grace_ns, const char *reason) {
    uint64_t until;
    if (__builtin_add_overflow(clock_ns(), grace_ns, &until)) {
        until = UINT64_MAX;
    }
    LOCK_SCOPE(&lane->lock);
    if (!atomic_load(&lane->draining) || until < atomic_load(&lane->grace_until_ns)) {
        atomic_store(&lane->grace_until_ns, until);
        snprintf(lane->reason, sizeof lane->reason, "%s", reason);
    }
    atomic_store(&lane->draining, true);
    atomic_store(&lane->info_due, true);
    if (lane->ledger) {
        ledger_fence(lane->ledger, true);
    }
    condition_wake_all(&lane->changed);
}

void lane_leave(struct lane *lane, uint64_t grace_ns) {
    atomic_store(&lane->leaving, true);
    lane_drain(lane, grace_ns, "the lane is ending");
}

static enum err take_work_again(struct lane *lane) {
    LOCK_SCOPE(&lane->lock);
    int end = atomic_load(&lane->end);
    REQUIRE(!atomic_load(&lane->leaving) && (end == LANE_GOES_ON || end == LANE_FENCED),
            E_CANCELLED, "lane %s.%u is ending", lane->node, lane->config.gpu);
    if (atomic_exchange(&lane->strikes, 0) > 0) { /* one that was only drained keeps its keys */
        atomic_store(&lane->distrust, true);
    }
    atomic_store(&lane->end, LANE_GOES_ON);
    atomic_store(&lane->draining, false);
    ledger_fence(lane->ledger, false);
    lane->reason[0] = 0;
    atomic_store(&lane->info_due, true);
    condition_wake_all(&lane->changed);
    return OK;
}

enum err lane_resume(struct lane *lane) {
    TRY(take_work_again(lane));
    keep_strikes(lane, 0, "");
    lane_keep_keys_again(lane);
    return OK;
}

void lane_strike(struct lane *lane, const struct lane_job *job) {
    uint64_t strikes = atomic_fetch_add(&lane->strikes, 1) + 1;
    int goes_on = LANE_GOES_ON;
    bool lost = job->fault.code == E_DEVICE_LOST, fenced = strikes >= lane->config.strikes_max;
    char quoted[ERR_DETAIL_BYTES + 64];
    atomic_store(&lane->distrust, true);
    keep_strikes(lane, strikes, job->fault.detail);
    metric_add(lane->config.metrics, METRIC_DEVICE_ERRORS, 0, 1);
    log_line(LOG_WARN, lost ? "device.lost" : "device.struck",
             "job=%s tenant=%s strikes=%llu strikes_max=%u error=%s detail=%s", job->name.job,
             job->name.tenant, (unsigned long long)strikes, lane->config.strikes_max,
             err_name(job->fault.code), log_quote(quoted, sizeof quoted, job->fault.detail));
    if (!lost && !fenced) {
        lane_keep_keys_again(lane);
        return;
    }
    if (!atomic_compare_exchange_strong(&lane->end, &goes_on,
                                        lost ? LANE_DEVICE_LOST : LANE_FENCED)) {
        return;
    }
    if (lost) {
        lane_leave(lane, 0);
    } else {
        fence(lane, strikes, job->fault.detail);
    }
}

void lane_seat_take(struct lane *lane, struct lane_seat *seat, struct lane_job *job) {
    LOCK_SCOPE(&lane->lock);
    if (job) {
        atomic_store(&job->watch.progress_ns, clock_ns());
    }
    atomic_store(&seat->patience_ns, 0);
    seat->job = job;
    seat->since_ns = clock_ns();
    condition_wake_all(&lane->changed);
}

void lane_seat_loads(struct lane_seat *seat, uint64_t key_bytes) {
    atomic_store(&seat->patience_ns, LOAD_LEAST_NS + key_bytes * LOAD_NS_PER_BYTE);
}

void lane_seat_loaded(struct lane_seat *seat, struct lane_job *job) {
    atomic_store(&job->watch.progress_ns, clock_ns());
    atomic_store(&seat->patience_ns, 0);
}

bool lane_should_hand_back(const struct lane *lane) {
    return atomic_load(&lane->draining);
}

bool lane_is_empty(struct lane *lane) {
    LOCK_SCOPE(&lane->lock);
    return atomic_load(&lane->draining) && lane->held_count == 0;
}

void lane_pause(struct lane *lane, uint64_t ns) {
    struct timespec until = clock_wait_until(ns);
    LOCK_SCOPE(&lane->lock);
    bool draining = atomic_load(&lane->draining);
    while (!atomic_load(&lane->stopping) && atomic_load(&lane->draining) == draining &&
           condition_wait_until(&lane->changed, &lane->lock, &until)) {
    }
}

void lane_give_turn_ahead(struct lane *lane, struct lane_job *job) {
    if (!job->ahead) {
        return;
    }
    job->ahead = false;
    LOCK_SCOPE(&lane->lock);
    lane->ahead_count--;
    lane->ahead_ns -= job->expected_ns;
    condition_wake_all(&lane->changed);
}

static void forget_suspect(struct lane *lane, const struct lane_job *job) {
    LOCK_SCOPE(&lane->lock);
    if (lane->suspect == job) {
        lane->suspect = NULL;
        condition_wake_all(&lane->changed);
    }
}

void lane_unload(struct lane *lane, struct lane_job *job) {
    lane_give_turn_ahead(lane, job);
    forget_suspect(lane, job);
    if (job->brought) {
        lane->backend->ops->unbring(job->loaded.slot, job->brought);
        job->brought = 0;
    }
    keycache_give(lane->keycache, &job->loaded);
}

void lane_release(struct lane *lane, struct lane_job **job) {
    lane_unload(lane, *job);
    job_unstage(*job);
    pinned_give(lane->pinned, &(*job)->block);
    lock_take(&lane->lock);
    for (size_t i = 0; i < lane->held_count; i++) {
        if (lane->held[i] == *job) {
            lane->held[i] = lane->held[--lane->held_count];
            break;
        }
    }
    condition_wake_all(&lane->changed);
    lock_give(&lane->lock);
    job_free(job);
}

/* Front to back: each thread empties its queue, and nobody puts into it any more. */
static void end_threads(struct lane *lane) {
    struct role roles[ROLES_COUNT];
    unsigned joined = 0;
    roles_of(roles, lane);
    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        if (roles[i].queue) {
            queue_close(roles[i].queue);
        }
        for (unsigned k = 0; k < roles[i].count && joined < lane->threads_count; k++) {
            pthread_join(lane->threads[joined++], NULL);
        }
    }
}

void lane_close(struct lane **lane_ptr) {
    struct lane *lane = *lane_ptr;
    if (!lane) {
        return;
    }
    lane_leave(lane, 0);
    atomic_store(&lane->stopping, true);
    if (lane->puller) {
        puller_wake(lane->puller);
    }
    lock_take(&lane->lock);
    for (size_t i = 0; i < lane->held_count; i++) {
        atomic_store(&lane->held[i]->handed_back, true);
        atomic_store(&lane->held[i]->watch.cancel, 1);
    }
    condition_wake_all(&lane->changed);
    lock_give(&lane->lock);
    subscription_close(&lane->cancels);
    control_close(&lane->control);
    end_threads(lane);
    puller_close(&lane->puller);
    queue_free(&lane->to_stage);
    queue_free(&lane->to_prove);
    queue_free(&lane->to_settle);
    queue_free(&lane->to_reply);
    queue_free(&lane->to_tell);
    shared_records_free(&lane->records);
    decoders_close(&lane->decoders);
    opinion_free(&lane->opinion);
    keycache_free(&lane->keycache);
    pinned_close(&lane->pinned);
    keyfiles_close(&lane->keyfiles);
    ledger_free(&lane->ledger);
    mem_free(lane->keep);
    condition_done(&lane->changed);
    lock_done(&lane->lock);
    mem_free_ptr(lane_ptr);
}

struct lane_counts lane_counts_of(const struct lane *lane) {
    return (struct lane_counts){
        .done = atomic_load(&lane->done),
        .failed = atomic_load(&lane->failed),
        .given_back = atomic_load(&lane->given_back),
        .stale = atomic_load(&lane->stale),
        .strikes = atomic_load(&lane->strikes),
    };
}
