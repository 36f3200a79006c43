/* bellows status, wait, fetch, list, cancel: what became of jobs. All of it is read from the records and results in the fleet; only cancel
 * asks somebody, the coordinator.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/cli/backend_args.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"
#include "node/cli/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum err open_job(struct client *c, const char **job, const struct args *args) {
    *job = args_positional(args, "JOB");
    TRY(id_check(*job, "job"));
    return client_open(c, args);
}

/* --- status --- */

static void status_json(struct text *t, const struct record *r, const struct job_place *at) {
    text_add(t, "{\"job\": ");
    text_add_json_string(t, at->name.job);
    text_add(t, ", \"tenant\": ");
    text_add_json_string(t, at->name.tenant);
    text_addf(t,
              ", \"state\": \"%s\", \"generation\": %" PRIu64 ", \"queued_unix_ms\": %" PRIu64
              ", \"updated_unix_ms\": %" PRIu64 ", \"reason\": ",
              job_state_name(r->state), r->generation, r->queued_unix_ms, r->updated_unix_ms);
    text_add_json_string(t, r->reason);
    text_add(t, ", \"partitions\": [");
    for (uint32_t i = 0; i < r->parts_count; i++) {
        const struct record_part *p = &r->parts[i];
        text_addf(t, "%s{\"index\": %u, \"state\": \"%s\", \"node\": ", i ? ", " : "", i,
                  job_state_name(p->state));
        text_add_json_string(t, p->lane.node);
        text_addf(t, ", \"gpu\": %u, \"tries\": [", p->lane.gpu);
        for (uint32_t k = 0; k < p->tries_count; k++) {
            const struct record_try *try = &p->tries[k];
            text_addf(t, "%s{\"error\": \"%s\", \"counted\": %s, \"node\": ", k ? ", " : "",
                      err_name(try->code), try->counted ? "true" : "false");
            text_add_json_string(t, try->lane.node);
            text_addf(t, ", \"gpu\": %u, \"detail\": ", try->lane.gpu);
            text_add_json_string(t, try->detail);
            text_add(t, "}");
        }
        text_add(t, "]}");
    }
    text_add(t, "]}");
}

static void status_print(const struct record *r, const struct job_place *at) {
    printf("job         %s of tenant %s, generation %" PRIu64 "\n", at->name.job, at->name.tenant,
           r->generation);
    printf("state       %s%s%s\n", job_state_name(r->state), r->reason[0] ? ": " : "", r->reason);
    uint64_t now_ms = clock_unix_ns() / 1000000;
    printf("age         %.1f s, last change %.1f s ago\n",
           (double)(now_ms - r->queued_unix_ms) / 1e3, (double)(now_ms - r->updated_unix_ms) / 1e3);
    for (uint32_t i = 0; i < r->parts_count; i++) {
        const struct record_part *p = &r->parts[i];
        printf("partition   %-3u %-8s", i, job_state_name(p->state));
        if (p->lane.node[0]) {
            printf(" on %s.%u", p->lane.node, p->lane.gpu);
        }
        for (uint32_t k = 0; k < p->tries_count; k++) {
            printf("\n            try %u on %s.%u: %s: %s", k + 1, p->tries[k].lane.node,
                   p->tries[k].lane.gpu, err_name(p->tries[k].code), p->tries[k].detail);
        }
        putchar('\n');
    }
}

static enum err run_status(struct args *args) {
    AUTO(client_close) struct client c = {0};
    AUTO(record_slot_done) struct record_slot slot = {0};
    const char *job = NULL;
    bool found = false;
    TRY(open_job(&c, &job, args));
    struct job_place at = client_place(&c, job);
    TRY(record_load(&slot, &found, &at));
    REQUIRE(found, E_RANGE, "tenant %s has no job %s", c.tenant, job);
    if (!args_switch(args, "json")) {
        status_print(&slot.record, &at);
        return OK;
    }
    AUTO(text_free) struct text t = {0};
    status_json(&t, &slot.record, &at);
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

/* --- wait, fetch --- */

static enum err run_wait(struct args *args) {
    AUTO(client_close) struct client c = {0};
    AUTO(waiter_close) struct waiter *waiter = NULL;
    AUTO(message_free) result_message *result = NULL;
    const char *job = NULL;
    struct screen *screen = NULL;
    uint64_t limit_ns = 0;
    TRY(client_wait_limit(&limit_ns, args));
    TRY(client_check_out(args));
    TRY(open_job(&c, &job, args));
    TRY(waiter_open(&waiter, &c, job, NULL));
    screen_open(&screen, "waiting");
    enum err code = waiter_wait(&result, waiter, 0, false, limit_ns);
    screen_close(&screen);
    TRY(code);
    return client_deliver(result, args);
}

static enum err run_fetch(struct args *args) {
    AUTO(client_close) struct client c = {0};
    AUTO(record_slot_done) struct record_slot slot = {0};
    AUTO(message_free) result_message *result = NULL;
    const char *job = NULL;
    bool known = false, found = false;
    TRY(client_check_out(args));
    TRY(open_job(&c, &job, args));
    struct job_place at = client_place(&c, job);
    TRY(record_load(&slot, &known, &at));
    TRY(result_fetch(&result, &found, &at, known ? slot.record.generation : 1));
    REQUIRE(found || known, E_RANGE, "tenant %s has no job %s", c.tenant, job);
    REQUIRE(found, E_TIMEOUT, "job %s is %s; `bellows wait %s` waits for its result", job,
            job_state_name(slot.record.state), job);
    return client_deliver(result, args);
}

/* --- list --- */

struct listing {
    struct text json;
    const char *state; /* NULL: all */
    bool as_json;
    size_t count;
};

static enum err list_one(void *ctx, const struct kv_entry *entry) {
    struct listing *l = ctx;
    char tenant[ID_BYTES_MAX + 1], job[ID_BYTES_MAX + 1];
    AUTO(record_done) struct record r = {0};
    if (!client_read_record(&r, tenant, job, entry)) {
        return OK;
    }
    if (l->state && strcmp(l->state, job_state_name(r.state)) != 0) {
        return OK;
    }
    uint32_t done = 0;
    for (uint32_t i = 0; i < r.parts_count; i++) {
        done += r.parts[i].state == JOB_DONE;
    }
    if (l->as_json) {
        text_addf(&l->json,
                  "%s{\"job\": \"%s\", \"tenant\": \"%s\", \"state\": \"%s\", \"partitions\": %u, "
                  "\"proved\": %u, "
                  "\"queued_unix_ms\": %" PRIu64 "}",
                  l->count ? ", " : "", job, tenant, job_state_name(r.state), r.parts_count, done,
                  r.queued_unix_ms);
    } else {
        printf("%-28s %-12s %-9s %3u/%-3u %9.1f s  %s\n", job, tenant, job_state_name(r.state),
               done, r.parts_count, (double)(clock_unix_ns() / 1000000 - r.queued_unix_ms) / 1e3,
               r.reason);
    }
    l->count++;
    return OK;
}

static enum err run_list(struct args *args) {
    AUTO(client_close) struct client c = {0};
    struct listing l = {.state = args_text(args, "state"), .as_json = args_switch(args, "json")};
    char filter[ID_BYTES_MAX + 8] = "*.*";
    TRY(client_open(&c, args));
    if (c.tenant[0]) {
        snprintf(filter, sizeof filter, "%s.*", c.tenant);
    }
    struct subject bucket = kv_bucket_name(&c.space, "jobs");
    text_add(&l.json, "[");
    if (!l.as_json) {
        printf("%-28s %-12s %-9s %-7s %11s  %s\n", "JOB", "TENANT", "STATE", "PROVED", "AGE",
               "REASON");
    }
    enum err code = kv_list(c.transport, bucket.text, filter, list_one, &l);
    text_add(&l.json, "]");
    if (code == OK && l.as_json) {
        code = text_done(&l.json);
        puts(code == OK ? l.json.ptr : "");
    }
    text_free(&l.json);
    return code;
}

/* --- cancel --- */

static enum err run_cancel(struct args *args) {
    AUTO(client_close) struct client c = {0};
    const char *job = NULL;
    enum job_state now;
    TRY(open_job(&c, &job, args));
    TRY(client_cancel(&now, &c, job, args_text(args, "reason")));
    const char *state = job_state_name(now);
    if (args_switch(args, "json")) {
        printf("{\"job\": \"%s\", \"tenant\": \"%s\", \"state\": \"%s\"}\n", job, c.tenant, state);
    } else {
        printf("job %s %s\n", job, state);
    }
    REQUIRE(now == JOB_CANCELLED, E_RANGE, "job %s had ended before: it is %s", job, state);
    return OK;
}

/* --- The commands --- */

static const struct positional job_positional[] = {
    {.name = "JOB", .text = "the id that submit printed"},
    {0},
};
static const struct option status_options[] = {OPTION_TENANT, OPTION_JSON, OPTIONS_END};
static const struct option wait_options[] = {OPTION_OUT,    OPTION_OUT_FORMAT, OPTION_WAIT_LIMIT,
                                             OPTION_TENANT, OPTION_JSON,       OPTIONS_END};
static const struct option fetch_options[] = {OPTION_OUT, OPTION_OUT_FORMAT, OPTION_TENANT,
                                              OPTION_JSON, OPTIONS_END};
static const struct option cancel_options[] = {
    {.kind = OPTION_TEXT, .name = "reason", .value = "TEXT", .text = "Stands in the job's result."},
    OPTION_TENANT,
    OPTION_JSON,
    OPTIONS_END,
};
static const struct positional no_positionals[] = {{0}};
static const struct option list_options[] = {
    {.kind = OPTION_CHOICE,
     .name = "state",
     .value = "queued|placed|running|done|failed|cancelled|expired|dead",
     .text = "Only jobs in this state."},
    {.kind = OPTION_TEXT,
     .name = "tenant",
     .value = "NAME",
     .env = "BELLOWS_TENANT",
     .text = "Only this tenant's jobs."},
    OPTION_JSON,
    OPTIONS_END,
};

const struct command cmd_status = {.name = "status",
                                   .sentence = "where a job is",
                                   .positionals = job_positional,
                                   .options = status_options,
                                   .config = CONFIG_CLIENT,
                                   .run = run_status};
const struct command cmd_wait = {.name = "wait",
                                 .sentence = "wait for a job's result and write it",
                                 .positionals = job_positional,
                                 .options = wait_options,
                                 .config = CONFIG_CLIENT,
                                 .notes = "Exit codes as `bellows submit --wait`.\n",
                                 .run = run_wait};
const struct command cmd_fetch = {
    .name = "fetch",
    .sentence = "write a finished job's proofs",
    .positionals = job_positional,
    .options = fetch_options,
    .config = CONFIG_CLIENT,
    .notes = "Exit code 4 when there is no result yet; else as `bellows submit --wait`.\n",
    .run = run_fetch};
const struct command cmd_list = {.name = "list",
                                 .sentence = "all jobs of the last days",
                                 .positionals = no_positionals,
                                 .options = list_options,
                                 .config = CONFIG_CLIENT,
                                 .run = run_list};
const struct command cmd_cancel = {
    .name = "cancel",
    .sentence = "stop a job, waiting or running",
    .positionals = job_positional,
    .options = cancel_options,
    .config = CONFIG_CLIENT,
    .notes = "Exit code 2 when the job had ended before. A cancelled job may be submitted again.\n",
    .run = run_cancel};
