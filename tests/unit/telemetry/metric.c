/* What is counted is what is shown, in the form that Prometheus reads; names follow its conventions; blocks outlive processes. */
#include "node/telemetry/metric.h"
#include "tests/check/check.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct metric_block block;

static struct metric_source source_of(const struct metric_block *b, const char *labels) {
    struct metric_source s = {.block = b};
    snprintf(s.labels, sizeof s.labels, "%s", labels);
    return s;
}

static char *page_of(enum metric_scope scope, const struct metric_source *sources, size_t count) {
    static struct text page;
    text_free(&page);
    page = (struct text){0};
    metrics_text(&page, scope, sources, count);
    CHECK_OK(text_done(&page));
    return page.ptr;
}

static void claim_shown(void) {
    metric_block_init(&block);
    metric_add(&block, METRIC_LEDGER, LEDGER_WAIT_DECODE, 1500000000);
    metric_add(&block, METRIC_PARTITIONS, METRIC_OUTCOME_DONE, 2);
    metric_set(&block, METRIC_MEMORY_USED, METRIC_MEMORY_KEYS, 4096);
    metric_set(&block, METRIC_POWER, 0, 123456);
    struct metric_source s = source_of(&block, "node=\"w1\",gpu=\"0\"");
    const char *page = page_of(METRIC_SCOPE_LANE, &s, 1);
    CHECK_HAS(page, "\n# TYPE bellows_ledger_seconds_total counter\n");
    CHECK_HAS(page, "\nbellows_ledger_seconds_total{node=\"w1\",gpu=\"0\",account=\"wait.decode\"} "
                    "1.500000000\n");
    CHECK_HAS(page, "\nbellows_partitions_total{node=\"w1\",gpu=\"0\",outcome=\"done\"} 2\n");
    CHECK_HAS(page, "\nbellows_memory_used_bytes{node=\"w1\",gpu=\"0\",memory=\"keys\"} 4096\n");
    CHECK_HAS(page, "\nbellows_device_power_watts{node=\"w1\",gpu=\"0\"} 123.456\n");
    CHECK(!strstr(page, "memory=\"pinned\"")); /* a gauge that nobody set */
    CHECK(!strstr(page, "bellows_jobs_open")); /* the other scope's */
}

static void claim_histogram(void) {
    metric_block_init(&block);
    static const uint64_t values_ns[] = {0, 500000, 500001, 9999999, 10000000, 400000000000};
    for (size_t i = 0; i < COUNT_OF(values_ns); i++) {
        metric_observe(&block, METRIC_PARTITION, 0, values_ns[i]);
    }
    struct metric_source s = source_of(&block, "");
    const char *page = page_of(METRIC_SCOPE_LANE, &s, 1);
    CHECK_HAS(page, "\nbellows_partition_duration_seconds_bucket{le=\"0.0005\"} 2\n");
    CHECK_HAS(page, "\nbellows_partition_duration_seconds_bucket{le=\"0.001\"} 3\n");
    CHECK_HAS(page, "\nbellows_partition_duration_seconds_bucket{le=\"0.01\"} 5\n");
    CHECK_HAS(page, "\nbellows_partition_duration_seconds_bucket{le=\"300\"} 5\n");
    CHECK_HAS(page, "\nbellows_partition_duration_seconds_bucket{le=\"+Inf\"} 6\n");
    CHECK_HAS(page, "\nbellows_partition_duration_seconds_sum 400.021000000\n");
    CHECK_HAS(page, "\nbellows_partition_duration_seconds_count 6\n");
}

static void claim_families(void) {
    static struct metric_block second;
    metric_block_init(&block);
    metric_block_init(&second);
    metric_add(&second, METRIC_DEVICE_ERRORS, 0, 9);
    struct metric_source sources[2] = {source_of(&block, "gpu=\"0\""),
                                       source_of(&second, "gpu=\"1\"")};
    const char *page = page_of(METRIC_SCOPE_LANE, sources, 2);
    CHECK_HAS(
        page,
        "# TYPE bellows_device_errors_total counter\n"
        "bellows_device_errors_total{gpu=\"0\"} 0\nbellows_device_errors_total{gpu=\"1\"} 9\n");
    const char *first = strstr(page, "# TYPE bellows_device_errors_total");
    CHECK(first && !strstr(first + 1, "# TYPE bellows_device_errors_total"));
}

/* The conventions that promtool would hold us to, and two of our own: base units only, one prefix. */
static void check_name(const char *name, const char *kind) {
    size_t len = strlen(name);
    bool total = len > 6 && !strcmp(name + len - 6, "_total");
    CHECK_MSG(!strncmp(name, "bellows_", 8), "%s has no prefix", name);
    CHECK_MSG(total == !strcmp(kind, "counter"), "%s is a %s", name, kind);
    for (const char *p = name; *p; p++) {
        CHECK_MSG(islower((unsigned char)*p) || *p == '_', "%s has a character %c", name, *p);
    }
    static const char *const bad[] = {"_ns", "milli", "_ms", "kilo", "_mega", "percent", "minutes"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_MSG(!strstr(name, bad[i]), "%s is not in a base unit", name);
    }
}

static void claim_conventions(void) {
    metric_block_init(&block);
    struct metric_source s = source_of(&block, "");
    int families = 0;
    for (int scope = METRIC_SCOPE_LANE; scope <= METRIC_SCOPE_COORDINATOR; scope++) {
        const char *page = page_of((enum metric_scope)scope, &s, 1);
        for (const char *at = page; (at = strstr(at, "# TYPE ")); at++) {
            char name[128], kind[32], help[160];
            CHECK_EQ(2, sscanf(at, "# TYPE %127s %31s", name, kind));
            check_name(name, kind);
            snprintf(help, sizeof help, "# HELP %s ", name);
            CHECK_MSG(strstr(page, help), "%s has no sentence", name);
            families++;
        }
    }
    CHECK(families >= METRICS_COUNT);
}

static void claim_follow(void) {
    uint64_t last = 0;
    metric_block_init(&block);
    metric_follow(&block, METRIC_CPU, 0, &last, 100);
    metric_follow(&block, METRIC_CPU, 0, &last, 130);
    metric_follow(&block, METRIC_CPU, 0, &last, 130);
    CHECK_EQ(130, metric_get(&block, METRIC_CPU, 0));
    last = 0; /* a new process counts from zero */
    metric_follow(&block, METRIC_CPU, 0, &last, 20);
    CHECK_EQ(150, metric_get(&block, METRIC_CPU, 0));
}

static void claim_shared(void) {
    AUTO(metric_block_unmap) struct metric_block *ours = NULL;
    int fd, status;
    CHECK_OK(metric_block_share(&ours, &fd));
    pid_t pid = fork();
    if (pid == 0) {
        struct metric_block *b = NULL;
        if (metric_block_map(&b, fd) != OK) {
            _exit(1);
        }
        metric_add(b, METRIC_STEP_BYTES, SPAN_FETCH, 42);
        snprintf(b->device, sizeof b->device, "cpu \"x\"\n");
        atomic_store(&b->named, 1);
        _exit(0);
    }
    CHECK_EQ(pid, waitpid(pid, &status, 0));
    CHECK_EQ(0, status);
    close(fd);
    CHECK_EQ(42, metric_get(ours, METRIC_STEP_BYTES, SPAN_FETCH));
    struct metric_source s = source_of(ours, "gpu=\"0\"");
    CHECK_HAS(page_of(METRIC_SCOPE_LANE, &s, 1),
              "bellows_lane_info{gpu=\"0\",device=\"cpu \\\"x\\\"\\n\",");
}

static void claim_strange_descriptors(void) {
    struct metric_block *b = NULL;
    int ends[2];
    CHECK_EQ(0, pipe(ends));
    CHECK_ERR(E_IO, metric_block_map(&b, ends[0]));
    close(ends[1]);
    CHECK(!b);
}

static void claim_nobody(void) {
    metric_add(NULL, METRIC_PARTITIONS, METRIC_OUTCOME_STALE, 1);
    metric_set(NULL, METRIC_LANES, METRIC_FLEET_OPEN, 1);
    metric_observe(NULL, METRIC_STEP, SPAN_STORE, 1);
    CHECK_EQ(0, metric_get(NULL, METRIC_LANES, METRIC_FLEET_OPEN));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"counters and gauges are shown with their labels, in base units", claim_shown},
        {"a histogram's buckets add up, and each bound belongs to its bucket", claim_histogram},
        {"a family stands once, with all its sources", claim_families},
        {"names follow the conventions and each has a sentence", claim_conventions},
        {"a counter does not fall when its process starts anew", claim_follow},
        {"a block is counted into by another process", claim_shared},
        {"a descriptor that is no block is refused", claim_strange_descriptors},
        {"where nobody counts nothing happens", claim_nobody},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
