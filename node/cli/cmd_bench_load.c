/* bellows bench load: how fast a key comes to where a backend computes, as one JSON line.
 *
 *     from       the key's bytes lie in            what limits it on a device
 *     file       a mapped file, in the page cache  threads that copy
 *     memory     ordinary memory                   the same
 *     pinned     page-locked memory                the bus
 *
 * On a device the line also says until when its memory was there, until when the host had handed everything over, and until when the last
 * of it had arrived (medians of what each took).
 *
 * Every run loads the key and drops it. Bytes are those of the native key; of a .zkey they are the file's, whose rows must be built first.
 */
#include "node/base/bulk.h"
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/numa.h"
#include "node/cli/backend_args.h"
#include "node/cli/bench.h"
#include "node/cli/commands.h"
#include "node/cli/key_maker.h"
#include "node/cli/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct load_bench {
    struct backend *backend; /* owned */
    struct backend_choice choice;
    struct screen *screen;   /* owned */
    struct key_maker *maker; /* owned: a key in memory, NULL without --synth */
    struct bytes_mut copy;   /* owned: of a key's file, with --pin */
    struct key *key;         /* owned (ref) */
    struct backend_key *loaded;
    void *pinned; /* what was pinned, NULL: nothing */
    const char *from;
    uint64_t *ns;                                    /* owned */
    uint64_t *memory_ns, *hand_over_ns, *arrival_ns; /* lent: behind them */
    size_t runs;
    uint64_t open_ns;
};

static void load_bench_done(struct load_bench *b) {
    screen_close(&b->screen);
    if (b->loaded) {
        b->backend->ops->key_drop(&b->loaded);
    }
    key_unref(&b->key);
    if (b->pinned) {
        b->backend->ops->unpin(b->backend, b->pinned);
    }
    bulk_close(&b->copy);
    mem_free(b->ns);
    key_maker_close(&b->maker);
    backend_close(&b->backend);
}

static FALLIBLE make_key(struct load_bench *b, const struct args *args) {
    struct key_maker_order order = {.curve = curve_by_name(args_text(args, "curve")),
                                    .log2 = (unsigned)args_number(args, "log2", 0),
                                    .seed = args_number(args, "seed", 1),
                                    .threads = (unsigned)args_number(args, "threads", 0),
                                    .backend = b->backend,
                                    .progress = screen_progress,
                                    .progress_ctx = b->screen};
    TRY(synth_shape_from(&order.shape, args_text(args, "synth")));
    TRY(key_maker_open(&b->maker, &order));
    TRY(key_maker_key(&b->key, b->maker));
    b->from = "memory";
    return OK;
}

/* The key that was opened by its path, and so looked at, once more from a copy. */
static FALLIBLE copy_key(struct load_bench *b, const char *path, struct key_options options) {
    AUTO(file_map_close) struct file_map map = {0};
    REQUIRE(key_shape(b->key)->format == KEY_FORMAT_NATIVE, E_USAGE,
            "%s: --pin copies native keys; make one with `bellows key import`", path);
    TRY(file_map_open(&map, path));
    TRY(bulk_open(&b->copy, map.bytes.len));
    numa_prefer(b->copy.ptr, b->copy.len, b->backend->numa_node);
    memcpy(b->copy.ptr, map.bytes.ptr, map.bytes.len);
    key_unref(&b->key);
    return key_from_memory(&b->key, bytes_of(b->copy.ptr, b->copy.len), path, options);
}

static FALLIBLE pin_key(struct load_bench *b) {
    bool zkey_layout;
    struct bytes first = key_points_raw(&zkey_layout, b->key, KEY_A);
    uint64_t bytes = key_shape(b->key)->file_bytes;
    struct key_section_view sections[2];
    REQUIRE(b->backend->ops->pin, E_USAGE, "--pin is for the cuda backend");
    key_sections(sections, COUNT_OF(sections), b->key); /* the second: points of A */
    void *base = (uint8_t *)(uintptr_t)first.ptr - sections[1].offset;
    TRY(b->backend->ops->pin(b->backend, base, bytes));
    b->pinned = base;
    b->from = "pinned";
    return OK;
}

static FALLIBLE load_bench_open(struct load_bench *b, const struct args *args) {
    struct backend_options options;
    struct key_options any = {.allow_insecure = true};
    const char *path = args_positional(args, "KEY");
    bool pin = args_switch(args, "pin");
    TRY(backend_args_read(&options, args));
    TRY(backends_open(&b->backend, &b->choice, &options));
    b->from = "file";
    if (strcmp(args_text(args, "synth"), "no") != 0) {
        TRY(make_key(b, args));
    } else {
        uint64_t start_ns = clock_ns();
        TRY(key_open(&b->key, path, any));
        b->open_ns = clock_ns() - start_ns;
        if (pin) {
            TRY(copy_key(b, path, any));
        }
    }
    if (pin) {
        TRY(pin_key(b));
    }
    b->runs = args_number(args, "runs", 5);
    TRY(mem_new(&b->ns, 4 * b->runs, sizeof *b->ns));
    b->memory_ns = b->ns + b->runs;
    b->hand_over_ns = b->memory_ns + b->runs;
    b->arrival_ns = b->hand_over_ns + b->runs;
    return OK;
}

static FALLIBLE load_once(struct load_bench *b, size_t run) {
    uint64_t start_ns = clock_ns();
    TRY(b->backend->ops->key_load(&b->loaded, b->backend, b->key));
    b->ns[run] = clock_ns() - start_ns;
    if (b->backend->ops->key_load_times) {
        struct load_times times;
        b->backend->ops->key_load_times(&times, b->loaded);
        b->memory_ns[run] = times.memory_ns;
        b->hand_over_ns[run] = times.hand_over_ns;
        b->arrival_ns[run] = times.arrival_ns;
    }
    b->backend->ops->key_drop(&b->loaded);
    return key_intact(b->key);
}

static FALLIBLE print_line(struct load_bench *b, const char *name, uint64_t warmups) {
    AUTO(text_free) struct text t = {0};
    uint64_t bytes = key_shape(b->key)->file_bytes;
    bench_begin(&t, "load", b->choice.why);
    text_add(&t, ", \"key\": ");
    text_add_json_string(&t, name);
    text_addf(&t,
              ", \"from\": \"%s\", \"bytes\": %" PRIu64 ", \"open_ns\": %" PRIu64
              ", \"warmups\": %" PRIu64 ", \"runs\": %zu, ",
              b->from, bytes, b->open_ns, warmups, b->runs);
    uint64_t median_ns = bench_row(&t, "load_ns", b->ns, b->runs);
    if (b->backend->ops->key_load_times) {
        text_add(&t, ", ");
        bench_row(&t, "memory_ns", b->memory_ns, b->runs);
        text_add(&t, ", ");
        bench_row(&t, "hand_over_ns", b->hand_over_ns, b->runs);
        text_add(&t, ", ");
        bench_row(&t, "arrival_ns", b->arrival_ns, b->runs);
    }
    text_addf(&t, ", \"gb_s\": %.2f}", (double)bytes / (double)median_ns);
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

static enum err run_bench(struct args *args) {
    AUTO(load_bench_done) struct load_bench b = {0};
    uint64_t warmups = args_number(args, "warmups", 1);
    const char *shape = args_text(args, "synth");
    char name[64];
    screen_open(&b.screen, "bench load");
    TRY(load_bench_open(&b, args));
    for (uint64_t i = 0; i < warmups + b.runs; i++) {
        TRY(load_once(&b, i < warmups ? 0 : i - warmups)); /* a warm-up's time is written over */
        screen_progress(b.screen, (double)(i + 1) / (double)(warmups + b.runs));
    }
    screen_close(&b.screen);
    snprintf(name, sizeof name, "synth %s 2^%u", shape, (unsigned)args_number(args, "log2", 0));
    return print_line(&b, b.maker ? name : args_positional(args, "KEY"), warmups);
}

static const struct positional positionals[] = {
    POSITIONAL_KEY,
    {0},
};
static const struct option options[] = {
    {.kind = OPTION_CHOICE,
     .name = "synth",
     .value = "no|dense|bits|porep",
     .fallback = "no",
     .text = "Instead of KEY: that of `key synth`, made in memory by the same backend."},
    OPTION_LOG2(SYNTH_LOG2_MIN, SYNTH_LOG2_MAX, "With --synth: the domain has 2^N rows."),
    {.kind = OPTION_SWITCH,
     .name = "pin",
     .text =
         "From page-locked memory: a copy of the native KEY, or the key of --synth where it is."},
    OPTION_CURVE,
    OPTION_SYNTH_SEED,
    OPTION_BACKEND,
    OPTION_THREADS,
    OPTION_CPU_TIER,
    OPTION_DEVICE,
    OPTION_DEVICE_MEMORY,
    OPTION_RUNS,
    OPTION_WARMUPS,
    OPTIONS_END,
};
const struct command cmd_bench_load = {
    .name = "bench load",
    .sentence = "times loading a key; prints one JSON line",
    .positionals = positionals,
    .options = options,
    .notes = "A key's file is in the page cache once it was read; the first run without --warmups "
             "0 does that.",
    .run = run_bench,
};
