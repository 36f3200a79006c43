/* A proving key from secrets that whoever makes it knows: for benches and tests, never for a circuit in use.
 *
 * With tau known everything is a number times a generator, so a key of any size takes multiplications of two fixed points
 * and no ceremony. It is a .zkey as snarkjs lays it out, written front to back, or a native key (native.h), made in place, which is
 * what large ones are. Where `forgeable` is set gamma equals delta, as in a key without a contribution, and every reader
 * here refuses it unless asked: a mark that cannot be taken off.
 *
 * Threads  one calls; the work is shared out over the pool, the circuit's terms among it.
 * Cost     for n rows and m wires: 3m + n multiples in G1, m in G2; a few field operations for each. Predicted for a PoRep of 2^27 rows
 *          (75 GB) on 16 cores and an H200: 20 s for the numbers, 12 s for the points. On the processor alone, 3 µs a
 *          multiple of G1 and core.
 * Memory   32 bytes · (n + 3m), and chunks; of the key itself, a chunk, or its place.
 * Errors   E_RANGE for a circuit that no key can hold, E_LIMIT without memory, those of sink, room and multiplier.
 * Source   Groth16, eprint 2016/260, section 3.2; H in the coset's Lagrange basis as snarkjs 0.7.6 writes it.
 */
#pragma once
#include "node/base/pool.h"
#include "node/base/rng.h"
#include "node/curve/curve.h"

enum { SETUP_A, SETUP_B, SETUP_C, SETUP_MATRICES };

struct setup_term {
    uint32_t matrix, row, wire, coefficient; /* the last: an index */
};
typedef void setup_term_sink(void *ctx, const struct setup_term *term);
struct setup_rows {
    uint32_t from, count;
};
enum { SETUP_ONE, SETUP_MINUS_ONE }; /* the first two coefficients of every circuit */

/* Wires are numbered 0 (one), 1 … public_count, then the private ones. */
struct setup_circuit {
    const struct curve *curve;
    uint32_t wires_count, public_count, constraints_count;
    const struct scalar *coefficients; /* lent: what terms multiply wires by */
    uint32_t coefficients_count;
    /* All non-zeros of some rows, in any order, the same each time. Any number of threads at once. */
    void (*each_term)(void *ctx, struct setup_rows rows, setup_term_sink *sink, void *sink_ctx);
    void *ctx; /* lent */
};
/* The least power of two, from 2 on, that holds constraints and public wires, the constant one included. */
uint64_t setup_domain(const struct setup_circuit *circuit);

/* Who multiplies: a backend, or one by one. `out`: packed points, any alignment. */
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
    uint32_t piece_points;                    /* multiplied at once; 0: 2^15 */
    void (*progress)(void *ctx, double done); /* may be NULL; on the calling thread */
    void *progress_ctx;
};
/* Takes the file's bytes in order. */
typedef enum err setup_sink(void *ctx, struct bytes piece);
FALLIBLE setup_write_zkey(setup_sink *sink, void *sink_ctx, const struct setup_circuit *circuit,
                          const struct setup_options *options);
/* Asked once for a place of exactly so many zero bytes, which stays the caller's: a mapped file, or memory. */
typedef enum err setup_room(struct bytes_mut *out, void *ctx, size_t bytes);
/* The same key, natively, made from no file (native_image_seal). */
FALLIBLE setup_make_native(setup_room *room, void *room_ctx, const struct setup_circuit *circuit,
                           const struct setup_options *options);
/* The assignment as a .wtns file. */
FALLIBLE setup_write_wtns(setup_sink *sink, void *sink_ctx, const struct curve *c,
                          const struct scalar *values, uint32_t values_count);
