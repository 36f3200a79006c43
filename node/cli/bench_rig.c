/* The order of a proof without its blinding and check: witness, evaluate, quotient, five sums. */
#include "node/cli/bench_rig.h"

#include "node/base/mem.h"

void bench_rig_close(struct bench_rig *r) {
    if (r->slot) {
        r->backend->ops->slot_close(&r->slot);
    }
    if (r->backend_key) {
        r->backend->ops->key_drop(&r->backend_key);
    }
    witness_close(&r->witness);
    key_unref(&r->key);
    key_maker_close(&r->maker);
    backend_close(&r->backend);
}

static FALLIBLE open_parts(struct bench_rig *r, const struct backend_options *options,
                           const struct key_maker_order *order,
                           void (*fill)(void *ctx, struct scalar *values, size_t count),
                           void *fill_ctx) {
    struct key_maker_order by_backend = *order;
    AUTO(mem_free_ptr) struct scalar *values = NULL;
    TRY(backends_open(&r->backend, &r->choice, options)); /* first: it may not be there */
    by_backend.backend = r->backend;
    TRY(key_maker_open(&r->maker, &by_backend));
    TRY(key_maker_key(&r->key, r->maker));
    size_t wires = key_shape(r->key)->wires_count;
    TRY(mem_new(&values, wires, sizeof *values));
    values[0].w[0] = 1;
    fill(fill_ctx, values + 1, wires - 1);
    TRY(witness_from_values(&r->witness, order->curve, (uint8_t *)values, wires, "bench"));
    values = NULL;
    TRY(r->backend->ops->key_load(&r->backend_key, r->backend, r->key));
    return r->backend->ops->slot_open(&r->slot, r->backend_key);
}

FALLIBLE bench_rig_open(struct bench_rig *out, const struct backend_options *options,
                        const struct key_maker_order *order,
                        void (*fill)(void *ctx, struct scalar *values, size_t count),
                        void *fill_ctx) {
    struct bench_rig rig = {0};
    enum err code = open_parts(&rig, options, order, fill, fill_ctx);
    if (code != OK) {
        struct fault fault = fault_of(code);
        bench_rig_close(&rig);
        return fault_raise(&fault);
    }
    *out = rig;
    return OK;
}

FALLIBLE bench_rig_run(struct step_times *out, struct bench_rig *r) {
    const struct backend_ops *ops = r->backend->ops;
    struct job_watch watch = {.in_turn = true};
    struct sums sums;
    TRY(ops->witness(r->slot, &r->witness, &watch));
    TRY(ops->evaluate(r->slot));
    TRY(ops->quotient(r->slot));
    for (int k = 0; k < KEY_POINTS_COUNT; k++) {
        TRY(ops->msm(r->slot, msm_order[k]));
    }
    return ops->sums(&sums, out, r->slot);
}
