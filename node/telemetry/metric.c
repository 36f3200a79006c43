/* Cells by table. A histogram's cells are its buckets (each value in one bucket only), what is above the last bound, and the sum;
 * the cumulated counts that the text wants are added up when it is written.
 *
 * The bounds span what steps take: a decode of a small witness is under a millisecond, a proof of 2^27 constraints half a minute.
 */
#include "node/telemetry/metric.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/version.h"

enum kind { COUNTER, GAUGE, HISTOGRAM };
enum unit { PLAIN, NANOSECONDS, MILLI };
enum list {
    NONE,
    ACCOUNT,
    STEP,
    OUTCOME,
    LANE_STATE,
    MEMORY,
    CLOCK,
    DIRECTION,
    LINK,
    PART_STATE,
    PRIORITY,
    FLEET_LANES,
    DECISION,
    STORE
};
enum { SCOPE_LANE = METRIC_SCOPE_LANE, SCOPE_COORDINATOR = METRIC_SCOPE_COORDINATOR };

static const uint64_t bounds_ns[METRIC_BUCKETS] = {
    500000,     1000000,     2500000,     5000000,      10000000,   25000000,
    50000000,   100000000,   250000000,   500000000,    1000000000, 2500000000,
    5000000000, 15000000000, 60000000000, 300000000000,
};
static const char *const bounds_text[METRIC_BUCKETS] = {
    "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1",
    "0.25",   "0.5",   "1",      "2.5",   "5",    "15",    "60",   "300",
};

struct row {
    const char *name, *sentence;
    enum kind kind;
    enum unit unit;
    enum list list;
    int scope, labels_count;
    size_t at; /* first cell */
};
static const struct row rows[METRICS_COUNT] = {
#define METRIC_ROW(id, kind, scope, name, unit, label, sentence)                                   \
    [METRIC_##id] = {                                                                              \
        name, sentence, kind, unit, label, SCOPE_##scope, METRIC_##label##_COUNT, METRIC_AT_##id},
    METRIC_TABLE(METRIC_ROW)
#undef METRIC_ROW
};

#define METRIC_TEXT(id, text) text,
static const char *const outcomes[] = {METRIC_OUTCOMES(METRIC_TEXT)};
static const char *const lane_states[] = {METRIC_LANE_STATES(METRIC_TEXT)};
static const char *const memories[] = {METRIC_MEMORIES(METRIC_TEXT)};
static const char *const clocks[] = {METRIC_CLOCKS(METRIC_TEXT)};
static const char *const directions[] = {METRIC_DIRECTIONS(METRIC_TEXT)};
static const char *const link_ends[] = {METRIC_LINKS(METRIC_TEXT)};
static const char *const part_states[] = {METRIC_PART_STATES(METRIC_TEXT)};
static const char *const priorities[] = {METRIC_PRIORITIES(METRIC_TEXT)};
static const char *const fleet_lanes[] = {METRIC_FLEET(METRIC_TEXT)};
static const char *const decisions[] = {METRIC_DECISIONS(METRIC_TEXT)};
static const char *const stores[] = {METRIC_STORES(METRIC_TEXT)};

static const struct {
    const char *name;
    const char *const *values; /* NULL: from their own table */
} lists[] = {
    [NONE] = {"", NULL},
    [ACCOUNT] = {"account", NULL},
    [STEP] = {"step", NULL},
    [OUTCOME] = {"outcome", outcomes},
    [LANE_STATE] = {"state", lane_states},
    [MEMORY] = {"memory", memories},
    [CLOCK] = {"clock", clocks},
    [DIRECTION] = {"direction", directions},
    [LINK] = {"link", link_ends},
    [PART_STATE] = {"state", part_states},
    [PRIORITY] = {"priority", priorities},
    [FLEET_LANES] = {"state", fleet_lanes},
    [DECISION] = {"decision", decisions},
    [STORE] = {"store", stores},
};

static const char *label_value(enum list list, int label) {
    switch (list) {
    case ACCOUNT:
        return ledger_account_name((enum ledger_account)label);
    case STEP:
        return span_step_name((enum span_step)label);
    default:
        return lists[list].values[label];
    }
}

/* --- Counting --- */

void metric_block_init(struct metric_block *b) {
    memset(b, 0, sizeof *b);
    for (int i = 0; i < METRICS_COUNT; i++) {
        for (int k = 0; rows[i].kind == GAUGE && k < rows[i].labels_count; k++) {
            atomic_store_explicit(&b->cells[rows[i].at + (size_t)k], METRIC_UNKNOWN,
                                  memory_order_relaxed);
        }
    }
}

static size_t cell_of(enum metric metric, int label, enum kind kind) {
    ASSERT(metric < METRICS_COUNT && rows[metric].kind == kind);
    ASSERT(label >= 0 && label < rows[metric].labels_count);
    size_t each = kind == HISTOGRAM ? METRIC_BUCKETS + 2 : 1;
    return rows[metric].at + (size_t)label * each;
}

void metric_add(struct metric_block *b, enum metric metric, int label, uint64_t value) {
    size_t cell = cell_of(metric, label, COUNTER);
    if (b) {
        atomic_fetch_add_explicit(&b->cells[cell], value, memory_order_relaxed);
    }
}

void metric_set(struct metric_block *b, enum metric metric, int label, uint64_t value) {
    size_t cell = cell_of(metric, label, GAUGE);
    if (b) {
        atomic_store_explicit(&b->cells[cell], value, memory_order_relaxed);
    }
}

void metric_observe(struct metric_block *b, enum metric metric, int label, uint64_t ns) {
    size_t cell = cell_of(metric, label, HISTOGRAM), bucket = 0;
    while (bucket < METRIC_BUCKETS && ns > bounds_ns[bucket]) {
        bucket++;
    }
    if (b) {
        atomic_fetch_add_explicit(&b->cells[cell + METRIC_BUCKETS + 1], ns, memory_order_relaxed);
        atomic_fetch_add_explicit(&b->cells[cell + bucket], 1, memory_order_relaxed);
    }
}

uint64_t metric_get(const struct metric_block *b, enum metric metric, int label) {
    size_t cell = cell_of(metric, label, rows[metric].kind);
    return b ? atomic_load_explicit(&b->cells[cell], memory_order_relaxed) : 0;
}

void metric_follow(struct metric_block *b, enum metric metric, int label, uint64_t *last,
                   uint64_t total) {
    if (total > *last) {
        metric_add(b, metric, label, total - *last);
        *last = total;
    }
}

/* --- Text --- */

const char *metric_escape(char *out, size_t out_bytes, const char *value) {
    size_t at = 0;
    for (; *value && at + 2 < out_bytes; value++) {
        char c = *value;
        if (c == '\\' || c == '"' || c == '\n') {
            out[at++] = '\\';
            c = c == '\n' ? 'n' : c;
        }
        out[at++] = c;
    }
    out[at] = 0;
    return out;
}

static void add_value(struct text *out, enum unit unit, uint64_t value) {
    switch (unit) {
    case NANOSECONDS:
        text_addf(out, " %" PRIu64 ".%09" PRIu64 "\n", value / 1000000000, value % 1000000000);
        return;
    case MILLI:
        text_addf(out, " %" PRIu64 ".%03" PRIu64 "\n", value / 1000, value % 1000);
        return;
    case PLAIN:
        text_addf(out, " %" PRIu64 "\n", value);
        return;
    }
}

/* `{node="w1",gpu="0",step="decode",le="1"}`, or nothing. */
static void add_labels(struct text *out, const struct row *row, const struct metric_source *source,
                       int label, const char *bound) {
    const char *between = "{";
    if (source->labels[0]) {
        text_addf(out, "{%s", source->labels);
        between = ",";
    }
    if (row->list != NONE) {
        text_addf(out, "%s%s=\"%s\"", between, lists[row->list].name,
                  label_value(row->list, label));
        between = ",";
    }
    if (bound) {
        text_addf(out, "%sle=\"%s\"", between, bound);
        between = ",";
    }
    text_add(out, *between == ',' ? "}" : "");
}

static uint64_t load(const struct metric_source *source, size_t cell) {
    return atomic_load_explicit(&source->block->cells[cell], memory_order_relaxed);
}

static void add_plain(struct text *out, const struct row *row, const struct metric_source *source,
                      int label) {
    uint64_t value = load(source, row->at + (size_t)label);
    if (row->kind == GAUGE && value == METRIC_UNKNOWN) {
        return;
    }
    text_add(out, row->name);
    add_labels(out, row, source, label, NULL);
    add_value(out, row->unit, value);
}

static void add_histogram(struct text *out, const struct row *row,
                          const struct metric_source *source, int label) {
    size_t cell = row->at + (size_t)label * (METRIC_BUCKETS + 2);
    uint64_t count = 0;
    for (size_t i = 0; i <= METRIC_BUCKETS; i++) {
        count += load(source, cell + i);
        text_addf(out, "%s_bucket", row->name);
        add_labels(out, row, source, label, i < METRIC_BUCKETS ? bounds_text[i] : "+Inf");
        add_value(out, PLAIN, count);
    }
    text_addf(out, "%s_sum", row->name);
    add_labels(out, row, source, label, NULL);
    add_value(out, NANOSECONDS, load(source, cell + METRIC_BUCKETS + 1));
    text_addf(out, "%s_count", row->name);
    add_labels(out, row, source, label, NULL);
    add_value(out, PLAIN, count);
}

static void add_info(struct text *out, enum metric_scope scope, const struct metric_source *sources,
                     size_t sources_count) {
    text_add(out, "# HELP bellows_build_info What serves this page; always 1.\n# TYPE "
                  "bellows_build_info gauge\n");
    text_addf(out, "bellows_build_info{version=\"%s\",commit=\"%s\"} 1\n", BELLOWS_VERSION,
              BELLOWS_COMMIT);
    if (scope != METRIC_SCOPE_LANE) {
        return;
    }
    text_add(out, "# HELP bellows_lane_info What the lane computes on; always 1.\n# TYPE "
                  "bellows_lane_info gauge\n");
    for (size_t i = 0; i < sources_count; i++) {
        const struct metric_block *b = sources[i].block;
        char device[2 * sizeof b->device], session[2 * sizeof b->session],
            backend[2 * sizeof b->backend];
        if (atomic_load(&b->named)) {
            text_addf(out, "bellows_lane_info{%s,device=\"%s\",backend=\"%s\",session=\"%s\"} 1\n",
                      sources[i].labels, metric_escape(device, sizeof device, b->device),
                      metric_escape(backend, sizeof backend, b->backend),
                      metric_escape(session, sizeof session, b->session));
        }
    }
}

void metrics_text(struct text *out, enum metric_scope scope, const struct metric_source *sources,
                  size_t sources_count) {
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    add_info(out, scope, sources, sources_count);
    for (int m = 0; m < METRICS_COUNT; m++) {
        const struct row *row = &rows[m];
        if (row->scope != (int)scope) {
            continue;
        }
        text_addf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->sentence, row->name,
                  kinds[row->kind]);
        for (size_t s = 0; s < sources_count; s++) {
            for (int label = 0; label < row->labels_count; label++) {
                if (row->kind == HISTOGRAM) {
                    add_histogram(out, row, &sources[s], label);
                } else {
                    add_plain(out, row, &sources[s], label);
                }
            }
        }
    }
}

/* --- Shared --- */

static enum err map(struct metric_block **out, int fd) {
    struct stat st;
    REQUIRE(fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(struct metric_block), E_IO,
            "descriptor %d is no block of metrics of this build", fd);
    void *at = mmap(NULL, sizeof(struct metric_block), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(at != MAP_FAILED, E_IO, "metrics cannot be mapped: %s", strerror(errno));
    *out = at;
    return OK;
}

enum err metric_block_share(struct metric_block **out, int *fd) {
    int file = memfd_create("bellows-metrics", 0); /* children inherit it */
    REQUIRE(file >= 0, E_IO, "no shared memory for metrics: %s", strerror(errno));
    enum err code = ftruncate(file, (off_t)sizeof(struct metric_block)) == 0
                        ? map(out, file)
                        : err_set(E_IO, "no shared memory for metrics: %s", strerror(errno));
    if (code != OK) {
        close(file);
        return code;
    }
    metric_block_init(*out);
    *fd = file;
    return OK;
}

enum err metric_block_map(struct metric_block **out, int fd) {
    enum err code = map(out, fd);
    close(fd);
    return code;
}

void metric_block_unmap(struct metric_block **b) {
    if (*b) {
        munmap(*b, sizeof **b);
        *b = NULL;
    }
}
