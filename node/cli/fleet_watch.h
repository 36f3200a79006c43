/* Fleet watch: what the fleet's telemetry says, gathered into one picture for `bellows top`.
 *
 * It listens to the telemetry subjects, and begins with what the telemetry stream remembers: the last kept report of every lane, one of a
 * minute ago, and the last failures. So the picture is whole within a moment of opening, however late, but for what is true of a moment only:
 * what a lane does now and has in hand is known as soon as it has spoken, which each does once a second.
 *
 * Everything in it comes from outside and is bounded: lanes, jobs and texts beyond the limits are dropped, texts are cut and made
 * printable.
 *
 * Owner    the command.
 * Threads  one.
 * Errors   watch_open: the transport's.
 */
#pragma once
#include "node/base/hash.h"
#include "node/telemetry/ledger.h"
#include "node/telemetry/span.h"
#include "node/transport/fleet.h"

enum {
    WATCH_LANES_MAX = 256,
    WATCH_HAND_MAX = 32,
    WATCH_JOBS_MAX = 512,
    WATCH_QUEUES_MAX = 128,
    WATCH_SAMPLES_MAX = 64, /* a minute, one a second */
    WATCH_MEMORY_MAX = 8,
    WATCH_COUNTERS_MAX = 16,
    WATCH_SENSORS_MAX = 16,
    WATCH_KEYS_MAX = 16,
    WATCH_ID_BYTES = ID_BYTES_MAX + 1,
    WATCH_WORD_BYTES = 32,
    WATCH_TEXT_BYTES = 200
};

struct watch_sample {
    uint64_t at_ms, wall_ns, open_ns;
    uint64_t ns[LEDGER_ACCOUNTS_COUNT];
};

struct watch_hand { /* a partition in a lane's hands */
    char tenant[WATCH_ID_BYTES], job[WATCH_ID_BYTES], stage[WATCH_WORD_BYTES],
        step[WATCH_WORD_BYTES];
    struct sha256 key;
    uint32_t partition, priority, permille;
    uint64_t age_ns, stage_ns;
};

struct watch_number { /* memory, counters */
    char name[WATCH_WORD_BYTES];
    uint64_t value, limit;
};

struct watch_lane {
    char node[WATCH_ID_BYTES];
    uint32_t gpu;
    char session[WATCH_ID_BYTES], backend[WATCH_WORD_BYTES], device[WATCH_TEXT_BYTES],
        now[WATCH_WORD_BYTES]; /* "?" until it has spoken, as depth and hand are 0 */
    uint64_t heard_ms;         /* of the newest report, by its sender's clock */
    uint64_t known_ms;         /* since when it is in the picture, by our clock */
    struct watch_sample samples[WATCH_SAMPLES_MAX]; /* oldest first, all of one session */
    size_t samples_count;
    bool spoke_device, spoke_lane; /* such a report came while we listened */
    struct watch_number memory[WATCH_MEMORY_MAX], counters[WATCH_COUNTERS_MAX];
    size_t memory_count, counters_count;
    uint64_t readings[WATCH_SENSORS_MAX]; /* by enum Sensor of telemetry.proto */
    bool known[WATCH_SENSORS_MAX];
    uint32_t state, strikes, depth, depth_max;
    char reason[WATCH_TEXT_BYTES], version[WATCH_WORD_BYTES];
    struct watch_hand hand[WATCH_HAND_MAX];
    size_t hand_count;
    struct sha256 keys[WATCH_KEYS_MAX];
    bool key_loaded[WATCH_KEYS_MAX];
    uint64_t key_prove_ns[WATCH_KEYS_MAX];
    size_t keys_count;
    char error[WATCH_WORD_BYTES], error_detail[WATCH_TEXT_BYTES], error_job[WATCH_ID_BYTES];
    uint64_t error_ms; /* 0: none */
};

struct watch_step {
    char name[WATCH_WORD_BYTES], outcome[WATCH_WORD_BYTES];
    uint64_t start_ns, ns, bytes;
};

struct watch_job {
    char tenant[WATCH_ID_BYTES], job[WATCH_ID_BYTES], state[WATCH_WORD_BYTES],
        label[WATCH_TEXT_BYTES];
    char node[WATCH_ID_BYTES], reason[WATCH_TEXT_BYTES], error[WATCH_WORD_BYTES];
    uint32_t gpu, priority, partitions;
    struct sha256 key;
    bool has_key, failed;       /* failed, dead, expired or refused */
    uint64_t first_ms, last_ms; /* events seen */
    /* The last partition's story. */
    struct watch_step steps[SPANS_MAX];
    size_t steps_count;
    uint64_t total_ns, device_ns, energy_mj;
};

struct watch_queue {
    char label[WATCH_TEXT_BYTES];
    uint32_t priority, partitions;
    struct sha256 key;
    uint64_t oldest_ns, work_ns;
};

struct watch_fleet {
    bool known, ready;
    char leader[WATCH_ID_BYTES];
    uint64_t at_ms;
    uint32_t jobs_open, queued, placed, running, lanes_open, lanes_known, deadlines_at_risk;
    uint64_t backlog_ns, backlog_wall_ns;
    struct watch_queue queues[WATCH_QUEUES_MAX];
    size_t queues_count;
    struct watch_number counters[WATCH_COUNTERS_MAX];
    size_t counters_count;
};

/* The picture. Read it freely between calls. */
struct watch {
    bool listens; /* what comes now is of this moment */
    struct watch_fleet fleet;
    struct watch_lane *lanes; /* owned; by node, then gpu */
    size_t lanes_count;
    struct watch_job *jobs; /* owned; no order */
    size_t jobs_count;
    uint64_t dropped; /* messages that could not be read or kept */
};

struct fleet_watch;
FALLIBLE watch_open(struct fleet_watch **out, struct transport *t,
                    const struct subject_space *space);
void watch_close(struct fleet_watch **w); /* for AUTO */
/* Takes in what has come, waiting at most wait_ns for the first of it. True: something has. */
bool watch_take(struct fleet_watch *w, uint64_t wait_ns);
const struct watch *watch_picture(const struct fleet_watch *w); /* lent */

/* One message into the picture, as if heard; for tests and fuzzing. False: not understood. */
bool watch_hear(struct watch *picture, const struct subject_space *space, const char *subject,
                struct bytes data);
FALLIBLE watch_picture_init(struct watch *picture);
void watch_picture_done(struct watch *picture); /* for AUTO */

/* What the device did in the last minute (less, if there was less): each account, and compute as a whole, which counts a
 * proof that is not finished. shares sum to wall_ns. */
struct watch_minute {
    uint64_t wall_ns, compute_ns;
    uint64_t
        ns[LEDGER_ACCOUNTS_COUNT]; /* compute.* as booked in the time, perhaps for longer than it */
};
/* Overdue by eight seconds, by the clocks of both. A lane speaks each second to those who listen; of one that has not yet spoken while we
 * did, only what the stream keeps is known, and that comes every tenth second. */
bool watch_is_silent(const struct watch_lane *lane, uint64_t now_ms);
struct watch_minute watch_minute_of(const struct watch_lane *lane);
/* A bar of exactly `cells` letters, each cause as long as its share; NUL-terminated. */
void watch_bar(char *out, size_t cells, const struct watch_minute *minute);
char watch_letter(enum ledger_account account); /* '#' for all that computes */
uint64_t watch_counter(const struct watch_number *numbers, size_t count,
                       const char *name); /* 0: absent */
const struct watch_job *watch_find_job(const struct watch *picture, const char *tenant,
                                       const char *job);
