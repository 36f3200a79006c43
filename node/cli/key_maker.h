/* Synthetic keys and witnesses, made on this machine's processor: into files, or into memory that looks like a file.
 *
 * Owner    the caller, to key_maker_close.
 * Threads  one calls.
 * Errors   those of synth.h and setup.h; E_IO when a file cannot be written.
 */
#pragma once
#include "node/cli/args.h"
#include "node/cpu/ops.h"
#include "node/groth16/synth.h"

enum { KEY_MAKER_FILE_LOG2_MAX = 23, KEY_MAKER_PATH_BYTES = 64 };

struct key_maker; /* opaque */
struct key_maker_order {
    const struct curve *curve;
    enum synth_shape shape;
    unsigned log2;
    uint64_t seed; /* of secrets and values: the same makes the same key */
    unsigned threads;
    const char *cpu_tier; /* NULL: best */
    void (*progress)(void *ctx, double done);
    void *progress_ctx;
};
FALLIBLE key_maker_open(struct key_maker **out, const struct key_maker_order *order);
void key_maker_close(struct key_maker **m);
const struct synth *key_maker_circuit(const struct key_maker *m);
/* *path: where the files can be opened, as long as the maker is. */
FALLIBLE key_maker_key_in_memory(char path[KEY_MAKER_PATH_BYTES], struct key_maker *m);
FALLIBLE key_maker_witness_in_memory(char path[KEY_MAKER_PATH_BYTES], struct key_maker *m);
FALLIBLE key_maker_write(struct key_maker *m, const char *key_path, const char *witness_path);

#define OPTION_SYNTH_CURVE                                                                         \
    {                                                                                              \
        .kind = OPTION_CHOICE, .name = "curve", .value = "bn128|bls12381", .fallback = "bn128",    \
        .text = "Curve."                                                                           \
    }
#define OPTION_SYNTH_SEED                                                                          \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "seed", .value = "N", .fallback = "1", .most = UINT64_MAX,  \
        .text = "Of secrets and values: the same makes the same files."                            \
    }
