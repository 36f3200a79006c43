/* Memory that looks like a file is a memfd: everything that opens a key by its path takes it, and it is gone with the
 * process. Fixed-base tables of both groups are made once and serve the whole key.
 */
#include "node/cli/key_maker.h"

#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/cpu/fixed.h"
#include "node/cpu/tier.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct key_maker {
    struct key_maker_order order;
    struct synth synth;     /* owned; its circuit points into it */
    struct pool *pool;      /* owned */
    struct fixed *fixed[2]; /* owned, by enum point_group */
    int fds[2];             /* owned: memfds of key and witness; -1: none */
};

void key_maker_close(struct key_maker **m) {
    if (!*m) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        fixed_close(&(*m)->fixed[i]);
        if ((*m)->fds[i] >= 0) {
            close((*m)->fds[i]);
        }
    }
    pool_close(&(*m)->pool);
    synth_done(&(*m)->synth);
    mem_free_ptr(m);
}

FALLIBLE key_maker_open(struct key_maker **out, const struct key_maker_order *order) {
    AUTO(key_maker_close) struct key_maker *m = NULL;
    const struct cpu_ops *ops = NULL;
    TRY(mem_new(&m, 1, sizeof *m));
    m->order = *order;
    m->fds[0] = m->fds[1] = -1;
    TRY(tier_find(&ops, order->curve->id, order->cpu_tier));
    TRY(synth_init(&m->synth, order->curve, order->shape, order->log2, order->seed));
    TRY(pool_open(&m->pool, order->threads));
    uint64_t wires = m->synth.circuit.wires_count;
    TRY(fixed_open(&m->fixed[GROUP_G1], ops, GROUP_G1, 5 * wires));
    TRY(fixed_open(&m->fixed[GROUP_G2], ops, GROUP_G2, wires));
    *out = TAKE(m);
    return OK;
}

const struct synth *key_maker_circuit(const struct key_maker *m) {
    return &m->synth;
}

static enum err multiply(void *ctx, uint8_t *out, enum point_group group,
                         const struct scalar *scalars, size_t count) {
    struct key_maker *m = ctx;
    return fixed_multiply(out, m->fixed[group], scalars, count, m->pool);
}

static FALLIBLE make_key(struct key_maker *m, setup_sink *sink, void *sink_ctx) {
    struct rng rng = rng_seeded(m->order.seed);
    const struct setup_multiplier multiplier = {multiply, m};
    const struct setup_options options = {.multiplier = &multiplier,
                                          .pool = m->pool,
                                          .rng = &rng,
                                          .forgeable = true,
                                          .progress = m->order.progress,
                                          .progress_ctx = m->order.progress_ctx};
    return setup_write_zkey(sink, sink_ctx, &m->synth.circuit, &options);
}

static FALLIBLE make_witness(struct key_maker *m, setup_sink *sink, void *sink_ctx) {
    return setup_write_wtns(sink, sink_ctx, m->order.curve, m->synth.witness,
                            m->synth.circuit.wires_count);
}

/* --- Memory --- */

static enum err write_fd(void *ctx, struct bytes piece) {
    while (piece.len > 0) {
        ssize_t wrote = write(*(const int *)ctx, piece.ptr, piece.len);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        REQUIRE(wrote > 0, E_IO, "a synthetic key does not fit into memory: %s", strerror(errno));
        piece.ptr += wrote;
        piece.len -= (size_t)wrote;
    }
    return OK;
}

static FALLIBLE in_memory(char path[KEY_MAKER_PATH_BYTES], struct key_maker *m, unsigned which,
                          enum err (*make)(struct key_maker *, setup_sink *, void *)) {
    ASSERT(m->fds[which] < 0);
    m->fds[which] = memfd_create("bellows-synth", MFD_CLOEXEC);
    REQUIRE(m->fds[which] >= 0, E_IO, "memfd_create: %s", strerror(errno));
    TRY(make(m, write_fd, &m->fds[which]));
    snprintf(path, KEY_MAKER_PATH_BYTES, "/proc/self/fd/%d", m->fds[which]);
    return OK;
}

FALLIBLE key_maker_key_in_memory(char path[KEY_MAKER_PATH_BYTES], struct key_maker *m) {
    return in_memory(path, m, 0, make_key);
}

FALLIBLE key_maker_witness_in_memory(char path[KEY_MAKER_PATH_BYTES], struct key_maker *m) {
    return in_memory(path, m, 1, make_witness);
}

/* --- Files --- */

static enum err write_file(void *ctx, struct bytes piece) {
    return file_out_write(ctx, piece);
}

FALLIBLE key_maker_write(struct key_maker *m, const char *key_path, const char *witness_path) {
    AUTO(file_out_close) struct file_out *key = NULL;
    AUTO(file_out_close) struct file_out *witness = NULL;
    TRY(file_out_open(&key, key_path));
    TRY(file_out_open(&witness, witness_path));
    TRY(make_witness(m, write_file, witness));
    TRY(make_key(m, write_file, key));
    TRY(file_out_commit(witness));
    return file_out_commit(key);
}
