/* Points in JSON as snarkjs writes them.
 *
 *   G1  ["x", "y", "1"]                              infinity ["0", "1", "0"]
 *   G2  [["x.c0","x.c1"], ["y.c0","y.c1"], ["1","0"]]  infinity [["0","0"], ["1","0"], ["0","0"]]
 *
 * Strict, because a statement must have one spelling: numbers only as decimal strings, no other form of a point.
 *
 * Threads  any.
 * Errors   E_FORMAT for shape, E_RANGE for a coordinate >= p, E_CURVE off the curve, all naming the field. Outputs
 *          untouched unless OK.
 * Source   snarkjs 0.7.6: verification_key.json, proof.json (JSON.stringify with an indent of one space).
 */
#pragma once
#include "node/base/json.h"
#include "node/base/text.h"
#include "node/curve/curve.h"

FALLIBLE json_g1_read(struct g1 *out, const struct curve *c, const cJSON *value, const char *field);
FALLIBLE json_g2_read(struct g2 *out, const struct curve *c, const cJSON *value, const char *field);
/* `depth` is the nesting of the line that the value starts on: 1 for a member of the outermost object. */
void json_g1_write(struct text *out, const struct curve *c, const struct g1 *p, unsigned depth);
void json_g2_write(struct text *out, const struct curve *c, const struct g2 *p, unsigned depth);
