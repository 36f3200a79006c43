/* Section after section into the block that the layout has carved: points as they lie in the file, multiples of them where planned,
 * matrices as rows with a dictionary of coefficients, tables of twiddles. A native key's rows go as they are; those of a .zkey are
 * built on the host first. The tables of twiddles come from nothing but the domain's size, so they are made while everything else is on its
 * way over the bus.
 */
#include "cuda/resident.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/key/rows.h"

#include "cuda/sample.h"
#include "cuda/table.h"

#include <string.h>

const struct gpu_group *resident_group(const struct gpu_layout *l, enum key_points which) {
    return gpu_group_id(which) == GROUP_G2 ? l->gpu->g2 : l->gpu->g1;
}

size_t resident_skipped_bytes(const struct backend_key *k, enum key_points which) {
    return which == KEY_L ? ((size_t)key_shape(k->key)->public_count + 1) *
                                curve_point_bytes(key_curve(k->key), gpu_group_id(which))
                          : 0;
}

static enum err load_points(struct backend_key *k, struct gpu_loader *loader) {
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        bool zkey_layout;
        struct bytes raw = key_points_raw(&zkey_layout, k->key, i);
        REQUIRE(zkey_layout, E_FORMAT, "%s: points in bellman's form are not proved with on a GPU",
                key_path(k->key));
        size_t skipped = resident_skipped_bytes(k, i);
        struct gpu_piece piece = k->layout.points[i];
        if (k->layout.streamed[i]) {
            continue;
        }
        const struct gpu_table_shape table = gpu_layout_table(&k->layout, key_shape(k->key), i);
        ASSERT((skipped + raw.len) * table.copies_count == piece.bytes);
        TRY(gpu_load_zero(loader, k->memory + piece.at, skipped));
        TRY(gpu_load(loader, k->memory + piece.at + skipped, raw.ptr, raw.len));
    }
    return OK;
}

/* While the last sections are on their way: a page here and there of a file that has been read whole. H's points are neither infinite nor
 * the same, and B's are infinite together. */
static void sample_points(struct backend_key *k) {
    static const enum key_points sampled[] = {KEY_A, KEY_B1, KEY_L};
    for (unsigned i = 0; i < COUNT_OF(sampled); i++) {
        bool zkey_layout;
        enum key_points which = sampled[i];
        struct bytes raw = key_points_raw(&zkey_layout, k->key, which);
        k->sift_rounds[which] =
            sample_sift_rounds(raw, curve_point_bytes(key_curve(k->key), gpu_group_id(which)));
    }
    k->sift_rounds[KEY_B2] = k->sift_rounds[KEY_B1];
}

/* Multiples of all points, in memory that the first slot takes afterwards. */
static enum err build_tables(struct backend_key *k, struct gpu_loader *loader) {
    const struct gpu_layout *l = &k->layout;
    struct gpu_stream *s = gpu_loader_stream(loader);
    AUTO(gpu_mem_close) void *workspace = NULL;
    if (!l->multiples) {
        return OK;
    }
    TRY(gpu_mem_open(&workspace, l->table_bytes));
    for (unsigned i = 0; i < KEY_POINTS_COUNT; i++) {
        const struct gpu_table_shape table = gpu_layout_table(l, key_shape(k->key), i);
        TRY(gpu_table_build(k->memory + l->points[i].at, &table, resident_group(l, i), workspace,
                            s));
    }
    return gpu_stream_wait(s);
}

/* Coefficients as the device wants them, with their quotients. */
static enum err load_dictionary(struct backend_key *k, struct gpu_loader *loader,
                                struct bytes dictionary) {
    const struct gpu_layout *l = &k->layout;
    const struct curve *c = key_curve(k->key);
    size_t count = dictionary.len / SCALAR_BYTES;
    AUTO(mem_free_ptr) uint8_t *constants = NULL;
    struct scalar r2, unscale, value;
    REQUIRE(count <= l->dictionary_max, E_LIMIT, "%zu different coefficients, at most %zu fit",
            count, l->dictionary_max);
    c->scalar_pow(&r2, &(struct scalar){{2}}, 512);
    c->scalar_inv(&unscale, &r2); /* stored values are coefficients times R² */
    TRY(mem_new_raw(&constants, count, GPU_CONSTANT_BYTES));
    for (size_t i = 0; i < count; i++) {
        memcpy(&value, dictionary.ptr + i * SCALAR_BYTES, sizeof value);
        REQUIRE(scalar_is_valid(c, &value), E_RANGE, "a coefficient is not below r");
        c->scalar_mul(&value, &value, &unscale);
        l->gpu->constant(constants + i * GPU_CONSTANT_BYTES, value.w);
    }
    return gpu_load(loader, k->memory + l->dictionary.at, constants, count * GPU_CONSTANT_BYTES);
}

static enum err load_rows(struct backend_key *k, struct gpu_loader *loader, uint32_t m,
                          const struct rows *r) {
    _Static_assert((int)ROWS_LONG == (int)GPU_ROW_LONG &&
                       (int)ROWS_ONE == (int)GPU_COEFFICIENT_ONE &&
                       (int)ROWS_MINUS_ONE == (int)GPU_COEFFICIENT_MINUS_ONE,
                   "a key's rows are a device's rows");
    const struct gpu_layout *l = &k->layout;
    size_t terms = (size_t)key_shape(k->key)->terms_count[m];
    TRY(gpu_load(loader, k->memory + l->row_start[m].at, r->start,
                 ((size_t)r->rows_count + 1) * 4));
    TRY(gpu_load(loader, k->memory + l->columns[m].at, r->columns, terms * 4));
    TRY(gpu_load(loader, k->memory + l->coefficients[m].at, r->coefficients, terms * 4));
    TRY(gpu_load(loader, k->memory + l->long_rows[m].at, r->long_rows, (size_t)r->long_count * 4));
    k->matrix[m] =
        (struct gpu_matrix){.row_start = (const uint32_t *)(k->memory + l->row_start[m].at),
                            .columns = (const uint32_t *)(k->memory + l->columns[m].at),
                            .coefficients = (const uint32_t *)(k->memory + l->coefficients[m].at),
                            .dictionary = k->memory + l->dictionary.at,
                            .long_rows = (const uint32_t *)(k->memory + l->long_rows[m].at),
                            .rows_count = r->rows_count,
                            .long_count = r->long_count};
    return OK;
}

/* A native key's rows lie as the device wants them; those of a .zkey are built first. */
static enum err load_matrices(struct backend_key *k, struct gpu_loader *loader) {
    AUTO(rows_dictionary_close) struct rows_dictionary d = {0};
    const struct key_shape *shape = key_shape(k->key);
    if (shape->format == KEY_FORMAT_NATIVE) {
        TRY(load_rows(k, loader, 0, key_rows(k->key, 0)));
        TRY(load_rows(k, loader, 1, key_rows(k->key, 1)));
        return load_dictionary(k, loader, key_dictionary(k->key));
    }
    TRY(rows_dictionary_open(&d, key_curve(k->key), shape->terms_count[0] + shape->terms_count[1]));
    for (uint32_t m = 0; m < 2; m++) {
        AUTO(rows_built_done) struct rows_built r = {0};
        TRY(rows_build(&r, &d, key_terms_raw(k->key), shape, m));
        const struct rows rows = {r.start,     r.columns,    r.coefficients,
                                  r.long_rows, r.rows_count, r.long_count};
        TRY(load_rows(k, loader, m, &rows));
    }
    return load_dictionary(k, loader, bytes_of(d.values_r2, d.count * SCALAR_BYTES));
}

static enum err build_domain(struct backend_key *k, struct gpu_stream *s) {
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
    return k->layout.gpu->domain_build(&k->domain, &o, k->memory + k->layout.domain.at, s);
}

void resident_drop(struct backend_key **key) {
    struct backend_key *k = *key;
    if (k) {
        void *memory = k->memory;
        gpu_mem_close(&memory);
        key_unref(&k->key);
        mem_free(k);
    }
    *key = NULL;
}

enum err resident_load(struct backend_key **out, struct key *key, const struct gpu_layout *layout,
                       struct gpu_loader *loader) {
    const struct key_shape *shape = key_shape(key);
    REQUIRE(shape->terms_count[0] + shape->terms_count[1] > 0, E_FORMAT,
            "%s: the key holds no matrices; add them with `bellows key import --circuit FILE`",
            key_path(key));
    AUTO(resident_drop) struct backend_key *k = NULL;
    TRY(mem_new(&k, 1, sizeof *k));
    k->key = key_ref(key);
    k->layout = *layout;
    void *memory = NULL;
    uint64_t start_ns = clock_ns();
    TRY(gpu_mem_open(&memory, layout->key_bytes));
    k->memory = memory;
    uint64_t taken_ns = clock_ns();
    TRY(build_domain(k, gpu_loader_side(loader)));
    TRY(load_points(k, loader));
    TRY(build_tables(k, loader));
    enum err code = load_matrices(k, loader);
    if (code != OK) {
        return err_prefix(code, "%s: section 4", key_path(key));
    }
    sample_points(k);
    uint64_t handed_ns = clock_ns();
    TRY(gpu_load_wait(loader));
    k->times = (struct load_times){.memory_ns = taken_ns - start_ns,
                                   .hand_over_ns = handed_ns - taken_ns,
                                   .arrival_ns = clock_ns() - handed_ns};
    *out = TAKE(k);
    return OK;
}
