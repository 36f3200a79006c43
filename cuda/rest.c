/* One block holds all: the rests one behind the other, each with its pairs, their counts, and the points that came back. Whoever has one
 * taken keeps the block alive.
 */
#include "cuda/rest.h"

#include "node/base/lock.h"
#include "node/base/mem.h"

#include <string.h>

struct backend_rest {
    struct gpu_rests *rests; /* shared (ref) while it is taken */
    struct gpu_pairs pairs;  /* its host counts are those below */
    struct gpu_pair_counts counts;
    const struct gpu_group *group;
    size_t bytes; /* of the results */
    bool taken;   /* [lock] */
    _Alignas(16) char results[];
};

struct gpu_rests {
    struct lock lock;
    unsigned refs_count; /* [lock] the slot's, and one of each that is taken */
    size_t each_bytes;
    _Alignas(16) char all[];
};

static size_t each_bytes(size_t results_bytes) {
    size_t bytes = sizeof(struct backend_rest) + results_bytes;
    return (bytes + 15) & ~(size_t)15;
}

size_t gpu_rests_bytes(size_t results_bytes) {
    return sizeof(struct gpu_rests) + GPU_RESTS * each_bytes(results_bytes);
}

static struct backend_rest *rest_at(struct gpu_rests *rests, unsigned idx) {
    return (struct backend_rest *)(void *)(rests->all + idx * rests->each_bytes);
}

enum err gpu_rests_open(struct gpu_rests **out, size_t results_bytes) {
    struct gpu_rests *r = NULL;
    TRY(mem_new(&r, 1, gpu_rests_bytes(results_bytes)));
    lock_init(&r->lock, LOCK_BACKEND);
    r->refs_count = 1;
    r->each_bytes = each_bytes(results_bytes);
    *out = r;
    return OK;
}

static void unref(struct gpu_rests *rests, struct backend_rest *taken) {
    lock_take(&rests->lock);
    if (taken) {
        taken->taken = false;
    }
    bool last = --rests->refs_count == 0;
    lock_give(&rests->lock);
    if (last) {
        lock_done(&rests->lock);
        mem_free(rests);
    }
}

void gpu_rests_close(struct gpu_rests **rests) {
    if (*rests) {
        unref(*rests, NULL);
        *rests = NULL;
    }
}

static struct backend_rest *take_free(struct gpu_rests *rests) {
    LOCK_SCOPE(&rests->lock);
    for (unsigned i = 0; i < GPU_RESTS; i++) {
        struct backend_rest *r = rest_at(rests, i);
        if (!r->taken) {
            r->taken = true;
            rests->refs_count++;
            return r;
        }
    }
    return NULL;
}

struct backend_rest *gpu_rest_take(struct gpu_rests *rests, const struct gpu_pairs *pairs,
                                   const struct gpu_group *group, const void *results,
                                   size_t results_bytes) {
    struct backend_rest *r = take_free(rests);
    if (r) {
        ASSERT(sizeof *r + results_bytes <= rests->each_bytes);
        r->rests = rests;
        r->pairs = *pairs;
        r->counts = *pairs->host;
        r->pairs.host = &r->counts;
        r->group = group;
        r->bytes = results_bytes;
        memcpy(r->results, results, results_bytes);
    }
    return r;
}

void gpu_rest_finish(struct sums *sums, struct backend_rest **rest) {
    struct backend_rest *r = *rest;
    if (r) {
        if (sums) {
            gpu_msm_finish(sums->h.w, &r->pairs, r->group, r->results);
        }
        mem_wipe(&r->counts, sizeof r->counts);
        mem_wipe(r->results, r->bytes);
        *rest = NULL;
        unref(r->rests, r);
    }
}
