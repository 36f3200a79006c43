/* Evaluations of a circuit, version 1: the file format, and what a C program needs to write it.
 *
 * A prover of bellman's family has a, b and c when its synthesis ends: what the constraints' left, right and output sides
 * come to. This file carries a and b with the assignment that they came from. c is left out: it is a∘b wherever the
 * constraints hold, and where they do not there is no proof. `bellows prove` and `bellows submit` take the file where they
 * take a .wtns. It is written once, from front to back; this header alone (C11, the C library) is enough.
 *
 * A value is a canonical integer below the scalar prime r, 32 bytes little-endian, never Montgomery. All integers are
 * little-endian.
 *
 *     head        offset  bytes
 *                 0       8      "BELLOWSE"
 *                 8       4      version: 1
 *                 12      4      curve: 1 BN254, 2 BLS12-381 (as in job.proto)
 *                 16      8      rows_count, 1 to 2^32
 *                 24      8      wires_count, 1 to 2^32 - 1
 *                 32      32     zero
 *     a           64      32 a row
 *     b           then    32 a row
 *     assignment  then    32 a wire: the constant 1, the public inputs, the private ones
 *
 * Rows are the constraints in the order of synthesis, and behind them one for each public input and the constant, where a
 * is that input and b is 0: bellman's provers append those themselves before they prove, so that their vectors have them
 * already. A domain is the least power of two that holds all rows. The file ends with the last value.
 *
 * Use:     uint8_t head[EVALUATIONS_HEAD_BYTES];
 *          evaluations_write_head(head, EVALUATIONS_BLS12_381, rows, wires);
 *          write head, a, b, assignment: evaluations_bytes(rows, wires) in all.
 */
#pragma once
#include <stdint.h>
#include <string.h>

enum { EVALUATIONS_VERSION = 1, EVALUATIONS_HEAD_BYTES = 64, EVALUATIONS_VALUE_BYTES = 32 };
enum evaluations_curve { EVALUATIONS_BN254 = 1, EVALUATIONS_BLS12_381 = 2 };
#define EVALUATIONS_MAGIC    "BELLOWSE"
#define EVALUATIONS_ROWS_MAX (UINT64_C(1) << 32)

static inline void evaluations_put(uint8_t *at, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> 8 * i);
    }
}

static inline void evaluations_write_head(uint8_t out[EVALUATIONS_HEAD_BYTES],
                                          enum evaluations_curve curve, uint64_t rows_count,
                                          uint64_t wires_count) {
    memset(out, 0, EVALUATIONS_HEAD_BYTES);
    memcpy(out, EVALUATIONS_MAGIC, 8);
    evaluations_put(out + 8, EVALUATIONS_VERSION, 4);
    evaluations_put(out + 12, (uint64_t)curve, 4);
    evaluations_put(out + 16, rows_count, 8);
    evaluations_put(out + 24, wires_count, 8);
}

/* Of the whole file. */
static inline uint64_t evaluations_bytes(uint64_t rows_count, uint64_t wires_count) {
    return EVALUATIONS_HEAD_BYTES + EVALUATIONS_VALUE_BYTES * (2 * rows_count + wires_count);
}
