/* The pairs of an MSM: how wide its windows are, how many digits are not zero, and the digits sorted by bucket.
 *
 *   planned window ─▶ count ═▶ host: narrower? ─▶ count anew ═▶ host ─▶ digits ─▶ sort ─▶ runs ═▶ host
 *
 * The window is planned for scalars that are all large, which is what memory must hold. Of a witness most are small: then so few digits are
 * left that the buckets, which cost the same however full they are, would take most of the time. So once digits are counted a narrower
 * window may be chosen, in the room of the planned one.
 */
#include "node/base/bytes.h"

#include "cuda/carver.h"
#include "cuda/gpu.h"

#include <string.h>

enum {
    BUCKET_COST = 3, /* additions a bucket costs, in the choice of the window */
    NARROW_SHARE = 8 /* of the work is what counting the digits anew must save */
};

static uint32_t tiles_of(const struct gpu_msm_shape *shape) {
    return (shape->scalars_count + GPU_TILE - 1) / GPU_TILE;
}

/* --- windows --- */
/* Additions, as the choice of a window counts them: of the pairs, and of the buckets of all sets in use. */
static uint64_t work_of(uint64_t pairs, uint64_t sets, unsigned c) {
    return pairs + sets * (BUCKET_COST * ((uint64_t)1 << (c - 1)));
}

/* Of scalars that are all large. */
static uint64_t work_planned(uint32_t scalars_count, unsigned scalar_bits, bool table, unsigned c) {
    uint64_t windows = (scalar_bits + c - 1) / c;
    return work_of(windows * scalars_count, table ? 1 : windows, c);
}

/* The smallest within a hundredth of the best: buckets are memory, too. */
unsigned gpu_msm_window(uint32_t scalars_count, unsigned scalar_bits, bool table) {
    uint64_t best = UINT64_MAX;
    for (unsigned c = GPU_MSM_WINDOW_MIN; c <= GPU_MSM_WINDOW_MAX; c++) {
        uint64_t cost = work_planned(scalars_count, scalar_bits, table, c);
        best = cost < best ? cost : best;
    }
    unsigned c = GPU_MSM_WINDOW_MIN;
    while (work_planned(scalars_count, scalar_bits, table, c) > best + best / 100) {
        c++;
    }
    return c;
}

/* --- counted and sorted --- */
struct pairs_space {
    uint32_t *keys[2], *points[2], *run_start, *run_end, *ones, *last_keys, *last_refs;
    struct gpu_pair_counts *counts;
    void *sort;
    size_t sort_bytes, bytes;
};

static void pairs_space_carve(struct pairs_space *out, const struct gpu_msm_shape *shape,
                              const struct gpu_msm_sizes *z, void *workspace) {
    struct carver c = {workspace, 0};
    size_t list = (size_t)z->pairs_max * 4, runs = ((size_t)z->buckets_count + z->chunks_max) * 4;
    for (int i = 0; i < 2; i++) { /* keys and points next to each other: lists lie over both */
        out->keys[i] = carve(&c, list);
        out->points[i] = carve(&c, list);
    }
    out->run_start = carve(&c, runs);
    out->run_end = carve(&c, runs);
    out->ones = carve(&c, (size_t)shape->scalars_count * 4);
    out->last_keys = carve(&c, shape->shared ? runs : 0);
    out->last_refs = carve(&c, shape->shared ? runs : 0);
    out->counts = carve(&c, sizeof(struct gpu_pair_counts));
    out->sort_bytes = gpu_sort_bytes(z->pairs_max);
    out->sort = carve(&c, out->sort_bytes);
    out->bytes = c.used;
}

size_t gpu_pairs_bytes(const struct gpu_msm_shape *shape) {
    struct gpu_msm_sizes z;
    struct pairs_space space;
    ASSERT(gpu_msm_sizes_of(&z, shape) == OK);
    pairs_space_carve(&space, shape, &z, NULL);
    return space.bytes;
}

/* Of each tile, of all, and the windows used, which is read back with that; then what the scan needs. */
static size_t tiles_scan_at(uint32_t tiles_count) {
    return align_up(((size_t)tiles_count + 2) * sizeof(uint64_t));
}

size_t gpu_tiles_bytes(const struct gpu_msm_shape *shape) {
    return tiles_scan_at(tiles_of(shape)) + gpu_tiles_scan_bytes(tiles_of(shape));
}

static struct gpu_digits digits_of(const struct gpu_pairs *p) {
    struct gpu_digits digits = {.scalars_count = p->shape.scalars_count,
                                .windows_count = p->sizes.windows_count,
                                .window_bits = p->shape.window_bits,
                                .window_keys = 1u << (p->shape.window_bits - 1),
                                .sm_count = p->shape.sm_count};
    if (p->shape.table) {
        digits.window_keys = 0;
        digits.window_points = p->shape.scalars_count;
    }
    memcpy(digits.r, p->r, 32);
    for (int i = 0; i < 8; i++) {
        digits.half[i] = digits.r[i] >> 1 | (i < 7 ? digits.r[i + 1] << 31 : 0);
    }
    return digits;
}

static enum err count_digits(const struct gpu_pairs *p, struct gpu_stream *s) {
    uint32_t count = tiles_of(&p->shape), *windows_used = (uint32_t *)(p->tiles + count + 1);
    struct gpu_digits digits = digits_of(p);
    TRY(gpu_fill(windows_used, 0, sizeof(uint64_t), s));
    TRY(gpu_digits_count(p->tiles, windows_used, &digits, p->scalars, s));
    TRY(gpu_tiles_scan(p->tiles, count, (char *)p->tiles + tiles_scan_at(count),
                       gpu_tiles_scan_bytes(count), s));
    return gpu_download(p->host, p->tiles + count, 2 * sizeof(uint64_t), s);
}

enum err gpu_pairs_count(struct gpu_pairs *out, const struct gpu_msm_shape *shape,
                         const uint64_t r[4], const void *scalars, void *tiles,
                         struct gpu_pair_counts *host, struct gpu_stream *s) {
    struct gpu_pairs p = {
        .shape = *shape, .scalars = scalars, .tiles = tiles, .host = host, .settled = shape->table};
    memcpy(p.r, r, 32);
    TRY(gpu_msm_sizes_of(&p.sizes, shape));
    p.room = p.sizes;
    TRY(count_digits(&p, s));
    *out = p;
    return OK;
}

/* --- narrower windows --- */
static uint64_t work_counted(const struct gpu_pairs *p) {
    return work_of(p->host->pairs_count, p->host->windows_used, p->shape.window_bits);
}

/* What windows of c bits would take, as if every digit of those that were counted had all its bits: small scalars make fewer. */
static uint64_t work_expected(const struct gpu_pairs *p, unsigned c) {
    uint64_t wide = p->shape.window_bits, sets = (p->host->windows_used * wide + c - 1) / c,
             pairs = (p->host->pairs_count * wide + c - 1) / c;
    return pairs <= p->room.pairs_max ? work_of(pairs, sets, c) : UINT64_MAX;
}

static unsigned best_window(const struct gpu_pairs *p) {
    unsigned best = p->shape.window_bits;
    uint64_t least = work_counted(p);
    least -= least / NARROW_SHARE;
    for (unsigned c = p->shape.window_bits - 1; c >= GPU_MSM_WINDOW_MIN; c--) {
        uint64_t work = work_expected(p, c);
        if (work < least) {
            best = c;
            least = work;
        }
    }
    return best;
}

/* Another window in the room that there is; false: it would take more. */
static bool take_window(struct gpu_pairs *p, unsigned c) {
    struct gpu_msm_shape shape = p->shape;
    struct gpu_msm_sizes z;
    shape.window_bits = c;
    if (gpu_msm_sizes_of(&z, &shape) != OK || z.buckets_count > p->room.buckets_count) {
        return false;
    }
    z.pairs_max = p->room.pairs_max;
    z.chunks_max = p->room.chunks_max;
    p->shape = shape;
    p->sizes = z;
    return true;
}

/* What was expected of a narrower window may be wrong, and then the planned one is counted once more. */
enum err gpu_pairs_narrow(bool *again, struct gpu_pairs *p, struct gpu_stream *s) {
    unsigned now = p->shape.window_bits, other = now;
    bool first = !p->wide_bits;
    *again = false;
    if (p->settled) {
        return OK;
    }
    if (first) {
        p->wide_bits = now;
        p->wide_work = work_counted(p);
        other = best_window(p);
    } else if (work_counted(p) > p->wide_work || p->host->pairs_count > p->room.pairs_max) {
        other = p->wide_bits;
    }
    *again = other != now && take_window(p, other);
    p->settled = !first || !*again;
    return *again ? count_digits(p, s) : OK;
}

enum err gpu_pairs_run(struct gpu_pairs *p, void *workspace, struct gpu_stream *s) {
    struct pairs_space space;
    pairs_space_carve(&space, &p->shape, &p->room, workspace);
    ASSERT(p->host->pairs_count <= p->sizes.pairs_max &&
           p->host->ones_count <= p->shape.scalars_count);
    struct gpu_digits digits = digits_of(p);
    TRY(gpu_digits_place(space.keys[0], space.points[0], space.ones, p->tiles, &digits, p->scalars,
                         s));
    p->keys = space.keys[0];
    p->points = space.points[0];
    p->ones = space.ones;
    p->run_start = space.run_start;
    p->run_end = space.run_end;
    p->last_keys = space.last_keys;
    p->last_refs = space.last_refs;
    p->lists_made = p->lists_there = false;
    if (!p->host->pairs_count) {
        return OK;
    }
    unsigned bits = 0;
    while (p->sizes.buckets_count >> bits) {
        bits++;
    }
    TRY(gpu_sort(&p->keys, &space.keys[1], &p->points, &space.points[1], p->host->pairs_count, bits,
                 space.sort, space.sort_bytes, s));
    p->lists = space.keys[1]; /* which the sort has left, as those beside it */
    ASSERT((char *)space.points[1] == (char *)p->lists + align_up((size_t)p->sizes.pairs_max * 4));
    return gpu_runs_find(p, space.counts, s);
}
