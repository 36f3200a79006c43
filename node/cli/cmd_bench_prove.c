/* bellows bench prove: how long proofs take here, as one JSON line.
 *
 * The key is loaded once, warm-up runs are thrown away, every run proves with fresh blinding and is verified. Median and
 * spread (least and most) of the whole proof and of each step; verification is a step of its own, so that "prove" and
 * "prove without the self-check" can both be read off.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/cli/backend_args.h"
#include "node/cli/bench.h"
#include "node/cli/commands.h"
#include "node/cli/key_maker.h"
#include "node/cli/screen.h"
#include "node/cpu/tier.h"
#include "node/groth16/prove.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { ROW_TOTAL = STEP_COUNT, ROWS = STEP_COUNT + 1 };

struct bench {
    const char *key_tables;  /* lent: the option */
    struct key_maker *maker; /* owned: a key in memory, NULL without --synth */
    struct key *key;         /* owned (ref) */
    struct witness witness;  /* owned */
    void *pinned;            /* the witness's values, with --pin */
    struct backend *backend;
    struct backend_choice choice;
    struct backend_key *backend_key;
    struct backend_slot *slot;
    struct screen *screen;
    struct job_watch watch;
    uint64_t *ns; /* owned: ROWS rows of `runs` */
    size_t runs;
    uint64_t made_ns, load_ns, slot_ns;
    struct rates ceiling; /* zero: not known */
    char name[64];        /* of a key that has no file */
};

static void bench_done(struct bench *b) {
    screen_close(&b->screen);
    mem_free(b->ns);
    if (b->slot) {
        b->backend->ops->slot_close(&b->slot);
    }
    if (b->backend_key) {
        b->backend->ops->key_drop(&b->backend_key);
    }
    if (b->pinned) {
        b->backend->ops->unpin(b->backend, b->pinned);
    }
    witness_close(&b->witness);
    key_unref(&b->key);
    key_maker_close(&b->maker);
    backend_close(&b->backend);
}

static enum err make_key(struct bench *b, const struct args *args) {
    const char *shape = args_text(args, "synth");
    struct key_maker_order order = {.curve = curve_by_name(args_text(args, "curve")),
                                    .log2 = (unsigned)args_number(args, "log2", 0),
                                    .seed = args_number(args, "seed", 1),
                                    .threads = (unsigned)args_number(args, "threads", 0),
                                    .backend = b->backend,
                                    .progress = screen_progress,
                                    .progress_ctx = b->screen};
    uint64_t start_ns = clock_ns();
    TRY(synth_shape_from(&order.shape, shape));
    TRY(key_maker_open(&b->maker, &order));
    TRY(key_maker_key(&b->key, b->maker));
    key_maker_witness(&b->witness, b->maker);
    snprintf(b->name, sizeof b->name, "synth %s 2^%u", shape, order.log2);
    b->made_ns = clock_ns() - start_ns;
    return OK;
}

/* Made-up values lie in pages of their own. */
static enum err pin_witness(struct bench *b) {
    void *values = (void *)(uintptr_t)b->witness.values;
    REQUIRE(b->backend->ops->pin && b->maker, E_USAGE,
            "--pin is for --synth and for the cuda backend");
    TRY(b->backend->ops->pin(b->backend, values, (size_t)b->witness.count * SCALAR_BYTES));
    b->pinned = values;
    return OK;
}

static enum err open_files(struct bench *b, const struct args *args) {
    TRY(key_open(&b->key, args_positional(args, "KEY"),
                 (struct key_options){.allow_insecure = true}));
    return witness_open(&b->witness, args_positional(args, "WITNESS"));
}

static enum err bench_open(struct bench *b, const struct args *args) {
    struct backend_options options;
    b->key_tables = args_text(args, "key-tables");
    TRY(backend_args_read(&options, args));
    TRY(backends_open(&b->backend, &b->choice, &options));
    TRY(strcmp(args_text(args, "synth"), "no") != 0 ? make_key(b, args) : open_files(b, args));
    TRY(witness_fits(&b->witness, key_shape(b->key), key_path(b->key)));
    TRY(key_prepare(b->key));
    if (args_switch(args, "pin")) {
        TRY(pin_witness(b));
    }
    uint64_t start_ns = clock_ns();
    TRY(b->backend->ops->key_load(&b->backend_key, b->backend, b->key));
    uint64_t loaded_ns = clock_ns();
    TRY(b->backend->ops->slot_open(&b->slot, b->backend_key));
    b->load_ns = loaded_ns - start_ns;
    b->slot_ns = clock_ns() - loaded_ns;
    b->runs = args_number(args, "runs", 5);
    return mem_new(&b->ns, ROWS * b->runs, sizeof *b->ns);
}

static enum err prove_once(struct prove_result *out, struct bench *b) {
    struct blinding blinding;
    TRY(blinding_random(&blinding, key_curve(b->key)));
    return groth16_prove(out, b->backend, b->slot, b->key, &b->witness, &blinding, &b->watch);
}

static enum err bench_run(struct bench *b, uint64_t warmups) {
    for (uint64_t i = 0; i < warmups + b->runs; i++) {
        struct prove_result result = {0};
        enum err code = prove_once(&result, b);
        if (i >= warmups && code == OK) {
            for (size_t step = 0; step < STEP_COUNT; step++) {
                b->ns[step * b->runs + i - warmups] = result.times.ns[step];
            }
            b->ns[ROW_TOTAL * b->runs + i - warmups] = result.total_ns;
        }
        prove_result_done(&result);
        TRY(code);
        screen_progress(b->screen, (double)(i + 1) / (double)(warmups + b->runs));
    }
    return OK;
}

static enum err print_line(struct bench *b, uint64_t warmups) {
    AUTO(text_free) struct text t = {0};
    const struct key_shape *shape = key_shape(b->key);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    bench_begin(&t, "prove", b->choice.why);
    text_addf(&t, ", \"key_tables\": \"%s\"", b->key_tables);
    text_add(&t, ", \"key\": ");
    text_add_json_string(&t, b->name[0] ? b->name : key_path(b->key));
    text_addf(
        &t,
        ", \"curve\": \"%s\", \"wires\": %u, \"public_signals\": %u, \"domain_size\": %" PRIu64
        ", \"terms\": %" PRIu64 ", \"warmups\": %" PRIu64 ", \"runs\": %zu, \"made_ns\": %" PRIu64
        ", \"load_ns\": %" PRIu64 ", \"load_gb_s\": %.2f, \"slot_ns\": %" PRIu64
        ", \"peak_memory_bytes\": %" PRIu64 ", ",
        key_curve(b->key)->snarkjs_name, shape->wires_count, shape->public_count,
        shape->domain_size, shape->terms_count[0] + shape->terms_count[1], warmups, b->runs,
        b->made_ns, b->load_ns, (double)shape->file_bytes / (double)b->load_ns, b->slot_ns,
        (uint64_t)usage.ru_maxrss * 1024);
    uint64_t median_ns = bench_row(&t, "prove_ns", b->ns + ROW_TOTAL * b->runs, b->runs);
    text_add(&t, ", ");
    bench_share(&t, products_of_proof(shape, &b->witness), &b->ceiling, median_ns);
    text_add(&t, ", \"steps_ns\": {");
    for (int step = 0; step < STEP_COUNT; step++) {
        text_add(&t, step ? ", " : "");
        bench_row(&t, prove_step_name((enum prove_step)step), b->ns + (size_t)step * b->runs,
                  b->runs);
    }
    text_add(&t, "}}");
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

/* Of the processor, with as many threads as proved. */
static enum err find_ceiling(struct bench *b, const struct args *args) {
    AUTO(pool_close) struct pool *pool = NULL;
    const struct cpu_ops *ops = NULL;
    struct backend_options options;
    if (b->choice.kind != BACKEND_CPU) {
        return OK;
    }
    TRY(backend_args_read(&options, args));
    TRY(tier_find(&ops, key_curve(b->key)->id, options.cpu_tier));
    TRY(pool_open(&pool, options.threads_count));
    rate_measure(&b->ceiling, ops, pool);
    return OK;
}

static enum err run_bench(struct args *args) {
    AUTO(bench_done) struct bench bench = {0};
    uint64_t warmups = args_number(args, "warmups", 1);
    screen_open(&bench.screen, "bench prove");
    TRY(bench_open(&bench, args));
    TRY(bench_run(&bench, warmups));
    TRY(find_ceiling(&bench, args));
    screen_close(&bench.screen);
    return print_line(&bench, warmups);
}

static const struct positional positionals[] = {
    POSITIONAL_KEY,
    {.name = "WITNESS", .fallback = "witness.wtns", .text = "witness of the key's circuit"},
    {0},
};
static const struct option options[] = {
    {.kind = OPTION_CHOICE,
     .name = "synth",
     .value = "no|dense|bits|porep",
     .fallback = "no",
     .text =
         "Instead of KEY and WITNESS: those of `key synth`, made in memory by the same backend, "
         "no file."},
    OPTION_LOG2(SYNTH_LOG2_MIN, SYNTH_LOG2_MAX, "With --synth: the domain has 2^N rows."),
    {.kind = OPTION_SWITCH,
     .name = "pin",
     .text = "With --synth: the witness in page-locked memory."},
    OPTION_CURVE,
    OPTION_SYNTH_SEED,
    OPTION_BACKEND,
    OPTION_THREADS,
    OPTION_CPU_TIER,
    OPTION_DEVICE,
    OPTION_DEVICE_MEMORY,
    OPTION_KEY_TABLES,
    OPTION_RUNS,
    OPTION_WARMUPS,
    OPTIONS_END,
};
const struct command cmd_bench_prove = {
    .name = "bench prove",
    .sentence = "times proofs under one key; prints one JSON line",
    .positionals = positionals,
    .options = options,
    .notes = "Forgeable keys are taken: no proof leaves the command.",
    .run = run_bench,
};
