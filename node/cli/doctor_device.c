/* Devices as the driver shows them, without opening one, and whether this build has code for them. */
#include "node/base/version.h"
#include "node/cli/doctor.h"
#include "node/daemon/backends.h"

#include <stdlib.h>
#include <string.h>

static const char PART[] = "device";
enum { COMPUTE_LEAST = 75 }; /* what the toolkit compiles for at all */

/* Machine code of an architecture runs on devices of the same generation that are not older; each also comes as PTX, which drivers of
 * any later device compile. "90a" is of that one device alone. */
enum finding_state doctor_arch(const char *archs, unsigned major, unsigned minor) {
    unsigned device = major * 10 + minor;
    enum finding_state best = FINDING_BAD;
    if (!strcmp(archs, "all")) {
        return device >= COMPUTE_LEAST ? FINDING_GOOD : FINDING_BAD;
    }
    for (const char *at = archs; *at;) {
        char *end;
        unsigned arch = (unsigned)strtoul(at, &end, 10);
        bool exact = *end == 'a' || *end == 'f';
        if (arch == device || (!exact && arch / 10 == major && arch <= device)) {
            return FINDING_GOOD;
        }
        best = !exact && arch > 0 && arch < device ? FINDING_NOTE : best;
        at = strchr(at, ',');
        if (!at) {
            break;
        }
        at += 1 + strspn(at + 1, " ");
    }
    return best;
}

static void look_at(struct findings *f, size_t idx, const struct backend_device *d) {
    enum finding_state state = doctor_arch(BELLOWS_GPU_ARCHS, d->compute_major, d->compute_minor);
    finding_add(f, PART, "gpu", state, "%zu: %s, compute %u.%u, %.1f GiB, %s%s", idx, d->name,
                d->compute_major, d->compute_minor, (double)d->memory_bytes / 0x1p30, d->uuid,
                state == FINDING_GOOD ? ""
                : state == FINDING_NOTE
                    ? "; the driver compiles the kernels when a lane first starts"
                    : "; this build has no code for it");
    if (state != FINDING_GOOD) {
        finding_cure(f,
                     "this build is for -Dgpu_archs=%s: build for %u%u too, or use --backend cpu",
                     BELLOWS_GPU_ARCHS, d->compute_major, d->compute_minor);
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
    finding_add(f, PART, "cuda", old ? FINDING_BAD : FINDING_GOOD,
                "the driver knows CUDA %u.%u, this program is built with %u.%u", driver / 1000,
                driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (old) {
        finding_cure(f, "install a driver of the CUDA %u generation or later", runtime / 1000);
    }
    for (size_t i = 0; i < count; i++) {
        look_at(f, i, &devices[i]);
    }
}
