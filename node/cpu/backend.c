/* The CPU as a backend: what is kept per key, what per job, and the order of work.
 *
 *   key    tables of the domain, zones of the terms                    built once; points and terms stay in the mapping
 *   slot   h │ a b c, then in the same place the work area of the sums
 *
 * Both are one block each, carved by the code that measures them, so the plan is what is taken. Nothing allocates after
 * slot_open. a, b and c are dead when the sums begin, which is why they share their place.
 *
 * Step times: witness, evaluate and quotient are walls. The five sums run at once, so their common wall is divided in
 * proportion to the time that threads spent in each.
 */
#include "node/cpu/cpu.h"
#include "node/cpu/fixed.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/cpu/carve.h"
#include "node/cpu/msm.h"
#include "node/cpu/ntt_body.h"
#include "node/cpu/quotient.h"
#include "node/cpu/rate.h"
#include "node/cpu/rows.h"
#include "node/cpu/tier.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
    TASKS_PER_THREAD = 4,
    ROWS_LEAST = 1024,     /* of a task of `evaluate` */
    ROWS_MOST = 1 << 18,   /* well under 100 ms, so that a cancelled job is noticed */
    SCALARS_LEAST = 16384, /* of a task that counts the witness */
    WIPE_BYTES = 4 << 20,  /* of a task that wipes */
    HUGE_PAGE_BYTES = 2 << 20,
    PERMILLE_QUOTIENT = 40, /* where steps begin, as groth16_prove has it */
    PERMILLE_SUMS = 200,
    PERMILLE_ASSEMBLE = 980,
};

struct cpu_backend {
    struct backend base;
    struct pool *pool; /* owned */
    const char *tier;
    uint64_t bytes; /* of keys and slots */
};

struct backend_key {
    struct cpu_backend *backend; /* lent */
    struct key *key;             /* shared (ref) */
    const struct cpu_ops *ops;
    struct domain domain;
    struct matrix_zone *zones;
    uint64_t bytes;
};

struct backend_slot {
    struct backend_key *key; /* lent */
    uint64_t bytes;
    uint8_t *h;
    void *a, *b, *c;
    struct bytes_mut sums_area;
    /* Of the job: */
    const struct witness *witness; /* lent */
    struct job_watch *watch;       /* lent */
    uint64_t nonzero_count, wide_count;
    bool evaluated, has_h, has_sums;
    struct sums sums;
    struct step_times times;
    double sums_done[KEY_POINTS_COUNT];
};

static const enum prove_step step_of[KEY_POINTS_COUNT] = {
    STEP_MSM_A, STEP_MSM_B1, STEP_MSM_B2, STEP_MSM_L, STEP_MSM_H,
};

static struct cpu_backend *own(struct backend *b) {
    return (struct cpu_backend *)b;
}

static enum point_group group_of(enum key_points which) {
    return which == KEY_B2 ? GROUP_G2 : GROUP_G1;
}

/* --- Sizes --- */

static void shapes_of(struct msm_shape out[KEY_POINTS_COUNT], const struct key_shape *shape) {
    for (int k = 0; k < KEY_POINTS_COUNT; k++) {
        out[k] = (struct msm_shape){group_of((enum key_points)k), shape->points_count[k]};
    }
}

static size_t zones_count(const struct key_shape *shape) {
    if (shape->format == KEY_FORMAT_NATIVE) {
        return 0; /* rows need none */
    }
    return (shape->terms_count[0] + shape->terms_count[1] + MATRIX_ZONE_TERMS - 1) /
           MATRIX_ZONE_TERMS;
}

/* Returns where the domain's tables go; the key itself is at the front. */
static void *carve_key(struct backend_key **key, struct matrix_zone **zones, struct carver *c,
                       const struct cpu_ops *ops, const struct key_shape *shape) {
    *key = carve(c, 1, sizeof **key);
    *zones = carve(c, zones_count(shape), sizeof **zones);
    return carve(c, 1, ops->domain->tables_bytes(shape->domain_log2));
}

/* Measures or fills in `s`, which itself is the first piece. */
static void carve_slot(struct backend_slot *s, struct carver *c, const struct cpu_ops *ops,
                       const struct key_shape *shape, unsigned threads) {
    const size_t vector_bytes =
        ntt_vector_bytes(ops->domain->body(shape->domain_log2), shape->domain_log2);
    struct msm_shape shapes[KEY_POINTS_COUNT];
    shapes_of(shapes, shape);
    s->h = carve(c, shape->domain_size, SCALAR_BYTES);
    struct carver rows = *c;
    s->a = carve(&rows, 1, vector_bytes);
    s->b = carve(&rows, 1, vector_bytes);
    s->c = carve(&rows, 1, vector_bytes);
    s->sums_area.len =
        msm_workspace_bytes(ops, shapes, KEY_POINTS_COUNT, threads, (struct msm_options){0});
    s->sums_area.ptr = carve(c, 1, s->sums_area.len);
    c->used = c->used > rows.used ? c->used : rows.used;
}

/* --- Plan --- */

/* Nanoseconds measured on one core of a Sapphire Rapids class machine at 3 GHz: an addition in G1 and a butterfly.
 * Additions in G2 count as three. */
static const struct speed {
    const char *tier;
    double addition[2], butterfly; /* additions by curve */
} speeds[] = {
    {"ifma", {43, 88}, 5.5},
    {"adx", {170, 310}, 30},
    {"portable", {210, 455}, 40},
};

static uint64_t expected_ns(const struct cpu_ops *ops, const struct key_shape *shape,
                            unsigned threads) {
    const struct speed *speed = NULL;
    for (size_t i = 0; i < COUNT_OF(speeds); i++) {
        speed = strcmp(speeds[i].tier, ops->tier) == 0 ? &speeds[i] : speed;
    }
    if (!speed) {
        return 0;
    }
    double additions = 0;
    for (int k = 0; k < KEY_POINTS_COUNT; k++) {
        additions +=
            (k == KEY_B2 ? 3 : 1) * msm_additions(shape->points_count[k], ops->scalar_bits);
    }
    double butterflies = 3.0 * (double)shape->domain_size * shape->domain_log2;
    double ns =
        additions * speed->addition[ops->curve == CURVE_BLS12_381] + butterflies * speed->butterfly;
    return (uint64_t)(ns / threads);
}

static FALLIBLE check_shape(const struct key_shape *shape) {
    REQUIRE(shape->format != KEY_FORMAT_BELLMAN, E_USAGE,
            "a bellman key holds neither matrices nor densities, so a witness cannot be proved "
            "with it; import it with its circuit: bellows key import KEY --circuit FILE");
    REQUIRE(shape->domain_log2 >= 1 && shape->domain_log2 <= DOMAIN_LOG2_MAX, E_LIMIT,
            "a domain of 2^%u points; the CPU backend takes 2 to 2^%d", shape->domain_log2,
            DOMAIN_LOG2_MAX);
    const struct curve *curve = curve_by_id(shape->curve);
    REQUIRE(curve && shape->domain_log2 <= curve->two_adicity, E_RANGE,
            "a domain of 2^%u points; the curve has 2^%u at most", shape->domain_log2,
            curve ? curve->two_adicity : 0);
    return OK;
}

static void plan_for(struct plan *out, const struct key_shape *shape, const struct cpu_ops *ops,
                     unsigned threads) {
    struct backend_key *key = NULL;
    struct matrix_zone *zones = NULL;
    struct backend_slot measured;
    struct carver of_key = {0}, of_slot = {0};
    carve_key(&key, &zones, &of_key, ops, shape);
    carve(&of_slot, 1, sizeof measured);
    carve_slot(&measured, &of_slot, ops, shape, threads);
    *out = (struct plan){.host_bytes = of_key.used + of_slot.used,
                         .mapped_bytes = shape->file_bytes,
                         .key_bytes_resident = of_key.used,
                         .expected_ns = expected_ns(ops, shape, threads),
                         .chunks_count = 1};
}

enum err cpu_plan(struct plan *out, const struct key_shape *shape, unsigned threads_count,
                  const char *tier) {
    const struct cpu_ops *ops = NULL;
    TRY(check_shape(shape));
    TRY(tier_find(&ops, shape->curve, tier));
    plan_for(out, shape, ops, threads_count ? threads_count : pool_cores_usable());
    return OK;
}

static enum err cpu_backend_plan(struct plan *out, struct backend *b,
                                 const struct key_shape *shape) {
    return cpu_plan(out, shape, pool_threads_count(own(b)->pool), own(b)->tier);
}

/* Large blocks in huge pages: a proof touches each page once, and 4 KiB at a time would fault for a tenth of its time. */
static void advise_huge(void *block, size_t bytes) {
    uintptr_t from = ((uintptr_t)block + HUGE_PAGE_BYTES - 1) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1);
    uintptr_t to = ((uintptr_t)block + bytes) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1);
    if (to > from) {
        (void)madvise((void *)from, to - from, MADV_HUGEPAGE); /* a hint */
    }
}

/* --- Keys --- */

struct zone_job {
    struct bytes terms;
    size_t terms_count;
    struct matrix_zone *zones;
};

static void zone_task(void *ctx, size_t idx, unsigned worker_idx) {
    const struct zone_job *job = ctx;
    (void)worker_idx;
    struct matrix_zone zone = {UINT32_MAX, 0};
    for (size_t i = 0; i < MATRIX_ZONE_TERMS; i++) {
        size_t at = idx * MATRIX_ZONE_TERMS + i;
        if (at == job->terms_count) {
            break;
        }
        uint32_t row = load_u32le(job->terms.ptr + at * KEY_TERM_BYTES + sizeof(uint32_t));
        zone.row_least = row < zone.row_least ? row : zone.row_least;
        zone.row_most = row > zone.row_most ? row : zone.row_most;
    }
    job->zones[idx] = zone;
}

static void cpu_key_drop(struct backend_key **address) {
    struct backend_key *k = *address;
    if (k) {
        k->backend->bytes -= k->bytes;
        key_unref(&k->key);
        mem_free(k);
        *address = NULL;
    }
}

static enum err cpu_key_load(struct backend_key **out, struct backend *b, struct key *key) {
    struct cpu_backend *backend = own(b);
    const struct key_shape *shape = key_shape(key);
    const struct cpu_ops *ops = NULL;
    struct carver c = {0};
    struct backend_key *k = NULL;
    struct matrix_zone *zones = NULL;
    void *block = NULL;
    TRY(check_shape(shape));
    TRY(tier_find(&ops, shape->curve, backend->tier));
    carve_key(&k, &zones, &c, ops, shape);
    TRY(mem_new_raw(&block, c.used, 1));
    advise_huge(block, c.used);
    c = (struct carver){.base = block};
    void *tables = carve_key(&k, &zones, &c, ops, shape);
    *k = (struct backend_key){
        .backend = backend, .key = key_ref(key), .ops = ops, .zones = zones, .bytes = c.used};
    backend->bytes += k->bytes;
    ops->domain->build(&k->domain, tables, shape->domain_log2, shape->h_basis, backend->pool);
    struct zone_job job = {.terms = key_terms_raw(key),
                           .terms_count = shape->terms_count[0] + shape->terms_count[1],
                           .zones = zones};
    ASSERT(shape->format == KEY_FORMAT_NATIVE || job.terms.len == job.terms_count * KEY_TERM_BYTES);
    pool_for(backend->pool, zones_count(shape), zone_task, &job);
    *out = k;
    return OK;
}

/* --- Slots --- */

static enum err cpu_slot_open(struct backend_slot **out, struct backend_key *key) {
    const struct key_shape *shape = key_shape(key->key);
    const unsigned threads = pool_threads_count(key->backend->pool);
    struct backend_slot measured, *s = NULL;
    struct carver c = {0};
    void *block = NULL;
    carve(&c, 1, sizeof *s);
    carve_slot(&measured, &c, key->ops, shape, threads);
    TRY(mem_new_raw(&block, c.used, 1));
    advise_huge(block, c.used);
    const uint64_t bytes = c.used;
    c = (struct carver){.base = block};
    s = carve(&c, 1, sizeof *s);
    *s = (struct backend_slot){.key = key, .bytes = bytes};
    carve_slot(s, &c, key->ops, shape, threads);
    ASSERT(c.used == bytes);
    key->backend->bytes += bytes;
    *out = s;
    return OK;
}

struct wipe_job {
    uint8_t *from;
    size_t len;
};

static void wipe_task(void *ctx, size_t idx, unsigned worker_idx) {
    const struct wipe_job *job = ctx;
    (void)worker_idx;
    size_t at = idx * WIPE_BYTES, left = job->len - at;
    mem_wipe(job->from + at, left < WIPE_BYTES ? left : WIPE_BYTES);
}

/* Everything behind the slot's own struct is made of the witness. */
static void cpu_wipe(struct backend_slot *s) {
    if (s->witness) {
        struct wipe_job job = {s->h, (size_t)((uint8_t *)s + s->bytes - s->h)};
        pool_for(s->key->backend->pool, (job.len + WIPE_BYTES - 1) / WIPE_BYTES, wipe_task, &job);
    }
    mem_wipe(&s->sums, sizeof s->sums);
    s->witness = NULL;
    s->watch = NULL;
    s->nonzero_count = s->wide_count = 0;
    s->evaluated = s->has_h = s->has_sums = false;
}

static void cpu_slot_close(struct backend_slot **address) {
    struct backend_slot *s = *address;
    if (s) {
        cpu_wipe(s);
        s->key->backend->bytes -= s->bytes;
        mem_free(s);
        *address = NULL;
    }
}

/* --- A job --- */

static void sign_of_life(struct backend_slot *s, enum prove_step step, unsigned permille) {
    atomic_store_explicit(&s->watch->step, (int)step, memory_order_relaxed);
    atomic_store_explicit(&s->watch->permille, permille, memory_order_relaxed);
    atomic_store_explicit(&s->watch->progress_ns, clock_ns(), memory_order_relaxed);
}

static FALLIBLE not_cancelled(const struct backend_slot *s, enum prove_step step) {
    REQUIRE(!atomic_load_explicit(&s->watch->cancel, memory_order_relaxed), E_CANCELLED,
            "the job was cancelled during step %s", prove_step_name(step));
    return OK;
}

struct count_job {
    const uint8_t *values;
    size_t count, tasks;
    _Atomic uint64_t nonzero, wide;
};

static void count_task(void *ctx, size_t idx, unsigned worker_idx) {
    struct count_job *job = ctx;
    uint64_t nonzero = 0, wide = 0;
    (void)worker_idx;
    for (size_t i = job->count * idx / job->tasks; i < job->count * (idx + 1) / job->tasks; i++) {
        uint64_t w[4];
        memcpy(w, job->values + SCALAR_BYTES * i, sizeof w);
        nonzero += (w[0] | w[1] | w[2] | w[3]) != 0;
        wide += (w[1] | w[2] | w[3] | w[0] >> 48) != 0;
    }
    atomic_fetch_add_explicit(&job->nonzero, nonzero, memory_order_relaxed);
    atomic_fetch_add_explicit(&job->wide, wide, memory_order_relaxed);
}

/* The values stay where they are; what is taken from them is how many are zero or small, to choose windows by. */
static enum err cpu_witness(struct backend_slot *s, const struct witness *w,
                            struct job_watch *watch) {
    const struct key_shape *shape = key_shape(s->key->key);
    uint64_t start_ns = clock_ns();
    ASSERT(w->count == shape->wires_count);
    s->witness = w;
    s->watch = watch;
    s->evaluated = s->has_h = s->has_sums = false;
    memset(&s->times, 0, sizeof s->times);
    struct count_job job = {
        .values = w->values, .count = w->count, .tasks = w->count / SCALARS_LEAST + 1};
    pool_for(s->key->backend->pool, job.tasks, count_task, &job);
    s->nonzero_count = atomic_load(&job.nonzero);
    s->wide_count = atomic_load(&job.wide);
    s->times.ns[STEP_WITNESS] = clock_ns() - start_ns;
    return OK;
}

struct evaluate_job {
    const struct cpu_ops *ops;
    struct matrix matrix;
    const struct key *native;    /* NULL: by the matrix's terms */
    const struct witness *given; /* NULL: nothing was evaluated before */
    size_t tasks;
    const _Atomic int *cancel;
};

static void evaluate_task(void *ctx, size_t idx, unsigned worker_idx) {
    const struct evaluate_job *job = ctx;
    (void)worker_idx;
    if (!atomic_load_explicit(job->cancel, memory_order_relaxed)) {
        const size_t rows = job->matrix.rows_count, from = rows * idx / job->tasks,
                     to = rows * (idx + 1) / job->tasks;
        if (job->given) {
            const struct witness *w = job->given;
            struct rows_given a = {w->a, w->rows_count, job->matrix.rows[0]},
                              b = {w->b, w->rows_count, job->matrix.rows[1]};
            job->ops->rows->enter(&a, from, to);
            job->ops->rows->enter(&b, from, to);
        } else if (job->native) {
            rows_multiply(job->ops, job->native, &job->matrix, from, to);
        } else {
            job->ops->matrix->evaluate(&job->matrix, from, to);
        }
    }
}

static enum err cpu_evaluate(struct backend_slot *s) {
    const struct key_shape *shape = key_shape(s->key->key);
    const struct ntt_body *body = s->key->ops->domain->body(shape->domain_log2);
    struct pool *pool = s->key->backend->pool;
    uint64_t start_ns = clock_ns();
    ASSERT(s->witness);
    struct evaluate_job job = {
        .ops = s->key->ops,
        .matrix = {.terms = key_terms_raw(s->key->key),
                   .terms_count = shape->terms_count[0] + shape->terms_count[1],
                   .witness = s->witness->values,
                   .wires_count = shape->wires_count,
                   .zones = s->key->zones,
                   .rows = {ntt_rows(body, s->a, shape->domain_log2),
                            ntt_rows(body, s->b, shape->domain_log2)},
                   .rows_count = shape->domain_size},
        .native = shape->format == KEY_FORMAT_NATIVE ? s->key->key : NULL,
        .given = s->witness->a ? s->witness : NULL,
        .cancel = &s->watch->cancel};
    const size_t most = shape->domain_size / ROWS_LEAST + 1, least = shape->domain_size / ROWS_MOST;
    job.tasks = (size_t)TASKS_PER_THREAD * pool_threads_count(pool);
    job.tasks = job.tasks < most ? job.tasks : most;
    job.tasks = job.tasks > least ? job.tasks : least;
    pool_for(pool, job.tasks, evaluate_task, &job);
    TRY(not_cancelled(s, STEP_EVALUATE));
    s->evaluated = true;
    s->times.ns[STEP_EVALUATE] = clock_ns() - start_ns;
    return OK;
}

static void quotient_progress(void *ctx, double done) {
    struct backend_slot *s = ctx;
    sign_of_life(s, STEP_QUOTIENT,
                 PERMILLE_QUOTIENT + (unsigned)(done * (PERMILLE_SUMS - PERMILLE_QUOTIENT)));
}

/* To the order in which such a key's H points stand. */
static void reverse_scalars(uint8_t *h, unsigned log2) {
    for (uint64_t i = 0; i < UINT64_C(1) << log2; i++) {
        uint64_t j = key_h_place(i, log2);
        if (i < j) {
            uint8_t t[SCALAR_BYTES];
            memcpy(t, h + SCALAR_BYTES * i, sizeof t);
            memcpy(h + SCALAR_BYTES * i, h + SCALAR_BYTES * j, sizeof t);
            memcpy(h + SCALAR_BYTES * j, t, sizeof t);
        }
    }
}

static enum err cpu_quotient(struct backend_slot *s) {
    const struct key_shape *shape = key_shape(s->key->key);
    uint64_t start_ns = clock_ns();
    ASSERT(s->evaluated);
    struct quotient q = {.ntt = {.domain = &s->key->domain,
                                 .body = s->key->ops->domain->body(shape->domain_log2),
                                 .pool = s->key->backend->pool,
                                 .cancel = &s->watch->cancel},
                         .a = s->a,
                         .b = s->b,
                         .c = s->c,
                         .h = s->h,
                         .progress = quotient_progress,
                         .progress_ctx = s};
    s->evaluated = false; /* a and b are used up */
    if (!quotient_run(&q)) {
        return not_cancelled(s, STEP_QUOTIENT);
    }
    if (shape->h_reversed) {
        reverse_scalars(s->h, shape->domain_log2);
    }
    s->has_h = true;
    s->times.ns[STEP_QUOTIENT] = clock_ns() - start_ns;
    return OK;
}

static void sums_progress(void *ctx, unsigned item_idx, double done) {
    struct backend_slot *s = ctx;
    double all = 0;
    s->sums_done[item_idx] = done;
    for (int k = 0; k < KEY_POINTS_COUNT; k++) { /* B2 is nearly half of it */
        all += s->sums_done[k] * (k == KEY_B2 ? 3.0 : 1.0) / (KEY_POINTS_COUNT + 2);
    }
    sign_of_life(s, step_of[item_idx],
                 PERMILLE_SUMS + (unsigned)(all * (PERMILLE_ASSEMBLE - PERMILLE_SUMS)));
}

static struct msm_item item_of(const struct backend_slot *s, enum key_points which, uint64_t *out) {
    const struct key *key = s->key->key;
    const struct key_shape *shape = key_shape(key);
    bool zkey_layout = false;
    struct bytes points = key_points_raw(&zkey_layout, key, which);
    struct msm_item item = {.group = group_of(which),
                            .source = {.points = points.ptr,
                                       .scalars = s->witness->values,
                                       .count = shape->points_count[which]},
                            .nonzero_count = s->nonzero_count,
                            .wide_count = s->wide_count,
                            .out = out};
    ASSERT(zkey_layout &&
           points.len == item.source.count * s->key->ops->group[item.group].slot_bytes);
    if (which == KEY_H) {
        item.source.scalars = s->h;
        item.nonzero_count = item.wide_count = item.source.count;
        return item;
    }
    const uint64_t skipped = which == KEY_L ? (uint64_t)shape->public_count + 1 : 0;
    ASSERT(item.source.count + skipped == s->witness->count);
    item.source.scalars += SCALAR_BYTES * skipped;
    return item;
}

static FALLIBLE run_sums(struct backend_slot *s) {
    struct pool *pool = s->key->backend->pool;
    struct msm_shape shapes[KEY_POINTS_COUNT];
    struct msm_item items[KEY_POINTS_COUNT];
    uint64_t *const outs[KEY_POINTS_COUNT] = {s->sums.a.w, s->sums.b1.w, s->sums.b2.w, s->sums.l.w,
                                              s->sums.h.w};
    uint64_t start_ns = clock_ns(), busy_ns = 0;
    ASSERT(s->has_h);
    memset(&s->sums, 0, sizeof s->sums);
    memset(s->sums_done, 0, sizeof s->sums_done);
    shapes_of(shapes, key_shape(s->key->key));
    for (int k = 0; k < KEY_POINTS_COUNT; k++) {
        items[k] = item_of(s, (enum key_points)k, outs[k]);
    }
    const struct msm_watch watch = {
        .cancel = &s->watch->cancel, .progress = sums_progress, .progress_ctx = s};
    TRY(msm_run(items, s->key->ops, shapes, KEY_POINTS_COUNT, pool, (struct msm_options){0},
                s->sums_area, &watch));
    uint64_t wall_ns = clock_ns() - start_ns;
    for (int k = 0; k < KEY_POINTS_COUNT; k++) {
        busy_ns += items[k].busy_ns;
    }
    for (int k = 0; k < KEY_POINTS_COUNT; k++) {
        double share = busy_ns ? (double)items[k].busy_ns / (double)busy_ns : 0;
        s->times.ns[step_of[k]] = (uint64_t)((double)wall_ns * share);
    }
    s->has_sums = true;
    return OK;
}

static enum err cpu_msm(struct backend_slot *s, enum key_points which) {
    ASSERT(which < KEY_POINTS_COUNT && s->witness);
    TRY(not_cancelled(s, step_of[which]));
    return s->has_sums ? OK : run_sums(s);
}

static enum err cpu_sums(struct sums *out, struct step_times *times, struct backend_slot *s) {
    ASSERT(s->has_sums);
    *out = s->sums;
    *times = s->times;
    return OK;
}

static enum err cpu_h_scalars(uint8_t *out, struct backend_slot *s) {
    ASSERT(s->has_h);
    memcpy(out, s->h, SCALAR_BYTES * key_shape(s->key->key)->domain_size);
    return OK;
}

/* --- Multiples --- */

struct backend_multiplier {
    struct cpu_backend *backend; /* lent */
    struct fixed *fixed;         /* owned */
};

static void cpu_multiplier_close(struct backend_multiplier **m) {
    if (*m) {
        fixed_close(&(*m)->fixed);
        mem_free_ptr(m);
    }
}

static enum err cpu_multiplier_open(struct backend_multiplier **out, struct backend *b,
                                    const struct curve *c, enum point_group group, uint64_t count) {
    AUTO(cpu_multiplier_close) struct backend_multiplier *m = NULL;
    const struct cpu_ops *ops = NULL;
    TRY(mem_new(&m, 1, sizeof *m));
    m->backend = own(b);
    TRY(tier_find(&ops, c->id, m->backend->tier));
    TRY(fixed_open(&m->fixed, ops, group, count));
    *out = TAKE(m);
    return OK;
}

static enum err cpu_multiply(uint8_t *out, struct backend_multiplier *m,
                             const struct scalar *scalars, size_t count) {
    return fixed_multiply(out, m->fixed, scalars, count, m->backend->pool);
}

/* --- Opening --- */

static void cpu_close(struct backend *b) {
    struct cpu_backend *backend = own(b);
    ASSERT(backend->bytes == 0);
    pool_close(&backend->pool);
    mem_free(backend);
}

static enum err cpu_rates(struct rates *out, struct backend *b, enum curve_id id) {
    const struct cpu_ops *ops;
    TRY(tier_find(&ops, id, own(b)->tier));
    rate_measure(out, ops, own(b)->pool);
    return OK;
}

static enum err cpu_transforms(uint64_t *ns, size_t count, struct backend *b, enum curve_id id,
                               unsigned log2) {
    const struct cpu_ops *ops;
    TRY(tier_find(&ops, id, own(b)->tier));
    return rate_transforms(ns, count, ops, log2, own(b)->pool);
}

static const struct backend_ops cpu_ops_table = {
    .name = "cpu",
    .close = cpu_close,
    .plan = cpu_backend_plan,
    .key_load = cpu_key_load,
    .key_drop = cpu_key_drop,
    .slot_open = cpu_slot_open,
    .slot_close = cpu_slot_close,
    .witness = cpu_witness,
    .evaluate = cpu_evaluate,
    .quotient = cpu_quotient,
    .msm = cpu_msm,
    .sums = cpu_sums,
    .h_scalars = cpu_h_scalars,
    .wipe = cpu_wipe,
    .multiplier_open = cpu_multiplier_open,
    .multiply = cpu_multiply,
    .multiplier_close = cpu_multiplier_close,
    .rates = cpu_rates,
    .transforms = cpu_transforms,
};

static void backend_drop(struct cpu_backend **b) {
    if (*b) {
        pool_close(&(*b)->pool);
        mem_free_ptr(b);
    }
}

enum err cpu_backend_open(struct backend **out, const struct backend_options *options) {
    AUTO(backend_drop) struct cpu_backend *b = NULL;
    TRY(mem_new(&b, 1, sizeof *b));
    TRY(tier_name(&b->tier, options->cpu_tier));
    TRY(pool_open(&b->pool, options->threads_count));
    b->base.ops = &cpu_ops_table;
    b->base.numa_node = -1;
    unsigned threads = pool_threads_count(b->pool);
    snprintf(b->base.device_name, sizeof b->base.device_name, "cpu: %u thread%s, %s", threads,
             threads == 1 ? "" : "s", b->tier);
    *out = &TAKE(b)->base;
    return OK;
}

uint64_t cpu_backend_bytes(const struct backend *b) {
    return ((const struct cpu_backend *)b)->bytes;
}
