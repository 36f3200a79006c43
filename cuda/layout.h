/* Where everything of a key and of a job lies in device and pinned memory: the plan, and the only place that decides it.
 *
 * A pure function of the key's shape, the device and the memory allowed. The backend carves two blocks of device memory
 * by it, one for the key and one for a job's slot; `bellows plan` prints its sums.
 *
 * Threads  values.
 * Errors   E_LIMIT when even the smallest workspace does not fit, with what is needed and what is allowed; E_RANGE for a
 *          key that no layout holds.
 */
#pragma once
#include "node/groth16/backend.h"

#include "cuda/table.h"

enum {
    LAYOUT_DICTIONARY_MAX = 1 << 20, /* distinct coefficients of a key */
    LAYOUT_PARTS_MAX = 1024,
    LAYOUT_RING_PIECE = 8 << 20, /* bytes of a streamed key on their way */
    LAYOUT_RING_PIECES = 2,
    LAYOUT_STAGED_MAX = 128 << 20 /* of a witness that lies in ordinary memory, at a time */
};

struct gpu_piece {
    size_t at, bytes; /* within its block */
};
struct gpu_layout {
    const struct gpu_curve *gpu;
    /* Scalars are taken in ranges, each an MSM of its own; 1: all at once. H comes first then, and the witness's pairs lie
     * over its scalars. */
    uint32_t parts_count, h_parts_count, witness_part, h_part; /* and scalars in a range */
    struct gpu_msm_shape witness_msm, h_msm;                   /* of a range */
    unsigned g1_lanes;               /* in G1: as many as fit the memory of G2's */
    bool lean;                       /* twiddles */
    bool multiples;                  /* behind the points */
    bool streamed[KEY_POINTS_COUNT]; /* points stay in the file and come range by range */
    /* the key's block */
    struct gpu_piece points
        [KEY_POINTS_COUNT]; /* wires_count each (domain_size for H): absent ones are infinity */
    struct gpu_piece row_start[2], columns[2], coefficients[2], long_rows[2], dictionary, domain;
    size_t dictionary_max, key_bytes;
    /* a slot's block */
    struct gpu_piece witness, a, b, h, pairs, h_pairs, lanes, turns[GPU_TURNS], tails, tiles[2],
        incoming[2];
    struct gpu_piece inbox, tables; /* of the next job: see inbox.h */
    size_t slot_bytes, wiped_bytes; /* the first of them say something of the witness */
    /* a slot's pinned block */
    struct gpu_piece staged, ring, inbox_tables, counts[2], results[KEY_POINTS_COUNT];
    size_t pinned_bytes;
    size_t table_bytes; /* device memory while the multiples are made, at most slot_bytes */
    size_t load_bytes;  /* host heap while a key is loaded, given back afterwards */
};
const struct gpu_curve *gpu_curve_of(enum curve_id id);
enum point_group gpu_group_id(enum key_points which); /* GROUP_G2 for KEY_B2 */
/* One proof with a dense witness, from what was measured on an H200, scaled by the number of SMs. */
uint64_t gpu_layout_expected_ns(const struct gpu_layout *l, const struct key_shape *shape,
                                unsigned sm_count);
/* memory_bytes: of the device, for key and slot together. `tables`: with multiples of the points, where there is room for them. */
FALLIBLE gpu_layout_of(struct gpu_layout *out, const struct key_shape *shape, unsigned sm_count,
                       uint64_t memory_bytes, bool tables);
/* The same as the setting says: multiples never, always where they fit, or by the rule of enum key_tables, for which room_bytes is what
 * other keys have left of memory_bytes. */
FALLIBLE gpu_layout_choose(struct gpu_layout *out, const struct key_shape *shape, unsigned sm_count,
                           uint64_t memory_bytes, enum key_tables tables, uint64_t room_bytes);
/* A section's points and their copies: one where there are no tables. */
struct gpu_table_shape gpu_layout_table(const struct gpu_layout *l, const struct key_shape *shape,
                                        enum key_points which);
