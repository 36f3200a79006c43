/* Claims about one field; included by field.c once per field, with FIELD and FIELD_C as in field_tmpl.h. */
#define CLAIM_PASTE_(a, b) a##b
#define CLAIM_PASTE(a, b)  CLAIM_PASTE_(a, b)
#define F(name)            CLAIM_PASTE(FIELD, _##name)
#define LIMBS              CLAIM_PASTE(FIELD_C, _LIMBS)

/* The i-th edge value for small i, then random ones. */
static FIELD F(edge_or_random)(int i) {
    FIELD a = F(zero);
    if (i < 2) {
        a.w[0] = (uint64_t)i; /* as words, not in Montgomery form: extremes of the arithmetic */
    } else if (i < 5) {
        a = F(modulus);
        a.w[0] -= (uint64_t)i - 1; /* p - 1, p - 2, p - 3 */
    } else if (i == 5) {
        a = F(one);
    } else if (i == 6) {
        a = F(r2);
    } else if (i == 7) {
        a = F(half_modulus);
    } else if (i == 8) {
        a = F(half_modulus);
        a.w[0]++;
    } else if (i < 9 + LIMBS) {
        a.w[i - 9] = UINT64_MAX; /* one full word; the top one is cut below p */
        if (i - 9 == LIMBS - 1) {
            a.w[LIMBS - 1] = F(modulus).w[LIMBS - 1] - 1;
        }
    } else if (i == 9 + LIMBS) {
        memset(&a, 0xff, sizeof a);
        a.w[LIMBS - 1] = F(modulus).w[LIMBS - 1] - 1;
    } else {
        do {
            rng_fill(check_rng(), &a, sizeof a);
            a.w[LIMBS - 1] &= UINT64_MAX >> 1;
        } while (!F(is_canonical)(a.w));
    }
    return a;
}
#define EDGES (10 + LIMBS)

static void F(check_mul)(const FIELD *a, const FIELD *b) {
    FIELD got, alias = *a, want, back, portable;
    /* got·R = a·b, with R mod p as a plain integer in F(one). */
    F(mul)(&got, a, b);
    slow_mul(want.w, a->w, b->w, F(modulus).w, LIMBS);
    slow_mul(back.w, got.w, F(one).w, F(modulus).w, LIMBS);
    CHECK_MEM(want.w, back.w, sizeof want.w);
    CHECK(F(is_canonical)(got.w));
    F(mul_portable)(&portable, a, b);
    CHECK(F(equal)(&got, &portable));
    F(mul)(&alias, &alias, b);
    CHECK(F(equal)(&got, &alias));
    alias = *b;
    F(mul)(&alias, a, &alias);
    CHECK(F(equal)(&got, &alias));
}

static void F(claim_mul)(void) {
    need_adx();
    for (int i = 0; i < EDGES + 3; i++) {
        for (int j = 0; j < EDGES + 3; j++) {
            FIELD a = F(edge_or_random)(i), b = F(edge_or_random)(j);
            F(check_mul)(&a, &b);
        }
    }
    for (int i = 0; i < 500; i++) {
        FIELD a = F(edge_or_random)(100), b = F(edge_or_random)(100), square, product;
        F(check_mul)(&a, &b);
        F(sqr)(&square, &a);
        F(mul)(&product, &a, &a);
        CHECK(F(equal)(&square, &product));
        a = square;
        F(mul)(&a, &a, &a);
        F(sqr)(&square, &square);
        CHECK(F(equal)(&a, &square));
    }
}

static void F(claim_linear)(void) {
    need_adx();
    for (int i = 0; i < EDGES + 20; i++) {
        for (int j = 0; j < EDGES + 20; j++) {
            FIELD a = F(edge_or_random)(i), b = F(edge_or_random)(j), sum, t, u;
            /* a + b = 2·(a/2) + b by plain integers. */
            F(halve)(&t, &a);
            CHECK(F(is_canonical)(t.w));
            F(add)(&sum, &a, &b);
            slow_step(t.w, b.w, F(modulus).w, LIMBS);
            CHECK(F(equal)(&t, &sum));
            F(sub)(&t, &sum, &b);
            CHECK(F(equal)(&t, &a));
            F(sub)(&t, &a, &b);
            F(neg)(&u, &b);
            CHECK(F(is_canonical)(u.w));
            F(add)(&u, &a, &u);
            CHECK(F(equal)(&t, &u));
            F(double)(&t, &a);
            F(add)(&u, &a, &a);
            CHECK(F(equal)(&t, &u));
        }
    }
    FIELD minus_zero;
    F(neg)(&minus_zero, &F(zero));
    CHECK(F(is_zero)(&minus_zero));
}

static void F(claim_inv)(void) {
    need_adx();
    FIELD t;
    F(inv)(&t, &F(zero));
    CHECK(F(is_zero)(&t));
    for (int i = 1; i < 500; i++) {
        FIELD a = F(edge_or_random)(i), inverse = a;
        if (i > 200 && i < 200 + 64 * LIMBS - 4) { /* powers of two: the longest runs of the gcd */
            a = F(zero);
            a.w[(i - 200) / 64] = UINT64_C(1) << ((i - 200) % 64);
            if (!F(is_canonical)(a.w)) {
                continue;
            }
            inverse = a;
        }
        F(inv)(&inverse, &inverse);
        CHECK(F(is_canonical)(inverse.w));
        F(mul)(&t, &a, &inverse);
        CHECK_MSG(F(equal)(&t, &F(one)), "value %d", i);
    }
}

static void F(claim_pow)(void) {
    need_adx();
    uint64_t exponent[LIMBS];
    for (int i = 0; i < EDGES + 5; i++) {
        FIELD a = F(edge_or_random)(i), t, product = F(one);
        for (uint64_t e = 0; e < 40; e++) {
            F(pow)(&t, &a, &e, 1);
            CHECK(F(equal)(&t, &product));
            F(mul)(&product, &product, &a);
        }
        memcpy(exponent, &F(modulus), sizeof exponent);
        F(pow)(&t, &a, exponent, LIMBS); /* a^p = a */
        CHECK(F(equal)(&t, &a));
    }
}

static void F(claim_convert)(void) {
    need_adx();
    for (int i = 0; i < 200; i++) {
        FIELD plain = F(edge_or_random)(i), a, want;
        uint64_t back[LIMBS];
        CHECK(F(from_int)(&a, plain.w));
        slow_mul(want.w, plain.w, F(one).w, F(modulus).w, LIMBS);
        CHECK(F(equal)(&want, &a));
        F(to_int)(back, &a);
        CHECK_MEM(plain.w, back, sizeof back);
    }
    FIELD a = F(one), above = F(modulus);
    CHECK(!F(from_int)(&a, above.w));
    above.w[0]++;
    CHECK(!F(from_int)(&a, above.w));
    memset(&above, 0xff, sizeof above);
    CHECK(!F(from_int)(&a, above.w));
    CHECK(F(equal)(&a, &F(one))); /* untouched */
    F(from_small)(&a, 1);
    CHECK(F(equal)(&a, &F(one)));
}

static void F(claim_inv_batch)(void) {
    need_adx();
    FIELD x[50], inverses[50], scratch[50];
    for (size_t count = 0; count <= 50; count++) {
        for (size_t i = 0; i < count; i++) {
            x[i] = i % 5 == 3 ? F(zero) : F(edge_or_random)((int)i);
            inverses[i] = x[i];
        }
        F(inv_batch)(inverses, scratch, count);
        for (size_t i = 0; i < count; i++) {
            FIELD want;
            F(inv)(&want, &x[i]);
            CHECK(F(equal)(&want, &inverses[i]));
        }
    }
}

static void F(claim_is_larger)(void) {
    need_adx();
    CHECK(!F(is_larger)(&F(zero)));
    CHECK(!F(is_larger)(&F(one)));
    for (int i = 1; i < 100; i++) {
        FIELD a = F(edge_or_random)(i), minus;
        uint64_t plain[LIMBS], plain_minus[LIMBS];
        F(neg)(&minus, &a);
        F(to_int)(plain, &a);
        F(to_int)(plain_minus, &minus);
        CHECK(F(is_larger)(&a) == words_less(plain_minus, plain, LIMBS));
        CHECK(F(is_larger)(&a) != F(is_larger)(&minus));
    }
}

#undef EDGES
#undef LIMBS
#undef F
#undef CLAIM_PASTE
#undef CLAIM_PASTE_
#undef FIELD
#undef FIELD_C
