/* Chaos: a fleet of processes, submitters that never stop, and a plan of troubles drawn from a seed. Whatever happens, every job that
 * the server took gets exactly one result, and nothing is left over.
 *
 *   chaos [--seconds N] [--seed S] [--jobs-per-second R] [--kept RECORDS] [--open JOBS] [--only TEXT]
 *
 * The plan is printed before it begins; the same seed and span give the same plan and the same errands. What they meet depends on the
 * machine's timing, so a seed repeats the pressure, not each interleaving: run it several times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/chaos/audit.h"
#include "tests/chaos/measure.h"
#include "tests/chaos/world.h"

#define SECOND UINT64_C(1000000000)
static const uint64_t SETTLE_NS = 45 * SECOND;

static struct {
    uint64_t span_ns, seed;
    double jobs_per_second;
} asked = {.span_ns = 60 * SECOND, .jobs_per_second = 6};

static void print_plan(struct world *w, const struct plan_size *size) {
    char text[160];
    printf("plan     seed %llu, %.0f s, %u troubles\n", (unsigned long long)asked.seed,
           (double)asked.span_ns / 1e9, w->events_count);
    for (unsigned i = 0; i < w->events_count; i++) {
        chaos_event_text(text, sizeof text, &w->events[i], size);
        printf("  %s\n", text);
    }
    fflush(stdout);
}

static void print_summary(const struct world *w, const struct traffic *t, const struct audit *a) {
    printf("troubles ");
    for (int i = 0; i < TROUBLES_COUNT; i++) {
        printf("%s%s %u", i ? ", " : "", trouble_label((enum trouble_kind)i), w->counts[i]);
    }
    printf("; %u met nothing\n", w->skipped_count);
    printf(
        "jobs     %zu sent, %llu sends repeated: %u proved, %u failed as they must, %u cancelled, "
        "%u expired, %u dead\n",
        t->errands_count, (unsigned long long)t->repeats_count, a->proved, a->failed, a->cancelled,
        a->expired, a->dead);
    printf(
        "left     %u bodies of jobs that ended, %u that no job came for, %u stranded messages; %u "
        "processes ended by "
        "themselves\n",
        a->orphans_count, a->litter_count, a->stranded_count, w->ended_count);
    fflush(stdout);
}

static bool nobody_left(void *dir) {
    return processes_with(dir) == 0;
}

static void claim_chaos(void) {
    struct plan_size size = {asked.span_ns, COORDINATORS, NODES, LANES_PER_NODE};
    struct rng rng = rng_seeded(asked.seed);
    struct audit audit = {0};
    char dir[256], url[96];
    struct world *w = mem_zero_alloc(1, sizeof *w);
    struct traffic *t = mem_zero_alloc(1, sizeof *t);
    CHECK(w && t);
    unsigned events_count = chaos_plan(w->events, &rng, &size);
    world_start(w);
    w->events_count = events_count;
    print_plan(w, &size);
    printf("logs     %s\n", w->host.dir);
    snprintf(url, sizeof url, "nats://127.0.0.1:%u", wire_port(w->wires, SUBMITTER_WIRE));
    traffic_start(t, &w->host, url, rng_u64(&rng), asked.jobs_per_second);
    w->started_ns = clock_ns();
    while (clock_ns() - w->started_ns < asked.span_ns) {
        world_step(w);
        clock_sleep_ns(SECOND / 100);
    }
    world_heal(w);
    traffic_stop(t, SETTLE_NS / 2);
    audit_settle(&audit, &w->host, SETTLE_NS);
    audit_book(&audit, &w->host, t);
    print_summary(w, t, &audit);
    CHECK_MSG(t->fault.code == OK, "a submitter saw %s: %s", err_name(t->fault.code),
              t->fault.detail);
    CHECK_MSG(w->crashes_count == 0, "%u crashes: %s; logs in %s", w->crashes_count, w->crash,
              w->host.dir);
    CHECK_MSG(audit.faults_count == 0, "%u faults, the first: %s; logs in %s", audit.faults_count,
              audit.first, w->host.dir);
    snprintf(dir, sizeof dir, "%s", w->host.dir);
    world_stop(w);
    host_stop(&w->host);
    wait_until(nobody_left, dir, "no process of the fleet is left");
    mem_free(w);
    mem_free(t);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"chaos: every promised job has one result that verifies, nothing is left over",
         claim_chaos},
        {"a full disk refuses jobs with a clear error and loses none that it took",
         claim_full_disk},
        {"a stand-by leads within 6 s of the leader's kill", claim_failover},
        {"a killed lane's job runs elsewhere within 4 s, a killed node's too", claim_dead_lane},
        {"an idle fleet has a job on a lane in milliseconds", claim_latency},
    };
    const char *left[8] = {argv[0]};
    char seed[24];
    int left_count = 1;
    if (rng_os(&asked.seed, sizeof asked.seed) != OK) {
        asked.seed = 1;
    }
    asked.seed >>= 32; /* short enough to be typed */
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (more && !strcmp(argv[i], "--seconds")) {
            asked.span_ns = strtoull(argv[++i], NULL, 10) * SECOND;
        } else if (more && !strcmp(argv[i], "--seed")) {
            asked.seed = strtoull(argv[++i], NULL, 0);
        } else if (more && !strcmp(argv[i], "--jobs-per-second")) {
            asked.jobs_per_second = strtod(argv[++i], NULL);
        } else if (more && !strcmp(argv[i], "--kept")) {
            measure_kept = (unsigned)strtoul(argv[++i], NULL, 10);
        } else if (more && !strcmp(argv[i], "--open")) {
            measure_open = (unsigned)strtoul(argv[++i], NULL, 10);
        } else if (left_count < 4) {
            left[left_count++] = argv[i];
        }
    }
    if (asked.span_ns < 5 * SECOND || !(asked.jobs_per_second > 0)) {
        fprintf(stderr,
                "usage: %s [--seconds N, at least 5] [--seed S] [--jobs-per-second R] "
                "[--kept RECORDS] [--open JOBS] [--only TEXT] [--list]\n",
                argv[0]);
        return 2;
    }
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)asked.seed);
    left[left_count++] = "--seed";
    left[left_count++] = seed;
    return check_main(left_count, (char **)(uintptr_t)left, claims, COUNT_OF(claims));
}
