/* bellows key push: stores a proving key in the fleet, once, under its digest. */
#include "node/cli/backend_args.h"
#include "node/cli/client.h"
#include "node/cli/commands.h"
#include "node/key/native.h"

#include <inttypes.h>
#include <stdio.h>

static enum err run(struct args *args) {
    AUTO(client_close) struct client c = {0};
    AUTO(key_unref) struct key *key = NULL;
    struct key_options options = {.allow_insecure = args_switch(args, "allow-insecure-keys")};
    struct sha256 digest;
    char hex[SHA256_HEX_BYTES];
    bool stored = false;
    TRY(key_open(&key, args_positional(args, "KEY"), options));
    TRY(key_knows_circuit(key));
    TRY(key_digest(&digest, key));
    TRY(client_open(&c, args));
    bool name_only = args_switch(args, "name-only");
    TRY(client_push_key(&stored, &c, key, &digest, name_only ? KEY_PUSH_NAME : KEY_PUSH_FILE));
    sha256_hex(hex, &digest);
    if (args_switch(args, "json")) {
        printf("{\"key\": \"%s\", \"bytes\": %" PRIu64 ", \"stored\": %s}\n", hex,
               key_shape(key)->file_bytes, stored ? "true" : "false");
    } else {
        printf("%s %s\n", hex, name_only ? "known" : stored ? "stored" : "was there already");
    }
    return OK;
}

static const struct positional positionals[] = {
    {.name = "KEY", .text = "proving key: .zkey, or native (`key import`)"},
    {0},
};
static const struct option options[] = {
    {.kind = OPTION_SWITCH,
     .name = "name-only",
     .text = "Stores no file: nodes have it already, as keys/DIGEST in their --cache. For keys too "
             "large to "
             "travel with the fleet."},
    OPTION_INSECURE,
    OPTION_JSON,
    OPTIONS_END,
};
const struct command cmd_key_push = {
    .name = "key push",
    .sentence = "store a proving key in the fleet, under its digest",
    .positionals = positionals,
    .options = options,
    .config = CONFIG_CLIENT,
    .run = run,
};
