/* Which backend proves: asked once at start, never changed silently.
 *
 *   auto   the first usable CUDA device, else the processor; the choice and its reason are in `why`, for one line on
 *          standard error and for --json. With a device named it is the same as cuda
 *   cuda   a CUDA device or E_DEVICE (exit code 3) with the cure: never the processor instead
 *   cpu    the processor
 *
 * Used by the command line and by lanes.
 *
 * Threads  any.
 * Errors   those of the backends' own opening; E_DEVICE when cuda is asked for and is not compiled in or not usable.
 */
#pragma once
#include "node/daemon/devices.h"
#include "node/groth16/backend.h"

struct backend_choice {
    enum backend_kind kind; /* BACKEND_CUDA or BACKEND_CPU, never auto */
    char why[256]; /* "cpu: 2 threads, ifma (auto: CUDA is not compiled into this build)" */
};

/* What is known of a CUDA device without opening it. */
struct backend_device {
    char name[64], uuid[48];
    unsigned compute_major, compute_minor;
    unsigned driver_version, runtime_version; /* 13000 = 13.0 */
    uint64_t memory_bytes;
};
/* All that are usable, at most `max`. E_DEVICE says why there is none and what to do. */
FALLIBLE backends_describe(struct backend_device *out, size_t *count, size_t max);

bool backends_cuda_compiled(void); /* false: --version says "cpu only" */
/* The CUDA devices of this machine; E_DEVICE with cause and cure when there is none. Talks to the driver: see devices.h. */
FALLIBLE backends_devices(struct device_list *out);
/* "auto", "cuda", "cpu". */
FALLIBLE backends_kind(enum backend_kind *out, const char *name);
/* On OK *out is the caller's: backend_close. `choice` may be NULL. */
FALLIBLE backends_open(struct backend **out, struct backend_choice *choice,
                       const struct backend_options *options);
