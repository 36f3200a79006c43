/* The tables of the two curves: names of what the kernel files define, once per curve and group. */
#include "cuda/gpu.h"

#define GROUP_DECLARE(id)                                                                          \
    FALLIBLE id##_sift(const struct gpu_pairing *, const struct gpu_batch *, uint32_t, uint32_t,   \
                       struct gpu_stream *);                                                       \
    FALLIBLE id##_prefix(const struct gpu_pairing *, const struct gpu_batch *, uint32_t, unsigned, \
                         uint32_t, struct gpu_stream *);                                           \
    FALLIBLE id##_invert(const struct gpu_batch *, uint32_t, uint32_t, struct gpu_stream *);       \
    FALLIBLE id##_add(const struct gpu_pairing *, const struct gpu_batch *, uint32_t, unsigned,    \
                      uint32_t, struct gpu_stream *);                                              \
    FALLIBLE id##_scatter(void *, void *, const struct gpu_pairing *, const uint32_t *, uint32_t,  \
                          const uint32_t *, uint32_t, uint32_t, uint32_t, bool,                    \
                          struct gpu_stream *);                                                    \
    FALLIBLE id##_bit_sums(void *, const struct gpu_bit_lists *, struct gpu_stream *);             \
    void id##_finish(uint64_t *, const void *, const void *, const struct gpu_pairs *);

#define GROUP_TABLE(id, coordinate)                                                                \
    {                                                                                              \
        .coordinate_bytes = (coordinate), .result_bytes = 4 * (coordinate), .sift = id##_sift,     \
        .prefix = id##_prefix, .invert = id##_invert, .add = id##_add, .scatter = id##_scatter,    \
        .bit_sums = id##_bit_sums, .finish = id##_finish                                           \
    }

#define CURVE_DECLARE(id)                                                                          \
    FALLIBLE id##_gpu_products(void *, enum gpu_product, uint32_t, uint32_t, struct gpu_stream *); \
    FALLIBLE id##_gpu_expand(void *, const struct gpu_packed_block *, const void *, uint32_t,      \
                             struct gpu_stream *);                                                 \
    FALLIBLE id##_gpu_matrix_times(void *, const struct gpu_matrix *, const void *,                \
                                   struct gpu_stream *);                                           \
    void id##_gpu_constant(void *, const uint64_t[4]);                                             \
    size_t id##_gpu_domain_bytes(unsigned, bool, bool);                                            \
    FALLIBLE id##_gpu_domain_build(struct gpu_domain *, const struct gpu_domain_options *, void *, \
                                   struct gpu_stream *);                                           \
    FALLIBLE id##_gpu_ntt_inverse(void *, const void *, const struct gpu_domain *,                 \
                                  struct gpu_stream *);                                            \
    FALLIBLE id##_gpu_ntt_coset(void *, const void *, const struct gpu_domain *,                   \
                                struct gpu_stream *);                                              \
    FALLIBLE id##_gpu_quotient(void *, void *, void *, const struct gpu_domain *,                  \
                               struct gpu_stream *);                                               \
    GROUP_DECLARE(id##_g1)                                                                         \
    GROUP_DECLARE(id##_g2)

#define CURVE_TABLE(id)                                                                            \
    .products = id##_gpu_products, .expand = id##_gpu_expand,                                      \
    .matrix_times = id##_gpu_matrix_times, .constant = id##_gpu_constant,                          \
    .domain_bytes = id##_gpu_domain_bytes, .domain_build = id##_gpu_domain_build,                  \
    .ntt_inverse = id##_gpu_ntt_inverse, .ntt_coset = id##_gpu_ntt_coset,                          \
    .quotient = id##_gpu_quotient, .g1 = &id##_groups[0], .g2 = &id##_groups[1]

CURVE_DECLARE(bn254)
CURVE_DECLARE(bls12_381)

static const struct gpu_group bn254_groups[2] = {GROUP_TABLE(bn254_g1, 32),
                                                 GROUP_TABLE(bn254_g2, 64)};
static const struct gpu_group bls12_381_groups[2] = {GROUP_TABLE(bls12_381_g1, 48),
                                                     GROUP_TABLE(bls12_381_g2, 96)};

const struct gpu_curve bn254_gpu = {
    .scalar_bits = 254,
    .two_adicity = 28,
    .r = {0x43e1f593f0000001, 0x2833e84879b97091, 0xb85045b68181585d, 0x30644e72e131a029},
    CURVE_TABLE(bn254),
};
const struct gpu_curve bls12_381_gpu = {
    .scalar_bits = 255,
    .two_adicity = 32,
    .r = {0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48},
    CURVE_TABLE(bls12_381),
};
