/* One block: the pairs, their counts, and the points that came back. */
#include "cuda/rest.h"

#include "node/base/mem.h"

#include <string.h>

struct backend_rest {
    struct gpu_pairs pairs; /* its host counts are those below */
    struct gpu_pair_counts counts;
    const struct gpu_group *group;
    size_t bytes; /* of the whole */
    _Alignas(16) char results[];
};

enum err gpu_rest_new(struct backend_rest **out, const struct gpu_pairs *pairs,
                      const struct gpu_group *group, const void *results, size_t results_bytes) {
    struct backend_rest *r = NULL;
    size_t bytes = sizeof *r + results_bytes;
    TRY(mem_new_raw(&r, bytes, 1));
    r->pairs = *pairs;
    r->counts = *pairs->host;
    r->pairs.host = &r->counts;
    r->group = group;
    r->bytes = bytes;
    memcpy(r->results, results, results_bytes);
    *out = r;
    return OK;
}

void gpu_rest_finish(struct sums *sums, struct backend_rest **rest) {
    struct backend_rest *r = *rest;
    if (r) {
        if (sums) {
            gpu_msm_finish(sums->h.w, &r->pairs, r->group, r->results);
        }
        mem_wipe(r, r->bytes);
        mem_free_ptr(rest);
    }
}
