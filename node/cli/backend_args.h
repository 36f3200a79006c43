/* The words that commands which compute have in common: the key, and the options that choose a backend. */
#pragma once
#include "node/cli/args.h"
#include "node/daemon/backends.h"

enum { THREADS_MAX = 1024 };

#define POSITIONAL_KEY                                                                             \
    { .name = "KEY", .fallback = "circuit_final.zkey", .text = "proving key" }
#define OPTION_BACKEND                                                                             \
    {                                                                                              \
        .kind = OPTION_CHOICE, .name = "backend", .value = "auto|cuda|cpu", .fallback = "auto",    \
        .env = "BELLOWS_BACKEND",                                                                  \
        .text = "Where to compute; auto says what it took, cuda never falls back."                 \
    }
#define OPTION_THREADS                                                                             \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "threads", .value = "N", .env = "BELLOWS_THREADS",          \
        .least = 1, .most = THREADS_MAX,                                                           \
        .text = "Threads of the cpu backend; all usable cores when absent."                        \
    }
#define OPTION_CPU_TIER                                                                            \
    {                                                                                              \
        .kind = OPTION_CHOICE, .name = "cpu-tier", .value = "auto|portable|adx|ifma",              \
        .fallback = "auto", .env = "BELLOWS_CPU_TIER",                                             \
        .text = "Instructions that the cpu backend uses."                                          \
    }
#define OPTION_DEVICE                                                                              \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "device", .value = "INDEX|UUID",                              \
        .text = "GPU of the cuda backend; the first usable one when absent."                       \
    }
#define OPTION_KEY_TABLES                                                                          \
    {                                                                                              \
        .kind = OPTION_CHOICE, .name = "key-tables", .value = "auto|on|off", .fallback = "auto",   \
        .env = "BELLOWS_KEY_TABLES",                                                               \
        .text = "Multiples of the key's points on the GPU, as the node's option."                  \
    }
#define OPTION_DEVICE_MEMORY                                                                       \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "device-memory-max", .value = "SIZE",                         \
        .env = "BELLOWS_DEVICE_MEMORY_MAX",                                                        \
        .text = "Takes no more of the GPU's memory (\"16GiB\"); all that is free when absent."     \
    }
#define OPTION_JSON                                                                                \
    { .kind = OPTION_SWITCH, .name = "json", .text = "Prints one JSON object, errors included." }
#define OPTION_INSECURE                                                                            \
    {                                                                                              \
        .kind = OPTION_SWITCH, .name = "allow-insecure-keys",                                      \
        .text = "Takes keys whose gamma equals delta, under which anybody can forge: tests only."  \
    }

enum key_tables key_tables_of(const char *word);
/* From the first four of the options above, and from those two where the command has them. Without key-tables there are none: one proof
 * does not repay them. */
FALLIBLE backend_args_read(struct backend_options *out, const struct args *args);
