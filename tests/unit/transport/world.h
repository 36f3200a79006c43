/* Where semantics.c runs: the twin or a real server. Two small files implement it. */
#pragma once
#include "node/transport/transport.h"
#include "tests/check/check.h"

/* A new connection to the world's one broker; fails or skips the claim itself. Closed by the caller. */
struct transport *world_connect(void);
/* The broker is killed and comes back with its durable store; returns when `t` is connected again. */
void world_restart(struct transport *t);
void world_end(void);
/* Fresh for each claim: "t1", "t2", …: names of streams, buckets and subjects start with it. */
const char *world_name(void);
