/* The CUDA backend: a key in device memory, a job's way through the kernels.
 *
 *   key_load    points as they lie in the file, matrices as rows with a dictionary, twiddles: uploaded once
 *   witness     values ─copy─▶ pinned ─▶ device ─▶ digits, sort              (one sort for A, B1, B2, L)
 *   evaluate    a = A·w, b = B·w
 *   quotient    scalars of H
 *   msm         the tree of additions over the sorted pairs; H's pairs are sorted when its turn comes
 *   sums        the host waits, takes the last steps of five sums
 *
 * One compute stream carries the order; an MSM forks lanes from it and joins them again. The host waits twice inside a
 * job: for the counts of the witness's pairs and of H's, which are grid sizes. Both waits come after all earlier work has
 * been queued, so that only the launch of the next kernel is exposed.
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

enum pairs_of { PAIRS_NONE, PAIRS_WITNESS, PAIRS_H };
struct backend_slot {
    struct backend_key *key; /* lent */
    char *memory, *pinned;   /* owned */
    struct gpu_msm_streams streams;
    struct gpu_event *counted, *done[STEP_COUNT + 1]; /* done[i + 1]: end of step i */
    struct gpu_pairs pairs[KEY_POINTS_COUNT]; /* what each sum was made of, for its last step */
    struct gpu_pair_counts counts[2]; /* of the witness and of H, copied from pinned memory */
    enum pairs_of current;
    bool counts_kept;
    struct gpu_pairs now;
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

static enum err load_points(struct backend_key *k) {
    const struct key_shape *shape = key_shape(k->key);
    const struct curve *c = key_curve(k->key);
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        bool zkey_layout;
        struct bytes raw = key_points_raw(&zkey_layout, k->key, i);
        REQUIRE(zkey_layout, E_FORMAT, "%s: points in bellman's form are not proved with on a GPU",
                key_path(k->key));
        size_t skipped =
            i == KEY_L ? ((size_t)shape->public_count + 1) * curve_point_bytes(c, gpu_group_id(i))
                       : 0;
        struct gpu_piece piece = k->layout.points[i];
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
    struct gpu_domain_options o = {.log2 = shape->domain_log2,
                                   .powers = shape->h_basis == H_POWERS};
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
        gpu_stream_close(&s->streams.main);
        for (unsigned i = 0; i < GPU_LANES_MAX; i++) {
            gpu_stream_close(&s->streams.lane[i]);
            gpu_event_close(&s->streams.join[i]);
        }
        gpu_event_close(&s->streams.fork);
        gpu_event_close(&s->counted);
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
    TRY(gpu_stream_open(&s->streams.main));
    for (unsigned i = 0; i < GPU_LANES_MAX; i++) {
        TRY(gpu_stream_open(&s->streams.lane[i]));
        TRY(gpu_event_open(&s->streams.join[i]));
    }
    TRY(gpu_event_open(&s->streams.fork));
    TRY(gpu_event_open(&s->counted));
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

static enum err pairs_make(struct backend_slot *s, enum pairs_of which) {
    const struct gpu_layout *l = &s->key->layout;
    bool h = which == PAIRS_H;
    s->current = PAIRS_NONE;
    s->counts_kept = false;
    TRY(gpu_pairs_run(&s->now, h ? &l->h_msm : &l->witness_msm, l->gpu->r,
                      s->memory + (h ? l->h.at : l->witness.at), s->memory + l->pairs.at,
                      (struct gpu_pair_counts *)(s->pinned + l->counts.at), s->streams.main));
    TRY(gpu_event_record(s->counted, s->streams.main));
    s->current = which;
    return OK;
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
    TRY(pairs_make(s, PAIRS_WITNESS));
    return end(s, STEP_WITNESS);
}

static enum err slot_evaluate(struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    TRY(begin(s, STEP_EVALUATE));
    TRY(l->gpu->matrix_times(s->memory + l->a.at, &s->key->matrix[0], s->memory + l->witness.at,
                             s->streams.main));
    TRY(l->gpu->matrix_times(s->memory + l->b.at, &s->key->matrix[1], s->memory + l->witness.at,
                             s->streams.main));
    return end(s, STEP_EVALUATE);
}

static enum err slot_quotient(struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    TRY(begin(s, STEP_QUOTIENT));
    TRY(l->gpu->quotient(s->memory + l->h.at, s->memory + l->a.at, s->memory + l->b.at,
                         &s->key->domain, s->streams.main));
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

static enum err slot_msm(struct backend_slot *s, enum key_points which) {
    const struct gpu_layout *l = &s->key->layout;
    enum pairs_of wanted = which == KEY_H ? PAIRS_H : PAIRS_WITNESS;
    TRY(begin(s, step_of(which)));
    if (s->current != wanted) {
        TRY(pairs_make(s, wanted));
    }
    TRY(gpu_event_wait(s->counted));
    if (!s->counts_kept) { /* the pinned ones are overwritten by H's */
        s->counts[wanted == PAIRS_H] = *s->now.host;
        s->counts_kept = true;
    }
    s->pairs[which] = s->now;
    s->pairs[which].host = &s->counts[which == KEY_H];
    TRY(gpu_msm_run(&s->pairs[which], group_of(l, which), s->key->memory + l->points[which].at,
                    s->memory + l->msm.at, s->pinned + l->results[which].at, &s->streams));
    return end(s, step_of(which));
}

static enum err slot_sums(struct sums *out, struct step_times *times, struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    TRY(begin(s, STEP_MSM_H));
    struct sums sums;
    memset(&sums, 0, sizeof sums);
    uint64_t *const points[KEY_POINTS_COUNT] = {sums.a.w, sums.b1.w, sums.b2.w, sums.l.w, sums.h.w};
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) { /* while the device works on the later ones */
        TRY(gpu_event_wait(s->done[step_of(i) + 1]));
        gpu_msm_finish(points[i], &s->pairs[i], group_of(l, i), s->pinned + l->results[i].at);
    }
    for (unsigned step = STEP_WITNESS; step <= STEP_MSM_H; step++) {
        TRY(gpu_event_ns(&times->ns[step], s->done[step], s->done[step + 1]));
    }
    *out = sums;
    mem_wipe(&sums, sizeof sums);
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
    IGNORE(gpu_fill(s->memory, 0, pieces, s->streams.main));
    IGNORE(gpu_stream_wait(s->streams.main));
    mem_wipe(s->pinned, l->pinned_bytes);
    mem_wipe(s->counts, sizeof s->counts);
    mem_wipe(s->pairs, sizeof s->pairs);
    s->current = PAIRS_NONE;
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
