/* A machine with a fleet on it, as an operator would start it: a real nats-server, and the program itself as coordinator, nodes and
 * commands, each a process of its own.
 *
 * Everything lies in one folder and dies with the test.
 *
 * Threads  the claim's.
 */
#pragma once
#include "tests/check/command.h"
#include "tests/check/server.h"
#include "tests/unit/daemon/submitter.h"

enum { HOST_NODES_MAX = 4 };

struct host {
    struct check_server server;
    struct child coordinator;
    struct child nodes[HOST_NODES_MAX];
    struct submitter user;
    char dir[256];
    char url[256];  /* what processes started from now on connect to; "": the server */
    char netns[32]; /* processes started from now on run in this network namespace; "": in ours */
    unsigned commands; /* run so far */
};

const char *host_program(void); /* a path; the calling thread's until it asks again */
/* The folder and the server alone. */
void host_start_server(struct host *h, const struct check_server_options *options);
/* Another program than the build folder's `bellows` from now on, by its path below that folder. */
void host_use_program(const char *path);
/* The server and a coordinator. */
void host_start(struct host *h);
/* Ends everything, looks whether a log tells of a failed assertion or of a sanitizer's report, removes the folder. */
void host_stop(struct host *h);
/* The user's connection, when the streams are there. */
void host_connect(struct host *h);
void host_start_coordinator(struct host *h);
void host_kill_coordinator(struct host *h); /* kill -9 */
void host_stop_coordinator(struct host *h); /* SIGTERM; it must end with 0 within 5 s */
/* Node "w<idx>" with so many lanes, a cache of its own, and more options (NULL: none). */
void host_start_node(struct host *h, unsigned idx, unsigned lanes_count, const char *option);
/* The same with one lane for each CUDA device. */
void host_start_cuda_node(struct host *h, unsigned idx);
/* SIGTERM; its exit code, at most 30 s later. */
int host_drain_node(struct host *h, unsigned idx);
void host_wait_for_lanes(struct host *h, unsigned lanes_count);
/* The process of a lane, as its directory entry says. */
pid_t host_lane_pid(struct host *h, unsigned node_idx, unsigned gpu);
/* kill -9; nothing when it is dead already. */
void host_kill_lane(struct host *h, unsigned node_idx, unsigned gpu);
void host_signal_lane(struct host *h, unsigned node_idx, unsigned gpu, int number);
/* Messages in the fleet's stream with this tail: "DONE". */
uint64_t host_stream_count(struct host *h, const char *tail);

/* `bellows WORDS…`, the words separated by spaces; "@" at the front of a word stands for the vectors' folder, "%" for the host's. */
void host_run(struct ran *out, struct host *h, const char *words, ...)
    __attribute__((format(printf, 3, 4)));
/* Processes whose command line holds `text`. */
unsigned processes_with(const char *text);
