/* What the plan expects, beside what was measured: medians of tests/bench/RESULTS.md, "doublings in turns, MSMs beside each other", dense
 * witnesses in page-locked memory on an H200. No device is needed. */
#include "cuda/layout.h"
#include "tests/check/check.h"

/* `sums_ms`: what the device is busy with; `proof_ms`: with what the host adds. The plan's one number serves both. */
static const struct {
    enum curve_id curve;
    unsigned log2, gib;
    bool tables;
    double sums_ms, proof_ms;
} recorded[] = {
    {CURVE_BN254, 20, 139, false, 20.9, 23.4},       {CURVE_BN254, 20, 139, true, 18.8, 21.2},
    {CURVE_BLS12_381, 20, 139, false, 38.2, 44.8},   {CURVE_BLS12_381, 20, 139, true, 33.3, 37.1},
    {CURVE_BLS12_381, 22, 139, false, 124.6, 130.3}, {CURVE_BLS12_381, 22, 139, true, 110.3, 117.8},
    {CURVE_BLS12_381, 24, 139, false, 432.5, 435.4}, {CURVE_BLS12_381, 24, 16, false, 554.6, 558.4},
};

static void claim_recorded(void) {
    for (size_t i = 0; i < COUNT_OF(recorded); i++) {
        uint64_t rows = UINT64_C(1) << recorded[i].log2, wires = rows - 3;
        struct key_shape shape = {.curve = recorded[i].curve,
                                  .h_basis = H_POWERS,
                                  .wires_count = (uint32_t)wires,
                                  .public_count = 5,
                                  .domain_size = rows,
                                  .domain_log2 = recorded[i].log2,
                                  .terms_count = {2 * wires + wires / 2, wires}};
        struct gpu_layout l;
        CHECK_OK(
            gpu_layout_of(&l, &shape, 132, (uint64_t)recorded[i].gib << 30, recorded[i].tables));
        CHECK_EQ(recorded[i].tables, l.multiples);
        double ms = (double)gpu_layout_expected_ns(&l, &shape, 132) / 1e6;
        CHECK_MSG(ms > 0.9 * recorded[i].sums_ms && ms < 1.1 * recorded[i].sums_ms &&
                      ms > 0.9 * recorded[i].proof_ms && ms < 1.1 * recorded[i].proof_ms,
                  "curve %d, 2^%u in %u GiB%s: %.1f ms expected, measured %.1f and %.1f",
                  (int)recorded[i].curve, recorded[i].log2, recorded[i].gib,
                  recorded[i].tables ? " with multiples" : "", ms, recorded[i].sums_ms,
                  recorded[i].proof_ms);
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"what the plan expects is within a tenth of what was measured", claim_recorded},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
