/* All commands, each in a file of its own; main.c lists them in the order that --help shows. */
#pragma once
#include "node/cli/args.h"

extern const struct command cmd_prove, cmd_verify, cmd_key_inspect, cmd_key_check,
    cmd_key_export_vkey, cmd_plan, cmd_bench_prove;
