/* The fields of one curve: fp (coordinates), fr (scalars), fp2. The curve is the one named by -DCURVE.
 *
 * How arithmetic is compiled per curve and per tier. A source that computes includes this header (or group.h,
 * which adds G1 and G2) and is compiled once per curve, and per tier where it has tiers:
 *
 *     static_library('msm-' + curve + '-adx', 'msm_tmpl.c', c_args: ['-DCURVE=' + curve, '-DFIELD_USE_ADX', ...])
 *
 *     macro            value                    effect
 *     CURVE            bn254 or bls12_381       picks params/CURVE.h; CURVE_FN(ntt) is then bn254_ntt
 *     FIELD_USE_ADX    defined or not           fp_mul and fr_mul in mulx/adcx/adox rows (x86-64 with BMI2 and ADX only)
 *
 * Nothing in these headers has a symbol: all functions are static inline, pure, any thread's, and all constants static, so that a copy
 * compiled with a tier's flags never leaks into another object. What a per-curve source exports it names CURVE_FN(…),
 * and with tiers CURVE_FN(…_adx).
 *
 * Layout   fp: FP_LIMBS words, fr: 4 words, little-endian, Montgomery (R = 2^(64·limbs)), canonical. The same as in
 *          struct g1, struct g2 and on the device.
 */
#pragma once

#ifndef CURVE
#error "compile with -DCURVE=bn254 or -DCURVE=bls12_381"
#endif

#define CURVE_PASTE_(a, b) a##_##b
#define CURVE_PASTE(a, b)  CURVE_PASTE_(a, b)
#define CURVE_FN(name)     CURVE_PASTE(CURVE, name)
#define CURVE_TEXT_(x)     #x
#define CURVE_TEXT(x)      CURVE_TEXT_(x)

/* The path is pasted from tokens, where a space would count. */
// clang-format off
#include CURVE_TEXT(node/curve/params/CURVE.h)
// clang-format on

#define FIELD   fp
#define FIELD_C FP
#include "node/curve/field_tmpl.h"

#define FIELD   fr
#define FIELD_C FR
#include "node/curve/field_tmpl.h"

#include "node/curve/fp2_tmpl.h"
