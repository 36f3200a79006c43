/* bellows key import: a key into our own layout, which is mapped and used as it lies. */
#include "node/base/clock.h"
#include "node/cli/backend_args.h"
#include "node/cli/commands.h"
#include "node/groth16/import.h"
#include "node/key/native.h"

#include <inttypes.h>
#include <stdio.h>

static enum err import_with_circuit(const char *to, struct key *key, const char *path) {
    AUTO(circuit_close) struct circuit circuit = {0};
    AUTO(pool_close) struct pool *pool = NULL;
    struct sha256 digest;
    TRY(circuit_open(&circuit, path));
    TRY(sha256_of(&digest, circuit.file));
    TRY(pool_open(&pool, 0));
    return import_bellman(to, key, &circuit, &digest, pool);
}

static enum err run(struct args *args) {
    AUTO(key_unref) struct key *key = NULL;
    AUTO(key_unref) struct key *native = NULL;
    const char *from = args_positional(args, "KEY"), *to = args_positional(args, "NATIVE");
    struct key_options options = {.allow_insecure = args_switch(args, "allow-insecure-keys")};
    const char *circuit = args_text(args, "circuit");
    struct sha256 digest;
    char hex[SHA256_HEX_BYTES];
    uint64_t start_ns = clock_ns();
    TRY(args_spares(to, from, "KEY NATIVE"));
    TRY(circuit ? args_spares(to, circuit, "KEY NATIVE --circuit FILE") : OK);
    TRY(key_open(&key, from, options));
    TRY(circuit ? import_with_circuit(to, key, circuit) : native_write(to, key));
    TRY(key_open(&native, to, options)); /* reads it whole */
    TRY(key_digest(&digest, native));
    sha256_hex(hex, &digest);
    uint64_t elapsed_ns = clock_ns() - start_ns, bytes = key_shape(native)->file_bytes;
    if (args_switch(args, "json")) {
        AUTO(text_free) struct text t = {0};
        text_add(&t, "{\"native\": ");
        text_add_json_string(&t, to);
        text_addf(&t, ", \"bytes\": %" PRIu64 ", \"sha256\": \"%s\", \"elapsed_ns\": %" PRIu64 "}",
                  bytes, hex, elapsed_ns);
        TRY(text_done(&t));
        puts(t.ptr);
    } else {
        printf("%s: %" PRIu64 " bytes, key %s (%.1f s)\n", to, bytes, hex,
               (double)elapsed_ns / 1e9);
    }
    return OK;
}

static const struct positional positionals[] = {
    {.name = "KEY", .text = "proving key: .zkey, or bellman's .params with --circuit"},
    {.name = "NATIVE", .text = "where the native key goes"},
    {0},
};
static const struct option options[] = {
    {.kind = OPTION_TEXT,
     .name = "circuit",
     .value = "FILE",
     .text = "The circuit of bellman parameters, a .r1cs or cuzk's PCE: says who owns which point, "
             "and what the "
             "rows are."},
    OPTION_INSECURE,
    OPTION_JSON,
    OPTIONS_END,
};
const struct command cmd_key_import = {
    .name = "key import",
    .sentence = "turns a key into the layout that is mapped and used as it lies",
    .positionals = positionals,
    .options = options,
    .notes =
        "NATIVE is taken wherever a KEY is; in the fleet its name is its own SHA-256. The same "
        "input gives the same file.\nNodes do this by themselves with the .zkeys they fetch.",
    .run = run,
};
