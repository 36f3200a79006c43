/* Who does what next: the schedule of a proof's five sums.
 *
 * A sum is a queue of chunks seen by several bundles of windows. Its state:
 *
 *     input     ────────[ chunk 2 being staged ]
 *     buffers   [chunk 0 ][chunk 1 ]                each freed when its last bundle is through
 *     bundles   0: next 1   1: busy with 0   2: next 1   …
 *
 * A thread looks for the first of these that can start, in the order of sums (heaviest first):
 *
 *     1 finish      all bundles reduced: Horner's rule
 *     2 reduce      a bundle that has seen all chunks
 *     3 accumulate  the free bundle that is furthest behind, if its next chunk is staged (so buffers come free)
 *     4 stage       the next chunk, if a buffer is free; a sum without buckets first takes a set of them
 *
 * Sums in progress hold buckets, so there are only `open_max` sets of them. With two threads the first sum is spread over
 * both, and the second fills the gaps: idle time is one task at the very end. Tried: windows as tasks of one sum after the
 * other with a barrier between them (1.7-1.8 times faster with two threads instead of 1.95).
 *
 * Memory: buckets of open_max sums, buffers of chunk_max points, and per thread the work area of one pass.
 */
#include "node/cpu/msm.h"

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/cpu/carve.h"

#include <stdatomic.h>
#include <string.h>

enum {
    CHUNK_MAX = 65536, /* points; where buckets are many, 32768 is 3 % slower, 131072 no faster */
    CHUNK_ORDINARY = 32768, /* 16384 is 2-4 % slower */
    CHUNK_WHOLE = 16384,    /* a sum of so many points is one chunk */
    CHUNK_LEAST = 4096,     /* not shrunk below */
    ENTRIES_LEAST = 32768,  /* points times windows of a bundle: fills batches of small sums */
    BITS_LEAST = 10,        /* windows are not shrunk below */
    BUFFERS_MAX = 16,
    TASKS_PER_THREAD = 8,         /* wanted, so that the last ones finish together */
    TOTAL_BYTES_LEAST = 48 << 20, /* everything may take this and a third of the points */
};

struct layout {
    unsigned workers_count, buffers_count, open_max, bits_max;
    uint32_t chunk_max, entries_max, lists_max;
    size_t slot_bytes_max, shared_bytes_max;
    size_t buckets_bytes[MSM_ITEMS_MAX]; /* by open set */
};

struct buffer {
    struct msm_chunk chunk;
    int item; /* -1: free */
    uint32_t chunk_idx;
    unsigned bundles_left;
};

struct bundle_state {
    struct msm_bundle bundle;
    uint32_t next_chunk;
    bool busy, reduced;
};

struct sum {
    struct msm_item *item;
    const struct group_ops *group;
    struct msm_windows windows;
    struct bundle_state bundles[MSM_WINDOWS_MAX];
    unsigned bundles_count, reduced_count;
    uint8_t *bits; /* lent from the workspace: windows·bits slots */
    int open_set;  /* -1: has no buckets */
    size_t from;   /* next element of the input */
    uint32_t chunks_count;
    bool staging, input_done, finishing, finished;
    double cost_total, cost_done;
};

struct run {
    const struct cpu_ops *ops;
    const struct msm_watch *watch;
    struct layout layout;
    struct sum sums[MSM_ITEMS_MAX];
    unsigned sums_count, finished_count, order[MSM_ITEMS_MAX];
    struct buffer buffers[BUFFERS_MAX];
    struct msm_worker *workers;
    uint8_t *buckets[MSM_ITEMS_MAX], *filled[MSM_ITEMS_MAX];
    bool set_taken[MSM_ITEMS_MAX];
    bool stopped;     /* [lock] cancelled */
    struct lock lock; /* over sums, buffers, sets while threads run */
    struct condition changed;
};

/* --- Windows --- */

void msm_windows_of(struct msm_windows *out, unsigned bits, unsigned scalar_bits) {
    ASSERT(bits >= MSM_BITS_MIN && bits <= MSM_BITS_MAX);
    *out = (struct msm_windows){
        .bits = bits, .count = (scalar_bits - 1) / bits + 1, .buckets_count = 1u << (bits - 1)};
    ASSERT(out->count <= MSM_WINDOWS_MAX);
    for (unsigned w = 0; w < out->count; w++) {
        unsigned bit = w * bits + bits - 1;
        out->bias[bit / 64] |= UINT64_C(1) << (bit % 64);
    }
}

/* Additions of one window with n points: each once, and two a bucket in use; and what a pass costs anyway. */
static double window_cost(double n, unsigned bits) {
    double buckets = (double)(1u << (bits - 1));
    double used = n < buckets ? n : buckets;
    return n + 1.6 * used + 0.1 * buckets + 40;
}

static double windows_cost(uint64_t nonzero, uint64_t wide, unsigned bits, unsigned scalar_bits) {
    unsigned count = (scalar_bits - 1) / bits + 1, low = 63 / bits + 1;
    return low * window_cost((double)nonzero, bits) +
           (count - low) * window_cost((double)wide, bits);
}

/* The smallest window within 7 % of the best by the count: twice the buckets do not pay for less, as they leave caches. */
unsigned msm_window_bits(uint64_t nonzero, uint64_t wide, unsigned scalar_bits) {
    double cost[MSM_BITS_MAX + 1], least = 0;
    for (unsigned bits = MSM_BITS_MIN; bits <= MSM_BITS_MAX; bits++) {
        cost[bits] = windows_cost(nonzero, wide, bits, scalar_bits);
        least = bits == MSM_BITS_MIN || cost[bits] < least ? cost[bits] : least;
    }
    unsigned best = MSM_BITS_MIN;
    while (cost[best] > 1.07 * least) {
        best++;
    }
    return best;
}

double msm_additions(uint64_t points_count, unsigned scalar_bits) {
    unsigned bits = msm_window_bits(points_count, points_count, scalar_bits);
    return windows_cost(points_count, points_count, bits, scalar_bits);
}

static unsigned bits_planned(const struct layout *l, const struct msm_shape *shape,
                             unsigned scalar_bits, struct msm_options options) {
    unsigned bits = msm_window_bits(shape->points_count, shape->points_count, scalar_bits);
    return options.window_bits ? options.window_bits : bits < l->bits_max ? bits : l->bits_max;
}

/* --- Layout --- */

static void carve_workers(struct run *r, struct carver *c) {
    const struct layout *l = &r->layout;
    const size_t entries = l->entries_max, lists = l->lists_max;
    for (unsigned i = 0; i < l->workers_count; i++) {
        struct msm_worker w = {.entries_max = l->entries_max, .lists_max = l->lists_max};
        w.slots = carve(c, (entries > lists ? entries : lists) + lists + 8, l->slot_bytes_max);
        w.shared = carve(c, 1, l->shared_bytes_max);
        w.refs = carve(c, entries + lists + 8, sizeof(uint32_t));
        w.pair_a = carve(c, entries / 2 + lists / 2 + 16, sizeof(uint32_t));
        w.pair_b = carve(c, entries / 2 + lists / 2 + 16, sizeof(uint32_t));
        w.len = carve(c, lists, sizeof(uint32_t));
        w.start = carve(c, lists, sizeof(uint32_t));
        w.active = carve(c, lists, sizeof(uint32_t));
        w.digits = carve(c, entries, sizeof(int16_t));
        if (c->base) {
            w.cancel = r->watch->cancel;
            r->workers[i] = w;
        }
    }
}

/* Everything a run points to; r->layout, ops and watch are set. */
static void carve_run(struct run *r, struct carver *c, size_t sums_count) {
    const struct layout *l = &r->layout;
    r->workers = carve(c, l->workers_count, sizeof *r->workers);
    carve_workers(r, c);
    for (unsigned i = 0; i < l->buffers_count; i++) {
        struct msm_chunk *chunk = &r->buffers[i].chunk;
        chunk->capacity = l->chunk_max;
        chunk->points = carve(c, l->chunk_max, l->slot_bytes_max);
        chunk->biased = carve(c, (size_t)l->chunk_max * MSM_BIASED_WORDS, sizeof(uint64_t));
        r->buffers[i].item = -1;
    }
    for (unsigned i = 0; i < l->open_max; i++) {
        r->buckets[i] = carve(c, l->buckets_bytes[i], 1);
        r->filled[i] = carve(c, l->buckets_bytes[i] / r->ops->group[GROUP_G1].slot_bytes, 1);
    }
    for (size_t i = 0; i < sums_count; i++) {
        r->sums[i].bits = carve(c, r->ops->scalar_bits + MSM_BITS_MAX, l->slot_bytes_max);
    }
}

/* What follows from threads, chunk and largest window. */
static void layout_rest(struct layout *l, const struct cpu_ops *ops, const struct msm_shape *shapes,
                        size_t shapes_count, struct msm_options options) {
    size_t sizes[MSM_ITEMS_MAX];
    uint32_t buckets_most = 0;
    for (size_t i = 0; i < shapes_count; i++) {
        const struct group_ops *group = &ops->group[shapes[i].group];
        struct msm_windows w;
        msm_windows_of(&w, bits_planned(l, &shapes[i], ops->scalar_bits, options),
                       ops->scalar_bits);
        sizes[i] = (size_t)w.count * (w.buckets_count + 1) * group->slot_bytes;
        buckets_most = buckets_most > w.buckets_count ? buckets_most : w.buckets_count;
    }
    l->lists_max = buckets_most + 1;
    l->lists_max = l->lists_max > l->entries_max / 4 ? l->lists_max : l->entries_max / 4;
    l->open_max = 2 + l->workers_count / 16;
    l->open_max = l->open_max < shapes_count ? l->open_max : (unsigned)shapes_count;
    l->buffers_count = l->open_max + 1 < BUFFERS_MAX ? l->open_max + 1 : BUFFERS_MAX;
    /* The k-th set of buckets need only hold the k-th largest sum, as larger sums come first. */
    for (size_t set = 0; set < l->open_max; set++) {
        size_t largest = set;
        for (size_t i = set; i < shapes_count; i++) {
            largest = sizes[i] > sizes[largest] ? i : largest;
        }
        l->buckets_bytes[set] = sizes[largest];
        sizes[largest] = sizes[set];
    }
}

/* One step less memory, the cheapest first: chunks, windows, threads. False: there is nothing left to take. */
static bool layout_shrink(struct layout *l) {
    if (l->chunk_max > CHUNK_WHOLE || (l->bits_max <= BITS_LEAST && l->chunk_max > CHUNK_LEAST)) {
        l->chunk_max = (l->chunk_max / 2 + 7) & ~7u;
        l->entries_max = l->chunk_max;
    } else if (l->bits_max > BITS_LEAST) {
        l->bits_max--;
    } else if (l->workers_count > 1) {
        l->workers_count--;
    } else {
        return false;
    }
    return true;
}

/* Sets r->layout and returns the size of the workspace. */
static size_t layout_of(struct run *r, const struct msm_shape *shapes, size_t shapes_count,
                        unsigned threads, struct msm_options options) {
    const struct cpu_ops *ops = r->ops;
    struct layout *l = &r->layout;
    uint64_t most = 1, allowed = 0;
    ASSERT(shapes_count > 0 && shapes_count <= MSM_ITEMS_MAX && threads > 0);
    *l = (struct layout){.workers_count = threads, .bits_max = MSM_BITS_MAX};
    for (size_t i = 0; i < shapes_count; i++) {
        const struct group_ops *group = &ops->group[shapes[i].group];
        most = most > shapes[i].points_count ? most : shapes[i].points_count;
        allowed += shapes[i].points_count * group->slot_bytes / 3;
        l->slot_bytes_max =
            l->slot_bytes_max > group->slot_bytes ? l->slot_bytes_max : group->slot_bytes;
        l->shared_bytes_max =
            l->shared_bytes_max > group->shared_bytes ? l->shared_bytes_max : group->shared_bytes;
    }
    allowed += TOTAL_BYTES_LEAST;
    uint64_t chunk = most <= CHUNK_WHOLE         ? most
                     : most / 2 < CHUNK_WHOLE    ? CHUNK_WHOLE
                     : most / 2 < CHUNK_ORDINARY ? most / 2
                     : most / 8 < CHUNK_ORDINARY ? CHUNK_ORDINARY
                     : most / 8 < CHUNK_MAX      ? most / 8
                                                 : CHUNK_MAX;
    chunk = options.chunk_max && chunk > options.chunk_max ? options.chunk_max : chunk;
    l->chunk_max = ((uint32_t)chunk + 7) & ~7u;
    l->entries_max = l->chunk_max > ENTRIES_LEAST ? l->chunk_max : ENTRIES_LEAST;
    for (;;) {
        struct carver c = {0};
        carve(&c, 1, sizeof *r);
        layout_rest(l, ops, shapes, shapes_count, options);
        carve_run(r, &c, shapes_count);
        if (c.used <= allowed || options.window_bits || !layout_shrink(l)) {
            return c.used;
        }
    }
}

size_t msm_workspace_bytes(const struct cpu_ops *ops, const struct msm_shape *shapes,
                           size_t shapes_count, unsigned threads_count,
                           struct msm_options options) {
    struct run measured = {.ops = ops};
    return layout_of(&measured, shapes, shapes_count, threads_count, options);
}

/* --- Setting up --- */

static double sum_cost(const struct cpu_ops *ops, const struct msm_item *item, unsigned bits) {
    return (item->group == GROUP_G2 ? 3 : 1) *
           windows_cost(item->nonzero_count, item->wide_count, bits, ops->scalar_bits);
}

static void sum_init(struct run *r, struct sum *s, struct msm_item *item, unsigned bits) {
    s->item = item;
    s->group = &r->ops->group[item->group];
    s->open_set = -1;
    item->busy_ns = 0;
    msm_windows_of(&s->windows, bits, r->ops->scalar_bits);
    s->cost_total = sum_cost(r->ops, item, bits);
}

/* Splits a sum's windows into bundles of about `target` cost, as far as the work areas hold them. */
static void sum_split(const struct run *r, struct sum *s, double target) {
    uint64_t points = s->item->source.count;
    uint32_t per_window = points < r->layout.chunk_max ? (uint32_t)points : r->layout.chunk_max;
    per_window = per_window ? per_window : 1;
    unsigned most = r->layout.entries_max / per_window;
    unsigned by_lists = r->layout.lists_max / (s->windows.buckets_count + 1);
    most = most < by_lists ? most : by_lists;
    double wanted = target * s->windows.count / (s->cost_total + 1);
    unsigned count = wanted < 1 ? 1 : wanted > most ? most : (unsigned)wanted;
    count = count > s->windows.count ? s->windows.count : count;
    unsigned bundles = (s->windows.count + count - 1) / count;
    for (unsigned i = 0, first = 0; i < bundles; i++) { /* even shares */
        unsigned share = (s->windows.count - first + bundles - i - 1) / (bundles - i);
        s->bundles[i].bundle = (struct msm_bundle){.first = first, .count = share};
        first += share;
    }
    s->bundles_count = bundles;
}

static void run_init(struct run *r, struct msm_item *items, const struct msm_shape *shapes,
                     size_t count, struct msm_options options) {
    double total = 0;
    r->sums_count = (unsigned)count;
    for (unsigned i = 0; i < count; i++) {
        ASSERT(items[i].source.count <= shapes[i].points_count &&
               items[i].group == shapes[i].group);
        unsigned planned = bits_planned(&r->layout, &shapes[i], r->ops->scalar_bits, options);
        unsigned bits =
            msm_window_bits(items[i].nonzero_count, items[i].wide_count, r->ops->scalar_bits);
        bits = options.window_bits ? options.window_bits : bits < planned ? bits : planned;
        sum_init(r, &r->sums[i], &items[i], bits);
        total += r->sums[i].cost_total;
        r->order[i] = i;
    }
    for (unsigned i = 0; i < count; i++) {
        sum_split(r, &r->sums[i], total / (r->layout.workers_count * (double)TASKS_PER_THREAD));
        for (unsigned k = i; k > 0;
             k--) { /* sets are sized for this order: most bucket bytes first */
            const struct sum *a = &r->sums[r->order[k - 1]], *b = &r->sums[r->order[k]];
            size_t bytes_a = a->group->slot_bytes * a->windows.buckets_count * a->windows.count;
            size_t bytes_b = b->group->slot_bytes * b->windows.buckets_count * b->windows.count;
            if (bytes_a >= bytes_b) {
                break;
            }
            unsigned t = r->order[k];
            r->order[k] = r->order[k - 1];
            r->order[k - 1] = t;
        }
    }
}

/* --- Tasks --- */

enum task_kind { TASK_WAIT, TASK_STOP, TASK_STAGE, TASK_ACCUMULATE, TASK_REDUCE, TASK_FINISH };
struct task {
    enum task_kind kind;
    unsigned sum_idx;
    struct sum *sum;
    struct bundle_state *bundle;
    struct buffer *buffer;
};

static struct buffer *buffer_of(struct run *r, unsigned sum_idx, uint32_t chunk_idx) {
    for (unsigned i = 0; i < r->layout.buffers_count; i++) {
        if (r->buffers[i].item == (int)sum_idx && r->buffers[i].chunk_idx == chunk_idx) {
            return &r->buffers[i];
        }
    }
    assert_fail("a staged chunk has a buffer", __FILE__, __LINE__);
}

static struct buffer *buffer_free(struct run *r) {
    for (unsigned i = 0; i < r->layout.buffers_count; i++) {
        if (r->buffers[i].item < 0) {
            return &r->buffers[i];
        }
    }
    return NULL;
}

/* Gives a sum buckets, all empty. */
static bool sum_open(struct run *r, struct sum *s) {
    size_t lists = (size_t)s->windows.count * (s->windows.buckets_count + 1);
    for (unsigned set = r->layout.open_max; set-- > 0;) { /* the smallest that is large enough */
        if (r->set_taken[set] || lists * s->group->slot_bytes > r->layout.buckets_bytes[set]) {
            continue;
        }
        r->set_taken[set] = true;
        s->open_set = (int)set;
        for (unsigned i = 0; i < s->bundles_count; i++) {
            struct msm_bundle *b = &s->bundles[i].bundle;
            size_t first = (size_t)b->first * (s->windows.buckets_count + 1);
            b->buckets = r->buckets[set] + first * s->group->slot_bytes;
            b->filled = r->filled[set] + first;
        }
        memset(r->filled[set], 0, lists);
        return true;
    }
    return false;
}

static bool pick_from(struct task *t, struct run *r, unsigned sum_idx) {
    struct sum *s = &r->sums[sum_idx];
    *t = (struct task){.sum_idx = sum_idx, .sum = s};
    if (s->finished || s->finishing) {
        return false;
    }
    if (s->bundles_count == s->reduced_count) {
        s->finishing = true;
        t->kind = TASK_FINISH;
        return true;
    }
    struct bundle_state *behind = NULL;
    for (unsigned i = 0; i < s->bundles_count; i++) {
        struct bundle_state *b = &s->bundles[i];
        if (b->busy || b->reduced) {
            continue;
        }
        if (s->input_done && b->next_chunk == s->chunks_count) {
            b->busy = true;
            t->kind = TASK_REDUCE;
            t->bundle = b;
            return true;
        }
        if (b->next_chunk < s->chunks_count && (!behind || b->next_chunk < behind->next_chunk)) {
            behind = b;
        }
    }
    if (behind) {
        behind->busy = true;
        t->kind = TASK_ACCUMULATE;
        t->bundle = behind;
        t->buffer = buffer_of(r, sum_idx, behind->next_chunk);
        return true;
    }
    struct buffer *buffer = buffer_free(r);
    if (s->staging || s->input_done || !buffer || (s->open_set < 0 && !sum_open(r, s))) {
        return false;
    }
    s->staging = true;
    buffer->item = (int)sum_idx;
    buffer->chunk_idx = s->chunks_count;
    t->kind = TASK_STAGE;
    t->buffer = buffer;
    return true;
}

static void pick(struct task *t, struct run *r) {
    t->kind = r->stopped || r->finished_count == r->sums_count ? TASK_STOP : TASK_WAIT;
    for (unsigned i = 0; i < r->sums_count && t->kind == TASK_WAIT; i++) {
        if (!pick_from(t, r, r->order[i])) {
            t->kind = TASK_WAIT;
        }
    }
}

/* Without the lock. False: cancelled. */
static bool task_do(const struct task *t, struct msm_worker *w) {
    struct sum *s = t->sum;
    switch (t->kind) {
    case TASK_STAGE:
        s->from = s->group->stage(&t->buffer->chunk, &s->item->source, &s->windows, s->from);
        return true;
    case TASK_ACCUMULATE:
        return s->group->accumulate(&t->bundle->bundle, w, &t->buffer->chunk, &s->windows);
    case TASK_REDUCE:
        return s->group->reduce(s->bits, &t->bundle->bundle, w, &s->windows);
    case TASK_FINISH:
        s->group->finish(s->item->out, s->bits, &s->windows);
        return true;
    default:
        assert_fail("a task does something", __FILE__, __LINE__);
    }
}

/* Under the lock. */
static void task_done(struct run *r, const struct task *t) {
    struct sum *s = t->sum;
    switch (t->kind) {
    case TASK_STAGE:
        s->staging = false;
        s->input_done = s->from == s->item->source.count;
        if (t->buffer->chunk.wide_count + t->buffer->chunk.small_count == 0) {
            t->buffer->item = -1;
        } else {
            t->buffer->bundles_left = s->bundles_count;
            s->chunks_count++;
        }
        break;
    case TASK_ACCUMULATE:
        t->bundle->busy = false;
        t->bundle->next_chunk++;
        if (--t->buffer->bundles_left == 0) {
            t->buffer->item = -1;
        }
        break;
    case TASK_REDUCE:
        t->bundle->busy = false;
        t->bundle->reduced = true;
        if (++s->reduced_count == s->bundles_count) {
            r->set_taken[s->open_set] = false;
        }
        break;
    case TASK_FINISH:
        s->finished = true;
        r->finished_count++;
        break;
    default:
        break;
    }
}

/* A sum's work is where its input has been looked at, as far as anybody can see from here. */
static void report(const struct run *r, const struct task *t) {
    const struct sum *s = t->sum;
    if (!r->watch->progress) {
        return;
    }
    double steps = 0, total = (double)s->bundles_count * ((double)s->item->source.count + 1);
    double per_chunk = s->chunks_count ? (double)s->from / s->chunks_count : 0;
    for (unsigned i = 0; i < s->bundles_count; i++) {
        steps += s->bundles[i].next_chunk * per_chunk;
    }
    r->watch->progress(r->watch->progress_ctx, t->sum_idx, s->finished ? 1 : steps / total);
}

static void work(void *ctx, size_t idx, unsigned worker_idx) {
    (void)worker_idx;
    struct run *r = ctx;
    struct task t;
    lock_take(&r->lock);
    for (pick(&t, r); t.kind != TASK_STOP; pick(&t, r)) {
        if (t.kind == TASK_WAIT) {
            condition_wait(&r->changed, &r->lock);
            continue;
        }
        lock_give(&r->lock);
        uint64_t start_ns = clock_ns();
        bool done = task_do(&t, &r->workers[idx]);
        uint64_t spent_ns = clock_ns() - start_ns;
        lock_take(&r->lock);
        t.sum->item->busy_ns += spent_ns;
        if (!done || atomic_load_explicit(r->watch->cancel, memory_order_relaxed)) {
            r->stopped = true;
        } else {
            task_done(r, &t);
            report(r, &t);
        }
        condition_wake_all(&r->changed);
    }
    lock_give(&r->lock);
}

enum err msm_run(struct msm_item *items, const struct cpu_ops *ops, const struct msm_shape *shapes,
                 size_t items_count, struct pool *pool, struct msm_options options,
                 struct bytes_mut workspace, const struct msm_watch *watch) {
    struct carver c = {.base = workspace.ptr};
    struct run *r = carve(&c, 1, sizeof *r);
    ASSERT(c.used <= workspace.len);
    memset(r, 0, sizeof *r);
    r->ops = ops;
    r->watch = watch;
    size_t bytes = layout_of(r, shapes, items_count, pool_threads_count(pool), options);
    ASSERT(bytes <= workspace.len);
    carve_run(r, &c, items_count);
    ASSERT(c.used == bytes);
    run_init(r, items, shapes, items_count, options);
    lock_init(&r->lock, LOCK_BACKEND);
    condition_init(&r->changed);
    pool_for(pool, r->layout.workers_count, work, r);
    condition_done(&r->changed);
    lock_done(&r->lock);
    REQUIRE(!r->stopped, E_CANCELLED, "the job was cancelled during the sums over the key");
    return OK;
}
