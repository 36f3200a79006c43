/* Numbers and points as text and as bellman writes them.
 *
 * snarkjs's JSON carries decimal strings; bellman's files carry big-endian coordinates with flag bits on top
 * (compressed, infinity, y is the larger one; encode.c draws them), G2 with c1 before c0. BN254 has room for two bits
 * only: there the length alone says whether a point is compressed.
 *
 * Threads  any.
 * Errors   E_FORMAT for text or flags that are not a number or a point, E_RANGE for a coordinate >= p or a scalar >= r,
 *          E_CURVE for a point off the curve (and, where said, outside the subgroup). Outputs untouched unless OK.
 * Source   snarkjs 0.7.6's JSON files; ZCash's serialization of BLS12-381 points, as in zkcrypto/bls12_381's notes.
 */
#pragma once
#include "node/curve/curve.h"

/* Plain decimal digits only: no sign, no spaces, no leading zeros except "0" itself. */
FALLIBLE scalar_from_decimal(struct scalar *out, const struct curve *c, const char *digits);
void scalar_to_decimal(char out[FP_DECIMAL_MAX], const struct scalar *s);
FALLIBLE fp_from_decimal(uint64_t *out_mont, const struct curve *c, const char *digits);
void fp_to_decimal(char out[FP_DECIMAL_MAX], const struct curve *c, const uint64_t *in_mont);

/* Bytes of one point: compressed 48 / 96, uncompressed 96 / 192 (BLS12-381), 32/64 and 64/128 on BN254 in the layout
 * of pairing_ce. Reading checks range and curve, and the subgroup when `subgroup`. */
size_t bellman_point_bytes(const struct curve *c, enum point_group g, bool compressed);
FALLIBLE bellman_g1_read(struct g1 *out, const struct curve *c, struct bytes in, bool compressed,
                         bool subgroup);
FALLIBLE bellman_g2_read(struct g2 *out, const struct curve *c, struct bytes in, bool compressed,
                         bool subgroup);
void bellman_g1_write(uint8_t *out, const struct curve *c, const struct g1 *p, bool compressed);
void bellman_g2_write(uint8_t *out, const struct curve *c, const struct g2 *p, bool compressed);
