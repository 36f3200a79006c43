/* A fault inside a kernel takes the whole context with it: every later call must say E_DEVICE_LOST, so that the lane ends its
 * process and the job goes elsewhere. A program of its own, since nothing works after it.
 */
#include "node/groth16/prove.h"
#include "tests/kernel/device.h"

#include <stdlib.h>
#include <string.h>

static void claim_lost(void) {
    const struct device *dev = device_of_test();
    if (!strcmp(dev->info.name, "emulator") || getenv("BELLOWS_KERNEL_SMALL")) {
        check_skip("faults inside kernels need a device without a checker around it");
    }
    struct backend *b = NULL;
    struct backend_options options = {.kind = BACKEND_CUDA, .device = getenv("BELLOWS_DEVICE")};
    AUTO(key_unref) struct key *key = NULL;
    AUTO(witness_close) struct witness w = {0};
    struct backend_key *resident = NULL;
    struct backend_slot *slot = NULL;
    CHECK_OK(key_open(&key, check_vectors("bn128/base/circuit.zkey"),
                      (struct key_options){.allow_insecure = true}));
    CHECK_OK(witness_open(&w, check_vectors("bn128/base/witness.wtns")));
    CHECK_OK(gpu_backend_open(&b, &options));
    CHECK_OK(b->ops->key_load(&resident, b, key));
    CHECK_OK(b->ops->slot_open(&slot, resident));

    struct gpu_matrix nowhere = {.row_start = (const uint32_t *)64, .rows_count = 1000};
    enum err launched = bn254_gpu.matrix_times((void *)64, &nowhere, (void *)64, dev->stream);
    CHECK(launched == OK || launched == E_DEVICE_LOST);
    CHECK_ERR(E_DEVICE_LOST, gpu_stream_wait(dev->stream));
    CHECK_HAS(err_detail(), "restart the process");
    uint64_t left;
    CHECK_ERR(E_DEVICE_LOST, gpu_memory_free(&left));
    void *memory = NULL;
    CHECK_ERR(E_DEVICE_LOST, gpu_mem_open(&memory, 4096));

    struct prove_result result = {0};
    struct blinding blinding = {{{1}}, {{2}}};
    struct job_watch watch = {0};
    CHECK_ERR(E_DEVICE_LOST, groth16_prove(&result, b, slot, key, &w, &blinding, &watch));
    prove_result_done(&result);
    b->ops->slot_close(&slot); /* nothing may crash on the way out */
    b->ops->key_drop(&resident);
    backend_close(&b);
}

int kernel_lost(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"after a fault inside a kernel every call is E_DEVICE_LOST", claim_lost},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
