/* What all benches share: the beginning of a line, and a row of times.
 *
 * Threads  one.
 */
#pragma once
#include "node/base/text.h"
#include "node/cli/products.h"

enum { BENCH_RUNS_MAX = 1000 };

#define OPTION_RUNS                                                                                \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "runs", .value = "N", .fallback = "5", .least = 1,          \
        .most = BENCH_RUNS_MAX, .text = "Runs that are timed."                                     \
    }
#define OPTION_WARMUPS                                                                             \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "warmups", .value = "N", .fallback = "1",                   \
        .most = BENCH_RUNS_MAX, .text = "Runs before them that are not."                           \
    }

/* {"bench": name, "version": …, "commit": …, "device": device */
void bench_begin(struct text *out, const char *name, const char *device);
/* "name": {"median": …, "least": …, "most": …}; sorts ns. Returns the median. */
uint64_t bench_row(struct text *out, const char *name, uint64_t *ns, size_t runs);
/* "products": …, "ceiling_fp_per_s": …, "ceiling_fr_per_s": …, "share_of_ceiling": …; null where the ceiling is not known. */
void bench_share(struct text *out, struct products products, const struct rates *ceiling,
                 uint64_t ns);
