/* Bellman parameters and the circuit that they lack, made into one native key.
 *
 * A .params file says neither which wire owns which point of a and b nor what the matrices are. Both follow from the circuit: a wire has a
 * point of a when some row of A names it (inputs always have one), one of b when some row of B does. From then on the key
 * is like any other: a witness is all that a job needs, and what a job says of densities is not asked.
 *
 *   points      one for every wire, infinity where bellman left one out; Montgomery, little-endian
 *   H           bit-reversed, infinity for the power that bellman leaves out
 *   matrices    the circuit's constraints, and behind them one row of A for each input, as bellman's prover appends
 *   made from   SHA-256 of (SHA-256 of the .params ‖ SHA-256 of the circuit's file); its name is the SHA-256 of its own bytes
 *
 * Threads  one calls; points are converted on the pool.
 * Memory   a byte a wire and the dictionary: the key is made in its file's pages.
 * Errors   E_RANGE when the circuit is not that of the key, with both counts; E_CURVE, E_USAGE; those of native.h.
 */
#pragma once
#include "node/base/pool.h"
#include "node/witness/circuit.h"

FALLIBLE import_bellman(const char *path, struct key *params, const struct circuit *circuit,
                        const struct sha256 *circuit_digest, struct pool *pool);
