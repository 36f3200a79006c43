/* Runs every stored input, and a few thousand mutations of each, through its target: the fuzzers' corpus in ordinary
 * builds. Mutations come from the claim's seed, so a failure replays.
 */
#include "node/base/file.h"
#include "node/base/mem.h"
#include "tests/check/check.h"
#include "tests/fuzz/targets.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS_MAX = 256, INPUT_BYTES_MAX = 1 << 20, MUTATIONS_COUNT = 400 };

/* The target sees a block of exactly `len` bytes. */
static void feed(fuzz_target *target, const uint8_t *data, size_t len) {
    long blocks = mem_live_blocks();
    uint8_t *exact = mem_alloc(len);
    CHECK(exact != NULL);
    memcpy(exact, data, len);
    target(bytes_of(exact, len));
    mem_free(exact);
    CHECK_EQ(blocks, mem_live_blocks());
}

static void mutate_and_feed(fuzz_target *target, const struct bytes_mut *input) {
    struct rng *rng = check_rng();
    uint8_t *copy = mem_alloc(input->len);
    CHECK(copy != NULL);
    for (unsigned round = 0; round < MUTATIONS_COUNT; round++) {
        memcpy(copy, input->ptr, input->len);
        size_t len = input->len;
        for (uint64_t hits = 1 + rng_below(rng, 4); hits > 0; hits--) {
            size_t at = rng_below(rng, len), wide = 1 + rng_below(rng, 8);
            switch (rng_below(rng, 4)) {
            case 0:
                copy[at] ^= (uint8_t)(1u << rng_below(rng, 8));
                break;
            case 1:
                memset(copy + at, rng_below(rng, 2) ? 0xff : 0, at + wide < len ? wide : len - at);
                break;
            case 2:
                memmove(copy + at, copy + rng_below(rng, at + 1),
                        at + wide < len ? wide : len - at);
                break;
            default:
                len = 1 + rng_below(rng, len);
            }
        }
        feed(target, copy, len);
    }
    mem_free(copy);
}

static void replay(fuzz_target *target, const char *name) {
    char folder[512], path[1024];
    const char *root = getenv("BELLOWS_ROOT");
    snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", root ? root : ".", name);
    DIR *dir = opendir(folder);
    CHECK_MSG(dir != NULL, "no folder %s", folder);
    unsigned count = 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        struct bytes_mut input;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        CHECK_OK(file_read_all(&input, path, INPUT_BYTES_MAX));
        if (input.len > 0) {
            feed(target, input.ptr, input.len);
            mutate_and_feed(target, &input);
        }
        mem_free(input.ptr);
        CHECK(++count <= INPUTS_MAX);
    }
    closedir(dir);
    CHECK_MSG(count > 0, "%s is empty", folder);
}

#define CLAIM(target)                                                                              \
    static void claim_##target(void) {                                                             \
        replay(fuzz_##target, #target);                                                            \
    }
CLAIM(zkey)
CLAIM(params)
CLAIM(wtns)
CLAIM(evaluations)
CLAIM(r1cs)
CLAIM(pce)
CLAIM(vkey)
CLAIM(vk)
CLAIM(proof)
CLAIM(proof_bytes)
CLAIM(public)
CLAIM(job)
CLAIM(result)
CLAIM(frames)
CLAIM(subject)
CLAIM(packed)
CLAIM(telemetry)
CLAIM(native)

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"replay: zkey survives its corpus", claim_zkey},
        {"replay: params survives its corpus", claim_params},
        {"replay: wtns survives its corpus", claim_wtns},
        {"replay: evaluations survive their corpus", claim_evaluations},
        {"replay: r1cs survives its corpus", claim_r1cs},
        {"replay: extracted circuits survive their corpus", claim_pce},
        {"replay: vkey (JSON) survives its corpus", claim_vkey},
        {"replay: vk (bellman) survives its corpus", claim_vk},
        {"replay: proof (JSON) survives its corpus", claim_proof},
        {"replay: proof (bellman) survives its corpus", claim_proof_bytes},
        {"replay: public signals survive their corpus", claim_public},
        {"replay: jobs survive their corpus", claim_job},
        {"replay: results survive their corpus", claim_result},
        {"replay: frame sequences survive their corpus", claim_frames},
        {"replay: subjects survive their corpus", claim_subject},
        {"replay: packed scalars survive their corpus", claim_packed},
        {"replay: telemetry survives its corpus", claim_telemetry},
        {"replay: native keys survive their corpus", claim_native},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
