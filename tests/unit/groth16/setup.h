/* Any circuit by its terms, and its key: how tests get circuits that no file holds.
 *
 * The key is node/groth16/setup.h's, gamma ≠ delta, its points multiplied one by one: nothing of fixed.h is in it.
 *
 * Threads  one. All memory is the circuit's: circuit_done.
 */
#pragma once
#include "node/groth16/setup.h"

enum { LC_A = SETUP_A, LC_B = SETUP_B, LC_C = SETUP_C, LC_COUNT = SETUP_MATRICES };

struct circuit {
    const struct curve *curve;
    uint32_t wires_count, public_count, constraints_count;
    struct setup_term *terms;    /* owned */
    struct scalar *coefficients; /* owned: those of setup.h, and one a term */
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
