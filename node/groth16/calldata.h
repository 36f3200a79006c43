/* A proof as a contract takes it: the arguments of verifyProof in the contract that snarkjs exports.
 *
 *     ["a.x", "a.y"],[["b.x.c1", "b.x.c0"],["b.y.c1", "b.y.c0"]],["c.x", "c.y"],["public 0","public 1",…]
 *
 * Words of 64 hex digits after "0x", in quotes. In G2 the imaginary part stands first, other than in proof.json.
 *
 * Threads  any; pure.
 * Errors   E_CURVE for a curve whose pairing contracts cannot ask for in this form; E_FORMAT, E_RANGE, E_CURVE for a text that is none.
 * Source   EIP-196, EIP-197; snarkjs 0.7.6 `zkey export soliditycalldata`, whose output is the same, byte for byte.
 */
#pragma once
#include "node/groth16/proof.h"

FALLIBLE calldata_write(struct text *out, const struct proof *p, const struct scalar *publics,
                        size_t publics_count);
/* The other way, for `publics_count` of them: what a contract will see. Points on the curve, numbers below their moduli. On an error what
 * `publics` holds means nothing. */
FALLIBLE calldata_read(struct proof *p, struct scalar *publics, size_t publics_count,
                       const char *text);
