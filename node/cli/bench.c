/* A claim about speed names its machine, its commit and its spread; so does every line printed here. */
#include "node/cli/bench.h"
#include "node/base/version.h"

#include <inttypes.h>
#include <stdlib.h>

void bench_begin(struct text *out, const char *name, const char *device) {
    text_addf(out,
              "{\"bench\": \"%s\", \"version\": \"%s\", \"commit\": \"%s\", \"device\": ", name,
              BELLOWS_VERSION, BELLOWS_COMMIT);
    text_add_json_string(out, device);
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t bench_row(struct text *out, const char *name, uint64_t *ns, size_t runs) {
    qsort(ns, runs, sizeof *ns, by_value);
    uint64_t median = (ns[(runs - 1) / 2] + ns[runs / 2]) / 2;
    text_addf(out,
              "\"%s\": {\"median\": %" PRIu64 ", \"least\": %" PRIu64 ", \"most\": %" PRIu64 "}",
              name, median, ns[0], ns[runs - 1]);
    return median;
}

void bench_share(struct text *out, struct products products, const struct rates *ceiling,
                 uint64_t ns) {
    text_addf(out, "\"products\": %.0f, ", products.fp + products.fr);
    if (ceiling->fp <= 0 || ns == 0) {
        text_add(out, "\"ceiling_fp_per_s\": null, \"ceiling_fr_per_s\": null, "
                      "\"share_of_ceiling\": null");
        return;
    }
    text_addf(out,
              "\"ceiling_fp_per_s\": %.4g, \"ceiling_fr_per_s\": %.4g, \"share_of_ceiling\": %.3f",
              ceiling->fp, ceiling->fr, products_share(products, ceiling, ns));
}
