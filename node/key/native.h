/* Keys in our own layout: made once from a .zkey or from bellman parameters with their circuit, then mapped and used as they lie.
 *
 *     offset 0     header, 1024 bytes, its own SHA-256 at the end
 *     then         sections, each at a multiple of 4096, zero between them, in this order:
 *                  0        verifying part: alpha, beta, delta in G1; beta, gamma, delta in G2; IC
 *                  1 … 5    points A, B1, B2 (one per wire), L (one per private wire), H (one per row of the domain)
 *                  6        dictionary of coefficients, 32 bytes each, times R²
 *                  7, 8     of A, of B: where rows begin, 4 bytes each, rows + 1
 *                  9, 10    columns, 4 bytes a term
 *                  11, 12   indices into the dictionary, 4 bytes a term
 *                  13, 14   long rows, 4 bytes each
 *
 *     header       0    "BELLOWSK"               8    u32 version 1
 *                  12   u32 curve                16   u32 H basis (1 coset Lagrange, 2 powers)
 *                  20   u32 1: H stands in bit-reversed order, else 0
 *                  24   u32 wires                28   u32 public signals
 *                  32   u32 log2 of the domain   36   u32 zero
 *                  40   u64 terms of A, B        56   u64 entries of the dictionary
 *                  64   u64 long rows of A, B    80   u64 bytes of the file
 *                  88   SHA-256 that says what it was made from: key_source
 *                  120  15 × u64 XXH64, seed 0, of the sections
 *                  240  zero up to 992           992  SHA-256 of the 992 bytes before
 *
 * Points are as in a .zkey: affine, Montgomery, little-endian, infinity all zero. A wire without a point (bellman leaves them out) has
 * infinity. H in powers stands in the order in which a device's quotient leaves its scalars, bit-reversed, the last power's place
 * being infinity. All places follow from the counts; nothing in the file says where anything is.
 *
 * A file that this machine has not seen is read whole once: checksums, ranges of all indices. That it was is remembered by the
 * file's identity, and from then on opening reads the header and the verifying part alone.
 *
 * Threads  any; a file is const once written.
 * Errors   E_FORMAT, E_RANGE, E_CURVE, E_LIMIT with file, section and cure.
 */
#pragma once
#include "node/key/parts.h"
#include "node/key/rows.h"

enum { NATIVE_VERSION = 1, NATIVE_SECTIONS = 15, NATIVE_HEADER_BYTES = 1024, NATIVE_ALIGN = 4096 };

/* --- Making --- */

/* What places depend on. shape: curve, h_basis, h_reversed, wires, publics, domain and terms_count are taken from it. */
struct native_counts {
    const struct curve *curve;
    struct key_shape shape;
    uint64_t dictionary_count, long_count[2]; /* ROWS_DICTIONARY_MAX and the terms bound them */
};
size_t native_bytes(const struct native_counts *counts);
/* A key that is being made: the caller's memory (a file's, by file_out_map, or plain), seen as its sections. They are filled in any
 * order, by any thread; then the vkey goes in and the header with all sums, and the bytes are a native key. */
struct native_image {
    struct native_counts counts;
    struct bytes_mut file;                     /* lent: native_bytes, zero at first */
    struct bytes_mut points[KEY_POINTS_COUNT]; /* one a wire, private wire, row of the domain */
    struct scalar *dictionary;                 /* times R²; +1 and -1 first */
    uint32_t *start[2], *columns[2], *coefficients[2], *long_rows[2];
};
void native_image_init(struct native_image *out, const struct native_counts *counts,
                       struct bytes_mut file);
/* `digest`: what it was made from, as key_source says it afterwards; NULL: a key that was made from no file, for which SHA-256 of the
 * header without that field stands. */
FALLIBLE native_image_seal(struct native_image *image, const struct vkey *vkey,
                           const struct sha256 *digest, struct pool *pool);

/* Writes `key`, a .zkey, natively to `path`. */
FALLIBLE native_write(const char *path, struct key *key);
/* Makes checksums and seal right again after bytes of a file were changed: for tests and fuzzers. E_FORMAT when its counts place
 * sections elsewhere than the file has bytes. */
FALLIBLE native_seal(struct bytes_mut file);
/* What a native key says it was made from: a .zkey's digest, or what import.h makes of two. Of other keys: their own digest. */
FALLIBLE key_source(struct sha256 *out, struct key *key);
/* E_USAGE with the cure for bellman parameters, which tell nothing of their circuit and so prove nothing. */
FALLIBLE key_knows_circuit(const struct key *key);
/* `trusted`: this very file was read whole before. */
FALLIBLE native_parse(struct key_parts *out, struct bytes file, const char *name, bool trusted);
