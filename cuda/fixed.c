/* One plane of points holds everything:
 *
 *     ∞ │ table, level by level │ powers │ sums of the batch │ sums of the batch
 *
 * The host doubles G for the powers, a few hundred points; the table doubles itself from them, 2^c points in c rounds. Then a batch
 * of scalars: a list for each window but the first, and its additions, from one half of the
 * sums to the other. Lists, sums and scalars of one batch are all that
 * is ever on the device.
 *
 * A batch is copied to pinned memory, multiplied, copied back: nothing overlaps. At 2^27 rows that is a third of a key's time, which the
 * numbers before it exceed several times.
 */
#include "cuda/fixed.h"

#include "node/base/mem.h"

#include "cuda/carver.h"
#include "cuda/copiers.h"
#include "cuda/sums.h"

#include <string.h>

enum { WINDOW_BITS_MAX = 16, BATCH_MAX = 1 << 20 };

struct gpu_fixed {
    struct gpu_fixed_options options;
    const struct gpu_curve *gpu;
    const struct gpu_group *group;
    struct gpu_fixed_table table;
    struct gpu_sums sums;
    uint32_t batch, sums_at[2]; /* scalars at once; where their sums are, by turns */
    struct gpu_stream *stream;
    void *memory;         /* owned: device */
    void *list, *scalars; /* device, within memory: pairs; scalars, then packed points */
    void *pinned;         /* owned */
    size_t pinned_bytes, point_bytes;
};

void gpu_fixed_close(struct gpu_fixed **f) {
    if (*f) {
        gpu_pinned_close(&(*f)->pinned, (*f)->pinned_bytes);
        gpu_mem_close(&(*f)->memory);
        gpu_stream_close(&(*f)->stream);
        mem_free_ptr(f);
    }
}

static unsigned windows_of(unsigned scalar_bits, unsigned window_bits) {
    return (scalar_bits + window_bits - 1) / window_bits;
}

/* Least work for table and multiples. */
static unsigned choose_bits(unsigned scalar_bits, uint64_t count) {
    unsigned best = 1;
    uint64_t best_cost = UINT64_MAX;
    for (unsigned bits = 4; bits <= WINDOW_BITS_MAX; bits++) {
        uint64_t cost = windows_of(scalar_bits, bits) * (count + ((uint64_t)1 << bits));
        if (cost < best_cost) {
            best_cost = cost;
            best = bits;
        }
    }
    return best;
}

static FALLIBLE carve_memory(struct gpu_fixed *f) {
    const struct gpu_fixed_options *o = &f->options;
    unsigned bits = o->window_bits ? o->window_bits : choose_bits(f->gpu->scalar_bits, o->count);
    unsigned windows = windows_of(f->gpu->scalar_bits, bits);
    uint32_t table = 1 + windows * ((1u << bits) - 1), powers = windows * bits;
    f->table = (struct gpu_fixed_table){bits, windows, table};
    f->batch = o->count < BATCH_MAX ? (uint32_t)o->count : BATCH_MAX;
    f->batch = f->batch < powers ? powers : f->batch; /* powers go through the same buffers */
    f->sums_at[0] = table + powers;
    f->sums_at[1] = f->sums_at[0] + f->batch;
    size_t pairs = f->batch > windows << (bits - 1) ? f->batch : windows << (bits - 1);
    size_t points = (size_t)f->sums_at[1] + f->batch;
    size_t sums = align_up(gpu_sums_carve(&f->sums, NULL, points, pairs, o->sm_count, f->group));
    size_t list = align_up(pairs * 8), moved = align_up(f->batch * f->point_bytes);
    TRY(gpu_mem_open(&f->memory, sums + list + moved));
    gpu_sums_carve(&f->sums, f->memory, points, pairs, o->sm_count, f->group);
    f->list = (char *)f->memory + sums;
    f->scalars = (char *)f->list + list;
    f->pinned_bytes = f->batch * f->point_bytes;
    return gpu_pinned_open(&f->pinned, f->pinned_bytes);
}

/* 2^i·G for every bit of a scalar, packed. */
static void double_generator(uint8_t *out, const struct gpu_fixed *f) {
    const struct curve *c = f->options.curve;
    struct g1 p1 = c->g1_generator;
    struct g2 p2 = c->g2_generator;
    unsigned count = f->table.windows_count * f->table.window_bits;
    for (unsigned i = 0; i < count; i++) {
        if (f->options.group == GROUP_G1) {
            g1_store(out + i * f->point_bytes, c, &p1);
            c->g1_add(&p1, &p1, &p1);
        } else {
            g2_store(out + i * f->point_bytes, c, &p2);
            c->g2_add(&p2, &p2, &p2);
        }
    }
}

static FALLIBLE make_table(struct gpu_fixed *f) {
    unsigned count = f->table.windows_count * f->table.window_bits;
    size_t coordinate = f->group->coordinate_bytes;
    double_generator(f->pinned, f);
    TRY(gpu_upload(f->scalars, f->pinned, count * f->point_bytes, f->stream));
    TRY(gpu_fill(f->sums.sums, 0, coordinate, f->stream)); /* infinity: x, then y */
    TRY(gpu_fill((char *)f->sums.sums + f->sums.plane * coordinate, 0, coordinate, f->stream));
    TRY(gpu_fixed_unpack(f->sums.sums, f->scalars, f->sums.plane, f->table.powers, count,
                         coordinate, f->stream));
    for (unsigned level = 0; level < f->table.window_bits; level++) {
        uint32_t pairs = f->table.windows_count << level,
                 base = 1 + f->table.windows_count * ((1u << level) - 1);
        TRY(gpu_fixed_grow_pairs(f->list, &f->table, level, f->stream));
        TRY(gpu_sums_add(&f->sums, f->group, f->list, pairs, base, f->options.sm_count, f->stream));
    }
    return gpu_stream_wait(f->stream);
}

FALLIBLE gpu_fixed_open(struct gpu_fixed **out, const struct gpu_fixed_options *options) {
    AUTO(gpu_fixed_close) struct gpu_fixed *f = NULL;
    ASSERT(options->window_bits <= WINDOW_BITS_MAX && options->count > 0);
    TRY(mem_new(&f, 1, sizeof *f));
    f->options = *options;
    f->gpu = options->curve->id == CURVE_BN254 ? &bn254_gpu : &bls12_381_gpu;
    f->group = options->group == GROUP_G1 ? f->gpu->g1 : f->gpu->g2;
    f->point_bytes = curve_point_bytes(options->curve, options->group);
    TRY(gpu_stream_open(&f->stream));
    TRY(carve_memory(f));
    TRY(make_table(f));
    *out = TAKE(f);
    return OK;
}

static FALLIBLE multiply_batch(uint8_t *out, struct gpu_fixed *f, const struct scalar *scalars,
                               uint32_t count) {
    copiers_copy(f->options.copiers, f->pinned, scalars, count * sizeof *scalars);
    TRY(gpu_upload(f->scalars, f->pinned, count * sizeof *scalars, f->stream));
    unsigned turn = 0;
    for (unsigned w = 1; w < f->table.windows_count; w++, turn ^= 1) {
        TRY(gpu_fixed_digit_pairs(f->list, &f->table, f->scalars, count, w, f->sums_at[turn],
                                  f->stream));
        TRY(gpu_sums_add(&f->sums, f->group, f->list, count, f->sums_at[turn ^ 1],
                         f->options.sm_count, f->stream));
    }
    TRY(gpu_fixed_pack(f->scalars, f->sums.sums, f->sums.plane, f->sums_at[turn], count,
                       f->group->coordinate_bytes, f->stream));
    TRY(gpu_download(f->pinned, f->scalars, count * f->point_bytes, f->stream));
    TRY(gpu_stream_wait(f->stream));
    copiers_copy(f->options.copiers, out, f->pinned, count * f->point_bytes);
    return OK;
}

FALLIBLE gpu_fixed_multiply(uint8_t *out, struct gpu_fixed *f, const struct scalar *scalars,
                            size_t count) {
    for (size_t at = 0; at < count; at += f->batch) {
        uint32_t part = count - at < f->batch ? (uint32_t)(count - at) : f->batch;
        TRY(multiply_batch(out + at * f->point_bytes, f, scalars + at, part));
    }
    return OK;
}
