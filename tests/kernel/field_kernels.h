/* The field primitives of the device, called one by one.
 *
 * Elements are as curve.h lays them out (Fp2: c0, c1), Fr plain integers of 32 bytes.
 */
#pragma once
#include "cuda/gpu.h"

enum field_kind { FIELD_FP, FIELD_FP2, FIELD_FR, FIELD_FP2_LANES /* MUL, SQR, NEG, LAZY */ };
enum field_op {
    FIELD_ADD,
    FIELD_SUB,
    FIELD_MUL, /* Fr: by a constant with its quotient */
    FIELD_SQR, /* Fr: the Montgomery product of x and y, scaled back to x·y */
    FIELD_INV, /* not Fr */
    FIELD_NEG, /* Fr: canonical form of x; Fp2 over lanes: the norm of x in both halves */
    /* Fp: (x - y)(y - x)(x - y) through the lazy forms; Fr: y + x·y; Fp2 over lanes: x·conj(y)·y1. */
    FIELD_LAZY,
    FIELD_OP_COUNT
};

#ifdef __cplusplus
extern "C" {
#endif
FALLIBLE bn254_gpu_field_run(enum field_kind kind, enum field_op op, void *out, const void *a,
                             const void *b, uint32_t count, struct gpu_stream *s);
FALLIBLE bls12_381_gpu_field_run(enum field_kind kind, enum field_op op, void *out, const void *a,
                                 const void *b, uint32_t count, struct gpu_stream *s);
#ifdef __cplusplus
}
#endif
