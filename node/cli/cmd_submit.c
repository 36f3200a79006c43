/* bellows submit: one job, a partition per witness.
 *
 *   open key and witnesses, refuse what cannot fit ─ connect ─ send (node/submit/submission.h) ─ print the job's id ─ --wait: the result,
 *   its files, its exit code
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/quantity.h"
#include "node/cli/backend_args.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"
#include "node/cli/screen.h"
#include "node/submit/submission.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum err read_priority(uint32_t *out, const char *word) {
    static const char *const words[JOB_PRIORITY_COUNT] = {"urgent", "high", "normal", "low"};
    for (uint32_t i = 0; i < JOB_PRIORITY_COUNT; i++) {
        if (!strcmp(words[i], word)) {
            *out = i;
        }
    }
    return OK;
}

static enum err read_deadline(uint64_t *out, const char *text) {
    uint64_t span_ns = 0;
    if (!text) {
        return OK;
    }
    enum err code = quantity_span_ns(&span_ns, text);
    REQUIRE(code == OK && span_ns > 0, E_USAGE, "--deadline %s: a time from now, like 90s or 5m",
            text);
    *out = (clock_unix_ns() + span_ns) / 1000000;
    return OK;
}

static enum err open_files(struct submission **out, const struct args *args) {
    AUTO(submission_close) struct submission *s = NULL;
    AUTO(key_unref) struct key *key = NULL;
    struct key_options options = {.allow_insecure = args_switch(args, "allow-insecure-keys")};
    size_t count = args_rest_count(args);
    TRY(key_open(&key, args_positional(args, "KEY"), options));
    TRY(submission_open(&s, key, count));
    for (size_t i = 0; i < count; i++) {
        AUTO(witness_close) struct witness witness = {0};
        TRY(witness_open(&witness, args_rest(args, i)));
        TRY(submission_add(s, &witness));
    }
    *out = TAKE(s);
    return OK;
}

static enum err send(struct submission *s, const struct client *client,
                     struct submission_options *options) {
    struct screen *screen = NULL;
    screen_open(&screen, "sending");
    options->progress = screen_progress;
    options->progress_ctx = screen;
    enum err code = submission_send(s, client, options);
    screen_close(&screen);
    return code;
}

static void print_sent(const struct submission *s, const char *tenant, size_t partitions_count) {
    char hex[SHA256_HEX_BYTES];
    sha256_hex(hex, submission_key_digest(s));
    printf("{\"job\": \"%s\", \"tenant\": \"%s\", \"generation\": %" PRIu64
           ", \"key\": \"%s\", \"partitions\": %zu}\n",
           submission_job(s), tenant, submission_generation(s), hex, partitions_count);
}

static enum err wait_for_result(struct submission *s, const struct args *args, uint64_t limit_ns) {
    AUTO(message_free) result_message *result = NULL;
    struct screen *screen = NULL;
    screen_open(&screen, "waiting");
    enum err code = submission_wait(&result, s, limit_ns);
    screen_close(&screen);
    TRY(code);
    return client_deliver(result, args);
}

static enum err run(struct args *args) {
    AUTO(client_close) struct client client = {0};
    AUTO(submission_close) struct submission *s = NULL;
    struct submission_options options = {.job = args_text(args, "job"),
                                         .label = args_text(args, "label"),
                                         .wait = args_switch(args, "wait")};
    bool json = args_switch(args, "json");
    uint64_t limit_ns = 0;
    TRY(read_priority(&options.priority, args_text(args, "priority")));
    TRY(read_deadline(&options.deadline_unix_ms, args_text(args, "deadline")));
    if (options.job) {
        TRY(id_check(options.job, "job"));
    }
    TRY(job_check_label(options.label ? options.label : ""));
    TRY(client_wait_limit(&limit_ns, args));
    TRY(options.wait ? client_check_out(args) : OK);
    TRY(open_files(&s, args));
    TRY(client_open(&client, args));
    TRY(send(s, &client, &options));
    if (!json) {
        puts(submission_job(s));
    } else if (!options.wait) {
        print_sent(s, client.tenant, args_rest_count(args));
    }
    fflush(stdout);
    return options.wait ? wait_for_result(s, args, limit_ns) : OK;
}

static const struct positional positionals[] = {
    {.name = "KEY", .text = "proving key: .zkey, or native (`key import`)"},
    {.name = "WITNESS",
     .text = "witnesses (.wtns) or evaluations; each becomes a partition with a proof of its own",
     .repeats = true},
    {0},
};
static const struct option options[] = {
    {.kind = OPTION_SWITCH, .name = "wait", .text = "Waits for the result and writes it to --out."},
    OPTION_OUT,
    OPTION_OUT_FORMAT,
    OPTION_WAIT_LIMIT,
    {.kind = OPTION_CHOICE,
     .name = "priority",
     .value = "urgent|high|normal|low",
     .fallback = "normal",
     .text = "Which jobs go first; the low ones keep a guaranteed share."},
    {.kind = OPTION_TEXT,
     .name = "deadline",
     .value = "TIME",
     .text = "From now on (\"90s\"): without a proof by then the job expires."},
    {.kind = OPTION_TEXT,
     .name = "job",
     .value = "ID",
     .text = "Name of the job; sending the same one again gives the first result. Made up when "
             "absent."},
    {.kind = OPTION_TEXT, .name = "label", .value = "TEXT", .text = "Free text for people."},
    OPTION_TENANT,
    OPTION_INSECURE,
    OPTION_JSON,
    OPTIONS_END,
};
const struct command cmd_submit = {
    .name = "submit",
    .sentence = "send a job to the fleet",
    .positionals = positionals,
    .options = options,
    .config = CONFIG_CLIENT,
    .notes = "Prints the job's id as soon as the fleet has it. Exit codes with --wait: 0 proved, 1 "
             "the witness does not\n"
             "satisfy the circuit, 2 refused, 3 devices failed, 4 cancelled, expired, timed out or "
             "no network.\n"
             "  bellows submit circuit.zkey witness.wtns --wait --out proofs\n",
    .run = run,
};
