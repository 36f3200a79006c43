/* A key's matrices on their way to the device: terms in any order become rows, coefficients indices into a dictionary.
 *
 * Owner    the caller, who uploads them and frees them; host memory is what the layout announced as load_bytes.
 * Threads  one.
 * Errors   E_LIMIT for more different coefficients than the plan allows, E_RANGE for one that is not below r.
 */
#pragma once
#include "cuda/layout.h"

/* Distinct coefficients, found by their stored bytes. */
struct dictionary {
    struct scalar *stored; /* owned: as in the key */
    uint8_t *constants;    /* owned: as on the device */
    uint32_t *slots;       /* owned: index + 1 by hash, 0 free */
    size_t count, count_max, slots_mask;
    struct scalar unscale; /* 1 / R²: stored values are coefficients times R² */
    const struct curve *curve;
    const struct gpu_curve *gpu;
};
/* Begins with 1 and -1. *d is zeroed before; on any outcome the caller's to dictionary_done(). */
FALLIBLE dictionary_init(struct dictionary *d, const struct gpu_layout *layout,
                         const struct curve *c);
void dictionary_done(struct dictionary *d);

struct rows { /* one matrix; all owned */
    uint32_t *start, *columns, *coefficients, *long_rows, long_count;
};
/* *r is zeroed before; on any outcome the caller's to rows_done(). matrix: 0 is A, 1 is B. */
FALLIBLE rows_build(struct rows *r, struct dictionary *d, const struct key *key, uint32_t matrix);
void rows_done(struct rows *r);
