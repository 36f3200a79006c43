/* The device's fields against plain long arithmetic on the processor, on edge and random values.
 *
 * The reference shares nothing with the contender: products are schoolbook, reduction is bit by bit from the modulus that
 * struct curve holds.
 */
#include "node/base/mem.h"
#include "tests/kernel/device.h"
#include "tests/kernel/field_kernels.h"

#include <stdio.h>
#include <string.h>

enum { LIMBS_MAX = FP_LIMBS_MAX };
struct number {
    uint64_t w[LIMBS_MAX];
};
struct modulus {
    uint64_t w[LIMBS_MAX + 1];
    unsigned limbs;
    struct number r_inverse; /* 1 / 2^(64·limbs) */
};

/* x < 2m + something small to below m; x has one limb more than m. */
static void take_once(uint64_t *x, const struct modulus *m) {
    uint64_t t[LIMBS_MAX + 1], borrow = 0;
    for (unsigned i = 0; i <= m->limbs; i++) {
        uint64_t d = x[i] - m->w[i], e = d - borrow;
        borrow = (x[i] < m->w[i]) | (d < borrow);
        t[i] = e;
    }
    if (!borrow) {
        memcpy(x, t, (m->limbs + 1) * 8);
    }
}

/* (x·2 + bit) mod m. */
static void shift_in(uint64_t *x, unsigned bit, const struct modulus *m) {
    for (unsigned i = m->limbs + 1; i-- > 0;) {
        x[i] = x[i] << 1 | (i ? x[i - 1] >> 63 : bit);
    }
    take_once(x, m);
}

static struct number reduce(const uint64_t *x, unsigned limbs, const struct modulus *m) {
    uint64_t r[LIMBS_MAX + 1] = {0};
    for (unsigned i = limbs * 64; i-- > 0;) {
        shift_in(r, (unsigned)(x[i / 64] >> (i % 64) & 1), m);
    }
    struct number n = {{0}};
    memcpy(n.w, r, m->limbs * 8);
    return n;
}

static struct number mul(const struct number *a, const struct number *b, const struct modulus *m) {
    uint64_t t[2 * LIMBS_MAX] = {0};
    for (unsigned i = 0; i < m->limbs; i++) {
        unsigned __int128 c = 0;
        for (unsigned j = 0; j < m->limbs; j++) {
            c += (unsigned __int128)a->w[i] * b->w[j] + t[i + j];
            t[i + j] = (uint64_t)c;
            c >>= 64;
        }
        t[i + m->limbs] = (uint64_t)c;
    }
    return reduce(t, 2 * m->limbs, m);
}

static struct number add(const struct number *a, const struct number *b, const struct modulus *m) {
    uint64_t t[LIMBS_MAX + 1] = {0};
    unsigned __int128 c = 0;
    for (unsigned i = 0; i < m->limbs; i++) {
        c += (unsigned __int128)a->w[i] + b->w[i];
        t[i] = (uint64_t)c;
        c >>= 64;
    }
    t[m->limbs] = (uint64_t)c;
    return reduce(t, m->limbs + 1, m);
}

static struct number neg(const struct number *a, const struct modulus *m) {
    struct number r = {{0}};
    uint64_t borrow = 0, any = 0;
    for (unsigned i = 0; i < m->limbs; i++) {
        uint64_t d = m->w[i] - a->w[i], e = d - borrow;
        borrow = (m->w[i] < a->w[i]) | (d < borrow);
        r.w[i] = e;
        any |= a->w[i];
    }
    return any ? r : *a;
}

static struct number sub(const struct number *a, const struct number *b, const struct modulus *m) {
    struct number t = neg(b, m);
    return add(a, &t, m);
}

/* Montgomery: a·b / 2^(64·limbs). */
static struct number mont(const struct number *a, const struct number *b, const struct modulus *m) {
    struct number t = mul(a, b, m);
    return mul(&t, &m->r_inverse, m);
}

static void modulus_set(struct modulus *m, const uint64_t *w, unsigned limbs) {
    memset(m, 0, sizeof *m);
    memcpy(m->w, w, limbs * 8);
    m->limbs = limbs;
    /* 1/2 = (m + 1) / 2; its power by squaring's slow brother, doubling the exponent one by one. */
    struct number half = {{0}}, one = {{1}};
    uint64_t t[LIMBS_MAX + 1];
    memcpy(t, m->w, sizeof t);
    t[0] += 1; /* m is odd and not all ones */
    for (unsigned i = 0; i < limbs; i++) {
        half.w[i] = t[i] >> 1 | t[i + 1] << 63;
    }
    m->r_inverse = one;
    for (unsigned i = 0; i < 64 * limbs; i++) {
        m->r_inverse = mul(&m->r_inverse, &half, m);
    }
}

typedef enum err run_field(enum field_kind, enum field_op, void *, const void *, const void *,
                           uint32_t, struct gpu_stream *);
static run_field *run_of(enum curve_id id) {
    return id == CURVE_BN254 ? bn254_gpu_field_run : bls12_381_gpu_field_run;
}

/* Edge values and random ones, below m unless `any`. */
static struct number pick(size_t i, const struct modulus *m, bool any) {
    struct number n = {{0}}, one = {{1}}, zero = {{0}};
    switch (i % 24) {
    case 0:
        return zero;
    case 1:
        return one;
    case 2:
        return neg(&one, m);
    case 3:
        n.w[m->limbs - 1] = m->w[m->limbs - 1]; /* only the top limb */
        return n;
    case 4:
        n.w[0] = ~(uint64_t)0;
        return n;
    case 5:
        n.w[0] = 1ull << 32;
        return n;
    case 6:
        return mul(&m->r_inverse, &m->r_inverse, m);
    case 7: /* small */
        n.w[0] = rng_u64(check_rng()) >> 40;
        return n;
    case 8:
        if (any) { /* just below the bound of fr_int: 2^256 - 2^228 */
            memset(n.w, 0xff, m->limbs * 8);
            n.w[m->limbs - 1] = 0xffffffefffffffff;
            return n;
        }
        break;
    case 9:
        if (any) {
            memcpy(n.w, m->w, m->limbs * 8);
            return n;
        }
        break;
    default:
        break;
    }
    rng_fill(check_rng(), n.w, m->limbs * 8);
    if (any) {
        n.w[m->limbs - 1] &= 0xffffffe0ffffffff;
        return n;
    }
    return reduce(n.w, m->limbs, m);
}

static struct number want_fp(enum field_op op, const struct number *x, const struct number *y,
                             const struct modulus *m) {
    struct number d = sub(x, y, m), e = sub(y, x, m), t;
    switch (op) {
    case FIELD_ADD:
        return add(x, y, m);
    case FIELD_SUB:
        return d;
    case FIELD_MUL:
        return mont(x, y, m);
    case FIELD_SQR:
        return mont(x, x, m);
    case FIELD_NEG:
        return neg(x, m);
    default:
        t = mont(&d, &e, m);
        return mont(&t, &d, m);
    }
}

static struct number want_fr(enum field_op op, const struct number *x, const struct number *y,
                             const struct modulus *m) {
    struct number a = reduce(x->w, m->limbs, m), b = reduce(y->w, m->limbs, m), t;
    switch (op) {
    case FIELD_ADD:
        return add(&a, &b, m);
    case FIELD_SUB:
        return sub(&a, &b, m);
    case FIELD_MUL:
    case FIELD_SQR:
        return mul(&a, &b, m);
    case FIELD_NEG:
        return a;
    default:
        t = mul(&a, &b, m);
        return add(&t, &b, m);
    }
}

struct columns { /* operands and results of one run; all owned */
    uint64_t *a, *b, *got;
};
static void columns_done(struct columns *c) {
    mem_free(c->a);
    mem_free(c->b);
    mem_free(c->got);
}
static void columns_run(struct columns *c, enum curve_id id, enum field_kind kind, enum field_op op,
                        size_t count, size_t limbs) {
    const struct device *dev = device_of_test();
    void *out = device_take(count * limbs * 8);
    CHECK_OK(run_of(id)(kind, op, out, device_put(c->a, count * limbs * 8),
                        device_put(c->b, count * limbs * 8), (uint32_t)count, dev->stream));
    device_get(c->got, out, count * limbs * 8);
    device_done();
}
static void columns_new(struct columns *c, size_t count, size_t limbs) {
    CHECK_OK(mem_new(&c->a, count * limbs, 8));
    CHECK_OK(mem_new(&c->b, count * limbs, 8));
    CHECK_OK(mem_new(&c->got, count * limbs, 8));
}

static size_t cases_count(void) {
    return device_of_test()->emulated ? 24 * 24 : 24 * 24 * 25;
}

static void check_fp(enum curve_id id) {
    const struct curve *c = curve_by_id(id);
    struct modulus m;
    modulus_set(&m, c->p, (unsigned)(c->fp_bytes / 8));
    size_t count = cases_count(), limbs = m.limbs;
    for (enum field_op op = 0; op < FIELD_OP_COUNT; op++) {
        AUTO(columns_done) struct columns v = {0};
        columns_new(&v, count, limbs);
        for (size_t i = 0; i < count; i++) {
            struct number x = pick(i, &m, false), y = pick(i / 24, &m, false);
            memcpy(v.a + i * limbs, x.w, limbs * 8);
            memcpy(v.b + i * limbs, y.w, limbs * 8);
        }
        columns_run(&v, id, FIELD_FP, op, count, limbs);
        for (size_t i = 0; i < count; i++) {
            struct number x = {{0}}, y = {{0}}, got = {{0}}, want;
            memcpy(x.w, v.a + i * limbs, limbs * 8);
            memcpy(y.w, v.b + i * limbs, limbs * 8);
            memcpy(got.w, v.got + i * limbs, limbs * 8);
            if (op == FIELD_INV) { /* x · 1/x = 1, that is R in Montgomery form; 1/0 = 0 */
                struct number zero = {{0}}, one = {{1}}, r = {{0}};
                bool is_zero = !memcmp(&x, &zero, sizeof x);
                r = mont(&x, &got, &m);
                r = mul(&r, &m.r_inverse, &m);
                got = is_zero ? got : r;
                want = is_zero ? zero : one;
            } else {
                want = want_fp(op, &x, &y, &m);
            }
            CHECK_MSG(!memcmp(&want, &got, sizeof got), "%s: fp operation %d is wrong in case %zu",
                      c->name, (int)op, i);
        }
    }
}

static void check_fr(enum curve_id id) {
    const struct curve *c = curve_by_id(id);
    struct modulus m;
    modulus_set(&m, c->r.w, 4);
    size_t count = cases_count();
    for (enum field_op op = 0; op < FIELD_OP_COUNT; op++) {
        if (op == FIELD_INV) {
            continue;
        }
        AUTO(columns_done) struct columns v = {0};
        columns_new(&v, count, 4);
        for (size_t i = 0; i < count; i++) {
            /* The first operand is any number below the bound; the second canonical, of sums below 2r. */
            struct number x = pick(i, &m, true), y = pick(i / 24, &m, false);
            if ((op == FIELD_ADD || op == FIELD_SUB) && i % 2) {
                unsigned __int128 carry = 0;
                for (unsigned k = 0; k < 4; k++) {
                    carry += (unsigned __int128)y.w[k] + m.w[k];
                    y.w[k] = (uint64_t)carry;
                    carry >>= 64;
                }
            }
            memcpy(v.a + i * 4, x.w, 32);
            memcpy(v.b + i * 4, y.w, 32);
        }
        columns_run(&v, id, FIELD_FR, op, count, 4);
        for (size_t i = 0; i < count; i++) {
            struct number x = {{0}}, y = {{0}};
            memcpy(x.w, v.a + i * 4, 32);
            memcpy(y.w, v.b + i * 4, 32);
            struct number want = want_fr(op, &x, &y, &m);
            CHECK_MSG(!memcmp(want.w, v.got + i * 4, 32),
                      "%s: fr operation %d is wrong in case %zu", c->name, (int)op, i);
        }
    }
}

static void check_fp2(enum curve_id id, enum field_kind kind) {
    const struct curve *c = curve_by_id(id);
    struct modulus m;
    modulus_set(&m, c->p, (unsigned)(c->fp_bytes / 8));
    size_t count = cases_count(), limbs = m.limbs;
    static const enum field_op whole[] = {FIELD_MUL, FIELD_SQR, FIELD_INV},
                               lanes[] = {FIELD_MUL, FIELD_SQR, FIELD_NEG, FIELD_LAZY};
    const enum field_op *ops = kind == FIELD_FP2 ? whole : lanes;
    size_t ops_count = kind == FIELD_FP2 ? COUNT_OF(whole) : COUNT_OF(lanes);
    for (size_t k = 0; k < ops_count; k++) {
        AUTO(columns_done) struct columns v = {0};
        columns_new(&v, count, 2 * limbs);
        for (size_t i = 0; i < 2 * count; i++) {
            struct number x = pick(i * 7 / 2, &m, false), y = pick(i / 24, &m, false);
            memcpy(v.a + i * limbs, x.w, limbs * 8);
            memcpy(v.b + i * limbs, y.w, limbs * 8);
        }
        columns_run(&v, id, kind, ops[k], count, 2 * limbs);
        for (size_t i = 0; i < count; i++) {
            struct number x[2] = {{{0}}}, y[2] = {{{0}}}, got[2] = {{{0}}}, want[2];
            for (int h = 0; h < 2; h++) {
                memcpy(x[h].w, v.a + (2 * i + h) * limbs, limbs * 8);
                memcpy(y[h].w, v.b + (2 * i + h) * limbs, limbs * 8);
                memcpy(got[h].w, v.got + (2 * i + h) * limbs, limbs * 8);
            }
            struct number *b = ops[k] == FIELD_SQR ? x : ops[k] == FIELD_INV ? got : y, t, u;
            t = mont(&x[0], &b[0], &m);
            u = mont(&x[1], &b[1], &m);
            want[0] = sub(&t, &u, &m);
            t = mont(&x[0], &b[1], &m);
            u = mont(&x[1], &b[0], &m);
            want[1] = add(&t, &u, &m);
            if (ops[k] == FIELD_NEG) {
                t = mont(&x[0], &x[0], &m);
                u = mont(&x[1], &x[1], &m);
                want[0] = want[1] = add(&t, &u, &m);
            }
            if (ops[k] == FIELD_LAZY) {
                struct number minus = neg(&y[1], &m);
                t = mont(&x[0], &y[0], &m);
                u = mont(&x[1], &minus, &m);
                want[0] = sub(&t, &u, &m);
                t = mont(&x[0], &minus, &m);
                u = mont(&x[1], &y[0], &m);
                want[1] = add(&t, &u, &m);
                for (int h = 0; h < 2; h++) {
                    want[h] = mont(&want[h], &y[1], &m);
                }
            }
            if (ops[k] == FIELD_INV) { /* the product is one, unless x is zero */
                struct number zero = {{0}}, one = {{1}};
                bool is_zero =
                    !memcmp(&x[0], &zero, sizeof zero) && !memcmp(&x[1], &zero, sizeof zero);
                got[0] = mul(&want[0], &m.r_inverse, &m);
                got[1] = want[1];
                want[0] = is_zero ? zero : one;
                want[1] = zero;
            }
            CHECK_MSG(!memcmp(want, got, sizeof got), "%s: fp2 operation %d is wrong in case %zu",
                      c->name, (int)ops[k], i);
        }
    }
}

static void claim_fp(void) {
    check_fp(CURVE_BN254);
    check_fp(CURVE_BLS12_381);
}
static void claim_fr(void) {
    check_fr(CURVE_BN254);
    check_fr(CURVE_BLS12_381);
}
static void claim_fp2(void) {
    check_fp2(CURVE_BN254, FIELD_FP2);
    check_fp2(CURVE_BLS12_381, FIELD_FP2);
}
static void claim_fp2_lanes(void) {
    check_fp2(CURVE_BN254, FIELD_FP2_LANES);
    check_fp2(CURVE_BLS12_381, FIELD_FP2_LANES);
}
static void claim_constants(void) {
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        const struct curve *c = curve_by_id(curves_tested[i]);
        const struct gpu_curve *g = gpu_curve_of(curves_tested[i]);
        CHECK_MEM(&c->r, g->r, sizeof g->r);
        CHECK_EQ(c->two_adicity, g->two_adicity);
        CHECK_EQ(64 * 3 + 64 - __builtin_clzll(c->r.w[3]), g->scalar_bits);
        CHECK_EQ(c->fp_bytes, g->g1->coordinate_bytes);
        CHECK_EQ(2 * c->fp_bytes, g->g2->coordinate_bytes);
    }
}

static void bench(void) {
    const struct device *dev = device_of_test();
    static const struct {
        const char *name;
        enum gpu_product which;
    } rates[] = {{"fp mul", GPU_PRODUCT_FP},
                 {"fp sqr", GPU_PRODUCT_FP_SQUARE},
                 {"fr constant mul", GPU_PRODUCT_FR}};
    enum { ROUNDS = 4000, RUNS = 11 };
    struct gpu_event *from = NULL, *to = NULL;
    if (dev->emulated) {
        return;
    }
    CHECK_OK(gpu_event_open(&from));
    CHECK_OK(gpu_event_open(&to));
    for (unsigned i = 0; i < CURVES_COUNT; i++) {
        for (size_t k = 0; k < COUNT_OF(rates); k++) {
            uint32_t blocks = 2 * dev->info.sm_count;
            size_t bytes = (size_t)blocks * GPU_RATE_THREADS * GPU_RATE_BYTES;
            void *values = device_take(bytes);
            CHECK_OK(gpu_fill(values, 0x15, bytes, dev->stream));
            uint64_t ns[RUNS], t;
            for (int run = -1; run < RUNS; run++) {
                CHECK_OK(gpu_event_record(from, dev->stream));
                CHECK_OK(gpu_curve_of(curves_tested[i])
                             ->products(values, rates[k].which, blocks, ROUNDS, dev->stream));
                CHECK_OK(gpu_event_record(to, dev->stream));
                CHECK_OK(gpu_event_wait(to));
                CHECK_OK(gpu_event_ns(&t, from, to));
                if (run >= 0) {
                    ns[run] = t;
                }
            }
            printf("{\"bench\": \"field\", \"curve\": \"%s\", \"operation\": \"%s\", "
                   "\"giga_per_second\": %.1f}\n",
                   curve_by_id(curves_tested[i])->name, rates[k].name,
                   (double)blocks * GPU_RATE_THREADS * ROUNDS / median_ms(ns, RUNS) / 1e6);
            device_done();
        }
    }
    gpu_event_close(&from);
    gpu_event_close(&to);
}

int kernel_field(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the device's constants are the curve's", claim_constants},
        {"fp: every primitive agrees with long arithmetic", claim_fp},
        {"fr: every primitive agrees with long arithmetic, also above r", claim_fr},
        {"fp2: products, squares and inverses agree with long arithmetic", claim_fp2},
        {"fp2 over two lanes: products, squares and norms agree with long arithmetic",
         claim_fp2_lanes},
    };
    static const struct check_claim benches[] = {{"field bench", bench}};
    if (argc == 2 && !strcmp(argv[1], "--bench")) {
        return check_main(1, argv, benches, COUNT_OF(benches));
    }
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
