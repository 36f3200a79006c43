/* Claims about one group; included by group.c once per group, with GROUP, COORD, COFACTOR and COFACTOR_WORDS. */
#define CLAIM_PASTE_(a, b) a##_##b
#define CLAIM_PASTE(a, b)  CLAIM_PASTE_(a, b)
#define G(name)            CLAIM_PASTE(GROUP, name)
#define K(name)            CLAIM_PASTE(COORD, name)

static const uint64_t G(cofactor)[] = COFACTOR;

/* Any point of the curve, hardly ever in the subgroup (where there is a difference). */
static G(affine) G(on_curve)(void) {
    G(affine) p;
    do {
        p.x = K(random)();
        G(right_side)(&p.y, &p.x);
    } while (!K(sqrt)(&p.y, &p.y));
    if (rng_u64(check_rng()) & 1) {
        K(neg)(&p.y, &p.y);
    }
    return p;
}

/* The same point in some other coordinates. */
static G(jac) G(blind)(const G(jac) * p) {
    COORD z = K(random)(), t;
    G(jac) q;
    K(mul)(&q.z, &p->z, &z);
    K(sqr)(&t, &z);
    K(mul)(&q.x, &p->x, &t);
    K(mul)(&t, &t, &z);
    K(mul)(&q.y, &p->y, &t);
    return q;
}

static G(jac) G(jac_of)(const G(affine) * p) {
    G(jac) q;
    G(jac_from_affine)(&q, p);
    return q;
}

/* The chord and tangent rule, with an inversion each time. */
static G(affine) G(slow_add)(const G(affine) * a, const G(affine) * b) {
    if (G(affine_is_infinity)(a)) {
        return *b;
    }
    if (G(affine_is_infinity)(b)) {
        return *a;
    }
    COORD top, bottom, slope;
    G(affine) sum;
    if (K(equal)(&a->x, &b->x)) {
        if (!K(equal)(&a->y, &b->y)) {
            return G(infinity);
        }
        K(sqr)(&top, &a->x);
        K(add)(&slope, &top, &top);
        K(add)(&top, &slope, &top);
        K(add)(&bottom, &a->y, &a->y);
    } else {
        K(sub)(&top, &b->y, &a->y);
        K(sub)(&bottom, &b->x, &a->x);
    }
    K(inv)(&bottom, &bottom);
    K(mul)(&slope, &top, &bottom);
    K(sqr)(&sum.x, &slope);
    K(sub)(&sum.x, &sum.x, &a->x);
    K(sub)(&sum.x, &sum.x, &b->x);
    K(sub)(&sum.y, &a->x, &sum.x);
    K(mul)(&sum.y, &sum.y, &slope);
    K(sub)(&sum.y, &sum.y, &a->y);
    return sum;
}

static void G(check_sum)(const G(affine) * a, const G(affine) * b) {
    G(affine) want = G(slow_add)(a, b), got;
    CHECK(G(affine_on_curve)(&want));
    G(jac) x = G(jac_of)(a), y = G(jac_of)(b), sum;
    x = G(blind)(&x);
    y = G(blind)(&y);
    G(jac_add)(&sum, &x, &y);
    G(jac_to_affine)(&got, &sum);
    CHECK(G(affine_equal)(&want, &got));
    G(jac_add_affine)(&sum, &x, b);
    G(jac_to_affine)(&got, &sum);
    CHECK(G(affine_equal)(&want, &got));
    sum = x;
    G(jac_add)(&sum, &sum, &y);
    G(jac_to_affine)(&got, &sum);
    CHECK(G(affine_equal)(&want, &got));
    sum = y;
    G(jac_add)(&sum, &x, &sum);
    G(jac_to_affine)(&got, &sum);
    CHECK(G(affine_equal)(&want, &got));
    sum = x;
    G(jac_add_affine)(&sum, &sum, b);
    CHECK(G(jac_equal)(&sum, &sum));
    y = G(jac_of)(&want);
    CHECK(G(jac_equal)(&sum, &y));
    CHECK(G(jac_equal)(&y, &sum));
}

static void G(claim_laws)(void) {
    for (int i = 0; i < 30; i++) {
        G(affine) a = G(on_curve)(), b = G(on_curve)(), minus;
        G(affine_neg)(&minus, &a);
        G(check_sum)(&a, &b);
        G(check_sum)(&a, &a);
        G(check_sum)(&a, &minus);
        G(check_sum)(&a, &G(infinity));
        G(check_sum)(&G(infinity), &a);
        G(check_sum)(&G(infinity), &G(infinity));
        G(jac) x = G(jac_of)(&a), y = G(jac_of)(&b), z, left, right;
        G(affine) c = G(on_curve)();
        z = G(jac_of)(&c);
        G(jac_add)(&left, &x, &y);
        G(jac_add)(&left, &left, &z);
        G(jac_add)(&right, &y, &z);
        G(jac_add)(&right, &x, &right);
        CHECK(G(jac_equal)(&left, &right));
        CHECK(!G(jac_equal)(&left, &x));
        G(jac_neg)(&right, &left);
        CHECK(!G(jac_equal)(&left, &right));
        x = G(blind)(&x);
        G(jac_double)(&left, &x);
        G(jac_add)(&right, &x, &x);
        CHECK(G(jac_equal)(&left, &right));
        G(jac_double)(&x, &x);
        CHECK(G(jac_equal)(&x, &right));
        G(jac_set_infinity)(&z);
        CHECK(!G(jac_equal)(&z, &x) && !G(jac_equal)(&x, &z) && G(jac_equal)(&z, &z));
        G(jac_double)(&z, &z);
        CHECK(G(jac_is_infinity)(&z));
    }
    G(affine) off = G(on_curve)();
    K(add)(&off.y, &off.y, &K(one));
    CHECK(!G(affine_on_curve)(&off));
    CHECK(G(affine_on_curve)(&G(infinity)));
}

static void G(claim_mul)(void) {
    G(affine) base = G(on_curve)();
    G(jac) p = G(jac_of)(&base), want, got, word;
    G(jac_set_infinity)(&want);
    for (uint64_t k = 0; k < 300; k++) {
        G(jac_mul)(&got, &p, &k, 1);
        CHECK(G(jac_equal)(&want, &got));
        G(jac_mul_word)(&word, &p, k);
        CHECK(G(jac_equal)(&want, &word));
        G(jac_add_affine)(&want, &want, &base);
    }
    for (int i = 0; i < 12; i++) { /* against plain double and add, all lengths, dense and sparse */
        size_t words = 1 + (size_t)i % 8;
        uint64_t k[8];
        rng_fill(check_rng(), k, sizeof k);
        if (i % 4 == 1) {
            memset(k, 0xff, sizeof k);
        } else if (i % 4 == 2) {
            memset(k, 0, sizeof k);
            k[words - 1] = UINT64_C(1) << 63;
        }
        G(jac_set_infinity)(&want);
        for (size_t bit = 64 * words; bit-- > 0;) {
            G(jac_double)(&want, &want);
            if (k[bit / 64] >> (bit % 64) & 1) {
                G(jac_add_affine)(&want, &want, &base);
            }
        }
        got = p;
        G(jac_mul)(&got, &got, k, words);
        CHECK(G(jac_equal)(&want, &got));
    }
    G(jac_set_infinity)(&want);
    G(jac_mul)(&got, &want, fr_modulus.w, 4);
    CHECK(G(jac_is_infinity)(&got));
}

/* Several at once: random ones, the same twice, opposite ones, infinity, long and short factors. */
static void G(claim_joint)(void) {
    for (size_t count = 0; count <= G(JOINT_MAX); count++) {
        G(jac) p[G(JOINT_MAX)], want, got, term;
        uint64_t k[G(JOINT_MAX)][4];
        rng_fill(check_rng(), k, sizeof k);
        G(jac_set_infinity)(&want);
        for (size_t i = 0; i < count; i++) {
            G(affine) base = G(on_curve)();
            p[i] = G(jac_of)(&base);
            if (i == 2) {
                p[i] = G(blind)(&p[i - 1]);
                memcpy(k[i], k[i - 1], sizeof k[i]);
            } else if (i == 3) {
                G(jac_neg)(&p[i], &p[i - 1]);
            } else if (i == 4) {
                G(jac_set_infinity)(&p[i]);
            } else if (i > 4) {
                memset(k[i] + 1, i == 5 ? 0xff : 0, sizeof k[i] - 8);
                k[i][0] = i == 7 ? 0 : k[i][0];
            }
            G(jac_mul)(&term, &p[i], k[i], 4);
            G(jac_add)(&want, &want, &term);
        }
        G(jac_mul_joint)(&got, p, k[0], 4, count);
        CHECK(G(jac_equal)(&want, &got));
    }
}

/* Digits of all kinds, carries through all windows, the ends of the range; and of infinity. */
static void G(claim_comb)(void) {
    static G(comb) comb;
    G(affine) base = G(on_curve)();
    for (int round = 0; round < 2; round++) {
        G(jac) p = G(jac_of)(&base), want, got;
        G(comb_make)(&comb, &base);
        for (int i = 0; i < 60; i++) {
            uint64_t k[4] = {0};
            if (i < 20) {
                k[0] = (uint64_t)i;
            } else if (i < 36) { /* each digit everywhere */
                memset(k, 17 * (i - 20), sizeof k);
                k[3] >>= i == 20 ? 0 : 4;
            } else if (i < 40) { /* r - 1 to r - 4 */
                memcpy(k, fr_modulus.w, sizeof k);
                k[0] -= (uint64_t)(i - 35);
            } else {
                rng_fill(check_rng(), k, sizeof k);
                k[3] >>= 3; /* below r */
            }
            G(jac_mul)(&want, &p, k, 4);
            G(comb_mul)(&got, &comb, k);
            CHECK_MSG(G(jac_equal)(&want, &got), "scalar %d", i);
        }
        base = G(infinity);
    }
}

/* By the definition: [r]P = 0. */
static bool G(killed_by_r)(const G(jac) * p) {
    G(jac) q;
    G(jac_mul)(&q, p, fr_modulus.w, 4);
    return G(jac_is_infinity)(&q);
}

static void G(check_subgroup)(const G(jac) * p) {
    CHECK(G(jac_in_subgroup)(p) == G(killed_by_r)(p));
}

static void G(claim_subgroup)(void) {
    int outside = 0;
    G(jac) zero;
    G(jac_set_infinity)(&zero);
    CHECK(G(jac_in_subgroup)(&zero));
    for (int i = 0; i < 10; i++) {
        G(affine) a = G(on_curve)();
        G(jac) p = G(jac_of)(&a), inside, torsion, sum;
        p = G(blind)(&p);
        G(check_subgroup)(&p);
        outside += !G(jac_in_subgroup)(&p);
        G(jac_mul)(&inside, &p, G(cofactor), COFACTOR_WORDS);
        CHECK(G(jac_in_subgroup)(&inside));
        CHECK(G(killed_by_r)(&inside));
        G(jac_mul)(&torsion, &p, fr_modulus.w, 4); /* order divides the cofactor */
        G(check_subgroup)(&torsion);
        G(jac_add)(&sum, &inside, &torsion);
        G(check_subgroup)(&sum);
    }
    CHECK(outside == (COFACTOR_IS_ONE ? 0 : 10));
}

/* k = k / divisor; false and k untouched if there is a remainder. */
static bool G(divide)(uint64_t *k, size_t words, uint64_t divisor) {
    uint64_t quotient[8], remainder = 0;
    for (size_t i = words; i-- > 0;) {
        word2 t = ((word2)remainder << 64) | k[i];
        quotient[i] = (uint64_t)(t / divisor);
        remainder = (uint64_t)(t % divisor);
    }
    if (remainder == 0) {
        memcpy(k, quotient, 8 * words);
    }
    return remainder == 0;
}

/* A point whose order is this factor of the cofactor. */
static G(jac) G(small_order)(uint64_t prime) {
    uint64_t rest[COFACTOR_WORDS];
    G(jac) p, next;
    memcpy(rest, G(cofactor), sizeof rest);
    while (G(divide)(rest, COFACTOR_WORDS, prime)) {
    }
    do {
        G(affine) a = G(on_curve)();
        p = G(jac_of)(&a);
        G(jac_mul)(&p, &p, fr_modulus.w, 4);
        G(jac_mul)(&p, &p, rest, COFACTOR_WORDS); /* order a power of the prime */
    } while (G(jac_is_infinity)(&p));
    while (G(jac_mul)(&next, &p, &prime, 1), !G(jac_is_infinity)(&next)) {
        p = next;
    }
    return p;
}

/* Points whose order is a small prime factor of the cofactor, alone and added to a point of the subgroup: what an
 * attacker would plant, and what sums of few points catch least often. */
static void G(claim_small_orders)(void) {
    static const uint64_t primes[] = {2,     3,     11,     13,     23,      2713,    10069,
                                      10177, 11953, 262069, 859267, 5864401, 52437899};
    int found = 0;
    for (size_t i = 0; i < COUNT_OF(primes); i++) {
        uint64_t rest[COFACTOR_WORDS];
        memcpy(rest, G(cofactor), sizeof rest);
        if (!G(divide)(rest, COFACTOR_WORDS, primes[i])) {
            continue;
        }
        G(affine) a = G(on_curve)();
        G(jac) p = G(small_order)(primes[i]), inside = G(jac_of)(&a), sum;
        G(jac_mul)(&inside, &inside, G(cofactor), COFACTOR_WORDS);
        CHECK(!G(jac_in_subgroup)(&p));
        CHECK(!G(killed_by_r)(&p));
        G(jac_add)(&sum, &inside, &p);
        CHECK(!G(jac_in_subgroup)(&sum));
        found++;
    }
    CHECK_EQ(SMALL_PRIMES, found);
}

/* One round of the check of many points misses a bad one with probability 2^-8, whatever its order; so 12 rounds that
 * catch fewer than 8 times happen once in 10^9. */
static void G(claim_subsets)(void) {
    enum { COUNT = 1100, ROUNDS = 12 };
    static G(affine) points[COUNT];
    G(affine) a = G(on_curve)();
    G(jac) p = G(jac_of)(&a), inside, outside;
    G(jac_mul)(&inside, &p, G(cofactor), COFACTOR_WORDS);
    G(jac_to_affine)(&a, &inside);
    for (size_t i = 0; i < COUNT; i++) {
        points[i] = i % 9 == 4 ? G(infinity) : a;
        G(affine_neg)(&a, &a);
    }
    const uint8_t *packed = (const uint8_t *)points;
    CHECK(G(subsets_inside)(packed, COUNT));
    CHECK(G(subsets_inside)(packed, COUNT));
    size_t bad;
    CHECK_OK(G(check)(&bad, packed, COUNT, true));
    if (COFACTOR_IS_ONE) {
        return;
    }
    outside = p; /* and then one of small order */
    for (int kind = 0; kind < 2; kind++) {
        size_t at = rng_below(check_rng(), COUNT);
        G(affine) saved = points[at];
        G(jac_to_affine)(&points[at], &outside);
        int caught = 0;
        for (int round = 0; round < ROUNDS; round++) {
            caught += !G(subsets_inside)(packed, COUNT);
        }
        CHECK_MSG(caught >= 8, "caught %d times of %d", caught, ROUNDS);
        CHECK_ERR(E_CURVE, G(check)(&bad, packed, COUNT, true));
        CHECK_EQ(at, bad);
        points[at] = saved;
        outside = G(small_order)(SMALLEST_PRIME);
    }
}

#undef G
#undef K
#undef CLAIM_PASTE
#undef CLAIM_PASTE_
#undef GROUP
#undef COORD
#undef COFACTOR
#undef COFACTOR_WORDS
#undef COFACTOR_IS_ONE
#undef SMALL_PRIMES
#undef SMALLEST_PRIME
