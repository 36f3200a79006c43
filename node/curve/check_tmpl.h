/* Checking many packed points: template, included twice by curve_tmpl.c with GROUP, GROUP_NAME, COORD, COORD_WORDS and
 * GROUP_IS_WHOLE (the cofactor is 1, so every point of the curve belongs).
 *
 * Range and curve equation are looked at point by point (3 products). Membership in the subgroup of one point costs
 * over a thousand products, so many are tested together: a sum over a random subset of the points lies in the
 * subgroup if all of them do; if one of them, P, does not, then of two subsets that differ in P alone at most one has
 * its sum inside, whatever the cofactor. So each random subset misses a bad point with probability at most 1/2, and
 * 64 independent ones with 2^-64.
 *
 *   eight rounds, in each:   every point goes to bucket[random byte]                          1 addition a point
 *                            for bit 7 … 0: S = the sum of the buckets with that bit set,     510 additions
 *                            then fold the upper half of the buckets onto the lower; is S in the subgroup?
 *
 * That is about 90 products a point instead of 1100. The random bytes come from the OS, after the points are fixed.
 * Only if a sum is outside are the points of that chunk tested one by one, to name the first. Any thread.
 */
#define CHECK_PASTE_(a, b) a##_##b
#define CHECK_PASTE(a, b)  CHECK_PASTE_(a, b)
#define G(name)            CHECK_PASTE(GROUP, name)
#define K(name)            CHECK_PASTE(COORD, name)

/* The first of count points that is no pair of coordinates below p on the curve; `count` and OK if all are. */
static enum err G(find_off_curve)(size_t *bad_idx, const uint8_t *packed, size_t count) {
    G(affine) p;
    for (size_t i = 0; i < count; i++) {
        uint64_t words[2 * COORD_WORDS];
        memcpy(words, packed + i * sizeof p, sizeof p);
        memcpy(&p, words, sizeof p);
        *bad_idx = i;
        if (!K(is_canonical)(words) || !K(is_canonical)(words + COORD_WORDS)) {
            return E_RANGE;
        }
        if (!G(affine_on_curve)(&p)) {
            return E_CURVE;
        }
    }
    *bad_idx = count;
    return OK;
}

/* The first of count points outside the subgroup, tested one by one; `count` if there is none. */
static size_t G(find_outside)(const uint8_t *packed, size_t count) {
    for (size_t i = 0; i < count; i++) {
        G(affine) p;
        G(jac) q;
        memcpy(&p, packed + i * sizeof p, sizeof p);
        G(jac_from_affine)(&q, &p);
        if (!G(jac_in_subgroup)(&q)) {
            return i;
        }
    }
    return count;
}

/* One round: eight random subset sums. False if one is outside, or without randomness. */
static bool G(subsets_inside)(const uint8_t *packed, size_t count) {
    enum { BITS = 8, BUCKETS = 1 << BITS, DRAW = 1024 };
    G(jac) bucket[BUCKETS];
    uint8_t draw[DRAW];
    for (size_t v = 0; v < BUCKETS; v++) {
        G(jac_set_infinity)(&bucket[v]);
    }
    for (size_t i = 0; i < count; i++) {
        if (i % DRAW == 0 && rng_os(draw, count - i < DRAW ? count - i : DRAW) != OK) {
            return false;
        }
        G(affine) p;
        memcpy(&p, packed + i * sizeof p, sizeof p);
        G(jac) *into = &bucket[draw[i % DRAW]];
        G(jac_add_affine)(into, into, &p);
    }
    for (size_t half = BUCKETS / 2; half > 0; half /= 2) {
        G(jac) sum;
        G(jac_set_infinity)(&sum);
        for (size_t v = 0; v < half; v++) {
            G(jac_add)(&sum, &sum, &bucket[half + v]);
            G(jac_add)(&bucket[v], &bucket[v], &bucket[half + v]);
        }
        if (!G(jac_in_subgroup)(&sum)) {
            return false;
        }
    }
    return true;
}

static size_t G(find_outside_batched)(const uint8_t *packed, size_t count) {
    enum { BATCH_MIN = 192, ROUNDS = 8 };
    bool inside = count >= BATCH_MIN;
    for (int round = 0; inside && round < ROUNDS; round++) {
        inside = G(subsets_inside)(packed, count);
    }
    return inside ? count : G(find_outside)(packed, count);
}

static enum err G(check)(size_t *bad_idx, const uint8_t *packed, size_t count, bool subgroup) {
    enum { CHUNK = 1 << 14 };
    for (size_t start = 0; start < count; start += CHUNK) {
        const uint8_t *chunk = packed + start * sizeof(G(affine));
        size_t chunk_count = count - start < CHUNK ? count - start : CHUNK;
        size_t bad = 0;
        enum err why = G(find_off_curve)(&bad, chunk, chunk_count);
        size_t outside = subgroup && !GROUP_IS_WHOLE ? G(find_outside_batched)(chunk, bad) : bad;
        if (outside < bad) {
            *bad_idx = start + outside;
            FAIL(E_CURVE,
                 "a " GROUP_NAME " point is on the curve but not in the subgroup of order r");
        }
        if (why != OK) {
            *bad_idx = start + bad;
            FAIL(why, "a " GROUP_NAME " point %s",
                 why == E_RANGE ? "has a coordinate that is not below the field modulus"
                                : "is not on the curve");
        }
    }
    return OK;
}

#undef G
#undef K
#undef CHECK_PASTE
#undef CHECK_PASTE_
#undef GROUP
#undef GROUP_NAME
#undef GROUP_IS_WHOLE
#undef COORD
#undef COORD_WORDS
