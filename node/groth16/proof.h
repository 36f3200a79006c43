/* A Groth16 proof and its files.
 *
 * Threads  values.
 * Errors   E_FORMAT, E_RANGE, E_CURVE naming the field.
 * Source   snarkjs proof.json and public.json; bellman: A compressed, B compressed, C compressed (192 bytes).
 */
#pragma once
#include "node/base/text.h"
#include "node/curve/curve.h"

struct proof {
    const struct curve *curve;
    struct g1 a;
    struct g2 b;
    struct g1 c;
};

enum { PROOF_BELLMAN_BYTES_MAX = 192 };

/* Same key order, indent and names as snarkjs; no newline at the end, like snarkjs. */
FALLIBLE proof_write_json(struct text *out, const struct proof *p);
/* `curve` may be NULL when the JSON names it; a JSON without "curve" (rapidsnark) takes it. Points are checked to be on
 * the curve; the subgroup check is verify's. */
FALLIBLE proof_read_json(struct proof *out, const struct curve *curve, struct bytes json,
                         const char *name);
size_t proof_bellman_bytes(const struct curve *c);
void proof_write_bellman(uint8_t *out, const struct proof *p);
FALLIBLE proof_read_bellman(struct proof *out, const struct curve *c, struct bytes data,
                            const char *name);

FALLIBLE public_write_json(struct text *out, const struct scalar *values, size_t count);
/* *out is the caller's: mem_free. Values >= r are E_RANGE. */
FALLIBLE public_read_json(struct scalar **out, size_t *count, const struct curve *c,
                          struct bytes json, const char *name);
