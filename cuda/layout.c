/* The plan: pieces one after the other, and of all ways to work the fastest that still fits, by what was measured.
 *
 * What can be traded against time, and what it costs:
 *
 *   MSM chunks       from 2^25 pairs, four in flight, down to 2^20, two in flight               up to 60 %
 *   overlap          the reduction of one MSM beside the next                                   4 %
 *   lean twiddles    96 bytes an element of the domain become a few MB, and only the assignment
 *                    of the next job is taken in ahead, or as much of a and b as fits its place   16 % of the quotient
 *   ranges           scalars in 2, 4, 8 … ranges: digits, sort and buckets of a range at once,
 *                    and of the next job only what is packed is taken in ahead                    the buckets again
 *   streaming        points of B2, then H, then all stay in the file and come range by range    what the bus takes
 *
 * The other way round, where asked for or left to the plan and half of the free memory holds it: multiples of all points for every
 * window, a tenth less time for nine to eleven times the memory of the key (table.h).
 *
 * Very small chunks are the last resort; they are what tests force on small keys.
 */
#include "cuda/layout.h"

#include "node/curve/curve.h"

#include "cuda/carver.h"
#include "cuda/inbox.h"

#include <string.h>

enum {
    CHUNK_LOG2_MAX = 25,
    CHUNK_LOG2_LEAST = 20, /* below: the last resort */
    CHUNK_LOG2_MIN = 10,
    PART_SCALARS_MIN = 64,
    PARTS_MAX = 64, /* with more, only the last resorts are tried */
    INBOX_SHARE_OF_RANGES = 16
};
static const size_t PAIRS_APART_MAX = (size_t)2 << 30;

const struct gpu_curve *gpu_curve_of(enum curve_id id) {
    return id == CURVE_BN254 ? &bn254_gpu : &bls12_381_gpu;
}

enum point_group gpu_group_id(enum key_points which) {
    return which == KEY_B2 ? GROUP_G2 : GROUP_G1;
}

static struct gpu_piece piece(size_t *used, size_t bytes) {
    struct gpu_piece p = {*used, bytes};
    *used += align_up(bytes);
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

struct gpu_table_shape gpu_layout_table(const struct gpu_layout *l, const struct key_shape *shape,
                                        enum key_points which) {
    const struct gpu_msm_shape *s = which == KEY_H ? &l->h_msm : &l->witness_msm;
    unsigned windows = (s->scalar_bits + s->window_bits - 1) / s->window_bits;
    return (struct gpu_table_shape){.points_count = which == KEY_H ? (uint32_t)shape->domain_size
                                                                   : shape->wires_count,
                                    .window_bits = s->window_bits,
                                    .copies_count = l->multiples ? windows : 1,
                                    .sm_count = s->sm_count};
}

/* The largest workspace of a section's table. */
static size_t table_bytes(const struct gpu_layout *l, const struct key_shape *shape) {
    size_t most = 0;
    for (unsigned i = 0; l->multiples && i < KEY_POINTS_COUNT; i++) {
        const struct gpu_table_shape table = gpu_layout_table(l, shape, i);
        const struct gpu_group *g = gpu_group_id(i) == GROUP_G2 ? l->gpu->g2 : l->gpu->g1;
        size_t bytes = gpu_table_workspace_bytes(&table, g);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void place_key(struct gpu_layout *l, const struct key_shape *shape) {
    const struct curve *c = curve_by_id(shape->curve);
    size_t used = 0, terms = (size_t)(shape->terms_count[0] + shape->terms_count[1]);
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        const struct gpu_table_shape table = gpu_layout_table(l, shape, i);
        size_t count = (size_t)table.points_count * table.copies_count;
        count = l->streamed[i] ? 0 : count;
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
    l->domain =
        piece(&used, l->gpu->domain_bytes(shape->domain_log2, shape->h_basis == H_POWERS, l->lean));
    l->key_bytes = used;
    l->load_bytes = load_bytes(l, shape);
    l->table_bytes = table_bytes(l, shape);
}

static size_t max_size(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t min_size(size_t a, size_t b) {
    return a < b ? a : b;
}

static void widen(struct gpu_msm_bytes *m, struct gpu_msm_bytes other) {
    m->lanes = max_size(m->lanes, other.lanes);
    m->turn = max_size(m->turn, other.turn);
    m->tails = max_size(m->tails, other.tails);
}

/* Elements of G1 are half as large: more chunks in flight in the same memory. */
static void choose_g1_lanes(struct gpu_layout *l) {
    size_t room = gpu_msm_bytes(&l->witness_msm, l->gpu->g2).lanes;
    struct gpu_msm_shape witness = l->witness_msm, h = l->h_msm;
    l->g1_lanes = l->witness_msm.lanes_count;
    while (l->g1_lanes < GPU_LANES_MAX) {
        witness.lanes_count = h.lanes_count = l->g1_lanes + 1;
        if (gpu_msm_bytes(&witness, l->gpu->g1).lanes > room ||
            gpu_msm_bytes(&h, l->gpu->g1).lanes > room) {
            break;
        }
        l->g1_lanes++;
    }
    l->h_msm.lanes_count = l->g1_lanes;
}

/* Witness, a, b, h and pairs: what a job leaves behind, wiped as one. Ranges are sorted when the quotient is made: those of H over a
 * and b, those of the witness, when the sum over H is under way, over h, too. Where they are small, and so is what hides a sort, those of H
 * have memory of their own and are sorted beside the witness's MSMs. */
static size_t place_vectors(struct gpu_layout *l, const struct key_shape *shape) {
    size_t used = 0, vector = (size_t)shape->domain_size * SCALAR_BYTES,
           pairs = gpu_pairs_bytes(&l->witness_msm), h_pairs = gpu_pairs_bytes(&l->h_msm);
    l->witness = piece(&used, (size_t)shape->wires_count * SCALAR_BYTES);
    size_t over_h = used;
    l->h = piece(&used, vector);
    size_t over_ab = used;
    l->a = piece(&used, vector);
    l->b = piece(&used, vector);
    if (l->parts_count > 1) {
        l->pairs = piece(&over_h, pairs);
        l->h_pairs = piece(&over_ab, h_pairs);
        used = max_size(used, max_size(over_h, over_ab));
    } else {
        bool apart = !l->lean && pairs + h_pairs <= PAIRS_APART_MAX;
        l->pairs = piece(&used, apart ? pairs : max_size(pairs, h_pairs));
        l->h_pairs = apart ? piece(&used, h_pairs) : l->pairs;
    }
    l->wiped_bytes = used;
    return used;
}

/* Room for the next job: the assignment and, where memory is not short, a and b, however they come; where it is very short, an
 * assignment that is packed well. */
static size_t place_inbox(struct gpu_layout *l, const struct key_shape *shape, size_t *used) {
    const uint64_t counts[] = {shape->wires_count, shape->domain_size, shape->domain_size};
    size_t table_bytes = inbox_table_bytes(counts, INBOX_VECTORS_MAX);
    size_t bytes = inbox_bytes(counts, l->lean ? 1 : INBOX_VECTORS_MAX);
    l->inbox = piece(used, l->parts_count > 1 ? bytes / INBOX_SHARE_OF_RANGES : bytes);
    l->tables = piece(used, table_bytes);
    return table_bytes;
}

static void place_slot(struct gpu_layout *l, const struct key_shape *shape) {
    choose_g1_lanes(l);
    size_t used = place_vectors(l, shape);
    struct gpu_msm_bytes msm = gpu_msm_bytes(&l->witness_msm, l->gpu->g1);
    widen(&msm, gpu_msm_bytes(&l->witness_msm, l->gpu->g2));
    widen(&msm, gpu_msm_bytes(&l->h_msm, l->gpu->g1));
    struct gpu_msm_shape g1 = l->witness_msm;
    g1.lanes_count = l->g1_lanes;
    widen(&msm, gpu_msm_bytes(&g1, l->gpu->g1));
    l->lanes = piece(&used, msm.lanes);
    l->turns[0] = piece(&used, msm.turn);
    l->turns[1] = l->witness_msm.overlap ? piece(&used, msm.turn) : l->turns[0];
    l->tails = piece(&used, msm.tails);
    l->tiles[0] = piece(&used, gpu_tiles_bytes(&l->witness_msm));
    l->tiles[1] = piece(&used, gpu_tiles_bytes(&l->h_msm));
    size_t incoming = 0;
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        size_t bytes = curve_point_bytes(curve_by_id(shape->curve), gpu_group_id(i));
        size_t part = (i == KEY_H ? l->h_part : l->witness_part) * bytes;
        incoming = l->streamed[i] ? max_size(incoming, part) : incoming;
    }
    l->incoming[0] = piece(&used, incoming);
    l->incoming[1] = piece(&used, incoming);
    size_t table_bytes = place_inbox(l, shape, &used);
    l->slot_bytes = used;
    used = 0;
    size_t staged = (size_t)shape->wires_count * SCALAR_BYTES;
    l->staged = piece(&used, staged < LAYOUT_STAGED_MAX ? staged : LAYOUT_STAGED_MAX);
    l->inbox_tables = piece(&used, table_bytes);
    l->ring = piece(&used, incoming ? LAYOUT_RING_PIECES * (size_t)LAYOUT_RING_PIECE : 0);
    l->counts[0] = piece(&used, sizeof(struct gpu_pair_counts));
    l->counts[1] = piece(&used, sizeof(struct gpu_pair_counts));
    size_t result[KEY_POINTS_COUNT], widest = 0;
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        const struct gpu_msm_shape *msm_shape = i == KEY_H ? &l->h_msm : &l->witness_msm;
        result[i] = gpu_msm_result_bytes(msm_shape, i == KEY_B2 ? l->gpu->g2 : l->gpu->g1);
        widest = max_size(widest, result[i]);
    }
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) { /* of ranges: by turns */
        l->results[i] = piece(&used, l->parts_count == 1 ? result[i] : i < GPU_TURNS ? widest : 0);
    }
    l->pinned_bytes = used;
}

/* A way to work. */
struct attempt {
    unsigned chunk_log2, lanes;
    bool overlap, lean, multiples;
    unsigned streamed; /* sections, in the order of `streamed_order` */
    uint32_t parts;
};

static enum err msm_shape_of(struct gpu_msm_shape *out, const struct gpu_curve *g, uint64_t count,
                             unsigned sm_count, const struct attempt *a) {
    REQUIRE(count > 0 && count <= 1u << 30, E_RANGE,
            "a key of %llu points a section: 1 to 2^30 fit the device", (unsigned long long)count);
    struct gpu_msm_shape s = {.scalars_count = (uint32_t)count,
                              .scalar_bits = g->scalar_bits,
                              .window_bits =
                                  gpu_msm_window((uint32_t)count, g->scalar_bits, a->multiples),
                              .table = a->multiples,
                              .chunk_log2 = a->chunk_log2,
                              .lanes_count = a->lanes,
                              .overlap = a->overlap,
                              .sm_count = sm_count};
    uint64_t pairs = count * ((s.scalar_bits + s.window_bits - 1) / s.window_bits);
    while (s.chunk_log2 > CHUNK_LOG2_MIN && (uint64_t)1 << (s.chunk_log2 - 1) >= pairs) {
        s.chunk_log2--;
    }
    uint64_t chunks = ((pairs - 1) >> s.chunk_log2) + 1;
    s.lanes_count = chunks < 2 ? 2 : chunks < a->lanes ? (unsigned)chunks : a->lanes;
    struct gpu_msm_sizes sizes;
    TRY(gpu_msm_sizes_of(&sizes, &s));
    *out = s;
    return OK;
}

/* As few ranges of H as fit where its pairs may lie; of points that come range by range as many as of the witness, since their
 * buffers would grow. */
static enum err choose_h_parts(struct gpu_layout *l, const struct key_shape *shape,
                               unsigned sm_count, const struct attempt *a) {
    size_t vector = (size_t)shape->domain_size * SCALAR_BYTES,
           pairs = gpu_pairs_bytes(&l->witness_msm),
           room = a->parts == 1 ? SIZE_MAX : max_size(2 * vector, pairs - min_size(pairs, vector));
    l->h_parts_count = l->streamed[KEY_H] ? a->parts : 1;
    for (;; l->h_parts_count++) {
        l->h_part = (uint32_t)((shape->domain_size + l->h_parts_count - 1) / l->h_parts_count);
        enum err code = msm_shape_of(&l->h_msm, l->gpu, l->h_part, sm_count, a);
        bool last = l->streamed[KEY_H] || l->h_parts_count >= 2 * a->parts;
        if (last || (code == OK && gpu_pairs_bytes(&l->h_msm) <= room)) {
            return code;
        }
    }
}

/* *fits says whether the attempt does; an error is a shape that no attempt of this kind can have. */
static enum err attempt_try(bool *fits, struct gpu_layout *l, const struct key_shape *shape,
                            unsigned sm_count, uint64_t memory_bytes, const struct attempt *a) {
    static const enum key_points streamed_order[KEY_POINTS_COUNT] = {KEY_B2, KEY_H, KEY_L, KEY_A,
                                                                     KEY_B1};
    *fits = false;
    l->parts_count = a->parts;
    l->lean = a->lean;
    l->multiples = a->multiples;
    l->witness_part = (uint32_t)((shape->wires_count + (uint64_t)a->parts - 1) / a->parts);
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        l->streamed[streamed_order[i]] = i < a->streamed;
    }
    TRY(msm_shape_of(&l->witness_msm, l->gpu, l->witness_part, sm_count, a));
    l->witness_msm.shared = true;
    TRY(choose_h_parts(l, shape, sm_count, a));
    place_key(l, shape);
    place_slot(l, shape);
    *fits = l->key_bytes + l->slot_bytes <= memory_bytes && l->table_bytes <= l->slot_bytes;
    return OK;
}

struct search {
    const struct key_shape *shape;
    unsigned sm_count;
    uint64_t memory_bytes;
    struct gpu_layout now, best; /* `now` is room to try in */
    uint64_t best_ns;
    bool found;
};

/* An attempt of a shape that cannot be does not fit either. */
static bool try_one(struct search *s, const struct attempt *a) {
    bool fits = false;
    if (attempt_try(&fits, &s->now, s->shape, s->sm_count, s->memory_bytes, a) != OK || !fits) {
        return false;
    }
    uint64_t ns = gpu_layout_expected_ns(&s->now, s->shape, s->sm_count);
    if (!s->found || ns < s->best_ns) {
        s->best = s->now;
        s->best_ns = ns;
        s->found = true;
    }
    return true;
}

/* All workspaces of one number of ranges and one choice of sections that are streamed. */
static void try_workspaces(struct search *s, struct attempt a) {
    for (a.chunk_log2 = CHUNK_LOG2_MAX; a.chunk_log2 >= CHUNK_LOG2_LEAST; a.chunk_log2--) {
        for (a.lanes = 2; a.lanes <= GPU_LANES_MAX; a.lanes++) {
            bool some = false;
            for (unsigned bits = 0; bits < 4; bits++) {
                a.overlap = bits & 1;
                a.lean = bits & 2;
                some = try_one(s, &a) || some;
            }
            if (!some) {
                break; /* more lanes take more */
            }
        }
    }
}

/* The first of the last resorts, largest chunks first. */
static void try_small(struct search *s, struct attempt a) {
    a.lanes = 2;
    a.lean = true;
    for (a.chunk_log2 = CHUNK_LOG2_LEAST - 2; a.chunk_log2 >= CHUNK_LOG2_MIN && !s->found;
         a.chunk_log2 -= 2) {
        try_one(s, &a);
    }
}

/* All sections resident or some streamed, in few ranges or many; only where nothing fits, with small chunks. */
static void search_run(struct search *s) {
    uint64_t most = s->shape->wires_count / PART_SCALARS_MIN + 1;
    for (unsigned streamed = 0; streamed <= KEY_POINTS_COUNT; streamed++) {
        struct attempt a = {.streamed = streamed};
        for (a.parts = streamed ? 4 : 1; a.parts <= most && a.parts <= PARTS_MAX; a.parts *= 2) {
            try_workspaces(s, a);
        }
    }
    for (unsigned streamed = 0; streamed <= KEY_POINTS_COUNT && !s->found; streamed++) {
        struct attempt a = {.streamed = streamed};
        for (a.parts = streamed ? 4 : 1;
             a.parts <= most && a.parts <= LAYOUT_PARTS_MAX && !s->found; a.parts *= 2) {
            try_small(s, a);
        }
    }
}

/* Nothing is faster, and most keys find room for it; a search of a large key tries thousands of layouts, 28 ms of a load. */
static const struct attempt all_at_once = {
    .chunk_log2 = CHUNK_LOG2_MAX, .lanes = GPU_LANES_MAX, .overlap = true, .parts = 1};

enum err gpu_layout_of(struct gpu_layout *out, const struct key_shape *shape, unsigned sm_count,
                       uint64_t memory_bytes, bool tables) {
    struct search s = {.shape = shape, .sm_count = sm_count, .memory_bytes = memory_bytes};
    REQUIRE(shape->domain_log2 >= 1 && shape->domain_log2 <= 28, E_RANGE,
            "a domain of 2^%u: the device transforms 2^1 to 2^28", shape->domain_log2);
    REQUIRE(shape->terms_count[0] < UINT32_MAX && shape->terms_count[1] < UINT32_MAX, E_RANGE,
            "more than 2^32 - 2 terms in a matrix");
    REQUIRE(shape->wires_count > 0 && shape->wires_count <= 1u << 30, E_RANGE,
            "a key of %llu wires: 1 to 2^30 fit the device",
            (unsigned long long)shape->wires_count);
    s.now.gpu = gpu_curve_of(shape->curve);
    if (tables) {
        try_workspaces(&s, (struct attempt){.parts = 1, .multiples = true});
    }
    if (!s.found && !try_one(&s, &all_at_once)) {
        search_run(&s);
    }
    REQUIRE(s.found, E_LIMIT,
            "the key takes at least %.1f MiB and a job %.1f MiB of device memory, %.1f MiB are "
            "allowed; use a larger device",
            (double)s.now.key_bytes / (1 << 20), (double)s.now.slot_bytes / (1 << 20),
            (double)memory_bytes / (1 << 20));
    *out = s.best;
    return OK;
}

enum err gpu_layout_choose(struct gpu_layout *out, const struct key_shape *shape, unsigned sm_count,
                           uint64_t memory_bytes, enum key_tables tables, uint64_t room_bytes) {
    struct search with = {.shape = shape,
                          .sm_count = sm_count,
                          .memory_bytes =
                              (room_bytes < memory_bytes ? room_bytes : memory_bytes) / 2,
                          .now.gpu = gpu_curve_of(shape->curve)};
    TRY(gpu_layout_of(out, shape, sm_count, memory_bytes, tables == KEY_TABLES_ON));
    if (tables == KEY_TABLES_AUTO) {
        try_workspaces(&with, (struct attempt){.parts = 1, .multiples = true});
    }
    if (with.found && with.best_ns < gpu_layout_expected_ns(out, shape, sm_count)) {
        *out = with.best;
    }
    return OK;
}

/* Measured on an H200 (132 SMs at 1980 MHz) at 2^20 to 2^24 (tests/bench/RESULTS.md), in thousandths of a nanosecond: an addition of
 * the tree with everything around it, in each group; an element of the quotient. Each is the slope from one size to the next: what an
 * MSM takes however small it is lies beside the others, and shows once a proof, with the end of it on the host. */
static const struct {
    uint64_t g1_add, g2_add, quotient_element, proof_least_ns;
} costs[] = {
    [CURVE_BN254] = {144, 308, 1170, 3300000}, [CURVE_BLS12_381] = {263, 625, 1080, 8000000}};
enum {
    MSM_LEAST_NS = 500000, /* of ranges, one after the other */
    UPLOAD_BYTES_PER_NS = 20,
    WITNESS_BYTES_PER_NS = 50, /* from page-locked memory */
    PAIR_SORT_PS = 25,
    SMS_MEASURED = 132,
    LEAN_PERCENT = 116 /* of the quotient with full tables */
};

static uint64_t additions(const struct gpu_msm_shape *s) {
    uint64_t windows = (s->scalar_bits + s->window_bits - 1) / s->window_bits,
             sets = s->table ? 1 : windows;
    return windows * s->scalars_count + sets * ((uint64_t)3 << (s->window_bits - 1));
}

/* Percent of the time of four chunks of 2^25 in flight: measured for 2^24 and 2^23, for 2^22 and three, the rest by the same slope.
 * A sum that is in flight as a whole loses nothing. */
static uint64_t chunks_percent(const struct gpu_msm_shape *s, unsigned lanes) {
    static const uint8_t of_chunk[] = {60, 38, 22, 8, 2, 0},
                         of_lanes[GPU_LANES_MAX + 1] = {0, 0, 7, 3, 0};
    uint64_t windows = (s->scalar_bits + s->window_bits - 1) / s->window_bits,
             percent = 100 + (s->overlap ? 0u : 4u);
    if (s->scalars_count * windows <= (uint64_t)lanes << s->chunk_log2) {
        return percent;
    }
    return percent + of_lanes[lanes] +
           (s->chunk_log2 >= CHUNK_LOG2_MAX     ? 0u
            : s->chunk_log2 >= CHUNK_LOG2_LEAST ? of_chunk[s->chunk_log2 - CHUNK_LOG2_LEAST]
                                                : 50u);
}

uint64_t gpu_layout_expected_ns(const struct gpu_layout *l, const struct key_shape *shape,
                                unsigned sm_count) {
    uint64_t witness = l->parts_count * additions(&l->witness_msm),
             h = l->h_parts_count * additions(&l->h_msm), uploaded = 0;
    uint64_t g1_percent = chunks_percent(&l->witness_msm, l->g1_lanes),
             g2_percent = chunks_percent(&l->witness_msm, l->witness_msm.lanes_count);
    uint64_t ps = (3 * witness + h) * costs[shape->curve].g1_add / 100 * g1_percent +
                  witness * costs[shape->curve].g2_add / 100 * g2_percent +
                  (witness + h) * PAIR_SORT_PS +
                  shape->domain_size * costs[shape->curve].quotient_element *
                      (l->lean ? LEAN_PERCENT : 100) / 100;
    uint64_t least_ns = costs[shape->curve].proof_least_ns +
                        (4 * l->parts_count + l->h_parts_count - 5) * (uint64_t)MSM_LEAST_NS;
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        uint64_t count = i == KEY_H ? shape->domain_size : shape->wires_count;
        uploaded += l->streamed[i]
                        ? count * curve_point_bytes(curve_by_id(shape->curve), gpu_group_id(i))
                        : 0;
    }
    uint64_t compute_ns = ps / 1000 * SMS_MEASURED / sm_count + least_ns,
             upload_ns = uploaded / UPLOAD_BYTES_PER_NS;
    /* The first ranges come before anything is computed with them, and the host has other work: half of it shows. */
    return (compute_ns > upload_ns ? compute_ns : upload_ns) + upload_ns / 2 +
           (uint64_t)shape->wires_count * SCALAR_BYTES / WITNESS_BYTES_PER_NS;
}
