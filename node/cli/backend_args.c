/* Reads what the rows in backend_args.h describe. */
#include "node/cli/backend_args.h"
#include "node/base/quantity.h"

#include <string.h>

enum key_tables key_tables_of(const char *word) {
    return !strcmp(word, "on")    ? KEY_TABLES_ON
           : !strcmp(word, "off") ? KEY_TABLES_OFF
                                  : KEY_TABLES_AUTO;
}

enum err backend_args_read(struct backend_options *out, const struct args *args) {
    struct backend_options options = {0};
    TRY(backends_kind(&options.kind, args_text(args, "backend")));
    options.threads_count = (unsigned)args_number(args, "threads", 0);
    const char *tier = args_text(args, "cpu-tier");
    options.cpu_tier = strcmp(tier, "auto") != 0 ? tier : NULL;
    options.device = args_text(args, "device");
    REQUIRE(!options.device || options.kind != BACKEND_CPU, E_USAGE,
            "--device names a GPU; it does not go with --backend cpu");
    const char *tables = args_has(args, "key-tables") ? args_text(args, "key-tables") : "off";
    options.key_tables = key_tables_of(tables);
    const char *most =
        args_has(args, "device-memory-max") ? args_text(args, "device-memory-max") : NULL;
    TRY(most ? quantity_bytes(&options.device_memory_max, most) : OK);
    *out = options;
    return OK;
}
