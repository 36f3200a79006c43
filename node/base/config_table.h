/* Every option of the daemons, once. File, environment, flags, --help, the sample file and struct config come from here.
 *
 * TEXT    field NAME          const char *; the empty text means "not set"
 * CHOICE  field NAME          const char *, one of the words
 * BYTES   field NAME_bytes    uint64_t
 * SPAN    field NAME_ns       uint64_t
 * COUNT   field NAME          uint64_t
 * SWITCH  field NAME          bool
 *
 * The option tenant_jobs is `tenant_jobs = 500` in the file, BELLOWS_TENANT_JOBS in the environment, --tenant-jobs on the
 * command line; a variable set to nothing is not set. A row says which commands take it; the file and the environment are shared,
 * so there every known name is welcome, and checked, whoever reads it.
 */
#pragma once

/* clang-format off */
#define CONFIG_TABLE(TEXT, CHOICE, BYTES, SPAN, COUNT, SWITCH)                                                          \
    /*     name        default                  value or range            commands       sentence */                   \
    TEXT(  server,     "nats://127.0.0.1:4222", "URL",                    CONFIG_FLEET,                                 \
           "The NATS server, or several separated by commas.")                                                         \
    TEXT(  creds,      "",                      "FILE",                   CONFIG_FLEET,                                 \
           "NATS credentials; not set: none.")                                                                          \
    TEXT(  tls_ca,     "",                      "FILE",                   CONFIG_FLEET,                                 \
           "Certificates to check the server against; not set: no TLS unless the URL says tls://.")                     \
    TEXT(  tls_cert,   "",                      "FILE",                   CONFIG_FLEET,                                 \
           "Client certificate; needs tls_key.")                                                                        \
    TEXT(  tls_key,    "",                      "FILE",                   CONFIG_FLEET,                                 \
           "Key of the client certificate.")                                                                            \
    SWITCH(plaintext,  false,                                             CONFIG_FLEET,                                 \
           "Talks without TLS to a server on another machine, too.")                                                    \
    TEXT(  prefix,     "bellows",               "WORD",                   CONFIG_FLEET,                                 \
           "First word of every subject; two fleets on one server differ here.")                                        \
    CHOICE(log_level,  "info",                  "debug|info|warn|error",  CONFIG_DAEMONS,                               \
           "Lines below this level are not written.")                                                                   \
    CHOICE(log_format, "logfmt",                "logfmt|json",            CONFIG_DAEMONS,                               \
           "How a log line is written.")                                                                                \
    TEXT(  metrics,    "",                      "HOST:PORT",              CONFIG_NODE | CONFIG_COORDINATOR,             \
           "Where /metrics, /healthz and /readyz are; not set: on loopback, port 9464 (node) or 9465 (coordinator) if free; off: nowhere.") \
    TEXT(  name,       "",                      "NAME",                   CONFIG_NODE,                                  \
           "Name of this node, unique in the fleet; not set: the host's name.")                                         \
    CHOICE(backend,    "auto",                  "auto|cuda|cpu",          CONFIG_NODE | CONFIG_DEV,                     \
           "What proves: auto takes CUDA devices if there are any, else the processor, and says so.")                   \
    COUNT( lanes,      1, 1, 64,                                          CONFIG_NODE | CONFIG_DEV,                     \
           "Lanes on the processor; CUDA has one lane for each device.")                                                \
    COUNT( threads,    0, 0, 1024,                                        CONFIG_NODE | CONFIG_DEV,                     \
           "Threads of one CPU lane; 0: the usable cores shared between the lanes.")                                    \
    BYTES( memory,     "0", 0, UINT64_C(1) << 50,                         CONFIG_NODE | CONFIG_DEV,                     \
           "What one lane may use in all; 0: its share of the control group's limit or of the machine.")                \
    BYTES( staging,    "0", 0, UINT64_C(1) << 50,                         CONFIG_NODE | CONFIG_DEV,                     \
           "Page-locked memory that bodies are decoded into on a CUDA lane; 0: an eighth of --memory, at most 8 GiB.")  \
    COUNT( connections, 0, 0, 8,                                          CONFIG_NODE | CONFIG_DEV,                     \
           "Connections over which a lane fetches bodies and keys; 0: four on a CUDA lane, one on others.")             \
    TEXT(  keep,       "",                      "DIGEST,...",             CONFIG_NODE | CONFIG_DEV,                     \
           "Keys that a lane loads at its start and keeps loaded; the others leave when their room is needed.")         \
    CHOICE(key_tables, "auto",                  "auto|on|off",            CONFIG_NODE,                                  \
           "Multiples of a key's points on a GPU, ten times the key's memory for a tenth less time: auto has them where half of the free memory holds key and job.") \
    BYTES( device_memory_max, "0", 0, UINT64_C(1) << 50,                  CONFIG_NODE,                                  \
           "What a lane may use of its GPU's memory; 0: all that is free at its start.")                                \
    TEXT(  cache,      "",                      "DIR",                    CONFIG_NODE | CONFIG_DEV,                     \
           "Where fetched proving keys are kept; not set: systemd's $CACHE_DIRECTORY, else a folder of this run, removed after it.") \
    BYTES( cache_size, "0", 0, UINT64_C(1) << 50,                         CONFIG_NODE | CONFIG_DEV,                     \
           "What the keys in --cache may take; those used longest ago leave first. 0: all of the disk.")                \
    COUNT( backlog,    4, 1, 32,                                          CONFIG_NODE | CONFIG_DEV,                     \
           "Jobs that a lane holds at once.")                                                                           \
    SPAN(  drain,      "20s", 0, UINT64_C(86400000000000),                CONFIG_NODE | CONFIG_DEV,                     \
           "After SIGTERM, how long a lane may finish what it proves before it hands it back.")                        \
    COUNT( attempts,   3, 1, 100,                                         CONFIG_COORDINATOR | CONFIG_DEV,              \
           "Tries after which a job that keeps failing is set aside as dead.")                                          \
    COUNT( replicas,   1, 1, 5,                                           CONFIG_COORDINATOR,                           \
           "Servers that keep each of the fleet's streams, bodies excepted; 3 on a cluster of three.")                  \
    COUNT( tenant_jobs, 100000, 1, 1048576,                               CONFIG_COORDINATOR,                           \
           "Open jobs that one tenant may have; more are refused until some have ended.")                               \
    TEXT(  dir,        "",                      "DIR",                    CONFIG_DEV,                                   \
           "Where the private server keeps its data; not set: a folder made for this run and removed after it.")        \
    COUNT( port,       0, 0, 65535,                                       CONFIG_DEV,                                   \
           "Port of the private server on loopback; 0: a free one.")
/* clang-format on */

enum config_command {
    CONFIG_NODE = 1,
    CONFIG_COORDINATOR = 2,
    CONFIG_DEV = 4,
    /* submit, status, wait, fetch, list, cancel, top: whoever only talks to the server */
    CONFIG_CLIENT = 8,
    CONFIG_DAEMONS = CONFIG_NODE | CONFIG_COORDINATOR | CONFIG_DEV,
    CONFIG_FLEET = CONFIG_NODE | CONFIG_COORDINATOR | CONFIG_CLIENT,
    CONFIG_ALL = CONFIG_DAEMONS | CONFIG_FLEET
};

/* Variables named BELLOWS_… that are not options of this table: command-line defaults (node/cli) and the tests' own. */
#define CONFIG_OTHER_VARIABLES                                                                     \
    "CONFIG", "TENANT", "CPU_TIER", "LONG", "VECTORS", "ROOT", "BUILD", "SLOW_DECODE", "LYING",    \
        "STRICT"
