/* The CUDA backend: a key in device memory, a job's way through the kernels.
 *
 *   key_load    points as they lie in the file, matrices as rows with a dictionary, twiddles: uploaded once
 *   witness     values ─copy─▶ pinned ─▶ device ─▶ digits, sort              (one sort for A, B1, B2, L)
 *   evaluate    a = A·w, b = B·w
 *   quotient    scalars of H
 *   msm         the tree of additions over the sorted pairs; H's pairs are sorted when its turn comes
 *   sums        the host waits, takes the last steps of five sums
 *
 * One compute stream carries the order; an MSM forks lanes from it and joins them again, and its reduction goes on beside
 * the next. The host waits for counts, which are grid sizes: how many digits of the witness are not zero (while A·w and B·w
 * are computed), how they fill the buckets (while the quotient is), and the same of H. Only the last has nothing beside it.
 *
 * Where the plan takes scalars in ranges, each MSM is one per range with digits and sort of its own, and the host adds up;
 * points that stay in the file come by way of two buffers, one filled while the other is used.
 *
 * L's points are stored for all wires, infinity for the public ones, so that L shares the witness's pairs.
 */
#include "node/groth16/backend.h"
#include "node/base/clock.h"
#include "node/base/mem.h"

#include "cuda/layout.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BOUNCE_BYTES = 8 << 20,
    UPLOAD_PIECE = 8 << 20,
    COPY_PIECE = 1 << 20, /* of one copier */
    COPIERS_MAX = 8,
    MEMORY_RESERVE = 256 << 20
};

struct gpu_backend {
    struct backend base; /* first */
    struct gpu_device device;
    uint64_t memory_bytes; /* what keys and slots may take */
    void *bounce;          /* owned: pinned, BOUNCE_BYTES, for keys */
    struct gpu_stream *stream;
    struct pool *copiers; /* owned: one core copies 8 GB/s, the bus takes 50 */
};

struct backend_key {
    struct gpu_backend *backend; /* lent */
    struct key *key;             /* shared (ref) */
    struct gpu_layout layout;
    char *memory; /* owned: device */
    struct gpu_matrix matrix[2];
    struct gpu_domain domain;
};

enum pairs_of { PAIRS_WITNESS, PAIRS_H, PAIRS_COUNT };
struct stream_in { /* points on their way from the file */
    struct gpu_stream *stream;
    struct gpu_event *sent[LAYOUT_RING_PIECES]; /* a piece of the ring is free again */
    struct gpu_event *arrived[2], *consumed[2]; /* of the two buffers */
    unsigned piece;
};
struct backend_slot {
    struct backend_key *key; /* lent */
    char *memory, *pinned;   /* owned */
    struct gpu_msm_streams streams;
    struct stream_in in;
    struct gpu_event *counted[PAIRS_COUNT], *sorted; /* digits, then runs */
    struct gpu_event *done[STEP_COUNT + 1];          /* done[i + 1]: end of step i */
    struct gpu_pairs pairs[PAIRS_COUNT];             /* of ranges: by turns */
    bool h_sorted;
    unsigned turn;
    /* Ranges: the one whose result has not been added yet, and what has. */
    struct {
        bool open;
        enum key_points which;
        const struct gpu_pairs *pairs;
    } last;
    struct sums added;
    struct job_watch *watch; /* lent for one job */
};

static struct gpu_backend *backend_of(struct backend *b) {
    return (struct gpu_backend *)b;
}

/* --- backend --- */
static void backend_close_gpu(struct backend *b) {
    struct gpu_backend *g = backend_of(b);
    pool_close(&g->copiers);
    gpu_stream_close(&g->stream);
    gpu_pinned_close(&g->bounce, BOUNCE_BYTES);
    mem_free(g);
}

static enum err backend_plan(struct plan *out, struct backend *b, const struct key_shape *shape) {
    struct gpu_layout l;
    TRY(gpu_layout_of(&l, shape, backend_of(b)->device.sm_count, backend_of(b)->memory_bytes));
    *out = (struct plan){
        .host_bytes = sizeof(struct backend_key) + sizeof(struct backend_slot) + l.load_bytes,
        .mapped_bytes = shape->file_bytes,
        .pinned_bytes = l.pinned_bytes + BOUNCE_BYTES,
        .device_bytes = l.key_bytes + l.slot_bytes,
        .key_bytes_resident = l.key_bytes,
        .expected_ns = gpu_layout_expected_ns(&l, shape, backend_of(b)->device.sm_count),
        .chunks_count = 1};
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        out->chunks_count = l.streamed[i] ? l.parts_count : out->chunks_count;
    }
    return OK;
}

/* --- key --- */

/* Host bytes to the device by way of pinned memory. */
static enum err upload_through(struct gpu_backend *b, void *device, const void *host,
                               size_t bytes) {
    for (size_t at = 0; at < bytes; at += BOUNCE_BYTES) {
        size_t part = bytes - at < BOUNCE_BYTES ? bytes - at : BOUNCE_BYTES;
        memcpy(b->bounce, (const char *)host + at, part);
        TRY(gpu_upload((char *)device + at, b->bounce, part, b->stream));
        TRY(gpu_stream_wait(b->stream));
    }
    return OK;
}

/* Bytes of L that stand for public wires, which the file leaves out. */
static size_t skipped_bytes(const struct backend_key *k, enum key_points which) {
    return which == KEY_L ? ((size_t)key_shape(k->key)->public_count + 1) *
                                curve_point_bytes(key_curve(k->key), gpu_group_id(which))
                          : 0;
}

static enum err load_points(struct backend_key *k) {
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        bool zkey_layout;
        struct bytes raw = key_points_raw(&zkey_layout, k->key, i);
        REQUIRE(zkey_layout, E_FORMAT, "%s: points in bellman's form are not proved with on a GPU",
                key_path(k->key));
        size_t skipped = skipped_bytes(k, i);
        struct gpu_piece piece = k->layout.points[i];
        if (k->layout.streamed[i]) {
            continue;
        }
        ASSERT(skipped + raw.len <= piece.bytes);
        TRY(gpu_fill(k->memory + piece.at, 0, piece.bytes, k->backend->stream));
        TRY(upload_through(k->backend, k->memory + piece.at + skipped, raw.ptr, raw.len));
    }
    return OK;
}

/* Distinct coefficients, found by their stored bytes. */
struct dictionary {
    struct scalar *stored; /* owned: as in the key */
    uint8_t *constants;    /* owned: as on the device */
    uint32_t *slots;       /* owned: index + 1 by hash, 0 free */
    size_t count, count_max, slots_mask;
    struct scalar unscale; /* 1 / R²: stored values are coefficients times R² */
    const struct curve *curve;
    const struct gpu_curve *gpu;
};

static void dictionary_done(struct dictionary *d) {
    mem_free(d->stored);
    mem_free(d->constants);
    mem_free(d->slots);
}

static enum err dictionary_find(uint32_t *out, struct dictionary *d, const struct scalar *stored) {
    uint64_t hash =
        (stored->w[0] ^ stored->w[1] * 0x9e3779b97f4a7c15 ^ stored->w[2] << 1 ^ stored->w[3]) *
        0xbf58476d1ce4e5b9;
    size_t at = (size_t)(hash >> 20) & d->slots_mask;
    for (; d->slots[at]; at = (at + 1) & d->slots_mask) {
        if (!memcmp(&d->stored[d->slots[at] - 1], stored, sizeof *stored)) {
            *out = d->slots[at] - 1;
            return OK;
        }
    }
    REQUIRE(d->count < d->count_max, E_LIMIT, "more than %zu different coefficients", d->count_max);
    REQUIRE(scalar_is_valid(d->curve, stored), E_RANGE, "a coefficient is not below r");
    struct scalar value;
    d->curve->scalar_mul(&value, stored, &d->unscale);
    d->stored[d->count] = *stored;
    d->gpu->constant(d->constants + d->count * GPU_CONSTANT_BYTES, value.w);
    d->slots[at] = (uint32_t)++d->count;
    *out = (uint32_t)(d->count - 1);
    return OK;
}

static enum err dictionary_init(struct dictionary *d, const struct backend_key *k) {
    d->curve = key_curve(k->key);
    d->gpu = k->layout.gpu;
    d->count_max = k->layout.dictionary_max;
    d->slots_mask = 16;
    while (d->slots_mask < 2 * d->count_max) {
        d->slots_mask *= 2;
    }
    TRY(mem_new(&d->slots, d->slots_mask, sizeof *d->slots));
    d->slots_mask--;
    TRY(mem_new_raw(&d->stored, d->count_max, sizeof *d->stored));
    TRY(mem_new_raw(&d->constants, d->count_max, GPU_CONSTANT_BYTES));
    struct scalar two = {{2}}, one = {{1}}, minus_one, zero = {{0}}, r2;
    d->curve->scalar_pow(&r2, &two, 512);
    d->curve->scalar_inv(&d->unscale, &r2);
    d->curve->scalar_sub(&minus_one, &zero, &one);
    uint32_t idx;
    d->curve->scalar_mul(&one, &one, &r2);
    TRY(dictionary_find(&idx, d, &one));
    ASSERT(idx == GPU_COEFFICIENT_ONE);
    d->curve->scalar_mul(&minus_one, &minus_one, &r2);
    TRY(dictionary_find(&idx, d, &minus_one));
    ASSERT(idx == GPU_COEFFICIENT_MINUS_ONE);
    return OK;
}

struct rows { /* one matrix on its way to the device; all owned */
    uint32_t *start, *columns, *coefficients, *long_rows, long_count;
};

static void rows_done(struct rows *r) {
    mem_free(r->start);
    mem_free(r->columns);
    mem_free(r->coefficients);
    mem_free(r->long_rows);
}

/* Terms stand in any order in the file: count them by row, then put each in its place. */
static enum err rows_build(struct rows *r, struct dictionary *d, const struct key *key,
                           uint32_t matrix) {
    const struct key_shape *shape = key_shape(key);
    struct bytes terms = key_terms_raw(key);
    size_t all = (size_t)(shape->terms_count[0] + shape->terms_count[1]),
           rows = (size_t)shape->domain_size;
    size_t mine = (size_t)shape->terms_count[matrix];
    TRY(mem_new(&r->start, rows + 2, 4));
    TRY(mem_new_raw(&r->columns, mine + 1, 4));
    TRY(mem_new_raw(&r->coefficients, mine + 1, 4));
    TRY(mem_new_raw(&r->long_rows, mine / (GPU_ROW_LONG + 1) + 1, 4));
    for (size_t i = 0; i < all; i++) {
        struct key_term t = key_term_at(terms, i);
        if (t.matrix == matrix) {
            ASSERT(t.row < rows);
            r->start[t.row + 2]++;
        }
    }
    for (size_t row = 0; row < rows; row++) {
        if (r->start[row + 2] > GPU_ROW_LONG) {
            r->long_rows[r->long_count++] = (uint32_t)row;
        }
        r->start[row + 2] += r->start[row + 1];
    }
    ASSERT(r->start[rows + 1] ==
           mine); /* start[row + 1] is now the place of row's next term, in the end of row + 1's */
    for (size_t i = 0; i < all; i++) {
        struct key_term t = key_term_at(terms, i);
        if (t.matrix == matrix) {
            uint32_t at = r->start[t.row + 1]++;
            r->columns[at] = t.wire;
            TRY(dictionary_find(&r->coefficients[at], d, &t.value_r2));
        }
    }
    return OK;
}

static enum err load_matrices(struct backend_key *k) {
    AUTO(dictionary_done) struct dictionary d = {0};
    const struct key_shape *shape = key_shape(k->key);
    const struct gpu_layout *l = &k->layout;
    TRY(dictionary_init(&d, k));
    for (uint32_t m = 0; m < 2; m++) {
        AUTO(rows_done) struct rows r = {0};
        TRY(rows_build(&r, &d, k->key, m));
        size_t rows = (size_t)shape->domain_size, terms = (size_t)shape->terms_count[m];
        TRY(upload_through(k->backend, k->memory + l->row_start[m].at, r.start, (rows + 1) * 4));
        TRY(upload_through(k->backend, k->memory + l->columns[m].at, r.columns, terms * 4));
        TRY(upload_through(k->backend, k->memory + l->coefficients[m].at, r.coefficients,
                           terms * 4));
        TRY(upload_through(k->backend, k->memory + l->long_rows[m].at, r.long_rows,
                           (size_t)r.long_count * 4));
        k->matrix[m] = (struct gpu_matrix){
            .row_start = (const uint32_t *)(k->memory + l->row_start[m].at),
            .columns = (const uint32_t *)(k->memory + l->columns[m].at),
            .coefficients = (const uint32_t *)(k->memory + l->coefficients[m].at),
            .dictionary = k->memory + l->dictionary.at,
            .long_rows = (const uint32_t *)(k->memory + l->long_rows[m].at),
            .rows_count = (uint32_t)rows,
            .long_count = r.long_count};
    }
    return upload_through(k->backend, k->memory + l->dictionary.at, d.constants,
                          d.count * GPU_CONSTANT_BYTES);
}

static enum err load_domain(struct backend_key *k) {
    const struct key_shape *shape = key_shape(k->key);
    const struct curve *c = key_curve(k->key);
    struct gpu_domain_options o = {
        .log2 = shape->domain_log2, .powers = shape->h_basis == H_POWERS, .lean = k->layout.lean};
    struct scalar root, shift = {{c->id == CURVE_BN254 ? 5 : 7}};
    if (o.powers) {
        c->scalar_root_bellman(&root, o.log2);
    } else {
        c->scalar_root_snarkjs(&root, o.log2);
        if (o.log2 < c->two_adicity) {
            c->scalar_root_snarkjs(&shift, o.log2 + 1);
        } else {
            shift = (struct scalar){
                {25}}; /* the largest domain has no root of twice its order: 5², as snarkjs */
        }
    }
    memcpy(o.root, root.w, sizeof o.root);
    memcpy(o.shift, shift.w, sizeof o.shift);
    TRY(k->layout.gpu->domain_build(&k->domain, &o, k->memory + k->layout.domain.at,
                                    k->backend->stream));
    return gpu_stream_wait(k->backend->stream);
}

static void key_drop_gpu(struct backend_key **key) {
    struct backend_key *k = *key;
    if (k) {
        void *memory = k->memory;
        gpu_mem_close(&memory);
        key_unref(&k->key);
        mem_free(k);
    }
    *key = NULL;
}

static enum err key_load_gpu(struct backend_key **out, struct backend *b, struct key *key) {
    const struct key_shape *shape = key_shape(key);
    REQUIRE(shape->terms_count[0] + shape->terms_count[1] > 0, E_FORMAT,
            "%s: the key holds no matrices; add them with `bellows key import --circuit FILE`",
            key_path(key));
    AUTO(key_drop_gpu) struct backend_key *k = NULL;
    TRY(mem_new(&k, 1, sizeof *k));
    k->backend = backend_of(b);
    k->key = key_ref(key);
    TRY(gpu_layout_of(&k->layout, shape, k->backend->device.sm_count, k->backend->memory_bytes));
    void *memory = NULL;
    TRY(gpu_mem_open(&memory, k->layout.key_bytes));
    k->memory = memory;
    TRY(load_points(k));
    enum err code = load_matrices(k);
    if (code != OK) {
        return err_prefix(code, "%s: section 4", key_path(key));
    }
    TRY(load_domain(k));
    *out = TAKE(k);
    return OK;
}

/* --- slot --- */
static void slot_close_gpu(struct backend_slot **slot) {
    struct backend_slot *s = *slot;
    if (s) {
        void *memory = s->memory, *pinned = s->pinned;
        gpu_msm_streams_close(&s->streams);
        gpu_stream_close(&s->in.stream);
        for (unsigned i = 0; i < 2; i++) {
            gpu_event_close(&s->in.sent[i]);
            gpu_event_close(&s->in.arrived[i]);
            gpu_event_close(&s->in.consumed[i]);
            gpu_event_close(&s->counted[i]);
        }
        gpu_event_close(&s->sorted);
        for (unsigned i = 0; i <= STEP_COUNT; i++) {
            gpu_event_close(&s->done[i]);
        }
        if (pinned) {
            mem_wipe(pinned, s->key->layout.pinned_bytes);
        }
        gpu_pinned_close(&pinned, s->key->layout.pinned_bytes);
        gpu_mem_close(&memory);
        mem_free(s);
    }
    *slot = NULL;
}

static enum err slot_open_gpu(struct backend_slot **out, struct backend_key *key) {
    AUTO(slot_close_gpu) struct backend_slot *s = NULL;
    TRY(mem_new(&s, 1, sizeof *s));
    s->key = key;
    void *memory = NULL, *pinned = NULL;
    TRY(gpu_mem_open(&memory, key->layout.slot_bytes));
    s->memory = memory;
    TRY(gpu_pinned_open(&pinned, key->layout.pinned_bytes));
    s->pinned = pinned;
    TRY(gpu_msm_streams_open(&s->streams));
    TRY(gpu_stream_open(&s->in.stream));
    _Static_assert(LAYOUT_RING_PIECES == 2 && PAIRS_COUNT == 2, "opened in pairs below");
    for (unsigned i = 0; i < 2; i++) {
        TRY(gpu_event_open(&s->in.sent[i]));
        TRY(gpu_event_open(&s->in.arrived[i]));
        TRY(gpu_event_open(&s->in.consumed[i]));
        TRY(gpu_event_open(&s->counted[i]));
    }
    TRY(gpu_event_open(&s->sorted));
    for (unsigned i = 0; i <= STEP_COUNT; i++) {
        TRY(gpu_event_open(&s->done[i]));
    }
    *out = TAKE(s);
    return OK;
}

static enum err begin(const struct backend_slot *s, enum prove_step step) {
    atomic_store_explicit(&s->watch->progress_ns, clock_ns(), memory_order_relaxed);
    REQUIRE(!atomic_load_explicit(&s->watch->cancel, memory_order_relaxed), E_CANCELLED,
            "cancelled before step %s", prove_step_name(step));
    return OK;
}

static enum err end(struct backend_slot *s, enum prove_step step) {
    return gpu_event_record(s->done[step + 1], s->streams.main);
}

/* Counts the digits of a range; all scalars are one range from 0 when the plan has one. */
static enum err pairs_count(struct backend_slot *s, enum pairs_of slot, bool h, uint32_t part) {
    const struct gpu_layout *l = &s->key->layout;
    const struct key_shape *key = key_shape(s->key->key);
    struct gpu_msm_shape shape = h ? l->h_msm : l->witness_msm;
    uint32_t all = h ? (uint32_t)key->domain_size : (uint32_t)key->wires_count,
             from = part * shape.scalars_count;
    shape.scalars_count = all - from < shape.scalars_count ? all - from : shape.scalars_count;
    const char *scalars = s->memory + (h ? l->h.at : l->witness.at) + (size_t)from * SCALAR_BYTES;
    TRY(gpu_pairs_count(&s->pairs[slot], &shape, l->gpu->r, scalars, s->memory + l->tiles[h].at,
                        (struct gpu_pair_counts *)(s->pinned + l->counts[slot].at),
                        s->streams.main));
    return gpu_event_record(s->counted[slot], s->streams.main);
}

static enum err pairs_sort(struct backend_slot *s, enum pairs_of slot) {
    TRY(gpu_event_wait(s->counted[slot]));
    TRY(gpu_pairs_run(&s->pairs[slot], s->memory + s->key->layout.pairs.at, s->streams.main));
    return gpu_event_record(s->sorted, s->streams.main);
}

/* --- the witness's way into device memory --- */
struct copy { /* for the copiers */
    char *to;
    const char *from;
    size_t bytes;
};
static void copy_piece(void *ctx, size_t idx, unsigned worker_idx) {
    const struct copy *c = ctx;
    size_t at = idx * COPY_PIECE, part = c->bytes - at < COPY_PIECE ? c->bytes - at : COPY_PIECE;
    (void)worker_idx;
    memcpy(c->to + at, c->from + at, part);
}

/* Pinned values go straight; others by way of the slot's pinned memory, piece after piece, so that the copy engine works
 * while the next piece is copied. */
static enum err upload_witness(struct backend_slot *s, const struct witness *w, size_t bytes) {
    const struct gpu_layout *l = &s->key->layout;
    char *device = s->memory + l->witness.at, *staged = s->pinned + l->staged.at;
    if (gpu_pinned_is(w->values) && gpu_pinned_is(w->values + bytes - 1)) {
        return gpu_upload(device, w->values, bytes, s->streams.main);
    }
    for (size_t at = 0; at < bytes; at += UPLOAD_PIECE) {
        size_t part = bytes - at < UPLOAD_PIECE ? bytes - at : UPLOAD_PIECE;
        struct copy c = {staged + at, (const char *)w->values + at, part};
        pool_for(s->key->backend->copiers, (part + COPY_PIECE - 1) / COPY_PIECE, copy_piece, &c);
        TRY(gpu_upload(device + at, staged + at, part, s->streams.main));
    }
    return OK;
}

static enum err slot_witness(struct backend_slot *s, const struct witness *w,
                             struct job_watch *watch) {
    s->watch = watch;
    TRY(begin(s, STEP_WITNESS));
    size_t bytes = (size_t)w->count * SCALAR_BYTES;
    ASSERT(bytes == s->key->layout.witness.bytes);
    TRY(gpu_event_record(s->done[0], s->streams.main));
    TRY(upload_witness(s, w, bytes));
    if (s->key->layout.parts_count == 1) {
        TRY(pairs_count(s, PAIRS_WITNESS, false, 0));
    }
    s->h_sorted = s->last.open = false;
    memset(&s->added, 0, sizeof s->added);
    return end(s, STEP_WITNESS);
}

static enum err slot_evaluate(struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    TRY(begin(s, STEP_EVALUATE));
    TRY(l->gpu->matrix_times(s->memory + l->a.at, &s->key->matrix[0], s->memory + l->witness.at,
                             s->streams.main));
    TRY(l->gpu->matrix_times(s->memory + l->b.at, &s->key->matrix[1], s->memory + l->witness.at,
                             s->streams.main));
    if (l->parts_count == 1) {
        TRY(pairs_sort(s, PAIRS_WITNESS));
    }
    return end(s, STEP_EVALUATE);
}

static enum err slot_quotient(struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    TRY(begin(s, STEP_QUOTIENT));
    TRY(l->gpu->quotient(s->memory + l->h.at, s->memory + l->a.at, s->memory + l->b.at,
                         &s->key->domain, s->streams.main));
    if (l->parts_count == 1) {
        TRY(pairs_count(s, PAIRS_H, true, 0));
    }
    return end(s, STEP_QUOTIENT);
}

static enum prove_step step_of(enum key_points which) {
    static const enum prove_step steps[KEY_POINTS_COUNT] = {STEP_MSM_A, STEP_MSM_B1, STEP_MSM_B2,
                                                            STEP_MSM_L, STEP_MSM_H};
    return steps[which];
}

static const struct gpu_group *group_of(const struct gpu_layout *l, enum key_points which) {
    return gpu_group_id(which) == GROUP_G2 ? l->gpu->g2 : l->gpu->g1;
}

static struct gpu_msm_memory msm_memory(const struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    return (struct gpu_msm_memory){.lanes = s->memory + l->lanes.at,
                                   .turn = {s->memory + l->turns[0].at, s->memory + l->turns[1].at},
                                   .tails = s->memory + l->tails.at};
}

static void *sum_of(struct sums *sums, enum key_points which) {
    void *const points[KEY_POINTS_COUNT] = {&sums->a, &sums->b1, &sums->b2, &sums->l, &sums->h};
    return points[which];
}

/* --- ranges --- */
/* Adds what the last range's MSM has left; its result must have come. */
static void range_add(struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    const struct curve *c = key_curve(s->key->key);
    if (!s->last.open) {
        return;
    }
    enum key_points which = s->last.which;
    void *sum = sum_of(&s->added, which);
    struct g1 p1 = {{0}};
    struct g2 p2 = {{0}};
    bool g2 = gpu_group_id(which) == GROUP_G2;
    gpu_msm_finish(g2 ? p2.w : p1.w, s->last.pairs, group_of(l, which),
                   s->pinned + l->results[which].at);
    if (g2) {
        c->g2_add(sum, sum, &p2);
    } else {
        c->g1_add(sum, sum, &p1);
    }
    s->last.open = false;
}

/* Bytes [at, at + bytes) of a section as it stands on the device, from the file into a buffer: by way of the ring, whose
 * pieces are filled while others are sent. */
static enum err stream_bytes(struct backend_slot *s, char *to, const struct bytes *raw,
                             size_t skipped, size_t at, size_t bytes) {
    size_t none = at < skipped ? skipped - at : 0;
    none = none < bytes ? none : bytes;
    TRY(gpu_fill(to, 0, none, s->in.stream));
    for (size_t i = none; i < bytes; i += LAYOUT_RING_PIECE) {
        size_t part = bytes - i < LAYOUT_RING_PIECE ? bytes - i : LAYOUT_RING_PIECE;
        unsigned piece = s->in.piece;
        char *staged = s->pinned + s->key->layout.ring.at + (size_t)piece * LAYOUT_RING_PIECE;
        ASSERT(at + i - skipped + part <= raw->len);
        TRY(gpu_event_wait(s->in.sent[piece]));
        struct copy c = {staged, (const char *)raw->ptr + (at + i - skipped), part};
        pool_for(s->key->backend->copiers, (part + COPY_PIECE - 1) / COPY_PIECE, copy_piece, &c);
        TRY(gpu_upload(to + i, staged, part, s->in.stream));
        TRY(gpu_event_record(s->in.sent[piece], s->in.stream));
        s->in.piece = (piece + 1) % LAYOUT_RING_PIECES;
    }
    return OK;
}

/* Points of a range that the key's block does not hold: the copy is under way when this returns. */
static enum err range_bring(struct backend_slot *s, enum key_points which, uint32_t part,
                            uint32_t count) {
    const struct gpu_layout *l = &s->key->layout;
    size_t bytes = curve_point_bytes(key_curve(s->key->key), gpu_group_id(which));
    uint32_t range = which == KEY_H ? l->h_part : l->witness_part, from = part * range;
    if (!l->streamed[which] || from >= count) {
        return OK;
    }
    bool zkey_layout;
    struct bytes raw = key_points_raw(&zkey_layout, s->key->key, which);
    uint32_t mine = count - from < range ? count - from : range;
    TRY(gpu_stream_after(s->in.stream, s->in.consumed[part % 2]));
    TRY(stream_bytes(s, s->memory + l->incoming[part % 2].at, &raw, skipped_bytes(s->key, which),
                     from * bytes, mine * bytes));
    return gpu_event_record(s->in.arrived[part % 2], s->in.stream);
}

static const void *range_points(const struct backend_slot *s, enum key_points which,
                                uint32_t part) {
    const struct gpu_layout *l = &s->key->layout;
    if (l->streamed[which]) {
        return s->memory + l->incoming[part % 2].at;
    }
    uint32_t range = which == KEY_H ? l->h_part : l->witness_part;
    return s->key->memory + l->points[which].at +
           (size_t)part * range * curve_point_bytes(key_curve(s->key->key), gpu_group_id(which));
}

static enum err msm_in_ranges(struct backend_slot *s, enum key_points which) {
    const struct gpu_layout *l = &s->key->layout;
    const struct key_shape *shape = key_shape(s->key->key);
    uint32_t count = which == KEY_H ? (uint32_t)shape->domain_size : (uint32_t)shape->wires_count,
             range = which == KEY_H ? l->h_part : l->witness_part;
    TRY(range_bring(s, which, 0, count));
    for (uint32_t part = 0; (uint64_t)part * range < count; part++) {
        TRY(begin(s, step_of(which)));
        enum pairs_of pairs = s->turn ? PAIRS_H : PAIRS_WITNESS; /* whose result is not awaited */
        TRY(pairs_count(s, pairs, which == KEY_H, part));
        TRY(pairs_sort(s, pairs)); /* waited for the stream: the range before has come */
        range_add(s);
        TRY(gpu_event_wait(s->sorted));
        if (l->streamed[which]) {
            TRY(gpu_stream_after(s->streams.main, s->in.arrived[part % 2]));
        }
        struct gpu_msm_memory memory = msm_memory(s);
        TRY(gpu_msm_run(&s->pairs[pairs], group_of(l, which), range_points(s, which, part), &memory,
                        s->pinned + l->results[which].at, s->turn, &s->streams));
        TRY(gpu_event_record(s->in.consumed[part % 2], s->streams.main));
        s->last.open = true;
        s->last.which = which;
        s->last.pairs = &s->pairs[pairs];
        s->turn ^= 1;
        TRY(range_bring(s, which, part + 1, count));
    }
    return gpu_event_record(s->done[step_of(which) + 1], s->streams.tail[0]);
}

static enum err slot_msm(struct backend_slot *s, enum key_points which) {
    const struct gpu_layout *l = &s->key->layout;
    enum pairs_of pairs = which == KEY_H ? PAIRS_H : PAIRS_WITNESS;
    TRY(begin(s, step_of(which)));
    if (l->parts_count > 1) {
        return msm_in_ranges(s, which);
    }
    ASSERT(pairs == PAIRS_H || !s->h_sorted); /* H comes last: its pairs replace the witness's */
    if (pairs == PAIRS_H && !s->h_sorted) {
        TRY(pairs_sort(s, PAIRS_H));
        s->h_sorted = true;
    }
    TRY(gpu_event_wait(s->sorted));
    struct gpu_msm_memory memory = msm_memory(s);
    TRY(gpu_msm_run(&s->pairs[pairs], group_of(l, which), s->key->memory + l->points[which].at,
                    &memory, s->pinned + l->results[which].at, s->turn, &s->streams));
    s->turn ^= 1;
    return gpu_event_record(s->done[step_of(which) + 1], s->streams.tail[0]);
}

static enum err slot_sums(struct sums *out, struct step_times *times, struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    TRY(begin(s, STEP_MSM_H));
    if (l->parts_count > 1) {
        TRY(gpu_event_wait(s->done[STEP_MSM_H + 1]));
        range_add(s);
    }
    for (unsigned i = 0; l->parts_count == 1 && i < KEY_POINTS_COUNT; i++) {
        TRY(gpu_event_wait(s->done[step_of(i) + 1])); /* while the device works on the later ones */
        gpu_msm_finish(sum_of(&s->added, i), &s->pairs[i == KEY_H ? PAIRS_H : PAIRS_WITNESS],
                       group_of(l, i), s->pinned + l->results[i].at);
    }
    for (unsigned step = STEP_WITNESS; step <= STEP_MSM_H; step++) {
        TRY(gpu_event_ns(&times->ns[step], s->done[step], s->done[step + 1]));
    }
    *out = s->added;
    return OK;
}

static enum err slot_h_scalars(uint8_t *out, struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    struct gpu_backend *b = s->key->backend;
    TRY(gpu_stream_wait(s->streams.main));
    unsigned log2 = s->key->domain.log2;
    for (size_t at = 0; at < l->h.bytes; at += BOUNCE_BYTES) {
        size_t part = l->h.bytes - at < BOUNCE_BYTES ? l->h.bytes - at : BOUNCE_BYTES;
        TRY(gpu_download(b->bounce, s->memory + l->h.at + at, part, b->stream));
        TRY(gpu_stream_wait(b->stream));
        for (size_t i = 0; i < part; i += SCALAR_BYTES) {
            size_t from = (at + i) / SCALAR_BYTES, to = from;
            if (s->key->domain.powers) {
                to = 0;
                for (unsigned k = 0; k < log2; k++) {
                    to |= (from >> k & 1) << (log2 - 1 - k);
                }
            }
            memcpy(out + to * SCALAR_BYTES, (char *)b->bounce + i, SCALAR_BYTES);
        }
    }
    return OK;
}

/* Everything that says something of the witness: the vectors, the digits, what was read back. */
static void slot_wipe(struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    size_t pieces =
        l->pairs.at + l->pairs.bytes; /* witness, a, b, h and pairs lie one after the other */
    for (unsigned i = 0; i < GPU_TURNS; i++) {
        IGNORE(gpu_stream_after(s->streams.main, s->streams.reduced[i]));
    }
    IGNORE(gpu_fill(s->memory, 0, pieces, s->streams.main));
    IGNORE(gpu_stream_wait(s->streams.main));
    IGNORE(gpu_stream_wait(s->in.stream));
    mem_wipe(s->pinned, l->pinned_bytes);
    mem_wipe(s->pairs, sizeof s->pairs);
    mem_wipe(&s->added, sizeof s->added);
    s->last.open = false;
    s->watch = NULL;
}

static const struct backend_ops gpu_ops = {
    .name = "cuda",
    .close = backend_close_gpu,
    .plan = backend_plan,
    .key_load = key_load_gpu,
    .key_drop = key_drop_gpu,
    .slot_open = slot_open_gpu,
    .slot_close = slot_close_gpu,
    .witness = slot_witness,
    .evaluate = slot_evaluate,
    .quotient = slot_quotient,
    .msm = slot_msm,
    .sums = slot_sums,
    .h_scalars = slot_h_scalars,
    .wipe = slot_wipe,
};

static void gpu_backend_drop(struct gpu_backend **b) {
    if (*b) {
        backend_close_gpu(&(*b)->base);
    }
    *b = NULL;
}

enum err gpu_backend_open(struct backend **out, const struct backend_options *options) {
    AUTO(gpu_backend_drop) struct gpu_backend *b = NULL;
    TRY(mem_new(&b, 1, sizeof *b));
    b->base.ops = &gpu_ops;
    TRY(gpu_open(&b->device, options->device));
    uint64_t left;
    TRY(gpu_memory_free(&left));
    b->memory_bytes = left > MEMORY_RESERVE ? left - MEMORY_RESERVE : 0;
    if (options->device_memory_max && options->device_memory_max < b->memory_bytes) {
        b->memory_bytes = options->device_memory_max;
    }
    snprintf(b->base.device_name, sizeof b->base.device_name, "cuda: %.40s %.40s", b->device.name,
             b->device.uuid);
    TRY(gpu_pinned_open(&b->bounce, BOUNCE_BYTES));
    TRY(gpu_stream_open(&b->stream));
    unsigned cores = pool_cores_usable();
    TRY(pool_open(&b->copiers, cores < COPIERS_MAX ? cores : COPIERS_MAX));
    *out = &TAKE(b)->base;
    return OK;
}
