/* Chains of products for rate.c, compiled per (curve, tier): as many as keep the multiplier busy, eight lanes each where there
 * are lanes. */
#include "node/cpu/rate.h"
#include "node/cpu/tmpl.h"

#include <string.h>

enum { CHAINS = 4 };

#ifdef TIER_LANES
enum { LANES = 8 };
#define CHAIN(name, field)                                                                         \
    static uint64_t name(uint64_t rounds) {                                                        \
        field##_x8 x[CHAINS], y;                                                                   \
        uint64_t sum = 0;                                                                          \
        field##_x8_broadcast(&y, field##_x8_one52);                                                \
        for (int i = 0; i < CHAINS; i++) {                                                         \
            x[i] = y;                                                                              \
        }                                                                                          \
        for (uint64_t k = 0; k < rounds; k++) {                                                    \
            for (int i = 0; i < CHAINS; i++) {                                                     \
                field##_x8_mul(&x[i], &x[i], &y);                                                  \
            }                                                                                      \
        }                                                                                          \
        for (int i = 0; i < CHAINS; i++) {                                                         \
            uint64_t w;                                                                            \
            memcpy(&w, &x[i], sizeof w);                                                           \
            sum += w;                                                                              \
        }                                                                                          \
        return sum;                                                                                \
    }
#else
enum { LANES = 1 };
#define CHAIN(name, field)                                                                         \
    static uint64_t name(uint64_t rounds) {                                                        \
        field x[CHAINS], y = field##_r2;                                                           \
        uint64_t sum = 0;                                                                          \
        for (int i = 0; i < CHAINS; i++) {                                                         \
            x[i] = y;                                                                              \
        }                                                                                          \
        for (uint64_t k = 0; k < rounds; k++) {                                                    \
            for (int i = 0; i < CHAINS; i++) {                                                     \
                field##_mul(&x[i], &x[i], &y);                                                     \
            }                                                                                      \
        }                                                                                          \
        for (int i = 0; i < CHAINS; i++) {                                                         \
            sum += x[i].w[0];                                                                      \
        }                                                                                          \
        return sum;                                                                                \
    }
#endif
CHAIN(fp_chain, fp)
CHAIN(fr_chain, fr)

extern const struct rate_ops CPU_FN(rate_ops);
const struct rate_ops CPU_FN(rate_ops) = {
    .products = CHAINS * LANES, .fp = fp_chain, .fr = fr_chain};
