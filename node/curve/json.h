/* Points in JSON as snarkjs writes them, and a strict way to read such files.
 *
 *   G1  ["x", "y", "1"]                              infinity ["0", "1", "0"]
 *   G2  [["x.c0","x.c1"], ["y.c0","y.c1"], ["1","0"]]  infinity [["0","0"], ["1","0"], ["0","0"]]
 *
 * Strict, because a statement must have one spelling: no byte-order mark, nothing after the value, no field twice,
 * numbers only as decimal strings.
 *
 * Threads  any.
 * Errors   E_FORMAT for shape, E_RANGE for a coordinate >= p, E_CURVE off the curve, all naming the field. Outputs
 *          untouched unless OK.
 * Source   snarkjs 0.7.6: verification_key.json, proof.json (JSON.stringify with an indent of one space).
 */
#pragma once
#include "node/base/text.h"
#include "node/curve/curve.h"

#include <cjson/cJSON.h>

enum { JSON_FIELDS_MAX = 64 }; /* of one object */

/* *out is the caller's: json_free. `name` (of the file) is put before each error. */
FALLIBLE json_parse(cJSON **out, struct bytes json, const char *name);
void json_free(cJSON **json); /* for AUTO */
/* The member, or E_FORMAT naming it. */
FALLIBLE json_member(const cJSON **out, const cJSON *object, const char *field);
FALLIBLE json_text_member(const char **out, const cJSON *object, const char *field);

FALLIBLE json_g1_read(struct g1 *out, const struct curve *c, const cJSON *value, const char *field);
FALLIBLE json_g2_read(struct g2 *out, const struct curve *c, const cJSON *value, const char *field);
/* `depth` is the nesting of the line that the value starts on: 1 for a member of the outermost object. */
void json_g1_write(struct text *out, const struct curve *c, const struct g1 *p, unsigned depth);
void json_g2_write(struct text *out, const struct curve *c, const struct g2 *p, unsigned depth);
