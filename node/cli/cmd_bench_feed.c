/* bellows bench feed: does the fleet keep its devices fed? Many jobs are sent at once; when the last has ended, the ledger of every lane says
 * where its device's time went meanwhile.
 *
 * A lane's figures are those of its reports, one a second: the stretch begins with the last one before the first job and ends with
 * the first one after the last job. So up to two seconds of idleness around the work are in it, and a run should take much longer.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/cli/backend_args.h"
#include "node/cli/bench.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"
#include "node/cli/fleet_watch.h"
#include "node/daemon/child.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SENDERS_MAX = 4, JOBS_MAX = 256, WORDS_MAX = 16 };
static const uint64_t LOOK_NS = UINT64_C(20000000);
static const uint64_t REPORT_NS = UINT64_C(5000000000); /* within which every lane speaks */

struct feed {
    struct client client;      /* owned */
    struct fleet_watch *watch; /* owned */
    const struct args *args;
    struct child senders[SENDERS_MAX];
    struct watch_sample *begins; /* owned: by lane, in the picture's order */
    size_t lanes_count;
    unsigned jobs_count, sent_count;
    char name[NUID_BYTES + 8]; /* the jobs' ids begin with it */
};

static void feed_done(struct feed *f) {
    for (size_t i = 0; i < COUNT_OF(f->senders); i++) {
        child_stop(&f->senders[i], 0);
    }
    watch_close(&f->watch);
    mem_free(f->begins);
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

static enum err note_begin(struct feed *f) {
    const struct watch *p = watch_picture(f->watch);
    TRY(mem_new(&f->begins, WATCH_LANES_MAX, sizeof *f->begins));
    TRY(wait_for_reports(f, 0));
    f->lanes_count = p->lanes_count;
    for (size_t i = 0; i < f->lanes_count; i++) {
        f->begins[i] = *last_sample(&p->lanes[i]);
    }
    return OK;
}

/* --- Sending --- */

static void job_name_at(char out[ID_BYTES_MAX + 1], const struct feed *f, unsigned idx) {
    snprintf(out, ID_BYTES_MAX + 1, "%s-%u", f->name, idx);
}

static enum err send_next(struct feed *f, struct child *sender) {
    char server[560], job[ID_BYTES_MAX + 1];
    job_name_at(job, f, f->sent_count++);
    snprintf(server, sizeof server, "--server=%s", f->client.server);
    const char *words[WORDS_MAX] = {
        "/proc/self/exe",
        "submit",
        args_positional(f->args, "KEY"),
        args_positional(f->args, "WITNESS"),
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

static enum err feed_fleet(struct feed *f, unsigned *failed) {
    for (;;) {
        bool idle = false;
        TRY(keep_sending(&idle, f));
        watch_take(f->watch, LOOK_NS);
        if (idle && count_ended(f, failed) == f->jobs_count) {
            return OK;
        }
    }
}

/* --- The ledger --- */

static enum err print_lane(const struct watch_lane *lane, const struct watch_sample *begin,
                           unsigned jobs, unsigned failed, uint64_t took_ns) {
    AUTO(text_free) struct text t = {0};
    const struct watch_sample *end = last_sample(lane);
    REQUIRE(end->wall_ns > begin->wall_ns, E_NET, "lane %s.%u was started anew meanwhile",
            lane->node, lane->gpu);
    uint64_t wall_ns = end->wall_ns - begin->wall_ns, waits_ns = 0;
    bench_begin(&t, "feed", lane->device);
    text_addf(&t,
              ", \"node\": \"%s\", \"gpu\": %u, \"jobs\": %u, \"failed\": %u, \"took_ns\": %" PRIu64
              ", \"wall_ns\": %" PRIu64 ", \"accounts\": {",
              lane->node, lane->gpu, jobs, failed, took_ns, wall_ns);
    for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) {
        enum ledger_account account = (enum ledger_account)i;
        uint64_t ns = end->ns[i] - begin->ns[i];
        waits_ns += ledger_account_is_compute(account) ? 0 : ns;
        text_addf(&t, "%s\"%s\": %" PRIu64, i ? ", " : "", ledger_account_name(account), ns);
    }
    text_addf(&t, "}, \"compute_share\": %.4f}",
              waits_ns < wall_ns ? 1 - (double)waits_ns / (double)wall_ns : 0);
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

static enum err run(struct args *args) {
    AUTO(feed_done)
    struct feed f = {.args = args, .jobs_count = (unsigned)args_number(args, "jobs", 32)};
    unsigned failed = 0;
    char nuid[NUID_BYTES];
    TRY(client_open(&f.client, args));
    TRY(watch_open(&f.watch, f.client.transport, &f.client.space));
    transport_nuid(nuid);
    snprintf(f.name, sizeof f.name, "feed-%s", nuid);
    TRY(note_begin(&f));
    uint64_t start_ns = clock_ns();
    TRY(feed_fleet(&f, &failed));
    uint64_t took_ns = clock_ns() - start_ns;
    TRY(wait_for_reports(&f, clock_unix_ns() / 1000000));
    const struct watch *p = watch_picture(f.watch);
    REQUIRE(p->lanes_count == f.lanes_count, E_NET, "a lane came meanwhile: run it again");
    for (size_t i = 0; i < p->lanes_count; i++) {
        TRY(print_lane(&p->lanes[i], &f.begins[i], f.jobs_count, failed, took_ns));
    }
    return OK;
}

static const struct positional positionals[] = {
    {.name = "KEY", .text = "proving key (.zkey)"},
    {.name = "WITNESS", .text = "witness (.wtns)"},
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
    .notes = "One JSON line a lane: the ledger's accounts from before the first job until after "
             "the last, in ns.\n"
             "Whatever else the fleet has to do is in it too.\n"
             "  bellows dev --run 'bellows bench feed circuit.zkey witness.wtns'\n",
    .run = run,
};
