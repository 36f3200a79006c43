/* bellows top: what the fleet does and why, live in a terminal, or once as text or JSON for scripts.
 */
#include "node/base/clock.h"
#include "node/base/text.h"
#include "node/cli/backend_args.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"
#include "node/cli/fleet_watch.h"
#include "node/cli/top_pen.h"
#include "node/cli/top_screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t SETTLE_NS =
    UINT64_C(2500000000); /* each lane and the leader speak once a second */
static const uint64_t LOOK_NS = UINT64_C(50000000);
enum { STEP_MS = 250 };

/* --- Once: as JSON --- */

static void add_string(struct text *t, const char *name, const char *value) {
    text_addf(t, ", \"%s\": ", name);
    text_add_json_string(t, value);
}

static void add_key(struct text *t, const struct sha256 *key) {
    char hex[SHA256_HEX_BYTES];
    sha256_hex(hex, key);
    add_string(t, "key", hex);
}

static void add_numbers(struct text *t, const char *name, const struct watch_number *numbers,
                        size_t count) {
    text_addf(t, ", \"%s\": {", name);
    for (size_t i = 0; i < count; i++) {
        text_add(t, i ? ", " : "");
        text_add_json_string(t, numbers[i].name);
        text_addf(t, ": %" PRIu64, numbers[i].value);
    }
    text_add(t, "}");
}

static void add_accounts(struct text *t, const uint64_t ns[LEDGER_ACCOUNTS_COUNT]) {
    for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) {
        text_addf(t, "%s\"%s\": %" PRIu64, i ? ", " : "",
                  ledger_account_name((enum ledger_account)i), ns[i]);
    }
}

static void add_hand(struct text *t, const struct watch_hand *h) {
    text_add(t, "{\"job\": ");
    text_add_json_string(t, h->job);
    add_string(t, "tenant", h->tenant);
    add_key(t, &h->key);
    add_string(t, "stage", h->stage);
    add_string(t, "step", h->step);
    text_addf(t,
              ", \"partition\": %u, \"priority\": %u, \"permille\": %u, \"age_ns\": %" PRIu64
              ", \"stage_ns\": %" PRIu64 "}",
              h->partition, h->priority, h->permille, h->age_ns, h->stage_ns);
}

static void add_memory(struct text *t, const struct watch_lane *lane) {
    text_add(t, ", \"memory\": {");
    for (size_t i = 0; i < lane->memory_count; i++) {
        text_add(t, i ? ", " : "");
        text_add_json_string(t, lane->memory[i].name);
        text_addf(t, ": {\"used_bytes\": %" PRIu64 ", \"limit_bytes\": %" PRIu64 "}",
                  lane->memory[i].value, lane->memory[i].limit);
    }
    text_add(t, "}");
}

static void add_readings(struct text *t, const struct watch_lane *lane) {
    static const char *const names[WATCH_SENSORS_MAX] = {
        NULL,
        "utilisation_permille",
        "memory_utilisation_permille",
        "power_milliwatt",
        "energy_millijoule",
        "temperature_celsius",
        "clock_core_megahertz",
        "clock_memory_megahertz",
        "pcie_receive_bytes_per_second",
        "pcie_transmit_bytes_per_second",
        "pcie_generation",
        "pcie_width",
        "pcie_generation_max",
        "pcie_width_max",
    };
    const char *between = "";
    text_add(t, ", \"readings\": {");
    for (size_t i = 0; i < WATCH_SENSORS_MAX; i++) {
        if (lane->known[i] && names[i]) {
            text_addf(t, "%s\"%s\": %" PRIu64, between, names[i], lane->readings[i]);
            between = ", ";
        }
    }
    text_add(t, "}");
}

static const char *state_name(uint32_t state) {
    static const char *const words[] = {"unknown",  "starting", "ready",
                                        "draining", "fenced",   "stopped"};
    return state < COUNT_OF(words) ? words[state] : words[0];
}

static void add_lane(struct text *t, const struct watch_lane *lane) {
    const struct watch_sample *last =
        lane->samples_count ? &lane->samples[lane->samples_count - 1] : NULL;
    struct watch_minute m = watch_minute_of(lane);
    text_add(t, "{\"node\": ");
    text_add_json_string(t, lane->node);
    text_addf(t,
              ", \"gpu\": %u, \"state\": \"%s\", \"strikes\": %u, \"depth\": %u, \"depth_max\": %u",
              lane->gpu, state_name(lane->state), lane->strikes, lane->depth, lane->depth_max);
    add_string(t, "reason", lane->reason);
    add_string(t, "backend", lane->backend);
    add_string(t, "device", lane->device);
    add_string(t, "session", lane->session);
    add_string(t, "now", lane->now);
    text_addf(t, ", \"heard_unix_ms\": %" PRIu64, lane->heard_ms);
    if (last) {
        text_addf(t, ", \"wall_ns\": %" PRIu64 ", \"open_ns\": %" PRIu64 ", \"accounts\": {",
                  last->wall_ns, last->open_ns);
        add_accounts(t, last->ns);
        text_addf(t,
                  "}, \"last_minute\": {\"wall_ns\": %" PRIu64 ", \"compute_ns\": %" PRIu64
                  ", \"accounts\": {",
                  m.wall_ns, m.compute_ns);
        add_accounts(t, m.ns);
        text_add(t, "}}");
    }
    add_memory(t, lane);
    add_readings(t, lane);
    add_numbers(t, "counters", lane->counters, lane->counters_count);
    text_add(t, ", \"jobs\": [");
    for (size_t i = 0; i < lane->hand_count; i++) {
        text_add(t, i ? ", " : "");
        add_hand(t, &lane->hand[i]);
    }
    text_add(t, "]");
    if (lane->error_ms) {
        text_addf(t, ", \"last_error\": {\"at_unix_ms\": %" PRIu64, lane->error_ms);
        add_string(t, "name", lane->error);
        add_string(t, "job", lane->error_job);
        add_string(t, "detail", lane->error_detail);
        text_add(t, "}");
    }
    text_add(t, "}");
}

static void add_fleet(struct text *t, const struct watch_fleet *f) {
    text_addf(t, "\"fleet\": {\"ready\": %s", f->known && f->ready ? "true" : "false");
    add_string(t, "leader", f->leader);
    text_addf(t,
              ", \"at_unix_ms\": %" PRIu64
              ", \"lanes_known\": %u, \"lanes_open\": %u, \"jobs_open\": %u, \"queued\": %u, "
              "\"placed\": %u, \"running\": %u, \"deadlines_at_risk\": %u, \"backlog_ns\": %" PRIu64
              ", \"backlog_wall_ns\": %" PRIu64,
              f->at_ms, f->lanes_known, f->lanes_open, f->jobs_open, f->queued, f->placed,
              f->running, f->deadlines_at_risk, f->backlog_ns, f->backlog_wall_ns);
    add_numbers(t, "counters", f->counters, f->counters_count);
    text_add(t, "}, \"queues\": [");
    for (size_t i = 0; i < f->queues_count; i++) {
        const struct watch_queue *q = &f->queues[i];
        text_addf(t,
                  "%s{\"priority\": %u, \"partitions\": %u, \"oldest_ns\": %" PRIu64
                  ", \"work_ns\": %" PRIu64,
                  i ? ", " : "", q->priority, q->partitions, q->oldest_ns, q->work_ns);
        add_key(t, &q->key);
        add_string(t, "label", q->label);
        text_add(t, "}");
    }
    text_add(t, "]");
}

static void add_failures(struct text *t, const struct watch *p) {
    const char *between = "";
    text_add(t, ", \"failures\": [");
    for (size_t i = 0; i < p->jobs_count; i++) {
        const struct watch_job *job = &p->jobs[i];
        if (!job->failed) {
            continue;
        }
        text_addf(t, "%s{\"at_unix_ms\": %" PRIu64, between, job->last_ms);
        add_string(t, "job", job->job);
        add_string(t, "tenant", job->tenant);
        add_string(t, "state", job->state);
        add_string(t, "error", job->error);
        add_string(t, "reason", job->reason);
        text_add(t, "}");
        between = ", ";
    }
    text_add(t, "]");
}

static enum err print_json(const struct watch *p) {
    AUTO(text_free) struct text t = {0};
    text_addf(&t, "{\"at_unix_ms\": %" PRIu64 ", ", clock_unix_ns() / 1000000);
    add_fleet(&t, &p->fleet);
    text_add(&t, ", \"lanes\": [");
    for (size_t i = 0; i < p->lanes_count; i++) {
        text_add(&t, i ? ", " : "");
        add_lane(&t, &p->lanes[i]);
    }
    text_add(&t, "]");
    add_failures(&t, p);
    text_add(&t, "}");
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

/* --- Once: as text --- */

static void print_lane(const struct watch_lane *lane) {
    char bar[41];
    struct watch_minute m = watch_minute_of(lane);
    watch_bar(bar, sizeof bar - 1, &m);
    printf("%s.%u  %s  %s  [%s]  %" PRIu64 "%% busy  done %" PRIu64 "  in hand %u\n", lane->node,
           lane->gpu, state_name(lane->state), lane->now, bar,
           m.wall_ns ? m.compute_ns * 100 / m.wall_ns : 0,
           watch_counter(lane->counters, lane->counters_count, "jobs_done"), lane->depth);
    for (size_t i = 0; i < lane->hand_count; i++) {
        const struct watch_hand *h = &lane->hand[i];
        printf("  %s of %s  %s %s %u%%  %.1f s\n", h->job, h->tenant, h->stage, h->step,
               h->permille / 10, (double)h->age_ns / 1e9);
    }
}

static void print_queue(const struct watch_queue *q) {
    char key[13];
    printf("%s %s %s  %u waiting  oldest %.1f s  work %.1f s\n", pen_priority_text(q->priority),
           pen_key_text(key, &q->key), q->label, q->partitions, (double)q->oldest_ns / 1e9,
           (double)q->work_ns / 1e9);
}

static void print_text(const struct watch *p) {
    const struct watch_fleet *f = &p->fleet;
    printf("%s%s  lanes %u of %u open  jobs %u  queued %u  placed %u  running %u  backlog %.1f s\n",
           f->known ? "led by " : "no coordinator heard", f->leader, f->lanes_open, f->lanes_known,
           f->jobs_open, f->queued, f->placed, f->running, (double)f->backlog_wall_ns / 1e9);
    for (size_t i = 0; i < p->lanes_count; i++) {
        print_lane(&p->lanes[i]);
    }
    for (size_t i = 0; i < f->queues_count; i++) {
        print_queue(&f->queues[i]);
    }
    for (size_t i = 0; i < p->jobs_count; i++) {
        if (p->jobs[i].failed) {
            printf("%s of %s  %s  %s\n", p->jobs[i].job, p->jobs[i].tenant, p->jobs[i].error,
                   p->jobs[i].reason);
        }
    }
}

/* Whole as soon as every lane of the fleet has spoken; a silent one is waited for in vain, but not for long. */
static bool is_whole(const struct watch *p) {
    size_t spoken = 0;
    for (size_t i = 0; i < p->lanes_count; i++) {
        spoken += p->lanes[i].spoke_device && p->lanes[i].spoke_lane;
    }
    return p->fleet.known && spoken >= p->fleet.lanes_known && p->fleet.lanes_known > 0;
}

static enum err run_once(struct fleet_watch *w, bool json) {
    uint64_t start_ns = clock_ns();
    do {
        watch_take(w, LOOK_NS);
    } while (!is_whole(watch_picture(w)) && clock_ns() - start_ns < SETTLE_NS);
    if (json) {
        return print_json(watch_picture(w));
    }
    print_text(watch_picture(w));
    return OK;
}

/* --- The command --- */

static enum err run(struct args *args) {
    AUTO(client_close) struct client c = {0};
    AUTO(watch_close) struct fleet_watch *w = NULL;
    AUTO(top_screen_close) struct top_screen *screen = NULL;
    const char *no_color = getenv("NO_COLOR");
    bool json = args_switch(args, "json"), once = args_switch(args, "once") || json;
    bool colour = !args_switch(args, "no-color") && !(no_color && no_color[0]);
    TRY(client_open(&c, args));
    TRY(watch_open(&w, c.transport, &c.space));
    if (once) {
        return run_once(w, json);
    }
    TRY(top_screen_open(&screen, colour, args_text(args, "filter")));
    do {
        watch_take(w, 0);
    } while (top_screen_step(screen, watch_picture(w), c.server_shown, STEP_MS));
    return OK;
}

static const struct positional no_positionals[] = {{0}};
static const struct option options[] = {
    {.kind = OPTION_SWITCH, .name = "once", .text = "Prints one picture of the fleet and ends."},
    OPTION_JSON,
    {.kind = OPTION_SWITCH, .name = "no-color", .text = "Draws without colours; so does NO_COLOR."},
    {.kind = OPTION_TEXT,
     .name = "filter",
     .value = "TEXT",
     .text = "Shows only devices and jobs that contain it."},
    OPTIONS_END,
};
const struct command cmd_top = {
    .name = "top",
    .sentence = "watch the fleet: devices, queues, jobs, failures",
    .positionals = no_positionals,
    .options = options,
    .config = CONFIG_CLIENT,
    .notes = "The bars are the last minute of each device: # it computed, other letters why it did "
             "not (? explains).\n"
             "  bellows top --once --json | jq '.lanes[].last_minute'\n",
    .run = run,
};
