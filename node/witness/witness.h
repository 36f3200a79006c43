/* Witness: the full assignment, canonical integers, entry 0 equal to one; and, where they come with it, a = A·w and b = B·w.
 *
 * From a .wtns file or one of evaluations (mapped), or from memory (a decoded job). Every entry is checked to be below r once,
 * at opening. Whether a and b are what the assignment gives is not: the finished proof's own check says so.
 *
 * Threads  const after opening.
 * Errors   E_FORMAT, E_RANGE, E_CURVE with file, section, entry and cure; E_IO when the file changes while it is read.
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
    /* Lent likewise, rows_count · 32 bytes each; NULL: whoever proves evaluates the key's matrices. */
    const uint8_t *a, *b;
    uint64_t rows_count;
    uint64_t
        brought; /* not 0: the backend has the values under this ticket, `values` holds the first of them alone */
    struct guarded_map file; /* owned when opened from a file */
    uint8_t *owned;          /* owned when built in memory; NULL otherwise */
    size_t owned_bytes;
};

/* A .wtns file of version 2 or evaluations (proto/evaluations.h), every byte of it accounted for. On OK the caller owns *out, to
 * witness_close. */
FALLIBLE witness_open(struct witness *out, const char *path);
/* Takes over `values` (mem_alloc'd, count·32 bytes) on OK only. `name` is for errors. */
FALLIBLE witness_from_values(struct witness *out, const struct curve *c, uint8_t *values,
                             uint64_t count, const char *name);
/* The same over values that stay the caller's. */
FALLIBLE witness_over_values(struct witness *out, const struct curve *c, const uint8_t *values,
                             uint64_t count, const char *name);
/* Adds evaluations to a witness in memory: rows_count·32 bytes each, which stay the caller's. */
FALLIBLE witness_add_evaluations(struct witness *w, const uint8_t *a, const uint8_t *b,
                                 uint64_t rows_count, const char *name);
/* All values lie in `block` (mem_alloc'd), which the witness takes over. */
void witness_own(struct witness *w, uint8_t *block, size_t block_bytes);
FALLIBLE witness_from_wtns_bytes(struct witness *out, struct bytes wtns,
                                 const char *name); /* bytes stay the caller's */
FALLIBLE witness_from_evaluations_bytes(struct witness *out, struct bytes file,
                                        const char *name); /* likewise */
FALLIBLE witness_from_bytes(struct witness *out, struct bytes file,
                            const char *name); /* either, by what the bytes begin with */
/* Curve equal, count equal, and its evaluations as evaluations_fit says: E_CURVE, E_RANGE with both numbers. */
FALLIBLE witness_fits(const struct witness *w, const struct key_shape *shape, const char *key_name);
/* Evaluations of as many rows as make the key's domain, else E_RANGE with both numbers; E_USAGE for a key that does not know its circuit. */
FALLIBLE evaluations_fit(uint64_t rows_count, const struct key_shape *shape, const char *name,
                         const char *key_name);
/* Has the mapped file kept its bytes? As key_intact: ask after the last read of the values. */
FALLIBLE witness_intact(const struct witness *w);
/* A witness whose values go to the backend by other ways, which then sets its ticket: `first` holds value 0 and the public ones, and is
 * taken over on OK only. */
FALLIBLE witness_from_first(struct witness *out, const struct curve *c, uint8_t *first,
                            size_t first_count, uint64_t count, const char *name);
void witness_close(struct witness *w);
/* "witness", or "witness with its a and b": what may be at fault. */
const char *witness_title(const struct witness *w);
static inline void witness_get(struct scalar *out, const struct witness *w, uint64_t idx) {
    __builtin_memcpy(out, w->values + 32 * idx, 32);
}
