/* Tables of both groups are made once, serve the whole key and are given back with it, before a prover wants the memory.
 */
#include "node/cli/key_maker.h"

#include "node/base/bulk.h"
#include "node/base/cgroup.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/base/numa.h"
#include "proto/evaluations.h"

#include <stdio.h>
#include <string.h>

enum { LARGE_LOG2 = 20, LARGE_PIECE = 1 << 20 };

struct key_maker {
    struct key_maker_order order;
    struct synth synth;                        /* owned; its circuit points into it */
    struct pool *pool;                         /* owned */
    struct backend_multiplier *multipliers[2]; /* owned, by enum point_group, while a key is made */
    struct file_out *file;                     /* lent: where the key goes; NULL: memory */
    struct bytes_mut key;                      /* owned: in memory */
};

static void multipliers_close(struct key_maker *m) {
    for (int i = 0; i < 2; i++) {
        if (m->multipliers[i]) {
            m->order.backend->ops->multiplier_close(&m->multipliers[i]);
        }
    }
}

void key_maker_close(struct key_maker **m) {
    if (!*m) {
        return;
    }
    multipliers_close(*m);
    bulk_close(&(*m)->key);
    pool_close(&(*m)->pool);
    synth_done(&(*m)->synth);
    mem_free_ptr(m);
}

FALLIBLE key_maker_open(struct key_maker **out, const struct key_maker_order *order) {
    AUTO(key_maker_close) struct key_maker *m = NULL;
    TRY(mem_new(&m, 1, sizeof *m));
    m->order = *order;
    TRY(synth_init(&m->synth, order->curve, order->shape, order->log2, order->seed));
    TRY(pool_open(&m->pool, order->threads));
    *out = TAKE(m);
    return OK;
}

const struct synth *key_maker_circuit(const struct key_maker *m) {
    return &m->synth;
}

static enum err multiply(void *ctx, uint8_t *out, enum point_group group,
                         const struct scalar *scalars, size_t count) {
    struct key_maker *m = ctx;
    return m->order.backend->ops->multiply(out, m->multipliers[group], scalars, count);
}

static enum err write_file(void *ctx, struct bytes piece) {
    return file_out_write(ctx, piece);
}

/* The room of a native key: its file's pages, or memory. */
static enum err find_room(struct bytes_mut *out, void *ctx, size_t bytes) {
    struct key_maker *m = ctx;
    const struct setup_circuit *k = &m->synth.circuit;
    if (m->file) {
        return file_out_map(out, m->file, bytes);
    }
    uint64_t numbers = SCALAR_BYTES * (setup_domain(k) + 4 * (uint64_t)k->wires_count),
             all = cgroup_plan_bytes();
    REQUIRE(bytes + numbers <= all, E_LIMIT,
            "a key in memory of %.1f GB, and %.1f GB of numbers to make it from; this machine's "
            "programs may take %.1f GB: make a smaller one",
            (double)bytes / 1e9, (double)numbers / 1e9, (double)all / 1e9);
    TRY(bulk_open(&m->key, bytes));
    numa_prefer(m->key.ptr, m->key.len, m->order.backend->numa_node);
    *out = m->key;
    return OK;
}

static FALLIBLE make_key(struct key_maker *m, bool native) {
    struct rng rng = rng_seeded(m->order.seed);
    const struct backend_ops *ops = m->order.backend->ops;
    const struct setup_circuit *k = &m->synth.circuit;
    const struct setup_multiplier multiplier = {multiply, m};
    const struct setup_options options = {.multiplier = &multiplier,
                                          .pool = m->pool,
                                          .rng = &rng,
                                          .forgeable = true,
                                          .piece_points =
                                              m->order.log2 >= LARGE_LOG2 ? LARGE_PIECE : 0,
                                          .progress = m->order.progress,
                                          .progress_ctx = m->order.progress_ctx};
    TRY(ops->multiplier_open(&m->multipliers[GROUP_G1], m->order.backend, m->order.curve, GROUP_G1,
                             3 * (uint64_t)k->wires_count + setup_domain(k)));
    TRY(ops->multiplier_open(&m->multipliers[GROUP_G2], m->order.backend, m->order.curve, GROUP_G2,
                             k->wires_count));
    if (native) {
        TRY(setup_make_native(find_room, m, k, &options));
    } else {
        TRY(setup_write_zkey(write_file, m->file, k, &options));
    }
    multipliers_close(m);
    return OK;
}

FALLIBLE key_maker_key(struct key **out, struct key_maker *m) {
    ASSERT(!m->key.ptr);
    TRY(make_key(m, true));
    return key_from_memory(out, bytes_of(m->key.ptr, m->key.len), "synthetic key",
                           (struct key_options){.allow_insecure = true});
}

void key_maker_witness(struct witness *out, const struct key_maker *m) {
    *out = (struct witness){.curve = m->order.curve,
                            .count = m->synth.circuit.wires_count,
                            .values = (const uint8_t *)m->synth.witness};
}

/* a and b are gone before the key's numbers come. */
static FALLIBLE write_evaluations(struct file_out *file, struct key_maker *m) {
    AUTO(mem_free_ptr) struct scalar *a = NULL;
    AUTO(mem_free_ptr) struct scalar *b = NULL;
    const struct setup_circuit *k = &m->synth.circuit;
    uint64_t rows = synth_rows_count(&m->synth);
    uint8_t head[EVALUATIONS_HEAD_BYTES];
    TRY(mem_new_raw(&a, (size_t)setup_domain(k), sizeof *a));
    TRY(mem_new_raw(&b, (size_t)setup_domain(k), sizeof *b));
    synth_evaluate(a, b, &m->synth, m->pool);
    evaluations_write_head(head, (enum evaluations_curve)m->order.curve->id, rows, k->wires_count);
    TRY(file_out_write(file, bytes_of(head, sizeof head)));
    TRY(file_out_write(file, bytes_of(a, (size_t)rows * sizeof *a)));
    TRY(file_out_write(file, bytes_of(b, (size_t)rows * sizeof *b)));
    TRY(file_out_write(
        file, bytes_of(m->synth.witness, (size_t)k->wires_count * sizeof *m->synth.witness)));
    return file_out_commit(file);
}

FALLIBLE key_maker_write(struct key_maker *m, const struct key_maker_files *files) {
    AUTO(file_out_close) struct file_out *key = NULL;
    AUTO(file_out_close) struct file_out *witness = NULL;
    AUTO(file_out_close) struct file_out *evaluations = NULL;
    TRY(file_out_open(&key, files->key));
    TRY(file_out_open(&witness, files->witness));
    TRY(files->evaluations ? file_out_open(&evaluations, files->evaluations) : OK);
    TRY(setup_write_wtns(write_file, witness, m->order.curve, m->synth.witness,
                         m->synth.circuit.wires_count));
    TRY(evaluations ? write_evaluations(evaluations, m) : OK);
    m->file = key;
    enum err code = make_key(m, files->native);
    m->file = NULL;
    TRY(code);
    TRY(file_out_commit(witness));
    return file_out_commit(key);
}
