/* The pairing equation, alone and in batches.
 *
 * Alone: e(-A, B) · e(IC_0 + Σ x_j·IC_{j+1}, γ) · e(C, δ) · e(α, β) = 1, four Miller loops, one final exponentiation.
 *
 * Batch: raise proof i's equation to a random weight w_i of 128 bits and multiply. What shares its second argument is
 * folded before the pairing:
 *
 *   Π e(-w_i·A_i, B_i) · e((Σ w_i)·IC_0 + Σ_j (Σ_i w_i·x_ij)·IC_{j+1}, γ) · e(Σ w_i·C_i, δ) · e((Σ w_i)·α, β) = 1
 *
 * A set with a bad proof passes with probability 2^-128, provided that all points are in the subgroup: which is checked
 * first. When the product is not one, the proofs are tried one by one to name the first bad one.
 *
 * A proof is not unique: (-A, -B, C) verifies where (A, B, C) does, and anybody can re-randomise. It must not serve as an
 * identifier.
 */
#include "node/groth16/verify.h"
#include "node/base/mem.h"
#include "node/base/rng.h"

enum { BATCH_MAX = 256, FOLDED_PAIRS = 3, SINGLE_PAIRS = 4 };

/* Curve and subgroup, and no infinity where an honest proof cannot have one. */
static enum err check_points(const struct curve *c, const struct proof *p) {
    size_t idx = 0;
    REQUIRE(!g1_is_infinity(&p->a), E_UNSAT, "pi_a is the point at infinity");
    REQUIRE(!g2_is_infinity(&p->b), E_UNSAT, "pi_b is the point at infinity");
    REQUIRE(c->g1_check(&idx, (const uint8_t *)p->a.w, 1, true) == OK, E_UNSAT,
            "pi_a is not in the subgroup of order r of %s", c->snarkjs_name);
    REQUIRE(c->g2_check(&idx, (const uint8_t *)p->b.w, 1, true) == OK, E_UNSAT,
            "pi_b is not in the subgroup of order r of %s", c->snarkjs_name);
    REQUIRE(c->g1_check(&idx, (const uint8_t *)p->c.w, 1, true) == OK, E_UNSAT,
            "pi_c is not in the subgroup of order r of %s", c->snarkjs_name);
    return OK;
}

static enum err check_inputs(const struct vkey *vk, const struct scalar *publics,
                             size_t publics_count, const struct proof *proof) {
    REQUIRE(proof->curve == vk->curve, E_CURVE, "the proof is on curve %s, the key on curve %s",
            proof->curve->snarkjs_name, vk->curve->snarkjs_name);
    REQUIRE(publics_count == vk->public_count, E_RANGE,
            "%zu public signals are given; the key has %u", publics_count, vk->public_count);
    for (size_t i = 0; i < publics_count; i++) {
        REQUIRE(scalar_is_valid(vk->curve, &publics[i]), E_RANGE,
                "public signal %zu is not canonical: it is at or above the curve's order r", i);
    }
    return OK;
}

/* IC_0 + Σ x_j·IC_{j+1} */
static void sum_publics(struct g1 *out, const struct prepared *prepared, const struct vkey *vk,
                        const struct scalar *publics) {
    const struct curve *c = vk->curve;
    struct g1 sum;
    g1_load(out, c, vk->ic);
    if (prepared && vk->public_count <= PREPARED_COMBS_MAX) {
        for (size_t j = 0; j < vk->public_count; j++) {
            c->g1_comb_mul(&sum, prepared->ic_combs[j], &publics[j]);
            c->g1_add(out, out, &sum);
        }
        return;
    }
    if (prepared && prepared->ic_table) {
        c->g1_table_sum(&sum, prepared->ic_table, publics, vk->public_count);
    } else {
        c->g1_sum(&sum, vk->ic + c->g1_bytes, publics, vk->public_count);
    }
    c->g1_add(out, out, &sum);
}

bool verify_says_no(enum err code) {
    return code == E_UNSAT || code == E_RANGE || code == E_CURVE;
}

/* e(p[0], B) · e(p[1], gamma) · e(p[2], delta) · e(p[3], beta) = 1? */
static bool product_is_one(const struct prepared *prepared, const struct vkey *vk,
                           const struct g1 p[SINGLE_PAIRS], const struct g2 *b) {
    const struct curve *c = vk->curve;
    if (prepared) {
        const void *lines[] = {prepared->gamma_lines, prepared->delta_lines};
        const struct pairing_kept kept = {
            .p = p + 1, .lines = lines, .count = COUNT_OF(lines), .factor = &prepared->alpha_beta};
        return c->pairing_with_kept_is_one(p, b, &kept);
    }
    const struct g2 q[SINGLE_PAIRS] = {*b, vk->gamma2, vk->delta2, vk->beta2};
    return c->pairing_is_one(p, q, SINGLE_PAIRS);
}

enum err groth16_verify_prepared(const struct prepared *prepared, const struct vkey *vk,
                                 const struct scalar *publics, size_t publics_count,
                                 const struct proof *proof) {
    const struct curve *c = vk->curve;
    TRY(check_inputs(vk, publics, publics_count, proof));
    TRY(check_points(c, proof));
    struct g1 p[SINGLE_PAIRS];
    c->g1_neg(&p[0], &proof->a);
    sum_publics(&p[1], prepared, vk, publics);
    p[2] = proof->c;
    p[3] = vk->alpha1;
    REQUIRE(product_is_one(prepared, vk, p, &proof->b), E_UNSAT,
            "the pairing equation does not hold: the proof is not for these public signals and "
            "this key");
    return OK;
}

enum err groth16_verify(const struct vkey *vk, const struct scalar *publics, size_t publics_count,
                        const struct proof *proof) {
    return groth16_verify_prepared(NULL, vk, publics, publics_count, proof);
}

struct fold { /* of one batch: Σ w_i, Σ w_i·x_ij for each j, Σ w_i·C_i */
    struct scalar weight;
    struct scalar *publics; /* owned */
    struct g1 c;
};

static enum err weight_random(struct scalar *out) {
    *out = (struct scalar){{0}};
    do {
        TRY(rng_os(out->w, 16));
    } while (scalar_is_zero(out));
    return OK;
}

static enum err fold_item(struct fold *f, struct g1 *pair_a, const struct vkey *vk,
                          const struct verify_item *item) {
    const struct curve *c = vk->curve;
    struct scalar weight, x;
    TRY(weight_random(&weight));
    c->scalar_add(&f->weight, &f->weight, &weight);
    for (size_t j = 0; j < vk->public_count; j++) {
        c->scalar_mul(&x, &item->publics[j], &weight);
        c->scalar_add(&f->publics[j], &f->publics[j], &x);
    }
    struct g1 scaled;
    c->g1_mul(&scaled, &item->proof->c, &weight);
    c->g1_add(&f->c, &f->c, &scaled);
    c->g1_mul(&scaled, &item->proof->a, &weight);
    c->g1_neg(pair_a, &scaled);
    return OK;
}

/* All of at most BATCH_MAX items at once; *good says whether the product is one. */
static enum err verify_folded(bool *good, const struct vkey *vk, const struct verify_item *items,
                              size_t count) {
    const struct curve *c = vk->curve;
    AUTO(mem_free_ptr) struct scalar *publics = NULL;
    AUTO(mem_free_ptr) struct g1 *p = NULL;
    AUTO(mem_free_ptr) struct g2 *q = NULL;
    TRY(mem_new(&publics, (size_t)vk->public_count + 1, sizeof *publics));
    TRY(mem_new(&p, count + FOLDED_PAIRS, sizeof *p));
    TRY(mem_new(&q, count + FOLDED_PAIRS, sizeof *q));
    struct fold f = {.publics = publics};
    for (size_t i = 0; i < count; i++) {
        TRY(fold_item(&f, &p[i], vk, &items[i]));
        q[i] = items[i].proof->b;
    }
    struct g1 constant, sum;
    g1_load(&constant, c, vk->ic);
    c->g1_mul(&constant, &constant, &f.weight);
    c->g1_sum(&sum, vk->ic + c->g1_bytes, publics, vk->public_count);
    c->g1_add(&p[count], &constant, &sum);
    q[count] = vk->gamma2;
    p[count + 1] = f.c;
    q[count + 1] = vk->delta2;
    c->g1_mul(&p[count + 2], &vk->alpha1, &f.weight);
    q[count + 2] = vk->beta2;
    *good = c->pairing_is_one(p, q, count + FOLDED_PAIRS);
    return OK;
}

static enum err first_bad(size_t *bad_idx, const struct vkey *vk, const struct verify_item *items,
                          size_t from, size_t count) {
    for (size_t i = from; i < from + count; i++) {
        enum err code = groth16_verify(vk, items[i].publics, vk->public_count, items[i].proof);
        if (code != OK) {
            *bad_idx = i;
            return err_prefix(code, "proof %zu of the batch", i);
        }
    }
    FAIL(E_INTERNAL, "a batch of %zu proofs fails, each of them verifies", count);
}

enum err groth16_verify_batch(size_t *bad_idx, const struct vkey *vk,
                              const struct verify_item *items, size_t items_count) {
    for (size_t from = 0; from < items_count; from += BATCH_MAX) {
        size_t count = items_count - from < BATCH_MAX ? items_count - from : BATCH_MAX;
        bool good = true;
        for (size_t i = from; i < from + count && good; i++) {
            good = check_inputs(vk, items[i].publics, vk->public_count, items[i].proof) == OK &&
                   check_points(vk->curve, items[i].proof) == OK;
        }
        if (good) {
            TRY(verify_folded(&good, vk, &items[from], count));
        }
        if (!good) {
            return first_bad(bad_idx, vk, items, from, count);
        }
    }
    return OK;
}
