/* bellows jobs: how many jobs each tenant has in each state, and how long the oldest one waits. What `list` shows row by row, counted. */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/cli/backend_args.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"
#include "node/job/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENANTS_MAX = 4096 };

struct tenant_count {
    char tenant[ID_BYTES_MAX + 1];
    uint64_t jobs[JOB_STATES_COUNT];
    uint64_t oldest_unix_ms; /* of those that are not ended; 0: none */
};
struct counts {
    struct tenant_count *list; /* owned */
    size_t count;
};

static void counts_done(struct counts *c) {
    mem_free(c->list);
}

static enum err find(struct tenant_count **out, struct counts *c, const char *tenant) {
    for (size_t i = 0; i < c->count; i++) {
        if (!strcmp(c->list[i].tenant, tenant)) {
            *out = &c->list[i];
            return OK;
        }
    }
    REQUIRE(c->count < TENANTS_MAX, E_LIMIT,
            "more than %d tenants; `bellows list --tenant` looks "
            "at one",
            TENANTS_MAX);
    *out = &c->list[c->count++];
    snprintf((*out)->tenant, sizeof(*out)->tenant, "%s", tenant);
    return OK;
}

static enum err count_one(void *ctx, const struct kv_entry *entry) {
    char tenant[ID_BYTES_MAX + 1], job[ID_BYTES_MAX + 1];
    AUTO(record_done) struct record r = {0};
    struct tenant_count *t = NULL;
    if (!client_read_record(&r, tenant, job, entry)) {
        return OK;
    }
    TRY(find(&t, ctx, tenant));
    t->jobs[r.state]++;
    bool older = !t->oldest_unix_ms || r.queued_unix_ms < t->oldest_unix_ms;
    if (job_state_is_open(r.state) && older) {
        t->oldest_unix_ms = r.queued_unix_ms;
    }
    return OK;
}

static int by_name(const void *a, const void *b) {
    const struct tenant_count *x = a, *y = b;
    return strcmp(x->tenant, y->tenant);
}

static double age_s(const struct tenant_count *t, uint64_t now_ms) {
    return t->oldest_unix_ms && now_ms > t->oldest_unix_ms
               ? (double)(now_ms - t->oldest_unix_ms) / 1e3
               : 0;
}

static enum err print_json(const struct counts *c, uint64_t now_ms) {
    AUTO(text_free) struct text t = {0};
    text_add(&t, "[");
    for (size_t i = 0; i < c->count; i++) {
        text_addf(&t, "%s{\"tenant\": \"%s\"", i ? ", " : "", c->list[i].tenant);
        for (int s = JOB_QUEUED; s < JOB_STATES_COUNT; s++) {
            text_addf(&t, ", \"%s\": %" PRIu64, job_state_name((enum job_state)s),
                      c->list[i].jobs[s]);
        }
        text_addf(&t, ", \"oldest_open_s\": %.3f}", age_s(&c->list[i], now_ms));
    }
    text_add(&t, "]");
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

static void print(const struct counts *c, uint64_t now_ms) {
    printf("%-20s", "TENANT");
    for (int s = JOB_QUEUED; s < JOB_STATES_COUNT; s++) {
        printf(" %9s", job_state_name((enum job_state)s));
    }
    printf(" %12s\n", "OLDEST OPEN");
    for (size_t i = 0; i < c->count; i++) {
        printf("%-20s", c->list[i].tenant);
        for (int s = JOB_QUEUED; s < JOB_STATES_COUNT; s++) {
            printf(" %9" PRIu64, c->list[i].jobs[s]);
        }
        printf(" %10.1f s\n", age_s(&c->list[i], now_ms));
    }
}

static enum err run(struct args *args) {
    AUTO(client_close) struct client c = {0};
    AUTO(counts_done) struct counts counts = {0};
    TRY(client_open(&c, args));
    TRY(mem_new(&counts.list, TENANTS_MAX, sizeof *counts.list));
    struct subject bucket = kv_bucket_name(&c.space, "jobs");
    TRY(kv_list(c.transport, bucket.text, "*.*", count_one, &counts));
    qsort(counts.list, counts.count, sizeof *counts.list, by_name);
    uint64_t now_ms = clock_unix_ns() / 1000000;
    if (args_switch(args, "json")) {
        return print_json(&counts, now_ms);
    }
    print(&counts, now_ms);
    return OK;
}

static const struct positional no_positionals[] = {{0}};
static const struct option options[] = {OPTION_JSON, OPTIONS_END};
const struct command cmd_jobs = {
    .name = "jobs",
    .sentence = "how many jobs each tenant has in each state",
    .positionals = no_positionals,
    .options = options,
    .config = CONFIG_CLIENT,
    .notes = "Reads every record: for operators. `bellows list` shows them one by one.\n",
    .run = run,
};
