/* Reads what the rows in backend_args.h describe. */
#include "node/cli/backend_args.h"

#include <string.h>

enum err backend_args_read(struct backend_options *out, const struct args *args) {
    struct backend_options options = {0};
    TRY(backends_kind(&options.kind, args_text(args, "backend")));
    options.threads_count = (unsigned)args_number(args, "threads", 0);
    const char *tier = args_text(args, "cpu-tier");
    options.cpu_tier = strcmp(tier, "auto") != 0 ? tier : NULL;
    options.device = args_text(args, "device");
    REQUIRE(!options.device || options.kind != BACKEND_CPU, E_USAGE,
            "--device names a GPU; it does not go with --backend cpu");
    *out = options;
    return OK;
}
