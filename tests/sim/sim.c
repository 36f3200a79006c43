/* A large fleet in real time on one machine: a real nats-server, a real coordinator process, and one process with all lanes (hall.h) and
 * submitters (load.h).
 *
 *   sim [--lanes N] [--jobs M] [--seed S] [--mean-ms T] [--sigma G] [--load F] [--limit-seconds L] [--idle 1] [--device-ppm P] …
 *
 * First a fifth of the lanes' capacity for a while: how long from submit to lane when lanes are idle. Then M jobs at F times the
 * capacity (0: as fast as they can be sent), until every one has its result: how much of the lanes' time is lost while jobs wait.
 * With --partitions N each of the M jobs has N proofs; with --brings 1 lanes stage beside their device, as GPU lanes do: two such lanes and
 * milliseconds a proof show what server and coordinator carry; --least-per-second N fails below so many proofs a second.
 * With --servers N a cluster of N, three copies of each control stream. With --leaf 1 or --gateway 1 lanes and submitters are at another
 * site, behind a leaf node or in the other cluster of a supercluster; with --line-ms T each piece to the coordinator's server and
 * back, of each of their connections or of the leaf's one, is under way for T.
 * With --idle only the first, of M jobs that all take the mean: also what the fleet adds between submit and result.
 *
 * The makespan is compared with two bounds: all the work divided by the lanes, or the longest job, which no schedule beats; and one
 * common line from which each lane takes its next job with no delay. The line is the best that can be done without knowing how long
 * jobs take: whatever order is chosen, the longest may come last, so up to one job lies between the bounds (Graham 1966: at most
 * 2 - 1/lanes times the optimum; no rule that neither knows the times nor interrupts jobs has a better factor). With a wide spread
 * (--sigma 1 and more) that tail, not the coordinator, is most of the distance. Longest first would need times that nobody has: all
 * keys here are alike, and the coordinator knows no more of a job than its key.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/transport/fleet.h"
#include "proto/fleet.pb-c.h"
#include "tests/sim/hall.h"
#include "tests/sim/load.h"
#include "tests/sim/servers.h"

#define SECOND UINT64_C(1000000000)
/* The first jobs teach the fleet its keys, every key at least once; they are not counted. */
enum { WARM_JOBS = LOAD_TURN * SIM_KEYS, LATENCY_JOBS = WARM_JOBS + 200, LANES_PER_NODE = 8 };
static const uint64_t LOOK_NS = SECOND / 50, COUNT_NS = SECOND / 5, TELL_NS = 10 * SECOND;
static const double LATENCY_LOAD = 0.2;

static struct {
    double lanes, jobs, seed, mean_ms, sigma, load, limit_s, load_ms, device_ppm, stuck_ppm,
        wrong_ppm, idle, servers, leaf, gateway, line_ms, partitions, brings, least_per_s;
} asked = {.lanes = 50,
           .jobs = 1500,
           .seed = 1,
           .mean_ms = 1000,
           .sigma = 0.5,
           .load = 1.5,
           .limit_s = 720,
           .load_ms = 300,
           .servers = 1,
           .partitions = 1};

static const struct {
    const char *name;
    double *value;
    double least, most;
} arguments[] = {
    {"--lanes", &asked.lanes, 1, 4000},
    {"--jobs", &asked.jobs, 1, 1000000},
    {"--seed", &asked.seed, 0, 4294967295.0},
    {"--mean-ms", &asked.mean_ms, 1, 3600000},
    {"--sigma", &asked.sigma, 0, 2},
    {"--load", &asked.load, 0, 100},
    {"--limit-seconds", &asked.limit_s, 10, 86400},
    {"--key-load-ms", &asked.load_ms, 0, 600000},
    {"--device-ppm", &asked.device_ppm, 0, 1000000},
    {"--stuck-ppm", &asked.stuck_ppm, 0, 1000000},
    {"--wrong-ppm", &asked.wrong_ppm, 0, 1000000},
    {"--idle", &asked.idle, 0, 1},
    {"--servers", &asked.servers, 1, SERVERS_MAX},
    {"--partitions", &asked.partitions, 1, JOB_PARTITIONS_MAX},
    {"--brings", &asked.brings, 0, 1},
    {"--leaf", &asked.leaf, 0, 1},
    {"--gateway", &asked.gateway, 0, 1},
    {"--line-ms", &asked.line_ms, 0, 1000},
    {"--least-per-second", &asked.least_per_s, 0, 1000000},
};

struct usage { /* of a process */
    double cpu_s, rss_mib;
};
struct usages {
    struct usage coordinator, server, own;
};

struct sim {
    struct host host;
    struct servers servers;
    struct sim_model model;
    struct sim_counts counts;
    struct hall *hall;
    struct load *load;
    struct transport *ear;                /* hears the assignments */
    struct subscription *lanes, *results; /* of it */
    uint64_t results_count;               /* the last that the server told */
    uint64_t jobs_count, all_count;
    uint64_t *sent_ns;             /* owned; by number, of all_count; latency jobs first */
    _Atomic uint64_t *placed_ns;   /* owned; the first time */
    _Atomic uint64_t *done_ns;     /* owned; the same */
    _Atomic uint64_t placed_count; /* assignments, repeats included */
    _Atomic uint64_t tenants_placed[SIM_TENANTS]; /* the same */
};

/* What a run has come to. */
struct outcome {
    double latency_p50_ms, latency_p99_ms, added_p50_ms, added_p99_ms;
    double makespan_s, work_bound_s, line_bound_s;
    double placed_per_s, placed_peak_per_s;
    double idle_share, fairness, fairness_s;
    double load_share, early_share,
        late_share; /* of the lanes' time: keys; no job yet; no job any more */
    struct usages used;
    bool cut; /* by the limit: what follows is of a part */
    uint64_t sent, proved;
    uint64_t results, replaced, done_records, restarts, backlog_most, intake_most;
    double loud_share; /* of s0, while all waited; equal shares: 0.1 */
};

/* --- Looking --- */

static struct usage usage_of(pid_t pid) {
    char path[64], line[1024];
    unsigned long user = 0, kernel = 0;
    struct usage u = {0};
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(line, sizeof line, file)) {
        const char *end = strrchr(line, ')');
        if (end && sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                          &kernel) == 2) {
            u.cpu_s = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
        }
    }
    if (file) {
        fclose(file);
    }
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (!strncmp(line, "VmHWM:", 6)) {
            u.rss_mib = strtod(line + 6, NULL) / 1024;
        }
    }
    if (file) {
        fclose(file);
    }
    return u;
}

static void on_assignment(void *ctx, struct message *m) {
    struct sim *s = ctx;
    AUTO(message_free) Bellows__V1__Assignment *a = NULL;
    AUTO(message_free) job_message *job = NULL;
    uint64_t number, none = 0;
    if (message_unpack(&a, &bellows__v1__assignment__descriptor, m->data, MESSAGE_BYTES_MAX,
                       "assignment") != OK ||
        job_unpack(&job, bytes_of(a->job.data, a->job.len), NULL, UINT64_MAX) != OK ||
        !load_number_of(&number, job->job_id) || number >= s->all_count) {
        return;
    }
    atomic_fetch_add(&s->placed_count, 1);
    atomic_compare_exchange_strong(&s->placed_ns[number], &none, clock_ns());
    atomic_fetch_add(&s->tenants_placed[load_tenant_of(number)], 1);
}

static void on_result(void *ctx, struct message *m) {
    struct sim *s = ctx;
    struct subject_parts parts;
    uint64_t number, none = 0;
    if (subject_parse(&parts, &s->host.user.space, m->subject) == OK &&
        load_number_of(&number, parts.job) && number < s->all_count) {
        atomic_compare_exchange_strong(&s->done_ns[number], &none, clock_ns());
    }
}

/* A server that is short of time may not answer: then it is what it was. */
static uint64_t stream_count(struct sim *s, const char *tail, uint64_t before) {
    struct stream_info info;
    struct subject name = stream_name(&s->host.user.space, tail);
    return stream_info(&info, s->host.user.link, name.text) == OK ? info.messages_count : before;
}

static uint64_t results_count(struct sim *s) {
    return s->results_count = stream_count(s, "DONE", s->results_count);
}

/* Of all servers together. */
static struct usage usage_of_servers(const struct sim *s) {
    struct usage all = usage_of(s->host.server.pid);
    for (unsigned i = 0; i < s->servers.others_count; i++) {
        struct usage one = usage_of(s->servers.others[i].pid);
        all.cpu_s += one.cpu_s;
        all.rss_mib += one.rss_mib;
    }
    return all;
}

static struct usages usages(const struct sim *s) {
    return (struct usages){usage_of(s->host.coordinator.pid), usage_of_servers(s),
                           usage_of(getpid())};
}

/* --- Setting up --- */

/* By the number of their entries: reading a thousand of them again and again would be a load of its own. */
static void wait_for_lanes(struct sim *s) {
    struct subject bucket = kv_bucket_name(&s->host.user.space, "lanes");
    char stream[SUBJECT_BYTES_MAX + 8];
    struct stream_info info = {0};
    uint64_t start_ns = clock_ns();
    snprintf(stream, sizeof stream, "KV_%s", bucket.text);
    while (stream_info(&info, s->host.user.link, stream) != OK ||
           info.messages_count < (uint64_t)asked.lanes) {
        CHECK_MSG(clock_ns() - start_ns < 120 * SECOND, "%" PRIu64 " of %.0f lanes are there",
                  info.messages_count, asked.lanes);
        clock_sleep_ns(COUNT_NS);
    }
}

static void start(struct sim *s) {
    char cache[400], tail[128], witness[128];
    struct ran ran;
    struct servers_options servers = {.count = (unsigned)asked.servers,
                                      .site = asked.leaf > 0      ? SITE_LEAF
                                              : asked.gateway > 0 ? SITE_GATEWAY
                                                                  : SITE_HERE,
                                      .line_ns = (uint64_t)(asked.line_ms * 1e6)};
    servers_start(&s->servers, &s->host, &servers);
    snprintf(cache, sizeof cache, "%s/remembered", s->host.dir);
    setenv("BELLOWS_CACHE", cache, 1);
    s->model = (struct sim_model){.mean_ns = (uint64_t)(asked.mean_ms * 1e6),
                                  .sigma = asked.sigma,
                                  .load_ns = (uint64_t)(asked.load_ms * 1e6),
                                  .device_ppm = (unsigned)asked.device_ppm,
                                  .stuck_ppm = (unsigned)asked.stuck_ppm,
                                  .wrong_ppm = (unsigned)asked.wrong_ppm,
                                  .brings = asked.brings > 0};
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        snprintf(tail, sizeof tail, "%s/circuit.zkey", sim_cases[i]);
        snprintf(witness, sizeof witness, "%s/witness.wtns", sim_cases[i]);
        CHECK_OK(sim_model_learn(&s->model, i, check_vectors(tail), check_vectors(witness)));
        host_run(&ran, &s->host, "key push @%s --allow-insecure-keys", tail);
        CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    }
    struct hall_options options = {.url = s->servers.site_url,
                                   .dir = s->host.dir,
                                   .lanes_count = (unsigned)asked.lanes,
                                   .lanes_per_node = LANES_PER_NODE,
                                   .model = &s->model,
                                   .counts = &s->counts,
                                   .seed = (uint64_t)asked.seed};
    uint64_t start_ns = clock_ns();
    CHECK_OK(hall_open(&s->hall, &options));
    wait_for_lanes(s);
    printf("lanes    %u on %u nodes, ready after %.1f s\n", options.lanes_count,
           (options.lanes_count + LANES_PER_NODE - 1) / LANES_PER_NODE,
           (double)(clock_ns() - start_ns) / 1e9);
    fflush(stdout);
    struct transport_options ear = {.url = s->servers.site_url};
    struct subscribe_options hear = {
        .handler = on_assignment, .handler_ctx = s, .pending_max = 1 << 20};
    struct subject filter = filter_lanes(&s->host.user.space);
    CHECK_OK(transport_open(&s->ear, &ear));
    CHECK_OK(transport_subscribe(&s->lanes, s->ear, filter.text, &hear));
    hear.handler = on_result;
    filter = filter_done(&s->host.user.space);
    CHECK_OK(transport_subscribe(&s->results, s->ear, filter.text, &hear));
    CHECK_OK(load_open(&s->load, s->servers.site_url, s->sent_ns));
}

/* Proofs a second. */
static double capacity(void) {
    return asked.lanes / (asked.mean_ms / 1e3);
}

static void wait_for_results(struct sim *s, uint64_t count, uint64_t limit_ns) {
    uint64_t start_ns = clock_ns();
    while (results_count(s) < count) {
        hall_step(s->hall);
        CHECK_MSG(clock_ns() - start_ns < limit_ns,
                  "%" PRIu64 " of %" PRIu64 " results after %.0f s", results_count(s), count,
                  (double)limit_ns / 1e9);
        clock_sleep_ns(COUNT_NS);
    }
}

/* --- Idle lanes --- */

static int compare_ns(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* From `sent` to `seen`, less `but_ns`: the middle, and the slowest hundredth; the first jobs are not counted. */
static void two_ranks(double *p50_ms, double *p99_ms, const struct sim *s,
                      const _Atomic uint64_t *seen, uint64_t jobs_count, uint64_t but_ns) {
    uint64_t count = jobs_count - WARM_JOBS, *ns = mem_zero_alloc(count, sizeof *ns);
    CHECK(ns);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t sent_ns = s->sent_ns[WARM_JOBS + i], seen_ns = atomic_load(&seen[WARM_JOBS + i]);
        CHECK_MSG(seen_ns > sent_ns, "job %" PRIu64 " was never seen to pass", WARM_JOBS + i);
        ns[i] = seen_ns - sent_ns > but_ns ? seen_ns - sent_ns - but_ns : 0;
    }
    qsort(ns, count, sizeof *ns, compare_ns);
    *p50_ms = (double)ns[count / 2] / 1e6;
    *p99_ms = (double)ns[count * 99 / 100] / 1e6;
    mem_free(ns);
}

static void measure_latency(struct sim *s, struct outcome *out, uint64_t jobs_count) {
    struct load_plan plan = {0, jobs_count, LATENCY_LOAD * capacity(), 1};
    CHECK_OK(load_start(s->load, &plan));
    CHECK_OK(load_stop(s->load));
    wait_for_results(s, jobs_count, 120 * SECOND);
    two_ranks(&out->latency_p50_ms, &out->latency_p99_ms, s, s->placed_ns, jobs_count, 0);
    if (asked.idle > 0) {
        two_ranks(&out->added_p50_ms, &out->added_p99_ms, s, s->done_ns, jobs_count,
                  s->model.mean_ns);
    }
}

/* --- Busy lanes --- */

struct watch { /* sums over the looks */
    uint64_t idle_ns, look_ns, second_ns, placed_second, fair_ns;
    uint64_t early_ns, late_ns; /* lanes idle, nothing waits: before all is sent, and after */
    uint64_t before[SIM_TENANTS],
        fair[SIM_TENANTS]; /* placed: at the last look, while all waited */
};

/* Partitions of the first `sent` jobs; those of the latency have one each. */
static uint64_t partitions_of(uint64_t jobs) {
    return jobs < LATENCY_JOBS ? jobs
                               : LATENCY_JOBS + (jobs - LATENCY_JOBS) * (uint64_t)asked.partitions;
}

static uint64_t tenant_sent(unsigned tenant, uint64_t jobs) {
    return (tenant == 0 ? LOAD_LOUD : 1) * partitions_of(jobs) / LOAD_TURN;
}

static void look(struct sim *s, struct watch *w, struct outcome *out, uint64_t passed_ns) {
    uint64_t sent = load_sent_count(s->load), busy = atomic_load(&s->counts.busy);
    uint64_t parts = partitions_of(sent), ended = atomic_load(&s->counts.ended);
    uint64_t open = parts > ended ? parts - ended : 0, waiting = open > busy ? open - busy : 0;
    uint64_t lanes = (uint64_t)asked.lanes, idle = lanes > busy ? lanes - busy : 0;
    bool all_wait = true;
    uint64_t lost = idle < waiting ? idle : waiting;
    w->idle_ns += lost * passed_ns;
    *(sent < s->all_count ? &w->early_ns : &w->late_ns) += (idle - lost) * passed_ns;
    w->look_ns += passed_ns;
    out->backlog_most = waiting > out->backlog_most ? waiting : out->backlog_most;
    for (unsigned t = 0; t < SIM_TENANTS; t++) {
        uint64_t placed = atomic_load(&s->tenants_placed[t]);
        all_wait &= placed + 4 < tenant_sent(t, sent);
    }
    for (unsigned t = 0; t < SIM_TENANTS; t++) {
        uint64_t placed = atomic_load(&s->tenants_placed[t]);
        w->fair[t] += all_wait ? placed - w->before[t] : 0;
        w->before[t] = placed;
    }
    w->fair_ns += all_wait ? passed_ns : 0;
    if ((w->second_ns += passed_ns) >= SECOND) {
        uint64_t placed = atomic_load(&s->placed_count);
        double rate = (double)(placed - w->placed_second) * 1e9 / (double)w->second_ns;
        out->placed_peak_per_s = rate > out->placed_peak_per_s ? rate : out->placed_peak_per_s;
        w->placed_second = placed;
        w->second_ns = 0;
    }
}

/* Jain: (Σx)² / (n Σx²); 1 when all got the same. */
static double fairness(const uint64_t *x) {
    double sum = 0, squares = 0;
    for (unsigned t = 0; t < SIM_TENANTS; t++) {
        sum += (double)x[t];
        squares += (double)x[t] * (double)x[t];
    }
    return squares > 0 ? sum * sum / (SIM_TENANTS * squares) : 1;
}

/* Each lane takes the next job of the line when it is free; jobs in the order in which they began. */
static double one_line_s(const struct sim *s, uint64_t first, uint64_t count) {
    unsigned lanes = (unsigned)asked.lanes;
    uint64_t *free_ns = mem_zero_alloc(lanes, sizeof *free_ns), last_ns = 0;
    CHECK(free_ns);
    for (uint64_t i = first; i < first + count && i < s->counts.drawn_max; i++) {
        unsigned best = 0;
        for (unsigned k = 1; k < lanes; k++) {
            best = free_ns[k] < free_ns[best] ? k : best;
        }
        free_ns[best] += s->counts.drawn_ns[i];
        last_ns = free_ns[best] > last_ns ? free_ns[best] : last_ns;
    }
    mem_free(free_ns);
    return (double)last_ns / 1e9;
}

/* What has come to pass when. */
struct mark {
    uint64_t at_ns, sent, placed, proved, results;
    struct usages used;
};

static struct mark mark(const struct sim *s) {
    return (struct mark){clock_ns(),
                         load_sent_count(s->load),
                         atomic_load(&s->placed_count),
                         atomic_load(&s->counts.ended),
                         s->results_count,
                         usages(s)};
}

/* A line on the way: counts of the whole, rates and processors since the last one. */
static void tell(const struct mark *first, struct mark *last, const struct sim *s) {
    struct mark now = mark(s);
    double span = (double)(now.at_ns - last->at_ns) / 1e9;
    printf("%5.0f s  sent %" PRIu64 " placed %" PRIu64 " proved %" PRIu64 " results %" PRIu64
           "; a second: %.0f placed, %.0f proved; of a core: coordinator %.0f %%, server %.0f %%, "
           "lanes %.0f %%; busy lanes %" PRIu64 "\n",
           (double)(now.at_ns - first->at_ns) / 1e9, now.sent, now.placed, now.proved, now.results,
           (double)(now.placed - last->placed) / span, (double)(now.proved - last->proved) / span,
           (now.used.coordinator.cpu_s - last->used.coordinator.cpu_s) / span * 100,
           (now.used.server.cpu_s - last->used.server.cpu_s) / span * 100,
           (now.used.own.cpu_s - last->used.own.cpu_s) / span * 100, atomic_load(&s->counts.busy));
    fflush(stdout);
    *last = now;
}

/* Until all results are there, or the limit. */
static void watch_load(struct sim *s, struct outcome *out, struct watch *w,
                       const struct mark *first) {
    struct mark told = *first;
    uint64_t last_ns = first->at_ns, counted_ns = last_ns,
             limit_ns = (uint64_t)(asked.limit_s * 1e9);
    do {
        clock_sleep_ns(LOOK_NS);
        uint64_t now_ns = clock_ns();
        look(s, w, out, now_ns - last_ns);
        last_ns = now_ns;
        if (now_ns - counted_ns < COUNT_NS) {
            continue;
        }
        counted_ns = now_ns;
        out->results = results_count(s);
        uint64_t intake = stream_count(s, "JOBS", 0);
        out->intake_most = intake > out->intake_most ? intake : out->intake_most;
        out->restarts = hall_step(s->hall);
        out->cut = now_ns - first->at_ns >= limit_ns;
        if (now_ns - told.at_ns >= TELL_NS) {
            tell(first, &told, s);
        }
    } while (out->results < s->all_count && !out->cut);
}

static void sum_up(const struct sim *s, struct outcome *out, const struct watch *w,
                   const struct mark *first, uint64_t begun, uint64_t work_ns, uint64_t loads) {
    struct mark end = mark(s);
    out->makespan_s = (double)(end.at_ns - first->at_ns) / 1e9;
    out->placed_per_s = (double)(end.placed - first->placed) / out->makespan_s;
    out->sent = end.sent;
    out->proved = end.proved;
    out->idle_share = (double)w->idle_ns / ((double)w->look_ns * asked.lanes);
    out->early_share = (double)w->early_ns / ((double)w->look_ns * asked.lanes);
    out->late_share = (double)w->late_ns / ((double)w->look_ns * asked.lanes);
    out->load_share = (double)(atomic_load(&s->counts.loads) - loads) * (double)s->model.load_ns /
                      ((double)w->look_ns * asked.lanes);
    out->fairness = fairness(w->fair);
    uint64_t all = 0;
    for (unsigned t = 0; t < SIM_TENANTS; t++) {
        all += w->fair[t];
    }
    out->loud_share = all ? (double)w->fair[0] / (double)all : 0;
    out->fairness_s = (double)w->fair_ns / 1e9;
    double bound_s = (double)(atomic_load(&s->counts.work_ns) - work_ns) / 1e9 / asked.lanes;
    double longest_s = (double)atomic_load(&s->counts.longest_ns) / 1e9;
    out->work_bound_s = bound_s > longest_s ? bound_s : longest_s;
    out->line_bound_s = one_line_s(s, begun, atomic_load(&s->counts.begun) - begun);
    out->used = end.used;
    out->used.coordinator.cpu_s -= first->used.coordinator.cpu_s;
    out->used.server.cpu_s -= first->used.server.cpu_s;
    out->used.own.cpu_s -= first->used.own.cpu_s;
}

static void measure_load(struct sim *s, struct outcome *out) {
    struct load_plan plan = {LATENCY_JOBS, s->jobs_count,
                             asked.load * capacity() / asked.partitions,
                             (unsigned)asked.partitions};
    uint64_t begun = atomic_load(&s->counts.begun), work_ns = atomic_load(&s->counts.work_ns);
    uint64_t loads = atomic_load(&s->counts.loads);
    struct mark first = mark(s);
    struct watch w = {.placed_second = first.placed};
    CHECK_OK(load_start(s->load, &plan));
    watch_load(s, out, &w, &first);
    sum_up(s, out, &w, &first, begun, work_ns, loads);
    load_cut(s->load);
    CHECK_OK(load_stop(s->load));
}

/* --- Afterwards --- */

static enum err count_done(void *ctx, const struct kv_entry *entry) {
    uint64_t *done = ctx;
    AUTO(record_done) struct record r = {0};
    TRY(record_unpack(&r, entry->value));
    *done += r.state == JOB_DONE;
    return OK;
}

static void check_results(struct sim *s, struct outcome *out) {
    struct stream_info info;
    struct subject done = stream_name(&s->host.user.space, "DONE");
    struct subject jobs = kv_bucket_name(&s->host.user.space, "jobs");
    clock_sleep_ns(SECOND); /* the last records are moved after the last results */
    CHECK_OK(stream_info(&info, s->host.user.link, done.text));
    out->results = info.messages_count;
    out->replaced = info.last_sequence - info.first_sequence + 1 - info.messages_count;
    CHECK_OK(kv_list(s->host.user.link, jobs.text, "*.*", count_done, &out->done_records));
}

static const char *site_name(void) {
    return asked.leaf > 0 ? "leaf" : asked.gateway > 0 ? "gateway" : "here";
}

static void print_table(const struct sim *s, const struct outcome *o) {
    double span = o->makespan_s;
    if (o->cut) {
        printf("CUT at the limit of %.0f s, %" PRIu64 " of %" PRIu64 " sent, %" PRIu64
               " proved: all that follows is of this part\n",
               asked.limit_s, o->sent, s->all_count, o->proved);
    }
    printf("jobs     %" PRIu64
           " of %.0f proofs of mean %.0f ms, sigma %.2f, %d keys, %d tenants; backlog up to "
           "%" PRIu64 ", of it not yet taken in up to %" PRIu64 "\n",
           s->jobs_count, asked.partitions, asked.mean_ms, asked.sigma, SIM_KEYS, SIM_TENANTS,
           o->backlog_most, o->intake_most);
    printf("latency  submit to lane with idle lanes: p50 %.2f ms, p99 %.2f ms\n", o->latency_p50_ms,
           o->latency_p99_ms);
    printf("placing  %.0f placements a second, %.0f in the busiest second\n", o->placed_per_s,
           o->placed_peak_per_s);
    printf(
        "makespan %.1f s: %.1f %% above work/lanes (%.1f s), %.1f %% above one common line (%.1f "
        "s)\n",
        span, (span / o->work_bound_s - 1) * 100, o->work_bound_s,
        (span / o->line_bound_s - 1) * 100, o->line_bound_s);
    printf("idle     %.2f %% of the lanes' time while jobs waited; %.2f %% before all were sent, "
           "%.2f %% at "
           "the end, %.2f %% loading keys\n",
           o->idle_share * 100, o->early_share * 100, o->late_share * 100, o->load_share * 100);
    printf("fairness %.4f (Jain) over %.1f s in which all %d tenants waited; the loud one, who "
           "sent %.1f "
           "%%, got %.1f %%\n",
           o->fairness, o->fairness_s, SIM_TENANTS, 100.0 * LOAD_LOUD / LOAD_TURN,
           o->loud_share * 100);
    printf("cost     coordinator %.0f %% of a core, %.0f MiB; server %.0f %%, %.0f MiB; lanes and "
           "submitters %.0f %%, %.0f MiB\n",
           o->used.coordinator.cpu_s / span * 100, o->used.coordinator.rss_mib,
           o->used.server.cpu_s / span * 100, o->used.server.rss_mib,
           o->used.own.cpu_s / span * 100, o->used.own.rss_mib);
    printf("results  %" PRIu64 " of %" PRIu64 ", %" PRIu64 " replaced, %" PRIu64
           " records done; device errors %" PRIu64 ", stuck %" PRIu64 ", wrong %" PRIu64
           ", lanes opened again %" PRIu64 "\n",
           o->results, s->all_count, o->replaced, o->done_records,
           atomic_load(&s->counts.device_errors), atomic_load(&s->counts.stuck),
           atomic_load(&s->counts.wrong), o->restarts);
}

static void print_json(const struct sim *s, const struct outcome *o) {
    double span = o->makespan_s;
    printf("{\"bench\": \"sim\", \"servers\": %.0f, \"site\": \"%s\", \"line_ms\": %.1f, "
           "\"lanes\": %.0f, \"jobs\": %" PRIu64
           ", \"partitions\": %.0f, \"brings\": %.0f, \"seed\": %.0f, \"mean_ms\": %.0f, "
           "\"sigma\": %.2f, \"load\": %.2f, "
           "\"latency_p50_ms\": %.3f, \"latency_p99_ms\": %.3f, \"placed_per_s\": %.1f, "
           "\"placed_peak_per_s\": %.1f, ",
           asked.servers, site_name(), asked.line_ms, asked.lanes, s->jobs_count, asked.partitions,
           asked.brings, asked.seed, asked.mean_ms, asked.sigma, asked.load, o->latency_p50_ms,
           o->latency_p99_ms, o->placed_per_s, o->placed_peak_per_s);
    printf("\"makespan_s\": %.2f, \"work_bound_s\": %.2f, \"line_bound_s\": %.2f, "
           "\"over_work\": %.4f, \"over_line\": %.4f, \"idle_share\": %.5f, \"early_share\": %.5f, "
           "\"late_share\": %.5f, \"load_share\": %.5f, \"fairness\": %.5f, "
           "\"fairness_s\": %.1f, \"coordinator_cores\": %.3f, \"coordinator_mib\": %.1f, ",
           span, o->work_bound_s, o->line_bound_s, span / o->work_bound_s - 1,
           span / o->line_bound_s - 1, o->idle_share, o->early_share, o->late_share, o->load_share,
           o->fairness, o->fairness_s, o->used.coordinator.cpu_s / span,
           o->used.coordinator.rss_mib);
    printf("\"server_cores\": %.3f, \"server_mib\": %.1f, \"own_cores\": %.3f, \"own_mib\": %.1f, "
           "\"backlog_most\": %" PRIu64 ", \"intake_most\": %" PRIu64 ", \"lanes_reopened\": "
           "%" PRIu64 ", \"results\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"replaced\": %" PRIu64
           "}\n",
           o->used.server.cpu_s / span, o->used.server.rss_mib, o->used.own.cpu_s / span,
           o->used.own.rss_mib, o->backlog_most, o->intake_most, o->restarts, o->results,
           s->all_count - o->done_records, o->replaced);
    fflush(stdout);
}

static struct sim *sim_new(void) {
    struct sim *s = mem_zero_alloc(1, sizeof *s);
    CHECK(s);
    s->jobs_count = (uint64_t)asked.jobs;
    s->all_count = s->jobs_count + (asked.idle > 0 ? (int)WARM_JOBS : (int)LATENCY_JOBS);
    s->sent_ns = mem_zero_alloc(s->all_count, sizeof *s->sent_ns);
    s->placed_ns = mem_zero_alloc(s->all_count, sizeof *s->placed_ns);
    s->done_ns = mem_zero_alloc(s->all_count, sizeof *s->done_ns);
    s->counts.drawn_max = 2 * s->all_count * (uint64_t)asked.partitions;
    s->counts.drawn_ns = mem_zero_alloc(s->counts.drawn_max, sizeof *s->counts.drawn_ns);
    CHECK(s->sent_ns && s->placed_ns && s->done_ns && s->counts.drawn_ns);
    start(s);
    return s;
}

static void sim_stop(struct sim *s) {
    subscription_close(&s->lanes);
    subscription_close(&s->results);
    transport_close(&s->ear);
    load_close(&s->load);
    hall_close(&s->hall);
    host_stop(&s->host);
    servers_stop(&s->servers);
}

static void sim_free(struct sim *s) {
    mem_free(s->counts.drawn_ns);
    mem_free((void *)(uintptr_t)s->placed_ns);
    mem_free((void *)(uintptr_t)s->done_ns);
    mem_free(s->sent_ns);
    mem_free(s);
}

/* The limits are those of an idle machine. */
static void claim_idle(void) {
    struct outcome o = {0};
    struct sim *s = sim_new();
    measure_latency(s, &o, s->all_count);
    printf(
        "latency  submit to lane: p50 %.2f ms, p99 %.2f ms; submit to result, less the proof: p50 "
        "%.2f ms, p99 %.2f ms\n",
        o.latency_p50_ms, o.latency_p99_ms, o.added_p50_ms, o.added_p99_ms);
    printf("{\"bench\": \"sim-idle\", \"servers\": %.0f, \"site\": \"%s\", \"line_ms\": %.1f, "
           "\"lanes\": %.0f, \"jobs\": %" PRIu64
           ", \"mean_ms\": %.0f, \"to_lane_p50_ms\": %.3f, \"to_lane_p99_ms\": %.3f, "
           "\"added_p50_ms\": %.3f, \"added_p99_ms\": %.3f}\n",
           asked.servers, site_name(), asked.line_ms, asked.lanes, s->jobs_count, asked.mean_ms,
           o.latency_p50_ms, o.latency_p99_ms, o.added_p50_ms, o.added_p99_ms);
    fflush(stdout);
    sim_stop(s);
    sim_free(s);
    bool strict = getenv("BELLOWS_STRICT") != NULL;
    CHECK_MSG(!strict || (o.latency_p50_ms <= 3 && o.latency_p99_ms <= 20),
              "to a lane: p50 %.2f ms, p99 %.2f ms", o.latency_p50_ms, o.latency_p99_ms);
}

static void claim_sim(void) {
    struct outcome out = {0};
    struct sim *s = sim_new();
    measure_latency(s, &out, LATENCY_JOBS);
    measure_load(s, &out);
    check_results(s, &out);
    print_table(s, &out);
    print_json(s, &out);
    sim_stop(s);
    CHECK_MSG(!out.cut,
              "%" PRIu64 " of %" PRIu64 " results after %.0f s; %" PRIu64 " sent, %" PRIu64
              " proved",
              out.results, s->all_count, asked.limit_s, out.sent, out.proved);
    CHECK_MSG(sim_checks_in_earnest() <= atomic_load(&s->counts.wrong),
              "%" PRIu64 " proofs were checked in earnest, %" PRIu64 " were wrong",
              sim_checks_in_earnest(), atomic_load(&s->counts.wrong));
    CHECK_EQ(s->all_count, out.results);
    CHECK_EQ(s->all_count, out.done_records);
    CHECK_EQ(0, out.replaced);
    /* What is not taken in yet nobody can share out: a busy machine's index is not judged. */
    bool judged =
        asked.partitions == 1 && out.fairness_s >= 1 && out.intake_most * 20 < out.backlog_most;
    CHECK_MSG(!judged || out.fairness > 0.9, "the fairness index is %.3f", out.fairness);
    CHECK_MSG(out.placed_per_s >= asked.least_per_s, "%.0f proofs a second, %.0f are wanted",
              out.placed_per_s, asked.least_per_s);
    sim_free(s);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a simulated fleet: every job is proved once, tenants get equal shares", claim_sim},
    };
    static const struct check_claim idle_claims[] = {
        {"an idle simulated fleet: how long a job takes to a lane and through it", claim_idle},
    };
    const char *left[] = {argv[0], NULL};
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < COUNT_OF(arguments) && strcmp(argv[i], arguments[k].name) != 0) {
            k++;
        }
        double value = k < COUNT_OF(arguments) && i + 1 < argc ? strtod(argv[++i], NULL) : -1;
        if (k == COUNT_OF(arguments) || value < arguments[k].least || value > arguments[k].most) {
            fprintf(stderr, "usage: %s with any of\n", argv[0]);
            for (k = 0; k < COUNT_OF(arguments); k++) {
                fprintf(stderr, "  %s %g…%g, else %g\n", arguments[k].name, arguments[k].least,
                        arguments[k].most, *arguments[k].value);
            }
            return 2;
        }
        *arguments[k].value = value;
    }
    if (asked.leaf + asked.gateway + (asked.servers > 1) > 1 ||
        (asked.line_ms > 0 && (asked.gateway > 0 || asked.servers > 1))) {
        fprintf(stderr, "%s: one of --servers, --leaf and --gateway, a line for one server only\n",
                argv[0]);
        return 2;
    }
    log_setup(LOG_WARN, 0);
    /* Each lane's subscriptions would have threads of their own; so the library's few hand out all messages. A few lanes get them: without,
     * their pace is halved. */
    if (asked.lanes > LANES_PER_NODE) {
        setenv("NATS_DEFAULT_TO_LIB_MSG_DELIVERY", "1", 1);
    }
    if (asked.idle > 0) {
        asked.sigma = asked.load_ms = 0; /* what is over is the fleet's */
        return check_main(1, (char **)(uintptr_t)left, idle_claims, COUNT_OF(idle_claims));
    }
    return check_main(1, (char **)(uintptr_t)left, claims, COUNT_OF(claims));
}
