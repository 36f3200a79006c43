/* Slices and blocks.
 *
 *     levels   18 ─── pass ───┐ 16 … 1: one task per block of 2^16, all of it in a core's cache ┌─── pass ─── 18
 *
 * A block is at most 2^16 elements (2.6 MB, and well under 100 ms of work, so a cancelled job is noticed) and small enough
 * that there are four tasks per thread. With one thread and a small domain there are no passes at all.
 */
#include "node/cpu/ntt.h"

#include "node/cpu/ntt_body.h"

#include <stdatomic.h>

enum { BLOCK_LOG2_MAX = 16, BLOCK_LOG2_LEAST = 10, SLICE_UNITS_LOG2 = 9, TASKS_PER_THREAD = 4 };

struct pass {
    const struct ntt *t;
    void *const *vectors;
    unsigned level;             /* of the blocks worked on */
    size_t blocks, slices;      /* per vector; per block */
    size_t part_units;          /* units of one radix part of a block */
    bool inverse, scale, coset; /* what to do */
    void (*body)(void *ctx, size_t from, size_t to);
    void *ctx;
};

static bool cancelled(const struct ntt *t) {
    return atomic_load_explicit(t->cancel, memory_order_relaxed) != 0;
}

size_t ntt_vector_bytes(const struct ntt_body *body, unsigned log2) {
    return ((size_t)1 << (log2 - body->unit_log2)) * body->unit_bytes;
}

uint64_t *ntt_rows(const struct ntt_body *body, void *vector, unsigned log2) {
    size_t rows_bytes = (size_t)SCALAR_BYTES << log2;
    return (uint64_t *)(void *)((uint8_t *)vector + ntt_vector_bytes(body, log2) - rows_bytes);
}

static uint8_t *block_at(const struct pass *p, size_t vector_idx, size_t block_idx) {
    const struct ntt_body *body = p->t->body;
    return (uint8_t *)p->vectors[vector_idx] +
           (block_idx << (p->level - body->unit_log2)) * body->unit_bytes;
}

static void enter_task(void *ctx, size_t idx, unsigned worker_idx) {
    const struct pass *p = ctx;
    const struct ntt_body *body = p->t->body;
    const unsigned log2 = p->t->domain->log2;
    (void)worker_idx;
    body->enter(p->vectors[idx], ntt_rows(body, p->vectors[idx], log2), 0,
                (size_t)1 << (log2 - body->unit_log2));
}

bool ntt_enter(const struct ntt *t, void *const *vectors, unsigned count) {
    struct pass p = {.t = t, .vectors = vectors};
    pool_for(t->pool, count, enter_task, &p);
    return !cancelled(t);
}

static size_t slice_from(size_t units, size_t slices, size_t idx) {
    return units * idx / slices;
}

static void pass_task(void *ctx, size_t idx, unsigned worker_idx) {
    const struct pass *p = ctx;
    (void)worker_idx;
    if (cancelled(p->t)) {
        return;
    }
    const size_t slice = idx % p->slices, block = idx / p->slices % p->blocks;
    const size_t from = slice_from(p->part_units, p->slices, slice);
    const size_t to = slice_from(p->part_units, p->slices, slice + 1);
    uint8_t *at = block_at(p, idx / p->slices / p->blocks, block);
    (p->inverse ? p->t->body->dit_pass : p->t->body->dif_pass)(p->t->domain, at, p->level, from,
                                                               to);
}

/* One pass over all vectors at `level`. */
static bool run_pass(struct pass *p, unsigned count, unsigned level) {
    const struct ntt_body *body = p->t->body;
    p->level = level;
    p->blocks = (size_t)1 << (p->t->domain->log2 - level);
    p->part_units = (size_t)1 << (level - body->radix_log2(level) - body->unit_log2);
    p->slices = p->part_units >> SLICE_UNITS_LOG2;
    p->slices = p->slices ? p->slices : 1;
    pool_for(p->t->pool, count * p->blocks * p->slices, pass_task, p);
    return !cancelled(p->t);
}

static void block_task(void *ctx, size_t idx, unsigned worker_idx) {
    const struct pass *p = ctx;
    const struct ntt_body *body = p->t->body;
    const struct domain *d = p->t->domain;
    (void)worker_idx;
    if (cancelled(p->t)) {
        return;
    }
    const size_t units = (size_t)1 << (p->level - body->unit_log2);
    const size_t block = idx % p->blocks, vector = idx / p->blocks;
    uint8_t *at = block_at(p, vector, block);
    body->dif_leaf(d, at, p->level);
    if (p->scale || p->coset) {
        body->scale(d, p->vectors[vector], block * units, (block + 1) * units);
    }
    if (p->coset) {
        if (block == 0) {
            body->scale_first(d, p->vectors[vector]);
        }
        body->dit_leaf(d, at, p->level);
    }
}

/* The levels of the passes, top down; the last entry is the blocks' level. Returns how many passes. */
static unsigned split_levels(unsigned *levels, const struct ntt *t, unsigned count) {
    const unsigned threads = pool_threads_count(t->pool);
    unsigned level = t->domain->log2, passes = 0;
    for (;; passes++) {
        levels[passes] = level;
        unsigned next = level - t->body->radix_log2(level);
        bool few = threads > 1 && ((uint64_t)count << (t->domain->log2 - level)) <
                                      (uint64_t)TASKS_PER_THREAD * threads;
        if (level <= BLOCK_LOG2_MAX && !(few && next >= BLOCK_LOG2_LEAST)) {
            return passes;
        }
        level = next;
    }
}

static bool transform(struct pass *p, unsigned count) {
    unsigned levels[DOMAIN_LOG2_MAX + 1], passes = split_levels(levels, p->t, count);
    for (unsigned i = 0; i < passes; i++) {
        if (!run_pass(p, count, levels[i])) {
            return false;
        }
    }
    p->level = levels[passes];
    p->blocks = (size_t)1 << (p->t->domain->log2 - p->level);
    pool_for(p->t->pool, count * p->blocks, block_task, p);
    p->inverse = true;
    for (unsigned i = passes; p->coset && i-- > 0;) {
        if (cancelled(p->t) || !run_pass(p, count, levels[i])) {
            return false;
        }
    }
    return !cancelled(p->t);
}

bool ntt_dif(const struct ntt *t, void *const *vectors, unsigned count, bool scale) {
    struct pass p = {.t = t, .vectors = vectors, .scale = scale};
    return transform(&p, count);
}

bool ntt_to_coset(const struct ntt *t, void *const *vectors, unsigned count) {
    struct pass p = {.t = t, .vectors = vectors, .coset = true};
    return transform(&p, count);
}

static void slice_task(void *ctx, size_t idx, unsigned worker_idx) {
    const struct pass *p = ctx;
    (void)worker_idx;
    if (!cancelled(p->t)) {
        p->body(p->ctx, slice_from(p->part_units, p->slices, idx),
                slice_from(p->part_units, p->slices, idx + 1));
    }
}

bool ntt_slices(const struct ntt *t, void (*body)(void *ctx, size_t from, size_t to), void *ctx) {
    struct pass p = {.t = t, .body = body, .ctx = ctx};
    p.part_units = (size_t)1 << (t->domain->log2 - t->body->unit_log2);
    p.slices = p.part_units >> SLICE_UNITS_LOG2;
    p.slices = p.slices ? p.slices : 1;
    pool_for(t->pool, p.slices, slice_task, &p);
    return !cancelled(t);
}
