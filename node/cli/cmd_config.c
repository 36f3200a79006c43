/* bellows config: what the daemons would run with here, and where each value comes from. */
#include "node/cli/backend_args.h"
#include "node/cli/commands.h"

#include <stdio.h>

static enum err run_config(struct args *args) {
    AUTO(config_free) struct config config = {0};
    AUTO(text_free) struct text t = {0};
    TRY(args_config(&config, args)); /* a sample is of no use to settings that are wrong */
    bool json = args_switch(args, "json");
    REQUIRE(!json || !args_switch(args, "sample"), E_USAGE,
            "--sample is a file, not JSON; leave one of --sample and --json out");
    if (args_switch(args, "sample")) {
        config_sample(&t);
    } else if (json) {
        config_show_json(&t, &config, CONFIG_ALL);
    } else {
        config_show(&t, &config, CONFIG_ALL);
    }
    TRY(text_done(&t));
    fputs(t.ptr, stdout);
    return OK;
}

static const struct option options[] = {
    {.kind = OPTION_SWITCH,
     .name = "sample",
     .text = "Prints a settings file with every option as a comment instead."},
    OPTION_JSON,
    OPTIONS_END};
const struct command cmd_config = {
    .name = "config",
    .sentence = "shows the settings in force and where each comes from",
    .options = options,
    .config = CONFIG_ALL,
    .notes =
        "The file is `name = value` lines. Order: defaults < file < environment < command line.",
    .run = run_config,
};
