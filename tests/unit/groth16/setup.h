/* A key for any circuit, from secrets drawn on the spot: how tests get circuits that no file holds.
 *
 * The bytes are a .zkey as snarkjs lays it out (sections 1 to 10, gamma ≠ delta), built from the definitions: the Lagrange
 * basis at tau by its formula, no transforms. Cost: a point multiplication for each entry of A, B1, B2, L, H.
 *
 * Threads  one. All memory is the circuit's: circuit_done.
 */
#pragma once
#include "node/base/rng.h"
#include "node/curve/curve.h"

enum { LC_A, LC_B, LC_C, LC_COUNT };

struct term {
    unsigned matrix; /* LC_A, LC_B, LC_C */
    uint32_t row, wire;
    struct scalar value;
};
struct circuit {
    const struct curve *curve;
    uint32_t wires_count, public_count, constraints_count;
    struct term *terms; /* owned */
    size_t terms_count, terms_cap;
    struct scalar *witness; /* owned: wires_count */
};

/* Wires are numbered 0 (one), 1 … public_count, then the private ones; all witness values start at zero but wire 0. */
void circuit_init(struct circuit *out, const struct curve *c, uint32_t wires_count,
                  uint32_t public_count);
void circuit_done(struct circuit *k);
uint32_t circuit_row(struct circuit *k); /* a new, empty constraint */
void circuit_term(struct circuit *k, unsigned matrix, uint32_t row, uint32_t wire, uint64_t value);
/* Does the witness satisfy the circuit? */
bool circuit_holds(const struct circuit *k);
/* The least power of two that holds constraints and public wires, the constant one included. */
size_t circuit_domain(const struct circuit *k);

/* Squarings in a row: public wire 1 is the last, the first private one is the seed. rows = constraints + 2 (publics and
 * the constant). constraints ≥ 1; `publics` 0 or 1. */
void circuit_chain(struct circuit *out, const struct curve *c, uint32_t constraints,
                   uint32_t publics, uint64_t seed);

struct file_bytes {
    uint8_t *ptr; /* owned: mem_free */
    size_t len;
};
void circuit_setup(struct file_bytes *out, const struct circuit *k, struct rng *rng);
/* The witness as a .wtns file. */
void circuit_wtns(struct file_bytes *out, const struct circuit *k);
