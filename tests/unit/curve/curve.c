/* The table of each curve: look-ups, scalars, group operations through the public types, sums and checks of many
 * points, in both bodies of the multiplication. Known values from EIP-196, EIP-2537 and snarkjs. */
#include "node/curve/curve.h"
#include "node/base/mem.h"
#include "node/curve/encode.h"
#include "tests/check/check.h"
#include "tests/unit/curve/tables.h"

#include <stdlib.h>
#include <string.h>

/* --- Look-ups. --- */

static void claim_names(void) {
    const struct curve *bn = curve_by_id(CURVE_BN254), *bls = curve_by_id(CURVE_BLS12_381);
    static const char *const bn_names[] = {"bn128",  "BN128",     "bn254",
                                           "BN-254", "alt_bn128", "ALT_BN128"};
    static const char *const bls_names[] = {"bls12381", "BLS12-381", "bls12_381", "BLS12381"};
    static const char *const others[] = {
        "", "bn", "bn2544", "bls12-377", "bls12381bls12381bls", "secp256k1"};
    for (size_t i = 0; i < COUNT_OF(bn_names); i++) {
        CHECK(curve_by_name(bn_names[i]) == bn);
    }
    for (size_t i = 0; i < COUNT_OF(bls_names); i++) {
        CHECK(curve_by_name(bls_names[i]) == bls);
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        CHECK_MSG(curve_by_name(others[i]) == NULL, "\"%s\" is a curve", others[i]);
    }
    CHECK_STR("bn128", bn->snarkjs_name);
    CHECK_STR("bn254", bn->name);
    CHECK_STR("bls12381", bls->snarkjs_name);
    CHECK_STR("bls12_381", bls->name);
    CHECK(curve_by_id((enum curve_id)0) == NULL);
    CHECK(curve_by_id((enum curve_id)3) == NULL);
    CHECK_EQ(28, bn->two_adicity);
    CHECK_EQ(32, bls->two_adicity);
    CHECK_EQ(64, bn->g1_bytes);
    CHECK_EQ(192, bls->g2_bytes);
}

static void claim_primes(void) {
    const struct curve *bn = curve_by_id(CURVE_BN254), *bls = curve_by_id(CURVE_BLS12_381);
    const struct curve *got = NULL;
    struct bytes bn_q = bytes_of(bn->p, 32), bn_r = bytes_of(&bn->r, 32);
    struct bytes bls_q = bytes_of(bls->p, 48), bls_r = bytes_of(&bls->r, 32);
    CHECK_OK(curve_by_primes(&got, bn_q, bn_r));
    CHECK(got == bn);
    CHECK_OK(curve_by_primes(&got, bls_q, bls_r));
    CHECK(got == bls);
    CHECK_OK(curve_by_scalar_prime(&got, bn_r));
    CHECK(got == bn);
    CHECK_ERR(E_CURVE, curve_by_primes(&got, bls_q, bn_r));
    CHECK_HAS(err_detail(), "1a0111ea397fe69a");
    CHECK_ERR(E_CURVE, curve_by_primes(&got, bn_q, bn_q));
    CHECK_HAS(err_detail(), "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47");
    CHECK_ERR(E_CURVE, curve_by_scalar_prime(&got, bytes_of(&bn->r, 31)));
    CHECK_ERR(E_CURVE, curve_by_scalar_prime(&got, bytes_of(NULL, 0)));
    uint8_t long_prime[300] = {0};
    memset(long_prime + 100, 0xab, 100);
    CHECK_ERR(E_CURVE, curve_by_scalar_prime(&got, bytes_of(long_prime, sizeof long_prime)));
    CHECK(got == bn); /* untouched */
}

/* --- Scalars. --- */

static void check_scalars(const struct curve *c) {
    const struct scalar zero = scalar_of(0), one = scalar_of(1);
    struct scalar minus_one, t, u;
    c->scalar_sub(&minus_one, &zero, &one);
    CHECK(scalar_is_valid(c, &minus_one));
    CHECK(!scalar_is_valid(c, &c->r));
    CHECK(scalar_is_zero(&zero) && !scalar_is_zero(&one));
    t = minus_one;
    t.w[0]++;
    CHECK_MEM(&c->r, &t, sizeof t);
    c->scalar_mul(&t, &minus_one, &minus_one);
    CHECK_MEM(&one, &t, sizeof t);
    c->scalar_inv(&t, &zero);
    CHECK(scalar_is_zero(&t));
    c->scalar_mul(&t, &(struct scalar){{UINT64_C(1) << 32}}, &(struct scalar){{3}});
    CHECK_EQ(3ll << 32, t.w[0]);
    for (int i = 0; i < 100; i++) {
        struct scalar a = scalar_some(c), b = scalar_some(c), d = scalar_some(c), left, right;
        c->scalar_add(&left, &a, &b);
        c->scalar_mul(&left, &left, &d);
        c->scalar_mul(&right, &a, &d);
        c->scalar_mul(&t, &b, &d);
        c->scalar_add(&right, &right, &t);
        CHECK_MEM(&left, &right, sizeof left);
        CHECK(scalar_is_valid(c, &left));
        c->scalar_sub(&t, &left, &right);
        CHECK(scalar_is_zero(&t));
        c->scalar_inv(&t, &a);
        c->scalar_mul(&t, &t, &a);
        CHECK_MEM(&one, &t, sizeof t);
        c->scalar_pow(&t, &a, 5);
        u = one;
        for (int k = 0; k < 5; k++) {
            c->scalar_mul(&u, &u, &a);
        }
        CHECK_MEM(&u, &t, sizeof t);
        c->scalar_pow(&t, &a, 0);
        CHECK_MEM(&one, &t, sizeof t);
    }
}

static void claim_scalars(void) {
    for_each_table(check_scalars);
}

/* The generators that the two programs use, as they print them, and the order of each smaller one. */
static void check_roots(const struct curve *c) {
    bool bn = c->id == CURVE_BN254;
    struct scalar full, want, half, minus_one;
    CHECK_OK(scalar_from_decimal(
        &want, c,
        bn ? "19103219067921713944291392827692070036145651957329286315305642004821462161904"
           : "937917089079007706106976984802249742464848817460758522850752807661925904159"));
    c->scalar_root_snarkjs(&full, c->two_adicity);
    CHECK_MEM(&want, &full, sizeof want);
    if (!bn) {
        CHECK_OK(scalar_from_decimal(
            &want, c,
            "10238227357739495823651030575849232062558860180284477541189508159991286009131"));
        c->scalar_root_bellman(&full, c->two_adicity);
        CHECK_MEM(&want, &full, sizeof want);
    }
    c->scalar_sub(&minus_one, &(struct scalar){{0}}, &(struct scalar){{1}});
    for (unsigned log2 = 0; log2 <= c->two_adicity; log2++) {
        for (int bellman = 0; bellman < 2; bellman++) {
            (bellman ? c->scalar_root_bellman : c->scalar_root_snarkjs)(&full, log2);
            half = scalar_of(1);
            if (log2 == 0) {
                CHECK_MEM(&half, &full, sizeof half);
            } else {
                c->scalar_pow(&half, &full, UINT64_C(1) << (log2 - 1));
                CHECK_MEM(&minus_one, &half, sizeof half);
            }
        }
    }
}

static void claim_roots(void) {
    for_each_table(check_roots);
}

static void claim_scalar_random(void) {
    for (int id = CURVE_BN254; id <= CURVE_BLS12_381; id++) {
        const struct curve *c = curve_by_id((enum curve_id)id);
        struct scalar last = {{0}};
        uint64_t any = 0, all = UINT64_MAX;
        for (int i = 0; i < 200; i++) {
            struct scalar s;
            CHECK_OK(scalar_random(&s, c));
            CHECK(scalar_is_valid(c, &s) && !scalar_is_zero(&s));
            CHECK(memcmp(&s, &last, sizeof s) != 0);
            any |= s.w[3];
            all &= s.w[0];
            last = s;
        }
        CHECK_EQ(0, all);
        /* Every bit that r has is used: its top word's length is reached in 200 draws. */
        CHECK_EQ(__builtin_clzll(c->r.w[3]), __builtin_clzll(any));
    }
}

/* --- Points. --- */

/* EIP-196 and EIP-2537: big-endian coordinates, as bellman's uncompressed points. */
static struct g1 g1_of_hex(const struct curve *c, const char *hex) {
    uint8_t bytes[96];
    struct g1 p;
    CHECK_OK(hex_decode(bytes, c->g1_bytes, hex));
    CHECK_OK(bellman_g1_read(&p, c, bytes_of(bytes, c->g1_bytes), false, true));
    return p;
}

static struct scalar scalar_of_hex(const struct curve *c, const char *hex) {
    uint8_t bytes[32];
    uint64_t limbs[6] = {0};
    struct scalar s, r = c->r;
    CHECK_OK(hex_decode(bytes, sizeof bytes, hex));
    for (size_t i = 0; i < 32; i++) {
        limbs[(31 - i) / 8] |= (uint64_t)bytes[i] << (8 * ((31 - i) % 8));
    }
    memcpy(&s, limbs, sizeof s);
    while (!scalar_is_valid(c, &s)) { /* the EIPs allow any 256 bits */
        unsigned borrow = 0;
        for (int i = 0; i < 4; i++) {
            uint64_t d = s.w[i] - r.w[i] - borrow;
            borrow = s.w[i] < r.w[i] || (s.w[i] == r.w[i] && borrow);
            s.w[i] = d;
        }
    }
    return s;
}

struct known_multiple {
    enum curve_id id;
    const char *point, *scalar, *product;
};

/* clang-format off */
static const struct known_multiple known_multiples[] = {
    {CURVE_BN254,
     "0000000000000000000000000000000000000000000000000000000000000001"
     "0000000000000000000000000000000000000000000000000000000000000002",
     "0000000000000000000000000000000000000000000000000000000000000002",
     "030644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd3"
     "15ed738c0e0a7c92e7845f96b2ae9c0a68a6a449e3538fc7ff3ebf7a5a18a2c4"},
    {CURVE_BN254,
     "2bd3e6d0f3b142924f5ca7b49ce5b9d54c4703d7ae5648e61d02268b1a0a9fb7"
     "21611ce0a6af85915e2f1d70300909ce2e49dfad4a4619c8390cae66cefdb204",
     "00000000000000000000000000000000000000000000000011138ce750fa15c2",
     "070a8d6a982153cae4be29d434e8faef8a47b274a053f5a4ee2a6c9c13c31e5c"
     "031b8ce914eba3a9ffb989f9cdd5b0f01943074bf4f0f315690ec3cec6981afc"},
    {CURVE_BN254,
     "070a8d6a982153cae4be29d434e8faef8a47b274a053f5a4ee2a6c9c13c31e5c"
     "031b8ce914eba3a9ffb989f9cdd5b0f01943074bf4f0f315690ec3cec6981afc",
     "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd46",
     "025a6f4181d2b4ea8b724290ffb40156eb0adb514c688556eb79cdea0752c2bb"
     "2eff3f31dea215f1eb86023a133a996eb6300b44da664d64251d05381bb8a02e"},
    {CURVE_BN254,
     "1a87b0584ce92f4593d161480614f2989035225609f08058ccfa3d0f940febe3"
     "1a2f3c951f6dadcc7ee9007dff81504b0fcd6d7cf59996efdc33d92bf7f9f8f6",
     "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
     "2cde5879ba6f13c0b5aa4ef627f159a3347df9722efce88a9afbb20b763b4c41"
     "1aa7e43076f6aee272755a7f9b84832e71559ba0d2e0b17d5f9f01755e5b0d11"},
    {CURVE_BN254,
     "1a87b0584ce92f4593d161480614f2989035225609f08058ccfa3d0f940febe3"
     "1a2f3c951f6dadcc7ee9007dff81504b0fcd6d7cf59996efdc33d92bf7f9f8f6",
     "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000000",
     "1a87b0584ce92f4593d161480614f2989035225609f08058ccfa3d0f940febe3"
     "163511ddc1c3f25d396745388200081287b3fd1472d8339d5fecb2eae0830451"},
    {CURVE_BLS12_381,
     "12196c5a43d69224d8713389285f26b98f86ee910ab3dd668e413738282003cc5b7357af9a7af54bb713d62255e80f56"
     "06ba8102bfbeea4416b710c73e8cce3032c31c6269c44906f8ac4f7874ce99fb17559992486528963884ce429a992fee",
     "b3c940fe79b6966489b527955de7599194a9ac69a6ff58b8d99e7b1084f0464e",
     "0f1f230329be03ac700ba718bc43c8ee59a4b2d1e20c7de95b22df14e7867eae4658ed2f2dfed4f775d4dcedb4235cf0"
     "12924104fdb82fb074cfc868bdd22012694b5bae2c0141851a5d6a97d8bc6f22ecb2f6ddec18cba6483f2e73faa5b942"},
    {CURVE_BLS12_381,
     "117dbe419018f67844f6a5e1b78a1e597283ad7b8ee7ac5e58846f5a5fd68d0da99ce235a91db3ec1cf340fe6b7afcdb"
     "13316f23de032d25e912ae8dc9b54c8dba1be7cecdbb9d2228d7e8f652011d46be79089dd0a6080a73c82256ce5e4ed2",
     "4d0e25bf3f6fc9f4da25d21fdc71773f1947b7a8a775b8177f7eca990b05b71d",
     "195592b927f3f1783a0c7b5117702cb09fa4f95bb2d35aa2a70fe89ba84aa4f385bdb2bfd4e1aaffbb0bfa002ac0e51b"
     "0607f070f4ae567633d019a63d0411a07d767bd7b6fe258c3ba1e720279e94c31f23166b806eabdb830bb632b003ca8b"},
};
/* clang-format on */

static void check_known_multiples(const struct curve *c) {
    for (size_t i = 0; i < COUNT_OF(known_multiples); i++) {
        const struct known_multiple *row = &known_multiples[i];
        if (row->id != c->id) {
            continue;
        }
        struct g1 p = g1_of_hex(c, row->point), want = g1_of_hex(c, row->product), got;
        struct scalar k = scalar_of_hex(c, row->scalar);
        c->g1_mul(&got, &p, &k);
        CHECK_MEM(&want, &got, sizeof got);
        c->g1_sum(&got, (const uint8_t *)p.w, &k, 1);
        CHECK_MEM(&want, &got, sizeof got);
    }
}

static void claim_known_multiples(void) {
    for_each_table(check_known_multiples);
}

static void check_g1(const struct curve *c) {
    const struct g1 infinity = {{0}}, g = c->g1_generator;
    struct g1 sum = infinity, got, minus;
    CHECK(g1_is_infinity(&infinity) && !g1_is_infinity(&g));
    for (uint64_t k = 0; k < 100; k++) {
        struct scalar s = scalar_of(k);
        c->g1_mul(&got, &g, &s);
        CHECK_MEM(&sum, &got, sizeof got);
        c->g1_add(&sum, &sum, &g); /* infinity + G, G + G, … */
    }
    struct scalar minus_one;
    c->scalar_sub(&minus_one, &(struct scalar){{0}}, &(struct scalar){{1}});
    c->g1_mul(&got, &g, &minus_one); /* so r G is infinity */
    c->g1_neg(&minus, &g);
    CHECK_MEM(&minus, &got, sizeof got);
    c->g1_add(&got, &got, &g);
    CHECK_MEM(&infinity, &got, sizeof got);
    c->g1_neg(&got, &infinity);
    CHECK_MEM(&infinity, &got, sizeof got);
    c->g1_add(&got, &infinity, &infinity);
    CHECK_MEM(&infinity, &got, sizeof got);
    c->g1_mul(&got, &infinity, &minus_one);
    CHECK_MEM(&infinity, &got, sizeof got);
    struct scalar a = scalar_some(c), b = scalar_some(c), d;
    struct g1 x, y;
    c->scalar_add(&d, &a, &b);
    c->g1_mul(&x, &g, &a);
    c->g1_mul(&y, &g, &b);
    c->g1_add(&x, &x, &y);
    c->g1_mul(&y, &g, &d);
    CHECK_MEM(&x, &y, sizeof x);
}

static void claim_g1(void) {
    for_each_table(check_g1);
}

static void check_g2(const struct curve *c) {
    const struct g2 infinity = {{0}}, g = c->g2_generator;
    struct g2 sum = infinity, got, minus;
    CHECK(g2_is_infinity(&infinity) && !g2_is_infinity(&g));
    for (uint64_t k = 0; k < 100; k++) {
        struct scalar s = scalar_of(k);
        c->g2_mul(&got, &g, &s);
        CHECK_MEM(&sum, &got, sizeof got);
        c->g2_add(&sum, &sum, &g);
    }
    struct scalar minus_one;
    c->scalar_sub(&minus_one, &(struct scalar){{0}}, &(struct scalar){{1}});
    c->g2_mul(&got, &g, &minus_one);
    c->g2_neg(&minus, &g);
    CHECK_MEM(&minus, &got, sizeof got);
    c->g2_add(&got, &got, &g);
    CHECK_MEM(&infinity, &got, sizeof got);
    c->g2_neg(&got, &infinity);
    CHECK_MEM(&infinity, &got, sizeof got);
    c->g2_mul(&got, &infinity, &minus_one);
    CHECK_MEM(&infinity, &got, sizeof got);
}

static void claim_g2(void) {
    for_each_table(check_g2);
}

/* Sums of every width of window, at an odd address, with infinities, zeros, ones, repeated and opposite points. */
static void check_sum(const struct curve *c) {
    static const size_t counts[] = {0, 1, 2, 3, 5, 8, 9, 13, 30, 32, 33, 70, 150, 400};
    enum { MOST = 400 };
    static uint8_t buffer[1 + MOST * G1_BYTES_MAX];
    static struct scalar scalars[MOST];
    uint8_t *packed = buffer + 1;
    void *table = mem_alloc(MOST * c->g1_table_bytes);
    CHECK(table);
    for (size_t k = 0; k < COUNT_OF(counts); k++) {
        struct g1 point = c->g1_generator, want = {{0}}, got, term;
        for (size_t i = 0; i < counts[k]; i++) {
            struct scalar step = scalar_some(c);
            if (i % 7 == 3) {
                point = (struct g1){{0}};
            } else if (i % 7 == 4) {
                c->g1_mul(&point, &c->g1_generator, &step);
            } else if (i % 7 == 5) {
                c->g1_neg(&point, &point);
            } /* else the point before */
            g1_store(packed + i * c->g1_bytes, c, &point);
            scalars[i] = i % 5 == 2 ? scalar_of(i % 2) : scalar_some(c);
            if (i % 7 == 5) {
                scalars[i] = scalars[i - 1]; /* they cancel, in every bucket */
            }
            if (i % 11 == 8) {
                c->scalar_sub(&scalars[i], &(struct scalar){{0}}, &(struct scalar){{1}});
            }
            c->g1_mul(&term, &point, &scalars[i]);
            c->g1_add(&want, &want, &term);
        }
        c->g1_sum(&got, packed, scalars, counts[k]);
        CHECK_MSG(!memcmp(&want, &got, sizeof got), "%s, %zu points", c->name, counts[k]);
        c->g1_table(table, packed, counts[k]);
        c->g1_table_sum(&got, table, scalars, counts[k]);
        CHECK_MSG(!memcmp(&want, &got, sizeof got), "%s, table of %zu points", c->name, counts[k]);
    }
    mem_free(table);
}

static void claim_sum(void) {
    for_each_table(check_sum);
}

/* --- Checks of many points. --- */

/* One group of one curve, packed points of it, and a point of the curve outside the subgroup (len 0: none exists). */
struct crowd {
    const struct curve *c;
    enum point_group group;
    size_t bytes, count;
    uint8_t *packed;
    uint8_t outside[G2_BYTES_MAX];
    bool outside_exists;
};

static void crowd_point(uint8_t *out, const struct crowd *w, uint64_t k) {
    struct scalar s = scalar_of(k);
    if (w->group == GROUP_G1) {
        struct g1 p;
        w->c->g1_mul(&p, &w->c->g1_generator, &s);
        g1_store(out, w->c, &p);
    } else {
        struct g2 p;
        w->c->g2_mul(&p, &w->c->g2_generator, &s);
        g2_store(out, w->c, &p);
    }
}

static enum err crowd_check(size_t *bad, const struct crowd *w, bool subgroup) {
    return (w->group == GROUP_G1 ? w->c->g1_check : w->c->g2_check)(bad, w->packed, w->count,
                                                                    subgroup);
}

/* x = 0, 1, 2, … until the curve has a point; on BLS12-381 x = 0 has order 3. */
static void crowd_outside(struct crowd *w) {
    w->outside_exists = !(w->c->id == CURVE_BN254 && w->group == GROUP_G1);
    for (uint64_t x = 0; w->outside_exists; x++) {
        uint64_t plain[6] = {x}, mont[12] = {0};
        size_t bad;
        CHECK(w->c->fp_from_int(mont, plain));
        if (w->group == GROUP_G1) {
            struct g1 p;
            if (w->c->g1_from_x(&p, mont, true)) {
                CHECK_ERR(E_CURVE, w->c->g1_check(&bad, (uint8_t *)p.w, 1, true));
                CHECK_OK(w->c->g1_check(&bad, (uint8_t *)p.w, 1, false));
                g1_store(w->outside, w->c, &p);
                return;
            }
        } else {
            struct g2 p;
            if (w->c->g2_from_x(&p, mont, false)) {
                CHECK_ERR(E_CURVE, w->c->g2_check(&bad, (uint8_t *)p.w, 1, true));
                CHECK_OK(w->c->g2_check(&bad, (uint8_t *)p.w, 1, false));
                g2_store(w->outside, w->c, &p);
                return;
            }
        }
    }
}

/* Damages the point at `idx`, checks that it and nothing before it is named, and heals it. */
static void crowd_damage(struct crowd *w, size_t idx, enum err want, bool subgroup,
                         const uint8_t *with) {
    uint8_t saved[G2_BYTES_MAX];
    size_t bad = SIZE_MAX;
    memcpy(saved, w->packed + idx * w->bytes, w->bytes);
    memcpy(w->packed + idx * w->bytes, with, w->bytes);
    CHECK_ERR(want, crowd_check(&bad, w, subgroup));
    CHECK_EQ(idx, bad);
    memcpy(w->packed + idx * w->bytes, saved, w->bytes);
}

static void check_crowd(const struct curve *c, enum point_group group, size_t count) {
    static uint8_t buffer[3 + 17000 * G2_BYTES_MAX];
    struct crowd w = {c, group, curve_point_bytes(c, group), count, buffer + 3, {0}, false};
    size_t bad = 77;
    crowd_outside(&w);
    uint8_t some[64][G2_BYTES_MAX];
    for (size_t i = 0; i < 64; i++) {
        crowd_point(some[i], &w, i); /* some[0] is infinity */
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(w.packed + i * w.bytes, some[rng_below(check_rng(), 64)], w.bytes);
    }
    CHECK_OK(crowd_check(&bad, &w, false));
    CHECK_OK(crowd_check(&bad, &w, true));
    CHECK_EQ(77, bad);
    size_t places[] = {0, rng_below(check_rng(), count), count - 1};
    for (size_t k = 0; k < COUNT_OF(places); k++) {
        uint8_t wrong[G2_BYTES_MAX];
        memcpy(wrong, some[5], sizeof wrong);
        wrong[w.bytes - 9] ^= 1; /* still below p, another y */
        crowd_damage(&w, places[k], E_CURVE, false, wrong);
        CHECK_HAS(err_detail(), "is not on the curve");
        crowd_damage(&w, places[k], E_CURVE, true, wrong);
        memcpy(wrong, some[5], sizeof wrong);
        memset(wrong + w.bytes - c->fp_bytes, 0xff, c->fp_bytes);
        crowd_damage(&w, places[k], E_RANGE, true, wrong);
        CHECK_HAS(err_detail(), "not below the field modulus");
        memcpy(wrong + w.bytes - c->fp_bytes, c->p, c->fp_bytes); /* p itself */
        crowd_damage(&w, places[k], E_RANGE, false, wrong);
        if (w.outside_exists) {
            crowd_damage(&w, places[k], E_CURVE, true, w.outside);
            CHECK_HAS(err_detail(), "subgroup");
            /* A point off the curve behind it is not the first offender; one before it is. */
            memcpy(wrong, some[5], sizeof wrong);
            wrong[0] ^= 1;
            if (places[k] + 1 < count) {
                uint8_t *behind = w.packed + (places[k] + 1) * w.bytes, saved[G2_BYTES_MAX];
                memcpy(saved, behind, w.bytes);
                memcpy(behind, wrong, w.bytes);
                crowd_damage(&w, places[k], E_CURVE, true, w.outside);
                CHECK_HAS(err_detail(), "subgroup");
                memcpy(behind, w.outside, w.bytes);
                crowd_damage(&w, places[k], E_CURVE, true, wrong);
                CHECK_HAS(err_detail(), "is not on the curve");
                memcpy(behind, saved, w.bytes);
            }
        }
    }
}

static void check_few(const struct curve *c) {
    check_crowd(c, GROUP_G1, 1);
    check_crowd(c, GROUP_G1, 50);
    check_crowd(c, GROUP_G2, 1);
    check_crowd(c, GROUP_G2, 50);
    size_t bad;
    CHECK_OK(c->g1_check(&bad, NULL, 0, true));
    CHECK_OK(c->g2_check(&bad, NULL, 0, true));
}

static void claim_check_few(void) {
    for_each_table(check_few);
}

static void check_many(const struct curve *c) {
    check_crowd(c, GROUP_G1, 300);
    check_crowd(c, GROUP_G2, 300);
    check_crowd(c, GROUP_G1, 16600); /* over the size of a chunk */
}

static void claim_check_many(void) {
    for_each_table(check_many);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"curves are found by any spelling of their names and by nothing else", claim_names},
        {"curves are found by their primes, and a stranger is named", claim_primes},
        {"scalars obey the field laws at the edges and everywhere", claim_scalars},
        {"roots of unity are those of snarkjs and bellman, of exact order", claim_roots},
        {"random scalars are below r and not zero", claim_scalar_random},
        {"multiples of EIP-196 and EIP-2537 come out", claim_known_multiples},
        {"G1: small multiples, infinity, r - 1, sums", claim_g1},
        {"G2: small multiples, infinity, r - 1", claim_g2},
        {"g1_sum equals the sum of the multiples, with a table or without", claim_sum},
        {"few points: the first bad one is named, whatever is wrong with it", claim_check_few},
        {"many points: the first bad one is named, whatever is wrong with it", claim_check_many},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
