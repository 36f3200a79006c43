/* What kernel tests share: one device a program, memory on it, and random scalars.
 *
 * Threads  one.
 * Errors   a failed call ends the claim; without a device it is skipped.
 */
#pragma once
#include "node/curve/curve.h"
#include "tests/check/check.h"

#include "cuda/layout.h"

struct device {
    struct gpu_device info;
    struct gpu_stream *stream;
    bool emulated; /* small sizes only */
};
const struct device *device_of_test(void); /* skips the claim when there is none */

/* Device memory that lives until device_done(); filled with 0xa5, so that a place nobody wrote shows. */
void *device_take(size_t bytes);
void *device_put(const void *host, size_t bytes); /* taken and filled */
void device_get(void *host, const void *device, size_t bytes);
void *device_pinned(size_t bytes);
void device_done(void); /* gives back what the claim took; at the end of each claim */

enum { CURVES_COUNT = 2 };
extern const enum curve_id curves_tested[CURVES_COUNT];

enum scalar_mix {
    MIX_UNIFORM,
    MIX_WITNESS, /* 40 % 0, 30 % 1, 10 % bytes, 5 % 64 bits, 15 % full */
    MIX_BITS,
    MIX_EQUAL,
    MIX_EDGES, /* 0, 1, r-1, (r-1)/2, (r+1)/2, single bits, all-ones digits */
    MIX_ZERO,
    MIX_SPARSE, /* 3 % full, the rest bits, as a PoRep's witness */
    MIX_SMALL,  /* 33 … 127 */
    MIX_COUNT
};
const char *mix_name(enum scalar_mix mix);
/* *out is the caller's: mem_free. */
struct scalar *scalars_random(const struct curve *c, size_t count, enum scalar_mix mix);
void scalar_uniform(struct scalar *out, const struct curve *c); /* from the claim's seed */

/* Benches: median of the times (sorted here), in milliseconds. */
double median_ms(uint64_t *ns, size_t count);

/* One per file: the claims (or with --bench the benches) on one subject. Exit codes of check_main. */
int kernel_field(int argc, char **argv);
int kernel_fixed(int argc, char **argv);
int kernel_inbox(int argc, char **argv);
int kernel_lane(int argc, char **argv);
int kernel_large(int argc, char **argv);
int kernel_lost(int argc, char **argv);
int kernel_msm(int argc, char **argv);
int kernel_ntt(int argc, char **argv);
int kernel_prove(int argc, char **argv);
int kernel_vectors(int argc, char **argv);
