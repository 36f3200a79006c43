/* CPU backend: the reference for the device and the prover on machines without one.
 *
 * One source per operation, compiled once per (curve, tier); the best tier the processor has is chosen at start.
 *
 *   tier      multiplication                               needs
 *   portable  64×64→128 products in C                      any x86-64 or 64-bit Arm
 *   adx       mulx with two carry chains                   BMI2, ADX
 *   ifma      eight lanes of 52-bit multiply-add           AVX-512 F, DQ, BW, VL, IFMA
 *
 * The first `msm` of a job computes all five sums as one pool of tasks; the other four calls find theirs done. Key points
 * and terms are read where they are mapped and never copied whole.
 *
 * Threads  as backend.h; work is spread over a pool made at opening.
 * Errors   E_USAGE for a tier this processor has not, and for a key without matrices; E_LIMIT without memory or for a domain above
 *          DOMAIN_LOG2_MAX, E_RANGE for one that the curve has not.
 */
#pragma once
#include "node/groth16/backend.h"

FALLIBLE cpu_backend_open(struct backend **out, const struct backend_options *options);
/* Best first; NULL-terminated. */
const char *const *cpu_tiers_usable(void);
/* Pure: the same answer as the backend's plan for a given number of threads and tier. threads_count 0: as many as cores
 * are usable; tier NULL: the best. host_bytes is exactly what key_load and slot_open take from the heap. */
FALLIBLE cpu_plan(struct plan *out, const struct key_shape *shape, unsigned threads_count,
                  const char *tier);
/* Heap bytes that a CPU backend's keys and slots hold now. */
uint64_t cpu_backend_bytes(const struct backend *b);
