/* One pass of a transform: up to 2^10 elements of a tile, eight elements a thread, radix-8 rounds in registers, exchanges
 * through shared memory between them.
 *
 *   NR   natural to bit-reversed order: stages from the top index bit down; block b of a stage has one twiddle T[b]
 *   RN   bit-reversed to natural order: stages from bit 0 up; place j in a half of m has the twiddle W[m + j]
 *
 * Every butterfly is u + w v, u - w v with w v below 2r; sums are corrected on carry or borrow alone, so values stay "some
 * 256-bit number of the class" from load to store. No 1/n, no coset scaling, no bit reversal anywhere: factors of n sit in
 * the constants of the last pass, the coset shift in W.
 *
 * A tile of 2^lt elements is 2^p rows at stride 2^s times 2^(lt-p) neighbouring columns, or for s = 0 contiguous: then its
 * loads and stores use the top register window ("edge"), so that lanes run along memory.
 * Shared memory is two planes of 16-byte halves, index l ^ (l >> 3 & 7): free of bank conflicts in every round, since the
 * map is linear over bits; the eight offsets of a round are constants that the host computes.
 *
 * Tried and lost: 256 threads and tiles of 2^11 (12 % slower), 3 or 5 blocks an SM, prefetching, more and shorter passes.
 */
#pragma once
#include "cuda/check.cuh"
#include "cuda/fr.cuh"

namespace CURVE {

enum { TILE_LOG2 = 10, TILE_THREADS = 128, PASSES_MAX = 4 };
/* What a pass does besides: multiply its input from a and b; write k1·a'b' - k2·c'; write k1·C - s_j·D. Or, when tables are
 * lean: the pass that would read the large part of a table (the last one, either way) multiplies each element by a power
 * of the root, which is two constants from two short tables, and goes on as a plain small transform. */
enum pass_in { IN_PLAIN, IN_PRODUCT, IN_ROOTS };
enum pass_out { OUT_PLAIN, OUT_LAGRANGE, OUT_POWERS };

struct pass {
    uint32_t lt, p, lc, s; /* log2 of tile, rows, columns, stride */
    uint32_t rounds,
        bits[4];    /* index bits of each round: top ones first for NR, low ones first for RN */
    uint32_t first; /* NR: nothing above: T[0] = 1 is not multiplied */
    uint32_t offsets
        [5][8]; /* shared-memory offsets of the eight registers in each round, and at the edge */
    uint32_t window[4],
        edge; /* lowest tile-index bit of the register window in each round, and at the edge */
};
struct pass_extra {
    const fr_int *a, *b, *c; /* factors; C */
    fr_const k1, k2;
    const fr_const *scale_high, *scale_low; /* scale of j = j1 2^h + j2: high[j1]·low[j2] */
    const fr_const *root_high, *root_low;   /* of root^e, split like the scale */
    uint32_t h, log2;
};
struct pass_vectors {
    const fr_int *in[3];
    fr_int *out[3];
};

HOST_DEVICE uint32_t swizzle(uint32_t l) {
    return l ^ (l >> 3 & 7);
}
HOST_DEVICE uint32_t bits_reversed(uint32_t x, uint32_t bits) {
#ifdef __CUDA_ARCH__
    return bits ? __brev(x) >> (32 - bits) : 0;
#else
    uint32_t r = 0;
    for (uint32_t i = 0; i < bits; i++) {
        r |= (x >> i & 1) << (bits - 1 - i);
    }
    return r;
#endif
}

template <bool NR, int IN, int OUT> struct tile_work {
    uint32_t d[8][8];

    /* A thread's first element within the tile, its register window standing at bit w. */
    HOST_DEVICE static uint32_t local(uint32_t thread, uint32_t w) {
        return (thread & ((1u << w) - 1)) | (thread >> w) << (w + 3);
    }
    HOST_DEVICE static uint32_t global(const pass &a, uint32_t tile, uint32_t l) {
        if (!a.s) {
            return tile << a.lt | l;
        }
        uint32_t groups = a.s - a.lc, group = tile & ((1u << groups) - 1), high = tile >> groups;
        return high << (a.p + a.s) | (l >> a.lc) << a.s | group << a.lc | (l & ((1u << a.lc) - 1));
    }
    HOST_DEVICE static uint32_t global_bit(const pass &a, uint32_t w) {
        return a.s ? w - a.lc + a.s : w;
    }

    HOST_DEVICE void load(const pass &a, const pass_extra &x, const fr_int *in, uint32_t tile,
                          uint32_t thread, uint32_t w) {
        uint32_t g = global(a, tile, local(thread, w)), step = global_bit(a, w);
#pragma unroll
        for (uint32_t k = 0; k < 8; k++) {
            uint32_t i = g + (k << step);
            if (IN == IN_PRODUCT) {
                uint32_t u[8], v[8];
                fr_load(u, x.a + i);
                fr_load(v, x.b + i);
                fr_canonical(v);
                fr_mul_montgomery(d[k], u, v);
            } else {
                fr_load(d[k], in + i);
            }
            if (IN == IN_ROOTS) {
                times_root(d[k], a, x, i);
            }
        }
    }
    /* NR: place i of sub-transform b takes root^(bitrev(b)·i). RN: row q of column j, root^(j·bitrev(q)). */
    HOST_DEVICE static void times_root(uint32_t *d, const pass &a, const pass_extra &x,
                                       uint32_t i) {
        uint32_t e = NR ? bits_reversed(i >> a.p, x.log2 - a.p) * (i & ((1u << a.p) - 1))
                        : (i & ((1u << a.s) - 1)) * bits_reversed(i >> a.s, a.p);
        fr_const t;
        fr_const_load(&t, x.root_high + (e >> x.h));
        fr_mul(d, d, t);
        fr_const_load(&t, x.root_low + (e & ((1u << x.h) - 1)));
        fr_mul(d, d, t);
    }
    HOST_DEVICE void store(const pass &a, const pass_extra &x, fr_int *out, uint32_t tile,
                           uint32_t thread, uint32_t w) {
        uint32_t g = global(a, tile, local(thread, w)), step = global_bit(a, w);
#pragma unroll
        for (uint32_t k = 0; k < 8; k++) {
            uint32_t i = g + (k << step);
            finish(d[k], x, i);
            fr_store(out + i, d[k]);
        }
    }
    HOST_DEVICE static void finish(uint32_t *d, const pass_extra &x, uint32_t i) {
        uint32_t u[8], v[8];
        if (OUT == OUT_LAGRANGE) {
            fr_load(u, x.a + i);
            fr_load(v, x.b + i);
            fr_canonical(v);
            fr_mul_montgomery(u, u, v);
            fr_mul(u, u, x.k1);
            fr_mul(v, d, x.k2);
            fr_difference(d, u, v);
            fr_canonical(d);
        } else if (OUT == OUT_POWERS) {
            fr_const t;
            uint32_t j = bits_reversed(i, x.log2);
            fr_load(u, x.c + i);
            fr_mul(u, u, x.k1);
            fr_const_load(&t, x.scale_high + (j >> x.h));
            fr_mul(v, d, t);
            fr_const_load(&t, x.scale_low + (j & ((1u << x.h) - 1)));
            fr_mul(v, v, t);
            fr_difference(d, u, v);
            fr_canonical(d);
        }
    }
    HOST_DEVICE void put(const pass &a, void *shared, uint32_t thread, uint32_t w, uint32_t round) {
        uint32_t l = swizzle(local(thread, w)) * 16, high = 16u << a.lt;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            char *at = (char *)shared + (l ^ a.offsets[round][k]);
            store16(at, d[k]);
            store16(at + high, d[k] + 4);
        }
    }
    HOST_DEVICE void get(const pass &a, const void *shared, uint32_t thread, uint32_t w,
                         uint32_t round) {
        uint32_t l = swizzle(local(thread, w)) * 16, high = 16u << a.lt;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const char *at = (const char *)shared + (l ^ a.offsets[round][k]);
            load16(d[k], at);
            load16(d[k] + 4, at + high);
        }
    }
    HOST_DEVICE void butterfly(int i, int j, const fr_const &t, bool by_one) {
        uint32_t v[8];
        if (by_one) {
#pragma unroll
            for (int k = 0; k < 8; k++) {
                v[k] = d[j][k];
            }
            fr_below_twice(v);
        } else {
            fr_mul(v, d[j], t);
        }
        fr_difference(d[j], d[i], v);
        fr_sum(d[i], d[i], v);
    }
    HOST_DEVICE void round_nr(const fr_const *table, uint32_t block, uint32_t bits, bool by_one) {
        fr_const t;
        if (bits == 3) {
            if (!by_one) {
                fr_const_load(&t, table + block);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                butterfly(i, i + 4, t, by_one);
            }
        }
        if (bits >= 2) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                if (!by_one || h) {
                    fr_const_load(&t, table + 2 * block + h);
                }
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    butterfly(4 * h + i, 4 * h + i + 2, t, by_one && !h);
                }
            }
        }
#pragma unroll
        for (int h = 0; h < 4; h++) {
            if (!by_one || h) {
                fr_const_load(&t, table + 4 * block + h);
            }
            butterfly(2 * h, 2 * h + 1, t, by_one && !h);
        }
    }
    HOST_DEVICE void round_rn(const fr_const *w, uint32_t step, uint32_t bits) {
        fr_const t;
        if (bits == 3) {
            fr_const_load(&t, w + (1u << step));
#pragma unroll
            for (int i = 0; i < 4; i++) {
                butterfly(2 * i, 2 * i + 1, t, false);
            }
        }
        if (bits >= 2) {
#pragma unroll
            for (uint32_t h = 0; h < 2; h++) {
                fr_const_load(&t, w + ((2 + h) << step));
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    butterfly(4 * i + (int)h, 4 * i + (int)h + 2, t, false);
                }
            }
        }
#pragma unroll
        for (uint32_t h = 0; h < 4; h++) {
            fr_const_load(&t, w + ((4 + h) << step));
            butterfly((int)h, (int)h + 4, t, false);
        }
    }
    HOST_DEVICE void round(const pass &a, const fr_const *table, uint32_t tile, uint32_t thread,
                           uint32_t r, uint32_t w) {
        uint32_t l = local(thread, w), g = global(a, tile, l), step = global_bit(a, w);
        if (IN == IN_ROOTS) { /* places within the sub-transform */
            g = a.s ? l >> a.lc : l & ((1u << a.p) - 1);
            step = a.s ? w - a.lc : w;
        }
        if (NR) {
            round_nr(table, g >> (step + 3), a.bits[r], (a.first || IN == IN_ROOTS) && !r);
        } else {
            round_rn(table + (g & ((1u << step) - 1)), step, a.bits[r]);
        }
    }
};

/* 128 threads of 128 registers, 64 of them the eight elements; 32 KiB shared; so 4 blocks an SM, of which one loads while
 * three compute. Bound by the multiplier. The round loop stays a loop: one body of 12 products. */
template <bool NR, int IN, int OUT>
__global__ void __launch_bounds__(TILE_THREADS, 4)
    pass_kernel(pass_vectors v, uint32_t vectors_count, const fr_const *table,
                const __grid_constant__ pass a, const __grid_constant__ pass_extra x) {
    __shared__ uint4 shared[2 << TILE_LOG2];
    tile_work<NR, IN, OUT> work;
    uint32_t tile = blockIdx.x, which = 0;
    if (vectors_count > 1) { /* neighbouring blocks share twiddles */
        which = tile % vectors_count;
        tile /= vectors_count;
    }
    const fr_int *in = which == 0 ? v.in[0] : which == 1 ? v.in[1] : v.in[2];
    fr_int *out = which == 0 ? v.out[0] : which == 1 ? v.out[1] : v.out[2];
    uint32_t thread = threadIdx.x, before = a.s ? a.window[0] : a.edge, before_round = a.s ? 0 : 4;
    work.load(a, x, in, tile, thread, before);
#pragma unroll 1
    for (uint32_t r = 0; r < a.rounds; r++) {
        uint32_t w = a.window[r];
        if (w != before) {
            work.put(a, shared, thread, before, before_round);
            __syncthreads();
            work.get(a, shared, thread, w, r);
        }
        work.round(a, table, tile, thread, r, w);
        before = w;
        before_round = r;
    }
    uint32_t w = a.s ? before : a.edge;
    if (w != before) {
        work.put(a, shared, thread, before, before_round);
        __syncthreads();
        work.get(a, shared, thread, w, 4);
    }
    work.store(a, x, out, tile, thread, w);
}

/* --- host: the passes of a size, largest stride first as NR runs them; RN runs them backwards --- */
static inline void pass_windows(pass *a, bool nr) {
    uint32_t base = a->s ? a->lc : 0, at = base + (nr ? a->p : 0);
    a->edge = base + a->p - 3;
    for (uint32_t i = 0; i < a->rounds; i++) {
        at = nr ? at - a->bits[i] : at + a->bits[i];
        a->window[i] = nr ? at : at - 3;
    }
    for (uint32_t i = 0; i < 5; i++) {
        for (uint32_t k = 0; k < 8; k++) {
            a->offsets[i][k] = swizzle(k << (i < 4 ? a->window[i] : a->edge)) * 16;
        }
    }
}
/* log2 from 3 on. Every pass has at least 3 index bits and as many columns as its stride allows. */
static inline unsigned passes_of(pass *out, unsigned log2) {
    unsigned count = log2 <= TILE_LOG2           ? 1
                     : log2 <= 2 * TILE_LOG2 - 2 ? 2
                     : log2 <= 3 * TILE_LOG2 - 3 ? 3
                                                 : 4;
    uint32_t left = log2, stride = log2;
    for (unsigned i = 0; i < count; i++) {
        pass a;
        memset(&a, 0, sizeof a);
        a.p = (left + (count - i) - 1) / (count - i);
        left -= a.p;
        stride -= a.p;
        a.lt = log2 < TILE_LOG2 ? log2 : (uint32_t)TILE_LOG2;
        a.lc = a.lt - a.p;
        a.s = stride;
        a.first = i == 0;
        for (uint32_t bits = a.p;
             bits;) { /* 3 each; 4 left: 2 and 2, but 3 and 1 at the start of a tile's bits */
            uint32_t k = bits < 3 ? bits : bits == 4 && a.rounds ? 2 : 3;
            a.bits[a.rounds++] = k;
            bits -= k;
        }
        pass_windows(&a, true);
        out[i] = a;
    }
    return count;
}
static inline pass pass_rn(pass a) {
    a.first = 0;
    pass_windows(&a, false);
    return a;
}

template <bool NR, int IN, int OUT>
static enum err pass_run(const pass &a, unsigned log2, const pass_vectors &v,
                         uint32_t vectors_count, const void *table, const pass_extra &x,
                         struct gpu_stream *s) {
    launch_shape shape = {"transform", (1u << (log2 - a.lt)) * vectors_count, 1u << (a.lt - 3)};
    return launch(shape, s, pass_kernel<NR, IN, OUT>, v, vectors_count, (const fr_const *)table, a,
                  x);
}
static inline pass_extra extra_of(const struct gpu_domain *d, const fr_int *a, const fr_int *b,
                                  const fr_int *c) {
    pass_extra x;
    memset(&x, 0, sizeof x);
    x.a = a;
    x.b = b;
    x.c = c;
    memcpy(x.k1.w, d->k1, sizeof x.k1.w);
    memcpy(x.k2.w, d->k2, sizeof x.k2.w);
    x.scale_high = (const fr_const *)d->scale_high;
    x.scale_low = (const fr_const *)d->scale_low;
    x.h = d->log2 / 2;
    x.log2 = d->log2;
    return x;
}
/* The same with the roots of a lean domain's last pass. */
static inline pass_extra extra_with_roots(pass_extra x, const void *const roots[2]) {
    x.root_high = (const fr_const *)roots[0];
    x.root_low = (const fr_const *)roots[1];
    return x;
}
static inline bool pass_is_lean_nr(const struct gpu_domain *d, unsigned i, unsigned count) {
    return d->lean && i + 1 == count;
}
static inline bool pass_is_lean_rn(const struct gpu_domain *d, unsigned i) {
    return d->lean && i == 0;
}
/* Pass i of `count` that does nothing besides, compiled once, in ntt.cu. */
enum err pass_nr_run(const struct gpu_domain *d, const pass *passes, unsigned i, unsigned count,
                     const pass_vectors &v, uint32_t vectors_count, struct gpu_stream *s);
enum err pass_rn_run(const struct gpu_domain *d, const pass *passes, unsigned i,
                     const pass_vectors &v, uint32_t vectors_count, struct gpu_stream *s);

} // namespace CURVE
