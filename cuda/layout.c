/* The plan: pieces one after the other, and the largest MSM chunks that still fit.
 *
 * MSM memory is what can be traded against time. Chunks start at 2^25 pairs (smaller when all pairs are fewer), four in
 * flight; while the sum is too large chunks are halved, then fewer are in flight. A chunk of 2^22 costs a few percent.
 */
#include "cuda/layout.h"

#include "node/curve/curve.h"

#include <string.h>

enum { CHUNK_LOG2_MAX = 25, CHUNK_LOG2_MIN = 10 };

const struct gpu_curve *gpu_curve_of(enum curve_id id) {
    return id == CURVE_BN254 ? &bn254_gpu : &bls12_381_gpu;
}

enum point_group gpu_group_id(enum key_points which) {
    return which == KEY_B2 ? GROUP_G2 : GROUP_G1;
}

static struct gpu_piece piece(size_t *used, size_t bytes) {
    struct gpu_piece p = {*used, bytes};
    *used += (bytes + 255) & ~(size_t)255;
    return p;
}

/* Rows of the larger matrix and the dictionary with its hash table of twice its size, as a power of two. */
static size_t load_bytes(const struct gpu_layout *l, const struct key_shape *shape) {
    size_t terms = (size_t)(shape->terms_count[0] > shape->terms_count[1] ? shape->terms_count[0]
                                                                          : shape->terms_count[1]);
    size_t slots = 16;
    while (slots < 2 * l->dictionary_max) {
        slots *= 2;
    }
    return ((size_t)shape->domain_size + 2) * 4 + (terms + 1) * 8 +
           (terms / (GPU_ROW_LONG + 1) + 1) * 4 + slots * 4 +
           l->dictionary_max * (SCALAR_BYTES + GPU_CONSTANT_BYTES);
}

static void place_key(struct gpu_layout *l, const struct key_shape *shape) {
    const struct curve *c = curve_by_id(shape->curve);
    size_t used = 0, terms = (size_t)(shape->terms_count[0] + shape->terms_count[1]);
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        size_t count = i == KEY_H ? (size_t)shape->domain_size : shape->wires_count;
        l->points[i] = piece(&used, count * curve_point_bytes(c, gpu_group_id(i)));
    }
    for (int m = 0; m < 2; m++) {
        size_t count = (size_t)shape->terms_count[m];
        l->row_start[m] = piece(&used, ((size_t)shape->domain_size + 1) * 4);
        l->columns[m] = piece(&used, (count + 1) * 4);
        l->coefficients[m] = piece(&used, (count + 1) * 4);
        l->long_rows[m] = piece(&used, (count / (GPU_ROW_LONG + 1) + 1) * 4);
    }
    l->dictionary_max = terms + 2 < LAYOUT_DICTIONARY_MAX ? terms + 2 : LAYOUT_DICTIONARY_MAX;
    l->dictionary = piece(&used, l->dictionary_max * GPU_CONSTANT_BYTES);
    l->domain = piece(&used, l->gpu->domain_bytes(shape->domain_log2, shape->h_basis == H_POWERS));
    l->key_bytes = used;
    l->load_bytes = load_bytes(l, shape);
}

static size_t max_size(size_t a, size_t b) {
    return a > b ? a : b;
}

static void place_slot(struct gpu_layout *l, const struct key_shape *shape) {
    size_t used = 0, vector = (size_t)shape->domain_size * SCALAR_BYTES;
    l->witness = piece(&used, (size_t)shape->wires_count * SCALAR_BYTES);
    l->a = piece(&used, vector);
    l->b = piece(&used, vector);
    l->h = piece(&used, vector);
    l->pairs = piece(&used, max_size(gpu_pairs_bytes(&l->witness_msm), gpu_pairs_bytes(&l->h_msm)));
    size_t msm = max_size(gpu_msm_bytes(&l->witness_msm, l->gpu->g1),
                          gpu_msm_bytes(&l->witness_msm, l->gpu->g2));
    l->msm = piece(&used, max_size(msm, gpu_msm_bytes(&l->h_msm, l->gpu->g1)));
    l->slot_bytes = used;
    used = 0;
    l->staged = piece(&used, (size_t)shape->wires_count * SCALAR_BYTES);
    l->counts = piece(&used, sizeof(struct gpu_pair_counts));
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        const struct gpu_msm_shape *msm_shape = i == KEY_H ? &l->h_msm : &l->witness_msm;
        l->results[i] =
            piece(&used, gpu_msm_result_bytes(msm_shape, i == KEY_B2 ? l->gpu->g2 : l->gpu->g1));
    }
    l->pinned_bytes = used;
}

static enum err msm_shape_of(struct gpu_msm_shape *out, const struct gpu_curve *g, uint64_t count,
                             unsigned sm_count, unsigned chunk_log2, unsigned lanes) {
    REQUIRE(count > 0 && count <= 1u << 30, E_RANGE,
            "a key of %llu points a section: 1 to 2^30 fit the device", (unsigned long long)count);
    struct gpu_msm_shape s = {.scalars_count = (uint32_t)count,
                              .scalar_bits = g->scalar_bits,
                              .window_bits = gpu_msm_window((uint32_t)count, g->scalar_bits),
                              .chunk_log2 = chunk_log2,
                              .lanes_count = lanes,
                              .sm_count = sm_count};
    uint64_t pairs = count * ((s.scalar_bits + s.window_bits - 1) / s.window_bits);
    while (s.chunk_log2 > CHUNK_LOG2_MIN && (uint64_t)1 << (s.chunk_log2 - 1) >= pairs) {
        s.chunk_log2--;
    }
    uint64_t chunks = ((pairs - 1) >> s.chunk_log2) + 1;
    s.lanes_count = chunks < 2 ? 2 : chunks < lanes ? (unsigned)chunks : lanes;
    struct gpu_msm_sizes sizes;
    TRY(gpu_msm_sizes_of(&sizes, &s));
    *out = s;
    return OK;
}

enum err gpu_layout_of(struct gpu_layout *out, const struct key_shape *shape, unsigned sm_count,
                       uint64_t memory_bytes) {
    struct gpu_layout l;
    memset(&l, 0, sizeof l);
    l.gpu = gpu_curve_of(shape->curve);
    REQUIRE(shape->domain_log2 >= 1 && shape->domain_log2 <= 28, E_RANGE,
            "a domain of 2^%u: the device transforms 2^1 to 2^28", shape->domain_log2);
    REQUIRE(shape->terms_count[0] < UINT32_MAX && shape->terms_count[1] < UINT32_MAX, E_RANGE,
            "more than 2^32 - 2 terms in a matrix");
    place_key(&l, shape);
    unsigned lanes = GPU_LANES_MAX, chunk_log2 = CHUNK_LOG2_MAX;
    for (;;) {
        enum err code =
            msm_shape_of(&l.witness_msm, l.gpu, shape->wires_count, sm_count, chunk_log2, lanes);
        if (code == OK) {
            code = msm_shape_of(&l.h_msm, l.gpu, shape->domain_size, sm_count, chunk_log2, lanes);
        }
        if (code == OK) {
            place_slot(&l, shape);
            if (l.key_bytes + l.slot_bytes <= memory_bytes) {
                *out = l;
                return OK;
            }
        }
        if (code != OK || chunk_log2 == CHUNK_LOG2_MIN) {
            break; /* smaller chunks would be too many, or none are smaller */
        }
        if (lanes > 2 && chunk_log2 <= 22) {
            lanes = 2;
        } else {
            chunk_log2--;
        }
    }
    FAIL(E_LIMIT,
         "the key takes %.1f MiB and a job %.1f MiB of device memory, %.1f MiB are allowed; use a "
         "larger device",
         (double)l.key_bytes / (1 << 20), (double)l.slot_bytes / (1 << 20),
         (double)memory_bytes / (1 << 20));
}

/* Measured on an H200 (132 SMs at 1980 MHz) at 2^20 to 2^24, in thousandths of a nanosecond: an addition of the tree with
 * everything around it, in each group; an element of the quotient. And what an MSM costs however small it is. */
static const struct {
    uint64_t g1_add, g2_add, quotient_element;
} costs[] = {[CURVE_BN254] = {190, 540, 1170}, [CURVE_BLS12_381] = {310, 950, 1070}};
enum { MSM_LEAST_NS = 700000, UPLOAD_BYTES_PER_NS = 20, PAIR_SORT_PS = 25, SMS_MEASURED = 132 };

static uint64_t additions(const struct gpu_msm_shape *s) {
    uint64_t windows = (s->scalar_bits + s->window_bits - 1) / s->window_bits;
    return windows * (s->scalars_count + ((uint64_t)3 << (s->window_bits - 1)));
}

uint64_t gpu_layout_expected_ns(const struct gpu_layout *l, const struct key_shape *shape,
                                unsigned sm_count) {
    uint64_t witness = additions(&l->witness_msm), h = additions(&l->h_msm);
    uint64_t ps = (3 * witness + h) * costs[shape->curve].g1_add +
                  witness * costs[shape->curve].g2_add + (witness + h) * PAIR_SORT_PS +
                  shape->domain_size * costs[shape->curve].quotient_element;
    return ps / 1000 * SMS_MEASURED / sm_count + 5 * MSM_LEAST_NS +
           (uint64_t)shape->wires_count * SCALAR_BYTES / UPLOAD_BYTES_PER_NS;
}
