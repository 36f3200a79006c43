/* Synthetic keys and witnesses, made by a backend: into files, or into memory.
 *
 * A .zkey is written up to 2^23 rows, a native key whatever its size. In memory it is native, too, without a file, so that a key
 * larger than the disk can be tried.
 *
 * Owner    the caller, to key_maker_close.
 * Threads  one calls.
 * Memory   those of setup.h, the witness, and in memory the key: for a PoRep of 2^27 rows 101 GB while it is made, 85 GB then.
 * Errors   those of synth.h and setup.h; E_IO when a file cannot be written, E_LIMIT when memory does not hold the key.
 */
#pragma once
#include "node/cli/args.h"
#include "node/groth16/backend.h"
#include "node/groth16/synth.h"

enum { KEY_MAKER_ZKEY_LOG2_MAX = 23 };

struct key_maker; /* opaque */
struct key_maker_order {
    const struct curve *curve;
    enum synth_shape shape;
    unsigned log2;
    uint64_t seed;           /* of secrets and values: the same makes the same key */
    unsigned threads;        /* that make the numbers; 0: all cores */
    struct backend *backend; /* lent: makes the points */
    void (*progress)(void *ctx, double done);
    void *progress_ctx;
};
FALLIBLE key_maker_open(struct key_maker **out, const struct key_maker_order *order);
void key_maker_close(struct key_maker **m);
const struct synth *key_maker_circuit(const struct key_maker *m);
/* Both lent from the maker, which outlives them. The key once. */
FALLIBLE key_maker_key(struct key **out, struct key_maker *m);
void key_maker_witness(struct witness *out, const struct key_maker *m);
struct key_maker_files {
    const char *key, *witness;
    const char *evaluations; /* NULL: none */
    bool native;             /* the key */
};
FALLIBLE key_maker_write(struct key_maker *m, const struct key_maker_files *files);

#define OPTION_CURVE                                                                               \
    {                                                                                              \
        .kind = OPTION_CHOICE, .name = "curve", .value = "bn128|bls12381", .fallback = "bn128",    \
        .text = "Curve."                                                                           \
    }
#define OPTION_LOG2(LEAST, MOST, TEXT)                                                             \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "log2", .value = "N", .fallback = "16", .least = (LEAST),   \
        .most = (MOST), .text = TEXT                                                               \
    }
#define OPTION_SYNTH_SEED                                                                          \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "seed", .value = "N", .fallback = "1", .most = UINT64_MAX,  \
        .text = "Of secrets and values: the same makes the same files."                            \
    }
