/* Multi-scalar multiplication: the plan over the kernels.
 *
 *   count ═▶ host reads how many ─▶ digits ─▶ sort ─▶ runs ═▶ host reads the counts
 *                                     │                └─▶ chunk after chunk, several in flight:
 *                                     │                     pair → prefix → invert → add, until runs are single
 *                                     └─▶ ones: add → …      └─▶ buckets ─▶ row and column sums ─▶ bit sums ═▶ host: Horner
 *
 * The first line (pairs.c) is made once for all MSMs over the same scalars, and so are the lists of what pairs with what in every
 * round, in memory that the sort has left (shape.shared). Points whose scalar is 1 are only added up, neighbour to
 * neighbour, until a few thousand are left. A chunk is 2^chunk_log2 pairs of the sorted list, so
 * memory is bounded whatever the scalars are; each of its rounds halves what is left of every run. In the first shape.sift_rounds a sift
 * stands before the prefix step: it settles pairs that take no addition, and the three steps go over a list of the others. Lanes are streams:
 * while one chunk's inversions wait for latency another's additions fill the device.
 *
 * Memory of a lane, in elements of S = 2^chunk_log2: the sums of all rounds (S), prefixes (S/2), list and keys (about S).
 * The reduction stops at the last window that holds a digit: a witness of bits has one window of buckets, not sixteen. Its
 * late rounds are few pairs each and bound by latency, so where memory allows (shape.overlap) it has streams, buckets and
 * memory of its own, and the next MSM's chunks fill the device meanwhile; else it uses the first two lanes' memory.
 */
#include "node/base/bytes.h"

#include "cuda/carver.h"
#include "cuda/sums.h"

#include <string.h>

enum {
    BATCH_THREADS_SM =
        512,           /* a round keeps that many threads on an SM before threads take more pairs */
    BATCH_BLOCK = 128, /* threads a block, as the kernels have it */
    INVERT_PAIRS_MAX = 32, /* products a thread of the inversion */
    INVERT_THREADS_MIN = 8192,
    ONES_LEAVES = 128, /* ones left for a block to add, about */
    ONES_ROUNDS_MAX = 20
};
static const uint32_t REF_POINT = 0x40000000u;

static uint32_t min_u32(uint64_t a, uint64_t b) {
    return (uint32_t)(a < b ? a : b);
}

enum err gpu_msm_sizes_of(struct gpu_msm_sizes *out, const struct gpu_msm_shape *shape) {
    unsigned c = shape->window_bits;
    REQUIRE(shape->scalars_count > 0 && shape->scalars_count <= 1u << 30, E_RANGE,
            "an MSM of %u points: 1 to 2^30 are possible", shape->scalars_count);
    REQUIRE(c >= GPU_MSM_WINDOW_MIN && c <= GPU_MSM_WINDOW_MAX, E_RANGE,
            "MSM windows of %u bits: %d to %d are possible", c, GPU_MSM_WINDOW_MIN,
            GPU_MSM_WINDOW_MAX);
    REQUIRE(shape->lanes_count >= 2 && shape->lanes_count <= GPU_LANES_MAX, E_RANGE,
            "%u MSM chunks in flight: 2 to %d are possible", shape->lanes_count, GPU_LANES_MAX);
    ASSERT(shape->shared || !shape->sift_rounds);
    REQUIRE(shape->chunk_log2 >= 8 && shape->chunk_log2 <= 29, E_RANGE,
            "MSM chunks of 2^%u pairs: 2^8 to 2^29 are possible", shape->chunk_log2);
    struct gpu_msm_sizes z = {0};
    z.windows_count = (shape->scalar_bits + c - 1) / c;
    z.sets_count = shape->table ? 1 : z.windows_count;
    z.buckets_count = z.sets_count << (c - 1);
    z.pairs_max = (uint64_t)shape->scalars_count * z.windows_count;
    uint64_t chunks = (z.pairs_max + ((uint64_t)1 << shape->chunk_log2) - 1) >> shape->chunk_log2;
    REQUIRE(
        z.pairs_max < UINT32_MAX && chunks <= GPU_CHUNKS_MAX, E_RANGE,
        "an MSM of %u points in windows of %u bits and chunks of 2^%u: too many pairs or chunks",
        shape->scalars_count, c, shape->chunk_log2);
    REQUIRE(!shape->table || z.pairs_max <= 1u << 30, E_RANGE,
            "a table of %llu points: at most 2^30", (unsigned long long)z.pairs_max);
    z.chunks_max = (uint32_t)chunks;
    z.column_bits = (c - 1) / 2;
    z.row_bits = c - 1 - z.column_bits;
    z.results_count = z.sets_count * c; /* row bits, column bits and one */
    z.results_max = shape->table ? z.results_count : shape->scalar_bits + GPU_MSM_WINDOW_MAX;
    z.ones_max = (3u << shape->chunk_log2) / 4; /* leaves room for the padding */
    z.ones_batches_max = (shape->scalars_count + z.ones_max - 1) / z.ones_max;
    *out = z;
    return OK;
}

/* --- lanes --- */
struct lane {
    uint32_t *keys[2], *refs[2], *offsets[2], *list;
    struct gpu_batch batch;
    uint32_t *sifted, *sifted_ones,
        *sifted_count; /* lists, lent from what the rounds leave alone */
    void *sums, *scan;
    size_t plane, scan_bytes;
    /* the chunk it works on */
    uint32_t chunk, count, done, first_run;
    const uint32_t *keys_now, *refs_now;
    unsigned round, turn;
};
struct msm_space {
    struct lane lane[GPU_LANES_MAX], tail[2];
    void *buckets, *extra, *results;
    size_t results_bytes, extra_bytes, lane_bytes;
    struct gpu_event *cleared; /* buckets, extra and results are this MSM's */
};

static uint32_t pairs_per_thread(uint32_t pairs, unsigned sm_count) {
    uint32_t n = pairs / (BATCH_THREADS_SM * sm_count);
    return n < 1 ? 1 : n > GPU_BATCH_PAIRS_MAX ? GPU_BATCH_PAIRS_MAX : n;
}

/* Threads of up to `pairs` pairs: full batches, or few pairs each while they are few: at n a thread there are less than
 * (n + 1) / n times the threads that fill the device, and twice as many with one. */
static size_t batch_threads_max(size_t pairs, unsigned sm_count) {
    size_t few = 2 * (size_t)BATCH_THREADS_SM * sm_count, most = pairs / GPU_BATCH_PAIRS_MAX;
    few = few < pairs ? few : pairs;
    return (most > few ? most : few) + BATCH_BLOCK;
}

/* Memory for additions of up to `sums` pairs in all, `pairs` at once. */
static void batch_carve(struct lane *l, struct carver *c, size_t sums, size_t pairs,
                        unsigned sm_count, size_t coordinate) {
    l->plane = sums;
    l->sums = carve(c, l->plane * 2 * coordinate);
    size_t threads = batch_threads_max(pairs, sm_count);
    l->batch.prefixes_plane = pairs;
    l->batch.products_plane = threads;
    l->batch.prefixes = carve(c, pairs * coordinate);
    l->batch.products = carve(c, threads * coordinate);
    l->batch.inverse_prefixes = carve(c, threads * coordinate);
}

static void lane_carve(struct lane *l, struct carver *c, const struct gpu_msm_shape *shape,
                       const struct gpu_msm_sizes *z, size_t coordinate) {
    size_t chunk = (size_t)1 << shape->chunk_log2, buckets = z->buckets_count;
    size_t runs = (buckets < chunk ? buckets : chunk) + 2; /* of a chunk */
    /* After a round a run of n has (n + 1) / 2 left. */
    size_t after[2] = {chunk / 2 + runs / 2 + 2, chunk / 4 + runs + 2};
    for (int i = 0; i < 2; i++) {
        size_t cap = after[i] < chunk ? after[i] : chunk;
        l->keys[i] = carve(c, cap * 4);
        l->refs[i] = carve(c, cap * 4);
        l->offsets[i] = carve(c, (buckets + 2) * 4);
    }
    l->list = carve(c, (chunk / 2 + 1) * 8);
    size_t sums = chunk > buckets || shape->overlap ? chunk : buckets;
    batch_carve(l, c, sums, sums / 2, shape->sm_count, coordinate);
    l->sifted = l->list;         /* the rounds' lists are not here when they are shared */
    l->sifted_ones = l->keys[0]; /* ones have no keys, and at most 3/8 of a chunk's pairs */
    l->sifted_count = carve(c, 4);
    l->scan_bytes = gpu_scan_bytes(z->buckets_count + 2);
    l->scan = carve(c, l->scan_bytes);
}

/* Carves the blocks of `m`, which may be all NULL; returns what they must hold. */
static struct gpu_msm_bytes msm_space_carve(struct msm_space *out,
                                            const struct gpu_msm_shape *shape,
                                            const struct gpu_msm_sizes *z,
                                            const struct gpu_group *g,
                                            const struct gpu_msm_memory *m, unsigned turn) {
    struct carver lanes = {m->lanes, 0}, mine = {m->turn[turn], 0}, tails = {m->tails, 0};
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < shape->lanes_count; i++) {
        lane_carve(&out->lane[i], &lanes, shape, z, g->coordinate_bytes);
    }
    out->lane_bytes = lanes.used / shape->lanes_count;
    out->results_bytes =
        align_up((z->results_max + (size_t)z->ones_batches_max * GPU_ONES_SUMS) * g->result_bytes);
    out->extra_bytes = align_up((size_t)z->chunks_max * 2 * g->coordinate_bytes);
    out->buckets = carve(&mine, (size_t)z->buckets_count * 2 * g->coordinate_bytes);
    out->results = carve(&mine, out->results_bytes);
    out->extra = carve(&mine, out->extra_bytes);
    for (unsigned i = 0; i < 2; i++) {
        out->tail[i] = out->lane[i];
        if (shape->overlap) {
            batch_carve(&out->tail[i], &tails, z->buckets_count, z->buckets_count / 2,
                        shape->sm_count, g->coordinate_bytes);
        }
    }
    return (struct gpu_msm_bytes){lanes.used, mine.used, tails.used};
}

static struct gpu_msm_bytes msm_space_of(struct msm_space *out, const struct gpu_msm_shape *shape,
                                         const struct gpu_group *group) {
    static const struct gpu_msm_memory none;
    struct gpu_msm_sizes z;
    ASSERT(gpu_msm_sizes_of(&z, shape) == OK);
    return msm_space_carve(out, shape, &z, group, &none, 0);
}

struct gpu_msm_bytes gpu_msm_bytes(const struct gpu_msm_shape *shape,
                                   const struct gpu_group *group) {
    struct msm_space space;
    return msm_space_of(&space, shape, group);
}

size_t gpu_msm_result_bytes(const struct gpu_msm_shape *shape, const struct gpu_group *group) {
    struct msm_space space;
    msm_space_of(&space, shape, group);
    return space.results_bytes + space.extra_bytes;
}

/* Adds `count` pairs; the sums go to places from `out_base` on. `sifted`: room to list the pairs that take an addition, where many
 * may not; else NULL. */
static enum err add_pairs(struct lane *l, const struct gpu_group *g,
                          const struct gpu_pairing *pairing, uint32_t count, uint32_t out_base,
                          unsigned sm_count, uint32_t *sifted, struct gpu_stream *s) {
    struct gpu_batch batch = l->batch;
    if (!count) {
        return OK;
    }
    uint32_t per_thread = pairs_per_thread(count, sm_count);
    uint32_t block = BATCH_BLOCK * per_thread, threads = (count + block - 1) / block * BATCH_BLOCK;
    ASSERT(threads <= l->batch.products_plane && count <= l->batch.prefixes_plane &&
           out_base + (size_t)count <= l->plane);
    uint32_t inverters = (threads + INVERT_PAIRS_MAX - 1) / INVERT_PAIRS_MAX;
    uint32_t least = min_u32(threads, INVERT_THREADS_MIN);
    inverters = inverters < least ? least : inverters;
    if (sifted) {
        batch.sifted = sifted;
        batch.sifted_count = l->sifted_count;
        batch.full_threads = BATCH_THREADS_SM * sm_count;
        TRY(g->sift(pairing, &batch, count, out_base, s));
    }
    TRY(g->prefix(pairing, &batch, count, per_thread, out_base, s));
    TRY(g->invert(&batch, threads, inverters, s));
    return g->add(pairing, &batch, count, per_thread, out_base, s);
}

static void lane_start(struct lane *l, const struct gpu_pairs *p, uint32_t chunk) {
    size_t at = (size_t)chunk << p->shape.chunk_log2;
    l->chunk = chunk;
    l->round = l->done = l->turn = 0;
    l->count = p->host->chunk[chunk].round[0];
    l->first_run = p->host->chunk[chunk].first_key + chunk;
    l->keys_now = p->keys + at;
    l->refs_now = p->points + at;
}

/* Writes the round's list and the elements of the next one. */
static enum err lane_pair(struct lane *l, const struct gpu_pairs *p, uint32_t *list,
                          struct gpu_stream *s) {
    uint32_t runs = p->host->chunk[l->chunk].last_key + l->chunk + 1 - l->first_run;
    uint32_t *offsets = l->offsets[l->turn];
    TRY(gpu_round_offsets(offsets, p, l->first_run, runs, l->round + 1, l->scan, l->scan_bytes, s));
    struct gpu_round round = {.keys = l->keys_now,
                              .refs = l->refs_now,
                              .key_add = l->round ? 0 : l->chunk,
                              .refs_or = l->round ? 0 : REF_POINT,
                              .count = l->count,
                              .chunk_base = l->chunk << p->shape.chunk_log2,
                              .offset_before = l->offsets[l->turn ^ 1],
                              .offset_after = offsets,
                              .first_run = l->first_run,
                              .sums_base = l->done,
                              .round = l->round,
                              .next_keys = l->keys[l->turn],
                              .next_refs = l->refs[l->turn],
                              .list = list};
    TRY(gpu_round_pair(p, &round, s));
    l->keys_now = l->keys[l->turn];
    l->refs_now = l->refs[l->turn];
    l->turn ^= 1;
    return OK;
}

/* The chunk's sums to the buckets. What is left of the runs is kept with the lists. */
static enum err lane_scatter(struct lane *l, const struct gpu_pairs *p, const struct gpu_group *g,
                             const void *points, const struct msm_space *space,
                             struct gpu_stream *s) {
    struct gpu_pairing pairing = {.points = points, .sums = l->sums, .plane = l->plane};
    if (l->round && p->shape.shared) {
        uint32_t *keys = p->last_keys + l->first_run, *refs = p->last_refs + l->first_run;
        if (!p->lists_made) {
            TRY(gpu_copy(keys, l->keys_now, (size_t)l->count * 4, s));
            TRY(gpu_copy(refs, l->refs_now, (size_t)l->count * 4, s));
        }
        l->keys_now = keys;
        l->refs_now = refs;
    }
    TRY(gpu_stream_after(s, space->cleared));
    return g->scatter(space->buckets, space->extra, &pairing, l->keys_now, l->round ? 0 : l->chunk,
                      l->refs_now, l->round ? 0 : REF_POINT, l->count, l->chunk,
                      p->host->chunk[l->chunk].continues, s);
}

/* The lane's chunk one round further; *more is false when its sums have gone to the buckets. */
static enum err lane_round(bool *more, struct lane *l, const struct gpu_pairs *p,
                           const struct gpu_group *g, const void *points,
                           const struct msm_space *space, struct gpu_stream *s) {
    const uint32_t *left = p->host->chunk[l->chunk].round;
    *more = l->count != left[32];
    if (!*more) {
        return lane_scatter(l, p, g, points, space, s);
    }
    uint32_t after = left[l->round + 1], pairs = l->count - after, *list = l->list;
    if (p->shape.shared) {
        list = p->lists + 2 * (((size_t)l->chunk << p->shape.chunk_log2) + l->done);
    }
    if (!p->shape.shared || !p->lists_made) {
        TRY(lane_pair(l, p, list, s));
    }
    struct gpu_pairing pairing = {
        .list = list, .points = points, .sums = l->sums, .plane = l->plane};
    TRY(add_pairs(l, g, &pairing, pairs, l->done, p->shape.sm_count,
                  l->round < p->shape.sift_rounds ? l->sifted : NULL, s));
    l->done += pairs;
    l->count = after;
    l->round++;
    return OK;
}

static enum err after_lanes(struct gpu_stream *s, const struct gpu_msm_streams *st) {
    for (unsigned i = 0; i < GPU_LANES_MAX; i++) {
        TRY(gpu_stream_after(s, st->join[i]));
    }
    return OK;
}

/* Chunks of one MSM are in flight beside the last ones of the MSM before it, in lanes that those have left; unless lanes of this
 * one lie elsewhere, the lists that it reads are still being made, or the reduction is in the lanes. */
static enum err fork_lanes(struct gpu_msm_streams *st, struct gpu_pairs *p,
                           const struct msm_space *space, struct gpu_event *ready) {
    bool beside = space->lane_bytes == st->lane_bytes && p->shape.overlap &&
                  (p->lists_there || !p->shape.shared);
    if (!ready) {
        TRY(gpu_event_record(st->fork, st->main));
        ready = st->fork;
    }
    for (unsigned i = 0; i < p->shape.lanes_count; i++) {
        TRY(gpu_stream_after(st->lane[i], ready));
        TRY(beside ? OK : after_lanes(st->lane[i], st));
        for (unsigned t = 0; t < GPU_TURNS && !p->shape.overlap; t++) {
            TRY(gpu_stream_after(st->lane[i], st->reduced[t]));
        }
    }
    st->lane_bytes = space->lane_bytes;
    p->lists_there = p->lists_made;
    return OK;
}

/* Both reductions wait for all lanes. */
static enum err join_lanes(const struct gpu_msm_streams *st) {
    for (unsigned i = 0; i < GPU_LANES_MAX; i++) {
        TRY(gpu_event_record(st->join[i], st->lane[i]));
    }
    TRY(after_lanes(st->tail[0], st));
    return after_lanes(st->tail[1], st);
}

enum err gpu_msm_join(const struct gpu_msm_streams *st) {
    return after_lanes(st->main, st);
}

/* --- ones --- */
struct ones_shape {
    unsigned rounds;          /* at least 1: the first one reads the list */
    uint32_t columns, padded; /* GPU_ONES_SUMS · columns leaves, padded = leaves · 2^rounds */
};
static struct ones_shape ones_shape_of(uint32_t count) {
    struct ones_shape o = {.rounds = 1};
    while (o.rounds < ONES_ROUNDS_MAX && count >> (o.rounds + 1) >= GPU_ONES_SUMS * ONES_LEAVES) {
        o.rounds++;
    }
    uint32_t grain = (uint32_t)GPU_ONES_SUMS << o.rounds;
    o.columns = (count + grain - 1) / grain;
    o.padded = o.columns * grain;
    return o;
}

/* The points of one batch of ones added up to GPU_ONES_SUMS sums, in a lane of its own. Behind the last one stand
 * references to infinity, which lies in the lane's last sum. */
static enum err sum_ones(struct lane *l, const struct gpu_pairs *p, const struct gpu_group *g,
                         const void *points, void *results, uint32_t batch, struct gpu_stream *s) {
    uint32_t from = batch * p->sizes.ones_max, count = p->host->ones_count - from;
    count = count < p->sizes.ones_max ? count : p->sizes.ones_max;
    struct ones_shape o = ones_shape_of(count);
    uint32_t infinity = (uint32_t)l->plane - 1, half = o.padded / 2, base = 0, next = half;
    size_t coordinate = g->coordinate_bytes;
    ASSERT(o.padded <= l->plane);
    TRY(gpu_copy(l->list, p->ones + from, (size_t)count * 4, s));
    TRY(gpu_refs_fill(l->list, infinity, count, o.padded, s));
    TRY(gpu_fill((char *)l->sums + (size_t)infinity * coordinate, 0, coordinate, s));
    TRY(gpu_fill((char *)l->sums + (l->plane + infinity) * coordinate, 0, coordinate, s));
    struct gpu_pairing pairing = {
        .list = l->list, .points = points, .sums = l->sums, .plane = l->plane};
    TRY(add_pairs(l, g, &pairing, half, 0, p->shape.sm_count,
                  p->shape.sift_rounds ? l->sifted_ones : NULL, s));
    pairing.list = NULL;
    for (unsigned r = 1; r < o.rounds; r++) {
        pairing.base = base;
        half /= 2;
        TRY(add_pairs(l, g, &pairing, half, next, p->shape.sm_count,
                      r < p->shape.sift_rounds ? l->sifted_ones : NULL, s));
        base = next;
        next += half;
    }
    struct gpu_bit_lists lists = {.sets_count = GPU_ONES_SUMS,
                                  .columns = (char *)l->sums + (size_t)base * coordinate,
                                  .columns_plane = l->plane,
                                  .columns_count = o.columns};
    return g->bit_sums((char *)results + (p->sizes.results_count + (size_t)batch * GPU_ONES_SUMS) *
                                             g->result_bytes,
                       &lists, s);
}

/* --- one MSM --- */
/* Rounds of the chunks in flight, launched in turn, then the ones. */
static enum err run_chunks(struct msm_space *space, const struct gpu_pairs *p,
                           const struct gpu_group *g, const void *points,
                           struct gpu_msm_streams *st) {
    uint64_t chunk_size = (uint64_t)1 << p->shape.chunk_log2;
    uint32_t chunks = (uint32_t)((p->host->pairs_count + chunk_size - 1) >> p->shape.chunk_log2),
             next = 0, active = 0;
    ASSERT(chunks <= p->sizes.chunks_max);
    unsigned lanes = p->shape.lanes_count, first = st->next_lane % lanes;
    bool busy[GPU_LANES_MAX] = {false};
    while (active || next < chunks) {
        for (unsigned j = 0; j < lanes; j++) {
            unsigned i = (first + j) % lanes;
            if (!busy[i] && next < chunks) {
                lane_start(&space->lane[i], p, next++);
                busy[i] = true;
                active++;
            }
            if (busy[i]) {
                TRY(lane_round(&busy[i], &space->lane[i], p, g, points, space, st->lane[i]));
                active -= !busy[i];
            }
        }
    }
    st->next_lane = first + chunks;
    for (uint32_t i = 0; i < gpu_ones_batches(p); i++) {
        unsigned lane = st->next_lane++ % lanes;
        TRY(gpu_stream_after(st->lane[lane], space->cleared));
        TRY(sum_ones(&space->lane[lane], p, g, points, space->results, i, st->lane[lane]));
    }
    return OK;
}

/* Row sums in tail 0, column sums in tail 1: halving trees over low and over high bits of the bucket index. */
static enum err reduce_buckets(struct msm_space *space, const struct gpu_pairs *p,
                               const struct gpu_group *g, const struct gpu_msm_streams *st) {
    unsigned c = p->shape.window_bits, rounds = p->sizes.column_bits;
    unsigned top[2] = {rounds, c - 1};
    uint32_t base[2] = {REF_POINT, REF_POINT}, out[2] = {0, 0};
    uint32_t count = gpu_pairs_sets(p) << (c - 1);
    for (unsigned r = 0; r < rounds; r++) {
        count /= 2;
        for (unsigned i = 0; i < 2; i++) {
            struct lane *l = &space->tail[i];
            struct gpu_pairing pairing = {.base = base[i],
                                          .half_log2 = top[i] - 1 - r,
                                          .points = space->buckets,
                                          .sums = l->sums,
                                          .plane = l->plane};
            TRY(add_pairs(l, g, &pairing, count, out[i], p->shape.sm_count, NULL, st->tail[i]));
            base[i] = out[i];
            out[i] += count;
        }
    }
    TRY(gpu_event_record(st->joined, st->tail[1]));
    TRY(gpu_stream_after(st->tail[0], st->joined));
    struct gpu_bit_lists lists = {
        .sets_count = gpu_pairs_sets(p),
        .rows = (char *)space->tail[0].sums + (size_t)base[0] * g->coordinate_bytes,
        .columns = (char *)space->tail[1].sums + (size_t)base[1] * g->coordinate_bytes,
        .rows_plane = space->tail[0].plane,
        .columns_plane = space->tail[1].plane,
        .row_bits = p->sizes.row_bits,
        .column_bits = p->sizes.column_bits,
        .rows_count = (1u << (c - 1)) >> rounds,
        .columns_count = (1u << (c - 1)) >> rounds,
    };
    return g->bit_sums(space->results, &lists, st->tail[0]);
}

/* What the host needs for the last steps, where gpu_msm_finish expects it. */
static enum err download_results(void *result, const struct msm_space *space,
                                 const struct gpu_pairs *p, const struct gpu_group *g,
                                 struct gpu_stream *s) {
    size_t per_set = p->sizes.row_bits + p->sizes.column_bits + 1;
    size_t chunks = ((size_t)p->host->pairs_count + ((size_t)1 << p->shape.chunk_log2) - 1) >>
                    p->shape.chunk_log2;
    size_t ones_at = p->sizes.results_count * g->result_bytes,
           ones_bytes = (size_t)gpu_ones_batches(p) * GPU_ONES_SUMS * g->result_bytes;
    const char *results = space->results;
    TRY(gpu_download(result, results, gpu_pairs_sets(p) * per_set * g->result_bytes, s));
    TRY(gpu_download((char *)result + ones_at, results + ones_at, ones_bytes, s));
    return gpu_download((char *)result + space->results_bytes, space->extra,
                        chunks * 2 * g->coordinate_bytes, s);
}

/* Empty buckets, behind the last MSM that had them. */
static enum err clear_buckets(struct msm_space *space, const struct gpu_pairs *p,
                              const struct gpu_group *g, unsigned turn,
                              const struct gpu_msm_streams *st) {
    size_t buckets = (size_t)gpu_pairs_sets(p) << (p->shape.window_bits - 1);
    for (unsigned t = 0; t < GPU_TURNS; t++) {
        TRY(t == turn || !p->shape.overlap ? gpu_stream_after(st->clear, st->reduced[t]) : OK);
    }
    TRY(gpu_fill(space->buckets, 0, buckets * 2 * g->coordinate_bytes, st->clear));
    space->cleared = st->cleared[turn];
    return gpu_event_record(space->cleared, st->clear);
}

enum err gpu_msm_run(struct gpu_pairs *p, const struct gpu_group *g, const void *points,
                     const struct gpu_msm_memory *memory, void *result, unsigned turn,
                     struct gpu_event *ready, struct gpu_msm_streams *st) {
    struct msm_space space;
    msm_space_carve(&space, &p->shape, &p->room, g, memory, turn);
    TRY(clear_buckets(&space, p, g, turn, st));
    TRY(fork_lanes(st, p, &space, ready));
    TRY(run_chunks(&space, p, g, points, st));
    p->lists_made = p->shape.shared;
    TRY(join_lanes(st));
    /* The last reduction ends in tail 0, and reads there what tail 1 has left. */
    TRY(gpu_stream_after(st->tail[1], st->reduced[turn ^ 1]));
    TRY(reduce_buckets(&space, p, g, st));
    TRY(download_results(result, &space, p, g, st->tail[0]));
    return gpu_event_record(st->reduced[turn], st->tail[0]);
}

void gpu_msm_finish(uint64_t *out, const struct gpu_pairs *p, const struct gpu_group *g,
                    const void *result) {
    static const struct gpu_msm_memory none;
    struct msm_space space;
    msm_space_carve(&space, &p->shape, &p->room, g, &none, 0);
    g->finish(out, result, (const char *)result + space.results_bytes, p);
}

enum err gpu_msm_streams_open(struct gpu_msm_streams *st) {
    TRY(gpu_stream_open(&st->main));
    TRY(gpu_event_open(&st->fork));
    TRY(gpu_stream_open(&st->clear));
    TRY(gpu_event_open(&st->joined));
    for (unsigned i = 0; i < GPU_LANES_MAX; i++) {
        TRY(gpu_stream_open(&st->lane[i]));
        TRY(gpu_event_open(&st->join[i]));
    }
    for (unsigned i = 0; i < GPU_TURNS; i++) {
        TRY(gpu_stream_open(&st->tail[i]));
        TRY(gpu_event_open(&st->cleared[i]));
        TRY(gpu_event_open(&st->reduced[i]));
    }
    return OK;
}

void gpu_msm_streams_close(struct gpu_msm_streams *st) {
    gpu_stream_close(&st->main);
    gpu_event_close(&st->fork);
    gpu_stream_close(&st->clear);
    gpu_event_close(&st->joined);
    for (unsigned i = 0; i < GPU_LANES_MAX; i++) {
        gpu_stream_close(&st->lane[i]);
        gpu_event_close(&st->join[i]);
    }
    for (unsigned i = 0; i < GPU_TURNS; i++) {
        gpu_stream_close(&st->tail[i]);
        gpu_event_close(&st->cleared[i]);
        gpu_event_close(&st->reduced[i]);
    }
}

enum err gpu_msm_wait(const struct gpu_msm_streams *st) {
    TRY(gpu_stream_wait(st->main));
    for (unsigned i = 0; i < GPU_LANES_MAX; i++) {
        TRY(gpu_stream_wait(st->lane[i]));
    }
    TRY(gpu_stream_wait(st->clear));
    TRY(gpu_stream_wait(st->tail[0]));
    return gpu_stream_wait(st->tail[1]);
}

/* --- additions for others: sums.h --- */

size_t gpu_sums_carve(struct gpu_sums *out, void *memory, size_t sums, size_t pairs,
                      unsigned sm_count, const struct gpu_group *group) {
    struct carver c = {memory, 0};
    struct lane l;
    memset(&l, 0, sizeof l);
    batch_carve(&l, &c, sums, pairs, sm_count, group->coordinate_bytes);
    *out = (struct gpu_sums){.batch = l.batch, .sums = l.sums, .plane = l.plane};
    return c.used;
}

enum err gpu_sums_add(const struct gpu_sums *sums, const struct gpu_group *group,
                      const uint32_t *list, uint32_t pairs_count, uint32_t out_base,
                      unsigned sm_count, struct gpu_stream *s) {
    struct lane l = {.batch = sums->batch, .sums = sums->sums, .plane = sums->plane};
    struct gpu_pairing pairing = {
        .list = list, .points = sums->points, .sums = sums->sums, .plane = sums->plane};
    return add_pairs(&l, group, &pairing, pairs_count, out_base, sm_count, NULL, s);
}
