/* One batch of affine additions without special cases, over one group: template, included twice by fixed_tmpl.c.
 *
 *     #define GROUP             g1      points, from node/curve/group.h
 *     #define COORD             fp      the coordinate field
 *     #define SUM               fixed1  prefix of everything here
 *
 * Two passes share one inversion (Montgomery's trick). Cost: 5 products and a square an addition.
 */
#define G(name)  TMPL_JOIN(SUM, name)
#define CO(name) TMPL_JOIN(COORD, name)
#define J(name)  TMPL_JOIN(GROUP, name)

typedef J(affine) G(point);

static bool G(add)(uint8_t *out, const uint8_t *const *a, const uint8_t *const *b, size_t count) {
    COORD den[FIXED_BATCH], prefix[FIXED_BATCH], product = CO(one), inverse;
    ASSERT(count <= FIXED_BATCH);
    for (size_t i = 0; i < count; i++) {
        G(point) p, q;
        memcpy(&p, a[i], sizeof p);
        memcpy(&q, b[i], sizeof q);
        CO(sub)(&den[i], &q.x, &p.x);
        prefix[i] = product;
        CO(mul)(&product, &product, &den[i]);
    }
    if (CO(is_zero)(&product)) {
        return false;
    }
    CO(inv)(&inverse, &product);
    for (size_t i = count; i-- > 0;) {
        G(point) p, q, sum;
        COORD slope, t;
        memcpy(&p, a[i], sizeof p);
        memcpy(&q, b[i], sizeof q);
        CO(mul)(&slope, &inverse, &prefix[i]);
        CO(mul)(&inverse, &inverse, &den[i]);
        CO(sub)(&t, &q.y, &p.y);
        CO(mul)(&slope, &slope, &t);
        CO(sqr)(&t, &slope);
        CO(sub)(&t, &t, &p.x);
        CO(sub)(&sum.x, &t, &q.x);
        CO(sub)(&t, &p.x, &sum.x);
        CO(mul)(&t, &t, &slope);
        CO(sub)(&sum.y, &t, &p.y);
        memcpy(out + i * sizeof sum, &sum, sizeof sum);
    }
    return true;
}

#undef G
#undef CO
#undef J
#undef GROUP
#undef COORD
#undef SUM
