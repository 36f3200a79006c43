/* All commands, each in a file of its own; main.c lists them in the order that --help shows. */
#pragma once
#include "node/cli/args.h"

/* extern const struct command cmd_NAME; */
