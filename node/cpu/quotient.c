/* Two ways to the same polynomial h = (A·B - C)/(x^n - 1), where C interpolates c = a∘b on the domain.
 *
 * Coset basis (snarkjs): the key's points hold the division, so the scalars are the values of A·B - C on the coset: three
 * inverse transforms, a shift, three forward ones.
 *
 * Powers (bellman): with p = A·B = Σ p_k x^k, k < 2n, C_k = p_k + p_(k+n) are p's coefficients modulo x^n - 1 and
 * D_k = p_k + kappa·p_(k+n) those modulo x^n - kappa, which interpolate a'∘b' on the coset. So h_k = p_(k+n) =
 * (C_k - D_k)/(1 - kappa): c goes one way only, a and b both ways, and a'∘b' back: six again, and no division by Z.
 */
#include "node/cpu/quotient.h"

#include "node/cpu/ntt_body.h"

static void multiply_rows(void *ctx, size_t from, size_t to) {
    const struct quotient *q = ctx;
    q->ntt.body->multiply(q->c, q->a, q->b, false, from, to);
}

static void multiply_values(void *ctx, size_t from, size_t to) {
    const struct quotient *q = ctx;
    q->ntt.body->multiply(q->a, q->a, q->b, true, from, to);
}

static void leave_coset(void *ctx, size_t from, size_t to) {
    const struct quotient *q = ctx;
    q->ntt.body->leave_coset(q->h, q->ntt.domain, q->a, q->b, q->c, from, to);
}

static void leave_c(void *ctx, size_t from, size_t to) {
    const struct quotient *q = ctx;
    const struct domain *d = q->ntt.domain;
    q->ntt.body->leave_powers(q->h, d, q->c, d->weights[WEIGHT_C], true, false, from, to);
}

static void leave_d(void *ctx, size_t from, size_t to) {
    const struct quotient *q = ctx;
    const struct domain *d = q->ntt.domain;
    q->ntt.body->leave_powers(q->h, d, q->a, d->weights[WEIGHT_AB], false, true, from, to);
}

static void progress(const struct quotient *q, double done) {
    if (q->progress) {
        q->progress(q->progress_ctx, done);
    }
}

static bool run_coset(struct quotient *q) {
    void *const all[] = {q->a, q->b, q->c};
    if (!ntt_to_coset(&q->ntt, all, 3)) {
        return false;
    }
    progress(q, 0.95);
    return ntt_slices(&q->ntt, leave_coset, q);
}

static bool run_powers(struct quotient *q) {
    void *const ab[] = {q->a, q->b}, *const c[] = {q->c}, *const d[] = {q->a};
    if (!ntt_dif(&q->ntt, c, 1, false) || !ntt_slices(&q->ntt, leave_c, q)) {
        return false;
    }
    progress(q, 0.2);
    if (!ntt_to_coset(&q->ntt, ab, 2)) {
        return false;
    }
    progress(q, 0.8);
    return ntt_slices(&q->ntt, multiply_values, q) && ntt_dif(&q->ntt, d, 1, true) &&
           ntt_slices(&q->ntt, leave_d, q);
}

bool quotient_run(const struct quotient *shared) {
    struct quotient own = *shared, *q = &own;
    void *const ab[] = {q->a, q->b};
    if (!ntt_enter(&q->ntt, ab, 2) || !ntt_slices(&q->ntt, multiply_rows, q)) {
        return false;
    }
    bool done = q->ntt.domain->basis == H_COSET_LAGRANGE ? run_coset(q) : run_powers(q);
    if (done) {
        progress(q, 1);
    }
    return done;
}
