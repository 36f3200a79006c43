/* CPU backend: the reference for the device and the prover on machines without one.
 *
 * One source per operation, compiled once per (curve, tier); the best tier the processor has is chosen at start.
 *
 *   tier      multiplication                               needs
 *   portable  64×64→128 products in C                      any x86-64 or 64-bit Arm
 *   adx       mulx with two carry chains                   BMI2, ADX
 *   ifma      eight lanes of 52-bit multiply-add           AVX-512 F, DQ, BW, VL, IFMA
 *
 * Threads  as backend.h; work is spread over a pool made at opening.
 * Errors   E_USAGE for a tier this processor has not; E_LIMIT without memory.
 */
#pragma once
#include "node/groth16/backend.h"

FALLIBLE cpu_backend_open(struct backend **out, const struct backend_options *options);
/* Best first; NULL-terminated. */
const char *const *cpu_tiers_usable(void);
/* Pure: the same answer as the backend's plan for a given number of threads and tier. */
FALLIBLE cpu_plan(struct plan *out, const struct key_shape *shape, unsigned threads_count,
                  const char *tier);
