/* What the device does for fixed.c beside additions: who is added to whom, and moving points. No curve is in it.
 *
 * Threads  as gpu.h.
 * Errors   those of a launch: gpu.h.
 */
#pragma once
#include "cuda/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif
/* Where the table has digit d of window w: level by level, so that each level is made by one list of additions.
 *
 *     0   ∞        level k: digits 2^k … 2^(k+1) - 1 of window 0, then of window 1, … */
struct gpu_fixed_table {
    unsigned window_bits, windows_count;
    uint32_t powers; /* 2^(c·w + k)·G, by w, then k, behind the table */
};
/* Pairs of level k: the digits below, and their window's power. */
FALLIBLE gpu_fixed_grow_pairs(uint32_t *list, const struct gpu_fixed_table *table, unsigned level,
                              struct gpu_stream *s);
/* Pairs of window w for each scalar (device): its sum so far, at sums + i, and the digit's multiple. Window 1 pairs with window 0. */
FALLIBLE gpu_fixed_digit_pairs(uint32_t *list, const struct gpu_fixed_table *table,
                               const void *scalars, uint32_t count, unsigned window, uint32_t sums,
                               struct gpu_stream *s);
/* Points from planes, x and y, to x, y one after the other, and back. */
FALLIBLE gpu_fixed_pack(void *out, const void *planes, size_t plane, uint32_t first, uint32_t count,
                        size_t coordinate_bytes, struct gpu_stream *s);
FALLIBLE gpu_fixed_unpack(void *planes, const void *points, size_t plane, uint32_t first,
                          uint32_t count, size_t coordinate_bytes, struct gpu_stream *s);

#ifdef __cplusplus
}
#endif
