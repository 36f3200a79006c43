/* A backend with a synthetic key and any witness: how single steps of a proof are timed where only the backend can run them.
 *
 * The key is made in memory, dense, so every wire owns a point of each set; the witness need not satisfy anything, since the
 * sums are not made into a proof.
 *
 * Owner    the caller, to bench_rig_close.
 * Threads  one.
 * Errors   those of the backend and of key_maker.h.
 */
#pragma once
#include "node/cli/key_maker.h"
#include "node/daemon/backends.h"

struct bench_rig {
    struct key_maker *maker; /* owned */
    struct key *key;         /* owned (ref) */
    struct witness witness;  /* owned */
    struct backend *backend; /* owned */
    struct backend_choice choice;
    struct backend_key *backend_key; /* owned */
    struct backend_slot *slot;       /* owned */
};
/* `fill` sets the wires behind the first, which is one. The backend opened here makes the key, whatever `order` says. */
FALLIBLE bench_rig_open(struct bench_rig *out, const struct backend_options *options,
                        const struct key_maker_order *order,
                        void (*fill)(void *ctx, struct scalar *values, size_t count),
                        void *fill_ctx);
void bench_rig_close(struct bench_rig *rig);
/* Witness, rows, quotient and all sums once; what the backend says each step took. */
FALLIBLE bench_rig_run(struct step_times *out, struct bench_rig *rig);
