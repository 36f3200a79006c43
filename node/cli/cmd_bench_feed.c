/* bellows bench feed: does the fleet keep its devices fed? Many jobs are sent at once; when the last has ended, the ledger of every lane says
 * where its device's time went meanwhile.
 *
 * A lane's figures are those of its reports, one a second: the stretch begins with the last one before the first job and ends with
 * the first one after the last job. So up to two seconds of idleness around the work are in it, and a run should take much longer.
 * A lane that comes meanwhile is measured from its own first report on.
 *
 * With --backlog nothing of that is in it, nor the sending: the lanes are drained, all jobs sent, the lanes resumed, and the stretch goes from
 * the first report after the first job's end to the last one before the last job's. Before they are resumed the bodies are downloaded for
 * nothing, to see what the transport can bring (bench_ceiling.h): where the jobs need more than that for each second of computing, no lane
 * can compute all the time, and the line says how much it could.
 *
 * With --imitate no fleet is asked: see bench_upload.h.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/cli/backend_args.h"
#include "node/cli/bench.h"
#include "node/cli/bench_ceiling.h"
#include "node/cli/bench_upload.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"
#include "node/cli/fleet_watch.h"
#include "node/daemon/child.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SENDERS_MAX = 8, WORDS_MAX = 16, PAIRS_MAX = 16 };
enum { JOBS_MAX = WATCH_JOBS_MAX - 32 }; /* the picture holds them all, and others beside them */
static const uint64_t LOOK_NS = UINT64_C(20000000);
static const uint64_t REPORT_NS = UINT64_C(5000000000); /* within which every lane speaks */

struct mark {                   /* a lane's report */
    struct watch_sample sample; /* at_ms 0: none yet */
    uint64_t process_bytes;
};

struct stretch { /* of a lane: the picture's order changes when one comes */
    char node[WATCH_ID_BYTES];
    uint32_t gpu;
    struct mark begin, end;
};

struct feed {
    struct client client;      /* owned */
    struct fleet_watch *watch; /* owned */
    const struct args *args;
    struct child senders[SENDERS_MAX];
    struct stretch
        *stretches; /* owned: WATCH_LANES_MAX, in the order in which the lanes were met */
    size_t stretches_count;
    unsigned jobs_count, sent_count;
    struct ceiling ceiling;    /* of a backlog */
    uint64_t first_end_ms;     /* when the first job's end was seen; 0: not yet */
    char name[NUID_BYTES + 8]; /* the jobs' ids begin with it */
};

static void feed_done(struct feed *f) {
    for (size_t i = 0; i < COUNT_OF(f->senders); i++) {
        child_stop(&f->senders[i], 0);
    }
    watch_close(&f->watch);
    mem_free(f->stretches);
    client_close(&f->client);
}

/* --- Reports --- */

static const struct watch_sample *last_sample(const struct watch_lane *lane) {
    return lane->samples_count ? &lane->samples[lane->samples_count - 1] : NULL;
}

/* Until every lane has spoken since `since_ms`. */
static enum err wait_for_reports(struct feed *f, uint64_t since_ms) {
    const struct watch *p = watch_picture(f->watch);
    uint64_t start_ns = clock_ns();
    for (;;) {
        size_t spoken = 0;
        watch_take(f->watch, LOOK_NS);
        for (size_t i = 0; i < p->lanes_count; i++) {
            const struct watch_sample *s = last_sample(&p->lanes[i]);
            spoken += s && s->at_ms >= since_ms;
        }
        if (p->fleet.known && spoken == p->lanes_count && spoken >= p->fleet.lanes_open && spoken) {
            return OK;
        }
        REQUIRE(clock_ns() - start_ns < REPORT_NS, E_TIMEOUT,
                "%zu of %zu lanes have reported within 5 s; `bellows top` shows them", spoken,
                p->lanes_count);
    }
}

static void mark_lane(struct mark *out, const struct watch_lane *lane) {
    out->sample = *last_sample(lane);
    for (size_t i = 0; i < lane->memory_count; i++) {
        if (!strcmp(lane->memory[i].name, "process")) {
            out->process_bytes = lane->memory[i].value;
        }
    }
}

static struct stretch *stretch_of(struct feed *f, const struct watch_lane *lane) {
    for (size_t i = 0; i < f->stretches_count; i++) {
        if (f->stretches[i].gpu == lane->gpu && !strcmp(f->stretches[i].node, lane->node)) {
            return &f->stretches[i];
        }
    }
    /* There is room: a picture has at most WATCH_LANES_MAX lanes, and forgets none. */
    struct stretch *s = &f->stretches[f->stretches_count++];
    s->gpu = lane->gpu;
    memcpy(s->node, lane->node, sizeof s->node);
    return s;
}

/* Where no stretch has begun yet, it begins with what the lane said last. */
static void note_begins(struct feed *f) {
    const struct watch *p = watch_picture(f->watch);
    for (size_t i = 0; i < p->lanes_count; i++) {
        struct stretch *s = stretch_of(f, &p->lanes[i]);
        if (s->begin.sample.at_ms == 0 && last_sample(&p->lanes[i])) {
            mark_lane(&s->begin, &p->lanes[i]);
        }
    }
}

/* Of a backlog: the first report after the first end begins a lane's stretch, each one before the last end moves its end. */
static void note_progress(struct feed *f, unsigned ended) {
    const struct watch *p = watch_picture(f->watch);
    if (ended == 0 || ended == f->jobs_count) {
        return;
    }
    f->first_end_ms = f->first_end_ms ? f->first_end_ms : clock_unix_ns() / 1000000;
    for (size_t i = 0; i < p->lanes_count; i++) {
        const struct watch_sample *said = last_sample(&p->lanes[i]);
        struct stretch *s = stretch_of(f, &p->lanes[i]);
        bool begun = s->begin.sample.at_ms > 0;
        if (said && said->at_ms > (begun ? s->end.sample.at_ms : f->first_end_ms)) {
            mark_lane(begun ? &s->end : &s->begin, &p->lanes[i]);
        }
    }
}

/* --- Sending --- */

static void job_name_at(char out[ID_BYTES_MAX + 1], const struct feed *f, unsigned idx) {
    snprintf(out, ID_BYTES_MAX + 1, "%s-%u", f->name, idx);
}

/* Keys and witnesses by turns: KEY, then what is left. */
static size_t pairs_count(const struct feed *f) {
    return (args_rest_count(f->args) + 1) / 2;
}

static enum err send_next(struct feed *f, struct child *sender) {
    char server[560], job[ID_BYTES_MAX + 1];
    size_t pair = f->sent_count % pairs_count(f);
    job_name_at(job, f, f->sent_count++);
    snprintf(server, sizeof server, "--server=%s", f->client.server);
    const char *words[WORDS_MAX] = {
        "/proc/self/exe",
        "submit",
        pair ? args_rest(f->args, 2 * pair - 1) : args_positional(f->args, "KEY"),
        args_rest(f->args, 2 * pair),
        "--job",
        job,
        "--tenant",
        f->client.tenant,
        server,
        args_switch(f->args, "allow-insecure-keys") ? "--allow-insecure-keys" : NULL};
    struct child_options options = {.argv = words, .log_path = "/dev/null"};
    return child_start(sender, &options);
}

/* *idle: nobody sends, and nothing is left to send. */
static enum err keep_sending(bool *idle, struct feed *f) {
    *idle = f->sent_count == f->jobs_count;
    for (size_t i = 0; i < COUNT_OF(f->senders); i++) {
        struct child *sender = &f->senders[i];
        bool ended = false;
        struct child_end end;
        child_poll(&ended, &end, sender);
        REQUIRE(
            !ended || end.exit_code == 0, E_RANGE,
            "a job could not be sent: `bellows submit` with the same files ends with exit code %d "
            "and says why",
            end.exit_code);
        if (sender->pid == 0 && f->sent_count < f->jobs_count) {
            TRY(send_next(f, sender));
        }
        *idle &= sender->pid == 0;
    }
    return OK;
}

static unsigned count_ended(const struct feed *f, unsigned *failed) {
    const struct watch *p = watch_picture(f->watch);
    unsigned ended = 0;
    *failed = 0;
    for (unsigned i = 0; i < f->jobs_count; i++) {
        char name[ID_BYTES_MAX + 1];
        job_name_at(name, f, i);
        const struct watch_job *job = watch_find_job(p, f->client.tenant, name);
        *failed += job && job->failed;
        ended += job && (job->failed || !strcmp(job->state, "done"));
    }
    return ended;
}

/* `bellows drain` or `bellows resume` for each node of the fleet. */
static enum err order_nodes(struct feed *f, const char *verb) {
    const struct watch *p = watch_picture(f->watch);
    for (size_t i = 0; i < p->lanes_count; i++) {
        char server[560];
        struct child child = {0};
        struct child_end end = {0};
        bool ended = false;
        snprintf(server, sizeof server, "--server=%s", f->client.server);
        const char *words[WORDS_MAX] = {"/proc/self/exe", verb, p->lanes[i].node, server,
                                        !strcmp(verb, "drain") ? "--wait" : NULL};
        if (i > 0 && !strcmp(p->lanes[i].node, p->lanes[i - 1].node)) {
            continue;
        }
        TRY(child_start(&child, &(struct child_options){.argv = words, .log_path = "/dev/null"}));
        while (!ended) {
            child_poll(&ended, &end, &child);
            watch_take(f->watch, LOOK_NS);
        }
        REQUIRE(end.exit_code == 0, E_TIMEOUT,
                "`bellows %s %s` ends with exit code %d and says why", verb, p->lanes[i].node,
                end.exit_code);
    }
    return OK;
}

static enum err measure_ceiling(struct feed *f) {
    AUTO(config_free) struct config config = {0};
    TRY(args_config(&config, f->args));
    struct transport_options options = client_transport_options(&config);
    options.url = f->client.server;
    enum err code = ceiling_measure(&f->ceiling, &f->client, &options,
                                    (struct ceiling_jobs){f->name, f->jobs_count});
    return code == E_IO
               ? err_prefix(code, "a lane that came after the others were drained proves the "
                                  "backlog already: run it again")
               : code;
}

static enum err send_backlog(struct feed *f) {
    bool idle = false;
    TRY(order_nodes(f, "drain"));
    while (!idle) {
        TRY(keep_sending(&idle, f));
        watch_take(f->watch, LOOK_NS);
    }
    TRY(measure_ceiling(f));
    return order_nodes(f, "resume");
}

static enum err feed_fleet(struct feed *f, unsigned *failed) {
    bool backlog = args_switch(f->args, "backlog");
    for (;;) {
        bool idle = false;
        if (!backlog) {
            note_begins(f);
        }
        TRY(keep_sending(&idle, f));
        watch_take(f->watch, LOOK_NS);
        unsigned ended = count_ended(f, failed);
        if (backlog) {
            note_progress(f, ended);
        }
        if (idle && ended == f->jobs_count) {
            return OK;
        }
    }
}

/* --- The ledger --- */

static bool is_ours(const struct feed *f, const struct watch_job *job,
                    const struct watch_lane *lane) {
    return !strncmp(job->job, f->name, strlen(f->name)) && !strcmp(job->node, lane->node) &&
           job->gpu == lane->gpu;
}

/* What the jobs' stories say of a step, all of them together: by a lane that did it. */
struct sum {
    uint64_t ns, bytes;
};
static struct sum sum_step(const struct feed *f, const struct watch_lane *lane, const char *step) {
    const struct watch *p = watch_picture(f->watch);
    struct sum sum = {0};
    for (size_t i = 0; i < p->jobs_count; i++) {
        const struct watch_job *job = &p->jobs[i];
        for (size_t k = 0; k < job->steps_count && is_ours(f, job, lane); k++) {
            bool same = !strcmp(job->steps[k].name, step);
            sum.ns += same ? job->steps[k].ns : 0;
            sum.bytes += same ? job->steps[k].bytes : 0;
        }
    }
    return sum;
}

static void add_step(struct text *t, const struct feed *f, const struct watch_lane *lane,
                     const char *step) {
    struct sum sum = sum_step(f, lane, step);
    text_addf(t, "\"%s\": {\"bytes\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"gb_s\": %.2f}", step,
              sum.bytes, sum.ns, sum.ns ? (double)sum.bytes / (double)sum.ns : 0);
}

/* What the lane's jobs needed of the transport for each second that the device spent on them, and the share of its time that it can
 * compute with no more than the ceiling. */
static void add_transport(struct text *t, const struct feed *f, const struct watch_lane *lane,
                          double compute_share) {
    const struct watch *p = watch_picture(f->watch);
    struct sum fetched = sum_step(f, lane, "fetch");
    double ceiling = ceiling_best(&f->ceiling) / (double)p->lanes_count;
    uint64_t device_ns = 0;
    for (size_t i = 0; i < p->jobs_count; i++) {
        device_ns += is_ours(f, &p->jobs[i], lane) ? p->jobs[i].device_ns : 0;
    }
    double needed = device_ns ? (double)fetched.bytes * 1e9 / (double)device_ns : 0;
    double possible = needed > ceiling ? ceiling / needed : 1;
    text_add(t, ", \"transport\": {\"ceiling_gb_s\": ");
    ceiling_json(t, &f->ceiling);
    text_addf(t, ", \"needed_gb_s\": %.3f, \"possible_share\": %.4f, \"share_of_possible\": %.4f}",
              needed / 1e9, possible, compute_share / possible);
}

static enum err print_lane(const struct feed *f, const struct watch_lane *lane,
                           const struct stretch *s, unsigned failed, uint64_t took_ns) {
    AUTO(text_free) struct text t = {0};
    const struct mark *begin = &s->begin, *end = &s->end;
    REQUIRE(begin->sample.at_ms > 0 && end->sample.wall_ns > begin->sample.wall_ns, E_RANGE,
            "between two reports of lane %s.%u nothing can be measured: it was started anew, or "
            "more jobs are needed",
            lane->node, lane->gpu);
    uint64_t wall_ns = end->sample.wall_ns - begin->sample.wall_ns, waits_ns = 0;
    bench_begin(&t, "feed", lane->device);
    text_addf(&t,
              ", \"node\": \"%s\", \"gpu\": %u, \"jobs\": %u, \"failed\": %u, \"took_ns\": %" PRIu64
              ", \"wall_ns\": %" PRIu64 ", \"accounts\": {",
              lane->node, lane->gpu, f->jobs_count, failed, took_ns, wall_ns);
    for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) {
        enum ledger_account account = (enum ledger_account)i;
        uint64_t ns = end->sample.ns[i] - begin->sample.ns[i];
        waits_ns += ledger_account_is_compute(account) ? 0 : ns;
        text_addf(&t, "%s\"%s\": %" PRIu64, i ? ", " : "", ledger_account_name(account), ns);
    }
    double share = waits_ns < wall_ns ? 1 - (double)waits_ns / (double)wall_ns : 0;
    text_addf(&t, "}, \"compute_share\": %.4f", share);
    if (ceiling_best(&f->ceiling) > 0) {
        add_transport(&t, f, lane, share);
    }
    text_addf(&t, ", \"process_bytes\": [%" PRIu64 ", %" PRIu64 "], \"steps\": {",
              begin->process_bytes, end->process_bytes);
    static const char *const steps[] = {"fetch", "decode", "unpack", "upload"};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        text_add(&t, i ? ", " : "");
        add_step(&t, f, lane, steps[i]);
    }
    text_add(&t, "}}");
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

static enum err run_fleet(struct args *args) {
    AUTO(feed_done)
    struct feed f = {.args = args, .jobs_count = (unsigned)args_number(args, "jobs", 32)};
    unsigned failed = 0;
    char nuid[NUID_BYTES];
    bool backlog = args_switch(args, "backlog");
    TRY(client_open(&f.client, args));
    TRY(watch_open(&f.watch, f.client.transport, &f.client.space));
    transport_nuid(nuid);
    snprintf(f.name, sizeof f.name, "feed-%s", nuid);
    TRY(mem_new(&f.stretches, WATCH_LANES_MAX, sizeof *f.stretches));
    TRY(wait_for_reports(&f, 0));
    if (backlog) {
        TRY(send_backlog(&f));
    }
    uint64_t start_ns = clock_ns();
    TRY(feed_fleet(&f, &failed));
    uint64_t took_ns = clock_ns() - start_ns;
    TRY(wait_for_reports(&f, clock_unix_ns() / 1000000));
    const struct watch *p = watch_picture(f.watch);
    for (size_t i = 0; i < p->lanes_count; i++) {
        struct stretch *s = stretch_of(&f, &p->lanes[i]);
        if (!backlog) {
            mark_lane(&s->end, &p->lanes[i]);
        }
        TRY(print_lane(&f, &p->lanes[i], s, failed, took_ns));
    }
    return OK;
}

static enum err run(struct args *args) {
    REQUIRE(args_rest_count(args) % 2 == 1 && args_rest_count(args) < 2 * PAIRS_MAX, E_USAGE,
            "keys and witnesses come in pairs, at most %d: KEY WITNESS KEY WITNESS", PAIRS_MAX);
    return strcmp(args_text(args, "imitate"), "no") ? bench_upload_run(args) : run_fleet(args);
}

static const struct positional positionals[] = {
    {.name = "KEY", .text = "proving key (.zkey)"},
    {.name = "WITNESS",
     .text = "witness (.wtns); more pairs of a key and a witness may follow, for jobs by turns",
     .repeats = true},
    {0},
};
static const struct option options[] = {
    {.kind = OPTION_NUMBER,
     .name = "jobs",
     .value = "N",
     .fallback = "32",
     .least = 1,
     .most = JOBS_MAX,
     .text = "Jobs of one proof each, sent as fast as they go."},
    {.kind = OPTION_SWITCH,
     .name = "backlog",
     .text = "Sends all jobs while the nodes are drained, and looks at the time between the first "
             "job's end and the last one's."},
    BENCH_UPLOAD_OPTIONS,
    OPTION_DEVICE,
    OPTION_RUNS,
    OPTION_TENANT,
    OPTION_INSECURE,
    OPTIONS_END,
};
const struct command cmd_bench_feed = {
    .name = "bench feed",
    .sentence = "send a fleet many jobs and print where its devices' time went",
    .positionals = positionals,
    .options = options,
    .config = CONFIG_CLIENT,
    .notes =
        "One JSON line a lane: the ledger's accounts from before the first job until after "
        "the last, in ns.\n"
        "Whatever else the fleet has to do is in it too.\n"
        "--imitate asks no fleet: a CUDA device here is given one job's scalars over and over.\n"
        "  bellows dev --run 'bellows bench feed circuit.zkey witness.wtns'\n",
    .run = run,
};
