/* The CUDA backend: a job's way through the kernels, under a key that resident.c has brought.
 *
 *   witness     values ─copy─▶ pinned ─▶ device ─▶ digits, sort              (one sort for A, B1, B2, L)
 *   evaluate    a = A·w, b = B·w, unless they came with the values and in the same way
 *   quotient    scalars of H
 *   msm         the tree of additions over the sorted pairs; H's pairs are sorted when its turn comes
 *   sums        the host waits, takes the last steps of five sums
 *
 * One compute stream carries the order of all but the MSMs, whose lanes begin as soon as their pairs are sorted: those of the
 * witness beside the quotient, one beside the reduction of the one before and, in G1, beside its last chunks. B2 comes first: its
 * reduction is the longest, and the three behind it lie alike in memory. The pairs of H wait for all of them, but where
 * they have memory of their own. The host waits for counts, which are grid sizes: how many digits of the witness are not zero (while
 * A·w and B·w are computed; once more where so few are large that a narrower window has less to add), how they fill the buckets (while the quotient is), and the same of H (while the sums of the witness are).
 *
 * Where the plan takes scalars in ranges, H comes first and its memory is then the witness's; all four MSMs of the witness go
 * over one range before the next is sorted, and the host adds up. Points that stay in the file come by way of two buffers, one filled
 * while the other is used.
 *
 * L's points are stored for all wires, infinity for the public ones, so that L shares the witness's pairs.
 */
#include "node/groth16/backend.h"
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/numa.h"

#include "cuda/copiers.h"
#include "cuda/fixed.h"
#include "cuda/inbox.h"
#include "cuda/layout.h"
#include "cuda/loader.h"
#include "cuda/rate.h"
#include "cuda/resident.h"
#include "cuda/rest.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BOUNCE_BYTES = 8 << 20,
    UPLOAD_PIECE = 8 << 20,
    COPIERS_MAX = 8,
    MEMORY_RESERVE = 768 << 20 /* code and stacks that the driver loads when kernels first run */
};

struct gpu_backend {
    struct backend base; /* first */
    struct gpu_device device;
    uint64_t memory_bytes; /* what keys and slots may take */
    enum key_tables key_tables;
    void *bounce; /* owned: pinned, BOUNCE_BYTES, for what comes back */
    struct gpu_stream *stream;
    struct gpu_loader *loader; /* owned: of keys */
    struct pool *copiers;      /* owned: one core copies 8 GB/s, the bus takes 50 */
};

enum pairs_of { PAIRS_WITNESS, PAIRS_H, PAIRS_COUNT };
struct stream_in { /* points on their way from the file */
    struct gpu_stream *stream;
    struct gpu_event *sent[LAYOUT_RING_PIECES]; /* a piece of the ring is free again */
    struct gpu_event *arrived[2], *consumed[2]; /* of the two buffers */
    unsigned piece;
};
struct range_result { /* one that has not been added yet */
    bool open;
    enum key_points which;
    const struct gpu_pairs *pairs;
    unsigned turn;
};
struct backend_slot {
    struct backend_key *key; /* lent */
    char *memory, *pinned;   /* owned */
    struct gpu_msm_streams streams;
    struct stream_in in;
    struct inbox inbox;
    struct gpu_rests *rests;                                    /* owned */
    struct gpu_event *uploaded, *counted[PAIRS_COUNT], *sorted; /* digits, then runs */
    struct gpu_event *done[STEP_COUNT + 1];                     /* done[i + 1]: end of step i */
    struct gpu_event *began[KEY_POINTS_COUNT];                  /* of MSMs in turn */
    struct gpu_pairs pairs[PAIRS_COUNT];                        /* of ranges: by turns */
    bool witness_begun, h_begun;
    unsigned turn;
    size_t staged_bytes; /* of the witness in pinned memory: none when it came pinned */
    bool evaluated;      /* a and b came with it */
    bool summed;         /* the device has nothing more to do with the host's memory */
    struct step_times times;
    unsigned booked;    /* steps before the MSMs */
    uint64_t booked_ns; /* since done[0] */
    struct range_result last;
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
    gpu_loader_close(&g->loader);
    gpu_stream_close(&g->stream);
    gpu_pinned_close(&g->bounce, BOUNCE_BYTES);
    mem_free(g);
}

static enum err layout_of(struct gpu_layout *out, const struct gpu_backend *b,
                          const struct key_shape *shape) {
    return gpu_layout_choose(out, shape, b->device.sm_count, b->memory_bytes, b->key_tables,
                             b->base.room_bytes);
}

static enum err backend_plan(struct plan *out, struct backend *b, const struct key_shape *shape) {
    struct gpu_layout l;
    TRY(layout_of(&l, backend_of(b), shape));
    *out = (struct plan){.host_bytes = sizeof(struct backend_key) + sizeof(struct backend_slot) +
                                       l.load_bytes + gpu_rests_bytes(l.results[KEY_H].bytes),
                         .mapped_bytes = shape->file_bytes,
                         .pinned_bytes = l.pinned_bytes + BOUNCE_BYTES + gpu_loader_pinned_bytes(),
                         .device_bytes = l.key_bytes + l.slot_bytes,
                         .key_bytes_resident = l.key_bytes,
                         .multiples = l.multiples,
                         .expected_ns =
                             gpu_layout_expected_ns(&l, shape, backend_of(b)->device.sm_count),
                         .chunks_count = 1};
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        out->chunks_count = l.streamed[i] ? l.parts_count : out->chunks_count;
    }
    return OK;
}

static enum err backend_pin(struct backend *b, void *host, size_t bytes) {
    (void)b;
    return gpu_pin(host, bytes);
}

static void backend_unpin(struct backend *b, void *host) {
    (void)b;
    gpu_unpin(host);
}

/* --- key --- */
static enum err key_load_gpu(struct backend_key **out, struct backend *b, struct key *key) {
    struct gpu_backend *g = backend_of(b);
    struct gpu_layout l;
    TRY(layout_of(&l, g, key_shape(key)));
    TRY(resident_load(out, key, &l, g->loader));
    (*out)->backend = g;
    return OK;
}

static void key_load_times_gpu(struct load_times *out, const struct backend_key *key) {
    *out = key->times;
}

/* --- slot --- */
static void slot_close_gpu(struct backend_slot **slot) {
    struct backend_slot *s = *slot;
    if (s) {
        void *memory = s->memory, *pinned = s->pinned;
        gpu_msm_streams_close(&s->streams);
        inbox_close(&s->inbox);
        gpu_rests_close(&s->rests);
        gpu_stream_close(&s->in.stream);
        for (unsigned i = 0; i < 2; i++) {
            gpu_event_close(&s->in.sent[i]);
            gpu_event_close(&s->in.arrived[i]);
            gpu_event_close(&s->in.consumed[i]);
            gpu_event_close(&s->counted[i]);
        }
        gpu_event_close(&s->uploaded);
        for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
            gpu_event_close(&s->began[i]);
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
    TRY(inbox_open(&s->inbox, key_shape(key->key)->curve, s->memory + key->layout.inbox.at,
                   key->layout.inbox.bytes, s->pinned + key->layout.inbox_tables.at,
                   key->layout.tables.bytes));
    TRY(gpu_rests_open(&s->rests, key->layout.results[KEY_H].bytes));
    TRY(gpu_stream_open(&s->in.stream));
    _Static_assert(LAYOUT_RING_PIECES == 2 && PAIRS_COUNT == 2, "opened in pairs below");
    for (unsigned i = 0; i < 2; i++) {
        TRY(gpu_event_open(&s->in.sent[i]));
        TRY(gpu_event_open(&s->in.arrived[i]));
        TRY(gpu_event_open(&s->in.consumed[i]));
        TRY(gpu_event_open(&s->counted[i]));
    }
    TRY(gpu_event_open(&s->uploaded));
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        TRY(gpu_event_open(&s->began[i]));
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

/* A step has the time from the end of what was booked before it to its own end, nothing where it ended before. */
static enum err book(struct backend_slot *s, enum prove_step step, struct gpu_event *ended) {
    uint64_t at;
    TRY(gpu_event_ns(&at, s->done[0], ended));
    s->times.ns[step] += at > s->booked_ns ? at - s->booked_ns : 0;
    s->booked_ns = at > s->booked_ns ? at : s->booked_ns;
    return OK;
}

/* The same of an MSM that has ended, as all before the MSMs has. */
static enum err book_msm(struct backend_slot *s, enum key_points which, struct gpu_event *ended) {
    for (; s->booked <= STEP_QUOTIENT; s->booked++) {
        TRY(book(s, s->booked, s->done[s->booked + 1]));
    }
    return book(s, msm_step(which), ended);
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

static enum err pairs_sort(struct backend_slot *s, enum pairs_of slot, bool h) {
    const struct gpu_layout *l = &s->key->layout;
    for (bool again = true; again;) {
        TRY(gpu_event_wait(s->counted[slot]));
        TRY(gpu_pairs_narrow(&again, &s->pairs[slot], s->streams.main));
        TRY(again ? gpu_event_record(s->counted[slot], s->streams.main) : OK);
    }
    TRY(gpu_pairs_run(&s->pairs[slot], s->memory + (h ? l->h_pairs.at : l->pairs.at),
                      s->streams.main));
    return gpu_event_record(s->sorted, s->streams.main);
}

/* --- the witness's way into device memory --- */
/* Pinned values go straight; others by way of the slot's pinned memory, piece after piece, so that the copy engine works
 * while the next piece is copied. */
static enum err upload_values(struct backend_slot *s, char *device, const uint8_t *values,
                              size_t bytes) {
    const struct gpu_layout *l = &s->key->layout;
    char *staged = s->pinned + l->staged.at;
    size_t room = l->staged.bytes, most = bytes < room ? bytes : room;
    if (gpu_pinned_is(values) && gpu_pinned_is(values + bytes - 1)) {
        return gpu_upload(device, values, bytes, s->streams.main);
    }
    TRY(s->staged_bytes ? gpu_stream_wait(s->streams.main) : OK); /* the vector before is sent */
    s->staged_bytes = most > s->staged_bytes ? most : s->staged_bytes;
    for (size_t at = 0, to = 0, part; at < bytes; at += part, to = (to + part) % room) {
        if (at > 0 && to == 0) { /* from the front again, once that is sent */
            TRY(gpu_stream_wait(s->streams.main));
        }
        part = bytes - at < UPLOAD_PIECE ? bytes - at : UPLOAD_PIECE;
        part = part < room - to ? part : room - to;
        copiers_copy(s->key->backend->copiers, staged + to, values + at, part);
        TRY(gpu_upload(device + at, staged + to, part, s->streams.main));
    }
    return OK;
}

/* Rows behind those that came are 0. */
static enum err upload_rows(struct backend_slot *s, struct gpu_piece to, const uint8_t *values,
                            uint64_t count) {
    size_t bytes = (size_t)count * SCALAR_BYTES;
    ASSERT(bytes <= to.bytes);
    TRY(upload_values(s, s->memory + to.at, values, bytes));
    return gpu_fill(s->memory + to.at + bytes, 0, to.bytes - bytes, s->streams.main);
}

static enum err upload_witness(struct backend_slot *s, const struct witness *w) {
    const struct gpu_layout *l = &s->key->layout;
    size_t bytes = (size_t)w->count * SCALAR_BYTES;
    ASSERT(bytes == l->witness.bytes);
    s->evaluated = w->a != NULL;
    TRY(upload_values(s, s->memory + l->witness.at, w->values, bytes));
    if (s->evaluated) {
        TRY(upload_rows(s, l->a, w->a, w->rows_count));
        TRY(upload_rows(s, l->b, w->b, w->rows_count));
    }
    return OK;
}

static enum err slot_bring(struct backend_slot *s, struct bring *what, struct job_watch *watch) {
    return inbox_bring(&s->inbox, what, watch);
}

static bool slot_bring_fits(const struct backend_slot *s, const struct scalars *vectors,
                            unsigned count) {
    return inbox_fits(&s->inbox, vectors, count);
}

static enum err slot_bring_begin(struct backend_slot *s, struct bring *what,
                                 struct job_watch *watch) {
    return inbox_begin(&s->inbox, what, watch);
}

static enum err slot_bring_piece(struct backend_slot *s, unsigned vector_idx, uint64_t at,
                                 struct bytes piece) {
    return inbox_piece(&s->inbox, vector_idx, at, piece);
}

static enum err slot_bring_end(struct backend_slot *s, struct bring *what, bool whole) {
    return inbox_end(&s->inbox, what, whole);
}

static void slot_unbring(struct backend_slot *s, uint64_t ticket) {
    inbox_drop(&s->inbox, ticket);
}

/* What was brought: the assignment, or a and b before it. */
static enum err take_brought(struct backend_slot *s, uint64_t ticket) {
    const struct gpu_layout *l = &s->key->layout;
    const struct inbox_place places[] = {{s->memory + l->a.at, l->a.bytes},
                                         {s->memory + l->b.at, l->b.bytes},
                                         {s->memory + l->witness.at, l->witness.bytes}};
    unsigned count = s->inbox.vectors_count;
    s->evaluated = count > 1;
    ASSERT(count == 1 || count == COUNT_OF(places));
    return inbox_take(&s->inbox, ticket, places + COUNT_OF(places) - count, count, s->streams.main);
}

static enum err slot_witness(struct backend_slot *s, const struct witness *w,
                             struct job_watch *watch) {
    s->watch = watch;
    TRY(begin(s, STEP_WITNESS));
    s->summed = false;
    s->staged_bytes = 0;
    TRY(gpu_event_record(s->done[0], s->streams.main));
    if (w->brought) {
        TRY(gpu_event_record(s->uploaded, s->streams.main));
        TRY(take_brought(s, w->brought));
    } else {
        TRY(upload_witness(s, w));
        TRY(gpu_event_record(s->uploaded, s->streams.main));
    }
    if (s->key->layout.parts_count == 1) {
        TRY(pairs_count(s, PAIRS_WITNESS, false, 0));
    }
    s->witness_begun = s->h_begun = s->last.open = false;
    memset(&s->added, 0, sizeof s->added);
    memset(&s->times, 0, sizeof s->times);
    s->booked = STEP_WITNESS;
    s->booked_ns = 0;
    return end(s, STEP_WITNESS);
}

static enum err rows_run(struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    const char *w = s->memory + l->witness.at;
    TRY(l->gpu->matrix_times(s->memory + l->a.at, &s->key->matrix[0], w, s->streams.main));
    return l->gpu->matrix_times(s->memory + l->b.at, &s->key->matrix[1], w, s->streams.main);
}

static enum err quotient_run(struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    return l->gpu->quotient(s->memory + l->h.at, s->memory + l->a.at, s->memory + l->b.at,
                            &s->key->domain, s->streams.main);
}

static enum err slot_evaluate(struct backend_slot *s) {
    TRY(begin(s, STEP_EVALUATE));
    TRY(s->evaluated ? OK : rows_run(s));
    if (s->key->layout.parts_count == 1) {
        TRY(pairs_sort(s, PAIRS_WITNESS, false));
    }
    return end(s, STEP_EVALUATE);
}

static enum err slot_quotient(struct backend_slot *s) {
    TRY(begin(s, STEP_QUOTIENT));
    TRY(quotient_run(s));
    if (s->key->layout.parts_count == 1) {
        TRY(pairs_count(s, PAIRS_H, true, 0));
    }
    return end(s, STEP_QUOTIENT);
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

/* Of ranges, at most two results are not added yet. */
static void *result_of(const struct backend_slot *s, enum key_points which, unsigned turn) {
    const struct gpu_layout *l = &s->key->layout;
    return s->pinned + l->results[l->parts_count > 1 ? turn : which].at;
}

/* Starts an MSM over sorted pairs once `ready` has come; its result comes with streams.reduced[s->turn], which the next one does
 * not use. */
static enum err msm_start(struct backend_slot *s, enum key_points which, struct gpu_pairs *pairs,
                          const void *points, struct gpu_event *ready) {
    const struct gpu_layout *l = &s->key->layout;
    struct gpu_msm_memory memory = msm_memory(s);
    bool g2 = gpu_group_id(which) == GROUP_G2;
    pairs->shape.lanes_count = g2 ? l->witness_msm.lanes_count : l->g1_lanes;
    pairs->shape.sift_rounds = s->key->sift_rounds[which];
    return gpu_msm_run(pairs, resident_group(l, which), points, &memory,
                       result_of(s, which, s->turn), s->turn, ready, &s->streams);
}

/* Adds what the last MSM of a range has left, once it has come. */
static enum err range_add(struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    const struct curve *c = key_curve(s->key->key);
    if (!s->last.open) {
        return OK;
    }
    enum key_points which = s->last.which;
    void *sum = sum_of(&s->added, which);
    struct g1 p1 = {{0}};
    struct g2 p2 = {{0}};
    bool g2 = gpu_group_id(which) == GROUP_G2;
    TRY(gpu_event_wait(s->streams.reduced[s->last.turn]));
    TRY(book_msm(s, which, s->streams.reduced[s->last.turn]));
    gpu_msm_finish(g2 ? p2.w : p1.w, s->last.pairs, resident_group(l, which),
                   result_of(s, which, s->last.turn));
    if (g2) {
        c->g2_add(sum, sum, &p2);
    } else {
        c->g1_add(sum, sum, &p1);
    }
    s->last.open = false;
    return OK;
}

/* Bytes [at, at + bytes) of a section as it stands on the device, by way of the ring. */
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
        copiers_copy(s->key->backend->copiers, staged, raw->ptr + (at + i - skipped), part);
        TRY(gpu_upload(to + i, staged, part, s->in.stream));
        TRY(gpu_event_record(s->in.sent[piece], s->in.stream));
        s->in.piece = (piece + 1) % LAYOUT_RING_PIECES;
    }
    return OK;
}

/* One MSM over one range. */
struct range_msm {
    enum key_points which;
    uint32_t part, from, count;
    bool first; /* of its range: the others share its pairs */
};
/* The idx-th of the witness (B2, A, B1, L over the first range, then over the next) or of H; false behind the last. */
static bool range_msm_of(struct range_msm *out, const struct backend_slot *s, bool h,
                         uint32_t idx) {
    const struct key_shape *shape = key_shape(s->key->key);
    const struct gpu_layout *l = &s->key->layout;
    uint32_t sections = h ? 1 : 4, range = h ? l->h_part : l->witness_part;
    uint64_t all = h ? shape->domain_size : shape->wires_count,
             from = (uint64_t)(idx / sections) * range;
    if (from >= all) {
        return false;
    }
    *out = (struct range_msm){.which = h ? KEY_H : msm_order[idx % sections],
                              .part = idx / sections,
                              .from = (uint32_t)from,
                              .count = (uint32_t)(all - from < range ? all - from : range),
                              .first = idx % sections == 0};
    return true;
}

/* Points that the key's block does not hold: the copy is under way when this returns. */
static enum err range_bring(struct backend_slot *s, bool h, uint32_t idx) {
    const struct gpu_layout *l = &s->key->layout;
    struct range_msm m;
    if (!range_msm_of(&m, s, h, idx) || !l->streamed[m.which]) {
        return OK;
    }
    bool zkey_layout;
    struct bytes raw = key_points_raw(&zkey_layout, s->key->key, m.which);
    size_t bytes = curve_point_bytes(key_curve(s->key->key), gpu_group_id(m.which));
    TRY(gpu_stream_after(s->in.stream, s->in.consumed[idx % 2]));
    TRY(stream_bytes(s, s->memory + l->incoming[idx % 2].at, &raw,
                     resident_skipped_bytes(s->key, m.which), m.from * bytes, m.count * bytes));
    return gpu_event_record(s->in.arrived[idx % 2], s->in.stream);
}

static enum err msm_in_ranges(struct backend_slot *s, bool h) {
    const struct gpu_layout *l = &s->key->layout;
    struct range_msm m;
    TRY(range_add(s));
    TRY(range_bring(s, h, 0));
    for (uint32_t idx = 0; range_msm_of(&m, s, h, idx); idx++) {
        enum pairs_of pairs = m.part % 2 ? PAIRS_H : PAIRS_WITNESS; /* by turns */
        TRY(begin(s, msm_step(m.which)));
        if (m.first) {
            TRY(pairs_count(s, pairs, h, m.part));
            TRY(gpu_msm_join(&s->streams)); /* they read the pairs that are now overwritten */
            TRY(pairs_sort(s, pairs, h));
            TRY(gpu_event_wait(s->sorted));
        }
        const char *points = s->key->memory + l->points[m.which].at;
        points += (size_t)m.from * curve_point_bytes(key_curve(s->key->key), gpu_group_id(m.which));
        if (l->streamed[m.which]) { /* sorted before that */
            points = s->memory + l->incoming[idx % 2].at;
            TRY(msm_start(s, m.which, &s->pairs[pairs], points, s->in.arrived[idx % 2]));
            TRY(gpu_msm_join(&s->streams));
            TRY(gpu_event_record(s->in.consumed[idx % 2], s->streams.main));
        } else {
            TRY(msm_start(s, m.which, &s->pairs[pairs], points, s->sorted));
        }
        TRY(range_add(s)); /* of the one before, while this one is computed */
        s->last = (struct range_result){true, m.which, &s->pairs[pairs], s->turn};
        s->turn ^= 1;
        TRY(range_bring(s, h, idx + 1));
    }
    return OK;
}

static enum err slot_msm(struct backend_slot *s, enum key_points which) {
    const struct gpu_layout *l = &s->key->layout;
    bool h = which == KEY_H;
    TRY(begin(s, msm_step(which)));
    ASSERT(h || !s->h_begun); /* H comes last */
    s->h_begun = h;
    if (l->parts_count > 1) {
        if (!s->witness_begun) { /* the first brings all others along */
            s->witness_begun = true;
            TRY(msm_in_ranges(s, true));
            TRY(msm_in_ranges(s, false));
        }
        return gpu_event_record(s->done[msm_step(which) + 1], s->streams.tail[0]);
    }
    if (h) {
        if (l->h_pairs.at == l->pairs.at) { /* its pairs replace the witness's */
            TRY(gpu_msm_join(&s->streams));
        }
        TRY(pairs_sort(s, PAIRS_H, true));
    }
    TRY(gpu_event_wait(s->sorted));
    if (s->watch->in_turn) {
        TRY(gpu_msm_wait(&s->streams));
        TRY(gpu_event_record(s->began[which], s->streams.main));
    }
    TRY(msm_start(s, which, &s->pairs[h ? PAIRS_H : PAIRS_WITNESS],
                  s->key->memory + l->points[which].at, s->sorted));
    s->turn ^= 1;
    return gpu_event_record(s->done[msm_step(which) + 1], s->streams.tail[0]);
}

static enum err slot_collect(struct backend_rest **rest, struct sums *out, struct step_times *times,
                             struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    struct backend_rest *left = NULL;
    TRY(begin(s, STEP_MSM_H));
    for (size_t i = 0; l->parts_count == 1 && msm_order[i] != KEY_H; i++) {
        enum key_points which = msm_order[i];
        TRY(gpu_event_wait(s->done[msm_step(which) + 1])); /* while the device is at later ones */
        gpu_msm_finish(sum_of(&s->added, which), &s->pairs[PAIRS_WITNESS], resident_group(l, which),
                       s->pinned + l->results[which].at);
    }
    TRY(gpu_event_wait(s->done[STEP_MSM_H + 1]));
    uint64_t done_ns = clock_ns();
    for (unsigned i = 0; l->parts_count == 1 && i < KEY_POINTS_COUNT; i++) {
        TRY(book_msm(s, msm_order[i], s->done[msm_step(msm_order[i]) + 1]));
    }
    for (unsigned i = 0; l->parts_count == 1 && s->watch->in_turn && i < KEY_POINTS_COUNT; i++) {
        TRY(gpu_event_ns(&s->times.ns[msm_step(i)], s->began[i], s->done[msm_step(i) + 1]));
    }
    TRY(gpu_event_ns(&times->upload_ns, s->done[0], s->uploaded));
    if (l->parts_count > 1) {
        TRY(range_add(s));
    } else {
        const struct gpu_group *group = resident_group(l, KEY_H);
        const char *results = s->pinned + l->results[KEY_H].at;
        left = gpu_rest_take(s->rests, &s->pairs[PAIRS_H], group, results, l->results[KEY_H].bytes);
        if (!left) {
            gpu_msm_finish(s->added.h.w, &s->pairs[PAIRS_H], group, results);
        }
    }
    s->summed = true;
    memcpy(times->ns, s->times.ns, sizeof times->ns);
    times->finish_ns = clock_ns() - done_ns;
    *out = s->added;
    *rest = left;
    return OK;
}

static enum err slot_sums(struct sums *out, struct step_times *times, struct backend_slot *s) {
    struct backend_rest *rest = NULL;
    TRY(slot_collect(&rest, out, times, s));
    gpu_rest_finish(out, &rest);
    return OK;
}

static enum err slot_h_scalars(uint8_t *out, struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    struct gpu_backend *b = s->key->backend;
    if (l->parts_count > 1) { /* the witness's pairs lie over them */
        TRY(rows_run(s));
        TRY(quotient_run(s));
    }
    TRY(gpu_stream_wait(s->streams.main));
    unsigned log2 = s->key->domain.log2;
    for (size_t at = 0; at < l->h.bytes; at += BOUNCE_BYTES) {
        size_t part = l->h.bytes - at < BOUNCE_BYTES ? l->h.bytes - at : BOUNCE_BYTES;
        TRY(gpu_download(b->bounce, s->memory + l->h.at + at, part, b->stream));
        TRY(gpu_stream_wait(b->stream));
        for (size_t i = 0; i < part; i += SCALAR_BYTES) {
            size_t from = (at + i) / SCALAR_BYTES,
                   to = s->key->domain.powers ? key_h_place(from, log2) : from;
            memcpy(out + to * SCALAR_BYTES, (char *)b->bounce + i, SCALAR_BYTES);
        }
    }
    return OK;
}

/* Everything that says something of the witness: the vectors, the digits, what was read back. The device's part is queued before the
 * next job's first step, and nobody waits for it. */
static void slot_wipe(struct backend_slot *s) {
    const struct gpu_layout *l = &s->key->layout;
    if (!s->summed) { /* ended early: kernels and copies may still be at it */
        IGNORE(gpu_msm_wait(&s->streams));
        IGNORE(gpu_stream_wait(s->in.stream));
    }
    for (unsigned i = 0; i < GPU_TURNS; i++) {
        IGNORE(gpu_stream_after(s->streams.main, s->streams.reduced[i]));
    }
    IGNORE(gpu_fill(s->memory, 0, l->wiped_bytes, s->streams.main));
    copiers_wipe(s->key->backend->copiers, s->pinned + l->staged.at, s->staged_bytes);
    mem_wipe(s->pinned + l->counts[0].at, l->pinned_bytes - l->counts[0].at); /* and results */
    mem_wipe(s->pairs, sizeof s->pairs);
    mem_wipe(&s->added, sizeof s->added);
    s->last.open = false;
    s->watch = NULL;
}

/* --- multiples --- */
struct backend_multiplier {
    struct gpu_fixed *fixed; /* owned */
};

static void multiplier_close_gpu(struct backend_multiplier **m) {
    if (*m) {
        gpu_fixed_close(&(*m)->fixed);
        mem_free_ptr(m);
    }
}

static enum err multiplier_open_gpu(struct backend_multiplier **out, struct backend *b,
                                    const struct curve *c, enum point_group group, uint64_t count) {
    AUTO(multiplier_close_gpu) struct backend_multiplier *m = NULL;
    struct gpu_fixed_options options = {.curve = c,
                                        .group = group,
                                        .count = count,
                                        .sm_count = backend_of(b)->device.sm_count,
                                        .copiers = backend_of(b)->copiers};
    TRY(mem_new(&m, 1, sizeof *m));
    TRY(gpu_fixed_open(&m->fixed, &options));
    *out = TAKE(m);
    return OK;
}

static enum err multiply_gpu(uint8_t *out, struct backend_multiplier *m,
                             const struct scalar *scalars, size_t count) {
    return gpu_fixed_multiply(out, m->fixed, scalars, count);
}

static enum err rates_gpu(struct rates *out, struct backend *b, enum curve_id id) {
    return gpu_rates(out, id, backend_of(b)->device.sm_count);
}

static const struct backend_ops gpu_ops = {
    .name = "cuda",
    .close = backend_close_gpu,
    .plan = backend_plan,
    .key_load = key_load_gpu,
    .key_drop = resident_drop,
    .key_load_times = key_load_times_gpu,
    .slot_open = slot_open_gpu,
    .slot_close = slot_close_gpu,
    .witness = slot_witness,
    .evaluate = slot_evaluate,
    .quotient = slot_quotient,
    .msm = slot_msm,
    .sums = slot_sums,
    .collect = slot_collect,
    .finish = gpu_rest_finish,
    .h_scalars = slot_h_scalars,
    .wipe = slot_wipe,
    .multiplier_open = multiplier_open_gpu,
    .multiply = multiply_gpu,
    .multiplier_close = multiplier_close_gpu,
    .pin = backend_pin,
    .unpin = backend_unpin,
    .bring = slot_bring,
    .bring_fits = slot_bring_fits,
    .bring_begin = slot_bring_begin,
    .bring_piece = slot_bring_piece,
    .bring_end = slot_bring_end,
    .unbring = slot_unbring,
    .rates = rates_gpu,
    .transforms = gpu_transforms,
};

static void gpu_backend_drop(struct gpu_backend **b) {
    if (*b) {
        backend_close_gpu(&(*b)->base);
    }
    *b = NULL;
}

enum err gpu_backend_open(struct backend **out, const struct backend_options *options) {
    AUTO(gpu_backend_drop) struct gpu_backend *b = NULL;
    char bus[32];
    TRY(mem_new(&b, 1, sizeof *b));
    b->base.ops = &gpu_ops;
    TRY(gpu_open(&b->device, options->device));
    uint64_t left;
    TRY(gpu_memory_free(&left));
    b->memory_bytes = left > MEMORY_RESERVE ? left - MEMORY_RESERVE : 0;
    if (options->device_memory_max && options->device_memory_max < b->memory_bytes) {
        b->memory_bytes = options->device_memory_max;
    }
    b->key_tables = options->key_tables;
    snprintf(b->base.device_name, sizeof b->base.device_name, "cuda: %.40s %.40s", b->device.name,
             b->device.uuid);
    b->base.memory_bytes = b->base.room_bytes = b->memory_bytes;
    gpu_bus_address(bus, sizeof bus, b->device.idx);
    b->base.numa_node = numa_node_of_pci(bus);
    TRY(gpu_pinned_open(&b->bounce, BOUNCE_BYTES));
    TRY(gpu_stream_open(&b->stream));
    TRY(gpu_loader_open(&b->loader));
    unsigned cores = pool_cores_usable();
    TRY(pool_open(&b->copiers, cores < COPIERS_MAX ? cores : COPIERS_MAX));
    *out = &TAKE(b)->base;
    return OK;
}
