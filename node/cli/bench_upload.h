/* bench feed --imitate: the way of one job's scalars into a device, as it is done here and as it was done where this project began.
 *
 *   pageable    a, b and c in ordinary heap, 32 bytes each, handed to the driver
 *   pinned      the same from page-locked memory
 *   packed      the witness alone, packed where that pays, from page-locked memory: what a lane does
 *
 * Every run is measured by the device's own clock, with and without threads that copy memory meanwhile, and stands beside what computing
 * the proof takes.
 *
 * Threads  one; those that thrash are its own.
 * Errors   E_DEVICE without a CUDA device, E_LIMIT without memory or threads; those of key, witness and backend.
 */
#pragma once
#include "node/cli/args.h"

/* clang-format off */
#define BENCH_UPLOAD_OPTIONS                                                                       \
    {.kind = OPTION_CHOICE, .name = "imitate", .value = "no|pageable|pinned|packed",               \
     .fallback = "no",                                                                             \
     .text = "Instead of feeding a fleet: uploads a, b and c from such memory, or the packed witness."}, \
    {.kind = OPTION_NUMBER, .name = "thrash", .value = "N", .most = 256,                           \
     .text = "With --imitate: threads that copy memory meanwhile."}
/* clang-format on */
/* With the command's positionals KEY and WITNESS, and --device, --runs. Prints one JSON line. */
FALLIBLE bench_upload_run(struct args *args);
