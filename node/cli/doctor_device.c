/* Devices as the driver shows them, without opening one. */
#include "node/cli/doctor.h"
#include "node/daemon/backends.h"

static const char PART[] = "device";
enum { COMPUTE_LEAST = 7 };

static void look_at(struct findings *f, size_t idx, const struct backend_device *d) {
    bool old = d->compute_major < COMPUTE_LEAST;
    finding_add(f, PART, "gpu", old ? FINDING_BAD : FINDING_GOOD,
                "%zu: %s, compute %u.%u, %.1f GiB, %s", idx, d->name, d->compute_major,
                d->compute_minor, (double)d->memory_bytes / 0x1p30, d->uuid);
    if (old) {
        finding_cure(f, "use a GPU of compute capability 7.0 or later, or --backend cpu");
    }
}

void doctor_device(struct findings *f) {
    struct backend_device devices[DEVICES_MAX];
    size_t count = 0;
    if (!backends_cuda_compiled()) {
        finding_add(f, PART, "cuda", FINDING_NOTE,
                    "this build has no CUDA: lanes prove on the processor");
        finding_cure(f, "for GPUs build with -Dcuda=enabled where nvcc is");
        return;
    }
    if (backends_describe(devices, &count, DEVICES_MAX) != OK) {
        finding_add(f, PART, "cuda", FINDING_BAD, "no usable GPU: %s", err_detail());
        finding_cure(f, "if this machine should have none, start nodes with --backend cpu");
        return;
    }
    unsigned driver = devices[0].driver_version, runtime = devices[0].runtime_version;
    bool old = driver / 1000 < runtime / 1000;
    finding_add(f, PART, "driver", old ? FINDING_BAD : FINDING_GOOD,
                "the driver knows CUDA %u.%u, this program is built with %u.%u", driver / 1000,
                driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (old) {
        finding_cure(f, "install a driver of the CUDA %u generation or later", runtime / 1000);
    }
    for (size_t i = 0; i < count; i++) {
        look_at(f, i, &devices[i]);
    }
}
