/* Proving key: a mapped file whose every count and place has been checked.
 *
 * Opening reads the section table and headers only; the bulk (points, coefficients) stays in the mapping until a
 * backend loads it. The cheap checks are all made at opening: table against file size, sizes against header counts,
 * curve, domain, matrix selectors, rows and wires in range (one pass over the coefficients). Points on curve and in
 * subgroup cost minutes on large keys: key_check does it, once per digest; opening looks at the header's points, the IC
 * and a few points of each section (curve only), which is enough to notice a wrong or half-fetched file.
 * An unfinished key, one without section 10, opens: see key_contributions. A key in our own layout is read whole instead, once for as long
 * as its file stays the same (native.h).
 *
 * Owner    whoever opened it; counted.
 * Threads  const after opening; ref and unref from any thread.
 * Errors   E_FORMAT, E_RANGE, E_CURVE, E_LIMIT, each with file, section, what was found, what was expected, and cure.
 * Source   snarkjs 0.7.6 zkey; bellman groth16 Parameters; native.h.
 */
#pragma once
#include "node/base/file.h"
#include "node/base/hash.h"
#include "node/base/pool.h"
#include "node/key/basis.h"
#include "node/key/prepared.h"
#include "node/key/vkey.h"

enum key_format { KEY_FORMAT_ZKEY = 1, KEY_FORMAT_BELLMAN = 2, KEY_FORMAT_NATIVE = 3 };
enum key_points { KEY_A, KEY_B1, KEY_B2, KEY_L, KEY_H, KEY_POINTS_COUNT };

/* What `plan` and the coordinator need to know of a key. */
struct key_shape {
    enum curve_id curve;
    enum key_format format;
    enum h_basis h_basis;
    uint32_t wires_count;  /* with wire 0 = one */
    uint32_t public_count; /* without it */
    uint64_t domain_size;  /* power of two */
    unsigned domain_log2;
    uint64_t terms_count[2]; /* non-zeros of A and of B; 0, 0 when the key holds no matrices */
    uint64_t points_count[KEY_POINTS_COUNT]; /* points stored, per section */
    uint64_t file_bytes;
    bool h_reversed; /* H points stand in bit-reversed order of their rows */
};

/* Where row i of a domain of 2^log2 stands in bit-reversed order, and the other way round. */
uint64_t key_h_place(uint64_t i, unsigned log2);

struct key_options {
    bool allow_insecure; /* else gamma = delta is refused with E_RANGE and the option's name */
};

struct key; /* opaque */

/* Format by content: .zkey, bellman .params or our own layout (native.h). */
FALLIBLE key_open(struct key **out, const char *path, struct key_options options);
/* A native key that this process made, in memory that is lent for the key's life: believed as it is. `name` is for errors. */
FALLIBLE key_from_memory(struct key **out, struct bytes native, const char *name,
                         struct key_options options);
struct key *key_ref(struct key *key);
void key_unref(struct key **key);

/* Has the mapped file kept its bytes? Ask after reading points or terms in bulk: pages that vanished because the file
 * was truncated read as zeros, and this is then E_IO. */
FALLIBLE key_intact(const struct key *key);
/* The file of a key that came through a pipe and cannot be opened a second time; nothing for the others. Lent. */
struct bytes key_streamed(const struct key *key);

const char *key_path(const struct key *key);
const struct curve *key_curve(const struct key *key);
const struct key_shape *key_shape(const struct key *key);
const struct vkey *key_vkey(const struct key *key);
/* For who makes many proofs under the key; before any other thread has it. */
FALLIBLE key_prepare(struct key *key);
const struct prepared *key_prepared(const struct key *key); /* NULL: not asked for; lent */
/* points_count[which] packed points, zkey layout (Montgomery little-endian, any alignment); lent from the key.
 * For bellman keys the file's bytes are big-endian uncompressed: key_points_raw says so with *zkey_layout = false. */
struct bytes key_points_raw(bool *zkey_layout, const struct key *key, enum key_points which);

/* One non-zero of A (matrix 0) or B (matrix 1). The value is the coefficient times R², so that one Montgomery product
 * with a plain scalar gives the product in Montgomery form. */
enum { KEY_TERM_BYTES = 44 };
struct key_term {
    uint32_t matrix, row, wire;
    struct scalar value_r2;
};
struct bytes key_terms_raw(
    const struct key *key); /* (terms_count[0] + terms_count[1]) · KEY_TERM_BYTES, file order */
/* The matrices of a native key, ready to multiply with, and its dictionary of coefficients times R²; NULL and empty for others,
 * whose terms are those above. */
struct rows;
const struct rows *key_rows(const struct key *key, unsigned matrix);
struct bytes key_dictionary(const struct key *key);
struct key_term key_term_at(struct bytes terms, size_t idx);

/* SHA-256 of the whole file, a key's name in the fleet; computed once per file identity (device, inode, size, mtime, ctime) and remembered on
 * disk below the cache folder (remembered.h). */
FALLIBLE key_digest(struct sha256 *out, struct key *key);

struct key_report { /* of key_check */
    uint64_t points_checked, infinities_count[KEY_POINTS_COUNT];
    uint64_t elapsed_ns;
    bool remembered; /* an earlier check of this digest was trusted */
};
/* Every point canonical, on its curve, in its subgroup; beta and delta the same in G1 and G2. `pool` and `progress` may
 * be NULL; progress (0 to 1) is called on the calling thread. Remembered by digest below the same cache folder; where that
 * cannot be written the check works and is made again next time. */
FALLIBLE key_check(struct key_report *out, struct key *key, struct pool *pool,
                   void (*progress)(void *ctx, double done), void *progress_ctx);

/* Contribution list of a .zkey's section 10, for `key inspect`: missing is fine for proving. */
struct key_contributions {
    bool present;
    uint32_t count;
};
struct key_contributions key_contributions(const struct key *key);
struct key_section_view {
    uint32_t id;
    uint64_t offset, bytes;
};
/* Of a bellman key, which has no section numbers: 1 the six points, 2 ic, 3 h, 4 l, 5 a, 6 b_g1, 7 b_g2. */
size_t key_sections(struct key_section_view *out, size_t out_max,
                    const struct key *key); /* returns how many there are, also beyond out_max */
