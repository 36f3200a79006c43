/* The liveness thread shares nothing with the prover but its sign of life. Each beat it tells the fleet that the lane is there, keeps the
 * held deliveries alive, and looks whether the prover still moves: if not, its job's delivery is no longer kept alive, and the lane ends.
 * It never waits for an answer: a slow server must not make a living lane look dead. What has to wait for one is entry.c's.
 */
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/daemon/lane_threads.h"
#include "proto/fleet.pb-c.h"

static const uint64_t LOOK_NS = UINT64_C(500000000);
static const uint64_t BEAT_NS = UINT64_C(1000000000);

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

Bellows__V1__LaneState lane_state(const struct lane *lane) {
    bool draining = atomic_load(&lane->draining);
    switch (lane_ended(lane)) {
    case LANE_FENCED: /* and the reason is written */
    case LANE_GOES_ON:
        return !draining                         ? BELLOWS__V1__LANE_STATE__LANE_READY
               : lane_ended(lane) == LANE_FENCED ? BELLOWS__V1__LANE_STATE__LANE_FENCED
                                                 : BELLOWS__V1__LANE_STATE__LANE_DRAINING;
    default:
        return BELLOWS__V1__LANE_STATE__LANE_STOPPED;
    }
}

/* --- What the lane holds, copied under the lock so that nothing is sent under it --- */

struct holding {
    size_t count;
    uint64_t queued_ns;
    char acks[LANE_HELD_MAX][SUBJECT_BYTES_MAX];
    char tenant[ID_BYTES_MAX + 1], job[ID_BYTES_MAX + 1]; /* being proved; "" */
    uint32_t permille;
    char stuck_tenant[ID_BYTES_MAX + 1],
        stuck[ID_BYTES_MAX + 1]; /* silent for too long; "": none */
    uint64_t silent_ns;
    Bellows__V1__LaneState state;
};

/* [lock] How long the job on this seat has given no sign of life, beyond what it may. */
static uint64_t silence_of(const struct lane_seat *seat, uint64_t now_ns) {
    uint64_t progress_ns = seat->job ? atomic_load(&seat->job->watch.progress_ns) : now_ns;
    uint64_t patience_ns = atomic_load(&seat->patience_ns);
    return now_ns > progress_ns + patience_ns ? now_ns - progress_ns - patience_ns : 0;
}

static void look(struct holding *out, struct lane *lane) {
    struct sha256 digests[LANE_HELD_MAX];
    const struct lane_seat *const seats[] = {&lane->proving, &lane->settling};
    const struct lane_job *stuck = NULL;
    *out = (struct holding){0};
    lock_take(&lane->lock);
    uint64_t now_ns = clock_ns();
    for (size_t i = 0; i < COUNT_OF(seats) && !stuck; i++) {
        out->silent_ns = silence_of(seats[i], now_ns);
        stuck = out->silent_ns > lane->config.stall_ns ? seats[i]->job : NULL;
    }
    if (stuck) {
        snprintf(out->stuck_tenant, sizeof out->stuck_tenant, "%s", stuck->name.tenant);
        snprintf(out->stuck, sizeof out->stuck, "%s", stuck->name.job);
    }
    const struct lane_job *proving = lane->proving.job;
    if (proving) {
        snprintf(out->tenant, sizeof out->tenant, "%s", proving->name.tenant);
        snprintf(out->job, sizeof out->job, "%s", proving->name.job);
        out->permille = atomic_load(&proving->watch.permille);
    }
    for (size_t i = 0; i < lane->held_count; i++) {
        if (lane->held[i] != stuck) {
            digests[out->count] = lane->held[i]->key_digest;
            snprintf(out->acks[out->count++], SUBJECT_BYTES_MAX, "%s",
                     lane->held[i]->message.reply);
        }
    }
    out->state = lane_state(lane);
    lock_give(&lane->lock);
    for (size_t i = 0; i < out->count; i++) {
        out->queued_ns += keycache_estimate(lane->keycache, &digests[i]);
    }
}

/* --- Telling --- */

static void send_beat(struct lane *lane, const struct holding *h, uint64_t sequence) {
    Bellows__V1__Heartbeat m = BELLOWS__V1__HEARTBEAT__INIT;
    m.version = WIRE_VERSION;
    m.node = lane->node;
    m.gpu = lane->config.gpu;
    m.session = lane->session;
    m.sequence = sequence;
    m.state = h->state;
    m.depth = (uint32_t)h->count;
    m.queued_ns = h->queued_ns;
    m.tenant = (char *)(uintptr_t)h->tenant;
    m.job_id = (char *)(uintptr_t)h->job;
    m.permille = h->permille;
    m.at_unix_ms = clock_unix_ns() / 1000000;
    AUTO(bytes_free) struct bytes_mut packed = {0};
    if (message_pack(&packed, &m, HEARTBEAT_BYTES_MAX, "heartbeat") == OK) {
        struct subject subject = subject_heartbeat(&lane->space, lane_name_here(lane));
        IGNORE(transport_send(lane->links.control, subject.text, bytes_of(packed.ptr, packed.len)));
    }
}

/* --- Watching --- */

static void watch_prover(struct lane *lane, const struct holding *h) {
    int goes_on = LANE_GOES_ON;
    if (h->stuck[0] && atomic_compare_exchange_strong(&lane->end, &goes_on, LANE_STALLED)) {
        log_error("lane.stalled", "job=%s tenant=%s silent_ns=%llu permille=%u", h->stuck,
                  h->stuck_tenant, (unsigned long long)h->silent_ns, h->permille);
        lane_leave(lane, 0);
    }
}

/* What waits for the device goes back at once, what is being proved when the grace of the drain is over. */
static void watch_drain(struct lane *lane) {
    struct lane_job *waiting = NULL;
    while (atomic_load(&lane->draining) && queue_take(lane->to_prove, &waiting, 0) == OK) {
        if (!waiting) {
            continue; /* drained before the kept keys were loaded again */
        }
        atomic_store(&waiting->handed_back, true);
        waiting->fault = fault_of(err_set(E_CANCELLED, "the lane is draining"));
        if (queue_put(lane->to_reply, &waiting, UINT64_MAX) != OK) {
            lane_release(
                lane,
                &waiting); /* the lane is closing: its delivery is taken back when it is missed */
        }
    }
    if (!atomic_load(&lane->draining) || clock_ns() < atomic_load(&lane->grace_until_ns)) {
        return;
    }
    LOCK_SCOPE(&lane->lock);
    for (size_t i = 0; i < lane->held_count; i++) {
        struct lane_job *job = lane->held[i];
        if (!atomic_load(&job->watch.cancel)) {
            atomic_store(&job->handed_back, true);
            atomic_store(&job->watch.cancel, 1);
        }
    }
}

static void keep_alive(struct lane *lane, const struct holding *h) {
    for (size_t i = 0; i < h->count; i++) {
        IGNORE(transport_ack(lane->links.control, h->acks[i], ACK_PROGRESS, 0));
    }
}

void *lane_live_main(void *ctx) {
    struct lane *lane = ctx;
    uint64_t pace_ns = lane->config.ack_wait_ns / 4,
             beat_ns = pace_ns < BEAT_NS ? pace_ns : BEAT_NS;
    pace_ns = pace_ns < LANE_PROGRESS_NS ? pace_ns : LANE_PROGRESS_NS;
    uint64_t acked_ns = 0, sequence = 0, beaten_ns = 0;
    enum { UNSAID = -1 };
    int said_state = UNSAID;
    AUTO(mem_free_ptr) struct holding *h = NULL;
    if (mem_new(&h, 1, sizeof *h) != OK) {
        atomic_store(&lane->end, LANE_STALLED);
        return NULL;
    }
    while (!atomic_load(&lane->stopping)) {
        uint64_t now_ns = clock_ns();
        look(h, lane);
        watch_prover(lane, h);
        watch_drain(lane);
        if (now_ns - beaten_ns >= beat_ns || said_state != (int)h->state) {
            said_state = (int)h->state;
            send_beat(lane, h, ++sequence);
            beaten_ns = now_ns;
        }
        if (now_ns - acked_ns >= pace_ns) {
            keep_alive(lane, h);
            acked_ns = now_ns;
        }
        lane_pause(lane, beat_ns < LOOK_NS ? beat_ns : LOOK_NS);
    }
    return NULL;
}
