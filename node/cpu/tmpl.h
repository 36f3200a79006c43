/* What every source compiled per (curve, tier) starts with.
 *
 *     macro        value                            effect
 *     CURVE        bn254 or bls12_381               as in node/curve/fields.h
 *     TIER         portable, adx or ifma            CPU_FN(x) is bn254_ifma_x
 *     TIER_LANES   defined for ifma                 fp_x8, fr_x8 and the sources' vector bodies
 *
 * Everything in these headers is static: a function compiled with a tier's flags must never be the copy that the linker
 * keeps for all.
 */
#pragma once
#include "node/curve/fields.h"

#define TMPL_JOIN_(a, b) a##_##b
#define TMPL_JOIN(a, b)  TMPL_JOIN_(a, b)
#define CPU_FN(name)     TMPL_JOIN(TMPL_JOIN(CURVE, TIER), name)

#ifdef TIER_LANES
#define VEC        fp_x8
#define VEC_C      FP
#define VEC_SCALAR fp
#include "node/cpu/vec_tmpl.h"

#define VEC        fr_x8
#define VEC_C      FR
#define VEC_SCALAR fr
#include "node/cpu/vec_tmpl.h"
#endif
