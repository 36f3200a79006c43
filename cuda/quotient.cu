/* Scalars of H from the evaluations a, b of A·w, B·w on the domain: six transforms, and no other pass over memory.
 *
 * c = a∘b on the domain, so c is never sent nor read: c's first pass multiplies its inputs.
 *
 *   coset Lagrange (snarkjs)    a, b, c down (NR) and up to the coset (RN); the last pass of c writes a'b' - c'.
 *                               Division by Z is inside the key's points.
 *   powers (bellman)            write p = A·B = Σ p_k x^k, k < 2n. Modulo x^n - 1 it is C, from c; modulo x^n - κ, κ = g^n,
 *                               it is D, from a'∘b' on the coset. C_k = p_k + p_(k+n), D_k = p_k + κ p_(k+n), so
 *                               h_k = p_(k+n) = (C_k - D_k) / (1 - κ). The last pass of D reads C and writes h, in
 *                               bit-reversed order: H's points are stored so.
 *
 * Passes that do the same to several vectors are one launch: neighbouring blocks share twiddles.
 */
#include "cuda/transform.cuh"

namespace CURVE {

/* Sizes 2 and 4 multiply, transform and combine in separate steps, a thread an element. */
__global__ void __launch_bounds__(32)
    small_product_kernel(fr_int *out, const fr_int *a, const fr_int *b, uint32_t count) {
    uint32_t i = threadIdx.x, v[8], u[8];
    if (i < count) {
        fr_load(u, a + i);
        fr_load(v, b + i);
        fr_canonical(v);
        fr_mul_montgomery(u, u, v);
        fr_store(out + i, u);
    }
}
template <int OUT>
__global__ void __launch_bounds__(32)
    small_finish_kernel(fr_int *h, const fr_int *d, const __grid_constant__ pass_extra x,
                        uint32_t count) {
    uint32_t i = threadIdx.x, v[8];
    if (i < count) {
        fr_load(v, d + i);
        tile_work<false, IN_PLAIN, OUT>::finish(v, x, i);
        fr_store(h + i, v);
    }
}

} // namespace CURVE

using namespace CURVE;

extern "C" enum err CURVE_FN(ntt_inverse)(void *out, const void *in, const struct gpu_domain *d,
                                          struct gpu_stream *s);
extern "C" enum err CURVE_FN(ntt_coset)(void *out, const void *in, const struct gpu_domain *d,
                                        struct gpu_stream *s);

static enum err quotient_small(fr_int *h, fr_int *a, fr_int *b, const struct gpu_domain *d,
                               struct gpu_stream *s) {
    launch_shape one = {"small quotient", 1, 32};
    uint32_t n = 1u << d->log2;
    TRY(launch(one, s, small_product_kernel, h, (const fr_int *)a, (const fr_int *)b, n));
    TRY(CURVE_FN(ntt_inverse)(h, h, d, s));
    fr_int *both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        TRY(CURVE_FN(ntt_inverse)(both[i], both[i], d, s));
        TRY(CURVE_FN(ntt_coset)(both[i], both[i], d, s));
    }
    pass_extra x = extra_of(d, a, b, h);
    if (!d->powers) {
        TRY(CURVE_FN(ntt_coset)(h, h, d, s));
        return launch(one, s, small_finish_kernel<OUT_LAGRANGE>, h, (const fr_int *)h, x, n);
    }
    TRY(launch(one, s, small_product_kernel, b, (const fr_int *)a, (const fr_int *)b, n));
    TRY(CURVE_FN(ntt_inverse)(b, b, d, s));
    return launch(one, s, small_finish_kernel<OUT_POWERS>, h, (const fr_int *)b, x, n);
}

/* D = a'∘b' down again, by way of b; its last pass reads C in h and writes h. */
static enum err powers_tail(fr_int *h, fr_int *b, const struct gpu_domain *d, const pass *passes,
                            unsigned count, const pass_extra &x, struct gpu_stream *s) {
    pass_vectors inside = {{b}, {b}}, out = {{b}, {h}};
    const void *table = d->nr_table;
    const pass &last = passes[count - 1];
    if (count == 1) {
        return pass_run<true, IN_PRODUCT, OUT_POWERS>(last, d->log2, out, 1, table, x, s);
    }
    TRY((pass_run<true, IN_PRODUCT, OUT_PLAIN>(passes[0], d->log2, inside, 1, table, x, s)));
    for (unsigned i = 1; i + 1 < count; i++) {
        TRY(pass_nr_run(d, passes, i, count, inside, 1, s));
    }
    if (pass_is_lean_nr(d, count - 1, count)) {
        return pass_run<true, IN_ROOTS, OUT_POWERS>(last, d->log2, out, 1, table,
                                                    extra_with_roots(x, d->down), s);
    }
    return pass_run<true, IN_PLAIN, OUT_POWERS>(last, d->log2, out, 1, table, x, s);
}

static enum err lagrange_tail(fr_int *h, const struct gpu_domain *d, const pass *passes,
                              const pass_extra &x, struct gpu_stream *s) {
    pass_vectors c = {{h}, {h}};
    if (pass_is_lean_rn(d, 0)) {
        return pass_run<false, IN_ROOTS, OUT_LAGRANGE>(pass_rn(passes[0]), d->log2, c, 1,
                                                       d->rn_last, extra_with_roots(x, d->up), s);
    }
    return pass_run<false, IN_PLAIN, OUT_LAGRANGE>(pass_rn(passes[0]), d->log2, c, 1, d->rn_table,
                                                   x, s);
}

extern "C" enum err CURVE_FN(quotient)(void *h_out, void *a_in, void *b_in,
                                       const struct gpu_domain *d, struct gpu_stream *s) {
    fr_int *h = (fr_int *)h_out, *a = (fr_int *)a_in, *b = (fr_int *)b_in;
    if (d->log2 < 3) {
        return quotient_small(h, a, b, d, s);
    }
    pass passes[PASSES_MAX];
    unsigned count = passes_of(passes, d->log2);
    pass_extra x = extra_of(d, a, b, h);
    pass_vectors c = {{h}, {h}}, ab = {{a, b}, {a, b}}, abc = {{a, b, h}, {a, b, h}};
    TRY((pass_run<true, IN_PRODUCT, OUT_PLAIN>(passes[0], d->log2, c, 1, d->nr_table, x, s)));
    TRY(pass_nr_run(d, passes, 0, count, ab, 2, s));
    for (unsigned i = 1; i < count; i++) {
        TRY(pass_nr_run(d, passes, i, count, abc, 3, s));
    }
    for (unsigned i = count; i-- > 1;) {
        TRY(pass_rn_run(d, passes, i, abc, d->powers ? 2 : 3, s));
    }
    TRY(pass_rn_run(d, passes, 0, ab, 2, s));
    return d->powers ? powers_tail(h, b, d, passes, count, x, s)
                     : lagrange_tail(h, d, passes, x, s);
}
