/* bellows key synth: a key whose secrets are known, and a witness that satisfies its circuit, of any size. */
#include "node/base/clock.h"
#include "node/cli/backend_args.h"
#include "node/cli/commands.h"
#include "node/cli/key_maker.h"
#include "node/cli/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_line(const struct args *args, const struct synth *s, uint64_t elapsed_ns) {
    const struct setup_circuit *k = &s->circuit;
    const char *key = args_positional(args, "KEY"), *witness = args_positional(args, "WITNESS");
    if (args_switch(args, "json")) {
        printf("{\"key\": \"%s\", \"witness\": \"%s\", \"curve\": \"%s\", \"shape\": \"%s\", "
               "\"domain_size\": %" PRIu64 ", \"constraints\": %u, \"wires\": %u, "
               "\"public_signals\": %u, \"elapsed_ns\": %" PRIu64 "}\n",
               key, witness, k->curve->snarkjs_name, args_text(args, "shape"), setup_domain(k),
               k->constraints_count, k->wires_count, k->public_count, elapsed_ns);
    } else {
        printf("%s and %s: %s, %s, %u constraints, %u wires (%.1f s); anybody can forge proofs "
               "under this key\n",
               key, witness, k->curve->snarkjs_name, args_text(args, "shape"), k->constraints_count,
               k->wires_count, (double)elapsed_ns / 1e9);
    }
}

static enum err run(struct args *args) {
    AUTO(key_maker_close) struct key_maker *maker = NULL;
    AUTO(screen_close) struct screen *screen = NULL;
    const char *tier = args_text(args, "cpu-tier");
    struct key_maker_order order = {.curve = curve_by_name(args_text(args, "curve")),
                                    .log2 = (unsigned)args_number(args, "log2", 0),
                                    .seed = args_number(args, "seed", 1),
                                    .threads = (unsigned)args_number(args, "threads", 0),
                                    .cpu_tier = strcmp(tier, "auto") != 0 ? tier : NULL,
                                    .progress = screen_progress};
    uint64_t start_ns = clock_ns();
    TRY(synth_shape_from(&order.shape, args_text(args, "shape")));
    screen_open(&screen, "key synth");
    order.progress_ctx = screen;
    TRY(key_maker_open(&maker, &order));
    TRY(key_maker_write(maker, args_positional(args, "KEY"), args_positional(args, "WITNESS")));
    screen_close(&screen);
    print_line(args, key_maker_circuit(maker), clock_ns() - start_ns);
    return OK;
}

static const struct positional positionals[] = {
    {.name = "KEY", .fallback = "synth.zkey", .text = "where the proving key goes"},
    {.name = "WITNESS", .fallback = "synth.wtns", .text = "where its witness goes"},
    {0},
};
static const struct option options[] = {
    {.kind = OPTION_NUMBER,
     .name = "log2",
     .value = "N",
     .fallback = "16",
     .least = SYNTH_LOG2_MIN,
     .most = KEY_MAKER_FILE_LOG2_MAX,
     .text = "The domain has 2^N rows."},
    OPTION_SYNTH_CURVE,
    {.kind = OPTION_CHOICE,
     .name = "shape",
     .value = "dense|bits|porep",
     .fallback = "dense",
     .text = "All values full-size, as in Poseidon; bits, as in SHA-256; bits with 3 in 100 full, "
             "as in a PoRep partition."},
    OPTION_SYNTH_SEED,
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
