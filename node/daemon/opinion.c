/* One backend beside the lane's own, idle until it is asked. Key and workspace live only as long as one computation: a second opinion
 * from memory that may be bad already would be none.
 */
#include "node/daemon/opinion.h"

#include <string.h>

#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/cpu/cpu.h"

struct opinion {
    struct backend *backend; /* owned */
    uint64_t bytes_max;
};

enum err opinion_new(struct opinion **out, const struct opinion_options *options) {
    AUTO(opinion_free) struct opinion *o = NULL;
    TRY(mem_new(&o, 1, sizeof *o));
    o->bytes_max = options->bytes_max;
    if (options->open) {
        TRY(options->open(&o->backend, options->open_ctx));
    } else {
        bool is_cpu = !strcmp(options->device->ops->name, "cpu");
        struct backend_options cpu = {.kind = BACKEND_CPU,
                                      .threads_count = options->threads_count,
                                      .cpu_tier = is_cpu ? "portable" : NULL};
        TRY(cpu_backend_open(&o->backend, &cpu));
    }
    *out = TAKE(o);
    return OK;
}

void opinion_free(struct opinion **o) {
    if (*o) {
        backend_close(&(*o)->backend);
        mem_free_ptr(o);
    }
}

struct place { /* what one computation needs */
    const struct backend_ops *ops;
    struct backend_key *key;   /* owned */
    struct backend_slot *slot; /* owned */
};

static void place_done(struct place *p) {
    if (p->slot) {
        p->ops->slot_close(&p->slot);
    }
    if (p->key) {
        p->ops->key_drop(&p->key);
    }
}

static enum err compute(struct sums *out, struct opinion *o, struct key *key,
                        const struct witness *w, struct job_watch *watch) {
    AUTO(place_done) struct place place = {.ops = o->backend->ops};
    TRY(place.ops->key_load(&place.key, o->backend, key));
    TRY(place.ops->slot_open(&place.slot, place.key));
    return groth16_sums(out, o->backend, place.slot, key, w, watch);
}

static enum err digest(struct sha256 *out, struct opinion *o, struct key *key,
                       const struct witness *w, struct job_watch *watch, const uint8_t salt[32]) {
    struct sums sums;
    TRY(compute(&sums, o, key, w, watch));
    enum err code = sums_digest(out, key_curve(key), &sums, salt);
    mem_wipe(&sums, sizeof sums);
    return code;
}

static bool same(const struct sha256 *a, const struct sha256 *b) {
    return !memcmp(a, b, sizeof *a);
}

enum err opinion_ask(enum opinion_finding *out, struct opinion *o, const struct sums *first,
                     struct key *key, const struct witness *w, struct job_watch *watch) {
    struct plan plan;
    uint8_t salt[32];
    struct sha256 a, b, c;
    TRY(o->backend->ops->plan(&plan, o->backend, key_shape(key)));
    REQUIRE(plan.host_bytes <= o->bytes_max, E_LIMIT,
            "the proof fails its own check, and computing it again on the processor takes %llu "
            "bytes, this lane has %llu for that; the option is --memory",
            (unsigned long long)plan.host_bytes, (unsigned long long)o->bytes_max);
    TRY(rng_os(salt, sizeof salt));
    TRY(sums_digest(&a, key_curve(key), first, salt));
    TRY(digest(&b, o, key, w, watch, salt));
    if (same(&a, &b)) {
        *out = OPINION_UNSAT;
        return OK;
    }
    TRY(digest(&c, o, key, w, watch, salt));
    *out = same(&b, &c) ? OPINION_DEVICE : same(&a, &c) ? OPINION_OTHER : OPINION_NEITHER;
    return OK;
}
