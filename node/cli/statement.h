/* What a verifier is asked: a key, public signals and a proof, each a file that a command line names.
 *
 * Threads  one.
 * Errors   those of vkey.h and proof.h, with the file's name.
 */
#pragma once
#include "node/groth16/proof.h"
#include "node/key/vkey.h"

struct statement {
    const char *public_path, *proof_path; /* lent from args */
    struct proof proof;
    struct scalar *publics; /* owned */
    size_t publics_count;
};
/* Reads both files; `bellman`: the proof is three compressed points. */
FALLIBLE statement_read(struct statement *s, const struct curve *curve, bool bellman);
void statement_done(struct statement *s);
/* A verification_key.json, or a proving key, which holds the same points. *out is the caller's: vkey_done. */
FALLIBLE statement_vkey(struct vkey *out, const char *path, bool allow_insecure);
