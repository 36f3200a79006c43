/* A proving key from secrets that whoever makes it knows: for benches and tests, never for a circuit in use.
 *
 * With tau known everything is a number times a generator, so a key of any size takes multiplications of two fixed points
 * and no ceremony. The file is a .zkey as snarkjs lays it out; where `forgeable` is set gamma equals delta, as in a key
 * without a contribution, and every reader here refuses it unless asked: a mark that cannot be taken off.
 *
 * Threads  one calls; the work is shared out over the pool.
 * Cost     for n rows and m wires: 3m + n multiples in G1, m in G2; a few field operations for each.
 * Memory   32 bytes · (n + 3m), and chunks.
 * Errors   E_RANGE for a circuit that no key can hold, E_LIMIT without memory, those of sink and multiplier.
 * Source   Groth16, eprint 2016/260, section 3.2; H in the coset's Lagrange basis as snarkjs 0.7.6 writes it.
 */
#pragma once
#include "node/base/pool.h"
#include "node/base/rng.h"
#include "node/curve/curve.h"

enum { SETUP_A, SETUP_B, SETUP_C, SETUP_MATRICES };

struct setup_term {
    uint32_t matrix, row, wire;
    struct scalar value;
};
typedef void setup_term_sink(void *ctx, const struct setup_term *term);

/* Wires are numbered 0 (one), 1 … public_count, then the private ones. */
struct setup_circuit {
    const struct curve *curve;
    uint32_t wires_count, public_count, constraints_count;
    /* All non-zeros, in any order, the same each time. */
    void (*each_term)(void *ctx, setup_term_sink *sink, void *sink_ctx);
    void *ctx; /* lent */
};
/* The least power of two, from 2 on, that holds constraints and public wires, the constant one included. */
uint64_t setup_domain(const struct setup_circuit *circuit);

/* Who multiplies: the processor's fixed.h, a device, or one by one. */
struct setup_multiplier {
    FALLIBLE(*multiply)
    (void *ctx, uint8_t *out, enum point_group group, const struct scalar *scalars, size_t count);
    void *ctx; /* lent */
};
struct setup_options {
    const struct setup_multiplier *multiplier;
    struct pool *pool;
    struct rng *rng; /* draws the secrets */
    bool forgeable;
    void (*progress)(void *ctx, double done); /* may be NULL; on the calling thread */
    void *progress_ctx;
};
/* Takes the file's bytes in order. */
typedef enum err setup_sink(void *ctx, struct bytes piece);
FALLIBLE setup_write_zkey(setup_sink *sink, void *sink_ctx, const struct setup_circuit *circuit,
                          const struct setup_options *options);
/* The assignment as a .wtns file. */
FALLIBLE setup_write_wtns(setup_sink *sink, void *sink_ctx, const struct curve *c,
                          const struct scalar *values, uint32_t values_count);
