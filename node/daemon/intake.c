/* Intake takes one assignment at a time, as long as the lane has a free place; stage makes it ready: is the job still this lane's, the
 * key on disk and sound, room for the witness, the body fetched and decoded, the record moved to running.
 *
 * Where the backend has memory of its own, that is not all: the key is loaded there, and the body brought there, too. Several threads stage
 * then, each one job from beginning to end, so jobs may overtake each other: a key that is fetched, or a large body, holds up only those
 * that need it.
 *
 * The record is moved as late as that, because a job that runs when its worker dies is suspected of having killed it, and cannot go to a lane
 * that has become idle. But not so late that the device waits for the server: it is moved when the work ahead of it takes no longer
 * than AHEAD_NS, of short jobs before they are brought, so that the place beside the device does not wait for it either. And never behind
 * the device's beginning, as a job that kills its worker at once must have been written down. The event that tells of the start is sent
 * when the device has it (story_begins).
 */
#include <string.h>

#include "node/base/clock.h"
#include "node/daemon/lane_threads.h"

enum { WORLD_TRIES = 4, SUSPECTED_DEATHS = 2 /* one may be the machine's */ };
static const uint64_t PULL_WAIT_NS = UINT64_C(5000000000);
static const uint64_t PLACE_WAIT_NS = UINT64_C(1000000000);
static const uint64_t FIRST_PAUSE_NS = UINT64_C(100000000);
static const uint64_t AHEAD_NS = UINT64_C(100000000);
static const uint64_t PUT_OFF_NS = UINT64_C(2000000);
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(2000000000);

/* --- intake --- */

static bool is_same_work(const struct lane_job *a, const struct lane_job *b) {
    return a->generation == b->generation && a->epoch == b->epoch && a->index == b->index &&
           !strcmp(a->name.job, b->name.job) && !strcmp(a->name.tenant, b->name.tenant);
}

/* False: the lane holds this very assignment already (the server delivered it again); the held one stays. */
static bool hold(struct lane *lane, struct lane_job *job) {
    LOCK_SCOPE(&lane->lock);
    for (size_t i = 0; i < lane->held_count; i++) {
        if (is_same_work(lane->held[i], job)) {
            return false;
        }
    }
    ASSERT(lane->held_count < LANE_HELD_MAX);
    lane->held[lane->held_count++] = job;
    job->ledger = lane->ledger;
    job->ticket = ledger_arrive(lane->ledger);
    job_mark(job, JOB_STAGE_QUEUED);
    return true;
}

static void take_message(struct lane *lane, struct message *m) {
    struct lane_job *job = NULL;
    enum err code = job_take(&job, m, lane->records);
    if (code != OK) {
        char quoted[ERR_DETAIL_BYTES + 64];
        log_error("assignment.refused", "error=%s detail=%s", err_name(code),
                  log_quote(quoted, sizeof quoted, err_detail()));
        IGNORE(transport_ack(lane->links.control, m->reply, ACK_TERM, 0));
        message_done(m);
        return;
    }
    job->report.lane = lane_name_here(lane);
    job->report.device = lane->backend->device_name;
    if (!hold(lane, job)) {
        IGNORE(transport_ack(lane->links.control, job->message.reply, ACK_PROGRESS, 0));
        job_free(&job);
        return;
    }
    /* As many places as the lane holds: never full. */
    enum err put = queue_put(lane->to_stage, &job, UINT64_MAX);
    ASSERT(put == OK);
}

/* True: there is one. False: look again, as the lane may be draining or stopping. */
static bool wait_for_place(struct lane *lane) {
    LOCK_SCOPE(&lane->lock);
    if (lane->held_count < LANE_HELD_MAX && !atomic_load(&lane->draining)) {
        return true;
    }
    struct timespec until = clock_wait_until(PLACE_WAIT_NS);
    condition_wait_until(&lane->changed, &lane->lock, &until);
    return false;
}

static uint64_t reconnects(const struct lane *lane) {
    struct transport_health health = {0};
    transport_health(&health, lane->links.control);
    return health.reconnects_count;
}

/* A server may lose it, or come back with fewer messages than it has delivered. */
static enum err ensure_consumer(struct lane *lane) {
    struct fleet_options fleet = {.lane_ack_wait_ns = lane->config.ack_wait_ns};
    return fleet_ensure_lane(lane->links.control, &lane->space, lane_name_here(lane), LANE_HELD_MAX,
                             &fleet);
}

void *lane_intake_main(void *ctx) {
    struct lane *lane = ctx;
    uint64_t pause_ns = FIRST_PAUSE_NS, ensured_at = reconnects(lane);
    puller_ahead(lane->puller, LANE_PULL_AHEAD, PULL_WAIT_NS);
    while (!atomic_load(&lane->leaving)) {
        struct message m = {0};
        if (!wait_for_place(lane)) {
            continue;
        }
        uint64_t now_at = reconnects(lane);
        if (now_at != ensured_at && ensure_consumer(lane) == OK) {
            ensured_at = now_at;
        }
        enum err code = puller_next(&m, lane->puller, PULL_WAIT_NS);
        if (code == OK) {
            pause_ns = FIRST_PAUSE_NS;
            take_message(lane, &m);
        } else if (code != E_TIMEOUT && code != E_CANCELLED) {
            IGNORE(ensure_consumer(lane));
            lane_pause(lane, pause_ns);
            pause_ns = pause_ns * 2 < LONGEST_PAUSE_NS ? pause_ns * 2 : LONGEST_PAUSE_NS;
        }
    }
    return NULL;
}

/* --- stage --- */

static enum err check_wanted(const struct lane *lane, const struct lane_job *job) {
    REQUIRE(!lane_should_hand_back(lane) && !atomic_load(&job->handed_back), E_CANCELLED,
            "the lane is draining");
    REQUIRE(!atomic_load(&job->watch.cancel), E_CANCELLED, "cancelled before it started");
    return OK;
}

/* Is the job still this lane's? One small read saves fetching the body of a job that was cancelled or moved. */
static enum err check_record(struct lane *lane, struct lane_job *job) {
    struct shared_claim claim;
    (void)lane;
    TRY(shared_look(&claim, job->record, job->index, job->epoch));
    job->queued_unix_ms = claim.queued_unix_ms;
    job->suspected = claim.deaths >= SUSPECTED_DEATHS;
    job->stale = !claim.ours;
    return OK;
}

/* One thread at a time may wait for room, so that small bodies do not pass a large one for ever. */
static enum err take_room_turn(struct lane *lane, const struct lane_job *job) {
    LOCK_SCOPE(&lane->lock);
    while (lane->room_turn) {
        TRY(check_wanted(lane, job));
        struct timespec until = clock_wait_until(FIRST_PAUSE_NS);
        condition_wait_until(&lane->changed, &lane->lock, &until);
    }
    lane->room_turn = true;
    return OK;
}

static enum err wait_for_room(struct lane *lane, struct lane_job *job, uint64_t bytes) {
    for (;;) {
        enum err code = pinned_take(&job->block, lane->pinned, (size_t)bytes);
        if (code != E_LIMIT) {
            return code;
        }
        TRY(check_wanted(lane, job));
        LOCK_SCOPE(&lane->lock);
        struct timespec until = clock_wait_until(FIRST_PAUSE_NS);
        condition_wait_until(&lane->changed, &lane->lock, &until);
    }
}

static enum err reserve_body(struct lane *lane, struct lane_job *job) {
    uint64_t bytes = 0;
    TRY(job_choose_way(&bytes, job, lane->backend, lane->decoders, pinned_bytes(lane->pinned)));
    TRY(take_room_turn(lane, job));
    enum err code = wait_for_room(lane, job, bytes);
    lock_take(&lane->lock);
    lane->room_turn = false;
    condition_wake_all(&lane->changed);
    lock_give(&lane->lock);
    return code;
}

/* A proof that could not be told anybody need not be made. */
static enum err check_result_fits(const struct lane_job *job) {
    uint64_t bytes = result_bytes_expected(key_curve(job->key), key_shape(job->key)->public_count,
                                           (uint32_t)job->job->n_partitions);
    REQUIRE(bytes <= RESULT_BYTES_MAX, E_RANGE,
            "the result of %zu partitions with %u public signals each would have %llu bytes, "
            "allowed are %d; "
            "submit fewer partitions per job",
            job->job->n_partitions, key_shape(job->key)->public_count, (unsigned long long)bytes,
            RESULT_BYTES_MAX);
    return OK;
}

static enum record_answer change_start(struct record *r, void *ctx) {
    const struct lane_job *job = ctx;
    return record_start(r, job->index, job->epoch, clock_unix_ns() / 1000000);
}

static enum err start(struct lane *lane, struct lane_job *job) {
    enum record_answer answer = RECORD_STALE;
    (void)lane;
    TRY(shared_apply(&answer, job->record, change_start, job));
    job->stale = answer == RECORD_STALE;
    atomic_store(&job->started, !job->stale);
    return OK;
}

/* [lock] Of what it computes now. A job that outlives its estimate may go on for long. */
static uint64_t device_left_ns(const struct lane_seat *seat) {
    if (!seat->job) {
        return 0;
    }
    uint64_t spent_ns = clock_ns() - seat->since_ns, expected_ns = seat->job->expected_ns;
    return spent_ns < expected_ns ? expected_ns - spent_ns : spent_ns / 2;
}

/* [lock] How long the device has enough to do without this one. Who has the place beside it is the next, and the others wait for that one. */
static uint64_t work_ahead_ns(const struct lane *lane, const struct lane_job *job) {
    return device_left_ns(&lane->proving) + (job->brought ? 0 : lane->ahead_ns);
}

/* [lock] A job whose workers have died waits until all that have started have begun, and from then on until it has ended nothing else starts: else
 * others die with it, as often as it does. Who has the place beside the device goes first in any case, as the suspect may need that
 * place. */
static bool is_kept_back(const struct lane *lane, const struct lane_job *job) {
    if (lane->suspect == job) {
        return lane->ahead_count > 0 && !job->brought;
    }
    return lane->suspect && (lane->proving.job == lane->suspect || !job->brought);
}

/* [lock] */
static bool take_turn_if_free(struct lane *lane, struct lane_job *job) {
    bool full = !job->brought && lane->ahead_count >= LANE_AHEAD_MAX;
    if (job->suspected && !lane->suspect) {
        lane->suspect = job;
    }
    if (full || is_kept_back(lane, job) || work_ahead_ns(lane, job) > AHEAD_NS) {
        return false;
    }
    lane->ahead_count++;
    lane->ahead_ns += job->expected_ns;
    job->ahead = true;
    return true;
}

/* True: it has one now. */
static bool try_turn_ahead(struct lane *lane, struct lane_job *job) {
    ASSERT(!job->ahead);
    job->expected_ns = keycache_estimate(lane->keycache, &job->key_digest);
    LOCK_SCOPE(&lane->lock);
    return take_turn_if_free(lane, job);
}

static enum err take_turn_ahead(struct lane *lane, struct lane_job *job) {
    if (try_turn_ahead(lane, job)) {
        return OK;
    }
    LOCK_SCOPE(&lane->lock);
    while (!take_turn_if_free(lane, job)) {
        TRY(check_wanted(lane, job));
        uint64_t work_ns = work_ahead_ns(lane, job),
                 wait_ns = work_ns > AHEAD_NS ? work_ns - AHEAD_NS : 0;
        struct timespec until =
            clock_wait_until(wait_ns && wait_ns < FIRST_PAUSE_NS ? wait_ns : FIRST_PAUSE_NS);
        condition_wait_until(&lane->changed, &lane->lock, &until);
    }
    return OK;
}

/* One of the steps that begin and end in one call. */
static enum err timed(enum err (*step)(struct lane *lane, struct lane_job *job), struct lane *lane,
                      struct lane_job *job, enum job_stage stage, enum span_step span) {
    uint64_t start_ns = clock_ns();
    job_mark(job, stage);
    enum err code = step(lane, job);
    spans_end(&job->report.spans, span, start_ns, 0, code);
    return code;
}

static enum err fetch_body(struct lane *lane, struct lane_job *job) {
    uint64_t start_ns = clock_ns();
    enum err code = job->way == JOB_WAY_STREAM
                        ? job_stream(job, lane->decoders, &lane->links.bulk, lane->backend)
                        : job_stage_body(job, lane->decoders, &lane->links.bulk);
    if (code != OK) {
        spans_end(&job->report.spans, SPAN_FETCH, start_ns, 0, code);
    }
    return code;
}

/* A suspect does not take the place beside the device before its turn: those that have started could not get past it. */
static enum err bring(struct lane *lane, struct lane_job *job) {
    bool waits = !atomic_load(&job->started), has_turn = false;
    if (waits && job->suspected) {
        TRY(take_turn_ahead(lane, job));
        has_turn = true;
    } else if (waits) {
        has_turn = try_turn_ahead(lane, job);
    }
    if (has_turn) {
        TRY(timed(start, lane, job, JOB_STAGE_RECORD, SPAN_RECORD));
    }
    return job->stale ? OK : job_bring(job, lane->backend);
}

static enum err stage_body(struct lane *lane, struct lane_job *job) {
    if (!job->block.ptr) {
        TRY(timed(reserve_body, lane, job, JOB_STAGE_MEMORY, SPAN_MEMORY));
    }
    if (job->vectors_count == 0) { /* else it was staged before, and only its place is a new one */
        TRY(fetch_body(lane, job));
    }
    switch (job->way) {
    case JOB_WAY_STREAM:
        return OK;
    case JOB_WAY_BRING:
        return bring(lane, job);
    default: /* several stage threads cannot share the pool */
        return job_make_witness(job, lane_brings(lane) ? NULL : decoders_pool(lane->decoders));
    }
}

static enum err stage_once(struct lane *lane, struct lane_job *job) {
    TRY(check_wanted(lane, job));
    if (!atomic_load(&job->started)) {
        TRY(timed(check_record, lane, job, JOB_STAGE_RECORD, SPAN_RECORD));
        if (job->stale) {
            return OK;
        }
    }
    TRY(lane_get_key(lane, job));
    TRY(check_result_fits(job));
    TRY(stage_body(lane, job));
    TRY(check_wanted(lane, job));
    if (atomic_load(&job->started) || job->stale) {
        return OK;
    }
    TRY(take_turn_ahead(lane, job));
    return timed(start, lane, job, JOB_STAGE_RECORD, SPAN_RECORD);
}

/* Faults of the surroundings are tried again here, with back-off; a damaged object once, as it may have been cut by a reconnect. */
static enum err stage_job(struct lane *lane, struct lane_job *job) {
    uint64_t pause_ns = FIRST_PAUSE_NS;
    enum err code = OK;
    for (int n = 0; n < WORLD_TRIES; n++) {
        code = stage_once(lane, job);
        if (code == OK) {
            break;
        }
        struct fault fault = fault_of(code);
        lane_unload(lane, job);
        job_unstage(job);
        code = fault_raise(&fault);
        if (verdict_of(code).fate != FATE_TRY_AGAIN || n == WORLD_TRIES - 1) {
            break;
        }
        lane_pause(lane, pause_ns);
        pause_ns *= 3;
    }
    return code;
}

static void stage_and_hand_on(struct lane *lane, struct lane_job *job) {
    enum err code = stage_job(lane, job);
    struct queue *next = lane->to_prove;
    job->ready_ns = clock_ns();
    if (code != OK || job->stale) {
        job->fault = fault_of(code);
        job_mark(job, JOB_STAGE_REPLYING);
        if (verdict_of(code)
                .strike) { /* the device was found wrong where it checks what it was given */
            lane_strike(lane, job);
        }
        next = lane->to_reply;
    } else {
        job_mark(job, JOB_STAGE_READY);
    }
    enum err put = queue_put(next, &job, UINT64_MAX);
    ASSERT(put == OK);
}

/* Others need not wait behind a key that is fetched: the job goes to the end of the line. */
static bool put_off(struct lane *lane, struct lane_job *job) {
    if (!lane_brings(lane) || lane_should_hand_back(lane) || atomic_load(&job->watch.cancel) ||
        !lane_key_is_far(lane, job)) {
        return false;
    }
    job_mark(job, JOB_STAGE_KEY);
    lane_pause(lane, PUT_OFF_NS);
    return queue_put(lane->to_stage, &job, UINT64_MAX) == OK;
}

void *lane_stage_main(void *ctx) {
    struct lane *lane = ctx;
    struct lane_job *job = NULL;
    if (lane_brings(lane)) {
        lane_keep_keys(lane);
    }
    while (queue_take(lane->to_stage, &job, UINT64_MAX) == OK) {
        if (job && !put_off(lane, job)) {
            stage_and_hand_on(lane, job);
        }
        if (lane_brings(lane)) {
            lane_keep_keys(lane);
        }
    }
    return NULL;
}
