/* Witness: the full assignment, canonical integers, entry 0 equal to one.
 *
 * From a .wtns file (mapped) or from memory (a decoded job). Every entry is checked to be below r once, at opening.
 *
 * Threads  const after opening.
 * Errors   E_FORMAT, E_RANGE, E_CURVE with file, section, entry and cure.
 * Secrets  values are never logged and never part of an error's detail; witness_close wipes what it owns.
 */
#pragma once
#include "node/base/file.h"
#include "node/curve/curve.h"
#include "node/key/key.h"
#include "node/key/mapping_guard.h"

struct witness {
    const struct curve *curve;
    uint64_t count;
    const uint8_t
        *values; /* lent from map or owner: count · 32 bytes, little-endian, any alignment */
    uint64_t
        brought; /* not 0: the backend has the values under this ticket, `values` holds the first of them alone */
    struct file_map map;        /* owned when opened from a file */
    struct mapping_guard guard; /* of map */
    uint8_t *owned;             /* owned when built in memory; NULL otherwise */
    size_t owned_bytes;
};

/* A .wtns file of version 2, every byte of it accounted for. On OK the caller owns *out, to witness_close. */
FALLIBLE witness_open(struct witness *out, const char *path);
/* Takes over `values` (mem_alloc'd, count·32 bytes) on OK only. `name` is for errors. */
FALLIBLE witness_from_values(struct witness *out, const struct curve *c, uint8_t *values,
                             uint64_t count, const char *name);
/* The same over values that stay the caller's. */
FALLIBLE witness_over_values(struct witness *out, const struct curve *c, const uint8_t *values,
                             uint64_t count, const char *name);
FALLIBLE witness_from_wtns_bytes(struct witness *out, struct bytes wtns,
                                 const char *name); /* bytes stay the caller's */
/* Curve equal, count equal: E_CURVE, E_RANGE with both numbers. */
FALLIBLE witness_fits(const struct witness *w, const struct key_shape *shape, const char *key_name);
/* Has the mapped file kept its bytes? As key_intact: ask after the last read of the values. */
FALLIBLE witness_intact(const struct witness *w);
/* A witness whose values go to the backend by other ways, which then sets its ticket: `first` holds value 0 and the public ones, and is
 * taken over on OK only. */
FALLIBLE witness_from_first(struct witness *out, const struct curve *c, uint8_t *first,
                            size_t first_count, uint64_t count, const char *name);
void witness_close(struct witness *w);
static inline void witness_get(struct scalar *out, const struct witness *w, uint64_t idx) {
    __builtin_memcpy(out, w->values + 32 * idx, 32);
}
