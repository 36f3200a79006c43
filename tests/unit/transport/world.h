/* Where the claims of queue.c and store.c run: the twin or a real server. Two small files implement it. */
#pragma once
#include "node/transport/transport.h"
#include "tests/check/check.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

/* --- Implemented by world_loopback.c and world_server.c --- */

/* A new connection to the world's one broker; fails or skips the claim itself. Closed by the caller. */
struct transport *world_connect(void);
/* The broker is killed and comes back with its durable store; returns when `t` is connected again. */
void world_restart(struct transport *t);
void world_end(void);

/* --- world.c: what the claims share --- */

/* Fresh for each claim: name "t1", "t2", …; stream "S_t1", subjects "t1.a" to "t1.c". */
extern char name[16], stream[32], subject[3][48];

struct transport *enter(void); /* one connection and fresh names */
void leave(struct transport *t);
struct bytes text(const char *s);
const char *all_subjects(void); /* "t1.>" */
struct stream_config stream_config(enum stream_retention retention);
void make_stream(struct transport *t, enum stream_retention retention);
void make_consumer(struct transport *t, const char *consumer, const char *filter,
                   uint64_t ack_wait_ns);
struct puller *open_puller(struct transport *t, const char *consumer);
struct puller *make_queue(struct transport *t, uint64_t ack_wait_ns); /* one consumer: "c" */
uint64_t put(struct transport *t, const char *to, const char *what);
void check_data(const struct message *m, const char *want);
uint64_t messages_in(struct transport *t);
