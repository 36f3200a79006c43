/* Points of y² = x³ + b: template, included twice by group.h, for G1 over fp and for G2 over fp2.
 *
 *     #define GROUP            g1             prefix of types and functions
 *     #define COORD            fp             the coordinate field
 *     #define COORD_ZERO       {{0}}          initialisers: zero,
 *     #define GROUP_B          {G1_B}         and b
 *
 * g1_affine is x, y as it lies in a packed point; infinity is all zero (never on the curve, as b is not 0). g1_jac is
 * (X, Y, Z) for x = X/Z², y = Y/Z³, infinity has Z = 0. All functions handle every case: infinity, P + P, P - P,
 * points outside the subgroup. Output first; outputs may be inputs.
 *
 *   function         products (M, S of the field)   formula (hyperelliptic.org/EFD, short Weierstrass, a = 0)
 *   jac_double       2M + 5S                        dbl-2009-l
 *   jac_add          11M + 5S                       add-2007-bl
 *   jac_add_affine   7M + 4S                        madd-2007-bl
 *
 * Threads  any; pure. Variable time.
 */
#define GROUP_PASTE_(a, b) a##_##b
#define GROUP_PASTE(a, b)  GROUP_PASTE_(a, b)
#define G(name)            GROUP_PASTE(GROUP, name)
#define K(name)            GROUP_PASTE(COORD, name)

typedef struct {
    COORD x, y;
} G(affine);

typedef struct {
    COORD x, y, z;
} G(jac);

static const COORD G(b) = GROUP_B;
static const G(affine) G(infinity) = {COORD_ZERO, COORD_ZERO};

static inline bool G(affine_is_infinity)(const G(affine) * p) {
    return K(is_zero)(&p->x) && K(is_zero)(&p->y);
}

static inline bool G(affine_equal)(const G(affine) * a, const G(affine) * b) {
    return K(equal)(&a->x, &b->x) && K(equal)(&a->y, &b->y);
}

static inline void G(affine_neg)(G(affine) * out, const G(affine) * p) {
    out->x = p->x;
    K(neg)(&out->y, &p->y);
}

/* x³ + b. */
static inline void G(right_side)(COORD *out, const COORD *x) {
    COORD t;
    K(sqr)(&t, x);
    K(mul)(&t, &t, x);
    K(add)(out, &t, &G(b));
}

/* Infinity counts as on the curve. */
static inline bool G(affine_on_curve)(const G(affine) * p) {
    COORD left, right;
    K(sqr)(&left, &p->y);
    G(right_side)(&right, &p->x);
    return K(equal)(&left, &right) || G(affine_is_infinity)(p);
}

static inline bool G(jac_is_infinity)(const G(jac) * p) {
    return K(is_zero)(&p->z);
}

static inline void G(jac_set_infinity)(G(jac) * out) {
    *out = (G(jac)){K(one), K(one), K(zero)};
}

static inline void G(jac_from_affine)(G(jac) * out, const G(affine) * p) {
    if (G(affine_is_infinity)(p)) {
        G(jac_set_infinity)(out);
    } else {
        *out = (G(jac)){p->x, p->y, K(one)};
    }
}

/* One inversion. */
static inline void G(jac_to_affine)(G(affine) * out, const G(jac) * p) {
    if (G(jac_is_infinity)(p)) {
        *out = G(infinity);
        return;
    }
    COORD inverse, t;
    K(inv)(&inverse, &p->z);
    K(sqr)(&t, &inverse);
    K(mul)(&out->x, &p->x, &t);
    K(mul)(&t, &t, &inverse);
    K(mul)(&out->y, &p->y, &t);
}

/* The same for count points, at most JAC_BATCH_MAX: one inversion for all of them. */
enum { G(JAC_BATCH_MAX) = 32 };
static inline void G(jac_to_affine_batch)(G(affine) * out, const G(jac) * p, size_t count) {
    COORD inverse[G(JAC_BATCH_MAX)], scratch[G(JAC_BATCH_MAX)], t;
    for (size_t i = 0; i < count; i++) {
        inverse[i] = p[i].z;
    }
    K(inv_batch)(inverse, scratch, count); /* an infinity's stays zero, and so do x and y */
    for (size_t i = 0; i < count; i++) {
        K(sqr)(&t, &inverse[i]);
        K(mul)(&out[i].x, &p[i].x, &t);
        K(mul)(&t, &t, &inverse[i]);
        K(mul)(&out[i].y, &p[i].y, &t);
    }
}

static inline void G(jac_neg)(G(jac) * out, const G(jac) * p) {
    *out = (G(jac)){p->x, p->y, p->z};
    K(neg)(&out->y, &p->y);
}

/* The same point? Compares X1 Z2² with X2 Z1² and Y1 Z2³ with Y2 Z1³. */
static inline bool G(jac_equal)(const G(jac) * a, const G(jac) * b) {
    if (G(jac_is_infinity)(a) || G(jac_is_infinity)(b)) {
        return G(jac_is_infinity)(a) && G(jac_is_infinity)(b);
    }
    COORD aa, bb, left, right;
    K(sqr)(&aa, &a->z);
    K(sqr)(&bb, &b->z);
    K(mul)(&left, &a->x, &bb);
    K(mul)(&right, &b->x, &aa);
    if (!K(equal)(&left, &right)) {
        return false;
    }
    K(mul)(&aa, &aa, &a->z);
    K(mul)(&bb, &bb, &b->z);
    K(mul)(&left, &a->y, &bb);
    K(mul)(&right, &b->y, &aa);
    return K(equal)(&left, &right);
}

static inline void G(jac_double)(G(jac) * out, const G(jac) * p) {
    COORD xx, yy, yyyy, d, e, t;
    K(sqr)(&xx, &p->x);
    K(sqr)(&yy, &p->y);
    K(sqr)(&yyyy, &yy);
    K(add)(&d, &p->x, &yy);
    K(sqr)(&d, &d);
    K(sub)(&d, &d, &xx);
    K(sub)(&d, &d, &yyyy);
    K(double)(&d, &d); /* 4 X Y² */
    K(double)(&e, &xx);
    K(add)(&e, &e, &xx);
    K(mul)(&t, &p->y, &p->z);
    K(double)(&out->z, &t);
    K(sqr)(&t, &e);
    K(sub)(&t, &t, &d);
    K(sub)(&out->x, &t, &d);
    K(sub)(&d, &d, &out->x);
    K(mul)(&d, &e, &d);
    K(double)(&yyyy, &yyyy);
    K(double)(&yyyy, &yyyy);
    K(double)(&yyyy, &yyyy);
    K(sub)(&out->y, &d, &yyyy);
}

/* The common end of both additions: h = U2 - U1, s = S2 - S1 (half of EFD's r), u = U1, y = S1, both != 0. z3 is set. */
static inline void G(jac_add_end)(G(jac) * out, const COORD *h, const COORD *s, const COORD *u,
                                  const COORD *y) {
    COORD i, j, v, r;
    K(double)(&i, h);
    K(sqr)(&i, &i);
    K(mul)(&j, h, &i);
    K(double)(&r, s);
    K(mul)(&v, u, &i);
    K(sqr)(&i, &r);
    K(sub)(&i, &i, &j);
    K(sub)(&i, &i, &v);
    K(sub)(&i, &i, &v);
    K(mul)(&j, y, &j);
    K(double)(&j, &j);
    K(sub)(&v, &v, &i);
    K(mul)(&v, &r, &v);
    out->x = i;
    K(sub)(&out->y, &v, &j);
}

static inline void G(jac_add)(G(jac) * out, const G(jac) * a, const G(jac) * b) {
    if (G(jac_is_infinity)(a)) {
        *out = *b;
        return;
    }
    if (G(jac_is_infinity)(b)) {
        *out = *a;
        return;
    }
    COORD aa, bb, ua, ub, sa, sb, z;
    K(sqr)(&aa, &a->z);
    K(sqr)(&bb, &b->z);
    K(mul)(&ua, &a->x, &bb);
    K(mul)(&ub, &b->x, &aa);
    K(mul)(&sa, &b->z, &bb);
    K(mul)(&sa, &a->y, &sa);
    K(mul)(&sb, &a->z, &aa);
    K(mul)(&sb, &b->y, &sb);
    K(sub)(&ub, &ub, &ua);
    K(sub)(&sb, &sb, &sa);
    if (K(is_zero)(&ub)) {
        if (K(is_zero)(&sb)) {
            G(jac_double)(out, a);
        } else {
            G(jac_set_infinity)(out);
        }
        return;
    }
    K(add)(&z, &a->z, &b->z); /* 2 Za Zb = (Za + Zb)² - Za² - Zb² */
    K(sqr)(&z, &z);
    K(sub)(&z, &z, &aa);
    K(sub)(&z, &z, &bb);
    K(mul)(&z, &z, &ub);
    G(jac_add_end)(out, &ub, &sb, &ua, &sa);
    out->z = z;
}

static inline void G(jac_add_affine)(G(jac) * out, const G(jac) * a, const G(affine) * b) {
    if (G(affine_is_infinity)(b)) {
        *out = *a;
        return;
    }
    if (G(jac_is_infinity)(a)) {
        *out = (G(jac)){b->x, b->y, K(one)};
        return;
    }
    COORD aa, h, s, z, hh;
    K(sqr)(&aa, &a->z);
    K(mul)(&h, &b->x, &aa);
    K(mul)(&s, &a->z, &aa);
    K(mul)(&s, &b->y, &s);
    K(sub)(&h, &h, &a->x);
    K(sub)(&s, &s, &a->y);
    if (K(is_zero)(&h)) {
        if (K(is_zero)(&s)) {
            G(jac_double)(out, a);
        } else {
            G(jac_set_infinity)(out);
        }
        return;
    }
    K(sqr)(&hh, &h);
    K(add)(&z, &a->z, &h); /* 2 Z H = (Z + H)² - Z² - H² */
    K(sqr)(&z, &z);
    K(sub)(&z, &z, &aa);
    K(sub)(&z, &z, &hh);
    const COORD u = a->x, y = a->y;
    G(jac_add_end)(out, &h, &s, &u, &y);
    out->z = z;
}

/* [k]P for k of one word, by its bits from the top: 63 doublings and an addition per one. */
static inline void G(jac_mul_word)(G(jac) * out, const G(jac) * p, uint64_t k) {
    G(jac) sum;
    G(jac_set_infinity)(&sum);
    for (unsigned bit = words_bits(&k, 1); bit-- > 0;) {
        G(jac_double)(&sum, &sum);
        if (k >> bit & 1) {
            G(jac_add)(&sum, &sum, p);
        }
    }
    *out = sum;
}

/* Σ [k_i]P_i for a few points at once, k_i of `words` plain words, one behind the other: signed windows of 5 bits over the odd multiples
 * P, 3P … 15P. A doubling per bit for all of them, an addition per 6 bits of each. Straus, 1964. */
enum { G(JOINT_MAX) = 8 };
static inline void G(jac_mul_joint)(G(jac) * out, const G(jac) * p, const uint64_t *k, size_t words,
                                    size_t count) {
    enum { WIDTH = 5, MULTIPLES = 1 << (WIDTH - 2), DIGITS_MAX = 64 * WORDS_NAF_MAX + 1 };
    int8_t digits[G(JOINT_MAX)][DIGITS_MAX] = {{0}};
    G(jac) odd[G(JOINT_MAX)][MULTIPLES], twice, sum, minus;
    int bits = 0;
    for (size_t i = 0; i < count; i++) {
        int used = words_naf(digits[i], k + i * words, words, WIDTH);
        bits = used > bits ? used : bits;
        odd[i][0] = p[i];
        G(jac_double)(&twice, &p[i]);
        for (int m = 1; m < MULTIPLES; m++) {
            G(jac_add)(&odd[i][m], &odd[i][m - 1], &twice);
        }
    }
    G(jac_set_infinity)(&sum);
    while (bits-- > 0) {
        G(jac_double)(&sum, &sum);
        for (size_t i = 0; i < count; i++) {
            int digit = digits[i][bits];
            if (digit > 0) {
                G(jac_add)(&sum, &sum, &odd[i][digit / 2]);
            } else if (digit < 0) {
                G(jac_neg)(&minus, &odd[i][-digit / 2]);
                G(jac_add)(&sum, &sum, &minus);
            }
        }
    }
    *out = sum;
}

/* [k]P for k of up to 8 words, a plain integer. */
static inline void G(jac_mul)(G(jac) * out, const G(jac) * p, const uint64_t *k, size_t words) {
    G(jac_mul_joint)(out, p, k, words, 1);
}

/* --- Multiples of a point that stays: no doublings. --- */

/* v·16^i·P for v from 1 to 8 in each window i of four bits. */
enum { G(COMB_WINDOWS) = (FR_BITS + 4) / 4, G(COMB_MULTIPLES) = 8 };
typedef struct {
    G(affine) multiple[G(COMB_WINDOWS)][G(COMB_MULTIPLES)];
} G(comb);

/* 16·64 additions or doublings and 64 inversions. */
static inline void G(comb_make)(G(comb) * out, const G(affine) * p) {
    G(jac) walk, multiple[G(COMB_MULTIPLES)];
    G(jac_from_affine)(&walk, p);
    for (int i = 0; i < G(COMB_WINDOWS); i++) {
        multiple[0] = walk;
        for (int v = 1; v < G(COMB_MULTIPLES); v++) {
            G(jac_add)(&multiple[v], &multiple[v - 1], &walk);
        }
        G(jac_to_affine_batch)(out->multiple[i], multiple, G(COMB_MULTIPLES));
        G(jac_double)(&walk, &multiple[G(COMB_MULTIPLES) - 1]);
    }
}

/* [k]P, k below r: an addition per window. */
static inline void G(comb_mul)(G(jac) * out, const G(comb) * comb, const uint64_t *k) {
    unsigned carry = 0;
    G(jac_set_infinity)(out);
    for (int i = 0; i < G(COMB_WINDOWS); i++) {
        unsigned digit = words_cut(k, 4, 4 * (unsigned)i, 4) + carry;
        carry = digit > 8;
        G(affine) p;
        if (carry && digit < 16) {
            G(affine_neg)(&p, &comb->multiple[i][15 - digit]);
            G(jac_add_affine)(out, out, &p);
        } else if (digit > 0 && digit < 16) {
            G(jac_add_affine)(out, out, &comb->multiple[i][digit - 1]);
        }
    }
}

#undef G
#undef K
#undef GROUP_PASTE
#undef GROUP_PASTE_
#undef GROUP
#undef GROUP_B
#undef COORD
#undef COORD_ZERO
