/* Sparse products and the expansion of packed scalars, against plain loops on the processor. */
#include "node/base/mem.h"
#include "tests/kernel/device.h"

#include <stdio.h>
#include <string.h>

/* --- sparse products --- */
struct matrix { /* all owned */
    uint32_t *start, *columns, *coefficients, *long_rows, rows, terms, long_count, dictionary_count;
    struct scalar *dictionary;
    uint8_t *constants;
};
static void matrix_done(struct matrix *m) {
    mem_free(m->start);
    mem_free(m->columns);
    mem_free(m->coefficients);
    mem_free(m->long_rows);
    mem_free(m->dictionary);
    mem_free(m->constants);
}

static uint32_t row_length(uint32_t longest) {
    uint64_t dice = rng_below(check_rng(), 100);
    return (uint32_t)(dice < 20   ? 0
                      : dice < 70 ? 1
                      : dice < 95 ? 1 + rng_below(check_rng(), GPU_ROW_LONG)
                      : dice < 98 ? GPU_ROW_LONG + rng_below(check_rng(), 3)
                                  : rng_below(check_rng(), longest));
}

/* 1 and -1, then edges_count edge cases, then anything. */
static void dictionary_make(struct matrix *m, const struct curve *c, uint32_t count,
                            uint32_t edges_count) {
    AUTO(mem_free_ptr) struct scalar *edges = scalars_random(c, edges_count + 1, MIX_EDGES);
    struct scalar zero = {{0}};
    ASSERT(2 + edges_count <= count);
    m->dictionary_count = count;
    m->dictionary = scalars_random(c, count, MIX_UNIFORM);
    memcpy(m->dictionary + 2, edges, edges_count * sizeof *edges);
    m->dictionary[0] = (struct scalar){{1}};
    c->scalar_sub(&m->dictionary[1], &zero, &m->dictionary[0]);
    CHECK_OK(mem_new(&m->constants, count, GPU_CONSTANT_BYTES));
    for (uint32_t i = 0; i < count; i++) {
        gpu_curve_of(c->id)->constant(m->constants + (size_t)i * GPU_CONSTANT_BYTES,
                                      m->dictionary[i].w);
    }
}

static void matrix_make(struct matrix *m, const struct curve *c, uint32_t rows, uint32_t columns,
                        uint32_t longest) {
    enum { DICTIONARY = 300 };
    m->rows = rows;
    dictionary_make(m, c, DICTIONARY, 100);
    CHECK_OK(mem_new(&m->start, rows + 1, 4));
    for (uint32_t r = 0; r < rows; r++) {
        m->start[r + 1] = m->start[r] + row_length(longest);
    }
    m->terms = m->start[rows];
    CHECK_OK(mem_new(&m->columns, m->terms + 1, 4));
    CHECK_OK(mem_new(&m->coefficients, m->terms + 1, 4));
    CHECK_OK(mem_new(&m->long_rows, rows, 4));
    for (uint32_t r = 0; r < rows; r++) {
        if (m->start[r + 1] - m->start[r] > GPU_ROW_LONG) {
            m->long_rows[m->long_count++] = r;
        }
    }
    for (uint32_t i = 0; i < m->terms; i++) {
        uint64_t dice = rng_below(check_rng(), 10);
        m->columns[i] = (uint32_t)rng_below(check_rng(), columns);
        m->coefficients[i] = (uint32_t)(dice < 4   ? 0
                                        : dice < 7 ? 1
                                                   : rng_below(check_rng(), DICTIONARY));
    }
}

static void check_product(enum curve_id id, uint32_t rows, uint32_t columns, enum scalar_mix mix) {
    const struct device *dev = device_of_test();
    const struct curve *c = curve_by_id(id);
    AUTO(matrix_done) struct matrix m = {0};
    matrix_make(&m, c, rows, columns, 3000);
    AUTO(mem_free_ptr) struct scalar *w = scalars_random(c, columns, mix);
    AUTO(mem_free_ptr) struct scalar *got = scalars_random(c, rows, MIX_ZERO);
    struct gpu_matrix on_device = {
        .row_start = device_put(m.start, (rows + 1) * 4ul),
        .columns = device_put(m.columns, m.terms * 4ul),
        .coefficients = device_put(m.coefficients, m.terms * 4ul),
        .dictionary = device_put(m.constants, (size_t)m.dictionary_count * GPU_CONSTANT_BYTES),
        .long_rows = device_put(m.long_rows, m.long_count * 4ul),
        .rows_count = rows,
        .long_count = m.long_count};
    void *out = device_take(rows * (size_t)SCALAR_BYTES),
         *device_w = device_put(w, columns * (size_t)SCALAR_BYTES);
    CHECK_OK(gpu_curve_of(id)->matrix_times(out, &on_device, device_w, dev->stream));
    device_get(got, out, rows * (size_t)SCALAR_BYTES);
    for (uint32_t r = 0; r < rows; r++) {
        struct scalar sum = {{0}}, t;
        for (uint32_t k = m.start[r]; k < m.start[r + 1]; k++) {
            c->scalar_mul(&t, &w[m.columns[k]], &m.dictionary[m.coefficients[k]]);
            c->scalar_add(&sum, &sum, &t);
        }
        CHECK_MSG(!memcmp(&sum, &got[r], sizeof sum), "%s: row %u of %u terms is wrong", c->name, r,
                  m.start[r + 1] - m.start[r]);
    }
    device_done();
}

static void claim_products(void) {
    uint32_t rows = device_of_test()->emulated ? 600 : 20000;
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        check_product(curves_tested[i], 1, 1, MIX_UNIFORM);
        check_product(curves_tested[i], rows, rows / 2, MIX_UNIFORM);
        check_product(curves_tested[i], rows + 7, rows, MIX_EDGES);
        check_product(curves_tested[i], rows + 1, rows, MIX_WITNESS);
    }
}

/* --- expansion --- */
enum scalar_class { CLASS_ZERO, CLASS_ONE, CLASS_SMALL, CLASS_FULL };
struct packing { /* what to pack: shares of the classes in percent, and the small values' width */
    unsigned zero, one, small, width;
};

/* Packs `count` scalars; *want is the plain form. Returns the bytes. */
static size_t pack(uint8_t *data, struct gpu_packed_block *blocks, struct scalar *want,
                   const struct curve *c, size_t count, const struct packing *p) {
    size_t used = 0;
    for (size_t b = 0; b * GPU_PACKED_BLOCK < count; b++) {
        size_t mine = count - b * GPU_PACKED_BLOCK < GPU_PACKED_BLOCK ? count - b * GPU_PACKED_BLOCK
                                                                      : GPU_PACKED_BLOCK;
        size_t class_bytes = ((mine + 15) / 16 * 4 + 15) & ~(size_t)15, small = 0, full = 0;
        uint8_t *classes = data + used, *smalls = classes + class_bytes,
                *fulls = smalls + ((mine * p->width + 15) & ~(size_t)15);
        memset(classes, 0, class_bytes);
        for (size_t i = 0; i < mine; i++) {
            uint64_t dice = rng_below(check_rng(), 100);
            struct scalar s = {{0}}, zero = {{0}};
            enum scalar_class class = dice < p->zero                       ? CLASS_ZERO
                                      : dice < p->zero + p->one            ? CLASS_ONE
                                      : dice < p->zero + p->one + p->small ? CLASS_SMALL
                                                                           : CLASS_FULL;
            if (class == CLASS_ONE) {
                s.w[0] = 1;
            } else if (class == CLASS_SMALL) {
                int64_t value = (int64_t)rng_u64(check_rng()) >> (64 - 8 * p->width);
                value += value == INT64_MIN; /* |x| < 2^63 */
                memcpy(smalls + small++ * p->width, &value, p->width);
                s.w[0] = value < 0 ? (uint64_t)-value : (uint64_t)value;
                if (value < 0) {
                    c->scalar_sub(&s, &zero, &s);
                }
            } else if (class == CLASS_FULL) {
                scalar_uniform(&s, c);
                memcpy(fulls + 32 * full++, &s, 32);
            }
            classes[i / 4] |= (uint8_t)(class << 2 * (i % 4));
            want[b * GPU_PACKED_BLOCK + i] = s;
        }
        blocks[b] = (struct gpu_packed_block){.classes = used,
                                              .small = (uint64_t)(smalls - data),
                                              .full = (uint64_t)(fulls - data),
                                              .width = p->width,
                                              .scalars_count = (uint32_t)mine};
        used = (size_t)(fulls - data) + 32 * full;
    }
    return used;
}

static void check_expansion(enum curve_id id, size_t count, const struct packing *p) {
    const struct device *dev = device_of_test();
    const struct curve *c = curve_by_id(id);
    size_t blocks_count = (count + GPU_PACKED_BLOCK - 1) / GPU_PACKED_BLOCK;
    AUTO(mem_free_ptr) struct gpu_packed_block *blocks = NULL;
    AUTO(mem_free_ptr) uint8_t *data = NULL;
    AUTO(mem_free_ptr) struct scalar *want = scalars_random(c, count, MIX_ZERO);
    AUTO(mem_free_ptr) struct scalar *got = scalars_random(c, count, MIX_ZERO);
    CHECK_OK(mem_new(&blocks, blocks_count, sizeof *blocks));
    CHECK_OK(mem_new(&data, count + blocks_count, 48));
    size_t bytes = pack(data, blocks, want, c, count, p);
    void *out = device_take(count * SCALAR_BYTES), *packed = device_put(data, bytes);
    CHECK_OK(gpu_curve_of(id)->expand(out, device_put(blocks, blocks_count * sizeof *blocks),
                                      packed, (uint32_t)blocks_count, dev->stream));
    device_get(got, out, count * SCALAR_BYTES);
    for (size_t i = 0; i < count; i++) {
        CHECK_MSG(!memcmp(&want[i], &got[i], sizeof want[i]),
                  "%s: scalar %zu of %zu expands wrongly (small ones of %u bytes)", c->name, i,
                  count, p->width);
    }
    device_done();
}

static void claim_expansion(void) {
    static const struct packing packings[] = {{59, 41, 0, 1}, {50, 2, 47, 1},  {10, 10, 40, 2},
                                              {0, 0, 100, 4}, {20, 20, 30, 8}, {0, 0, 0, 1}};
    for (unsigned i = 0; i < COUNT_OF(packings); i++) {
        check_expansion(curves_tested[i % 2], 1 + rng_below(check_rng(), 40), &packings[i]);
        check_expansion(curves_tested[(i + 1) % 2], GPU_PACKED_BLOCK + 12345, &packings[i]);
    }
    check_expansion(CURVE_BN254, GPU_PACKED_BLOCK, &packings[4]);
}

/* --- benches --- */
enum { RUNS = 11 };
struct timer {
    struct gpu_event *from, *to;
    uint64_t ns[RUNS];
};
static void timer_done(struct timer *t) {
    gpu_event_close(&t->from);
    gpu_event_close(&t->to);
}
static void timer_start(struct timer *t) {
    CHECK_OK(gpu_event_record(t->from, device_of_test()->stream));
}
static void timer_stop(struct timer *t, int run) { /* the run -1 warms up */
    uint64_t ns;
    CHECK_OK(gpu_event_record(t->to, device_of_test()->stream));
    CHECK_OK(gpu_event_wait(t->to));
    CHECK_OK(gpu_event_ns(&ns, t->from, t->to));
    if (run >= 0) {
        t->ns[run] = ns;
    }
}
static void timer_open(struct timer *t) {
    CHECK_OK(gpu_event_open(&t->from));
    CHECK_OK(gpu_event_open(&t->to));
}

/* Rows of `tenths` / 10 terms on average, columns within 4096 of the row, 1 in 16 anywhere; 7 coefficients of 8 are ±1. */
static void matrix_bench_make(struct matrix *m, const struct curve *c, uint32_t rows,
                              unsigned tenths) {
    enum { DICTIONARY = 256 };
    uint32_t whole = tenths / 10, terms_max = rows * (whole + 1);
    m->rows = rows;
    dictionary_make(m, c, DICTIONARY, 0);
    CHECK_OK(mem_new_raw(&m->start, rows + 1, 4));
    CHECK_OK(mem_new_raw(&m->columns, terms_max, 4));
    CHECK_OK(mem_new_raw(&m->coefficients, terms_max, 4));
    for (uint32_t r = 0; r < rows; r++) {
        m->start[r] = m->terms;
        uint32_t length = whole + (rng_u64(check_rng()) % 10 < tenths % 10);
        for (uint32_t k = 0; k < length; k++) {
            uint64_t dice = rng_u64(check_rng());
            m->columns[m->terms] =
                dice & 15 ? (uint32_t)(r + (dice >> 52)) % rows : (uint32_t)(dice >> 8) % rows;
            m->coefficients[m->terms++] =
                dice >> 4 & 7 ? (dice >> 7 & 1) : (uint32_t)(dice >> 40) % DICTIONARY;
        }
    }
    m->start[rows] = m->terms;
}

static void bench_product(enum curve_id id, uint32_t log2, unsigned tenths, enum scalar_mix mix) {
    const struct device *dev = device_of_test();
    const struct curve *c = curve_by_id(id);
    uint32_t rows = 1u << log2;
    AUTO(matrix_done) struct matrix m = {0};
    AUTO(timer_done) struct timer timer = {0};
    matrix_bench_make(&m, c, rows, tenths);
    AUTO(mem_free_ptr) struct scalar *w = scalars_random(c, rows, mix);
    AUTO(mem_free_ptr) struct scalar *got = scalars_random(c, rows, MIX_ZERO);
    struct gpu_matrix on_device = {
        .row_start = device_put(m.start, (rows + 1ul) * 4),
        .columns = device_put(m.columns, m.terms * 4ul),
        .coefficients = device_put(m.coefficients, m.terms * 4ul),
        .dictionary = device_put(m.constants, (size_t)m.dictionary_count * GPU_CONSTANT_BYTES),
        .rows_count = rows};
    void *out = device_take(rows * (size_t)SCALAR_BYTES),
         *device_w = device_put(w, rows * (size_t)SCALAR_BYTES);
    timer_open(&timer);
    for (int run = -1; run < RUNS; run++) {
        timer_start(&timer);
        CHECK_OK(gpu_curve_of(id)->matrix_times(out, &on_device, device_w, dev->stream));
        timer_stop(&timer, run);
    }
    device_get(got, out, rows * (size_t)SCALAR_BYTES);
    for (uint32_t r = 0; r < rows; r += 997) {
        struct scalar sum = {{0}}, t;
        for (uint32_t k = m.start[r]; k < m.start[r + 1]; k++) {
            c->scalar_mul(&t, &w[m.columns[k]], &m.dictionary[m.coefficients[k]]);
            c->scalar_add(&sum, &sum, &t);
        }
        CHECK_MSG(!memcmp(&sum, &got[r], sizeof sum), "%s: row %u is wrong", c->name, r);
    }
    printf("{\"bench\": \"sparse\", \"curve\": \"%s\", \"log2\": %u, \"terms\": %u, \"witness\": "
           "\"%s\", \"median_ms\": %.3f, \"min_ms\": %.3f, \"runs\": %d}\n",
           c->name, log2, m.terms, mix_name(mix), median_ms(timer.ns, RUNS),
           (double)timer.ns[0] / 1e6, RUNS);
    device_done();
}

static void bench_expansion(enum curve_id id, size_t count, const struct packing *p) {
    const struct device *dev = device_of_test();
    const struct curve *c = curve_by_id(id);
    size_t blocks_count = (count + GPU_PACKED_BLOCK - 1) / GPU_PACKED_BLOCK;
    AUTO(mem_free_ptr) struct gpu_packed_block *blocks = NULL;
    AUTO(mem_free_ptr) uint8_t *data = NULL;
    AUTO(mem_free_ptr) struct scalar *want = scalars_random(c, count, MIX_ZERO);
    AUTO(timer_done) struct timer timer = {0};
    CHECK_OK(mem_new(&blocks, blocks_count, sizeof *blocks));
    CHECK_OK(mem_new_raw(&data, count + blocks_count, 48));
    size_t bytes = pack(data, blocks, want, c, count, p);
    void *out = device_take(count * SCALAR_BYTES), *packed = device_put(data, bytes),
         *on_device = device_put(blocks, blocks_count * sizeof *blocks);
    timer_open(&timer);
    for (int run = -1; run < RUNS; run++) {
        timer_start(&timer);
        CHECK_OK(
            gpu_curve_of(id)->expand(out, on_device, packed, (uint32_t)blocks_count, dev->stream));
        timer_stop(&timer, run);
    }
    double ms = median_ms(timer.ns, RUNS);
    printf("{\"bench\": \"expand\", \"curve\": \"%s\", \"scalars\": %zu, \"packed_bytes\": %zu, "
           "\"zero\": %u, \"one\": %u, \"small\": %u, \"width\": %u, \"median_ms\": %.4f, "
           "\"written_gb_s\": %.0f, \"runs\": %d}\n",
           c->name, count, bytes, p->zero, p->one, p->small, p->width, ms,
           (double)count * SCALAR_BYTES / ms / 1e6, RUNS);
    device_done();
}

static void bench(void) {
    static const struct packing packings[] = {{59, 41, 0, 1}, {50, 2, 45, 1}, {0, 0, 0, 1}};
    if (device_of_test()->emulated) {
        return;
    }
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        bench_product(curves_tested[i], 24, 24, MIX_UNIFORM);
        bench_product(curves_tested[i], 24, 10, MIX_UNIFORM);
        bench_product(curves_tested[i], 24, 24, MIX_BITS);
        bench_product(curves_tested[i], 24, 10, MIX_BITS);
    }
    for (unsigned i = 0; i < COUNT_OF(packings); i++) {
        bench_expansion(CURVE_BLS12_381, (size_t)1 << 24, &packings[i]);
    }
}

int kernel_vectors(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"sparse products are right for rows of every length", claim_products},
        {"packed scalars of every class and width expand to what was packed", claim_expansion},
    };
    static const struct check_claim benches[] = {{"vectors bench", bench}};
    if (argc == 2 && !strcmp(argv[1], "--bench")) {
        return check_main(1, argv, benches, COUNT_OF(benches));
    }
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
