/* G1 and G2 of the curve named by -DCURVE: types and additions.
 *
 * For sources compiled once per curve, by the rules of fields.h: nothing here has a symbol.
 */
#pragma once
#include "node/curve/fields.h"

// clang-format off
#define GROUP            g1
#define COORD            fp
#define COORD_ZERO       {{0}}
#define GROUP_B          {G1_B}
#include "node/curve/group_tmpl.h"

#define GROUP            g2
#define COORD            fp2
#define COORD_ZERO       {{{0}}, {{0}}}
#define GROUP_B          {{G2_B_C0}, {G2_B_C1}}
#include "node/curve/group_tmpl.h"
// clang-format on
