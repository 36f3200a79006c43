/* Domains: their twiddle tables, and the two transforms on their own.
 *
 *   T[b] = w^-bitrev(b), b < n/2: one table serves every stage of NR, as prefixes
 *   W[m + j] = g^(n/2m) w^(j n/2m), j < m: RN from bit-reversed coefficients straight to the coset g·H
 *
 * Tables are built on the device from two short ones of powers: w^i and w^(i 2^k). 96 bytes an element: 1.6 GB at 2^24,
 * built in 4 ms. Nearly all of them serve one pass each way; a lean domain leaves those out (transform.cuh, IN_ROOTS) and
 * takes 7 MB at 2^24, 29 MB at 2^27.
 */
#include "cuda/transform.cuh"

namespace CURVE {

/* low[i] = x^i, high[i] = x^(i 2^k), Montgomery form. */
__global__ void __launch_bounds__(64)
    powers_kernel(fr_int *low, fr_int *high, fr_int x, uint32_t k, uint32_t count) {
    uint32_t i = blockIdx.x * 64 + threadIdx.x;
    if (i < count) {
        fr_mont_pow(low[i].w, x, i);
        fr_mont_pow(high[i].w, x, (uint64_t)i << k);
    }
}
__device__ __forceinline__ void power_at(uint32_t *m, const fr_int *low, const fr_int *high,
                                         uint32_t k, uint32_t e) {
    uint32_t a[8], b[8];
    fr_load(a, high + (e >> k));
    fr_load(b, low + (e & ((1u << k) - 1)));
    fr_mont(m, a, b);
}
__global__ void __launch_bounds__(128)
    nr_table_kernel(fr_const *table, const fr_int *low, const fr_int *high, uint32_t k,
                    uint32_t log2, uint32_t count) {
    uint32_t b = blockIdx.x * 128 + threadIdx.x, m[8];
    if (b < count) {
        power_at(m, low, high, k, bits_reversed(b, log2 - 1));
        table[b] = fr_const_of_mont(m);
    }
}
struct stage_shifts {
    fr_int of[32]; /* g^(n/2m) for m = 2^i */
};
/* table[i] = W[i 2^stretch] for i < count. */
__global__ void __launch_bounds__(128)
    rn_table_kernel(fr_const *table, const fr_int *low, const fr_int *high,
                    const __grid_constant__ stage_shifts shifts, uint32_t k, uint32_t log2,
                    uint32_t count, uint32_t stretch) {
    uint32_t at = blockIdx.x * 128 + threadIdx.x, i = at << stretch, m[8], g[8];
    if (at == 0 || at >= count) {
        return;
    }
    uint32_t stage = 31 - (uint32_t)__clz((int)i);
    power_at(m, low, high, k, (i - (1u << stage)) << (log2 - 1 - stage));
    for (int c = 0; c < 8; c++) {
        g[c] = shifts.of[stage].w[c];
    }
    fr_mont(m, m, g);
    table[at] = fr_const_of_mont(m);
}
/* table[i] = start · step^i. */
__global__ void __launch_bounds__(64)
    scale_table_kernel(fr_const *table, fr_int start, fr_int step, uint32_t count) {
    uint32_t i = blockIdx.x * 64 + threadIdx.x, m[8];
    if (i < count) {
        fr_mont_pow(m, step, i);
        fr_mont(m, m, start.w);
        table[i] = fr_const_of_mont(m);
    }
}

/* Sizes 2 and 4, by one thread: stage by stage over the same tables. */
template <bool NR>
__global__ void __launch_bounds__(32)
    small_kernel(fr_int *out, const fr_int *in, const fr_const *table, uint32_t log2) {
    uint32_t n = 1u << log2;
    if (threadIdx.x || blockIdx.x) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        fr_int t = in[i];
        out[i] = t;
    }
    for (uint32_t stage = 0; stage < log2; stage++) {
        uint32_t half = NR ? n >> (stage + 1) : 1u << stage;
        for (uint32_t i = 0; i < n; i++) {
            if (i & half) {
                continue;
            }
            fr_const t = table[NR ? i / (2 * half) : half + (i & (half - 1))];
            uint32_t v[8], u[8], w[8];
            fr_mul(v, out[i + half].w, t);
            fr_difference(w, out[i].w, v);
            fr_sum(u, out[i].w, v);
            fr_store(out + i, u);
            fr_store(out + i + half, w);
        }
    }
}

enum err pass_nr_run(const struct gpu_domain *d, const pass *passes, unsigned i, unsigned count,
                     const pass_vectors &v, uint32_t vectors_count, struct gpu_stream *s) {
    pass_extra x = extra_of(d, nullptr, nullptr, nullptr);
    if (pass_is_lean_nr(d, i, count)) {
        return pass_run<true, IN_ROOTS, OUT_PLAIN>(passes[i], d->log2, v, vectors_count,
                                                   d->nr_table, extra_with_roots(x, d->down), s);
    }
    return pass_run<true, IN_PLAIN, OUT_PLAIN>(passes[i], d->log2, v, vectors_count, d->nr_table, x,
                                               s);
}
enum err pass_rn_run(const struct gpu_domain *d, const pass *passes, unsigned i,
                     const pass_vectors &v, uint32_t vectors_count, struct gpu_stream *s) {
    pass_extra x = extra_of(d, nullptr, nullptr, nullptr);
    if (pass_is_lean_rn(d, i)) {
        return pass_run<false, IN_ROOTS, OUT_PLAIN>(pass_rn(passes[i]), d->log2, v, vectors_count,
                                                    d->rn_last, extra_with_roots(x, d->up), s);
    }
    return pass_run<false, IN_PLAIN, OUT_PLAIN>(pass_rn(passes[i]), d->log2, v, vectors_count,
                                                d->rn_table, x, s);
}

/* Entries of the tables: all that the stages need, or lean what is left of them. */
struct domain_counts {
    bool lean;
    unsigned first_bits; /* index bits of the first pass down, the last one up */
    uint32_t nr, rn, rn_last;
};
static domain_counts domain_counts_of(unsigned log2, bool lean) {
    domain_counts c = {false, 0, 1u << (log2 - 1), 1u << log2, 0};
    pass passes[PASSES_MAX];
    if (!lean || log2 <= TILE_LOG2) { /* a single pass: nothing to save */
        return c;
    }
    unsigned count = passes_of(passes, log2), last = passes[count - 1].p, first = passes[0].p;
    c.lean = true;
    c.first_bits = first;
    c.nr = 1u << ((log2 - last > last ? log2 - last : last) - 1);
    c.rn = 1u << (log2 - first);
    c.rn_last = 1u << first;
    return c;
}

struct domain_space {
    fr_const *nr, *rn, *scale_high, *scale_low, *rn_last, *down[2], *up[2];
    fr_int *low, *high;
    size_t bytes;
};
static fr_const *constants_carve(size_t *used, void *memory, size_t count) {
    fr_const *at = memory ? (fr_const *)((char *)memory + *used) : nullptr;
    *used += (count * sizeof(fr_const) + 255) & ~(size_t)255;
    return at;
}
static domain_space domain_carve(unsigned log2, bool powers, bool lean, void *memory) {
    domain_counts c = domain_counts_of(log2, lean);
    size_t half = (size_t)1 << (log2 + 1) / 2, used = 0, halves = c.lean ? half : 0;
    domain_space d;
    d.nr = constants_carve(&used, memory, c.nr + 1);
    d.rn = constants_carve(&used, memory, c.rn);
    d.scale_high = constants_carve(&used, memory, powers ? half : 0);
    d.scale_low = constants_carve(&used, memory, powers ? half : 0);
    d.rn_last = constants_carve(&used, memory, c.rn_last);
    for (int i = 0; i < 2; i++) {
        d.down[i] = constants_carve(&used, memory, halves);
        d.up[i] = constants_carve(&used, memory, halves);
    }
    /* These hold 32-byte elements: half of `half` suffices. */
    d.low = (fr_int *)constants_carve(&used, memory, half / 2 + 1);
    d.high = (fr_int *)constants_carve(&used, memory, half / 2 + 1);
    d.bytes = used;
    return d;
}

/* Constants of the last pass. Values there carry powers of n (no 1/n is ever applied) and 1/2^256 (products of two
 * variables): with R = 2^256, a' = n a, c' = n c / R, a'b' arrives as n² a b / R.
 *   Lagrange   h = a b - c          = (R/n²)·(a'b'/R…) - (R/n)·c'
 *   powers     h_k = (C_k - D_k) / (1 - κ), κ = g^n; D came through the coset: scale g^-k / n³ */
static enum err domain_constants(struct gpu_domain *out, const domain_space &space,
                                 const fr_int &shift, struct gpu_stream *s) {
    fr_int n = {{1u << out->log2, 0, 0, 0, 0, 0, 0, 0}}, square, m, k1, k2;
    fr_int n_inverse = fr_mont_inverse(fr_to_mont(n));
    for (int i = 0; i < 8; i++) {
        square.w[i] = fr_modulus::square(i);
    }
    if (!out->powers) {
        fr_mont(m.w, n_inverse.w, n_inverse.w);
        fr_mont(k1.w, m.w, square.w);
        fr_mont(k2.w, n_inverse.w, square.w);
        fr_const c1 = fr_const_of_mont(k1.w), c2 = fr_const_of_mont(k2.w);
        memcpy(out->k1, c1.w, sizeof c1.w);
        memcpy(out->k2, c2.w, sizeof c2.w);
        return OK;
    }
    fr_int kappa, one = fr_mont_one(), factor, start, step;
    fr_mont_pow(kappa.w, shift, (uint64_t)1 << out->log2);
    fr_sub_canonical(factor.w, one.w, kappa.w);
    factor = fr_mont_inverse(factor);
    fr_mont(m.w, factor.w, n_inverse.w); /* 1 / (n (1 - κ)) */
    fr_mont(k1.w, m.w, square.w);
    fr_mont(start.w, m.w, n_inverse.w);
    fr_mont(start.w, start.w, n_inverse.w);
    fr_mont(start.w, start.w, square.w);
    fr_const c1 = fr_const_of_mont(k1.w);
    memcpy(out->k1, c1.w, sizeof c1.w);
    unsigned h = out->log2 / 2;
    fr_int shift_inverse = fr_mont_inverse(shift);
    fr_mont_pow(step.w, shift_inverse, (uint64_t)1 << h);
    uint32_t high_count = 1u << (out->log2 - h), low_count = 1u << h;
    TRY(launch({"scale table", blocks_for(high_count, 64), 64}, s, scale_table_kernel,
               space.scale_high, start, step, high_count));
    return launch({"scale table", blocks_for(low_count, 64), 64}, s, scale_table_kernel,
                  space.scale_low, one, shift_inverse, low_count);
}

} // namespace CURVE

using namespace CURVE;

/* high[i] = root^(i 2^h), low[i] = root^i, h = log2 / 2. */
static enum err roots_build(fr_const *const table[2], const fr_int &root, unsigned log2,
                            struct gpu_stream *s) {
    fr_int one = fr_mont_one(), step;
    unsigned h = log2 / 2;
    uint32_t high_count = 1u << (log2 - h), low_count = 1u << h;
    fr_mont_pow(step.w, root, (uint64_t)1 << h);
    TRY(launch({"root table", blocks_for(high_count, 64), 64}, s, scale_table_kernel, table[0], one,
               step, high_count));
    return launch({"root table", blocks_for(low_count, 64), 64}, s, scale_table_kernel, table[1],
                  one, root, low_count);
}

extern "C" size_t CURVE_FN(domain_bytes)(unsigned log2, bool powers, bool lean) {
    return domain_carve(log2, powers, lean, nullptr).bytes;
}

extern "C" enum err CURVE_FN(domain_build)(struct gpu_domain *out,
                                           const struct gpu_domain_options *o, void *memory,
                                           struct gpu_stream *s) {
    REQUIRE(o->log2 >= 1 && o->log2 <= 28 && o->log2 <= (unsigned)fr_modulus::two_adicity, E_RANGE,
            "a domain of 2^%u: 2^1 to 2^28 are possible", o->log2);
    domain_space space = domain_carve(o->log2, o->powers, o->lean, memory);
    domain_counts counts = domain_counts_of(o->log2, o->lean);
    fr_int root = fr_to_mont(fr_of_words(o->root)), shift = fr_to_mont(fr_of_words(o->shift));
    fr_int root_inverse = fr_mont_inverse(root);
    uint32_t log2 = o->log2, k = (log2 + 1) / 2, count = 1u << k;
    const fr_int *low = space.low, *high = space.high;
    launch_shape powers = {"powers", blocks_for(count, 64), 64};
    TRY(launch(powers, s, powers_kernel, space.low, space.high, root_inverse, k, count));
    TRY(launch({"twiddles NR", blocks_for(counts.nr, 128), 128}, s, nr_table_kernel, space.nr, low,
               high, k, log2, counts.nr));
    TRY(launch(powers, s, powers_kernel, space.low, space.high, root, k, count));
    stage_shifts shifts;
    memset(&shifts, 0, sizeof shifts);
    for (uint32_t i = 0; i < log2; i++) {
        fr_mont_pow(shifts.of[i].w, shift, (uint64_t)1 << (log2 - 1 - i));
    }
    TRY(launch({"twiddles RN", blocks_for(counts.rn, 128), 128}, s, rn_table_kernel, space.rn, low,
               high, shifts, k, log2, counts.rn, 0u));
    TRY(launch({"twiddles RN", blocks_for(counts.rn_last, 128), 128}, s, rn_table_kernel,
               space.rn_last, low, high, shifts, k, log2, counts.rn_last,
               log2 - counts.first_bits));
    if (counts.lean) {
        TRY(roots_build(space.down, root_inverse, log2, s));
        TRY(roots_build(space.up, root, log2, s));
    }
    struct gpu_domain d;
    memset(&d, 0, sizeof d);
    d.log2 = log2;
    d.powers = o->powers;
    d.lean = counts.lean;
    d.nr_table = space.nr;
    d.rn_table = space.rn;
    d.rn_last = space.rn_last;
    for (int i = 0; i < 2; i++) {
        d.down[i] = space.down[i];
        d.up[i] = space.up[i];
    }
    d.scale_high = space.scale_high;
    d.scale_low = space.scale_low;
    TRY(domain_constants(&d, space, shift, s));
    *out = d;
    return OK;
}

extern "C" enum err CURVE_FN(ntt_inverse)(void *out, const void *in, const struct gpu_domain *d,
                                          struct gpu_stream *s) {
    if (d->log2 < 3) {
        return launch({"small transform", 1, 32}, s, small_kernel<true>, (fr_int *)out,
                      (const fr_int *)in, (const fr_const *)d->nr_table, d->log2);
    }
    pass passes[PASSES_MAX];
    unsigned count = passes_of(passes, d->log2);
    for (unsigned i = 0; i < count; i++) {
        pass_vectors v = {{(const fr_int *)(i ? out : in)}, {(fr_int *)out}};
        TRY(pass_nr_run(d, passes, i, count, v, 1, s));
    }
    return OK;
}

extern "C" enum err CURVE_FN(ntt_coset)(void *out, const void *in, const struct gpu_domain *d,
                                        struct gpu_stream *s) {
    if (d->log2 < 3) {
        return launch({"small transform", 1, 32}, s, small_kernel<false>, (fr_int *)out,
                      (const fr_int *)in, (const fr_const *)d->rn_table, d->log2);
    }
    pass passes[PASSES_MAX];
    unsigned count = passes_of(passes, d->log2);
    for (unsigned i = count; i-- > 0;) {
        pass_vectors v = {{(const fr_int *)(i + 1 < count ? out : in)}, {(fr_int *)out}};
        TRY(pass_rn_run(d, passes, i, v, 1, s));
    }
    return OK;
}

extern "C" void CURVE_FN(constant)(void *out, const uint64_t value[4]) {
    fr_int m = fr_to_mont(fr_of_words(value));
    fr_const c = fr_const_of_mont(m.w);
    memcpy(out, c.w, sizeof c.w);
}
