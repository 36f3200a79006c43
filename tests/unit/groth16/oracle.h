/* The cases of tests/vectors and what fixed.json says about them: with given blinding, the one proof there can be. */
#pragma once
#include "node/groth16/prove.h"
#include "node/witness/witness.h"

enum { ORACLE_CASES_MAX = 128 };

struct oracle_case {
    char folder[512];
    char name[64]; /* "bn128/mul" */
    const struct curve *curve;
};
struct oracle {
    struct blinding blinding;
    struct proof proof;
    struct sums sums;
    char h_scalars_sha256[SHA256_HEX_BYTES];
};

/* All folders below tests/vectors/<curve> that hold a circuit.zkey, sorted by name; fails the claim if there are none. */
size_t oracle_cases(struct oracle_case out[ORACLE_CASES_MAX]);
struct oracle_case oracle_case_named(const char *curve, const char *name);
const char *oracle_path(const struct oracle_case *c, const char *file); /* eight in rotation */
void oracle_read(struct oracle *out, const struct oracle_case *c);

/* What a case holds, opened; claims fail on errors. Insecure keys are allowed: the corpus has them on purpose. */
struct opened {
    struct key *key;
    struct witness witness;
};
void opened_open(struct opened *out, const struct oracle_case *c);
void opened_close(struct opened *o);
