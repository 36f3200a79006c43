/* bellows key synth: a key whose secrets are known, and a witness that satisfies its circuit, of any size. */
#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/cli/backend_args.h"
#include "node/cli/commands.h"
#include "node/cli/key_maker.h"
#include "node/cli/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_ZKEY   "synth.zkey"
#define DEFAULT_NATIVE "synth.native"

struct synth_run {
    struct backend *backend; /* owned */
    struct key_maker *maker; /* owned; closed before the backend */
    struct screen *screen;   /* owned */
    const char *key, *witness;
    bool native;
};

static void synth_run_done(struct synth_run *r) {
    screen_close(&r->screen);
    key_maker_close(&r->maker);
    backend_close(&r->backend);
}

static enum err print_line(const struct args *args, const struct synth_run *r,
                           uint64_t elapsed_ns) {
    const struct setup_circuit *k = &key_maker_circuit(r->maker)->circuit;
    const char *layout = r->native ? "native" : "zkey";
    if (args_switch(args, "json")) {
        AUTO(text_free) struct text t = {0};
        text_add(&t, "{\"key\": ");
        text_add_json_string(&t, r->key);
        text_add(&t, ", \"witness\": ");
        text_add_json_string(&t, r->witness);
        text_addf(&t,
                  ", \"layout\": \"%s\", \"backend\": \"%s\", "
                  "\"curve\": \"%s\", \"shape\": \"%s\", \"domain_size\": %" PRIu64
                  ", \"constraints\": %u, \"wires\": %u, \"public_signals\": %u, "
                  "\"elapsed_ns\": %" PRIu64 "}",
                  layout, r->backend->ops->name, k->curve->snarkjs_name, args_text(args, "shape"),
                  setup_domain(k), k->constraints_count, k->wires_count, k->public_count,
                  elapsed_ns);
        TRY(text_done(&t));
        puts(t.ptr);
    } else {
        printf("%s (%s) and %s: %s, %s, %u constraints, %u wires (%.1f s, %s); anybody can forge "
               "proofs under this key\n",
               r->key, layout, r->witness, k->curve->snarkjs_name, args_text(args, "shape"),
               k->constraints_count, k->wires_count, (double)elapsed_ns / 1e9,
               r->backend->ops->name);
    }
    return OK;
}

static enum err run(struct args *args) {
    AUTO(synth_run_done) struct synth_run r = {0};
    struct backend_options options;
    struct key_maker_order order = {.curve = curve_by_name(args_text(args, "curve")),
                                    .log2 = (unsigned)args_number(args, "log2", 0),
                                    .seed = args_number(args, "seed", 1),
                                    .threads = (unsigned)args_number(args, "threads", 0),
                                    .progress = screen_progress};
    uint64_t start_ns = clock_ns();
    r.native = args_switch(args, "native") || order.log2 > KEY_MAKER_ZKEY_LOG2_MAX;
    r.key = args_positional(args, "KEY");
    r.witness = args_positional(args, "WITNESS");
    if (r.native && !strcmp(r.key, DEFAULT_ZKEY)) {
        r.key = DEFAULT_NATIVE;
    }
    REQUIRE(!file_same(r.key, r.witness), E_USAGE, "KEY and WITNESS are the same file, %s", r.key);
    TRY(synth_shape_from(&order.shape, args_text(args, "shape")));
    TRY(backend_args_read(&options, args));
    TRY(backends_open(&r.backend, NULL, &options));
    screen_open(&r.screen, "key synth");
    order.progress_ctx = r.screen;
    order.backend = r.backend;
    TRY(key_maker_open(&r.maker, &order));
    const struct key_maker_files files = {.key = r.key,
                                          .witness = r.witness,
                                          .evaluations = args_text(args, "evaluations"),
                                          .native = r.native};
    TRY(key_maker_write(r.maker, &files));
    screen_close(&r.screen);
    return print_line(args, &r, clock_ns() - start_ns);
}

static const struct positional positionals[] = {
    {.name = "KEY", .fallback = DEFAULT_ZKEY, .text = "where the proving key goes"},
    {.name = "WITNESS", .fallback = "synth.wtns", .text = "where its witness goes"},
    {0},
};
static const struct option options[] = {
    OPTION_LOG2(SYNTH_LOG2_MIN, SYNTH_LOG2_MAX,
                "The domain has 2^N rows; a native key of them takes up to 600 bytes each."),
    OPTION_CURVE,
    {.kind = OPTION_SWITCH,
     .name = "native",
     .text =
         "KEY in our own layout, which prove and bench take as it lies; always from --log2 24 on."},
    {.kind = OPTION_TEXT,
     .name = "evaluations",
     .value = "FILE",
     .text = "Writes a, b and the assignment, too, as a prover that has synthesised has them."},
    {.kind = OPTION_CHOICE,
     .name = "shape",
     .value = "dense|bits|porep",
     .fallback = "dense",
     .text = "All values full-size, as in Poseidon; bits, as in SHA-256; bits with 3 in 100 full, "
             "as in a PoRep partition."},
    OPTION_SYNTH_SEED,
    OPTION_BACKEND,
    OPTION_DEVICE,
    OPTION_THREADS,
    OPTION_CPU_TIER,
    OPTION_JSON,
    OPTIONS_END,
};
const struct command cmd_key_synth = {
    .name = "key synth",
    .sentence = "makes a key with known secrets and its witness, for benches",
    .positionals = positionals,
    .options = options,
    .notes = "Gamma equals delta in such a key, a mark that cannot be taken off: prove, submit and "
             "nodes refuse it\n"
             "without --allow-insecure-keys.\n"
             "  bellows key synth --log2 20 --curve bls12381 --shape porep\n",
    .run = run,
};
