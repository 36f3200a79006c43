/* PACKED scalars as this program writes and reads them. The format is drawn in packed.h.
 *
 * Writing: survey (one pass, says what it will take and whether that pays), then encode. Reading: codec_open reads head and
 * directory, which say where everything is; then blocks are checked and expanded, on a pool or one by one, on the
 * processor or, by the same table of places, on a device.
 *
 * Threads  a survey or a map is const once made; blocks are decoded by any thread.
 * Errors   E_FORMAT, E_RANGE for bytes that are no sound section, with the block and what is wrong; E_LIMIT when memory is out.
 * Secrets  what is decoded is a witness: its owner wipes it. No value is ever part of an error.
 */
#pragma once
#include "node/base/bytes.h"
#include "node/base/pool.h"
#include "proto/packed.h"

static const uint64_t CODEC_VALUES_MAX = UINT64_C(1) << 32;

/* --- Writing --- */

struct codec_survey {
    uint64_t values_count, bytes;
    struct packed_block *blocks; /* owned */
    bool pays;                   /* at most 7/8 of the plain bytes */
};
/* `values` are plain scalars below r. pool may be NULL. */
FALLIBLE codec_survey_open(struct codec_survey *out, struct bytes values, const uint64_t r[4],
                           struct pool *pool);
void codec_survey_close(struct codec_survey *s);
/* out: survey->bytes long; values as surveyed. */
FALLIBLE codec_encode(struct bytes_mut out, const struct codec_survey *survey, struct bytes values,
                      const uint64_t r[4], struct pool *pool);

/* --- Reading --- */

/* Bounds of a section of so many values: what a descriptor may claim before a byte of it is there. */
uint64_t codec_bytes_least(uint64_t values_count);
uint64_t codec_bytes_most(uint64_t values_count);

/* Where a block's parts lie, from the section's start; as the device's expansion takes it. */
struct codec_block {
    uint64_t classes, small, full;
    uint32_t width, scalars_count;
};
struct codec_map {
    struct bytes section; /* lent */
    uint64_t values_count, blocks_count;
    struct codec_block *blocks; /* owned */
};
/* Head and directory against the section's length and `values_count`, which the descriptor stated. */
FALLIBLE codec_open(struct codec_map *out, struct bytes section, uint64_t values_count);
void codec_close(struct codec_map *map);
/* Is the block what the directory says, are its full values below r and its fillings zero? Must be asked of each block
 * before it is expanded by anybody. */
FALLIBLE codec_check_block(const struct codec_map *map, uint64_t block_idx, const uint64_t r[4]);
/* Checks and expands: out is the block's place, 32 bytes a scalar. */
FALLIBLE codec_decode_block(uint8_t *out, const struct codec_map *map, uint64_t block_idx,
                            const uint64_t r[4]);
/* The whole: out has values_count · 32 bytes. On an error its content is undefined. pool may be NULL. */
FALLIBLE codec_decode(struct bytes_mut out, struct bytes section, uint64_t values_count,
                      const uint64_t r[4], struct pool *pool);

/* --- A vector as it came --- */

/* Plain scalars, or a packed section with its map; whoever reads it looks at `packed`. */
struct scalars {
    uint64_t count;
    struct bytes bytes; /* lent: 32 bytes a scalar, or the section */
    bool packed;
    struct codec_map map; /* owned; of a packed one */
};
/* Head and directory of a packed one are checked; nothing else yet. */
FALLIBLE scalars_open(struct scalars *out, struct bytes bytes, uint64_t count, bool packed);
void scalars_close(struct scalars *s);
/* The first `count` of them, plain: out has 32 bytes each. The blocks they stand in are checked; plain ones are not. */
FALLIBLE scalars_first(uint8_t *out, const struct scalars *s, uint64_t count, const uint64_t r[4]);
