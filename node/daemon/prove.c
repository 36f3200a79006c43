/* The device thread: the only one that drives the backend. It waits for no network, and leaves every check to others.
 *
 * After an error of the device, and after a strike that somebody else found, everything that lies where it computes is given up: nothing
 * computed in it is trusted again.
 */
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/daemon/lane_threads.h"

static enum err prove_blinded(struct lane *lane, struct lane_job *job,
                              const struct loaded_key *loaded) {
    struct blinding blinding;
    TRY(blinding_random(&blinding, key_curve(job->key)));
    enum err code = groth16_prove_unchecked(&job->proved, lane->backend, loaded->slot, job->key,
                                            &job->witness, &blinding, &job->watch);
    mem_wipe(&blinding, sizeof blinding);
    return code;
}

static enum err prove(struct lane *lane, struct lane_job *job) {
    REQUIRE(!atomic_load(&job->watch.cancel), E_CANCELLED, "cancelled before it was proved");
    REQUIRE(lane_ended(lane) == LANE_GOES_ON, E_CANCELLED, "the lane takes no work any more");
    struct loaded_key loaded;
    if (atomic_exchange(&lane->distrust, false)) {
        keycache_drop_all(lane->keycache);
    }
    lane_seat_loads(&lane->proving, key_shape(job->key)->file_bytes);
    enum err code = keycache_get(&loaded, lane->keycache, &job->key_digest, job->key);
    lane_seat_loaded(&lane->proving, job);
    TRY(code);
    if (loaded.load_ns) {
        part_report_step(&job->report, "key_load", loaded.load_ns, key_shape(job->key)->file_bytes);
        atomic_store(&lane->info_due, true);
    }
    uint64_t start_ns = clock_ns();
    TRY(prove_blinded(lane, job, &loaded));
    job->has_proof = true;
    keycache_learn(lane->keycache, &job->key_digest, clock_ns() - start_ns);
    return OK;
}

void *lane_prove_main(void *ctx) {
    struct lane *lane = ctx;
    struct lane_job *job = NULL;
    while (queue_take(lane->to_prove, &job, UINT64_MAX) == OK) {
        lane_seat_take(lane, &lane->proving, job);
        enum err code = prove(lane, job);
        job->fault = fault_of(code);
        lane_seat_take(lane, &lane->proving, NULL);
        if (verdict_of(code).strike) {
            lane_strike(lane, job);
        }
        enum err put = queue_put(lane->to_reply, &job, UINT64_MAX);
        ASSERT(put == OK);
    }
    return NULL;
}
