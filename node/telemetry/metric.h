/* Metrics: numbers that threads count up and a scraper reads.
 *
 * A block is a flat array of atomic cells, laid out by the table, so it can lie in memory that two processes share: a lane counts
 * into a block that its supervisor made and serves. What was counted survives the lane's process, and counters never fall when a lane
 * starts anew.
 *
 *     metric_add(block, METRIC_PARTITIONS, METRIC_OUTCOME_DONE, 1);
 *     metric_set(block, METRIC_MEMORY_USED, METRIC_MEMORY_KEYS, bytes);
 *     metric_observe(block, METRIC_STEP, SPAN_DECODE, ns);
 *
 * NULL for a block is fine everywhere: nobody counts.
 *
 * Owner    a block's memory is its maker's: heap, or pages that processes share.
 * Threads  any, without locks. A reader may see a histogram between its bucket and its sum; its count is the sum of its buckets.
 * Units    as the table's unit says; the text shows seconds, bytes, ratios.
 */
#pragma once
#include "node/base/text.h"
#include "node/telemetry/ledger.h"
#include "node/telemetry/metric_table.h"
#include "node/telemetry/span.h"

enum metric {
#define METRIC_ENUM(id, kind, scope, name, unit, label, sentence) METRIC_##id,
    METRIC_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        METRICS_COUNT
};

#define METRIC_OUTCOME_ENUM(id, text)    METRIC_OUTCOME_##id,
#define METRIC_LANE_STATE_ENUM(id, text) METRIC_LANE_STATE_##id,
#define METRIC_MEMORY_ENUM(id, text)     METRIC_MEMORY_##id,
#define METRIC_CLOCK_ENUM(id, text)      METRIC_CLOCK_##id,
#define METRIC_DIRECTION_ENUM(id, text)  METRIC_DIRECTION_##id,
#define METRIC_LINK_ENUM(id, text)       METRIC_LINK_##id,
#define METRIC_PART_STATE_ENUM(id, text) METRIC_PART_STATE_##id,
#define METRIC_PRIORITY_ENUM(id, text)   METRIC_PRIORITY_##id,
#define METRIC_FLEET_ENUM(id, text)      METRIC_FLEET_##id,
#define METRIC_DECISION_ENUM(id, text)   METRIC_DECISION_##id,
#define METRIC_STORE_ENUM(id, text)      METRIC_STORE_##id,
enum { METRIC_OUTCOMES(METRIC_OUTCOME_ENUM) METRIC_OUTCOME_COUNT };
enum { METRIC_LANE_STATES(METRIC_LANE_STATE_ENUM) METRIC_LANE_STATE_COUNT };
enum { METRIC_MEMORIES(METRIC_MEMORY_ENUM) METRIC_MEMORY_COUNT };
enum { METRIC_CLOCKS(METRIC_CLOCK_ENUM) METRIC_CLOCK_COUNT };
enum { METRIC_DIRECTIONS(METRIC_DIRECTION_ENUM) METRIC_DIRECTION_COUNT };
enum { METRIC_LINKS(METRIC_LINK_ENUM) METRIC_LINK_COUNT };
enum { METRIC_PART_STATES(METRIC_PART_STATE_ENUM) METRIC_PART_STATE_COUNT };
enum { METRIC_PRIORITIES(METRIC_PRIORITY_ENUM) METRIC_PRIORITY_COUNT };
enum { METRIC_FLEET(METRIC_FLEET_ENUM) METRIC_FLEET_LANES_COUNT };
enum { METRIC_DECISIONS(METRIC_DECISION_ENUM) METRIC_DECISION_COUNT };
enum { METRIC_STORES(METRIC_STORE_ENUM) METRIC_STORE_COUNT };
enum {
    METRIC_NONE_COUNT = 1,
    METRIC_ACCOUNT_COUNT = LEDGER_ACCOUNTS_COUNT,
    METRIC_STEP_COUNT = SPAN_STEPS_COUNT
};

enum metric_scope { METRIC_SCOPE_LANE, METRIC_SCOPE_COORDINATOR };

enum { METRIC_BUCKETS = 16 /* bounds; one more cell for what is above, one for the sum */ };
#define METRIC_CELLS_COUNTER   1
#define METRIC_CELLS_GAUGE     1
#define METRIC_CELLS_HISTOGRAM (METRIC_BUCKETS + 2)
enum {
#define METRIC_PLACE(id, kind, scope, name, unit, label, sentence)                                 \
    METRIC_AT_##id,                                                                                \
        METRIC_LAST_##id = METRIC_AT_##id + METRIC_CELLS_##kind * METRIC_##label##_COUNT - 1,
    METRIC_TABLE(METRIC_PLACE)
#undef METRIC_PLACE
        METRIC_CELLS_COUNT
};

struct metric_block {
    _Atomic uint64_t cells[METRIC_CELLS_COUNT];
    /* For the labels of bellows_lane_info: written by the lane before it raises `named`. */
    char device[96], backend[16], session[40];
    _Atomic uint32_t named;
};

/* A gauge that is not known now: not shown. Fresh blocks hold 0 in counters and histograms, this in gauges. */
#define METRIC_UNKNOWN UINT64_MAX
void metric_block_init(struct metric_block *b);

void metric_add(struct metric_block *b, enum metric metric, int label,
                uint64_t value); /* counters */
void metric_set(struct metric_block *b, enum metric metric, int label, uint64_t value); /* gauges */
/* One value of a histogram, in nanoseconds. */
void metric_observe(struct metric_block *b, enum metric metric, int label, uint64_t ns);
uint64_t metric_get(const struct metric_block *b, enum metric metric,
                    int label); /* the first cell */

/* Counts a total of the process into a counter that outlives it: adds what came since the last call. *last: 0 at first. */
void metric_follow(struct metric_block *b, enum metric metric, int label, uint64_t *last,
                   uint64_t total);

/* --- The text that Prometheus reads (exposition format 0.0.4) --- */

enum { METRIC_LABELS_BYTES = 160 };
struct metric_source {
    const struct metric_block *block;
    char labels[METRIC_LABELS_BYTES]; /* `node="w1",gpu="0"`, values escaped; may be empty */
};
/* Every metric of the scope, each family once with all its sources; the info metrics first. */
void metrics_text(struct text *out, enum metric_scope scope, const struct metric_source *sources,
                  size_t sources_count);
/* A label's value with backslash, quote and line break escaped, cut to fit. */
const char *metric_escape(char *out, size_t out_bytes, const char *value);

/* --- Shared blocks: an anonymous file that a child process inherits --- */

/* *fd is inherited by children; both are the caller's: metric_block_unmap, close. */
FALLIBLE metric_block_share(struct metric_block **out, int *fd);
FALLIBLE metric_block_map(struct metric_block **out, int fd); /* in the child; fd is closed */
void metric_block_unmap(struct metric_block **b);             /* for AUTO */
