/* bellows plan: what proving under a key takes, before anything is taken. */
#include "node/base/cgroup.h"
#include "node/base/quantity.h"
#include "node/cli/backend_args.h"
#include "node/cli/commands.h"

#include <inttypes.h>
#include <stdio.h>

static void print_bytes(const char *name, uint64_t bytes, const char *what) {
    printf("%-14s %10.1f MiB  %s\n", name, (double)bytes / (1 << 20), what);
}

/* What lies on the device was fitted to it by the plan itself. */
static bool fits(const struct plan *plan, uint64_t memory_bytes) {
    return plan->host_bytes + plan->pinned_bytes <= memory_bytes;
}

static void print_table(const struct key *key, const struct backend_choice *choice,
                        const struct plan *plan, uint64_t memory_bytes) {
    const struct key_shape *shape = key_shape(key);
    printf("key            %s: %s, %u wires, %u public, domain 2^%u\n", key_path(key),
           key_curve(key)->snarkjs_name, shape->wires_count, shape->public_count,
           shape->domain_log2);
    printf("backend        %s\n", choice->why);
    print_bytes("host", plan->host_bytes, "key in the backend's form, tables, one job's workspace");
    print_bytes("  resident", plan->key_bytes_resident, "of it (or of device) stays between jobs");
    print_bytes("mapped", plan->mapped_bytes, "of the key file, given back under pressure");
    print_bytes("pinned", plan->pinned_bytes, "page-locked for transfers");
    print_bytes("device", plan->device_bytes,
                plan->chunks_count > 1 ? "the key does not fit and is streamed" : "on the GPU");
    print_bytes("allowed", memory_bytes,
                memory_bytes != cgroup_memory_bytes() ? "by --memory"
                : cgroup_memory_is_limited()          ? "by the control group's limit"
                                                      : "by this machine");
    if (plan->multiples) {
        printf("multiples             yes      of the key's points, by --key-tables\n");
    }
    if (plan->chunks_count > 1) {
        printf("chunks         %10u\n", plan->chunks_count);
    }
    if (plan->expected_ns > 0) {
        printf("expected       %10.2f s    one proof, all witness values full-size\n",
               (double)plan->expected_ns / 1e9);
    }
    printf("fits           %s\n", fits(plan, memory_bytes) ? "yes" : "no");
}

static enum err print_json(const struct key *key, const struct backend *b,
                           const struct backend_choice *choice, const struct plan *plan,
                           uint64_t memory_bytes) {
    AUTO(text_free) struct text t = {0};
    const struct key_shape *shape = key_shape(key);
    text_add(&t, "{\"key\": ");
    text_add_json_string(&t, key_path(key));
    text_addf(
        &t,
        ", \"curve\": \"%s\", \"wires\": %u, \"public_signals\": %u, \"domain_size\": %" PRIu64
        ", \"backend\": \"%s\", \"backend_choice\": ",
        key_curve(key)->snarkjs_name, shape->wires_count, shape->public_count, shape->domain_size,
        b->ops->name);
    text_add_json_string(&t, choice->why);
    text_addf(
        &t,
        ", \"host_bytes\": %" PRIu64 ", \"mapped_bytes\": %" PRIu64 ", \"pinned_bytes\": %" PRIu64
        ", \"device_bytes\": %" PRIu64 ", \"key_bytes_resident\": %" PRIu64
        ", \"chunks\": %u, \"multiples\": %s, \"memory_bytes\": %" PRIu64 ", \"expected_ns\": ",
        plan->host_bytes, plan->mapped_bytes, plan->pinned_bytes, plan->device_bytes,
        plan->key_bytes_resident, plan->chunks_count, plan->multiples ? "true" : "false",
        memory_bytes);
    if (plan->expected_ns > 0) {
        text_addf(&t, "%" PRIu64, plan->expected_ns);
    } else {
        text_add(&t, "null");
    }
    text_addf(&t, ", \"fits\": %s}", fits(plan, memory_bytes) ? "true" : "false");
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

static enum err run_plan(struct args *args) {
    AUTO(backend_close) struct backend *backend = NULL;
    AUTO(key_unref) struct key *key = NULL;
    struct backend_options options;
    struct backend_choice choice;
    struct plan plan;
    TRY(backend_args_read(&options, args));
    TRY(key_open(&key, args_positional(args, "KEY"), (struct key_options){.allow_insecure = true}));
    TRY(backends_open(&backend, &choice, &options));
    TRY(backend->ops->plan(&plan, backend, key_shape(key)));
    const char *memory = args_text(args, "memory");
    uint64_t memory_bytes = cgroup_memory_bytes();
    if (memory) {
        TRY(quantity_bytes(&memory_bytes, memory));
    }
    if (args_switch(args, "json")) {
        TRY(print_json(key, backend, &choice, &plan, memory_bytes));
        args_reported(args);
    } else {
        print_table(key, &choice, &plan, memory_bytes);
    }
    REQUIRE(fits(&plan, memory_bytes), E_LIMIT,
            "proving takes %.1f MiB of memory and %.1f MiB are allowed; raise the control group's "
            "limit, or take a machine with more",
            (double)(plan.host_bytes + plan.pinned_bytes) / (1 << 20),
            (double)memory_bytes / (1 << 20));
    return OK;
}

static const struct positional positionals[] = {
    POSITIONAL_KEY,
    {0},
};
static const struct option options[] = {
    OPTION_BACKEND,
    OPTION_THREADS,
    OPTION_CPU_TIER,
    OPTION_DEVICE,
    OPTION_DEVICE_MEMORY,
    OPTION_KEY_TABLES,
    {.kind = OPTION_TEXT,
     .name = "memory",
     .value = "SIZE",
     .text = "Plans for so much memory of the host (\"16GiB\") instead of this machine's."},
    OPTION_JSON,
    OPTIONS_END,
};
const struct command cmd_plan = {
    .name = "plan",
    .sentence = "says what memory proving under a key takes, and how long",
    .positionals = positionals,
    .options = options,
    .notes = "Exit codes: 0 it fits, 3 it does not.\n",
    .run = run_plan,
};
