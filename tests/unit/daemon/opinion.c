/* Who is wrong, found by computing elsewhere. */
#include "node/daemon/opinion.h"

#include <stdatomic.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/check/check.h"
#include "tests/unit/groth16/reference.h"

/* A circuit, a witness and the sums that a device found. */
struct doubt {
    struct key *key;
    struct witness witness;
    struct backend *device, *second; /* second: lent to the opinion */
    struct opinion *opinion;
    struct sums first;
    struct job_watch watch;
};

static enum err open_second(struct backend **out, void *ctx) {
    struct doubt *d = ctx;
    TRY(reference_backend_open(&d->second));
    *out = d->second;
    return OK;
}

static void doubt_open(struct doubt *d, const char *witness, bool on_processor) {
    struct backend_key *loaded = NULL;
    struct backend_slot *slot = NULL;
    *d = (struct doubt){0};
    CHECK_OK(key_open(&d->key, check_vectors("bn128/mul/circuit.zkey"),
                      (struct key_options){.allow_insecure = true}));
    CHECK_OK(witness_open(&d->witness, check_vectors(witness)));
    CHECK_OK(reference_backend_open(&d->device));
    struct opinion_options options = {.open = on_processor ? NULL : open_second,
                                      .open_ctx = d,
                                      .device = d->device,
                                      .threads_count = 1,
                                      .bytes_max = UINT64_C(1) << 30};
    CHECK_OK(opinion_new(&d->opinion, &options));
    CHECK_OK(d->device->ops->key_load(&loaded, d->device, d->key));
    CHECK_OK(d->device->ops->slot_open(&slot, loaded));
    CHECK_OK(groth16_sums(&d->first, d->device, slot, d->key, &d->witness, &d->watch));
    d->device->ops->slot_close(&slot);
    d->device->ops->key_drop(&loaded);
}

static void doubt_close(struct doubt *d) {
    opinion_free(&d->opinion);
    backend_close(&d->device);
    witness_close(&d->witness);
    key_unref(&d->key);
}

static void check_finding(enum opinion_finding wanted, struct doubt *d) {
    enum opinion_finding finding;
    CHECK_OK(opinion_ask(&finding, d->opinion, &d->first, d->key, &d->witness, &d->watch));
    CHECK_EQ(wanted, finding);
}

static void claim_unsat(void) {
    for (int on_processor = 0; on_processor < 2; on_processor++) {
        struct doubt d;
        doubt_open(&d, "bn128/bad/unsatisfied.wtns", on_processor);
        check_finding(OPINION_UNSAT, &d);
        doubt_close(&d);
    }
}

static void claim_device(void) {
    for (int on_processor = 0; on_processor < 2; on_processor++) {
        struct doubt d;
        doubt_open(&d, "bn128/mul/witness.wtns", on_processor);
        d.first.l = d.first.a; /* not what the device should have found */
        check_finding(OPINION_DEVICE, &d);
        doubt_close(&d);
    }
}

static void claim_other(void) {
    struct doubt d;
    doubt_open(&d, "bn128/bad/unsatisfied.wtns", false);
    reference_break(d.second, 2, 1); /* the second computation is wrong, the third is not */
    check_finding(OPINION_OTHER, &d);
    doubt_close(&d);
}

static void claim_neither(void) {
    struct doubt d;
    doubt_open(&d, "bn128/mul/witness.wtns", false);
    d.first.l = d.first.a;
    reference_break(d.second, 2, 1);
    check_finding(OPINION_NEITHER, &d);
    doubt_close(&d);
}

static void claim_stops(void) {
    struct doubt d;
    enum opinion_finding finding;
    doubt_open(&d, "bn128/mul/witness.wtns", true);
    atomic_store(&d.watch.cancel, 1);
    CHECK_ERR(E_CANCELLED, opinion_ask(&finding, d.opinion, &d.first, d.key, &d.witness, &d.watch));
    struct opinion *poor = NULL;
    struct opinion_options options = {.device = d.device, .threads_count = 1, .bytes_max = 1000};
    CHECK_OK(opinion_new(&poor, &options));
    CHECK_ERR(E_LIMIT, opinion_ask(&finding, poor, &d.first, d.key, &d.witness, &d.watch));
    CHECK_HAS(err_detail(), "--memory");
    opinion_free(&poor);
    doubt_close(&d);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the same sums elsewhere: the witness is at fault", claim_unsat},
        {"two others agree against the first: the device is at fault", claim_device},
        {"the second disagrees with first and third: it is at fault itself", claim_other},
        {"three results: neither is believed", claim_neither},
        {"a second opinion stops when its job is cancelled, and is refused without room for it",
         claim_stops},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
