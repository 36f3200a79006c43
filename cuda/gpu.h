/* The GPU as the host sees it: memory, streams, and the operations of a proof as C functions.
 *
 * The only header of cuda/ that a C file includes. No CUDA type crosses it: streams and events are opaque, device
 * pointers are plain pointers that the host never follows. Three layers, each usable alone:
 *
 *   runtime     device, memory, streams, events, copies              gpu.cu, mem.cu
 *   operations  one struct of functions per curve                    expand, matrix, ntt, quotient, msm
 *   backend     node/groth16/backend.h over the two above            backend.c
 *
 * An operation takes an explicit stream, allocates nothing and waits for nothing; its workspace is asked for first and
 * passed in. Only functions named _wait wait.
 *
 * Layout   Points and scalars as in node/curve/curve.h: what a .zkey stores is what the device reads. A vector of Fr is
 *          32 bytes an element, any 256-bit representative of its residue class inside a computation, canonical where
 *          said so.
 * Threads  any; one at a time on a stream. gpu_open is for the thread that calls it: others reach the first visible device.
 * Errors   E_DEVICE (no usable device; a call refused), E_DEVICE_LOST (the context is gone: end the process), E_LIMIT
 *          (device memory), each with the call, what the driver said and the cure. A launch reports bad launches at
 *          once, faults inside kernels at a later call.
 */
#pragma once
#ifdef __cplusplus
#define _Noreturn [[noreturn]]
extern "C" {
#endif
#include "node/base/err.h"

/* --- device --- */
enum { GPU_NAME_BYTES = 64, GPU_UUID_BYTES = 48 };
struct gpu_device {
    int idx;
    char name[GPU_NAME_BYTES];
    char uuid[GPU_UUID_BYTES]; /* "GPU-8a6f…", as nvidia-smi prints it */
    unsigned sm_count, compute_major, compute_minor;
    uint64_t memory_bytes, l2_bytes;
    unsigned driver_version, runtime_version; /* 13000 = 13.0 */
};
FALLIBLE gpu_count(int *out); /* E_DEVICE says why there is none and what to do */
FALLIBLE gpu_describe(struct gpu_device *out, int idx);
/* Makes the device the process's own. `which`: an index, a UUID or a unique start of one; NULL is the first. */
FALLIBLE gpu_open(struct gpu_device *out, const char *which);
FALLIBLE
gpu_memory_free(uint64_t *bytes); /* what this process keeps and lends nobody is free, too */

/* --- memory: a block for each key and slot, never on a job's path; mem.cu says why the process keeps what it gives back --- */
FALLIBLE gpu_mem_open(void **out,
                      size_t bytes); /* aligned to 256 bytes, not zeroed; of none is NULL */
void gpu_mem_close(void **ptr); /* *ptr may be NULL, becomes NULL; waits for all of the device */
/* Page-locked host memory; ordinary pages touched and then registered, which is ten times faster than asking the driver
 * to allocate. `bytes` must be the same at closing. */
FALLIBLE gpu_pinned_open(void **out, size_t bytes);
void gpu_pinned_close(void **ptr, size_t bytes);
bool gpu_pinned_is(const void *host); /* the copy engines read it directly */

/* --- streams and events --- */
struct gpu_stream;
struct gpu_event;
FALLIBLE gpu_stream_open(struct gpu_stream **out);
void gpu_stream_close(struct gpu_stream **s);
FALLIBLE gpu_stream_wait(struct gpu_stream *s); /* the host waits */
FALLIBLE gpu_event_open(struct gpu_event **out);
void gpu_event_close(struct gpu_event **e);
FALLIBLE gpu_event_record(struct gpu_event *e, struct gpu_stream *s);
FALLIBLE gpu_event_wait(struct gpu_event *e);                         /* the host waits */
FALLIBLE gpu_stream_after(struct gpu_stream *s, struct gpu_event *e); /* the stream waits */
FALLIBLE gpu_event_ns(uint64_t *out, struct gpu_event *from, struct gpu_event *to);
/* Host memory is pinned_*'s: from ordinary memory the copy is slow and the call may wait. */
FALLIBLE gpu_upload(void *device, const void *host, size_t bytes, struct gpu_stream *s);
FALLIBLE gpu_download(void *host, const void *device, size_t bytes, struct gpu_stream *s);
FALLIBLE gpu_copy(void *device, const void *source, size_t bytes, struct gpu_stream *s);
FALLIBLE gpu_fill(void *device, int byte, size_t bytes, struct gpu_stream *s);

/* --- expansion of packed scalars --- */
enum { GPU_PACKED_BLOCK = 1 << 16 }; /* scalars in a block */
/* Where a block's parts lie, as byte offsets into the packed bytes; all aligned to 16. A class is 2 bits, 16 a word, low
 * bits first: 0, 1, small (signed, `width` bytes), full (32 bytes). A short last block's classes are padded with 0. */
struct gpu_packed_block {
    uint64_t classes, small, full;
    uint32_t width, scalars_count;
};

/* --- sparse matrix: rows of (column, coefficient), coefficients through a dictionary --- */
enum {
    GPU_COEFFICIENT_ONE = 0,
    GPU_COEFFICIENT_MINUS_ONE = 1,
    GPU_ROW_LONG = 16,
    GPU_CONSTANT_BYTES = 64
};
struct gpu_matrix {            /* all pointers into device memory, lent */
    const uint32_t *row_start; /* rows_count + 1 */
    const uint32_t *columns;
    const uint32_t
        *coefficients;      /* indices into the dictionary; entries 0 and 1 of it are +1 and -1 */
    const void *dictionary; /* GPU_CONSTANT_BYTES an entry, by `constant` below */
    const uint32_t *long_rows; /* rows of more than GPU_ROW_LONG terms, a block each */
    uint32_t rows_count, long_count;
};

/* --- transforms --- */
struct gpu_domain { /* a plain value; tables in device memory that the caller keeps */
    unsigned log2;
    bool powers; /* H in powers of tau, else in the coset's Lagrange basis */
    bool lean;   /* tables of a few MB, and roots made of two factors in one pass each way */
    const void *nr_table;        /* 2^log2 / 2 constants; lean: as many as the other passes read */
    const void *rn_table;        /* 2^log2 constants; lean: likewise */
    const void *rn_last;         /* lean: of the last pass */
    const void *down[2], *up[2]; /* lean: root^e = high[e >> log2 / 2] · low[e's low bits] */
    const void *scale_high;      /* powers: output scale of place j = j1 2^h + j2 */
    const void *scale_low;
    uint32_t k1[16], k2[16]; /* constants of the last pass */
};
struct gpu_domain_options {
    unsigned log2;
    bool powers, lean;
    uint64_t root[4];  /* generator of the domain, canonical */
    uint64_t shift[4]; /* g of the coset g·H, canonical */
};

/* --- multi-scalar multiplication --- */
enum { GPU_LANES_MAX = 4, GPU_CHUNKS_MAX = 1024, GPU_MSM_WINDOW_MIN = 4, GPU_MSM_WINDOW_MAX = 24 };
struct gpu_msm_shape {
    uint32_t scalars_count;
    unsigned scalar_bits; /* of r */
    unsigned window_bits; /* c: signed digits of c bits */
    unsigned chunk_log2;  /* (bucket, point) pairs worked on at once, in each lane */
    unsigned lanes_count; /* chunks in flight, 2 … GPU_LANES_MAX */
    bool overlap;         /* buckets of one MSM are reduced while the next one fills others */
    bool shared;          /* several MSMs over the same pairs: what pairs with what is kept */
    /* The points are a table: behind all of them all times 2^c, then times 2^2c …, a copy for each window. All windows then fill
     * one set of buckets. */
    bool table;
    unsigned sm_count;
    unsigned
        sift_rounds; /* of the first rounds so many add only pairs that take an addition; where pairs are shared */
};
/* Sizes that follow from a shape. */
struct gpu_msm_sizes {
    unsigned windows_count, sets_count; /* sets of buckets: one a window, or one for all */
    uint32_t buckets_count;             /* of all sets */
    uint64_t pairs_max;                 /* scalars × windows */
    uint32_t chunks_max;
    unsigned row_bits, column_bits; /* a bucket's index in its set = row ‖ column */
    uint32_t results_count; /* XYZZ points that come back: (row_bits + column_bits + 1) · sets */
    uint32_t results_max;   /* whatever the window, unless the points are a table */
    uint32_t ones_max, ones_batches_max; /* scalars that are 1, summed at once; such sums */
};
/* What the host learns of the sorted pairs, read back once: grid sizes of everything that follows. */
struct gpu_pair_counts {
    /* By gpu_pairs_count; windows up to the last that holds a digit. The rest by gpu_pairs_run. */
    uint32_t pairs_count, ones_count, windows_used, unused;
    struct {
        uint32_t first_key, last_key,
            continues;      /* continues: begins inside a bucket of the chunk before */
        uint32_t round[33]; /* elements before round r, and at the end the runs */
    } chunk[GPU_CHUNKS_MAX];
};
/* The sorted pairs of one vector of scalars; several MSMs over the same scalars share them. Digits that are zero make no
 * pair, and scalars that are 1 are a list of their own: time follows what is left. */
struct gpu_pairs {
    struct gpu_msm_shape shape;
    struct gpu_msm_sizes sizes, room; /* room: of the shape that memory was planned for */
    uint64_t r[4];
    const void *scalars;     /* device, lent */
    uint64_t *tiles;         /* device: pairs and ones before each tile of scalars */
    void *workspace;         /* device, lent */
    uint32_t *keys, *points; /* device: set ‖ |digit|-1, and index | sign bit */
    uint32_t *ones;          /* device: references */
    uint32_t *run_start,
        *run_end; /* device: a run is one bucket inside one chunk; id = key + chunk */
    struct gpu_pair_counts *host; /* pinned; valid after the events recorded behind the two calls */
    /* Device, when shared: the lists of every chunk and round, and what is left of the runs, by run id. */
    uint32_t *lists, *last_keys, *last_refs;
    bool lists_made, lists_there; /* by the last MSM, by one before it */
    unsigned wide_bits;           /* the planned window, once another was thought of */
    uint64_t wide_work;           /* its additions */
    bool settled;                 /* the window is chosen */
};
/* Sets up to the last that holds a digit: all buckets behind it are empty. 0: all scalars were zero. */
static inline unsigned gpu_pairs_sets(const struct gpu_pairs *p) {
    uint32_t count = p->host->pairs_count;
    return count ? (p->host->chunk[(count - 1) >> p->shape.chunk_log2].last_key >>
                    (p->shape.window_bits - 1)) +
                       1
                 : 0;
}
/* Sums of ones in batches of ones_max, each GPU_ONES_SUMS points of the result. */
enum { GPU_ONES_SUMS = 64 };
static inline uint32_t gpu_ones_batches(const struct gpu_pairs *p) {
    return (p->host->ones_count + p->sizes.ones_max - 1) / p->sizes.ones_max;
}
enum { GPU_TURNS = 2 };
struct gpu_msm_streams {
    struct gpu_stream *main, *lane[GPU_LANES_MAX], *tail[2], *clear;
    struct gpu_event *fork, *join[GPU_LANES_MAX], *joined;
    struct gpu_event *cleared[GPU_TURNS]; /* that turn's buckets are empty */
    struct gpu_event *reduced[GPU_TURNS]; /* the result of the last MSM of that turn is there */
    size_t lane_bytes;                    /* of the last MSM's lanes */
    unsigned next_lane;
};
FALLIBLE gpu_msm_streams_open(struct gpu_msm_streams *out); /* zeroed before; half-open on error */
void gpu_msm_streams_close(struct gpu_msm_streams *s);
/* Main goes on when no MSM reads points or pairs any longer. */
FALLIBLE gpu_msm_join(const struct gpu_msm_streams *s);
/* The host waits for everything. */
FALLIBLE gpu_msm_wait(const struct gpu_msm_streams *s);
/* Pairs of points that are added: listed, or (p, p + 2^log2) in groups. */
struct gpu_pairing {
    const uint32_t *list; /* 2 references a pair; NULL: regular */
    uint32_t base;        /* regular: reference of the first */
    unsigned half_log2;
    const void *points; /* interleaved x, y: what references with the point bit name */
    void *sums;         /* x plane, then the y plane `plane` elements on */
    size_t plane;
};
enum { GPU_BATCH_PAIRS_MAX = 16 }; /* of a thread with one inversion; 8 to 64 are within 2 % */
struct gpu_batch {                 /* prefix products and inverses of one round */
    void *prefixes, *products, *inverse_prefixes;
    size_t prefixes_plane, products_plane; /* elements: planes of 16-byte words */
    /* Device: the pairs to be added, of those of a round, and behind them how many (by `sift`); NULL: all are. */
    uint32_t *sifted, *sifted_count;
    uint32_t
        full_threads; /* fill the device: fewer pairs than that for each of them means fewer a thread */
};
struct gpu_bit_lists { /* input of the last step: row and column sums of every set */
    uint32_t sets_count;
    const void *rows, *columns; /* x planes */
    size_t rows_plane, columns_plane;
    unsigned row_bits, column_bits;
    uint32_t rows_count, columns_count; /* per set */
};
struct gpu_group { /* one curve, one group; sizes in bytes */
    size_t coordinate_bytes, result_bytes;
    /* Lists the pairs that take an addition; the results of all others are written. */
    FALLIBLE(*sift)
    (const struct gpu_pairing *pairs, const struct gpu_batch *batch, uint32_t pairs_count,
     uint32_t out_base, struct gpu_stream *s);
    FALLIBLE(*prefix)
    (const struct gpu_pairing *pairs, const struct gpu_batch *batch, uint32_t pairs_count,
     unsigned per_thread, uint32_t out_base, struct gpu_stream *s);
    FALLIBLE(*invert)
    (const struct gpu_batch *batch, uint32_t count, uint32_t threads, struct gpu_stream *s);
    FALLIBLE(*add)
    (const struct gpu_pairing *pairs, const struct gpu_batch *batch, uint32_t pairs_count,
     unsigned per_thread, uint32_t out_base, struct gpu_stream *s);
    FALLIBLE(*scatter)
    (void *buckets, void *extra, const struct gpu_pairing *source, const uint32_t *keys,
     uint32_t key_add, const uint32_t *refs, uint32_t refs_or, uint32_t count, uint32_t chunk,
     bool continues, struct gpu_stream *s);
    FALLIBLE (*bit_sums)(void *results, const struct gpu_bit_lists *lists, struct gpu_stream *s);
    /* Host: from what was read back to the affine sum, in the layout of struct g1, g2. */
    void (*finish)(uint64_t *out, const void *results, const void *extra,
                   const struct gpu_pairs *pairs);
};

enum gpu_product { GPU_PRODUCT_FP, GPU_PRODUCT_FP_SQUARE, GPU_PRODUCT_FR /* by a constant */ };
enum { GPU_RATE_THREADS = 256, GPU_RATE_BYTES = 48 /* at most, of an element */ };
/* One curve's operations on the device. */
struct gpu_curve {
    unsigned scalar_bits, two_adicity;
    uint64_t r[4];
    /* For rates: blocks · GPU_RATE_THREADS elements, canonical, each multiplied `rounds` times. */
    FALLIBLE(*products)
    (void *values, enum gpu_product which, uint32_t blocks, uint32_t rounds, struct gpu_stream *s);
    /* Packed bytes to canonical scalars. */
    FALLIBLE(*expand)
    (void *out, const struct gpu_packed_block *blocks, const void *data, uint32_t blocks_count,
     struct gpu_stream *s);
    /* out = M·w, canonical; w canonical. */
    FALLIBLE(*matrix_times)
    (void *out, const struct gpu_matrix *m, const void *w, struct gpu_stream *s);
    /* Host: a coefficient as the device wants it, (value, floor(value · 2^256 / r)). */
    void (*constant)(void *out, const uint64_t value[4]);
    /* Tables of a domain: `memory` of domain_bytes on the device, the caller's as long as *out is used. 96 bytes an element,
     * or lean: 7 MB at 2^24, quotients 13 % (BN254 19 %) slower. */
    size_t (*domain_bytes)(unsigned log2, bool powers, bool lean);
    FALLIBLE(*domain_build)
    (struct gpu_domain *out, const struct gpu_domain_options *options, void *memory,
     struct gpu_stream *s);
    /* Evaluations on the domain, natural order, to n times the coefficients, bit-reversed. May be in place. */
    FALLIBLE(*ntt_inverse)
    (void *out, const void *in, const struct gpu_domain *d, struct gpu_stream *s);
    /* Bit-reversed coefficients to evaluations on the coset, natural order. May be in place. */
    FALLIBLE(*ntt_coset)
    (void *out, const void *in, const struct gpu_domain *d, struct gpu_stream *s);
    /* h receives the scalars of H, canonical, from the evaluations a and b (canonical, natural order), which are
     * overwritten. Natural order for the coset form, bit-reversed for powers. */
    FALLIBLE(*quotient)
    (void *h, void *a, void *b, const struct gpu_domain *d, struct gpu_stream *s);
    const struct gpu_group *g1, *g2;
};
extern const struct gpu_curve bn254_gpu, bls12_381_gpu;

/* --- pairs.c, msm.c: the plan of an MSM over the kernels above; E_RANGE for a shape that is not one --- */
FALLIBLE gpu_msm_sizes_of(struct gpu_msm_sizes *out, const struct gpu_msm_shape *shape);
/* Window width of least work for so many scalars. */
unsigned gpu_msm_window(uint32_t scalars_count, unsigned scalar_bits, bool table);
size_t gpu_pairs_bytes(const struct gpu_msm_shape *shape);
size_t gpu_tiles_bytes(const struct gpu_msm_shape *shape);
/* Counts the digits of `scalars` (canonical, device) into `tiles` (device) and `host` (pinned). Record an event behind it,
 * and wait for that event before gpu_pairs_run. */
FALLIBLE gpu_pairs_count(struct gpu_pairs *out, const struct gpu_msm_shape *shape,
                         const uint64_t r[4], const void *scalars, void *tiles,
                         struct gpu_pair_counts *host, struct gpu_stream *s);
/* Behind that event: where few scalars are large there is less to add in a narrower window than the planned one. *again: digits are
 * counted anew, so record an event once more, wait, and call this again. */
FALLIBLE gpu_pairs_narrow(bool *again, struct gpu_pairs *p, struct gpu_stream *s);
/* The digits sorted by bucket. Record an event behind it, and wait for that event before gpu_msm_run. Uses `workspace` as
 * long as the pairs are used. */
FALLIBLE gpu_pairs_run(struct gpu_pairs *p, void *workspace, struct gpu_stream *s);
/* Workspace of an MSM. With overlap the reduction of one MSM (its turn's memory and the tails) goes on while the next, perhaps
 * of another shape, uses lanes and the other turn: so these are blocks of their own. */
struct gpu_msm_bytes {
    size_t lanes, turn, tails; /* tails: 0 without overlap, when both turns may be one block, too */
};
struct gpu_msm_memory {
    void *lanes, *turn[GPU_TURNS], *tails;
};
struct gpu_msm_bytes gpu_msm_bytes(const struct gpu_msm_shape *shape,
                                   const struct gpu_group *group);
size_t gpu_msm_result_bytes(const struct gpu_msm_shape *shape,
                            const struct gpu_group *group); /* pinned */
/* Sum of the pairs' points, left in `result` (pinned) for gpu_msm_finish once streams->reduced[turn] has come. Turns
 * alternate. It begins when `ready` has come, NULL: when main has come so far, and main does not wait for it: gpu_msm_join
 * before points or pairs are written. */
FALLIBLE gpu_msm_run(struct gpu_pairs *pairs, const struct gpu_group *group, const void *points,
                     const struct gpu_msm_memory *memory, void *result, unsigned turn,
                     struct gpu_event *ready, struct gpu_msm_streams *streams);
void gpu_msm_finish(uint64_t *out, const struct gpu_pairs *pairs, const struct gpu_group *group,
                    const void *result); /* host arithmetic, about half a millisecond */

/* --- curve-free kernels: msm_digits.cu, msm_sort.cu --- */
struct gpu_digits {
    uint32_t r[8], half[8]; /* r, and floor(r / 2) */
    uint32_t scalars_count, windows_count;
    uint32_t window_keys, window_points; /* from a window's keys and points to the next one's */
    unsigned window_bits, sm_count;
};
enum { GPU_TILE = 32 }; /* scalars a warp takes at once */
/* tiles[i] = pairs of tile i in the low word, ones in the high one; *windows_used, 0 before: windows up to the last with a digit. */
FALLIBLE gpu_digits_count(uint64_t *tiles, uint32_t *windows_used, const struct gpu_digits *digits,
                          const void *scalars, struct gpu_stream *s);
/* The same with tiles[i] = what all tiles before i have: every pair and one to its place. */
FALLIBLE gpu_digits_place(uint32_t *keys, uint32_t *points, uint32_t *ones, const uint64_t *tiles,
                          const struct gpu_digits *digits, const void *scalars,
                          struct gpu_stream *s);
/* refs[from … to) = ref */
FALLIBLE gpu_refs_fill(uint32_t *refs, uint32_t ref, uint32_t from, uint32_t to,
                       struct gpu_stream *s);
/* refs[i] = ref + (i >> shift) for all i < count */
FALLIBLE gpu_refs_count(uint32_t *refs, uint32_t ref, unsigned shift, uint32_t count,
                        struct gpu_stream *s);
FALLIBLE gpu_runs_find(struct gpu_pairs *pairs, struct gpu_pair_counts *device_counts,
                       struct gpu_stream *s);
/* One round: neighbours of a run become pairs, a last odd element is passed on by reference. */
struct gpu_round {
    const uint32_t *keys, *refs; /* elements before the round */
    uint32_t key_add, refs_or, count, chunk_base;
    const uint32_t *offset_before, *offset_after; /* per run, from first_run on */
    uint32_t first_run, sums_base;
    unsigned round;
    uint32_t *next_keys, *next_refs, *list; /* out */
};
FALLIBLE gpu_round_pair(const struct gpu_pairs *pairs, const struct gpu_round *round,
                        struct gpu_stream *s);
size_t gpu_sort_bytes(uint64_t count);
/* Sorts by the low `bits` of the keys, stable. Afterwards *keys, *values are whichever buffer holds the result. */
FALLIBLE gpu_sort(uint32_t **keys, uint32_t **keys_other, uint32_t **values,
                  uint32_t **values_other, uint64_t count, unsigned bits, void *workspace,
                  size_t workspace_bytes, struct gpu_stream *s);
/* values[i] becomes the sum of all before i; `count` + 1 values. */
size_t gpu_tiles_scan_bytes(uint32_t count);
FALLIBLE gpu_tiles_scan(uint64_t *values, uint32_t count, void *workspace, size_t workspace_bytes,
                        struct gpu_stream *s);
size_t gpu_scan_bytes(uint32_t count);
/* offsets[i] = number of elements that runs before first_run + i have at the start of `round`. */
FALLIBLE gpu_round_offsets(uint32_t *offsets, const struct gpu_pairs *pairs, uint32_t first_run,
                           uint32_t runs_count, unsigned round, void *workspace,
                           size_t workspace_bytes, struct gpu_stream *s);

/* --- backend.c --- */
struct backend;
struct backend_options;
/* The CUDA backend on options->device; E_DEVICE when there is none that works. Never the processor instead. */
FALLIBLE gpu_backend_open(struct backend **out, const struct backend_options *options);

#ifdef __cplusplus
}
#undef _Noreturn
#endif
