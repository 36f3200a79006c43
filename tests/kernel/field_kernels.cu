/* Every primitive of the device's fields, a thread an element: what tests/kernel/field.c compares with the processor. */
#include "cuda/check.cuh"
#include "cuda/field2_lanes.cuh"
#include "cuda/fr.cuh"
#include "tests/kernel/field_kernels.h"

namespace CURVE {

template <class T> __device__ __forceinline__ T element(const uint32_t *from, size_t i) {
    T t;
    memcpy(&t, from + i * (sizeof(T) / 4), sizeof t);
    return t;
}
template <class T> __device__ __forceinline__ void put(uint32_t *to, size_t i, const T &t) {
    memcpy(to + i * (sizeof(T) / 4), &t, sizeof t);
}

template <class F>
__global__ void __launch_bounds__(128)
    field_kernel(enum field_op op, uint32_t *out, const uint32_t *a, const uint32_t *b,
                 uint32_t count) {
    uint32_t i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) {
        return;
    }
    F x = element<F>(a, i), y = element<F>(b, i), r = F::zero();
    switch (op) {
    case FIELD_ADD:
        r = x + y;
        break;
    case FIELD_SUB:
        r = x - y;
        break;
    case FIELD_MUL:
        r = x * y;
        break;
    case FIELD_SQR:
        r = x.sqr();
        break;
    case FIELD_INV:
        r = x.inv();
        break;
    case FIELD_NEG:
        r = x.neg();
        break;
    case FIELD_LAZY: /* chains as the additions make them: 2p·2p, then once more */
        r = x.sub_lazy(y).mul_lazy(y.sub_lazy(x)).mul_lazy(x.sub_lazy(y)) * F::one();
        break;
    default:
        break;
    }
    put(out, i, r);
}

/* Two threads an element; those behind the last one take the last, as the whole warp must shuffle. */
__global__ void __launch_bounds__(128)
    lanes_kernel(enum field_op op, uint32_t *out, const uint32_t *a, const uint32_t *b,
                 uint32_t count) {
    uint32_t i = blockIdx.x * 64 + threadIdx.x / 2;
    size_t half = 2 * (size_t)(i < count ? i : count - 1) + fp2_half::lane();
    fp2_half x = element<fp2_half>(a, half), y = element<fp2_half>(b, half);
    fp2_half r = op == FIELD_SQR    ? x.sqr()
                 : op == FIELD_LAZY ? x.times_conjugate(y.scaled(fp2_half::of_lane(y.v, 1)))
                                    : x * y;
    if (op == FIELD_NEG) {
        r.v = fp2_half::norm(x.v, x.other());
        montgomery<fp_modulus>::reduce(r.v.v);
    }
    if (i < count) {
        put(out, half, r);
    }
}

__global__ void __launch_bounds__(128) fr_kernel(enum field_op op, uint32_t *out, const uint32_t *a,
                                                 const uint32_t *b, uint32_t count) {
    uint32_t i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) {
        return;
    }
    fr_int x = element<fr_int>(a, i), y = element<fr_int>(b, i), r = x;
    fr_const c = fr_const_of_mont(fr_to_mont(y).w);
    uint32_t t[8];
    switch (op) {
    case FIELD_ADD:
        fr_sum(r.w, x.w, y.w);
        break;
    case FIELD_SUB:
        fr_difference(r.w, x.w, y.w);
        break;
    case FIELD_MUL:
        fr_mul(r.w, x.w, c);
        break;
    case FIELD_SQR: /* x y / 2^256, then times 2^256 */
        fr_mul_montgomery(t, x.w, y.w);
        fr_canonical(t);
        memcpy(r.w, t, sizeof t);
        r = fr_to_mont(r);
        break;
    case FIELD_LAZY: /* a butterfly, both ways */
        fr_mul(t, x.w, c);
        fr_difference(r.w, y.w, t);
        fr_sum(r.w, r.w, t);
        fr_sum(r.w, r.w, t);
        break;
    default: /* canonical form */
        break;
    }
    fr_canonical(r.w);
    put(out, i, r);
}

} // namespace CURVE

using namespace CURVE;

extern "C" enum err CURVE_FN(field_run)(enum field_kind kind, enum field_op op, void *out,
                                        const void *a, const void *b, uint32_t count,
                                        struct gpu_stream *s) {
    launch_shape shape = {"field test", blocks_for(count, 128), 128};
    uint32_t *to = (uint32_t *)out;
    const uint32_t *x = (const uint32_t *)a, *y = (const uint32_t *)b;
    if (kind == FIELD_FR) {
        return launch(shape, s, fr_kernel, op, to, x, y, count);
    }
    if (kind == FIELD_FP2_LANES) {
        shape.blocks = blocks_for(count, 64);
        return launch(shape, s, lanes_kernel, op, to, x, y, count);
    }
    return kind == FIELD_FP ? launch(shape, s, field_kernel<fp>, op, to, x, y, count)
                            : launch(shape, s, field_kernel<fp2>, op, to, x, y, count);
}
