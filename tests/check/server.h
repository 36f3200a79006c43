/* A nats-server of the test's own: loopback, free port, private store, ended by its pid.
 *
 * The server dies with the test process whatever happens (parent-death signal), and its folder is removed by
 * check_server_stop. Claims that need one call check_server_start, which skips the claim when nats-server is missing.
 *
 * Threads  the one that started it.
 */
#pragma once
#include "tests/check/check.h"

#include <sys/types.h>

struct check_server {
    pid_t pid;     /* 0: not running */
    unsigned port; /* kept across restarts */
    char url[64];  /* "nats://127.0.0.1:PORT" */
    char dir[256]; /* private: configuration, store, log */
};

struct check_server_options {
    const char *config; /* lines added to the configuration file; NULL: none */
    bool no_jetstream;
    unsigned payload_bytes_max; /* 0: 8 MiB */
};

/* The program; NULL: not installed. */
const char *check_server_program(void);
/* Starts and waits until it listens. `options` may be NULL. Fails or skips the claim itself. */
void check_server_start(struct check_server *out, const struct check_server_options *options);
/* kill -9; the store stays. */
void check_server_kill(struct check_server *s);
/* SIGTERM and wait; the store stays. False: it stood still for ten seconds and was killed. */
bool check_server_down(struct check_server *s);
/* The same port and store again. `empty`: the store is lost in between. */
void check_server_up(struct check_server *s, bool empty);
/* Ends it and removes its folder; fine when it never ran. For AUTO too. */
void check_server_stop(struct check_server *s);
