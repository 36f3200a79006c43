/* The tables that curve_tmpl.c makes, one per curve and body of the multiplication; curve.c picks among them. Constant. */
#pragma once
#include "node/curve/curve.h"

extern const struct curve bn254_curve_portable, bls12_381_curve_portable;
#ifdef __x86_64__
extern const struct curve bn254_curve_adx, bls12_381_curve_adx;
#endif
