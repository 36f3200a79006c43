/* Doublings, window_bits of them for a copy, by the same batched additions as everything else: a pair of a point and itself.
 * That is 255 additions a point for a whole table, once per key. Block after block, so that the workspace stays small; a
 * block's sums go to two halves of a plane by turns.
 */
#include "cuda/table.h"

#include "cuda/sums.h"

#include <string.h>

enum { BLOCK_MAX = 1 << 19 };
static const uint32_t REF_POINT = 0x40000000u;

struct block {
    struct gpu_sums sums;
    uint32_t count;                   /* points of a full one */
    uint32_t *of_points, *of_half[2]; /* pairs of a point and itself */
    uint32_t *places, *last;          /* 0, 1, 2 …; where the last sums are */
};

static size_t block_carve(struct block *b, const struct gpu_table_shape *shape,
                          const struct gpu_group *group, void *workspace) {
    memset(b, 0, sizeof *b);
    b->count = shape->points_count < BLOCK_MAX ? shape->points_count : BLOCK_MAX;
    size_t n = b->count,
           used = gpu_sums_carve(&b->sums, workspace, 2 * n, n, shape->sm_count, group);
    uint32_t *at = workspace ? (uint32_t *)((char *)workspace + used) : NULL;
    uint32_t **const lists[] = {&b->of_points, &b->of_half[0], &b->of_half[1], &b->places,
                                &b->last};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        size_t words = i < 3 ? 2 * n : n;
        *lists[i] = at;
        at = at ? at + words : NULL;
        used += words * sizeof *at;
    }
    return used;
}

size_t gpu_table_workspace_bytes(const struct gpu_table_shape *shape,
                                 const struct gpu_group *group) {
    struct block b;
    return block_carve(&b, shape, group, NULL);
}

/* 2^window_bits times `count` points. */
static enum err block_run(struct block *b, void *to, const void *from, uint32_t count,
                          const struct gpu_table_shape *shape, const struct gpu_group *group,
                          struct gpu_stream *s) {
    b->sums.points = from;
    TRY(gpu_sums_add(&b->sums, group, b->of_points, count, 0, shape->sm_count, s));
    for (unsigned round = 1; round < shape->window_bits; round++) {
        TRY(gpu_sums_add(&b->sums, group, b->of_half[(round - 1) % 2], count, round % 2 * b->count,
                         shape->sm_count, s));
    }
    struct gpu_pairing sums = {.sums = b->sums.sums, .plane = b->sums.plane};
    return group->scatter(to, NULL, &sums, b->places, 0, b->last, 0, count, 0, false, s);
}

enum err gpu_table_build(void *points, const struct gpu_table_shape *shape,
                         const struct gpu_group *group, void *workspace, struct gpu_stream *s) {
    struct block b;
    block_carve(&b, shape, group, workspace);
    TRY(gpu_refs_count(b.of_points, REF_POINT, 1, 2 * b.count, s));
    TRY(gpu_refs_count(b.of_half[0], 0, 1, 2 * b.count, s));
    TRY(gpu_refs_count(b.of_half[1], b.count, 1, 2 * b.count, s));
    TRY(gpu_refs_count(b.places, 0, 0, b.count, s));
    TRY(gpu_refs_count(b.last, (shape->window_bits - 1) % 2 * b.count, 0, b.count, s));
    size_t point = 2 * group->coordinate_bytes;
    for (unsigned copy = 1; copy < shape->copies_count; copy++) {
        for (uint32_t at = 0; at < shape->points_count; at += b.count) {
            uint32_t left = shape->points_count - at, count = left < b.count ? left : b.count;
            char *from = (char *)points + ((size_t)(copy - 1) * shape->points_count + at) * point;
            TRY(block_run(&b, from + shape->points_count * point, from, count, shape, group, s));
        }
    }
    return OK;
}
