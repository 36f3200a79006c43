/* bellows key inspect, check, export-vkey: what a key file is, whether it is sound, and its public half. */
#include "node/base/mem.h"
#include "node/cli/backend_args.h"
#include "node/cli/commands.h"
#include "node/cli/screen.h"
#include "node/cli/stop.h"
#include "node/cli/wire_names.h"
#include "node/key/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SECTIONS_MAX = 64 };

static const char *const points_names[KEY_POINTS_COUNT] = {"A", "B1", "B2", "L", "H"};

static const char *section_name(const struct key_shape *shape, uint32_t id) {
    static const char *const zkey[] = {"",   "protocol", "header", "IC", "coefficients", "A",
                                       "B1", "B2",       "L",      "H",  "contributions"};
    static const char *const bellman[] = {"", "header", "IC", "H", "L", "A", "B1", "B2"};
    static const char *const native[] = {"verifying part",
                                         "A",
                                         "B1",
                                         "B2",
                                         "L",
                                         "H",
                                         "dictionary",
                                         "rows of A",
                                         "rows of B",
                                         "columns of A",
                                         "columns of B",
                                         "indices of A",
                                         "indices of B",
                                         "long rows of A",
                                         "long rows of B"};
    if (shape->format == KEY_FORMAT_ZKEY) {
        return id < COUNT_OF(zkey) ? zkey[id] : "unknown";
    }
    if (shape->format == KEY_FORMAT_NATIVE) {
        return id < COUNT_OF(native) ? native[id] : "unknown";
    }
    return id < COUNT_OF(bellman) ? bellman[id] : "unknown";
}

static const char *format_name(const struct key_shape *shape) {
    return shape->format == KEY_FORMAT_ZKEY     ? "zkey"
           : shape->format == KEY_FORMAT_NATIVE ? "native"
                                                : "bellman";
}

static const char *basis_name(const struct key_shape *shape) {
    return shape->h_basis == H_POWERS ? "powers" : "coset Lagrange";
}

/* Public signals are the wires behind the constant one: outputs first, then inputs as the circuit declares them. */
static void print_public_names(const struct wire_names *names, uint32_t public_count) {
    for (uint32_t i = 0; names->count && i < public_count; i++) {
        const char *name = wire_names_get(names, i + 1);
        printf("public %-7u %s\n", i, name ? name : "without a name");
    }
}

static void add_public_names_json(struct text *t, const struct wire_names *names,
                                  uint32_t public_count) {
    text_add(t, ", \"public_names\": [");
    for (uint32_t i = 0; i < public_count; i++) {
        const char *name = wire_names_get(names, i + 1);
        text_add(t, i ? ", " : "");
        text_add_json_string(t, name ? name : "");
    }
    text_add(t, "]");
}

static void print_inspect(const struct key *key, const struct sha256 *digest, bool insecure,
                          const struct wire_names *names) {
    const struct key_shape *shape = key_shape(key);
    struct key_contributions contributions = key_contributions(key);
    char hex[SHA256_HEX_BYTES];
    sha256_hex(hex, digest);
    printf("file           %s, %" PRIu64 " bytes, %s\n", key_path(key), shape->file_bytes,
           format_name(shape));
    printf("digest         sha256 %s\n", hex);
    printf("curve          %s\n", key_curve(key)->snarkjs_name);
    printf("wires          %u, of them %u public beside the constant one\n", shape->wires_count,
           shape->public_count);
    print_public_names(names, shape->public_count);
    printf("domain         %" PRIu64 " = 2^%u rows\n", shape->domain_size, shape->domain_log2);
    if (shape->terms_count[0] + shape->terms_count[1] > 0) {
        printf("coefficients   A %" PRIu64 ", B %" PRIu64 "\n", shape->terms_count[0],
               shape->terms_count[1]);
    } else {
        puts("coefficients   none in the file: witnesses need the circuit beside the key");
    }
    printf("points        ");
    for (int i = 0; i < KEY_POINTS_COUNT; i++) {
        printf("%s %s %" PRIu64, i ? "," : "", points_names[i], shape->points_count[i]);
    }
    printf(" (H in %s)\n", basis_name(shape));
    if (contributions.present) {
        printf("contributions  %u\n", contributions.count);
    } else if (shape->format == KEY_FORMAT_ZKEY) {
        puts("contributions  section 10 is missing: the key is unfinished, but can prove");
    }
    struct key_section_view views[SECTIONS_MAX];
    size_t count = key_sections(views, SECTIONS_MAX, key);
    for (size_t i = 0; i < count; i++) {
        printf("section %-6u offset %14" PRIu64 "  bytes %14" PRIu64 "  %s\n", views[i].id,
               views[i].offset, views[i].bytes, section_name(shape, views[i].id));
    }
    if (insecure) {
        puts("WARNING        gamma equals delta: anybody can forge proofs under this key (no "
             "second-phase contribution)");
    }
}

static enum err print_inspect_json(const struct key *key, const struct sha256 *digest,
                                   bool insecure, const struct wire_names *names) {
    const struct key_shape *shape = key_shape(key);
    struct key_contributions contributions = key_contributions(key);
    AUTO(text_free) struct text t = {0};
    char hex[SHA256_HEX_BYTES];
    sha256_hex(hex, digest);
    text_add(&t, "{\"path\": ");
    text_add_json_string(&t, key_path(key));
    text_addf(&t,
              ", \"bytes\": %" PRIu64
              ", \"format\": \"%s\", \"sha256\": \"%s\", \"curve\": \"%s\", "
              "\"wires\": %u, \"public_signals\": %u, \"domain_size\": %" PRIu64
              ", \"h_basis\": \"%s\", \"coefficients\": {\"A\": %" PRIu64 ", \"B\": %" PRIu64
              "}, \"points\": {",
              shape->file_bytes, format_name(shape), hex, key_curve(key)->snarkjs_name,
              shape->wires_count, shape->public_count, shape->domain_size,
              shape->h_basis == H_POWERS ? "powers" : "coset_lagrange", shape->terms_count[0],
              shape->terms_count[1]);
    for (int i = 0; i < KEY_POINTS_COUNT; i++) {
        text_addf(&t, "%s\"%s\": %" PRIu64, i ? ", " : "", points_names[i], shape->points_count[i]);
    }
    text_add(&t, "}, \"contributions\": ");
    if (contributions.present) {
        text_addf(&t, "%u", contributions.count);
    } else {
        text_add(&t, "null");
    }
    if (names->count) {
        add_public_names_json(&t, names, shape->public_count);
    }
    text_addf(&t, ", \"insecure\": %s, \"sections\": [", insecure ? "true" : "false");
    struct key_section_view views[SECTIONS_MAX];
    size_t count = key_sections(views, SECTIONS_MAX, key);
    for (size_t i = 0; i < count; i++) {
        text_addf(
            &t, "%s{\"id\": %u, \"name\": \"%s\", \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64 "}",
            i ? ", " : "", views[i].id, section_name(shape, views[i].id), views[i].offset,
            views[i].bytes);
    }
    text_add(&t, "]}");
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}

/* Looking at a forgeable key is harmless: it opens, and is marked. */
static enum err run_inspect(struct args *args) {
    AUTO(key_unref) struct key *key = NULL;
    AUTO(wire_names_close) struct wire_names names = {0};
    struct sha256 digest;
    TRY(key_open(&key, args_positional(args, "KEY"), (struct key_options){.allow_insecure = true}));
    TRY(key_digest(&digest, key));
    if (args_text(args, "sym")) {
        TRY(wire_names_open(&names, args_text(args, "sym"), key_shape(key)->wires_count));
    }
    bool insecure = vkey_is_insecure(key_vkey(key));
    if (args_switch(args, "json")) {
        return print_inspect_json(key, &digest, insecure, &names);
    }
    print_inspect(key, &digest, insecure, &names);
    return OK;
}

static enum err open_secure(struct key **out, const struct args *args) {
    struct key_options options = {.allow_insecure = args_switch(args, "allow-insecure-keys")};
    return key_open(out, args_positional(args, "KEY"), options);
}

static enum err run_check(struct args *args) {
    AUTO(key_unref) struct key *key = NULL;
    AUTO(pool_close) struct pool *pool = NULL;
    AUTO(screen_close) struct screen *screen = NULL;
    struct key_report report = {0};
    TRY(open_secure(&key, args));
    TRY(pool_open(&pool, (unsigned)args_number(args, "threads", 0)));
    screen_open(&screen, "key check");
    TRY(key_check(&report, key, pool, screen_progress, screen));
    screen_close(&screen);
    if (args_switch(args, "json")) {
        printf("{\"ok\": true, \"points_checked\": %" PRIu64 ", \"infinities\": {",
               report.points_checked);
        for (int i = 0; i < KEY_POINTS_COUNT; i++) {
            printf("%s\"%s\": %" PRIu64, i ? ", " : "", points_names[i],
                   report.infinities_count[i]);
        }
        printf("}, \"elapsed_ns\": %" PRIu64 ", \"remembered\": %s}\n", report.elapsed_ns,
               report.remembered ? "true" : "false");
        return OK;
    }
    if (report.remembered) {
        printf("OK: %s was checked before; its digest is remembered\n", key_path(key));
    } else {
        printf("OK: %" PRIu64 " points of %s are on the curve and in the subgroup (%.1f s)\n",
               report.points_checked, key_path(key), (double)report.elapsed_ns / 1e9);
    }
    return OK;
}

static enum err run_export(struct args *args) {
    const char *path = args_positional(args, "VKEY");
    AUTO(file_out_close) struct file_out *file = NULL;
    AUTO(key_unref) struct key *key = NULL;
    AUTO(text_free) struct text json = {0};
    TRY(args_spares(path, args_positional(args, "KEY"), "KEY VKEY"));
    TRY(open_secure(&key, args));
    TRY(vkey_check(key_vkey(key)));
    TRY(file_out_open(&file, path));
    TRY(vkey_write_json(&json, key_vkey(key)));
    TRY(file_out_write(file, text_bytes(&json)));
    if (!strcmp(path, "-")) {
        TRY(file_out_write(file, bytes_of("\n", 1)));
    }
    return file_out_commit(file);
}

static const struct positional key_positionals[] = {
    POSITIONAL_KEY,
    {0},
};
static const struct option inspect_options[] = {
    {.kind = OPTION_TEXT,
     .name = "sym",
     .value = "FILE",
     .text = "Names of the public signals, from circom --sym."},
    OPTION_JSON,
    OPTIONS_END,
};
static const struct option check_options[] = {OPTION_THREADS, OPTION_INSECURE, OPTION_JSON,
                                              OPTIONS_END};
static const struct positional export_positionals[] = {
    POSITIONAL_KEY,
    {.name = "VKEY", .fallback = "verification_key.json", .text = "where the verifying key goes"},
    {0},
};
static const struct option export_options[] = {OPTION_INSECURE, OPTIONS_END};

const struct command cmd_key_inspect = {
    .name = "key inspect",
    .sentence = "shows what a proving key holds",
    .positionals = key_positionals,
    .options = inspect_options,
    .run = run_inspect,
};
const struct command cmd_key_check = {
    .name = "key check",
    .sentence = "checks every point of a proving key: on the curve, in the subgroup",
    .positionals = key_positionals,
    .options = check_options,
    .notes = "A key that passed is remembered by its digest and not checked again.\n"
             "Exit codes: 0 sound; 2 not.",
    .run = run_check,
};
const struct command cmd_key_export_vkey = {
    .name = "key export-vkey",
    .sentence = "writes a proving key's verifying key as snarkjs does",
    .positionals = export_positionals,
    .options = export_options,
    .run = run_export,
};
